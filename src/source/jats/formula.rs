//! Formulas in a line of text: one of the encodings that are offered, TeX before MathML before anything with words.

use super::scripts::{lowered, raised};
use super::tags::Tag;
use super::text::{Source, Writer, raw_words};
use super::tree::{Child, Element, Text, is_space};
use crate::record::article::WarningKind;

/// What stands for a formula that is only an image.
pub const NO_TEXT: &str = "[formula]";

impl<'t, 'a> Writer<'t, 'a> {
    /// Writes a formula once.
    pub fn formula(&mut self, element: Element<'t, 'a>) {
        let begin = self.length();
        self.formula_children(element);
        if self.is_at(begin) {
            self.without_text(element);
        }
    }

    fn without_text(&mut self, element: Element<'t, 'a>) {
        let image = element.descendants().find(|below| matches!(below.tag(), Tag::Graphic | Tag::InlineGraphic));
        if let Some(image) = image {
            self.set_aside(image);
            self.warn(WarningKind::FormulaWithoutText, element);
            self.put(NO_TEXT, Source::inserted(element.bytes().start));
        }
    }

    fn formula_children(&mut self, element: Element<'t, 'a>) {
        let has_tex = element.elements().any(|child| child.tag() == Tag::TexMath);
        for child in element.children() {
            match child {
                Child::Text(text, start, end) => self.text(text, start, end),
                Child::Element(child) => match child.tag() {
                    Tag::Label | Tag::Graphic | Tag::InlineGraphic | Tag::Caption | Tag::AltText | Tag::LongDesc => {}
                    Tag::Math if has_tex => {}
                    Tag::Alternatives => self.alternatives(child),
                    Tag::Math => self.math(child),
                    Tag::TexMath => self.tex(child),
                    Tag::DispFormula | Tag::InlineFormula => {
                        self.space(child);
                        self.formula(child);
                    }
                    _ => self.element(child),
                },
            }
        }
    }

    /// Writes the first alternative that has words.
    pub fn alternatives(&mut self, element: Element<'t, 'a>) {
        let begin = self.length();
        let order = |tag: Tag| match tag {
            Tag::TexMath => 0,
            Tag::Math => 1,
            Tag::TextualForm => 2,
            Tag::Graphic | Tag::InlineGraphic | Tag::Media => 4,
            _ => 3,
        };
        let mut choices: Vec<Element<'t, 'a>> = element.elements().collect();
        choices.sort_by_key(|choice| order(choice.tag()));
        for choice in &choices {
            match choice.tag() {
                Tag::TexMath => self.tex(*choice),
                Tag::Math => self.math(*choice),
                // A table or figure among alternatives is set aside with all of them.
                Tag::Table | Tag::Tgroup | Tag::Graphic | Tag::InlineGraphic | Tag::Media => {
                    self.set_aside(element);
                    return;
                }
                _ => self.children(*choice),
            }
            if !self.is_at(begin) {
                return;
            }
        }
    }

    /// Writes TeX as it stands, without preamble and signs of mathematics mode.
    pub fn tex(&mut self, element: Element<'t, 'a>) {
        let mut whole = String::new();
        let mut pieces = Vec::new();
        for child in element.children() {
            let Child::Text(text, start, end) = child else { continue };
            let from = whole.len();
            match text {
                Text::Verbatim(text) | Text::Replaced(text) => whole.push_str(text),
                Text::Character(character) => whole.push(character),
            }
            pieces.push((text, start, end, from, whole.len()));
        }
        let (low, high) = tex_range(&whole);
        for (text, start, end, from, to) in pieces {
            let (begin, stop) = (from.max(low), to.min(high));
            if begin >= stop {
                continue;
            }
            match text {
                Text::Verbatim(text) => {
                    let skipped = begin - from;
                    let piece = text.get(skipped..stop - from).unwrap_or_default();
                    self.verbatim(piece, start.saturating_add(u32::try_from(skipped).unwrap_or(0)));
                }
                _ => self.text(text, start, end),
            }
        }
    }

    /// Writes MathML in one line.
    pub fn math(&mut self, element: Element<'t, 'a>) {
        for child in element.children() {
            match child {
                Child::Text(text, start, end) => self.math_text(text, start, end),
                Child::Element(child) => self.math_element(child),
            }
        }
    }

    fn math_text(&mut self, text: Text<'a>, start: u32, end: u32) {
        // White space between tokens says nothing, and that within them is kept by `mtext` alone.
        if let Text::Verbatim(text) = text
            && text.bytes().all(is_space)
        {
            return;
        }
        self.text(text, start, end);
    }

    fn math_element(&mut self, element: Element<'t, 'a>) {
        let start = element.bytes().start;
        let parts: Vec<Element<'t, 'a>> = element.elements().collect();
        let part = |index: usize| parts.get(index).copied();
        match element.tag() {
            Tag::Semantics | Tag::Maction => {
                if let Some(first) = part(0) {
                    self.math_element(first);
                }
            }
            Tag::Annotation | Tag::AnnotationXml | Tag::Mphantom => {}
            Tag::Mspace => self.space_at(start),
            Tag::Mtext => {
                let content = raw_words(element);
                if content.trim().is_empty() {
                    self.space_at(start);
                } else {
                    self.children(element);
                }
            }
            Tag::Mn => {
                // Two numbers beside each other stay two.
                if self.ends_with_digit() {
                    self.space_at(start);
                }
                self.math(element);
            }
            Tag::Mo => {
                let sign = raw_words(element);
                let is_relation = matches!(
                    sign.as_str(),
                    "=" | "<"
                        | ">"
                        | "≤"
                        | "≥"
                        | "≈"
                        | "≠"
                        | "≡"
                        | "∼"
                        | "~"
                        | "→"
                        | "⇒"
                        | "∈"
                        | "±"
                        | "≃"
                        | "≅"
                        | "∝"
                );
                // Invisible signs of multiplication and application.
                if matches!(sign.as_str(), "\u{2061}" | "\u{2062}" | "\u{2063}" | "\u{2064}") {
                    return;
                }
                if is_relation {
                    self.space_at(start);
                }
                self.math(element);
                if is_relation {
                    self.space_at(element.bytes().end);
                }
            }
            Tag::Mfrac => {
                self.grouped(part(0));
                self.mark("/", start);
                self.grouped(part(1));
            }
            Tag::Msqrt => {
                self.mark("√(", start);
                self.math(element);
                self.mark(")", element.bytes().end);
            }
            Tag::Mroot => {
                self.mark("root(", start);
                self.one(part(0));
                self.mark(", ", start);
                self.one(part(1));
                self.mark(")", element.bytes().end);
            }
            Tag::Msup => {
                self.one(part(0));
                self.power(part(1));
            }
            Tag::Msub => {
                self.one(part(0));
                self.index_below(part(1));
            }
            Tag::Msubsup | Tag::Munderover => {
                self.one(part(0));
                self.index_below(part(1));
                self.power(part(2));
            }
            Tag::Munder => {
                self.one(part(0));
                self.index_below(part(1));
            }
            Tag::Mover => {
                self.one(part(0));
                let over = part(1).map(raw_words).unwrap_or_default();
                let accent = match over.as_str() {
                    "¯" | "‾" | "ˉ" | "_" | "\u{305}" | "\u{304}" | "―" | "−" | "-" => Some("\u{304}"),
                    "^" | "ˆ" | "\u{302}" => Some("\u{302}"),
                    "~" | "˜" | "\u{303}" => Some("\u{303}"),
                    "˙" | "." | "\u{307}" => Some("\u{307}"),
                    "→" | "\u{20d7}" => Some("\u{20d7}"),
                    _ => None,
                };
                match (accent, part(1)) {
                    (Some(accent), Some(over)) => {
                        let bytes = over.bytes();
                        self.put(accent, Source::replaced(bytes.start, bytes.end));
                    }
                    (None, over) => self.power(over),
                    (Some(_), None) => {}
                }
            }
            Tag::Mfenced => {
                self.mark(&element.attribute("open").unwrap_or_else(|| "(".to_owned()), start);
                for (index, part) in parts.iter().enumerate() {
                    if index > 0 {
                        self.mark(", ", part.bytes().start);
                    }
                    self.math_element(*part);
                }
                self.mark(&element.attribute("close").unwrap_or_else(|| ")".to_owned()), element.bytes().end);
            }
            Tag::Mtable | Tag::Mtr => {
                let separator = if element.tag() == Tag::Mtable { "; " } else { ", " };
                for (index, part) in parts.iter().enumerate() {
                    if index > 0 {
                        self.mark(separator, part.bytes().start);
                    }
                    self.math_element(*part);
                }
            }
            _ => self.math(element),
        }
    }

    fn ends_with_digit(&self) -> bool {
        self.passage.text.ends_with(|last: char| last.is_ascii_digit())
    }

    fn one(&mut self, element: Option<Element<'t, 'a>>) {
        if let Some(element) = element {
            self.math_element(element);
        }
    }

    /// Signs that were not in the file.
    fn mark(&mut self, sign: &str, at: u32) {
        let trimmed = sign.trim();
        if !trimmed.is_empty() {
            self.put(trimmed, Source::inserted(at));
        }
        if sign.ends_with(' ') {
            self.space_at(at);
        }
    }

    fn grouped(&mut self, element: Option<Element<'t, 'a>>) {
        let Some(element) = element else { return };
        let is_token = matches!(element.tag(), Tag::Mi | Tag::Mn | Tag::Mtext);
        let bytes = element.bytes();
        if !is_token {
            self.mark("(", bytes.start);
        }
        self.math_element(element);
        if !is_token {
            self.mark(")", bytes.end);
        }
    }

    fn power(&mut self, element: Option<Element<'t, 'a>>) {
        self.script_of(element, raised, "^");
    }

    fn index_below(&mut self, element: Option<Element<'t, 'a>>) {
        self.script_of(element, lowered, "_");
    }

    /// Unicode forms when all characters have one, else a sign and brackets.
    fn script_of(&mut self, element: Option<Element<'t, 'a>>, form: fn(char) -> Option<char>, sign: &str) {
        let Some(element) = element else { return };
        let bytes = element.bytes();
        let content: String = raw_words(element).chars().filter(|character| !character.is_whitespace()).collect();
        if content.is_empty() {
            return;
        }
        let written: Option<String> = content.chars().map(form).collect();
        match written {
            Some(written) => self.put(&written, Source::replaced(bytes.start, bytes.end)),
            None if content.chars().count() == 1 => {
                self.mark(sign, bytes.start);
                self.math_element(element);
            }
            None => {
                self.mark(sign, bytes.start);
                self.mark("(", bytes.start);
                self.math_element(element);
                self.mark(")", bytes.end);
            }
        }
    }
}

/// The formula within a TeX document or fragment, as a byte range.
fn tex_range(whole: &str) -> (usize, usize) {
    const BEGIN: &str = "\\begin{document}";
    const END: &str = "\\end{document}";
    let low = whole.find(BEGIN).map_or(0, |position| position + BEGIN.len());
    let high = whole.get(low..).and_then(|rest| rest.rfind(END)).map_or(whole.len(), |position| low + position);
    // A preamble without a document holds no formula.
    if low == 0 && whole.contains("\\documentclass") {
        return (0, 0);
    }
    let (mut low, mut high) = (low, high);
    loop {
        let text = whole.get(low..high).unwrap_or_default();
        let is_edge = |character: char| character.is_ascii_whitespace() || character == '$';
        let inner = text.trim_start_matches(is_edge);
        low += text.len() - inner.len();
        high = low + inner.trim_end_matches(is_edge).len();
        let inner = whole.get(low..high).unwrap_or_default();
        let is_bracketed =
            |(open, close): (&str, &str)| inner.len() >= 4 && inner.starts_with(open) && inner.ends_with(close);
        if !(is_bracketed(("\\(", "\\)")) || is_bracketed(("\\[", "\\]"))) {
            return (low, high);
        }
        (low, high) = (low + 2, high - 2);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn tex_is_found_in_its_document() {
        for (whole, formula) in [
            ("\\documentclass[12pt]{minimal}\\usepackage{x}\\begin{document}$$a\\le 3$$\\end{document}", "a\\le 3"),
            ("$x$", "x"),
            (" \\( x_1 \\) ", "x_1"),
            ("\\documentclass{x} nothing", ""),
            ("", ""),
        ] {
            let (low, high) = tex_range(whole);
            assert_eq!(&whole[low..high], formula, "{whole}");
        }
    }
}
