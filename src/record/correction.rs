//! Records as people corrected them; a resource of the pipeline (MedRoundsQA, 3.1 and appendix G).

use super::slots::{Slot, SlotValue};
use super::{Hash, RecordId, Row};
use crate::agreement::{Confusion, Weights};
use crate::text::normalize::for_matching;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use std::collections::{BTreeMap, BTreeSet};

/// One line of a file of corrections: the whole record as one annotator left it. Every imported line is kept; an annotator's
/// later one counts.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct CorrectedRecord {
    pub record_id: RecordId,
    /// A name or a code; it is in no release.
    pub annotator: String,
    /// Hash of the record that the annotator was shown: see [`base_hash`].
    pub base_sha256: Hash,
    /// Every value of the record, in the order of slots.
    pub values: Vec<CorrectedValue>,
    /// The annotator is not sure about the case; a person should look at it again.
    pub unsure: bool,
    pub comment: Option<String>,
}

/// A phrase of a corrected record.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize, JsonSchema)]
pub struct CorrectedValue {
    pub slot: Slot,
    pub value: String,
}

impl Row for CorrectedRecord {
    const NAME: &'static str = "corrected_record";
    const TITLE: &'static str = "A clinical record as one annotator corrected it.";
}

impl CorrectedValue {
    /// By what two values are the same: the slot, and the value in the form for matching.
    pub fn form(&self) -> (Slot, String) {
        (self.slot, for_matching(&self.value))
    }
}

/// The values of a record without places and verdicts, in its order.
pub fn plain_values(values: &[SlotValue]) -> Vec<CorrectedValue> {
    values.iter().map(|value| CorrectedValue { slot: value.slot, value: value.value.clone() }).collect()
}

/// Whether two records have the same values, letter for letter and equally often, in any order.
pub fn same_values(one: &[CorrectedValue], other: &[CorrectedValue]) -> bool {
    let sorted = |values: &[CorrectedValue]| {
        let mut sorted = values.to_vec();
        sorted.sort_unstable();
        sorted
    };
    sorted(one) == sorted(other)
}

/// Identifies a record that an annotator is shown: SHA-256 of the canonical JSON of its stem and its (slot, value) pairs,
/// sorted. White space counts as one blank, since programs that people edit tables with change it.
///
/// # Errors
/// None that this input can cause: those of writing JSON.
pub fn base_hash(stem: &str, values: &[CorrectedValue]) -> anyhow::Result<Hash> {
    let mut pairs: Vec<(&str, String)> =
        values.iter().map(|value| (value.slot.as_str(), in_one_line(&value.value))).collect();
    pairs.sort_unstable();
    Hash::of_json(&(in_one_line(stem), pairs))
}

/// The text with every run of white space as one blank.
pub fn in_one_line(text: &str) -> String {
    text.split_whitespace().collect::<Vec<_>>().join(" ")
}

/// Reads a file of corrections (JSON Lines).
///
/// # Errors
/// The line that is not a corrected record.
pub fn parse_corrections(text: &str) -> Result<Vec<CorrectedRecord>, String> {
    let lines = (1..).zip(text.lines()).filter(|(_, line)| !line.trim().is_empty());
    lines.map(|(number, line)| serde_json::from_str(line).map_err(|error| format!("line {number}: {error}"))).collect()
}

/// What counts: record → the last line of each annotator, in the order of these lines.
pub type Corrections = BTreeMap<RecordId, Vec<CorrectedRecord>>;

/// The lines of a file that count.
pub fn effective(lines: impl IntoIterator<Item = CorrectedRecord>) -> Corrections {
    let mut corrections = Corrections::new();
    for line in lines {
        let of_record = corrections.entry(line.record_id.clone()).or_default();
        of_record.retain(|earlier| earlier.annotator != line.annotator);
        of_record.push(line);
    }
    corrections
}

/// How often each value is in a record.
pub type Tally = BTreeMap<(Slot, String), usize>;

/// Counts values by [`CorrectedValue::form`].
pub fn tally(values: &[CorrectedValue]) -> Tally {
    let mut tally = Tally::new();
    for value in values {
        *tally.entry(value.form()).or_default() += 1;
    }
    tally
}

/// How often one record has values of another: Σ of the lesser count.
pub fn n_common(one: &Tally, other: &Tally) -> usize {
    one.iter().map(|(form, n)| *n.min(other.get(form).unwrap_or(&0))).sum()
}

/// How far two annotators agree on the records that both corrected. Values are compared by [`CorrectedValue::form`].
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct RecordAgreement {
    pub annotators: (String, String),
    /// Records of both.
    pub n_both: u64,
    /// Records in which both have the same values.
    pub n_equal: u64,
    /// `n_equal / n_both`
    pub equal_share: Option<f64>,
    /// `2 · common / (values of the first + values of the second)` over all records of both; null if neither has any.
    pub f1: Option<f64>,
    /// Cohen's kappa of filled and empty, the mean over the slots where it is defined; null if there is none.
    pub kappa: Option<f64>,
    /// Slots with a kappa.
    pub n_slots: u64,
}

/// Agreement of every pair of annotators with a record in common, by name.
pub fn agreement(corrections: &Corrections) -> Vec<RecordAgreement> {
    let annotators: BTreeSet<&str> =
        corrections.values().flatten().map(|correction| correction.annotator.as_str()).collect();
    let mut pairs = Vec::new();
    for one in &annotators {
        for other in annotators.iter().filter(|other| *other > one) {
            let of = |list: &[CorrectedRecord], annotator: &str| {
                let found = list.iter().find(|correction| correction.annotator == annotator);
                found.map(|correction| tally(&correction.values))
            };
            let both: Vec<(Tally, Tally)> =
                corrections.values().filter_map(|list| Some((of(list, one)?, of(list, other)?))).collect();
            if !both.is_empty() {
                pairs.push(pair_agreement(one, other, &both));
            }
        }
    }
    pairs
}

fn pair_agreement(one: &str, other: &str, both: &[(Tally, Tally)]) -> RecordAgreement {
    let n_both = both.len() as u64;
    let n_equal = both.iter().filter(|(first, second)| first == second).count() as u64;
    let n_common: usize = both.iter().map(|(first, second)| n_common(first, second)).sum();
    let n_values: usize = both.iter().map(|(first, second)| first.values().chain(second.values()).sum::<usize>()).sum();
    let is_filled = |tally: &Tally, slot: Slot| tally.keys().any(|(of, _)| *of == slot);
    let kappas: Vec<f64> = Slot::ALL
        .into_iter()
        .filter_map(|slot| {
            let pairs = both.iter().map(|(first, second)| (is_filled(first, slot), is_filled(second, slot)));
            Confusion::of(&[false, true], pairs).kappa(Weights::None)
        })
        .collect();
    let share = |part: f64, whole: f64| (whole > 0.0).then(|| part / whole);
    RecordAgreement {
        annotators: (one.to_owned(), other.to_owned()),
        n_both,
        n_equal,
        equal_share: share(n_equal as f64, n_both as f64),
        f1: share(2.0 * n_common as f64, n_values as f64),
        kappa: share(kappas.iter().sum(), kappas.len() as f64),
        n_slots: kappas.len() as u64,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn values(list: &[(Slot, &str)]) -> Vec<CorrectedValue> {
        list.iter().map(|(slot, value)| CorrectedValue { slot: *slot, value: (*value).to_owned() }).collect()
    }

    fn line(id: &str, annotator: &str, list: &[(Slot, &str)]) -> CorrectedRecord {
        CorrectedRecord {
            record_id: RecordId::native("s", id),
            annotator: annotator.to_owned(),
            base_sha256: Hash::of(b""),
            values: values(list),
            unsure: false,
            comment: None,
        }
    }

    #[test]
    fn an_annotators_later_line_counts_and_comes_last() {
        let lines = [
            line("1", "b", &[(Slot::SymptomName, "fever")]),
            line("1", "a", &[]),
            line("1", "b", &[(Slot::SymptomName, "rash")]),
        ];
        let text: String = lines.iter().map(|line| serde_json::to_string(line).unwrap() + "\n\n").collect();
        let found = effective(parse_corrections(&text).unwrap());
        assert_eq!(found[&RecordId::native("s", "1")], [lines[1].clone(), lines[2].clone()]);
        assert!(parse_corrections(&format!("{text}{{}}")).unwrap_err().starts_with("line 7: "));
    }

    #[test]
    fn the_base_is_the_stem_and_the_values_whatever_their_order_and_white_space() {
        let base = |stem: &str, list: &[(Slot, &str)]| base_hash(stem, &values(list)).unwrap();
        let known = base("A man.\nFever", &[(Slot::SymptomName, "fever  now"), (Slot::PersonalSex, "man")]);
        assert_eq!(known, base("A man. Fever", &[(Slot::PersonalSex, "man"), (Slot::SymptomName, "fever now")]));
        assert_ne!(known, base("A man. Fever.", &[(Slot::PersonalSex, "man"), (Slot::SymptomName, "fever now")]));
        assert_ne!(known, base("A man. Fever", &[(Slot::PersonalSex, "man"), (Slot::SymptomTime, "fever now")]));
    }

    /// Two records of both. Values: 3 and 2 with 2 in common, 2 and 2 with 2 in common: F1 = 2 · 4 / 9. Symptom-Name is filled
    /// by both in both records, so its kappa is undefined; Personal-Sex by a in one and by b in none: p_o = p_e = 1/2, kappa 0;
    /// Personal-Age by both in the second record alone: kappa 1.
    #[test]
    fn agreement_is_over_the_records_of_both() {
        use Slot::{PersonalAge, PersonalSex, SymptomName};
        let found = agreement(&effective([
            line("1", "a", &[(SymptomName, "Fever"), (SymptomName, "rash"), (PersonalSex, "man")]),
            line("1", "b", &[(SymptomName, "rash"), (SymptomName, "fever")]),
            line("2", "a", &[(SymptomName, "pain"), (PersonalAge, "40")]),
            line("2", "b", &[(SymptomName, "pain"), (PersonalAge, "40")]),
            line("3", "a", &[(SymptomName, "gout")]),
            line("4", "c", &[]),
        ]));
        let [pair] = found.as_slice() else { panic!("{found:?}") };
        assert_eq!(pair.annotators, ("a".to_owned(), "b".to_owned()));
        assert_eq!((pair.n_both, pair.n_equal, pair.equal_share), (2, 1, Some(0.5)));
        assert_eq!(pair.f1, Some(8.0 / 9.0));
        assert_eq!((pair.kappa, pair.n_slots), (Some(0.5), 2));
    }
}
