//! The PatientVector of MTDiag (4.2.1, figure 6 and B.5): one form for patients of DDXPlus, MIMIC-IV and AJCR.
//!
//! Four blocks: where the case comes from, the truth (masked), what is known of the patient, and what the patient comes with.
//! Sources fill very different parts of it: a list without entries and a null say "not known", never "no".

use super::model::{MadeBy, ReplyTrace};
use super::slots::Span;
use super::staged::{Citation, SourceText};
use super::{Access, Provenance, RecordId, Row};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// A patient as a case for multi-turn diagnosis.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct PatientVector {
    pub record_id: RecordId,
    /// File, line and rights of the raw record. The paper's block of this name is `origin`.
    pub provenance: Provenance,
    pub origin: Origin,
    pub ground_truth: GroundTruth,
    pub facts: PatientFacts,
    pub presentation: CasePresentation,
    /// Texts that spans point into; none for sources of codes.
    pub texts: Vec<SourceText>,
    /// What must be named whenever the case is passed on; null where the source as a whole is named.
    pub citation: Option<Citation>,
    pub made_by: Vec<MadeBy>,
    pub replies: Vec<ReplyTrace>,
    /// Sorted.
    pub flags: Vec<String>,
}

impl Row for PatientVector {
    const NAME: &'static str = "patient_vector";
    const TITLE: &'static str = "A patient as a case for multi-turn diagnosis (PatientVector).";
}

record_by_fields!(PatientVector);

/// Where a case comes from (the paper's block Provenance).
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct Origin {
    pub dataset: Dataset,
    /// Part of the dataset that is evaluated by itself, such as `train` or `track1`; null where it has one part.
    pub stratum: Option<String>,
    /// How the source names the record; null where it has no names.
    pub native_id: Option<String>,
    /// BCP 47, of the names and texts below: `en` or `fr`.
    pub language: String,
}

/// A source dataset (3.2).
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum Dataset {
    Ddxplus,
    Mimic,
    Ajcr,
}

impl Dataset {
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Ddxplus => "ddxplus",
            Self::Mimic => "mimic",
            Self::Ajcr => "ajcr",
        }
    }
}

/// What a solver should come to. Masked: nothing of it stands in facts or presentation.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct GroundTruth {
    pub primary: Diagnosis,
    /// Further diagnoses of the same case, in the order of the source.
    pub secondary: Vec<Diagnosis>,
    /// Ranked, the likeliest first.
    pub differential: Vec<DifferentialDiagnosis>,
}

/// A diagnosis with its codes.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct Diagnosis {
    /// In the language of the case.
    pub label: String,
    /// The same in English, where the source has both.
    pub label_english: Option<String>,
    /// ICD-10 code with its dot, upper case; null unless one is known to be right.
    pub icd10: Option<String>,
    /// The code as the source has it.
    pub icd10_source: Option<String>,
    pub icd10_state: CodeState,
    /// UMLS concept.
    pub cui: Option<String>,
    /// 0 to 1, of `cui`.
    pub mapping_confidence: Option<f64>,
    pub provenance_tier: ProvenanceTier,
    pub basis: DiagnosisBasis,
    /// 1 (most severe) to 5, of the source (DDXPlus: lower is worse).
    pub severity: Option<u32>,
    /// Where a text states it.
    pub spans: Vec<Span>,
}

/// What became of a code.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum CodeState {
    /// The source has none.
    #[default]
    Missing,
    /// As the source has it, but for case, blanks and dot.
    AsPublished,
    /// Another one, by a reviewed table with its reason.
    Corrected,
    /// Not an ICD-10 code, and nobody said which is meant.
    Malformed,
    /// Several codes, and nobody said which is meant.
    Ambiguous,
    /// Mapped from another classification.
    Mapped,
}

/// How reliable the label is (4.2.1, B.5).
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum ProvenanceTier {
    /// Known by construction: a synthetic patient.
    #[default]
    DdxplusGold,
    /// Final diagnosis of a peer-reviewed case report.
    AjcrGold,
    /// Verified at discharge from hospital.
    MimicDischarge,
    /// Preliminary, of the emergency department.
    MimicEdPrelim,
}

/// Who says that this is the diagnosis.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum DiagnosisBasis {
    /// A label of the dataset.
    #[default]
    Labelled,
    /// A curated list beside the dataset.
    Listed,
    /// The text itself, found by rules.
    Stated,
    /// Coded by the hospital.
    Coded,
}

/// One entry of a ranked differential diagnosis.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct DifferentialDiagnosis {
    /// From 1; equal probabilities in the order of the source.
    pub rank: u32,
    /// 0 to 1; null where the source only ranks.
    pub probability: Option<f64>,
    pub label: String,
    pub icd10: Option<String>,
    pub cui: Option<String>,
    pub provenance_tier: ProvenanceTier,
}

/// What is known of the patient beyond the complaint.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct PatientFacts {
    pub demographics: Demographics,
    pub vitals: Vec<Vital>,
    pub tests: Vec<TestResult>,
    pub narrative: Vec<NarrativeText>,
    /// Former diseases, risks, habits, exposures.
    pub antecedents: Vec<Finding>,
    /// Antecedents that a closed world denies by not naming them; null where the source has no closed world.
    pub absent_antecedents: Option<ClosedWorld>,
    pub family_history: Vec<FamilyMember>,
    pub medications: Vec<Medication>,
}

/// A block of its own so that single fields can be masked or altered (5, Demographic Fairness). Each as the source says it.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct Demographics {
    /// Years; months and days of infants as fractions.
    pub age_years: Option<f64>,
    /// As written, where it is not a number of years.
    pub age_text: Option<String>,
    pub sex: Option<Sex>,
    pub race_ethnicity: Option<String>,
    pub nationality: Option<String>,
    pub insurance: Option<String>,
    pub marital_status: Option<String>,
    pub education: Option<String>,
    /// Where a text states them, in the order of the fields.
    pub spans: Vec<Span>,
}

/// As recorded by the source.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum Sex {
    Female,
    Male,
    /// Said to be neither.
    Other,
}

/// What a vital sign or body measure is of.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum VitalKind {
    Temperature,
    HeartRate,
    RespiratoryRate,
    OxygenSaturation,
    SystolicBloodPressure,
    DiastolicBloodPressure,
    MeanBloodPressure,
    Height,
    Weight,
    BodyMassIndex,
    /// 0 to 10.
    Pain,
}

/// A vital sign or body measure in its standard unit.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct Vital {
    pub kind: VitalKind,
    /// Null when `raw` is not a number or beyond what a living body can have.
    pub value: Option<f64>,
    /// UCUM: `Cel`, `/min`, `%`, `mm[Hg]`, `cm`, `kg`, `kg/m2`, `{score}`.
    pub unit: String,
    /// As written, with its unit.
    pub raw: String,
    pub state: ValueState,
    /// Days from presentation; negative before.
    pub day: Option<f64>,
    pub spans: Vec<Span>,
}

/// What became of a measured value.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum ValueState {
    /// In the unit that the source gives.
    #[default]
    AsStated,
    /// Converted from another unit.
    Converted,
    /// The source gives no unit; the bounds of the kind leave one.
    UnitInferred,
    /// Beyond what a living body can have.
    OutOfBounds,
    /// Not a number.
    Text,
}

/// Result of an examination that was ordered: laboratory, microbiology, imaging.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct TestResult {
    /// As the source calls it.
    pub name: String,
    /// Code of the source, such as an item id.
    pub code: Option<String>,
    pub cui: Option<String>,
    pub mapping_confidence: Option<f64>,
    pub kind: TestKind,
    /// The number, where there is one and nothing but one.
    pub value: Option<f64>,
    /// `<`, `>`, `<=` or `>=` before the number.
    pub comparator: Option<String>,
    /// As written.
    pub value_text: Option<String>,
    /// As written.
    pub unit: Option<String>,
    pub reference_low: Option<f64>,
    pub reference_high: Option<f64>,
    pub reference_text: Option<String>,
    /// Days from presentation; negative before.
    pub day: Option<f64>,
    pub spans: Vec<Span>,
}

#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum TestKind {
    #[default]
    Laboratory,
    Microbiology,
    Imaging,
    Pathology,
    Physiology,
    Other,
}

/// A text of the record, as far as it may be shown.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct NarrativeText {
    pub kind: NarrativeKind,
    pub text: String,
    /// The stretches that it consists of.
    pub spans: Vec<Span>,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum NarrativeKind {
    HistoryOfPresentIllness,
    PhysicalExamination,
    Radiology,
    Note,
}

/// Is it there? Three states: what nobody spoke of is not denied (B.5).
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum Negation {
    Present,
    /// The patient, or whoever speaks for the patient, says no.
    Denied,
    #[default]
    NotKnown,
}

/// What a statement about a finding rests on.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum FindingBasis {
    /// The record lists it.
    #[default]
    Recorded,
    /// A text says it.
    Text,
    /// The record lists everything that is there, and this is not in it.
    ClosedWorld,
}

/// A symptom, sign, disease, habit or exposure.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct Finding {
    /// In the language of the case.
    pub name: String,
    /// Code of the source, such as `E_91`.
    pub code: Option<String>,
    pub cui: Option<String>,
    /// 0 to 1, of `cui`.
    pub mapping_confidence: Option<f64>,
    pub negation: Negation,
    pub basis: FindingBasis,
    /// What a patient would say, in the language of the case.
    pub statement: Option<String>,
    /// Values that no field of an experience holds, such as a place of travel.
    pub values: Vec<FindingValue>,
    pub spans: Vec<Span>,
}

/// A value of a categorical or multi-choice evidence.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct FindingValue {
    /// The evidence, as a name.
    pub name: String,
    pub code: Option<String>,
    /// As the source has it, such as `V_10`.
    pub value: String,
    /// What it means, in the language of the case.
    pub meaning: Option<String>,
    pub cui: Option<String>,
}

/// Terms that the source knows and the record does not list: negative, but nobody said so (DDXPlus; 4.1.1). A solver that takes
/// them for denials makes the closed-world assumption that [`Negation`] keeps apart.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct ClosedWorld {
    /// `closed_world`
    pub basis: FindingBasis,
    /// In the order of the source's table.
    pub codes: Vec<String>,
    /// Of the same terms, in the language of the case.
    pub names: Vec<String>,
}

/// What the patient comes with (the snapshot that starts the dialogue).
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct CasePresentation {
    /// The first utterance.
    pub chief_complaint: Vec<SymptomPresentation>,
    /// All symptoms, those of the chief complaint among them.
    pub symptoms: Vec<SymptomPresentation>,
    /// Symptoms that a closed world denies by not naming them; null where the source has no closed world.
    pub absent_symptoms: Option<ClosedWorld>,
}

/// A symptom and how it is experienced.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct SymptomPresentation {
    pub symptom: Finding,
    pub experience: Experience,
}

#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct Experience {
    pub temporality: Temporality,
    /// Where it is felt.
    pub locality: Vec<Descriptor>,
    /// Where it goes.
    pub radiation: Vec<Descriptor>,
    pub characterization: Characterization,
    pub aggravating_factors: Vec<Descriptor>,
    pub relieving_factors: Vec<Descriptor>,
}

/// Each as the source says it.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct Temporality {
    pub onset: Option<String>,
    /// How fast it came, on a scale of the source, 0 to 10.
    pub onset_speed: Option<u32>,
    pub frequency: Option<String>,
    pub duration: Option<String>,
    /// Days between its begin and presentation.
    pub duration_days: Option<u32>,
}

#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct Characterization {
    /// On a scale of the source, 0 to 10.
    pub severity: Option<u32>,
    /// How precisely it can be located, 0 to 10.
    pub precision: Option<u32>,
    /// Character, colour, size, texture …
    pub descriptors: Vec<Descriptor>,
}

/// A word for a property.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct Descriptor {
    pub name: String,
    /// Code of the source, such as `V_29`.
    pub code: Option<String>,
    pub cui: Option<String>,
}

/// What runs in the family, by member.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct FamilyMember {
    /// Such as `mother`; `family` where no member is named.
    pub member: String,
    pub findings: Vec<Finding>,
}

#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct Medication {
    pub name: String,
    pub code: Option<String>,
    pub cui: Option<String>,
    pub mapping_confidence: Option<f64>,
    /// As written, such as `5 mg twice daily`.
    pub dose: Option<String>,
    pub spans: Vec<Span>,
}

/// A PatientVector in a release. What a solver may be told is in `views/patients.jsonl`; `ground_truth`, `origin.native_id`,
/// `citation` and the texts can name the diagnosis.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct MtdiagCase {
    pub case_id: String,
    /// `mtdiag-<dataset>-<16 hex>`: the case id with its dataset, for evaluation by source.
    pub mtdiag_id: String,
    /// The case that this one is a variant of.
    pub parent_id: Option<String>,
    pub source: String,
    /// SPDX expression.
    pub licence: String,
    pub access: Access,
    pub origin: Origin,
    pub ground_truth: GroundTruth,
    pub facts: PatientFacts,
    pub presentation: CasePresentation,
    pub citation: Option<Citation>,
    pub made_by: Vec<MadeBy>,
    pub replies: Vec<ReplyTrace>,
    /// Named subsets it is in; no part of the case hash.
    pub subsets: Vec<String>,
    /// Sorted.
    pub flags: Vec<String>,
    /// `none`, or `pending` while a person's decision is awaited.
    pub review_state: String,
    /// SHA-256 of the canonical JSON of the case and its texts.
    pub case_hash: String,
}

impl Row for MtdiagCase {
    const NAME: &'static str = "mtdiag_case";
    const TITLE: &'static str = "A patient as a case for multi-turn diagnosis, in a release.";
}
