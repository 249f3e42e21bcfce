//! Tests of the module.

use std::sync::LazyLock;
use std::time::{Duration, Instant};

use proptest::prelude::*;

use super::Conflict::*;
use super::Grounding::*;
use super::*;

static RULES: LazyLock<ContextRules> =
    LazyLock::new(|| ContextRules::parse(include_str!("../../../pipelines/lexicon/context.toml")).unwrap());

fn covered(text: &str, range: &Range<u32>) -> String {
    assert!(range.start < range.end && range.end as usize <= text.chars().count(), "{range:?} of {text:?}");
    text.chars().skip(range.start as usize).take(range.len()).collect()
}

/// Checks verdicts: (text, value, what the range covers, edits).
fn check(cases: &[(&str, &str, &str, u32)], expected: Grounding) {
    for (text, value, place, distance) in cases {
        let verdict = SourceText::new(text, &RULES).ground(value, Subject::Patient, None);
        assert_eq!(verdict.grounding, expected, "{value:?} in {text:?}: {verdict:?}");
        let found = verdict.range.map(|range| covered(text, &range));
        assert_eq!(found.as_deref().unwrap_or_default(), *place, "{value:?} in {text:?}");
        assert_eq!(verdict.distance, (expected == Fuzzy).then_some(*distance), "{value:?} in {text:?}");
        assert_eq!(verdict.conflict, None);
    }
}

fn check_conflicts(cases: &[(&str, &str, &str, Conflict)]) {
    for (text, value, place, conflict) in cases {
        let verdict = SourceText::new(text, &RULES).ground(value, Subject::Patient, None);
        assert_eq!(verdict.conflict, Some(*conflict), "{value:?} in {text:?}: {verdict:?}");
        assert_eq!(verdict.grounding, Contradicted);
        let found = verdict.range.map(|range| covered(text, &range));
        assert_eq!(found.as_deref(), Some(*place), "{value:?} in {text:?}");
    }
}

const VIGNETTE: &str = "A 54-year-old man comes to the physician because of a 3-day history of dry cough and right \
    knee pain. He has had no nausea, chills, or night sweats. His father has diabetes. He takes 5 mg of amlodipine. His \
    temperature is 38.3°C (100.9°F), pulse is 96/min, and blood pressure is 138/82 mm Hg. Laboratory studies \
    show:\nHemoglobin 12.1 g/dL\nLeukocyte count 5,900/mm3\nGlucose 126 mg/dL\n";

#[test]
fn exact() {
    check(
        &[
            (VIGNETTE, "dry cough", "dry cough", 0),
            (VIGNETTE, "54-year-old", "54-year-old", 0),
            (VIGNETTE, "no nausea, chills, or night sweats", "no nausea, chills, or night sweats", 0),
            (VIGNETTE, "138/82 mm Hg", "138/82 mm Hg", 0),
            (VIGNETTE, "5,900", "5,900", 0),
            (VIGNETTE, "38.3", "38.3", 0),
            (VIGNETTE, "no", "no", 0),
            ("She denies fever. Now she has fever.", "fever", "fever", 0),
            ("A female or male rat.", "male", "male", 0),
            ("xa a a", "a a", "a a", 0),
            ("患者发热三天", "发热", "发热", 0),
            ("Ménière disease", "Ménière", "Ménière", 0),
            ("👍🏽 fever 👍", "👍", "👍", 0),
            ("a\r\nb c", "a\r\nb", "a\r\nb", 0),
        ],
        Exact,
    );
    let source = SourceText::new("She denies fever. Now she has fever.", &RULES);
    assert_eq!(source.ground("fever", Subject::Patient, None).range, Some(30..35));
}

#[test]
fn normalised() {
    check(
        &[
            (VIGNETTE, "Dry  Cough", "dry cough", 0),
            (VIGNETTE, "54 year old", "54-year-old", 0),
            (VIGNETTE, "138/82 mmHg", "138/82 mm Hg", 0),
            (VIGNETTE, "5900/mm³", "5,900/mm3", 0),
            (VIGNETTE, "38.3 degrees Celsius", "38.3°C", 0),
            (VIGNETTE, "38.30 °C", "38.3°C", 0),
            (VIGNETTE, "“dry cough.”", "dry cough", 0),
            (VIGNETTE, "126mg/dl", "126 mg/dL", 0),
            (VIGNETTE, "no chills", "no nausea, chills", 0),
            (VIGNETTE, "denies night sweats", "no nausea, chills, or night sweats", 0),
            ("10mg of it", "10 mg", "10mg", 0),
            ("10 mg of it", "10mg", "10 mg", 0),
            ("5 mcg daily", "5 µg", "5 mcg", 0),
            ("5 μg daily", "5 mcg", "5 μg", 0),
            ("a non-tender abdomen", "nontender abdomen", "non-tender abdomen", 0),
            ("The abdomen is non-tender.", "not tender", "non-tender", 0),
            ("раin in the arm", "pain", "раin", 0),
            ("Murmurs are absent.", "no murmurs", "Murmurs are absent", 0),
            ("Me\u{301}nie\u{300}re disease", "Ménière", "Me\u{301}nie\u{300}re", 0),
            ("Crohn’s disease", "crohn's disease", "Crohn’s disease", 0),
        ],
        Normalised,
    );
}

#[test]
fn fuzzy() {
    check(
        &[
            ("She had night sweats for days.", "night sweat", "night sweats", 1),
            ("He has dilated cardiomyopathy now.", "dilated cardiomyopahy", "dilated cardiomyopathy", 1),
            ("He has hepato-splenomegaly.", "hepatosplenomegaly", "hepato-splenomegaly", 1),
            ("Pain in the abdomen, sharp", "pain in the abdomen sharp", "Pain in the abdomen, sharp", 1),
            (VIGNETTE, "because of a 3-day historie of dry cough", "because of a 3-day history of dry cough", 2),
            ("No swollen glands were felt", "no swolen glands", "No swollen glands", 1),
            ("No rash or swollen glands were felt", "no swolen glands", "No rash or swollen glands", 1),
            ("Swollen glands, swollen glans", "swollen glan", "swollen glans", 1),
            ("a 3-day history of dry cough", "a 3 days history of dry cough", "a 3-day history of dry cough", 1),
            ("a 45-year-old woman", "45 years old", "45-year-old", 1),
            ("swollen glanda and swollen glande", "swollen glandx", "swollen glanda", 1),
        ],
        Fuzzy,
    );
    check(&[("cardiomegaly", "cardiomgeal", "", 0), ("fevers", "fever", "", 0)], NotFound);
}

#[test]
fn contradicted() {
    check_conflicts(&[
        (VIGNETTE, "left knee pain", "right knee pain", Laterality),
        (VIGNETTE, "temperature 38.9", "temperature is 38.3", Number),
        (VIGNETTE, "Hemoglobin 12.7 g/dL", "Hemoglobin 12.1 g/dL", Number),
        (VIGNETTE, "Hemoglobin 12.1 g/L", "Hemoglobin 12.1 g/dL", Unit),
        (VIGNETTE, "126 mg", "126 mg", Unit),
        (VIGNETTE, "126 MG", "126 mg", Unit),
        (VIGNETTE, "5 g", "5 mg", Unit),
        (VIGNETTE, "45-year-old", "54-year-old", Number),
        (VIGNETTE, "chills", "chills", Negation),
        (VIGNETTE, "Night Sweats", "night sweats", Negation),
        (VIGNETTE, "diabetes", "diabetes", Experiencer),
        (VIGNETTE, "no dry cough", "dry cough", Negation),
        ("She denies fever.", "fever", "fever", Negation),
        ("She has a fever.", "no fever", "fever", Negation),
        (
            "He has typical chest pain radiating to the jaw",
            "atypical chest pain radiating to the jaw",
            "typical chest pain radiating to the jaw",
            Negation,
        ),
        (
            "platelets are 250 x 10⁹/L today",
            "platelets are 250 x 10⁸/L today",
            "platelets are 250 x 10⁹/L today",
            Number,
        ),
        ("a t-score of -2.5", "a t-score of 2.5", "a t-score of -2.5", Number),
        ("a count of < 200 cells", "a count of 200 cells", "a count of < 200 cells", Number),
    ]);
}

#[test]
fn not_found() {
    check(
        &[
            ("15 of them", "5", "", 0),
            ("1.5 of them", "5", "", 0),
            ("5,000 of them", "5", "", 0),
            ("< 5 of them", "5", "", 0),
            ("a female", "male", "", 0),
            ("fevers", "fever", "", 0),
            (VIGNETTE, "headache", "", 0),
            (VIGNETTE, "severe headache", "", 0),
            (VIGNETTE, "dry cough, headache", "", 0),
            (VIGNETTE, "", "", 0),
            (VIGNETTE, " \u{200b}\n", "", 0),
            ("", "fever", "", 0),
            ("e\u{301}", "e", "", 0),
            ("severe symptomatic hypokalemia on admission", "severe symptomatic hyperkalemia on admission", "", 0),
            ("fever", "a fever that is longer than the text", "", 0),
            ("for 2 weeks", "3 days", "", 0),
            // Said in other words, so no contradiction.
            ("3 episodes of vomiting", "three episodes of vomiting", "", 0),
            ("His temperature is 38.3°C.", "temperature 38.3°C", "", 0),
        ],
        NotFound,
    );
}

#[test]
fn lists_are_judged_by_their_parts() {
    let text =
        "He has had a dry cough for days and fever. He has no chills or rash. His father has gout. Right knee pain.";
    check(&[(text, "fever, dry cough", "dry cough for days and fever", 0)], Exact);
    check(
        &[
            (text, "Fever; dry cough", "dry cough for days and fever", 0),
            (text, "no rash, chills", "no chills or rash", 0),
            (text, "fever, and no rash", "fever. He has no chills or rash", 0),
        ],
        Normalised,
    );
    check_conflicts(&[
        (text, "fever, chills", "fever. He has no chills", Negation),
        (text, "fever, gout", "fever. He has no chills or rash. His father has gout", Experiencer),
        (
            text,
            "fever, left knee pain",
            "fever. He has no chills or rash. His father has gout. Right knee pain",
            Laterality,
        ),
        (text, "no rash, fever", "fever. He has no chills or rash", Negation),
    ]);
    check(&[(text, "fever, headache", "", 0), (text, "headache, chills", "", 0)], NotFound);
    check(&[("fever, fatigue and dry coughing", "fatigue, dry coughin", "fatigue and dry coughing", 1)], Fuzzy);
}

#[test]
fn hints_and_subjects() {
    let text = "She denies fever. Now she has fever. Her mother has gout. 15 or 5.";
    let source = SourceText::new(text, &RULES);
    let at = |value, subject, hint| {
        let verdict = source.ground(value, subject, hint);
        (verdict.grounding, verdict.range)
    };
    for (hint, grounding, range) in [
        (None, Exact, 30..35),
        (Some(11..16), Contradicted, 11..16),
        (Some(30..35), Exact, 30..35),
        (Some(10..16), Contradicted, 10..16), // a blank more is only another spelling
        (Some(0..5), Exact, 30..35),
        (Some(Range { start: 35, end: 30 }), Exact, 30..35),
        (Some(60..99), Exact, 30..35),
        (Some(u32::MAX - 1..u32::MAX), Exact, 30..35),
    ] {
        assert_eq!(at("fever", Subject::Patient, hint.clone()), (grounding, Some(range)), "{hint:?}");
    }
    assert_eq!(at("5", Subject::Patient, Some(59..60)).1, Some(64..65), "a hint inside a word does not count");
    assert_eq!(at("gout", Subject::Patient, None).0, Contradicted);
    assert_eq!(at("gout", Subject::Anyone, None), (Exact, Some(52..56)));
    assert_eq!(at("mother has gout", Subject::Patient, None).0, Exact, "the value names whom it speaks of");
    let all = source.ground_all([("fever", Subject::Patient, None), ("", Subject::Anyone, None)]);
    assert_eq!(all.iter().map(|verdict| verdict.grounding).collect::<Vec<_>>(), [Exact, NotFound]);
}

#[test]
fn word_lists_are_sorted() {
    for list in [FILLING, SIDES, UNITS] {
        assert!(list.is_sorted(), "{list:?}");
    }
    assert!(UNIT_SPELLINGS.is_sorted() && NUMBER_WORDS.is_sorted());
}

/// Edit distance cell by cell, to what was read as a whole and to its best ending.
fn plain_distances(pattern: &[char], text: &[char], anchored: bool) -> Vec<usize> {
    let mut column: Vec<usize> = (0..=pattern.len()).collect();
    let mut distances = Vec::new();
    for (read, character) in text.iter().enumerate() {
        let mut diagonal = column[0];
        column[0] = if anchored { read + 1 } else { 0 };
        for (row, expected) in pattern.iter().enumerate() {
            let substituted = diagonal + usize::from(expected != character);
            diagonal = column[row + 1];
            column[row + 1] = substituted.min(diagonal + 1).min(column[row] + 1);
        }
        distances.push(column[pattern.len()]);
    }
    distances
}

fn check_verdict(text: &str, verdict: &Verdict) -> Result<(), TestCaseError> {
    let n_characters = text.chars().count() as u32;
    prop_assert_eq!(verdict.range.is_none(), verdict.grounding == NotFound);
    prop_assert_eq!(verdict.distance.is_some(), verdict.grounding == Fuzzy);
    prop_assert_eq!(verdict.conflict.is_some(), verdict.grounding == Contradicted);
    if let Some(range) = &verdict.range {
        prop_assert!(range.start < range.end && range.end <= n_characters, "{:?} of {:?}", range, text);
    }
    Ok(())
}

/// Letters, marks, signs and blanks of many kinds, of which no cue, sign of a number or comparison can be made.
const HARD: &str =
    "[bdegkBDEG \t\r\n\u{a0}.,;:/()%°µ+éÉßİ\u{301}\u{327}\u{200b}\u{ad}аесБЖ发热日ひ👍🏽👩\u{200d}⁹²½“”’–0-9]{0,60}";

proptest! {
    #[test]
    fn edit_distances_are_those_of_the_definition(
        pattern in "[abé]{1,150}", text in "[abéc]{0,150}", anchored in any::<bool>(),
    ) {
        let (pattern, text): (Vec<char>, Vec<char>) = (pattern.chars().collect(), text.chars().collect());
        let mut distances = Vec::new();
        EditSearch::new(pattern.iter().copied()).run(text.iter().copied(), anchored, |read, distance| {
            assert_eq!(read, distances.len() + 1);
            distances.push(distance);
        });
        prop_assert_eq!(distances, plain_distances(&pattern, &text, anchored));
    }

    #[test]
    fn words_of_any_text_are_exact(text in HARD, ends in (0..64_usize, 0..64_usize)) {
        // Between white space there is always a word border.
        let mut words: Vec<Range<usize>> = Vec::new();
        for word in text.split_whitespace() {
            let start = word.as_ptr() as usize - text.as_ptr() as usize;
            words.push(start..start + word.len());
        }
        prop_assume!(!words.is_empty());
        let (first, last) = (ends.0 % words.len(), ends.1 % words.len());
        let bytes = words[first.min(last)].start..words[first.max(last)].end;
        let value = &text[bytes.clone()];
        prop_assume!(!Normalized::of(value).text.is_empty());
        prop_assert!(is_border(&text, bytes.start) && is_border(&text, bytes.end));

        let source = SourceText::new(&text, &RULES);
        let verdict = source.ground(value, Subject::Patient, None);
        check_verdict(&text, &verdict)?;
        // The same unit may stand there without what it is divided by.
        if verdict.conflict != Some(Unit) {
            prop_assert_eq!(verdict.grounding, Exact, "{:?}", value);
            prop_assert_eq!(covered(&text, &verdict.range.unwrap()), value);
        }
        let expected = character_range(&text, &bytes);
        let hinted = source.ground(value, Subject::Patient, Some(narrow(&expected)));
        prop_assert_eq!((hinted.grounding, hinted.range), (Exact, Some(narrow(&expected))));

        let upper: String = value.chars().flat_map(|c| if c.is_ascii() { c.to_ascii_uppercase() } else { c }.to_string().chars().collect::<Vec<_>>()).collect();
        let verdict = source.ground(&upper, Subject::Patient, None);
        check_verdict(&text, &verdict)?;
        prop_assert!(verdict.grounding <= Normalised || verdict.conflict == Some(Unit), "{:?} {:?}", upper, verdict);
    }

    #[test]
    fn any_border_to_border_is_exact(text in HARD, ends in (0..99_usize, 0..99_usize)) {
        let borders: Vec<usize> = (0..=text.len()).filter(|position| is_border(&text, *position)).collect();
        let (first, last) = (ends.0 % borders.len(), ends.1 % borders.len());
        let bytes = borders[first.min(last)]..borders[first.max(last)];
        let verdict = SourceText::new(&text, &RULES).ground(&text[bytes.clone()], Subject::Patient, None);
        check_verdict(&text, &verdict)?;
        let is_visible = !Normalized::of(&text[bytes.clone()]).text.is_empty();
        if is_visible && verdict.conflict != Some(Unit) {
            prop_assert_eq!(verdict.grounding, Exact);
            prop_assert_eq!(covered(&text, &verdict.range.unwrap()), &text[bytes]);
        }
    }

    #[test]
    fn other_digits_are_never_grounded(digit in 0..99_usize, step in 1..10_u32, before in 0..6_usize, behind in 0..6_usize) {
        let words: Vec<&str> = VIGNETTE.split_whitespace().collect();
        let digits_of = |word: usize| {
            let letters = words[word].chars().enumerate();
            letters.filter(|(_, c)| c.is_ascii_digit()).map(move |(place, _)| (word, place)).collect::<Vec<_>>()
        };
        let digits: Vec<(usize, usize)> = (0..words.len()).flat_map(digits_of).collect();
        let (word, place) = digits[digit % digits.len()];
        let mut changed: Vec<char> = words[word].chars().collect();
        changed[place] = char::from_digit((changed[place].to_digit(10).unwrap() + step) % 10, 10).unwrap();
        let changed: String = changed.into_iter().collect();
        let mut phrase = words[word.saturating_sub(before)..(word + behind + 1).min(words.len())].to_vec();
        phrase[word.min(before)] = &changed;
        let value = phrase.join(" ");
        let verdict = SourceText::new(VIGNETTE, &RULES).ground(&value, Subject::Patient, None);
        check_verdict(VIGNETTE, &verdict)?;
        // "1" for "3" may well stand somewhere else.
        let is_elsewhere = words.join(" ").contains(&value);
        prop_assert!(!verdict.is_grounded() || is_elsewhere, "{:?} {:?}", value, verdict);
    }

    #[test]
    fn a_changed_letter_of_a_long_phrase_is_fuzzy(from in 0..99_usize, place in 0..99_usize) {
        let text = "The physical signs described were a swollen tender joint, purple lesions beneath both eyelids and \
                    marked enlargement of several neighbouring glands";
        let words: Vec<&str> = text.split_whitespace().collect();
        let from = from % (words.len() - 5);
        let phrase = words[from..from + 5].join(" ");
        let mut letters: Vec<char> = phrase.chars().collect();
        let place = place % letters.len();
        let is_letter = letters[place].is_alphabetic() && !phrase.contains("both");
        if !is_letter {
            return Ok(());
        }
        letters[place] = 'q';
        let verdict = SourceText::new(text, &RULES).ground(&letters.iter().collect::<String>(), Subject::Patient, None);
        prop_assert_eq!((verdict.grounding, verdict.distance), (Fuzzy, Some(1)));
    }

    #[test]
    fn any_text_and_value_are_judged(text in "\\PC{0,60}", value in "\\PC{0,30}", hint in (0..90_u32, 0..90_u32)) {
        let source = SourceText::new(&text, &RULES);
        for value in [value.as_str(), &format!("no {value}, {value}"), &format!("{text} {value}")] {
            check_verdict(&text, &source.ground(value, Subject::Patient, None))?;
            check_verdict(&text, &source.ground(value, Subject::Anyone, Some(hint.0..hint.1)))?;
        }
    }

    #[test]
    fn values_made_of_the_text_are_judged(
        parts in prop::collection::vec(prop::sample::select(vec![
            "no ", "fever", ", ", "; ", " and ", " 5 mg", "/dl", "<", " -", "12.5", " his mother has ", " left ", " right ", "non-",
            "é", "\u{301}", "°C", " mm Hg", "0", "denies ", "is absent", ". ", "\n", "а", "ﬁ", "İ", "\u{200b}",
        ]), 0..30),
        order in prop::collection::vec(0..30_usize, 0..8),
    ) {
        let text = parts.concat();
        let value: String = order.iter().filter_map(|i| parts.get(*i).copied()).collect();
        let source = SourceText::new(&text, &RULES);
        check_verdict(&text, &source.ground(&value, Subject::Patient, None))?;
        check_verdict(&text, &source.ground(&value.to_uppercase(), Subject::Anyone, Some(0..3)))?;
    }
}

#[test]
fn long_texts_and_values_take_bounded_time() {
    for part in
        ["a", "a ", "ab ", "no fever ", "5 ", "5,", ", ", "é", "1.", "<", "-", "\u{301}", "mother ", "non-", "; no "]
    {
        let text = part.repeat(100_000 / part.len());
        let begun = Instant::now();
        let source = SourceText::new(&text, &RULES);
        for value in [
            &text[..text.len() / 2],
            &format!("{text} x"),
            "a a a a a a a a b a a a a",
            "no fevers no fever no fever",
            "6 5 5 5 5",
            "",
        ] {
            source.ground(value, Subject::Patient, None);
        }
        let taken = begun.elapsed();
        println!("{part:?}: {taken:?}");
        assert!(taken < Duration::from_secs(10), "{part:?}: {taken:?}");
    }
}

/// Shortest of many times, so that a busy machine does not count.
fn shortest<T>(mut action: impl FnMut() -> T) -> Duration {
    let time = |_| {
        let begun = Instant::now();
        std::hint::black_box(action());
        begun.elapsed()
    };
    (0..400).map(time).min().unwrap()
}

#[test]
fn timing() {
    let text = VIGNETTE.repeat(3000 / VIGNETTE.len() + 1);
    let text = &text[..3000];
    let typographic = text.replace('-', "–");
    println!("new, 3000 characters: {:?}", shortest(|| SourceText::new(text, &RULES)));
    println!("new, not ASCII but for °: {:?}", shortest(|| SourceText::new(&typographic, &RULES)));
    let folded = fold(text);
    let ranges = sentences(text);
    println!("normalised, 3000 characters: {:?}", shortest(|| Normalized::of(text)));
    let normalized = Normalized::of(text);
    println!("tokens, 3000 characters: {:?}", shortest(|| read_tokens(&normalized.text, |_| 0)));
    println!("sentences, 3000 characters: {:?}", shortest(|| sentences(text)));
    println!(
        "scopes, 3000 characters: {:?}",
        shortest(|| RULES.scopes(&folded, &character_ranges(text, ranges.clone())))
    );
    let short = &folded[..folded.len().min(900)];
    let short_ranges = sentences(&text[..900]);
    println!("scopes, 900 characters: {:?}", shortest(|| RULES.scopes(short, &short_ranges)));
    let source = SourceText::new(text, &RULES);
    for value in [
        "dry cough",
        "Dry Cough",
        "126 mg/dL",
        "chills",
        "no chills",
        "headache",
        "hemorrhagic cystitis",
        "left knee pain",
        "dry cough, nausea",
        "because of a 3-day historie of dry cough",
        "recurrent episodes of severe abdominal pain after meals",
    ] {
        let verdict = source.ground(value, Subject::Patient, None);
        println!("{value:?}: {:?} {:?}", verdict.grounding, shortest(|| source.ground(value, Subject::Patient, None)));
    }
}
