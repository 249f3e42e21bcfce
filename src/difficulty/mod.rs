//! How difficult a question is, estimated from what several models answer to it, each asked several times
//! (MedRoundsQA, section 3.2 and appendix F).
//!
//! Each model gives three signals of a question: L, how many steps it reasons ([`mean_steps`]); H, how far its final
//! answers differ in meaning, which a judge says; C, how sure it is ([`confidence`]). They are averaged over the models
//! ([`average`]), scaled to 0 to 1 among all questions, combined to a score, and the scores divided into three bands
//! ([`score`]). A score and a band say something among the questions they were computed with, and nothing beyond.
//!
//! All values are IEEE doubles, computed in a fixed order and rounded nowhere: whoever follows the formulas gets the same
//! bits. Every mean of doubles is their sum from the least to the greatest, one addition after the other, divided by
//! their number, so that the order of runs, of models and of questions does not matter. All inputs are finite, and
//! so are the differences of any two; other values panic in builds with debug assertions and give useless scores elsewhere.

pub mod kmeans;

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use std::collections::BTreeMap;

/// A group of questions of like difficulty.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum Band {
    Easy,
    Medium,
    Hard,
}

impl Band {
    /// By rising difficulty.
    pub const ALL: [Self; 3] = [Self::Easy, Self::Medium, Self::Hard];

    /// The name in files: `easy`, `medium`, `hard`.
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Easy => "easy",
            Self::Medium => "medium",
            Self::Hard => "hard",
        }
    }

    /// The band of this name in upper or lower case, with or without white space around it.
    pub fn parse(text: &str) -> Option<Self> {
        Self::ALL.into_iter().find(|band| band.as_str().eq_ignore_ascii_case(text.trim()))
    }
}

/// One sample of one model: what it answered to a question.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Run<'a> {
    /// Steps of its reasoning.
    pub n_steps: u32,
    /// Its final answer, as given.
    pub answer: &'a str,
    /// Its own confidence, 0 to 1.
    pub confidence: f64,
}

/// The form in which answers are compared: lower case, each run of white space one blank, none at the ends (Unicode's
/// notions of both). Nothing else is levelled: "A." and "A" are different answers.
pub fn canonical(answer: &str) -> String {
    answer.to_lowercase().split_whitespace().collect::<Vec<_>>().join(" ")
}

/// L of one model: the mean number of steps over its runs. `None` without runs.
pub fn mean_steps(runs: &[Run]) -> Option<f64> {
    let sum: u64 = runs.iter().map(|run| u64::from(run.n_steps)).sum();
    (!runs.is_empty()).then(|| sum as f64 / runs.len() as f64)
}

/// C of one model, 0 to 1: answers that are equal in their [`canonical`] form are a cluster; each run has the score of its
/// cluster, `S = (f + c) / 2` with the cluster's share f of the runs and its mean confidence c; C is the mean of S over
/// the runs. `None` without runs.
pub fn confidence(runs: &[Run]) -> Option<f64> {
    let clusters = answer_clusters(runs);
    mean(clusters.values().flat_map(|cluster| std::iter::repeat_n(cluster.score, cluster.n_runs)).collect())
}

/// Runs of one model with the same answer.
struct AnswerCluster {
    n_runs: usize,
    /// S of appendix F.
    score: f64,
}

/// By canonical answer.
fn answer_clusters(runs: &[Run]) -> BTreeMap<String, AnswerCluster> {
    let mut confidences: BTreeMap<String, Vec<f64>> = BTreeMap::new();
    for run in runs {
        confidences.entry(canonical(run.answer)).or_default().push(run.confidence);
    }
    let clusters = confidences.into_iter().filter_map(|(answer, confidences)| {
        let n_runs = confidences.len();
        let frequency = n_runs as f64 / runs.len() as f64;
        Some((answer, AnswerCluster { n_runs, score: (frequency + mean(confidences)?) / 2.0 }))
    });
    clusters.collect()
}

/// What models show of a question: of one model, averaged over models, or scaled among questions.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct Signals {
    /// L: steps of reasoning.
    pub steps: f64,
    /// H: how far the final answers differ in meaning, 0 to 1.
    pub disagreement: f64,
    /// C: how often the same answer comes, and how sure the models say they are, 0 to 1.
    pub confidence: f64,
}

/// The signals of one question from those of each model, every model with the same weight. `None` without models.
pub fn average(models: &[Signals]) -> Option<Signals> {
    let mean_of = |signal: fn(&Signals) -> f64| mean(models.iter().map(signal).collect());
    Some(Signals {
        steps: mean_of(|signals| signals.steps)?,
        disagreement: mean_of(|signals| signals.disagreement)?,
        confidence: mean_of(|signals| signals.confidence)?,
    })
}

/// The least and the greatest value of each signal among all questions.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
pub struct Bounds {
    pub steps: (f64, f64),
    pub disagreement: (f64, f64),
    pub confidence: (f64, f64),
}

impl Bounds {
    /// `None` without questions.
    fn of(signals: &[Signals]) -> Option<Self> {
        let extremes = |signal: fn(&Signals) -> f64| {
            let values = signals.iter().map(signal);
            Some((values.clone().min_by(f64::total_cmp)?, values.max_by(f64::total_cmp)?))
        };
        Some(Self {
            steps: extremes(|signals| signals.steps)?,
            disagreement: extremes(|signals| signals.disagreement)?,
            confidence: extremes(|signals| signals.confidence)?,
        })
    }
}

/// Min-max scaling: each signal becomes `(x − least) / (greatest − least)`, 0 to 1 for values within the bounds. A signal
/// that is the same for all questions says nothing of any of them and becomes 0.
pub fn scaled(signals: Signals, bounds: &Bounds) -> Signals {
    let share = |value: f64, (least, greatest): (f64, f64)| {
        if greatest > least { (value - least) / (greatest - least) } else { 0.0 }
    };
    Signals {
        steps: share(signals.steps, bounds.steps),
        disagreement: share(signals.disagreement, bounds.disagreement),
        confidence: share(signals.confidence, bounds.confidence),
    }
}

/// The difficulty score of scaled signals, equation 13: `d = ((L + H) + (1 − C)) / 3`, 0 to 1. If C is the same for all
/// questions, it is scaled to 0 and adds the same third to each score, which moves no band.
pub fn combine(scaled: Signals) -> f64 {
    ((scaled.steps + scaled.disagreement) + (1.0 - scaled.confidence)) / 3.0
}

/// One question among all.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Scored {
    pub scaled: Signals,
    /// See [`combine`].
    pub score: f64,
    /// `None` if there are fewer than three different scores among all questions.
    pub band: Option<Band>,
}

/// The scores of a band.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
pub struct Cluster {
    pub band: Band,
    /// Questions in it, at least one.
    pub n: usize,
    pub least: f64,
    pub greatest: f64,
    pub mean: f64,
}

/// All questions, and what their scores depend on.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Scores {
    /// In the order of the input.
    pub items: Vec<Scored>,
    /// `None` without questions.
    pub bounds: Option<Bounds>,
    /// One for each band by rising difficulty, or none if there are fewer than three different scores.
    pub clusters: Vec<Cluster>,
}

/// Scores all questions (appendix F): each signal is scaled among them ([`scaled`]) and combined ([`combine`]); k-means
/// in one dimension with k = 3, solved exactly ([`kmeans`]), divides the scores into groups, which are easy, medium and
/// hard by rising mean. Questions with equal scores are in the same band.
///
/// With fewer than three different scores three groups cannot be told apart, and no question gets a band. Scores are
/// different when their doubles are: two that only rounding sets apart count as two.
pub fn score(signals: &[Signals]) -> Scores {
    debug_assert!(
        signals.iter().all(|one| [one.steps, one.disagreement, one.confidence].into_iter().all(f64::is_finite)),
        "every signal must be finite"
    );
    let Some(bounds) = Bounds::of(signals) else { return Scores::default() };
    let mut items: Vec<Scored> = signals
        .iter()
        .map(|signals| {
            let scaled = scaled(*signals, &bounds);
            Scored { scaled, score: combine(scaled), band: None }
        })
        .collect();
    let scores: Vec<f64> = items.iter().map(|item| item.score).collect();
    let Some(boundaries) = kmeans::boundaries(&scores, Band::ALL.len()) else {
        return Scores { items, bounds: Some(bounds), clusters: Vec::new() };
    };
    let mut members: BTreeMap<Band, Vec<f64>> = BTreeMap::new();
    for item in &mut items {
        item.band = Band::ALL.get(kmeans::group(item.score, &boundaries)).copied();
        if let Some(band) = item.band {
            members.entry(band).or_default().push(item.score);
        }
    }
    let clusters = members.into_iter().filter_map(|(band, scores)| {
        let n = scores.len();
        let least = scores.iter().copied().min_by(f64::total_cmp)?;
        let greatest = scores.iter().copied().max_by(f64::total_cmp)?;
        Some(Cluster { band, n, least, greatest, mean: mean(scores)? })
    });
    Scores { clusters: clusters.collect(), items, bounds: Some(bounds) }
}

/// The sum from the least to the greatest, divided by the number: the same bits in whatever order the values come.
fn mean(mut values: Vec<f64>) -> Option<f64> {
    debug_assert!(values.iter().all(|value| value.is_finite()), "every value must be finite");
    values.sort_unstable_by(f64::total_cmp);
    let n = values.len() as f64;
    (!values.is_empty()).then(|| values.into_iter().fold(0.0, |sum, value| sum + value) / n)
}

#[cfg(test)]
mod tests;
