//! `score_fidelity`: how far a record is supported by its text (SPEC section 8): by rules, and by a judge that is another
//! model than the extractor (ClinMM-Bench, 4.1.5).
//!
//! Every value of every extractor gets a verdict by the same rules. What the text does not support leaves the record, or is
//! flagged, and is kept for review. The gate uses both: the judge is asked about records that the rules let pass.

use super::ask::{self, Asking, CONTROLS_RESOURCE, JUDGEMENTS, Rating};
use super::extract_slots::{RESOURCES as EXTRACTOR_RESOURCES, STEM, extractor};
use super::prompt::{COPIED_EXAMPLE, PROMPT, Variable};
use super::*;
use crate::dag::RULES;
use crate::record::ledger::ReviewRow;
use crate::record::model::{JudgementRow, NOT_RUN, add_maker, field};
use crate::record::slots::{Fidelity, Grounding, GroundingRow, Judgement, Slot, SlotRecord, SlotValue, Span};
use crate::slots::boundaries::BoundaryRules;
use crate::slots::extract::Extractor;
use crate::text::grounding::{SourceText, Subject};
use crate::text::leakage::{Gold, Synonyms};
use anyhow::Context;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use serde_json::{Map, Value, json};
use std::collections::BTreeMap;
use std::ops::Range;

pub const STAGE: StageDef = StageDef {
    name: "score_fidelity",
    summary: "Judges every value against its text, takes out or flags unsupported ones, scores the record from 0 to 1, by a judge from 1 to 5, and drops it below either limit",
    shape: Shape::Model,
    revision: 2,
    inputs: &[Port::records::<SlotRecord>("records")],
    outputs: &[
        Port::records::<SlotRecord>("records"),
        Port::side::<ReviewRow>("review"),
        Port::side::<JudgementRow>(JUDGEMENTS),
        Port::side::<GroundingRow>(GROUNDING),
    ],
    resources: &[
        EXTRACTOR_RESOURCES[0],
        EXTRACTOR_RESOURCES[1],
        EXTRACTOR_RESOURCES[2],
        EXTRACTOR_RESOURCES[3],
        ResourceDecl { name: "synonyms", summary: "names of one disease, as TOML" },
        ResourceDecl {
            name: PROMPT,
            summary: "what the judge is asked, as Markdown with a `vignette` and its `record`",
        },
        CONTROLS_RESOURCE,
    ],
    reasons: &["low_fidelity", "contradicted", "unsupported_values", LOW_JUDGEMENT, COPIED_EXAMPLE],
    settings: SettingsType::of::<FidelitySettings>(),
    build,
};

const LOW_JUDGEMENT: &str = "low_judgement";
/// Side port: how the values of each slot stood in their texts, of dropped records too.
const GROUNDING: &str = "grounding";
/// The field of a reply that holds the judge's score.
const SCORE: &str = "score";

/// What becomes of a value that the text does not support.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
enum Unsupported {
    /// It leaves the record, and is kept beside it.
    Remove,
    /// It stays, with its verdict.
    Flag,
}

#[derive(Serialize, Deserialize, JsonSchema)]
#[serde(default, deny_unknown_fields)]
struct FidelitySettings {
    /// A record with a lower score is dropped, 0 to 1.
    min_score: f64,
    /// A record of whose values a greater share contradicts the text is dropped, 0 to 1.
    max_contradicted: f64,
    /// A record with unsupported values is listed for a person.
    review_rejected: bool,
    /// What becomes of a value that the text does not support: `remove`, or `flag`: it stays, with its verdict.
    unsupported: Unsupported,
    /// The judge, by its name under `[models]`: another model than the extractor; `rules` for none.
    judge: String,
    /// A record with a lower score of the judge is dropped, 1 to 5.
    min_judge_score: u32,
}

impl Default for FidelitySettings {
    fn default() -> Self {
        Self {
            min_score: 0.4,
            max_contradicted: 0.2,
            review_rejected: true,
            unsupported: Unsupported::Remove,
            judge: RULES.to_owned(),
            min_judge_score: 3,
        }
    }
}

impl Settings for FidelitySettings {
    fn check(&self) -> Result<(), String> {
        let shares = [("min_score", self.min_score), ("max_contradicted", self.max_contradicted)];
        ask::check_limits(&shares, self.min_judge_score)
    }

    fn models(&self) -> Vec<String> {
        vec![self.judge.clone()]
    }

    const DEMANDS: ModelDemands = ModelDemands { distinct: false, unlike: &["extract_slots"] };
}

#[derive(Clone, Deserialize)]
#[serde(deny_unknown_fields)]
struct ControlRecord {
    name: String,
    stem: String,
    record: BTreeMap<String, Vec<String>>,
    expect: Vec<String>,
}

fn build(arguments: &StageArguments<'_>) -> anyhow::Result<AnyStage> {
    let resources = arguments.resources;
    let synonyms =
        Synonyms::parse(resources.text("synonyms")?).with_context(|| resources.file("synonyms").to_owned())?;
    let boundaries =
        BoundaryRules::parse(resources.text("drugs")?).with_context(|| resources.file("drugs").to_owned())?;
    let extractor = extractor(resources)?;
    let schema = ask::reasoned(SCORE, json!({"type": "integer", "enum": [1, 2, 3, 4, 5]}));
    let asking = Asking::new(resources, &["vignette", "record"], "fidelity", schema)?;
    let controls: Vec<ControlRecord> = ask::controls(resources)?;
    for slot in controls.iter().flat_map(|control| control.record.keys()) {
        anyhow::ensure!(Slot::parse(slot).is_some(), "{}: `{slot}` is no slot", resources.file(ask::CONTROLS));
    }
    let settings = arguments.settings()?;
    Ok(AnyStage::model(ScoreFidelity { settings, synonyms, boundaries, extractor, asking, controls }))
}

struct ScoreFidelity {
    settings: FidelitySettings,
    synonyms: Synonyms,
    boundaries: BoundaryRules,
    extractor: Extractor,
    asking: Asking,
    controls: Vec<ControlRecord>,
}

impl ModelStage for ScoreFidelity {
    type In = SlotRecord;
    type Out = SlotRecord;

    /// None for a record that the rules drop.
    fn calls(&self, record: &SlotRecord, _: &StageContext<'_>) -> anyhow::Result<Vec<Call>> {
        let mut record = record.clone();
        let fidelity = self.judge(&mut record);
        match self.refusal(&record, &fidelity) {
            Some(_) => Ok(Vec::new()),
            None => Ok(vec![self.call(&record.stem, shown(&record.slots))?]),
        }
    }

    fn read(
        &self,
        mut record: SlotRecord,
        results: Vec<CallResult>,
        out: &mut Emitter<'_, SlotRecord>,
    ) -> anyhow::Result<Verdict> {
        let rating = match self.asking.rating(&record.record_id, "fidelity", SCORE, results, out)? {
            None => return self.without_model(record, out),
            Some(Err(verdict)) => return Ok(verdict),
            Some(Ok(rating)) => rating,
        };
        let Rating { score, reason, reply } = rating;
        let judgement = Judgement { score, reason, judge: reply.model.clone() };
        add_maker(&mut record.made_by, field::JUDGEMENT, &reply.model);
        record.replies.push(reply.trace(STAGE.name));
        self.score(record, Some(judgement), out)
    }

    fn without_model(&self, mut record: SlotRecord, out: &mut Emitter<'_, SlotRecord>) -> anyhow::Result<Verdict> {
        add_maker(&mut record.made_by, field::JUDGEMENT, NOT_RUN);
        self.score(record, None, out)
    }

    fn controls(&self) -> anyhow::Result<Vec<Control>> {
        let control = |known: &ControlRecord| {
            let lists = known.record.iter().map(|(slot, phrases)| (slot.as_str(), phrases.iter().map(String::as_str)));
            let call = self.call(&known.stem, lists.flat_map(|(slot, list)| list.map(move |phrase| (slot, phrase))))?;
            Ok(ask::control(&known.name, call, SCORE, Expect::OneOf(known.expect.clone())))
        };
        self.controls.iter().map(control).collect()
    }
}

/// The values of a record as a judge sees them.
fn shown(values: &[SlotValue]) -> impl Iterator<Item = (&str, &str)> {
    values.iter().map(|value| (value.slot.as_str(), value.value.as_str()))
}

impl ScoreFidelity {
    fn call<'a>(&self, stem: &str, values: impl Iterator<Item = (&'a str, &'a str)>) -> anyhow::Result<Call> {
        let mut record: Map<String, Value> = Map::new();
        for (slot, phrase) in values {
            if let Value::Array(list) = record.entry(slot).or_insert_with(|| json!([])) {
                list.push(phrase.into());
            }
        }
        let variables = BTreeMap::from([
            ("vignette", Variable::Source(stem.to_owned())),
            ("record", Variable::Source(Value::Object(record).to_string())),
        ]);
        self.asking.call(&self.settings.judge, &variables, 0)
    }

    /// Why the rules drop a record that was judged.
    fn refusal(&self, record: &SlotRecord, fidelity: &Fidelity) -> Option<Cause> {
        let unsupported: Vec<&SlotValue> = unsupported(record).collect();
        let share_contradicted = share(fidelity.n_contradicted, fidelity.n_values);
        if share_contradicted > self.settings.max_contradicted {
            let detail = format!(
                "{} of {} values contradict the text: {}",
                fidelity.n_contradicted,
                fidelity.n_values,
                show(&unsupported)
            );
            Some(Cause::new("contradicted", detail))
        } else if fidelity.score < self.settings.min_score {
            let detail = format!(
                "score {} is below {}: {} of {} values grounded, {} of {} clinical sentences covered, {} misplaced",
                fidelity.score,
                self.settings.min_score,
                fidelity.n_exact + fidelity.n_normalised + fidelity.n_fuzzy,
                fidelity.n_values,
                fidelity.n_covered,
                fidelity.n_sentences,
                fidelity.n_misplaced
            );
            Some(Cause::new("low_fidelity", detail))
        } else {
            None
        }
    }

    fn score(
        &self,
        mut record: SlotRecord,
        judgement: Option<Judgement>,
        out: &mut Emitter<'_, SlotRecord>,
    ) -> anyhow::Result<Verdict> {
        let fidelity = self.judge(&mut record);
        for row in grounding_rows(&record) {
            out.side(GROUNDING, row);
        }
        if let Some(cause) = self.refusal(&record, &fidelity) {
            return Ok(Verdict::Drop(cause));
        }
        if let Some(judgement) = &judgement
            && judgement.score < self.settings.min_judge_score
        {
            let limit = self.settings.min_judge_score;
            let detail = format!("{} is below {limit}, by {}: {}", judgement.score, judgement.judge, judgement.reason);
            return Ok(Verdict::Drop(Cause::new(LOW_JUDGEMENT, detail)));
        }
        record.judgement = judgement;
        let rejected: Vec<&SlotValue> = unsupported(&record).collect();
        if !rejected.is_empty() {
            let detail = show(&rejected);
            record.flags.push("unsupported_values".to_owned());
            if self.settings.review_rejected {
                out.side(
                    "review",
                    ReviewRow {
                        record_id: record.record_id.clone(),
                        reason: "unsupported_values".to_owned(),
                        detail,
                        related: Vec::new(),
                    },
                );
            }
        }
        record.fidelity = Some(fidelity);
        out.emit(record);
        Ok(Verdict::Keep)
    }
}

impl ScoreFidelity {
    /// Judges every value, moves the unsupported ones to `rejected` if they do not stay, and scores what the extractor gave.
    fn judge(&self, record: &mut SlotRecord) -> Fidelity {
        let mut fidelity = Fidelity::default();
        let text = SourceText::new(&record.stem, self.extractor.context());
        let gold = Gold::new(&record.ground_truth_diagnosis, &record.answer_text, &self.synonyms);
        let mut covered: Vec<Range<u32>> = Vec::new();
        let mut supported = Vec::with_capacity(record.slots.len());
        for mut value in std::mem::take(&mut record.slots) {
            let hint = value.span.as_ref().filter(|span| span.text_id == STEM).map(|span| span.start..span.end);
            let verdict = text.ground(&value.value, subject(value.slot), hint);
            value.span =
                verdict.range.map(|range| Span { text_id: STEM.to_owned(), start: range.start, end: range.end });
            value.grounding = verdict.grounding;
            value.distance = verdict.distance;
            value.conflict = verdict.conflict;
            value.names_diagnosis = !gold.leaks(&value.value).is_empty();
            fidelity.n_values += 1;
            *match value.grounding {
                Grounding::Exact => &mut fidelity.n_exact,
                Grounding::Normalised => &mut fidelity.n_normalised,
                Grounding::Fuzzy => &mut fidelity.n_fuzzy,
                Grounding::Contradicted => &mut fidelity.n_contradicted,
                Grounding::NotFound => &mut fidelity.n_not_found,
            } += 1;
            fidelity.n_leaks += u32::from(value.names_diagnosis);
            fidelity.n_misplaced +=
                u32::from(self.boundaries.check(value.slot, &value.value).is_some_and(|misplaced| misplaced.certain));
            if value.grounding.is_grounded() {
                covered.extend(value.span.as_ref().map(|span| span.start..span.end));
                supported.push(value);
            } else if self.settings.unsupported == Unsupported::Flag {
                supported.push(value);
            } else {
                record.rejected.push(value);
            }
        }
        record.slots = supported;
        for sentence in self.extractor.clinical_sentences(&record.stem) {
            fidelity.n_sentences += 1;
            let overlaps =
                |range: &Range<u32>| (range.start as usize) < sentence.end && (range.end as usize) > sentence.start;
            fidelity.n_covered += u32::from(covered.iter().any(overlaps));
        }
        let n_grounded = fidelity.n_exact + fidelity.n_normalised + fidelity.n_fuzzy;
        fidelity.grounded_share = share(n_grounded, fidelity.n_values);
        fidelity.coverage =
            if fidelity.n_sentences == 0 { 1.0 } else { share(fidelity.n_covered, fidelity.n_sentences) };
        let in_place = 1.0 - share(fidelity.n_misplaced, fidelity.n_values);
        fidelity.score = rounded(fidelity.grounded_share * (0.6 + 0.4 * fidelity.coverage) * in_place);
        fidelity
    }
}

/// Of whom a slot speaks: of others only where it is meant to.
pub(super) fn subject(slot: Slot) -> Subject {
    match slot {
        Slot::FamilyHistory | Slot::ContactHistory | Slot::HabitLiving | Slot::AdditionalNotes => Subject::Anyone,
        _ => Subject::Patient,
    }
}

fn share(part: u32, whole: u32) -> f64 {
    if whole == 0 { 0.0 } else { rounded(f64::from(part) / f64::from(whole)) }
}

/// Six decimals: the same text on every machine.
fn rounded(share: f64) -> f64 {
    (share * 1e6).round() / 1e6
}

/// Values of a judged record that its text does not support, wherever they are now.
fn unsupported(record: &SlotRecord) -> impl Iterator<Item = &SlotValue> {
    record.slots.iter().chain(&record.rejected).filter(|value| !value.grounding.is_grounded())
}

/// How the values of each slot stand in the text, of a judged record.
fn grounding_rows(record: &SlotRecord) -> Vec<GroundingRow> {
    let mut rows: BTreeMap<Slot, GroundingRow> = BTreeMap::new();
    for value in record.slots.iter().chain(&record.rejected) {
        let row = rows.entry(value.slot).or_insert_with(|| GroundingRow::empty(record.record_id.clone(), value.slot));
        *match value.grounding {
            Grounding::Exact => &mut row.n_exact,
            Grounding::Normalised => &mut row.n_normalised,
            Grounding::Fuzzy => &mut row.n_fuzzy,
            Grounding::Contradicted => &mut row.n_contradicted,
            Grounding::NotFound => &mut row.n_not_found,
        } += 1;
    }
    rows.into_values().collect()
}

/// The unsupported values with their verdicts.
fn show(rejected: &[&SlotValue]) -> String {
    let shown = rejected.iter().filter_map(|value| value.why_unsupported());
    shown.collect::<Vec<_>>().join("; ")
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::stage::testing::{check_with, slot_record};
    use expect_test::{Expect, expect};

    const STEM: &str = "A 30-year-old man comes because of fever and pain in his left knee for 3 days. He denies cough. \
        His father has gout. Temperature is 38.3°C.";

    fn check(settings: &str, values: &[(Slot, &str)], expected: Expect) {
        let files = [
            ("lexicon", include_str!("../../pipelines/lexicon/slots.toml")),
            ("terms", include_str!("../../pipelines/lexicon/terms.csv")),
            ("context", include_str!("../../pipelines/lexicon/context.toml")),
            ("drugs", include_str!("../../pipelines/lexicon/drugs.toml")),
            ("synonyms", include_str!("../../pipelines/lexicon/synonyms.toml")),
            (PROMPT, include_str!("../../pipelines/prompts/score_fidelity.md")),
            (ask::CONTROLS, include_str!("../../pipelines/controls/score_fidelity.toml")),
        ];
        let show = |record: &SlotRecord| {
            let fidelity = record.fidelity.as_ref().unwrap();
            let mut text =
                format!("score {} grounded {} coverage {}", fidelity.score, fidelity.grounded_share, fidelity.coverage);
            for value in &record.slots {
                text += &format!("\n  {} {} {:?}", value.slot.as_str(), value.value, value.grounding);
            }
            for value in &record.rejected {
                text += &format!("\n  rejected {} {:?} {:?}", value.value, value.grounding, value.conflict);
            }
            text
        };
        check_with(&STAGE, settings, &files, &[slot_record("q", STEM, values)], show, expected);
    }

    #[test]
    fn copies_are_grounded_and_inventions_leave_the_record() {
        check(
            "max_contradicted = 1.0\nmin_score = 0.0",
            &[
                (Slot::SymptomName, "fever"),
                (Slot::SymptomName, "pain in his right knee"),
                (Slot::SymptomName, "cough"),
                (Slot::SymptomName, "Pain in his left knee"),
                (Slot::MedicalExamination, "Temperature is 39.9°C"),
                (Slot::PastDiagnosis, "gout"),
                (Slot::FamilyHistory, "father has gout"),
                (Slot::HabitTobacco, "smokes a pipe"),
            ],
            expect![[r#"
                keep t:q score 0.3 grounded 0.375 coverage 0.5
                  Symptom-Name fever Exact
                  Symptom-Name Pain in his left knee Normalised
                  Family-History father has gout Exact
                  rejected pain in his right knee Contradicted Some(Laterality)
                  rejected cough Contradicted Some(Negation)
                  rejected Temperature is 39.9°C Contradicted Some(Number)
                  rejected gout Contradicted Some(Experiencer)
                  rejected smokes a pipe NotFound None
            "#]],
        );
    }

    #[test]
    fn a_record_with_little_left_leaves_the_stream() {
        check(
            "",
            &[(Slot::SymptomName, "fever"), (Slot::HabitTobacco, "smokes"), (Slot::HabitWine, "drinks")],
            expect![[r#"
                dropped t:q low_fidelity: score 0.233333 is below 0.4: 1 of 3 values grounded, 1 of 4 clinical sentences covered, 0 misplaced
            "#]],
        );
        check(
            "",
            &[(Slot::SymptomName, "fever"), (Slot::SymptomName, "cough")],
            expect![[r#"
            dropped t:q contradicted: 1 of 2 values contradict the text: Symptom-Name `cough` contradicted in negation
        "#]],
        );
        check(
            "",
            &[],
            expect![[r#"
            dropped t:q low_fidelity: score 0 is below 0.4: 0 of 0 values grounded, 0 of 4 clinical sentences covered, 0 misplaced
        "#]],
        );
    }

    #[test]
    fn settings_are_shares() {
        let settings = FidelitySettings { min_score: 1.5, ..FidelitySettings::default() };
        assert_eq!(settings.check(), Err("min_score is 1.5, it must be from 0 to 1".to_owned()));
    }
}
