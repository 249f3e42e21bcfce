//! The figures of a build: what judges said, what texts support, how difficult the questions are.

use super::{grouped, verdicts as shown_verdicts};
use crate::agreement::{Confusion, Weights};
use crate::difficulty::{self, Band, Bounds, Cluster, Signals};
use crate::engine::attrition::{self, Attrition};
use crate::engine::controls::tally;
use crate::engine::judgements::{VerdictCounts, for_each, verdicts};
use crate::engine::stream::Upstream;
use crate::engine::{NodePlan, Session};
use crate::record::difficulty::DifficultyRow;
use crate::record::slots::{GroundingRow, ModelRuns, Slot, SpecialtyRow};
use crate::record::{RecordId, Row, from_batch};
use crate::stage::PortKind;
use crate::stage::estimate_difficulty::signals_of;
use serde::{Deserialize, Serialize};
use std::collections::BTreeMap;

/// Everything that is counted.
#[derive(Clone, Debug, Default, Serialize)]
pub struct Figures {
    pub controls: Vec<ControlFigures>,
    pub judgements: Vec<VerdictCounts>,
    pub agreement: Vec<JudgeAgreement>,
    pub grounding: Vec<SlotGrounding>,
    pub difficulty: Option<DifficultyFigures>,
    /// By specialty, where the source knows it.
    pub attrition: Vec<Attrition>,
}

/// What a model made of questions with known answers.
#[derive(Clone, Debug, Serialize)]
pub struct ControlFigures {
    pub node: String,
    pub model: String,
    pub n_right: u64,
    pub n: u64,
}

/// How far two judges of one node agree on the records that both judged.
#[derive(Clone, Debug, Serialize)]
pub struct JudgeAgreement {
    pub node: String,
    pub judges: (String, String),
    pub n: u64,
    pub n_equal: u64,
    /// Cohen's kappa; null where chance alone would give the same.
    pub kappa: Option<f64>,
}

/// How the values of one slot stand in their texts, over all records that were judged.
#[derive(Clone, Debug, Serialize)]
pub struct SlotGrounding {
    pub node: String,
    pub slot: Slot,
    pub n_values: u64,
    pub n_exact: u64,
    pub n_normalised: u64,
    pub n_fuzzy: u64,
    pub n_contradicted: u64,
    pub n_not_found: u64,
    /// Values that the text supports, of all.
    pub grounded_share: f64,
}

#[derive(Clone, Debug, Serialize)]
pub struct DifficultyFigures {
    /// Source → band, or `none` → questions.
    pub by_source: BTreeMap<String, BTreeMap<String, u64>>,
    pub bounds: Option<Bounds>,
    pub clusters: Vec<Cluster>,
    pub models: Vec<SolverFigures>,
}

/// The answers of one model to all questions.
#[derive(Clone, Debug, Default, Serialize)]
pub struct SolverFigures {
    pub model: String,
    /// Who that is: `provider/model`.
    pub by: String,
    pub n_runs: u64,
    /// Means over the questions with at least one answer and a judgement; null if there is none.
    pub signals: Option<Signals>,
    /// Calls without an answer, by reason.
    pub failed: BTreeMap<String, u64>,
    /// The same by specialty of the question.
    pub failed_by_specialty: BTreeMap<String, u64>,
}

/// Counts what is built. Nothing runs.
pub fn figures(session: &Session) -> anyhow::Result<Figures> {
    let plans = session.plan()?;
    let upstream = Upstream { session, plans: &plans };
    let mut figures = Figures::default();
    for (index, plan) in plans.iter().enumerate() {
        let (Some(manifest), Some(folder)) = (&plan.manifest, &plan.build_dir) else { continue };
        let node = session.node(index)?;
        let n_shards = u32::try_from(manifest.shards.len())?;
        for (model, (n_right, n)) in tally(&manifest.controls) {
            figures.controls.push(ControlFigures { node: node.name.clone(), model, n_right, n });
        }
        figures.judgements.extend(verdicts(node, folder, n_shards)?);
        let mut said: BTreeMap<RecordId, BTreeMap<String, String>> = BTreeMap::new();
        for_each(node, folder, n_shards, |row| {
            if row.answered && row.about.is_none() {
                said.entry(row.record_id).or_default().insert(row.model, row.verdict);
            }
            Ok(())
        })?;
        figures.agreement.extend(agreement(&node.name, &said));
        figures.grounding.extend(grounding(&upstream, index)?);
    }
    figures.difficulty = difficulty_of(&upstream, &plans)?;
    figures.attrition = upstream.attrition(&session.graph.ancestors(session.graph.cases))?;
    Ok(figures)
}

fn agreement(node: &str, said: &BTreeMap<RecordId, BTreeMap<String, String>>) -> Vec<JudgeAgreement> {
    let mut judges: Vec<&String> = said.values().flat_map(BTreeMap::keys).collect();
    judges.sort_unstable();
    judges.dedup();
    let mut words: Vec<&String> = said.values().flat_map(BTreeMap::values).collect();
    words.sort_unstable();
    words.dedup();
    let mut pairs = Vec::new();
    for (position, one) in judges.iter().enumerate() {
        for other in judges.iter().skip(position + 1) {
            let both = said.values().filter_map(|by| Some((by.get(*one)?, by.get(*other)?)));
            let table = Confusion::of(&words, both);
            pairs.push(JudgeAgreement {
                node: node.to_owned(),
                judges: ((*one).clone(), (*other).clone()),
                n: table.n(),
                n_equal: table.n_equal(),
                kappa: table.kappa(Weights::None),
            });
        }
    }
    pairs
}

/// Every row of the side tables of one type that a node has.
fn each_row<R: Row>(upstream: &Upstream<'_>, index: usize, mut visit: impl FnMut(R)) -> anyhow::Result<()> {
    let node = upstream.session.node(index)?;
    for port in node.stage.outputs.iter().filter(|port| port.kind == PortKind::Side && port.row.name == R::NAME) {
        upstream.for_each_side(index, port.name, |batch| {
            from_batch::<R>(&batch)?.into_iter().for_each(&mut visit);
            Ok(())
        })?;
    }
    Ok(())
}

fn grounding(upstream: &Upstream<'_>, index: usize) -> anyhow::Result<Vec<SlotGrounding>> {
    let name = &upstream.session.node(index)?.name;
    let mut slots: BTreeMap<Slot, SlotGrounding> = BTreeMap::new();
    each_row::<GroundingRow>(upstream, index, |row| {
        let counts = slots.entry(row.slot).or_insert_with(|| SlotGrounding {
            node: name.clone(),
            slot: row.slot,
            n_values: 0,
            n_exact: 0,
            n_normalised: 0,
            n_fuzzy: 0,
            n_contradicted: 0,
            n_not_found: 0,
            grounded_share: 0.0,
        });
        for (sum, n) in [
            (&mut counts.n_exact, row.n_exact),
            (&mut counts.n_normalised, row.n_normalised),
            (&mut counts.n_fuzzy, row.n_fuzzy),
            (&mut counts.n_contradicted, row.n_contradicted),
            (&mut counts.n_not_found, row.n_not_found),
        ] {
            *sum += u64::from(n);
            counts.n_values += u64::from(n);
        }
    })?;
    Ok(slots
        .into_values()
        .map(|mut counts| {
            let n_grounded = counts.n_exact + counts.n_normalised + counts.n_fuzzy;
            counts.grounded_share = n_grounded as f64 / counts.n_values.max(1) as f64;
            counts
        })
        .collect())
}

/// What a record shows of the answers to its question.
#[derive(Deserialize)]
struct Answered {
    runs: Vec<ModelRuns>,
    specialty: Option<SpecialtyRow>,
}

fn difficulty_of(upstream: &Upstream<'_>, plans: &[NodePlan]) -> anyhow::Result<Option<DifficultyFigures>> {
    let mut rows: Vec<DifficultyRow> = Vec::new();
    let mut found = None;
    for (index, plan) in plans.iter().enumerate() {
        let before = rows.len();
        if plan.manifest.is_some() {
            each_row::<DifficultyRow>(upstream, index, |row| rows.push(row))?;
        }
        if rows.len() > before {
            found = Some(index);
        }
    }
    let Some(node) = found else { return Ok(None) };
    let mut by_source: BTreeMap<String, BTreeMap<String, u64>> = BTreeMap::new();
    for row in &rows {
        let band = row.band.map_or("none", Band::as_str);
        *by_source.entry(row.record_id.source().to_owned()).or_default().entry(band.to_owned()).or_default() += 1;
    }
    let scored: Vec<Signals> = rows.iter().filter(|row| row.score.is_some()).filter_map(|row| row.signals).collect();
    let scores = difficulty::score(&scored);
    let mut solvers: BTreeMap<String, (SolverFigures, Vec<Signals>)> = BTreeMap::new();
    for shard in 0..upstream.n_input_shards(node)? {
        let batch = upstream.read_input(node, shard, Some(&["runs", "specialty"]))?;
        for answered in from_batch::<Answered>(&batch)? {
            let specialty = answered.specialty.map_or_else(|| "unknown".to_owned(), |specialty| specialty.name);
            for of_model in answered.runs {
                let (solver, signals) = solvers.entry(of_model.model.clone()).or_default();
                solver.by.clone_from(&of_model.by);
                solver.n_runs += of_model.runs.len() as u64;
                for failed in &of_model.failed {
                    *solver.failed.entry(failed.reason.clone()).or_default() += 1;
                    *solver.failed_by_specialty.entry(specialty.clone()).or_default() += 1;
                }
                let runs: Vec<difficulty::Run<'_>> = of_model
                    .runs
                    .iter()
                    .map(|run| difficulty::Run {
                        n_steps: run.n_steps,
                        answer: &run.answer,
                        confidence: run.confidence,
                    })
                    .collect();
                signals.extend(signals_of(&runs, of_model.disagreement));
            }
        }
    }
    let models = solvers.into_iter().map(|(model, (solver, signals))| SolverFigures {
        model,
        signals: difficulty::average(&signals),
        ..solver
    });
    Ok(Some(DifficultyFigures {
        by_source,
        bounds: scores.bounds,
        clusters: scores.clusters,
        models: models.collect(),
    }))
}

/// The figures as text for a terminal.
pub fn text(figures: &Figures) -> String {
    let mut text = String::new();
    if !figures.controls.is_empty() {
        text += "control questions\n";
        for one in &figures.controls {
            text += &format!("  {}: model {}: {} of {} right\n", one.node, one.model, one.n_right, one.n);
        }
    }
    if !figures.judgements.is_empty() {
        text += "judgements\n";
        for counts in &figures.judgements {
            text += &format!("  {}: {}\n", counts.node, shown_verdicts(counts));
        }
    }
    for pair in &figures.agreement {
        let kappa = pair.kappa.map_or_else(|| "undefined".to_owned(), |kappa| format!("{kappa:.3}"));
        text += &format!(
            "  {}: {} and {} say the same of {} of {}, kappa {kappa}\n",
            pair.node, pair.judges.0, pair.judges.1, pair.n_equal, pair.n
        );
    }
    if !figures.grounding.is_empty() {
        text += &format!(
            "values in their texts\n  {:24} {:>8} {:>8} {:>10} {:>6} {:>12} {:>9} {:>8}\n",
            "slot", "values", "exact", "normalised", "fuzzy", "contradicted", "not found", "grounded"
        );
        for slot in &figures.grounding {
            text += &format!(
                "  {:24} {:>8} {:>8} {:>10} {:>6} {:>12} {:>9} {:>7.1} %\n",
                slot.slot.as_str(),
                grouped(slot.n_values),
                grouped(slot.n_exact),
                grouped(slot.n_normalised),
                grouped(slot.n_fuzzy),
                grouped(slot.n_contradicted),
                grouped(slot.n_not_found),
                100.0 * slot.grounded_share
            );
        }
    }
    if let Some(difficulty) = &figures.difficulty {
        text += &difficulty_text(difficulty);
    }
    text += &attrition::text(&figures.attrition);
    if text.is_empty() { "no node of this build has judged anything yet\n".to_owned() } else { text }
}

fn difficulty_text(figures: &DifficultyFigures) -> String {
    let bands = Band::ALL.map(Band::as_str).into_iter().chain(["none"]);
    let mut text = format!("difficulty\n  {:16} {:>8} {:>8} {:>8} {:>8}\n", "source", "easy", "medium", "hard", "none");
    for (source, counts) in &figures.by_source {
        text += &format!("  {source:16}");
        for band in bands.clone() {
            text += &format!(" {:>8}", grouped(counts.get(band).copied().unwrap_or_default()));
        }
        text.push('\n');
    }
    for cluster in &figures.clusters {
        text += &format!(
            "  {:16} score {:.4} to {:.4}, mean {:.4}\n",
            cluster.band.as_str(),
            cluster.least,
            cluster.greatest,
            cluster.mean
        );
    }
    if let Some(bounds) = &figures.bounds {
        for (name, (least, greatest)) in
            [("L, steps", bounds.steps), ("H, disagreement", bounds.disagreement), ("C, confidence", bounds.confidence)]
        {
            text += &format!("  {name:16} {least:.4} to {greatest:.4}\n");
        }
    }
    for model in &figures.models {
        text += &format!("  {} ({}): {} answers", model.model, model.by, grouped(model.n_runs));
        if let Some(signals) = &model.signals {
            text += &format!(
                ", {:.2} steps, disagreement {:.3}, confidence {:.3}",
                signals.steps, signals.disagreement, signals.confidence
            );
        }
        let list = |counts: &BTreeMap<String, u64>| {
            let shown: Vec<String> = counts.iter().map(|(name, n)| format!("{name} {}", grouped(*n))).collect();
            shown.join(", ")
        };
        if !model.failed.is_empty() {
            text += &format!("; none: {} ({})", list(&model.failed), list(&model.failed_by_specialty));
        }
        text.push('\n');
    }
    text
}
