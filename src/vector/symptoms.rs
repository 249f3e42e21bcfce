//! Complaints with what is said of each: when, where, how, what makes them worse or better, and whether they are there at all
//! (MTDiag, figure 6: Symptom, Experience, Temporality).
//!
//! The rule extractor of the slots says what a complaint is; what stands nearest in its sentence belongs to it. A complaint is
//! denied only where the text says so: what nobody speaks of is not here.

use std::collections::BTreeSet;
use std::ops::Range;

use super::patterns;
use super::story::{ReadText, Story, Texts};
use crate::record::slots::Slot;
use crate::record::vector::{
    Descriptor, Experience, Finding, FindingBasis, Negation, SymptomPresentation, Temporality,
};
use crate::slots::extract::Found;
use crate::staging::diagnosis::Located;
use crate::text::context::Experiencer;
use crate::text::number_words::UNITS;

/// Most words of a complaint.
const MAX_WORDS: usize = 14;
/// Most words that a member of a list of denied complaints has.
const MAX_DENIED_WORDS: usize = 7;
/// Characters between complaints of one list: ", severe and".
const MAX_LIST_GAP: usize = 24;
/// Characters between a time and what it is said of, where it stands before it.
const MAX_TIME_GAP: usize = 80;
/// Most characters of a factor that makes a complaint worse or better.
const MAX_FACTOR: usize = 80;

patterns! {
    /// What denies, at the beginning of a phrase.
    DENIAL = r"^(?:(?:no|not|without|denie[sd]|denying|deny|never|neither|nor|there|was|were|is|are|had|has|have|having|did|does|do|been|any|an?|the|his|her|known|other|evidence|signs?|significant|previous|past|prior|medical|surgical|history|complaints?|complain(?:ed|s)?|of|for|experienc(?:ed?|ing)|report(?:ed|s)?|associated|also|and|or|recent|episodes?|personal|familial|familiar|family|histories)\b[\s,]*)+";
    /// Between the members of a list.
    MEMBER = r"\s*[,;/]\s*(?:(?:and|or|nor)\b\s*)?(?:any\s+)?|\s+(?:and|or|nor)\s+(?:any\s+)?";
    /// Where a complaint ends and a denied one begins: "nausea without vomiting".
    WITHOUT = r",?\s+(?:but\s+)?(?:without|with no|but no|and no|but not)\s";
    /// Between two complaints of one phrase.
    JOINED = r",\s+and\s+(?:an?\s+)?|\s+(?:followed by|accompanied by|associated with)\s+(?:an?\s+)?";
    WITH_DURATION = r"\s+(?:with|of)\s+(?:an?\s+)?(?:duration|\d+[\s-](?:hour|day|week|month|year)s?)\b|\s+in\s+(?:january|february|march|april|may|june|july|august|september|october|november|december|(?:19|20)\d\d)\b";
    /// "Double vision was horizontal", "listless 1 week before admission".
    PREDICATE = r"\s+(?:(?:was|were|is|are|had|has|have)\s.*|(?:affect|follow|appear|beg[ai]n|start|occur|develop|persist|worsen|radiat|became|spread|improv)\w*\b.*|(?:\d+|one|two|three|four|five|six|seven)\s+(?:hour|day|week|month|year)s?\s+(?:before|prior|earlier|ago).*)$";
    CAUSED = r"^(?:caus(?:ed|ing)|had|has|having|experienc(?:ed|ing)|developed|reported)\s+";
    HISTORY_OF = r"^.{0,60}?\b(?:history|complaints?|episodes?|onset) of\s+(?:an?\s+)?";
    TIME_BEHIND = r"\s+(?:for|since|over|during|of)\s+(?:the\s+|about\s+|approximately\s+|almost\s+|past\s+|last\s+|an?\s+)*(?:\d|one|two|three|four|five|six|seven|eight|nine|ten|several|few|past|last|many)\b";
    /// What is no complaint, whatever else a phrase holds.
    NO_SYMPTOM = r"^kept\b|\b(?:normal|unremarkable|stable|exam(?:s|ination)?|evaluation|investigations?|monitored|consent|our (?:case|patient)|hospital|clinic|department|treatment|therapy)\b";
    FREQUENCY = r"\b(?:daily|nightly|weekly|monthly|hourly|once|twice|times|every|per|intermittent(?:ly)?|recurrent|occasional(?:ly)?|frequent(?:ly)?|constant(?:ly)?|continuous(?:ly)?|episodic|on and off)\b|/(?:day|week|month|night)\b";
    ONSET = r"\b(?:ago|before|prior|earlier|since|sudden(?:ly)?|abrupt(?:ly)?|acute(?:ly)?|gradual(?:ly)?|insidious(?:ly)?|began|started|onset|previous(?:ly)?|yesterday|morning|overnight)\b";
    /// Behind a time that is not of a complaint.
    OF_PREGNANCY = r"^\s*(?:of\s+|into\s+)?(?:an?\s+|the\s+|her\s+)?(?:gestation|pregnan|amenorrh)";
    /// "A 3-day history of".
    OF_BEHIND = r"^\s*(?:(?:history|course|period|duration)\s+)?of\b";
    SPAN_OF_TIME = r"\b(?P<number>\d{1,3}(?:\.\d)?|one|two|three|four|five|six|seven|eight|nine|ten|eleven|twelve|thirteen|fourteen|fifteen|sixteen|seventeen|eighteen|nineteen|an?)[\s-]+(?P<unit>hour|day|week|month|year|yr)s?\b";
    A_RANGE = r"\d\s*(?:-|to|or)\s*\d|\b(?:several|few|couple|some|many|more than|less than|over (?:an? )?\d)\b";
    /// A time tells how long; other words of a course only say how: "worsening", "at rest".
    LONG = r"\b(?:seconds?|minutes?|hours?|days?|weeks?|months?|years?|fortnight|decades?|childhood|birth|hrs?|yrs?)\b";
    /// How a complaint feels, which alone is none.
    QUALITY = r"^(?:(?:very|quite|rather|mildly|severely|more|increasingly|diffuse|mild|moderate|severe|dull|sharp|throbbing|burning|constant|intermittent)(?:\s+and|\s*,)?\s+)*(?:throbbing|burning|stabbing|sharp|dull|aching|achy|cramping|crampy|squeezing|colicky|stinging|pulsating|pulsatile|pressing|tight|shooting|tearing|itchy|painful|tender|sore|heavy|severe|worse|constant|intermittent|diffuse|mild|moderate)$";
    /// A sentence about a complaint that was told before.
    OF_COMPLAINT = r"^(?:(?:the|his|her|this|these|such)\s+(?:[a-z-]+\s+)?(?:pain|ache|discomfort|symptoms?|complaints?|episodes?|attacks?|lesions?)|it|this|they|these)\b";
    /// A sentence about a pain, which is of no other complaint.
    OF_PAIN = r"^(?:the|his|her|this|these|such)\s+(?:[a-z-]+\s+)?(?:pains?|aches?|discomfort)\b";
    PAINFUL = r"pain|ache|discomfort|colic|cramp|tender|sore|burn";
    /// Before a time that is of passing water: "urinate twice every night".
    OF_WATER = r"\burinat\w*\s+[^,;.]{0,20}$";
    /// A count without its time: "urinate twice every night" says nothing of thirst.
    COUNT = r"^(?:once|twice|thrice)$";
    SCORE = r"^(?P<points>\d{1,2})\s*(?:/|out of)\s*10$";
    RADIATION = r"\bradiat(?:ed|es|ing|ion)\s+(?:in)?to(?:wards?)?\s+(?:the\s+|his\s+|her\s+|both\s+)?(?P<what>[a-z][a-z' -]{0,80}?)(?:\s*[,.;:(]|\s+(?:and\s+(?:was|is|had|were|did|with|the|he|she)|but|with|that|which|for|on|when|while|was|since|after|associated|accompanied)\b|$)";
    WORSE = r"\b(?:(?:worse|worsen(?:ed|s|ing)?|increas(?:ed|es|ing)|exacerbated|aggravated|provoked|triggered|precipitated|induced|intensified)\s+(?P<by>on|with|by|after|during|when|while|at|in)|aggravated)\s+(?P<what>[a-z0-9](?:[a-z0-9' /-]|\.\d){0,120})";
    BETTER = r"\b(?:better|improv(?:ed|es|ing)|relie(?:ved|ves|ving)|alleviated|eased|lessened|decreased|reduced|subsided|resolved)\s+(?P<by>on|with|by|after|during|when|while|at)\s+(?P<what>[a-z0-9](?:[a-z0-9' /-]|\.\d){0,120})";
    /// Behind a place that is none of the body: "an oral examination".
    OF_EXAMINATION = r"^\s*(?:examinations?|exams?|tests?|tablets?|medications?|contraceptives?|antibiotics?|intake|therapy|surgery|surgeons?)\b";
    /// A complaint of childhood is none of today.
    OF_CHILDHOOD = r"\b(?:at\s+the\s+age\s+of|when\s+(?:he|she)\s+was\s+(?:a|aged)|(?:as|since\s+being)\s+a\s+child|in\s+(?:his|her)\s+(?:childhood|youth))\b";
    /// Not a relative of the patient, and no patient: an animal.
    OF_ANIMAL = r"\b(?:dogs?|cats?|cattle|cows?|goats?|sheep|horses?|birds?|pets?|herd|animals?)\b(?:'s?)?(?:,?\s*(?:one|two|some|both|all|each|most)?\s*(?:of\s+)?(?:which|whom|them))?\s+(?:(?:also|both|had|has|have|with|was|were|developed|recently|own|similar)\s+)*$";
    /// Words behind a complaint that are no part of its name.
    TRAILING = r"\s+(?:(?:of\s+)?up\s+to\b.*|that|which|and|or|with|of|for|to|was|were|had|in|on|at|the|a|an|by|as|when|while|but|also)$";
    /// Between the parts of a factor: "at night and on standing".
    FACTORS = r"\s+(?:and|or)\s+(?:on|with|by|after|during|when|while|at|in)\s+";
    /// Before a word that is done to somebody, no quality: "had injected".
    DONE = r"\b(?:had|has|have|was|were|been)\s+$";
    /// Where a factor ends.
    FACTOR_END = r"\s+(?:and|but|or)\s+(?:was|is|were|are|had|has|he|she|it|not|partially|partly|only|the|relieved|improved|better|worse|eased|alleviated|lessened|exacerbated|aggravated|worsened|did|no|associated|accompanied|radiat\w+)\b|\s+(?:but|which|that|who|over|without|since|for)\b";
    /// What says the opposite of what follows, up to the end of the clause.
    NOT = r"\b(?:not|no|never|without|nor|neither|hardly|barely|n't)\b";
    CLAUSE_END = r"[,;:]|\s(?:and|but|although|which)\s";
    /// Behind "worse in" and "worse at": a time or a state, no part of the body.
    IN_STATE = r"^(?:the\s+)?(?:morning|evening|night|afternoon|day|cold|heat|dark|winter|summer|rest)\b";
    /// Behind an age, not a time: "at the age of".
    AGE_BEFORE = r"\b(?:age\s+of|aged)\s*$";
    /// Words of time behind "worsened over", "improved after": the course, no factor.
    OF_COURSE = r"^(?:the\s+)?(?:(?:past|last|next|following|course|time|same|first|second|third|initial|few|several|about|approximately|one|two|three|four|five|six|seven|\d+)\b|treatment|surgery|admission|discharge|therapy|hospital|presentation|onset|\w*\s*(?:days?|weeks?|months?|years?)\b)";
}

/// Names of complaints, of which every complaint that the text does not clearly give as the reason of coming holds one.
#[derive(Clone, Debug)]
pub struct SymptomTerms {
    /// In lower case, words in the singular.
    names: BTreeSet<String>,
    /// Diseases, which can be what a patient comes with: "facial palsy".
    diseases: BTreeSet<String>,
    max_words: usize,
}

impl SymptomTerms {
    /// Reads the names of complaints and physical changes from the list of terms (CSV with `term`, `slot` and `variants`, which are
    /// parted by `|`). The extractor checks the list; here what is no line of it is passed over.
    pub fn parse(csv: &str) -> Self {
        let (mut names, mut diseases) = (BTreeSet::new(), BTreeSet::new());
        for line in csv.lines() {
            let mut fields = line.split(',');
            let (Some(term), Some(slot)) = (fields.next(), fields.next()) else { continue };
            let list = match Slot::parse(slot) {
                Some(Slot::SymptomName | Slot::PhysicalChange) => &mut names,
                Some(Slot::PastDiagnosis) => &mut diseases,
                _ => continue,
            };
            let variants = fields.next().unwrap_or_default().split('|');
            list.extend(std::iter::once(term).chain(variants).map(singular).filter(|name| !name.is_empty()));
        }
        let n_words = |name: &String| name.split(' ').count();
        let max_words = names.iter().chain(&diseases).map(n_words).max().unwrap_or_default();
        Self { names, diseases, max_words }
    }

    /// Whether words hold the name of a complaint, or of a disease where that counts.
    pub(super) fn is_in(&self, plain: &str, or_disease: bool) -> bool {
        let text = singular(plain);
        let words: Vec<&str> = text.split(' ').filter(|word| !word.is_empty()).collect();
        let is_known = |name: &str| self.names.contains(name) || or_disease && self.diseases.contains(name);
        (0..words.len()).any(|start| {
            (start + 1..=words.len().min(start + self.max_words))
                .any(|end| words.get(start..end).is_some_and(|words| is_known(&words.join(" "))))
        })
    }
}

/// Lower-case words with single spaces, each without a plural "s".
fn singular(text: &str) -> String {
    let lower = text.to_lowercase();
    let words = lower.split(|character: char| !character.is_alphanumeric()).filter(|word| !word.is_empty());
    words.map(singular_word).collect::<Vec<_>>().join(" ")
}

fn singular_word(word: &str) -> &str {
    word.strip_suffix('s').filter(|stem| !stem.ends_with('s') && stem.len() > 2).unwrap_or(word)
}

/// A complaint with its place in the story.
pub(super) struct Symptom {
    pub(super) range: Range<usize>,
    pub(super) presentation: SymptomPresentation,
}

/// Reads the complaints of a story, those that are there and those that are denied, in its order. `is_free` says whether words
/// may be told.
pub(super) fn symptoms(
    story: &Story,
    found: &[Found],
    complaint: Option<&Located>,
    terms: &SymptomTerms,
    is_free: &dyn Fn(&str) -> bool,
    texts: &mut Texts<'_>,
) -> Vec<Symptom> {
    let read = &story.read;
    let complaint = complaint.and_then(|place| story.characters_from(place));
    let is_of_complaint = |range: &Range<usize>| complaint.as_ref().is_some_and(|clause| overlaps(clause, range));
    let mut named: Vec<(Range<usize>, Negation)> = Vec::new();
    for one in found {
        match one.slot {
            Slot::SymptomName | Slot::PhysicalChange => {
                let said = read.scopes.at(&one.range);
                match (said.experiencer, said.negated, said.uncertain) {
                    _ if is_quality(read, &one.range) => {}
                    (Experiencer::Patient, false, false) => named.extend(parts(read, &one.range)),
                    (Experiencer::Patient, false, true) => named.push((one.range.clone(), Negation::NotKnown)),
                    (Experiencer::Patient, true, _) => {
                        named.extend(denied(read, &one.range).into_iter().map(|range| (range, Negation::Denied)));
                    }
                    _ => {}
                }
            }
            // What a patient denies is a note, where it is no slot of its own, or stands with what is: "no cough and no travel".
            Slot::AdditionalNotes | Slot::ContactHistory | Slot::HabitLiving | Slot::Preventive => {
                named.extend(denied(read, &one.range).into_iter().map(|range| (range, Negation::Denied)));
            }
            _ => {}
        }
    }
    for (range, _) in &mut named {
        while let Some(found) = TRAILING.find(read.plain(range)) {
            *range = read.trimmed(&(range.start..range.start + found.start()));
        }
    }
    named.retain(|(range, negation)| {
        let Some((_, sentence)) = read.sentence_of(range.start) else { return true };
        let is_of_today = *negation != Negation::Present || !OF_CHILDHOOD.is_match(read.plain(&sentence));
        !range.is_empty() && is_of_today && !OF_ANIMAL.is_match(read.plain(&(sentence.start..range.start)))
    });
    // What brought the patient is one in any words; elsewhere a complaint has a name that is known.
    named.retain(|(range, negation)| {
        let plain = read.plain(range);
        let is_present = *negation == Negation::Present;
        let is_known = is_present && is_of_complaint(range) || terms.is_in(plain, is_present);
        is_known && !NO_SYMPTOM.is_match(plain) && plain.split(' ').count() <= MAX_WORDS
    });
    let is_there =
        |(range, negation): &(Range<usize>, Negation)| *negation == Negation::Present && is_of_complaint(range);
    if let Some(clause) = complaint.as_ref().filter(|_| !named.iter().any(is_there)) {
        let members = members_of(read, clause).into_iter().filter(|range| terms.is_in(read.plain(range), false));
        named.extend(members.map(|range| (range, Negation::Present)));
    }
    named.sort_by_key(|(range, _)| (range.start, std::cmp::Reverse(range.end)));
    let mut symptoms: Vec<Symptom> = Vec::new();
    for (range, negation) in named {
        let words = read.words(&range);
        if symptoms.last().is_some_and(|last| range.start < last.range.end) || !is_free(words) {
            continue;
        }
        let Some(span) = story.place(&range).and_then(|place| texts.span(&place)) else { continue };
        let name = words.to_owned();
        let key = name.to_lowercase();
        let known = symptoms.iter().position(|one| one.presentation.symptom.name.to_lowercase() == key);
        if let Some(known) = known.and_then(|at| symptoms.get_mut(at)) {
            let symptom = &mut known.presentation.symptom;
            // One that comes up after it was denied is there.
            if symptom.negation == negation {
                symptom.spans.push(span);
            } else if negation == Negation::Present {
                symptom.negation = negation;
                symptom.spans = vec![span];
                known.range = range;
            }
            continue;
        }
        let symptom = Finding { name, negation, basis: FindingBasis::Text, spans: vec![span], ..Finding::default() };
        let presentation = SymptomPresentation { symptom, experience: Experience::default() };
        symptoms.push(Symptom { range, presentation });
    }
    symptoms.sort_by_key(|one| one.range.start);
    attributes(read, found, &mut symptoms, terms, is_free);
    symptoms
}

/// Whether two ranges share a character.
fn overlaps(one: &Range<usize>, other: &Range<usize>) -> bool {
    one.start < other.end && other.start < one.end
}

/// The complaints that a phrase joins, and what it denies: "pain followed by swelling", "nausea without vomiting".
fn parts(read: &ReadText, range: &Range<usize>) -> Vec<(Range<usize>, Negation)> {
    let cut = WITHOUT.find(read.plain(range)).filter(|cut| cut.start() > 0);
    let end = cut.map_or(range.end, |cut| range.start + cut.start());
    let denied = denied(read, &read.trimmed(&(end..range.end))).into_iter().map(|range| (range, Negation::Denied));
    let plain = read.plain(&(range.start..end));
    let mut found = Vec::new();
    let mut start = 0;
    for border in JOINED.find_iter(plain) {
        found.push(start..border.start());
        start = border.end();
    }
    found.push(start..plain.len());
    let found = found.into_iter().map(|part| {
        let part = range.start + part.start..range.start + part.end;
        let start = part.start + CAUSED.find(read.plain(&part)).map_or(0, |found| found.end());
        let words = read.plain(&(start..part.end));
        let ends = [WITH_DURATION.find(words), PREDICATE.find(words)].into_iter().flatten();
        let end = ends.map(|found| start + found.start()).min().unwrap_or(part.end);
        (read.trimmed(&(start..end)), Negation::Present)
    });
    found.filter(|(part, _)| !part.is_empty()).chain(denied).collect()
}

/// The members of the clause of a complaint, without its times: "a recent four-month history of chest pain".
fn members_of(read: &ReadText, clause: &Range<usize>) -> Vec<Range<usize>> {
    let start = clause.start + HISTORY_OF.find(read.plain(clause)).map_or(0, |found| found.end());
    let end =
        start + TIME_BEHIND.find(read.plain(&(start..clause.end))).map_or(clause.end - start, |found| found.start());
    let plain = read.plain(&(start..end));
    let mut members = Vec::new();
    let mut from = 0;
    for border in MEMBER.find_iter(plain) {
        members.push(from..border.start());
        from = border.end();
    }
    members.push(from..plain.len());
    let members = members.into_iter().map(|member| read.trimmed(&(start + member.start..start + member.end)));
    members.filter(|member| !member.is_empty() && !read.scopes.at(member).negated).collect()
}

/// Whether words only say how a complaint is that the sentence speaks of: "the headache was throbbing".
fn is_quality(read: &ReadText, range: &Range<usize>) -> bool {
    let before = read.sentence_of(range.start).map(|(_, sentence)| read.plain(&(sentence.start..range.start)));
    QUALITY.is_match(read.plain(range))
        && before.is_some_and(|before| {
            let before = before.trim_start();
            ["the ", "his ", "her ", "this ", "it "].iter().any(|first| before.starts_with(first))
        })
}

/// The members of a list that is denied, each without what denies it.
pub(super) fn denied(read: &ReadText, range: &Range<usize>) -> Vec<Range<usize>> {
    let text = read.plain(range);
    let from = range.start + DENIAL.find(text).map_or(0, |found| found.end());
    let list = read.plain(&(from..range.end));
    let mut members = Vec::new();
    let mut start = 0;
    for border in MEMBER.find_iter(list) {
        members.push(start..border.start());
        start = border.end();
    }
    members.push(start..list.len());
    members
        .into_iter()
        .map(|member| from + member.start..from + member.end)
        .map(|member| {
            let text = read.plain(&member);
            let cut = DENIAL.find(text).map_or(0, |found| found.end());
            read.trimmed(&(member.start + cut..member.end))
        })
        .filter(|member| {
            let n_words = read.plain(member).split(' ').count();
            !member.is_empty() && n_words <= MAX_DENIED_WORDS && read.scopes.at(member).negated
        })
        .collect()
}

fn descriptor(words: &str) -> Descriptor {
    Descriptor { name: words.to_owned(), ..Descriptor::default() }
}

/// Adds a word once.
fn add(list: &mut Vec<Descriptor>, words: &str) {
    let is_known = list.iter().any(|known| known.name.eq_ignore_ascii_case(words));
    if !words.is_empty() && !is_known {
        list.push(descriptor(words));
    }
}

/// Gives times, places, qualities and factors to the complaints that they stand with.
fn attributes(
    read: &ReadText,
    found: &[Found],
    symptoms: &mut [Symptom],
    terms: &SymptomTerms,
    is_free: &dyn Fn(&str) -> bool,
) {
    let mut times: Vec<&Range<usize>> = Vec::new();
    // From "worse" to the end of its clause.
    let of_factors: Vec<Range<usize>> = read
        .sentences
        .iter()
        .flat_map(|sentence| {
            let text = read.plain(sentence);
            WORSE.find_iter(text).chain(BETTER.find_iter(text)).map(|found| {
                let end = FACTOR_END.find(found.as_str()).map_or(found.end(), |end| found.start() + end.start());
                sentence.start + found.start()..sentence.start + end
            })
        })
        .collect();
    let goes_to: Vec<Range<usize>> = read
        .sentences
        .iter()
        .flat_map(|sentence| {
            RADIATION
                .find_iter(read.plain(sentence))
                .map(|found| sentence.start + found.start()..sentence.start + found.end())
        })
        .collect();
    let is_told = |one: &&Found| is_free(read.words(&one.range)) && !is_opposite(read, one.range.start);
    for one in found.iter().filter(is_told) {
        let words = read.words(&one.range);
        match one.slot {
            Slot::SymptomTime
                if AGE_BEFORE.is_match(read.plain(&(one.range.start.saturating_sub(12)..one.range.start))) => {}
            Slot::SymptomTime
                if COUNT.is_match(read.plain(&one.range))
                    || OF_WATER.is_match(read.plain(&(one.range.start.saturating_sub(32)..one.range.start))) => {}
            Slot::SymptomTime if OF_PREGNANCY.is_match(read.plain(&(one.range.end..read.folded.len()))) => {}
            Slot::SymptomTime if is_time(read.plain(&one.range)) => times.push(&one.range),
            Slot::SymptomTime => {
                if let Some(symptom) = nearest(read, symptoms, &one.range) {
                    add(&mut symptom.characterization.descriptors, words);
                }
            }
            Slot::SymptomPosition => {
                // Where it radiates to is not where it is, nor is where it is worse; and an oral examination is no place.
                let is_target = goes_to
                    .iter()
                    .chain(&of_factors)
                    .any(|range| range.start <= one.range.start && one.range.end <= range.end)
                    || OF_EXAMINATION.is_match(read.plain(&(one.range.end..read.folded.len())));
                if let Some(symptom) = nearest(read, symptoms, &one.range).filter(|_| !is_target) {
                    add(&mut symptom.locality, words);
                }
            }
            Slot::SymptomDegree => {
                let score = SCORE.captures(read.plain(&one.range));
                let points = score.and_then(|score| score.name("points")?.as_str().parse().ok());
                if let Some(symptom) = nearest(read, symptoms, &one.range) {
                    let characterization = &mut symptom.characterization;
                    match points {
                        Some(points @ 0..=10) => {
                            characterization.severity.get_or_insert(points);
                        }
                        _ => add(&mut characterization.descriptors, words),
                    }
                }
            }
            // "Worse after solid food" says nothing of the complaint, nor does "had injected".
            Slot::SymptomColor | Slot::SymptomShape | Slot::SymptomTexture | Slot::SymptomSmell
                if of_factors.iter().any(|range| overlaps(range, &one.range))
                    || DONE.is_match(read.plain(&(one.range.start.saturating_sub(8)..one.range.start)))
                        && words.ends_with("ed") => {}
            // "Swelling" says nothing of a swelling.
            Slot::SymptomColor | Slot::SymptomShape | Slot::SymptomTexture | Slot::SymptomSmell
                if !symptoms
                    .iter()
                    .any(|symptom| overlaps(&symptom.range, &one.range) && terms.is_in(words, false)) =>
            {
                if let Some(symptom) = nearest(read, symptoms, &one.range) {
                    add(&mut symptom.characterization.descriptors, words);
                }
            }
            Slot::SymptomName if is_quality(read, &one.range) && !read.scopes.at(&one.range).negated => {
                if let Some(symptom) = nearest(read, symptoms, &one.range) {
                    add(&mut symptom.characterization.descriptors, words);
                }
            }
            _ => {}
        }
    }
    times.sort_by_key(|range| (range.start, range.end));
    // "A 3-week history of" holds for what no other time is said of.
    for is_history in [false, true] {
        for (index, time) in times.iter().enumerate() {
            if is_history_of(read, time) != is_history {
                continue;
            }
            let before = index.checked_sub(1).and_then(|index| times.get(index));
            let is_behind_history = before.is_some_and(|before| {
                read.sentence_of(before.start) == read.sentence_of(time.start) && is_history_of(read, before)
            });
            let range =
                before.map_or(0, |before| before.end)..times.get(index + 1).map_or(usize::MAX, |next| next.start);
            for symptom in of_time(read, symptoms, time, range, is_behind_history) {
                let known = &symptom.temporality;
                if !is_history || known.onset.is_none() && known.duration.is_none() {
                    temporality(&mut symptom.temporality, read.words(time), read.plain(time));
                }
            }
        }
    }
    for sentence in &read.sentences {
        factors(read, sentence, symptoms, is_free);
    }
}

/// Present complaints of the sentence of a range, by index.
fn in_sentence(read: &ReadText, symptoms: &[Symptom], at: usize) -> Vec<usize> {
    let Some((_, sentence)) = read.sentence_of(at) else { return Vec::new() };
    let is_there = |symptom: &Symptom| {
        sentence.contains(&symptom.range.start) && symptom.presentation.symptom.negation == Negation::Present
    };
    symptoms.iter().enumerate().filter(|(_, symptom)| is_there(symptom)).map(|(index, _)| index).collect()
}

/// The present complaint of the same sentence that stands nearest, of two as near the one before. Where the sentence has none, the
/// one that it names again, or the last one if it begins with "it" or "the pain".
fn nearest<'s>(read: &ReadText, symptoms: &'s mut [Symptom], range: &Range<usize>) -> Option<&'s mut Experience> {
    let distance = |symptom: &Symptom| {
        if symptom.range.start < range.end && range.start < symptom.range.end {
            0
        } else if symptom.range.end <= range.start {
            2 * (range.start - symptom.range.end)
        } else {
            2 * (symptom.range.start - range.end) + 1
        }
    };
    let index = in_sentence(read, symptoms, range.start)
        .into_iter()
        .filter_map(|index| Some((distance(symptoms.get(index)?), index)))
        .min()
        .map(|(_, index)| index)
        .or_else(|| subject(read, symptoms, range.start))?;
    symptoms.get_mut(index).map(|symptom| &mut symptom.presentation.experience)
}

/// The earlier complaint that the sentence of a character is about.
fn subject(read: &ReadText, symptoms: &[Symptom], at: usize) -> Option<usize> {
    let (_, sentence) = read.sentence_of(at)?;
    let last = || {
        let is_there =
            |one: &Symptom| one.range.start < sentence.start && one.presentation.symptom.negation == Negation::Present;
        let last = symptoms.iter().rposition(is_there).filter(|_| OF_COMPLAINT.is_match(read.plain(&sentence)))?;
        let is_pain = symptoms.get(last).is_some_and(|symptom| PAINFUL.is_match(read.plain(&symptom.range)));
        (is_pain || !OF_PAIN.is_match(read.plain(&sentence))).then_some(last)
    };
    named_again(read, &sentence, symptoms, at).or_else(last)
}

/// Whether a time is followed by what it is the history of.
fn is_history_of(read: &ReadText, time: &Range<usize>) -> bool {
    let end = read.sentence_of(time.start).map_or(time.end, |(_, sentence)| sentence.end);
    let text = read.plain(time);
    text.ends_with("history") || text.ends_with(" of") || OF_BEHIND.is_match(read.plain(&(time.end..end.max(time.end))))
}

/// The complaints that a time is of, between the times before and behind it: those behind "a 3-day history of", up to the next time; else the list directly before it;
/// else the next one.
fn of_time<'s>(
    read: &ReadText,
    symptoms: &'s mut [Symptom],
    time: &Range<usize>,
    between: Range<usize>,
    is_behind_history: bool,
) -> Vec<&'s mut Experience> {
    let candidates = in_sentence(read, symptoms, time.start);
    let range_of = |index: usize| symptoms.get(index).map(|symptom| symptom.range.clone()).unwrap_or_default();
    let behind: Vec<usize> = candidates
        .iter()
        .copied()
        .filter(|index| {
            let range = range_of(*index);
            range.start >= time.end && range.end <= between.end
        })
        .collect();
    let is_history = is_history_of(read, time);
    let within: Vec<usize> = candidates
        .iter()
        .copied()
        .filter(|index| {
            let range = range_of(*index);
            range.start <= time.start && time.end <= range.end
        })
        .collect();
    let chosen = if !within.is_empty() {
        within
    } else if is_history && !behind.is_empty() {
        behind
    } else {
        let mut list: Vec<usize> = Vec::new();
        let mut edge = time.start;
        for index in candidates.iter().rev().copied() {
            let range = range_of(index);
            if range.end > edge || range.start < between.start {
                continue;
            }
            let gap = read.plain(&(range.end..edge));
            let is_list = gap.chars().count() <= MAX_LIST_GAP && !gap.contains([';', '.', '(']);
            if !list.is_empty() && (is_behind_history || !(is_list && (gap.contains(',') || gap.contains(" and ")))) {
                break;
            }
            list.push(index);
            edge = range.start;
        }
        // A time far before is of something else.
        let is_near = |index: &usize| range_of(*index).start.saturating_sub(time.end) <= MAX_TIME_GAP;
        if list.is_empty() { behind.into_iter().take(1).filter(is_near).collect() } else { list }
    };
    symptoms
        .iter_mut()
        .enumerate()
        .filter(|(index, _)| chosen.contains(index))
        .map(|(_, symptom)| &mut symptom.presentation.experience)
        .collect()
}

fn is_time(plain: &str) -> bool {
    LONG.is_match(plain) || ONSET.is_match(plain) || FREQUENCY.is_match(plain)
}

fn temporality(temporality: &mut Temporality, words: &str, plain: &str) {
    if FREQUENCY.is_match(plain) {
        temporality.frequency.get_or_insert_with(|| words.to_owned());
        return;
    }
    if temporality.duration_days.is_none() && (temporality.onset.is_none() && temporality.duration.is_none()) {
        temporality.duration_days = days(plain);
    }
    let field = if ONSET.is_match(plain) { &mut temporality.onset } else { &mut temporality.duration };
    field.get_or_insert_with(|| words.to_owned());
}

/// Days in a span of time such as `3-day history`, `two weeks ago`; none for one that is not exact.
fn days(plain: &str) -> Option<u32> {
    if A_RANGE.is_match(plain) {
        return None;
    }
    let mut spans = SPAN_OF_TIME.captures_iter(plain);
    let span = spans.next()?;
    if spans.next().is_some() {
        return None;
    }
    let number = span.name("number")?.as_str();
    let number = match number {
        "a" | "an" => 1.0,
        _ => match UNITS.iter().position(|unit| *unit == number) {
            Some(number) => f64::from(u32::try_from(number).ok()?),
            None => number.parse().ok()?,
        },
    };
    let days = number
        * match span.name("unit")?.as_str() {
            "hour" => 1.0 / 24.0,
            "day" => 1.0,
            "week" => 7.0,
            "month" => 365.25 / 12.0,
            _ => 365.25,
        };
    format!("{:.0}", days.floor().max(0.0)).parse().ok()
}

/// Whether a word of denial stands before a character in its clause: "it was not worse after meals".
fn is_opposite(read: &ReadText, at: usize) -> bool {
    let Some((_, sentence)) = read.sentence_of(at) else { return false };
    let before = read.plain(&(sentence.start..at));
    NOT.find_iter(before).last().is_some_and(|not| !CLAUSE_END.is_match(before.get(not.end()..).unwrap_or_default()))
}

/// Radiation, and what makes a complaint worse or better, of the complaint before it.
fn factors(read: &ReadText, sentence: &Range<usize>, symptoms: &mut [Symptom], is_free: &dyn Fn(&str) -> bool) {
    let text = read.plain(sentence);
    for (pattern, which) in [(&*RADIATION, 0), (&*WORSE, 1), (&*BETTER, 2)] {
        let mut from = 0;
        while let Some(captures) = pattern.captures_at(text, from) {
            let (Some(whole), Some(what)) = (captures.get(0), captures.name("what")) else { break };
            // The next factor can stand in what was taken for this one.
            from = what.start();
            let at = sentence.start + whole.start()..sentence.start + whole.start() + 1;
            let said = read.scopes.at(&(at.start..sentence.start + what.end()));
            let what_range = sentence.start + what.start()..sentence.start + what.end();
            let is_place = captures.name("by").is_some_and(|by| matches!(by.as_str(), "in" | "at"))
                && !IN_STATE.is_match(read.plain(&what_range));
            if is_opposite(read, at.start) || is_place && which == 1 {
                continue;
            }
            if read.scopes.at(&what_range).negated || said.experiencer != Experiencer::Patient {
                continue;
            }
            let end = FACTOR_END.find(what.as_str()).map_or(what.end(), |end| what.start() + end.start());
            // Of several complaints of its sentence the last one before it.
            let own = in_sentence(read, symptoms, at.start)
                .into_iter()
                .rfind(|index| symptoms.get(*index).is_some_and(|symptom| symptom.range.start < at.start));
            let about = own.or_else(|| subject(read, symptoms, at.start));
            let Some(symptom) = about.and_then(|index| symptoms.get_mut(index)) else { continue };
            let mut start = what_range.start;
            let mut parts: Vec<Range<usize>> = Vec::new();
            let clause = read.plain(&(what_range.start..sentence.start + end));
            if which != 0 {
                for border in FACTORS.find_iter(clause) {
                    parts.push(start..what_range.start + border.start());
                    start = what_range.start + border.end();
                }
            }
            parts.push(start..sentence.start + end);
            for part in parts {
                let range = read.trimmed(&part);
                let words = read.words(&range);
                let is_course = which != 0 && OF_COURSE.is_match(read.plain(&range));
                if words.is_empty() || range.len() > MAX_FACTOR || is_course || !is_free(words) {
                    continue;
                }
                let experience = &mut symptom.presentation.experience;
                let list = match which {
                    0 => &mut experience.radiation,
                    1 => &mut experience.aggravating_factors,
                    _ => &mut experience.relieving_factors,
                };
                add(list, words);
            }
        }
    }
}

/// The complaint of an earlier sentence that a sentence names again by one of its words: "the pain", "her headaches".
fn named_again(read: &ReadText, sentence: &Range<usize>, symptoms: &[Symptom], until: usize) -> Option<usize> {
    let before = read.plain(&(sentence.start..until.max(sentence.start)));
    let words: Vec<&str> = before.split(|character: char| !character.is_ascii_alphabetic()).collect();
    let is_named = |symptom: &Symptom| {
        let name = read.plain(&symptom.range);
        let head = name.split(" in ").next().unwrap_or(name).split(" of ").next().unwrap_or(name);
        let head = head.split(' ').next_back().map(singular_word).unwrap_or_default();
        head.len() > 3 && words.iter().any(|word| singular_word(word) == head)
    };
    let is_there = |symptom: &&(usize, &Symptom)| symptom.1.presentation.symptom.negation == Negation::Present;
    let earlier: Vec<(usize, &Symptom)> =
        symptoms.iter().enumerate().filter(|(_, one)| one.range.start < until).collect();
    earlier.iter().rev().filter(is_there).find(|(_, symptom)| is_named(symptom)).map(|(index, _)| *index)
}

/// The complaints that brought the patient: those that stand in the clause of the complaint, else in its sentence, else the first.
pub(super) fn chief(story: &Story, symptoms: &[Symptom], complaint: Option<&Located>) -> Vec<SymptomPresentation> {
    let is_there = |one: &&Symptom| one.presentation.symptom.negation == Negation::Present;
    let clause = complaint.and_then(|place| story.characters_from(place));
    let sentence = clause.as_ref().and_then(|range| story.read.sentence_of(range.start)).map(|(_, range)| range);
    for part in [clause, sentence].into_iter().flatten() {
        let within: Vec<SymptomPresentation> = symptoms
            .iter()
            .filter(is_there)
            .filter(|one| one.range.start < part.end && part.start < one.range.end)
            .map(|one| one.presentation.clone())
            .collect();
        if !within.is_empty() {
            return within;
        }
    }
    symptoms.iter().find(is_there).map(|one| one.presentation.clone()).into_iter().collect()
}
