//! `validate_consensus`: several models, each asked alone whether a question is fit; all must say so (ClinMM-Bench, 4.1.3).

use super::ask::{self, CONTROLS_RESOURCE, DISPUTED, JUDGEMENTS, UNSUITABLE};
use super::prompt::PROMPT;
use super::suitability::{Suitability, VERDICT};
use super::*;
use crate::dag::RULES;
use crate::record::decision::Action;
use crate::record::ledger::ReviewRow;
use crate::record::model::{JudgementRow, NOT_RUN, add_maker, field};
use crate::record::question::AnsweredQuestion;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

pub const STAGE: StageDef = StageDef {
    name: "validate_consensus",
    summary: "Keeps questions that two or more different models say are fit; where they differ the record goes to a person's list",
    shape: Shape::Model,
    revision: 1,
    inputs: &[Port::records::<AnsweredQuestion>("records")],
    outputs: &[
        Port::records::<AnsweredQuestion>("records"),
        Port::side::<ReviewRow>("review"),
        Port::side::<JudgementRow>(JUDGEMENTS),
    ],
    resources: &[
        ResourceDecl { name: PROMPT, summary: "what the models are asked, as Markdown with a `question`" },
        CONTROLS_RESOURCE,
    ],
    reasons: &[UNSUITABLE, DISPUTED],
    settings: SettingsType::of::<ConsensusSettings>(),
    build,
};

#[derive(Serialize, Deserialize, JsonSchema)]
#[serde(default, deny_unknown_fields)]
struct ConsensusSettings {
    /// The models, by their names under `[models]`: at least two, no two of them the same; none leaves the stage out.
    models: Vec<String>,
    /// What happens to a record about which they differ. It is on the list for review in any case.
    disputed: Action,
}

impl Default for ConsensusSettings {
    fn default() -> Self {
        Self { models: Vec::new(), disputed: Action::Drop }
    }
}

impl Settings for ConsensusSettings {
    fn check(&self) -> Result<(), String> {
        match self.models.as_slice() {
            [one] if one != RULES => Err(format!("models names `{one}` alone: a consensus needs two")),
            _ => Ok(()),
        }
    }

    fn models(&self) -> Vec<String> {
        self.models.clone()
    }

    const DEMANDS: ModelDemands = ModelDemands { distinct: true, unlike: &[] };
}

fn build(arguments: &StageArguments<'_>) -> anyhow::Result<AnyStage> {
    let suitability = Suitability::new(arguments.resources)?;
    Ok(AnyStage::model(ValidateConsensus { settings: arguments.settings()?, suitability }))
}

struct ValidateConsensus {
    settings: ConsensusSettings,
    suitability: Suitability,
}

impl ModelStage for ValidateConsensus {
    type In = AnsweredQuestion;
    type Out = AnsweredQuestion;

    fn calls(&self, record: &AnsweredQuestion, _: &StageContext<'_>) -> anyhow::Result<Vec<Call>> {
        self.settings.models.iter().map(|model| self.suitability.call(model, record)).collect()
    }

    fn read(
        &self,
        mut record: AnsweredQuestion,
        results: Vec<CallResult>,
        out: &mut Emitter<'_, AnsweredQuestion>,
    ) -> anyhow::Result<Verdict> {
        let replies = match self.suitability.replies(STAGE.name, field::CONSENSUS, &mut record, results, out)? {
            Ok(replies) => replies,
            Err(verdict) => return Ok(verdict),
        };
        if let Some(verdict) = ask::consensus(&record.record_id, &replies, VERDICT, self.settings.disputed, out)? {
            return Ok(verdict);
        }
        out.emit(record);
        Ok(Verdict::Keep)
    }

    fn without_model(
        &self,
        mut record: AnsweredQuestion,
        out: &mut Emitter<'_, AnsweredQuestion>,
    ) -> anyhow::Result<Verdict> {
        add_maker(&mut record.made_by, field::CONSENSUS, NOT_RUN);
        out.emit(record);
        Ok(Verdict::Keep)
    }

    fn controls(&self) -> anyhow::Result<Vec<Control>> {
        self.suitability.controls(&self.settings.models)
    }
}
