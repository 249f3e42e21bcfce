//! casemill turns raw medical sources into frozen, hashed, versioned benchmark releases.
//!
//! See ARCHITECTURE.md for the code map and the invariants.

pub mod agreement;
pub mod clinical;
pub mod compare;
pub mod config;
pub mod dag;
pub mod difficulty;
pub mod engine;
pub mod env;
pub mod error;
pub mod media;
pub mod record;
pub mod release;
pub mod report;
pub mod review;
pub mod service;
pub mod slots;
pub mod source;
pub mod stage;
pub mod staging;
pub mod store;
pub mod text;
pub mod vector;
