//! Paragraphs in document order with all the sections around them, and what stands among them.

use super::error::warn;
use super::tags::Tag;
use super::text::{plain, plain_all, plain_some, write};
use super::tree::Element;
use super::{Budget, Limits};
use super::{floats, front};
use crate::record::article::{
    Article, BodyState, Definition, Paragraph, ParagraphElement, ParagraphKind, Passage, Place, Region, Section,
    SubArticle, SubArticleKind, WarningKind,
};

/// Reads body, back matter, floats and sub-articles.
pub fn read(source: &str, element: Element<'_, '_>, limits: Limits, budget: &mut Budget, article: &mut Article) {
    let mut walk = Walk { source, limits, budget, article, path: Vec::new() };
    walk.parts(element, None);
    walk.body_state(element);
    floats::link(walk.article);
}

/// The state of the walk that is the same below an element.
#[derive(Clone, Copy, Debug, Default)]
pub struct Context<'c> {
    pub region: Region,
    pub sub_article: Option<u32>,
    section: Option<u32>,
    kind: ParagraphKind,
    label: Option<&'c str>,
    /// Paragraph and offset in its text.
    within: Option<(u32, u32)>,
}

/// Walks an article.
pub struct Walk<'s> {
    pub source: &'s str,
    pub limits: Limits,
    pub budget: &'s mut Budget,
    pub article: &'s mut Article,
    /// Titles of what is open.
    path: Vec<String>,
}

/// The next position in a list.
pub fn position<T>(list: &[T]) -> u32 {
    u32::try_from(list.len()).unwrap_or(u32::MAX)
}

/// What has a record of its own, rather than words of the text around it.
pub fn is_float(tag: Tag) -> bool {
    matches!(
        tag,
        Tag::Fig
            | Tag::FigGroup
            | Tag::TableWrap
            | Tag::TableWrapGroup
            | Tag::Supplement
            | Tag::Media
            | Tag::Graphic
            | Tag::InlineGraphic
            | Tag::PrivateChar
    )
}

impl Walk<'_> {
    /// Reads the parts of an article or sub-article.
    fn parts(&mut self, element: Element<'_, '_>, sub_article: Option<u32>) {
        for part in element.elements() {
            let region = match part.tag() {
                Tag::Body => Region::Body,
                Tag::Back => Region::Back,
                Tag::FloatsGroup | Tag::FloatsWrap => Region::Floats,
                Tag::SubArticle | Tag::Response => {
                    self.sub_article(part, sub_article);
                    continue;
                }
                _ => continue,
            };
            let region = if sub_article.is_some() { Region::SubArticle } else { region };
            self.blocks(part, Context { region, sub_article, ..Context::default() });
        }
    }

    fn sub_article(&mut self, element: Element<'_, '_>, parent: Option<u32>) {
        let article_type = element.attribute("article-type").or_else(|| element.attribute("response-type"));
        let kind = match (element.tag(), article_type.as_deref()) {
            (Tag::Response, _) => SubArticleKind::Response,
            (_, Some("translation")) => SubArticleKind::Translation,
            _ => SubArticleKind::SubArticle,
        };
        let bytes = element.bytes();
        let mut part = SubArticle {
            id: element.attribute("id"),
            kind,
            article_type,
            language: element.attribute("lang"),
            parent,
            byte_start: bytes.start,
            byte_end: bytes.end,
            ..SubArticle::default()
        };
        let front = element.first(Tag::FrontStub).or_else(|| element.first(Tag::Front)?.first(Tag::ArticleMeta));
        for child in front.iter().flat_map(|front| front.elements()) {
            match child.tag() {
                Tag::TitleGroup => part.title = plain_some(child.first(Tag::ArticleTitle)),
                Tag::ArticleId if child.attribute("pub-id-type").as_deref() == Some("doi") => {
                    part.doi = Some(front::doi(&plain(child)));
                }
                Tag::Abstract | Tag::TransAbstract => part.abstracts.push(front::abstract_of(child, self.budget)),
                _ => {}
            }
        }
        let index = position(&self.article.sub_articles);
        self.article.sub_articles.push(part);
        self.parts(element, Some(index));
    }

    fn body_state(&mut self, element: Element<'_, '_>) {
        let Some(body) = element.first(Tag::Body) else { return };
        let is_of_body = |paragraph: &Paragraph| paragraph.region == Region::Body && !paragraph.passage.text.is_empty();
        self.article.body = if self.article.paragraphs.iter().any(is_of_body) {
            BodyState::Full
        } else if body.elements().next().is_none() {
            BodyState::Empty
        } else {
            let detail = "the body has elements, but no paragraph with words";
            let kind = WarningKind::BodyWithoutParagraphs;
            warn(&mut self.article.warnings, self.source, kind, body.bytes().start as usize, detail);
            BodyState::WithoutParagraphs
        };
    }

    /// Reads what stands in an element that holds paragraphs.
    pub fn blocks(&mut self, element: Element<'_, '_>, context: Context<'_>) {
        if element.has_text() {
            // Words are not lost because they stand where no words belong.
            return self.paragraph(element, ParagraphElement::Stray, context);
        }
        for child in element.elements() {
            self.block(child, context);
        }
    }

    /// Reads one element among paragraphs.
    pub fn block(&mut self, element: Element<'_, '_>, context: Context<'_>) {
        let of_kind = |kind: ParagraphKind| Context { kind, ..context };
        match element.tag() {
            Tag::P => self.paragraph(element, ParagraphElement::P, context),
            Tag::Title | Tag::Label | Tag::Caption | Tag::Subtitle | Tag::ObjectId | Tag::AltText | Tag::LongDesc => {}
            Tag::Sec | Tag::App | Tag::Ack | Tag::Notes | Tag::Glossary | Tag::Bio => self.section(element, context),
            Tag::List => self.list(element, context),
            Tag::DefList => self.definitions(element, context),
            Tag::Abbrev => {
                let term = plain(element);
                for definition in element.elements().filter(|child| child.tag() == Tag::Def) {
                    self.definition(definition, &term, context);
                }
            }
            Tag::Def => self.definition(element, "", context),
            Tag::BoxedText => {
                let depth = self.path.len();
                let caption = element.first(Tag::Caption);
                let title = caption.and_then(|caption| caption.first(Tag::Title)).or_else(|| element.first(Tag::Title));
                self.path.extend(plain_some(title));
                // Its caption may hold paragraphs as well as the title.
                for paragraph in caption.iter().flat_map(|caption| caption.elements()) {
                    self.block(paragraph, of_kind(ParagraphKind::BoxedText));
                }
                self.blocks(element, of_kind(ParagraphKind::BoxedText));
                self.path.truncate(depth);
            }
            Tag::DispQuote => self.blocks(element, of_kind(ParagraphKind::Quotation)),
            Tag::Statement => {
                let label = plain_some(element.first(Tag::Label));
                let label = label.as_deref().or(context.label);
                self.blocks(element, Context { label, ..of_kind(ParagraphKind::Statement) });
            }
            Tag::Fn => {
                let label = plain_some(element.first(Tag::Label));
                self.blocks(element, Context { label: label.as_deref(), ..of_kind(ParagraphKind::Footnote) });
            }
            Tag::DispFormula | Tag::Math | Tag::TexMath => {
                self.paragraph(element, ParagraphElement::DispFormula, context);
            }
            Tag::Preformat | Tag::Code => self.paragraph(element, ParagraphElement::Preformat, context),
            Tag::VerseLine => self.paragraph(element, ParagraphElement::VerseLine, context),
            Tag::Attrib => self.paragraph(element, ParagraphElement::Attrib, context),
            Tag::Speaker => self.paragraph(element, ParagraphElement::Speaker, context),
            Tag::RefList => self.references(element, context),
            Tag::Fig => self.figure(element, None, context),
            Tag::FigGroup => self.figure_group(element, context),
            Tag::TableWrap => self.table_wrap(element, None, context),
            Tag::TableWrapGroup => self.table_group(element, context),
            Tag::Table | Tag::Tgroup => self.bare_table(element, context),
            Tag::Supplement | Tag::Media | Tag::InlineSupplement => self.supplement(element, context),
            Tag::Graphic | Tag::InlineGraphic | Tag::PrivateChar => self.loose_graphic(element, context),
            Tag::Alternatives => {
                // One of them, preferably one with words.
                let choice =
                    element.elements().find(|child| !is_float(child.tag())).or_else(|| element.elements().next());
                match choice {
                    Some(choice) if is_float(choice.tag()) => self.loose_graphic(element, context),
                    Some(choice) => self.block(choice, context),
                    None => {}
                }
            }
            Tag::SubArticle | Tag::Response => {}
            _ => self.blocks(element, context),
        }
    }

    fn section(&mut self, element: Element<'_, '_>, context: Context<'_>) {
        let bytes = element.bytes();
        let title = plain_some(element.first(Tag::Title));
        let name = match element.tag() {
            Tag::App => Some("app"),
            Tag::Ack => Some("ack"),
            Tag::Notes => Some("notes"),
            Tag::Glossary => Some("glossary"),
            Tag::Bio => Some("bio"),
            _ => None,
        };
        let section = Section {
            id: element.attribute("id"),
            sec_type: element.attribute("sec-type").or_else(|| name.map(str::to_owned)),
            label: plain_some(element.first(Tag::Label)),
            title: title.clone(),
            parent: context.section,
            region: context.region,
            byte_start: bytes.start,
            byte_end: bytes.end,
        };
        let index = position(&self.article.sections);
        self.article.sections.push(section);
        let depth = self.path.len();
        self.path.extend(title);
        self.blocks(element, Context { section: Some(index), ..context });
        self.path.truncate(depth);
    }

    fn list(&mut self, element: Element<'_, '_>, context: Context<'_>) {
        for item in element.elements() {
            if item.tag() != Tag::ListItem {
                self.block(item, context);
                continue;
            }
            let label = plain_some(item.first(Tag::Label));
            self.blocks(item, Context { kind: ParagraphKind::ListItem, label: label.as_deref(), ..context });
        }
    }

    fn definitions(&mut self, element: Element<'_, '_>, context: Context<'_>) {
        for item in element.elements() {
            if item.tag() != Tag::DefItem {
                self.block(item, context);
                continue;
            }
            let mut term = String::new();
            for part in item.elements() {
                match part.tag() {
                    Tag::Term => term = plain_all(part),
                    Tag::Def => self.definition(part, &term, context),
                    _ => {}
                }
            }
        }
    }

    fn definition(&mut self, element: Element<'_, '_>, term: &str, context: Context<'_>) {
        let bytes = element.bytes();
        self.article.definitions.push(Definition {
            term: term.to_owned(),
            text: plain_all(element),
            byte_start: bytes.start,
            byte_end: bytes.end,
        });
        let label = Some(term).filter(|term| !term.is_empty());
        self.blocks(element, Context { kind: ParagraphKind::Definition, label, ..context });
    }

    fn paragraph(&mut self, element: Element<'_, '_>, kind: ParagraphElement, context: Context<'_>) {
        let writer = if matches!(element.tag(), Tag::DispFormula | Tag::Math | Tag::TexMath) {
            super::text::write_formula(element)
        } else {
            write(element)
        };
        for (kind, byte) in writer.warnings {
            let detail = "none of the forms of this formula has words";
            warn(&mut self.article.warnings, self.source, kind, byte as usize, detail);
        }
        let index = position(&self.article.paragraphs);
        let section_path = self.budget.path(&self.path);
        let label = context.label.filter(|label| self.budget.take(label.len())).map(str::to_owned);
        self.article.paragraphs.push(Paragraph {
            id: element.attribute("id"),
            region: context.region,
            sub_article: context.sub_article,
            section: context.section,
            section_path,
            kind: context.kind,
            element: kind,
            label,
            within: context.within.map(|(paragraph, _)| paragraph),
            within_offset: context.within.map(|(_, offset)| offset),
            passage: writer.passage,
        });
        for (aside, offset) in writer.aside {
            self.block(aside, Context { within: Some((index, offset)), ..context });
        }
    }

    /// Where an element stands.
    pub fn place(&mut self, element: Element<'_, '_>, context: Context<'_>) -> Place {
        let bytes = element.bytes();
        Place {
            region: context.region,
            sub_article: context.sub_article,
            section_path: self.budget.path(&self.path),
            paragraph: context.within.map(|(paragraph, _)| paragraph),
            text_offset: context.within.map(|(_, offset)| offset),
            byte_start: bytes.start,
            byte_end: bytes.end,
        }
    }
}

/// Title and paragraphs of a caption.
pub fn caption(element: Option<Element<'_, '_>>) -> (Option<String>, Vec<Passage>) {
    let Some(element) = element else { return (None, Vec::new()) };
    if element.has_text() {
        return (None, vec![super::text::write_all(element)]);
    }
    let title = plain_some(element.first(Tag::Title));
    let others = element.elements().filter(|child| !matches!(child.tag(), Tag::Title | Tag::Label));
    let passages = others.map(super::text::write_all).filter(|passage| !passage.text.is_empty());
    (title, passages.collect())
}
