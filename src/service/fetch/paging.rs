//! Searches that answer page by page, and hits that come twice.
//!
//! [`Pager`] decides from each page whether there is another one; it knows nothing of HTTP. [`drive`] runs it.

use crate::error::input;
use jiff::civil::Date;
use serde::{Deserialize, Serialize};
use std::collections::{BTreeMap, BTreeSet};

/// A search that is to be collected as a whole.
#[derive(Clone, Debug, PartialEq)]
pub struct Search {
    /// The query as the service gets it.
    pub query: String,
    /// Whether the service expands words by synonyms: the same query finds more with it.
    pub synonyms: bool,
    /// The day that the search stands for.
    pub date: Date,
    /// Hits a page, always asked for: services have small defaults.
    pub page_size: u32,
    /// The cursor of the first page, for example `*`, or `0` where cursors are offsets.
    pub first_cursor: String,
    /// The part of the announced total by which the number of hits may differ, for example 0.01; 0 for none.
    pub tolerance: f64,
    /// A search of more hits than this is an error.
    pub max_hits: u64,
}

/// What to ask the service for.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct PageRequest {
    pub query: String,
    pub synonyms: bool,
    pub cursor: String,
    pub page_size: u32,
}

/// What the service answered.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Page<T> {
    pub hits: Vec<T>,
    /// Where the next page begins, if the service names it.
    pub next: Option<String>,
    /// How many hits the service says there are.
    pub total: Option<u64>,
}

/// The cursor of the next page for a service that counts hits from `start`: `None` after the last one.
pub fn next_offset(start: u64, hits: u64, total: u64) -> Option<String> {
    let next = start.saturating_add(hits);
    (next < total).then(|| next.to_string())
}

/// How a search was made: the same query, setting and day belong to the same records.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct SearchProvenance {
    pub query: String,
    pub synonyms: bool,
    /// `YYYY-MM-DD`.
    pub date: String,
    pub page_size: u32,
    pub pages: u64,
    /// The total that the service announced last.
    pub announced: Option<u64>,
    pub collected: u64,
}

/// The state of a search between two pages.
pub struct Pager {
    search: Search,
    /// The cursor to ask for; `None` when the search has ended.
    cursor: Option<String>,
    asked: BTreeSet<String>,
    pages: u64,
    announced: Option<u64>,
    collected: u64,
}

impl Pager {
    /// # Errors
    /// A page size of 0.
    pub fn new(search: Search) -> anyhow::Result<Self> {
        if search.page_size == 0 {
            return Err(crate::error::usage("a search needs a page size of at least 1"));
        }
        let cursor = Some(search.first_cursor.clone());
        Ok(Self { search, cursor, asked: BTreeSet::new(), pages: 0, announced: None, collected: 0 })
    }

    /// The page to ask for next, or `None` at the end.
    pub fn request(&self) -> Option<PageRequest> {
        let cursor = self.cursor.clone()?;
        let Search { query, synonyms, page_size, .. } = &self.search;
        Some(PageRequest { query: query.clone(), synonyms: *synonyms, cursor, page_size: *page_size })
    }

    /// Takes the page that was asked for. The search ends when a page is empty, names no cursor, or names one that was
    /// asked for before.
    ///
    /// # Errors
    /// More hits than announced or allowed: such a search might never end.
    pub fn accept<T>(&mut self, page: &Page<T>) -> anyhow::Result<()> {
        self.pages += 1;
        self.collected += page.hits.len() as u64;
        self.announced = page.total.or(self.announced);
        self.asked.extend(self.cursor.take());
        if let Some(most) = self.most()
            && self.collected > most
        {
            return Err(self.wrong_number());
        }
        if self.collected.max(self.announced.unwrap_or(0)) > self.search.max_hits {
            let n = self.collected.max(self.announced.unwrap_or(0));
            let message = format!("the search has {n} hits or more, {} are allowed", self.search.max_hits);
            return Err(input(message));
        }
        if !page.hits.is_empty() {
            self.cursor = page.next.clone().filter(|next| !next.is_empty() && !self.asked.contains(next));
        }
        Ok(())
    }

    /// Ends a search whose pages were all taken.
    ///
    /// # Errors
    /// The number of hits is not the announced one.
    pub fn finish(self) -> anyhow::Result<SearchProvenance> {
        if let Some(announced) = self.announced
            && self.collected.saturating_add(self.tolerated(announced)) < announced
        {
            return Err(self.wrong_number());
        }
        Ok(SearchProvenance {
            query: self.search.query,
            synonyms: self.search.synonyms,
            date: self.search.date.to_string(),
            page_size: self.search.page_size,
            pages: self.pages,
            announced: self.announced,
            collected: self.collected,
        })
    }

    fn tolerated(&self, announced: u64) -> u64 {
        // A cast of a number out of range takes the nearest one, and of NaN 0.
        (announced as f64 * self.search.tolerance) as u64
    }

    fn most(&self) -> Option<u64> {
        self.announced.map(|announced| announced.saturating_add(self.tolerated(announced)))
    }

    fn wrong_number(&self) -> anyhow::Error {
        let announced = self.announced.unwrap_or(0);
        let (collected, pages) = (self.collected, self.pages);
        input(format!("the search gave {collected} hits in {pages} pages, but announced {announced}"))
    }
}

/// Collects the hits of all pages, in their order.
///
/// # Errors
/// Those of `fetch`, [`Pager::accept`] and [`Pager::finish`].
pub async fn drive<T>(
    search: Search,
    mut fetch: impl AsyncFnMut(PageRequest) -> anyhow::Result<Page<T>>,
) -> anyhow::Result<(Vec<T>, SearchProvenance)> {
    let mut pager = Pager::new(search)?;
    let mut hits = Vec::new();
    while let Some(request) = pager.request() {
        let page = fetch(request).await?;
        pager.accept(&page)?;
        hits.extend(page.hits);
    }
    Ok((hits, pager.finish()?))
}

/// What names an article in a search. Europe PMC's `id` is the PMID in the source `MED` and the PMCID in `PMC`.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Hit {
    pub source: String,
    pub id: Option<String>,
    pub pmid: Option<String>,
    pub pmcid: Option<String>,
    pub doi: Option<String>,
}

/// One article and the hits that stand for it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Article {
    /// `PMC` and digits.
    pub pmcid: Option<String>,
    /// Digits.
    pub pmid: Option<String>,
    /// Without a resolver before it, in lower case.
    pub doi: Option<String>,
    /// Places of its hits in the list, ascending.
    pub hits: Vec<usize>,
}

/// Articles in the order of their first hits, and how many were collapsed by what.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Merged {
    pub articles: Vec<Article>,
    pub before: usize,
    pub after: usize,
    pub by_pmcid: usize,
    pub by_pmid: usize,
    pub by_doi: usize,
    /// Pairs with the same PMID or DOI that stay apart, since a stronger identifier differs.
    pub conflicts: usize,
}

/// Collapses hits of the same article: those with the same PMCID, of these those with the same PMID, of these those with
/// the same normalised DOI. What the hits of an article know adds up, so one hit can join two others.
pub fn merge_hits(hits: &[Hit]) -> Merged {
    let mut articles: Vec<Article> = hits.iter().enumerate().map(|(place, hit)| article(place, hit)).collect();
    let mut conflicts = 0;
    let before = articles.len();
    let mut collapse = |key: fn(&Article) -> Option<&String>| {
        let n = articles.len();
        let mut first: BTreeMap<String, Vec<usize>> = BTreeMap::new();
        let mut kept: Vec<Article> = Vec::with_capacity(n);
        for article in std::mem::take(&mut articles) {
            let Some(name) = key(&article).cloned() else {
                kept.push(article);
                continue;
            };
            // Several only where stronger identifiers keep them apart.
            let same = first.entry(name).or_default();
            let joined =
                same.iter().copied().find(|place| kept.get(*place).is_some_and(|other| agree(other, &article)));
            match joined.and_then(|place| kept.get_mut(place)) {
                Some(other) => join(other, article),
                None => {
                    conflicts += same.len();
                    same.push(kept.len());
                    kept.push(article);
                }
            }
        }
        articles = kept;
        n - articles.len()
    };
    let by_pmcid = collapse(|article| article.pmcid.as_ref());
    let by_pmid = collapse(|article| article.pmid.as_ref());
    let by_doi = collapse(|article| article.doi.as_ref());
    for article in &mut articles {
        article.hits.sort_unstable();
    }
    articles.sort_by_key(|article| article.hits.first().copied());
    Merged { before, after: articles.len(), articles, by_pmcid, by_pmid, by_doi, conflicts }
}

fn article(place: usize, hit: &Hit) -> Article {
    let id_in = |source: &str| hit.id.as_deref().filter(|_| hit.source.eq_ignore_ascii_case(source));
    Article {
        pmcid: hit.pmcid.as_deref().and_then(normal_pmcid).or_else(|| id_in("PMC").and_then(normal_pmcid)),
        pmid: hit.pmid.as_deref().and_then(normal_number).or_else(|| id_in("MED").and_then(normal_number)),
        doi: hit.doi.as_deref().and_then(normal_doi),
        hits: vec![place],
    }
}

/// Whether no PMCID and no PMID tells two articles apart that share another identifier.
fn agree(a: &Article, b: &Article) -> bool {
    let same = |a: &Option<String>, b: &Option<String>| a.is_none() || b.is_none() || a == b;
    if a.pmcid.is_some() && a.pmcid == b.pmcid {
        return true;
    }
    if a.pmid.is_some() && a.pmid == b.pmid {
        return same(&a.pmcid, &b.pmcid);
    }
    same(&a.pmcid, &b.pmcid) && same(&a.pmid, &b.pmid)
}

fn join(into: &mut Article, from: Article) {
    into.pmcid = into.pmcid.take().or(from.pmcid);
    into.pmid = into.pmid.take().or(from.pmid);
    into.doi = into.doi.take().or(from.doi);
    into.hits.extend(from.hits);
}

/// `PMC` and digits; a version behind a point is cut off.
fn normal_pmcid(text: &str) -> Option<String> {
    let text = text.trim().to_ascii_uppercase();
    let digits = text.strip_prefix("PMC").unwrap_or(&text);
    let digits = digits.split('.').next().unwrap_or(digits);
    normal_number(digits).map(|number| format!("PMC{number}"))
}

fn normal_number(text: &str) -> Option<String> {
    let digits = text.trim().trim_start_matches('0');
    (!digits.is_empty() && digits.bytes().all(|byte| byte.is_ascii_digit())).then(|| digits.to_owned())
}

/// A DOI in lower case, without `doi:` or the address of a resolver; `None` when it is none.
pub fn normal_doi(text: &str) -> Option<String> {
    let text = text.trim().to_lowercase();
    let without_scheme = text.strip_prefix("https://").or_else(|| text.strip_prefix("http://"));
    let doi = match without_scheme {
        Some(address) => {
            let path = address.split_once('/')?.1;
            // In an address some characters of a DOI are escaped.
            decode_percent(path.split(['?', '#']).next().unwrap_or(path))
        }
        None => text.strip_prefix("doi:").unwrap_or(&text).trim_start().to_owned(),
    };
    (doi.starts_with("10.") && doi.contains('/')).then_some(doi)
}

/// `%2f` to `/` and so on; what is not an escape stays.
fn decode_percent(text: &str) -> String {
    let mut bytes = Vec::with_capacity(text.len());
    let mut rest = text;
    while let Some((before, after)) = rest.split_once('%') {
        bytes.extend_from_slice(before.as_bytes());
        let escaped = after.get(..2).filter(|digits| digits.bytes().all(|digit| digit.is_ascii_hexdigit()));
        match escaped.and_then(|digits| u8::from_str_radix(digits, 16).ok()) {
            Some(byte) => {
                bytes.push(byte.to_ascii_lowercase());
                rest = after.get(2..).unwrap_or_default();
            }
            None => {
                bytes.push(b'%');
                rest = after;
            }
        }
    }
    bytes.extend_from_slice(rest.as_bytes());
    String::from_utf8_lossy(&bytes).into_owned()
}
