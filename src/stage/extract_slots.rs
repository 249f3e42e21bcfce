//! `extract_slots`: phrases of the vignette, copied into the 24-slot record (MedRoundsQA, 3.1, E.1).

use super::*;
use crate::record::question::AnsweredQuestion;
use crate::record::slots::{Slot, SlotRecord, SlotValue, Span};
use crate::slots::extract::{Extractor, ExtractorError, ExtractorFiles};
use crate::text::sentences::split_lead_in;
use anyhow::Context;
use std::ops::Range;

pub const STAGE: StageDef = StageDef {
    name: "extract_slots",
    summary: "Copies phrases of the vignette into the slots of the clinical record by rules, without a network",
    shape: Shape::Record,
    revision: 2,
    inputs: &[Port::records::<AnsweredQuestion>("records")],
    outputs: &[Port::records::<SlotRecord>("records")],
    resources: RESOURCES,
    reasons: &[],
    settings: SettingsType::of::<NoSettings>(),
    build,
};

/// The text that spans of a question point into.
pub const STEM: &str = "stem";

/// The files that the rule extractor reads.
pub const RESOURCES: &[ResourceDecl] = &[
    ResourceDecl { name: "lexicon", summary: "words of grammar that the rules look for, as TOML" },
    ResourceDecl { name: "terms", summary: "clinical terms with their slots, as CSV" },
    ResourceDecl { name: "context", summary: "words of negation, uncertainty, history and experiencer, as TOML" },
    ResourceDecl { name: "drugs", summary: "names of drugs, as TOML" },
];

/// The rule extractor of a node's resources.
pub fn extractor(resources: &Resources) -> anyhow::Result<Extractor> {
    let files = ExtractorFiles {
        lexicon: resources.text("lexicon")?,
        terms: resources.text("terms")?,
        context: resources.text("context")?,
        drugs: resources.text("drugs")?,
    };
    Extractor::parse(files).map_err(|error| {
        let name = match error {
            ExtractorError::Lexicon(_) => "lexicon",
            ExtractorError::Terms(_) => "terms",
            ExtractorError::Context(_) => "context",
            ExtractorError::Drugs(_) => "drugs",
        };
        anyhow::Error::from(error).context(resources.file(name).to_owned())
    })
}

fn build(arguments: &StageArguments<'_>) -> anyhow::Result<AnyStage> {
    Ok(AnyStage::record(ExtractSlots { extractor: extractor(arguments.resources)? }))
}

struct ExtractSlots {
    extractor: Extractor,
}

impl RecordStage for ExtractSlots {
    type In = AnsweredQuestion;
    type Out = SlotRecord;

    fn apply(
        &self,
        record: AnsweredQuestion,
        out: &mut Emitter<'_, SlotRecord>,
        _: &StageContext<'_>,
    ) -> anyhow::Result<Verdict> {
        let extraction = self.extractor.extract(&record.stem);
        let characters = CharOffsets::of(&record.stem);
        let mut slots = Vec::with_capacity(extraction.found.len());
        for found in extraction.found {
            let value = characters.slice(&found.range).context("a span outside of the stem")?.to_owned();
            let (start, end) = (u32::try_from(found.range.start)?, u32::try_from(found.range.end)?);
            slots.push(SlotValue::copied(found.slot, value, Span { text_id: STEM.to_owned(), start, end }));
        }
        let mut flags = record.flags;
        flags.extend(extraction.flags.into_iter().map(str::to_owned));
        if !slots.iter().any(|value| value.slot == Slot::SymptomName) {
            flags.push("no_symptom_name".to_owned());
        }
        let question = span(&record.stem, &split_lead_in(&record.stem).lead_in)?;
        out.emit(SlotRecord {
            record_id: record.record_id,
            provenance: record.provenance,
            stem: record.stem,
            question,
            options: record.options,
            answer_key: record.answer_key,
            answer_text: record.answer_text,
            ground_truth_diagnosis: record.ground_truth_diagnosis,
            exam: record.exam,
            subject: record.subject,
            flags,
            slots,
            rejected: Vec::new(),
            fidelity: None,
            specialty: None,
            extractor: "rules".to_owned(),
        });
        Ok(Verdict::Keep)
    }
}

/// Byte offsets of the characters of a text.
struct CharOffsets<'a> {
    text: &'a str,
    /// None if every character is one byte.
    offsets: Option<Vec<usize>>,
}

impl<'a> CharOffsets<'a> {
    fn of(text: &'a str) -> Self {
        let offsets =
            (!text.is_ascii()).then(|| text.char_indices().map(|(offset, _)| offset).chain([text.len()]).collect());
        Self { text, offsets }
    }

    fn slice(&self, characters: &Range<usize>) -> Option<&'a str> {
        match &self.offsets {
            None => self.text.get(characters.clone()),
            Some(offsets) => self.text.get(*offsets.get(characters.start)?..*offsets.get(characters.end)?),
        }
    }
}

/// A byte range of the stem in Unicode scalar values.
fn span(stem: &str, bytes: &Range<usize>) -> anyhow::Result<Span> {
    let count = |text: Option<&str>| -> anyhow::Result<u32> {
        Ok(u32::try_from(text.context("a span that is not on character borders")?.chars().count())?)
    };
    let start = count(stem.get(..bytes.start))?;
    let length = count(stem.get(bytes.clone()))?;
    Ok(Span { text_id: STEM.to_owned(), start, end: start + length })
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::stage::testing::{answered, check_with};
    use expect_test::expect;

    #[test]
    fn spans_count_characters_and_point_at_their_values() {
        let mut question = answered("q", "Measles", &["Measles", "Mumps", "Rubella", "Scabies"]);
        question.stem =
            "𝛽 – Ä: A 4-year-old girl is brought to the physician because of a 3-day history of fever and rash. \
            Her temperature is 39.1°C (102.4°F). Examination shows white spots on the buccal mucosa. \
            Which of the following is the most likely diagnosis?"
                .to_owned();
        let lexicon = include_str!("../../pipelines/lexicon/slots.toml");
        let terms = include_str!("../../pipelines/lexicon/terms.csv");
        let context = include_str!("../../pipelines/lexicon/context.toml");
        let drugs = include_str!("../../pipelines/lexicon/drugs.toml");
        check_with(
            &STAGE,
            "",
            &[("lexicon", lexicon), ("terms", terms), ("context", context), ("drugs", drugs)],
            &[question],
            |record: &SlotRecord| {
                let characters: Vec<char> = record.stem.chars().collect();
                let mut text = String::new();
                for value in &record.slots {
                    let span = value.span.as_ref().unwrap();
                    let copied: String = characters[span.start as usize..span.end as usize].iter().collect();
                    assert_eq!(copied, value.value);
                    text += &format!("\n  {} {}", value.slot.as_str(), value.value);
                }
                let question: String =
                    characters[record.question.start as usize..record.question.end as usize].iter().collect();
                format!("{text}\n  ? {question}")
            },
            expect![[r#"
                keep t:q 
                  Symptom-Name fever
                  Symptom-Name rash
                  Symptom-Time 3-day history
                  Symptom-Color white
                  Symptom-Shape rash
                  Symptom-Shape spots
                  Medical-Examination Her temperature is 39.1°C (102.4°F)
                  Medical-Examination Examination shows white spots on the buccal mucosa
                  Personal-Age 4-year-old
                  Personal-Sex girl
                  ? Which of the following is the most likely diagnosis?
            "#]],
        );
    }
}
