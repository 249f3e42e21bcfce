//! Sections, paragraphs, figures, tables and references of a page, in one walk over what holds the full text.

use super::offsets::PageLimits;
use super::selectors::{PageRules, Part};
use super::text::{Words, Writer, part_of};
use super::tree::{Element, Kind, Tag};
use crate::record::article::{
    Anchor, Article, Figure, Graphic, GraphicElement, LooseGraphic, Mention, Paragraph, ParagraphElement,
    ParagraphKind, Passage, Place, Reference, Region, Section, Table,
};
use regex::Regex;
use std::collections::BTreeMap;

/// Bytes of a heading; what is longer is a paragraph that looks like one.
const MAX_HEADING: usize = 400;
/// Level of a heading that is a bold paragraph below the parts of an article: below all others.
const SUB_LEVEL: u8 = 7;
/// Level of a heading that is a bold paragraph and names a part of an article.
const MAIN_LEVEL: u8 = 2;

/// Flag of an article with figures or tables that are under other numbers than their anchors say.
pub const LABEL_CONFLICT: &str = "label_conflict";

/// Reads what the page's body and list of references hold. Whether there is a body.
pub fn read(words: Words<'_, '_>, limits: PageLimits, article: &mut Article, flags: &mut Vec<String>) -> bool {
    let tree = words.tree;
    let mut walk = Walk {
        words,
        limits,
        article,
        flags,
        sections: Vec::new(),
        path: Vec::new(),
        region: Region::Body,
        is_in_references: false,
        after: 0,
        titles_left: words.source.len().saturating_mul(8).saturating_add(1 << 22),
    };
    let bodies: Vec<usize> = tree.all(Part::Body).collect();
    for index in &bodies {
        let Some(item) = tree.item(*index) else { continue };
        // One within another is read with it.
        if *index >= walk.after {
            walk.after = item.after;
            walk.flow(*index, ParagraphKind::Running);
        }
    }
    walk.end_sections(0);
    walk.floats();
    let lists: Vec<usize> = tree.all(Part::References).collect();
    let mut after = 0;
    for index in lists {
        let Some(item) = tree.item(index) else { continue };
        if index >= after {
            after = item.after;
            walk.references(index);
        }
    }
    walk.name_assets();
    walk.mentions();
    !bodies.is_empty()
}

/// What is no running text though it stands in it: read for itself.
fn read_elsewhere() -> u32 {
    [Part::References, Part::Abstract, Part::Keywords, Part::Title, Part::Authors, Part::Citation, Part::License]
        .into_iter()
        .fold(0, |parts, part| parts | part.bit())
}

/// What is a figure or a table.
fn floats() -> u32 {
    Part::Figure.bit() | Part::Table.bit()
}

fn position<T>(list: &[T]) -> u32 {
    u32::try_from(list.len()).unwrap_or(u32::MAX)
}

pub(super) struct Walk<'p, 'a, 'r> {
    pub words: Words<'p, 'a>,
    pub limits: PageLimits,
    pub article: &'r mut Article,
    flags: &'r mut Vec<String>,
    /// Level and position of the sections that are open.
    sections: Vec<(u8, u32)>,
    /// Titles of the same.
    path: Vec<String>,
    region: Region,
    is_in_references: bool,
    /// Position behind the body that is read.
    after: usize,
    /// Bytes of titles that may still be told with paragraphs below them: without a bound, a small page could ask for any
    /// amount of memory.
    titles_left: usize,
}

impl<'p, 'a> Walk<'p, 'a, '_> {
    fn rules(&self) -> &'p PageRules {
        self.words.rules
    }

    /// Reads what stands in an element that holds blocks.
    fn flow(&mut self, index: usize, kind: ParagraphKind) {
        let tree = self.words.tree;
        let mut line: Vec<usize> = Vec::new();
        for child in tree.children(index) {
            let is_line = match tree.item(child).map(|item| &item.kind) {
                Some(Kind::Text(_)) => true,
                Some(Kind::Element(element)) => !self.is_block(element),
                None => false,
            };
            if is_line {
                line.push(child);
                continue;
            }
            self.line(&mut line, kind);
            self.block(child, kind);
        }
        self.line(&mut line, kind);
    }

    fn is_block(&self, element: &Element<'_>) -> bool {
        let apart = floats() | Part::LeaveOut.bit() | Part::References.bit();
        element.tag.is_block() || element.holds_block || element.parts & apart != 0
    }

    /// Words that stand in no paragraph.
    fn line(&mut self, line: &mut Vec<usize>, kind: ParagraphKind) {
        if !line.is_empty() {
            let writer = self.words.passage_of(line);
            self.paragraph(None, writer, ParagraphElement::Stray, kind);
            line.clear();
        }
    }

    fn block(&mut self, index: usize, kind: ParagraphKind) {
        let tree = self.words.tree;
        let Some(element) = tree.element(index) else { return };
        if element.is(Part::LeaveOut) || element.tag == Tag::Hidden {
            return;
        }
        if element.parts & read_elsewhere() != 0 {
            return;
        }
        if element.tag == Tag::Table {
            if element.parts_below & floats() != 0 {
                // A table for looks.
                return self.flow(index, kind);
            }
            return self.table(index);
        }
        if element.parts & floats() != 0 {
            if element.parts_below & floats() != 0 && !self.has_own_caption(index) {
                // Around several of them.
                return self.flow(index, kind);
            }
            return self.asset(index);
        }
        let (within, own) = match element.tag {
            Tag::Heading(level) => return self.heading(index, level),
            Tag::Item => (ParagraphKind::ListItem, ParagraphElement::P),
            Tag::Definition => (ParagraphKind::Definition, ParagraphElement::P),
            Tag::Quote => (ParagraphKind::Quotation, ParagraphElement::P),
            Tag::Preformatted => (kind, ParagraphElement::Preformat),
            Tag::P => (kind, ParagraphElement::P),
            _ => return self.flow(index, kind),
        };
        if self.is_in_references {
            if element.tag == Tag::Item || element.tag == Tag::P {
                self.reference(index);
            } else {
                self.flow(index, within);
            }
            return;
        }
        if element.holds_block || element.parts_below & floats() != 0 {
            return self.flow(index, within);
        }
        if let Some(level) = self.bold_heading(index) {
            return self.heading(index, level);
        }
        let writer = self.words.passage(index);
        self.paragraph(element.id(), writer, own, within);
    }

    /// Whether a figure or table around others has a caption that is not theirs.
    fn has_own_caption(&self, index: usize) -> bool {
        let tree = self.words.tree;
        tree.children(index).any(|child| tree.element(child).is_some_and(|element| element.is(Part::Caption)))
    }

    /// The level of a paragraph that is all bold and reads like a heading.
    fn bold_heading(&self, index: usize) -> Option<u8> {
        let tree = self.words.tree;
        let mut has_bold = false;
        for child in tree.children(index) {
            match tree.item(child).map(|item| &item.kind) {
                Some(Kind::Text(text)) if text.trim().is_empty() => {}
                Some(Kind::Element(element)) => match element.tag {
                    Tag::Bold => has_bold = true,
                    Tag::Break => {}
                    Tag::A if tree.children(child).next().is_none() => {}
                    Tag::Emphasis => has_bold |= self.bold_heading(child).is_some(),
                    _ => return None,
                },
                // Bare words: punctuation alone.
                Some(Kind::Text(text)) if !super::page::unmarked(text).chars().any(char::is_alphanumeric) => {}
                Some(Kind::Text(_)) => return None,
                None => {}
            }
        }
        if !has_bold {
            return None;
        }
        let text = self.words.plain(index);
        let patterns = &self.rules().patterns;
        if text.len() > MAX_HEADING {
            None
        } else if patterns.main_heading.is_match(&text) {
            Some(MAIN_LEVEL)
        } else if patterns.sub_heading.is_match(&text) {
            // Beside a heading of its own kind, whatever element that is.
            let mut open = self.sections.iter().zip(&self.path);
            let beside = open.find(|((level, _), title)| *level > MAIN_LEVEL && patterns.sub_heading.is_match(title));
            Some(beside.map_or(SUB_LEVEL, |((level, _), _)| *level))
        } else {
            None
        }
    }

    fn heading(&mut self, index: usize, level: u8) {
        let Some(element) = self.words.tree.element(index) else { return };
        let writer = self.words.passage(index);
        if writer.passage.text.len() > MAX_HEADING {
            return self.paragraph(element.id(), writer, ParagraphElement::P, ParagraphKind::Running);
        }
        self.loose_graphics(&writer.images, None);
        let title = writer.passage.text;
        if title.is_empty() {
            return;
        }
        self.end_sections_at(level, element.start);
        if self.sections.is_empty() {
            let is_back = self.rules().patterns.back_heading.is_match(&title);
            self.region = if is_back { Region::Back } else { Region::Body };
        }
        let folded = title.trim_matches(|c: char| !c.is_alphanumeric()).to_lowercase();
        self.is_in_references = self.region == Region::Back && folded == "references";
        let section = Section {
            id: element.id().map(str::to_owned),
            sec_type: None,
            label: None,
            title: Some(title.clone()),
            parent: self.sections.last().map(|(_, section)| *section),
            region: self.region,
            byte_start: element.start,
            byte_end: element.end,
        };
        self.sections.push((level, position(&self.article.sections)));
        self.article.sections.push(section);
        self.path.push(title);
    }

    /// Ends sections of a level and below at a byte.
    fn end_sections_at(&mut self, level: u8, byte: u32) {
        while let Some((open, section)) = self.sections.last().copied() {
            if open < level {
                break;
            }
            self.sections.pop();
            self.path.pop();
            if let Some(section) = self.article.sections.get_mut(section as usize) {
                section.byte_end = section.byte_end.max(byte);
            }
        }
    }

    /// Ends all sections of a level and below with the body.
    fn end_sections(&mut self, level: u8) {
        let tree = self.words.tree;
        let last = tree.all(Part::Body).filter_map(|index| tree.element(index)).map(|element| element.end).max();
        self.end_sections_at(level, last.unwrap_or(0));
    }

    fn paragraph(&mut self, id: Option<&str>, writer: Writer<'_, '_>, element: ParagraphElement, kind: ParagraphKind) {
        if writer.passage.text.is_empty() || self.is_in_references {
            return self.loose_graphics(&writer.images, None);
        }
        let index = position(&self.article.paragraphs);
        let section_path = self.titles();
        self.article.paragraphs.push(Paragraph {
            id: id.map(str::to_owned),
            region: self.region,
            sub_article: None,
            section: self.sections.last().map(|(_, section)| *section),
            section_path,
            kind,
            element,
            label: None,
            within: None,
            within_offset: None,
            passage: writer.passage,
        });
        self.loose_graphics(&writer.images, Some(index));
    }

    fn loose_graphics(&mut self, images: &[usize], paragraph: Option<u32>) {
        for index in images {
            let Some(element) = self.words.tree.element(*index) else { continue };
            let place = Place { paragraph, ..self.place(element) };
            let graphic = Graphic {
                href: image_source(element).map(|href| self.address(href)),
                element: GraphicElement::InlineGraphic,
                ..Graphic::default()
            };
            if graphic.href.is_some() {
                self.article.loose_graphics.push(LooseGraphic { graphic, place });
            }
        }
    }

    /// Titles of the sections that are open.
    fn titles(&mut self) -> Vec<String> {
        let bytes = self.path.iter().map(|title| title.len() + size_of::<String>()).sum();
        match self.titles_left.checked_sub(bytes) {
            Some(left) => {
                self.titles_left = left;
                self.path.clone()
            }
            None => Vec::new(),
        }
    }

    fn place(&mut self, element: &Element<'_>) -> Place {
        Place {
            region: self.region,
            section_path: self.titles(),
            paragraph: None,
            text_offset: None,
            sub_article: None,
            byte_start: element.start.min(element.end),
            byte_end: element.end,
        }
    }

    /// An address with host, where the page gives it without.
    fn address(&self, href: &str) -> String {
        let href = href.trim();
        self.rules().base_address.join(href).map_or_else(|_| href.to_owned(), |url| url.to_string())
    }

    /// A figure or a table with its caption. What it is, its label says before its class does.
    fn asset(&mut self, index: usize) {
        let tree = self.words.tree;
        let Some(element) = tree.element(index) else { return };
        let patterns = &self.rules().patterns;
        let grids = tree.outermost(index, |below| below.tag == Tag::Table);
        let captions = tree.outermost(index, |below| below.is(Part::Caption) || below.tag == Tag::TableCaption);
        let notes = tree.outermost(index, |below| below.is(Part::Note));
        let passage = |index: &usize| self.words.passage(*index).passage;
        let mut caption: Vec<Passage> = captions.iter().map(passage).filter(|one| !one.text.is_empty()).collect();
        if caption.is_empty() && grids.is_empty() {
            // Words without a class of their own.
            let whole = self.words.passage(index).passage;
            caption.extend(Some(whole).filter(|passage| !passage.text.is_empty()));
        }
        let first = caption.first().map(|passage| passage.text.as_str()).unwrap_or_default();
        let (is_table, found) = match (patterns.figure_label.find(first), patterns.table_label.find(first)) {
            (Some(found), None) => (false, Some(found)),
            (None, Some(found)) => (true, Some(found)),
            (figure, _) => (element.is(Part::Table) && !element.is(Part::Figure) || !grids.is_empty(), figure),
        };
        let label = found.map(|found| found.as_str().to_owned());
        if let (Some(label), Some(passage)) = (&label, caption.first_mut()) {
            let behind = passage.text.get(label.len()..).unwrap_or_default();
            let mark = behind.trim_start_matches(['.', ':', ' ', '-', '–', '—', '|']);
            let from = passage.text.len() - mark.len();
            *passage = part_of(passage, from..passage.text.len());
        }
        caption.retain(|passage| !passage.text.is_empty());
        let footnotes: Vec<Passage> = notes.iter().map(passage).filter(|one| !one.text.is_empty()).collect();
        let graphics = self.graphics(index);
        let place = self.place(element);
        let id = self.own_id(index, is_table);
        if is_table || !grids.is_empty() {
            let common = Table { id, label, caption, footnotes, graphics, place, ..Table::default() };
            return self.push_tables(&grids, common);
        }
        let alt_text = tree
            .below(index)
            .filter(|(_, below)| below.tag == Tag::Image)
            .find_map(|(_, below)| below.attribute("alt"))
            .map(super::page::unmarked)
            .filter(|text| !text.is_empty());
        self.article.figures.push(Figure { id, label, caption, graphics, alt_text, place, ..Figure::default() });
    }

    /// Figures and tables that stand outside of the full text, if their labels say that they are.
    fn floats(&mut self) {
        let tree = self.words.tree;
        let patterns = &self.rules().patterns;
        self.region = Region::Floats;
        let others = read_elsewhere() | Part::Body.bit() | Part::LeaveOut.bit();
        let mut next = 0;
        while let Some(item) = tree.item(next) {
            let index = next;
            next += 1;
            let Kind::Element(element) = &item.kind else { continue };
            if element.parts & others != 0 {
                next = item.after;
            } else if element.parts & floats() != 0 {
                let caption = tree.outermost(index, |below| below.is(Part::Caption)).into_iter().next();
                let words = caption.map(|caption| self.words.plain(caption)).unwrap_or_default();
                if patterns.figure_label.is_match(&words) || patterns.table_label.is_match(&words) {
                    next = item.after;
                    self.asset(index);
                }
            }
        }
    }

    /// A table without anything around it.
    fn table(&mut self, index: usize) {
        let tree = self.words.tree;
        let Some(element) = tree.element(index) else { return };
        let pattern = &self.rules().patterns.table_label;
        let captions = tree.outermost(index, |below| below.is(Part::Caption) || below.tag == Tag::TableCaption);
        let mut caption: Vec<Passage> = captions.iter().map(|index| self.words.passage(*index).passage).collect();
        let mut label = None;
        if let Some(passage) = caption.first_mut()
            && let Some(found) = pattern.find(&passage.text)
        {
            label = Some(found.as_str().to_owned());
            let mark = passage.text.get(found.end()..).unwrap_or_default().trim_start_matches(['.', ':', ' ']);
            let from = passage.text.len() - mark.len();
            *passage = part_of(passage, from..passage.text.len());
        }
        caption.retain(|passage| !passage.text.is_empty());
        let id = self.own_id(index, true);
        let common = Table { id, label, caption, place: self.place(element), ..Table::default() };
        self.push_tables(&[index], common);
    }

    /// An id on the figure or table itself, or on an anchor in it.
    fn own_id(&self, index: usize, is_table: bool) -> Option<String> {
        let tree = self.words.tree;
        let patterns = &self.rules().patterns;
        let pattern = if is_table { &patterns.table_id } else { &patterns.figure_id };
        let own = tree.element(index).and_then(Element::id);
        let below = tree.below(index).filter_map(|(_, below)| below.id());
        let fitting = own.into_iter().chain(below).find(|id| pattern.is_match(id));
        fitting.or(own).map(str::to_owned)
    }

    /// The images of an element in order, in their largest form.
    fn graphics(&self, index: usize) -> Vec<Graphic> {
        let tree = self.words.tree;
        let pattern = &self.rules().patterns.image_address;
        let mut found: Vec<Graphic> = Vec::new();
        // The link around what is read, and where it ends.
        let mut link: Option<(&str, usize)> = None;
        let mut push = |href: Option<&str>, others: Vec<&str>| {
            let href = href.map(|href| self.address(href));
            let is_known = found.iter().any(|known| known.href == href);
            if href.is_some() && !is_known {
                let alternatives = others.into_iter().map(|href| self.address(href)).collect();
                found.push(Graphic { href, alternatives, ..Graphic::default() });
            }
        };
        for (position, element) in tree.below(index) {
            if link.is_some_and(|(_, after)| position >= after) {
                link = None;
            }
            match element.tag {
                Tag::A => {
                    let href = element.attribute("href").filter(|href| pattern.is_match(href));
                    let after = tree.item(position).map_or(0, |item| item.after);
                    let has_image = tree.below(position).any(|(_, below)| below.tag == Tag::Image);
                    match href {
                        Some(href) if has_image => link = Some((href, after)),
                        Some(href) => push(Some(href), Vec::new()),
                        None => {}
                    }
                }
                Tag::Image => {
                    let own = image_source(element);
                    match link {
                        Some((full, _)) => push(Some(full), own.into_iter().filter(|own| *own != full).collect()),
                        None => push(own, Vec::new()),
                    }
                }
                _ => {}
            }
        }
        found
    }

    /// Reads a list of references.
    fn references(&mut self, index: usize) {
        let tree = self.words.tree;
        let mut items = tree.outermost(index, |below| below.is(Part::Reference));
        if items.is_empty() {
            items = tree.outermost(index, |below| below.tag == Tag::P);
        }
        for item in items {
            self.reference(item);
        }
    }

    fn reference(&mut self, index: usize) {
        let tree = self.words.tree;
        let Some(element) = tree.element(index) else { return };
        let patterns = &self.rules().patterns;
        let text = self.words.plain(index);
        // A number that is part of the words, or the place in the list.
        let digits = text.bytes().take_while(u8::is_ascii_digit).count();
        let behind = text.get(digits..).and_then(|rest| rest.strip_prefix(['.', ')']));
        let (label, text) = match behind {
            Some(rest) if (1..=3).contains(&digits) && rest.starts_with(' ') => {
                (text.get(..digits).map(str::to_owned), rest.trim_start().to_owned())
            }
            _ => (Some((self.article.references.len() + 1).to_string()), text),
        };
        if text.is_empty() {
            return;
        }
        let links: Vec<&str> = tree.below(index).filter_map(|(_, below)| below.attribute("href")).collect();
        let sources = || std::iter::once(text.as_str()).chain(links.iter().copied());
        let doi = sources().find_map(|text| patterns.doi.find(text)).map(|found| found.as_str().to_owned());
        let pmid =
            sources().find_map(|text| patterns.pmid.captures(text)?.get(1)).map(|found| found.as_str().to_owned());
        let own = element.id().or_else(|| tree.below(index).find_map(|(_, below)| below.id()));
        self.article.references.push(Reference {
            id: own.map(str::to_owned),
            label,
            doi,
            pmid,
            byte_start: element.start.min(element.end),
            byte_end: element.end,
            text,
            ..Reference::default()
        });
    }

    /// Gives figures and tables the ids of the anchors with their number.
    fn name_assets(&mut self) {
        let tree = self.words.tree;
        let patterns = &self.rules().patterns;
        let mut anchors: BTreeMap<(bool, u32), &str> = BTreeMap::new();
        for id in (0..tree.len()).filter_map(|index| tree.element(index)?.id()) {
            for (is_table, pattern) in [(false, &patterns.figure_id), (true, &patterns.table_id)] {
                if let Some(number) = number_by(pattern, id) {
                    anchors.entry((is_table, number)).or_insert(id);
                }
            }
        }
        let mut has_conflict = false;
        let mut name = |id: &mut Option<String>, label: Option<&str>, is_table: bool| {
            let (by_label, by_id) = if is_table {
                (&patterns.table_label, &patterns.table_id)
            } else {
                (&patterns.figure_label, &patterns.figure_id)
            };
            let number = label.and_then(|label| number_by(by_label, label));
            let own = id.as_deref().and_then(|id| number_by(by_id, id));
            has_conflict |= matches!((number, own), (Some(number), Some(own)) if number != own);
            if own.is_none()
                && let Some(anchor) = number.and_then(|number| anchors.get(&(is_table, number)))
            {
                *id = Some((*anchor).to_owned());
            }
        };
        for figure in &mut self.article.figures {
            name(&mut figure.id, figure.label.as_deref(), false);
        }
        for table in &mut self.article.tables {
            name(&mut table.id, table.label.as_deref(), true);
        }
        if has_conflict {
            self.flags.push(LABEL_CONFLICT.to_owned());
        }
    }

    /// Notes where paragraphs mention figures and tables, by links and in plain words.
    fn mentions(&mut self) {
        /// Links that the words of one mention can hold.
        const NEAR: usize = 8;
        let patterns = &self.rules().patterns;
        let article = &mut *self.article;
        let mut by_number: BTreeMap<(bool, u32), String> = BTreeMap::new();
        let figures = article.figures.iter().map(|figure| (false, &figure.id, &figure.label));
        let tables = article.tables.iter().map(|table| (true, &table.id, &table.label));
        for (is_table, id, label) in figures.chain(tables) {
            let (by_label, by_id) = if is_table {
                (&patterns.table_label, &patterns.table_id)
            } else {
                (&patterns.figure_label, &patterns.figure_id)
            };
            let number = label.as_deref().and_then(|label| number_by(by_label, label));
            let number = number.or_else(|| id.as_deref().and_then(|id| number_by(by_id, id)));
            // Without an id it is known by its label.
            if let (Some(number), Some(name)) = (number, id.as_ref().or(label.as_ref())) {
                by_number.entry((is_table, number)).or_insert_with(|| name.clone());
            }
        }
        let mut anchors: BTreeMap<(bool, &str), Vec<Anchor>> = BTreeMap::new();
        for paragraph in &mut article.paragraphs {
            let passage = &mut paragraph.passage;
            for mention in &mut passage.mentions {
                let (is_table, pattern) = match mention.ref_type.as_deref() {
                    Some("fig") => (false, &patterns.figure_id),
                    Some("table") => (true, &patterns.table_id),
                    _ => continue,
                };
                if let Some(name) =
                    number_by(pattern, &mention.rid).and_then(|number| by_number.get(&(is_table, number)))
                {
                    mention.rid.clone_from(name);
                }
            }
            let mut found = Vec::new();
            for (is_table, pattern) in [(false, &patterns.figure_words), (true, &patterns.table_words)] {
                for words in pattern.find_iter(&passage.text) {
                    for (number, range) in listed_numbers(&passage.text, words.end()) {
                        let Some(name) = by_number.get(&(is_table, number)) else { continue };
                        let start = if range.is_first { words.start() } else { range.start };
                        let (start, end) = (offset(start), offset(range.end));
                        // Links stand in the order of the text, so those that can overlap are the last before the end.
                        let before = passage.mentions.partition_point(|known| known.text_start < end);
                        let is_known = passage.mentions.iter().take(before).rev().take(NEAR).any(|known| {
                            known.rid == *name && start < known.text_end.max(known.text_start.saturating_add(1))
                        });
                        if !is_known {
                            found.push(Mention {
                                ref_type: Some(if is_table { "table" } else { "fig" }.to_owned()),
                                rid: name.clone(),
                                text_start: start,
                                text_end: end,
                            });
                        }
                    }
                }
            }
            passage.mentions.extend(found);
            passage.mentions.sort_by(|one, other| {
                (one.text_start, one.text_end, &one.rid).cmp(&(other.text_start, other.text_end, &other.rid))
            });
        }
        for (index, paragraph) in (0..).zip(&article.paragraphs) {
            for mention in &paragraph.passage.mentions {
                let is_table = match mention.ref_type.as_deref() {
                    Some("fig") => false,
                    Some("table") => true,
                    _ => continue,
                };
                let anchor = Anchor { paragraph: index, text_start: mention.text_start, text_end: mention.text_end };
                anchors.entry((is_table, &mention.rid)).or_default().push(anchor);
            }
        }
        let of = |is_table: bool, id: &Option<String>, label: &Option<String>| {
            let name = id.as_deref().or(label.as_deref())?;
            anchors.get(&(is_table, name)).cloned()
        };
        // A thousand figures with one id do not all need all of its mentions.
        let mut left = anchors.values().map(Vec::len).sum::<usize>().saturating_mul(16).saturating_add(1 << 12);
        let mut bounded = |found: Option<Vec<Anchor>>| {
            let mut found = found.unwrap_or_default();
            found.truncate(left);
            left -= found.len();
            found
        };
        let of_figures: Vec<_> = article.figures.iter().map(|one| bounded(of(false, &one.id, &one.label))).collect();
        let of_tables: Vec<_> = article.tables.iter().map(|one| bounded(of(true, &one.id, &one.label))).collect();
        for (figure, mentions) in article.figures.iter_mut().zip(of_figures) {
            figure.mentions = mentions;
        }
        for (table, mentions) in article.tables.iter_mut().zip(of_tables) {
            table.mentions = mentions;
        }
    }
}

fn offset(position: usize) -> u32 {
    u32::try_from(position).unwrap_or(u32::MAX)
}

/// The number that the group `number` of a pattern finds.
fn number_by(pattern: &Regex, text: &str) -> Option<u32> {
    pattern.captures(text)?.name("number")?.as_str().parse().ok()
}

/// Where a number stands in a text.
struct Listed {
    start: usize,
    end: usize,
    is_first: bool,
}

/// The numbers of a list such as `1`, `1A and 3`, `1-3, 5B` that begins at a byte of a text.
fn listed_numbers(text: &str, from: usize) -> Vec<(u32, Listed)> {
    /// Largest difference that is a range.
    const MAX_RANGE: u32 = 20;
    let mut found: Vec<(u32, Listed)> = Vec::new();
    let mut position = from;
    let mut is_range = false;
    while let Some(rest) = text.get(position..) {
        let digits = rest.bytes().take_while(u8::is_ascii_digit).count();
        let Some(number) =
            rest.get(..digits).filter(|_| (1..=3).contains(&digits)).and_then(|digits| digits.parse().ok())
        else {
            break;
        };
        // The letters of panels: `1A`, `1A, B`, `1(a)`, `1A-C`.
        let behind = rest.get(digits..).unwrap_or_default();
        let panels = behind.len() - behind.trim_start_matches(|c: char| c.is_ascii_alphabetic()).len();
        if panels > 1 {
            // `2mm` is no figure.
            break;
        }
        let end = position + digits + panels;
        if is_range
            && let Some((last, _)) = found.last()
            && (*last + 1..number).len() < MAX_RANGE as usize
        {
            for between in *last + 1..number {
                found.push((between, Listed { start: position, end, is_first: false }));
            }
        }
        let is_first = found.is_empty();
        found.push((number, Listed { start: position, end, is_first }));
        let rest = text.get(end..).unwrap_or_default();
        let Some((makes_range, length)) = joint(rest) else { break };
        is_range = makes_range && panels == 0;
        position = end + length;
        // Letters that go on with the panels of the last number.
        while let Some(rest) = text.get(position..) {
            let letters = rest.bytes().take_while(u8::is_ascii_alphabetic).count();
            if letters != 1 {
                break;
            }
            let Some((_, length)) = joint(rest.get(1..).unwrap_or_default()) else {
                return found;
            };
            position += 1 + length;
            is_range = false;
        }
    }
    found
}

/// What joins numbers at the beginning of a text: whether it makes a range, and its bytes.
fn joint(text: &str) -> Option<(bool, usize)> {
    let trimmed = text.trim_start_matches(' ');
    for (mark, is_range) in [
        (", and ", false),
        (" and ", false),
        ("and ", false),
        ("& ", false),
        ("to ", true),
        ("-", true),
        ("\u{2010}", true),
        ("\u{2011}", true),
        ("–", true),
        ("—", true),
        (",", false),
        ("/", false),
        ("&", false),
    ] {
        if let Some(rest) = trimmed.strip_prefix(mark) {
            let rest = rest.trim_start_matches(' ');
            return Some((is_range, text.len() - rest.len()));
        }
    }
    None
}

/// Where the image of an element is: what is shown late is named by other attributes.
fn image_source<'a>(element: &Element<'a>) -> Option<&'a str> {
    ["data-src", "data-original", "src"]
        .into_iter()
        .filter_map(|name| element.attribute(name))
        .find(|href| !href.trim().is_empty() && !href.starts_with("data:"))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn numbers_in_words() {
        let told = |text: &str| {
            listed_numbers(text, 0).into_iter().map(|(number, _)| number.to_string()).collect::<Vec<_>>().join(" ")
        };
        assert_eq!(told("1)"), "1");
        assert_eq!(told("1A, 1B)"), "1 1");
        assert_eq!(told("1A and B, and 3."), "1 3");
        assert_eq!(told("1–3, 5"), "1 2 3 5");
        assert_eq!(told("2 and 4 were"), "2 4");
        assert_eq!(told("1A-C shows"), "1");
        assert_eq!(told("1 to 3"), "1 2 3");
        assert_eq!(told("2mm"), "");
        assert_eq!(told("3 and the"), "3");
        assert_eq!(told("1-900"), "1 900");
    }
}
