//! A [`Comparison`] as text: aligned columns, no colour, per cent with one decimal.

use std::fmt::Write as _;

use super::judge::{JudgeReport, shown_counts};
use super::report::{Comparison, Difference, Estimate, ExtractorReport, MetricScore, Rounded};
use super::{EMPTY_NAME, Group};

/// The widest a text of the records gets in a table, in characters.
const MAX_TEXT_CHARS: usize = 48;

/// The widest a case key gets: enough of a hash to find the case.
const MAX_KEY_CHARS: usize = 16;

/// What stands where there is no number.
const NONE: &str = "-";

/// The comparison for a terminal or a log. Widths count characters, so texts in wide scripts stand out of line.
pub fn text(comparison: &Comparison) -> String {
    let mut text = format!(
        "reference {}: {} cases, {} filled slots\nper cent; in brackets {:.0} % intervals, {} resamples of cases, seed {}\n\n",
        plain(&comparison.reference),
        comparison.n_cases,
        comparison.n_filled,
        comparison.confidence.0 * 100.0,
        comparison.n_resamples,
        comparison.seed,
    );
    text += &overview(comparison);
    if let Some(report) = &comparison.judge {
        let _ = write!(text, "\n{}", judge(report));
    }
    if !comparison.differences.is_empty() {
        text += "\nfirst less second; * where the interval leaves out 0\n";
        text += &differences(comparison);
    }
    for extractor in comparison.extractors.iter().filter(|extractor| extractor.name != EMPTY_NAME) {
        let name = plain(&extractor.name);
        let _ = write!(text, "\n{name}, slot by slot\n{}", slots(comparison, extractor));
        let _ = write!(text, "\n{name}, group by group\n{}", groups(comparison, extractor));
        if !extractor.misplacements.is_empty() {
            let _ = write!(text, "\n{name}, misplaced values\n{}", misplacements(extractor));
        }
        let _ = write!(text, "\n{name}, errors\n{}", errors(extractor));
        if !extractor.worst.is_empty() {
            let _ = write!(text, "\n{name}, worst errors\n{}", worst(extractor));
        }
    }
    text
}

fn overview(comparison: &Comparison) -> String {
    let mut rows = vec![header(&["extractor", "cases", "pairs"], comparison, &["precision", "recall", "misplaced"])];
    for extractor in &comparison.extractors {
        let mut row = vec![
            plain(&extractor.name),
            format!("{}/{}", comparison.n_cases - extractor.n_missing_cases, comparison.n_cases),
            extractor.n_pairs.to_string(),
        ];
        row.extend(extractor.scores.iter().map(|score| with_interval(score.estimate)));
        row.extend([with_interval(extractor.precision), with_interval(extractor.recall)]);
        row.push(extractor.n_misplaced.to_string());
        rows.push(row);
    }
    let mut text = aligned(&rows, 1);
    for extractor in comparison.extractors.iter().filter(|extractor| extractor.n_other_cases > 0) {
        let _ = writeln!(
            text,
            "{}: cases without reference, not compared: {}",
            plain(&extractor.name),
            extractor.n_other_cases
        );
    }
    text
}

/// What the judge's two columns are over.
fn judge(report: &JudgeReport) -> String {
    let mut text = format!(
        "adequacy by {}, prompt of version {}: the mean, and the share of pairs of {:.2} or more\n",
        plain(&report.model),
        report.prompt_version,
        report.threshold.0,
    );
    let names = ["extractor", "pairs", "in the mean", "on one side only: 0", "equal: 1", "judged", "no score"];
    let mut rows = vec![names.map(str::to_owned).to_vec()];
    for one in &report.extractors {
        let counts = [one.n_pairs, one.n_in_mean, one.n_one_sided, one.n_equal, one.n_judged, one.n_missing];
        let mut row = vec![plain(&one.name)];
        row.extend(counts.map(|n| n.to_string()));
        rows.push(row);
    }
    text += &aligned(&rows, 1);
    for one in report.extractors.iter().filter(|one| one.n_missing > 0) {
        let _ = writeln!(
            text,
            "{}: pairs without a score, which are in no mean of the judge: {}",
            plain(&one.name),
            shown_counts(one.missing.iter().map(|(reason, n)| (reason.as_str(), *n)))
        );
    }
    if let Some(constant) = &report.constant {
        let _ = writeln!(
            text,
            "the judge gave {:?} to all {} pairs: it tells nothing apart",
            constant.score.0, constant.n_pairs
        );
    }
    text
}

fn differences(comparison: &Comparison) -> String {
    let mut rows = vec![header(&["first", "second"], comparison, &[])];
    for Difference { first, second, scores } in &comparison.differences {
        let mut row = vec![plain(first), plain(second)];
        row.extend(scores.iter().map(|score| match score.estimate {
            Some(estimate) => {
                let differs = estimate.low.0 > 0.0 || estimate.high.0 < 0.0;
                let sign = |number: Rounded| format!("{:+.1}", number.0 * 100.0 + 0.0);
                let mark = if differs { "*" } else { " " };
                format!("{} [{}, {}]{mark}", sign(estimate.value), sign(estimate.low), sign(estimate.high))
            }
            None => format!("{NONE} "),
        }));
        rows.push(row);
    }
    aligned(&rows, 2)
}

fn slots(comparison: &Comparison, extractor: &ExtractorReport) -> String {
    let last = ["reference", "filled", "both", "precision", "recall", "misplaced", "compl. ref.", "compl."];
    let mut rows = vec![header(&["slot", "pairs"], comparison, &last)];
    for slot in extractor.slots.iter().filter(|slot| slot.n_pairs > 0) {
        let mut row = vec![slot.slot.as_str().to_owned(), slot.n_pairs.to_string()];
        row.extend(scores(&slot.scores));
        row.extend([slot.n_reference, slot.n_candidate, slot.n_both].map(|n| n.to_string()));
        row.extend([per_cent(slot.precision), per_cent(slot.recall), slot.n_misplaced.to_string()]);
        row.extend([slot.completeness_reference, slot.completeness_candidate].map(|share| per_cent(Some(share))));
        rows.push(row);
    }
    let unused: Vec<&str> =
        extractor.slots.iter().filter(|slot| slot.n_pairs == 0).map(|slot| slot.slot.as_str()).collect();
    let mut text = aligned(&rows, 1);
    if !unused.is_empty() {
        let _ = writeln!(text, "filled on neither side: {}", unused.join(", "));
    }
    text
}

fn groups(comparison: &Comparison, extractor: &ExtractorReport) -> String {
    let mut rows = vec![header(&["group", "pairs"], comparison, &["compl. ref.", "compl."])];
    for group in &extractor.groups {
        let mut row = vec![Group::as_str(group.group).to_owned(), group.n_pairs.to_string()];
        row.extend(scores(&group.scores));
        row.extend([group.completeness_reference, group.completeness_candidate].map(|share| per_cent(Some(share))));
        rows.push(row);
    }
    aligned(&rows, 1)
}

fn misplacements(extractor: &ExtractorReport) -> String {
    let mut rows = vec![["stands in", "belongs into", "values"].map(str::to_owned).to_vec()];
    for one in &extractor.misplacements {
        rows.push(vec![one.from.as_str().to_owned(), one.to.as_str().to_owned(), one.n_values.to_string()]);
    }
    aligned(&rows, 2)
}

fn errors(extractor: &ExtractorReport) -> String {
    let mut first = vec!["slot".to_owned()];
    first.extend(extractor.errors.keys().map(|kind| kind.as_str().to_owned()));
    let mut rows = vec![first];
    let mut add = |name: &str, counts: &mut dyn Iterator<Item = usize>| {
        let mut row = vec![name.to_owned()];
        row.extend(counts.map(|n| n.to_string()));
        rows.push(row);
    };
    for slot in extractor.slots.iter().filter(|slot| slot.errors.values().any(|n| *n > 0)) {
        add(slot.slot.as_str(), &mut slot.errors.values().copied());
    }
    add("all", &mut extractor.errors.values().copied());
    aligned(&rows, 1)
}

fn worst(extractor: &ExtractorReport) -> String {
    let names = ["kind", "case", "slot", "reference", "candidate", "score"];
    let mut rows = vec![names.map(str::to_owned).to_vec()];
    for error in &extractor.worst {
        rows.push(vec![
            error.kind.as_str().to_owned(),
            shortened(error.case.as_str(), MAX_KEY_CHARS),
            error.slot.as_str().to_owned(),
            shortened(&error.reference, MAX_TEXT_CHARS),
            shortened(&error.candidate, MAX_TEXT_CHARS),
            per_cent(Some(error.score)),
        ]);
    }
    aligned(&rows, 5)
}

fn header(first: &[&str], comparison: &Comparison, last: &[&str]) -> Vec<String> {
    let metrics = comparison.metrics.iter().map(|metric| plain(&metric.name));
    let first = first.iter().map(|name| (*name).to_owned());
    first.chain(metrics).chain(last.iter().map(|name| (*name).to_owned())).collect()
}

fn scores(scores: &[MetricScore]) -> impl Iterator<Item = String> {
    scores.iter().map(|score| per_cent(score.score))
}

fn per_cent(share: Option<Rounded>) -> String {
    share.map_or_else(|| NONE.to_owned(), |share| format!("{:.1}", share.0 * 100.0))
}

fn with_interval(estimate: Option<Estimate>) -> String {
    estimate.map_or_else(
        || NONE.to_owned(),
        |Estimate { value, low, high }| format!("{:.1} [{:.1}, {:.1}]", value.0 * 100.0, low.0 * 100.0, high.0 * 100.0),
    )
}

/// Columns two blanks apart, the first `n_left` flush left, the others flush right.
pub(super) fn aligned(rows: &[Vec<String>], n_left: usize) -> String {
    let width = |column: usize| {
        rows.iter().filter_map(|row| row.get(column)).map(|cell| cell.chars().count()).max().unwrap_or(0)
    };
    let widths: Vec<usize> = (0..rows.iter().map(Vec::len).max().unwrap_or(0)).map(width).collect();
    let mut text = String::new();
    for row in rows {
        let cells = row.iter().zip(&widths).enumerate();
        let line: Vec<String> = cells
            .map(
                |(column, (cell, width))| {
                    if column < n_left { format!("{cell:<width$}") } else { format!("{cell:>width$}") }
                },
            )
            .collect();
        text += line.join("  ").trim_end();
        text.push('\n');
    }
    text
}

fn shortened(text: &str, n_chars: usize) -> String {
    let text = plain(text);
    if text.chars().count() <= n_chars {
        return text;
    }
    text.chars().take(n_chars.saturating_sub(1)).chain(['…']).collect()
}

/// Text of a file as one line that cannot steer a terminal: control characters, and marks that turn the direction of
/// writing, become U+FFFD.
pub(super) fn plain(text: &str) -> String {
    let one_line = text.split_whitespace().collect::<Vec<_>>().join(" ");
    let is_steering = |character: char| {
        character.is_control()
            || matches!(character, '\u{200e}' | '\u{200f}' | '\u{202a}'..='\u{202e}' | '\u{2066}'..='\u{2069}')
    };
    one_line.chars().map(|character| if is_steering(character) { '\u{fffd}' } else { character }).collect()
}
