//! `casemill compare`: opens the files, finds the stems, prints the table.

use super::{Global, SessionArguments, print};
use anyhow::Context;
use casemill::compare::bootstrap::Bootstrap;
use casemill::compare::metrics::PairMetric;
use casemill::compare::references::{self, ReadError, Source};
use casemill::compare::{CaseKey, CaseSlots, RecordSet, Settings, Split, SplitFilter, plot, table};
use casemill::config::suggestion;
use casemill::engine::stream::Upstream;
use casemill::error::{Code, input, usage};
use casemill::record::release::{SlotRow, TextRow};
use casemill::record::slots::SlotRecord;
use casemill::record::{Hash, from_batch};
use casemill::store::{fs, parquet};
use clap::{Args, ValueEnum};
use serde_json::Value;
use std::collections::{BTreeMap, BTreeSet};
use std::io::{BufRead, BufReader, Cursor};
use std::num::NonZeroU32;
use std::path::{Path, PathBuf};

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
    let mut stems: BTreeMap<String, String> = BTreeMap::new();
    for path in &arguments.stems {
        read_stems(path, &mut stems)?;
    }
    let mut releases: BTreeMap<&Path, RecordSet> = BTreeMap::new();
    for path in &arguments.records {
        if path.is_dir() {
            releases.insert(path, read_release(path, &mut stems)?);
        } else if let Some((pipeline, node)) = built_node(path) {
            releases.insert(path, read_node(global, &pipeline, &node, &mut stems)?);
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
    let metrics: Vec<&dyn PairMetric> = embedder.iter().map(|metric| metric.as_ref() as &dyn PairMetric).collect();
    let settings = Settings {
        bootstrap: Bootstrap { n_resamples: arguments.resamples, seed: arguments.seed },
        n_worst: arguments.worst,
    };
    let comparison = casemill::compare::compare(&reference, &sets, &metrics, settings)
        .map_err(|error| input(format!("{}: {error}", arguments.references.display())))?;
    if let Some(path) = &arguments.plot {
        let title = format!("Agreement with {}", reference.name);
        fs::write_atomic(path, plot::svg(&comparison, &title).as_bytes())?;
    }
    print(global, &serde_json::to_value(&comparison)?, || table::text(&comparison))?;
    Ok(Code::Done)
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

/// `PIPELINE:NODE`, unless a file has that name.
fn built_node(path: &Path) -> Option<(String, String)> {
    let (pipeline, node) = path.to_str()?.split_once(':')?;
    (!path.exists()).then(|| (pipeline.to_owned(), node.to_owned()))
}

/// The records of a node of a build.
fn read_node(
    global: &Global,
    pipeline: &str,
    node: &str,
    stems: &mut BTreeMap<String, String>,
) -> anyhow::Result<RecordSet> {
    let session = global.session(pipeline, SessionArguments::default())?;
    let nodes = &session.graph.nodes;
    let index = nodes.iter().position(|known| known.name == node).ok_or_else(|| {
        usage(format!(
            "{pipeline}: no node `{node}`{}",
            suggestion(node, nodes.iter().map(|known| known.name.as_str()))
        ))
    })?;
    let plans = session.plan()?;
    let built = plans.get(index).and_then(|plan| plan.manifest.as_ref());
    let n_shards = built
        .ok_or_else(|| usage(format!("{pipeline}: node {node} is not built; run casemill build {pipeline}")))?
        .n_stream_shards;
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
            let mut slots = CaseSlots::new();
            for value in record.slots {
                slots.entry(value.moved_from.unwrap_or(value.slot)).or_default().push(value.value);
            }
            set.insert(&keys, slots).map_err(|key| input(format!("{pipeline}: {key} is there twice")))?;
        }
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
