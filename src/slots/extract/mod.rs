//! Copies the facts of a case vignette into record slots by rules.
//!
//! The rules hold grammar only; the clinical words come from a lexicon file (`pipelines/lexicon/slots.toml`).
//! Nothing is rewritten or inferred: every fact is a byte range of the text. What the text does not say, or says
//! in two ways, is left out.

mod complaints;
mod findings;
mod fold;
mod lexicon;
mod patient;

use crate::record::slots::Slot;
use crate::text::sentences::{sentences, split_lead_in};
use fold::Folded;
pub use lexicon::{LexiconError, SlotLexicon};
use std::ops::Range;

/// One copied phrase: a byte range into the text given, on character boundaries, trimmed of white space, never
/// empty and never the whole text.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Found {
    pub slot: Slot,
    pub range: Range<usize>,
}

/// Copies the facts of `stem` into slots: by slot, in text order within a slot.
///
/// The question a stem ends in is never read. The age and the sex are those of the patient, who is the first person
/// introduced, or the person whom that one brings. Ranges are byte offsets into `stem`. Takes time linear in the
/// length of `stem`.
pub fn extract(lexicon: &SlotLexicon, stem: &str) -> Vec<Found> {
    let folded = Folded::new(stem);
    let vignette = folded.fold_range(&split_lead_in(stem).vignette);
    let parts: Vec<Range<usize>> = sentences(stem)
        .iter()
        .map(|range| folded.fold_range(range))
        .map(|range| range.start.max(vignette.start)..range.end.min(vignette.end))
        .filter(|range| range.start < range.end)
        .collect();
    let case = Case { lexicon, text: &folded.text, sentences: &parts, vignette };
    let mut facts = Vec::new();
    let patient = case.patient();
    if let Some(patient) = &patient {
        facts.extend(case.age(patient).map(|range| (Slot::PersonalAge, range)));
        facts.extend(case.sex(patient).map(|range| (Slot::PersonalSex, range)));
    }
    // Without a patient, numbers and tests are those of a study or of a textbook.
    let is_finding = if patient.is_some() { case.findings() } else { Vec::new() };
    case.complaints(patient.as_ref(), &is_finding, &mut facts);
    for (range, finding) in parts.iter().zip(&is_finding) {
        if *finding {
            facts.push((Slot::MedicalExamination, range.clone()));
        }
    }
    let whole = stem.trim().len();
    let mut found: Vec<Found> = facts
        .into_iter()
        .filter_map(|(slot, range)| {
            let range = trimmed(stem, folded.original_range(&range))?;
            (range.len() < whole).then_some(Found { slot, range })
        })
        .collect();
    found.sort_by_key(|one| (one.slot, one.range.start, one.range.end));
    found.dedup();
    found
}

fn trimmed(text: &str, range: Range<usize>) -> Option<Range<usize>> {
    let part = text.get(range.clone())?;
    let start = range.start + part.len() - part.trim_start().len();
    let length = part.trim().len();
    (length > 0).then_some(start..start + length)
}

/// Characters looked at before a match to judge it.
const BEFORE: usize = 120;

/// A folded case with its sentences.
struct Case<'a> {
    lexicon: &'a SlotLexicon,
    text: &'a str,
    sentences: &'a [Range<usize>],
    vignette: Range<usize>,
}
impl Case<'_> {
    fn slice(&self, range: Range<usize>) -> &str {
        self.text.get(range).unwrap_or_default()
    }

    /// At most [`BEFORE`] characters before `at` in its sentence.
    fn before(&self, sentence: &Range<usize>, at: usize) -> &str {
        self.slice(at.saturating_sub(BEFORE).max(sentence.start)..at)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use fold::fold;

    const LEXICON: &str = include_str!("../../../pipelines/lexicon/slots.toml");

    fn lexicon() -> SlotLexicon {
        SlotLexicon::parse(LEXICON).unwrap()
    }

    /// The phrases of one slot.
    fn phrases<'a>(found: &[Found], stem: &'a str, slot: Slot) -> Vec<&'a str> {
        found.iter().filter(|one| one.slot == slot).map(|one| &stem[one.range.clone()]).collect()
    }

    fn check(cases: &[(&str, &[&str])], slot: Slot) {
        let lexicon = lexicon();
        for (stem, expected) in cases {
            let found = extract(&lexicon, stem);
            assert_eq!(phrases(&found, stem, slot), *expected, "{} of {stem:?}", slot.as_str());
        }
    }

    #[test]
    fn age_of_the_patient() {
        check(
            &[
                ("A 31-year-old baker has hiccups. What is next?", &["31-year-old"]),
                ("A 5 month old boy has a rash. What is next?", &["5 month old"]),
                ("A two-week-old girl does not feed. What is next?", &["two-week-old"]),
                ("A 2-day-old boy cries. What is next?", &["2-day-old"]),
                ("A 2 1/2-year-old girl limps. What is next?", &["2 1/2-year-old"]),
                ("A 40-to-50-year-old man is found in a park. What is next?", &["40-to-50-year-old"]),
                ("A woman in her 50s comes with a cough. What is next?", &["in her 50s"]),
                ("A homeless man in his mid-60s has a cough. What is next?", &["in his mid-60s"]),
                ("A man, aged 47 years, has a cough. What is next?", &["aged 47 years"]),
                ("An elderly woman fell at home. What is next?", &["elderly"]),
                ("A 52-year-woman has a cough. What is next?", &["52-year"]),
                ("A boy on day of life 3 has jaundice. What is next?", &["day of life 3"]),
                ("A woman complains of a cough. She is 38 years old. What is next?", &["38 years old"]),
                // Newborns, whose mothers have an age.
                ("A 3.1 kg (6.8 lb) newborn is blue. What is next?", &["newborn"]),
                ("A male newborn is delivered to a 25-year-old woman. What is next?", &["newborn"]),
                ("A newborn girl was born at term to a healthy 33-year-old woman. What is next?", &["newborn"]),
                ("A newborn screening test is positive in a male neonate. What is next?", &["neonate"]),
                // Two persons.
                ("A 4-year-old boy is brought by his 29-year-old mother. What is next?", &["4-year-old"]),
                ("A boy is brought by his 29-year-old mother. What is next?", &[]),
                ("A mother brings her 7-year-old daughter to the clinic. What is next?", &["7-year-old"]),
                ("A 30-year-old woman brings her 2-year-old son in. What is next?", &["2-year-old"]),
                ("The parents of a 9-year-old boy ask for advice. What is next?", &["9-year-old"]),
                ("A girl has asthma. Her 8-year-old brother is well. What is next?", &[]),
                // No age of a patient.
                ("A boy has had asthma since he was 3 years old. What is next?", &[]),
                ("A study followed patients 20 to 65 years of age. What is next?", &[]),
                ("A 20-year-old man has a cough. This 30-year-old man also has a rash. What is next?", &[]),
            ],
            Slot::PersonalAge,
        );
    }

    #[test]
    fn sex_of_the_patient() {
        check(
            &[
                ("A 31-year-old retired right-handed man has hiccups. What is next?", &["man"]),
                ("A 31-year-old, previously healthy, African American lady coughs. What is next?", &["lady"]),
                ("A 24-year-old, gravida 2, para 1, woman has cramps. What is next?", &["woman"]),
                ("A 24-year-old gravida 2 at 30 weeks has cramps. What is next?", &[]),
                ("A 6-week-old male infant vomits. What is next?", &["male"]),
                ("A mother brings her 7-year-old daughter to the clinic. What is next?", &["daughter"]),
                ("A 4-year-old boy is brought by his 29-year-old mother. What is next?", &["boy"]),
                // By a pronoun, if no noun says it.
                ("A 31-year-old baker has a cough. She feels weak. What is next?", &["She"]),
                ("A 6-week-old infant is brought by his mother. She saw a rash. What is next?", &["his"]),
                ("A 6-week-old infant is brought by the mother. She saw a rash. What is next?", &[]),
                ("A 31-year-old baker has a cough. The man feels weak. What is next?", &["man"]),
                ("A 31-year-old baker has a cough. The pharmacologist says he needs a drug. What is next?", &[]),
                // Nobody, and contradictions.
                ("A 31-year-old baker has a cough. What is next?", &[]),
                ("A 31-year-old baker has a cough. He smokes. Her lungs are clear. What is next?", &[]),
                ("A 31-year-old man has a cough. She smokes. What is next?", &[]),
                ("A 31-year-old man has a cough. The woman smokes. What is next?", &[]),
                ("A 6-week-old infant is brought by his mother. Her daughter has a rash. What is next?", &[]),
                ("A drug was tested on a male mouse. What is next?", &[]),
                ("Researchers gave a drug to 40 women. What is next?", &[]),
            ],
            Slot::PersonalSex,
        );
    }

    #[test]
    fn complaints() {
        check(
            &[
                (
                    "A 31-year-old man comes to the doctor because of a 4-day history of a wet cough. Why?",
                    &["wet cough"],
                ),
                (
                    "A 31-year-old man presents with hiccups and a sore tongue for 2 weeks. Why?",
                    &["hiccups and a sore tongue"],
                ),
                (
                    "A 31-year-old man complains of a dull ache in his hip that began at night. Why?",
                    &["dull ache in his hip"],
                ),
                (
                    "A girl is taken to a clinic by her father for a rash, fever, and chills. Why?",
                    &["rash, fever, and chills"],
                ),
                (
                    "A man comes in because of a 6-month history of thirst and a 1-month history of leg cramps. Why?",
                    &["thirst", "leg cramps"],
                ),
                ("A woman comes to the clinic after 3 days of loose stools. Why?", &["loose stools"]),
                ("A woman comes to the clinic with a limp 2 weeks after a fall. Why?", &["limp"]),
                ("A woman presents with leg cramps every 5 minutes. Why?", &["leg cramps every 5 minutes"]),
                ("A woman comes to the clinic because she is unable to whistle. Why?", &["unable to whistle"]),
                (
                    "A boy comes to the clinic with his aunt. He reports itching of both feet. Why?",
                    &["itching of both feet"],
                ),
                ("Two days after surgery, a 60-year-old man has chills. Why?", &["chills"]),
                ("A man comes in for a yearly check-up and has no complaints. Why?", &[]),
                ("A man comes with his wife. Why?", &[]),
                ("A 31-year-old man with gout comes to the clinic for a follow-up visit. Why?", &[]),
                ("A study measured patients who complained of cough. Why?", &[]),
                ("What is the cause in a 31-year-old man who complains of cough?", &[]),
            ],
            Slot::SymptomName,
        );
        check(
            &[
                ("A man comes to the doctor because of a 4-day history of a wet cough. Why?", &["4-day history"]),
                ("A man presents with hiccups for the past 3 weeks. Why?", &["for the past 3 weeks"]),
                ("A man presents with a lump that appeared 2 days ago. Why?", &["2 days ago"]),
                ("A man presents with 2 hours of hiccups. Why?", &["2 hours"]),
                ("A man presents with hiccups. His symptoms began yesterday. Why?", &["yesterday"]),
                ("A man presents with hiccups for weeks. Why?", &["for weeks"]),
                ("A man presents with hiccups during the day. Why?", &[]),
                ("A man presents with hiccups. He has smoked for 30 years. Why?", &[]),
            ],
            Slot::SymptomTime,
        );
    }

    #[test]
    fn examination_and_tests() {
        let table = "Laboratory studies show:\nHemoglobin 9.1 g/dL\nSerum\nNa+ 131 mEq/L\nGlucose 80 mg/dL";
        check(
            &[
                (
                    "A man has a cough. His father had gout. On examination, he is pale. There is a scar. He smokes. Why?",
                    &["On examination, he is pale.", "There is a scar."],
                ),
                ("A man has a cough. His pulse is 90/min. Why?", &["His pulse is 90/min."]),
                ("A man has a cough. He has high blood pressure. Why?", &[]),
                ("A man has a cough. An MRI of the knee shows a tear. Why?", &["An MRI of the knee shows a tear."]),
                ("A man has a cough. A CT scan is ordered. Why?", &[]),
                ("A man has a cough. His medical history is notable for an abnormal ECG. Why?", &[]),
                (&format!("A man has a cough.\n{table}\nWhich is the cause?"), &[table]),
                ("A reagent was tested. Hemoglobin was 9.1 g/dL in the sample. Why?", &[]),
                ("Examination of a man shows a rash.", &[]),
            ],
            Slot::MedicalExamination,
        );
    }

    #[test]
    fn ranges_are_those_of_the_original_text() {
        let cases = [
            "“Grüße” — naïve café: a 44-year-old man presents with “stabbing” pain for 2 days. Why?",
            "А 44-уеаr-old mаn рrеѕеntѕ wіth раіn for 2 dауѕ. Why?",
            "🩺\u{A0}A 44‑year‑old man presents with pain for 2 days. His temperature is 38 °C. Why?",
        ];
        let lexicon = lexicon();
        for stem in cases {
            let found = extract(&lexicon, stem);
            let folded = |slot| -> Vec<String> {
                phrases(&found, stem, slot).iter().map(|phrase| phrase.chars().map(fold).collect()).collect()
            };
            assert_eq!(folded(Slot::PersonalAge), ["44-year-old"], "{stem}");
            assert_eq!(folded(Slot::PersonalSex), ["man"], "{stem}");
            assert!(folded(Slot::SymptomName)[0].ends_with("pain"), "{stem}");
            assert_eq!(folded(Slot::SymptomTime), ["for 2 days"], "{stem}");
        }
    }

    #[test]
    fn odd_texts() {
        let lexicon = lexicon();
        for stem in
            ["", " ", "?", "A", "é", "\n\n", "67-year-old", "A 67-year-old man", "Why?", "pulse 80/min.", "man. "]
        {
            for one in extract(&lexicon, stem) {
                let phrase = &stem[one.range.clone()];
                assert!(!phrase.is_empty() && phrase.trim() == phrase && phrase != stem.trim(), "{stem:?}: {phrase:?}");
            }
        }
    }

    #[test]
    fn long_texts_take_linear_time() {
        let lexicon = lexicon();
        let units = [
            "a",
            "1 ",
            "\n",
            "a 45-year-old man presents with fever for 2 days and ",
            "A man presents with pain. ",
            "His pulse is 80/min. ",
            "hemoglobin 9 g/dl\n",
            "е 2-",
            "she said he ",
        ];
        for unit in units {
            let body: String = unit.chars().cycle().take(100_000).collect();
            let stem = format!("{body}. A 20-year-old baker coughs. What is next?");
            let started = std::time::Instant::now();
            extract(&lexicon, &stem);
            // Quadratic time would be minutes.
            assert!(started.elapsed().as_secs() < 20, "{unit:?}: {:?}", started.elapsed());
        }
    }

    #[test]
    fn faults_of_a_lexicon_name_the_key() {
        let cases = [
            (LEXICON.replacen("version = 1", "version = 2", 1), "version"),
            (LEXICON.replacen("version = 1", "version = 1\nextra = 3", 1), "extra"),
            (LEXICON.replacen("[time]", "[time]\nclocks = [\"noon\"]", 1), "clocks"),
            (LEXICON.replacen("bring_verbs =", "carry_verbs =", 1), "carry_verbs"),
            (LEXICON.replacen("adjectives = [\"male\", \"female\"]", "adjectives = []", 1), "sex.adjectives"),
            (LEXICON.replacen("adjectives = [\"male\", \"female\"]", "adjectives = [\"Male\"]", 1), "sex.adjectives"),
            (LEXICON.replacen("adjectives = [\"male\", \"female\"]", "adjectives = [\" \"]", 1), "sex.adjectives"),
            (LEXICON.replacen("adjectives = [\"male\", \"female\"]", "adjectives = [\"a\", \"a\"]", 1), "twice"),
            (LEXICON.replacen("adjectives = [\"male\", \"female\"]", "adjectives = 7", 1), "adjectives"),
            ("not toml".to_owned(), "toml"),
        ];
        for (text, key) in cases {
            assert_ne!(text, LEXICON);
            let message = SlotLexicon::parse(&text).err().map(|error| error.to_string()).unwrap_or_default();
            assert!(message.contains(key), "{key}: {message}");
        }
    }
}
