//! `assign_specialty`: the specialty that would see the patient of a case.
//!
//! MedRoundsQA reports its cases by 17 specialties (figure 8, table 12) but not how a case got its own. Here weighted
//! terms decide, read from a rule file: they are looked for in the diagnosis, the lead-in question and the vignette,
//! and together with the patient's age and the subject tag of the source each votes for a specialty. The votes are
//! kept as evidence, so that an assignment can be traced to the words that made it.
//!
//! Each text is folded once (case, accents, British spellings, punctuation; the place of every letter remembered) and
//! passed through one Aho-Corasick automaton of all terms, so the time is linear in the length of the texts.

use std::collections::HashMap;
use std::ops::Range;

use aho_corasick::{AhoCorasick, MatchKind};
use serde::{Deserialize, Serialize};

/// Most pieces of evidence kept for the specialty assigned.
pub const WINNER_EVIDENCE: usize = 12;
/// Most pieces of evidence kept for the runner-up.
pub const RUNNER_UP_EVIDENCE: usize = 4;

/// One of the 17 specialties of MedRoundsQA, named as in its figure 8 and table 12.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
pub enum Specialty {
    /// General internal medicine, and the default.
    #[serde(rename = "Internal Medicine")]
    InternalMedicine,
    /// Patients below 18 years.
    #[serde(rename = "Pediatrics")]
    Pediatrics,
    /// Injury, poisoning, collapse and shock.
    #[serde(rename = "Emergency Medicine")]
    EmergencyMedicine,
    /// Brain, spinal cord, nerve and neuromuscular junction.
    #[serde(rename = "Neurology")]
    Neurology,
    /// Pregnancy, birth and the female genital tract.
    #[serde(rename = "Obstetrics & Gynecology")]
    ObstetricsGynecology,
    /// Mental disorders.
    #[serde(rename = "Psychiatry")]
    Psychiatry,
    /// Skin, hair and nails.
    #[serde(rename = "Dermatology")]
    Dermatology,
    /// Acute abdomen, hernia, breast and complications of surgery.
    #[serde(rename = "General Surgery")]
    GeneralSurgery,
    /// Urinary tract and male genital organs.
    #[serde(rename = "Urology")]
    Urology,
    /// Eyes.
    #[serde(rename = "Ophthalmology")]
    Ophthalmology,
    /// Ear, nose, throat and salivary glands.
    #[serde(rename = "Otolaryngology (ENT)")]
    Otolaryngology,
    /// Questions about tissue.
    #[serde(rename = "Pathology")]
    Pathology,
    /// Questions about films and scans.
    #[serde(rename = "Diagnostic Radiology")]
    DiagnosticRadiology,
    /// Bones, tendons and joints that are injured or worn.
    #[serde(rename = "Orthopedic Surgery")]
    OrthopedicSurgery,
    /// Inflammatory joint disease and connective tissue disease.
    #[serde(rename = "Rheumatology")]
    Rheumatology,
    /// Heart.
    #[serde(rename = "Cardiology")]
    Cardiology,
    /// Blood, marrow and lymph nodes.
    #[serde(rename = "Hematology")]
    Hematology,
}

impl Specialty {
    /// Every specialty, in the order they are first named in figure 8 of the paper's three data sets.
    pub const ALL: [Specialty; 17] = [
        Specialty::InternalMedicine,
        Specialty::Pediatrics,
        Specialty::EmergencyMedicine,
        Specialty::Neurology,
        Specialty::ObstetricsGynecology,
        Specialty::Psychiatry,
        Specialty::Dermatology,
        Specialty::GeneralSurgery,
        Specialty::Urology,
        Specialty::Ophthalmology,
        Specialty::Otolaryngology,
        Specialty::Pathology,
        Specialty::DiagnosticRadiology,
        Specialty::OrthopedicSurgery,
        Specialty::Rheumatology,
        Specialty::Cardiology,
        Specialty::Hematology,
    ];

    /// The paper's name (figure 8, table 12), as serialized.
    pub const fn as_str(self) -> &'static str {
        match self {
            Specialty::InternalMedicine => "Internal Medicine",
            Specialty::Pediatrics => "Pediatrics",
            Specialty::EmergencyMedicine => "Emergency Medicine",
            Specialty::Neurology => "Neurology",
            Specialty::ObstetricsGynecology => "Obstetrics & Gynecology",
            Specialty::Psychiatry => "Psychiatry",
            Specialty::Dermatology => "Dermatology",
            Specialty::GeneralSurgery => "General Surgery",
            Specialty::Urology => "Urology",
            Specialty::Ophthalmology => "Ophthalmology",
            Specialty::Otolaryngology => "Otolaryngology (ENT)",
            Specialty::Pathology => "Pathology",
            Specialty::DiagnosticRadiology => "Diagnostic Radiology",
            Specialty::OrthopedicSurgery => "Orthopedic Surgery",
            Specialty::Rheumatology => "Rheumatology",
            Specialty::Cardiology => "Cardiology",
            Specialty::Hematology => "Hematology",
        }
    }

    /// A name of lower-case letters and underscores, for keys and file names.
    pub const fn id(self) -> &'static str {
        match self {
            Specialty::InternalMedicine => "internal_medicine",
            Specialty::Pediatrics => "pediatrics",
            Specialty::EmergencyMedicine => "emergency_medicine",
            Specialty::Neurology => "neurology",
            Specialty::ObstetricsGynecology => "obstetrics_gynecology",
            Specialty::Psychiatry => "psychiatry",
            Specialty::Dermatology => "dermatology",
            Specialty::GeneralSurgery => "general_surgery",
            Specialty::Urology => "urology",
            Specialty::Ophthalmology => "ophthalmology",
            Specialty::Otolaryngology => "otolaryngology",
            Specialty::Pathology => "pathology",
            Specialty::DiagnosticRadiology => "diagnostic_radiology",
            Specialty::OrthopedicSurgery => "orthopedic_surgery",
            Specialty::Rheumatology => "rheumatology",
            Specialty::Cardiology => "cardiology",
            Specialty::Hematology => "hematology",
        }
    }

    const fn index(self) -> usize {
        self as usize
    }
}

impl std::fmt::Display for Specialty {
    fn fmt(&self, formatter: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        formatter.write_str(self.as_str())
    }
}

/// Where a piece of evidence comes from.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Field {
    /// The diagnosis: the keyed answer of the item.
    Diagnosis,
    /// The lead-in question.
    Question,
    /// The subject tag of the source.
    Subject,
    /// The vignette.
    Vignette,
    /// The patient's age. The range is where the vignette says it, empty if the age was given.
    Age,
    /// No field: nothing reached the threshold. The range is empty.
    Default,
}

/// What is known of a case.
#[derive(Debug, Clone, Copy, Default)]
pub struct Fields<'a> {
    /// The case without its question.
    pub vignette: &'a str,
    /// The lead-in question.
    pub question: &'a str,
    /// The diagnosis.
    pub diagnosis: &'a str,
    /// The subject tag of the source, if it has one.
    pub subject: Option<&'a str>,
    /// The patient's age in years. If not known it is looked for in the vignette. Not finite or negative: not known.
    pub age_years: Option<f64>,
}

/// One vote for a specialty.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Evidence {
    /// The specialty voted for.
    pub specialty: Specialty,
    /// The term as the rule file has it, or the id of a combination, or what the age or the default says.
    pub term: String,
    /// Where it was found.
    pub field: Field,
    /// Bytes of that field; always on character borders.
    pub range: Range<usize>,
    /// Points, the field's multiplier included, before the vignette's cap.
    pub weight: i32,
}

/// A case's specialty and why.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Assignment {
    /// The specialty.
    pub specialty: Specialty,
    /// Its points.
    pub score: i32,
    /// The next specialty and its points, if any other has some. For the default it may have more points.
    pub runner_up: Option<(Specialty, i32)>,
    /// The strongest votes: up to [`WINNER_EVIDENCE`] for the specialty, then up to [`RUNNER_UP_EVIDENCE`] for the
    /// runner-up; each by points, then field, place and term.
    pub evidence: Vec<Evidence>,
    /// It reached the threshold and leads by the margin of the rules.
    pub confident: bool,
}

/// What is wrong with a rule file.
#[derive(Debug, thiserror::Error)]
pub enum SpecialtyRulesError {
    /// No TOML, an unknown key, a key missing or of the wrong type.
    #[error("specialty rules: {0}")]
    Syntax(#[from] toml::de::Error),
    /// A value that cannot be.
    #[error("specialty rules: `{key}`: {problem}")]
    Value {
        /// The key, with the place in its list.
        key: String,
        /// What is wrong with it.
        problem: String,
    },
    /// The terms are too many for one automaton.
    #[error("specialty rules: {0}")]
    Automaton(#[from] aho_corasick::BuildError),
}

// ------------------------------------------------------------------------------------------------ the file

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct RuleFile {
    version: u32,
    threshold: i32,
    margin: i32,
    vignette_cap: i32,
    order: Vec<Specialty>,
    multipliers: Multipliers,
    age: AgeRule,
    #[serde(default)]
    fold: Vec<FoldRule>,
    #[serde(default)]
    ignored: Vec<IgnoredRule>,
    #[serde(default)]
    subject: Vec<SubjectRule>,
    #[serde(default)]
    combination: Vec<CombinationRule>,
    #[serde(default)]
    specialty: Vec<SpecialtyRule>,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct Multipliers {
    diagnosis: i32,
    diagnosis_further: i32,
    question: i32,
    vignette: i32,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct AgeRule {
    adult_years: u32,
    never_for_children: Vec<Specialty>,
    bands: Vec<Band>,
    infant_terms: Vec<String>,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct Band {
    below_years: u32,
    weight: i32,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct FoldRule {
    specialty: Specialty,
    into: Specialty,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct IgnoredRule {
    #[serde(rename = "note")]
    _note: String,
    terms: Vec<String>,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct SubjectRule {
    specialty: Specialty,
    weight: i32,
    names: Vec<String>,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct CombinationRule {
    id: String,
    specialty: Specialty,
    weight: i32,
    #[serde(default = "every_text")]
    fields: Vec<Text>,
    all: Vec<Vec<String>>,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct SpecialtyRule {
    name: Specialty,
    terms: Vec<TermBlock>,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct TermBlock {
    weight: i32,
    #[serde(default = "every_text")]
    fields: Vec<Text>,
    min_age: Option<u32>,
    terms: Vec<String>,
}

/// A text that is searched.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Deserialize)]
#[serde(rename_all = "snake_case")]
enum Text {
    Diagnosis,
    Question,
    Vignette,
}

impl Text {
    const ALL: [Text; 3] = [Text::Diagnosis, Text::Question, Text::Vignette];

    const fn bit(self) -> u8 {
        1 << self as u8
    }

    const fn field(self) -> Field {
        match self {
            Text::Diagnosis => Field::Diagnosis,
            Text::Question => Field::Question,
            Text::Vignette => Field::Vignette,
        }
    }
}

fn every_text() -> Vec<Text> {
    Text::ALL.to_vec()
}

fn texts_mask(texts: &[Text]) -> u8 {
    texts.iter().fold(0, |mask, text| mask | text.bit())
}

// ------------------------------------------------------------------------------------------------ the rules

/// Rules that assign a specialty to a case, read from `pipelines/rules/specialty.toml`.
#[derive(Debug, Clone)]
pub struct SpecialtyRules {
    threshold: i32,
    margin: i32,
    vignette_cap: i32,
    order: Vec<Specialty>,
    multipliers: [i32; 3],
    diagnosis_further: i32,
    adult_years: u32,
    never_for_children: [bool; Specialty::ALL.len()],
    bands: Vec<(u32, i32)>,
    broader: [Specialty; Specialty::ALL.len()],
    subjects: HashMap<String, Vec<(Specialty, i32)>>,
    combinations: Vec<Combination>,
    automaton: AhoCorasick,
    patterns: Vec<Pattern>,
}

#[derive(Debug, Clone)]
struct Combination {
    id: String,
    specialty: Specialty,
    weight: i32,
    lists: usize,
}

/// What the automaton looks for, and what finding it means.
#[derive(Debug, Clone)]
struct Pattern {
    term: String,
    begins_word: bool,
    ignored: bool,
    infant: bool,
    votes: Vec<Vote>,
    parts: Vec<Part>,
}

#[derive(Debug, Clone, Copy)]
struct Vote {
    specialty: Specialty,
    weight: i32,
    texts: u8,
    min_age: Option<u32>,
}

#[derive(Debug, Clone, Copy)]
struct Part {
    combination: usize,
    list: usize,
    texts: u8,
}

#[derive(Default)]
struct PatternTable {
    patterns: Vec<Pattern>,
    needles: Vec<Vec<u8>>,
    places: HashMap<(Vec<u8>, bool), usize>,
}

impl PatternTable {
    /// The pattern of a term, made if there is none yet. `key` names the list for errors.
    fn pattern(&mut self, term: &str, key: &str) -> Result<usize, SpecialtyRulesError> {
        let (needle, begins_word) = needle(term, key)?;
        if let Some(&place) = self.places.get(&(needle.clone(), begins_word)) {
            return Ok(place);
        }
        let place = self.patterns.len();
        self.patterns.push(Pattern {
            term: term.to_owned(),
            begins_word,
            ignored: false,
            infant: false,
            votes: Vec::new(),
            parts: Vec::new(),
        });
        self.needles.push(needle.clone());
        self.places.insert((needle, begins_word), place);
        Ok(place)
    }
}

fn wrong(key: impl Into<String>, problem: impl Into<String>) -> SpecialtyRulesError {
    SpecialtyRulesError::Value { key: key.into(), problem: problem.into() }
}

/// The folded bytes of a term with the space before it, and whether it is the beginning of a longer word.
fn needle(term: &str, key: &str) -> Result<(Vec<u8>, bool), SpecialtyRulesError> {
    let (words, begins_word) = match term.strip_suffix('*') {
        Some(words) => (words, true),
        None => (term, false),
    };
    if term.to_lowercase() != term {
        return Err(wrong(key, format!("`{term}` is not lower case")));
    }
    if words.contains('*') || (begins_word && !words.ends_with(char::is_alphanumeric)) {
        return Err(wrong(key, format!("`{term}`: * may only end a word at the end of the term")));
    }
    if words.trim() != words || words.contains("  ") {
        return Err(wrong(key, format!("`{term}` has spaces to spare")));
    }
    let mut folded = Folded::new(words).bytes;
    // The space after the last word: a term may go on with a plural ending.
    folded.pop();
    if folded.len() < 2 {
        return Err(wrong(key, format!("`{term}` has no letter or digit")));
    }
    Ok((folded, begins_word))
}

fn positive(value: i32, key: impl Into<String>) -> Result<(), SpecialtyRulesError> {
    // Far from where sums of points could overflow.
    if (1..=1000).contains(&value) { Ok(()) } else { Err(wrong(key, format!("{value} is not from 1 to 1000"))) }
}

fn check_texts(texts: &[Text], key: &str) -> Result<(), SpecialtyRulesError> {
    if texts.is_empty() {
        return Err(wrong(key, "names no text"));
    }
    if texts_mask(texts).count_ones() as usize != texts.len() {
        return Err(wrong(key, "names a text twice"));
    }
    Ok(())
}

impl SpecialtyRules {
    /// Reads a rule file. An unknown key, an empty or repeated entry, or a term that is not lower case is an error
    /// that names its key.
    pub fn parse(text: &str) -> Result<SpecialtyRules, SpecialtyRulesError> {
        let file: RuleFile = toml::from_str(text)?;
        if file.version != 1 {
            return Err(wrong("version", format!("{} is not 1", file.version)));
        }
        positive(file.threshold, "threshold")?;
        positive(file.margin, "margin")?;
        positive(file.vignette_cap, "vignette_cap")?;
        positive(file.multipliers.diagnosis, "multipliers.diagnosis")?;
        positive(file.multipliers.diagnosis_further, "multipliers.diagnosis_further")?;
        positive(file.multipliers.question, "multipliers.question")?;
        positive(file.multipliers.vignette, "multipliers.vignette")?;

        let mut ordered = [false; Specialty::ALL.len()];
        for &specialty in &file.order {
            if std::mem::replace(&mut ordered[specialty.index()], true) {
                return Err(wrong("order", format!("names {specialty} twice")));
            }
        }
        if let Some(missing) = Specialty::ALL.into_iter().find(|specialty| !ordered[specialty.index()]) {
            return Err(wrong("order", format!("lacks {missing}")));
        }

        let mut bands: Vec<(u32, i32)> = Vec::new();
        for (number, band) in file.age.bands.iter().enumerate() {
            positive(band.weight, format!("age.bands[{number}].weight"))?;
            if bands.last().is_some_and(|&(years, _)| years >= band.below_years)
                || band.below_years > file.age.adult_years
            {
                return Err(wrong(format!("age.bands[{number}].below_years"), "bands must rise up to adult_years"));
            }
            bands.push((band.below_years, band.weight));
        }
        if bands.is_empty() {
            return Err(wrong("age.bands", "is empty"));
        }
        let mut never_for_children = [false; Specialty::ALL.len()];
        for &specialty in &file.age.never_for_children {
            if specialty == Specialty::Pediatrics {
                return Err(wrong("age.never_for_children", "names Pediatrics"));
            }
            if std::mem::replace(&mut never_for_children[specialty.index()], true) {
                return Err(wrong("age.never_for_children", format!("names {specialty} twice")));
            }
        }

        let mut broader = Specialty::ALL;
        for (number, rule) in file.fold.iter().enumerate() {
            if broader[rule.specialty.index()] != rule.specialty {
                return Err(wrong(format!("fold[{number}].specialty"), format!("{} is folded twice", rule.specialty)));
            }
            if file.fold.iter().any(|other| other.specialty == rule.into) {
                return Err(wrong(format!("fold[{number}].into"), format!("{} is folded itself", rule.into)));
            }
            broader[rule.specialty.index()] = rule.into;
        }

        let mut subjects: HashMap<String, Vec<(Specialty, i32)>> = HashMap::new();
        for (number, rule) in file.subject.iter().enumerate() {
            positive(rule.weight, format!("subject[{number}].weight"))?;
            let key = format!("subject[{number}].names");
            if rule.names.is_empty() {
                return Err(wrong(key, "is empty"));
            }
            for name in &rule.names {
                needle(name, &key)?;
                let votes = subjects.entry(Folded::new(name).string()).or_default();
                if votes.iter().any(|&(specialty, _)| specialty == rule.specialty) {
                    return Err(wrong(key, format!("`{name}` is there twice for {}", rule.specialty)));
                }
                votes.push((rule.specialty, rule.weight));
            }
        }

        let mut table = PatternTable::default();
        for (number, rule) in file.ignored.iter().enumerate() {
            let key = format!("ignored[{number}].terms");
            if rule.terms.is_empty() {
                return Err(wrong(key, "is empty"));
            }
            for term in &rule.terms {
                let place = table.pattern(term, &key)?;
                if std::mem::replace(&mut table.patterns[place].ignored, true) {
                    return Err(wrong(key, format!("`{term}` is there twice")));
                }
            }
        }
        for term in &file.age.infant_terms {
            let place = table.pattern(term, "age.infant_terms")?;
            if std::mem::replace(&mut table.patterns[place].infant, true) {
                return Err(wrong("age.infant_terms", format!("`{term}` is there twice")));
            }
        }
        for (number, rule) in file.specialty.iter().enumerate() {
            if file.specialty[..number].iter().any(|earlier| earlier.name == rule.name) {
                return Err(wrong(format!("specialty[{number}].name"), format!("{} is there twice", rule.name)));
            }
            for (block_number, block) in rule.terms.iter().enumerate() {
                let key = format!("specialty[{number}].terms[{block_number}]");
                positive(block.weight, format!("{key}.weight"))?;
                check_texts(&block.fields, &format!("{key}.fields"))?;
                let texts = texts_mask(&block.fields);
                let key = format!("{key}.terms");
                if block.terms.is_empty() {
                    return Err(wrong(key, "is empty"));
                }
                for term in &block.terms {
                    let place = table.pattern(term, &key)?;
                    let pattern = &mut table.patterns[place];
                    if pattern.ignored {
                        return Err(wrong(key, format!("`{term}` is ignored as well")));
                    }
                    if pattern.votes.iter().any(|vote| vote.specialty == rule.name && vote.texts & texts != 0) {
                        return Err(wrong(key, format!("`{term}` is there twice for {}", rule.name)));
                    }
                    pattern.votes.push(Vote {
                        specialty: rule.name,
                        weight: block.weight,
                        texts,
                        min_age: block.min_age,
                    });
                }
            }
        }
        let mut combinations: Vec<Combination> = Vec::new();
        for (number, rule) in file.combination.iter().enumerate() {
            let key = format!("combination[{number}]");
            if rule.id.is_empty() || combinations.iter().any(|earlier| earlier.id == rule.id) {
                return Err(wrong(format!("{key}.id"), format!("`{}` is empty or there twice", rule.id)));
            }
            positive(rule.weight, format!("{key}.weight"))?;
            check_texts(&rule.fields, &format!("{key}.fields"))?;
            if rule.all.len() < 2 {
                return Err(wrong(format!("{key}.all"), "has fewer than two lists"));
            }
            for (list, terms) in rule.all.iter().enumerate() {
                let key = format!("{key}.all[{list}]");
                if terms.is_empty() {
                    return Err(wrong(key, "is empty"));
                }
                for term in terms {
                    let place = table.pattern(term, &key)?;
                    let parts = &mut table.patterns[place].parts;
                    if parts.iter().any(|part| part.combination == number && part.list == list) {
                        return Err(wrong(key, format!("`{term}` is there twice")));
                    }
                    parts.push(Part { combination: number, list, texts: texts_mask(&rule.fields) });
                }
            }
            combinations.push(Combination {
                id: rule.id.clone(),
                specialty: rule.specialty,
                weight: rule.weight,
                lists: rule.all.len(),
            });
        }

        let automaton = AhoCorasick::builder().match_kind(MatchKind::Standard).build(&table.needles)?;
        Ok(SpecialtyRules {
            threshold: file.threshold,
            margin: file.margin,
            vignette_cap: file.vignette_cap,
            order: file.order,
            multipliers: [file.multipliers.diagnosis, file.multipliers.question, file.multipliers.vignette],
            diagnosis_further: file.multipliers.diagnosis_further,
            adult_years: file.age.adult_years,
            never_for_children,
            bands,
            broader,
            subjects,
            combinations,
            automaton,
            patterns: table.patterns,
        })
    }

    /// The specialty that a subspecialty is part of where a data set does not tell them apart, as MedQA in figure 8 of
    /// the paper; itself for any other.
    pub fn broader(&self, specialty: Specialty) -> Specialty {
        self.broader[specialty.index()]
    }

    /// Assigns a case to a specialty. The same fields always give the same assignment.
    pub fn assign(&self, fields: &Fields<'_>) -> Assignment {
        let vignette = Folded::new(fields.vignette);
        let given = fields.age_years.filter(|years| years.is_finite() && *years >= 0.0);
        let (age, age_range) = match given {
            Some(years) => (Some(years), 0..0),
            None => vignette.age().map_or((None, 0..0), |(years, range)| (Some(years), range)),
        };

        let mut tally = Tally::new(self);
        tally.search(Text::Diagnosis, &Folded::new(fields.diagnosis), age);
        tally.search(Text::Question, &Folded::new(fields.question), age);
        tally.search(Text::Vignette, &vignette, age);
        tally.combine();
        if let Some(subject) = fields.subject
            && let Some(votes) = self.subjects.get(&Folded::new(subject).string())
        {
            for &(specialty, weight) in votes {
                tally.points[specialty.index()] += weight;
                tally.evidence.push(Evidence {
                    specialty,
                    term: subject.trim().to_lowercase(),
                    field: Field::Subject,
                    range: 0..subject.len(),
                    weight,
                });
            }
        }
        let mut scores = tally.scores();
        let mut evidence = tally.evidence;

        let infant = tally.infant.filter(|_| age.is_none());
        let band = match age {
            Some(years) => self
                .bands
                .iter()
                .find(|(below, _)| years < f64::from(*below))
                .map(|&(below, weight)| (format!("age below {below}"), age_range, weight)),
            None => infant.and_then(|(pattern, range)| {
                self.bands.first().map(|&(_, weight)| (self.patterns[pattern].term.clone(), range, weight))
            }),
        };
        let child = band.is_some();
        if let Some((term, range, weight)) = band {
            scores[Specialty::Pediatrics.index()] += weight;
            evidence.push(Evidence { specialty: Specialty::Pediatrics, term, field: Field::Age, range, weight });
        }
        let adult = age.is_some_and(|years| years >= f64::from(self.adult_years));
        let possible = |specialty: Specialty| match specialty {
            Specialty::Pediatrics => !adult,
            other => !(child && self.never_for_children[other.index()]),
        };

        // The first of `order` among equals: `max_by_key` would take the last.
        let best_of = |out: Option<Specialty>| {
            let mut best: Option<(Specialty, i32)> = None;
            for &specialty in &self.order {
                let score = scores[specialty.index()];
                if Some(specialty) != out
                    && possible(specialty)
                    && score > 0
                    && best.is_none_or(|(_, highest)| score > highest)
                {
                    best = Some((specialty, score));
                }
            }
            best
        };
        let (specialty, score, default) = match best_of(None) {
            Some((specialty, score)) if score >= self.threshold => (specialty, score, false),
            _ => (Specialty::InternalMedicine, scores[Specialty::InternalMedicine.index()], true),
        };
        let runner_up = best_of(Some(specialty));

        let mut kept = strongest(&evidence, specialty, WINNER_EVIDENCE - usize::from(default));
        if default {
            kept.push(Evidence {
                specialty,
                term: format!("default: no specialty reached {}", self.threshold),
                field: Field::Default,
                range: 0..0,
                weight: 0,
            });
        }
        if let Some((second, _)) = runner_up {
            kept.extend(strongest(&evidence, second, RUNNER_UP_EVIDENCE));
        }
        let confident = !default && runner_up.is_none_or(|(_, second)| score - second >= self.margin);
        Assignment { specialty, score, runner_up, evidence: kept, confident }
    }
}

fn strongest(evidence: &[Evidence], specialty: Specialty, most: usize) -> Vec<Evidence> {
    let mut of_specialty: Vec<&Evidence> = evidence.iter().filter(|one| one.specialty == specialty).collect();
    of_specialty.sort_by(|one, other| {
        let key = |evidence: &Evidence| (-evidence.weight, evidence.field, evidence.range.start, evidence.range.end);
        key(one).cmp(&key(other)).then_with(|| one.term.cmp(&other.term))
    });
    of_specialty.into_iter().take(most).cloned().collect()
}

// ------------------------------------------------------------------------------------------------ counting

/// A field and bytes of it.
type Place = (Field, Range<usize>);

/// A term in a folded text; it starts with the space before its first word.
struct Hit {
    start: usize,
    end: usize,
    pattern: usize,
}

struct Tally<'a> {
    rules: &'a SpecialtyRules,
    /// Points of question, subject and combinations.
    points: [i32; Specialty::ALL.len()],
    /// Points of the vignette, to be capped.
    vignette: [i32; Specialty::ALL.len()],
    /// Weights found in the diagnosis: the highest, and the sum.
    diagnosis: [(i32, i32); Specialty::ALL.len()],
    evidence: Vec<Evidence>,
    /// For each list of each combination, where it was first met.
    parts: Vec<Vec<Option<Place>>>,
    infant: Option<(usize, Range<usize>)>,
}

impl<'a> Tally<'a> {
    fn new(rules: &'a SpecialtyRules) -> Self {
        Tally {
            rules,
            points: [0; Specialty::ALL.len()],
            vignette: [0; Specialty::ALL.len()],
            diagnosis: [(0, 0); Specialty::ALL.len()],
            evidence: Vec::new(),
            parts: rules.combinations.iter().map(|combination| vec![None; combination.lists]).collect(),
            infant: None,
        }
    }

    fn search(&mut self, text: Text, folded: &Folded, age: Option<f64>) {
        let rules = self.rules;
        let counts = |vote: &Vote| {
            vote.texts & text.bit() != 0
                && !matches!((age, vote.min_age), (Some(years), Some(least)) if years < f64::from(least))
        };
        let mut hits: Vec<Hit> = Vec::new();
        // Panics only if the automaton is not of the standard kind; it is built as such.
        for found in rules.automaton.find_overlapping_iter(&folded.bytes) {
            let place = found.pattern().as_usize();
            let pattern = &rules.patterns[place];
            let Some(end) = folded.word_end(found.end(), pattern.begins_word) else { continue };
            let start = found.start();
            for part in &pattern.parts {
                let first = &mut self.parts[part.combination][part.list];
                if part.texts & text.bit() != 0 && first.is_none() {
                    *first = Some((text.field(), folded.range(start, end)));
                }
            }
            if pattern.infant && text == Text::Vignette && self.infant.is_none() {
                self.infant = Some((place, folded.range(start, end)));
            }
            if pattern.ignored || pattern.votes.iter().any(counts) {
                hits.push(Hit { start, end, pattern: place });
            }
        }
        hits.sort_unstable_by_key(|hit| (hit.start, std::cmp::Reverse(hit.end), hit.pattern));

        let multiplier = rules.multipliers[text as usize];
        let mut counted = vec![false; rules.patterns.len()];
        let mut taken = 0..0;
        for hit in hits {
            // Terms with the very same words all count: two specialties may share one.
            if hit.start < taken.end && (hit.start, hit.end) != (taken.start, taken.end) {
                continue;
            }
            taken = hit.start..hit.end;
            if std::mem::replace(&mut counted[hit.pattern], true) {
                continue;
            }
            let pattern = &rules.patterns[hit.pattern];
            for vote in pattern.votes.iter().filter(|vote| counts(vote)) {
                let weight = vote.weight * multiplier;
                match text {
                    Text::Diagnosis => {
                        let (highest, sum) = &mut self.diagnosis[vote.specialty.index()];
                        *highest = vote.weight.max(*highest);
                        *sum += vote.weight;
                    }
                    Text::Question => self.points[vote.specialty.index()] += weight,
                    Text::Vignette => self.vignette[vote.specialty.index()] += weight,
                }
                self.evidence.push(Evidence {
                    specialty: vote.specialty,
                    term: pattern.term.clone(),
                    field: text.field(),
                    range: folded.range(hit.start, hit.end),
                    weight,
                });
            }
        }
    }

    fn combine(&mut self) {
        for (combination, parts) in self.rules.combinations.iter().zip(&self.parts) {
            if parts.iter().any(Option::is_none) {
                continue;
            }
            // The last list says what happened; the ones before it where.
            if let Some(Some((field, range))) = parts.last() {
                self.points[combination.specialty.index()] += combination.weight;
                self.evidence.push(Evidence {
                    specialty: combination.specialty,
                    term: combination.id.clone(),
                    field: *field,
                    range: range.clone(),
                    weight: combination.weight,
                });
            }
        }
    }

    fn scores(&self) -> [i32; Specialty::ALL.len()] {
        let mut scores = self.points;
        for (index, score) in scores.iter_mut().enumerate() {
            let (highest, sum) = self.diagnosis[index];
            *score += highest * self.rules.multipliers[Text::Diagnosis as usize];
            *score += (sum - highest) * self.rules.diagnosis_further;
            *score += self.vignette[index].min(self.rules.vignette_cap);
        }
        scores
    }
}

// ------------------------------------------------------------------------------------------------ folding

/// A text for matching: words of lower-case letters and digits, one space before each and after the last.
struct Folded {
    bytes: Vec<u8>,
    /// For each byte, the bytes of the text it comes from.
    origins: Vec<(usize, usize)>,
}

impl Folded {
    fn new(text: &str) -> Folded {
        let mut folded =
            Folded { bytes: Vec::with_capacity(text.len() + 2), origins: Vec::with_capacity(text.len() + 2) };
        folded.push(b' ', 0, 0);
        for (start, character) in text.char_indices() {
            let end = start + character.len_utf8();
            if character.is_ascii_alphanumeric() {
                folded.letter(character.to_ascii_lowercase() as u8, start, end);
            } else if character.is_ascii() {
                folded.border(start, end);
            } else {
                folded.other(character, start, end);
            }
        }
        folded.border(text.len(), text.len());
        folded
    }

    fn push(&mut self, byte: u8, start: usize, end: usize) {
        self.bytes.push(byte);
        self.origins.push((start, end));
    }

    fn border(&mut self, start: usize, end: usize) {
        if self.bytes.last() != Some(&b' ') {
            self.push(b' ', start, end);
        }
    }

    /// A letter, with British ae, oe and our made e, e and or.
    fn letter(&mut self, byte: u8, start: usize, end: usize) {
        let length = self.bytes.len();
        match byte {
            b'e' if matches!(self.bytes.last(), Some(b'a' | b'o')) => {
                self.bytes[length - 1] = b'e';
                self.origins[length - 1].1 = end;
            }
            b'r' if self.bytes.ends_with(b"ou") => {
                self.bytes.pop();
                // `origins` is as long as `bytes`, which ended in two letters.
                self.origins.pop();
                self.origins[length - 2].1 = start;
                self.push(byte, start, end);
            }
            _ => self.push(byte, start, end),
        }
    }

    fn other(&mut self, character: char, start: usize, end: usize) {
        let plain: &[u8] = match character {
            // Marks put over the letter before, and signs without width.
            '\u{300}'..='\u{36f}' | '\u{ad}' | '\u{200b}'..='\u{200d}' | '\u{2060}' | '\u{feff}' => return,
            'à'..='å' | 'À'..='Å' | 'ā' | 'ă' => b"a",
            'æ' | 'Æ' | 'œ' | 'Œ' | 'è'..='ë' | 'È'..='Ë' | 'ē' | 'ė' | 'ę' | 'ě' => b"e",
            'ç' | 'Ç' | 'ć' | 'č' => b"c",
            'ì'..='ï' | 'Ì'..='Ï' => b"i",
            'ñ' | 'Ñ' | 'ń' => b"n",
            'ò'..='ö' | 'ø' | 'Ò'..='Ö' | 'Ø' | 'ō' | 'ő' => b"o",
            'ś' | 'š' | 'Š' => b"s",
            'ù'..='ü' | 'Ù'..='Ü' | 'ū' => b"u",
            'ý' | 'ÿ' | 'Ý' => b"y",
            'ß' => b"ss",
            _ => {
                if character.is_alphanumeric() {
                    for lower in character.to_lowercase() {
                        let mut buffer = [0; 4];
                        for &byte in lower.encode_utf8(&mut buffer).as_bytes() {
                            self.push(byte, start, end);
                        }
                    }
                } else {
                    self.border(start, end);
                }
                return;
            }
        };
        for &byte in plain {
            self.push(byte, start, end);
        }
    }

    fn string(self) -> String {
        String::from_utf8_lossy(&self.bytes).into_owned()
    }

    /// Where a term found up to `end` really ends: at a border, after a plural ending, or, for the beginning of a
    /// word, with that word. None if the word goes on.
    fn word_end(&self, end: usize, begins_word: bool) -> Option<usize> {
        let rest = &self.bytes[end..];
        if begins_word {
            return rest.iter().position(|&byte| byte == b' ').map(|length| end + length);
        }
        [b" ".as_slice(), b"s ", b"es "]
            .into_iter()
            .find(|ending| rest.starts_with(ending))
            .map(|ending| end + ending.len() - 1)
    }

    /// The bytes of the text for a hit whose first byte is the space before the term.
    fn range(&self, start: usize, end: usize) -> Range<usize> {
        self.origins[start + 1].0..self.origins[end - 1].1
    }

    /// The first age told: a number, a unit of time and "old" or a word for a person.
    fn age(&self) -> Option<(f64, Range<usize>)> {
        const PERSONS: [&[u8]; 10] =
            [b"old", b"male", b"female", b"man", b"woman", b"boy", b"girl", b"child", b"lady", b"infant"];
        let mut words: [Range<usize>; 3] = [0..0, 0..0, 0..0];
        let mut start = 1;
        for (place, &byte) in self.bytes.iter().enumerate().skip(1) {
            if byte != b' ' {
                continue;
            }
            words.rotate_left(1);
            words[2] = start..place;
            start = place + 1;
            let [number, unit, person] = &words;
            if !PERSONS.contains(&&self.bytes[person.clone()]) {
                continue;
            }
            let per_year = match &self.bytes[unit.clone()] {
                b"year" | b"years" | b"yr" | b"yrs" => 1.0,
                b"month" | b"months" => 12.0,
                b"week" | b"weeks" => 52.0,
                b"day" | b"days" => 365.0,
                _ => continue,
            };
            let Some(value) = number_of(&self.bytes[number.clone()]) else { continue };
            return Some((f64::from(value) / per_year, self.range(number.start - 1, person.end)));
        }
        None
    }
}

/// A number below 1000 in digits, or one up to twelve in letters.
fn number_of(word: &[u8]) -> Option<u32> {
    const WORDS: [&str; 12] =
        ["one", "two", "three", "four", "five", "six", "seven", "eight", "nine", "ten", "eleven", "twelve"];
    if (1..=3).contains(&word.len()) && word.iter().all(u8::is_ascii_digit) {
        return Some(word.iter().fold(0, |sum, digit| sum * 10 + u32::from(digit - b'0')));
    }
    // "four" is "for" in a folded text.
    let spelled = |name: &&str| name.as_bytes() == word || (*name == "four" && word == b"for");
    (1..).zip(&WORDS).find(|(_, name)| spelled(name)).map(|(value, _)| value)
}

#[cfg(test)]
mod tests;
