//! Slot records: the reference records, the paper's own, the command `compare`, and what a release says of every value.

use crate::support::{Scratch, repository};
use casemill::compare::references::{Source, read_jsonl};
use casemill::compare::{Settings, SplitFilter, compare};
use casemill::record::Hash;
use casemill::record::slots::Slot;
use casemill::slots::extract::{Extractor, ExtractorFiles};
use casemill::text::grounding::{SourceText, Subject};
use serde_json::Value;
use std::collections::{BTreeMap, BTreeSet};

fn extractor() -> Extractor {
    Extractor::parse(ExtractorFiles {
        lexicon: include_str!("../../pipelines/lexicon/slots.toml"),
        terms: include_str!("../../pipelines/lexicon/terms.csv"),
        context: include_str!("../../pipelines/lexicon/context.toml"),
        drugs: include_str!("../../pipelines/lexicon/drugs.toml"),
    })
    .expect("the shipped files")
}

fn lines(text: &str) -> Vec<Value> {
    text.lines().map(|line| serde_json::from_str(line).unwrap_or_else(|error| panic!("{error}: {line}"))).collect()
}

#[test]
fn reference_records_are_well_formed_and_cover_twelve_specialties() {
    let read = |name: &str| {
        lines(&std::fs::read_to_string(repository().join("data/references").join(name)).expect("a committed file"))
    };
    let (medqa, sample) = (read("medqa.jsonl"), read("sample.jsonl"));
    assert_eq!((medqa.len(), sample.len()), (30, 30));
    let all: Vec<&Value> = medqa.iter().chain(&sample).collect();
    let held_out = all.iter().filter(|record| record["split"] == "held_out").count();
    assert_eq!(held_out, 20);
    let specialties: BTreeSet<&str> = all.iter().filter_map(|record| record["specialty"].as_str()).collect();
    assert!(specialties.len() >= 12, "{specialties:?}");
    let hashes: BTreeSet<&str> = all.iter().filter_map(|record| record["question_sha256"].as_str()).collect();
    assert_eq!(hashes.len(), 60, "each question once");
    // No text of a source is in the repository.
    assert!(
        medqa.iter().all(|record| record["values"].as_array().unwrap().iter().all(|value| value["text"].is_null()))
    );
}

/// Each value of the paper's five records stands in a vignette of our own that tells the same case.
#[test]
fn values_of_the_papers_records_are_grounded_and_extracted() {
    let extractor = extractor();
    let mut jsonl = String::new();
    let (mut n_values, mut n_slots, mut n_found) = (0, 0, 0);
    for mut case in lines(include_str!("paper_records.jsonl")) {
        let vignette = case["vignette"].as_str().unwrap().to_owned();
        let text = SourceText::new(&vignette, extractor.context());
        let mut found: BTreeMap<&str, Vec<String>> = BTreeMap::new();
        for one in extractor.extract(&vignette).found {
            let value = vignette.chars().skip(one.range.start).take(one.range.len()).collect();
            found.entry(one.slot.as_str()).or_default().push(value);
        }
        for (slot, value) in case["record"].as_object().unwrap() {
            let values: Vec<&str> = match value {
                Value::String(one) if one == "NA" => continue,
                Value::String(one) => vec![one.as_str()],
                list => list.as_array().unwrap().iter().map(|one| one.as_str().unwrap()).collect(),
            };
            if values.is_empty() {
                assert!(!found.contains_key(slot.as_str()), "{}: {slot}", case["case"]);
                continue;
            }
            for value in values {
                n_values += 1;
                let verdict = text.ground(value, Subject::Patient, None);
                assert!(verdict.grounding.is_grounded(), "{} {slot}: {value}: {verdict:?}", case["case"]);
            }
            n_slots += 1;
            n_found += usize::from(found.contains_key(slot.as_str()));
        }
        // What nobody disputes is found as it stands.
        let first = |slot: &str| found.get(slot).and_then(|values| values.first()).cloned().unwrap_or_default();
        let record = &case["record"];
        assert!(first("Personal-Age").contains(record["Personal-Age"].as_str().unwrap()), "{}", case["case"]);
        assert_eq!(first("Personal-Sex").to_lowercase(), record["Personal-Sex"].as_str().unwrap().to_lowercase());
        case["question_sha256"] = Value::String(Hash::of(vignette.as_bytes()).to_string());
        let fields = case.as_object_mut().unwrap();
        fields.remove("vignette");
        fields.remove("case");
        jsonl += &format!("{case}\n");
    }
    assert_eq!(n_values, 49);
    // The paper fills some slots by other conventions (urine as a position): fewer than 30 would be a loss.
    assert_eq!(n_slots, 38);
    assert!(n_found >= 30, "{n_found} of {n_slots} slots are found");
    // The form of appendix E.4 is read as reference records.
    let source = Source { file: "paper.jsonl", name: "paper", split: SplitFilter::All };
    let sets = read_jsonl(jsonl.as_bytes(), source, &|_| None).expect("the form of E.4");
    assert_eq!(sets[0].cases.len(), 5);
    let same = compare(&sets[0], &sets[..1], &[], Settings::default()).expect("a comparison");
    assert_eq!(serde_json::to_value(&same).unwrap()["extractors"][0]["scores"][0]["estimate"]["value"], 1.0);
}

/// A build of the sample, compared with its references: the tuning part only.
#[test]
fn compare_prints_the_table_and_the_floor() {
    let scratch = Scratch::shipped();
    scratch.run_expecting(4, &["build", "medrounds", "--quiet"]);
    let references = repository().join("data/references/sample.jsonl");
    let references = references.to_str().unwrap();
    let arguments = ["compare", references, "medrounds:extract_slots", "--split", "tuning", "--resamples", "200"];
    let text = scratch.run_expecting(0, &arguments).stdout;
    assert!(text.contains("medrounds:extract_slots") && text.contains("(empty)"), "{text}");
    let json = scratch.json(&[&arguments[..], &["--plot", "agreement.svg"]].concat());
    assert_eq!(json["n_cases"], 20);
    let extractor = |name: &str| {
        let all = json["extractors"].as_array().unwrap();
        all.iter().find(|one| one["name"] == name).unwrap_or_else(|| panic!("{name}")).clone()
    };
    let edit = |report: &Value| report["scores"][0]["estimate"]["value"].as_f64().unwrap();
    assert_eq!(edit(&extractor("(empty)")), 0.0);
    // The extractor may get better; it must not get worse unseen.
    assert!(edit(&extractor("medrounds:extract_slots")) >= 0.8, "{}", edit(&extractor("medrounds:extract_slots")));
    let svg = scratch.read("agreement.svg");
    assert!(svg.starts_with("<svg") || svg.starts_with("<?xml"));

    let mistakes = [
        (&["compare", references, "medrounds:extract_slot"][..], 2, "did you mean `extract_slots`"),
        (&["compare", references, "medrounds:dedup_exact"], 2, "has no slot records"),
        (&["compare", references, "notes.txt"], 2, "neither a folder of a release nor"),
        (&["compare", "nowhere.jsonl", "medrounds:extract_slots"], 3, "nowhere.jsonl"),
        (&["compare", references, "medrounds:extract_slots", "--embedder", "x"], 2, "--features embedder"),
    ];
    for (arguments, code, message) in mistakes {
        let run = scratch.run_expecting(code, arguments);
        assert!(run.stderr.contains(message), "{arguments:?}: {}", run.stderr);
    }
}

/// Every value of a release can be shown in its source text, by `explain` too.
#[test]
fn every_released_value_is_shown_in_its_text() {
    let scratch = Scratch::shipped();
    scratch.run_expecting(4, &["build", "medrounds", "--quiet"]);
    scratch.run_expecting(0, &["freeze", "medrounds", "--version", "1", "--allow-quarantine", "--quiet"]);
    scratch.run_expecting(0, &["verify", "data/release/medrounds-1"]);
    let records = lines(&scratch.read("data/release/medrounds-1/views/record.jsonl"));
    let boards = lines(&scratch.read("data/release/medrounds-1/views/interactive.jsonl"));
    let mcq = lines(&scratch.read("data/release/medrounds-1/views/mcq.jsonl"));
    let open = lines(&scratch.read("data/release/medrounds-1/views/open.jsonl"));
    assert!(records.len() >= 45 && [boards.len(), mcq.len(), open.len()].iter().all(|n| *n == records.len()));
    let mut specialties = BTreeSet::new();
    for ((record, board), (mcq, open)) in records.iter().zip(&boards).zip(mcq.iter().zip(&open)) {
        assert_eq!((&record["case_id"], &mcq["case_id"]), (&board["case_id"], &open["case_id"]));
        let slots = record["record"].as_object().unwrap();
        assert_eq!(slots.len(), Slot::ALL.len() - 1, "one field for each slot, none for the diagnosis");
        assert!(slots["Past-Medication"].is_array());
        assert!(slots.values().all(|value| value.is_array() || value.as_str().is_some_and(|text| !text.is_empty())));
        assert_ne!(slots["Symptom-Name"], "NA");
        specialties.insert(record["specialty"].as_str().unwrap().to_owned());
        // What a solver sees holds no key; what a doctor sees holds no diagnosis.
        assert!(open["options"].is_null() && mcq["options"].is_array());
        let diagnosis = board["gold"]["ground_truth_diagnosis"].as_str().unwrap().to_lowercase();
        assert!(!board["chart_blurb"].as_str().unwrap().to_lowercase().contains(&diagnosis));
        assert!(!open["vignette"].as_str().unwrap().contains(open["question"].as_str().unwrap()));
    }
    assert!(specialties.len() >= 8, "{specialties:?}");
    let case_id = records[0]["case_id"].as_str().unwrap();
    let shown = scratch.run_expecting(0, &["explain", "medrounds", case_id]).stdout;
    assert!(shown.contains(", exact]") && shown.contains("score_fidelity"), "{shown}");
}

#[test]
fn texts_of_every_kind_are_read_or_flagged() {
    let extractor = extractor();
    let long: String = "A 30-year-old man presents with a cough for 3 days. ".repeat(2_000);
    for stem in [
        "x",
        "é",
        "?",
        &long,
        "<p>A 30-year-old man</p><br>has a cough.",
        "患者は30歳の男性で、咳を訴えている。",
        "\u{0}\u{1}",
    ] {
        let extraction = extractor.extract(stem);
        let n = stem.chars().count();
        assert!(extraction.found.iter().all(|one| one.range.start < one.range.end && one.range.end <= n), "{stem:.40}");
    }
    let table = "A 30-year-old man has a cough. Laboratory studies show:\n- Hemoglobin 9.1 g/dL\n- Platelets 80,000/mm3\nWhat is it?";
    let found = extractor.extract(table).found;
    let tables: Vec<String> = found
        .iter()
        .filter(|one| one.slot == Slot::MedicalExamination)
        .map(|one| table.chars().skip(one.range.start).take(one.range.len()).collect())
        .collect();
    assert_eq!(tables, ["Laboratory studies show:\n- Hemoglobin 9.1 g/dL\n- Platelets 80,000/mm3"]);
}
