//! A page of an article as the record that articles of other formats give, too (MTDiag paper, section B.3).
//!
//! Metadata come from meta tags and from the page. The abstract comes in Background, Case Report and Conclusions: by the
//! elements of its parts, else by the words that begin them, else from the tag `description`.

use super::body;
use super::list::{doi_of, normalise_id};
use super::offsets::{MARK_END, MARK_START, Marked, PageLimits, mark};
use super::selectors::{PageRules, Part};
use super::text::{Words, part_of};
use super::tree::{Tag, Tree};
use crate::record::article::{
    Abstract, AbstractParagraph, AbstractState, Article, ArticleDate, BodyState, Contributor, EditorialState, Keyword,
    Passage, StatedId, WarningKind,
};
use crate::source::jats::error::warn;
use crate::source::jats::permissions::conclude;
use scraper::Html;
use std::collections::BTreeMap;

/// Flag of an article whose abstract is that of the tag `description`.
pub const ABSTRACT_FROM_DESCRIPTION: &str = "abstract_from_description";
/// Flag of an article whose abstract is not divided into parts.
pub const ABSTRACT_UNDIVIDED: &str = "abstract_undivided";
/// Begins the flag of an article whose page is not in UTF-8, such as `encoding_windows_1252`: its offsets are of the decoded
/// text.
pub const ENCODING: &str = "encoding_";
/// Flag of an article whose page names an encoding that its bytes are not in.
pub const ENCODING_GUESSED: &str = "encoding_guessed";

/// What a page gives.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Page {
    pub article: Article,
    /// `AJCR937787`
    pub ajcr_id: String,
    /// Sorted.
    pub flags: Vec<String>,
}

/// What is wrong with a file that gives no article.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum PageFault {
    /// Nothing, data, or XML of another kind.
    NotHtml,
    IsPdf,
    /// Beyond [`PageLimits`].
    TooLarge,
    /// A page for robots, or to log in.
    BotPage,
    /// Required parts are missing: not the page that the rules describe.
    PageShape,
    /// A DOI of another journal.
    InvalidDoi,
}

impl PageFault {
    pub fn as_str(self) -> &'static str {
        match self {
            Self::NotHtml => "not_html",
            Self::IsPdf => "is_pdf",
            Self::TooLarge => "too_large",
            Self::BotPage => "bot_page",
            Self::PageShape => "page_shape",
            Self::InvalidDoi => "invalid_doi",
        }
    }
}

/// A file that gives no article.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("{detail}")]
pub struct PageError {
    pub fault: PageFault,
    /// In plain words.
    pub detail: String,
}

fn fault(fault: PageFault, detail: impl Into<String>) -> PageError {
    PageError { fault, detail: detail.into() }
}

/// Reads a page. Offsets are of its text in UTF-8, which is the file itself unless that has another encoding.
///
/// # Errors
/// A file that is not the page of an article of the journal.
pub fn read(bytes: &[u8], rules: &PageRules, limits: PageLimits) -> Result<Page, PageError> {
    let max_bytes = limits.max_bytes.min(u32::MAX as usize / 4);
    if bytes.len() > max_bytes {
        return Err(fault(PageFault::TooLarge, format!("the file has more than the {max_bytes} bytes allowed")));
    }
    let start = bytes.iter().position(|byte| !byte.is_ascii_whitespace()).unwrap_or(bytes.len());
    let content = bytes.get(start..).unwrap_or_default();
    if content.is_empty() {
        return Err(fault(PageFault::NotHtml, "the file is empty"));
    }
    if content.starts_with(b"%PDF-") {
        return Err(fault(PageFault::IsPdf, "the file is a PDF"));
    }
    let decoded = super::decode::decode(bytes);
    let source: &str = &decoded.text;
    refuse_data(source)?;
    let marked = mark(source, limits).map_err(|detail| fault(PageFault::TooLarge, detail))?;
    let html = Html::parse_document(&marked.html);
    let tree = Tree::read(&html, source, &marked, rules, limits.max_depth)
        .map_err(|detail| fault(PageFault::TooLarge, detail))?;
    let mut page = read_tree(source, &marked, &tree, rules, limits)?;
    if !decoded.is_verbatim {
        page.flags.push(format!("{ENCODING}{}", decoded.encoding.replace('-', "_")));
    }
    if decoded.is_guessed {
        page.flags.push(ENCODING_GUESSED.to_owned());
    }
    page.flags.sort_unstable();
    page.flags.dedup();
    Ok(page)
}

/// Refuses what is no HTML by its first characters.
fn refuse_data(source: &str) -> Result<(), PageError> {
    let head: String = source.trim_start_matches('\u{feff}').trim_start().chars().take(2048).collect();
    let head = head.to_ascii_lowercase();
    if head.is_empty() {
        return Err(fault(PageFault::NotHtml, "the file is empty"));
    }
    if head.chars().filter(|c| c.is_control() && !c.is_whitespace()).count() > 8 {
        return Err(fault(PageFault::NotHtml, "the file is data, not text"));
    }
    let is_html = head.contains("<!doctype html") || head.contains("<html");
    if head.starts_with("<?xml") && !is_html {
        let root = head.split('<').find(|part| part.starts_with(|c: char| c.is_alphabetic())).unwrap_or_default();
        let root: String =
            root.chars().take_while(|c| !c.is_whitespace() && !matches!(c, '>' | '/')).take(40).collect();
        return Err(fault(PageFault::NotHtml, format!("the file is XML, with the root element `{root}`")));
    }
    if !source.contains('<') {
        return Err(fault(PageFault::NotHtml, "the file holds no element"));
    }
    Ok(())
}

/// A text without marks, with single spaces.
pub fn unmarked(text: &str) -> String {
    let mut plain = String::with_capacity(text.len());
    for part in text.split(MARK_START) {
        plain.push_str(part.split_once(MARK_END).map_or(part, |(_, words)| words));
    }
    plain.split_whitespace().collect::<Vec<_>>().join(" ")
}

/// Contents of meta tags by name in lower case, in the order of the page, with marks.
struct Meta<'a>(BTreeMap<String, Vec<&'a str>>);

impl<'a> Meta<'a> {
    fn read(tree: &Tree<'a>) -> Self {
        let mut found: BTreeMap<String, Vec<&'a str>> = BTreeMap::new();
        for element in (0..tree.len()).filter_map(|index| tree.element(index)).filter(|one| one.tag == Tag::Meta) {
            let name = element.attribute("name").or_else(|| element.attribute("property"));
            if let (Some(name), Some(content)) = (name, element.attribute("content")) {
                found.entry(name.trim().to_lowercase()).or_default().push(content);
            }
        }
        Self(found)
    }

    /// What the first of the names that is there says, each time; nothing empty.
    fn all(&self, names: &[String]) -> Vec<String> {
        for name in names {
            let found = self.0.get(name).into_iter().flatten().map(|content| unmarked(content));
            let found: Vec<String> = found.filter(|content| !content.is_empty()).collect();
            if !found.is_empty() {
                return found;
            }
        }
        Vec::new()
    }

    fn one(&self, names: &[String]) -> Option<String> {
        self.all(names).into_iter().next()
    }

    /// As [`Self::one`], with marks.
    fn marked(&self, names: &[String]) -> Option<&'a str> {
        let of_name = |name: &String| self.0.get(name)?.iter().find(|content| !unmarked(content).is_empty()).copied();
        names.iter().find_map(of_name)
    }
}

fn read_tree(
    source: &str,
    marked: &Marked,
    tree: &Tree<'_>,
    rules: &PageRules,
    limits: PageLimits,
) -> Result<Page, PageError> {
    let words = Words { tree, source, runs: &marked.runs, rules };
    let meta = Meta::read(tree);
    let mut article = Article {
        byte_end: u32::try_from(source.len()).unwrap_or(u32::MAX),
        language: (0..tree.len())
            .filter_map(|index| tree.element(index))
            .find(|element| element.tag == Tag::Html)
            .and_then(|element| element.attribute("lang"))
            .map(str::to_owned),
        ..Article::default()
    };
    let mut flags = Vec::new();
    let some = |text: String| Some(text).filter(|text| !text.is_empty());
    let on_page = |part: Part| tree.first(part).map(|index| words.plain(index)).and_then(some);
    article.title = on_page(Part::Title).or_else(|| meta.one(&rules.meta.title));
    read_ids(words, &meta, &mut article);
    read_people(words, &meta, &mut article);
    read_journal(words, &meta, &mut article);
    read_keywords(words, &meta, &mut article);
    read_permissions(words, &mut article);
    if let Some(kind) = on_page(Part::ArticleType) {
        article.article_type = Some(kind.to_lowercase().replace(' ', "-"));
        article.subjects.push(kind);
    }
    read_editorial(rules, &mut article);
    read_abstract(words, &meta, &mut article, &mut flags);
    let has_body = body::read(words, limits, &mut article, &mut flags);

    let missing = missing_parts(rules, tree, &article, has_body);
    let page_title = (0..tree.len())
        .find(|index| tree.element(*index).is_some_and(|element| element.tag == Tag::Title))
        .map(|index| words.plain(index))
        .unwrap_or_default();
    let bots = &rules.patterns.bot_page;
    let told_by = |text: &str| bots.iter().find_map(|bot| bot.find(text)).map(|found| found.as_str().to_owned());
    let own_title = page_title.split(" | ").next().unwrap_or_default();
    if !missing.is_empty() {
        let told = told_by(&page_title).or_else(|| told_by(&visible(words)));
        if let Some(told) = told {
            let detail = format!("the page says `{told}`, and is no article: title `{own_title}`");
            return Err(fault(PageFault::BotPage, detail));
        }
        return Err(fault(PageFault::PageShape, missing));
    }
    let stated = article.ids.doi.clone().unwrap_or_default();
    let Some(ajcr_id) = normalise_id(&stated) else {
        let detail = format!("the DOI of the page, `{stated}`, is not one of the journal");
        return Err(fault(PageFault::InvalidDoi, detail));
    };
    article.ids.doi = doi_of(&ajcr_id);
    article.ids.stated.push(StatedId { id_type: "publisher-id".to_owned(), value: ajcr_id.clone() });
    article.body = BodyState::Full;
    Ok(Page { article, ajcr_id, flags })
}

/// The first visible words of a page.
fn visible(words: Words<'_, '_>) -> String {
    const MAX_WORDS: usize = 20_000;
    let body =
        (0..words.tree.len()).find(|index| words.tree.element(*index).is_some_and(|element| element.tag == Tag::Block));
    let text = body.map(|body| words.plain(body)).unwrap_or_default();
    text.chars().take(MAX_WORDS).collect()
}

/// What a page must have and has not, and the other selectors that found nothing; empty if all required parts are there.
fn missing_parts(rules: &PageRules, tree: &Tree<'_>, article: &Article, has_body: bool) -> String {
    let mut missing = Vec::new();
    let meta = |names: &[String]| format!("meta {}", names.join("/"));
    if article.title.is_none() {
        missing.push(format!("{} or {}", rules.shown(Part::Title), meta(&rules.meta.title)));
    }
    if article.ids.doi.is_none() {
        missing.push(format!("{} or {}", rules.shown(Part::Doi), meta(&rules.meta.doi)));
    }
    if !has_body {
        missing.push(rules.shown(Part::Body));
    } else {
        if article.sections.iter().all(|section| section.title.is_none()) {
            missing.push(format!("a heading in {}", rules.shown(Part::Body)));
        }
        if article.paragraphs.is_empty() {
            missing.push(format!("a paragraph in {}", rules.shown(Part::Body)));
        }
    }
    if missing.is_empty() {
        return String::new();
    }
    let others = [
        Part::Authors,
        Part::ArticleType,
        Part::ArticleDate,
        Part::Citation,
        Part::License,
        Part::Keywords,
        Part::Abstract,
        Part::Background,
        Part::CaseReport,
        Part::Conclusions,
        Part::References,
        Part::Figure,
        Part::Table,
        Part::Caption,
    ];
    let nothing: Vec<String> =
        others.into_iter().filter(|part| tree.first(*part).is_none()).map(|part| rules.shown(part)).collect();
    let mut detail = format!("not found: {}", missing.join("; "));
    if !nothing.is_empty() {
        detail += &format!(". Also nothing for: {}", nothing.join("; "));
    }
    detail
}

fn read_ids(words: Words<'_, '_>, meta: &Meta<'_>, article: &mut Article) {
    let (tree, rules) = (words.tree, words.rules);
    let mut stated: Vec<(String, u32)> = meta.all(&rules.meta.doi).into_iter().map(|doi| (doi, 0)).collect();
    for index in tree.all(Part::Doi) {
        let Some(element) = tree.element(index) else { continue };
        stated.extend(element.attribute("href").map(|href| (href.to_owned(), element.start)));
        stated.push((words.plain(index), element.start));
    }
    let ids = &mut article.ids;
    for (text, byte) in stated {
        let Some(found) = rules.patterns.doi.find(&text) else { continue };
        let doi = found.as_str().to_owned();
        match &ids.doi {
            None => {
                ids.stated.push(StatedId { id_type: "doi".to_owned(), value: doi.clone() });
                ids.doi = Some(doi);
            }
            Some(known) if !known.eq_ignore_ascii_case(&doi) => {
                let detail = format!("the DOI is `{known}` and `{doi}`; the first counts");
                warn(&mut article.warnings, words.source, WarningKind::IdConflict, byte as usize, detail);
            }
            Some(_) => {}
        }
    }
    let pmid = meta.one(&rules.meta.pmid).filter(|pmid| !pmid.is_empty() && pmid.bytes().all(|b| b.is_ascii_digit()));
    if let Some(pmid) = pmid {
        ids.stated.push(StatedId { id_type: "pmid".to_owned(), value: pmid.clone() });
        ids.pmid = Some(pmid);
    }
}

fn read_people(words: Words<'_, '_>, meta: &Meta<'_>, article: &mut Article) {
    let mut names = meta.all(&words.rules.meta.author);
    if names.is_empty()
        && let Some(index) = words.tree.first(Part::Authors)
    {
        let line = words.plain_without_marks(index);
        let line = line.replace(" and ", ", ").replace(" & ", ", ");
        let name = |name: &str| name.trim_matches(|c: char| !c.is_alphabetic() && c != '.').to_owned();
        names = line.split([',', ';']).map(name).filter(|name| !name.is_empty()).collect();
    }
    article.contributors.extend(names.into_iter().map(|name| {
        let author = Contributor { contrib_type: Some("author".to_owned()), ..Contributor::default() };
        match name.split_once(',') {
            Some((surname, given)) => Contributor {
                surname: Some(surname.trim().to_owned()),
                given_names: Some(given.trim().to_owned()),
                ..author
            },
            // Which of the words is the family name is not said.
            None => Contributor { collab: Some(name), ..author },
        }
    }));
}

fn read_journal(words: Words<'_, '_>, meta: &Meta<'_>, article: &mut Article) {
    let (tree, rules) = (words.tree, words.rules);
    let names = &rules.meta;
    let journal = &mut article.journal;
    journal.title = meta.one(&names.journal);
    journal.publisher = meta.one(&names.publisher);
    journal.issns = meta.all(&names.issn);
    journal.volume = meta.one(&names.volume);
    journal.issue = meta.one(&names.issue);
    journal.last_page = meta.one(&names.last_page);
    let mut page = meta.one(&names.first_page);
    let citation = tree.first(Part::Citation).map(|index| words.plain(index)).unwrap_or_default();
    let mut year = None;
    if let Some(captures) = rules.patterns.citation.captures(&citation) {
        let group = |name: &str| captures.name(name).map(|group| group.as_str().trim().to_owned());
        journal.nlm_title = group("journal");
        journal.volume = journal.volume.take().or_else(|| group("volume"));
        page = page.or_else(|| group("page"));
        year = group("year");
    }
    match page {
        Some(page) if page.starts_with(|c: char| c.is_alphabetic()) => journal.elocation_id = Some(page),
        page => journal.first_page = page,
    }
    let stated = meta.one(&names.date);
    let shown = tree.first(Part::ArticleDate).map(|index| words.plain(index)).filter(|text| !text.is_empty());
    for (stated, date_type) in [(stated, "pub"), (shown, "shown")] {
        let Some(stated) = stated else { continue };
        let date = read_date(&stated, date_type);
        if date.iso.is_none() {
            let detail = format!("`{stated}` is no date");
            warn(&mut article.warnings, words.source, WarningKind::Date, 0, detail);
        }
        // The same day twice says nothing.
        if date.iso.is_none() || article.dates.iter().all(|known| known.iso != date.iso) {
            article.dates.push(date);
        }
    }
    if article.dates.is_empty()
        && let Some(year) = year
    {
        article.dates.push(read_date(&year, "citation"));
    }
}

/// Reads `2023/02/14`, `2023-02`, `14 February 2023`, `Feb 14, 2023` or `2023`.
fn read_date(stated: &str, date_type: &str) -> ArticleDate {
    const MONTHS: [&str; 12] = ["jan", "feb", "mar", "apr", "may", "jun", "jul", "aug", "sep", "oct", "nov", "dec"];
    let lower = stated.to_lowercase();
    let day_part = lower.split('t').next().filter(|part| part.contains('-')).unwrap_or(&lower);
    let parts: Vec<&str> = day_part.split(|c: char| !c.is_alphanumeric()).filter(|part| !part.is_empty()).collect();
    let named = |word: &str| {
        let start = word.get(..3)?;
        MONTHS.iter().position(|month| *month == start).and_then(|at| u32::try_from(at + 1).ok())
    };
    let number = |word: &str| word.parse::<u32>().ok();
    let is_year = |word: &str| word.len() == 4;
    let (year, month, day) = match parts.as_slice() {
        [year] if is_year(year) => (number(year), None, None),
        [year, month] if is_year(year) => (number(year), number(month), None),
        [year, month, day, ..] if is_year(year) => (number(year), number(month).or_else(|| named(month)), number(day)),
        [month, year] if is_year(year) => (number(year), named(month), None),
        [month, day, year] if is_year(year) && named(month).is_some() => (number(year), named(month), number(day)),
        [day, month, year] if is_year(year) => (number(year), named(month), number(day)),
        _ => (None, None, None),
    };
    let date =
        ArticleDate { date_type: Some(date_type.to_owned()), stated: stated.to_owned(), ..ArticleDate::default() };
    let small = |number: Option<u32>| i8::try_from(number.unwrap_or(1)).ok();
    let is_real = year.is_some_and(|year| {
        let (Ok(year), Some(month), Some(day)) = (i16::try_from(year), small(month), small(day)) else { return false };
        jiff::civil::Date::new(year, month, day).is_ok()
    });
    // A month that is named and not known makes it no date.
    let (true, Some(known_year)) = (is_real && (parts.len() < 2 || month.is_some()), year) else { return date };
    let iso = match (month, day) {
        (Some(month), Some(day)) => format!("{known_year:04}-{month:02}-{day:02}"),
        (Some(month), None) => format!("{known_year:04}-{month:02}"),
        _ => format!("{known_year:04}"),
    };
    ArticleDate { year, month, day, iso: Some(iso), ..date }
}

fn read_keywords(words: Words<'_, '_>, meta: &Meta<'_>, article: &mut Article) {
    let mut lines = meta.all(&words.rules.meta.keywords);
    if lines.is_empty()
        && let Some(index) = words.tree.first(Part::Keywords)
    {
        let line = words.plain(index);
        lines.push(line.split_once(':').map_or(line.as_str(), |(_, rest)| rest).to_owned());
    }
    for line in lines {
        let mark = if line.contains(';') { ';' } else { ',' };
        let words = line.split(mark).map(|word| word.trim().trim_end_matches('.')).filter(|word| !word.is_empty());
        for word in words {
            if article.keywords.iter().all(|known| known.text != word) {
                article.keywords.push(Keyword { group_type: None, language: None, text: word.to_owned() });
            }
        }
    }
}

fn read_permissions(words: Words<'_, '_>, article: &mut Article) {
    let tree = words.tree;
    let permissions = &mut article.permissions;
    let mut texts: Vec<String> = Vec::new();
    let mut after = 0;
    for index in tree.all(Part::License) {
        let Some(item) = tree.item(index) else { continue };
        if index < after {
            // Within one that is read already.
            continue;
        }
        after = item.after;
        let own = tree.element(index).and_then(|element| element.attribute("href"));
        let below = tree.below(index).filter_map(|(_, below)| below.attribute("href"));
        for link in own.into_iter().chain(below) {
            if permissions.links.iter().all(|known| known != link) {
                permissions.links.push(link.to_owned());
            }
        }
        texts.push(words.plain(index));
    }
    texts.retain(|text| !text.is_empty());
    if !texts.is_empty() {
        permissions.text = Some(texts.join(" "));
    }
    conclude(permissions);
}

fn read_editorial(rules: &PageRules, article: &mut Article) {
    let Some(title) = article.title.clone() else { return };
    let patterns = &rules.patterns;
    let states = [
        (&patterns.retraction_notice, EditorialState::RetractionNotice),
        (&patterns.retracted, EditorialState::Retracted),
        (&patterns.correction_notice, EditorialState::CorrectionNotice),
    ];
    if let Some((_, state)) = states.into_iter().find(|(pattern, _)| pattern.is_match(&title)) {
        article.editorial = state;
        article.editorial_evidence.push(format!("title: {title}"));
    }
}

/// Names of the parts of an abstract.
const PARTS: [(&str, Part); 3] =
    [("Background", Part::Background), ("Case Report", Part::CaseReport), ("Conclusions", Part::Conclusions)];

fn read_abstract(words: Words<'_, '_>, meta: &Meta<'_>, article: &mut Article, flags: &mut Vec<String>) {
    let (tree, patterns) = (words.tree, &words.rules.patterns);
    let mut paragraphs: Vec<AbstractParagraph> = Vec::new();
    let has_parts = PARTS.iter().any(|(_, part)| tree.first(*part).is_some());
    if has_parts {
        let mut found: Vec<(usize, &str)> =
            PARTS.iter().flat_map(|(name, part)| tree.all(*part).map(|index| (index, *name))).collect();
        found.sort_unstable();
        for (index, name) in found {
            let passage = words.passage(index).passage;
            let start = patterns.abstract_words.find(&passage.text).filter(|found| found.start() == 0);
            let passage = part_of(&passage, start.map_or(0, |found| found.end())..passage.text.len());
            paragraphs.push(AbstractParagraph { section_path: vec![name.to_owned()], passage });
        }
    } else if let Some(index) = tree.first(Part::Abstract) {
        let mut name: Option<String> = None;
        for passage in blocks_of(words, index) {
            match passage {
                Block::Heading(text) => name = part_by_words(words, &text).map(str::to_owned),
                Block::Words(passage) => paragraphs.extend(divided(words, &passage, name.as_ref())),
            }
        }
    }
    paragraphs.retain(|paragraph| !paragraph.passage.text.is_empty());
    if paragraphs.is_empty()
        && let Some(description) = meta.marked(&words.rules.meta.description)
    {
        paragraphs = divided(words, &words.marked(description), None);
        paragraphs.retain(|paragraph| !paragraph.passage.text.is_empty());
        if !paragraphs.is_empty() {
            flags.push(ABSTRACT_FROM_DESCRIPTION.to_owned());
        }
    }
    if paragraphs.is_empty() {
        let is_empty = tree.first(Part::Abstract).is_some();
        article.abstract_state = if is_empty { AbstractState::Empty } else { AbstractState::Missing };
        return;
    }
    if paragraphs.iter().all(|paragraph| paragraph.section_path.is_empty()) {
        flags.push(ABSTRACT_UNDIVIDED.to_owned());
    }
    article.abstract_state = AbstractState::Present;
    article.main_abstract = Some(0);
    article.abstracts.push(Abstract { paragraphs, ..Abstract::default() });
}

enum Block {
    Heading(String),
    Words(Passage),
}

/// The paragraphs of an abstract, without its keywords, between its headings.
fn blocks_of(words: Words<'_, '_>, index: usize) -> Vec<Block> {
    let tree = words.tree;
    let mut found = Vec::new();
    let mut stack: Vec<Vec<usize>> = vec![tree.children(index).collect()];
    let mut line: Vec<usize> = Vec::new();
    let end_line = |line: &mut Vec<usize>, found: &mut Vec<Block>| {
        let passage = words.passage_of(line).passage;
        line.clear();
        if !passage.text.is_empty() {
            found.push(Block::Words(passage));
        }
    };
    for level in &mut stack {
        level.reverse();
    }
    while let Some(level) = stack.last_mut() {
        let Some(child) = level.pop() else {
            stack.pop();
            end_line(&mut line, &mut found);
            continue;
        };
        match tree.element(child) {
            Some(element) if element.is(Part::LeaveOut) || element.is(Part::Keywords) => {
                end_line(&mut line, &mut found)
            }
            Some(element) if matches!(element.tag, Tag::Heading(_)) => {
                end_line(&mut line, &mut found);
                found.push(Block::Heading(words.plain(child)));
            }
            Some(element) if element.holds_block => {
                end_line(&mut line, &mut found);
                let mut children: Vec<usize> = tree.children(child).collect();
                children.reverse();
                stack.push(children);
            }
            Some(element) if element.tag.is_block() => {
                end_line(&mut line, &mut found);
                end_line(&mut vec![child], &mut found);
            }
            _ => line.push(child),
        }
    }
    found
}

/// The part of an abstract that a heading names.
fn part_by_words(words: Words<'_, '_>, heading: &str) -> Option<&'static str> {
    let line = format!("{}:", heading.trim().trim_end_matches(':'));
    let captures = words.rules.patterns.abstract_words.captures(&line)?;
    part_of_captures(&captures)
}

fn part_of_captures(captures: &regex::Captures<'_>) -> Option<&'static str> {
    ["background", "case_report", "conclusions"]
        .into_iter()
        .zip(PARTS)
        .find(|(group, _)| captures.name(group).is_some())
        .map(|(_, (name, _))| name)
}

/// Divides a text by the words that begin the parts of an abstract. What stands before the first has the given name.
fn divided(words: Words<'_, '_>, passage: &Passage, name: Option<&String>) -> Vec<AbstractParagraph> {
    let mut found: Vec<AbstractParagraph> = Vec::new();
    let mut push = |name: Option<&str>, from: usize, to: usize| {
        let section_path = name.map(str::to_owned).into_iter().collect();
        found.push(AbstractParagraph { section_path, passage: part_of(passage, from..to) });
    };
    let (mut own, mut from) = (name.map(String::as_str), 0);
    for captures in words.rules.patterns.abstract_words.captures_iter(&passage.text) {
        let (Some(whole), Some(part)) = (captures.get(0), part_of_captures(&captures)) else { continue };
        push(own, from, whole.start());
        (own, from) = (Some(part), whole.end());
    }
    push(own, from, passage.text.len());
    found
}
