//! Integration tests: one binary, one module per concern.

mod bad_input;
mod cli;
mod crash;
mod determinism;
mod fake_model;
mod fetching;
mod golden;
mod model_builds;
mod models;
mod questions;
mod readers;
mod release;
mod shapes;
mod slots;
mod specialty_labels;
mod staleness;
mod support;
mod toy;
mod vignette_labels;
