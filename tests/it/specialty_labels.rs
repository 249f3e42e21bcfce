//! Agreement of assigned specialties with the hand-given ones of `specialty_labels.tsv`.
//!
//! The labels name questions of the MedQA test file by the hash of their stem and hold no text. They are read from the
//! samples beside the repository: without them the measurement is skipped. The splits `untouched` and `fresh` must not guide
//! the rules.

use crate::support::repository;
use casemill::record::Hash;
use casemill::slots::specialty::{Assignment, Fields, Specialty, SpecialtyRules};
use casemill::text::sentences::split_lead_in;
use serde_json::Value;
use std::collections::HashMap;
use std::path::PathBuf;

const RULES: &str = include_str!("../../pipelines/rules/specialty.toml");
const LABELS: &str = include_str!("specialty_labels.tsv");

fn specialty(name: &str) -> Specialty {
    Specialty::ALL.into_iter().find(|one| one.as_str() == name).unwrap_or_else(|| panic!("no specialty {name}"))
}

fn assign(rules: &SpecialtyRules, case: &Value) -> Assignment {
    let stem = case["question"].as_str().unwrap();
    let parts = split_lead_in(stem);
    rules.assign(&Fields {
        vignette: &stem[parts.vignette],
        question: &stem[parts.lead_in],
        diagnosis: case["answer"].as_str().unwrap(),
        ..Fields::default()
    })
}

#[test]
fn labels_are_well_formed() {
    let mut hashes = std::collections::BTreeSet::new();
    for line in LABELS.lines().skip(1) {
        let columns: Vec<&str> = line.split('\t').collect();
        assert_eq!(columns.len(), 3, "{line}");
        assert!(columns[0].len() == 64 && hashes.insert(columns[0]), "{line}");
        specialty(columns[1]);
        assert!(["tune", "untouched", "fresh"].contains(&columns[2]), "{line}");
    }
}

#[test]
fn agreement_with_labels() {
    let folder =
        std::env::var_os("CASEMILL_SAMPLES").map_or_else(|| repository().join("../shared/samples"), PathBuf::from);
    let file = folder.join("medqa/us_5options_test.jsonl");
    let Ok(text) = std::fs::read_to_string(&file) else {
        println!("skipped: there is no {}; CASEMILL_SAMPLES names the folder", file.display());
        return;
    };
    let rules = SpecialtyRules::parse(RULES).unwrap();
    let cases: HashMap<String, Value> = text
        .lines()
        .map(|line| serde_json::from_str::<Value>(line).unwrap())
        .map(|case| (Hash::of(case["question"].as_str().unwrap().as_bytes()).to_string(), case))
        .collect();
    // Only these splits are listed case by case: the others must not guide the rules.
    let listed = std::env::var("SPECIALTY_LIST").unwrap_or_default();
    for split in ["tune", "untouched", "fresh"] {
        let (mut all, mut agreed, mut agreed_folded, mut confident, mut confident_agreed) = (0, 0, 0, 0, 0);
        for line in LABELS.lines().skip(1) {
            let columns: Vec<&str> = line.split('\t').collect();
            let Some(case) = cases.get(columns[0]).filter(|_| columns[2] == split) else { continue };
            let expected = specialty(columns[1]);
            let assignment = assign(&rules, case);
            let agrees = assignment.specialty == expected;
            all += 1;
            agreed += i32::from(agrees);
            agreed_folded += i32::from(rules.broader(assignment.specialty) == rules.broader(expected));
            confident += i32::from(assignment.confident);
            confident_agreed += i32::from(assignment.confident && agrees);
            if !agrees && listed.split(',').any(|one| one == split) {
                eprintln!("{} {} expected {expected}, got {assignment:#?}", columns[0], case["answer"]);
            }
        }
        println!(
            "{split}: {agreed} of {all} agree, {agreed_folded} folded; {confident_agreed} of {confident} confident ones"
        );
        if all > 0 && split != "tune" {
            assert!(agreed_folded * 100 >= all * 75, "{split}: {agreed_folded} of {all}");
        }
    }
}
