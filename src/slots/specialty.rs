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
mod tests {
    use super::*;

    use expect_test::expect;
    use proptest::prelude::*;

    const RULES: &str = include_str!("../../pipelines/rules/specialty.toml");

    fn rules() -> &'static SpecialtyRules {
        static RULES_READ: std::sync::OnceLock<SpecialtyRules> = std::sync::OnceLock::new();
        RULES_READ.get_or_init(|| SpecialtyRules::parse(RULES).unwrap())
    }

    fn fields<'a>(vignette: &'a str, diagnosis: &'a str) -> Fields<'a> {
        Fields { vignette, question: "What is the most likely diagnosis?", diagnosis, ..Fields::default() }
    }

    const INVENTED: &[(&str, &str, Specialty)] = {
        use Specialty::*;
        &[
            // Internal Medicine.
            ("A 58-year-old farmer coughs up rusty sputum and shivers.", "Lobar pneumonia", InternalMedicine),
            (
                "A 44-year-old clerk sweats, trembles and loses weight; her neck is thick.",
                "Graves disease",
                InternalMedicine,
            ),
            (
                "A 63-year-old man has a swollen belly, red palms and yellow eyes.",
                "Cirrhosis of the liver",
                InternalMedicine,
            ),
            (
                "A 29-year-old woman has loose stools and cramps; the terminal ileum is ulcerated.",
                "Crohn’s disease",
                InternalMedicine,
            ),
            ("A 51-year-old man has foamy urine and swollen legs.", "Membranous glomerulonephritis", InternalMedicine),
            ("A 36-year-old aid worker has fever every other day since her return.", "Malaria", InternalMedicine),
            (
                "A 47-year-old woman wakes at night with burning behind the breastbone.",
                "Gastro-oesophageal reflux disease",
                InternalMedicine,
            ),
            (
                "A 66-year-old man feels his calves cramp after two blocks.",
                "Peripheral arterial disease",
                InternalMedicine,
            ),
            ("A 40-year-old man is tired; nothing else is found.", "Unnameable malady", InternalMedicine),
            // Pediatrics.
            ("A 9-month-old boy draws up his legs and passes jelly-like stool.", "Intussusception", Pediatrics),
            ("A 3-year-old girl barks like a seal when she coughs.", "Croup", Pediatrics),
            ("A newborn turns blue when feeding.", "Transposition of the great arteries", Pediatrics),
            ("A 7-year-old boy wheezes after football.", "Asthma", Pediatrics),
            (
                "A 5-year-old girl is pale and bruises; lymphoblasts are seen.",
                "Acute lymphoblastic leukemia",
                Pediatrics,
            ),
            (
                "An 11-year-old girl has swollen knees and a murmur after a sore throat.",
                "Acute rheumatic fever",
                Pediatrics,
            ),
            ("A 6-week-old boy vomits in a jet after each feed.", "Hypertrophic pyloric stenosis", Pediatrics),
            (
                "A 13-year-old boy is shorter than his classmates and loses sight at the sides.",
                "Craniopharyngioma",
                Pediatrics,
            ),
            // Emergency Medicine.
            (
                "A 24-year-old man is carried into the emergency department after a motorcycle crash, trachea aside.",
                "Tension pneumothorax",
                EmergencyMedicine,
            ),
            (
                "A 31-year-old woman is found on the floor beside an empty pill bottle.",
                "Acetaminophen poisoning",
                EmergencyMedicine,
            ),
            ("A 52-year-old man cannot breathe minutes after a bee sting.", "Anaphylaxis", EmergencyMedicine),
            (
                "A 70-year-old woman was found in an unheated flat in January.",
                "Accidental hypothermia",
                EmergencyMedicine,
            ),
            ("A family of four has headaches since the stove was lit.", "Carbon monoxide poisoning", EmergencyMedicine),
            (
                "A 19-year-old woman collapsed on the marathon course, hot and confused.",
                "Heat stroke",
                EmergencyMedicine,
            ),
            (
                "A 27-year-old man was stabbed and is brought by paramedics; heart sounds are faint.",
                "Something undefined",
                EmergencyMedicine,
            ),
            // Neurology.
            (
                "A 72-year-old man cannot lift his right arm or find words since breakfast.",
                "Ischaemic stroke",
                Neurology,
            ),
            ("A 33-year-old woman lost sight in one eye and later had numb legs.", "Multiple sclerosis", Neurology),
            ("A 68-year-old man walks with small steps and his hand shakes at rest.", "Parkinson's disease", Neurology),
            (
                "A 26-year-old man has weak legs rising to the arms after a bout of diarrhoea.",
                "Guillain–Barré syndrome",
                Neurology,
            ),
            (
                "A 41-year-old woman has throbbing one-sided headaches with zigzag lines.",
                "Migraine with aura",
                Neurology,
            ),
            ("A 77-year-old woman gets lost in her street.", "Alzheimer dementia", Neurology),
            // Obstetrics & Gynecology.
            (
                "A 30-year-old woman in her 34th week has a pressure of 170/110 and sees spots.",
                "Severe pre-eclampsia",
                ObstetricsGynecology,
            ),
            (
                "A 22-year-old woman missed a period and has pain low on the left.",
                "Ectopic pregnancy",
                ObstetricsGynecology,
            ),
            (
                "A 45-year-old woman soaks pads; the womb is large and knobbly.",
                "Uterine leiomyoma",
                ObstetricsGynecology,
            ),
            (
                "A 16-year-old girl has never menstruated; the vagina ends blindly.",
                "Müllerian agenesis",
                ObstetricsGynecology,
            ),
            ("A 19-year-old woman has a frothy green vaginal discharge.", "Trichomoniasis", ObstetricsGynecology),
            (
                "A 28-year-old primigravida at 30 weeks' gestation has itching palms and painless vaginal bleeding.",
                "Not yet known",
                ObstetricsGynecology,
            ),
            // Psychiatry.
            (
                "A 21-year-old student hears voices and thinks his food is drugged.",
                "Schizophreniform disorder",
                Psychiatry,
            ),
            ("A 15-year-old girl diets, runs and counts calories; her weight is low.", "Anorexia nervosa", Psychiatry),
            ("A 38-year-old man has not slept for days and bought three cars.", "Bipolar I disorder", Psychiatry),
            ("A 34-year-old woman checks the stove forty times.", "Obsessive-compulsive disorder", Psychiatry),
            ("A 50-year-old widow has cried daily for four months.", "Major depressive disorder", Psychiatry),
            // Dermatology.
            ("A 37-year-old man has silvery plaques on both elbows.", "Psoriasis vulgaris", Dermatology),
            ("A 61-year-old sailor has a pearly bump beside the nose.", "Basal cell carcinoma", Dermatology),
            ("A 20-year-old woman has purple, flat, itchy bumps on the wrists.", "Lichen planus", Dermatology),
            ("A 55-year-old woman has flaccid blisters and sores in the mouth.", "Pemphigus vulgaris", Dermatology),
            // General Surgery.
            (
                "A 25-year-old man has pain that moved from the navel to the right lower quadrant.",
                "Acute appendicitis",
                GeneralSurgery,
            ),
            ("A 49-year-old woman has colic and fever after fatty meals.", "Acute cholecystitis", GeneralSurgery),
            (
                "A 67-year-old man has a bulge in the groin that no longer goes back.",
                "Incarcerated inguinal hernia",
                GeneralSurgery,
            ),
            ("An 80-year-old woman has a bloated abdomen and no flatus.", "Sigmoid volvulus", GeneralSurgery),
            // Urology.
            (
                "A 71-year-old man gets up five times a night to pass little urine.",
                "Benign prostatic hyperplasia",
                Urology,
            ),
            ("A 35-year-old man writhes with pain from flank to groin.", "Ureteral stone", Urology),
            ("A 23-year-old man has a hard lump in one testicle.", "Seminoma", Urology),
            ("A 64-year-old smoker has red urine without pain.", "Urothelial carcinoma of the bladder", Urology),
            // Ophthalmology.
            (
                "A 69-year-old woman has a painful red eye and sees rings around lamps.",
                "Acute angle-closure glaucoma",
                Ophthalmology,
            ),
            ("A 57-year-old man saw flashes, then a curtain.", "Retinal detachment", Ophthalmology),
            ("A 75-year-old man finds headlights dazzling; his lenses are cloudy.", "Senile cataract", Ophthalmology),
            // Otolaryngology.
            (
                "A 46-year-old woman has spells of spinning with a roaring, dull ear.",
                "Ménière’s disease",
                Otolaryngology,
            ),
            (
                "A 28-year-old man cannot open his mouth and speaks as with a hot potato.",
                "Peritonsillar abscess",
                Otolaryngology,
            ),
            ("A 53-year-old man has a slow lump before the ear.", "Parotid pleomorphic adenoma", Otolaryngology),
            // Orthopedic Surgery.
            ("An 82-year-old woman fell; her leg is short and turned out.", "Femoral neck fracture", OrthopedicSurgery),
            (
                "A 32-year-old skier felt a pop and the knee gives way.",
                "Anterior cruciate ligament tear",
                OrthopedicSurgery,
            ),
            ("A 43-year-old painter cannot lift the arm above the head.", "Rotator cuff tear", OrthopedicSurgery),
            // Rheumatology.
            ("A 48-year-old woman has stiff, swollen knuckles every morning.", "Rheumatoid arthritis", Rheumatology),
            ("A 59-year-old man wakes with a red-hot big toe.", "Gout", Rheumatology),
            (
                "A 27-year-old woman has a rash on both cheeks, sore joints and protein in the urine.",
                "Systemic lupus erythematosus",
                Rheumatology,
            ),
            // Cardiology.
            (
                "A 60-year-old man has tightness of the chest spreading to the jaw.",
                "Acute myocardial infarction",
                Cardiology,
            ),
            ("A 74-year-old man faints on stairs; a harsh murmur is heard.", "Aortic stenosis", Cardiology),
            ("A 65-year-old woman has an irregularly irregular pulse.", "Atrial fibrillation", Cardiology),
            // Hematology.
            ("A 70-year-old man has back pain, anemia and punched-out bones.", "Multiple myeloma", Hematology),
            ("A 39-year-old woman chews ice and is pale.", "Iron deficiency anaemia", Hematology),
            ("A 22-year-old man has a large neck node and itches after beer.", "Hodgkin lymphoma", Hematology),
        ]
    };

    #[test]
    fn invented_cases_go_where_they_belong() {
        assert!(INVENTED.len() >= 60);
        let mut wrong: Vec<String> = Vec::new();
        for &(vignette, diagnosis, expected) in INVENTED {
            let assignment = rules().assign(&fields(vignette, diagnosis));
            if assignment.specialty != expected {
                wrong.push(format!("{diagnosis}: expected {expected}, got {assignment:?}"));
            }
        }
        assert!(wrong.is_empty(), "{}", wrong.join("\n"));
    }

    #[test]
    fn evidence_names_the_words() {
        let vignette = "A 4-year-old girl is brought to the emergency department after she ingested antifreeze.";
        let assignment = rules().assign(&fields(vignette, "Ethylene glycol poisoning"));
        let mut lines = format!(
            "{} {} {:?} {}\n",
            assignment.specialty, assignment.score, assignment.runner_up, assignment.confident
        );
        for evidence in &assignment.evidence {
            let text = match evidence.field {
                Field::Diagnosis => "Ethylene glycol poisoning",
                _ => vignette,
            };
            lines += &format!(
                "{} | {} | {:?} | {} | {}\n",
                evidence.specialty,
                evidence.term,
                evidence.field,
                &text[evidence.range.clone()],
                evidence.weight
            );
        }
        expect![[r#"
            Emergency Medicine 120 Some((Pediatrics, 64)) true
            Emergency Medicine | ethylene glycol* | Diagnosis | Ethylene glycol | 50
            Emergency Medicine | poison* | Diagnosis | poisoning | 50
            Emergency Medicine | emergency_department_and_poison | Vignette | ingested | 45
            Emergency Medicine | emergency department | Vignette | emergency department | 5
            Emergency Medicine | ingested | Vignette | ingested | 5
            Emergency Medicine | antifreeze | Vignette | antifreeze | 5
            Pediatrics | age below 12 | Age | 4-year-old | 60
            Pediatrics | girl | Vignette | girl | 4
        "#]]
        .assert_eq(&lines);
    }

    #[test]
    fn nothing_found_is_the_default_and_says_so() {
        let assignment = rules().assign(&fields("A man of 40 is tired.", "Unknown"));
        assert_eq!((assignment.specialty, assignment.confident), (Specialty::InternalMedicine, false));
        let last = assignment.evidence.last().unwrap();
        assert_eq!((last.field, last.range.clone(), last.weight), (Field::Default, 0..0, 0));
        assert_eq!(last.term, "default: no specialty reached 20");
        assert_eq!(rules().assign(&Fields::default()).score, 0);
    }

    #[test]
    fn age_decides_between_child_and_adult() {
        let at = |age_years: Option<f64>| {
            rules()
                .assign(&Fields { age_years, ..fields("The patient has a murmur.", "Ventricular septal defect") })
                .specialty
        };
        assert_eq!(at(Some(2.0)), Specialty::Pediatrics);
        assert_eq!(at(Some(17.9)), Specialty::Pediatrics);
        assert_ne!(at(Some(18.0)), Specialty::Pediatrics);
        // Not known: the diagnosis is one of children.
        for unknown in [None, Some(f64::NAN), Some(f64::INFINITY), Some(-1.0)] {
            assert_eq!(at(unknown), Specialty::Pediatrics);
        }
    }

    #[test]
    fn age_is_read_from_the_vignette() {
        let age = |text: &str| Folded::new(text).age().map(|(years, range)| (years, text[range].to_owned()));
        assert_eq!(age("Seen: a 45‑year‑old man"), Some((45.0, "45‑year‑old".to_owned())));
        assert_eq!(age("A 6-month-old boy"), Some((0.5, "6-month-old".to_owned())));
        assert_eq!(age("60 yr male with pain"), Some((60.0, "60 yr male".to_owned())));
        assert_eq!(age("a 3 year history of pain"), None);
        assert_eq!(age("9999 years old"), None);
        assert_eq!(age("A four-year-old girl"), Some((4.0, "four-year-old".to_owned())));
        assert_eq!(age("A one-day-old of a 30-year-old"), Some((1.0 / 365.0, "one-day-old".to_owned())));
        assert_eq!(age("old"), None);
    }

    #[test]
    fn given_age_and_subject_count() {
        let plain = Fields { vignette: "The belly hurts.", diagnosis: "Unknown", ..Fields::default() };
        let assign = |age_years, subject| rules().assign(&Fields { age_years, subject, ..plain }).specialty;
        assert_eq!(assign(Some(5.0), None), Specialty::Pediatrics);
        assert_eq!(assign(Some(50.0), Some("Gynaecology & Obstetrics")), Specialty::ObstetricsGynecology);
        assert_eq!(assign(Some(50.0), Some("PATHOLOGY")), Specialty::Pathology);
        assert_eq!(assign(Some(50.0), Some("Radiology")), Specialty::DiagnosticRadiology);
        assert_eq!(assign(Some(50.0), Some("Anatomy")), Specialty::InternalMedicine);
    }

    #[test]
    fn question_about_tissue_is_pathology() {
        let assignment = rules().assign(&Fields {
            vignette: "A 50-year-old man died suddenly. The pathologist notes a bulky, waxy organ on cut section.",
            question: "What is the most likely histopathological diagnosis?",
            diagnosis: "Unknown",
            subject: Some("Pathology"),
            age_years: None,
        });
        assert_eq!(assignment.specialty, Specialty::Pathology);
    }

    #[test]
    fn pregnancy_of_the_mother_does_not_count_for_the_newborn() {
        let vignette = "A 3-day-old boy, born at 38 weeks' gestation to a gravida 2 after uncomplicated prenatal care.";
        assert_eq!(rules().assign(&fields(vignette, "Unknown")).specialty, Specialty::Pediatrics);
        let vignette = "A woman, pregnant, in labor at 38 weeks' gestation, gravida 2.";
        assert_eq!(rules().assign(&fields(vignette, "Unknown")).specialty, Specialty::ObstetricsGynecology);
    }

    #[test]
    fn words_match_whole_and_however_written() {
        let score = |diagnosis: &str| rules().assign(&fields("", diagnosis)).specialty;
        for diagnosis in ["Guillain-Barré", "GUILLAIN BARRE", "guillain\u{2013}barre\u{301} syndrome"] {
            assert_eq!(score(diagnosis), Specialty::Neurology, "{diagnosis}");
        }
        for diagnosis in ["Anaemia", "anæmia", "Leukaemias", "Haemolytic anemia"] {
            assert_eq!(score(diagnosis), Specialty::Hematology, "{diagnosis}");
        }
        assert_eq!(score("Brain tumours"), Specialty::Neurology);
        // "early", "penicillin" and "stable" only begin like terms.
        for diagnosis in ["Early something", "Penicillin", "Stable", "Analgesic", "Migout"] {
            assert_eq!(rules().assign(&fields("", diagnosis)).score, 0, "{diagnosis}");
        }
    }

    #[test]
    fn ranges_lie_in_the_text_that_was_written() {
        let diagnosis = "«Séver», fœtal — İstanbul; oesophageal\u{a0}tumour, ß, Crohn’s";
        let assignment = rules().assign(&fields("", diagnosis));
        let found: Vec<&str> = assignment
            .evidence
            .iter()
            .filter(|evidence| evidence.field == Field::Diagnosis)
            .map(|evidence| &diagnosis[evidence.range.clone()])
            .collect();
        assert!(found.contains(&"oesophageal") && found.contains(&"Crohn") && found.contains(&"fœtal"), "{found:?}");
    }

    #[test]
    fn names_and_ids_agree_with_serde() {
        for (index, specialty) in Specialty::ALL.into_iter().enumerate() {
            assert_eq!(specialty.index(), index);
            let name = serde_json::to_value(specialty).unwrap();
            assert_eq!(name, specialty.as_str());
            assert_eq!(serde_json::from_value::<Specialty>(name).unwrap(), specialty);
            assert!(specialty.id().bytes().all(|byte| byte.is_ascii_lowercase() || byte == b'_'));
        }
        let ids: std::collections::BTreeSet<&str> = Specialty::ALL.iter().map(|specialty| specialty.id()).collect();
        assert_eq!(ids.len(), 17);
        assert_eq!(rules().broader(Specialty::Cardiology), Specialty::InternalMedicine);
        assert_eq!(rules().broader(Specialty::Urology), Specialty::Urology);
    }

    #[test]
    fn equal_scores_follow_the_order() {
        let tied = fields("", "Psoriasis and gout");
        let assignment = rules().assign(&tied);
        assert_eq!((assignment.specialty, assignment.confident), (Specialty::Dermatology, false));
        assert_eq!(assignment.runner_up, Some((Specialty::Rheumatology, assignment.score)));
        let turned = RULES.replacen("\"Dermatology\",\n", "\n", 1).replacen(
            "\"Diagnostic Radiology\",\n]",
            "\"Diagnostic Radiology\", \"Dermatology\",\n]",
            1,
        );
        assert_eq!(SpecialtyRules::parse(&turned).unwrap().assign(&tied).specialty, Specialty::Rheumatology);
    }

    #[test]
    fn vignette_is_capped_and_evidence_too() {
        let vignette = "murmur, gallop, palpitation, orthopnea, chest pain, S3, S4, opening snap, ejection click, \
             troponin, BNP, friction rub, QRS, bounding pulse, cardiomegaly in a 50-year-old man";
        let assignment = rules().assign(&fields(vignette, "Depression"));
        assert_eq!(assignment.specialty, Specialty::Psychiatry);
        assert_eq!(assignment.runner_up, Some((Specialty::Cardiology, 40)));
        let assignment = rules().assign(&fields(vignette, "Unknown"));
        assert_eq!((assignment.specialty, assignment.score), (Specialty::Cardiology, 40));
        assert_eq!(assignment.evidence.len(), WINNER_EVIDENCE);
    }

    #[test]
    fn faulty_rules_are_refused() {
        let refused = |from: &str, to: &str| {
            assert!(RULES.contains(from), "{from}");
            SpecialtyRules::parse(&RULES.replacen(from, to, 1)).unwrap_err().to_string()
        };
        for (from, to, told) in [
            ("threshold = 20", "threshold = 20\nthreshhold = 3", "threshhold"),
            ("threshold = 20", "threshold = 0", "`threshold`"),
            ("version = 1", "version = 2", "`version`"),
            ("multipliers]", "multipliers]\nsubject = 1", "subject"),
            ("\"kawasaki*\", ", "\"kawasaki*\", \"Croup\", ", "not lower case"),
            (
                "\"kawasaki*\", ",
                "\"kawasaki*\", \"kawasaki*\", ",
                "`specialty[0].terms[0].terms`: `kawasaki*` is there twice",
            ),
            ("\"kawasaki*\", ", "\"kawasaki*\", \"kawa*saki\", ", "* may only"),
            ("\"kawasaki*\", ", "\"kawasaki*\", \" croup\", ", "spaces to spare"),
            ("\"kawasaki*\", ", "\"kawasaki*\", \"--\", ", "no letter or digit"),
            ("\"kawasaki*\", ", "\"kawasaki*\", \"blood pressure\", ", "ignored as well"),
            ("order = [\n  \"Pediatrics\", ", "order = [\n  ", "`order`: lacks Pediatrics"),
            ("order = [\n  \"Pediatrics\", ", "order = [\n  \"Pediatrics\", \"Pediatrics\", ", "twice"),
            ("order = [\n  \"Pediatrics\", ", "order = [\n  \"Paediatrics\", ", "Paediatrics"),
            ("below_years = 12", "below_years = 1", "age.bands[1].below_years"),
            ("min_age = 9", "minimum_age = 9", "minimum_age"),
            ("fields = [\"diagnosis\"]", "fields = [\"diagnosis\", \"diagnosis\"]", "names a text twice"),
            ("fields = [\"diagnosis\"]", "fields = [\"subject\"]", "subject"),
        ] {
            let error = refused(from, to);
            assert!(error.contains(told), "{told}: {error}");
        }
        assert!(SpecialtyRules::parse("").is_err());
    }

    #[test]
    fn long_texts_take_linear_time() {
        let sentence = "A man with chest pain, non-productive cough and weakness in the left arm was seen; ";
        let time = |length: usize| {
            let vignette: String = sentence.chars().cycle().take(length).collect();
            let mut best = std::time::Duration::MAX;
            for _ in 0..20 {
                let start = std::time::Instant::now();
                std::hint::black_box(rules().assign(&fields(&vignette, "Gout")));
                best = best.min(start.elapsed());
            }
            best
        };
        let (short, long) = (time(1_000), time(100_000));
        eprintln!("1 000 characters {short:?}, 100 000 characters {long:?}");
        assert!(long < 400 * short, "{short:?} {long:?}");
        // One word without end that terms begin.
        let word = format!("psychiatr{}", "a".repeat(100_000));
        let start = std::time::Instant::now();
        std::hint::black_box(rules().assign(&fields(&word, &word)));
        assert!(start.elapsed() < std::time::Duration::from_millis(200));
    }

    fn text() -> impl Strategy<Value = String> {
        let words = vec![
            "pregnant",
            "fœtal",
            "oedema",
            "murmur",
            "4-year-old",
            "emergency department",
            "overdose",
            "Ménière",
            "ae",
            "our",
            "\u{301}",
            "\u{200b}",
            "İ",
            "ß",
            "ﬁ",
            "𝒜",
            "s",
            "es",
            " ",
            "-",
            "’",
            "newborn",
            "psychiatr",
            "ou",
            "r",
        ];
        prop_oneof![
            any::<String>(),
            proptest::collection::vec(
                prop_oneof![proptest::sample::select(words).prop_map(str::to_owned), "\\PC{0,3}"],
                0..40
            )
            .prop_map(|parts| parts.concat()),
        ]
    }

    proptest! {
        #[test]
        fn any_text_is_safe(
            [vignette, question, diagnosis, subject] in [text(), text(), text(), text()],
            age in any::<f64>(),
        ) {
            let fields = Fields {
                vignette: &vignette,
                question: &question,
                diagnosis: &diagnosis,
                subject: Some(&subject),
                age_years: Some(age),
            };
            for fields in [fields, Fields { age_years: None, ..fields }] {
                let assignment = rules().assign(&fields);
                prop_assert_eq!(&assignment, &rules().assign(&fields));
                prop_assert!(!assignment.evidence.is_empty());
                for evidence in &assignment.evidence {
                    let text = match evidence.field {
                        Field::Diagnosis => &diagnosis,
                        Field::Question => &question,
                        Field::Subject => &subject,
                        Field::Vignette | Field::Age => &vignette,
                        Field::Default => "",
                    };
                    prop_assert!(text.get(evidence.range.clone()).is_some(), "{:?}", evidence);
                }
                let of_winner = assignment.evidence.iter().filter(|one| one.specialty == assignment.specialty).count();
                prop_assert!(of_winner <= WINNER_EVIDENCE);
                prop_assert!(assignment.evidence.len() <= WINNER_EVIDENCE + RUNNER_UP_EVIDENCE);
                if let Some((second, points)) = assignment.runner_up {
                    prop_assert!(second != assignment.specialty && points > 0);
                    let default = assignment.evidence.iter().any(|one| one.field == Field::Default);
                    prop_assert!(points <= assignment.score || default);
                }
            }
        }

        #[test]
        fn punctuation_and_case_do_not_matter(words in proptest::collection::vec("[a-z]{1,8}|[0-9]{1,3}", 0..30)) {
            let plain = words.join(" ");
            let dashed = format!("¡{}!", words.join(" \u{2014} ")).to_uppercase();
            let one = rules().assign(&Fields { vignette: &plain, diagnosis: &plain, ..Fields::default() });
            let other = rules().assign(&Fields { vignette: &dashed, diagnosis: &dashed, ..Fields::default() });
            prop_assert_eq!((one.specialty, one.score, one.runner_up), (other.specialty, other.score, other.runner_up));
        }
    }
}
