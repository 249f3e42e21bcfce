//! Integration tests: one binary, one module per concern.

mod bad_input;
mod cli;
mod crash;
mod determinism;
mod golden;
mod questions;
mod readers;
mod release;
mod shapes;
mod staleness;
mod support;
mod toy;
mod vignette_labels;
