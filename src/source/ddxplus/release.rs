//! Looking up the tokens of a row: one hash table for all tokens of a release, from text to evidence and value.

use super::french::{FrenchNames, fold};
use super::literal::{self, Bounds, LiteralError};
use super::rows::PatientRow;
use super::tables::{Bilingual, EvidenceType, Language, Tables};
use super::wording::Role;
use super::{Resources, RowLimits, quarantine};
use crate::record::Hash;
use crate::record::RecordId;
use crate::record::vector::{Descriptor, Finding, FindingBasis, FindingValue, Negation, Sex};
use crate::source::RowFault;
use std::collections::{BTreeMap, HashMap};
use std::hash::{BuildHasherDefault, Hasher};

/// Between the evidence and its value.
const VALUE_MARK: &str = "_@_";

/// A release that is ready for its rows.
#[derive(Debug)]
pub struct Release {
    pub language: Language,
    pub(super) evidences: Vec<PreparedEvidence>,
    pub(super) conditions: Vec<PreparedCondition>,
    names: ConditionNames,
    /// Token → evidence and value.
    tokens: WordMap<(u16, u16)>,
    /// Name of an evidence → its position.
    codes: WordMap<u16>,
    /// Evidence and folded French value → value; none where several values fold alike.
    folded: BTreeMap<(u16, String), Option<u16>>,
    n_tokens: usize,
    bounds: Bounds,
    /// Questions of the release's language without a statement.
    pub without_statement: Vec<String>,
}

/// An evidence with everything that a record takes of it.
#[derive(Debug)]
pub struct PreparedEvidence {
    pub(super) position: u16,
    pub(super) evidence_type: EvidenceType,
    pub(super) is_antecedent: bool,
    pub(super) parent: Option<u16>,
    pub(super) role: Role,
    /// Whether a closed world denies it where it is not listed: no detail of another one, no scale.
    pub(super) can_be_absent: bool,
    pub(super) family_member: Option<String>,
    /// With the relative, where it is about one.
    pub(super) full_name: String,
    /// As a man says it, and as a woman.
    pub(super) finding: [Finding; 2],
    pub(super) values: Vec<PreparedValue>,
    /// Number of its first token.
    first_token: usize,
}

impl PreparedEvidence {
    /// As rows have it.
    pub fn code(&self) -> &str {
        let [male, _] = &self.finding;
        male.code.as_deref().unwrap_or_default()
    }

    /// With the relative, where it is about one.
    pub fn name(&self) -> &str {
        &self.full_name
    }

    /// What a patient says: a man, and a woman.
    pub fn statements(&self) -> (Option<&str>, Option<&str>) {
        let [male, female] = &self.finding;
        (male.statement.as_deref(), female.statement.as_deref())
    }
}

/// A value with everything that a record takes of it.
#[derive(Debug)]
pub struct PreparedValue {
    /// It says that the evidence is not there.
    pub(super) is_no: bool,
    pub(super) number: Option<u32>,
    pub(super) descriptor: Descriptor,
    pub(super) value: FindingValue,
}

/// A condition with everything that a record takes of it.
#[derive(Debug)]
pub struct PreparedCondition {
    pub(super) label: String,
    pub(super) label_english: String,
    pub(super) code: super::codes::Code,
    pub(super) severity: Option<u32>,
}

/// A condition as a row names it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct Named {
    /// None where several conditions have the name.
    condition: Option<u16>,
    /// The language whose name it is; none where it is that of both.
    language: Option<Language>,
}

/// Names of conditions: `condition_name` first, then the names in both languages.
#[derive(Debug)]
pub struct ConditionNames {
    by_name: WordMap<Named>,
}

impl ConditionNames {
    pub fn new(tables: &Tables) -> Self {
        let language = |names: &Bilingual, name: &str| match (names.english == name, names.french == name) {
            (true, false) => Some(Language::English),
            (false, true) => Some(Language::French),
            _ => None,
        };
        let mut by_name = WordMap::default();
        for (condition, position) in tables.conditions.iter().zip(0u16..) {
            let named = Named { condition: Some(position), language: language(&condition.names, &condition.name) };
            by_name.insert(condition.name.clone(), named);
        }
        let mut others: BTreeMap<&str, Named> = BTreeMap::new();
        for (condition, position) in tables.conditions.iter().zip(0u16..) {
            for name in [&condition.names.english, &condition.names.french] {
                let named = Named { condition: Some(position), language: language(&condition.names, name) };
                let entry = others.entry(name).or_insert(named);
                if entry.condition != Some(position) {
                    entry.condition = None;
                }
            }
        }
        for (name, named) in others {
            if !name.is_empty() && !by_name.contains_key(name) {
                by_name.insert(name.to_owned(), named);
            }
        }
        Self { by_name }
    }

    /// The language that a name of a condition belongs to; none where it tells nothing.
    pub fn language(&self, name: &str) -> Option<Language> {
        self.by_name.get(name).and_then(|named| named.language)
    }

    fn position(&self, name: &str) -> Result<u16, RowFault> {
        match self.by_name.get(name) {
            Some(Named { condition: Some(position), .. }) => Ok(*position),
            Some(_) => {
                let detail = format!("`{name}` is the name of several conditions of the table");
                Err(quarantine("unknown_pathology", detail))
            }
            None => Err(quarantine("unknown_pathology", format!("`{name}` is no condition of the table"))),
        }
    }
}

/// What a row says, by reference into its release.
#[derive(Clone, Debug)]
pub struct LookedUp<'t> {
    /// Years, 0 to 130.
    pub age: u8,
    pub sex: Sex,
    pub pathology: &'t PreparedCondition,
    pub initial: &'t PreparedEvidence,
    /// In the order of the row, those that say no among them; equal tokens once.
    pub listed: Vec<Listed<'t>>,
    /// In the order of the row.
    pub differential: Vec<(&'t PreparedCondition, f64)>,
    pub has_repeated_token: bool,
    pub is_pathology_in_differential: bool,
    /// Of the differential.
    pub probability: f64,
}

/// A token of a row.
#[derive(Clone, Copy, Debug)]
pub struct Listed<'t> {
    pub evidence: &'t PreparedEvidence,
    pub value: Option<&'t PreparedValue>,
}

impl Listed<'_> {
    /// Whether the token says that the evidence is there.
    pub fn is_present(&self) -> bool {
        self.value.is_none_or(|value| !value.is_no)
    }
}

const NO_VALUE: u16 = u16::MAX;

impl Release {
    /// Prepares a release.
    pub fn new(
        tables: Tables,
        names: ConditionNames,
        language: Language,
        resources: &Resources,
        limits: RowLimits,
    ) -> Self {
        let mut release = Self {
            language,
            evidences: Vec::with_capacity(tables.evidences.len()),
            conditions: Vec::new(),
            names,
            tokens: WordMap::default(),
            codes: WordMap::default(),
            folded: BTreeMap::new(),
            n_tokens: 0,
            bounds: Bounds { max_depth: 4, max_items: limits.max_list_items },
            without_statement: Vec::new(),
        };
        for condition in &tables.conditions {
            let names = &condition.names;
            let of = |name: &str| if name.is_empty() { condition.name.clone() } else { name.to_owned() };
            release.conditions.push(PreparedCondition {
                label: of(names.get(language)),
                label_english: of(&names.english),
                code: condition.code.clone(),
                severity: condition.severity,
            });
        }
        let aliases: BTreeMap<&str, &str> = match language {
            Language::English => BTreeMap::new(),
            Language::French => {
                resources.french.evidences.iter().map(|(name, code)| (code.as_str(), name.as_str())).collect()
            }
        };
        for (evidence, position) in tables.evidences.iter().zip(0u16..) {
            let wording = resources.wording.wording(evidence.question.get(language), language);
            if wording.statement.is_none() && evidence.parent.is_none() {
                release.without_statement.push(evidence.question.get(language).to_owned());
            }
            let finding = |statement: Option<String>| Finding {
                name: wording.name.clone(),
                code: Some(evidence.code.clone()),
                negation: Negation::Present,
                basis: FindingBasis::Recorded,
                statement,
                ..Finding::default()
            };
            let values = evidence.values.iter().map(|value| {
                let meaning = value.meaning.as_ref().map(|meaning| meaning.get(language));
                let is_hidden = value.meaning.as_ref().is_some_and(|meaning| {
                    resources.wording.is_hidden(&meaning.english) || resources.wording.is_hidden(&meaning.french)
                });
                let shown = meaning.filter(|_| !is_hidden).map(|meaning| resources.wording.meaning(meaning, language));
                PreparedValue {
                    is_no: is_hidden || evidence.default.as_ref() == Some(&value.text),
                    number: if value.meaning.is_none() { value.text.parse().ok() } else { None },
                    descriptor: Descriptor {
                        name: shown.clone().unwrap_or_else(|| value.text.clone()),
                        code: Some(value.text.clone()),
                        cui: None,
                    },
                    value: FindingValue {
                        name: wording.name.clone(),
                        code: Some(evidence.code.clone()),
                        value: value.text.clone(),
                        meaning: shown,
                        cui: None,
                    },
                }
            });
            let prepared = PreparedEvidence {
                position,
                evidence_type: evidence.evidence_type,
                is_antecedent: evidence.is_antecedent,
                parent: evidence.parent.and_then(|parent| u16::try_from(parent).ok()),
                role: if evidence.parent.is_some() { resources.wording.role(&evidence.question) } else { Role::Values },
                can_be_absent: evidence.parent.is_none() && !evidence.is_scale(),
                full_name: resources.wording.full_name(&wording.name, &evidence.question, language),
                family_member: resources.wording.family_member(&evidence.question).map(str::to_owned),
                finding: [finding(wording.statement.clone()), finding(wording.statement_female.clone())],
                values: values.collect(),
                first_token: release.n_tokens,
            };
            release.n_tokens += 1 + prepared.values.len();
            release.evidences.push(prepared);
            release.add_tokens(&evidence.code, position);
            let alias = aliases.get(evidence.code.as_str()).copied();
            let is_own = |name: &&str| tables.evidences.iter().any(|evidence| evidence.code == **name);
            if let Some(alias) = alias.filter(|alias| !is_own(alias)) {
                release.add_tokens(alias, position);
            }
            if language == Language::French {
                release.add_french(evidence, position, alias, &resources.french);
            }
        }
        release
    }

    /// Tokens with the values as the table writes them.
    fn add_tokens(&mut self, name: &str, position: u16) {
        self.codes.insert(name.to_owned(), position);
        let Some(evidence) = self.evidences.get(usize::from(position)) else { return };
        if evidence.evidence_type == EvidenceType::Binary {
            self.tokens.insert(name.to_owned(), (position, NO_VALUE));
        }
        for (value, number) in evidence.values.iter().zip(0u16..) {
            self.tokens.insert(format!("{name}{VALUE_MARK}{}", value.value.value), (position, number));
        }
    }

    /// Tokens with French values: their meanings folded, and what the data file says.
    fn add_french(
        &mut self,
        evidence: &super::tables::Evidence,
        position: u16,
        alias: Option<&str>,
        french: &FrenchNames,
    ) {
        for (value, number) in evidence.values.iter().zip(0u16..) {
            let Some(meaning) = &value.meaning else { continue };
            let entry = self.folded.entry((position, fold(&meaning.french))).or_insert(Some(number));
            if *entry != Some(number) {
                *entry = None;
            }
        }
        let Some(alias) = alias else { return };
        for (written, text) in french.values.get(&evidence.code).into_iter().flatten() {
            // A table of fewer values leaves the token unknown.
            let number = evidence.values.iter().position(|value| value.text == *text);
            let Some(number) = number.and_then(|number| u16::try_from(number).ok()) else { continue };
            self.tokens.insert(format!("{alias}{VALUE_MARK}{written}"), (position, number));
        }
        // The usual spelling, so that most tokens need no folding.
        for value in &evidence.values {
            let Some(meaning) = &value.meaning else { continue };
            let Some(Some(number)) = self.folded.get(&(position, fold(&meaning.french))) else { continue };
            let spelling = spelling(&meaning.french);
            self.tokens.entry(format!("{alias}{VALUE_MARK}{spelling}")).or_insert((position, *number));
        }
    }

    /// Evidence and value of a token.
    fn token(&self, token: &str) -> Result<(u16, u16), RowFault> {
        match self.tokens.get(token) {
            Some(found) => Ok(*found),
            None => self.unusual_token(token),
        }
    }

    /// A token that is not spelled as usual, or is unknown.
    #[cold]
    fn unusual_token(&self, token: &str) -> Result<(u16, u16), RowFault> {
        let (name, value) = match token.split_once(VALUE_MARK) {
            Some((name, value)) => (name, Some(value)),
            None => (token, None),
        };
        let position = self.codes.get(name).copied();
        let evidence = position.and_then(|position| self.evidences.get(usize::from(position)));
        let (Some(position), Some(evidence)) = (position, evidence) else {
            let of = value.map(|_| format!("`{token}`: ")).unwrap_or_default();
            return Err(quarantine("unknown_evidence", format!("{of}`{name}` is no evidence of the table")));
        };
        let Some(value) = value else {
            return Err(quarantine(
                "missing_value",
                format!("`{token}` has no value, though its evidence is not binary"),
            ));
        };
        if evidence.evidence_type == EvidenceType::Binary {
            return Err(quarantine("value_of_binary", format!("`{token}` has a value, though its evidence is binary")));
        }
        match self.folded.get(&(position, fold(value))) {
            Some(Some(number)) => Ok((position, *number)),
            Some(None) => {
                Err(quarantine("unknown_value", format!("`{token}`: several values of the table read like `{value}`")))
            }
            None => Err(quarantine("unknown_value", format!("`{token}`: `{value}` is no value of `{name}`"))),
        }
    }

    /// Looks up everything that a row says.
    pub fn look_up(&self, row: &PatientRow<'_>) -> Result<LookedUp<'_>, RowFault> {
        let age = age(&row.age)?;
        let sex = match row.sex.as_ref() {
            "M" => Sex::Male,
            "F" => Sex::Female,
            other => return Err(quarantine("invalid_sex", format!("SEX is `{other}`, not M or F"))),
        };
        let condition = |name: &str| -> Result<&PreparedCondition, RowFault> {
            let position = self.names.position(name)?;
            self.conditions
                .get(usize::from(position))
                .ok_or_else(|| quarantine("unknown_pathology", format!("`{name}` is no condition of the table")))
        };
        let pathology = condition(&row.pathology)?;

        let mut listed = Vec::with_capacity(32);
        let mut seen = vec![0u64; self.n_tokens / 64 + 1];
        let mut has_repeated_token = false;
        let mut fault = None;
        let read = literal::texts(&row.evidences, self.bounds, |token| {
            if fault.is_some() {
                return;
            }
            let (position, number) = match self.token(&token) {
                Ok(found) => found,
                Err(unknown) => {
                    fault = Some(unknown);
                    return;
                }
            };
            let Some(evidence) = self.evidences.get(usize::from(position)) else { return };
            let value = evidence.values.get(usize::from(number));
            let bit = evidence.first_token + value.map_or(0, |_| 1 + usize::from(number));
            if let Some(word) = seen.get_mut(bit / 64) {
                let mask = 1 << (bit % 64);
                if *word & mask != 0 {
                    has_repeated_token = true;
                    return;
                }
                *word |= mask;
            }
            listed.push(Listed { evidence, value });
        });
        read.map_err(|error| invalid("EVIDENCES", &error))?;
        if let Some(fault) = fault {
            return Err(fault);
        }
        let initial = self.initial(&row.initial_evidence, &listed)?;

        let mut differential = Vec::with_capacity(16);
        let (mut probability, mut is_pathology_in_differential) = (0.0, false);
        let mut fault = None;
        let read = literal::pairs(&row.differential, self.bounds, |name, number| {
            if fault.is_some() {
                return;
            }
            if !(0.0..=1.0).contains(&number) {
                fault = Some(quarantine("invalid_probability", format!("the probability of `{name}` is {number}")));
                return;
            }
            match condition(&name) {
                Ok(found) => {
                    is_pathology_in_differential |= std::ptr::eq(found, pathology);
                    probability += number;
                    differential.push((found, number));
                }
                Err(unknown) => fault = Some(unknown),
            }
        });
        read.map_err(|error| invalid("DIFFERENTIAL_DIAGNOSIS", &error))?;
        if let Some(fault) = fault {
            return Err(fault);
        }
        Ok(LookedUp {
            age,
            sex,
            pathology,
            initial,
            listed,
            differential,
            has_repeated_token,
            is_pathology_in_differential,
            probability,
        })
    }

    /// The evidence that the patient comes with: listed, and not with a value that says no.
    fn initial<'t>(&'t self, text: &str, listed: &[Listed<'_>]) -> Result<&'t PreparedEvidence, RowFault> {
        let position = match self.codes.get(text) {
            Some(position) => *position,
            None => self.token(text)?.0,
        };
        let evidence = self.evidences.get(usize::from(position));
        let evidence = evidence
            .filter(|_| listed.iter().any(|listed| listed.evidence.position == position && listed.is_present()));
        evidence.ok_or_else(|| {
            quarantine(
                "initial_not_listed",
                format!("INITIAL_EVIDENCE is `{text}`, which EVIDENCES do not have as present"),
            )
        })
    }

    /// The id of a row: from the texts of its fields and the language.
    pub fn identify(&self, source: &str, row: &PatientRow<'_>) -> RecordId {
        identify(source, row, self.language)
    }

    /// The language that a pathology belongs to, where it is not that of the release.
    pub fn other_language(&self, pathology: &str) -> Option<Language> {
        self.names.language(pathology).filter(|language| *language != self.language)
    }

    /// All evidences, in the order of the table.
    pub fn evidences(&self) -> &[PreparedEvidence] {
        &self.evidences
    }
}

/// The id of a row: from the canonical JSON (RFC 8785) of the texts of its fields and the language, as
/// [`RecordId::from_identity`] makes it.
pub fn identify(source: &str, row: &PatientRow<'_>, language: Language) -> RecordId {
    // Keys in their canonical order.
    let fields = [
        ("{\"age\":", row.age.as_ref()),
        (",\"differential\":", row.differential.as_ref()),
        (",\"evidences\":", row.evidences.as_ref()),
        (",\"initial_evidence\":", row.initial_evidence.as_ref()),
        (",\"language\":", language.code()),
        (",\"pathology\":", row.pathology.as_ref()),
        (",\"sex\":", row.sex.as_ref()),
    ];
    let mut json = Vec::with_capacity(160 + row.differential.len() + row.evidences.len());
    for (key, text) in fields {
        json.extend_from_slice(key.as_bytes());
        push_json_text(text, &mut json);
    }
    json.push(b'}');
    RecordId::from_raw_hash(source, &Hash::of(&json))
}

fn push_json_text(text: &str, out: &mut Vec<u8>) {
    out.push(b'"');
    let bytes = text.as_bytes();
    let is_plain = |byte: &u8| *byte >= 0x20 && *byte != b'"' && *byte != b'\\';
    if bytes.iter().all(is_plain) {
        out.extend_from_slice(bytes);
    } else {
        for byte in bytes {
            match byte {
                b'"' => out.extend_from_slice(b"\\\""),
                b'\\' => out.extend_from_slice(b"\\\\"),
                b'\n' => out.extend_from_slice(b"\\n"),
                b'\r' => out.extend_from_slice(b"\\r"),
                b'\t' => out.extend_from_slice(b"\\t"),
                8 => out.extend_from_slice(b"\\b"),
                12 => out.extend_from_slice(b"\\f"),
                0..0x20 => out.extend_from_slice(format!("\\u{byte:04x}").as_bytes()),
                _ => out.push(*byte),
            }
        }
    }
    out.push(b'"');
}

fn age(text: &str) -> Result<u8, RowFault> {
    let is_number = !text.is_empty() && text.bytes().all(|byte| byte.is_ascii_digit());
    let age = if is_number { text.parse().ok() } else { None };
    age.filter(|age| *age <= 130)
        .ok_or_else(|| quarantine("invalid_age", format!("AGE is `{text}`, not a whole number from 0 to 130")))
}

fn invalid(column: &str, error: &LiteralError) -> RowFault {
    quarantine("invalid_literal", format!("{column}, {error}"))
}

/// A French meaning as patient files write it: each run of anything but letters and digits as `_`.
fn spelling(meaning: &str) -> String {
    let mut text = String::with_capacity(meaning.len());
    for character in meaning.chars() {
        if character.is_alphanumeric() {
            text.push(character);
        } else if !text.ends_with('_') {
            text.push('_');
        }
    }
    text
}

type WordMap<T> = HashMap<String, T, BuildHasherDefault<WordHasher>>;

/// A fast hash for short words of a table; what is looked up cannot add to the table.
#[derive(Default)]
struct WordHasher(u64);

impl WordHasher {
    fn mix(&mut self, word: u64) {
        self.0 = (self.0.rotate_left(5) ^ word).wrapping_mul(0x517c_c1b7_2722_0a95);
    }
}

impl Hasher for WordHasher {
    fn write(&mut self, bytes: &[u8]) {
        let mut chunks = bytes.chunks_exact(8);
        for chunk in chunks.by_ref() {
            let mut word = [0u8; 8];
            word.copy_from_slice(chunk);
            self.mix(u64::from_le_bytes(word));
        }
        let rest = chunks.remainder();
        if !rest.is_empty() {
            let mut word = [0u8; 8];
            for (byte, from) in word.iter_mut().zip(rest) {
                *byte = *from;
            }
            self.mix(u64::from_le_bytes(word));
        }
    }

    fn write_u8(&mut self, byte: u8) {
        self.mix(u64::from(byte));
    }

    fn finish(&self) -> u64 {
        // The upper bits are the well mixed ones, and the table takes both ends.
        self.0 ^ (self.0 >> 32)
    }
}
