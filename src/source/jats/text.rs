//! Running text: the words of mixed content in reading order, with the bytes that they come from.
//!
//! What is not running text (figures, tables, lists, boxes) is set aside with the offset at which it stood, and the words
//! after it go on.

use super::scripts::{Raised, lowered, raised, raising};
use super::tags::Tag;
use super::tree::{Child, Element, Text, is_space};
use crate::record::article::{GraphicElement, Mention, Passage, RunKind, SourceRun, WarningKind};

/// Ids that one reference names; a list of more than this is no reference.
const MAX_RIDS: usize = 64;
/// Bytes of a kind of reference, such as `bibr`.
const MAX_REF_TYPE: usize = 32;

/// Builds one passage.
#[derive(Debug)]
pub struct Writer<'t, 'a> {
    pub passage: Passage,
    /// What was set aside, with its offset in the text.
    pub aside: Vec<(Element<'t, 'a>, u32)>,
    /// Kinds and bytes of what should be known.
    pub warnings: Vec<(WarningKind, u32)>,
    keeps_runs: bool,
    /// White space that is written when something follows it.
    pending: Option<Source>,
    script: Script,
    /// A bracket was opened just now, which no space follows.
    is_open: bool,
    /// Where the last marker of a citation or note ended, and whether brackets were put around it.
    last_marker: Option<(u32, bool)>,
    /// Plain text: nothing is set aside or marked.
    is_flat: bool,
    /// Only the words, to look ahead: what looks ahead itself would make the work grow with each level.
    is_raw: bool,
}

/// Where something comes from.
#[derive(Clone, Copy, Debug)]
pub struct Source {
    pub start: u32,
    pub length: u32,
    pub kind: RunKind,
}

impl Source {
    pub fn inserted(at: u32) -> Self {
        Self { start: at, length: 0, kind: RunKind::Inserted }
    }

    pub fn replaced(start: u32, end: u32) -> Self {
        Self { start, length: end.saturating_sub(start), kind: RunKind::Replaced }
    }
}

/// How characters are written.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Script {
    Base,
    /// As Unicode superscripts.
    Up,
    /// Digits and signs as Unicode subscripts.
    Down,
    /// As they are, within something that marks them as raised.
    Marked,
}

/// The passage of an element, what it sets aside, and warnings.
pub fn write<'t, 'a>(element: Element<'t, 'a>) -> Writer<'t, 'a> {
    let mut writer = Writer::new(element, true);
    writer.children(element);
    writer
}

/// The passage of a formula that stands by itself.
pub fn write_formula<'t, 'a>(element: Element<'t, 'a>) -> Writer<'t, 'a> {
    let mut writer = Writer::new(element, true);
    match element.tag() {
        Tag::Math => writer.math(element),
        Tag::TexMath => writer.tex(element),
        _ => writer.formula(element),
    }
    writer
}

/// The passage of an element with all words in it, whatever stands in it.
pub fn write_all(element: Element<'_, '_>) -> Passage {
    let mut writer = Writer::new(element, true);
    writer.is_flat = true;
    writer.flat(element);
    writer.passage
}

/// The words of an element without offsets. Figures, tables and lists in it are left out.
pub fn plain(element: Element<'_, '_>) -> String {
    if let Some(text) = simple(element) {
        return text;
    }
    let mut writer = Writer::new(element, false);
    writer.children(element);
    writer.passage.text
}

/// As [`plain`]; none when there are no words.
pub fn plain_some(element: Option<Element<'_, '_>>) -> Option<String> {
    element.map(plain).filter(|text| !text.is_empty())
}

/// All words of an element, whatever stands in it.
pub fn plain_all(element: Element<'_, '_>) -> String {
    if let Some(text) = simple(element) {
        return text;
    }
    let mut writer = Writer::new(element, false);
    writer.is_flat = true;
    writer.flat(element);
    writer.passage.text
}

/// The words of an element, whatever their script.
pub fn raw_words(element: Element<'_, '_>) -> String {
    if let Some(text) = simple(element) {
        return text;
    }
    let mut writer = Writer::new(element, false);
    writer.is_flat = true;
    writer.is_raw = true;
    writer.children(element);
    writer.passage.text
}

/// The words of an element that holds one text without white space to change.
fn simple(element: Element<'_, '_>) -> Option<String> {
    let text = element.only_text()?;
    let bytes = text.as_bytes();
    let has_edge = bytes.first() == Some(&b' ') || bytes.last() == Some(&b' ');
    (!has_edge && has_single_spaces(bytes)).then(|| text.to_owned())
}

/// Is all white space single spaces? Without branches, so that many bytes are seen at once.
fn has_single_spaces(bytes: &[u8]) -> bool {
    let breaks = bytes.iter().fold(false, |found, byte| found | matches!(*byte, b'\n' | b'\t' | b'\r'));
    let after = bytes.get(1..).unwrap_or_default();
    let pairs =
        bytes.iter().zip(after).fold(false, |found, (first, second)| found | ((*first == b' ') & (*second == b' ')));
    !breaks & !pairs
}

impl<'t, 'a> Writer<'t, 'a> {
    fn new(element: Element<'t, 'a>, keeps_runs: bool) -> Self {
        let bytes = element.bytes();
        // Markup and references make the text shorter than its bytes, so this is enough nearly always.
        let capacity = if keeps_runs { bytes.len() } else { 0 };
        let passage = Passage {
            text: String::with_capacity(capacity),
            byte_start: bytes.start,
            byte_end: bytes.end,
            runs: Vec::new(),
            mentions: Vec::new(),
        };
        Self {
            passage,
            aside: Vec::new(),
            warnings: Vec::new(),
            keeps_runs,
            pending: None,
            script: Script::Base,
            is_open: false,
            last_marker: None,
            is_flat: false,
            is_raw: false,
        }
    }

    /// Length of the text so far.
    pub fn length(&self) -> u32 {
        u32::try_from(self.passage.text.len()).unwrap_or(u32::MAX)
    }

    /// Writes what stands in an element.
    pub fn children(&mut self, element: Element<'t, 'a>) {
        let mut children = element.children();
        while let Some(child) = children.next() {
            match child {
                Child::Text(text, start, end) => self.text(text, start, end),
                Child::Element(element) if element.tag() == Tag::Xref && !self.is_raw => {
                    let is_glued = children.clone().next().is_some_and(|next| starts_with_word(next));
                    self.xref(element, is_glued);
                }
                Child::Element(element) => self.element(element),
            }
        }
    }

    pub fn element(&mut self, element: Element<'t, 'a>) {
        match element.tag() {
            Tag::Sup | Tag::Sub | Tag::Xref if self.is_raw => self.children(element),
            Tag::Sup => self.sup(element),
            Tag::Sub => {
                let outer = std::mem::replace(&mut self.script, Script::Down);
                self.children(element);
                self.script = outer;
            }
            Tag::Break => self.space(element),
            Tag::InlineFormula | Tag::DispFormula | Tag::DispFormulaGroup | Tag::ChemStructWrap => {
                let is_block = element.tag() != Tag::InlineFormula;
                if is_block {
                    self.space(element);
                }
                self.formula(element);
                if is_block {
                    self.space(element);
                }
            }
            Tag::Abbrev if !self.is_flat && element.first(Tag::Def).is_some() => {
                for child in element.children() {
                    match child {
                        Child::Text(text, start, end) => self.text(text, start, end),
                        Child::Element(child) if child.tag() == Tag::Def => {}
                        Child::Element(child) => self.element(child),
                    }
                }
                self.set_aside(element);
            }
            Tag::InlineSupplement => {
                self.children(element);
                self.set_aside(element);
            }
            Tag::Math => self.math(element),
            Tag::TexMath => self.tex(element),
            Tag::Alternatives => self.alternatives(element),
            // Words that are not shown where they stand, and what a publisher's index makes of them.
            Tag::AltText | Tag::LongDesc | Tag::ObjectId | Tag::IndexTerm | Tag::Annotation | Tag::AnnotationXml => {}
            Tag::Title | Tag::Label | Tag::Caption => self.spaced(element),
            tag if is_aside(tag) => {
                if self.is_flat {
                    self.spaced(element);
                } else {
                    self.set_aside(element);
                    // An image in the line and a note at a word leave no gap; the others end the word before them.
                    if !matches!(tag, Tag::InlineGraphic | Tag::Def | Tag::Fn | Tag::PrivateChar) {
                        self.space(element);
                    }
                }
            }
            _ if self.is_flat => self.flat(element),
            _ => self.children(element),
        }
    }

    /// Leaves an element to the caller, at this offset.
    pub fn set_aside(&mut self, element: Element<'t, 'a>) {
        let offset = self.length();
        self.aside.push((element, offset));
    }

    fn spaced(&mut self, element: Element<'t, 'a>) {
        self.space(element);
        self.children(element);
        if self.pending.is_none() {
            self.pending = Some(Source::inserted(element.bytes().end));
        }
    }

    /// Elements of data (a name, a year) are words of their own where no punctuation stands between them.
    fn flat(&mut self, element: Element<'t, 'a>) {
        let is_line = element.has_text();
        for child in element.children() {
            match child {
                Child::Text(text, start, end) => self.text(text, start, end),
                Child::Element(child) if child.tag() == Tag::Xref && !self.is_raw => self.xref(child, false),
                Child::Element(child) => {
                    if !is_line && !matches!(child.tag(), Tag::Other | Tag::Sup | Tag::Sub | Tag::Xref) {
                        self.space(child);
                    }
                    self.element(child);
                }
            }
        }
    }

    /// The end of a word, where nothing else says so.
    pub fn space(&mut self, element: Element<'t, 'a>) {
        self.space_at(element.bytes().start);
    }

    pub fn space_at(&mut self, byte: u32) {
        if self.pending.is_none() {
            self.pending = Some(Source::inserted(byte));
        }
    }

    fn sup(&mut self, element: Element<'t, 'a>) {
        let outer = self.script;
        let bytes = element.bytes();
        if outer == Script::Marked {
            return self.children(element);
        }
        let has_marker = element.descendants().any(|below| below.tag() == Tag::Xref);
        let content = raw_words(element);
        let (before, after, script) = match raising(&content, has_marker, outer != Script::Base) {
            Raised::Unicode => ("", "", Script::Up),
            Raised::AsIs => ("", "", Script::Marked),
            Raised::Caret => ("^", "", Script::Marked),
            Raised::CaretGroup => ("^(", ")", Script::Marked),
            Raised::Bracketed => ("[", "]", Script::Marked),
        };
        self.script = script;
        if !before.is_empty() {
            self.put(before, Source::inserted(bytes.start));
            // White space at the ends of a raised text is not within its brackets.
            self.is_open = true;
        }
        self.children(element);
        self.script = outer;
        if !after.is_empty() {
            self.pending = None;
            self.put(after, Source::inserted(bytes.end));
        }
    }

    fn xref(&mut self, element: Element<'t, 'a>, is_followed: bool) {
        let ref_type = element.short_attribute("ref-type");
        let is_marker = matches!(
            ref_type.as_deref(),
            None | Some("bibr" | "fn" | "table-fn" | "other" | "aff" | "corresp" | "author-notes" | "contrib")
        );
        let bytes = element.bytes();
        let outer = self.script;
        let mut brackets = false;
        if is_marker {
            let content = raw_words(element);
            let is_number = content.starts_with(|first: char| first.is_ascii_digit());
            let is_raised = !element.has_text() && element.elements().any(|child| child.tag() == Tag::Sup);
            let follows_word = self.pending.is_none() && self.passage.text.ends_with(char::is_alphanumeric);
            let last = self.last_marker.filter(|(end, _)| self.pending.is_none() && *end == self.length());
            match outer {
                // Markers side by side are two numbers.
                Script::Base if is_number && matches!(last, Some((_, false))) => {
                    self.put(",", Source::inserted(bytes.start));
                }
                Script::Base => {
                    let is_glued = is_raised || (is_number && (follows_word || last.is_some() || is_followed));
                    brackets = is_glued && !content.is_empty() && !content.starts_with(['[', '(']);
                    if is_raised && !content.chars().any(char::is_alphanumeric) {
                        // A sign such as an asterisk cannot be taken for a part of a number.
                        brackets = false;
                    }
                    if brackets || is_raised {
                        self.script = Script::Marked;
                    }
                }
                _ if is_number && follows_word => self.put(",", Source::inserted(bytes.start)),
                _ => {}
            }
        }
        let place =
            if self.pending.is_some() && !self.passage.text.is_empty() { self.length() + 1 } else { self.length() };
        if brackets {
            self.put("[", Source::inserted(bytes.start));
        }
        self.children(element);
        if brackets {
            self.put("]", Source::inserted(bytes.end));
        }
        self.script = outer;
        if is_marker && !self.is_at(place) {
            self.last_marker = Some((self.length(), brackets));
        }
        if self.keeps_runs {
            // An empty reference stands where it stands; what would follow the pending space has not been written.
            let text_end = self.length();
            let text_start = place.min(text_end);
            // A list of ids is short; what a file repeats in one must not grow to many times its size.
            let ref_type = ref_type.filter(|name| name.len() <= MAX_REF_TYPE);
            let rid = element.attribute("rid").unwrap_or_default();
            for rid in rid.split_ascii_whitespace().take(MAX_RIDS) {
                self.passage.mentions.push(Mention {
                    ref_type: ref_type.clone(),
                    rid: rid.to_owned(),
                    text_start,
                    text_end,
                });
            }
        }
    }

    /// Writes the characters of a text.
    pub fn text(&mut self, text: Text<'a>, start: u32, end: u32) {
        match (self.script, text) {
            (Script::Up | Script::Down, Text::Verbatim(text)) => {
                let mut at = start;
                for character in text.chars() {
                    let next = at.saturating_add(u32::try_from(character.len_utf8()).unwrap_or(0));
                    self.scripted(character, at, next, true);
                    at = next;
                }
            }
            (Script::Up | Script::Down, Text::Replaced(text)) => self.scripted_text(text, start, end),
            (Script::Up | Script::Down, Text::Character(character)) => self.scripted(character, start, end, false),
            (_, Text::Verbatim(text)) => self.verbatim(text, start),
            (_, Text::Replaced(text)) => self.replaced(text, start, end),
            (_, Text::Character(character)) => {
                let mut buffer = [0; 4];
                self.replaced(character.encode_utf8(&mut buffer), start, end);
            }
        }
    }

    fn scripted_text(&mut self, text: &str, start: u32, end: u32) {
        let written: String = text.chars().map(|character| self.in_script(character).unwrap_or(character)).collect();
        self.replaced(&written, start, end);
    }

    fn in_script(&self, character: char) -> Option<char> {
        if self.script == Script::Up { raised(character) } else { lowered(character) }
    }

    fn scripted(&mut self, character: char, start: u32, end: u32, is_verbatim: bool) {
        let mut buffer = [0; 4];
        match self.in_script(character) {
            Some(other) => self.put(other.encode_utf8(&mut buffer), Source::replaced(start, end)),
            None if is_verbatim => self.verbatim(character.encode_utf8(&mut buffer), start),
            None => self.replaced(character.encode_utf8(&mut buffer), start, end),
        }
    }

    fn replaced(&mut self, text: &str, start: u32, end: u32) {
        // What an entity stands for is one run, so its inner white space stays, but for the ends.
        let trimmed = text.trim_matches([' ', '\n', '\t', '\r']);
        let source = Source::replaced(start, end);
        if trimmed.is_empty() {
            if !text.is_empty() {
                self.pending.get_or_insert(source);
            }
            return;
        }
        if !text.starts_with(trimmed) {
            self.pending.get_or_insert(source);
        }
        if trimmed.bytes().any(is_space) {
            let words: Vec<&str> = trimmed.split([' ', '\n', '\t', '\r']).filter(|word| !word.is_empty()).collect();
            self.put(&words.join(" "), source);
        } else {
            self.put(trimmed, source);
        }
        if !text.ends_with(trimmed) {
            self.pending = Some(source);
        }
    }

    /// Writes text that stands in the file from a byte on.
    pub fn verbatim(&mut self, text: &str, start: u32) {
        let bytes = text.as_bytes();
        let at = |position: usize| start.saturating_add(u32::try_from(position).unwrap_or(u32::MAX));
        let mut position = 0;
        let is_regular = has_single_spaces(bytes);
        while let Some(byte) = bytes.get(position) {
            if is_space(*byte) {
                if self.pending.is_none() {
                    self.pending = Some(Source { start: at(position), length: 1, kind: RunKind::Verbatim });
                }
                position += 1;
                continue;
            }
            // As far as single spaces go, nothing changes.
            let mut end =
                if is_regular { bytes.len() - usize::from(bytes.last() == Some(&b' ')) } else { position + 1 };
            while let Some(byte) = bytes.get(end) {
                if is_space(*byte) && !(*byte == b' ' && bytes.get(end + 1).is_some_and(|next| !is_space(*next))) {
                    break;
                }
                end += 1;
            }
            let piece = text.get(position..end).unwrap_or_default();
            let length = u32::try_from(piece.len()).unwrap_or(u32::MAX);
            self.put(piece, Source { start: at(position), length, kind: RunKind::Verbatim });
            position = end;
        }
    }

    /// Appends characters that are no white space at their ends.
    pub fn put(&mut self, text: &str, source: Source) {
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
        if self.keeps_runs {
            let text_start = self.length();
            match self.passage.runs.last_mut() {
                Some(run)
                    if run.kind == RunKind::Verbatim
                        && source.kind == RunKind::Verbatim
                        && run.byte_start.saturating_add(run.byte_length) == source.start =>
                {
                    run.byte_length = run.byte_length.saturating_add(source.length);
                }
                _ => self.passage.runs.push(SourceRun {
                    text_start,
                    byte_start: source.start,
                    byte_length: source.length,
                    kind: source.kind,
                }),
            }
        }
        self.passage.text.push_str(text);
    }

    /// Is nothing written since a length?
    pub fn is_at(&self, length: u32) -> bool {
        self.length() == length
    }

    pub fn warn(&mut self, kind: WarningKind, element: Element<'t, 'a>) {
        self.warnings.push((kind, element.bytes().start));
    }
}

/// Does a neighbour begin with a letter or digit, so that it would be one word with what stands before it?
fn starts_with_word(child: Child<'_, '_>) -> bool {
    match child {
        Child::Text(Text::Verbatim(text) | Text::Replaced(text), ..) => text.starts_with(char::is_alphanumeric),
        Child::Text(Text::Character(character), ..) => character.is_alphanumeric(),
        Child::Element(_) => false,
    }
}

/// Elements that are not part of the running text they stand in.
pub fn is_aside(tag: Tag) -> bool {
    matches!(
        tag,
        Tag::P
            | Tag::Sec
            | Tag::Fig
            | Tag::FigGroup
            | Tag::TableWrap
            | Tag::TableWrapGroup
            | Tag::Table
            | Tag::Tgroup
            | Tag::Supplement
            | Tag::Media
            | Tag::Graphic
            | Tag::InlineGraphic
            | Tag::PrivateChar
            | Tag::BoxedText
            | Tag::List
            | Tag::DefList
            | Tag::Def
            | Tag::DispQuote
            | Tag::Preformat
            | Tag::VerseGroup
            | Tag::Speech
            | Tag::Statement
            | Tag::Fn
            | Tag::FnGroup
            | Tag::RefList
            | Tag::FloatsGroup
    )
}

/// What sort of file an element names.
pub fn graphic_element(tag: Tag) -> GraphicElement {
    match tag {
        Tag::InlineGraphic | Tag::PrivateChar => GraphicElement::InlineGraphic,
        Tag::Graphic => GraphicElement::Graphic,
        _ => GraphicElement::Media,
    }
}
