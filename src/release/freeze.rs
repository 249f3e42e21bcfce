//! `casemill freeze`: a committed build becomes a release.

use super::case::{CASE_TYPES, CaseContext, CaseRows, CaseTable, CaseType, MEDIA};
use super::licence::{Profile, not_redistributable};
use super::manifest::{
    MANIFEST, Manifest, ManifestCounts, ManifestDifficulty, ManifestFile, ManifestMaker, ManifestModel, ManifestNode,
    ManifestPrompt, ManifestSource, RELEASE_FORMAT, RawManifestFile, SUMS, sums,
};
use super::media::{self, MediaWriter};
use super::merkle;
use super::spill::Spill;
use super::subsets::{self, Candidate, SubsetSize};
use crate::difficulty;
use crate::engine::controls::tally;
use crate::engine::stream::Upstream;
use crate::engine::{NodePlan, Session, State};
use crate::error::{input, usage, verification};
use crate::record::difficulty::DifficultyRow;
use crate::record::ledger::{Counts, DuplicateRow, LedgerRow, ReviewRow, SourceCounts, total_counts};
use crate::record::model::{JudgementRow, MadeBy};
use crate::record::provenance::PER_RECORD;
use crate::record::release::{ProvenanceRow, ReleaseJudgementRow, ReleaseLedgerRow, ReleaseReviewRow};
use crate::record::{
    Access, Hash, Provenance, RecordId, Rights, Row, RowType, arrow_schema, from_batch, to_batch, to_batch_as,
};
use crate::stage::PortKind;
use crate::stage::ask::JUDGEMENTS;
use crate::stage::estimate_difficulty;
use crate::stage::prompt::{PROMPT, Prompt};
use crate::store::manifest::to_json;
use crate::store::parquet::TableWriter;
use crate::store::{fs, raw, shard};
use anyhow::{Context, ensure};
use arrow::datatypes::SchemaRef;
use serde::{Deserialize, Serialize};
use std::collections::{BTreeMap, BTreeSet};
use std::path::{Path, PathBuf};

pub struct FreezeOptions {
    pub version: String,
    /// The folder that releases are in.
    pub out: PathBuf,
    pub profile: Profile,
    /// Freeze although records are in quarantine.
    pub allow_quarantine: bool,
    /// `YYYY-MM-DD`
    pub date: Option<String>,
}

#[derive(Clone, Debug, Serialize)]
pub struct FreezeSummary {
    pub folder: PathBuf,
    pub n_cases: u64,
    pub n_files: usize,
    pub bytes: u64,
    pub content_hash: Hash,
    /// The version was there, with the same bytes.
    pub existed: bool,
    pub redistributable: bool,
    pub not_redistributable_because: Vec<String>,
}

/// Row types of the tables that every release has, by file.
const TABLES: &[(&str, RowType)] = &[
    ("ledger.parquet", RowType::of::<ReleaseLedgerRow>()),
    ("review.parquet", RowType::of::<ReleaseReviewRow>()),
    ("provenance.parquet", RowType::of::<ProvenanceRow>()),
    ("judgements.parquet", RowType::of::<ReleaseJudgementRow>()),
];

/// Row types of all tables of a release beside its cases, by file: for `verify` too.
pub fn tables(case_type: &CaseType) -> Vec<(String, RowType)> {
    let own = case_type.all_tables().map(|table| (table.file(), table.row));
    own.chain(TABLES.iter().map(|(name, row)| ((*name).to_owned(), *row))).collect()
}

/// Writes a release, or finds that it is there with the same bytes.
pub fn freeze(session: &Session, options: &FreezeOptions) -> anyhow::Result<FreezeSummary> {
    check_version(&options.version)?;
    if session.limit.is_some() {
        return Err(usage("a build made with --limit is a trial and cannot be frozen"));
    }
    let plans = session.plan()?;
    let wanted = session.graph.ancestors(session.graph.cases);
    check_fresh(session, &plans, &wanted)?;
    check_raw(session)?;
    check_quarantine(session, &plans, &wanted, options)?;

    let target = options.out.join(format!("{}-{}", session.graph.pipeline, options.version));
    fs::create_dir(&options.out)?;
    remove_leftovers(&options.out, &target)?;
    let temporary = fs::temporary_beside(&target);
    fs::create_dir(&temporary)?;
    let mut writer = ReleaseWriter {
        session,
        plans: &plans,
        wanted: &wanted,
        options,
        folder: &temporary,
        quotable: BTreeMap::new(),
    };
    writer.quotable = writer.quotable_records()?;
    let result = writer.write().and_then(|(manifest, files)| settle(&temporary, &target, &manifest, &files));
    if temporary.is_dir() {
        fs::remove_dir(&temporary)?;
    }
    result
}

/// Removes what an interrupted freeze of the same release left, and nothing else: the folder may be anybody's.
fn remove_leftovers(out: &Path, target: &Path) -> anyhow::Result<()> {
    let release = target.file_name().map(|name| name.to_string_lossy().into_owned()).unwrap_or_default();
    for name in fs::list(out)? {
        // tmp-<process>-<number>-<release>
        let rest = name.strip_prefix(fs::TEMPORARY).and_then(|rest| rest.strip_suffix(&format!("-{release}")));
        let is_ours = rest.is_some_and(|rest| {
            let mut parts = rest.split('-');
            let numbers = [parts.next(), parts.next()];
            parts.next().is_none() && numbers.iter().all(|part| part.is_some_and(|part| part.parse::<u64>().is_ok()))
        });
        if is_ours {
            fs::remove_dir(&out.join(&name))?;
        }
    }
    Ok(())
}

/// `0.1.0`, `2026-11`: a name that is one folder.
fn check_version(version: &str) -> anyhow::Result<()> {
    let fits = |c: char| c.is_ascii_alphanumeric() || matches!(c, '.' | '-' | '_' | '+');
    if version.is_empty() || version.starts_with('.') || !version.chars().all(fits) {
        return Err(usage(format!(
            "--version {version}: use letters, digits, `.`, `-`, `_` and `+`, for example 1.0.0"
        )));
    }
    Ok(())
}

fn check_fresh(session: &Session, plans: &[NodePlan], wanted: &BTreeSet<usize>) -> anyhow::Result<()> {
    let mut waiting = Vec::new();
    for (index, plan) in plans.iter().enumerate() {
        if wanted.contains(&index) && !matches!(plan.state, State::Fresh | State::Absent) {
            waiting.push(format!("{} is {} ({})", session.node(index)?.name, plan.state.as_str(), plan.why.join(", ")));
        }
    }
    if waiting.is_empty() {
        return Ok(());
    }
    Err(usage(format!(
        "there is no finished build to freeze: {}; run casemill build {} first",
        waiting.join("; "),
        session.graph.pipeline
    )))
}

/// Raw files are read once more: a cached hash is not proof enough for a release.
fn check_raw(session: &Session) -> anyhow::Result<()> {
    for source in session.sources.values() {
        for file in source.raw.files.iter().chain(&source.rights_file) {
            let (sha256, _) = raw::hash_file(&session.workspace.raw.join(&file.path))
                .map_err(|error| input(format!("cannot read {}: {error:#}", file.path)))?;
            if sha256 != file.sha256 {
                return Err(verification(format!(
                    "{} changed since the build, although its size and time did not; touch it and build again",
                    file.path
                )));
            }
        }
    }
    Ok(())
}

fn check_quarantine(
    session: &Session,
    plans: &[NodePlan],
    wanted: &BTreeSet<usize>,
    options: &FreezeOptions,
) -> anyhow::Result<()> {
    let mut waiting = Vec::new();
    for (index, plan) in plans.iter().enumerate().filter(|(index, _)| wanted.contains(index)) {
        let Some(manifest) = &plan.manifest else { continue };
        let counts = total_counts(&manifest.counts);
        if counts.n_quarantined() > 0 {
            let reasons: Vec<String> = counts.quarantined.iter().map(|(reason, n)| format!("{reason} {n}")).collect();
            waiting.push(format!("node {}: {}", session.node(index)?.name, reasons.join(", ")));
        }
    }
    if waiting.is_empty() || options.allow_quarantine {
        return Ok(());
    }
    Err(verification(format!(
        "records are in quarantine, undecided: {}; repair the input, or freeze without them by --allow-quarantine (they stay listed in ledger.parquet)",
        waiting.join("; ")
    )))
}

/// Gives the folder its name, or compares it with what is there.
fn settle(
    temporary: &Path,
    target: &Path,
    manifest: &Manifest,
    files: &[ManifestFile],
) -> anyhow::Result<FreezeSummary> {
    let mut summary = FreezeSummary {
        folder: target.to_owned(),
        n_cases: manifest.n_cases,
        n_files: files.len(),
        bytes: files.iter().map(|file| file.bytes).sum(),
        content_hash: manifest.content_hash.clone(),
        existed: false,
        redistributable: manifest.redistributable,
        not_redistributable_because: manifest.not_redistributable_because.clone(),
    };
    if target.exists() {
        let differing = differing_files(temporary, target)?;
        if !differing.is_empty() {
            return Err(verification(format!(
                "{} exists and differs in {}; a release is never overwritten: choose another --version",
                target.display(),
                differing.join(", ")
            )));
        }
        summary.existed = true;
        return Ok(summary);
    }
    fs::commit_dir(temporary, target)?;
    Ok(summary)
}

fn differing_files(one: &Path, other: &Path) -> anyhow::Result<Vec<String>> {
    let (mine, theirs) = (walk(one)?, walk(other)?);
    let names: BTreeSet<&String> = mine.iter().chain(&theirs).collect();
    let mut differing = Vec::new();
    for name in names {
        let same = mine.contains(name)
            && theirs.contains(name)
            && raw::hash_file(&one.join(name))? == raw::hash_file(&other.join(name))?;
        if !same {
            differing.push(name.clone());
        }
    }
    Ok(differing)
}

/// Every file below a folder, as sorted paths with forward slashes. Links are not followed.
pub fn walk(folder: &Path) -> anyhow::Result<Vec<String>> {
    fn visit(folder: &Path, prefix: &str, found: &mut Vec<String>) -> anyhow::Result<()> {
        for name in fs::list(folder)? {
            let path = folder.join(&name);
            let shown = format!("{prefix}{name}");
            let kind =
                std::fs::symlink_metadata(&path).with_context(|| format!("reading {}", path.display()))?.file_type();
            if kind.is_dir() {
                visit(&path, &format!("{shown}/"), found)?;
            } else {
                found.push(shown);
            }
        }
        Ok(())
    }
    let mut found = Vec::new();
    visit(folder, "", &mut found)?;
    found.sort_unstable();
    Ok(found)
}

/// A case on its way to the sorted tables.
#[derive(Serialize, Deserialize)]
struct SpilledCase {
    rows: CaseRows,
    provenance: ProvenanceRow,
}

/// What the tables of cases came to.
struct WrittenCases {
    content_hash: Hash,
    n_cases: u64,
    refused: SourceCounts,
    /// Source → access and licence of its cases → how many.
    licences: BTreeMap<String, BTreeMap<(Access, String), u64>>,
    subsets: Vec<SubsetSize>,
    made_by: Vec<ManifestMaker>,
    difficulty: Option<ManifestDifficulty>,
}

struct ReleaseWriter<'a> {
    session: &'a Session,
    plans: &'a [NodePlan],
    wanted: &'a BTreeSet<usize>,
    options: &'a FreezeOptions,
    folder: &'a Path,
    /// Of sources whose records have rights of their own: source → records that may be quoted.
    quotable: BTreeMap<String, BTreeSet<RecordId>>,
}

impl ReleaseWriter<'_> {
    /// Records that a release of this profile may quote, by their own rights.
    fn quotable_records(&self) -> anyhow::Result<BTreeMap<String, BTreeSet<RecordId>>> {
        #[derive(Deserialize)]
        struct OfRecord {
            record_id: RecordId,
            provenance: Provenance,
        }
        let upstream = Upstream { session: self.session, plans: self.plans };
        let mut quotable: BTreeMap<String, BTreeSet<RecordId>> = BTreeMap::new();
        for (index, manifest, _) in self.manifests() {
            let source = self.session.node(index)?.source.as_ref();
            let Some(found) = source.and_then(|source| self.session.sources.get(source)) else { continue };
            if found.raw.rights.licence != PER_RECORD {
                continue;
            }
            let records = quotable.entry(found.raw.name.clone()).or_default();
            for shard in 0..manifest.n_stream_shards {
                let batch = upstream.read_stream(index, shard, Some(&["record_id", "provenance"]))?;
                for record in from_batch::<OfRecord>(&batch)? {
                    if self.options.profile.refusal(&record.provenance.rights).is_none() {
                        records.insert(record.record_id);
                    }
                }
            }
        }
        Ok(quotable)
    }

    /// Whether the text that decided about a record may be quoted: only where the record itself may go.
    fn may_quote(&self, id: &RecordId) -> bool {
        match self.quotable.get(id.source()) {
            None => self.is_quotable(id.source()),
            // A record that was split off has the rights of the whole.
            Some(records) => {
                let parent = id.as_str().rsplit_once('_').map(|(parent, _)| RecordId::parse(parent));
                records.contains(id) || parent.is_some_and(|parent| records.contains(&parent))
            }
        }
    }

    fn write(&self) -> anyhow::Result<(Manifest, Vec<ManifestFile>)> {
        let graph = &self.session.graph;
        let record = self.session.node(graph.cases)?.stage.outputs.first().context("a stage without output")?.row.name;
        let case_type = CASE_TYPES.iter().find(|case_type| case_type.record == record);
        let case_type = case_type
            .ok_or_else(|| usage(format!("{}: cases: records of type `{record}` cannot become cases", graph.file)))?;
        let mut rows: BTreeMap<String, u64> = BTreeMap::new();

        let written = self.write_cases(case_type, &mut rows)?;
        if written.n_cases == 0 {
            return Err(verification(format!(
                "no case may be in a release of profile {}: {}",
                self.options.profile.as_str(),
                show_refused(&written.refused)
            )));
        }
        rows.insert("ledger.parquet".to_owned(), self.write_ledger()?);
        rows.insert("review.parquet".to_owned(), self.write_review()?);
        rows.insert("judgements.parquet".to_owned(), self.write_judgements()?);
        fs::create_dir(&self.folder.join("schemas"))?;
        for row_type in tables(case_type).iter().map(|(_, row_type)| row_type).chain([&case_type.case]) {
            fs::write_new(
                &self.folder.join("schemas").join(row_type.file_name()),
                &to_json(&(row_type.json_schema)())?,
            )?;
        }
        fs::sync_dir(&self.folder.join("schemas"))?;
        fs::sync_dir(&self.folder.join("cases"))?;

        let mut files = Vec::new();
        for path in walk(self.folder)? {
            let (sha256, bytes) = raw::hash_file(&self.folder.join(&path))?;
            files.push(ManifestFile { rows: rows.get(&path).copied(), path, sha256, bytes });
        }
        let manifest = self.manifest(written, files)?;
        let text = to_json(&manifest)?;
        fs::write_new(&self.folder.join(MANIFEST), &text)?;
        let manifest_hash = Hash::of(&text);
        let listed =
            manifest.files.iter().map(|file| (file.path.as_str(), &file.sha256)).chain([(MANIFEST, &manifest_hash)]);
        fs::write_new(&self.folder.join(SUMS), sums(listed).as_bytes())?;
        let mut files = manifest.files.clone();
        files.push(ManifestFile {
            path: MANIFEST.to_owned(),
            sha256: manifest_hash,
            bytes: text.len() as u64,
            rows: None,
        });
        Ok((manifest, files))
    }

    /// `cases/*.parquet`, `slots.parquet`, `texts.parquet`, `provenance.parquet`, all sorted by case id.
    fn write_cases(&self, case_type: &CaseType, rows: &mut BTreeMap<String, u64>) -> anyhow::Result<WrittenCases> {
        let graph = &self.session.graph;
        let upstream = Upstream { session: self.session, plans: self.plans };
        let manifest =
            self.plans.get(graph.cases).and_then(|plan| plan.manifest.as_ref()).context("the cases are not built")?;
        let n_records = total_counts(&manifest.counts).kept;
        let review = self.review_reasons()?;
        let also_from = self.duplicates()?;
        let difficulty = self.difficulty()?;
        let context = CaseContext { pipeline: &graph.pipeline, review: &review, difficulty: &difficulty };
        let mut makers: BTreeMap<MadeBy, u64> = BTreeMap::new();
        let mut candidates = Vec::new();
        let mut spill = Spill::<SpilledCase>::create(&self.folder.join("tmp-cases"), n_records)?;
        let mut refused = SourceCounts::new();
        let mut licences: BTreeMap<String, BTreeMap<(Access, String), u64>> = BTreeMap::new();
        for index in 0..manifest.n_stream_shards {
            for case in (case_type.convert)(&upstream.read_stream(graph.cases, index, None)?, &context)? {
                let provenance = case.provenance;
                let counts: &mut Counts = refused.entry(provenance.source.clone()).or_default();
                counts.n_in += 1;
                if let Some(reason) = self.options.profile.refusal(&provenance.rights) {
                    counts.exit(crate::record::ledger::Exit::Dropped, reason);
                    continue;
                }
                counts.kept += 1;
                let case_id = case.record_id.case_id(&graph.pipeline);
                let mut rows = case.rows;
                if let Some(media) = case_type.media {
                    rows.put(MEDIA, &media::rows(&case_id, &media(&rows.case)?, self.options.profile))?;
                }
                let of_source = licences.entry(provenance.source.clone()).or_default();
                *of_source.entry((provenance.rights.access, provenance.rights.licence.clone())).or_default() += 1;
                let provenance = ProvenanceRow {
                    case_id: case_id.clone(),
                    source: provenance.source,
                    file: provenance.file,
                    line: provenance.line,
                    raw_sha256: provenance.raw_sha256,
                    snapshot: provenance.rights.snapshot,
                    licence: provenance.rights.licence,
                    access: provenance.rights.access,
                    also_from: also_from.get(&case.record_id).cloned().unwrap_or_default(),
                };
                if !graph.subsets.is_empty() {
                    candidates.push(Candidate::of(&graph.file, &graph.subsets, &case_id, &rows.case)?);
                }
                spill.push(&case_id, "", &SpilledCase { rows, provenance })?;
            }
        }
        let (members, subsets) = subsets::draw(&graph.subsets, &candidates);
        drop(candidates);
        fs::create_dir(&self.folder.join("cases"))?;
        let mut views = ViewWriters::create(self.folder, case_type)?;
        let mut tables = CaseTables::create(self.folder, case_type)?;
        let mut media = match case_type.media {
            Some(_) => Some(MediaWriter::create(self.folder, &upstream)?),
            None => None,
        };
        let case_schema = (case_type.case.arrow_schema)()?;
        let mut leaves: Vec<[u8; 32]> = Vec::new();
        let (mut n_cases, mut n_files) = (0u64, 0u32);
        let mut last = String::new();
        spill.drain(|mut cases| {
            if cases.is_empty() {
                return Ok(());
            }
            for case in &mut cases {
                let id = &case.provenance.case_id;
                ensure!(*id != last, "two records have the case id {id}");
                last.clone_from(id);
                let made_by: Vec<MadeBy> =
                    serde_json::from_value(case.rows.case.get("made_by").cloned().unwrap_or_default())?;
                for entry in made_by {
                    *makers.entry(entry).or_default() += 1;
                }
                let hash: Hash = serde_json::from_value(case.rows.case.get("case_hash").cloned().unwrap_or_default())?;
                leaves.push(hash.to_bytes().context("a case hash is 32 bytes")?);
                if let (Some(drawn), Some(field)) = (members.get(id), case.rows.case.get_mut("subsets")) {
                    *field = serde_json::to_value(drawn)?;
                }
                views.write(case_type, &case.rows)?;
                if let Some(media) = &mut media {
                    media.write(&case.rows)?;
                }
            }
            let batch = to_batch_as(&cases.iter().map(|case| &case.rows.case).collect::<Vec<_>>(), &case_schema)?;
            let name = format!("cases/part-{n_files:05}.parquet");
            crate::store::parquet::write_new(&self.folder.join(&name), &batch)?;
            rows.insert(name, cases.len() as u64);
            n_cases += cases.len() as u64;
            n_files += 1;
            tables.write(cases)
        })?;
        rows.extend(tables.close()?);
        views.close()?;
        if let Some(media) = media {
            media.close()?;
        }
        leaves.sort_unstable();
        let made_by = makers.into_iter().map(|(MadeBy { field, by }, n_cases)| ManifestMaker { field, by, n_cases });
        let difficulty = difficulty_summary(self.session, difficulty.values())?;
        let content_hash = merkle::root(&leaves);
        let made_by = made_by.collect();
        Ok(WrittenCases { content_hash, n_cases, refused, licences, subsets, made_by, difficulty })
    }

    /// Rows of one side row type over all nodes that went into the cases, with their node.
    fn for_each_side<R: Row>(&self, mut visit: impl FnMut(&str, R) -> anyhow::Result<()>) -> anyhow::Result<()> {
        let upstream = Upstream { session: self.session, plans: self.plans };
        for index in self.wanted {
            if self.plans.get(*index).is_none_or(|plan| plan.manifest.is_none()) {
                continue;
            }
            let node = self.session.node(*index)?;
            for port in node.stage.outputs.iter().filter(|port| port.kind == PortKind::Side && port.row.name == R::NAME)
            {
                upstream.for_each_side(*index, port.name, |batch| {
                    from_batch::<R>(&batch)?.into_iter().try_for_each(|row| visit(&node.name, row))
                })?;
            }
        }
        Ok(())
    }

    fn review_reasons(&self) -> anyhow::Result<BTreeMap<RecordId, Vec<String>>> {
        let mut reasons: BTreeMap<RecordId, Vec<String>> = BTreeMap::new();
        self.for_each_side::<ReviewRow>(|_, row| {
            reasons.entry(row.record_id).or_default().push(row.reason);
            Ok(())
        })?;
        Ok(reasons)
    }

    /// What was estimated, of every record of the build.
    fn difficulty(&self) -> anyhow::Result<BTreeMap<RecordId, DifficultyRow>> {
        let mut rows = BTreeMap::new();
        self.for_each_side::<DifficultyRow>(|_, row| {
            rows.insert(row.record_id.clone(), row);
            Ok(())
        })?;
        Ok(rows)
    }

    /// Survivor → places of the records it stands for, those of removed survivors included.
    fn duplicates(&self) -> anyhow::Result<BTreeMap<RecordId, Vec<String>>> {
        let mut places: BTreeMap<RecordId, Vec<String>> = BTreeMap::new();
        self.for_each_side::<DuplicateRow>(|_, row| {
            let mut moved = places.remove(&row.removed_id).unwrap_or_default();
            // A record that the profile leaves out is not named by its open twin either.
            if self.may_quote(&row.removed_id) {
                moved.push(row.removed_from);
            }
            places.entry(row.record_id).or_default().append(&mut moved);
            Ok(())
        })?;
        places.values_mut().for_each(|list| list.sort_unstable());
        Ok(places)
    }

    fn write_ledger(&self) -> anyhow::Result<u64> {
        let n_rows: u64 = self
            .manifests()
            .map(|(_, manifest, _)| {
                let counts = total_counts(&manifest.counts);
                counts.n_dropped() + counts.n_quarantined()
            })
            .sum();
        let mut spill = Spill::<ReleaseLedgerRow>::create(&self.folder.join("tmp-ledger"), n_rows)?;
        for (position, manifest, folder) in self.manifests() {
            for index in 0..manifest.shards.len() {
                let path = shard::shard_dir(folder, u32::try_from(index)?).join(shard::LEDGER);
                if !path.is_file() {
                    continue;
                }
                for row in from_batch::<LedgerRow>(&crate::store::parquet::read(&path)?)? {
                    if !self.is_listable(&row.source) {
                        continue;
                    }
                    let row = self.release_ledger_row(row);
                    spill.push(&row.case_id.clone(), &format!("{position:05}"), &row)?;
                }
            }
        }
        self.write_table("ledger.parquet", spill)
    }

    /// The text that decided is a quotation: it goes only where the records themselves may go.
    fn is_quotable(&self, source: &str) -> bool {
        let rights = self.session.sources.get(source).map(|source| &source.raw.rights);
        rights.is_some_and(|rights| self.options.profile.refusal(rights).is_none())
    }

    /// Rows about credentialed records are only for those who may hold them: even without a quotation they tell which rows of
    /// their files there are, and a hash of a short id can be guessed. Their number stays in MANIFEST.json.
    fn is_listable(&self, source: &str) -> bool {
        let rights = self.session.sources.get(source).map(|source| &source.raw.rights);
        self.options.profile.lists(rights.map_or(Access::Unknown, |rights| rights.access))
    }

    fn release_ledger_row(&self, row: LedgerRow) -> ReleaseLedgerRow {
        let names_closed = self.session.sources.keys().any(|source| {
            // Of a source whose records have rights of their own, the record itself decides.
            !self.quotable.contains_key(source)
                && !self.is_quotable(source)
                && (row.detail.contains(&format!("{source}:")) || row.detail.contains(&format!("{source}/")))
        });
        let quotable = self.may_quote(&row.record_id) && !names_closed;
        ReleaseLedgerRow {
            case_id: row.record_id.case_id(&self.session.graph.pipeline),
            source: row.source,
            node: row.node,
            exit: row.exit,
            reason: row.reason,
            detail: quotable.then_some(row.detail),
            file: row.file,
            line: row.line,
            raw_sha256: row.raw_sha256,
        }
    }

    fn write_review(&self) -> anyhow::Result<u64> {
        let pipeline = &self.session.graph.pipeline;
        let n_rows = self.session.graph.nodes.len() as u64;
        let mut spill = Spill::<ReleaseReviewRow>::create(&self.folder.join("tmp-review"), n_rows)?;
        self.for_each_side::<ReviewRow>(|node, row| {
            if !self.may_quote(&row.record_id) {
                return Ok(());
            }
            let case_id = row.record_id.case_id(pipeline);
            let mut related: Vec<String> =
                row.related.iter().filter(|id| self.is_listable(id.source())).map(|id| id.case_id(pipeline)).collect();
            related.sort_unstable();
            let order = format!("{node} {}", row.reason);
            spill.push(
                &case_id,
                &order,
                &ReleaseReviewRow {
                    case_id: case_id.clone(),
                    node: node.to_owned(),
                    reason: row.reason,
                    detail: row.detail,
                    related,
                },
            )
        })?;
        self.write_table("review.parquet", spill)
    }

    /// What every judge said, of records that left too.
    fn write_judgements(&self) -> anyhow::Result<u64> {
        let pipeline = &self.session.graph.pipeline;
        let n_rows: u64 = self.manifests().map(|(_, manifest, _)| manifest.sides.get(JUDGEMENTS).unwrap_or(&0)).sum();
        let mut spill = Spill::<ReleaseJudgementRow>::create(&self.folder.join("tmp-judgements"), n_rows)?;
        self.for_each_side::<JudgementRow>(|node, row| {
            let source = row.record_id.source();
            if !self.is_listable(source) {
                return Ok(());
            }
            let reason = self.may_quote(&row.record_id).then_some(row.reason);
            let row = ReleaseJudgementRow {
                case_id: row.record_id.case_id(pipeline),
                node: node.to_owned(),
                question: row.question,
                model: row.model,
                about: row.about,
                answered: row.answered,
                verdict: row.verdict,
                reason,
                call: row.call,
                sha256: row.sha256,
            };
            let order = format!("{node} {} {}", row.model, row.about.as_deref().unwrap_or_default());
            spill.push(&row.case_id.clone(), &order, &row)
        })?;
        self.write_table("judgements.parquet", spill)
    }

    fn write_table<R: Row>(&self, name: &str, spill: Spill<R>) -> anyhow::Result<u64> {
        let mut writer = TableWriter::create(&self.folder.join(name), &arrow_schema::<R>()?)?;
        spill.drain(|rows| if rows.is_empty() { Ok(()) } else { writer.write(&to_batch(&rows)?) })?;
        writer.close()
    }

    /// The committed nodes that went into the cases: position, manifest, folder.
    fn manifests(&self) -> impl Iterator<Item = (usize, &crate::store::manifest::StageManifest, &PathBuf)> {
        self.wanted.iter().filter_map(|index| {
            let plan = self.plans.get(*index)?;
            Some((*index, plan.manifest.as_deref()?, plan.build_dir.as_ref()?))
        })
    }

    fn manifest(&self, written: WrittenCases, files: Vec<ManifestFile>) -> anyhow::Result<Manifest> {
        let WrittenCases { content_hash, n_cases, refused, licences, subsets, made_by, difficulty } = written;
        let graph = &self.session.graph;
        let mut settings = Vec::new();
        let mut nodes = Vec::new();
        for (_, manifest, _) in self.manifests() {
            let components = &manifest.components;
            settings.push((
                &manifest.node,
                &components.stage,
                components.revision,
                &components.settings,
                &components.resources,
            ));
            nodes.push(ManifestNode {
                node: manifest.node.clone(),
                stage: components.stage.clone(),
                revision: components.revision,
                fingerprint: manifest.fingerprint.clone(),
                by_source: manifest.counts.iter().map(|(source, counts)| ManifestCounts::new(source, counts)).collect(),
            });
        }
        let settings_hash = Hash::of_json(&(settings, &graph.subsets))?;
        if refused.values().any(|counts| counts.n_dropped() > 0) {
            let by_source = refused.iter().map(|(source, counts)| ManifestCounts::new(source, counts)).collect();
            let fingerprint = Hash::of_json(&self.options.profile)?;
            nodes.push(ManifestNode {
                node: "freeze".to_owned(),
                stage: "freeze".to_owned(),
                revision: 1,
                fingerprint,
                by_source,
            });
        }
        let mut because = Vec::new();
        let mut sources = Vec::new();
        for name in graph.sources.keys() {
            let Some(found) = self.session.sources.get(name) else {
                sources.push(ManifestSource {
                    name: name.clone(),
                    absent: true,
                    snapshot: "unknown".to_owned(),
                    licence: "unknown".to_owned(),
                    access: Access::Unknown,
                    files: Vec::new(),
                });
                continue;
            };
            let rights = &found.raw.rights;
            for ((access, licence), n) in licences.get(name).into_iter().flatten() {
                let of_cases = Rights { access: *access, licence: licence.clone(), ..rights.clone() };
                let is_own = *licence != rights.licence;
                because.extend(
                    not_redistributable(name, &of_cases)
                        .map(|why| if is_own { format!("{why} ({n} cases)") } else { why }),
                );
            }
            let files = found.raw.files.iter().map(|file| RawManifestFile {
                path: file.path.clone(),
                sha256: file.sha256.clone(),
                bytes: file.bytes,
            });
            sources.push(ManifestSource {
                name: name.clone(),
                absent: false,
                snapshot: rights.snapshot.clone(),
                licence: rights.licence.clone(),
                access: rights.access,
                files: files.collect(),
            });
        }
        let (models, prompts) = self.models_and_prompts()?;
        Ok(Manifest {
            format: RELEASE_FORMAT,
            pipeline: graph.pipeline.clone(),
            version: self.options.version.clone(),
            date: self.options.date.clone(),
            tool_version: env!("CARGO_PKG_VERSION").to_owned(),
            settings_hash,
            profile: self.options.profile,
            redistributable: because.is_empty(),
            not_redistributable_because: because,
            sources,
            nodes,
            models,
            prompts,
            made_by,
            difficulty,
            attrition: Upstream { session: self.session, plans: self.plans }.attrition(self.wanted)?,
            n_cases,
            subsets,
            files,
            content_hash,
        })
    }
}

impl ReleaseWriter<'_> {
    /// What was asked, and how.
    fn models_and_prompts(&self) -> anyhow::Result<(Vec<ManifestModel>, Vec<ManifestPrompt>)> {
        let session = self.session;
        let (mut models, mut prompts) = (Vec::new(), Vec::new());
        for index in session.asking_nodes() {
            let node = session.node(index)?;
            let manifest = self.plans.get(index).and_then(|plan| plan.manifest.as_ref());
            let controls = manifest.map(|manifest| tally(&manifest.controls)).unwrap_or_default();
            for config in node.models(&session.graph.models).iter().filter_map(|name| session.graph.models.get(name)) {
                models.push(ManifestModel {
                    node: node.name.clone(),
                    name: config.name.clone(),
                    provider: config.provider.as_str().to_owned(),
                    model: config.model.clone(),
                    parameters: config.parameters(),
                    n_controls: controls.get(&config.name).map_or(0, |(_, n)| *n),
                    n_controls_right: controls.get(&config.name).map_or(0, |(n_right, _)| *n_right),
                    n_replies: manifest.map_or(0, |manifest| manifest.replies.len() as u64),
                });
            }
            if let Some(file) = node.resources.get(PROMPT) {
                let hashes = session.resource_hashes(index);
                prompts.push(ManifestPrompt {
                    node: node.name.clone(),
                    file: file.clone(),
                    version: Prompt::version(session.resource_text(index, PROMPT)?)?,
                    sha256: hashes.get(PROMPT).cloned().context("a prompt without a hash")?,
                });
            }
        }
        Ok((models, prompts))
    }
}

fn show_refused(refused: &SourceCounts) -> String {
    let lines =
        refused.iter().map(|(source, counts)| format!("source {source}: {}", crate::engine::show_reasons(counts)));
    let text = lines.collect::<Vec<_>>().join("; ");
    if text.is_empty() { "the build has none".to_owned() } else { text }
}

/// Files of lines while they are written: views, recipes, attribution.
struct ViewWriters(Vec<fs::LineWriter>);

impl ViewWriters {
    fn create(folder: &Path, case_type: &CaseType) -> anyhow::Result<Self> {
        let mut writers = Vec::new();
        for file in case_type.line_files() {
            let path = folder.join(file.name);
            path.parent().map_or(Ok(()), fs::create_dir)?;
            let mut writer = fs::LineWriter::create(&path)?;
            if let Some(header) = file.header {
                writer.line(header)?;
            }
            writers.push(writer);
        }
        Ok(Self(writers))
    }

    fn write(&mut self, case_type: &CaseType, rows: &CaseRows) -> anyhow::Result<()> {
        let lines = case_type.lines_of(rows)?;
        self.0
            .iter_mut()
            .zip(&lines)
            .try_for_each(|(writer, lines)| lines.iter().try_for_each(|line| writer.line(line)))
    }

    fn close(self) -> anyhow::Result<()> {
        self.0.into_iter().try_for_each(fs::LineWriter::close)
    }
}

/// What the bands of a build were made of: its node of difficulty, and the extremes of what it found.
fn difficulty_summary<'a>(
    session: &Session,
    rows: impl Iterator<Item = &'a DifficultyRow> + Clone,
) -> anyhow::Result<Option<ManifestDifficulty>> {
    let above = session.graph.ancestors(session.graph.cases);
    let mut nodes = above.into_iter().filter_map(|index| session.graph.nodes.get(index));
    let Some(node) = nodes.find(|node| node.stage.name == estimate_difficulty::STAGE.name) else { return Ok(None) };
    let n_estimated = rows.clone().filter(|row| row.score.is_some()).count();
    if rows.clone().next().is_none() {
        return Ok(None);
    }
    let scores = difficulty::score(
        &rows.clone().filter(|row| row.score.is_some()).filter_map(|row| row.signals).collect::<Vec<_>>(),
    );
    Ok(Some(ManifestDifficulty {
        settings: serde_json::to_value(&node.settings)?,
        n_scored: n_estimated as u64,
        n_unscored: rows.filter(|row| row.score.is_none()).count() as u64,
        bounds: scores.bounds,
        clusters: scores.clusters,
    }))
}

/// The tables that are written along with the cases.
struct CaseTables<'a> {
    own: Vec<(&'a CaseTable, SchemaRef, TableWriter)>,
    provenance: TableWriter,
}

impl<'a> CaseTables<'a> {
    fn create(folder: &Path, case_type: &'a CaseType) -> anyhow::Result<Self> {
        let mut own = Vec::new();
        for table in case_type.all_tables() {
            let schema = (table.row.arrow_schema)()?;
            let writer = TableWriter::create(&folder.join(table.file()), &schema)?;
            own.push((table, schema, writer));
        }
        let provenance = TableWriter::create(&folder.join("provenance.parquet"), &arrow_schema::<ProvenanceRow>()?)?;
        Ok(Self { own, provenance })
    }

    fn write(&mut self, mut cases: Vec<SpilledCase>) -> anyhow::Result<()> {
        for (table, schema, writer) in &mut self.own {
            let rows: Vec<serde_json::Value> =
                cases.iter_mut().filter_map(|case| case.rows.tables.remove(table.name)).flatten().collect();
            if !rows.is_empty() {
                writer.write(&to_batch_as(&rows, schema)?)?;
            }
        }
        let provenance: Vec<ProvenanceRow> = cases.into_iter().map(|case| case.provenance).collect();
        if !provenance.is_empty() {
            self.provenance.write(&to_batch(&provenance)?)?;
        }
        Ok(())
    }

    fn close(self) -> anyhow::Result<Vec<(String, u64)>> {
        let mut written = vec![("provenance.parquet".to_owned(), self.provenance.close()?)];
        for (table, _, writer) in self.own {
            written.push((table.file(), writer.close()?));
        }
        Ok(written)
    }
}
