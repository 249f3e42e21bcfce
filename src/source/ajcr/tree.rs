//! A page as a flat list of elements and texts in document order: one walk over the parser's tree, in which every selector
//! is tried on the elements that can match it. Nothing is ever asked of the whole tree again.

use super::offsets::{MARK_ATTRIBUTE, MARK_END, MARK_START, Marked, Run};
use super::selectors::{PageRules, Part};
use scraper::{ElementRef, Html, Node};

/// Elements that are treated apart.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Tag {
    Heading(u8),
    P,
    List,
    Item,
    Definition,
    Quote,
    Preformatted,
    Table,
    RowGroup,
    TableHead,
    Row,
    Cell,
    HeaderCell,
    TableCaption,
    Break,
    Sup,
    Sub,
    Bold,
    Emphasis,
    A,
    Image,
    Meta,
    Title,
    Html,
    Base,
    /// Script, style and the like: no words.
    Hidden,
    /// Any other element that stands in a line of its own.
    Block,
    Inline,
}

impl Tag {
    fn of(name: &str) -> Self {
        match name {
            "h1" => Self::Heading(1),
            "h2" => Self::Heading(2),
            "h3" => Self::Heading(3),
            "h4" => Self::Heading(4),
            "h5" => Self::Heading(5),
            "h6" => Self::Heading(6),
            "p" => Self::P,
            "ul" | "ol" | "menu" | "dir" => Self::List,
            "li" => Self::Item,
            "dt" | "dd" => Self::Definition,
            "blockquote" => Self::Quote,
            "pre" | "listing" | "xmp" => Self::Preformatted,
            "table" => Self::Table,
            "tbody" | "tfoot" => Self::RowGroup,
            "thead" => Self::TableHead,
            "tr" => Self::Row,
            "td" => Self::Cell,
            "th" => Self::HeaderCell,
            "caption" => Self::TableCaption,
            "br" => Self::Break,
            "sup" => Self::Sup,
            "sub" => Self::Sub,
            "b" | "strong" => Self::Bold,
            "i" | "em" | "u" | "span" | "font" => Self::Emphasis,
            "a" => Self::A,
            "img" => Self::Image,
            "meta" => Self::Meta,
            "title" => Self::Title,
            "html" => Self::Html,
            "base" => Self::Base,
            "script" | "style" | "noscript" | "template" | "head" | "link" | "iframe" | "object" | "svg" | "audio"
            | "video" | "canvas" | "select" | "textarea" | "input" | "noembed" | "noframes" => Self::Hidden,
            "address" | "article" | "aside" | "body" | "center" | "colgroup" | "col" | "details" | "dialog" | "div"
            | "dl" | "fieldset" | "figcaption" | "figure" | "footer" | "form" | "header" | "hgroup" | "hr"
            | "legend" | "main" | "nav" | "optgroup" | "option" | "search" | "section" | "summary" => Self::Block,
            _ => Self::Inline,
        }
    }

    /// Whether the words before, in and behind it are apart from each other.
    pub fn is_block(self) -> bool {
        !matches!(
            self,
            Self::Break
                | Self::Sup
                | Self::Sub
                | Self::Bold
                | Self::Emphasis
                | Self::A
                | Self::Image
                | Self::Meta
                | Self::Title
                | Self::Base
                | Self::Hidden
                | Self::Inline
        )
    }
}

/// An element.
#[derive(Debug)]
pub struct Element<'a> {
    pub tag: Tag,
    reference: ElementRef<'a>,
    /// Bytes of the element, from its start tag to its end tag or, without one, to the end of what it holds.
    pub start: u32,
    pub end: u32,
    /// What its selectors say it is.
    pub parts: u32,
    /// The same of all that it holds.
    pub parts_below: u32,
    /// Whether an element in it stands in a line of its own.
    pub holds_block: bool,
}

impl<'a> Element<'a> {
    pub fn is(&self, part: Part) -> bool {
        self.parts & part.bit() != 0
    }

    pub fn attribute(&self, name: &str) -> Option<&'a str> {
        self.reference.value().attr(name)
    }

    /// `id`, or the `name` of an anchor.
    pub fn id(&self) -> Option<&'a str> {
        let id = self.reference.value().id().filter(|id| !id.trim().is_empty());
        id.or_else(|| if self.tag == Tag::A { self.attribute("name") } else { None })
    }
}

#[derive(Debug)]
pub enum Kind<'a> {
    Element(Element<'a>),
    /// With marks.
    Text(&'a str),
}

#[derive(Debug)]
pub struct Item<'a> {
    pub kind: Kind<'a>,
    /// Position behind the last item in it.
    pub after: usize,
}

/// A page.
#[derive(Debug)]
pub struct Tree<'a> {
    items: Vec<Item<'a>>,
}

impl<'a> Tree<'a> {
    /// Flattens what the parser made of a marked page.
    ///
    /// # Errors
    /// A page whose elements are nested deeper than the limit, whatever the tags said.
    pub fn read(
        html: &'a Html,
        source: &str,
        marked: &Marked,
        rules: &PageRules,
        max_depth: usize,
    ) -> Result<Self, String> {
        let mut items: Vec<Item<'a>> = Vec::with_capacity(2 * marked.tags.len());
        // Positions of the elements that are open.
        let mut open: Vec<usize> = Vec::new();
        let root = html.tree.root();
        let mut current = root.first_child();
        while let Some(node) = current {
            match node.value() {
                Node::Text(text) => {
                    let after = items.len() + 1;
                    if let Some(Item { kind: Kind::Element(parent), .. }) =
                        open.last().and_then(|parent| items.get_mut(*parent))
                        && let Some(run) = last_run(text, marked)
                    {
                        parent.end = parent.end.max(run.end);
                        if parent.start == u32::MAX
                            && let Some(run) = first_run(text, marked)
                        {
                            parent.start = run.start;
                        }
                    }
                    items.push(Item { kind: Kind::Text(text), after });
                }
                Node::Element(_) => {
                    if let Some(reference) = ElementRef::wrap(node) {
                        let element = read_element(reference, marked, rules);
                        let is_hidden = element.tag == Tag::Hidden;
                        let index = items.len();
                        // What `head` holds is read, but none of it is words.
                        let is_head = is_hidden && reference.value().name() == "head";
                        items.push(Item { kind: Kind::Element(element), after: index + 1 });
                        open.push(index);
                        if open.len() > max_depth.saturating_mul(2) {
                            return Err(format!("elements are nested deeper than {max_depth}"));
                        }
                        if (!is_hidden || is_head)
                            && let Some(child) = node.first_child()
                        {
                            current = Some(child);
                            continue;
                        }
                        close(&mut items, &mut open, source);
                    }
                }
                _ => {}
            }
            // On to the next sibling of this node or of what is around it.
            let mut here = node;
            current = loop {
                if let Some(next) = here.next_sibling() {
                    break Some(next);
                }
                let Some(parent) = here.parent().filter(|parent| parent.value().is_element()) else { break None };
                close(&mut items, &mut open, source);
                here = parent;
            };
        }
        while !open.is_empty() {
            close(&mut items, &mut open, source);
        }
        Ok(Self { items })
    }

    pub fn len(&self) -> usize {
        self.items.len()
    }

    pub fn item(&self, index: usize) -> Option<&Item<'a>> {
        self.items.get(index)
    }

    pub fn element(&self, index: usize) -> Option<&Element<'a>> {
        match &self.items.get(index)?.kind {
            Kind::Element(element) => Some(element),
            Kind::Text(_) => None,
        }
    }

    /// Positions of the children of an item, in order.
    pub fn children(&self, index: usize) -> impl Iterator<Item = usize> + '_ {
        let end = self.items.get(index).map_or(0, |item| item.after);
        let mut next = index + 1;
        std::iter::from_fn(move || {
            if next >= end {
                return None;
            }
            let child = next;
            next = self.items.get(child)?.after;
            Some(child)
        })
    }

    /// Positions and elements of all that an item holds, in order.
    pub fn below(&self, index: usize) -> impl Iterator<Item = (usize, &Element<'a>)> + '_ {
        let end = self.items.get(index).map_or(0, |item| item.after);
        (index + 1..end).filter_map(|position| Some((position, self.element(position)?)))
    }

    /// The outermost elements of a kind below an item, in order.
    pub fn outermost(&self, index: usize, is_wanted: impl Fn(&Element<'a>) -> bool) -> Vec<usize> {
        let end = self.items.get(index).map_or(0, |item| item.after);
        let (mut found, mut position) = (Vec::new(), index + 1);
        while position < end {
            let Some(item) = self.items.get(position) else { break };
            match &item.kind {
                Kind::Element(element) if is_wanted(element) => {
                    found.push(position);
                    position = item.after;
                }
                _ => position += 1,
            }
        }
        found
    }

    /// All elements that are a part of the page, in order.
    pub fn all(&self, part: Part) -> impl Iterator<Item = usize> + '_ {
        let is_part = move |index: &usize| self.element(*index).is_some_and(|element| element.is(part));
        (0..self.items.len()).filter(is_part)
    }

    pub fn first(&self, part: Part) -> Option<usize> {
        self.all(part).next()
    }
}

fn first_run(text: &str, marked: &Marked) -> Option<Run> {
    let (_, behind) = text.split_once(MARK_START)?;
    let (index, _) = behind.split_once(MARK_END)?;
    marked.runs.get(index.parse::<usize>().ok()?).copied()
}

/// The last run of words in a text.
fn last_run(text: &str, marked: &Marked) -> Option<Run> {
    let (before, _) = text.rsplit_once(MARK_END)?;
    let (_, index) = before.rsplit_once(MARK_START)?;
    marked.runs.get(index.parse::<usize>().ok()?).copied()
}

fn read_element<'a>(reference: ElementRef<'a>, marked: &Marked, rules: &PageRules) -> Element<'a> {
    let value = reference.value();
    let tag = Tag::of(value.name());
    let mark = value.attr(MARK_ATTRIBUTE).and_then(|mark| marked.tags.get(mark.parse::<usize>().ok()?));
    let (start, end) = mark.copied().unwrap_or((u32::MAX, 0));
    let parts = if tag == Tag::Hidden { 0 } else { rules.parts_of(&reference) };
    Element { tag, reference, start, end, parts, parts_below: 0, holds_block: false }
}

/// Ends the innermost open element, and tells the one around it.
fn close(items: &mut [Item<'_>], open: &mut Vec<usize>, source: &str) {
    let Some(index) = open.pop() else { return };
    let after = items.len();
    let outer = open.last().copied();
    let outer_end = match outer.and_then(|outer| items.get(outer)).map(|item| &item.kind) {
        Some(Kind::Element(outer)) => outer.end,
        _ => 0,
    };
    let Some(item) = items.get_mut(index) else { return };
    item.after = after;
    let Kind::Element(element) = &mut item.kind else { return };
    let name = element.reference.value().name();
    if element.start > element.end {
        // Neither the element nor anything in it has a place: it stands where the one around it has come to.
        (element.start, element.end) = (outer_end, outer_end);
    } else {
        let end = if element.tag == Tag::Hidden {
            hidden_end(source, element.end, name)
        } else {
            end_tag(source, element.end, name)
        };
        element.end = end.unwrap_or(element.end);
    }
    let (start, end) = (element.start, element.end);
    let parts = element.parts | element.parts_below;
    let holds_block = element.holds_block || element.tag.is_block();
    if let Some(Item { kind: Kind::Element(parent), .. }) = outer.and_then(|outer| items.get_mut(outer)) {
        parent.parts_below |= parts;
        parent.holds_block |= holds_block;
        parent.end = parent.end.max(end);
        // An element without a tag begins with what it holds.
        parent.start = parent.start.min(start);
    }
}

/// The end of an end tag that follows a byte, behind white space and comments.
fn end_tag(source: &str, from: u32, name: &str) -> Option<u32> {
    /// Of white space and of one comment: the tag of an element is where it ends.
    const MAX_SKIPPED: usize = 4096;
    let start = from as usize;
    let mut rest = source.get(start..)?;
    for _ in 0..4 {
        let blank = rest.bytes().take(MAX_SKIPPED).take_while(u8::is_ascii_whitespace).count();
        rest = rest.get(blank..)?;
        let Some(comment) = rest.strip_prefix("<!--") else { break };
        let length = comment.as_bytes().windows(3).take(MAX_SKIPPED).position(|end| end == b"-->")?;
        rest = comment.get(length + 3..)?;
    }
    let tail = after_end_tag(rest, name)?;
    let end = source.len() - tail.len();
    u32::try_from(end).ok()
}

/// What stands behind an end tag at the beginning of a text.
fn after_end_tag<'s>(text: &'s str, name: &str) -> Option<&'s str> {
    let own = text.strip_prefix("</")?;
    let tail =
        own.get(..name.len()).filter(|start| start.eq_ignore_ascii_case(name)).and_then(|_| own.get(name.len()..))?;
    let is_name = tail.starts_with(|c: char| c.is_ascii_whitespace() || matches!(c, '>' | '/'));
    if is_name { tail.split_once('>').map(|(_, after)| after) } else { None }
}

/// The end of an element whose content is not read.
fn hidden_end(source: &str, from: u32, name: &str) -> Option<u32> {
    if matches!(name, "link" | "input" | "head") {
        return None;
    }
    let rest = source.get(from as usize..)?;
    let tail = rest.match_indices("</").find_map(|(at, _)| after_end_tag(rest.get(at..)?, name))?;
    u32::try_from(source.len() - tail.len()).ok()
}
