//! Literals of Python: what `repr` writes for lists of texts and numbers. Cells of DDXPlus hold them (MTDiag, 3.2 and 4.1.1).
//!
//! Nothing is evaluated. A list, a tuple, a text or a number is read; a name, a call, arithmetic, a comment or anything behind
//! the literal is an error that says where it stands.

use crate::text::excerpt;
use std::borrow::Cow;
use std::fmt;

/// What a literal may hold.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Bounds {
    /// Lists in lists.
    pub max_depth: usize,
    /// Texts, numbers and lists together.
    pub max_items: usize,
}

impl Default for Bounds {
    fn default() -> Self {
        Self { max_depth: 8, max_items: 4096 }
    }
}

/// A literal, as a tree.
#[derive(Clone, Debug, PartialEq)]
pub enum Literal<'a> {
    /// Borrowed where no escape occurs.
    Text(Cow<'a, str>),
    Integer(i64),
    Float(f64),
    List(Vec<Literal<'a>>),
    Tuple(Vec<Literal<'a>>),
}

/// Why a text is not a literal.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct LiteralError {
    /// Character, from 1.
    pub position: usize,
    pub expected: &'static str,
    /// What stands there; empty at the end of the text.
    pub found: String,
}

impl fmt::Display for LiteralError {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(formatter, "character {}: {} is expected, ", self.position, self.expected)?;
        if self.found.is_empty() {
            formatter.write_str("but the text ends")
        } else {
            write!(formatter, "not `{}`", self.found)
        }
    }
}

/// Reads one literal and nothing else.
pub fn parse(text: &str, bounds: Bounds) -> Result<Literal<'_>, LiteralError> {
    let mut parser = Parser::new(text, bounds);
    let literal = parser.value()?;
    parser.end()?;
    Ok(literal)
}

/// Reads a list of texts: each is handed to `take`.
pub fn texts<'a>(text: &'a str, bounds: Bounds, mut take: impl FnMut(Cow<'a, str>)) -> Result<(), LiteralError> {
    let mut parser = Parser::new(text, bounds);
    let close = parser.open("a list")?;
    while parser.next_item(close)? {
        take(parser.text()?);
        parser.separator(close)?;
    }
    parser.end()
}

/// Reads a list of pairs of a text and a number, each a list or a tuple: each pair is handed to `take`.
pub fn pairs<'a>(text: &'a str, bounds: Bounds, mut take: impl FnMut(Cow<'a, str>, f64)) -> Result<(), LiteralError> {
    let mut parser = Parser::new(text, bounds);
    let close = parser.open("a list")?;
    while parser.next_item(close)? {
        let inner = parser.open("a pair")?;
        if !parser.next_item(inner)? {
            return Err(parser.error("a text"));
        }
        let name = parser.text()?;
        parser.separator(inner)?;
        if !parser.next_item(inner)? {
            return Err(parser.error("a number"));
        }
        let number = match parser.number()? {
            Literal::Integer(number) => number as f64,
            Literal::Float(number) => number,
            _ => return Err(parser.error("a number")),
        };
        parser.separator(inner)?;
        if parser.next_item(inner)? {
            return Err(parser.error("the end of the pair"));
        }
        take(name, number);
        parser.separator(close)?;
    }
    parser.end()
}

struct Parser<'a> {
    text: &'a str,
    bytes: &'a [u8],
    /// In bytes.
    at: usize,
    depth: usize,
    /// Items that may still come.
    items: usize,
    bounds: Bounds,
}

impl<'a> Parser<'a> {
    fn new(text: &'a str, bounds: Bounds) -> Self {
        Self { text, bytes: text.as_bytes(), at: 0, depth: 0, items: bounds.max_items, bounds }
    }

    fn peek(&self) -> Option<u8> {
        self.bytes.get(self.at).copied()
    }

    fn skip_blanks(&mut self) {
        while matches!(self.peek(), Some(b' ' | b'\t' | b'\n' | b'\r')) {
            self.at += 1;
        }
    }

    fn error(&self, expected: &'static str) -> LiteralError {
        self.error_at(self.at, expected)
    }

    #[cold]
    fn error_at(&self, at: usize, expected: &'static str) -> LiteralError {
        let mut start = at.min(self.text.len());
        while !self.text.is_char_boundary(start) {
            start -= 1;
        }
        let (before, rest) = self.text.split_at(start);
        // What stands there is shown in a ledger and on a terminal: control characters as escapes.
        let mut found = String::new();
        for character in excerpt(rest, 24).chars() {
            if character.is_control() {
                found.extend(character.escape_default());
            } else {
                found.push(character);
            }
        }
        LiteralError { position: before.chars().count() + 1, expected, found }
    }

    /// An opening bracket; gives the closing one.
    fn open(&mut self, expected: &'static str) -> Result<u8, LiteralError> {
        self.skip_blanks();
        let close = match self.peek() {
            Some(b'[') => b']',
            Some(b'(') => b')',
            _ => return Err(self.error(expected)),
        };
        if self.depth == self.bounds.max_depth {
            return Err(self.error("less depth"));
        }
        self.depth += 1;
        self.at += 1;
        Ok(close)
    }

    /// Whether an item follows; if none does, the bracket is closed.
    fn next_item(&mut self, close: u8) -> Result<bool, LiteralError> {
        self.skip_blanks();
        match self.peek() {
            Some(byte) if byte == close => {
                self.at += 1;
                self.depth -= 1;
                Ok(false)
            }
            None => Err(self.error("an item or the end of the list")),
            Some(_) if self.items == 0 => Err(self.error("fewer items")),
            Some(_) => {
                self.items -= 1;
                Ok(true)
            }
        }
    }

    /// What stands behind an item: a comma, or the bracket that closes the list and stays.
    fn separator(&mut self, close: u8) -> Result<bool, LiteralError> {
        self.skip_blanks();
        match self.peek() {
            Some(b',') => {
                self.at += 1;
                Ok(true)
            }
            Some(byte) if byte == close => Ok(false),
            _ => Err(self.error("a comma or the end of the list")),
        }
    }

    fn end(&mut self) -> Result<(), LiteralError> {
        self.skip_blanks();
        if self.at == self.bytes.len() { Ok(()) } else { Err(self.error("the end of the text")) }
    }

    fn value(&mut self) -> Result<Literal<'a>, LiteralError> {
        self.skip_blanks();
        match self.peek() {
            Some(b'\'' | b'"') => self.text().map(Literal::Text),
            Some(b'-' | b'.' | b'0'..=b'9') => self.number(),
            Some(b'[' | b'(') => {
                let start = self.at;
                let close = self.open("a list")?;
                let (mut items, mut has_comma) = (Vec::new(), false);
                while self.next_item(close)? {
                    items.push(self.value()?);
                    has_comma |= self.separator(close)?;
                }
                match close {
                    b']' => Ok(Literal::List(items)),
                    // `(1)` is a number in brackets; no `repr` writes that.
                    _ if items.len() == 1 && !has_comma => Err(self.error_at(start, "a tuple with a comma")),
                    _ => Ok(Literal::Tuple(items)),
                }
            }
            _ => Err(self.error("a list, a text or a number")),
        }
    }

    fn text(&mut self) -> Result<Cow<'a, str>, LiteralError> {
        self.skip_blanks();
        let start = self.at;
        let quote = match self.peek() {
            Some(quote @ (b'\'' | b'"')) => quote,
            _ => return Err(self.error("a text in quotes")),
        };
        let mut run = start + 1;
        let mut owned: Option<String> = None;
        loop {
            let rest = self.bytes.get(run..).unwrap_or_default();
            let ends = |byte: &u8| *byte == quote || *byte == b'\\' || matches!(*byte, b'\n' | b'\r' | 0);
            let Some(length) = rest.iter().position(ends) else {
                self.at = start;
                return Err(self.error("a quote that is closed"));
            };
            let end = run + length;
            let piece = self.text.get(run..end).unwrap_or_default();
            match self.bytes.get(end) {
                Some(b'\\') => {
                    let text = owned.get_or_insert_default();
                    text.push_str(piece);
                    self.at = end + 1;
                    let escaped = self.escape(end)?;
                    owned.get_or_insert_default().extend(escaped);
                    run = self.at;
                }
                Some(byte) if *byte == quote => {
                    self.at = end + 1;
                    return Ok(match owned {
                        None => Cow::Borrowed(piece),
                        Some(mut text) => {
                            text.push_str(piece);
                            Cow::Owned(text)
                        }
                    });
                }
                _ => return Err(self.error_at(end, "a text without line ends")),
            }
        }
    }

    /// The character of an escape whose backslash stands at `start`; none for a line end behind it.
    fn escape(&mut self, start: usize) -> Result<Option<char>, LiteralError> {
        let digits = match self.peek() {
            Some(b'\\') => return Ok(self.took('\\')),
            Some(b'\'') => return Ok(self.took('\'')),
            Some(b'"') => return Ok(self.took('"')),
            Some(b'n') => return Ok(self.took('\n')),
            Some(b'r') => return Ok(self.took('\r')),
            Some(b't') => return Ok(self.took('\t')),
            Some(b'x') => 2,
            Some(b'u') => 4,
            Some(b'U') => 8,
            _ => return Err(self.error_at(start, "an escape that `repr` writes")),
        };
        let number = self.text.get(self.at + 1..self.at + 1 + digits);
        let number = number.filter(|number| number.bytes().all(|byte| byte.is_ascii_hexdigit()));
        let character = number.and_then(|number| u32::from_str_radix(number, 16).ok()).and_then(char::from_u32);
        let character = character.ok_or_else(|| self.error_at(start, "the number of a character"))?;
        self.at += 1 + digits;
        Ok(Some(character))
    }

    fn took(&mut self, character: char) -> Option<char> {
        self.at += 1;
        Some(character)
    }

    fn digits(&mut self) -> usize {
        let start = self.at;
        while matches!(self.peek(), Some(b'0'..=b'9')) {
            self.at += 1;
        }
        self.at - start
    }

    fn number(&mut self) -> Result<Literal<'a>, LiteralError> {
        self.skip_blanks();
        let start = self.at;
        if self.peek() == Some(b'-') {
            self.at += 1;
        }
        let first = self.at;
        let whole = self.digits();
        let mut is_float = false;
        let mut fraction = 0;
        if self.peek() == Some(b'.') {
            is_float = true;
            self.at += 1;
            fraction = self.digits();
        }
        if whole + fraction == 0 {
            return Err(self.error_at(start, "a number"));
        }
        if matches!(self.peek(), Some(b'e' | b'E')) {
            is_float = true;
            self.at += 1;
            if matches!(self.peek(), Some(b'-' | b'+')) {
                self.at += 1;
            }
            if self.digits() == 0 {
                return Err(self.error_at(start, "a number"));
            }
        }
        if !is_float && whole > 1 && self.bytes.get(first) == Some(&b'0') {
            return Err(self.error_at(start, "a number without leading zeros"));
        }
        if self.peek().is_some_and(|byte| byte.is_ascii_alphanumeric() || byte == b'_' || byte == b'.') {
            return Err(self.error("the end of the number"));
        }
        let digits = self.text.get(start..self.at).unwrap_or_default();
        if is_float {
            let number = digits.parse().ok().filter(|number: &f64| number.is_finite());
            number.map(Literal::Float).ok_or_else(|| self.error_at(start, "a number that is not too large"))
        } else {
            let number = digits.parse().ok();
            number.map(Literal::Integer).ok_or_else(|| self.error_at(start, "a number that is not too large"))
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use expect_test::expect;
    use proptest::prelude::*;
    use std::fmt::Write;

    fn error(text: &str) -> String {
        parse(text, Bounds::default()).unwrap_err().to_string()
    }

    /// Case ddx-01: both quotes, an apostrophe and a comma in a name; code is an error and is not run.
    #[test]
    fn ddx_01_lists_are_literals_and_anything_else_is_an_error() {
        let mut found = Vec::new();
        let text = r#"[["Syndrome d'essai", 0.6], ('Autre, bis', 4e-1,)]"#;
        pairs(text, Bounds::default(), |name, number| found.push((name, number))).unwrap();
        assert_eq!(found, [("Syndrome d'essai".into(), 0.6), ("Autre, bis".into(), 0.4)]);
        assert!(found.iter().all(|(name, _)| matches!(name, Cow::Borrowed(_))));
        let mut found = Vec::new();
        texts(r"['E_1', 'E_2_@_V_9', 'l\'eau \xe9\u00e9\U0001F600']", Bounds::default(), |text| found.push(text))
            .unwrap();
        assert_eq!(found, ["E_1", "E_2_@_V_9", "l'eau éé😀"]);
        let mut account = String::new();
        for text in [
            "__import__('os')",
            "['a'] + ['b']",
            "['a'",
            "['a' 'b']",
            "['a',, 'b']",
            "['a'] # note",
            "[True]",
            "[nan]",
            "u'a'",
            "['\\N{BULLET}']",
            "['\\ud800']",
            "['a\nb']",
            "['a\0']",
            "[007]",
            "[1_0]",
            "(1)",
            "[1e999]",
            "[99999999999999999999]",
            "é",
            "",
            "['a', *x]",
            "[1.2.3]",
            "{'a': 1}",
            "['\\07']",
        ] {
            writeln!(account, "{text:?}: {}", error(text)).unwrap();
        }
        expect![[r#"
            "__import__('os')": character 1: a list, a text or a number is expected, not `__import__('os')`
            "['a'] + ['b']": character 7: the end of the text is expected, not `+ ['b']`
            "['a'": character 5: a comma or the end of the list is expected, but the text ends
            "['a' 'b']": character 6: a comma or the end of the list is expected, not `'b']`
            "['a',, 'b']": character 6: a list, a text or a number is expected, not `, 'b']`
            "['a'] # note": character 7: the end of the text is expected, not `# note`
            "[True]": character 2: a list, a text or a number is expected, not `True]`
            "[nan]": character 2: a list, a text or a number is expected, not `nan]`
            "u'a'": character 1: a list, a text or a number is expected, not `u'a'`
            "['\\N{BULLET}']": character 3: an escape that `repr` writes is expected, not `\N{BULLET}']`
            "['\\ud800']": character 3: the number of a character is expected, not `\ud800']`
            "['a\nb']": character 4: a text without line ends is expected, not `\nb']`
            "['a\0']": character 4: a text without line ends is expected, not `\u{0}']`
            "[007]": character 2: a number without leading zeros is expected, not `007]`
            "[1_0]": character 3: the end of the number is expected, not `_0]`
            "(1)": character 1: a tuple with a comma is expected, not `(1)`
            "[1e999]": character 2: a number that is not too large is expected, not `1e999]`
            "[99999999999999999999]": character 2: a number that is not too large is expected, not `99999999999999999999]`
            "é": character 1: a list, a text or a number is expected, not `é`
            "": character 1: a list, a text or a number is expected, but the text ends
            "['a', *x]": character 7: a list, a text or a number is expected, not `*x]`
            "[1.2.3]": character 5: the end of the number is expected, not `.3]`
            "{'a': 1}": character 1: a list, a text or a number is expected, not `{'a': 1}`
            "['\\07']": character 3: an escape that `repr` writes is expected, not `\07']`
        "#]].assert_eq(&account);
    }

    #[test]
    fn depth_and_length_are_capped() {
        assert_eq!(
            error(&"[".repeat(1_000_000)),
            "character 9: less depth is expected, not `[[[[[[[[[[[[[[[[[[[[[[[…`"
        );
        let many = format!("[{}]", "1, ".repeat(5000));
        assert!(error(&many).contains("fewer items"), "{}", error(&many));
        let open = format!("['{}", "x".repeat(1 << 20));
        assert!(error(&open).contains("a quote that is closed"));
    }

    /// As `repr` of Python writes it.
    fn repr(literal: &Literal<'_>, out: &mut String) {
        match literal {
            Literal::Text(text) => {
                let quote = if text.contains('\'') && !text.contains('"') { '"' } else { '\'' };
                out.push(quote);
                for character in text.chars() {
                    match character {
                        '\\' => out.push_str("\\\\"),
                        '\n' => out.push_str("\\n"),
                        '\r' => out.push_str("\\r"),
                        '\t' => out.push_str("\\t"),
                        _ if character == quote => write!(out, "\\{quote}").unwrap(),
                        '\0'..='\x1f' | '\x7f' => write!(out, "\\x{:02x}", u32::from(character)).unwrap(),
                        '\u{80}'..='\u{a0}' => write!(out, "\\x{:02x}", u32::from(character)).unwrap(),
                        '\u{200b}' => out.push_str("\\u200b"),
                        '\u{e0001}' => out.push_str("\\U000e0001"),
                        _ => out.push(character),
                    }
                }
                out.push(quote);
            }
            Literal::Integer(number) => write!(out, "{number}").unwrap(),
            Literal::Float(number) => write!(out, "{number:?}").unwrap(),
            Literal::List(items) | Literal::Tuple(items) => {
                let is_list = matches!(literal, Literal::List(_));
                out.push(if is_list { '[' } else { '(' });
                for (position, item) in items.iter().enumerate() {
                    if position > 0 {
                        out.push_str(", ");
                    }
                    repr(item, out);
                }
                if !is_list && items.len() == 1 {
                    out.push(',');
                }
                out.push(if is_list { ']' } else { ')' });
            }
        }
    }

    fn literals() -> impl Strategy<Value = Literal<'static>> {
        let text = "[a-zé'\"\\\\ ,\\[\\]\n\r\t\0\u{85}\u{200b}\u{e0001}😀]{0,12}";
        let leaf = prop_oneof![
            text.prop_map(|text| Literal::Text(Cow::Owned(text))),
            any::<i64>().prop_map(Literal::Integer),
            any::<f64>().prop_filter("finite", |number| number.is_finite()).prop_map(Literal::Float),
        ];
        leaf.prop_recursive(4, 40, 6, |inner| {
            prop_oneof![
                prop::collection::vec(inner.clone(), 0..6).prop_map(Literal::List),
                prop::collection::vec(inner, 0..6).prop_map(Literal::Tuple),
            ]
        })
    }

    proptest! {
        /// What `repr` writes is read back.
        #[test]
        fn representations_come_back(literal in literals()) {
            let mut text = String::new();
            repr(&literal, &mut text);
            prop_assert_eq!(parse(&text, Bounds::default()), Ok(literal), "{}", text);
        }

        /// No text is a panic, and a cut-off list is an error.
        #[test]
        fn any_text_is_read_or_refused(text in "[\\[\\]()'\",\\\\xuUN0-9.eE+-]{0,40}", cut in 0usize..40) {
            let _ = parse(&text, Bounds::default());
            let list = format!("[{:?}, 1.5]", "xé");
            if let Some(start) = list.get(..cut.min(list.len() - 1)) {
                prop_assert!(parse(start, Bounds::default()).is_err());
            }
        }
    }
}
