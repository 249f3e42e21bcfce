//! What is looked at, by which words: names of examinations in clinical prose, and the kind of picture that a caption
//! speaks of (ClinMM-Bench, supplement F: `image_type`, and the field `physical_examination`, which holds names alone).
//!
//! The words are data (`pipelines/lexicon/examinations.toml`); this module reads them and finds them in linear time.

use std::ops::Range;

use aho_corasick::{AhoCorasick, MatchKind};
use anyhow::{Context, bail, ensure};
use regex::{Regex, RegexBuilder};
use serde::Deserialize;

/// The version of the file that this module reads.
const VERSION: u32 = 1;
/// Most words in front of an examination that belong to its name.
const MAX_WORDS_BEFORE: usize = 4;

/// What kind of looking an examination is. It decides which of its words tell a result that only an image shows.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum ExamClass {
    /// Radiology, ultrasound, nuclear medicine, angiography.
    Imaging,
    /// Tissue and cells: sections, stains, smears, specimens, cultures on a plate.
    Pathology,
    /// Views through an endoscope or in an operation.
    Endoscopy,
    /// Skin and hair as they are seen or magnified.
    Skin,
    /// The eye as it is seen or imaged.
    Eye,
    /// Electrocardiogram, electroencephalogram, electromyogram.
    Electrical,
    /// Measured in blood, urine and other fluids.
    Laboratory,
    /// Physical examination, and photographs of the patient that are not of the skin.
    Bedside,
    /// Tests of function, and pictures that are no image of a patient.
    Other,
}

/// The kind of picture that a caption speaks of.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ImageType {
    /// Such as `computed tomography` or `H&E stained section`.
    pub name: String,
    /// An image of a patient or of a sample; false for charts, pedigrees and drawings.
    pub medical: bool,
    /// Words of the caption that decided.
    pub evidence: String,
    pub class: ExamClass,
}

/// A place where a text names an examination.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ExamMention<'t> {
    /// The name as the text has it, with the part of the body: `chest CT scan`.
    pub name: &'t str,
    /// The name in the lexicon: `computed tomography`.
    pub kind: String,
    /// Bytes of the text.
    pub start: usize,
    /// Exclusive.
    pub end: usize,
    pub class: ExamClass,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct ExaminationsFile {
    version: u32,
    before: Vec<String>,
    behind: Vec<String>,
    parts: Vec<String>,
    examination: Vec<ExaminationEntry>,
    picture: Vec<PictureEntry>,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct ExaminationEntry {
    name: String,
    class: ExamClass,
    words: Vec<String>,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct PictureEntry {
    name: String,
    class: ExamClass,
    medical: bool,
    #[serde(default)]
    fallback: bool,
    pattern: String,
}

/// A word of the lexicon.
#[derive(Clone, Debug)]
struct Term {
    words: String,
    /// Found with its case alone.
    is_exact: bool,
    examination: usize,
}

#[derive(Clone, Debug)]
struct Picture {
    name: String,
    class: ExamClass,
    medical: bool,
    /// Counts only where no other is found.
    is_fallback: bool,
    pattern: Regex,
}

/// The lexicon of examinations, ready to be looked for.
#[derive(Clone, Debug)]
pub struct Examinations {
    finder: AhoCorasick,
    /// By pattern of the finder.
    terms: Vec<Term>,
    /// Name and class.
    kinds: Vec<(String, ExamClass)>,
    pictures: Vec<Picture>,
    /// Words that may stand directly before a position.
    before: Regex,
    /// What may follow an examination and belongs to its name.
    behind: Regex,
}

impl Examinations {
    /// Reads and checks a file. `file` is its name, for messages.
    ///
    /// # Errors
    /// If the text is no TOML of this version, a list is empty, a name or word is blank or given twice, or a pattern does
    /// not compile or matches empty text.
    pub fn parse(file: &str, text: &str) -> anyhow::Result<Self> {
        Self::parse_text(text).with_context(|| file.to_owned())
    }

    fn parse_text(text: &str) -> anyhow::Result<Self> {
        let read: ExaminationsFile = toml::from_str(text)?;
        ensure!(read.version == VERSION, "version {} is not known, it must be {VERSION}", read.version);
        ensure!(!read.examination.is_empty(), "there is no [[examination]]");
        ensure!(!read.picture.is_empty(), "there is no [[picture]]");
        let mut terms = Vec::new();
        let mut kinds = Vec::new();
        let mut seen = std::collections::BTreeSet::new();
        for entry in read.examination {
            ensure!(!entry.name.trim().is_empty(), "an examination has no name");
            ensure!(!entry.words.is_empty(), "examination {:?}: it has no words", entry.name);
            for word in entry.words {
                if word.trim() != word || word.is_empty() {
                    bail!("examination {:?}: word {word:?} is blank, or begins or ends with a space", entry.name);
                }
                if !seen.insert(word.clone()) {
                    bail!("examination {:?}: word {word:?} is given twice", entry.name);
                }
                let is_exact = !word.contains(' ') && word.chars().any(char::is_uppercase) && {
                    // "Holter" is a name, "CT" an abbreviation: only the latter depends on its case.
                    word.chars().filter(|c| c.is_uppercase()).count() >= 2
                };
                terms.push(Term { words: word, is_exact, examination: kinds.len() });
            }
            kinds.push((entry.name, entry.class));
        }
        let finder = AhoCorasick::builder()
            .ascii_case_insensitive(true)
            .match_kind(MatchKind::LeftmostLongest)
            .build(terms.iter().map(|term| hyphens_as_spaces(&term.words)))?;
        let mut pictures = Vec::new();
        for entry in read.picture {
            ensure!(!entry.name.trim().is_empty(), "a picture has no name");
            let pattern = RegexBuilder::new(&entry.pattern.replace(' ', r"\s+").replace(r"\s+?", r"\s*"))
                .case_insensitive(true)
                .build()
                .with_context(|| format!("picture {:?}", entry.name))?;
            ensure!(!pattern.is_match(""), "picture {:?}: the pattern matches empty text", entry.name);
            pictures.push(Picture {
                name: entry.name,
                class: entry.class,
                medical: entry.medical,
                is_fallback: entry.fallback,
                pattern,
            });
        }
        let before =
            format!(r"(?i)(?:^|[^\w-])((?:(?:{})[\s-]+){{1,{MAX_WORDS_BEFORE}}})$", alternatives(&read.before)?);
        let behind = format!(
            r"(?i)^(?:(?:[\s-]+(?:{}))+\b)?(?:\s+of\s+(?:(?:the|his|her|both|right|left)\s+){{0,2}}(?:{})(?:\s+and\s+(?:the\s+)?(?:{}))?\b)?",
            alternatives(&read.behind)?,
            alternatives(&read.parts)?,
            alternatives(&read.parts)?
        );
        Ok(Self { finder, terms, kinds, pictures, before: Regex::new(&before)?, behind: Regex::new(&behind)? })
    }

    /// The kind of picture that a caption speaks of: the one whose words come first, unless they are general and others
    /// tell more. None if no rule knows it.
    pub fn image_type(&self, caption: &str) -> Option<ImageType> {
        let (at, picture) = self
            .pictures
            .iter()
            .filter_map(|picture| Some((picture.pattern.find(caption)?, picture)))
            .min_by_key(|(found, picture)| (picture.is_fallback, found.start()))?;
        Some(ImageType {
            name: picture.name.clone(),
            medical: picture.medical,
            evidence: at.as_str().trim().to_owned(),
            class: picture.class,
        })
    }

    /// The examinations that a text names, in its order; places do not overlap.
    pub fn mentions<'t>(&self, text: &'t str) -> Vec<ExamMention<'t>> {
        let folded = hyphens_as_spaces(text);
        let mut found: Vec<ExamMention<'t>> = Vec::new();
        let mut search_from = 0;
        while let Some(hit) = folded
            .get(search_from..)
            .and_then(|rest| self.finder.find(rest))
            .map(|hit| (hit.pattern().as_usize(), hit.start() + search_from..hit.end() + search_from))
        {
            let (term, place) = hit;
            // One byte further at least; words begin at letters, so that no character is divided for long.
            search_from = next_boundary(text, place.start + 1);
            let Some(term) = self.terms.get(term) else { continue };
            let Some(end) = whole_word(text, &place) else { continue };
            if term.is_exact && text.get(place.clone()) != Some(term.words.as_str()) {
                continue;
            }
            let Some((_, class)) = self.kinds.get(term.examination) else { continue };
            let earliest = found.last().map_or(0, |last| last.end);
            let start = self.start_with_words_before(text, earliest, place.start);
            let end = end + text.get(end..).and_then(|rest| self.behind.find(rest)).map_or(0, |tail| tail.end());
            let Some(name) = text.get(start..end) else { continue };
            let kind = self.kinds.get(term.examination).map(|(name, _)| name.clone()).unwrap_or_default();
            found.push(ExamMention { name, kind, start, end, class: *class });
            search_from = end;
        }
        found
    }

    /// The place where the name of an examination begins that the lexicon finds at `at`.
    fn start_with_words_before(&self, text: &str, earliest: usize, at: usize) -> usize {
        // The longest words together are shorter; the window bounds the time.
        let window = previous_boundary(text, at.saturating_sub(80).max(earliest));
        let Some(before) = text.get(window..at) else { return at };
        match self.before.captures(before).and_then(|captures| captures.get(1)) {
            Some(words) => window + words.start(),
            None => at,
        }
    }
}

/// A text of the same length in bytes, with a space for every ASCII hyphen.
fn hyphens_as_spaces(text: &str) -> String {
    text.replace('-', " ")
}

fn alternatives(words: &[String]) -> anyhow::Result<String> {
    ensure!(!words.is_empty(), "one of the lists before, behind and parts is empty");
    let mut words: Vec<String> =
        words.iter().map(|word| regex::escape(word).replace(r"\-", r"[\s-]").replace(' ', r"[\s-]")).collect();
    words.sort_by_key(|word| std::cmp::Reverse(word.len()));
    Ok(words.join("|"))
}

/// The end of a word found at `place`, with its plural s; none if it is a part of a longer word.
fn whole_word(text: &str, place: &Range<usize>) -> Option<usize> {
    let is_word = |character: char| character.is_alphanumeric();
    if text.get(..place.start)?.chars().next_back().is_some_and(is_word) {
        return None;
    }
    let mut rest = text.get(place.end..)?.chars();
    match rest.next() {
        Some('s') => (!rest.next().is_some_and(is_word)).then_some(place.end + 1),
        Some(next) if is_word(next) => None,
        _ => Some(place.end),
    }
}

fn next_boundary(text: &str, at: usize) -> usize {
    (at..=text.len()).find(|&at| text.is_char_boundary(at)).unwrap_or(text.len())
}

fn previous_boundary(text: &str, at: usize) -> usize {
    (0..=at.min(text.len())).rev().find(|&at| text.is_char_boundary(at)).unwrap_or(0)
}

#[cfg(test)]
mod tests {
    use super::*;
    use expect_test::expect;
    use proptest::prelude::*;
    use std::fmt::Write as _;
    use std::sync::LazyLock;

    const FILE: &str = "pipelines/lexicon/examinations.toml";
    static EXAMINATIONS: LazyLock<Examinations> =
        LazyLock::new(|| Examinations::parse(FILE, include_str!("../../pipelines/lexicon/examinations.toml")).unwrap());

    fn named(text: &str) -> String {
        EXAMINATIONS.mentions(text).iter().fold(String::new(), |mut out, mention| {
            assert_eq!(&text[mention.start..mention.end], mention.name);
            writeln!(out, "{} = {} ({:?})", mention.name, mention.kind, mention.class).unwrap();
            out
        })
    }

    #[test]
    fn examinations_are_named_as_the_text_has_them() {
        let text = "A contrast-enhanced chest CT scan and X-rays of the left hand were done; CT of the abdomen and pelvis \
                    followed. Transthoracic echocardiography, ECG, colonoscopy with biopsies, a punch biopsy, fundoscopy and \
                    complete blood counts were normal. The cat act and the exact pet were not examined.";
        expect![[r#"
            contrast-enhanced chest CT scan = computed tomography (Imaging)
            X-rays of the left hand = radiography (Imaging)
            CT of the abdomen and pelvis = computed tomography (Imaging)
            Transthoracic echocardiography = echocardiography (Imaging)
            ECG = electrocardiography (Electrical)
            colonoscopy = endoscopy (Endoscopy)
            biopsies = biopsy (Pathology)
            punch biopsy = biopsy (Pathology)
            fundoscopy = examination of the eye (Eye)
            complete blood counts = laboratory tests (Laboratory)
        "#]]
        .assert_eq(&named(text));
    }

    #[test]
    fn a_caption_tells_its_kind_of_picture() {
        let captions = [
            "Axial CT with contrast, arrow at the mass.",
            "Chest X-ray on admission.",
            "Coronal T2-weighted MRI of the knee.",
            "Nests of cells with clear cytoplasm (H&E, ×200).",
            "Immunohistochemistry: cells positive for CD34.",
            "Scattered spindle cells, original magnification 400x.",
            "Twelve-lead electrocardiogram with ST elevation.",
            "Erythematous scaly plaques on both shins.",
            "Fundus photograph of the right eye.",
            "OCT of the left macula.",
            "Colonoscopy with an ulcer in the caecum.",
            "Intraoperative view of the cyst.",
            "Excised specimen.",
            "Clinical picture at presentation.",
            "Flow chart of the search.",
            "Pedigree of the family; the arrow marks the index patient.",
            "Serum ferritin levels over time.",
            "Schematic drawing of the CT planes.",
            "The house in which he lived.",
        ];
        let told = captions.iter().fold(String::new(), |mut out, caption| {
            match EXAMINATIONS.image_type(caption) {
                Some(kind) => {
                    let mark = if kind.medical { "" } else { ", not medical" };
                    writeln!(out, "{caption} -> {} ({:?}{mark}) by {:?}", kind.name, kind.class, kind.evidence)
                        .unwrap();
                }
                None => writeln!(out, "{caption} -> unknown").unwrap(),
            }
            out
        });
        expect![[r#"
            Axial CT with contrast, arrow at the mass. -> computed tomography (Imaging) by "CT"
            Chest X-ray on admission. -> radiograph (Imaging) by "X-ray"
            Coronal T2-weighted MRI of the knee. -> magnetic resonance imaging (Imaging) by "T2-weighted"
            Nests of cells with clear cytoplasm (H&E, ×200). -> H&E stained section (Pathology) by "H&E,"
            Immunohistochemistry: cells positive for CD34. -> immunohistochemical stain (Pathology) by "Immunohistochemistry"
            Scattered spindle cells, original magnification 400x. -> histological section (Pathology) by "original magnification"
            Twelve-lead electrocardiogram with ST elevation. -> electrocardiogram (Electrical) by "electrocardiogram"
            Erythematous scaly plaques on both shins. -> dermatological photograph (Skin) by "Erythematous scaly plaques"
            Fundus photograph of the right eye. -> fundus photograph (Eye) by "Fundus"
            OCT of the left macula. -> optical coherence tomography (Eye) by "OCT"
            Colonoscopy with an ulcer in the caecum. -> endoscopic image (Endoscopy) by "Colonoscopy"
            Intraoperative view of the cyst. -> intraoperative photograph (Endoscopy) by "Intraoperative"
            Excised specimen. -> gross specimen (Pathology) by "Excised specimen"
            Clinical picture at presentation. -> clinical photograph (Bedside) by "Clinical picture"
            Flow chart of the search. -> flow chart (Other, not medical) by "Flow chart"
            Pedigree of the family; the arrow marks the index patient. -> pedigree (Other, not medical) by "Pedigree"
            Serum ferritin levels over time. -> chart (Other, not medical) by "levels over time"
            Schematic drawing of the CT planes. -> drawing (Other, not medical) by "Schematic"
            The house in which he lived. -> unknown
        "#]].assert_eq(&told);
    }

    #[test]
    fn files_that_cannot_be_read_are_refused() {
        let file = include_str!("../../pipelines/lexicon/examinations.toml");
        let problem = |text: &str| format!("{:#}", Examinations::parse(FILE, text).unwrap_err());
        assert!(problem(&file.replacen("version = 1", "version = 2", 1)).contains("version 2 is not known"));
        assert!(problem(&file.replacen("\"CT\", ", "\"CT\", \"CT\", ", 1)).contains("\"CT\" is given twice"));
        assert!(problem(&file.replacen("medical = false", "medical = false\ncolour = 1", 1)).contains("colour"));
        assert!(problem(&file.replacen("name = \"pedigree\"", "name = \"\"", 1)).contains("a picture has no name"));
    }

    proptest! {
        #[test]
        fn any_text_can_be_read(text in "(\\PC|CT|MRI|-| |scan|of the |é){0,60}") {
            let mut end = 0;
            for mention in EXAMINATIONS.mentions(&text) {
                prop_assert!(mention.start >= end && mention.end > mention.start);
                prop_assert_eq!(text.get(mention.start..mention.end), Some(mention.name));
                end = mention.end;
            }
            if let Some(kind) = EXAMINATIONS.image_type(&text) {
                prop_assert!(text.contains(&kind.evidence));
            }
        }
    }
}
