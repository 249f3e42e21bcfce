//! Articles in JATS, the format of PubMed Central (ANSI/NISO Z39.96-2024; Archiving, Publishing and Authoring sets).
//!
//! One pass of the XML reader makes a flat [`tree`] that borrows from the file; the parts of the article are read from
//! it: `front`, `permissions` and `editorial` read metadata, `body` the paragraphs in document order, `floats` and `tables`
//! what stands beside them, `references` the works cited, `text` with `formula` and `scripts` the words of mixed content.
//! Nothing is fetched, and sizes, depth and entities have limits.

mod body;
mod editorial;
mod entities;
pub(in crate::source) mod error;
mod floats;
mod formula;
mod front;
pub(in crate::source) mod permissions;
mod references;
pub(in crate::source) mod scripts;
pub(in crate::source) mod tables;
mod tags;
#[cfg(test)]
mod tests;
mod text;
mod tree;

pub use crate::record::article::*;
pub use error::{JatsError, JatsFault};

use std::cell::OnceCell;
use tags::Tag;
use tree::{Element, Tree};

/// Bounds of what is read.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Limits {
    /// Of a file; at most 4 GB, since offsets have 32 bits.
    pub max_bytes: usize,
    /// Of elements in elements.
    pub max_depth: usize,
    /// What entities of the file may add to its own size.
    pub max_entity_bytes: usize,
    /// Cells of one table, spans included. Beyond it spans are taken as 1.
    pub max_table_cells: usize,
}

impl Default for Limits {
    fn default() -> Self {
        Self { max_bytes: 64 << 20, max_depth: 128, max_entity_bytes: 1 << 20, max_table_cells: 1 << 20 }
    }
}

/// Reads a file that holds one article, alone or in an envelope such as an OAI-PMH record.
pub fn read(bytes: &[u8], limits: Limits) -> Result<Article, JatsError> {
    let mut articles = read_all(bytes, limits)?;
    match (articles.pop(), articles.is_empty()) {
        (Some(article), true) => Ok(article),
        (Some(article), false) => {
            let detail = format!("there are {} articles; one is expected", articles.len() + 1);
            Err(JatsError::at(JatsFault::SeveralArticles, bytes, article.byte_start as usize, detail))
        }
        (None, _) => Err(JatsError::at(JatsFault::NotArticle, bytes, 0, "there is no article")),
    }
}

/// Reads all articles of a file, at least one.
pub fn read_all(bytes: &[u8], limits: Limits) -> Result<Vec<Article>, JatsError> {
    read_each(bytes, limits, read_article)
}

/// Reads what comes before the text of all articles of a file: enough to know which they are.
pub fn identify_all(bytes: &[u8], limits: Limits) -> Result<Vec<Article>, JatsError> {
    read_each(bytes, limits, |source, element, _, _| {
        let bytes = element.bytes();
        let mut article = Article { byte_start: bytes.start, byte_end: bytes.end, ..Article::default() };
        front::read(source, element, &mut Budget::new(bytes.len()), &mut article);
        Ok(article)
    })
}

fn read_each(
    bytes: &[u8],
    limits: Limits,
    read_article: impl Fn(&str, Element<'_, '_>, Limits, &Tree<'_>) -> Result<Article, JatsError>,
) -> Result<Vec<Article>, JatsError> {
    let max_bytes = limits.max_bytes.min(u32::MAX as usize - 1);
    if bytes.len() > max_bytes {
        let detail = format!("the file has {} bytes, more than the {max_bytes} allowed", bytes.len());
        return Err(JatsError::at(JatsFault::TooLarge, bytes, 0, detail));
    }
    let source = std::str::from_utf8(bytes).map_err(|error| {
        let detail = if bytes.starts_with(&[0xff, 0xfe]) || bytes.starts_with(&[0xfe, 0xff]) {
            "the file is UTF-16; UTF-8 is expected"
        } else {
            "this byte is not UTF-8"
        };
        JatsError::at(JatsFault::Encoding, bytes, error.valid_up_to(), detail)
    })?;
    let entities = OnceCell::new();
    let tree = Tree::read(source, &entities, limits)?;
    let Some(root) = tree.root() else {
        return Err(JatsError::at(JatsFault::NotXml, bytes, 0, "there is no element"));
    };
    let mut articles = Vec::new();
    if root.tag() == Tag::Article {
        articles.push(read_article(source, root, limits, &tree)?);
    } else if root.tag() != Tag::Html {
        let mut end = 0;
        for element in root.descendants() {
            let bytes = element.bytes();
            if element.tag() == Tag::Article && bytes.start >= end {
                end = bytes.end;
                articles.push(read_article(source, element, limits, &tree)?);
            }
        }
    }
    if articles.is_empty() {
        let place = root.bytes().start as usize;
        return Err(JatsError::at(JatsFault::NotArticle, bytes, place, "the XML holds no element `article`"));
    }
    Ok(articles)
}

fn read_article(source: &str, element: Element<'_, '_>, limits: Limits, tree: &Tree<'_>) -> Result<Article, JatsError> {
    let bytes = element.bytes();
    let mut article = Article {
        article_type: element.attribute("article-type"),
        language: element.attribute("lang"),
        byte_start: bytes.start,
        byte_end: bytes.end,
        ..Article::default()
    };
    let is_within = |warning: &&Warning| bytes.contains(&warning.byte) || warning.kind == WarningKind::SubsetIgnored;
    article.warnings = tree.warnings.iter().filter(is_within).cloned().collect();
    let mut budget = Budget::new(bytes.len());
    front::read(source, element, &mut budget, &mut article);
    editorial::read(element, &mut article);
    body::read(source, element, limits, &mut budget, &mut article);
    if budget.is_spent {
        let detail = "titles, captions or labels that are told with each record below them grow beyond any article";
        return Err(JatsError::at(JatsFault::TooLarge, source.as_bytes(), bytes.start as usize, detail));
    }
    Ok(article)
}

/// What may be copied from one place into many records: a title into each paragraph below it, a caption into each figure
/// of its group. A real article stays far below; without a bound, a small file could ask for any amount of memory.
#[derive(Debug)]
struct Budget {
    left: usize,
    is_spent: bool,
}

impl Budget {
    fn new(bytes: usize) -> Self {
        Self { left: bytes.saturating_mul(16).saturating_add(1 << 24), is_spent: false }
    }

    /// Is there room for so many bytes?
    fn take(&mut self, bytes: usize) -> bool {
        match self.left.checked_sub(bytes) {
            Some(left) => self.left = left,
            None => self.is_spent = true,
        }
        !self.is_spent
    }

    /// A copy of a section path.
    fn path(&mut self, path: &[String]) -> Vec<String> {
        let bytes = path.iter().map(|title| title.len() + size_of::<String>()).sum();
        if self.take(bytes) { path.to_vec() } else { Vec::new() }
    }
}
