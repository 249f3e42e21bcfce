//! MANIFEST.json and SHA256SUMS.

use super::licence::Profile;
use super::subsets::SubsetSize;
use crate::difficulty::{Bounds, Cluster};
use crate::engine::attrition::Attrition;
use crate::record::ledger::Counts;
use crate::record::{Access, Hash};
use serde::{Deserialize, Serialize};
use std::collections::BTreeMap;

/// Version of the release layout.
pub const RELEASE_FORMAT: u32 = 1;

pub const MANIFEST: &str = "MANIFEST.json";
pub const SUMS: &str = "SHA256SUMS";

/// MANIFEST.json (SPEC section 10).
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Manifest {
    pub format: u32,
    pub pipeline: String,
    pub version: String,
    /// `YYYY-MM-DD`, or null: no clock is read.
    pub date: Option<String>,
    pub tool_version: String,
    /// Over the stages, revisions, settings and resources of all nodes.
    pub settings_hash: Hash,
    pub profile: Profile,
    pub redistributable: bool,
    /// Empty when it is redistributable.
    pub not_redistributable_because: Vec<String>,
    pub sources: Vec<ManifestSource>,
    pub nodes: Vec<ManifestNode>,
    /// Models that nodes asked, in the order of nodes; none in a build by rules.
    pub models: Vec<ManifestModel>,
    /// Prompts of those nodes.
    pub prompts: Vec<ManifestPrompt>,
    /// Who made which field, of how many cases.
    pub made_by: Vec<ManifestMaker>,
    /// What the difficulty bands were made of; null if difficulty was not estimated.
    pub difficulty: Option<ManifestDifficulty>,
    /// Records left after every node by specialty, where the source knows it (ClinMM-Bench, table D1).
    pub attrition: Vec<Attrition>,
    pub n_cases: u64,
    /// Named subsets of the cases, with their sizes.
    pub subsets: Vec<SubsetSize>,
    /// All files but MANIFEST.json and SHA256SUMS, sorted by path.
    pub files: Vec<ManifestFile>,
    pub content_hash: Hash,
}

#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct ManifestSource {
    pub name: String,
    /// The pipeline may use it, and its files were not there.
    pub absent: bool,
    pub snapshot: String,
    pub licence: String,
    pub access: Access,
    pub files: Vec<RawManifestFile>,
}

#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct RawManifestFile {
    /// Below the raw folder.
    pub path: String,
    pub sha256: Hash,
    pub bytes: u64,
}

#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct ManifestNode {
    pub node: String,
    pub stage: String,
    pub revision: u32,
    pub fingerprint: Hash,
    pub by_source: Vec<ManifestCounts>,
}

#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct ManifestModel {
    pub node: String,
    /// Name under `[models]` of the pipeline.
    pub name: String,
    pub provider: String,
    pub model: String,
    /// Temperature, seed and the like: what is part of the key of every call.
    pub parameters: serde_json::Value,
    /// Replies that the node's records were made from.
    pub n_replies: u64,
    /// Questions with known answers that the model was asked.
    pub n_controls: u64,
    pub n_controls_right: u64,
}

#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct ManifestMaker {
    pub field: String,
    /// `rules`, `reviewers`, `provider/model`, or `not_run`.
    pub by: String,
    pub n_cases: u64,
}

/// From the signals of a case to its band: scaled by `bounds`, combined, and put into the cluster that holds the score.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct ManifestDifficulty {
    /// Of the node that estimates it.
    pub settings: serde_json::Value,
    /// Records of the build with a score, and without; a profile can leave some of them out of the release.
    pub n_scored: u64,
    pub n_unscored: u64,
    pub bounds: Option<Bounds>,
    pub clusters: Vec<Cluster>,
}

#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct ManifestPrompt {
    pub node: String,
    /// Below `pipelines/`.
    pub file: String,
    pub version: u32,
    pub sha256: Hash,
}

#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct ManifestCounts {
    pub source: String,
    pub n_in: u64,
    pub n_split: u64,
    pub kept: u64,
    pub dropped: BTreeMap<String, u64>,
    pub quarantined: BTreeMap<String, u64>,
}

impl ManifestCounts {
    pub fn new(source: &str, counts: &Counts) -> Self {
        Self {
            source: source.to_owned(),
            n_in: counts.n_in,
            n_split: counts.n_split,
            kept: counts.kept,
            dropped: counts.dropped.clone(),
            quarantined: counts.quarantined.clone(),
        }
    }

    pub fn counts(&self) -> Counts {
        Counts {
            n_in: self.n_in,
            n_split: self.n_split,
            kept: self.kept,
            dropped: self.dropped.clone(),
            quarantined: self.quarantined.clone(),
        }
    }
}

#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct ManifestFile {
    /// Below the release folder, with forward slashes.
    pub path: String,
    pub sha256: Hash,
    pub bytes: u64,
    /// Of Parquet files.
    pub rows: Option<u64>,
}

/// The text of SHA256SUMS: sorted by path, LF, two blanks, no absolute paths; `sha256sum -c` reads it.
pub fn sums<'a>(files: impl IntoIterator<Item = (&'a str, &'a Hash)>) -> String {
    let mut lines: Vec<(&str, &Hash)> = files.into_iter().collect();
    lines.sort_unstable();
    lines.into_iter().map(|(path, hash)| format!("{hash}  {path}\n")).collect()
}
