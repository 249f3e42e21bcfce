//! The files of the source: which are pages, which are lists, and what each row of a list is about.

use super::list::{ListedArticle, normalise_id, read_list};
use super::page::{self, Page, PageError};
use super::{PageLimits, PageRules};
use crate::record::raw::{RawFile, RawSource};
use crate::store::raw;
use std::collections::{BTreeMap, BTreeSet};
use std::io::Read;

/// Pages and lists of a source, by path.
pub struct Folder<'a> {
    pages: Vec<PageFile<'a>>,
    lists: Vec<&'a RawFile>,
    /// What the first row about each article says.
    listed: BTreeMap<String, Listed>,
    /// Rows that become no article, by list, in the order of the list.
    exits: BTreeMap<&'a str, Vec<ListExit>>,
}

/// A file that should be a page.
pub struct PageFile<'a> {
    pub file: &'a RawFile,
    /// By its name or, where the name is none, by its DOI.
    pub ajcr_id: Option<String>,
    /// From 1: which of the files about its article it is, by path.
    pub occurrence: u32,
}

/// What a list says of an article, and where.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Listed {
    pub list: String,
    pub article: ListedArticle,
}

/// A row of a list that becomes no article.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ListExit {
    /// `page_missing`, `listed_twice` or `invalid_doi`.
    pub reason: &'static str,
    pub detail: String,
    pub row: ListedArticle,
}

pub const PAGE_MISSING: &str = "page_missing";
pub const LISTED_TWICE: &str = "listed_twice";
pub const INVALID_DOI: &str = "invalid_doi";

fn name_of(path: &str) -> String {
    let name = path.rsplit('/').next().unwrap_or_default().to_ascii_lowercase();
    name.strip_suffix(".gz").unwrap_or(&name).to_owned()
}

fn is_page(path: &str) -> bool {
    let name = name_of(path);
    name.ends_with(".html") || name.ends_with(".htm")
}

fn is_list(path: &str) -> bool {
    let name = name_of(path);
    name.ends_with(".csv") || name.ends_with(".xlsx")
}

/// The bytes of a file, one more than allowed at most.
///
/// # Errors
/// A file that cannot be read.
pub fn bytes_of(file: &RawFile, max_bytes: usize) -> anyhow::Result<Vec<u8>> {
    let mut bytes = Vec::new();
    raw::open(file, 0)?.take(max_bytes as u64 + 1).read_to_end(&mut bytes)?;
    Ok(bytes)
}

impl<'a> Folder<'a> {
    /// Reads the lists and finds out what each page is about: by its name, and by its DOI only where the name says nothing.
    ///
    /// # Errors
    /// A file that cannot be read, or a list that is none.
    pub fn read(source: &'a RawSource, rules: &PageRules, limits: PageLimits) -> anyhow::Result<Self> {
        let mut files: Vec<&RawFile> = source.files.iter().collect();
        files.sort_by(|one, other| one.path.cmp(&other.path));
        let mut seen: BTreeMap<String, u32> = BTreeMap::new();
        let mut pages = Vec::new();
        for file in files.iter().copied().filter(|file| is_page(&file.path)) {
            let mut ajcr_id = name_of(&file.path).rsplit_once('.').and_then(|(stem, _)| normalise_id(stem));
            if ajcr_id.is_none() {
                let page = page::read(&bytes_of(file, limits.max_bytes)?, rules, limits);
                ajcr_id = page.ok().map(|page| page.ajcr_id);
            }
            let occurrence = ajcr_id.as_ref().map_or(1, |id| {
                let count = seen.entry(id.clone()).or_default();
                *count += 1;
                *count
            });
            pages.push(PageFile { file, ajcr_id, occurrence });
        }
        let lists: Vec<&RawFile> = files.into_iter().filter(|file| is_list(&file.path)).collect();
        let mut folder = Self { pages, lists, listed: BTreeMap::new(), exits: BTreeMap::new() };
        let with_page: BTreeSet<String> = seen.into_keys().collect();
        folder.join(&with_page)?;
        Ok(folder)
    }

    fn join(&mut self, with_page: &BTreeSet<String>) -> anyhow::Result<()> {
        for list in &self.lists {
            let limit = usize::try_from(super::list::MAX_LIST_BYTES).unwrap_or(usize::MAX);
            let mut exits = Vec::new();
            for row in read_list(&list.path, &bytes_of(list, limit)?)? {
                let exit = |reason: &'static str, detail: String| ListExit { reason, detail, row: row.clone() };
                if row.ajcr_id.is_empty() {
                    exits.push(exit(INVALID_DOI, format!("`{}` is no DOI of the journal", row.doi)));
                } else if let Some(first) = self.listed.get(&row.ajcr_id) {
                    let (id, file, line) = (&row.ajcr_id, &first.list, first.article.line);
                    exits.push(exit(LISTED_TWICE, format!("{id} is listed before, in {file}, line {line}")));
                } else {
                    if !with_page.contains(&row.ajcr_id) {
                        exits.push(exit(PAGE_MISSING, format!("there is no page of {}", row.ajcr_id)));
                    }
                    self.listed.insert(row.ajcr_id.clone(), Listed { list: list.path.clone(), article: row });
                }
            }
            self.exits.insert(list.path.as_str(), exits);
        }
        Ok(())
    }

    /// Files that should be pages, by path.
    pub fn pages(&self) -> &[PageFile<'a>] {
        &self.pages
    }

    /// Lists, by path, each with the rows of it that become no article.
    pub fn lists(&self) -> impl Iterator<Item = (&'a RawFile, &[ListExit])> + '_ {
        self.lists.iter().map(|list| (*list, self.exits.get(list.path.as_str()).map_or(&[][..], Vec::as_slice)))
    }

    /// What the lists say of an article.
    pub fn listed(&self, ajcr_id: &str) -> Option<&Listed> {
        self.listed.get(ajcr_id)
    }
}

/// What became of a file that should be a page.
#[derive(Debug)]
pub enum Outcome {
    Read(Box<Page>),
    /// Another file about the article comes before.
    Duplicate,
    Fault(PageError),
    /// The page is about another article than its name says.
    IdMismatch(String),
}

/// Reads a file that should be a page.
///
/// # Errors
/// A file that cannot be read.
pub fn read_page(file: &PageFile<'_>, rules: &PageRules, limits: PageLimits) -> anyhow::Result<Outcome> {
    if file.occurrence > 1 {
        return Ok(Outcome::Duplicate);
    }
    Ok(match page::read(&bytes_of(file.file, limits.max_bytes)?, rules, limits) {
        Ok(page) => match &file.ajcr_id {
            Some(id) if *id != page.ajcr_id => {
                Outcome::IdMismatch(format!("the file is named for {id}, its page is of {}", page.ajcr_id))
            }
            _ => Outcome::Read(Box::new(page)),
        },
        Err(error) => Outcome::Fault(error),
    })
}
