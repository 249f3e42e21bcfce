//! The command line: exit codes, what messages name, and what is printed where.

use crate::support::{Run, Scratch, medqa_line, medqa_lines, repository};
use casemill::record::{Hash, ROW_TYPES};
use casemill::store::manifest::to_json;
use serde_json::Value;
use std::collections::BTreeMap;
use std::os::unix::fs::MetadataExt;
use std::path::Path;

const PIPELINE: &str = "pipelines/medrounds.toml";

/// The run fails with this code, says all of this on stderr and nothing on stdout.
fn check_refused(scratch: &Scratch, code: i32, arguments: &[&str], expected: &[&str]) -> Run {
    let run = scratch.run_expecting(code, arguments);
    for part in expected {
        assert!(run.stderr.contains(part), "{arguments:?}: `{part}` is not in\n{}", run.stderr);
    }
    assert_eq!(run.stdout, "", "{arguments:?}");
    assert!(run.stderr.lines().any(|line| line.starts_with("casemill: ")), "{}", run.stderr);
    for noise in ["panicked", "RUST_BACKTRACE", "src/"] {
        assert!(!run.stderr.contains(noise), "{}", run.stderr);
    }
    run
}

/// Line of the first place of a text in a file, from 1.
fn line_of(scratch: &Scratch, file: &str, text: &str) -> usize {
    let content = scratch.read(file);
    let start = content.find(text).unwrap_or_else(|| panic!("{file} does not hold {text:?}"));
    content[..start].matches('\n').count() + 1
}

/// Replaces `from` in the pipeline; every command that reads it must then name the line of `at` with this message.
fn check_pipeline(from: &str, to: &str, at: &str, message: &str) {
    let scratch = Scratch::with_sample();
    scratch.edit(PIPELINE, from, to);
    let place = format!("{PIPELINE}:{}: {message}", line_of(&scratch, PIPELINE, at));
    check_refused(&scratch, 2, &["build", "medrounds"], &[&place]);
    check_refused(&scratch, 2, &["plan", "medrounds", "--json"], &[&place]);
    assert!(!scratch.path("data").exists(), "nothing is written for a pipeline that is wrong");
}

/// What a command prints is one JSON document.
fn check_json(scratch: &Scratch, code: i32, arguments: &[&str]) -> Value {
    let run = scratch.run_expecting(code, &[arguments, &["--json"]].concat());
    let document = serde_json::from_str(&run.stdout);
    document.unwrap_or_else(|error| panic!("{arguments:?}: {error}\n{}", run.stdout))
}

/// Path, inode, size and time of everything below a folder.
fn snapshot(folder: &Path) -> BTreeMap<String, (u64, u64, i64, i64)> {
    let mut found = BTreeMap::new();
    for entry in std::fs::read_dir(folder).expect("a folder") {
        let path = entry.expect("an entry").path();
        let metadata = std::fs::symlink_metadata(&path).expect("its metadata");
        if metadata.is_dir() {
            found.extend(snapshot(&path));
        }
        let state = (metadata.ino(), metadata.len(), metadata.mtime(), metadata.mtime_nsec());
        found.insert(path.display().to_string(), state);
    }
    found
}

const NODES: [&str; 5] = ["ingest_medqa", "normalize_answer", "dedup_exact", "filter_vignette", "extract_slots"];

/// The plan of these nodes.
fn plan_of(scratch: &Scratch, arguments: &[&str]) -> Vec<String> {
    let plan = scratch.plan(arguments);
    NODES.map(|node| plan.iter().find(|line| line.starts_with(&format!("{node} "))).expect("a node").clone()).to_vec()
}

fn all_fresh(scratch: &Scratch) -> bool {
    scratch.plan(&[]).iter().all(|node| node.ends_with(" fresh") || node.contains(" absent"))
}

#[test]
fn unknown_names_come_with_the_nearest_known_one() {
    let scratch = Scratch::with_sample();
    let pipeline = ["no pipeline `medround`", "did you mean `medrounds`?"];
    check_refused(&scratch, 2, &["build", "medround"], &pipeline);
    check_refused(&scratch, 2, &["plan", "medround"], &pipeline);
    check_refused(&scratch, 2, &["explain", "medround", "x"], &pipeline);
    check_refused(&scratch, 2, &["freeze", "medround", "--version", "1"], &pipeline);
    check_refused(&scratch, 2, &["sources", "check", "medq"], &["no source `medq`", "did you mean `medqa`?"]);
    for flag in ["--to", "--only", "--force"] {
        let expected = ["no node `extractslots`", "did you mean `extract_slots`?"];
        check_refused(&scratch, 2, &["build", "medrounds", flag, "extractslots"], &expected);
    }
    let llm = scratch.run_expecting(2, &["build", "medrounds", "--llm", "of"]).stderr;
    assert!(llm.contains("invalid value 'of' for '--llm <MODE>'") && llm.contains("exists: 'off'"), "{llm}");
    check_refused(&scratch, 2, &["build", "medrounds", "--jobs", "0"], &["--jobs must be at least 1"]);
    let outside = scratch.run_expecting(2, &["plan", "medrounds", "--project", "raw"]);
    assert!(outside.stderr.contains("raw has no pipelines/ folder"), "{}", outside.stderr);
    for arguments in [&["buidl", "medrounds"][..], &["build"], &["build", "medrounds", "--lmit", "3"], &[]] {
        let run = scratch.run_expecting(2, arguments);
        assert!(run.stdout.is_empty() && run.stderr.contains("Usage: casemill"), "{arguments:?}: {}", run.stderr);
    }
}

#[test]
fn a_wrong_pipeline_is_named_by_file_line_and_key() {
    check_pipeline(
        "stage = \"ingest_questions\"",
        "stage = \"ingest_question\"",
        "stage = \"ingest_question\"",
        "nodes.ingest_medqa.stage: no stage `ingest_question`; did you mean `ingest_questions`?",
    );
    check_pipeline(
        "source_priority = ",
        "source_prioriti = ",
        "source_prioriti",
        "nodes.dedup_exact.settings.source_prioriti: unknown setting; did you mean `source_priority`?",
    );
    check_pipeline(
        "source_priority = [\"medqa\"",
        "source_priority = [[\"medqa\"]",
        "source_priority",
        "nodes.dedup_exact.settings.source_priority: invalid type",
    );
    check_pipeline(
        "input = \"dedup_exact\"",
        "input = \"dedup_exat\"",
        "input = \"dedup_exat\"",
        "nodes.filter_vignette.inputs.records: no node `dedup_exat`; did you mean `dedup_exact`?",
    );
    check_pipeline(
        "input = \"dedup_exact\"",
        "input = \"dedup_exact.record\"",
        "input = \"dedup_exact.record\"",
        "nodes.filter_vignette.inputs.records: stage dedup_exact has no such output; did you mean `records`?",
    );
    check_pipeline(
        "input = \"dedup_exact\"\n",
        "inputs.record = \"dedup_exact\"\n",
        "inputs.record = ",
        "nodes.filter_vignette.inputs.record: stage filter_vignette has no such input; did you mean `records`?",
    );
    check_pipeline(
        "input = \"dedup_exact\"\n",
        "",
        "[nodes.filter_vignette]",
        "nodes.filter_vignette.inputs.records: is missing",
    );
    check_pipeline(
        "rules = \"rules/vignette.toml\"",
        "rule = \"rules/vignette.toml\"",
        "rule = ",
        "nodes.filter_vignette.resources.rule: stage filter_vignette reads no such resource; did you mean `rules`?",
    );
    check_pipeline(
        "rules = \"rules/vignette.toml\"",
        "rules = \"../rules/vignette.toml\"",
        "rules = ",
        "nodes.filter_vignette.resources.rules: must be one path below `pipelines/`",
    );
    check_pipeline(
        "source = \"medqa\"",
        "source = \"medq\"",
        "source = \"medq\"",
        "nodes.ingest_medqa.source: `medq` is not under [sources]; did you mean `medqa`?",
    );
    check_pipeline(
        "cases = \"extract_slots\"",
        "cases = \"extract_slot\"",
        "cases = ",
        "cases: no node `extract_slot`; did you mean `extract_slots`?",
    );
    check_pipeline(
        "max_quarantined = 0.2",
        "max_quarantine = 0.2",
        "max_quarantine = ",
        "nodes.ingest_medqa.max_quarantine: unknown key; did you mean `max_quarantined`?",
    );
    check_pipeline(
        "max_quarantined = 0.2",
        "max_quarantined = 20",
        "max_quarantined = 20",
        "nodes.ingest_medqa.max_quarantined: must be a share between 0.0 and 1.0",
    );
    check_pipeline(
        "name = \"medrounds\"",
        "name = \"mtdiag\"",
        "name = ",
        "name: is `mtdiag` but the file is named `medrounds`",
    );
    check_pipeline("[nodes.dedup_exact.settings]", "[nodes.dedup_exact.settings", "[nodes.dedup_exact.settings", "");
}

#[test]
fn graphs_that_cannot_run_are_refused() {
    check_pipeline(
        "input = \"dedup_exact\"",
        "input = \"filter_vignette\"",
        "[nodes.filter_vignette]",
        "nodes: these read each other in a circle: filter_vignette ← filter_vignette",
    );
    let scratch = Scratch::with_sample();
    scratch.edit(PIPELINE, "input = \"normalize_answer\"", "input = [\"normalize_answer\", \"filter_vignette\"]");
    check_refused(&scratch, 2, &["build", "medrounds"], &["in a circle: dedup_exact ← filter_vignette ← dedup_exact"]);

    check_pipeline(
        "input = \"dedup_exact\"",
        "input = \"ingest_medqa\"",
        "input = \"ingest_medqa\"",
        "nodes.filter_vignette.inputs.records: does not fit: it takes records of type `answered_question`, \
         but ingest_medqa.records gives records of type `question`",
    );
    check_pipeline(
        "input = \"dedup_exact\"",
        "input = \"dedup_exact.duplicates\"",
        "input = \"dedup_exact.duplicates\"",
        "nodes.filter_vignette.inputs.records: does not fit: it takes records of type `answered_question`, \
         but dedup_exact.duplicates gives a side table of type `duplicate`",
    );
}

#[test]
fn every_problem_of_a_pipeline_is_listed_at_once() {
    let scratch = Scratch::with_sample();
    scratch.edit(PIPELINE, "source_priority", "source_prio");
    scratch.edit(PIPELINE, "lexicon = ", "lexikon = ");
    scratch.edit(PIPELINE, "stage = \"ingest_questions\"", "stage = \"ingest\"");
    let expected = [
        "nodes.ingest_medqa.stage",
        "nodes.dedup_exact.settings.source_prio",
        "nodes.extract_slots.resources.lexikon",
        "nodes.extract_slots.resources.lexicon: is missing",
    ];
    check_refused(&scratch, 2, &["build", "medrounds"], &expected);
}

#[test]
fn a_resource_that_is_missing_or_wrong_is_named() {
    let scratch = Scratch::with_sample();
    scratch.edit(PIPELINE, "lexicon/slots.toml", "lexicon/slot.toml");
    let expected = [PIPELINE, "nodes.extract_slots.resources.lexicon", "lexicon/slot.toml"];
    check_refused(&scratch, 2, &["build", "medrounds"], &expected);

    let scratch = Scratch::with_sample();
    scratch.write("pipelines/lexicon/slots.toml", "words = 3\n");
    check_refused(&scratch, 2, &["build", "medrounds"], &["nodes.extract_slots", "lexicon/slots.toml", "words"]);
    let work = scratch.path("data/work/medrounds/ingest_medqa");
    assert!(!work.exists(), "the first node does not run when the last cannot");
}

#[test]
fn sources_must_be_used_and_known() {
    let scratch = Scratch::with_sample();
    let source = scratch.read("sources/medqa.toml").replace("name = \"medqa\"", "name = \"extra\"");
    scratch.write("sources/extra.toml", source);
    scratch.edit(PIPELINE, "[nodes.ingest_medqa]", "[sources.extra]\noptional = true\n\n[nodes.ingest_medqa]");
    let line = line_of(&scratch, PIPELINE, "[sources.extra]");
    let expected = format!("{PIPELINE}:{line}: sources.extra: no node reads it");
    check_refused(&scratch, 2, &["build", "medrounds"], &[&expected]);
    std::fs::remove_file(scratch.path("sources/extra.toml")).expect("a source");
    let expected = format!("{PIPELINE}:{line}: sources.extra: no source `extra`");
    check_refused(&scratch, 2, &["build", "medrounds"], &[&expected]);

    let scratch = Scratch::with_sample();
    scratch.edit("sources/medqa.toml", "format = ", "formt = ");
    let line = line_of(&scratch, "sources/medqa.toml", "formt");
    let expected = format!("sources/medqa.toml:{line}: formt: unknown key; did you mean `format`?");
    check_refused(&scratch, 2, &["sources", "check", "medqa"], &[&expected]);
    check_refused(&scratch, 2, &["build", "medrounds"], &[&expected]);

    let scratch = Scratch::with_sample();
    scratch.edit("sources/medqa.toml", "medqa_jsonl", "medqa_json");
    let expected = ["nodes.ingest_medqa", "format `medqa_json` is not one that ingest_questions reads"];
    check_refused(&scratch, 2, &["build", "medrounds"], &expected);
}

#[test]
fn missing_raw_files_are_asked_for() {
    let scratch = Scratch::empty();
    let expected = ["raw/medqa/: *.jsonl or *.jsonl.gz", "download the MedQA archive", "source.toml says snapshot"];
    check_refused(&scratch, 3, &["build", "medrounds"], &expected);
    check_refused(&scratch, 3, &["plan", "medrounds"], &expected);
    let expected = ["source medqa: no file *.jsonl or *.jsonl.gz in raw/medqa/", "download the MedQA archive"];
    check_refused(&scratch, 3, &["sources", "check", "medqa"], &expected);
    let list = scratch.run_expecting(0, &["sources"]);
    assert!(list.stdout.contains("absent: put *.jsonl or *.jsonl.gz into raw/medqa/"), "{}", list.stdout);
    // A required source is asked for by itself.
    scratch.edit(PIPELINE, "[sources.medqa]\noptional = true", "[sources.medqa]");
    check_refused(&scratch, 3, &["build", "medrounds"], &["cannot run: raw files are missing", "raw/medqa/: *.jsonl"]);
    // Files of a form that nobody reads are not raw files.
    scratch.write("raw/medqa/test.json", "{}");
    check_refused(&scratch, 3, &["build", "medrounds"], &["raw files are missing"]);
    scratch.write("raw/medqa/empty.jsonl", "");
    check_refused(&scratch, 3, &["build", "medrounds"], &["there is no record in medqa/empty.jsonl"]);
}

#[test]
fn settings_on_the_command_line_are_checked_alike() {
    let scratch = Scratch::with_sample();
    for (set, expected) in [
        ("nonsense", &["--set nonsense: write it as node.key=value"][..]),
        ("dedup_exact=3", &["--set dedup_exact=3: write it as node.key=value"]),
        ("dedup_exat.source_priority=[]", &["no node `dedup_exat`", "did you mean `dedup_exact`?"]),
        ("dedup_exact.priority=[]", &["--set: nodes.dedup_exact.settings.priority: unknown setting"]),
        ("dedup_exact.source_priority=3", &["--set: nodes.dedup_exact.settings.source_priority: invalid type"]),
        ("ingest_medqa.max_line_bytes=many", &["nodes.ingest_medqa.settings.max_line_bytes: invalid type"]),
        ("ingest_medqa.max_line_bytes=5", &["max_line_bytes must be between 1000 and"]),
        ("normalize_answer.x=1", &["nodes.normalize_answer.settings.x: unknown setting"]),
    ] {
        check_refused(&scratch, 2, &["build", "medrounds", "--set", set], expected);
        check_refused(&scratch, 2, &["plan", "medrounds", "--set", set], expected);
    }
    assert!(!scratch.path("data").exists());
}

#[test]
fn part_of_a_pipeline_is_built_when_asked() {
    let scratch = Scratch::with_sample();
    let run = check_refused(
        &scratch,
        2,
        &["build", "medrounds", "--only", "dedup_exact"],
        &["node dedup_exact waits for normalize_answer", "--to dedup_exact"],
    );
    assert!(!run.stderr.contains("done:"));
    scratch.run_expecting(4, &["build", "medrounds", "--to", "normalize_answer"]);
    let expected = [
        "ingest_medqa fresh",
        "normalize_answer fresh",
        "dedup_exact missing: never built",
        "filter_vignette pending: waits for dedup_exact",
        "extract_slots pending: waits for filter_vignette",
    ];
    assert_eq!(plan_of(&scratch, &[]), expected);
    scratch.run_expecting(0, &["build", "medrounds", "--only", "dedup_exact"]);
    assert_eq!(plan_of(&scratch, &[])[2..4], ["dedup_exact fresh", "filter_vignette missing: never built"]);
    scratch.run_expecting(4, &["build", "medrounds"]);
    assert!(all_fresh(&scratch));

    // A forced node runs again, alone, and to the same bytes.
    let output_hash = |scratch: &Scratch| {
        let plan = scratch.json(&["plan", "medrounds"]);
        let nodes = plan["nodes"].as_array().expect("nodes").iter();
        nodes.map(|node| node["output_hash"].to_string()).collect::<Vec<_>>()
    };
    let (before, old) = (output_hash(&scratch), snapshot(&scratch.path("data/work/medrounds/dedup_exact")));
    let run = scratch.run_expecting(4, &["build", "medrounds", "--force", "dedup_exact"]);
    assert!(run.stderr.contains("done: 1 nodes ran, "), "{}", run.stderr);
    assert_eq!(output_hash(&scratch), before);
    assert_ne!(snapshot(&scratch.path("data/work/medrounds/dedup_exact")), old);

    let both = scratch.run_expecting(2, &["build", "medrounds", "--to", "dedup_exact", "--only", "dedup_exact"]);
    assert!(both.stderr.contains("cannot be used with"), "{}", both.stderr);
}

#[test]
fn plan_names_what_changed() {
    let scratch = Scratch::with_sample();
    let pending = [
        "normalize_answer pending: waits for ingest_medqa",
        "dedup_exact pending: waits for normalize_answer",
        "filter_vignette pending: waits for dedup_exact",
        "extract_slots pending: waits for filter_vignette",
    ];
    let plan = plan_of(&scratch, &[]);
    assert_eq!(plan[0], "ingest_medqa missing: never built");
    assert_eq!(plan[1..], pending);
    assert!(!scratch.path("data").exists(), "plan writes nothing");
    scratch.run_expecting(4, &["build", "medrounds"]);
    let text = scratch.run_expecting(0, &["plan", "medrounds"]).stdout;
    for node in NODES {
        let line = text.lines().find(|line| line.starts_with(&format!("{node} "))).expect("a line a node");
        assert!(line.contains(" fresh ") && line.ends_with(" records"), "{line}");
    }

    let set = ["--set", "ingest_medqa.max_line_bytes=2000"];
    let plan = plan_of(&scratch, &set);
    assert_eq!(plan[0], "ingest_medqa stale: settings.max_line_bytes 1048576 → 2000");
    assert_eq!(plan[1..], pending);
    let text = scratch.run_expecting(0, &[&["plan", "medrounds"], &set[..]].concat()).stdout;
    assert!(text.contains("stale    settings.max_line_bytes 1048576 → 2000\n"), "{text}");
    assert_eq!(plan_of(&scratch, &["--limit", "7"])[0], "ingest_medqa stale: limit none → 7");
    assert!(all_fresh(&scratch));

    // A setting given as it is anyway changes nothing.
    let same = plan_of(&scratch, &["--set", "ingest_medqa.max_line_bytes=1048576"]);
    assert!(same.iter().all(|node| node.ends_with(" fresh") || node.contains(" absent")), "{same:?}");

    let priority = scratch.read(PIPELINE);
    scratch.edit(PIPELINE, "source_priority = [\"medqa\"", "source_priority = [\"nejm\", \"medqa\"");
    let plan = plan_of(&scratch, &[]);
    assert!(
        plan[2].starts_with("dedup_exact stale: settings.source_priority [") && plan[2].contains("nejm"),
        "{plan:?}"
    );
    assert_eq!((plan[1].as_str(), plan[3].as_str()), ("normalize_answer fresh", pending[2]));
    scratch.write(PIPELINE, priority);

    let rules = scratch.read("pipelines/rules/vignette.toml");
    scratch.write("pipelines/rules/vignette.toml", format!("{rules}\n# one more line\n"));
    let plan = plan_of(&scratch, &[]);
    assert_eq!(plan[2..], ["dedup_exact fresh", "filter_vignette stale: resource rules changed", pending[3]]);
    // Other rules of the same effect: what is below is fresh again.
    let run = scratch.run_expecting(4, &["build", "medrounds"]);
    assert!(run.stderr.contains("done: 1 nodes ran, "), "{}", run.stderr);

    let raw = std::fs::read(scratch.path("raw/medqa/test.jsonl")).expect("a raw file");
    scratch.write("raw/medqa/test.jsonl", [&raw[..], b"\n", medqa_line(1).as_bytes()].concat());
    scratch.write("raw/medqa/new.jsonl", medqa_line(2));
    let plan = plan_of(&scratch, &[]);
    assert_eq!(plan[0], "ingest_medqa stale: input medqa/new.jsonl added; input medqa/test.jsonl changed");
    assert_eq!(plan[1..], pending);
    scratch.run_expecting(4, &["build", "medrounds", "--to", "ingest_medqa"]);
    assert_eq!(plan_of(&scratch, &[])[1], "normalize_answer stale: output of ingest_medqa changed");
    std::fs::remove_file(scratch.path("raw/medqa/new.jsonl")).expect("a raw file");
    assert_eq!(plan_of(&scratch, &[])[0], "ingest_medqa stale: input medqa/new.jsonl removed");
}

#[test]
fn a_build_with_nothing_to_do_writes_nothing() {
    let scratch = Scratch::with_sample();
    scratch.run_expecting(4, &["build", "medrounds"]);
    let nodes = || NODES.map(|node| snapshot(&scratch.path("data/work/medrounds").join(node)));
    let (before, cache) = (nodes(), snapshot(&scratch.path("data/cache")));
    let run = scratch.run_expecting(4, &["build", "medrounds"]);
    assert!(run.stderr.contains("done: 0 nodes ran, "), "{}", run.stderr);
    scratch.run_expecting(4, &["build", "medrounds", "--jobs", "1"]);
    assert_eq!(nodes(), before);
    assert_eq!(snapshot(&scratch.path("data/cache")), cache);
    // Quarantine alone makes the difference between 0 and 4.
    let clean = Scratch::empty();
    clean.write("raw/medqa/own.jsonl", medqa_lines(3));
    clean.run_expecting(0, &["build", "medrounds"]);
    clean.run_expecting(0, &["build", "medrounds"]);
}

#[test]
fn sources_are_listed_and_checked() {
    let scratch = Scratch::with_sample();
    let test = Hash::of(&std::fs::read(scratch.path("raw/medqa/test.jsonl")).expect("a raw file"));
    let text = scratch.read("sources/medqa.toml");
    scratch
        .write("sources/medqa.toml", format!("{text}\nsample_of_the_tests = \"{}\"\n", test.as_str().to_uppercase()));
    scratch.write("raw/medqa/notes.txt", "not a question");
    for arguments in [&["sources"][..], &["sources", "list"]] {
        let list = scratch.run_expecting(0, arguments).stdout;
        assert!(list.contains("medqa: MedQA") && list.contains("2 files, 49 470 bytes in raw/medqa"), "{list}");
        assert!(list.contains("licence CC0-1.0, access open"), "{list}");
    }
    let list = check_json(&scratch, 0, &["sources", "list"]);
    let medqa = list["sources"].as_array().expect("sources").iter().find(|source| source["name"] == "medqa");
    let medqa = medqa.expect("the source");
    assert_eq!(
        (&medqa["present"], &medqa["n_files"], &medqa["rights"]["licence"]),
        (&true.into(), &2.into(), &"CC0-1.0".into())
    );

    let check = scratch.run_expecting(0, &["sources", "check", "medqa"]).stdout;
    let line = |name: &str| check.lines().find(|line| line.starts_with(name)).expect("a line a file").to_owned();
    assert!(line("medqa/test.jsonl").ends_with("known as sample_of_the_tests"), "{check}");
    assert!(line("medqa/test.jsonl").contains(test.as_str()), "{check}");
    assert!(line("medqa/phrases").ends_with("not a file that sources/ knows"), "{check}");
    assert!(check.contains("not read, since no pattern matches: notes.txt"), "{check}");
    let check = check_json(&scratch, 0, &["sources", "check", "medqa"]);
    assert_eq!(check["not_read"], serde_json::json!(["notes.txt"]));
    assert_eq!(check["files"][0]["known_as"], Value::Null);
    assert_eq!(check["files"][1]["known_as"], "sample_of_the_tests");
    assert_eq!(check["has_source_toml"], true);
    std::fs::remove_file(scratch.path("raw/medqa/source.toml")).expect("the rights");
    let check = scratch.run_expecting(0, &["sources", "check", "medqa"]).stdout;
    assert!(check.contains("licence unknown, access unknown (there is no source.toml"), "{check}");
}

#[test]
fn schema_prints_and_writes_the_same() {
    let scratch = Scratch::empty();
    let printed: BTreeMap<String, Value> =
        serde_json::from_str(&scratch.run_expecting(0, &["schema"]).stdout).expect("one JSON document");
    assert_eq!(printed.len(), ROW_TYPES.len());
    assert!(!scratch.path("schemas").exists());
    scratch.run_expecting(0, &["schema", "--write"]);
    let names: Vec<String> = std::fs::read_dir(scratch.path("schemas"))
        .expect("schemas")
        .map(|entry| entry.expect("a file").file_name().to_string_lossy().into_owned())
        .collect();
    assert_eq!(names.len(), printed.len(), "{names:?}");
    for (name, schema) in &printed {
        let written = scratch.read(&format!("schemas/{name}"));
        assert_eq!(written.as_bytes(), to_json(schema).expect("JSON"), "{name}");
        assert_eq!(schema["$id"], name.as_str());
        // The committed ones, which `schema --write` makes.
        let committed = repository().join("schemas");
        if committed.is_dir() {
            assert_eq!(std::fs::read_to_string(committed.join(name)).expect(name), written, "{name}");
        }
    }
    // A file that was changed by hand is made right again.
    scratch.write("schemas/slot.v1.json", "{}");
    scratch.run_expecting(0, &["schema", "--write"]);
    assert_eq!(scratch.read("schemas/slot.v1.json").as_bytes(), to_json(&printed["slot.v1.json"]).expect("JSON"));
}

#[test]
fn clean_removes_old_builds_and_keeps_the_last() {
    let scratch = Scratch::with_sample();
    scratch.release_sums("1");
    let count = |scratch: &Scratch| -> BTreeMap<&str, usize> {
        let builds = |node: &str| {
            let entries = std::fs::read_dir(scratch.path("data/work/medrounds").join(node)).expect("builds");
            entries.filter(|entry| entry.as_ref().is_ok_and(|entry| entry.path().is_dir())).count()
        };
        NODES.into_iter().map(|node| (node, builds(node))).collect()
    };
    let nothing = check_json(&scratch, 0, &["clean"]);
    assert_eq!(nothing["removed"], serde_json::json!([]));
    let one_each = count(&scratch);
    assert!(one_each.values().all(|n| *n == 1), "{one_each:?}");

    let lexicon = scratch.read("pipelines/lexicon/slots.toml");
    scratch.write("pipelines/lexicon/slots.toml", format!("{lexicon}\n# changed\n"));
    scratch.run_expecting(4, &["build", "medrounds"]);
    assert_eq!(count(&scratch)["extract_slots"], 2);
    // What a killed process leaves.
    scratch.write("data/release/tmp-1-0-medrounds-2/cases/part-00000.parquet", "half");
    scratch.write("data/cache/unpacked/0123", "copy");
    let before = snapshot(&scratch.path("data"));
    let dry = scratch.run_expecting(0, &["clean", "--dry-run"]);
    assert!(dry.stdout.contains("3 would be removed"), "{}", dry.stdout);
    let document = check_json(&scratch, 0, &["clean", "--dry-run"]);
    let after = snapshot(&scratch.path("data"));
    let changed: Vec<&String> = after.keys().filter(|path| before.get(*path) != after.get(*path)).collect();
    assert!(before.len() == after.len() && changed.iter().all(|path| path.ends_with("/.lock")), "{changed:?}");
    scratch.run_expecting(2, &["clean", "--older-than", "soon"]);
    let young = scratch.run_expecting(0, &["clean", "--older-than", "1d"]);
    assert!(young.stdout.starts_with("0 removed"), "{}", young.stdout);

    let release = snapshot(&scratch.path("data/release/medrounds-1"));
    let removed = check_json(&scratch, 0, &["clean"]);
    assert_eq!(removed["removed"], document["removed"]);
    assert_eq!(removed["removed"].as_array().map(Vec::len), Some(3));
    assert_eq!(count(&scratch), one_each);
    assert!(!scratch.path("data/release/tmp-1-0-medrounds-2").exists());
    assert_eq!(snapshot(&scratch.path("data/release/medrounds-1")), release);
    assert!(all_fresh(&scratch));
    let run = scratch.run_expecting(4, &["build", "medrounds"]);
    assert!(run.stderr.contains("done: 0 nodes ran, "), "{}", run.stderr);
    // The build before is gone, and so is made again.
    scratch.write("pipelines/lexicon/slots.toml", lexicon);
    assert!(plan_of(&scratch, &[])[4].contains("stale: resource lexicon changed"));
}

#[test]
fn every_command_prints_one_json_document_when_asked() {
    let scratch = Scratch::with_sample();
    let string_at = |document: &Value, place: &str| document.pointer(place).and_then(Value::as_str).map(str::to_owned);
    let build = check_json(&scratch, 4, &["build", "medrounds"]);
    assert_eq!(build["pipeline"], "medrounds");
    assert_eq!(check_json(&scratch, 0, &["plan", "medrounds"]), build);
    let explain = check_json(&scratch, 0, &["explain", "medrounds", "medqa/test.jsonl:1"]);
    assert_eq!(string_at(&explain, "/lives/0/place").as_deref(), Some("medqa/test.jsonl:1"));
    check_json(&scratch, 0, &["sources"]);
    check_json(&scratch, 0, &["sources", "list"]);
    check_json(&scratch, 0, &["sources", "check", "medqa"]);
    let freeze = check_json(&scratch, 0, &["freeze", "medrounds", "--version", "1", "--allow-quarantine", "--archive"]);
    let verify = check_json(&scratch, 0, &["verify", "data/release/medrounds-1"]);
    assert_eq!((&verify["content_hash"], &verify["faults"]), (&freeze["content_hash"], &serde_json::json!([])));
    scratch.write("data/release/medrounds-1/more.txt", "x");
    let verify = check_json(&scratch, 5, &["verify", "data/release/medrounds-1"]);
    assert!(verify["faults"].as_array().is_some_and(|faults| !faults.is_empty()), "{verify}");
    check_json(&scratch, 0, &["schema"]);
    let written = check_json(&scratch, 0, &["schema", "--write"]);
    assert_eq!(written["files"].as_array().map(Vec::len), Some(ROW_TYPES.len()));
    check_json(&scratch, 0, &["clean", "--dry-run"]);
    check_json(&scratch, 0, &["clean"]);
    let shard = check_json(&scratch, 0, &["run-shard", "medrounds", "ingest_medqa", "0"]);
    assert_eq!(shard["rows"], 0, "the node is fresh");
    // What fails prints none.
    check_refused(&scratch, 2, &["verify", "nowhere", "--json"], &["nowhere"]);
    check_refused(&scratch, 2, &["explain", "medrounds", "nobody", "--json"], &["nobody"]);
}

#[test]
fn quiet_leaves_errors_alone() {
    let scratch = Scratch::empty();
    scratch.write("raw/medqa/own.jsonl", medqa_lines(3));
    let run = scratch.run_expecting(0, &["build", "medrounds", "--quiet"]);
    assert_eq!((run.stdout.as_str(), run.stderr.as_str()), ("", ""));
    check_refused(&scratch, 2, &["build", "medround", "--quiet"], &["no pipeline `medround`"]);
}

#[test]
fn help_has_examples() {
    let scratch = Scratch::empty();
    let commands = [
        "build",
        "plan",
        "explain",
        "sources",
        "freeze",
        "verify",
        "report",
        "review",
        "schema",
        "compare",
        "agreement",
        "prompt",
        "replies",
        "batch",
        "clean",
    ];
    let top = scratch.run_expecting(0, &["--help"]);
    assert!(
        top.stdout.contains("Example: casemill build") && top.stdout.contains("Exit codes: 0 done"),
        "{}",
        top.stdout
    );
    for command in commands {
        assert!(top.stdout.contains(&format!("\n  {command} ")), "{command} is not listed");
        let run = scratch.run_expecting(0, &[command, "--help"]);
        let example = [format!("Example: casemill {command}"), format!("Examples: casemill {command}")];
        assert!(example.iter().any(|example| run.stdout.contains(example.as_str())), "{command}: {}", run.stdout);
        assert_eq!(run.stderr, "");
    }
    let listed = top.stdout.split("Commands:\n").nth(1).and_then(|rest| rest.split("\n\n").next()).expect("commands");
    let listed: Vec<&str> = listed.lines().filter_map(|line| line.split_whitespace().next()).collect();
    assert_eq!(listed, [&commands[..], &["help"]].concat());
}

#[test]
fn verify_needs_a_folder() {
    let scratch = Scratch::empty();
    check_refused(&scratch, 2, &["verify", "data/release/medrounds-9"], &["data/release/medrounds-9 is not a folder"]);
    scratch.write("file", "x");
    check_refused(&scratch, 2, &["verify", "file"], &["file is not a folder"]);
    // A folder that is no release has faults, not an error.
    scratch.write("some/file", "x");
    let run = scratch.run_expecting(5, &["verify", "some"]);
    assert!(
        run.stdout.contains("MANIFEST.json: is missing") && run.stdout.contains("SHA256SUMS: is missing"),
        "{}",
        run.stdout
    );
}

#[test]
fn explain_finds_a_record_by_every_name_it_has() {
    let scratch = Scratch::with_sample();
    check_refused(&scratch, 2, &["explain", "medrounds", "medqa/test.jsonl:1"], &["nothing is built yet"]);
    scratch.run_expecting(4, &["build", "medrounds"]);
    let by_place = scratch.json(&["explain", "medrounds", "medqa/test.jsonl:1"]);
    let life = &by_place["lives"][0];
    let (record_id, case_id) = (life["record_id"].as_str().expect("an id"), life["case_id"].as_str().expect("an id"));
    assert!(record_id.starts_with("medqa:") && case_id.starts_with("medrounds-"));
    assert_eq!(scratch.json(&["explain", "medrounds", record_id]), by_place);
    assert_eq!(scratch.json(&["explain", "medrounds", case_id]), by_place);
    let steps: Vec<&str> =
        life["steps"].as_array().expect("steps").iter().filter_map(|step| step["node"].as_str()).collect();
    assert_eq!(steps, NODES);
    let text = scratch.run_expecting(0, &["explain", "medrounds", record_id]).stdout;
    for part in [record_id, case_id, "medqa/test.jsonl:1, SHA-256", "Primary adrenal insufficiency", "Symptom-Name"] {
        assert!(text.contains(part), "{part}: {text}");
    }

    // Where it left, and by what.
    for (place, node, outcome, reason) in [
        ("medqa/test.jsonl:6", "ingest_medqa", "quarantined", "invalid_json"),
        ("medqa/test.jsonl:22", "ingest_medqa", "dropped", "empty_stem"),
        ("medqa/phrases_no_exclude_test.jsonl:4", "normalize_answer", "dropped", "ambiguous_key"),
        ("medqa/test.jsonl:23", "dedup_exact", "dropped", "exact_duplicate"),
        ("medqa/test.jsonl:3", "filter_vignette", "dropped", "management"),
    ] {
        let found = scratch.json(&["explain", "medrounds", place]);
        let steps = found["lives"][0]["steps"].as_array().expect("steps");
        let last = steps.last().expect("a step");
        let shown = (last["node"].as_str(), last["outcome"].as_str(), last["reason"].as_str());
        assert_eq!(shown, (Some(node), Some(outcome), Some(reason)), "{place}");
        assert!(last["detail"].as_str().is_some_and(|detail| !detail.is_empty()), "{place}");
        let record_id = found["lives"][0]["record_id"].as_str().expect("an id").to_owned();
        assert_eq!(scratch.json(&["explain", "medrounds", &record_id])["lives"][0]["place"], place);
    }
    // The record that stays names the one it stands for.
    let survivor = scratch.run_expecting(0, &["explain", "medrounds", "medqa/test.jsonl:10"]).stdout;
    assert!(survivor.contains("medqa/test.jsonl:23"), "{survivor}");

    for unknown in
        ["medqa:0000000000000000", "medrounds-0000000000000000", "medqa/test.jsonl:99", "medqa/none.jsonl:1", "x", ""]
    {
        let expected =
            [&format!("no record `{unknown}` in pipeline medrounds"), "looked into: ingest_medqa", "file:line"];
        check_refused(&scratch, 2, &["explain", "medrounds", unknown], &expected.map(|part| part as &str));
    }
}
