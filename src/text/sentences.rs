//! Sentence ranges of clinical text, and the question a stem ends in.
//!
//! A splitter for exam vignettes and case reports: it knows clinical abbreviations, decimals, quoted speech
//! and laboratory tables. All offsets are byte offsets into the text given, always on character boundaries.

use std::ops::Range;

/// A stem in two parts. Both ranges are byte offsets into the text that was split, trimmed of surrounding
/// white space; either may be empty, and together they cover every sentence of the text.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Stem {
    /// What is told before the question.
    pub vignette: Range<usize>,
    /// The question asked, with whatever short remark or list follows it.
    pub lead_in: Range<usize>,
}

/// Byte ranges of the sentences of `text`, in order, trimmed of surrounding white space, never empty, never
/// overlapping, always on character boundaries; all text outside them is white space.
///
/// - A stop (`.`, `?`, `!`, `…`) ends a sentence together with the quotes and brackets that close after it,
///   unless an abbreviation, an initial or a list number explains it, it stands inside a quotation of at most
///   300 bytes, or the next non-blank character is lower case.
/// - A line break without a stop ends a sentence only before a blank line, before a heading line that ends in
///   `:`, or between a table line and a line of prose. A heading keeps the lines below it.
pub fn sentences(text: &str) -> Vec<Range<usize>> {
    let bytes = text.as_bytes();
    let mut found = Vec::new();
    let mut start = skip_blank(text, 0);
    let mut at = start;
    // End of the quotation `at` stands in.
    let mut quoted_until = 0;
    while let Some(&byte) = bytes.get(at) {
        match byte {
            b'.' | b'?' | b'!' => {}
            0xE2 if starts(text, at, "…") => {}
            b'"' | 0xE2 => {
                if at >= quoted_until {
                    quoted_until = quotation_end(text, at);
                }
                at += 1;
                continue;
            }
            b'\n' => {
                let next = skip_blank(text, at);
                if line_break_ends(text, start, at, next) {
                    push_trimmed(text, start..at, &mut found);
                    start = next;
                    quoted_until = 0;
                }
                at = next;
                continue;
            }
            _ => {
                at += 1;
                continue;
            }
        }
        let stops_end = skip_stops(text, at);
        let end = skip_closers(text, stops_end);
        let next = skip_blank(text, end);
        if end >= quoted_until && stop_ends(text, start, Stop { at, stops_end, end, next }) {
            push_trimmed(text, start..end, &mut found);
            start = next;
            quoted_until = 0;
            at = next;
        } else {
            at = stops_end;
        }
    }
    push_trimmed(text, start..text.len(), &mut found);
    found
}

/// Splits `text` into its question and what comes before.
///
/// The lead-in is, in this order: the last sentence, if it ends in `?` or is a line that ends in `:`; the last
/// sentence that ends in `?`, if only a short remark, a table or a list of options follows it (they belong to
/// the lead-in then); the last sentence, if it looks like an unfinished prompt (no stop, or it begins with a
/// question word). Otherwise the lead-in is empty and stands at the end.
pub fn split_lead_in(text: &str) -> Stem {
    let ranges = sentences(text);
    let (Some(first), Some(last)) = (ranges.first(), ranges.last()) else {
        return Stem { vignette: 0..0, lead_in: 0..0 };
    };
    let (begin, end) = (first.start, last.end);
    let last_text = slice(text, last);
    let last_index = ranges.len() - 1;
    let question = ranges.iter().rposition(|range| asks(slice(text, range)));
    let lead_in = match question {
        Some(index) if index == last_index => Some(index),
        _ if is_open_line(last_text) => Some(last_index),
        Some(index) if is_remark(text, ranges.get(index + 1..).unwrap_or_default()) => Some(index),
        _ if is_unfinished(last_text) => Some(last_index),
        _ => None,
    };
    let Some((index, range)) = lead_in.and_then(|index| Some((index, ranges.get(index)?))) else {
        return Stem { vignette: begin..end, lead_in: end..end };
    };
    // A question below a table, when the table's last line did not look like one.
    let lead_start = range.start + question_line(slice(text, range));
    let before = if lead_start > range.start {
        range.start + slice(text, &(range.start..lead_start)).trim_end().len()
    } else {
        index.checked_sub(1).and_then(|before| ranges.get(before)).map_or(begin, |before| before.end)
    };
    Stem { vignette: begin..before, lead_in: lead_start..end }
}

/// Longest quotation, in bytes, that is kept in one sentence. A longer one is taken for a stray quote mark.
const MAX_QUOTATION: usize = 300;
/// Longest look-back, in bytes, for the word before a stop.
const MAX_WORD: usize = 24;
/// Longest table line, in bytes.
const MAX_TABLE_LINE: usize = 90;
/// Longest remark after a question, in bytes, when it is neither a table nor a list of options.
const MAX_REMARK: usize = 240;

/// Abbreviations that never end a sentence, in lower case without the last dot. All lists here are sorted.
const NEVER_LAST: &[&str] = &[
    "approx", "cf", "dr", "drs", "e.g", "eg", "fig", "figs", "hon", "i.e", "ie", "mr", "mrs", "ms", "mt", "prof",
    "rev", "st", "viz", "vs",
];
/// Abbreviations that do not end a sentence when a digit follows.
const BEFORE_DIGIT: &[&str] = &[
    "b.p", "bp", "ca", "ch", "eq", "gr", "hr", "ht", "no", "nos", "p", "pp", "ref", "resp", "rr", "sec", "t", "tab",
    "temp", "vol", "wt",
];
/// Abbreviations that end a sentence only before a usual first word.
const RARELY_LAST: &[&str] = &["al", "inc", "jr", "lab", "ltd", "pt", "pts", "sr", "v"];
/// Usual first words of a sentence.
#[rustfmt::skip]
const FIRST_WORDS: &[&str] = &[
    "A", "After", "All", "Although", "An", "And", "Are", "As", "At", "Based", "Because", "Before", "Blood", "Both",
    "But", "By", "Cardiac", "During", "Examination", "Family", "For", "From", "He", "Her", "His", "How", "However",
    "I", "If", "In", "Is", "It", "Its", "Laboratory", "My", "Neurologic", "Neurological", "No", "On", "One",
    "Other", "Over", "Past", "Patient", "Physical", "Pulmonary", "She", "Since", "The", "Their", "There", "These",
    "They", "This", "To", "Today", "Two", "Upon", "Vital", "We", "What", "When", "Where", "Which", "While", "Who",
    "Why", "You", "Your",
];
/// Words after which a single capital is a name of its own ("vitamin K"), not an initial.
#[rustfmt::skip]
const LABELS: &[&str] = &[
    "antigen", "class", "drug", "exhibit", "factor", "figure", "grade", "group", "haemophilia", "hemophilia",
    "hepatitis", "image", "immunoglobulin", "influenza", "panel", "patient", "stage", "table", "type", "vitamin",
];
/// Words a question begins with.
const QUESTION_WORDS: &[&str] = &[
    "are", "can", "could", "do", "does", "how", "is", "should", "what", "when", "where", "which", "who", "whose",
    "why", "would",
];
/// Words a table line may end in when it holds no number.
#[rustfmt::skip]
const RESULTS: &[&str] = &[
    "absent", "clear", "elevated", "few", "high", "low", "many", "moderate", "negative", "nil", "none", "normal",
    "occasional", "pending", "positive", "present", "reactive", "trace", "traces", "yellow",
];
/// Words no finished line ends in.
const OPEN_ENDS: &[&str] = &[
    "a", "an", "and", "are", "at", "but", "by", "for", "from", "had", "has", "have", "her", "his", "in", "is", "of",
    "on", "or", "the", "their", "to", "was", "were", "which", "with", "without",
];

fn slice<'a>(text: &'a str, range: &Range<usize>) -> &'a str {
    text.get(range.clone()).unwrap_or_default()
}

fn rest(text: &str, from: usize) -> &str {
    text.get(from..).unwrap_or_default()
}

fn starts(text: &str, at: usize, what: &str) -> bool {
    text.as_bytes().get(at..).is_some_and(|bytes| bytes.starts_with(what.as_bytes()))
}

fn is_one_of(sorted: &[&str], word: &str) -> bool {
    sorted.binary_search(&word).is_ok()
}

fn push_trimmed(text: &str, range: Range<usize>, found: &mut Vec<Range<usize>>) {
    let start = skip_blank(text, range.start);
    let end = range.start + slice(text, &range).trim_end().len();
    if start < end {
        found.push(start..end);
    }
}

/// The offset of the first non-blank character at or after `from`, or the end of the text.
fn skip_blank(text: &str, from: usize) -> usize {
    text.len() - rest(text, from).trim_start().len()
}

fn skip_stops(text: &str, from: usize) -> usize {
    text.len() - rest(text, from).trim_start_matches(['.', '?', '!', '…']).len()
}

fn skip_closers(text: &str, from: usize) -> usize {
    text.len() - rest(text, from).trim_start_matches(is_closer).len()
}

fn is_closer(character: char) -> bool {
    matches!(character, '"' | '\'' | '”' | '’' | '»' | ')' | ']' | '}')
}

fn is_opener(character: char) -> bool {
    matches!(character, '"' | '\'' | '“' | '‘' | '«' | '(' | '[' | '{')
}

/// The offset behind the closing mark of the quotation that opens at `at`, or 0 if none opens here: the byte is
/// no opening mark, the closing one is too far away, or the pair wraps the whole text.
fn quotation_end(text: &str, at: usize) -> usize {
    let (open, close) = if starts(text, at, "\"") { ("\"", "\"") } else { ("“", "”") };
    let bytes = text.as_bytes();
    let opens = starts(text, at, open)
        && at
            .checked_sub(1)
            .and_then(|before| bytes.get(before))
            .is_none_or(|before| before.is_ascii_whitespace() || matches!(before, b'(' | b'[' | b',' | b':'));
    let from = at + open.len();
    if !opens || from != skip_blank(text, from) {
        return 0;
    }
    let window = bytes.get(from..bytes.len().min(from + MAX_QUOTATION)).unwrap_or_default();
    let Some(length) = window.windows(close.len()).position(|part| part == close.as_bytes()) else {
        return 0;
    };
    let end = from + length + close.len();
    let wraps = skip_blank(text, 0) == at && skip_blank(text, end) == text.len();
    if wraps { 0 } else { end }
}

/// Byte offsets around a stop: its first character, the end of the run of stops, the end of the closing marks
/// after it, and the next non-blank character.
#[derive(Clone, Copy)]
struct Stop {
    at: usize,
    stops_end: usize,
    end: usize,
    next: usize,
}

/// Whether a stop ends the sentence begun at `start`.
fn stop_ends(text: &str, start: usize, stop: Stop) -> bool {
    let follows = rest(text, stop.next);
    let after = follows.trim_start_matches(is_opener);
    if follows.starts_with(char::is_lowercase) || after.starts_with(char::is_lowercase) {
        return false;
    }
    if follows.is_empty() {
        return true;
    }
    let is_dot = stop.stops_end == stop.at + 1 && starts(text, stop.at, ".");
    let word = word_before(text, start, stop.at);
    if stop.next == stop.end {
        // No space: a decimal, a file name, or a space forgotten between two words.
        let plain = word.len() >= 3 && word.bytes().all(|byte| byte.is_ascii_lowercase());
        let mut letters = follows.chars();
        let capitalised =
            letters.next().is_some_and(char::is_uppercase) && letters.next().is_some_and(char::is_lowercase);
        return capitalised && (plain || !is_dot);
    }
    let blank_line = slice(text, &(stop.end..stop.next)).bytes().filter(|&byte| byte == b'\n').count() > 1;
    !is_dot || blank_line || !is_explained(text, start, stop.at, word, after)
}

/// Whether the word before a dot explains it. `after` is the text that follows, without opening marks.
fn is_explained(text: &str, start: usize, stop: usize, word: &str, after: &str) -> bool {
    let usual = is_one_of(FIRST_WORDS, first_word(after));
    let lower = word.to_lowercase();
    let word_start = stop - word.len();
    let starts_with_digit = word.starts_with(|character: char| character.is_ascii_digit());
    if word_start == start && starts_with_digit && word.len() <= 3 {
        return true;
    }
    // "ms" in lower case is milliseconds.
    if is_one_of(NEVER_LAST, &lower) && word != "ms" {
        return true;
    }
    let digit_follows = after.starts_with(|character: char| character.is_ascii_digit() || character == '#');
    if digit_follows && !starts_with_digit && (is_one_of(BEFORE_DIGIT, &lower) || lower.contains('.')) {
        return true;
    }
    if is_one_of(RARELY_LAST, &lower) {
        return !usual;
    }
    let capital = word.starts_with(char::is_uppercase);
    if capital && word.chars().count() == 1 {
        // An initial stands alone: "mEq/L" and "5 L" end in a unit, "vitamin K" in a name.
        let before = slice(text, &(start..word_start));
        let previous = before.trim_end().rsplit(char::is_whitespace).next().unwrap_or_default();
        let named = is_one_of(LABELS, &previous.to_lowercase())
            || previous.ends_with(|character: char| character.is_ascii_digit());
        let alone =
            before.ends_with(|character: char| character.is_whitespace() || is_opener(character) || character == '.');
        return before.is_empty() || (alone && !named && !usual);
    }
    // "U.S." is rarely last; "q.i.d." or "a.m." before a capital is.
    let dotted = word.contains('.') && word.split('.').all(|part| part.chars().count() == 1);
    dotted && capital && !usual
}

/// The run of letters, digits and inner dots before `stop`, not reaching back before `start`.
fn word_before(text: &str, start: usize, stop: usize) -> &str {
    let mut from = stop.saturating_sub(MAX_WORD).max(start);
    while !text.is_char_boundary(from) {
        from += 1;
    }
    let window = slice(text, &(from..stop));
    let kept = window.trim_end_matches(|character: char| character.is_alphanumeric() || character == '.');
    rest(window, kept.len()).trim_start_matches('.')
}

fn first_word(text: &str) -> &str {
    let end = text.find(|character: char| !character.is_alphanumeric()).unwrap_or(text.len());
    text.get(..end).unwrap_or_default()
}

fn last_word(text: &str) -> &str {
    text.rsplit(|character: char| !character.is_alphanumeric()).find(|word| !word.is_empty()).unwrap_or_default()
}

/// Whether the line break at `at`, which no stop precedes, ends the sentence begun at `start`. `next` is the offset
/// of the next non-blank character.
fn line_break_ends(text: &str, start: usize, at: usize, next: usize) -> bool {
    let said = slice(text, &(start..at)).trim_end();
    let follows = rest(text, next);
    if said.is_empty() || said.ends_with(':') || follows.is_empty() || follows.starts_with(char::is_lowercase) {
        return false;
    }
    if slice(text, &(at..next)).bytes().filter(|&byte| byte == b'\n').count() > 1 {
        return true;
    }
    let line = said.rsplit('\n').next().unwrap_or_default().trim();
    if line.ends_with(',') || is_one_of(OPEN_ENDS, &last_word(line).to_lowercase()) {
        return false;
    }
    let below = follows.split('\n').next().unwrap_or_default().trim_end();
    let is_heading = below.ends_with(':') && below.len() <= MAX_TABLE_LINE;
    is_heading || (is_table_line(line) && is_prose(below))
}

fn is_table_line(line: &str) -> bool {
    line.len() <= MAX_TABLE_LINE
        && (line.bytes().any(|byte| byte.is_ascii_digit()) || is_one_of(RESULTS, &last_word(line).to_lowercase()))
}

/// Whether a line holds a stop that ends something, or begins a question of several words.
fn is_prose(line: &str) -> bool {
    let stopped =
        line.trim_end_matches(is_closer).ends_with(['.', '?', '!']) || line.contains(". ") || line.contains("? ");
    (stopped && line.contains(' ')) || (begins_with_question_word(line) && line.matches(' ').count() >= 3)
}

fn asks(sentence: &str) -> bool {
    sentence.trim_end_matches(is_closer).ends_with('?')
        || (begins_with_question_word(sentence) && sentence.contains("? "))
}

fn begins_with_question_word(sentence: &str) -> bool {
    let plain = sentence.trim_start_matches(|character: char| !character.is_alphanumeric());
    is_one_of(QUESTION_WORDS, &first_word(plain).to_lowercase())
}

fn is_open_line(sentence: &str) -> bool {
    sentence.ends_with(':') && !sentence.contains('\n')
}

fn is_unfinished(sentence: &str) -> bool {
    let is_table = sentence.lines().any(|line| line.trim_end().ends_with(':')) && sentence.contains('\n');
    let stopped = sentence.trim_end_matches(is_closer).ends_with(['.', '!', '…']);
    !is_table && (!stopped || begins_with_question_word(sentence))
}

/// Whether the sentences after a question belong to it.
fn is_remark(text: &str, after: &[Range<usize>]) -> bool {
    let (Some(first), Some(last)) = (after.first(), after.last()) else {
        return true;
    };
    let tail = slice(text, &(first.start..last.end));
    let lines = || tail.lines().map(str::trim).filter(|line| !line.is_empty());
    let is_table = lines().nth(1).is_some() && lines().all(|line| line.len() <= MAX_TABLE_LINE);
    is_table || lines().all(is_option_line) || (after.len() <= 2 && tail.len() <= MAX_REMARK)
}

/// `A) …`, `(b) …`, `C. …`, `3: …`
fn is_option_line(line: &str) -> bool {
    let mut characters = line.strip_prefix('(').unwrap_or(line).chars();
    characters.next().is_some_and(char::is_alphanumeric) && matches!(characters.next(), Some(')' | '.' | ':'))
}

/// The byte offset, in a sentence of several lines, of the last line that begins a question; else 0.
fn question_line(sentence: &str) -> usize {
    let mut offset = 0;
    let mut found = 0;
    for line in sentence.split_inclusive('\n') {
        if offset > 0 && begins_with_question_word(line) && line.contains('?') {
            found = skip_blank(sentence, offset);
        }
        offset += line.len();
    }
    found
}

#[cfg(test)]
mod tests {
    use super::*;

    fn split(text: &str) -> Vec<&str> {
        let ranges = sentences(text);
        let mut at = 0;
        for range in &ranges {
            assert!(at <= range.start && range.start < range.end, "overlapping or empty");
            assert!(text[at..range.start].trim().is_empty(), "text lost between sentences");
            assert_eq!(text[range.clone()].trim(), &text[range.clone()]);
            at = range.end;
        }
        assert!(text[at..].trim().is_empty(), "text lost at the end");
        ranges.into_iter().map(|range| &text[range]).collect()
    }

    #[test]
    fn sentences_end_where_a_reader_ends_them() {
        let cases: &[(&str, &[&str])] = &[
            ("", &[]),
            (" \n\t ", &[]),
            ("...", &["..."]),
            ("One word", &["One word"]),
            ("He coughs. She sneezes.", &["He coughs.", "She sneezes."]),
            ("  He coughs.\n\n  She sneezes.  ", &["He coughs.", "She sneezes."]),
            ("Dr. Ames saw Mr. Bell vs. Mrs. Cole. All left.", &["Dr. Ames saw Mr. Bell vs. Mrs. Cole.", "All left."]),
            (
                "Fruits, e.g. Apples, i.e. Malus, helped. He ate.",
                &["Fruits, e.g. Apples, i.e. Malus, helped.", "He ate."],
            ),
            ("Pressure is 120/80 mm Hg. Pulse is 70/min.", &["Pressure is 120/80 mm Hg.", "Pulse is 70/min."]),
            (
                "Temperature is 98.6 and 0.9% saline ran. He slept.",
                &["Temperature is 98.6 and 0.9% saline ran.", "He slept."],
            ),
            ("Room No. 3 at St. Mary was cold. It rained.", &["Room No. 3 at St. Mary was cold.", "It rained."]),
            ("He said no. Three left.", &["He said no.", "Three left."]),
            (
                "Takes it q.i.d. with food. Takes it b.i.d. She forgets.",
                &["Takes it q.i.d. with food.", "Takes it b.i.d.", "She forgets."],
            ),
            ("Weighs approx. 70 kg. Tall.", &["Weighs approx. 70 kg.", "Tall."]),
            ("Seen by J. R. Smith. Well.", &["Seen by J. R. Smith.", "Well."]),
            (
                "Sodium is 140 mEq/L. Prolonged use. Lost 2 L. Treated. QRS is 90 ms. In all.",
                &["Sodium is 140 mEq/L.", "Prolonged use.", "Lost 2 L.", "Treated.", "QRS is 90 ms.", "In all."],
            ),
            ("Has hepatitis B. Liver is large.", &["Has hepatitis B.", "Liver is large."]),
            (
                "Lives on a U.S. Army base. Born in the U.S. He works.",
                &["Lives on a U.S. Army base.", "Born in the U.S.", "He works."],
            ),
            ("Grew E. coli. Treated.", &["Grew E. coli.", "Treated."]),
            ("It hurts (see below.) Then it stops.", &["It hurts (see below.)", "Then it stops."]),
            ("She asks, \"Why me?\" and leaves. He stays.", &["She asks, \"Why me?\" and leaves.", "He stays."]),
            ("She says \"Why? I am well.\" He nods.", &["She says \"Why? I am well.\"", "He nods."]),
            ("She says “Why? I am well.” He nods.", &["She says “Why? I am well.”", "He nods."]),
            ("\"He is ill. He coughs?\"", &["\"He is ill.", "He coughs?\""]),
            ("Really?! Yes! No… Maybe.", &["Really?!", "Yes!", "No…", "Maybe."]),
            ("It is low. pH fell. β-blockers helped.", &["It is low. pH fell. β-blockers helped."]),
            ("It was fine.Next day it was not.", &["It was fine.", "Next day it was not."]),
            ("1. Rest. 2. Fluids.", &["1. Rest.", "2. Fluids."]),
            ("Élan ist gut. Ödem fehlt. 体温正常", &["Élan ist gut.", "Ödem fehlt.", "体温正常"]),
            ("Crowded. \u{a0} \u{2003}He left.", &["Crowded.", "He left."]),
        ];
        for (text, expect) in cases {
            assert_eq!(&split(text), expect, "{text:?}");
        }
    }

    #[test]
    fn tables_stay_with_their_heading() {
        let cases: &[(&str, &[&str])] = &[
            (
                "He is pale. Laboratory studies show:\nHemoglobin 8.1 g/dL\nSerum\nNa+ 140 mEq/L\nWhich is it?",
                &["He is pale.", "Laboratory studies show:\nHemoglobin 8.1 g/dL\nSerum\nNa+ 140 mEq/L", "Which is it?"],
            ),
            ("Studies:\n\nA 1\nB 2", &["Studies:\n\nA 1\nB 2"]),
            (
                "Value 4\nUrine studies show:\nProtein 2+\nAscites is seen. Why?",
                &["Value 4", "Urine studies show:\nProtein 2+", "Ascites is seen.", "Why?"],
            ),
            (
                "Blood tests show:\r\nHb 9\r\nHBsAg negative\r\nA scan is normal.",
                &["Blood tests show:\r\nHb 9\r\nHBsAg negative", "A scan is normal."],
            ),
            ("He was seen by\nAnn Lee. He left.", &["He was seen by\nAnn Lee.", "He left."]),
            ("No stop here\n\nNext part", &["No stop here", "Next part"]),
            ("No stop here\n\nnext part", &["No stop here\n\nnext part"]),
            ("Normal.\nSodium 140", &["Normal.", "Sodium 140"]),
        ];
        for (text, expect) in cases {
            assert_eq!(&split(text), expect, "{text:?}");
        }
    }

    #[test]
    fn the_lead_in_is_the_question() {
        let cases = [
            ("", "", ""),
            ("What is it?", "", "What is it?"),
            ("He coughs. What is it?", "He coughs.", "What is it?"),
            ("\"He coughs. What is it?\"", "\"He coughs.", "What is it?\""),
            ("He coughs. Which fits? Assume he is well.", "He coughs.", "Which fits? Assume he is well."),
            ("He coughs. The most likely diagnosis is:", "He coughs.", "The most likely diagnosis is:"),
            ("He coughs. The most likely diagnosis is", "He coughs.", "The most likely diagnosis is"),
            ("He coughs. Which of these fits best.", "He coughs.", "Which of these fits best."),
            ("He coughs. He sneezes.", "He coughs. He sneezes.", ""),
            ("He coughs. Which fits?\n A) Flu\n B) Cold", "He coughs.", "Which fits?\n A) Flu\n B) Cold"),
            (
                "He coughs. Which fits? (A) Flu. (B) Cold. (C) Croup.",
                "He coughs.",
                "Which fits? (A) Flu. (B) Cold. (C) Croup.",
            ),
            ("Tests show:\nHb 9 g/dL\nWhich fits?", "Tests show:\nHb 9 g/dL", "Which fits?"),
            ("Tests show:\nHigh counts of cells\nWhich fits?", "Tests show:\nHigh counts of cells", "Which fits?"),
            ("He is ill. Tests show:\nHb 9 g/dL\nPlatelets 90", "He is ill. Tests show:\nHb 9 g/dL\nPlatelets 90", ""),
            (
                "Was he ill? He came by car. He sat down. He left.",
                "Was he ill? He came by car. He sat down. He left.",
                "",
            ),
        ];
        for (text, vignette, lead_in) in cases {
            let stem = split_lead_in(text);
            assert_eq!((&text[stem.vignette], &text[stem.lead_in]), (vignette, lead_in), "{text:?}");
        }
    }

    #[test]
    fn word_lists_are_sorted() {
        for list in [NEVER_LAST, BEFORE_DIGIT, RARELY_LAST, FIRST_WORDS, LABELS, QUESTION_WORDS, RESULTS, OPEN_ENDS] {
            assert!(list.is_sorted(), "{list:?}");
        }
    }

    #[test]
    fn long_runs_of_one_shape_are_split_in_linear_time() {
        for part in
            [".", "\n", "\"", "“", "a.", "A\n", "? ", " ", "…", ".\n", "\n1", "(\"a.", " \"", "x\n\n", "B. ", "é.É "]
        {
            split(&part.repeat(200_000));
        }
    }
}
