//! The 24-slot clinical record of MedRoundsQA (Tables 6 and 7) and the case it becomes in a release.

use super::model::{MadeBy, ReplyTrace};
use super::question::AnswerOption;
use super::{Access, Hash, Provenance, RecordId, Row};
use crate::difficulty::{Band, Signals};
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
#[schemars(extend("x-groups" = groups()))]
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

    /// What belongs in the slot, for readers who do not know the table: its definitions in other words.
    pub fn meaning(self) -> &'static str {
        match self {
            Self::SymptomName => "what the patient complains of, or what a layperson would notice, in everyday words",
            Self::SymptomTime => "when the symptoms began, how long they last, and their course",
            Self::SymptomPosition => "where in or on the body the symptoms are",
            Self::SymptomDegree => "how strong the symptoms are",
            Self::SymptomColor => "the colour of what can be seen",
            Self::SymptomShape => "the form of what can be seen",
            Self::SymptomTexture => "how something feels to the touch, how thick or firm it is",
            Self::SymptomSmell => "how something smells",
            Self::PhysicalChange => "changes of weight, appetite, strength or sleep",
            Self::MedicalExamination => {
                "what examinations and tests found: vital signs, signs on the body, laboratory, images"
            }
            Self::PersonalAge => "how old the patient is",
            Self::PersonalSex => "the sex or gender of the patient",
            Self::PersonalWeight => "the weight of the patient, and the height where it is told",
            Self::PastDiagnosis => "diseases that were diagnosed earlier",
            Self::PastMedication => "drugs that are taken regularly, or were until recently",
            Self::TraumaSurgery => "injuries and operations before",
            Self::AllergicHistory => "what the patient is allergic to, and what happens then",
            Self::Preventive => "vaccinations and other prevention, done or missed",
            Self::FamilyHistory => "diseases of relatives",
            Self::ContactHistory => "ill people, animals or risky places that the patient was near",
            Self::HabitTobacco => "tobacco: in which form, how much, how long",
            Self::HabitWine => "alcohol: how much and how often",
            Self::HabitDrug => "use of illicit drugs, or of drugs that act on the mind and nobody prescribed",
            Self::HabitLiving => "way of life: food, exercise, hygiene, work, hours of sleep",
            Self::CoitusHistory => "sexual activity, with its risks",
            Self::ReceivingTreatment => "whether the present illness is being treated, and how",
            Self::Department => "the department or specialty where the patient is seen",
            Self::AdditionalNotes => "whatever else is told of the patient and fits no other slot",
            Self::GroundTruthDiagnosis => "the diagnosis that is right",
        }
    }

    /// The slot of a name in Table 6, letter for letter.
    pub fn parse(name: &str) -> Option<Self> {
        Self::ALL.into_iter().find(|slot| slot.as_str() == name)
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

/// A semantic group of slots, by the headings of Table 6. Table 7 has the same groups and leaves out Symptom-Smell and
/// Receiving-Treatment.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum SlotGroup {
    SymptomDescriptors,
    PhysicalExamination,
    HistoryContext,
    MetaInformation,
}

impl SlotGroup {
    pub const ALL: [Self; 4] =
        [Self::SymptomDescriptors, Self::PhysicalExamination, Self::HistoryContext, Self::MetaInformation];

    /// The heading in the tables.
    pub fn as_str(self) -> &'static str {
        match self {
            Self::SymptomDescriptors => "symptom descriptors",
            Self::PhysicalExamination => "physical changes and examination",
            Self::HistoryContext => "history and context",
            Self::MetaInformation => "meta-information",
        }
    }
}

/// A group of slots by what a doctor asks for (appendix L.2, which holds 26 of the names).
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum QueryGroup {
    SymptomDescriptors,
    PhysicalExamination,
    HistoryContext,
    LifestyleRisk,
}

impl Slot {
    /// The group under whose heading Table 6 has the slot.
    pub fn group(self) -> SlotGroup {
        match self {
            Self::SymptomName
            | Self::SymptomTime
            | Self::SymptomPosition
            | Self::SymptomDegree
            | Self::SymptomColor
            | Self::SymptomShape
            | Self::SymptomTexture
            | Self::SymptomSmell => SlotGroup::SymptomDescriptors,
            Self::PhysicalChange | Self::MedicalExamination => SlotGroup::PhysicalExamination,
            Self::Department | Self::AdditionalNotes | Self::GroundTruthDiagnosis => SlotGroup::MetaInformation,
            _ => SlotGroup::HistoryContext,
        }
    }

    /// The group of appendix L.2; none for the three names of meta-information.
    pub fn query_group(self) -> Option<QueryGroup> {
        match self {
            Self::HabitTobacco
            | Self::HabitWine
            | Self::HabitLiving
            | Self::HabitDrug
            | Self::CoitusHistory
            | Self::Preventive => Some(QueryGroup::LifestyleRisk),
            _ => match self.group() {
                SlotGroup::SymptomDescriptors => Some(QueryGroup::SymptomDescriptors),
                SlotGroup::PhysicalExamination => Some(QueryGroup::PhysicalExamination),
                SlotGroup::HistoryContext => Some(QueryGroup::HistoryContext),
                SlotGroup::MetaInformation => None,
            },
        }
    }
}

/// Both groupings, for the schema.
fn groups() -> serde_json::Value {
    let mut table = std::collections::BTreeMap::<_, Vec<&str>>::new();
    let mut queries = std::collections::BTreeMap::<_, Vec<&str>>::new();
    for slot in Slot::ALL {
        table.entry(slot.group()).or_default().push(slot.as_str());
        if let Some(group) = slot.query_group() {
            queries.entry(group).or_default().push(slot.as_str());
        }
    }
    let clinical: Vec<&str> = Slot::ALL.into_iter().filter(|slot| slot.is_clinical()).map(Slot::as_str).collect();
    serde_json::json!({ "table_6_and_7": table, "appendix_l2": queries, "clinical_24": clinical })
}

/// How well a value is supported by its text (SPEC section 8).
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum Grounding {
    /// The value is the text at its span, character for character.
    Exact,
    /// The value is the text at its span but for case, white space, typographic marks and the notation of units.
    Normalised,
    /// A normalised Levenshtein similarity of at least 0.9, with numbers, units, negations and sides equal.
    Fuzzy,
    /// The text says it otherwise: see [`Conflict`].
    Contradicted,
    /// The value stands nowhere in its text.
    NotFound,
}

impl Grounding {
    /// Whether the text supports the value.
    pub fn is_grounded(self) -> bool {
        matches!(self, Self::Exact | Self::Normalised | Self::Fuzzy)
    }
}

/// In what a contradicted value differs from its text.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum Conflict {
    Number,
    Unit,
    Negation,
    Laterality,
    Experiencer,
}

/// A place in a text. Offsets count Unicode scalar values of the original text; `end` is exclusive.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize, JsonSchema)]
pub struct Span {
    /// `stem` for the raw question text.
    pub text_id: String,
    pub start: u32,
    pub end: u32,
}

/// One value of one slot: a phrase of the text, as its extractor gave it.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct SlotValue {
    pub slot: Slot,
    /// As it was extracted.
    pub value: String,
    /// In the notation that all cases share; null as long as no stage has normalised it.
    pub normalised: Option<String>,
    /// Where the text says it, or what it contradicts; null if it stands nowhere.
    pub span: Option<Span>,
    pub grounding: Grounding,
    /// Edits between the value and the text at its span; null unless `fuzzy`.
    pub distance: Option<u32>,
    /// Null unless `contradicted`.
    pub conflict: Option<Conflict>,
    /// The slot its extractor had put it in, if a rule of slot boundaries moved it.
    pub moved_from: Option<Slot>,
    /// It names the diagnosis or a synonym of it: kept from what a doctor is shown.
    pub names_diagnosis: bool,
}

impl SlotValue {
    /// A value that is the text at its span.
    pub fn copied(slot: Slot, value: String, span: Span) -> Self {
        Self {
            slot,
            value,
            normalised: None,
            span: Some(span),
            grounding: Grounding::Exact,
            distance: None,
            conflict: None,
            moved_from: None,
            names_diagnosis: false,
        }
    }

    /// The value in the notation that all cases share, if it has been normalised.
    pub fn shown(&self) -> &str {
        self.normalised.as_deref().unwrap_or(&self.value)
    }

    /// ``Symptom-Name `night sweats` not found`` for a value that its text does not support; `None` for another.
    pub fn why_unsupported(&self) -> Option<String> {
        let why = match (self.grounding, self.conflict) {
            (Grounding::Exact | Grounding::Normalised | Grounding::Fuzzy, _) => return None,
            (Grounding::Contradicted, Some(conflict)) => {
                format!("contradicted in {}", format!("{conflict:?}").to_lowercase())
            }
            _ => "not found".to_owned(),
        };
        Some(format!("{} `{}` {why}", self.slot.as_str(), self.value))
    }
}

/// How far a record is supported by its text, and its parts (SPEC section 8, the deterministic half). Shares are rounded to
/// six decimals.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct Fidelity {
    /// 0 to 1: `grounded_share · (0.6 + 0.4 · coverage) · (1 − n_misplaced / n_values)`; 0 without values.
    pub score: f64,
    /// Values that the text supports, of all that the extractor gave.
    pub grounded_share: f64,
    /// Clinical sentences of the vignette from which at least one grounded value is copied, of all of them.
    pub coverage: f64,
    pub n_values: u32,
    pub n_exact: u32,
    pub n_normalised: u32,
    pub n_fuzzy: u32,
    pub n_contradicted: u32,
    pub n_not_found: u32,
    /// Values that name the diagnosis or a synonym of it.
    pub n_leaks: u32,
    /// Values that a rule of slot boundaries would put elsewhere.
    pub n_misplaced: u32,
    pub n_sentences: u32,
    pub n_covered: u32,
}

/// How the values of one slot of a record stand in its text.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct GroundingRow {
    pub record_id: RecordId,
    pub slot: Slot,
    pub n_exact: u32,
    pub n_normalised: u32,
    pub n_fuzzy: u32,
    pub n_contradicted: u32,
    pub n_not_found: u32,
}

impl GroundingRow {
    pub fn empty(record_id: RecordId, slot: Slot) -> Self {
        Self { record_id, slot, n_exact: 0, n_normalised: 0, n_fuzzy: 0, n_contradicted: 0, n_not_found: 0 }
    }
}

impl Row for GroundingRow {
    const NAME: &'static str = "grounding";
    const TITLE: &'static str = "How the values of one slot of a record stand in its text.";
}

/// Which of the 17 specialties a case belongs to, and by what (MedRoundsQA, Figure 8).
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct SpecialtyRow {
    /// Name of the specialty, as in the paper.
    pub name: String,
    /// Points of the terms found for it.
    pub score: i32,
    pub runner_up: Option<String>,
    pub runner_up_score: Option<i32>,
    /// The margin over the runner-up is large enough; where a model was asked, that it says the same.
    pub confident: bool,
    /// What the rules say, where a model says another.
    pub by_rules: Option<String>,
    /// In the model's words; null where rules alone decided.
    pub reason: Option<String>,
    /// `specialty: term (field, weight)`, the strongest first.
    pub evidence: Vec<String>,
}

/// What a judge said of a record against its text (SPEC section 8, the part of a model).
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct Judgement {
    /// 5: everything is there and right; 4: small differences; 3: some loss, the essentials are there; 2: much is lost or
    /// wrong; 1: critical loss or errors (ClinMM-Bench, 4.1.5).
    pub score: u32,
    /// In the judge's words.
    pub reason: String,
    /// `provider/model`
    pub judge: String,
}

/// A value that reviewers changed.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct Correction {
    pub change: Change,
    pub slot: Slot,
    pub value: String,
}

/// What reviewers did to a value.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum Change {
    /// The extractor did not have it.
    Added,
    /// The extractor had it.
    Removed,
}

impl Change {
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Added => "added",
            Self::Removed => "removed",
        }
    }
}

/// One answer of one model to one question.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct Run {
    /// Sample number, from 0.
    pub sample: u32,
    /// Steps of its reasoning.
    pub n_steps: u32,
    /// Its final answer, as given.
    pub answer: String,
    /// Its own confidence, 0 to 1.
    pub confidence: f64,
    pub call: Hash,
}

/// A call for an answer that gave none.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct FailedRun {
    pub sample: u32,
    /// `reply_truncated`, `reply_refused`, `reply_empty`, `reply_invalid`, `no_reply`, `egress_refused`, `copied_example`.
    pub reason: String,
    pub detail: String,
    pub call: Hash,
}

/// The answers of one model to one question (MedRoundsQA, appendix F).
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct ModelRuns {
    /// Name under `[models]` of the pipeline.
    pub model: String,
    /// Who that is: `provider/model`.
    pub by: String,
    /// By sample number.
    pub runs: Vec<Run>,
    pub failed: Vec<FailedRun>,
    /// 0 to 1: how far its final answers differ in meaning, by a judge; null as long as none has said so.
    pub disagreement: Option<f64>,
}

/// A question with its slots.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
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
    /// Values that the text does not support: taken out of the record, kept for review.
    pub rejected: Vec<SlotValue>,
    /// Null as long as no stage has scored the record.
    pub fidelity: Option<Fidelity>,
    /// Null as long as no stage has assigned one.
    pub specialty: Option<SpecialtyRow>,
    /// The values of the extractor, where reviewers corrected the record; empty elsewhere.
    pub extracted: Vec<SlotValue>,
    /// What reviewers changed of them.
    pub corrections: Vec<Correction>,
    /// What a judge said of the record; null as long as none was asked.
    pub judgement: Option<Judgement>,
    /// Answers of models to the question, by which its difficulty is estimated; empty as long as none was asked.
    pub runs: Vec<ModelRuns>,
    /// Who made which field.
    pub made_by: Vec<MadeBy>,
    /// The replies of models that went into the record.
    pub replies: Vec<ReplyTrace>,
}

impl Row for SlotRecord {
    const NAME: &'static str = "slot_record";
    const TITLE: &'static str = "A question with its 24-slot clinical record.";
}

record_by_fields!(SlotRecord);

/// One case of a `medrounds` release. Its slots and texts stand in `slots.parquet` and `texts.parquet`.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
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
    /// Who made which field: rules, reviewers, a model, or nobody in a build without models.
    pub made_by: Vec<MadeBy>,
    /// The replies of models that the case was made from; none where rules made it.
    pub replies: Vec<ReplyTrace>,
    /// One of the paper's 17; null if no stage has assigned one.
    pub specialty: Option<String>,
    /// Whether the rules were far enough from another specialty; where a model was asked, whether it says the same.
    pub specialty_confident: Option<bool>,
    /// What the rules say, where a model says another.
    pub specialty_by_rules: Option<String>,
    /// What decided: `specialty: term (field, weight)`.
    pub specialty_evidence: Vec<String>,
    /// Null if no stage has scored the record.
    pub fidelity: Option<Fidelity>,
    /// What a judge said of the record; null if none was asked.
    pub judgement: Option<Judgement>,
    /// Difficulty band among the cases of the build: easy, medium or hard (MedRoundsQA, 3.2); null if it was not estimated, or
    /// there are fewer than three different scores.
    pub difficulty: Option<Band>,
    /// 0 to 1: `(L + H + 1 − C) / 3` of the scaled signals; null if it was not estimated.
    pub difficulty_score: Option<f64>,
    /// Averages over the models that answered; null if there are too few answers.
    pub difficulty_signals: Option<Signals>,
    /// The same, scaled to 0 to 1 among the cases of the build; null like the score.
    pub difficulty_scaled: Option<Signals>,
    /// Models whose answers are too few to count, as `model: reason n`.
    pub difficulty_missing: Vec<String>,
    /// Values that the extractor gave and the text does not support; they are not in `slots.parquet`.
    pub n_rejected_values: u32,
    /// Named subsets that the case is in, `name` or `name/part`: see the pipeline's `[subsets]`.
    pub subsets: Vec<String>,
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
        assert_eq!(Slot::ALL.iter().filter(|slot| slot.query_group().is_some()).count(), 26);
    }
}
