//! Whether a text says what an extractor claims it says.
//!
//! Any extractor, rule or model, is judged by the same code: a value is looked for in its source text character for
//! character, then in a common spelling, then with few edits. What is found counts only if the text says it of the right
//! person and with the same polarity, and few edits count only if no number, unit, side or negation is among them: "5 g" is
//! one letter from "5 mg". Candidates may be proposed by an approximate method; only exact comparison confirms one.
//!
//! # The common spelling
//!
//! [`Normalized`] text is read as tokens: words, numbers, units and other signs. A hyphen between two words is a space;
//! a number and its unit may be written together; numbers are compared without separators of thousands and idle zeros; a
//! unit has one spelling (mm Hg = mmHg, mcg = µg, degrees Celsius = °C = C); "non-tender" is "nontender". Nothing is stemmed:
//! "fevers" is not "fever".

use std::collections::HashMap;
use std::ops::Range;

use serde::{Deserialize, Serialize};

use crate::record::slots::{Conflict, Grounding};
use crate::text::context::{ContextRules, Experiencer, Scopes};
use crate::text::differences::Difference;
use crate::text::normalize::{Normalized, look_alike};
use crate::text::sentences::sentences;

/// The judgement on one value.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Verdict {
    /// How well the value is grounded.
    pub grounding: Grounding,
    /// Where the value is or, if contradicted, what it contradicts: Unicode scalar values of the original text, counted from
    /// 0, the end excluded, never empty. `None` exactly if not found.
    pub range: Option<Range<u32>>,
    /// Edits between value and text in their common spelling, in characters; summed over the parts of a list. `Some`
    /// exactly if fuzzy.
    pub distance: Option<u32>,
    /// `Some` exactly if contradicted.
    pub conflict: Option<Conflict>,
}

impl Verdict {
    const NOT_FOUND: Self = Self { grounding: Grounding::NotFound, range: None, distance: None, conflict: None };

    /// The text has the value: exact, normalised or fuzzy.
    pub fn is_grounded(&self) -> bool {
        self.grounding <= Grounding::Fuzzy
    }

    fn found(grounding: Grounding, range: Range<usize>) -> Self {
        Self { grounding, range: Some(narrow(&range)), distance: None, conflict: None }
    }

    fn contradicted(conflict: Conflict, range: Range<usize>) -> Self {
        let range = Some(narrow(&range));
        Self { grounding: Grounding::Contradicted, range, distance: None, conflict: Some(conflict) }
    }
}

/// Of whom a value speaks.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Subject {
    /// Of the patient: what a relative has contradicts it.
    Patient,
    /// Of anybody: a family or contact history.
    Anyone,
}

/// Of 10 characters one may differ in a fuzzy match.
const LETTERS_PER_EDIT: usize = 10;
/// Longest value, in characters of the common spelling, that is looked for with edits. Extractors copy phrases; the
/// time of the search grows with the product of the lengths.
const MAX_FUZZY_LETTERS: usize = 2_000;
/// Windows that are compared in full for one value, the nearest first.
const MAX_WINDOWS: usize = 64;
/// Bytes that are compared for one value at places where it turns out to end inside a word.
const MAX_COMPARED: usize = 10_000_000;
/// Letters of a comparison and a sign before a number.
const MAX_SIGN_LETTERS: usize = 4;
/// Parts of a value that is a list. A longer list is no value.
const MAX_PARTS: usize = 100;

/// A source text, read once for any number of values.
#[derive(Clone, Debug)]
pub struct SourceText<'a> {
    text: &'a str,
    rules: &'a ContextRules,
    normalized: Normalized,
    tokens: Vec<Token>,
    /// Ids of tokens by their common spelling.
    ids: HashMap<String, u32>,
    /// The common spelling of the whole text. Tokens are parted by one blank, signs follow without.
    letters: Vec<char>,
    /// Tokens without signs and filling words, with numbers, units and sides masked, and their indices in `tokens`.
    skeleton: Vec<(u32, usize)>,
    /// Over the characters of the text.
    scopes: Scopes,
}

impl<'a> SourceText<'a> {
    /// Reads a text; `rules` say where it denies something or speaks of somebody else.
    pub fn new(text: &'a str, rules: &'a ContextRules) -> Self {
        let normalized = Normalized::of(text);
        let mut ids = HashMap::new();
        let mut tokens = read_tokens(&normalized.text, |spelling| match ids.get(spelling) {
            Some(id) => *id,
            None => {
                let id = u32::try_from(ids.len()).map_or(UNKNOWN, |id| id.min(UNKNOWN));
                ids.insert(spelling.to_owned(), id);
                id
            }
        });
        let letters = write_letters(&mut tokens);
        let skeleton = skeleton(&tokens);
        let scopes = rules.scopes(&fold(text), &character_ranges(text, sentences(text)));
        Self { text, rules, normalized, tokens, ids, letters, skeleton, scopes }
    }

    /// Judges a value that is claimed to stand in the text.
    ///
    /// `hint` is where the extractor says it is, in Unicode scalar values; it decides between several places if the value is
    /// there, in any spelling, and is ignored otherwise. Without it the first place counts that does not contradict the
    /// value. A value that itself negates ("no fever") needs the text's negation.
    ///
    /// A value of several phrases joined by ", " or "; " that is not in the text as a whole is judged by its parts: the
    /// worst counts, the range spans them all.
    pub fn ground(&self, value: &str, subject: Subject, hint: Option<Range<u32>>) -> Verdict {
        let Some(sought) = Sought::read(self, value, Polarity::AsWritten, subject) else { return Verdict::NOT_FOUND };
        if let Some(verdict) = self.find_spelled(&sought, hint) {
            return verdict;
        }
        let meaning = Meaning::of(self.rules, value);
        let mut contradiction = None;
        if let Some(verdict) = self.find_whole(&sought, &meaning, 0..value.len(), &mut contradiction) {
            return verdict;
        }
        let listed = self.find_parts(value, &meaning, subject);
        match (listed, contradiction) {
            (Some(listed), _) if listed.is_grounded() => listed,
            (_, Some(contradiction)) => contradiction,
            (Some(listed), None) => listed,
            (None, None) => Verdict::NOT_FOUND,
        }
    }

    /// [`Self::ground`] for many values, in their order.
    pub fn ground_all<'v>(
        &self,
        values: impl IntoIterator<Item = (&'v str, Subject, Option<Range<u32>>)>,
    ) -> Vec<Verdict> {
        values.into_iter().map(|(value, subject, hint)| self.ground(value, subject, hint)).collect()
    }

    /// Looks for a phrase that does not stand in the text in any spelling: by its negation, or with edits. The first
    /// contradiction met is kept for the case that nothing else is found.
    fn find_whole(
        &self,
        sought: &Sought,
        meaning: &Meaning,
        within: Range<usize>,
        contradiction: &mut Option<Verdict>,
    ) -> Option<Verdict> {
        let denied = meaning.denied(within).and_then(|denied| {
            let polarity = if sought.polarity == Polarity::AsWritten { Polarity::Denied } else { Polarity::AsWritten };
            let denied = Sought::read(self, denied, polarity, sought.subject)?;
            self.find_spelled(&denied, None).or_else(|| self.find_similar(&denied))
        });
        let similar = std::iter::once_with(|| self.find_similar(sought)).flatten();
        for mut verdict in denied.into_iter().chain(similar) {
            if verdict.is_grounded() {
                verdict.grounding = verdict.grounding.max(Grounding::Normalised);
                return Some(verdict);
            }
            contradiction.get_or_insert(verdict);
        }
        if contradiction.is_none() {
            *contradiction = self.find_differing(sought);
        }
        None
    }

    /// Judges a list by its parts. `None` if the value is no list.
    fn find_parts(&self, value: &str, meaning: &Meaning, subject: Subject) -> Option<Verdict> {
        let parts = parts(value);
        if parts.len() < 2 || parts.len() > MAX_PARTS {
            return None;
        }
        let mut all: Option<Verdict> = None;
        for part in parts {
            let polarity = if meaning.is_denied_from_outside(&part) { Polarity::Denied } else { Polarity::AsWritten };
            let phrase = value.get(part.clone()).unwrap_or_default();
            let verdict = match Sought::read(self, phrase, polarity, subject) {
                None => continue,
                Some(sought) => self.find_spelled(&sought, None).unwrap_or_else(|| {
                    let mut contradiction = None;
                    let found = self.find_whole(&sought, meaning, part, &mut contradiction);
                    found.or(contradiction).unwrap_or(Verdict::NOT_FOUND)
                }),
            };
            let joined = match all {
                None => verdict,
                Some(all) => join(all, verdict),
            };
            if joined.grounding == Grounding::NotFound {
                return Some(joined);
            }
            all = Some(joined);
        }
        all
    }

    /// Looks for a phrase in its own and in the common spelling. A verdict is exact, normalised or contradicted.
    fn find_spelled(&self, sought: &Sought, hint: Option<Range<u32>>) -> Option<Verdict> {
        if let Some(verdict) = hint.and_then(|hint| self.at_hint(sought, hint)) {
            return Some(verdict);
        }
        let mut contradiction = None;
        let exact = self.find_exact(sought, &mut contradiction);
        exact.or_else(|| self.find_normalised(sought, &mut contradiction)).or(contradiction)
    }

    fn at_hint(&self, sought: &Sought, hint: Range<u32>) -> Option<Verdict> {
        let (start, end) = (usize::try_from(hint.start).ok()?, usize::try_from(hint.end).ok()?);
        if start >= end {
            return None;
        }
        let from = byte_of_character(self.text, start)?;
        let to = from + byte_of_character(self.text.get(from..)?, end - start)?;
        if !is_border(self.text, from) || !is_border(self.text, to) {
            return None;
        }
        let there = self.text.get(from..to)?;
        let grounding = if there == sought.value {
            Grounding::Exact
        } else {
            let there = Sought::read(self, there, sought.polarity, sought.subject)?;
            if there.tokens.len() != sought.tokens.len() || !sought.is_at(&there.tokens) {
                return None;
            }
            Grounding::Normalised
        };
        Some(match self.conflict(sought, &(start..end), to) {
            Some(conflict) => Verdict::contradicted(conflict, start..end),
            None => Verdict::found(grounding, self.with_cue(sought, start..end)),
        })
    }

    fn find_exact(&self, sought: &Sought, contradiction: &mut Option<Verdict>) -> Option<Verdict> {
        let length = sought.value.chars().count();
        let (mut counted_bytes, mut counted) = (0, 0);
        let mut from = 0;
        for _ in 0..MAX_COMPARED / sought.value.len().max(100) {
            let start = from + self.text.get(from..)?.find(sought.value)?;
            let end = start + sought.value.len();
            if is_border(self.text, start) && is_border(self.text, end) {
                counted += self.text.get(counted_bytes..start)?.chars().count();
                counted_bytes = start;
                let range = counted..counted + length;
                match self.conflict(sought, &range, end) {
                    None => return Some(Verdict::found(Grounding::Exact, self.with_cue(sought, range))),
                    Some(conflict) => {
                        contradiction.get_or_insert_with(|| Verdict::contradicted(conflict, range));
                    }
                }
            }
            // The next place that can begin a word: one within a word would be found again and again.
            let behind = self.text.get(start..)?.char_indices().skip(1).map(|(offset, _)| start + offset);
            from = behind.into_iter().find(|position| is_border(self.text, *position))?;
        }
        None
    }

    fn find_normalised(&self, sought: &Sought, contradiction: &mut Option<Verdict>) -> Option<Verdict> {
        let first = sought.tokens.first()?;
        if sought.tokens.iter().any(|token| token.id == UNKNOWN) {
            return None;
        }
        for (position, token) in self.tokens.iter().enumerate() {
            let there = self.tokens.get(position..).unwrap_or_default();
            if token.id != first.id || !sought.is_at(there) {
                continue;
            }
            let window = position..position + sought.tokens.len();
            let Some(range) = self.characters(&window) else { continue };
            match self.conflict_at(sought, &window, &range) {
                None => return Some(Verdict::found(Grounding::Normalised, self.with_cue(sought, range))),
                Some(conflict) => {
                    contradiction.get_or_insert_with(|| Verdict::contradicted(conflict, range));
                }
            }
        }
        None
    }

    /// Looks for the nearest window of the text within the allowed edits. A verdict is fuzzy or contradicted.
    fn find_similar(&self, sought: &Sought) -> Option<Verdict> {
        let n_letters = sought.letters.len();
        // A window longer by all its edits: d ≤ (n + d) / 10.
        let most_edits = n_letters / (LETTERS_PER_EDIT - 1);
        if most_edits == 0 || n_letters > MAX_FUZZY_LETTERS {
            return None;
        }
        // An edit touches at most two tokens, so all others stand in the text as they are.
        let n_known = sought.tokens.iter().filter(|token| token.id != UNKNOWN).count();
        if n_known + 2 * most_edits < sought.tokens.len() {
            return None;
        }
        let mut windows = self.windows(sought, most_edits);
        windows.sort_unstable_by_key(|(distance, window)| (*distance, window.start, window.end));
        let mut contradiction = None;
        for (distance, window) in windows.into_iter().take(MAX_WINDOWS) {
            let Some(range) = self.characters(&window) else { continue };
            let there = self.tokens.get(window.clone()).unwrap_or_default();
            let conflict = match unlike(sought, there, self.letters_of(there)) {
                Some(Unlike::Matter) => continue,
                Some(Unlike::Conflict(conflict)) => Some(conflict),
                None => self.conflict_at(sought, &window, &range),
            };
            if let Some(conflict) = conflict {
                contradiction.get_or_insert_with(|| Verdict::contradicted(conflict, range));
            } else {
                let mut verdict = Verdict::found(Grounding::Fuzzy, self.with_cue(sought, range));
                verdict.distance = Some(u32::try_from(distance).unwrap_or(u32::MAX));
                return Some(verdict);
            }
        }
        contradiction
    }

    /// Token windows with at most the allowed edits, and their edits: every end that an approximate search over the whole text
    /// proposes, with every start near enough, measured exactly.
    fn windows(&self, sought: &Sought, most_edits: usize) -> Vec<(usize, Range<usize>)> {
        let mut ends = Vec::new();
        let mut next = 0;
        EditSearch::new(sought.letters.iter().copied()).run(self.letters.iter().copied(), false, |read, distance| {
            while self.tokens.get(next).is_some_and(|token| token.letters.end < read) {
                next += 1;
            }
            let ends_here = self.tokens.get(next).is_some_and(|token| token.letters.end == read && !token.is_sign());
            if ends_here && distance <= most_edits {
                ends.push((distance, next));
            }
        });
        ends.sort_unstable();
        let n_letters = sought.letters.len();
        let backwards = EditSearch::new(sought.letters.iter().rev().copied());
        let mut windows = Vec::new();
        for (_, last) in ends.into_iter().take(MAX_WINDOWS) {
            let Some(end) = self.tokens.get(last).map(|token| token.letters.end) else { continue };
            let longest = (n_letters + most_edits).min(end);
            let mut distances = vec![n_letters];
            let before = self.letters.get(end - longest..end).unwrap_or_default();
            backwards.run(before.iter().rev().copied(), true, |_, distance| distances.push(distance));
            for first in (0..=last).rev() {
                let Some(token) = self.tokens.get(first) else { break };
                let length = end - token.letters.start;
                let Some(distance) = distances.get(length).copied() else { break };
                if !token.is_sign() && distance * LETTERS_PER_EDIT <= n_letters.max(length) {
                    windows.push((distance, first..last + 1));
                }
            }
        }
        windows
    }

    /// Looks for a place whose words are those of the value while a number, unit or side is not.
    fn find_differing(&self, sought: &Sought) -> Option<Verdict> {
        let keys = skeleton(&sought.tokens);
        let n_masked = keys.iter().filter(|(key, _)| *key > UNKNOWN).count();
        let only_amount = n_masked == keys.len();
        let has_unit = keys.iter().any(|(key, _)| *key == ANY_UNIT);
        // A lone number, unit or side is no matter that something else could be said of.
        if n_masked == 0 || keys.len() < 2 || only_amount && !has_unit {
            return None;
        }
        let mut found = None;
        for place in self.skeleton.windows(keys.len()) {
            let is_like = place.iter().zip(&keys).all(|((there, _), (key, _))| there == key && *key != UNKNOWN);
            if !is_like {
                continue;
            }
            let differs = |mask: u32| {
                let of = |tokens: &[Token], index: usize| tokens.get(index).map(|token| amount(token).to_owned());
                place.iter().zip(&keys).any(|((there, index), (_, own))| {
                    *there == mask && of(&self.tokens, *index) != of(&sought.tokens, *own)
                })
            };
            let (number, unit, side) = (differs(ANY_NUMBER), differs(ANY_UNIT), differs(ANY_SIDE));
            let conflict = match (number, unit, side) {
                // It is said as well, if in other words than would count as found.
                (false, false, false) => return None,
                (true, true, _) if only_amount => continue,
                (true, ..) => Conflict::Number,
                (_, true, _) => Conflict::Unit,
                _ => Conflict::Laterality,
            };
            if let (None, Some((_, first)), Some((_, last))) = (&found, place.first(), place.last()) {
                found = self.characters(&(*first..*last + 1)).map(|range| Verdict::contradicted(conflict, range));
            }
        }
        found
    }

    /// What the text says around a place, as an array of tokens, that the value does not.
    fn conflict_at(&self, sought: &Sought, window: &Range<usize>, range: &Range<usize>) -> Option<Conflict> {
        if let Some([.., last]) = self.tokens.get(window.clone())
            && last.kind == Kind::Unit
            && let Some([slash, below, ..]) = self.tokens.get(window.end..)
            && slash.is_slash
            && below.kind == Kind::Unit
        {
            return Some(Conflict::Unit);
        }
        self.said(sought, range)
    }

    /// The same of a place that is the value, character for character, and ends at a byte of the text.
    fn conflict(&self, sought: &Sought, range: &Range<usize>, end: usize) -> Option<Conflict> {
        // "126 mg" is not what "126 mg/dL" says.
        if sought.tokens.last().is_some_and(|token| token.kind == Kind::Unit)
            && let Some(below) = self.text.get(end..).and_then(|rest| rest.strip_prefix('/'))
            && is_unit(below.get(..word_length(below)).unwrap_or_default())
        {
            return Some(Conflict::Unit);
        }
        self.said(sought, range)
    }

    /// Whether the text denies a place that the value affirms, or the reverse, or says it of somebody else.
    fn said(&self, sought: &Sought, range: &Range<usize>) -> Option<Conflict> {
        let is_outside = |cue: &Range<usize>| cue.start < range.start || cue.end > range.end;
        let negation = self.scopes.negation_at(range);
        let fits = match sought.polarity {
            Polarity::AsWritten => !negation.as_ref().is_some_and(is_outside),
            Polarity::Denied => negation.is_some(),
        };
        if !fits {
            return Some(Conflict::Negation);
        }
        let is_others = self.scopes.at(range).experiencer != Experiencer::Patient
            && self.scopes.experiencer_at(range).as_ref().is_none_or(is_outside);
        (is_others && sought.subject == Subject::Patient).then_some(Conflict::Experiencer)
    }

    /// The range of a phrase together with the negation that it needs.
    fn with_cue(&self, sought: &Sought, range: Range<usize>) -> Range<usize> {
        match self.scopes.negation_at(&range).filter(|_| sought.polarity == Polarity::Denied) {
            Some(cue) => range.start.min(cue.start)..range.end.max(cue.end),
            None => range,
        }
    }

    /// The characters of the original text that made some tokens.
    fn characters(&self, window: &Range<usize>) -> Option<Range<usize>> {
        let [first, rest @ ..] = self.tokens.get(window.clone())? else { return None };
        let last = rest.last().unwrap_or(first);
        let range = self.normalized.original_chars(first.bytes.start..last.bytes.end)?;
        Some(usize::try_from(range.start).ok()?..usize::try_from(range.end).ok()?)
    }

    fn letters_of(&self, tokens: &[Token]) -> &[char] {
        let (Some(first), Some(last)) = (tokens.first(), tokens.last()) else { return &[] };
        self.letters.get(first.letters.start..last.letters.end).unwrap_or_default()
    }
}

fn narrow(range: &Range<usize>) -> Range<u32> {
    let narrow = |position: usize| u32::try_from(position).unwrap_or(u32::MAX);
    narrow(range.start)..narrow(range.end)
}

/// The worse of two verdicts, over both ranges.
fn join(a: Verdict, b: Verdict) -> Verdict {
    let grounding = a.grounding.max(b.grounding);
    if grounding == Grounding::NotFound {
        return Verdict::NOT_FOUND;
    }
    let range = match (a.range, b.range) {
        (Some(a), Some(b)) => Some(a.start.min(b.start)..a.end.max(b.end)),
        (a, b) => a.or(b),
    };
    let distance =
        (grounding == Grounding::Fuzzy).then(|| a.distance.unwrap_or(0).saturating_add(b.distance.unwrap_or(0)));
    Verdict { grounding, range, distance, conflict: a.conflict.or(b.conflict) }
}

/// Whether a phrase is to be found as it is written, or denied by the text.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Polarity {
    AsWritten,
    Denied,
}

/// A phrase to be found.
struct Sought<'v> {
    value: &'v str,
    /// In the ids of the source text; without the punctuation at its ends.
    tokens: Vec<Token>,
    letters: Vec<char>,
    polarity: Polarity,
    subject: Subject,
}

impl<'v> Sought<'v> {
    /// `None` if the phrase has nothing visible.
    fn read(source: &SourceText, value: &'v str, polarity: Polarity, subject: Subject) -> Option<Self> {
        let normalized = Normalized::of(value);
        let mut tokens = read_tokens(&normalized.text, |spelling| source.ids.get(spelling).copied().unwrap_or(UNKNOWN));
        let is_inside = |token: &Token| !token.is_punctuation;
        if let (Some(first), Some(last)) = (tokens.iter().position(is_inside), tokens.iter().rposition(is_inside)) {
            tokens.truncate(last + 1);
            tokens.drain(..first);
        }
        let letters = write_letters(&mut tokens);
        (!normalized.text.is_empty()).then_some(Self { value, tokens, letters, polarity, subject })
    }

    /// Whether `there` begins with these tokens.
    fn is_at(&self, there: &[Token]) -> bool {
        there.len() >= self.tokens.len()
            && self.tokens.iter().zip(there).all(|(own, other)| own.spelling == other.spelling)
    }
}

/// What a value itself denies.
struct Meaning<'v> {
    value: &'v str,
    scopes: Scopes,
}

/// Words that may stand between a negation and what it denies.
const BETWEEN: &[&str] = &["any", "a", "an", "the", "having", "of"];

impl<'v> Meaning<'v> {
    fn of(rules: &ContextRules, value: &'v str) -> Self {
        let folded = fold(value);
        let scopes = rules.scopes(&folded, &character_ranges(value, sentences(value)));
        Self { value, scopes }
    }

    /// What the bytes `within` of the value deny, if they are a negation and what it denies.
    fn denied(&self, within: Range<usize>) -> Option<&'v str> {
        let range = character_range(self.value, &within);
        let cue = self.scopes.negation_at(&range).filter(|cue| range.start <= cue.start && cue.end <= range.end)?;
        let phrase = self.value.get(within)?;
        let start = byte_of_character(phrase, cue.start - range.start)?;
        let end = byte_of_character(phrase, cue.end - range.start)?;
        let (before, behind) = (phrase.get(..start)?.trim(), phrase.get(end..)?.trim());
        let mut denied = match (before.is_empty(), behind.is_empty()) {
            (true, false) => behind,
            (false, true) => before,
            _ => return None,
        };
        while let Some((first, rest)) = denied.split_once(' ')
            && BETWEEN.iter().any(|word| first.eq_ignore_ascii_case(word))
        {
            denied = rest.trim_start();
        }
        Some(denied.trim_start_matches('-'))
    }

    /// Whether a part of the value is denied by words before it: "chills" in "no fever, chills".
    fn is_denied_from_outside(&self, part: &Range<usize>) -> bool {
        let range = character_range(self.value, part);
        self.scopes.negation_at(&range).is_some_and(|cue| cue.start < range.start || cue.end > range.end)
    }
}

/// Byte ranges of the phrases of a list, without the word that joins the last.
fn parts(value: &str) -> Vec<Range<usize>> {
    let mut parts = Vec::new();
    let mut start = 0;
    let borders = value.match_indices([',', ';']).map(|(position, _)| position).chain([value.len()]);
    for border in borders {
        let behind = value.get(border + 1..).unwrap_or_default();
        if border < value.len() && !behind.starts_with(char::is_whitespace) {
            continue;
        }
        let phrase = value.get(start..border).unwrap_or_default();
        let mut kept = phrase.trim();
        for joint in ["and ", "or ", "And ", "Or "] {
            kept = kept.strip_prefix(joint).unwrap_or(kept).trim_start();
        }
        if !kept.is_empty() {
            let kept_start = start + phrase.trim_end().len() - kept.len();
            parts.push(kept_start..kept_start + kept.len());
        }
        start = (border + 1).min(value.len());
    }
    parts
}

/// What a token is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Kind {
    Word,
    /// Digits in one notation with sign and comparison; also superscripts and fractions.
    Number,
    /// Behind a number, or behind a unit and "/".
    Unit,
    /// Left, right and the like.
    Side,
    /// Any other single character.
    Sign,
}

/// One token of the common spelling.
#[derive(Clone, Debug)]
struct Token {
    /// The place in the normalised text.
    bytes: Range<usize>,
    /// The place in the common spelling, in characters.
    letters: Range<usize>,
    /// The common spelling.
    spelling: String,
    /// Equal spellings have equal ids; [`UNKNOWN`] if the source text does not have it.
    id: u32,
    kind: Kind,
    /// A stop, comma, quote or bracket.
    is_punctuation: bool,
    is_slash: bool,
}

impl Token {
    fn is_sign(&self) -> bool {
        self.kind == Kind::Sign
    }
}

/// A number in digits, a unit in the singular and in short, anything else as it is spelled.
fn amount(token: &Token) -> &str {
    let spelling = token.spelling.as_str();
    match token.kind {
        Kind::Unit => {
            let singular = spelling.strip_suffix('s').filter(|singular| singular.len() > 1).unwrap_or(spelling);
            let short = UNITS_IN_SHORT.iter().find(|(long, _)| *long == singular);
            short.map_or(singular, |(_, short)| short)
        }
        Kind::Word => number_word(spelling).unwrap_or(spelling),
        Kind::Number | Kind::Side | Kind::Sign => spelling,
    }
}

fn number_word(spelling: &str) -> Option<&'static str> {
    let index = NUMBER_WORDS.binary_search_by_key(&spelling, |(word, _)| word).ok()?;
    NUMBER_WORDS.get(index).map(|(_, digits)| *digits)
}

/// No id of the source text. The keys above it mask numbers, units and sides in a skeleton.
const UNKNOWN: u32 = u32::MAX - 3;
const ANY_NUMBER: u32 = u32::MAX - 2;
const ANY_UNIT: u32 = u32::MAX - 1;
const ANY_SIDE: u32 = u32::MAX;

/// Words that say nothing between a thing and its value. Sorted, as all lists here.
const FILLING: &[&str] = &[
    "a",
    "about",
    "an",
    "approximately",
    "are",
    "at",
    "be",
    "been",
    "had",
    "has",
    "have",
    "her",
    "his",
    "is",
    "of",
    "the",
    "their",
    "was",
    "were",
];
const SIDES: &[&str] = &[
    "anterior",
    "bilateral",
    "bilaterally",
    "both",
    "contralateral",
    "distal",
    "inferior",
    "ipsilateral",
    "lateral",
    "left",
    "llq",
    "lower",
    "luq",
    "medial",
    "posterior",
    "proximal",
    "right",
    "rlq",
    "ruq",
    "superior",
    "unilateral",
    "upper",
];
/// Numbers written as words, that a skeleton masks.
const NUMBER_WORDS: &[(&str, &str)] = &[
    ("eight", "8"),
    ("eighteen", "18"),
    ("eighty", "80"),
    ("eleven", "11"),
    ("fifteen", "15"),
    ("fifty", "50"),
    ("five", "5"),
    ("forty", "40"),
    ("four", "4"),
    ("fourteen", "14"),
    ("nine", "9"),
    ("nineteen", "19"),
    ("ninety", "90"),
    ("one", "1"),
    ("seven", "7"),
    ("seventeen", "17"),
    ("seventy", "70"),
    ("six", "6"),
    ("sixteen", "16"),
    ("sixty", "60"),
    ("ten", "10"),
    ("thirteen", "13"),
    ("thirty", "30"),
    ("three", "3"),
    ("twelve", "12"),
    ("twenty", "20"),
    ("two", "2"),
];
/// Units in their common spelling. The plural is another spelling.
const UNITS: &[&str] = &[
    "%", "bpm", "c", "cm", "cm2", "cm3", "d", "day", "days", "dl", "f", "fl", "g", "gram", "grams", "gy", "h", "hour",
    "hours", "hpf", "hr", "hrs", "iu", "kcal", "kg", "kpa", "l", "lb", "lbs", "m", "m2", "meq", "mg", "min", "minute",
    "minutes", "ml", "mm", "mm2", "mm3", "mmhg", "mmol", "mo", "mol", "month", "months", "mosm", "ms", "mu", "ng",
    "nmol", "pg", "pmol", "s", "sec", "second", "seconds", "u", "unit", "units", "week", "weeks", "wk", "wks", "year",
    "years", "yr", "yrs", "μg", "μl", "μm", "μmol", "μu",
];
/// Units that are written out or shortened. That is no common spelling, but no other unit either.
const UNITS_IN_SHORT: &[(&str, &str)] = &[
    ("day", "d"),
    ("gram", "g"),
    ("hour", "h"),
    ("hr", "h"),
    ("minute", "min"),
    ("month", "mo"),
    ("sec", "s"),
    ("second", "s"),
    ("unit", "u"),
    ("week", "wk"),
    ("year", "yr"),
];
/// Other spellings of one unit.
const UNIT_SPELLINGS: &[(&str, &str)] = &[
    ("cc", "ml"),
    ("cm²", "cm2"),
    ("cm³", "cm3"),
    ("gm", "g"),
    ("gms", "g"),
    ("mcg", "μg"),
    ("mcl", "μl"),
    ("mm²", "mm2"),
    ("mm³", "mm3"),
    ("m²", "m2"),
    ("percent", "%"),
    ("ug", "μg"),
    ("ul", "μl"),
    ("umol", "μmol"),
];

fn is_one_of(sorted: &[&str], word: &str) -> bool {
    sorted.binary_search(&word).is_ok()
}

/// A combining mark or a character without width belongs to the word it stands in.
fn is_word(character: char) -> bool {
    character.is_alphanumeric()
        || character == '_'
        || !character.is_ascii()
            && (unicode_normalization::char::is_combining_mark(character)
                || matches!(character, '\u{ad}' | '\u{200b}'..='\u{200f}' | '\u{2060}'..='\u{2064}' | '\u{feff}'))
}

/// Scripts written without spaces, in which each character counts as a word.
fn stands_alone(character: char) -> bool {
    matches!(character, '\u{3040}'..='\u{30ff}' | '\u{3400}'..='\u{4dbf}' | '\u{4e00}'..='\u{9fff}' | '\u{f900}'..='\u{faff}' | '\u{20000}'..='\u{3ffff}')
}

/// Whether a word may begin or end at a byte of the text: not inside a word, nor inside a number with its sign, comparison,
/// separators and bars ("5" is not in "1.5", "120/5" or "< 5").
fn is_border(text: &str, position: usize) -> bool {
    let (Some(before), Some(behind)) = (text.get(..position), text.get(position..)) else { return false };
    let mut back = before.chars().rev();
    let mut ahead = behind.chars();
    let (Some(last), Some(next)) = (back.next(), ahead.next()) else { return true };
    if is_word(last) && is_word(next) && !stands_alone(last) && !stands_alone(next) {
        return false;
    }
    let joins = |character: char| matches!(character, '.' | ',' | '/');
    let is_digit = |character: Option<char>| character.is_some_and(|c| c.is_ascii_digit());
    if joins(last) && next.is_ascii_digit() && is_digit(back.clone().next())
        || joins(next) && last.is_ascii_digit() && is_digit(ahead.next())
    {
        return false;
    }
    !next.is_ascii_digit() || !is_sign_before(before)
}

/// Whether `before` ends in the sign or comparison of a number that follows.
fn is_sign_before(before: &str) -> bool {
    let mut back = before.chars().rev();
    match back.next() {
        Some('-' | '−') => {
            back.next().is_none_or(|c| c.is_whitespace() || matches!(c, '(' | '[' | '=' | ':' | '<' | '>'))
        }
        Some(_) => before.trim_end_matches(' ').trim_end_matches('=').ends_with(['<', '>', '≤', '≥']),
        None => false,
    }
}

/// The tokens of a normalised text; `id_of` gives the id of a spelling. Their places in the letters are not yet known.
fn read_tokens(text: &str, mut id_of: impl FnMut(&str) -> u32) -> Vec<Token> {
    let mut tokens: Vec<Token> = Vec::with_capacity(text.len() / 5);
    let mut position = 0;
    while let Some(first) = text.get(position..).and_then(|rest| rest.chars().next()) {
        let start = position;
        let rest = text.get(start..).unwrap_or_default();
        let mut kind = Kind::Word;
        let mut spelling = String::new();
        // A sign of degrees says nothing that its number and scale do not.
        let length = if first.is_whitespace() || first == '°' {
            position += first.len_utf8();
            continue;
        } else if let Some(length) = read_number(text, start, &mut spelling) {
            kind = Kind::Number;
            length
        } else if first.is_numeric() && !stands_alone(first) {
            kind = Kind::Number;
            rest.find(|c: char| !c.is_numeric() || c.is_ascii()).unwrap_or(rest.len())
        } else if stands_alone(first) {
            first.len_utf8()
        } else if is_word(first) {
            read_word(rest, &mut spelling)
        } else if first == '-' && is_joint(text, start) {
            position += 1;
            continue;
        } else {
            kind = Kind::Sign;
            first.len_utf8()
        };
        position = start + length;
        if spelling.is_empty() {
            spelling.push_str(text.get(start..position).unwrap_or_default());
        }
        let bytes = start..position;
        push_token(&mut tokens, bytes, spelling, kind);
    }
    for token in &mut tokens {
        token.id = id_of(&token.spelling);
    }
    tokens
}

/// Whether a word of a text that is not normalised is a unit behind a number.
fn is_unit(word: &str) -> bool {
    read_tokens(&Normalized::of(word).text, |_| UNKNOWN).iter().any(|token| is_one_of(UNITS, &token.spelling))
}

/// Adds a token, as a unit if it is one, and joins units that were written apart.
fn push_token(tokens: &mut Vec<Token>, mut bytes: Range<usize>, mut spelling: String, mut kind: Kind) {
    if !spelling.is_ascii() {
        spelling = spelling.chars().map(unambiguous).collect();
    }
    let common = UNIT_SPELLINGS.binary_search_by_key(&spelling.as_str(), |(other, _)| other).ok();
    if let Some((_, common)) = common.and_then(|index| UNIT_SPELLINGS.get(index)) {
        spelling = (*common).to_owned();
    }
    if spelling == "hg" && tokens.last().is_some_and(|token| token.spelling == "mm") {
        bytes.start = tokens.pop().map_or(bytes.start, |token| token.bytes.start);
        spelling = "mmhg".to_owned();
    } else if let Some(letter) = temperature_letter(&spelling) {
        // Always the letter, so that "38 C" is spelled like "38 °C", and also in a value that begins with the scale.
        let is_degree = |token: &Token| matches!(token.spelling.as_str(), "degrees" | "degree" | "deg");
        let is_temperature =
            matches!(tokens.as_slice(), [.., number, degree] if number.kind == Kind::Number && is_degree(degree));
        if is_temperature {
            bytes.start = tokens.pop().map_or(bytes.start, |token| token.bytes.start);
        }
        if is_temperature || spelling.len() > 1 {
            spelling = letter.to_owned();
        }
    }
    let is_amount = |token: &Token| matches!(token.kind, Kind::Number | Kind::Unit);
    let follows_amount = match tokens.as_slice() {
        [.., amount, slash] if slash.is_slash => is_amount(amount),
        [.., last] => last.kind == Kind::Number,
        [] => false,
    };
    if follows_amount && is_one_of(UNITS, &spelling) {
        kind = Kind::Unit;
    } else if kind == Kind::Word && is_one_of(SIDES, &spelling) {
        kind = Kind::Side;
    }
    let is_punctuation = kind == Kind::Sign
        && matches!(spelling.as_str(), "." | "," | ";" | ":" | "!" | "?" | "\"" | "'" | "(" | ")" | "[" | "]" | "…");
    let is_slash = spelling == "/";
    tokens.push(Token { bytes, letters: 0..0, spelling, id: UNKNOWN, kind, is_punctuation, is_slash });
}

/// Reads any Cyrillic letter that looks Latin, in either case, as Latin: [`Normalized`] decides by the other words of
/// a text, and a value does not have the words of its source.
fn unambiguous(character: char) -> char {
    match character {
        'в' => 'b',
        'к' => 'k',
        'м' => 'm',
        'н' => 'h',
        'т' => 't',
        other => look_alike(other).unwrap_or(other),
    }
}

/// A hyphen directly between two words or numbers.
fn is_joint(text: &str, position: usize) -> bool {
    let before = text.get(..position).and_then(|before| before.chars().next_back());
    let behind = text.get(position + 1..).and_then(|behind| behind.chars().next());
    before.is_some_and(is_word) && behind.is_some_and(is_word)
}

/// The bytes of a word; "non-tender" is written as one into `spelling`.
fn read_word(rest: &str, spelling: &mut String) -> usize {
    let end = word_length(rest);
    let word = rest.get(..end).unwrap_or_default();
    if word == "non"
        && let Some(behind) = rest.get(end..).and_then(|rest| rest.strip_prefix('-'))
        && behind.starts_with(char::is_alphabetic)
    {
        let length = word_length(behind);
        spelling.push_str(word);
        spelling.push_str(behind.get(..length).unwrap_or_default());
        return end + 1 + length;
    }
    end
}

fn word_length(rest: &str) -> usize {
    let mut end = 0;
    let mut characters = rest.char_indices().peekable();
    while let Some((position, character)) = characters.next() {
        let next = characters.peek().map(|(_, next)| *next);
        let joins = character == '\'' && position > 0 && next.is_some_and(char::is_alphabetic);
        if !joins && (!is_word(character) || stands_alone(character)) {
            break;
        }
        end = position + character.len_utf8();
    }
    end
}

/// The letter of a temperature scale.
fn temperature_letter(word: &str) -> Option<&'static str> {
    match word {
        "c" | "celsius" => Some("c"),
        "f" | "fahrenheit" => Some("f"),
        _ => None,
    }
}

/// The bytes of a number that begins at `start` with its sign or comparison, and its common notation.
fn read_number(text: &str, start: usize, spelling: &mut String) -> Option<usize> {
    let rest = text.get(start..)?;
    if !rest.starts_with(|c: char| c.is_ascii_digit() || matches!(c, '<' | '>' | '≤' | '≥' | '-')) {
        return None;
    }
    // At most "<= -", so that a long run of signs is read once.
    let is_sign = |c: &char| matches!(c, '<' | '>' | '≤' | '≥' | '=' | ' ' | '-');
    let sign_length = rest.chars().take(MAX_SIGN_LETTERS).take_while(is_sign).map(char::len_utf8).sum();
    let unsigned = rest.get(sign_length..)?;
    let sign = rest.get(..rest.len() - unsigned.len())?;
    if !unsigned.starts_with(|c: char| c.is_ascii_digit()) {
        return None;
    }
    if !sign.is_empty() {
        // Only what `is_sign_before` accepts, so that both readings of a text agree.
        let (compared, minus) = match sign.strip_suffix('-') {
            Some(compared) => (compared, "-"),
            None => (sign, ""),
        };
        let comparison = match compared.trim_end_matches(' ') {
            "" => "",
            "<" => "<",
            ">" => ">",
            "<=" | "≤" => "≤",
            ">=" | "≥" => "≥",
            _ => return None,
        };
        let before = text.get(..start)?;
        let minus_stands_free =
            before.chars().next_back().is_none_or(|c| c.is_whitespace() || matches!(c, '(' | '[' | '=' | ':'));
        if comparison.is_empty() && (minus.is_empty() || !minus_stands_free) {
            return None;
        }
        spelling.push_str(comparison);
        spelling.push_str(minus);
    }
    let mut length = read_digits(unsigned, spelling);
    while let Some(below) = unsigned.get(length..).and_then(|rest| rest.strip_prefix('/'))
        && below.starts_with(|c: char| c.is_ascii_digit())
    {
        spelling.push('/');
        length += 1 + read_digits(below, spelling);
    }
    Some(sign.len() + length)
}

/// One number at the start of `text`, into `spelling` without separators of thousands and idle zeros; its bytes.
fn read_digits(text: &str, spelling: &mut String) -> usize {
    let bytes = text.as_bytes();
    let digits_from = |from: usize| bytes.iter().skip(from).take_while(|byte| byte.is_ascii_digit()).count();
    let mut end = digits_from(0);
    let mut whole = text.get(..end).unwrap_or_default().to_owned();
    if end <= 3 {
        while bytes.get(end) == Some(&b',') && digits_from(end + 1) == 3 {
            whole.push_str(text.get(end + 1..end + 4).unwrap_or_default());
            end += 4;
        }
    }
    let whole = whole.trim_start_matches('0');
    spelling.push_str(if whole.is_empty() { "0" } else { whole });
    // "1.2.3" is no decimal, but one number all the same.
    let mut is_first = true;
    while bytes.get(end).is_some_and(|byte| matches!(byte, b'.' | b',')) && digits_from(end + 1) > 0 {
        let digits = text.get(end..end + 1 + digits_from(end + 1)).unwrap_or_default();
        end += digits.len();
        let is_decimal = is_first
            && digits.starts_with('.')
            && !matches!(bytes.get(end), Some(b'.' | b',') if digits_from(end + 1) > 0);
        spelling.push_str(if is_decimal { digits.trim_end_matches('0').trim_end_matches('.') } else { digits });
        is_first = false;
    }
    end
}

/// Writes tokens into one text and notes where each stands in it.
fn write_letters(tokens: &mut [Token]) -> Vec<char> {
    let mut letters = Vec::new();
    for token in tokens {
        if !letters.is_empty() && !token.is_sign() {
            letters.push(' ');
        }
        let start = letters.len();
        letters.extend(token.spelling.chars());
        token.letters = start..letters.len();
    }
    letters
}

/// Tokens without signs and filling words, by id, with numbers, units and sides masked; and their indices.
fn skeleton(tokens: &[Token]) -> Vec<(u32, usize)> {
    let said = tokens.iter().enumerate().filter(|(_, token)| !token.is_sign() && !is_one_of(FILLING, &token.spelling));
    let keyed = said.map(|(index, token)| {
        let key = match token.kind {
            Kind::Number => ANY_NUMBER,
            Kind::Unit => ANY_UNIT,
            Kind::Side => ANY_SIDE,
            Kind::Word | Kind::Sign if number_word(&token.spelling).is_some() => ANY_NUMBER,
            Kind::Word | Kind::Sign => token.id,
        };
        (key, index)
    });
    keyed.collect()
}

/// Why texts that differ in few letters do not say the same.
enum Unlike {
    Conflict(Conflict),
    /// The sex of a person, a direction of change: another matter, which contradicts nothing.
    Matter,
}

/// What parts a phrase from a window of the text that is near it in letters.
fn unlike(sought: &Sought, there: &[Token], letters: &[char]) -> Option<Unlike> {
    fn of_kind(tokens: &[Token], kind: Kind) -> impl Iterator<Item = &str> {
        tokens.iter().filter(move |token| token.kind == kind).map(amount)
    }
    fn with_digits(tokens: &[Token]) -> impl Iterator<Item = &str> {
        let spellings = tokens.iter().map(|token| token.spelling.as_str());
        spellings.filter(|spelling| spelling.contains(char::is_numeric))
    }
    if !of_kind(&sought.tokens, Kind::Number).eq(of_kind(there, Kind::Number)) {
        return Some(Unlike::Conflict(Conflict::Number));
    }
    if !of_kind(&sought.tokens, Kind::Unit).eq(of_kind(there, Kind::Unit)) {
        return Some(Unlike::Conflict(Conflict::Unit));
    }
    if !of_kind(&sought.tokens, Kind::Side).eq(of_kind(there, Kind::Side)) {
        return Some(Unlike::Conflict(Conflict::Laterality));
    }
    if !with_digits(&sought.tokens).eq(with_digits(there)) {
        return Some(Unlike::Conflict(Conflict::Number));
    }
    let difference =
        Difference::between(&sought.letters.iter().collect::<String>(), &letters.iter().collect::<String>());
    if difference.numbers {
        return Some(Unlike::Conflict(Conflict::Number));
    }
    if difference.laterality {
        return Some(Unlike::Conflict(Conflict::Laterality));
    }
    if difference.negation || adds_negating_prefix(&sought.tokens, there) {
        return Some(Unlike::Conflict(Conflict::Negation));
    }
    (difference.sex || difference.direction || difference.order).then_some(Unlike::Matter)
}

/// Beginnings that turn a word into its opposite: "typical", "atypical".
const NEGATING_PREFIXES: &[&str] = &["a", "ab", "an", "anti", "de", "dis", "im", "in", "ir", "mal", "non", "un"];

fn adds_negating_prefix(own: &[Token], there: &[Token]) -> bool {
    let only_in = |tokens: &[Token], others: &[Token]| -> Vec<String> {
        let is_only = |token: &&Token| !others.iter().any(|other| other.spelling == token.spelling);
        tokens.iter().filter(is_only).take(8).map(|token| token.spelling.clone()).collect()
    };
    let (own, there) = (only_in(own, there), only_in(there, own));
    let is_negated = |longer: &str, word: &str| {
        let prefix = longer.strip_suffix(word);
        word.len() > 3 && prefix.is_some_and(|prefix| NEGATING_PREFIXES.contains(&prefix))
    };
    own.iter().any(|a| there.iter().any(|b| is_negated(a, b) || is_negated(b, a)))
}

/// A pattern for the bit-parallel computation of edit distances: Myers 1999, "A fast bit-vector algorithm for approximate
/// string matching based on dynamic programming", in the blocks of Hyyrö 2003.
struct EditSearch {
    length: usize,
    n_blocks: usize,
    /// For each ASCII character and block, where the pattern has it.
    ascii: Vec<u64>,
    others: HashMap<char, Vec<u64>>,
}

impl EditSearch {
    fn new(pattern: impl Iterator<Item = char>) -> Self {
        let mut others: HashMap<char, Vec<u64>> = HashMap::new();
        let pattern: Vec<char> = pattern.collect();
        let n_blocks = pattern.len().div_ceil(64).max(1);
        let mut ascii = vec![0; 128 * n_blocks];
        for (position, character) in pattern.iter().enumerate() {
            let bit = 1_u64 << (position % 64);
            let blocks = if character.is_ascii() {
                let first = *character as usize * n_blocks;
                ascii.get_mut(first..first + n_blocks)
            } else {
                Some(others.entry(*character).or_insert_with(|| vec![0; n_blocks]).as_mut_slice())
            };
            if let Some(block) = blocks.and_then(|blocks| blocks.get_mut(position / 64)) {
                *block |= bit;
            }
        }
        Self { length: pattern.len(), n_blocks, ascii, others }
    }

    /// Calls `report` after each character of the text with the number of characters read and the edits from the
    /// pattern to what was read: to all of it if `anchored`, otherwise to its best ending.
    fn run(&self, text: impl Iterator<Item = char>, anchored: bool, mut report: impl FnMut(usize, usize)) {
        let none = vec![0; self.n_blocks];
        // Bits of the column that are one more, or one less, than the bit below.
        let mut columns = vec![(u64::MAX, 0_u64); self.n_blocks];
        let mut distance = self.length;
        let last_bit = (self.length + 63) % 64;
        for (position, character) in text.enumerate() {
            let equal = if character.is_ascii() {
                let first = character as usize * self.n_blocks;
                self.ascii.get(first..first + self.n_blocks)
            } else {
                self.others.get(&character).map(Vec::as_slice)
            };
            let equal = equal.unwrap_or(&none);
            let (mut more_in, mut less_in) = (u64::from(anchored), 0);
            let mut at_end = (0, 0);
            for ((more, less), equal) in columns.iter_mut().zip(equal) {
                let vertical = equal | *less;
                let equal = equal | less_in;
                let horizontal = ((equal & *more).wrapping_add(*more) ^ *more) | equal;
                let up = *less | !(horizontal | *more);
                let down = *more & horizontal;
                at_end = (up >> last_bit & 1, down >> last_bit & 1);
                let (up_shifted, down_shifted) = (up << 1 | more_in, down << 1 | less_in);
                (more_in, less_in) = (up >> 63, down >> 63);
                *more = down_shifted | !(vertical | up_shifted);
                *less = up_shifted & vertical;
            }
            match at_end {
                (1, _) => distance += 1,
                (_, 1) => distance -= 1,
                _ => {}
            }
            report(position + 1, distance);
        }
    }
}

/// A lower-case ASCII copy with one byte for each character, as the context rules read it.
fn fold(text: &str) -> String {
    if text.is_ascii() {
        return text.to_ascii_lowercase();
    }
    text.chars().map(fold_character).collect()
}

/// Look-alikes and accented letters become the Latin letter, typographic marks the plain one, other letters `_` and
/// all else `~`.
fn fold_character(character: char) -> char {
    if character.is_ascii() {
        return character.to_ascii_lowercase();
    }
    match character {
        '’' | '‘' | '‛' | '′' | '´' => '\'',
        '“' | '”' | '„' | '″' => '"',
        '‐'..='―' | '−' => '-',
        _ if character.is_whitespace() => ' ',
        _ if character.is_alphabetic() => {
            let mut first = None;
            unicode_normalization::char::decompose_compatible(character, |part| {
                first.get_or_insert(part);
            });
            let latin = look_alike(character).or(first).filter(char::is_ascii_alphabetic);
            latin.map_or('_', |letter| letter.to_ascii_lowercase())
        }
        _ if character.is_alphanumeric() => '_',
        _ => '~',
    }
}

/// The byte at which the character of a number begins, counted from 0; the end of the text is that of one more.
fn byte_of_character(text: &str, position: usize) -> Option<usize> {
    text.char_indices().map(|(offset, _)| offset).chain([text.len()]).nth(position)
}

fn character_range(text: &str, bytes: &Range<usize>) -> Range<usize> {
    let count = |part: Range<usize>| text.get(part).unwrap_or_default().chars().count();
    let start = count(0..bytes.start);
    start..start + count(bytes.clone())
}

/// Byte ranges, in order and not overlapping, as ranges of characters.
fn character_ranges(text: &str, byte_ranges: Vec<Range<usize>>) -> Vec<Range<usize>> {
    if text.is_ascii() {
        return byte_ranges;
    }
    let (mut read, mut counted) = (0, 0);
    let mut count_to = |position: usize| {
        counted += text.get(read..position).unwrap_or_default().chars().count();
        read = position;
        counted
    };
    byte_ranges.into_iter().map(|range| count_to(range.start)..count_to(range.end)).collect()
}

#[cfg(test)]
mod tests;
