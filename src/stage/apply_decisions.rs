//! `apply_decisions`: what reviewers decided. The paper's filter ends with two physicians and removes disputed items
//! (MedRoundsQA, 3.1).

use super::*;
use crate::record::decision::{Action, Choice, Choices, effective, parse_decisions};
use crate::record::question::AnsweredQuestion;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

pub const STAGE: StageDef = StageDef {
    name: "apply_decisions",
    summary: "Drops questions that reviewers rejected or did not agree on; their decisions are a resource",
    shape: Shape::Filter,
    revision: 1,
    inputs: &[Port::records::<AnsweredQuestion>("records")],
    outputs: &[Port::records::<AnsweredQuestion>("records")],
    resources: &[ResourceDecl {
        name: "decisions",
        summary: "reviewers' decisions, as `casemill review import` writes them",
    }],
    reasons: &["rejected_by_review", "disputed_by_review", "not_reviewed"],
    settings: SettingsType::of::<DecisionSettings>(),
    build,
};

#[derive(Serialize, Deserialize, JsonSchema)]
#[serde(default, deny_unknown_fields)]
struct DecisionSettings {
    /// Decisions that a record needs before they count.
    min_reviewers: u32,
    /// What happens when reviewers differ, or one is unsure.
    disputed: Action,
    /// What happens to a record with fewer decisions.
    not_reviewed: Action,
}

impl Default for DecisionSettings {
    fn default() -> Self {
        Self { min_reviewers: 2, disputed: Action::Drop, not_reviewed: Action::Keep }
    }
}

impl Settings for DecisionSettings {
    fn check(&self) -> Result<(), String> {
        if self.min_reviewers == 0 { Err("min_reviewers must be at least 1".to_owned()) } else { Ok(()) }
    }
}

fn build(arguments: &StageArguments<'_>) -> anyhow::Result<AnyStage> {
    let text = arguments.resources.text("decisions")?;
    let decisions =
        parse_decisions(text).map_err(|error| anyhow::anyhow!("{}: {error}", arguments.resources.file("decisions")))?;
    Ok(AnyStage::filter(ApplyDecisions { settings: arguments.settings()?, choices: effective(&decisions) }))
}

struct ApplyDecisions {
    settings: DecisionSettings,
    choices: Choices,
}

impl FilterStage for ApplyDecisions {
    type In = AnsweredQuestion;

    fn judge(&self, record: &AnsweredQuestion, _: &mut SideEmitter, _: &StageContext<'_>) -> anyhow::Result<Verdict> {
        let choices = self.choices.get(&record.record_id);
        let n = |choice: Choice| choices.map_or(0, |by| by.values().filter(|found| **found == choice).count());
        let (n_keep, n_drop, n_unsure) = (n(Choice::Keep), n(Choice::Drop), n(Choice::Unsure));
        let n_all = n_keep + n_drop + n_unsure;
        // Names stay out of the ledger: it is part of releases.
        let detail = format!("{n_all} reviewers: {n_keep} keep, {n_drop} drop, {n_unsure} unsure");
        let (action, reason) = if n_all < self.settings.min_reviewers as usize {
            (self.settings.not_reviewed, "not_reviewed")
        } else if n_drop == n_all {
            (Action::Drop, "rejected_by_review")
        } else if n_keep == n_all {
            return Ok(Verdict::Keep);
        } else {
            (self.settings.disputed, "disputed_by_review")
        };
        Ok(match action {
            Action::Keep => Verdict::Keep,
            Action::Drop => Verdict::Drop(Cause::new(reason, detail)),
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::stage::testing::{answered, check_filter};
    use expect_test::expect;

    const DECISIONS: &str = r#"
{"record_id":"t:1","reviewer":"a","decision":"keep","comment":null}
{"record_id":"t:1","reviewer":"b","decision":"keep","comment":null}
{"record_id":"t:2","reviewer":"a","decision":"keep","comment":null}
{"record_id":"t:2","reviewer":"b","decision":"drop","comment":"asks for a test"}
{"record_id":"t:3","reviewer":"a","decision":"drop","comment":null}
{"record_id":"t:3","reviewer":"b","decision":"drop","comment":null}
{"record_id":"t:4","reviewer":"a","decision":"drop","comment":null}
{"record_id":"t:5","reviewer":"a","decision":"keep","comment":null}
{"record_id":"t:5","reviewer":"b","decision":"unsure","comment":null}
"#;

    fn check(settings: &str, expected: expect_test::Expect) {
        let records = ["1", "2", "3", "4", "5", "6"].map(|id| answered(id, "Gout", &["Gout", "x"]));
        check_filter(&STAGE, settings, &[("decisions", DECISIONS)], &records, expected);
    }

    #[test]
    fn rejected_and_disputed_records_are_dropped() {
        check(
            "",
            expect![[r#"
            keep t:1
            dropped t:2 disputed_by_review: 2 reviewers: 1 keep, 1 drop, 0 unsure
            dropped t:3 rejected_by_review: 2 reviewers: 0 keep, 2 drop, 0 unsure
            keep t:4
            dropped t:5 disputed_by_review: 2 reviewers: 1 keep, 0 drop, 1 unsure
            keep t:6
        "#]],
        );
    }

    #[test]
    fn the_rule_is_a_setting() {
        check(
            "min_reviewers = 1\ndisputed = 'keep'\nnot_reviewed = 'drop'",
            expect![[r#"
            keep t:1
            keep t:2
            dropped t:3 rejected_by_review: 2 reviewers: 0 keep, 2 drop, 0 unsure
            dropped t:4 rejected_by_review: 1 reviewers: 0 keep, 1 drop, 0 unsure
            keep t:5
            dropped t:6 not_reviewed: 0 reviewers: 0 keep, 0 drop, 0 unsure
        "#]],
        );
    }
}
