//! From scored pairs to a [`Comparison`].

use std::collections::{BTreeMap, BTreeSet};

use super::bootstrap::{Bootstrap, CONFIDENCE, Column, Interval, Resamples};
use super::metrics::{PairMetric, built_in};
use super::report::{
    Comparison, Difference, Estimate, ExtractorReport, GroupReport, MetricEstimate, MetricNames, MetricScore,
    Misplacement, Rounded, SlotReport, VERSION, WorstError,
};
use super::score::{CompareError, ErrorKind, Scored, ScoredPair, score};
use super::{CaseKey, CaseSlots, EMPTY_NAME, Group, RecordSet, compared_slots};
use crate::record::slots::Slot;

/// How records are compared.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Settings {
    /// The intervals.
    pub bootstrap: Bootstrap,
    /// How many of the worst errors of each extractor are listed.
    pub n_worst: usize,
}

impl Default for Settings {
    fn default() -> Self {
        Self { bootstrap: Bootstrap::default(), n_worst: 10 }
    }
}

/// Compares extractors with a reference, by the built-in metrics and then by `more_metrics`.
///
/// # Errors
/// A reference without cases, two extractors of one name, or what [`score`] finds.
pub fn compare(
    reference: &RecordSet,
    extractors: &[RecordSet],
    more_metrics: &[&dyn PairMetric],
    settings: Settings,
) -> Result<Comparison, CompareError> {
    if reference.cases.is_empty() {
        return Err(CompareError::NoReference(reference.name.clone()));
    }
    let mut names = BTreeSet::from([EMPTY_NAME]);
    if let Some(extractor) = extractors.iter().find(|extractor| !names.insert(&extractor.name)) {
        return Err(CompareError::NameTwice(extractor.name.clone()));
    }
    let metrics: Vec<&dyn PairMetric> = built_in().into_iter().chain(more_metrics.iter().copied()).collect();
    let empty = RecordSet { cases: nothing_of(reference), ..RecordSet::new(EMPTY_NAME) };
    let sets: Vec<&RecordSet> = extractors.iter().chain([&empty]).collect();
    let scored = sets.iter().map(|set| score(reference, set, &metrics)).collect::<Result<Vec<_>, _>>()?;

    let n_cases = reference.cases.len();
    let columns: Vec<Column> =
        scored.iter().flat_map(|scored| columns(&scored.pairs, metrics.len(), n_cases)).collect();
    let intervals = Intervals {
        n_metrics: metrics.len(),
        resamples: Resamples::draw(&columns, n_cases, settings.bootstrap),
        columns,
        metrics: &metrics,
    };
    let cases: Vec<&CaseKey> = reference.cases.keys().collect();
    let reports = sets.iter().zip(&scored).enumerate();
    let reports =
        reports.map(|(place, (set, scored))| report(set, scored, place, &intervals, &cases, settings.n_worst));
    let mut differences = Vec::new();
    for (first, first_set) in extractors.iter().enumerate() {
        for (second, second_set) in extractors.iter().enumerate().skip(first + 1) {
            let scores = intervals.differences(first, second);
            differences.push(Difference { first: first_set.name.clone(), second: second_set.name.clone(), scores });
        }
    }
    Ok(Comparison {
        version: VERSION,
        reference: reference.name.clone(),
        n_cases,
        // The empty extractor's pairs are just the filled slots of the reference.
        n_filled: scored.last().map_or(0, |scored| scored.pairs.len()),
        n_resamples: settings.bootstrap.n_resamples.get(),
        seed: settings.bootstrap.seed,
        confidence: Rounded(CONFIDENCE),
        metrics: metrics
            .iter()
            .map(|metric| MetricNames { name: metric.name().to_owned(), title: metric.title().to_owned() })
            .collect(),
        extractors: reports.collect(),
        differences,
        judge: None,
    })
}

fn nothing_of(reference: &RecordSet) -> BTreeMap<CaseKey, CaseSlots> {
    reference.cases.keys().map(|key| (key.clone(), CaseSlots::new())).collect()
}

/// One extractor's columns: the metrics, then precision, then recall.
fn columns(pairs: &[ScoredPair], n_metrics: usize, n_cases: usize) -> Vec<Column> {
    let mut columns = vec![Column(vec![(0.0, 0.0); n_cases]); n_metrics + 2];
    let mut add = |column: usize, case: usize, numerator: f64| {
        let (sum, n) = &mut columns[column].0[case];
        *sum += numerator;
        *n += 1.0;
    };
    for pair in pairs {
        for (metric, score) in pair.scores.iter().enumerate() {
            if let Some(score) = score {
                add(metric, pair.case, *score);
            }
        }
        let is_both = f64::from(u8::from(!pair.reference.is_empty() && !pair.candidate.is_empty()));
        if !pair.candidate.is_empty() {
            add(n_metrics, pair.case, is_both);
        }
        if !pair.reference.is_empty() {
            add(n_metrics + 1, pair.case, is_both);
        }
    }
    columns
}

/// The columns of all extractors, one after the other, and their resamples.
struct Intervals<'a> {
    n_metrics: usize,
    columns: Vec<Column>,
    resamples: Resamples,
    metrics: &'a [&'a dyn PairMetric],
}

impl Intervals<'_> {
    /// The column of an extractor, by both their places.
    fn place(&self, extractor: usize, column: usize) -> usize {
        extractor * (self.n_metrics + 2) + column
    }

    fn estimate(&self, extractor: usize, column: usize) -> Option<Estimate> {
        let place = self.place(extractor, column);
        Some(estimate(self.columns.get(place)?.estimate()?, self.resamples.interval(place)))
    }

    fn differences(&self, first: usize, second: usize) -> Vec<MetricEstimate> {
        let of_metric = |column| {
            let (first, second) = (self.place(first, column), self.place(second, column));
            let value = self.columns.get(first)?.estimate()? - self.columns.get(second)?.estimate()?;
            Some(estimate(value, self.resamples.difference(first, second)))
        };
        self.by_metric(of_metric)
    }

    fn by_metric(&self, estimate_of: impl Fn(usize) -> Option<Estimate>) -> Vec<MetricEstimate> {
        let metrics = self.metrics.iter().enumerate();
        metrics
            .map(|(place, metric)| MetricEstimate { metric: metric.name().to_owned(), estimate: estimate_of(place) })
            .collect()
    }
}

/// Without a resample that defines it, a number is its own interval.
fn estimate(value: f64, interval: Option<Interval>) -> Estimate {
    let Interval { low, high } = interval.unwrap_or(Interval { low: value, high: value });
    Estimate { value: Rounded(value), low: Rounded(low), high: Rounded(high) }
}

fn report(
    set: &RecordSet,
    scored: &Scored,
    place: usize,
    intervals: &Intervals<'_>,
    cases: &[&CaseKey],
    n_worst: usize,
) -> ExtractorReport {
    let all: Vec<&ScoredPair> = scored.pairs.iter().collect();
    let slots: Vec<SlotReport> =
        compared_slots().map(|slot| slot_report(slot, &all, intervals.metrics, cases.len())).collect();
    let group_of = |group| group_report(group, &all, &slots, intervals.metrics);
    let mut counts: BTreeMap<(Slot, Slot), usize> = BTreeMap::new();
    for pair in &all {
        for to in &pair.belongs_to {
            *counts.entry((pair.slot, *to)).or_default() += 1;
        }
    }
    let mut misplacements: Vec<Misplacement> =
        counts.into_iter().map(|((from, to), n_values)| Misplacement { from, to, n_values }).collect();
    misplacements.sort_by_key(|misplacement| std::cmp::Reverse(misplacement.n_values));
    ExtractorReport {
        name: set.name.clone(),
        n_missing_cases: scored.n_missing_cases,
        n_other_cases: scored.n_other_cases,
        n_pairs: all.len(),
        scores: intervals.by_metric(|column| intervals.estimate(place, column)),
        precision: intervals.estimate(place, intervals.n_metrics),
        recall: intervals.estimate(place, intervals.n_metrics + 1),
        n_misplaced: all.iter().map(|pair| pair.belongs_to.len()).sum(),
        misplacements,
        groups: Group::ALL.map(group_of).into(),
        slots,
        errors: count_errors(&all),
        worst: worst(&all, cases, n_worst),
    }
}

fn slot_report(slot: Slot, all: &[&ScoredPair], metrics: &[&dyn PairMetric], n_cases: usize) -> SlotReport {
    let pairs: Vec<&ScoredPair> = all.iter().copied().filter(|pair| pair.slot == slot).collect();
    let count = |wanted: fn(&ScoredPair) -> bool| pairs.iter().filter(|pair| wanted(pair)).count();
    let n_reference = count(|pair| !pair.reference.is_empty());
    let n_candidate = count(|pair| !pair.candidate.is_empty());
    let n_both = count(|pair| !pair.reference.is_empty() && !pair.candidate.is_empty());
    let share = |n: usize, of: usize| (of > 0).then(|| Rounded(n as f64 / of as f64));
    SlotReport {
        slot,
        n_pairs: pairs.len(),
        scores: averages(&pairs, metrics),
        n_reference,
        n_candidate,
        n_both,
        precision: share(n_both, n_candidate),
        recall: share(n_both, n_reference),
        completeness_reference: share(n_reference, n_cases).unwrap_or(Rounded(0.0)),
        completeness_candidate: share(n_candidate, n_cases).unwrap_or(Rounded(0.0)),
        n_misplaced: pairs.iter().map(|pair| pair.belongs_to.len()).sum(),
        errors: count_errors(&pairs),
    }
}

fn group_report(group: Group, all: &[&ScoredPair], slots: &[SlotReport], metrics: &[&dyn PairMetric]) -> GroupReport {
    let pairs: Vec<&ScoredPair> = all.iter().copied().filter(|pair| pair.slot.group() == group).collect();
    let mean = |completeness: fn(&SlotReport) -> Rounded| {
        let shares: Vec<f64> =
            slots.iter().filter(|slot| slot.slot.group() == group).map(|slot| completeness(slot).0).collect();
        Rounded(shares.iter().sum::<f64>() / shares.len().max(1) as f64)
    };
    GroupReport {
        group,
        n_pairs: pairs.len(),
        scores: averages(&pairs, metrics),
        completeness_reference: mean(|slot| slot.completeness_reference),
        completeness_candidate: mean(|slot| slot.completeness_candidate),
    }
}

fn averages(pairs: &[&ScoredPair], metrics: &[&dyn PairMetric]) -> Vec<MetricScore> {
    let average = |place: usize| {
        let scores: Vec<f64> = pairs.iter().filter_map(|pair| *pair.scores.get(place)?).collect();
        (!scores.is_empty()).then(|| Rounded(scores.iter().sum::<f64>() / scores.len() as f64))
    };
    let metrics = metrics.iter().enumerate();
    metrics.map(|(place, metric)| MetricScore { metric: metric.name().to_owned(), score: average(place) }).collect()
}

fn count_errors(pairs: &[&ScoredPair]) -> BTreeMap<ErrorKind, usize> {
    let mut counts: BTreeMap<ErrorKind, usize> = ErrorKind::ALL.map(|kind| (kind, 0)).into();
    for kind in pairs.iter().filter_map(|pair| pair.error) {
        *counts.entry(kind).or_default() += 1;
    }
    counts
}

fn worst(pairs: &[&ScoredPair], cases: &[&CaseKey], n_worst: usize) -> Vec<WorstError> {
    let mut errors: Vec<WorstError> = pairs
        .iter()
        .filter_map(|pair| {
            Some(WorstError {
                case: (*cases.get(pair.case)?).clone(),
                slot: pair.slot,
                kind: pair.error?,
                score: Rounded(pair.scores.first().copied().flatten().unwrap_or(0.0)),
                reference: pair.reference.clone(),
                candidate: pair.candidate.clone(),
                belongs_to: pair.belongs_to.iter().copied().collect(),
            })
        })
        .collect();
    let length = |error: &WorstError| error.reference.chars().count().max(error.candidate.chars().count());
    // Most of the worst score 0; the longest of them lose most. The sort is stable, so case and slot decide last.
    errors.sort_by(|first, second| {
        first.score.0.total_cmp(&second.score.0).then_with(|| length(second).cmp(&length(first)))
    });
    errors.truncate(n_worst);
    errors
}
