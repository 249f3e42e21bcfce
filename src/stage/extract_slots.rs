//! `extract_slots`: phrases of the vignette, copied into the 24-slot record (MedRoundsQA, 3.1, E.1), by rules or by a model.
//!
//! A model's phrase is looked for in the vignette here, so that every value has its place; whether the text supports it is
//! decided by `score_fidelity`, for rules and models alike.

use super::ask::Asking;
use super::coerce::{self, CoercionCounts, FieldRule, MissingWords};
use super::prompt::{COPIED_EXAMPLE, PROMPT, Variable};
use super::score_fidelity::subject;
use super::*;
use crate::dag::RULES;
use crate::record::model::{add_maker, field};
use crate::record::question::AnsweredQuestion;
use crate::record::slots::{Slot, SlotRecord, SlotValue, Span};
use crate::slots::extract::{Extractor, ExtractorError, ExtractorFiles};
use crate::text::context::ContextRules;
use crate::text::grounding::SourceText;
use crate::text::sentences::split_lead_in;
use anyhow::Context;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use serde_json::{Map, Value, json};
use std::collections::BTreeMap;
use std::ops::Range;

pub const STAGE: StageDef = StageDef {
    name: "extract_slots",
    summary: "Copies phrases of the vignette into the slots of the clinical record: by rules, without a network, or by a model",
    shape: Shape::Model,
    revision: 5,
    inputs: &[Port::records::<AnsweredQuestion>("records")],
    outputs: &[Port::records::<SlotRecord>("records")],
    resources: &[
        RESOURCES[0],
        RESOURCES[1],
        RESOURCES[2],
        RESOURCES[3],
        ResourceDecl { name: PROMPT, summary: "what a model is asked, as Markdown with a `vignette`" },
    ],
    reasons: &[COPIED_EXAMPLE],
    settings: SettingsType::of::<ExtractSettings>(),
    build,
};

#[derive(Serialize, Deserialize, JsonSchema)]
#[serde(default, deny_unknown_fields)]
struct ExtractSettings {
    /// The model that extracts, by its name under `[models]`; `rules` for none.
    model: String,
}

impl Default for ExtractSettings {
    fn default() -> Self {
        Self { model: RULES.to_owned() }
    }
}

impl Settings for ExtractSettings {
    fn models(&self) -> Vec<String> {
        vec![self.model.clone()]
    }
}

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
    let settings: ExtractSettings = arguments.settings()?;
    let resources = arguments.resources;
    let asking = Asking::new(resources, &["vignette"], "slots", reply_schema())?;
    Ok(AnyStage::model(ExtractSlots { extractor: extractor(resources)?, model: settings.model, asking }))
}

struct ExtractSlots {
    extractor: Extractor,
    model: String,
    asking: Asking,
}

/// Every slot that a vignette can fill, each with a list of phrases. All are required, as servers that enforce a schema
/// want it; an empty list says that the vignette has nothing.
fn reply_schema() -> Value {
    let slots = || Slot::ALL.into_iter().filter(|slot| *slot != Slot::GroundTruthDiagnosis);
    let properties: Map<String, Value> =
        slots().map(|slot| (slot.as_str().to_owned(), json!({"type": "array", "items": {"type": "string"}}))).collect();
    let names: Vec<&str> = slots().map(Slot::as_str).collect();
    json!({"type": "object", "properties": properties, "required": names, "additionalProperties": false})
}

impl ModelStage for ExtractSlots {
    type In = AnsweredQuestion;
    type Out = SlotRecord;

    fn calls(&self, record: &AnsweredQuestion, _: &StageContext<'_>) -> anyhow::Result<Vec<Call>> {
        let variables = BTreeMap::from([("vignette", Variable::Source(record.stem.clone()))]);
        Ok(vec![self.asking.call(&self.model, &variables, 0)?])
    }

    fn read(
        &self,
        mut record: AnsweredQuestion,
        results: Vec<CallResult>,
        out: &mut Emitter<'_, SlotRecord>,
    ) -> anyhow::Result<Verdict> {
        let replies = match complete(results) {
            Ok(replies) => replies,
            Err(failure) => return Ok(failure.quarantine()),
        };
        let [reply] = replies.as_slice() else { anyhow::bail!("{} replies to one call", replies.len()) };
        if let Some(fault) = self.asking.fault(reply) {
            return Ok(Verdict::Quarantine(Cause::new(fault, reply.model.clone())));
        }
        let phrases = reply.value.as_object().context("a reply that is no object")?;
        let (slots, flags) = place_phrases(&record.stem, self.extractor.context(), phrases)?;
        record.replies.push(reply.trace(STAGE.name));
        out.emit(slot_record(record, slots, flags, &reply.model)?);
        Ok(Verdict::Keep)
    }

    fn without_model(&self, record: AnsweredQuestion, out: &mut Emitter<'_, SlotRecord>) -> anyhow::Result<Verdict> {
        let extraction = self.extractor.extract(&record.stem);
        let characters = CharOffsets::of(&record.stem);
        let mut slots = Vec::with_capacity(extraction.found.len());
        for found in extraction.found {
            let value = characters.slice(&found.range).context("a span outside of the stem")?.to_owned();
            let (start, end) = (u32::try_from(found.range.start)?, u32::try_from(found.range.end)?);
            slots.push(SlotValue::copied(found.slot, value, Span { text_id: STEM.to_owned(), start, end }));
        }
        let flags = extraction.flags.into_iter().map(str::to_owned).collect();
        out.emit(slot_record(record, slots, flags, RULES)?);
        Ok(Verdict::Keep)
    }
}

fn slot_record(
    record: AnsweredQuestion,
    slots: Vec<SlotValue>,
    more_flags: Vec<String>,
    extractor: &str,
) -> anyhow::Result<SlotRecord> {
    let mut flags = record.flags;
    let mut made_by = record.made_by;
    add_maker(&mut made_by, field::SLOTS, extractor);
    flags.extend(more_flags);
    if !slots.iter().any(|value| value.slot == Slot::SymptomName) {
        flags.push("no_symptom_name".to_owned());
    }
    let question = span(&record.stem, &split_lead_in(&record.stem).lead_in)?;
    Ok(SlotRecord {
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
        extracted: Vec::new(),
        corrections: Vec::new(),
        judgement: None,
        runs: Vec::new(),
        made_by,
        replies: record.replies,
    })
}

/// A model's phrases with their places, in the order of slots and of the reply, and flags that count what was left out.
fn place_phrases(
    stem: &str,
    rules: &ContextRules,
    phrases: &Map<String, Value>,
) -> anyhow::Result<(Vec<SlotValue>, Vec<String>)> {
    // A vignette can say "none", so that is looked for like any other phrase.
    let rule = FieldRule { missing: MissingWords::default().keeping("none"), ..FieldRule::default() };
    let mut coercions = CoercionCounts::new();
    let mut placing = Placing::new(stem, rules);
    for slot in Slot::ALL {
        let Some(list) = phrases.get(slot.as_str()) else { continue };
        let list = list.as_array().with_context(|| format!("{} is no list", slot.as_str()))?;
        for phrase in list {
            let read = coerce::text(phrase, &rule, &mut coercions).with_context(|| format!("in {}", slot.as_str()))?;
            if let Some(phrase) = read {
                placing.add(slot, phrase.trim(), None)?;
            }
        }
    }
    let (values, n_repeated) = placing.finish();
    if n_repeated > 0 {
        coercions.insert(REPEATED_VALUE, n_repeated);
    }
    Ok((values, coercions.into_iter().map(|(kind, n)| format!("{kind}:{n}")).collect()))
}

/// The flag, followed by their number, for values that come more often than the text has them.
pub(super) const REPEATED_VALUE: &str = "repeated_value";

/// Gives phrases their places in a vignette, one slot after the other. A phrase that a slot holds several times gets the places
/// of the text in their order; one that comes more often than in the text is left out and counted.
pub(crate) struct Placing<'a> {
    stem: &'a str,
    text: SourceText<'a>,
    values: Vec<SlotValue>,
    n_repeated: u64,
}

impl<'a> Placing<'a> {
    pub(crate) fn new(stem: &'a str, rules: &'a ContextRules) -> Self {
        Self { stem, text: SourceText::new(stem, rules), values: Vec::new(), n_repeated: 0 }
    }

    /// Adds a phrase of the slot of the phrase before it, or of a new one. `hint` is where it is known to stand, in Unicode
    /// scalar values.
    ///
    /// # Errors
    /// A place that is not within the vignette: the vignette's own places never are.
    pub(crate) fn add(&mut self, slot: Slot, phrase: &str, hint: Option<Range<u32>>) -> anyhow::Result<()> {
        let mut of_slot = self.values.iter().rev().take_while(|value| value.slot == slot);
        let last = of_slot.find(|value| value.value == phrase).map(|value| &value.span);
        let hint = match (hint, last) {
            (Some(hint), _) => Some(hint),
            (None, None) => None,
            (None, Some(before)) => {
                // Where the earlier one is not in the text this one is not either.
                let next = before.as_ref().map(|before| next_place(self.stem, before)).transpose()?.flatten();
                if next.is_none() {
                    self.n_repeated += 1;
                    return Ok(());
                }
                next
            }
        };
        let verdict = self.text.ground(phrase, subject(slot), hint);
        self.values.push(SlotValue {
            slot,
            value: phrase.to_owned(),
            normalised: None,
            span: verdict.range.map(|range| Span { text_id: STEM.to_owned(), start: range.start, end: range.end }),
            grounding: verdict.grounding,
            distance: verdict.distance,
            conflict: verdict.conflict,
            moved_from: None,
            names_diagnosis: false,
        });
        Ok(())
    }

    /// The values in the order in which they were added, and how many were left out.
    pub(crate) fn finish(self) -> (Vec<SlotValue>, u64) {
        (self.values, self.n_repeated)
    }
}

/// Where the characters at a span stand again, after it.
fn next_place(stem: &str, before: &Span) -> anyhow::Result<Option<Range<u32>>> {
    let characters = CharOffsets::of(stem);
    let place = before.start as usize..before.end as usize;
    let phrase = characters.slice(&place).context("a span outside of the stem")?;
    let end = characters.byte(place.end).context("a span outside of the stem")?;
    let rest = stem.get(end..).context("a span that is not on character borders")?;
    let Some(found) = rest.find(phrase) else { return Ok(None) };
    let skipped = u32::try_from(rest.get(..found).unwrap_or_default().chars().count())?;
    let start = before.end + skipped;
    Ok(Some(start..start + (before.end - before.start)))
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

    /// The byte at which a character starts.
    fn byte(&self, character: usize) -> Option<usize> {
        match &self.offsets {
            None => (character <= self.text.len()).then_some(character),
            Some(offsets) => offsets.get(character).copied(),
        }
    }

    fn slice(&self, characters: &Range<usize>) -> Option<&'a str> {
        self.text.get(self.byte(characters.start)?..self.byte(characters.end)?)
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

    const TEXT: &str = include_str!("../../pipelines/prompts/extract_slots.md");

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
            &[("lexicon", lexicon), ("terms", terms), ("context", context), ("drugs", drugs), (PROMPT, TEXT)],
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

    /// Case llm-08: phrases of the prompt's example and invented ones have no place; repeated ones get the places of the
    /// text in their order; a changed number does not pass.
    #[test]
    fn llm_08_phrases_get_the_places_of_the_text() {
        let rules = ContextRules::parse(include_str!("../../pipelines/lexicon/context.toml")).unwrap();
        let stem = "pain, then pain again; rate 5% [12].";
        let reply = json!({"Symptom-Name": ["pain", "pain", "gout", "rate 5%", "rate 6%", "pain", "N/A", ""]});
        let (values, flags) = place_phrases(stem, &rules, reply.as_object().unwrap()).unwrap();
        let mut text = String::new();
        for value in &values {
            let place = value.span.as_ref().map(|span| (span.start, span.end));
            text += &format!("{} {:?} {place:?}\n", value.value, value.grounding);
        }
        text += &flags.join(" ");
        expect![[r#"
            pain Exact Some((0, 4))
            pain Exact Some((11, 15))
            gout NotFound None
            rate 5% Exact Some((23, 30))
            rate 6% Contradicted Some((23, 30))
            missing_word:2 repeated_value:1"#]]
        .assert_eq(&text);
    }
}
