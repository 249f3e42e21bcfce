//! Integration tests: one binary, one module per concern.

mod adequacy;
mod agreement;
mod bad_input;
mod cli;
mod corrections;
mod crash;
mod determinism;
mod fake_model;
mod fetching;
mod golden;
mod model_builds;
mod model_stages;
mod models;
mod questions;
mod readers;
mod release;
mod sample_replies;
mod scripted;
mod shapes;
mod slots;
mod specialty_labels;
mod staleness;
mod support;
mod toy;
mod vignette_labels;
