//! The word lists of the rule extractor (`pipelines/lexicon/slots.toml`) and their compiled patterns.

use super::grammar::Roles;
use super::patient::{Sex, Word};
use regex::Regex;
use serde::Deserialize;
use std::collections::{HashMap, HashSet};
use std::fmt::Write as _;
use std::ops::Range;

/// What is wrong with a lexicon.
#[derive(Debug, thiserror::Error)]
pub enum LexiconError {
    /// No TOML, an unknown or missing key, or a value of the wrong kind; the message names the key.
    #[error("slot lexicon: {0}")]
    Toml(#[from] toml::de::Error),
    #[error("slot lexicon: version: {0} is not known, it must be 1")]
    Version(u32),
    #[error("slot lexicon: {key}: the list is empty")]
    Empty { key: &'static str },
    #[error("slot lexicon: {key}: {term:?}: {problem}")]
    Term { key: &'static str, term: String, problem: &'static str },
    #[error("slot lexicon: {key}: {message}")]
    Pattern { key: &'static str, message: String },
}

/// Reads a lexicon section: one struct of word lists and one function that lists them by key.
macro_rules! sections {
    ($($name:ident $section:literal { $($list:ident),+ $(,)? })+) => {$(
        #[derive(Deserialize)]
        #[serde(deny_unknown_fields)]
        struct $name { $($list: Vec<String>),+ }

        impl $name {
            fn check(&self) -> Result<(), LexiconError> {
                $(check_terms(concat!($section, ".", stringify!($list)), &self.$list)?;)+
                Ok(())
            }
        }
    )+};
}

sections! {
    SexWords "sex" { male, female, adjectives, male_pronouns, female_pronouns }
    AgeWords "age" { units, number_words, stage_nouns, stage_adjectives, event_words }
    PersonWords "person" {
        male_kin, female_kin, other_kin, patients, professionals, phrase_ends, bring_verbs, birth_words,
    }
    ComplaintWords "complaint" {
        arrivals, openers, before_duration, anywhere, not_complaints, negations, bound_words,
    }
    TimeWords "time" { openers, qualifiers, vague_numbers, points }
    FindingWords "findings" { words, history, plans }
    ExaminationWords "examination" { cues, openings, subjects, states }
    LaboratoryWords "laboratory" { cues, suffixes, units }
    VitalSignWords "vital_signs" { cues, states }
    GrammarWords "grammar" {
        verbs, auxiliaries, adverbs, told_adverbs, pronouns, subordinators, telling, having, closed, places,
        directions, qualities, complaint_nouns, present_treatment,
    }
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct LexiconFile {
    version: u32,
    sex: SexWords,
    age: AgeWords,
    person: PersonWords,
    complaint: ComplaintWords,
    time: TimeWords,
    findings: FindingWords,
    examination: ExaminationWords,
    laboratory: LaboratoryWords,
    vital_signs: VitalSignWords,
    grammar: GrammarWords,
}

fn check_terms(key: &'static str, terms: &[String]) -> Result<(), LexiconError> {
    if terms.is_empty() {
        return Err(LexiconError::Empty { key });
    }
    let mut seen = HashSet::new();
    for term in terms {
        let problem = if term.trim().is_empty() {
            "the term is empty"
        } else if term.trim() != term || term.contains("  ") {
            "the term has surplus white space"
        } else if !term.is_ascii() || term.bytes().any(|byte| byte.is_ascii_uppercase() || byte.is_ascii_control()) {
            "the term must be lower-case ASCII"
        } else if !seen.insert(term.as_str()) {
            "the term is given twice"
        } else {
            continue;
        };
        return Err(LexiconError::Term { key, term: term.clone(), problem });
    }
    Ok(())
}

/// A checked lexicon with its compiled patterns. All patterns match folded text (lower-case ASCII).
pub struct SlotLexicon {
    pub(super) words: HashMap<String, Word>,
    pub(super) sex_adjectives: HashSet<String>,
    pub(super) ages: Regex,
    pub(super) bare_age: Regex,
    pub(super) late_age: Regex,
    pub(super) event_before: Regex,
    pub(super) birth_before: Regex,
    pub(super) brings: Regex,
    pub(super) people: Regex,
    pub(super) professionals: Regex,
    pub(super) arrivals: Regex,
    pub(super) openers: Regex,
    pub(super) before_duration: Regex,
    pub(super) anywhere: Regex,
    pub(super) not_complaints: Regex,
    pub(super) bound_before: Regex,
    pub(super) negated_before: Regex,
    pub(super) times: Regex,
    pub(super) finding_words: Regex,
    pub(super) history: Regex,
    pub(super) plans: Regex,
    pub(super) examination: Regex,
    pub(super) examination_openings: Regex,
    pub(super) subjects: Regex,
    pub(super) seen: Regex,
    pub(super) laboratory: Regex,
    pub(super) measured: Regex,
    pub(super) vital_signs: Regex,
    pub(super) states: Regex,
    pub(super) roles: HashMap<String, Roles>,
}

impl SlotLexicon {
    /// Reads a lexicon (TOML, version 1).
    ///
    /// # Errors
    /// The text is not TOML, a key is unknown or missing, a list is empty, or a term is empty, given twice in its
    /// list or not lower-case ASCII. The error names the key.
    pub fn parse(text: &str) -> Result<Self, LexiconError> {
        let file: LexiconFile = toml::from_str(text)?;
        if file.version != 1 {
            return Err(LexiconError::Version(file.version));
        }
        file.sex.check()?;
        file.age.check()?;
        file.person.check()?;
        file.complaint.check()?;
        file.time.check()?;
        file.findings.check()?;
        file.examination.check()?;
        file.laboratory.check()?;
        file.vital_signs.check()?;
        file.grammar.check()?;
        let LexiconFile { sex, age, person, complaint, time, findings, examination, laboratory, vital_signs, .. } =
            &file;

        let mut words = HashMap::new();
        // A later list overrules an earlier one.
        let lists = [
            (&person.phrase_ends, Word::PhraseEnd),
            (&person.patients, Word::Patient),
            (&age.stage_nouns, Word::StageNoun),
            (&age.stage_adjectives, Word::StageAdjective),
            (&person.other_kin, Word::Kin(None)),
            (&person.male_kin, Word::Kin(Some(Sex::Male))),
            (&person.female_kin, Word::Kin(Some(Sex::Female))),
            (&sex.male_pronouns, Word::Pronoun(Sex::Male)),
            (&sex.female_pronouns, Word::Pronoun(Sex::Female)),
            (&sex.male, Word::Sex(Sex::Male)),
            (&sex.female, Word::Sex(Sex::Female)),
        ];
        for (list, word) in lists {
            words.extend(list.iter().map(|term| (term.clone(), word)));
        }

        let sex_nouns = any(&[&sex.male, &sex.female]);
        let kin = any(&[&person.male_kin, &person.female_kin, &person.other_kin]);
        let people = any(&[
            &sex.male,
            &sex.female,
            &sex.male_pronouns,
            &sex.female_pronouns,
            &person.male_kin,
            &person.female_kin,
            &person.other_kin,
            &person.patients,
            &age.stage_nouns,
            &age.stage_adjectives,
        ]);
        let spelled = any(&[&age.number_words]);
        let figures = r"[0-9]{1,3}(?:\.[0-9]{1,2})?(?: [0-9]/[0-9])?";
        let number = format!(r"(?:{figures}|(?:{spelled})(?:[ -](?:{spelled}))?)(?:[ -]and[ -]a[ -]half)?");
        let range = format!(r"{number}(?:(?: ?- ?| to |-to-| or )(?:{number}))?");
        let unit = format!(r"(?:{})s?", any(&[&age.units]));
        let time_number = format!(r"(?:{range}|{})", any(&[&time.vague_numbers]));
        let qualifier = format!(r"(?:(?:{}) ){{0,3}}", any(&[&time.qualifiers]));
        // "for the past 3 weeks", "over the last hour", "for weeks"
        let qualified = format!(r"(?:(?:{}) ){{1,3}}", any(&[&time.qualifiers]));
        let amount = format!(r"(?:{qualified}(?:{time_number}[ -])?|{time_number}[ -]){qualifier}{unit}");
        let span = format!(
            r"(?:{}) (?:the )?(?:{amount}|(?:{})s)\b(?:'? duration\b| ago\b)?",
            any(&[&time.openers]),
            any(&[&age.units])
        );
        // "2-day history"
        let history =
            format!(r"{qualifier}{time_number}[ -]{{1,2}}{unit}'?[ -]{{1,2}}(?:history|duration|course|period)\b");
        // "3 days ago", "4 days of", "3 days' duration"
        let distance = format!(
            r"{qualifier}{time_number}[ -]{unit}(?: (?:ago|of|duration|earlier|prior|back)\b|'(?:s)? (?:of|duration)\b)"
        );
        // "twice", "up to 60 times a day", "about a week later", "during the spells"
        let count = format!(
            r"(?:up to )?(?:twice|(?:{time_number}|{spelled}) times)(?: (?:a|per|each|every) (?:{})| daily)?\b",
            any(&[&age.units])
        );
        let later = format!(
            r"(?:about |approximately |within |over the next )?(?:{time_number}[ -]{unit}|the next {unit}) (?:later|earlier)\b"
        );
        let next = format!(
            r"(?:over|during|in) the (?:next|following|previous|past|last) (?:few |several |{number} )?{unit}\b"
        );
        let part = r"(?:early )?(?:in|by|until|every|each|most|this) (?:the )?(?:early )?(?:morning|evening|afternoon|night|noon)s?\b|at (?:night|bedtime)\b|during (?:the|these|those) (?:spells|episodes|attacks|bouts)\b|between (?:the )?(?:spells|episodes|attacks|bouts)\b";
        let episodes = format!(r"(?:(?:{spelled}|{figures}) )?{number}[ -]{unit}[ -]episodes\b");
        // "2 episodes", "several similar episodes"
        let episodes =
            format!(r"(?:{episodes}|(?:{time_number}|{spelled}) (?:similar |previous |prior |such )?episodes\b)");
        let every = format!(r"every (?:{time_number}[ -])?{unit}\b");
        let lasted = format!(r"(?:last(?:s|ed|ing)?|takes) (?:for )?(?:{qualifier})?(?:{time_number}[ -]){unit}\b");
        let times = format!(
            r"\b(?:{lasted}|{episodes}|{next}|{later}|{span}|{history}|{distance}|{count}|{every}|{part}|(?:{})\b)",
            any(&[&time.points])
        );
        // "aged 45 years", "in her late 60s"
        let aged = format!(
            r"(?:aged?|in (?:his|her|their)(?: early| mid-?| middle| late)?) ?[0-9]{{1,3}}(?:'?s)?(?: {unit})?"
        );
        let compile = |key: &'static str, pattern: String| {
            Regex::new(&pattern).map_err(|error| LexiconError::Pattern { key, message: error.to_string() })
        };
        let list = |key: &'static str, terms: &Vec<String>| compile(key, format!(r"\b(?:{})\b", any(&[terms])));
        Ok(Self {
            ages: compile(
                "age.units",
                format!(
                    r"\b(?:{range}[ -]{{1,3}}{unit}[ -]{{1,3}}(?:old|of[ -]age)\b|[0-9]{{1,3}} ?(?:y/o\b|y\.o\.|yo\b))"
                ),
            )?,
            bare_age: compile("age.units", format!(r"\b({range}[ -]{unit})[ -]{{1,2}}(?:{sex_nouns})\b"))?,
            late_age: compile(
                "age.units",
                format!(r"^,? ?(?:({aged})|(?:on )?((?:day|week) of life [0-9]{{1,2}}))\b"),
            )?,
            event_before: compile(
                "age.event_words",
                format!(
                    r"\b(?:{})(?: the)?(?: age)?(?: of)?(?: (?:he|she|they|the [a-z]+))?(?: (?:was|were))? ?$",
                    any(&[&age.event_words])
                ),
            )?,
            birth_before: compile(
                "person.birth_words",
                format!(
                    r"\b(?:{})\b[^.;]{{0,90}} to (?:an?|the|his|her)(?: [a-z0-9-]+,?){{0,3}} $",
                    any(&[&person.birth_words])
                ),
            )?,
            brings: compile(
                "person.bring_verbs",
                format!(
                    r"\b(?:(is|was|are|were|being|been) )?(?:{})(?: in)? (?:his|her|their|the|an?)\b",
                    any(&[&person.bring_verbs])
                ),
            )?,
            people: compile("person", format!(r"\b(?:{people})\b"))?,
            professionals: list("person.professionals", &person.professionals)?,
            arrivals: list("complaint.arrivals", &complaint.arrivals)?,
            openers: list("complaint.openers", &complaint.openers)?,
            before_duration: list("complaint.before_duration", &complaint.before_duration)?,
            anywhere: list("complaint.anywhere", &complaint.anywhere)?,
            not_complaints: compile(
                "complaint.not_complaints",
                format!(r"\b(?:{}|{kin})\b", any(&[&complaint.not_complaints])),
            )?,
            bound_before: compile("complaint.bound_words", format!(r"\b(?:{}) $", any(&[&complaint.bound_words])))?,
            negated_before: compile(
                "complaint.negations",
                format!(r"\b(?:{})(?: [a-z]+)? $", any(&[&complaint.negations])),
            )?,
            times: compile("time", times)?,
            finding_words: list("findings.words", &findings.words)?,
            history: list("findings.history", &findings.history)?,
            plans: list("findings.plans", &findings.plans)?,
            examination: list("examination.cues", &examination.cues)?,
            examination_openings: compile(
                "examination.openings",
                format!(r"^(?:[a-z ]{{0,20}})?\b(?:{})\b", any(&[&examination.openings])),
            )?,
            subjects: compile(
                "examination.subjects",
                format!(r"^(?:(?:the|his|her|a|an|patient's|the patient's) )?(?:{})\b", any(&[&examination.subjects])),
            )?,
            seen: list("examination.states", &examination.states)?,
            laboratory: compile(
                "laboratory.cues",
                format!(r"\b(?:{}|[a-z-]+(?:{}))\b", any(&[&laboratory.cues]), any(&[&laboratory.suffixes])),
            )?,
            measured: compile(
                "laboratory.units",
                format!(r"\b20/[0-9]{{2,3}}\b|[0-9] ?(?:x ?10\^?[0-9]{{1,2}} ?)?(?:{})\b", any(&[&laboratory.units])),
            )?,
            vital_signs: list("vital_signs.cues", &vital_signs.cues)?,
            states: list("vital_signs.states", &vital_signs.states)?,
            sex_adjectives: sex.adjectives.iter().cloned().collect(),
            roles: roles(&file),
            words,
        })
    }
}

/// What the grammar knows of every word it lists.
fn roles(file: &LexiconFile) -> HashMap<String, Roles> {
    let grammar = &file.grammar;
    let lists = [
        (&grammar.verbs, Roles::VERB),
        (&grammar.auxiliaries, Roles::AUXILIARY),
        (&grammar.adverbs, Roles::ADVERB),
        (&grammar.told_adverbs, Roles::TOLD),
        (&grammar.pronouns, Roles::PRONOUN),
        (&grammar.subordinators, Roles::SUBORDINATOR),
        (&grammar.telling, Roles::TELLING),
        (&grammar.having, Roles::HAVING),
        (&grammar.closed, Roles::CLOSED),
        (&grammar.places, Roles::PLACE),
        (&grammar.directions, Roles::DIRECTION),
        (&grammar.qualities, Roles::QUALITY),
        (&grammar.complaint_nouns, Roles::COMPLAINT),
        (&grammar.present_treatment, Roles::TREATMENT),
        (&file.person.male_kin, Roles::KIN),
        (&file.person.female_kin, Roles::KIN),
        (&file.person.other_kin, Roles::KIN),
        (&file.complaint.arrivals, Roles::ARRIVAL),
    ];
    let mut roles: HashMap<String, Roles> = HashMap::new();
    for (list, role) in lists {
        for word in list {
            let known = roles.entry(word.clone()).or_default();
            *known = known.with(role);
        }
    }
    roles
}

/// An alternation of all terms, the longest first.
fn any(lists: &[&Vec<String>]) -> String {
    let mut terms: Vec<&String> = lists.iter().copied().flatten().collect();
    terms.sort_by(|a, b| b.len().cmp(&a.len()).then(a.cmp(b)));
    terms.dedup();
    let mut pattern = String::new();
    for (index, term) in terms.iter().enumerate() {
        let bar = if index == 0 { "" } else { "|" };
        let _ = write!(pattern, "{bar}{}", regex::escape(term).replace(' ', r"[ \n]"));
    }
    pattern
}
impl SlotLexicon {
    /// The words of a folded text: runs of letters and digits. A hyphen parts words that the lexicon does not hold as
    /// one ("middle-aged"); a possessive ending belongs to no word.
    pub(super) fn words<'a>(&'a self, text: &'a str) -> impl Iterator<Item = Range<usize>> + 'a {
        let mut at = 0;
        std::iter::from_fn(move || {
            let start = at + text.get(at..)?.find(|character: char| character.is_ascii_alphanumeric())?;
            let rest = text.get(start..)?;
            let length = |in_word: fn(char) -> bool| rest.find(|character| !in_word(character)).unwrap_or(rest.len());
            let plain = length(|character| character.is_ascii_alphanumeric());
            let compound = length(|character| character.is_ascii_alphanumeric() || character == '-');
            let is_held = rest.get(..compound).is_some_and(|word| self.words.contains_key(word));
            let end = start + if is_held { compound } else { plain };
            at = end + if text.get(end..).is_some_and(|after| after.starts_with("'s")) { 2 } else { 0 };
            Some(start..end)
        })
    }

    pub(super) fn is_finding(&self, sentence: &str) -> bool {
        let has_digit = || sentence.bytes().any(|byte| byte.is_ascii_digit());
        if self.measured.is_match(sentence) {
            return true;
        }
        if self.vital_signs.is_match(sentence)
            && (has_digit() || self.states.is_match(sentence))
            && !self.history.is_match(sentence)
        {
            return true;
        }
        if self.examination_openings.is_match(sentence) {
            return true;
        }
        if self.history.is_match(sentence) || !self.finding_words.is_match(sentence) {
            return false;
        }
        self.examination.is_match(sentence) || (self.laboratory.is_match(sentence) && !self.plans.is_match(sentence))
    }

    /// Whether a sentence goes on with the findings before it.
    pub(super) fn goes_on(&self, sentence: &str) -> bool {
        sentence.contains('\n')
            || ((self.subjects.is_match(sentence) || self.seen.is_match(sentence)) && !self.history.is_match(sentence))
    }
}
