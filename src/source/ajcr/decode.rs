//! The text of a page: which characters its bytes stand for. A byte-order mark decides before what the page says of itself
//! (XML declaration, `meta charset`), and that before a guess: UTF-8 if it is, else windows-1252 (WHATWG Encoding standard).

use std::borrow::Cow;

/// How far into a page its encoding is looked for, as browsers do.
const MAX_PRESCAN: usize = 1024;

/// A page as text.
#[derive(Debug)]
pub struct Decoded<'a> {
    pub text: Cow<'a, str>,
    /// `utf-8`, `utf-16le`, `utf-16be` or `windows-1252`.
    pub encoding: &'static str,
    /// Whether the bytes of the file are those of the text, so that offsets are of the file itself.
    pub is_verbatim: bool,
    /// Whether the page names an encoding that is not read, or one that its bytes are not in.
    pub is_guessed: bool,
}

/// Decodes a page. Bytes that stand for nothing become U+FFFD. Never fails.
pub fn decode(bytes: &[u8]) -> Decoded<'_> {
    if let Some(rest) = bytes.strip_prefix(b"\xef\xbb\xbf") {
        // The mark stays in the text, as three bytes that are dropped with all that has no width: offsets stay true.
        let is_valid = std::str::from_utf8(rest).is_ok();
        return utf8(bytes, !is_valid);
    }
    if bytes.starts_with(b"\xff\xfe") {
        return utf16(bytes, u16::from_le_bytes, "utf-16le");
    }
    if bytes.starts_with(b"\xfe\xff") {
        return utf16(bytes, u16::from_be_bytes, "utf-16be");
    }
    let named = named(bytes);
    let is_utf8 = std::str::from_utf8(bytes).is_ok();
    match named.as_deref() {
        Some("utf-8" | "utf8" | "us-ascii" | "ascii") | None if is_utf8 => utf8(bytes, false),
        Some("windows-1252" | "cp1252" | "x-cp1252" | "iso-8859-1" | "iso8859-1" | "latin1" | "latin-1" | "l1") => {
            windows_1252(bytes, false)
        }
        None => windows_1252(bytes, false),
        Some("utf-8" | "utf8") => utf8(bytes, true),
        Some(_) if is_utf8 => utf8(bytes, true),
        Some(_) => windows_1252(bytes, true),
    }
}

fn utf8(bytes: &[u8], is_guessed: bool) -> Decoded<'_> {
    let text = String::from_utf8_lossy(bytes);
    let is_verbatim = matches!(text, Cow::Borrowed(_));
    Decoded { text, encoding: "utf-8", is_verbatim, is_guessed }
}

fn utf16(bytes: &[u8], unit: fn([u8; 2]) -> u16, encoding: &'static str) -> Decoded<'static> {
    let units = bytes.get(2..).unwrap_or_default().chunks(2).map(|pair| match pair {
        [first, second] => unit([*first, *second]),
        _ => 0xfffd,
    });
    let text: String = char::decode_utf16(units).map(|unit| unit.unwrap_or(char::REPLACEMENT_CHARACTER)).collect();
    Decoded { text: Cow::Owned(text), encoding, is_verbatim: false, is_guessed: false }
}

/// What windows-1252 has where latin-1 has controls; five places have none and stay.
const HIGH: [char; 32] = [
    '€', '\u{81}', '‚', 'ƒ', '„', '…', '†', '‡', 'ˆ', '‰', 'Š', '‹', 'Œ', '\u{8d}', 'Ž', '\u{8f}', '\u{90}', '‘', '’',
    '“', '”', '•', '–', '—', '˜', '™', 'š', '›', 'œ', '\u{9d}', 'ž', 'Ÿ',
];

fn windows_1252(bytes: &[u8], is_guessed: bool) -> Decoded<'_> {
    if let Ok(text) = std::str::from_utf8(bytes)
        && bytes.is_ascii()
    {
        return Decoded { text: Cow::Borrowed(text), encoding: "windows-1252", is_verbatim: true, is_guessed };
    }
    let character = |byte: &u8| match byte {
        0x80..=0x9f => HIGH.get(usize::from(*byte - 0x80)).copied().unwrap_or(char::REPLACEMENT_CHARACTER),
        other => char::from(*other),
    };
    let text: String = bytes.iter().map(character).collect();
    Decoded { text: Cow::Owned(text), encoding: "windows-1252", is_verbatim: false, is_guessed }
}

/// The encoding that a page names in its first bytes, in lower case.
fn named(bytes: &[u8]) -> Option<String> {
    let head = bytes.get(..MAX_PRESCAN.min(bytes.len()))?;
    let head = String::from_utf8_lossy(head).to_ascii_lowercase();
    let declaration =
        head.trim_start().strip_prefix("<?xml").and_then(|rest| rest.split_once("?>")).map(|(own, _)| own);
    let in_declaration = declaration.and_then(|own| own.split_once("encoding")).and_then(|(_, value)| value_of(value));
    let in_meta = head.match_indices("<meta").find_map(|(at, _)| {
        let tag = head.get(at..)?.split('>').next()?;
        value_of(tag.split_once("charset")?.1)
    });
    in_meta.or(in_declaration)
}

/// The value behind `=`.
fn value_of(text: &str) -> Option<String> {
    let value = text.trim_start().strip_prefix('=')?.trim_start().trim_start_matches(['"', '\'']);
    let end =
        value.find(|c: char| c.is_whitespace() || matches!(c, '"' | '\'' | ';' | '/' | '?')).unwrap_or(value.len());
    value.get(..end).filter(|value| !value.is_empty()).map(str::to_owned)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn marks_then_names_then_guesses_decide() {
        let told = |bytes: &[u8]| {
            let decoded = decode(bytes);
            let text = decoded.text.rsplit('>').next().unwrap().to_owned();
            format!("{} {} {} {text}", decoded.encoding, decoded.is_verbatim, decoded.is_guessed)
        };
        assert_eq!(told("<p>37 °C".as_bytes()), "utf-8 true false 37 °C");
        assert_eq!(told(b"<p>37 \xb0C \x96 \x80"), "windows-1252 false false 37 °C – €");
        assert_eq!(told(b"<meta charset='iso-8859-1'><p>37 \xb0C"), "windows-1252 false false 37 °C");
        let by_type = b"<META http-equiv=Content-Type content=\"text/html; charset=windows-1252\"><p>\x93a\x94";
        assert_eq!(told(by_type), "windows-1252 false false “a”");
        assert_eq!(told(b"<?xml version='1.0' encoding='ISO-8859-1'?><p>\xe9"), "windows-1252 false false é");
        assert_eq!(told(b"\xff\xfe<\0p\0>\0\xb0\0"), "utf-16le false false °");
        assert_eq!(told(b"\xfe\xff\0<\0p\0>\0\xb0"), "utf-16be false false °");
        assert_eq!(told(b"\xef\xbb\xbf<p>\xc2\xb0"), "utf-8 true false °");
        assert_eq!(told(b"<meta charset=koi8-r><p>\xc2\xb0"), "utf-8 true true °");
        assert_eq!(told(b"<meta charset=utf-8><p>a\xff"), "utf-8 false true a\u{fffd}");
    }
}
