//! Europe PMC: a search by cursor, and the XML of articles, without their images.
//!
//! Its records say `"Y"` and `"N"`, leave out what they do not know, and name a licence only in the long form (`core`), in
//! lower case and without version. Errors come with status 200. It tells no version of an article; packages that come
//! from here have version 0, below every version of the archive.

use super::opendata::record_path;
use super::queries::{self, Published};
use super::resolver::{
    Found, Metadata, Origin, Package, PackageFile, Pmcid, Resolved, Resolver, Search, Work, cap, kind_of,
};
use crate::error::input;
use crate::service::fetch::paging::{self, Hit, Page, PageRequest};
use crate::service::fetch::{Answered, Progress};
use crate::store::{fs, manifest};
use jiff::civil::Date;
use reqwest::Url;
use serde::Deserialize;

/// The adapter.
pub struct EuropePmc {
    /// Ends with `/`.
    pub base: Url,
    /// The service asks its users for an address to write to.
    pub email: Option<String>,
    /// Whether it may expand words by synonyms.
    pub synonyms: bool,
}

/// The most that the service gives a page.
const PAGE_SIZE: u32 = 1000;
/// A page of 1 000 short records is about 1 MB; one long record may have a few hundred kilobytes.
const MAX_ANSWER_BYTES: u64 = 32 << 20;
/// A search of more hits is not one of the published ones.
const MAX_HITS: u64 = 100_000;
/// The index moves while pages are read.
const TOLERANCE: f64 = 0.005;

/// The answer of `search`; further keys are left alone.
#[derive(Debug, Deserialize)]
#[serde(rename_all = "camelCase")]
struct Answer {
    hit_count: Option<u64>,
    next_cursor_mark: Option<String>,
    request: Option<Request>,
    result_list: Option<Results>,
    err_msg: Option<String>,
}

#[derive(Debug, Deserialize)]
struct Request {
    synonym: Option<bool>,
}

#[derive(Debug, Deserialize)]
struct Results {
    #[serde(default)]
    result: Vec<Record>,
}

#[derive(Debug, Deserialize)]
#[serde(rename_all = "camelCase")]
struct Record {
    id: Option<String>,
    source: Option<String>,
    pmid: Option<String>,
    pmcid: Option<String>,
    doi: Option<String>,
    title: Option<String>,
    is_open_access: Option<String>,
    license: Option<String>,
    nih_auth_man: Option<String>,
    pub_type_list: Option<PubTypes>,
}

#[derive(Debug, Deserialize)]
#[serde(rename_all = "camelCase")]
struct PubTypes {
    #[serde(default)]
    pub_type: Vec<String>,
}

impl Answer {
    fn parse(bytes: &[u8]) -> anyhow::Result<Self> {
        let answer: Self = serde_json::from_slice(bytes)
            .map_err(|error| input(format!("the answer of Europe PMC is not what it was: {error}")))?;
        if let Some(message) = &answer.err_msg {
            return Err(input(format!("Europe PMC refuses: {message}")));
        }
        if answer.hit_count.is_none() || answer.result_list.is_none() {
            return Err(input("the answer of Europe PMC has no hits and no number of hits"));
        }
        Ok(answer)
    }
}

fn yes_or_no(text: Option<&str>) -> Option<bool> {
    match text {
        Some("Y") => Some(true),
        Some("N") => Some(false),
        _ => None,
    }
}

/// A page of a search.
///
/// # Errors
/// An error of the service, another answer, or one to another request.
pub fn read_page(bytes: &[u8], synonyms: bool) -> anyhow::Result<Page<Hit>> {
    let answer = Answer::parse(bytes)?;
    if answer.request.and_then(|request| request.synonym).is_some_and(|used| used != synonyms) {
        return Err(input(format!("asked Europe PMC for synonyms = {synonyms}, but it did the opposite")));
    }
    let records = answer.result_list.map(|list| list.result).unwrap_or_default();
    let hit = |record: Record| Hit {
        source: record.source.unwrap_or_default(),
        id: record.id,
        pmid: record.pmid,
        pmcid: record.pmcid,
        doi: record.doi,
    };
    Ok(Page { hits: records.into_iter().map(hit).collect(), next: answer.next_cursor_mark, total: answer.hit_count })
}

/// `cc by-nc` as the archive writes it, `CC BY-NC`; `cc0` as `CC0`.
fn license_code(license: &str) -> Option<String> {
    let code = license.trim().to_ascii_uppercase();
    (!code.is_empty()).then_some(code)
}

impl EuropePmc {
    fn host_name(&self) -> &str {
        self.base.host_str().unwrap_or_default()
    }

    fn search_url(&self, request: &PageRequest, form: &str) -> anyhow::Result<Url> {
        let mut url = self.base.join("search")?;
        let mut query = url.query_pairs_mut();
        query.append_pair("query", &request.query);
        query.append_pair("resultType", form);
        query.append_pair("format", "json");
        query.append_pair("pageSize", &request.page_size.to_string());
        query.append_pair("cursorMark", &request.cursor);
        query.append_pair("synonym", if request.synonyms { "true" } else { "false" });
        if let Some(email) = &self.email {
            query.append_pair("email", email);
        }
        drop(query);
        Ok(url)
    }

    fn record_url(&self, id: Pmcid) -> anyhow::Result<Url> {
        let query = format!("PMCID:{id}");
        let request = PageRequest { query, synonyms: false, cursor: "*".to_owned(), page_size: 25 };
        self.search_url(&request, "core")
    }

    fn xml_url(&self, id: Pmcid) -> anyhow::Result<Url> {
        Ok(self.base.join(&format!("{id}/fullTextXML"))?)
    }

    fn package(&self, work: &Work<'_>, id: Pmcid, answer: Answered) -> anyhow::Result<Resolved> {
        let body = match answer {
            Answered::Body(body) => body,
            Answered::Missing => {
                return Err(input(format!("{} answers 404 to a search: the service has moved", self.host_name())));
            }
            Answered::Failed(why) => return Ok(Resolved::Failed(why)),
        };
        let answer = match Answer::parse(&body) {
            Ok(answer) => answer,
            Err(error) => return Ok(Resolved::Failed(error.to_string())),
        };
        // A search by id can find others, too.
        let is_asked = |record: &Record| record.pmcid.as_deref().and_then(Pmcid::parse) == Some(id);
        let records = answer.result_list.map(|list| list.result).unwrap_or_default();
        let Some(record) = records.into_iter().find(is_asked) else { return Ok(Resolved::Absent) };
        let types = record.pub_type_list.map(|list| list.pub_type).unwrap_or_default();
        let is_open = yes_or_no(record.is_open_access.as_deref());
        let metadata = Metadata {
            pmcid: id.to_string(),
            version: 0,
            pmid: record.pmid.and_then(|pmid| pmid.parse().ok()),
            doi: record.doi,
            title: record.title,
            is_pmc_openaccess: is_open,
            is_manuscript: yes_or_no(record.nih_auth_man.as_deref()),
            is_retracted: Some(types.iter().any(|kind| kind.eq_ignore_ascii_case("Retracted Publication"))),
            license_code: record.license.as_deref().and_then(license_code),
            ..Metadata::default()
        };
        let path = work.folder.join(record_path(id, 0));
        path.parent().map_or(Ok(()), fs::create_dir)?;
        fs::write_atomic(&path, &manifest::to_json(&metadata)?)?;
        let is_open = is_open == Some(true);
        let mut files = Vec::new();
        if is_open {
            let (name, origin) = (format!("{id}.0.xml"), Origin::Web(self.xml_url(id)?));
            files.push(PackageFile { kind: kind_of(&name), name, origin, bytes: None, md5: None });
        }
        let left_out = Vec::new();
        let (service, version, versions) = (Resolver::service(self), 0, vec![0]);
        let mut package = Package { pmcid: id, version, versions, service, metadata, is_open, files, left_out };
        Ok(match cap(&mut package, work) {
            Ok(()) => Resolved::Package(Box::new(package)),
            Err(why) => Resolved::Failed(why),
        })
    }
}

impl Search for EuropePmc {
    fn service(&self) -> &'static str {
        "europepmc"
    }

    fn host(&self) -> String {
        self.host_name().to_owned()
    }

    fn query(&self, published: Published, before: Date) -> anyhow::Result<String> {
        queries::for_europe_pmc(published, before)
    }

    fn differences(&self) -> &'static [&'static str] {
        queries::DIFFERENCES
    }

    fn search(&self, work: &Work<'_>, query: &str, date: Date) -> anyhow::Result<Found> {
        let search = paging::Search {
            query: query.to_owned(),
            synonyms: self.synonyms,
            date,
            page_size: PAGE_SIZE,
            first_cursor: "*".to_owned(),
            tolerance: TOLERANCE,
            max_hits: MAX_HITS,
        };
        let (hits, provenance) = work.fetcher.collect(
            search,
            MAX_ANSWER_BYTES,
            |request| self.search_url(request, "lite"),
            |bytes| read_page(bytes, self.synonyms),
            &|progress: Progress<'_>| (work.progress)(progress),
        )?;
        Ok(Found { hits, provenance, understood: None })
    }
}

impl Resolver for EuropePmc {
    fn service(&self) -> &'static str {
        "europepmc"
    }

    fn host(&self) -> String {
        self.host_name().to_owned()
    }

    fn check(&self, work: &Work<'_>, sentinels: &[Pmcid]) -> anyhow::Result<()> {
        let urls: Vec<Url> = sentinels.iter().map(|id| self.xml_url(*id)).collect::<anyhow::Result<_>>()?;
        for (id, answer) in sentinels.iter().zip(work.fetcher.get_all(&urls, work.max_file_bytes, work.progress)?) {
            let why = match answer {
                Answered::Body(_) => continue,
                Answered::Missing => "answers 404 to",
                Answered::Failed(why) => return Err(input(format!("{}: the XML of {id}: {why}", self.host_name()))),
            };
            return Err(input(format!(
                "{} {why} the XML of {id}, which is known to be open: the service has moved or changed, so what it does not have says nothing",
                self.host_name()
            )));
        }
        Ok(())
    }

    fn resolve(&self, work: &Work<'_>, ids: &[Pmcid]) -> anyhow::Result<Vec<Resolved>> {
        let urls: Vec<Url> = ids.iter().map(|id| self.record_url(*id)).collect::<anyhow::Result<_>>()?;
        let answers = work.fetcher.get_all(&urls, MAX_ANSWER_BYTES, work.progress)?;
        ids.iter().zip(answers).map(|(id, answer)| self.package(work, *id, answer)).collect()
    }

    fn full_text(&self, id: Pmcid) -> anyhow::Result<Option<Url>> {
        Ok(Some(self.xml_url(id)?))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn pages_of_all_forms_are_read_and_errors_are_none() {
        let lite = br#"{"version": "6.9", "hitCount": 3, "nextCursorMark": "x", "request": {"synonym": false, "cursorMark": "%2A"},
            "resultList": {"result": [
                {"id": "7", "source": "MED", "pmid": "7", "pmcid": "PMC70", "isOpenAccess": "Y"},
                {"id": "PPR8", "source": "PPR", "doi": "10.1/AB"}]}}"#;
        let page = read_page(lite, false).unwrap();
        assert_eq!((page.next.as_deref(), page.total, page.hits.len()), (Some("x"), Some(3), 2));
        assert_eq!(page.hits[0].pmcid.as_deref(), Some("PMC70"));
        assert_eq!(read_page(br#"{"hitCount": 0, "resultList": {"result": []}}"#, false).unwrap().hits, []);
        let error = |text: &str| read_page(text.as_bytes(), false).unwrap_err().to_string();
        assert_eq!(
            error(r#"{"errCode": 400, "errMsg": "Invalid page size"}"#),
            "Europe PMC refuses: Invalid page size"
        );
        assert!(error(r#"{"request": {}}"#).contains("no number of hits"));
        assert!(error("<html></html>").contains("not what it was"));
        assert!(
            error(r#"{"hitCount": 0, "resultList": {}, "request": {"synonym": true}}"#).contains("did the opposite")
        );
    }
}
