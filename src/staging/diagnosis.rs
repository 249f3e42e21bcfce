//! What an article says was diagnosed (ClinMM-Bench, 4.1.4 and supplement F: "the clear final diagnosis as stated").
//!
//! Title, abstract and text are searched for statements ("was diagnosed with X", "X: a case report"); each gives a phrase,
//! its place and how plainly it speaks. Doubted, past and excluded diagnoses and those of relatives or of the literature do
//! not count. Phrases that name the same, by their words or by an abbreviation that the article defines, support each other;
//! without two independent places there is no diagnosis, because a wrong one is worse than none. The patterns are data
//! (`pipelines/rules/case_reports.toml`).

use std::collections::{BTreeMap, BTreeSet};
use std::ops::Range;

use super::sections::{SectionRole, patterns};
use super::suitability::{CaseReportRules, DiagnosisRules, Strength};
use crate::record::article::{Article, Passage, PatientSegment, Region};
use crate::text::sentences::sentences;

/// A diagnosis with what it rests on.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct FinalDiagnosis {
    /// In the words of the article.
    pub diagnosis: String,
    /// Where these words stand.
    pub quote: Located,
    /// Every place that supports it, the title first, then in the order of abstract and text; includes the quote.
    pub support: Vec<Located>,
    /// What else gives it away: abbreviations that the article defines, other forms in title and text, its head word.
    pub synonyms: Vec<String>,
    /// Id of the statement that the words come from; `title` or `title_cause` for the title.
    pub rule: String,
}

/// A stretch of a text of the article, never empty.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Located {
    /// `p12`: paragraph 12, from 0; `title`; `a0.1`: second paragraph of the first abstract; `f2.0`: first passage of the
    /// caption of figure 2.
    pub text_id: String,
    /// Bytes of that text.
    pub start: usize,
    /// Exclusive.
    pub end: usize,
}

/// Why there is no diagnosis.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct NoDiagnosis {
    /// `no_diagnosis` if nothing states one, `diagnosis_unclear` if what is stated is not supported or differs.
    pub reason: &'static str,
    pub detail: String,
}

/// The text that an id names; see [`Located`].
pub fn text_of<'a>(article: &'a Article, text_id: &str) -> Option<&'a str> {
    if text_id == "title" {
        return article.title.as_deref();
    }
    passage_of(article, text_id).map(|passage| passage.text.as_str())
}

/// The passage that an id names. The title is none: it has no offsets into the file.
pub fn passage_of<'a>(article: &'a Article, text_id: &str) -> Option<&'a Passage> {
    let (kind, rest) = text_id.split_at_checked(1)?;
    let two = || {
        let (outer, inner) = rest.split_once('.')?;
        Some((outer.parse::<usize>().ok()?, inner.parse::<usize>().ok()?))
    };
    match kind {
        "p" => article.paragraphs.get(rest.parse::<usize>().ok()?).map(|paragraph| &paragraph.passage),
        "a" => {
            let (outer, inner) = two()?;
            article.abstracts.get(outer)?.paragraphs.get(inner).map(|paragraph| &paragraph.passage)
        }
        "f" => {
            let (outer, inner) = two()?;
            article.figures.get(outer)?.caption.get(inner)
        }
        _ => None,
    }
}

/// Most words that a name may have.
const MAX_WORDS: usize = 14;
/// Most words that tell in a name that is preferred to a shorter one.
const MAX_KEYS: usize = 8;
/// Bytes behind a phrase in which its sentence must say that the diagnosis was made.
const MAX_FOLLOW: usize = 160;
/// Bytes before a mention in which a word of doubt counts.
const MAX_HEDGE: usize = 80;
/// Bytes in which the long form of an abbreviation is looked for.
const MAX_LONG_FORM: usize = 300;
/// Most statements that are compared with each other, and most that exclude: a report has some dozens.
const MAX_STATEMENTS: usize = 400;
/// Least sum of weights, in halves.
const MIN_SCORE: u32 = 9;
/// The same for a diagnosis where the title names another disease.
const MIN_SCORE_AGAINST_TITLE: u32 = 18;

patterns! {
    /// An abbreviation in brackets.
    BRACKETED = r"[\(\[](?P<short>[A-Za-z][A-Za-z0-9/-]{1,9}?)(?-i:s)?[\)\]]";
    /// In front of a name.
    CASE_OF = r"^[\w\s-]{0,60}?\b(?:cases?|diagnos[ei]s|forms?|features|symptoms|signs|picture|presentation|manifestation|instance|detection|findings?|occurrence)\s+of\s+(?:an?\s+|the\s+)?";
    DUE_TO = r"\s(?:due\s+to|secondary\s+to|caused\s+by)\s+(?:an?\s+|the\s+)?";
    PROVISIONAL = r"\b(?:provisional|clinical|presumptive|tentative)";
    /// Divides a title.
    DIVIDER = r":\s+|\s+[\x{2010}-\x{2015}-]\s+|\x{2014}|\?\s*|\.\s+|;\s+";
    /// A genus and a species.
    BINOMIAL = r"\b(?P<genus>(?-i:[A-Z])[a-z]{3,})\s+(?P<species>(?-i:[a-z]){4,})\b";
    /// Where one clause ends and another begins.
    CLAUSE = r";|,?\s+(?:but|however|whereas|although)\s|,\s+(?:and\s+)?(?:then|she|he|the\s+patient|we|it|this|a|an|the)\s";
}

/// What a phrase is compared by.
#[derive(Clone, Debug, PartialEq, Eq)]
struct Keys {
    set: BTreeSet<String>,
    /// The word that says what it is: "carcinoma" of "carcinoma of the colon".
    head: String,
}

/// A phrase that states a diagnosis.
#[derive(Clone, Debug)]
struct Candidate {
    place: Located,
    words: String,
    keys: Keys,
    /// Another name in brackets behind it: "rupture of the oesophagus (Boerhaave syndrome)".
    other_name: Option<String>,
    strength: Strength,
    rule: String,
    /// From the part of the title behind "due to".
    is_cause: bool,
}

/// The final diagnosis of an article, or of one patient of it.
///
/// # Errors
/// If no diagnosis is stated, or none of those stated has two independent places that agree.
pub fn final_diagnosis(
    article: &Article,
    roles: &[SectionRole],
    patient: Option<&PatientSegment>,
    rules: &CaseReportRules,
) -> Result<FinalDiagnosis, NoDiagnosis> {
    let rules = &rules.diagnosis;
    let texts = texts(article, roles, patient);
    let reader = Reader { rules, abbreviations: abbreviations(article) };
    let mut candidates = reader.in_title(article);
    let titles: Vec<Keys> = candidates.iter().map(|candidate| candidate.keys.clone()).collect();
    let mut excluded = Vec::new();
    for text in &texts {
        reader.in_text(text, &titles, &mut candidates, &mut excluded);
    }
    candidates.truncate(MAX_STATEMENTS);
    excluded.truncate(MAX_STATEMENTS);
    let is_excluded = |candidate: &Candidate| {
        candidate.strength < Strength::Final
            && candidate.strength != Strength::Title
            && excluded.iter().any(|keys| reader.are_same(keys, &candidate.keys))
    };
    let stated: Vec<Keys> = candidates
        .iter()
        .filter(|candidate| matches!(candidate.strength, Strength::Title | Strength::Final))
        .map(|candidate| candidate.keys.clone())
        .collect();
    candidates.retain(|candidate| {
        !is_excluded(candidate) || stated.iter().any(|keys| reader.is_related(keys, &candidate.keys))
    });
    if candidates.is_empty() {
        return Err(NoDiagnosis { reason: "no_diagnosis", detail: "nothing states a diagnosis".to_owned() });
    }
    for text in &texts {
        reader.mentions_of_title(text, &mut candidates);
    }
    candidates.truncate(2 * MAX_STATEMENTS);
    reader.decide(article, &texts, &candidates)
}

/// A text that may state the diagnosis.
struct Text<'a> {
    id: String,
    text: &'a str,
    kind: TextKind,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum TextKind {
    Abstract,
    /// About the patient.
    Case,
    /// About the patient only where it says so.
    Introduction,
    /// Discussion and conclusion: about the patient where they say so, or tell what happened.
    Discussion,
    Caption,
}

/// What is read: abstract, body and captions; of one patient of several, what belongs to that patient.
fn texts<'a>(article: &'a Article, roles: &[SectionRole], patient: Option<&PatientSegment>) -> Vec<Text<'a>> {
    let mut texts = Vec::new();
    if patient.is_none()
        && let Some(position) = article.main_abstract
        && let Some(main) = article.abstracts.get(position as usize)
    {
        for (number, paragraph) in main.paragraphs.iter().enumerate() {
            let text = paragraph.passage.text.as_str();
            texts.push(Text { id: format!("a{position}.{number}"), text, kind: TextKind::Abstract });
        }
    }
    for (position, (paragraph, role)) in article.paragraphs.iter().zip(roles).enumerate() {
        let is_own =
            |segment: &PatientSegment| u32::try_from(position).is_ok_and(|at| segment.paragraphs.contains(&at));
        let kind = match role {
            _ if paragraph.region != Region::Body => continue,
            _ if patient.is_some_and(|segment| !is_own(segment)) => continue,
            role if role.is_of_patient() => TextKind::Case,
            SectionRole::Introduction => TextKind::Introduction,
            SectionRole::Discussion | SectionRole::Conclusion => TextKind::Discussion,
            SectionRole::Abstract => TextKind::Abstract,
            _ => continue,
        };
        texts.push(Text { id: format!("p{position}"), text: &paragraph.passage.text, kind });
    }
    for (position, figure) in article.figures.iter().enumerate() {
        let is_own = |segment: &PatientSegment| u32::try_from(position).is_ok_and(|at| segment.figures.contains(&at));
        if patient.is_some_and(|segment| !is_own(segment)) {
            continue;
        }
        for (number, passage) in figure.caption.iter().enumerate() {
            texts.push(Text { id: format!("f{position}.{number}"), text: &passage.text, kind: TextKind::Caption });
        }
    }
    texts
}

/// The form in which a word is compared: lower case, American spelling, singular.
pub(super) fn key_of(word: &str) -> String {
    let mut key = word.to_lowercase().replace('’', "'");
    for possessive in ["'s", "s'"] {
        if let Some(stem) = key.strip_suffix(possessive) {
            key = stem.to_owned();
        }
    }
    if key == "herniation" || key == "herniations" {
        return "hernia".to_owned();
    }
    key = key.replace("ae", "e").replace("oe", "e").replace("tumour", "tumor").replace("isation", "ization");
    if key.chars().count() > 4 {
        if let Some(stem) = key.strip_suffix("omata") {
            return format!("{stem}oma");
        }
        if let Some(stem) = key.strip_suffix("ies") {
            return format!("{stem}y");
        }
        let is_singular = ["ss", "us", "is", "as"].iter().any(|ending| key.ends_with(ending)) && !key.ends_with("omas");
        if let Some(stem) = key.strip_suffix('s')
            && !is_singular
        {
            let has_sibilant = ["xe", "sse", "she", "che", "sce"].iter().any(|ending| stem.ends_with(ending));
            return if has_sibilant { stem.strip_suffix('e').unwrap_or(stem).to_owned() } else { stem.to_owned() };
        }
    }
    key
}

/// The keys of all words of a phrase, in its order.
fn ordered_keys(phrase: &str) -> Vec<String> {
    words_of(phrase).into_iter().filter_map(|range| phrase.get(range)).map(key_of).collect()
}

/// A word of a text: letters, digits and apostrophes inside.
fn words_of(text: &str) -> Vec<Range<usize>> {
    let mut words: Vec<Range<usize>> = Vec::new();
    let mut start = None;
    for (at, character) in text.char_indices() {
        let is_inside = character.is_alphanumeric() || (start.is_some() && matches!(character, '\'' | '’'));
        match (start, is_inside) {
            (None, true) => start = Some(at),
            (Some(from), false) => {
                words.push(from..at);
                start = None;
            }
            _ => {}
        }
    }
    words.extend(start.map(|from| from..text.len()));
    words
}

/// Abbreviations that the article defines, with the keys of their long forms and where these stand.
fn abbreviations(article: &Article) -> BTreeMap<String, String> {
    let mut known = BTreeMap::new();
    let abstracts =
        article.abstracts.iter().flat_map(|one| &one.paragraphs).map(|paragraph| paragraph.passage.text.as_str());
    let captions = article.figures.iter().flat_map(|figure| &figure.caption).map(|passage| passage.text.as_str());
    let body = article.paragraphs.iter().map(|paragraph| paragraph.passage.text.as_str());
    for text in article.title.as_deref().into_iter().chain(abstracts).chain(body).chain(captions) {
        for captures in BRACKETED.captures_iter(text) {
            let (Some(whole), Some(short)) = (captures.get(0), captures.name("short")) else { continue };
            let short = short.as_str();
            if short.chars().filter(|c| c.is_uppercase()).count() < 2 {
                continue;
            }
            if let Some(long) = text.get(..whole.start()).and_then(|before| long_form(before, short)) {
                known.entry(short.to_owned()).or_insert_with(|| long.to_owned());
            }
        }
    }
    for definition in &article.definitions {
        known.entry(definition.term.clone()).or_insert_with(|| definition.text.clone());
    }
    known
}

/// The words before a bracket that an abbreviation stands for (Schwartz and Hearst 2003): its letters in order, the first at
/// the beginning of a word.
fn long_form<'t>(before: &'t str, short: &str) -> Option<&'t str> {
    let before = last_bytes(before.trim_end(), MAX_LONG_FORM);
    let letters: Vec<char> = short.chars().filter(|c| c.is_alphanumeric()).flat_map(char::to_lowercase).collect();
    let most_words = (letters.len() + 5).min(letters.len() * 2);
    let words = words_of(before);
    let earliest = words.get(words.len().saturating_sub(most_words))?.start;
    let mut characters = before.char_indices().rev().take_while(|(at, _)| *at >= earliest).peekable();
    let mut start = None;
    for (position, letter) in letters.iter().enumerate().rev() {
        loop {
            let (at, character) = characters.next()?;
            let opens_word = characters.peek().is_none_or(|(_, previous)| !previous.is_alphanumeric());
            let is_function_word = || {
                let word = before.get(at..).and_then(|rest| rest.split(' ').next()).unwrap_or_default();
                matches!(
                    word.to_lowercase().as_str(),
                    "and" | "of" | "the" | "in" | "or" | "for" | "with" | "a" | "an" | "as" | "to"
                )
            };
            let is_letter = character.to_lowercase().eq(std::iter::once(*letter));
            if is_letter && (position > 0 || opens_word && !is_function_word()) {
                start = Some(at);
                break;
            }
        }
    }
    before.get(start?..).filter(|long| long.len() > short.len() && !long.contains(['.', ';', '(']))
}

/// Reads phrases by the rules, knowing the abbreviations of an article.
struct Reader<'r> {
    rules: &'r DiagnosisRules,
    abbreviations: BTreeMap<String, String>,
}

impl Reader<'_> {
    fn keys(&self, phrase: &str) -> Option<Keys> {
        const PREPOSITIONS: [&str; 11] =
            ["of", "in", "on", "with", "due", "secondary", "caused", "to", "from", "associated", "by"];
        let mut set = BTreeSet::new();
        let mut head = None;
        let mut is_before_preposition = true;
        for range in words_of(phrase) {
            let Some(word) = phrase.get(range) else { continue };
            let lower = word.to_lowercase();
            if PREPOSITIONS.contains(&lower.as_str()) && head.is_some() {
                is_before_preposition = false;
            }
            // "E." of "E. tarda" tells nothing, neither do adverbs.
            if self.rules.fillers.contains(&lower) || word.chars().count() < 2 || lower.ends_with("ly") {
                continue;
            }
            let long = self.abbreviations.get(word).or_else(|| self.abbreviations.get(word.trim_end_matches('s')));
            let keys: Vec<String> = match long {
                Some(long) => words_of(long)
                    .into_iter()
                    .filter_map(|range| long.get(range))
                    .filter(|word| word.chars().count() > 1 && !self.rules.fillers.contains(&word.to_lowercase()))
                    .map(key_of)
                    .collect(),
                None => vec![key_of(word)],
            };
            if is_before_preposition {
                head = keys.last().cloned().or(head);
            }
            set.extend(keys);
        }
        Some(Keys { set, head: head? })
    }

    fn is_general(&self, key: &str) -> bool {
        self.rules.general.contains(key) || key.chars().all(|c| c.is_ascii_digit())
    }

    /// Whether the one holds all words of the other, and these say something.
    fn is_part(&self, smaller: &Keys, larger: &Keys) -> bool {
        smaller.set.is_subset(&larger.set) && smaller.set.iter().any(|key| !self.is_general(key))
    }

    /// Whether two phrases can name the same: one is a part of the other, or they share a head that says something, or a
    /// general head and another word that says something.
    fn is_related(&self, one: &Keys, other: &Keys) -> bool {
        if self.is_part(one, other) || self.is_part(other, one) {
            return true;
        }
        if one.head != other.head {
            return false;
        }
        !self.is_general(&one.head)
            || one.set.intersection(&other.set).any(|key| *key != one.head && !self.is_general(key))
    }

    /// Whether two phrases name the same, but for words that are general.
    fn are_same(&self, one: &Keys, other: &Keys) -> bool {
        one.head == other.head && (self.is_part(one, other) || self.is_part(other, one)) || one.set == other.set
    }

    // -------------------------------------------------------------------------------------------- the title

    fn in_title(&self, article: &Article) -> Vec<Candidate> {
        let Some(title) = article.title.as_deref() else { return Vec::new() };
        let mut pieces: Vec<Range<usize>> = Vec::new();
        let mut from = 0;
        for divider in DIVIDER.find_iter(title) {
            pieces.push(from..divider.start());
            from = divider.end();
        }
        pieces.push(from..title.len());
        let mut found: Vec<Candidate> = Vec::new();
        for piece in pieces {
            // "X: a rare presentation of Y": what follows explains the name, it is none.
            let is_first = found.is_empty();
            let mut candidates = self.in_piece(title, piece, is_first);
            found.append(&mut candidates);
        }
        found
    }

    fn in_piece(&self, title: &str, piece: Range<usize>, is_first: bool) -> Vec<Candidate> {
        let Some(mut range) = trimmed(title, piece) else { return Vec::new() };
        let words = |range: &Range<usize>| title.get(range.clone()).unwrap_or_default();
        let begin = range.start;
        // Leaders can stand one behind the other: "A rare case of an unusual presentation of".
        for _ in 0..3 {
            if let Some(leader) = self.rules.leaders.find(words(&range)) {
                if !is_first {
                    return Vec::new();
                }
                range.start += leader.end();
            }
        }
        if self.rules.no_diagnosis.is_match(words(&range)) {
            return Vec::new();
        }
        let mut found = Vec::new();
        let whole = words(&range).to_owned();
        let padded = format!("{whole} ");
        let cut = self.rules.cuts.find(&padded).map_or(whole.len(), |cut| cut.start());
        if self.rules.dropped.is_match(title.get(begin..range.start + cut).unwrap_or_default()) {
            return Vec::new();
        }
        let cause = self.rules.causes.find(&whole).filter(|cause| cause.start() <= cut + 1);
        let end = cause.map_or(cut, |cause| cause.start().min(cut));
        self.push_title(title, range.start..range.start + end, "title", false, &mut found);
        if let Some(cause) = cause {
            let behind = whole.get(cause.end()..).unwrap_or_default();
            let behind_padded = format!("{behind} ");
            let cut = self.rules.cuts.find(&behind_padded).map_or(behind.len(), |cut| cut.start().min(behind.len()));
            let start = range.start + cause.end();
            let is_named = cause.as_str().to_lowercase().contains("associated");
            if !is_named {
                self.push_title(title, start..start + cut, "title_cause", true, &mut found);
            }
        }
        found
    }

    fn push_title(&self, title: &str, range: Range<usize>, rule: &str, is_cause: bool, found: &mut Vec<Candidate>) {
        let Some(range) = trimmed(title, range) else { return };
        let Some(words) = title.get(range.clone()) else { return };
        // "X with Y": the complication is not the name.
        let words = match words.find(" with ") {
            Some(at) if self.is_disease(words.get(..at).unwrap_or_default()) => words.get(..at).unwrap_or_default(),
            _ => words,
        };
        // Two diseases of one title are two names; each can be the one that the text decides for.
        let start = range.start;
        let whole = start..start + words.len();
        let ranges = match words.split_once(" and ") {
            Some((first, second)) if self.is_disease(first) && self.is_disease(second) => {
                vec![start..start + first.len(), whole.end - second.len()..whole.end]
            }
            _ => std::iter::once(whole).collect(),
        };
        for range in ranges {
            let Some(range) = trimmed(title, range) else { continue };
            let Some(words) = title.get(range.clone()) else { continue };
            if !self.is_disease(words) || words.split_whitespace().count() > MAX_WORDS {
                continue;
            }
            if let Some(keys) = self.keys(words) {
                found.push(Candidate {
                    place: Located { text_id: "title".to_owned(), start: range.start, end: range.end },
                    words: words.to_owned(),
                    keys,
                    other_name: None,
                    strength: Strength::Title,
                    rule: rule.to_owned(),
                    is_cause,
                });
            }
        }
    }

    fn is_disease(&self, words: &str) -> bool {
        let names = self.rules.disease.is_match(words)
            || words_of(words)
                .into_iter()
                .filter_map(|range| words.get(range))
                .any(|word| self.abbreviations.get(word).is_some_and(|long| self.rules.disease.is_match(long)));
        names && !self.is_symptom(words)
    }

    /// Whether all members of a list are complaints or signs.
    fn is_symptom(&self, words: &str) -> bool {
        words.split(" and ").flat_map(|part| part.split(" with ")).all(|part| self.rules.symptom.is_match(part.trim()))
    }

    // -------------------------------------------------------------------------------------------- texts

    /// Finds the statements of a text, and the diseases that it excludes.
    fn in_text(&self, text: &Text<'_>, titles: &[Keys], candidates: &mut Vec<Candidate>, excluded: &mut Vec<Keys>) {
        if text.kind == TextKind::Caption {
            return;
        }
        for range in sentences(text.text) {
            let Some(sentence) = text.text.get(range.clone()) else { continue };
            for lead in &self.rules.excluded {
                for found in lead.find_iter(sentence) {
                    let phrase = self.phrase(sentence, found.end());
                    excluded.extend(phrase.and_then(|phrase| self.keys(sentence.get(phrase)?)));
                }
            }
            let is_foreign = self.rules.literature.is_match(sentence);
            let is_own = self.rules.own.is_match(sentence);
            let is_skipped = match text.kind {
                TextKind::Introduction => is_foreign || !is_own,
                TextKind::Discussion => is_foreign,
                TextKind::Abstract => is_foreign && !is_own,
                TextKind::Case | TextKind::Caption => false,
            };
            if is_skipped {
                continue;
            }
            for rule in &self.rules.statements {
                for found in rule.lead.find_iter(sentence) {
                    let Some(phrase) = self.phrase(sentence, found.end()) else { continue };
                    let Some(words) = sentence.get(phrase.clone()) else { continue };
                    let Some(keys) = self.keys(words) else { continue };
                    // A part of the title's name is a name, whatever its words.
                    let is_named = || titles.iter().any(|title| keys.set.len() > 1 && self.is_part(&keys, title));
                    if self.is_symptom(words) || rule.needs_disease && !self.is_disease(words) && !is_named() {
                        continue;
                    }
                    let behind = window(sentence, phrase.end, MAX_FOLLOW);
                    if text.kind == TextKind::Discussion
                        && !is_own
                        && (rule.strength < Strength::Made
                            || rule.follow.is_none() && !self.rules.past.is_match(found.as_str()))
                    {
                        continue;
                    }
                    if rule.follow.as_ref().is_some_and(|follow| !follow.is_match(behind)) {
                        continue;
                    }
                    if keys.set.iter().all(|key| self.is_general(key)) && rule.strength < Strength::Final {
                        continue;
                    }
                    let mut strength = rule.strength;
                    if self.is_doubted(sentence, found.range(), &phrase, strength) {
                        // "Provisionally diagnosed with X" in a report whose title says X.
                        let is_provisional =
                            PROVISIONAL.is_match(found.as_str()) && titles.iter().any(|title| title.set == keys.set);
                        if !is_provisional {
                            continue;
                        }
                        strength = Strength::Weak;
                    }
                    let other_name = self.name_in_brackets(sentence, phrase.end);
                    let mut keys = keys;
                    if let Some(other) = other_name.as_deref().and_then(|name| self.keys(name)) {
                        keys.set.extend(other.set);
                    }
                    candidates.push(Candidate {
                        place: Located {
                            text_id: text.id.clone(),
                            start: range.start + phrase.start,
                            end: range.start + phrase.end,
                        },
                        words: words.to_owned(),
                        keys,
                        other_name,
                        strength,
                        rule: rule.id.clone(),
                        is_cause: false,
                    });
                }
            }
        }
    }

    /// A name of a disease in brackets directly behind a phrase; abbreviations are none.
    fn name_in_brackets(&self, sentence: &str, end: usize) -> Option<String> {
        let inside = sentence.get(end..)?.strip_prefix(" (")?;
        let inside = inside.get(..inside.find(')')?)?.trim();
        let is_name = words_of(inside).len() <= MAX_KEYS && !inside.contains([';', ',', ':']) && !self.is_short(inside);
        (is_name && self.is_disease(inside)).then(|| inside.to_owned())
    }

    /// Whether the clause around a statement doubts it, puts it into the past, or gives it to somebody else.
    fn is_doubted(&self, sentence: &str, lead: Range<usize>, phrase: &Range<usize>, strength: Strength) -> bool {
        let before = sentence.get(..lead.start).unwrap_or_default();
        let clause = CLAUSE.find_iter(before).last().map_or(0, |divider| divider.start());
        let from = if strength == Strength::Reported { lead.start } else { clause };
        let in_front = sentence.get(from..phrase.start).unwrap_or_default();
        // A lead that says "final" or "later" overrules what came first; one that reports speaks of "first cases".
        let is_doubted = match strength {
            Strength::Final => false,
            Strength::Reported => {
                in_front.to_lowercase().contains("suspect")
                    || self.rules.hedge.is_match(before) && before.contains(" not ")
            }
            _ => self.rules.hedge.is_match(in_front),
        };
        is_doubted || self.rules.hedge_behind.is_match(window(sentence, phrase.end, MAX_FOLLOW))
    }

    /// The name that begins at `from`, in bytes of the sentence: up to punctuation or a word that ends names.
    fn phrase(&self, sentence: &str, from: usize) -> Option<Range<usize>> {
        let words = words_of(sentence.get(from..)?);
        let mut start = None;
        let mut end = from;
        let mut n_words = 0;
        let mut words = words.into_iter().map(|word| word.start + from..word.end + from).peekable();
        while let Some(word) = words.next() {
            let text = sentence.get(word.clone())?;
            let lower = text.to_lowercase();
            let between = sentence.get(end..word.start)?;
            let is_bracketed = start.is_some() && between == " (" && self.is_inserted(sentence, &word);
            if start.is_some() && !is_bracketed && ends_name(between, sentence.get(..end)?)
                || start.is_none() && between.contains(['(', '[', ';', ':'])
            {
                break;
            }
            let next = words.peek().and_then(|next| sentence.get(next.clone())).unwrap_or_default().to_lowercase();
            let is_end = match lower.as_str() {
                "and" | "or" | "with" | "by" | "as" if start.is_none() => return None,
                "and" | "or" => self.opens_clause(&next),
                "with" => matches!(
                    next.as_str(),
                    "a" | "an" | "the" | "no" | "normal" | "subsequent" | "high" | "low" | "his" | "her"
                ),
                "in" => next != "situ",
                "to" => !matches!(last_word(sentence, end), "due" | "secondary"),
                "due" | "secondary" => next != "to",
                // "thyroiditis-associated" is one word.
                _ if between.ends_with('-') => false,
                _ if self.rules.stops.contains(&lower) => true,
                // "a myxoma supplied by": a participle behind a disease is no part of its name.
                _ if matches!(last_word(sentence, end), "to" | "of" | "and" | "with" | "by") => false,
                _ => {
                    lower.ends_with("ed")
                        && start.is_some_and(|start| sentence.get(start..end).is_some_and(|name| self.is_disease(name)))
                }
            };
            if is_end {
                break;
            }
            if start.is_none() {
                if matches!(
                    lower.as_str(),
                    "a" | "an"
                        | "the"
                        | "having"
                        | "case"
                        | "form"
                        | "of"
                        | "most"
                        | "likely"
                        | "probable"
                        | "be"
                        | "being"
                        | "complete"
                        | "incomplete"
                ) {
                    end = word.end;
                    continue;
                }
                start = Some(word.start);
            }
            n_words += 1;
            if n_words > MAX_WORDS {
                return None;
            }
            end = if is_bracketed { word.end + 1 } else { word.end };
        }
        let start = start?;
        let range = self.without_front(sentence, self.without_tail(sentence, start..end)?)?;
        let words = sentence.get(range.clone())?;
        let tells = words.chars().filter(|c| c.is_alphabetic()).count() >= 3
            || words.chars().filter(|c| c.is_uppercase()).count() >= 2;
        (tells && !self.rules.anaphora.is_match(words)).then_some(range)
    }

    /// Whether a word is an abbreviation in brackets, behind which the name goes on: "(CS) due to".
    fn is_inserted(&self, sentence: &str, word: &Range<usize>) -> bool {
        const GOES_ON: [&str; 4] = [") due to ", ") secondary to ", ") caused by ", ") of the "];
        let is_known = sentence.get(word.clone()).is_some_and(|word| self.abbreviations.contains_key(word));
        is_known && sentence.get(word.end..).is_some_and(|rest| GOES_ON.iter().any(|words| rest.starts_with(words)))
    }

    /// Without "a rare case of" and words that add nothing; of a complaint due to a disease, the disease.
    fn without_front(&self, sentence: &str, mut range: Range<usize>) -> Option<Range<usize>> {
        if let Some(front) = CASE_OF.find(sentence.get(range.clone())?) {
            range.start += front.end();
        }
        let words = sentence.get(range.clone())?;
        if let Some(cause) = DUE_TO.find(words)
            && !words.get(..cause.start()).is_some_and(|complaint| self.is_disease(complaint))
            && words.get(cause.end()..).is_some_and(|disease| self.is_disease(disease))
        {
            range.start += cause.end();
        }
        let mut words = words_of(sentence.get(range.clone())?).into_iter();
        words.find_map(|word| {
            let at = range.start + word.start;
            let lower = sentence.get(at..range.start + word.end)?.to_lowercase();
            let is_adverb = lower.ends_with("ly") && !self.rules.disease.is_match(&lower);
            let adds = !is_adverb && !self.rules.fillers.contains(&lower);
            adds.then_some(at..range.end)
        })
    }

    /// Whether what follows "and" is no part of the name.
    fn opens_clause(&self, next: &str) -> bool {
        self.rules.stops.contains(next)
            || matches!(
                next,
                "" | "the"
                    | "a"
                    | "an"
                    | "to"
                    | "i"
                    | "no"
                    | "treatment"
                    | "therapy"
                    | "antibiotic"
                    | "surgery"
                    | "other"
            )
            || next.ends_with("ed")
                && !matches!(next, "disseminated" | "mixed" | "infected" | "ruptured" | "complicated" | "impacted")
    }

    /// Without words at the end that no name ends in.
    fn without_tail(&self, sentence: &str, mut range: Range<usize>) -> Option<Range<usize>> {
        loop {
            let words = sentence.get(range.clone())?;
            let last = words_of(words).pop()?;
            let word = words.get(last.clone())?.to_lowercase();
            let is_loose = matches!(
                word.as_str(),
                "and" | "or" | "of" | "with" | "to" | "due" | "secondary" | "the" | "a" | "an" | "in"
            ) || word.ends_with("ly") && word.len() > 5 && !self.rules.disease.is_match(&word);
            if !is_loose {
                range.end = range.start + last.end;
                return Some(range);
            }
            range.end = range.start + last.start;
            if range.is_empty() {
                return None;
            }
        }
    }

    /// Adds the sentences about the patient, and captions, that hold all words of the title's name.
    fn mentions_of_title(&self, text: &Text<'_>, candidates: &mut Vec<Candidate>) {
        let titles: Vec<(Keys, bool)> = candidates
            .iter()
            .filter(|candidate| candidate.strength == Strength::Title)
            .map(|candidate| (candidate.keys.clone(), candidate.is_cause))
            .collect();
        for range in sentences(text.text) {
            let Some(sentence) = text.text.get(range.clone()) else { continue };
            let is_own = self.rules.own.is_match(sentence);
            let is_foreign = self.rules.literature.is_match(sentence);
            let counts = match text.kind {
                TextKind::Case => !is_foreign,
                TextKind::Caption => true,
                TextKind::Abstract | TextKind::Introduction | TextKind::Discussion => is_own && !is_foreign,
            };
            if !counts {
                continue;
            }
            for (keys, is_cause) in &titles {
                if let Some(found) = self.find_keys(sentence, keys) {
                    // What is denied or doubted shortly before does not count, be it in this clause or not.
                    let before = last_bytes(sentence.get(..found.start).unwrap_or_default(), MAX_HEDGE);
                    let behind = window(sentence, found.end, MAX_FOLLOW);
                    if self.rules.hedge.is_match(before) || self.rules.hedge_behind.is_match(behind) {
                        continue;
                    }
                    candidates.push(Candidate {
                        place: Located {
                            text_id: text.id.clone(),
                            start: range.start + found.start,
                            end: range.start + found.end,
                        },
                        words: sentence.get(found).unwrap_or_default().to_owned(),
                        keys: keys.clone(),
                        other_name: None,
                        strength: Strength::Mentioned,
                        rule: "mention".to_owned(),
                        is_cause: *is_cause,
                    });
                }
            }
        }
    }

    /// The shortest stretch of a sentence, of few words more than the name has, that holds all its keys.
    fn find_keys(&self, sentence: &str, keys: &Keys) -> Option<Range<usize>> {
        let words = words_of(sentence);
        let told: Vec<Vec<String>> = words
            .iter()
            .map(|range| {
                let word = sentence.get(range.clone()).unwrap_or_default();
                match self.abbreviations.get(word) {
                    Some(long) => words_of(long).into_iter().filter_map(|range| long.get(range)).map(key_of).collect(),
                    None => vec![key_of(word)],
                }
            })
            .collect();
        let most = keys.set.len() + 3;
        let mut best: Option<Range<usize>> = None;
        for start in 0..told.len() {
            if !told.get(start)?.iter().any(|key| keys.set.contains(key)) {
                continue;
            }
            let mut missing = keys.set.clone();
            for (at, word) in told.iter().enumerate().skip(start).take(most) {
                for key in word {
                    missing.remove(key);
                }
                if missing.is_empty() {
                    let range = words.get(start)?.start..words.get(at)?.end;
                    if best.as_ref().is_none_or(|best| range.len() < best.len()) {
                        best = Some(range);
                    }
                    break;
                }
            }
        }
        best
    }

    // -------------------------------------------------------------------------------------------- decision

    fn decide<'c>(
        &self,
        article: &Article,
        texts: &[Text<'_>],
        candidates: &'c [Candidate],
    ) -> Result<FinalDiagnosis, NoDiagnosis> {
        let unclear = |detail: String| NoDiagnosis { reason: "diagnosis_unclear", detail };
        let keywords: Vec<Keys> = article.keywords.iter().filter_map(|keyword| self.keys(&keyword.text)).collect();
        let scored: Vec<(u32, usize, &'c Candidate)> = candidates
            .iter()
            .filter(|candidate| candidate.strength >= Strength::Reported)
            .map(|candidate| {
                let (score, n_places) = self.score(candidate, candidates, &keywords);
                (score, n_places, candidate)
            })
            .collect();
        let highest = |entries: &mut dyn Iterator<Item = &(u32, usize, &'c Candidate)>| {
            let order =
                |entry: &(u32, usize, &Candidate)| (entry.0, entry.2.strength, entry.2.keys.set.len().min(MAX_KEYS));
            // The first of equals.
            entries.max_by(|one, other| order(one).cmp(&order(other)).then(std::cmp::Ordering::Greater)).copied()
        };
        let Some(mut best) = highest(&mut scored.iter()) else {
            return Err(unclear("only weak statements".to_owned()));
        };
        // What the title does not name needs more than what it names.
        let titles: Vec<&Candidate> =
            candidates.iter().filter(|candidate| candidate.strength == Strength::Title).collect();
        let is_named = |candidate: &Candidate| titles.iter().any(|title| self.is_related(&title.keys, &candidate.keys));
        if !titles.is_empty()
            && !is_named(best.2)
            && best.2.strength < Strength::Final
            && best.0 < MIN_SCORE_AGAINST_TITLE
        {
            match highest(&mut scored.iter().filter(|entry| is_named(entry.2))) {
                Some(named) if named.0 >= MIN_SCORE && named.1 >= 2 => best = named,
                _ => return Err(unclear(format!("{:?} is not what the title names", best.2.words))),
            }
        }
        let (score, n_places, best) = best;
        if n_places < 2 || score < MIN_SCORE {
            return Err(unclear(format!("one place alone: {:?}", best.words)));
        }
        let rival = scored.iter().find(|(other, n_places, candidate)| {
            let is_other = !self.is_related(&best.keys, &candidate.keys);
            is_other
                && *n_places >= 2
                && *other + 1 >= score
                && candidate.strength >= Strength::Made
                && best.strength < Strength::Final
        });
        if let Some((_, _, rival)) = rival
            && !is_named(best)
        {
            return Err(unclear(format!("{:?} or {:?}", best.words, rival.words)));
        }
        let members: Vec<&Candidate> =
            candidates.iter().filter(|candidate| self.is_related(&candidate.keys, &best.keys)).collect();
        let in_title: BTreeSet<String> =
            ordered_keys(article.title.as_deref().unwrap_or_default()).into_iter().collect();
        let causes: Vec<&Candidate> = candidates.iter().filter(|candidate| candidate.is_cause).collect();
        let chosen = self.chosen(best, &members, &causes, &in_title, &self.keys_of_texts(article, texts));
        // What title and conclusions name gives the diagnosis away, even if it names another part of it.
        let told: Vec<&Candidate> = candidates
            .iter()
            .filter(|candidate| {
                let is_framed =
                    texts.iter().any(|text| text.id == candidate.place.text_id && text.kind != TextKind::Case);
                match candidate.strength {
                    Strength::Title | Strength::Final => true,
                    Strength::Made => is_framed,
                    _ => false,
                }
            })
            .collect();
        Ok(self.described(article, texts, chosen, &members, &told))
    }

    /// The weight of a candidate with those that support it, in halves, and in how many places they stand.
    fn score(&self, seed: &Candidate, candidates: &[Candidate], keywords: &[Keys]) -> (u32, usize) {
        let mut by_place: BTreeMap<&str, u32> = BTreeMap::new();
        if keywords.iter().any(|keyword| keyword.set == seed.keys.set) {
            by_place.insert("keywords", 3);
        }
        for candidate in candidates.iter().filter(|candidate| self.is_related(&candidate.keys, &seed.keys)) {
            let weight = match candidate.strength {
                Strength::Mentioned => 2,
                Strength::Weak => 3,
                Strength::Reported => 6,
                Strength::Title => 6,
                Strength::Made => 8,
                Strength::Final => 12,
            };
            let known = by_place.entry(candidate.place.text_id.as_str()).or_default();
            *known = weight.max(*known);
        }
        // Many mentions of a word are no proof.
        let mut weights: Vec<u32> = by_place.values().copied().collect();
        weights.sort_unstable_by(|one, other| other.cmp(one));
        (weights.iter().take(4).sum(), by_place.len())
    }

    /// Of the phrases that name the diagnosis, the one to tell: the most exact that is not too long; what is stated as final
    /// before what the title says.
    fn chosen<'c>(
        &self,
        best: &'c Candidate,
        members: &[&'c Candidate],
        causes: &[&Candidate],
        in_title: &BTreeSet<String>,
        n_texts: &BTreeMap<String, u32>,
    ) -> &'c Candidate {
        // What the title says in other words, and the text says too, is more than a statement of the text.
        let is_told = |title: &Candidate| {
            members.iter().any(|other| other.place.text_id != "title" && other.keys.set == title.keys.set)
        };
        let title = members.iter().find(|member| {
            member.strength == Strength::Title
                && member.keys.set.len() <= MAX_KEYS
                && member.is_cause == best.is_cause
                && is_told(member)
        });
        let best = match title {
            Some(title)
                if best.strength < Strength::Final && !best.is_cause && !self.is_part(&title.keys, &best.keys) =>
            {
                title
            }
            _ => best,
        };
        let plain: Vec<&&Candidate> = members
            .iter()
            .filter(|member| member.strength >= Strength::Reported && member.keys.set.len() <= MAX_KEYS)
            .filter(|member| self.is_part(&best.keys, &member.keys) || self.is_part(&member.keys, &best.keys))
            .collect();
        let told_elsewhere = |member: &Candidate| {
            member.keys.set.iter().all(|key| n_texts.get(key).is_some_and(|n_texts| *n_texts >= 2))
        };
        let titles: Vec<&&Candidate> = members.iter().filter(|member| member.strength == Strength::Title).collect();
        // "We report" is told loosely: beside a title it counts only where it adds what the title says too, or the cause.
        let adds_words = |member: &Candidate| {
            titles.iter().any(|title| title.keys.set.is_subset(&member.keys.set))
                && member.keys.set.iter().all(|key| in_title.contains(key))
        };
        let adds_cause = |member: &Candidate| {
            DUE_TO.is_match(&member.words)
                && causes
                    .iter()
                    .any(|cause| cause.keys.set.intersection(&member.keys.set).any(|key| !self.is_general(key)))
        };
        let is_plain = |member: &Candidate| {
            member.strength > Strength::Reported || titles.is_empty() || adds_words(member) || adds_cause(member)
        };
        let order = |member: &Candidate| {
            let is_final = member.strength == Strength::Final && member.keys.set.len() > 1;
            (is_final, is_plain(member), told_elsewhere(member), member.keys.set.len(), member.strength)
        };
        plain.into_iter().fold(best, |chosen, member| if order(member) > order(chosen) { member } else { chosen })
    }

    /// In how many texts, the title among them, each word stands.
    fn keys_of_texts(&self, article: &Article, texts: &[Text<'_>]) -> BTreeMap<String, u32> {
        let mut n_texts: BTreeMap<String, u32> = BTreeMap::new();
        for text in article.title.as_deref().into_iter().chain(texts.iter().map(|text| text.text)) {
            let mut keys = BTreeSet::new();
            for range in words_of(text) {
                let Some(word) = text.get(range) else { continue };
                keys.insert(key_of(word));
                if let Some(long) = self.abbreviations.get(word) {
                    keys.extend(words_of(long).into_iter().filter_map(|range| long.get(range)).map(key_of));
                }
            }
            for key in keys {
                *n_texts.entry(key).or_default() += 1;
            }
        }
        n_texts
    }

    fn described(
        &self,
        article: &Article,
        texts: &[Text<'_>],
        chosen: &Candidate,
        members: &[&Candidate],
        told: &[&Candidate],
    ) -> FinalDiagnosis {
        let mut quote = chosen.place.clone();
        let mut diagnosis = chosen.words.clone();
        if chosen.strength == Strength::Title
            && let Some(same) = members.iter().find(|member| {
                member.place.text_id != "title"
                    && !self.is_short(&member.words)
                    && ordered_keys(&member.words) == ordered_keys(&chosen.words)
            })
        {
            quote = same.place.clone();
            diagnosis = same.words.clone();
        }
        // A name that is an abbreviation alone is told as what it stands for, where the article says so.
        if self.is_short(&diagnosis)
            && let Some(long) = self.abbreviations.get(diagnosis.trim())
            && let Some(place) = texts.iter().find_map(|text| {
                let start = text.text.find(long.as_str())?;
                Some(Located { text_id: text.id.clone(), start, end: start + long.len() })
            })
        {
            diagnosis.clone_from(long);
            quote = place;
        }
        let mut support: Vec<Located> = members.iter().map(|member| member.place.clone()).collect();
        support.push(quote.clone());
        let order: BTreeMap<&str, usize> =
            std::iter::once("title").chain(texts.iter().map(|text| text.id.as_str())).zip(0..).collect();
        support.sort_by_key(|place| (order.get(place.text_id.as_str()).copied(), place.start, place.end));
        support.dedup();
        let synonyms = self.synonyms(article, &diagnosis, &chosen.keys, members, told);
        FinalDiagnosis { diagnosis, quote, support, synonyms, rule: chosen.rule.clone() }
    }

    fn is_short(&self, words: &str) -> bool {
        self.abbreviations.contains_key(words.trim())
    }

    /// Everything else that names the diagnosis in the article.
    fn synonyms(
        &self,
        article: &Article,
        diagnosis: &str,
        keys: &Keys,
        members: &[&Candidate],
        told: &[&Candidate],
    ) -> Vec<String> {
        let mut names: BTreeMap<String, String> = BTreeMap::new();
        let mut add = |name: &str| {
            let name = name.trim_matches(|c: char| !c.is_alphanumeric() && c != ')');
            let lower = name.to_lowercase();
            if !name.is_empty() && lower != diagnosis.to_lowercase() {
                names.entry(lower).or_insert_with(|| name.to_owned());
            }
        };
        for member in members.iter().chain(told).filter(|member| member.keys.set.len() <= MAX_KEYS) {
            add(&member.words);
            add(member.other_name.as_deref().unwrap_or_default());
        }
        for (short, long) in &self.abbreviations {
            if let Some(long_keys) = self.keys(long)
                && (self.are_same(&long_keys, keys) || self.is_part(&long_keys, keys) && self.is_disease(long))
            {
                add(short);
                add(long);
            }
        }
        if !self.is_general(&keys.head) && keys.head.len() > 4 && self.rules.disease.is_match(&keys.head) {
            add(&keys.head);
        }
        let texts = || {
            let abstracts =
                article.abstracts.iter().flat_map(|one| &one.paragraphs).map(|paragraph| &paragraph.passage);
            let captions = article.figures.iter().flat_map(|figure| &figure.caption);
            let body = article.paragraphs.iter().map(|paragraph| &paragraph.passage);
            article
                .title
                .as_deref()
                .into_iter()
                .chain(abstracts.chain(body).chain(captions).map(|passage| passage.text.as_str()))
        };
        let stems: Vec<String> =
            keys.set.iter().filter(|key| !self.is_general(key)).filter_map(|key| stem_of(key)).collect();
        let organisms: Vec<(String, String)> = BINOMIAL
            .captures_iter(diagnosis)
            .filter_map(|captures| {
                Some((captures.name("genus")?.as_str().to_owned(), captures.name("species")?.as_str().to_owned()))
            })
            .filter(|(_, species)| !self.is_general(&key_of(species)) && !self.rules.disease.is_match(species))
            .collect();
        for text in texts() {
            for range in words_of(text) {
                let Some(word) = text.get(range.clone()) else { continue };
                let lower = word.to_lowercase();
                if stems.iter().any(|stem| is_form_of(&lower, stem)) {
                    add(&lower);
                }
                for (genus, species) in &organisms {
                    let initial = genus.chars().next().map(|initial| format!("{initial}. {species}"));
                    if let Some(short) = initial
                        && lower == *species
                        && text.get(..range.end).is_some_and(|before| before.ends_with(&short))
                    {
                        add(&short);
                        add(&format!("{genus} {species}"));
                    }
                }
            }
        }
        names.into_values().collect()
    }
}

/// Whether what stands between two words of a sentence ends a name. A dot behind a single capital letter does not.
fn ends_name(between: &str, before: &str) -> bool {
    if between.trim_start().starts_with('.') {
        let initial = before.chars().next_back().is_some_and(char::is_uppercase)
            && before.chars().rev().nth(1).is_none_or(|c| !c.is_alphanumeric());
        return !initial;
    }
    let dash = ['–', '—', '-'].iter().any(|dash| between.contains(*dash) && between.contains(' '));
    dash || between.contains([',', ';', ':', '(', ')', '[', ']', '"', '“', '”', '—', '?', '!', '/', '='])
}

/// The word in front of a place.
fn last_word(text: &str, end: usize) -> &str {
    text.get(..end).and_then(|before| before.rsplit(' ').next()).unwrap_or_default()
}

/// A range without white space and punctuation at its ends; none if nothing is left.
fn trimmed(text: &str, range: Range<usize>) -> Option<Range<usize>> {
    let loose = |c: char| c.is_whitespace() || matches!(c, ',' | ';' | ':' | '.' | '-' | '–' | '—' | '"' | '“' | '”');
    let words = text.get(range.clone())?;
    let without = words.trim_start_matches(loose);
    let start = range.start + (words.len() - without.len());
    let end = start + without.trim_end_matches(loose).len();
    (start < end).then_some(start..end)
}

/// The last bytes of a text, at most `most`.
fn last_bytes(text: &str, most: usize) -> &str {
    let from = text.len().saturating_sub(most);
    (from..=text.len()).find_map(|from| text.get(from..)).unwrap_or_default()
}

/// At most `most` bytes of a text from `from` on.
fn window(text: &str, from: usize, most: usize) -> &str {
    let rest = text.get(from..).unwrap_or_default();
    let end = (0..=most.min(rest.len())).rev().find(|&end| rest.is_char_boundary(end)).unwrap_or(0);
    rest.get(..end).unwrap_or_default()
}

/// Endings of names of diseases and of their adjectives, the longest first.
const ENDINGS: [&str; 30] = [
    "omatosis", "omatous", "iasis", "aemia", "aemic", "omata", "plasia", "plastic", "osis", "oses", "otic", "itis",
    "itic", "iatic", "emia", "emic", "pathy", "pathic", "uria", "uric", "omas", "oma", "ous", "ism", "oid", "ar", "ic",
    "al", "a", "i",
];

/// What the forms of a name have in common; none for words that are no names of diseases.
fn stem_of(key: &str) -> Option<String> {
    const NAMES: [&str; 14] = [
        "omatosis", "omatous", "iasis", "emia", "plasia", "osis", "otic", "itis", "itic", "pathy", "uria", "oma",
        "ism", "ous",
    ];
    // Of adjectives in "ous" those of growths and granules are of diseases: "tuberculous", not "cutaneous".
    if key.ends_with("ous") && !key.ends_with("culous") && !key.ends_with("matous") {
        return None;
    }
    let ending = NAMES.iter().find(|ending| key.ends_with(**ending))?;
    let stem = key.strip_suffix(ending)?;
    (stem.chars().count() >= 5).then(|| stem.to_owned())
}

/// Whether a word in lower case is a form of a stem.
fn is_form_of(word: &str, stem: &str) -> bool {
    let folded = word.replace("ae", "e").replace("oe", "e");
    folded.strip_prefix(stem).is_some_and(|ending| ENDINGS.contains(&ending))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::record::article::{Abstract, AbstractParagraph, AbstractState, Paragraph};
    use crate::source::jats::{Limits, read};
    use crate::staging::{sections::roles, series::series};
    use expect_test::expect;
    use proptest::prelude::*;
    use std::fmt::Write as _;
    use std::sync::LazyLock;

    static RULES: LazyLock<CaseReportRules> = LazyLock::new(|| {
        let file = "pipelines/rules/case_reports.toml";
        CaseReportRules::parse(file, include_str!("../../pipelines/rules/case_reports.toml")).unwrap()
    });

    fn article(title: &str, summary: &str, case: &str, discussion: &str) -> Article {
        let xml = format!(
            "<article article-type=\"case-report\"><front><article-meta><title-group><article-title>{title}</article-title>\
             </title-group><abstract><p>{summary}</p></abstract></article-meta></front><body><sec><title>Case</title>\
             <p>{case}</p></sec><sec><title>Discussion</title><p>{discussion}</p></sec></body></article>"
        );
        read(xml.as_bytes(), Limits::default()).unwrap()
    }

    fn told(article: &Article) -> String {
        match final_diagnosis(article, &roles(article), None, &RULES) {
            Ok(found) => {
                for place in found.support.iter().chain([&found.quote]) {
                    assert!(!text_of(article, &place.text_id).unwrap()[place.start..place.end].is_empty());
                }
                assert_eq!(
                    &text_of(article, &found.quote.text_id).unwrap()[found.quote.start..found.quote.end],
                    found.diagnosis
                );
                let places: Vec<&str> = found.support.iter().map(|place| place.text_id.as_str()).collect();
                format!("{} by {} from {}; also {:?}", found.diagnosis, found.rule, places.join(" "), found.synonyms)
            }
            Err(none) => format!("{}: {}", none.reason, none.detail),
        }
    }

    #[test]
    fn titles_give_names_in_their_usual_forms() {
        let titles = [
            "Granular myositis: a case report",
            "A Rare Case of Granular Myositis",
            "An unusual presentation of granular myositis in a gardener",
            "Granular myositis presenting as chest pain",
            "Granular myositis mimicking gout",
            "Granular myositis misdiagnosed as gout",
            "Chest pain as the first manifestation of granular myositis",
            "Chest pain caused by granular myositis",
            "Prolonged fever and cough: granular myositis in a traveller",
            "An unusual cause of chest pain: granular myositis",
            "First Case of Granular Myositis after a Fall",
            "Granular Myositis with Ulcer: Ultrasound Findings",
            "An unusual cause of chest pain",
        ];
        let all = titles.iter().fold(String::new(), |mut out, title| {
            let article =
                article(title, "A man had pain.", "He was diagnosed with granular myositis.", "Nothing more.");
            writeln!(out, "{title} -> {}", told(&article)).unwrap();
            out
        });
        expect![[r#"
            Granular myositis: a case report -> granular myositis by was_diagnosed from title p0; also ["myositis"]
            A Rare Case of Granular Myositis -> granular myositis by was_diagnosed from title p0; also ["myositis"]
            An unusual presentation of granular myositis in a gardener -> granular myositis by was_diagnosed from title p0; also ["myositis"]
            Granular myositis presenting as chest pain -> granular myositis by was_diagnosed from title p0; also ["myositis"]
            Granular myositis mimicking gout -> granular myositis by was_diagnosed from title p0; also ["myositis"]
            Granular myositis misdiagnosed as gout -> granular myositis by was_diagnosed from title p0; also ["myositis"]
            Chest pain as the first manifestation of granular myositis -> granular myositis by was_diagnosed from title p0; also ["myositis"]
            Chest pain caused by granular myositis -> granular myositis by was_diagnosed from title p0; also ["myositis"]
            Prolonged fever and cough: granular myositis in a traveller -> granular myositis by was_diagnosed from title p0; also ["myositis"]
            An unusual cause of chest pain: granular myositis -> granular myositis by was_diagnosed from title p0; also ["myositis"]
            First Case of Granular Myositis after a Fall -> granular myositis by was_diagnosed from title p0; also ["myositis"]
            Granular Myositis with Ulcer: Ultrasound Findings -> granular myositis by was_diagnosed from title p0; also ["myositis"]
            An unusual cause of chest pain -> diagnosis_unclear: one place alone: "granular myositis"
        "#]].assert_eq(&all);
    }

    #[test]
    fn what_is_doubted_past_excluded_or_of_others_is_no_diagnosis() {
        let cases = [
            "Granular myositis was suspected.",
            "Granular myositis was ruled out.",
            "He was initially diagnosed with granular myositis.",
            "He had been diagnosed with granular myositis two years ago.",
            "He had a history of granular myositis.",
            "A diagnosis of granular myositis was considered.",
            "A presumptive diagnosis of granular myositis was made.",
            "There was no evidence of granular myositis.",
            "His brother was diagnosed with granular myositis.",
            "The differential diagnosis included granular myositis.",
        ];
        for case in cases {
            let article = article("An unusual pain", case, case, &format!("Our patient: {case}"));
            let found = final_diagnosis(&article, &roles(&article), None, &RULES);
            assert!(found.is_err(), "{case}: {found:?}");
        }
        let literature =
            "Many patients were diagnosed with granular myositis [3]. Lin et al made a diagnosis of granular myositis.";
        assert!(
            final_diagnosis(
                &article("An unusual pain", "We studied pain.", "He had pain.", literature),
                &[SectionRole::Case, SectionRole::Discussion],
                None,
                &RULES
            )
            .is_err()
        );
    }

    #[test]
    fn one_place_is_not_enough_and_two_decide() {
        let once =
            article("A painful arm", "A man had pain.", "A diagnosis of granular myositis was made.", "Arms can hurt.");
        expect![[r#"diagnosis_unclear: one place alone: "granular myositis""#]].assert_eq(&told(&once));
        let twice = article(
            "A painful arm",
            "A man had pain. He was diagnosed with granular myositis (GRM).",
            "Gout was ruled out. The final diagnosis was granular myositis of the arm.",
            "Myositic pain is rare. In our patient, GRM was severe.",
        );
        expect![[r#"granular myositis of the arm by final_diagnosis from a0.0 p0; also ["granular myositis", "GRM", "myositis"]"#]].assert_eq(&told(&twice));
        let differing = article(
            "A painful arm",
            "He was diagnosed with granular myositis. He was diagnosed with septic bursitis.",
            "A diagnosis of granular myositis was made. A diagnosis of septic bursitis was made.",
            "Arms can hurt.",
        );
        expect![[r#"diagnosis_unclear: "granular myositis" or "septic bursitis""#]].assert_eq(&told(&differing));
    }

    #[test]
    fn a_later_diagnosis_stands_against_an_excluded_one() {
        let article = article(
            "Granular myositis mistaken for gout",
            "A man was diagnosed with gout. It turned out later that the patient had granular myositis.",
            "These findings ruled out gout. The diagnosis of granular myositis was confirmed by biopsy.",
            "Gout is common.",
        );
        expect![[r#"granular myositis by turned_out from title a0.0 p0; also ["myositis"]"#]]
            .assert_eq(&told(&article));
    }

    #[test]
    fn another_name_in_brackets_ties_places_together() {
        let article = article(
            "An unusual cause of chest pain",
            "A man had pain.",
            "The patient was diagnosed with spontaneous rupture of the spleen (Delarue syndrome).",
            "The clot confirmed the diagnosis of Delarue syndrome.",
        );
        expect![[r#"Delarue syndrome by led_to_the_diagnosis from p0 p1; also ["spontaneous rupture of the spleen"]"#]]
            .assert_eq(&told(&article));
    }

    #[test]
    fn each_patient_of_a_series_has_a_diagnosis_of_their_own() {
        let xml = "<article article-type=\"case-report\"><front><article-meta><title-group><article-title>Two painful arms\
            </article-title></title-group></article-meta></front><body><sec><title>Case 1</title><p>A 20-year-old man was diagnosed \
            with granular myositis.</p><p>The biopsy confirmed granular myositis.</p></sec><sec><title>Case 2</title><p>A \
            30-year-old woman was diagnosed with septic bursitis.</p><p>Culture confirmed septic bursitis.</p></sec></body></article>";
        let article = read(xml.as_bytes(), Limits::default()).unwrap();
        let roles = roles(&article);
        let series = series(&article, &roles);
        let found: Vec<String> = series
            .patients
            .iter()
            .map(|patient| final_diagnosis(&article, &roles, Some(patient), &RULES).unwrap().diagnosis)
            .collect();
        assert_eq!(found, ["granular myositis", "septic bursitis"]);
    }

    #[test]
    fn ids_name_texts() {
        let article = article("Title", "Summary.", "Case.", "Discussion.");
        let texts = ["title", "a0.0", "p0", "p1", "p2", "f0.0", "a0", "x", "", "é1"].map(|id| text_of(&article, id));
        assert_eq!(texts[..4], [Some("Title"), Some("Summary."), Some("Case."), Some("Discussion.")]);
        assert!(texts[4..].iter().all(Option::is_none));
    }

    proptest! {
        #[test]
        fn any_text_can_be_read(
            title in "(\\PC|osteitis|:| due to | in a |case of |[(]OS[)]){0,12}",
            texts in proptest::collection::vec(
                "(\\PC|was diagnosed with |osteitis|Osteal Syndrome [(]OS[)]|E[.] coli|the diagnosis of | was made[.] | and | é){0,14}", 0..5),
        ) {
            let mut article = Article { title: Some(title), abstract_state: AbstractState::Present, main_abstract: Some(0), ..Article::default() };
            let mut main = Abstract::default();
            for text in texts {
                let passage = Passage { text, ..Passage::default() };
                main.paragraphs.push(AbstractParagraph { section_path: Vec::new(), passage: passage.clone() });
                article.paragraphs.push(Paragraph { section_path: vec!["Case".to_owned()], passage, ..Paragraph::default() });
            }
            article.abstracts.push(main);
            if let Ok(found) = final_diagnosis(&article, &roles(&article), None, &RULES) {
                let text = text_of(&article, &found.quote.text_id).unwrap();
                prop_assert_eq!(text.get(found.quote.start..found.quote.end), Some(found.diagnosis.as_str()));
                for place in &found.support {
                    prop_assert!(text_of(&article, &place.text_id).unwrap().get(place.start..place.end).is_some_and(|words| !words.is_empty()));
                }
            }
        }
    }
}
