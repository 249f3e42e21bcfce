//! What the three checks for leaks share: what happens to a record that names its diagnosis.

use super::{Cause, SideEmitter, StageArguments, Verdict};
use crate::record::RecordId;
use crate::record::ledger::ReviewRow;
use crate::text::leakage::Synonyms;
use anyhow::Context;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// What a leak does.
#[derive(Clone, Copy, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub(super) enum OnLeak {
    Drop,
    /// The record stays, flagged, and is listed for a person.
    Review,
    Keep,
}

impl OnLeak {
    /// The verdict on a record with a leak, where it leaves; a row for a person where one has to look.
    pub(super) fn act(
        self,
        reason: &'static str,
        detail: String,
        record_id: &RecordId,
        sides: &mut SideEmitter,
    ) -> Option<Verdict> {
        match self {
            Self::Drop => Some(Verdict::Drop(Cause::new(reason, detail))),
            Self::Review => {
                let (record_id, reason) = (record_id.clone(), reason.to_owned());
                sides.side("review", ReviewRow { record_id, reason, detail, related: Vec::new() });
                None
            }
            Self::Keep => None,
        }
    }
}

/// The resource `synonyms`.
pub(super) fn synonyms(arguments: &StageArguments<'_>) -> anyhow::Result<Synonyms> {
    let resources = arguments.resources;
    Synonyms::parse(resources.text("synonyms")?).with_context(|| resources.file("synonyms").to_owned())
}
