//! The stages, one file each, and their registry. A new stage is one file and one line here.

pub mod contract;
pub mod erased;

pub mod apply_corrections;
pub mod apply_decisions;
pub mod ask;
pub mod assign_specialty;
pub mod check_anchors;
pub mod check_case_leakage;
pub mod check_leakage;
pub mod check_vector_leakage;
pub mod coerce;
pub mod convert_case;
pub mod convert_report;
pub mod dedup_exact;
pub mod dedup_near;
pub mod dedup_splits;
pub mod estimate_difficulty;
pub mod extract_slots;
pub mod filter_media;
pub mod filter_vignette;
pub mod ingest_ajcr;
pub mod ingest_ddxplus;
pub mod ingest_jats;
pub mod ingest_questions;
pub mod judge_disagreement;
mod leak;
pub mod normalize_answer;
pub mod normalize_record;
pub mod prompt;
pub mod sample_answers;
pub mod score_conversion;
pub mod score_fidelity;
pub mod split_series;
pub mod suitability;
pub mod validate_articles;
pub mod validate_consensus;

#[cfg(test)]
pub mod testing;
pub mod vignette_rules;

pub use contract::*;
pub use erased::{AnyStage, Ask, CallCounts, Extras, ModelService, Origin, ShardOutput, Stream};

/// Every stage, by name.
pub const STAGES: &[StageDef] = &[
    apply_corrections::STAGE,
    apply_decisions::STAGE,
    assign_specialty::STAGE,
    check_anchors::STAGE,
    check_case_leakage::STAGE,
    check_leakage::STAGE,
    check_vector_leakage::STAGE,
    convert_case::STAGE,
    convert_report::STAGE,
    dedup_exact::STAGE,
    dedup_near::STAGE,
    dedup_splits::STAGE,
    estimate_difficulty::STAGE,
    extract_slots::STAGE,
    filter_media::STAGE,
    filter_vignette::STAGE,
    ingest_ajcr::STAGE,
    ingest_ddxplus::STAGE,
    ingest_jats::STAGE,
    ingest_questions::STAGE,
    judge_disagreement::STAGE,
    normalize_answer::STAGE,
    normalize_record::STAGE,
    sample_answers::STAGE,
    score_conversion::STAGE,
    score_fidelity::STAGE,
    split_series::STAGE,
    validate_articles::STAGE,
    validate_consensus::STAGE,
];

#[cfg(test)]
mod tests {
    use super::*;
    use crate::record::ROW_TYPES;

    #[test]
    fn the_registry_is_well_formed() {
        let names: Vec<&str> = STAGES.iter().map(|stage| stage.name).collect();
        assert!(names.is_sorted_by(|a, b| a < b), "sorted, each once: {names:?}");
        for stage in STAGES {
            assert!(stage.name.contains('_'), "{}: verb_object", stage.name);
            assert!(stage.summary.len() > 20, "{}: a summary", stage.name);
            assert!(stage.revision >= 1);
            assert!(
                stage.outputs.first().is_some_and(|port| port.kind == PortKind::Records),
                "{}: the first output is the stream",
                stage.name
            );
            for port in stage.inputs.iter().chain(stage.outputs) {
                assert!(
                    ROW_TYPES.iter().any(|row| row.name == port.row.name),
                    "{}: {} has a schema",
                    stage.name,
                    port.row.name
                );
            }
            for reason in stage.reasons {
                assert!(
                    reason.bytes().all(|byte| byte.is_ascii_lowercase() || byte.is_ascii_digit() || byte == b'_'),
                    "{}: {reason}",
                    stage.name
                );
            }
            for setting in stage.settings.names() {
                let schema = (stage.settings.json_schema)();
                assert!(
                    schema["properties"][&setting]["description"].is_string(),
                    "{}: setting `{setting}` has no docs",
                    stage.name
                );
            }
        }
    }
}
