//! Normal forms of text, for matching only: the raw text is always kept beside.

use unicode_normalization::UnicodeNormalization;

/// The form in which two texts are compared: compatibility forms unified where the meaning allows,
/// look-alike Cyrillic letters inside Latin text read as Latin, invisible characters removed, quotes
/// and dashes made plain, white space collapsed, lower case.
///
/// Superscripts, subscripts and fractions are left alone: NFKC would turn 10⁹ into 109.
pub fn for_matching(text: &str) -> String {
    let mut unified = String::with_capacity(text.len());
    for character in text.chars() {
        if character.is_ascii() {
            unified.push(plain_punctuation(character));
        } else if keeps_its_form(character) {
            unified.push(character);
        } else if !is_invisible(character) {
            unified.extend(std::iter::once(character).nfkc().map(plain_punctuation));
        }
    }
    if !unified.is_ascii() {
        unified = latin_look_alikes(&unified.nfc().collect::<String>());
    }
    let mut folded = String::with_capacity(unified.len());
    for word in unified.split_whitespace() {
        if !folded.is_empty() {
            folded.push(' ');
        }
        if word.is_ascii() {
            folded.extend(word.chars().map(|character| character.to_ascii_lowercase()));
        } else {
            folded.extend(word.chars().flat_map(char::to_lowercase));
        }
    }
    folded
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

    proptest::proptest! {
        #[test]
        fn matching_form_is_stable(text in "\\PC{0,40}") {
            let once = for_matching(&text);
            proptest::prop_assert_eq!(for_matching(&once), once.clone());
            proptest::prop_assert!(!once.starts_with(' ') && !once.ends_with(' ') && !once.contains("  "));
        }
    }
}
