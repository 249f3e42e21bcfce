//! What makes a node stale and what does not: random edits of everything a build depends on, and of everything it
//! does not depend on.

use crate::toy::*;
use casemill::record::RecordId;
use casemill::stage::StageDef;
use proptest::prelude::*;
use proptest::sample::subsequence;
use proptest::test_runner::Config;
use std::collections::{BTreeMap, BTreeSet};
use std::time::{Duration, SystemTime};

/// `keep` only selects, `label` reads the stream through two selections and a side table.
const PIPELINE: &str = r#"# A comment.
name = "toy"
summary = "Notes, for edits"
cases = "label"

[sources.a]
[sources.b]

[shards]
records = 3

[nodes.read_a]
stage = "read_notes"
source = "a"
max_quarantined = 1.0

[nodes.read_b]
stage = "read_notes"
source = "b"

[nodes.split]
stage = "split_notes"
input = ["read_a", "read_b"]
settings = { separator = ";" }
max_quarantined = 1.0

[nodes.keep]
stage = "filter_notes"
input = "split"
resources = { words = "words.txt" }

[nodes.rank]
stage = "rank_notes"
input = "keep"
settings = { shortest = 1 }

[nodes.label]
stage = "label_notes"
input = "rank"
inputs = { ranks = "rank.ranks" }
"#;

/// Node → the nodes it reads; in the order of the plan.
const GRAPH: [(&str, &[&str]); 6] = [
    ("read_a", &[]),
    ("read_b", &[]),
    ("split", &["read_a", "read_b"]),
    ("keep", &["split"]),
    ("rank", &["keep"]),
    ("label", &["rank"]),
];

fn toy() -> Toy {
    let toy = Toy::new(PIPELINE);
    toy.write("raw/a/one.txt", "n1\talpha one; beta two\nn2\tdrop this\nn3\tapple pie\nn4\tbad banana\n");
    toy.write("raw/a/two.txt", "n5\talmond, nut\nn6\tbe\nn7\tberry jam; x; better jam\n");
    toy.write("raw/a/source.toml", "licence = 'CC0-1.0'\naccess = 'open'\n");
    toy.write("raw/b/x.txt", "n1\tagain, alpha\nn2\tbutter\n");
    toy
}

/// The stages with a higher revision of one.
const fn revised<const N: usize>(mut stages: [StageDef; N], index: usize) -> [StageDef; N] {
    stages[index].revision += 1;
    stages
}

const TABLE: [StageDef; 5] = [FILTER_NOTES, LABEL_NOTES, RANK_NOTES, READ_NOTES, SPLIT_NOTES];
const NEW_FILTER: &[StageDef] = &revised(TABLE, 0);
const NEW_LABEL: &[StageDef] = &revised(TABLE, 1);
const NEW_RANK: &[StageDef] = &revised(TABLE, 2);
const NEW_READER: &[StageDef] = &revised(TABLE, 3);
const NEW_SPLIT: &[StageDef] = &revised(TABLE, 4);

/// One change of something that a build depends on.
#[derive(Clone, Copy, Debug)]
enum Edit {
    Setting {
        node: &'static str,
        from: &'static str,
        to: &'static str,
        why: &'static str,
    },
    Revision {
        stages: &'static [StageDef],
        nodes: &'static [&'static str],
    },
    /// Text of a file; `None` removes it.
    Raw {
        node: &'static str,
        file: &'static str,
        text: Option<&'static str>,
        why: &'static str,
    },
    Words,
    SourceOption,
    ShardRecords,
    Limit,
}

/// Each with another target, so that any of them go together.
fn edits() -> Vec<Edit> {
    use Edit::*;
    vec![
        Setting {
            node: "read_b",
            from: "source = \"b\"",
            to: "source = \"b\"\nsettings = { prefix = \"so \" }",
            why: "settings.prefix \"\" → \"so \"",
        },
        Setting {
            node: "split",
            from: "separator = \";\"",
            to: "separator = \",\"",
            why: "settings.separator \";\" → \",\"",
        },
        Setting {
            node: "keep",
            from: "input = \"split\"",
            to: "input = \"split\"\nsettings = { min_chars = 7 }",
            why: "settings.min_chars 3 → 7",
        },
        Setting { node: "rank", from: "shortest = 1", to: "shortest = 2", why: "settings.shortest 1 → 2" },
        Raw {
            node: "read_a",
            file: "a/one.txt",
            text: Some("n1\talpha two; beta one\nn3\tapple cake\nwithout tab\n"),
            why: "input a/one.txt changed",
        },
        Raw { node: "read_a", file: "a/two.txt", text: None, why: "input a/two.txt removed" },
        Raw { node: "read_a", file: "a/zzz.txt", text: Some("n9\tcherry\n"), why: "input a/zzz.txt added" },
        Raw {
            node: "read_a",
            file: "a/source.toml",
            text: Some("licence = 'MIT'\naccess = 'registered'\n"),
            why: "input a/source.toml changed",
        },
        Raw { node: "read_b", file: "b/x.txt", text: Some("n1\tagain, alpha\n"), why: "input b/x.txt changed" },
        Raw { node: "read_b", file: "b/source.toml", text: Some("snapshot = '2'\n"), why: "input b/source.toml added" },
        Words,
        SourceOption,
        ShardRecords,
        Limit,
    ]
}

fn revisions() -> Vec<Edit> {
    [
        (NEW_FILTER, &["keep"][..]),
        (NEW_LABEL, &["label"]),
        (NEW_RANK, &["rank"]),
        (NEW_READER, &["read_a", "read_b"]),
        (NEW_SPLIT, &["split"]),
    ]
    .map(|(stages, nodes)| Edit::Revision { stages, nodes })
    .into()
}

impl Edit {
    fn apply(self, toy: &mut Toy) {
        match self {
            Self::Setting { from, to, .. } => toy.edit("pipelines/toy.toml", from, to),
            Self::Revision { stages, .. } => toy.stages = stages,
            Self::Raw { file, text: Some(text), .. } => toy.write(&format!("raw/{file}"), text),
            Self::Raw { file, text: None, .. } => toy.remove(&format!("raw/{file}")),
            Self::Words => toy.write("pipelines/words.txt", "bad\nbutter\n"),
            Self::SourceOption => toy.edit("sources/b.toml", "'*.bin']\n", "'*.bin']\n[options]\nlabels = \"zero\"\n"),
            Self::ShardRecords => toy.edit("pipelines/toy.toml", "records = 3", "records = 2"),
            Self::Limit => toy.limit = Some(3),
        }
    }

    /// The nodes whose own components it changes, each with the words for it.
    fn hits(self) -> Vec<(&'static str, &'static str)> {
        match self {
            Self::Setting { node, why, .. } | Self::Raw { node, why, .. } => vec![(node, why)],
            Self::Revision { nodes, .. } => nodes.iter().map(|node| (*node, "stage revision 1 → 2")).collect(),
            Self::Words => vec![("keep", "resource words changed")],
            Self::SourceOption => vec![("read_b", "engine.options.labels unset → \"zero\"")],
            Self::ShardRecords => GRAPH.map(|(node, _)| (node, "engine.shard_records 3 → 2")).to_vec(),
            Self::Limit => GRAPH.map(|(node, _)| (node, "limit none → 3")).to_vec(),
        }
    }
}

/// What the plan must say after edits: a hit node is stale, those below are pending, the others fresh.
fn expected_plan(edits: &[Edit]) -> Vec<String> {
    let mut hits: BTreeMap<&str, BTreeSet<&str>> = BTreeMap::new();
    for (node, why) in edits.iter().flat_map(|edit| edit.hits()) {
        hits.entry(node).or_default().insert(why);
    }
    let mut to_run: BTreeSet<&str> = BTreeSet::new();
    let mut lines = Vec::new();
    for (node, inputs) in GRAPH {
        let waits: Vec<String> =
            inputs.iter().filter(|input| to_run.contains(*input)).map(|input| format!("waits for {input}")).collect();
        let line = if !waits.is_empty() {
            format!("{node} pending: {}", waits.join("; "))
        } else if let Some(why) = hits.get(node) {
            let why: Vec<&str> = why.iter().copied().collect();
            format!("{node} stale: {}", why.join("; "))
        } else {
            format!("{node} fresh")
        };
        if !line.ends_with(" fresh") {
            to_run.insert(node);
        }
        lines.push(line);
    }
    lines.sort();
    lines
}

/// The plan, with the reasons of each node sorted.
fn sorted_plan(toy: &Toy) -> Vec<String> {
    let sort = |line: String| match line.split_once(": ") {
        Some((state, why)) => {
            let mut why: Vec<&str> = why.split("; ").collect();
            why.sort_unstable();
            format!("{state}: {}", why.join("; "))
        }
        None => line,
    };
    toy.plan().into_iter().map(sort).collect()
}

/// Records, side rows and counts, whatever the folders are called.
fn outcome(toy: &Toy) -> (Vec<Note>, Vec<Rank>, Vec<String>) {
    let built = toy.built();
    let counts = GRAPH.map(|(node, _)| format!("{node} {:?}", built.counts(node))).to_vec();
    (built.records("label"), built.side("rank", "ranks"), counts)
}

/// Builds, edits, plans, builds, compares with a build from nothing, and takes the edits back.
fn check_edits(edits: &[Edit]) {
    let mut toy = toy();
    toy.stages = &TABLE;
    toy.build();
    assert!(toy.not_fresh().is_empty());
    let first = outcome(&toy);
    let files: Vec<(String, Option<String>)> = ["pipelines/toy.toml", "pipelines/words.txt", "sources/b.toml"]
        .into_iter()
        .map(str::to_owned)
        .chain(edits.iter().filter_map(|edit| match edit {
            Edit::Raw { file, .. } => Some(format!("raw/{file}")),
            _ => None,
        }))
        .map(|path| {
            let text = std::fs::read_to_string(toy.path(&path)).ok();
            (path, text)
        })
        .collect();

    edits.iter().for_each(|edit| edit.apply(&mut toy));
    assert_eq!(sorted_plan(&toy), expected_plan(edits), "{edits:?}");
    let stale: BTreeSet<String> =
        toy.not_fresh().iter().filter_map(|line| line.split(' ').next().map(str::to_owned)).collect();
    let ran: BTreeSet<String> = toy.build().into_iter().collect();
    assert!(ran.is_subset(&stale), "{ran:?} ran, {stale:?} were not fresh");
    let hit: BTreeSet<&str> = edits.iter().flat_map(|edit| edit.hits()).map(|(node, _)| node).collect();
    assert!(hit.iter().all(|node| ran.contains(*node)), "{hit:?} were edited, {ran:?} ran");
    assert_eq!(toy.not_fresh(), [""; 0]);
    assert_eq!(toy.build(), [""; 0]);
    let second = outcome(&toy);
    toy.data = "other".to_owned();
    assert_eq!(toy.build().len(), GRAPH.len());
    assert_eq!(outcome(&toy), second, "{edits:?}: built step by step and from nothing");

    toy.data = "data".to_owned();
    (toy.stages, toy.limit) = (&TABLE, None);
    for (path, text) in files {
        match text {
            Some(text) => toy.write(&path, text),
            None => toy.remove(&path),
        }
    }
    assert_eq!(toy.not_fresh(), [""; 0], "{edits:?} were taken back");
    assert_eq!(toy.build(), [""; 0]);
    assert_eq!(outcome(&toy), first);
}

#[test]
fn every_edit_alone_makes_its_dependents_stale() {
    edits().into_iter().chain(revisions()).for_each(|edit| check_edits(&[edit]));
}

proptest! {
    #![proptest_config(Config { cases: 10, failure_persistence: None, ..Config::default() })]

    #[test]
    fn edits_together_make_their_dependents_stale(
        mut edits in subsequence(edits(), 2..=4),
        revision in proptest::option::of(proptest::sample::select(revisions())),
    ) {
        edits.extend(revision);
        check_edits(&edits);
    }
}

/// A change of something that no output depends on.
#[derive(Clone, Copy, Debug)]
enum Harmless {
    TouchRaw,
    TouchResource,
    Comments,
    BlankLines,
    KeyOrder,
    Defaults,
    Limits,
    Jobs,
    MoveData,
    RenameResource,
    SourceDescription,
    UnreadFile,
}

const HARMLESS: [Harmless; 12] = [
    Harmless::TouchRaw,
    Harmless::TouchResource,
    Harmless::Comments,
    Harmless::BlankLines,
    Harmless::KeyOrder,
    Harmless::Defaults,
    Harmless::Limits,
    Harmless::Jobs,
    Harmless::MoveData,
    Harmless::RenameResource,
    Harmless::SourceDescription,
    Harmless::UnreadFile,
];

impl Harmless {
    fn apply(self, toy: &mut Toy) {
        let pipeline = "pipelines/toy.toml";
        let touch = |below: &str| {
            let file = std::fs::File::options().append(true).open(toy.path(below)).unwrap();
            file.set_modified(SystemTime::UNIX_EPOCH + Duration::from_secs(1_000_000_000)).unwrap();
        };
        match self {
            Self::TouchRaw => ["raw/a/one.txt", "raw/a/source.toml", "raw/b/x.txt"].into_iter().for_each(touch),
            Self::TouchResource => touch("pipelines/words.txt"),
            Self::Comments => {
                toy.edit(pipeline, "# A comment.", "# Another comment.\n# And one more.");
                toy.edit(pipeline, "[nodes.split]", "[nodes.split] # splits");
                toy.edit("sources/a.toml", "title =", "# the title\ntitle =");
            }
            Self::BlankLines => toy.edit(pipeline, "[nodes.", "\n\n[nodes."),
            Self::KeyOrder => {
                toy.edit(pipeline, "name = \"toy\"\nsummary =", "summary =");
                toy.edit(pipeline, "cases = \"label\"", "cases = \"label\"\nname = \"toy\"");
                toy.edit(pipeline, "[sources.a]\n[sources.b]", "[sources.b]\n[sources.a]");
                // The last node comes first.
                let text = toy.read(pipeline);
                let (head, label) = text.split_once("[nodes.label]").unwrap();
                let at = head.find("[nodes.read_b]").unwrap();
                toy.write(pipeline, format!("{}[nodes.label]{label}\n{}", &head[..at], &head[at..]));
            }
            Self::Defaults => {
                toy.edit(pipeline, "source = \"b\"", "source = \"b\"\nsettings = { prefix = \"\" }");
                toy.edit(pipeline, "input = \"split\"", "input = \"split\"\nsettings = { min_chars = 3 }");
                toy.edit(pipeline, "settings = { shortest = 1 }", "");
                toy.edit(pipeline, "records = 3", "records = 3\nbytes = 67108864");
                toy.edit(pipeline, "input = \"rank\"", "input = [\"rank\"]\noptional = false");
            }
            Self::Limits => toy.edit(pipeline, "input = \"keep\"", "input = \"keep\"\nmax_loss = 0.99"),
            Self::Jobs => toy.jobs = 1,
            Self::MoveData => {
                std::fs::create_dir_all(toy.path("far/away")).unwrap();
                std::fs::rename(toy.path(&toy.data), toy.path("far/away/moved")).unwrap();
                toy.data = "far/away/moved".to_owned();
            }
            Self::RenameResource => {
                std::fs::create_dir_all(toy.path("pipelines/lists")).unwrap();
                std::fs::copy(toy.path("pipelines/words.txt"), toy.path("pipelines/lists/bad.txt")).unwrap();
                toy.edit(pipeline, "words.txt", "lists/bad.txt");
            }
            Self::SourceDescription => toy.edit("sources/b.toml", "origin = 'nowhere'", "origin = 'elsewhere'"),
            Self::UnreadFile => toy.write("raw/a/notes.md", "not read by any pattern"),
        }
    }
}

#[test]
fn each_harmless_change_runs_nothing_again() {
    let mut toy = toy();
    toy.build();
    let first = outcome(&toy);
    for change in HARMLESS {
        change.apply(&mut toy);
        assert_eq!(toy.not_fresh(), [""; 0], "{change:?}");
        assert_eq!(toy.build(), [""; 0], "{change:?}");
        assert_eq!(outcome(&toy), first, "{change:?}");
    }
}

proptest! {
    #![proptest_config(Config { cases: 6, failure_persistence: None, ..Config::default() })]

    #[test]
    fn harmless_changes_in_any_order_run_nothing_again(
        changes in subsequence(HARMLESS.to_vec(), 2..=HARMLESS.len()).prop_shuffle(),
    ) {
        let mut toy = toy();
        toy.build();
        changes.iter().for_each(|change| change.apply(&mut toy));
        prop_assert_eq!(toy.not_fresh(), [""; 0]);
        prop_assert_eq!(toy.build(), [""; 0]);
    }
}

#[test]
fn the_same_output_above_leaves_the_nodes_below_fresh() {
    let toy = toy();
    toy.build();
    let first = outcome(&toy);
    // Blank lines and a comment: other bytes, the same records.
    toy.edit("raw/b/x.txt", "n2\tbutter\n", "n2\tbutter\n\n\n");
    toy.edit("raw/a/source.toml", "licence", "# rights of the files beside\nlicence");
    assert_eq!(
        toy.not_fresh(),
        [
            "keep pending: waits for split",
            "label pending: waits for rank",
            "rank pending: waits for keep",
            "read_a stale: input a/source.toml changed",
            "read_b stale: input b/x.txt changed",
            "split pending: waits for read_a; waits for read_b",
        ]
    );
    assert_eq!(toy.build(), ["read_a", "read_b"]);
    assert_eq!(toy.not_fresh(), [""; 0]);
    assert_eq!(outcome(&toy), first);
}

#[test]
fn a_revision_with_the_same_output_leaves_the_nodes_below_fresh() {
    for (stages, node) in [(NEW_SPLIT, "split"), (NEW_FILTER, "keep"), (NEW_RANK, "rank"), (NEW_LABEL, "label")] {
        let mut toy = toy();
        toy.stages = &TABLE;
        toy.build();
        toy.stages = stages;
        assert_eq!(toy.build(), [node]);
    }
}

#[test]
fn other_content_under_the_same_ids_passes_through_nodes_that_store_ids() {
    let toy = toy();
    toy.build();
    let selected = |toy: &Toy| {
        let built = toy.built();
        let ids = |node: &str| built.records(node).into_iter().map(|note| note.record_id).collect::<Vec<RecordId>>();
        (ids("keep"), ids("rank"), built.side::<Rank>("rank", "ranks"))
    };
    let before = selected(&toy);
    // As long as before and with the same first letter: filter and table decide alike.
    toy.edit("raw/a/one.txt", "apple pie", "apple tea");
    assert_eq!(toy.build(), ["read_a", "split", "keep", "rank", "label"]);
    assert_eq!(selected(&toy), before);
    let texts: Vec<String> = toy.built().records("label").into_iter().map(|note| note.text).collect();
    assert!(texts.contains(&"apple tea".to_owned()) && !texts.contains(&"apple pie".to_owned()), "{texts:?}");
}

#[test]
fn a_limited_build_is_another_build() {
    let mut toy = toy();
    toy.build();
    let all = toy.built().records("label").len();
    toy.limit = Some(1);
    assert_eq!(toy.plan()[3], "read_a stale: limit none → 1");
    assert_eq!(toy.build().len(), GRAPH.len());
    let built = toy.built();
    for node in ["read_a", "read_b"] {
        assert_eq!(casemill::record::ledger::total_counts(built.counts(node)).n_in, 1);
    }
    assert!(built.records("label").len() < all);
    toy.limit = Some(2);
    assert_eq!(toy.plan()[3], "read_a stale: limit 1 → 2");
    toy.limit = None;
    assert_eq!(toy.build(), [""; 0]);
    assert_eq!(toy.built().records("label").len(), all);
}

#[test]
fn a_failed_build_leaves_the_last_one_to_compare_with() {
    let toy = toy();
    toy.build();
    toy.edit("pipelines/toy.toml", "shortest = 1", "shortest = 9");
    toy.edit("pipelines/toy.toml", "input = \"keep\"", "input = \"keep\"\nmax_loss = 0.0");
    let error = toy.try_build().unwrap_err();
    assert_eq!(casemill::error::code_of(&error), casemill::error::Code::Input, "{error:#}");
    let why = toy.not_fresh().into_iter().find(|line| line.starts_with("rank ")).unwrap();
    assert!(why.starts_with("rank stale: settings.shortest 1 → 9"), "{why}");
    toy.edit("pipelines/toy.toml", "max_loss = 0.0", "max_loss = 0.9");
    assert_eq!(toy.build(), ["rank", "label"]);
    toy.edit("pipelines/toy.toml", "shortest = 9", "shortest = 1");
    assert_eq!(toy.build(), [""; 0]);
}
