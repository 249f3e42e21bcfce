//! `casemill compare`: opens the files, finds the stems, asks the judge, prints the table.

use super::{Global, LlmMode, SessionArguments, indented, interruption, print};
use anyhow::Context;
use casemill::compare::bootstrap::Bootstrap;
use casemill::compare::judge::{Adequacy, Judge, Judged, Questions, THRESHOLD, rights_of_case, shown_rights};
use casemill::compare::metrics::{PairMetric, ShareAtLeast};
use casemill::compare::references::{self, ReadError, Source};
use casemill::compare::{CaseKey, CaseSlots, RecordSet, Settings, Split, SplitFilter, plot, table};
use casemill::config::model::parse_models;
use casemill::config::source::parse_rights;
use casemill::config::{ModelConfig, Provider, suggestion};
use casemill::engine::stream::Upstream;
use casemill::engine::{NodePlan, Session};
use casemill::env;
use casemill::error::{Code, Fault, hide_panic_messages, input, usage};
use casemill::record::model::{MadeBy, field, makers};
use casemill::record::release::{SlotRow, TextRow};
use casemill::record::slots::SlotRecord;
use casemill::record::{Access, Hash, Rights, from_batch};
use casemill::report::grouped;
use casemill::service::http::retry::Backoff;
use casemill::service::model::{Mode, Models, Options as ModelOptions};
use casemill::stage::ModelService;
use casemill::store::manifest::CurrentFile;
use casemill::store::replies::ReplyStore;
use casemill::store::{fs, parquet, read_json};
use clap::{Args, ValueEnum};
use serde::Deserialize;
use serde_json::Value;
use std::collections::{BTreeMap, BTreeSet};
use std::io::{BufRead, BufReader, Cursor};
use std::num::NonZeroU32;
use std::path::{Path, PathBuf};
use std::sync::Arc;

#[derive(Args)]
pub(super) struct CompareArguments {
    /// Reference records: JSONL or CSV, or a folder of such files
    references: PathBuf,
    /// Records to judge: folders of releases, JSONL or CSV files, or PIPELINE:NODE for the records of a build
    #[arg(required = true)]
    records: Vec<PathBuf>,
    /// Which part of the reference records
    #[arg(long, value_enum, default_value = "all")]
    split: SplitName,
    /// Raw question files (JSONL with the stem under `question` or `stem`), where the texts of reference records with offsets
    /// stand; the texts of the releases given are known without it
    #[arg(long, value_name = "FILE")]
    stems: Vec<PathBuf>,
    /// Also write a bar chart
    #[arg(long, value_name = "FILE.svg")]
    plot: Option<PathBuf>,
    /// Resamples of the cases for the 95 % intervals
    #[arg(long, default_value = "2000", value_name = "N")]
    resamples: NonZeroU32,
    /// Another seed draws other resamples
    #[arg(long, default_value_t = 0, value_name = "N")]
    seed: u64,
    /// So many of the worst errors of each extractor are listed
    #[arg(long, default_value_t = 10, value_name = "N")]
    worst: usize,
    /// Folder with the weights of an embedder: adds a BERTScore-like token F1 and a sentence cosine (needs a casemill that
    /// was compiled with the feature `embedder`)
    #[arg(long, value_name = "DIR")]
    embedder: Option<PathBuf>,
    #[command(flatten)]
    judge: JudgeArguments,
}

#[derive(Args)]
struct JudgeArguments {
    /// A model that judges how adequately each value says what the reference says, from 0 to 1: a name under [models] of a
    /// pipeline, such as medrounds:adequacy_judge. Adds its mean and the share of pairs of 0.90 or more. It sees the slot and
    /// the two values; values that are equal but for their form score 1 without a call
    #[arg(long, value_name = "PIPELINE:MODEL")]
    judge: Option<String>,
    /// How the judge is used: live: stored replies, and the others are asked for; record: all are asked for; replay: stored
    /// replies alone, a missing one is an error
    #[arg(long, value_enum, default_value = "replay", value_name = "MODE", requires = "judge")]
    llm: JudgeMode,
    /// A file of [models.NAME] tables in place of those of the pipeline: of the judge, and of builds given as PIPELINE:NODE
    #[arg(long, value_name = "FILE")]
    models: Option<PathBuf>,
    /// Money that the judge may cost in this run; it stops before the call that could pass it
    #[arg(long, value_name = "MONEY", requires = "judge")]
    budget: Option<f64>,
    /// What may be done with the records of files, and which models may see those of releases: a source.toml as beside raw
    /// files (access, llm_egress). Without it nobody said, and they are not sent. The strictest of both sides counts
    #[arg(long, value_name = "FILE", requires = "judge")]
    rights: Option<PathBuf>,
    /// When the judge gives no score for some pairs: refuse the comparison, or skip those pairs in its mean and its share
    #[arg(long, value_enum, default_value = "refuse", value_name = "WHAT", requires = "judge")]
    judge_missing: JudgeMissing,
}

#[derive(Clone, Copy, PartialEq, Eq, ValueEnum)]
enum JudgeMode {
    Live,
    Record,
    Replay,
}

impl From<JudgeMode> for Mode {
    fn from(mode: JudgeMode) -> Self {
        match mode {
            JudgeMode::Live => Self::Live,
            JudgeMode::Record => Self::Record,
            JudgeMode::Replay => Self::Replay,
        }
    }
}

#[derive(Clone, Copy, PartialEq, Eq, ValueEnum)]
enum JudgeMissing {
    Refuse,
    Skip,
}

#[derive(Clone, Copy, ValueEnum)]
enum SplitName {
    All,
    Tuning,
    HeldOut,
}

impl From<SplitName> for SplitFilter {
    fn from(name: SplitName) -> Self {
        match name {
            SplitName::All => Self::All,
            SplitName::Tuning => Self::Only(Split::Tuning),
            SplitName::HeldOut => Self::Only(Split::HeldOut),
        }
    }
}

/// Longest line of a file of stems; a longer one is read in pieces, none of which is a question.
const STEM_LIMIT: u64 = 16 << 20;
/// Largest file of records or stems.
const FILE_LIMIT: u64 = 1 << 30;

pub(super) fn run(global: &Global, arguments: &CompareArguments) -> anyhow::Result<Code> {
    for path in arguments.records.iter().filter(|path| !path.is_dir() && built_node(path).is_none()) {
        check_name(path)?;
    }
    let judge = arguments.judge.open(global)?;
    let mut stems: BTreeMap<String, String> = BTreeMap::new();
    for path in &arguments.stems {
        read_stems(path, &mut stems)?;
    }
    let mut releases: BTreeMap<&Path, RecordSet> = BTreeMap::new();
    for path in &arguments.records {
        if path.is_dir() {
            let mut set = read_release(path, &mut stems)?;
            if let Some(judge) = &judge {
                add_origins(path, &mut set, &judge.unsaid)?;
            }
            releases.insert(path, set);
        } else if let Some((pipeline, node)) = built_node(path) {
            releases.insert(path, read_node(global, &pipeline, &node, arguments.judge.models.as_deref(), &mut stems)?);
        }
    }
    let (reference, n_unknown) = read_references(&arguments.references, arguments.split.into(), &stems)?;
    let mut sets = Vec::new();
    for path in &arguments.records {
        match releases.remove(path.as_path()) {
            Some(set) => sets.push(set),
            None => sets.extend(read_records(path, SplitFilter::All, &stems)?.0),
        }
    }
    if n_unknown > 0 && !global.quiet {
        eprintln!(
            "{n_unknown} reference records are left out: their questions are in none of the files given (--stems names more)"
        );
    }
    let embedder = embedder_metrics(arguments.embedder.as_deref())?;
    let mut metrics: Vec<&dyn PairMetric> = embedder.iter().map(|metric| metric.as_ref() as &dyn PairMetric).collect();
    let cannot_compare = |error| input(format!("{}: {error}", arguments.references.display()));
    let judged = match &judge {
        Some(judge) => {
            judge.check_makers(&sets)?;
            let questions = Questions::of(&reference, &sets, &judge.unsaid).map_err(cannot_compare)?;
            if judge.unsaid.access == Access::Credentialed || sets.iter().any(has_credentialed) {
                hide_panic_messages();
            }
            Some((judge, judge.ask(global, questions)?))
        }
        None => None,
    };
    let adequacy =
        judged.as_ref().map(|(_, judged)| (Adequacy(judged), ShareAtLeast::new(Adequacy(judged), THRESHOLD)));
    if let Some((mean, share)) = &adequacy {
        metrics.extend([mean as &dyn PairMetric, share]);
    }
    let settings = Settings {
        bootstrap: Bootstrap { n_resamples: arguments.resamples, seed: arguments.seed },
        n_worst: arguments.worst,
    };
    let mut comparison = casemill::compare::compare(&reference, &sets, &metrics, settings).map_err(cannot_compare)?;
    comparison.judge = judged.as_ref().map(|(judge, judged)| judged.report(&judge.judge, &comparison));
    if let Some(path) = &arguments.plot {
        let title = format!("Agreement with {}", reference.name);
        fs::write_atomic(path, plot::svg(&comparison, &title).as_bytes())?;
    }
    print(global, &serde_json::to_value(&comparison)?, || table::text(&comparison))?;
    Ok(Code::Done)
}

/// A judge with the way to it.
struct OpenedJudge<'a> {
    arguments: &'a JudgeArguments,
    model: ModelConfig,
    judge: Judge,
    /// The rights of records for which nobody else says them.
    unsaid: Rights,
}

/// The prompt of the judge, below `pipelines/`.
const JUDGE_PROMPT: &str = "prompts/judge_adequacy.md";

impl JudgeArguments {
    /// Reads everything about the judge; nothing is sent.
    fn open(&self, global: &Global) -> anyhow::Result<Option<OpenedJudge<'_>>> {
        let Some(name) = &self.judge else { return Ok(None) };
        if self.budget.is_some_and(|budget| !budget.is_finite() || budget < 0.0) {
            return Err(usage("--budget must be a sum of money of at least 0"));
        }
        if self.budget.is_some() && self.llm == JudgeMode::Replay {
            return Err(usage("--budget limits what the judge may cost: give --llm live or record"));
        }
        let (pipeline, name) =
            name.split_once(':').filter(|(pipeline, name)| !pipeline.is_empty() && !name.is_empty()).ok_or_else(
                || usage(format!("--judge {name}: write it as PIPELINE:MODEL, such as medrounds:adequacy_judge")),
            )?;
        let project = global.project()?;
        let config = project.pipeline(pipeline)?;
        let (file, mut models) = match &self.models {
            None => (config.file, config.models),
            Some(path) => {
                let file = path.display().to_string();
                let text = fs::read_text(path).map_err(|error| usage(format!("--models: {error:#}")))?;
                let models = parse_models(&file, &text)?;
                (file, models)
            }
        };
        let known = suggestion(name, models.keys().map(String::as_str));
        let model = models
            .remove(name)
            .ok_or_else(|| usage(format!("--judge {pipeline}:{name}: {file} has no model `{name}`{known}")))?;
        if model.provider == Provider::Rules {
            return Err(usage(format!(
                "--judge {pipeline}:{name}: its provider is rules, and no rule judges adequacy"
            )));
        }
        let unsaid = match &self.rights {
            None => Rights::unknown(),
            Some(path) => {
                let text = fs::read_text(path).map_err(|error| usage(format!("--rights: {error:#}")))?;
                parse_rights(&path.display().to_string(), &text)?
            }
        };
        let prompt = fs::read_limited(&project.pipelines_dir().join(JUDGE_PROMPT), fs::MANIFEST_LIMIT)
            .map_err(|error| usage(format!("the prompt of the judge: {error:#}")))?;
        let judge = Judge::new(pipeline, &model, JUDGE_PROMPT, prompt).map_err(|error| usage(format!("{error:#}")))?;
        Ok(Some(OpenedJudge { arguments: self, model, judge, unsaid }))
    }
}

impl OpenedJudge<'_> {
    fn check_makers(&self, sets: &[RecordSet]) -> anyhow::Result<()> {
        match sets.iter().find(|set| self.judge.made(set)) {
            None => Ok(()),
            Some(set) => Err(usage(format!(
                "{}: its slots were filled by {}, which is the judge: nobody judges their own work; name another model with --judge",
                set.name,
                self.judge.full_name()
            ))),
        }
    }

    /// Asks what may be sent, and decides whether what is missing stands in the way.
    fn ask(&self, global: &Global, questions: Questions) -> anyhow::Result<Judged> {
        let skips = self.arguments.judge_missing == JudgeMissing::Skip;
        let n = questions.n();
        if let Some((n_withheld, rights)) = questions.withheld(self.model.egress)
            && (n_withheld == n || !skips)
        {
            let skip = if n_withheld == n { "" } else { ", or leave them out of its mean with --judge-missing skip" };
            return Err(usage(format!(
                "nothing was sent to the judge: {} of {} questions may not go to model {} (egress {}), the first since its records have {}, by the stricter of reference and candidate; --rights FILE says what may be done with files, and which models may see the cases of a release{skip}",
                grouped(n_withheld as u64),
                grouped(n as u64),
                self.model.name,
                self.model.egress.as_str(),
                shown_rights(rights)
            )));
        }
        let options = ModelOptions {
            mode: self.arguments.llm.into(),
            sends: n > 0,
            budget: self.arguments.budget,
            interrupted: interruption()?,
            backoff: Backoff::default(),
        };
        let workspace = global.workspace();
        workspace.check_format()?;
        let name = self.model.name.clone();
        let store = Arc::new(ReplyStore::new(workspace.replies_dir()));
        let models = BTreeMap::from([(name.clone(), self.model.clone())]);
        let models = Models::open(&models, &[name], store, options, env::read)?;
        let judged = self.judge.ask(&models, questions).map_err(stopped)?;
        if !global.quiet {
            let counts = models.counts();
            eprintln!(
                "judge: {} replies from the store, {} from the model, {} failed; {} requests, cost {:.4}",
                grouped(counts.replayed),
                grouped(counts.answered),
                grouped(counts.failed),
                grouped(counts.requests),
                counts.spent
            );
        }
        if let Some((n_missing, why)) = judged.missing().filter(|_| !skips) {
            let example =
                judged.first_detail().map(|detail| format!("; the first: {}", indented(detail))).unwrap_or_default();
            return Err(input(format!(
                "the judge has no score for {} of {} pairs ({why}{example}): ask again with --llm live, or leave these pairs out of its mean with --judge-missing skip",
                grouped(n_missing as u64),
                grouped(judged.n_pairs() as u64)
            )));
        }
        Ok(judged)
    }
}

/// There are no shards to keep here.
fn stopped(error: anyhow::Error) -> anyhow::Error {
    match error.downcast_ref() {
        Some(Fault::Interrupted) => Fault::Stopped(
            "interrupted; the judge's answers so far are kept, run the same command again to go on".to_owned(),
        )
        .into(),
        _ => error,
    }
}

fn has_credentialed(set: &RecordSet) -> bool {
    set.rights.values().any(|rights| rights.access == Access::Credentialed)
}

/// The name of a file or folder without its ending.
fn name_of(path: &Path) -> String {
    path.file_stem().map_or_else(|| path.display().to_string(), |name| name.to_string_lossy().into_owned())
}

fn fault(error: &ReadError) -> anyhow::Error {
    input(error.to_string())
}

/// The reference records of a file, or of all files of a folder in the order of their names, and how many have no stem.
fn read_references(
    path: &Path,
    split: SplitFilter,
    stems: &BTreeMap<String, String>,
) -> anyhow::Result<(RecordSet, usize)> {
    let files = if path.is_dir() {
        let names = fs::list(path)?;
        names.iter().filter(|name| is_record_file(name)).map(|name| path.join(name)).collect()
    } else {
        vec![path.to_owned()]
    };
    let mut all = RecordSet::new(name_of(path));
    let mut n_unknown = 0;
    for file in &files {
        let (sets, n) = read_records(file, split, stems)?;
        n_unknown += n;
        for (key, slots) in sets.into_iter().flat_map(|set| set.cases) {
            all.insert(&[key], slots)
                .map_err(|key| input(format!("{}: the case {key} has two reference records", file.display())))?;
        }
    }
    if all.cases.is_empty() {
        return Err(input(format!(
            "{}: no reference record to compare with; {n_unknown} have a question that is in none of the files given: name it with --stems",
            path.display()
        )));
    }
    Ok((all, n_unknown))
}

/// Records stand in JSONL or CSV.
fn check_name(path: &Path) -> anyhow::Result<()> {
    let shown = path.display().to_string();
    if is_record_file(&shown) {
        return Ok(());
    }
    Err(usage(format!("{shown}: is neither a folder of a release nor a .jsonl or .csv file, nor PIPELINE:NODE")))
}

fn is_record_file(name: &str) -> bool {
    let ending = Path::new(name).extension().and_then(|ending| ending.to_str()).unwrap_or_default();
    ["jsonl", "csv"].iter().any(|known| ending.eq_ignore_ascii_case(known))
}

/// The record sets of one JSONL or CSV file, and how many records with offsets have no stem; those are left out.
fn read_records(
    path: &Path,
    split: SplitFilter,
    stems: &BTreeMap<String, String>,
) -> anyhow::Result<(Vec<RecordSet>, usize)> {
    check_name(path)?;
    let shown = path.display().to_string();
    let source = Source { file: &shown, name: &name_of(path), split };
    let bytes = fs::read_limited(path, FILE_LIMIT).map_err(|error| input(format!("{error:#}")))?;
    if shown.to_lowercase().ends_with(".csv") {
        let set = references::read_csv(bytes.as_slice(), source).map_err(|error| fault(&error))?;
        return Ok((vec![set], 0));
    }
    // A blank line in place of a record that cannot be resolved keeps the numbers of the others.
    let mut n_unknown = 0;
    let mut kept = Vec::with_capacity(bytes.len());
    for line in bytes.split_inclusive(|byte| *byte == b'\n') {
        let has_offsets = serde_json::from_slice::<Value>(line).ok().filter(|record| record.get("values").is_some());
        let hash = has_offsets.as_ref().and_then(|record| record.get("question_sha256")?.as_str());
        if hash.is_some_and(|hash| !stems.contains_key(hash)) {
            n_unknown += 1;
            kept.push(b'\n');
        } else {
            kept.extend_from_slice(line);
        }
    }
    if n_unknown > 0 && kept.iter().all(u8::is_ascii_whitespace) {
        return Ok((Vec::new(), n_unknown));
    }
    let find = |hash: &str| stems.get(hash).cloned();
    match references::read_jsonl(Cursor::new(kept), source, &find) {
        Ok(sets) => Ok((sets, n_unknown)),
        Err(error) if n_unknown > 0 && error.problem == references::Problem::NoRecords => Ok((Vec::new(), n_unknown)),
        Err(error) => Err(fault(&error)),
    }
}

/// The values of a release as they were extracted, by the hash of the stem and by case id.
fn read_release(path: &Path, stems: &mut BTreeMap<String, String>) -> anyhow::Result<RecordSet> {
    let context = || format!("{}: is not the folder of a release", path.display());
    let mut hashes: BTreeMap<String, String> = BTreeMap::new();
    parquet::for_each_batch(&path.join("texts.parquet"), None, |batch| {
        for row in from_batch::<TextRow>(&batch)? {
            let hash = Hash::of(row.text.as_bytes()).to_string();
            hashes.insert(row.case_id, hash.clone());
            stems.insert(hash, row.text);
        }
        Ok(())
    })
    .map_err(|error| input(format!("{}: {error:#}", context())))?;
    let mut cases: BTreeMap<String, CaseSlots> = hashes.keys().map(|id| (id.clone(), CaseSlots::new())).collect();
    parquet::for_each_batch(&path.join("slots.parquet"), None, |batch| {
        for row in from_batch::<SlotRow>(&batch)? {
            let slot = row.moved_from.unwrap_or(row.slot);
            cases.entry(row.case_id).or_default().entry(slot).or_default().push(row.value);
        }
        Ok(())
    })
    .map_err(|error| input(format!("{}: {error:#}", context())))?;
    let mut set = RecordSet::new(name_of(path));
    let mut seen = BTreeSet::new();
    for (case_id, slots) in cases {
        let mut keys = Vec::new();
        // Two questions on one stem are two cases with one text: the first answers for it.
        if let Some(hash) = hashes.get(&case_id).filter(|hash| seen.insert((*hash).clone())) {
            keys.push(CaseKey::new(hash.clone()));
        }
        keys.push(CaseKey::new(case_id));
        set.insert(&keys, slots).map_err(|key| input(format!("{}: {key} is there twice", path.display())))?;
    }
    Ok(set)
}

/// Rights and makers of the cases of a release, by the first key of each.
fn add_origins(path: &Path, set: &mut RecordSet, unsaid: &Rights) -> anyhow::Result<()> {
    #[derive(Deserialize)]
    struct CaseOrigin {
        case_id: String,
        licence: String,
        access: Access,
        made_by: Vec<MadeBy>,
    }
    let folder = path.join("cases");
    let files = fs::list(&folder)?;
    for file in files.iter().filter(|name| name.ends_with(".parquet")) {
        parquet::for_each_batch(&folder.join(file), Some(&["case_id", "licence", "access", "made_by"]), |batch| {
            for case in from_batch::<CaseOrigin>(&batch)? {
                set.made_by.extend(makers(&case.made_by, field::SLOTS).map(str::to_owned));
                let id = CaseKey::new(case.case_id);
                let key = set.find(&id).map(|(key, _)| key.clone());
                set.rights.extend(key.map(|key| (key, rights_of_case(case.licence, case.access, unsaid))));
            }
            Ok(())
        })
        .map_err(|error| input(format!("{}/{file}: {error:#}", folder.display())))?;
    }
    Ok(())
}

/// `PIPELINE:NODE`, unless a file has that name.
fn built_node(path: &Path) -> Option<(String, String)> {
    let (pipeline, node) = path.to_str()?.split_once(':')?;
    (!path.exists()).then(|| (pipeline.to_owned(), node.to_owned()))
}

/// A node that is built: its session, the plans, its place and the shards it passes on.
struct BuiltNode {
    session: Session,
    plans: Vec<NodePlan>,
    index: usize,
    n_shards: u32,
}

/// The build of a node by rules, by the models of its pipeline, or by those of `--models`: the one that there is, and of
/// several the one that the node had last.
fn find_build(global: &Global, pipeline: &str, node: &str, models: Option<&Path>) -> anyhow::Result<BuiltNode> {
    let open = |llm, models: Option<&Path>| -> anyhow::Result<Option<BuiltNode>> {
        let models = models.map(Path::to_owned);
        let session = global.session(pipeline, SessionArguments { llm, models, ..SessionArguments::default() })?;
        let nodes = &session.graph.nodes;
        let index = nodes.iter().position(|known| known.name == node).ok_or_else(|| {
            usage(format!(
                "{pipeline}: no node `{node}`{}",
                suggestion(node, nodes.iter().map(|known| known.name.as_str()))
            ))
        })?;
        let plans = session.plan()?;
        let n_shards = plans.get(index).and_then(|plan| plan.manifest.as_ref()).map(|built| built.n_stream_shards);
        Ok(n_shards.map(|n_shards| BuiltNode { session, plans, index, n_shards }))
    };
    let mut found: Vec<BuiltNode> = open(LlmMode::Off, None)?.into_iter().collect();
    found.extend(open(LlmMode::Replay, None)?);
    if let Some(models) = models {
        match open(LlmMode::Replay, Some(models)) {
            Ok(built) => found.extend(built),
            // A file that holds the judge alone makes no build.
            Err(_) if !found.is_empty() => {}
            Err(error) => return Err(error),
        }
    }
    let workspace = global.workspace();
    let current = workspace.node_dir(pipeline, node).join("current.json");
    let last = read_json::<CurrentFile>(&current)?.map(|file| workspace.build_dir(pipeline, node, &file.fingerprint));
    let folder = |built: &BuiltNode| built.plans.get(built.index).and_then(|plan| plan.build_dir.clone());
    let place = found.iter().position(|built| folder(built) == last).unwrap_or(0);
    found
        .into_iter()
        .nth(place)
        .ok_or_else(|| usage(format!("{pipeline}: node {node} is not built; run casemill build {pipeline}")))
}

/// The records of a node of a build.
fn read_node(
    global: &Global,
    pipeline: &str,
    node: &str,
    models: Option<&Path>,
    stems: &mut BTreeMap<String, String>,
) -> anyhow::Result<RecordSet> {
    let BuiltNode { session, plans, index, n_shards } = find_build(global, pipeline, node, models)?;
    let upstream = Upstream { session: &session, plans: &plans };
    let mut set = RecordSet::new(format!("{pipeline}:{node}"));
    let mut seen = BTreeSet::new();
    for shard in 0..n_shards {
        let records = from_batch::<SlotRecord>(&upstream.read_stream(index, shard, None)?)
            .map_err(|error| usage(format!("{pipeline}: node {node} has no slot records: {error:#}")))?;
        for record in records {
            let hash = Hash::of(record.stem.as_bytes()).to_string();
            let mut keys = vec![CaseKey::new(record.record_id.to_string())];
            if seen.insert(hash.clone()) {
                keys.insert(0, CaseKey::new(hash.clone()));
            }
            stems.insert(hash, record.stem);
            set.made_by.extend(makers(&record.made_by, field::SLOTS).map(str::to_owned));
            set.rights.extend(keys.first().map(|key| (key.clone(), record.provenance.rights)));
            let mut slots = CaseSlots::new();
            for value in record.slots {
                slots.entry(value.moved_from.unwrap_or(value.slot)).or_default().push(value.value);
            }
            set.insert(&keys, slots).map_err(|key| input(format!("{pipeline}: {key} is there twice")))?;
        }
    }
    if !global.quiet {
        let makers: Vec<&str> = set.made_by.iter().map(String::as_str).collect();
        eprintln!("{}: {} records, their slots by {}", set.name, grouped(set.cases.len() as u64), makers.join(", "));
    }
    Ok(set)
}

/// Adds the stems of a file of raw questions by their hash. Lines that hold none are passed over: the file is only searched.
fn read_stems(path: &Path, stems: &mut BTreeMap<String, String>) -> anyhow::Result<()> {
    let file = std::fs::File::open(path).map_err(|error| input(format!("{}: {error}", path.display())))?;
    let mut reader = BufReader::new(file);
    let mut line = Vec::new();
    loop {
        line.clear();
        let limit = STEM_LIMIT;
        let n = std::io::Read::take(&mut reader, limit)
            .read_until(b'\n', &mut line)
            .with_context(|| format!("reading {}", path.display()))?;
        if n == 0 {
            return Ok(());
        }
        let text = line.strip_prefix("\u{feff}".as_bytes()).unwrap_or(&line);
        let Ok(record) = serde_json::from_slice::<Value>(text) else { continue };
        for key in ["question", "stem"] {
            if let Some(stem) = record.get(key).and_then(Value::as_str) {
                stems.insert(Hash::of(stem.as_bytes()).to_string(), stem.to_owned());
            }
        }
    }
}

#[cfg(not(feature = "embedder"))]
fn embedder_metrics(folder: Option<&Path>) -> anyhow::Result<Vec<Box<dyn PairMetric>>> {
    match folder {
        None => Ok(Vec::new()),
        Some(_) => Err(usage("--embedder needs a casemill that was compiled with `--features embedder`")),
    }
}

/// The two scores of an embedder, named for what they are.
#[cfg(feature = "embedder")]
fn embedder_metrics(folder: Option<&Path>) -> anyhow::Result<Vec<Box<dyn PairMetric>>> {
    use casemill::service::embedder::Embedder;
    use std::sync::Arc;

    struct TokenVectors(Arc<Embedder>);
    impl PairMetric for TokenVectors {
        fn name(&self) -> &str {
            "token-vector-f1"
        }
        fn score(&self, reference: &str, candidate: &str) -> f64 {
            // A score that is no number stops the comparison and is reported.
            self.0.token_f1(reference, candidate).unwrap_or(f64::NAN)
        }
    }
    struct SentenceCosine(Arc<Embedder>);
    impl PairMetric for SentenceCosine {
        fn name(&self) -> &str {
            "sentence-cosine"
        }
        fn score(&self, reference: &str, candidate: &str) -> f64 {
            self.0.cosine(reference, candidate).unwrap_or(f64::NAN)
        }
    }
    let Some(folder) = folder else { return Ok(Vec::new()) };
    let embedder = Arc::new(Embedder::load(folder)?);
    Ok(vec![Box::new(TokenVectors(embedder.clone())), Box::new(SentenceCosine(embedder))])
}
