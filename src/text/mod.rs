//! Text: normalisation for matching, sentences.

pub mod normalize;
pub mod sentences;
