//! The manifests of a store and what goes into a fingerprint (SPEC section 3).

use crate::record::Hash;
use crate::record::ledger::SourceCounts;
use serde::{Deserialize, Serialize};
use std::collections::BTreeMap;

/// Version of everything the store writes. Part of every fingerprint.
pub const STORE_FORMAT: u32 = 1;

/// `data/work/format.json`
#[derive(Debug, Serialize, Deserialize)]
pub struct FormatFile {
    pub store_format: u32,
}

/// Everything a node's output depends on. Its hash is the fingerprint; the fields are kept so that
/// `plan` can name what changed.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Components {
    pub store_format: u32,
    pub stage: String,
    pub revision: u32,
    /// Port → hash of the JSON Schema of its rows.
    pub schemas: BTreeMap<String, Hash>,
    /// All settings, defaults filled in.
    pub settings: BTreeMap<String, serde_json::Value>,
    /// Of pipeline and stage form: where shards end, how models are used.
    pub engine: BTreeMap<String, serde_json::Value>,
    pub limit: Option<u64>,
    /// Raw files below the raw folder, `source.toml` included.
    pub raw: BTreeMap<String, Hash>,
    /// Port → the nodes it reads, in order, each with the hash over its ordered parts.
    pub inputs: BTreeMap<String, Vec<InputHash>>,
    pub resources: BTreeMap<String, Hash>,
}

#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct InputHash {
    pub node: String,
    pub hash: Hash,
}

impl Components {
    pub fn fingerprint(&self) -> anyhow::Result<Hash> {
        Hash::of_json(self)
    }

    /// What differs from an earlier build of the node, one line each, named as a curator knows it.
    pub fn changes_since(&self, old: &Self) -> Vec<String> {
        let mut changes = Vec::new();
        let mut changed = |text: String| changes.push(text);
        if self.store_format != old.store_format {
            changed(format!("store format {} → {}", old.store_format, self.store_format));
        }
        if self.stage != old.stage {
            changed(format!("stage {} → {}", old.stage, self.stage));
        } else if self.revision != old.revision {
            changed(format!("stage revision {} → {}", old.revision, self.revision));
        }
        if self.limit != old.limit {
            let show = |limit: Option<u64>| limit.map_or_else(|| "none".to_owned(), |n| n.to_string());
            changed(format!("limit {} → {}", show(old.limit), show(self.limit)));
        }
        for (prefix, old, new) in [("settings", &old.settings, &self.settings), ("engine", &old.engine, &self.engine)] {
            for (key, (before, after)) in differences(old, new) {
                changed(format!("{prefix}.{key} {} → {}", show_value(before), show_value(after)));
            }
        }
        for (port, difference) in differences(&old.schemas, &self.schemas) {
            changed(format!("record type of port {port} {}", change_word(difference)));
        }
        for (file, difference) in differences(&old.raw, &self.raw) {
            changed(format!("input {file} {}", change_word(difference)));
        }
        for (name, difference) in differences(&old.resources, &self.resources) {
            changed(format!("resource {name} {}", change_word(difference)));
        }
        for (port, (before, after)) in differences(&old.inputs, &self.inputs) {
            if input_names(before) != input_names(after) {
                changed(format!(
                    "inputs.{port} [{}] → [{}]",
                    input_names(before).join(", "),
                    input_names(after).join(", ")
                ));
                continue;
            }
            let (before, after) = (before.into_iter().flatten(), after.into_iter().flatten());
            for (before, after) in before.zip(after).filter(|(before, after)| before.hash != after.hash) {
                debug_assert_eq!(before.node, after.node);
                changed(format!("output of {} changed", after.node));
            }
        }
        changes
    }
}

type Difference<'a, T> = (Option<&'a T>, Option<&'a T>);

fn differences<'a, T: PartialEq>(
    old: &'a BTreeMap<String, T>,
    new: &'a BTreeMap<String, T>,
) -> Vec<(&'a str, Difference<'a, T>)> {
    let keys: std::collections::BTreeSet<&String> = old.keys().chain(new.keys()).collect();
    keys.into_iter()
        .map(|key| (key.as_str(), (old.get(key), new.get(key))))
        .filter(|(_, (before, after))| before != after)
        .collect()
}

fn input_names(inputs: Option<&Vec<InputHash>>) -> Vec<&str> {
    inputs.into_iter().flatten().map(|input| input.node.as_str()).collect()
}

fn change_word<T>(difference: Difference<'_, T>) -> &'static str {
    match difference {
        (None, _) => "added",
        (_, None) => "removed",
        _ => "changed",
    }
}

fn show_value(value: Option<&serde_json::Value>) -> String {
    value.map_or_else(|| "unset".to_owned(), ToString::to_string)
}

/// A file of a shard.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct ShardFile {
    pub sha256: Hash,
    pub bytes: u64,
    pub rows: u64,
}

/// `shard.json`
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct ShardManifest {
    /// `part.parquet`, `ledger.parquet`, `side-<port>.parquet`; empty side tables are not written.
    pub files: BTreeMap<String, ShardFile>,
    pub counts: SourceCounts,
    /// Derived media: hash → bytes.
    pub media: BTreeMap<String, u64>,
    /// Raw files named as media: hash → path below the raw folder.
    pub raw_media: BTreeMap<String, String>,
    /// Accepted replies: key → hash.
    pub replies: BTreeMap<Hash, Hash>,
    /// Calls without an accepted reply: key → why.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub failed_calls: BTreeMap<Hash, String>,
}

impl ShardManifest {
    pub fn rows(&self, file: &str) -> u64 {
        self.files.get(file).map_or(0, |file| file.rows)
    }
}

/// What a committed shard is to those who plan: its hash and sizes.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct ShardSummary {
    /// Hash of `shard.json`, which holds the hashes of all files.
    pub hash: Hash,
    /// Records that the node passes on from this shard's input; for a table node, rows of its own part.
    pub rows: u64,
    pub bytes: u64,
}

/// `stage.json`: written last, it commits the node.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct StageManifest {
    pub node: String,
    pub fingerprint: Hash,
    pub components: Components,
    pub shards: Vec<ShardSummary>,
    /// Hash over the ordered shards and, for a node that only selects, its input's hash.
    pub output_hash: Hash,
    pub counts: SourceCounts,
    /// Number of shards of the stream that the node passes on.
    pub n_stream_shards: u32,
    /// Side port → rows.
    pub sides: BTreeMap<String, u64>,
    /// Accepted replies: key → hash.
    pub replies: BTreeMap<Hash, Hash>,
    /// Calls without an accepted reply: key → why.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub failed_calls: BTreeMap<Hash, String>,
    /// What its models said to questions with known answers.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub controls: Vec<ControlAnswer>,
}

/// What one model said to one question with a known answer.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct ControlAnswer {
    /// Name under `[models]` of the pipeline.
    pub model: String,
    pub name: String,
    pub expected: String,
    /// Without an answer the reason why there is none.
    pub said: String,
    pub right: bool,
}

/// `current.json`: the build that a node had last, for `plan` to compare with.
#[derive(Debug, Serialize, Deserialize)]
pub struct CurrentFile {
    pub fingerprint: Hash,
}

/// Manifests as they stand on disk: pretty JSON with sorted keys and a line end.
pub fn to_json<T: Serialize>(value: &T) -> anyhow::Result<Vec<u8>> {
    let mut bytes = serde_json::to_vec_pretty(value)?;
    bytes.push(b'\n');
    Ok(bytes)
}

#[cfg(test)]
mod tests {
    use super::*;
    use expect_test::expect;

    fn components() -> Components {
        Components {
            store_format: 1,
            stage: "dedup_near".into(),
            revision: 1,
            schemas: BTreeMap::from([("records".into(), Hash::of(b"s"))]),
            settings: BTreeMap::from([("threshold".into(), 0.85.into())]),
            engine: BTreeMap::new(),
            limit: None,
            raw: BTreeMap::from([("medqa/test.jsonl".into(), Hash::of(b"1"))]),
            inputs: BTreeMap::from([(
                "records".into(),
                vec![InputHash { node: "ingest".into(), hash: Hash::of(b"i") }],
            )]),
            resources: BTreeMap::from([("lexicon.tsv".into(), Hash::of(b"l"))]),
        }
    }

    #[test]
    fn changes_are_named() {
        let old = components();
        let mut new = components();
        new.revision = 2;
        new.limit = Some(5);
        new.settings.insert("threshold".into(), 0.9.into());
        new.settings.insert("window".into(), 5.into());
        new.raw.insert("medqa/test.jsonl".into(), Hash::of(b"2"));
        new.raw.insert("medqa/train.jsonl".into(), Hash::of(b"3"));
        new.resources.insert("lexicon.tsv".into(), Hash::of(b"m"));
        new.inputs.insert("records".into(), vec![InputHash { node: "ingest".into(), hash: Hash::of(b"j") }]);
        expect![[r#"
            stage revision 1 → 2
            limit none → 5
            settings.threshold 0.85 → 0.9
            settings.window unset → 5
            input medqa/test.jsonl changed
            input medqa/train.jsonl added
            resource lexicon.tsv changed
            output of ingest changed"#]]
        .assert_eq(&new.changes_since(&old).join("\n"));
        assert_ne!(new.fingerprint().unwrap(), old.fingerprint().unwrap());
        assert!(old.changes_since(&old).is_empty());
    }
}
