//! Reading reference and extractor records: JSONL with offsets or with text, and CSV.
//!
//! JSONL, one object a line, of either kind:
//!
//! ```text
//! {"reference_id":"m1","question_sha256":"…","split":"tuning","values":[{"slot":"Symptom-Name","start":10,"end":15}]}
//! {"case_id":"c1","extractor":"gpt","record":{"Symptom-Name":"fever, dry cough","Habit-Wine":[],"Personal-Age":"NA"}}
//! ```
//!
//! Offsets count Unicode scalar values of the stem, the end excluded. The form of a record with text is that of
//! MedRoundsQA, appendix E.4; its slots may also stand beside the key instead of under `record`. `"NA"`, `""`, `[]` and
//! `null` all say that the slot has no value.
//!
//! CSV has a header: a key column, any slots, and `split` if there are splits. It is UTF-8, with or without a
//! byte-order mark.

use std::collections::{BTreeMap, HashSet};
use std::io::{self, BufRead, Read};

use serde::Deserialize;
use sha2::{Digest, Sha256};

pub use super::csv_records::read_csv;
use super::json::{Node, without_line};
use super::{CaseKey, CaseSlots, RecordSet, Split, SplitFilter};
use crate::record::slots::Slot;

/// The longest line of JSONL and the longest record of CSV, in bytes. Longer ones are refused before they are held.
pub const MAX_LINE_BYTES: usize = 1 << 20;

/// The most characters that the values of one slot have together: comparing two texts takes time with the product of
/// their lengths.
pub const MAX_SLOT_CHARS: usize = 20_000;

/// The longest key, in characters.
const MAX_KEY_CHARS: usize = 200;

/// The names under which a record states its key, the first of them being the one a case is listed by.
pub(super) const KEYS: [&str; 3] = ["question_sha256", "case_id", "record_id"];

/// What a file is called and which of its records are wanted.
#[derive(Clone, Copy, Debug)]
pub struct Source<'a> {
    /// The name of the file, for messages.
    pub file: &'a str,
    /// The name of the set, where records do not name their extractor.
    pub name: &'a str,
    /// The records to read.
    pub split: SplitFilter,
}

/// What is wrong with a file, where, and what to do about it.
#[derive(Debug, thiserror::Error, PartialEq, Eq)]
#[error("{file}{}: {problem}", line.map(|line| format!(", line {line}")).unwrap_or_default())]
pub struct ReadError {
    /// The file, as it was called by the caller.
    pub file: String,
    /// The line, from 1; none if the fault is of the whole file.
    pub line: Option<u64>,
    /// The fault.
    pub problem: Problem,
}

/// A fault in a file of records.
#[derive(Debug, thiserror::Error, PartialEq, Eq)]
#[expect(missing_docs, reason = "the messages say what each of them is")]
pub enum Problem {
    #[error("cannot be read ({0}); check the file and its permissions")]
    Unreadable(String),
    #[error("longer than {MAX_LINE_BYTES} bytes; write one record a line and close every quote")]
    LongLine,
    #[error("not UTF-8; save the file as UTF-8")]
    NotUtf8,
    #[error("not a record in JSON: {0}")]
    Json(String),
    #[error("not a record in CSV: {0}")]
    Csv(String),
    #[error("{name:?} is no slot or field of a record; the nearest name is {nearest:?}")]
    UnknownName { name: String, nearest: &'static str },
    #[error("{field:?} is {found}; {wanted}")]
    WrongKind { field: String, found: &'static str, wanted: &'static str },
    #[error("{0:?} stands in \"record\" and beside it; keep one of them")]
    SlotTwice(&'static str),
    #[error("the values of {slot} have more than {MAX_SLOT_CHARS} characters; give phrases of the text")]
    LongSlot { slot: &'static str },
    #[error("no key; give question_sha256, case_id or record_id")]
    NoKey,
    #[error("{0:?} is no SHA-256; give the 64 hex digits of the question's stem")]
    BadHash(String),
    #[error("the key in {0} has more than {MAX_KEY_CHARS} characters; give an id")]
    LongKey(&'static str),
    #[error("{0:?} is no split; write tuning or held_out")]
    BadSplit(String),
    #[error("the case {0:?} stands in an earlier line; keep one record for each case and extractor")]
    CaseTwice(String),
    #[error("no question with the SHA-256 {0}; give the raw files that hold it")]
    NoStem(String),
    #[error("the stem found for the SHA-256 {0} hashes to {1}; look questions up by the hash of their raw stem")]
    WrongStem(String, String),
    #[error(
        "{slot} from {start} to {end} is no range in a stem of {n_chars} characters; count Unicode scalar values from 0, the end excluded"
    )]
    BadRange { slot: &'static str, start: u64, end: u64, n_chars: usize },
    #[error(
        "{slot} at {start} does not come after the one at {before}; list the values of a slot in the order of the text, each once"
    )]
    Order { slot: &'static str, start: u64, before: u64 },
    #[error("{slot} from {start} to {end} is {found:?} in the stem, not {stated:?}; correct the offsets or the text")]
    OtherText { slot: &'static str, start: u64, end: u64, found: String, stated: String },
    #[error("no records to compare; check the file and the split")]
    NoRecords,
}

/// Reads JSONL of either kind. Sets come in the order of their names: one for each `extractor` stated, and one called
/// as `source` says for records that state none.
///
/// `stem_of` gives the raw stem with a SHA-256; it is asked for records with offsets only, and not for those of a split
/// that is not wanted.
///
/// # Errors
/// The first fault of the file. Nothing is skipped.
pub fn read_jsonl(
    mut reader: impl BufRead,
    source: Source<'_>,
    stem_of: &dyn Fn(&str) -> Option<String>,
) -> Result<Vec<RecordSet>, ReadError> {
    let mut sets = Sets::default();
    let mut line = Vec::new();
    for number in 1.. {
        let fault = |problem| source.fault(Some(number), problem);
        line.clear();
        let limit = MAX_LINE_BYTES as u64 + 1;
        let n_bytes =
            reader.by_ref().take(limit).read_until(b'\n', &mut line).map_err(|error| fault(io_fault(&error)))?;
        if n_bytes == 0 {
            break;
        }
        if line.len() > MAX_LINE_BYTES {
            return Err(fault(Problem::LongLine));
        }
        let text = std::str::from_utf8(&line).map_err(|_| fault(Problem::NotUtf8))?;
        let text = if number == 1 { text.trim_start_matches('\u{feff}') } else { text };
        if !text.trim().is_empty() {
            let row = json_row(text, source, stem_of).map_err(fault)?;
            sets.add(row, source).map_err(fault)?;
        }
    }
    sets.finish(source)
}

impl Source<'_> {
    pub(super) fn fault(&self, line: Option<u64>, problem: Problem) -> ReadError {
        ReadError { file: self.file.to_owned(), line, problem }
    }
}

/// One record as it was read. The slots are made only if it is wanted.
pub(super) struct Row {
    pub(super) keys: Vec<CaseKey>,
    pub(super) split: Option<Split>,
    pub(super) extractor: Option<String>,
    pub(super) slots: CaseSlots,
}

/// The sets of one file, and every key of it with those of splits that are not wanted.
#[derive(Default)]
pub(super) struct Sets {
    by_name: BTreeMap<String, RecordSet>,
    seen: HashSet<(String, CaseKey)>,
}

impl Sets {
    pub(super) fn add(&mut self, row: Row, source: Source<'_>) -> Result<(), Problem> {
        let name = row.extractor.unwrap_or_else(|| source.name.to_owned());
        let mut own_keys = row.keys.clone();
        own_keys.sort();
        own_keys.dedup();
        for key in own_keys {
            if !self.seen.insert((name.clone(), key.clone())) {
                return Err(Problem::CaseTwice(shown(key.as_str())));
            }
        }
        if source.split.admits(row.split) {
            let set = self.by_name.entry(name).or_insert_with_key(|name| RecordSet::new(name));
            set.insert(&row.keys, row.slots).map_err(|key| Problem::CaseTwice(shown(key.as_str())))?;
        }
        Ok(())
    }

    pub(super) fn finish(self, source: Source<'_>) -> Result<Vec<RecordSet>, ReadError> {
        if self.by_name.is_empty() {
            return Err(source.fault(None, Problem::NoRecords));
        }
        Ok(self.by_name.into_values().collect())
    }
}

/// A line of references with offsets.
#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct OffsetLine {
    reference_id: String,
    question_sha256: String,
    #[serde(default)]
    split: Option<String>,
    #[serde(default)]
    extractor: Option<String>,
    #[serde(default, rename = "specialty")]
    _specialty: Option<String>,
    values: Vec<OffsetValue>,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct OffsetValue {
    slot: String,
    start: u64,
    end: u64,
    /// What the range holds, if the file repeats it for its readers.
    #[serde(default)]
    text: Option<String>,
}

fn json_row(text: &str, source: Source<'_>, stem_of: &dyn Fn(&str) -> Option<String>) -> Result<Row, Problem> {
    match Node::parse(text).map_err(Problem::Json)? {
        Node::Object(fields) if fields.iter().any(|(name, _)| name == "values") => {
            let line = serde_json::from_str(text).map_err(|error| Problem::Json(without_line(&error)))?;
            offset_row(line, source, stem_of)
        }
        Node::Object(fields) => text_row(fields),
        other => Err(Problem::Json(format!("it is {}, not an object", other.kind()))),
    }
}

fn offset_row(line: OffsetLine, source: Source<'_>, stem_of: &dyn Fn(&str) -> Option<String>) -> Result<Row, Problem> {
    let hash = key_of("question_sha256", &line.question_sha256)?.ok_or(Problem::NoKey)?;
    let mut keys = vec![hash];
    keys.extend(key_of("reference_id", &line.reference_id)?);
    let split = split_of(line.split.as_deref().unwrap_or_default())?;
    let extractor = line.extractor.filter(|name| !name.trim().is_empty());
    let mut row = Row { keys, split, extractor, slots: CaseSlots::new() };
    if !source.split.admits(split) {
        return Ok(row);
    }
    // The hash was put first above.
    let hash = row.keys[0].as_str();
    let stem = stem_of(hash).ok_or_else(|| Problem::NoStem(hash.to_owned()))?;
    let found = sha256_hex(&stem);
    if found != hash {
        return Err(Problem::WrongStem(hash.to_owned(), found));
    }
    // Byte offsets of all characters and of the end, so that every range is two look-ups.
    let offsets: Vec<usize> = stem.char_indices().map(|(at, _)| at).chain([stem.len()]).collect();
    let mut last_start: BTreeMap<Slot, u64> = BTreeMap::new();
    for OffsetValue { slot, start, end, text } in line.values {
        let slot = slot_of(&slot)?;
        let name = slot.as_str();
        let at = |offset: u64| usize::try_from(offset).ok().and_then(|offset| offsets.get(offset)).copied();
        let range = at(start).zip(at(end)).filter(|(from, to)| from < to);
        let value = range.and_then(|(from, to)| stem.get(from..to)).filter(|value| !value.trim().is_empty());
        let value =
            value.ok_or(Problem::BadRange { slot: name, start, end, n_chars: offsets.len().saturating_sub(1) })?;
        if let Some(before) = last_start.insert(slot, start).filter(|before| *before >= start) {
            return Err(Problem::Order { slot: name, start, before });
        }
        if let Some(stated) = text.filter(|stated| stated != value) {
            return Err(Problem::OtherText { slot: name, start, end, found: shown(value), stated: shown(&stated) });
        }
        row.slots.entry(slot).or_default().push(value.to_owned());
    }
    row.slots.iter().try_for_each(|(slot, values)| check_length(*slot, values))?;
    Ok(row)
}

fn text_row(fields: Vec<(String, Node)>) -> Result<Row, Problem> {
    let mut row = Row { keys: Vec::new(), split: None, extractor: None, slots: CaseSlots::new() };
    let mut keys: BTreeMap<usize, CaseKey> = BTreeMap::new();
    // The slots with those that are said to have no value.
    let mut seen = Vec::new();
    for (name, node) in fields {
        match (name.as_str(), node) {
            ("record", Node::Object(slots)) => {
                for (name, node) in slots {
                    take_slot(&name, node, &mut seen, &mut row.slots)?;
                }
            }
            ("record", other) => {
                return Err(Problem::WrongKind { field: name, found: other.kind(), wanted: "give an object of slots" });
            }
            ("split", node) => row.split = split_of(&plain_text("split", node)?)?,
            ("extractor", node) => {
                row.extractor = Some(plain_text("extractor", node)?).filter(|text| !text.is_empty());
            }
            (_, node) => match KEYS.iter().position(|key| *key == name) {
                Some(place) => {
                    keys.extend(key_of(KEYS[place], &plain_text(KEYS[place], node)?)?.map(|key| (place, key)));
                }
                None => take_slot(&name, node, &mut seen, &mut row.slots)?,
            },
        }
    }
    row.keys.extend(keys.into_values());
    if row.keys.is_empty() { Err(Problem::NoKey) } else { Ok(row) }
}

fn take_slot(name: &str, node: Node, seen: &mut Vec<Slot>, slots: &mut CaseSlots) -> Result<(), Problem> {
    let slot = slot_of(name)?;
    if seen.contains(&slot) {
        return Err(Problem::SlotTwice(slot.as_str()));
    }
    seen.push(slot);
    let nodes = if let Node::List(list) = node { list } else { vec![node] };
    let mut values = Vec::new();
    for node in nodes {
        match node {
            Node::Null => {}
            Node::Text(text) | Node::Integer(text) => values.extend(value_of(&text)),
            other => {
                let wanted = "give a string, a list of strings or null";
                return Err(Problem::WrongKind { field: shown(name), found: other.kind(), wanted });
            }
        }
    }
    put(slot, values, slots)
}

fn plain_text(field: &str, node: Node) -> Result<String, Problem> {
    match node {
        Node::Text(text) | Node::Integer(text) => Ok(text.trim().to_owned()),
        Node::Null => Ok(String::new()),
        other => {
            Err(Problem::WrongKind { field: field.to_owned(), found: other.kind(), wanted: "give a string or null" })
        }
    }
}

pub(super) fn io_fault(error: &io::Error) -> Problem {
    Problem::Unreadable(error.to_string())
}

/// A key, or none if it is left empty.
pub(super) fn key_of(name: &'static str, text: &str) -> Result<Option<CaseKey>, Problem> {
    let text = text.trim();
    if text.is_empty() {
        return Ok(None);
    }
    if name == "question_sha256" {
        let is_hash = text.len() == 64 && text.bytes().all(|byte| byte.is_ascii_hexdigit());
        let hash = is_hash.then(|| text.to_ascii_lowercase());
        return hash.map(|hash| Some(CaseKey::new(hash))).ok_or_else(|| Problem::BadHash(shown(text)));
    }
    if text.chars().count() > MAX_KEY_CHARS { Err(Problem::LongKey(name)) } else { Ok(Some(CaseKey::new(text))) }
}

pub(super) fn split_of(text: &str) -> Result<Option<Split>, Problem> {
    match text {
        "" => Ok(None),
        "tuning" => Ok(Some(Split::Tuning)),
        "held_out" => Ok(Some(Split::HeldOut)),
        _ => Err(Problem::BadSplit(shown(text))),
    }
}

/// The slot of a name; the error names the slot or field that is spelled most like it.
pub(super) fn slot_of(name: &str) -> Result<Slot, Problem> {
    if let Some(slot) = Slot::ALL.into_iter().find(|slot| slot.as_str() == name) {
        return Ok(slot);
    }
    let name = shown(name);
    let lower = name.to_lowercase().replace([' ', '_'], "-");
    let likeness =
        |valid: &str| strsim::normalized_damerau_levenshtein(&lower, &valid.to_lowercase().replace('_', "-"));
    let valid = Slot::ALL.into_iter().map(Slot::as_str).chain(KEYS).chain(["record", "split", "extractor"]);
    let nearest = valid.max_by(|first, second| likeness(first).total_cmp(&likeness(second)));
    Err(Problem::UnknownName { name, nearest: nearest.unwrap_or_default() })
}

/// A value, or none where the text says that there is none.
pub(super) fn value_of(text: &str) -> Option<String> {
    let text = text.trim();
    (!text.is_empty() && text != "NA").then(|| text.to_owned())
}

pub(super) fn put(slot: Slot, values: Vec<String>, slots: &mut CaseSlots) -> Result<(), Problem> {
    check_length(slot, &values)?;
    if !values.is_empty() {
        slots.insert(slot, values);
    }
    Ok(())
}

fn check_length(slot: Slot, values: &[String]) -> Result<(), Problem> {
    let n_chars: usize = values.iter().map(|value| value.chars().count()).sum();
    if n_chars > MAX_SLOT_CHARS { Err(Problem::LongSlot { slot: slot.as_str() }) } else { Ok(()) }
}

/// Text of a file as far as a message shows it.
fn shown(text: &str) -> String {
    text.chars().take(80).collect()
}

fn sha256_hex(text: &str) -> String {
    Sha256::digest(text.as_bytes()).iter().map(|byte| format!("{byte:02x}")).collect()
}
