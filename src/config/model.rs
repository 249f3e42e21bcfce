//! `[models.NAME]` of a pipeline: which model, where, by which parameters, and what it may be sent (SPEC section 7).

use super::toml_file::{Problems, TableReader, read_file, suggestion};
use jiff::civil::Date;
use serde::{Deserialize, Serialize};
use std::collections::BTreeMap;

/// Whose protocol a model speaks.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Provider {
    /// Any server of OpenAI's chat completions.
    Openai,
    /// Anthropic's messages.
    Anthropic,
    /// No model: the built-in rules of the stage.
    Rules,
}

impl Provider {
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Openai => "openai",
            Self::Anthropic => "anthropic",
            Self::Rules => "rules",
        }
    }
}

/// Where what is sent to a model ends up. Order: from nowhere to anywhere.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Egress {
    /// This machine, or a named host of one's own.
    Local,
    /// An endpoint under a zero-data-retention agreement.
    Zdr,
    Public,
}

impl Egress {
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Local => "local",
            Self::Zdr => "zdr",
            Self::Public => "public",
        }
    }
}

/// How a reply is made to fit its JSON Schema. A server that refuses one is asked by the next.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Structured {
    /// The server enforces the schema.
    JsonSchema,
    /// The server enforces JSON; the schema is in the prompt.
    JsonObject,
    /// The schema is in the prompt, nothing is enforced.
    None,
}

impl Structured {
    pub fn as_str(self) -> &'static str {
        match self {
            Self::JsonSchema => "json_schema",
            Self::JsonObject => "json_object",
            Self::None => "none",
        }
    }
}

/// Money per million tokens.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Price {
    pub input: f64,
    pub output: f64,
}

/// Who said, and when, that an endpoint keeps nothing.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Attestation {
    pub date: Date,
    pub by: String,
    pub document: String,
}

/// A model as declared.
#[derive(Clone, Debug, PartialEq)]
pub struct ModelConfig {
    pub name: String,
    pub provider: Provider,
    /// Environment variable with the base URL, such as `http://127.0.0.1:8080/v1`.
    pub base_url_env: String,
    /// Environment variable with the key; a server of one's own may need none.
    pub key_env: Option<String>,
    /// As the server knows it.
    pub model: String,
    /// Sent only if set: some models refuse it.
    pub temperature: Option<f64>,
    pub top_p: Option<f64>,
    pub seed: Option<u64>,
    pub max_tokens: u32,
    /// A truncated reply is asked again with twice the limit, up to this one.
    pub max_tokens_ceiling: u32,
    /// What the limit is called in a request: `max_tokens` or `max_completion_tokens`.
    pub max_tokens_parameter: String,
    pub structured: Structured,
    pub price: Option<Price>,
    /// Calls in flight at once, over all nodes.
    pub concurrency: usize,
    pub requests_per_minute: Option<u32>,
    pub tokens_per_minute: Option<u64>,
    pub timeout_seconds: u64,
    /// Times that one request is sent before its call counts as unanswered.
    pub tries: u32,
    /// Answers that are asked for one call before it counts as failed: the first, and again after a truncated, empty or
    /// invalid one.
    pub answers: u32,
    pub egress: Egress,
    /// Hosts that `egress = "local"` may mean beside this machine.
    pub local_hosts: Vec<String>,
    pub attestation: Option<Attestation>,
    /// `o200k_base`, `cl100k_base` or `characters`.
    pub tokenizer: String,
    /// What the table in the file says, for `--set`.
    table: toml::Table,
}

/// Reads `[models]`.
pub(super) fn read_models(root: &mut TableReader<'_>) -> BTreeMap<String, ModelConfig> {
    let mut models = BTreeMap::new();
    root.tables("models", |name, mut table| {
        let plain = table.all_values().into_iter().map(|(key, value)| (key, value.value)).collect();
        models.insert(name.to_owned(), read_model(name, plain, table));
    });
    models
}

/// Reads a file that holds `[models.NAME]` tables and nothing else: models in place of those of a pipeline.
pub fn parse_models(file: &str, text: &str) -> Result<BTreeMap<String, ModelConfig>, Problems> {
    read_file(file, text, |mut root| {
        let models = read_models(&mut root);
        if models.is_empty() {
            root.problem(0, "models", "there is none: a file of models has tables such as [models.extractor]");
        }
        root.finish();
        models
    })
}

impl ModelConfig {
    /// The model with some keys changed, as `--set models.NAME.key=value` asks.
    pub fn with(&self, changes: toml::Table) -> Result<Self, Problems> {
        let mut table = self.table.clone();
        table.extend(changes);
        let models = toml::Table::from_iter([(self.name.clone(), toml::Value::Table(table))]);
        let text = toml::Table::from_iter([("models".to_owned(), toml::Value::Table(models))]).to_string();
        let mut changed = read_file("--set", &text, |mut root| {
            let models = read_models(&mut root);
            root.finish();
            models
        })
        // Lines would be those of a text that nobody sees.
        .map_err(|mut problems| {
            problems.0.iter_mut().for_each(|problem| problem.line = 0);
            problems
        })?;
        Ok(changed.remove(&self.name).unwrap_or_else(|| self.clone()))
    }

    /// What of a model decides its replies, beside the messages: part of the key of every call. Not in it: addresses,
    /// prices, limits of rate.
    pub fn parameters(&self) -> serde_json::Value {
        serde_json::json!({
            "max_tokens": self.max_tokens,
            "seed": self.seed,
            "structured": self.structured,
            "temperature": self.temperature,
            "top_p": self.top_p,
        })
    }
}

/// What models of a family are known to need.
struct Family {
    prefixes: &'static [&'static str],
    max_tokens_parameter: &'static str,
    tokenizer: &'static str,
}

/// By the beginning of the model's name, without a path such as `openai/`. Whatever is here can be set in the pipeline.
const FAMILIES: &[Family] = &[
    Family {
        prefixes: &["o1", "o3", "o4", "gpt-5", "gpt-6"],
        max_tokens_parameter: "max_completion_tokens",
        tokenizer: "o200k_base",
    },
    Family {
        prefixes: &["gpt-4o", "gpt-4.1", "gpt-oss", "chatgpt-4o"],
        max_tokens_parameter: "max_tokens",
        tokenizer: "o200k_base",
    },
    Family { prefixes: &["gpt-4", "gpt-3.5"], max_tokens_parameter: "max_tokens", tokenizer: "cl100k_base" },
];

/// How tokens of a prompt may be counted.
pub const TOKENIZERS: &[&str] = &["o200k_base", "cl100k_base", "characters"];

fn family(model: &str) -> (&'static str, &'static str) {
    let name = model.rsplit('/').next().unwrap_or(model);
    FAMILIES
        .iter()
        .find(|family| family.prefixes.iter().any(|prefix| name.starts_with(prefix)))
        .map_or(("max_tokens", "characters"), |family| (family.max_tokens_parameter, family.tokenizer))
}

fn read_model(name: &str, plain: toml::Table, mut table: TableReader<'_>) -> ModelConfig {
    let line = table.line();
    let provider =
        choice(&mut table, "provider", &[Provider::Openai, Provider::Anthropic, Provider::Rules], |one| one.as_str());
    if provider.is_none() && !plain.contains_key("provider") {
        table.problem(line, "provider", "is missing: openai, anthropic or rules");
    }
    let provider = provider.unwrap_or(Provider::Rules);
    let asked = provider != Provider::Rules;
    let base_url_env = table.string("base_url_env");
    let key_env = table.string("key_env").map(|key| key.value);
    let model = table.string("model");
    for (key, found) in [("base_url_env", base_url_env.is_some()), ("model", model.is_some())] {
        if asked && !found {
            table.problem(line, key, "is missing");
        }
    }
    let model = model.map(|model| model.value).unwrap_or_default();
    let (family_parameter, family_tokenizer) = family(&model);
    let max_tokens = table.positive("max_tokens", 2048);
    let price = read_price(&mut table);
    let egress = choice(&mut table, "egress", &[Egress::Local, Egress::Zdr, Egress::Public], |one| one.as_str());
    if asked && egress.is_none() && !plain.contains_key("egress") {
        table.problem(
            line,
            "egress",
            "is missing: local (this machine), zdr (zero data retention, attested) or public; it decides which records may be sent",
        );
    }
    let egress = egress.unwrap_or(Egress::Public);
    let attestation = read_attestation(&mut table);
    if egress == Egress::Zdr && attestation.is_none() {
        table.problem(
            line,
            "attestation",
            "is missing: egress `zdr` needs { date = \"YYYY-MM-DD\", by = \"…\", document = \"…\" }, who checked when that the endpoint keeps nothing",
        );
    }
    let structured =
        choice(&mut table, "structured", &[Structured::JsonSchema, Structured::JsonObject, Structured::None], |one| {
            one.as_str()
        });
    let max_tokens_parameter = named(&mut table, "max_tokens_parameter", &["max_tokens", "max_completion_tokens"]);
    let tokenizer = named(&mut table, "tokenizer", TOKENIZERS);
    let config = ModelConfig {
        name: name.to_owned(),
        provider,
        base_url_env: base_url_env.map(|text| text.value).unwrap_or_default(),
        key_env,
        temperature: number(&mut table, "temperature", 0.0..=2.0),
        top_p: number(&mut table, "top_p", 0.0..=1.0),
        seed: table.count("seed").map(|seed| seed.value),
        max_tokens,
        max_tokens_ceiling: table.positive("max_tokens_ceiling", max_tokens.saturating_mul(4)).max(max_tokens),
        max_tokens_parameter: max_tokens_parameter.unwrap_or_else(|| family_parameter.to_owned()),
        structured: structured.unwrap_or(Structured::JsonSchema),
        price,
        concurrency: table.positive("concurrency", 4) as usize,
        requests_per_minute: table.count("requests_per_minute").and_then(|n| u32::try_from(n.value).ok()),
        tokens_per_minute: table.count("tokens_per_minute").map(|n| n.value),
        timeout_seconds: u64::from(table.positive("timeout_seconds", 180)),
        tries: table.positive("tries", 6),
        answers: table.positive("answers", 3),
        egress,
        local_hosts: table.strings("local_hosts").map(|hosts| hosts.value).unwrap_or_default(),
        attestation,
        tokenizer: tokenizer.unwrap_or_else(|| family_tokenizer.to_owned()),
        model,
        table: plain,
    };
    table.finish();
    config
}

/// One of a closed list of words.
fn choice<T: Copy>(
    table: &mut TableReader<'_>,
    key: &'static str,
    known: &[T],
    name: impl Fn(T) -> &'static str,
) -> Option<T> {
    let found = table.string(key)?;
    let chosen = known.iter().copied().find(|one| name(*one) == found.value);
    if chosen.is_none() {
        let known = suggestion(&found.value, known.iter().map(|one| name(*one)));
        table.problem(found.line, key, format!("`{}` is unknown{known}", found.value));
    }
    chosen
}

fn named(table: &mut TableReader<'_>, key: &'static str, known: &[&'static str]) -> Option<String> {
    choice(table, key, known, |one| one).map(str::to_owned)
}

fn number(table: &mut TableReader<'_>, key: &'static str, range: std::ops::RangeInclusive<f64>) -> Option<f64> {
    let found = table.number(key)?;
    if !range.contains(&found.value) {
        table.problem(
            found.line,
            key,
            format!("is {}, it must be from {} to {}", found.value, range.start(), range.end()),
        );
    }
    Some(found.value)
}

fn read_price(table: &mut TableReader<'_>) -> Option<Price> {
    let mut price = None;
    table.table_at("price", |mut table| {
        let line = table.line();
        let (input, output) = (number(&mut table, "input", 0.0..=1e6), number(&mut table, "output", 0.0..=1e6));
        match (input, output) {
            (Some(input), Some(output)) => price = Some(Price { input, output }),
            _ => table.problem(line, "input", "and `output` are both needed, each money per million tokens"),
        }
        table.finish();
    });
    price
}

fn read_attestation(table: &mut TableReader<'_>) -> Option<Attestation> {
    let mut attestation = None;
    table.table_at("attestation", |mut table| {
        let (date, by, document) =
            (table.required_string("date"), table.required_string("by"), table.required_string("document"));
        match date.value.parse::<Date>() {
            Ok(parsed) => attestation = Some(Attestation { date: parsed, by: by.value, document: document.value }),
            Err(_) => table.problem(date.line, "date", format!("`{}` is not a date, YYYY-MM-DD", date.value)),
        }
        table.finish();
    });
    attestation
}

#[cfg(test)]
mod tests {
    use super::*;
    use expect_test::expect;

    fn parse(text: &str) -> Result<BTreeMap<String, ModelConfig>, Problems> {
        read_file("p.toml", text, |mut root| {
            let models = read_models(&mut root);
            root.finish();
            models
        })
    }

    #[test]
    fn what_is_wrong_with_a_model_is_named() {
        let text = "[models.a]\nprovider = 'opnai'\n[models.b]\nprovider = 'openai'\negress = 'zdr'\ntemperature = 3\n\
            max_tokens = 0\nprice = { input = 1.0 }\nkey = 'sk-1'\n";
        expect![
            "p.toml:2: models.a.provider: `opnai` is unknown; did you mean `openai`? (known: openai, anthropic, rules)"
        ]
        .assert_eq(&parse(&text[..30]).unwrap_err().to_string());
        let problems = parse(text).unwrap_err().to_string();
        for part in [
            "models.b.base_url_env: is missing",
            "models.b.model: is missing",
            "models.b.attestation: is missing: egress `zdr` needs",
            "models.b.temperature: is 3",
            "models.b.max_tokens: must be",
            "models.b.price.input: and `output` are both needed",
            "models.b.key: unknown key",
        ] {
            assert!(problems.contains(part), "{part} in\n{problems}");
        }
    }

    #[test]
    fn families_and_changes_from_the_command_line() {
        let text = "[models.a]\nprovider = 'openai'\nbase_url_env = 'URL'\negress = 'public'\nmodel = 'gpt-5-mini'\n\
            price = { input = 2, output = 8.5 }\n";
        let model = parse(text).unwrap().remove("a").unwrap();
        assert_eq!(
            (model.max_tokens_parameter.as_str(), model.tokenizer.as_str()),
            ("max_completion_tokens", "o200k_base")
        );
        assert_eq!(model.price, Some(Price { input: 2.0, output: 8.5 }));
        let change = |key: &str, value: &str| toml::Table::from_iter([(key.to_owned(), toml::Value::from(value))]);
        let other = model.with(change("model", "org/Qwen3-8B")).unwrap();
        assert_eq!((other.model.as_str(), other.max_tokens_parameter.as_str()), ("org/Qwen3-8B", "max_tokens"));
        let wrong = model.with(change("modell", "x")).unwrap_err();
        assert!(wrong.to_string().contains("did you mean `model`"), "{wrong}");
    }
}
