//! What may not be told before the images of a case (ClinMM-Bench, supplement F): the diagnosis, and what only a picture
//! shows. Also what belongs to a later part of the story: conclusions, treatment, outcome.
//!
//! The words are data (`pipelines/lexicon/masking.toml`). An examination may be named where nothing else is said than that
//! it was done; a word that only a picture explains refuses wherever it stands. In doubt a text is refused: what is missing
//! costs a case less than what gives it away.

use std::collections::BTreeSet;
use std::ops::Range;

use anyhow::{Context, bail, ensure};
use regex::Regex;
use serde::Deserialize;

use super::diagnosis::FinalDiagnosis;
use super::examinations::{ExamClass, ExamMention, Examinations};
use super::sections::patterns;
use crate::text::leakage::{Gold, Synonyms};

/// The version of the file that this module reads.
const VERSION: u32 = 1;
/// Fewest letters of a word of the diagnosis that is looked for by itself, and of what is left of it without its ending.
const MIN_WORD: usize = 5;
/// Letters from which on the beginning of a word of the diagnosis is also found inside of words: "antitubercular".
const MIN_INNER: usize = 7;
/// Bytes before a word in which what denies it, or makes it one of an earlier time, is looked for. It bounds the time.
const WINDOW: usize = 400;
/// Letters at the beginning of a long word of the diagnosis that a proper name must share with it to stand for it. Other
/// words need one more.
const MIN_SHARED: usize = 6;

patterns! {
    /// A reference to a figure or table in brackets, with the space before it.
    BRACKETED = r"\s*(?:\((?:[^()\[\]]*?[^\w()\[\]])?(?:figs?|figures?|tables?|videos?|movies?|supplementary|suppl|appendix|panels?)\b[^()]*(?:\([^()]*\)[^()]*)*\)|\[(?:[^()\[\]]*?[^\w()\[\]])?(?:figs?|figures?|tables?|videos?)\b[^\[\]]*\])";
    /// One in the running text.
    BARE = r"\b(?:figs?\.?|figures?|tables?|videos?)[\s\x{a0}]*(?:\d|[ivx]{1,4}\b)|\b(?:supplementary (?:material|file|figure|table)|(?:above|below|attached|following) (?:figure|table|photo|picture|image))";
    /// Tells more of what was done than that it was.
    TELLS_MORE = r"\b(?:which|whose|that|containing|contained|consisting|with (?:evidence|findings|features))\b|:\s";
    /// What makes the words behind it ones of an earlier time.
    EARLIER = r"\b(?:history of|known (?:case|to have)|previous(?:ly)?|prior|years? (?:ago|before|earlier|prior)|months? (?:ago|before|earlier|prior)|status post|in (?:19|20)\d\d|since (?:childhood|birth))\b";
    /// Words of pathology that name a disease a patient can have had.
    DISEASE = r"^(?:\w*carcinoma|sarcoma|lymphoma|neoplas\w*|fibrosis|dysplasia|hyperplasia|granuloma\w*|patholog\w*)$";
    /// A negation up to the end of a clause.
    NEGATION = r"\b(?:no|not|without|denied|denies|negative for|absence of|never|neither|nor)\b[^.;:]*$";
    /// What ends the scope of a negation.
    CONTRAST = r"\b(?:but|however|except|although|which|showed|revealed|and (?:had|was|were|has|there))\b";
    /// A synonym that is more than a name.
    PHRASE = r"\b(?:with|due to|caused by|or|and|case|neither|nor|diagnosis|including|from|but|who)\b|(?:\S+\s+){4}";
    /// A time that is given by its year is an earlier one.
    IN_A_YEAR = r"\bin (?:19|20)\d\d\b";
}

/// Why a text may not be told before the images.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum RefusalKind {
    /// The diagnosis, one of its names, or a word of it that stands for it.
    NamesDiagnosis,
    ImagingResult,
    PathologyResult,
    EndoscopyResult,
    /// What was found in an operation.
    OperativeFinding,
    SkinMorphology,
    EyeMorphology,
    /// What an electrocardiogram, an electroencephalogram or an electromyogram shows.
    ElectricalTracing,
    /// Speaks of a figure or table in the running text, or of what a figure shows.
    FigureReference,
    /// What the patient has or might have, as the authors conclude.
    Conclusion,
    Treatment,
    Outcome,
}

impl RefusalKind {
    /// `snake_case`, for accounts.
    pub fn name(self) -> &'static str {
        match self {
            Self::NamesDiagnosis => "names_diagnosis",
            Self::ImagingResult => "imaging_result",
            Self::PathologyResult => "pathology_result",
            Self::EndoscopyResult => "endoscopy_result",
            Self::OperativeFinding => "operative_finding",
            Self::SkinMorphology => "skin_morphology",
            Self::EyeMorphology => "eye_morphology",
            Self::ElectricalTracing => "electrical_tracing",
            Self::FigureReference => "figure_reference",
            Self::Conclusion => "conclusion",
            Self::Treatment => "treatment",
            Self::Outcome => "outcome",
        }
    }

    /// Whether it tells what a picture or an operation shows.
    pub fn is_finding(self) -> bool {
        matches!(
            self,
            Self::ImagingResult
                | Self::PathologyResult
                | Self::EndoscopyResult
                | Self::OperativeFinding
                | Self::SkinMorphology
                | Self::EyeMorphology
                | Self::ElectricalTracing
                | Self::FigureReference
        )
    }
}

/// A kind with the words that decided.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Refusal {
    pub kind: RefusalKind,
    pub evidence: String,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct MaskFile {
    version: u32,
    diagnosis: DiagnosisEntry,
    conclusion: ConclusionEntry,
    imaging: WordsEntry,
    pathology: WordsEntry,
    endoscopy: WordsEntry,
    operative: WordsEntry,
    skin: WordsEntry,
    eye: WordsEntry,
    electrical: WordsEntry,
    results: WordsEntry,
    performed: WordsEntry,
    told: WordsEntry,
    treatment: TreatmentEntry,
    outcome: WordsEntry,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct DiagnosisEntry {
    general: Vec<String>,
    endings: Vec<String>,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct ConclusionEntry {
    words: Vec<String>,
    past: Vec<String>,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct WordsEntry {
    words: Vec<String>,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct TreatmentEntry {
    words: Vec<String>,
    operation: Vec<String>,
}

/// The lists of `masking.toml`, ready to be looked for.
#[derive(Clone, Debug)]
pub struct MaskWords {
    general: BTreeSet<String>,
    /// The longest first.
    endings: Vec<String>,
    conclusion: Regex,
    past: Regex,
    /// In the order in which they are asked.
    morphology: Vec<(RefusalKind, Regex)>,
    results: Regex,
    performed: Regex,
    told: Regex,
    treatment: Regex,
    operation: Regex,
    outcome: Regex,
}

impl MaskWords {
    /// Reads and checks a file. `file` is its name, for messages.
    ///
    /// # Errors
    /// If the text is no TOML of this version, or a list is empty or holds a blank or repeated term.
    pub fn parse(file: &str, text: &str) -> anyhow::Result<Self> {
        Self::parse_text(text).with_context(|| file.to_owned())
    }

    fn parse_text(text: &str) -> anyhow::Result<Self> {
        let read: MaskFile = toml::from_str(text)?;
        ensure!(read.version == VERSION, "version {} is not known, it must be {VERSION}", read.version);
        checked("diagnosis.general", &read.diagnosis.general)?;
        checked("diagnosis.endings", &read.diagnosis.endings)?;
        let mut endings: Vec<String> = read.diagnosis.endings.iter().map(|ending| folded(ending)).collect();
        endings.sort_by_key(|ending| (std::cmp::Reverse(ending.len()), ending.clone()));
        let morphology = vec![
            (RefusalKind::OperativeFinding, finder("operative.words", &read.operative.words)?),
            (RefusalKind::PathologyResult, finder("pathology.words", &read.pathology.words)?),
            (RefusalKind::EndoscopyResult, finder("endoscopy.words", &read.endoscopy.words)?),
            (RefusalKind::EyeMorphology, finder("eye.words", &read.eye.words)?),
            (RefusalKind::ElectricalTracing, finder("electrical.words", &read.electrical.words)?),
            (RefusalKind::SkinMorphology, finder("skin.words", &read.skin.words)?),
            (RefusalKind::ImagingResult, finder("imaging.words", &read.imaging.words)?),
        ];
        Ok(Self {
            general: read.diagnosis.general.iter().map(|word| folded(word)).collect(),
            endings,
            conclusion: finder("conclusion.words", &read.conclusion.words)?,
            past: finder("conclusion.past", &read.conclusion.past)?,
            morphology,
            results: finder("results.words", &read.results.words)?,
            performed: finder("performed.words", &read.performed.words)?,
            told: finder("told.words", &read.told.words)?,
            treatment: finder("treatment.words", &read.treatment.words)?,
            operation: finder("treatment.operation", &read.treatment.operation)?,
            outcome: finder("outcome.words", &read.outcome.words)?,
        })
    }

    /// The parts of the words of a name by which it is recognised: "tubercul" of "pulmonary tuberculosis".
    fn stems(&self, name: &str) -> Vec<String> {
        words(name)
            .filter(|word| {
                let length = word.chars().count();
                length >= MIN_WORD && !self.general.contains(word) && !word.bytes().all(|byte| byte.is_ascii_digit())
            })
            .map(|word| {
                let short = self.endings.iter().find_map(|ending| {
                    word.strip_suffix(ending.as_str())
                        .filter(|rest| rest.chars().count() >= MIN_WORD && !self.general.contains(*rest))
                });
                short.map_or_else(|| word.clone(), str::to_owned)
            })
            .collect()
    }
}

fn checked(key: &str, terms: &[String]) -> anyhow::Result<()> {
    ensure!(!terms.is_empty(), "{key}: the list is empty");
    let mut seen = BTreeSet::new();
    for term in terms {
        let plain = term.strip_suffix('*').unwrap_or(term);
        if plain.trim() != plain || plain.is_empty() || plain.contains('*') {
            bail!("{key}: {term:?} is blank, begins or ends with a space, or has a * within");
        }
        ensure!(seen.insert(term), "{key}: {term:?} is given twice");
    }
    Ok(())
}

/// One pattern for a list of terms, the longest first.
fn finder(key: &str, terms: &[String]) -> anyhow::Result<Regex> {
    checked(key, terms)?;
    let mut sorted: Vec<&String> = terms.iter().collect();
    sorted.sort_by_key(|term| (std::cmp::Reverse(term.len()), term.as_str()));
    let alternatives: Vec<String> = sorted
        .into_iter()
        .map(|term| {
            let (plain, ending) = term.strip_suffix('*').map_or((term.as_str(), ""), |plain| (plain, "[a-z]*"));
            let words: Vec<String> = plain.split(' ').map(regex::escape).collect();
            words.join(r"[\s\x{2010}-\x{2015}-]+") + ending
        })
        .collect();
    Ok(Regex::new(&format!(r"(?i)(?-u:\b)(?:{})(?-u:\b)", alternatives.join("|")))?)
}

/// Lower case, with one spelling of "haem" and "hem".
fn folded(text: &str) -> String {
    text.to_lowercase().replace("ae", "e").replace("oe", "e")
}

fn words(text: &str) -> impl Iterator<Item = String> {
    text.split(|character: char| !character.is_alphanumeric()).filter(|word| !word.is_empty()).map(folded)
}

/// At most [`WINDOW`] bytes of a text before `at`.
fn window_before(text: &str, at: usize) -> &str {
    let mut from = at.saturating_sub(WINDOW);
    while !text.is_char_boundary(from) {
        from += 1;
    }
    text.get(from..at).unwrap_or_default()
}

/// How many letters two words begin with alike.
fn shared_letters(one: &str, other: &str) -> usize {
    one.chars().zip(other.chars()).take_while(|(one, other)| one == other).count()
}

/// What may be told of a case before its images.
#[derive(Clone, Debug)]
pub struct Mask<'a> {
    names: Vec<Gold>,
    stems: Vec<String>,
    examinations: &'a Examinations,
    words: &'a MaskWords,
}

impl<'a> Mask<'a> {
    /// A mask that knows the names that the article itself has for the diagnosis.
    pub fn new(diagnosis: &'a FinalDiagnosis, examinations: &'a Examinations, words: &'a MaskWords) -> Self {
        Self::with_synonyms(diagnosis, examinations, words, &Synonyms::default())
    }

    /// A mask that also knows what a file of synonyms calls the same.
    pub fn with_synonyms(
        diagnosis: &'a FinalDiagnosis,
        examinations: &'a Examinations,
        words: &'a MaskWords,
        synonyms: &Synonyms,
    ) -> Self {
        let all = std::iter::once(&diagnosis.diagnosis).chain(&diagnosis.synonyms);
        let names = all.clone().map(|name| Gold::new(name, "", synonyms)).collect();
        // A synonym that is a phrase holds words that stand for nothing.
        let mut stems: Vec<String> =
            all.filter(|name| !PHRASE.is_match(name)).flat_map(|name| words.stems(name)).collect();
        // Where the diagnosis itself reads as one, its words are all that there is.
        stems.extend(words.stems(&diagnosis.diagnosis));
        stems.sort();
        stems.dedup();
        Self { names, stems, examinations, words }
    }

    /// Why a text may not be told before the images; none if it may. Of several reasons the first in this order: the
    /// diagnosis, a figure in the running text, what a picture shows, a conclusion, the outcome, a treatment.
    pub fn refusal(&self, text: &str) -> Option<Refusal> {
        let refuse = |kind, evidence: &str| Some(Refusal { kind, evidence: evidence.to_owned() });
        if let Some(name) = self.named(text) {
            return refuse(RefusalKind::NamesDiagnosis, &name);
        }
        let plain = without_ranges(text, &figure_references(text));
        if let Some(found) = BARE.find(&plain) {
            return refuse(RefusalKind::FigureReference, found.as_str());
        }
        if let Some(refusal) = self.finding(&plain) {
            return Some(refusal);
        }
        let words = self.words;
        for found in words.conclusion.find_iter(&plain) {
            let is_diagnosis = found.as_str().to_lowercase().starts_with("diagnos");
            if !(is_diagnosis && words.past.is_match(&plain)) {
                return refuse(RefusalKind::Conclusion, found.as_str());
            }
        }
        if let Some(found) = words.outcome.find(&plain) {
            return refuse(RefusalKind::Outcome, found.as_str());
        }
        if let Some(found) = words.treatment.find(&plain) {
            return refuse(RefusalKind::Treatment, found.as_str());
        }
        None
    }

    /// The words by which a text names the diagnosis.
    pub fn named(&self, text: &str) -> Option<String> {
        if let Some(leak) = self.names.iter().find_map(|gold| gold.leaks(text).into_iter().next()) {
            return Some(leak.term);
        }
        let mut is_first = true;
        for raw in text.split(|character: char| !character.is_alphanumeric()).filter(|word| !word.is_empty()) {
            let word = folded(raw);
            // Of a germ or a gene, which is written with a capital, less is enough: "Sporothrix", "sporotrichosis".
            let is_proper = !is_first && raw.starts_with(char::is_uppercase);
            is_first = false;
            let n_shared = if is_proper { MIN_SHARED } else { MIN_SHARED + 1 };
            let is_named = self.stems.iter().any(|stem| {
                word.starts_with(stem.as_str())
                    || stem.len() >= MIN_INNER && word.contains(stem.as_str())
                    || stem.len() > MIN_INNER && shared_letters(stem, &word) >= n_shared
            });
            if is_named {
                return Some(word);
            }
        }
        None
    }

    /// Whether a text says that an operation was done.
    pub(super) fn is_operation(&self, text: &str) -> bool {
        self.words.operation.is_match(text) && !EARLIER.is_match(text)
    }

    /// What a picture or an operation shows, by an examination with a result or by a word that nothing else explains.
    fn finding(&self, text: &str) -> Option<Refusal> {
        let refuse = |kind, evidence: &str| Some(Refusal { kind, evidence: evidence.to_owned() });
        let words = self.words;
        let mentions: Vec<ExamMention<'_>> = self
            .examinations
            .mentions(text)
            .into_iter()
            .filter(|mention| kind_of(mention.class).is_some() && !words.told.is_match(mention.name))
            .collect();
        let names: Vec<Range<usize>> = mentions.iter().map(|mention| mention.start..mention.end).collect();
        let rest = without_ranges(text, &names);
        if let Some(mention) = mentions.first()
            && let Some(kind) = kind_of(mention.class)
        {
            let result = words.results.find(&rest);
            if let Some(result) = result {
                return refuse(kind, &format!("{} … {}", mention.name, result.as_str()));
            }
            // "A biopsy was taken, which contained cysts": what is done, and then what came of it.
            if !words.performed.is_match(&rest) || TELLS_MORE.is_match(&rest) {
                return refuse(kind, mention.name);
            }
        }
        // Names of examinations are no findings; what is left may hold one.
        let rest = words.told.replace_all(&rest, " ");
        let is_in_a_year = IN_A_YEAR.is_match(&rest);
        for (kind, pattern) in &words.morphology {
            let is_at_bedside = matches!(kind, RefusalKind::SkinMorphology | RefusalKind::EyeMorphology);
            for found in pattern.find_iter(&rest) {
                let before = window_before(&rest, found.start());
                let can_be_earlier = match kind {
                    RefusalKind::OperativeFinding => false,
                    RefusalKind::PathologyResult => DISEASE.is_match(found.as_str()),
                    _ => true,
                };
                let is_earlier = can_be_earlier && (EARLIER.is_match(before) || is_in_a_year);
                let is_denied = is_at_bedside
                    && NEGATION.find(before).is_some_and(|negation| !CONTRAST.is_match(negation.as_str()));
                if !is_earlier && !is_denied {
                    return refuse(*kind, found.as_str());
                }
            }
        }
        None
    }
}

/// What the result of an examination is; none where it may be told.
fn kind_of(class: ExamClass) -> Option<RefusalKind> {
    match class {
        ExamClass::Imaging => Some(RefusalKind::ImagingResult),
        ExamClass::Pathology => Some(RefusalKind::PathologyResult),
        ExamClass::Endoscopy => Some(RefusalKind::EndoscopyResult),
        ExamClass::Skin => Some(RefusalKind::SkinMorphology),
        ExamClass::Eye => Some(RefusalKind::EyeMorphology),
        ExamClass::Electrical => Some(RefusalKind::ElectricalTracing),
        ExamClass::Laboratory | ExamClass::Bedside | ExamClass::Other => None,
    }
}

/// References to figures and tables that stand in brackets, with the space before them, as bytes of the text. They say
/// nothing themselves and can be cut.
pub fn figure_references(text: &str) -> Vec<Range<usize>> {
    BRACKETED.find_iter(text).map(|found| found.range()).collect()
}

/// A text with a space in place of each range. Ranges are in order.
fn without_ranges(text: &str, ranges: &[Range<usize>]) -> String {
    let mut rest = String::with_capacity(text.len());
    let mut from = 0;
    for range in ranges {
        rest.push_str(text.get(from..range.start).unwrap_or_default());
        rest.push(' ');
        from = range.end.max(from);
    }
    rest.push_str(text.get(from..).unwrap_or_default());
    rest
}

#[cfg(test)]
pub(super) mod tests {
    use super::super::diagnosis::Located;
    use super::*;
    use expect_test::expect;
    use proptest::prelude::*;
    use std::sync::LazyLock;

    static EXAMINATIONS: LazyLock<Examinations> = LazyLock::new(|| {
        Examinations::parse("examinations.toml", include_str!("../../pipelines/lexicon/examinations.toml")).unwrap()
    });
    static WORDS: LazyLock<MaskWords> = LazyLock::new(|| {
        MaskWords::parse("masking.toml", include_str!("../../pipelines/lexicon/masking.toml")).unwrap()
    });

    pub(in crate::staging) fn examinations() -> &'static Examinations {
        &EXAMINATIONS
    }

    pub(in crate::staging) fn mask_words() -> &'static MaskWords {
        &WORDS
    }

    pub(in crate::staging) fn diagnosis(name: &str, synonyms: &[&str]) -> FinalDiagnosis {
        FinalDiagnosis {
            diagnosis: name.to_owned(),
            quote: Located { text_id: "title".to_owned(), start: 0, end: 1 },
            support: Vec::new(),
            synonyms: synonyms.iter().map(|name| (*name).to_owned()).collect(),
            rule: "given".to_owned(),
        }
    }

    fn account(name: &str, synonyms: &[&str], texts: &[&str]) -> String {
        let diagnosis = diagnosis(name, synonyms);
        let mask = Mask::new(&diagnosis, examinations(), mask_words());
        let line = |text: &&str| match mask.refusal(text) {
            Some(refusal) => format!("{}: {} | {text}\n", refusal.kind.name(), refusal.evidence),
            None => format!("told | {text}\n"),
        };
        texts.iter().map(line).collect()
    }

    #[test]
    fn an_examination_may_be_named_and_its_result_may_not() {
        let told = account(
            "mediastinal germinoma",
            &[],
            &[
                "A CT scan of the chest was performed.",
                "She underwent a bone marrow biopsy.",
                "Immunohistochemistry was done.",
                "CT of the chest showed nodules in both lungs.",
                "A chest radiograph was normal.",
                "The biopsy revealed atypical cells.",
                "A biopsy was taken, which contained necrosis.",
                "Colonoscopy was carried out and found a polyp.",
                "An electrocardiogram was recorded: sinus rhythm.",
                "Visual acuity was 20/40 in the left eye.",
            ],
        );
        expect![[r#"
            told | A CT scan of the chest was performed.
            told | She underwent a bone marrow biopsy.
            told | Immunohistochemistry was done.
            imaging_result: CT of the chest … showed | CT of the chest showed nodules in both lungs.
            imaging_result: chest radiograph … normal | A chest radiograph was normal.
            pathology_result: biopsy … revealed | The biopsy revealed atypical cells.
            pathology_result: biopsy | A biopsy was taken, which contained necrosis.
            endoscopy_result: Colonoscopy … found | Colonoscopy was carried out and found a polyp.
            electrical_tracing: electrocardiogram | An electrocardiogram was recorded: sinus rhythm.
            told | Visual acuity was 20/40 in the left eye.
        "#]]
        .assert_eq(&told);
    }

    #[test]
    fn morphology_is_refused_without_the_name_of_an_examination() {
        let told = account(
            "mediastinal germinoma",
            &[],
            &[
                "There was a hypodense mass in the liver.",
                "The tumour cells were positive for CD117.",
                "The mucosa was friable.",
                "Red plaques with scaling covered both elbows.",
                "There were no plaques and no scaling.",
                "The anterior chamber was deep.",
                "He had a fracture of the hip.",
                "She had a history of a fracture of the hip.",
                "During surgery a cyst was found.",
                "Haemoglobin was 98 g/L and creatinine 70 µmol/L.",
                "He had had a cough for three weeks.",
            ],
        );
        expect![[r#"
            imaging_result: hypodense | There was a hypodense mass in the liver.
            pathology_result: tumour cells | The tumour cells were positive for CD117.
            endoscopy_result: mucosa | The mucosa was friable.
            skin_morphology: plaques | Red plaques with scaling covered both elbows.
            told | There were no plaques and no scaling.
            eye_morphology: anterior chamber | The anterior chamber was deep.
            imaging_result: fracture | He had a fracture of the hip.
            told | She had a history of a fracture of the hip.
            operative_finding: During surgery | During surgery a cyst was found.
            told | Haemoglobin was 98 g/L and creatinine 70 µmol/L.
            told | He had had a cough for three weeks.
        "#]]
        .assert_eq(&told);
    }

    #[test]
    fn the_diagnosis_is_found_in_other_forms_of_its_words() {
        let told = account(
            "cutaneous sporotrichosis",
            &["CS", "case of neither wasps nor bees with sporotrichosis"],
            &[
                "Sporotrichosis was known to her.",
                "Culture grew Sporothrix.",
                "She took antisporotrichotic drugs.",
                "The cutaneous veins were wide.",
                "CS came to mind.",
                "Wasps and bees had stung her.",
            ],
        );
        expect![[r#"
            names_diagnosis: sporotrichosis | Sporotrichosis was known to her.
            names_diagnosis: sporothrix | Culture grew Sporothrix.
            names_diagnosis: antisporotrichotic | She took antisporotrichotic drugs.
            told | The cutaneous veins were wide.
            names_diagnosis: CS | CS came to mind.
            told | Wasps and bees had stung her.
        "#]]
        .assert_eq(&told);
    }

    #[test]
    fn a_file_of_synonyms_adds_names() {
        let synonyms = "version = 1\n[[group]]\nnames = [\"Hansen disease\", \"leprosy\"]\nsource = \"own\"\n";
        let synonyms = Synonyms::parse(synonyms).unwrap();
        let diagnosis = diagnosis("leprosy", &[]);
        let text = "A relative had Hansen’s disease.";
        let plain = Mask::new(&diagnosis, examinations(), mask_words());
        let knowing = Mask::with_synonyms(&diagnosis, examinations(), mask_words(), &synonyms);
        assert_eq!(plain.named(text), None);
        assert_eq!(knowing.refusal(text).map(|refusal| refusal.kind), Some(RefusalKind::NamesDiagnosis));
    }

    #[test]
    fn conclusions_treatment_and_outcome_are_later_parts() {
        let told = account(
            "mediastinal germinoma",
            &[],
            &[
                "This was consistent with an infection.",
                "Asthma had been diagnosed 10 years ago.",
                "She was diagnosed with asthma.",
                "He was treated with prednisolone.",
                "She was discharged after a week.",
                "Figure 2 gives the course.",
                "His leg hurt (Figure 2).",
            ],
        );
        expect![[r#"
            conclusion: consistent with | This was consistent with an infection.
            told | Asthma had been diagnosed 10 years ago.
            conclusion: diagnosed | She was diagnosed with asthma.
            treatment: treated | He was treated with prednisolone.
            outcome: discharged | She was discharged after a week.
            figure_reference: Figure 2 | Figure 2 gives the course.
            told | His leg hurt (Figure 2).
        "#]]
        .assert_eq(&told);
    }

    #[test]
    fn references_in_brackets_are_cut_with_the_space_before() {
        let text = "a (Figures 1(a)-1(b)) b [Fig. 2] c (arrow; Figure 3A, Video 2) d (5 mg) e (see Table 1).";
        let cut = without_ranges(text, &figure_references(text));
        expect!["a  b  c  d (5 mg) e ."].assert_eq(&cut);
    }

    #[test]
    fn a_wrong_file_is_refused_with_its_key() {
        let good = include_str!("../../pipelines/lexicon/masking.toml");
        for (from, to, message) in [
            ("version = 1", "version = 7", "version 7"),
            ("[told]\nwords = [", "[told]\nwords = [\"\",", "told.words"),
            ("[told]\nwords = [", "[told]\nwords = [\"twice\", \"twice\",", "given twice"),
        ] {
            assert!(good.contains(from), "{from}");
            let error = MaskWords::parse("masking.toml", &good.replace(from, to)).unwrap_err();
            assert!(format!("{error:#}").contains(message), "{error:#}");
        }
    }

    proptest! {
        #[test]
        fn no_text_makes_it_fail(name in ".{0,20}", text in "\\PC{0,80}|(\\(|\\)|\\[|\\]|[Ff]ig\\.? ?|CT|é|́|no |showed|[a-z]{1,6}| |\\.|,){0,40}") {
            let diagnosis = diagnosis(&name, &[&text]);
            let mask = Mask::new(&diagnosis, examinations(), mask_words());
            let whole = mask.refusal(&text);
            prop_assert_eq!(&whole, &mask.refusal(&text));
            let mut end = 0;
            for range in figure_references(&text) {
                prop_assert!(end <= range.start && text.get(range.clone()).is_some());
                end = range.end;
            }
        }
    }
}
