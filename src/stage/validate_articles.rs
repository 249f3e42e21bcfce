//! `validate_articles`: is a case report fit as a diagnostic teaching case (ClinMM-Bench, 4.1.3 and supplement E)? Rules drop
//! what they are sure of; of the others two or more different models must all say so, each asked alone.

use super::ask::{self, Asking, CONTROLS_RESOURCE, DISPUTED, JUDGEMENTS, NO, UNSUITABLE, YES};
use super::prompt::{COPIED_EXAMPLE, PROMPT, Variable};
use super::*;
use crate::dag::RULES;
use crate::record::article::ArticleRecord;
use crate::record::decision::Action;
use crate::record::ledger::ReviewRow;
use crate::record::model::{JudgementRow, add_maker, field};
use crate::stage::ingest_jats::RETRACTED_BY_ARCHIVE;
use crate::staging::plain::report;
use crate::staging::sections::roles;
use crate::staging::series::series;
use crate::staging::suitability::{CaseReportRules, REASONS, obstacles};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use serde_json::json;
use std::collections::BTreeMap;

pub const STAGE: StageDef = StageDef {
    name: "validate_articles",
    summary: "Keeps case reports that rules let pass and that two or more different models say are fit; where they differ the record goes to a person's list",
    shape: Shape::Model,
    revision: 1,
    inputs: &[Port::records::<ArticleRecord>("records")],
    outputs: &[
        Port::records::<ArticleRecord>("records"),
        Port::side::<ReviewRow>("review"),
        Port::side::<JudgementRow>(JUDGEMENTS),
    ],
    resources: &[
        ResourceDecl { name: "rules", summary: "what makes an article unfit, and how diagnoses are stated, as TOML" },
        ResourceDecl { name: PROMPT, summary: "what the models are asked, as Markdown with a `report`" },
        CONTROLS_RESOURCE,
    ],
    reasons: &[
        "retracted",
        "retraction_notice",
        "correction_notice",
        "concern_notice",
        "no_body",
        "not_english",
        "not_case_report",
        "review",
        "case_series",
        "treatment_focused",
        "adverse_reaction",
        "no_reasoning",
        UNSUITABLE,
        DISPUTED,
        COPIED_EXAMPLE,
    ],
    settings: SettingsType::of::<ArticleConsensusSettings>(),
    build,
};

const VERDICT: &str = "verdict";

#[derive(Serialize, Deserialize, JsonSchema)]
#[serde(default, deny_unknown_fields)]
struct ArticleConsensusSettings {
    /// The models, by their names under `[models]`: at least two, no two of them the same; none leaves the decision to rules.
    models: Vec<String>,
    /// What happens to an article about which they differ. It is on the list for review in any case.
    disputed: Action,
    /// Obstacles of the rules that are let pass here, by their reason, such as `treatment_focused`.
    ignore: Vec<String>,
    /// Most characters of a report that a model is shown; longer ones are cut at the end of a paragraph.
    max_report_chars: u32,
}

impl Default for ArticleConsensusSettings {
    fn default() -> Self {
        Self { models: Vec::new(), disputed: Action::Drop, ignore: Vec::new(), max_report_chars: 60_000 }
    }
}

impl Settings for ArticleConsensusSettings {
    fn check(&self) -> Result<(), String> {
        if let Some(unknown) = self.ignore.iter().find(|reason| !REASONS.contains(&reason.as_str())) {
            return Err(format!("ignore: `{unknown}` is no obstacle (known: {})", REASONS.join(", ")));
        }
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

#[derive(Clone, Deserialize)]
#[serde(deny_unknown_fields)]
struct ControlReport {
    name: String,
    report: String,
    expect: Vec<String>,
}

fn build(arguments: &StageArguments<'_>) -> anyhow::Result<AnyStage> {
    let resources = arguments.resources;
    let schema = ask::reasoned(VERDICT, json!({"type": "string", "enum": [YES, NO]}));
    Ok(AnyStage::model(ValidateArticles {
        settings: arguments.settings()?,
        rules: CaseReportRules::parse(resources.file("rules"), resources.text("rules")?)?,
        asking: Asking::new(resources, &["report"], "suitability", schema)?,
        controls: ask::controls(resources)?,
    }))
}

struct ValidateArticles {
    settings: ArticleConsensusSettings,
    rules: CaseReportRules,
    asking: Asking,
    controls: Vec<ControlReport>,
}

impl ValidateArticles {
    fn call(&self, model: &str, report: String) -> anyhow::Result<Call> {
        self.asking.call(model, &BTreeMap::from([("report", Variable::Source(report))]), 0)
    }

    /// Why the rules drop an article.
    fn refusal(&self, record: &ArticleRecord) -> Option<Cause> {
        if record.flags.iter().any(|flag| flag == RETRACTED_BY_ARCHIVE) {
            return Some(Cause::new("retracted", "the archive's record of the article says so"));
        }
        let article = &record.article;
        let roles = roles(article);
        let found = series(article, &roles);
        let is_ignored = |reason: &str| {
            // A record of one patient of a series is about one patient.
            self.settings.ignore.iter().any(|known| known == reason)
                || reason == "case_series" && record.patient.is_some()
        };
        obstacles(article, &roles, &found, &self.rules)
            .into_iter()
            .find(|obstacle| !is_ignored(obstacle.reason))
            .map(|obstacle| Cause::new(obstacle.reason, obstacle.detail))
    }
}

impl ModelStage for ValidateArticles {
    type In = ArticleRecord;
    type Out = ArticleRecord;

    /// None for an article that the rules drop.
    fn calls(&self, record: &ArticleRecord, _: &StageContext<'_>) -> anyhow::Result<Vec<Call>> {
        if self.refusal(record).is_some() {
            return Ok(Vec::new());
        }
        let text = report(&record.article, record.patient.as_ref(), self.settings.max_report_chars as usize);
        self.settings.models.iter().map(|model| self.call(model, text.clone())).collect()
    }

    fn read(
        &self,
        mut record: ArticleRecord,
        mut results: Vec<CallResult>,
        out: &mut Emitter<'_, ArticleRecord>,
    ) -> anyhow::Result<Verdict> {
        if results.is_empty() {
            return self.without_model(record, out);
        }
        for result in &mut results {
            if let Ok(reply) = &result
                && let Some(fault) = self.asking.fault(reply)
            {
                *result = Err(Failure::of(reply, fault));
            }
            out.side(JUDGEMENTS, ask::judgement(&record.record_id, "suitable", None, VERDICT, result)?);
            if let Ok(reply) = result {
                add_maker(&mut record.made_by, field::CONSENSUS, &reply.model);
                record.replies.push(reply.trace(STAGE.name));
            }
        }
        let replies = match complete(results) {
            Ok(replies) => replies,
            Err(failure) => return Ok(failure.quarantine()),
        };
        if let Some(verdict) = ask::consensus(&record.record_id, &replies, VERDICT, self.settings.disputed, out)? {
            return Ok(verdict);
        }
        out.emit(record);
        Ok(Verdict::Keep)
    }

    fn without_model(
        &self,
        mut record: ArticleRecord,
        out: &mut Emitter<'_, ArticleRecord>,
    ) -> anyhow::Result<Verdict> {
        if let Some(cause) = self.refusal(&record) {
            return Ok(Verdict::Drop(cause));
        }
        add_maker(&mut record.made_by, field::CONSENSUS, RULES);
        out.emit(record);
        Ok(Verdict::Keep)
    }

    fn controls(&self) -> anyhow::Result<Vec<Control>> {
        let mut controls = Vec::new();
        for model in &self.settings.models {
            for known in &self.controls {
                let call = self.call(model, known.report.clone())?;
                controls.push(ask::control(&known.name, call, VERDICT, Expect::OneOf(known.expect.clone())));
            }
        }
        Ok(controls)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::record::article::EditorialState;
    use crate::stage::testing::{article_record, check_with};
    use expect_test::expect;

    #[test]
    fn every_obstacle_is_a_reason() {
        for reason in REASONS {
            assert!(STAGE.reasons.contains(reason), "{reason}");
        }
    }

    /// Case pmc-07: retracted articles and notices leave, each with its reason; a corrected article stays.
    #[test]
    fn pmc_07_retracted_and_notices_leave_and_corrected_stays() {
        let body = "<sec><title>Case presentation</title><p>A 40-year-old man presented with pain in the left knee. \
            Radiographs showed a cyst.</p></sec><sec><title>Discussion</title><p>The cyst on radiographs led us to \
            the diagnosis of a bone cyst in our patient, because the cortex was intact.</p></sec>";
        let record = |id: &str, title: &str, state: EditorialState, flags: &[&str]| {
            let mut record = article_record(id, title, body);
            record.article.editorial = state;
            record.flags = flags.iter().map(|flag| (*flag).to_owned()).collect();
            record
        };
        let records = [
            record("1", "A bone cyst", EditorialState::Standing, &[]),
            record("2", "RETRACTED: A bone cyst", EditorialState::Retracted, &[]),
            record("3", "Retraction: A bone cyst", EditorialState::RetractionNotice, &[]),
            record("4", "A bone cyst", EditorialState::Corrected, &["corrected"]),
            record("5", "A bone cyst", EditorialState::Standing, &[RETRACTED_BY_ARCHIVE]),
        ];
        let prompt = "+++\nversion = 1\nvariables = [\"report\"]\n+++\n# User\n{{ report }}\n";
        let controls = "[[control]]\nname = 'x'\nreport = 'x'\nexpect = ['NO']\n";
        let rules = include_str!("../../pipelines/rules/case_reports.toml");
        check_with::<ArticleRecord, ArticleRecord>(
            &STAGE,
            "",
            &[("rules", rules), ("prompt", prompt), ("controls", controls)],
            &records,
            |record| record.flags.join(" "),
            expect![[r#"
                dropped t:2 retracted: title `RETRACTED: A bone cyst`
                dropped t:3 retraction_notice: title `Retraction: A bone cyst`
                dropped t:5 retracted: the archive's record of the article says so
                keep t:1 
                keep t:4 corrected
            "#]],
        );
    }
}
