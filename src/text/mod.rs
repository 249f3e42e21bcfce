//! Text: normalisation for matching, sentences, and finding nearly equal texts.

pub mod clusters;
pub mod context;
pub mod differences;
pub mod grounding;
pub mod leakage;
pub mod near_join;
pub mod normalize;
pub mod number_words;
pub mod sentences;
pub mod shingles;
pub mod strict_json;

/// The text, or its first characters and `…`: at most `limit` characters together.
pub fn excerpt(text: &str, limit: usize) -> String {
    if text.char_indices().nth(limit).is_none() {
        return text.to_owned();
    }
    text.chars().take(limit.saturating_sub(1)).chain(['…']).collect()
}
