//! What casemill asks for help: so far a text embedder, behind the feature `embedder`.

#[cfg(feature = "embedder")]
pub mod embedder;
