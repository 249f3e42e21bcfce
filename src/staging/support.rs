//! Which sentences of an article support a text that somebody else wrote, and how much of an article a case covers.

use super::diagnosis::{Located, text_of};
use super::presentation::source_text;
use super::sections::SectionRole;
use crate::record::article::{Article, PatientSegment, Region};
use crate::record::staged::{Quote, StagedText};
use crate::text::normalize::for_matching;
use crate::text::sentences::sentences;
use std::collections::BTreeSet;
use std::ops::Range;

/// Share of the words of a sentence that one sentence of the article must hold to support it. A model may join and shorten,
/// so this is less than what makes two texts alike.
const LEAST_SHARE: f64 = 0.5;

/// The sentences of an article, ready to be compared.
pub struct Sentences {
    all: Vec<Sentence>,
}

struct Sentence {
    place: Located,
    words: BTreeSet<String>,
}

/// Words that carry meaning, in the form in which they are compared; numbers with all their digits.
fn words(text: &str) -> BTreeSet<String> {
    let folded = for_matching(text);
    let is_part = |c: char| c.is_alphanumeric() || matches!(c, '.' | ',' | '/' | '%');
    let words = folded.split(|c: char| !is_part(c)).map(|word| word.trim_matches(['.', ',', '/']));
    let is_content = |word: &&str| word.chars().count() > 2 || word.chars().any(|c| c.is_ascii_digit());
    words.filter(is_content).map(str::to_owned).collect()
}

impl Sentences {
    /// Of title, abstract, body and captions; of one patient of several, what belongs to that patient.
    pub fn of(article: &Article, patient: Option<&PatientSegment>) -> Self {
        let mut ids: Vec<String> = Vec::new();
        for (position, paragraph) in (0u32..).zip(&article.paragraphs) {
            if paragraph.region == Region::Body && patient.is_none_or(|segment| segment.paragraphs.contains(&position))
            {
                ids.push(format!("p{position}"));
            }
        }
        for (position, figure) in (0u32..).zip(&article.figures) {
            if patient.is_none_or(|segment| segment.figures.contains(&position)) {
                ids.extend((0..figure.caption.len()).map(|number| format!("f{position}.{number}")));
            }
        }
        for (position, text) in article.abstracts.iter().enumerate().filter(|_| patient.is_none()) {
            ids.extend((0..text.paragraphs.len()).map(|number| format!("a{position}.{number}")));
        }
        ids.extend(article.title.is_some().then(|| "title".to_owned()));
        let mut all = Vec::new();
        let mut add = |text_id: &str, text: &str, range: Range<usize>| {
            let words = words(text.get(range.clone()).unwrap_or_default());
            if !words.is_empty() {
                let place = Located { text_id: text_id.to_owned(), start: range.start, end: range.end };
                all.push(Sentence { place, words });
            }
        };
        for text_id in ids {
            let Some(text) = text_of(article, &text_id) else { continue };
            sentences(text).into_iter().for_each(|range| add(&text_id, text, range));
        }
        // The rows of a table, each of which says something on its own.
        for position in (0..article.tables.len()).filter(|_| patient.is_none()) {
            let text_id = format!("t{position}");
            let Some(text) = source_text(article, &text_id) else { continue };
            let mut start = 0;
            for line in text.split_inclusive('\n') {
                let end = start + line.trim_end().len();
                add(&text_id, &text, start..end);
                start += line.len();
            }
        }
        Self { all }
    }

    /// For each sentence of a text, and each part of a list, the sentence of the article that supports it best, if one does.
    pub fn support(&self, text: &str) -> Vec<Option<Located>> {
        let sentences = sentences(text).into_iter().filter_map(|range| text.get(range));
        sentences
            .flat_map(|sentence| sentence.split(';'))
            .filter(|part| part.chars().any(char::is_alphanumeric))
            .map(|part| self.best(part))
            .collect()
    }

    fn best(&self, sentence: &str) -> Option<Located> {
        let wanted = words(sentence);
        let numbers: Vec<&String> = wanted.iter().filter(|word| word.chars().any(|c| c.is_ascii_digit())).collect();
        let mut best: Option<(f64, &Sentence)> = None;
        for candidate in &self.all {
            // A number that the article does not say there is another value.
            if numbers.iter().any(|number| !candidate.words.contains(*number)) {
                continue;
            }
            let n_shared = wanted.intersection(&candidate.words).count();
            let share = n_shared as f64 / wanted.len().max(1) as f64;
            // Of two that hold as much, the shorter one says it more plainly.
            let is_better = |(so_far, known): (f64, &Sentence)| {
                share > so_far || (share == so_far && candidate.words.len() < known.words.len())
            };
            if share >= LEAST_SHARE && best.is_none_or(is_better) {
                best = Some((share, candidate));
            }
        }
        best.map(|(_, sentence)| sentence.place.clone())
    }
}

/// Sentences about the patient in the body, and those of them that a quote touches.
pub fn coverage(
    article: &Article,
    roles: &[SectionRole],
    patient: Option<&PatientSegment>,
    texts: &[&StagedText],
) -> (u32, u32) {
    let quotes: Vec<&Quote> = texts.iter().flat_map(|text| &text.quotes).collect();
    let (mut n_sentences, mut n_covered) = (0, 0);
    for ((position, paragraph), role) in (0u32..).zip(&article.paragraphs).zip(roles) {
        let is_own = patient.is_none_or(|segment| segment.paragraphs.contains(&position));
        if paragraph.region != Region::Body || !role.is_of_patient() || !is_own {
            continue;
        }
        let text = &paragraph.passage.text;
        let text_id = format!("p{position}");
        for range in sentences(text) {
            let before = |byte: usize| text.get(..byte).map_or(0, |before| before.chars().count());
            let (start, end) = (before(range.start), before(range.end));
            let touches = |quote: &&Quote| {
                quote.span.text_id == text_id && (quote.span.start as usize) < end && start < quote.span.end as usize
            };
            n_sentences += 1;
            n_covered += u32::from(quotes.iter().any(touches));
        }
    }
    (n_sentences, n_covered)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::stage::testing::article_record;

    #[test]
    fn a_sentence_is_supported_by_one_that_says_the_same() {
        let record = article_record(
            "1",
            "A case",
            "<sec><title>Case</title><p>A 40-year-old man had pain in the left knee. His temperature was 38.4 °C.</p></sec>",
        );
        let sentences = Sentences::of(&record.article, None);
        let found = sentences.support(
            "The man had left knee pain. Temperature 38.4 °C was measured. Temperature 39.4 °C. Sugar was high.",
        );
        let starts: Vec<Option<usize>> = found.iter().map(|place| place.as_ref().map(|place| place.start)).collect();
        assert_eq!(starts, [Some(0), Some(45), None, None]);
    }
}
