//! What the patient comes for: the phrase behind an opener, and its time.

use super::patient::INTRODUCTION;
use super::patient::Patient;
use super::{BEFORE, Case};
use crate::record::slots::Slot;
use regex::Regex;
use std::ops::Range;

/// Longest complaint clause, in characters.
const CLAUSE: usize = 320;
/// How near the beginning of a later sentence its verb of coming must end, in characters.
const VERB: usize = 40;
/// Openers tried in one sentence.
const OPENERS: usize = 8;

impl Case<'_> {
    /// Adds what the patient complains of and since when.
    pub(super) fn complaints(
        &self,
        patient: Option<&Patient>,
        is_finding: &[bool],
        facts: &mut Vec<(Slot, Range<usize>)>,
    ) {
        let Some(patient) = patient else { return };
        let lexicon = self.lexicon;
        let mut named = false;
        let mut timed = false;
        for (index, sentence) in self.sentences.iter().enumerate().skip(patient.sentence) {
            if is_finding.get(index).copied().unwrap_or_default() && index != patient.sentence {
                if named {
                    break;
                }
                continue;
            }
            let text = self.slice(sentence.clone());
            let distance = index - patient.sentence;
            let from = if distance == 0 { patient.phrase.end } else { sentence.start };
            let rest = from..sentence.end.max(from);
            let mut clauses = Vec::new();
            if !named && distance < INTRODUCTION {
                let arrival = self.arrival(from, sentence, distance == 0);
                self.openers(&lexicon.openers, sentence, arrival.as_ref(), &mut clauses);
                self.durations(sentence, arrival.as_ref(), &mut clauses);
                if distance == 0 {
                    let onset = arrival.is_none().then_some(&rest);
                    self.openers(&lexicon.onset, sentence, onset, &mut clauses);
                    // "Two days after surgery, a man has ..."
                    let event = onset.filter(|_| patient.phrase.start > sentence.start + 20);
                    self.openers(&lexicon.after_event, sentence, event, &mut clauses);
                } else {
                    self.openers(&lexicon.reported, sentence, Some(&rest), &mut clauses);
                }
            }
            // Of the openers of one kind, the first that leads to a complaint is taken.
            let mut anywhere = Vec::new();
            self.openers(&lexicon.anywhere, sentence, Some(&rest), &mut anywhere);
            let mut openers: Vec<(usize, bool)> = clauses.into_iter().map(|start| (start, false)).collect();
            openers.extend(anywhere.into_iter().map(|start| (start, true)));
            openers.sort_unstable();
            let mut read_until = 0;
            let mut read_one = false;
            for (start, is_free) in openers {
                if start < read_until || (read_one && !is_free) {
                    continue;
                }
                let clause = self.clause(sentence, start);
                if !clause.names.is_empty() {
                    read_until = clause.end;
                    read_one = true;
                    named = true;
                    facts.extend(clause.names.into_iter().map(|range| (Slot::SymptomName, range)));
                    timed |= !clause.times.is_empty();
                    facts.extend(clause.times.into_iter().map(|range| (Slot::SymptomTime, range)));
                }
            }
            if !timed
                && lexicon.onset_sentences.is_match(text)
                && let Some(time) = lexicon.times.find(text)
            {
                timed = true;
                let time = sentence.start + time.start()..sentence.start + time.end();
                facts.push((Slot::SymptomTime, self.plain_time(&time)));
            }
        }
    }

    /// The part of a sentence behind a verb of coming, up to the next relative clause. In a sentence that does not
    /// introduce the patient, the verb must stand at the beginning.
    fn arrival(&self, from: usize, sentence: &Range<usize>, introduces: bool) -> Option<Range<usize>> {
        let end = if introduces { sentence.end } else { sentence.end.min(sentence.start + VERB) };
        let verb = self.lexicon.arrivals.find(self.slice(from..end.max(from)))?;
        let start = from + verb.end();
        let end = sentence.end.min(start + CLAUSE).max(start);
        let relative = self.lexicon.relatives.find(self.slice(start..end));
        Some(start..relative.map_or(end, |found| start + found.start()))
    }

    /// Adds where the clauses behind openers in a part of a sentence start.
    fn openers(&self, openers: &Regex, sentence: &Range<usize>, part: Option<&Range<usize>>, clauses: &mut Vec<usize>) {
        let Some(part) = part else { return };
        for opener in openers.find_iter(self.slice(part.clone())).take(OPENERS) {
            let range = part.start + opener.start()..part.start + opener.end();
            let before = self.before(sentence, range.start);
            let excluded = self.lexicon.negated_before.is_match(before) || self.lexicon.bound_before.is_match(before);
            // "for the past week" opens no complaint.
            let next = self.times(range.start..sentence.end.min(range.start + BEFORE));
            let is_time = next.first().is_some_and(|time| {
                time.start == range.start && !self.slice(time.end..sentence.end).starts_with(" of ")
            });
            if !excluded && !is_time {
                clauses.push(range.end);
            }
        }
    }

    /// Adds where the clauses behind "after 4 days of" start.
    fn durations(&self, sentence: &Range<usize>, part: Option<&Range<usize>>, clauses: &mut Vec<usize>) {
        let Some(part) = part else { return };
        for opener in self.lexicon.before_duration.find_iter(self.slice(part.clone())).take(OPENERS) {
            let start = part.start + opener.end();
            let next = self.times(start..sentence.end.min(start + BEFORE).max(start));
            if next.first().is_some_and(|time| time.start <= start + 3 && self.slice(time.clone()).ends_with(" of")) {
                clauses.push(start);
            }
        }
    }

    /// The spans of time in a part of the text.
    fn times(&self, range: Range<usize>) -> Vec<Range<usize>> {
        let start = range.start;
        self.lexicon
            .times
            .find_iter(self.slice(range))
            .map(|found| start + found.start()..start + found.end())
            .collect()
    }

    /// Reads the clause behind an opener: complaints, parted by spans of time.
    fn clause(&self, sentence: &Range<usize>, start: usize) -> Clause {
        let lexicon = self.lexicon;
        let mut end = sentence.end.min(start + CLAUSE).max(start);
        // Not in the middle of a word.
        if end < sentence.end {
            end = start + self.slice(start..end).rfind(' ').unwrap_or_default();
        }
        let mut clause = Clause { names: Vec::new(), times: Vec::new(), end: start };
        let mut at = start;
        let mut times = self.times(start..end).into_iter();
        loop {
            let time = times.next();
            let piece = at..time.as_ref().map_or(end, |time| time.start.max(at));
            let (content, border) = self.content(&piece);
            clause.end = border.start;
            match self.name(content.clone()) {
                Some(name) => clause.names.push(name),
                // No complaint: what follows belongs to something else.
                None if self.lexicon.words(self.slice(content)).next().is_some() => return clause,
                None => {}
            }
            let Some(time) = time else { break };
            if border.start < piece.end {
                // "... that began 3 days ago"
                if clause.times.is_empty() && lexicon.time_carriers.is_match(self.slice(border)) {
                    clause.times.push(self.plain_time(&time));
                }
                break;
            }
            clause.times.push(self.plain_time(&time));
            clause.end = time.end;
            at = time.end;
            let after = self.slice(at..end);
            if let Some(of) = lexicon.time_links.find(after) {
                at += of.end();
            } else if let Some(connector) = lexicon.connectors.find(after) {
                at += connector.end();
            } else if !self.slice(time).ends_with(" of") {
                break;
            }
        }
        clause
    }

    /// A piece of a clause without what may stand before a complaint, up to its border; and the border, which is
    /// empty and at the end of the piece if there is none.
    fn content(&self, piece: &Range<usize>) -> (Range<usize>, Range<usize>) {
        let text = self.slice(piece.clone());
        let lead = text.len() - text.trim_start_matches([' ', ',', '\n', '"']).len();
        let skipped = lead + self.prefix_length(text.get(lead..).unwrap_or_default());
        let start = piece.start + skipped;
        let found = self.lexicon.borders.find(text.get(skipped..).unwrap_or_default());
        let border = found.map_or(piece.end..piece.end, |found| start + found.start()..start + found.end());
        (start..border.start, border)
    }

    fn prefix_length(&self, text: &str) -> usize {
        let mut skipped = 0;
        while let Some(found) = self.lexicon.prefixes.find(text.get(skipped..).unwrap_or_default()) {
            if found.end() == 0 {
                break;
            }
            skipped += found.end();
        }
        skipped
    }

    /// A complaint without what it does not end in, if it is one.
    fn name(&self, range: Range<usize>) -> Option<Range<usize>> {
        let mut body = self.slice(range.clone());
        loop {
            let before = body.len();
            body = body.trim_end_matches([' ', ',', '.', '\n', ';', ':', '"', '(', '-']);
            if let Some(trailer) = self.lexicon.trailers.find(body) {
                body = body.get(..trailer.start()).unwrap_or_default();
            }
            // "a limp 3 days" before "after a fall", but not "cramps every 5 minutes"
            let time = self.lexicon.trailing_time.captures(body).filter(|time| time.get(1).is_none());
            if let Some(time) = time.and_then(|time| time.get(0)) {
                body = body.get(..time.start()).unwrap_or_default();
            }
            if body.len() == before {
                break;
            }
        }
        let first: usize = self.lexicon.words(body).take(6).last().map_or(0, |word| word.end);
        let opening = body.get(..first).unwrap_or_default();
        let is_complaint = body.len() > 2
            && body.bytes().any(|byte| byte.is_ascii_lowercase())
            && !self.lexicon.bare_time.is_match(body)
            && !self.lexicon.not_complaints.is_match(opening.split(" of ").next().unwrap_or_default());
        is_complaint.then(|| range.start..range.start + body.len())
    }

    /// A span of time without an article before and "of" behind: "2-day history", "for the past 3 weeks".
    fn plain_time(&self, range: &Range<usize>) -> Range<usize> {
        let text = self.slice(range.clone());
        let start = ["of a ", "of an ", "for a ", "over a ", "of the ", "of ", "a ", "an "]
            .iter()
            .find_map(|prefix| text.strip_prefix(prefix))
            .filter(|rest| rest.starts_with(|first: char| first.is_ascii_digit()))
            .map_or(0, |rest| text.len() - rest.len());
        let end = text.strip_suffix(" of").map_or(text.len(), str::len);
        range.start + start..range.start + end
    }
}

/// What stands behind an opener.
struct Clause {
    names: Vec<Range<usize>>,
    times: Vec<Range<usize>>,
    end: usize,
}
