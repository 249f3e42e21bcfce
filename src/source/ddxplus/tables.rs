//! The two tables of a release: `release_evidences.json` and `release_conditions.json` (MTDiag, 3.2 and 4.1.1).
//!
//! A table is loaded whole and checked before a row is read. What is known to differ and does no harm: a `code_question` that
//! is no evidence (five yes-or-no questions of the published table name one), antecedents among the symptoms of a condition.

use super::codes::{Code, Codes};
use crate::error::input;
use serde::de::{Deserializer, Error as _, MapAccess, Visitor};
use serde::{Deserialize, Serialize};
use serde_json::Value;
use std::collections::{BTreeMap, BTreeSet};
use std::fmt;
use std::marker::PhantomData;

/// What a question of a table may be answered with.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
pub enum EvidenceType {
    /// The evidence is listed or not.
    #[serde(rename = "B")]
    Binary,
    /// One value.
    #[serde(rename = "C")]
    Categorical,
    /// Any number of values.
    #[serde(rename = "M")]
    MultiChoice,
}

/// A language of the release.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Language {
    #[serde(rename = "en")]
    English,
    #[serde(rename = "fr")]
    French,
}

impl Language {
    /// BCP 47
    pub fn code(self) -> &'static str {
        match self {
            Self::English => "en",
            Self::French => "fr",
        }
    }

    /// English name, for messages.
    pub fn name(self) -> &'static str {
        match self {
            Self::English => "English",
            Self::French => "French",
        }
    }
}

/// The same in both languages.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Bilingual {
    pub english: String,
    pub french: String,
}

impl Bilingual {
    pub fn get(&self, language: Language) -> &str {
        match language {
            Language::English => &self.english,
            Language::French => &self.french,
        }
    }
}

/// A value of an evidence.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct EvidenceValue {
    /// As rows have it, such as `V_10` or `4`.
    pub text: String,
    /// None for scales.
    pub meaning: Option<Bilingual>,
}

/// A question of the table.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Evidence {
    /// As rows have it, such as `E_91`, or `fievre` in a table of French names.
    pub code: String,
    pub question: Bilingual,
    pub evidence_type: EvidenceType,
    pub is_antecedent: bool,
    /// The evidence whose details this one asks for: its position in the table.
    pub parent: Option<usize>,
    pub values: Vec<EvidenceValue>,
    /// The value that says no, as text; none for binary ones.
    pub default: Option<String>,
}

impl Evidence {
    /// Whether its values are numbers.
    pub fn is_scale(&self) -> bool {
        self.evidence_type != EvidenceType::Binary && self.values.iter().all(|value| value.meaning.is_none())
    }
}

/// A disease of the table.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Condition {
    /// `condition_name`
    pub name: String,
    pub names: Bilingual,
    pub code: Code,
    /// 1 (most severe) to 5.
    pub severity: Option<u32>,
}

/// Both tables of one release.
#[derive(Clone, Debug)]
pub struct Tables {
    /// In the order of the file.
    pub evidences: Vec<Evidence>,
    pub conditions: Vec<Condition>,
    /// Files, for messages.
    pub evidences_file: String,
    pub conditions_file: String,
}

/// A JSON object in the order of its file; a key that stands twice is an error.
struct Ordered<T>(Vec<(String, T)>);

impl<T> Default for Ordered<T> {
    fn default() -> Self {
        Self(Vec::new())
    }
}

impl<'de, T: Deserialize<'de>> Deserialize<'de> for Ordered<T> {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        struct OrderedVisitor<T>(PhantomData<T>);
        impl<'de, T: Deserialize<'de>> Visitor<'de> for OrderedVisitor<T> {
            type Value = Ordered<T>;

            fn expecting(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
                formatter.write_str("an object")
            }

            fn visit_map<A: MapAccess<'de>>(self, mut map: A) -> Result<Ordered<T>, A::Error> {
                let (mut entries, mut seen) = (Vec::new(), BTreeSet::new());
                while let Some(key) = map.next_key::<String>()? {
                    if !seen.insert(key.clone()) {
                        return Err(A::Error::custom(format!("the key `{key}` stands twice")));
                    }
                    entries.push((key, map.next_value()?));
                }
                Ok(Ordered(entries))
            }
        }
        deserializer.deserialize_map(OrderedVisitor(PhantomData))
    }
}

#[derive(Deserialize)]
struct EvidenceEntry {
    name: String,
    code_question: String,
    question_fr: String,
    question_en: String,
    is_antecedent: bool,
    default_value: Value,
    #[serde(rename = "possible-values")]
    possible_values: Vec<Value>,
    value_meaning: Ordered<Meaning>,
    data_type: String,
}

#[derive(Deserialize)]
struct Meaning {
    fr: String,
    en: String,
}

#[derive(Deserialize)]
struct ConditionEntry {
    condition_name: String,
    #[serde(rename = "cond-name-fr")]
    name_fr: String,
    #[serde(rename = "cond-name-eng")]
    name_eng: String,
    #[serde(rename = "icd10-id", default)]
    icd10: String,
    symptoms: Ordered<Value>,
    antecedents: Ordered<Value>,
    severity: Option<u32>,
}

/// A value of the table as text: rows have texts only.
fn plain(value: &Value) -> Option<String> {
    match value {
        Value::String(text) => Some(text.clone()),
        Value::Number(number) if number.is_i64() || number.is_u64() => Some(number.to_string()),
        _ => None,
    }
}

fn parse_json<T: for<'de> Deserialize<'de>>(file: &str, bytes: &[u8]) -> anyhow::Result<Ordered<T>> {
    let bytes = bytes.strip_prefix(b"\xef\xbb\xbf").unwrap_or(bytes);
    serde_json::from_slice(bytes).map_err(|error| input(format!("{file}: {error}")))
}

impl Tables {
    /// Reads both tables.
    ///
    /// # Errors
    /// Every difference from the form of the release; the message has file and key.
    pub fn parse(evidences: (&str, &[u8]), conditions: (&str, &[u8]), codes: &Codes) -> anyhow::Result<Self> {
        let (evidences_file, conditions_file) = (evidences.0.to_owned(), conditions.0.to_owned());
        let evidences = read_evidences(evidences.0, evidences.1)?;
        let conditions = read_conditions(conditions.0, conditions.1, &evidences, codes)?;
        Ok(Self { evidences, conditions, evidences_file, conditions_file })
    }
}

fn read_evidences(file: &str, bytes: &[u8]) -> anyhow::Result<Vec<Evidence>> {
    let Ordered(entries) = parse_json::<EvidenceEntry>(file, bytes)?;
    if entries.is_empty() || entries.len() > usize::from(u16::MAX) {
        return Err(input(format!("{file}: there are {} evidences", entries.len())));
    }
    let positions: BTreeMap<String, usize> =
        entries.iter().enumerate().map(|(position, (key, _))| (key.clone(), position)).collect();
    let mut evidences = Vec::with_capacity(entries.len());
    for (position, (key, entry)) in entries.iter().enumerate() {
        let wrong = |what: String| input(format!("{file}: `{key}`: {what}"));
        if entry.name != *key {
            return Err(wrong(format!("name is `{}`, not its key", entry.name)));
        }
        if key.is_empty() || key.contains("_@_") {
            return Err(wrong("the name must not be empty or hold `_@_`".to_owned()));
        }
        let evidence_type = match entry.data_type.as_str() {
            "B" => EvidenceType::Binary,
            "C" => EvidenceType::Categorical,
            "M" => EvidenceType::MultiChoice,
            other => return Err(wrong(format!("data_type is `{other}`, not B, C or M"))),
        };
        let parent = positions.get(&entry.code_question).copied();
        if parent.is_none() && evidence_type != EvidenceType::Binary {
            return Err(wrong(format!("code_question `{}` is no evidence of the table", entry.code_question)));
        }
        let (values, default) = if evidence_type == EvidenceType::Binary {
            if !entry.possible_values.is_empty() {
                return Err(wrong("a binary evidence has no possible-values".to_owned()));
            }
            (Vec::new(), None)
        } else {
            let values = read_values(entry).map_err(wrong)?;
            let default =
                plain(&entry.default_value).filter(|default| values.iter().any(|value| value.text == *default));
            let default = default.ok_or_else(|| {
                wrong(format!("default_value {} is none of the possible-values", entry.default_value))
            })?;
            (values, Some(default))
        };
        evidences.push(Evidence {
            code: key.clone(),
            question: Bilingual { english: entry.question_en.clone(), french: entry.question_fr.clone() },
            evidence_type,
            is_antecedent: entry.is_antecedent,
            parent: parent.filter(|parent| *parent != position),
            values,
            default,
        });
    }
    for evidence in &evidences {
        let parent = evidence.parent.and_then(|parent| evidences.get(parent));
        if let Some(parent) = parent.filter(|parent| parent.parent.is_some()) {
            let message = format!("code_question `{}` is a part of another group itself", parent.code);
            return Err(input(format!("{file}: `{}`: {message}", evidence.code)));
        }
    }
    Ok(evidences)
}

fn read_values(entry: &EvidenceEntry) -> Result<Vec<EvidenceValue>, String> {
    let mut values: Vec<EvidenceValue> = Vec::with_capacity(entry.possible_values.len());
    let meanings: BTreeMap<&str, &Meaning> =
        entry.value_meaning.0.iter().map(|(value, meaning)| (value.as_str(), meaning)).collect();
    for value in &entry.possible_values {
        let text = plain(value).ok_or_else(|| format!("the possible value {value} is no text and no whole number"))?;
        if values.iter().any(|earlier| earlier.text == text) {
            return Err(format!("the possible value `{text}` stands twice"));
        }
        let meaning = match meanings.get(text.as_str()) {
            Some(meaning) => Some(Bilingual { english: meaning.en.clone(), french: meaning.fr.clone() }),
            None if meanings.is_empty() && value.is_number() => None,
            None => return Err(format!("value_meaning does not say what `{text}` means")),
        };
        values.push(EvidenceValue { text, meaning });
    }
    if let Some(more) = meanings.keys().find(|value| !values.iter().any(|known| known.text == **value)) {
        return Err(format!("value_meaning has `{more}`, which is none of the possible-values"));
    }
    Ok(values)
}

fn read_conditions(file: &str, bytes: &[u8], evidences: &[Evidence], codes: &Codes) -> anyhow::Result<Vec<Condition>> {
    let Ordered(entries) = parse_json::<ConditionEntry>(file, bytes)?;
    if entries.is_empty() || entries.len() > usize::from(u16::MAX) {
        return Err(input(format!("{file}: there are {} conditions", entries.len())));
    }
    let known: BTreeSet<&str> = evidences.iter().map(|evidence| evidence.code.as_str()).collect();
    let mut names = BTreeSet::new();
    let mut conditions = Vec::with_capacity(entries.len());
    for (key, entry) in entries {
        let wrong = |what: String| input(format!("{file}: `{key}`: {what}"));
        if entry.condition_name.is_empty() || !names.insert(entry.condition_name.clone()) {
            return Err(wrong(format!("the condition_name `{}` is empty or stands twice", entry.condition_name)));
        }
        let listed = entry.symptoms.0.iter().chain(&entry.antecedents.0).map(|(code, _)| code.as_str());
        if let Some(unknown) = listed.into_iter().find(|code| !known.contains(code)) {
            return Err(wrong(format!("the symptom or antecedent `{unknown}` is no evidence of the table")));
        }
        if let Some(severity) = entry.severity.filter(|severity| !(1..=5).contains(severity)) {
            return Err(wrong(format!("severity is {severity}, not 1 to 5")));
        }
        conditions.push(Condition {
            code: codes.of_condition(file, &entry.condition_name, &entry.icd10)?,
            name: entry.condition_name,
            names: Bilingual { english: entry.name_eng, french: entry.name_fr },
            severity: entry.severity,
        });
    }
    Ok(conditions)
}
