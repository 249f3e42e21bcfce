//! A validated pipeline with its raw files, resources and workspace: the ground for every command.

use super::events::Event;
use super::stream::Caches;
use crate::config::model::parse_models;
use crate::config::source::{RIGHTS_FILE, parse_rights};
use crate::config::{Located, Problem, Problems, Project, SourceConfig, suggestion};
use crate::dag::{self, Graph, Node};
use crate::error::{input, usage};
use crate::record::raw::{RawFile, RawSource};
use crate::record::{Access, Hash, Rights};
use crate::service::model::governance::widest;
use crate::service::model::{self, Models};
use crate::stage::{AnyStage, ModelService, Resources, StageArguments, StageDef};
use crate::store::raw::RawHashes;
use crate::store::replies::ReplyStore;
use crate::store::{Workspace, fs, raw};
use anyhow::Context;
use std::collections::{BTreeMap, BTreeSet};
use std::path::PathBuf;
use std::sync::{Arc, OnceLock};

/// Largest resource file.
const RESOURCE_LIMIT: u64 = 256 << 20;

pub struct SessionOptions {
    pub project: Project,
    pub workspace: Workspace,
    pub stages: &'static [StageDef],
    /// `node.key=value`
    pub set: Vec<String>,
    /// A file of `[models.NAME]` tables that takes the place of the pipeline's.
    pub models: Option<PathBuf>,
    pub limit: Option<u64>,
    pub llm: Llm,
}

/// The way to models.
pub enum Llm {
    /// Rules only.
    Off,
    /// The models of the pipeline.
    Models(model::Options),
    /// Another service, in tests.
    Service(Arc<dyn ModelService>),
}

/// A source whose files are there.
#[derive(Clone, Debug)]
pub struct FoundSource {
    pub raw: RawSource,
    /// Hash of `source.toml`, when it is there.
    pub rights_file: Option<RawFile>,
    /// Names in the folder that no pattern of the source matches.
    pub unmatched: Vec<String>,
}

pub struct Session {
    pub project: Project,
    pub workspace: Workspace,
    pub graph: Graph,
    /// Sources that are there; the others of the pipeline are optional and absent.
    pub sources: BTreeMap<String, FoundSource>,
    /// Why a node is left out of this run.
    pub absent: BTreeMap<usize, String>,
    pub limit: Option<u64>,
    /// `None` is `--llm off`.
    pub service: Option<Arc<dyn ModelService>>,
    /// The service, if it is that of the pipeline's models.
    pub models: Option<Arc<Models>>,
    pub hashes: std::sync::Mutex<RawHashes>,
    resources: Vec<NodeResources>,
    stages: Vec<OnceLock<Result<AnyStage, String>>>,
    pub(super) caches: Caches,
}

#[derive(Default)]
struct NodeResources {
    files: Resources,
    hashes: BTreeMap<String, Hash>,
}

impl Session {
    /// Reads and validates everything; nothing runs and nothing is written.
    pub fn open(pipeline: &str, options: SessionOptions) -> anyhow::Result<Self> {
        options.workspace.check_format()?;
        let mut config = options.project.pipeline(pipeline)?;
        if let Some(path) = &options.models {
            let text = fs::read_text(path).map_err(|error| usage(format!("--models: {error:#}")))?;
            config.models = parse_models(&path.display().to_string(), &text)?;
        }
        let mut of_models: BTreeMap<String, toml::Table> = BTreeMap::new();
        for text in &options.set {
            let (node, key, value) = parse_set(text)?;
            if node == "models" {
                let Some((model, key)) = key.split_once('.') else {
                    return Err(usage(format!("--set {text}: write it as models.NAME.key=value")));
                };
                of_models.entry(model.to_owned()).or_default().insert(key.to_owned(), value);
                continue;
            }
            let known = config.nodes.keys().cloned().collect::<Vec<_>>();
            let Some(node) = config.nodes.get_mut(&node) else {
                return Err(usage(format!(
                    "--set {text}: no node `{node}`{}",
                    suggestion(&node, known.iter().map(String::as_str))
                )));
            };
            node.settings.insert(key, Located { value, line: 0 });
        }
        for (name, changes) in of_models {
            let Some(model) = config.models.get(&name) else {
                let known = suggestion(&name, config.models.keys().map(String::as_str));
                return Err(usage(format!("--set models.{name}: no model `{name}`{known}")));
            };
            let changed = model.with(changes)?;
            config.models.insert(name, changed);
        }
        let graph = dag::resolve(&config, options.stages, |name| {
            options.project.source(name).map_err(|error| format!("{error:#}"))
        })?;
        let mut hashes = RawHashes::load(&options.workspace);
        let sources = find_sources(&graph, &options.workspace, &mut hashes)?;
        let absent = absent_nodes(&graph, &sources, &options.workspace)?;
        let resources = graph
            .nodes
            .iter()
            .map(|node| load_resources(&options.project, &graph, node))
            .collect::<anyhow::Result<Vec<_>>>()?;
        let stages = graph.nodes.iter().map(|_| OnceLock::new()).collect();
        let (service, models): (Option<Arc<dyn ModelService>>, _) = match options.llm {
            Llm::Off => (None, None),
            Llm::Service(service) => (Some(service), None),
            Llm::Models(llm) => {
                let asking = graph.nodes.iter().enumerate().filter(|(index, _)| !absent.contains_key(index));
                let used: Vec<String> = asking.flat_map(|(_, node)| node.models(&graph.models)).collect();
                let store = Arc::new(ReplyStore::new(options.workspace.replies_dir()));
                let variable = |name: &str| std::env::var(name).ok();
                let models = Arc::new(Models::open(&graph.models, &used, store, llm, variable)?);
                (Some(models.clone()), Some(models))
            }
        };
        Ok(Self {
            project: options.project,
            workspace: options.workspace,
            graph,
            sources,
            absent,
            limit: options.limit,
            service,
            models,
            hashes: std::sync::Mutex::new(hashes),
            resources,
            stages,
            caches: Caches::default(),
        })
    }

    pub fn node(&self, index: usize) -> anyhow::Result<&Node> {
        self.graph.nodes.get(index).with_context(|| format!("there is no node {index}"))
    }

    pub fn find_node(&self, name: &str) -> anyhow::Result<usize> {
        self.graph.find(name).ok_or_else(|| {
            let known = suggestion(name, self.graph.nodes.iter().map(|node| node.name.as_str()));
            usage(format!("pipeline {} has no node `{name}`{known}", self.graph.pipeline))
        })
    }

    /// The way to the models of a node; `None` if it asks none.
    pub fn service_of(&self, node: &Node) -> Option<&dyn ModelService> {
        let service = self.service.as_deref()?;
        // A service of a test answers for names that the pipeline does not declare.
        let asks = self.models.is_none() || !node.models(&self.graph.models).is_empty();
        asks.then_some(service)
    }

    pub fn resource_hashes(&self, index: usize) -> BTreeMap<String, Hash> {
        self.resources.get(index).map(|resources| resources.hashes.clone()).unwrap_or_default()
    }

    /// Whether records of this pipeline may only be seen by those who have credentials.
    pub fn has_credentialed(&self) -> bool {
        self.sources.values().any(|source| source.raw.rights.access == Access::Credentialed)
    }

    /// The text of a resource of a node.
    pub fn resource_text(&self, index: usize, name: &str) -> anyhow::Result<&str> {
        self.resources.get(index).with_context(|| format!("there is no node {index}"))?.files.text(name)
    }

    /// The source of a reader.
    pub fn source_of(&self, node: &Node) -> anyhow::Result<&FoundSource> {
        let name = node.source.as_deref().with_context(|| format!("node {} reads no source", node.name))?;
        self.sources.get(name).with_context(|| format!("source {name} is absent"))
    }

    /// The stage of a node, built on first use: its settings and resources make sense, or it is a usage error.
    pub fn stage(&self, index: usize) -> anyhow::Result<&AnyStage> {
        let node = self.node(index)?;
        let (Some(cell), Some(resources)) = (self.stages.get(index), self.resources.get(index)) else {
            anyhow::bail!("there is no node {index}");
        };
        let built = cell.get_or_init(|| {
            let source = node.source.as_ref().and_then(|source| self.graph.sources.get(source));
            let arguments = StageArguments {
                settings: node.settings.clone(),
                resources: &resources.files,
                format: source.map(|source| source.format.as_str()),
                source_options: source.map(|source| source.options.clone()).unwrap_or_default(),
            };
            let stage = (node.stage.build)(&arguments)
                .map_err(|error| format!("{}: nodes.{}: {error:#}", self.graph.file, node.name))?;
            if stage.shape() == node.stage.shape {
                Ok(stage)
            } else {
                Err(format!("stage {} is declared with another shape than it has", node.stage.name))
            }
        });
        built.as_ref().map_err(usage)
    }

    /// What the run log begins with: the sources and what is odd about them.
    pub fn source_events(&self) -> Vec<Event> {
        let mut events = Vec::new();
        for name in self.graph.sources.keys() {
            let Some(found) = self.sources.get(name) else {
                events.push(Event::SourceAbsent { source: name.clone() });
                continue;
            };
            let rights = &found.raw.rights;
            events.push(Event::SourceFound {
                source: name.clone(),
                n_files: found.raw.files.len(),
                bytes: found.raw.files.iter().map(|file| file.bytes).sum(),
                access: rights.access.as_str(),
                licence: rights.licence.clone(),
            });
            if found.rights_file.is_none() {
                events.push(Event::Warning {
                    message: format!("{name}/{RIGHTS_FILE} is not there: licence and access are unknown, and a release of these records will not be redistributable"),
                });
            }
            if !found.unmatched.is_empty() {
                events.push(Event::Warning {
                    message: format!(
                        "{name}: not read, since no pattern of the source matches or they are no files: {}",
                        found.unmatched.join(", ")
                    ),
                });
            }
            for file in found.raw.files.iter().filter(|file| file.bytes == 0) {
                events.push(Event::Warning { message: format!("{} is empty", file.path) });
            }
        }
        events.extend(self.egress_warnings());
        events
    }
}

impl Session {
    /// Sources whose records will not be sent to a model that a node below them asks: said before anything runs.
    fn egress_warnings(&self) -> Vec<Event> {
        let mut warnings = Vec::new();
        if self.models.is_none() {
            return warnings;
        }
        for (index, node) in self.graph.nodes.iter().enumerate().filter(|(index, _)| !self.absent.contains_key(index)) {
            let above = self.graph.ancestors(index);
            let sources = above.iter().filter_map(|above| self.graph.nodes.get(*above)?.source.as_ref());
            for found in sources.filter_map(|name| self.sources.get(name)) {
                for model in node.models(&self.graph.models).iter().filter_map(|name| self.graph.models.get(name)) {
                    if widest(&found.raw.rights).is_none_or(|widest| model.egress > widest) {
                        let message = format!(
                            "records of {} may not be sent to model {} (egress {}): node {} puts them in quarantine",
                            found.raw.name,
                            model.name,
                            model.egress.as_str(),
                            node.name
                        );
                        warnings.push(Event::Warning { message });
                    }
                }
            }
        }
        warnings
    }
}

/// `node.key=value`; the value is TOML, or text when it is not.
fn parse_set(text: &str) -> anyhow::Result<(String, String, toml::Value)> {
    let wrong =
        || usage(format!("--set {text}: write it as node.key=value, for example --set dedup_near.threshold=0.9"));
    let (path, value) = text.split_once('=').ok_or_else(wrong)?;
    let (node, key) = path.trim().split_once('.').ok_or_else(wrong)?;
    let value = value.trim();
    let parsed =
        toml::from_str::<toml::Table>(&format!("value = {value}")).ok().and_then(|mut table| table.remove("value"));
    Ok((node.to_owned(), key.to_owned(), parsed.unwrap_or_else(|| toml::Value::String(value.to_owned()))))
}

fn find_sources(
    graph: &Graph,
    workspace: &Workspace,
    hashes: &mut RawHashes,
) -> anyhow::Result<BTreeMap<String, FoundSource>> {
    let mut found = BTreeMap::new();
    let mut missing = Vec::new();
    for (name, config) in &graph.sources {
        match find_source(config, workspace, hashes)? {
            Some(source) => drop(found.insert(name.clone(), source)),
            None => missing.push((name, config)),
        }
    }
    let required: Vec<_> = missing.iter().filter(|(name, _)| !graph.optional_sources.contains(*name)).collect();
    let instructions = |sources: &[&(&String, &SourceConfig)]| {
        let lines = sources.iter().map(|(name, config)| {
            format!(
                "  {}/{name}/: {}\n    {}",
                workspace.raw.display(),
                config.files.join(" or "),
                config.how_to_get.trim().replace('\n', "\n    ")
            )
        });
        lines.collect::<Vec<_>>().join("\n")
    };
    if !required.is_empty() {
        return Err(input(format!(
            "pipeline {} cannot run: raw files are missing\n{}",
            graph.pipeline,
            instructions(&required)
        )));
    }
    if (found.len() as u64) < graph.min_sources {
        return Err(input(format!(
            "pipeline {} needs at least {} of its sources, and {} are there; put one of these in place\n{}",
            graph.pipeline,
            graph.min_sources,
            found.len(),
            instructions(&missing.iter().collect::<Vec<_>>())
        )));
    }
    Ok(found)
}

/// The files of a source; `None` when there are none.
pub fn find_source(
    config: &SourceConfig,
    workspace: &Workspace,
    hashes: &mut RawHashes,
) -> anyhow::Result<Option<FoundSource>> {
    let folder = workspace.raw.join(&config.name);
    let names = raw::matching(&folder, &config.files)?;
    if names.is_empty() {
        return Ok(None);
    }
    let mut file = |name: &str| -> anyhow::Result<RawFile> {
        let (path, shown) = (folder.join(name), format!("{}/{name}", config.name));
        let (sha256, bytes) = hashes.hash(&path, &shown)?;
        Ok(RawFile { path: shown, sha256, bytes, readable: path })
    };
    let files = names.iter().map(|name| file(name)).collect::<anyhow::Result<Vec<_>>>()?;
    let rights_path = folder.join(RIGHTS_FILE);
    let (rights, rights_file) = if rights_path.is_file() {
        let rights = parse_rights(&format!("{}/{RIGHTS_FILE}", config.name), &fs::read_text(&rights_path)?)?;
        (rights, Some(file(RIGHTS_FILE)?))
    } else {
        (Rights::unknown(), None)
    };
    // A folder is read when a file in it is.
    let read: BTreeSet<&str> = names.iter().filter_map(|name| name.split('/').next()).collect();
    let unmatched = fs::list(&folder)?
        .into_iter()
        .filter(|name| name != RIGHTS_FILE && !raw::is_name_of_fetch(name) && !read.contains(name.as_str()))
        .collect();
    Ok(Some(FoundSource { raw: RawSource { name: config.name.clone(), rights, files }, rights_file, unmatched }))
}

/// Nodes without input: readers of absent sources, and what depends on them alone.
fn absent_nodes(
    graph: &Graph,
    sources: &BTreeMap<String, FoundSource>,
    workspace: &Workspace,
) -> anyhow::Result<BTreeMap<usize, String>> {
    let mut absent: BTreeMap<usize, String> = BTreeMap::new();
    for (index, node) in graph.nodes.iter().enumerate() {
        if let Some(source) = &node.source
            && !sources.contains_key(source)
        {
            absent.insert(index, format!("source {source} is absent"));
            continue;
        }
        for port in node.stage.inputs.iter().filter(|port| !port.optional) {
            let links = node.inputs.get(port.name).map(Vec::as_slice).unwrap_or_default();
            if links.iter().any(|link| !absent.contains_key(&link.node)) {
                continue;
            }
            let names: Vec<&str> =
                links.iter().filter_map(|link| graph.nodes.get(link.node)).map(|node| node.name.as_str()).collect();
            let why = format!("its input {} is absent", names.join(", "));
            if !node.optional {
                return Err(input(format!(
                    "{}: nodes.{}: {why}; put the files of its source below {}, or set `optional = true` on the node",
                    graph.file,
                    node.name,
                    workspace.raw.display()
                )));
            }
            absent.insert(index, why);
            break;
        }
    }
    if let Some(why) = absent.get(&graph.cases) {
        return Err(input(format!("{}: the cases cannot be built: {why}", graph.file)));
    }
    Ok(absent)
}

fn load_resources(project: &Project, graph: &Graph, node: &Node) -> anyhow::Result<NodeResources> {
    let mut loaded = NodeResources::default();
    for (name, path) in &node.resources {
        let full = project.pipelines_dir().join(path);
        let bytes = fs::read_limited(&full, RESOURCE_LIMIT).map_err(|error| {
            let key = format!("nodes.{}.resources.{name}", node.name);
            Problems(vec![Problem { file: graph.file.clone(), line: 0, key, message: format!("{error:#}") }])
        })?;
        loaded.hashes.insert((*name).to_owned(), Hash::of(&bytes));
        loaded.files.insert(name, path, bytes);
    }
    Ok(loaded)
}
