//! Which sentences report an examination, a test or vital signs.

use super::Case;
use super::patient::Patient;
use super::reading::Reading;
use std::ops::Range;

impl Case<'_> {
    /// For every sentence, whether it reports an examination, a test or vital signs.
    ///
    /// Once findings have begun, what follows are findings too, unless somebody tells something or a habit, a drug or a
    /// relative is named.
    pub(super) fn findings(&self, reading: &Reading<'_>, patient: &Patient) -> Vec<bool> {
        let lexicon = self.lexicon;
        let mut begun = false;
        let mut found = Vec::with_capacity(self.sentences.len());
        for (index, range) in self.sentences.iter().enumerate() {
            let text = self.slice(range.clone());
            let is_introduction = index == patient.sentence && lexicon.arrivals.is_match(text);
            let is_finding = !is_introduction
                && (lexicon.is_finding(text)
                    || (begun && !reading.is_all_treatment(range) && (lexicon.goes_on(text) || !reading.tells(range))));
            begun |= is_finding;
            // "Tongue is smooth": a part of the body without its owner is one under examination.
            let is_bare = !is_introduction
                && index > patient.sentence
                && lexicon.subjects.is_match(text)
                && text.split(' ').take(4).any(|word| matches!(word, "is" | "are" | "was" | "were"))
                && !text.starts_with("there")
                && !text.starts_with("no ")
                && reading.is_place(range.start);
            let is_finding = is_finding || is_bare || (!is_introduction && reading.looks(range));
            // "A viral panel is ordered, which shows"
            let is_plan = lexicon.plans.is_match(text)
                && !lexicon.measured.is_match(text)
                && ![" shows", " reveals", " demonstrates"].iter().any(|word| text.contains(word));
            found.push(is_finding && !is_plan);
        }
        found
    }

    /// A sentence without the stop it ends in.
    pub(super) fn statement(&self, sentence: &Range<usize>) -> Range<usize> {
        let text = self.slice(sentence.clone());
        sentence.start..sentence.start + text.trim_end_matches(['.', ' ', '\n', '"']).len()
    }

    /// Whether a sentence with weight or height holds no vital sign and no finding beside them.
    pub(super) fn is_measures_only(&self, sentence: &Range<usize>) -> bool {
        let text = self.slice(sentence.clone());
        let others =
            ["temperature", "pulse", "pressure", "respirat", "saturation", "heart", "examination", "shows", "appears"];
        text.len() < 140 && !others.iter().any(|word| text.contains(word)) && !self.lexicon.laboratory.is_match(text)
    }

    /// Whether a sentence reports what an instrument or a laboratory shows, and no eye could see.
    pub(super) fn is_instrumental(&self, sentence: &Range<usize>) -> bool {
        let text = self.slice(sentence.clone());
        (self.lexicon.laboratory.is_match(text) && !self.lexicon.examination_openings.is_match(text))
            || ["fundus", "fundosc", "fundusc", "ophthalmosc", "retina", "optic disc"]
                .iter()
                .any(|word| text.contains(word))
    }
}
