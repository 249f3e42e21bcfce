//! The slots of history and context, each by the terms that speak of it.

use super::Facts;
use super::grammar::{Clause, Roles, Subject};
use super::reading::Reading;
use super::terms::{Gap, SlotSet};
use crate::record::slots::Slot;
use std::ops::Range;

/// Slots whose cue claims the whole clause: it holds no complaint then.
const CLAIMING: SlotSet = SlotSet::of(Slot::HabitTobacco)
    .with(SlotSet::of(Slot::HabitWine))
    .with(SlotSet::of(Slot::HabitDrug))
    .with(SlotSet::of(Slot::CoitusHistory))
    .with(SlotSet::of(Slot::Preventive));

impl Reading<'_> {
    pub(super) fn department(&self, run: &Range<usize>, facts: &mut Facts) {
        if facts.iter().any(|(slot, _)| *slot == Slot::Department) {
            return;
        }
        if let Some(term) = self.terms(run, Slot::Department).next() {
            let phrase = self.noun_phrase(&term, run.start);
            self.push(facts, Slot::Department, &phrase);
        }
    }

    /// A clause about relatives.
    pub(super) fn family(&self, clause: &Clause, facts: &mut Facts) -> bool {
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
    pub(super) fn unknown_drugs(&self, list: &Range<usize>, drugs: &[Range<usize>], facts: &mut Facts) {
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
    pub(super) fn negation_before(&self, at: usize, from: usize) -> Option<usize> {
        (from.max(at.saturating_sub(4))..at)
            .find(|&index| matches!(self.word(index), "no" | "denies" | "denied" | "without"))
    }

    /// Tobacco, alcohol, drugs and sexual activity: the clause from its verb on, up to the end of the item.
    pub(super) fn habits(&self, clause: &Clause, facts: &mut Facts) -> bool {
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

    pub(super) fn preventive(&self, clause: &Clause, facts: &mut Facts) -> bool {
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

    pub(super) fn allergies(&self, clause: &Clause, facts: &mut Facts) -> bool {
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
    pub(super) fn notes(&self, clause: &Clause, reason: Option<&Range<usize>>, facts: &mut Facts) -> bool {
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

    pub(super) fn contact(&self, clause: &Clause, is_reason: bool, facts: &mut Facts) -> bool {
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
    pub(super) fn treatment(&self, clause: &Clause, facts: &mut Facts) {
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

    pub(super) fn surgery(&self, clause: &Clause, facts: &mut Facts) {
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
    pub(super) fn undergone(&self, run: &Range<usize>, facts: &mut Facts) {
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
    pub(super) fn diagnoses(&self, clause: &Clause, reason: Option<&Range<usize>>, facts: &mut Facts) {
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
    pub(super) fn negated(&self, term: &Range<usize>, clause: &Clause) -> Range<usize> {
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

    pub(super) fn changes(&self, clause: &Clause, facts: &mut Facts) {
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
    pub(super) fn weight_change(&self, run: &Range<usize>, facts: &mut Facts) {
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
    pub(super) fn is_role(&self, clause: &Clause) -> bool {
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

    pub(super) fn living(&self, clause: &Clause, facts: &mut Facts) -> bool {
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
