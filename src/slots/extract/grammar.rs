//! The parts a sentence of a history is read in: tokens with their roles, and clauses.

use super::lexicon::SlotLexicon;
use super::terms::{Gap, Token};
use std::ops::Range;

/// What a word does in a sentence; a word may do several things.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) struct Roles(u32);

impl Roles {
    pub(super) const VERB: Self = Self(1);
    pub(super) const AUXILIARY: Self = Self(1 << 1);
    pub(super) const ADVERB: Self = Self(1 << 2);
    pub(super) const TOLD: Self = Self(1 << 3);
    pub(super) const PRONOUN: Self = Self(1 << 4);
    pub(super) const SUBORDINATOR: Self = Self(1 << 5);
    pub(super) const TELLING: Self = Self(1 << 6);
    pub(super) const HAVING: Self = Self(1 << 7);
    pub(super) const CLOSED: Self = Self(1 << 8);
    pub(super) const PLACE: Self = Self(1 << 9);
    pub(super) const DIRECTION: Self = Self(1 << 10);
    pub(super) const QUALITY: Self = Self(1 << 11);
    pub(super) const COMPLAINT: Self = Self(1 << 12);
    pub(super) const TREATMENT: Self = Self(1 << 13);
    pub(super) const KIN: Self = Self(1 << 14);
    pub(super) const ARRIVAL: Self = Self(1 << 15);

    pub(super) const fn with(self, other: Self) -> Self {
        Self(self.0 | other.0)
    }

    pub(super) const fn has(self, role: Self) -> bool {
        self.0 & role.0 != 0
    }
}

/// Whom a clause is about.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Subject {
    /// The patient, or a pronoun that may mean the patient.
    Patient,
    Kin,
    /// A complaint, a body part, a drug.
    Thing,
}

/// A run of tokens with one verb.
#[derive(Clone, Debug)]
pub(super) struct Clause {
    pub(super) tokens: Range<usize>,
    pub(super) subject: Subject,
    /// The first token of the subject if the clause says it.
    pub(super) subject_at: Option<usize>,
    /// The verb with its auxiliaries and adverbs; empty if there is none.
    pub(super) verb: Range<usize>,
}

/// Tokens behind a conjunction in which a verb opens a new clause.
const REACH: usize = 7;

/// The roles of every token. The past forms of regular verbs are verbs behind an auxiliary.
pub(super) fn roles_of(lexicon: &SlotLexicon, text: &str, tokens: &[Token]) -> Vec<Roles> {
    let mut roles: Vec<Roles> = Vec::with_capacity(tokens.len());
    for token in tokens {
        let word = text.get(token.start..token.end).unwrap_or_default();
        let mut role = lexicon.roles.get(word).copied().unwrap_or_default();
        let follows_auxiliary = roles.last().is_some_and(|before| before.has(Roles::AUXILIARY));
        if role == Roles::default() && follows_auxiliary && (word.ends_with("ed") || word.ends_with("ing")) {
            role = Roles::VERB;
        }
        if role == Roles::default() && word.len() > 4 && word.ends_with("ly") {
            role = Roles::ADVERB;
        }
        roles.push(role);
    }
    roles
}

/// The clauses of a sentence, whose tokens are given by `sentence`.
pub(super) fn clauses(text: &str, tokens: &[Token], roles: &[Roles], sentence: Range<usize>) -> Vec<Clause> {
    let role = |index: usize| {
        if index < sentence.end { roles.get(index).copied().unwrap_or_default() } else { Roles::default() }
    };
    let gap = |index: usize| tokens.get(index).map_or(Gap::Space, |token| token.gap);
    let word = |index: usize| tokens.get(index).and_then(|token| text.get(token.start..token.end)).unwrap_or_default();
    // Where a clause of its own begins, and how many tokens of conjunction stand before it.
    let mut starts: Vec<(usize, usize)> = vec![(sentence.start, 0)];
    let mut last_start = sentence.start;
    let mut at = sentence.start + 1;
    while at < sentence.end {
        let is_conjunction = role(at).has(Roles::SUBORDINATOR);
        let after_comma = matches!(gap(at), Gap::Comma | Gap::Semicolon);
        let first = if is_conjunction { at + 1 } else { at };
        let mut opens = false;
        if gap(at) == Gap::Semicolon {
            opens = true;
        } else if is_conjunction && !matches!(word(at), "and" | "or" | "nor" | "so" | "until" | "despite") {
            // "because of", "so that" and the like open none of their own.
            opens = has_verb_near(&role, &word, first) && word(first) != "of";
        } else if is_conjunction || after_comma {
            opens = opens_clause(&role, &gap, &word, first);
        } else if at > last_start && role(at - 1).has(Roles::TELLING) {
            // "his mother says (that) he ..."
            let first = if word(at) == "that" { at + 1 } else { at };
            let is_subject = role(first).has(Roles::PRONOUN) || matches!(word(first), "his" | "her" | "the");
            opens = (is_subject || first > at) && has_verb_near(&role, &word, first + 1);
            if opens && first > at {
                starts.push((first, 1));
                last_start = first;
                at = first + 1;
                continue;
            }
        }
        if opens {
            let skipped = first - at;
            if first < sentence.end {
                starts.push((first, skipped));
                last_start = first;
            }
            at = first + 1;
        } else {
            at += 1;
        }
    }
    let mut clauses: Vec<Clause> = Vec::with_capacity(starts.len());
    let mut subject = Subject::Patient;
    for (index, &(start, _)) in starts.iter().enumerate() {
        let end = starts.get(index + 1).map_or(sentence.end, |&(next, skipped)| next - skipped);
        if start >= end {
            continue;
        }
        let mut clause = clause(&role, &gap, &word, tokens, start..end, subject);
        // "his father, aged 70, has gout"
        if clause.subject_at.is_none()
            && clause.subject == Subject::Kin
            && let Some(before) = clauses.last().filter(|before: &&Clause| before.verb.is_empty())
        {
            clause.subject_at = before.subject_at;
        }
        subject = clause.subject;
        // What a relative tells is about the patient.
        if subject == Subject::Kin && clause.verb.clone().any(|index| role(index).has(Roles::TELLING)) {
            subject = Subject::Patient;
        }
        clauses.push(clause);
    }
    clauses
}

fn has_verb_near<'a>(role: &impl Fn(usize) -> Roles, word: &impl Fn(usize) -> &'a str, first: usize) -> bool {
    (first..first + REACH).any(|index| role(index).has(Roles::VERB) && word(index) != "left")
}

/// Whether a verb, or a subject with its verb, stands at `first`.
fn opens_clause<'a>(
    role: &impl Fn(usize) -> Roles,
    gap: &impl Fn(usize) -> Gap,
    word: &impl Fn(usize) -> &'a str,
    first: usize,
) -> bool {
    let mut at = first;
    while role(at).has(Roles::ADVERB) && !matches!(word(at), "no" | "once") {
        at += 1;
    }
    let is_verb = |index: usize| role(index).has(Roles::VERB) && word(index) != "left";
    if is_verb(at) && word(at) != "do" {
        return true;
    }
    if role(at).has(Roles::PRONOUN) && !matches!(word(at), "this" | "these") {
        return (at + 1..at + 4).any(is_verb);
    }
    // A noun phrase of at most five words before its verb, without comma.
    let is_article = matches!(
        word(at),
        "his" | "her" | "the" | "their" | "this" | "these" | "there" | "family" | "a" | "an" | "no" | "all"
    );
    if !is_article {
        return false;
    }
    for index in at + 1..at + REACH {
        if gap(index) != Gap::Space && gap(index) != Gap::Hyphen {
            return false;
        }
        if is_verb(index) {
            return true;
        }
        if matches!(word(index), "that" | "which" | "who" | "after" | "because" | "with" | "for" | "from") {
            return false;
        }
    }
    false
}

fn clause<'a>(
    role: &impl Fn(usize) -> Roles,
    gap: &impl Fn(usize) -> Gap,
    word: &impl Fn(usize) -> &'a str,
    tokens: &[Token],
    range: Range<usize>,
    inherited: Subject,
) -> Clause {
    let verb_at = range.clone().find(|&index| {
        role(index).has(Roles::VERB) && (word(index) != "left" || role(index.wrapping_sub(1)).has(Roles::PRONOUN))
    });
    let verb = match verb_at {
        None => range.end..range.end,
        Some(first) => {
            let mut end = first + 1;
            while end < range.end
                && gap(end) == Gap::Space
                && !(word(end) == "no" && word(end + 1) != "longer")
                && (role(end).has(Roles::AUXILIARY)
                    || role(end).has(Roles::ADVERB)
                    || (role(end).has(Roles::VERB)
                        && (end - first) < 5
                        && role(end - 1).has(Roles::AUXILIARY.with(Roles::ADVERB))))
            {
                end += 1;
            }
            first..end
        }
    };
    // The subject: what stands before the verb and behind an opening phrase that a comma ends.
    let before = range.start..verb.start.min(range.end);
    let has_verb = !verb.is_empty();
    let opening = before.clone().rev().find(|&index| index > range.start && gap(index) == Gap::Comma);
    let kin = before
        .clone()
        .find(|&index| role(index).has(Roles::KIN) && tokens.get(index).is_some_and(|token| !token.possessive));
    let from = match (opening, kin) {
        // "her father, who ..." and "her father, mother, and sister have"
        (Some(comma), Some(kin)) if kin < comma => kin,
        (Some(comma), _) => comma,
        (None, _) => range.start,
    };
    let said = (from..before.end).find(|&index| !role(index).has(Roles::ADVERB));
    let (subject, subject_at) = match said {
        _ if !has_verb && kin.is_some_and(|kin| kin <= range.start + 1) => (Subject::Kin, kin),
        _ if !has_verb => (inherited, None),
        None => (inherited, None),
        // "about 4 weeks ago he developed"
        Some(first)
            if kin.is_none()
                && verb.start > first
                && matches!(word(verb.start - 1), "he" | "she")
                && role(verb.start - 1).has(Roles::PRONOUN) =>
        {
            (Subject::Patient, Some(verb.start - 1))
        }
        Some(first) => {
            if let Some(kin) = kin.filter(|&kin| kin >= first) {
                (Subject::Kin, Some(kin))
            } else if (role(first).has(Roles::PRONOUN)
                && !matches!(word(first), "this" | "these" | "it" | "they" | "there"))
                || (first..before.end).any(|index| {
                    matches!(
                        word(index),
                        "patient"
                            | "man"
                            | "woman"
                            | "boy"
                            | "girl"
                            | "infant"
                            | "child"
                            | "daughter"
                            | "son"
                            | "newborn"
                            | "baby"
                    ) && tokens.get(index).is_some_and(|token| !token.possessive)
                })
            {
                (Subject::Patient, Some(first))
            } else {
                (Subject::Thing, Some(first))
            }
        }
    };
    Clause { tokens: range, subject, subject_at, verb }
}
