//! `split_series`: articles about several patients: dropped, or one record for each patient whose text is told apart.

use super::*;
use crate::record::article::ArticleRecord;
use crate::staging::sections::roles;
use crate::staging::series::{PatientCount, series};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

pub const STAGE: StageDef = StageDef {
    name: "split_series",
    summary: "Drops articles about several patients, or makes a record of each patient whose paragraphs and figures are told apart",
    shape: Shape::Record,
    revision: 1,
    inputs: &[Port::records::<ArticleRecord>("records")],
    outputs: &[Port::records::<ArticleRecord>("records")],
    resources: &[],
    reasons: &[CASE_SERIES, "series_not_assignable"],
    settings: SettingsType::of::<SeriesSettings>(),
    build,
};

const CASE_SERIES: &str = "case_series";

/// What becomes of an article about several patients.
#[derive(Clone, Copy, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
enum OnSeries {
    Drop,
    Split,
    Keep,
}

#[derive(Serialize, Deserialize, JsonSchema)]
#[serde(default, deny_unknown_fields)]
struct SeriesSettings {
    /// Articles about several patients: `drop` (as published), `split` into one record a patient, or `keep` as they are.
    on_series: OnSeries,
}

impl Default for SeriesSettings {
    fn default() -> Self {
        Self { on_series: OnSeries::Drop }
    }
}

impl Settings for SeriesSettings {}

fn build(arguments: &StageArguments<'_>) -> anyhow::Result<AnyStage> {
    Ok(AnyStage::record(SplitSeries { settings: arguments.settings()? }))
}

struct SplitSeries {
    settings: SeriesSettings,
}

impl RecordStage for SplitSeries {
    type In = ArticleRecord;
    type Out = ArticleRecord;

    fn apply(
        &self,
        mut record: ArticleRecord,
        out: &mut Emitter<'_, ArticleRecord>,
        _: &StageContext<'_>,
    ) -> anyhow::Result<Verdict> {
        let found = series(&record.article, &roles(&record.article));
        if !found.conflicts.is_empty() {
            record.flags.push("patient_count_conflict".to_owned());
            record.flags.sort_unstable();
        }
        let is_series = found.count == PatientCount::Several;
        let detail = || found.evidence.iter().chain(&found.conflicts).cloned().collect::<Vec<_>>().join("; ");
        match self.settings.on_series {
            OnSeries::Drop if is_series => Ok(Verdict::Drop(Cause::new(CASE_SERIES, detail()))),
            OnSeries::Split if is_series && (!found.assignable || found.patients.len() < 2) => {
                Ok(Verdict::Quarantine(Cause::new("series_not_assignable", detail())))
            }
            OnSeries::Split if is_series => {
                for patient in found.patients {
                    let mut child = record.clone();
                    child.images.retain(|image| patient.figures.contains(&image.figure));
                    child.patient = Some(patient);
                    out.emit(child);
                }
                Ok(Verdict::Keep)
            }
            _ => {
                out.emit(record);
                Ok(Verdict::Keep)
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::record::article::ArticleRecord;
    use crate::stage::testing::{article_record, check};
    use expect_test::expect;

    /// Case jats-14: two patients under their own headings, in months and with "aged 33".
    #[test]
    fn jats_14_a_series_leaves_or_becomes_one_record_a_patient() {
        let body = "<sec><title>Case 1</title><p>A 6-month-old girl with rash.</p></sec>\
                    <sec><title>Case 2</title><p>A man aged 33 with cough.</p></sec>";
        let record = article_record("1", "Three cases of eczema herpeticum", body);
        let show = |record: &ArticleRecord| {
            let patient = record.patient.as_ref().expect("a patient");
            format!("{:?} {:?}", patient.label, patient.paragraphs)
        };
        check(
            &STAGE,
            "",
            std::slice::from_ref(&record),
            show,
            expect![[r#"
            dropped t:1 case_series: title: 3 (Three cases); headings: 2 (Case 1, Case 2); numbers of patients differ: title 3, headings 2
        "#]],
        );
        check(
            &STAGE,
            "on_series = 'split'",
            &[record],
            show,
            expect![[r#"
            keep t:1_1 Some("Case 1") [0]
            keep t:1_2 Some("Case 2") [1]
        "#]],
        );
    }
}
