//! `check_vector_leakage`: names of the diagnosis in what a patient vector may tell (MTDiag, 4.2.1: the ground truth is never
//! exposed to the dialogue). A former disease or a relative's is history, so the two are judged apart.

use super::leak::OnLeak;
use super::*;
use crate::record::ledger::ReviewRow;
use crate::record::vector::{Finding, PatientVector, SymptomPresentation};
use crate::text::leakage::{Gold, LeakKind, Synonyms};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

pub const STAGE: StageDef = StageDef {
    name: "check_vector_leakage",
    summary: "Finds the diagnosis and its other names in the presentation and the history of patient vectors",
    shape: Shape::Filter,
    revision: 1,
    inputs: &[Port::records::<PatientVector>("records")],
    outputs: &[Port::records::<PatientVector>("records"), Port::side::<ReviewRow>("review")],
    resources: &[ResourceDecl { name: "synonyms", summary: "names of one disease, as TOML" }],
    reasons: &["diagnosis_leak", "synonym_leak", "diagnosis_in_history"],
    settings: SettingsType::of::<VectorLeakageSettings>(),
    build,
};

#[derive(Serialize, Deserialize, JsonSchema)]
#[serde(default, deny_unknown_fields)]
struct VectorLeakageSettings {
    /// What happens when complaint, symptoms, narrative, tests or vitals name the diagnosis: `drop`, `review` or `keep`.
    diagnosis: OnLeak,
    /// What happens when they hold another name or an abbreviation of it.
    synonym: OnLeak,
    /// What happens when former diseases, relatives' diseases or medications name it.
    history: OnLeak,
}

impl Default for VectorLeakageSettings {
    fn default() -> Self {
        Self { diagnosis: OnLeak::Drop, synonym: OnLeak::Drop, history: OnLeak::Keep }
    }
}

impl Settings for VectorLeakageSettings {}

fn build(arguments: &StageArguments<'_>) -> anyhow::Result<AnyStage> {
    Ok(AnyStage::filter(CheckVectorLeakage { settings: arguments.settings()?, synonyms: leak::synonyms(arguments)? }))
}

struct CheckVectorLeakage {
    settings: VectorLeakageSettings,
    synonyms: Synonyms,
}

impl FilterStage for CheckVectorLeakage {
    type In = PatientVector;

    fn judge(&self, patient: &PatientVector, sides: &mut SideEmitter, _: &StageContext<'_>) -> anyhow::Result<Verdict> {
        let truth = &patient.ground_truth;
        let names: Vec<Gold> = std::iter::once(&truth.primary)
            .chain(&truth.secondary)
            .flat_map(|diagnosis| std::iter::once(&diagnosis.label).chain(&diagnosis.label_english))
            .map(|label| Gold::new(label, "", &self.synonyms))
            .collect();
        let (mut by_diagnosis, mut by_synonym) = (Vec::new(), Vec::new());
        for (name, text) in told(patient) {
            for leak in names.iter().flat_map(|gold| gold.leaks(text)) {
                let is_name = matches!(leak.kind, LeakKind::Diagnosis | LeakKind::OptionText);
                let found = if is_name { &mut by_diagnosis } else { &mut by_synonym };
                found.push(format!("{name}: `{}`", leak.term));
            }
        }
        let mut by_history = Vec::new();
        for (name, text) in history(patient) {
            let leaks = names.iter().flat_map(|gold| gold.leaks(text));
            by_history.extend(leaks.map(|leak| format!("{name}: `{}`", leak.term)));
        }
        for (reason, found, action) in [
            ("diagnosis_leak", by_diagnosis, self.settings.diagnosis),
            ("synonym_leak", by_synonym, self.settings.synonym),
            ("diagnosis_in_history", by_history, self.settings.history),
        ] {
            if found.is_empty() {
                continue;
            }
            if let Some(verdict) = action.act(reason, found.join("; "), &patient.record_id, sides) {
                return Ok(verdict);
            }
        }
        Ok(Verdict::Keep)
    }
}

/// Texts that a patient, or a record of this visit, tells.
fn told(patient: &PatientVector) -> Vec<(&'static str, &str)> {
    let mut texts = Vec::new();
    let presentation = &patient.presentation;
    for (name, symptoms) in [("chief_complaint", &presentation.chief_complaint), ("symptoms", &presentation.symptoms)] {
        texts.extend(symptoms.iter().flat_map(of_symptom).map(|text| (name, text)));
    }
    let facts = &patient.facts;
    texts.extend(facts.narrative.iter().map(|narrative| ("narrative", narrative.text.as_str())));
    for test in &facts.tests {
        texts.push(("tests", &test.name));
        texts.extend(test.value_text.as_deref().map(|text| ("tests", text)));
    }
    texts.extend(facts.vitals.iter().map(|vital| ("vitals", vital.raw.as_str())));
    texts
}

fn history(patient: &PatientVector) -> Vec<(&'static str, &str)> {
    let facts = &patient.facts;
    let mut texts: Vec<(&'static str, &str)> = Vec::new();
    texts.extend(facts.antecedents.iter().flat_map(of_finding).map(|text| ("antecedents", text)));
    let relatives = facts.family_history.iter().flat_map(|relative| &relative.findings);
    texts.extend(relatives.flat_map(of_finding).map(|text| ("family_history", text)));
    texts.extend(facts.medications.iter().map(|medication| ("medications", medication.name.as_str())));
    texts
}

fn of_symptom(one: &SymptomPresentation) -> impl Iterator<Item = &str> {
    let experience = &one.experience;
    let mut texts: Vec<&str> = of_finding(&one.symptom).collect();
    for descriptors in [
        experience.locality.as_slice(),
        &experience.radiation,
        &experience.characterization.descriptors,
        &experience.aggravating_factors,
        &experience.relieving_factors,
    ] {
        texts.extend(descriptors.iter().map(|word| word.name.as_str()));
    }
    let time = &experience.temporality;
    texts.extend([&time.onset, &time.frequency, &time.duration].into_iter().flatten().map(String::as_str));
    texts.into_iter()
}

fn of_finding(finding: &Finding) -> impl Iterator<Item = &str> {
    let meanings = finding.values.iter().filter_map(|value| value.meaning.as_deref());
    std::iter::once(finding.name.as_str()).chain(finding.statement.as_deref()).chain(meanings)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::record::vector::{NarrativeKind, NarrativeText};
    use crate::stage::testing::{check_filter, patient};
    use expect_test::expect;

    #[test]
    fn what_is_told_is_judged_apart_from_history() {
        let narrative = |id: &str, text: &str| {
            let mut patient = patient(id);
            let text = text.to_owned();
            let kind = NarrativeKind::HistoryOfPresentIllness;
            patient.facts.narrative.push(NarrativeText { kind, text, spans: Vec::new() });
            patient
        };
        let mut former = patient("3");
        former.facts.antecedents.push(Finding { name: "pneumonia last year".into(), ..Finding::default() });
        let patients = [
            narrative("1", "A cough since Monday."),
            narrative("2", "Pneumonia was suspected."),
            former,
            narrative("4", "Treated for lung inflammation."),
        ];
        let synonyms = "version = 1\n[[group]]\nsource = 'ours'\nnames = ['pneumonia', 'lung inflammation']\n";
        check_filter(
            &STAGE,
            "",
            &[("synonyms", synonyms)],
            &patients,
            expect![[r#"
            keep t:1
            dropped t:2 diagnosis_leak: narrative: `Pneumonia`
            keep t:3
            dropped t:4 synonym_leak: narrative: `lung inflammation`
        "#]],
        );
        check_filter(
            &STAGE,
            "history = 'drop'",
            &[("synonyms", synonyms)],
            &patients,
            expect![[r#"
            keep t:1
            dropped t:2 diagnosis_leak: narrative: `Pneumonia`
            dropped t:3 diagnosis_in_history: antecedents: `Pneumonia`
            dropped t:4 synonym_leak: narrative: `lung inflammation`
        "#]],
        );
    }
}
