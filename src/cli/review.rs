//! `casemill review`: what people decide on or correct, out and in.

use super::{Global, SessionArguments, indented, print};
use casemill::engine::Session;
use casemill::error::Code;
use casemill::report::grouped;
use casemill::review::{decisions, records};
use clap::{Args, Subcommand, ValueEnum};
use serde::Serialize;
use serde_json::{Value, json};
use std::path::PathBuf;

#[derive(Subcommand)]
pub enum ReviewCommand {
    /// Write to standard output undecided records and a sample of the decided ones, or records with their values
    Export(ExportArguments),
    /// Add what people wrote into any number of files, all or none, and show how far they agree
    Import(ImportArguments),
}

#[derive(Clone, Copy, ValueEnum)]
enum Format {
    Jsonl,
    Csv,
}

#[derive(Args)]
pub struct ExportArguments {
    pipeline: String,
    /// Records with their values, to be corrected, instead of questions to be decided on
    #[arg(long)]
    records: bool,
    #[arg(long, value_enum, default_value = "jsonl")]
    format: Format,
    /// So many kept and so many dropped questions, to check the rules, 20 without it; with --records so many records, all
    /// without it
    #[arg(long, value_name = "N")]
    sample: Option<usize>,
    /// Another seed draws another sample
    #[arg(long, default_value_t = 0, value_name = "N")]
    seed: u64,
    #[command(flatten)]
    session: SessionArguments,
}

#[derive(Args)]
pub struct ImportArguments {
    pipeline: String,
    /// The files hold corrected records
    #[arg(long)]
    records: bool,
    /// Exported files with decision (keep, drop or unsure) and reviewer filled in; with --records: with the slots corrected, and
    /// annotator filled in where this is done, even if nothing had to be changed
    #[arg(required = true)]
    files: Vec<PathBuf>,
    #[command(flatten)]
    session: SessionArguments,
}

/// Decided questions in a sample, of each kind.
const SAMPLE: usize = 20;

pub fn run(global: &Global, command: ReviewCommand) -> anyhow::Result<Code> {
    match command {
        ReviewCommand::Export(arguments) if arguments.records => export_records(global, arguments),
        ReviewCommand::Export(arguments) => export_decisions(global, arguments),
        ReviewCommand::Import(arguments) => {
            let session = global.session(&arguments.pipeline, arguments.session)?;
            let what = if arguments.records { "corrections" } else { "decisions" };
            let _lock = session.workspace.lock(&format!("importing {what} for {}", arguments.pipeline))?;
            if arguments.records {
                import_records(global, &session, &arguments.files)
            } else {
                import_decisions(global, &session, &arguments.files)
            }
        }
    }
}

fn export_decisions(global: &Global, arguments: ExportArguments) -> anyhow::Result<Code> {
    let session = global.session(&arguments.pipeline, arguments.session)?;
    let options = decisions::ExportOptions { sample: arguments.sample.unwrap_or(SAMPLE), seed: arguments.seed };
    let items = decisions::export(&session, &options)?;
    let n_undecided = items.iter().filter(|item| item.why == "undecided").count();
    print_items(global, arguments.format, &items, decisions::to_csv)?;
    if !global.quiet {
        eprintln!(
            "{} records: {n_undecided} undecided, {} drawn from the decided",
            items.len(),
            items.len() - n_undecided
        );
    }
    Ok(Code::Done)
}

fn export_records(global: &Global, arguments: ExportArguments) -> anyhow::Result<Code> {
    let session = global.session(&arguments.pipeline, arguments.session)?;
    let options = records::RecordExportOptions { sample: arguments.sample, seed: arguments.seed };
    let items = records::export(&session, &options)?;
    print_items(global, arguments.format, &items, records::to_csv)?;
    if !global.quiet {
        let n_values: usize = items.iter().map(|item| item.spans.len()).sum();
        let n_unsupported: usize = items.iter().map(|item| item.unsupported.len()).sum();
        eprintln!(
            "{} records with {} values, {} of them not supported by their vignettes",
            grouped(items.len() as u64),
            grouped(n_values as u64),
            grouped(n_unsupported as u64)
        );
    }
    Ok(Code::Done)
}

fn print_items<T: Serialize>(
    global: &Global,
    format: Format,
    items: &[T],
    to_csv: impl FnOnce(&[T]) -> anyhow::Result<Vec<u8>>,
) -> anyhow::Result<()> {
    if global.json {
        return print(global, &json!({"items": items}), String::new);
    }
    let text = match format {
        Format::Csv => String::from_utf8(to_csv(items)?)?,
        Format::Jsonl => {
            items.iter().map(|item| Ok(serde_json::to_string(item)? + "\n")).collect::<anyhow::Result<_>>()?
        }
    };
    print(global, &Value::Null, || text)
}

fn import_decisions(global: &Global, session: &Session, files: &[PathBuf]) -> anyhow::Result<Code> {
    let summary = decisions::import(session, files)?;
    print(global, &serde_json::to_value(&summary)?, || {
        let mut text = format!(
            "{}: {} decisions read, {} new; {} records decided, {} disputed\n",
            summary.file.display(),
            summary.n_read,
            summary.n_new,
            summary.n_records,
            summary.n_disputed
        );
        for pair in &summary.agreement {
            text += &format!(
                "{} and {}: agree on {} of {}, kappa {}\n",
                indented(&pair.reviewers.0),
                indented(&pair.reviewers.1),
                pair.n_agree,
                pair.n_both,
                three_digits(pair.kappa)
            );
        }
        if summary.n_dropped_but_wanted > 0 {
            text += &format!(
                "{} records that the rules dropped would be kept by every reviewer: the rules should change\n",
                summary.n_dropped_but_wanted
            );
        }
        text
    })?;
    Ok(Code::Done)
}

fn import_records(global: &Global, session: &Session, files: &[PathBuf]) -> anyhow::Result<Code> {
    let summary = records::import(session, files)?;
    print(global, &serde_json::to_value(&summary)?, || shown_records(&summary))?;
    Ok(Code::Done)
}

fn shown_records(summary: &records::RecordImportSummary) -> String {
    let mut text = format!(
        "{}: {} records read, {} new, {} not done yet; {} records of the build corrected or confirmed\n",
        summary.file.display(),
        grouped(summary.n_read),
        grouped(summary.n_new),
        grouped(summary.n_not_done),
        grouped(summary.n_records)
    );
    for one in &summary.annotators {
        text += &format!(
            "{}: {} records, {} as extracted, {} unsure; values: {} confirmed, {} added, {} removed, {} moved\n",
            indented(&one.annotator),
            grouped(one.n_records),
            grouped(one.n_as_extracted),
            grouped(one.n_unsure),
            grouped(one.n_confirmed),
            grouped(one.n_added),
            grouped(one.n_removed),
            grouped(one.n_moved)
        );
    }
    for pair in &summary.agreement {
        text += &format!(
            "{} and {}: {} of {} records equal, F1 of values {}, kappa of filled slots {} (mean of {})\n",
            indented(&pair.annotators.0),
            indented(&pair.annotators.1),
            grouped(pair.n_equal),
            grouped(pair.n_both),
            three_digits(pair.f1),
            three_digits(pair.kappa),
            pair.n_slots
        );
    }
    if summary.n_unsupported > 0 {
        let n = grouped(summary.n_unsupported);
        text += &format!("{n} values are not supported by their vignettes:\n");
        text.extend(summary.unsupported.iter().map(|why| format!("  {}\n", indented(why))));
        if (summary.unsupported.len() as u64) < summary.n_unsupported {
            text.push_str("  …\n");
        }
    }
    for (n, what) in [
        (summary.n_on_other_base, "records were corrected on another extraction or vignette than the present one"),
        (summary.n_not_in_build, "records in the file do not reach this part of the build any more"),
        (
            summary.n_credentialed,
            "records are from sources that ask for credentials: the file quotes them, keep it as closed",
        ),
    ] {
        if n > 0 {
            text += &format!("{} {what}\n", grouped(n));
        }
    }
    text
}

fn three_digits(number: Option<f64>) -> String {
    number.map_or_else(|| "undefined".to_owned(), |number| format!("{number:.3}"))
}
