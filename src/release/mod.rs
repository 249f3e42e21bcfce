//! Releases: freezing a build into files that anyone can check, and checking them.

pub mod case;
pub mod clinmm;
mod difficulties;
pub mod freeze;
pub mod licence;
pub mod manifest;
mod media;
pub mod medrounds;
pub mod merkle;
pub mod mtdiag;
pub mod spill;
pub mod subsets;
pub mod verify;
pub mod views;

pub use freeze::{FreezeOptions, FreezeSummary, freeze};
pub use verify::{Verification, verify, verify_replies};
