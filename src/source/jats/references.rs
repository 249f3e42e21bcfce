//! The works that an article cites.

use super::body::{Context, Walk};
use super::front::{doi, pmcid};
use super::tags::Tag;
use super::text::{plain, plain_all, plain_some};
use super::tree::Element;
use crate::record::article::Reference;

impl Walk<'_> {
    /// Reads a list of references, which may hold others.
    pub fn references(&mut self, element: Element<'_, '_>, context: Context<'_>) {
        for child in element.elements() {
            match child.tag() {
                Tag::Ref => self.reference(child, context),
                Tag::RefList => self.references(child, context),
                Tag::Title | Tag::Label => {}
                // Paragraphs among references.
                _ => self.block(child, context),
            }
        }
    }

    fn reference(&mut self, element: Element<'_, '_>, context: Context<'_>) {
        let id = element.short_attribute("id");
        let label = plain_some(element.first(Tag::Label)).filter(|label| label.len() <= 256);
        let mut found = false;
        for child in element.elements() {
            let citation = match child.tag() {
                Tag::CitationAlternatives => child.elements().next(),
                tag if is_citation(tag) => Some(child),
                _ => None,
            };
            if let Some(citation) = citation {
                found = true;
                let reference = citation_of(citation);
                self.article.references.push(Reference {
                    id: id.clone().or_else(|| citation.attribute("id")),
                    label: label.clone().or_else(|| plain_some(citation.first(Tag::Label))),
                    sub_article: context.sub_article,
                    ..reference
                });
            }
        }
        if !found {
            let bytes = element.bytes();
            let whole = plain_all(element);
            let text =
                label.as_deref().and_then(|label| whole.strip_prefix(label)).unwrap_or(&whole).trim_start().to_owned();
            self.article.references.push(Reference {
                id,
                label,
                text,
                sub_article: context.sub_article,
                byte_start: bytes.start,
                byte_end: bytes.end,
                ..Reference::default()
            });
        }
    }
}

fn is_citation(tag: Tag) -> bool {
    matches!(tag, Tag::MixedCitation | Tag::ElementCitation | Tag::NlmCitation | Tag::Citation)
}

fn citation_of(element: Element<'_, '_>) -> Reference {
    let bytes = element.bytes();
    let mut reference = Reference {
        publication_type: element.attribute("publication-type").or_else(|| element.attribute("citation-type")),
        text: plain_all(element),
        byte_start: bytes.start,
        byte_end: bytes.end,
        ..Reference::default()
    };
    parts(element, &mut reference);
    reference
}

fn parts(element: Element<'_, '_>, reference: &mut Reference) {
    for child in element.elements() {
        match child.tag() {
            Tag::PersonGroup => {
                let kind = child.attribute("person-group-type");
                if matches!(kind.as_deref(), None | Some("author" | "allauthors")) {
                    parts(child, reference);
                }
            }
            Tag::Name | Tag::StringName => reference.authors.push(author(child)),
            Tag::Collab => reference.authors.push(plain(child)),
            Tag::Etal => reference.has_more_authors = true,
            Tag::ArticleTitle => set(&mut reference.title, child),
            Tag::ChapterTitle if reference.title.is_none() => set(&mut reference.title, child),
            Tag::Source => set(&mut reference.source, child),
            Tag::Year => set(&mut reference.year, child),
            Tag::Volume => set(&mut reference.volume, child),
            Tag::Issue => set(&mut reference.issue, child),
            Tag::Fpage | Tag::ElocationId => set(&mut reference.first_page, child),
            Tag::Lpage => set(&mut reference.last_page, child),
            Tag::PubId | Tag::ObjectId => match child.attribute("pub-id-type").as_deref() {
                Some("doi") => reference.doi = plain_some(Some(child)).map(|stated| doi(&stated)),
                Some("pmid") => set(&mut reference.pmid, child),
                Some("pmcid" | "pmc") => reference.pmcid = pmcid(&plain(child)).map(|(pmcid, _)| pmcid),
                _ => {}
            },
            Tag::ExtLink if child.attribute("ext-link-type").as_deref() == Some("doi") && reference.doi.is_none() => {
                reference.doi = child.attribute("href").map(|href| doi(&href));
            }
            // Inline markup around them.
            Tag::Other => parts(child, reference),
            _ => {}
        }
    }
}

fn set(slot: &mut Option<String>, element: Element<'_, '_>) {
    if slot.is_none() {
        *slot = plain_some(Some(element));
    }
}

fn author(element: Element<'_, '_>) -> String {
    let (surname, given) = (element.first(Tag::Surname), element.first(Tag::GivenNames));
    match (surname, given) {
        (Some(surname), Some(given)) => format!("{} {}", plain(surname), plain(given)),
        (Some(surname), None) => plain(surname),
        _ => plain_all(element),
    }
}
