//! What is where on a page: the table `[ajcr.page]` of `sources/ajcr.toml`, compiled once.
//!
//! Most selectors end in an id, a class or the name of an element. They are kept by it, so that each element of a page is
//! shown only to the few that can match it.

use regex::Regex;
use scraper::{ElementRef, Selector};
use serde::Deserialize;
use std::collections::BTreeMap;

/// What a selector finds.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Part {
    Title,
    Doi,
    Authors,
    ArticleType,
    ArticleDate,
    Citation,
    License,
    Keywords,
    Abstract,
    Background,
    CaseReport,
    Conclusions,
    Body,
    LeaveOut,
    Figure,
    Table,
    Caption,
    Note,
    References,
    Reference,
}

impl Part {
    pub fn bit(self) -> u32 {
        1 << (self as u32)
    }
}

/// `[ajcr.page]` as it stands; what each key means is said in the file.
#[derive(Clone, Debug, Deserialize)]
#[serde(deny_unknown_fields)]
struct PageTable {
    base_address: String,
    title_meta: Vec<String>,
    author_meta: Vec<String>,
    doi_meta: Vec<String>,
    pmid_meta: Vec<String>,
    journal_meta: Vec<String>,
    publisher_meta: Vec<String>,
    issn_meta: Vec<String>,
    date_meta: Vec<String>,
    volume_meta: Vec<String>,
    issue_meta: Vec<String>,
    first_page_meta: Vec<String>,
    last_page_meta: Vec<String>,
    description_meta: Vec<String>,
    keywords_meta: Vec<String>,
    title: String,
    doi: String,
    authors: String,
    article_type: String,
    article_date: String,
    citation: String,
    citation_pattern: String,
    license: String,
    keywords: String,
    r#abstract: String,
    abstract_background: String,
    abstract_case_report: String,
    abstract_conclusions: String,
    abstract_background_words: String,
    abstract_case_report_words: String,
    abstract_conclusions_words: String,
    body: String,
    main_heading: String,
    sub_heading: String,
    back_heading: String,
    leave_out: String,
    figure: String,
    table: String,
    caption: String,
    table_note: String,
    figure_label: String,
    table_label: String,
    figure_words: String,
    table_words: String,
    figure_id: String,
    table_id: String,
    reference_id: String,
    image_address: String,
    references: String,
    reference: String,
    retracted_title: String,
    retraction_notice_title: String,
    correction_notice_title: String,
    bot_page: Vec<String>,
}

/// Names of meta tags, by what they tell.
#[derive(Clone, Debug)]
pub struct MetaNames {
    pub title: Vec<String>,
    pub author: Vec<String>,
    pub doi: Vec<String>,
    pub pmid: Vec<String>,
    pub journal: Vec<String>,
    pub publisher: Vec<String>,
    pub issn: Vec<String>,
    pub date: Vec<String>,
    pub volume: Vec<String>,
    pub issue: Vec<String>,
    pub first_page: Vec<String>,
    pub last_page: Vec<String>,
    pub description: Vec<String>,
    pub keywords: Vec<String>,
}

/// Patterns, compiled.
#[derive(Clone, Debug)]
pub struct Patterns {
    pub citation: Regex,
    /// The words that begin a part of an abstract, at the beginning of a text or behind a space, with their colon; groups
    /// `background`, `case_report` and `conclusions`.
    pub abstract_words: Regex,
    pub main_heading: Regex,
    pub sub_heading: Regex,
    pub back_heading: Regex,
    pub figure_label: Regex,
    pub table_label: Regex,
    pub figure_words: Regex,
    pub table_words: Regex,
    pub figure_id: Regex,
    pub table_id: Regex,
    pub reference_id: Regex,
    pub image_address: Regex,
    pub retracted: Regex,
    pub retraction_notice: Regex,
    pub correction_notice: Regex,
    pub bot_page: Vec<Regex>,
    /// A DOI within words or an address. Fixed.
    pub doi: Regex,
    /// A PubMed id behind its name or in an address. Fixed.
    pub pmid: Regex,
}

/// What is where on a page, ready for use.
#[derive(Debug)]
pub struct PageRules {
    pub meta: MetaNames,
    pub patterns: Patterns,
    /// What addresses without host are relative to.
    pub base_address: url::Url,
    /// In the order of [`Part`]: key, selector as it stands.
    names: Vec<(&'static str, String)>,
    selectors: Vec<Selector>,
    by_id: BTreeMap<String, u32>,
    by_class: BTreeMap<String, u32>,
    by_name: BTreeMap<String, u32>,
    /// Selectors that end in none of these.
    others: u32,
}

impl PageRules {
    /// Compiles the table `page` of a source's options.
    ///
    /// # Errors
    /// A missing or unknown key, or one whose value is no selector, pattern or address; the key is named.
    pub fn from_options(options: &toml::Table) -> anyhow::Result<Self> {
        let Some(page) = options.get("page") else {
            anyhow::bail!("the table [ajcr.page], which says what is where on a page, is missing in sources/ajcr.toml");
        };
        let table: PageTable = page
            .clone()
            .try_into()
            .map_err(|error: toml::de::Error| anyhow::anyhow!("ajcr.page: {}", error.message()))?;
        Self::compile(table)
    }

    fn compile(table: PageTable) -> anyhow::Result<Self> {
        let words = |key: &str, words: &str| pattern(key, words).map(|pattern| pattern.as_str().to_owned());
        let abstract_words = format!(
            r"(?:^\W*|\s)(?:(?P<background>{})|(?P<case_report>{})|(?P<conclusions>{}))\s*:\s*",
            words("abstract_background_words", &table.abstract_background_words)?,
            words("abstract_case_report_words", &table.abstract_case_report_words)?,
            words("abstract_conclusions_words", &table.abstract_conclusions_words)?,
        );
        let patterns = Patterns {
            citation: with_groups("citation_pattern", &table.citation_pattern, &["journal", "year", "volume", "page"])?,
            abstract_words: pattern("abstract_background_words", &abstract_words)?,
            main_heading: pattern("main_heading", &table.main_heading)?,
            sub_heading: pattern("sub_heading", &table.sub_heading)?,
            back_heading: pattern("back_heading", &table.back_heading)?,
            figure_label: with_groups("figure_label", &table.figure_label, &["number"])?,
            table_label: with_groups("table_label", &table.table_label, &["number"])?,
            figure_words: pattern("figure_words", &table.figure_words)?,
            table_words: pattern("table_words", &table.table_words)?,
            figure_id: with_groups("figure_id", &table.figure_id, &["number"])?,
            table_id: with_groups("table_id", &table.table_id, &["number"])?,
            reference_id: with_groups("reference_id", &table.reference_id, &["number"])?,
            image_address: pattern("image_address", &table.image_address)?,
            retracted: pattern("retracted_title", &table.retracted_title)?,
            retraction_notice: pattern("retraction_notice_title", &table.retraction_notice_title)?,
            correction_notice: pattern("correction_notice_title", &table.correction_notice_title)?,
            bot_page: table.bot_page.iter().map(|own| pattern("bot_page", own)).collect::<Result<_, _>>()?,
            doi: pattern("doi", r#"\b10\.\d{4,9}/[^\s"'<>,;]*[^\s"'<>,;.)\]]"#)?,
            pmid: pattern("pmid", r"(?i)(?:\bpmid:?\s*|pubmed(?:\.ncbi\.nlm\.nih\.gov|/)/?)(\d{1,9})\b")?,
        };
        let lower = |names: Vec<String>| names.into_iter().map(|name| name.to_lowercase()).collect();
        let names = vec![
            ("title", table.title),
            ("doi", table.doi),
            ("authors", table.authors),
            ("article_type", table.article_type),
            ("article_date", table.article_date),
            ("citation", table.citation),
            ("license", table.license),
            ("keywords", table.keywords),
            ("abstract", table.r#abstract),
            ("abstract_background", table.abstract_background),
            ("abstract_case_report", table.abstract_case_report),
            ("abstract_conclusions", table.abstract_conclusions),
            ("body", table.body),
            ("leave_out", table.leave_out),
            ("figure", table.figure),
            ("table", table.table),
            ("caption", table.caption),
            ("table_note", table.table_note),
            ("references", table.references),
            ("reference", table.reference),
        ];
        let base_address = url::Url::parse(&table.base_address).map_err(|error| {
            anyhow::anyhow!("ajcr.page.base_address: `{}` is no address: {error}", table.base_address)
        })?;
        let mut rules = Self {
            meta: MetaNames {
                title: lower(table.title_meta),
                author: lower(table.author_meta),
                doi: lower(table.doi_meta),
                pmid: lower(table.pmid_meta),
                journal: lower(table.journal_meta),
                publisher: lower(table.publisher_meta),
                issn: lower(table.issn_meta),
                date: lower(table.date_meta),
                volume: lower(table.volume_meta),
                issue: lower(table.issue_meta),
                first_page: lower(table.first_page_meta),
                last_page: lower(table.last_page_meta),
                description: lower(table.description_meta),
                keywords: lower(table.keywords_meta),
            },
            patterns,
            base_address,
            names: Vec::new(),
            selectors: Vec::new(),
            by_id: BTreeMap::new(),
            by_class: BTreeMap::new(),
            by_name: BTreeMap::new(),
            others: 0,
        };
        for (index, (key, text)) in names.iter().enumerate() {
            let selector = Selector::parse(text)
                .map_err(|error| anyhow::anyhow!("ajcr.page.{key}: `{text}` is no CSS selector: {error}"))?;
            rules.selectors.push(selector);
            let bit = 1 << index;
            for end in ends(text) {
                match end {
                    End::Id(id) => *rules.by_id.entry(id).or_default() |= bit,
                    End::Class(class) => *rules.by_class.entry(class).or_default() |= bit,
                    End::Name(name) => *rules.by_name.entry(name).or_default() |= bit,
                    End::Other => rules.others |= bit,
                }
            }
        }
        rules.names = names;
        Ok(rules)
    }

    /// Key and selector of a part, for messages.
    pub fn shown(&self, part: Part) -> String {
        self.names.get(part as usize).map_or_else(String::new, |(key, selector)| format!("{key} `{selector}`"))
    }

    /// Everything that an element is, as bits of [`Part::bit`].
    pub fn parts_of(&self, element: &ElementRef<'_>) -> u32 {
        let value = element.value();
        let mut candidates = self.others | self.by_name.get(value.name()).copied().unwrap_or(0);
        if let Some(id) = value.id() {
            candidates |= self.by_id.get(id).copied().unwrap_or(0);
        }
        for class in value.classes() {
            candidates |= self.by_class.get(class).copied().unwrap_or(0);
        }
        let mut parts = 0;
        while candidates != 0 {
            let index = candidates.trailing_zeros();
            candidates &= candidates - 1;
            if self.selectors.get(index as usize).is_some_and(|selector| selector.matches(element)) {
                parts |= 1 << index;
            }
        }
        parts
    }
}

fn pattern(key: &str, text: &str) -> anyhow::Result<Regex> {
    Regex::new(text).map_err(|error| anyhow::anyhow!("ajcr.page.{key}: `{text}` is no pattern: {error}"))
}

fn with_groups(key: &str, text: &str, groups: &[&str]) -> anyhow::Result<Regex> {
    let pattern = pattern(key, text)?;
    for group in groups {
        anyhow::ensure!(
            pattern.capture_names().flatten().any(|known| known == *group),
            "ajcr.page.{key}: `{text}` has no group `(?P<{group}>…)`"
        );
    }
    Ok(pattern)
}

/// What an element must have to match an alternative of a selector.
#[derive(Debug, PartialEq, Eq)]
enum End {
    Id(String),
    Class(String),
    Name(String),
    Other,
}

/// What the alternatives of a selector list end in. `Other` is always right, only slower.
fn ends(selector: &str) -> Vec<End> {
    let (mut alternatives, mut depth, mut start) = (Vec::new(), 0_u32, 0);
    let mut is_plain = true;
    for (position, character) in selector.char_indices() {
        match character {
            '[' | '(' => depth += 1,
            ']' | ')' => depth = depth.saturating_sub(1),
            '\\' | '"' | '\'' | '|' => is_plain = false,
            ',' if depth == 0 => {
                alternatives.push(selector.get(start..position).unwrap_or_default());
                start = position + 1;
            }
            _ => {}
        }
    }
    alternatives.push(selector.get(start..).unwrap_or_default());
    if !is_plain {
        return vec![End::Other];
    }
    alternatives.into_iter().map(|alternative| end(alternative.trim())).collect()
}

fn end(alternative: &str) -> End {
    let (mut depth, mut start) = (0_u32, 0);
    for (position, character) in alternative.char_indices() {
        match character {
            '[' | '(' => depth += 1,
            ']' | ')' => depth = depth.saturating_sub(1),
            ' ' | '>' | '+' | '~' | '\t' | '\n' if depth == 0 => start = position + 1,
            _ => {}
        }
    }
    let compound = alternative.get(start..).unwrap_or_default();
    // What stands in brackets says nothing about what the element itself must have.
    let simple = compound.split(['[', '(', ':']).next().unwrap_or_default();
    let is_name = |c: char| c.is_alphanumeric() || matches!(c, '-' | '_');
    let word = |from: &str| from.chars().take_while(|c| is_name(*c)).collect::<String>();
    let behind = |mark: char| simple.split_once(mark).map(|(_, rest)| word(rest)).filter(|word| !word.is_empty());
    if let Some(id) = behind('#') {
        return End::Id(id);
    }
    if let Some(class) = behind('.') {
        return End::Class(class);
    }
    let name = word(simple);
    if name.is_empty() { End::Other } else { End::Name(name.to_ascii_lowercase()) }
}

#[cfg(test)]
pub fn sample_rules() -> PageRules {
    let text = include_str!("../../../sources/ajcr.toml");
    let config = crate::config::source::parse("sources/ajcr.toml", text).expect("the file of the source is right");
    PageRules::from_options(&config.options).expect("its rules compile")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn selectors_are_kept_by_what_they_end_in() {
        let told = |selector: &str| format!("{:?}", ends(selector));
        assert_eq!(told("#article h1, h1.article-title"), r#"[Name("h1"), Class("article-title")]"#);
        assert_eq!(told("div > p#a.b"), r#"[Id("a")]"#);
        assert_eq!(told("a[rel~=license], [hidden]"), r#"[Name("a"), Other]"#);
        assert_eq!(told("p:not(.a, .b)"), r#"[Name("p")]"#);
        assert_eq!(told(r#"[data-x="a, b"]"#), "[Other]");
        assert_eq!(told("*"), "[Other]");
    }

    #[test]
    fn what_is_wrong_in_the_table_is_named() {
        let text = include_str!("../../../sources/ajcr.toml");
        let told = |from: &str, to: &str| {
            assert!(text.contains(from), "{from}");
            let config = crate::config::source::parse("sources/ajcr.toml", &text.replace(from, to)).unwrap();
            PageRules::from_options(&config.options).unwrap_err().to_string()
        };
        assert!(told("body = \"#fulltext\"", "body = \"#full >\"").starts_with("ajcr.page.body: `#full >` is no CSS"));
        assert!(told("body = \"#fulltext\"", "").contains("missing field `body`"));
        assert!(told("body = \"#fulltext\"", "body = \"p\"\nbodi = \"p\"").contains("unknown field `bodi`"));
        assert!(told("figure_label = '^", "figure_label = '(").starts_with("ajcr.page.figure_label: "));
        assert!(told("(?P<number>\\d{1,3})(?:-|$)", "").starts_with("ajcr.page.figure_id: `^f` has no group"));
    }
}
