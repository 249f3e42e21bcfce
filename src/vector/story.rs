//! What a report tells of a patient as one text for the rule extractor, which knows where in the article each word stands.

use std::ops::Range;

use crate::record::article::Article;
use crate::record::slots::Span;
use crate::record::staged::SourceText;
use crate::staging::diagnosis::{Located, text_of};
use crate::text::context::{ContextRules, Scopes};
use crate::text::sentences::sentences;
use std::borrow::Cow;
use std::collections::{BTreeMap, BTreeSet};

/// A lower-case ASCII copy with one byte for each character, as the rules of context read it.
pub(super) fn folded(text: &str) -> String {
    text.chars()
        .map(|character| match character {
            _ if character.is_ascii() => character.to_ascii_lowercase(),
            '\u{2018}' | '\u{2019}' => '\'',
            '\u{2010}'..='\u{2015}' | '\u{2212}' => '-',
            'µ' | 'μ' => 'u',
            _ if character.is_whitespace() => ' ',
            _ if character.is_alphanumeric() => '_',
            _ => '~',
        })
        .collect()
}

/// A text with its sentences and scopes. Ranges are Unicode scalar values of the text.
pub(super) struct ReadText {
    pub(super) text: String,
    /// One byte for each character.
    pub(super) folded: String,
    /// The byte at which each character begins, and the end of the text.
    offsets: Vec<usize>,
    pub(super) sentences: Vec<Range<usize>>,
    pub(super) scopes: Scopes,
}

impl ReadText {
    pub(super) fn new(text: String, rules: &ContextRules) -> Self {
        let offsets: Vec<usize> = text.char_indices().map(|(byte, _)| byte).chain([text.len()]).collect();
        let character = |byte: usize| offsets.partition_point(|begin| *begin < byte);
        let sentences: Vec<Range<usize>> =
            sentences(&text).into_iter().map(|range| character(range.start)..character(range.end)).collect();
        let folded = folded(&text);
        let scopes = rules.scopes(&folded, &sentences);
        Self { text, folded, offsets, sentences, scopes }
    }

    /// The bytes of a range of characters.
    pub(super) fn bytes(&self, range: &Range<usize>) -> Range<usize> {
        let byte = |character: usize| self.offsets.get(character).copied().unwrap_or(self.text.len());
        byte(range.start)..byte(range.end)
    }

    /// The characters of a range of bytes.
    pub(super) fn characters(&self, bytes: &Range<usize>) -> Range<usize> {
        let character = |byte: usize| self.offsets.partition_point(|begin| *begin < byte);
        character(bytes.start)..character(bytes.end)
    }

    pub(super) fn words(&self, range: &Range<usize>) -> &str {
        self.text.get(self.bytes(range)).unwrap_or_default()
    }

    /// The words of a range in lower-case ASCII.
    pub(super) fn plain(&self, range: &Range<usize>) -> &str {
        self.folded.get(range.clone()).unwrap_or_default()
    }

    /// Index and range of the sentence that holds a character.
    pub(super) fn sentence_of(&self, character: usize) -> Option<(usize, Range<usize>)> {
        let index = self.sentences.partition_point(|sentence| sentence.end <= character);
        self.sentences.get(index).filter(|sentence| sentence.contains(&character)).map(|range| (index, range.clone()))
    }

    /// The range without white space and commas at its ends.
    pub(super) fn trimmed(&self, range: &Range<usize>) -> Range<usize> {
        let text = self.plain(range);
        let is_outer = |character: char| character.is_whitespace() || matches!(character, ',' | ';' | '.' | ':');
        let start = range.start + text.len() - text.trim_start_matches(is_outer).len();
        let length = text.trim_matches(is_outer).len();
        start..start + length
    }
}

/// Stretches of an article as one text.
pub(super) struct Story {
    pub(super) read: ReadText,
    /// In the order of the text: characters of the story, and where they come from.
    pieces: Vec<(Range<usize>, Located)>,
}

/// A part of a story before it is read.
pub(super) enum Part {
    /// Words that are put in.
    Words(&'static str),
    Piece(Located),
}

impl Story {
    /// The words of the parts, one after the other. Stretches that are none of the article are left out.
    pub(super) fn of(article: &Article, parts: &[Part], rules: &ContextRules) -> Self {
        let mut text = String::new();
        let mut n_chars = 0;
        let mut pieces = Vec::new();
        for part in parts {
            let words = match part {
                Part::Words(words) => Cow::Borrowed(*words),
                Part::Piece(place) => match slice(article, place) {
                    Some(words) => words,
                    None => continue,
                },
            };
            let length = words.chars().count();
            if let Part::Piece(place) = part {
                pieces.push((n_chars..n_chars + length, place.clone()));
            }
            text.push_str(&words);
            n_chars += length;
        }
        Self { read: ReadText::new(text, rules), pieces }
    }

    /// Where a range of characters stands in the article; none if it is put in, or of several stretches.
    pub(super) fn place(&self, range: &Range<usize>) -> Option<Located> {
        let index = self.pieces.partition_point(|(piece, _)| piece.end <= range.start);
        let (piece, place) = self.pieces.get(index)?;
        if range.is_empty() || range.start < piece.start || range.end > piece.end {
            return None;
        }
        let first = self.read.bytes(piece).start;
        let bytes = self.read.bytes(range);
        Some(Located {
            text_id: place.text_id.clone(),
            start: place.start + bytes.start - first,
            end: place.start + bytes.end - first,
        })
    }

    /// The characters of the pieces that come from a stretch, or share words with it.
    pub(super) fn characters_from(&self, place: &Located) -> Option<Range<usize>> {
        let mut found: Option<Range<usize>> = None;
        for (piece, other) in &self.pieces {
            if overlap(place, other) {
                let first = self.read.bytes(piece).start;
                let bytes =
                    first + place.start.max(other.start) - other.start..first + place.end.min(other.end) - other.start;
                let range = self.read.characters(&bytes);
                found = Some(
                    found.map_or(range.clone(), |so_far| so_far.start.min(range.start)..so_far.end.max(range.end)),
                );
            }
        }
        found
    }

    /// The pieces with their characters.
    pub(super) fn pieces(&self) -> impl Iterator<Item = (&Range<usize>, &Located)> {
        self.pieces.iter().map(|(range, place)| (range, place))
    }
}

/// Whether two stretches share a character.
pub(super) fn overlap(one: &Located, other: &Located) -> bool {
    one.text_id == other.text_id && one.start < other.end && other.start < one.end
}

/// The text that an id names, tables as [`Table::to_text`](crate::record::article::Table::to_text) gives them.
pub(super) fn article_text<'a>(article: &'a Article, text_id: &str) -> Option<Cow<'a, str>> {
    let table = text_id.strip_prefix('t').and_then(|number| number.parse::<usize>().ok());
    match table.and_then(|position| article.tables.get(position)) {
        Some(table) => Some(Cow::Owned(table.to_text())),
        None => text_of(article, text_id).map(Cow::Borrowed),
    }
}

/// The words at a place.
pub(super) fn slice<'a>(article: &'a Article, place: &Located) -> Option<Cow<'a, str>> {
    match article_text(article, &place.text_id)? {
        Cow::Borrowed(text) => text.get(place.start..place.end).map(Cow::Borrowed),
        Cow::Owned(text) => text.get(place.start..place.end).map(|words| Cow::Owned(words.to_owned())),
    }
    .filter(|words| !words.is_empty())
}

/// The texts of an article that spans point into.
pub(super) struct Texts<'a> {
    article: &'a Article,
    known: BTreeMap<String, Cow<'a, str>>,
    used: BTreeSet<String>,
}

impl<'a> Texts<'a> {
    pub(super) fn of(article: &'a Article) -> Self {
        Self { article, known: BTreeMap::new(), used: BTreeSet::new() }
    }

    fn text(&mut self, text_id: &str) -> Option<&str> {
        if !self.known.contains_key(text_id) {
            let text = article_text(self.article, text_id)?;
            self.known.insert(text_id.to_owned(), text);
        }
        self.known.get(text_id).map(AsRef::as_ref)
    }

    /// The span of a place; its text is one of [`Self::used`] from then on.
    pub(super) fn span(&mut self, place: &Located) -> Option<Span> {
        let text = self.text(&place.text_id)?;
        let words = text.get(place.start..place.end).filter(|words| !words.is_empty())?;
        let start = u32::try_from(text.get(..place.start)?.chars().count()).ok()?;
        let end = start + u32::try_from(words.chars().count()).ok()?;
        self.used.insert(place.text_id.clone());
        Some(Span { text_id: place.text_id.clone(), start, end })
    }

    pub(super) fn spans(&mut self, places: &[Located]) -> Vec<Span> {
        places.iter().filter_map(|place| self.span(place)).collect()
    }

    /// The place of a span.
    pub(super) fn place(&mut self, span: &Span) -> Option<Located> {
        let text = self.text(&span.text_id)?;
        let byte = |character: u32| {
            text.char_indices().map(|(byte, _)| byte).chain([text.len()]).nth(usize::try_from(character).ok()?)
        };
        let (start, end) = (byte(span.start)?, byte(span.end)?);
        (start < end).then(|| Located { text_id: span.text_id.clone(), start, end })
    }

    /// The texts that were pointed into: title, abstracts, paragraphs, captions, tables, each by position.
    pub(super) fn used(mut self) -> Vec<SourceText> {
        let used = std::mem::take(&mut self.used);
        let mut texts: Vec<SourceText> = used
            .into_iter()
            .filter_map(|text_id| {
                let text = self.text(&text_id)?.to_owned();
                Some(SourceText { text_id, text })
            })
            .collect();
        texts.sort_by_key(|text| order(&text.text_id));
        texts
    }
}

/// Sorts texts of an article.
pub(super) fn order(text_id: &str) -> (usize, Vec<usize>) {
    let numbers = text_id.split(|character: char| !character.is_ascii_digit());
    let kind = if text_id == "title" {
        0
    } else {
        text_id.get(..1).and_then(|first| "apft".find(first)).map_or(9, |at| at + 1)
    };
    (kind, numbers.filter_map(|number| number.parse().ok()).collect())
}
