//! The vignette rules against real questions labelled by reading.
//!
//! `vignette_labels.jsonl` names each question by the SHA-256 of its text as the source has it. The rules were
//! adjusted on the part "tuning" and frozen before "held_out" was read. The questions are not part of the
//! repository: without them the measurement is skipped.

use std::collections::{BTreeMap, HashMap};
use std::path::{Path, PathBuf};

use casemill::stage::vignette_rules::{DropReason, Judgement, VignetteRules};
use serde::Deserialize;
use sha2::{Digest, Sha256};

use crate::support::repository;

/// Folder of the real samples, if it is not `../shared/samples`.
const SAMPLES: &str = "CASEMILL_SAMPLES";

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct Label {
    source: String,
    sha256: String,
    label: String,
    /// Why it is to be dropped.
    reason: Option<String>,
    /// A careful reader could keep what is to be dropped, or drop what is to be kept.
    doubtful: bool,
    part: String,
}

struct Question {
    stem: String,
    answer: String,
    options: Vec<String>,
}

/// Labelled against judged, over the questions of one part and source.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
struct Counts {
    kept_rightly: usize,
    kept_wrongly: usize,
    dropped_wrongly: usize,
    dropped_rightly: usize,
    /// Dropped rightly and for the labelled reason.
    same_reason: usize,
}

/// What the rules reached when they were frozen: part, source, and the counts.
const MEASURED: [(&str, &str, Counts); 4] = [
    ("tuning", "medqa", counts(12, 1, 0, 57, 55)),
    ("tuning", "medmcqa", counts(8, 0, 1, 61, 56)),
    ("held_out", "medqa", counts(2, 0, 0, 28, 20)),
    ("held_out", "medmcqa", counts(3, 0, 0, 27, 21)),
];

const fn counts(
    kept_rightly: usize,
    kept_wrongly: usize,
    dropped_wrongly: usize,
    dropped_rightly: usize,
    same_reason: usize,
) -> Counts {
    Counts { kept_rightly, kept_wrongly, dropped_wrongly, dropped_rightly, same_reason }
}

impl Counts {
    fn precision(self) -> (usize, usize) {
        (self.kept_rightly, self.kept_rightly + self.kept_wrongly)
    }

    fn recall(self) -> (usize, usize) {
        (self.kept_rightly, self.kept_rightly + self.dropped_wrongly)
    }

    fn reason_agreement(self) -> (usize, usize) {
        (self.same_reason, self.dropped_rightly)
    }

    fn add(&mut self, labelled: Option<&str>, judged: Option<&str>) {
        match (labelled, judged) {
            (None, None) => self.kept_rightly += 1,
            (Some(_), None) => self.kept_wrongly += 1,
            (None, Some(_)) => self.dropped_wrongly += 1,
            (Some(labelled), Some(judged)) => {
                self.dropped_rightly += 1;
                self.same_reason += usize::from(labelled == judged);
            }
        }
    }
}

fn labels() -> Vec<Label> {
    include_str!("vignette_labels.jsonl")
        .lines()
        .map(|line| serde_json::from_str(line).unwrap_or_else(|error| panic!("{error}: {line}")))
        .collect()
}

fn sha256(text: &str) -> String {
    Sha256::digest(text.as_bytes()).iter().map(|byte| format!("{byte:02x}")).collect()
}

/// The files with the questions, or why there are none.
fn sample_files() -> Result<[(&'static str, PathBuf); 2], String> {
    let folder = std::env::var_os(SAMPLES).map_or_else(|| repository().join("../shared/samples"), PathBuf::from);
    let files = [("medqa", folder.join("medqa/us_5options_test.jsonl")), ("medmcqa", folder.join("medmcqa/dev.json"))];
    match files.iter().find(|(_, file)| !file.is_file()) {
        Some((_, missing)) => Err(format!("there is no {}; {SAMPLES} names the folder", missing.display())),
        None => Ok(files),
    }
}

/// The questions of a JSON Lines file, by the hash of their text.
fn questions(source: &str, file: &Path) -> HashMap<String, Question> {
    let text = std::fs::read_to_string(file).unwrap_or_else(|error| panic!("{}: {error}", file.display()));
    text.lines()
        .map(|line| {
            let record: serde_json::Value = serde_json::from_str(line).expect("one JSON object a line");
            let field = |value: &serde_json::Value| value.as_str().unwrap_or_default().to_owned();
            let stem = field(&record["question"]);
            let (answer, options) = match source {
                "medqa" => {
                    let options = record["options"].as_object().expect("options");
                    (field(&record["answer"]), options.values().map(field).collect())
                }
                _ => {
                    let options: Vec<String> =
                        ["opa", "opb", "opc", "opd"].iter().map(|name| field(&record[name])).collect();
                    let key = record["cop"].as_u64().and_then(|key| usize::try_from(key).ok()).expect("a key");
                    (options[key - 1].clone(), options)
                }
            };
            (sha256(&stem), Question { stem, answer, options })
        })
        .collect()
}

#[test]
fn labels_are_well_formed() {
    let labels = labels();
    let mut sizes: BTreeMap<(&str, &str), usize> = BTreeMap::new();
    for label in &labels {
        *sizes.entry((&label.part, &label.source)).or_default() += 1;
        assert!(label.sha256.len() == 64 && label.sha256.bytes().all(|byte| byte.is_ascii_hexdigit()));
        match (label.label.as_str(), &label.reason) {
            ("keep", None) => {}
            ("drop", Some(reason)) => {
                assert!(DropReason::ALL.iter().any(|known| known.as_str() == reason), "{reason}");
            }
            other => panic!("{other:?} is no label with its reason"),
        }
    }
    let expect = [
        (("held_out", "medmcqa"), 30),
        (("held_out", "medqa"), 30),
        (("tuning", "medmcqa"), 70),
        (("tuning", "medqa"), 70),
    ];
    assert_eq!(sizes, BTreeMap::from(expect));
    let hashes: std::collections::BTreeSet<&str> = labels.iter().map(|label| label.sha256.as_str()).collect();
    assert_eq!(hashes.len(), labels.len());
}

#[test]
fn the_rules_judge_as_the_labels_say() {
    let files = match sample_files() {
        Ok(files) => files,
        Err(reason) => {
            println!("skipped: {reason}");
            return;
        }
    };
    let questions: BTreeMap<&str, HashMap<String, Question>> =
        files.iter().map(|(source, file)| (*source, questions(source, file))).collect();
    let rules = std::fs::read_to_string(repository().join("pipelines/rules/vignette.toml")).expect("the rules");
    let rules = VignetteRules::parse(&rules).unwrap_or_else(|error| panic!("{error}"));

    let mut found: BTreeMap<(String, String), (Counts, Counts)> = BTreeMap::new();
    let mut confusion: BTreeMap<(String, String), usize> = BTreeMap::new();
    for label in labels() {
        let question = questions[label.source.as_str()]
            .get(&label.sha256)
            .unwrap_or_else(|| panic!("no question of {} has the hash {}", label.source, label.sha256));
        let options: Vec<&str> = question.options.iter().map(String::as_str).collect();
        let judged = match rules.judge(&question.stem, &question.answer, &options) {
            Judgement::Keep { .. } => None,
            Judgement::Drop { reason, .. } => Some(reason.as_str()),
        };
        let labelled = label.reason.as_deref();
        let (all, without_doubt) = found.entry((label.part, label.source)).or_default();
        all.add(labelled, judged);
        if !label.doubtful {
            without_doubt.add(labelled, judged);
        }
        let name = |reason: Option<&str>| reason.unwrap_or("keep").to_owned();
        *confusion.entry((name(labelled), name(judged))).or_default() += 1;
    }

    println!("labelled            judged              questions");
    for ((labelled, judged), questions) in &confusion {
        println!("{labelled:<19} {judged:<19} {questions:>9}");
    }
    for ((part, source), (all, without_doubt)) in &found {
        for (name, counts) in [("all", all), ("without the doubtful", without_doubt)] {
            let [precision, recall, agreement] =
                [counts.precision(), counts.recall(), counts.reason_agreement()].map(|(n, of)| format!("{n}/{of}"));
            println!("{part} {source}, {name}: precision {precision}, recall {recall}, same reason {agreement}");
        }
    }
    for (part, source, measured) in MEASURED {
        let (now, _) = found[&(part.to_owned(), source.to_owned())];
        for (name, rate) in [
            ("precision", Counts::precision as fn(Counts) -> (usize, usize)),
            ("recall", Counts::recall),
            ("reason agreement", Counts::reason_agreement),
        ] {
            let ((n, of), (n_measured, of_measured)) = (rate(now), rate(measured));
            assert!(n * of_measured >= n_measured * of, "{part} {source}: {name} fell to {n}/{of}");
        }
    }
}
