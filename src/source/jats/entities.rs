//! Entities: those of the internal DTD subset, and the character entities that the JATS DTD takes from ISO and MathML.
//!
//! Nothing is ever fetched: an entity that is declared by an address is known as external and stays unresolved.

use super::error::{JatsError, JatsFault};
use std::collections::BTreeMap;
use std::sync::LazyLock;

/// What the internal subset declares.
#[derive(Debug, Default)]
pub struct Entities {
    general: BTreeMap<String, Declared>,
    /// Parameter entities; none for an external one.
    parameter: BTreeMap<String, Option<String>>,
    /// What of the subset is left aside, with the byte.
    pub ignored: Vec<(usize, String)>,
    bytes: usize,
}

#[derive(Debug)]
enum Declared {
    Internal(String),
    External,
}

/// What a name stands for.
#[derive(Debug, PartialEq, Eq)]
pub enum Meaning<'e> {
    /// Characters.
    Text(&'e str),
    /// Replacement text of the internal subset, which may hold markup and further references.
    Markup(&'e str),
    /// Declared by an address.
    External,
    Unknown,
}

/// Bounds of the expansion of parameter entities.
#[derive(Clone, Copy, Debug)]
pub struct Bounds {
    pub max_depth: usize,
    pub max_bytes: usize,
}

impl Entities {
    /// Reads a document type declaration: what stands between `<!DOCTYPE` and its `>`, at a byte of the file.
    pub fn read(source: &str, declaration: &str, byte: usize, bounds: Bounds) -> Result<Self, JatsError> {
        let mut entities = Self::default();
        let Some(start) = subset_start(declaration) else { return Ok(entities) };
        let Some(end) = declaration.rfind(']').filter(|end| *end >= start) else { return Ok(entities) };
        let subset = declaration.get(start..end).unwrap_or_default();
        entities.declare(source, subset, byte, 0, bounds)?;
        Ok(entities)
    }

    /// The meaning of a general entity. The first declaration counts, and those of XML itself cannot be changed.
    pub fn meaning(&self, name: &str) -> Meaning<'_> {
        if let Some(text) = quick_xml::escape::resolve_xml_entity(name) {
            return Meaning::Text(text);
        }
        match self.general.get(name) {
            Some(Declared::Internal(text)) if text.contains(['<', '&']) => Meaning::Markup(text),
            Some(Declared::Internal(text)) => Meaning::Text(text),
            Some(Declared::External) => Meaning::External,
            None => CHARACTERS.get(name).map_or(Meaning::Unknown, |text| Meaning::Text(text)),
        }
    }

    fn declare(
        &mut self,
        source: &str,
        subset: &str,
        byte: usize,
        depth: usize,
        bounds: Bounds,
    ) -> Result<(), JatsError> {
        if depth > bounds.max_depth {
            let detail = "parameter entities contain each other without end";
            return Err(JatsError::at(JatsFault::EntityLimit, source.as_bytes(), byte, detail));
        }
        let mut rest = subset;
        loop {
            rest = rest.trim_start();
            if let Some(after) = rest.strip_prefix("<!--") {
                let Some((_, after)) = after.split_once("-->") else { return Ok(()) };
                rest = after;
            } else if let Some(after) = rest.strip_prefix("<?") {
                let Some((_, after)) = after.split_once("?>") else { return Ok(()) };
                rest = after;
            } else if let Some(after) = rest.strip_prefix('%') {
                let Some((name, after)) = after.split_once(';') else { return Ok(()) };
                rest = after;
                match self.parameter.get(name).cloned() {
                    Some(Some(text)) => {
                        self.bytes = self.bytes.saturating_add(text.len());
                        if self.bytes > bounds.max_bytes {
                            let detail = format!("parameter entities grow beyond {} bytes", bounds.max_bytes);
                            return Err(JatsError::at(JatsFault::EntityLimit, source.as_bytes(), byte, detail));
                        }
                        self.declare(source, &text, byte, depth + 1, bounds)?;
                    }
                    _ => self.ignored.push((byte, format!("the parameter entity %{name}; is not in this file"))),
                }
            } else if rest.starts_with('<') {
                let end = declaration_end(rest);
                let (declaration, after) = rest.split_at_checked(end).unwrap_or((rest, ""));
                rest = after;
                if let Some(body) = declaration.strip_prefix("<!ENTITY") {
                    self.entity(body.trim_end_matches('>'));
                } else if let Some(body) = declaration.strip_prefix("<!ATTLIST")
                    && body.contains(['"', '\''])
                {
                    self.ignored
                        .push((byte, "default values of attributes in the internal subset are left aside".into()));
                }
            } else {
                // Nothing that can stand here, or the end.
                return Ok(());
            }
        }
    }

    fn entity(&mut self, body: &str) {
        let body = body.trim_start();
        let (is_parameter, body) = match body.strip_prefix('%') {
            Some(after) => (true, after.trim_start()),
            None => (false, body),
        };
        let Some((name, definition)) = body.split_once(|character: char| character.is_ascii_whitespace()) else {
            return;
        };
        let definition = definition.trim_start();
        let value = definition.chars().next().filter(|quote| matches!(quote, '"' | '\'')).and_then(|quote| {
            let after = definition.get(1..)?;
            after.split_once(quote).map(|(value, _)| self.replacement(value))
        });
        if is_parameter {
            self.parameter.entry(name.to_owned()).or_insert(value);
        } else {
            let declared = value.map_or(Declared::External, Declared::Internal);
            self.general.entry(name.to_owned()).or_insert(declared);
        }
    }

    /// Character references of a declared value are replaced at once, general ones when used (XML 1.0, section 4.4).
    fn replacement(&self, value: &str) -> String {
        let mut text = String::with_capacity(value.len());
        let mut rest = value;
        while let Some((before, after)) = rest.split_once("&#") {
            text.push_str(before);
            match after.split_once(';').and_then(|(digits, after)| Some((character_of(&format!("#{digits}"))?, after)))
            {
                // A markup sign written as a reference stays one, or it would be read as markup.
                Some(('<', after)) => {
                    text.push_str("&lt;");
                    rest = after;
                }
                Some(('&', after)) => {
                    text.push('&');
                    rest = after;
                }
                Some((character, after)) => {
                    text.push(character);
                    rest = after;
                }
                None => {
                    text.push_str("&#");
                    rest = after;
                }
            }
        }
        text.push_str(rest);
        text
    }
}

/// The position after the `[` that opens the internal subset, which is not within a quoted identifier.
fn subset_start(declaration: &str) -> Option<usize> {
    let mut quote = None;
    for (position, byte) in declaration.bytes().enumerate() {
        match (quote, byte) {
            (None, b'"' | b'\'') => quote = Some(byte),
            (Some(open), byte) if open == byte => quote = None,
            (None, b'[') => return Some(position + 1),
            _ => {}
        }
    }
    None
}

/// The position after the `>` that ends a declaration.
fn declaration_end(text: &str) -> usize {
    let mut quote = None;
    for (position, byte) in text.bytes().enumerate() {
        match (quote, byte) {
            (None, b'"' | b'\'') => quote = Some(byte),
            (Some(open), byte) if open == byte => quote = None,
            (None, b'>') => return position + 1,
            _ => {}
        }
    }
    text.len()
}

/// The character of a numeric reference, given as `#8211` or `#x2013`; none when XML does not allow it.
pub fn character_of(reference: &str) -> Option<char> {
    let digits = reference.strip_prefix('#')?;
    let number = match digits.strip_prefix('x') {
        Some(digits) if digits.bytes().all(|byte| byte.is_ascii_hexdigit()) => u32::from_str_radix(digits, 16).ok()?,
        None if digits.bytes().all(|byte| byte.is_ascii_digit()) => digits.parse().ok()?,
        _ => return None,
    };
    let character = char::from_u32(number)?;
    let is_allowed = matches!(character, '\t' | '\n' | '\r' | ' '..) && !matches!(character, '\u{fffe}' | '\u{ffff}');
    is_allowed.then_some(character)
}

/// Character entities by name: W3C XML Entity Definitions for Characters, as the DTD of JATS includes them (the ISO 8879,
/// ISO 9573-13 and HTML sets), a line each with the code points. The table of the XML reader is not used, since many of its
/// values are cut off (version 0.39 has `;` for `alpha`).
static CHARACTERS: LazyLock<BTreeMap<&'static str, String>> = LazyLock::new(|| {
    let line = |line: &'static str| {
        let (name, points) = line.split_once('\t')?;
        let points = points.split(' ').map(|point| u32::from_str_radix(point, 16).ok().and_then(char::from_u32));
        Some((name, points.collect::<Option<String>>()?))
    };
    include_str!("characters.tsv").lines().filter_map(line).collect()
});

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_character_entity_has_its_characters() {
        let lines: Vec<&str> = include_str!("characters.tsv").lines().collect();
        assert!(lines.is_sorted());
        assert_eq!(CHARACTERS.len(), lines.len(), "each line is read, and no name twice");
        let entities = Entities::default();
        for (name, text) in [
            ("agr", "α"),
            ("alpha", "α"),
            ("b.alpha", "𝛂"),
            ("micro", "µ"),
            ("ndash", "–"),
            ("le", "≤"),
            ("deg", "°"),
            ("amp", "&"),
            ("thinsp", "\u{2009}"),
            ("NotEqualTilde", "≂\u{338}"),
        ] {
            assert_eq!(entities.meaning(name), Meaning::Text(text), "{name}");
        }
        assert_eq!(entities.meaning("nothing"), Meaning::Unknown);
    }
}
