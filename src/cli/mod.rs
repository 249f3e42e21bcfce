//! The command line (SPEC section 4): raw arguments to working arguments, results to text or JSON.

mod agreement;
mod compare;
mod explain;
mod models;
mod review;
mod sources;

use anyhow::Context;
use casemill::config::Project;
use casemill::engine::{BuildOptions, EventSink, Llm, NodePlan, Session, SessionOptions, State};
use casemill::env;
use casemill::error::{Code, usage};
use casemill::record::ROW_TYPES;
use casemill::record::ledger::total_counts;
use casemill::release::licence::Profile;
use casemill::release::{FreezeOptions, freeze, verify, verify_replies};
use casemill::report::figures;
use casemill::report::plain::PlainLog;
use casemill::report::run_log::RunLog;
use casemill::report::terminal::TerminalProgress;
use casemill::report::{Sinks, grouped};
use casemill::service::http::retry::Backoff;
use casemill::service::model::{Mode, Options as ModelOptions};
use casemill::stage::STAGES;
use casemill::store::manifest::to_json;
use casemill::store::{Workspace, archive, fs};
use clap::{Args, Parser, Subcommand, ValueEnum};
use serde_json::{Value, json};
use std::io::{IsTerminal, Write};
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

/// Turns raw medical sources into frozen, hashed, versioned benchmark releases.
///
/// Example: casemill build medrounds && casemill freeze medrounds --version 1.0.0
///
/// Exit codes: 0 done; 1 internal error; 2 usage or configuration; 3 input data unusable; 4 finished, but records are in
/// quarantine; 5 verification or release gate failed; 130 interrupted.
#[derive(Parser)]
#[command(version, verbatim_doc_comment)]
pub struct Arguments {
    #[command(flatten)]
    global: Global,
    #[command(subcommand)]
    command: Command,
}

#[derive(Args)]
struct Global {
    /// Folder that holds pipelines/ and sources/
    #[arg(long, global = true, default_value = ".", value_name = "DIR")]
    project: PathBuf,
    /// Raw files, one folder per source
    #[arg(long, global = true, default_value = "data/sample", value_name = "DIR")]
    raw: PathBuf,
    /// Work, cache and releases
    #[arg(long, global = true, default_value = "data", value_name = "DIR")]
    data: PathBuf,
    /// Print one JSON document on standard output
    #[arg(long, global = true)]
    json: bool,
    /// No progress on standard error; errors still
    #[arg(long, short, global = true)]
    quiet: bool,
}

#[derive(Subcommand)]
enum Command {
    /// Run what is not fresh
    ///
    /// Example: casemill build medrounds --raw data/raw --jobs 2
    #[command(verbatim_doc_comment)]
    Build(BuildArguments),
    /// Show every node: fresh, stale, pending or missing, and why
    ///
    /// Example: casemill plan medrounds --set dedup_exact.source_priority='["nejm","medqa"]'
    #[command(verbatim_doc_comment)]
    Plan(PlanArguments),
    /// Show everything that happened to one record
    ///
    /// Examples: casemill explain medrounds medqa/test.jsonl:17
    ///           casemill explain medrounds medrounds-0123456789abcdef
    #[command(verbatim_doc_comment)]
    Explain(ExplainArguments),
    /// List sources, check the raw files of one, or fetch them
    ///
    /// Examples: casemill sources check medqa --raw data/raw
    ///           casemill sources fetch NAME --raw data/raw
    #[command(verbatim_doc_comment)]
    Sources {
        #[command(subcommand)]
        command: Option<SourcesCommand>,
    },
    /// Make a release of a finished build
    ///
    /// Example: casemill freeze medrounds --version 1.0.0 --date 2026-11-30
    #[command(verbatim_doc_comment)]
    Freeze(FreezeArguments),
    /// Check every hash, schema, count and cross reference of a release
    ///
    /// Example: casemill verify data/release/medrounds-1.0.0
    #[command(verbatim_doc_comment)]
    Verify {
        /// Folder of the release
        release: PathBuf,
        /// Also check that every reply of a model that a case names is in this exported file, with its bytes
        #[arg(long, value_name = "FILE")]
        replies: Option<PathBuf>,
    },
    /// Count what judges said, what texts support, how hard questions are
    ///
    /// Example: casemill report medrounds --llm replay --models data/sample/models.toml
    #[command(verbatim_doc_comment)]
    Report {
        pipeline: String,
        #[command(flatten)]
        session: SessionArguments,
    },
    /// Export what people decide on or correct, or import it
    ///
    /// Examples: casemill review export medrounds --format csv > review.csv
    ///           casemill review import medrounds anna.csv ben.jsonl
    ///           casemill review export medrounds --records --format csv > records.csv
    ///           casemill review import medrounds --records anna.csv ben.jsonl
    #[command(verbatim_doc_comment)]
    Review {
        #[command(subcommand)]
        command: review::ReviewCommand,
    },
    /// Print the JSON Schemas of all record types, or write them to schemas/
    ///
    /// Example: casemill schema --write
    #[command(verbatim_doc_comment)]
    Schema {
        /// Write schemas/<record>.v1.json
        #[arg(long)]
        write: bool,
    },
    /// Agreement of extractors with reference records, slot by slot
    ///
    /// Examples: casemill compare data/references data/release/medrounds-1.0.0 --plot agreement.svg
    ///           casemill compare data/references medrounds:extract_slots other.jsonl --split tuning
    #[command(verbatim_doc_comment)]
    Compare(compare::CompareArguments),
    /// How far labels by people agree with a column of the cases of a release
    ///
    /// Example: casemill agreement physicians.csv data/release/medrounds-1.0.0 --column difficulty
    #[command(verbatim_doc_comment)]
    Agreement(agreement::AgreementArguments),
    /// Show the exact messages that a model node sends for one record
    ///
    /// Example: casemill prompt extract_slots medqa/test.jsonl:0123456789abcdef
    #[command(verbatim_doc_comment)]
    Prompt(models::PromptArguments),
    /// Export, import or count stored replies of models
    ///
    /// Examples: casemill replies export medrounds replies.jsonl.zst
    ///           casemill replies import replies.jsonl.zst && casemill build medrounds --llm replay
    #[command(verbatim_doc_comment)]
    Replies {
        #[command(subcommand)]
        command: models::RepliesCommand,
    },
    /// Have calls answered through a provider's batch files
    ///
    /// Examples: casemill batch export medrounds extract_slots batch.jsonl
    ///           casemill batch import medrounds extract_slots results.jsonl && casemill build medrounds --llm live
    #[command(verbatim_doc_comment)]
    Batch {
        #[command(subcommand)]
        command: models::BatchCommand,
    },
    /// Remove builds that no pipeline has as its last, and left-over temporary files
    ///
    /// Example: casemill clean --older-than 30d
    #[command(verbatim_doc_comment)]
    Clean(CleanArguments),
    /// Run one shard of one node whose inputs are built: for workers of a cluster
    #[command(hide = true)]
    RunShard {
        pipeline: String,
        node: String,
        index: u32,
        #[command(flatten)]
        session: SessionArguments,
    },
}

/// What decides which build is meant.
#[derive(Args)]
struct SessionArguments {
    /// Read only so many raw records of each source; such a build cannot be frozen
    #[arg(long, value_name = "N")]
    limit: Option<u64>,
    /// Change a setting of a node: node.key=value
    #[arg(long, value_name = "NODE.KEY=VALUE")]
    set: Vec<String>,
    /// A file of [models.NAME] tables in place of those of the pipeline
    #[arg(long, value_name = "FILE")]
    models: Option<PathBuf>,
    /// How models are used: off: rules alone; live: stored replies, and the others are asked for; record: all are asked for;
    /// replay: stored replies alone, a missing one is an error
    #[arg(long, value_enum, default_value = "off", value_name = "MODE")]
    llm: LlmMode,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
enum LlmMode {
    Off,
    Live,
    Record,
    Replay,
}

impl Default for SessionArguments {
    fn default() -> Self {
        Self { limit: None, set: Vec::new(), models: None, llm: LlmMode::Off }
    }
}

impl SessionArguments {
    /// Commands about models mean the build with models, whether it is said or not.
    fn with_models(&mut self) {
        if self.llm == LlmMode::Off {
            self.llm = LlmMode::Live;
        }
    }
}

/// What sends requests: a build, and nothing else.
struct Sending {
    budget: Option<f64>,
    interrupted: Arc<AtomicBool>,
}

#[derive(Args)]
struct BuildArguments {
    pipeline: String,
    /// Build this node and everything above it
    #[arg(long, value_name = "NODE")]
    to: Option<String>,
    /// Build this node alone
    #[arg(long, value_name = "NODE", conflicts_with = "to")]
    only: Option<String>,
    /// Run this node even if it is fresh
    #[arg(long, value_name = "NODE")]
    force: Option<String>,
    /// Threads; all cores without it
    #[arg(long, value_name = "N")]
    jobs: Option<usize>,
    /// Money that model calls of this run may cost, in the currency of the pipeline's prices; it stops before the call that
    /// could pass it
    #[arg(long, value_name = "MONEY")]
    budget: Option<f64>,
    #[command(flatten)]
    session: SessionArguments,
}

#[derive(Args)]
struct PlanArguments {
    pipeline: String,
    /// Also the calls, tokens and money of model nodes that are still to pay; nothing is sent
    #[arg(long)]
    cost: bool,
    #[command(flatten)]
    session: SessionArguments,
}

#[derive(Args)]
struct ExplainArguments {
    pipeline: String,
    /// A record id, a case id, or file:line below the raw folder
    id: String,
    #[command(flatten)]
    session: SessionArguments,
}

#[derive(Subcommand)]
enum SourcesCommand {
    /// Every source, whether its files are there, and its rights
    List,
    /// Hash the files of a source and compare them with what is known of it
    ///
    /// Example: casemill sources check ajcr --raw data/raw --summary summary.csv
    #[command(verbatim_doc_comment)]
    Check(sources::CheckArguments),
    /// Get the files that sources/<name>.toml names under [fetch], or the articles of its services; what was got before is
    /// kept, and cut files go on
    ///
    /// Examples: casemill sources fetch pmc --raw data/raw --limit 24
    ///           casemill sources fetch pmc --raw data/raw --ids ids.txt --from opendata
    ///           casemill sources fetch ajcr --raw data/raw --list cases.xlsx
    #[command(verbatim_doc_comment)]
    Fetch(sources::FetchArguments),
}

#[derive(Args)]
struct FreezeArguments {
    pipeline: String,
    /// Name of the release: <pipeline>-<version>
    #[arg(long, value_name = "V")]
    version: String,
    /// Folder that releases go to; <data>/release without it
    #[arg(long, value_name = "DIR")]
    out: Option<PathBuf>,
    /// Who the release is for
    #[arg(long, value_enum, default_value = "research")]
    profile: Profile,
    /// Freeze although records are in quarantine
    #[arg(long)]
    allow_quarantine: bool,
    /// Date in MANIFEST.json, YYYY-MM-DD; without it SOURCE_DATE_EPOCH, or null
    #[arg(long, value_name = "DATE")]
    date: Option<String>,
    /// Also pack the release into <pipeline>-<version>.tar.gz beside it
    #[arg(long)]
    archive: bool,
    #[command(flatten)]
    session: SessionArguments,
}

#[derive(Args)]
struct CleanArguments {
    /// Only what was not changed for so long: 12h, 30d
    #[arg(long, value_name = "AGE")]
    older_than: Option<String>,
    /// Say what would be removed, and remove nothing
    #[arg(long)]
    dry_run: bool,
}

/// Runs a command; the code is for the process.
pub fn run(arguments: Arguments) -> anyhow::Result<Code> {
    let global = &arguments.global;
    match arguments.command {
        Command::Build(build) => run_build(global, build),
        Command::Plan(plan) => run_plan(global, plan),
        Command::Explain(options) => explain::run(global, options),
        Command::Sources { command } => match command.unwrap_or(SourcesCommand::List) {
            SourcesCommand::List => sources::list(global),
            SourcesCommand::Check(options) => sources::check(global, &options),
            SourcesCommand::Fetch(options) => sources::fetch_files(global, &options),
        },
        Command::Freeze(options) => run_freeze(global, options),
        Command::Verify { release, replies } => run_verify(global, &release, replies.as_deref()),
        Command::Review { command } => review::run(global, command),
        Command::Report { pipeline, session } => {
            let figures = figures::figures(&global.session(&pipeline, session)?)?;
            print(global, &serde_json::to_value(&figures)?, || figures::text(&figures))?;
            Ok(Code::Done)
        }
        Command::Schema { write } => run_schema(global, write),
        Command::Compare(options) => compare::run(global, &options),
        Command::Agreement(options) => agreement::run(global, &options),
        Command::Prompt(options) => models::run_prompt(global, options),
        Command::Replies { command } => models::run_replies(global, command),
        Command::Batch { command } => models::run_batch(global, command),
        Command::Clean(options) => run_clean(global, &options),
        Command::RunShard { pipeline, node, index, session } => {
            let sending = Sending { budget: None, interrupted: Arc::default() };
            let rows = global.session_that(Some(sending), &pipeline, session)?.run_shard(&node, index)?;
            print(global, &json!({"rows": rows}), || format!("{rows} rows\n"))?;
            Ok(Code::Done)
        }
    }
}

impl Global {
    fn workspace(&self) -> Workspace {
        Workspace { raw: self.raw.clone(), data: self.data.clone() }
    }

    fn project(&self) -> anyhow::Result<Project> {
        let project = Project { root: self.project.clone() };
        if !project.pipelines_dir().is_dir() {
            return Err(usage(format!(
                "{} has no pipelines/ folder; run casemill in its project folder, or give --project DIR",
                self.project.display()
            )));
        }
        Ok(project)
    }

    /// For commands that send nothing.
    fn session(&self, pipeline: &str, arguments: SessionArguments) -> anyhow::Result<Session> {
        self.session_that(None, pipeline, arguments)
    }

    fn session_that(
        &self,
        sending: Option<Sending>,
        pipeline: &str,
        arguments: SessionArguments,
    ) -> anyhow::Result<Session> {
        let mode = match arguments.llm {
            LlmMode::Off => None,
            LlmMode::Live => Some(Mode::Live),
            LlmMode::Record => Some(Mode::Record),
            LlmMode::Replay => Some(Mode::Replay),
        };
        let llm = mode.map_or(Llm::Off, |mode| {
            let sends = sending.is_some();
            let sending = sending.unwrap_or(Sending { budget: None, interrupted: Arc::default() });
            Llm::Models(ModelOptions {
                mode,
                sends,
                budget: sending.budget,
                interrupted: sending.interrupted,
                backoff: Backoff::default(),
            })
        });
        let options = SessionOptions {
            project: self.project()?,
            workspace: self.workspace(),
            stages: STAGES,
            set: arguments.set,
            models: arguments.models,
            limit: arguments.limit,
            llm,
        };
        let session = Session::open(pipeline, options)?;
        if session.has_credentialed() {
            casemill::error::hide_panic_messages();
        }
        Ok(session)
    }
}

/// JSON or text on standard output. A reader that closes the pipe early is not an error.
fn print(global: &Global, document: &Value, text: impl FnOnce() -> String) -> anyhow::Result<()> {
    let output = if global.json { String::from_utf8(to_json(document)?)? } else { text() };
    match std::io::stdout().write_all(output.as_bytes()) {
        Err(error) if error.kind() == std::io::ErrorKind::BrokenPipe => Ok(()),
        result => result.context("writing to standard output"),
    }
}

/// Text of a source for a terminal: indented, and without characters that would steer it.
fn indented(text: &str) -> String {
    let mut shown = String::with_capacity(text.len());
    for character in text.trim_end().chars() {
        match character {
            '\n' => shown.push_str("\n    "),
            '\t' => shown.push('\t'),
            control if control.is_control() => shown.extend(control.escape_default()),
            other => shown.push(other),
        }
    }
    shown
}

/// Set by the first Ctrl-C or SIGTERM; the second one does not wait for what is running.
fn interruption() -> anyhow::Result<Arc<AtomicBool>> {
    let interrupted = Arc::new(AtomicBool::new(false));
    let flag = interrupted.clone();
    ctrlc::set_handler(move || {
        if flag.swap(true, Ordering::SeqCst) {
            std::process::exit(Code::Interrupted as i32);
        }
    })?;
    Ok(interrupted)
}

fn run_build(global: &Global, arguments: BuildArguments) -> anyhow::Result<Code> {
    let interrupted = interruption()?;
    let jobs = match arguments.jobs {
        Some(0) => return Err(usage("--jobs must be at least 1")),
        Some(jobs) => jobs,
        None => std::thread::available_parallelism().map_or(1, std::num::NonZero::get),
    };
    if arguments.budget.is_some_and(|budget| !budget.is_finite() || budget < 0.0) {
        return Err(usage("--budget must be a sum of money of at least 0"));
    }
    if arguments.budget.is_some() && !matches!(arguments.session.llm, LlmMode::Live | LlmMode::Record) {
        return Err(usage("--budget limits what models may cost: give --llm live or record"));
    }
    let sending = Sending { budget: arguments.budget, interrupted: interrupted.clone() };
    let session = global.session_that(Some(sending), &arguments.pipeline, arguments.session)?;
    let _lock = session.workspace.lock(&format!("building {}", arguments.pipeline))?;
    let mut sinks: Vec<Box<dyn EventSink>> = Vec::new();
    if !global.quiet {
        let terminal = std::io::stderr().is_terminal();
        sinks.push(if terminal { Box::new(TerminalProgress::default()) } else { Box::<PlainLog>::default() });
    }
    sinks.push(Box::new(RunLog::create(&session.workspace.pipeline_dir(&session.graph.pipeline).join("runs"))?));
    let options = BuildOptions { jobs, to: arguments.to, only: arguments.only, force: arguments.force, interrupted };
    let summary = session.build(&options, &mut Sinks(sinks))?;
    if global.json {
        print(global, &plan_document(&session, &session.plan()?)?, String::new)?;
    }
    if summary.n_quarantined > 0 {
        eprintln!(
            "casemill: finished, but {} records are in quarantine; casemill explain shows why, for a record id, case id or file:line",
            grouped(summary.n_quarantined)
        );
        return Ok(Code::Quarantine);
    }
    Ok(Code::Done)
}

fn plan_document(session: &Session, plans: &[NodePlan]) -> anyhow::Result<Value> {
    let nodes: Vec<Value> = session
        .graph
        .nodes
        .iter()
        .zip(plans)
        .map(|(node, plan)| {
            json!({
                "node": node.name,
                "stage": node.stage.name,
                "shape": node.stage.shape.as_str(),
                "state": plan.state,
                "why": plan.why,
                "counts": plan.manifest.as_ref().map(|manifest| &manifest.counts),
                "output_hash": plan.manifest.as_ref().map(|manifest| &manifest.output_hash),
                "n_shards": plan.manifest.as_ref().map(|manifest| manifest.shards.len()),
            })
        })
        .collect();
    let overlaps = session.overlaps(plans)?;
    Ok(json!({"pipeline": session.graph.pipeline, "nodes": nodes, "overlaps": overlaps}))
}

fn run_plan(global: &Global, mut arguments: PlanArguments) -> anyhow::Result<Code> {
    if arguments.cost {
        arguments.session.with_models();
    }
    let session = global.session(&arguments.pipeline, arguments.session)?;
    let plans = session.plan()?;
    let costs = if arguments.cost { Some(session.costs(&plans)?) } else { None };
    let width = session.graph.nodes.iter().map(|node| node.name.len()).max().unwrap_or(0);
    let mut document = if global.json { plan_document(&session, &plans)? } else { Value::Null };
    if let (Some(costs), Some(document)) = (&costs, document.as_object_mut()) {
        document.insert("costs".to_owned(), serde_json::to_value(costs)?);
    }
    print(global, &document, || {
        let mut text = String::new();
        for (node, plan) in session.graph.nodes.iter().zip(&plans) {
            let kept = plan
                .manifest
                .as_ref()
                .map(|manifest| format!("{} records", grouped(total_counts(&manifest.counts).kept)));
            let remark = if plan.state == State::Fresh { kept.unwrap_or_default() } else { plan.why.join("; ") };
            text += &format!("{:width$}  {:8} {remark}\n", node.name, plan.state.as_str());
        }
        if let Some(costs) = &costs {
            text += &format!("\n{}{}", models::shown_egress(&session), models::shown_costs(&session, costs));
        }
        text
    })?;
    Ok(Code::Done)
}

fn run_freeze(global: &Global, arguments: FreezeArguments) -> anyhow::Result<Code> {
    let date = release_date(arguments.date)?;
    let session = global.session(&arguments.pipeline, arguments.session)?;
    let _lock = session.workspace.lock(&format!("freezing {}", arguments.pipeline))?;
    let options = FreezeOptions {
        version: arguments.version,
        out: arguments.out.unwrap_or_else(|| session.workspace.release_dir()),
        profile: arguments.profile,
        allow_quarantine: arguments.allow_quarantine,
        date,
    };
    let summary = freeze(&session, &options)?;
    if arguments.archive {
        let name = format!("{}-{}", session.graph.pipeline, options.version);
        let paths = casemill::release::freeze::walk(&summary.folder)?;
        archive::pack(&summary.folder, &name, &paths, &options.out.join(format!("{name}.tar.gz")))?;
    }
    print(global, &serde_json::to_value(&summary)?, || {
        let state = if summary.existed { "was there already, with the same bytes" } else { "written" };
        let mut text = format!(
            "{}: {state}\n{} cases, {} files, {} bytes\ncontent hash {}\n",
            summary.folder.display(),
            grouped(summary.n_cases),
            summary.n_files,
            grouped(summary.bytes),
            summary.content_hash
        );
        if !summary.redistributable {
            text += &format!("not redistributable: {}\n", summary.not_redistributable_because.join("; "));
        }
        text
    })?;
    Ok(Code::Done)
}

/// `--date`, else SOURCE_DATE_EPOCH, else none.
fn release_date(given: Option<String>) -> anyhow::Result<Option<String>> {
    if let Some(text) = given {
        let date: jiff::civil::Date =
            text.parse().map_err(|_| usage(format!("--date {text}: write it as YYYY-MM-DD")))?;
        return Ok(Some(date.to_string()));
    }
    let Some(text) = env::read(env::SOURCE_DATE_EPOCH) else { return Ok(None) };
    let wrong = || usage(format!("{}={text}: must be seconds since 1970", env::SOURCE_DATE_EPOCH));
    let seconds: i64 = text.parse().map_err(|_| wrong())?;
    let time = jiff::Timestamp::from_second(seconds).map_err(|_| wrong())?;
    Ok(Some(time.strftime("%Y-%m-%d").to_string()))
}

fn run_verify(global: &Global, release: &Path, replies: Option<&Path>) -> anyhow::Result<Code> {
    let result = verify(release)?;
    let replies = replies.map(|file| verify_replies(release, file)).transpose()?;
    let faults: Vec<&String> = result.faults.iter().chain(replies.iter().flat_map(|replies| &replies.faults)).collect();
    let mut document = serde_json::to_value(&result)?;
    if let (Some(replies), Some(document)) = (&replies, document.as_object_mut()) {
        document.insert("replies".to_owned(), serde_json::to_value(replies)?);
    }
    print(global, &document, || {
        let hash = result.content_hash.as_ref().map_or_else(|| "none".to_owned(), ToString::to_string);
        let mut text: String = faults.iter().map(|fault| format!("{fault}\n")).collect();
        text += &format!(
            "{}: {} files, {} bytes, {} cases, content hash {hash}: {}\n",
            release.display(),
            result.n_files,
            grouped(result.bytes),
            grouped(result.n_cases),
            if faults.is_empty() { "verified".to_owned() } else { format!("{} faults", faults.len()) }
        );
        if let Some(replies) = &replies {
            text += &format!(
                "{} replies are named by cases, {} are in the file\n",
                grouped(replies.n_named),
                grouped(replies.n_in_file)
            );
        }
        text
    })?;
    Ok(if faults.is_empty() { Code::Done } else { Code::Verification })
}

fn run_schema(global: &Global, write: bool) -> anyhow::Result<Code> {
    if write {
        let folder = global.project.join("schemas");
        fs::create_dir(&folder)?;
        for row_type in ROW_TYPES {
            fs::write_atomic(&folder.join(row_type.file_name()), &to_json(&(row_type.json_schema)())?)?;
        }
        let names: Vec<String> = ROW_TYPES.iter().map(|row_type| row_type.file_name()).collect();
        print(global, &json!({"folder": folder, "files": names}), || {
            format!("{} schemas in {}\n", names.len(), folder.display())
        })?;
        return Ok(Code::Done);
    }
    let schemas: serde_json::Map<String, Value> =
        ROW_TYPES.iter().map(|row_type| (row_type.file_name(), (row_type.json_schema)())).collect();
    print(&Global { json: true, ..clone_global(global) }, &Value::Object(schemas), String::new)?;
    Ok(Code::Done)
}

fn clone_global(global: &Global) -> Global {
    Global {
        project: global.project.clone(),
        raw: global.raw.clone(),
        data: global.data.clone(),
        json: global.json,
        quiet: global.quiet,
    }
}

fn run_clean(global: &Global, arguments: &CleanArguments) -> anyhow::Result<Code> {
    let age = arguments.older_than.as_deref().map(parse_age).transpose()?;
    let workspace = global.workspace();
    let _lock = workspace.lock("cleaning")?;
    let removed = casemill::store::clean::clean(&workspace, age, arguments.dry_run)?;
    let bytes: u64 = removed.iter().map(|(_, bytes)| bytes).sum();
    let document: Vec<Value> = removed.iter().map(|(path, bytes)| json!({"path": path, "bytes": bytes})).collect();
    print(global, &json!({"removed": document, "dry_run": arguments.dry_run}), || {
        let word = if arguments.dry_run { "would be removed" } else { "removed" };
        let mut text: String =
            removed.iter().map(|(path, bytes)| format!("{}  {} bytes\n", path.display(), grouped(*bytes))).collect();
        text += &format!("{} {word}, {} bytes\n", removed.len(), grouped(bytes));
        text
    })?;
    Ok(Code::Done)
}

/// `12h`, `30d`
fn parse_age(text: &str) -> anyhow::Result<std::time::Duration> {
    let wrong = || usage(format!("--older-than {text}: write hours or days, for example 12h or 30d"));
    let (number, unit) = text.split_at_checked(text.len().saturating_sub(1)).ok_or_else(wrong)?;
    let number: u64 = number.parse().map_err(|_| wrong())?;
    let hours = match unit {
        "h" => number,
        "d" => number.saturating_mul(24),
        _ => return Err(wrong()),
    };
    Ok(std::time::Duration::from_secs(hours.saturating_mul(3600)))
}
