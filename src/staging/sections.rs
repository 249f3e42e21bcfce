//! Which part of a case report a paragraph belongs to (ClinMM-Bench, 4.1.4: what of an article becomes which field).
//!
//! The titles of the sections around a paragraph decide; their numbers and case play no part. Where an article has no
//! titles that tell, the place decides: what precedes the first introduction of a patient is introduction, what follows is
//! the case, until paragraphs speak of the literature.

use std::sync::LazyLock;

use regex::Regex;

use super::series::introductions;
use crate::record::article::{Article, Paragraph, ParagraphKind, Region};

/// What a paragraph of a case report is about.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum SectionRole {
    /// An abstract that stands in the body. The abstracts of an article are no paragraphs.
    Abstract,
    Introduction,
    /// The patient, from the complaint to the outcome, where no subsection says more.
    Case,
    History,
    /// Findings at the bedside.
    Examination,
    /// Tests of several kinds, and what was concluded from them.
    Investigations,
    Laboratory,
    Imaging,
    Pathology,
    Treatment,
    Outcome,
    Discussion,
    Conclusion,
    /// Methods, statements, back matter, and what no rule knows.
    #[default]
    Other,
}

impl SectionRole {
    /// Whether the part tells of the patient, not of the literature.
    pub fn is_of_patient(self) -> bool {
        matches!(
            self,
            Self::Case
                | Self::History
                | Self::Examination
                | Self::Investigations
                | Self::Laboratory
                | Self::Imaging
                | Self::Pathology
                | Self::Treatment
                | Self::Outcome
        )
    }

    /// Whether the part tells how what was found is to be understood.
    pub fn is_of_reasoning(self) -> bool {
        matches!(self, Self::Discussion | Self::Conclusion)
    }
}

/// Compiles a pattern of this folder's modules.
pub(super) fn fixed(pattern: &str) -> Regex {
    // The patterns are constants, and a test of their module compiles each.
    Regex::new(pattern).expect("a fixed pattern")
}

/// Names patterns, which are compiled at their first use. Case makes no difference.
macro_rules! patterns {
    ($($(#[$doc:meta])* $name:ident = $pattern:expr;)+) => {
        $($(#[$doc])* static $name: std::sync::LazyLock<regex::Regex> =
            std::sync::LazyLock::new(|| $crate::staging::sections::fixed(&format!("(?i){}", $pattern)));)+

        #[cfg(test)]
        #[test]
        fn patterns_compile() {
            for pattern in [$(&$name),+] {
                assert!(!pattern.is_match(""), "{pattern:?} matches empty text");
            }
        }
    };
}
pub(super) use patterns;

/// The words of titles, in lower case with single spaces and without numbers, by role; the first that matches decides.
static TITLES: LazyLock<Vec<(SectionRole, Regex)>> = LazyLock::new(|| {
    let patterns = [
        (SectionRole::Abstract, r"^abstract$"),
        (
            SectionRole::Case,
            r"\bcases? (reports?|presentations?|descriptions?|histor(y|ies)|summar(y|ies)|stud(y|ies)|details?|illustrations?|vignettes?|series|scenarios?)\b|\bcase and discussion\b|\b(reports?|presentations?|descriptions?) of (the |our |a |\w+ )?(cases?|patients?)\b|\bpatients? (information|presentation|description|report|characteristics|summary|and methods)\b|\bclinical (cases?|presentation|observations?|summary|report|vignette|description|course)\b|^(the |our |first|second|third|fourth|fifth|index |present )*\s*(cases?|patients?|observations?|probands?)( (no|number|report))?( ?(\d+|[ivx]+|[a-h]|one|two|three|four|five|six))?$|^(case|patient) (\d+|[ivx]+|[a-h]|one|two|three|four|five|six)\b|^subjects?$|^hospital course$",
        ),
        (
            SectionRole::Discussion,
            r"\bdiscussions?\b|^comments?$|\bcommentary\b|\breview of (the )?literature\b|\bliterature review\b|^denouement$",
        ),
        (SectionRole::Pathology, r"patholog|histolog|cytolog|biops|immunohisto|immunostain|autops|necrops|microscop"),
        (
            SectionRole::Imaging,
            r"imaging|radiolog|radiograph|ultraso|sonograph|tomograph|\bct\b|\bmri\b|\bx ?rays?\b|echocardio|endoscop|colonoscop|gastroscop|bronchoscop|angiograph|dermoscop|electrocardio|\becg\b|\beeg\b",
        ),
        (
            SectionRole::Laboratory,
            r"laborator|\bblood (tests?|work|results?)\b|biochem|serolog|microbiolog|\bgenetic|molecular|cultures?\b",
        ),
        (
            SectionRole::Introduction,
            r"introduction|\bbackground\b|^objectives?$|^aims?$|^purpose$|^context$|^preface$|^overview$|^significance$|^main points$",
        ),
        (
            SectionRole::Conclusion,
            r"\bconclu(sions?|ding)\b|^summary$|\b(learning|teaching|key|take home) (points?|messages?|lessons?)\b|\btake home\b|\blessons?\b|\bclinical (significance|implications)\b",
        ),
        (
            SectionRole::Outcome,
            r"\boutcomes?\b|follow ?up|\bprognosis\b|\bcourse\b|\b(clinical )?response\b|\bevolution\b|\bcomplications?\b|\bpostoperative\b",
        ),
        (
            SectionRole::History,
            r"\bhistory\b|\banamnes[ie]s\b|\b(chief|presenting) (complaints?|symptoms?|concerns?)\b|\bhabits\b|\bsymptoms\b",
        ),
        (
            SectionRole::Examination,
            r"\bexam(ination)?s?\b|\b(clinical|physical|bedside) findings\b|\bstatus\b|\bsigns\b",
        ),
        (
            SectionRole::Investigations,
            r"investigation|diagnos|\bwork ?up\b|\bassessments?\b|\btests?\b|\bfindings\b|\bevaluation\b",
        ),
        (
            SectionRole::Treatment,
            r"treatment|therap|\bmanagement\b|\bintervention|\bsurg(ery|ical)\b|\boperati(on|ve)\b|\bprocedures?\b|\bmedications?\b|\bdiets?\b",
        ),
    ];
    patterns.into_iter().map(|(role, pattern)| (role, fixed(pattern))).collect()
});

patterns! {
    /// Begins a closing paragraph that no title announces.
    CLOSING = r"^(?:in (?:conclusion|summary)|to (?:conclude|summari[sz]e)|we conclude)\b";
    /// Begins a paragraph that speaks of cases in general.
    GENERAL = r"^(?:this|our|the present) (?:case|report)\b|^to (?:the best of )?our knowledge\b|^in the literature\b|^discussion\b";
    /// Words that are about the patient at hand.
    PATIENT = r"\b(?:(?:the|our|this) (?:patient|child|boy|girl|man|woman|infant|neonate|baby)|he|she|his|her)\b";
}

/// The role of each paragraph of [`Article::paragraphs`], in their order.
pub fn roles(article: &Article) -> Vec<SectionRole> {
    let told: Vec<Option<SectionRole>> = article.paragraphs.iter().map(told_by_titles).collect();
    let has_case = told.iter().flatten().any(|role| role.is_of_patient());
    let by_place = if has_case { before_case(article, &told) } else { by_place(article, &told) };
    told.into_iter().zip(by_place).map(|(told, place)| told.or(place).unwrap_or_default()).collect()
}

/// The role that the titles of abstract sections tell: for the paragraphs of structured abstracts.
pub fn role_of_path(section_path: &[String]) -> Option<SectionRole> {
    let by_title: Vec<Option<SectionRole>> = section_path.iter().map(|title| role_of_title(title)).collect();
    // What stands in the introduction or discussion is of it, whatever its subsection is called.
    let framing = by_title.iter().flatten().find(|role| {
        matches!(
            role,
            SectionRole::Introduction | SectionRole::Discussion | SectionRole::Conclusion | SectionRole::Abstract
        )
    });
    framing.or(by_title.iter().rev().flatten().next()).copied()
}

fn told_by_titles(paragraph: &Paragraph) -> Option<SectionRole> {
    if paragraph.region != Region::Body || paragraph.kind == ParagraphKind::Footnote {
        return Some(SectionRole::Other);
    }
    role_of_path(&paragraph.section_path)
}

fn role_of_title(title: &str) -> Option<SectionRole> {
    let words = plain_words(title);
    TITLES.iter().find(|(_, pattern)| pattern.is_match(&words)).map(|(role, _)| *role)
}

/// The words of a title in lower case, without the numbers in front.
pub(super) fn plain_words(title: &str) -> String {
    let lower = title.to_lowercase();
    let mut words: Vec<&str> = lower.split(|c: char| !c.is_alphanumeric()).filter(|word| !word.is_empty()).collect();
    while words.len() > 1 && words.first().is_some_and(|word| is_number(word)) {
        words.remove(0);
    }
    words.join(" ")
}

/// Digits, a Roman number, or a single letter.
fn is_number(word: &str) -> bool {
    word.chars().all(|c| c.is_ascii_digit()) || word.len() == 1 || word.chars().all(|c| matches!(c, 'i' | 'v' | 'x'))
}

/// Where titles tell of a case: what stands before it without a telling title is introduction.
fn before_case(article: &Article, told: &[Option<SectionRole>]) -> Vec<Option<SectionRole>> {
    let first = told.iter().position(|role| role.is_some_and(SectionRole::is_of_patient)).unwrap_or(0);
    let untitled = |paragraph: &Paragraph| paragraph.section_path.is_empty();
    article
        .paragraphs
        .iter()
        .enumerate()
        .map(|(position, paragraph)| (position < first && untitled(paragraph)).then_some(SectionRole::Introduction))
        .collect()
}

/// Where no title tells of a case.
fn by_place(article: &Article, told: &[Option<SectionRole>]) -> Vec<Option<SectionRole>> {
    let introduces = |paragraph: &Paragraph| !introductions(&paragraph.passage.text).is_empty();
    let is_open = |position: &usize| told.get(*position).is_some_and(Option::is_none);
    let start = article
        .paragraphs
        .iter()
        .enumerate()
        .position(|(position, paragraph)| is_open(&position) && introduces(paragraph));
    let Some(start) = start else { return vec![None; told.len()] };
    let mut role = SectionRole::Case;
    let mut section = article.paragraphs.get(start).and_then(|paragraph| paragraph.section);
    article
        .paragraphs
        .iter()
        .enumerate()
        .map(|(position, paragraph)| {
            if position < start {
                return Some(SectionRole::Introduction);
            }
            let text = paragraph.passage.text.as_str();
            if CLOSING.is_match(text) && position > start {
                role = SectionRole::Conclusion;
            } else if role == SectionRole::Case && position > start && speaks_of_literature(paragraph) {
                role = SectionRole::Discussion;
            }
            if paragraph.section != section {
                // A title that tells nothing parts the case from what else the article holds.
                section = paragraph.section;
                if role == SectionRole::Case && !introduces(paragraph) && !speaks_of_patient(text) {
                    role = SectionRole::Discussion;
                }
            }
            Some(role)
        })
        .collect()
}

fn speaks_of_literature(paragraph: &Paragraph) -> bool {
    let text = paragraph.passage.text.as_str();
    let n_cited =
        paragraph.passage.mentions.iter().filter(|mention| mention.ref_type.as_deref() == Some("bibr")).count();
    GENERAL.is_match(text) || n_cited >= 2 || (n_cited == 1 && !speaks_of_patient(text))
}

fn speaks_of_patient(text: &str) -> bool {
    PATIENT.is_match(text)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::source::jats::{Limits, read};
    use expect_test::expect;
    use proptest::prelude::*;
    use std::fmt::Write as _;

    fn told(body: &str) -> String {
        let xml = format!("<article article-type=\"case-report\"><front/><body>{body}</body></article>");
        let article = read(xml.as_bytes(), Limits::default()).unwrap();
        let roles = roles(&article);
        assert_eq!(roles.len(), article.paragraphs.len());
        article.paragraphs.iter().zip(roles).fold(String::new(), |mut out, (paragraph, role)| {
            writeln!(out, "{role:?}: {}", crate::text::excerpt(&paragraph.passage.text, 40)).unwrap();
            out
        })
    }

    #[test]
    fn titles_tell_with_and_without_numbers() {
        let body = "<p>First words.</p>\
            <sec><title>I. BACKGROUND</title><p>a</p></sec>\
            <sec><title>2. Case Presentation</title><p>b</p>\
              <sec><title>2.1 Past medical history</title><p>c</p></sec>\
              <sec><title>2.2 Histopathological examination</title><p>d</p></sec>\
              <sec><title>2.3 Follow-up</title><p>e</p></sec></sec>\
            <sec><title>Case II</title><p>f</p></sec>\
            <sec><title>3) Discussion and Conclusions</title><sec><title>Imaging</title><p>g</p></sec></sec>\
            <sec><title>Ethics</title><p>h</p></sec>";
        expect![[r#"
            Introduction: First words.
            Introduction: a
            Case: b
            History: c
            Pathology: d
            Outcome: e
            Case: f
            Discussion: g
            Other: h
        "#]]
        .assert_eq(&told(body));
    }

    #[test]
    fn without_titles_the_place_tells() {
        let body = "<p>Wilson's fern is a common plant.</p>\
            <p>A 42-year-old woman came with a red thumb.</p>\
            <p>She had touched the fern. Her thumb was swollen.</p>\
            <p>Fern thumbs were described before <xref ref-type=\"bibr\" rid=\"b1\">1</xref> \
               <xref ref-type=\"bibr\" rid=\"b2\">2</xref>.</p>\
            <p>In conclusion, ferns should be left alone.</p>";
        expect![[r#"
            Introduction: Wilson's fern is a common plant.
            Case: A 42-year-old woman came with a red thu…
            Case: She had touched the fern. Her thumb was…
            Discussion: Fern thumbs were described before 1 2.
            Conclusion: In conclusion, ferns should be left alo…
        "#]]
        .assert_eq(&told(body));
        expect![[r#"
            Other: Nobody is described.
        "#]]
        .assert_eq(&told("<p>Nobody is described.</p>"));
    }

    proptest! {
        #[test]
        fn any_titles_can_be_read(titles in proptest::collection::vec("\\PC{0,12}|[0-9IVX. ]{0,4}Case", 0..6), text in "\\PC{0,40}") {
            let mut article = Article::default();
            for title in titles {
                let mut paragraph = Paragraph { section_path: vec![title], ..Paragraph::default() };
                paragraph.passage.text.clone_from(&text);
                article.paragraphs.push(paragraph);
            }
            prop_assert_eq!(roles(&article).len(), article.paragraphs.len());
        }
    }
}
