//! Which diagnoses are the truth of a report: those of a list beside the articles, given to the patients of a series by the
//! texts that name them, or the one that the article states (MTDiag, B.3).

use std::collections::BTreeSet;
use std::ops::Range;

use super::story::ReadText;
use super::{Refused, ReportWords};
use crate::record::article::{Article, ArticleRecord, ListedDiagnosis, PatientSegment, Region};
use crate::record::vector::DiagnosisBasis;
use crate::staging::diagnosis::{FinalDiagnosis, Located, final_diagnosis, text_of};
use crate::staging::masking::Mask;
use crate::staging::sections::SectionRole;
use crate::staging::series::series;
use crate::text::context::Experiencer;
use crate::text::leakage::Gold;
use crate::text::normalize::for_matching;

/// Why a diagnosis that is listed is nobody's.
pub(super) const NOT_ASSIGNED: &str = "diagnosis_not_assigned";

/// Most places of a diagnosis that are told.
const MAX_PLACES: usize = 4;
/// Fewest letters of a word that names something.
const MIN_WORD: usize = 4;

/// A diagnosis of the patient.
pub(super) struct TrueDiagnosis {
    pub(super) label: String,
    pub(super) basis: DiagnosisBasis,
    /// Where the article states it.
    pub(super) places: Vec<Located>,
}

/// The diagnoses of a patient, the primary one first, never empty.
pub(super) struct Truth {
    pub(super) diagnoses: Vec<TrueDiagnosis>,
    /// What gives them away: each listed diagnosis, and the one that the article states with its other names.
    pub(super) masked: Vec<FinalDiagnosis>,
}

impl Truth {
    pub(super) fn masks<'a>(&'a self, words: &'a ReportWords) -> Vec<Mask<'a>> {
        let mask = |one| Mask::with_synonyms(one, &words.examinations, &words.masking, &words.synonyms);
        self.masked.iter().map(mask).collect()
    }
}

/// The diagnoses of a record.
///
/// # Errors
/// If the article states none, or what is listed cannot be given to the patient.
pub(super) fn truth(record: &ArticleRecord, roles: &[SectionRole], words: &ReportWords) -> Result<Truth, Refused> {
    let (article, patient) = (&record.article, record.patient.as_ref());
    let stated = final_diagnosis(article, roles, patient, &words.rules);
    let mut listed: Vec<&ListedDiagnosis> = record.listed_diagnoses.iter().collect();
    listed.sort_by_key(|one| one.rank);
    listed.retain(|one| !one.label.trim().is_empty());
    if listed.is_empty() {
        let stated = stated.map_err(|none| Refused { reason: none.reason, detail: none.detail })?;
        let mut places = vec![stated.quote.clone()];
        let others = stated.support.iter().filter(|place| **place != stated.quote);
        places.extend(others.take(MAX_PLACES - 1).cloned());
        let diagnosis = TrueDiagnosis { label: stated.diagnosis.clone(), basis: DiagnosisBasis::Stated, places };
        return Ok(Truth { diagnoses: vec![diagnosis], masked: vec![stated] });
    }
    let names: Vec<Name> = listed.iter().map(|one| Name::of(one.label.trim(), words)).collect();
    let own = match patient {
        Some(patient) => assigned(record, patient, roles, &names, words)?,
        None => (0..names.len()).collect(),
    };
    let own: Vec<&Name> = own.iter().filter_map(|index| names.get(*index)).collect();
    let diagnoses = own.iter().map(|name| TrueDiagnosis {
        label: name.label.clone(),
        basis: DiagnosisBasis::Listed,
        places: name.places(article, roles, patient, words),
    });
    // A name that holds the diagnosis among other words, as a title does, gives those words away for nothing.
    let stated = stated.map(|mut stated| {
        let known = stated.diagnosis.to_lowercase();
        stated.synonyms.retain(|other| {
            let other = other.to_lowercase();
            other == known || !(other.contains(&known) && other.contains(' '))
        });
        stated
    });
    let masked = own.iter().map(|name| {
        let quote = Located { text_id: "title".to_owned(), start: 0, end: 0 };
        let (support, synonyms) = (Vec::new(), Vec::new());
        FinalDiagnosis { diagnosis: name.label.clone(), quote, support, synonyms, rule: "listed".to_owned() }
    });
    Ok(Truth { diagnoses: diagnoses.collect(), masked: masked.chain(stated.ok()).collect() })
}

/// A listed diagnosis as it is looked for.
struct Name {
    label: String,
    gold: Gold,
    /// Its words that tell, folded; all in one sentence name it too.
    keys: BTreeSet<String>,
}

/// How plainly a text names a diagnosis.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord)]
enum Plainness {
    #[default]
    Not,
    /// Only as a possibility.
    Possible,
    Plain,
}

/// The form in which two words of names are compared: "carcinomas", "carcinoma".
fn key_of(word: &str) -> String {
    let word = word.replace("ae", "e").replace("oe", "e");
    word.strip_suffix('s').map(str::to_owned).unwrap_or(word)
}

fn keys_of(text: &str) -> impl Iterator<Item = String> {
    let folded = for_matching(text);
    let words: Vec<String> = folded
        .split(|character: char| !character.is_alphanumeric())
        .filter(|word| word.chars().count() >= MIN_WORD)
        .map(key_of)
        .collect();
    words.into_iter()
}

impl Name {
    fn of(label: &str, words: &ReportWords) -> Self {
        Self { label: label.to_owned(), gold: Gold::new(label, "", &words.synonyms), keys: keys_of(label).collect() }
    }

    /// Where a text names it, as characters: by its names, or by all of its words in one sentence.
    fn found(&self, text: &ReadText) -> Vec<(Range<usize>, Plainness)> {
        let leaks = self.gold.leaks(&text.text).into_iter();
        let mut ranges: Vec<Range<usize>> =
            leaks.map(|leak| leak.range.start as usize..leak.range.end as usize).collect();
        if ranges.is_empty() && self.keys.len() > 1 {
            ranges.extend(text.sentences.iter().filter_map(|sentence| self.words_in(text, sentence)));
        }
        let plainness = |range: &Range<usize>| {
            let said = text.scopes.at(range);
            match said.experiencer {
                Experiencer::Patient if !said.negated && !said.uncertain => Plainness::Plain,
                Experiencer::Patient if !said.negated => Plainness::Possible,
                _ => Plainness::Not,
            }
        };
        ranges.into_iter().map(|range| (range.clone(), plainness(&range))).collect()
    }

    /// From the first to the last of its words in a sentence that holds all of them.
    fn words_in(&self, text: &ReadText, sentence: &Range<usize>) -> Option<Range<usize>> {
        let mut left = self.keys.clone();
        let mut found: Option<Range<usize>> = None;
        let mut start = sentence.start;
        for word in text.words(sentence).split_inclusive(|character: char| !character.is_alphanumeric()) {
            let length = word.chars().count();
            let bare = word.trim_end_matches(|character: char| !character.is_alphanumeric());
            let key = keys_of(bare).next();
            if key.is_some_and(|key| left.remove(&key)) {
                let range = start..start + bare.chars().count();
                found = Some(found.map_or(range.clone(), |so_far| so_far.start..range.end));
            }
            start += length;
        }
        left.is_empty().then_some(found).flatten()
    }

    fn plainness(&self, texts: &[ReadText]) -> Plainness {
        let found = texts.iter().flat_map(|text| self.found(text));
        found.map(|(_, plainness)| plainness).max().unwrap_or_default()
    }

    /// The first places that name it plainly, in title and in what the patient's paragraphs and the reasoning say; possible ones where
    /// there are no plain ones.
    fn places(
        &self,
        article: &Article,
        roles: &[SectionRole],
        patient: Option<&PatientSegment>,
        words: &ReportWords,
    ) -> Vec<Located> {
        let mut ids = vec!["title".to_owned()];
        if let Some(main) = article.main_abstract.filter(|_| patient.is_none())
            && let Some(one) = article.abstracts.get(main as usize)
        {
            ids.extend((0..one.paragraphs.len()).map(|number| format!("a{main}.{number}")));
        }
        for ((position, paragraph), role) in (0u32..).zip(&article.paragraphs).zip(roles) {
            let is_own = match patient {
                Some(segment) => segment.paragraphs.contains(&position),
                None => role.is_of_patient() || role.is_of_reasoning(),
            };
            if is_own && paragraph.region == Region::Body {
                ids.push(format!("p{position}"));
            }
        }
        let (mut plain, mut possible) = (Vec::new(), Vec::new());
        for text_id in ids {
            let Some(text) = text_of(article, &text_id) else { continue };
            let text = ReadText::new(text.to_owned(), words.extractor.context());
            // One place a text is enough.
            for (wanted, places) in [(Plainness::Plain, &mut plain), (Plainness::Possible, &mut possible)] {
                let found = self.found(&text).into_iter().find(|(_, plainness)| *plainness == wanted);
                places.extend(found.map(|(range, _)| {
                    let bytes = text.bytes(&range);
                    Located { text_id: text_id.clone(), start: bytes.start, end: bytes.end }
                }));
            }
            if plain.len() >= MAX_PLACES {
                break;
            }
        }
        let mut places = if plain.is_empty() { possible } else { plain };
        places.truncate(MAX_PLACES);
        places
    }
}

/// What a patient of a series says in paragraphs, and in headings and captions.
struct PatientTexts {
    number: u32,
    paragraphs: Vec<ReadText>,
    headings: Vec<ReadText>,
}

impl PatientTexts {
    fn of(article: &Article, segment: &PatientSegment, words: &ReportWords) -> Self {
        let read = |text: &str| ReadText::new(text.to_owned(), words.extractor.context());
        let own = || segment.paragraphs.iter().filter_map(|position| article.paragraphs.get(*position as usize));
        let titles: BTreeSet<&str> =
            own().filter_map(|paragraph| paragraph.section_path.last()).map(String::as_str).collect();
        let figures = segment.figures.iter().filter_map(|position| article.figures.get(*position as usize));
        let tables = segment.tables.iter().filter_map(|position| article.tables.get(*position as usize));
        let captions = figures
            .flat_map(|figure| figure.title.iter().chain(figure.caption.iter().map(|passage| &passage.text)))
            .chain(
                tables.flat_map(|table| table.title.iter().chain(table.caption.iter().map(|passage| &passage.text))),
            );
        Self {
            number: segment.number,
            paragraphs: own().map(|paragraph| read(&paragraph.passage.text)).collect(),
            headings: titles.into_iter().chain(captions.map(String::as_str)).map(read).collect(),
        }
    }
}

/// The listed diagnoses of one patient of a series, by their indices.
fn assigned(
    record: &ArticleRecord,
    patient: &PatientSegment,
    roles: &[SectionRole],
    names: &[Name],
    words: &ReportWords,
) -> Result<Vec<usize>, Refused> {
    let article = &record.article;
    let mut segments = series(article, roles).patients;
    if !segments.iter().any(|segment| segment.number == patient.number && segment.paragraphs == patient.paragraphs) {
        segments = vec![patient.clone()];
    }
    let texts: Vec<PatientTexts> = segments.iter().map(|segment| PatientTexts::of(article, segment, words)).collect();
    // For each diagnosis how plainly each patient's paragraphs name it; headings and captions of those whose paragraphs name none.
    let mut plainness: Vec<Vec<Plainness>> =
        names.iter().map(|name| texts.iter().map(|patient| name.plainness(&patient.paragraphs)).collect()).collect();
    let mut tried: Vec<String> = Vec::new();
    for (index, texts) in texts.iter().enumerate() {
        let is_named = |plainness: &Vec<Vec<Plainness>>| {
            plainness.iter().any(|row| row.get(index).is_some_and(|one| *one != Plainness::Not))
        };
        let mut by = "its text";
        if !is_named(&plainness) {
            by = "its headings and captions";
            for (row, name) in plainness.iter_mut().zip(names) {
                if let Some(one) = row.get_mut(index) {
                    *one = name.plainness(&texts.headings);
                }
            }
        }
        let named: Vec<&str> = plainness
            .iter()
            .zip(names)
            .filter(|(row, _)| row.get(index).is_some_and(|one| *one != Plainness::Not))
            .map(|(_, name)| name.label.as_str())
            .collect();
        tried.push(if named.is_empty() {
            format!("nothing in text, headings and captions of patient {}", texts.number)
        } else {
            format!("{} by {by} of patient {}", named.join(", "), texts.number).replace(" its ", " ")
        });
    }
    let mut own = Vec::new();
    let mut is_shared_by_some = false;
    let own_index = texts.iter().position(|texts| texts.number == patient.number).unwrap_or_default();
    for (index, row) in plainness.iter().enumerate() {
        // Where somebody's text names it plainly, a possibility in another's is none.
        let best = row.iter().max().copied().unwrap_or_default();
        let claims: Vec<bool> = row.iter().map(|one| *one != Plainness::Not && *one == best).collect();
        let n_claims = claims.iter().filter(|claims| **claims).count();
        if !claims.get(own_index).copied().unwrap_or(false) {
            continue;
        }
        is_shared_by_some |= n_claims > 1 && n_claims < texts.len();
        own.push(index);
    }
    if own.is_empty()
        && let [only] = names
        && plainness.iter().flatten().all(|one| *one == Plainness::Not)
    {
        // One diagnosis, which the title has for all.
        let title = ReadText::new(article.title.clone().unwrap_or_default(), words.extractor.context());
        if only.plainness(std::slice::from_ref(&title)) == Plainness::Not {
            tried.push("the title does not name it".to_owned());
        } else {
            own.push(0);
        }
    }
    if is_shared_by_some || own.is_empty() {
        let listed: Vec<&str> = names.iter().map(|name| name.label.as_str()).collect();
        let detail = format!("patient {}; listed: {}; {}", patient.number, listed.join(", "), tried.join("; "));
        return Err(Refused { reason: NOT_ASSIGNED, detail });
    }
    Ok(own)
}
