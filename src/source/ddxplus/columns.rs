//! Patients as columns: the same rows as [`Release::record`] gives one by one, without making them.
//!
//! A release has few different findings, and its rows are made of them: each is written once for a batch and taken as often as
//! it stands. A symptom with details (pain of that kind, there, so strong) is known by the tokens that tell of it.

use super::record::{Present, antecedent, flags_of, owner, sex_index, symptom};
use super::release::{LookedUp, PreparedCondition, PreparedEvidence, Release};
use crate::record::columns::{Columns, Taken, TakenLists, replaced};
use crate::record::vector::{
    CasePresentation, ClosedWorld, Dataset, Demographics, DifferentialDiagnosis, FamilyMember, Finding, FindingBasis,
    GroundTruth, Origin, PatientFacts, PatientVector, SymptomPresentation,
};
use crate::record::{Hash, Provenance, RecordId, Rights};
use arrow::array::{ArrayRef, Float64Array, StringArray, UInt32Array, UInt64Array};
use arrow::record_batch::RecordBatch;
use std::collections::HashMap;
use std::sync::Arc;

/// What stands at a finding: evidence, sex, and the tokens of its details, by the addresses of what was prepared for them.
type Key = Vec<usize>;

/// Gathers the patients of one file.
pub struct PatientColumns<'r> {
    release: &'r Release,
    origin: Origin,
    source: String,
    file: String,
    rights: Rights,
    ids: Vec<String>,
    lines: Vec<u64>,
    raw_sha256: Vec<String>,
    demographics: Known<usize, Demographics>,
    ground_truth: Known<usize, GroundTruth>,
    differential: TakenLists<DifferentialDiagnosis>,
    conditions: HashMap<usize, u32>,
    ranks: Vec<u32>,
    probabilities: Vec<f64>,
    antecedents: TakenLists<Finding>,
    antecedent_keys: HashMap<Key, u32>,
    family: Known<Key, Vec<FamilyMember>>,
    complaints: TakenLists<SymptomPresentation>,
    complaint_keys: HashMap<Key, u32>,
    symptoms: TakenLists<SymptomPresentation>,
    symptom_keys: HashMap<Key, u32>,
    /// Positions of evidences that the closed world denies.
    absent_symptoms: Absent,
    absent_antecedents: Absent,
    flags: Known<Vec<String>, Vec<String>>,
}

/// One value a row, each different one once.
struct Known<K, V> {
    taken: Taken<V>,
    keys: HashMap<K, u32>,
}

impl<K, V> Default for Known<K, V> {
    fn default() -> Self {
        Self { taken: Taken::default(), keys: HashMap::new() }
    }
}

impl<K: std::hash::Hash + Eq, V: serde::Serialize> Known<K, V> {
    fn put(&mut self, key: K, make: impl FnOnce() -> V) {
        let index = index_of(&mut self.keys, key, || self.taken.add(make()));
        self.taken.indices.push(index);
    }
}

fn index_of<K: std::hash::Hash + Eq>(keys: &mut HashMap<K, u32>, key: K, add: impl FnOnce() -> u32) -> u32 {
    match keys.get(&key) {
        Some(index) => *index,
        None => {
            let index = add();
            keys.insert(key, index);
            index
        }
    }
}

/// Lists of evidences by their positions.
#[derive(Clone, Default)]
struct Absent {
    positions: TakenLists<String>,
}

impl Absent {
    fn array(self, table: &[&str], field: &arrow::datatypes::Field) -> anyhow::Result<ArrayRef> {
        let mut lists = self.positions;
        lists.taken.values = table.iter().map(|text| (*text).to_owned()).collect();
        lists.array(field, Ok)
    }
}

fn address<T>(value: &T) -> usize {
    std::ptr::from_ref(value).addr()
}

impl<'r> PatientColumns<'r> {
    pub fn new(release: &'r Release, source: &str, file: &str, rights: &Rights, split: Option<&str>) -> Self {
        let origin = Origin {
            dataset: Dataset::Ddxplus,
            stratum: split.map(str::to_owned),
            native_id: None,
            language: release.language.code().to_owned(),
        };
        Self {
            release,
            origin,
            source: source.to_owned(),
            file: file.to_owned(),
            rights: rights.clone(),
            ids: Vec::new(),
            lines: Vec::new(),
            raw_sha256: Vec::new(),
            demographics: Known::default(),
            ground_truth: Known::default(),
            differential: TakenLists::default(),
            conditions: HashMap::new(),
            ranks: Vec::new(),
            probabilities: Vec::new(),
            antecedents: TakenLists::default(),
            antecedent_keys: HashMap::new(),
            family: Known::default(),
            complaints: TakenLists::default(),
            complaint_keys: HashMap::new(),
            symptoms: TakenLists::default(),
            symptom_keys: HashMap::new(),
            absent_symptoms: Absent::default(),
            absent_antecedents: Absent::default(),
            flags: Known::default(),
        }
    }

    /// Adds a patient.
    pub fn push(&mut self, row: &LookedUp<'r>, id: &RecordId, line: u64, raw_sha256: &Hash) {
        let release = self.release;
        self.ids.push(id.as_str().to_owned());
        self.lines.push(line);
        self.raw_sha256.push(raw_sha256.as_str().to_owned());
        let sex = sex_index(row.sex);
        self.demographics.put(usize::from(row.age) * 2 + sex, || super::record::demographics(row));
        self.ground_truth.put(address(row.pathology), || super::record::ground_truth(row.pathology, Vec::new()));
        self.push_differential(row);

        let grouped = release.group(row);
        let complaint = owner(row.initial, &grouped.is_present(release));
        let mut family_key = vec![sex];
        let mut family: Vec<&Present<'r>> = Vec::new();
        for present in &grouped.present {
            let evidence = present.evidence;
            let key = key_of(present, sex);
            let is_complaint = evidence.position == complaint;
            if evidence.is_antecedent {
                if is_complaint {
                    let index = index_of(&mut self.complaint_keys, key.clone(), || {
                        self.complaints.taken.add(super::record::antecedent_complaint(present, sex))
                    });
                    self.complaints.push(index);
                }
                if evidence.family_member.is_some() {
                    family_key.push(0);
                    family_key.extend(key);
                    family.push(present);
                } else {
                    let index = index_of(&mut self.antecedent_keys, key, || {
                        self.antecedents.taken.add(antecedent(present, sex))
                    });
                    self.antecedents.push(index);
                }
            } else {
                if is_complaint {
                    let index = index_of(&mut self.complaint_keys, key.clone(), || {
                        self.complaints.taken.add(symptom(present, sex))
                    });
                    self.complaints.push(index);
                }
                let index = index_of(&mut self.symptom_keys, key, || self.symptoms.taken.add(symptom(present, sex)));
                self.symptoms.push(index);
            }
        }
        self.family.put(family_key, || super::record::family_of(&family, sex));
        self.antecedents.close();
        self.complaints.close();
        self.symptoms.close();
        for (evidence, position) in release.evidences().iter().zip(0u32..) {
            if evidence.can_be_absent && !super::record::get(&grouped.is_told, evidence.position) {
                let world =
                    if evidence.is_antecedent { &mut self.absent_antecedents } else { &mut self.absent_symptoms };
                world.positions.push(position);
            }
        }
        self.absent_symptoms.positions.close();
        self.absent_antecedents.positions.close();
        let flags = flags_of(row, &grouped);
        self.flags.put(flags.clone(), || flags);
    }

    fn push_differential(&mut self, row: &LookedUp<'r>) {
        for ((condition, probability), rank) in super::record::ranked(row).into_iter().zip(1u32..) {
            let index = index_of(&mut self.conditions, address::<PreparedCondition>(condition), || {
                self.differential.taken.add(super::record::differential(condition, rank, probability))
            });
            self.differential.push(index);
            self.ranks.push(rank);
            self.probabilities.push(probability);
        }
        self.differential.close();
    }

    /// The patients, in the order in which they were added.
    pub fn finish(self) -> anyhow::Result<RecordBatch> {
        let n = self.ids.len();
        let template = PatientVector {
            record_id: RecordId::parse(""),
            provenance: Provenance {
                source: self.source,
                file: self.file,
                line: 0,
                raw_sha256: Hash::of(b""),
                rights: self.rights,
            },
            origin: self.origin,
            ground_truth: GroundTruth::default(),
            facts: PatientFacts { absent_antecedents: Some(nobody()), ..PatientFacts::default() },
            presentation: CasePresentation { absent_symptoms: Some(nobody()), ..CasePresentation::default() },
            texts: Vec::new(),
            citation: None,
            made_by: Vec::new(),
            replies: Vec::new(),
            flags: Vec::new(),
        };
        let mut columns = Columns::repeat(&template, n)?;
        columns.set("record_id", Arc::new(StringArray::from(self.ids)))?;
        columns.set("provenance.line", Arc::new(UInt64Array::from(self.lines)))?;
        columns.set("provenance.raw_sha256", Arc::new(StringArray::from(self.raw_sha256)))?;
        columns.set("ground_truth", self.ground_truth.taken.array(&*columns.field("ground_truth")?)?)?;
        let path = "ground_truth.differential";
        let differential = self.differential.array(&*columns.field(path)?, |elements| {
            let elements = replaced(&elements, Some("rank"), Arc::new(UInt32Array::from(self.ranks)))?;
            replaced(&elements, Some("probability"), Arc::new(Float64Array::from(self.probabilities)))
        })?;
        columns.set(path, differential)?;
        let path = "facts.demographics";
        columns.set(path, self.demographics.taken.array(&*columns.field(path)?)?)?;
        let path = "facts.antecedents";
        columns.set(path, self.antecedents.array(&*columns.field(path)?, Ok)?)?;
        let path = "facts.family_history";
        columns.set(path, self.family.taken.array(&*columns.field(path)?)?)?;
        let path = "presentation.chief_complaint";
        columns.set(path, self.complaints.array(&*columns.field(path)?, Ok)?)?;
        let path = "presentation.symptoms";
        columns.set(path, self.symptoms.array(&*columns.field(path)?, Ok)?)?;
        columns.set("flags", self.flags.taken.array(&*columns.field("flags")?)?)?;
        let evidences = self.release.evidences();
        let codes: Vec<&str> = evidences.iter().map(PreparedEvidence::code).collect();
        let names: Vec<&str> = evidences.iter().map(PreparedEvidence::name).collect();
        for (of, absent) in [
            ("presentation.absent_symptoms", self.absent_symptoms),
            ("facts.absent_antecedents", self.absent_antecedents),
        ] {
            for (field, table) in [("codes", &codes), ("names", &names)] {
                let path = format!("{of}.{field}");
                let array = absent.clone().array(table, &*columns.field(&path)?)?;
                columns.set(&path, array)?;
            }
        }
        columns.finish()
    }
}

fn nobody() -> ClosedWorld {
    ClosedWorld { basis: FindingBasis::ClosedWorld, codes: Vec::new(), names: Vec::new() }
}

fn key_of(present: &Present<'_>, sex: usize) -> Key {
    let mut key = Vec::with_capacity(2 + 2 * present.details.len());
    key.extend([usize::from(present.evidence.position), sex]);
    for (evidence, value) in &present.details {
        key.extend([address::<PreparedEvidence>(evidence), address(*value)]);
    }
    key
}
