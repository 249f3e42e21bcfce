//! Where a record came from and what may be done with it.

use super::Hash;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// Who may hold the source of a record. Order: from open to closed.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum Access {
    Open,
    Registered,
    Credentialed,
    /// Nobody said; treated as closed, and never sent anywhere.
    Unknown,
}

impl Access {
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Open => "open",
            Self::Registered => "registered",
            Self::Credentialed => "credentialed",
            Self::Unknown => "unknown",
        }
    }
}

/// Which model endpoints the records of a source may reach. Order: from everywhere to nowhere.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum LlmEgress {
    Any,
    /// Endpoints under a zero-data-retention agreement.
    Zdr,
    Local,
    None,
}

/// Rights of a snapshot, from `<raw>/<source>/source.toml`.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct Rights {
    /// Name of the snapshot, `unknown` when nobody said.
    pub snapshot: String,
    /// SPDX expression, or `unknown`.
    pub licence: String,
    pub access: Access,
    pub llm_egress: LlmEgress,
}

impl Rights {
    pub fn unknown() -> Self {
        Self {
            snapshot: "unknown".to_owned(),
            licence: "unknown".to_owned(),
            access: Access::Unknown,
            llm_egress: LlmEgress::None,
        }
    }
}

/// The raw place a record was read from.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct Provenance {
    pub source: String,
    /// Path below the raw folder, with forward slashes.
    pub file: String,
    /// Line of the first byte of the raw record, from 1.
    pub line: u64,
    /// SHA-256 of the raw bytes of the record, without line end and byte-order mark.
    pub raw_sha256: Hash,
    pub rights: Rights,
}
