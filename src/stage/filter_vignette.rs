//! `filter_vignette`: text-sufficient diagnostic vignettes only (MedRoundsQA, 3.1 and A.1), by rules.

use super::vignette_rules::{DropReason, Judgement, VignetteRules};
use super::*;
use crate::record::ledger::ReviewRow;
use crate::record::question::AnsweredQuestion;
use anyhow::Context;

pub const STAGE: StageDef = StageDef {
    name: "filter_vignette",
    summary: "Keeps questions that describe a patient and ask for the diagnosis, from the text alone; the rules are a resource",
    shape: Shape::Filter,
    revision: 2,
    inputs: &[Port::records::<AnsweredQuestion>("records")],
    outputs: &[Port::records::<AnsweredQuestion>("records"), Port::side::<ReviewRow>("review")],
    resources: &[ResourceDecl { name: "rules", summary: "ordered rules that decide, as TOML" }],
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
    ],
    settings: SettingsType::of::<NoSettings>(),
    build,
};

/// Kept because of what the options are, not because of what is asked: a person should look.
const UNCERTAIN: &str = "uncertain_vignette";

fn build(arguments: &StageArguments<'_>) -> anyhow::Result<AnyStage> {
    let text = arguments.resources.text("rules")?;
    let rules = VignetteRules::parse(text).with_context(|| arguments.resources.file("rules").to_owned())?;
    Ok(AnyStage::filter(FilterVignette { rules }))
}

struct FilterVignette {
    rules: VignetteRules,
}

impl FilterStage for FilterVignette {
    type In = AnsweredQuestion;

    fn judge(
        &self,
        record: &AnsweredQuestion,
        sides: &mut SideEmitter,
        _: &StageContext<'_>,
    ) -> anyhow::Result<Verdict> {
        let options: Vec<&str> = record.options.iter().map(|option| option.text.as_str()).collect();
        Ok(match self.rules.judge(&record.stem, &record.answer_text, &options) {
            Judgement::Keep { certain: true, .. } => Verdict::Keep,
            Judgement::Keep { rule, words, certain: false } => {
                let detail = format!("rule {rule}: {words}");
                let record_id = record.record_id.clone();
                let reason = UNCERTAIN.to_owned();
                sides.side("review", ReviewRow { record_id, reason, detail, related: Vec::new() });
                Verdict::Keep
            }
            Judgement::Drop { reason, rule, words } => {
                Verdict::Drop(Cause::new(DropReason::as_str(reason), format!("rule {rule}: {words}")))
            }
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_reason_of_the_rules_is_declared() {
        let names: Vec<&str> = DropReason::ALL.into_iter().map(DropReason::as_str).collect();
        assert_eq!([&names[..], &[UNCERTAIN]].concat(), STAGE.reasons);
    }
}
