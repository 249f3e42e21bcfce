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
    /// The class of something made of both. What is credentialed stays so even beside what nobody said anything about: a
    /// release may hold the unknown where it may not hold the credentialed.
    #[must_use]
    pub fn with(self, other: Self) -> Self {
        if self == Self::Credentialed || other == Self::Credentialed { Self::Credentialed } else { self.max(other) }
    }

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
    /// SPDX expression, or `unknown`; [`PER_RECORD`] where each record says its own.
    pub licence: String,
    pub access: Access,
    pub llm_egress: LlmEgress,
}

/// Licence of a snapshot whose records state their own. A reader puts what a record states in its place.
pub const PER_RECORD: &str = "LicenseRef-per-record";
/// Licence of a record that was read and states none: closed.
pub const UNSTATED: &str = "LicenseRef-unstated";
/// Licence of a record or file whose rights are reserved in so many words: closed.
pub const RESERVED: &str = "LicenseRef-reserved";
/// Nobody said: closed.
const UNKNOWN: &str = "unknown";

/// A licence under which both may be used: all that either demands. `unknown` with anything but a
/// closed licence is `unknown`.
pub fn both_licences(one: &str, other: &str) -> String {
    if one == UNKNOWN || other == UNKNOWN {
        // A record that is closed by its own words is not opened by one that nobody spoke for.
        let closed = [UNSTATED, RESERVED].into_iter().find(|closed| one.contains(closed) || other.contains(closed));
        return closed.unwrap_or(UNKNOWN).to_owned();
    }
    let parts = |expression: &str| -> Vec<String> {
        // An expression with alternatives is one part: `A OR B` needs its parentheses.
        let has_or = expression.split_whitespace().any(|word| word.eq_ignore_ascii_case("OR"));
        if has_or {
            let is_closed = expression.starts_with('(') && expression.ends_with(')');
            return vec![if is_closed { expression.to_owned() } else { format!("({expression})") }];
        }
        expression.split(" AND ").map(|part| part.trim().to_owned()).collect()
    };
    let mut all = parts(one);
    all.extend(parts(other));
    all.sort_unstable();
    all.dedup();
    all.join(" AND ")
}

impl Rights {
    /// Rights of a record that states a licence of its own, of a snapshot with these.
    #[must_use]
    pub fn of_record(&self, licence: &str) -> Self {
        let licence =
            if self.licence == PER_RECORD { licence.to_owned() } else { both_licences(&self.licence, licence) };
        Self { licence, ..self.clone() }
    }

    /// What may be done with something made of both: the strictest of each. The snapshot is the one of `self`.
    #[must_use]
    pub fn with(&self, other: &Self) -> Self {
        let is_unknown = [self.access, other.access].contains(&Access::Unknown);
        Self {
            snapshot: self.snapshot.clone(),
            licence: both_licences(&self.licence, &other.licence),
            access: self.access.with(other.access),
            // What nobody said anything about is sent nowhere, whatever it is joined with.
            llm_egress: if is_unknown { LlmEgress::None } else { self.llm_egress.max(other.llm_egress) },
        }
    }

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
