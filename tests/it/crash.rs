//! Kills, failing file-system operations, Ctrl-C and a second coordinator: nothing that was finished is lost or done
//! again, and the bytes are those of an undisturbed build.

use crate::support::{Run, Scratch, build_files, medqa_line};
use std::collections::BTreeMap;
use std::fmt::Write as _;
use std::os::unix::fs::DirEntryExt;
use std::os::unix::process::ExitStatusExt;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::time::{Duration, Instant};

/// Kills of a running build: a random number of shards after its start, and at a random time.
const KILLS_BETWEEN_SHARDS: usize = 20;
const KILLS_AT_ANY_TIME: usize = 10;
const JOBS: usize = 2;

const BUILD: &[&str] = &["build", "medrounds", "--jobs", "2", "--quiet"];
const FREEZE: &[&str] = &["freeze", "medrounds", "--version", "1"];
const SUMS: &str = "data/release/medrounds-1/SHA256SUMS";

/// A fixed sequence of numbers (Knuth's constants), so that a failure can be repeated.
struct Random(u64);

impl Random {
    fn below(&mut self, n: usize) -> usize {
        self.0 = self.0.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
        usize::try_from((self.0 >> 33) % (n as u64)).expect("less than n")
    }
}

/// Folders in the build folders of all nodes, with their inodes. What is being renamed meanwhile is left out.
fn folders(scratch: &Scratch, wanted: impl Fn(&str) -> bool) -> BTreeMap<PathBuf, u64> {
    let list = |path: PathBuf| std::fs::read_dir(path).into_iter().flatten().flatten();
    let builds = list(scratch.path("data/work/medrounds")).flat_map(|node| list(node.path()));
    let found = builds.flat_map(|build| list(build.path()));
    found
        .filter(|entry| entry.file_name().to_str().is_some_and(&wanted))
        .map(|entry| (entry.path(), entry.ino()))
        .collect()
}

/// Committed shards: what a table node collected (`columns-…`) counts as one too.
fn committed(scratch: &Scratch) -> BTreeMap<PathBuf, u64> {
    folders(scratch, |name| name.starts_with("shard-") || name.starts_with("columns-"))
}

fn start(scratch: &Scratch, arguments: &[&str]) -> Child {
    let mut command = scratch.command(arguments);
    command.stdout(Stdio::null()).stderr(Stdio::piped()).spawn().expect("the binary runs")
}

/// Waits until `ready`, or until the process ended by itself.
fn wait_until(child: &mut Child, mut ready: impl FnMut() -> bool) {
    while !ready() && child.try_wait().expect("a child").is_none() {
        std::thread::sleep(Duration::from_micros(300));
    }
}

fn content_hash(scratch: &Scratch) -> String {
    let manifest: serde_json::Value =
        serde_json::from_str(&scratch.read("data/release/medrounds-1/MANIFEST.json")).expect("JSON");
    manifest["content_hash"].as_str().expect("a hash").to_owned()
}

/// What happened over all kills.
#[derive(Default, Debug)]
struct Tally {
    n_kills: usize,
    n_hits: usize,
    n_between_shards: usize,
    n_builds: usize,
    n_committed: usize,
    n_lost: usize,
}

#[test]
fn kills_cost_at_most_a_shard_a_job_and_change_no_byte() {
    let mut random = Random(20_261_130);
    let undisturbed = Scratch::with_lines(1500, 64);
    let began = Instant::now();
    undisturbed.run_expecting(0, BUILD);
    let duration = began.elapsed();
    let expected = (undisturbed.release_sums("1"), content_hash(&undisturbed));
    let n_total = committed(&undisturbed).len();
    for (node, n) in per_node(&committed(&undisturbed)) {
        assert!(n >= 20, "node {node} has {n} shards, the test wants 20");
    }

    let scratch = Scratch::with_lines(1500, 64);
    let mut tally = Tally::default();
    let finish = |tally: &mut Tally| {
        let before = committed(&scratch);
        scratch.run_expecting(0, BUILD);
        let after = committed(&scratch);
        assert_kept(&before, &after);
        assert_eq!(after.len(), n_total);
        tally.n_committed += after.len() - before.len();
        tally.n_builds += 1;
        assert_eq!((scratch.release_sums("1"), content_hash(&scratch)), expected, "{tally:?}");
        assert_eq!(build_files(&scratch), build_files(&undisturbed));
        std::fs::remove_dir_all(scratch.path("data")).expect("the folder goes");
    };
    let (mut between_shards, mut at_any_time) = (0, 0);
    while between_shards < KILLS_BETWEEN_SHARDS || at_any_time < KILLS_AT_ANY_TIME {
        assert!(tally.n_kills < 60, "too many kills missed the build: {tally:?}");
        let watch = between_shards < KILLS_BETWEEN_SHARDS && (at_any_time == KILLS_AT_ANY_TIME || random.below(3) > 0);
        let mut before = committed(&scratch);
        if n_total - before.len() < 2 {
            finish(&mut tally);
            before.clear();
        }
        let n_left = n_total - before.len();
        let mut child = start(&scratch, BUILD);
        if watch {
            let n_wanted = before.len() + 1 + random.below(n_left - 1);
            wait_until(&mut child, || committed(&scratch).len() >= n_wanted);
        } else {
            let share = n_left as f64 / n_total as f64 * random.below(800) as f64 / 1000.0;
            let (began, delay) = (Instant::now(), duration.mul_f64(share));
            wait_until(&mut child, || began.elapsed() >= delay);
        }
        let process = child.id();
        child.kill().expect("a signal");
        let status = child.wait().expect("a status");
        let after = committed(&scratch);
        assert_kept(&before, &after);
        let hit = status.signal() == Some(9);
        assert!(hit || status.success(), "{status}");
        // What this process had begun and not finished: this much of the work is done again.
        let own = format!("tmp-{process}-");
        let lost = folders(&scratch, |name| {
            name.starts_with(&own) && (name.contains("-shard-") || name.contains("-columns-"))
        });
        assert!(lost.len() <= JOBS, "{lost:?}");
        let hit_between = hit && before.len() < after.len() && after.len() < n_total;
        tally.n_kills += 1;
        tally.n_hits += usize::from(hit);
        tally.n_between_shards += usize::from(hit_between);
        tally.n_committed += after.len() - before.len();
        tally.n_lost += lost.len();
        if watch {
            between_shards += usize::from(hit_between);
        } else {
            at_any_time += 1;
        }
        println!("kill {}: {} of {n_total} before, {} after, hit {hit}", tally.n_kills, before.len(), after.len());
    }
    finish(&mut tally);
    println!("{tally:?}; a build has {n_total} shards and takes {duration:?}");
    // No shard was ever committed twice: finished work is never done again.
    assert_eq!(tally.n_committed, n_total * tally.n_builds);
    assert!(tally.n_committed + tally.n_lost <= n_total * tally.n_builds + tally.n_kills * JOBS);
    assert!(tally.n_hits * 3 >= tally.n_kills * 2, "{tally:?}");
}

fn per_node(folders: &BTreeMap<PathBuf, u64>) -> BTreeMap<String, usize> {
    let mut n = BTreeMap::new();
    for path in folders.keys() {
        let node = path.ancestors().nth(2).and_then(|node| node.file_name()).expect("a node");
        let kind =
            if path.file_name().is_some_and(|name| name.to_string_lossy().starts_with('c')) { "columns" } else { "" };
        *n.entry(format!("{} {kind}", node.display())).or_default() += 1;
    }
    n
}

/// Every committed shard is still there, and is the same folder.
fn assert_kept(before: &BTreeMap<PathBuf, u64>, after: &BTreeMap<PathBuf, u64>) {
    for (path, inode) in before {
        assert_eq!(after.get(path), Some(inode), "{}", path.display());
    }
}

/// Rules that compile at once: these tests run the binary some hundred times.
const SHORT_RULES: &str = "
version = 1
min_vignette_words = 8
drop = [{ id = 'treatment', reason = 'management', where = 'lead_in', pattern = 'treatment', note = 'A treatment' }]
disease = [{ id = 'itis', pattern = 'itis', note = 'An inflammation' }]
diagnosis = [{ id = 'diagnosis', certain = true, pattern = 'likely diagnosis', note = 'The most likely diagnosis' }]
patient = [{ id = 'age', pattern = 'year-old', note = 'An age' }]
";

/// Five lines in two shards, some of them in a packed file. In memory where the system offers that: a killed process,
/// unlike a crashed system, loses nothing that it did not sync, so there is no need to wait for a disk.
fn small() -> Scratch {
    let memory = Path::new("/dev/shm");
    let scratch = if memory.is_dir() { Scratch::empty_in(memory) } else { Scratch::empty() };
    scratch.write("pipelines/rules/vignette.toml", SHORT_RULES);
    scratch.set_shard_records(3);
    scratch.write("raw/medqa/a.jsonl", (0..3).map(|n| medqa_line(n) + "\n").collect::<String>());
    let mut packed = flate2::write::GzEncoder::new(Vec::new(), flate2::Compression::fast());
    for n in 3..5 {
        std::io::Write::write_all(&mut packed, (medqa_line(n) + "\n").as_bytes()).expect("memory");
    }
    scratch.write("raw/medqa/b.jsonl.gz", packed.finish().expect("memory"));
    scratch
}

fn run_failing(scratch: &Scratch, failpoint: &str, arguments: &[&str]) -> Run {
    let output = scratch.command(arguments).env("CASEMILL_FAILPOINT", failpoint).output().expect("the binary runs");
    Run {
        code: output.status.code(),
        stdout: String::from_utf8(output.stdout).expect("UTF-8"),
        stderr: String::from_utf8(output.stderr).expect("UTF-8"),
    }
}

const OPERATIONS: [&str; 4] = ["create", "write", "fsync", "rename"];

/// The commands whose operations are made to fail.
#[derive(Clone, Copy, PartialEq)]
enum Step {
    Build,
    Freeze,
}

impl Step {
    fn arguments(self) -> &'static [&'static str] {
        if self == Self::Build { BUILD } else { FREEZE }
    }

    /// Removes what the step makes.
    fn clear(self, scratch: &Scratch) {
        let folder = if self == Self::Build { "data" } else { "data/release" };
        if scratch.path(folder).exists() {
            std::fs::remove_dir_all(scratch.path(folder)).expect("the folder goes");
        }
    }

    /// How many operations of a kind there are: the largest n that a fail-point reaches.
    fn n_operations(self, scratch: &Scratch, operation: &str) -> u64 {
        let reached = |n: u64| {
            self.clear(scratch);
            run_failing(scratch, &format!("{operation}:{n}:kill"), self.arguments()).code.is_none()
        };
        let (mut low, mut high) = (0, 16);
        while reached(high) {
            (low, high) = (high, high * 2);
        }
        while high - low > 1 {
            let middle = u64::midpoint(low, high);
            if reached(middle) { low = middle } else { high = middle }
        }
        low
    }
}

/// What is done at the n-th operation, for every n there is.
const ACTIONS: [&str; 3] = ["kill", "torn", "full"];

/// Makes operations of a step fail, one a run. The same command without fail-point then gives the expected bytes.
fn survives_failing_operations(step: Step) {
    let undisturbed = small();
    let expected = undisturbed.release_sums("1");
    let expected_files = build_files(&undisturbed);
    let cover = |operation: &str| -> String {
        let scratch = small();
        if step == Step::Freeze {
            scratch.run_expecting(0, BUILD);
        }
        let n_operations = step.n_operations(&scratch, operation);
        assert!(n_operations > 0, "{operation} never happens");
        let mut covered = format!("{operation}, {n_operations} operations:");
        for action in ACTIONS {
            // What is torn is a write; elsewhere it would be killed.
            if action == "torn" && operation != "write" {
                continue;
            }
            let mut n_points = 0;
            for n in 1..=n_operations {
                step.clear(&scratch);
                let failpoint = format!("{operation}:{n}:{action}");
                let run = run_failing(&scratch, &failpoint, step.arguments());
                if action == "full" {
                    assert_full(&scratch, &failpoint, &run);
                } else {
                    assert_eq!(run.code, None, "{failpoint}: {}", run.stderr);
                }
                let release = scratch.path("data/release/medrounds-1");
                assert!(!release.exists() || scratch.read(SUMS) == expected, "{failpoint}: half a release");
                if step == Step::Build {
                    scratch.run_expecting(0, BUILD);
                }
                scratch.run_expecting(0, FREEZE);
                assert_eq!(scratch.read(SUMS), expected, "{failpoint}");
                assert_eq!(build_files(&scratch), expected_files, "{failpoint}");
                n_points += 1;
            }
            write!(covered, " {n_points} {action}").expect("memory");
        }
        covered
    };
    std::thread::scope(|scope| {
        let cover = &cover;
        for thread in OPERATIONS.map(|operation| scope.spawn(move || cover(operation))) {
            match thread.join() {
                Ok(covered) => println!("{covered}"),
                Err(panic) => std::panic::resume_unwind(panic),
            }
        }
    });
}

/// The message names the file and says what to do, and nothing half done is left.
fn assert_full(scratch: &Scratch, failpoint: &str, run: &Run) {
    assert_eq!(run.code, Some(1), "{failpoint}: {}", run.stderr);
    assert!(run.stderr.contains("free space and run the same command again"), "{failpoint}: {}", run.stderr);
    assert!(run.stderr.contains(" data/"), "{failpoint} names no file: {}", run.stderr);
    assert!(!run.stderr.contains("panic"), "{failpoint}: {}", run.stderr);
    assert_eq!(run.stderr.lines().count(), 1, "{failpoint}: {}", run.stderr);
    let mut left = build_files(scratch).into_keys().filter(|path| path.contains("/tmp-"));
    assert_eq!(left.next(), None, "{failpoint}");
    let releases = casemill::store::fs::list(&scratch.path("data/release")).expect("a folder");
    assert!(releases.iter().all(|name| !name.starts_with("tmp-")), "{failpoint}: {releases:?}");
}

#[test]
fn a_build_survives_a_failure_of_any_operation() {
    survives_failing_operations(Step::Build);
}

#[test]
fn a_freeze_survives_a_failure_of_any_operation() {
    survives_failing_operations(Step::Freeze);
}

#[test]
fn an_interrupted_build_keeps_finished_shards_and_goes_on() {
    let undisturbed = Scratch::with_lines(1500, 64);
    let expected = undisturbed.release_sums("1");
    let n_total = committed(&undisturbed).len();
    let scratch = Scratch::with_lines(1500, 64);
    let mut before = BTreeMap::new();
    for (signal, n_wanted) in [("-INT", n_total / 5), ("-TERM", n_total / 3)] {
        let mut child = start(&scratch, BUILD);
        wait_until(&mut child, || committed(&scratch).len() >= n_wanted);
        let sent = Command::new("kill").args([signal, &child.id().to_string()]).status().expect("kill runs");
        assert!(sent.success(), "the build ended before the signal");
        let output = child.wait_with_output().expect("an end");
        let stderr = String::from_utf8(output.stderr).expect("UTF-8");
        assert_eq!(output.status.code(), Some(130), "{signal} {stderr}");
        assert!(stderr.contains("interrupted; finished shards are kept"), "{stderr}");
        let after = committed(&scratch);
        assert_kept(&before, &after);
        assert!(after.len() >= n_wanted && after.len() < n_total, "{signal}: {} of {n_total}", after.len());
        let unfinished = folders(&scratch, |name| name.starts_with("tmp-"));
        assert!(unfinished.is_empty(), "running shards finish: {unfinished:?}");
        before = after;
    }
    assert_eq!(scratch.release_sums("1"), expected);
    assert_kept(&before, &committed(&scratch));
}

#[test]
fn a_second_coordinator_is_refused_and_told_who_holds_the_data_folder() {
    let scratch = Scratch::with_sample();
    let workspace = casemill::store::Workspace { raw: scratch.path("raw"), data: scratch.path("data") };
    let lock = workspace.lock("test").expect("nobody else is there");
    for arguments in [BUILD, FREEZE, &["clean"]] {
        let refused = scratch.run(arguments);
        assert_eq!(refused.code, Some(2), "{arguments:?} {}", refused.stderr);
        let holder = format!("(test, process {})", std::process::id());
        assert!(refused.stderr.contains(&holder), "{arguments:?} {}", refused.stderr);
    }
    // Reading needs no lock.
    assert!(scratch.plan(&[]).contains(&"ingest_medqa missing: never built".to_owned()));
    assert!(committed(&scratch).is_empty());
    drop(lock);
    scratch.run_expecting(4, BUILD);
}
