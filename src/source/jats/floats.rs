//! Figures, supplements and loose images, from wherever the publisher put them, linked to the paragraphs that mention them.

use super::Budget;
use super::body::{Context, Walk, caption};
use super::tags::Tag;
use super::text::{graphic_element, plain_all, plain_some};
use super::tree::Element;
use crate::record::article::{Anchor, Article, Figure, Graphic, LooseGraphic, Mention, Passage, SourceRun, Supplement};
use std::collections::BTreeMap;

/// What figures or tables of a group share.
#[derive(Clone, Debug, Default)]
pub struct Group {
    pub id: Option<String>,
    pub label: Option<String>,
    pub caption: Vec<Passage>,
}

/// Bytes of memory that passages take.
pub fn weight(passages: &[Passage]) -> usize {
    let weight = |passage: &Passage| {
        let parts = passage.runs.len() * size_of::<SourceRun>() + passage.mentions.len() * size_of::<Mention>();
        size_of::<Passage>() + passage.text.len() + parts
    };
    passages.iter().map(weight).sum()
}

impl Group {
    /// A copy for a member of the group, or nothing when there is no room.
    pub fn copy(group: Option<&Self>, budget: &mut Budget) -> Self {
        let Some(group) = group else { return Self::default() };
        let names = group.id.iter().chain(&group.label).map(String::len).sum::<usize>();
        if budget.take(weight(&group.caption) + names) { group.clone() } else { Self::default() }
    }

    pub fn read(element: Element<'_, '_>) -> Self {
        let caption = element.first(Tag::Caption);
        let mut passages = Vec::new();
        if let Some(title) = caption.and_then(|caption| caption.first(Tag::Title)) {
            passages.push(super::text::write_all(title));
        }
        passages.extend(super::body::caption(caption).1);
        Self { id: element.attribute("id"), label: plain_some(element.first(Tag::Label)), caption: passages }
    }
}

impl Walk<'_> {
    pub fn figure_group(&mut self, element: Element<'_, '_>, context: Context<'_>) {
        let group = Group::read(element);
        let own: Vec<Graphic> = own_graphics(element);
        if !own.is_empty() {
            // Images of the group itself are a figure under the group's own name.
            let (title, caption) = caption(element.first(Tag::Caption));
            let place = self.place(element, context);
            let (id, label) = (group.id.clone(), group.label.clone());
            self.article.figures.push(Figure { id, label, title, caption, graphics: own, place, ..Figure::default() });
        }
        for child in element.elements() {
            match child.tag() {
                Tag::Fig => self.figure(child, Some(&group), context),
                Tag::FigGroup => self.figure_group(child, context),
                Tag::TableWrap => self.table_wrap(child, None, context),
                Tag::Supplement => self.supplement(child, context),
                _ => {}
            }
        }
    }

    pub fn figure(&mut self, element: Element<'_, '_>, group: Option<&Group>, context: Context<'_>) {
        let (title, caption) = caption(element.first(Tag::Caption));
        let group = Group::copy(group, self.budget);
        let place = self.place(element, context);
        let figure = Figure {
            id: element.attribute("id"),
            label: plain_some(element.first(Tag::Label)),
            title,
            caption,
            group_id: group.id,
            group_label: group.label,
            group_caption: group.caption,
            graphics: graphics(element),
            alt_text: element
                .descendants()
                .find(|below| below.tag() == Tag::AltText)
                .and_then(|text| plain_some(Some(text))),
            attribution: plain_some(element.first(Tag::Attrib)),
            permissions: element.first(Tag::Permissions).map(plain_all),
            mentions: Vec::new(),
            place,
        };
        self.article.figures.push(figure);
        self.nested(element, context);
    }

    /// Records within a figure or table that are records of their own.
    pub fn nested(&mut self, element: Element<'_, '_>, context: Context<'_>) {
        for child in element.elements() {
            match child.tag() {
                Tag::Fig => self.figure(child, None, context),
                Tag::FigGroup => self.figure_group(child, context),
                Tag::TableWrap => self.table_wrap(child, None, context),
                Tag::TableWrapGroup => self.table_group(child, context),
                Tag::Supplement => self.supplement(child, context),
                Tag::P | Tag::Caption | Tag::BoxedText => self.nested(child, context),
                _ => {}
            }
        }
    }

    pub fn supplement(&mut self, element: Element<'_, '_>, context: Context<'_>) {
        let mut files = graphics(element);
        if element.attribute("href").is_some() {
            files.insert(0, graphic(element));
        }
        let media = element.descendants().find(|below| below.tag() == Tag::Media);
        let of = |tag: Tag| element.first(tag).or_else(|| media.and_then(|media| media.first(tag)));
        let (title, caption) = caption(of(Tag::Caption));
        let supplement = Supplement {
            id: element.attribute("id").or_else(|| media.and_then(|media| media.attribute("id"))),
            label: plain_some(of(Tag::Label)),
            title,
            caption,
            files,
            mentions: Vec::new(),
            place: self.place(element, context),
        };
        self.article.supplements.push(supplement);
    }

    pub fn loose_graphic(&mut self, element: Element<'_, '_>, context: Context<'_>) {
        let found = if element.tag() == Tag::Alternatives { alternatives(element) } else { Some(graphic(element)) };
        if let Some(graphic) = found {
            let place = self.place(element, context);
            self.article.loose_graphics.push(LooseGraphic { graphic, place });
        }
    }
}

fn is_graphic(tag: Tag) -> bool {
    matches!(tag, Tag::Graphic | Tag::InlineGraphic | Tag::Media)
}

fn graphic(element: Element<'_, '_>) -> Graphic {
    let mime_type = match (element.attribute("mimetype"), element.attribute("mime-subtype")) {
        (Some(kind), Some(subtype)) if !kind.contains('/') => Some(format!("{kind}/{subtype}")),
        (Some(kind), _) => Some(kind),
        (None, subtype) => subtype.map(|subtype| format!("/{subtype}")),
    };
    let href = element.attribute("href").or_else(|| element.first(Tag::InlineGraphic)?.attribute("href"));
    Graphic { href, element: graphic_element(element.tag()), mime_type, alternatives: Vec::new() }
}

/// One graphic with its other forms.
fn alternatives(element: Element<'_, '_>) -> Option<Graphic> {
    let mut choices = element.elements().filter(|child| is_graphic(child.tag()));
    let mut first = graphic(choices.next()?);
    first.alternatives = choices.filter_map(|choice| choice.attribute("href")).collect();
    Some(first)
}

/// Graphics directly in an element.
fn own_graphics(element: Element<'_, '_>) -> Vec<Graphic> {
    let mut found = Vec::new();
    for child in element.elements() {
        match child.tag() {
            Tag::Alternatives => found.extend(alternatives(child)),
            tag if is_graphic(tag) => found.push(graphic(child)),
            _ => {}
        }
    }
    found
}

/// Graphics of an element in order, without those of its captions, tables and inner figures.
pub fn graphics(element: Element<'_, '_>) -> Vec<Graphic> {
    let mut found = Vec::new();
    collect_graphics(element, &mut found);
    found
}

fn collect_graphics(element: Element<'_, '_>, found: &mut Vec<Graphic>) {
    for child in element.elements() {
        match child.tag() {
            Tag::Caption
            | Tag::Permissions
            | Tag::Label
            | Tag::Fig
            | Tag::FigGroup
            | Tag::TableWrap
            | Tag::TableWrapGroup => {}
            Tag::Table | Tag::Tgroup | Tag::TableWrapFoot | Tag::InlineFormula | Tag::DispFormula | Tag::Supplement => {
            }
            Tag::Alternatives => {
                found.extend(alternatives(child));
            }
            tag if is_graphic(tag) => found.push(graphic(child)),
            _ => collect_graphics(child, found),
        }
    }
}

/// Gives figures, tables and supplements the places in paragraphs that mention them.
pub fn link(article: &mut Article) {
    let mut anchors: BTreeMap<&str, Vec<Anchor>> = BTreeMap::new();
    for (position, paragraph) in article.paragraphs.iter().enumerate() {
        for mention in &paragraph.passage.mentions {
            if matches!(mention.ref_type.as_deref(), Some("bibr" | "aff" | "corresp")) {
                continue;
            }
            let paragraph = u32::try_from(position).unwrap_or(u32::MAX);
            let anchor = Anchor { paragraph, text_start: mention.text_start, text_end: mention.text_end };
            anchors.entry(&mention.rid).or_default().push(anchor);
        }
    }
    // Ids are unique in a valid article; where a thousand figures have one id, not all need all of its mentions.
    let mut left = anchors.values().map(Vec::len).sum::<usize>().saturating_mul(16).saturating_add(1 << 12);
    let mut of = |id: &Option<String>, group: Option<&String>| -> Vec<Anchor> {
        let lists = id.iter().chain(group).filter_map(|id| anchors.get(id.as_str()));
        let mut found: Vec<Anchor> = lists.flatten().take(left).copied().collect();
        left -= found.len();
        found.sort_by_key(|anchor| (anchor.paragraph, anchor.text_start, anchor.text_end));
        found.dedup();
        found
    };
    for figure in &mut article.figures {
        figure.mentions = of(&figure.id, figure.group_id.as_ref());
    }
    for table in &mut article.tables {
        table.mentions = of(&table.id, table.group_id.as_ref());
    }
    for supplement in &mut article.supplements {
        supplement.mentions = of(&supplement.id, None);
    }
}
