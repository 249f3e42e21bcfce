//! How many patients an article tells of, and which paragraphs and figures belong to whom (ClinMM-Bench, 4.1.3: one
//! patient a case).
//!
//! Headings, run-in headings, numbers in title and text, ordinals, tables with a place for each patient, and introductions
//! ("A 6-month-old girl") are counted apart; where they differ, the difference is told. A paragraph belongs to one patient
//! or to none, so that facts of two people never meet. Figures and tables follow the paragraphs that mention them (MTDiag,
//! B.3): one that several patients use belongs to each, and what nobody uses to all in general.

use std::collections::{BTreeMap, BTreeSet};
use std::ops::Range;

use regex::Captures;

use super::sections::{SectionRole, patterns, plain_words};
use crate::record::article::{Anchor, Article, Passage, PatientSegment, Place, Region, Table, TableContent};
use crate::text::number_words::{TENS, UNITS};
use crate::text::sentences::sentences;

/// How many patients an article tells of.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum PatientCount {
    Single,
    Several,
    /// People are spoken of, and nothing tells how many are described.
    #[default]
    Unclear,
    /// Nobody is described as a patient: animals, healthy participants, no person at all.
    NoPatient,
}

/// What an article says of the number of its patients.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Series {
    pub count: PatientCount,
    /// The patients of an article about several, in its order; empty unless the article keeps them apart.
    pub patients: Vec<PatientSegment>,
    /// Each patient has paragraphs of their own.
    pub assignable: bool,
    /// What decided, in the words of the article.
    pub evidence: Vec<String>,
    /// Where numbers differ, or a part that should tell of one patient tells of two.
    pub conflicts: Vec<String>,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Sex {
    Female,
    Male,
}

/// An age as it is told, never converted.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Age {
    /// Tenths of years.
    Years(u32),
    Months(u32),
    Weeks(u32),
    Days(u32),
    Hours(u32),
    /// In the sixties: 60.
    Decade(u32),
    Newborn,
}

/// Words that introduce a person by age or sex: "A 6-month-old girl".
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Introduction {
    /// Bytes of the text.
    pub range: Range<usize>,
    pub age: Option<Age>,
    pub sex: Option<Sex>,
    /// An athlete, volunteer or participant.
    pub is_participant: bool,
}

macro_rules! number {
    () => {
        r"(?:\d{1,3}(?:\.\d)?|(?:twenty|thirty|forty|fifty|sixty|seventy|eighty|ninety)(?:[\s-](?:one|two|three|four|five|six|seven|eight|nine))?|ten|eleven|twelve|thirteen|fourteen|fifteen|sixteen|seventeen|eighteen|nineteen|one|two|three|four|five|six|seven|eight|nine)"
    };
}
macro_rules! several {
    () => {
        r"(?P<count>two|three|four|five|six|seven|eight|nine|ten|eleven|twelve|\d{1,2})"
    };
}
macro_rules! people {
    () => {
        r"(?:cases|patients|siblings|brothers|sisters|members|children|infants|neonates|newborns|women|men|males|females|girls|boys|adults|individuals|adolescents|relatives|probands)"
    };
}
macro_rules! unit {
    () => {
        r"(?P<unit>years?|yrs?|yo|months?|mos?|weeks?|wks?|days?|hours?|y)"
    };
}
macro_rules! hyphen {
    () => {
        r"[\s\-\x{2010}-\x{2015}]"
    };
}
macro_rules! person {
    () => {
        r"(?P<person>man|woman|males?|females?|boy|girl|lady|gentleman|patient|child|infant|neonate|newborn|baby|toddler|adolescent|teenager|person|individual|adult|youth|primigravida|multigravida|primipara|multipara|housewife|farmer|student|teacher|worker|driver|nurse|physician|soldier|veteran|engineer|gardener|smoker|athlete|runner|cyclist|volunteer|participant|caucasian|hispanic|brother|sister|mother|father|son|daughter|sibling|twin|cousin|uncle|aunt|nephew|niece|grandmother|grandfather|wife|husband|spouse|parent|donor|dog|cat|horse|mare|cow|calf|bird|crane|rat|mouse|rabbit|sheep|goat|pig|monkey|parrot|tortoise|bitch|puppy|kitten|labrador|retriever|terrier|shepherd|stallion|gelding|heifer|ewe|ferret)"
    };
}
/// Numbers with letters of panels, in a list or as a range.
macro_rules! asset_list {
    () => {
        r"(?P<list>(?:\d{1,2}|[IVX]{1,4}\b)[a-h]{0,2}\b(?:(?:\s*(?:,|and\b|&|to\b|[\x{2010}-\x{2015}-]))+\s*(?:\d{1,2}[a-h]{0,2}|[a-h])\b)*)"
    };
}

macro_rules! breed {
    () => {
        r"shorthair|longhair|retriever|terrier|shepherd|labrador|poodle|beagle|spaniel|mongrel|dog|cat|horse|mare|cow|calf|heifer|goat|sheep|parrot|rabbit"
    };
}

patterns! {
    /// "A 34-year-old right-handed man".
    OF_AGE = concat!(r"\b(?P<number>", number!(), ")", hyphen!(), "*", unit!(), "(?:", hyphen!(), r"+(?:and\s+)?\d{1,2}", hyphen!(),
        r"*(?:months?|weeks?|days?))?", hyphen!(), r"*(?:olds?|of", hyphen!(), r"age)\b(?P<between>(?:,?[\s-]+[\w'’/+-]+){0,8}?)[\s,-]+", person!(), r"\b");
    /// "A 22-year, booked patient", "a 45-year male".
    OF_YEARS = concat!(r"\b(?P<number>\d{1,2})", hyphen!(), r"?(?P<unit>years?|yrs?|months?)(?P<between>(?:,?\s+[a-z-]+)?)[\s,]+", person!(), r"\b");
    /// "A man aged 33", "a boy, 3 years old", "a patient at the age of 14 days".
    AGED = concat!(r"\b", person!(), r"(?:\s+[\w'’-]+){0,6}?,?\s+\(?(?:aged?|at\s+(?:the|an)\s+age\s+of)\s+(?:of\s+|about\s+)?(?P<number>", number!(), r")(?:",
        hyphen!(), "*", unit!(), r")?\b");
    /// "A boy, 3 years old", "a woman of 45 years".
    BEHIND = concat!(r"\b", person!(), r"(?:,\s+|\s+\(|\s+of\s+)(?P<number>", number!(), ")", hyphen!(), "*", unit!(), r"\b");
    /// "A woman in her sixties".
    IN_DECADE = concat!(r"\b", person!(), r"(?:\s+[\w'’-]+){0,4}?,?\s+in\s+(?:his|her|their|the)\s+(?:early|mid|late)?", hyphen!(),
        r"*(?P<decade>teens|twenties|thirties|forties|fifties|sixties|seventies|eighties|nineties|[1-9]0['’]?s)\b");
    /// "A newborn", "a male neonate": no further age.
    NEWBORN = r"\b(?:an?|this|our)\s+(?:[\w-]+\s+){0,3}?(?P<person>newborn|neonate)\b";
    /// "A previously healthy woman presented": no age.
    COMES = concat!(r"^(?:an?|our|this)\s+(?:[\w-]+\s+){0,4}?", person!(),
        r"\s+(?:[\w-]+\s+){0,2}?(?:presented|presents|was\s+(?:referred|admitted|seen|brought|transferred)|attended|visited|came|consulted|complained)\b");
    /// What makes the person that follows a relative.
    RELATED = r"\b(?:his|her|their|whose|patient['’]s|patients['’])\s+(?:[\w-]+\s+){0,2}(?:an?\s+)?$";
    RELATIVE = r"^(?:brother|sister|mother|father|son|daughter|sibling|twin|cousin|uncle|aunt|nephew|niece|grandmother|grandfather|wife|husband|spouse|parent|donor)$";
    ANIMAL = r"^(?:dog|cat|horse|mare|cow|calf|bird|crane|rat|mouse|rabbit|sheep|goat|pig|monkey|parrot|tortoise|bitch|puppy|kitten|labrador|retriever|terrier|shepherd|stallion|gelding|heifer|ewe|ferret)$";
    /// Between the words of an age.
    BREED = concat!(r"\b(?:neutered|spayed|intact\s+(?:male|female)|", breed!(), r")\b");
    /// Directly behind them: "male golden retriever", but not "boy bitten by a dog".
    BREED_BEHIND = concat!(r"^\s+(?:golden\s+|german\s+|domestic\s+)?(?:", breed!(), r")\b");
    PARTICIPANT = r"\b(?:athlete|runner|cyclist|volunteer|participant|marathon\w*|triathlete)\b";
    SEX_BEHIND = r"^,?\s+(?:[\w-]+\s+)?(?:man|woman|males?|females?|boy|girl)\b";
    FEMALE = r"\b(?:woman|female|girl|lady|housewife|primigravida|multigravida|primipara|multipara)s?\b";
    MALE = r"\b(?:man|male|boy|gentleman)s?\b";

    /// A heading that numbers a patient, in plain words.
    HEADING = r"^(?:case|patient|proband)(?: report| presentation| history| no| number)? (?P<number>\d{1,2}|[ivx]{1,4}|[a-h]|one|two|three|four|five|six|seven|eight|nine|ten)\b|^(?:the )?(?P<ordinal>first|second|third|fourth|fifth|sixth) (?:case|patient)\b";
    RUN_IN = r"^\W{0,3}(?:case|patient|proband)\s+(?:(?:report|presentation)\s+)?(?:no\.?\s*)?#?(?P<number>\d{1,2}|[IVX]{1,4}|[A-H]|one|two|three|four|five|six)\s*(?:[.:;,)\x{2010}-\x{2015}-]|$)";
    IN_ABSTRACT = r"\b(?:case|patient)\s+(?P<number>\d{1,2}|I{1,3}|IV)\s*[.:]";

    TITLE_COUNT = concat!(r"\b", several!(), r"\s+(?:[\w'’-]+\s+){0,4}?", people!(), r"\b");
    SERIES_TITLE = r"\bcase[\s-]+series\b|\bseries\s+of\s+(?:[\w-]+\s+)?(?:cases|patients)\b|\bin\s+(?:[\w-]+\s+){0,2}(?:twins|siblings|brothers|sisters)\b";
    WE_REPORT = concat!(r"\b(?:we|this\s+(?:report|paper|article|study|case\s+series)|here(?:in|by)?|authors|our)\b[^.]{0,60}?\b(?:report|present|describ|experienc|encounter|document|discuss|evaluat|treat|manag)\w*\b[^.]{0,40}?\b",
        several!(), r"\s+(?:[\w'’-]+\s+){0,4}?", people!(), r"\b");
    ARE_REPORTED = concat!(r"\b", several!(), r"\s+(?:[\w'’-]+\s+){0,4}?", people!(), r"\b[^.]{0,150}?\b(?:are|were)\s+(?:(?:herein|here)\s+)?(?:presented|reported|described|evaluated|included|enrolled|examined|studied)\b");
    OUR_SEVERAL = concat!(r"\b", several!(), r"\s+of\s+our\s+(?:cases|patients)\b|\bour\s+", r"(?P<our>two|three|four|five|six)\s+(?:cases|patients)\b|\b(?P<both>both\s+(?:of\s+)?our\s+(?:cases|patients)|our\s+both\s+(?:cases|patients))\b");
    ORDINAL = r"\b(?:cases?|patients?)\s+(?:\d{1,2}\s*(?:,|and|&)\s*)?(?P<number>\d{1,2})\b|\b(?:the|our)\s+(?P<ordinal>second|third|fourth|fifth|sixth)\s+(?:case|patient)\b";
    /// Speaks of other people's cases.
    LITERATURE = r"\bet\s+al\b|\[\d|\bliterature\b|\bpreviously\s+(?:reported|published|described)\b|\breview\b|\bsearch\b|\bhave\s+been\s+(?:reported|described|published)\b|\bonly\b";
    REVIEW_BEFORE = r"(?:review|analysis|summary|overview)\b.{0,30}$";
    OF_LITERATURE = r"\b(?:literature|reported|previous|published|review|studies)\b";
    BOTH = r"\b(?:both|all|two|three|these)\s+(?:the\s+|of\s+(?:the|our)\s+|our\s+)?(?:cases|patients|children|siblings|brothers|sisters)\b|\bcases?\s+\d\s+and\s+\d\b";
    ONE_PATIENT = r"\b(?:the|our|this)\s+(?:patient|child|boy|girl|infant|neonate|baby|proband)\b(?:['’]s)?";
    PATIENTS = r"\bpatients\b";
    NUMBERED_CELL = r"^(?:case|patient)\s*(?:no\.?|number|#)?\s*(?P<number>\d{1,2}|[IVX]{1,4}|[A-H])$";
    /// Figures and tables by their numbers: "Figure 2A", "Figs. 1 and 3", "Tables 1-3".
    FIGURES = concat!(r"\bfig(?:s?\.|ures?|s)?\s*", asset_list!());
    TABLES = concat!(r"\btab(?:s?\.|les?)?\s*", asset_list!());
    LISTED = r"(?-u:\b)(?P<number>\d{1,2}|[IVX]{1,4})[a-h]{0,2}(?-u:\b)";
    NUMBER_COLUMN = r"^(?:case|patient)s?(?:\s*(?:no\.?|number|id|#))?$";
}

/// The people whom a text introduces by age or sex, in its order: no relatives and no animals.
pub fn introductions(text: &str) -> Vec<Introduction> {
    persons(text).into_iter().filter(|(_, kind)| *kind == Kind::Person).map(|(introduction, _)| introduction).collect()
}

/// Whether a text introduces an animal by its age.
pub fn introduces_animal(text: &str) -> bool {
    persons(text).iter().any(|(_, kind)| *kind == Kind::Animal)
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Kind {
    Person,
    Relative,
    Animal,
}

fn persons(text: &str) -> Vec<(Introduction, Kind)> {
    let mut found: Vec<(Introduction, Kind)> = Vec::new();
    for pattern in [&OF_AGE, &OF_YEARS, &AGED, &BEHIND, &IN_DECADE, &NEWBORN, &COMES] {
        for captures in pattern.captures_iter(text) {
            let Some(whole) = captures.get(0) else { continue };
            if found.iter().all(|(known, _)| known.range.end <= whole.start() || whole.end() <= known.range.start) {
                found.push(read_introduction(text, &captures, whole.range()));
            }
        }
    }
    found.sort_by_key(|(introduction, _)| introduction.range.start);
    found
}

fn read_introduction(text: &str, captures: &Captures<'_>, range: Range<usize>) -> (Introduction, Kind) {
    let person = captures.name("person").map_or("", |person| person.as_str());
    let words = text.get(range.clone()).unwrap_or_default();
    // "A 12-year-old Malay male", "a 50-year-old male runner": what stands close behind tells too.
    let behind: String = text.get(range.end..).unwrap_or_default().chars().take(30).take_while(|c| *c != '.').collect();
    let before = text.get(..range.start).unwrap_or_default();
    let before =
        (before.len().saturating_sub(60)..=before.len()).find_map(|from| before.get(from..)).unwrap_or_default();
    let kind = if ANIMAL.is_match(person) || BREED.is_match(words) || BREED_BEHIND.is_match(&behind) {
        Kind::Animal
    } else if RELATIVE.is_match(person) || RELATED.is_match(before) {
        Kind::Relative
    } else {
        Kind::Person
    };
    let sex = |words: &str| match (FEMALE.find(words), MALE.find(words)) {
        (Some(female), Some(male)) => Some(if female.start() < male.start() { Sex::Female } else { Sex::Male }),
        (Some(_), None) => Some(Sex::Female),
        (None, Some(_)) => Some(Sex::Male),
        (None, None) => None,
    };
    let introduction = Introduction {
        age: read_age(captures, person),
        sex: sex(words).or_else(|| sex(SEX_BEHIND.find(&behind)?.as_str())),
        is_participant: PARTICIPANT.is_match(words) || PARTICIPANT.is_match(&behind),
        range,
    };
    (introduction, kind)
}

fn read_age(captures: &Captures<'_>, person: &str) -> Option<Age> {
    if let Some(decade) = captures.name("decade") {
        let words = decade.as_str().to_lowercase();
        let digits: String = words.chars().filter(char::is_ascii_digit).collect();
        const DECADES: [&str; 9] =
            ["teens", "twenties", "thirties", "forties", "fifties", "sixties", "seventies", "eighties", "nineties"];
        let named = || DECADES.iter().position(|name| *name == words).and_then(|at| u32::try_from(10 * (at + 1)).ok());
        return digits.parse().ok().or_else(named).map(Age::Decade);
    }
    let Some(number) = captures.name("number") else {
        return matches!(person.to_lowercase().as_str(), "newborn" | "neonate").then_some(Age::Newborn);
    };
    let tenths = tenths(number.as_str())?;
    let unit = captures.name("unit").map_or("years", |unit| unit.as_str()).to_lowercase();
    Some(match unit.as_bytes().first() {
        Some(b'm') => Age::Months(tenths),
        Some(b'w') => Age::Weeks(tenths),
        Some(b'd') => Age::Days(tenths),
        Some(b'h') => Age::Hours(tenths),
        _ => Age::Years(tenths),
    })
}

/// Ten times the number that digits or words say.
fn tenths(number: &str) -> Option<u32> {
    if let Some((whole, part)) = number.split_once('.') {
        return Some(whole.parse::<u32>().ok()? * 10 + part.parse::<u32>().ok()?);
    }
    small_number(number).map(|number| number * 10)
}

/// The number that digits, English words below 100 or ordinals, a Roman number below 40 or a letter say.
fn small_number(word: &str) -> Option<u32> {
    const ORDINALS: [&str; 6] = ["first", "second", "third", "fourth", "fifth", "sixth"];
    const ROMAN: [&str; 12] = ["i", "ii", "iii", "iv", "v", "vi", "vii", "viii", "ix", "x", "xi", "xii"];
    let lower = word.to_lowercase();
    if let Ok(number) = lower.parse() {
        return Some(number);
    }
    let position =
        |list: &[&str], word: &str| list.iter().position(|entry| *entry == word).and_then(|at| u32::try_from(at).ok());
    if let Some(unit) = position(&UNITS, &lower) {
        return Some(unit);
    }
    if let Some(ordinal) = position(&ORDINALS, &lower) {
        return Some(ordinal + 1);
    }
    let mut parts = lower.split(|c: char| !c.is_alphanumeric());
    if let Some(tens) = parts.next().and_then(|first| position(&TENS, first)) {
        return Some(10 * (tens + 2) + parts.next().and_then(|unit| position(&UNITS, unit)).unwrap_or(0));
    }
    position(&ROMAN, &lower).map(|at| at + 1).or_else(|| match lower.as_bytes() {
        [letter @ b'a'..=b'h'] => Some(u32::from(letter - b'a') + 1),
        _ => None,
    })
}

/// What was counted in one way, with the words.
#[derive(Clone, Debug)]
struct Count {
    by: &'static str,
    number: u32,
    words: String,
}

/// Counts the patients of an article and, where it keeps several apart, says which paragraphs, figures and tables belong to
/// whom.
pub fn series(article: &Article, roles: &[SectionRole]) -> Series {
    let mut counts: Vec<Count> = Vec::new();
    counts.extend(count_in_title(article));
    counts.extend(count_in_text(article, roles));
    counts.extend(count_in_tables(article));
    counts.extend(count_by_ordinals(article, roles));

    let by_heading = segments_by_heading(article, roles);
    let by_introduction = segments_by_introduction(article, roles);
    let told = counts.iter().map(|count| count.number).max();
    let mut patients = Vec::new();
    if by_heading.len() >= 2 {
        let labels: Vec<&str> = by_heading.iter().filter_map(|segment| segment.label.as_deref()).collect();
        counts.push(Count { by: "headings", number: as_u32(by_heading.len()), words: labels.join(", ") });
        patients = by_heading;
    } else if by_introduction.len() >= 2 && (told.is_none() || told == Some(as_u32(by_introduction.len()))) {
        let labels: Vec<&str> = by_introduction.iter().filter_map(|segment| segment.label.as_deref()).collect();
        counts.push(Count { by: "introductions", number: as_u32(by_introduction.len()), words: labels.join(" / ") });
        patients = by_introduction;
    }
    counts.retain(|count| count.number >= 2);

    let mut series = Series {
        evidence: counts.iter().map(|count| format!("{}: {} ({})", count.by, count.number, count.words)).collect(),
        ..Series::default()
    };
    if counts.is_empty() {
        count_one(article, roles, &mut series);
        return series;
    }
    series.count = PatientCount::Several;
    let numbers: BTreeSet<u32> = counts.iter().map(|count| count.number).collect();
    if numbers.len() > 1 {
        let told: Vec<String> = counts.iter().map(|count| format!("{} {}", count.by, count.number)).collect();
        series.conflicts.push(format!("numbers of patients differ: {}", told.join(", ")));
    }
    let mut is_mixed = false;
    for segment in &patients {
        if let Some(conflict) = mixed_demographics(article, segment) {
            series.conflicts.push(conflict);
            is_mixed = true;
        }
    }
    if !patients.is_empty() && !is_mixed {
        assign_assets(article, &mut patients);
        series.assignable = true;
        series.patients = patients;
    }
    series
}

fn as_u32(number: usize) -> u32 {
    u32::try_from(number).unwrap_or(u32::MAX)
}

/// The words of each sentence in the order of the text.
fn sentences_of(text: &str) -> impl Iterator<Item = &str> {
    sentences(text).into_iter().filter_map(|range| text.get(range))
}

/// Paragraphs whose role satisfies, with their positions.
fn paragraphs_of<'a>(
    article: &'a Article,
    roles: &'a [SectionRole],
    of: fn(SectionRole) -> bool,
) -> impl Iterator<Item = (usize, &'a str)> {
    let known = article.paragraphs.iter().zip(roles).enumerate();
    known
        .filter(move |(_, (_, role))| of(**role))
        .map(|(position, (paragraph, _))| (position, paragraph.passage.text.as_str()))
}

fn abstract_texts(article: &Article) -> impl Iterator<Item = &str> {
    let main = article.main_abstract.and_then(|position| article.abstracts.get(position as usize));
    main.into_iter().flat_map(|main| &main.paragraphs).map(|paragraph| paragraph.passage.text.as_str())
}

fn count_in_title(article: &Article) -> Option<Count> {
    let title =
        [article.title.as_deref(), article.subtitle.as_deref()].into_iter().flatten().collect::<Vec<_>>().join(": ");
    for captures in TITLE_COUNT.captures_iter(&title) {
        let (Some(whole), Some(number)) = (captures.get(0), captures.name("count")) else { continue };
        if !REVIEW_BEFORE.is_match(title.get(..whole.start()).unwrap_or_default())
            && !OF_LITERATURE.is_match(whole.as_str())
            && let Some(number) = small_number(number.as_str())
        {
            return Some(Count { by: "title", number, words: whole.as_str().to_owned() });
        }
    }
    let found = SERIES_TITLE.find(&title)?;
    // How many is not said: two at least.
    Some(Count { by: "title", number: 2, words: found.as_str().to_owned() })
}

fn count_in_text(article: &Article, roles: &[SectionRole]) -> Option<Count> {
    let is_own =
        |role: SectionRole| role.is_of_patient() || matches!(role, SectionRole::Introduction | SectionRole::Other);
    let body = paragraphs_of(article, roles, is_own)
        .filter(|(position, _)| {
            article.paragraphs.get(*position).is_some_and(|paragraph| paragraph.region == Region::Body)
        })
        .map(|(_, text)| text);
    for text in abstract_texts(article).chain(body) {
        for sentence in sentences_of(text).filter(|sentence| !LITERATURE.is_match(sentence)) {
            let found = WE_REPORT
                .captures(sentence)
                .or_else(|| ARE_REPORTED.captures(sentence))
                .or_else(|| OUR_SEVERAL.captures(sentence));
            let Some(captures) = found else { continue };
            let number = match captures.name("count").or_else(|| captures.name("our")) {
                Some(number) => small_number(number.as_str()),
                None => Some(2),
            };
            if let (Some(number), Some(whole)) = (number, captures.get(0)) {
                return Some(Count { by: "text", number, words: whole.as_str().to_owned() });
            }
        }
    }
    let mut in_abstract = BTreeSet::new();
    for text in abstract_texts(article) {
        in_abstract.extend(
            IN_ABSTRACT.captures_iter(text).filter_map(|captures| small_number(captures.name("number")?.as_str())),
        );
    }
    let number = as_u32(in_abstract.len());
    (number >= 2).then(|| Count { by: "abstract", number, words: "run-in headings".to_owned() })
}

fn count_by_ordinals(article: &Article, roles: &[SectionRole]) -> Option<Count> {
    let mut highest: Option<Count> = None;
    for (_, text) in paragraphs_of(article, roles, SectionRole::is_of_patient) {
        for sentence in sentences_of(text).filter(|sentence| !LITERATURE.is_match(sentence)) {
            for captures in ORDINAL.captures_iter(sentence) {
                let word = captures.name("number").or_else(|| captures.name("ordinal"));
                let (Some(number), Some(whole)) = (word.and_then(|word| small_number(word.as_str())), captures.get(0))
                else {
                    continue;
                };
                if (2..=20).contains(&number) && highest.as_ref().is_none_or(|known| known.number < number) {
                    highest = Some(Count { by: "ordinals", number, words: whole.as_str().to_owned() });
                }
            }
        }
    }
    highest
}

fn count_in_tables(article: &Article) -> Option<Count> {
    let own = |table: &&Table| {
        let caption = table.caption.iter().map(|passage| passage.text.as_str());
        let words = table.title.as_deref().into_iter().chain(caption);
        table.content == TableContent::Grid && !words.into_iter().any(|words| OF_LITERATURE.is_match(words))
    };
    let counted = article.tables.iter().filter(own).filter_map(|table| {
        let rows = table.rows();
        let numbers = |cells: &mut dyn Iterator<Item = &str>| -> BTreeSet<u32> {
            cells
                .filter_map(|cell| small_number(NUMBERED_CELL.captures(cell.trim())?.name("number")?.as_str()))
                .collect()
        };
        let first_row = rows.first()?;
        if first_row.iter().any(|cell| OF_LITERATURE.is_match(cell) || is_of_author(cell)) {
            return None;
        }
        let across = numbers(&mut first_row.iter().copied());
        let down = numbers(&mut rows.iter().filter_map(|row| row.first().copied()));
        let plain = match first_row.first() {
            Some(cell) if NUMBER_COLUMN.is_match(cell.trim()) => {
                rows.iter().skip(1).filter_map(|row| row.first()?.trim().parse().ok()).collect()
            }
            _ => BTreeSet::new(),
        };
        let number = [across, down, plain].iter().map(BTreeSet::len).max().unwrap_or(0);
        (number >= 2).then(|| Count {
            by: "table",
            number: as_u32(number),
            words: table.label.clone().unwrap_or_else(|| "without label".to_owned()),
        })
    });
    counted.max_by_key(|count| count.number)
}

fn is_of_author(cell: &str) -> bool {
    let lower = cell.to_lowercase();
    ["author", "reference", "study", "year", "publication"].iter().any(|word| lower.contains(word))
}

/// The number and words of a heading that numbers a patient.
fn numbered_heading(title: &str) -> Option<u32> {
    let words = plain_words(title);
    let captures = HEADING.captures(&words)?;
    small_number(captures.name("number").or_else(|| captures.name("ordinal"))?.as_str())
}

/// Segments under numbered headings and behind run-in ones, in the order in which they begin.
fn segments_by_heading(article: &Article, roles: &[SectionRole]) -> Vec<PatientSegment> {
    let mut order: Vec<u32> = Vec::new();
    let mut segments: BTreeMap<u32, PatientSegment> = BTreeMap::new();
    // A run-in heading holds up to the next one or the end of its section.
    let mut run_in: Option<(u32, String, Option<u32>)> = None;
    for (position, text) in paragraphs_of(article, roles, SectionRole::is_of_patient) {
        let Some(paragraph) = article.paragraphs.get(position) else { continue };
        let heading = paragraph
            .section_path
            .iter()
            .rev()
            .find_map(|title| Some((numbered_heading(title)?, title.trim().to_owned())));
        if let Some(captures) = RUN_IN.captures(text)
            && let Some(number) = captures.name("number").and_then(|number| small_number(number.as_str()))
        {
            let label = captures.get(0).map_or("", |whole| whole.as_str());
            let label = label.trim_matches(|c: char| !c.is_alphanumeric()).to_owned();
            run_in = Some((number, label, paragraph.section));
        } else if run_in.as_ref().is_some_and(|(_, _, section)| *section != paragraph.section) {
            run_in = None;
        }
        let Some((number, label)) = run_in.as_ref().map(|(number, label, _)| (*number, label.clone())).or(heading)
        else {
            continue;
        };
        if BOTH.is_match(text) {
            continue;
        }
        if !order.contains(&number) {
            order.push(number);
        }
        let segment = segments
            .entry(number)
            .or_insert_with(|| PatientSegment { label: Some(label), ..PatientSegment::default() });
        segment.paragraphs.push(as_u32(position));
    }
    numbered(order.iter().filter_map(|number| segments.remove(number)))
}

fn numbered(segments: impl Iterator<Item = PatientSegment>) -> Vec<PatientSegment> {
    segments.enumerate().map(|(position, segment)| PatientSegment { number: as_u32(position + 1), ..segment }).collect()
}

/// Segments that begin with paragraphs that introduce a person at their very beginning, each another one.
fn segments_by_introduction(article: &Article, roles: &[SectionRole]) -> Vec<PatientSegment> {
    /// Bytes in which a paragraph must introduce its patient: "Our second patient was a".
    const BEGINNING: usize = 60;
    let mut segments: Vec<PatientSegment> = Vec::new();
    let mut known: Vec<Introduction> = Vec::new();
    for (position, text) in paragraphs_of(article, roles, SectionRole::is_of_patient) {
        let first = introductions(text).into_iter().next();
        let leads = first.filter(|first| first.range.start <= BEGINNING && first.age.is_some());
        if let Some(introduction) = leads
            && known.iter().all(|other| differs(other, &introduction))
        {
            let label = text.get(introduction.range.clone()).map(str::to_owned);
            segments.push(PatientSegment { label, ..PatientSegment::default() });
            known.push(introduction);
        }
        if let Some(segment) = segments.last_mut()
            && !BOTH.is_match(text)
        {
            segment.paragraphs.push(as_u32(position));
        }
    }
    // One who is older in a later paragraph can be the same.
    let is_told_apart =
        known.iter().filter_map(|introduction| introduction.sex).collect::<BTreeSet<_>>().len() == 2 || known.len() > 2;
    let restarts = segments.len() >= 2 && (is_told_apart || all_begin_with_article(article, &segments));
    if restarts { numbered(segments.into_iter()) } else { Vec::new() }
}

/// Whether each segment begins like a report: "A", "An", "Our", "This", "The second".
fn all_begin_with_article(article: &Article, segments: &[PatientSegment]) -> bool {
    segments.iter().all(|segment| {
        let first = segment.paragraphs.first().and_then(|position| article.paragraphs.get(*position as usize));
        first.is_some_and(|paragraph| {
            let word = paragraph.passage.text.split_whitespace().next().unwrap_or_default();
            matches!(word, "A" | "An" | "Our" | "Another")
        })
    })
}

fn differs(one: &Introduction, other: &Introduction) -> bool {
    let sexes_differ = matches!((one.sex, other.sex), (Some(one), Some(other)) if one != other);
    let ages_differ = matches!((one.age, other.age), (Some(one), Some(other)) if one != other);
    sexes_differ || ages_differ
}

/// The conflict of a segment that introduces persons of both sexes.
fn mixed_demographics(article: &Article, segment: &PatientSegment) -> Option<String> {
    let mut sexes: BTreeMap<Sex, String> = BTreeMap::new();
    for position in &segment.paragraphs {
        let text = article.paragraphs.get(*position as usize)?.passage.text.as_str();
        for introduction in introductions(text) {
            if let (Some(sex), Some(words)) = (introduction.sex, text.get(introduction.range)) {
                sexes.entry(sex).or_insert_with(|| words.to_owned());
            }
        }
    }
    let label = segment.label.as_deref().unwrap_or("a segment");
    match (sexes.get(&Sex::Female), sexes.get(&Sex::Male)) {
        (Some(female), Some(male)) => Some(format!("{label} introduces two people: {female}, {male}")),
        _ => None,
    }
}

/// An article that counts nobody: one patient, nobody, or unclear.
fn count_one(article: &Article, roles: &[SectionRole], series: &mut Series) {
    let mut sexes: BTreeMap<Sex, String> = BTreeMap::new();
    let mut first: Option<String> = None;
    let mut n_singular = 0;
    let mut n_plural = 0;
    let mut participant: Option<String> = None;
    let mut is_animal = false;
    let title = article.title.as_deref().into_iter();
    let own = |role: SectionRole| !role.is_of_reasoning();
    let of_case = paragraphs_of(article, roles, SectionRole::is_of_patient).map(|(_, text)| (true, text));
    let others = paragraphs_of(article, roles, |role| !role.is_of_patient()).map(|(_, text)| (false, text));
    let in_front = title.chain(abstract_texts(article)).map(|text| (true, text));
    for (is_own, text) in in_front.chain(of_case).chain(others) {
        n_plural += PATIENTS.find_iter(text).count();
        n_singular += ONE_PATIENT.find_iter(text).count();
        if !is_own {
            continue;
        }
        is_animal |= introduces_animal(text);
        for introduction in introductions(text) {
            let Some(words) = text.get(introduction.range.clone()) else { continue };
            if introduction.is_participant {
                participant.get_or_insert_with(|| words.to_owned());
                continue;
            }
            first.get_or_insert_with(|| words.to_owned());
            if let Some(sex) = introduction.sex {
                sexes.entry(sex).or_insert_with(|| words.to_owned());
            }
        }
    }
    // "We report a 45-year-old man" may stand in the introduction alone.
    if first.is_none() {
        let is_in_body = |position: usize| {
            article.paragraphs.get(position).is_some_and(|paragraph| paragraph.region == Region::Body)
        };
        let texts = paragraphs_of(article, roles, own).filter(|(position, _)| is_in_body(*position));
        first = texts.filter(|(_, text)| !LITERATURE.is_match(text)).find_map(|(_, text)| {
            introductions(text)
                .into_iter()
                .find(|one| !one.is_participant)
                .and_then(|one| text.get(one.range))
                .map(str::to_owned)
        });
    }
    let is_of_animal = article.title.as_deref().is_some_and(introduces_animal) || first.is_none() && is_animal;
    series.count = match (&first, &participant) {
        _ if is_of_animal => {
            series.evidence.push("an animal is introduced".to_owned());
            PatientCount::NoPatient
        }
        (None, Some(words)) if n_singular == 0 => {
            series.evidence.push(format!("participant: {words}"));
            PatientCount::NoPatient
        }
        (Some(words), _) => {
            series.evidence.push(format!("introduction: {words}"));
            match (sexes.get(&Sex::Female), sexes.get(&Sex::Male)) {
                (Some(female), Some(male)) => {
                    series.conflicts.push(format!("people of both sexes are introduced: {female}, {male}"));
                    PatientCount::Unclear
                }
                _ => PatientCount::Single,
            }
        }
        (None, _) if n_singular >= 2 => {
            series.evidence.push(format!("one patient is spoken of {n_singular} times"));
            PatientCount::Single
        }
        (None, _) if n_plural > 0 || n_singular > 0 => PatientCount::Unclear,
        (None, _) => PatientCount::NoPatient,
    };
}

/// Gives figures and tables to the patients that use them, and the rest to all in general.
fn assign_assets(article: &Article, patients: &mut [PatientSegment]) {
    let (figures, tables) = numbers_in_text(article, patients);
    let (mut general_figures, mut general_tables) = (Vec::new(), Vec::new());
    for (position, figure) in article.figures.iter().enumerate() {
        let asset = Asset::of(
            figure.title.as_deref(),
            &figure.caption,
            figure.label.as_deref(),
            &figure.mentions,
            &figure.place,
        );
        let owners = asset.owners(patients, &figures);
        for index in &owners {
            if let Some(segment) = patients.get_mut(*index) {
                segment.figures.push(as_u32(position));
            }
        }
        general_figures.extend(owners.is_empty().then(|| as_u32(position)));
    }
    for (position, table) in article.tables.iter().enumerate() {
        let asset =
            Asset::of(table.title.as_deref(), &table.caption, table.label.as_deref(), &table.mentions, &table.place);
        let owners = asset.owners(patients, &tables);
        for index in &owners {
            if let Some(segment) = patients.get_mut(*index) {
                segment.tables.push(as_u32(position));
            }
        }
        general_tables.extend(owners.is_empty().then(|| as_u32(position)));
    }
    for segment in patients {
        segment.general_figures.clone_from(&general_figures);
        segment.general_tables.clone_from(&general_tables);
    }
}

/// Numbers of figures, or of tables, that the paragraphs of each patient name in plain words.
type NamedNumbers = Vec<BTreeSet<u32>>;

/// Largest part of a list of figures or tables that is a range: "Figures 1–4".
const MAX_ASSETS: u32 = 40;

fn numbers_in_text(article: &Article, patients: &[PatientSegment]) -> (NamedNumbers, NamedNumbers) {
    let of = |segment: &PatientSegment, pattern: &regex::Regex| {
        let texts = segment.paragraphs.iter().filter_map(|position| article.paragraphs.get(*position as usize));
        let found = texts.flat_map(|paragraph| pattern.captures_iter(&paragraph.passage.text));
        found.filter_map(|captures| captures.name("list")).flat_map(|list| listed_numbers(list.as_str())).collect()
    };
    let named = |pattern: &regex::Regex| patients.iter().map(|segment| of(segment, pattern)).collect();
    (named(&FIGURES), named(&TABLES))
}

/// The numbers of "2A", "1 and 3", "1-3, 5".
fn listed_numbers(list: &str) -> BTreeSet<u32> {
    let mut numbers = BTreeSet::new();
    let mut last: Option<(u32, usize)> = None;
    for captures in LISTED.captures_iter(list) {
        let (Some(whole), Some(number)) =
            (captures.get(0), captures.name("number").and_then(|word| small_number(word.as_str())))
        else {
            continue;
        };
        let joined = last.and_then(|(from, end)| Some((from, list.get(end..whole.start())?.trim())));
        match joined {
            Some((from, "-" | "\u{2010}" | "\u{2011}" | "\u{2012}" | "\u{2013}" | "\u{2014}" | "to"))
                if from < number && number - from <= MAX_ASSETS =>
            {
                numbers.extend(from..=number);
            }
            _ => {
                numbers.insert(number);
            }
        }
        last = Some((number, whole.end()));
    }
    numbers
}

/// What decides whose a figure or table is.
struct Asset<'a> {
    /// Words of title and caption.
    caption: String,
    number: Option<u32>,
    mentions: &'a [Anchor],
    place: &'a Place,
}

impl<'a> Asset<'a> {
    fn of(
        title: Option<&str>,
        caption: &[Passage],
        label: Option<&str>,
        mentions: &'a [Anchor],
        place: &'a Place,
    ) -> Self {
        let words = |text: &str| format!(" {} ", plain_words(text));
        let caption = title.into_iter().map(words).chain(caption.iter().map(|passage| words(&passage.text)));
        let number = label
            .and_then(|label| LISTED.captures(label))
            .and_then(|captures| small_number(captures.name("number")?.as_str()));
        Self { caption: caption.collect(), number, mentions, place }
    }

    /// The patients whose labels the caption names; else those whose paragraphs mention it; else the one in whose paragraphs
    /// it stands.
    fn owners(&self, patients: &[PatientSegment], named: &NamedNumbers) -> Vec<usize> {
        let is_labelled = |segment: &PatientSegment| {
            let short = segment
                .label
                .as_deref()
                .map(plain_words)
                .map(|label| label.split(' ').take(2).collect::<Vec<_>>().join(" "));
            short.is_some_and(|label| HEADING.is_match(&label) && self.caption.contains(&format!(" {label} ")))
        };
        let positions = |is_owner: &dyn Fn(usize, &PatientSegment) -> bool| -> Vec<usize> {
            patients.iter().enumerate().filter(|(index, one)| is_owner(*index, one)).map(|(index, _)| index).collect()
        };
        let labelled = positions(&|_, segment| is_labelled(segment));
        if !labelled.is_empty() {
            return labelled;
        }
        let holds = |segment: &PatientSegment, paragraph: u32| segment.paragraphs.binary_search(&paragraph).is_ok();
        let mentioned = positions(&|index, segment| {
            self.mentions.iter().any(|anchor| holds(segment, anchor.paragraph))
                || self.number.is_some_and(|number| named.get(index).is_some_and(|named| named.contains(&number)))
        });
        if !mentioned.is_empty() {
            return mentioned;
        }
        positions(&|_, segment| self.place.paragraph.is_some_and(|paragraph| holds(segment, paragraph)))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::record::article::Paragraph;
    use crate::source::jats::{Limits, read};
    use crate::staging::sections::roles;
    use expect_test::expect;
    use proptest::prelude::*;
    use std::fmt::Write as _;

    fn article(title: &str, body: &str) -> Article {
        let xml = format!(
            "<article article-type=\"case-report\"><front><article-meta><title-group><article-title>{title}</article-title>\
             </title-group></article-meta></front><body>{body}</body></article>"
        );
        read(xml.as_bytes(), Limits::default()).unwrap()
    }

    fn told(title: &str, body: &str) -> String {
        let article = article(title, body);
        let series = series(&article, &roles(&article));
        let mut out = format!("{:?}{}\n", series.count, if series.assignable { ", assignable" } else { "" });
        for evidence in &series.evidence {
            writeln!(out, "by {evidence}").unwrap();
        }
        for conflict in &series.conflicts {
            writeln!(out, "conflict: {conflict}").unwrap();
        }
        for patient in &series.patients {
            let label = patient.label.as_deref().unwrap_or_default();
            writeln!(out, "{} {label}: p{:?} f{:?}", patient.number, patient.paragraphs, patient.figures).unwrap();
        }
        out
    }

    #[test]
    fn jats_14_patients_are_counted_and_never_mixed() {
        let body = "<sec><title>Case 1</title><p>A 6-month-old girl with rash.</p></sec>\
            <sec><title>Case 2</title><p>A man aged 33 with cough.</p></sec>";
        expect![[r#"
            Several, assignable
            by title: 3 (Three cases)
            by headings: 2 (Case 1, Case 2)
            conflict: numbers of patients differ: title 3, headings 2
            1 Case 1: p[0] f[]
            2 Case 2: p[1] f[]
        "#]]
        .assert_eq(&told("Three cases of X", body));
        let article = article("Three cases of X", body);
        let series = series(&article, &roles(&article));
        let people: Vec<Vec<Introduction>> = series
            .patients
            .iter()
            .map(|patient| {
                let texts =
                    patient.paragraphs.iter().map(|position| &article.paragraphs[*position as usize].passage.text);
                texts.flat_map(|text| introductions(text)).collect()
            })
            .collect();
        assert_eq!(people.iter().map(Vec::len).collect::<Vec<_>>(), [1, 1]);
        assert_eq!((people[0][0].age, people[0][0].sex), (Some(Age::Months(60)), Some(Sex::Female)));
        assert_eq!((people[1][0].age, people[1][0].sex), (Some(Age::Years(330)), Some(Sex::Male)));
    }

    #[test]
    fn ages_keep_their_units() {
        let text = "A fifteen-year-old boy, a 3.5-year-old girl, an 8-week-old infant, a 12-hour-old neonate, a man aged 33, \
                    a woman in her late sixties, a 22-year, booked patient and a boy, 4 months old. His 40-year-old \
                    brother and her mother, aged 60, were well. A 7-year-old neutered cat was not. The wound was 3 days old.";
        let told = introductions(text).into_iter().fold(String::new(), |mut out, person| {
            writeln!(out, "{}: {:?} {:?}", &text[person.range], person.age, person.sex).unwrap();
            out
        });
        expect![[r#"
            fifteen-year-old boy: Some(Years(150)) Some(Male)
            3.5-year-old girl: Some(Years(35)) Some(Female)
            8-week-old infant: Some(Weeks(80)) None
            12-hour-old neonate: Some(Hours(120)) Some(Male)
            man aged 33: Some(Years(330)) Some(Male)
            woman in her late sixties: Some(Decade(60)) Some(Female)
            22-year, booked patient: Some(Years(220)) None
            boy, 4 months: Some(Months(40)) Some(Male)
        "#]]
        .assert_eq(&told);
    }

    #[test]
    fn headings_run_in_titles_and_introductions_tell_patients_apart() {
        let figures = "<fig id=\"f1\"><label>Figure 1</label><caption><p>Chest film of patient 2.</p></caption></fig>\
            <fig id=\"f2\"><label>Figure 2</label><caption><p>Skin.</p></caption></fig>";
        let body = format!(
            "<sec><title>3. Case reports</title><p>Patient 1: A 20-year-old man had hives (<xref ref-type=\"fig\" \
             rid=\"f2\">Figure 2</xref>).</p><p>He got well.</p><p>Patient 2: A 30-year-old woman had fever.</p><p>Both \
             patients are well.</p></sec><sec><title>Discussion</title><p>Hives itch.</p></sec>{figures}"
        );
        expect![[r#"
            Several, assignable
            by title: 2 (two patients)
            by ordinals: 2 (Patient 2)
            by headings: 2 (Patient 1, Patient 2)
            1 Patient 1: p[0, 1] f[1]
            2 Patient 2: p[2] f[0]
        "#]]
        .assert_eq(&told("Hives in two patients", &body));
        let body = "<sec><title>Case report</title><p>A 20-year-old man had hives.</p><p>He got well.</p><p>A 30-year-old \
            woman had fever. Her skin was pale.</p></sec>";
        expect![[r#"
            Several, assignable
            by introductions: 2 (20-year-old man / 30-year-old woman)
            1 20-year-old man: p[0, 1] f[]
            2 30-year-old woman: p[2] f[]
        "#]]
        .assert_eq(&told("Hives", body));
        let body = "<sec><title>Case 1</title><p>A 20-year-old man had hives. A 30-year-old woman had fever.</p></sec>\
            <sec><title>Case 2</title><p>A 40-year-old man had neither.</p></sec>";
        expect![[r#"
            Several
            by headings: 2 (Case 1, Case 2)
            conflict: Case 1 introduces two people: 30-year-old woman, 20-year-old man
        "#]]
        .assert_eq(&told("Hives", body));
    }

    /// Figures and tables follow the paragraphs that name them, in plain words or by links (MTDiag, B.3).
    #[test]
    fn what_several_use_is_of_each_and_what_nobody_uses_is_general() {
        let asset = |kind: &str, element: &str, number: u32| {
            format!(
                "<{element} id=\"{kind}{number}\"><label>{kind} {number}.</label><caption><p>A picture.</p></caption></{element}>"
            )
        };
        let assets: String = (1..=5)
            .map(|number| asset("Figure", "fig", number))
            .chain((1..=3).map(|number| asset("Table", "table-wrap", number)))
            .collect();
        let body = format!(
            "<sec><title>Case series</title><p>Case Report 1</p><p>A 20-year-old man had hives (Figs. 1A, B and 3; Table 1).</p>\
             <p>CASE REPORT 2:</p><p>A 30-year-old woman had fever (Figures 2–3, <xref ref-type=\"fig\" rid=\"Figure5\">there</xref>, \
             Tables 1 and 2).</p></sec>{assets}"
        );
        let article = article("Two cases", &body);
        let told: Vec<String> = series(&article, &roles(&article))
            .patients
            .iter()
            .map(|one| {
                let label = one.label.as_deref().unwrap_or_default();
                let general = (&one.general_figures, &one.general_tables);
                format!("{label}: p{:?} f{:?} t{:?} general {general:?}", one.paragraphs, one.figures, one.tables)
            })
            .collect();
        expect![[r#"
            Case Report 1: p[0, 1] f[0, 2] t[0] general ([3], [2])
            CASE REPORT 2: p[2, 3] f[1, 2, 4] t[0, 1] general ([3], [2])"#]]
        .assert_eq(&told.join("\n"));
    }

    #[test]
    fn one_patient_stays_one() {
        let body = "<sec><title>Introduction</title><p>Two cases of hives were described before [1].</p></sec>\
            <sec><title>Case</title><p>A 20-year-old man, whose 50-year-old mother was well, had hives.</p><p>At 21 years, the man \
            was well.</p></sec><sec><title>Discussion</title><p>In 12 patients with hives, et al.</p></sec>";
        expect![[r#"
            Single
            by introduction: 20-year-old man
        "#]]
        .assert_eq(&told("Hives: a case report and review of 14 cases", body));
    }

    #[test]
    fn animals_participants_and_nobody_are_no_patients() {
        for (body, count) in [
            ("<p>A 5-year-old spayed retriever had hives.</p>", PatientCount::NoPatient),
            ("<p>Our participant was a 50-year-old male runner.</p>", PatientCount::NoPatient),
            ("<p>Genes were compared.</p>", PatientCount::NoPatient),
            ("<p>Hives were found in most patients.</p>", PatientCount::Unclear),
            ("<p>A 5-year-old boy was bitten by a dog.</p>", PatientCount::Single),
            ("<p>The patient had hives. The patient was well.</p>", PatientCount::Single),
        ] {
            let article = article("Hives", &format!("<sec><title>Case</title>{body}</sec>"));
            assert_eq!(series(&article, &roles(&article)).count, count, "{body}");
        }
    }

    #[test]
    fn a_table_with_a_place_for_each_patient_counts() {
        let table = |head: &str| {
            format!(
                "<sec><title>Cases</title><p>Both had hives.</p><table-wrap><label>Table 1</label><caption><p>{head}</p></caption>\
                 <table><tr><th>Sign</th><th>Patient 1</th><th>Patient 2</th></tr><tr><td>Hives</td><td>yes</td><td>no</td></tr>\
                 </table></table-wrap></sec>"
            )
        };
        let count = |body: &str| {
            let article = article("Hives", body);
            series(&article, &roles(&article)).count
        };
        assert_eq!(count(&table("Signs")), PatientCount::Several);
        assert_ne!(count(&table("Previously reported cases")), PatientCount::Several);
    }

    proptest! {
        #[test]
        fn any_text_can_be_counted(
            title in "\\PC{0,40}|(two|\\d|cases| |of){0,6}",
            texts in proptest::collection::vec("(\\PC|Case 1[.]|A |3-month-old |aged 3|boy|woman| |his ){0,20}", 0..5),
        ) {
            let mut article = Article { title: Some(title), ..Article::default() };
            for text in texts {
                let mut paragraph = Paragraph { section_path: vec!["Case 2".to_owned()], ..Paragraph::default() };
                paragraph.passage.text = text;
                article.paragraphs.push(paragraph);
            }
            let series = series(&article, &roles(&article));
            let mut owners = BTreeSet::new();
            for position in series.patients.iter().flat_map(|patient| &patient.paragraphs) {
                prop_assert!(owners.insert(*position), "a paragraph belongs to two patients");
            }
        }
    }
}
