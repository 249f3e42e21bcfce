//! Normal forms of text, for matching only: the raw text is always kept beside.

use std::ops::Range;

use unicode_normalization::char::canonical_combining_class;
use unicode_normalization::{IsNormalized, UnicodeNormalization, is_nfc_quick};

/// The form in which two texts are compared: compatibility forms unified where the meaning allows,
/// look-alike Cyrillic letters inside Latin text read as Latin, invisible characters removed, quotes
/// and dashes made plain, white space collapsed, lower case.
///
/// Superscripts, subscripts and fractions are left alone: NFKC would turn 10⁹ into 109.
pub fn for_matching(text: &str) -> String {
    normalize::<Forgotten>(text).0
}

/// The form of [`for_matching`] with, for every character of it, where it came from.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Normalized {
    /// What [`for_matching`] gives.
    pub text: String,
    /// For every byte of `text` the characters of the original that made it, neither end ever falling.
    origins: Vec<Span>,
}

impl Normalized {
    /// Normalises a text of less than 2³² characters; positions beyond that are all given as 2³² − 1.
    pub fn of(original: &str) -> Self {
        let (text, Remembered(spans)) = normalize::<Remembered>(original);
        let mut origins = Vec::with_capacity(text.len());
        for (character, span) in text.chars().zip(spans) {
            origins.extend(std::iter::repeat_n(span, character.len_utf8()));
        }
        Self { text, origins }
    }

    /// The range, in Unicode scalar values of the original, of a range of bytes of `text`.
    ///
    /// It holds every character that went into the range: a composed letter gives back its letter and marks, one
    /// half of a ligature the ligature, a blank the white space it stands for. `None` when the range is empty, ends
    /// outside `text` or splits a character.
    pub fn original_chars(&self, bytes: Range<usize>) -> Option<Range<u32>> {
        if bytes.is_empty() || self.text.get(bytes.clone()).is_none() {
            return None;
        }
        let spans = self.origins.get(bytes)?;
        Some(spans.first()?.start..spans.last()?.end)
    }
}

/// Characters of the original, counted from 0, the end excluded.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
struct Span {
    start: u32,
    end: u32,
}

impl Span {
    fn of_char(position: usize) -> Self {
        let start = u32::try_from(position).unwrap_or(u32::MAX);
        Self { start, end: start.saturating_add(1) }
    }

    fn to(self, later: Self) -> Self {
        Self { start: self.start, end: later.end }
    }
}

/// Where each character of a text came from, or nothing for callers that do not ask.
trait Origins: Default {
    fn push(&mut self, span: Span);
    /// Of one character, counted from 0.
    fn get(&self, position: usize) -> Span;
}

#[derive(Default)]
struct Forgotten;

impl Origins for Forgotten {
    fn push(&mut self, _: Span) {}

    fn get(&self, _: usize) -> Span {
        Span::default()
    }
}

#[derive(Default)]
struct Remembered(Vec<Span>);

impl Origins for Remembered {
    fn push(&mut self, span: Span) {
        self.0.push(span);
    }

    fn get(&self, position: usize) -> Span {
        self.0.get(position).copied().unwrap_or_default()
    }
}

fn normalize<O: Origins>(original: &str) -> (String, O) {
    if original.is_ascii() {
        return fold(original, Span::of_char);
    }
    let (mut unified, mut origins, may_compose) = unify::<O>(original);
    if may_compose {
        (unified, origins) = compose(&unified, &origins);
    }
    if unified.chars().any(is_cyrillic) {
        unified = latin_look_alikes(&unified);
    }
    fold(&unified, |position| origins.get(position))
}

/// Compatibility forms, quotes and dashes of single characters; invisible ones are left out. Also whether any
/// character may compose with the one before it.
fn unify<O: Origins>(original: &str) -> (String, O, bool) {
    let mut unified = String::with_capacity(original.len());
    let mut origins = O::default();
    let mut may_compose = false;
    for (position, character) in original.chars().enumerate() {
        let span = Span::of_char(position);
        if character.is_ascii() || keeps_its_form(character) {
            unified.push(character);
            origins.push(span);
        } else if !is_invisible(character) {
            for part in std::iter::once(character).nfkc().map(plain_punctuation) {
                may_compose |= !starts_anew(part);
                unified.push(part);
                origins.push(span);
            }
        }
    }
    (unified, origins, may_compose)
}

/// NFC, in pieces that do not influence each other. The characters of a piece that holds more than one share their
/// origin, also when they have no composed form.
fn compose<O: Origins>(unified: &str, origins: &O) -> (String, O) {
    let mut composed = String::with_capacity(unified.len());
    let mut spans = O::default();
    let mut rest = unified;
    let mut position: usize = 0;
    while let Some(first) = rest.chars().next() {
        let after_first = rest.get(first.len_utf8()..).unwrap_or_default();
        let length = first.len_utf8() + after_first.find(starts_anew).unwrap_or(after_first.len());
        let (piece, after) = rest.split_at(length);
        if length == first.len_utf8() {
            composed.push(first);
            spans.push(origins.get(position));
            position += 1;
        } else {
            let n_characters = piece.chars().count();
            let span = origins.get(position).to(origins.get(position + n_characters - 1));
            for character in piece.nfc() {
                composed.push(character);
                spans.push(span);
            }
            position += n_characters;
        }
        rest = after;
    }
    (composed, spans)
}

/// Whether NFC never joins a character of composed text to what stands before it, nor reorders it.
fn starts_anew(character: char) -> bool {
    character.is_ascii()
        || canonical_combining_class(character) == 0 && is_nfc_quick(std::iter::once(character)) == IsNormalized::Yes
}

/// Collapses white space, trims and lowers case.
fn fold<O: Origins>(unified: &str, origin_of: impl Fn(usize) -> Span) -> (String, O) {
    let mut folded = String::with_capacity(unified.len());
    let mut origins = O::default();
    let mut gap: Option<Span> = None;
    for (position, character) in unified.chars().enumerate() {
        let span = origin_of(position);
        if character.is_whitespace() {
            gap = Some(gap.unwrap_or(span).to(span));
            continue;
        }
        if let Some(gap) = gap.take()
            && !folded.is_empty()
        {
            folded.push(' ');
            origins.push(gap);
        }
        if character.is_ascii() {
            folded.push(plain_punctuation(character.to_ascii_lowercase()));
            origins.push(span);
        } else {
            for lower in character.to_lowercase() {
                folded.push(lower);
                origins.push(span);
            }
        }
    }
    (folded, origins)
}

/// Replaces look-alikes in a text that is otherwise kept, for values that are shown: case, dashes
/// and white space inside stay as they are; the ends are trimmed and runs of white space collapsed.
pub fn for_display(text: &str) -> String {
    let visible: String = text.chars().filter(|c| !is_invisible(*c)).nfc().collect();
    latin_look_alikes(&visible).split_whitespace().collect::<Vec<_>>().join(" ")
}

/// Typographic quotes, primes and dashes as typed ones.
fn plain_punctuation(character: char) -> char {
    match character {
        '’' | '‘' | '‛' | '′' | '`' | '´' => '\'',
        '“' | '”' | '„' | '″' => '"',
        '‐' | '‑' | '‒' | '–' | '—' | '−' => '-',
        other => other,
    }
}

/// Characters that take no room: they are typing accidents in the sources.
fn is_invisible(character: char) -> bool {
    matches!(character, '\u{ad}' | '\u{200b}'..='\u{200f}' | '\u{202a}'..='\u{202e}' | '\u{2060}'..='\u{2064}' | '\u{feff}')
}

/// Superscripts, subscripts and fractions.
fn keeps_its_form(character: char) -> bool {
    matches!(character, '²' | '³' | '¹' | '\u{2070}'..='\u{209f}' | '¼'..='¾' | '\u{2150}'..='\u{215f}' | '\u{2189}')
}

/// Reads Cyrillic letters that look Latin as Latin: in words that hold a Latin letter, and in words
/// of look-alikes alone when the text holds no other Cyrillic letter.
fn latin_look_alikes(text: &str) -> String {
    if !text.chars().any(is_cyrillic) {
        return text.to_owned();
    }
    let only_look_alikes = text.chars().filter(|c| is_cyrillic(*c)).all(|c| look_alike(c).is_some());
    let mut latin = String::with_capacity(text.len());
    let mut rest = text;
    while let Some(first) = rest.chars().next() {
        let length = if first.is_alphabetic() {
            rest.find(|c: char| !c.is_alphabetic()).unwrap_or(rest.len())
        } else {
            first.len_utf8()
        };
        let (word, after) = rest.split_at(length);
        if only_look_alikes || word.chars().any(|c| c.is_ascii_alphabetic()) {
            latin.extend(word.chars().map(|c| look_alike(c).unwrap_or(c)));
        } else {
            latin.push_str(word);
        }
        rest = after;
    }
    latin
}

fn is_cyrillic(character: char) -> bool {
    matches!(character, '\u{400}'..='\u{52f}')
}

/// The Latin letter that a Cyrillic one looks like.
pub fn look_alike(character: char) -> Option<char> {
    Some(match character {
        'а' => 'a',
        'е' => 'e',
        'о' => 'o',
        'р' => 'p',
        'с' => 'c',
        'у' => 'y',
        'х' => 'x',
        'і' => 'i',
        'ј' => 'j',
        'ѕ' => 's',
        'һ' => 'h',
        'ԁ' => 'd',
        'А' => 'A',
        'В' => 'B',
        'Е' => 'E',
        'К' => 'K',
        'М' => 'M',
        'Н' => 'H',
        'О' => 'O',
        'Р' => 'P',
        'С' => 'C',
        'Т' => 'T',
        'Х' => 'X',
        'У' => 'Y',
        'Һ' => 'H',
        'Ԁ' => 'D',
        'І' => 'I',
        'Ј' => 'J',
        'Ѕ' => 'S',
        _ => return None,
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn matching_form() {
        for (raw, expected) in [
            ("A  45-yеаr-old\tman", "a 45-year-old man"), // Cyrillic е and а
            ("а раin", "a pain"),                         // Cyrillic words of look-alikes alone
            ("боль в paine", "боль в paine"),
            ("боль в pаin", "боль в pain"), // а inside a Latin word
            ("5 µg and 5 μg", "5 μg and 5 μg"),
            ("38 ℃", "38 °c"),
            ("10⁹/L", "10⁹/l"),
            ("x\u{200b}y\u{ad}z", "xyz"),
            ("“Don’t” – no", "\"don't\" - no"),
            ("Me\u{301}nie\u{300}re", "ménière"),
            ("a\u{a0}b", "a b"),
            ("ﬁbrosis", "fibrosis"),
            ("½ tablet", "½ tablet"),
            ("", ""),
        ] {
            assert_eq!(for_matching(raw), expected, "{raw}");
        }
    }

    #[test]
    fn display_form_keeps_case_and_dashes() {
        assert_eq!(for_display("  Ménière’s  diѕеаѕе – left\u{200b} "), "Ménière’s disease – left");
    }

    /// The original characters behind every place where `part` stands in the matching form.
    fn behind(raw: &str, part: &str) -> Vec<String> {
        let normalized = Normalized::of(raw);
        normalized
            .text
            .match_indices(part)
            .map(|(start, found)| {
                let range = normalized.original_chars(start..start + found.len()).expect("a found part is a range");
                raw.chars().skip(range.start as usize).take(range.len()).collect()
            })
            .collect()
    }

    #[test]
    fn ranges_lead_back_to_whole_characters() {
        for (raw, part, expected) in [
            ("A  45-year", "45", vec!["45"]),
            ("  a \t\n b ", "a b", vec!["a \t\n b"]),
            ("  a \t\n b ", " ", vec![" \t\n "]),
            ("Me\u{301}nie\u{300}re", "é", vec!["e\u{301}"]),
            ("Me\u{301}nie\u{300}re", "ni", vec!["ni"]),
            ("q\u{307}\u{323}x", "q", vec!["q\u{307}\u{323}"]), // no composed form, marks reordered
            ("diѕеаѕе", "disease", vec!["diѕеаѕе"]),
            ("x\u{200b}y\u{ad}z", "y", vec!["y"]),
            ("x\u{200b}y\u{ad}z", "xyz", vec!["x\u{200b}y\u{ad}z"]),
            ("e\u{200b}\u{301}", "é", vec!["e\u{200b}\u{301}"]),
            ("ﬁbroﬁ", "f", vec!["ﬁ", "ﬁ"]),
            ("38 ℃.", "c", vec!["℃"]),
            ("İx", "i", vec!["İ"]),
            ("İx", "x", vec!["x"]),
            ("각.", "각", vec!["각"]), // composed from three jamo below
            ("\u{1100}\u{1161}\u{11a8}.", "각", vec!["\u{1100}\u{1161}\u{11a8}"]),
            ("“Don’t”", "'", vec!["’"]),
            ("a`b", "'", vec!["`"]),
        ] {
            assert_eq!(behind(raw, part), expected, "{raw:?} {part:?}");
        }
    }

    #[test]
    fn ranges_that_are_none() {
        let normalized = Normalized::of("é x");
        assert_eq!(normalized.text, "é x");
        for bytes in [0..0, 1..2, 0..1, 3..5, 4..4, 9..12, Range { start: 3, end: 2 }] {
            assert_eq!(normalized.original_chars(bytes.clone()), None, "{bytes:?}");
        }
        assert_eq!(normalized.original_chars(0..4), Some(0..3));
        assert_eq!(Normalized::of(" \u{200b}").text, "");
    }

    /// The definition of the matching form, step by step over the whole text.
    fn step_by_step(text: &str) -> String {
        let unified: String = text
            .chars()
            .filter(|c| c.is_ascii() || keeps_its_form(*c) || !is_invisible(*c))
            .flat_map(|c| {
                if keeps_its_form(c) { c.to_string() } else { c.to_string().nfkc().collect() }
                    .chars()
                    .collect::<Vec<_>>()
            })
            .map(plain_punctuation)
            .collect();
        let latin = latin_look_alikes(&unified.nfc().collect::<String>());
        let words: Vec<String> =
            latin.split_whitespace().map(|word| word.chars().flat_map(char::to_lowercase).collect()).collect();
        words.join(" ")
    }

    fn check_map(raw: &str) -> Result<(), proptest::test_runner::TestCaseError> {
        let normalized = Normalized::of(raw);
        proptest::prop_assert_eq!(&normalized.text, &for_matching(raw));
        proptest::prop_assert_eq!(&normalized.text, &step_by_step(raw));
        proptest::prop_assert_eq!(normalized.origins.len(), normalized.text.len());
        let n_characters = raw.chars().count() as u32;
        let mut last = Span::default();
        for (start, character) in normalized.text.char_indices() {
            let range = normalized.original_chars(start..start + character.len_utf8());
            let Some(range) = range else { return Err(proptest::test_runner::TestCaseError::fail("no range")) };
            proptest::prop_assert!(range.start < range.end && range.end <= n_characters);
            proptest::prop_assert!(last.start <= range.start && last.end <= range.end);
            last = Span { start: range.start, end: range.end };
        }
        if let Some(whole) = normalized.original_chars(0..normalized.text.len()) {
            for (position, character) in raw.chars().enumerate() {
                let seen = !is_invisible(character) && !character.is_whitespace();
                proptest::prop_assert!(!seen || whole.contains(&(position as u32)), "{} of {:?}", position, raw);
            }
        } else {
            proptest::prop_assert!(raw.chars().all(|c| is_invisible(c) || c.is_whitespace()));
        }
        Ok(())
    }

    proptest::proptest! {
        #[test]
        fn matching_form_leads_back(text in proptest::collection::vec(proptest::char::any(), 0..40)) {
            check_map(&text.into_iter().collect::<String>())?;
        }

        #[test]
        fn matching_form_of_hard_text_leads_back(
            text in "[ \t\u{a0}\u{85}a-cA-Ee\u{300}-\u{345}\u{591}\u{5b0}\u{9c7}\u{9be}\u{9d7}İßſΣςﬁ㎏℃ﷺ´¨аесрхБ\u{1100}-\u{1105}\u{1161}-\u{1165}\u{11a7}-\u{11ab}가각\u{200b}\u{ad}\u{feff}’“–−²½Å\u{1fef}\u{958}\u{344}`]{0,30}",
        ) {
            check_map(&text)?;
        }

        #[test]
        fn matching_form_is_stable(text in "\\PC{0,40}") {
            let once = for_matching(&text);
            proptest::prop_assert_eq!(for_matching(&once), once.clone());
            proptest::prop_assert!(!once.starts_with(' ') && !once.ends_with(' ') && !once.contains("  "));
        }
    }
}
