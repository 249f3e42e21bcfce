//! The 24-slot clinical record of MedRoundsQA (Tables 6 and 7) and the case it becomes in a release.

use super::question::AnswerOption;
use super::{Access, Provenance, Record, RecordId, Row};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// Every name of Table 6, in its order.
///
/// The paper speaks of 24 slots and lists 29 names. The 24 that count as clinical slots are those that its Table 7
/// puts into the three clinical groups (7 symptom descriptors, 2 physical findings, 15 of history and
/// context); Symptom-Smell and Receiving-Treatment stand in Table 6 only, and Department,
/// additional_notes and ground_truth_diagnosis are meta-information. All names are kept; see
/// [`Slot::is_clinical`].
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize, JsonSchema)]
pub enum Slot {
    #[serde(rename = "Symptom-Name")]
    SymptomName,
    #[serde(rename = "Symptom-Time")]
    SymptomTime,
    #[serde(rename = "Symptom-Position")]
    SymptomPosition,
    #[serde(rename = "Symptom-Degree")]
    SymptomDegree,
    #[serde(rename = "Symptom-Color")]
    SymptomColor,
    #[serde(rename = "Symptom-Shape")]
    SymptomShape,
    #[serde(rename = "Symptom-Texture")]
    SymptomTexture,
    #[serde(rename = "Symptom-Smell")]
    SymptomSmell,
    #[serde(rename = "Physical-Change")]
    PhysicalChange,
    #[serde(rename = "Medical-Examination")]
    MedicalExamination,
    #[serde(rename = "Personal-Age")]
    PersonalAge,
    #[serde(rename = "Personal-Sex")]
    PersonalSex,
    #[serde(rename = "Personal-Weight")]
    PersonalWeight,
    #[serde(rename = "Past-Diagnosis")]
    PastDiagnosis,
    #[serde(rename = "Past-Medication")]
    PastMedication,
    #[serde(rename = "Trauma-Surgery")]
    TraumaSurgery,
    #[serde(rename = "Allergic-History")]
    AllergicHistory,
    #[serde(rename = "Preventive")]
    Preventive,
    #[serde(rename = "Family-History")]
    FamilyHistory,
    #[serde(rename = "Contact-History")]
    ContactHistory,
    #[serde(rename = "Habit-Tobacco")]
    HabitTobacco,
    #[serde(rename = "Habit-Wine")]
    HabitWine,
    #[serde(rename = "Habit-Drug")]
    HabitDrug,
    #[serde(rename = "Habit-Living")]
    HabitLiving,
    #[serde(rename = "Coitus-History")]
    CoitusHistory,
    #[serde(rename = "Receiving-Treatment")]
    ReceivingTreatment,
    #[serde(rename = "Department")]
    Department,
    #[serde(rename = "additional_notes")]
    AdditionalNotes,
    #[serde(rename = "ground_truth_diagnosis")]
    GroundTruthDiagnosis,
}

impl Slot {
    pub const ALL: [Self; 29] = [
        Self::SymptomName,
        Self::SymptomTime,
        Self::SymptomPosition,
        Self::SymptomDegree,
        Self::SymptomColor,
        Self::SymptomShape,
        Self::SymptomTexture,
        Self::SymptomSmell,
        Self::PhysicalChange,
        Self::MedicalExamination,
        Self::PersonalAge,
        Self::PersonalSex,
        Self::PersonalWeight,
        Self::PastDiagnosis,
        Self::PastMedication,
        Self::TraumaSurgery,
        Self::AllergicHistory,
        Self::Preventive,
        Self::FamilyHistory,
        Self::ContactHistory,
        Self::HabitTobacco,
        Self::HabitWine,
        Self::HabitDrug,
        Self::HabitLiving,
        Self::CoitusHistory,
        Self::ReceivingTreatment,
        Self::Department,
        Self::AdditionalNotes,
        Self::GroundTruthDiagnosis,
    ];

    /// The name in Table 6.
    pub fn as_str(self) -> &'static str {
        match self {
            Self::SymptomName => "Symptom-Name",
            Self::SymptomTime => "Symptom-Time",
            Self::SymptomPosition => "Symptom-Position",
            Self::SymptomDegree => "Symptom-Degree",
            Self::SymptomColor => "Symptom-Color",
            Self::SymptomShape => "Symptom-Shape",
            Self::SymptomTexture => "Symptom-Texture",
            Self::SymptomSmell => "Symptom-Smell",
            Self::PhysicalChange => "Physical-Change",
            Self::MedicalExamination => "Medical-Examination",
            Self::PersonalAge => "Personal-Age",
            Self::PersonalSex => "Personal-Sex",
            Self::PersonalWeight => "Personal-Weight",
            Self::PastDiagnosis => "Past-Diagnosis",
            Self::PastMedication => "Past-Medication",
            Self::TraumaSurgery => "Trauma-Surgery",
            Self::AllergicHistory => "Allergic-History",
            Self::Preventive => "Preventive",
            Self::FamilyHistory => "Family-History",
            Self::ContactHistory => "Contact-History",
            Self::HabitTobacco => "Habit-Tobacco",
            Self::HabitWine => "Habit-Wine",
            Self::HabitDrug => "Habit-Drug",
            Self::HabitLiving => "Habit-Living",
            Self::CoitusHistory => "Coitus-History",
            Self::ReceivingTreatment => "Receiving-Treatment",
            Self::Department => "Department",
            Self::AdditionalNotes => "additional_notes",
            Self::GroundTruthDiagnosis => "ground_truth_diagnosis",
        }
    }

    /// One of the 24 clinical slots (Table 7).
    pub fn is_clinical(self) -> bool {
        !matches!(
            self,
            Self::SymptomSmell
                | Self::ReceivingTreatment
                | Self::Department
                | Self::AdditionalNotes
                | Self::GroundTruthDiagnosis
        )
    }
}

/// How well a value is supported by its text. The rule extractor copies, so its values are `exact`.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum Grounding {
    /// The value is the text at its span, character for character.
    Exact,
    /// The value stands nowhere in its text.
    NotFound,
}

/// A place in a text. Offsets count Unicode scalar values of the original text; `end` is exclusive.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize, JsonSchema)]
pub struct Span {
    /// `stem` for the raw question text.
    pub text_id: String,
    pub start: u32,
    pub end: u32,
}

/// One value of one slot: a phrase copied from the text.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct SlotValue {
    pub slot: Slot,
    pub value: String,
    pub span: Span,
    pub grounding: Grounding,
}

/// A question with its slots.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct SlotRecord {
    pub record_id: RecordId,
    pub provenance: Provenance,
    pub stem: String,
    /// The question asked, without the vignette: copied from `stem`.
    pub question: Span,
    pub options: Vec<AnswerOption>,
    pub answer_key: Option<String>,
    pub answer_text: String,
    pub ground_truth_diagnosis: String,
    pub exam: Option<String>,
    pub subject: Option<String>,
    pub flags: Vec<String>,
    /// In the order of [`Slot`], then of the text.
    pub slots: Vec<SlotValue>,
    /// What made the slots: `rules`.
    pub extractor: String,
}

impl Row for SlotRecord {
    const NAME: &'static str = "slot_record";
    const TITLE: &'static str = "A question with its 24-slot clinical record.";
}

impl Record for SlotRecord {
    fn record_id(&self) -> &RecordId {
        &self.record_id
    }

    fn set_record_id(&mut self, id: RecordId) {
        self.record_id = id;
    }

    fn provenance(&self) -> &Provenance {
        &self.provenance
    }
}

/// One case of a `medrounds` release. Its slots and texts stand in `slots.parquet` and `texts.parquet`.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct MedroundsCase {
    pub case_id: String,
    /// The case that this one is a variant of.
    pub parent_id: Option<String>,
    pub source: String,
    /// SPDX expression, or `unknown`.
    pub licence: String,
    pub access: Access,
    /// The question asked, as it stands at the end of the stem.
    pub question: String,
    pub options: Vec<AnswerOption>,
    /// Masked from everything a solver sees; null for open questions.
    pub answer_key: Option<String>,
    /// Masked from everything a solver sees; raw text of the keyed option, or the free answer.
    pub answer_text: String,
    /// Masked from everything a solver sees.
    pub ground_truth_diagnosis: String,
    pub exam: Option<String>,
    pub subject: Option<String>,
    pub extractor: String,
    pub flags: Vec<String>,
    /// `none` until a person has decided about the case.
    pub review_state: String,
    /// SHA-256 of the canonical JSON of the case (SPEC section 3).
    pub case_hash: String,
}

impl Row for MedroundsCase {
    const NAME: &'static str = "medrounds_case";
    const TITLE: &'static str = "One case of a medrounds release.";
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn twenty_four_slots_are_clinical_and_names_agree_with_the_files() {
        assert_eq!(Slot::ALL.iter().filter(|slot| slot.is_clinical()).count(), 24);
        for slot in Slot::ALL {
            assert_eq!(serde_json::to_value(slot).unwrap(), slot.as_str());
        }
        assert!(Slot::ALL.is_sorted());
    }
}
