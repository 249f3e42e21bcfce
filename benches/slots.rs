//! The rule extractor: speed, and agreement with the structured encounters that AgentClinic made of MedQA questions.
//!
//! `cargo bench --bench slots -- QUESTIONS.jsonl [ENCOUNTERS.jsonl …]`: MedQA questions (`question`), and AgentClinic files. The
//! encounters are paraphrases without a source id: each is linked to the question whose words it holds most of, and compared
//! where both have a field of the same meaning.

use casemill::compare::bootstrap::Bootstrap;
use casemill::compare::{CaseKey, CaseSlots, RecordSet, Settings, compare, table};
use casemill::record::slots::Slot;
use casemill::slots::extract::{Extractor, ExtractorFiles};
use casemill::text::grounding::{SourceText, Subject};
use serde_json::Value;
use std::collections::{BTreeMap, BTreeSet};
use std::num::NonZeroU32;
use std::time::Instant;

fn main() {
    let files: Vec<String> = std::env::args().skip(1).filter(|argument| !argument.starts_with("--")).collect();
    let Some((questions, encounters)) = files.split_first() else {
        println!("slots: skipped, no file of questions given");
        return;
    };
    let stems: Vec<String> =
        lines(questions).iter().filter_map(|row| Some(row.get("question")?.as_str()?.to_owned())).collect();
    let read = |name: &str| std::fs::read_to_string(format!("pipelines/lexicon/{name}")).expect("run at the root");
    let (lexicon, terms, context, drugs) =
        (read("slots.toml"), read("terms.csv"), read("context.toml"), read("drugs.toml"));
    let extractor =
        Extractor::parse(ExtractorFiles { lexicon: &lexicon, terms: &terms, context: &context, drugs: &drugs })
            .expect("the files of the extractor");
    speed(&extractor, &stems);
    for file in encounters {
        agreement(&extractor, &stems, file);
    }
}

fn lines(file: &str) -> Vec<Value> {
    let text = std::fs::read_to_string(file).unwrap_or_else(|error| panic!("{file}: {error}"));
    text.lines().map(|line| serde_json::from_str(line).expect("JSON")).collect()
}

fn speed(extractor: &Extractor, stems: &[String]) {
    let best = (0..5).map(|_| {
        let start = Instant::now();
        let n_values: usize = stems.iter().map(|stem| extractor.extract(stem).found.len()).sum();
        (start.elapsed(), n_values)
    });
    let (time, n_values) = best.min().expect("five runs");
    let n = stems.len() as f64;
    println!("extract: {:.0} vignettes a second on one core, {n_values} values", n / time.as_secs_f64());
    let (mut n_grounded, mut time) = (0_u32, std::time::Duration::ZERO);
    for stem in stems.iter().take(300) {
        let text = SourceText::new(stem, extractor.context());
        let values: Vec<String> = extractor
            .extract(stem)
            .found
            .iter()
            .map(|found| stem.chars().skip(found.range.start).take(found.range.len()).collect())
            .collect();
        let start = Instant::now();
        for value in &values {
            std::hint::black_box(text.ground(value, Subject::Anyone, None));
            n_grounded += 1;
        }
        time += start.elapsed();
    }
    println!("ground: {:.1} µs a value, {n_grounded} values", time.as_secs_f64() * 1e6 / f64::from(n_grounded.max(1)));
}

/// The words of a text, without the commonest.
fn words(text: &str) -> BTreeSet<String> {
    text.to_lowercase()
        .split(|character: char| !character.is_alphanumeric())
        .filter(|word| word.len() > 2)
        .map(str::to_owned)
        .collect()
}

/// All text below a value, by its leaves.
fn leaves(value: &Value, found: &mut Vec<String>) {
    match value {
        Value::String(text) => found.push(text.clone()),
        Value::Array(items) => items.iter().for_each(|item| leaves(item, found)),
        Value::Object(fields) => fields.values().for_each(|field| leaves(field, found)),
        Value::Null | Value::Bool(_) | Value::Number(_) => {}
    }
}

/// Phrases that say that nothing is known.
fn is_empty(text: &str) -> bool {
    let text = text.to_lowercase();
    ["not provided", "not specified", "not mentioned", "no information", "not available", "n/a", "none provided"]
        .iter()
        .any(|phrase| text.contains(phrase))
}

fn agreement(extractor: &Extractor, stems: &[String], file: &str) {
    let mut frequency: BTreeMap<String, u32> = BTreeMap::new();
    let stem_words: Vec<BTreeSet<String>> = stems.iter().map(|stem| words(stem)).collect();
    for word in stem_words.iter().flatten() {
        *frequency.entry(word.clone()).or_default() += 1;
    }
    let weight = |word: &String| (stems.len() as f64 / f64::from(*frequency.get(word).unwrap_or(&1))).ln();
    let (mut reference, mut rules) = (RecordSet::new(file), RecordSet::new("rules"));
    let (mut n, mut n_linked) = (0, 0);
    for row in lines(file) {
        n += 1;
        let encounter = &row["OSCE_Examination"];
        let mut texts = Vec::new();
        for part in ["Patient_Actor", "Physical_Examination_Findings", "Test_Results"] {
            leaves(&encounter[part], &mut texts);
        }
        let said = words(&texts.join(" "));
        let total: f64 = said.iter().map(weight).sum();
        let best = stem_words.iter().enumerate().map(|(index, stem)| {
            let shared: f64 = said.intersection(stem).map(weight).sum();
            (shared / total, index)
        });
        let Some((share, index)) = best.max_by(|one, other| one.0.total_cmp(&other.0)) else { continue };
        let stem = &stems[index];
        let age: String = encounter["Patient_Actor"]["Demographics"]
            .as_str()
            .unwrap_or_default()
            .chars()
            .filter(char::is_ascii_digit)
            .collect();
        // Half of the weight of the words, and the age: those linked by chance share a quarter at most.
        if share < 0.4 || !stem.contains(&age) {
            continue;
        }
        n_linked += 1;
        let key = [CaseKey::new(format!("{n_linked}"))];
        let (mut theirs, mut ours) = (CaseSlots::new(), CaseSlots::new());
        let actor = &encounter["Patient_Actor"];
        let demographics = actor["Demographics"].as_str().unwrap_or_default().to_lowercase();
        let (their_age, their_sex) = demographics.split_once(' ').unwrap_or((&demographics, ""));
        let sex = |text: &str| {
            let female = ["female", "woman", "girl", "daughter", "she", "her", "lady"];
            let male = ["male", "man", "boy", "son", "he", "his", "gentleman"];
            let words: Vec<&str> = text.split(|character: char| !character.is_alphabetic()).collect();
            if words.iter().any(|word| female.contains(word)) {
                Some("female")
            } else if words.iter().any(|word| male.contains(word)) {
                Some("male")
            } else {
                None
            }
        };
        theirs.insert(Slot::PersonalAge, vec![their_age.to_owned()]);
        theirs.extend(sex(their_sex).map(|sex| (Slot::PersonalSex, vec![sex.to_owned()])));
        for (slot, fields) in [
            (Slot::SymptomName, &["Symptoms"][..]),
            (Slot::PastDiagnosis, &["Past_Medical_History"]),
            (Slot::HabitLiving, &["Social_History"]),
        ] {
            let mut values = Vec::new();
            fields.iter().for_each(|field| leaves(&actor[*field], &mut values));
            values.retain(|value| !value.trim().is_empty() && !is_empty(value));
            if !values.is_empty() {
                theirs.insert(slot, values);
            }
        }
        let mut findings = Vec::new();
        leaves(&encounter["Physical_Examination_Findings"], &mut findings);
        leaves(&encounter["Test_Results"], &mut findings);
        findings.retain(|value| !is_empty(value));
        theirs.insert(Slot::MedicalExamination, findings);
        for found in extractor.extract(stem).found {
            let value: String = stem.chars().skip(found.range.start).take(found.range.len()).collect();
            let slot = match found.slot {
                Slot::HabitTobacco | Slot::HabitWine | Slot::HabitDrug | Slot::CoitusHistory | Slot::HabitLiving => {
                    Slot::HabitLiving
                }
                Slot::PastMedication | Slot::TraumaSurgery | Slot::PastDiagnosis => Slot::PastDiagnosis,
                Slot::SymptomName | Slot::MedicalExamination | Slot::PersonalAge => found.slot,
                Slot::PersonalSex => {
                    ours.extend(sex(&value.to_lowercase()).map(|sex| (Slot::PersonalSex, vec![sex.to_owned()])));
                    continue;
                }
                _ => continue,
            };
            ours.entry(slot).or_default().push(value);
        }
        reference.insert(&key, theirs).expect("a new case");
        rules.insert(&key, ours).expect("a new case");
    }
    println!("{file}: {n_linked} of {n} encounters linked to a question");
    let settings =
        Settings { bootstrap: Bootstrap { n_resamples: NonZeroU32::new(500).expect("above 0"), seed: 0 }, n_worst: 0 };
    match compare(&reference, &[rules], &[], settings) {
        Ok(comparison) => println!("{}", table::text(&comparison)),
        Err(error) => println!("{file}: {error}"),
    }
}
