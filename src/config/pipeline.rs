//! `pipelines/<pipeline>.toml`: the graph of one benchmark.

use super::model::{ModelConfig, read_models};
use super::toml_file::{Located, Problems, TableReader, read_file};
use serde::Serialize;
use std::collections::BTreeMap;

/// Largest and default size of a shard (SPEC section 3).
pub const SHARD_RECORDS: u64 = 4096;
pub const SHARD_BYTES: u64 = 64 << 20;

/// A pipeline as declared; names are not resolved yet.
#[derive(Clone, Debug)]
pub struct PipelineConfig {
    /// Path as shown in messages.
    pub file: String,
    pub name: String,
    pub summary: String,
    /// The node whose records become the cases of a release.
    pub cases: Located<String>,
    /// At least so many of the sources must be there.
    pub min_sources: u64,
    pub sources: BTreeMap<String, SourceUse>,
    pub nodes: BTreeMap<String, NodeConfig>,
    /// Named subsets of the cases of a release.
    pub subsets: BTreeMap<String, SubsetConfig>,
    /// Models that model stages may ask, by name.
    pub models: BTreeMap<String, ModelConfig>,
    pub shard_records: u64,
    pub shard_bytes: u64,
}

/// A named subset of the cases: so many of them, drawn by a seed, alike in every stratum.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct SubsetConfig {
    /// Cases wanted.
    pub n: u64,
    pub seed: u64,
    /// The column of the case whose values are the strata.
    pub by: Option<String>,
    /// Cases wanted of each stratum; without it strata get cases in proportion to their size.
    pub per: BTreeMap<String, u64>,
    /// Column → the value that a case must have to be drawn.
    pub only: BTreeMap<String, String>,
    /// Parts of the subset with their sizes, which add up to `n`.
    pub parts: BTreeMap<String, u64>,
    #[serde(skip)]
    pub line: usize,
}

/// How a pipeline uses a source.
#[derive(Clone, Debug)]
pub struct SourceUse {
    /// The pipeline runs without it.
    pub optional: bool,
    pub line: usize,
}

#[derive(Clone, Debug)]
pub struct NodeConfig {
    pub name: String,
    /// Line of the node's header.
    pub line: usize,
    pub stage: Located<String>,
    /// For readers.
    pub source: Option<Located<String>>,
    /// Port → nodes; `input = …` is filed under the empty name, the stage's first port.
    pub inputs: BTreeMap<String, Vec<InputRef>>,
    pub settings: BTreeMap<String, Located<toml::Value>>,
    /// Resource → path below `pipelines/`.
    pub resources: BTreeMap<String, Located<String>>,
    pub limits: Limits,
    /// Left out when a required input is absent, instead of an error.
    pub optional: bool,
}

/// `node` or `node.port`.
#[derive(Clone, Debug, PartialEq)]
pub struct InputRef {
    pub node: String,
    pub port: Option<String>,
    pub line: usize,
}

/// What a node must keep to be committed: shares of the input records of a source that it may lose, and what its models know.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Limits {
    /// Dropped and quarantined together.
    pub max_loss: f64,
    pub max_quarantined: f64,
    /// Share of the control questions that each model of the node must answer right.
    pub min_controls: f64,
}

impl Default for Limits {
    fn default() -> Self {
        Self { max_loss: 1.0, max_quarantined: 0.05, min_controls: 0.75 }
    }
}

/// Parses and checks the shape of a pipeline file.
pub fn parse(file: &str, text: &str) -> Result<PipelineConfig, Problems> {
    let expected = file.rsplit('/').next().and_then(|name| name.strip_suffix(".toml")).unwrap_or_default().to_owned();
    read_file(file, text, |mut root| {
        let name = root.required_string("name");
        if name.value != expected && !name.value.is_empty() {
            root.problem(name.line, "name", format!("is `{}` but the file is named `{expected}`", name.value));
        }
        if !is_name(&name.value) && !name.value.is_empty() {
            root.problem(name.line, "name", "must be lower-case letters, digits and `_`");
        }
        let summary = root.required_string("summary").value;
        let cases = root.required_string("cases");
        let min_sources = root.count("min_sources").map_or(1, |count| count.value);
        let mut sources = BTreeMap::new();
        root.tables("sources", |name, mut source| {
            let optional = source.boolean("optional").is_some_and(|optional| optional.value);
            sources.insert(name.to_owned(), SourceUse { optional, line: source.line() });
            source.finish();
        });
        let (mut shard_records, mut shard_bytes) = (SHARD_RECORDS, SHARD_BYTES);
        root.table_at("shards", |mut shards| {
            for (key, limit, value) in
                [("records", SHARD_RECORDS, &mut shard_records), ("bytes", SHARD_BYTES, &mut shard_bytes)]
            {
                if let Some(found) = shards.count(key) {
                    if (1..=limit).contains(&found.value) {
                        *value = found.value;
                    } else {
                        shards.problem(found.line, key, format!("must be between 1 and {limit}"));
                    }
                }
            }
            shards.finish();
        });
        let mut subsets = BTreeMap::new();
        root.tables("subsets", |name, subset| {
            subsets.insert(name.to_owned(), read_subset(name, subset));
        });
        let models = read_models(&mut root);
        let mut nodes = BTreeMap::new();
        root.tables("nodes", |name, node| {
            nodes.insert(name.to_owned(), read_node(name, node));
        });
        if nodes.is_empty() {
            let line = root.line();
            root.problem(line, "nodes", "there is none");
        }
        root.finish();
        PipelineConfig {
            file: file.to_owned(),
            name: name.value,
            summary,
            cases,
            min_sources,
            sources,
            nodes,
            subsets,
            models,
            shard_records,
            shard_bytes,
        }
    })
}

fn read_subset(name: &str, mut subset: TableReader<'_>) -> SubsetConfig {
    let line = subset.line();
    if !is_name(name) {
        subset.problem(line, "", "the name must be lower-case letters, digits and `_`");
    }
    let n = subset.count("n");
    let seed = subset.count("seed").map_or(0, |seed| seed.value);
    let by = subset.string("by").map(|by| by.value);
    let per = sizes(&mut subset, "per");
    let parts = sizes(&mut subset, "parts");
    let mut only = BTreeMap::new();
    subset.table_at("only", |mut table| {
        for (column, value) in table.all_values() {
            match value.value.as_str() {
                Some(text) => {
                    only.insert(column, text.to_owned());
                }
                None => table.problem(value.line, &column, "must be the text that the column holds"),
            }
        }
    });
    let n_per: u64 = per.values().sum();
    if !per.is_empty() && by.is_none() {
        subset.problem(line, "per", "needs `by`, the column whose values it names");
    }
    let wanted = match n {
        Some(n) if !per.is_empty() && n.value != n_per => {
            subset.problem(n.line, "n", format!("is {}, but `per` adds up to {n_per}", n.value));
            n.value
        }
        Some(n) => n.value,
        None => n_per,
    };
    if wanted == 0 {
        subset.problem(line, "n", "a subset needs `n` or `per`, above 0");
    }
    let n_parts: u64 = parts.values().sum();
    if !parts.is_empty() && n_parts != wanted {
        subset.problem(line, "parts", format!("add up to {n_parts}, but the subset has {wanted}"));
    }
    subset.finish();
    SubsetConfig { n: wanted, seed, by, per, only, parts, line }
}

/// A table of names with whole numbers above 0.
fn sizes(subset: &mut TableReader<'_>, key: &'static str) -> BTreeMap<String, u64> {
    let mut found = BTreeMap::new();
    subset.table_at(key, |mut table| {
        for (name, value) in table.all_values() {
            match value.value.as_integer().and_then(|size| u64::try_from(size).ok()).filter(|size| *size > 0) {
                Some(size) => {
                    found.insert(name, size);
                }
                None => table.problem(value.line, &name, "must be a whole number above 0"),
            }
        }
    });
    found
}

fn read_node(name: &str, mut node: TableReader<'_>) -> NodeConfig {
    let line = node.line();
    if !is_name(name) {
        node.problem(line, "", "the name must be lower-case letters, digits and `_`");
    }
    let stage = node.string("stage").unwrap_or(Located { value: name.to_owned(), line });
    let source = node.string("source");
    let mut inputs = BTreeMap::new();
    if let Some(list) = node.strings("input") {
        inputs.insert(String::new(), references(&list));
    }
    node.table_at("inputs", |mut table| {
        for (port, list) in table.all_strings() {
            inputs.insert(port, references(&list));
        }
    });
    let mut settings = BTreeMap::new();
    node.table_at("settings", |mut table| settings.extend(table.all_values()));
    let mut resources = BTreeMap::new();
    node.table_at("resources", |mut table| {
        for (resource, mut files) in table.all_strings() {
            match (files.value.pop(), files.value.is_empty()) {
                (Some(path), true) if is_below(&path) => {
                    resources.insert(resource, Located { value: path, line: files.line });
                }
                _ => table.problem(files.line, &resource, "must be one path below `pipelines/`, with forward slashes"),
            }
        }
    });
    let default = Limits::default();
    let limits = Limits {
        max_loss: node.share("max_loss").map_or(default.max_loss, |share| share.value),
        max_quarantined: node.share("max_quarantined").map_or(default.max_quarantined, |share| share.value),
        min_controls: node.share("min_controls").map_or(default.min_controls, |share| share.value),
    };
    let optional = node.boolean("optional").is_some_and(|optional| optional.value);
    node.finish();
    NodeConfig { name: name.to_owned(), line, stage, source, inputs, settings, resources, limits, optional }
}

fn references(list: &Located<Vec<String>>) -> Vec<InputRef> {
    let reference = |text: &String| match text.split_once('.') {
        Some((node, port)) => InputRef { node: node.to_owned(), port: Some(port.to_owned()), line: list.line },
        None => InputRef { node: text.clone(), port: None, line: list.line },
    };
    list.value.iter().map(reference).collect()
}

/// A relative path that stays below its folder.
fn is_below(path: &str) -> bool {
    !path.is_empty()
        && !path.starts_with('/')
        && path.split('/').all(|part| !part.is_empty() && part != "." && part != "..")
}

fn is_name(name: &str) -> bool {
    !name.is_empty() && name.bytes().all(|byte| byte.is_ascii_lowercase() || byte.is_ascii_digit() || byte == b'_')
}
