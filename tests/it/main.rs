//! Integration tests: one binary, one module per concern.

mod cli;
mod readers;
mod release;
mod support;
mod vignette_labels;
