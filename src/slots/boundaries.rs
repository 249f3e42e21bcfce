//! Values that stand in the wrong slot of a record.
//!
//! The annotators of MedRoundsQA correct "information placed in the wrong field" (appendix G, rule 2) and enforce slot
//! boundaries in the normalisation pass (section 3.1). These rules find what can be found from the value alone, by its
//! words; where a value belongs is defined by the paper's Table 6 and, where that leaves a choice, by
//! `data/references/README.md`. A value that also says what its slot asks for is never called misplaced.

use crate::record::slots::Slot;
use regex::Regex;
use serde::Deserialize;
use std::collections::{HashMap, HashSet};
use std::ops::Range;
use std::sync::LazyLock;

/// The version of the drug file this module reads.
const VERSION: u32 = 1;
/// Letters that must stand before a stem for a word to be a drug.
const BEFORE_STEM: usize = 2;
/// Longest descriptor of a symptom, in characters, that is not reported.
const MAX_DESCRIPTOR: usize = 80;

/// What is wrong with a drug file.
#[derive(Debug, thiserror::Error)]
pub enum DrugsError {
    /// No TOML, an unknown or missing key, or a value of the wrong kind; the message names the key.
    #[error("drugs: {0}")]
    Toml(#[from] toml::de::Error),
    /// The file is written in another format.
    #[error("drugs: version: {0} is not known, it must be {VERSION}")]
    Version(u32),
    /// A list without entries.
    #[error("drugs: {key}: the list is empty")]
    Empty {
        /// Its dotted path.
        key: &'static str,
    },
    /// A term that cannot be used.
    #[error("drugs: {key}: {term:?}: {problem}")]
    Term {
        /// The dotted path of its list.
        key: &'static str,
        /// The term as given.
        term: String,
        /// What is wrong with it.
        problem: &'static str,
    },
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct DrugsFile {
    version: u32,
    generic: Vec<String>,
    brand: Vec<String>,
    class: Vec<String>,
    stems: Vec<String>,
    exceptions: Vec<String>,
}

/// A value that belongs elsewhere.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Misplaced {
    /// A name of [`RULES`].
    pub rule: &'static str,
    /// The slot where the value belongs; nothing where only a person can tell.
    pub better: Option<Slot>,
    /// The value says nothing but what `better` asks for, so that it may be moved without a person. What is not certain
    /// is for review only.
    pub certain: bool,
}

/// The slot boundaries. Made from a file with the names of drugs, see `pipelines/lexicon/drugs.toml`.
#[derive(Debug)]
pub struct BoundaryRules {
    /// Names as sequences of words, by their first word, longest first.
    names: HashMap<String, Vec<Vec<String>>>,
    /// Stems by their last three letters.
    stems: HashMap<[u8; 3], Vec<String>>,
    exceptions: HashSet<String>,
}

impl BoundaryRules {
    /// Reads and checks a drug file.
    ///
    /// # Errors
    /// An unknown or missing key; a term that is not lower-case ASCII or that is given twice, in the same list or in
    /// two; a stem of fewer than three letters; an exception that no stem would find.
    pub fn parse(drugs_toml: &str) -> Result<Self, DrugsError> {
        let file: DrugsFile = toml::from_str(drugs_toml)?;
        if file.version != VERSION {
            return Err(DrugsError::Version(file.version));
        }
        let mut rules = Self { names: HashMap::new(), stems: HashMap::new(), exceptions: HashSet::new() };
        let mut seen = HashSet::new();
        for (key, terms) in [("generic", &file.generic), ("brand", &file.brand), ("class", &file.class)] {
            check_terms(key, terms, |byte| byte.is_ascii_digit() || matches!(byte, b' ' | b'-'))?;
            for term in terms {
                let words: Vec<String> = words(term).map(|(_, word)| word.to_owned()).collect();
                if !seen.insert(words.clone()) {
                    return Err(DrugsError::Term { key, term: term.clone(), problem: "the term is given twice" });
                }
                if let Some(first) = words.first() {
                    rules.names.entry(first.clone()).or_default().push(words);
                }
            }
        }
        for names in rules.names.values_mut() {
            names.sort_by_key(|words| std::cmp::Reverse(words.len()));
        }
        check_terms("stems", &file.stems, |_| false)?;
        check_terms("exceptions", &file.exceptions, |_| false)?;
        for stem in file.stems {
            let Some(last) = stem.as_bytes().last_chunk::<3>().copied() else {
                return Err(DrugsError::Term { key: "stems", term: stem, problem: "the stem is too short" });
            };
            rules.stems.entry(last).or_default().push(stem);
        }
        for exception in file.exceptions {
            if !rules.ends_like_drug(&exception) {
                let problem = "no stem would find the word";
                return Err(DrugsError::Term { key: "exceptions", term: exception, problem });
            }
            rules.exceptions.insert(exception);
        }
        Ok(rules)
    }

    /// What [`RULES`] say of a value: the first rule that is certain, else the first that is not, in their order.
    pub fn check(&self, slot: Slot, value: &str) -> Option<Misplaced> {
        let text = fold(value);
        if text.is_empty() {
            return None;
        }
        let value = Value { slot, text: &text, lexicon: self };
        let mut uncertain = None;
        for rule in RULES.iter().filter(|rule| rule.slots.contains(&slot)) {
            let Some(Verdict { better, certain }) = (rule.judge)(&value) else { continue };
            let misplaced = Misplaced { rule: rule.name, better, certain };
            if certain {
                return Some(misplaced);
            }
            uncertain = uncertain.or(Some(misplaced));
        }
        uncertain
    }

    /// Is the text, white space around it aside, the name of one drug or group of drugs? Expects lower case.
    pub fn is_drug(&self, text: &str) -> bool {
        let text = text.trim();
        !text.is_empty() && matches!(self.find_drugs(text).as_slice(), [only] if *only == (0..text.len()))
    }

    /// The names of drugs and groups of drugs in a lower-case text: byte ranges in the order of the text, not
    /// overlapping, from word boundary to word boundary, the longest name at each place. Linear in the length of the
    /// text.
    pub fn find_drugs(&self, text: &str) -> Vec<Range<usize>> {
        let mut found = Vec::new();
        let mut rest = words(text);
        while let Some((start, word)) = rest.next() {
            let named = self.names.get(word).and_then(|names| {
                names.iter().find_map(|name| {
                    let mut ahead = rest.clone();
                    let mut end = start + word.len();
                    for expected in name.iter().skip(1) {
                        let (next_start, next) = ahead.next()?;
                        let is_joined = matches!(text.get(end..next_start), Some(" " | "-" | "/"));
                        if next != expected || !is_joined {
                            return None;
                        }
                        end = next_start + next.len();
                    }
                    Some((end, ahead))
                })
            });
            if let Some((end, ahead)) = named {
                found.push(start..end);
                rest = ahead;
            } else if self.ends_like_drug(word) && !self.exceptions.contains(word) {
                found.push(start..start + word.len());
            }
        }
        found
    }

    fn ends_like_drug(&self, word: &str) -> bool {
        let Some(last) = word.as_bytes().last_chunk::<3>() else { return false };
        self.stems.get(last).is_some_and(|stems| {
            stems.iter().any(|stem| word.len() >= stem.len() + BEFORE_STEM && word.ends_with(stem.as_str()))
        })
    }
}

fn check_terms(key: &'static str, terms: &[String], may_hold: impl Fn(u8) -> bool) -> Result<(), DrugsError> {
    if terms.is_empty() {
        return Err(DrugsError::Empty { key });
    }
    let mut seen = HashSet::new();
    for term in terms {
        let problem = if term.trim().is_empty() {
            "the term is empty"
        } else if term.trim() != term || term.contains("  ") {
            "the term has surplus white space"
        } else if !term.bytes().all(|byte| byte.is_ascii_lowercase() || may_hold(byte)) {
            "the term must be lower-case ASCII"
        } else if !seen.insert(term) {
            "the term is given twice"
        } else {
            continue;
        };
        return Err(DrugsError::Term { key, term: term.clone(), problem });
    }
    Ok(())
}

/// The runs of letters and digits of a text, with their first byte.
fn words(text: &str) -> impl Iterator<Item = (usize, &str)> + Clone {
    let mut position = 0;
    text.split(|c: char| !c.is_alphanumeric()).filter_map(move |word| {
        let start = position;
        position = start + word.len();
        position += text.get(position..).and_then(|rest| rest.chars().next()).map_or(0, char::len_utf8);
        (!word.is_empty()).then_some((start, word))
    })
}

/// Lower case, plain quotes and dashes, single spaces, no punctuation at the end.
fn fold(value: &str) -> String {
    let mut folded = String::with_capacity(value.len());
    for character in value.chars() {
        match character {
            '’' | '‘' | '′' => folded.push('\''),
            '‐'..='―' | '−' => folded.push('-'),
            'μ' => folded.push('µ'),
            _ if character.is_whitespace() => {
                if !folded.is_empty() && !folded.ends_with(' ') {
                    folded.push(' ');
                }
            }
            _ => folded.push(character.to_ascii_lowercase()),
        }
    }
    folded.truncate(folded.trim_end_matches(['.', ',', ';', ' ']).len());
    folded
}

// The rules ----------------------------------------------------------------------------------------------------------

/// One boundary between slots.
pub struct Rule {
    /// As reported in [`Misplaced::rule`].
    pub name: &'static str,
    /// What is misplaced, and what is not.
    pub summary: &'static str,
    /// The slots whose values are looked at.
    pub slots: &'static [Slot],
    judge: fn(&Value<'_>) -> Option<Verdict>,
}

/// A folded value.
struct Value<'a> {
    slot: Slot,
    text: &'a str,
    lexicon: &'a BoundaryRules,
}

struct Verdict {
    better: Option<Slot>,
    certain: bool,
}

impl Verdict {
    fn certain(better: Slot) -> Option<Self> {
        Some(Self { better: Some(better), certain: true })
    }

    fn uncertain(better: Slot) -> Option<Self> {
        Some(Self { better: Some(better), certain: false })
    }

    fn certain_if(certain: bool, better: Slot) -> Option<Self> {
        Some(Self { better: Some(better), certain })
    }
}

const DESCRIPTORS: &[Slot] = &[
    Slot::SymptomTime,
    Slot::SymptomPosition,
    Slot::SymptomDegree,
    Slot::SymptomColor,
    Slot::SymptomShape,
    Slot::SymptomTexture,
    Slot::SymptomSmell,
];
const SYMPTOMS: &[Slot] = &[
    Slot::SymptomName,
    Slot::SymptomTime,
    Slot::SymptomPosition,
    Slot::SymptomDegree,
    Slot::SymptomColor,
    Slot::SymptomShape,
    Slot::SymptomTexture,
    Slot::SymptomSmell,
];
const HISTORIES: &[Slot] = &[Slot::PastDiagnosis, Slot::PastMedication, Slot::ReceivingTreatment];

/// Every rule, in the order in which they are asked.
pub const RULES: &[Rule] = &[
    Rule {
        name: "age_in_weight",
        summary: "an age in Personal-Weight, unless a weight, height or percentile is given with it",
        slots: &[Slot::PersonalWeight],
        judge: |value| {
            (value.says(&AGE) && !value.says(&BODY_SIZE))
                .then(|| Verdict::certain_if(value.says(&ONLY_AGE), Slot::PersonalAge))?
        },
    },
    Rule {
        name: "age_in_sex",
        summary: "an age in Personal-Sex",
        slots: &[Slot::PersonalSex],
        judge: |value| value.says(&AGE).then(|| Verdict::certain_if(value.says(&ONLY_AGE), Slot::PersonalAge))?,
    },
    Rule {
        name: "weight_in_age",
        summary: "a weight, height or body mass index in Personal-Age or Personal-Sex; certain without an age",
        slots: &[Slot::PersonalAge, Slot::PersonalSex],
        judge: |value| {
            value
                .says(&BODY_SIZE)
                .then(|| Verdict::certain_if(!value.says(&AGE) && !value.says(&SEX_WORD), Slot::PersonalWeight))?
        },
    },
    Rule {
        name: "sex_in_age",
        summary: "a word for the sex in Personal-Age or Personal-Weight; certain if nothing else is said",
        slots: &[Slot::PersonalAge, Slot::PersonalWeight],
        judge: |value| value.says(&SEX_WORD).then(|| Verdict::certain_if(value.says(&ONLY_SEX), Slot::PersonalSex))?,
    },
    Rule {
        name: "department_elsewhere",
        summary: "nothing but the name of a department",
        slots: &[
            Slot::SymptomName,
            Slot::SymptomTime,
            Slot::SymptomPosition,
            Slot::SymptomDegree,
            Slot::SymptomColor,
            Slot::SymptomShape,
            Slot::SymptomTexture,
            Slot::SymptomSmell,
            Slot::PhysicalChange,
            Slot::MedicalExamination,
            Slot::PersonalAge,
            Slot::PersonalSex,
            Slot::PersonalWeight,
            Slot::PastDiagnosis,
            Slot::PastMedication,
            Slot::TraumaSurgery,
            Slot::AllergicHistory,
            Slot::Preventive,
            Slot::FamilyHistory,
            Slot::ContactHistory,
            Slot::HabitTobacco,
            Slot::HabitWine,
            Slot::HabitDrug,
            Slot::HabitLiving,
            Slot::CoitusHistory,
            Slot::ReceivingTreatment,
            Slot::AdditionalNotes,
        ],
        judge: |value| {
            let found = DEPARTMENT.captures(value.text)?;
            Verdict::certain_if(found.name("arrival").is_none(), Slot::Department)
        },
    },
    Rule {
        name: "drug_in_allergies",
        summary: "a drug in Allergic-History without a word for an allergy; certain if a dose or its use is said",
        slots: &[Slot::AllergicHistory],
        judge: |value| {
            (!value.drugs().is_empty() && !value.says(&ALLERGY_WORD) && !value.says(&REACTION))
                .then(|| Verdict::certain_if(value.says(&DOSE_OR_USE), Slot::PastMedication))?
        },
    },
    Rule {
        name: "allergy_elsewhere",
        summary: "an allergy told in Past-Medication, Past-Diagnosis or Receiving-Treatment; not the treatment of one",
        slots: HISTORIES,
        judge: |value| {
            if !value.says(&ALLERGY) || value.says(&ALLERGY_TREATED) {
                return None;
            }
            match value.slot {
                // "takes no medications and has no allergies" says both.
                Slot::PastMedication | Slot::ReceivingTreatment if value.says(&MEDICATION_TOLD) => None,
                _ => Verdict::certain_if(value.says(&ONLY_ALLERGY), Slot::AllergicHistory),
            }
        },
    },
    Rule {
        name: "vaccination_elsewhere",
        summary: "vaccination status outside Preventive; not what happened after a vaccination",
        slots: &[
            Slot::SymptomName,
            Slot::PastDiagnosis,
            Slot::PastMedication,
            Slot::TraumaSurgery,
            Slot::ContactHistory,
            Slot::HabitLiving,
            Slot::ReceivingTreatment,
            Slot::AdditionalNotes,
        ],
        judge: |value| {
            if !value.says(&VACCINE) || value.says(&AFTER_VACCINE) || !value.drugs().is_empty() {
                return None;
            }
            let is_history = matches!(value.slot, Slot::PastDiagnosis | Slot::PastMedication | Slot::HabitLiving);
            Verdict::certain_if(is_history && value.says(&ONLY_VACCINE), Slot::Preventive)
        },
    },
    Rule {
        name: "operation_elsewhere",
        summary: "an operation in Past-Medication or Past-Diagnosis; certain if it is all that is said",
        slots: &[Slot::PastMedication, Slot::PastDiagnosis],
        judge: |value| {
            if !value.says(&OPERATION) || !value.drugs().is_empty() {
                return None;
            }
            match value.slot {
                Slot::PastMedication if value.says(&MEDICATION_WORD) => None,
                _ => Verdict::certain_if(value.says(&ONLY_OPERATION), Slot::TraumaSurgery),
            }
        },
    },
    Rule {
        name: "diagnosis_in_medication",
        summary: "a disease in Past-Medication without a drug; certain if it is a common disease and nothing else",
        slots: &[Slot::PastMedication],
        judge: |value| {
            (value.says(&DISEASE) && value.drugs().is_empty() && !value.says(&MEDICATION_WORD))
                .then(|| Verdict::certain_if(value.says(&ONLY_DISEASE), Slot::PastDiagnosis))?
        },
    },
    Rule {
        name: "drug_in_diagnosis",
        summary: "drugs or a list of them in Past-Diagnosis or Symptom-Name; certain for a diagnosis of drugs only",
        slots: &[Slot::PastDiagnosis, Slot::SymptomName],
        judge: |value| {
            let is_diagnosis = value.slot == Slot::PastDiagnosis;
            if value.holds_only_drugs() {
                return Verdict::certain_if(is_diagnosis, Slot::PastMedication);
            }
            let is_told = value.says(&MEDICATION_LIST) || value.says(&DOSE_OR_USE) && !value.drugs().is_empty();
            (is_diagnosis && is_told).then(|| Verdict::uncertain(Slot::PastMedication))?
        },
    },
    Rule {
        name: "family_elsewhere",
        summary: "what a relative has or had, outside Family-History; not what a relative reports",
        slots: &[Slot::PastDiagnosis, Slot::SymptomName, Slot::TraumaSurgery, Slot::HabitLiving, Slot::AdditionalNotes],
        judge: |value| {
            if value.says(&FAMILY_HISTORY) {
                return Verdict::certain(Slot::FamilyHistory);
            }
            if !value.says(&KIN_HAS) || value.says(&KIN_REPORTS) {
                return None;
            }
            if value.says(&CONTAGION) {
                return Verdict::uncertain(Slot::ContactHistory);
            }
            let certain = value.says(&STARTS_WITH_KIN)
                && !value.says(&PREGNANCY)
                && matches!(value.slot, Slot::PastDiagnosis | Slot::SymptomName);
            Verdict::certain_if(certain, Slot::FamilyHistory)
        },
    },
    Rule {
        name: "tobacco_elsewhere",
        summary: "smoking outside Habit-Tobacco, unless the value also says what its slot asks for",
        slots: &[Slot::HabitWine, Slot::HabitDrug, Slot::HabitLiving, Slot::PastDiagnosis, Slot::PastMedication],
        judge: |value| value.habit(Slot::HabitTobacco),
    },
    Rule {
        name: "alcohol_elsewhere",
        summary: "drinking outside Habit-Wine, unless the value also says what its slot asks for",
        slots: &[Slot::HabitTobacco, Slot::HabitDrug, Slot::HabitLiving, Slot::PastDiagnosis, Slot::PastMedication],
        judge: |value| value.habit(Slot::HabitWine),
    },
    Rule {
        name: "drug_use_elsewhere",
        summary: "illicit drugs outside Habit-Drug, unless the value also says what its slot asks for",
        slots: &[Slot::HabitTobacco, Slot::HabitWine, Slot::HabitLiving],
        judge: |value| value.habit(Slot::HabitDrug),
    },
    Rule {
        name: "sexual_activity_elsewhere",
        summary: "sexual activity in a habit or contact slot",
        slots: &[Slot::HabitTobacco, Slot::HabitWine, Slot::HabitDrug, Slot::HabitLiving, Slot::ContactHistory],
        judge: |value| {
            if !value.says(&SEXUAL) {
                return None;
            }
            match value.slot {
                Slot::ContactHistory => Verdict::uncertain(Slot::CoitusHistory),
                _ => value.habit(Slot::CoitusHistory),
            }
        },
    },
    Rule {
        name: "measurement_in_symptom",
        summary: "a vital sign or laboratory value in a Symptom slot; a temperature may be the patient's own",
        slots: SYMPTOMS,
        judge: |value| {
            if value.says(&MEASURED) {
                return Verdict::certain(Slot::MedicalExamination);
            }
            value.says(&TEMPERATURE).then(|| Verdict::uncertain(Slot::MedicalExamination))?
        },
    },
    Rule {
        name: "examination_in_symptom",
        summary: "a statement of an examination or a test in Symptom-Name",
        slots: &[Slot::SymptomName],
        judge: |value| value.says(&EXAMINATION).then(|| Verdict::uncertain(Slot::MedicalExamination))?,
    },
    Rule {
        name: "denied_in_symptom",
        summary: "a denied symptom in Symptom-Name",
        slots: &[Slot::SymptomName],
        judge: |value| value.says(&DENIED).then(|| Verdict::uncertain(Slot::AdditionalNotes))?,
    },
    Rule {
        name: "time_elsewhere",
        summary: "nothing but a duration, an onset or a frequency; a mere course (\"chronic\") is not certain",
        slots: &[
            Slot::SymptomName,
            Slot::SymptomPosition,
            Slot::SymptomDegree,
            Slot::SymptomColor,
            Slot::SymptomShape,
            Slot::SymptomTexture,
            Slot::SymptomSmell,
            Slot::PhysicalChange,
        ],
        judge: |value| {
            if value.says(&ONLY_TIME) {
                return Verdict::certain(Slot::SymptomTime);
            }
            value.says(&ONLY_COURSE).then(|| Verdict::uncertain(Slot::SymptomTime))?
        },
    },
    Rule {
        name: "color_elsewhere",
        summary: "nothing but colours",
        slots: &[
            Slot::SymptomName,
            Slot::SymptomTime,
            Slot::SymptomPosition,
            Slot::SymptomDegree,
            Slot::SymptomShape,
            Slot::SymptomTexture,
            Slot::SymptomSmell,
        ],
        judge: |value| value.consists_of(&COLORS).then(|| Verdict::certain(Slot::SymptomColor))?,
    },
    Rule {
        name: "shape_elsewhere",
        summary: "nothing but the form of a finding; Symptom-Name may be \"rash\"",
        slots: &[Slot::SymptomTime, Slot::SymptomDegree, Slot::SymptomColor, Slot::SymptomTexture, Slot::SymptomSmell],
        judge: |value| value.consists_of(&SHAPES).then(|| Verdict::certain(Slot::SymptomShape))?,
    },
    Rule {
        name: "texture_elsewhere",
        summary: "nothing but a consistency",
        slots: &[
            Slot::SymptomName,
            Slot::SymptomTime,
            Slot::SymptomPosition,
            Slot::SymptomDegree,
            Slot::SymptomColor,
            Slot::SymptomShape,
            Slot::SymptomSmell,
        ],
        judge: |value| value.consists_of(&TEXTURES).then(|| Verdict::certain(Slot::SymptomTexture))?,
    },
    Rule {
        name: "smell_elsewhere",
        summary: "nothing but an odour",
        slots: &[
            Slot::SymptomName,
            Slot::SymptomTime,
            Slot::SymptomPosition,
            Slot::SymptomDegree,
            Slot::SymptomColor,
            Slot::SymptomShape,
            Slot::SymptomTexture,
        ],
        judge: |value| value.consists_of(&SMELLS).then(|| Verdict::certain(Slot::SymptomSmell))?,
    },
    Rule {
        name: "degree_elsewhere",
        summary: "nothing but a severity",
        slots: &[
            Slot::SymptomName,
            Slot::SymptomTime,
            Slot::SymptomPosition,
            Slot::SymptomColor,
            Slot::SymptomShape,
            Slot::SymptomTexture,
            Slot::SymptomSmell,
        ],
        judge: |value| {
            (value.consists_of(&DEGREES) || value.says(&ONLY_SCORE)).then(|| Verdict::certain(Slot::SymptomDegree))?
        },
    },
    Rule {
        name: "position_elsewhere",
        summary: "nothing but a part of the body; in Symptom-Name not certain, something may be wrong with it",
        slots: &[
            Slot::SymptomName,
            Slot::SymptomTime,
            Slot::SymptomDegree,
            Slot::SymptomColor,
            Slot::SymptomShape,
            Slot::SymptomTexture,
            Slot::SymptomSmell,
        ],
        judge: |value| {
            value
                .consists_of(&BODY_PARTS)
                .then(|| Verdict::certain_if(value.slot != Slot::SymptomName, Slot::SymptomPosition))?
        },
    },
    Rule {
        name: "long_descriptor",
        summary: "a descriptor of a symptom that is as long as a sentence; where it belongs is not said",
        slots: DESCRIPTORS,
        judge: |value| {
            (value.text.chars().count() > MAX_DESCRIPTOR).then_some(Verdict { better: None, certain: false })
        },
    },
];

impl Value<'_> {
    fn says(&self, pattern: &Regex) -> bool {
        pattern.is_match(self.text)
    }

    fn drugs(&self) -> Vec<Range<usize>> {
        self.lexicon.find_drugs(self.text)
    }

    /// Does nothing but drugs with doses, times and the words around them stand here?
    fn holds_only_drugs(&self) -> bool {
        let mut end_of_drug = 0;
        for drug in self.drugs() {
            if !self.text.get(end_of_drug..drug.start).is_some_and(is_around_drugs) {
                return false;
            }
            end_of_drug = drug.end;
        }
        end_of_drug > 0 && self.text.get(end_of_drug..).is_some_and(is_around_drugs)
    }

    /// Are all words of a class, apart from words that join and grade, and is at least one of it?
    fn consists_of(&self, class: &WordClass) -> bool {
        let mut any = false;
        for (_, word) in words(self.text) {
            if class.contains(word) {
                any = true;
            } else if !JOINING.contains(word) {
                return false;
            }
        }
        any
    }

    /// A habit that belongs to `better`, told in the slot of another.
    fn habit(&self, better: Slot) -> Option<Verdict> {
        let said = self.habits();
        if !said.contains(&better) || said.contains(&self.slot) {
            return None;
        }
        match self.slot {
            // A disease that holds the word ("alcohol use disorder") is a diagnosis, a drug a medication.
            Slot::PastDiagnosis | Slot::PastMedication => {
                let is_own = self.says(&DISEASE) || self.says(&MEDICATION_WORD) || !self.drugs().is_empty();
                (!is_own && self.says(&HABIT_VERB)).then(|| Verdict::uncertain(better))?
            }
            // Two habits in the slot of a third: the value must be cut.
            _ => Verdict::certain_if(said.len() == 1, better),
        }
    }

    /// The habit slots whose words are said.
    fn habits(&self) -> Vec<Slot> {
        let mut said = Vec::new();
        if self.says(&TOBACCO) && !self.says(&OTHER_SMOKE) || self.says(&TOBACCO_NAMED) {
            said.push(Slot::HabitTobacco);
        }
        if self.says(&ALCOHOL) || self.says(&DRINKING) && !self.says(&OTHER_DRINK) {
            said.push(Slot::HabitWine);
        }
        if self.says(&ILLICIT) {
            said.push(Slot::HabitDrug);
        }
        if self.says(&SEXUAL) {
            said.push(Slot::CoitusHistory);
        }
        if self.says(&LIVING) {
            said.push(Slot::HabitLiving);
        }
        said
    }
}

fn is_around_drugs(text: &str) -> bool {
    words(text).all(|(_, word)| word.bytes().all(|byte| byte.is_ascii_digit()) || AROUND_DRUGS.contains(word))
}

// Words --------------------------------------------------------------------------------------------------------------

type WordClass = HashSet<&'static str>;

/// Names classes of words.
macro_rules! classes {
    ($($(#[$doc:meta])* $name:ident = $words:literal;)+) => {
        $($(#[$doc])* static $name: LazyLock<WordClass> = LazyLock::new(|| $words.split_ascii_whitespace().collect());)+

        #[cfg(test)]
        const CLASSES: &[&str] = &[$($words),+];
    };
}

classes! {
    /// Words that join, grade or compare, in any descriptor.
    JOINING = "a an and appearance color colored colour coloured dark deep faint faintly in is it light like \
        looking of on or slightly somewhat the to very with";
    COLORS = "amber black blackish blue bluish brown brownish clay cola crimson cyanotic dark dusky erythematous \
        gray grayish green greenish grey greyish hyperpigmented hypopigmented icteric jaundiced maroon orange pale \
        pink pinkish purple purplish red reddish tan tea violaceous violet white whitish yellow yellowish";
    SHAPES = "annular blister blisters bulla bullae bump bumps bulging lump lumps macular macule macules \
        maculopapular mass masses nodular nodule nodules oval papular papule papules patch patches petechiae plaque \
        plaques polygonal purpura pustule pustules rash round serpiginous swelling swellings swollen ulcer \
        ulcerated ulcers umbilicated vesicle vesicles vesicular welt welts wheal wheals";
    TEXTURES = "boggy chalky crusted crusty firm fluctuant frothy gelatinous greasy gritty hard indurated leathery \
        lumpy mucoid rough rubbery scaly slimy smooth soft sticky tarry thick thickened thin velvety viscous warty \
        watery waxy";
    SMELLS = "fetid fishy foul fruity malodorous musty odor odorless odour odourless offensive putrid rancid smell \
        smelling sour sweet";
    DEGREES = "excruciating extreme extremely intense intolerable mild mildly moderate moderately profuse severe \
        severely slight unbearable";
    BODY_PARTS = "abdomen abdominal ankle ankles anterior arm armpit armpits arms axilla axillae back belly \
        bilateral breast breasts buttock buttocks calf calves cheek cheeks chest chin ear ears elbow elbows \
        epigastric epigastrium eye eyelid eyelids eyes face feet finger fingers flank foot forearm forearms \
        forehead genital genitals groin hand hands head heel hip hips hypochondrium inguinal jaw joint joints knee \
        knees left leg legs lip lips lower lumbar mouth neck nose palm palms pelvic pelvis penis periumbilical \
        posterior quadrant retrosternal right scalp scrotum shoulder shoulders side skin sole soles stomach \
        substernal suprapubic temple testicle thigh thighs throat thumb toe toes tongue trunk upper vagina vulva \
        waist wrist wrists";
    /// What stands around the drugs of a list of drugs.
    AROUND_DRUGS = "a also and as aqueous bid capsule capsules current currently daily day depot dose doses drops \
        each every g gel her high his hour hourly hours include includes inhaled inhaler injection injections \
        intravenous is iu iv low mcg medication medications mg ml morning needed night nightly on once only or oral \
        other orally per plus prn qd qid subcutaneous tablet tablets taking takes the therapy tid times topical \
        twice unit units use uses week weekly with µg";
}

/// Compiles a pattern of this module.
fn fixed(pattern: &str) -> Regex {
    // The patterns are written in this module, and a test compiles each.
    Regex::new(pattern).expect("a fixed pattern")
}

/// Names patterns of folded text, which are compiled at their first use.
macro_rules! patterns {
    ($($name:ident = $pattern:expr;)+) => {
        $(static $name: LazyLock<Regex> = LazyLock::new(|| fixed($pattern));)+

        #[cfg(test)]
        const PATTERNS: &[&LazyLock<Regex>] = &[$(&$name),+];
    };
}

/// Relatives, with what may stand before.
macro_rules! kin {
    () => {
        concat!(
            r"(?:(?:(?:maternal|paternal|older|younger|elder|eldest|youngest|twin|half|identical|first|second|",
            r"degree)[ -])*(?:father|mother|brother|sister|parent|sibling|twin|cousin|uncle|aunt|grandfather|",
            r"grandmother|grandparent|son|daughter|relative|family member)s?)",
        )
    };
}

macro_rules! amount {
    () => {
        concat!(
            r"(?:[0-9]+(?:\.[0-9]+)?(?:(?: ?- ?| to )[0-9]+)?|an?|one|two|three|four|five|six|seven|eight|nine|",
            r"ten|eleven|twelve|several|(?:a )?few|many|(?:a )?couple(?: of)?|half an?)",
        )
    };
}

macro_rules! specialty {
    () => {
        concat!(
            r"(?:allergy|cardiology|dental|dermatology|endocrinology|gastroenterology|general practice|",
            r"geriatrics?|gynecology|hematology|infectious diseases?|internal medicine|nephrology|neurology|",
            r"neurosurgery|obstetrics(?: and gynecology)?|oncology|ophthalmology|orthopedics?|otolaryngology|",
            r"pediatrics?|primary care|psychiatry|psychiatric|pulmonology|radiology|rheumatology|urology)",
        )
    };
}

patterns! {
    AGE = concat!(
        r"[0-9a-z][ -](?:years?|months?|weeks?|days?|hours?|yrs?)(?:[ -]of[ -]age|[ -]old)\b|\b[0-9]+ ?(?:yo|",
        r"y/o)\b|\baged? [0-9]|^[0-9]+(?:\.[0-9]+)? (?:years?|months?|weeks?|days?)$|\bin (?:his|her) (?:(?:early|",
        r"mid|late)[ -])?[2-9]0'?s\b",
    );
    ONLY_AGE = concat!(
        r"^(?:an? )?(?:(?:about|approximately|aged?) )?[0-9]+(?:\.[0-9]+)?[ -]?(?:years?|months?|weeks?|days?|",
        r"hours?|yrs?|yo|y/o)?(?:[ -]old|[ -]of[ -]age)?$|^in (?:his|her) (?:(?:early|mid|late)[ -])?[2-9]0'?s$|",
        r"^(?:an? )?[a-z]+[ -](?:year|month|week|day)s?[ -]old$",
    );
    BODY_SIZE = concat!(
        r"\b(?:weigh(?:s|ed|t|ing)?|bmi|body mass|obese|overweight|underweight|percentiles?|height|tall|",
        r"birth ?weight|length)\b|[0-9] ?-?(?:kg|lbs?|pounds?|cm|kilograms?|grams?|g)\b|kg/m|[0-9] ?(?:ft|feet)\b",
    );
    SEX_WORD = r"\b(?:man|woman|boy|girl|male|female|gentleman|lady)\b";
    ONLY_SEX = r"^(?:an? |the )?(?:man|woman|boy|girl|male|female|gentleman|lady)$";

    DEPARTMENT = concat!(
        r"^(?P<arrival>(?:(?:is |was )?(?:presents?|presented|comes|came|brought|admitted|referred|taken|",
        r"transferred|seen)(?: in)? (?:to|into|in|at) ))?(?:the |an? |our )?(?:local |nearest |",
        r"hospital )?(?:emergency (?:department|room|unit)|(?:intensive|critical|coronary) care unit|",
        r"(?:outpatient|walk-in|urgent care|free|community|prenatal|antenatal|fertility|travel) clinic|",
        specialty!(), r" (?:outpatient )?(?:clinic|department|ward|unit|service|office)|department of ", specialty!(),
        concat!(
            r"|cardiology|dermatology|endocrinology|gastroenterology|gynecology|hematology|internal medicine|",
            r"nephrology|neurology|neurosurgery|obstetrics(?: and gynecology)?|oncology|ophthalmology|orthopedics|",
            r"otolaryngology|pediatrics|psychiatry|pulmonology|rheumatology|urology)$",
        )
    );

    ALLERGY_WORD =
        r"allerg|anaphyla|hypersensitiv|intoleran|\bnkda\b|\bnka\b|sensitiv|atopic|atopy|cross-react|angioedema";
    REACTION = concat!(
        r"\b(?:rash|hives|urticaria|wheezing|swelling|itching|reaction|side effects?|stevens|causes?|caused|",
        r"develops?|developed)\b",
    );
    ALLERGY = concat!(
        r"\ballergic (?:to|reactions? to)\b|\ballerg(?:y|ies) to\b|\ballergies (?:include|are)\b|\b(?:drug|food|",
        r"medication|penicillin|peanut|sulfa|latex|known|no) allerg(?:y|ies)\b|\bnkda\b|",
        r"\bdenies (?:any )?(?:\w+ )?allergies\b|\banaphyla\w+ (?:to|after)\b|\bhypersensitiv\w+ to\b|",
        r"\bintoleran(?:t|ce) (?:to|of)\b",
    );
    ALLERGY_TREATED = concat!(
        r"\b(?:for|against) (?:\w+ ){0,2}allerg|allergy (?:medicines?|medications?|shots?|pills?|drops|tablets?)|",
        r"anti-?allerg",
    );
    ONLY_ALLERGY = concat!(
        r"^(?:(?:he|she|patient|the patient) )?(?:is |has (?:an? |no )?|had (?:an? )?|no |denies (?:any )?|known |",
        r"reports (?:an? )?|an? )*(?:severely )?(?:allergies (?:include|are)\b|allergic to|allergic reaction to|",
        r"allerg(?:y|ies) to|nkda|(?:known )?(?:drug |food |medication )*allergies$|\w+ allergy$|anaphyla\w+ to|",
        r"hypersensitiv\w+ to|intoleran)",
    );

    DOSE_OR_USE = concat!(
        r"[0-9] ?(?:mg|mcg|µg|g|ml|units?|iu)\b|\b(?:takes?|taking|took|uses|using|on|treated with|prescribed|",
        r"daily|twice|weekly|therapy)\b",
    );
    MEDICATION_TOLD = concat!(
        r"\b(?:takes?|taking|took|uses|using|prescribed|treated|medications? (?:and|or|but|includes?|for)|",
        r"no (?:current |regular )?medications?$|for)\b|[0-9] ?mg\b",
    );
    MEDICATION_LIST = concat!(
        r"\bmedications? (?:include|includes|are|is)\b|\b(?:takes?|taking) (?:no |any |several )?medications?\b|",
        r"^no medications?$",
    );
    MEDICATION_WORD = concat!(
        r"\b(?:medications?|medicines?|drugs?|pills?|tablets?|supplements?|vitamins?|takes|taking|took|uses|using|",
        r"therapy|treat(?:ed|ment|ments)?|injections?|inhalers?|creams?|ointments?|lotions?|shampoo|eye ?drops|",
        r"prophyla\w+|prescri\w+|doses?|mg|mcg|µg|contraceptives?|remed(?:y|ies)|anti\w+)\b|\bpost\w*exposure\b",
    );

    VACCINE = concat!(
        r"\b(?:vaccin\w+|unvaccinated|immuniz(?:ations?|ed)|immunis(?:ations?|ed)|unimmunized|flu shots?|",
        r"tetanus (?:shots?|boosters?|toxoid)|booster (?:shot|dose)s?)\b",
    );
    AFTER_VACCINE = concat!(
        r"\b(?:after|following|since|allerg\w+ to|reaction to) (?:\w+ ){0,4}(?:vaccin|immuni|flu shot)|",
        r"vaccin\w+[- ](?:associated|induced|derived)",
    );
    ONLY_VACCINE = concat!(
        r"^(?:(?:his|her|the|any|all|no|childhood|recommended|routine|required|is|has|had|was|been|not|never|",
        r"fully|completely|received|patient|he|she) )*(?:up[- ]to[- ]date (?:on|with)|vaccin|unvaccinated|",
        r"immuni[sz]|unimmunized|flu shot|tetanus)",
    );

    OPERATION = concat!(
        r"\b(?:[a-z]{3,}(?:ectomy|ectomies|plasty|plasties|otomy|ostomy|orrhaphy|pexy)|surger(?:y|ies)|",
        r"(?:\w+ )?bypass graft\w*|transplant(?:ation|ed)?s?|c-sections?|cesarean|amputation|(?:valve|knee|hip|",
        r"joint) replacement|hernia repair|stent placement|tubal ligation)\b",
    );
    ONLY_OPERATION = concat!(
        r"^(?:(?:an?|the|prior|previous|recent|emergency|elective|laparoscopic|open|total|partial|radical|",
        r"subtotal|bilateral|unilateral|left|right|abdominal|vaginal|underwent|had|has had|status post|s/p|",
        r"history of|undergone|coronary|artery|sided) |left-|right-)*(?:[a-z]{3,}(?:ectomy|ectomies|plasty|",
        r"plasties|ostomy|orrhaphy|pexy)|lapar?otomy|craniotomy|thoracotomy|(?:\w+ )?surgery|",
        r"(?:\w+ )?bypass graft(?:ing)?(?: surgery)?|c-sections?|cesarean(?: sections?| delivery)?|(?:valve|knee|",
        r"hip|joint) replacement|(?:\w+ )?hernia repair|tubal ligation|",
        r"(?:\w+ )?transplant(?:ation)?)(?: (?:[0-9]+|one|two|three|five|ten|several|many|\w+) (?:years?|months?|",
        r"weeks?|days?) ago| at (?:the )?age(?: of)? [0-9]+| in [12][0-9]{3}| as a child| (?:in|",
        r"during) childhood)?$",
    );
    DISEASE = concat!(
        r"\b(?:hypertension|diabetes|diabetic|asthma|copd|cancer|disease|syndrome|disorder|failure|infection|",
        r"tuberculosis|epilepsy|migraines?|depression|anxiety|schizophrenia|stroke|hyperlipidemia|",
        r"hypercholesterolemia|dyslipidemia|hypothyroidism|hyperthyroidism|obesity|gout|hepatitis|pneumonia|",
        r"[a-z]{4,}itis|[a-z]{3,}emia|[a-z]{4,}oma|[a-z]{4,}pathy|fibrillation|infarction|malaria|eczema|",
        r"withdrawal|dependence|abuse|intoxication|cirrhosis)\b",
    );
    ONLY_DISEASE = concat!(
        r"^(?:(?:history of|known|essential|chronic|type [12]|poorly controlled|well-controlled|mild|moderate|",
        r"severe|diagnosed with|and|major|congestive|generalized|rheumatoid|",
        r"coronary artery) ?)*(?:(?:hypertension|diabetes(?: mellitus)?|asthma|copd|epilepsy|migraines?|",
        r"depression|anxiety|schizophrenia|hyperlipidemia|hypercholesterolemia|dyslipidemia|hypothyroidism|",
        r"hyperthyroidism|obesity|gout|osteoarthritis|arthritis|osteoporosis|eczema|psoriasis|tuberculosis|",
        r"heart failure|atrial fibrillation|anemia|chronic kidney disease|chronic obstructive pulmonary disease|",
        r"coronary artery disease|bipolar disorder|gastroesophageal reflux disease)(?:,? and |, |$))+$",
    );

    FAMILY_HISTORY = concat!(
        r"^(?:(?:no|an?|any|the|positive|negative|significant|strong|relevant|known|his|her|has|denies|there|is|",
        r"patient's|with) )*family history\b",
    );
    KIN_HAS = concat!(
        r"\b",
        kin!(),
        r"(?: also| both| each| all| recently)? (?:has|have|had|died|dies|was diagnosed|were diagnosed|",
        r"is affected|suffers?|suffered|with|developed|takes|underwent|passed away)\b",
    );
    KIN_REPORTS = concat!(
        r"\b",
        kin!(),
        r"(?: (?:has|have|had|also|both|recently|is|are|who))* (?:reports?|reported|reporting|states?|stated|",
        r"says?|said|notic(?:es?|ed|ing)|noted|notes?|concerned|worried|brought|brings?|thinks?|thought|",
        r"describes?|described|denies|deny|denied|found|observed|witnessed|saw|seen|tells?|told|recalls?|",
        r"believes?|complains?|mentions?|feels?|tried|given|gave|been|confirms?|adds?|insists?)\b",
    );
    STARTS_WITH_KIN = concat!(
        r"^(?:(?:his|her|the|an?|both|two|one|patient's|child's|infant's|boy's|girl's|history of) )*",
        kin!(),
        r"(?: also| both| each| all)? (?:has|have|had|died|dies|was diagnosed|were diagnosed|is affected|suffers?|",
        r"suffered|with)\b",
    );
    CONTAGION = concat!(
        r"\b(?:colds?|flu|influenza|(?:similar|same) (?:symptoms?|illness|complaints?|rash)|sick|ill|cough|",
        r"coughing|sore throat|chickenpox|measles|strep|gastroenteritis|diarrhea|vomiting|recently|tuberculosis|",
        r"scabies)\b",
    );
    PREGNANCY = r"\b(?:pregnan\w+|prenatal|antenatal|gestation\w*|labor|deliver\w+|birth|during)\b";

    TOBACCO = concat!(
        r"\b(?:smok(?:e|es|ed|er|ers|ing)|vapes?|vaped|vaping|e-cigarettes?|packs? (?:per|a) (?:day|week)|",
        r"pack-years?|packs daily)\b",
    );
    TOBACCO_NAMED = concat!(
        r"\b(?:smok(?:e|es|ed|ing) (?:[\w-]+ ){0,4}cigarettes?|cigarettes? (?:daily|per|a|each|for)|tobacco|",
        r"cigars?|chewing tobacco|snuff|pack-years?)\b",
    );
    OTHER_SMOKE = concat!(
        r"\b(?:wood|second-?hand|passive|house|fire|marijuana|cannabis|environmental)[ -]smok|",
        r"\bsmoke (?:inhalation|detectors?|exposure|alarms?)|\bexpos\w+ to (?:\w+ )?smoke|\bsmok(?:es|ed|ing|",
        r"e) (?:\w+ )?(?:marijuana|cannabis|weed|crack|heroin|hashish|opium|methamphetamine|joints?)|",
        r"\bsmoked (?:fish|meat|salmon|foods?)",
    );
    ALCOHOL = concat!(
        r"\b(?:alcohol|alcoholic|beers?|wines?|vodka|whiske?y|liquor|rum|gin|ethanol|bourbon|tequila|cocktails?|",
        r"binge[- ]drink\w*|drinks? (?:socially|occasionally|heavily|on (?:weekends|occasion)))\b",
    );
    DRINKING = r"\b(?:drinks?|drank|drinking|drinker)\b";
    OTHER_DRINK = concat!(
        r"\b(?:water|coffee|tea|soda|sodas|milk|juice|cola|fluids?|energy drinks?|soft drinks?|formula|",
        r"beverages)\b",
    );
    ILLICIT = concat!(
        r"\b(?:(?:illicit|recreational|street|intravenous|iv|injection|illegal) (?:drugs?|substances?)|(?:use|",
        r"uses|using|used|abuse|abuses) (?:any )?drugs?|drug (?:use|abuse)|illicit|cocaine|heroin|marijuana|",
        r"cannabis|methamphetamine|crystal meth|lsd|ecstasy|mdma|pcp|hashish|opium)\b",
    );
    LIVING = concat!(
        r"\b(?:lives?|living|works?|worked|working|job|occupation|diet|eats?|eating|vegan|vegetarian|exercis\w*|",
        r"runs?|jogs?|walks?|sleeps?|hygiene|student|college|school|retired|farmer|homeless|house|married|",
        r"divorced|hobb\w*|plays|swims|meals?|foods?|coffee|tea|soda|bartender|brewery|factory|stress\w*|",
        r"travel\w*|teacher|nurse|engineer)\b",
    );
    HABIT_VERB = concat!(
        r"\b(?:smokes|smoked|smoker|drinks|drank|cigarettes?|beers?|whiske?y|vodka|pack-years?)\b|\b(?:not|",
        r"never) (?:smoke|drink)",
    );
    SEXUAL = concat!(
        r"\b(?:sexually active|sexual (?:intercourse|activity|partners?|contacts?|encounters?|relations?|history)|",
        r"intercourse|unprotected sex|condoms?|sex with|sexual abstinence|sexually)\b",
    );

    MEASURED = concat!(
        r"[0-9] ?(?:mm ?hg|mg/dl|g/dl|meq/l|mmol/l|[µun]mol/l|m?u/l|iu/l|[nµ]g/ml|pg/ml|/ ?mm(?:3|³|\^3)|/[µu]l|",
        r"/min\b|breaths/|beats/|bpm\b|breaths per|beats per)|\b(?:blood pressure|bp|pulse(?: rate)?|heart rate|",
        r"respiratory rate|respirations?|oxygen saturation|spo2|hemoglobin|hematocrit|leukocyte count|",
        r"platelet count|creatinine|serum sodium|serum potassium|blood glucose)(?: (?:is|was|are|were|of|on|level|",
        r"concentration|at|in|room|air|shows?|elevated|decreased))*:? [0-9]",
    );
    TEMPERATURE = r"^(?:(?:his|her|the|body|oral|rectal) )*temperature\b[^0-9]{0,20}[0-9]";
    EXAMINATION = concat!(
        r"\b(?:physical examination|on examination|examination|x-?ray|radiograph|ct|mri|ultrasonography|",
        r"ultrasound|biopsy|culture|ecg|laboratory studies|auscultation|palpation) (?:of \w+ (?:\w+ )?)?(?:shows?|",
        r"showed|reveals?|revealed|demonstrates?|confirms?|is|was)\b|\b(?:tender(?:ness)?|pain) (?:to|",
        r"on) (?:palpation|percussion)\b",
    );
    DENIED = concat!(
        r"^(?:(?:he|she|patient|the patient) )?(?:denies|denied|has not had|has had no|has no|had no|without|no|",
        r"not) (?:\w+ ){0,2}(?:fever|chills|pain|cough|vomiting|nausea|diarrhea|headache|rash|bleeding|dyspnea|",
        r"shortness of breath|weight loss|night sweats|dysuria|trauma|chest pain|symptoms)\b",
    );

    ONLY_TIME = concat!(
        r"^(?:(?:for|over|during|since|within|in|about|approximately|around|at least|nearly|almost|more than|",
        r"less than|the|past|last|previous|with|history of|lasting) )*",
        amount!(),
        r"[ -](?:second|minute|hour|day|night|week|month|year|decade)s?(?:[ -](?:ago|history|duration|earlier|",
        r"prior|before|period|course|in duration|of duration|later))*(?: of)?$",
        r"|^since (?:yesterday|childhood|birth|this morning|last \w+|adolescence)$|^(?:of )?(?:sudden|gradual|",
        r"acute|insidious|abrupt|rapid)(?:[ -]in)?[ -]onset$|^(?:yesterday|today|this morning|last night|",
        r"last week|recently)$|^(?:once|twice|(?:",
        amount!(),
        r") times) (?:an?|per|each|every) (?:day|hour|week|month|year|night)$|^every (?:\w+ )?(?:days?|hours?|",
        r"weeks?|months?|nights?|morning)$",
    );
    ONLY_COURSE = concat!(
        r"^(?:(?:rapidly|gradually|progressively|slowly) )?(?:intermittent|constant|persistent|chronic|acute|",
        r"subacute|recurrent|episodic|progressive|continuous|worsening|worsened|improving|intermittently|suddenly|",
        r"gradually|progressively)$",
    );
    ONLY_SCORE = r"^(?:an? )?(?:[0-9]|10) ?(?:/|out of) ?10(?: (?:in )?(?:severity|intensity|pain))?$";
}

#[cfg(test)]
mod tests;
