//! Which exam items are text-sufficient vignettes that ask for a diagnosis.
//!
//! An item is kept if it describes a patient, asks above all for the disease or condition the patient has, and
//! can be answered from its text alone (MedRoundsQA, section 3.1 and appendix A.1). The patterns are data, read
//! from a rules file; this module holds the order in which they are asked.

use std::{borrow::Cow, collections::BTreeSet};

use regex::{Regex, RegexBuilder, RegexSet, RegexSetBuilder};
use serde::{Deserialize, de::DeserializeOwned};

use crate::text::sentences::split_lead_in;

/// The version of the rules format this module reads.
const VERSION: u32 = 1;
/// Longest text reported as the one that decided, in Unicode scalar values.
const MAX_WORDS: usize = 120;

/// Compiled rules of one rules file.
///
/// An item passes these steps; the first that decides ends it:
/// 1. A blank stem is dropped.
/// 2. The drop rules, in file order. A rule may give way when the lead-in asks for a diagnosis; a rule on the
///    answer always gives way to a certain one.
/// 3. A question that stands alone and describes nobody is dropped, and so is one without a diagnosis pattern.
/// 4. An uncertain pattern ("the most likely cause") counts only if more than half of the options name a disease,
///    or the keyed answer and one more option do.
/// 5. A patient must be described, in enough words.
pub struct VignetteRules {
    drops: Vec<DropRule>,
    /// Index into `drops` of each pattern of the set.
    in_lead_in: Indexed,
    in_vignette: Indexed,
    in_answer: Indexed,
    asks: Vec<Ask>,
    ask_set: RegexSet,
    diseases: RegexSet,
    patients: RegexSet,
    min_vignette_words: usize,
}

/// What the rules say of one item. `rule` is an id of the rules file, or one of [`BUILT_IN`] where the order of
/// steps itself decided. `words` is the text that decided, copied from the stem (a rule on the answer: from the
/// answer) without change, at most 120 Unicode scalar values; the lead-in where no pattern decided, and empty
/// where the stem is.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Judgement<'a> {
    /// `rule` is the diagnosis pattern that matched; when it is not certain, the options decided.
    Keep { rule: &'a str, words: String, certain: bool },
    /// `rule` is the rule that ended the judgement.
    Drop { reason: DropReason, rule: &'a str, words: String },
}

/// Ids of the decisions that need no pattern, in the order [`VignetteRules::judge`] can reach them.
pub const BUILT_IN: [&str; 5] =
    ["blank_stem", "no_vignette", "asks_nothing_known", "nobody_described", "too_few_words"];

/// Why an item is not a text-sufficient diagnostic vignette.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum DropReason {
    /// A diagnosis of nothing is asked for: no text, or no more than the question.
    EmptyVignette,
    /// An image, recording or graph that is not text is needed.
    ImageDependent,
    /// Ethics, law, insurance, statistics, study design.
    Administrative,
    /// Screening, vaccination, prevention.
    Guideline,
    /// The next step, a treatment, which drug or test to order, counselling.
    Management,
    /// Mechanisms, basic science, expected findings, risk factors, complications, and whatever a question without
    /// a case asks if no other reason fits.
    FactualRecall,
    /// No patient is described.
    NoPatient,
    /// A patient is spoken of but not described, or too little is said.
    Incomplete,
    /// Nothing asks for a diagnosis, and no other reason fits.
    NotDiagnostic,
}

impl DropReason {
    /// Every reason, in the order of the declaration.
    pub const ALL: [DropReason; 9] = [
        DropReason::EmptyVignette,
        DropReason::ImageDependent,
        DropReason::Administrative,
        DropReason::Guideline,
        DropReason::Management,
        DropReason::FactualRecall,
        DropReason::NoPatient,
        DropReason::Incomplete,
        DropReason::NotDiagnostic,
    ];

    /// The name used in rules files and ledgers.
    pub fn as_str(self) -> &'static str {
        match self {
            DropReason::EmptyVignette => "empty_vignette",
            DropReason::ImageDependent => "image_dependent",
            DropReason::Administrative => "administrative",
            DropReason::Guideline => "guideline",
            DropReason::Management => "management",
            DropReason::FactualRecall => "factual_recall",
            DropReason::NoPatient => "no_patient",
            DropReason::Incomplete => "incomplete",
            DropReason::NotDiagnostic => "not_diagnostic",
        }
    }
}

/// A rules file that cannot be used.
#[derive(Debug, thiserror::Error)]
pub enum RulesError {
    /// Not TOML, or a key outside the rules is missing, unknown or of the wrong type.
    #[error("the rules file does not parse")]
    Syntax(#[source] toml::de::Error),
    /// The file is written in another format.
    #[error("the rules file has version {found}, not {VERSION}")]
    Version { found: u32 },
    /// A list that must hold a rule is empty.
    #[error("the rules file has no [[{list}]]")]
    Empty { list: &'static str },
    /// `rule` is the id, or list and position (from 1) where the id is missing or wrong.
    #[error("rule {rule}: {problem}")]
    Rule { rule: String, problem: String },
}

impl VignetteRules {
    /// Reads and compiles a rules file.
    ///
    /// # Errors
    /// If the text is no TOML, has another version, an unknown key, an empty list, an id that is malformed or
    /// used twice, an unknown reason or place, or a pattern that does not compile or matches empty text.
    pub fn parse(text: &str) -> Result<Self, RulesError> {
        let file: RulesFile = toml::from_str(text).map_err(RulesError::Syntax)?;
        if file.version != VERSION {
            return Err(RulesError::Version { found: file.version });
        }
        let mut ids = BTreeSet::new();
        let drop_entries: Vec<DropEntry> = entries("drop", file.drop, &mut ids)?;
        let ask_entries: Vec<AskEntry> = entries("diagnosis", file.diagnosis, &mut ids)?;
        let disease_entries: Vec<PatternEntry> = entries("disease", file.disease, &mut ids)?;
        let patient_entries: Vec<PatternEntry> = entries("patient", file.patient, &mut ids)?;

        let drops = drop_entries.into_iter().map(DropRule::compile).collect::<Result<Vec<_>, _>>()?;
        let asks = ask_entries.into_iter().map(Ask::compile).collect::<Result<Vec<_>, _>>()?;
        Ok(VignetteRules {
            in_lead_in: Indexed::new(&drops, &[Place::LeadIn, Place::Stem])?,
            in_vignette: Indexed::new(&drops, &[Place::Vignette, Place::Stem])?,
            in_answer: Indexed::new(&drops, &[Place::Answer])?,
            ask_set: set(asks.iter().map(|ask| ask.pattern.as_str()), "diagnosis")?,
            diseases: pattern_set(&disease_entries, "disease")?,
            patients: pattern_set(&patient_entries, "patient")?,
            min_vignette_words: file.min_vignette_words,
            drops,
            asks,
        })
    }

    /// Judges one item: `stem` is the text before the options, question included; `answer` the text of the keyed
    /// option; `options` the texts of all options (may be empty).
    pub fn judge<'a>(&'a self, stem: &str, answer: &str, options: &[&str]) -> Judgement<'a> {
        if stem.trim().is_empty() {
            return dropped(DropReason::EmptyVignette, "blank_stem", String::new());
        }
        let split = split_lead_in(stem);
        let vignette = Part::new(stem.get(split.vignette).unwrap_or_default());
        let lead_in = Part::new(stem.get(split.lead_in).unwrap_or_default());
        let answer = Part::new(answer.trim());

        let ask = self.ask_set.matches(&lead_in.folded).iter().next().and_then(|index| self.asks.get(index));
        if let Some((rule, words)) = self.first_drop(ask, &vignette, &lead_in, &answer) {
            return dropped(rule.reason, &rule.id, words);
        }
        let asked = || cut(if lead_in.text.is_empty() { vignette.text } else { lead_in.text });
        let patient_in_lead_in = self.patients.is_match(&lead_in.folded);
        if vignette.text.is_empty() && !patient_in_lead_in {
            return dropped(self.reason_of_bare(ask, &lead_in), "no_vignette", asked());
        }
        let described = patient_in_lead_in || self.patients.is_match(&vignette.folded);
        // Without a case, a question about anything but a diagnosis tests knowledge.
        let other = if described { DropReason::NotDiagnostic } else { DropReason::FactualRecall };
        let Some(ask) = ask else {
            return dropped(other, "asks_nothing_known", asked());
        };
        let words = lead_in.words(&ask.pattern);
        if !ask.certain && !self.is_disease(&answer, options) {
            return dropped(other, &ask.id, words);
        }
        if !described {
            let reason =
                if speaks_of_a_patient(&lead_in.folded) { DropReason::Incomplete } else { DropReason::NoPatient };
            return dropped(reason, "nobody_described", asked());
        }
        let told = if patient_in_lead_in { stem } else { vignette.text };
        if told.split_whitespace().count() < self.min_vignette_words {
            return dropped(DropReason::Incomplete, "too_few_words", asked());
        }
        Judgement::Keep { rule: &ask.id, words, certain: ask.certain }
    }

    /// The first drop rule that applies, and the words it matched.
    fn first_drop(
        &self,
        ask: Option<&Ask>,
        vignette: &Part,
        lead_in: &Part,
        answer: &Part,
    ) -> Option<(&DropRule, String)> {
        let mut found: Vec<(usize, &Part)> = Vec::new();
        found.extend(self.in_vignette.matches(&vignette.folded).map(|index| (index, vignette)));
        found.extend(self.in_lead_in.matches(&lead_in.folded).map(|index| (index, lead_in)));
        if ask.is_none_or(|ask| !ask.certain) {
            found.extend(self.in_answer.matches(&answer.folded).map(|index| (index, answer)));
        }
        found.sort_by_key(|&(index, _)| index);
        found.into_iter().find_map(|(index, part)| {
            let rule = self.drops.get(index)?;
            let stands = match rule.yields {
                Yields::No => true,
                Yields::Certain => ask.is_none_or(|ask| !ask.certain),
                Yields::Any => ask.is_none(),
            };
            let excepted = rule.unless.as_ref().is_some_and(|unless| unless.is_match(&part.folded));
            (stands && !excepted).then(|| (rule, part.words(&rule.pattern)))
        })
    }

    /// Why a question that stands alone and describes nobody is dropped.
    fn reason_of_bare(&self, ask: Option<&Ask>, lead_in: &Part) -> DropReason {
        match ask {
            // "This patient" of whom nothing is told is half an item.
            Some(_) if speaks_of_a_patient(&lead_in.folded) => DropReason::Incomplete,
            Some(ask) if ask.certain => match lead_in.text.split_whitespace().count() {
                words if words < self.min_vignette_words => DropReason::EmptyVignette,
                _ => DropReason::NoPatient,
            },
            _ => DropReason::FactualRecall,
        }
    }

    fn is_disease(&self, answer: &Part, options: &[&str]) -> bool {
        let n_diseases = options.iter().filter(|option| self.diseases.is_match(&fold(option))).count();
        // A single disease among mechanisms is one of them in other words.
        let enough = n_diseases >= 2 || options.len() < 2;
        n_diseases * 2 > options.len() || (enough && self.diseases.is_match(&answer.folded))
    }
}

fn dropped(reason: DropReason, rule: &str, words: String) -> Judgement<'_> {
    Judgement::Drop { reason, rule, words }
}

/// Whether a question takes a patient for granted: "he", "this child's", but not "a child".
fn speaks_of_a_patient(lead_in: &str) -> bool {
    const PRONOUNS: [&str; 4] = ["he", "she", "his", "her"];
    const PERSONS: [&str; 7] = ["patient", "man", "woman", "boy", "girl", "child", "infant"];
    const KNOWN: [&str; 3] = ["this", "the", "your"];
    let mut known = false;
    lead_in.split(|character: char| !character.is_alphanumeric()).any(|word| {
        let lower = word.to_lowercase();
        let found = PRONOUNS.contains(&lower.as_str()) || (known && PERSONS.contains(&lower.as_str()));
        known = KNOWN.contains(&lower.as_str());
        found
    })
}

/// A trimmed part of an item, and the same characters folded for matching.
struct Part<'t> {
    text: &'t str,
    folded: Cow<'t, str>,
}

impl<'t> Part<'t> {
    fn new(text: &'t str) -> Self {
        Part { text, folded: fold(text) }
    }

    /// The text `pattern` matches first, copied from the unfolded text.
    fn words(&self, pattern: &Regex) -> String {
        let Some(found) = pattern.find(&self.folded) else {
            return cut(self.text);
        };
        let before = self.folded.get(..found.start()).unwrap_or_default().chars().count();
        let length = found.as_str().chars().count().min(MAX_WORDS);
        let copied: String = self.text.chars().skip(before).take(length).collect();
        copied.trim().to_owned()
    }
}

fn cut(text: &str) -> String {
    text.chars().take(MAX_WORDS).collect::<String>().trim_end().to_owned()
}

/// The text with typographic quotes, dashes and spaces made plain, and Cyrillic letters that look Latin made
/// Latin in words that hold no other Cyrillic letter. One character becomes one character.
fn fold(text: &str) -> Cow<'_, str> {
    if text.is_ascii() {
        return Cow::Borrowed(text);
    }
    let mut folded = String::with_capacity(text.len());
    let mut word_start = 0;
    let mut at = 0;
    let mut flush = |word: &str| {
        let is_foreign = word.chars().any(|character| is_cyrillic(character) && latin(character).is_none());
        folded.extend(word.chars().map(|character| match latin(character) {
            Some(latin) if !is_foreign => latin,
            _ => plain(character),
        }));
    };
    for character in text.chars() {
        let length = character.len_utf8();
        if !character.is_alphabetic() {
            flush(text.get(word_start..at).unwrap_or_default());
            flush(text.get(at..at + length).unwrap_or_default());
            word_start = at + length;
        }
        at += length;
    }
    flush(text.get(word_start..).unwrap_or_default());
    Cow::Owned(folded)
}

fn is_cyrillic(character: char) -> bool {
    ('\u{400}'..='\u{52f}').contains(&character)
}

fn latin(cyrillic: char) -> Option<char> {
    Some(match cyrillic {
        'а' => 'a',
        'с' => 'c',
        'ԁ' => 'd',
        'е' => 'e',
        'һ' => 'h',
        'і' => 'i',
        'ј' => 'j',
        'о' => 'o',
        'р' => 'p',
        'ԛ' => 'q',
        'ѕ' => 's',
        'ԝ' => 'w',
        'х' => 'x',
        'у' => 'y',
        'А' => 'A',
        'В' => 'B',
        'С' => 'C',
        'Е' => 'E',
        'Н' => 'H',
        'І' => 'I',
        'Ј' => 'J',
        'К' => 'K',
        'М' => 'M',
        'О' => 'O',
        'Р' => 'P',
        'Ѕ' => 'S',
        'Т' => 'T',
        'Х' => 'X',
        'У' => 'Y',
        _ => return None,
    })
}

fn plain(character: char) -> char {
    match character {
        '‘' | '’' | '‚' | '‛' | '′' | 'ʼ' | '´' => '\'',
        '“' | '”' | '„' | '‟' | '″' | '«' | '»' => '"',
        '‐' | '‑' | '‒' | '–' | '—' | '−' => '-',
        _ if character.is_whitespace() && !character.is_ascii() => ' ',
        _ => character,
    }
}

struct DropRule {
    id: String,
    reason: DropReason,
    place: Place,
    pattern: Regex,
    unless: Option<Regex>,
    yields: Yields,
}

impl DropRule {
    fn compile(entry: DropEntry) -> Result<Self, RulesError> {
        let unless = entry.unless.map(|unless| compile(&entry.id, "unless", &unless, entry.match_case)).transpose()?;
        if entry.place == Place::Answer && entry.yields != Yields::No {
            return Err(bad(&entry.id, "a rule on the answer always gives way; remove `yields`"));
        }
        Ok(DropRule {
            pattern: compile(&entry.id, "pattern", &entry.pattern, entry.match_case)?,
            id: entry.id,
            reason: entry.reason,
            place: entry.place,
            unless,
            yields: entry.yields,
        })
    }
}

/// A pattern that says that a lead-in asks for a diagnosis.
struct Ask {
    id: String,
    /// Whether the pattern alone is enough; else the answer or options must name diseases.
    certain: bool,
    pattern: Regex,
}

impl Ask {
    fn compile(entry: AskEntry) -> Result<Self, RulesError> {
        Ok(Ask { pattern: compile(&entry.id, "pattern", &entry.pattern, false)?, id: entry.id, certain: entry.certain })
    }
}

/// Patterns of the drop rules of one place, and where each rule stands in the file.
struct Indexed {
    set: RegexSet,
    rules: Vec<usize>,
}

impl Indexed {
    fn new(drops: &[DropRule], places: &[Place]) -> Result<Self, RulesError> {
        let chosen = || drops.iter().enumerate().filter(|(_, rule)| places.contains(&rule.place));
        Ok(Indexed {
            set: set(chosen().map(|(_, rule)| rule.pattern.as_str()), "drop")?,
            rules: chosen().map(|(index, _)| index).collect(),
        })
    }

    fn matches(&self, text: &str) -> impl Iterator<Item = usize> {
        self.set.matches(text).into_iter().filter_map(|index| self.rules.get(index).copied())
    }
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct RulesFile {
    version: u32,
    min_vignette_words: usize,
    drop: Vec<toml::Table>,
    diagnosis: Vec<toml::Table>,
    disease: Vec<toml::Table>,
    patient: Vec<toml::Table>,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct DropEntry {
    id: String,
    reason: DropReason,
    #[serde(rename = "where")]
    place: Place,
    pattern: String,
    unless: Option<String>,
    #[serde(default)]
    yields: Yields,
    #[serde(default)]
    match_case: bool,
    #[expect(dead_code, reason = "for the reader of the file; required so that no rule goes unexplained")]
    note: String,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct AskEntry {
    id: String,
    certain: bool,
    pattern: String,
    #[expect(dead_code, reason = "for the reader of the file; required so that no rule goes unexplained")]
    note: String,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct PatternEntry {
    id: String,
    pattern: String,
    #[expect(dead_code, reason = "for the reader of the file; required so that no rule goes unexplained")]
    note: String,
}

/// Where a drop rule looks. `Stem` is the vignette or the lead-in.
#[derive(Clone, Copy, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "snake_case")]
enum Place {
    LeadIn,
    Vignette,
    Stem,
    Answer,
}

/// Which diagnosis patterns in the lead-in keep a drop rule from applying.
#[derive(Clone, Copy, Default, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "snake_case")]
enum Yields {
    #[default]
    No,
    Certain,
    Any,
}

/// The rules of one list, with every id checked before the rest, so that an error can name it.
fn entries<T: DeserializeOwned>(
    list: &'static str,
    tables: Vec<toml::Table>,
    ids: &mut BTreeSet<String>,
) -> Result<Vec<T>, RulesError> {
    if tables.is_empty() {
        return Err(RulesError::Empty { list });
    }
    let mut rules = Vec::with_capacity(tables.len());
    for (index, table) in tables.into_iter().enumerate() {
        let place = || format!("{list}[{}]", index + 1);
        let Some(toml::Value::String(id)) = table.get("id") else {
            return Err(bad(&place(), "has no `id`, or one that is no string"));
        };
        let id = id.clone();
        let well_formed = id.starts_with(|first: char| first.is_ascii_lowercase())
            && id.bytes().all(|byte| byte.is_ascii_lowercase() || byte.is_ascii_digit() || byte == b'_');
        if !well_formed {
            return Err(bad(&place(), &format!("id {id:?} is not snake_case")));
        }
        if BUILT_IN.contains(&id.as_str()) || !ids.insert(id.clone()) {
            return Err(bad(&id, "the id is used twice or reserved"));
        }
        let rule = toml::Value::Table(table).try_into().map_err(|error: toml::de::Error| bad(&id, error.message()))?;
        rules.push(rule);
    }
    Ok(rules)
}

fn bad(rule: &str, problem: &str) -> RulesError {
    RulesError::Rule { rule: rule.to_owned(), problem: problem.to_owned() }
}

fn compile(id: &str, key: &str, pattern: &str, match_case: bool) -> Result<Regex, RulesError> {
    let mut source = expand(pattern);
    if !match_case {
        // In the text of the pattern, so that the sets see it too.
        source.insert_str(0, "(?i)");
    }
    let regex =
        RegexBuilder::new(&source).build().map_err(|error| bad(id, &format!("`{key}` does not compile: {error}")))?;
    if regex.is_match("") {
        return Err(bad(id, &format!("`{key}` matches empty text")));
    }
    Ok(regex)
}

fn pattern_set(entries: &[PatternEntry], list: &'static str) -> Result<RegexSet, RulesError> {
    let regexes = entries
        .iter()
        .map(|entry| compile(&entry.id, "pattern", &entry.pattern, false))
        .collect::<Result<Vec<_>, _>>()?;
    set(regexes.iter().map(Regex::as_str), list)
}

fn set<'p>(patterns: impl Iterator<Item = &'p str>, list: &'static str) -> Result<RegexSet, RulesError> {
    RegexSetBuilder::new(patterns)
        .size_limit(64 << 20)
        // Half of this is emptied and filled again on every few stems, at a third of the speed.
        .dfa_size_limit(32 << 20)
        .build()
        .map_err(|error| bad(list, &format!("the patterns do not compile together: {error}")))
}

/// The pattern with each space standing for a run of white space, and `\b \w \d \s` limited to ASCII, which
/// keeps the automata small and fast.
fn expand(pattern: &str) -> String {
    let mut expanded = String::with_capacity(pattern.len() * 2);
    let mut class_depth = 0_usize;
    let mut characters = pattern.chars();
    while let Some(character) = characters.next() {
        match character {
            '\\' => match (characters.next(), class_depth > 0) {
                (Some('b'), false) => expanded.push_str(r"(?-u:\b)"),
                (Some('w'), false) => expanded.push_str("[0-9A-Za-z_]"),
                (Some('w'), true) => expanded.push_str("0-9A-Za-z_"),
                (Some('d'), false) => expanded.push_str("[0-9]"),
                (Some('d'), true) => expanded.push_str("0-9"),
                (Some('s'), false) => expanded.push_str(r"[ \t\r\n]"),
                (Some('s'), true) => expanded.push_str(r" \t\r\n"),
                (escaped, _) => {
                    expanded.push('\\');
                    expanded.extend(escaped);
                }
            },
            ' ' if class_depth == 0 => expanded.push_str(r"(?:[ \t\r\n]+)"),
            _ => {
                match character {
                    '[' => class_depth += 1,
                    ']' => class_depth = class_depth.saturating_sub(1),
                    _ => {}
                }
                expanded.push(character);
            }
        }
    }
    expanded
}

#[cfg(test)]
mod tests {
    use super::*;

    const RULES: &str = include_str!("../../pipelines/rules/vignette.toml");

    fn rules() -> VignetteRules {
        VignetteRules::parse(RULES).unwrap_or_else(|error| panic!("{error}"))
    }

    fn outcome(judgement: &Judgement) -> &'static str {
        match judgement {
            Judgement::Keep { .. } => "keep",
            Judgement::Drop { reason, .. } => reason.as_str(),
        }
    }

    fn words_of(judgement: Judgement) -> String {
        match judgement {
            Judgement::Keep { words, .. } | Judgement::Drop { words, .. } => words,
        }
    }

    const MAN: &str = "A 52-year-old man has had a cough and night sweats for three weeks.";

    #[test]
    fn every_reason_has_its_stems() {
        // Lead-in, keyed answer, other options, outcome.
        let cases: &[(&str, &str, &[&str], &str)] = &[
            ("What is the most likely diagnosis?", "Silicosis", &[], "keep"),
            ("Which diagnosis best explains the picture?", "Silicosis", &[], "keep"),
            ("Which of the following diagnoses is most likely?", "Silicosis", &[], "keep"),
            ("These findings are most consistent with which diagnosis?", "Silicosis", &[], "keep"),
            ("The probable diagnosis is", "Silicosis", &[], "keep"),
            ("Diagnosis?", "Silicosis", &[], "keep"),
            ("He is most likely suffering from:", "Silicosis", &["Asthma"], "keep"),
            ("Which condition would best explain this?", "Silicosis", &["Asthma"], "keep"),
            ("What is the most likely cause of his symptoms?", "Lung abscess", &["Pneumonia"], "keep"),
            ("Which organism is responsible?", "Histoplasma infection", &["Tuberculosis", "Pneumonia"], "keep"),
            ("Which organism is responsible?", "Klebsiella pneumoniae", &["Listeria monocytogenes"], "not_diagnostic"),
            ("What is the most likely cause of his symptoms?", "Bird droppings", &["Dust"], "not_diagnostic"),
            ("What is the most likely cause of his symptoms?", "Sarcoidosis", &["Dust", "Smoke"], "not_diagnostic"),
            ("Tell his story again.", "Sarcoidosis", &[], "not_diagnostic"),
            ("What is the most likely cause of his symptoms?", "Increased airway tone", &["Asthma"], "factual_recall"),
            ("What is the most likely cause of his symptoms?", "Lisinopril", &["Asthma"], "factual_recall"),
            ("Which mechanism is the most likely cause of his symptoms?", "Asthma", &["Gout"], "factual_recall"),
            ("Which of the following findings is most likely?", "Clubbing", &[], "factual_recall"),
            ("Damage to which nerve explains this?", "Phrenic nerve", &[], "factual_recall"),
            ("He is at increased risk for which of the following conditions?", "Stroke", &["Gout"], "factual_recall"),
            ("Which of the following is associated with the most likely diagnosis?", "Gout", &[], "factual_recall"),
            ("Biopsy is most likely to show which of the following?", "Granulomas", &[], "factual_recall"),
            ("Which complication is most common?", "Empyema", &[], "factual_recall"),
            ("What is the most appropriate next step in management?", "Bronchoscopy", &[], "management"),
            ("What is the best treatment for the most likely diagnosis?", "Rest", &[], "management"),
            ("Which test is most likely to confirm the diagnosis?", "Culture", &[], "management"),
            ("What is the next step in diagnosis?", "Culture", &[], "management"),
            ("Which drug should be avoided?", "Aspirin", &[], "management"),
            ("Which vaccine would have prevented this?", "Influenza vaccine", &[], "guideline"),
            ("Which screening test is recommended at his age?", "Colonoscopy", &[], "guideline"),
            ("Which type of bias does this study show?", "Recall bias", &[], "administrative"),
            ("Who may give informed consent?", "His wife", &[], "administrative"),
            ("An x-ray is shown. What is the most likely diagnosis?", "Silicosis", &[], "image_dependent"),
            ("His skin is red (see image). What is the most likely diagnosis?", "Eczema", &[], "image_dependent"),
            ("The tracing is in Figure 2. What is the most likely diagnosis?", "Gout", &[], "image_dependent"),
            ("Laboratory values are shown below:\nSodium 140\nWhat is the most likely diagnosis?", "Gout", &[], "keep"),
            ("A scan is shown to be clear. What is the most likely diagnosis?", "Gout", &[], "keep"),
            ("An x - ray was done and is shown below. Diagnosis?", "Silicosis", &[], "image_dependent"),
            ("His CT showed the following features. What is your diagnosis?", "Silicosis", &[], "image_dependent"),
            ("An ECG was done. The diagnosis is:", "Atrial flutter", &[], "image_dependent"),
            ("An ECG was done, which was clear. The diagnosis is:", "Panic disorder", &[], "keep"),
            ("On the CT a cyst was seen, with a thick wall. Most likely diagnosis is", "Lung abscess", &[], "keep"),
            ("What is your diagnosis?Sodium140Chloride100", "Silicosis", &[], "keep"),
            ("Likely diagnosis is:(asked in 2011)", "Silicosis", &[], "keep"),
            ("What could be the probable diagnosis :-", "Silicosis", &[], "keep"),
            ("It is suggestive of -", "Silicosis", &["Asthma"], "keep"),
            ("What can this lesion be?", "Lung abscess", &["Pneumonia"], "keep"),
            ("This is due to", "Bird droppings", &["Dust"], "not_diagnostic"),
            ("Which of these is not a differential diagnosis?", "Gout", &["Asthma"], "not_diagnostic"),
            ("The diagnosis can be all except:", "Gout", &["Asthma"], "not_diagnostic"),
            ("He is least likely to have:", "Gout", &["Asthma"], "not_diagnostic"),
            ("All of the following are true of his condition except", "Gout", &["Asthma"], "factual_recall"),
            ("The commonest cause of cough in miners is", "Silicosis", &["Asthma"], "factual_recall"),
            ("What test will you do for diagnosis?", "Culture", &[], "management"),
            ("The diagnosis is best confirmed by", "Culture", &[], "management"),
            ("Drug of choice is:", "Rest", &[], "management"),
            ("What will you do first?", "Culture", &[], "management"),
        ];
        let rules = rules();
        for (lead_in, answer, others, expect) in cases {
            let mut options = vec![*answer];
            options.extend_from_slice(others);
            let judgement = rules.judge(&format!("{MAN} {lead_in}"), answer, &options);
            assert_eq!(outcome(&judgement), *expect, "{lead_in:?}: {judgement:?}");
        }
    }

    #[test]
    fn a_patient_must_be_described() {
        let cases = [
            ("", "empty_vignette"),
            (" \n ", "empty_vignette"),
            ("What is the most likely diagnosis?", "empty_vignette"),
            (
                "Stones are found in a gland below the tongue after a long meal. What is the most likely diagnosis?",
                "no_patient",
            ),
            ("Stones are found below the tongue. What is this patient's most likely diagnosis?", "incomplete"),
            ("A 30-year-old woman coughs. What is the most likely diagnosis?", "incomplete"),
            (
                "A 30-year-old woman coughs blood, has lost weight and sweats at night. What is the most likely diagnosis?",
                "keep",
            ),
            ("What is the most likely diagnosis in a 5 year old boy with fever, red eyes and peeling fingers?", "keep"),
            ("A 40 year old male presents with fever, jaundice and pain below the ribs, diagnosis is", "keep"),
            (
                "A farmer presents with a black painless ulcer on his hand after shearing. Most likely diagnosis is",
                "keep",
            ),
            ("Patient with fever, chills and a black painless ulcer after shearing, diagnosis is?", "keep"),
            ("A wool sorter came after two days of fever. Known smoker with dry cough. Diagnosis -", "keep"),
            ("A6 month child with fever, a stiff neck and a bulging fontanelle. Diagnosis?", "keep"),
            ("A 9 year girl was brought with fever and a stiff neck. Diagnosis?", "keep"),
            ("A 40-year-oldman coughs blood, has lost weight and sweats. Diagnosis?", "keep"),
            ("A wool sorter of 30 years, G2P1, came with a black ulcer on her hand. Diagnosis?", "keep"),
            ("A 60 year old man with fever, chest pain and a black ulcer on the hand:", "keep"),
            ("Black painless ulcers with wide edema and a negative culture. Diagnosis is", "no_patient"),
            ("A black painless ulcer that follows shearing, most likely diagnosis is", "no_patient"),
            ("Diagnosis is", "empty_vignette"),
            ("What is his most likely diagnosis?", "incomplete"),
            ("A black painless ulcer is seen in", "factual_recall"),
            ("Wool sorters:", "factual_recall"),
            ("The hides are dried first. They are then sorted by", "factual_recall"),
            ("Which infection does a child catch from goats?", "factual_recall"),
        ];
        let rules = rules();
        for (stem, expect) in cases {
            let judgement = rules.judge(stem, "Anthrax", &["Anthrax", "Gout"]);
            assert_eq!(outcome(&judgement), expect, "{stem:?}: {judgement:?}");
        }
    }

    #[test]
    fn words_are_copied_from_the_unfolded_text() {
        let rules = rules();
        let stem =
            "A 52‑year‑old mаn’s cough — dry — has lasted for many weeks. Whаt is the mоst  likely\u{a0}diаgnosis?";
        let judged = rules.judge(stem, "Silicosis", &[]);
        assert_eq!(
            judged,
            Judgement::Keep {
                rule: "most_likely_diagnosis",
                words: "mоst  likely\u{a0}diаgnosis".to_owned(),
                certain: true,
            }
        );

        let stem = format!("{MAN} Which {} is most likely?", "x".repeat(300));
        let words = words_of(rules.judge(&stem, "Gout", &[]));
        assert_eq!(words.chars().count(), MAX_WORDS);
        assert!(stem.contains(&words));

        let words = words_of(rules.judge(
            &format!("{MAN} What is the likely cause?"),
            "Élevated — no; increаsed tone",
            &["Gout"],
        ));
        assert_eq!(words, "likely cause");
        let words = words_of(rules.judge(&format!("{MAN} What is the likely cause?"), "Increаsed ‘tone’", &["Gout"]));
        assert_eq!(words, "Increаsed");
    }

    #[test]
    fn folding_keeps_the_number_of_characters() {
        let cases = [
            ("plain", "plain"),
            ("“a” ‘b’ c–d\u{a0}e", "\"a\" 'b' c-d e"),
            ("Не hаs раin", "He has pain"),
            ("боль in Москва", "боль in Москва"),
            ("β-blосker 37°С", "β-blocker 37°C"),
            ("line\nbreak…", "line\nbreak…"),
        ];
        for (text, expect) in cases {
            let folded = fold(text);
            assert_eq!(folded, expect);
            assert_eq!(folded.chars().count(), text.chars().count());
        }
    }

    #[test]
    fn faulty_rules_files_are_named() {
        const REST: &str = r#"
[[diagnosis]]
id = "asks"
certain = true
pattern = 'diagnosis'
note = "n"
[[disease]]
id = "names"
pattern = 'gout'
note = "n"
[[patient]]
id = "person"
pattern = 'man'
note = "n"
"#;
        let drop = |body: &str| format!("version = 1\nmin_vignette_words = 3\n[[drop]]\n{body}\n{REST}");
        let good = "id = \"a\"\nreason = \"management\"\nwhere = \"lead_in\"\npattern = 'x'\nnote = \"n\"";
        assert!(VignetteRules::parse(&drop(good)).is_ok());
        let cases = [
            (drop(good).replace("version = 1", "version = 2"), "version 2"),
            (drop(good).replace("version = 1\n", ""), "does not parse"),
            (drop(good).replace("min_vignette", "max_vignette"), "does not parse"),
            (drop("reason = \"management\""), "rule drop[1]: has no `id`"),
            (drop(&good.replace("\"a\"", "\"A b\"")), "rule drop[1]: id \"A b\" is not snake_case"),
            (drop(&good.replace("\"a\"", "\"asks\"")), "rule asks: the id is used twice"),
            (drop(&good.replace("\"a\"", "\"too_few_words\"")), "rule too_few_words: the id is used twice or reserved"),
            (drop(&good.replace("management", "mangement")), "rule a: unknown variant `mangement`"),
            (drop(&good.replace("lead_in", "options")), "rule a: unknown variant `options`"),
            (drop(&good.replace("note", "notes")), "rule a: unknown field `notes`"),
            (drop(&good.replace("'x'", "'(x'")), "rule a: `pattern` does not compile"),
            (drop(&good.replace("'x'", "'x?'")), "rule a: `pattern` matches empty text"),
            (drop(&format!("{good}\nunless = '['")), "rule a: `unless` does not compile"),
            (drop(&format!("{}\nyields = \"any\"", good.replace("lead_in", "answer"))), "rule a: a rule on the answer"),
            (format!("version = 1\nmin_vignette_words = 3\ndrop = []\n{REST}"), "no [[drop]]"),
        ];
        for (text, expect) in cases {
            match VignetteRules::parse(&text) {
                Ok(_) => panic!("accepted: {text}"),
                Err(error) => assert!(error.to_string().contains(expect), "{error} is not {expect}"),
            }
        }
    }

    #[test]
    fn order_in_the_file_decides() {
        let text = "version = 1\nmin_vignette_words = 3
[[drop]]\nid = 'second'\nreason = 'guideline'\nwhere = 'vignette'\npattern = 'cough'\nunless = 'dry'\nyields = 'any'\nnote = ''
[[drop]]\nid = 'third'\nreason = 'management'\nwhere = 'stem'\npattern = 'Cough'\nmatch_case = true\nnote = ''
[[drop]]\nid = 'fourth'\nreason = 'factual_recall'\nwhere = 'answer'\npattern = 'tone'\nnote = ''
[[diagnosis]]\nid = 'sure'\ncertain = true\npattern = 'the diagnosis'\nnote = ''
[[diagnosis]]\nid = 'maybe'\ncertain = false\npattern = 'what is it'\nnote = ''
[[disease]]\nid = 'disease'\npattern = 'gout|tone'\nnote = ''
[[patient]]\nid = 'patient'\npattern = 'a man'\nnote = ''";
        let rules = VignetteRules::parse(text).unwrap_or_else(|error| panic!("{error}"));
        let rule = |stem: &str, answer: &str| match rules.judge(stem, answer, &[]) {
            Judgement::Keep { rule, .. } | Judgement::Drop { rule, .. } => rule.to_owned(),
        };
        let cases = [
            ("A man has a cough. And now?", "gout", "second"),
            ("A man has a dry cough. And now?", "gout", "asks_nothing_known"),
            ("A man has a cough. What is it?", "gout", "maybe"),
            ("A man has a cough. Cough: what is it?", "gout", "third"),
            ("A man has a cough. What is it?", "tone", "fourth"),
            ("A man has a cough. What is the  diagnosis?", "tone", "sure"),
            ("A man has a cough. What is it?", "dust", "maybe"),
        ];
        for (stem, answer, expect) in cases {
            assert_eq!(rule(stem, answer), expect, "{stem:?}, {answer:?}");
        }
    }

    #[test]
    fn names_of_reasons_are_those_of_the_rules_file() {
        for reason in DropReason::ALL {
            let read: Result<DropReason, toml::de::Error> = toml::Value::String(reason.as_str().to_owned()).try_into();
            assert_eq!(read.ok(), Some(reason));
        }
    }
}
