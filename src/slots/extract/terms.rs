//! The clinical terms of the rule extractor (`pipelines/lexicon/terms.csv`) and how they are found in a text.
//!
//! A term is a row: the term, the slot it speaks of, its other forms, and where the fact comes from. The slot `-` is
//! that of a phrase which must not be read as any of its parts ("red blood cell").

use crate::record::slots::Slot;
use std::collections::HashMap;
use std::ops::Range;

/// What is wrong with a list of terms.
#[derive(Debug, thiserror::Error)]
pub enum TermsError {
    #[error("term list: {0}")]
    Csv(#[from] csv::Error),
    #[error("term list: the header must be term,slot,variants,source")]
    Header,
    #[error("term list: line {line}: {term:?}: {problem}")]
    Term { line: u64, term: String, problem: String },
}

/// A set of slots.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) struct SlotSet(u32);

impl SlotSet {
    /// The slot `-`: no slot at all.
    const NEUTRAL: Self = Self(1 << 31);

    pub(super) const fn of(slot: Slot) -> Self {
        Self(1 << slot as u32)
    }

    pub(super) const fn with(self, other: Self) -> Self {
        Self(self.0 | other.0)
    }

    pub(super) const fn has(self, slot: Slot) -> bool {
        self.0 & (1 << slot as u32) != 0
    }

    pub(super) const fn meets(self, other: Self) -> bool {
        self.0 & other.0 != 0
    }

    const fn is_neutral(self) -> bool {
        self.0 & Self::NEUTRAL.0 != 0
    }
}

/// What stands between a token and the one before it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Gap {
    /// White space or nothing.
    Space,
    Hyphen,
    Comma,
    Semicolon,
    /// An opening or closing bracket, or a quotation mark.
    Bracket,
    /// Anything else: a slash, a sign, a stop.
    Mark,
}

/// A word or a number of a folded text.
#[derive(Clone, Debug)]
pub(super) struct Token {
    pub(super) start: usize,
    pub(super) end: usize,
    /// What stands before it.
    pub(super) gap: Gap,
    /// Followed by "'s" or "'".
    pub(super) possessive: bool,
}

/// A term found in a text.
#[derive(Clone, Debug)]
pub(super) struct Mention {
    pub(super) tokens: Range<usize>,
    pub(super) slots: SlotSet,
}

struct Term {
    /// The words behind the first one.
    rest: Vec<String>,
    slots: SlotSet,
}

/// The terms by their first word, the longest first.
pub struct Terms {
    by_first: HashMap<String, Vec<Term>>,
}

impl Terms {
    /// Reads a list of terms: CSV with the columns term, slot, variants (parted by `|`) and source.
    ///
    /// # Errors
    /// No CSV, another header, a slot that Table 6 does not hold, a term that is empty, not lower-case ASCII or given
    /// twice for its slot. The error names the line.
    pub fn parse(text: &str) -> Result<Self, TermsError> {
        let mut reader = csv::ReaderBuilder::new().comment(Some(b'#')).from_reader(text.as_bytes());
        if reader.headers()?.iter().ne(["term", "slot", "variants", "source"]) {
            return Err(TermsError::Header);
        }
        let mut slots_of: HashMap<Vec<String>, SlotSet> = HashMap::new();
        for row in reader.records() {
            let row = row?;
            let line = row.position().map_or(0, csv::Position::line);
            let field = |index: usize| row.get(index).unwrap_or_default();
            let fault =
                |problem: &str| TermsError::Term { line, term: field(0).to_owned(), problem: problem.to_owned() };
            let set = match field(1) {
                "-" => SlotSet::NEUTRAL,
                name => match Slot::ALL.iter().find(|slot| slot.as_str() == name) {
                    Some(slot) => SlotSet::of(*slot),
                    None => return Err(fault(&format!("{name:?} is no slot of Table 6 and not \"-\""))),
                },
            };
            if field(3).trim().is_empty() {
                return Err(fault("the source of the fact is missing"));
            }
            let forms = std::iter::once(field(0)).chain(field(2).split('|').filter(|form| !form.is_empty()));
            for form in forms {
                let is_plain =
                    |byte: u8| byte.is_ascii_lowercase() || byte.is_ascii_digit() || b" /.&+%".contains(&byte);
                if form.is_empty() || form.trim() != form || !form.bytes().all(is_plain) {
                    return Err(fault("a term is lower-case ASCII words with single spaces"));
                }
                let words: Vec<String> = form.split(' ').map(str::to_owned).collect();
                if words.iter().any(String::is_empty) {
                    return Err(fault("a term is lower-case ASCII words with single spaces"));
                }
                let known = slots_of.entry(words).or_default();
                if known.meets(set) {
                    return Err(fault("the term is given twice for its slot"));
                }
                *known = known.with(set);
            }
        }
        Ok(Self::of(slots_of))
    }

    fn of(slots_of: HashMap<Vec<String>, SlotSet>) -> Self {
        let mut by_first: HashMap<String, Vec<Term>> = HashMap::new();
        for (mut words, slots) in slots_of {
            let first = words.remove(0);
            by_first.entry(first).or_default().push(Term { rest: words, slots });
        }
        for terms in by_first.values_mut() {
            terms.sort_by(|a, b| b.rest.len().cmp(&a.rest.len()).then_with(|| a.rest.cmp(&b.rest)));
        }
        Self { by_first }
    }

    /// Every term that stands in the tokens, by its first token, the longest first. A term inside a longer neutral
    /// one is left out. The last word of a term may be a regular plural.
    pub(super) fn mentions(&self, text: &str, tokens: &[Token]) -> Vec<Mention> {
        let mut mentions = Vec::new();
        let mut blocked_until = 0;
        for (index, token) in tokens.iter().enumerate() {
            let word = text.get(token.start..token.end).unwrap_or_default();
            let mut found: Vec<Mention> = Vec::new();
            for form in forms(word) {
                let Some(terms) = self.by_first.get(form) else { continue };
                for term in terms {
                    // Only the last word may be a plural.
                    if form.len() != word.len() && !term.rest.is_empty() {
                        continue;
                    }
                    let Some(length) = matches(text, tokens, index, &term.rest) else { continue };
                    match found.iter_mut().find(|mention| mention.tokens.end == index + length) {
                        Some(mention) => mention.slots = mention.slots.with(term.slots),
                        None => found.push(Mention { tokens: index..index + length, slots: term.slots }),
                    }
                }
            }
            found.sort_by_key(|mention| std::cmp::Reverse(mention.tokens.end));
            for mention in found {
                if mention.tokens.end <= blocked_until {
                    continue;
                }
                if mention.slots.is_neutral() {
                    blocked_until = mention.tokens.end;
                    continue;
                }
                mentions.push(mention);
            }
        }
        mentions
    }
}

/// A word as it stands, and as the singular it may be the regular plural of.
fn forms(word: &str) -> impl Iterator<Item = &str> {
    let is_long = word.len() > 3;
    let s = word.strip_suffix('s').filter(|stem| is_long && !stem.ends_with('s'));
    let es = word.strip_suffix("es").filter(|stem| is_long && stem.ends_with(['s', 'x', 'z', 'h', 'o']));
    [Some(word), s, es].into_iter().flatten()
}

/// The number of tokens a term takes whose first word stands at `index`, if its other words follow.
fn matches(text: &str, tokens: &[Token], index: usize, rest: &[String]) -> Option<usize> {
    for (offset, word) in rest.iter().enumerate() {
        let token = tokens.get(index + offset + 1)?;
        if !matches!(token.gap, Gap::Space | Gap::Hyphen) {
            return None;
        }
        let said = text.get(token.start..token.end)?;
        let is_last = offset + 1 == rest.len();
        let same = said == word || (is_last && forms(said).any(|form| form == word)) || (is_last && ies(said, word));
        if !same {
            return None;
        }
    }
    Some(rest.len() + 1)
}

/// Whether a word is the plural in "ies" of another in "y".
fn ies(said: &str, word: &str) -> bool {
    said.strip_suffix("ies").is_some_and(|stem| word.strip_suffix('y') == Some(stem))
}

/// The words and numbers of a part of a folded text. A decimal number is one token; an apostrophe parts none.
pub(super) fn tokens(text: &str, range: Range<usize>) -> Vec<Token> {
    let bytes = text.as_bytes();
    let mut tokens: Vec<Token> = Vec::with_capacity(range.len() / 5);
    let mut at = range.start;
    let mut gap_start = at;
    while at < range.end {
        let Some(&byte) = bytes.get(at) else { break };
        if !byte.is_ascii_alphanumeric() && byte != b'_' {
            at += 1;
            continue;
        }
        let start = at;
        while at < range.end {
            let Some(&byte) = bytes.get(at) else { break };
            let next = bytes.get(at + 1).filter(|_| at + 1 < range.end);
            let in_number = (byte == b'.' || byte == b',')
                && at > start
                && bytes.get(at - 1).is_some_and(u8::is_ascii_digit)
                && next.is_some_and(u8::is_ascii_digit);
            if byte.is_ascii_alphanumeric() || byte == b'_' || in_number {
                at += 1;
            } else {
                break;
            }
        }
        let end = at;
        let mut possessive = false;
        if bytes.get(at) == Some(&b'\'') && at < range.end {
            possessive = true;
            at += 1;
            if bytes.get(at) == Some(&b's') && at < range.end {
                at += 1;
            }
        }
        let gap = gap(text.get(gap_start..start).unwrap_or_default());
        tokens.push(Token { start, end, gap, possessive });
        gap_start = at;
    }
    tokens
}

fn gap(between: &str) -> Gap {
    let mut gap = Gap::Space;
    for byte in between.bytes() {
        let one = match byte {
            b' ' | b'\n' | b'\t' | b'\r' => continue,
            b';' => return Gap::Semicolon,
            b',' => Gap::Comma,
            b'-' => Gap::Hyphen,
            b'(' | b')' | b'[' | b']' | b'"' | b'\'' => Gap::Bracket,
            _ => Gap::Mark,
        };
        // A comma parts more than a bracket or a hyphen.
        if gap != Gap::Comma {
            gap = one;
        }
    }
    gap
}

#[cfg(test)]
mod tests {
    use super::*;

    const LIST: &str = "term,slot,variants,source\n\
        chest pain,Symptom-Name,,clinical english\n\
        pain,Symptom-Name,ache|aching,clinical english\n\
        chest,Symptom-Position,,anatomy\n\
        red,Symptom-Color,,clinical english\n\
        red blood cell,-,rbc,clinical english\n\
        allergy,Allergic-History,,clinical english\n\
        night sweat,Symptom-Name,,clinical english\n";

    fn found(text: &str) -> Vec<(String, Vec<&'static str>)> {
        let terms = Terms::parse(LIST).unwrap();
        let tokens = tokens(text, 0..text.len());
        terms
            .mentions(text, &tokens)
            .into_iter()
            .map(|mention| {
                let range = tokens[mention.tokens.start].start..tokens[mention.tokens.end - 1].end;
                let slots = Slot::ALL.iter().filter(|slot| mention.slots.has(**slot)).map(|slot| slot.as_str());
                (text[range].to_owned(), slots.collect())
            })
            .collect()
    }

    #[test]
    fn terms_are_found_by_words() {
        let words = |text| found(text).into_iter().map(|(word, _)| word).collect::<Vec<_>>();
        assert_eq!(words("chest pains, night-sweats"), ["chest pains", "chest", "pains", "night-sweats"]);
        assert_eq!(words("red blood cells are red"), ["red"]);
        assert_eq!(words("the chest, pain"), ["chest", "pain"]);
        assert_eq!(words("painful chests"), ["chests"]);
    }

    #[test]
    fn numbers_and_possessives_are_tokens() {
        let text = "father's 38.9, 1,000 o'clock";
        let words: Vec<&str> = tokens(text, 0..text.len()).iter().map(|token| &text[token.start..token.end]).collect();
        assert_eq!(words, ["father", "38.9", "1,000", "o", "clock"]);
    }

    #[test]
    fn faults_name_the_line() {
        for (row, problem) in [
            ("pain,Symptom-Nam,,x", "is no slot"),
            ("Pain,Symptom-Name,,x", "lower-case"),
            ("pain  now,Symptom-Name,,x", "single spaces"),
            ("pain,Symptom-Name,,", "source"),
            ("pain,Symptom-Name,pain,x", "twice"),
        ] {
            let message = Terms::parse(&format!("term,slot,variants,source\n{row}\n")).err().unwrap().to_string();
            assert!(message.contains(problem) && message.contains("line 2"), "{message}");
        }
    }
}
