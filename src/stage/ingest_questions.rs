//! `ingest_questions`: raw exam questions to `question` records (MedRoundsQA, 3.1).

use super::*;
use crate::record::question::Question;
use crate::record::{Provenance, RecordId};
use crate::source::lines::{self, RawLine};
use crate::source::medmcqa::{self, LabelBases, LabelProof, MedmcqaFormat};
use crate::source::tables::Form;
use crate::source::{QuestionRow, RowFault, medqa, nejm};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use std::cell::RefCell;
use std::collections::BTreeMap;

pub const STAGE: StageDef = StageDef {
    name: "ingest_questions",
    summary: "Reads exam questions of MedQA, MedMCQA and NEJM form: JSON Lines, JSON array, CSV or Parquet, plain or gzip",
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
        "field_count",
        "line_too_long",
        "missing_field",
        "wrong_type",
        "option_keys",
        "answer_mismatch",
        "label_mismatch",
        "hidden_label",
        "missing_answer",
        "empty_answer",
        "empty_stem",
    ],
    settings: SettingsType::of::<IngestSettings>(),
    build,
};

/// Formats that this stage reads.
pub const FORMATS: &[&str] = &["medmcqa", "medqa_jsonl", "nejm"];

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

/// `[options]` of a MedMCQA source: where the numbers of keyed options start.
#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct MedmcqaOptions {
    cop_base_text: i64,
    cop_base_parquet: i64,
    answer_base: i64,
}

fn build(arguments: &StageArguments<'_>) -> anyhow::Result<AnyStage> {
    let settings: IngestSettings = arguments.settings()?;
    let format = match arguments.format {
        Some("medqa_jsonl") => Format::Medqa,
        Some("nejm") => Format::Nejm,
        Some("medmcqa") => {
            let options: MedmcqaOptions = toml::Value::Table(arguments.source_options.clone()).try_into()?;
            let bases = LabelBases {
                cop_text: medmcqa::check_base("cop_base_text", options.cop_base_text)?,
                cop_parquet: medmcqa::check_base("cop_base_parquet", options.cop_base_parquet)?,
                answer: medmcqa::check_base("answer_base", options.answer_base)?,
            };
            Format::Medmcqa(MedmcqaFormat::new(bases)?)
        }
        other => anyhow::bail!(
            "format `{}` is not one that ingest_questions reads (known: {})",
            other.unwrap_or("none"),
            FORMATS.join(", ")
        ),
    };
    Ok(AnyStage::reader(QuestionReader { format, cap: settings.max_line_bytes as usize }))
}

enum Format {
    Medqa,
    Medmcqa(MedmcqaFormat),
    Nejm,
}

impl Format {
    fn identify(&self, source: &str, line: &RawLine<'_>) -> anyhow::Result<RecordId> {
        match self {
            Self::Medqa => medqa::identify(source, line),
            Self::Medmcqa(format) => format.identify(source, line),
            Self::Nejm => nejm::identify(source, line),
        }
    }

    fn parse(&self, line: &RawLine<'_>, file: &str, cap: usize) -> Result<QuestionRow, RowFault> {
        match self {
            Self::Medqa => medqa::parse(line, cap),
            Self::Medmcqa(format) => format.parse(line, file, cap),
            Self::Nejm => nejm::parse(line, cap),
        }
    }
}

struct QuestionReader {
    format: Format,
    /// In bytes.
    cap: usize,
}

impl Reader for QuestionReader {
    type Out = Question;

    fn converts(&self, form: Form) -> bool {
        form != Form::Lines
    }

    fn cut(&self, source: &RawSource, limits: ShardLimits) -> anyhow::Result<Cut> {
        let proofs: RefCell<BTreeMap<String, LabelProof>> = RefCell::default();
        let cut = lines::cut(source, limits, self.cap, |file, position, line| {
            if let Format::Medmcqa(format) = &self.format {
                let mut proofs = proofs.borrow_mut();
                format.observe(proofs.entry(file.path.clone()).or_default(), &file.path, position.line, line);
            }
            self.format.identify(&source.name, line)
        })?;
        // No row of a file is used before its labels are proven.
        for (file, proof) in proofs.into_inner() {
            proof.check(&file)?;
        }
        Ok(cut)
    }

    fn read(&self, source: &RawSource, slice: &Slice, out: &mut ReaderOutput<Question>) -> anyhow::Result<()> {
        lines::read(source, slice, self.cap, |file, position, line, occurrence| {
            let record_id = self.format.identify(&source.name, line)?.occurrence(occurrence);
            let provenance = Provenance {
                source: source.name.clone(),
                file: file.path.clone(),
                line: position.line,
                raw_sha256: line.sha256(),
                rights: source.rights.clone(),
            };
            match self.format.parse(line, &file.path, self.cap) {
                Ok(row) => out.keep(Question {
                    record_id,
                    provenance,
                    stem: row.question,
                    options: row.options,
                    answer_key: row.answer_key,
                    answer_text: row.answer,
                    exam: row.exam,
                    subject: row.subject,
                    flags: row.flags,
                }),
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

#[cfg(test)]
mod tests {
    use super::*;
    use crate::source::strict_json;

    #[test]
    fn every_reason_of_the_formats_is_declared() {
        let reasons =
            [medqa::REASONS, medmcqa::REASONS, nejm::REASONS, strict_json::REASONS, &["field_count"]].concat();
        for reason in &reasons {
            assert!(STAGE.reasons.contains(reason), "{reason}");
        }
        for reason in STAGE.reasons {
            assert!(reasons.contains(reason), "{reason} is never given");
        }
    }
}
