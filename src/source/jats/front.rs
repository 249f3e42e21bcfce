//! Metadata of an article: ids, titles, abstracts, people, journal, dates, keywords.

use super::error::warn;
use super::tags::Tag;
use super::text::{plain, plain_all, plain_some, write, write_all};
use super::tree::Element;
use super::{Budget, body, permissions};
use crate::record::article::{
    Abstract, AbstractParagraph, AbstractState, Article, ArticleDate, Contributor, Keyword, Passage, RelatedArticle,
    StatedId, Warning, WarningKind,
};
use std::collections::BTreeMap;

/// Reads `front`.
pub fn read(source: &str, element: Element<'_, '_>, budget: &mut Budget, article: &mut Article) {
    let Some(front) = element.first(Tag::Front).or_else(|| element.first(Tag::FrontStub)) else { return };
    for child in front.elements() {
        match child.tag() {
            Tag::JournalMeta => journal(child, article),
            Tag::ArticleMeta => meta(source, child, budget, article),
            _ => {}
        }
    }
    if front.tag() == Tag::FrontStub {
        meta(source, front, budget, article);
    }
}

fn journal(meta: Element<'_, '_>, article: &mut Article) {
    let journal = &mut article.journal;
    for child in meta.elements() {
        match child.tag() {
            Tag::JournalId => match child.attribute("journal-id-type").as_deref() {
                Some("nlm-ta") => journal.nlm_title = Some(plain(child)),
                Some("iso-abbrev") => journal.iso_title = Some(plain(child)),
                _ => {}
            },
            Tag::JournalTitle => journal.title = Some(plain(child)),
            Tag::JournalTitleGroup => journal.title = plain_some(child.first(Tag::JournalTitle)),
            Tag::Issn => journal.issns.push(plain(child)),
            Tag::Publisher => journal.publisher = plain_some(child.first(Tag::PublisherName)),
            _ => {}
        }
    }
}

fn meta(source: &str, meta: Element<'_, '_>, budget: &mut Budget, article: &mut Article) {
    let mut affiliations: BTreeMap<String, String> = BTreeMap::new();
    // Of each contributor: the ids of affiliations elsewhere.
    let mut wanted: Vec<Vec<String>> = Vec::new();
    for child in meta.elements() {
        match child.tag() {
            Tag::ArticleId => article
                .ids
                .stated
                .push(StatedId { id_type: child.attribute("pub-id-type").unwrap_or_default(), value: plain(child) }),
            Tag::ArticleCategories => {
                let subjects = child.descendants().filter(|below| below.tag() == Tag::Subject);
                article.subjects.extend(subjects.map(plain));
            }
            Tag::TitleGroup => {
                article.title = plain_some(child.first(Tag::ArticleTitle));
                article.subtitle = plain_some(child.first(Tag::Subtitle));
                let translated = child.descendants().filter(|below| below.tag() == Tag::TransTitle);
                article.translated_titles.extend(translated.map(plain));
            }
            Tag::ContribGroup => {
                let mut others = Vec::new();
                for member in child.elements() {
                    match member.tag() {
                        Tag::Contrib => {
                            let (contributor, rids) = contributor(member);
                            article.contributors.push(contributor);
                            wanted.push(rids);
                        }
                        Tag::Aff => others.push(affiliation(member)),
                        _ => {}
                    }
                }
                affiliations.extend(others.into_iter().filter_map(|(id, text)| Some((id?, text))));
            }
            Tag::Aff => {
                if let (Some(id), text) = affiliation(child) {
                    affiliations.insert(id, text);
                }
            }
            Tag::PubDate => article.dates.push(date(source, child, None, &mut article.warnings)),
            Tag::History | Tag::PubHistory => {
                for inner in child.elements() {
                    match inner.tag() {
                        Tag::Date | Tag::PubDate => {
                            article.dates.push(date(source, inner, None, &mut article.warnings))
                        }
                        Tag::Event => {
                            let event_type = inner.short_attribute("event-type");
                            let dates = inner.elements().filter(|date| matches!(date.tag(), Tag::Date | Tag::PubDate));
                            for inner in dates {
                                article.dates.push(date(source, inner, event_type.clone(), &mut article.warnings));
                            }
                        }
                        _ => {}
                    }
                }
            }
            Tag::Volume => article.journal.volume = plain_some(Some(child)),
            Tag::Issue => article.journal.issue = plain_some(Some(child)),
            Tag::Fpage => article.journal.first_page = plain_some(Some(child)),
            Tag::Lpage => article.journal.last_page = plain_some(Some(child)),
            Tag::ElocationId => article.journal.elocation_id = plain_some(Some(child)),
            Tag::Permissions => permissions::read(child, &mut article.permissions),
            Tag::RelatedArticle => article.related_articles.push(related(child)),
            Tag::Abstract | Tag::TransAbstract => article.abstracts.push(abstract_of(child, budget)),
            Tag::KwdGroup => keywords(child, article),
            _ => {}
        }
    }
    for (contributor, rids) in article.contributors.iter_mut().zip(&wanted) {
        for affiliation in rids.iter().filter_map(|rid| affiliations.get(rid)) {
            if budget.take(affiliation.len()) {
                contributor.affiliations.push(affiliation.clone());
            }
        }
    }
    ids(source, meta, article);
    choose_abstract(article);
}

/// Brings the ids into one notation.
fn ids(source: &str, meta: Element<'_, '_>, article: &mut Article) {
    let byte = meta.bytes().start as usize;
    let mut warnings = Vec::new();
    let ids = &mut article.ids;
    let mut set = |slot: &mut Option<String>, value: String, kind: &str| match slot {
        None => *slot = Some(value),
        Some(known) if *known != value => {
            let detail = format!("{kind} is `{known}` and `{value}`; the first counts");
            warn(&mut warnings, source, WarningKind::IdConflict, byte, detail);
        }
        Some(_) => {}
    };
    // Surest spelling first; `pmcaid` numbers the article, `pmcaiid` a copy of it.
    for wanted in ["pmcid", "pmc", "pmcid-ver", "pmc-uid", "accession", "pmcaid"] {
        for stated in ids.stated.iter().filter(|stated| stated.id_type == wanted) {
            if wanted == "accession" && !stated.value.starts_with("PMC") {
                continue;
            }
            // A number of the archive's own, usually but not always that of the id.
            if wanted == "pmcaid" && ids.pmcid.is_some() {
                continue;
            }
            let Some((pmcid, version)) = pmcid(&stated.value) else { continue };
            if ids.pmcid.as_ref().is_none_or(|known| *known == pmcid) {
                ids.pmcid_version = ids.pmcid_version.or(version);
            }
            set(&mut ids.pmcid, pmcid, "the PMC id");
        }
    }
    for stated in &ids.stated {
        match stated.id_type.as_str() {
            "pmid" if !stated.value.is_empty() => set(&mut ids.pmid, stated.value.clone(), "the PubMed id"),
            "doi" if !stated.value.is_empty() => set(&mut ids.doi, doi(&stated.value), "the DOI"),
            _ => {}
        }
    }
    article.warnings.append(&mut warnings);
}

/// `PMC` and digits, with a version after a point; none for anything else.
pub fn pmcid(stated: &str) -> Option<(String, Option<u32>)> {
    let stated = stated.trim();
    let bare = match stated.get(..3) {
        Some(prefix) if prefix.eq_ignore_ascii_case("PMC") => stated.get(3..)?,
        _ => stated,
    };
    let (digits, version) = match bare.split_once('.') {
        Some((digits, version)) => (digits, Some(version.parse().ok()?)),
        None => (bare, None),
    };
    let is_number = !digits.is_empty() && digits.bytes().all(|byte| byte.is_ascii_digit());
    is_number.then(|| (format!("PMC{digits}"), version))
}

/// A DOI without resolver.
pub fn doi(stated: &str) -> String {
    let stated = stated.trim();
    let start = stated.find("10.").filter(|start| {
        let before = stated.get(..*start).unwrap_or_default().to_ascii_lowercase();
        before.is_empty() || before.ends_with("doi.org/") || before.trim_end().ends_with("doi:")
    });
    start.and_then(|start| stated.get(start..)).unwrap_or(stated).to_owned()
}

fn affiliation(element: Element<'_, '_>) -> (Option<String>, String) {
    let label = element.first(Tag::Label).map(plain).unwrap_or_default();
    let text = plain_all(element);
    let text = text.strip_prefix(&label).unwrap_or(&text).trim_start().to_owned();
    (element.attribute("id"), text)
}

fn contributor(element: Element<'_, '_>) -> (Contributor, Vec<String>) {
    let mut contributor = Contributor {
        contrib_type: element.attribute("contrib-type"),
        is_corresponding: element.attribute("corresp").as_deref() == Some("yes"),
        ..Contributor::default()
    };
    let mut rids = Vec::new();
    for child in element.elements() {
        match child.tag() {
            Tag::Name => name(child, &mut contributor),
            Tag::NameAlternatives => {
                if let Some(first) = child.elements().find(|inner| matches!(inner.tag(), Tag::Name | Tag::StringName)) {
                    name(first, &mut contributor);
                }
            }
            Tag::StringName => name(child, &mut contributor),
            Tag::Collab => contributor.collab = plain_some(Some(child)),
            Tag::Anonymous => contributor.collab = Some("anonymous".to_owned()),
            Tag::ContribId if child.attribute("contrib-id-type").as_deref() == Some("orcid") => {
                let text = plain(child);
                contributor.orcid = text.rsplit('/').next().map(str::to_owned);
            }
            Tag::Aff => contributor.affiliations.push(affiliation(child).1),
            Tag::Xref => match child.attribute("ref-type").as_deref() {
                Some("aff") => {
                    let ids = child.attribute("rid").unwrap_or_default();
                    rids.extend(ids.split_ascii_whitespace().map(str::to_owned));
                }
                Some("corresp") => contributor.is_corresponding = true,
                _ => {}
            },
            _ => {}
        }
    }
    (contributor, rids)
}

fn name(element: Element<'_, '_>, contributor: &mut Contributor) {
    contributor.surname = plain_some(element.first(Tag::Surname));
    contributor.given_names = plain_some(element.first(Tag::GivenNames));
    contributor.suffix = plain_some(element.first(Tag::Suffix));
    if contributor.surname.is_none() && contributor.given_names.is_none() {
        contributor.collab = plain_some(Some(element));
    }
}

/// The date of an element, in whatever form it is given.
fn date(source: &str, element: Element<'_, '_>, event: Option<String>, warnings: &mut Vec<Warning>) -> ArticleDate {
    let date_type = element.attribute("date-type").or_else(|| element.attribute("pub-type")).or(event);
    let mut date = ArticleDate {
        date_type,
        publication_format: element.attribute("publication-format"),
        stated: plain_all(element),
        ..ArticleDate::default()
    };
    let inner = element.first(Tag::StringDate).unwrap_or(element);
    let number = |text: &str| text.trim().parse::<u32>().ok();
    for child in inner.elements() {
        let text = plain(child);
        match child.tag() {
            Tag::Year => date.year = number(&text),
            Tag::Month => date.month = number(&text).or_else(|| month(&text)),
            Tag::Day => date.day = number(&text),
            Tag::Season => date.season = Some(text),
            _ => {}
        }
    }
    let stated_iso = element.attribute("iso-8601-date");
    if date.year.is_none() {
        let iso = stated_iso.as_deref().unwrap_or(&date.stated);
        let date_part = iso.split('T').next().unwrap_or_default();
        let mut parts = date_part.split('-');
        let is_year = |text: &&str| text.len() == 4 && text.bytes().all(|byte| byte.is_ascii_digit());
        date.year = parts.next().filter(is_year).and_then(number);
        if date.year.is_some() {
            date.month = parts.next().and_then(number);
            date.day = parts.next().and_then(number);
        }
    }
    let is_month = date.month.is_none_or(|month| (1..=12).contains(&month));
    let days = match date.month {
        Some(4 | 6 | 9 | 11) => 30,
        Some(2) => 28 + u32::from(date.year.is_none_or(|year| year % 4 == 0 && (year % 100 != 0 || year % 400 == 0))),
        _ => 31,
    };
    let is_day = date.day.is_none_or(|day| (1..=days).contains(&day));
    if !is_month || !is_day {
        let detail = format!("`{}` is no date", date.stated);
        warn(warnings, source, WarningKind::Date, element.bytes().start as usize, detail);
        if !is_month {
            date.month = None;
        }
        date.day = None;
    }
    date.iso = match (date.year, date.month, date.day) {
        (Some(year), Some(month), Some(day)) => Some(format!("{year:04}-{month:02}-{day:02}")),
        (Some(year), Some(month), None) => Some(format!("{year:04}-{month:02}")),
        (Some(year), None, _) => Some(format!("{year:04}")),
        (None, ..) => None,
    };
    date
}

fn month(name: &str) -> Option<u32> {
    const MONTHS: [&str; 12] = ["jan", "feb", "mar", "apr", "may", "jun", "jul", "aug", "sep", "oct", "nov", "dec"];
    let name = name.trim().to_ascii_lowercase();
    let position = MONTHS.iter().position(|month| name.starts_with(month))?;
    u32::try_from(position + 1).ok()
}

pub fn related(element: Element<'_, '_>) -> RelatedArticle {
    RelatedArticle {
        relation: element.attribute("related-article-type"),
        link_type: element.attribute("ext-link-type"),
        href: element.attribute("href"),
        text: plain_all(element),
    }
}

fn keywords(element: Element<'_, '_>, article: &mut Article) {
    let (group_type, language) = (element.short_attribute("kwd-group-type"), element.short_attribute("lang"));
    for keyword in element.descendants().filter(|below| below.tag() == Tag::Kwd) {
        let text = plain(keyword);
        if !text.is_empty() {
            article.keywords.push(Keyword { group_type: group_type.clone(), language: language.clone(), text });
        }
    }
}

/// An abstract with its sections.
pub fn abstract_of(element: Element<'_, '_>, budget: &mut Budget) -> Abstract {
    let mut found = Abstract {
        abstract_type: element.attribute("abstract-type"),
        language: element.attribute("lang"),
        is_translation: element.tag() == Tag::TransAbstract,
        title: plain_some(element.first(Tag::Title)),
        paragraphs: Vec::new(),
    };
    abstract_blocks(element, &mut Vec::new(), budget, &mut found);
    found
}

fn abstract_blocks(element: Element<'_, '_>, path: &mut Vec<String>, budget: &mut Budget, found: &mut Abstract) {
    if element.has_text() {
        // Text without paragraphs.
        return found.add(budget.path(path), write_all(element));
    }
    for child in element.elements() {
        match child.tag() {
            Tag::Title | Tag::Label => {}
            Tag::P => {
                let writer = write(child);
                found.add(budget.path(path), writer.passage);
                for (aside, _) in writer.aside {
                    if !body::is_float(aside.tag()) {
                        found.add(budget.path(path), write_all(aside));
                    }
                }
            }
            Tag::Sec => {
                let depth = path.len();
                path.extend(plain_some(child.first(Tag::Title)));
                abstract_blocks(child, path, budget, found);
                path.truncate(depth);
            }
            tag if body::is_float(tag) => {}
            _ => found.add(budget.path(path), write_all(child)),
        }
    }
}

impl Abstract {
    fn add(&mut self, section_path: Vec<String>, passage: Passage) {
        if !passage.text.is_empty() {
            self.paragraphs.push(AbstractParagraph { section_path, passage });
        }
    }
}

/// The abstract proper has no type (or says that it is one) and is no translation.
fn choose_abstract(article: &mut Article) {
    let is_proper = |found: &Abstract| {
        let kind = found.abstract_type.as_deref().map(str::to_ascii_lowercase);
        !found.is_translation
            && matches!(kind.as_deref(), None | Some("" | "abstract" | "normal" | "structured" | "section" | "main"))
    };
    let proper: Vec<(usize, &Abstract)> =
        article.abstracts.iter().enumerate().filter(|(_, found)| is_proper(found)).collect();
    let with_text = proper.iter().find(|(_, found)| !found.paragraphs.is_empty());
    article.abstract_state = match (with_text, proper.is_empty(), article.abstracts.is_empty()) {
        (Some((position, _)), ..) => {
            article.main_abstract = u32::try_from(*position).ok();
            AbstractState::Present
        }
        (None, false, _) => AbstractState::Empty,
        (None, true, false) => AbstractState::OtherKindsOnly,
        (None, true, true) => AbstractState::Missing,
    };
}
