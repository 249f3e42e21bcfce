//! Case reports to staged cases: the sample from its packages to a release, by rules.

use crate::support::{Scratch, copy_dir, repository};
use casemill::record::release::{MediaRow, ReleaseLedgerRow};
use casemill::record::staged::ClinmmCase;
use casemill::record::{Hash, Row, from_batch};
use casemill::release::manifest::Manifest;
use casemill::release::verify;
use casemill::store::parquet;
use serde_json::Value;
use std::collections::{BTreeMap, BTreeSet};
use std::path::{Path, PathBuf};

/// What becomes of every article of the sample that is no case: id without `PMC990000`, node, reason.
const LEFT: &[(&str, &str, &str)] = &[
    ("04", "convert_case", "diagnosis_unclear"),
    ("15~2", "ingest_jats", "older_version"),
    ("19", "split_series", "case_series"),
    ("20", "split_series", "case_series"),
    ("21", "filter_media", "no_medical_image"),
    ("22", "validate_consensus", "not_case_report"),
    ("23", "filter_media", "no_medical_image"),
    ("24", "validate_consensus", "not_case_report"),
    ("25", "validate_consensus", "treatment_focused"),
    ("26", "validate_consensus", "adverse_reaction"),
    ("27", "convert_case", "no_diagnosis"),
    ("28", "filter_media", "no_figure"),
    ("29", "validate_consensus", "retracted"),
    ("30", "filter_media", "no_figure"),
    ("31", "validate_consensus", "retracted"),
    ("32", "filter_media", "no_figure"),
    ("33", "filter_media", "video"),
    ("34", "filter_media", "video"),
    ("35", "filter_media", "video"),
    ("36", "filter_media", "no_figure"),
    ("37", "filter_media", "no_medical_image"),
    ("38", "filter_media", "low_resolution"),
];

/// Articles that are cases of the build, and closed by their licence.
const CLOSED: &[&str] = &["39", "40"];

fn id(short: &str) -> String {
    format!("pmc:PMC990000{short}")
}

fn case_id(short: &str) -> String {
    casemill::record::RecordId::parse(&id(short)).case_id("clinmm")
}

/// The sample, built and frozen for a profile.
fn frozen(scratch: &Scratch, profile: &str) -> PathBuf {
    scratch.run_expecting(4, &["build", "clinmm"]);
    let version = format!("1.0.0-{profile}");
    scratch.run_expecting(0, &["freeze", "clinmm", "--version", &version, "--profile", profile, "--allow-quarantine"]);
    scratch.path(&format!("data/release/clinmm-{version}"))
}

fn rows<T: Row>(path: &Path) -> Vec<T> {
    from_batch(&parquet::read(path).expect("a table")).expect("rows")
}

fn cases(release: &Path) -> Vec<ClinmmCase> {
    rows(&release.join("cases/part-00000.parquet"))
}

fn ids_of(cases: &[ClinmmCase]) -> BTreeSet<String> {
    cases.iter().filter_map(|case| case.citation.ids.pmcid.clone()).collect()
}

#[test]
fn every_article_of_the_sample_is_a_case_or_is_told_why_not() {
    let scratch = Scratch::shipped();
    let release = frozen(&scratch, "credentialed");
    let verified = verify(&release).expect("a release");
    assert_eq!(verified.faults, Vec::<String>::new());
    let ledger: Vec<ReleaseLedgerRow> = rows(&release.join("ledger.parquet"));
    let mut left: BTreeMap<String, (String, String)> =
        ledger.into_iter().map(|row| (row.case_id, (row.node, row.reason))).collect();
    for (short, node, reason) in LEFT {
        assert_eq!(left.remove(&case_id(short)), Some(((*node).to_owned(), (*reason).to_owned())), "{short}");
    }
    // Two files that are no articles have no id but their bytes.
    let rest: Vec<&str> = left.values().map(|(_, reason)| reason.as_str()).collect();
    assert_eq!(BTreeSet::from_iter(rest), BTreeSet::from(["not_xml", "not_article"]));
    let found = ids_of(&cases(&release));
    let expected: BTreeSet<String> = (1..=18)
        .filter(|n| *n != 4)
        .map(|n| format!("PMC990000{n:02}"))
        .chain(CLOSED.iter().map(|short| format!("PMC990000{short}")))
        .collect();
    assert_eq!(found, expected);
}

#[test]
fn a_case_says_where_each_of_its_texts_stands() {
    let scratch = Scratch::shipped();
    let release = frozen(&scratch, "research");
    for case in cases(&release) {
        let name = case.citation.ids.pmcid.clone().unwrap_or_default();
        let file = format!("pmc/{name}.{0}/{name}.{0}.xml", case.citation.version.expect("a version"));
        let xml = std::fs::read(scratch.path("raw").join(&file)).expect("the article");
        assert!(!case.images.is_empty() && case.n_turns as usize == case.images.len() + 2, "{name}");
        assert!(!case.final_diagnosis.text.is_empty() && !case.final_diagnosis.quotes.is_empty(), "{name}");
        for (field, text) in case.english.fields() {
            let Some(text) = text else { continue };
            assert!(!text.quotes.is_empty(), "{name} {field}");
            for quote in &text.quotes {
                let bytes = &xml[quote.xml_start as usize..quote.xml_end as usize];
                assert!(std::str::from_utf8(bytes).is_ok_and(|text| !text.is_empty()), "{name} {field}");
            }
            let lower = text.text.to_lowercase();
            assert!(!lower.contains(&case.final_diagnosis.text.to_lowercase()), "{name} {field} names the diagnosis");
        }
    }
    let explained = scratch.run_expecting(0, &["explain", "clinmm", &id("01")]).stdout;
    for words in ["convert_case", "demographic_information: ", "from p", "section ", "bytes ", "SHA-256 "] {
        assert!(explained.contains(words), "{words}\n{explained}");
    }
    assert!(explained.lines().all(|line| line.len() < 4000), "a line that nobody reads");
}

/// Cases lic-02 and lic-03: by profile, what is in a release is what the licence of each article and image allows.
#[test]
fn lic_02_lic_03_a_release_holds_what_its_profile_may() {
    let scratch = Scratch::shipped();
    let by_profile: BTreeMap<&str, (BTreeSet<String>, Manifest, PathBuf)> = ["open", "noncommercial", "research"]
        .into_iter()
        .map(|profile| {
            let release = frozen(&scratch, profile);
            assert_eq!(verify(&release).expect("a release").faults, Vec::<String>::new(), "{profile}");
            let manifest = serde_json::from_slice(&std::fs::read(release.join("MANIFEST.json")).expect("a manifest"));
            (profile, (ids_of(&cases(&release)), manifest.expect("a manifest"), release))
        })
        .collect();
    let holds = |profile: &str, short: &str| by_profile[profile].0.contains(&format!("PMC990000{short}"));
    // BY, BY-NC, BY-NC-ND, a link and words that differ, none stated, reserved.
    for (short, open, noncommercial, research) in [
        ("01", true, true, true),
        ("08", false, true, true),
        ("06", false, false, true),
        ("11", false, true, true),
        ("10", true, true, true),
        ("39", false, false, false),
        ("40", false, false, false),
    ] {
        assert_eq!(
            (holds("open", short), holds("noncommercial", short), holds("research", short)),
            (open, noncommercial, research),
            "{short}"
        );
    }
    let (_, manifest, release) = &by_profile["open"];
    assert!(manifest.redistributable);
    let attribution = std::fs::read_to_string(release.join("ATTRIBUTION.csv")).expect("a table");
    assert_eq!(attribution.lines().count() as u64, manifest.n_cases + 1);
    let (_, manifest, release) = &by_profile["research"];
    assert!(!manifest.redistributable && manifest.not_redistributable_because.iter().any(|why| why.contains("-ND-")));
    // No word of an article without a licence: its exits tell no detail.
    let ledger = rows::<ReleaseLedgerRow>(&release.join("ledger.parquet"));
    assert!(ledger.iter().any(|row| row.detail.is_some()));
    // No pixel of a figure that may not be changed is changed.
    let media: Vec<MediaRow> = rows(&release.join("media.parquet"));
    let unchanged = media.iter().filter(|row| row.licence.contains("-ND"));
    let mut n_unchanged = 0;
    for row in unchanged {
        assert_eq!(row.sha256, row.shown_sha256);
        let path = row.path.as_ref().expect("may be passed on as it is");
        assert_eq!(Hash::of(&std::fs::read(release.join(path)).expect("an image")), row.sha256);
        n_unchanged += 1;
    }
    assert!(n_unchanged > 0);
    assert!(media.iter().any(|row| row.sha256 != row.shown_sha256), "some picture is converted");
}

#[test]
fn the_dialogue_shows_nothing_that_names_the_diagnosis() {
    let scratch = Scratch::shipped();
    let release = frozen(&scratch, "research");
    let text = std::fs::read_to_string(release.join("views/dialogue.jsonl")).expect("a view");
    for line in text.lines() {
        let mut line: Value = serde_json::from_str(line).expect("JSON");
        let gold = line.as_object_mut().expect("an object").remove("gold").expect("gold");
        let shown = line.to_string().to_lowercase();
        let mut names = vec![gold["final_diagnosis"].as_str().expect("a diagnosis").to_lowercase()];
        names
            .extend(gold["synonyms"].as_array().into_iter().flatten().filter_map(Value::as_str).map(str::to_lowercase));
        for name in names.iter().filter(|name| name.chars().count() > 3) {
            let is_word = shown.match_indices(name.as_str()).any(|(at, _)| {
                let before = shown[..at].chars().next_back().is_none_or(|c| !c.is_alphanumeric());
                before && shown[at + name.len()..].chars().next().is_none_or(|c| !c.is_alphanumeric())
            });
            assert!(!is_word, "{name}: {shown}");
        }
        for turn in line["turns"].as_array().expect("turns").iter().filter(|turn| turn["kind"] == "image") {
            let path = turn["path"].as_str().expect("an image that may be here");
            assert_eq!(
                path,
                format!(
                    "media/{}.{}",
                    turn["sha256"].as_str().expect("a hash"),
                    path.rsplit('.').next().expect("an extension")
                )
            );
        }
    }
}

/// The specialties of the paper's table D1, counted at every node.
#[test]
fn attrition_is_counted_by_specialty() {
    let scratch = Scratch::shipped();
    let release = frozen(&scratch, "credentialed");
    let manifest: Manifest =
        serde_json::from_slice(&std::fs::read(release.join("MANIFEST.json")).expect("a manifest")).expect("a manifest");
    assert_eq!(manifest.attrition.iter().map(|row| row.n_in).sum::<u64>(), 43);
    let last: u64 = manifest.attrition.iter().filter_map(|row| Some(row.kept.last()?.n)).sum();
    assert_eq!(last, manifest.n_cases);
    let named: Vec<&str> = manifest.attrition.iter().map(|row| row.specialty.as_str()).collect();
    for specialty in [
        "Dermatology",
        "Emergency Medicine",
        "Internal Medicine",
        "Nephrology",
        "Neurology",
        "Oncology",
        "Ophthalmology",
        "Radiology",
        "unknown",
    ] {
        assert!(named.contains(&specialty), "{specialty}");
    }
    let report = scratch.run_expecting(0, &["report", "clinmm"]).stdout;
    assert!(report.contains("attrition by specialty") && report.contains("total"), "{report}");
}

#[test]
fn workers_and_shards_do_not_change_a_byte() {
    let content = |jobs: &str, settings: &[&str]| {
        let scratch = Scratch::shipped();
        let mut arguments = vec!["build", "clinmm", "--jobs", jobs];
        arguments.extend(settings);
        scratch.run_expecting(4, &arguments);
        scratch.run_expecting(0, &["freeze", "clinmm", "--version", "1", "--allow-quarantine"]);
        scratch.read("data/release/clinmm-1/SHA256SUMS")
    };
    assert_eq!(content("1", &[]), content("2", &[]));
}

#[test]
fn changed_images_and_rows_are_found() {
    let scratch = Scratch::shipped();
    let release = frozen(&scratch, "research");
    let media: Vec<MediaRow> = rows(&release.join("media.parquet"));
    let path = media[0].path.clone().expect("an image");
    let mut bytes = std::fs::read(release.join(&path)).expect("an image");
    let middle = bytes.len() / 2;
    bytes[middle] ^= 1;
    std::fs::write(release.join(&path), &bytes).expect("written");
    std::fs::write(release.join("media/extra.png"), b"x").expect("written");
    let faults = verify(&release).expect("a release").faults;
    assert!(faults.iter().any(|fault| fault.starts_with("media.parquet: ") && fault.contains(&path)), "{faults:#?}");
    assert!(faults.iter().any(|fault| fault.starts_with("media/extra.png: ")), "{faults:#?}");
}

#[test]
fn a_series_can_be_split_and_images_dropped_one_by_one() {
    let scratch = Scratch::shipped();
    scratch.run_expecting(
        4,
        &[
            "build",
            "clinmm",
            "--to",
            "split_series",
            "--set",
            "split_series.on_series=split",
            "--set",
            "filter_media.on_low_resolution=drop_image",
            "--set",
            "filter_media.min_side=350",
        ],
    );
    let explained = scratch.json(&[
        "explain",
        "clinmm",
        &id("19"),
        "--set",
        "split_series.on_series=split",
        "--set",
        "filter_media.on_low_resolution=drop_image",
        "--set",
        "filter_media.min_side=350",
    ]);
    let steps = explained["lives"][0]["steps"].as_array().expect("steps").clone();
    let split: Vec<&Value> = steps.iter().filter(|step| step["node"] == "split_series").collect();
    assert_eq!(split.len(), 3, "{steps:#?}");
    let mut seen = BTreeSet::new();
    for step in split {
        let patient = &step["changes"]["patient"];
        for paragraph in patient["paragraphs"].as_array().expect("paragraphs") {
            assert!(seen.insert(paragraph.as_u64().expect("a number")), "a paragraph of two patients");
        }
    }
}

/// Case lic-02: nobody said what may be done with the folder.
#[test]
fn lic_02_without_a_word_for_the_folder_nothing_is_passed_on() {
    let scratch = Scratch::shipped();
    std::fs::remove_file(scratch.path("raw/pmc/source.toml")).expect("removed");
    let release = frozen(&scratch, "research");
    let media: Vec<MediaRow> = rows(&release.join("media.parquet"));
    assert!(media.iter().all(|row| row.path.is_none() && row.withheld.is_some()));
    let recipes = std::fs::read_to_string(release.join("recipes/media.jsonl")).expect("recipes");
    assert_eq!(recipes.lines().count(), media.len());
    assert!(recipes.contains("PMC99000001.1/"));
    let refused = scratch.run(&["freeze", "clinmm", "--version", "2", "--profile", "open", "--allow-quarantine"]);
    assert_eq!(refused.code, Some(5), "{refused:?}");
}

/// Real articles of PubMed Central without their images: each is accounted for.
#[test]
fn real_articles_are_accounted_for() {
    let Some(folder) = std::env::var_os("CASEMILL_JATS_SAMPLES") else {
        println!("not run: CASEMILL_JATS_SAMPLES names no folder of real articles");
        return;
    };
    let scratch = Scratch::shipped_without_raw();
    copy_dir(Path::new(&folder), &scratch.path("raw/pmc"));
    let run = scratch.run(&["build", "clinmm"]);
    assert!(matches!(run.code, Some(0 | 4)), "{run:?}");
    let n_files = walk_xml(&scratch.path("raw/pmc"));
    let report = scratch.json(&["report", "clinmm"]);
    let rows = report["attrition"].as_array().expect("a table").clone();
    let n_in: u64 = rows.iter().filter_map(|row| row["n_in"].as_u64()).sum();
    assert_eq!(n_in, n_files);
    assert!(n_files >= 40 && repository().is_dir());
}

fn walk_xml(folder: &Path) -> u64 {
    let mut n = 0;
    for entry in std::fs::read_dir(folder).expect("a folder") {
        let path = entry.expect("an entry").path();
        let name = path.to_string_lossy().to_lowercase();
        n += if path.is_dir() { walk_xml(&path) } else { u64::from(name.ends_with(".xml") || name.ends_with(".nxml")) };
    }
    n
}
