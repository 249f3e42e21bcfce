//! From a case report to a PatientVector by rules (MTDiag, 4.1.3, 4.2.1, B.3 and B.5): which diagnoses are true, who the patient
//! is, what brought the patient, what was found before the diagnosis was made. Pure: an article in, values out.
//!
//! What of an article may be told is decided by [`crate::staging`], what words mean by the rule extractor of
//! [`crate::slots`], numbers by [`crate::clinical`]. Here they meet, and everything keeps the place where the article says it.
//! Nothing that a patient may be told names a true diagnosis: what does is left out, and the record says so.

mod demographics;
mod history;
mod measurements;
mod story;
mod symptoms;
mod truth;

use std::cell::Cell;
use std::collections::BTreeMap;

use crate::clinical::ClinicalWords;
use crate::record::article::ArticleRecord;
use crate::record::slots::Slot;
use crate::record::staged::StagedText;
use crate::record::vector::{
    CasePresentation, Dataset, Diagnosis, GroundTruth, NarrativeKind, NarrativeText, Origin, PatientFacts,
    PatientVector, ProvenanceTier,
};
use crate::slots::extract::{Extraction, Extractor, Found};
use crate::staging::diagnosis::Located;
use crate::staging::examinations::Examinations;
use crate::staging::masking::{Mask, MaskWords, RefusalKind, figure_references};
use crate::staging::presentation::{Draft, presentation};
use crate::staging::sections::roles;
use crate::staging::suitability::CaseReportRules;
use crate::text::leakage::Synonyms;

pub use demographics::DemographicWords;
use measurements::Measured;
use story::{Part, Story, Texts, order, overlap, slice};
pub use symptoms::SymptomTerms;
use truth::{Truth, truth};

/// Names patterns of folded text, which are compiled at their first use. Case makes no difference.
macro_rules! patterns {
    ($($(#[$doc:meta])* $name:ident = $pattern:expr;)+) => {
        $($(#[$doc])* static $name: std::sync::LazyLock<regex::Regex> =
            std::sync::LazyLock::new(|| crate::vector::fixed(&format!("(?i){}", $pattern)));)+

        #[cfg(test)]
        #[test]
        fn patterns_compile() {
            for pattern in [$(&$name),+] {
                assert!(!pattern.is_match(""), "{pattern:?} matches empty text");
            }
        }
    };
}
use patterns;

fn fixed(pattern: &str) -> regex::Regex {
    // The patterns are constants, and a test of their module compiles each.
    regex::Regex::new(pattern).expect("a fixed pattern")
}

patterns! {
    /// A sentence about a relative's diseases.
    OF_RELATIVE = r"^(?:his|her|the patient's|a|one|no)\s+(?:(?:maternal|paternal|younger|older|elder|twin)\s+)*(?:grandmother|grandfather|mother|father|parents|brother|sister|siblings?|aunt|uncle|cousin|son|daughter|relative)s?\b.{0,40}?\b(?:had|has|have|died|was|were)\b|^family history\b";
    /// A sentence about medications, habits and size, which say nothing of the course of this disease.
    OF_PAST = r"^(?:his|her|the patient's)\s+(?:(?:regular|current|home|usual|long-term)\s+)*(?:medications?|height|weight|allergies)\b|^(?:she|he)\s+(?:takes?|took|smoke[sd]|drinks?|drank|did not (?:smoke|drink)|had (?:never|quit) smok\w+|had smoked|had no (?:known )?(?:allerg|chronic)|(?:had|has) [^,;.]{3,60} and (?:took|takes)|(?:had|has) (?:had )?[^,;.]{3,40} (?:years|months) (?:ago|before|earlier)|was \d+ (?:inches|cm) tall)\b|^(?:smoking|tobacco|alcohol|allergies|medications?)(?: history)?:";
    /// Names of common diseases that share a part of a word with many others.
    SHARED_WORD = r"^(?:spondylitis|myocardial|cardiac|infarction|arthritis|hypertension|diabetes|anemia|cancer)$";
}

/// Most values of one slot that are read.
const MAX_VALUES: usize = 150;

/// The flag of a record that no list beside the articles names.
pub const NOT_IN_LIST: &str = "not_in_list";
/// The flag of a record of which something was left out because it names a true diagnosis.
pub const MASKED_DIAGNOSIS: &str = "masked_diagnosis";

/// What the rules read, beside the article.
pub struct ReportWords {
    pub rules: CaseReportRules,
    pub examinations: Examinations,
    pub masking: MaskWords,
    pub synonyms: Synonyms,
    pub extractor: Extractor,
    pub symptoms: SymptomTerms,
    pub clinical: ClinicalWords,
    pub demographics: DemographicWords,
}

/// Why there is no vector.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Refused {
    /// One of [`REASONS`].
    pub reason: &'static str,
    pub detail: String,
}

/// Every reason of [`Refused`].
pub const REASONS: &[&str] =
    &["diagnosis_not_assigned", "diagnosis_unclear", "no_diagnosis", "no_presentation", "no_symptom"];

/// The vector of the patient of a record, without its citation and makers.
///
/// # Errors
/// If the article states no diagnosis, nothing that may be told of the patient, or no symptom.
pub fn patient_vector(record: &ArticleRecord, words: &ReportWords) -> Result<PatientVector, Refused> {
    let (article, patient) = (&record.article, record.patient.as_ref());
    let roles = roles(article);
    let truth = truth(record, &roles, words)?;
    let masks = truth.masks(words);
    // The mask of the staging knows all names; a name that is a phrase gives its words by its own mask.
    let mut all = truth.masked.first().cloned().ok_or_else(|| refused("no_diagnosis", "none is listed"))?;
    for other in truth.masked.iter().skip(1) {
        all.synonyms.push(other.diagnosis.clone());
        all.synonyms.extend(other.synonyms.iter().cloned());
    }
    let mask = Mask::with_synonyms(&all, &words.examinations, &words.masking, &words.synonyms);
    let draft = presentation(article, &roles, patient, &mask, &words.examinations);
    if draft.presentation.chief_complaint.is_none() && draft.presentation.history_of_present_illness.is_none() {
        return Err(refused("no_presentation", "neither a chief complaint nor a history of the present illness"));
    }
    let is_masked = Cell::new(false);
    let is_free = |words: &str| {
        let names = masks.iter().any(|mask| mask.named(words).is_some()) || mask.named(words).is_some();
        is_masked.set(is_masked.get() || names);
        !names
    };
    let mut texts = Texts::of(article);
    let told = Told::of(record, &draft, &mask, words, &mut texts);
    is_masked.set(told.is_masked);
    let (story, extraction) = told.story(record, words);
    let found = first_of_each_slot(extraction.found);

    let symptoms = symptoms::symptoms(&story, &found, told.complaint.as_ref(), &words.symptoms, &is_free, &mut texts);
    let chief_complaint = symptoms::chief(&story, &symptoms, told.complaint.as_ref());
    if chief_complaint.is_empty() {
        let complaint = told.complaint.as_ref().and_then(|place| slice(article, place));
        let detail = complaint.map_or_else(|| "no complaint is told".to_owned(), |words| format!("complaint: {words}"));
        return Err(refused("no_symptom", &detail));
    }
    let demographics = demographics::demographics(&story, &found, &words.demographics, &is_free, &mut texts);
    let mut past = history::past(&story, &found, &words.symptoms, &is_free, &mut texts);
    let who = [&demographics.marital_status, &demographics.education, &demographics.insurance].map(Option::as_deref);
    let is_who = |name: &str| who.iter().copied().flatten().any(|known| name.contains(known) || known.contains(name));
    past.antecedents.retain(|one| !is_who(&one.name));
    let mut measured = Measured::default();
    let context = words.extractor.context();
    for place in told.history.iter().chain(&told.laboratory) {
        measured.read(article, place, false, &words.clinical, context, &mut texts);
    }
    for place in &told.later {
        if slice(article, place).is_some_and(|words| mask.named(&words).is_none()) {
            measured.read(article, place, true, &words.clinical, context, &mut texts);
        }
    }
    for position in tables(record) {
        let number = patient.map(|patient| patient.number);
        measured.read_table(article, position, number, &words.clinical, &is_free, &mut texts);
    }
    let measured = measured.finish();
    let narrative = narrative(&told, &story, &found, record, &is_free, &mut texts);

    let mut diagnoses = ground_truth(&truth, &mut texts).into_iter();
    let primary = diagnoses.next().ok_or_else(|| refused("no_diagnosis", "none is listed"))?;
    let mut flags = record.flags.clone();
    if record.listed_diagnoses.is_empty() {
        flags.push(NOT_IN_LIST.to_owned());
    }
    if is_masked.get() {
        flags.push(MASKED_DIAGNOSIS.to_owned());
    }
    flags.extend(extraction.flags.into_iter().map(str::to_owned));
    flags.sort_unstable();
    flags.dedup();
    let id = record.record_id.first_occurrence();
    let native_id = id.as_str().split_once(':').map(|(_, native)| native.to_owned());
    Ok(PatientVector {
        record_id: record.record_id.clone(),
        provenance: record.provenance.clone(),
        origin: Origin { dataset: Dataset::Ajcr, stratum: None, native_id, language: "en".to_owned() },
        ground_truth: GroundTruth { primary, secondary: diagnoses.collect(), differential: Vec::new() },
        facts: PatientFacts {
            demographics,
            vitals: measured.vitals,
            tests: measured.tests,
            narrative,
            antecedents: past.antecedents,
            absent_antecedents: None,
            family_history: past.family_history,
            medications: past.medications,
        },
        presentation: CasePresentation {
            chief_complaint,
            symptoms: symptoms.into_iter().map(|one| one.presentation).collect(),
            absent_symptoms: None,
        },
        texts: texts.used(),
        citation: None,
        made_by: record.made_by.clone(),
        replies: record.replies.clone(),
        flags,
    })
}

/// The first values of each slot: a report has some dozens, and the time is bounded.
fn first_of_each_slot(mut found: Vec<Found>) -> Vec<Found> {
    let mut n_of_slot: BTreeMap<Slot, usize> = BTreeMap::new();
    found.retain(|one| {
        let n = n_of_slot.entry(one.slot).or_default();
        *n += 1;
        *n <= MAX_VALUES
    });
    found
}

fn refused(reason: &'static str, detail: &str) -> Refused {
    Refused { reason, detail: detail.to_owned() }
}

fn ground_truth(truth: &Truth, texts: &mut Texts<'_>) -> Vec<Diagnosis> {
    let diagnosis = |one: &truth::TrueDiagnosis| Diagnosis {
        label: one.label.clone(),
        provenance_tier: ProvenanceTier::AjcrGold,
        basis: one.basis,
        spans: texts.spans(&one.places),
        ..Diagnosis::default()
    };
    truth.diagnoses.iter().map(diagnosis).collect()
}

/// Tables of the patient: of a series those of the segment; else all of the article.
fn tables(record: &ArticleRecord) -> Vec<u32> {
    match &record.patient {
        Some(segment) => segment.tables.clone(),
        None => (0u32..)
            .zip(&record.article.tables)
            .filter(|(_, table)| table.place.sub_article.is_none())
            .map(|(position, _)| position)
            .collect(),
    }
}

/// What the staging lets be told, as places.
struct Told {
    /// Who it is, by the first stretch; further ones say where the person is from and what the person does.
    person: Option<Located>,
    more_of_person: Vec<Located>,
    complaint: Option<Located>,
    /// History and findings at the bedside, in the order of the article.
    history: Vec<Located>,
    laboratory: Vec<Located>,
    /// Sentences of the later course.
    later: Vec<Located>,
    /// Something of the presentation names the diagnosis.
    is_masked: bool,
}

impl Told {
    fn of(record: &ArticleRecord, draft: &Draft, mask: &Mask<'_>, words: &ReportWords, texts: &mut Texts<'_>) -> Self {
        let article = &record.article;
        let mut places = |text: &Option<StagedText>| -> Vec<Located> {
            let quotes = text.iter().flat_map(|text| &text.quotes);
            quotes.filter_map(|quote| texts.place(&quote.span)).collect()
        };
        let told = &draft.presentation;
        let mut of_person = places(&told.demographic_information).into_iter();
        let person = of_person.next();
        let mut more_of_person: Vec<Located> = of_person.collect();
        // A pronoun says nothing here.
        more_of_person.retain(|place| slice(article, place).is_some_and(|words| words.contains(' ')));
        let complaint = places(&told.chief_complaint).into_iter().next();
        let mut history = places(&told.history_of_present_illness);
        history.retain(|place| slice(article, place).is_some_and(|words| words.contains(char::is_alphanumeric)));
        let mut laboratory: Vec<Located> =
            places(&told.lab_result).into_iter().filter(|place| !place.text_id.starts_with('t')).collect();
        // The presentation ends with the last stretch that may be told.
        let key = |place: &Located| (order(&place.text_id), place.start);
        let last = history.iter().chain(&laboratory).filter(|place| place.text_id.starts_with('p')).map(key).max();
        let is_before = |place: &Located| last.as_ref().is_some_and(|last| key(place) < *last);
        let mut is_masked = false;
        let mut later = Vec::new();
        for withheld in &draft.withheld {
            let place = &withheld.place;
            match withheld.kind {
                // A sentence behind one that names the diagnosis is kept back with it; here each stands for itself.
                RefusalKind::NamesDiagnosis if is_before(place) => {
                    let Some(sentence) = slice(article, place) else { continue };
                    let is_of_relative = OF_RELATIVE.is_match(&sentence);
                    let is_named = match is_of_relative {
                        true => masks_relative(mask, &sentence),
                        false => mask.named(&sentence).is_some(),
                    };
                    if is_named {
                        is_masked = true;
                    } else if is_of_relative || OF_PAST.is_match(&sentence) || mask.refusal(&sentence).is_none() {
                        history.extend(without_references(place, &sentence));
                    }
                }
                // What a relative had shows no picture of the patient; habits and medications are no treatment of this disease.
                RefusalKind::ImagingResult
                | RefusalKind::PathologyResult
                | RefusalKind::EndoscopyResult
                | RefusalKind::OperativeFinding
                | RefusalKind::ElectricalTracing
                | RefusalKind::SkinMorphology
                | RefusalKind::EyeMorphology
                | RefusalKind::Conclusion
                | RefusalKind::Treatment
                | RefusalKind::Outcome
                    if is_before(place)
                        && slice(article, place).is_some_and(|sentence| {
                            let is_named = mask.named(&sentence).is_some();
                            OF_RELATIVE.is_match(&sentence) && !masks_relative(mask, &sentence)
                                || OF_PAST.is_match(&sentence) && !is_named
                        }) =>
                {
                    history
                        .extend(slice(article, place).iter().flat_map(|sentence| without_references(place, sentence)));
                }
                // A sentence of the bedside that a figure shows as well: the case has no figures, so it may be told here.
                RefusalKind::FigureReference if is_before(place) => {
                    let Some(sentence) = slice(article, place).filter(|sentence| mask.refusal(sentence).is_none())
                    else {
                        continue;
                    };
                    let is_laboratory = !crate::clinical::results::results_in(&sentence, &words.clinical).is_empty();
                    let parts = without_references(place, &sentence);
                    if is_laboratory { &mut laboratory } else { &mut history }.extend(parts);
                }
                RefusalKind::Outcome | RefusalKind::Treatment if !is_before(place) => later.push(place.clone()),
                _ => {}
            }
        }
        history.sort_by_key(key);
        laboratory.sort_by_key(key);
        Self { person, more_of_person, complaint, history, laboratory, later, is_masked }
    }

    /// The story with what is found in it. Where person or complaint stand in no sentence of the history, they begin it.
    fn story(&self, record: &ArticleRecord, words: &ReportWords) -> (Story, Extraction) {
        let article = &record.article;
        let is_told = |place: &Located| self.history.iter().any(|other| overlap(place, other));
        let missing = |place: &Option<Located>| place.clone().filter(|place| !is_told(place));
        let mut parts = Vec::new();
        if let Some(person) = missing(&self.person) {
            parts.push(Part::Piece(person));
            for more in self.more_of_person.iter().filter(|place| !is_told(place)) {
                parts.extend([Part::Words(", "), Part::Piece(more.clone()), Part::Words(",")]);
            }
        }
        match (missing(&self.person), missing(&self.complaint)) {
            (Some(_), Some(complaint)) => {
                parts.extend([Part::Words(" presented with "), Part::Piece(complaint), Part::Words(". ")]);
            }
            (Some(_), None) => parts.push(Part::Words(" was seen. ")),
            (None, Some(complaint)) if self.person.is_none() => {
                parts.extend([Part::Words("A patient presented with "), Part::Piece(complaint), Part::Words(". ")]);
            }
            (None, _) => {}
        }
        let mut last: Option<&Located> = None;
        for place in &self.history {
            if let Some(before) = last {
                parts.push(Part::Words(border(record, before, place)));
            }
            parts.push(Part::Piece(place.clone()));
            last = Some(place);
        }
        if let (Some(complaint), Some(_)) = (missing(&self.complaint), self.person.as_ref())
            && missing(&self.person).is_none()
        {
            parts.extend([Part::Words(" The patient presented with "), Part::Piece(complaint), Part::Words(".")]);
        }
        let context = words.extractor.context();
        let story = Story::of(article, &parts, context);
        let extraction = words.extractor.extract(&story.read.text);
        if !extraction.flags.contains(&"no_patient") {
            return (story, extraction);
        }
        // Nobody is introduced where the first sentence may not be told.
        parts.insert(0, Part::Words("A patient was seen. "));
        let story = Story::of(article, &parts, context);
        let extraction = words.extractor.extract(&story.read.text);
        (story, extraction)
    }
}

/// Whether a sentence about a relative names the diagnosis. A word that only shares letters with it, as diseases of one organ do,
/// names none.
fn masks_relative(mask: &Mask<'_>, sentence: &str) -> bool {
    mask.named(sentence).is_some_and(|named| !SHARED_WORD.is_match(&named))
}

/// A sentence without references to figures and tables in brackets.
fn without_references(place: &Located, sentence: &str) -> Vec<Located> {
    let mut parts = Vec::new();
    let mut from = 0;
    let end = sentence.len()..sentence.len();
    for end in figure_references(sentence).into_iter().chain(std::iter::once(end)) {
        let part = sentence.get(from..end.start).unwrap_or_default();
        let start = from + part.len() - part.trim_start().len();
        let length = part.trim().len();
        if part.contains(char::is_alphanumeric) {
            let start = place.start + start;
            parts.push(Located { text_id: place.text_id.clone(), start, end: start + length });
        }
        from = end.end.max(from);
    }
    parts
}

/// What parts two stretches: a stop where the first has none and a reference is not all that was left out between them.
fn border(record: &ArticleRecord, one: &Located, other: &Located) -> &'static str {
    let words = slice(&record.article, one).unwrap_or_default();
    let is_same = one.text_id == other.text_id && one.end <= other.start;
    let between = is_same
        .then(|| slice(&record.article, &Located { text_id: one.text_id.clone(), start: one.end, end: other.start }));
    let is_reference = match between {
        Some(between) => between.is_none_or(|between| without_references(one, &between).is_empty()),
        None => false,
    };
    let is_closed = words.ends_with(['.', '!', '?', ';', ':']);
    if is_reference || is_closed { " " } else { ". " }
}

/// History and findings at the bedside as they may be shown.
fn narrative(
    told: &Told,
    story: &Story,
    found: &[Found],
    record: &ArticleRecord,
    is_free: &dyn Fn(&str) -> bool,
    texts: &mut Texts<'_>,
) -> Vec<NarrativeText> {
    let (mut history, mut examination): (Vec<&Located>, Vec<&Located>) = (Vec::new(), Vec::new());
    for place in &told.history {
        if !slice(&record.article, place).is_some_and(|words| is_free(&words)) {
            continue;
        }
        let piece = story.pieces().find(|(_, other)| *other == place).map(|(range, _)| range.clone());
        let is_finding = piece.is_some_and(|piece| {
            let covered = found.iter().filter(|one| one.slot == Slot::MedicalExamination);
            let covered =
                covered.map(|one| one.range.end.min(piece.end).saturating_sub(one.range.start.max(piece.start)));
            2 * covered.sum::<usize>() > piece.len()
        });
        if is_finding { &mut examination } else { &mut history }.push(place);
    }
    let mut text = |kind: NarrativeKind, places: Vec<&Located>| {
        let mut words = String::new();
        let mut spans = Vec::new();
        let mut last: Option<&Located> = None;
        for place in places {
            let Some(stretch) = slice(&record.article, place) else { continue };
            let Some(span) = texts.span(place) else { continue };
            words.push_str(last.map_or("", |last| border(record, last, place)));
            words.push_str(&stretch);
            spans.push(span);
            last = Some(place);
        }
        (!words.is_empty()).then_some(NarrativeText { kind, text: words, spans })
    };
    let history = text(NarrativeKind::HistoryOfPresentIllness, history);
    history.into_iter().chain(text(NarrativeKind::PhysicalExamination, examination)).collect()
}

#[cfg(test)]
mod tests;
