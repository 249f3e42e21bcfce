//! A lower-case ASCII copy of a text, one byte for each character.

use super::terms::Token;
use regex::Regex;
use std::ops::Range;
use std::sync::LazyLock;

/// A lower-case ASCII copy of a text, one byte for each character.
pub(super) struct Folded {
    pub(super) text: String,
    /// Byte offset of every character of the original and of its end; none if both have the same offsets.
    offsets: Option<Vec<usize>>,
}

impl Folded {
    pub(super) fn new(original: &str) -> Self {
        if original.is_ascii() {
            let text = original.chars().map(fold).collect();
            return Self { text, offsets: None };
        }
        let mut text = String::with_capacity(original.len());
        let mut offsets = Vec::with_capacity(original.len() + 1);
        for (offset, character) in original.char_indices() {
            text.push(fold(character));
            offsets.push(offset);
        }
        offsets.push(original.len());
        Self { text, offsets: Some(offsets) }
    }

    pub(super) fn fold_range(&self, range: &Range<usize>) -> Range<usize> {
        match &self.offsets {
            None => range.clone(),
            Some(offsets) => {
                let at = |offset: usize| offsets.partition_point(|&begin| begin < offset);
                at(range.start)..at(range.end)
            }
        }
    }
}

/// One ASCII character for any character: look-alikes and accented letters become the Latin letter, typographic
/// marks the plain one, other letters `_` and all else `~`.
pub(super) fn fold(character: char) -> char {
    match character {
        '\n' => '\n',
        ' '..='~' => character.to_ascii_lowercase(),
        'а' | 'А' | 'à' | 'á' | 'â' | 'ä' | 'À' | 'Á' | 'Â' | 'Ä' | 'ɑ' | 'α' | 'Α' => 'a',
        'В' | 'в' | 'Β' => 'b',
        'с' | 'С' | 'ϲ' | 'ç' | 'Ç' => 'c',
        'ԁ' => 'd',
        'е' | 'Е' | 'ё' | 'Ё' | 'è' | 'é' | 'ê' | 'ë' | 'È' | 'É' | 'Ê' | 'Ë' | 'Ε' => 'e',
        'ɡ' => 'g',
        'һ' | 'Н' | 'Η' => 'h',
        'і' | 'І' | 'ї' | 'Ї' | 'ì' | 'í' | 'î' | 'ï' | 'ı' | 'Ι' => 'i',
        'ј' | 'Ј' => 'j',
        'К' | 'к' | 'Κ' => 'k',
        'ӏ' | 'Ӏ' => 'l',
        'М' | 'м' | 'Μ' => 'm',
        'ո' | 'ñ' | 'Ñ' | 'Ν' => 'n',
        'о' | 'О' | 'ο' | 'Ο' | 'ò' | 'ó' | 'ô' | 'ö' | 'Ò' | 'Ó' | 'Ô' | 'Ö' | 'ø' | 'Ø' => 'o',
        'р' | 'Р' | 'ρ' | 'Ρ' => 'p',
        'ԛ' => 'q',
        'ѕ' | 'Ѕ' => 's',
        'Т' | 'т' | 'Τ' => 't',
        'ս' | 'ù' | 'ú' | 'û' | 'ü' | 'Ù' | 'Ú' | 'Û' | 'Ü' | 'μ' | 'µ' => 'u',
        'ν' | 'ѵ' => 'v',
        'ԝ' => 'w',
        'х' | 'Х' | '×' | 'Χ' => 'x',
        'у' | 'У' | 'ү' | 'Υ' => 'y',
        'Ζ' => 'z',
        '\u{2010}'..='\u{2015}' | '\u{2212}' | '\u{AD}' => '-',
        '\u{2018}' | '\u{2019}' | '\u{B4}' => '\'',
        '\u{201C}' | '\u{201D}' => '"',
        _ if character.is_whitespace() => ' ',
        _ if character.is_alphanumeric() => '_',
        _ => '~',
    }
}

/// A copy of a text in which tags and character references are white space of the same length in bytes; none if it has
/// none of them.
pub(super) fn without_markup(text: &str) -> Option<String> {
    if !text.contains(['<', '&']) {
        return None;
    }
    let mut plain: Option<String> = None;
    for found in MARKUP.find_iter(text) {
        let copy = plain.get_or_insert_with(|| text.to_owned());
        copy.replace_range(found.range(), &" ".repeat(found.len()));
    }
    plain
}

/// Tags of HTML by name, so that "p < 0.05" is none, and character references.
static MARKUP: LazyLock<Regex> = LazyLock::new(|| {
    // A fixed pattern, compiled by a test.
    Regex::new(r"(?i)</?(?:a|b|br|div|em|font|h[1-6]|i|img|li|ol|p|span|strong|sub|sup|table|tbody|td|th|tr|u|ul)(?:\s[^<>]{0,200})?/?>|&(?:[a-z]{2,8}|#[0-9]{1,6}|#x[0-9a-f]{1,5});")
        .expect("the pattern is fixed")
});

/// The commonest words of English prose.
const COMMON: [&str; 28] = [
    "the", "of", "and", "a", "an", "to", "in", "is", "with", "for", "was", "on", "has", "he", "she", "his", "her",
    "at", "by", "from", "had", "are", "or", "that", "no", "not", "which", "this",
];

/// Whether at least every twelfth word is one of the commonest in English. Texts of fewer than twelve words pass.
pub(super) fn is_english(text: &str, tokens: &[Token]) -> bool {
    let words = tokens.iter().filter_map(|token| text.get(token.start..token.end));
    let mut n_words = 0_usize;
    let mut n_common = 0_usize;
    for word in words {
        if word.bytes().any(|byte| byte.is_ascii_digit()) {
            continue;
        }
        n_words += 1;
        n_common += usize::from(COMMON.contains(&word));
    }
    n_words < 12 || n_common * 12 >= n_words
}
