//! Where elements and words of a page stand in its text.
//!
//! The parser keeps no positions. So the page is cut into tags and words first (as the WHATWG HTML standard's tokenizer cuts
//! it), and given to the parser with marks: a number in an attribute of each start tag, and one between two
//! noncharacters before each run of words. Whatever the parser moves or copies keeps its mark. A character reference is a
//! run of its own, so that all other runs are byte for byte what the page has. Comments, scripts and styles are left out.
//!
//! The same pass bounds what the parser has to do, which is not linear for pages made to be slow: elements, elements in
//! elements, attributes of one element, and unclosed inline elements, which the parser opens anew in each block after them.

use std::collections::BTreeSet;

/// Attribute that holds the position of a start tag in [`Marked::tags`]. One of HTML that has no meaning today, since the
/// parser is faster with names that it knows.
pub const MARK_ATTRIBUTE: &str = "nohref";
/// Around the position of a run in [`Marked::runs`]. Noncharacters, which no page holds; of a page that does they are left
/// out.
pub const MARK_START: char = '\u{fdd0}';
pub const MARK_END: char = '\u{fdd1}';

/// Bounds of a page.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct PageLimits {
    /// Of a file; at most 4 GB, since offsets have 32 bits.
    pub max_bytes: usize,
    pub max_elements: usize,
    /// Elements in elements.
    pub max_depth: usize,
    /// Places of one table, spans included. Beyond it spans are taken as 1.
    pub max_table_cells: usize,
}

impl Default for PageLimits {
    fn default() -> Self {
        Self { max_bytes: 16 << 20, max_elements: 500_000, max_depth: 256, max_table_cells: 1 << 18 }
    }
}

/// Attributes of one element, and of a page unclosed inline elements that differ: more are no page made by people.
const MAX_ATTRIBUTES: usize = 512;

/// A run of words, or a character reference.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Run {
    pub start: u32,
    pub end: u32,
    pub is_reference: bool,
}

/// A page with marks.
#[derive(Debug, Default)]
pub struct Marked {
    pub html: String,
    /// Bytes of start tags.
    pub tags: Vec<(u32, u32)>,
    pub runs: Vec<Run>,
}

fn at(position: usize) -> u32 {
    u32::try_from(position).unwrap_or(u32::MAX)
}

/// Marks a page.
///
/// # Errors
/// A page beyond the limits; says which.
pub fn mark(source: &str, limits: PageLimits) -> Result<Marked, String> {
    let mut marker = Marker {
        source,
        bytes: source.as_bytes(),
        limits,
        marked: Marked { html: String::with_capacity(source.len() + source.len() / 2), ..Marked::default() },
        open: Vec::new(),
        unclosed: BTreeSet::new(),
        work: 0,
    };
    marker.run()?;
    Ok(marker.marked)
}

struct Marker<'s> {
    source: &'s str,
    bytes: &'s [u8],
    limits: PageLimits,
    marked: Marked,
    /// Start tags whose end has not come, as a parser would have them at most.
    open: Vec<(&'s str, (usize, usize))>,
    /// Inline elements that ended with an element around them.
    unclosed: BTreeSet<&'s str>,
    /// Elements that a parser makes at most.
    work: usize,
}

/// What a tag says.
struct StartTag<'s> {
    name: &'s str,
    /// After the name, up to `>`.
    rest: usize,
    /// Of `>`.
    end: usize,
    /// Of `content` of a `meta`.
    content: Option<(usize, usize)>,
}

impl<'s> Marker<'s> {
    fn slice(&self, from: usize, to: usize) -> &'s str {
        self.source.get(from..to).unwrap_or_default()
    }

    fn byte(&self, position: usize) -> Option<u8> {
        self.bytes.get(position).copied()
    }

    /// The next place of a character from a position on, or the end.
    fn find(&self, needle: char, from: usize) -> Option<usize> {
        Some(from + self.source.get(from..)?.find(needle)?)
    }

    fn run(&mut self) -> Result<(), String> {
        let mut words = if self.source.starts_with('\u{feff}') { '\u{feff}'.len_utf8() } else { 0 };
        let mut position = words;
        while let Some(found) = self.find('<', position) {
            let next = self.byte(found + 1);
            let after_markup = match next {
                Some(b'!' | b'?') => Some(self.declaration(found)),
                Some(b'/') if self.byte(found + 2).is_some_and(|byte| byte.is_ascii_alphabetic()) => {
                    self.words(words, found);
                    Some(self.end_tag(found))
                }
                // `</>` is nothing, `</` and anything else a comment.
                Some(b'/') if found + 2 < self.bytes.len() => {
                    Some(self.find('>', found + 2).map_or(self.bytes.len(), |end| end + 1))
                }
                Some(byte) if byte.is_ascii_alphabetic() => {
                    self.words(words, found);
                    Some(self.start_tag(found)?)
                }
                _ => None,
            };
            match after_markup {
                Some(after) => {
                    // Words before a comment; before tags they are written already.
                    if matches!(next, Some(b'!' | b'?')) || self.is_comment_by_slash(found) {
                        self.words(words, found);
                        if self
                            .slice(found, after)
                            .get(..9)
                            .is_some_and(|start| start.eq_ignore_ascii_case("<!doctype"))
                        {
                            self.marked.html.push_str(self.slice(found, after));
                        }
                    }
                    position = after;
                    words = after;
                }
                None => position = found + 1,
            }
        }
        self.words(words, self.bytes.len());
        Ok(())
    }

    fn is_comment_by_slash(&self, found: usize) -> bool {
        self.byte(found + 1) == Some(b'/') && !self.byte(found + 2).is_some_and(|byte| byte.is_ascii_alphabetic())
    }

    /// The end of `<!…>` or `<?…>`.
    fn declaration(&self, start: usize) -> usize {
        let length = self.bytes.len();
        let Some(body) = self.source.get(start..).and_then(|text| text.strip_prefix("<!--")) else {
            return self.find('>', start).map_or(length, |end| end + 1);
        };
        if body.starts_with('>') {
            return start + 5;
        }
        if body.starts_with("->") {
            return start + 6;
        }
        let plain = body.find("-->").map(|end| end + 3);
        // Only as far as the plain end: looking further would be work for each comment.
        let searched = plain.and_then(|end| body.get(..end)).unwrap_or(body);
        let odd = searched.find("--!>").map(|end| end + 4);
        plain.into_iter().chain(odd).min().map_or(length, |end| start + 4 + end)
    }

    fn end_tag(&mut self, start: usize) -> usize {
        let Some((tag, _)) = self.attributes(start + 2) else { return self.bytes.len() };
        self.marked.html.push_str("</");
        self.marked.html.push_str(tag.name);
        self.marked.html.push('>');
        self.close(tag.name);
        tag.end + 1
    }

    fn name(&self, from: usize) -> &'s str {
        let rest = self.source.get(from..).unwrap_or_default();
        let end = rest.find(|c: char| c.is_ascii_whitespace() || matches!(c, '/' | '>')).unwrap_or(rest.len());
        rest.get(..end).unwrap_or_default()
    }

    /// Reads a tag whose name begins at a position, and counts its attributes; none if it does not end.
    fn attributes(&self, name_start: usize) -> Option<(StartTag<'s>, usize)> {
        let name = self.name(name_start);
        let rest = name_start + name.len();
        let is_meta = name.eq_ignore_ascii_case("meta");
        let (mut position, mut count, mut content) = (rest, 0, None);
        loop {
            let byte = self.byte(position)?;
            if byte.is_ascii_whitespace() || byte == b'/' {
                position += 1;
                continue;
            }
            if byte == b'>' {
                return Some((StartTag { name, rest, end: position, content }, count));
            }
            count += 1;
            let attribute_start = position;
            position += 1;
            while !matches!(self.byte(position)?, b'=' | b'/' | b'>') && !self.byte(position)?.is_ascii_whitespace() {
                position += 1;
            }
            let attribute = (attribute_start, position);
            while self.byte(position)?.is_ascii_whitespace() {
                position += 1;
            }
            if self.byte(position)? != b'=' {
                continue;
            }
            position += 1;
            while self.byte(position)?.is_ascii_whitespace() {
                position += 1;
            }
            let value = match self.byte(position)? {
                quote @ (b'"' | b'\'') => {
                    let end = self.find(char::from(quote), position + 1)?;
                    let value = (position + 1, end);
                    position = end + 1;
                    value
                }
                b'>' => continue,
                _ => {
                    let start = position;
                    while self.byte(position)? != b'>' && !self.byte(position)?.is_ascii_whitespace() {
                        position += 1;
                    }
                    (start, position)
                }
            };
            if is_meta && content.is_none() && self.slice(attribute.0, attribute.1).eq_ignore_ascii_case("content") {
                content = Some(value);
            }
        }
    }

    fn start_tag(&mut self, start: usize) -> Result<usize, String> {
        let Some((tag, n_attributes)) = self.attributes(start + 1) else { return Ok(self.bytes.len()) };
        if n_attributes > MAX_ATTRIBUTES {
            return Err(format!("an element has {n_attributes} attributes; {MAX_ATTRIBUTES} are allowed"));
        }
        let after = tag.end + 1;
        let lower = tag.name.to_ascii_lowercase();
        self.count(&tag, &lower, start)?;
        let index = self.marked.tags.len();
        self.marked.tags.push((at(start), at(after)));
        let html = &mut self.marked.html;
        html.push('<');
        // Nothing after it would be markup.
        html.push_str(if lower == "plaintext" { "pre" } else { tag.name });
        html.push(' ');
        html.push_str(MARK_ATTRIBUTE);
        html.push_str("=\"");
        html.push_str(&index.to_string());
        html.push('"');
        match tag.content {
            Some((from, to)) => {
                html.push_str(self.source.get(tag.rest..from).unwrap_or_default());
                // Without quotes the marks could not stand in it.
                let is_quoted = matches!(self.byte(from.saturating_sub(1)), Some(b'"' | b'\''));
                if is_quoted {
                    self.words(from, to);
                    let rest = self.slice(to, after);
                    self.marked.html.push_str(rest);
                } else {
                    let rest = self.slice(from, after);
                    self.marked.html.push_str(rest);
                }
            }
            None => html.push_str(self.source.get(tag.rest..after).unwrap_or_default()),
        }
        Ok(match lower.as_str() {
            "title" | "textarea" => self.raw(&lower, after, true),
            "script" | "style" | "xmp" | "iframe" | "noembed" | "noframes" | "noscript" => {
                self.raw(&lower, after, false)
            }
            _ => after,
        })
    }

    /// The end of an element that holds text without markup. What is kept is written as it is.
    fn raw(&mut self, name: &str, from: usize, is_kept: bool) -> usize {
        let mut position = from;
        let end = loop {
            let Some(found) = self.find('<', position) else { break self.bytes.len() };
            let is_name = self.byte(found + 1) == Some(b'/')
                && self.source.get(found + 2..found + 2 + name.len()).is_some_and(|own| own.eq_ignore_ascii_case(name));
            let ends = |byte: u8| byte.is_ascii_whitespace() || matches!(byte, b'/' | b'>');
            if is_name && self.byte(found + 2 + name.len()).is_some_and(ends) {
                break found;
            }
            position = found + 1;
        };
        if is_kept {
            let text = self.slice(from, end);
            self.marked.html.push_str(text);
        }
        end
    }

    /// Counts what the parser will have to do.
    fn count(&mut self, tag: &StartTag<'s>, lower: &str, start: usize) -> Result<(), String> {
        // An inline element that is not closed is opened again in each block; of equal ones three at most.
        self.work += 1 + 3 * self.unclosed.len();
        if self.work > self.limits.max_elements {
            return Err(format!("the page has more than {} elements", self.limits.max_elements));
        }
        if is_void(lower) {
            return Ok(());
        }
        for (ended, within) in [
            ("p", &["button", "table", "td", "th", "caption", "object", "li"][..]),
            ("li", &["ul", "ol", "table", "td"]),
            ("dd", &["dl"]),
            ("dt", &["dl"]),
            ("td", &["table"]),
            ("th", &["table"]),
            ("tr", &["table"]),
            ("option", &["select"]),
        ] {
            if closes(lower, ended) {
                self.close_within(ended, within);
            }
        }
        self.open.push((tag.name, (start, tag.end)));
        if self.open.len() > self.limits.max_depth {
            return Err(format!("elements are nested deeper than {}", self.limits.max_depth));
        }
        Ok(())
    }

    /// Ends an open element, unless one of others is around it.
    fn close_within(&mut self, name: &str, within: &[&str]) {
        for index in (0..self.open.len()).rev() {
            let Some((open, _)) = self.open.get(index) else { return };
            if open.eq_ignore_ascii_case(name) {
                return self.end(index);
            }
            if within.iter().any(|outer| open.eq_ignore_ascii_case(outer)) {
                return;
            }
        }
    }

    fn close(&mut self, name: &str) {
        if let Some(index) = self.open.iter().rposition(|(open, _)| open.eq_ignore_ascii_case(name)) {
            self.end(index);
        }
    }

    fn end(&mut self, index: usize) {
        for (name, (start, end)) in self.open.drain(index..).skip(1) {
            if is_formatting(name) {
                self.unclosed.insert(self.source.get(start..end).unwrap_or_default());
            }
        }
    }

    /// Writes words with marks.
    fn words(&mut self, from: usize, to: usize) {
        let text = self.slice(from, to);
        let start = text.find(|c: char| !c.is_ascii_whitespace()).unwrap_or(text.len());
        let html = &mut self.marked.html;
        if start > 0 {
            // White space is where it was, without a mark: within tables and before `body`, words are treated otherwise.
            html.push(' ');
        }
        let mut position = start;
        while let Some(rest) = text.get(position..).filter(|rest| !rest.is_empty()) {
            let (length, is_reference) = match rest.as_bytes().first() {
                Some(b'&') => (reference(rest), true),
                Some(b'\r') => {
                    html.push('\n');
                    position += if rest.as_bytes().get(1) == Some(&b'\n') { 2 } else { 1 };
                    continue;
                }
                _ => match rest.find(['&', '\r', '\0', MARK_START, MARK_END]) {
                    Some(0) => {
                        position += rest.chars().next().map_or(1, char::len_utf8);
                        continue;
                    }
                    Some(length) => (length, false),
                    None => (rest.len(), false),
                },
            };
            let index = self.marked.runs.len();
            let start = from + position;
            self.marked.runs.push(Run { start: at(start), end: at(start + length), is_reference });
            html.push(MARK_START);
            html.push_str(&index.to_string());
            html.push(MARK_END);
            let words = rest.get(..length).unwrap_or_default();
            if words.contains('<') {
                // One that begins no tag.
                html.push_str(&words.replace('<', "&lt;"));
            } else {
                html.push_str(words);
            }
            position += length;
        }
    }
}

/// Bytes of what may be a character reference: `&`, then letters or digits, then `;` if it is there.
fn reference(text: &str) -> usize {
    let bytes = text.as_bytes();
    let mut length = 1;
    if bytes.get(length) == Some(&b'#') {
        length += 1;
    }
    // The longest name has 31 letters.
    while length < 40 && bytes.get(length).is_some_and(u8::is_ascii_alphanumeric) {
        length += 1;
    }
    if bytes.get(length) == Some(&b';') {
        length += 1;
    }
    length
}

fn is_void(name: &str) -> bool {
    matches!(
        name,
        "area"
            | "base"
            | "br"
            | "col"
            | "embed"
            | "hr"
            | "img"
            | "image"
            | "input"
            | "link"
            | "meta"
            | "param"
            | "source"
            | "track"
            | "wbr"
            | "frame"
            | "keygen"
            | "bgsound"
            | "basefont"
    )
}

fn is_formatting(name: &str) -> bool {
    ["a", "b", "big", "code", "em", "font", "i", "nobr", "s", "small", "strike", "strong", "tt", "u"]
        .iter()
        .any(|known| name.eq_ignore_ascii_case(known))
}

/// Whether a start tag ends an open element of another (or its own) name, as far as it matters for counting.
fn closes(name: &str, open: &str) -> bool {
    match open {
        "p" => matches!(
            name,
            "address"
                | "article"
                | "aside"
                | "blockquote"
                | "center"
                | "details"
                | "div"
                | "dl"
                | "fieldset"
                | "figcaption"
                | "figure"
                | "footer"
                | "form"
                | "h1"
                | "h2"
                | "h3"
                | "h4"
                | "h5"
                | "h6"
                | "header"
                | "hr"
                | "main"
                | "nav"
                | "ol"
                | "p"
                | "pre"
                | "section"
                | "table"
                | "ul"
                | "li"
                | "dd"
                | "dt"
        ),
        "td" | "th" => matches!(name, "td" | "th" | "tr" | "tbody" | "thead" | "tfoot"),
        "tr" => matches!(name, "tr" | "tbody" | "thead" | "tfoot"),
        "dd" | "dt" => matches!(name, "dd" | "dt"),
        _ => name == open,
    }
}
