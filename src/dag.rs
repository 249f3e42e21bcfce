//! From declared names to an ordered graph: unknown names, cycles, ports that do not fit.

use crate::config::{
    InputRef, Limits, ModelConfig, NodeConfig, PipelineConfig, Problem, Problems, Provider, SourceConfig, SubsetConfig,
    suggestion,
};
use crate::stage::{Port, PortKind, Shape, StageDef};
use std::collections::{BTreeMap, BTreeSet};

/// A pipeline whose every name stands for something.
#[derive(Debug)]
pub struct Graph {
    pub pipeline: String,
    pub file: String,
    /// Inputs come before the nodes that read them; ties are in name order.
    pub nodes: Vec<Node>,
    /// Index of the node whose records become cases.
    pub cases: usize,
    pub sources: BTreeMap<String, SourceConfig>,
    pub optional_sources: BTreeSet<String>,
    pub min_sources: u64,
    /// Named subsets of the cases of a release.
    pub subsets: BTreeMap<String, SubsetConfig>,
    /// Models that model stages may ask, by name.
    pub models: BTreeMap<String, ModelConfig>,
    pub shard_records: u64,
    pub shard_bytes: u64,
}

/// A node with its stage, complete settings and resolved inputs.
#[derive(Debug)]
pub struct Node {
    pub name: String,
    pub stage: &'static StageDef,
    pub settings: toml::Table,
    pub source: Option<String>,
    /// Input port → what it reads, in order.
    pub inputs: BTreeMap<&'static str, Vec<Link>>,
    /// Resource → path below `pipelines/`.
    pub resources: BTreeMap<&'static str, String>,
    pub limits: Limits,
    pub optional: bool,
}

/// An output port of a node, by its index.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Link {
    pub node: usize,
    pub port: &'static str,
}

/// The name that stands for no model: the rules of the stage.
pub const RULES: &str = "rules";

impl Node {
    /// The models that this node asks, those that are rules left out.
    pub fn models(&self, models: &BTreeMap<String, ModelConfig>) -> Vec<String> {
        let mut named = (self.stage.settings.models)(&self.settings);
        named.retain(|name| models.get(name).is_some_and(|model| model.provider != Provider::Rules));
        named.sort();
        named.dedup();
        named
    }

    /// The nodes whose stream this one reads, in order.
    pub fn stream_inputs(&self) -> impl Iterator<Item = usize> + '_ {
        let port = self.stage.inputs.iter().find(|port| port.kind == PortKind::Records);
        port.and_then(|port| self.inputs.get(port.name)).into_iter().flatten().map(|link| link.node)
    }

    /// Every node that this one reads.
    pub fn all_inputs(&self) -> BTreeSet<usize> {
        self.inputs.values().flatten().map(|link| link.node).collect()
    }
}

/// Two names under `[models]` can be one model: provider, and the name that the server knows it by.
type ModelIdentity = (&'static str, String);

fn identity(model: &ModelConfig) -> ModelIdentity {
    (model.provider.as_str(), model.model.to_lowercase())
}

impl std::fmt::Debug for StageDef {
    fn fmt(&self, formatter: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        formatter.write_str(self.name)
    }
}

impl Graph {
    pub fn find(&self, name: &str) -> Option<usize> {
        self.nodes.iter().position(|node| node.name == name)
    }

    /// A node and everything above it.
    pub fn ancestors(&self, index: usize) -> BTreeSet<usize> {
        let mut found = BTreeSet::from([index]);
        for candidate in (0..=index).rev() {
            if found.contains(&candidate)
                && let Some(node) = self.nodes.get(candidate)
            {
                found.extend(node.all_inputs());
            }
        }
        found
    }
}

/// Resolves a pipeline against the stages and sources there are.
pub fn resolve(
    config: &PipelineConfig,
    stages: &'static [StageDef],
    find_source: impl Fn(&str) -> Result<SourceConfig, String>,
) -> Result<Graph, Problems> {
    let mut resolver = Resolver { config, stages, problems: Problems::default() };
    let mut sources = BTreeMap::new();
    for (name, source) in &config.sources {
        match find_source(name) {
            Ok(found) => {
                sources.insert(name.clone(), found);
            }
            Err(message) => resolver.problem(source.line, &format!("sources.{name}"), message),
        }
    }
    let order = resolver.order();
    let index: BTreeMap<&str, usize> = order.iter().enumerate().map(|(position, name)| (*name, position)).collect();
    let mut nodes = Vec::with_capacity(order.len());
    for name in &order {
        let node = config.nodes.get(*name).and_then(|node| resolver.node(node, &index));
        nodes.extend(node);
    }
    let cases = index.get(config.cases.value.as_str()).copied();
    // A node on a cycle is there, and is reported with its cycle.
    if !config.nodes.contains_key(&config.cases.value) {
        let known = suggestion(&config.cases.value, config.nodes.keys().map(String::as_str));
        resolver.problem(config.cases.line, "cases", format!("no node `{}`{known}", config.cases.value));
    }
    let used: BTreeSet<&str> =
        config.nodes.values().filter_map(|node| node.source.as_ref()).map(|source| source.value.as_str()).collect();
    for (name, source) in &config.sources {
        if !used.contains(name.as_str()) {
            resolver.problem(
                source.line,
                &format!("sources.{name}"),
                "no node reads it; give one `source = …`, or remove it".to_owned(),
            );
        }
    }
    if config.min_sources > config.sources.len() as u64 {
        resolver.problem(
            0,
            "min_sources",
            format!("is {} but there are {} sources", config.min_sources, config.sources.len()),
        );
    }
    let graph = cases.map(|cases| Graph {
        pipeline: config.name.clone(),
        file: config.file.clone(),
        nodes,
        cases,
        sources,
        optional_sources: config
            .sources
            .iter()
            .filter(|(_, source)| source.optional)
            .map(|(name, _)| name.clone())
            .collect(),
        min_sources: config.min_sources,
        subsets: config.subsets.clone(),
        models: config.models.clone(),
        shard_records: config.shard_records,
        shard_bytes: config.shard_bytes,
    });
    if resolver.problems.0.is_empty()
        && let Some(graph) = &graph
    {
        resolver.check_demands(graph);
    }
    resolver.problems.into_result(graph)
}

struct Resolver<'a> {
    config: &'a PipelineConfig,
    stages: &'static [StageDef],
    problems: Problems,
}

impl<'a> Resolver<'a> {
    fn problem(&mut self, line: usize, key: &str, message: String) {
        self.problems.0.push(Problem { file: self.config.file.clone(), line, key: key.to_owned(), message });
    }

    fn stage(&self, node: &NodeConfig) -> Option<&'static StageDef> {
        self.stages.iter().find(|stage| stage.name == node.stage.value)
    }

    /// Names with inputs first, ties in name order; nodes on a cycle are reported and left out.
    fn order(&mut self) -> Vec<&'a str> {
        let config = self.config;
        let mut order: Vec<&str> = Vec::new();
        let mut waiting: BTreeMap<&str, BTreeSet<&str>> = BTreeMap::new();
        for (name, node) in &config.nodes {
            let inputs = node.inputs.values().flatten().map(|input| input.node.as_str());
            waiting.insert(name, inputs.filter(|input| config.nodes.contains_key(*input)).collect());
        }
        while let Some(next) =
            waiting.iter().find(|(_, inputs)| inputs.iter().all(|input| order.contains(input))).map(|(name, _)| *name)
        {
            waiting.remove(next);
            order.push(next);
        }
        if !waiting.is_empty() {
            // A walk from input to input among those left must come back to where it was.
            let mut path: Vec<&str> = waiting.keys().take(1).copied().collect();
            let cycle = loop {
                let Some(next) = path
                    .last()
                    .and_then(|last| waiting.get(last))
                    .and_then(|inputs| inputs.iter().find(|input| waiting.contains_key(*input)).copied())
                else {
                    break path;
                };
                if let Some(start) = path.iter().position(|name| *name == next) {
                    let mut cycle = path.split_off(start);
                    cycle.push(next);
                    break cycle;
                }
                path.push(next);
            };
            let line = cycle.first().and_then(|name| config.nodes.get(*name)).map_or(0, |node| node.line);
            self.problem(line, "nodes", format!("these read each other in a circle: {}", cycle.join(" ← ")));
        }
        order
    }

    fn node(&mut self, config: &'a NodeConfig, index: &BTreeMap<&str, usize>) -> Option<Node> {
        let key = |key: &str| format!("nodes.{}.{key}", config.name);
        let Some(stage) = self.stage(config) else {
            let known = suggestion(&config.stage.value, self.stages.iter().map(|stage| stage.name));
            self.problem(config.stage.line, &key("stage"), format!("no stage `{}`{known}", config.stage.value));
            return None;
        };
        self.check_source(config, stage);
        let inputs = self.inputs(config, stage, index);
        let settings = self.settings(config, stage);
        if let Some(settings) = &settings {
            self.check_models(config, stage, settings);
        }
        let mut resources = BTreeMap::new();
        for (name, path) in &config.resources {
            match stage.resources.iter().find(|resource| resource.name == name) {
                Some(resource) => drop(resources.insert(resource.name, path.value.clone())),
                None => {
                    let known = suggestion(name, stage.resources.iter().map(|resource| resource.name));
                    self.problem(
                        path.line,
                        &key(&format!("resources.{name}")),
                        format!("stage {} reads no such resource{known}", stage.name),
                    );
                }
            }
        }
        for resource in stage.resources.iter().filter(|resource| !config.resources.contains_key(resource.name)) {
            let message = format!("is missing: stage {} needs {}", stage.name, resource.summary);
            self.problem(config.line, &key(&format!("resources.{}", resource.name)), message);
        }
        Some(Node {
            name: config.name.clone(),
            stage,
            settings: settings?,
            source: config.source.as_ref().map(|source| source.value.clone()),
            inputs,
            resources,
            limits: config.limits,
            optional: config.optional,
        })
    }

    fn check_models(&mut self, config: &NodeConfig, stage: &StageDef, settings: &toml::Table) {
        for model in (stage.settings.models)(settings) {
            if model != RULES && !self.config.models.contains_key(&model) {
                let known = self.config.models.keys().map(String::as_str).chain([RULES]);
                let message =
                    format!("names the model `{model}`, which is not under [models]{}", suggestion(&model, known));
                self.problem(config.line, &format!("nodes.{}.settings", config.name), message);
            }
        }
    }

    /// Who may not be whom: judges are other models than those whose work they judge, and than each other.
    fn check_demands(&mut self, graph: &Graph) {
        let asked = |node: &Node| node.models(&graph.models).into_iter().filter_map(|name| graph.models.get(&name));
        for (index, node) in graph.nodes.iter().enumerate() {
            let demands = node.stage.settings.demands;
            let line = self.config.nodes.get(&node.name).map_or(0, |node| node.line);
            let key = format!("nodes.{}.settings", node.name);
            let named = (node.stage.settings.models)(&node.settings);
            let (rules, models): (Vec<&String>, Vec<&String>) = named
                .iter()
                .partition(|name| graph.models.get(*name).is_none_or(|model| model.provider == Provider::Rules));
            if let (Some(rules), Some(model)) = (rules.first(), models.first()) {
                let message =
                    format!("names `{rules}`, which is no model but rules, beside `{model}`: take it out of the list");
                self.problem(line, &key, message);
            }
            let mut own: BTreeMap<ModelIdentity, &str> = BTreeMap::new();
            for model in asked(node) {
                let other = own.insert(identity(model), &model.name);
                if let Some(other) = other.filter(|_| demands.distinct) {
                    let message = format!(
                        "`{other}` and `{}` are both {}: two opinions of one model are one; name another model",
                        model.name, model.model
                    );
                    self.problem(line, &key, message);
                }
            }
            for above in graph.ancestors(index).into_iter().filter(|above| *above != index) {
                let Some(above) = graph.nodes.get(above).filter(|node| demands.unlike.contains(&node.stage.name))
                else {
                    continue;
                };
                for model in asked(above) {
                    if let Some(name) = own.get(&identity(model)) {
                        let message = format!(
                            "the judge `{name}` is {}, which makes what it judges in node {}: name another model, or `{RULES}` for no judge",
                            model.model, above.name
                        );
                        self.problem(line, &key, message);
                    }
                }
            }
        }
    }

    fn check_source(&mut self, config: &NodeConfig, stage: &StageDef) {
        let key = format!("nodes.{}.source", config.name);
        match (&config.source, stage.shape) {
            (None, Shape::Reader) => {
                let known = suggestion("", self.config.sources.keys().map(String::as_str));
                self.problem(config.line, &key, format!("is missing: {} is a reader{known}", stage.name));
            }
            (Some(source), Shape::Reader) if !self.config.sources.contains_key(&source.value) => {
                let known = suggestion(&source.value, self.config.sources.keys().map(String::as_str));
                self.problem(source.line, &key, format!("`{}` is not under [sources]{known}", source.value));
            }
            (Some(source), shape) if shape != Shape::Reader => {
                self.problem(source.line, &key, format!("{} is a {} and reads no source", stage.name, shape.as_str()));
            }
            _ => {}
        }
    }

    fn inputs(
        &mut self,
        config: &'a NodeConfig,
        stage: &'static StageDef,
        index: &BTreeMap<&str, usize>,
    ) -> BTreeMap<&'static str, Vec<Link>> {
        let key = |key: &str| format!("nodes.{}.{key}", config.name);
        let mut inputs: BTreeMap<&'static str, Vec<Link>> = BTreeMap::new();
        for (name, references) in &config.inputs {
            let line = references.first().map_or(config.line, |reference| reference.line);
            let port =
                if name.is_empty() { stage.inputs.first() } else { stage.inputs.iter().find(|port| port.name == name) };
            let Some(port) = port else {
                let known = suggestion(name, stage.inputs.iter().map(|port| port.name));
                let shown = if name.is_empty() { "input".to_owned() } else { format!("inputs.{name}") };
                self.problem(line, &key(&shown), format!("stage {} has no such input{known}", stage.name));
                continue;
            };
            if port.kind == PortKind::Side && references.len() > 1 {
                self.problem(
                    line,
                    &key(&format!("inputs.{}", port.name)),
                    "a side table comes from one node".to_owned(),
                );
            }
            let links = references.iter().filter_map(|reference| self.link(config, port, reference, index)).collect();
            if inputs.insert(port.name, links).is_some() {
                self.problem(
                    line,
                    &key("input"),
                    format!("port {} is given twice, as `input` and under [inputs]", port.name),
                );
            }
        }
        for port in stage.inputs.iter().filter(|port| !port.optional && inputs.get(port.name).is_none_or(Vec::is_empty))
        {
            let is_first = stage.inputs.first().is_some_and(|first| first.name == port.name);
            let given = config.inputs.contains_key(port.name) || (is_first && config.inputs.contains_key(""));
            if !given {
                self.problem(
                    config.line,
                    &key(&format!("inputs.{}", port.name)),
                    format!("is missing: stage {} reads `{}` there", stage.name, port.row.name),
                );
            }
        }
        inputs
    }

    fn link(
        &mut self,
        config: &NodeConfig,
        port: &Port,
        reference: &InputRef,
        index: &BTreeMap<&str, usize>,
    ) -> Option<Link> {
        let key = format!("nodes.{}.inputs.{}", config.name, port.name);
        let Some(other) = self.config.nodes.get(&reference.node) else {
            let known = suggestion(&reference.node, self.config.nodes.keys().map(String::as_str));
            self.problem(reference.line, &key, format!("no node `{}`{known}", reference.node));
            return None;
        };
        // An unknown stage is reported where it is named, a cycle where it is found.
        let (stage, node) = (self.stage(other)?, index.get(reference.node.as_str()).copied()?);
        let output = match &reference.port {
            None => stage.outputs.first(),
            Some(name) => stage.outputs.iter().find(|output| output.name == name),
        };
        let Some(output) = output else {
            let known = suggestion(
                reference.port.as_deref().unwrap_or_default(),
                stage.outputs.iter().map(|output| output.name),
            );
            self.problem(reference.line, &key, format!("stage {} has no such output{known}", stage.name));
            return None;
        };
        if output.kind != port.kind || output.row.name != port.row.name {
            let kind = |kind: PortKind| if kind == PortKind::Records { "records" } else { "a side table" };
            let message = format!(
                "does not fit: it takes {} of type `{}`, but {}.{} gives {} of type `{}`",
                kind(port.kind),
                port.row.name,
                reference.node,
                output.name,
                kind(output.kind),
                output.row.name
            );
            self.problem(reference.line, &key, message);
            return None;
        }
        Some(Link { node, port: output.name })
    }

    /// All settings of a node, defaults filled in.
    fn settings(&mut self, config: &NodeConfig, stage: &StageDef) -> Option<toml::Table> {
        let names = stage.settings.names();
        let mut given = toml::Table::new();
        let mut fits = true;
        for (name, setting) in &config.settings {
            let alone = toml::Table::from_iter([(name.clone(), setting.value.clone())]);
            let message = if names.contains(name) {
                (stage.settings.complete)(alone).err()
            } else {
                Some(format!("unknown setting{}", suggestion(name, names.iter().map(String::as_str))))
            };
            match message {
                None => drop(given.insert(name.clone(), setting.value.clone())),
                Some(message) => {
                    fits = false;
                    let key = format!("nodes.{}.settings.{name}", config.name);
                    let file = if setting.line == 0 { "--set".to_owned() } else { self.config.file.clone() };
                    self.problems.0.push(Problem { file, line: setting.line, key, message });
                }
            }
        }
        if !fits {
            return None;
        }
        match (stage.settings.complete)(given) {
            Ok(complete) => Some(complete),
            Err(message) => {
                self.problem(config.line, &format!("nodes.{}.settings", config.name), message);
                None
            }
        }
    }
}
