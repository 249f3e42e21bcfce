//! Who a patient is, as the text says it: age and sex, and whatever else of the block the words of `demographics.toml` say near
//! the introduction (MTDiag, 4.2.1). Nothing is inferred from names, places or pronouns other than the patient's own.

use std::collections::BTreeSet;
use std::ops::Range;

use anyhow::{Context, ensure};
use regex::Regex;
use serde::Deserialize;

use super::patterns;
use super::story::{Story, Texts};
use crate::clinical::{age::age, sex::sex};
use crate::record::slots::{Slot, Span};
use crate::record::vector::{Demographics, Sex};
use crate::slots::extract::Found;
use crate::staging::series::introductions;

/// The version of the file that this module reads.
const VERSION: u32 = 1;
/// Characters before an introduction that can belong to its phrase: "A married, right-handed".
const BEFORE: usize = 60;
/// Characters behind it: "of Maltese origin".
const BEHIND: usize = 60;

patterns! {
    /// Where the phrase before an age begins.
    PHRASE_START = r"^.*(?:[.;:()]|\b(?:in|with|by|of|for|at|to|from|was|is|as|and)\s)";
    /// A sentence that speaks of the patient, and how far its first clause goes.
    OF_PATIENT = r"^(?:he|she|(?:the|our|this) (?:patient|man|woman|boy|girl|lady|gentleman))\s+(?:is|was|has|had|has been|had been|lived|lives|received|holds|reported)\b[^.;]*";
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct DemographicFile {
    version: u32,
    sentences: usize,
    race_ethnicity: OriginEntry,
    nationality: OriginEntry,
    marital_status: StatusEntry,
    education: StatusEntry,
    insurance: StatusEntry,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct OriginEntry {
    words: Vec<String>,
    nouns: Vec<String>,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct StatusEntry {
    words: Vec<String>,
    predicates: Vec<String>,
}

/// The words of `demographics.toml`, ready to be looked for.
#[derive(Clone, Debug)]
pub struct DemographicWords {
    n_sentences: usize,
    race: Origin,
    nationality: Origin,
    marital: Status,
    education: Status,
    insurance: Status,
}

/// Words for where somebody comes from.
#[derive(Clone, Debug)]
struct Origin {
    /// In the phrase of the introduction.
    in_phrase: Regex,
    /// "of Maltese origin"
    with_noun: Regex,
}

#[derive(Clone, Debug)]
struct Status {
    in_phrase: Regex,
    /// In a sentence about the patient.
    said: Regex,
}

impl DemographicWords {
    /// Reads and checks a file. `file` is its name, for messages.
    ///
    /// # Errors
    /// If the text is no TOML of this version, or a list is empty or holds a blank or repeated term.
    pub fn parse(file: &str, text: &str) -> anyhow::Result<Self> {
        Self::parse_text(text).with_context(|| file.to_owned())
    }

    fn parse_text(text: &str) -> anyhow::Result<Self> {
        let read: DemographicFile = toml::from_str(text)?;
        ensure!(read.version == VERSION, "version {} is not known, it must be {VERSION}", read.version);
        let origin = |key: &str, entry: &OriginEntry| -> anyhow::Result<Origin> {
            let words = alternatives(&format!("{key}.words"), &entry.words)?;
            let nouns = alternatives(&format!("{key}.nouns"), &entry.nouns)?;
            Ok(Origin {
                in_phrase: Regex::new(&format!(r"(?i)\b(?P<said>{words})\b"))?,
                with_noun: Regex::new(&format!(r"(?i)\b(?P<said>{words})[\s-]+(?:{nouns})\b"))?,
            })
        };
        let status = |key: &str, entry: &StatusEntry| -> anyhow::Result<Status> {
            let words = alternatives(&format!("{key}.words"), &entry.words)?;
            let predicates = alternatives(&format!("{key}.predicates"), &entry.predicates)?;
            Ok(Status {
                in_phrase: Regex::new(&format!(r"(?i)\b(?P<said>{words})\b"))?,
                said: Regex::new(&format!(r"(?i)\b(?P<said>{predicates}|{words})\b"))?,
            })
        };
        Ok(Self {
            n_sentences: read.sentences,
            race: origin("race_ethnicity", &read.race_ethnicity)?,
            nationality: origin("nationality", &read.nationality)?,
            marital: status("marital_status", &read.marital_status)?,
            education: status("education", &read.education)?,
            insurance: status("insurance", &read.insurance)?,
        })
    }
}

/// One alternative a term, the longest first.
fn alternatives(key: &str, terms: &[String]) -> anyhow::Result<String> {
    ensure!(!terms.is_empty(), "{key}: the list is empty");
    let mut seen = BTreeSet::new();
    for term in terms {
        ensure!(!term.is_empty() && term.trim() == term, "{key}: {term:?} is blank, or begins or ends with a space");
        ensure!(seen.insert(term.to_lowercase()), "{key}: {term:?} is given twice");
    }
    let mut sorted: Vec<&String> = terms.iter().collect();
    sorted.sort_by_key(|term| (std::cmp::Reverse(term.len()), term.as_str()));
    let terms = sorted.into_iter().map(|term| term.split(' ').map(regex::escape).collect::<Vec<_>>().join(r"[\s-]+"));
    Ok(terms.collect::<Vec<_>>().join("|"))
}

/// Reads the demographics of a story. `is_free` says whether words may be told.
pub(super) fn demographics(
    story: &Story,
    found: &[Found],
    words: &DemographicWords,
    is_free: &dyn Fn(&str) -> bool,
    texts: &mut Texts<'_>,
) -> Demographics {
    let read = &story.read;
    let first = |slot: Slot| found.iter().find(|one| one.slot == slot).map(|one| one.range.clone());
    let mut demographics = Demographics::default();
    let mut spans: Vec<Option<Span>> = Vec::new();
    let mut span_of = |range: &Range<usize>| {
        let span = story.place(range).and_then(|place| texts.span(&place));
        let is_there = span.is_some();
        spans.push(span);
        is_there
    };
    if let Some(range) = first(Slot::PersonalAge)
        && span_of(&range)
    {
        let said = read.words(&range);
        demographics.age_years = age(said).and_then(|age| age.years);
        if demographics.age_years.is_none() {
            demographics.age_text = Some(said.to_owned());
        }
    }
    if let Some(range) = first(Slot::PersonalSex)
        && let Some(said) = sex(read.words(&range)).or_else(|| sex_of_pronoun(read.plain(&range)))
        && span_of(&range)
    {
        demographics.sex = Some(said);
    }
    let phrases = phrases(story);
    let origin = |words: &Origin| {
        let (phrase, behind) = phrases.as_ref()?;
        said(story, phrase, &words.in_phrase).or_else(|| said(story, behind, &words.with_noun))
    };
    let race = origin(&words.race);
    // "African American" is no nationality.
    let nationality = origin(&words.nationality)
        .filter(|nation| race.as_ref().is_none_or(|race| nation.end <= race.start || race.end <= nation.start));
    let mut told = |range: Option<Range<usize>>| {
        let range = range?;
        (is_free(read.words(&range)) && span_of(&range)).then(|| read.words(&range).to_owned())
    };
    demographics.race_ethnicity = told(race);
    demographics.nationality = told(nationality);
    let of_patient: Vec<Range<usize>> = read
        .sentences
        .iter()
        .take(words.n_sentences)
        .filter_map(|sentence| {
            let clause = OF_PATIENT.find(read.plain(sentence))?;
            Some(sentence.start + clause.start()..sentence.start + clause.end())
        })
        .collect();
    let mut status = |words: &Status| {
        let in_phrase = phrases.as_ref().and_then(|(phrase, _)| said(story, phrase, &words.in_phrase));
        told(in_phrase.or_else(|| of_patient.iter().find_map(|clause| said(story, clause, &words.said))))
    };
    demographics.insurance = status(&words.insurance);
    demographics.marital_status = status(&words.marital);
    demographics.education = status(&words.education);
    demographics.spans = spans.into_iter().flatten().collect();
    demographics
}

fn sex_of_pronoun(word: &str) -> Option<Sex> {
    match word {
        "he" | "his" | "him" | "himself" => Some(Sex::Male),
        "she" | "her" | "hers" | "herself" => Some(Sex::Female),
        _ => None,
    }
}

/// Where a pattern of the folded text says something of the patient, as characters.
fn said(story: &Story, range: &Range<usize>, pattern: &Regex) -> Option<Range<usize>> {
    let found = pattern.captures(story.read.plain(range))?.name("said")?;
    // "An English-speaking man".
    if story.read.plain(&(range.start + found.end()..range.end)).trim_start_matches([' ', '-']).starts_with("speaking")
    {
        return None;
    }
    let place = range.start + found.start()..range.start + found.end();
    let said = story.read.scopes.at(&place);
    // "No health insurance" says so itself.
    let denies = ["no ", "not ", "without "].iter().any(|first| found.as_str().starts_with(first));
    ((!said.negated || denies) && said.experiencer == Default::default()).then_some(place)
}

/// The phrase of the first introduction with an age, from its article to its noun, and what stands behind it in its sentence.
fn phrases(story: &Story) -> Option<(Range<usize>, Range<usize>)> {
    let read = &story.read;
    let person = introductions(&read.text).into_iter().find(|person| person.age.is_some())?;
    let person = read.characters(&person.range);
    let (_, sentence) = read.sentence_of(person.start)?;
    let from = sentence.start.max(person.start.saturating_sub(BEFORE));
    let before = from..person.start;
    let start = from + PHRASE_START.find(read.plain(&before)).map_or(0, |found| found.end());
    let behind = person.end.min(sentence.end)..sentence.end.min(person.end + BEHIND);
    Some((start..person.end, behind))
}

#[cfg(test)]
mod tests {
    use super::*;

    const FILE: &str = include_str!("../../pipelines/lexicon/demographics.toml");

    #[test]
    fn the_file_is_read_and_mistakes_are_named() {
        assert!(DemographicWords::parse("demographics.toml", FILE).is_ok());
        for (from, to, message) in [
            ("version = 1", "version = 2", "version 2"),
            ("\"maori\"", "\"maori\", \"Maori\"", "race_ethnicity.words: \"Maori\" is given twice"),
            ("\"newlywed\"", "\"newlywed \"", "marital_status.words: \"newlywed \""),
            ("sentences = 12", "sentence = 12", "sentence"),
        ] {
            let error = DemographicWords::parse("demographics.toml", &FILE.replace(from, to)).unwrap_err();
            let error = format!("{error:#}");
            assert!(error.starts_with("demographics.toml") && error.contains(message), "{error}");
        }
    }
}
