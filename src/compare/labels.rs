//! Labels that people gave to cases, against a column of the cases of a release: how far an automatic label is what people
//! say (MedRoundsQA, appendix F.3 and Table 8, for bands of difficulty).
//!
//! ```text
//! {"case_id":"medrounds-0123456789abcdef","annotator":"anna","label":"easy"}
//! ```
//!
//! Labels stand in JSON Lines or CSV, one row for each case and annotator: a key (`case_id`, `record_id` or
//! `question_sha256`), `label`, and `annotator` if there are several. A row with an empty label is not labelled yet; other
//! columns are passed over. The label of a case is the one that most of its annotators gave; a case where no label is ahead
//! of all others has none and is counted.

use std::collections::{BTreeMap, BTreeSet};
use std::fmt::Write as _;

use serde::Serialize;
use serde_json::{Map, Value};

use super::report::Rounded;
use super::table::{aligned, plain};
use crate::agreement::{Confusion, Weights};
use crate::config::suggestion;
use crate::difficulty::Band;
use crate::error::input;
use crate::record::{Hash, RecordId};
use crate::slots::specialty::Specialty;
use crate::source::edited;
use crate::text::strict_json;

/// The version of the form of `--json`.
pub const VERSION: u32 = 1;

/// The names under which a row states its case.
const KEYS: [&str; 3] = ["case_id", "record_id", "question_sha256"];
const LABEL: &str = "label";
const ANNOTATOR: &str = "annotator";

/// A larger table of confusion is left to `--json`.
const MAX_SHOWN_CATEGORIES: usize = 20;

/// The labels that there are.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Scale {
    categories: Vec<String>,
    /// The categories have an order: some are nearer to each other than others.
    is_ordered: bool,
    /// There may be others.
    is_open: bool,
}

impl Scale {
    /// easy < medium < hard
    pub fn difficulty() -> Self {
        let categories = Band::ALL.map(|band| band.as_str().to_owned()).into();
        Self { categories, is_ordered: true, is_open: false }
    }

    /// 1 to 5, the scores of a judge of fidelity.
    pub fn judgement() -> Self {
        Self { categories: (1..=5).map(|score: u32| score.to_string()).collect(), is_ordered: true, is_open: false }
    }

    /// The specialties of the paper, in no order.
    pub fn specialty() -> Self {
        let categories = Specialty::ALL.map(|specialty| specialty.as_str().to_owned()).into();
        Self { categories, is_ordered: false, is_open: false }
    }

    /// Whatever a column holds, in no order. People may have other labels.
    pub fn of_values(values: impl IntoIterator<Item = String>) -> Self {
        let categories: BTreeSet<String> = values.into_iter().collect();
        Self { categories: categories.into_iter().collect(), is_ordered: false, is_open: true }
    }

    /// The category as it is written here, whatever its letter case and the white space around it.
    fn category(&self, text: &str) -> Option<String> {
        let text = text.trim();
        let lower = text.to_lowercase();
        let known = self.categories.iter().find(|category| category.to_lowercase() == lower);
        known.cloned().or_else(|| self.is_open.then(|| text.to_owned()))
    }
}

/// The automatic labels: one column of the cases of a release.
#[derive(Clone, Debug)]
pub struct Cases {
    /// What the release is called.
    pub name: String,
    pub column: String,
    pub scale: Scale,
    /// By case id; null where the column is.
    pub values: BTreeMap<String, Option<String>>,
    /// Case ids by the SHA-256 of their stem.
    pub stems: BTreeMap<String, BTreeSet<String>>,
}

impl Cases {
    /// The cases that a key of a row means.
    fn find(&self, key: &str, text: &str) -> BTreeSet<String> {
        let known = |id: String| self.values.contains_key(&id).then_some(id).into_iter().collect();
        match key {
            "case_id" => known(text.to_owned()),
            // A release shows the hash of an id alone, after the name of its pipeline.
            "record_id" => {
                let pipelines: BTreeSet<&str> =
                    self.values.keys().filter_map(|id| Some(id.rsplit_once('-')?.0)).collect();
                pipelines.into_iter().flat_map(|pipeline| known(RecordId::parse(text).case_id(pipeline))).collect()
            }
            _ => {
                let with_stem = self.stems.get(&text.to_lowercase()).into_iter().flatten();
                with_stem.filter(|id| self.values.contains_key(*id)).cloned().collect()
            }
        }
    }
}

/// The rows of a file of labels.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Labels {
    /// For messages.
    pub file: String,
    rows: Vec<LabelRow>,
}

/// What one annotator says of one case.
#[derive(Clone, Debug, PartialEq, Eq)]
struct LabelRow {
    /// From 1.
    line: u64,
    /// The keys that are given, by name.
    keys: Vec<(&'static str, String)>,
    /// Empty if nobody is named.
    annotator: String,
    /// Empty if the case is not labelled yet.
    label: String,
}

impl Labels {
    /// Reads CSV if the name ends in `.csv`, else JSON Lines.
    ///
    /// # Errors
    /// An input error with file and line: no column `label` or none with a key, a row that is no object or of another length,
    /// has no key, or whose label is neither text nor number.
    pub fn read(file: &str, bytes: &[u8]) -> anyhow::Result<Self> {
        let table = edited::parse(file.to_owned(), bytes)?;
        if let Some(columns) = &table.columns {
            if !columns.iter().any(|column| column == LABEL) {
                return Err(input(format!("{file}:1: there is no column `{LABEL}`")));
            }
            if !KEYS.iter().any(|key| columns.iter().any(|column| column == key)) {
                return Err(input(format!("{file}:1: there is no column {}", KEYS.join(" or "))));
            }
        }
        let mut rows = Vec::new();
        for row in &table.rows {
            let wrong = |what: String| input(format!("{file}:{}: {what}", row.line));
            // An empty field of a CSV file is left out of its row.
            if table.columns.is_none() && !row.fields.contains_key(LABEL) {
                return Err(wrong(format!("there is no `{LABEL}`")));
            }
            rows.push(LabelRow::of(row.line, &row.fields).map_err(wrong)?);
        }
        Ok(Self { file: file.to_owned(), rows })
    }
}

impl LabelRow {
    fn of(line: u64, row: &Map<String, Value>) -> Result<Self, String> {
        let text = |field: &str| match row.get(field) {
            None | Some(Value::Null) => Ok(String::new()),
            Some(Value::String(text)) => Ok(text.trim().to_owned()),
            Some(Value::Number(number)) if field == LABEL => Ok(number.to_string()),
            Some(other) => Err(format!("`{field}` is {}; write a text", strict_json::kind(other))),
        };
        let mut keys = Vec::new();
        for key in KEYS {
            let value = text(key)?;
            if key == "question_sha256" && !value.is_empty() && Hash::parse(&value.to_lowercase()).to_bytes().is_none()
            {
                return Err(format!("`{value}` is no SHA-256; give the 64 hexadecimal digits of the question's stem"));
            }
            if !value.is_empty() {
                keys.push((key, value));
            }
        }
        if keys.is_empty() {
            return Err(format!("names no case; give {}", KEYS.join(" or ")));
        }
        Ok(Self { line, keys, annotator: text(ANNOTATOR)?, label: text(LABEL)? })
    }
}

/// How far people and a column agree, and people among each other.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct LabelAgreement {
    /// The version of this form.
    pub version: u32,
    pub labels: String,
    pub records: String,
    pub column: String,
    /// The labels that there are, in their order if they have one.
    pub categories: Vec<String>,
    pub is_ordered: bool,
    /// Annotators, one if nobody is named.
    pub n_annotators: usize,
    /// Cases of the release with a label of people and a value in the column.
    pub n_compared: usize,
    /// Cases where no label is ahead of all others.
    pub n_tied: usize,
    /// Cases with a label whose column is null.
    pub n_without_value: usize,
    /// Cases of the release that nobody has labelled.
    pub n_without_label: usize,
    /// Labelled cases that are not in the release.
    pub n_not_in_records: usize,
    /// Rows whose label is still empty.
    pub n_rows_without_label: usize,
    /// People's labels against the column.
    pub agreement: Figures,
    /// Cases by people's label (row) and the column's (column), in the order of the categories.
    pub confusion: Confusion,
    /// Every two annotators who labelled a case in common.
    pub annotators: Vec<AnnotatorPair>,
}

/// How far two sides agree. Shares and kappas are null where they are not defined; what needs an order is null without.
#[derive(Clone, Copy, Debug, PartialEq, Serialize)]
pub struct Figures {
    pub n: u64,
    pub n_equal: u64,
    pub exact: Option<Rounded>,
    /// Equal, or next to each other.
    pub adjacent: Option<Rounded>,
    pub kappa: Option<Rounded>,
    pub kappa_linear: Option<Rounded>,
    pub kappa_quadratic: Option<Rounded>,
}

impl Figures {
    fn of(table: &Confusion, is_ordered: bool) -> Self {
        let ordered = |figure: Option<f64>| figure.filter(|_| is_ordered).map(Rounded);
        Self {
            n: table.n(),
            n_equal: table.n_equal(),
            exact: table.exact().map(Rounded),
            adjacent: ordered(table.adjacent()),
            kappa: table.kappa(Weights::None).map(Rounded),
            kappa_linear: ordered(table.kappa(Weights::Linear)),
            kappa_quadratic: ordered(table.kappa(Weights::Quadratic)),
        }
    }
}

/// Two annotators over the cases that both labelled, in the release or not.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct AnnotatorPair {
    pub first: String,
    pub second: String,
    pub agreement: Figures,
}

/// What people said of one case.
#[derive(Default)]
struct Labelled {
    /// Label and line by annotator.
    by: BTreeMap<String, (String, u64)>,
    is_in_records: bool,
}

/// Compares labels with a column.
///
/// # Errors
/// An input error with file and line: an unknown label, an annotator with two labels for one case, keys that name several
/// cases; and without a line if there is nothing to compare.
pub fn compare(labels: &Labels, cases: &Cases) -> anyhow::Result<LabelAgreement> {
    let labelled = by_case(labels, cases)?;
    let n_rows_without_label = labels.rows.iter().filter(|row| row.label.is_empty()).count();
    if labelled.is_empty() {
        return Err(input(format!("{}: no row has a label", labels.file)));
    }
    let n_not_in_records = labelled.values().filter(|one| !one.is_in_records).count();
    if n_not_in_records == labelled.len() {
        return Err(input(format!(
            "{}: none of its {n_not_in_records} labelled cases is in {}; give its case_id, or the record_id or question_sha256 that its cases were made from",
            labels.file, cases.name
        )));
    }
    let (mut pairs, mut n_tied, mut n_without_value) = (Vec::new(), 0, 0);
    for (case, one) in labelled.iter().filter(|(_, one)| one.is_in_records) {
        match (most_frequent(one), cases.values.get(case).cloned().flatten()) {
            (None, _) => n_tied += 1,
            (Some(_), None) => n_without_value += 1,
            (Some(label), Some(value)) => {
                let known = cases.scale.category(&value).ok_or_else(|| {
                    let known = suggestion(&value, cases.scale.categories.iter().map(String::as_str));
                    input(format!("{}: {} of the case {case} is `{value}`{known}", cases.name, cases.column))
                })?;
                pairs.push((label, known));
            }
        }
    }
    if pairs.is_empty() {
        return Err(input(format!(
            "{}: no labelled case has both a label that is ahead of the others ({n_tied} have none) and a {} in {} ({n_without_value} have none)",
            labels.file, cases.column, cases.name
        )));
    }
    let n_compared = pairs.len();
    let categories = categories(&cases.scale, &labelled, &pairs);
    let confusion = Confusion::of(&categories, pairs);
    let is_ordered = cases.scale.is_ordered;
    let n_labelled_here = labelled.values().filter(|one| one.is_in_records).count();
    let names: BTreeSet<&String> = labelled.values().flat_map(|one| one.by.keys()).collect();
    Ok(LabelAgreement {
        version: VERSION,
        labels: labels.file.clone(),
        records: cases.name.clone(),
        column: cases.column.clone(),
        is_ordered,
        n_annotators: names.len(),
        n_compared,
        n_tied,
        n_without_value,
        n_without_label: cases.values.len().saturating_sub(n_labelled_here),
        n_not_in_records,
        n_rows_without_label,
        agreement: Figures::of(&confusion, is_ordered),
        annotators: annotator_pairs(&names, &labelled, &categories, is_ordered),
        confusion,
        categories,
    })
}

/// The labels of each case, under its case id, or under the key of the row if it is not in the release.
fn by_case(labels: &Labels, cases: &Cases) -> anyhow::Result<BTreeMap<String, Labelled>> {
    let mut labelled: BTreeMap<String, Labelled> = BTreeMap::new();
    for row in labels.rows.iter().filter(|row| !row.label.is_empty()) {
        let wrong = |what: String| input(format!("{}:{}: {what}", labels.file, row.line));
        let label = cases.scale.category(&row.label).ok_or_else(|| {
            let known = suggestion(&row.label, cases.scale.categories.iter().map(String::as_str));
            wrong(format!("`{}` is no label of {}{known}", row.label, cases.column))
        })?;
        let mut found: BTreeSet<String> = row.keys.iter().flat_map(|(key, text)| cases.find(key, text)).collect();
        let case = found.pop_first();
        if !found.is_empty() {
            return Err(wrong(format!("its keys name several cases of {}; give one case_id", cases.name)));
        }
        let is_in_records = case.is_some();
        let first_key = row.keys.first().map(|(_, text)| text.clone()).unwrap_or_default();
        let one = labelled.entry(case.unwrap_or_else(|| first_key.clone())).or_default();
        one.is_in_records |= is_in_records;
        if let Some((_, line)) = one.by.insert(row.annotator.clone(), (label, row.line)) {
            let who = if row.annotator.is_empty() {
                format!("nobody is named under `{ANNOTATOR}`")
            } else {
                format!("`{}`", row.annotator)
            };
            return Err(wrong(format!(
                "the case {first_key} has a label by the same annotator ({who}) in line {line}"
            )));
        }
    }
    Ok(labelled)
}

/// The label that more annotators gave than any other.
fn most_frequent(one: &Labelled) -> Option<String> {
    let mut counts: BTreeMap<&String, usize> = BTreeMap::new();
    for (label, _) in one.by.values() {
        *counts.entry(label).or_default() += 1;
    }
    let most = counts.values().copied().max()?;
    let mut ahead = counts.into_iter().filter(|(_, n)| *n == most);
    let (label, _) = ahead.next()?;
    ahead.next().is_none().then(|| label.clone())
}

/// Of an ordered scale all, since their number is part of the order; of another those that anybody used, in its order.
fn categories(scale: &Scale, labelled: &BTreeMap<String, Labelled>, pairs: &[(String, String)]) -> Vec<String> {
    if scale.is_ordered {
        return scale.categories.clone();
    }
    let by_people = labelled.values().flat_map(|one| one.by.values().map(|(label, _)| label));
    let mut used: BTreeSet<&String> = by_people.chain(pairs.iter().map(|(_, value)| value)).collect();
    let mut categories: Vec<String> =
        scale.categories.iter().filter(|category| used.remove(category)).cloned().collect();
    categories.extend(used.into_iter().cloned());
    categories
}

fn annotator_pairs(
    names: &BTreeSet<&String>,
    labelled: &BTreeMap<String, Labelled>,
    categories: &[String],
    is_ordered: bool,
) -> Vec<AnnotatorPair> {
    let mut pairs = Vec::new();
    for (place, first) in names.iter().enumerate() {
        for second in names.iter().skip(place + 1) {
            let label = |one: &Labelled, name: &String| one.by.get(name).map(|(label, _)| label.clone());
            let both = labelled.values().filter_map(|one| Some((label(one, first)?, label(one, second)?)));
            let agreement = Figures::of(&Confusion::of(categories, both), is_ordered);
            if agreement.n > 0 {
                pairs.push(AnnotatorPair { first: (*first).clone(), second: (*second).clone(), agreement });
            }
        }
    }
    pairs
}

/// The agreement for a terminal or a log.
pub fn text(found: &LabelAgreement) -> String {
    let column = plain(&found.column);
    let mut text = format!(
        "{} against {column} of {}\n{} cases compared, {} annotator{}\n",
        plain(&found.labels),
        plain(&found.records),
        found.n_compared,
        found.n_annotators,
        if found.n_annotators == 1 { "" } else { "s" },
    );
    for (n, what) in [
        (found.n_tied, "cases where no label is ahead of all others".to_owned()),
        (found.n_without_value, format!("labelled cases without {column}")),
        (found.n_without_label, "cases of the release without a label".to_owned()),
        (found.n_not_in_records, "labelled cases that are not in the release".to_owned()),
        (found.n_rows_without_label, "rows whose label is still empty".to_owned()),
    ] {
        if n > 0 {
            let _ = writeln!(text, "not compared: {n} {what}");
        }
    }
    let Figures { n, n_equal, exact, adjacent, kappa, kappa_linear, kappa_quadratic } = found.agreement;
    let mut rows = vec![vec!["exact agreement".to_owned(), format!("{} ({n_equal} of {n})", per_cent(exact))]];
    if found.is_ordered {
        rows.push(vec!["adjacent agreement".to_owned(), per_cent(adjacent)]);
    }
    rows.push(vec!["Cohen's kappa".to_owned(), two_decimals(kappa)]);
    if found.is_ordered {
        rows.push(vec!["  linear weights".to_owned(), two_decimals(kappa_linear)]);
        rows.push(vec!["  quadratic weights".to_owned(), two_decimals(kappa_quadratic)]);
    }
    let _ = write!(text, "\n{}\n", aligned(&rows, 2));
    if found.categories.len() > MAX_SHOWN_CATEGORIES {
        let _ = writeln!(text, "{} labels: --json has the table of confusion", found.categories.len());
    } else {
        let _ = write!(text, "rows: people; columns: {column}\n{}", aligned(&confusion_rows(found), 1));
    }
    if !found.annotators.is_empty() {
        let _ = write!(text, "\n{}", aligned(&annotator_rows(found), 1));
    }
    text
}

fn confusion_rows(found: &LabelAgreement) -> Vec<Vec<String>> {
    let names: Vec<String> = found.categories.iter().map(|category| plain(category)).collect();
    let mut rows = vec![[String::new()].into_iter().chain(names.clone()).collect::<Vec<_>>()];
    for (name, counts) in names.into_iter().zip(found.confusion.counts()) {
        rows.push([name].into_iter().chain(counts.iter().map(u64::to_string)).collect());
    }
    rows
}

fn annotator_rows(found: &LabelAgreement) -> Vec<Vec<String>> {
    let mut names = vec!["annotators", "both", "exact", "kappa"];
    if found.is_ordered {
        names = vec!["annotators", "both", "exact", "adjacent", "kappa", "linear", "quadratic"];
    }
    let mut rows = vec![names.into_iter().map(str::to_owned).collect::<Vec<_>>()];
    for AnnotatorPair { first, second, agreement } in &found.annotators {
        let name = |name: &str| if name.is_empty() { "(nobody named)".to_owned() } else { plain(name) };
        let mut row = vec![format!("{} and {}", name(first), name(second)), agreement.n.to_string()];
        row.push(per_cent(agreement.exact));
        if found.is_ordered {
            row.push(per_cent(agreement.adjacent));
        }
        row.push(two_decimals(agreement.kappa));
        if found.is_ordered {
            row.extend([agreement.kappa_linear, agreement.kappa_quadratic].map(two_decimals));
        }
        rows.push(row);
    }
    rows
}

fn per_cent(share: Option<Rounded>) -> String {
    share.map_or_else(|| "undefined".to_owned(), |share| format!("{:.1} %", share.0 * 100.0))
}

fn two_decimals(kappa: Option<Rounded>) -> String {
    // Adding 0 makes 0 of -0.
    kappa.map_or_else(|| "undefined".to_owned(), |kappa| format!("{:.2}", (kappa.0 * 100.0).round() / 100.0 + 0.0))
}

#[cfg(test)]
mod tests {
    use super::*;
    use expect_test::expect;

    /// Cases `p-<n>` with these values.
    fn cases(scale: Scale, column: &str, values: &[Option<&str>]) -> Cases {
        let numbered = || (0..).zip(values);
        Cases {
            name: "p-1.0.0".to_owned(),
            column: column.to_owned(),
            scale,
            values: numbered().map(|(n, value): (u32, _)| (format!("p-{n:02}"), value.map(str::to_owned))).collect(),
            stems: numbered()
                .map(|(n, _): (u32, _)| (stem(&format!("stem {n}")), BTreeSet::from([format!("p-{n:02}")])))
                .collect(),
        }
    }

    fn stem(text: &str) -> String {
        Hash::of(text.as_bytes()).to_string()
    }

    /// Table 8 of the paper: physicians' labels as rows of a file, automatic ones as a column of cases.
    #[test]
    fn table_8_of_the_paper() {
        let counts = [[27, 3, 0], [2, 25, 3], [0, 2, 28]];
        let mut automatic = Vec::new();
        let (mut csv, mut jsonl) = ("case_id,label,comment\r\n".to_owned(), String::new());
        for (physicians, row) in Band::ALL.into_iter().zip(counts) {
            for (band, n) in Band::ALL.into_iter().zip(row) {
                for _ in 0..n {
                    let (id, label) = (format!("p-{:02}", automatic.len()), physicians.as_str());
                    csv += &format!("{id},{},\"a, b\"\r\n", label.to_uppercase());
                    jsonl += &format!("{{\"case_id\": \"{id}\", \"label\": \"{label}\"}}\n");
                    automatic.push(Some(band.as_str()));
                }
            }
        }
        let cases = cases(Scale::difficulty(), "difficulty", &automatic);
        let found = compare(&Labels::read("labels.csv", csv.as_bytes()).unwrap(), &cases).unwrap();
        expect![[r#"
            labels.csv against difficulty of p-1.0.0
            90 cases compared, 1 annotator

            exact agreement      88.9 % (80 of 90)
            adjacent agreement   100.0 %
            Cohen's kappa        0.83
              linear weights     0.88
              quadratic weights  0.92

            rows: people; columns: difficulty
                    easy  medium  hard
            easy      27       3     0
            medium     2      25     3
            hard       0       2    28
        "#]]
        .assert_eq(&text(&found));
        let other = compare(&Labels::read("labels.jsonl", jsonl.as_bytes()).unwrap(), &cases).unwrap();
        assert_eq!(LabelAgreement { labels: found.labels.clone(), ..other }, found);
        let json = serde_json::to_value(&found).unwrap();
        assert_eq!(json["confusion"]["counts"], serde_json::json!(counts));
        assert_eq!(json["agreement"]["kappa_linear"], 0.875);
    }

    #[test]
    fn most_annotators_decide_and_ties_are_counted() {
        let cases = cases(
            Scale::difficulty(),
            "difficulty",
            &[Some("easy"), Some("hard"), Some("medium"), None, Some("easy"), Some("hard")],
        );
        let record = RecordId::parse("medqa:1");
        let mut cases = cases;
        cases.values.insert(record.case_id("p"), Some("easy".to_owned()));
        let rows = [
            ("case_id", "p-00".to_owned(), "anna", "easy"),
            ("case_id", "p-00".to_owned(), "ben", "easy"),
            ("case_id", "p-00".to_owned(), "cleo", "hard"),
            ("question_sha256", stem("stem 1").to_uppercase(), "anna", "medium"),
            ("question_sha256", stem("stem 1"), "ben", "hard"),
            ("case_id", "p-02".to_owned(), "anna", "Medium "),
            ("case_id", "p-03".to_owned(), "anna", "hard"),
            ("record_id", "medqa:1".to_owned(), "ben", "hard"),
            ("record_id", "medqa:1".to_owned(), "anna", "hard"),
            ("case_id", "elsewhere".to_owned(), "anna", "hard"),
            ("case_id", "p-04".to_owned(), "anna", ""),
        ];
        let lines: Vec<String> = rows
            .iter()
            .map(|(key, case, annotator, label)| {
                serde_json::json!({*key: case, "annotator": annotator, "label": label}).to_string()
            })
            .collect();
        let found = compare(&Labels::read("l.jsonl", lines.join("\n\n").as_bytes()).unwrap(), &cases).unwrap();
        expect![[r#"
            l.jsonl against difficulty of p-1.0.0
            3 cases compared, 3 annotators
            not compared: 1 cases where no label is ahead of all others
            not compared: 1 labelled cases without difficulty
            not compared: 2 cases of the release without a label
            not compared: 1 labelled cases that are not in the release
            not compared: 1 rows whose label is still empty

            exact agreement      66.7 % (2 of 3)
            adjacent agreement   66.7 %
            Cohen's kappa        0.50
              linear weights     0.25
              quadratic weights  0.00

            rows: people; columns: difficulty
                    easy  medium  hard
            easy       1       0     0
            medium     0       1     0
            hard       1       0     0

            annotators     both   exact  adjacent  kappa  linear  quadratic
            anna and ben      3  66.7 %   100.0 %   0.50    0.67       0.80
            anna and cleo     1   0.0 %     0.0 %   0.00    0.00       0.00
            ben and cleo      1   0.0 %     0.0 %   0.00    0.00       0.00
        "#]]
        .assert_eq(&text(&found));
    }

    #[test]
    fn scales_without_an_order_have_no_weights() {
        let of = |scale: Scale, column: &str, values: &[Option<&str>], labels: &[&str]| {
            let rows: Vec<String> =
                (0..).zip(labels).map(|(n, label): (u32, _)| format!("p-{n:02},{label}\n")).collect();
            let labels = Labels::read("l.csv", ("case_id,label\n".to_owned() + &rows.concat()).as_bytes()).unwrap();
            compare(&labels, &cases(scale, column, values)).map(|found| text(&found))
        };
        let values = [Some("Neurology"), Some("Urology"), Some("Urology")];
        let found = of(Scale::specialty(), "specialty", &values, &["Urology", "urology", "Cardiology"]).unwrap();
        expect![[r#"
            l.csv against specialty of p-1.0.0
            3 cases compared, 1 annotator

            exact agreement  33.3 % (1 of 3)
            Cohen's kappa    -0.20

            rows: people; columns: specialty
                        Neurology  Urology  Cardiology
            Neurology           0        0           0
            Urology             1        1           0
            Cardiology          0        1           0
        "#]]
        .assert_eq(&found);
        let open = Scale::of_values(["step1".to_owned(), "step2".to_owned()]);
        let found = of(open, "exam", &[Some("step1"), Some("step2")], &["Step1", "step3"]).unwrap();
        assert!(found.contains("step3") && found.contains("50.0 % (1 of 2)"), "{found}");
        let found = of(Scale::judgement(), "judgement", &[Some("4"), Some("5")], &["5", "5"]).unwrap();
        assert!(found.contains("adjacent agreement   100.0 %") && found.contains("linear weights     0.00"), "{found}");
        let same = of(Scale::judgement(), "judgement", &[Some("5"), Some("5")], &["5", "5"]).unwrap();
        assert!(same.contains("Cohen's kappa        undefined"), "{same}");
    }

    #[test]
    fn what_is_wrong_is_said_with_its_line() {
        let cases = {
            let mut cases = cases(Scale::difficulty(), "difficulty", &[Some("easy"), Some("hard"), None]);
            cases.stems.insert(stem("twins"), BTreeSet::from(["p-00".to_owned(), "p-01".to_owned()]));
            cases
        };
        let jsonl = |text: &str| Labels::read("l.jsonl", text.as_bytes()).and_then(|labels| compare(&labels, &cases));
        let csv = |text: &str| Labels::read("l.csv", text.as_bytes()).and_then(|labels| compare(&labels, &cases));
        let row = |case: &str, label: &str| format!("{{\"case_id\": \"{case}\", \"label\": \"{label}\"}}\n");
        let errors = [
            jsonl(&(row("p-00", "easy") + &row("p-01", "hrad"))),
            jsonl(&(row("p-00", "easy") + "\n" + &row("p-00", "easy"))),
            jsonl(&(row("a", "easy") + &row("b", "hard"))),
            jsonl(&row("p-02", "hard")),
            jsonl(&row("p-00", "")),
            jsonl("[1]"),
            jsonl("{\"case_id\": \"p-00\"}"),
            jsonl("{\"case_id\": 3, \"label\": \"easy\"}"),
            jsonl("{\"label\": \"easy\"}"),
            jsonl("{\"question_sha256\": \"12\", \"label\": \"easy\"}"),
            jsonl(&format!("{{\"question_sha256\": \"{}\", \"label\": \"easy\"}}", stem("twins"))),
            csv("case_id,annotator,label\r\np-00,anna,easy\r\n\r\np-00,anna,hard\r\n"),
            csv("case_id,note\np-00,easy\n"),
            csv("id,label\np-00,easy\n"),
            csv("case_id,label\np-00\n"),
            csv("case_id,label\np-00,\"easy\n"),
            csv(""),
        ];
        let errors: Vec<String> = errors.map(|result| result.unwrap_err().to_string()).into();
        expect![[r#"
            l.jsonl:2: `hrad` is no label of difficulty; did you mean `hard`? (known: easy, medium, hard)
            l.jsonl:3: the case p-00 has a label by the same annotator (nobody is named under `annotator`) in line 1
            l.jsonl: none of its 2 labelled cases is in p-1.0.0; give its case_id, or the record_id or question_sha256 that its cases were made from
            l.jsonl: no labelled case has both a label that is ahead of the others (0 have none) and a difficulty in p-1.0.0 (1 have none)
            l.jsonl: no row has a label
            l.jsonl:1: an array where an object is expected
            l.jsonl:1: there is no `label`
            l.jsonl:1: `case_id` is a number; write a text
            l.jsonl:1: names no case; give case_id or record_id or question_sha256
            l.jsonl:1: `12` is no SHA-256; give the 64 hexadecimal digits of the question's stem
            l.jsonl:1: its keys name several cases of p-1.0.0; give one case_id
            l.csv:4: the case p-00 has a label by the same annotator (`anna`) in line 2
            l.csv:1: there is no column `label`
            l.csv:1: there is no column case_id or record_id or question_sha256
            l.csv:2: 1 fields where the header has 2
            l.csv:2: a quote in the record that begins here is never closed; everything after it would be read as one field
            l.csv is empty"#]].assert_eq(&errors.join("\n"));
    }
}
