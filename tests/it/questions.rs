//! The question sources through the pipeline as it is shipped: what the sample's README promises, the forms of MedMCQA,
//! and the reviewers' loop.

use crate::support::{Scratch, repository};
use serde_json::{Value, json};
use std::collections::BTreeMap;
use std::io::Write as _;

/// Last outcome of the record at a place, with its reason.
fn outcome(scratch: &Scratch, place: &str) -> String {
    let document = scratch.json(&["explain", "medrounds", place]);
    let lives = document["lives"].as_array().unwrap_or_else(|| panic!("{place}: {document}"));
    assert_eq!(lives.len(), 1, "{place}");
    let steps = lives[0]["steps"].as_array().expect("steps");
    let last = steps.last().expect("a step");
    match last["outcome"].as_str() {
        Some(left @ ("dropped" | "quarantined")) => format!("{left} {}", last["reason"].as_str().unwrap_or_default()),
        _ => "kept".to_owned(),
    }
}

/// `data/sample/README.md` says what becomes of every line; this reads its tables and holds the pipeline to them.
#[test]
fn the_sample_does_what_its_readme_says() {
    let scratch = Scratch::shipped();
    scratch.run_expecting(4, &["build", "medrounds"]);
    let readme = std::fs::read_to_string(repository().join("data/sample/README.md")).expect("the README");
    let (mut source, mut n_checked, mut wrong) = (String::new(), 0, Vec::new());
    for line in readme.lines() {
        if let Some(name) = line.strip_prefix("## ") {
            source = name.trim().to_owned();
        }
        let cells: Vec<&str> = line.trim_matches('|').split('|').map(str::trim).collect();
        let [file, number, .., expected] = cells.as_slice() else { continue };
        let Ok(number) = number.parse::<u64>() else { continue };
        let file = file.trim_matches('`');
        if !file.contains("json") && !file.contains("csv")
            || !["kept", "dropped", "quarantined"].iter().any(|word| expected.starts_with(word))
        {
            continue;
        }
        let reason = expected.split('`').nth(1).unwrap_or_default();
        let expected = match expected.split([' ', ',']).next() {
            Some("kept") => "kept".to_owned(),
            Some(left) => format!("{left} {reason}"),
            None => continue,
        };
        let found = outcome(&scratch, &format!("{source}/{file}:{number}"));
        n_checked += 1;
        if found != expected {
            wrong.push(format!("{source}/{file}:{number}: the README says {expected}, it was {found}"));
        }
    }
    assert!(wrong.is_empty(), "{}", wrong.join("\n"));
    assert_eq!(n_checked, 100, "every line of the samples is in the README");

    // Overlap between files and sources is reported.
    let document = scratch.json(&["plan", "medrounds"]);
    let overlaps: Vec<String> = document["overlaps"]
        .as_array()
        .expect("overlaps")
        .iter()
        .map(|overlap| {
            let text = |field: &str| overlap[field].as_str().unwrap_or_default().to_owned();
            format!("{} {} < {} {}", text("node"), text("kept_file"), text("removed_file"), overlap["n_removed"])
        })
        .collect();
    assert_eq!(
        overlaps,
        [
            "dedup_exact medmcqa/dev.json < medmcqa/dev.json 1",
            "dedup_exact medqa/test.jsonl < medqa/test.jsonl 2",
            "dedup_exact nejm/questions.jsonl < nejm/questions.jsonl 1",
            "dedup_near medmcqa/dev.json < medmcqa/dev.json 2",
            "dedup_near medqa/test.jsonl < medmcqa/dev.json 1",
            "dedup_near nejm/questions.csv < nejm/questions.jsonl 1",
        ]
    );
}

/// Release rows of MedMCQA, 1-based.
fn rows() -> Vec<Value> {
    let stem = |n: u64| {
        format!(
            "A {}-year-old man, record {n}, presents with fever and cough for {n} days. Examination shows crackles. Most likely diagnosis is",
            30 + n
        )
    };
    (0..6u64)
        .map(|n| {
            json!({"question": stem(n), "exp": if n == 3 { json!("Ans. (d) Asthma") } else { Value::Null }, "cop": n % 4 + 1,
                "opa": "Pneumonia", "opb": "Bronchitis, \"acute\"", "opc": "Tuberculosis", "opd": "Asthma",
                "subject_name": "Medicine", "topic_name": null, "id": format!("id-{n}"), "choice_type": "single"})
        })
        .collect()
}

/// What a build makes of the rows, by id: the diagnosis.
fn diagnoses(file: &str, bytes: &[u8]) -> BTreeMap<String, String> {
    let scratch = Scratch::shipped_without_raw();
    scratch.write(&format!("raw/medmcqa/{file}"), bytes);
    scratch.run_expecting(0, &["build", "medrounds"]);
    (0..6)
        .map(|n| {
            let id = format!("medmcqa:id-{n}");
            let document = scratch.json(&["explain", "medrounds", &id]);
            let steps =
                document["lives"][0]["steps"].as_array().unwrap_or_else(|| panic!("{file}: {document}")).clone();
            let diagnosis = steps.iter().find_map(|step| step["changes"]["ground_truth_diagnosis"].as_str());
            (id, diagnosis.unwrap_or_else(|| panic!("{file}: {steps:?}")).to_owned())
        })
        .collect()
}

#[test]
fn medmcqa_is_the_same_in_every_form() {
    let rows = rows();
    let lines: String = rows.iter().map(|row| format!("{row}\n")).collect();
    let expected = diagnoses("dev.json", lines.as_bytes());
    let named: Vec<&str> = expected.values().map(String::as_str).collect();
    assert_eq!(
        named,
        ["Pneumonia", "Bronchitis, \"acute\"", "Tuberculosis", "Asthma", "Pneumonia", "Bronchitis, \"acute\""]
    );

    let array = serde_json::to_string_pretty(&rows).expect("JSON");
    assert_eq!(diagnoses("dev.json", array.as_bytes()), expected, "JSON array");

    let mut packed = flate2::write::GzEncoder::new(Vec::new(), flate2::Compression::default());
    packed.write_all(lines.as_bytes()).expect("gzip");
    assert_eq!(diagnoses("dev.json.gz", &packed.finish().expect("gzip")), expected, "gzip");

    let columns =
        ["question", "exp", "cop", "opa", "opb", "opc", "opd", "subject_name", "topic_name", "id", "choice_type"];
    let mut csv = csv::Writer::from_writer(Vec::new());
    csv.write_record(columns).expect("CSV");
    for row in &rows {
        let field = |name: &&str| match &row[*name] {
            Value::Null => String::new(),
            Value::String(text) => text.clone(),
            other => other.to_string(),
        };
        csv.write_record(columns.iter().map(field)).expect("CSV");
    }
    assert_eq!(diagnoses("dev.csv", &csv.into_inner().expect("CSV")), expected, "CSV");

    // The hub's Parquet counts from 0.
    let schema = std::sync::Arc::new(arrow::datatypes::Schema::new(
        columns
            .map(|name| {
                let kind =
                    if name == "cop" { arrow::datatypes::DataType::Int64 } else { arrow::datatypes::DataType::Utf8 };
                arrow::datatypes::Field::new(name, kind, true)
            })
            .to_vec(),
    ));
    let hub: Vec<Value> = rows
        .iter()
        .cloned()
        .map(|mut row| {
            row["cop"] = (row["cop"].as_i64().expect("a number") - 1).into();
            row
        })
        .collect();
    let batch = casemill::record::to_batch_as(&hub, &schema).expect("a batch");
    let bytes = casemill::store::parquet::encode(&batch).expect("Parquet");
    assert_eq!(diagnoses("validation.parquet", &bytes), expected, "Parquet");
}

/// Case mcq-01: labels that contradict the declared base stop the node.
#[test]
fn mcq_01_a_contradiction_of_the_label_base_stops_the_node() {
    let scratch = Scratch::shipped_without_raw();
    let shifted: String = rows()
        .into_iter()
        .map(|mut row| {
            row["cop"] = (row["cop"].as_i64().expect("a number") - 1).into();
            format!("{row}\n")
        })
        .collect();
    scratch.write("raw/medmcqa/dev.json", shifted);
    let run = scratch.run_expecting(3, &["build", "medrounds"]);
    assert!(run.stderr.contains("medmcqa/dev.json:1: `cop` is 0, outside 1..4"), "{}", run.stderr);
    assert!(run.stderr.contains("sources/medmcqa.toml"), "{}", run.stderr);
    // Declared otherwise, the same file is read.
    scratch.edit("sources/medmcqa.toml", "cop_base_text = 1", "cop_base_text = 0");
    scratch.run_expecting(0, &["build", "medrounds"]);
}

/// Cases mcq-02, mcq-04 and mcq-05: equal options, pictures that are not there, options that mean other options.
#[test]
fn mcq_02_04_05_items_that_cannot_be_asked_as_text() {
    let scratch = Scratch::shipped_without_raw();
    let row = |id: &str, stem: &str, options: [&str; 4], cop: u32| {
        json!({"question": stem, "exp": null, "cop": cop, "opa": options[0], "opb": options[1], "opc": options[2], "opd": options[3],
            "subject_name": "Medicine", "topic_name": null, "id": id, "choice_type": "single"})
        .to_string()
            + "\n"
    };
    let stem = "A 40-year-old man presents with pallor and fatigue for two months. What is the most likely diagnosis?";
    let lines = [
        row("equal-key", stem, ["Iron", "iron ", "Zinc", "Copper"], 1),
        row("equal-others", stem, ["Anemia", "Zinc", "zinc", "Copper"], 1),
        row("letters", "Name the lettered structure in the film below.", ["A", "B", "C", "D"], 2),
        row("above", stem, ["Fever", "Cough", "Both A and B", "None of the above"], 3),
    ]
    .concat();
    scratch.write("raw/medmcqa/dev.json", lines);
    scratch.run_expecting(0, &["build", "medrounds"]);
    let found = ["equal-key", "equal-others", "letters", "above"].map(|id| outcome(&scratch, &format!("medmcqa:{id}")));
    assert_eq!(found, ["dropped ambiguous_key", "kept", "dropped image_dependent", "dropped composite_key"]);
}

#[test]
fn reviewers_decide_and_only_what_depends_on_it_runs_again() {
    let scratch = Scratch::shipped();
    scratch.run_expecting(4, &["build", "medrounds"]);
    let items = scratch.json(&["review", "export", "medrounds", "--sample", "3"]);
    let items = items["items"].as_array().expect("items");
    let why = |kind: &str| items.iter().filter(|item| item["why"] == kind).count();
    assert_eq!((why("sample_kept"), why("sample_dropped")), (3, 3));
    assert!(why("undecided") >= 10, "the conflicts of the sample wait for a person: {}", why("undecided"));
    assert!(
        items.iter().all(|item| item["decision"] == "" && item["stem"].as_str().is_some_and(|stem| !stem.is_empty()))
    );

    let mut kept = items
        .iter()
        .filter(|item| item["why"] != "sample_dropped")
        .map(|item| item["record_id"].as_str().expect("an id"));
    let mut next = || kept.next().expect("enough items").to_owned();
    let (agreed, rejected, disputed) = (next(), next(), next());
    // One reviewer works in a spreadsheet, the other with JSON.
    let export =
        scratch.run_expecting(0, &["review", "export", "medrounds", "--format", "csv", "--sample", "3"]).stdout;
    let mut reader = csv::Reader::from_reader(export.as_bytes());
    let header = reader.headers().expect("a header").clone();
    let column = |name: &str| header.iter().position(|column| column == name).expect("a column");
    let mut csv = csv::Writer::from_writer(Vec::new());
    csv.write_record(&header).expect("CSV");
    for record in reader.records() {
        let mut fields: Vec<String> = record.expect("a row").iter().map(str::to_owned).collect();
        let id = fields[column("record_id")].clone();
        let decision = if id == agreed || id == disputed {
            "keep"
        } else if id == rejected {
            "Drop"
        } else {
            ""
        };
        fields[column("decision")] = decision.to_owned();
        fields[column("reviewer")] = "anna".to_owned();
        csv.write_record(&fields).expect("CSV");
    }
    scratch.write("anna.csv", csv.into_inner().expect("CSV"));
    let line = |id: &str, decision: &str| {
        json!({"record_id": id, "decision": decision, "reviewer": "ben", "comment": "read twice"}).to_string() + "\n"
    };
    scratch.write("ben.jsonl", [line(&agreed, "keep"), line(&rejected, "drop"), line(&disputed, "drop")].concat());

    let (anna, ben) = (scratch.path("anna.csv"), scratch.path("ben.jsonl"));
    let (anna, ben) = (anna.to_str().expect("a path"), ben.to_str().expect("a path"));
    let summary = scratch.json(&["review", "import", "medrounds", anna, ben]);
    assert_eq!((&summary["n_read"], &summary["n_new"], &summary["n_disputed"]), (&json!(6), &json!(6), &json!(1)));
    assert_eq!((&summary["agreement"][0]["n_both"], &summary["agreement"][0]["n_agree"]), (&json!(3), &json!(2)));
    let again = scratch.json(&["review", "import", "medrounds", anna, ben]);
    assert_eq!(again["n_new"], json!(0), "a decision is kept once");

    let plan = scratch.plan(&[]);
    assert!(plan.contains(&"filter_vignette fresh".to_owned()), "{plan:?}");
    assert!(plan.contains(&"apply_decisions stale: resource decisions changed".to_owned()), "{plan:?}");
    let run = scratch.run_expecting(4, &["build", "medrounds"]);
    assert!(run.stderr.contains("nodes ran, 9 were fresh"), "{}", run.stderr);
    let found = [&agreed, &rejected, &disputed].map(|id| outcome(&scratch, id));
    assert_eq!(found, ["kept", "dropped rejected_by_review", "dropped disputed_by_review"]);
    // Reviewers' names stay out of the release.
    scratch.run_expecting(0, &["freeze", "medrounds", "--version", "1", "--allow-quarantine"]);
    let ledger = std::fs::read(scratch.path("data/release/medrounds-1/ledger.parquet")).expect("the ledger");
    assert!(!ledger.windows(4).any(|window| window == b"anna"));
}

#[test]
fn faulty_decisions_change_nothing() {
    let scratch = Scratch::shipped();
    scratch.run_expecting(4, &["build", "medrounds"]);
    let items = scratch.json(&["review", "export", "medrounds", "--sample", "0"]);
    let id = items["items"][0]["record_id"].as_str().expect("an id").to_owned();
    let good = json!({"record_id": id, "decision": "keep", "reviewer": "ben"}).to_string() + "\n";
    for (bad, message) in [
        (json!({"record_id": id, "decision": "maybe", "reviewer": "ben"}), "decisions.jsonl:2: decision: `maybe`"),
        (json!({"record_id": id, "decision": "keep", "reviewer": " "}), "decisions.jsonl:2: reviewer: is missing"),
        (
            json!({"record_id": "medqa:none", "decision": "keep", "reviewer": "ben"}),
            "decisions.jsonl:2: record_id: `medqa:none`",
        ),
    ] {
        scratch.write("decisions.jsonl", format!("{good}{bad}\n"));
        let path = scratch.path("decisions.jsonl");
        let run = scratch.run_expecting(3, &["review", "import", "medrounds", path.to_str().expect("a path")]);
        assert!(run.stderr.contains(message), "{}", run.stderr);
        assert_eq!(scratch.read("pipelines/decisions/medrounds.jsonl"), "");
    }
}
