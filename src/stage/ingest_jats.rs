//! `ingest_jats`: case reports of PubMed Central to `article` records (ClinMM-Bench, 4.1.1).
//!
//! An article is known by its PMC id, else by DOI, PubMed id and title. Of several versions the highest is read. Its rights
//! are the strictest of the snapshot's `source.toml`, the block `permissions` of the article and the archive's record of it.

use super::*;
use crate::record::article::{Article, ArticleRecord, EditorialState};
use crate::record::ledger::Exit;
use crate::record::licence::is_closed;
use crate::record::{Access, Hash, LlmEgress, Provenance, RecordId, Rights};
use crate::source::jats::{self, JatsFault, Limits};
use crate::source::pmc::{Metadata, Packages, license_of_code, spdx, strictest_license};
use crate::store::raw;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use std::collections::BTreeMap;
use std::io::Read;

pub const STAGE: StageDef = StageDef {
    name: "ingest_jats",
    summary: "Reads case reports in JATS XML, with the files of their packages and what the archive says of their rights",
    shape: Shape::Reader,
    revision: 2,
    inputs: &[],
    outputs: &[Port::records::<ArticleRecord>("records")],
    resources: &[],
    reasons: &[
        "too_large",
        "encoding",
        "not_xml",
        "not_article",
        "too_deep",
        "entity_limit",
        "invalid_metadata",
        "id_mismatch",
        "older_version",
    ],
    settings: SettingsType::of::<IngestSettings>(),
    build,
};

/// Formats that this stage reads.
pub const FORMATS: &[&str] = &["jats"];

#[derive(Serialize, Deserialize, JsonSchema)]
#[serde(default, deny_unknown_fields)]
struct IngestSettings {
    /// Largest XML file that is read, in bytes; larger ones are quarantined.
    max_file_bytes: u32,
    /// Elements in elements.
    max_depth: u32,
    /// What entities that a file declares may add to it, in bytes.
    max_entity_bytes: u32,
}

impl Default for IngestSettings {
    fn default() -> Self {
        Self { max_file_bytes: 64 << 20, max_depth: 128, max_entity_bytes: 1 << 20 }
    }
}

impl Settings for IngestSettings {
    fn check(&self) -> Result<(), String> {
        if !(1000..=1 << 30).contains(&self.max_file_bytes) {
            return Err("max_file_bytes must be between 1000 and 1073741824".to_owned());
        }
        if !(16..=1024).contains(&self.max_depth) {
            return Err("max_depth must be between 16 and 1024".to_owned());
        }
        Ok(())
    }
}

fn build(arguments: &StageArguments<'_>) -> anyhow::Result<AnyStage> {
    let settings: IngestSettings = arguments.settings()?;
    match arguments.format {
        Some("jats") => {}
        other => anyhow::bail!(
            "format `{}` is not one that ingest_jats reads (known: {})",
            other.unwrap_or("none"),
            FORMATS.join(", ")
        ),
    }
    let limits = Limits {
        max_bytes: settings.max_file_bytes as usize,
        max_depth: settings.max_depth as usize,
        max_entity_bytes: settings.max_entity_bytes as usize,
        ..Limits::default()
    };
    Ok(AnyStage::reader(ArticleReader { limits }))
}

struct ArticleReader {
    limits: Limits,
}

fn reason(fault: JatsFault) -> &'static str {
    match fault {
        JatsFault::TooLarge => "too_large",
        JatsFault::Encoding => "encoding",
        JatsFault::NotXml => "not_xml",
        JatsFault::NotArticle | JatsFault::SeveralArticles => "not_article",
        JatsFault::TooDeep => "too_deep",
        JatsFault::EntityLimit => "entity_limit",
    }
}

/// What an article without PMC id is known by.
#[derive(Serialize)]
struct Identity<'a> {
    doi: Option<&'a str>,
    pmid: Option<&'a str>,
    title: Option<&'a str>,
}

fn identify(source: &str, article: &Article) -> anyhow::Result<RecordId> {
    if let Some(pmcid) = &article.ids.pmcid {
        return Ok(RecordId::native(source, pmcid));
    }
    let identity = Identity {
        doi: article.ids.doi.as_deref(),
        pmid: article.ids.pmid.as_deref(),
        title: article.title.as_deref(),
    };
    RecordId::from_identity(source, &identity)
}

impl ArticleReader {
    /// The bytes of a file, as far as it may be read.
    fn bytes(&self, file: &RawFile) -> anyhow::Result<Vec<u8>> {
        let mut bytes = Vec::new();
        raw::open(file, 0)?.take(self.limits.max_bytes as u64 + 1).read_to_end(&mut bytes)?;
        Ok(bytes)
    }
}

/// An article of a file, on the way to its place among others of the same id.
struct Seen {
    piece: usize,
    /// Which article of its file, from 1.
    number: u64,
    version: u32,
}

impl Reader for ArticleReader {
    type Out = ArticleRecord;

    fn cut(&self, source: &RawSource, limits: ShardLimits) -> anyhow::Result<Cut> {
        let packages = Packages::new(source);
        // Whoever selects wrongly would be told only when everything is read.
        packages.selection()?;
        let mut pieces: Vec<Piece> = Vec::new();
        let mut by_id: BTreeMap<RecordId, Vec<Seen>> = BTreeMap::new();
        let mut n_records = 0u64;
        for file in packages.articles() {
            if limits.limit.is_some_and(|limit| n_records >= limit) {
                break;
            }
            let bytes = self.bytes(file)?;
            let articles = jats::identify_all(&bytes, self.limits).unwrap_or_default();
            let left = limits.limit.map_or(u64::MAX, |limit| limit - n_records);
            let n = (articles.len() as u64).max(1).min(left);
            for (number, article) in (1..=n).zip(&articles) {
                let version = article.ids.pmcid_version.or_else(|| packages.version(file)).unwrap_or_default();
                let seen = Seen { piece: pieces.len(), number, version };
                by_id.entry(identify(&source.name, article)?).or_default().push(seen);
            }
            n_records += n;
            pieces.push(Piece {
                file: file.path.clone(),
                start: 0,
                end: bytes.len() as u64,
                first_line: 1,
                n_records: n,
                repeats: BTreeMap::new(),
            });
        }
        // The highest version stands first, of equal ones the first by path.
        for mut seen in by_id.into_values().filter(|seen| seen.len() > 1) {
            seen.sort_by_key(|seen| (std::cmp::Reverse(seen.version), seen.piece, seen.number));
            for (occurrence, seen) in (1u32..).zip(&seen).skip(1) {
                if let Some(piece) = pieces.get_mut(seen.piece) {
                    piece.repeats.insert(seen.number, occurrence);
                }
            }
        }
        Ok(into_slices(pieces, limits))
    }

    fn read(&self, source: &RawSource, slice: &Slice, out: &mut ReaderOutput<ArticleRecord>) -> anyhow::Result<()> {
        let packages = Packages::new(source);
        let selection = packages.selection()?;
        for piece in &slice.pieces {
            let file = packages
                .file(&piece.file)
                .ok_or_else(|| anyhow::anyhow!("{} is not a file of source `{}`", piece.file, source.name))?;
            let bytes = self.bytes(file)?;
            let articles = match jats::read_all(&bytes, self.limits) {
                Ok(articles) => articles,
                Err(error) => {
                    // A whole file that cannot be read is one raw record.
                    out.exit(RawExit {
                        record_id: RecordId::from_raw_hash(&source.name, &file.sha256),
                        exit: Exit::Quarantined,
                        cause: Cause::new(reason(error.fault), error.to_string()),
                        file: file.path.clone(),
                        line: error.line,
                        raw_sha256: file.sha256.clone(),
                    });
                    continue;
                }
            };
            let metadata = packages.metadata(file);
            let is_alone = articles.len() == 1;
            let n_records = usize::try_from(piece.n_records).unwrap_or(usize::MAX);
            for (number, article) in (1u64..).zip(articles.into_iter().take(n_records)) {
                let occurrence = piece.repeats.get(&number).copied().unwrap_or(1);
                let record_id = identify(&source.name, &article)?;
                let own = bytes.get(article.byte_start as usize..article.byte_end as usize).unwrap_or_default();
                let before = bytes.get(..article.byte_start as usize).unwrap_or_default();
                let line = if is_alone { 1 } else { 1 + before.iter().filter(|byte| **byte == b'\n').count() as u64 };
                let raw_sha256 = if is_alone { file.sha256.clone() } else { Hash::of(own) };
                let exit = |exit, reason, detail: String| RawExit {
                    record_id: record_id.occurrence(occurrence),
                    exit,
                    cause: Cause::new(reason, detail),
                    file: file.path.clone(),
                    line,
                    raw_sha256: raw_sha256.clone(),
                };
                if occurrence > 1 {
                    let detail = format!("{record_id} is read from another file, of the same or a higher version");
                    out.exit(exit(Exit::Dropped, "older_version", detail));
                    continue;
                }
                let metadata = match &metadata {
                    Ok(metadata) => metadata.as_ref(),
                    Err(error) => {
                        out.exit(exit(Exit::Quarantined, "invalid_metadata", format!("{error:#}")));
                        continue;
                    }
                };
                let stated = article.ids.pmcid.as_deref();
                if let Some(metadata) = metadata
                    && stated.is_some_and(|stated| stated != metadata.pmcid)
                {
                    let detail = format!(
                        "the article is {}, the archive's record beside it is of {}",
                        stated.unwrap_or_default(),
                        metadata.pmcid
                    );
                    out.exit(exit(Exit::Quarantined, "id_mismatch", detail));
                    continue;
                }
                let (rights, mut flags) = rights(&source.rights, &article, metadata);
                flags.extend(editorial_flags(&article, metadata));
                flags.sort_unstable();
                flags.dedup();
                let mut files = Vec::new();
                for (packaged, raw) in packages.files(file) {
                    out.raw_media(raw);
                    files.push(packaged);
                }
                out.keep(ArticleRecord {
                    record_id: record_id.clone(),
                    provenance: Provenance {
                        source: source.name.clone(),
                        file: file.path.clone(),
                        line,
                        raw_sha256: raw_sha256.clone(),
                        rights,
                    },
                    specialty: stated.and_then(|pmcid| selection.specialty(pmcid)).map(str::to_owned),
                    version: article.ids.pmcid_version.or_else(|| packages.version(file)),
                    files,
                    images: Vec::new(),
                    patient: None,
                    listed_diagnoses: Vec::new(),
                    made_by: Vec::new(),
                    replies: Vec::new(),
                    flags,
                    article,
                });
            }
        }
        Ok(())
    }
}

/// Fills slices with whole files, in order.
pub(super) fn into_slices(pieces: Vec<Piece>, limits: ShardLimits) -> Cut {
    let mut cut = Cut::default();
    let (mut slice, mut slice_records, mut slice_bytes) = (Slice::default(), 0u64, 0u64);
    for piece in pieces {
        let is_full = slice_records + piece.n_records > limits.records || slice_bytes + piece.end > limits.bytes;
        if is_full && !slice.pieces.is_empty() {
            cut.slices.push(std::mem::take(&mut slice));
            (slice_records, slice_bytes) = (0, 0);
        }
        slice_records += piece.n_records;
        slice_bytes += piece.end;
        slice.pieces.push(piece);
    }
    if !slice.pieces.is_empty() {
        cut.slices.push(slice);
    }
    cut
}

/// What may be done with an article: the strictest of what its snapshot, itself and the archive say.
pub(super) fn rights(snapshot: &Rights, article: &Article, metadata: Option<&Metadata>) -> (Rights, Vec<String>) {
    let permissions = &article.permissions;
    let mut flags = Vec::new();
    let by_archive =
        metadata.and_then(|metadata| metadata.license_code.as_deref()).and_then(license_of_code).unwrap_or_default();
    let (license, differ) = strictest_license(&permissions.license, &by_archive);
    if differ || permissions.is_disagreement {
        flags.push("licence_disagreement".to_owned());
    }
    let mut rights = snapshot.of_record(&spdx(&license));
    if is_closed(&rights.licence) {
        // Nobody gave leave to pass it on, to an endpoint of others neither.
        rights.llm_egress = rights.llm_egress.max(LlmEgress::Local);
    }
    if metadata.is_some_and(|metadata| metadata.is_pmc_openaccess == Some(false)) {
        rights = rights.with(&Rights { access: Access::Unknown, ..rights.clone() });
        flags.push("not_open_access".to_owned());
    }
    (rights, flags)
}

pub(super) fn editorial_flags(article: &Article, metadata: Option<&Metadata>) -> Vec<String> {
    let mut flags = Vec::new();
    let state = match article.editorial {
        EditorialState::Standing => None,
        EditorialState::Corrected => Some("corrected"),
        EditorialState::OfConcern => Some("of_concern"),
        EditorialState::Retracted => Some("retracted"),
        EditorialState::RetractionNotice => Some("retraction_notice"),
        EditorialState::CorrectionNotice => Some("correction_notice"),
        EditorialState::ConcernNotice => Some("concern_notice"),
    };
    flags.extend(state.map(str::to_owned));
    if metadata.is_some_and(|metadata| metadata.is_retracted == Some(true)) {
        flags.push(RETRACTED_BY_ARCHIVE.to_owned());
    }
    if metadata.is_some_and(|metadata| metadata.is_manuscript == Some(true)) {
        flags.push("manuscript".to_owned());
    }
    if !article.warnings.is_empty() {
        flags.push("reader_warnings".to_owned());
    }
    flags
}

/// Flag of an article that the archive calls retracted, whatever the article says of itself.
pub const RETRACTED_BY_ARCHIVE: &str = "retracted_by_archive";
