//! A vignette in tokens, and the phrases that can be cut from it.

use super::grammar::{Clause, Roles};
use super::terms::{Gap, Mention, SlotSet, Token};
use super::{Case, Facts};
use crate::record::slots::Slot;
use crate::text::context::{Experiencer, Scopes};
use std::ops::Range;

/// A vignette in tokens, with the terms in it.
pub(super) struct Reading<'a> {
    pub(super) case: &'a Case<'a>,
    pub(super) tokens: &'a [Token],
    pub(super) roles: &'a [Roles],
    pub(super) mentions: &'a [Mention],
    /// The slots of the terms that cover each token.
    pub(super) cover: &'a [SlotSet],
    pub(super) scopes: &'a Scopes,
    /// Spans of time, as byte ranges.
    pub(super) times: &'a [Range<usize>],
}

impl Reading<'_> {
    pub(super) fn word(&self, index: usize) -> &str {
        self.tokens.get(index).map_or("", |token| self.case.slice(token.start..token.end))
    }

    pub(super) fn role(&self, index: usize) -> Roles {
        self.roles.get(index).copied().unwrap_or_default()
    }

    pub(super) fn gap(&self, index: usize) -> Gap {
        self.tokens.get(index).map_or(Gap::Mark, |token| token.gap)
    }

    pub(super) fn covers(&self, index: usize, slot: Slot) -> bool {
        self.cover.get(index).is_some_and(|slots| slots.has(slot))
    }

    /// The text of a run of tokens, with a bracket that it opens and a percent sign behind it.
    pub(super) fn bytes(&self, run: &Range<usize>) -> Option<Range<usize>> {
        let start = self.tokens.get(run.start)?.start;
        let mut end = self.tokens.get(run.end.checked_sub(1)?)?.end;
        if start >= end {
            return None;
        }
        let text = self.case.slice(start..end);
        let open = text.bytes().filter(|&byte| byte == b'(').count();
        let closed = text.bytes().filter(|&byte| byte == b')').count();
        let after = self.case.slice(end..(end + 2).min(self.case.text.len()));
        if open > closed && after.starts_with(')') || after.starts_with('%') {
            end += 1;
        }
        Some(start..end)
    }

    /// The tokens that stand within a byte range.
    pub(super) fn tokens_in(&self, range: &Range<usize>) -> Range<usize> {
        let first = self.tokens.partition_point(|token| token.start < range.start);
        let last = self.tokens.partition_point(|token| token.end <= range.end);
        first..last.max(first)
    }

    /// The terms of a slot within a run of tokens; of terms in each other the longest.
    pub(super) fn terms<'b>(&'b self, run: &Range<usize>, slot: Slot) -> impl Iterator<Item = Range<usize>> + 'b {
        let first = self.mentions.partition_point(|mention| mention.tokens.start < run.start);
        let end = run.end;
        let mut read_until = 0;
        self.mentions
            .get(first..)
            .unwrap_or_default()
            .iter()
            .take_while(move |mention| mention.tokens.start < end)
            .filter_map(move |mention| {
                let fits = mention.slots.has(slot) && mention.tokens.end <= end && mention.tokens.start >= read_until;
                fits.then(|| {
                    read_until = mention.tokens.end;
                    mention.tokens.clone()
                })
            })
    }

    pub(super) fn has(&self, run: &Range<usize>, slot: Slot) -> bool {
        self.terms(run, slot).next().is_some()
    }

    pub(super) fn negation(&self, run: &Range<usize>) -> Option<Range<usize>> {
        self.scopes.negation_at(&self.bytes(run)?).map(|cue| self.tokens_in(&cue))
    }

    pub(super) fn is_of_family(&self, run: &Range<usize>) -> bool {
        self.bytes(run).is_some_and(|bytes| self.scopes.at(&bytes).experiencer != Experiencer::Patient)
    }

    /// Whether a word closes what stands behind it off from what stands before.
    pub(super) fn closes(&self, index: usize) -> bool {
        let role = self.role(index);
        // "left-sided", "left lower quadrant"
        if role.has(Roles::VERB) && role.has(Roles::DIRECTION) && self.is_side(index) {
            return false;
        }
        role.has(Roles::CLOSED) || (role.has(Roles::VERB) && !role.has(Roles::QUALITY)) || role.has(Roles::KIN)
    }

    /// Whether a word of side stands before a part of the body or another word of direction.
    pub(super) fn is_side(&self, index: usize) -> bool {
        self.role(index).has(Roles::DIRECTION)
            && (self.role(index + 1).has(Roles::DIRECTION)
                || self.covers(index + 1, Slot::SymptomPosition)
                || self.covers(index + 1, Slot::SymptomName))
    }

    /// Whether a word may be one of several joined by "and" before the noun they share.
    pub(super) fn is_shared(&self, index: usize) -> bool {
        (self.covers(index, Slot::SymptomPosition)
            || self.role(index).has(Roles::DIRECTION)
            || self.role(index).has(Roles::QUALITY))
            && !self.in_time(index)
    }

    /// The noun phrase around a term: with the adjectives before it, which a comma may part.
    pub(super) fn noun_phrase(&self, term: &Range<usize>, from: usize) -> Range<usize> {
        let mut start = term.start;
        while start > from && term.start - start < 7 {
            let before = start - 1;
            match self.gap(start) {
                Gap::Space | Gap::Hyphen => {}
                // "(15-lb) weight loss"
                Gap::Bracket if self.covers(term.start, Slot::PhysicalChange) => {}
                // "severe, sharp pain", but not "fever, sharp pain"
                Gap::Comma if self.is_quality(before) && !self.covers(before, Slot::SymptomName) => {}
                _ => break,
            }
            // "bilateral wrist and knee pain", "deep and burning buttock pain"
            if matches!(self.word(before), "and" | "or")
                && before > from
                && start < term.end
                && self.is_shared(start)
                && self.is_shared(before - 1)
                && (!self.covers(before - 1, Slot::SymptomName) || self.role(before - 1).has(Roles::QUALITY))
                && matches!(self.gap(before), Gap::Space)
            {
                start = before - 1;
                continue;
            }
            // "curtain-like loss of vision"
            let is_compound = self.word(before) == "like" && self.gap(before) == Gap::Hyphen;
            if self.closes(before)
                && !is_compound
                && (self.gap(start) != Gap::Hyphen || self.role(before).has(Roles::VERB))
            {
                break;
            }
            // "sudden onset of" and spans of time belong to no name.
            if self.in_time(before) {
                break;
            }
            start = before;
        }
        start..term.end
    }

    pub(super) fn is_quality(&self, index: usize) -> bool {
        self.role(index).has(Roles::QUALITY)
            // "right-sided, dull pain"
            || self.word(index) == "sided"
            || self.covers(index, Slot::SymptomDegree)
            || self.covers(index, Slot::SymptomTime)
            || self.covers(index, Slot::SymptomColor)
            || self.covers(index, Slot::SymptomTexture)
            || self.word(index).ends_with("ing")
    }

    pub(super) fn in_time(&self, index: usize) -> bool {
        let Some(token) = self.tokens.get(index) else { return false };
        let first = self.times.partition_point(|time| time.end <= token.start);
        self.times.get(first).is_some_and(|time| time.start <= token.start && token.end <= time.end)
    }

    /// Goes on behind `end` with the place of a complaint: "in his left knee", "of both shoulders and hips".
    pub(super) fn with_place(&self, run: &Range<usize>, limit: usize) -> Range<usize> {
        let mut end = run.end;
        let mut reached_end = run.end;
        loop {
            let joins = self.role(end).has(Roles::PLACE)
                || (end > run.end && matches!(self.word(end), "and" | "or"))
                || (end > run.end && self.gap(end) == Gap::Comma);
            if end >= limit || !joins || self.in_time(end) || self.gap(end) == Gap::Semicolon {
                break;
            }
            // "in and around the ear"
            if self.role(end).has(Roles::PLACE) && self.word(end + 1) == "and" && self.role(end + 2).has(Roles::PLACE) {
                end += 2;
            }
            // The part of the body stands within the next words.
            let mut at = if self.gap(end) == Gap::Comma
                && !self.role(end).has(Roles::PLACE)
                && !matches!(self.word(end), "and" | "or")
            {
                end
            } else {
                end + 1
            };
            let mut reached = None;
            let first = at;
            while at < limit && at < first + 6 && (at == first || matches!(self.gap(at), Gap::Space | Gap::Hyphen)) {
                if self.covers(at, Slot::SymptomPosition) {
                    reached = Some(at + 1);
                } else if reached.is_some() || self.in_time(at) || self.covers(at, Slot::SymptomName) {
                    break;
                } else {
                    let role = self.role(at);
                    let passes = !self.closes(at)
                        || matches!(
                            self.word(at),
                            "his" | "her" | "the" | "their" | "both" | "of" | "a" | "an" | "side"
                        )
                        || role.has(Roles::DIRECTION);
                    if !passes {
                        break;
                    }
                }
                at += 1;
            }
            match reached {
                // "pain in the chest and cough": the next item is a complaint of its own.
                Some(next)
                    if next > end
                        && !(next..next + 1).any(|index| {
                            self.is_head_noun(index) && self.gap(index) == Gap::Space && index < limit
                        }) =>
                {
                    end = next;
                    reached_end = next;
                }
                _ => break,
            }
        }
        run.start..reached_end
    }

    pub(super) fn is_head_noun(&self, index: usize) -> bool {
        self.covers(index, Slot::SymptomName) && !self.covers(index, Slot::SymptomPosition)
    }

    /// A clause from its verb on, without auxiliaries that say nothing.
    pub(super) fn told_by_verb(&self, clause: &Clause) -> Range<usize> {
        let mut start = if clause.verb.is_empty() { clause.tokens.start } else { clause.verb.start };
        while start + 1 < clause.verb.end && (!self.role(start).has(Roles::TOLD)) {
            let next_is_negation = matches!(self.word(start + 1), "not" | "no")
                && matches!(self.word(start), "does" | "did" | "do" | "can" | "could" | "would" | "will");
            let is_empty = self.role(start).has(Roles::AUXILIARY)
                && !next_is_negation
                && !matches!(self.word(start), "could" | "can" | "doesn" | "didn" | "don");
            let is_adverb = self.role(start).has(Roles::ADVERB);
            if !is_empty && !is_adverb {
                break;
            }
            start += 1;
        }
        // "is sexually active"
        while start < clause.tokens.end
            && matches!(self.word(start), "is" | "was" | "are" | "were" | "has" | "had")
            && start + 1 < clause.tokens.end
            && self.word(start + 1) != "no"
        {
            start += 1;
        }
        self.without_ends(start..clause.tokens.end)
    }

    /// A run without words that nothing ends or begins with.
    pub(super) fn without_ends(&self, run: Range<usize>) -> Range<usize> {
        let mut run = run;
        while run.end > run.start
            && matches!(
                self.word(run.end - 1),
                "and"
                    | "or"
                    | "but"
                    | "with"
                    | "of"
                    | "the"
                    | "a"
                    | "an"
                    | "in"
                    | "for"
                    | "that"
                    | "which"
                    | "to"
                    | "by"
                    | "as"
                    | "has"
                    | "had"
                    | "is"
                    | "was"
                    | "because"
                    | "his"
                    | "her"
                    | "he"
                    | "she"
                    | "over"
                    | "about"
                    | "approximately"
                    | "than"
                    | "on"
            )
        {
            run.end -= 1;
        }
        while run.start < run.end
            && (matches!(
                self.word(run.start),
                "a" | "an"
                    | "the"
                    | "his"
                    | "her"
                    | "their"
                    | "that"
                    | "and"
                    | "or"
                    | "but"
                    | "also"
                    | "some"
                    | "which"
                    | "with"
                    | "of"
                    | "as"
                    | "he"
                    | "she"
                    | "they"
                    | "noticing"
                    | "experiencing"
                    | "having"
                    | "developing"
                    | "feeling"
                    | "like"
            ) || (matches!(self.word(run.start), "is" | "was" | "are" | "were")
                && !matches!(self.word(run.start + 1), "no" | "not"))
                || (self.role(run.start).has(Roles::ADVERB)
                    && !self.role(run.start).has(Roles::TOLD)
                    && !self.covers(run.start, Slot::SymptomTime)
                    && !self.covers(run.start, Slot::SymptomDegree)
                    && !self.word(run.start).ends_with("ly")))
        {
            run.start += 1;
        }
        run
    }

    /// Adds a run as a value of a slot.
    pub(super) fn push(&self, facts: &mut Facts, slot: Slot, run: &Range<usize>) {
        if let Some(bytes) = self.bytes(run) {
            facts.push((slot, bytes));
        }
    }
}
