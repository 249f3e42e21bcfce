//! NCBI's E-utilities: `esearch` finds PMIDs in PubMed, the ID converter tells their PMCIDs.
//!
//! `esearch` gives 20 ids unless asked for more, and of PubMed the first 9,999 only. A query that it does not understand is
//! answered with status 200, so its lists of errors and its count are looked at. NCBI allows three requests a second, and
//! ten with a key. The key travels in requests alone: addresses are shown without their query, and no search is written
//! to the lock file.

use super::queries::{self, Published};
use super::resolver::{Found, Search, Work};
use crate::error::input;
use crate::service::fetch::Answered;
use crate::service::fetch::paging::{self, Hit, Page, PageRequest, next_offset};
use jiff::civil::Date;
use quick_xml::events::Event;
use reqwest::Url;
use serde::Deserialize;
use serde_json::Value;
use std::cell::RefCell;
use std::collections::{BTreeMap, BTreeSet};

/// The adapter.
pub struct Eutils {
    /// Ends with `/`.
    pub base: Url,
    pub id_converter: Url,
    pub email: Option<String>,
    pub key: Option<String>,
}

/// What NCBI knows this program by.
const TOOL: &str = "casemill";
/// Of PubMed, ids from 9,999 on are not given.
const MAX_HITS: u64 = 9_999;
const PAGE_SIZE: u32 = 2_000;
/// The most that the ID converter takes.
const IDS_PER_REQUEST: usize = 200;
const MAX_ANSWER_BYTES: u64 = 8 << 20;

/// One answer of `esearch`.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct IdList {
    pub count: u64,
    /// Where its first id stands among all.
    pub start: u64,
    pub ids: Vec<String>,
    /// The query as PubMed understood it.
    pub understood: Option<String>,
}

impl IdList {
    /// Reads both forms, JSON and XML.
    ///
    /// # Errors
    /// Another answer, and one to a query that was not understood as a whole.
    pub fn parse(bytes: &[u8]) -> anyhow::Result<Self> {
        let text = std::str::from_utf8(bytes).map_err(|_| input("the answer of esearch is not UTF-8"))?.trim_start();
        let parsed = if text.starts_with('<') { Self::of_xml(text) } else { Self::of_json(text) };
        parsed.map_err(|why| input(format!("esearch: {why}")))
    }

    fn of_json(text: &str) -> Result<Self, String> {
        let answer: Value = serde_json::from_str(text).map_err(|error| format!("the answer is not JSON: {error}"))?;
        // What is said at the limit of requests.
        if let Some(error) = answer.get("error").and_then(Value::as_str) {
            return Err(error.to_owned());
        }
        let result = answer.get("esearchresult").ok_or("the answer has no `esearchresult`")?;
        if let Some(error) = result.get("ERROR").and_then(Value::as_str) {
            return Err(error.to_owned());
        }
        let lists = result.get("errorlist").and_then(Value::as_object);
        let unknown: Vec<String> = lists
            .into_iter()
            .flatten()
            .flat_map(|(_, words)| words.as_array().into_iter().flatten().filter_map(Value::as_str))
            .map(str::to_owned)
            .collect();
        refuse(&unknown)?;
        let number = |key: &str| result.get(key).and_then(Value::as_str).and_then(|text| text.parse().ok());
        let ids = result.get("idlist").and_then(Value::as_array).ok_or("the answer has no `idlist`")?;
        let ids = ids.iter().map(|id| id.as_str().map(str::to_owned)).collect::<Option<Vec<_>>>();
        Ok(Self {
            count: number("count").ok_or("the answer has no `count`")?,
            start: number("retstart").ok_or("the answer has no `retstart`")?,
            ids: ids.ok_or("an id is not text")?,
            understood: result.get("querytranslation").and_then(Value::as_str).map(str::to_owned),
        })
    }

    fn of_xml(text: &str) -> Result<Self, String> {
        let mut reader = quick_xml::Reader::from_str(text);
        let (mut path, mut words): (Vec<String>, String) = (Vec::new(), String::new());
        let (mut count, mut start, mut understood, mut ids) = (None, None, None, Vec::new());
        let (mut error, mut unknown, mut ended) = (None, Vec::new(), false);
        loop {
            match reader.read_event().map_err(|error| format!("the answer is not XML: {error}"))? {
                Event::Start(tag) => {
                    path.push(String::from_utf8_lossy(tag.local_name().into_inner()).into_owned());
                    words.clear();
                }
                Event::Text(piece) => words.push_str(&piece.decode().map_err(|error| error.to_string())?),
                Event::GeneralRef(name) => {
                    let name = name.decode().map_err(|error| error.to_string())?;
                    let text = quick_xml::escape::unescape(&format!("&{name};")).map(|text| text.into_owned());
                    words.push_str(&text.map_err(|error| error.to_string())?);
                }
                Event::End(_) => {
                    let value = std::mem::take(&mut words);
                    let parts: Vec<&str> = path.iter().map(String::as_str).collect();
                    match parts.as_slice() {
                        ["eSearchResult"] => ended = true,
                        ["eSearchResult", "Count"] => count = value.trim().parse().ok(),
                        ["eSearchResult", "RetStart"] => start = value.trim().parse().ok(),
                        ["eSearchResult", "IdList", "Id"] => ids.push(value.trim().to_owned()),
                        ["eSearchResult", "QueryTranslation"] => understood = Some(value),
                        ["eSearchResult", "ERROR"] => error = Some(value),
                        ["eSearchResult", "ErrorList", _] => unknown.push(value),
                        _ => {}
                    }
                    path.pop();
                }
                Event::Eof => break,
                _ => {}
            }
        }
        if let Some(error) = error {
            return Err(error);
        }
        refuse(&unknown)?;
        if !ended {
            return Err("the answer is no `eSearchResult`".to_owned());
        }
        let count = count.ok_or("the answer has no `Count`")?;
        Ok(Self { count, start: start.ok_or("the answer has no `RetStart`")?, ids, understood })
    }
}

/// PubMed leaves out what it does not know and searches for the rest, which is another search.
fn refuse(unknown: &[String]) -> Result<(), String> {
    if unknown.is_empty() {
        return Ok(());
    }
    Err(format!("PubMed does not know `{}` of the query, so this would be another search", unknown.join("`, `")))
}

/// The answer of the ID converter; its ids are numbers in one version and texts in another.
#[derive(Debug, Deserialize)]
struct Converted {
    status: Option<String>,
    #[serde(default)]
    records: Vec<ConvertedRecord>,
}

#[derive(Debug, Deserialize)]
struct ConvertedRecord {
    pmid: Option<Value>,
    pmcid: Option<String>,
    doi: Option<String>,
}

/// PMID → (PMCID, DOI).
type Identifiers = BTreeMap<String, (Option<String>, Option<String>)>;

/// # Errors
/// Another answer, or an error of the service.
fn read_converted(bytes: &[u8]) -> Result<Identifiers, String> {
    let answer: Converted =
        serde_json::from_slice(bytes).map_err(|error| format!("the answer is not what it was: {error}"))?;
    if answer.status.as_deref() != Some("ok") {
        return Err("the answer is an error".to_owned());
    }
    let pmid = |value: &Value| match value {
        Value::String(text) => Some(text.trim().to_owned()),
        Value::Number(number) => Some(number.to_string()),
        _ => None,
    };
    let entry = |record: ConvertedRecord| Some((pmid(record.pmid.as_ref()?)?, (record.pmcid, record.doi)));
    Ok(answer.records.into_iter().filter_map(entry).collect())
}

impl Eutils {
    fn host_name(&self) -> &str {
        self.base.host_str().unwrap_or_default()
    }

    fn search_url(&self, request: &PageRequest) -> anyhow::Result<Url> {
        let mut url = self.base.join("esearch.fcgi")?;
        let mut query = url.query_pairs_mut();
        query.append_pair("db", "pubmed");
        query.append_pair("term", &request.query);
        query.append_pair("retmode", "json");
        query.append_pair("retmax", &request.page_size.to_string());
        query.append_pair("retstart", &request.cursor);
        self.sign(&mut query);
        if let Some(key) = &self.key {
            query.append_pair("api_key", key);
        }
        drop(query);
        Ok(url)
    }

    fn convert_url(&self, pmids: &[&str]) -> Url {
        let mut url = self.id_converter.clone();
        let mut query = url.query_pairs_mut();
        query.append_pair("ids", &pmids.join(","));
        query.append_pair("idtype", "pmid");
        query.append_pair("format", "json");
        query.append_pair("versions", "no");
        self.sign(&mut query);
        drop(query);
        url
    }

    fn sign(&self, query: &mut url::form_urlencoded::Serializer<'_, url::UrlQuery<'_>>) {
        query.append_pair("tool", TOOL);
        if let Some(email) = &self.email {
            query.append_pair("email", email);
        }
    }
}

impl Search for Eutils {
    fn service(&self) -> &'static str {
        "eutils"
    }

    fn host(&self) -> String {
        self.host_name().to_owned()
    }

    fn query(&self, published: Published, before: Date) -> anyhow::Result<String> {
        queries::for_pubmed(published, before)
    }

    fn differences(&self) -> &'static [&'static str] {
        &[]
    }

    fn search(&self, work: &Work<'_>, query: &str, date: Date) -> anyhow::Result<Found> {
        let search = paging::Search {
            query: query.to_owned(),
            synonyms: false,
            date,
            page_size: PAGE_SIZE,
            first_cursor: "0".to_owned(),
            tolerance: 0.0,
            max_hits: MAX_HITS,
        };
        let understood = RefCell::new(None);
        let read = |bytes: &[u8]| {
            let list = IdList::parse(bytes)?;
            let next = next_offset(list.start, list.ids.len() as u64, list.count);
            understood.borrow_mut().clone_from(&list.understood);
            let hit =
                |id: String| Hit { source: "MED".to_owned(), pmid: Some(id.clone()), id: Some(id), ..Hit::default() };
            Ok(Page { hits: list.ids.into_iter().map(hit).collect(), next, total: Some(list.count) })
        };
        let address = |request: &PageRequest| self.search_url(request);
        let (hits, provenance) = work.fetcher.collect(search, MAX_ANSWER_BYTES, address, read, work.progress)?;
        Ok(Found { hits, provenance, understood: understood.into_inner() })
    }

    fn identify(&self, work: &Work<'_>, hits: &mut [Hit]) -> anyhow::Result<()> {
        let lacking = hits.iter().filter(|hit| hit.pmcid.is_none());
        let pmids: BTreeSet<&str> = lacking.filter_map(|hit| hit.pmid.as_deref()).collect();
        let pmids: Vec<&str> = pmids.into_iter().collect();
        let urls: Vec<Url> = pmids.chunks(IDS_PER_REQUEST).map(|pmids| self.convert_url(pmids)).collect();
        let host = self.id_converter.host_str().unwrap_or_default();
        let mut found = Identifiers::new();
        for answer in work.fetcher.get_all(&urls, MAX_ANSWER_BYTES, work.progress)? {
            let read = match answer {
                Answered::Body(body) => read_converted(&body),
                Answered::Missing => Err("it answers 404: the service has moved".to_owned()),
                Answered::Failed(why) => Err(why),
            };
            found.extend(read.map_err(|why| input(format!("the ID converter at {host}: {why}")))?);
        }
        for hit in hits {
            if let Some((pmcid, doi)) = hit.pmid.as_ref().and_then(|pmid| found.get(pmid)) {
                hit.pmcid = hit.pmcid.take().or_else(|| pmcid.clone());
                hit.doi = hit.doi.take().or_else(|| doi.clone());
            }
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn both_forms_of_an_answer_say_the_same() {
        let json =
            br#"{"header": {"type": "esearch"}, "esearchresult": {"count": "45", "retmax": "2", "retstart": "20",
            "idlist": ["5", "7"], "querytranslation": "a AND b"}}"#;
        let xml = br#"<?xml version="1.0" encoding="UTF-8" ?>
            <!DOCTYPE eSearchResult PUBLIC "-//NLM//DTD esearch 20060628//EN" "https://eutils.ncbi.nlm.nih.gov/eutils/dtd/20060628/esearch.dtd">
            <eSearchResult><Count>45</Count><RetMax>2</RetMax><RetStart>20</RetStart><IdList>
            <Id>5</Id><Id>7</Id></IdList><TranslationStack><TermSet><Count>9</Count></TermSet></TranslationStack>
            <QueryTranslation>a AND b</QueryTranslation></eSearchResult>"#;
        let (json, xml) = (IdList::parse(json).unwrap(), IdList::parse(xml).unwrap());
        assert_eq!(json, xml);
        assert_eq!((json.count, json.start, json.ids.join(" ")), (45, 20, "5 7".to_owned()));
    }

    #[test]
    fn what_is_not_a_whole_answer_to_the_whole_query_is_refused() {
        for (answer, expected) in [
            (r#"{"error": "API rate limit exceeded", "count": "11"}"#, "esearch: API rate limit exceeded"),
            (
                r#"{"esearchresult": {"ERROR": "'retstart' cannot be larger than 9998"}}"#,
                "esearch: 'retstart' cannot be larger than 9998",
            ),
            (
                r#"{"esearchresult": {"count": "3", "retstart": "0", "idlist": [], "errorlist": {"phrasesnotfound": [], "fieldsnotfound": ["Filtre"]}}}"#,
                "esearch: PubMed does not know `Filtre` of the query, so this would be another search",
            ),
            ("<eSearchResult><ERROR>Empty term</ERROR></eSearchResult>", "esearch: Empty term"),
            ("<html><body>Error</body></html>", "esearch: the answer is no `eSearchResult`"),
            ("{}", "esearch: the answer has no `esearchresult`"),
        ] {
            assert_eq!(IdList::parse(answer.as_bytes()).unwrap_err().to_string(), expected);
        }
    }

    #[test]
    fn converted_ids_are_numbers_or_texts() {
        let answer = br#"{"status": "ok", "records": [{"pmid": 7, "pmcid": "PMC70", "requested-id": "7"}, {"pmid": "8", "pmcid": "PMC80", "doi": "10.1/x"},
            {"pmid": "9", "status": "error", "errmsg": "Identifier not found in PMC"}]}"#;
        let found = read_converted(answer).unwrap();
        assert_eq!(found["7"].0.as_deref(), Some("PMC70"));
        assert_eq!(found["8"], (Some("PMC80".to_owned()), Some("10.1/x".to_owned())));
        assert_eq!(found["9"], (None, None));
        assert!(read_converted(br#"{"status": "error", "errors": []}"#).is_err());
    }

    #[test]
    fn the_key_is_in_searches_alone() {
        let url = |text: &str| Url::parse(text).unwrap();
        let service = Eutils {
            base: url("https://eutils.example/entrez/eutils/"),
            id_converter: url("https://pmc.example/idconv/"),
            email: Some("me@example.org".to_owned()),
            key: Some("secret".to_owned()),
        };
        let request = PageRequest { query: "a[b]".to_owned(), synonyms: false, cursor: "20".to_owned(), page_size: 2 };
        assert_eq!(
            service.search_url(&request).unwrap().as_str(),
            "https://eutils.example/entrez/eutils/esearch.fcgi?db=pubmed&term=a%5Bb%5D&retmode=json&retmax=2&retstart=20&tool=casemill&email=me%40example.org&api_key=secret"
        );
        assert_eq!(
            service.convert_url(&["7", "8"]).as_str(),
            "https://pmc.example/idconv/?ids=7%2C8&idtype=pmid&format=json&versions=no&tool=casemill&email=me%40example.org"
        );
    }
}
