//! Finds a gold diagnosis, by any of its names, in a text that a solver reads before it answers.
//!
//! Names are compared word by word in the matching form: case, diacritics, British and American spelling, plural s,
//! possessive 's, Roman numerals and hyphens make no difference. A name must stand whole: of "acute pancreatitis" the
//! word "pancreatitis" alone is no leak. Abbreviations are compared with the case they have in the original.
//!
//! What is found is a mention. Whether it gives the answer away ("is diagnosed with"), denies it or belongs to a
//! relative is for the caller to judge.

use std::collections::{BTreeMap, BTreeSet};
use std::ops::Range;

use serde::Deserialize;
use thiserror::Error;
use unicode_normalization::UnicodeNormalization;
use unicode_normalization::char::is_combining_mark;

use super::normalize::{Normalized, for_matching, look_alike};

/// Words that carry no meaning of their own in a name: no letter of an abbreviation stands for them.
const FUNCTION_WORDS: &[&str] =
    &["a", "an", "and", "at", "by", "due", "for", "from", "in", "of", "on", "or", "the", "to", "with"];

/// Initials of longer names are not in use; the answer is rather a sentence.
const MAX_INITIALS: usize = 6;

/// What a synonyms file says: which names mean the same, and which words are too general to give anything away.
///
/// The default knows nothing: only the gold diagnosis itself and its initials are found.
#[derive(Clone, Debug, Default)]
pub struct Synonyms {
    groups: Vec<Group>,
    /// Key of a name to its group.
    by_name: BTreeMap<String, usize>,
    /// Abbreviation to its groups; more than one makes it ambiguous.
    by_abbreviation: BTreeMap<String, Vec<usize>>,
    general_words: BTreeSet<String>,
    general_alone: BTreeSet<String>,
    general_abbreviations: BTreeSet<String>,
}

#[derive(Clone, Debug)]
struct Group {
    names: Vec<Pattern>,
    abbreviations: Vec<String>,
}

/// Why a synonyms file is refused. `group` is `group N`, counted from 1, with the first name in brackets.
#[derive(Debug, Error)]
pub enum SynonymsError {
    /// No TOML, an unknown or missing key, or a value of the wrong kind; the message names the key.
    #[error("synonyms: {0}")]
    Toml(#[from] toml::de::Error),
    #[error("synonyms: version: {0} is not known, it must be 1")]
    Version(u32),
    #[error("synonyms: general: {word:?}: {problem}")]
    General { word: String, problem: &'static str },
    #[error("synonyms: {group}: {problem}")]
    Group { group: String, problem: &'static str },
    #[error("synonyms: {group}: {term:?}: {problem}")]
    Term { group: String, term: String, problem: &'static str },
    #[error("synonyms: {group}: {name:?} is also a name of {other}")]
    TwoGroups { group: String, other: String, name: String },
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct File {
    version: u32,
    #[serde(default)]
    general: GeneralEntry,
    #[serde(default)]
    group: Vec<GroupEntry>,
}

#[derive(Default, Deserialize)]
#[serde(deny_unknown_fields)]
struct GeneralEntry {
    /// Words that give nothing away alone or with one another.
    #[serde(default)]
    words: Vec<String>,
    /// Words that give nothing away alone but do beside a general word: "renal" and "renal failure".
    #[serde(default)]
    alone: Vec<String>,
    /// Capitals that usually mean something other than a diagnosis, not to be read as initials.
    #[serde(default)]
    abbreviations: Vec<String>,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct GroupEntry {
    names: Vec<String>,
    #[serde(default)]
    abbreviations: Vec<String>,
    source: String,
}

impl Synonyms {
    /// Reads a synonyms file: `version = 1`, `[general]` with `words`, `alone` and `abbreviations`, and `[[group]]`
    /// with `names`, `abbreviations` (compared with their case) and `source`.
    ///
    /// # Errors
    ///
    /// When the text is no such file, a group has no names or no source, a name holds no word or general words only, an
    /// abbreviation is not made of two or more ASCII letters and digits with a capital, or a name stands twice. The
    /// same abbreviation may stand in several groups; a gold diagnosis that is nothing but it then belongs to none.
    pub fn parse(text: &str) -> Result<Self, SynonymsError> {
        let file: File = toml::from_str(text)?;
        if file.version != 1 {
            return Err(SynonymsError::Version(file.version));
        }
        let mut synonyms = Self::default();
        for (list, keys) in
            [(file.general.words, &mut synonyms.general_words), (file.general.alone, &mut synonyms.general_alone)]
        {
            for word in list {
                let words = Words::of(&for_matching(&word));
                match words.list.as_slice() {
                    [one] => keys.insert(words.key(one).to_owned()),
                    _ => return Err(SynonymsError::General { word, problem: "it must be one word" }),
                };
            }
        }
        for word in file.general.abbreviations {
            if !is_abbreviation(&word) {
                return Err(SynonymsError::General { word, problem: NO_ABBREVIATION });
            }
            synonyms.general_abbreviations.insert(word);
        }
        let mut labels: Vec<String> = Vec::new();
        for (position, entry) in file.group.into_iter().enumerate() {
            let label = match entry.names.first() {
                Some(name) => format!("group {} ({name})", position + 1),
                None => format!("group {}", position + 1),
            };
            let group = synonyms.group(position, &label, entry, &labels)?;
            for abbreviation in &group.abbreviations {
                synonyms.by_abbreviation.entry(abbreviation.clone()).or_default().push(position);
            }
            synonyms.groups.push(group);
            labels.push(label);
        }
        Ok(synonyms)
    }

    fn group(
        &mut self,
        position: usize,
        label: &str,
        entry: GroupEntry,
        labels: &[String],
    ) -> Result<Group, SynonymsError> {
        let refuse = |problem| SynonymsError::Group { group: label.to_owned(), problem };
        if entry.names.is_empty() {
            return Err(refuse("it has no names"));
        }
        if entry.source.trim().is_empty() {
            return Err(refuse("its source is empty"));
        }
        let mut names = Vec::with_capacity(entry.names.len());
        for name in entry.names {
            let refuse = |problem| SynonymsError::Term { group: label.to_owned(), term: name.clone(), problem };
            let pattern = Pattern::of(&name).ok_or_else(|| refuse("it holds no word"))?;
            if self.is_general(&pattern) {
                return Err(refuse("it is made of general words only"));
            }
            match self.by_name.insert(pattern.key(), position) {
                Some(other) if other == position => return Err(refuse("it stands twice in the group")),
                Some(other) => {
                    let other = labels.get(other).cloned().unwrap_or_default();
                    return Err(SynonymsError::TwoGroups { group: label.to_owned(), other, name });
                }
                None => names.push(pattern),
            }
        }
        let mut seen = BTreeSet::new();
        for term in &entry.abbreviations {
            let refuse = |problem| SynonymsError::Term { group: label.to_owned(), term: term.clone(), problem };
            if !is_abbreviation(term) {
                return Err(refuse(NO_ABBREVIATION));
            }
            if !seen.insert(term) {
                return Err(refuse("it stands twice in the group"));
            }
        }
        Ok(Group { names, abbreviations: entry.abbreviations })
    }

    /// Nothing but general words, function words and bare numbers or letters.
    fn is_general(&self, pattern: &Pattern) -> bool {
        if let [word] = pattern.words.as_slice()
            && self.general_alone.contains(word)
        {
            return true;
        }
        pattern.words.iter().all(|word| {
            word.chars().count() < 2
                || word.chars().all(|character| character.is_numeric())
                || FUNCTION_WORDS.contains(&word.as_str())
                || self.general_words.contains(word)
        })
    }
}

const NO_ABBREVIATION: &str = "an abbreviation is two or more ASCII letters and digits, one of them a capital";

fn is_abbreviation(text: &str) -> bool {
    text.len() >= 2
        && text.bytes().all(|byte| byte.is_ascii_alphanumeric())
        && text.bytes().any(|byte| byte.is_ascii_uppercase())
}

/// By what a text names the gold diagnosis. Where several apply to the same words, the first of this list.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum LeakKind {
    /// The diagnosis, or a name in brackets beside it.
    Diagnosis,
    /// The text of the keyed option where it differs.
    OptionText,
    /// Another name of the same group of the synonyms file.
    Synonym,
    /// Initials, or an abbreviation of the synonyms file.
    Abbreviation,
}

/// One place where a text names the gold diagnosis.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Leak {
    pub kind: LeakKind,
    /// The name that was looked for, as the gold diagnosis, the option or the synonyms file writes it.
    pub term: String,
    /// Unicode scalar values of the original text.
    pub range: Range<u32>,
}

/// All leaks of a gold diagnosis in a text that a solver sees before answering, in text order; whole words only.
///
/// Of leaks that overlap the one that begins first is given, then the longest. Checking many texts against one
/// diagnosis is cheaper with [`Gold`].
pub fn leaks(text: &str, diagnosis: &str, answer_text: &str, synonyms: &Synonyms) -> Vec<Leak> {
    Gold::new(diagnosis, answer_text, synonyms).leaks(text)
}

/// The names of one gold diagnosis, ready to be looked for.
#[derive(Clone, Debug)]
pub struct Gold {
    names: Vec<(LeakKind, Pattern)>,
    /// Beside each the form that is compared first.
    abbreviations: Vec<(LeakKind, String, String)>,
}

impl Gold {
    /// Names of `diagnosis` and `answer_text` (each may hold others in brackets), then of the groups of `synonyms` that
    /// know one of them.
    pub fn new(diagnosis: &str, answer_text: &str, synonyms: &Synonyms) -> Self {
        let mut gold = Self { names: Vec::new(), abbreviations: Vec::new() };
        let mut known = BTreeSet::new();
        let mut groups = BTreeSet::new();
        for (kind, text) in [(LeakKind::Diagnosis, diagnosis), (LeakKind::OptionText, answer_text)] {
            for part in parts(text) {
                let part = part.trim();
                if is_abbreviation(part) && !part.bytes().any(|byte| byte.is_ascii_lowercase()) {
                    if let Some([group]) = synonyms.by_abbreviation.get(part).map(Vec::as_slice) {
                        groups.insert(*group);
                    }
                    gold.add_abbreviation(kind, part, synonyms);
                } else if let Some(pattern) = Pattern::of(part) {
                    let key = pattern.key();
                    groups.extend(synonyms.by_name.get(&key));
                    if let Some(initials) = pattern.initials() {
                        gold.add_abbreviation(LeakKind::Abbreviation, &initials, synonyms);
                    }
                    if !synonyms.is_general(&pattern) && known.insert(key) {
                        gold.names.push((kind, pattern));
                    }
                }
            }
        }
        for group in groups.into_iter().filter_map(|group| synonyms.groups.get(group)) {
            for pattern in &group.names {
                if known.insert(pattern.key()) {
                    gold.names.push((LeakKind::Synonym, pattern.clone()));
                }
            }
            for abbreviation in &group.abbreviations {
                gold.add_abbreviation(LeakKind::Abbreviation, abbreviation, &Synonyms::default());
            }
        }
        gold
    }

    fn add_abbreviation(&mut self, kind: LeakKind, term: &str, synonyms: &Synonyms) {
        let is_new = self.abbreviations.iter().all(|(_, known, _)| known != term);
        if is_new && !synonyms.general_abbreviations.contains(term) {
            self.abbreviations.push((kind, term.to_owned(), term.to_ascii_lowercase()));
        }
    }

    /// As [`leaks`].
    pub fn leaks(&self, text: &str) -> Vec<Leak> {
        if self.names.is_empty() && self.abbreviations.is_empty() {
            return Vec::new();
        }
        let normalized = Normalized::of(text);
        let words = Words::of(&normalized.text);
        let mut found = Vec::new();
        for (kind, pattern) in &self.names {
            pattern.find(&words, |bytes| {
                found.extend(normalized.original_chars(bytes).map(|range| (range, *kind, pattern.term.as_str())));
            });
        }
        for (kind, term, lower) in &self.abbreviations {
            for (position, word) in words.list.iter().enumerate() {
                let Some(written) = normalized.text.get(word.bytes.clone()) else { continue };
                if written != lower && written.strip_suffix('s') != Some(lower) {
                    continue;
                }
                let Some(range) = normalized.original_chars(word.bytes.clone()) else { continue };
                let original = original_word(text, &range);
                let is_whole = original == *term || original.strip_suffix('s') == Some(term);
                if is_whole && !words.is_shouted(position, text, &normalized) {
                    found.push((range, *kind, term.as_str()));
                }
            }
        }
        found.sort_by(|(one, one_kind, _), (other, other_kind, _)| {
            (one.start, std::cmp::Reverse(one.end), one_kind).cmp(&(
                other.start,
                std::cmp::Reverse(other.end),
                other_kind,
            ))
        });
        let mut leaks: Vec<Leak> = Vec::new();
        for (range, kind, term) in found {
            if leaks.last().is_none_or(|last| last.range.end <= range.start) {
                leaks.push(Leak { kind, term: term.to_owned(), range });
            }
        }
        leaks
    }
}

/// A range of the original as it reads: look-alikes as Latin letters, invisible characters left out.
fn original_word(text: &str, range: &Range<u32>) -> String {
    let (Ok(start), Ok(end)) = (usize::try_from(range.start), usize::try_from(range.end)) else { return String::new() };
    text.chars()
        .skip(start)
        .take(end.saturating_sub(start))
        .map(|character| look_alike(character).unwrap_or(character))
        .filter(|character| character.is_alphanumeric())
        .collect()
}

/// The names that a diagnosis or option text holds: the text without its brackets and what stands in each bracket.
fn parts(text: &str) -> Vec<String> {
    let mut outside = String::with_capacity(text.len());
    let mut inside: Vec<String> = Vec::new();
    let mut open: Option<String> = None;
    for character in text.chars() {
        match (character, &mut open) {
            ('(' | '[', None) => open = Some(String::new()),
            (')' | ']', Some(bracket)) => {
                inside.push(std::mem::take(bracket));
                open = None;
                outside.push(' ');
            }
            (_, Some(bracket)) => bracket.push(character),
            (_, None) => outside.push(character),
        }
    }
    // A bracket that is never closed.
    inside.extend(open);
    let mut parts = vec![outside];
    for bracket in inside {
        let trimmed = ["also known as ", "also called ", "formerly ", "i.e. ", "i.e., "]
            .iter()
            .find_map(|opening| bracket.strip_prefix(opening))
            .unwrap_or(&bracket);
        parts.push(trimmed.to_owned());
    }
    parts
}

/// What stands between a word and the one before it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Gap {
    Blank,
    Hyphen,
    Comma,
    /// Anything else, also the beginning of the text.
    Break,
}

impl Gap {
    fn of(between: &str) -> Self {
        match between {
            " " | "/" | "_" => Self::Blank,
            "-" => Self::Hyphen,
            ", " | "," => Self::Comma,
            other => match other.replace('\'', "").as_str() {
                "" | " " => Self::Blank,
                "-" | "- " => Self::Hyphen,
                ", " | "," => Self::Comma,
                _ => Self::Break,
            },
        }
    }

    fn joins(self) -> bool {
        matches!(self, Self::Blank | Self::Hyphen)
    }
}

#[derive(Clone, Debug)]
struct Word {
    /// In the matching form, without a possessive 's.
    bytes: Range<usize>,
    /// In [`Words::keys`].
    key: Range<usize>,
    gap: Gap,
}

/// The words of a text in matching form, each with the key by which it is compared.
#[derive(Debug, Default)]
struct Words {
    keys: String,
    list: Vec<Word>,
}

impl Words {
    fn of(normalized: &str) -> Self {
        let mut words = Self { keys: String::with_capacity(normalized.len()), list: Vec::new() };
        let mut begun: Option<usize> = None;
        let mut last_end: Option<usize> = None;
        for (at, character) in normalized.char_indices() {
            let in_word = is_word_character(character);
            match begun {
                None if in_word => begun = Some(at),
                Some(start) if !in_word => {
                    last_end = words.push(normalized, start..at, last_end);
                    begun = None;
                }
                _ => {}
            }
        }
        if let Some(start) = begun {
            words.push(normalized, start..normalized.len(), last_end);
        }
        words
    }

    /// Adds a word and gives where it ends. A possessive s is no word but lengthens the one before.
    fn push(&mut self, normalized: &str, bytes: Range<usize>, last_end: Option<usize>) -> Option<usize> {
        let end = bytes.end;
        let written = normalized.get(bytes.clone())?;
        let between = last_end.and_then(|last_end| normalized.get(last_end..bytes.start));
        if written == "s" && between == Some("'") {
            return Some(end);
        }
        let start = self.keys.len();
        push_key(written, &mut self.keys);
        let gap = between.map_or(Gap::Break, Gap::of);
        self.list.push(Word { bytes, key: start..self.keys.len(), gap });
        Some(end)
    }

    fn key(&self, word: &Word) -> &str {
        self.keys.get(word.key.clone()).unwrap_or_default()
    }

    fn key_at(&self, position: usize) -> Option<&str> {
        self.list.get(position).map(|word| self.key(word))
    }

    fn gap_at(&self, position: usize) -> Gap {
        self.list.get(position).map_or(Gap::Break, |word| word.gap)
    }

    /// Whether the words around one are in capitals too, so that its own capitals say nothing.
    fn is_shouted(&self, position: usize, text: &str, normalized: &Normalized) -> bool {
        let before = position.checked_sub(1).filter(|_| self.gap_at(position).joins());
        let after = Some(position + 1).filter(|after| self.gap_at(*after).joins());
        let mut neighbours = 0;
        for word in [before, after].into_iter().flatten().filter_map(|position| self.list.get(position)) {
            let Some(range) = normalized.original_chars(word.bytes.clone()) else { continue };
            let original = original_word(text, &range);
            if original.len() < 2 || !original.chars().all(char::is_uppercase) {
                return false;
            }
            neighbours += 1;
        }
        neighbours > 0
    }
}

fn is_word_character(character: char) -> bool {
    character.is_ascii_alphanumeric()
        || !character.is_ascii() && (character.is_alphanumeric() || is_combining_mark(character))
}

/// Appends the form in which a lower-case word is compared: without diacritics, in American spelling, singular.
fn push_key(written: &str, keys: &mut String) {
    let start = keys.len();
    if written.is_ascii() {
        push_american(written.chars(), keys);
    } else {
        push_american(written.nfd().filter(|character| !is_combining_mark(*character)), keys);
    }
    let key = keys.get(start..).unwrap_or_default();
    let (remove, add) = match key {
        "i" => (1, "1"),
        "ii" => (2, "2"),
        "iii" => (3, "3"),
        "iv" => (2, "4"),
        "v" => (1, "5"),
        _ if key.len() < 5 => (0, ""),
        _ if key.ends_with("itides") => (3, "s"),
        _ if key.ends_with("ies") => (3, "y"),
        _ if ["sses", "xes", "ches", "shes"].iter().any(|ending| key.ends_with(ending)) => (2, ""),
        _ if ["ss", "us", "is"].iter().any(|ending| key.ends_with(ending)) => (0, ""),
        _ if key.ends_with('s') => (1, ""),
        _ if key.ends_with("our") => (2, "r"),
        _ => (0, ""),
    };
    // All endings are ASCII.
    keys.truncate(keys.len().saturating_sub(remove));
    keys.push_str(add);
}

/// Greek letters in words, ae and oe as e, "sulph" as "sulf".
fn push_american(characters: impl Iterator<Item = char>, keys: &mut String) {
    let start = keys.len();
    for character in characters {
        match character {
            'e' if keys.len() > start && keys.ends_with(['a', 'o']) => {
                keys.pop();
                keys.push('e');
            }
            'h' if keys.len() >= start + 4 && keys.ends_with("sulp") => {
                keys.pop();
                keys.push('f');
            }
            'æ' | 'œ' => keys.push('e'),
            'α' => keys.push_str("alpha"),
            'β' => keys.push_str("beta"),
            'γ' => keys.push_str("gamma"),
            'δ' => keys.push_str("delta"),
            'ø' => keys.push('o'),
            'ł' => keys.push('l'),
            other => keys.push(other),
        }
    }
}

/// One name, to be found as a run of words, or turned around at a comma.
#[derive(Clone, Debug)]
struct Pattern {
    term: String,
    /// Keys, in the order of speech: "X, acute" is kept as "acute X".
    words: Vec<String>,
    /// Whether a comma may stand before the word of the same position.
    commas: Vec<bool>,
    /// First letters of the words that are no function words.
    initials: Vec<char>,
}

impl Pattern {
    fn of(term: &str) -> Option<Self> {
        let normalized = for_matching(term);
        let words = Words::of(&normalized);
        let mut list: Vec<(String, bool, &str)> = words
            .list
            .iter()
            .map(|word| {
                let written = normalized.get(word.bytes.clone()).unwrap_or_default();
                (words.key(word).to_owned(), word.gap == Gap::Comma, written)
            })
            .collect();
        if let Some((_, comma, _)) = list.first_mut() {
            *comma = false;
        }
        let mut at_commas = list.iter().enumerate().filter(|(_, (_, comma, _))| *comma).map(|(position, _)| position);
        if let (Some(comma), None) = (at_commas.next(), at_commas.next())
            && !list.iter().any(|(_, _, written)| matches!(*written, "and" | "or"))
        {
            list.rotate_left(comma);
            list.iter_mut().for_each(|(_, comma, _)| *comma = false);
        }
        if list.is_empty() {
            return None;
        }
        let initials = list
            .iter()
            .filter(|(_, _, written)| !FUNCTION_WORDS.contains(written))
            .filter_map(|(_, _, written)| written.chars().next())
            .collect();
        let (words, commas) = list.into_iter().map(|(key, comma, _)| (key, comma)).unzip();
        Some(Self { term: term.split_whitespace().collect::<Vec<_>>().join(" "), words, commas, initials })
    }

    /// By which equal names are known as equal.
    fn key(&self) -> String {
        self.words.join(" ")
    }

    /// Capitals of a name of three or more significant words.
    fn initials(&self) -> Option<String> {
        let is_usual = (3..=MAX_INITIALS).contains(&self.initials.len())
            && !self.commas.contains(&true)
            && self.initials.iter().all(char::is_ascii_alphanumeric);
        is_usual.then(|| self.initials.iter().map(char::to_ascii_uppercase).collect())
    }

    /// Calls back with the bytes of every place, in order, where the words stand.
    fn find(&self, words: &Words, mut found: impl FnMut(Range<usize>)) {
        for (start, word) in words.list.iter().enumerate() {
            let key = words.key(word);
            for (turn, first) in self.words.iter().enumerate() {
                // A turned name begins with one of its later words.
                if !key_begins(key, first) {
                    continue;
                }
                let Some(end) = self.end_of_match(words, start, turn) else { continue };
                if self.is_negated_prefix(words, start) {
                    continue;
                }
                if let Some(last) = end.checked_sub(1).and_then(|last| words.list.get(last)) {
                    found(word.bytes.start..last.bytes.end);
                    break;
                }
            }
        }
    }

    /// The position after the last word of a match that begins at `start` with word `turn` of the name.
    fn end_of_match(&self, words: &Words, start: usize, turn: usize) -> Option<usize> {
        let mut at = self.run(words, start, self.words.get(turn..)?, self.commas.get(turn..)?)?;
        if turn == 0 {
            return Some(at);
        }
        let numbered = turn == 2 && self.words.first().is_some_and(|word| word == "type" || word == "stage");
        let gap = words.gap_at(at);
        if gap != Gap::Comma && !(numbered && gap.joins()) {
            return None;
        }
        at = self.run(words, at, self.words.get(..turn)?, self.commas.get(..turn)?)?;
        // "pancreatitis, acute renal failure" does not say acute pancreatitis.
        (gap != Gap::Comma || !words.gap_at(at).joins()).then_some(at)
    }

    /// Matches words one after the other; a hyphen inside a word may be written or not.
    fn run(&self, words: &Words, start: usize, expected: &[String], commas: &[bool]) -> Option<usize> {
        let mut at = start;
        let mut expected = expected.iter().zip(commas).peekable();
        while let Some((word, comma)) = expected.next() {
            let gap = words.gap_at(at);
            if at != start && !gap.joins() && !(*comma && gap == Gap::Comma) {
                return None;
            }
            let key = words.key_at(at)?;
            if key == word {
                at += 1;
            } else if let Some(rest) = word.strip_prefix(key) {
                if words.gap_at(at + 1) != Gap::Hyphen || words.key_at(at + 1) != Some(rest) {
                    return None;
                }
                at += 2;
            } else {
                let rest = key.strip_prefix(word.as_str())?;
                if rest != expected.next()?.0 {
                    return None;
                }
                at += 1;
            }
        }
        Some(at)
    }

    /// "non-Hodgkin lymphoma" is not Hodgkin lymphoma, "pseudo-gout" not gout.
    fn is_negated_prefix(&self, words: &Words, start: usize) -> bool {
        words.gap_at(start).joins()
            && start
                .checked_sub(1)
                .and_then(|before| words.key_at(before))
                .is_some_and(|before| matches!(before, "non" | "pseudo"))
    }
}

/// Whether a word of a text can be the beginning of a word of a name, or the reverse.
fn key_begins(key: &str, word: &str) -> bool {
    key.as_bytes().first() == word.as_bytes().first() && (key.starts_with(word) || word.starts_with(key))
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    const FILE: &str = r#"
version = 1

[general]
words = ["infection", "syndrome", "cancer", "disease", "acute", "viral", "failure"]
alone = ["renal"]
abbreviations = ["CRP"]

[[group]]
names = ["Myocardial infarction", "heart attack"]
abbreviations = ["MI"]
source = "invented"

[[group]]
names = ["Mitral incompetence", "mitral regurgitation"]
abbreviations = ["MI", "MR"]
source = "invented"

[[group]]
names = ["Gout", "podagra"]
source = "invented"

[[group]]
names = ["Systemic lupus erythematosus", "lupus"]
abbreviations = ["SLE"]
source = "invented"
"#;

    fn synonyms() -> Synonyms {
        Synonyms::parse(FILE).expect("the file of the tests is good")
    }

    /// `Kind:the original words`, for each leak.
    fn found(text: &str, diagnosis: &str, answer: &str) -> Vec<String> {
        leaks(text, diagnosis, answer, &synonyms())
            .into_iter()
            .map(|leak| {
                let words: String = text.chars().skip(leak.range.start as usize).take(leak.range.len()).collect();
                format!("{:?}:{words}", leak.kind)
            })
            .collect()
    }

    fn check(cases: &[(&str, &str, &[&str])]) {
        for (gold, text, expected) in cases {
            assert_eq!(&found(text, gold, gold), expected, "{gold:?} in {text:?}");
        }
    }

    #[test]
    fn names_in_other_writing() {
        check(&[
            ("Gout", "He had gout.", &["Diagnosis:gout"]),
            ("Gout", "GOUT in a gouty man", &["Diagnosis:GOUT"]),
            ("Ovarian cyst", "two ovarian  cysts", &["Diagnosis:ovarian  cysts"]),
            ("Liver abscesses", "a liver abscess", &["Diagnosis:liver abscess"]),
            ("Iron deficiency anemia", "an iron-deficiency anaemia.", &["Diagnosis:iron-deficiency anaemia"]),
            ("Pulmonary edema", "pulmonary œdema and oedema", &["Diagnosis:pulmonary œdema"]),
            ("Brain tumour", "brain tumors", &["Diagnosis:brain tumors"]),
            (
                "Hodgkin's disease",
                "Hodgkin disease, Hodgkins disease, Hodgkin’s disease",
                &["Diagnosis:Hodgkin disease", "Diagnosis:Hodgkins disease", "Diagnosis:Hodgkin’s disease"],
            ),
            (
                "Graves' disease",
                "Graves disease or Grave's disease",
                &["Diagnosis:Graves disease", "Diagnosis:Grave's disease"],
            ),
            (
                "Ménière disease",
                "Me\u{301}nie\u{300}re's disease; Meniere disease",
                &["Diagnosis:Me\u{301}nie\u{300}re's disease", "Diagnosis:Meniere disease"],
            ),
            ("Beta thalassemia", "β-thalassaemia", &["Diagnosis:β-thalassaemia"]),
            (
                "Poststreptococcal nephritis",
                "post-streptococcal nephritis",
                &["Diagnosis:post-streptococcal nephritis"],
            ),
            ("Post-streptococcal nephritis", "poststreptococcal nephritis", &["Diagnosis:poststreptococcal nephritis"]),
            (
                "Type 2 diabetes",
                "type II diabetes; diabetes type 2",
                &["Diagnosis:type II diabetes", "Diagnosis:diabetes type 2"],
            ),
            ("Scurvy", "sсurvу with look-alikes, scu\u{ad}rvy", &["Diagnosis:sсurvу", "Diagnosis:scu\u{ad}rvy"]),
            ("Ectopic pregnancy", "media/ectopic_pregnancy.png", &["Diagnosis:ectopic_pregnancy"]),
            ("Hand, foot and mouth disease", "hand-foot-and-mouth disease", &["Diagnosis:hand-foot-and-mouth disease"]),
        ]);
    }

    #[test]
    fn names_turned_at_a_comma() {
        check(&[
            ("Pancreatitis, acute", "acute pancreatitis", &["Diagnosis:acute pancreatitis"]),
            ("Acute pancreatitis", "Pancreatitis, acute.", &["Diagnosis:Pancreatitis, acute"]),
            ("Acute pancreatitis", "pancreatitis, acute renal failure", &[]),
            ("Acute pancreatitis", "pancreatitis acute", &[]),
            ("Acute pancreatitis", "It is acute. Pancreatitis", &[]),
        ]);
    }

    #[test]
    fn partial_and_general_names_are_no_leaks() {
        check(&[
            ("Acute pancreatitis", "known pancreatitis", &[]),
            ("Pancreatitis", "acute pancreatitis", &["Diagnosis:pancreatitis"]),
            ("Gout", "throughout, gouty", &[]),
            ("Viral infection", "a viral infection", &[]),
            ("Cancer", "breast cancer", &[]),
            ("Renal", "renal colic", &[]),
            ("Renal failure", "renal failure", &["Diagnosis:renal failure"]),
            ("Hodgkin lymphoma", "non-Hodgkin lymphoma", &[]),
            ("Gout", "pseudo-gout", &[]),
            ("B", "hepatitis B", &[]),
            ("42", "a 42-year-old", &[]),
            ("", "anything", &[]),
            ("()", "anything ()", &[]),
        ]);
    }

    #[test]
    fn brackets_hold_other_names() {
        let gold = "Ramsay Hunt syndrome (herpes zoster oticus)";
        check(&[
            (gold, "Ramsay-Hunt syndrome", &["Diagnosis:Ramsay-Hunt syndrome"]),
            (gold, "herpes zoster oticus", &["Diagnosis:herpes zoster oticus"]),
            (gold, "herpes zoster", &[]),
            ("Measles (also called rubeola", "rubeola", &["Diagnosis:rubeola"]),
            ("Wet lung (TTN)", "TTN, ttn", &["Diagnosis:TTN"]),
        ]);
        assert_eq!(
            found("measles, rubeola", "Measles", "Measles (rubeola)"),
            ["Diagnosis:measles", "OptionText:rubeola"]
        );
    }

    #[test]
    fn synonyms_and_abbreviations() {
        check(&[
            ("Gouty", "podagra", &[]),
            ("Gout", "podagra then gout", &["Synonym:podagra", "Diagnosis:gout"]),
            ("Systemic lupus erythematosus", "SLE, sle, Sle, SLEs, SLEEP", &["Abbreviation:SLE", "Abbreviation:SLEs"]),
            ("Lupus", "anti-SLE", &["Abbreviation:SLE"]),
            ("SLE", "lupus and SLE", &["Synonym:lupus", "Diagnosis:SLE"]),
            // MI stands for two groups.
            ("MI", "a heart attack or MI", &["Diagnosis:MI"]),
            ("Heart attack", "a heart attack or MI", &["Diagnosis:heart attack", "Abbreviation:MI"]),
            ("Acute lymphoblastic leukemia", "ALL of them; has ALL", &["Abbreviation:ALL", "Abbreviation:ALL"]),
            ("Acute lymphoblastic leukemia", "ALL OF THE FOLLOWING", &[]),
            ("Graft-versus-host disease", "GVHD", &["Abbreviation:GVHD"]),
            ("Cancer of the rectum, perforated", "CRP 40", &[]),
            ("Chronic rectal prolapse", "CRP 40", &[]),
            ("Pelvic pain", "PP", &[]),
        ]);
    }

    #[test]
    fn overlapping_leaks_are_given_once() {
        assert_eq!(
            found("systemic lupus erythematosus (SLE)", "Systemic lupus erythematosus", "Lupus"),
            ["Diagnosis:systemic lupus erythematosus", "Abbreviation:SLE"]
        );
    }

    #[test]
    fn files_that_are_refused() {
        for (body, expected) in [
            ("version = 2", "synonyms: version: 2 is not known, it must be 1"),
            ("version = 1\n[general]\nwords = [\"a b\"]", "synonyms: general: \"a b\": it must be one word"),
            (
                "version = 1\n[general]\nabbreviations = [\"x\"]",
                "synonyms: general: \"x\": an abbreviation is two or more ASCII letters and digits, one of them a capital",
            ),
            ("version = 1\n[[group]]\nnames = []\nsource = \"s\"", "synonyms: group 1: it has no names"),
            (
                "version = 1\n[[group]]\nnames = [\"Gout\"]\nsource = \" \"",
                "synonyms: group 1 (Gout): its source is empty",
            ),
            (
                "version = 1\n[[group]]\nnames = [\"Gout\", \"-\"]\nsource = \"s\"",
                "synonyms: group 1 (Gout): \"-\": it holds no word",
            ),
            (
                "version = 1\n[general]\nwords = [\"pain\"]\n[[group]]\nnames = [\"Gout\", \"pain\"]\nsource = \"s\"",
                "synonyms: group 1 (Gout): \"pain\": it is made of general words only",
            ),
            (
                "version = 1\n[[group]]\nnames = [\"Gout\", \"GOUTS\"]\nsource = \"s\"",
                "synonyms: group 1 (Gout): \"GOUTS\": it stands twice in the group",
            ),
            (
                "version = 1\n[[group]]\nnames = [\"Gout\"]\nabbreviations = [\"gt\"]\nsource = \"s\"",
                "synonyms: group 1 (Gout): \"gt\": an abbreviation is two or more ASCII letters and digits, one of them a capital",
            ),
            (
                "version = 1\n[[group]]\nnames = [\"Gout\"]\nsource = \"s\"\n[[group]]\nnames = [\"Podagra\", \"gout\"]\nsource = \"s\"",
                "synonyms: group 2 (Podagra): \"gout\" is also a name of group 1 (Gout)",
            ),
        ] {
            let error = Synonyms::parse(body).expect_err(body).to_string();
            assert_eq!(error, expected);
        }
        assert!(Synonyms::parse("version = 1\nother = 2").is_err_and(|error| error.to_string().contains("other")));
    }

    /// The keys of the words of a text.
    fn keys(text: &str) -> Vec<String> {
        let normalized = for_matching(text);
        let words = Words::of(&normalized);
        words.list.iter().map(|word| words.key(word).to_owned()).collect()
    }

    const NAMES: &[&str] = &[
        "Gout",
        "Iron deficiency anaemia",
        "Systemic lupus erythematosus",
        "Heart attack",
        "Ménière's disease",
        "SLE",
    ];

    proptest! {
        #[test]
        fn ranges_hold_the_words_of_the_term(
            pieces in proptest::collection::vec(
                prop_oneof![
                    proptest::sample::select(NAMES).prop_map(str::to_owned),
                    proptest::sample::select(NAMES).prop_map(str::to_lowercase),
                    "[ ,.\u{ad}\u{a0}’'\u{301}-]{1,3}",
                    "\\PC{0,4}",
                ],
                0..12,
            ),
            gold in proptest::sample::select(NAMES),
        ) {
            let text = pieces.concat();
            let n_characters = text.chars().count();
            let mut last_end = 0;
            for leak in leaks(&text, gold, gold, &synonyms()) {
                prop_assert!(last_end <= leak.range.start && leak.range.start < leak.range.end);
                prop_assert!(leak.range.end as usize <= n_characters);
                last_end = leak.range.end;
                let words: String = text.chars().skip(leak.range.start as usize).take(leak.range.len()).collect();
                let (mut one, mut other) = (keys(&words), keys(&leak.term));
                if leak.kind == LeakKind::Abbreviation || leak.term == "SLE" {
                    prop_assert!(words.starts_with(|first: char| first.is_uppercase()));
                }
                one.sort();
                other.sort();
                let (one, other) = (one.concat(), other.concat());
                prop_assert!(one == other || one == format!("{other}s"), "{one} {other}");
            }
        }

        #[test]
        fn a_name_between_blanks_is_always_found(before in "\\PC{0,20}", after in "\\PC{0,20}", gold in proptest::sample::select(&["Gout", "Iron deficiency anaemia"])) {
            let text = format!("{before}. {} .{after}", gold.to_uppercase());
            prop_assert!(!leaks(&text, gold, gold, &Synonyms::default()).is_empty(), "{}", text);
        }

        #[test]
        fn any_text_is_read(text in proptest::collection::vec(any::<char>(), 0..30), gold in "\\PC{0,20}") {
            let text: String = text.into_iter().collect();
            let _ = leaks(&text, &gold, &text, &synonyms());
            let _ = Synonyms::parse(&gold);
        }
    }
}
