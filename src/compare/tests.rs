//! Tests of scores, tables and the plot. Records are written one value list a line: `case slot: value | value`.

use std::collections::BTreeMap;
use std::num::NonZeroU32;

use expect_test::{Expect, expect, expect_file};
use proptest::prelude::*;

use super::bootstrap::Bootstrap;
use super::metrics::{EditSimilarity, PairMetric, ShareAtLeast, TokenF1, WordOverlap, built_in, normalise};
use super::score::score;
use super::{CaseKey, CaseSlots, Comparison, Group, RecordSet, Settings, compare, compared_slots, plot, table};
use crate::record::slots::Slot;

fn slot(name: &str) -> Slot {
    Slot::ALL.into_iter().find(|slot| slot.as_str() == name).unwrap()
}

fn records(name: &str, text: &str) -> RecordSet {
    let mut set = RecordSet::new(name);
    for line in text.lines().map(str::trim).filter(|line| !line.is_empty()) {
        let (case, rest) = line.split_once(' ').unwrap_or((line, ""));
        let slots = set.cases.entry(CaseKey::new(case)).or_default();
        if let Some((name, values)) = rest.split_once(": ") {
            slots.insert(slot(name), values.split(" | ").map(str::to_owned).collect());
        }
    }
    set
}

fn settings(n_worst: usize) -> Settings {
    Settings { bootstrap: Bootstrap { n_resamples: NonZeroU32::new(200).unwrap(), seed: 1 }, n_worst }
}

/// One line for each pair: slot, scores in per cent, error, and where misplaced values belong.
fn check_pairs(reference: &str, candidate: &str, expect: Expect) {
    let scored = score(&records("reference", reference), &records("candidate", candidate), &built_in()).unwrap();
    let mut text = String::new();
    for pair in &scored.pairs {
        let scores: Vec<String> = pair.scores.iter().map(|score| format!("{:3.0}", score.unwrap() * 100.0)).collect();
        let error = pair.error.map_or("equal", |kind| kind.as_str());
        let to: Vec<&str> = pair.belongs_to.iter().map(|slot| slot.as_str()).collect();
        let line = format!("{:16} {}  {error} {}", pair.slot.as_str(), scores.join(" "), to.join(", "));
        text += line.trim_end();
        text.push('\n');
    }
    expect.assert_eq(&text);
}

#[test]
fn metrics_by_example() {
    let check = |(reference, candidate): (&str, &str)| {
        let scores = built_in().map(|metric| format!("{:.3}", metric.score(reference, candidate)));
        format!("{} | {reference} | {candidate}\n", scores.join(" "))
    };
    let cases = [
        ("fever", "fever"),
        ("Fever,  DRY cough", "fever, dry\u{a0}cough"),
        ("Fie\u{300}vre", "fi\u{e8}vre"),
        ("ß-blocker 5 \u{b5}g", "SS-blocker 5 \u{3bc}g"),
        ("kitten", "sitting"),
        ("fever, dry cough", "dry cough, fever"),
        ("pain pain pain", "pain"),
        ("1.5 packs", "15 packs"),
        ("(38.1 °C)", "38.1 °C."),
        ("咳嗽", "咳"),
        ("--", "--"),
        ("...", "!"),
        ("fever", "rash"),
    ];
    expect![[r#"
        1.000 1.000 1.000 | fever | fever
        1.000 1.000 1.000 | Fever,  DRY cough | fever, dry cough
        1.000 1.000 1.000 | Fièvre | fièvre
        1.000 1.000 1.000 | ß-blocker 5 µg | SS-blocker 5 μg
        0.571 0.000 0.000 | kitten | sitting
        0.125 1.000 1.000 | fever, dry cough | dry cough, fever
        0.286 1.000 0.500 | pain pain pain | pain
        0.889 0.333 0.500 | 1.5 packs | 15 packs
        0.778 1.000 1.000 | (38.1 °C) | 38.1 °C.
        0.500 0.000 0.000 | 咳嗽 | 咳
        1.000 1.000 1.000 | -- | --
        0.000 0.000 0.000 | ... | !
        0.000 0.000 0.000 | fever | rash
    "#]]
    .assert_eq(&cases.map(check).concat());
}

#[test]
fn a_threshold_makes_a_share() {
    let adequate = ShareAtLeast::new(EditSimilarity, 0.9);
    expect!["edit>=0.90 / Edit similarity ≥ 0.90"].assert_eq(&format!("{} / {}", adequate.name(), adequate.title()));
    assert_eq!(adequate.score("0123456789", "012345678x"), 1.0);
    assert_eq!(adequate.score("0123456789", "01234567xx"), 0.0);
}

#[test]
fn pairs_filled_on_one_side_score_nothing() {
    check_pairs(
        "a Symptom-Name: fever | dry cough
         a Personal-Age: 31-year-old
         a Past-Medication: metformin
         a ground_truth_diagnosis: asthma",
        "a Symptom-Name: fever, dry cough
         a Personal-Age: 31-year-old man
         a Allergic-History: penicillin
         a ground_truth_diagnosis: gout",
        expect![[r#"
            Symptom-Name     100 100 100  equal
            Personal-Age      73  50  67  boundary
            Past-Medication    0   0   0  missing
            Allergic-History   0   0   0  spurious
        "#]],
    );
}

#[test]
fn misplaced_values_cost_their_share() {
    check_pairs(
        "a Symptom-Name: fever | dry cough
         a Symptom-Time: for 2 weeks
         a Past-Medication: metformin | lisinopril
         b Symptom-Color: red
         b Symptom-Degree: mild",
        "a Symptom-Name: fever | dry cough | for 2 weeks | metformin
         a Past-Diagnosis: metformin and gout | Lisinopril
         b Symptom-Color: red
         b Symptom-Degree: red | mild",
        expect![[r#"
            Symptom-Name      20  21  30  misplaced Symptom-Time, Past-Medication
            Symptom-Time       0   0   0  missing
            Past-Diagnosis     0   0   0  misplaced Past-Medication
            Past-Medication    0   0   0  missing
            Symptom-Degree    22  25  33  misplaced Symptom-Color
            Symptom-Color    100 100 100  equal
        "#]],
    );
}

#[test]
fn a_string_and_a_list_are_the_same() {
    let reference = "a Symptom-Name: fever | dry cough | rash\na Symptom-Time: 2 weeks | sudden onset";
    let list = "a Symptom-Name: fever | 2 weeks | sudden onset\na Personal-Weight: 1,000 g";
    let string = "a Symptom-Name: fever, 2 weeks, and sudden onset\na Personal-Weight: 1,000 g";
    check_pairs(
        reference,
        list,
        expect![[r#"
        Symptom-Name      12   4   7  misplaced Symptom-Time, Symptom-Time
        Symptom-Time       0   0   0  missing
        Personal-Weight    0   0   0  spurious
    "#]],
    );
    check_pairs(
        reference,
        string,
        expect![[r#"
        Symptom-Name      11   4   7  misplaced Symptom-Time, Symptom-Time
        Symptom-Time       0   0   0  missing
        Personal-Weight    0   0   0  spurious
    "#]],
    );
}

#[test]
fn a_value_that_is_right_in_two_slots_is_misplaced_in_none() {
    check_pairs(
        "a Habit-Tobacco: does not smoke or drink\na Habit-Wine: does not smoke or drink",
        "a Habit-Tobacco: does not smoke or drink\na Habit-Wine: does not smoke or drink",
        expect![[r#"
            Habit-Tobacco    100 100 100  equal
            Habit-Wine       100 100 100  equal
        "#]],
    );
}

#[test]
fn kinds_of_error() {
    check_pairs(
        "a Symptom-Name: severe chest pain
         a Symptom-Position: chest
         a Personal-Age: 40
         a Family-History: father died of colon cancer",
        "a Symptom-Name: chest pain
         a Symptom-Time: chest
         a Preventive: vaccinated
         a Family-History: no family history",
        expect![[r#"
            Symptom-Name      59  67  80  boundary
            Symptom-Time       0   0   0  misplaced Symptom-Position
            Symptom-Position   0   0   0  missing
            Personal-Age       0   0   0  missing
            Preventive         0   0   0  spurious
            Family-History    15   0   0  different
        "#]],
    );
}

#[test]
fn cases_pair_by_any_key() {
    let keys = |names: &[&str]| names.iter().map(|name| CaseKey::new(*name)).collect::<Vec<_>>();
    let fever = || BTreeMap::from([(Slot::SymptomName, vec!["fever".to_owned()])]);
    let mut reference = RecordSet::new("reference");
    reference.insert(&keys(&["hash-1", "case-1"]), fever()).unwrap();
    reference.insert(&keys(&["hash-2", "case-2"]), fever()).unwrap();
    reference.insert(&keys(&["hash-3", "case-3"]), fever()).unwrap();
    assert_eq!(reference.insert(&keys(&["hash-4", "case-3"]), fever()), Err(CaseKey::new("case-3")));
    let set = |cases: &[&[&str]]| {
        let mut set = RecordSet::new("x");
        cases.iter().for_each(|names| set.insert(&keys(names), fever()).unwrap());
        score(&reference, &set, &built_in())
    };
    let scored = set(&[&["case-1"], &["other", "hash-2"], &["case-9"]]).unwrap();
    assert_eq!((scored.n_missing_cases, scored.n_other_cases), (1, 1));
    let errors = [set(&[&["x"]]), set(&[&["case-1"], &["hash-1"]]), set(&[&["case-1"], &["case-2", "hash-3"]])];
    let errors = errors.map(|result| result.map_or_else(|error| error.to_string(), |_| "paired".to_owned()));
    expect![[r#"
        "x" has none of the 3 reference cases; give both sides the same keys, such as question_sha256
        the keys of the reference case hash-1 name several cases of "x", or one that another reference case names; correct the keys
        the keys of the reference case hash-3 name several cases of "x", or one that another reference case names; correct the keys"#]].assert_eq(&errors.join("\n"));
}

const REFERENCE: &str = "
    a Symptom-Name: fever | dry cough
    a Symptom-Time: 3-day history
    a Personal-Age: 31-year-old
    b Symptom-Name: severe chest pain
    b Past-Medication: metformin
    b Medical-Examination: Temperature is 38.1 °C | Blood pressure is 120/80 mm Hg
    c Personal-Age: 8-month-old
    d Symptom-Color: dark";
const RULES: &str = "
    a Symptom-Name: fever | dry cough
    a Symptom-Time: 3-day history of fever
    a Personal-Age: 31-year-old
    b Symptom-Name: chest pain | metformin
    b Medical-Examination: Temperature is 38.1 °C
    c Personal-Age: 8-month-old
    d Symptom-Shape: dark
    e Symptom-Name: rash";
const MODEL: &str = "
    a Symptom-Name: fever | cough
    a Personal-Age: 31
    b Symptom-Name: severe chest pain
    b Department: cardiology
    c";

fn example(n_worst: usize) -> Comparison {
    let extractors = [records("rules", RULES), records("model \u{1b}[31m<&>", MODEL)];
    compare(&records("reader", REFERENCE), &extractors, &[], settings(n_worst)).unwrap()
}

#[test]
fn the_table() {
    expect_file!["testdata/table.txt"].assert_eq(&table::text(&example(3)));
}

#[test]
fn the_json() {
    let mut comparison = example(1);
    comparison.extractors.truncate(1);
    let rules = &mut comparison.extractors[0];
    // One slot and one group stand for all.
    rules.slots.truncate(1);
    rules.groups.truncate(1);
    let json = serde_json::to_string_pretty(&comparison).unwrap() + "\n";
    expect_file!["testdata/comparison.json"].assert_eq(&json);
}

#[test]
fn the_plot() {
    let svg = plot::svg(&example(0), "Extractors & \"reference\" </svg>");
    check_xml(&svg);
    expect_file!["testdata/plot.svg"].assert_eq(&svg);
    let many: Vec<RecordSet> = (0..12).map(|n| records(&format!("a rather long name, {n}"), RULES)).collect();
    check_xml(&plot::svg(&compare(&records("reader", REFERENCE), &many, &[], settings(0)).unwrap(), "many"));
    check_xml(&plot::svg(&compare(&records("reader", REFERENCE), &[], &[], settings(0)).unwrap(), ""));
}

#[test]
fn what_cannot_be_compared() {
    struct Broken;
    impl PairMetric for Broken {
        fn name(&self) -> &str {
            "broken"
        }
        fn score(&self, _: &str, _: &str) -> f64 {
            f64::NAN
        }
    }
    let reference = records("reader", REFERENCE);
    let (one, other) = (records("rules", RULES), records("rules", MODEL));
    let check = |reference: &RecordSet, extractors: &[RecordSet], metrics: &[&dyn PairMetric]| {
        compare(reference, extractors, metrics, settings(0)).unwrap_err().to_string()
    };
    let errors = [
        check(&RecordSet::new("nobody"), &[], &[]),
        check(&reference, &[one.clone(), other], &[]),
        check(&reference, &[records("(empty)", RULES)], &[]),
        check(&reference, &[records("elsewhere", "z Symptom-Name: fever")], &[]),
        check(&reference, std::slice::from_ref(&one), &[&Broken]),
        check(&reference, &[one], &[&ShareAtLeast::new(Broken, 0.9)]),
    ];
    expect![[r#"
        the reference "nobody" has no cases; check the file and the split
        two extractors are called "rules"; give each its own name
        two extractors are called "(empty)"; give each its own name
        "elsewhere" has none of the 4 reference cases; give both sides the same keys, such as question_sha256
        the metric broken gives no number for Symptom-Name of the case a; correct the metric
        the metric broken>=0.90 gives no number for Symptom-Name of the case a; correct the metric"#]]
    .assert_eq(&errors.join("\n"));
    assert!(matches!(compare(&reference, &[], &[], settings(0)), Ok(comparison) if comparison.extractors.len() == 1));
}

#[test]
fn more_metrics_join_the_built_in_ones() {
    let metric = ShareAtLeast::new(WordOverlap, 0.9);
    let comparison =
        compare(&records("reader", REFERENCE), &[records("rules", RULES)], &[&metric], settings(0)).unwrap();
    let last = comparison.extractors[0].scores.last().unwrap();
    assert_eq!(last.metric, "words>=0.90");
    // Three of the nine pairs: the symptoms of a and both ages; the rest misses words or stands elsewhere.
    assert!((last.estimate.unwrap().value.0 - 1.0 / 3.0).abs() < 1e-9, "{last:?}");
    check_xml(&plot::svg(&comparison, "with ≥ 0.90"));
}

#[test]
fn every_slot_has_a_group() {
    assert_eq!(compared_slots().count(), 28);
    let sizes = Group::ALL.map(|group| compared_slots().filter(|slot| slot.group() == group).count());
    assert_eq!(sizes, [8, 2, 16, 2]);
}

/// A well-formed document: tags nest, text holds no bare `<` or `&`, no character is forbidden (XML 1.0).
fn check_xml(text: &str) {
    assert!(text.starts_with("<svg ") && text.ends_with("</svg>\n"));
    assert!(!text.chars().any(|c| (c.is_control() && c != '\n') || matches!(c, '\u{fffe}' | '\u{ffff}')));
    let mut open: Vec<&str> = Vec::new();
    for part in text.split('<').skip(1) {
        let (tag, content) = part.split_once('>').expect("every < opens a tag");
        assert!(!content.contains('>'), "a bare > in {content:?}");
        for entity in part.split('&').skip(1) {
            let (name, _) = entity.split_once(';').expect("every & begins an entity");
            assert!(matches!(name, "amp" | "lt" | "gt" | "quot" | "#39"), "{name:?}");
        }
        assert_eq!(tag.matches('"').count() % 2, 0, "quotes pair in {tag:?}");
        let name = tag.trim_start_matches('/').split([' ', '/', '\n']).next().unwrap();
        let known = ["svg", "title", "desc", "rect", "text", "line", "path", "g"];
        assert!(known.contains(&name), "no element but ours: {name:?}");
        if let Some(name) = tag.strip_prefix('/') {
            assert_eq!(open.pop(), Some(name));
        } else if !tag.ends_with('/') {
            open.push(name);
        }
    }
    assert!(open.is_empty());
}

fn any_text() -> impl Strategy<Value = String> {
    prop_oneof!["[a-c]{1,3}( [a-c]{1,3}){0,3}", "[ -~]{1,12}", ".{1,8}", "(fever|dry cough|red|, |; ){1,4}"]
}

fn any_case() -> impl Strategy<Value = CaseSlots> {
    let slots = prop::sample::select(Slot::ALL.to_vec());
    prop::collection::btree_map(slots, prop::collection::vec(any_text(), 1..4), 0..6)
}

fn any_set(name: &'static str) -> impl Strategy<Value = RecordSet> {
    prop::collection::vec(any_case(), 1..6).prop_map(move |cases| {
        let mut set = RecordSet::new(name);
        for (place, slots) in cases.into_iter().enumerate() {
            set.insert(&[CaseKey::new(place.to_string())], slots).unwrap();
        }
        set
    })
}

fn few() -> Settings {
    Settings { bootstrap: Bootstrap { n_resamples: NonZeroU32::new(20).unwrap(), seed: 3 }, n_worst: 5 }
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 200, failure_persistence: None, ..ProptestConfig::default() })]

    #[test]
    fn metrics_are_shares_symmetric_and_one_for_equal_texts(first in any_text(), second in any_text()) {
        for metric in built_in() {
            let score = metric.score(&first, &second);
            prop_assert!((0.0..=1.0).contains(&score), "{} {score}", metric.name());
            prop_assert_eq!(score, metric.score(&second, &first));
            prop_assert_eq!(metric.score(&first, &first), 1.0);
        }
        let overlap = WordOverlap.score(&first, &second);
        prop_assert!(TokenF1.score(&first, &second) <= 1.0 && overlap <= 1.0);
    }

    #[test]
    fn edit_similarity_is_that_of_the_library(first in any_text(), second in any_text()) {
        let (first, second) = (normalise(&first), normalise(&second));
        let theirs = strsim::normalized_levenshtein(&first, &second);
        prop_assert!((EditSimilarity.score(&first, &second) - theirs).abs() < 1e-12);
    }

    #[test]
    fn normalising_twice_changes_nothing(text in any_text()) {
        let once = normalise(&text);
        prop_assert_eq!(normalise(&once), once);
    }

    #[test]
    fn scores_are_shares_and_the_ends_are_known(reference in any_set("reference"), mut other in any_set("other")) {
        let same = RecordSet { name: "same".to_owned(), ..reference.clone() };
        other.insert(&[CaseKey::new("elsewhere")], CaseSlots::new()).unwrap();
        let comparison = compare(&reference, &[same, other], &[], few()).unwrap();
        for extractor in &comparison.extractors {
            for estimate in extractor.scores.iter().filter_map(|score| score.estimate) {
                let all = [estimate.value.0, estimate.low.0, estimate.high.0];
                prop_assert!(all.iter().all(|share| (0.0..=1.0 + 1e-12).contains(share)), "{estimate:?}");
                match extractor.name.as_str() {
                    "same" => prop_assert!((estimate.value.0 - 1.0).abs() < 1e-12, "{estimate:?}"),
                    "(empty)" => prop_assert_eq!(all, [0.0; 3]),
                    _ => {}
                }
            }
        }
        prop_assert_eq!(comparison.extractors[0].errors.values().sum::<usize>(), 0);
        prop_assert_eq!(comparison.extractors[0].n_misplaced, 0);
        let n_by_slot: usize = comparison.extractors[1].slots.iter().map(|slot| slot.n_pairs).sum();
        prop_assert_eq!(n_by_slot, comparison.extractors[1].n_pairs);
    }

    #[test]
    fn the_order_of_cases_is_irrelevant(reference in any_set("reference"), other in any_set("other")) {
        let backwards = |set: &RecordSet| {
            let mut turned = RecordSet::new(set.name.clone());
            for (key, slots) in set.cases.iter().rev() {
                turned.insert(std::slice::from_ref(key), slots.clone()).unwrap();
            }
            turned
        };
        let one = compare(&reference, std::slice::from_ref(&other), &[], few()).unwrap();
        let turned = compare(&backwards(&reference), &[backwards(&other)], &[], few()).unwrap();
        prop_assert_eq!(table::text(&one), table::text(&turned));
        prop_assert_eq!(plot::svg(&one, "x"), plot::svg(&turned, "x"));
    }

    #[test]
    fn no_text_breaks_the_plot_or_the_table(name in "\\PC{0,20}|[<>&'\"\\]!\\-/a-z]{0,30}|.{0,10}", title in ".{0,40}|</title><script>", value in any_text()) {
        let set = |name: &str, value: &str| {
            let mut set = RecordSet::new(name);
            let slots = BTreeMap::from([(Slot::SymptomName, vec![value.to_owned()])]);
            set.insert(&[CaseKey::new(format!("{name}<![CDATA["))], slots.clone()).unwrap();
            set.insert(&[CaseKey::new("\u{1b}]0;x\u{7}")], slots).unwrap();
            set
        };
        prop_assume!(name != "(empty)");
        let comparison = compare(&set(&name, &value), &[set(&name, "\u{202e}</svg>\u{0}")], &[], few()).unwrap();
        check_xml(&plot::svg(&comparison, &title));
        let steers = |character: char| character.is_control() && character != '\n';
        prop_assert!(!table::text(&comparison).chars().any(steers));
    }
}
