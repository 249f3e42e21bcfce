//! Text: normalisation for matching, sentences, and finding nearly equal texts.

pub mod clusters;
pub mod context;
pub mod differences;
pub mod grounding;
pub mod leakage;
pub mod near_join;
pub mod normalize;
pub mod sentences;
pub mod shingles;
