//! One reader per raw format. Readers get opened files and give typed rows or a fault with its reason;
//! they know nothing of stages.

pub mod csv;
pub mod lines;
pub mod medqa;
pub mod strict_json;

use crate::record::ledger::Exit;

/// Why a raw row does not become a record.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct RowFault {
    pub exit: Exit,
    pub reason: &'static str,
    /// The number or text that decided.
    pub detail: String,
}

impl RowFault {
    pub fn quarantine(reason: &'static str, detail: impl Into<String>) -> Self {
        Self { exit: Exit::Quarantined, reason, detail: detail.into() }
    }

    pub fn drop(reason: &'static str, detail: impl Into<String>) -> Self {
        Self { exit: Exit::Dropped, reason, detail: detail.into() }
    }
}
