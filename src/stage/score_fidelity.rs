//! `score_fidelity`: how far a record is supported by its text (SPEC section 8, the deterministic half).
//!
//! Every value of every extractor gets a verdict by the same rules. What the text does not support leaves the record, and is
//! kept beside it for review.

use super::extract_slots::{RESOURCES as EXTRACTOR_RESOURCES, STEM, extractor};
use super::*;
use crate::record::ledger::ReviewRow;
use crate::record::slots::{Fidelity, Grounding, Slot, SlotRecord, SlotValue, Span};
use crate::slots::boundaries::BoundaryRules;
use crate::slots::extract::Extractor;
use crate::text::grounding::{SourceText, Subject};
use crate::text::leakage::{Gold, Synonyms};
use anyhow::Context;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use std::ops::Range;

pub const STAGE: StageDef = StageDef {
    name: "score_fidelity",
    summary: "Judges every value against its text, takes unsupported ones out of the record, scores the record from 0 to 1 and drops it below a limit",
    shape: Shape::Record,
    revision: 1,
    inputs: &[Port::records::<SlotRecord>("records")],
    outputs: &[Port::records::<SlotRecord>("records"), Port::side::<ReviewRow>("review")],
    resources: &[
        EXTRACTOR_RESOURCES[0],
        EXTRACTOR_RESOURCES[1],
        EXTRACTOR_RESOURCES[2],
        EXTRACTOR_RESOURCES[3],
        ResourceDecl { name: "synonyms", summary: "names of one disease, as TOML" },
    ],
    reasons: &["low_fidelity", "contradicted", "unsupported_values"],
    settings: SettingsType::of::<FidelitySettings>(),
    build,
};

#[derive(Serialize, Deserialize, JsonSchema)]
#[serde(default, deny_unknown_fields)]
struct FidelitySettings {
    /// A record with a lower score is dropped, 0 to 1.
    min_score: f64,
    /// A record of whose values a greater share contradicts the text is dropped, 0 to 1.
    max_contradicted: f64,
    /// A record from which unsupported values were taken is listed for a person.
    review_rejected: bool,
}

impl Default for FidelitySettings {
    fn default() -> Self {
        Self { min_score: 0.4, max_contradicted: 0.2, review_rejected: true }
    }
}

impl Settings for FidelitySettings {
    fn check(&self) -> Result<(), String> {
        for (name, share) in [("min_score", self.min_score), ("max_contradicted", self.max_contradicted)] {
            if !(0.0..=1.0).contains(&share) {
                return Err(format!("{name} is {share}, it must be from 0 to 1"));
            }
        }
        Ok(())
    }
}

fn build(arguments: &StageArguments<'_>) -> anyhow::Result<AnyStage> {
    let resources = arguments.resources;
    let synonyms =
        Synonyms::parse(resources.text("synonyms")?).with_context(|| resources.file("synonyms").to_owned())?;
    let boundaries =
        BoundaryRules::parse(resources.text("drugs")?).with_context(|| resources.file("drugs").to_owned())?;
    let extractor = extractor(resources)?;
    Ok(AnyStage::record(ScoreFidelity { settings: arguments.settings()?, synonyms, boundaries, extractor }))
}

struct ScoreFidelity {
    settings: FidelitySettings,
    synonyms: Synonyms,
    boundaries: BoundaryRules,
    extractor: Extractor,
}

impl RecordStage for ScoreFidelity {
    type In = SlotRecord;
    type Out = SlotRecord;

    fn apply(
        &self,
        mut record: SlotRecord,
        out: &mut Emitter<'_, SlotRecord>,
        _: &StageContext<'_>,
    ) -> anyhow::Result<Verdict> {
        let fidelity = self.judge(&mut record);
        let share_contradicted = share(fidelity.n_contradicted, fidelity.n_values);
        let refusal = if share_contradicted > self.settings.max_contradicted {
            let detail = format!(
                "{} of {} values contradict the text: {}",
                fidelity.n_contradicted,
                fidelity.n_values,
                show(&record.rejected)
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
        };
        if let Some(cause) = refusal {
            return Ok(Verdict::Drop(cause));
        }
        if !record.rejected.is_empty() {
            record.flags.push("unsupported_values".to_owned());
            if self.settings.review_rejected {
                out.side(
                    "review",
                    ReviewRow {
                        record_id: record.record_id.clone(),
                        reason: "unsupported_values".to_owned(),
                        detail: show(&record.rejected),
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
    /// Judges every value, moves the unsupported ones to `rejected` and scores what the extractor gave.
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

/// The unsupported values with their verdicts.
fn show(rejected: &[SlotValue]) -> String {
    let shown = rejected.iter().map(|value| {
        let why = match (value.grounding, value.conflict) {
            (Grounding::Contradicted, Some(conflict)) => {
                format!("contradicted in {}", format!("{conflict:?}").to_lowercase())
            }
            _ => "not found".to_owned(),
        };
        format!("{} `{}` {why}", value.slot.as_str(), value.value)
    });
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
