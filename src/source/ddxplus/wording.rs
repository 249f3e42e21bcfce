//! Names and first-person statements from the questions of the evidences table, by rules of a data file
//! (`pipelines/lexicon/ddxplus.toml`); roles of detail questions; sides of the body; questions about relatives.
//!
//! Computed once for a table, never for a row. Where no rule fits there is no statement, and the name is the question.

use super::tables::{Bilingual, Language};
use crate::error::usage;
use anyhow::Context;
use regex::Regex;
use serde::Deserialize;
use std::collections::BTreeMap;

/// The field of an experience that a detail question fills.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Role {
    /// None of them: it stays a value of its finding.
    #[default]
    Values,
    /// Character, colour, texture.
    Descriptors,
    Locality,
    Radiation,
    /// A number.
    Severity,
    /// A number.
    Precision,
    /// A number.
    OnsetSpeed,
}

/// What is said of one evidence in one language.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Wording {
    pub name: String,
    /// What a patient says whom the record calls male, and female.
    pub statement: Option<String>,
    pub statement_female: Option<String>,
}

/// The rules of the data file.
#[derive(Debug)]
pub struct WordingRules {
    hidden: Vec<String>,
    english: LanguageRules,
    french: LanguageRules,
    roles: Vec<(Role, Regex, Regex)>,
    /// Member, and questions about them; without a member, questions that are not only about relatives.
    family: Vec<FamilyRule>,
}

/// A relative whom questions are about.
#[derive(Debug)]
struct FamilyRule {
    member: Option<String>,
    english: Regex,
    french: Regex,
    /// How a finding is named where the relative is not said beside it; `{name}` is its name.
    names: Bilingual,
}

#[derive(Debug)]
struct LanguageRules {
    meanings: BTreeMap<String, String>,
    sides: Vec<Change>,
    rules: Vec<Rule>,
    statement_changes: Vec<Change>,
    name_changes: Vec<Change>,
    feminine: Vec<Change>,
    refused_statement: Regex,
    refused_name: Regex,
}

#[derive(Debug)]
struct Change {
    pattern: Regex,
    replacement: String,
}

#[derive(Debug)]
struct Rule {
    question: Regex,
    statement: Option<String>,
    name: Option<String>,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct RulesFile {
    version: u32,
    hidden: Vec<String>,
    #[serde(default, rename = "role")]
    roles: Vec<RoleEntry>,
    #[serde(default)]
    family: Vec<FamilyEntry>,
    en: LanguageEntry,
    fr: LanguageEntry,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct RoleEntry {
    role: Role,
    en: String,
    fr: String,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct FamilyEntry {
    member: Option<String>,
    en: String,
    fr: String,
    #[serde(default)]
    en_name: String,
    #[serde(default)]
    fr_name: String,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct LanguageEntry {
    refused_statement: String,
    refused_name: String,
    #[serde(default)]
    meanings: BTreeMap<String, String>,
    #[serde(default)]
    sides: Vec<[String; 2]>,
    #[serde(default)]
    statement_changes: Vec<[String; 2]>,
    #[serde(default)]
    name_changes: Vec<[String; 2]>,
    #[serde(default)]
    feminine: Vec<[String; 2]>,
    #[serde(default, rename = "rule")]
    rules: Vec<RuleEntry>,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct RuleEntry {
    question: String,
    statement: Option<String>,
    name: Option<String>,
}

/// Stands for the name of a finding.
const NAME: &str = "{name}";

impl WordingRules {
    /// Reads the data file.
    ///
    /// # Errors
    /// Not TOML of this form, or a pattern that is no regular expression.
    pub fn parse(file: &str, text: &str) -> anyhow::Result<Self> {
        let parsed: RulesFile = toml::from_str(text).map_err(|error| usage(format!("{file}: {error}")))?;
        if parsed.version != 1 {
            return Err(usage(format!("{file}: version is {}, 1 is expected", parsed.version)));
        }
        Self::compile(parsed).map_err(|error| usage(format!("{file}: {error:#}")))
    }

    fn compile(file: RulesFile) -> anyhow::Result<Self> {
        let roles = file.roles.iter().map(|entry| Ok((entry.role, pattern(&entry.en)?, pattern(&entry.fr)?)));
        let mut family = Vec::new();
        for entry in file.family {
            if entry.member.is_some() && [&entry.en_name, &entry.fr_name].iter().any(|name| !name.contains(NAME)) {
                anyhow::bail!("family: a rule with a member needs en_name and fr_name, with {NAME} in them");
            }
            family.push(FamilyRule {
                member: entry.member,
                english: pattern(&entry.en)?,
                french: pattern(&entry.fr)?,
                names: Bilingual { english: entry.en_name, french: entry.fr_name },
            });
        }
        Ok(Self {
            hidden: file.hidden,
            roles: roles.collect::<anyhow::Result<_>>()?,
            family,
            english: LanguageRules::compile(file.en)?,
            french: LanguageRules::compile(file.fr)?,
        })
    }

    fn of(&self, language: Language) -> &LanguageRules {
        match language {
            Language::English => &self.english,
            Language::French => &self.french,
        }
    }

    /// Name and statement of a question.
    pub fn wording(&self, question: &str, language: Language) -> Wording {
        let rules = self.of(language);
        let plain = plain_question(question);
        let found = rules.rules.iter().find_map(|rule| Some((rule, rule.question.captures(&plain)?)));
        let expand = |template: Option<&String>, changes: &[Change], refused: &Regex| -> Option<String> {
            let (_, captures) = found.as_ref()?;
            let mut text = String::new();
            captures.expand(template?, &mut text);
            let text = tidy(&change(text, changes));
            (!text.is_empty() && !refused.is_match(&text)).then_some(text)
        };
        let rule = found.as_ref().map(|(rule, _)| rule);
        let statement = rule.and_then(|rule| rule.statement.as_ref());
        let statement =
            expand(statement, &rules.statement_changes, &rules.refused_statement).map(|text| sentence(&text));
        let statement_female =
            statement.clone().map(|text| if rules.feminine.is_empty() { text } else { change(text, &rules.feminine) });
        let name = expand(rule.and_then(|rule| rule.name.as_ref()), &rules.name_changes, &rules.refused_name);
        Wording { name: name.unwrap_or_else(|| tidy(question)), statement, statement_female }
    }

    /// What a detail question asks for: by its English words, else by its French ones.
    pub fn role(&self, question: &Bilingual) -> Role {
        let (english, french) = (plain_question(&question.english), plain_question(&question.french));
        let by_english = self.roles.iter().find(|(_, pattern, _)| pattern.is_match(&english));
        let found = by_english.or_else(|| self.roles.iter().find(|(_, _, pattern)| pattern.is_match(&french)));
        found.map_or(Role::Values, |(role, ..)| *role)
    }

    fn family_rule(&self, question: &Bilingual) -> Option<&FamilyRule> {
        let (english, french) = (plain_question(&question.english), plain_question(&question.french));
        let by_english = self.family.iter().find(|rule| rule.english.is_match(&english));
        let found = by_english.or_else(|| self.family.iter().find(|rule| rule.french.is_match(&french)));
        found.filter(|rule| rule.member.is_some())
    }

    /// The relative whom a question is about; none where it is about the patient, or about either.
    pub fn family_member(&self, question: &Bilingual) -> Option<&str> {
        self.family_rule(question).and_then(|rule| rule.member.as_deref())
    }

    /// The name of a finding where nothing beside it says whom it is of: with the relative.
    pub fn full_name(&self, name: &str, question: &Bilingual, language: Language) -> String {
        self.family_rule(question).map_or_else(|| name.to_owned(), |rule| rule.names.get(language).replace(NAME, name))
    }

    /// Whether a meaning stands for "nothing" and is never shown.
    pub fn is_hidden(&self, meaning: &str) -> bool {
        self.hidden.iter().any(|hidden| hidden == meaning)
    }

    /// What is shown of a meaning.
    pub fn meaning(&self, meaning: &str, language: Language) -> String {
        let rules = self.of(language);
        if let Some(known) = rules.meanings.get(meaning) {
            return known.clone();
        }
        tidy(&change(meaning.to_owned(), &rules.sides))
    }
}

impl LanguageRules {
    fn compile(entry: LanguageEntry) -> anyhow::Result<Self> {
        let changes = |list: Vec<[String; 2]>| -> anyhow::Result<Vec<Change>> {
            let compile = |[from, to]: [String; 2]| Ok(Change { pattern: pattern(&from)?, replacement: to });
            list.into_iter().map(compile).collect()
        };
        let rules = entry
            .rules
            .into_iter()
            .map(|rule| Ok(Rule { question: pattern(&rule.question)?, statement: rule.statement, name: rule.name }));
        Ok(Self {
            meanings: entry.meanings,
            sides: changes(entry.sides)?,
            rules: rules.collect::<anyhow::Result<_>>()?,
            statement_changes: changes(entry.statement_changes)?,
            name_changes: changes(entry.name_changes)?,
            feminine: changes(entry.feminine)?,
            refused_statement: pattern(&entry.refused_statement)?,
            refused_name: pattern(&entry.refused_name)?,
        })
    }
}

fn pattern(pattern: &str) -> anyhow::Result<Regex> {
    Regex::new(pattern).with_context(|| format!("the pattern `{pattern}`"))
}

fn change(mut text: String, changes: &[Change]) -> String {
    for change in changes {
        if change.pattern.is_match(&text) {
            text = change.pattern.replace_all(&text, change.replacement.as_str()).into_owned();
        }
    }
    text
}

/// One blank between words, none at the ends.
fn tidy(text: &str) -> String {
    text.split_whitespace().collect::<Vec<_>>().join(" ")
}

/// A question as the patterns see it: straight apostrophes, no mark at its end.
fn plain_question(question: &str) -> String {
    tidy(&question.replace('’', "'")).trim_end_matches(['?', ':', '.', ' ']).to_owned()
}

/// With a capital and a full stop.
fn sentence(text: &str) -> String {
    let mut characters = text.chars();
    let first: String = characters.next().map(|first| first.to_uppercase().collect()).unwrap_or_default();
    let text = format!("{first}{}", characters.as_str());
    if text.ends_with(['.', '!']) { text } else { text + "." }
}
