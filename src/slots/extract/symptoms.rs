//! What the patient complains of, item by item, with its time, place and degree.

use super::Facts;
use super::grammar::{Clause, Roles, Subject};
use super::reading::Reading;
use super::terms::Gap;
use crate::record::slots::Slot;
use std::ops::Range;

/// How the complaints of a clause are said.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Kind {
    /// As the reason for coming.
    Reason,
    /// As the object of "has", "reports" and the like.
    List,
    /// By a verb of its own.
    Said,
}

/// The part of a clause in which complaints stand.
pub(super) struct Content {
    pub(super) tokens: Range<usize>,
    pub(super) kind: Kind,
}

impl Reading<'_> {
    /// The complaints of a clause.
    pub(super) fn complaints_of(&self, clause: &Clause, content: Option<&Content>, facts: &mut Facts) {
        if (clause.subject == Subject::Kin && !self.is_telling(clause)) || self.is_claimed(&clause.tokens) {
            return;
        }
        // What the reader finds is none either: "which you appreciate".
        if clause.subject_at.is_some_and(|at| self.word(at) == "you") && self.word(clause.verb.end) == "on" {
            return;
        }
        // Nor is what is done to a patient.
        if clause.subject == Subject::Thing && self.is_act(clause) {
            return;
        }
        // What a surgeon does is no complaint.
        let subject = clause.subject_at.and_then(|at| self.bytes(&(at..clause.verb.start.max(at + 1))));
        if clause.subject != Subject::Patient
            && subject.is_some_and(|subject| self.case.lexicon.professionals.is_match(self.case.slice(subject)))
        {
            return;
        }
        let mut told = false;
        if let Some(content) = content {
            for item in self.items(&content.tokens) {
                told |= self.item(&item, clause, content, facts);
            }
        }
        if told || self.is_course(clause) {
            self.attributes(&clause.tokens, facts);
        }
    }

    /// Whether a clause says how a complaint went on, and no new one: "stopped on their own".
    fn goes_on(&self, clause: &Clause) -> bool {
        clause.verb.clone().any(|index| {
            matches!(
                self.word(index),
                "occur"
                    | "last"
                    | "begin"
                    | "start"
                    | "worsen"
                    | "improve"
                    | "resolve"
                    | "spread"
                    | "spreads"
                    | "radiates"
                    | "radiated"
                    | "resolved"
                    | "resolves"
                    | "stopped"
                    | "subsided"
                    | "settled"
                    | "persisted"
                    | "persists"
                    | "lasts"
                    | "lasted"
                    | "began"
                    | "begins"
                    | "started"
                    | "worsened"
                    | "worsens"
                    | "improved"
                    | "improves"
                    | "increased"
                    | "decreased"
                    | "recurred"
                    | "came"
                    | "comes"
                    | "gone"
                    | "went"
                    | "disappeared"
                    | "continued"
                    | "continues"
                    | "occurs"
                    | "occurred"
                    | "ended"
            )
        })
    }

    /// Whether the subject is something of the body that can stop or run: "her stools stopped".
    fn is_of_body(&self, clause: &Clause) -> bool {
        clause.subject == Subject::Thing
            && clause.subject_at.is_some_and(|at| {
                (at..clause.verb.start).any(|index| {
                    matches!(
                        self.word(index),
                        "stool"
                            | "stools"
                            | "urine"
                            | "milk"
                            | "saliva"
                            | "cry"
                            | "voice"
                            | "speech"
                            | "vision"
                            | "hearing"
                            | "memory"
                            | "balance"
                            | "gait"
                            | "mood"
                            | "behavior"
                            | "performance"
                            | "grades"
                            | "breathing"
                            | "skin"
                            | "hair"
                            | "nails"
                    )
                })
            })
    }

    fn is_telling(&self, clause: &Clause) -> bool {
        clause.verb.clone().any(|index| self.role(index).has(Roles::TELLING))
    }

    /// Whether a clause tells the course of the complaints named before.
    fn is_course(&self, clause: &Clause) -> bool {
        clause.subject == Subject::Thing
            && clause
                .subject_at
                .is_some_and(|at| (at..clause.verb.start).any(|index| self.role(index).has(Roles::COMPLAINT)))
    }

    /// Where the complaints of a clause stand.
    pub(super) fn content(&self, clause: &Clause) -> Option<Content> {
        let run = &clause.tokens;
        // Behind an opener: "comes to the physician because of", "presents with", "complains of".
        // "urinates every time she goes to the bathroom" tells no arrival.
        let arrives = run.clone().find(|&index| {
            let is_later = index > clause.verb.end && self.role(index - 1).has(Roles::PRONOUN);
            self.role(index).has(Roles::ARRIVAL) && !is_later
        });
        let bytes = self.bytes(run)?;
        if let Some(at) = arrives {
            let opened = self.opened(at, &bytes);
            if opened.is_some() || clause.verb.is_empty() {
                return opened.map(|opened| Content { tokens: self.without_ends(opened), kind: Kind::Reason });
            }
            // "a refugee with swelling of the legs is brought to the clinic"
            let with = (clause.subject_at.unwrap_or(run.start)..clause.verb.start)
                .find(|&index| self.word(index) == "with")?;
            return Some(Content { tokens: self.without_ends(with + 1..clause.verb.start), kind: Kind::List });
        }
        if clause.verb.is_empty() {
            return Some(Content { tokens: self.without_ends(run.clone()), kind: Kind::Said });
        }
        // "a review of systems is notable for headaches": the complaints stand behind it.
        let is_survey = clause.subject == Subject::Thing
            && clause.subject_at.is_some_and(|at| {
                (at..clause.verb.start).any(|index| matches!(self.word(index), "review" | "history"))
            });
        if is_survey {
            let end = clause.verb.end;
            let start = (end..run.end.min(end + 3)).find(|&index| self.word(index) == "for").map_or(end, |at| at + 1);
            return Some(Content { tokens: start..run.end, kind: Kind::Said });
        }
        let having = clause.verb.clone().any(|index| self.role(index).has(Roles::HAVING));
        let by_patient = clause.subject == Subject::Patient || self.is_telling(clause);
        let main = clause.verb.end - 1;
        let is_negated = clause.verb.clone().any(|index| self.word(index) == "not");
        if is_negated && by_patient {
            return Some(Content { tokens: self.told_by_verb(clause), kind: Kind::Said });
        }
        if by_patient && having && self.role(main).has(Roles::HAVING.with(Roles::ADVERB).with(Roles::AUXILIARY)) {
            // "has become increasingly short of breath"
            let is_manner = main > clause.verb.start && self.word(main).ends_with("ly") && self.word(main) != "only";
            let start = if is_manner { main } else { clause.verb.end };
            return Some(Content { tokens: start..run.end, kind: Kind::List });
        }
        let tokens = if by_patient {
            self.told_by_verb(clause)
        } else if self.is_course(clause) {
            // "the pain is sharp"
            clause.verb.end..run.end
        } else {
            match clause.subject_at {
                Some(at) if matches!(self.word(at), "there" | "it" | "this") => clause.verb.end..run.end,
                Some(at) => self.without_ends(at..run.end),
                None => self.told_by_verb(clause),
            }
        };
        Some(Content { tokens, kind: Kind::Said })
    }

    /// What stands behind the first opener of a complaint after a verb of coming.
    fn opened(&self, arrives: usize, bytes: &Range<usize>) -> Option<Range<usize>> {
        let lexicon = self.case.lexicon;
        let from = self.tokens.get(arrives)?.end;
        let rest = self.case.slice(from..bytes.end);
        let openers = lexicon
            .openers
            .find_iter(rest)
            .chain(lexicon.before_duration.find_iter(rest))
            .chain(lexicon.anywhere.find_iter(rest));
        openers
            .filter_map(|found| {
                let range = from + found.start()..from + found.end();
                let opened = self.tokens_in(&(range.end..bytes.end));
                let before = self.case.before(bytes, range.start);
                let is_bound = lexicon.bound_before.is_match(before) || lexicon.negated_before.is_match(before);
                // "a 5-month history of"
                let mut first = opened.start;
                while first < opened.end
                    && (self.in_time(first) || matches!(self.word(first), "a" | "an" | "the" | "history" | "of"))
                {
                    first += 1;
                }
                // "with his wife", "for a follow-up", "by ambulance"
                let head: Vec<&str> = (first..opened.end.min(first + 6)).map(|index| self.word(index)).collect();
                let known = (first..opened.end.min(first + 6)).any(|index| self.covers(index, Slot::SymptomName));
                let no_complaint = (opened.start..opened.end.min(opened.start + 3))
                    .any(|index| self.role(index).has(Roles::KIN))
                    || (!known && lexicon.not_complaints.is_match(&head.join(" ")));
                (!is_bound && !no_complaint && first < opened.end).then_some(first..opened.end)
            })
            .min_by_key(|opened| opened.start)
    }

    /// The items of a list: cut at commas and "and" where a complaint ends and another begins.
    fn items(&self, content: &Range<usize>) -> Vec<Range<usize>> {
        let mut items = Vec::new();
        let mut start = content.start;
        let mut at = start;
        while at < content.end {
            let conjunction = matches!(self.word(at), "and" | "or" | "but" | "as")
                || (self.word(at) == "with" && self.brings_complaint(at + 1, content.end))
                || self.word(at) == "accompanied"
                || self.word(at) == "associated";
            let comma = matches!(self.gap(at), Gap::Comma | Gap::Semicolon);
            let time = self.in_time(at) && at > start;
            if at > start && (conjunction || comma || time) {
                let left = start..at;
                let has_complaint = self.has(&left, Slot::SymptomName) || self.has(&left, Slot::PhysicalChange);
                let mut next = at;
                while next < content.end
                    && (matches!(
                        self.word(next),
                        "and"
                            | "or"
                            | "but"
                            | "with"
                            | "as"
                            | "well"
                            | "accompanied"
                            | "associated"
                            | "by"
                            | "of"
                            | "history"
                            | "a"
                            | "an"
                            | "the"
                    ) || self.in_time(next))
                {
                    next += 1;
                }
                let place_goes_on = self.only_place(next, content.end);
                // "pressure in the chest and shortness of breath"
                let another = left.len() >= 2
                    && (next..next + 3).any(|index| index < content.end && self.covers(index, Slot::SymptomName))
                    && !self.is_quality_run(&left)
                    && !self.is_place_run(&left);
                // "painful, burning red rash"
                let shares_noun = self.is_joined(&left, at, next)
                    || (comma && self.is_quality_run(&left) && self.role(at).has(Roles::QUALITY));
                let is_governed = matches!(self.word(at), "and" | "or")
                    && self.terms(&left, Slot::SymptomName).last().is_some_and(|term| self.is_open(&term))
                    && !self.brings_complaint(next, content.end);
                if time || ((has_complaint || another) && !place_goes_on && !shares_noun && !is_governed) {
                    items.push(left);
                    start = next.max(at);
                    at = start;
                    if at < content.end {
                        at += 1;
                    }
                    continue;
                }
            }
            at += 1;
        }
        if start < content.end {
            items.push(start..content.end);
        }
        items
    }

    /// Whether a complaint is named within the next words: "headache with nausea", but not "pain with defecation".
    fn brings_complaint(&self, from: usize, limit: usize) -> bool {
        for index in from..limit.min(from + 5) {
            if index > from
                && (matches!(self.gap(index), Gap::Comma | Gap::Semicolon) || matches!(self.word(index), "and" | "or"))
            {
                return false;
            }
            if self.covers(index, Slot::SymptomName) || self.covers(index, Slot::PhysicalChange) {
                return true;
            }
        }
        false
    }

    /// Whether "and" joins adjectives or places before one noun: "burning buttock and hip pain".
    fn is_joined(&self, left: &Range<usize>, at: usize, next: usize) -> bool {
        matches!(self.word(at), "and" | "or")
            && next == at + 1
            && self.is_place_run(left)
            && (self.covers(at - 1, Slot::SymptomPosition) || self.role(at - 1).has(Roles::QUALITY))
            && (self.covers(next, Slot::SymptomPosition) || self.role(next).has(Roles::QUALITY))
    }

    /// Whether a run is parts of the body only: "wrist and knee pain".
    fn is_place_run(&self, run: &Range<usize>) -> bool {
        run.clone().all(|index| {
            self.covers(index, Slot::SymptomPosition)
                || self.role(index).has(Roles::DIRECTION)
                || self.role(index).has(Roles::CLOSED)
                || self.role(index).has(Roles::QUALITY)
                || self.covers(index, Slot::SymptomDegree)
        })
    }

    /// Whether a run is adjectives only.
    fn is_quality_run(&self, run: &Range<usize>) -> bool {
        run.clone().all(|index| {
            self.role(index).has(Roles::QUALITY)
                || self.covers(index, Slot::SymptomDegree)
                || self.role(index).has(Roles::CLOSED)
                || self.role(index).has(Roles::ADVERB)
        })
    }

    /// Whether the words up to the next border are a part of the body and no complaint.
    fn only_place(&self, from: usize, limit: usize) -> bool {
        let mut place = false;
        for index in from..limit.min(from + 6) {
            if index > from
                && (matches!(self.gap(index), Gap::Comma | Gap::Semicolon) || matches!(self.word(index), "and" | "or"))
            {
                break;
            }
            if self.covers(index, Slot::SymptomName) {
                return false;
            }
            let is_place = self.covers(index, Slot::SymptomPosition);
            let passes = is_place
                || self.role(index).has(Roles::DIRECTION)
                || self.role(index).has(Roles::PLACE)
                || matches!(self.word(index), "the" | "his" | "her" | "both" | "of");
            if !place && !passes {
                return false;
            }
            place |= is_place;
        }
        place
    }

    /// One item of a list of complaints.
    fn item(&self, item: &Range<usize>, clause: &Clause, content: &Content, facts: &mut Facts) -> bool {
        let item = self.without_ends(item.clone());
        if item.is_empty() {
            return false;
        }
        let terms: Vec<Range<usize>> =
            // "pain medication" is no pain.
            self.terms(&item, Slot::SymptomName)
                .filter(|term| {
                    !self.is_of_family(term)
                        && !self.covers(term.start, Slot::PastMedication)
                        && !self.is_within_disease(term)
                })
                .collect();
        let Some(first) = terms.first() else {
            // No known term: the whole item, if nothing else is known of it.
            let is_reason = content.kind == Kind::Reason;
            let known = self.is_known_otherwise(&item, is_reason)
                || self.bytes(&item).is_some_and(|bytes| {
                    facts.iter().any(|(slot, known)| {
                        *slot == Slot::PhysicalChange && known.start < bytes.end && bytes.start < known.end
                    })
                });
            let is_long = item.len() >= 2
                || (content.kind != Kind::Said
                    && self.word(item.start).len() > 3
                    && !self.covers(item.start, Slot::SymptomTime));
            let lacks = clause.verb.clone().any(|index| self.word(index) == "not")
                && clause.verb.clone().last().is_some_and(|main| matches!(self.word(main), "have" | "had"));
            let negated = lacks
                || self.is_denied(&item)
                || item.clone().any(|index| {
                    matches!(self.word(index), "no" | "denies" | "denied") && self.word(index + 1) != "longer"
                });
            let only_time = item.clone().all(|index| {
                self.in_time(index) || self.role(index).has(Roles::ADVERB) || self.covers(index, Slot::SymptomTime)
            });
            // Only what a verb says, or what stands first behind the opener.
            let is_said =
                item.clone().any(|index| self.role(index).has(Roles::VERB)) && !self.role(item.start).has(Roles::PLACE);
            let is_first = content.kind != Kind::Said || self.without_ends(content.tokens.clone()).start == item.start;
            let is_plan =
                self.bytes(&item).is_some_and(|bytes| self.case.lexicon.plans.is_match(self.case.slice(bytes)));
            let is_look = matches!(self.word(clause.verb.start), "appears" | "appeared" | "looks");
            let goes_on = content.kind == Kind::Said
                && self.goes_on(clause)
                && !clause.subject_at.is_some_and(|at| self.covers(at, Slot::SymptomPosition))
                && !self.is_of_body(clause);
            // "Two hours after admission for dialysis," says nothing by itself; "pursing his mouth" does.
            let is_fragment =
                content.kind == Kind::Said && clause.verb.is_empty() && !self.word(item.start).ends_with("ing");
            if content.kind != Kind::Reason && self.is_ability(&item, clause, facts) {
                return false;
            }
            if known
                || goes_on
                || is_fragment
                || !is_long
                || only_time
                || self.is_course(clause)
                || is_plan
                || is_look
                || !(is_said || is_first)
                || item.clone().any(|index| {
                    matches!(
                        self.word(index),
                        "worse"
                            | "better"
                            | "relieved"
                            | "aggravated"
                            | "exacerbated"
                            | "improves"
                            | "triggered"
                            | "worsened"
                    )
                })
                || matches!(
                    self.word(item.start),
                    "despite"
                        | "during"
                        | "at"
                        | "in"
                        | "on"
                        | "by"
                        | "from"
                        | "for"
                        | "to"
                        | "under"
                        | "after"
                        | "before"
                        | "while"
                        | "when"
                        | "since"
                        | "until"
                        | "well"
                        | "recovering"
                        | "next"
                        | "tablets"
                        | "pills"
                        | "present"
                )
                || item.clone().any(|index| {
                    self.role(index).has(Roles::KIN)
                        || matches!(self.word(index), "daughter" | "son" | "children" | "sons" | "daughters" | "old")
                })
            {
                return false;
            }
            if negated {
                // "does not have any significant past medical history"
                let is_disease = item
                    .clone()
                    .any(|index| matches!(self.word(index), "medical" | "illness" | "illnesses" | "psychiatric"));
                let slot = if is_disease { Slot::PastDiagnosis } else { Slot::AdditionalNotes };
                self.push(facts, slot, &self.trim_time(&item));
                return false;
            }
            let run = self.trim_time(&item);
            // "had a hemorrhage 12 years ago"
            if self.is_history(clause) {
                self.push(facts, Slot::PastDiagnosis, &run);
                return false;
            }
            self.push(facts, Slot::SymptomName, &run);
            self.positions(&run, facts);
            return true;
        };
        if self.is_denied(first) {
            self.denied(first, clause, facts);
            return false;
        }
        // "the weakness improves": said of a complaint that was told before.
        let is_subject = content.kind == Kind::Said
            && clause.subject == Subject::Thing
            && first.end <= clause.verb.start
            && terms.len() == 1;
        if is_subject && self.goes_on(clause) && self.is_bare_repeat(first, facts) {
            return true;
        }
        // The phrase of the first term, to the last term that belongs to it.
        let phrase = self.noun_phrase(first, item.start);
        let last = terms.last().unwrap_or(first);
        let phrase = self.with_place(&(phrase.start..last.end), item.end);
        let is_verbal = (item.start <= clause.verb.start && clause.verb.start < item.end)
            || clause.verb.contains(&item.start)
            || (self.role(item.start).has(Roles::VERB) && !self.is_side(item.start));
        let goes_on = content.kind == Kind::Said && clause.subject == Subject::Thing && self.goes_on(clause);
        let run = if goes_on || (content.kind != Kind::Reason && self.is_known_otherwise(&item, false)) {
            phrase
        } else if is_verbal || self.is_open(first) {
            self.trim_time(&(phrase.start.min(item.start)..item.end))
        } else {
            self.trim_time(&(phrase.start..self.phrase_end(phrase.end, item.end)))
        };
        // "more irritable than usual"
        let run = if run.start > item.start && matches!(self.word(run.start - 1), "more" | "less") {
            run.start - 1..run.end
        } else {
            run
        };
        if self.is_bare_repeat(&run, facts) {
            return true;
        }
        // "past medical history is notable for chronic knee pain"
        if self.is_history(clause) {
            self.push(facts, Slot::PastDiagnosis, &run);
            return false;
        }
        self.push(facts, Slot::SymptomName, &run);
        self.positions(&run, facts);
        true
    }

    /// "can feed himself", "is able to dress": what the patient can do is a way of living.
    fn is_ability(&self, item: &Range<usize>, clause: &Clause, facts: &mut Facts) -> bool {
        let at = (item.start..item.end.min(item.start + 2))
            .find(|&index| matches!(self.word(index), "can" | "able") && !matches!(self.word(index + 1), "not" | "t"));
        let Some(at) = at else { return false };
        let is_negated = (clause.tokens.start..at).any(|index| matches!(self.word(index), "not" | "no" | "never"));
        if is_negated {
            return false;
        }
        if clause.subject == Subject::Patient && item.len() > 2 && self.word(at + 2) != "be" {
            self.push(facts, Slot::HabitLiving, item);
        }
        true
    }

    /// Whether a clause tells what the patient had years ago, or names the medical history itself.
    fn is_history(&self, clause: &Clause) -> bool {
        let names_history = clause.subject_at.is_some_and(|at| {
            (at..clause.verb.start).any(|index| self.word(index) == "medical" && self.word(index + 1) == "history")
        });
        let years_ago = matches!(self.word(clause.verb.start), "had")
            && clause.verb.len() == 1
            && clause.subject == Subject::Patient
            && clause.tokens.clone().any(|index| {
                matches!(self.word(index), "years" | "year") && self.word(index + 1) == "ago" && self.in_time(index)
            });
        names_history || years_ago
    }

    /// Whether a run speaks of a disease, a drug or the like. The reason for coming may be a disease.
    fn is_known_otherwise(&self, run: &Range<usize>, is_reason: bool) -> bool {
        run.clone().any(|index| {
            let slots = [
                Slot::PastMedication,
                Slot::TraumaSurgery,
                Slot::HabitLiving,
                Slot::PhysicalChange,
                Slot::ReceivingTreatment,
                Slot::Department,
                Slot::PersonalWeight,
            ];
            slots.into_iter().any(|slot| self.covers(index, slot))
                || (!is_reason && self.covers(index, Slot::PastDiagnosis))
        })
    }

    /// Whether a run is denied. "Cannot climb the stairs" and "could no longer drink" are complaints.
    fn is_denied(&self, run: &Range<usize>) -> bool {
        self.negation(run).is_some_and(|cue| {
            !cue.clone().any(|index| {
                matches!(self.word(index), "cannot" | "longer" | "unable" | "failed" | "fails" | "failure")
                    || (self.word(index) == "not"
                        && (matches!(self.word(index.wrapping_sub(1)), "can" | "could")
                            || (index + 1..index + 3).any(|next| self.word(next) == "able")))
            })
        })
    }

    /// "difficulty", "unable to": what they govern belongs to them.
    fn is_open(&self, term: &Range<usize>) -> bool {
        matches!(
            self.word(term.end - 1),
            "difficulty"
                | "trouble"
                | "unable"
                | "inability"
                | "to"
                | "problems"
                | "loss"
                | "lack"
                | "fear"
                | "difficulties"
                | "cannot"
                | "that"
                | "feeling"
        )
    }

    /// Where a phrase ends that goes on behind its last term: at a preposition of occasion it is kept.
    fn phrase_end(&self, from: usize, limit: usize) -> usize {
        let mut end = from;
        while end < limit
            && matches!(self.gap(end), Gap::Space | Gap::Hyphen)
            && !self.in_time(end)
            && !self.role(end).has(Roles::SUBORDINATOR)
            && !matches!(
                self.word(end),
                "that"
                    | "without"
                    | "since"
                    | "after"
                    | "before"
                    | "for"
                    | "as"
                    | "due"
                    | "following"
                    | "beginning"
                    | "starting"
            )
        {
            end += 1;
        }
        if end - from > 6 { from } else { end }
    }

    /// A run without spans of time at its ends.
    fn trim_time(&self, run: &Range<usize>) -> Range<usize> {
        let mut run = run.clone();
        // A span of time in the middle ends it.
        if let Some(time) = run.clone().find(|&index| self.in_time(index)) {
            if time == run.start {
                while run.start < run.end && self.in_time(run.start) {
                    run.start += 1;
                }
            } else {
                run.end = time;
            }
        }
        let mut run = self.without_ends(run);
        // "became tired": the state is the complaint.
        while run.start + 1 < run.end
            && matches!(
                self.word(run.start),
                "has"
                    | "also"
                    | "had"
                    | "have"
                    | "become"
                    | "becomes"
                    | "became"
                    | "feels"
                    | "felt"
                    | "feel"
                    | "been"
                    | "gets"
                    | "got"
                    | "seems"
                    | "seemed"
            )
            && self.word(run.start + 1) != "that"
        {
            run.start += 1;
            // "seems to have difficulty"
            if self.word(run.start) == "to" && matches!(self.word(run.start + 1), "have" | "be") {
                run.start = (run.start + 2).min(run.end);
            }
        }
        let mut run = self.without_ends(run);
        // "more confused lately", "fatigued all the time"
        while run.end > run.start + 1 && self.ends_in_time(&run) {
            run.end -= 1;
        }
        run
    }

    /// Whether the last word of a run is an adverb of time.
    fn ends_in_time(&self, run: &Range<usize>) -> bool {
        matches!(
            self.word(run.end - 1),
            "lately" | "recently" | "daily" | "today" | "yesterday" | "intermittently" | "constantly" | "occasionally"
        )
    }

    /// "the pain" of a pain that was told before.
    fn is_bare_repeat(&self, run: &Range<usize>, facts: &Facts) -> bool {
        let Some(bytes) = self.bytes(run) else { return true };
        let said = self.case.slice(bytes.clone());
        let single = run.len() == 1;
        facts.iter().any(|(slot, known)| {
            *slot == Slot::SymptomName && {
                let known = self.case.slice(known.clone());
                known == said
                    || (single
                        && known.split([' ', '-']).any(|word| word == said || word.strip_suffix('s') == Some(said)))
            }
        })
    }

    /// Time, place and degree told in a clause of complaints.
    pub(super) fn attributes(&self, run: &Range<usize>, facts: &mut Facts) {
        let Some(bytes) = self.bytes(run) else { return };
        for time in self.times {
            if time.start >= bytes.start && time.end <= bytes.end {
                facts.push((Slot::SymptomTime, self.case.plain_time(time)));
            }
        }
        for term in self.terms(run, Slot::SymptomTime) {
            if term.clone().any(|index| self.in_time(index)) || self.negation(&term).is_some() {
                continue;
            }
            let term = if self.word(term.end - 1) == "of" { term.start..term.end - 1 } else { term };
            self.push(facts, Slot::SymptomTime, &term);
        }
        // "10/10"
        for index in run.clone().filter(|&index| self.word(index) == "10" && index > run.start) {
            let score = index - 1..index + 1;
            let is_score = self.bytes(&score).is_some_and(|bytes| {
                self.case.slice(bytes).split_once('/').is_some_and(|(points, _)| points.parse::<u8>().is_ok())
            });
            if is_score {
                self.push(facts, Slot::SymptomDegree, &score);
            }
        }
        for term in self.terms(run, Slot::SymptomDegree) {
            if self.negation(&term).is_none() {
                self.push(facts, Slot::SymptomDegree, &term);
            }
        }
        self.positions(run, facts);
    }

    fn is_complaint(&self, index: usize) -> bool {
        self.covers(index, Slot::SymptomName) && !self.covers(index, Slot::PastDiagnosis)
    }

    /// The parts of the body in a run, with side and direction.
    fn positions(&self, run: &Range<usize>, facts: &mut Facts) {
        let mut read_until = 0;
        for term in self.terms(run, Slot::SymptomPosition) {
            // "oral contraceptives"
            let is_drug = term.clone().all(|index| self.covers(index, Slot::PastMedication));
            if self.negation(&term).is_some()
                || term.start < read_until
                || is_drug
                || (self.is_within_disease(&term) && !run.clone().any(|index| self.is_complaint(index)))
            {
                continue;
            }
            let mut start = term.start;
            while start > run.start
                && matches!(self.gap(start), Gap::Space | Gap::Hyphen)
                && (self.role(start - 1).has(Roles::DIRECTION) || self.covers(start - 1, Slot::SymptomPosition))
            {
                start -= 1;
            }
            let mut end = term.end;
            while end < run.end
                && matches!(self.gap(end), Gap::Space | Gap::Hyphen)
                && self.covers(end, Slot::SymptomPosition)
            {
                end += 1;
            }
            // "left side of the scrotum"
            let is_part = matches!(
                self.word(end - 1),
                "side"
                    | "sides"
                    | "back"
                    | "corner"
                    | "corners"
                    | "front"
                    | "middle"
                    | "top"
                    | "tip"
                    | "base"
                    | "part"
                    | "half"
            );
            if is_part && self.word(end) == "of" {
                let first =
                    if matches!(self.word(end + 1), "the" | "his" | "her" | "both") { end + 2 } else { end + 1 };
                let mut at = first;
                while at < run.end && (self.covers(at, Slot::SymptomPosition) || self.role(at).has(Roles::DIRECTION)) {
                    at += 1;
                }
                if at > first {
                    end = at;
                }
            }
            read_until = end;
            let phrase = start..end;
            let Some(bytes) = self.bytes(&phrase) else { continue };
            let is_known = facts.iter().any(|(slot, known)| {
                *slot == Slot::SymptomPosition
                    && (known == &bytes || self.case.slice(known.clone()) == self.case.slice(bytes.clone()))
            });
            if !is_known {
                facts.push((Slot::SymptomPosition, bytes));
            }
        }
    }

    /// Colour, form, consistency and smell in a sentence, told or found.
    pub(super) fn appearance(&self, sentence: &Range<usize>, facts: &mut Facts) {
        let run = self.tokens_in(sentence);
        for slot in [Slot::SymptomColor, Slot::SymptomShape, Slot::SymptomTexture, Slot::SymptomSmell] {
            let mut previous: Option<Range<usize>> = None;
            for term in self.terms(&run, slot) {
                if self.negation(&term).is_some() || self.is_within_disease(&term) {
                    continue;
                }
                // "yellow-green"
                if let Some(before) = previous.clone()
                    && before.end == term.start
                    && self.gap(term.start) == Gap::Hyphen
                {
                    facts.pop();
                    let joined = before.start..term.end;
                    self.push(facts, slot, &joined);
                    previous = Some(joined);
                    continue;
                }
                if self.word(term.start) == "soft"
                    && run.clone().any(|index| {
                        matches!(self.word(index), "abdomen" | "palate" | "neck" | "fontanelle" | "tissue" | "tissues")
                    })
                {
                    continue;
                }
                let Some(bytes) = self.bytes(&term) else { continue };
                let said = self.case.slice(bytes);
                let is_known =
                    facts.iter().any(|(other, known)| *other == slot && self.case.slice(known.clone()) == said);
                if !is_known {
                    self.push(facts, slot, &term);
                    previous = Some(term);
                }
            }
        }
    }

    /// Weight, height and body mass index, in any sentence.
    pub(super) fn measures(&self, sentence: &Range<usize>, facts: &mut Facts) {
        let run = self.tokens_in(sentence);
        let mut read_until = 0;
        for term in self.terms(&run, Slot::PersonalWeight) {
            if term.start < read_until || term.clone().any(|index| self.covers(index, Slot::PhysicalChange)) {
                continue;
            }
            let is_number = |index: usize| self.word(index).starts_with(|first: char| first.is_ascii_digit());
            let mut end = term.end;
            while end < run.end
                && !(matches!(self.gap(end), Gap::Comma | Gap::Semicolon) || matches!(self.word(end), "and" | "but"))
            {
                end += 1;
            }
            let mut start = term.start;
            if !(term.end..end).any(is_number) {
                // "155 cm (5 ft 2 in) tall", "40th percentile for height"
                let from = run.start.max(term.start.saturating_sub(7));
                let Some(first) = (from..term.start)
                    .rev()
                    .take_while(|&index| {
                        !matches!(self.gap(index + 1), Gap::Comma | Gap::Semicolon)
                            && !matches!(self.word(index), "and" | "is" | "at")
                    })
                    .filter(|&index| is_number(index))
                    .last()
                else {
                    continue;
                };
                start = first;
                end = term.end;
            }
            if self.word(end) == "for" && self.covers(end + 1, Slot::PersonalWeight) {
                end += 2;
            }
            read_until = end;
            self.push(facts, Slot::PersonalWeight, &(start..end));
        }
    }
}
