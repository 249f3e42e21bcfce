//! `score_conversion`: how well a staged case keeps to its article (ClinMM-Bench, 4.1.5 and supplement G; SPEC section 8): by
//! rules, and by a judge that is another model than the converter. The gate uses both.

use super::ask::{self, Asking, CONTROLS_RESOURCE, JUDGEMENTS, Rating};
use super::prompt::{COPIED_EXAMPLE, PROMPT, Variable};
use super::*;
use crate::dag::RULES;
use crate::record::ledger::ReviewRow;
use crate::record::model::{JudgementRow, NOT_RUN, add_maker, field};
use crate::record::staged::{StagedCase, StagedText};
use anyhow::Context;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use serde_json::{Value, json};
use std::collections::BTreeMap;

pub const STAGE: StageDef = StageDef {
    name: "score_conversion",
    summary: "Drops staged cases with too little that the article supports, or with a low score of a judge from 1 to 5",
    shape: Shape::Model,
    revision: 1,
    inputs: &[Port::records::<StagedCase>("records")],
    outputs: &[
        Port::records::<StagedCase>("records"),
        Port::side::<ReviewRow>("review"),
        Port::side::<JudgementRow>(JUDGEMENTS),
    ],
    resources: &[
        ResourceDecl { name: PROMPT, summary: "what the judge is asked, as Markdown with a `report` and its `case`" },
        CONTROLS_RESOURCE,
    ],
    reasons: &["unsupported", "low_coverage", "low_judgement", COPIED_EXAMPLE],
    settings: SettingsType::of::<ScoreSettings>(),
    build,
};

const SCORE: &str = "score";

#[derive(Serialize, Deserialize, JsonSchema)]
#[serde(default, deny_unknown_fields)]
struct ScoreSettings {
    /// A case of whose texts a smaller share has support in the article is dropped, 0 to 1.
    min_grounded: f64,
    /// A case that covers a smaller share of the sentences about the patient is dropped, 0 to 1.
    min_coverage: f64,
    /// The judge, by its name under `[models]`: another model than the converter; `rules` for none.
    judge: String,
    /// A case with a lower score of the judge is dropped, 1 to 5 (published: 3).
    min_judge_score: u32,
    /// Most characters of a report that the judge is shown.
    max_report_chars: u32,
}

impl Default for ScoreSettings {
    fn default() -> Self {
        Self {
            min_grounded: 0.7,
            min_coverage: 0.1,
            judge: RULES.to_owned(),
            min_judge_score: 3,
            max_report_chars: 60_000,
        }
    }
}

impl Settings for ScoreSettings {
    fn check(&self) -> Result<(), String> {
        let shares = [("min_grounded", self.min_grounded), ("min_coverage", self.min_coverage)];
        ask::check_limits(&shares, self.min_judge_score)
    }

    fn models(&self) -> Vec<String> {
        vec![self.judge.clone()]
    }

    const DEMANDS: ModelDemands = ModelDemands { distinct: false, unlike: &["convert_case"] };
}

#[derive(Clone, Deserialize)]
#[serde(deny_unknown_fields)]
struct ControlCase {
    name: String,
    report: String,
    /// JSON.
    case: String,
    expect: Vec<String>,
}

fn build(arguments: &StageArguments<'_>) -> anyhow::Result<AnyStage> {
    let resources = arguments.resources;
    let schema = ask::reasoned(SCORE, json!({"type": "integer", "enum": [1, 2, 3, 4, 5]}));
    Ok(AnyStage::model(ScoreConversion {
        settings: arguments.settings()?,
        asking: Asking::new(resources, &["report", "case"], "fidelity", schema)?,
        controls: ask::controls(resources)?,
    }))
}

struct ScoreConversion {
    settings: ScoreSettings,
    asking: Asking,
    controls: Vec<ControlCase>,
}

/// The case as a judge sees it.
fn shown(case: &StagedCase) -> Value {
    let text = |text: Option<&StagedText>| text.map(|text| text.text.clone());
    let english: BTreeMap<&str, Option<String>> =
        case.english.fields().into_iter().map(|(name, staged)| (name, text(staged))).collect();
    let images = case.images.iter().map(|image| {
        json!({
            "image_id": image.image_id,
            "image_type": image.image_type,
            "image_finding": text(image.image_finding.as_ref()),
            "diagnostic_significance": text(image.diagnostic_significance.as_ref()),
        })
    });
    json!({
        "english": english,
        "images": images.collect::<Vec<_>>(),
        "final_diagnosis": case.final_diagnosis.text,
        "diagnostic_reasoning": text(case.diagnostic_reasoning.as_ref()),
    })
}

fn share(part: u32, whole: u32) -> f64 {
    if whole == 0 { 0.0 } else { f64::from(part) / f64::from(whole) }
}

impl ScoreConversion {
    fn call(&self, report: &str, case: String) -> anyhow::Result<Call> {
        let report = crate::text::excerpt(report, self.settings.max_report_chars as usize);
        let variables = BTreeMap::from([("report", Variable::Source(report)), ("case", Variable::Source(case))]);
        self.asking.call(&self.settings.judge, &variables, 0)
    }

    /// Why the rules drop a case.
    fn refusal(&self, case: &StagedCase) -> Option<Cause> {
        let fidelity = case.fidelity.clone().unwrap_or_default();
        let grounded = share(fidelity.n_grounded, fidelity.n_texts);
        if grounded < self.settings.min_grounded {
            let detail = format!(
                "{} of {} texts have support in the article, a share below {}",
                fidelity.n_grounded, fidelity.n_texts, self.settings.min_grounded
            );
            return Some(Cause::new("unsupported", detail));
        }
        let covered = share(fidelity.n_covered, fidelity.n_sentences);
        (covered < self.settings.min_coverage).then(|| {
            let detail = format!(
                "{} of {} sentences about the patient are in the case, a share below {}",
                fidelity.n_covered, fidelity.n_sentences, self.settings.min_coverage
            );
            Cause::new("low_coverage", detail)
        })
    }
}

impl ModelStage for ScoreConversion {
    type In = StagedCase;
    type Out = StagedCase;

    /// None for a case that the rules drop.
    fn calls(&self, case: &StagedCase, _: &StageContext<'_>) -> anyhow::Result<Vec<Call>> {
        match self.refusal(case) {
            Some(_) => Ok(Vec::new()),
            None => Ok(vec![self.call(&case.article_text, shown(case).to_string())?]),
        }
    }

    fn read(
        &self,
        mut case: StagedCase,
        results: Vec<CallResult>,
        out: &mut Emitter<'_, StagedCase>,
    ) -> anyhow::Result<Verdict> {
        let rating = match self.asking.rating(&case.record_id, "fidelity", SCORE, results, out)? {
            None => return self.without_model(case, out),
            Some(Err(verdict)) => return Ok(verdict),
            Some(Ok(rating)) => rating,
        };
        let Rating { score, reason, reply } = rating;
        if score < self.settings.min_judge_score {
            let limit = self.settings.min_judge_score;
            let detail = format!("{score} is below {limit}, by {}: {reason}", reply.model);
            return Ok(Verdict::Drop(Cause::new("low_judgement", detail)));
        }
        add_maker(&mut case.made_by, field::JUDGEMENT, &reply.model);
        case.replies.push(reply.trace(STAGE.name));
        let fidelity = case.fidelity.get_or_insert_default();
        (fidelity.judge_score, fidelity.judge_reason) = (Some(score), Some(reason));
        fidelity.judge = Some(reply.model.clone());
        self.keep(case, out)
    }

    fn without_model(&self, mut case: StagedCase, out: &mut Emitter<'_, StagedCase>) -> anyhow::Result<Verdict> {
        if let Some(cause) = self.refusal(&case) {
            return Ok(Verdict::Drop(cause));
        }
        add_maker(&mut case.made_by, field::JUDGEMENT, NOT_RUN);
        self.keep(case, out)
    }

    fn controls(&self) -> anyhow::Result<Vec<Control>> {
        let control = |known: &ControlCase| {
            let case: Value = serde_json::from_str(&known.case)
                .with_context(|| format!("control `{}`: its case is no JSON", known.name))?;
            let call = self.call(&known.report, case.to_string())?;
            Ok(ask::control(&known.name, call, SCORE, Expect::OneOf(known.expect.clone())))
        };
        self.controls.iter().map(control).collect()
    }
}

impl ScoreConversion {
    fn keep(&self, case: StagedCase, out: &mut Emitter<'_, StagedCase>) -> anyhow::Result<Verdict> {
        if case.flags.iter().any(|flag| flag == "unsupported_texts") {
            let fidelity = case.fidelity.clone().unwrap_or_default();
            out.side(
                "review",
                ReviewRow {
                    record_id: case.record_id.clone(),
                    reason: "unsupported_texts".to_owned(),
                    detail: format!(
                        "{} of {} texts have support in the article",
                        fidelity.n_grounded, fidelity.n_texts
                    ),
                    related: Vec::new(),
                },
            );
        }
        out.emit(case);
        Ok(Verdict::Keep)
    }
}
