//! What is told of a patient: the clauses of a history, sorted into slots.
//!
//! Every clause is offered to the slots of history and context by the terms it holds. What none of them takes is read as
//! a complaint, if it is about the patient.

use super::grammar::{Clause, Roles, Subject, clauses};
use super::symptoms::Kind;
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

/// Slots whose cue claims the whole clause: it holds no complaint then.
const CLAIMING: SlotSet = SlotSet::of(Slot::HabitTobacco)
    .with(SlotSet::of(Slot::HabitWine))
    .with(SlotSet::of(Slot::HabitDrug))
    .with(SlotSet::of(Slot::CoitusHistory))
    .with(SlotSet::of(Slot::Preventive));

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
    fn closes(&self, index: usize) -> bool {
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
    fn is_shared(&self, index: usize) -> bool {
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

    fn is_quality(&self, index: usize) -> bool {
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

    fn is_head_noun(&self, index: usize) -> bool {
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

    fn push(&self, facts: &mut Facts, slot: Slot, run: &Range<usize>) {
        if let Some(bytes) = self.bytes(run) {
            facts.push((slot, bytes));
        }
    }

    /// Reads one sentence of the history.
    pub(super) fn sentence(&self, sentence: &Range<usize>, facts: &mut Facts) {
        let run = self.tokens_in(sentence);
        // "Ten days ago, she had a fever": the time stands in a part of its own, before the clause it belongs to.
        let mut opening: Option<Range<usize>> = None;
        for clause in clauses(self.case.text, self.tokens, self.roles, run) {
            let n_before = self.count_complaints(facts);
            self.clause(&clause, facts);
            if clause.verb.is_empty() && self.is_time_only(&clause.tokens) {
                opening = Some(clause.tokens.clone());
            } else if let Some(time) = opening.take()
                && self.count_complaints(facts) > n_before
            {
                self.attributes(&time, facts);
            }
        }
    }

    fn count_complaints(&self, facts: &Facts) -> usize {
        facts.iter().filter(|(slot, _)| matches!(slot, Slot::SymptomName | Slot::PhysicalChange)).count()
    }

    /// Whether a run is a span of time, with nothing but small words and adverbs beside it.
    fn is_time_only(&self, run: &Range<usize>) -> bool {
        let is_time = |index: usize| self.in_time(index) || self.covers(index, Slot::SymptomTime);
        // "during these episodes", "during this period" name no time.
        run.clone().any(is_time)
            && !run.clone().any(|index| matches!(self.word(index), "these" | "this" | "those"))
            && run.clone().all(|index| {
                is_time(index)
                    || self.role(index).has(Roles::CLOSED)
                    || self.role(index).has(Roles::ADVERB)
                    || self.role(index).has(Roles::PLACE)
            })
    }

    fn clause(&self, clause: &Clause, facts: &mut Facts) {
        let run = &clause.tokens;
        self.department(run, facts);
        if self.family(clause, facts) {
            return;
        }
        let mut claimed = self.habits(clause, facts);
        // A vaccine is named by a disease, an allergy by a drug.
        let prevented = self.preventive(clause, facts);
        let named = prevented | self.allergies(clause, facts);
        claimed |= prevented;
        let content = self.content(clause);
        let reason =
            content.as_ref().filter(|content| content.kind == Kind::Reason).map(|content| content.tokens.clone());
        let noted = self.notes(clause, reason.as_ref(), facts);
        claimed |= self.contact(clause, reason.is_some(), facts);
        // "was started on several drugs 1 month ago" is told of the past; "is started on" of now.
        let is_now = clause.verb.clone().any(|index| matches!(self.word(index), "is" | "are"))
            || clause.subject == Subject::Thing;
        let is_given = !named && is_now && self.given(clause, facts);
        if !named && !is_given {
            self.treatment(clause, facts);
        }
        if !prevented {
            self.diagnoses(clause, reason.as_ref(), facts);
        }
        self.surgery(clause, facts);
        self.changes(clause, facts);
        self.weight_change(run, facts);
        let living = self.living(clause, facts);
        // "the symptoms began while she was watching a movie"
        if self.word(run.start.wrapping_sub(1)) == "while"
            && !self.has(run, Slot::SymptomName)
            && clause.verb.clone().any(|index| self.word(index).ends_with("ing"))
            && clause.subject == Subject::Patient
        {
            self.push(facts, Slot::SymptomTime, &(run.start - 1..run.end));
            return;
        }
        // "comes because she has not attained menarche"
        let is_why = self.word(run.start.wrapping_sub(1)) == "because";
        if ((claimed || living) && reason.is_none()) || (noted && !is_why) {
            return;
        }
        self.complaints_of(clause, content.as_ref(), facts);
    }

    /// Whether a sentence tells a history: somebody says something, or a term of habits, drugs or relatives stands in it.
    pub(super) fn tells(&self, sentence: &Range<usize>) -> bool {
        let run = self.tokens_in(sentence);
        if self.case.lexicon.history.is_match(self.case.slice(sentence.clone())) {
            return true;
        }
        let history = [
            Slot::HabitTobacco,
            Slot::HabitWine,
            Slot::HabitDrug,
            Slot::CoitusHistory,
            Slot::Preventive,
            Slot::AllergicHistory,
            Slot::ContactHistory,
            Slot::PastMedication,
        ];
        if history.into_iter().any(|slot| self.has(&run, slot)) {
            return true;
        }
        clauses(self.case.text, self.tokens, self.roles, run).iter().any(|clause| {
            let told = clause.verb.clone().any(|index| {
                self.word(index) == "complaining"
                    || self.role(index).has(Roles::TELLING)
                        && !matches!(self.word(index), "found" | "noted" | "observed" | "notes")
            });
            let had = matches!(self.word(clause.verb.start), "has" | "had")
                && clause.subject == Subject::Patient
                && clause.subject_at.is_some();
            (told && clause.subject != Subject::Thing)
                || had
                || (clause.subject == Subject::Kin && !clause.verb.is_empty())
        })
    }

    /// Whether a part of the body stands at a place of the text.
    pub(super) fn is_place(&self, at: usize) -> bool {
        let first = self.tokens.partition_point(|token| token.start < at);
        self.covers(first, Slot::SymptomPosition)
    }

    /// Whether a sentence says how the patient looks: "the boy appears drowsy".
    pub(super) fn looks(&self, sentence: &Range<usize>) -> bool {
        let run = self.tokens_in(sentence);
        let clauses = clauses(self.case.text, self.tokens, self.roles, run);
        // "At the clinic, the boy appears drowsy": the place stands in a part of its own.
        clauses.iter().find(|clause| !clause.verb.is_empty()).is_some_and(|clause| {
            clause.subject == Subject::Patient
                && clause.subject_at.is_some()
                && (matches!(self.word(clause.verb.start), "appears" | "appeared" | "looks")
                    || (matches!(self.word(clause.verb.start), "is" | "was")
                        && matches!(
                            self.word(clause.verb.end),
                            "alert"
                                | "oriented"
                                | "lethargic"
                                | "cachectic"
                                | "febrile"
                                | "afebrile"
                                | "tachypneic"
                                | "diaphoretic"
                                | "unconscious"
                                | "unresponsive"
                                | "somnolent"
                                | "agitated"
                                | "cooperative"
                        )))
        })
    }

    /// Whether a clause says that something is done: "an arterial line is obtained".
    pub(super) fn is_act(&self, clause: &Clause) -> bool {
        self.is_treated(clause)
            || (self.is_passive(clause)
                && matches!(
                    self.word(clause.verb.end - 1),
                    "performed" | "obtained" | "ordered" | "scheduled" | "recommended" | "drawn" | "taken" | "planned"
                ))
    }

    fn is_passive(&self, clause: &Clause) -> bool {
        clause.verb.len() > 1
            && clause.verb.clone().any(|index| matches!(self.word(index), "is" | "are" | "was" | "were" | "been"))
    }

    /// Whether a clause says that a treatment is given: "vasopressors are administered".
    pub(super) fn is_treated(&self, clause: &Clause) -> bool {
        self.is_passive(clause)
            && !clause.verb.clone().any(|index| self.word(index) == "not")
            && matches!(
                self.word(clause.verb.end - 1),
                "administered"
                    | "given"
                    | "inserted"
                    | "placed"
                    | "initiated"
                    | "begun"
                    | "started"
                    | "intubated"
                    | "resuscitated"
                    | "transfused"
                    | "stabilized"
                    | "secured"
                    | "prescribed"
            )
    }

    /// Whether every clause of a sentence with a verb tells a treatment.
    pub(super) fn is_all_treatment(&self, sentence: &Range<usize>) -> bool {
        let run = self.tokens_in(sentence);
        let clauses = clauses(self.case.text, self.tokens, self.roles, run);
        let mut verbal = clauses.iter().filter(|clause| !clause.verb.is_empty()).peekable();
        verbal.peek().is_some_and(|first| self.is_treated(first)) && verbal.all(|clause| self.is_act(clause))
    }

    /// A treatment of the present illness that a clause says in the passive.
    fn given(&self, clause: &Clause, facts: &mut Facts) -> bool {
        let first = clause.subject_at.unwrap_or(clause.tokens.start);
        if !self.is_treated(clause)
            || self.has(&clause.tokens, Slot::PastDiagnosis)
            || self.word(clause.verb.start) == "has"
            || clause.subject == Subject::Kin
        {
            return false;
        }
        let value = if clause.subject == Subject::Thing {
            self.without_ends(first..clause.tokens.end)
        } else {
            self.without_ends(clause.verb.end - 1..clause.tokens.end)
        };
        self.push(facts, Slot::ReceivingTreatment, &value);
        true
    }

    /// Whether a term is but a part of the name of a disease: "irritable bowel syndrome", "peptic ulcer disease".
    pub(super) fn is_within_disease(&self, term: &Range<usize>) -> bool {
        let end = self.mentions.partition_point(|mention| mention.tokens.start <= term.start);
        // No name of a disease is longer than ten words.
        self.mentions
            .get(..end)
            .unwrap_or_default()
            .iter()
            .rev()
            .take_while(|mention| mention.tokens.start + 10 > term.start)
            .any(|mention| {
                mention.slots.has(Slot::PastDiagnosis)
                    && !mention.slots.has(Slot::SymptomName)
                    && mention.tokens.end >= term.end
                    && mention.tokens.len() > term.len()
            })
    }

    fn department(&self, run: &Range<usize>, facts: &mut Facts) {
        if facts.iter().any(|(slot, _)| *slot == Slot::Department) {
            return;
        }
        if let Some(term) = self.terms(run, Slot::Department).next() {
            let phrase = self.noun_phrase(&term, run.start);
            self.push(facts, Slot::Department, &phrase);
        }
    }

    /// A clause about relatives.
    fn family(&self, clause: &Clause, facts: &mut Facts) -> bool {
        let run = &clause.tokens;
        let family = run
            .clone()
            .find(|&index| self.word(index) == "family" && self.word(index + 1) == "history" && index + 1 < run.end);
        if let Some(at) = family {
            let negation = (run.start.max(at.saturating_sub(7))..at).rev().find(|&index| {
                matches!(self.word(index), "no" | "nor" | "denies" | "denied" | "without" | "unremarkable")
            });
            let start = negation.unwrap_or(at);
            self.push(facts, Slot::FamilyHistory, &self.without_ends(start..run.end));
            return true;
        }
        if clause.subject != Subject::Kin || clause.verb.is_empty() {
            return false;
        }
        if clause.verb.clone().any(|index| self.role(index).has(Roles::TELLING)) && !self.has(run, Slot::PastDiagnosis)
        {
            return false;
        }
        // "his parents note that she was diagnosed", "his mother has been giving him ibuprofen"
        let is_about_patient = matches!(self.word(clause.verb.end), "that" | "he" | "she" | "him")
            || clause.verb.clone().any(|index| matches!(self.word(index), "giving" | "gave" | "given" | "brought"));
        if is_about_patient {
            return false;
        }
        let health = run.clone().any(|index| {
            matches!(
                self.word(index),
                "died"
                    | "dead"
                    | "healthy"
                    | "well"
                    | "alive"
                    | "history"
                    | "diagnosed"
                    | "transplant"
                    | "cancer"
                    | "disease"
                    | "disorder"
                    | "condition"
                    | "problems"
                    | "unaffected"
            )
        });
        let sick_kin = self.has(run, Slot::PastDiagnosis)
            || self.has(run, Slot::ContactHistory)
            || (self.has(run, Slot::SymptomName)
                && !clause.verb.clone().any(|index| self.role(index).has(Roles::TELLING))
                && !run
                    .clone()
                    .any(|index| matches!(self.word(index), "husband" | "wife" | "boyfriend" | "girlfriend")));
        if (!health && !sick_kin)
            || (self.has(run, Slot::TraumaSurgery) && !self.has(run, Slot::PastDiagnosis))
                && !run.clone().any(|index| self.word(index) == "transplant")
        {
            return false;
        }
        // "no one in his family had anemia"
        let start = match clause.subject_at {
            Some(_) if matches!(self.word(run.start), "no" | "none" | "nobody" | "neither") => run.start,
            Some(at) => at,
            None => run.start,
        };
        let value =
            if clause.subject_at.is_some() { self.without_ends(start..run.end) } else { self.told_by_verb(clause) };
        let sick = run.clone().any(|index| {
            matches!(self.word(index), "cold" | "similar" | "sick" | "ill" | "flu" | "chickenpox" | "infection")
        });
        let contact = self.has(run, Slot::ContactHistory);
        let slot = if sick || contact { Slot::ContactHistory } else { Slot::FamilyHistory };
        // "her parents had soothed her with honey", but "his wife has had the same symptoms"
        let is_state = clause.verb.clone().last().is_some_and(|main| {
            matches!(self.word(main), "has" | "had" | "have" | "is" | "was" | "are" | "were" | "been" | "developed")
        });
        let value = if contact && !sick && !is_state { self.told_by_verb(clause) } else { value };
        self.push(facts, slot, &value);
        true
    }

    /// Items between known drugs that no list holds: "takes clopamide and a multivitamin".
    fn unknown_drugs(&self, list: &Range<usize>, drugs: &[Range<usize>], facts: &mut Facts) {
        let mut start = list.start;
        let mut items = Vec::new();
        for at in list.clone() {
            if matches!(self.word(at), "and" | "or") || (self.gap(at) == Gap::Comma && at > start) {
                items.push(start..at);
                start = if matches!(self.word(at), "and" | "or") { at + 1 } else { at };
            }
        }
        items.push(start..list.end);
        for item in items {
            let item = self.without_ends(item);
            let is_known = drugs.iter().any(|drug| drug.start < item.end && item.start < drug.end);
            let is_plain = item.len() == 1
                && self.word(item.start).len() > 5
                && self.role(item.start) == Roles::default()
                && self.cover.get(item.start).is_some_and(|slots| *slots == SlotSet::default());
            if is_plain && !is_known {
                self.push(facts, Slot::PastMedication, &item);
            }
        }
    }

    /// The first word of "no known", "denies any" or the like that ends right before `at`.
    fn negation_before(&self, at: usize, from: usize) -> Option<usize> {
        (from.max(at.saturating_sub(4))..at)
            .find(|&index| matches!(self.word(index), "no" | "denies" | "denied" | "without"))
    }

    /// Tobacco, alcohol, drugs and sexual activity: the clause from its verb on, up to the end of the item.
    fn habits(&self, clause: &Clause, facts: &mut Facts) -> bool {
        let run = &clause.tokens;
        let mut claimed = false;
        for slot in [Slot::HabitTobacco, Slot::HabitWine, Slot::HabitDrug, Slot::CoitusHistory] {
            let Some(last) = self.terms(run, slot).last() else { continue };
            // "smokes marijuana"
            if slot == Slot::HabitTobacco
                && self.covers(last.end, Slot::HabitDrug)
                && self.gap(last.end) == Gap::Space
                && self.terms(run, slot).count() == 1
            {
                continue;
            }
            let whole = self.told_by_verb(clause);
            let mut end = whole.end;
            // The item ends before the cue of another habit.
            for index in last.end..whole.end {
                let parts = self.gap(index) == Gap::Comma || matches!(self.word(index), "and" | "or" | "nor");
                let other = [Slot::HabitTobacco, Slot::HabitWine, Slot::HabitDrug, Slot::CoitusHistory]
                    .into_iter()
                    .any(|other| other != slot && self.has(&(index..whole.end), other));
                if parts && other {
                    end = index;
                    break;
                }
            }
            // "a 50-pack-year history of smoking" opens its own phrase.
            // So does one behind diseases: "hypertension and a 25 pack-year smoking history".
            let start = if last.start < clause.verb.start {
                whole.start.min(last.start)
            } else if self.has(&(whole.start..last.start), Slot::PastDiagnosis) && clause.subject == Subject::Thing {
                self.noun_phrase(&last, whole.start).start
            } else {
                whole.start
            };
            let value = self.without_ends(start..end.max(last.end));
            self.push(facts, slot, &value);
            claimed = true;
        }
        claimed
    }

    fn preventive(&self, clause: &Clause, facts: &mut Facts) -> bool {
        let run = &clause.tokens;
        let Some(term) = self.terms(run, Slot::Preventive).next() else { return false };
        let value = match clause.subject_at {
            Some(at) if clause.subject == Subject::Thing => self.without_ends(at..run.end),
            _ if clause.verb.is_empty() => self.noun_phrase(&term, run.start),
            _ => self.told_by_verb(clause),
        };
        self.push(facts, Slot::Preventive, &value);
        true
    }

    fn allergies(&self, clause: &Clause, facts: &mut Facts) -> bool {
        let run = &clause.tokens;
        let Some(term) = self.terms(run, Slot::AllergicHistory).next() else { return false };
        let start =
            self.negation_before(term.start, run.start).unwrap_or_else(|| self.noun_phrase(&term, run.start).start);
        let goes_on = matches!(self.word(term.end), "to" | "for" | "include");
        let end = if goes_on || self.word(term.end - 1) == "to" { run.end } else { term.end };
        let value = self.without_ends(start..end);
        self.push(facts, Slot::AllergicHistory, &value);
        true
    }

    /// Pregnancy, birth and menses.
    fn notes(&self, clause: &Clause, reason: Option<&Range<usize>>, facts: &mut Facts) -> bool {
        let run = &clause.tokens;
        let terms: Vec<Range<usize>> = self
            .terms(run, Slot::AdditionalNotes)
            .filter(|term| {
                let in_reason = reason.is_some_and(|reason| reason.contains(&term.start));
                !in_reason && !term.clone().any(|index| self.covers(index, Slot::PastMedication))
            })
            .collect();
        let Some(first) = terms.first() else { return false };
        // Beside the patient's noun it is an apposition: "gravida 2, para 1, at 34 weeks' gestation".
        let is_beside = reason.is_some()
            || clause.verb.is_empty()
            || (first.end <= clause.verb.start && clause.subject == Subject::Patient && clause.subject_at.is_some());
        if is_beside {
            let is_number = |index: usize| self.word(index).bytes().any(|byte| byte.is_ascii_digit());
            let mut value: Option<Range<usize>> = None;
            for term in terms {
                let mut start = term.start;
                while start > run.start && (is_number(start - 1) || matches!(self.word(start - 1), "weeks" | "week")) {
                    start -= 1;
                }
                let mut end = term.end;
                while end < run.end && is_number(end) && self.gap(end) == Gap::Space {
                    end += 1;
                }
                value = match value {
                    Some(before) if start <= before.end => Some(before.start..end),
                    Some(before) => {
                        self.push(facts, Slot::AdditionalNotes, &before);
                        Some(start..end)
                    }
                    None => Some(start..end),
                };
            }
            if let Some(value) = value {
                self.push(facts, Slot::AdditionalNotes, &self.without_ends(value));
            }
            return false;
        }
        let start = self.noun_phrase(first, run.start).start;
        let start = self.negation_before(start, run.start).unwrap_or(start);
        let is_negated = clause.verb.clone().any(|index| self.word(index) == "not");
        let start = if is_negated && clause.verb.contains(&start.wrapping_sub(1)) {
            self.told_by_verb(clause).start
        } else {
            start
        };
        self.push(facts, Slot::AdditionalNotes, &self.without_ends(start..run.end));
        true
    }

    fn contact(&self, clause: &Clause, is_reason: bool, facts: &mut Facts) -> bool {
        let run = &clause.tokens;
        let term = self.terms(run, Slot::ContactHistory).next();
        let named = term.as_ref().is_some_and(|term| {
            term.end <= clause.verb.start && clause.subject == Subject::Patient && clause.subject_at.is_some()
        });
        let lives = clause.verb.clone().any(|index| matches!(self.word(index), "lives" | "resides" | "works"));
        if lives || named || term.is_none() {
            return false;
        }
        // "had diarrhea after she ate chicken at a cookout"
        let later = term.as_ref().and_then(|term| {
            (clause.verb.end..term.start).rev().find(|&index| {
                matches!(self.word(index), "after" | "since" | "when") && self.role(index + 1).has(Roles::PRONOUN)
            })
        });
        if let Some(at) = later
            && self.has(&(clause.verb.end..at), Slot::SymptomName)
        {
            self.push(facts, Slot::ContactHistory, &self.without_ends(at + 2..run.end));
            return false;
        }
        let mut value = self.told_by_verb(clause);
        // "described a hiking trip"
        if matches!(
            self.word(value.start),
            "describes" | "described" | "mentions" | "mentioned" | "reports" | "reported"
        ) {
            value = self.without_ends(value.start + 1..value.end);
        }
        let value = match clause.subject_at {
            // "the gas heater was restarted"
            Some(at) if clause.subject == Subject::Thing && !is_reason => self.without_ends(at..run.end),
            _ => value,
        };
        // "comes because of fever after returning from a trip"
        let start = if is_reason { term.map_or(value.start, |term| term.start) } else { value.start };
        self.push(facts, Slot::ContactHistory, &(start..value.end.max(start)));
        true
    }

    /// Drugs: taken for some time, or for the present illness.
    fn treatment(&self, clause: &Clause, facts: &mut Facts) {
        let run = &clause.tokens;
        let cue = self.terms(run, Slot::ReceivingTreatment).next();
        let drugs: Vec<Range<usize>> = self.terms(run, Slot::PastMedication).collect();
        if drugs.is_empty() && cue.is_none() {
            return;
        }
        let negated = drugs.first().is_some_and(|drug| {
            self.negation(drug).is_some()
                || (clause.verb.start..drug.start)
                    .any(|index| matches!(self.word(index), "not" | "no" | "never") && drug.start - index < 6)
        });
        if negated {
            // "heartburn with no response to omeprazole", "a sore throat that settled without antibiotics"
            let first = drugs.first().map_or(run.end, |drug| drug.start);
            if self.has(&(run.start..first), Slot::SymptomName) {
                if let Some(cue) = cue.filter(|cue| cue.start < first) {
                    self.push(facts, Slot::ReceivingTreatment, &self.without_ends(cue.start..run.end));
                }
                return;
            }
            self.push(facts, Slot::PastMedication, &self.told_by_verb(clause));
            return;
        }
        let disease_before = cue.as_ref().is_some_and(|cue| self.has(&(run.start..cue.start), Slot::PastDiagnosis));
        let relief = run.clone().any(|index| self.role(index).has(Roles::TREATMENT));
        let is_present = !disease_before && relief && (cue.is_some() || !drugs.is_empty());
        if is_present {
            let start = match &cue {
                Some(cue) if cue.start < clause.verb.start || clause.verb.is_empty() => cue.start,
                _ => self.told_by_verb(clause).start,
            };
            self.push(facts, Slot::ReceivingTreatment, &self.without_ends(start..run.end));
            return;
        }
        let n_drugs = drugs.len();
        let lists = clause
            .verb
            .clone()
            .any(|index| matches!(self.word(index), "takes" | "taking" | "include" | "includes" | "are"));
        if lists && n_drugs > 0 {
            self.unknown_drugs(&(clause.verb.end..run.end), &drugs, facts);
        }
        for drug in drugs {
            // "her medications are lisinopril and alendronate"
            let is_generic = matches!(
                self.word(drug.end - 1),
                "medication" | "medications" | "drugs" | "drug" | "medicines" | "therapy" | "treatment"
            );
            if is_generic
                && (n_drugs > 1
                    || drug.start < clause.verb.start
                    || drug.len() == 1
                        && !matches!(self.word(drug.start.wrapping_sub(1)), "multiple" | "several" | "many"))
            {
                continue;
            }
            let mut phrase = self.noun_phrase(&drug, run.start);
            if is_generic
                && phrase.start > run.start
                && matches!(self.word(phrase.start - 1), "multiple" | "several" | "many")
            {
                phrase.start -= 1;
            }
            // A dose: "metformin 500 mg daily".
            while phrase.end < run.end
                && self.gap(phrase.end) == Gap::Space
                && !self.in_time(phrase.end)
                && (self.word(phrase.end).starts_with(|first: char| first.is_ascii_digit())
                    || matches!(
                        self.word(phrase.end),
                        "mg" | "mcg"
                            | "ug"
                            | "g"
                            | "units"
                            | "inhaler"
                            | "tablets"
                            | "therapy"
                            | "pills"
                            | "supplements"
                            | "supplement"
                            | "injections"
                    ))
            {
                phrase.end += 1;
            }
            self.push(facts, Slot::PastMedication, &phrase);
        }
    }

    fn surgery(&self, clause: &Clause, facts: &mut Facts) {
        let run = &clause.tokens;
        self.undergone(run, facts);
        let mut read_until = 0;
        for term in self.terms(run, Slot::TraumaSurgery) {
            if term.start < read_until {
                continue;
            }
            if self.negation(&term).is_some() {
                let value = self.negated(&term, clause);
                read_until = value.end;
                // "no history of serious illness or trauma" is told once.
                let is_told = self.bytes(&value).is_some_and(|bytes| {
                    facts.iter().any(|(slot, known)| {
                        *slot == Slot::PastDiagnosis && known.start < bytes.end && bytes.start < known.end
                    })
                });
                if !is_told {
                    self.push(facts, Slot::AdditionalNotes, &value);
                }
                continue;
            }
            let is_verb = clause.verb.contains(&term.start)
                || self.word(term.start).ends_with("ed")
                || matches!(self.word(term.start), "fell" | "hit" | "cut" | "broke");
            let value = if is_verb {
                self.without_ends(term.start..run.end)
            } else {
                let phrase = self.noun_phrase(&term, run.start);
                let mut end = phrase.end;
                if self.word(end) == "of" || self.word(end) == "to" {
                    let limit = (end + 5).min(run.end);
                    end = (end + 1..limit)
                        .find(|&index| {
                            self.gap(index) != Gap::Space
                                || (self.closes(index) && !matches!(self.word(index), "the" | "his" | "her" | "a"))
                        })
                        .unwrap_or(limit);
                }
                self.without_ends(phrase.start..end)
            };
            read_until = value.end;
            let known = self.bytes(&value).is_some_and(|bytes| {
                facts.iter().any(|(slot, known)| {
                    *slot == Slot::TraumaSurgery && known.start < bytes.end && bytes.start < known.end
                })
            });
            if !known {
                self.push(facts, Slot::TraumaSurgery, &value);
            }
        }
    }

    /// What the patient underwent, by whatever name, unless it is a test.
    fn undergone(&self, run: &Range<usize>, facts: &mut Facts) {
        let Some(at) = run.clone().find(|&index| matches!(self.word(index), "underwent" | "undergone")) else { return };
        let mut end = at + 1;
        while end < run.end
            && !self.in_time(end)
            && !matches!(self.gap(end), Gap::Comma | Gap::Semicolon)
            && !matches!(
                self.word(end),
                "because"
                    | "for"
                    | "after"
                    | "with"
                    | "which"
                    | "that"
                    | "when"
                    | "and"
                    | "due"
                    | "as"
                    | "at"
                    | "by"
                    | "without"
            )
        {
            end += 1;
        }
        let value = self.without_ends(at + 1..end);
        let is_test =
            self.bytes(&value).is_some_and(|bytes| self.case.lexicon.laboratory.is_match(self.case.slice(bytes)));
        let is_growth = value.clone().any(|index| self.covers(index, Slot::AdditionalNotes));
        if !value.is_empty() && !is_test && !is_growth && value.len() < 9 {
            self.push(facts, Slot::TraumaSurgery, &value);
        }
    }

    /// Diseases of the patient; one that is the reason for coming is a complaint.
    fn diagnoses(&self, clause: &Clause, reason: Option<&Range<usize>>, facts: &mut Facts) {
        let run = &clause.tokens;
        for term in self.terms(run, Slot::PastDiagnosis) {
            let is_reason = reason.is_some_and(|reason| reason.contains(&term.start) && term.start - reason.start < 6);
            // "3 alcoholic drinks"
            if is_reason || self.is_of_family(&term) || self.covers(term.start, Slot::HabitWine) {
                continue;
            }
            if self.negation(&term).is_some() {
                let value = self.negated(&term, clause);
                self.push(facts, Slot::PastDiagnosis, &value);
                return;
            }
            let phrase = self.noun_phrase(&term, run.start);
            self.push(facts, Slot::PastDiagnosis, &phrase);
        }
    }

    /// What a negation denies, with its cue, to the end of its scope.
    fn negated(&self, term: &Range<usize>, clause: &Clause) -> Range<usize> {
        let cue = self.negation(term).unwrap_or_else(|| term.clone());
        let mut start = cue.start.min(term.start).max(clause.tokens.start);
        // "does not have pain"
        while self.word(start) == "not"
            && start > clause.tokens.start
            && matches!(
                self.word(start - 1),
                "does" | "did" | "do" | "has" | "had" | "have" | "is" | "was" | "are" | "were"
            )
        {
            start -= 1;
        }
        // The scope goes on over a list.
        let mut end = term.end;
        for index in term.end..clause.tokens.end {
            let next = index..index + 1;
            if self.negation(&next).is_some_and(|other| other == cue) {
                end = index + 1;
            } else if !matches!(self.word(index), "and" | "or" | "nor") {
                break;
            }
        }
        self.without_ends(start..end)
    }

    fn changes(&self, clause: &Clause, facts: &mut Facts) {
        let run = &clause.tokens;
        for term in self.terms(run, Slot::PhysicalChange) {
            if self.negation(&term).is_some() || self.is_of_family(&term) {
                continue;
            }
            let mut phrase = self.noun_phrase(&term, run.start);
            // "5-10 lb of weight loss"
            if phrase.start > run.start + 1
                && self.word(phrase.start - 1) == "of"
                && matches!(self.word(phrase.start - 2), "lb" | "lbs" | "kg" | "pounds" | "pound")
            {
                phrase.start -= 2;
                while phrase.start > run.start
                    && (self.word(phrase.start - 1).bytes().any(|byte| byte.is_ascii_digit())
                        || matches!(self.word(phrase.start - 1), "kg"))
                {
                    phrase.start -= 1;
                }
            }
            // "lost 5 kg (11 lb)", "weight loss of 5 kg (11 lb)"
            let first = if self.word(phrase.end) == "of" { phrase.end + 1 } else { phrase.end };
            let mut end = first;
            while end < run.end && !matches!(self.gap(end), Gap::Comma | Gap::Semicolon) {
                let is_amount = self.word(end).starts_with(|byte: char| byte.is_ascii_digit())
                    || matches!(
                        self.word(end),
                        "kg" | "lb"
                            | "pounds"
                            | "pound"
                            | "lbs"
                            | "kilograms"
                            | "approximately"
                            | "about"
                            | "over"
                            | "more"
                            | "than"
                    );
                if !is_amount {
                    break;
                }
                end += 1;
            }
            if end > first {
                phrase.end = end;
            }
            self.push(facts, Slot::PhysicalChange, &self.without_ends(phrase));
        }
    }

    /// "lost 6 kg", "gained 5 kg (11 lb)"
    fn weight_change(&self, run: &Range<usize>, facts: &mut Facts) {
        for at in run.clone().filter(|&index| matches!(self.word(index), "lost" | "gained" | "losing" | "gaining")) {
            let amount = (at + 1..(at + 7).min(run.end))
                .find(|&index| matches!(self.word(index), "kg" | "lb" | "lbs" | "pounds" | "kilograms"));
            let Some(mut end) = amount.map(|index| index + 1) else { continue };
            if self.gap(end) == Gap::Bracket && self.word(end).starts_with(|first: char| first.is_ascii_digit()) {
                end = (end..run.end.min(end + 3))
                    .find(|&index| matches!(self.word(index), "kg" | "lb" | "lbs" | "pounds"))
                    .map_or(end, |index| index + 1);
            }
            let phrase = at..end;
            let known = self.bytes(&phrase).is_some_and(|bytes| {
                facts.iter().any(|(slot, known)| {
                    *slot == Slot::PhysicalChange && known.start < bytes.end && bytes.start < known.end
                })
            });
            if !known {
                self.push(facts, Slot::PhysicalChange, &phrase);
            }
        }
    }

    /// "is a competitive ice skater": what a patient is, if it is no age, disease or complaint.
    fn is_role(&self, clause: &Clause) -> bool {
        let run = &clause.tokens;
        let others = [
            Slot::SymptomName,
            Slot::PastDiagnosis,
            Slot::HabitTobacco,
            Slot::HabitWine,
            Slot::HabitDrug,
            Slot::AdditionalNotes,
            Slot::CoitusHistory,
            Slot::TraumaSurgery,
            Slot::FamilyHistory,
            Slot::Preventive,
        ];
        clause.subject == Subject::Patient
            && clause
                .subject_at
                .is_some_and(|at| matches!(self.word(at), "he" | "she" | "the") && at + 3 > clause.verb.start)
            && clause.verb.len() == 1
            && matches!(self.word(clause.verb.start), "is" | "was")
            && matches!(self.word(clause.verb.end), "a" | "an")
            && (3..9).contains(&(run.end - clause.verb.start))
            && !others.into_iter().any(|slot| self.has(run, slot))
            && !run.clone().any(|index| {
                matches!(
                    self.word(index),
                    "old"
                        | "man"
                        | "woman"
                        | "boy"
                        | "girl"
                        | "male"
                        | "female"
                        | "child"
                        | "infant"
                        | "poor"
                        | "case"
                        | "known"
                        | "patient"
                        | "candidate"
                        | "carrier"
                        | "result"
                        | "day"
                        | "week"
                        | "month"
                        | "year"
                )
            })
    }

    fn living(&self, clause: &Clause, facts: &mut Facts) -> bool {
        let run = &clause.tokens;
        let told_of_patient = clause.subject == Subject::Patient;
        let lives = matches!(self.word(clause.verb.start), "works" | "worked" | "lives" | "lived" | "resides");
        let mut terms = self.terms(run, Slot::HabitLiving);
        let Some(term) = terms.next() else {
            let value = self.told_by_verb(clause);
            if self.is_role(clause) {
                self.push(facts, Slot::HabitLiving, &value);
                return true;
            }
            let is_told = lives && told_of_patient && value.len() > 1;
            if is_told {
                self.push(facts, Slot::HabitLiving, &value);
            }
            return is_told;
        };
        // "his diet consists of tea and toast"
        let is_way_of_life = term.clone().any(|index| {
            matches!(
                self.word(index),
                "diet" | "history" | "occupation" | "hobbies" | "lifestyle" | "housing" | "nutrition"
            )
        });
        if is_way_of_life && term.end <= clause.verb.start && !clause.verb.is_empty() {
            self.push(facts, Slot::HabitLiving, &self.without_ends(term.start..run.end));
            return true;
        }
        let in_verb = clause.verb.contains(&term.start);
        // "she nurses four times a day", "paramedics report"
        let is_other = matches!(self.word(term.start), "nurses")
            || (clause.subject == Subject::Thing && clause.subject_at.is_some_and(|at| at + 2 > term.start));
        if is_other {
            return false;
        }
        if in_verb && told_of_patient {
            self.push(facts, Slot::HabitLiving, &self.told_by_verb(clause));
            return true;
        }
        // "is a nurse"
        let is_complement = term.start >= clause.verb.end
            && (clause.verb.end..term.start).count() <= 3
            && matches!(self.word(clause.verb.start), "is" | "was" | "works" | "worked");
        if is_complement && told_of_patient {
            self.push(facts, Slot::HabitLiving, &self.told_by_verb(clause));
            return true;
        }
        // "a 45-year-old farmer"
        if clause.verb.is_empty() || term.end <= clause.verb.start {
            let phrase = self.noun_phrase(&term, run.start);
            let start = (phrase.start..phrase.end)
                .rev()
                .find(|&index| matches!(self.word(index), "old" | "man" | "woman" | "male" | "female" | "boy" | "girl"))
                .map_or(phrase.start, |index| index + 1);
            self.push(facts, Slot::HabitLiving, &(start.min(term.start)..phrase.end));
            return false;
        }
        let is_near = term.start <= clause.verb.end + 4;
        let is_wish = clause.verb.clone().any(|index| {
            matches!(
                self.word(index),
                "may" | "might" | "lose" | "lost" | "says" | "said" | "reports" | "used" | "went" | "developed"
            )
        });
        if told_of_patient && is_near && !is_wish {
            self.push(facts, Slot::HabitLiving, &self.told_by_verb(clause));
            return !self.has(run, Slot::SymptomName);
        }
        false
    }

    /// Whether a claiming cue stands in the run.
    pub(super) fn is_claimed(&self, run: &Range<usize>) -> bool {
        run.clone().any(|index| self.cover.get(index).is_some_and(|slots| slots.meets(CLAIMING)))
    }

    pub(super) fn denied(&self, term: &Range<usize>, clause: &Clause, facts: &mut Facts) -> usize {
        let value = self.negated(term, clause);
        self.push(facts, Slot::AdditionalNotes, &value);
        value.end
    }
}
