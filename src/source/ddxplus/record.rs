//! From what a row says to a [`PatientVector`] (MTDiag, 4.2.1 and B.5).
//!
//! Details fill the experience of their symptom. What is not listed is negative by the closed world and nobody's denial.

use super::release::{Listed, LookedUp, PreparedCondition, PreparedEvidence, PreparedValue, Release};
use super::tables::EvidenceType;
use super::wording::Role;
use crate::record::vector::{
    CasePresentation, ClosedWorld, Dataset, Demographics, Diagnosis, DiagnosisBasis, DifferentialDiagnosis,
    FamilyMember, Finding, FindingBasis, GroundTruth, Origin, PatientFacts, PatientVector, ProvenanceTier, Sex,
    SymptomPresentation,
};
use crate::record::{Provenance, RecordId};

/// Flags of a record.
pub mod flag {
    pub const CHILD_WITHOUT_PARENT: &str = "child_without_parent";
    pub const COMPLAINT_IS_ANTECEDENT: &str = "complaint_is_antecedent";
    pub const INITIAL_NOT_BINARY: &str = "initial_not_binary";
    pub const PATHOLOGY_NOT_IN_DIFFERENTIAL: &str = "pathology_not_in_differential";
    pub const PROBABILITIES_DO_NOT_SUM: &str = "probabilities_do_not_sum";
    pub const REPEATED_TOKEN: &str = "repeated_token";
    /// Of an evidence that has one value.
    pub const SEVERAL_VALUES: &str = "several_values";
}

/// How far the sum of probabilities may be from 1.
const TOLERANCE: f64 = 1e-3;

/// A finding that is there, with the tokens that tell of it.
pub(super) struct Present<'t> {
    pub(super) evidence: &'t PreparedEvidence,
    pub(super) details: Vec<(&'t PreparedEvidence, &'t PreparedValue)>,
}

/// How the evidences of a row stand to each other.
pub(super) struct Grouped<'t> {
    /// In the order of the row.
    pub(super) present: Vec<Present<'t>>,
    /// For each evidence of the table: whether it is there, or a detail of it is.
    pub(super) is_told: Vec<bool>,
    has_orphan: bool,
    has_several_values: bool,
}

impl Release {
    /// The record of a row. `split` is the part of the dataset that its file holds.
    pub fn record(
        &self,
        row: &LookedUp<'_>,
        record_id: RecordId,
        provenance: Provenance,
        split: Option<&str>,
    ) -> PatientVector {
        let grouped = self.group(row);
        let sex = sex_index(row.sex);
        let mut facts = PatientFacts { demographics: demographics(row), ..PatientFacts::default() };
        let mut presentation = CasePresentation::default();
        let complaint = owner(row.initial, &grouped.is_present(self));
        for present in &grouped.present {
            let evidence = present.evidence;
            let is_complaint = evidence.position == complaint;
            if evidence.is_antecedent {
                let finding = antecedent(present, sex);
                if is_complaint {
                    presentation.chief_complaint.push(antecedent_complaint(present, sex));
                }
                match &evidence.family_member {
                    Some(member) => add_family(&mut facts.family_history, member, finding),
                    None => facts.antecedents.push(finding),
                }
            } else {
                let symptom = symptom(present, sex);
                if is_complaint {
                    presentation.chief_complaint.push(symptom.clone());
                }
                presentation.symptoms.push(symptom);
            }
        }
        let (absent_symptoms, absent_antecedents) = self.absent(&grouped.is_told);
        presentation.absent_symptoms = Some(absent_symptoms);
        facts.absent_antecedents = Some(absent_antecedents);

        let flags = flags_of(row, &grouped);
        PatientVector {
            record_id,
            provenance,
            origin: Origin {
                dataset: Dataset::Ddxplus,
                stratum: split.map(str::to_owned),
                native_id: None,
                language: self.language.code().to_owned(),
            },
            ground_truth: ground_truth(row.pathology, ranked_diagnoses(row)),
            facts,
            presentation,
            texts: Vec::new(),
            citation: None,
            made_by: Vec::new(),
            replies: Vec::new(),
            flags,
        }
    }

    /// Puts details to the findings that they belong to.
    pub(super) fn group<'t>(&self, row: &LookedUp<'t>) -> Grouped<'t> {
        let n = self.evidences.len();
        let mut grouped = Grouped {
            present: Vec::with_capacity(row.listed.len()),
            is_told: vec![false; n],
            has_orphan: false,
            has_several_values: false,
        };
        let mut is_present = vec![false; n];
        for listed in row.listed.iter().filter(|listed| listed.is_present()) {
            set(&mut is_present, listed.evidence.position);
        }
        // Where the finding of an evidence stands among the present ones.
        let mut place: Vec<Option<usize>> = vec![None; n];
        let mut has_value = vec![false; n];
        for Listed { evidence, value } in row.listed.iter().filter(|listed| listed.is_present()) {
            let owner = owner(evidence, &is_present);
            if let Some(parent) = evidence.parent {
                grouped.has_orphan |= !get(&is_present, parent);
                set(&mut grouped.is_told, parent);
            }
            set(&mut grouped.is_told, evidence.position);
            if evidence.evidence_type == EvidenceType::Categorical {
                grouped.has_several_values |= get(&has_value, evidence.position);
                set(&mut has_value, evidence.position);
            }
            let Some(slot) = place.get_mut(usize::from(owner)) else { continue };
            let at = match *slot {
                Some(at) => at,
                None => {
                    let owner = if owner == evidence.position { Some(*evidence) } else { None };
                    let Some(owner) = owner.or_else(|| find(&row.listed, evidence.parent)) else { continue };
                    *slot = Some(grouped.present.len());
                    grouped.present.push(Present { evidence: owner, details: Vec::new() });
                    grouped.present.len() - 1
                }
            };
            if let (Some(present), Some(value)) = (grouped.present.get_mut(at), value) {
                present.details.push((evidence, value));
            }
        }
        grouped
    }

    /// What the closed world denies: symptoms and antecedents.
    fn absent(&self, is_told: &[bool]) -> (ClosedWorld, ClosedWorld) {
        let empty = || {
            let n = self.evidences.len();
            ClosedWorld { basis: FindingBasis::ClosedWorld, codes: Vec::with_capacity(n), names: Vec::with_capacity(n) }
        };
        let (mut symptoms, mut antecedents) = (empty(), empty());
        for evidence in &self.evidences {
            if evidence.can_be_absent && !get(is_told, evidence.position) {
                let world = if evidence.is_antecedent { &mut antecedents } else { &mut symptoms };
                world.codes.push(evidence.code().to_owned());
                world.names.push(evidence.name().to_owned());
            }
        }
        (symptoms, antecedents)
    }
}

impl Grouped<'_> {
    pub(super) fn is_present(&self, release: &Release) -> Vec<bool> {
        let mut is_present = vec![false; release.evidences.len()];
        for present in &self.present {
            set(&mut is_present, present.evidence.position);
        }
        is_present
    }
}

pub(super) fn get(bits: &[bool], position: u16) -> bool {
    bits.get(usize::from(position)).copied().unwrap_or_default()
}

fn set(bits: &mut [bool], position: u16) {
    if let Some(bit) = bits.get_mut(usize::from(position)) {
        *bit = true;
    }
}

fn find<'t>(listed: &[Listed<'t>], position: Option<u16>) -> Option<&'t PreparedEvidence> {
    listed.iter().map(|listed| listed.evidence).find(|evidence| Some(evidence.position) == position)
}

/// The evidence whose finding tells of this one: its parent, if that is there and this one is a detail with a value.
pub(super) fn owner(evidence: &PreparedEvidence, is_present: &[bool]) -> u16 {
    let is_detail = evidence.evidence_type != EvidenceType::Binary;
    evidence.parent.filter(|parent| is_detail && get(is_present, *parent)).unwrap_or(evidence.position)
}

pub(super) fn antecedent(present: &Present<'_>, sex: usize) -> Finding {
    let mut finding = said_by(present.evidence, sex);
    finding.values = present.details.iter().map(|(_, value)| value.value.clone()).collect();
    finding
}

fn said_by(evidence: &PreparedEvidence, sex: usize) -> Finding {
    evidence.finding.get(sex).cloned().unwrap_or_default()
}

pub(super) fn symptom(present: &Present<'_>, sex: usize) -> SymptomPresentation {
    let mut presentation =
        SymptomPresentation { symptom: said_by(present.evidence, sex), ..SymptomPresentation::default() };
    for (evidence, value) in &present.details {
        let experience = &mut presentation.experience;
        let number = match evidence.role {
            Role::Descriptors => {
                experience.characterization.descriptors.push(value.descriptor.clone());
                continue;
            }
            Role::Locality => {
                experience.locality.push(value.descriptor.clone());
                continue;
            }
            Role::Radiation => {
                experience.radiation.push(value.descriptor.clone());
                continue;
            }
            Role::Severity => Some(&mut experience.characterization.severity),
            Role::Precision => Some(&mut experience.characterization.precision),
            Role::OnsetSpeed => Some(&mut experience.temporality.onset_speed),
            Role::Values => None,
        };
        match (number, value.number) {
            (Some(field @ None), Some(number)) => *field = Some(number),
            // What is no number, or a second one, is kept as a value.
            _ => presentation.symptom.values.push(value.value.clone()),
        }
    }
    presentation
}

fn add_family(family: &mut Vec<FamilyMember>, member: &str, finding: Finding) {
    match family.iter_mut().find(|known| known.member == member) {
        Some(known) => known.findings.push(finding),
        None => family.push(FamilyMember { member: member.to_owned(), findings: vec![finding] }),
    }
}

/// The differential of a row, the likeliest first; equal ones in the order of the row.
pub(super) fn ranked<'t>(row: &LookedUp<'t>) -> Vec<(&'t PreparedCondition, f64)> {
    let mut ranked = row.differential.clone();
    ranked.sort_by(|(_, one), (_, other)| other.total_cmp(one));
    ranked
}

pub(super) fn differential(condition: &PreparedCondition, rank: u32, probability: f64) -> DifferentialDiagnosis {
    DifferentialDiagnosis {
        rank,
        probability: Some(probability),
        label: condition.label.clone(),
        icd10: condition.code.icd10.clone(),
        cui: None,
        provenance_tier: ProvenanceTier::DdxplusGold,
    }
}

fn ranked_diagnoses(row: &LookedUp<'_>) -> Vec<DifferentialDiagnosis> {
    let ranked = ranked(row).into_iter().zip(1u32..);
    ranked.map(|((condition, probability), rank)| differential(condition, rank, probability)).collect()
}

pub(super) fn ground_truth(pathology: &PreparedCondition, differential: Vec<DifferentialDiagnosis>) -> GroundTruth {
    GroundTruth {
        primary: Diagnosis {
            label: pathology.label.clone(),
            label_english: Some(pathology.label_english.clone()),
            icd10: pathology.code.icd10.clone(),
            icd10_source: pathology.code.published.clone(),
            icd10_state: pathology.code.state,
            provenance_tier: ProvenanceTier::DdxplusGold,
            basis: DiagnosisBasis::Labelled,
            severity: pathology.severity,
            ..Diagnosis::default()
        },
        secondary: Vec::new(),
        differential,
    }
}

pub(super) fn demographics(row: &LookedUp<'_>) -> Demographics {
    Demographics { age_years: Some(f64::from(row.age)), sex: Some(row.sex), ..Demographics::default() }
}

/// Place of a sex in what is prepared for both.
pub(super) fn sex_index(sex: Sex) -> usize {
    usize::from(sex == Sex::Female)
}

/// An antecedent that the patient comes with; with the relative, where it is about one.
pub(super) fn antecedent_complaint(present: &Present<'_>, sex: usize) -> SymptomPresentation {
    let symptom = Finding { name: present.evidence.name().to_owned(), ..antecedent(present, sex) };
    SymptomPresentation { symptom, ..SymptomPresentation::default() }
}

/// What runs in the family.
pub(super) fn family_of(present: &[&Present<'_>], sex: usize) -> Vec<FamilyMember> {
    let mut family = Vec::new();
    for present in present {
        if let Some(member) = &present.evidence.family_member {
            add_family(&mut family, member, antecedent(present, sex));
        }
    }
    family
}

/// What a user should know of a row.
pub(super) fn flags_of(row: &LookedUp<'_>, grouped: &Grouped<'_>) -> Vec<String> {
    let flags = [
        (grouped.has_orphan, flag::CHILD_WITHOUT_PARENT),
        (row.initial.is_antecedent, flag::COMPLAINT_IS_ANTECEDENT),
        (row.initial.evidence_type != EvidenceType::Binary, flag::INITIAL_NOT_BINARY),
        (!row.is_pathology_in_differential, flag::PATHOLOGY_NOT_IN_DIFFERENTIAL),
        ((row.probability - 1.0).abs() > TOLERANCE, flag::PROBABILITIES_DO_NOT_SUM),
        (row.has_repeated_token, flag::REPEATED_TOKEN),
        (grouped.has_several_values, flag::SEVERAL_VALUES),
    ];
    flags.into_iter().filter(|(is_so, _)| *is_so).map(|(_, flag)| flag.to_owned()).collect()
}
