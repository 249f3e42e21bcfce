//! `ingest_questions`: raw exam questions to `question` records (MedRoundsQA, 3.1).

use super::*;
use crate::record::question::Question;
use crate::record::{Provenance, RecordId};
use crate::source::lines::{self, RawLine};
use crate::source::{RowFault, medqa};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

pub const STAGE: StageDef = StageDef {
    name: "ingest_questions",
    summary: "Reads exam questions: MedQA JSON Lines with 4 or 5 options, plain or gzip",
    shape: Shape::Reader,
    revision: 1,
    inputs: &[],
    outputs: &[Port::records::<Question>("records")],
    resources: &[],
    reasons: &[
        "invalid_utf8",
        "invalid_json",
        "duplicate_key",
        "not_an_object",
        "line_too_long",
        "missing_field",
        "wrong_type",
        "option_keys",
        "answer_mismatch",
        "empty_answer",
        "empty_stem",
    ],
    settings: SettingsType::of::<IngestSettings>(),
    build,
};

/// Formats that this stage reads.
pub const FORMATS: &[&str] = &["medqa_jsonl"];

#[derive(Serialize, Deserialize, JsonSchema)]
#[serde(default, deny_unknown_fields)]
struct IngestSettings {
    /// Longest line that is read, in bytes; longer ones are quarantined.
    max_line_bytes: u32,
}

impl Default for IngestSettings {
    fn default() -> Self {
        Self { max_line_bytes: 1 << 20 }
    }
}

impl Settings for IngestSettings {
    fn check(&self) -> Result<(), String> {
        if (1000..=64 << 20).contains(&self.max_line_bytes) {
            Ok(())
        } else {
            Err("max_line_bytes must be between 1000 and 67108864".to_owned())
        }
    }
}

fn build(arguments: &StageArguments<'_>) -> anyhow::Result<AnyStage> {
    let settings: IngestSettings = arguments.settings()?;
    match arguments.format {
        Some("medqa_jsonl") => Ok(AnyStage::reader(MedqaReader { cap: settings.max_line_bytes as usize })),
        other => anyhow::bail!(
            "format `{}` is not one that ingest_questions reads (known: {})",
            other.unwrap_or("none"),
            FORMATS.join(", ")
        ),
    }
}

struct MedqaReader {
    /// In bytes.
    cap: usize,
}

impl Reader for MedqaReader {
    type Out = Question;

    fn cut(&self, source: &RawSource, limits: ShardLimits) -> anyhow::Result<Cut> {
        lines::cut(source, limits, self.cap, |line| medqa::identify(&source.name, line))
    }

    fn read(&self, source: &RawSource, slice: &Slice, out: &mut ReaderOutput<Question>) -> anyhow::Result<()> {
        lines::read(source, slice, self.cap, |file, position, line, occurrence| {
            let record_id = medqa::identify(&source.name, line)?.occurrence(occurrence);
            let provenance = Provenance {
                source: source.name.clone(),
                file: file.path.clone(),
                line: position.line,
                raw_sha256: line.sha256(),
                rights: source.rights.clone(),
            };
            match self.parse(line, record_id.clone(), provenance.clone()) {
                Ok(question) => out.keep(question),
                Err(fault) => out.exit(RawExit {
                    record_id,
                    exit: fault.exit,
                    cause: Cause::new(fault.reason, fault.detail),
                    file: provenance.file,
                    line: provenance.line,
                    raw_sha256: provenance.raw_sha256,
                }),
            }
            Ok(())
        })
    }
}

impl MedqaReader {
    fn parse(&self, line: &RawLine<'_>, record_id: RecordId, provenance: Provenance) -> Result<Question, RowFault> {
        let row = medqa::parse(line, self.cap)?;
        let mut flags = Vec::new();
        if !row.extra_fields.is_empty() {
            flags.push("extra_fields".to_owned());
        }
        Ok(Question {
            record_id,
            provenance,
            stem: row.question,
            options: row.options,
            answer_key: row.answer_idx,
            answer_text: row.answer,
            exam: row.meta_info,
            flags,
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::source::strict_json;

    #[test]
    fn every_reason_of_the_format_is_declared() {
        for reason in medqa::REASONS.iter().chain(strict_json::REASONS) {
            assert!(STAGE.reasons.contains(reason), "{reason}");
        }
    }
}
