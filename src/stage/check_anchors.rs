//! `check_anchors`: what a diagnostic dialogue cannot do without (MTDiag, section 3, Minimum Anchors): a chief complaint, symptoms,
//! a primary diagnosis. All sources of the pipeline meet here.

use super::*;
use crate::record::vector::{CodeState, Negation, PatientVector};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

pub const STAGE: StageDef = StageDef {
    name: "check_anchors",
    summary: "Joins patients of all sources, and keeps those with a chief complaint, a symptom and a primary diagnosis",
    shape: Shape::Filter,
    revision: 1,
    inputs: &[Port::records::<PatientVector>("records")],
    outputs: &[Port::records::<PatientVector>("records")],
    resources: &[],
    reasons: &["no_chief_complaint", "no_symptom", "no_primary_diagnosis", "no_icd10"],
    settings: SettingsType::of::<AnchorSettings>(),
    build,
};

#[derive(Default, Serialize, Deserialize, JsonSchema)]
#[serde(default, deny_unknown_fields)]
struct AnchorSettings {
    /// Also demand an ICD-10 code of the primary diagnosis.
    icd10: bool,
}

impl Settings for AnchorSettings {}

fn build(arguments: &StageArguments<'_>) -> anyhow::Result<AnyStage> {
    Ok(AnyStage::filter(CheckAnchors { settings: arguments.settings()? }))
}

struct CheckAnchors {
    settings: AnchorSettings,
}

impl FilterStage for CheckAnchors {
    type In = PatientVector;

    fn judge(&self, patient: &PatientVector, _: &mut SideEmitter, _: &StageContext<'_>) -> anyhow::Result<Verdict> {
        let presentation = &patient.presentation;
        let primary = &patient.ground_truth.primary;
        let n_present = presentation.symptoms.iter().filter(|one| one.symptom.negation == Negation::Present).count();
        let cause = if primary.label.trim().is_empty() {
            Cause::new("no_primary_diagnosis", "its label is empty")
        } else if presentation.chief_complaint.is_empty() {
            Cause::new("no_chief_complaint", format!("{n_present} symptoms, none of them is the complaint"))
        } else if n_present == 0 {
            let n_antecedents = patient.facts.antecedents.len();
            Cause::new("no_symptom", format!("{} denied, {n_antecedents} antecedents", presentation.symptoms.len()))
        } else if self.settings.icd10 && primary.icd10.is_none() {
            let published = primary.icd10_source.as_deref().unwrap_or("none");
            let state = match primary.icd10_state {
                CodeState::Missing => "missing",
                CodeState::AsPublished => "as published",
                CodeState::Corrected => "corrected",
                CodeState::Malformed => "malformed",
                CodeState::Ambiguous => "ambiguous",
                CodeState::Mapped => "mapped",
            };
            Cause::new("no_icd10", format!("published: {published} ({state})"))
        } else {
            return Ok(Verdict::Keep);
        };
        // What is missing may be found by another reading of the source.
        Ok(Verdict::Quarantine(cause))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::stage::testing::{check_filter, patient};
    use expect_test::expect;

    #[test]
    fn a_dialogue_needs_its_anchors() {
        let mut denied = patient("2");
        denied.presentation.symptoms.iter_mut().for_each(|one| one.symptom.negation = Negation::Denied);
        let mut silent = patient("3");
        silent.presentation.chief_complaint.clear();
        let mut nameless = patient("4");
        nameless.ground_truth.primary.label = " ".to_owned();
        let mut uncoded = patient("5");
        uncoded.ground_truth.primary.icd10 = None;
        uncoded.ground_truth.primary.icd10_source = Some("j17, j18".to_owned());
        uncoded.ground_truth.primary.icd10_state = CodeState::Ambiguous;
        let patients = [patient("1"), denied, silent, nameless, uncoded];
        check_filter(
            &STAGE,
            "icd10 = true",
            &[],
            &patients,
            expect![[r#"
            keep t:1
            quarantined t:2 no_symptom: 1 denied, 0 antecedents
            quarantined t:3 no_chief_complaint: 1 symptoms, none of them is the complaint
            quarantined t:4 no_primary_diagnosis: its label is empty
            quarantined t:5 no_icd10: published: j17, j18 (ambiguous)
        "#]],
        );
    }
}
