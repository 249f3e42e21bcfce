//! Who is said to have what, and whether: scopes of negation, uncertainty, history and experiencer in clinical English.
//!
//! The method is that of ConText (Harkema, Dowling, Thornblade, Chapman 2009, "ConText: an algorithm for determining
//! negation, experiencer, and temporal status from clinical reports"; NegEx, Chapman et al. 2001): a cue opens a scope, a
//! terminator closes it, a pseudo-cue hides the cue it contains. The words come from a file
//! (`pipelines/lexicon/context.toml`). Two things are added, because vignettes are prose and not dictated notes: a scope
//! goes on over the members of a list but ends at the comma or "and" behind which a clause with its own verb or subject
//! begins; and a relative has what follows only behind a verb of having, so that one who brings or reports the patient
//! is none.
//!
//! A text is read once, word by word, and no scope is longer than a fixed number of words: time is linear.

use std::collections::{HashMap, HashSet};
use std::ops::{BitOr, BitOrAssign, Range};

use serde::Deserialize;
use thiserror::Error;

/// What is wrong with a file of cues.
#[derive(Debug, Error)]
pub enum ContextError {
    /// No TOML, an unknown or missing key, or a value of the wrong kind; the message names the key.
    #[error("context cues: {0}")]
    Toml(#[from] toml::de::Error),
    /// A version that this program does not read.
    #[error("context cues: version: {0} is not known, it must be 1")]
    Version(u32),
    /// A list without terms.
    #[error("context cues: {key}: the list is empty")]
    Empty {
        /// Dotted path of the list.
        key: &'static str,
    },
    /// A term that can never match, or twice the same.
    #[error("context cues: {key}: {term:?}: {problem}")]
    Term {
        /// Dotted path of the list.
        key: &'static str,
        /// As written in the file.
        term: String,
        /// Why it is refused.
        problem: &'static str,
    },
}

/// Who has a condition.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Experiencer {
    /// The person the text is about.
    #[default]
    Patient,
    /// A relative.
    Family,
    /// Anybody else: a friend, a spouse, a contact.
    Other,
}

/// What the text says about a range of it.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Modifiers {
    /// Said not to be so.
    pub negated: bool,
    /// Only possible, suspected or to be ruled out.
    pub uncertain: bool,
    /// Of an earlier time than the illness at hand.
    pub historical: bool,
    /// Who has it.
    pub experiencer: Experiencer,
}

/// Longest scope, in words. It bounds the time; a list in a vignette is shorter.
const SCOPE_WORDS: usize = 60;
/// Words read behind a person for the verb that gives him a condition.
const PERSON_WORDS: usize = 6;

/// The lists that a word or phrase stands in, as a set of bits.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
struct Roles(u32);

impl Roles {
    const NEGATES_BEFORE: Self = Self(1);
    const NEGATES_AFTER: Self = Self(1 << 1);
    const NEGATES_NEXT: Self = Self(1 << 2);
    const DOUBTS_BEFORE: Self = Self(1 << 3);
    const DOUBTS_AFTER: Self = Self(1 << 4);
    const PAST_BEFORE: Self = Self(1 << 5);
    const PAST_AROUND: Self = Self(1 << 6);
    const FAMILY_HISTORY: Self = Self(1 << 7);
    /// Only hides the shorter terms inside.
    const PSEUDO: Self = Self(1 << 8);
    const TERMINATOR: Self = Self(1 << 9);
    const OPENER: Self = Self(1 << 10);
    const VERB: Self = Self(1 << 11);
    const PRONOUN: Self = Self(1 << 12);
    const AND: Self = Self(1 << 13);
    const OR: Self = Self(1 << 14);
    const FILLER: Self = Self(1 << 15);
    const FAMILY: Self = Self(1 << 16);
    const OTHER: Self = Self(1 << 17);
    const BEARS: Self = Self(1 << 18);
    const TELLS: Self = Self(1 << 19);
    const COMPANION: Self = Self(1 << 20);
    const HOLDER: Self = Self(1 << 21);
    const DETERMINER: Self = Self(1 << 22);
    const LINK: Self = Self(1 << 23);
    const NUMBER: Self = Self(1 << 24);
    const NEGATES_CLOSING: Self = Self(1 << 25);

    const PERSON: Self = Self(Self::FAMILY.0 | Self::OTHER.0);
    /// Verbs, and cues that hold one.
    const PREDICATE: Self = Self(Self::VERB.0 | Self::NEGATES_AFTER.0 | Self::DOUBTS_AFTER.0);
    const CUE: Self = Self(
        Self::NEGATES_BEFORE.0
            | Self::NEGATES_AFTER.0
            | Self::NEGATES_NEXT.0
            | Self::DOUBTS_BEFORE.0
            | Self::DOUBTS_AFTER.0
            | Self::PAST_BEFORE.0
            | Self::PAST_AROUND.0
            | Self::FAMILY_HISTORY.0
            | Self::NEGATES_CLOSING.0,
    );

    fn has(self, any_of: Self) -> bool {
        self.0 & any_of.0 != 0
    }
}

impl BitOr for Roles {
    type Output = Self;

    fn bitor(self, other: Self) -> Self {
        Self(self.0 | other.0)
    }
}

impl BitOrAssign for Roles {
    fn bitor_assign(&mut self, other: Self) {
        self.0 |= other.0;
    }
}

/// Reads a file of cues: one struct of word lists for each section, and one function that gives every list with its key
/// and role.
macro_rules! sections {
    ($($name:ident $section:literal { $($list:ident: $role:ident),+ $(,)? })+) => {$(
        #[derive(Deserialize)]
        #[serde(deny_unknown_fields)]
        struct $name { $($list: Vec<String>),+ }

        impl $name {
            fn lists(&self) -> Vec<(&'static str, &[String], Roles)> {
                vec![$((concat!($section, ".", stringify!($list)), self.$list.as_slice(), Roles::$role)),+]
            }
        }
    )+};
}

sections! {
    Terminators "terminators" {
        words: TERMINATOR, openers: OPENER, verbs: VERB, pronouns: PRONOUN, and: AND, or: OR, fillers: FILLER,
    }
    Negation "negation" {
        before: NEGATES_BEFORE, after: NEGATES_AFTER, closing: NEGATES_CLOSING, next_word: NEGATES_NEXT, pseudo: PSEUDO,
    }
    Uncertainty "uncertainty" { before: DOUBTS_BEFORE, after: DOUBTS_AFTER, pseudo: PSEUDO }
    History "history" { before: PAST_BEFORE, around: PAST_AROUND, pseudo: PSEUDO, numbers: NUMBER }
    People "experiencer" {
        family_history: FAMILY_HISTORY, family: FAMILY, other: OTHER, bears: BEARS, tells: TELLS, companions: COMPANION,
        holders: HOLDER, determiners: DETERMINER, links: LINK, pseudo: PSEUDO,
    }
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct ContextFile {
    version: u32,
    terminators: Terminators,
    negation: Negation,
    uncertainty: Uncertainty,
    history: History,
    experiencer: People,
}

/// A term behind its first word.
#[derive(Clone, Debug)]
struct Phrase {
    rest: Vec<String>,
    roles: Roles,
}

/// A checked file of cues, as a table by the first word of each term.
#[derive(Clone, Debug)]
pub struct ContextRules {
    /// The longest phrases first. Terms that begin with a number stand under [`ANY_NUMBER`].
    phrases: HashMap<String, Vec<Phrase>>,
}

/// Stands for any number in a term.
const ANY_NUMBER: &str = "#";

impl ContextRules {
    /// Reads and checks the text of a TOML file of cues.
    pub fn parse(toml_text: &str) -> Result<Self, ContextError> {
        let file: ContextFile = toml::from_str(toml_text)?;
        if file.version != 1 {
            return Err(ContextError::Version(file.version));
        }
        let sections = [
            file.terminators.lists(),
            file.negation.lists(),
            file.uncertainty.lists(),
            file.history.lists(),
            file.experiencer.lists(),
        ];
        let mut roles: HashMap<Vec<String>, Roles> = HashMap::new();
        for (key, terms, role) in sections.into_iter().flatten() {
            if terms.is_empty() {
                return Err(ContextError::Empty { key });
            }
            let mut seen = HashSet::new();
            for term in terms {
                let phrases = checked(term).and_then(|phrases| {
                    let new = phrases.iter().all(|phrase| seen.insert(phrase.clone()));
                    if new { Ok(phrases) } else { Err("the term is given twice") }
                });
                let refuse = |problem| ContextError::Term { key, term: term.clone(), problem };
                for phrase in phrases.map_err(refuse)? {
                    let entry = roles.entry(phrase).or_default();
                    *entry |= role;
                }
            }
        }
        let mut phrases: HashMap<String, Vec<Phrase>> = HashMap::new();
        for (words, roles) in roles {
            let mut words = words.into_iter();
            if let Some(first) = words.next() {
                phrases.entry(first).or_default().push(Phrase { rest: words.collect(), roles });
            }
        }
        for sharing_first in phrases.values_mut() {
            sharing_first.sort_by(|a, b| b.rest.len().cmp(&a.rest.len()).then_with(|| a.rest.cmp(&b.rest)));
        }
        Ok(Self { phrases })
    }

    /// The scopes in `text`, lower case, whose sentences are the byte ranges given, in order.
    ///
    /// Written for a copy of a text with one ASCII byte for each character, so that offsets are positions; any other
    /// text is read without fault, its letters beyond ASCII as letters that no cue has. What lies outside the sentences has
    /// no modifiers; ranges that are out of order, overlap or end outside the text are cut.
    pub fn scopes(&self, text: &str, sentences: &[Range<usize>]) -> Scopes {
        let mut scopes = Scopes { words: Vec::with_capacity(text.len() / 5), cues: Vec::new() };
        let mut read_until = 0;
        let mut tokens = Vec::new();
        for sentence in sentences {
            let range = sentence.start.max(read_until)..sentence.end.min(text.len());
            if range.is_empty() {
                continue;
            }
            read_until = range.end;
            tokenize(text, range, &mut tokens);
            self.find_roles(text, &mut tokens);
            scopes.read_sentence(&tokens);
        }
        scopes
    }

    /// Gives each token the roles of the longest term that begins there; tokens inside a longer term have none.
    fn find_roles(&self, text: &str, tokens: &mut [Token]) {
        let mut position = 0;
        while position < tokens.len() {
            let (length, roles) = self.longest(text, tokens, position);
            for (offset, token) in tokens.iter_mut().skip(position).take(length).enumerate() {
                token.roles = if offset == 0 { roles } else { Roles::default() };
                token.phrase_words = if offset == 0 { length } else { 0 };
                token.in_cue = roles.has(Roles::CUE);
            }
            position += length;
        }
    }

    /// Words and roles of the longest term at `position`.
    fn longest(&self, text: &str, tokens: &[Token], position: usize) -> (usize, Roles) {
        let Some(first) = tokens.get(position) else { return (1, Roles::default()) };
        let word = text.get(first.start..first.end).unwrap_or_default();
        let mut longest = (1, Roles::default());
        let own = self.phrases.get(word);
        let of_number = if self.is_number(word) { self.phrases.get(ANY_NUMBER) } else { None };
        for phrase in own.into_iter().chain(of_number).flatten() {
            let length = phrase.rest.len() + 1;
            if length < longest.0 {
                continue;
            }
            let matches = phrase.rest.iter().enumerate().all(|(offset, expected)| {
                tokens.get(position + 1 + offset).is_some_and(|token| {
                    let found = text.get(token.start..token.end).unwrap_or_default();
                    token.gap <= Gap::Joint && (found == expected || expected == ANY_NUMBER && self.is_number(found))
                })
            });
            if matches {
                longest = if length > longest.0 { (length, phrase.roles) } else { (length, longest.1 | phrase.roles) };
            }
        }
        longest
    }

    fn is_number(&self, word: &str) -> bool {
        word.starts_with(|c: char| c.is_ascii_digit())
            || self
                .phrases
                .get(word)
                .is_some_and(|all| all.last().is_some_and(|p| p.rest.is_empty() && p.roles.has(Roles::NUMBER)))
    }
}

/// The phrases a term stands for, each word for word as the text is read.
fn checked(term: &str) -> Result<Vec<Vec<String>>, &'static str> {
    if term.trim().is_empty() {
        return Err("the term is empty");
    }
    if term.split(' ').any(str::is_empty) {
        return Err("the term has surplus white space");
    }
    let mut phrases: Vec<Vec<String>> = vec![Vec::new()];
    for word in term.split(' ') {
        let choices: Vec<&str> = word.split('|').collect();
        let readable = |choice: &&str| {
            *choice == ANY_NUMBER
                || choice.bytes().any(|byte| byte.is_ascii_alphanumeric())
                    && choice.bytes().all(|byte| byte.is_ascii_lowercase() || byte.is_ascii_digit() || byte == b'\'')
                    && !choice.ends_with("'s")
        };
        if !choices.iter().all(readable) {
            return Err("a word must be lower-case ASCII letters, digits and apostrophes, without 's");
        }
        phrases = phrases
            .iter()
            .flat_map(|begun| {
                choices.iter().map(move |choice| {
                    let mut longer = begun.clone();
                    longer.push((*choice).to_owned());
                    longer
                })
            })
            .collect();
    }
    Ok(phrases)
}

/// What stands between a word and the one before it.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
enum Gap {
    /// White space, brackets, quotes or other signs that part nothing.
    Space,
    /// A hyphen or slash directly between.
    Joint,
    /// A bracket, quote or stop: the words are neighbours but form no term.
    Sign,
    /// A comma or a dash.
    Comma,
    Colon,
    /// A semicolon, question or exclamation mark, or an empty line.
    Break,
}

/// One word of a sentence.
#[derive(Clone, Debug)]
struct Token {
    start: usize,
    end: usize,
    /// To the word before.
    gap: Gap,
    roles: Roles,
    /// Words of the term that begins here; 0 inside a term.
    phrase_words: usize,
    /// Part of a cue.
    in_cue: bool,
    /// Behind the word stands "'s".
    is_possessive: bool,
}

fn is_word_byte(byte: u8) -> bool {
    byte.is_ascii_alphanumeric() || byte >= 0x80 || byte == b'_'
}

/// The words of `range`, into `tokens`, which is emptied first.
fn tokenize(text: &str, range: Range<usize>, tokens: &mut Vec<Token>) {
    tokens.clear();
    let end = range.end;
    let bytes = text.as_bytes().get(..end).unwrap_or_default();
    let mut position = range.start;
    let mut gap_start = position;
    while let Some(&byte) = bytes.get(position) {
        if !is_word_byte(byte) {
            position += 1;
            continue;
        }
        let start = position;
        while let Some(&byte) = bytes.get(position) {
            let joins = byte == b'\'' && bytes.get(position + 1).is_some_and(|next| next.is_ascii_alphabetic());
            if !is_word_byte(byte) && !joins {
                break;
            }
            position += 1;
        }
        let gap = if tokens.is_empty() { Gap::Space } else { gap(bytes, gap_start..start) };
        let is_possessive = bytes.get(start..position).is_some_and(|word| word.len() > 2 && word.ends_with(b"'s"));
        let word_end = if is_possessive { position - 2 } else { position };
        let (roles, phrase_words, in_cue) = (Roles::default(), 1, false);
        tokens.push(Token { start, end: word_end, gap, roles, phrase_words, in_cue, is_possessive });
        gap_start = position;
    }
}

fn gap(bytes: &[u8], range: Range<usize>) -> Gap {
    let between = bytes.get(range.clone()).unwrap_or_default();
    let is_digit = |position: Option<usize>| {
        position.and_then(|position| bytes.get(position)).is_some_and(|byte| byte.is_ascii_digit())
    };
    match between {
        b" " | b"\n" => return Gap::Space,
        b"-" | b"/" => return Gap::Joint,
        // A decimal, or a separator of thousands.
        b"," | b"." | b":" if is_digit(range.start.checked_sub(1)) && is_digit(Some(range.end)) => return Gap::Joint,
        _ => {}
    }
    let newlines = between.iter().filter(|byte| **byte == b'\n').count();
    let widest = between.iter().map(|byte| match byte {
        b',' | b'-' => Gap::Comma,
        b':' => Gap::Colon,
        b';' | b'?' | b'!' => Gap::Break,
        byte if byte.is_ascii_whitespace() => Gap::Space,
        _ => Gap::Sign,
    });
    let widest = widest.max().unwrap_or(Gap::Space);
    if newlines > 1 { Gap::Break } else { widest }
}

/// How a scope reads the words behind its cue.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Subject {
    /// A verb behind "and" opens a new clause: "no fever and has a cough".
    New,
    /// A verb behind "and" goes on speaking of the same person: "his brother is well and has asthma".
    Kept,
}

/// The end of the scope that begins at token `from`.
fn scope_end(tokens: &[Token], from: usize, subject: Subject) -> usize {
    let limit = tokens.len().min(from.saturating_add(SCOPE_WORDS));
    // Where the last member of a list, or a clause, began; the word behind its comma and "and"; whether by "or".
    let mut border: Option<(usize, usize, Roles)> = None;
    let mut named = false;
    for (position, token) in tokens.iter().enumerate().take(limit).skip(from) {
        let parts = if position == from { token.gap == Gap::Break } else { token.gap >= Gap::Colon };
        if parts || token.roles.has(Roles::TERMINATOR) {
            return border.filter(|(_, behind, _)| *behind == position).map_or(position, |(start, ..)| start);
        }
        if position > from && token.gap == Gap::Comma {
            border = Some((position, position, Roles::default()));
        }
        if token.roles.has(Roles::AND | Roles::OR) {
            let start = border.filter(|(_, behind, _)| *behind == position).map_or(position, |(start, ..)| start);
            border = Some((start, position + token.phrase_words.max(1), token.roles));
            continue;
        }
        let directly_behind = border.is_some_and(|(_, behind, _)| behind == position);
        let by_or = border.is_some_and(|(.., roles)| roles.has(Roles::OR));
        let by_and = border.is_some_and(|(.., roles)| roles.has(Roles::AND));
        let goes_on = subject == Subject::Kept && directly_behind && by_and;
        let is_predicate = token.roles.has(Roles::PREDICATE);
        let cut = border.map_or(position, |(start, ..)| start);
        // Behind the cue itself a verb or pronoun belongs to it: "never had", "denies that she has", "years ago, he had".
        let begun = named || directly_behind;
        if begun && token.roles.has(Roles::PRONOUN) {
            return cut;
        }
        if directly_behind && token.roles.has(Roles::OPENER) && !by_or && !goes_on {
            return cut;
        }
        if begun && is_predicate && !goes_on {
            return if by_or { position } else { cut };
        }
        let says_little = is_predicate || token.roles.has(Roles::PRONOUN | Roles::FILLER);
        named |= !says_little && !token.in_cue;
    }
    limit
}

/// The start of the scope that ends before token `to`. `all` members of a list belong to it even if a verb opens the
/// list ("was treated for asthma and eczema 5 years ago").
fn scope_start(tokens: &[Token], to: usize, all: bool) -> usize {
    let floor = to.saturating_sub(SCOPE_WORDS);
    let mut border = None;
    for (position, token) in tokens.iter().enumerate().take(to).skip(floor).rev() {
        let next = position + token.phrase_words.max(1);
        if token.roles.has(Roles::TERMINATOR | Roles::NEGATES_AFTER | Roles::DOUBTS_AFTER) {
            return next.min(to);
        }
        if token.roles.has(Roles::VERB | Roles::PRONOUN) {
            return if all { next } else { border.unwrap_or(next) }.min(to);
        }
        if token.roles.has(Roles::AND | Roles::OR) {
            border = border.or(Some(next));
        }
        if token.gap >= Gap::Colon {
            return position;
        }
        if token.gap == Gap::Comma {
            border = border.or(Some(position));
        }
    }
    floor
}

/// What is known of one word.
#[derive(Clone, Copy, Debug)]
struct Word {
    start: usize,
    end: usize,
    in_cue: bool,
    uncertain: bool,
    historical: bool,
    /// Index of the cue that negates it, and of the one that gives it to somebody else.
    negated_by: Option<u32>,
    other_by: Option<u32>,
    experiencer: Experiencer,
}

/// What a text says about each of its words.
#[derive(Clone, Debug)]
pub struct Scopes {
    /// In the order of the text.
    words: Vec<Word>,
    /// Byte ranges of negating cues and of words for people.
    cues: Vec<Range<usize>>,
}

impl Scopes {
    /// What is said about a byte range of the text: a modifier holds if it holds for every word of the range that is no
    /// cue itself. A range without such words has no modifiers.
    pub fn at(&self, range: &Range<usize>) -> Modifiers {
        let mut words = self.words_in(range).filter(|word| !word.in_cue);
        let of = |word: &Word| Modifiers {
            negated: word.negated_by.is_some(),
            uncertain: word.uncertain,
            historical: word.historical,
            experiencer: word.experiencer,
        };
        let Some(first) = words.next().map(of) else { return Modifiers::default() };
        words.map(of).fold(first, |all, word| Modifiers {
            negated: all.negated && word.negated,
            uncertain: all.uncertain && word.uncertain,
            historical: all.historical && word.historical,
            experiencer: if all.experiencer == word.experiencer { all.experiencer } else { Experiencer::Patient },
        })
    }

    /// The byte range of the cue that negates the range; the nearest to its first word if several do. `None` if
    /// [`Scopes::at`] says that it is not negated.
    pub fn negation_at(&self, range: &Range<usize>) -> Option<Range<usize>> {
        if !self.at(range).negated {
            return None;
        }
        let cue = self.words_in(range).find(|word| !word.in_cue)?.negated_by?;
        self.cues.get(cue as usize).cloned()
    }

    /// The byte range of the word or phrase that names who has it, where that is not the patient.
    pub fn experiencer_at(&self, range: &Range<usize>) -> Option<Range<usize>> {
        if self.at(range).experiencer == Experiencer::Patient {
            return None;
        }
        let cue = self.words_in(range).find(|word| !word.in_cue)?.other_by?;
        self.cues.get(cue as usize).cloned()
    }

    fn words_in(&self, range: &Range<usize>) -> impl Iterator<Item = &Word> {
        let (start, end) = (range.start, range.end);
        let first = self.words.partition_point(|word| word.end <= start);
        self.words.iter().skip(first).take_while(move |word| word.start < end)
    }

    fn read_sentence(&mut self, tokens: &[Token]) {
        let base = self.words.len();
        self.words.extend(tokens.iter().map(|token| Word {
            start: token.start,
            end: token.end,
            in_cue: token.in_cue,
            uncertain: false,
            historical: false,
            negated_by: None,
            other_by: None,
            experiencer: Experiencer::Patient,
        }));
        for (position, token) in tokens.iter().enumerate() {
            if token.roles.has(Roles::CUE) {
                self.open_scopes(tokens, base, position, token);
            }
            // "Her mother's sister" is the sister, "the family's heater" nobody.
            if token.roles.has(Roles::PERSON) && !token.is_possessive {
                self.read_person(tokens, base, position, token);
            }
        }
    }

    fn open_scopes(&mut self, tokens: &[Token], base: usize, position: usize, token: &Token) {
        let behind = position + token.phrase_words;
        let forward = behind..scope_end(tokens, behind, Subject::New);
        let roles = token.roles;
        let closes = roles.has(Roles::NEGATES_CLOSING)
            && tokens.get(behind).is_none_or(|next| next.gap >= Gap::Comma && next.gap != Gap::Colon);
        let negates = Roles::NEGATES_BEFORE | Roles::NEGATES_AFTER | Roles::NEGATES_NEXT | Roles::NEGATES_CLOSING;
        if roles.has(negates) {
            let cue = self.push_cue(tokens, position);
            if roles.has(Roles::NEGATES_BEFORE) && !closes {
                self.mark(base, forward.clone(), |word| word.negated_by = cue);
            }
            if roles.has(Roles::NEGATES_NEXT) && !forward.is_empty() {
                self.mark(base, behind..behind + 1, |word| word.negated_by = cue);
            }
            if roles.has(Roles::NEGATES_AFTER) || closes {
                self.mark(base, scope_start(tokens, position, false)..position, |word| word.negated_by = cue);
            }
        }
        if roles.has(Roles::DOUBTS_BEFORE) {
            self.mark(base, forward.clone(), |word| word.uncertain = true);
        }
        if roles.has(Roles::DOUBTS_AFTER) {
            self.mark(base, scope_start(tokens, position, false)..position, |word| word.uncertain = true);
        }
        if roles.has(Roles::PAST_BEFORE | Roles::PAST_AROUND) {
            self.mark(base, forward.clone(), |word| word.historical = true);
        }
        if roles.has(Roles::PAST_AROUND) {
            self.mark(base, scope_start(tokens, position, true)..position, |word| word.historical = true);
        }
        if roles.has(Roles::FAMILY_HISTORY) {
            self.give_to(Experiencer::Family, tokens, base, position, forward);
        }
    }

    /// Finds what a word for a person has, behind a verb of having or before "in".
    fn read_person(&mut self, tokens: &[Token], base: usize, position: usize, token: &Token) {
        let who = if token.roles.has(Roles::FAMILY) { Experiencer::Family } else { Experiencer::Other };
        // Other people and "and" may stand between: "with his mother and his younger brother".
        let passed = Roles::DETERMINER | Roles::PERSON | Roles::AND;
        let mut before = position;
        let mut near_gap = token.gap;
        let mut preceding = Roles::default();
        while before > position.saturating_sub(2 * PERSON_WORDS) && near_gap <= Gap::Sign {
            before -= 1;
            let Some(previous) = tokens.get(before) else { break };
            near_gap = previous.gap;
            preceding = previous.roles;
            let is_inside = previous.phrase_words == 0;
            if preceding.has(Roles::COMPANION | Roles::HOLDER) || !preceding.has(passed) && !is_inside {
                break;
            }
        }
        if preceding.has(Roles::COMPANION) {
            return;
        }
        if let Some(behind) = verb_of_having(tokens, position + token.phrase_words) {
            self.give_to(who, tokens, base, position, behind..scope_end(tokens, behind, Subject::Kept));
        } else if preceding.has(Roles::HOLDER) {
            self.give_to(who, tokens, base, position, scope_start(tokens, before, false)..before);
        }
    }

    fn give_to(&mut self, who: Experiencer, tokens: &[Token], base: usize, position: usize, scope: Range<usize>) {
        let cue = self.push_cue(tokens, position);
        self.mark(base, scope, |word| {
            word.experiencer = who;
            word.other_by = cue;
        });
    }

    /// The index of the cue that begins at `position`.
    fn push_cue(&mut self, tokens: &[Token], position: usize) -> Option<u32> {
        let first = tokens.get(position)?;
        let last = tokens.get(position + first.phrase_words.saturating_sub(1))?;
        let index = u32::try_from(self.cues.len()).ok()?;
        self.cues.push(first.start..last.end);
        Some(index)
    }

    fn mark(&mut self, base: usize, scope: Range<usize>, change: impl Fn(&mut Word)) {
        self.words.iter_mut().skip(base + scope.start).take(scope.len()).for_each(change);
    }
}

/// The token behind the verb that gives a person a condition, if one follows at `from` and the person is no witness.
fn verb_of_having(tokens: &[Token], from: usize) -> Option<usize> {
    let mut position = from;
    let last = from + PERSON_WORDS;
    while position < last {
        let token = tokens.get(position)?;
        if token.gap >= Gap::Colon || token.roles.has(Roles::PRONOUN | Roles::TELLS) {
            return None;
        }
        if token.roles.has(Roles::BEARS) {
            break;
        }
        if token.roles.has(Roles::TERMINATOR | Roles::VERB) && !token.roles.has(Roles::LINK) {
            return None;
        }
        position += token.phrase_words.max(1);
    }
    let bearing = tokens.get(position).filter(|token| token.roles.has(Roles::BEARS))?;
    let behind = position + bearing.phrase_words;
    // "Has also noticed", "is very worried".
    let tells = tokens.iter().skip(behind).take(3).take_while(|token| token.gap <= Gap::Sign);
    let mut tells = tells.take_while(|token| !token.roles.has(Roles::TERMINATOR | Roles::AND));
    if tells.any(|token| token.roles.has(Roles::TELLS)) { None } else { Some(behind) }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;
    use crate::text::sentences::sentences;

    const CUES: &str = include_str!("../../pipelines/lexicon/context.toml");

    fn rules() -> ContextRules {
        ContextRules::parse(CUES).unwrap()
    }

    const PLAIN: Modifiers =
        Modifiers { negated: false, uncertain: false, historical: false, experiencer: Experiencer::Patient };

    /// The words of `text` that have a modifier, joined; cues have none.
    fn words_with(text: &str, holds: fn(Modifiers) -> bool) -> String {
        let folded = text.to_lowercase();
        let scopes = rules().scopes(&folded, &sentences(text));
        let held = scopes.words.iter().filter(|word| !word.in_cue && holds(scopes.at(&(word.start..word.end))));
        held.map(|word| &folded[word.start..word.end]).collect::<Vec<_>>().join(" ")
    }

    fn check(cases: &[(&str, &str)], holds: fn(Modifiers) -> bool) {
        let wrong: Vec<_> = cases
            .iter()
            .map(|(text, expected)| (text, words_with(text, holds), *expected))
            .filter(|(_, found, expected)| found != expected)
            .collect();
        assert!(wrong.is_empty(), "(text, found, expected): {wrong:#?}");
    }

    #[test]
    fn negation() {
        check(
            &[
                ("He has had no fever, chills, or night sweats.", "fever chills or night sweats"),
                ("She denies chest pain but reports cough.", "chest pain"),
                ("He walks without pain.", "pain"),
                ("There is no rash or swelling. He has a cough.", "rash or swelling"),
                ("She never smoked.", "smoked"),
                ("He has never smoked and drinks two beers.", "smoked"),
                ("Breath sounds are absent over the left lung.", "breath sounds"),
                ("The pain is not associated with meals.", "meals"),
                ("There is no change in weight.", "change in weight"),
                ("She no longer has headaches.", "has headaches"),
                ("There is no increase in urinary frequency.", "increase in urinary frequency"),
                ("He not only coughs.", ""),
                ("He swallows without difficulty.", ""),
                ("There were no further episodes.", ""),
                ("Gram-negative rods are seen.", ""),
                ("Myocardial infarction is ruled out.", "myocardial infarction"),
                ("A urine culture was negative.", "a urine culture"),
                ("A urine culture was negative for Escherichia coli.", "escherichia coli"),
                ("No nausea, vomiting, or diarrhea. He has a rash.", "nausea vomiting or diarrhea"),
                ("He has no fever, and he has a cough.", "fever"),
                ("He has no history of serious illness and takes no medications.", "serious illness medications"),
                ("She does not smoke and drinks one glass of wine.", "smoke"),
                ("He does not smoke, drink alcohol, or use illicit drugs.", "smoke drink alcohol or use illicit drugs"),
                (
                    "There has been no trauma, dysuria, or urethral discharge, and he has never been sexually active.",
                    "trauma dysuria or urethral discharge been sexually active",
                ),
                ("No fever, pulse is 80/min.", "fever"),
                ("No nausea, vomiting, or diarrhea was noted.", "nausea vomiting or diarrhea"),
                ("No murmurs are heard, and the lungs are clear.", "murmurs"),
                ("He has a cough, and fever is absent.", "fever"),
                ("Fever, chills, and cough are absent.", "fever chills and cough"),
                ("He has a cough and rales are not heard.", "rales"),
                ("The abdomen is soft without tenderness, with normal bowel sounds.", "tenderness"),
                ("The abdomen is soft, non-tender and distended.", "tender"),
                ("She denies ever having had a seizure.", "ever having had a seizure"),
                ("He denies fever, chills, and night sweats.", "fever chills and night sweats"),
                ("A woman without fever who has a cough.", "fever"),
                ("Pneumonia cannot be ruled out.", ""),
                ("The vertebra is not palpable; the spleen is.", "the vertebra"),
                ("Leukocyte count of 3,500 with no blasts: anemia is present.", "blasts"),
                ("She doesn't have pain.", "have pain"),
                ("There is no evidence of infection.", "infection"),
                ("Stroking the thigh does not elicit a reflex on the left.", "elicit a reflex on the left"),
                ("Elevation does not relieve the pain.", ""),
                ("He has not passed meconium.", "passed meconium"),
                ("Neither cough nor fever is present.", "cough fever"),
                ("Rales and wheezes are absent.", "rales and wheezes"),
                ("Fever absent, cough present.", "fever"),
                ("Fever: no. Cough: yes.", "fever"),
                ("Allergies: none.", "allergies"),
                ("He has rales; ketones negative.", "ketones"),
                ("None of these helped.", ""),
                ("No, he has fever.", ""),
            ],
            |modifiers| modifiers.negated,
        );
    }

    #[test]
    fn uncertainty() {
        check(
            &[
                ("Possible pneumonia.", "pneumonia"),
                ("He was admitted for suspected appendicitis, and he has fever.", "appendicitis"),
                ("She may have asthma.", "asthma"),
                ("A scan was done to rule out stroke.", "stroke"),
                ("Pulmonary embolism was ruled out.", ""),
                ("Malignancy is suspected.", "malignancy"),
                ("Malignancy cannot be excluded.", "malignancy"),
                ("What is the most likely diagnosis?", ""),
                ("He should return as soon as possible.", ""),
            ],
            |modifiers| modifiers.uncertain,
        );
    }

    #[test]
    fn history() {
        check(
            &[
                ("She has a history of hypertension and asthma.", "hypertension and asthma"),
                ("A man with a history of diabetes presents with fever.", "diabetes"),
                ("A woman with a history of gout, who has fever.", "gout"),
                ("She was previously treated for gout.", "treated for gout"),
                ("He had asthma as a child and has a cough.", "asthma"),
                ("He had an appendectomy 2 years ago.", "an appendectomy"),
                ("Two years ago, he had an appendectomy and now has pain.", "he had an appendectomy"),
                ("He has a 5-month history of fatigue.", ""),
                ("For the past 2 months she has had stiffness.", ""),
                ("A previously healthy boy has fever.", ""),
                ("The cough began 3 months ago.", ""),
                ("He has no history of asthma.", "asthma"),
                ("He is status post cholecystectomy.", "cholecystectomy"),
            ],
            |modifiers| modifiers.historical,
        );
    }

    #[test]
    fn experiencer() {
        check(
            &[
                ("His father had colon cancer.", "colon cancer"),
                ("Family history of breast cancer.", "breast cancer"),
                ("There is no family history of stroke, and he has fever.", "stroke"),
                ("A mother with diabetes.", "diabetes"),
                ("Her brother died of leukemia at the age of 5.", "leukemia"),
                ("His mother says he has fever.", ""),
                ("His mother has noticed a rash.", ""),
                ("He is brought by his mother because of fever.", ""),
                ("The boy is brought by his parents with fever and cough.", ""),
                ("He lives with his mother and has asthma.", ""),
                ("Her sister has had a similar cold.", "had a similar cold"),
                ("His father and paternal uncle died of colon cancer.", "colon cancer"),
                ("Her sister has type 1 diabetes mellitus.", "type 1 diabetes mellitus"),
                ("Breast cancer in her mother.", "breast cancer"),
                ("A history of ovarian cancer in her maternal grandmother.", "ovarian cancer"),
                ("His father has gout and he has a cough.", "gout"),
                ("His father has gout, and his mother is healthy.", "gout healthy"),
                ("His brother is 5 years old and has asthma.", "5 years old and has asthma"),
                ("A boy whose father has asthma presents with cough.", "asthma"),
                ("His mother, who has lupus, brings him because of fever.", "lupus"),
                ("She is the mother of two and has fever.", ""),
                ("A 30-year-old mother comes because of fever.", ""),
                ("Family history is significant for glaucoma.", "is significant for glaucoma"),
                ("Her mother's sister had gout.", "gout"),
                ("The family's heater was old.", ""),
                ("His father had gout at the age of 70 years.", "gout"),
                ("He came with his 44-year-old mother and had a cough.", ""),
            ],
            |modifiers| modifiers.experiencer == Experiencer::Family,
        );
        check(
            &[
                ("His roommate has had a cough.", "had a cough"),
                ("His wife reports that he snores.", ""),
                ("His wife has chlamydia.", "chlamydia"),
            ],
            |modifiers| modifiers.experiencer == Experiencer::Other,
        );
    }

    #[test]
    fn a_range_has_what_all_its_words_have() {
        let text = "he has fever with no chills or cough.";
        let scopes = rules().scopes(text, std::slice::from_ref(&(0..text.len())));
        let at = |part: &str| {
            let start = text.find(part).unwrap();
            start..start + part.len()
        };
        for (part, negated) in [
            ("fever", false),
            ("fever with no chills", false),
            ("no chills", true),
            ("chills", true),
            ("hills", true),
            ("chills or cough", true),
            ("no", false),
        ] {
            assert_eq!(scopes.at(&at(part)).negated, negated, "{part}");
            let cue = scopes.negation_at(&at(part)).map(|cue| &text[cue]);
            assert_eq!(cue, negated.then_some("no"), "{part}");
        }
        assert_eq!(scopes.at(&(90..99)), PLAIN);
        assert_eq!(scopes.at(&(5..5)), PLAIN);
        let text = "his father has gout.";
        let scopes = rules().scopes(text, std::slice::from_ref(&(0..text.len())));
        assert_eq!(scopes.experiencer_at(&(15..19)), Some(4..10));
        assert_eq!(scopes.experiencer_at(&(0..3)), None);
    }

    #[test]
    fn sentences_part_scopes_and_wrong_ranges_are_cut() {
        let text = "no fever and cough";
        let of = |sentences: &[Range<usize>]| rules().scopes(text, sentences).at(&(13..18));
        assert!(of(std::slice::from_ref(&(0..99))).negated);
        assert!(!of(&[0..8, 9..18]).negated);
        assert!(!of(&[]).negated);
        assert!(!of(&[0..3, Range { start: 9, end: 2 }]).negated);
        assert!(of(&[0..18, 9..18]).negated);
    }

    #[test]
    fn files_that_are_refused() {
        let swap = |from: &str, to: &str| {
            assert!(CUES.contains(from), "{from}");
            ContextRules::parse(&CUES.replacen(from, to, 1)).unwrap_err().to_string()
        };
        for (from, to, expected) in [
            ("version = 1", "version = 2", "version: 2 is not known"),
            ("version = 1", "version = 1\nverse = 3", "verse"),
            ("next_word", "next_words", "next_words"),
            ("[history]", "[historical]", "historical"),
            ("next_word = [\"non\"]", "next_word = []", "negation.next_word: the list is empty"),
            ("next_word = [\"non\"]", "next_word = [\"Non\"]", "negation.next_word: \"Non\": a word must be"),
            ("next_word = [\"non\"]", "next_word = [\"non  x\"]", "surplus"),
            ("next_word = [\"non\"]", "next_word = [\" \"]", "empty"),
            ("next_word = [\"non\"]", "next_word = [\"mother's\"]", "without 's"),
            ("next_word = [\"non\"]", "next_word = [\"a|b c\", \"b c\"]", "given twice"),
        ] {
            let message = swap(from, to);
            assert!(message.contains(expected), "{message}");
        }
    }

    proptest! {
        #[test]
        fn any_text_and_ranges_are_read(
            text in "\\PC{0,60}",
            cues in prop::collection::vec(prop::sample::select(vec![
                "no ", "fever", ", ", " and ", "has ", "his mother ", "in ", "is absent", "2 years ago", "; ", "é", "who ",
            ]), 0..20),
            sentences in prop::collection::vec(0..90_usize, 0..6),
            range in (0..90_usize, 0..90_usize),
        ) {
            let text = cues.concat() + &text;
            let sentences: Vec<_> = sentences.windows(2).map(|ends| ends[0]..ends[1]).collect();
            for sentences in [sentences.as_slice(), std::slice::from_ref(&(0..text.len()))] {
                let scopes = rules().scopes(&text, sentences);
                let range = range.0..range.1;
                let modifiers = scopes.at(&range);
                prop_assert_eq!(modifiers.negated, scopes.negation_at(&range).is_some());
                let is_other = modifiers.experiencer != Experiencer::Patient;
                prop_assert_eq!(is_other, scopes.experiencer_at(&range).is_some());
                for cue in &scopes.cues {
                    prop_assert!(cue.start < cue.end && cue.end <= text.len());
                }
            }
        }
    }

    #[test]
    fn text_without_stops_is_read_in_linear_time() {
        let rules = rules();
        for part in [
            "no ",
            "and ",
            "no fever ",
            "mother ",
            "is absent ",
            "in ",
            "a, ",
            "his ",
            "x",
            "no fever and has ",
            "5 years ago ",
        ] {
            let begun = std::time::Instant::now();
            let text = part.repeat(100_000 / part.len());
            rules.scopes(&text, std::slice::from_ref(&(0..text.len())));
            let taken = begun.elapsed();
            println!("{part:?}: {taken:?}");
            assert!(taken.as_millis() < 1000, "{part:?}: {taken:?}");
        }
    }
}
