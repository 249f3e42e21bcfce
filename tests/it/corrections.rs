//! Records that physicians correct: out, in, merged, and in the release (MedRoundsQA, 3.1 and appendix G).

use crate::support::Scratch;
use casemill::record::release::{CorrectionRow, ReleaseReviewRow, SlotRow};
use casemill::record::slots::MedroundsCase;
use casemill::record::{RecordId, from_batch};
use casemill::store::parquet;
use expect_test::expect;
use serde::de::DeserializeOwned;
use serde_json::{Value, json};

/// A boy with a rash. Of its values "back" is wrong: the vignette has it in "2 weeks back".
const RASH: &str = "medmcqa:068c193b-f65c-4902-9f77-7337923fe54e";

/// The exported records as JSON.
fn exported(scratch: &Scratch) -> Vec<Value> {
    let text = scratch.run_expecting(0, &["review", "export", "medrounds", "--records", "-q"]).stdout;
    text.lines().map(|line| serde_json::from_str(line).expect("JSON")).collect()
}

fn find<'a>(items: &'a mut [Value], id: &str) -> &'a mut Value {
    items.iter_mut().find(|item| item["record_id"] == id).unwrap_or_else(|| panic!("{id} is not exported"))
}

/// Takes a value out of a slot of the corrected record.
fn remove(item: &mut Value, slot: &str, value: &str) {
    let list = item["corrected"][slot].as_array_mut().expect("a list");
    let before = list.len();
    list.retain(|found| found != value);
    assert_eq!(list.len(), before - 1, "{slot} `{value}`");
}

fn add(item: &mut Value, slot: &str, value: &str) {
    item["corrected"][slot].as_array_mut().expect("a list").push(json!(value));
}

/// Writes the file that an annotator gives back.
fn write_jsonl(scratch: &Scratch, name: &str, items: &[&Value]) {
    scratch.write(name, items.iter().map(|item| item.to_string() + "\n").collect::<String>());
}

fn import(scratch: &Scratch, files: &[&str]) -> Value {
    let mut summary = scratch.json(&[&["review", "import", "medrounds", "--records"], files].concat());
    summary.as_object_mut().expect("an object").remove("file");
    summary
}

fn table<T: DeserializeOwned>(scratch: &Scratch, release: &str, name: &str) -> Vec<T> {
    let path = scratch.path(&format!("data/release/medrounds-{release}/{name}"));
    from_batch(&parquet::read(&path).expect("a table")).expect("its rows")
}

fn case(scratch: &Scratch, release: &str, record_id: &str) -> MedroundsCase {
    let cases = table::<MedroundsCase>(scratch, release, "cases/part-00000.parquet");
    let id = RecordId::parse(record_id).case_id("medrounds");
    cases.into_iter().find(|case| case.case_id == id).expect("a case")
}

#[test]
fn annotators_correct_records_and_only_what_is_below_runs_again() {
    let scratch = Scratch::shipped();
    scratch.run_expecting(4, &["build", "medrounds"]);
    let mut ann = exported(&scratch);
    let mut ben = ann.clone();
    let ids: Vec<String> = ann.iter().map(|item| item["record_id"].as_str().expect("an id").to_owned()).collect();
    let others: Vec<String> = ids.iter().filter(|id| *id != RASH).take(3).cloned().collect();
    let [typed, confirmed, doubtful] = others.as_slice() else { panic!("enough records") };

    // Both correct the same faults of one record, and differ in others.
    let of_ann = find(&mut ann, RASH);
    remove(of_ann, "Symptom-Position", "back");
    add(of_ann, "Symptom-Texture", "does not fade on pressure");
    remove(of_ann, "Symptom-Shape", "swollen");
    add(of_ann, "Physical-Change", "swollen");
    add(of_ann, "Symptom-Name", "low-grade fever");
    let of_ben = find(&mut ben, RASH);
    remove(of_ben, "Symptom-Position", "back");
    add(of_ben, "Symptom-Texture", "does not fade on pressure");
    // What one alone types stays only if the vignette says it.
    add(find(&mut ann, typed), "Symptom-Name", "low-grade fever for 3 years");
    let doubt = find(&mut ben, doubtful);
    doubt["unsure"] = json!(true);
    doubt["comment"] = json!("Two diagnoses fit.");
    doubt["base_sha256"] = json!("0".repeat(64));
    for (items, name, done) in
        [(&mut ann, "zz-ann", [RASH, typed, confirmed]), (&mut ben, "zz-ben", [RASH, doubtful, confirmed])]
    {
        for id in done {
            find(items, id)["annotator"] = json!(name);
        }
    }
    write_jsonl(&scratch, "ann.jsonl", &ann.iter().collect::<Vec<_>>());
    write_jsonl(&scratch, "ben.jsonl", &ben.iter().filter(|item| item["annotator"] != "").collect::<Vec<_>>());

    let files = ["ann.jsonl", "ben.jsonl"];
    let summary = import(&scratch, &files);
    expect![[r#"
        {
          "agreement": [
            {
              "annotators": [
                "zz-ann",
                "zz-ben"
              ],
              "equal_share": 0.5,
              "f1": 0.96,
              "kappa": 0.8,
              "n_both": 2,
              "n_equal": 1,
              "n_slots": 5
            }
          ],
          "annotators": [
            {
              "annotator": "zz-ann",
              "n_added": 3,
              "n_as_extracted": 1,
              "n_confirmed": 50,
              "n_moved": 1,
              "n_records": 3,
              "n_removed": 1,
              "n_unsure": 0
            },
            {
              "annotator": "zz-ben",
              "n_added": 1,
              "n_as_extracted": 2,
              "n_confirmed": 43,
              "n_moved": 0,
              "n_records": 3,
              "n_removed": 1,
              "n_unsure": 1
            }
          ],
          "n_credentialed": 0,
          "n_new": 6,
          "n_not_done": 48,
          "n_not_in_build": 0,
          "n_on_other_base": 1,
          "n_read": 6,
          "n_records": 4,
          "n_unsupported": 2,
          "unsupported": [
            "medmcqa:068c193b-f65c-4902-9f77-7337923fe54e: Symptom-Name `low-grade fever` not found",
            "<typed>: Symptom-Name `low-grade fever for 3 years` not found"
          ]
        }"#]]
    .assert_eq(&serde_json::to_string_pretty(&summary).expect("JSON").replace(typed.as_str(), "<typed>"));
    let stored = scratch.read("pipelines/decisions/medrounds-records.jsonl");
    assert_eq!(import(&scratch, &files)["n_new"], json!(0), "a record is kept once");
    assert_eq!(scratch.read("pipelines/decisions/medrounds-records.jsonl"), stored);
    let run = scratch.run_expecting(0, &["review", "import", "medrounds", "--records", "ann.jsonl"]);
    expect![[r#"
        ./pipelines/decisions/medrounds-records.jsonl: 3 records read, 0 new, 48 not done yet; 4 records of the build corrected or confirmed
        zz-ann: 3 records, 1 as extracted, 0 unsure; values: 50 confirmed, 3 added, 1 removed, 1 moved
        zz-ben: 3 records, 2 as extracted, 1 unsure; values: 43 confirmed, 1 added, 1 removed, 0 moved
        zz-ann and zz-ben: 1 of 2 records equal, F1 of values 0.960, kappa of filled slots 0.800 (mean of 5)
        2 values are not supported by their vignettes:
          medmcqa:068c193b-f65c-4902-9f77-7337923fe54e: Symptom-Name `low-grade fever` not found
          <typed>: Symptom-Name `low-grade fever for 3 years` not found
    "#]].assert_eq(&run.stdout.replace(typed.as_str(), "<typed>"));

    let plan = scratch.plan(&[]);
    assert!(plan.contains(&"extract_slots fresh".to_owned()), "{plan:?}");
    assert!(plan.contains(&"apply_corrections stale: resource corrections changed".to_owned()), "{plan:?}");
    let n_below = plan.iter().filter(|line| !line.ends_with(" fresh")).count();
    let run = scratch.run_expecting(4, &["build", "medrounds"]);
    let n_fresh = plan.len() - n_below;
    assert!(run.stderr.contains(&format!("done: {n_below} nodes ran, {n_fresh} were fresh")), "{}", run.stderr);

    scratch.run_expecting(0, &["freeze", "medrounds", "--version", "1", "--allow-quarantine"]);
    scratch.run_expecting(0, &["verify", "data/release/medrounds-1"]);
    let mut text = String::new();
    for id in [RASH, typed, confirmed, doubtful] {
        let case = case(&scratch, "1", id);
        let makers: Vec<&str> =
            case.made_by.iter().filter(|entry| entry.field == "slots").map(|entry| entry.by.as_str()).collect();
        let of_review = ["corrected", "confirmed", "reviewed", "annotators", "unsure"];
        let flags: Vec<&String> =
            case.flags.iter().filter(|flag| of_review.iter().any(|start| flag.starts_with(start))).collect();
        text += &format!("by {}: {flags:?}, {} rejected\n", makers.join(", "), case.n_rejected_values);
        for row in table::<CorrectionRow>(&scratch, "1", "corrections.parquet") {
            if row.case_id == case.case_id {
                text += &format!("  {} {} `{}`\n", row.change.as_str(), row.slot.as_str(), row.value);
            }
        }
        for row in table::<ReleaseReviewRow>(&scratch, "1", "review.parquet") {
            if row.case_id == case.case_id && row.node == "apply_corrections" {
                text += &format!("  {}: {}\n", row.reason, row.detail);
            }
        }
    }
    expect![[r#"
        by rules, reviewers: ["annotators_differ", "corrected"], 0 rejected
          removed Symptom-Position `back`
          added Symptom-Texture `does not fade on pressure`
          annotators_differ: Symptom-Name `low-grade fever` 1 of 2, left out (a tie, decided by the extractor); Symptom-Shape `swollen` 1 of 2, kept (a tie, decided by the extractor); Physical-Change `swollen` 1 of 2, left out (a tie, decided by the extractor)
        by rules, reviewers: ["corrected", "corrected_unsupported"], 1 rejected
          added Symptom-Name `low-grade fever for 3 years`
          corrected_unsupported: Symptom-Name `low-grade fever for 3 years` not found
        by rules, reviewers: ["confirmed_by_review"], 0 rejected
        by rules, reviewers: ["confirmed_by_review", "reviewed_on_other_base", "unsure_annotator"], 0 rejected
          unsure_annotator: 1 of 1 annotators
    "#]].assert_eq(&text);
    let case = case(&scratch, "1", RASH);
    let slots = table::<SlotRow>(&scratch, "1", "slots.parquet");
    let of_slot = |slot: &str| -> Vec<&str> {
        let rows = slots.iter().filter(|row| row.case_id == case.case_id && row.slot.as_str() == slot);
        rows.map(|row| row.value.as_str()).collect()
    };
    assert_eq!(of_slot("Symptom-Texture"), ["does not fade on pressure"]);
    assert!(!of_slot("Symptom-Position").contains(&"back"), "{:?}", of_slot("Symptom-Position"));
    assert!(!of_slot("Symptom-Name").contains(&"low-grade fever"), "half of the annotators, and not the extractor");
    assert!(!slots.iter().any(|row| row.value == "low-grade fever for 3 years"), "its vignette does not say so");

    let life = scratch.run_expecting(0, &["explain", "medrounds", RASH]).stdout;
    let step = life.split("\n\n").find(|step| step.starts_with("apply_corrections")).expect("a step of its own");
    for part in ["changed", "Symptom-Texture      does not fade on pressure  [stem", "reviewers", "annotators_differ"] {
        assert!(step.contains(part), "{part}: {step}");
    }
    // Names of annotators are in no table that is released, and in no ledger.
    for name in ["cases/part-00000.parquet", "review.parquet", "corrections.parquet", "ledger.parquet"] {
        let rows = table::<Value>(&scratch, "1", name);
        assert!(!Value::Array(rows).to_string().contains("zz-"), "{name}");
    }
}

#[test]
fn records_that_come_back_as_they_are_stay_as_they_are() {
    let scratch = Scratch::shipped();
    scratch.edit("pipelines/medrounds.toml", "min_score = 0.4", "min_score = 0.955");
    scratch.run_expecting(4, &["build", "medrounds"]);
    scratch.run_expecting(0, &["freeze", "medrounds", "--version", "before", "--allow-quarantine"]);
    let items = exported(&scratch);
    assert!(items.len() > 40, "{} records", items.len());
    assert!(items.iter().any(|item| item["unsupported"] != json!([])), "some rules are wrong");
    assert!(items.iter().any(|item| item["dropped"] != Value::Null), "records that fidelity drops can be mended");
    let csv = scratch.run_expecting(0, &["review", "export", "medrounds", "--records", "--format", "csv"]).stdout;
    scratch.write("table.csv", &csv);
    write_jsonl(&scratch, "lines.jsonl", &items.iter().collect::<Vec<_>>());
    // Nobody has put a name to them.
    let summary = import(&scratch, &["table.csv", "lines.jsonl"]);
    assert_eq!((&summary["n_read"], &summary["n_not_done"]), (&json!(0), &json!(2 * items.len())));
    assert_eq!(scratch.read("pipelines/decisions/medrounds-records.jsonl"), "");

    let mut reader = csv::Reader::from_reader(csv.as_bytes());
    let header = reader.headers().expect("a header").clone();
    let annotator = header.iter().position(|column| column == "annotator").expect("a column");
    let mut writer = csv::WriterBuilder::new().terminator(csv::Terminator::CRLF).from_writer(vec![0xef, 0xbb, 0xbf]);
    writer.write_record(&header).expect("CSV");
    for record in reader.records() {
        let mut fields: Vec<String> = record.expect("a row").iter().map(|field| field.replace('\n', "\r\n")).collect();
        fields[annotator] = "ann".to_owned();
        writer.write_record(&fields).expect("CSV");
    }
    scratch.write("table.csv", writer.into_inner().expect("CSV"));
    let summary = import(&scratch, &["table.csv"]);
    let of_ann = &summary["annotators"][0];
    assert_eq!((&of_ann["n_records"], &of_ann["n_as_extracted"]), (&json!(items.len()), &json!(items.len())));
    assert_eq!((&of_ann["n_added"], &of_ann["n_removed"], &of_ann["n_moved"]), (&json!(0), &json!(0), &json!(0)));
    assert_eq!(summary["n_on_other_base"], json!(0));

    scratch.run_expecting(4, &["build", "medrounds"]);
    scratch.run_expecting(0, &["freeze", "medrounds", "--version", "after", "--allow-quarantine"]);
    let file = |release: &str, name: &str| {
        std::fs::read(scratch.path(&format!("data/release/medrounds-{release}/{name}"))).expect("a table")
    };
    for name in ["slots.parquet", "corrections.parquet"] {
        assert!(file("before", name) == file("after", name), "{name}");
    }
    for case in table::<MedroundsCase>(&scratch, "after", "cases/part-00000.parquet") {
        assert!(case.flags.contains(&"confirmed_by_review".to_owned()), "{:?}", case.flags);
        assert!(case.made_by.iter().any(|entry| entry.field == "slots" && entry.by == "reviewers"));
    }
}

#[test]
fn a_sample_is_stable_and_all_corrections_or_none_are_taken() {
    let scratch = Scratch::shipped();
    let run = scratch.run_expecting(2, &["review", "export", "medrounds", "--records"]);
    assert!(run.stderr.contains("node extract_slots is not built"), "{}", run.stderr);
    scratch.run_expecting(4, &["build", "medrounds", "--to", "extract_slots"]);
    let draw = |n: &str, seed: &str| -> Vec<Value> {
        let items = scratch.json(&["review", "export", "medrounds", "--records", "--sample", n, "--seed", seed]);
        items["items"].as_array().expect("items").iter().map(|item| item["record_id"].clone()).collect()
    };
    let (three, five, other) = (draw("3", "0"), draw("5", "0"), draw("3", "1"));
    assert!(three.len() == 3 && three.iter().all(|id| five.contains(id)) && three != other);

    let items = exported(&scratch);
    assert!(items.iter().all(|item| item["fidelity"] == Value::Null), "no score without the node that scores");
    let good = {
        let mut item = items[0].clone();
        item["annotator"] = json!("ann");
        item
    };
    let changed = |change: &dyn Fn(&mut Value)| {
        let mut item = good.clone();
        change(&mut item);
        item.to_string()
    };
    let mut text = String::new();
    for bad in [
        changed(&|item| item["record_id"] = json!("medqa:none")),
        changed(&|item| item["corrected"] = json!({"Symptom-Nmae": []})),
        changed(&|item| item["corrected"]["Symptom-Name"] = json!(["fever", 39])),
        changed(&|item| item["corrected"]["Symptom-Name"] = json!("fever")),
        changed(&|item| item["corrected"] = json!(null)),
        changed(&|item| item["corrected"] = json!({"ground_truth_diagnosis": ["Gout"]})),
        changed(&|item| item["base_sha256"] = json!("changed")),
        changed(&|item| item["unsure"] = json!("maybe")),
        changed(&|item| item["annotator"] = json!(7)),
        changed(&|item| {
            item["annotator"] = json!(" ");
            item["corrected"] = json!({"Symptom-Name": ["fever"]});
        }),
        good.to_string().replacen("{", "{\"annotator\":\"ben\",", 1),
    ] {
        scratch.write("faulty.jsonl", format!("{good}\n{bad}\n"));
        let run = scratch.run_expecting(3, &["review", "import", "medrounds", "--records", "faulty.jsonl"]);
        text += run.stderr.trim_start_matches("casemill: ").split("; did you").next().expect("a part").trim_end();
        text.push('\n');
        assert_eq!(scratch.read("pipelines/decisions/medrounds-records.jsonl"), "");
    }
    let csv = scratch.run_expecting(0, &["review", "export", "medrounds", "--records", "--format", "csv"]).stdout;
    for (from, to) in [("Symptom-Color,", ""), ("Symptom-Color", "Colour"), ("diagnosis,", "diagnosis;")] {
        let (header, rows) = csv.split_once('\n').expect("a header");
        scratch.write(
            "faulty.csv",
            format!("{}\n{}", header.replacen(from, to, 1), if from.ends_with(',') { "" } else { rows }),
        );
        let run = scratch.run_expecting(3, &["review", "import", "medrounds", "--records", "faulty.csv"]);
        text += run.stderr.trim_start_matches("casemill: ").split(" (known").next().expect("a part").trim_end();
        text.push('\n');
    }
    let id = items[0]["record_id"].as_str().expect("an id");
    expect![[r#"
        faulty.jsonl:2: record_id: `medqa:none` is no record that can be corrected in this build
        faulty.jsonl:2: corrected: `Symptom-Nmae` is no slot
        faulty.jsonl:2: corrected.Symptom-Name: a number where a text is expected
        faulty.jsonl:2: corrected.Symptom-Name: a string where a list of texts is expected
        faulty.jsonl:2: corrected: null where an object is expected
        faulty.jsonl:2: corrected.ground_truth_diagnosis: is the source's answer and no value of the record; if it is wrong, set unsure and comment on it
        faulty.jsonl:2: base_sha256: is not what was exported: 64 hexadecimal digits
        faulty.jsonl:2: unsure: `maybe` is not one of yes, no, and nothing
        faulty.jsonl:2: annotator: a number where a text is expected
        faulty.jsonl:2: annotator: is missing, and the row is not as it was exported; write a name or a code
        faulty.jsonl:2: duplicate key `annotator` at column 30
        faulty.csv:1: the column `Symptom-Color` is missing
        faulty.csv:1: the column `Colour` is no slot and no other column of an export
        faulty.csv:1: the column `diagnosis;Symptom-Name` is no slot and no other column of an export
    "#]].assert_eq(&text.replace(id, "<id>"));
    // NA is no value, and null no list.
    scratch.write(
        "ann.jsonl",
        changed(&|item| item["corrected"] = json!({"Symptom-Name": ["NA", ""], "Personal-Sex": null})),
    );
    import(&scratch, &["ann.jsonl"]);
    let stored: Value =
        serde_json::from_str(&scratch.read("pipelines/decisions/medrounds-records.jsonl")).expect("one line");
    assert_eq!((&stored["values"], &stored["annotator"]), (&json!([]), &json!("ann")));
}
