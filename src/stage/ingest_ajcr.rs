//! `ingest_ajcr`: pages of the American Journal of Case Reports to `article` records (MTDiag, 3.2 and B.3).
//!
//! A page is known by its number, `AJCR937787`. Lists beside the pages give final diagnoses; a row of a list without a page is
//! a raw record as well, which leaves as `page_missing`, so that every listed article is counted. Rights are the strictest of
//! the snapshot's and of the licence that the page states; a page that states none is closed.

use super::ingest_jats::{editorial_flags, into_slices, rights};
use super::*;
use crate::record::article::{ArticleRecord, ListedDiagnosis};
use crate::record::ledger::Exit;
use crate::record::{Provenance, RecordId};
use crate::source::ajcr::folder::{INVALID_DOI, LISTED_TWICE, Outcome, PAGE_MISSING, PageFile, read_page};
use crate::source::ajcr::{Folder, ListExit, PageLimits, PageRules};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use std::collections::BTreeMap;

pub const STAGE: StageDef = StageDef {
    name: "ingest_ajcr",
    summary: "Reads pages of the American Journal of Case Reports, with the final diagnoses of the lists beside them",
    shape: Shape::Reader,
    revision: 1,
    inputs: &[],
    outputs: &[Port::records::<ArticleRecord>("records")],
    resources: &[],
    reasons: &[
        "not_html",
        "is_pdf",
        "too_large",
        "bot_page",
        "page_shape",
        "id_mismatch",
        "duplicate_page",
        INVALID_DOI,
        PAGE_MISSING,
        LISTED_TWICE,
    ],
    settings: SettingsType::of::<IngestSettings>(),
    build,
};

/// Formats that this stage reads.
pub const FORMATS: &[&str] = &["ajcr"];

/// Flag of an article that no list names.
pub const NOT_IN_LIST: &str = "not_in_list";
/// Flag of an article whose first final diagnosis is empty in the list.
pub const DIAGNOSIS_GAP: &str = "diagnosis_gap";
/// Flag of an article whose list and page give different PubMed ids; the page's counts.
pub const PMID_CONFLICT: &str = "pmid_conflict";

#[derive(Serialize, Deserialize, JsonSchema)]
#[serde(default, deny_unknown_fields)]
struct IngestSettings {
    /// Largest page that is read, in bytes; larger ones are quarantined.
    max_file_bytes: u32,
    /// Elements of one page.
    max_elements: u32,
    /// Elements in elements.
    max_depth: u32,
}

impl Default for IngestSettings {
    fn default() -> Self {
        Self { max_file_bytes: 16 << 20, max_elements: 500_000, max_depth: 256 }
    }
}

impl Settings for IngestSettings {
    fn check(&self) -> Result<(), String> {
        if !(1000..=1 << 28).contains(&self.max_file_bytes) {
            return Err("max_file_bytes must be between 1000 and 268435456".to_owned());
        }
        if !(16..=512).contains(&self.max_depth) {
            return Err("max_depth must be between 16 and 512".to_owned());
        }
        if !(100..=10_000_000).contains(&self.max_elements) {
            return Err("max_elements must be between 100 and 10000000".to_owned());
        }
        Ok(())
    }
}

fn build(arguments: &StageArguments<'_>) -> anyhow::Result<AnyStage> {
    let settings: IngestSettings = arguments.settings()?;
    match arguments.format {
        Some("ajcr") => {}
        other => anyhow::bail!(
            "format `{}` is not one that ingest_ajcr reads (known: {})",
            other.unwrap_or("none"),
            FORMATS.join(", ")
        ),
    }
    let limits = PageLimits {
        max_bytes: settings.max_file_bytes as usize,
        max_elements: settings.max_elements as usize,
        max_depth: settings.max_depth as usize,
        ..PageLimits::default()
    };
    Ok(AnyStage::reader(PageReader { rules: PageRules::from_options(&arguments.source_options)?, limits }))
}

struct PageReader {
    rules: PageRules,
    limits: PageLimits,
}

/// The id of what a page becomes, or of the page where nothing tells it.
fn page_id(source: &RawSource, page: &PageFile<'_>) -> RecordId {
    match &page.ajcr_id {
        Some(id) => RecordId::native(&source.name, id).occurrence(page.occurrence),
        None => RecordId::from_raw_hash(&source.name, &page.file.sha256),
    }
}

/// What a row of a list is known by: the article whose page is missing, or else its place.
fn row_id(source: &RawSource, list: &RawFile, exit: &ListExit) -> anyhow::Result<RecordId> {
    #[derive(Serialize)]
    struct Row<'a> {
        list: &'a str,
        line: u64,
        doi: &'a str,
    }
    if exit.reason == PAGE_MISSING {
        return Ok(RecordId::native(&source.name, &exit.row.ajcr_id));
    }
    RecordId::from_identity(&source.name, &Row { list: &list.path, line: exit.row.line, doi: &exit.row.doi })
}

impl Reader for PageReader {
    type Out = ArticleRecord;

    fn cut(&self, source: &RawSource, limits: ShardLimits) -> anyhow::Result<Cut> {
        let folder = Folder::read(source, &self.rules, self.limits)?;
        let mut left = limits.limit.unwrap_or(u64::MAX);
        let mut pieces = Vec::new();
        for page in folder.pages() {
            if left == 0 {
                break;
            }
            left -= 1;
            let mut repeats = BTreeMap::new();
            if page.occurrence > 1 {
                repeats.insert(1, page.occurrence);
            }
            pieces.push(Piece {
                file: page.file.path.clone(),
                start: 0,
                end: page.file.bytes,
                first_line: 1,
                n_records: 1,
                repeats,
            });
        }
        for (list, exits) in folder.lists() {
            let most = usize::try_from(limits.records.max(1)).unwrap_or(usize::MAX);
            for chunk in exits.chunks(most) {
                let n_records = (chunk.len() as u64).min(left);
                if n_records == 0 {
                    break;
                }
                left -= n_records;
                pieces.push(Piece {
                    file: list.path.clone(),
                    start: 0,
                    end: list.bytes,
                    first_line: chunk.first().map_or(1, |exit| exit.row.line),
                    n_records,
                    repeats: BTreeMap::new(),
                });
            }
        }
        Ok(into_slices(pieces, limits))
    }

    fn read(&self, source: &RawSource, slice: &Slice, out: &mut ReaderOutput<ArticleRecord>) -> anyhow::Result<()> {
        let folder = Folder::read(source, &self.rules, self.limits)?;
        let pages: BTreeMap<&str, &PageFile<'_>> =
            folder.pages().iter().map(|page| (page.file.path.as_str(), page)).collect();
        let lists: BTreeMap<&str, (&RawFile, &[ListExit])> =
            folder.lists().map(|(list, exits)| (list.path.as_str(), (list, exits))).collect();
        for piece in &slice.pieces {
            if let Some(page) = pages.get(piece.file.as_str()) {
                self.page(source, &folder, page, out)?;
            } else if let Some((list, exits)) = lists.get(piece.file.as_str()) {
                let n_records = usize::try_from(piece.n_records).unwrap_or(usize::MAX);
                for exit in exits.iter().filter(|exit| exit.row.line >= piece.first_line).take(n_records) {
                    let is_repeat = exit.reason == LISTED_TWICE;
                    out.exit(RawExit {
                        record_id: row_id(source, list, exit)?,
                        exit: if is_repeat { Exit::Dropped } else { Exit::Quarantined },
                        cause: Cause::new(exit.reason, exit.detail.clone()),
                        file: list.path.clone(),
                        line: exit.row.line,
                        raw_sha256: list.sha256.clone(),
                    });
                }
            } else {
                anyhow::bail!("{} is not a file of source `{}`", piece.file, source.name);
            }
        }
        Ok(())
    }
}

impl PageReader {
    fn page(
        &self,
        source: &RawSource,
        folder: &Folder<'_>,
        page: &PageFile<'_>,
        out: &mut ReaderOutput<ArticleRecord>,
    ) -> anyhow::Result<()> {
        let file = page.file;
        let exit = |exit, reason: &'static str, detail: String| RawExit {
            record_id: page_id(source, page),
            exit,
            cause: Cause::new(reason, detail),
            file: file.path.clone(),
            line: 1,
            raw_sha256: file.sha256.clone(),
        };
        let read = match read_page(page, &self.rules, self.limits)? {
            Outcome::Read(read) => *read,
            Outcome::Duplicate => {
                let detail = format!("{} is read from another file", page.ajcr_id.as_deref().unwrap_or_default());
                out.exit(exit(Exit::Dropped, "duplicate_page", detail));
                return Ok(());
            }
            Outcome::IdMismatch(detail) => {
                out.exit(exit(Exit::Quarantined, "id_mismatch", detail));
                return Ok(());
            }
            Outcome::Fault(error) => {
                out.exit(exit(Exit::Quarantined, error.fault.as_str(), error.detail));
                return Ok(());
            }
        };
        let mut article = read.article;
        let (rights, mut flags) = rights(&source.rights, &article, None);
        flags.extend(editorial_flags(&article, None));
        flags.extend(read.flags);
        let mut listed_diagnoses = Vec::new();
        match folder.listed(&read.ajcr_id) {
            None => flags.push(NOT_IN_LIST.to_owned()),
            Some(listed) => {
                let labels = (1..).zip(&listed.article.diagnoses);
                listed_diagnoses.extend(labels.map(|(rank, label)| ListedDiagnosis { rank, label: label.clone() }));
                if listed.article.diagnosis_gap {
                    flags.push(DIAGNOSIS_GAP.to_owned());
                }
                match (&article.ids.pmid, &listed.article.pmid) {
                    (Some(own), Some(other)) if own != other => flags.push(PMID_CONFLICT.to_owned()),
                    (None, Some(other)) => article.ids.pmid = Some(other.clone()),
                    _ => {}
                }
            }
        }
        flags.sort_unstable();
        flags.dedup();
        out.keep(ArticleRecord {
            record_id: RecordId::native(&source.name, &read.ajcr_id),
            provenance: Provenance {
                source: source.name.clone(),
                file: file.path.clone(),
                line: 1,
                raw_sha256: file.sha256.clone(),
                rights,
            },
            specialty: None,
            version: None,
            files: Vec::new(),
            images: Vec::new(),
            patient: None,
            listed_diagnoses,
            made_by: Vec::new(),
            replies: Vec::new(),
            flags,
            article,
        });
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::record::{Hash, Rights, from_batch};
    use expect_test::expect;
    use std::fmt::Write as _;
    use std::path::Path;

    fn page(number: u32, body: &str) -> String {
        format!(
            "<html><head><meta name=citation_doi content='10.12659/AJCR.{number}'></head><body><div id=article>\
             <h1>Report {number}</h1>{body}</div></body></html>"
        )
    }

    const BODY: &str = "<div id=fulltext><h2>Case Report</h2><p>A man coughed.</p></div>";

    /// Writes files and reads them in slices of three records.
    fn account(files: &[(&str, &str)], limit: Option<u64>) -> String {
        let folder = tempfile::tempdir().unwrap();
        let raw = |(name, text): &(&str, &str)| {
            let readable = folder.path().join(Path::new(name).file_name().unwrap());
            std::fs::write(&readable, text).unwrap();
            RawFile {
                path: format!("ajcr/{name}"),
                sha256: Hash::of(text.as_bytes()),
                bytes: text.len() as u64,
                readable,
            }
        };
        let rights = Rights { licence: "LicenseRef-per-record".into(), ..Rights::unknown() };
        let source = RawSource { name: "ajcr".into(), rights, files: files.iter().map(raw).collect() };
        let text = include_str!("../../sources/ajcr.toml");
        let config = crate::config::source::parse("sources/ajcr.toml", text).unwrap();
        let arguments = StageArguments {
            settings: (STAGE.settings.complete)(toml::Table::new()).unwrap(),
            resources: &Resources::default(),
            format: Some("ajcr"),
            source_options: config.options,
        };
        let AnyStage::Reader(reader) = build(&arguments).unwrap() else { panic!("not a reader") };
        let mut out = String::new();
        for slice in reader.cut(&source, ShardLimits { records: 3, bytes: 1 << 20, limit }).unwrap().slices {
            let output = reader.read("node", &source, &slice).unwrap();
            writeln!(out, "slice of {}", slice.pieces.iter().map(|piece| piece.n_records).sum::<u64>()).unwrap();
            let Stream::Records(batch) = output.stream else { panic!("a reader emits records") };
            for record in from_batch::<ArticleRecord>(&batch).unwrap() {
                let labels: Vec<_> = record.listed_diagnoses.iter().map(|one| (one.rank, one.label.as_str())).collect();
                let (id, rights) = (&record.record_id, &record.provenance.rights);
                writeln!(out, "keep {id} {} {:?} {labels:?}", rights.licence, record.flags).unwrap();
            }
            for row in output.extras.ledger {
                assert!(STAGE.reasons.contains(&row.reason.as_str()), "{}", row.reason);
                let exit = row.exit.as_str();
                let id = if row.reason == LISTED_TWICE || row.reason == INVALID_DOI {
                    "ajcr:…"
                } else {
                    row.record_id.as_str()
                };
                let detail = crate::text::excerpt(&row.detail, 80);
                writeln!(out, "{exit} {id} {}:{} {}: {detail}", row.file, row.line, row.reason).unwrap();
            }
        }
        out
    }

    #[test]
    fn pages_and_lists_are_joined_and_everything_is_counted() {
        let licensed = BODY.to_owned() + "<p class=license>CC BY 4.0</p>";
        let (one, two, six) = (page(1, &licensed), page(2, BODY), page(6, BODY));
        let list = "PMID,DOI,Final diagnosis1,final diagnosis 2,FINAL DIAGNOSIS3\n\
                    111,10.12659/AJCR.1,Cough,Cold,\n112,10.12659/ajcr.3,Gout,,\n113,10.1000/x,Flu,,\n\
                    114,https://doi.org/10.12659/AJCR.1,Croup,,\n115,10.12659/AJCR.4,,Mumps,\n";
        let files: &[(&str, &str)] = &[
            ("AJCR1.html", &one),
            ("ajcr2.htm", &two),
            ("AJCR2.html", &two),
            ("AJCR4.html", &page(4, BODY)),
            ("AJCR5.html", &six),
            ("AJCR7.html", "%PDF-1.4"),
            ("AJCR8.html", "<html><title>Just a moment</title></html>"),
            ("cases.csv", list),
            ("saved.html", &six),
            ("source.toml", ""),
        ];
        expect![[r#"
            slice of 3
            keep ajcr:AJCR1 CC-BY-4.0 [] [(1, "Cough"), (2, "Cold")]
            keep ajcr:AJCR2 LicenseRef-unstated ["not_in_list"] []
            keep ajcr:AJCR4 LicenseRef-unstated ["diagnosis_gap"] [(1, "Mumps")]
            slice of 3
            quarantined ajcr:AJCR5 ajcr/AJCR5.html:1 id_mismatch: the file is named for AJCR5, its page is of AJCR6
            quarantined ajcr:AJCR7 ajcr/AJCR7.html:1 is_pdf: the file is a PDF
            quarantined ajcr:AJCR8 ajcr/AJCR8.html:1 bot_page: the page says `Just a moment`, and is no article: title `Just a moment`
            slice of 2
            keep ajcr:AJCR6 LicenseRef-unstated ["not_in_list"] []
            dropped ajcr:AJCR2~2 ajcr/ajcr2.htm:1 duplicate_page: AJCR2 is read from another file
            slice of 3
            quarantined ajcr:AJCR3 ajcr/cases.csv:3 page_missing: there is no page of AJCR3
            quarantined ajcr:… ajcr/cases.csv:4 invalid_doi: `10.1000/x` is no DOI of the journal
            dropped ajcr:… ajcr/cases.csv:5 listed_twice: AJCR1 is listed before, in ajcr/cases.csv, line 2
        "#]].assert_eq(&account(files, None));
        expect![[r#"
            slice of 2
            keep ajcr:AJCR1 CC-BY-4.0 [] [(1, "Cough"), (2, "Cold")]
            keep ajcr:AJCR2 LicenseRef-unstated ["not_in_list"] []
        "#]]
        .assert_eq(&account(files, Some(2)));
    }
}
