//! One notation for the values of a record: units, spelling, ages, typography.
//!
//! This is the mechanical part of the normalisation pass of MedRoundsQA (section 3.1: "cross-case consistency, e.g.
//! units, spelling, and slot boundaries"). Only the notation changes, never what is said: no unit is converted into
//! another, nothing is inferred, and a value that no rule knows stays as it is. The raw value is always kept beside.

use crate::record::slots::Slot;
use crate::text::number_words::{TENS, UNITS};
use regex::{Captures, Regex};
use serde::Deserialize;
use std::borrow::Cow;
use std::collections::{BTreeMap, BTreeSet, HashMap, HashSet};
use std::sync::LazyLock;

/// The version of the spelling file this module reads.
const VERSION: u32 = 1;
/// Longest word that is looked up; longer ones are no words. It keeps the work of a text linear in its length.
const MAX_WORD: usize = 64;
/// Longest entity and longest tag that are read, in bytes, without their delimiters.
const MAX_ENTITY: usize = 10;
const MAX_TAG: usize = 100;
/// Passes until a value must have reached its form. One is enough for almost every value.
const MAX_PASSES: usize = 4;

/// Every rule of [`Normalised::rules`] and what it may change, in the order of names.
pub const RULES: [(&str, &str); 12] = [
    ("age", "an age as number and unit: 31-year-old, aged 31, 31 y/o = 31 years"),
    ("age_decade", "a decade as the range it stands for: in her 50s = 50-59 years; adds digits"),
    ("age_fraction", "a fraction of a unit as a decimal: 2 1/2 = 2.5; changes digits"),
    ("age_number_word", "a number written as a word: two = 2; adds digits"),
    ("capital", "a capital at the beginning of a symptom or a habit, of listed words only"),
    ("characters", "typographic quotes, dashes, ligatures and invisible characters"),
    ("end", "a period, comma or semicolon at the end"),
    ("markup", "HTML entities are decoded, tags removed; may remove digits of either"),
    ("sex", "a word that states the sex as male or female"),
    ("spelling", "British spelling as American"),
    ("unit", "the notation of units and powers of ten; a superscript digit may become a digit, and the reverse"),
    ("white_space", "runs of white space; one space between a number and its unit, none before a percent sign"),
];

/// What is wrong with a spelling file.
#[derive(Debug, thiserror::Error)]
pub enum SpellingError {
    /// No TOML, an unknown or missing key, or a value of the wrong kind; the message names the key.
    #[error("spelling: {0}")]
    Toml(#[from] toml::de::Error),
    /// The file is written in another format.
    #[error("spelling: version: {0} is not known, it must be {VERSION}")]
    Version(u32),
    /// A list or table without entries.
    #[error("spelling: {key}: the list is empty")]
    Empty {
        /// Its dotted path.
        key: &'static str,
    },
    /// A term that cannot be used.
    #[error("spelling: {key}: {term:?}: {problem}")]
    Term {
        /// The dotted path of its list or table.
        key: &'static str,
        /// The term as given.
        term: String,
        /// What is wrong with it.
        problem: &'static str,
    },
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct SpellingFile {
    version: u32,
    keep: Vec<String>,
    parts: BTreeMap<String, String>,
    beginnings: BTreeMap<String, String>,
    words: BTreeMap<String, String>,
    ordinary: OrdinaryWords,
    sex: SexWords,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct OrdinaryWords {
    words: Vec<String>,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct SexWords {
    male: Vec<String>,
    female: Vec<String>,
}

/// A value in the notation of the release.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Normalised {
    /// Empty only where nothing but white space, invisible characters or markup was given.
    pub text: String,
    /// The rules of [`RULES`] that changed the value: sorted, each once. Empty if and only if `text` is the value.
    pub rules: Vec<&'static str>,
}

/// Brings values of slots into one notation. Made from a spelling file, see `pipelines/lexicon/spelling.toml`.
#[derive(Debug)]
pub struct Normaliser {
    /// Phrases that stay as they are, by their first word.
    keep: HashMap<String, Vec<String>>,
    /// Finds whether any of `parts` or `beginnings` may stand in a text.
    any_part: Regex,
    parts: Vec<(String, String)>,
    beginnings: Vec<(String, String)>,
    words: HashMap<String, String>,
    ordinary: HashSet<String>,
    sexes: HashMap<String, &'static str>,
}

impl Normaliser {
    /// Reads and checks a spelling file.
    ///
    /// # Errors
    /// An unknown or missing key; a term that is not lower-case ASCII, given twice or never reached; a replacement
    /// that would itself be replaced.
    pub fn parse(spelling_toml: &str) -> Result<Self, SpellingError> {
        let file: SpellingFile = toml::from_str(spelling_toml)?;
        if file.version != VERSION {
            return Err(SpellingError::Version(file.version));
        }
        check_list("keep", &file.keep)?;
        check_list("ordinary.words", &file.ordinary.words)?;
        check_list("sex.male", &file.sex.male)?;
        check_list("sex.female", &file.sex.female)?;
        let mut keep: HashMap<String, Vec<String>> = HashMap::new();
        for phrase in file.keep {
            let first: String = phrase.chars().take_while(char::is_ascii_alphabetic).collect();
            keep.entry(first).or_default().push(phrase);
        }
        let mut sexes = HashMap::new();
        for (sex, key, terms) in [("male", "sex.male", file.sex.male), ("female", "sex.female", file.sex.female)] {
            for term in terms {
                if sexes.insert(term.clone(), sex).is_some() {
                    return Err(SpellingError::Term { key, term, problem: "the term is given for both sexes" });
                }
            }
        }
        for (key, table) in [("parts", &file.parts), ("beginnings", &file.beginnings), ("words", &file.words)] {
            check_table(key, table)?;
        }
        let longest_first = |table: BTreeMap<String, String>| {
            let mut pairs: Vec<(String, String)> = table.into_iter().collect();
            pairs.sort_by_key(|(from, _)| std::cmp::Reverse(from.len()));
            pairs
        };
        let (parts, beginnings) = (longest_first(file.parts), longest_first(file.beginnings));
        let alternatives: Vec<&str> = parts.iter().chain(&beginnings).map(|(from, _)| from.as_str()).collect();
        let normaliser = Self {
            keep,
            any_part: fixed(&format!("(?i:{}|[æœ])", alternatives.join("|"))),
            parts,
            beginnings,
            words: file.words.into_iter().collect(),
            ordinary: file.ordinary.words.into_iter().collect(),
            sexes,
        };
        normaliser.check_replacements()?;
        Ok(normaliser)
    }

    /// The value as a release writes it. Equal input gives equal output, and
    /// `normalise(slot, normalise(slot, value).text).text` is `normalise(slot, value).text`.
    ///
    /// Takes time linear in the length of the value.
    pub fn normalise(&self, slot: Slot, value: &str) -> Normalised {
        let mut rules = BTreeSet::new();
        let mut text = Cow::Borrowed(value);
        for _ in 0..MAX_PASSES {
            let next = self.pass(slot, &text, &mut rules);
            if next == text {
                break;
            }
            text = Cow::Owned(next);
        }
        if text == value {
            // Two rules may undo each other's change; the value is then as it was.
            rules.clear();
        }
        Normalised { text: text.into_owned(), rules: rules.into_iter().collect() }
    }

    fn pass(&self, slot: Slot, value: &str, rules: &mut BTreeSet<&'static str>) -> String {
        let mut text = plain(value, rules);
        let end = without_end(&text).len();
        if end < text.len() {
            text.truncate(end);
            rules.insert("end");
        }
        if tells_symptom_or_habit(slot) {
            self.lower_first(&mut text, rules);
        }
        let text = self.american(text, rules);
        let text = with_plain_units(text, rules);
        match slot {
            Slot::PersonalAge => plain_age(text, rules),
            Slot::PersonalSex => self.plain_sex(text, rules),
            _ => text,
        }
    }

    fn lower_first(&self, text: &mut String, rules: &mut BTreeSet<&'static str>) {
        let word = leading_word(text);
        let after = text.get(word.len()..).and_then(|rest| rest.chars().next());
        let is_capitalised = word.starts_with(|c: char| c.is_ascii_uppercase())
            && word.get(1..).is_some_and(|rest| rest.bytes().all(|byte| byte.is_ascii_lowercase()));
        if !is_capitalised || after.is_some_and(|c| c.is_alphanumeric() || c == '.') {
            return;
        }
        // "A" alone may be a blood group or the name of a hepatitis.
        if word.len() == 1 && after != Some(' ') {
            return;
        }
        let lower = word.to_ascii_lowercase();
        if self.ordinary.contains(&lower) {
            text.replace_range(..lower.len(), &lower);
            rules.insert("capital");
        }
    }

    fn american(&self, text: String, rules: &mut BTreeSet<&'static str>) -> String {
        let may_hold_part = self.any_part.is_match(&text);
        let mut spelled = String::new();
        let mut copied = 0;
        let mut position = 0;
        while let Some(offset) = text.get(position..).and_then(|rest| rest.find(char::is_alphabetic)) {
            let start = position + offset;
            let rest = text.get(start..).unwrap_or_default();
            let word = rest.split(|c: char| !c.is_alphabetic()).next().unwrap_or_default();
            position = start + word.len();
            if word.len() > MAX_WORD {
                continue;
            }
            let lower = word.to_lowercase();
            if let Some(kept) = self.kept(&lower, rest) {
                position = start + kept;
                continue;
            }
            if let Some(american) = self.american_word(&lower, may_hold_part)
                && let Some(american) = in_case_of(word, american)
            {
                spelled.push_str(text.get(copied..start).unwrap_or_default());
                spelled.push_str(&american);
                copied = position;
            }
        }
        if copied == 0 {
            return text;
        }
        rules.insert("spelling");
        spelled.push_str(text.get(copied..).unwrap_or_default());
        spelled
    }

    /// Bytes of a phrase at the beginning of `rest` that stays as it is.
    fn kept(&self, word: &str, rest: &str) -> Option<usize> {
        let phrases = self.keep.get(word)?;
        let begins = |phrase: &&String| {
            rest.get(..phrase.len()).is_some_and(|head| head.eq_ignore_ascii_case(phrase))
                && !rest.get(phrase.len()..).unwrap_or_default().starts_with(char::is_alphanumeric)
        };
        phrases.iter().filter(begins).map(String::len).max()
    }

    /// The American spelling of a lower-case word, if it is another one.
    fn american_word(&self, word: &str, may_hold_part: bool) -> Option<String> {
        let mut american = word.replace('æ', "ae").replace('œ', "oe");
        if !american.is_ascii() {
            return None;
        }
        let expanded = american.clone();
        if may_hold_part {
            self.replace_parts(&mut american);
        }
        if let Some(whole) = self.words.get(&american) {
            american.clone_from(whole);
        }
        (american != expanded).then_some(american)
    }

    /// Replaces parts and beginnings until none is left. Every replacement shortens the word, so this ends.
    fn replace_parts(&self, word: &mut String) {
        loop {
            let part = self.parts.iter().find_map(|(from, to)| Some((word.find(from.as_str())?, from, to)));
            let beginning = || self.beginnings.iter().find(|(from, _)| word.starts_with(from.as_str()));
            let Some((start, from, to)) = part.or_else(|| beginning().map(|(from, to)| (0, from, to))) else { return };
            word.replace_range(start..start + from.len(), to);
        }
    }

    fn check_replacements(&self) -> Result<(), SpellingError> {
        for (key, pairs) in [("parts", &self.parts), ("beginnings", &self.beginnings)] {
            if let Some((from, _)) = pairs.iter().find(|(from, to)| to.len() >= from.len()) {
                let problem = "the replacement must be shorter";
                return Err(SpellingError::Term { key, term: from.clone(), problem });
            }
        }
        let mut words: Vec<(&String, &String)> = self.words.iter().collect();
        words.sort();
        for (from, to) in words {
            let problem = if self.american_word(to, true).is_some() {
                "the replacement is itself replaced"
            } else if self.american_word(from, true).as_ref() != Some(to) {
                "the word is never reached: a part of it is replaced before"
            } else {
                continue;
            };
            return Err(SpellingError::Term { key: "words", term: from.clone(), problem });
        }
        Ok(())
    }

    fn plain_sex(&self, text: String, rules: &mut BTreeSet<&'static str>) -> String {
        let lower = text.to_ascii_lowercase();
        let word = ["a ", "an ", "the "].iter().find_map(|article| lower.strip_prefix(article)).unwrap_or(&lower);
        match self.sexes.get(word) {
            Some(sex) if **sex != *text => {
                rules.insert("sex");
                (*sex).to_owned()
            }
            _ => text,
        }
    }
}

fn check_list(key: &'static str, terms: &[String]) -> Result<(), SpellingError> {
    if terms.is_empty() {
        return Err(SpellingError::Empty { key });
    }
    let mut seen = HashSet::new();
    for term in terms {
        check_term(key, term, |byte| matches!(byte, b' ' | b'-'))?;
        if !seen.insert(term) {
            return Err(SpellingError::Term { key, term: term.clone(), problem: "the term is given twice" });
        }
    }
    Ok(())
}

fn check_table(key: &'static str, table: &BTreeMap<String, String>) -> Result<(), SpellingError> {
    if table.is_empty() {
        return Err(SpellingError::Empty { key });
    }
    for term in table.iter().flat_map(|(from, to)| [from, to]) {
        check_term(key, term, |_| false)?;
    }
    Ok(())
}

fn check_term(key: &'static str, term: &str, may_hold: impl Fn(u8) -> bool) -> Result<(), SpellingError> {
    let problem = if term.trim().is_empty() {
        "the term is empty"
    } else if term.trim() != term {
        "the term has surplus white space"
    } else if !term.bytes().all(|byte| byte.is_ascii_lowercase() || may_hold(byte)) {
        "the term must be of lower-case ASCII letters"
    } else if term.len() > MAX_WORD {
        "the term is too long"
    } else {
        return Ok(());
    };
    Err(SpellingError::Term { key, term: term.to_owned(), problem })
}

/// Compiles a pattern of this module.
fn fixed(pattern: &str) -> Regex {
    // The patterns are written in this module, or joined from terms checked to be ASCII letters; tests use each.
    Regex::new(pattern).expect("a fixed pattern")
}

fn tells_symptom_or_habit(slot: Slot) -> bool {
    slot.as_str().starts_with("Symptom-") || slot.as_str().starts_with("Habit-")
}

/// The ASCII letters at the beginning.
fn leading_word(text: &str) -> &str {
    let end = text.find(|c: char| !c.is_ascii_alphabetic()).unwrap_or(text.len());
    text.get(..end).unwrap_or_default()
}

/// `american` with the capitals of `word`; nothing for a word of mixed case, which may be a name.
fn in_case_of(word: &str, american: String) -> Option<String> {
    let mut letters = word.chars();
    let first_is_upper = letters.next().is_some_and(char::is_uppercase);
    let rest_is_lower = letters.clone().all(char::is_lowercase);
    if rest_is_lower && !first_is_upper {
        return Some(american);
    }
    if rest_is_lower {
        let (first, rest) = american.split_at_checked(1)?;
        return Some(first.to_ascii_uppercase() + rest);
    }
    (first_is_upper && letters.all(char::is_uppercase)).then(|| american.to_ascii_uppercase())
}

// Characters, markup, white space ------------------------------------------------------------------------------------

/// Plain typography, no markup, single spaces.
fn plain(value: &str, rules: &mut BTreeSet<&'static str>) -> String {
    let mut writer = PlainWriter { text: String::with_capacity(value.len()), rules };
    for character in value.chars() {
        writer.push(character);
    }
    let PlainWriter { mut text, rules } = writer;
    if text.ends_with(' ') {
        text.pop();
        rules.insert("white_space");
    }
    text
}

/// Writes characters in plain form. An entity or a tag is looked for backwards at its last character, so what its
/// removal brings together is read again, and nothing is read more than a constant number of times.
struct PlainWriter<'a> {
    text: String,
    rules: &'a mut BTreeSet<&'static str>,
}

impl PlainWriter<'_> {
    fn push(&mut self, character: char) {
        let mut next = Some(character);
        while let Some(character) = next {
            if let Some(plain) = plain_character(character) {
                self.rules.insert("characters");
                for part in plain.chars() {
                    self.put(part);
                }
                return;
            }
            self.put(character);
            next = match character {
                ';' => self.take_entity(),
                '>' => {
                    self.take_tag();
                    None
                }
                _ => None,
            };
        }
    }

    fn put(&mut self, character: char) {
        if !character.is_whitespace() {
            self.text.push(character);
            return;
        }
        let is_surplus = self.text.is_empty() || self.text.ends_with(' ');
        if is_surplus || character != ' ' {
            self.rules.insert("white_space");
        }
        if !is_surplus {
            self.text.push(' ');
        }
    }

    /// Where the construct that ends with the last character begins: at the last `opening`, not too far back.
    fn opening(&self, opening: char, longest: usize) -> Option<usize> {
        let end = self.text.len().checked_sub(1)?;
        let from = self.text.floor_char_boundary(end.saturating_sub(longest + 1));
        self.text.get(from..end)?.rfind(opening).map(|offset| from + offset)
    }

    /// Removes the entity that ends here and gives its character.
    fn take_entity(&mut self) -> Option<char> {
        let start = self.opening('&', MAX_ENTITY)?;
        let character = entity(self.text.get(start + 1..self.text.len() - 1)?)?;
        self.text.truncate(start);
        self.rules.insert("markup");
        Some(character)
    }

    /// Removes the tag that ends here. Tags that break a line leave a space, superscripts a caret.
    fn take_tag(&mut self) {
        let Some(start) = self.opening('<', MAX_TAG) else { return };
        let Some(tag) = self.text.get(start + 1..self.text.len() - 1).and_then(Tag::of) else { return };
        self.text.truncate(start);
        self.rules.insert("markup");
        match tag {
            Tag::Line if !self.text.is_empty() && !self.text.ends_with(' ') => self.text.push(' '),
            Tag::Superscript => self.text.push('^'),
            Tag::SuperscriptEnd => {
                for ordinal in ["^st", "^nd", "^rd", "^th"] {
                    if self.text.ends_with(ordinal) {
                        self.text.remove(self.text.len() - ordinal.len());
                    }
                }
            }
            Tag::Line | Tag::Inline => {}
        }
    }
}

/// The typed form of a typographic character; empty for an invisible one.
fn plain_character(character: char) -> Option<&'static str> {
    Some(match character {
        '‘' | '’' | '‚' | '‛' | '′' | '´' | '`' => "'",
        '“' | '”' | '„' | '‟' | '″' => "\"",
        '‐' | '‑' | '‒' | '–' | '−' | '﹣' | '－' => "-",
        '—' | '―' => " - ",
        '…' => "...",
        'ﬀ' => "ff",
        'ﬁ' => "fi",
        'ﬂ' => "fl",
        'ﬃ' => "ffi",
        'ﬄ' => "ffl",
        'ﬅ' | 'ﬆ' => "st",
        '℃' => "°C",
        '℉' => "°F",
        '\u{ad}' | '\u{200b}'..='\u{200f}' | '\u{202a}'..='\u{202e}' | '\u{2060}'..='\u{2064}' | '\u{feff}' => "",
        _ if character.is_control() && !character.is_whitespace() => "",
        _ => return None,
    })
}

/// The character of an HTML entity, given without `&` and `;`.
fn entity(name: &str) -> Option<char> {
    if let Some(number) = name.strip_prefix('#') {
        let code = match number.strip_prefix(['x', 'X']) {
            Some(digits) => u32::from_str_radix(digits, 16),
            None => number.parse(),
        };
        return char::from_u32(code.ok()?);
    }
    Some(match name {
        "nbsp" | "ensp" | "emsp" | "thinsp" => ' ',
        "lt" => '<',
        "gt" => '>',
        "amp" => '&',
        "quot" | "ldquo" | "rdquo" => '"',
        "apos" | "lsquo" | "rsquo" => '\'',
        "deg" => '°',
        "micro" => 'µ',
        "mu" => 'μ',
        "alpha" => 'α',
        "beta" => 'β',
        "gamma" => 'γ',
        "delta" => 'δ',
        "ndash" | "minus" => '-',
        "mdash" => '—',
        "hellip" => '…',
        "le" => '≤',
        "ge" => '≥',
        "plusmn" => '±',
        "times" => '×',
        "middot" => '·',
        "frac12" => '½',
        "frac14" => '¼',
        "frac34" => '¾',
        "sup1" => '¹',
        "sup2" => '²',
        "sup3" => '³',
        "eacute" => 'é',
        "egrave" => 'è',
        "ouml" => 'ö',
        "uuml" => 'ü',
        "auml" => 'ä',
        "shy" | "zwnj" | "zwj" => '\u{ad}',
        _ => return None,
    })
}

#[derive(Clone, Copy)]
enum Tag {
    Line,
    Inline,
    Superscript,
    SuperscriptEnd,
}

impl Tag {
    /// What stands between `<` and `>`. "<5 and b>" is no tag: a name must come first, then attributes only.
    fn of(content: &str) -> Option<Self> {
        let (is_end, content) = match content.strip_prefix('/') {
            Some(rest) => (true, rest),
            None => (false, content),
        };
        let content = content.strip_suffix('/').unwrap_or(content).trim_end();
        let (name, attributes) = content.split_once(' ').unwrap_or((content, ""));
        if !attributes.is_empty() && (is_end || !attributes.contains('=')) {
            return None;
        }
        Some(match name.to_ascii_lowercase().as_str() {
            "br" | "p" | "div" | "li" | "ul" | "ol" | "table" | "tbody" | "tr" | "td" | "th" | "hr" => Self::Line,
            "sup" if is_end => Self::SuperscriptEnd,
            "sup" => Self::Superscript,
            "b" | "i" | "u" | "em" | "strong" | "sub" | "span" | "font" | "a" => Self::Inline,
            _ => return None,
        })
    }
}

/// Without the period, comma or semicolon at the end. The period of "p.o." stays, and so does a value of nothing else.
fn without_end(text: &str) -> &str {
    let end = text.trim_end_matches(['.', ',', ';', ' ']);
    if end.is_empty() {
        return text;
    }
    let last_word = end.rsplit(' ').next().unwrap_or_default();
    let is_dotted = last_word.contains('.')
        && last_word.trim_start_matches('(').split('.').all(|piece| {
            let mut letters = piece.chars();
            letters.next().is_some_and(char::is_alphabetic) && letters.next().is_none()
        });
    let after = text.get(end.len()..).unwrap_or_default();
    if is_dotted && after.starts_with('.') { text.get(..=end.len()).unwrap_or(end) } else { end }
}

// Units --------------------------------------------------------------------------------------------------------------

static MERCURY: LazyLock<Regex> = LazyLock::new(|| fixed(r"(^|[^A-Za-z])[Mm][Mm][ -]?(?:of )?[Hh][Gg]\b"));
static TEMPERATURE: LazyLock<Regex> = LazyLock::new(|| {
    fixed(
        r"(?x)([0-9])\ ? (?:
            [°º˚◦]\ ? (?: (?<c>[Cc]\b|(?i:celsius|centigrade)\b) | [Ff]\b | (?i:fahrenheit)\b )
            | [Dd]eg(?:rees?|\.)?\ (?: (?<c2>C\b|(?i:celsius|centigrade)\b) | F\b | (?i:fahrenheit)\b )
        )",
    )
});
static PERCENT: LazyLock<Regex> = LazyLock::new(|| fixed(r"([0-9]) %"));
static VOLUME: LazyLock<Regex> = LazyLock::new(|| fixed(r"/ ?(?:(?:mm\^?3|cu\.? ?mm|cumm|cmm)\b|mm³)"));
static AREA: LazyLock<Regex> = LazyLock::new(|| fixed(r"[Kk][Gg] ?/ ?m(?:\^?2\b|²)"));
static POWER: LazyLock<Regex> = LazyLock::new(|| fixed(r"\b10(?:(?<up>[⁰¹²³⁴⁵⁶⁷⁸⁹]+)|\*(?<star>[0-9]{1,2})/)"));
static MICROGRAM: LazyLock<Regex> = LazyLock::new(|| fixed(r"\b(?:mcg|MCG)\b"));
static DENOMINATOR: LazyLock<Regex> = LazyLock::new(|| fixed(r"/(ul|uL|μl|μL|µl|mcl|mcL|dl|DL|Dl|ml|ML|Ml)\b"));
/// A number, what separates it, and a unit with its denominators.
static QUANTITY: LazyLock<Regex> = LazyLock::new(|| {
    fixed(
        r"(?x) [0-9] (\ |-|) (
            [A-Za-zµμ][A-Za-zµμ0-9³²^]* (?: \ ?/\ ? [A-Za-zµμ][A-Za-zµμ0-9³²^]* )*
            | (?: /\ ? [A-Za-zµμ][A-Za-zµμ0-9³²^]* )+
        )",
    )
});

fn with_plain_units(text: String, rules: &mut BTreeSet<&'static str>) -> String {
    if !text.bytes().any(|byte| byte.is_ascii_digit() || byte == b'/') && !text.contains("Hg") && !text.contains("mcg")
    {
        return text;
    }
    let replaced = MERCURY.replace_all(&text, "${1}mmHg");
    let replaced = TEMPERATURE.replace_all(&replaced, |found: &Captures<'_>| {
        let scale = if found.name("c").or(found.name("c2")).is_some() { 'C' } else { 'F' };
        format!("{} °{scale}", &found[1])
    });
    let replaced = VOLUME.replace_all(&replaced, "/mm³");
    let replaced = AREA.replace_all(&replaced, "kg/m²");
    let replaced = POWER.replace_all(&replaced, |found: &Captures<'_>| match found.name("up") {
        Some(digits) => format!("10^{}", digits.as_str().chars().map(digit_of_superscript).collect::<String>()),
        None => format!("10^{}/", found.name("star").map_or("", |digits| digits.as_str())),
    });
    let replaced = MICROGRAM.replace_all(&replaced, "µg");
    let replaced = DENOMINATOR
        .replace_all(&replaced, |found: &Captures<'_>| format!("/{}", unit(&found[1], true).unwrap_or(&found[1])));
    // What differs so far by more than spaces is another notation.
    note_difference(&text, &replaced, rules);
    let spaced = PERCENT.replace_all(&replaced, "${1}%");
    let quantified = quantities(&spaced);
    note_difference(&replaced, &quantified, rules);
    quantified
}

fn note_difference(before: &str, after: &str, rules: &mut BTreeSet<&'static str>) {
    if before == after {
        return;
    }
    let letters = |text: &str| text.chars().filter(|c| *c != ' ').collect::<String>();
    let is_same = letters(before) == letters(after);
    rules.insert(if is_same { "white_space" } else { "unit" });
    if !is_same && before.matches(' ').count() != after.matches(' ').count() {
        rules.insert("white_space");
    }
}

fn digit_of_superscript(character: char) -> char {
    match character {
        '¹' => '1',
        '²' => '2',
        '³' => '3',
        '⁰' => '0',
        '⁴'..='⁹' => char::from_digit(u32::from(character) - 0x2070, 10).unwrap_or(character),
        other => other,
    }
}

/// Every number with its unit in the usual notation, one space between them.
fn quantities(text: &str) -> String {
    let mut written = String::with_capacity(text.len() + 8);
    let mut copied = 0;
    for found in QUANTITY.captures_iter(text) {
        let (Some(gap), Some(units)) = (found.get(1), found.get(2)) else { continue };
        if number_belongs_to_word(text, gap.start()) {
            continue;
        }
        let is_fluid = units.as_str() == "fl" && text.get(units.end()..).is_some_and(|rest| rest.starts_with(" oz"));
        if is_fluid {
            continue;
        }
        let Some((separate, units_written)) = written_units(units.as_str()) else { continue };
        written.push_str(text.get(copied..gap.start()).unwrap_or_default());
        written.push_str(match separate {
            Separation::Space if gap.as_str() != "-" => " ",
            Separation::Nothing if gap.as_str() != "-" => "",
            _ => gap.as_str(),
        });
        written.push_str(&units_written);
        copied = units.end();
    }
    written.push_str(text.get(copied..).unwrap_or_default());
    written
}

/// Does the number that ends at `end` follow a letter ("L5", "T12", "CA125")?
fn number_belongs_to_word(text: &str, end: usize) -> bool {
    let mut before = text.get(..end).unwrap_or_default();
    loop {
        before = before.trim_end_matches(|c: char| c.is_ascii_digit());
        match before.strip_suffix(['.', ',']) {
            Some(rest) if rest.ends_with(|c: char| c.is_ascii_digit()) => before = rest,
            _ => return before.ends_with(char::is_alphabetic),
        }
    }
}

enum Separation {
    Space,
    Nothing,
    AsGiven,
}

/// A unit with its denominators as it should be written, if any of it is known.
fn written_units(units: &str) -> Option<(Separation, String)> {
    let pieces: Vec<&str> = units.split('/').collect();
    let is_compound = pieces.len() > 1;
    let known: Vec<Option<&str>> = pieces
        .iter()
        .enumerate()
        .map(|(index, piece)| match (index, piece.trim()) {
            (0, "") => Some(""),
            (0, name) => unit(name, is_compound),
            (_, name) => unit(name, true).or_else(|| time_unit(name)),
        })
        .collect();
    let separation = match known.first() {
        Some(Some("")) => Separation::Nothing,
        Some(Some(_)) => Separation::Space,
        _ => Separation::AsGiven,
    };
    if known.iter().flatten().all(|name| name.is_empty()) {
        return None;
    }
    if known.iter().all(Option::is_some) {
        return Some((separation, known.into_iter().flatten().collect::<Vec<_>>().join("/")));
    }
    let separation = if matches!(separation, Separation::Nothing) { Separation::AsGiven } else { separation };
    let written: Vec<Cow<'_, str>> = pieces
        .iter()
        .zip(known)
        .map(|(piece, known)| match known {
            Some(name) if !name.is_empty() => Cow::Owned(piece.replacen(piece.trim(), name, 1)),
            _ => Cow::Borrowed(*piece),
        })
        .collect();
    Some((separation, written.join("/")))
}

/// A unit as it should be written. Those that may be something else on their own are read in `mg/kg` only.
fn unit(name: &str, is_compound: bool) -> Option<&'static str> {
    Some(match name {
        "g" | "gm" | "gms" => "g",
        "mg" | "MG" | "mgs" => "mg",
        "kg" | "Kg" | "KG" | "kgs" | "Kgs" => "kg",
        "µg" | "μg" | "ug" | "mcg" | "MCG" | "mcgs" => "µg",
        "ng" => "ng",
        "pg" => "pg",
        "L" | "l" => "L",
        "dL" | "dl" => "dL",
        "mL" | "ml" | "mls" | "cc" | "ccs" => "mL",
        "µL" | "μL" | "µl" | "μl" | "uL" | "ul" | "mcL" | "mcl" => "µL",
        "fL" | "fl" => "fL",
        "mm" => "mm",
        "cm" | "cms" => "cm",
        "µm" | "μm" => "µm",
        "nm" => "nm",
        "km" => "km",
        "m²" | "m2" => "m²",
        "cm²" | "cm2" | "cm^2" => "cm²",
        "cm³" | "cm3" | "cm^3" => "cm³",
        "mm²" | "mm2" | "mm^2" => "mm²",
        "mm³" | "mm3" | "mm^3" => "mm³",
        "mEq" | "meq" | "mEQ" | "MEQ" | "Meq" | "MEq" => "mEq",
        "mol" => "mol",
        "mmol" | "mmols" | "MMOL" => "mmol",
        "µmol" | "μmol" | "umol" | "mcmol" => "µmol",
        "nmol" => "nmol",
        "pmol" => "pmol",
        "mOsm" | "mosm" => "mOsm",
        "mOsmol" | "mosmol" => "mOsmol",
        "U" => "U",
        "IU" | "iu" => "IU",
        "mU" => "mU",
        "µU" | "μU" | "uU" => "µU",
        "lb" | "lbs" | "Lb" | "Lbs" | "LB" | "LBS" | "pound" | "pounds" => "lb",
        "mmHg" => "mmHg",
        "kPa" | "kpa" => "kPa",
        "dB" | "db" => "dB",
        "Hz" => "Hz",
        "kHz" => "kHz",
        "kcal" | "Kcal" => "kcal",
        "mV" => "mV",
        "Gy" => "Gy",
        "m" if is_compound => "m",
        "u" if is_compound => "U",
        "mu" if is_compound => "mU",
        "µu" | "μu" | "uu" if is_compound => "µU",
        "DL" | "Dl" if is_compound => "dL",
        "ML" | "Ml" if is_compound => "mL",
        "Mg" if is_compound => "mg",
        _ => return None,
    })
}

/// A unit of time or a field of view, as a denominator.
fn time_unit(name: &str) -> Option<&'static str> {
    Some(match name {
        "s" | "sec" | "second" => "s",
        "min" | "mins" | "minute" => "min",
        "h" | "hr" | "hrs" | "hour" => "h",
        "d" | "day" => "day",
        "wk" | "week" => "week",
        "hpf" | "HPF" => "hpf",
        _ => return None,
    })
}

// Ages ---------------------------------------------------------------------------------------------------------------

const NUMBER: &str = concat!(
    r"(?:[0-9]{1,3}(?:\.[0-9]{1,2})?(?:[ -]?[½¼¾]|[ -](?:and[ -])?(?:1/2|1/4|3/4|a[ -]half))?|[½¼¾]|1/2|",
    r"(?:(?:twenty|thirty|forty|fifty|sixty|seventy|eighty|ninety)",
    r"(?:[ -](?:one|two|three|four|five|six|seven|eight|nine))?",
    r"|one|two|three|four|five|six|seven|eight|nine|ten|eleven|twelve|thirteen|fourteen|fifteen|sixteen|seventeen",
    r"|eighteen|nineteen)(?:[ -]and[ -]a[ -]half)?)",
);
const AGE_UNIT: &str =
    "(?:years?|yrs?|yr/o|y/o|y\\.o\\.?|yo|y|months?|mos?|m/o|weeks?|wks?|days?|hours?|hrs?|minutes?)";

static AGE: LazyLock<Regex> = LazyLock::new(|| {
    fixed(&format!(
        "^(?:an? |the )?(?<qualifier>(?:(?:about|approximately|around|almost|nearly|over|under|at least) )?)\
        (?<aged>(?:aged?(?: of| is|:)? )?)(?<low>{NUMBER})(?:(?:[ -]to[ -]| ?- ?)(?<high>{NUMBER}))?\
        (?:[ -]?(?<unit>{AGE_UNIT}))?(?:(?:,| and)?[ -](?<second>{NUMBER})[ -]?(?<second_unit>{AGE_UNIT}))?\
        (?<old>(?:[ -]?(?:old|of[ -]age))?)$"
    ))
});
static DECADE: LazyLock<Regex> = LazyLock::new(|| {
    fixed(
        "^(?:in |during )?(?:(?:his|her|their|the) )?(?:(?<digits>[2-9]0)'?s|(?<word>twenties|thirties|forties|fifties|\
        sixties|seventies|eighties|nineties))$",
    )
});
static DAY_OF_LIFE: LazyLock<Regex> =
    LazyLock::new(|| fixed("^(?:(?:dol|day of life) ?#?([0-9]{1,3})|([0-9]{1,3})(?:st|nd|rd|th) day of life)$"));

/// An age as number and unit. "day of life 3" stays: whether the first day counts as 0 or 1 is not said.
fn plain_age(text: String, rules: &mut BTreeSet<&'static str>) -> String {
    let lower = text.to_ascii_lowercase();
    let Some((age, used)) = age_of(&lower) else { return text };
    if age == text {
        return text;
    }
    rules.insert("age");
    rules.extend(used);
    age
}

fn age_of(lower: &str) -> Option<(String, Vec<&'static str>)> {
    if let Some(found) = DECADE.captures(lower) {
        let tens = match found.name("digits") {
            Some(digits) => digits.as_str().chars().next()?.to_digit(10)?,
            None => {
                let word = found.name("word")?.as_str().strip_suffix("ies")?;
                let index = TENS.iter().position(|ten| ten.strip_suffix('y') == Some(word))?;
                u32::try_from(index).ok()? + 2
            }
        };
        return Some((format!("{tens}0-{tens}9 years"), vec!["age_decade"]));
    }
    if let Some(found) = DAY_OF_LIFE.captures(lower) {
        return Some((format!("day of life {}", found.get(1).or(found.get(2))?.as_str()), Vec::new()));
    }
    let found = AGE.captures(lower)?;
    let part = |name: &str| found.name(name).map(|part| part.as_str());
    let mut used = Vec::new();
    let says_years = part("aged").is_some_and(|aged| !aged.is_empty());
    let unit = match part("unit") {
        Some(unit) => full_unit(unit)?,
        // "aged 47" counts years, "47" alone may count anything.
        None if says_years && part("second").is_none() => "year",
        None => return None,
    };
    let low = number_of(part("low")?, &mut used)?;
    let (mut amount, mut is_one) = (low.clone(), low == "1");
    if let Some(high) = part("high") {
        amount = format!("{low}-{}", number_of(high, &mut used)?);
        is_one = false;
    }
    let plural = |is_one: bool| if is_one { "" } else { "s" };
    let mut age = format!("{}{amount} {unit}{}", part("qualifier").unwrap_or_default(), plural(is_one));
    if let (Some(second), Some(second_unit)) = (part("second"), part("second_unit")) {
        let second = number_of(second, &mut used)?;
        age = format!("{age} {second} {}{}", full_unit(second_unit)?, plural(second == "1"));
    }
    Some((age, used))
}

fn full_unit(unit: &str) -> Option<&'static str> {
    Some(match unit {
        "year" | "years" | "yr" | "yrs" | "yr/o" | "y/o" | "y.o." | "y.o" | "yo" | "y" => "year",
        "month" | "months" | "mo" | "mos" | "m/o" => "month",
        "week" | "weeks" | "wk" | "wks" => "week",
        "day" | "days" => "day",
        "hour" | "hours" | "hr" | "hrs" => "hour",
        "minute" | "minutes" => "minute",
        _ => return None,
    })
}

/// A number in digits: "two and a half" and "2 1/2" are 2.5.
fn number_of(text: &str, used: &mut Vec<&'static str>) -> Option<String> {
    let fractions =
        [("1/2", "5"), ("½", "5"), ("a half", "5"), ("a-half", "5"), ("¼", "25"), ("1/4", "25"), ("¾", "75")];
    let fractions = fractions.into_iter().chain([("3/4", "75")]);
    let (whole, fraction) = fractions
        .filter_map(|(name, decimals)| Some((text.strip_suffix(name)?, Some(decimals))))
        .next()
        .unwrap_or((text, None));
    let whole = whole.trim_end_matches([' ', '-']);
    let whole = whole.strip_suffix("and").unwrap_or(whole).trim_end_matches([' ', '-']);
    let digits = if whole.is_empty() {
        "0".to_owned()
    } else if whole.starts_with(|c: char| c.is_ascii_digit()) {
        whole.to_owned()
    } else {
        used.push("age_number_word");
        let mut words = whole.split([' ', '-']);
        let first = words.next()?;
        let value = match TENS.iter().position(|ten| *ten == first) {
            Some(index) => {
                (index + 2) * 10 + words.next().map_or(Some(0), |one| UNITS.iter().position(|word| *word == one))?
            }
            None => UNITS.iter().position(|word| *word == first)?,
        };
        value.to_string()
    };
    match fraction {
        None => Some(digits),
        Some(_) if digits.contains('.') => None,
        Some(decimals) => {
            used.push("age_fraction");
            Some(format!("{digits}.{decimals}"))
        }
    }
}

#[cfg(test)]
mod tests;
