//! `estimate_difficulty`: from the answers of models to a difficulty band for every question (MedRoundsQA, 3.2 and appendix F).
//! The last of three nodes, and the only one that sees all questions at once.
//!
//! Averages over models compare only if they are over the same models: one that says little makes a question look easier
//! when another model is missing. So a model with too few answers to a question is not averaged away; the setting `missing`
//! says what happens, and the row of the question names it.

use super::*;
use crate::difficulty::{self, Run, Signals};
use crate::record::difficulty::DifficultyRow;
use crate::record::slots::{ModelRuns, SlotRecord};
use crate::record::{RecordId, Row};
use anyhow::Context;
use polars::prelude::{LazyFrame, SortMultipleOptions, col};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use std::collections::{BTreeMap, BTreeSet};

pub const STAGE: StageDef = StageDef {
    name: "estimate_difficulty",
    summary: "Scales steps, disagreement and confidence over all questions and divides the questions into easy, medium and hard",
    shape: Shape::Table,
    revision: 1,
    inputs: &[Port::records::<SlotRecord>("records")],
    outputs: &[Port::records::<SlotRecord>("records"), Port::side::<DifficultyRow>(DIFFICULTY)],
    resources: &[],
    reasons: &[MISSING],
    settings: SettingsType::of::<DifficultySettings>(),
    build,
};

const DIFFICULTY: &str = "difficulty";
const MISSING: &str = "difficulty_model_missing";

/// What happens to a question to which a model has too few answers.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum MissingModel {
    /// It stays, without score and band.
    Unscored,
    /// The model is left out for all questions, so that all are averaged over the same models.
    LeaveOutModel,
    /// It is put in quarantine.
    Quarantine,
}

#[derive(Serialize, Deserialize, JsonSchema)]
#[serde(default, deny_unknown_fields)]
struct DifficultySettings {
    /// Answers that a model needs to a question to count for it.
    min_runs: u32,
    /// What happens to a question to which a model has fewer: `unscored`, `leave_out_model` or `quarantine`.
    missing: MissingModel,
}

impl Default for DifficultySettings {
    fn default() -> Self {
        Self { min_runs: 4, missing: MissingModel::Unscored }
    }
}

impl Settings for DifficultySettings {
    fn check(&self) -> Result<(), String> {
        if self.min_runs < 2 {
            return Err("min_runs must be at least 2: one answer has no disagreement".to_owned());
        }
        Ok(())
    }
}

fn build(arguments: &StageArguments<'_>) -> anyhow::Result<AnyStage> {
    Ok(AnyStage::table(EstimateDifficulty { settings: arguments.settings()? }))
}

struct EstimateDifficulty {
    settings: DifficultySettings,
}

/// What the table sees of a question.
#[derive(Clone, Serialize, Deserialize, JsonSchema)]
struct SignalColumns {
    /// JSON of [`OfModel`] for each model; empty if none was asked.
    signals: String,
}

impl Row for SignalColumns {
    const NAME: &'static str = "estimate_difficulty_columns";
    const TITLE: &'static str = "What estimate_difficulty compares.";
}

/// What one model's answers to one question come to.
#[derive(Serialize, Deserialize)]
struct OfModel {
    model: String,
    /// Steps, disagreement, confidence, as the bits of their doubles: JSON numbers do not keep every bit. None if the answers
    /// are too few.
    bits: Option<[u64; 3]>,
    shortage: Option<String>,
}

impl OfModel {
    fn of(of_model: &ModelRuns, min_runs: u32) -> Self {
        let runs: Vec<Run<'_>> = of_model
            .runs
            .iter()
            .map(|run| Run { n_steps: run.n_steps, answer: &run.answer, confidence: run.confidence })
            .collect();
        let model = of_model.model.clone();
        match (shortage(of_model, min_runs), signals_of(&runs, of_model.disagreement)) {
            (None, Some(signals)) => {
                let bits = [signals.steps, signals.disagreement, signals.confidence].map(f64::to_bits);
                Self { model, bits: Some(bits), shortage: None }
            }
            (shortage, _) => Self { model, bits: None, shortage },
        }
    }

    fn signals(&self) -> Option<Signals> {
        let [steps, disagreement, confidence] = self.bits?.map(f64::from_bits);
        Some(Signals { steps, disagreement, confidence })
    }
}

/// The signals of one model's answers; none without answers or without a judgement of them.
pub fn signals_of(runs: &[Run<'_>], disagreement: Option<f64>) -> Option<Signals> {
    Some(Signals {
        steps: difficulty::mean_steps(runs)?,
        disagreement: disagreement?,
        confidence: difficulty::confidence(runs)?,
    })
}

/// What is wrong with a model's answers to a question, as `model: reason n, …`; none if there are as many as are needed.
fn shortage(of_model: &ModelRuns, min_runs: u32) -> Option<String> {
    let enough = of_model.runs.len() >= min_runs as usize;
    if enough && of_model.disagreement.is_some() {
        return None;
    }
    let mut reasons: BTreeMap<&str, u32> = BTreeMap::new();
    for failed in &of_model.failed {
        *reasons.entry(&failed.reason).or_default() += 1;
    }
    if enough {
        reasons.insert("not_judged", 1);
    } else if reasons.is_empty() {
        reasons.insert("too_few_runs", u32::try_from(of_model.runs.len()).unwrap_or(u32::MAX));
    }
    let shown: Vec<String> = reasons.iter().map(|(reason, n)| format!("{reason} {n}")).collect();
    Some(format!("{}: {}", of_model.model, shown.join(", ")))
}

impl TableStage for EstimateDifficulty {
    type In = SlotRecord;
    type Columns = SignalColumns;

    fn columns(&self, record: &SlotRecord) -> anyhow::Result<SignalColumns> {
        let of_models: Vec<OfModel> =
            record.runs.iter().map(|of_model| OfModel::of(of_model, self.settings.min_runs)).collect();
        let signals = if of_models.is_empty() { String::new() } else { serde_json::to_string(&of_models)? };
        Ok(SignalColumns { signals })
    }

    fn decide(&self, table: LazyFrame, sides: &mut SideEmitter) -> anyhow::Result<Vec<Decision>> {
        // One order for sums, whatever the shards.
        let frame = table
            .sort([EngineColumns::RECORD_ID], SortMultipleOptions::default())
            .select([col(EngineColumns::RECORD_ID), col("signals")])
            .collect()?;
        let (ids, signals) = (frame.column(EngineColumns::RECORD_ID)?.str()?, frame.column("signals")?.str()?);
        let mut questions = Vec::with_capacity(frame.height());
        let mut decisions = Vec::with_capacity(frame.height());
        for row in 0..frame.height() {
            let record_id = RecordId::parse(ids.get(row).context("a record without id")?);
            match signals.get(row).context("a record without signals")? {
                "" => decisions.push(Decision { record_id, verdict: Verdict::Keep }),
                packed => questions.push((record_id, serde_json::from_str::<Vec<OfModel>>(packed)?)),
            }
        }
        let left_out: BTreeSet<String> = if self.settings.missing == MissingModel::LeaveOutModel {
            let all = questions.iter().flat_map(|(_, of_models)| of_models);
            all.filter(|of_model| of_model.bits.is_none()).map(|of_model| of_model.model.clone()).collect()
        } else {
            BTreeSet::new()
        };
        let mut averaged: Vec<Option<Signals>> = Vec::with_capacity(questions.len());
        for (_, of_models) in &questions {
            let counting: Vec<&OfModel> =
                of_models.iter().filter(|of_model| !left_out.contains(&of_model.model)).collect();
            let known: Vec<Signals> = counting.iter().filter_map(|of_model| of_model.signals()).collect();
            averaged.push(if known.len() == counting.len() { difficulty::average(&known) } else { None });
        }
        let scored: Vec<Signals> = averaged.iter().flatten().copied().collect();
        let mut scores = difficulty::score(&scored).items.into_iter();
        for ((record_id, of_models), signals) in questions.into_iter().zip(averaged) {
            let missing: Vec<String> = of_models.into_iter().filter_map(|of_model| of_model.shortage).collect();
            let scored = match signals {
                Some(_) => Some(scores.next().context("a question without a score")?),
                None => None,
            };
            let verdict = if scored.is_none() && self.settings.missing == MissingModel::Quarantine {
                Verdict::Quarantine(Cause::new(MISSING, missing.join("; ")))
            } else {
                Verdict::Keep
            };
            let row = DifficultyRow {
                record_id: record_id.clone(),
                signals,
                scaled: scored.as_ref().map(|scored| scored.scaled),
                score: scored.as_ref().map(|scored| scored.score),
                band: scored.and_then(|scored| scored.band),
                missing,
            };
            sides.side(DIFFICULTY, row);
            decisions.push(Decision { record_id, verdict });
        }
        Ok(decisions)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::record::Hash;
    use crate::record::slots::{FailedRun, Run as RecordRun};
    use crate::stage::testing::{check_table, slot_record};
    use expect_test::{Expect, expect};

    /// Answers of one model, all with the same steps and confidence.
    fn runs(model: &str, n_steps: u32, answers: &[&str], confidence: f64, disagreement: Option<f64>) -> ModelRuns {
        let run = |(sample, answer): (u32, &&str)| RecordRun {
            sample,
            n_steps,
            answer: (*answer).to_owned(),
            confidence,
            call: Hash::of(answer.as_bytes()),
        };
        let runs = (0..).zip(answers).map(run).collect();
        ModelRuns { model: model.to_owned(), by: "test/model".to_owned(), runs, failed: Vec::new(), disagreement }
    }

    fn refused(model: &str, n: u32) -> ModelRuns {
        let failed = (0..n).map(|sample| FailedRun {
            sample,
            reason: "reply_refused".to_owned(),
            detail: String::new(),
            call: Hash::of(b""),
        });
        ModelRuns { failed: failed.collect(), ..runs(model, 0, &[], 0.0, None) }
    }

    /// Two answers each of `a` and `b`, where a = (steps, disagreement, confidence of equal answers). Averages: question 1:
    /// L 2, H 0, C (1 + 0.8)/2 = 0.9. 2: L 4, H ½, C (½ + 0.5)/2 = ½. 3: L 6, H 1, C (½ + 0.1)/2 = 0.3. 4: `b` refuses.
    /// Scaled over 1 to 3: L 0, ½, 1; H 0, ½, 1; C 1, ⅓, 0; d = 0, (½ + ½ + ⅔)/3 = 5/9, 1.
    fn check(settings: &str, expected: Expect) {
        let mut records: Vec<SlotRecord> = (1..=4).map(|n| slot_record(&n.to_string(), "A man.", &[])).collect();
        records[0].runs =
            vec![runs("a", 1, &["Gout", "gout "], 0.8, Some(0.0)), runs("b", 3, &["gout", "GOUT"], 0.8, Some(0.0))];
        records[1].runs = vec![runs("a", 4, &["x", "y"], 0.5, Some(0.5)), runs("b", 4, &["x", "y"], 0.5, Some(0.5))];
        records[2].runs = vec![runs("a", 5, &["x", "y"], 0.1, Some(1.0)), runs("b", 7, &["x", "y"], 0.1, Some(1.0))];
        records[3].runs = vec![runs("a", 9, &["x", "x"], 0.6, Some(0.0)), refused("b", 2)];
        check_table(&STAGE, &format!("min_runs = 2\n{settings}"), &records, expected);
    }

    #[test]
    fn a_question_that_a_model_refuses_stays_without_a_band() {
        check(
            "",
            expect![[r#"
                keep t:1
                keep t:2
                keep t:3
                keep t:4
                difficulty t:1 {"band":"easy","missing":[],"record_id":"t:1","scaled":{"confidence":1.0,"disagreement":0.0,"steps":0.0},"score":0.0,"signals":{"confidence":0.9,"disagreement":0.0,"steps":2.0}}
                difficulty t:2 {"band":"medium","missing":[],"record_id":"t:2","scaled":{"confidence":0.3333333333333333,"disagreement":0.5,"steps":0.5},"score":0.5555555555555556,"signals":{"confidence":0.5,"disagreement":0.5,"steps":4.0}}
                difficulty t:3 {"band":"hard","missing":[],"record_id":"t:3","scaled":{"confidence":0.0,"disagreement":1.0,"steps":1.0},"score":1.0,"signals":{"confidence":0.3,"disagreement":1.0,"steps":6.0}}
                difficulty t:4 {"band":null,"missing":["b: reply_refused 2"],"record_id":"t:4","scaled":null,"score":null,"signals":null}
            "#]],
        );
    }

    /// Without `b`: L 1, 4, 5, 9; H 0, ½, 1, 0; C 0.9, 0.5, 0.3, 0.8.
    #[test]
    fn a_model_that_refuses_one_question_can_be_left_out_of_all() {
        check(
            "missing = 'leave_out_model'",
            expect![[r#"
            keep t:1
            keep t:2
            keep t:3
            keep t:4
            difficulty t:1 {"band":"easy","missing":[],"record_id":"t:1","scaled":{"confidence":1.0,"disagreement":0.0,"steps":0.0},"score":0.0,"signals":{"confidence":0.9,"disagreement":0.0,"steps":1.0}}
            difficulty t:2 {"band":"medium","missing":[],"record_id":"t:2","scaled":{"confidence":0.3333333333333333,"disagreement":0.5,"steps":0.375},"score":0.513888888888889,"signals":{"confidence":0.5,"disagreement":0.5,"steps":4.0}}
            difficulty t:3 {"band":"hard","missing":[],"record_id":"t:3","scaled":{"confidence":0.0,"disagreement":1.0,"steps":0.5},"score":0.8333333333333334,"signals":{"confidence":0.3,"disagreement":1.0,"steps":5.0}}
            difficulty t:4 {"band":"medium","missing":["b: reply_refused 2"],"record_id":"t:4","scaled":{"confidence":0.8333333333333333,"disagreement":0.0,"steps":1.0},"score":0.3888888888888889,"signals":{"confidence":0.8,"disagreement":0.0,"steps":9.0}}
        "#]],
        );
    }

    #[test]
    fn a_question_that_a_model_refuses_can_go_to_quarantine() {
        check(
            "missing = 'quarantine'",
            expect![[r#"
            keep t:1
            keep t:2
            keep t:3
            quarantined t:4 difficulty_model_missing: b: reply_refused 2
            difficulty t:1 {"band":"easy","missing":[],"record_id":"t:1","scaled":{"confidence":1.0,"disagreement":0.0,"steps":0.0},"score":0.0,"signals":{"confidence":0.9,"disagreement":0.0,"steps":2.0}}
            difficulty t:2 {"band":"medium","missing":[],"record_id":"t:2","scaled":{"confidence":0.3333333333333333,"disagreement":0.5,"steps":0.5},"score":0.5555555555555556,"signals":{"confidence":0.5,"disagreement":0.5,"steps":4.0}}
            difficulty t:3 {"band":"hard","missing":[],"record_id":"t:3","scaled":{"confidence":0.0,"disagreement":1.0,"steps":1.0},"score":1.0,"signals":{"confidence":0.3,"disagreement":1.0,"steps":6.0}}
            difficulty t:4 {"band":null,"missing":["b: reply_refused 2"],"record_id":"t:4","scaled":null,"score":null,"signals":null}
        "#]],
        );
    }

    #[test]
    fn a_build_without_models_has_no_difficulty_and_loses_nothing() {
        let records = [slot_record("1", "A man.", &[]), slot_record("2", "A man.", &[])];
        check_table(
            &STAGE,
            "",
            &records,
            expect![[r#"
            keep t:1
            keep t:2
        "#]],
        );
    }

    #[test]
    fn one_answer_has_no_disagreement() {
        let settings = DifficultySettings { min_runs: 1, ..DifficultySettings::default() };
        assert!(settings.check().unwrap_err().contains("min_runs must be at least 2"));
    }
}
