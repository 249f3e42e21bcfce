//! Why a file is not read, with the place where that shows.

use super::{Warning, WarningKind};
use serde::{Deserialize, Serialize};

/// What is wrong with a file that gives no article.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize, schemars::JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum JatsFault {
    /// More bytes than [`super::Limits::max_bytes`], or records that would repeat too many.
    TooLarge,
    /// Bytes that are not UTF-8, or another encoding is declared.
    Encoding,
    /// Not well-formed XML.
    NotXml,
    /// Well-formed, but there is no article in it.
    NotArticle,
    /// More than one article where one is expected.
    SeveralArticles,
    /// Elements, or entities within entities, nested deeper than [`super::Limits::max_depth`].
    TooDeep,
    /// Entities that grow beyond [`super::Limits::max_entity_bytes`] or contain themselves.
    EntityLimit,
}

/// A file that gives no article.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("line {line}, byte {byte}: {detail}")]
pub struct JatsError {
    pub fault: JatsFault,
    /// From 1.
    pub line: u64,
    /// From 0, in the file.
    pub byte: u64,
    /// In plain words.
    pub detail: String,
}

impl JatsError {
    /// An error at a byte of the file.
    pub(in crate::source) fn at(fault: JatsFault, source: &[u8], byte: usize, detail: impl Into<String>) -> Self {
        Self {
            fault,
            line: line_of(source, byte),
            byte: u64::try_from(byte).unwrap_or(u64::MAX),
            detail: detail.into(),
        }
    }
}

/// The line, from 1, on which a byte stands.
pub(in crate::source) fn line_of(source: &[u8], byte: usize) -> u64 {
    let before = source.get(..byte.min(source.len())).unwrap_or_default();
    let breaks = before.iter().filter(|byte| **byte == b'\n').count();
    u64::try_from(breaks).unwrap_or(u64::MAX).saturating_add(1)
}

/// More warnings of a file would only say the same.
const MAX_WARNINGS: usize = 100;

/// Adds a warning about a byte of the file.
pub(in crate::source) fn warn(
    warnings: &mut Vec<Warning>,
    source: &str,
    kind: WarningKind,
    byte: usize,
    detail: impl Into<String>,
) {
    if warnings.len() < MAX_WARNINGS {
        let line = line_of(source.as_bytes(), byte);
        warnings.push(Warning { kind, detail: detail.into(), line, byte: u32::try_from(byte).unwrap_or(u32::MAX) });
    }
}
