//! Patients of DDXPlus and AJCR to PatientVectors: the sample from its files to a release, by rules.

use crate::readers::python;
use crate::support::{Scratch, copy_dir, repository};
use casemill::record::release::ReleaseLedgerRow;
use casemill::record::vector::{CodeState, Dataset, FindingBasis, MtdiagCase, Negation, ProvenanceTier};
use casemill::record::{Row, from_batch};
use casemill::release::manifest::Manifest;
use casemill::release::verify;
use casemill::store::parquet;
use expect_test::expect;
use serde_json::Value;
use std::collections::BTreeSet;
use std::fmt::Write;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::time::Duration;

/// The sample, built and frozen.
fn frozen(scratch: &Scratch) -> PathBuf {
    scratch.run_expecting(4, &["build", "mtdiag"]);
    scratch.run_expecting(0, &["freeze", "mtdiag", "--version", "0.1.0", "--allow-quarantine"]);
    scratch.path("data/release/mtdiag-0.1.0")
}

fn rows<T: Row>(path: &Path) -> Vec<T> {
    from_batch(&parquet::read(path).expect("a table")).expect("rows")
}

fn cases(release: &Path) -> Vec<MtdiagCase> {
    rows(&release.join("cases/part-00000.parquet"))
}

#[test]
fn every_patient_of_the_sample_is_a_case_or_is_told_why_not() {
    let scratch = Scratch::shipped();
    let release = frozen(&scratch);
    assert_eq!(verify(&release).expect("a release").faults, Vec::<String>::new());
    let manifest: Manifest =
        serde_json::from_slice(&std::fs::read(release.join("MANIFEST.json")).expect("a manifest")).expect("a manifest");
    let mut account = String::new();
    for node in &manifest.nodes {
        for source in &node.by_source {
            let counts = serde_json::to_string(source).expect("JSON");
            writeln!(account, "{} {counts}", node.node).expect("a text");
        }
    }
    expect![[r#"
        ingest_ajcr {"source":"ajcr","n_in":14,"n_split":0,"kept":10,"dropped":{"listed_twice":1},"quarantined":{"bot_page":1,"page_missing":1,"page_shape":1}}
        ingest_ddxplus {"source":"ddxplus","n_in":400,"n_split":0,"kept":394,"dropped":{},"quarantined":{"field_count":1,"initial_not_listed":1,"invalid_age":1,"invalid_literal":1,"unknown_evidence":1,"unknown_value":1}}
        dedup_splits {"source":"ddxplus","n_in":394,"n_split":0,"kept":383,"dropped":{"overlap_of_splits":6,"repeated_row":5},"quarantined":{}}
        split_series {"source":"ajcr","n_in":10,"n_split":2,"kept":12,"dropped":{},"quarantined":{}}
        convert_report {"source":"ajcr","n_in":12,"n_split":0,"kept":12,"dropped":{},"quarantined":{}}
        check_anchors {"source":"ajcr","n_in":12,"n_split":0,"kept":12,"dropped":{},"quarantined":{}}
        check_anchors {"source":"ddxplus","n_in":383,"n_split":0,"kept":383,"dropped":{},"quarantined":{}}
        check_leakage {"source":"ajcr","n_in":12,"n_split":0,"kept":12,"dropped":{},"quarantined":{}}
        check_leakage {"source":"ddxplus","n_in":383,"n_split":0,"kept":383,"dropped":{},"quarantined":{}}
    "#]].assert_eq(&account);
    let ledger: Vec<ReleaseLedgerRow> = rows(&release.join("ledger.parquet"));
    let reasons: BTreeSet<&str> = ledger.iter().map(|row| row.reason.as_str()).collect();
    for reason in
        ["repeated_row", "overlap_of_splits", "unknown_evidence", "unknown_value", "invalid_literal", "page_shape"]
    {
        assert!(reasons.contains(reason), "{reason}: {reasons:?}");
    }
}

#[test]
fn cases_of_both_sources_have_their_blocks() {
    let scratch = Scratch::shipped();
    let release = frozen(&scratch);
    let cases = cases(&release);
    let of = |dataset: Dataset| cases.iter().filter(move |case| case.origin.dataset == dataset);
    for case in of(Dataset::Ddxplus) {
        let truth = &case.ground_truth;
        assert!(case.mtdiag_id.starts_with("mtdiag-ddxplus-") && case.citation.is_none());
        assert_eq!(truth.primary.provenance_tier, ProvenanceTier::DdxplusGold);
        assert!(!truth.differential.is_empty() && truth.primary.severity.is_some());
        assert!(case.facts.demographics.age_years.is_some() && case.facts.demographics.sex.is_some());
        // Absence is negative by the closed world, and nobody's denial.
        let absent = case.presentation.absent_symptoms.as_ref().expect("a closed world");
        assert_eq!(absent.basis, FindingBasis::ClosedWorld);
        assert_eq!(absent.codes.len(), absent.names.len());
        assert!(case.presentation.symptoms.iter().all(|one| one.symptom.negation == Negation::Present));
        let present: BTreeSet<&str> =
            case.presentation.symptoms.iter().filter_map(|one| one.symptom.code.as_deref()).collect();
        assert!(absent.codes.iter().all(|code| !present.contains(code.as_str())));
    }
    let corrected: BTreeSet<(String, Option<String>)> = of(Dataset::Ddxplus)
        .filter(|case| case.ground_truth.primary.icd10_state == CodeState::Corrected)
        .map(|case| {
            (
                case.ground_truth.primary.icd10_source.clone().unwrap_or_default(),
                case.ground_truth.primary.icd10.clone(),
            )
        })
        .collect();
    assert!(corrected.contains(&("M34".to_owned(), Some("M32.9".to_owned()))), "{corrected:?}");
    assert!(of(Dataset::Ddxplus).any(|case| case.origin.language == "fr"));
    for case in of(Dataset::Ajcr) {
        let native = case.origin.native_id.as_deref().expect("the publisher's id");
        assert!(native.starts_with("AJCR99") && case.mtdiag_id.starts_with("mtdiag-ajcr-"), "{native}");
        assert_eq!(case.ground_truth.primary.provenance_tier, ProvenanceTier::AjcrGold);
        assert!(case.presentation.absent_symptoms.is_none(), "{native}: nobody listed everything");
        assert!(case.citation.is_some() && !case.presentation.symptoms.is_empty(), "{native}");
    }
    let natives: BTreeSet<&str> = of(Dataset::Ajcr).filter_map(|case| case.origin.native_id.as_deref()).collect();
    assert!(natives.iter().any(|native| native.ends_with("_2")), "a series is split: {natives:?}");
    assert!(
        of(Dataset::Ajcr)
            .flat_map(|case| &case.presentation.symptoms)
            .any(|one| one.symptom.negation == Negation::Denied)
    );
    assert!(of(Dataset::Ajcr).any(|case| !case.facts.family_history.is_empty()));
    assert!(of(Dataset::Ajcr).any(|case| !case.facts.vitals.is_empty() && !case.facts.tests.is_empty()));
}

/// Nothing outside `gold` names a diagnosis, but for what is history.
#[test]
fn what_is_told_does_not_name_the_diagnosis() {
    let scratch = Scratch::shipped();
    let release = frozen(&scratch);
    let text = std::fs::read_to_string(release.join("views/patients.jsonl")).expect("a view");
    let mut n = 0;
    for line in text.lines() {
        let mut line: Value = serde_json::from_str(line).expect("JSON");
        let gold = line.as_object_mut().expect("an object").remove("gold").expect("gold");
        let facts = line["patient"]["facts"].as_object_mut().expect("facts");
        for history in ["antecedents", "family_history", "medications"] {
            facts.remove(history);
        }
        let shown = line.to_string().to_lowercase();
        for field in ["label", "label_english"] {
            let Some(label) = gold["primary"][field].as_str() else { continue };
            assert!(!shown.contains(&label.to_lowercase()), "{label}: {shown}");
        }
        assert!(!line["turn_0"].as_array().expect("a first utterance").is_empty());
        n += 1;
    }
    assert_eq!(n, cases(&release).len());
}

#[test]
fn workers_shards_and_kills_do_not_change_a_byte() {
    let sums = |scratch: &Scratch| {
        scratch.run_expecting(0, &["freeze", "mtdiag", "--version", "1", "--allow-quarantine"]);
        scratch.read("data/release/mtdiag-1/SHA256SUMS")
    };
    let with_jobs = |jobs: &str| {
        let scratch = Scratch::shipped();
        scratch.run_expecting(4, &["build", "mtdiag", "--jobs", jobs]);
        sums(&scratch)
    };
    let one = with_jobs("1");
    assert_eq!(one, with_jobs("2"));
    let killed = Scratch::shipped();
    for n in 1..6 {
        let mut build = killed.command(&["build", "mtdiag", "--jobs", "2"]).spawn().expect("the binary");
        std::thread::sleep(Duration::from_millis(40 * n));
        build.kill().expect("killed or ended");
        build.wait().expect("its end");
    }
    killed.run_expecting(4, &["build", "mtdiag"]);
    assert_eq!(one, sums(&killed));
    // Smaller shards are another build of the same cases.
    let content = |scratch: &Scratch| {
        let manifest: Value =
            serde_json::from_str(&scratch.read("data/release/mtdiag-1/MANIFEST.json")).expect("a manifest");
        manifest["content_hash"].as_str().expect("a hash").to_owned()
    };
    let small = Scratch::shipped();
    let pipeline = small.read("pipelines/mtdiag.toml");
    small.write("pipelines/mtdiag.toml", format!("{pipeline}\n[shards]\nrecords = 37\n"));
    small.run_expecting(4, &["build", "mtdiag"]);
    sums(&small);
    assert_eq!(content(&killed), content(&small));
}

/// A source may be missing; the nodes that only it needs are left out.
#[test]
fn either_source_alone_gives_a_release() {
    for (source, other) in [("ddxplus", "ajcr"), ("ajcr", "ddxplus")] {
        let scratch = Scratch::shipped_without_raw();
        copy_dir(&repository().join("data/sample").join(source), &scratch.path("raw").join(source));
        let release = frozen(&scratch);
        let cases = cases(&release);
        assert!(!cases.is_empty() && cases.iter().all(|case| case.source == source), "{other} is not there");
    }
}

/// The queries of the README give rows.
#[test]
fn the_queries_of_the_readme_run() {
    let Some(python) = python() else { return };
    let scratch = Scratch::shipped();
    frozen(&scratch);
    let readme = std::fs::read_to_string(repository().join("README.md")).expect("the README");
    let blocks: Vec<&str> = readme
        .split("```python\n")
        .skip(1)
        .filter_map(|rest| rest.split("\n```").next())
        .filter(|block| block.contains("mtdiag-0.1.0"))
        .collect();
    assert_eq!(blocks.len(), 2, "DuckDB and pandas");
    for block in blocks {
        let output =
            Command::new(&python).args(["-c", block]).current_dir(scratch.path("")).output().expect("a Python");
        let (told, said) = (String::from_utf8_lossy(&output.stdout), String::from_utf8_lossy(&output.stderr));
        assert!(output.status.success(), "{block}\n{said}");
        assert!(!told.trim().is_empty() && !told.contains(" 0 rows"), "{block}\n{told}");
    }
}

/// The published tables, and rows of the French release: every row is a patient, every token accounted for.
#[test]
fn real_patients_are_accounted_for() {
    let Some(folder) = std::env::var_os("CASEMILL_DDXPLUS_SAMPLES").map(PathBuf::from) else {
        println!("not run: CASEMILL_DDXPLUS_SAMPLES names no folder with en/ and fr/ of DDXPlus");
        return;
    };
    let scratch = Scratch::shipped_without_raw();
    for name in ["release_evidences.json", "release_conditions.json"] {
        scratch.write(&format!("raw/ddxplus/{name}"), std::fs::read(folder.join("en").join(name)).expect("a table"));
    }
    for split in ["test", "validate"] {
        let entries = std::fs::read_dir(folder.join("fr")).expect("rows").map(|entry| entry.expect("an entry").path());
        let name = format!("release_{split}_patients");
        let file = entries.into_iter().find(|path| path.to_string_lossy().contains(&name)).expect("a file");
        scratch.write(&format!("raw/ddxplus/{name}.csv"), std::fs::read(file).expect("rows"));
    }
    let run = scratch.run(&["build", "mtdiag", "--to", "ingest_ddxplus"]);
    assert_eq!(run.code, Some(0), "{run:?}");
    let report = run.stdout + &run.stderr;
    assert!(report.contains("2000 in") || report.contains("2 000 in"), "{report}");
}
