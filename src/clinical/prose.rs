//! What vital signs and laboratory results in running text have in common: names, and what may stand between a name and
//! its number.

use super::ClinicalWords;
use super::numbers::number;
use super::words::ProseEntry;
use crate::record::vector::VitalKind;
use crate::text::sentences::sentences;
use aho_corasick::{AhoCorasick, MatchKind};
use anyhow::ensure;
use regex::Regex;
use std::collections::BTreeSet;
use std::ops::Range;

/// Most words and signs between a name and its number.
const MAX_CONNECTIVES: usize = 7;
/// Bytes in front of a name that are looked at.
const BEFORE: usize = 80;
/// Bytes of brackets behind a name or a value that are looked at.
const MAX_BRACKETS: usize = 80;

/// What a name is of.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Subject {
    Vital(VitalKind),
    /// A pair, systolic over diastolic.
    BloodPressure,
    /// An index into the analytes of the lexicon.
    Analyte(usize),
    /// A longer name that means neither.
    Decoy,
}

#[derive(Clone, Debug)]
struct Term {
    text: String,
    subject: Subject,
}

/// Finds the names of the lexicon.
#[derive(Clone, Debug)]
pub(super) struct Names {
    finder: AhoCorasick,
    terms: Vec<Term>,
}

/// A name in a text.
#[derive(Clone, Debug)]
pub(super) struct Mention {
    pub(super) range: Range<usize>,
    pub(super) subject: Subject,
}

/// A text with hyphens as spaces and runs of white space as one space, and for every byte of it the place it comes
/// from.
struct Folded {
    text: String,
    places: Vec<usize>,
}

impl Folded {
    fn of(text: &str) -> Self {
        let mut folded = Self { text: String::with_capacity(text.len()), places: Vec::with_capacity(text.len() + 1) };
        for (at, character) in text.char_indices() {
            let plain = match character {
                '-' | '‐' | '‑' | '–' => ' ',
                c if c.is_whitespace() => ' ',
                '\u{ad}' | '\u{200b}' => continue,
                c => c,
            };
            if plain == ' ' && folded.text.ends_with(' ') {
                continue;
            }
            folded.text.push(plain);
            folded.places.resize(folded.text.len(), at);
        }
        folded.places.push(text.len());
        folded
    }

    fn original(&self, range: Range<usize>) -> Option<Range<usize>> {
        Some(*self.places.get(range.start)?..*self.places.get(range.end)?)
    }
}

impl Names {
    pub(super) fn new(names: Vec<(String, Subject)>) -> anyhow::Result<Self> {
        let mut terms = Vec::with_capacity(names.len());
        let mut seen = BTreeSet::new();
        for (word, subject) in names {
            let text = Folded::of(&word).text;
            ensure!(
                !text.trim().is_empty() && text.trim() == text,
                "name {word:?} is blank, or begins or ends with a blank"
            );
            ensure!(seen.insert(text.clone()), "name {word:?} is given twice");
            terms.push(Term { text, subject });
        }
        let finder = AhoCorasick::builder()
            .ascii_case_insensitive(true)
            .match_kind(MatchKind::Standard)
            .build(terms.iter().map(|term| &term.text))?;
        Ok(Self { finder, terms })
    }

    /// The names in a text, in its order; of those that overlap the first and longest.
    pub(super) fn find(&self, text: &str) -> Vec<Mention> {
        let folded = Folded::of(text);
        let mut found: Vec<Mention> = self
            .finder
            .find_overlapping_iter(&folded.text)
            .filter_map(|hit| {
                let term = self.terms.get(hit.pattern().as_usize())?;
                if !has_case_of(folded.text.get(hit.range())?, &term.text) {
                    return None;
                }
                let range = folded.original(hit.range())?;
                stands_alone(text, &range).then_some(Mention { range, subject: term.subject })
            })
            .collect();
        found.sort_by_key(|mention| (mention.range.start, std::cmp::Reverse(mention.range.end)));
        let mut taken = 0;
        found.retain(|mention| {
            let is_free = mention.range.start >= taken;
            if is_free {
                taken = mention.range.end;
            }
            is_free
        });
        found
    }
}

/// Words with a capital are found with their case alone: "CK" is none in "ck", "I" none in "i".
fn has_case_of(found: &str, term: &str) -> bool {
    let mut pairs = found.split(' ').zip(term.split(' '));
    pairs.all(|(found, word)| found == word || !word.contains(char::is_uppercase))
}

/// Is a stretch a word of its own, and no part of a compound ("non-HDL", "AST/ALT", "glucose-6-phosphate")?
fn stands_alone(text: &str, range: &Range<usize>) -> bool {
    let joins = |c: char| matches!(c, '-' | '‐' | '‑' | '/' | '–');
    let mut before = text.get(..range.start).unwrap_or_default().chars().rev();
    let mut after = text.get(range.end..).unwrap_or_default().chars();
    let is_joined = |first: Option<char>, second: Option<char>| match first {
        Some(c) if c.is_alphanumeric() || c == '_' => true,
        Some(c) if joins(c) => second.is_some_and(char::is_alphanumeric),
        _ => false,
    };
    !is_joined(before.next(), before.next()) && !is_joined(after.next(), after.next())
}

/// Words around names and numbers, compiled.
#[derive(Clone, Debug)]
pub(super) struct Prose {
    openers: BTreeSet<String>,
    refused: BTreeSet<String>,
    connectives: Regex,
    followers: Regex,
    specimens: Regex,
    whole_specimen: Regex,
    coordinated: Regex,
    reference: Regex,
}

impl Prose {
    pub(super) fn new(words: &ProseEntry) -> anyhow::Result<Self> {
        let connectives = alternatives("prose.connectives", &words.connectives)?;
        let followers = alternatives("prose.followers", &words.followers)?;
        let specimens = alternatives("prose.specimens", &words.specimens)?;
        let reference = alternatives("prose.reference", &words.reference)?;
        Ok(Self {
            openers: words.openers.iter().cloned().collect(),
            refused: words.refused.iter().cloned().collect(),
            connectives: Regex::new(&format!(
                r"(?i)^(?:\s*[:=,(~]|\s+[-–—]\s|\s+(?:{connectives})\b){{0,{MAX_CONNECTIVES}}}\s*"
            ))?,
            followers: Regex::new(&format!(r"(?i)^\s*(?:$|[,;.)\]\n]|(?:{followers})\b)"))?,
            specimens: Regex::new(&format!(r"(?i)(?:^|[^\w-])((?:(?:{specimens})[\s-]+){{1,3}})$"))?,
            whole_specimen: Regex::new(&format!(r"(?i)\b(?:{specimens})\b"))?,
            coordinated: Regex::new(&format!(
                r"(?i)^\s*(?:,|/|&|,?\s*(?:and|or)\b)\s*(?:(?:the|{specimens})[\s-]+)*$"
            ))?,
            reference: Regex::new(&format!(
                r"(?i)^\s*(?:{reference})\b\s*[:,=.]?\s*(?:(?:is|was|of|being|for)\b\s*)?"
            ))?,
        })
    }

    /// Where the number behind a name may begin: past words such as "was" or "level of".
    pub(super) fn past_connectives(&self, after: &str) -> usize {
        self.connectives.find(after).map_or(0, |found| found.end())
    }

    /// May a number without unit end here?
    pub(super) fn may_end(&self, after: &str) -> bool {
        self.followers.is_match(after)
    }

    /// Past the words that introduce a reference range, if there are any.
    pub(super) fn past_reference_words(&self, text: &str) -> Option<usize> {
        self.reference.find(text).map(|found| found.end())
    }

    /// Where the name that begins at `start` begins with the words for its specimen.
    pub(super) fn with_specimen(&self, text: &str, start: usize) -> usize {
        let before = tail(text, start);
        let found = self.specimens.captures(before).and_then(|found| found.get(1));
        found.map_or(start, |words| start - before.len() + words.start())
    }

    pub(super) fn names_specimen(&self, text: &str) -> bool {
        self.whole_specimen.is_match(text)
    }

    /// Does the word before `start` make a goal or somebody else's value of what follows?
    pub(super) fn is_refused(&self, text: &str, start: usize) -> bool {
        let word = last_word(tail(text, start)).to_lowercase();
        self.refused.contains(&word)
    }
}

impl ClinicalWords {
    /// May the name of a vital sign begin at `start`? Other words before it would make it another thing.
    pub(super) fn may_open(&self, text: &str, start: usize) -> bool {
        let before = tail(text, start);
        if before.trim_end_matches([' ', '\u{a0}']).ends_with('\n') {
            return true;
        }
        let before = before.trim_end();
        let Some(last) = before.chars().next_back() else { return true };
        if !last.is_alphanumeric() && last != '%' {
            return matches!(
                last,
                ',' | ';' | ':' | '(' | '.' | '[' | '•' | '·' | '–' | '—' | '-' | ')' | '°' | '"' | '|'
            );
        }
        let word = last_word(before);
        self.prose.openers.contains(&word.to_lowercase())
            || word.contains(|c: char| c.is_ascii_digit())
            || before.split_whitespace().next_back().is_some_and(|unit| super::units::ucum(unit, self).is_some())
    }
}

/// The end of the text before `at`, as far as it is looked at.
fn tail(text: &str, at: usize) -> &str {
    let mut from = at.saturating_sub(BEFORE);
    while !text.is_char_boundary(from) {
        from += 1;
    }
    text.get(from..at).unwrap_or_default()
}

fn last_word(before: &str) -> &str {
    let before = before.trim_end();
    let is_word = |c: char| c.is_alphanumeric() || matches!(c, '\'' | '’');
    before.rsplit(|c: char| !is_word(c)).next().unwrap_or_default()
}

fn alternatives(key: &str, words: &[String]) -> anyhow::Result<String> {
    ensure!(!words.is_empty(), "{key}: the list is empty");
    let mut sorted: Vec<&String> = words.iter().collect();
    sorted.sort_by_key(|word| (std::cmp::Reverse(word.len()), word.as_str()));
    sorted.dedup();
    ensure!(sorted.len() == words.len(), "{key}: a word is given twice");
    ensure!(sorted.iter().all(|word| !word.trim().is_empty()), "{key}: a word is blank");
    Ok(sorted.iter().map(|word| regex::escape(word).replace(' ', r"\s+")).collect::<Vec<_>>().join("|"))
}

/// A name with what is known of its surroundings.
pub(super) struct Named<'t> {
    pub(super) mention: Mention,
    /// The rest of the sentence behind the name.
    pub(super) after: &'t str,
    /// It shares what follows with the name before it ("AST and ALT were"), or values are dealt out by "respectively".
    pub(super) is_shared: bool,
}

/// Every name of a text, sentence by sentence.
pub(super) fn named<'t>(text: &'t str, words: &ClinicalWords) -> Vec<Named<'t>> {
    let sentences = sentences(text);
    let mentions = words.names.find(text);
    let mut named: Vec<Named<'t>> = Vec::with_capacity(mentions.len());
    for mention in mentions {
        let index = sentences.partition_point(|sentence| sentence.end <= mention.range.start);
        let end = sentences.get(index).map_or(text.len(), |sentence| sentence.end.max(mention.range.end));
        let Some(after) = text.get(mention.range.end..end) else { continue };
        let is_dealt = after.split(';').next().is_some_and(|clause| clause.contains("respectively"));
        let follows = named.last().is_some_and(|before: &Named<'_>| {
            let gap = text.get(before.mention.range.end..mention.range.start).unwrap_or_default();
            words.prose.coordinated.is_match(gap)
        });
        named.push(Named { mention, after, is_shared: is_dealt || follows });
    }
    named
}

/// The content of brackets at the beginning of a text, and where they end.
pub(super) fn brackets(text: &str) -> Option<(char, &str, usize)> {
    let start = text.len() - text.trim_start().len();
    let rest = text.get(start..)?;
    let (open, close) = match rest.chars().next()? {
        '(' => ('(', ')'),
        '[' => ('[', ']'),
        _ => return None,
    };
    let inside = rest.get(1..)?;
    let end = inside.char_indices().take_while(|(at, _)| *at <= MAX_BRACKETS).find(|(_, c)| *c == close)?.0;
    let inside = inside.get(..end)?;
    (!inside.contains(open)).then_some((open, inside, start + end + 2))
}

/// A reference range.
#[derive(Clone, Debug, PartialEq)]
pub(super) struct Interval {
    pub(super) low: Option<f64>,
    pub(super) high: Option<f64>,
    /// Where it ends, with its unit.
    pub(super) end: usize,
    /// UCUM.
    pub(super) unit: Option<String>,
}

/// A reference range at the beginning of a text: `130–170`, `3.5 to 5.1 mmol/L`, `<5`, `up to 40`.
pub(super) fn interval(text: &str, words: &ClinicalWords) -> Option<Interval> {
    let start = text.len() - text.trim_start().len();
    let rest = text.get(start..)?;
    let limit = super::numbers::comparator(rest).or_else(|| {
        let up_to = ["up to ", "below ", "under "].iter().find(|word| rest.starts_with(**word));
        let above = || ["above ", "over "].iter().find(|word| rest.starts_with(**word));
        up_to.map(|word| ("<", word.len())).or_else(|| above().map(|word| (">", word.len())))
    });
    let (low, high, end) = if let Some((sign, length)) = limit {
        let (value, end) = number(rest.get(length..)?)?;
        let end = start + length + end;
        if sign.starts_with('<') { (None, Some(value), end) } else { (Some(value), None, end) }
    } else {
        let (low, end) = number(rest)?;
        let mut middle = rest.get(end..)?;
        // The unit may stand behind both numbers.
        if let Some((_, length)) = super::units::leading(middle, words) {
            middle = middle.get(length..)?;
        }
        let middle = middle.trim_start();
        let second =
            middle.strip_prefix(['-', '–', '—', '−', '‐', '‑', '~', '～']).or_else(|| middle.strip_prefix("to "))?;
        let second = second.trim_start();
        let (high, length) = number(second)?;
        (Some(low), Some(high), text.len() - second.len() + length)
    };
    if low.zip(high).is_some_and(|(low, high)| low > high) {
        return None;
    }
    let unit = super::units::leading(text.get(end..)?, words);
    let (unit, length) = unit.map_or((None, 0), |(unit, length)| (Some(unit), length));
    Some(Interval { low, high, end: end + length, unit })
}
