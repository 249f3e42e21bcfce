//! The lexicon of clinical values, read and checked once.

use super::prose::{Names, Prose, Subject};
use super::units::UnitWords;
use crate::record::vector::VitalKind;
use anyhow::{Context, bail, ensure};
use serde::Deserialize;
use std::collections::{BTreeMap, BTreeSet};

/// The version of the file that this module reads.
const VERSION: u32 = 1;
/// Every kind of vital sign; the file must have a rule for each.
const KINDS: [VitalKind; 11] = [
    VitalKind::Temperature,
    VitalKind::HeartRate,
    VitalKind::RespiratoryRate,
    VitalKind::OxygenSaturation,
    VitalKind::SystolicBloodPressure,
    VitalKind::DiastolicBloodPressure,
    VitalKind::MeanBloodPressure,
    VitalKind::Height,
    VitalKind::Weight,
    VitalKind::BodyMassIndex,
    VitalKind::Pain,
];

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct ClinicalFile {
    version: u32,
    unit: Vec<UnitEntry>,
    counted: WordList,
    vital: Vec<VitalEntry>,
    blood_pressure: WordList,
    prose: ProseEntry,
    columns: ColumnWords,
    unit_groups: BTreeMap<String, Vec<String>>,
    analyte: Vec<AnalyteEntry>,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct WordList {
    words: Vec<String>,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct UnitEntry {
    pub(super) ucum: String,
    #[serde(default)]
    pub(super) exact: bool,
    #[serde(default)]
    pub(super) compound: bool,
    pub(super) words: Vec<String>,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct VitalEntry {
    kind: VitalKind,
    unit: String,
    bare: Vec<String>,
    decimals: u8,
    low: f64,
    high: f64,
    words: Vec<String>,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct ProseEntry {
    decoys: Vec<String>,
    pub(super) openers: Vec<String>,
    pub(super) connectives: Vec<String>,
    pub(super) followers: Vec<String>,
    pub(super) specimens: Vec<String>,
    pub(super) refused: Vec<String>,
    pub(super) reference: Vec<String>,
}

/// Words of headers, lower case.
#[derive(Clone, Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct ColumnWords {
    pub(super) test: Vec<String>,
    pub(super) value: Vec<String>,
    pub(super) unit: Vec<String>,
    pub(super) reference: Vec<String>,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct AnalyteEntry {
    name: String,
    words: Vec<String>,
    units: Vec<String>,
    #[serde(default)]
    unit_optional: bool,
    low: Option<f64>,
    high: Option<f64>,
    #[serde(default)]
    signed: bool,
}

/// How a vital sign is read.
#[derive(Clone, Debug)]
pub(super) struct VitalRule {
    /// UCUM, the standard unit.
    pub(super) unit: String,
    /// UCUM, of numbers without a unit.
    pub(super) bare: Vec<String>,
    /// Of converted values.
    pub(super) decimals: u8,
    /// In the standard unit.
    pub(super) low: f64,
    pub(super) high: f64,
}

/// How a laboratory result is read.
#[derive(Clone, Debug)]
pub(super) struct Analyte {
    /// UCUM.
    pub(super) units: BTreeSet<String>,
    pub(super) is_unit_optional: bool,
    /// Of numbers without a unit.
    pub(super) low: f64,
    pub(super) high: f64,
    pub(super) is_signed: bool,
}

/// Units, vital signs with their bounds, and analytes, ready to be looked for. Made from
/// `pipelines/lexicon/clinical.toml`.
#[derive(Clone, Debug)]
pub struct ClinicalWords {
    pub(super) units: UnitWords,
    pub(super) vitals: BTreeMap<VitalKind, VitalRule>,
    pub(super) analytes: Vec<Analyte>,
    pub(super) names: Names,
    pub(super) prose: Prose,
    pub(super) columns: ColumnWords,
}

impl ClinicalWords {
    /// Reads and checks a lexicon. `file` is its name in messages.
    ///
    /// # Errors
    /// No TOML, an unknown or missing key, another version, an empty list, a word that is blank or given twice, a kind of
    /// vital sign without a rule, bounds that are no interval, a standard unit that cannot be converted to, an unknown
    /// group of units.
    pub fn parse(file: &str, text: &str) -> anyhow::Result<Self> {
        Self::parse_text(text).with_context(|| file.to_owned())
    }

    fn parse_text(text: &str) -> anyhow::Result<Self> {
        let read: ClinicalFile = toml::from_str(text)?;
        ensure!(read.version == VERSION, "version {} is not known, it must be {VERSION}", read.version);
        let units = UnitWords::new(read.unit, &read.counted.words)?;
        let mut names = Vec::new();
        let mut vitals = BTreeMap::new();
        for entry in read.vital {
            let kind = entry.kind;
            ensure!(entry.low < entry.high, "vital {kind:?}: {} to {} is no interval", entry.low, entry.high);
            for unit in entry.bare.iter().chain([&entry.unit]) {
                ensure!(
                    super::units::convert(1.0, unit, &entry.unit).is_some(),
                    "vital {kind:?}: {unit:?} cannot be converted to {:?}",
                    entry.unit
                );
            }
            names.extend(entry.words.into_iter().map(|word| (word, Subject::Vital(kind))));
            let rule = VitalRule {
                unit: entry.unit,
                bare: entry.bare,
                decimals: entry.decimals,
                low: entry.low,
                high: entry.high,
            };
            ensure!(vitals.insert(kind, rule).is_none(), "vital {kind:?} is given twice");
        }
        if let Some(missing) = KINDS.iter().find(|kind| !vitals.contains_key(*kind)) {
            bail!("vital {missing:?} has no rule");
        }
        names.extend(read.blood_pressure.words.into_iter().map(|word| (word, Subject::BloodPressure)));
        names.extend(read.prose.decoys.iter().cloned().map(|word| (word, Subject::Decoy)));
        ensure!(!read.analyte.is_empty(), "there is no [[analyte]]");
        let mut analytes = Vec::with_capacity(read.analyte.len());
        for entry in read.analyte {
            ensure!(!entry.words.is_empty(), "analyte {:?}: it has no words", entry.name);
            let mut fitting = BTreeSet::new();
            for unit in entry.units {
                match unit.strip_prefix('@') {
                    None => {
                        fitting.insert(unit);
                    }
                    Some(group) => {
                        let Some(group) = read.unit_groups.get(group) else {
                            bail!("analyte {:?}: there is no group of units {group:?}", entry.name);
                        };
                        fitting.extend(group.iter().cloned());
                    }
                }
            }
            names.extend(entry.words.into_iter().map(|word| (word, Subject::Analyte(analytes.len()))));
            analytes.push(Analyte {
                units: fitting,
                is_unit_optional: entry.unit_optional,
                low: entry.low.unwrap_or(f64::NEG_INFINITY),
                high: entry.high.unwrap_or(f64::INFINITY),
                is_signed: entry.signed,
            });
        }
        let columns = &read.columns;
        for list in [&columns.test, &columns.value, &columns.unit, &columns.reference] {
            ensure!(!list.is_empty(), "columns: a list is empty");
        }
        Ok(Self {
            units,
            vitals,
            analytes,
            names: Names::new(names)?,
            prose: Prose::new(&read.prose)?,
            columns: read.columns,
        })
    }
}
