//! What is told of a patient: the clauses of a history, sorted into slots.
//!
//! Every clause is offered to the slots of history and context by the terms it holds. What none of them takes is read as
//! a complaint, if it is about the patient.

use super::Facts;
use super::grammar::{Clause, Roles, Subject, clauses};
use super::reading::Reading;
use super::symptoms::Kind;
use crate::record::slots::Slot;
use std::ops::Range;

impl Reading<'_> {
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

    pub(super) fn count_complaints(&self, facts: &Facts) -> usize {
        facts.iter().filter(|(slot, _)| matches!(slot, Slot::SymptomName | Slot::PhysicalChange)).count()
    }

    /// Whether a run is a span of time, with nothing but small words and adverbs beside it.
    pub(super) fn is_time_only(&self, run: &Range<usize>) -> bool {
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

    pub(super) fn clause(&self, clause: &Clause, facts: &mut Facts) {
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

    pub(super) fn is_passive(&self, clause: &Clause) -> bool {
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
    pub(super) fn given(&self, clause: &Clause, facts: &mut Facts) -> bool {
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
}
