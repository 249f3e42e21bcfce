//! Pipelines and sources as declared in TOML. This module parses and validates; it never executes.

pub mod model;
pub mod pipeline;
pub mod source;
pub mod toml_file;

pub use model::{Egress, ModelConfig, Provider, Structured};
pub use pipeline::{InputRef, Limits, NodeConfig, PipelineConfig, SourceUse, SubsetConfig};
pub use source::SourceConfig;
pub use toml_file::{Located, Problem, Problems, suggestion};

use crate::error::usage;
use crate::store::fs;
use std::path::{Path, PathBuf};

/// Where `pipelines/` and `sources/` are.
#[derive(Clone, Debug)]
pub struct Project {
    pub root: PathBuf,
}

impl Project {
    pub fn pipelines_dir(&self) -> PathBuf {
        self.root.join("pipelines")
    }

    pub fn sources_dir(&self) -> PathBuf {
        self.root.join("sources")
    }

    /// Names of the pipelines, sorted.
    pub fn pipelines(&self) -> anyhow::Result<Vec<String>> {
        names(&self.pipelines_dir())
    }

    /// Names of the sources, sorted.
    pub fn sources(&self) -> anyhow::Result<Vec<String>> {
        names(&self.sources_dir())
    }

    pub fn pipeline(&self, name: &str) -> anyhow::Result<PipelineConfig> {
        let path = self.find(&self.pipelines_dir(), name, "pipeline", &self.pipelines()?)?;
        Ok(pipeline::parse(&self.shown(&path), &fs::read_text(&path)?)?)
    }

    pub fn source(&self, name: &str) -> anyhow::Result<SourceConfig> {
        let path = self.find(&self.sources_dir(), name, "source", &self.sources()?)?;
        Ok(source::parse(&self.shown(&path), &fs::read_text(&path)?)?)
    }

    fn find(&self, folder: &Path, name: &str, what: &str, known: &[String]) -> anyhow::Result<PathBuf> {
        if known.iter().any(|known| known == name) {
            return Ok(folder.join(format!("{name}.toml")));
        }
        Err(usage(format!(
            "no {what} `{name}` in {}{}",
            folder.display(),
            suggestion(name, known.iter().map(String::as_str))
        )))
    }

    /// The path as messages show it: below the project.
    fn shown(&self, path: &Path) -> String {
        path.strip_prefix(&self.root).unwrap_or(path).display().to_string()
    }
}

fn names(folder: &Path) -> anyhow::Result<Vec<String>> {
    Ok(fs::list(folder)?.iter().filter_map(|name| name.strip_suffix(".toml").map(str::to_owned)).collect())
}
