use super::*;
use expect_test::expect;
use proptest::prelude::*;
use std::collections::BTreeSet;
use std::fmt::Write;

fn near(found: f64, by_hand: f64) -> bool {
    (found - by_hand).abs() < 1e-12
}

fn all_near(found: Signals, (steps, disagreement, confidence): (f64, f64, f64)) -> bool {
    near(found.steps, steps) && near(found.disagreement, disagreement) && near(found.confidence, confidence)
}

fn signals(steps: f64, disagreement: f64, confidence: f64) -> Signals {
    Signals { steps, disagreement, confidence }
}

#[test]
fn bands_have_one_name_everywhere() {
    for band in Band::ALL {
        assert_eq!(serde_json::to_value(band).unwrap(), band.as_str());
        assert_eq!(Band::parse(&format!(" {}\n", band.as_str().to_uppercase())), Some(band));
    }
    assert!(Band::ALL.is_sorted());
    assert_eq!(["", "eas", "easy."].map(Band::parse), [None; 3]);
}

#[test]
fn answers_are_levelled_in_case_and_white_space_alone() {
    assert_eq!(canonical("  Giant\u{a0}Cell\t\nARTERITIS "), "giant cell arteritis");
    assert_eq!(canonical("SJÖGREN"), canonical("sjögren"));
    for (one, other) in [("A", "A."), ("giant-cell", "giant cell"), ("Sjögren", "Sjogren"), ("ab", "a b")] {
        assert_ne!(canonical(one), canonical(other));
    }
    assert_eq!(canonical(" \n"), "");
}

#[test]
fn nothing_comes_of_nothing() {
    assert_eq!((mean_steps(&[]), confidence(&[]), average(&[])), (None, None, None));
    assert_eq!(score(&[]), Scores::default());
}

/// One model's runs of a question, and what a hand finds in them.
struct ByHand {
    /// Steps, answer, confidence.
    runs: [(u32, &'static str, f64); 3],
    /// S of each cluster, by answer.
    clusters: &'static [(&'static str, f64)],
    steps: f64,
    /// Said by a judge.
    disagreement: f64,
    confidence: f64,
}

struct Question {
    name: &'static str,
    models: [ByHand; 2],
    /// L, H, C over both models.
    average: (f64, f64, f64),
    scaled: (f64, f64, f64),
    score: f64,
    band: Band,
}

/// Six questions, two models, three runs of each. The bounds are L: 5/2 to 17/2, H: 0 to 1, C: 5/12 to 11/12.
fn questions() -> [Question; 6] {
    [
        Question {
            name: "hard, split answers",
            models: [
                ByHand {
                    runs: [(7, "lupus", 0.5), (8, "sarcoidosis", 0.5), (9, "lymphoma", 0.5)],
                    // Each (1/3 + 1/2) / 2.
                    clusters: &[("lupus", 5.0 / 12.0), ("lymphoma", 5.0 / 12.0), ("sarcoidosis", 5.0 / 12.0)],
                    steps: 8.0,
                    disagreement: 1.0,
                    confidence: 5.0 / 12.0,
                },
                ByHand {
                    runs: [(7, "lupus", 0.5), (7, "lymphoma", 0.5), (7, "lupus", 0.5)],
                    // (2/3 + 1/2) / 2; (1/3 + 1/2) / 2.
                    clusters: &[("lupus", 7.0 / 12.0), ("lymphoma", 5.0 / 12.0)],
                    steps: 7.0,
                    disagreement: 0.5,
                    // (7/12 + 7/12 + 5/12) / 3
                    confidence: 19.0 / 36.0,
                },
            ],
            average: (15.0 / 2.0, 3.0 / 4.0, 17.0 / 36.0),
            // (15/2 − 5/2) / 6; (3/4 − 0) / 1; (17/36 − 15/36) / (1/2).
            scaled: (5.0 / 6.0, 3.0 / 4.0, 1.0 / 9.0),
            // (5/6 + 3/4 + 8/9) / 3 = (30 + 27 + 32) / 108
            score: 89.0 / 108.0,
            band: Band::Hard,
        },
        Question {
            name: "easiest",
            models: [
                ByHand {
                    runs: [(2, "Gout", 1.0), (2, "gout", 0.9), (2, " GOUT", 0.6)],
                    // (1 + 5/6) / 2
                    clusters: &[("gout", 11.0 / 12.0)],
                    steps: 2.0,
                    disagreement: 0.0,
                    confidence: 11.0 / 12.0,
                },
                ByHand {
                    runs: [(2, "gout", 0.6), (3, "gout", 0.9), (4, "gout", 1.0)],
                    clusters: &[("gout", 11.0 / 12.0)],
                    steps: 3.0,
                    disagreement: 0.0,
                    confidence: 11.0 / 12.0,
                },
            ],
            average: (5.0 / 2.0, 0.0, 11.0 / 12.0),
            scaled: (0.0, 0.0, 1.0),
            score: 0.0,
            band: Band::Easy,
        },
        Question {
            name: "medium, split answers",
            models: [
                ByHand {
                    runs: [(4, "measles", 0.6), (5, "rubella", 0.9), (6, "measles", 0.6)],
                    // (2/3 + 3/5) / 2; (1/3 + 9/10) / 2.
                    clusters: &[("measles", 19.0 / 30.0), ("rubella", 37.0 / 60.0)],
                    steps: 5.0,
                    disagreement: 1.0 / 3.0,
                    // (38/60 + 38/60 + 37/60) / 3
                    confidence: 113.0 / 180.0,
                },
                ByHand {
                    runs: [(4, "measles", 0.8), (4, "measles", 0.8), (4, "roseola", 0.2)],
                    // (2/3 + 4/5) / 2; (1/3 + 1/5) / 2.
                    clusters: &[("measles", 11.0 / 15.0), ("roseola", 4.0 / 15.0)],
                    steps: 4.0,
                    disagreement: 2.0 / 3.0,
                    // (11/15 + 11/15 + 4/15) / 3
                    confidence: 26.0 / 45.0,
                },
            ],
            // C: (113/180 + 104/180) / 2.
            average: (9.0 / 2.0, 1.0 / 2.0, 217.0 / 360.0),
            // 2 / 6; 1/2; (217/360 − 150/360) / (1/2).
            scaled: (1.0 / 3.0, 1.0 / 2.0, 67.0 / 180.0),
            // (60/180 + 90/180 + 113/180) / 3
            score: 263.0 / 540.0,
            band: Band::Medium,
        },
        Question {
            name: "hardest",
            models: [
                ByHand {
                    runs: [(8, "a", 0.5), (8, "b", 0.5), (8, "c", 0.5)],
                    clusters: &[("a", 5.0 / 12.0), ("b", 5.0 / 12.0), ("c", 5.0 / 12.0)],
                    steps: 8.0,
                    disagreement: 1.0,
                    confidence: 5.0 / 12.0,
                },
                ByHand {
                    runs: [(9, "d", 0.7), (8, "d.", 0.5), (10, "e", 0.3)],
                    // (1/3 + 7/10) / 2; (1/3 + 1/2) / 2; (1/3 + 3/10) / 2.
                    clusters: &[("d", 31.0 / 60.0), ("d.", 5.0 / 12.0), ("e", 19.0 / 60.0)],
                    steps: 9.0,
                    disagreement: 1.0,
                    // (31/60 + 25/60 + 19/60) / 3
                    confidence: 5.0 / 12.0,
                },
            ],
            average: (17.0 / 2.0, 1.0, 5.0 / 12.0),
            scaled: (1.0, 1.0, 0.0),
            score: 1.0,
            band: Band::Hard,
        },
        Question {
            name: "easy, one doubt",
            models: [
                ByHand {
                    runs: [(2, "asthma", 0.8), (3, "asthma", 0.8), (4, "asthma", 0.8)],
                    // (1 + 4/5) / 2
                    clusters: &[("asthma", 9.0 / 10.0)],
                    steps: 3.0,
                    disagreement: 0.0,
                    confidence: 9.0 / 10.0,
                },
                ByHand {
                    runs: [(3, "asthma", 0.9), (3, "copd", 0.5), (3, "asthma", 0.7)],
                    // (2/3 + 4/5) / 2; (1/3 + 1/2) / 2.
                    clusters: &[("asthma", 11.0 / 15.0), ("copd", 5.0 / 12.0)],
                    steps: 3.0,
                    disagreement: 0.5,
                    // (44/60 + 44/60 + 25/60) / 3
                    confidence: 113.0 / 180.0,
                },
            ],
            // C: (162/180 + 113/180) / 2.
            average: (3.0, 1.0 / 4.0, 55.0 / 72.0),
            // (1/2) / 6; 1/4; (55/72 − 30/72) / (1/2).
            scaled: (1.0 / 12.0, 1.0 / 4.0, 25.0 / 36.0),
            // (3/36 + 9/36 + 11/36) / 3
            score: 23.0 / 108.0,
            band: Band::Easy,
        },
        Question {
            name: "medium, models differ",
            models: [
                ByHand {
                    runs: [(5, "Crohn  disease", 0.5), (6, "crohn disease", 0.5), (7, "Crohn disease", 0.5)],
                    // (1 + 1/2) / 2
                    clusters: &[("crohn disease", 3.0 / 4.0)],
                    steps: 6.0,
                    disagreement: 0.5,
                    confidence: 3.0 / 4.0,
                },
                ByHand {
                    runs: [(4, "coeliac disease", 0.4), (5, "crohn disease", 0.5), (6, "giardiasis", 0.6)],
                    // (1/3 + 2/5) / 2; (1/3 + 1/2) / 2; (1/3 + 3/5) / 2.
                    clusters: &[
                        ("coeliac disease", 11.0 / 30.0),
                        ("crohn disease", 5.0 / 12.0),
                        ("giardiasis", 7.0 / 15.0),
                    ],
                    steps: 5.0,
                    disagreement: 0.5,
                    // (22/60 + 25/60 + 28/60) / 3
                    confidence: 5.0 / 12.0,
                },
            ],
            // C: (9/12 + 5/12) / 2.
            average: (11.0 / 2.0, 1.0 / 2.0, 7.0 / 12.0),
            // 3 / 6; 1/2; (7/12 − 5/12) / (1/2).
            scaled: (1.0 / 2.0, 1.0 / 2.0, 1.0 / 3.0),
            // (1/2 + 1/2 + 2/3) / 3
            score: 5.0 / 9.0,
            band: Band::Medium,
        },
    ]
}

#[test]
fn six_questions_by_hand() {
    let questions = questions();
    let mut averages = Vec::new();
    for question in &questions {
        let mut models = Vec::new();
        for by_hand in &question.models {
            let runs = by_hand.runs.map(|(n_steps, answer, confidence)| Run { n_steps, answer, confidence });
            let clusters = answer_clusters(&runs);
            let answers: Vec<&str> = clusters.keys().map(String::as_str).collect();
            assert_eq!(answers, by_hand.clusters.iter().map(|(answer, _)| *answer).collect::<Vec<_>>());
            for (answer, score) in by_hand.clusters {
                assert!(
                    near(clusters[*answer].score, *score),
                    "{}, {answer}: {}",
                    question.name,
                    clusters[*answer].score
                );
            }
            let found = signals(mean_steps(&runs).unwrap(), by_hand.disagreement, confidence(&runs).unwrap());
            let expected = (by_hand.steps, by_hand.disagreement, by_hand.confidence);
            assert!(all_near(found, expected), "{}: {found:?}", question.name);
            models.push(found);
        }
        let found = average(&models).unwrap();
        assert!(all_near(found, question.average), "{}: {found:?}", question.name);
        averages.push(found);
    }

    let found = score(&averages);
    let mut account = String::new();
    for (question, item) in questions.iter().zip(&found.items) {
        assert!(all_near(item.scaled, question.scaled), "{}: {item:?}", question.name);
        assert!(near(item.score, question.score), "{}: {item:?}", question.name);
        assert_eq!(item.band, Some(question.band), "{}", question.name);
        writeln!(account, "{}: {:.6}", question.name, item.score).unwrap();
    }
    // In units of 1/540 the scores are 0, 115 | 263, 300 | 445, 540: squares of 6612.5 + 684.5 + 4512.5 = 11 809.5. The
    // rivals are dearer: 0 | 115, 263, 300 | 445, 540 costs 19 166 + 4512.5, and 0, 115 | 263, 300, 445 | 540 costs
    // 6612.5 + 18 506.
    for cluster in &found.clusters {
        writeln!(account, "{cluster:?}").unwrap();
    }
    expect![[r#"
        hard, split answers: 0.824074
        easiest: 0.000000
        medium, split answers: 0.487037
        hardest: 1.000000
        easy, one doubt: 0.212963
        medium, models differ: 0.555556
        Cluster { band: Easy, n: 2, least: 0.0, greatest: 0.21296296296296294, mean: 0.10648148148148147 }
        Cluster { band: Medium, n: 2, least: 0.48703703703703694, greatest: 0.5555555555555555, mean: 0.5212962962962961 }
        Cluster { band: Hard, n: 2, least: 0.8240740740740741, greatest: 1.0, mean: 0.912037037037037 }
    "#]]
    .assert_eq(&account);
    let bounds = found.bounds.unwrap();
    assert_eq!((bounds.steps, bounds.disagreement), ((2.5, 8.5), (0.0, 1.0)));
    assert!(near(bounds.confidence.0, 5.0 / 12.0) && near(bounds.confidence.1, 11.0 / 12.0), "{bounds:?}");
    assert!(near(found.clusters[1].mean, 563.0 / 1080.0));
}

#[test]
fn a_signal_that_is_the_same_for_all_says_nothing() {
    // Steps alone differ: 0, 1/2, 1. Each score has 1/3 of the confidence that is scaled to 0.
    let found = score(&[signals(4.0, 0.5, 0.9), signals(2.0, 0.5, 0.9), signals(3.0, 0.5, 0.9)]);
    assert_eq!(found.items[1].scaled, signals(0.0, 0.0, 0.0));
    let scores: Vec<f64> = found.items.iter().map(|item| item.score).collect();
    assert_eq!(scores, [2.0 / 3.0, 1.0 / 3.0, 0.5]);
    let bands: Vec<_> = found.items.iter().map(|item| item.band.unwrap()).collect();
    assert_eq!(bands, [Band::Hard, Band::Easy, Band::Medium]);
}

#[test]
fn two_different_scores_are_no_three_bands() {
    let found =
        score(&[signals(2.0, 0.0, 0.9), signals(3.0, 0.0, 0.9), signals(2.0, 0.0, 0.9), signals(3.0, 0.0, 0.9)]);
    assert!(found.items.iter().all(|item| item.band.is_none()), "{found:?}");
    assert_eq!((found.items.len(), found.clusters.len()), (4, 0));
    assert_eq!(found.bounds.unwrap().steps, (2.0, 3.0));
}

#[test]
fn known_bounds_score_a_question_that_is_beyond_them() {
    let bounds = Bounds { steps: (2.0, 4.0), disagreement: (0.5, 0.5), confidence: (0.25, 0.75) };
    let found = scaled(signals(5.0, 0.75, 0.0), &bounds);
    assert_eq!(found, signals(1.5, 0.0, -0.5));
    assert_eq!(combine(found), 1.0);
}

/// Many equal ones among few values, and others of any size.
fn some_signals() -> impl Strategy<Value = Signals> {
    let few = (0..4_u32, 0..3_u32, 0..3_u32)
        .prop_map(|(steps, h, c)| signals(f64::from(steps), f64::from(h) / 6.0, f64::from(c) / 6.0));
    let any = (0.0..50.0, 0.0..=1.0, 0.0..=1.0).prop_map(|(steps, h, c)| signals(steps, h, c));
    prop_oneof![few, any]
}

fn some_runs() -> impl Strategy<Value = Vec<(u32, &'static str, f64)>> {
    let answer = prop::sample::select(vec!["gout", " Gout", "GOUT\n", "gout.", "", "pseudo  gout", "pseudo gout"]);
    prop::collection::vec((0..30_u32, answer, 0.0..=1.0), 1..8)
}

fn runs<'a>(of: &[(u32, &'a str, f64)]) -> Vec<Run<'a>> {
    of.iter().map(|(n_steps, answer, confidence)| Run { n_steps: *n_steps, answer, confidence: *confidence }).collect()
}

proptest! {
    #[test]
    fn the_canonical_form_is_final(answer in "\\PC{0,12}|[aAΣσςİI \t\n\u{a0}\u{2003}.]{0,12}") {
        let found = canonical(&answer);
        prop_assert_eq!(&canonical(&found), &found);
        prop_assert_eq!(&canonical(&format!("\t{answer} ")), &found);
        prop_assert!(!found.contains("  ") && found.trim() == found);
    }

    /// The mean of S over the runs is half the sum of the clusters' squared shares and the mean confidence.
    #[test]
    fn confidence_is_agreement_and_trust(
        (of, shuffled) in some_runs().prop_flat_map(|of| (Just(of.clone()), Just(of).prop_shuffle()))
    ) {
        let n = of.len() as f64;
        let answers: BTreeSet<String> = of.iter().map(|(_, answer, _)| canonical(answer)).collect();
        let count = |answer: &String| of.iter().filter(|(_, other, _)| canonical(other) == *answer).count() as f64;
        let squares: f64 = answers.iter().map(|answer| (count(answer) / n).powi(2)).sum();
        let trust = of.iter().map(|(_, _, confidence)| confidence).sum::<f64>() / n;
        let found = confidence(&runs(&of)).unwrap();
        prop_assert!(near(found, f64::midpoint(squares, trust)), "{}", found);
        prop_assert_eq!(confidence(&runs(&shuffled)), Some(found));
        let n_steps: f64 = of.iter().map(|(n_steps, _, _)| f64::from(*n_steps)).sum();
        prop_assert_eq!(mean_steps(&runs(&shuffled)), Some(n_steps / n));
    }

    #[test]
    fn the_order_of_models_does_not_matter(
        (models, shuffled) in prop::collection::vec(some_signals(), 1..6)
            .prop_flat_map(|models| (Just(models.clone()), Just(models).prop_shuffle()))
    ) {
        prop_assert_eq!(average(&models), average(&shuffled));
    }

    #[test]
    fn the_order_of_questions_does_not_matter(
        (all, places) in prop::collection::vec(some_signals(), 1..40)
            .prop_flat_map(|all| {
                let places: Vec<usize> = (0..all.len()).collect();
                (Just(all), Just(places).prop_shuffle())
            })
    ) {
        let found = score(&all);
        let shuffled = score(&places.iter().map(|place| all[*place]).collect::<Vec<_>>());
        prop_assert_eq!((&found.bounds, &found.clusters), (&shuffled.bounds, &shuffled.clusters));
        for (item, place) in shuffled.items.iter().zip(&places) {
            prop_assert_eq!(item, &found.items[*place]);
        }
    }

    #[test]
    fn bands_follow_scores_and_a_verifier_finds_the_same(all in prop::collection::vec(some_signals(), 1..40)) {
        let found = score(&all);
        let bounds = found.bounds.unwrap();
        for (signals, item) in all.iter().zip(&found.items) {
            prop_assert_eq!(item.scaled, scaled(*signals, &bounds));
            prop_assert_eq!(item.score, combine(item.scaled));
            prop_assert!((0.0..=1.0).contains(&item.score));
        }
        let different: BTreeSet<u64> = found.items.iter().map(|item| item.score.to_bits()).collect();
        let banded = different.len() >= 3;
        prop_assert!(found.items.iter().all(|item| item.band.is_some() == banded));
        let bands: Vec<Band> = found.clusters.iter().map(|cluster| cluster.band).collect();
        prop_assert_eq!(bands, if banded { Band::ALL.to_vec() } else { vec![] });
        // Bands do not overlap, so equal scores share one.
        prop_assert!(found.clusters.windows(2).all(|pair| pair[0].greatest < pair[1].least));
        for cluster in &found.clusters {
            let members: Vec<f64> =
                found.items.iter().filter(|item| item.band == Some(cluster.band)).map(|item| item.score).collect();
            prop_assert_eq!(members.len(), cluster.n);
            prop_assert!(members.iter().all(|score| (cluster.least..=cluster.greatest).contains(score)));
            prop_assert!(members.contains(&cluster.least) && members.contains(&cluster.greatest));
            prop_assert!(near(cluster.mean, members.iter().sum::<f64>() / members.len() as f64));
        }
    }
}
