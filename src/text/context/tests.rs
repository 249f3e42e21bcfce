//! Tests of the module.

use proptest::prelude::*;

use super::*;
use crate::text::sentences::sentences;

const CUES: &str = include_str!("../../../pipelines/lexicon/context.toml");

fn rules() -> ContextRules {
    ContextRules::parse(CUES).unwrap()
}

const PLAIN: Modifiers =
    Modifiers { negated: false, uncertain: false, historical: false, experiencer: Experiencer::Patient };

/// The words of `text` that have a modifier, joined; cues have none.
fn words_with(text: &str, holds: fn(Modifiers) -> bool) -> String {
    let folded = text.to_lowercase();
    let scopes = rules().scopes(&folded, &sentences(text));
    let held = scopes.words.iter().filter(|word| !word.in_cue && holds(scopes.at(&(word.start..word.end))));
    held.map(|word| &folded[word.start..word.end]).collect::<Vec<_>>().join(" ")
}

fn check(cases: &[(&str, &str)], holds: fn(Modifiers) -> bool) {
    let wrong: Vec<_> = cases
        .iter()
        .map(|(text, expected)| (text, words_with(text, holds), *expected))
        .filter(|(_, found, expected)| found != expected)
        .collect();
    assert!(wrong.is_empty(), "(text, found, expected): {wrong:#?}");
}

#[test]
fn negation() {
    check(
        &[
            ("He has had no fever, chills, or night sweats.", "fever chills or night sweats"),
            ("She denies chest pain but reports cough.", "chest pain"),
            ("He walks without pain.", "pain"),
            ("There is no rash or swelling. He has a cough.", "rash or swelling"),
            ("She never smoked.", "smoked"),
            ("He has never smoked and drinks two beers.", "smoked"),
            ("Breath sounds are absent over the left lung.", "breath sounds"),
            ("The pain is not associated with meals.", "meals"),
            ("There is no change in weight.", "change in weight"),
            ("She no longer has headaches.", "has headaches"),
            ("There is no increase in urinary frequency.", "increase in urinary frequency"),
            ("He not only coughs.", ""),
            ("He swallows without difficulty.", ""),
            ("There were no further episodes.", ""),
            ("Gram-negative rods are seen.", ""),
            ("Myocardial infarction is ruled out.", "myocardial infarction"),
            ("A urine culture was negative.", "a urine culture"),
            ("A urine culture was negative for Escherichia coli.", "escherichia coli"),
            ("No nausea, vomiting, or diarrhea. He has a rash.", "nausea vomiting or diarrhea"),
            ("He has no fever, and he has a cough.", "fever"),
            ("He has no history of serious illness and takes no medications.", "serious illness medications"),
            ("She does not smoke and drinks one glass of wine.", "smoke"),
            ("He does not smoke, drink alcohol, or use illicit drugs.", "smoke drink alcohol or use illicit drugs"),
            (
                "There has been no trauma, dysuria, or urethral discharge, and he has never been sexually active.",
                "trauma dysuria or urethral discharge been sexually active",
            ),
            ("No fever, pulse is 80/min.", "fever"),
            ("No nausea, vomiting, or diarrhea was noted.", "nausea vomiting or diarrhea"),
            ("No murmurs are heard, and the lungs are clear.", "murmurs"),
            ("He has a cough, and fever is absent.", "fever"),
            ("Fever, chills, and cough are absent.", "fever chills and cough"),
            ("He has a cough and rales are not heard.", "rales"),
            ("The abdomen is soft without tenderness, with normal bowel sounds.", "tenderness"),
            ("The abdomen is soft, non-tender and distended.", "tender"),
            ("She denies ever having had a seizure.", "ever having had a seizure"),
            ("He denies fever, chills, and night sweats.", "fever chills and night sweats"),
            ("A woman without fever who has a cough.", "fever"),
            ("Pneumonia cannot be ruled out.", ""),
            ("The vertebra is not palpable; the spleen is.", "the vertebra"),
            ("Leukocyte count of 3,500 with no blasts: anemia is present.", "blasts"),
            ("She doesn't have pain.", "have pain"),
            ("There is no evidence of infection.", "infection"),
            ("Stroking the thigh does not elicit a reflex on the left.", "elicit a reflex on the left"),
            ("Elevation does not relieve the pain.", ""),
            ("He has not passed meconium.", "passed meconium"),
            ("Neither cough nor fever is present.", "cough fever"),
            ("Rales and wheezes are absent.", "rales and wheezes"),
            ("Fever absent, cough present.", "fever"),
            ("Fever: no. Cough: yes.", "fever"),
            ("Allergies: none.", "allergies"),
            ("He has rales; ketones negative.", "ketones"),
            ("None of these helped.", ""),
            ("No, he has fever.", ""),
        ],
        |modifiers| modifiers.negated,
    );
}

#[test]
fn uncertainty() {
    check(
        &[
            ("Possible pneumonia.", "pneumonia"),
            ("He was admitted for suspected appendicitis, and he has fever.", "appendicitis"),
            ("She may have asthma.", "asthma"),
            ("A scan was done to rule out stroke.", "stroke"),
            ("Pulmonary embolism was ruled out.", ""),
            ("Malignancy is suspected.", "malignancy"),
            ("Malignancy cannot be excluded.", "malignancy"),
            ("What is the most likely diagnosis?", ""),
            ("He should return as soon as possible.", ""),
        ],
        |modifiers| modifiers.uncertain,
    );
}

#[test]
fn history() {
    check(
        &[
            ("She has a history of hypertension and asthma.", "hypertension and asthma"),
            ("A man with a history of diabetes presents with fever.", "diabetes"),
            ("A woman with a history of gout, who has fever.", "gout"),
            ("She was previously treated for gout.", "treated for gout"),
            ("He had asthma as a child and has a cough.", "asthma"),
            ("He had an appendectomy 2 years ago.", "an appendectomy"),
            ("Two years ago, he had an appendectomy and now has pain.", "he had an appendectomy"),
            ("He has a 5-month history of fatigue.", ""),
            ("For the past 2 months she has had stiffness.", ""),
            ("A previously healthy boy has fever.", ""),
            ("The cough began 3 months ago.", ""),
            ("He has no history of asthma.", "asthma"),
            ("He is status post cholecystectomy.", "cholecystectomy"),
        ],
        |modifiers| modifiers.historical,
    );
}

#[test]
fn experiencer() {
    check(
        &[
            ("His father had colon cancer.", "colon cancer"),
            ("Family history of breast cancer.", "breast cancer"),
            ("There is no family history of stroke, and he has fever.", "stroke"),
            ("A mother with diabetes.", "diabetes"),
            ("Her brother died of leukemia at the age of 5.", "leukemia"),
            ("His mother says he has fever.", ""),
            ("His mother has noticed a rash.", ""),
            ("He is brought by his mother because of fever.", ""),
            ("The boy is brought by his parents with fever and cough.", ""),
            ("He lives with his mother and has asthma.", ""),
            ("Her sister has had a similar cold.", "had a similar cold"),
            ("His father and paternal uncle died of colon cancer.", "colon cancer"),
            ("Her sister has type 1 diabetes mellitus.", "type 1 diabetes mellitus"),
            ("Breast cancer in her mother.", "breast cancer"),
            ("A history of ovarian cancer in her maternal grandmother.", "ovarian cancer"),
            ("His father has gout and he has a cough.", "gout"),
            ("His father has gout, and his mother is healthy.", "gout healthy"),
            ("His brother is 5 years old and has asthma.", "5 years old and has asthma"),
            ("A boy whose father has asthma presents with cough.", "asthma"),
            ("His mother, who has lupus, brings him because of fever.", "lupus"),
            ("She is the mother of two and has fever.", ""),
            ("A 30-year-old mother comes because of fever.", ""),
            ("Family history is significant for glaucoma.", "is significant for glaucoma"),
            ("Her mother's sister had gout.", "gout"),
            ("The family's heater was old.", ""),
            ("His father had gout at the age of 70 years.", "gout"),
            ("He came with his 44-year-old mother and had a cough.", ""),
        ],
        |modifiers| modifiers.experiencer == Experiencer::Family,
    );
    check(
        &[
            ("His roommate has had a cough.", "had a cough"),
            ("His wife reports that he snores.", ""),
            ("His wife has chlamydia.", "chlamydia"),
        ],
        |modifiers| modifiers.experiencer == Experiencer::Other,
    );
}

#[test]
fn a_range_has_what_all_its_words_have() {
    let text = "he has fever with no chills or cough.";
    let scopes = rules().scopes(text, std::slice::from_ref(&(0..text.len())));
    let at = |part: &str| {
        let start = text.find(part).unwrap();
        start..start + part.len()
    };
    for (part, negated) in [
        ("fever", false),
        ("fever with no chills", false),
        ("no chills", true),
        ("chills", true),
        ("hills", true),
        ("chills or cough", true),
        ("no", false),
    ] {
        assert_eq!(scopes.at(&at(part)).negated, negated, "{part}");
        let cue = scopes.negation_at(&at(part)).map(|cue| &text[cue]);
        assert_eq!(cue, negated.then_some("no"), "{part}");
    }
    assert_eq!(scopes.at(&(90..99)), PLAIN);
    assert_eq!(scopes.at(&(5..5)), PLAIN);
    let text = "his father has gout.";
    let scopes = rules().scopes(text, std::slice::from_ref(&(0..text.len())));
    assert_eq!(scopes.experiencer_at(&(15..19)), Some(4..10));
    assert_eq!(scopes.experiencer_at(&(0..3)), None);
}

#[test]
fn sentences_part_scopes_and_wrong_ranges_are_cut() {
    let text = "no fever and cough";
    let of = |sentences: &[Range<usize>]| rules().scopes(text, sentences).at(&(13..18));
    assert!(of(std::slice::from_ref(&(0..99))).negated);
    assert!(!of(&[0..8, 9..18]).negated);
    assert!(!of(&[]).negated);
    assert!(!of(&[0..3, Range { start: 9, end: 2 }]).negated);
    assert!(of(&[0..18, 9..18]).negated);
}

#[test]
fn files_that_are_refused() {
    let swap = |from: &str, to: &str| {
        assert!(CUES.contains(from), "{from}");
        ContextRules::parse(&CUES.replacen(from, to, 1)).unwrap_err().to_string()
    };
    for (from, to, expected) in [
        ("version = 1", "version = 2", "version: 2 is not known"),
        ("version = 1", "version = 1\nverse = 3", "verse"),
        ("next_word", "next_words", "next_words"),
        ("[history]", "[historical]", "historical"),
        ("next_word = [\"non\"]", "next_word = []", "negation.next_word: the list is empty"),
        ("next_word = [\"non\"]", "next_word = [\"Non\"]", "negation.next_word: \"Non\": a word must be"),
        ("next_word = [\"non\"]", "next_word = [\"non  x\"]", "surplus"),
        ("next_word = [\"non\"]", "next_word = [\" \"]", "empty"),
        ("next_word = [\"non\"]", "next_word = [\"mother's\"]", "without 's"),
        ("next_word = [\"non\"]", "next_word = [\"a|b c\", \"b c\"]", "given twice"),
    ] {
        let message = swap(from, to);
        assert!(message.contains(expected), "{message}");
    }
}

proptest! {
    #[test]
    fn any_text_and_ranges_are_read(
        text in "\\PC{0,60}",
        cues in prop::collection::vec(prop::sample::select(vec![
            "no ", "fever", ", ", " and ", "has ", "his mother ", "in ", "is absent", "2 years ago", "; ", "é", "who ",
        ]), 0..20),
        sentences in prop::collection::vec(0..90_usize, 0..6),
        range in (0..90_usize, 0..90_usize),
    ) {
        let text = cues.concat() + &text;
        let sentences: Vec<_> = sentences.windows(2).map(|ends| ends[0]..ends[1]).collect();
        for sentences in [sentences.as_slice(), std::slice::from_ref(&(0..text.len()))] {
            let scopes = rules().scopes(&text, sentences);
            let range = range.0..range.1;
            let modifiers = scopes.at(&range);
            prop_assert_eq!(modifiers.negated, scopes.negation_at(&range).is_some());
            let is_other = modifiers.experiencer != Experiencer::Patient;
            prop_assert_eq!(is_other, scopes.experiencer_at(&range).is_some());
            for cue in &scopes.cues {
                prop_assert!(cue.start < cue.end && cue.end <= text.len());
            }
        }
    }
}

#[test]
fn text_without_stops_is_read_in_linear_time() {
    let rules = rules();
    for part in [
        "no ",
        "and ",
        "no fever ",
        "mother ",
        "is absent ",
        "in ",
        "a, ",
        "his ",
        "x",
        "no fever and has ",
        "5 years ago ",
    ] {
        let begun = std::time::Instant::now();
        let text = part.repeat(100_000 / part.len());
        rules.scopes(&text, std::slice::from_ref(&(0..text.len())));
        let taken = begun.elapsed();
        println!("{part:?}: {taken:?}");
        assert!(taken.as_millis() < 1000, "{part:?}: {taken:?}");
    }
}
