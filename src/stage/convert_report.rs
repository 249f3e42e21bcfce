//! `convert_report`: a case report to a patient vector (MTDiag, 4.1.3 and 4.2.1), by rules that copy words of the article.

use super::convert_case::citation;
use super::*;
use crate::clinical::ClinicalWords;
use crate::dag::RULES;
use crate::record::article::ArticleRecord;
use crate::record::model::{add_maker, field};
use crate::record::vector::PatientVector;
use crate::staging::examinations::Examinations;
use crate::staging::masking::MaskWords;
use crate::staging::suitability::CaseReportRules;
use crate::text::leakage::Synonyms;
use crate::vector::{DemographicWords, ReportWords, SymptomTerms, patient_vector};
use anyhow::Context;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

pub const STAGE: StageDef = StageDef {
    name: "convert_report",
    summary: "Makes a patient vector of a case report by rules: listed or stated diagnoses, symptoms, history, vital signs and tests, each with its place",
    shape: Shape::Record,
    revision: 1,
    inputs: &[Port::records::<ArticleRecord>("records")],
    outputs: &[Port::records::<PatientVector>("records")],
    resources: &[
        ResourceDecl { name: "rules", summary: "how diagnoses are stated, as TOML" },
        ResourceDecl { name: "examinations", summary: "examinations and kinds of pictures by their words, as TOML" },
        ResourceDecl { name: "masking", summary: "words of findings that only images show, as TOML" },
        ResourceDecl { name: "synonyms", summary: "names of one disease, as TOML" },
        super::extract_slots::RESOURCES[0],
        super::extract_slots::RESOURCES[1],
        super::extract_slots::RESOURCES[2],
        super::extract_slots::RESOURCES[3],
        ResourceDecl {
            name: "clinical",
            summary: "units, vital signs with their bounds, and what laboratories measure, as TOML",
        },
        ResourceDecl {
            name: "demographics",
            summary: "words for origin, marital status, education and insurance, as TOML",
        },
    ],
    reasons: &[
        "diagnosis_not_assigned",
        "diagnosis_unclear",
        "no_diagnosis",
        "no_presentation",
        "no_symptom",
        TOO_YOUNG,
    ],
    settings: SettingsType::of::<ReportSettings>(),
    build,
};

const TOO_YOUNG: &str = "below_min_age";

#[derive(Default, Serialize, Deserialize, JsonSchema)]
#[serde(default, deny_unknown_fields)]
struct ReportSettings {
    /// Years below which a patient is dropped, also one whose age in years is not known; none for no limit.
    min_age_years: Option<f64>,
}

impl Settings for ReportSettings {}

fn build(arguments: &StageArguments<'_>) -> anyhow::Result<AnyStage> {
    let resources = arguments.resources;
    let words = ReportWords {
        rules: CaseReportRules::parse(resources.file("rules"), resources.text("rules")?)?,
        examinations: Examinations::parse(resources.file("examinations"), resources.text("examinations")?)?,
        masking: MaskWords::parse(resources.file("masking"), resources.text("masking")?)?,
        synonyms: Synonyms::parse(resources.text("synonyms")?)
            .with_context(|| resources.file("synonyms").to_owned())?,
        extractor: super::extract_slots::extractor(resources)?,
        symptoms: SymptomTerms::parse(resources.text("terms")?),
        clinical: ClinicalWords::parse(resources.file("clinical"), resources.text("clinical")?)?,
        demographics: DemographicWords::parse(resources.file("demographics"), resources.text("demographics")?)?,
    };
    Ok(AnyStage::record(ConvertReport { settings: arguments.settings()?, words }))
}

struct ConvertReport {
    settings: ReportSettings,
    words: ReportWords,
}

impl RecordStage for ConvertReport {
    type In = ArticleRecord;
    type Out = PatientVector;

    fn apply(
        &self,
        record: ArticleRecord,
        out: &mut Emitter<'_, PatientVector>,
        _: &StageContext<'_>,
    ) -> anyhow::Result<Verdict> {
        let mut vector = match patient_vector(&record, &self.words) {
            Ok(vector) => vector,
            Err(refused) => return Ok(Verdict::Quarantine(Cause::new(refused.reason, refused.detail))),
        };
        if let Some(least) = self.settings.min_age_years {
            let demographics = &vector.facts.demographics;
            if demographics.age_years.is_none_or(|age| age < least) {
                let age = demographics.age_years.map(|age| format!("{age:.1} years"));
                let age = age.or_else(|| demographics.age_text.clone()).unwrap_or_else(|| "not known".to_owned());
                return Ok(Verdict::Drop(Cause::new(TOO_YOUNG, age)));
            }
        }
        vector.citation = Some(citation(&record));
        add_maker(&mut vector.made_by, field::CONVERSION, RULES);
        out.emit(vector);
        Ok(Verdict::Keep)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::record::RecordId;
    use crate::record::article::ListedDiagnosis;
    use crate::stage::testing::{article_record, check_with};
    use expect_test::expect;

    const FILES: &[(&str, &str)] = &[
        ("rules", include_str!("../../pipelines/rules/case_reports.toml")),
        ("examinations", include_str!("../../pipelines/lexicon/examinations.toml")),
        ("masking", include_str!("../../pipelines/lexicon/masking.toml")),
        ("synonyms", include_str!("../../pipelines/lexicon/synonyms.toml")),
        ("lexicon", include_str!("../../pipelines/lexicon/slots.toml")),
        ("terms", include_str!("../../pipelines/lexicon/terms.csv")),
        ("context", include_str!("../../pipelines/lexicon/context.toml")),
        ("drugs", include_str!("../../pipelines/lexicon/drugs.toml")),
        ("clinical", include_str!("../../pipelines/lexicon/clinical.toml")),
        ("demographics", include_str!("../../pipelines/lexicon/demographics.toml")),
    ];

    fn listed(id: &str, age: &str) -> ArticleRecord {
        let body = format!("<sec><title>Case</title><p>A {age} boy presented with cough for 3 days.</p></sec>");
        let mut record = article_record("1", "A cough", &body);
        record.record_id = RecordId::native("ajcr", id);
        record.listed_diagnoses.push(ListedDiagnosis { rank: 1, label: "Pertussis".to_owned() });
        record
    }

    #[test]
    fn records_keep_their_ids_and_the_young_leave_where_asked_for() {
        let mut stranger = listed("AJCR3", "9-year-old");
        stranger.listed_diagnoses.clear();
        let records = [listed("AJCR1", "19-year-old"), listed("AJCR2_1", "8-month-old"), stranger];
        let show = |vector: &PatientVector| {
            let title = vector.citation.as_ref().and_then(|citation| citation.title.as_deref()).unwrap_or_default();
            let complaints = &vector.presentation.chief_complaint;
            let complaints: Vec<&str> = complaints.iter().map(|one| one.symptom.name.as_str()).collect();
            format!(
                "{} {:?} {title}: {complaints:?} {} by {}",
                vector.origin.native_id.as_deref().unwrap_or_default(),
                vector.facts.demographics.age_years,
                vector.ground_truth.primary.label,
                vector.made_by.iter().map(|made| made.by.as_str()).collect::<String>()
            )
        };
        check_with(
            &STAGE,
            "",
            FILES,
            &records,
            show,
            expect![[r#"
            quarantined ajcr:AJCR3 no_diagnosis: nothing states a diagnosis
            keep ajcr:AJCR1 AJCR1 Some(19.0) A cough: ["cough"] Pertussis by rules
            keep ajcr:AJCR2_1 AJCR2_1 Some(0.6666666666666666) A cough: ["cough"] Pertussis by rules
        "#]],
        );
        check_with(
            &STAGE,
            "min_age_years = 18",
            FILES,
            &records,
            show,
            expect![[r#"
            dropped ajcr:AJCR2_1 below_min_age: 0.7 years
            quarantined ajcr:AJCR3 no_diagnosis: nothing states a diagnosis
            keep ajcr:AJCR1 AJCR1 Some(19.0) A cough: ["cough"] Pertussis by rules
        "#]],
        );
    }

    #[test]
    fn reasons_are_those_of_the_rules() {
        for reason in crate::vector::REASONS {
            assert!(STAGE.reasons.contains(reason), "{reason}");
        }
    }
}
