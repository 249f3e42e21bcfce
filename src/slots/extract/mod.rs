//! Copies the facts of a case vignette into record slots by rules.
//!
//! What a word means stands in files (`pipelines/lexicon/`): clinical terms with their slots, names of drugs, words of grammar,
//! words of negation and person. What a clause does with them is code, which also names the English words that turn a
//! clause from one slot to another ("died" behind a relative, "without relief" behind a drug).
//! Nothing is rewritten or inferred: every fact is a range of the text. What the text does not say, or says in two ways, is
//! left out.

mod findings;
mod fold;
mod grammar;
mod history;
mod lexicon;
mod narrative;
mod patient;
mod reading;
mod symptoms;
mod terms;
mod times;

use crate::record::slots::Slot;
use crate::slots::boundaries::{BoundaryRules, DrugsError};
use crate::text::context::{ContextError, ContextRules};
use crate::text::sentences::{sentences, split_lead_in};
use fold::Folded;
pub use lexicon::LexiconError;
use lexicon::SlotLexicon;
use reading::Reading;
use std::ops::Range;
use terms::Terms;
pub use terms::TermsError;

/// One copied phrase: a range of the text given in Unicode scalar values, trimmed of white space, never empty and never
/// the whole text.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Found {
    pub slot: Slot,
    pub range: Range<usize>,
}

/// What was read in a stem.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Extraction {
    /// By slot, in text order within a slot.
    pub found: Vec<Found>,
    /// What a person should know of the text, sorted: see [`FLAGS`].
    pub flags: Vec<&'static str>,
}

/// What a text may be flagged with.
pub const FLAGS: &[(&str, &str)] = &[
    ("contradictory_age", "two ages are told of the patient; none is copied"),
    ("html_remnants", "tags or character references stand in the text; they were read as white space"),
    ("no_patient", "nobody is introduced whom the text could be about"),
    ("no_punctuation", "a long text without a single full stop; sentences cannot be told apart"),
    ("not_english", "hardly a word of the text is a common English one; nothing was extracted"),
    ("two_patients", "a second patient is introduced; only the first one is read"),
];

/// What is wrong with the files of the extractor.
#[derive(Debug, thiserror::Error)]
pub enum ExtractorError {
    #[error(transparent)]
    Lexicon(#[from] LexiconError),
    #[error(transparent)]
    Terms(#[from] TermsError),
    #[error(transparent)]
    Context(#[from] ContextError),
    #[error(transparent)]
    Drugs(#[from] DrugsError),
}

/// The texts of the files that the extractor reads.
#[derive(Clone, Copy)]
pub struct ExtractorFiles<'a> {
    /// Words of grammar (TOML).
    pub lexicon: &'a str,
    /// Clinical terms with their slots (CSV).
    pub terms: &'a str,
    /// Words of negation, uncertainty, history and experiencer (TOML).
    pub context: &'a str,
    /// Names of drugs (TOML).
    pub drugs: &'a str,
}

/// The rule extractor with its word lists.
pub struct Extractor {
    lexicon: SlotLexicon,
    terms: Terms,
    context: ContextRules,
    drugs: BoundaryRules,
}

/// The phrases of one text while they are collected, as ranges of the folded text.
type Facts = Vec<(Slot, Range<usize>)>;

impl Extractor {
    /// Reads the files of the extractor.
    ///
    /// # Errors
    /// One of the texts is not what it should be; the error names the key or the line.
    pub fn parse(files: ExtractorFiles<'_>) -> Result<Self, ExtractorError> {
        Ok(Self {
            lexicon: SlotLexicon::parse(files.lexicon)?,
            terms: Terms::parse(files.terms)?,
            context: ContextRules::parse(files.context)?,
            drugs: BoundaryRules::parse(files.drugs)?,
        })
    }

    /// The rules of context, for judging values against their text.
    pub fn context(&self) -> &ContextRules {
        &self.context
    }

    /// Copies the facts of `stem` into slots.
    ///
    /// The question a stem ends in is never read. The age and the sex are those of the patient, who is the first person
    /// introduced, or the person whom that one brings. Takes time linear in the length of `stem`.
    pub fn extract(&self, stem: &str) -> Extraction {
        let mut flags = Vec::new();
        let plain = fold::without_markup(stem);
        if plain.is_some() {
            flags.push("html_remnants");
        }
        let plain = plain.as_deref().unwrap_or(stem);
        let folded = Folded::new(plain);
        let mut vignette = folded.fold_range(&split_lead_in(plain).vignette);
        let has_stops = folded.text.contains(['.', ';', '\n', '?', '!']);
        if !has_stops && folded.text.len() > LONG_SENTENCE {
            flags.push("no_punctuation");
            // Nobody can tell the question from the story.
            vignette = 0..folded.text.len();
        }
        let parts: Vec<Range<usize>> = sentences(plain)
            .iter()
            .map(|range| folded.fold_range(range))
            .map(|range| range.start.max(vignette.start)..range.end.min(vignette.end))
            .filter(|range| range.start < range.end)
            .collect();
        let case = Case { lexicon: &self.lexicon, text: &folded.text, sentences: &parts, vignette: vignette.clone() };
        let tokens = terms::tokens(&folded.text, vignette);
        if !fold::is_english(&folded.text, &tokens) {
            flags.push("not_english");
            return Extraction { found: Vec::new(), flags };
        }
        let mut facts: Facts = Vec::new();
        let Some(patient) = case.patient() else {
            flags.push("no_patient");
            return Extraction { found: Vec::new(), flags };
        };
        match case.age(&patient) {
            Some(range) => facts.push((Slot::PersonalAge, range)),
            None if patient.age.is_some() => flags.push("contradictory_age"),
            None => {}
        }
        facts.extend(case.sex(&patient).map(|range| (Slot::PersonalSex, range)));
        let roles = grammar::roles_of(&self.lexicon, &folded.text, &tokens);
        let mut mentions = self.terms.mentions(&folded.text, &tokens);
        self.add_drugs(&folded.text, &tokens, &mut mentions);
        let mut cover = vec![terms::SlotSet::default(); tokens.len()];
        for mention in &mentions {
            for index in mention.tokens.clone() {
                if let Some(slots) = cover.get_mut(index) {
                    *slots = slots.with(mention.slots);
                }
            }
        }
        let scopes = self.context.scopes(&folded.text, &parts);
        let times = case.spans_of_time();
        let reading = Reading {
            case: &case,
            tokens: &tokens,
            roles: &roles,
            mentions: &mentions,
            cover: &cover,
            scopes: &scopes,
            times: &times,
        };
        let second = case.second_patient(&patient);
        if second.is_some() {
            flags.push("two_patients");
        }
        let is_finding = case.findings(&reading, &patient);
        for (index, (sentence, is_finding)) in parts.iter().zip(&is_finding).enumerate() {
            if second.is_some_and(|second| index >= second) {
                break;
            }
            let n_before = facts.len();
            reading.measures(sentence, &mut facts);
            // Weight and height alone are no examination.
            let only_measures = facts.len() > n_before && case.is_measures_only(sentence);
            if *is_finding && !only_measures {
                let statement = case.statement(sentence);
                facts.push((Slot::MedicalExamination, statement));
            } else if !is_finding {
                reading.sentence(sentence, &mut facts);
            }
            if !is_finding || !case.is_instrumental(sentence) {
                reading.appearance(sentence, &mut facts);
            }
        }
        let whole = stem.trim_end_matches(['.', ' ', '\n']).chars().count();
        let mut found: Vec<Found> = facts
            .into_iter()
            .filter_map(|(slot, range)| {
                let range = trimmed(&folded.text, range)?;
                (range.len() < whole).then_some(Found { slot, range })
            })
            .collect();
        found.sort_by_key(|one| (one.slot, one.range.start, one.range.end));
        found.dedup();
        let found = without_inner(found, &folded.text);
        flags.sort_unstable();
        Extraction { found, flags }
    }
}

impl Extractor {
    /// Adds the drugs that the list of terms does not hold.
    fn add_drugs(&self, text: &str, tokens: &[terms::Token], mentions: &mut Vec<terms::Mention>) {
        let Some(start) = tokens.first().map(|token| token.start) else { return };
        for drug in self.drugs.find_drugs(text.get(start..).unwrap_or_default()) {
            let drug = start + drug.start..start + drug.end;
            let first = tokens.partition_point(|token| token.start < drug.start);
            let last = tokens.partition_point(|token| token.end <= drug.end);
            if first < last {
                let slots = terms::SlotSet::of(Slot::PastMedication);
                mentions.push(terms::Mention { tokens: first..last, slots });
            }
        }
        mentions.sort_by_key(|mention| (mention.tokens.start, std::cmp::Reverse(mention.tokens.end)));
    }

    /// The sentences of the vignette, without the question, that say something clinical: a finding, or a term of the list.
    /// As ranges in Unicode scalar values.
    pub fn clinical_sentences(&self, stem: &str) -> Vec<Range<usize>> {
        let plain = fold::without_markup(stem);
        let plain = plain.as_deref().unwrap_or(stem);
        let folded = Folded::new(plain);
        let vignette = folded.fold_range(&split_lead_in(plain).vignette);
        let mut clinical: Vec<Range<usize>> = Vec::new();
        for sentence in sentences(plain) {
            let sentence = folded.fold_range(&sentence);
            let sentence = sentence.start.max(vignette.start)..sentence.end.min(vignette.end);
            if sentence.start >= sentence.end {
                continue;
            }
            let text = folded.text.get(sentence.clone()).unwrap_or_default();
            let tokens = terms::tokens(&folded.text, sentence.clone());
            if self.lexicon.is_finding(text) || !self.terms.mentions(&folded.text, &tokens).is_empty() {
                clinical.push(sentence);
            }
        }
        clinical
    }
}

/// The values without those that stand within another of their slot, and without a second naming of a disease or a drug.
fn without_inner(found: Vec<Found>, text: &str) -> Vec<Found> {
    let mut kept: Vec<Found> = Vec::with_capacity(found.len());
    for one in &found {
        let is_inner = found.iter().any(|other| {
            other.slot == one.slot
                && other.range != one.range
                && other.range.start <= one.range.start
                && one.range.end <= other.range.end
        });
        let is_named_again =
            matches!(one.slot, Slot::PastDiagnosis | Slot::PastMedication | Slot::SymptomDegree | Slot::SymptomTime)
                && kept.iter().any(|other| {
                    other.slot == one.slot && text.get(other.range.clone()) == text.get(one.range.clone())
                });
        if !is_inner && !is_named_again {
            kept.push(one.clone());
        }
    }
    kept
}

fn trimmed(text: &str, range: Range<usize>) -> Option<Range<usize>> {
    let part = text.get(range.clone())?;
    let start = range.start + part.len() - part.trim_start().len();
    let length = part.trim().len();
    (length > 0).then_some(start..start + length)
}

/// A text of more characters than this without a stop is no sentence.
const LONG_SENTENCE: usize = 240;

/// Characters looked at before a match to judge it.
const BEFORE: usize = 120;

/// A folded case with its sentences. One byte of the text stands for one character of the original.
struct Case<'a> {
    lexicon: &'a SlotLexicon,
    text: &'a str,
    sentences: &'a [Range<usize>],
    vignette: Range<usize>,
}

impl Case<'_> {
    fn slice(&self, range: Range<usize>) -> &str {
        self.text.get(range).unwrap_or_default()
    }

    /// At most [`BEFORE`] characters before `at` in its sentence.
    fn before(&self, sentence: &Range<usize>, at: usize) -> &str {
        self.slice(at.saturating_sub(BEFORE).max(sentence.start)..at)
    }
}

#[cfg(test)]
mod tests;
