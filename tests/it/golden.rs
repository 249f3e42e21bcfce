//! Committed expectations about the code: what each stage makes of the sample, and the schemas of the records.
//!
//! `stage_hashes.toml` holds for each stage its revision, a hash of all it is given (raw files, the output of the
//! nodes above it, settings, resources) and a hash of the shards it makes of that. The same revision must make the
//! same shards of the same input. `UPDATE_EXPECT=1` writes what may change: new stages, new revisions, and rows
//! whose input changed, which say nothing about the stage. It never writes other output of the same revision and
//! input.

use crate::support::repository;
use casemill::config::Project;
use casemill::engine::{BuildOptions, Llm, NodePlan, Session, SessionOptions};
use casemill::record::{Hash, ROW_TYPES};
use casemill::stage::STAGES;
use casemill::store::manifest::{Components, ShardFile, to_json};
use casemill::store::{Workspace, shard};
use expect_test::expect;
use serde::{Deserialize, Serialize};
use std::collections::{BTreeMap, BTreeSet};
use std::path::PathBuf;
use std::sync::Arc;

#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
struct StageRow {
    revision: u32,
    input: Hash,
    output: Hash,
}

type StageRows = BTreeMap<String, StageRow>;

const UPDATE: &str = "UPDATE_EXPECT=1 cargo test --release --test it -- golden";

/// What the file must say after an update, and what is wrong that no update may hide.
#[derive(Debug, Default)]
struct Comparison {
    updated: StageRows,
    /// An update puts these right.
    outdated: Vec<String>,
    /// Only a change of the code does.
    wrong: Vec<String>,
}

/// Compares the committed rows with those of this code; `stages` are all there are.
fn compare(committed: &StageRows, found: &StageRows, stages: &[&str]) -> Comparison {
    let mut comparison = Comparison::default();
    for stage in stages {
        let (old, new) = (committed.get(*stage), found.get(*stage));
        let Some(new) = new else {
            let message = "no pipeline runs it on data/sample: add input for it there, and a node to a pipeline";
            comparison.wrong.push(format!("{stage}: {message}"));
            comparison.updated.extend(old.map(|old| ((*stage).to_owned(), old.clone())));
            continue;
        };
        let mut row = new;
        match old {
            Some(old) if old == new => {}
            None => comparison.outdated.push(format!("{stage}: is new")),
            Some(old) if old.revision != new.revision => {
                comparison.outdated.push(format!("{stage}: revision {} → {}", old.revision, new.revision));
            }
            Some(old) if old.input != new.input => comparison.outdated.push(format!("{stage}: gets other input")),
            Some(old) => {
                let message = "makes other output of the same input: bump `revision` in";
                comparison.wrong.push(format!("{stage}: {message} src/stage/{stage}.rs"));
                row = old;
            }
        }
        comparison.updated.insert((*stage).to_owned(), row.clone());
    }
    let gone = committed.keys().filter(|stage| !stages.contains(&stage.as_str()));
    comparison.outdated.extend(gone.map(|stage| format!("{stage}: there is no such stage")));
    comparison
}

/// What a node is given, without what the revision speaks for.
fn input_hash(components: &Components) -> Hash {
    let Components { raw, inputs, settings, resources, engine, limit, .. } = components;
    Hash::of_json(&(raw, inputs, settings, resources, engine, limit)).unwrap()
}

/// What a node makes: the files of its own shards.
fn output_hash(plan: &NodePlan) -> Hash {
    let (manifest, folder) = (plan.manifest.as_ref().unwrap(), plan.build_dir.as_ref().unwrap());
    let files: Vec<BTreeMap<String, ShardFile>> = (0..)
        .zip(&manifest.shards)
        .map(|(index, _)| shard::read_manifest(&shard::shard_dir(folder, index)).unwrap().unwrap().0.files)
        .collect();
    Hash::of_json(&files).unwrap()
}

/// Builds every pipeline on the sample and gives a row for each stage that runs.
fn run_sample() -> StageRows {
    let folder = tempfile::tempdir().unwrap();
    let project = Project { root: repository().to_owned() };
    let mut by_stage: BTreeMap<&str, Vec<(String, Hash, Hash)>> = BTreeMap::new();
    for pipeline in project.pipelines().unwrap() {
        let options = SessionOptions {
            project: project.clone(),
            workspace: Workspace { raw: repository().join("data/sample"), data: folder.path().to_owned() },
            stages: STAGES,
            set: Vec::new(),
            models: None,
            limit: None,
            llm: Llm::Off,
        };
        let session = Session::open(&pipeline, options).unwrap();
        let options = BuildOptions { jobs: 2, to: None, only: None, force: None, interrupted: Arc::default() };
        session.build(&options, &mut ()).unwrap();
        for (node, plan) in session.graph.nodes.iter().zip(session.plan().unwrap()) {
            if let Some(components) = &plan.components {
                let row = (format!("{pipeline}.{}", node.name), input_hash(components), output_hash(&plan));
                by_stage.entry(node.stage.name).or_default().push(row);
            }
        }
    }
    let revision = |name: &str| STAGES.iter().find(|stage| stage.name == name).unwrap().revision;
    by_stage
        .into_iter()
        .map(|(stage, mut nodes)| {
            nodes.sort();
            let inputs: Vec<_> = nodes.iter().map(|(node, input, _)| (node, input)).collect();
            let outputs: Vec<_> = nodes.iter().map(|(node, _, output)| (node, output)).collect();
            let row = StageRow {
                revision: revision(stage),
                input: Hash::of_json(&inputs).unwrap(),
                output: Hash::of_json(&outputs).unwrap(),
            };
            (stage.to_owned(), row)
        })
        .collect()
}

fn stage_hashes() -> PathBuf {
    repository().join("tests/it/stage_hashes.toml")
}

#[test]
fn the_same_revision_of_a_stage_makes_the_same_bytes() {
    let committed = match std::fs::read_to_string(stage_hashes()) {
        Ok(text) => toml::from_str(&text).unwrap(),
        Err(error) if error.kind() == std::io::ErrorKind::NotFound => StageRows::new(),
        Err(error) => panic!("{}: {error}", stage_hashes().display()),
    };
    let found = run_sample();
    assert_eq!(found, run_sample(), "two runs in two folders");
    let names: Vec<&str> = STAGES.iter().map(|stage| stage.name).collect();
    let comparison = compare(&committed, &found, &names);
    let updating = std::env::var_os("UPDATE_EXPECT").is_some_and(|value| value == "1");
    if updating && comparison.updated != committed {
        let head = "# What each stage makes of the sample; written by\n#";
        let rows = toml::to_string(&comparison.updated).unwrap();
        std::fs::write(stage_hashes(), format!("{head} {UPDATE}\n\n{rows}")).unwrap();
    }
    assert!(comparison.wrong.is_empty(), "{}", comparison.wrong.join("\n"));
    let outdated = if updating { Vec::new() } else { comparison.outdated };
    assert!(outdated.is_empty(), "tests/it/stage_hashes.toml is behind; run {UPDATE}\n{}", outdated.join("\n"));
}

#[test]
fn an_update_never_hides_other_output_of_the_same_revision() {
    let row = |revision: u32, input: &str, output: &str| StageRow {
        revision,
        input: Hash::of(input.as_bytes()),
        output: Hash::of(output.as_bytes()),
    };
    let rows = |list: &[(&str, StageRow)]| -> StageRows {
        list.iter().map(|(stage, row)| ((*stage).to_owned(), row.clone())).collect()
    };
    let committed = rows(&[
        ("same", row(1, "i", "o")),
        ("new_revision", row(1, "i", "o")),
        ("new_revision_same_output", row(1, "i", "o")),
        ("forgotten", row(1, "i", "o")),
        ("below", row(1, "i", "o")),
        ("unused", row(1, "i", "o")),
        ("gone", row(1, "i", "o")),
    ]);
    let found = rows(&[
        ("same", row(1, "i", "o")),
        ("new_revision", row(2, "i", "p")),
        ("new_revision_same_output", row(2, "i", "o")),
        ("forgotten", row(1, "i", "p")),
        ("below", row(1, "j", "p")),
        ("added", row(1, "i", "o")),
    ]);
    let stages = ["same", "new_revision", "new_revision_same_output", "forgotten", "below", "added", "unused"];
    let comparison = compare(&committed, &found, &stages);
    expect![[r#"
        forgotten: makes other output of the same input: bump `revision` in src/stage/forgotten.rs
        unused: no pipeline runs it on data/sample: add input for it there, and a node to a pipeline"#]]
    .assert_eq(&comparison.wrong.join("\n"));
    expect![[r#"
        new_revision: revision 1 → 2
        new_revision_same_output: revision 1 → 2
        below: gets other input
        added: is new
        gone: there is no such stage"#]]
    .assert_eq(&comparison.outdated.join("\n"));
    let mut expected = found.clone();
    expected.insert("forgotten".to_owned(), committed["forgotten"].clone());
    expected.insert("unused".to_owned(), committed["unused"].clone());
    assert_eq!(comparison.updated, expected);
    // After the update only what is wrong remains.
    let again = compare(&comparison.updated, &found, &stages);
    assert_eq!((again.outdated, again.wrong), (Vec::new(), comparison.wrong));
}

#[test]
fn the_committed_schemas_are_those_of_the_records() {
    const WRITE: &str = "run `casemill schema --write`";
    let folder = repository().join("schemas");
    let names = std::fs::read_dir(&folder).unwrap_or_else(|error| panic!("{}: {error}; {WRITE}", folder.display()));
    let committed: BTreeSet<String> = names.map(|entry| entry.unwrap().file_name().into_string().unwrap()).collect();
    let generated: BTreeMap<String, Vec<u8>> =
        ROW_TYPES.iter().map(|row_type| (row_type.file_name(), to_json(&(row_type.json_schema)()).unwrap())).collect();
    assert_eq!(committed, generated.keys().cloned().collect(), "files in schemas/; {WRITE}");
    for (name, bytes) in generated {
        let text = std::fs::read_to_string(folder.join(&name)).unwrap();
        assert!(text.as_bytes() == bytes, "schemas/{name} is not what the record declares; {WRITE}");
    }
}
