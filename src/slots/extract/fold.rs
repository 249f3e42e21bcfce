//! A lower-case ASCII copy of a text, one byte for each character.

use std::ops::Range;

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

    pub(super) fn original_range(&self, range: &Range<usize>) -> Range<usize> {
        match &self.offsets {
            None => range.clone(),
            Some(offsets) => {
                let end = offsets.last().copied().unwrap_or_default();
                let at = |index: usize| offsets.get(index).copied().unwrap_or(end);
                at(range.start)..at(range.end)
            }
        }
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
