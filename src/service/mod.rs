//! What casemill asks for help: models, files of public servers, and, behind the feature `embedder`, a text embedder.

pub mod ajcr;
#[cfg(feature = "embedder")]
pub mod embedder;
pub mod fetch;
pub mod http;
pub mod model;
pub mod pmc;
