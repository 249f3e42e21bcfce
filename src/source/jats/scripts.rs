//! Raised and lowered characters in plain text, so that numbers stay right: 10⁹ is never 109.

/// How a superscript is written.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Raised {
    /// `²⁺`
    Unicode,
    /// `1st`, `®`
    AsIs,
    /// `^a`
    Caret,
    /// `^(ab, c)`
    CaretGroup,
    /// `[12]`: markers of citations and notes.
    Bracketed,
}

/// Chooses by the content, by whether a cross reference is in it, and whether it stands in another script.
pub fn raising(content: &str, has_marker: bool, is_nested: bool) -> Raised {
    let has_word = content.chars().any(char::is_alphanumeric);
    if has_marker {
        return if has_word && !content.starts_with(['[', '(']) { Raised::Bracketed } else { Raised::AsIs };
    }
    if is_nested {
        return if content.chars().count() > 1 { Raised::CaretGroup } else { Raised::Caret };
    }
    let is_sign = |character: char| matches!(character, '+' | '-' | '\u{2212}' | '–' | '=' | '\u{2010}' | '\u{2011}');
    let counts = content.chars().any(|character| character.is_ascii_digit() || is_sign(character));
    if (counts && content.chars().all(|character| raised(character).is_some())) || content == "o" {
        return Raised::Unicode;
    }
    if !has_word || matches!(content, "st" | "nd" | "rd" | "th" | "TM" | "ème" | "er") {
        return Raised::AsIs;
    }
    if content.chars().count() == 1 { Raised::Caret } else { Raised::CaretGroup }
}

/// The superscript form of a character. Letters have one so that `99m` stays one number.
pub fn raised(character: char) -> Option<char> {
    Some(match character {
        '0' => '⁰',
        '1' => '¹',
        '2' => '²',
        '3' => '³',
        '4' => '⁴',
        '5' => '⁵',
        '6' => '⁶',
        '7' => '⁷',
        '8' => '⁸',
        '9' => '⁹',
        '+' => '⁺',
        '-' | '\u{2212}' | '–' | '\u{2010}' | '\u{2011}' => '⁻',
        '=' => '⁼',
        '(' => '⁽',
        ')' => '⁾',
        'a' => 'ᵃ',
        'b' => 'ᵇ',
        'c' => 'ᶜ',
        'd' => 'ᵈ',
        'e' => 'ᵉ',
        'f' => 'ᶠ',
        'g' => 'ᵍ',
        'h' => 'ʰ',
        'i' => 'ⁱ',
        'j' => 'ʲ',
        'k' => 'ᵏ',
        'l' => 'ˡ',
        'm' => 'ᵐ',
        'n' => 'ⁿ',
        'o' => 'º',
        'p' => 'ᵖ',
        'r' => 'ʳ',
        's' => 'ˢ',
        't' => 'ᵗ',
        'u' => 'ᵘ',
        'v' => 'ᵛ',
        'w' => 'ʷ',
        'x' => 'ˣ',
        'y' => 'ʸ',
        'z' => 'ᶻ',
        _ => return None,
    })
}

/// The subscript form of a digit or sign. Letters stay: `Cmax`, `HbA₁c`.
pub fn lowered(character: char) -> Option<char> {
    Some(match character {
        '0' => '₀',
        '1' => '₁',
        '2' => '₂',
        '3' => '₃',
        '4' => '₄',
        '5' => '₅',
        '6' => '₆',
        '7' => '₇',
        '8' => '₈',
        '9' => '₉',
        '+' => '₊',
        '-' | '\u{2212}' => '₋',
        '=' => '₌',
        _ => return None,
    })
}
