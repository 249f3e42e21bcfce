//! `check_leakage`: the gold diagnosis in what a solver sees before answering. The options of a multiple-choice question
//! hold it by nature: they are declared in the release as options and are not looked at here.

use super::leak::OnLeak;
use super::*;
use crate::record::ledger::ReviewRow;
use crate::record::question::AnsweredQuestion;
use crate::text::leakage::{Leak, LeakKind, Synonyms, leaks};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

pub const STAGE: StageDef = StageDef {
    name: "check_leakage",
    summary: "Finds the gold diagnosis, its option text, synonyms and abbreviations in the stem, as whole words; the options of a question are not searched",
    shape: Shape::Filter,
    revision: 1,
    inputs: &[Port::records::<AnsweredQuestion>("records")],
    outputs: &[Port::records::<AnsweredQuestion>("records"), Port::side::<ReviewRow>("review")],
    resources: &[ResourceDecl { name: "synonyms", summary: "names of one disease, as TOML" }],
    reasons: &["diagnosis_leak", "synonym_leak", "abbreviation_leak"],
    settings: SettingsType::of::<LeakageSettings>(),
    build,
};

#[derive(Serialize, Deserialize, JsonSchema)]
#[serde(default, deny_unknown_fields)]
struct LeakageSettings {
    /// What happens when the stem names the diagnosis or the keyed option.
    diagnosis: OnLeak,
    /// What happens when it names a synonym.
    synonym: OnLeak,
    /// What happens when it holds an abbreviation of the diagnosis.
    abbreviation: OnLeak,
}

impl Default for LeakageSettings {
    fn default() -> Self {
        Self { diagnosis: OnLeak::Drop, synonym: OnLeak::Review, abbreviation: OnLeak::Review }
    }
}

impl Settings for LeakageSettings {}

fn build(arguments: &StageArguments<'_>) -> anyhow::Result<AnyStage> {
    Ok(AnyStage::filter(CheckLeakage { settings: arguments.settings()?, synonyms: leak::synonyms(arguments)? }))
}

struct CheckLeakage {
    settings: LeakageSettings,
    synonyms: Synonyms,
}

impl FilterStage for CheckLeakage {
    type In = AnsweredQuestion;

    fn judge(
        &self,
        record: &AnsweredQuestion,
        sides: &mut SideEmitter,
        _: &StageContext<'_>,
    ) -> anyhow::Result<Verdict> {
        let found = leaks(&record.stem, &record.ground_truth_diagnosis, &record.answer_text, &self.synonyms);
        for (reason, action, kinds) in [
            ("diagnosis_leak", self.settings.diagnosis, &[LeakKind::Diagnosis, LeakKind::OptionText][..]),
            ("synonym_leak", self.settings.synonym, &[LeakKind::Synonym]),
            ("abbreviation_leak", self.settings.abbreviation, &[LeakKind::Abbreviation]),
        ] {
            let found: Vec<&Leak> = found.iter().filter(|leak| kinds.contains(&leak.kind)).collect();
            if found.is_empty() {
                continue;
            }
            let detail = detail(&record.stem, &found);
            if let Some(verdict) = action.act(reason, detail, &record.record_id, sides) {
                return Ok(verdict);
            }
        }
        Ok(Verdict::Keep)
    }
}

/// Each leak with its place and some words around it.
fn detail(stem: &str, found: &[&Leak]) -> String {
    const AROUND: u32 = 40;
    let shown = found.iter().map(|leak| {
        let (start, end) = (leak.range.start.saturating_sub(AROUND), leak.range.end.saturating_add(AROUND));
        let words: String = stem.chars().skip(start as usize).take((end - start) as usize).collect();
        format!("`{}` at {}..{}: … {} …", leak.term, leak.range.start, leak.range.end, words.trim())
    });
    shown.collect::<Vec<_>>().join("; ")
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::stage::testing::{answered, check_filter};
    use expect_test::expect;

    const SYNONYMS: &str = include_str!("../../pipelines/lexicon/synonyms.toml");

    #[test]
    fn the_stem_is_searched_and_the_options_are_not() {
        let record = |id: &str, answer: &str, stem: &str| {
            let mut record = answered(id, answer, &[answer, "x", "y", "z"]);
            record.stem = stem.to_owned();
            record
        };
        check_filter(
            &STAGE,
            "",
            &[("synonyms", SYNONYMS)],
            &[
                record("1", "Gout", "A man has a swollen toe. Most likely diagnosis?"),
                record("2", "Gout", "A man has gout of his toe. Most likely diagnosis?"),
                record("3", "Systemic lupus erythematosus", "A woman with SLE has a rash. Most likely diagnosis?"),
                record("4", "Myocardial infarction", "He fears a heart attack. Most likely diagnosis?"),
            ],
            expect![[r#"
                keep t:1
                dropped t:2 diagnosis_leak: `Gout` at 10..14: … A man has gout of his toe. Most likely diagnosis? …
                keep t:3
                keep t:4
            "#]],
        );
    }
}
