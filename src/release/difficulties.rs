//! Difficulty, computed again by `verify` from the rows of a release: runs and judgements to signals, signals to scores, scores
//! to bands.

use super::case::COMPLETE;
use super::manifest::{MANIFEST, Manifest, ManifestDifficulty};
use super::verify::{Checker, read_rows};
use crate::difficulty::{self, Band, Run, Scored, Signals};
use crate::record::release::{ReleaseJudgementRow, RunRow};
use crate::stage::estimate_difficulty::{MissingModel, signals_of};
use serde::Deserialize;
use serde_json::Value;
use std::collections::{BTreeMap, BTreeSet};

const TABLE: &str = "cases";

/// What is known while the cases are read.
pub struct Difficulties {
    summary: Option<ManifestDifficulty>,
    min_runs: usize,
    /// (case, model) → disagreement of its answers.
    disagreements: BTreeMap<(String, String), f64>,
    /// Models left out for all questions: those without signals of one.
    left_out: BTreeSet<String>,
    leaves_out: bool,
    /// Questions without a score are in quarantine, and not here.
    quarantines: bool,
    /// Signals and results of cases with a score.
    scored: Vec<(Signals, Scored)>,
    /// Cases with answers.
    seen: Vec<Answered>,
    n_unscored: u64,
}

/// A case with answers.
struct Answered {
    case_id: String,
    /// What it says that its answers come to.
    said: Option<Signals>,
    /// What the answers of each model come to; none if they are too few.
    of_models: Vec<(String, Option<Signals>)>,
}

#[derive(Deserialize)]
struct Settings {
    min_runs: usize,
    missing: MissingModel,
}

#[derive(Deserialize)]
struct OfCase {
    difficulty: Option<Band>,
    difficulty_score: Option<f64>,
    difficulty_signals: Option<Signals>,
    difficulty_scaled: Option<Signals>,
}

impl Difficulties {
    pub fn of(checker: &mut Checker<'_>, manifest: &Manifest) -> Self {
        let summary = manifest.difficulty.clone();
        let settings = summary.as_ref().and_then(|summary| {
            checker.attempt(MANIFEST, |_| Ok(serde_json::from_value::<Settings>(summary.settings.clone())?))
        });
        let mut disagreements = BTreeMap::new();
        if summary.is_some() {
            let rows = checker.attempt("judgements.parquet", |checker| {
                read_rows::<ReleaseJudgementRow>(&checker.path("judgements.parquet"))
            });
            for row in rows.into_iter().flatten().filter(|row| row.question == "disagreement" && row.answered) {
                if let (Some(about), Ok(value)) = (row.about, row.verdict.parse()) {
                    disagreements.insert((row.case_id, about), value);
                }
            }
        }
        Self {
            summary,
            min_runs: settings.as_ref().map_or(0, |settings| settings.min_runs),
            disagreements,
            left_out: BTreeSet::new(),
            leaves_out: settings.as_ref().is_some_and(|settings| settings.missing == MissingModel::LeaveOutModel),
            quarantines: settings.is_some_and(|settings| settings.missing == MissingModel::Quarantine),
            scored: Vec::new(),
            seen: Vec::new(),
            n_unscored: 0,
        }
    }

    /// What a case says of itself against its bounds and bands.
    pub fn check(&mut self, checker: &mut Checker<'_>, id: &str, case: &Value, runs: &[RunRow]) {
        let Some(said) = checker.attempt(TABLE, |_| Ok(OfCase::deserialize(case)?)) else { return };
        let mut of_models = Vec::new();
        for rows in runs.chunk_by(|one, other| one.model == other.model) {
            let Some(model) = rows.first().map(|row| row.model.clone()) else { continue };
            of_models.push((model.clone(), self.signals(id, &model, rows)));
        }
        if !of_models.is_empty() {
            self.seen.push(Answered { case_id: id.to_owned(), said: said.difficulty_signals, of_models });
        }
        match (&self.summary, said.difficulty_signals, said.difficulty_scaled, said.difficulty_score) {
            (Some(summary), Some(signals), Some(scaled), Some(score)) => {
                let expected = summary.bounds.map(|bounds| difficulty::scaled(signals, &bounds));
                if expected != Some(scaled) || difficulty::combine(scaled) != score {
                    checker.fault(format!(
                        "{TABLE}: {id}: its difficulty is not what its signals and the bounds in {MANIFEST} give"
                    ));
                }
                let fits = |band: Band| {
                    let mut clusters = summary.clusters.iter();
                    clusters.any(|cluster| cluster.band == band && cluster.least <= score && score <= cluster.greatest)
                };
                if said.difficulty.map_or(!summary.clusters.is_empty(), |band| !fits(band)) {
                    checker.fault(format!("{TABLE}: {id}: its difficulty band is not that of its score {score}"));
                }
                self.scored.push((signals, Scored { scaled, score, band: said.difficulty }));
            }
            (_, _, None, None) if said.difficulty.is_none() => self.n_unscored += u64::from(!runs.is_empty()),
            _ => checker.fault(format!(
                "{TABLE}: {id}: it has some fields of difficulty without the others, or without {MANIFEST}"
            )),
        }
    }

    /// The signals of one model's answers to one case.
    fn signals(&self, id: &str, model: &str, rows: &[RunRow]) -> Option<Signals> {
        let complete = rows.iter().filter(|row| row.state == COMPLETE);
        let runs: Vec<Run<'_>> = complete
            .filter_map(|row| {
                Some(Run { n_steps: row.n_steps?, answer: row.answer.as_deref()?, confidence: row.confidence? })
            })
            .collect();
        let disagreement = self.disagreements.get(&(id.to_owned(), model.to_owned())).copied();
        if runs.len() < self.min_runs { None } else { signals_of(&runs, disagreement) }
    }

    /// Averages over models, and all cases together.
    pub fn finish(mut self, checker: &mut Checker<'_>, manifest: &Manifest) {
        // What a profile leaves out takes part in bounds, bands and left-out models, and cannot be seen here.
        let is_whole = manifest.nodes.iter().all(|node| node.stage != "freeze");
        if self.leaves_out && is_whole {
            let all = self.seen.iter().flat_map(|answered| &answered.of_models);
            self.left_out = all.filter(|(_, signals)| signals.is_none()).map(|(model, _)| model.clone()).collect();
        }
        if !self.leaves_out || is_whole {
            for Answered { case_id, said, of_models } in &self.seen {
                let counting: Vec<Option<Signals>> = of_models
                    .iter()
                    .filter(|(model, _)| !self.left_out.contains(model))
                    .map(|(_, signals)| *signals)
                    .collect();
                let all: Option<Vec<Signals>> = counting.into_iter().collect();
                if all.and_then(|all| difficulty::average(&all)) != *said {
                    checker.fault(format!("{TABLE}: {case_id}: its difficulty signals are not what runs.parquet and judgements.parquet give"));
                }
            }
        }
        let Some(summary) = &self.summary else { return };
        if !is_whole {
            return;
        }
        let signals: Vec<Signals> = self.scored.iter().map(|(signals, _)| *signals).collect();
        let expected = difficulty::score(&signals);
        let found: Vec<Scored> = self.scored.iter().map(|(_, scored)| *scored).collect();
        let n_unscored = if self.quarantines { summary.n_unscored } else { self.n_unscored };
        let counts = (self.scored.len() as u64, n_unscored);
        if expected.items != found
            || expected.bounds != summary.bounds
            || expected.clusters != summary.clusters
            || counts != (summary.n_scored, summary.n_unscored)
        {
            checker.fault(format!("{MANIFEST}: its bounds and clusters of difficulty are not those of the cases"));
        }
    }
}
