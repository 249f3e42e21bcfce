//! One pass of the XML reader into a flat tree: nodes in document order that borrow from the file.
//!
//! A node says where it stands in the file. What an internal entity stands for is read in place, and all of it stands
//! where the reference stands.

use super::Limits;
use super::entities::{Bounds, Entities, Meaning, character_of};
use super::error::warn;
use super::error::{JatsError, JatsFault};
use super::tags::Tag;
use crate::record::article::{Warning, WarningKind};
use quick_xml::Reader;
use quick_xml::events::Event;
use quick_xml::events::attributes::Attributes;
use std::borrow::Cow;
use std::cell::OnceCell;
use std::ops::Range;

/// A node: an element or a piece of text.
#[derive(Clone, Copy, Debug)]
struct Node<'a> {
    tag: Tag,
    /// First byte in the file.
    start: u32,
    /// First byte after the node.
    end: u32,
    /// Index of the first node after this one and all below it.
    next: u32,
    /// Attributes of an element; the characters of a text.
    content: &'a str,
}

/// A document as nodes in document order.
#[derive(Debug)]
pub struct Tree<'a> {
    nodes: Vec<Node<'a>>,
    entities: &'a Entities,
    pub warnings: Vec<Warning>,
}

/// An element of a tree.
#[derive(Clone, Copy, Debug)]
pub struct Element<'t, 'a> {
    tree: &'t Tree<'a>,
    index: usize,
    node: &'t Node<'a>,
}

/// Text as a node gives it.
#[derive(Clone, Copy, Debug)]
pub enum Text<'a> {
    /// As it stands in the file.
    Verbatim(&'a str),
    /// What an entity stands for.
    Replaced(&'a str),
    /// What a numeric reference stands for.
    Character(char),
}

/// What stands directly in an element.
#[derive(Clone, Copy, Debug)]
pub enum Child<'t, 'a> {
    Element(Element<'t, 'a>),
    /// With its byte range in the file.
    Text(Text<'a>, u32, u32),
}

/// What grows while a document is read.
struct Building<'a> {
    source: &'a str,
    entities: &'a OnceCell<Entities>,
    limits: Limits,
    nodes: Vec<Node<'a>>,
    /// Indexes of the open elements.
    open: Vec<usize>,
    warnings: Vec<Warning>,
    entity_bytes: usize,
    roots: usize,
}

impl<'a> Tree<'a> {
    /// Reads a whole document. The cell receives what its internal subset declares.
    pub fn read(source: &'a str, entities: &'a OnceCell<Entities>, limits: Limits) -> Result<Self, JatsError> {
        let nodes = Vec::with_capacity(source.len() / 24);
        let open = Vec::with_capacity(32);
        let mut building =
            Building { source, entities, limits, nodes, open, warnings: Vec::new(), entity_bytes: 0, roots: 0 };
        building.read(source, None, 0)?;
        if building.roots == 0 {
            return Err(JatsError::at(JatsFault::NotXml, source.as_bytes(), 0, "there is no element"));
        }
        let entities = entities.get_or_init(Entities::default);
        let mut warnings = building.warnings;
        for (byte, detail) in &entities.ignored {
            warn(&mut warnings, source, WarningKind::SubsetIgnored, *byte, detail.clone());
        }
        Ok(Self { nodes: building.nodes, entities, warnings })
    }

    /// The outermost element.
    pub fn root(&self) -> Option<Element<'_, 'a>> {
        let index = self.nodes.iter().position(|node| !is_text(node.tag))?;
        Some(Element { tree: self, index, node: self.nodes.get(index)? })
    }
}

fn is_text(tag: Tag) -> bool {
    matches!(tag, Tag::Text | Tag::Replaced | Tag::Character)
}

/// White space of XML.
pub fn is_space(byte: u8) -> bool {
    matches!(byte, b' ' | b'\n' | b'\t' | b'\r')
}

/// A tag name without its namespace prefix.
fn local(name: &[u8]) -> &[u8] {
    match name.iter().position(|byte| *byte == b':') {
        Some(colon) => name.get(colon + 1..).unwrap_or_default(),
        None => name,
    }
}

impl<'a> Building<'a> {
    fn fail<T>(&self, fault: JatsFault, byte: usize, detail: impl Into<String>) -> Result<T, JatsError> {
        Err(JatsError::at(fault, self.source.as_bytes(), byte, detail))
    }

    /// Reads a text: the file, or what an entity stands for, which then all stands at `place`.
    fn read(&mut self, text: &'a str, place: Option<(u32, u32)>, entity_depth: usize) -> Result<(), JatsError> {
        let floor = self.open.len();
        // The reader steps over a byte-order mark without counting it.
        let mark = if text.starts_with('\u{feff}') { 3 } else { 0 };
        let mut reader = Reader::from_str(text.get(mark..).unwrap_or_default());
        let config = reader.config_mut();
        // An end tag is compared with its start tag by the reader; entities are balanced by `floor`.
        config.check_end_names = true;
        config.check_comments = false;
        let position = |offset: u64| usize::try_from(offset).unwrap_or(usize::MAX).saturating_add(mark);
        let mut start = mark;
        loop {
            let event = match reader.read_event() {
                Ok(event) => event,
                Err(error) => {
                    let byte = place.map_or(position(reader.error_position()), |place| place.0 as usize);
                    return self.fail(JatsFault::NotXml, byte, error.to_string());
                }
            };
            let end = position(reader.buffer_position());
            let (from, to) = match place {
                Some(place) => place,
                None => (narrow(start), narrow(end)),
            };
            match event {
                Event::Text(content) => {
                    let content = text.get(end.saturating_sub(content.len())..end).unwrap_or_default();
                    if self.open.is_empty() {
                        if !content.bytes().all(is_space) {
                            return self.fail(JatsFault::NotXml, start, "text stands outside of the root element");
                        }
                    } else {
                        self.text(if place.is_some() { Tag::Replaced } else { Tag::Text }, from, to, content);
                    }
                }
                Event::Start(tag) => {
                    let content = text.get(start + 1..start + 1 + tag.len()).unwrap_or_default();
                    self.start(tag.name().as_ref(), content, from, to)?;
                    if self.open.len() > self.limits.max_depth {
                        let detail = format!("elements are nested deeper than {}", self.limits.max_depth);
                        return self.fail(JatsFault::TooDeep, from as usize, detail);
                    }
                }
                Event::Empty(tag) => {
                    let content = text.get(start + 1..start + 1 + tag.len()).unwrap_or_default();
                    self.start(tag.name().as_ref(), content, from, to)?;
                    self.close(to);
                }
                Event::End(_) => {
                    if self.open.len() <= floor {
                        return self.fail(JatsFault::NotXml, from as usize, "an end tag closes nothing");
                    }
                    self.close(to);
                }
                Event::CData(content) => {
                    if self.open.is_empty() {
                        return self.fail(JatsFault::NotXml, start, "text stands outside of the root element");
                    }
                    // `<![CDATA[` before, `]]>` after.
                    let content = text.get(start + 9..start + 9 + content.len()).unwrap_or_default();
                    match place {
                        Some((from, to)) => self.text(Tag::Replaced, from, to, content),
                        None => self.text(Tag::Text, narrow(start + 9), narrow(end.saturating_sub(3)), content),
                    }
                }
                Event::GeneralRef(_) => {
                    let name = text.get(start + 1..end.saturating_sub(1)).unwrap_or_default();
                    if self.open.is_empty() {
                        return self.fail(JatsFault::NotXml, start, "text stands outside of the root element");
                    }
                    self.reference(name, from, to, entity_depth)?;
                }
                Event::DocType(declaration) if place.is_none() && self.roots == 0 => {
                    let content = text.get(end.saturating_sub(1 + declaration.len())..end.saturating_sub(1));
                    let bounds = Bounds { max_depth: ENTITY_DEPTH, max_bytes: self.limits.max_entity_bytes };
                    let entities = Entities::read(self.source, content.unwrap_or_default(), start, bounds)?;
                    if self.entities.set(entities).is_err() {
                        return self.fail(JatsFault::NotXml, start, "there are two document type declarations");
                    }
                }
                Event::DocType(_) => {
                    return self.fail(
                        JatsFault::NotXml,
                        start,
                        "a document type declaration stands after the root element",
                    );
                }
                Event::Decl(declaration) => {
                    if let Some(Ok(encoding)) = declaration.encoding() {
                        self.check_encoding(&encoding, start)?;
                    }
                }
                Event::Comment(_) | Event::PI(_) => {}
                Event::Eof => break,
            }
            start = end;
        }
        if self.open.len() > floor {
            let open = self.open.last().and_then(|index| self.nodes.get(*index));
            let byte = open.map_or(text.len(), |node| node.start as usize);
            return self.fail(JatsFault::NotXml, byte, "an element is not closed");
        }
        Ok(())
    }

    fn check_encoding(&self, encoding: &[u8], byte: usize) -> Result<(), JatsError> {
        let known: [&[u8]; 3] = [b"utf-8", b"utf8", b"us-ascii"];
        if known.iter().any(|name| name.eq_ignore_ascii_case(encoding)) || self.source.is_ascii() {
            return Ok(());
        }
        let detail = format!("the encoding {} is declared; UTF-8 is expected", String::from_utf8_lossy(encoding));
        self.fail(JatsFault::Encoding, byte, detail)
    }

    fn text(&mut self, tag: Tag, start: u32, end: u32, content: &'a str) {
        let next = narrow(self.nodes.len() + 1);
        self.nodes.push(Node { tag, start, end, next, content });
    }

    fn start(&mut self, name: &[u8], content: &'a str, start: u32, end: u32) -> Result<(), JatsError> {
        if self.open.is_empty() {
            self.roots += 1;
            if self.roots > 1 {
                return self.fail(JatsFault::NotXml, start as usize, "a second root element");
            }
        }
        let attributes = content.get(name.len()..).unwrap_or_default();
        if !attributes.is_empty() {
            // Looking for repeated names costs an allocation, and a single one cannot be repeated.
            let has_several = attributes.bytes().filter(|byte| *byte == b'=').nth(1).is_some();
            for (number, attribute) in (1..).zip(Attributes::new(attributes, 0).with_checks(has_several)) {
                if number > MAX_ATTRIBUTES {
                    let detail = format!("an element with more than {MAX_ATTRIBUTES} attributes");
                    return self.fail(JatsFault::TooLarge, start as usize, detail);
                }
                if let Err(error) = attribute {
                    return self.fail(JatsFault::NotXml, start as usize, format!("attributes: {error}"));
                }
            }
        }
        self.open.push(self.nodes.len());
        self.nodes.push(Node { tag: Tag::from_name(local(name)), start, end, next: 0, content: attributes });
        Ok(())
    }

    fn close(&mut self, end: u32) {
        let next = narrow(self.nodes.len());
        if let Some(node) = self.open.pop().and_then(|index| self.nodes.get_mut(index)) {
            node.end = end;
            node.next = next;
        }
    }

    fn reference(&mut self, name: &'a str, from: u32, to: u32, entity_depth: usize) -> Result<(), JatsError> {
        if name.starts_with('#') {
            if character_of(name).is_none() {
                return self.fail(JatsFault::NotXml, from as usize, format!("&{name}; is no character of XML"));
            }
            self.text(Tag::Character, from, to, name);
            return Ok(());
        }
        let entities: &'a Entities = self.entities.get_or_init(Entities::default);
        match entities.meaning(name) {
            Meaning::Text(text) => {
                self.grow(text.len(), from)?;
                self.text(Tag::Replaced, from, to, text);
            }
            Meaning::Markup(text) => {
                if entity_depth >= ENTITY_DEPTH {
                    let detail = format!("the entity &{name}; contains others deeper than {ENTITY_DEPTH}, or itself");
                    return self.fail(JatsFault::EntityLimit, from as usize, detail);
                }
                self.grow(text.len(), from)?;
                self.read(text, Some((from, to)), entity_depth + 1)?;
            }
            meaning => {
                let why = if meaning == Meaning::External {
                    "is declared by an address, which is not fetched"
                } else {
                    "is not known"
                };
                let detail = format!("the entity &{name}; {why}");
                warn(&mut self.warnings, self.source, WarningKind::UnknownEntity, from as usize, detail);
                self.text(Tag::Replaced, from, to, UNKNOWN);
            }
        }
        Ok(())
    }

    fn grow(&mut self, bytes: usize, byte: u32) -> Result<(), JatsError> {
        // Every use also costs a node, so short texts count as one.
        self.entity_bytes = self.entity_bytes.saturating_add(bytes);
        if self.entity_bytes > self.limits.max_entity_bytes.saturating_add(self.source.len()) {
            let detail = format!("entities grow beyond {} bytes", self.limits.max_entity_bytes);
            return self.fail(JatsFault::EntityLimit, byte as usize, detail);
        }
        Ok(())
    }
}

/// What stands in a text for an entity that nobody knows.
pub const UNKNOWN: &str = "\u{fffd}";
/// Entities within entities.
const ENTITY_DEPTH: usize = 16;
/// Of one element; each is compared with all others for repeated names.
const MAX_ATTRIBUTES: usize = 256;

/// Files are smaller than 4 GB, which [`super::read`] has checked.
fn narrow(offset: usize) -> u32 {
    u32::try_from(offset).unwrap_or(u32::MAX)
}

impl<'t, 'a> Element<'t, 'a> {
    pub fn tag(self) -> Tag {
        self.node.tag
    }

    /// Bytes in the file, tags included.
    pub fn bytes(self) -> Range<u32> {
        self.node.start..self.node.end
    }

    /// What stands directly in this element, in document order.
    pub fn children(self) -> Children<'t, 'a> {
        Children { tree: self.tree, index: self.index + 1, end: self.node.next as usize }
    }

    /// The elements that stand directly in this one.
    pub fn elements(self) -> impl Iterator<Item = Element<'t, 'a>> {
        self.children().filter_map(|child| match child {
            Child::Element(element) => Some(element),
            Child::Text(..) => None,
        })
    }

    /// The first element of a kind directly in this one.
    pub fn first(self, tag: Tag) -> Option<Element<'t, 'a>> {
        self.elements().find(|element| element.tag() == tag)
    }

    /// All elements below this one, in document order.
    pub fn descendants(self) -> impl Iterator<Item = Element<'t, 'a>> {
        let tree = self.tree;
        (self.index + 1..self.node.next as usize).filter_map(move |index| {
            let node = tree.nodes.get(index)?;
            (!is_text(node.tag)).then_some(Element { tree, index, node })
        })
    }

    /// An attribute by local name, with white space and references resolved.
    pub fn attribute(self, name: &str) -> Option<String> {
        if self.node.content.len() <= name.len() {
            return None;
        }
        for attribute in Attributes::new(self.node.content, 0).with_checks(false).flatten() {
            if local(attribute.key.as_ref()) == name.as_bytes() {
                let raw = match attribute.value {
                    Cow::Borrowed(value) => std::str::from_utf8(value).unwrap_or_default(),
                    Cow::Owned(_) => return None,
                };
                return Some(self.unescape(raw));
            }
        }
        None
    }

    /// An attribute that is copied into many records, so that a huge one is none.
    pub fn short_attribute(self, name: &str) -> Option<String> {
        self.attribute(name).filter(|value| value.len() <= 256)
    }

    fn unescape(self, raw: &str) -> String {
        if !raw.contains(['&', '\n', '\t', '\r']) {
            return raw.to_owned();
        }
        let mut text = String::with_capacity(raw.len());
        let mut rest = raw;
        while let Some((before, after)) = rest.split_once('&') {
            text.push_str(before);
            let Some((name, after)) = after.split_once(';') else {
                text.push('&');
                rest = after;
                continue;
            };
            match (character_of(name), self.tree.entities.meaning(name)) {
                (Some(character), _) => text.push(character),
                (None, Meaning::Text(replaced)) => text.push_str(replaced),
                _ => text.push_str(UNKNOWN),
            }
            rest = after;
        }
        text.push_str(rest);
        text.replace(['\n', '\t', '\r'], " ")
    }

    /// The text of an element that holds nothing but one text, as most elements of metadata do.
    pub fn only_text(self) -> Option<&'a str> {
        let child = self.tree.nodes.get(self.index + 1)?;
        (child.tag == Tag::Text && self.node.next as usize == self.index + 2).then_some(child.content)
    }

    /// Is there text directly in this element, other than white space?
    pub fn has_text(self) -> bool {
        self.children().any(|child| match child {
            Child::Text(Text::Verbatim(text) | Text::Replaced(text), ..) => !text.bytes().all(is_space),
            Child::Text(Text::Character(character), ..) => !character.is_ascii_whitespace(),
            Child::Element(_) => false,
        })
    }
}

/// Walks what stands directly in an element.
#[derive(Clone, Debug)]
pub struct Children<'t, 'a> {
    tree: &'t Tree<'a>,
    index: usize,
    end: usize,
}

impl<'t, 'a> Iterator for Children<'t, 'a> {
    type Item = Child<'t, 'a>;

    fn next(&mut self) -> Option<Self::Item> {
        if self.index >= self.end {
            return None;
        }
        let index = self.index;
        let node = self.tree.nodes.get(index)?;
        self.index = (node.next as usize).max(index + 1);
        let text = match node.tag {
            Tag::Text => Text::Verbatim(node.content),
            Tag::Replaced => Text::Replaced(node.content),
            Tag::Character => Text::Character(character_of(node.content).unwrap_or('\u{fffd}')),
            _ => return Some(Child::Element(Element { tree: self.tree, index, node })),
        };
        Some(Child::Text(text, node.start, node.end))
    }
}
