//! Media files as they come: what a file is by its bytes, what an image holds before it is decoded, its pixels under
//! limits, a hash that finds the same picture again, and which file of a package a figure's reference means.
//!
//! Pure: bytes and names in, values out; no paths, no clock, no threads. A time limit is therefore for the caller to
//! keep, in the worker that decodes; what is bounded here is what time grows with: bytes, pixels, frames, scans.
//! Everything that stands in a file is a claim until it is checked.

pub mod decode;
pub mod files;
pub mod hash;
mod header;
pub mod kind;
pub mod probe;
pub mod strip;

#[cfg(test)]
mod tests;
