//! Commands about models: prompts, stored replies, batch files.

use super::{Global, SessionArguments, print};
use anyhow::Context;
use casemill::engine::{NodeCost, Session};
use casemill::error::{Code, usage};
use casemill::record::Hash;
use casemill::report::grouped;
use casemill::service::model::Models;
use casemill::service::model::batch::Exported;
use casemill::service::model::governance::widest;
use casemill::stage::{Ask, Call, Part};
use casemill::store::fs::LineWriter;
use casemill::store::replies::Shelf;
use clap::{Args, Subcommand};
use serde_json::{Value, json};
use std::collections::BTreeMap;
use std::fs::File;
use std::io::BufReader;
use std::path::PathBuf;

#[derive(Args)]
pub struct PromptArguments {
    /// A model node
    node: String,
    /// A record id or case id that reaches the node
    id: String,
    /// The pipeline; without it the one that has such a node
    #[arg(long, value_name = "NAME")]
    pipeline: Option<String>,
    #[command(flatten)]
    session: SessionArguments,
}

#[derive(Subcommand)]
pub enum RepliesCommand {
    /// Write the replies that the present build was made from into one file: .jsonl, or .jsonl.zst to pack it
    ///
    /// Example: casemill replies export medrounds replies.jsonl.zst
    #[command(verbatim_doc_comment)]
    Export(RepliesExportArguments),
    /// Add the replies of an exported file; each must have the hash that its line gives
    ///
    /// Example: casemill replies import replies.jsonl.zst && casemill build medrounds --llm replay
    #[command(verbatim_doc_comment)]
    Import {
        file: PathBuf,
        /// Take the file's reply where a call has another one here
        #[arg(long)]
        replace: bool,
    },
    /// What the model nodes of a pipeline have asked and spent so far
    Spending { pipeline: String },
}

#[derive(Args)]
pub struct RepliesExportArguments {
    pipeline: String,
    file: PathBuf,
    /// Also replies to records of registered and credentialed sources; such a file may go only to those who may hold them
    #[arg(long)]
    closed: bool,
    #[command(flatten)]
    session: SessionArguments,
}

#[derive(Subcommand)]
pub enum BatchCommand {
    /// Write the calls of a node that have no reply yet as a provider's batch file
    ///
    /// Example: casemill batch export medrounds extract_slots batch.jsonl
    #[command(verbatim_doc_comment)]
    Export(BatchArguments),
    /// Read a provider's results for calls of a node; build with --llm live afterwards
    ///
    /// Example: casemill batch import medrounds extract_slots results.jsonl
    #[command(verbatim_doc_comment)]
    Import(BatchArguments),
}

#[derive(Args)]
pub struct BatchArguments {
    pipeline: String,
    node: String,
    /// One file for each model of the node: with several models, NAME.jsonl becomes NAME-<model>.jsonl
    file: PathBuf,
    #[command(flatten)]
    session: SessionArguments,
}

pub fn run_prompt(global: &Global, mut arguments: PromptArguments) -> anyhow::Result<Code> {
    let pipeline = match &arguments.pipeline {
        Some(name) => name.clone(),
        None => pipeline_with(global, &arguments.node)?,
    };
    arguments.session.with_models();
    let session = global.session(&pipeline, arguments.session)?;
    let node = session.find_node(&arguments.node)?;
    let calls = session.calls_of_record(node, &arguments.id)?;
    let document = |(call, key): &(Call, Option<Hash>)| {
        json!({
            "model": call.model, "key": key, "sample": call.sample, "messages": call.messages,
            "schema": call.format.as_ref().map(|format| &format.schema),
        })
    };
    let document = Value::Array(calls.iter().map(document).collect());
    print(global, &document, || calls.iter().map(|(call, key)| shown_call(call, key.as_ref())).collect())?;
    Ok(Code::Done)
}

fn shown_call(call: &Call, key: Option<&Hash>) -> String {
    let key = key.map_or_else(|| "none: rules".to_owned(), Hash::to_string);
    let mut text = format!("model {}, sample {}, key {key}\n", call.model, call.sample);
    for message in &call.messages {
        text += &format!("\n--- {}\n", message.role.as_str());
        for part in &message.parts {
            text += &match part {
                Part::Text(part) => format!("{part}\n"),
                Part::Image { media, media_type } => format!("[{media_type} {}]\n", media.0),
            };
        }
    }
    if let Some(format) = &call.format {
        text += &format!("\n--- schema of the reply: {}\n{}\n", format.name, format.schema);
    }
    text
}

/// The only pipeline that has a node of this name.
fn pipeline_with(global: &Global, node: &str) -> anyhow::Result<String> {
    let project = global.project()?;
    let mut found = Vec::new();
    for name in project.pipelines()? {
        if project.pipeline(&name)?.nodes.contains_key(node) {
            found.push(name);
        }
    }
    match found.as_slice() {
        [one] => Ok(one.clone()),
        [] => Err(usage(format!("no pipeline has a node `{node}`"))),
        several => Err(usage(format!("pipelines {} have a node `{node}`: give --pipeline", several.join(", ")))),
    }
}

pub fn run_replies(global: &Global, command: RepliesCommand) -> anyhow::Result<Code> {
    match command {
        RepliesCommand::Export(mut arguments) => {
            arguments.session.with_models();
            let session = global.session(&arguments.pipeline, arguments.session)?;
            let plans = session.plan()?;
            let keys = session.reply_keys(&plans);
            if keys.is_empty() {
                return Err(usage(format!(
                    "the present build of {} was made from no reply; build it with --llm live, record or replay first, and give the same --set here",
                    arguments.pipeline
                )));
            }
            let may_leave = |shelf| arguments.closed || shelf == Shelf::Open;
            let n_calls = keys.len() as u64;
            let (written, held_back) = session.need_models()?.store().export(keys, may_leave, &arguments.file)?;
            let document = json!({"calls": n_calls, "written": written, "held_back": held_back});
            print(global, &document, || {
                let mut text = format!(
                    "{} replies to {} calls written to {}\n",
                    grouped(written),
                    grouped(n_calls),
                    arguments.file.display()
                );
                if held_back > 0 {
                    text += &format!(
                        "{} replies to records of closed sources are not in it: --closed adds them\n",
                        grouped(held_back)
                    );
                }
                text
            })?;
        }
        RepliesCommand::Import { file, replace } => {
            let store = casemill::store::replies::ReplyStore::new(global.workspace().replies_dir());
            let imported = store.import(&file, replace)?;
            print(global, &serde_json::to_value(imported)?, || {
                format!(
                    "{} replies added, {} were there{}\n",
                    grouped(imported.added),
                    grouped(imported.known),
                    if imported.kept_ours > 0 {
                        format!(
                            ", {} left out, since their calls have another reply here (--replace takes the file's)",
                            grouped(imported.kept_ours)
                        )
                    } else {
                        String::new()
                    }
                )
            })?;
        }
        RepliesCommand::Spending { pipeline } => {
            let store = casemill::store::replies::ReplyStore::new(global.workspace().replies_dir());
            let spending = store.spending(&pipeline, None)?;
            print(global, &serde_json::to_value(&spending)?, || {
                let mut text = format!(
                    "{:24} {:>9} {:>12} {:>12} {:>10}  by state\n",
                    "node", "requests", "tokens in", "tokens out", "cost"
                );
                for node in &spending {
                    let states: Vec<String> =
                        node.by_state.iter().map(|(state, n)| format!("{state} {}", grouped(*n))).collect();
                    text += &format!(
                        "{:24} {:>9} {:>12} {:>12} {:>10.4}  {}\n",
                        node.node,
                        grouped(node.requests),
                        grouped(node.input_tokens),
                        grouped(node.output_tokens),
                        node.cost,
                        states.join(", ")
                    );
                }
                text
            })?;
        }
    }
    Ok(Code::Done)
}

pub fn run_batch(global: &Global, command: BatchCommand) -> anyhow::Result<Code> {
    match command {
        BatchCommand::Export(arguments) => batch_export(global, arguments),
        BatchCommand::Import(arguments) => batch_import(global, arguments),
    }
}

fn batch_export(global: &Global, mut arguments: BatchArguments) -> anyhow::Result<Code> {
    arguments.session.with_models();
    let session = global.session(&arguments.pipeline, arguments.session)?;
    let mut files: BTreeMap<String, (PathBuf, LineWriter)> = BTreeMap::new();
    let mut exported = Exported::default();
    let several = session.node(session.find_node(&arguments.node)?)?.models(&session.graph.models).len() > 1;
    each_call(&session, &arguments.node, |models, ask| {
        let Some(line) = models.batch_line(&ask, &mut exported)? else { return Ok(()) };
        let (_, writer) = match files.entry(ask.call.model.clone()) {
            std::collections::btree_map::Entry::Occupied(entry) => entry.into_mut(),
            std::collections::btree_map::Entry::Vacant(entry) => {
                let mut path = arguments.file.clone();
                if several {
                    let stem = path.file_stem().unwrap_or_default().to_string_lossy().into_owned();
                    path.set_file_name(format!("{stem}-{}.jsonl", ask.call.model));
                }
                let writer = LineWriter::create(&path)?;
                entry.insert((path, writer))
            }
        };
        writer.line(&line)
    })?;
    let mut written = Vec::new();
    for (path, writer) in files.into_values() {
        writer.close()?;
        written.push(path);
    }
    let document = json!({"files": written, "calls": exported});
    print(global, &document, || {
        let mut text = format!(
            "{} calls written, {} have a reply, {} may not be sent to their model\n",
            grouped(exported.written),
            grouped(exported.stored),
            grouped(exported.refused)
        );
        for path in &written {
            text += &format!("{}\n", path.display());
        }
        text
    })?;
    Ok(Code::Done)
}

fn batch_import(global: &Global, mut arguments: BatchArguments) -> anyhow::Result<Code> {
    arguments.session.with_models();
    let session = global.session(&arguments.pipeline, arguments.session)?;
    let mut known = BTreeMap::new();
    each_call(&session, &arguments.node, |models, ask| {
        if let Some(call) = models.known_call(&ask)? {
            known.insert(call.key.to_string(), call);
        }
        Ok(())
    })?;
    let file = File::open(&arguments.file).with_context(|| format!("opening {}", arguments.file.display()))?;
    let name = arguments.file.display().to_string();
    let imported = session.need_models()?.import_batch(&name, BufReader::new(file), &known)?;
    print(global, &serde_json::to_value(&imported)?, || {
        format!(
            "{} replies added, {} were there, {} results without a reply, {} of other calls\n",
            grouped(imported.added),
            grouped(imported.known),
            grouped(imported.without_reply),
            grouped(imported.unknown)
        )
    })?;
    Ok(Code::Done)
}

fn each_call(
    session: &Session,
    node: &str,
    mut take: impl FnMut(&Models, Ask) -> anyhow::Result<()>,
) -> anyhow::Result<()> {
    let index = session.find_node(node)?;
    let models = session.need_models()?;
    let plans = session.plan()?;
    session.each_call(index, &plans, &mut |ask| take(models, ask))
}

/// The part of `plan` that says what is to pay.
pub fn shown_costs(session: &Session, costs: &[NodeCost]) -> String {
    let mut text = String::new();
    let (mut cost, mut at_most, mut unpriced) = (0.0, 0.0, false);
    for node in costs {
        match node {
            NodeCost::InputNotBuilt { node, waits_for } => {
                text += &format!(
                    "{node}: unknown until {} is built: casemill build {} --to {}\n",
                    waits_for.join(", "),
                    session.graph.pipeline,
                    waits_for.first().map_or("", String::as_str)
                );
            }
            NodeCost::Known { estimates } => {
                for one in estimates {
                    text += &format!(
                        "{}, model {}: {} calls, {} of them stored, {} may not be sent; to pay: {} tokens in, {} out (at most {})",
                        one.node,
                        one.model,
                        grouped(one.calls),
                        grouped(one.stored),
                        grouped(one.refused),
                        grouped(one.input_tokens),
                        grouped(one.output_tokens),
                        grouped(one.output_tokens_at_most)
                    );
                    let n_to_pay = one.calls - one.stored - one.refused;
                    match (one.cost, one.cost_at_most) {
                        (Some(expected), Some(most)) => {
                            text += &format!(", {expected:.4} (at most {most:.4} without repeated requests)");
                            cost += expected;
                            at_most += most;
                        }
                        _ if n_to_pay > 0 => {
                            text += ", no price is given";
                            unpriced = true;
                        }
                        _ => {}
                    }
                    text.push('\n');
                }
            }
        }
    }
    let unpriced = if unpriced { "; models without a price are not in it" } else { "" };
    text + &format!("together: {cost:.4} (at most {at_most:.4}){unpriced}\n")
}

/// Sources that a model may not see, for `plan`.
pub fn shown_egress(session: &Session) -> String {
    let mut text = String::new();
    for (name, source) in &session.sources {
        let may = widest(&source.raw.rights).map_or("no model", |widest| widest.as_str());
        text += &format!("source {name}: may be sent to models up to {may}\n");
    }
    text
}
