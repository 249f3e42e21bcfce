//! `filter_vignette`: text-sufficient diagnostic vignettes only (MedRoundsQA, 3.1 and A.1), by rules, and by a model that is
//! asked about those that the rules keep.

use super::ask::{CONTROLS_RESOURCE, JUDGEMENTS, UNSUITABLE};
use super::prompt::PROMPT;
use super::suitability::Suitability;
use super::vignette_rules::{DropReason, Judgement, VignetteRules};
use super::*;
use crate::dag::RULES;
use crate::record::ledger::ReviewRow;
use crate::record::model::{JudgementRow, add_maker, field};
use crate::record::question::AnsweredQuestion;
use anyhow::Context;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

pub const STAGE: StageDef = StageDef {
    name: "filter_vignette",
    summary: "Keeps questions that describe a patient and ask for the diagnosis, from the text alone: by rules, then by a model",
    shape: Shape::Model,
    revision: 3,
    inputs: &[Port::records::<AnsweredQuestion>("records")],
    outputs: &[
        Port::records::<AnsweredQuestion>("records"),
        Port::side::<ReviewRow>("review"),
        Port::side::<JudgementRow>(JUDGEMENTS),
    ],
    resources: &[
        ResourceDecl { name: "rules", summary: "ordered rules that decide, as TOML" },
        ResourceDecl { name: PROMPT, summary: "what a model is asked, as Markdown with a `question`" },
        CONTROLS_RESOURCE,
    ],
    reasons: &[
        "empty_vignette",
        "image_dependent",
        "administrative",
        "guideline",
        "management",
        "factual_recall",
        "no_patient",
        "incomplete",
        "not_diagnostic",
        UNCERTAIN,
        UNSUITABLE,
    ],
    settings: SettingsType::of::<FilterSettings>(),
    build,
};

/// Kept because of what the options are, not because of what is asked: a person should look.
const UNCERTAIN: &str = "uncertain_vignette";

#[derive(Serialize, Deserialize, JsonSchema)]
#[serde(default, deny_unknown_fields)]
struct FilterSettings {
    /// The model that is asked about what the rules keep, by its name under `[models]`; `rules` for none.
    model: String,
}

impl Default for FilterSettings {
    fn default() -> Self {
        Self { model: RULES.to_owned() }
    }
}

impl Settings for FilterSettings {
    fn models(&self) -> Vec<String> {
        vec![self.model.clone()]
    }
}

fn build(arguments: &StageArguments<'_>) -> anyhow::Result<AnyStage> {
    let settings: FilterSettings = arguments.settings()?;
    let text = arguments.resources.text("rules")?;
    let rules = VignetteRules::parse(text).with_context(|| arguments.resources.file("rules").to_owned())?;
    let suitability = Suitability::new(arguments.resources)?;
    Ok(AnyStage::model(FilterVignette { rules, model: settings.model, suitability }))
}

struct FilterVignette {
    rules: VignetteRules,
    model: String,
    suitability: Suitability,
}

impl FilterVignette {
    fn by_rules(&self, record: &AnsweredQuestion) -> Judgement<'_> {
        let options: Vec<&str> = record.options.iter().map(|option| option.text.as_str()).collect();
        self.rules.judge(&record.stem, &record.answer_text, &options)
    }
}

impl ModelStage for FilterVignette {
    type In = AnsweredQuestion;
    type Out = AnsweredQuestion;

    fn calls(&self, record: &AnsweredQuestion, _: &StageContext<'_>) -> anyhow::Result<Vec<Call>> {
        match self.by_rules(record) {
            Judgement::Drop { .. } => Ok(Vec::new()),
            Judgement::Keep { .. } => Ok(vec![self.suitability.call(&self.model, record)?]),
        }
    }

    fn read(
        &self,
        mut record: AnsweredQuestion,
        results: Vec<CallResult>,
        out: &mut Emitter<'_, AnsweredQuestion>,
    ) -> anyhow::Result<Verdict> {
        let replies = match self.suitability.replies(STAGE.name, field::VIGNETTE, &mut record, results, out)? {
            Ok(replies) => replies,
            Err(verdict) => return Ok(verdict),
        };
        for reply in &replies {
            let (fit, reason) = self.suitability.verdict(reply)?;
            if !fit {
                return Ok(Verdict::Drop(Cause::new(UNSUITABLE, format!("{}: {reason}", reply.model))));
            }
        }
        self.without_model(record, out)
    }

    fn without_model(
        &self,
        mut record: AnsweredQuestion,
        out: &mut Emitter<'_, AnsweredQuestion>,
    ) -> anyhow::Result<Verdict> {
        match self.by_rules(&record) {
            Judgement::Drop { reason, rule, words } => {
                return Ok(Verdict::Drop(Cause::new(DropReason::as_str(reason), format!("rule {rule}: {words}"))));
            }
            Judgement::Keep { certain: true, .. } => {}
            Judgement::Keep { rule, words, certain: false } => {
                let detail = format!("rule {rule}: {words}");
                let record_id = record.record_id.clone();
                out.side("review", ReviewRow { record_id, reason: UNCERTAIN.to_owned(), detail, related: Vec::new() });
            }
        }
        add_maker(&mut record.made_by, field::VIGNETTE, RULES);
        out.emit(record);
        Ok(Verdict::Keep)
    }

    fn controls(&self) -> anyhow::Result<Vec<Control>> {
        self.suitability.controls(std::slice::from_ref(&self.model))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_reason_of_the_rules_is_declared() {
        let names: Vec<&str> = DropReason::ALL.into_iter().map(DropReason::as_str).collect();
        assert_eq!([&names[..], &[UNCERTAIN, UNSUITABLE]].concat(), STAGE.reasons);
    }
}
