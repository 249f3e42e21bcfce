//! Running text of a page: its words in reading order, with the bytes that they come from.
//!
//! There is a break around every block, cell and `br`, and never one where only inline tags stand between letters. All white
//! space, no-break spaces too, is one space; what has no width is dropped; raised and lowered characters are written as in
//! articles of other formats (10⁹, H₂O, `[12]` for a raised citation).

use super::offsets::{MARK_END, MARK_START, Run};
use super::selectors::{PageRules, Part};
use super::tree::{Element, Kind, Tag, Tree};
use crate::record::article::{Mention, Passage, RunKind, SourceRun};
use crate::source::jats::scripts::{Raised, lowered, raised, raising};
use std::ops::Range;

/// What words are read from.
#[derive(Clone, Copy)]
pub struct Words<'p, 'a> {
    pub tree: &'p Tree<'a>,
    pub source: &'p str,
    pub runs: &'p [Run],
    pub rules: &'p PageRules,
}

impl<'p, 'a> Words<'p, 'a> {
    /// The passage of all words in an element.
    pub fn passage(self, index: usize) -> Writer<'p, 'a> {
        let mut writer = Writer::new(self, true);
        writer.children(index);
        if let Some(element) = self.tree.element(index) {
            writer.span(element);
        }
        writer
    }

    /// The passage of some neighbours.
    pub fn passage_of(self, items: &[usize]) -> Writer<'p, 'a> {
        let mut writer = Writer::new(self, true);
        for index in items {
            writer.item(*index);
            if let Some(element) = self.tree.element(*index) {
                writer.span(element);
            }
        }
        writer
    }

    /// All words in an element.
    pub fn plain(self, index: usize) -> String {
        let mut writer = Writer::new(self, false);
        writer.children(index);
        writer.passage.text
    }

    /// As [`Self::plain`], without raised and lowered words: the marks behind authors.
    pub fn plain_without_marks(self, index: usize) -> String {
        let mut writer = Writer::new(self, false);
        writer.drops_scripts = true;
        writer.children(index);
        writer.passage.text
    }

    /// A marked text, such as the `content` of a `meta`, as a passage.
    pub fn marked(self, text: &str) -> Passage {
        let mut writer = Writer::new(self, true);
        writer.text(text);
        writer.passage
    }
}

/// What kind of thing the target of a link within the page is: `fig`, `table`, `bibr`, and its id.
pub fn target<'h>(href: &'h str, rules: &PageRules) -> Option<(&'static str, &'h str)> {
    let (_, id) = href.rsplit_once('#')?;
    let patterns = &rules.patterns;
    for (kind, pattern) in
        [("fig", &patterns.figure_id), ("table", &patterns.table_id), ("bibr", &patterns.reference_id)]
    {
        if pattern.is_match(id) {
            return Some((kind, id));
        }
    }
    None
}

/// Where something comes from.
#[derive(Clone, Copy, Debug)]
struct Source {
    start: u32,
    length: u32,
    kind: RunKind,
}

/// How characters are written.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Script {
    Base,
    Up,
    Down,
    /// As they are, within something that marks them as raised.
    Marked,
}

/// Builds one passage.
pub struct Writer<'p, 'a> {
    words: Words<'p, 'a>,
    pub passage: Passage,
    /// Images within the words.
    pub images: Vec<usize>,
    keeps_runs: bool,
    drops_scripts: bool,
    /// White space that is written when something follows it.
    pending: Option<Source>,
    script: Script,
    /// A bracket was opened just now, which no space follows.
    is_open: bool,
    /// Where the last marker of a citation ended, if no brackets were put around it.
    last_marker: Option<u32>,
    /// The byte behind what was written last.
    last_byte: u32,
}

impl<'p, 'a> Writer<'p, 'a> {
    fn new(words: Words<'p, 'a>, keeps_runs: bool) -> Self {
        Self {
            words,
            passage: Passage::default(),
            images: Vec::new(),
            keeps_runs,
            drops_scripts: false,
            pending: None,
            script: Script::Base,
            is_open: false,
            last_marker: None,
            last_byte: 0,
        }
    }

    /// Widens the bytes of the passage by those of an element.
    fn span(&mut self, element: &Element<'_>) {
        if element.end == 0 {
            return;
        }
        let passage = &mut self.passage;
        let is_first = passage.byte_end == 0;
        passage.byte_start = if is_first { element.start } else { passage.byte_start.min(element.start) };
        passage.byte_end = passage.byte_end.max(element.end);
    }

    fn length(&self) -> u32 {
        u32::try_from(self.passage.text.len()).unwrap_or(u32::MAX)
    }

    fn children(&mut self, index: usize) {
        let tree = self.words.tree;
        for child in tree.children(index) {
            self.item(child);
        }
    }

    fn item(&mut self, index: usize) {
        let Some(item) = self.words.tree.item(index) else { return };
        match &item.kind {
            Kind::Text(text) => self.text(text),
            Kind::Element(element) => self.element(index, element),
        }
    }

    fn element(&mut self, index: usize, element: &Element<'a>) {
        if element.is(Part::LeaveOut) {
            return;
        }
        match element.tag {
            Tag::Hidden | Tag::Meta | Tag::Title | Tag::Base => {}
            Tag::Break => self.space(element.start),
            Tag::Image => self.images.push(index),
            Tag::Sup | Tag::Sub if self.drops_scripts => {}
            Tag::Sup => self.sup(index, element),
            Tag::Sub => {
                let outer = std::mem::replace(&mut self.script, Script::Down);
                self.children(index);
                self.script = outer;
            }
            Tag::A => self.link(index, element),
            tag if tag.is_block() => {
                self.space(element.start);
                self.children(index);
                self.space(element.end);
            }
            _ => self.children(index),
        }
    }

    /// The end of a word.
    fn space(&mut self, byte: u32) {
        if self.pending.is_none() {
            let start = byte.min(u32::try_from(self.words.source.len()).unwrap_or(u32::MAX));
            self.pending = Some(Source { start, length: 0, kind: RunKind::Inserted });
        }
    }

    fn is_citation(&self, element: &Element<'_>) -> bool {
        element.tag == Tag::A
            && element
                .attribute("href")
                .and_then(|href| target(href, self.words.rules))
                .is_some_and(|(kind, _)| kind == "bibr")
    }

    fn sup(&mut self, index: usize, element: &Element<'a>) {
        let outer = self.script;
        if outer == Script::Marked {
            return self.children(index);
        }
        let has_marker = self.words.tree.below(index).any(|(_, below)| self.is_citation(below));
        let content = self.words.plain_raw(index);
        let (before, after, script) = match raising(&content, has_marker, outer != Script::Base) {
            Raised::Unicode => ("", "", Script::Up),
            Raised::AsIs => ("", "", Script::Marked),
            Raised::Caret => ("^", "", Script::Marked),
            Raised::CaretGroup => ("^(", ")", Script::Marked),
            Raised::Bracketed => ("[", "]", Script::Marked),
        };
        self.script = script;
        if !before.is_empty() {
            self.insert(before, element.start);
            self.is_open = true;
        }
        self.children(index);
        self.script = outer;
        if !after.is_empty() {
            self.pending = None;
            self.insert(after, element.end);
        }
    }

    fn link(&mut self, index: usize, element: &Element<'a>) {
        let Some((kind, id)) = element.attribute("href").and_then(|href| target(href, self.words.rules)) else {
            return self.children(index);
        };
        let outer = self.script;
        let mut has_brackets = false;
        if kind == "bibr" {
            let content = self.words.plain_raw(index);
            let is_number = content.starts_with(|first: char| first.is_ascii_digit());
            let follows_word = self.pending.is_none() && self.passage.text.ends_with(char::is_alphanumeric);
            let follows_marker = self.pending.is_none() && self.last_marker == Some(self.length());
            if is_number && follows_marker {
                // Markers side by side are two numbers.
                self.insert(",", element.start);
            } else if is_number && follows_word && outer == Script::Base {
                has_brackets = true;
            }
        }
        let place =
            if self.pending.is_some() && !self.passage.text.is_empty() { self.length() + 1 } else { self.length() };
        if has_brackets {
            self.insert("[", element.start);
            self.script = Script::Marked;
        }
        self.children(index);
        self.script = outer;
        if has_brackets {
            self.pending = None;
            self.insert("]", element.end);
        }
        let text_end = self.length();
        self.last_marker = (kind == "bibr" && !has_brackets).then_some(text_end);
        if self.keeps_runs {
            self.passage.mentions.push(Mention {
                ref_type: Some(kind.to_owned()),
                rid: id.to_owned(),
                text_start: place.min(text_end),
                text_end,
            });
        }
    }

    /// Writes a marked text.
    fn text(&mut self, text: &str) {
        let mut parts = text.split(MARK_START);
        if let Some(unmarked) = parts.next() {
            self.unmarked(unmarked);
        }
        for part in parts {
            let Some((index, words)) = part.split_once(MARK_END) else { continue };
            let run = index.parse::<usize>().ok().and_then(|index| self.words.runs.get(index)).copied();
            match run {
                Some(run) => self.run(words, run),
                None => self.unmarked(words),
            }
        }
    }

    /// Words whose place is not known: white space, as the page is marked.
    fn unmarked(&mut self, text: &str) {
        for (index, piece) in text.split(char::is_whitespace).enumerate() {
            if index > 0 {
                self.space(self.last_byte);
            }
            let visible: String = piece.chars().filter(|c| !is_without_width(*c)).collect();
            if !visible.is_empty() {
                self.insert(&visible, self.last_byte);
            }
        }
    }

    fn run(&mut self, text: &str, run: Run) {
        let own = self.words.source.get(run.start as usize..run.end as usize).unwrap_or_default();
        if run.is_reference && own != text.trim_end_matches([' ', '\n']) {
            self.reference(text, run);
            return;
        }
        // As far as the page has the same bytes; what may follow is white space from between tags.
        let same = if text.starts_with(own) {
            own.len()
        } else {
            let count = text.bytes().zip(own.bytes()).take_while(|(one, other)| one == other).count();
            (0..=count).rev().find(|end| text.is_char_boundary(*end)).unwrap_or(0)
        };
        self.verbatim(text.get(..same).unwrap_or_default(), run.start);
        self.last_byte = run.end;
        self.unmarked(text.get(same..).unwrap_or_default());
    }

    /// Writes what a character reference stands for.
    fn reference(&mut self, text: &str, run: Run) {
        let source = Source { start: run.start, length: run.end - run.start, kind: RunKind::Replaced };
        self.last_byte = run.end;
        let words = text.trim_matches(char::is_whitespace);
        if words.len() < text.len() && (words.is_empty() || !text.starts_with(words)) {
            self.pending.get_or_insert(source);
        }
        let visible: String = words.chars().filter(|c| !is_without_width(*c)).collect();
        if !visible.is_empty() {
            let visible = match self.script {
                Script::Up | Script::Down => visible.chars().map(|c| self.scripted(c).unwrap_or(c)).collect(),
                _ => visible,
            };
            self.put(&visible, source);
        }
        if !words.is_empty() && !text.ends_with(words) {
            self.pending = Some(Source { start: run.end, length: 0, kind: RunKind::Inserted });
        }
    }

    fn scripted(&self, character: char) -> Option<char> {
        match self.script {
            Script::Up => raised(character),
            Script::Down => lowered(character),
            _ => None,
        }
    }

    /// Writes text that stands in the page from a byte on.
    fn verbatim(&mut self, text: &str, start: u32) {
        let at = |position: usize| start.saturating_add(u32::try_from(position).unwrap_or(u32::MAX));
        let is_scripted = matches!(self.script, Script::Up | Script::Down);
        let bytes = text.as_bytes();
        let mut from = 0;
        let mut position = 0;
        while let Some(byte) = bytes.get(position) {
            let is_plain = byte.is_ascii_graphic() && !is_scripted;
            let is_single_space =
                *byte == b' ' && position > from && bytes.get(position + 1).is_some_and(u8::is_ascii_graphic);
            if is_plain || (is_single_space && !is_scripted) {
                position += 1;
                continue;
            }
            let Some(character) = text.get(position..).and_then(|rest| rest.chars().next()) else { break };
            let next = position + character.len_utf8();
            let other = self.scripted(character);
            if character.is_whitespace() || is_without_width(character) || character.is_control() || other.is_some() {
                self.verbatim_piece(text.get(from..position).unwrap_or_default(), at(from));
                let length = u32::try_from(next - position).unwrap_or(0);
                let kind = if character.is_ascii() { RunKind::Verbatim } else { RunKind::Replaced };
                if let Some(other) = other {
                    let source = Source { start: at(position), length, kind: RunKind::Replaced };
                    self.put(other.encode_utf8(&mut [0; 4]), source);
                } else if !is_without_width(character) && self.pending.is_none() {
                    self.pending = Some(Source { start: at(position), length, kind });
                }
                from = next;
            }
            position = next;
        }
        self.verbatim_piece(text.get(from..).unwrap_or_default(), at(from));
    }

    fn verbatim_piece(&mut self, text: &str, start: u32) {
        if !text.is_empty() {
            let length = u32::try_from(text.len()).unwrap_or(u32::MAX);
            self.put(text, Source { start, length, kind: RunKind::Verbatim });
        }
    }

    fn insert(&mut self, text: &str, byte: u32) {
        let start = byte.min(u32::try_from(self.words.source.len()).unwrap_or(u32::MAX));
        self.put(text, Source { start, length: 0, kind: RunKind::Inserted });
    }

    /// Appends characters that are no white space at their ends.
    fn put(&mut self, text: &str, source: Source) {
        if let Some(space) = self.pending.take()
            && !self.passage.text.is_empty()
            && !self.is_open
        {
            self.append(" ", space);
        }
        self.is_open = false;
        self.append(text, source);
    }

    fn append(&mut self, text: &str, source: Source) {
        let text_start = self.length();
        let end = source.start.saturating_add(source.length);
        self.last_byte = end;
        if self.keeps_runs {
            let passage = &mut self.passage;
            if source.kind != RunKind::Inserted {
                let is_first = passage.byte_end == 0;
                passage.byte_start = if is_first { source.start } else { passage.byte_start.min(source.start) };
                passage.byte_end = passage.byte_end.max(end);
            }
            match passage.runs.last_mut() {
                Some(run)
                    if run.kind == RunKind::Verbatim
                        && source.kind == RunKind::Verbatim
                        && run.byte_start.saturating_add(run.byte_length) == source.start =>
                {
                    run.byte_length = run.byte_length.saturating_add(source.length);
                }
                _ => passage.runs.push(SourceRun {
                    text_start,
                    byte_start: source.start,
                    byte_length: source.length,
                    kind: source.kind,
                }),
            }
        }
        self.passage.text.push_str(text);
    }
}

impl Words<'_, '_> {
    /// The words of an element, whatever their script.
    fn plain_raw(self, index: usize) -> String {
        let mut text = String::new();
        let end = self.tree.item(index).map_or(0, |item| item.after);
        for position in index + 1..end {
            let Some(Kind::Text(own)) = self.tree.item(position).map(|item| &item.kind) else { continue };
            for part in own.split(MARK_START) {
                text.push_str(part.split_once(MARK_END).map_or(part, |(_, words)| words));
            }
        }
        text.trim().to_owned()
    }
}

/// Characters that take no room: they part no words.
fn is_without_width(character: char) -> bool {
    matches!(character, '\u{ad}' | '\u{200b}'..='\u{200f}' | '\u{2060}'..='\u{2064}' | '\u{feff}' | '\u{202a}'..='\u{202e}')
}

/// A stretch of a passage, without white space at its ends, as a passage of its own.
pub fn part_of(passage: &Passage, range: Range<usize>) -> Passage {
    let whole = passage.text.get(range.clone()).unwrap_or_default();
    let start = range.start + (whole.len() - whole.trim_start().len());
    let text = whole.trim();
    let end = start + text.len();
    let position = |position: usize| u32::try_from(position).unwrap_or(u32::MAX);
    let mut runs = Vec::new();
    for (index, run) in passage.runs.iter().enumerate() {
        let run_start = run.text_start as usize;
        let run_end = passage.runs.get(index + 1).map_or(passage.text.len(), |next| next.text_start as usize);
        let (from, to) = (run_start.max(start), run_end.min(end));
        if from >= to {
            continue;
        }
        let mut own = SourceRun { text_start: position(from - start), ..*run };
        if run.kind == RunKind::Verbatim {
            own.byte_start = run.byte_start.saturating_add(position(from - run_start));
            own.byte_length = position(to - from);
        }
        runs.push(own);
    }
    let is_within = |mention: &&Mention| mention.text_start as usize >= start && mention.text_end as usize <= end;
    let moved = |mention: &Mention| Mention {
        text_start: mention.text_start - position(start),
        text_end: mention.text_end - position(start),
        ..mention.clone()
    };
    let bytes = passage.source_of(start..end);
    let bytes =
        bytes.map_or((passage.byte_start, passage.byte_start), |bytes| (position(bytes.start), position(bytes.end)));
    Passage {
        text: text.to_owned(),
        byte_start: bytes.0,
        byte_end: bytes.1,
        runs,
        mentions: passage.mentions.iter().filter(is_within).map(moved).collect(),
    }
}
