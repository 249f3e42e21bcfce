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
mod tests;
