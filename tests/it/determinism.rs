//! Same inputs, same bytes: whatever the threads, folders, times, locale, processes and their order.

use crate::support::{Scratch, build_files, copy_dir, hashes};
use std::collections::BTreeMap;
use std::path::Path;
use std::time::{Duration, SystemTime};

/// Builds with so many threads, freezes as version 1 and gives the text of SHA256SUMS.
fn release(scratch: &Scratch, jobs: &str) -> String {
    let build = scratch.run(&["build", "medrounds", "--jobs", jobs, "--quiet"]);
    assert!(matches!(build.code, Some(0 | 4)), "{}{}", build.stdout, build.stderr);
    scratch.run_expecting(0, &["freeze", "medrounds", "--version", "1", "--allow-quarantine"]);
    scratch.run_expecting(0, &["verify", "data/release/medrounds-1"]);
    scratch.read("data/release/medrounds-1/SHA256SUMS")
}

fn manifest(scratch: &Scratch) -> serde_json::Value {
    serde_json::from_str(&scratch.read("data/release/medrounds-1/MANIFEST.json")).expect("JSON")
}

/// The sample, which has faults, duplicates and two files, in shards of 8; no date from outside.
fn sample() -> Scratch {
    let mut scratch = Scratch::with_sample();
    scratch.set_shard_records(8);
    scratch.set_env("SOURCE_DATE_EPOCH", "");
    scratch
}

/// What must not show in a release: every run of the binary differs from the first in one of these ways.
#[test]
fn the_release_depends_on_nothing_but_its_inputs() {
    let first = sample();
    let expected = release(&first, "1");
    assert!(manifest(&first)["date"].is_null(), "no clock is read");
    let expected_files = build_files(&first);
    let check = |what: &str, scratch: &Scratch, jobs: &str| {
        assert_eq!(release(scratch, jobs), expected, "{what}");
        assert_eq!(build_files(scratch), expected_files, "{what}");
    };

    for run in 0..3 {
        check(&format!("two threads, run {run}"), &sample(), "2");
    }

    let mut elsewhere = sample();
    elsewhere.set_env("TZ", "Asia/Kolkata");
    elsewhere.set_env("LC_ALL", "tr_TR.UTF-8");
    elsewhere.set_env("LANG", "tr_TR.UTF-8");
    check("time zone and locale", &elsewhere, "2");

    let touched = sample();
    for (n, path) in (1..).zip(hashes(&touched.path("raw")).keys()) {
        let time = SystemTime::UNIX_EPOCH + Duration::from_secs(86_400 * n);
        let file = std::fs::File::options().append(true).open(touched.path("raw").join(path)).expect("a raw file");
        file.set_modified(time).expect("a time");
    }
    check("times of the raw files", &touched, "2");

    // The same data folder once more, under a longer name and with another name of the raw folder.
    let moved = sample();
    let far = moved.path("a folder/with blanks/and ü");
    copy_dir(&moved.path("raw"), &far.join("given"));
    let binary = |arguments: &[&str]| {
        let mut command = std::process::Command::new(env!("CARGO_BIN_EXE_casemill"));
        command.current_dir(moved.path("raw")).env("SOURCE_DATE_EPOCH", "").args(arguments);
        command
            .arg("--project")
            .arg(moved.path(""))
            .arg("--raw")
            .arg(far.join("given"))
            .arg("--data")
            .arg(far.join("out"));
        command.output().expect("the binary runs")
    };
    assert_eq!(binary(&["build", "medrounds"]).status.code(), Some(4));
    let frozen = binary(&["freeze", "medrounds", "--version", "1", "--allow-quarantine"]);
    assert!(frozen.status.success(), "{}", String::from_utf8_lossy(&frozen.stderr));
    let sums = std::fs::read_to_string(far.join("out/release/medrounds-1/SHA256SUMS")).expect("the release");
    assert_eq!(sums, expected, "other folders");
}

#[test]
fn a_date_is_in_the_manifest_and_in_no_content_hash() {
    let undated = sample();
    let sums = release(&undated, "2");
    let mut dated = sample();
    dated.set_env("SOURCE_DATE_EPOCH", "1700000000");
    // It is a date in UTC, wherever the machine stands: 2023-11-14 22:13:20.
    dated.set_env("TZ", "Asia/Kolkata");
    let dated_sums = release(&dated, "2");
    assert_eq!(manifest(&dated)["date"], "2023-11-14");
    assert_eq!(manifest(&dated)["content_hash"], manifest(&undated)["content_hash"]);
    let differing: Vec<&str> =
        sums.lines().zip(dated_sums.lines()).filter(|(one, other)| one != other).map(|(line, _)| &line[66..]).collect();
    assert_eq!(differing, ["MANIFEST.json"]);
}

/// Shuffled by a fixed sequence of numbers (Knuth's constants).
fn shuffled(n: usize, seed: u64) -> Vec<usize> {
    let mut state = seed;
    let mut order: Vec<usize> = (0..n).collect();
    for last in (1..n).rev() {
        state = state.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
        order.swap(last, usize::try_from((state >> 33) % (last as u64 + 1)).expect("small"));
    }
    order
}

/// A worker of a cluster: one shard in a process of its own; gives the rows it says it has written.
fn run_shard(scratch: &Scratch, node: &str, index: usize) -> u64 {
    let index = index.to_string();
    scratch.json(&["run-shard", "medrounds", node, &index])["rows"].as_u64().expect("rows")
}

#[test]
fn shards_run_shuffled_by_separate_processes_are_the_same_bytes() {
    let whole = sample();
    let expected = release(&whole, "2");
    let expected_files = build_files(&whole);
    let scratch = sample();
    let plan = whole.plan(&[]);
    let nodes: Vec<&str> = plan.iter().filter_map(|line| line.strip_suffix(" fresh")).collect();
    assert!(nodes.len() >= 5, "{plan:?}");
    let mut n_processes = 0;
    for (node, seed) in nodes.into_iter().zip(1..) {
        // What one process writes for one input shard: what it collects, if the node decides about a table.
        let count = |kind: &str| {
            let folder = |path: &String| path.split('/').nth(2).map(str::to_owned);
            let found = expected_files.keys().filter(|path| path.starts_with(&format!("{node}/"))).filter_map(folder);
            found.filter(|name| name.starts_with(kind)).collect::<std::collections::BTreeSet<_>>().len()
        };
        let n_shards = if count("columns-") > 0 { count("columns-") } else { count("shard-") };
        assert!(n_shards >= 4, "{node} has {n_shards} shards");
        let order = shuffled(n_shards, seed);
        println!("{node}: {order:?}");
        std::thread::scope(|scope| {
            let (even, odd): (Vec<usize>, Vec<usize>) = order.iter().partition(|index| *index % 2 == 0);
            for half in [even, odd] {
                let scratch = &scratch;
                scope.spawn(move || half.iter().for_each(|index| assert!(run_shard(scratch, node, *index) <= 8)));
            }
        });
        n_processes += n_shards;

        // A shard that is there is not run again.
        let before = times(&scratch.path("data/work"));
        assert_eq!(run_shard(&scratch, node, order[0]), 0);
        assert_eq!(times(&scratch.path("data/work")), before);
        scratch.run_expecting(2, &["run-shard", "medrounds", node, &n_shards.to_string()]);

        // The coordinator finds all of them done, and commits.
        let build = scratch.run(&["build", "medrounds", "--to", node]);
        assert!(matches!(build.code, Some(0 | 4)), "{}", build.stderr);
        let log = last_log(&scratch);
        let of_node = |event: &str| log.iter().filter(|entry| entry["event"] == event && entry["node"] == node).count();
        assert_eq!(
            (of_node("shards_planned"), of_node("shard_finished"), of_node("node_finished")),
            (1, 0, 1),
            "{log:?}"
        );
    }
    println!("{n_processes} processes");
    assert_eq!(build_files(&scratch), expected_files);
    assert_eq!(release(&scratch, "1"), expected);
}

/// Inode and time of every file, by path.
fn times(folder: &Path) -> BTreeMap<String, (u64, SystemTime)> {
    use std::os::unix::fs::MetadataExt;
    let describe = |path: String| {
        let metadata = std::fs::metadata(folder.join(&path)).expect("a file");
        (path, (metadata.ino(), metadata.modified().expect("a time")))
    };
    casemill::release::freeze::walk(folder).expect("a folder").into_iter().map(describe).collect()
}

/// The events of the run that began last.
fn last_log(scratch: &Scratch) -> Vec<serde_json::Value> {
    let logs =
        std::fs::read_dir(scratch.path("data/work/medrounds/runs")).expect("runs").map(|entry| entry.expect("a log"));
    let last = logs.max_by_key(|log| log.metadata().and_then(|log| log.modified()).expect("a time")).expect("a log");
    let text = std::fs::read_to_string(last.path()).expect("text");
    text.lines().map(|line| serde_json::from_str(line).expect("JSON")).collect()
}

/// Case rep-01: hash-map order or parallel results give another row order in each run.
#[test]
fn rep_01_one_and_eight_threads_three_runs_equal_bytes() {
    let scratch = Scratch::with_lines(1000, 64);
    let mut found = Vec::new();
    for jobs in ["1", "8", "1", "8", "1", "8"] {
        if scratch.path("data").exists() {
            std::fs::remove_dir_all(scratch.path("data")).expect("the folder goes");
        }
        release(&scratch, jobs);
        found.push((hashes(&scratch.path("data/release/medrounds-1")), build_files(&scratch)));
    }
    assert!(manifest(&scratch)["n_cases"].as_u64().is_some_and(|n| n > 900));
    for other in &found[1..] {
        assert_eq!(*other, found[0]);
    }
}

/// Case par-03: bytes that depend on more than the data. Equal builds have equal bytes; another size of the row
/// groups is another file with the same content hash.
#[test]
fn par_03_the_content_hash_survives_other_row_groups() {
    let scratches = [(); 2].map(|()| Scratch::with_lines(1000, 100));
    let sums: Vec<String> = std::thread::scope(|scope| {
        let threads: Vec<_> = scratches.iter().map(|scratch| scope.spawn(|| release(scratch, "2"))).collect();
        threads.into_iter().map(|thread| thread.join().expect("a release")).collect()
    });
    assert_eq!(sums[0], sums[1], "two processes at the same time");
    let other = Scratch::with_lines(1000, 333);
    let other_sums = release(&other, "2");
    let groups = |scratch: &Scratch| {
        let files = build_files(scratch);
        files.into_iter().filter(|(path, _)| path.ends_with("part.parquet")).map(|(_, hash)| hash).collect::<Vec<_>>()
    };
    assert_ne!(groups(&other), groups(&scratches[0]), "the row groups were to be others");
    assert_ne!(other_sums, sums[0], "the manifest names the builds");
    assert_eq!(manifest(&other)["content_hash"], manifest(&scratches[0])["content_hash"]);
    assert_eq!(manifest(&other)["n_cases"], manifest(&scratches[0])["n_cases"]);
}
