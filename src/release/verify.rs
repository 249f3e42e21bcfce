//! `casemill verify`: every hash, schema, count and cross reference of a release. It lists every fault
//! it finds and never repairs one.

use super::case::{CASE_TYPES, CaseRows, CaseType, MEDIA, case_hash};
use super::difficulties::Difficulties;
use super::freeze::{tables, walk};
use super::manifest::{MANIFEST, Manifest, RELEASE_FORMAT, SUMS, sums};
use super::medrounds::RUNS;
use super::merkle;
use crate::error::usage;
use crate::record::ledger::{Counts, SourceCounts};
use crate::record::model::ReplyTrace;
use crate::record::release::{MediaRow, ProvenanceRow, ReleaseJudgementRow, ReleaseLedgerRow, ReleaseReviewRow};
use crate::record::{Hash, Row, RowType, from_batch};
use crate::store::manifest::to_json;
use crate::store::{fs, parquet, raw, replies};
use anyhow::Context;
use serde::Serialize;
use serde_json::Value;
use std::collections::{BTreeMap, BTreeSet, VecDeque};
use std::path::{Path, PathBuf};

/// What was found.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize)]
pub struct Verification {
    /// Each names the file it is about; empty when the release is whole.
    pub faults: Vec<String>,
    pub n_files: usize,
    pub bytes: u64,
    pub n_cases: u64,
    /// As computed from the files.
    pub content_hash: Option<Hash>,
}

/// Checks a release folder.
///
/// # Errors
/// The folder is not there or was made by a newer casemill. Faults of the release are in the result.
pub fn verify(folder: &Path) -> anyhow::Result<Verification> {
    if !folder.is_dir() {
        return Err(usage(format!("{} is not a folder; give the path of a release", folder.display())));
    }
    let mut checker = Checker { folder, result: Verification::default(), hashes: BTreeMap::new() };
    checker.hash_files()?;
    let manifest = checker.read_manifest()?;
    checker.check_sums();
    if let Some(manifest) = manifest {
        checker.check_files(&manifest);
        checker.check_schemas(&manifest);
        checker.check_cases(&manifest);
        checker.check_counts(&manifest);
    }
    checker.result.faults.dedup();
    Ok(checker.result)
}

/// What the replies of models behind a release are, compared with a file of replies.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize)]
pub struct RepliesVerification {
    pub faults: Vec<String>,
    /// Replies that cases name, each once.
    pub n_named: u64,
    /// Lines of the file.
    pub n_in_file: u64,
}

/// Checks that every reply that a case of a release names is in an exported file, with the bytes that its hash says.
///
/// # Errors
/// The file cannot be read at all. Replies that are missing or wrong are in the result.
pub fn verify_replies(folder: &Path, file: &Path) -> anyhow::Result<RepliesVerification> {
    let mut result = RepliesVerification::default();
    let mut known: BTreeSet<(Hash, Hash)> = BTreeSet::new();
    replies::read_export(file, &mut |reply| {
        result.n_in_file += 1;
        known.insert((reply.key, reply.sha256));
        Ok(())
    })?;
    #[derive(serde::Deserialize)]
    struct Named {
        case_id: String,
        replies: Vec<ReplyTrace>,
    }
    let mut named = BTreeSet::new();
    for name in fs::list(&folder.join("cases"))? {
        let path = folder.join("cases").join(&name);
        let cases: Vec<Named> = from_batch(&parquet::read_columns(&path, &["case_id", "replies"])?)?;
        for case in cases {
            for reply in case.replies {
                let pair = (reply.call, reply.sha256);
                if !known.contains(&pair) {
                    let message = format!(
                        "case {}: reply {} to call {} is not in {}",
                        case.case_id,
                        pair.1,
                        pair.0,
                        file.display()
                    );
                    result.faults.push(message);
                }
                named.insert(pair);
            }
        }
    }
    result.n_named = named.len() as u64;
    Ok(result)
}

pub(super) struct Checker<'a> {
    folder: &'a Path,
    result: Verification,
    /// Of every file that is there.
    hashes: BTreeMap<String, (Hash, u64)>,
}

impl Checker<'_> {
    pub(super) fn fault(&mut self, text: impl Into<String>) {
        self.result.faults.push(text.into());
    }

    pub(super) fn path(&self, name: &str) -> PathBuf {
        self.folder.join(name)
    }

    /// Runs one check; what it cannot read is a fault of that file.
    pub(super) fn attempt<T>(&mut self, name: &str, check: impl FnOnce(&mut Self) -> anyhow::Result<T>) -> Option<T> {
        match check(self) {
            Ok(value) => Some(value),
            Err(error) => {
                self.fault(format!("{name}: {error:#}"));
                None
            }
        }
    }

    fn hash_files(&mut self) -> anyhow::Result<()> {
        for name in walk(self.folder)? {
            let path = self.path(&name);
            if !std::fs::symlink_metadata(&path)?.is_file() {
                self.fault(format!("{name}: is not a regular file"));
                continue;
            }
            let (hash, bytes) = raw::hash_file(&path)?;
            self.result.n_files += 1;
            self.result.bytes += bytes;
            self.hashes.insert(name, (hash, bytes));
        }
        Ok(())
    }

    fn read_manifest(&mut self) -> anyhow::Result<Option<Manifest>> {
        if !self.hashes.contains_key(MANIFEST) {
            self.fault(format!("{MANIFEST}: is missing"));
            return Ok(None);
        }
        let Some(value) = self
            .attempt(MANIFEST, |checker| Ok(serde_json::from_str::<Value>(&fs::read_text(&checker.path(MANIFEST))?)?))
        else {
            return Ok(None);
        };
        if let Some(format) = value.get("format").and_then(Value::as_u64)
            && format > u64::from(RELEASE_FORMAT)
            && value.get("tool_version").is_some()
            && self.is_as_listed(MANIFEST)
        {
            return Err(usage(format!(
                "{MANIFEST} has format {format}, this casemill knows {RELEASE_FORMAT}: use a newer one"
            )));
        }
        let manifest: Option<Manifest> = self.attempt(MANIFEST, |_| Ok(serde_json::from_value(value)?));
        if let Some(manifest) = &manifest {
            let text = to_json(manifest)?;
            if self.hashes.get(MANIFEST).is_some_and(|(hash, _)| *hash != Hash::of(&text)) {
                self.fault(format!(
                    "{MANIFEST}: is not written as casemill writes it: its keys, order or blanks were changed"
                ));
            }
        }
        Ok(manifest)
    }

    /// Whether a file has the hash that SHA256SUMS gives; a damaged one says nothing about its format.
    fn is_as_listed(&self, name: &str) -> bool {
        let Some((hash, _)) = self.hashes.get(name) else { return false };
        fs::read_text(&self.path(SUMS)).is_ok_and(|text| text.lines().any(|line| line == format!("{hash}  {name}")))
    }

    /// SHA256SUMS: the text that the files themselves give.
    fn check_sums(&mut self) {
        let Some(bytes) =
            self.hashes.contains_key(SUMS).then(|| fs::read_limited(&self.path(SUMS), fs::MANIFEST_LIMIT))
        else {
            self.fault(format!("{SUMS}: is missing"));
            return;
        };
        let Some(bytes) = self.attempt(SUMS, |_| bytes) else { return };
        let expected =
            sums(self.hashes.iter().filter(|(name, _)| *name != SUMS).map(|(name, (hash, _))| (name.as_str(), hash)));
        if bytes == expected.as_bytes() {
            return;
        }
        if bytes.contains(&b'\r') {
            self.fault(format!("{SUMS}: has carriage returns at line ends, so `sha256sum -c` looks for other names; only its line ends were changed, fetch it again"));
        }
        let text = String::from_utf8_lossy(&bytes).replace('\r', "");
        let mut listed = BTreeMap::new();
        for (number, line) in (1..).zip(text.lines()) {
            match line.split_once("  ") {
                Some((hash, name)) => {
                    if let Some((actual, _)) = self.hashes.get(name) {
                        if actual.as_str() != hash {
                            self.fault(format!("{name}: does not have the hash that {SUMS} line {number} gives"));
                        }
                    } else {
                        self.fault(format!("{SUMS}: line {number} names {name}, which is not there"));
                    }
                    listed.insert(name.to_owned(), ());
                }
                None => self.fault(format!("{SUMS}: line {number} is not a hash and a name")),
            }
        }
        let unlisted: Vec<String> =
            self.hashes.keys().filter(|name| *name != SUMS && !listed.contains_key(*name)).cloned().collect();
        for name in unlisted {
            self.fault(format!("{name}: is not in {SUMS}"));
        }
        self.fault(format!("{SUMS}: is not the text that the files of this folder give"));
    }

    /// Files against the manifest: there, hash, size.
    fn check_files(&mut self, manifest: &Manifest) {
        let mut expected = BTreeSet::from([MANIFEST.to_owned(), SUMS.to_owned()]);
        for file in &manifest.files {
            expected.insert(file.path.clone());
            match self.hashes.get(&file.path).cloned() {
                None => self.fault(format!("{}: is missing", file.path)),
                Some((hash, bytes)) if hash != file.sha256 => {
                    let hint = self.line_end_hint(&file.path, &file.sha256);
                    self.fault(format!(
                        "{}: has SHA-256 {hash} and {bytes} bytes, {MANIFEST} says {} and {} bytes{hint}",
                        file.path, file.sha256, file.bytes
                    ));
                }
                Some((_, bytes)) if bytes != file.bytes => {
                    self.fault(format!("{MANIFEST}: says that {} has {} bytes, it has {bytes}", file.path, file.bytes))
                }
                Some(_) => {}
            }
        }
        let extra: Vec<String> = self.hashes.keys().filter(|name| !expected.contains(*name)).cloned().collect();
        for name in extra {
            self.fault(format!("{name}: is not in {MANIFEST}"));
        }
    }

    /// Says so when a text file differs in its line ends alone.
    fn line_end_hint(&self, name: &str, expected: &Hash) -> &'static str {
        let Ok(bytes) = fs::read_limited(&self.path(name), fs::MANIFEST_LIMIT) else { return "" };
        line_end_hint(&bytes, expected)
    }

    fn check_schemas(&mut self, manifest: &Manifest) {
        let Some(case_type) = self.case_type(manifest) else { return };
        let row_types = tables(case_type).into_iter().map(|(_, row)| row).chain([case_type.case]).collect::<Vec<_>>();
        for row_type in &row_types {
            let name = format!("schemas/{}", row_type.file_name());
            let expected = to_json(&(row_type.json_schema)());
            match (self.hashes.get(&name).cloned(), expected) {
                (Some((hash, _)), Ok(expected)) if hash != Hash::of(&expected) => {
                    self.fault(format!("{name}: is not the schema that this casemill has for `{}`", row_type.name))
                }
                (None, _) => self.fault(format!("{name}: is missing")),
                _ => {}
            }
        }
        let tables: Vec<(String, RowType)> = tables(case_type)
            .into_iter()
            .chain(self.case_files().into_iter().map(|name| (name, case_type.case)))
            .collect();
        for (name, row_type) in tables {
            if !self.hashes.contains_key(&name) {
                self.fault(format!("{name}: is missing"));
                continue;
            }
            self.attempt(&name.clone(), |checker| {
                let found = parquet::schema(&checker.path(&name))?;
                let declared = (row_type.arrow_schema)()?;
                if found.fields() != declared.fields() {
                    checker.fault(format!(
                        "{name}: its columns are not those of `{}`: {}",
                        row_type.name,
                        show_columns(&found, &declared)
                    ));
                }
                let rows = parquet::n_rows(&checker.path(&name))?;
                let listed = manifest.files.iter().find(|file| file.path == name).map(|file| file.rows);
                if listed != Some(Some(rows)) {
                    checker.fault(format!(
                        "{name}: has {rows} rows, {MANIFEST} says {}",
                        listed.flatten().map_or_else(|| "nothing".to_owned(), |n| n.to_string())
                    ));
                }
                Ok(())
            });
        }
    }

    fn case_type(&mut self, manifest: &Manifest) -> Option<&'static CaseType> {
        let found = CASE_TYPES.iter().find(|case_type| self.is_case_type(manifest, case_type));
        if found.is_none() {
            self.fault("schemas: there is none for the cases that this casemill knows");
        }
        found
    }

    /// Pipelines of one's own may have another name than their case type: the schema file tells.
    fn is_case_type(&self, manifest: &Manifest, case_type: &CaseType) -> bool {
        case_type.case.name == format!("{}_case", manifest.pipeline)
            || self.hashes.contains_key(&format!("schemas/{}", case_type.case.file_name()))
    }

    fn case_files(&self) -> Vec<String> {
        self.hashes.keys().filter(|name| name.starts_with("cases/") && name.ends_with(".parquet")).cloned().collect()
    }

    /// Case hashes, content hash, order, and what the side tables say about each case.
    fn check_cases(&mut self, manifest: &Manifest) {
        let Some(case_type) = CASE_TYPES.iter().find(|known| self.is_case_type(manifest, known)) else { return };
        let mut provenance = SortedRows::<ProvenanceRow>::new(self.path("provenance.parquet"));
        let mut own: Vec<(&'static str, SortedRows<Value>)> =
            case_type.all_tables().map(|table| (table.name, SortedRows::new(self.path(&table.file())))).collect();
        let mut media = BTreeSet::new();
        let mut difficulties = Difficulties::of(self, manifest);
        let mut views = ViewReaders::open(self, case_type);
        let mut subsets: BTreeMap<String, u64> = BTreeMap::new();
        let mut leaves = Vec::new();
        let mut ids: BTreeSet<String> = BTreeSet::new();
        let mut last = String::new();
        let sources: BTreeSet<String> = manifest.sources.iter().map(|source| source.name.clone()).collect();
        for name in self.case_files() {
            let Some(cases) = self.attempt(&name, |checker| from_batch::<Value>(&parquet::read(&checker.path(&name))?))
            else {
                continue;
            };
            for case in cases {
                let id = case.get("case_id").and_then(Value::as_str).unwrap_or_default().to_owned();
                if id <= last {
                    self.fault(format!("{name}: {id} comes after {last}: not sorted, or twice"));
                }
                last.clone_from(&id);
                let provenance = self.attempt("provenance.parquet", |_| provenance.take(&id)).flatten();
                ids.insert(id.clone());
                let mut rows = CaseRows { case, tables: BTreeMap::new() };
                let mut is_complete = true;
                for (table, sorted) in &mut own {
                    match self.attempt(&format!("{table}.parquet"), |_| sorted.take(&id)).flatten() {
                        Some(taken) => drop(rows.tables.insert((*table).to_owned(), taken)),
                        None => is_complete = false,
                    }
                }
                if is_complete {
                    self.check_case(case_type, &name, &id, &rows);
                    let runs = self.attempt("runs.parquet", |_| rows.table(RUNS)).unwrap_or_default();
                    difficulties.check(self, &id, &rows.case, &runs);
                    views.check(self, &id, case_type.lines_of(&rows));
                    self.check_media(&id, &rows, manifest, &mut media);
                } else {
                    // A table that cannot be read is a fault already; no view is accused of it.
                    views.0.iter_mut().for_each(|(_, lines)| *lines = None);
                }
                let case = rows.case;
                let drawn = case.get("subsets").and_then(Value::as_array).into_iter().flatten();
                for subset in drawn.filter_map(Value::as_str) {
                    *subsets.entry(subset.split('/').next().unwrap_or_default().to_owned()).or_default() += 1;
                }
                match provenance.as_deref() {
                    None => {}
                    Some([row]) => {
                        let source = case.get("source").and_then(Value::as_str);
                        if source != Some(&row.source) || !sources.contains(&row.source) {
                            self.fault(format!("provenance.parquet: {id} comes from {}, which is not the source of the case or not in {MANIFEST}", row.source));
                        }
                    }
                    Some(rows) => {
                        self.fault(format!("provenance.parquet: {} rows for {id} instead of one", rows.len()))
                    }
                }
                leaves.extend(
                    case.get("case_hash")
                        .and_then(|hash| serde_json::from_value::<Hash>(hash.clone()).ok())
                        .and_then(|hash| hash.to_bytes()),
                );
            }
        }
        let mut rests = vec![("provenance.parquet".to_owned(), provenance.finish())];
        rests.extend(own.into_iter().map(|(table, sorted)| (format!("{table}.parquet"), sorted.finish())));
        for (name, rest) in rests {
            if let Some(orphans) = self.attempt(&name, |_| rest) {
                for id in orphans {
                    self.fault(format!("{name}: {id} is not a case of this release, or its rows are not sorted"));
                }
            }
        }
        views.finish(self);
        let unnamed: Vec<String> =
            self.hashes.keys().filter(|name| name.starts_with("media/") && !media.contains(*name)).cloned().collect();
        for name in unnamed {
            self.fault(format!("{name}: no row of media.parquet names it"));
        }
        difficulties.finish(self, manifest);
        for subset in &manifest.subsets {
            let n = subsets.remove(&subset.name).unwrap_or_default();
            if n != subset.n {
                self.fault(format!("cases: {n} are in subset {}, {MANIFEST} says {}", subset.name, subset.n));
            }
        }
        for name in subsets.into_keys() {
            self.fault(format!("cases: subset {name} is not in {MANIFEST}"));
        }
        leaves.sort_unstable();
        let content_hash = merkle::root(&leaves);
        self.result.n_cases = ids.len() as u64;
        if self.result.n_cases != manifest.n_cases {
            self.fault(format!("cases: there are {}, {MANIFEST} says {}", self.result.n_cases, manifest.n_cases));
        }
        if content_hash != manifest.content_hash {
            self.fault(format!(
                "cases: their content hash is {content_hash}, {MANIFEST} says {}",
                manifest.content_hash
            ));
        }
        self.result.content_hash = Some(content_hash);
        self.check_judgements(&ids);
        self.attempt("review.parquet", |checker| {
            let mut keys = BTreeSet::new();
            for row in read_rows::<ReleaseReviewRow>(&checker.path("review.parquet"))? {
                if !keys.insert((row.case_id.clone(), row.node.clone(), row.reason.clone(), row.detail.clone())) {
                    checker.fault(format!("review.parquet: {} is listed twice for {}", row.case_id, row.reason));
                }
            }
            Ok(())
        });
    }

    /// Sorted by a unique key, and about cases of this release or records in its ledger.
    fn check_judgements(&mut self, cases: &BTreeSet<String>) {
        const NAME: &str = "judgements.parquet";
        self.attempt(NAME, |checker| {
            let left = read_rows::<ReleaseLedgerRow>(&checker.path("ledger.parquet"))?;
            let left: BTreeSet<String> = left.into_iter().map(|row| row.case_id).collect();
            let mut last = None;
            for row in read_rows::<ReleaseJudgementRow>(&checker.path(NAME))? {
                if !cases.contains(&row.case_id) && !left.contains(&row.case_id) {
                    checker.fault(format!("{NAME}: {} is neither a case nor in ledger.parquet", row.case_id));
                }
                let key = Some((row.case_id, row.node, row.model, row.about));
                if key <= last {
                    checker.fault(format!("{NAME}: {} is not sorted, or twice", show_key(&key)));
                }
                last = key;
            }
            Ok(())
        });
    }

    fn check_case(&mut self, case_type: &CaseType, name: &str, id: &str, rows: &CaseRows) {
        let stored = rows.case.get("case_hash").and_then(Value::as_str).unwrap_or_default();
        match case_hash(case_type, rows) {
            Ok(hash) if hash.as_str() == stored => {}
            Ok(hash) => self.fault(format!("{name}: {id} has case_hash {stored}, its content gives {hash}")),
            Err(error) => self.fault(format!("{name}: {id}: {error:#}")),
        }
        match (case_type.faults)(id, rows) {
            Ok(faults) => self.result.faults.extend(faults),
            Err(error) => self.fault(format!("{name}: {id}: {error:#}")),
        }
    }

    /// The images of a case: those that the release holds are there under their hash, and it holds what its profile may.
    fn check_media(&mut self, id: &str, rows: &CaseRows, manifest: &Manifest, named: &mut BTreeSet<String>) {
        let Some(media) = self.attempt("media.parquet", |_| rows.table::<MediaRow>(MEDIA)) else { return };
        for row in media {
            let image = format!("media.parquet: {id} image {}", row.ordinal);
            let is_derived = row.shown_sha256 != row.sha256;
            let withheld = manifest.profile.media_refusal(&row.licence, row.access, is_derived);
            if withheld != row.withheld.as_deref() {
                self.fault(format!(
                    "{image}: under {} profile {} says {}, the row says {}",
                    row.licence,
                    manifest.profile.as_str(),
                    withheld.unwrap_or("that it may be here"),
                    row.withheld.as_deref().unwrap_or("nothing")
                ));
            }
            if row.path.is_some() == row.withheld.is_some() {
                self.fault(format!("{image}: a picture is either in the release or withheld"));
            }
            let Some(path) = row.path else { continue };
            match self.hashes.get(&path) {
                None => self.fault(format!("{image}: {path} is not there")),
                Some((hash, _)) if *hash != row.shown_sha256 => {
                    self.fault(format!("{image}: {path} has SHA-256 {hash}, the row says {}", row.shown_sha256));
                }
                Some(_) => {}
            }
            if !path.starts_with(&format!("media/{}.", row.shown_sha256)) {
                self.fault(format!("{image}: {path} is not named by its hash"));
            }
            named.insert(path);
        }
    }

    /// Conservation in every node, and the ledger against the manifest.
    fn check_counts(&mut self, manifest: &Manifest) {
        let mut from_ledger: BTreeMap<String, SourceCounts> = BTreeMap::new();
        let rows =
            self.attempt("ledger.parquet", |checker| read_rows::<ReleaseLedgerRow>(&checker.path("ledger.parquet")));
        for row in rows.iter().flatten() {
            from_ledger
                .entry(row.node.clone())
                .or_default()
                .entry(row.source.clone())
                .or_default()
                .exit(row.exit, &row.reason);
        }
        let mut last_kept = None;
        for node in &manifest.nodes {
            for counts in &node.by_source {
                let total = counts.counts();
                if !total.is_conserved() {
                    self.fault(format!("{MANIFEST}: node {}, source {}: n_in {} + n_split {} is not kept {} + dropped {} + quarantined {}", node.node, counts.source, total.n_in, total.n_split, total.kept, total.n_dropped(), total.n_quarantined()));
                }
                // What a profile leaves out is counted, not listed.
                if rows.is_some() && node.stage != "freeze" {
                    let listed = from_ledger
                        .get(&node.node)
                        .and_then(|sources| sources.get(&counts.source))
                        .cloned()
                        .unwrap_or_default();
                    let access = manifest.sources.iter().find(|source| source.name == counts.source);
                    let is_listed = access.is_none_or(|source| manifest.profile.lists(source.access));
                    let expected = if is_listed { total } else { Counts::default() };
                    if (&listed.dropped, &listed.quarantined) != (&expected.dropped, &expected.quarantined) {
                        self.fault(format!(
                            "ledger.parquet: node {}, source {}: it lists other exits than {MANIFEST} counts",
                            node.node, counts.source
                        ));
                    }
                }
            }
            last_kept = Some(node.by_source.iter().map(|counts| counts.kept).sum::<u64>());
        }
        for (position, node) in manifest.nodes.iter().enumerate().filter(|(_, node)| node.stage != "freeze") {
            let told: Vec<u64> = manifest.attrition.iter().filter_map(|row| Some(row.kept.get(position)?.n)).collect();
            let counted: u64 = node.by_source.iter().map(|counts| counts.kept).sum();
            let is_named =
                manifest.attrition.iter().all(|row| row.kept.get(position).is_some_and(|kept| kept.node == node.node));
            if !manifest.attrition.is_empty() && (!is_named || told.iter().sum::<u64>() != counted) {
                self.fault(format!("{MANIFEST}: attrition: after node {} it tells of other records than the {counted} that the node kept", node.node));
            }
        }
        for (node, _) in from_ledger.iter().filter(|(node, _)| !manifest.nodes.iter().any(|known| known.node == **node))
        {
            self.result.faults.push(format!("ledger.parquet: node {node} is not in {MANIFEST}"));
        }
        if last_kept != Some(manifest.n_cases) {
            self.fault(format!(
                "{MANIFEST}: n_cases is {}, the last node kept {}",
                manifest.n_cases,
                last_kept.unwrap_or(0)
            ));
        }
    }
}

type JudgementKey = (String, String, String, Option<String>);

fn show_key(key: &Option<JudgementKey>) -> String {
    key.as_ref().map(|(case_id, node, model, _)| format!("{case_id} of node {node}, by {model}")).unwrap_or_default()
}

/// `; only its line ends were changed`, when undoing that gives the expected hash.
pub fn line_end_hint(bytes: &[u8], expected: &Hash) -> &'static str {
    let mut unix = Vec::with_capacity(bytes.len());
    let mut rest = bytes.iter().peekable();
    while let Some(byte) = rest.next() {
        if *byte != b'\r' || rest.peek() != Some(&&b'\n') {
            unix.push(*byte);
        }
    }
    if unix.len() != bytes.len() && Hash::of(&unix) == *expected {
        "; only its line ends were changed (CRLF for LF): fetch it again in binary mode"
    } else {
        ""
    }
}

fn show_columns(found: &arrow::datatypes::Schema, declared: &arrow::datatypes::Schema) -> String {
    let mut differences = Vec::new();
    for field in declared.fields() {
        match found.field_with_name(field.name()) {
            Ok(other) if other == field.as_ref() => {}
            Ok(other) => differences.push(format!(
                "{} is {} where {} is declared",
                field.name(),
                show_field(other),
                show_field(field)
            )),
            Err(_) => differences.push(format!("{} is missing", field.name())),
        }
    }
    for field in found.fields() {
        if declared.field_with_name(field.name()).is_err() {
            differences.push(format!("{} is not declared", field.name()));
        }
    }
    if differences.is_empty() { "another order".to_owned() } else { differences.join(", ") }
}

fn show_field(field: &arrow::datatypes::Field) -> String {
    format!("{}{}", field.data_type(), if field.is_nullable() { " or null" } else { "" })
}

pub(super) fn read_rows<T: Row>(path: &Path) -> anyhow::Result<Vec<T>> {
    let mut rows = Vec::new();
    parquet::for_each_batch(path, None, |batch| {
        rows.extend(from_batch::<T>(&batch)?);
        Ok(())
    })?;
    Ok(rows)
}

/// Rows that have a case id, in its order, read row group by row group.
trait OfCase: serde::de::DeserializeOwned {
    fn case_id(&self) -> &str;
}

impl OfCase for ProvenanceRow {
    fn case_id(&self) -> &str {
        &self.case_id
    }
}

/// A row of a table of the case type: its schema has been compared with the declared one.
impl OfCase for Value {
    fn case_id(&self) -> &str {
        self.get("case_id").and_then(Value::as_str).unwrap_or_default()
    }
}

struct SortedRows<T> {
    path: PathBuf,
    n_groups: Option<usize>,
    next_group: usize,
    rows: VecDeque<T>,
    orphans: BTreeSet<String>,
    /// A row group could not be read: what the table holds of the cases after it is unknown.
    broken: bool,
}

impl<T: OfCase> SortedRows<T> {
    fn new(path: PathBuf) -> Self {
        Self { path, n_groups: None, next_group: 0, rows: VecDeque::new(), orphans: BTreeSet::new(), broken: false }
    }

    fn fill(&mut self) -> anyhow::Result<bool> {
        while self.rows.is_empty() {
            let n_groups = match self.n_groups {
                Some(n) => n,
                None => *self.n_groups.insert(parquet::n_row_groups(&self.path)?),
            };
            if self.next_group >= n_groups {
                return Ok(false);
            }
            let batch = parquet::read_row_group(&self.path, self.next_group).context("reading its rows")?;
            self.next_group += 1;
            self.rows.extend(from_batch::<T>(&batch)?);
        }
        Ok(true)
    }

    /// The rows of one case, or `None` after an error: a table that cannot be read accuses no case.
    fn take(&mut self, id: &str) -> anyhow::Result<Option<Vec<T>>> {
        if self.broken {
            return Ok(None);
        }
        let taken = self.take_sorted(id);
        self.broken = taken.is_err();
        taken.map(Some)
    }

    /// Rows of smaller ids belong to no case.
    fn take_sorted(&mut self, id: &str) -> anyhow::Result<Vec<T>> {
        let mut taken = Vec::new();
        while self.fill()? {
            match self.rows.front() {
                Some(row) if row.case_id() <= id => {
                    if let Some(row) = self.rows.pop_front() {
                        if row.case_id() == id {
                            taken.push(row);
                        } else {
                            self.orphans.insert(row.case_id().to_owned());
                        }
                    }
                }
                _ => break,
            }
        }
        Ok(taken)
    }

    fn finish(mut self) -> anyhow::Result<BTreeSet<String>> {
        while !self.broken && self.fill()? {
            for row in self.rows.drain(..) {
                self.orphans.insert(row.case_id().to_owned());
            }
        }
        Ok(self.orphans)
    }
}

/// A file of lines that are functions of the rows of cases; none after a fault.
type Lines = Option<std::io::Lines<std::io::BufReader<std::fs::File>>>;

/// The files of lines (views, recipes, attribution), read along with the cases.
struct ViewReaders(Vec<(&'static str, Lines)>);

impl ViewReaders {
    fn open(checker: &mut Checker<'_>, case_type: &CaseType) -> Self {
        use std::io::BufRead;
        let mut readers = Vec::new();
        for file in case_type.line_files() {
            let opened = std::fs::File::open(checker.path(file.name));
            let mut lines = match opened {
                Ok(opened) => Some(std::io::BufReader::new(opened).lines()),
                Err(error) => {
                    checker.fault(format!("{}: {error}", file.name));
                    None
                }
            };
            if let (Some(header), Some(opened)) = (file.header, &mut lines) {
                let first = opened.next().and_then(Result::ok);
                if first.as_deref() != Some(header) {
                    checker.fault(format!("{}: its first line is not `{header}`", file.name));
                    lines = None;
                }
            }
            readers.push((file.name, lines));
        }
        Self(readers)
    }

    /// The next lines of each file are those of this case.
    fn check(&mut self, checker: &mut Checker<'_>, id: &str, expected: anyhow::Result<Vec<Vec<String>>>) {
        let Ok(expected) = expected.map_err(|error| checker.fault(format!("views: {id}: {error:#}"))) else { return };
        for ((file, lines), expected) in self.0.iter_mut().zip(&expected) {
            let Some(lines) = lines else { continue };
            for expected in expected {
                match lines.next() {
                    Some(Ok(line)) if line == *expected => {}
                    Some(Ok(_)) => checker.fault(format!("{file}: {id}: the line is not what the tables say")),
                    Some(Err(error)) => checker.fault(format!("{file}: {id}: {error}")),
                    None => checker.fault(format!("{file}: {id} is missing")),
                }
            }
        }
    }

    fn finish(self, checker: &mut Checker<'_>) {
        for (file, lines) in self.0 {
            if lines.is_some_and(|mut lines| lines.next().is_some()) {
                checker.fault(format!("{file}: there are lines for no case"));
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Case rep-06: line ends that a transfer changed.
    #[test]
    fn rep_06_changed_line_ends_are_named() {
        let expected = Hash::of(b"x\ny\n");
        assert!(line_end_hint(b"x\r\ny\r\n", &expected).contains("line ends"));
        assert_eq!(line_end_hint(b"x\r\nz\r\n", &expected), "");
        assert_eq!(line_end_hint(b"x\ny\n", &expected), "");
        let list = sums([("b.txt", &expected), ("a/c.txt", &expected)]);
        assert!(
            !list.contains('\r')
                && !list.contains('\\')
                && list.lines().next().is_some_and(|line| line.ends_with("  a/c.txt"))
        );
    }
}
