//! Releases: freezing a build into files that anyone can check, and checking them.

pub mod case;
mod difficulties;
pub mod freeze;
pub mod licence;
pub mod manifest;
pub mod merkle;
pub mod spill;
pub mod subsets;
pub mod verify;
pub mod views;

pub use freeze::{FreezeOptions, FreezeSummary, freeze};
pub use verify::{Verification, verify, verify_replies};
