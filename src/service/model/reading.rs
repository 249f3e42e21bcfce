//! From the text that a language model answered to a JSON value that fits a JSON Schema, or a named reason why not.
//!
//! What stands around the value (a code fence, reasoning, prose) is set aside and two slips of notation are mended, each
//! of it reported. Nothing that was cut is ever closed, and nothing is chosen: two different objects that fit, or a key
//! that comes twice, are errors.

use crate::text::excerpt;
use crate::text::strict_json::{is_duplicate_key, parse_value};
use anyhow::{Context, bail};
use jsonschema::error::ValidationErrorKind;
use jsonschema::{PatternOptions, ValidationError, Validator};
use serde_json::Value;
use std::fmt;
use std::ops::Range;

/// The longest text that is read, in bytes.
pub const MAX_TEXT: usize = 4 << 20;
/// Characters of a report of schema problems.
const MAX_REPORT: usize = 300;
/// Characters of a value, a key or a pointer that are quoted.
const MAX_QUOTE: usize = 60;
/// Problems that a report lists.
const MAX_PROBLEMS: usize = 3;

/// A compiled JSON Schema. Patterns run in linear time; references stay inside the document.
#[derive(Clone, Debug)]
pub struct ReplySchema(Validator);

impl ReplySchema {
    /// An error if the schema is not one, or if a reference leaves the document.
    pub fn compile(schema: &Value) -> anyhow::Result<Self> {
        let mut open = vec![schema];
        while let Some(value) = open.pop() {
            match value {
                Value::Object(object) => {
                    for (key, value) in object {
                        match value {
                            Value::String(target) if key == "$ref" || key == "$dynamicRef" => {
                                if !target.starts_with('#') {
                                    bail!("the reply schema refers to {target}, outside of itself");
                                }
                            }
                            value => open.push(value),
                        }
                    }
                }
                Value::Array(items) => open.extend(items),
                _ => {}
            }
        }
        let options = jsonschema::options().offline().with_pattern_options(PatternOptions::regex());
        Ok(ReplySchema(options.build(schema).context("the reply schema")?))
    }

    /// The first problems, each with its JSON pointer: at most 300 characters, with at most 60 of each value quoted.
    pub fn check(&self, value: &Value) -> Result<(), String> {
        if self.fits(value) {
            return Ok(());
        }
        let problems: Vec<_> = self.0.iter_errors(value).take(MAX_PROBLEMS).map(|error| problem(&error)).collect();
        Err(excerpt(&problems.join("; "), MAX_REPORT))
    }

    fn fits(&self, value: &Value) -> bool {
        self.0.is_valid(value)
    }
}

fn problem(error: &ValidationError<'_>) -> String {
    let shown = match error.instance().as_ref() {
        Value::Object(_) => "the object".to_owned(),
        Value::Array(_) => "the list".to_owned(),
        scalar => excerpt(&scalar.to_string(), MAX_QUOTE),
    };
    let text = match error.kind() {
        ValidationErrorKind::AdditionalProperties { unexpected }
        | ValidationErrorKind::UnevaluatedProperties { unexpected } => {
            format!("keys that are not allowed: {}", excerpt(&unexpected.join(", "), MAX_QUOTE))
        }
        ValidationErrorKind::UnevaluatedItems { unexpected } => format!("{} items too many", unexpected.len()),
        ValidationErrorKind::PropertyNames { error } => {
            format!("a key is not allowed: {}", error.masked_with(excerpt(&error.instance().to_string(), MAX_QUOTE)))
        }
        _ => error.masked_with(shown).to_string(),
    };
    let place = excerpt(error.instance_path().as_str(), MAX_QUOTE);
    if place.is_empty() { text } else { format!("{place}: {text}") }
}

/// What had to be set aside or mended to read a reply.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, serde::Serialize, serde::Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Repair {
    /// A code fence around everything.
    Fence,
    /// Reasoning before the answer.
    ReasoningTags,
    /// Other text before, between or after.
    Prose,
    /// The same value stood there more than once.
    Copies,
    /// A comma before `}` or `]`.
    TrailingComma,
    /// A line break inside a string that was not escaped.
    RawNewline,
    /// A tab inside a string that was not escaped.
    RawTab,
}

impl Repair {
    pub fn as_str(self) -> &'static str {
        match self {
            Repair::Fence => "fence",
            Repair::ReasoningTags => "reasoning_tags",
            Repair::Prose => "prose",
            Repair::Copies => "copies",
            Repair::TrailingComma => "trailing_comma",
            Repair::RawNewline => "raw_newline",
            Repair::RawTab => "raw_tab",
        }
    }
}

/// A value that fits the schema. `repairs` is empty if the reply was that value and nothing else; none comes twice.
#[derive(Clone, Debug, PartialEq)]
pub struct Reading {
    pub value: Value,
    pub repairs: Vec<Repair>,
}

/// Why a reply has no value.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, serde::Serialize, serde::Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum ReadingErrorKind {
    /// White space, or nothing after the reasoning.
    Empty,
    /// More than [`MAX_TEXT`] bytes.
    TooLong,
    /// No object or list anywhere.
    NoJson,
    /// Something that begins like an object but is not JSON.
    InvalidJson,
    /// An object has one key twice.
    DuplicateKey,
    /// JSON, but not of the schema.
    SchemaMismatch,
    /// Two different values fit the schema.
    Ambiguous,
    /// The text ends inside a string, a list, an object or the reasoning.
    Unclosed,
    /// The text ends in a loop, inside something or without an answer.
    Repetition,
}

impl ReadingErrorKind {
    pub fn as_str(self) -> &'static str {
        match self {
            ReadingErrorKind::Empty => "empty",
            ReadingErrorKind::TooLong => "too_long",
            ReadingErrorKind::NoJson => "no_json",
            ReadingErrorKind::InvalidJson => "invalid_json",
            ReadingErrorKind::DuplicateKey => "duplicate_key",
            ReadingErrorKind::SchemaMismatch => "schema_mismatch",
            ReadingErrorKind::Ambiguous => "ambiguous",
            ReadingErrorKind::Unclosed => "unclosed",
            ReadingErrorKind::Repetition => "repetition",
        }
    }
}

#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("{}: {detail}", kind.as_str())]
pub struct ReadingError {
    pub kind: ReadingErrorKind,
    /// One line of at most 300 characters.
    pub detail: String,
}

impl ReadingError {
    fn new(kind: ReadingErrorKind, detail: impl fmt::Display) -> Self {
        let line = detail.to_string().replace(char::is_control, " ");
        ReadingError { kind, detail: excerpt(&line, MAX_REPORT) }
    }
}

/// Reads a reply: the whole text; else the inside of one code fence around everything; else what follows the reasoning,
/// read in the same order; else the one value in the text that fits. White space and a byte-order mark around do not
/// matter. Time is linear in the text's length.
pub fn read(text: &str, schema: &ReplySchema) -> Result<Reading, ReadingError> {
    let result = read_body(text, schema);
    if let Err(error) = &result
        && matches!(error.kind, ReadingErrorKind::Unclosed | ReadingErrorKind::NoJson)
        && let Some(repetition) = repetition(trim(text))
    {
        return Err(ReadingError::new(ReadingErrorKind::Repetition, format!("{}; {repetition}", error.detail)));
    }
    result
}

fn read_body(text: &str, schema: &ReplySchema) -> Result<Reading, ReadingError> {
    if text.len() > MAX_TEXT {
        let detail = format!("{} bytes, at most {MAX_TEXT} are read", text.len());
        return Err(ReadingError::new(ReadingErrorKind::TooLong, detail));
    }
    let mut body = trim(text);
    if body.is_empty() {
        return Err(ReadingError::new(ReadingErrorKind::Empty, "no text"));
    }
    let mut repairs = Vec::new();
    let mut orphan_dropped = false;
    loop {
        match parse(body) {
            Ok(value) => {
                return match schema.check(&value) {
                    Ok(()) => Ok(Reading { value, repairs }),
                    Err(problems) => Err(ReadingError::new(ReadingErrorKind::SchemaMismatch, problems)),
                };
            }
            Err(fault) if fault.kind == ReadingErrorKind::DuplicateKey => return Err(fault),
            Err(fault) if fault.kind == ReadingErrorKind::Unclosed && body.starts_with(['{', '[', '"']) => {
                return Err(fault);
            }
            Err(_) => {}
        }
        if !repairs.contains(&Repair::Fence)
            && let Some(inside) = inside_fence(body)
        {
            repairs.push(Repair::Fence);
            body = trim(inside);
            if body.is_empty() {
                return Err(ReadingError::new(ReadingErrorKind::NoJson, "an empty code fence"));
            }
            continue;
        }
        let scan;
        let after = match after_reasoning(body)? {
            Some(after) => after,
            None => {
                scan = Scan::of(body, !orphan_dropped);
                match scan.end_of_reasoning {
                    Some(end) => {
                        orphan_dropped = true;
                        &body[end..]
                    }
                    None => return choose(body, scan, schema, repairs),
                }
            }
        };
        if !repairs.contains(&Repair::ReasoningTags) {
            repairs.push(Repair::ReasoningTags);
        }
        body = trim(after);
        if body.is_empty() {
            return Err(ReadingError::new(ReadingErrorKind::Empty, "nothing follows the reasoning"));
        }
    }
}

fn trim(text: &str) -> &str {
    text.trim_matches(|c: char| c.is_whitespace() || c == '\u{feff}')
}

/// The one value among what the scan found.
fn choose(body: &str, scan: Scan, schema: &ReplySchema, before: Vec<Repair>) -> Result<Reading, ReadingError> {
    let mut chosen: Option<Reading> = None;
    let mut copies = 0_usize;
    let mut two = false;
    let mut prose = false;
    let mut problem = None;
    let mut end = 0;
    for range in scan.values {
        let candidate = &body[range.clone()];
        let parsed = parse(candidate).map(|value| (value, Vec::new())).or_else(|fault| match mend(candidate) {
            Some((mended, repairs)) if fault.kind == ReadingErrorKind::InvalidJson => {
                parse(&mended).map(|value| (value, repairs))
            }
            _ => Err(fault),
        });
        match parsed {
            Ok((value, repairs)) if schema.fits(&value) => {
                prose |= !trim(&body[end..range.start]).is_empty();
                end = range.end;
                copies += 1;
                match &mut chosen {
                    Some(first) if first.value != value => two = true,
                    Some(first) if first.repairs.len() <= repairs.len() => {}
                    chosen => *chosen = Some(Reading { value, repairs }),
                }
            }
            Ok((value, _)) => {
                // Lists without objects are references or ranges in prose.
                if problem.is_none() && candidate.contains('{') {
                    let problems = schema.check(&value).err().unwrap_or_default();
                    problem = Some(ReadingError::new(ReadingErrorKind::SchemaMismatch, problems));
                }
            }
            Err(fault) if fault.kind == ReadingErrorKind::DuplicateKey => return Err(fault),
            Err(fault) => {
                if problem.is_none() && candidate.contains('{') {
                    problem = Some(ReadingError { kind: ReadingErrorKind::InvalidJson, ..fault });
                }
            }
        }
    }
    if let Some(start) = scan.unclosed {
        let detail = format!("the text ends inside what begins with {}", excerpt(&body[start..], MAX_QUOTE));
        return Err(ReadingError::new(ReadingErrorKind::Unclosed, detail));
    }
    if two {
        let detail = format!("two different values among the {copies} that fit the schema");
        return Err(ReadingError::new(ReadingErrorKind::Ambiguous, detail));
    }
    let Some(Reading { value, repairs: mended }) = chosen else {
        return Err(problem.unwrap_or_else(|| {
            ReadingError::new(ReadingErrorKind::NoJson, format!("only text: {}", excerpt(body, MAX_QUOTE)))
        }));
    };
    prose |= !trim(&body[end..]).is_empty();
    let mut repairs = before;
    repairs.extend(prose.then_some(Repair::Prose));
    repairs.extend((copies > 1).then_some(Repair::Copies));
    repairs.extend(mended);
    Ok(Reading { value, repairs })
}

/// What stands inside a code fence around the whole text: the fence opens at its beginning and closes at its end, with
/// no line between that opens or closes one.
fn inside_fence(body: &str) -> Option<&str> {
    let mark = body.chars().next().filter(|mark| matches!(mark, '`' | '~'))?;
    let rest = body.trim_start_matches(mark);
    let width = body.len() - rest.len();
    let inside = rest.trim_end_matches(mark);
    if width < 3 || rest.len() - inside.len() < width {
        return None;
    }
    let fence = &body[..width];
    if inside.lines().skip(1).any(|line| line.trim_start().starts_with(fence)) {
        return None;
    }
    // The language of the block.
    Some(inside.trim_start_matches(|c: char| c.is_ascii_alphanumeric() || matches!(c, '_' | '-' | '+' | '.')))
}

/// Tags around reasoning, compared without case.
const REASONING: [(&str, &str); 6] = [
    ("<think>", "</think>"),
    ("<thinking>", "</thinking>"),
    ("<thought>", "</thought>"),
    ("<reasoning>", "</reasoning>"),
    ("<analysis>", "</analysis>"),
    ("[THINK]", "[/THINK]"),
];

/// What follows the reasoning at the beginning of a text; none if it does not begin with reasoning, and an error if the
/// reasoning does not end.
fn after_reasoning(body: &str) -> Result<Option<&str>, ReadingError> {
    let endless = |tag| {
        Err(ReadingError::new(ReadingErrorKind::Unclosed, format!("the text ends inside the reasoning after {tag}")))
    };
    for (open, close) in REASONING {
        if begins_with(body.as_bytes(), open) {
            let mut places = body.match_indices(&close[..1]).map(|(place, _)| place);
            return match places.find(|&place| begins_with(&body.as_bytes()[place..], close)) {
                Some(place) => Ok(Some(&body[place + close.len()..])),
                None => endless(open),
            };
        }
    }
    // Messages on channels: the last part is the answer, on the channel `final`.
    let (channel, message) = ("<|channel|>", "<|message|>");
    if !body.starts_with(channel) && !body.starts_with("<|start|>") {
        return Ok(None);
    }
    let mut parts = body.match_indices(channel).map(|(place, _)| &body[place + channel.len()..]);
    let answer = parts.find(|part| part.trim_start().starts_with("final")).and_then(|part| part.split_once(message));
    match answer {
        Some((_, answer)) => {
            let end = ["<|return|>", "<|end|>"].into_iter().find_map(|end| answer.trim_end().strip_suffix(end));
            Ok(Some(end.unwrap_or(answer)))
        }
        None => endless(channel),
    }
}

fn begins_with(bytes: &[u8], tag: &str) -> bool {
    bytes.get(..tag.len()).is_some_and(|head| head.eq_ignore_ascii_case(tag.as_bytes()))
}

/// Where a text has objects and lists, one after the other; none is inside another.
#[derive(Default)]
struct Scan {
    values: Vec<Range<usize>>,
    /// Where a value begins that has no end; the scan stops there.
    unclosed: Option<usize>,
    /// Behind a closing tag of reasoning that nothing opened; the scan stops there.
    end_of_reasoning: Option<usize>,
}

impl Scan {
    fn of(body: &str, stop_at_reasoning: bool) -> Scan {
        let bytes = body.as_bytes();
        let mut scan = Scan::default();
        let mut watch = stop_at_reasoning;
        let mut place = 0;
        while let Some(&byte) = bytes.get(place) {
            let rest = &bytes[place..];
            if watch && matches!(byte, b'<' | b'[') {
                watch = !REASONING.iter().any(|(open, _)| begins_with(rest, open));
                if let Some((_, close)) = REASONING.iter().find(|(_, close)| begins_with(rest, close)) {
                    scan.end_of_reasoning = Some(place + close.len());
                    return scan;
                }
            }
            let opens = match byte {
                b'{' => opens_object(&rest[1..]),
                // A cut list must be seen, and at the beginning of a reply a bracket is one.
                b'[' => place == 0 || opens_list(&rest[1..]),
                _ => false,
            };
            if opens {
                match extent(rest) {
                    Some(length) => {
                        scan.values.push(place..place + length);
                        place += length;
                        continue;
                    }
                    None => {
                        scan.unclosed = Some(place);
                        return scan;
                    }
                }
            }
            place += 1;
        }
        scan
    }
}

/// Whether a brace before `rest` is meant to open an object, in JSON or in a notation that is not read, rather than a
/// brace of prose. Also at the end of the text.
fn opens_object(rest: &[u8]) -> bool {
    let rest = rest.trim_ascii_start();
    match rest.first() {
        None | Some(b'"' | b'}' | b'\'' | b'/' | b'#' | b',' | b'.') => true,
        Some(_) if rest.starts_with("“".as_bytes()) => true,
        Some(_) => {
            let name =
                rest.iter().take_while(|byte| byte.is_ascii_alphanumeric() || matches!(byte, b'_' | b'$' | b'-'));
            let length = name.count();
            length > 0 && matches!(rest[length..].trim_ascii_start().first(), None | Some(b':'))
        }
    }
}

/// Whether a bracket before `rest` opens a list with an object, a list or a string in it. Also at the end of the text.
fn opens_list(mut rest: &[u8]) -> bool {
    loop {
        match rest.first() {
            None | Some(b'{' | b'[' | b'"') => return true,
            Some(byte) if byte.is_ascii_whitespace() || byte.is_ascii_digit() => rest = &rest[1..],
            Some(b',' | b'.' | b'-' | b'+' | b'e' | b'E') => rest = &rest[1..],
            Some(_) => match ["true", "false", "null"].into_iter().find(|word| rest.starts_with(word.as_bytes())) {
                Some(word) => rest = &rest[word.len()..],
                None => return false,
            },
        }
    }
}

/// The length of the object or list at the beginning, up to the bracket that closes it; none if there is no such. A
/// closing bracket of the wrong kind closes nothing.
fn extent(bytes: &[u8]) -> Option<usize> {
    let mut open = Vec::new();
    let mut in_string = false;
    let mut escaped = false;
    for (place, &byte) in bytes.iter().enumerate() {
        if in_string {
            in_string = escaped || byte != b'"';
            escaped = !escaped && byte == b'\\';
            continue;
        }
        match byte {
            b'"' => in_string = true,
            b'{' => open.push(b'}'),
            b'[' => open.push(b']'),
            b'}' | b']' if open.last() == Some(&byte) => {
                open.pop();
                if open.is_empty() {
                    return Some(place + 1);
                }
            }
            _ => {}
        }
    }
    None
}

/// The text without commas before a closing bracket, and with line breaks and tabs inside strings escaped; none if there
/// is nothing to mend. No character is added outside of strings.
fn mend(text: &str) -> Option<(String, Vec<Repair>)> {
    let mut mended = String::with_capacity(text.len() + 16);
    let mut repairs = [(Repair::TrailingComma, false), (Repair::RawNewline, false), (Repair::RawTab, false)];
    let [(_, comma_mended), (_, newline_mended), (_, tab_mended)] = &mut repairs;
    let mut in_string = false;
    let mut escaped = false;
    // Where the last token is, if it is a comma after a value, and whether the last token ends a value.
    let mut comma = None;
    let mut after_value = false;
    for c in text.chars() {
        if in_string {
            let was_escaped = escaped;
            escaped = !escaped && c == '\\';
            match c {
                '\n' | '\r' if !was_escaped => {
                    mended.push_str(if c == '\n' { "\\n" } else { "\\r" });
                    *newline_mended = true;
                    continue;
                }
                '\t' if !was_escaped => {
                    mended.push_str("\\t");
                    *tab_mended = true;
                    continue;
                }
                '"' if !was_escaped => in_string = false,
                _ => {}
            }
        } else if !c.is_ascii_whitespace() {
            if matches!(c, '}' | ']')
                && let Some(place) = comma
            {
                mended.remove(place);
                *comma_mended = true;
            }
            in_string = c == '"';
            comma = (c == ',' && after_value).then_some(mended.len());
            after_value = !matches!(c, ',' | ':' | '{' | '[');
        }
        mended.push(c);
    }
    let repairs: Vec<_> = repairs.into_iter().filter(|(_, done)| *done).map(|(repair, _)| repair).collect();
    (!repairs.is_empty()).then_some((mended, repairs))
}

/// One JSON value and nothing else: `unclosed`, `duplicate_key` or `invalid_json`. serde_json caps its depth at 128.
fn parse(text: &str) -> Result<Value, ReadingError> {
    parse_value(text).map_err(|error| {
        let kind = if is_duplicate_key(&error) {
            ReadingErrorKind::DuplicateKey
        } else if error.is_eof() {
            ReadingErrorKind::Unclosed
        } else {
            ReadingErrorKind::InvalidJson
        };
        ReadingError::new(kind, error)
    })
}

/// The shortest unit that is counted as repeated, in characters.
const MIN_UNIT: usize = 20;
/// How often a unit must come in a row.
const MIN_TIMES: usize = 8;

/// A loop at the end of a text.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Repetition<'a> {
    /// The last occurrence.
    pub unit: &'a str,
    /// Complete occurrences in a row.
    pub times: usize,
}

impl fmt::Display for Repetition<'_> {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(formatter, "the last {:?} comes {} times in a row", excerpt(self.unit, MAX_QUOTE), self.times)
    }
}

/// Whether a text ends in the same 20 or more characters at least eight times in a row, as of a model that loops until its
/// token limit; the last occurrence may be cut. A shorter unit counts by its multiples. Looks at the last [`MAX_TEXT`]
/// bytes, in linear time.
pub fn repetition(text: &str) -> Option<Repetition<'_>> {
    let bytes = &text.as_bytes()[text.len().saturating_sub(MAX_TEXT)..];
    let length = bytes.len();
    let from_end = |place: usize| bytes[length - 1 - place];
    // How far the text, read backwards from `place` bytes before its end, agrees with itself from the end (Z function).
    let mut agrees = vec![0_usize; length];
    let (mut left, mut right) = (0, 0);
    for place in 1..length {
        let mut run = if place < right { agrees[place - left].min(right - place) } else { 0 };
        while place + run < length && from_end(run) == from_end(place + run) {
            run += 1;
        }
        agrees[place] = run;
        if place + run > right {
            (left, right) = (place, place + run);
        }
    }
    (MIN_UNIT..=length / MIN_TIMES).find_map(|unit| {
        let times = (unit + agrees[unit]) / unit;
        let unit = text.get(text.len() - unit..)?;
        (times >= MIN_TIMES && unit.chars().nth(MIN_UNIT - 1).is_some()).then_some(Repetition { unit, times })
    })
}

#[cfg(test)]
#[path = "reading_tests.rs"]
mod tests;
