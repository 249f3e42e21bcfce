//! Scores of two texts, from 0 (nothing in common) to 1 (equal): the lexical ones of MedRoundsQA, appendix B.3, and the
//! seam for those that need a model.

use std::collections::{BTreeMap, BTreeSet};

use unicode_normalization::UnicodeNormalization;

use crate::record::slots::Slot;

/// Punctuation that is no part of a word at its ends. Signs with a meaning in findings, such as `%`, `+`, `<` and `°`,
/// are left.
const AROUND_WORDS: [char; 18] =
    ['.', ',', ';', ':', '!', '?', '(', ')', '[', ']', '{', '}', '"', '\'', '“', '”', '‘', '’'];

/// A score of a candidate text against a reference text.
///
/// The texts are the values of one slot joined with `", "`, neither of them blank, otherwise as they stand in the
/// records. A metric that asks an embedder or a judge prepares its answers beforehand; this call does not fail.
pub trait PairMetric {
    /// The name in tables and in `--json`: one word.
    fn name(&self) -> &str;

    /// The name in the plot.
    fn title(&self) -> &str {
        self.name()
    }

    /// The score. What is below 0 or above 1 counts as 0 or 1; a score that is no number fails the comparison.
    fn score(&self, reference: &str, candidate: &str) -> f64;

    /// The score of texts that stand in this slot, for a metric that looks at it. None where the metric has no score for
    /// them: such a pair counts neither for nor against, and its averages are over the other pairs.
    fn score_in(&self, _slot: Slot, reference: &str, candidate: &str) -> Option<f64> {
        Some(self.score(reference, candidate))
    }
}

/// The metrics that need nothing but the texts. The first of them orders errors by their weight.
pub fn built_in() -> [&'static dyn PairMetric; 3] {
    [&EditSimilarity, &WordOverlap, &TokenF1]
}

/// Normalised Levenshtein similarity: 1 less the edits over the characters of the longer text (MedRoundsQA, B.3).
#[derive(Clone, Copy, Debug)]
pub struct EditSimilarity;

impl PairMetric for EditSimilarity {
    fn name(&self) -> &str {
        "edit"
    }

    fn title(&self) -> &str {
        "Edit similarity"
    }

    fn score(&self, reference: &str, candidate: &str) -> f64 {
        edit_similarity(&normalise(reference), &normalise(candidate))
    }
}

/// Jaccard overlap of the sets of words (MedRoundsQA, B.3).
#[derive(Clone, Copy, Debug)]
pub struct WordOverlap;

impl PairMetric for WordOverlap {
    fn name(&self) -> &str {
        "words"
    }

    fn title(&self) -> &str {
        "Word overlap"
    }

    fn score(&self, reference: &str, candidate: &str) -> f64 {
        let (reference, candidate) = (normalise(reference), normalise(candidate));
        let reference_words: BTreeSet<&str> = words(&reference).collect();
        let candidate_words: BTreeSet<&str> = words(&candidate).collect();
        let n_common = reference_words.intersection(&candidate_words).count();
        let n_all = reference_words.len() + candidate_words.len() - n_common;
        ratio_or_equality(n_common, n_all, &reference, &candidate)
    }
}

/// F1 of the words, a word counted as often as it stands on both sides (SQuAD, Rajpurkar et al. 2016, section 6.1).
#[derive(Clone, Copy, Debug)]
pub struct TokenF1;

impl PairMetric for TokenF1 {
    fn name(&self) -> &str {
        "f1"
    }

    fn title(&self) -> &str {
        "Token F1"
    }

    fn score(&self, reference: &str, candidate: &str) -> f64 {
        let (reference, candidate) = (normalise(reference), normalise(candidate));
        let mut left_over: BTreeMap<&str, usize> = BTreeMap::new();
        for word in words(&reference) {
            *left_over.entry(word).or_default() += 1;
        }
        let mut n_common = 0;
        for word in words(&candidate) {
            if let Some(n) = left_over.get_mut(word).filter(|n| **n > 0) {
                *n -= 1;
                n_common += 1;
            }
        }
        let n_words = words(&reference).count() + words(&candidate).count();
        ratio_or_equality(2 * n_common, n_words, &reference, &candidate)
    }
}

/// Another metric made a yes or no, so that its average is the share of pairs that reach the threshold: the adequacy
/// of MedRoundsQA, B.3, is a judge's score with the threshold 0.90.
#[derive(Clone, Debug)]
pub struct ShareAtLeast<Metric> {
    metric: Metric,
    threshold: f64,
    name: String,
    title: String,
}

impl<Metric: PairMetric> ShareAtLeast<Metric> {
    /// 1 where `metric` gives `threshold` or more, 0 elsewhere.
    pub fn new(metric: Metric, threshold: f64) -> Self {
        let name = format!("{}>={threshold:.2}", metric.name());
        let title = format!("{} ≥ {threshold:.2}", metric.title());
        Self { metric, threshold, name, title }
    }
}

impl<Metric: PairMetric> PairMetric for ShareAtLeast<Metric> {
    fn name(&self) -> &str {
        &self.name
    }

    fn title(&self) -> &str {
        &self.title
    }

    fn score(&self, reference: &str, candidate: &str) -> f64 {
        self.reached(self.metric.score(reference, candidate))
    }

    fn score_in(&self, slot: Slot, reference: &str, candidate: &str) -> Option<f64> {
        self.metric.score_in(slot, reference, candidate).map(|score| self.reached(score))
    }
}

impl<Metric> ShareAtLeast<Metric> {
    fn reached(&self, score: f64) -> f64 {
        // A comparison would turn a score that is no number into a no.
        if score.is_nan() { score } else { f64::from(u8::from(score >= self.threshold)) }
    }
}

/// The form in which texts are compared: canonically composed (NFC), without regard to letter case, white space
/// collapsed.
///
/// Case is folded by way of upper case, which unites what lower case alone keeps apart (`ß` and `ss`, `ς` and `σ`,
/// the micro sign and `μ`); `ı` then equals `i`, unlike in Unicode's own folding.
pub fn normalise(text: &str) -> String {
    let folded: String = text.nfc().flat_map(char::to_uppercase).flat_map(char::to_lowercase).nfc().collect();
    folded.split_whitespace().collect::<Vec<_>>().join(" ")
}

/// Levenshtein similarity of normalised texts.
pub(super) fn edit_similarity(reference: &str, candidate: &str) -> f64 {
    let reference: Vec<char> = reference.chars().collect();
    let candidate: Vec<char> = candidate.chars().collect();
    let n_longer = reference.len().max(candidate.len());
    // What both begin and end with needs no edits, and time goes with the product of the lengths that are left.
    let pairs = reference.iter().zip(&candidate);
    let n_first = pairs.take_while(|(one, other)| one == other).count();
    let (reference, candidate) = (&reference[n_first..], &candidate[n_first..]);
    let pairs = reference.iter().rev().zip(candidate.iter().rev());
    let n_last = pairs.take_while(|(one, other)| one == other).count();
    let (reference, candidate) = (&reference[..reference.len() - n_last], &candidate[..candidate.len() - n_last]);
    let n_edits = if reference.is_empty() || candidate.is_empty() {
        reference.len().max(candidate.len())
    } else {
        strsim::generic_levenshtein(&reference.to_vec(), &candidate.to_vec())
    };
    1.0 - n_edits as f64 / n_longer.max(1) as f64
}

/// Whether the similarity of two normalised texts is `threshold` or more.
pub(super) fn is_similar(first: &str, second: &str, threshold: f64) -> bool {
    let (n_first, n_second) = (first.chars().count(), second.chars().count());
    // The difference in length alone costs that many edits; most pairs end here.
    let bound = n_first.min(n_second) as f64 / n_first.max(n_second).max(1) as f64;
    bound >= threshold && edit_similarity(first, second) >= threshold
}

fn words(normalised: &str) -> impl Iterator<Item = &str> {
    normalised.split(' ').map(|word| word.trim_matches(AROUND_WORDS)).filter(|word| !word.is_empty())
}

/// Texts of punctuation only have no words: they agree if they are the same.
fn ratio_or_equality(numerator: usize, denominator: usize, reference: &str, candidate: &str) -> f64 {
    if denominator == 0 { f64::from(u8::from(reference == candidate)) } else { numerator as f64 / denominator as f64 }
}
