//! `extract_slots`: phrases of the vignette, copied into the 24-slot record (MedRoundsQA, 3.1, E.1).

use super::*;
use crate::record::question::AnsweredQuestion;
use crate::record::slots::{Grounding, Slot, SlotRecord, SlotValue, Span};
use crate::slots::extract::{SlotLexicon, extract};
use crate::text::sentences::split_lead_in;
use anyhow::Context;
use std::ops::Range;

pub const STAGE: StageDef = StageDef {
    name: "extract_slots",
    summary: "Copies phrases of the vignette into slots by rules: age, sex, complaint and its time, examination and laboratory sentences",
    shape: Shape::Record,
    revision: 1,
    inputs: &[Port::records::<AnsweredQuestion>("records")],
    outputs: &[Port::records::<SlotRecord>("records")],
    resources: &[ResourceDecl { name: "lexicon", summary: "words the rules look for, as TOML" }],
    reasons: &[],
    settings: SettingsType::of::<NoSettings>(),
    build,
};

/// The text that spans of a question point into.
pub const STEM: &str = "stem";

fn build(arguments: &StageArguments<'_>) -> anyhow::Result<AnyStage> {
    let text = arguments.resources.text("lexicon")?;
    let lexicon = SlotLexicon::parse(text).with_context(|| arguments.resources.file("lexicon").to_owned())?;
    Ok(AnyStage::record(ExtractSlots { lexicon }))
}

struct ExtractSlots {
    lexicon: SlotLexicon,
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
        let mut found = extract(&self.lexicon, &record.stem);
        found.sort_by_key(|found| (found.slot, found.range.start, found.range.end));
        let mut slots = Vec::with_capacity(found.len());
        for found in found {
            slots.push(SlotValue {
                slot: found.slot,
                value: record
                    .stem
                    .get(found.range.clone())
                    .context("a span that is not on character borders")?
                    .to_owned(),
                span: span(&record.stem, &found.range)?,
                grounding: Grounding::Exact,
            });
        }
        let mut flags = record.flags;
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
            extractor: "rules".to_owned(),
        });
        Ok(Verdict::Keep)
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
        check_with(
            &STAGE,
            "",
            &[("lexicon", lexicon)],
            &[question],
            |record: &SlotRecord| {
                let characters: Vec<char> = record.stem.chars().collect();
                let mut text = String::new();
                for value in &record.slots {
                    let copied: String =
                        characters[value.span.start as usize..value.span.end as usize].iter().collect();
                    assert_eq!(copied, value.value);
                    text += &format!("\n  {} {}", value.slot.as_str(), value.value);
                }
                let question: String =
                    characters[record.question.start as usize..record.question.end as usize].iter().collect();
                format!("{text}\n  ? {question}")
            },
            expect![[r#"
                keep t:q 
                  Symptom-Name fever and rash
                  Symptom-Time 3-day history
                  Medical-Examination Her temperature is 39.1°C (102.4°F).
                  Medical-Examination Examination shows white spots on the buccal mucosa.
                  Personal-Age 4-year-old
                  Personal-Sex girl
                  ? Which of the following is the most likely diagnosis?
            "#]],
        );
    }
}
