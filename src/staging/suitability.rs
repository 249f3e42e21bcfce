//! Why an article is no case for diagnostic reasoning, by what it says of itself (ClinMM-Bench, 4.1.3 and supplement E).
//!
//! Only plain facts speak here: the kind of article, its state, its title, the number of patients. What needs judgement is
//! left to models. The patterns are data (`pipelines/rules/case_reports.toml`), with those of [`super::diagnosis`].

use std::collections::BTreeSet;

use anyhow::{Context, ensure};
use regex::{Regex, RegexBuilder};
use serde::Deserialize;

use super::sections::SectionRole;
use super::series::{PatientCount, Series};
use crate::record::article::{Article, BodyState, EditorialState, Region};

/// The version of the file that this module reads.
const VERSION: u32 = 1;
/// Fewer words than this tell nothing of the language.
const MIN_WORDS_OF_LANGUAGE: usize = 100;
/// Share of the commonest English words, in percent, below which a text is not English.
const MIN_PERCENT_ENGLISH: usize = 8;

/// A reason against an article.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Obstacle {
    /// One of [`REASONS`].
    pub reason: &'static str,
    /// The words that decided.
    pub detail: String,
}

/// Every reason, in the order in which [`obstacles`] tells them.
pub const REASONS: &[&str] = &[
    "retracted",
    "retraction_notice",
    "correction_notice",
    "concern_notice",
    "no_body",
    "not_english",
    "not_case_report",
    "review",
    "case_series",
    "treatment_focused",
    "adverse_reaction",
    "no_reasoning",
];

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct RulesFile {
    version: u32,
    article: ArticleEntry,
    obstacle: Vec<ObstacleEntry>,
    diagnosis: DiagnosisEntry,
    statement: Vec<StatementEntry>,
    excluded: Vec<ExcludedEntry>,
    title: TitleEntry,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct ArticleEntry {
    case_types: BTreeSet<String>,
    open_types: BTreeSet<String>,
    case_words: String,
    other_subjects: String,
    animal_words: String,
    reasoning: String,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct ObstacleEntry {
    id: String,
    reason: String,
    #[serde(rename = "where")]
    place: Place,
    pattern: String,
    #[serde(default)]
    unless: Option<String>,
    #[serde(default)]
    #[serde(rename = "abstract")]
    in_abstract: Option<String>,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "snake_case")]
enum Place {
    Title,
    Subjects,
    Type,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct DiagnosisEntry {
    disease: String,
    symptom: String,
    general: BTreeSet<String>,
    fillers: BTreeSet<String>,
    stops: BTreeSet<String>,
    anaphora: String,
    hedge: String,
    hedge_behind: String,
    past: String,
    own: String,
    literature: String,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct StatementEntry {
    id: String,
    strength: Strength,
    lead: String,
    #[serde(default)]
    follow: Option<String>,
    #[serde(default)]
    needs_disease: bool,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct ExcludedEntry {
    id: String,
    lead: String,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct TitleEntry {
    dropped: String,
    leaders: String,
    no_diagnosis: String,
    cuts: String,
    causes: String,
}

/// How plainly a text says that a patient has a disease.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Deserialize)]
#[serde(rename_all = "snake_case")]
pub(super) enum Strength {
    /// The name stands in a sentence about the patient.
    #[serde(skip)]
    Mentioned,
    Weak,
    Reported,
    #[serde(skip)]
    Title,
    Made,
    Final,
}

/// Rules about articles and their diagnoses, read from a file.
#[derive(Clone, Debug)]
pub struct CaseReportRules {
    case_types: BTreeSet<String>,
    open_types: BTreeSet<String>,
    case_words: Regex,
    other_subjects: Regex,
    animal_words: Regex,
    reasoning: Regex,
    obstacles: Vec<ObstacleRule>,
    pub(super) diagnosis: DiagnosisRules,
}

#[derive(Clone, Debug)]
struct ObstacleRule {
    reason: &'static str,
    place: Place,
    pattern: Regex,
    unless: Option<Regex>,
    in_abstract: Option<Regex>,
}

/// The part of the rules that [`super::diagnosis`] reads.
#[derive(Clone, Debug)]
pub(super) struct DiagnosisRules {
    pub disease: Regex,
    pub symptom: Regex,
    /// In the form in which words are compared.
    pub general: BTreeSet<String>,
    pub fillers: BTreeSet<String>,
    pub stops: BTreeSet<String>,
    pub anaphora: Regex,
    pub hedge: Regex,
    pub hedge_behind: Regex,
    pub past: Regex,
    pub own: Regex,
    pub literature: Regex,
    pub statements: Vec<StatementRule>,
    pub excluded: Vec<Regex>,
    pub dropped: Regex,
    pub leaders: Regex,
    pub no_diagnosis: Regex,
    pub cuts: Regex,
    pub causes: Regex,
}

#[derive(Clone, Debug)]
pub(super) struct StatementRule {
    pub id: String,
    pub strength: Strength,
    pub lead: Regex,
    pub follow: Option<Regex>,
    pub needs_disease: bool,
}

/// Compiles a pattern of the file: case makes no difference, and a space is any run of white space.
fn compile(id: &str, pattern: &str) -> anyhow::Result<Regex> {
    let pattern = pattern.replace(['\n', '\r'], "").replace(" ?", r"\s*").replace(' ', r"\s+");
    let compiled = RegexBuilder::new(&pattern).case_insensitive(true).size_limit(1 << 26).build();
    let compiled = compiled.with_context(|| id.to_owned())?;
    ensure!(!compiled.is_match(""), "{id}: the pattern matches empty text");
    Ok(compiled)
}

impl CaseReportRules {
    /// Reads and checks a file. `file` is its name, for messages.
    ///
    /// # Errors
    /// If the text is no TOML of this version, an id is blank or given twice, a reason is not of [`REASONS`], or a pattern
    /// does not compile or matches empty text.
    pub fn parse(file: &str, text: &str) -> anyhow::Result<Self> {
        Self::parse_text(text).with_context(|| file.to_owned())
    }

    fn parse_text(text: &str) -> anyhow::Result<Self> {
        let read: RulesFile = toml::from_str(text)?;
        ensure!(read.version == VERSION, "version {} is not known, it must be {VERSION}", read.version);
        let mut ids = BTreeSet::new();
        let named = read.obstacle.iter().map(|entry| &entry.id);
        let named = named
            .chain(read.statement.iter().map(|entry| &entry.id))
            .chain(read.excluded.iter().map(|entry| &entry.id));
        for id in named {
            ensure!(!id.trim().is_empty(), "an id is blank");
            ensure!(ids.insert(id.clone()), "id {id:?} is given twice");
        }
        let mut obstacles = Vec::new();
        for entry in read.obstacle {
            let id = entry.id;
            let reason = REASONS.iter().find(|reason| **reason == entry.reason);
            obstacles.push(ObstacleRule {
                reason: reason.with_context(|| format!("{id}: reason {:?} is not known", entry.reason))?,
                place: entry.place,
                pattern: compile(&id, &entry.pattern)?,
                unless: entry.unless.map(|pattern| compile(&id, &pattern)).transpose()?,
                in_abstract: entry.in_abstract.map(|pattern| compile(&id, &pattern)).transpose()?,
            });
        }
        let mut statements = Vec::new();
        for entry in read.statement {
            statements.push(StatementRule {
                strength: entry.strength,
                lead: compile(&entry.id, &entry.lead)?,
                follow: entry.follow.map(|pattern| compile(&entry.id, &pattern)).transpose()?,
                needs_disease: entry.needs_disease,
                id: entry.id,
            });
        }
        let (article, words, title) = (read.article, read.diagnosis, read.title);
        Ok(Self {
            case_types: article.case_types,
            open_types: article.open_types,
            case_words: compile("case_words", &article.case_words)?,
            other_subjects: compile("other_subjects", &article.other_subjects)?,
            animal_words: compile("animal_words", &article.animal_words)?,
            reasoning: compile("reasoning", &article.reasoning)?,
            obstacles,
            diagnosis: DiagnosisRules {
                disease: compile("disease", &words.disease)?,
                symptom: compile("symptom", &words.symptom)?,
                general: words.general.iter().map(|word| super::diagnosis::key_of(word)).collect(),
                fillers: words.fillers,
                stops: words.stops,
                anaphora: compile("anaphora", &words.anaphora)?,
                hedge: compile("hedge", &words.hedge)?,
                hedge_behind: compile("hedge_behind", &words.hedge_behind)?,
                past: compile("past", &words.past)?,
                own: compile("own", &words.own)?,
                literature: compile("literature", &words.literature)?,
                statements,
                excluded: read
                    .excluded
                    .iter()
                    .map(|entry| compile(&entry.id, &entry.lead))
                    .collect::<Result<_, _>>()?,
                dropped: compile("title.dropped", &title.dropped)?,
                leaders: compile("title.leaders", &title.leaders)?,
                no_diagnosis: compile("title.no_diagnosis", &title.no_diagnosis)?,
                cuts: compile("title.cuts", &title.cuts)?,
                causes: compile("title.causes", &title.causes)?,
            },
        })
    }
}

/// What speaks against an article, in the order of [`REASONS`], each reason once; nothing for one that may be fit.
pub fn obstacles(article: &Article, roles: &[SectionRole], series: &Series, rules: &CaseReportRules) -> Vec<Obstacle> {
    let mut found: Vec<Obstacle> = Vec::new();
    let mut tell = |reason: &'static str, detail: String| {
        if found.iter().all(|known| known.reason != reason) {
            found.push(Obstacle { reason, detail });
        }
    };
    if let Some(reason) = match article.editorial {
        EditorialState::Retracted => Some("retracted"),
        EditorialState::RetractionNotice => Some("retraction_notice"),
        EditorialState::CorrectionNotice => Some("correction_notice"),
        EditorialState::ConcernNotice => Some("concern_notice"),
        EditorialState::Standing | EditorialState::Corrected | EditorialState::OfConcern => None,
    } {
        tell(reason, article.editorial_evidence.first().cloned().unwrap_or_default());
    }
    if let Some(detail) = match article.body {
        BodyState::Missing => Some("there is no body"),
        BodyState::Empty => Some("the body is empty"),
        BodyState::WithoutParagraphs => Some("the body has no paragraphs"),
        BodyState::Full => None,
    } {
        tell("no_body", detail.to_owned());
    }
    let other_language = other_language(article);
    // Patients and reasoning are found by English words in a body.
    let is_read = article.body == BodyState::Full && other_language.is_none();
    if let Some(detail) = other_language {
        tell("not_english", detail);
    }
    if let Some(detail) = other_kind(article, rules) {
        tell("not_case_report", detail);
    } else if is_read && let Some(detail) = nobody_described(article, roles, series, rules) {
        tell("not_case_report", detail);
    }
    if series.count == PatientCount::Several {
        tell("case_series", series.evidence.first().cloned().unwrap_or_default());
    }
    for rule in &rules.obstacles {
        if let Some(words) = rule.applies(article) {
            tell(rule.reason, words);
        }
    }
    if is_read && lacks_reasoning(article, roles, rules) {
        tell("no_reasoning", "no discussion, and no sentence that reasons".to_owned());
    }
    found.sort_by_key(|obstacle| REASONS.iter().position(|reason| *reason == obstacle.reason));
    found
}

impl ObstacleRule {
    /// The words that decide, if the rule applies.
    fn applies(&self, article: &Article) -> Option<String> {
        let text = match self.place {
            Place::Title => [article.title.as_deref(), article.subtitle.as_deref()]
                .into_iter()
                .flatten()
                .collect::<Vec<_>>()
                .join(": "),
            Place::Subjects => article.subjects.join("; "),
            Place::Type => article.article_type.clone().unwrap_or_default(),
        };
        let found = self.pattern.find(&text)?;
        if self.unless.as_ref().is_some_and(|unless| unless.is_match(&text)) {
            return None;
        }
        if let Some(pattern) = &self.in_abstract {
            let main = article.main_abstract.and_then(|position| article.abstracts.get(position as usize));
            let is_told = match main {
                Some(main) => main.paragraphs.iter().any(|paragraph| pattern.is_match(&paragraph.passage.text)),
                None => article.paragraphs.iter().any(|paragraph| pattern.is_match(&paragraph.passage.text)),
            };
            if !is_told {
                return None;
            }
        }
        Some(found.as_str().trim().to_owned())
    }
}

/// What says that an article is of another kind.
fn other_kind(article: &Article, rules: &CaseReportRules) -> Option<String> {
    let kind = article.article_type.as_deref().unwrap_or("without type");
    let is_open = kind == "without type" || rules.open_types.contains(kind);
    let says_case = || article.subjects.iter().chain(&article.title).any(|words| rules.case_words.is_match(words));
    let is_case_report = rules.case_types.contains(kind) || is_open && says_case();
    (!is_case_report).then(|| format!("article type: {kind}"))
}

/// What says that no one patient is described.
fn nobody_described(
    article: &Article,
    roles: &[SectionRole],
    series: &Series,
    rules: &CaseReportRules,
) -> Option<String> {
    let subject = article.subjects.iter().find_map(|words| rules.other_subjects.find(words));
    if series.count == PatientCount::Unclear && series.conflicts.is_empty() {
        return Some(match subject {
            Some(words) => format!("nobody is introduced; heading: {}", words.as_str()),
            None => "nobody is introduced".to_owned(),
        });
    }
    if series.count == PatientCount::NoPatient {
        let in_body = || {
            let own = article.paragraphs.iter().zip(roles).filter(|(_, role)| role.is_of_patient());
            let texts = own.map(|(paragraph, _)| paragraph.passage.text.as_str());
            article.title.as_deref().into_iter().chain(texts).find_map(|text| rules.animal_words.find(text))
        };
        return Some(match (subject, series.evidence.first()) {
            (Some(words), _) => format!("no patient is described; heading: {}", words.as_str()),
            (None, Some(words)) => format!("no patient is described; {words}"),
            (None, None) => match in_body() {
                Some(words) => format!("no patient is described; animals: {}", words.as_str()),
                None => "no patient is described".to_owned(),
            },
        });
    }
    None
}

/// What says that an article is not in English.
fn other_language(article: &Article) -> Option<String> {
    if let Some(language) = article.language.as_deref() {
        let code = language.to_lowercase();
        let code = code.split(['-', '_']).next().unwrap_or_default().to_owned();
        if !code.is_empty() && code != "en" && code != "eng" {
            return Some(format!("xml:lang: {language}"));
        }
    }
    const COMMON: [&str; 10] = ["the", "of", "and", "to", "in", "was", "with", "a", "for", "is"];
    let mut n_words = 0;
    let mut n_common = 0;
    for paragraph in article.paragraphs.iter().filter(|paragraph| paragraph.region == Region::Body) {
        for word in paragraph.passage.text.split_whitespace() {
            n_words += 1;
            n_common += usize::from(COMMON.iter().any(|common| common.eq_ignore_ascii_case(word)));
        }
    }
    let is_other = n_words >= MIN_WORDS_OF_LANGUAGE && n_common * 100 < n_words * MIN_PERCENT_ENGLISH;
    is_other.then(|| format!("{n_common} common English words in {n_words}"))
}

fn lacks_reasoning(article: &Article, roles: &[SectionRole], rules: &CaseReportRules) -> bool {
    let has_discussion = roles.iter().any(|role| role.is_of_reasoning());
    let own = article.paragraphs.iter().zip(roles).filter(|(_, role)| role.is_of_patient() || role.is_of_reasoning());
    !has_discussion && !own.map(|(paragraph, _)| &paragraph.passage.text).any(|text| rules.reasoning.is_match(text))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::source::jats::{Limits, read};
    use crate::staging::{sections::roles, series::series};
    use expect_test::expect;
    use std::fmt::Write as _;
    use std::sync::LazyLock;

    const FILE: &str = "pipelines/rules/case_reports.toml";
    const TEXT: &str = include_str!("../../pipelines/rules/case_reports.toml");
    static RULES: LazyLock<CaseReportRules> = LazyLock::new(|| CaseReportRules::parse(FILE, TEXT).unwrap());

    const BODY: &str = "<sec><title>Case</title><p>A 40-year-old man had a red thumb.</p></sec>\
        <sec><title>Discussion</title><p>The thumb was red because of ivy.</p></sec>";

    fn told(attributes: &str, subject: &str, title: &str, body: &str) -> String {
        let xml = format!(
            "<article {attributes}><front><article-meta><article-categories><subj-group><subject>{subject}</subject></subj-group>\
             </article-categories><title-group><article-title>{title}</article-title></title-group></article-meta></front>{body}\
             </article>"
        );
        let article = read(xml.as_bytes(), Limits::default()).unwrap();
        let roles = roles(&article);
        let found = obstacles(&article, &roles, &series(&article, &roles), &RULES);
        found.iter().fold(String::new(), |mut out, obstacle| {
            assert!(REASONS.contains(&obstacle.reason));
            write!(out, "[{}: {}]", obstacle.reason, obstacle.detail).unwrap();
            out
        })
    }

    #[test]
    fn titles_tell_what_a_report_is_about() {
        let titles = [
            "Ivy dermatitis of the thumb: a case report",
            "Successful Treatment of Ivy Dermatitis with Cold Milk",
            "Anaesthetic management of a man with ivy dermatitis",
            "Dilemma in the diagnosis and management of ivy dermatitis",
            "Ivy dermatitis treated successfully with milk",
            "Amoxicillin-induced dermatitis",
            "Dermatitis related to cisplatin chemotherapy",
            "Dermatitis after influenza vaccination",
            "Exercise-induced dermatitis",
            "Three cases of ivy dermatitis",
            "Ivy dermatitis: a systematic review",
            "Ivy dermatitis: case report and review of the literature",
        ];
        let body = format!("<body>{BODY}</body>");
        let all = titles.iter().fold(String::new(), |mut out, title| {
            writeln!(out, "{title} {}", told("article-type=\"case-report\"", "Case Report", title, &body)).unwrap();
            out
        });
        expect![[r#"
            Ivy dermatitis of the thumb: a case report 
            Successful Treatment of Ivy Dermatitis with Cold Milk [treatment_focused: Successful Treatment of]
            Anaesthetic management of a man with ivy dermatitis [treatment_focused: Anaesthetic management of]
            Dilemma in the diagnosis and management of ivy dermatitis 
            Ivy dermatitis treated successfully with milk [treatment_focused: treated successfully with]
            Amoxicillin-induced dermatitis [adverse_reaction: Amoxicillin-induced]
            Dermatitis related to cisplatin chemotherapy [adverse_reaction: related to cisplatin chemotherapy]
            Dermatitis after influenza vaccination [adverse_reaction: after influenza vaccination]
            Exercise-induced dermatitis 
            Three cases of ivy dermatitis [case_series: title: 3 (Three cases)]
            Ivy dermatitis: a systematic review [review: systematic review]
            Ivy dermatitis: case report and review of the literature 
        "#]]
        .assert_eq(&all);
    }

    #[test]
    fn kind_state_language_and_body_tell() {
        let body = format!("<body>{BODY}</body>");
        let german = "<body><sec><title>Fall</title><p>".to_owned()
            + &"Ein Mann hatte einen roten Daumen. ".repeat(20)
            + "</p></sec></body>";
        let bare = "<body><sec><title>Case</title><p>A 40-year-old man had a red thumb. He was well.</p></sec></body>";
        let rows = [
            ("research-article", "Case Report", "Ivy", body.as_str()),
            ("research-article", "Research", "Ivy", body.as_str()),
            ("review-article", "Review", "Ivy", body.as_str()),
            ("case-report", "Meeting Report", "Ivy", "<body><p>Ivy was discussed. Patients came.</p></body>"),
            (
                "case-report",
                "Case Report",
                "Ivy in a dog",
                "<body><sec><title>Case</title><p>A 4-year-old male dog had hives.</p></sec></body>",
            ),
            ("retraction", "Retraction", "Retraction: Ivy", body.as_str()),
            ("correction", "Correction", "Correction: Ivy", body.as_str()),
            ("case-report", "Case Report", "Ivy", ""),
            ("case-report", "Fallbericht", "Efeu", german.as_str()),
            ("case-report", "Case Report", "Ivy", bare),
        ];
        let all = rows.iter().fold(String::new(), |mut out, (kind, subject, title, body)| {
            writeln!(out, "{kind}, {subject}: {}", told(&format!("article-type=\"{kind}\""), subject, title, body))
                .unwrap();
            out
        });
        expect![[r#"
            research-article, Case Report: 
            research-article, Research: [not_case_report: article type: research-article]
            review-article, Review: [not_case_report: article type: review-article][review: review-article]
            case-report, Meeting Report: [not_case_report: nobody is introduced; heading: Meeting][no_reasoning: no discussion, and no sentence that reasons]
            case-report, Case Report: [not_case_report: no patient is described; an animal is introduced][no_reasoning: no discussion, and no sentence that reasons]
            retraction, Retraction: [retraction_notice: article-type `retraction`][not_case_report: article type: retraction]
            correction, Correction: [correction_notice: article-type `correction`][not_case_report: article type: correction]
            case-report, Case Report: [no_body: there is no body]
            case-report, Fallbericht: [not_english: 0 common English words in 120]
            case-report, Case Report: [no_reasoning: no discussion, and no sentence that reasons]
        "#]].assert_eq(&all);
        expect!["[not_english: xml:lang: fr]"].assert_eq(&told(
            "article-type=\"case-report\" xml:lang=\"fr\"",
            "Case Report",
            "Lierre",
            &body,
        ));
    }

    #[test]
    fn files_that_cannot_be_read_are_refused() {
        let problem = |from: &str, to: &str| {
            assert!(TEXT.contains(from), "{from}");
            format!("{:#}", CaseReportRules::parse(FILE, &TEXT.replacen(from, to, 1)).unwrap_err())
        };
        assert!(problem("version = 1", "version = 9").contains("version 9 is not known"));
        assert!(problem("id = \"treated_by\"", "id = \"treatment_in_front\"").contains("is given twice"));
        assert!(problem("reason = \"review\"", "reason = \"boring\"").contains("\"boring\" is not known"));
        assert!(problem("[title]", "[title]\ncolour = 1").contains("colour"));
        assert!(problem("animal_words = '\\b(", "animal_words = '\\b((").contains("animal_words"));
        assert!(problem("animal_words = '", "animal_words = '|").contains("matches empty text"));
    }
}
