//! Raw files as they should not be: every fault has its name, its place and its count, and one bad line costs no other.

use crate::support::{Run, Scratch, build_files, medqa_line, medqa_lines};
use expect_test::{Expect, expect};
use serde_json::{Value, json};
use std::io::{Read, Write};
use std::path::Path;
use std::process::Stdio;

/// A project that takes any share of bad lines.
fn tolerant() -> Scratch {
    let scratch = Scratch::empty();
    scratch.edit("pipelines/medrounds.toml", "max_quarantined = 0.2", "max_quarantined = 1.0");
    scratch
}

/// Line `n` with something changed.
fn changed(n: u64, change: impl FnOnce(&mut Value)) -> Vec<u8> {
    let mut line: Value = serde_json::from_str(&medqa_line(n)).expect("JSON");
    change(&mut line);
    line.to_string().into_bytes()
}

/// Line `n` with a text replaced; it must be there.
fn replaced(n: u64, from: &str, to: &str) -> Vec<u8> {
    let line = medqa_line(n);
    assert!(line.contains(from), "{line}");
    line.replacen(from, to, 1).into_bytes()
}

/// Builds, expects the exit code, and that nothing panicked.
fn build(scratch: &Scratch, code: i32) -> Run {
    let run = scratch.run_expecting(code, &["build", "medrounds", "--quiet", "--json"]);
    assert!(!run.stderr.contains("panic"), "{}", run.stderr);
    run
}

/// Every node accounts for all that came in; each reads what the one before it kept. Gives the number of cases.
fn assert_conserved(run: &Run, n_lines: u64) -> u64 {
    let document: Value = serde_json::from_str(&run.stdout).expect("JSON");
    let mut n_expected = n_lines;
    let is_there = |node: &&Value| node["state"] != "absent";
    for node in document["nodes"].as_array().expect("nodes").iter().filter(is_there) {
        let counts = &node["counts"]["medqa"];
        let number = |key: &str| counts[key].as_u64().unwrap_or_else(|| panic!("{key} of {node}"));
        let sum = |key: &str| -> u64 {
            counts[key].as_object().expect("reasons").values().map(|n| n.as_u64().expect("a number")).sum()
        };
        assert_eq!(number("n_in"), n_expected, "{node}");
        assert_eq!(number("n_in") + number("n_split"), number("kept") + sum("dropped") + sum("quarantined"), "{node}");
        n_expected = number("kept");
    }
    n_expected
}

/// How a line of the file ended: `case`, or the node, exit, reason and detail from the ledger.
fn fate(scratch: &Scratch, file: &str, line: u64) -> String {
    let document = scratch.json(&["explain", "medrounds", &format!("{file}:{line}")]);
    let lives = document["lives"].as_array().unwrap_or_else(|| panic!("{document}"));
    assert_eq!(lives.len(), 1, "{document}");
    let steps = lives[0]["steps"].as_array().expect("steps");
    let text = |step: &Value, key: &str| step[key].as_str().unwrap_or("").to_owned();
    let exit = steps.iter().find(|step| matches!(text(step, "outcome").as_str(), "dropped" | "quarantined"));
    match exit {
        Some(step) => ["node", "outcome", "reason", "detail"].map(|key| text(step, key)).join(" "),
        None => {
            assert_eq!(steps.last().map(|step| text(step, "node")).as_deref(), Some("extract_slots"), "{document}");
            "case".to_owned()
        }
    }
}

/// The content hash of a release of the build.
fn content_hash(scratch: &Scratch) -> String {
    let frozen = scratch.json(&["freeze", "medrounds", "--version", "1", "--allow-quarantine"]);
    frozen["content_hash"].as_str().unwrap_or_else(|| panic!("{frozen}")).to_owned()
}

#[test]
fn every_bad_line_is_named_and_costs_no_other() {
    let mut invalid = medqa_line(2).into_bytes();
    invalid[40] = 0xff;
    let half = medqa_line(4).into_bytes();
    let swap_options = |n: u64, options: Value| changed(n, |line| line["options"] = options);
    let lines: Vec<(&str, Vec<u8>)> = vec![
        ("good", medqa_line(1).into_bytes()),
        ("invalid UTF-8", invalid),
        ("not JSON", b"question,answer,options".to_vec()),
        ("half a line", half[..half.len() / 2].to_vec()),
        ("zero bytes", vec![0; 64]),
        ("a list", b"[1, 2]".to_vec()),
        ("deep nesting", ["[".repeat(10_000), "]".repeat(10_000)].concat().into_bytes()),
        ("half a surrogate", replaced(5, "tenderness", "\\ud800")),
        ("duplicate key", replaced(6, "{\"answer\"", "{\"answer\":\"Gout\",\"answer\"")),
        ("duplicate option", replaced(7, "{\"A\"", "{\"A\":\"Gout\",\"A\"")),
        ("no option C", swap_options(8, json!({"A": "Chest", "B": "b", "D": "d"}))),
        ("option F", swap_options(9, json!({"A": "a", "B": "b", "C": "c", "D": "d", "E": "e", "F": "f"}))),
        ("option e", swap_options(10, json!({"A": "a", "B": "b", "C": "c", "D": "d", "e": "e"}))),
        ("options as a list", swap_options(11, json!(["a", "b", "c", "d"]))),
        ("answer is no option", changed(12, |line| line["answer"] = "Scurvy".into())),
        ("key is no option", changed(13, |line| line["answer_idx"] = "E".into())),
        ("gold option twice", changed(14, |line| line["options"]["C"] = line["options"]["A"].clone())),
        ("another option twice", changed(15, |line| line["options"]["C"] = line["options"]["B"].clone())),
        ("empty stem", changed(16, |line| line["question"] = "".into())),
        ("blank stem", changed(17, |line| line["question"] = "\u{a0}\n\t ".into())),
        ("stem is a number", changed(18, |line| line["question"] = 7.into())),
        ("no stem", changed(19, |line| drop(line.as_object_mut().expect("an object").remove("question")))),
        (
            "empty answer",
            changed(20, |line| {
                line["answer"] = "".into();
                line["options"]["A"] = "".into();
            }),
        ),
        ("extra key", changed(21, |line| line["realidx"] = 0.into())),
        ("zero byte in the stem", replaced(22, "tenderness", "\\u0000")),
        ("good", medqa_line(23).into_bytes()),
    ];
    let scratch = tolerant();
    scratch.set_shard_records(7);
    scratch.write(
        "raw/medqa/bad.jsonl",
        lines.iter().flat_map(|(_, line)| [&line[..], b"\n"].concat()).collect::<Vec<u8>>(),
    );
    let run = build(&scratch, 4);
    let n_cases = assert_conserved(&run, lines.len() as u64);
    let mut text = String::new();
    let mut n_ended_as_case = 0;
    for (n, (label, _)) in (1..).zip(&lines) {
        let fate = fate(&scratch, "medqa/bad.jsonl", n);
        n_ended_as_case += u64::from(fate == "case");
        text += &format!("{label}: {fate}\n");
    }
    assert_eq!(n_ended_as_case, n_cases);
    expect![[r#"
        good: case
        invalid UTF-8: ingest_medqa quarantined invalid_utf8 byte 41 of the line is not UTF-8
        not JSON: ingest_medqa quarantined invalid_json expected value at column 1
        half a line: ingest_medqa quarantined invalid_json EOF while parsing a string at column 237
        zero bytes: ingest_medqa quarantined invalid_json expected value at column 1
        a list: ingest_medqa quarantined not_an_object the line is an array
        deep nesting: ingest_medqa quarantined invalid_json recursion limit exceeded at column 128
        half a surrogate: ingest_medqa quarantined invalid_json unexpected end of hex escape at column 379
        duplicate key: ingest_medqa quarantined duplicate_key duplicate key `answer` at column 25
        duplicate option: ingest_medqa quarantined duplicate_key duplicate key `A` at column 84
        no option C: ingest_medqa quarantined option_keys the option keys are A, B, D; A to D or A to E are expected
        option F: ingest_medqa quarantined option_keys the option keys are A, B, C, D, E, F; A to D or A to E are expected
        option e: ingest_medqa quarantined option_keys the option keys are A, B, C, D, e; A to D or A to E are expected
        options as a list: ingest_medqa quarantined wrong_type `options` must be an object, not an array
        answer is no option: ingest_medqa quarantined answer_mismatch answer is `Scurvy` but option A is `Erysipelas`
        key is no option: ingest_medqa quarantined answer_mismatch answer_idx is `E`, which is none of the option keys
        gold option twice: normalize_answer dropped ambiguous_key options A and C all say `Pneumonia`
        another option twice: case
        empty stem: ingest_medqa dropped empty_stem the question holds 0 blank characters
        blank stem: ingest_medqa dropped empty_stem the question holds 4 blank characters
        stem is a number: ingest_medqa quarantined wrong_type `question` must be a string, not a number
        no stem: ingest_medqa quarantined missing_field `question` is missing
        empty answer: ingest_medqa quarantined empty_answer option A is blank
        extra key: case
        zero byte in the stem: case
        good: case
    "#]].assert_eq(&text);
}

#[test]
fn marks_line_ends_and_blank_lines_are_no_content() {
    let plain = tolerant();
    plain.write("raw/medqa/a.jsonl", medqa_lines(6));
    build(&plain, 0);
    let expected = (content_hash(&plain), place_and_hash(&plain, "medqa/a.jsonl", 6));
    let mark = "\u{feff}";
    for (what, text, last_line) in [
        ("mark", format!("{mark}{}", medqa_lines(6)), 6),
        ("CRLF", medqa_lines(6).replace('\n', "\r\n"), 6),
        ("mark and CRLF", format!("{mark}{}", medqa_lines(6).replace('\n', "\r\n")), 6),
        ("no final line end", medqa_lines(6).trim_end().to_owned(), 6),
        ("blank lines", format!("\n{}", medqa_lines(6).replace('\n', "\n \t\r\n\n")), 17),
    ] {
        let scratch = tolerant();
        scratch.write("raw/medqa/a.jsonl", text);
        let run = build(&scratch, 0);
        assert_eq!(assert_conserved(&run, 6), 6, "{what}");
        let found = (content_hash(&scratch), place_and_hash(&scratch, "medqa/a.jsonl", last_line));
        assert_eq!(found, expected, "{what}");
    }
    // A mark belongs to the beginning of a file; elsewhere it is a stray character, as joined files have it.
    let joined = tolerant();
    joined.write("raw/medqa/a.jsonl", format!("{}{mark}{}", medqa_line(1) + "\n", medqa_line(2)));
    assert_eq!(assert_conserved(&build(&joined, 4), 2), 1);
    assert!(fate(&joined, "medqa/a.jsonl", 2).starts_with("ingest_medqa quarantined invalid_json"));
}

/// Id and hash of the record on a line.
fn place_and_hash(scratch: &Scratch, file: &str, line: u64) -> (String, String) {
    let document = scratch.json(&["explain", "medrounds", &format!("{file}:{line}")]);
    let life = &document["lives"][0];
    assert_eq!(life["place"], format!("{file}:{line}"));
    let text = |key: &str| life[key].as_str().expect("text").to_owned();
    (text("record_id"), text("raw_sha256"))
}

fn gzip(bytes: &[u8]) -> Vec<u8> {
    let mut encoder = flate2::write::GzEncoder::new(Vec::new(), flate2::Compression::default());
    encoder.write_all(bytes).expect("memory");
    encoder.finish().expect("memory")
}

#[test]
fn a_packed_file_gives_the_same_cases() {
    let plain = tolerant();
    plain.write("raw/medqa/a.jsonl", medqa_lines(40));
    build(&plain, 0);
    let expected = content_hash(&plain);
    let text = medqa_lines(40);
    let (one, two) = text.split_at(text.len() / 3);
    for (what, name, bytes) in [
        ("packed", "a.jsonl.gz", gzip(text.as_bytes())),
        ("packed in two members", "a.jsonl.gz", [gzip(one.as_bytes()), gzip(two.as_bytes())].concat()),
        ("packed, by content and not by name", "a.jsonl", gzip(text.as_bytes())),
        ("plain, by content and not by name", "a.jsonl.gz", text.clone().into_bytes()),
    ] {
        let scratch = tolerant();
        scratch.write(&format!("raw/medqa/{name}"), bytes);
        assert_eq!(assert_conserved(&build(&scratch, 0), 40), 40, "{what}");
        assert_eq!(content_hash(&scratch), expected, "{what}");
    }
}

#[test]
fn a_broken_packed_file_stops_with_its_name_and_how_far_it_can_be_read() {
    let text = medqa_lines(400);
    let packed = gzip(text.as_bytes());
    let with_bit_flipped = |from_end: usize| {
        let mut bytes = packed.clone();
        let position = bytes.len() - from_end;
        bytes[position] ^= 1;
        bytes
    };
    let scratch = tolerant();
    scratch.write("raw/medqa/good.jsonl", medqa_line(1000));
    let mut n_partial = 0;
    for (what, bytes, words) in [
        ("cut in the middle", packed[..packed.len() / 2].to_vec(), "is cut off: it ends after"),
        ("cut in the header", packed[..6].to_vec(), "is cut off: it ends after"),
        ("without its last byte", packed[..packed.len() - 1].to_vec(), "is cut off: it ends after"),
        ("a wrong check sum", with_bit_flipped(8), "is damaged after"),
        ("a wrong length", with_bit_flipped(2), "is damaged after"),
        ("rubbish behind it", [&packed[..], b"twenty-six bytes of rubbish"].concat(), "is damaged after"),
    ] {
        let mut unpacked = Vec::new();
        flate2::read::MultiGzDecoder::new(&bytes[..]).read_to_end(&mut unpacked).expect_err("a broken file");
        let n_lines = unpacked.iter().filter(|byte| **byte == b'\n').count();
        n_partial += usize::from(n_lines > 0 && n_lines < 400);
        scratch.write("raw/medqa/packed.jsonl.gz", &bytes);
        let run = build(&scratch, 3);
        let expected = format!("medqa/packed.jsonl.gz: the gzip file {words} {n_lines} whole lines");
        assert!(run.stderr.contains(&expected), "{what}: {}, expected {expected}", run.stderr);
        assert!(build_files(&scratch).is_empty(), "{what}: nothing is built from half a file");
        assert!(unpacked_names(&scratch).is_empty(), "{what}");
    }
    assert!(n_partial > 0, "no case was read in part");
    scratch.write("raw/medqa/packed.jsonl.gz", packed);
    assert_eq!(assert_conserved(&build(&scratch, 0), 401), 401);
}

fn unpacked_names(scratch: &Scratch) -> Vec<String> {
    casemill::store::fs::list(&scratch.path("data/cache/unpacked")).expect("a folder")
}

#[test]
fn a_file_that_unpacks_to_too_much_stops_and_leaves_nothing() {
    let scratch = tolerant();
    let mut bomb = flate2::write::GzEncoder::new(Vec::new(), flate2::Compression::fast());
    std::io::copy(&mut std::io::repeat(b'\n').take(64 << 20), &mut bomb).expect("memory");
    scratch.write("raw/medqa/bomb.jsonl.gz", bomb.finish().expect("memory"));
    scratch.edit("sources/medqa.toml", "format =", "max_unpacked_bytes = 1_000_000\nformat =");
    let run = build(&scratch, 3);
    assert!(run.stderr.contains("medqa/bomb.jsonl.gz"), "{}", run.stderr);
    assert!(run.stderr.contains("unpacks to more than 1000000 bytes"), "{}", run.stderr);
    assert!(unpacked_names(&scratch).is_empty());
    // The limit counts what comes out: as many bytes as allowed are read.
    let text = medqa_lines(3);
    scratch.write("raw/medqa/bomb.jsonl.gz", gzip(text.as_bytes()));
    scratch.edit("sources/medqa.toml", "1_000_000", &text.len().to_string());
    build(&scratch, 0);
}

/// Highest resident memory of a build, in KiB, as the system counts it while the process lives.
fn peak_memory(scratch: &Scratch, code: i32) -> u64 {
    let mut command = scratch.command(&["build", "medrounds", "--quiet"]);
    let mut child = command.stdout(Stdio::null()).stderr(Stdio::null()).spawn().expect("the binary runs");
    let status = format!("/proc/{}/status", child.id());
    let mut peak = 0;
    let end = loop {
        if let Ok(text) = std::fs::read_to_string(&status) {
            let line = text.lines().find_map(|line| line.strip_prefix("VmHWM:"));
            let number = line.and_then(|line| line.trim().strip_suffix(" kB")?.trim().parse().ok());
            peak = number.unwrap_or(0).max(peak);
        }
        if let Some(end) = child.try_wait().expect("a child") {
            break end;
        }
        std::thread::sleep(std::time::Duration::from_millis(1));
    };
    assert_eq!(end.code(), Some(code));
    assert!(peak > 0, "{status} was never read");
    peak
}

#[test]
fn a_line_of_200_megabytes_is_quarantined_in_little_memory() {
    const LONG: u64 = 200_000_000;
    let scratch = tolerant();
    scratch.write("raw/medqa/long.jsonl", medqa_lines(20));
    let usual = peak_memory(&scratch, 0);
    let path = scratch.path("raw/medqa/long.jsonl");
    let mut file = std::io::BufWriter::new(std::fs::File::options().append(true).open(path).expect("the file"));
    file.write_all(b"{\"question\": \"").expect("a write");
    std::io::copy(&mut std::io::repeat(b'x').take(LONG - 14), &mut file).expect("a write");
    file.write_all(b"\n").and_then(|()| file.write_all(medqa_line(20).as_bytes())).expect("a write");
    file.into_inner().expect("a write");
    let peak = peak_memory(&scratch, 4);
    println!("peak memory {} MiB with the long line, {} MiB without", peak >> 10, usual >> 10);
    assert!(peak < usual + (32 << 10), "{peak} KiB with the long line, {usual} KiB without");
    assert!(peak < LONG / 1024, "{peak} KiB");
    let run = build(&scratch, 4);
    assert_eq!(assert_conserved(&run, 22), 21);
    let expected =
        "ingest_medqa quarantined line_too_long 200000001 bytes, more than the 1048576 allowed by max_line_bytes";
    assert_eq!(fate(&scratch, "medqa/long.jsonl", 21), expected);
    assert_eq!(fate(&scratch, "medqa/long.jsonl", 22), "case");
}

#[test]
fn an_empty_file_is_said_and_only_one_without_others_stops() {
    let scratch = tolerant();
    scratch.write("raw/medqa/empty.jsonl", "");
    let run = build(&scratch, 3);
    assert!(run.stderr.contains("there is no record in medqa/empty.jsonl"), "{}", run.stderr);
    scratch.write("raw/medqa/blank.jsonl", "\n \r\n");
    let run = build(&scratch, 3);
    assert!(run.stderr.contains("there is no record in medqa/blank.jsonl, medqa/empty.jsonl"), "{}", run.stderr);
    scratch.write("raw/medqa/good.jsonl", medqa_lines(3));
    let run = scratch.run_expecting(0, &["build", "medrounds"]);
    assert!(run.stderr.contains("warning: medqa/empty.jsonl is empty"), "{}", run.stderr);
    assert_eq!(fate(&scratch, "medqa/good.jsonl", 3), "case");
}

/// The tests may run as root, whom permissions do not stop; a link that leads nowhere and a file that opens but
/// cannot be read stop everybody.
#[test]
fn a_file_that_cannot_be_read_stops_with_its_name() {
    use std::os::unix::fs::{PermissionsExt, symlink};
    let scratch = tolerant();
    scratch.write("raw/medqa/good.jsonl", medqa_lines(3));
    let path = scratch.path("raw/medqa/x.jsonl");
    let check = |what: &str| {
        let run = build(&scratch, 3);
        assert!(run.stderr.contains("cannot read medqa/x.jsonl"), "{what}: {}", run.stderr);
        let checked = scratch.run_expecting(3, &["sources", "check", "medqa"]);
        assert!(checked.stderr.contains("cannot read medqa/x.jsonl"), "{what}: {}", checked.stderr);
        std::fs::remove_file(&path).expect("it goes");
    };
    symlink("nowhere.jsonl", &path).expect("a link");
    check("a link that leads nowhere");
    symlink("x.jsonl", &path).expect("a link");
    check("a link to itself");
    let pipe = std::process::Command::new("mkfifo").arg(&path).status().expect("mkfifo runs");
    assert!(pipe.success());
    check("a pipe that nobody writes to");
    if Path::new("/proc/self/mem").exists() {
        symlink("/proc/self/mem", &path).expect("a link");
        check("a file that opens but cannot be read");
    }
    std::fs::write(&path, medqa_line(9)).expect("a file");
    std::fs::set_permissions(&path, std::fs::Permissions::from_mode(0o000)).expect("a mode");
    if std::fs::File::open(&path).is_err() {
        check("a file without permission");
    } else {
        std::fs::remove_file(&path).expect("it goes");
    }

    // A folder is no file, whatever its name; that it was not read is said.
    std::fs::create_dir(&path).expect("a folder");
    let run = scratch.run_expecting(0, &["build", "medrounds"]);
    assert!(run.stderr.contains("they are no files: x.jsonl"), "{}", run.stderr);
}

#[test]
fn a_store_of_a_newer_version_is_left_alone() {
    let scratch = tolerant();
    scratch.write("raw/medqa/a.jsonl", medqa_lines(3));
    let format = "{\"store_format\": 999}";
    scratch.write("data/work/format.json", format);
    let commands: [&[&str]; 5] = [
        &["build", "medrounds"],
        &["plan", "medrounds"],
        &["explain", "medrounds", "medqa/a.jsonl:1"],
        &["freeze", "medrounds", "--version", "1"],
        &["clean"],
    ];
    for arguments in commands {
        let run = scratch.run_expecting(2, arguments);
        assert!(run.stderr.contains("written by a newer casemill (store format 999"), "{arguments:?}: {}", run.stderr);
        assert!(!run.stderr.contains("panic"), "{}", run.stderr);
    }
    assert_eq!(scratch.read("data/work/format.json"), format);
    assert!(!scratch.path("data/work/medrounds").exists());
}

/// Everything that a node over its limit has to do: stop, keep its ledger, and commit without running again once the
/// limit is raised.
fn check_limit(scratch: &Scratch, node: &str, limit: (&str, &str, &str), code: i32, place: &str, expected: &Expect) {
    let (key, from, to) = limit;
    scratch.edit("pipelines/medrounds.toml", &format!("{key} = {to}"), &format!("{key} = {from}"));
    let run = build(scratch, 3);
    assert!(run.stderr.contains(&format!("node {node}: it is not committed")), "{}", run.stderr);
    assert!(run.stderr.contains(key), "{}", run.stderr);
    let files = build_files(scratch);
    let of_node = |path: &&String| path.starts_with(&format!("{node}/"));
    assert!(files.keys().filter(of_node).any(|path| path.ends_with("/ledger.parquet")));
    assert!(!files.keys().filter(of_node).any(|path| path.ends_with("/stage.json")), "{files:?}");
    assert!(!files.keys().any(|path| path.starts_with("extract_slots/")), "nothing after it ran");
    // The line itself and the record that the message proposes both show the ledger.
    let (file, line) = place.rsplit_once(':').expect("a place");
    expected.assert_eq(&fate(scratch, file, line.parse().expect("a number")));
    let proposed = run.stderr.rsplit_once("casemill explain ").expect("an example").1.trim();
    let proposed: Vec<&str> = proposed.split(' ').collect();
    let shown = scratch.run_expecting(0, &[&["explain"], &proposed[..]].concat());
    assert!(shown.stdout.contains("dropped") || shown.stdout.contains("quarantined"), "{}", shown.stdout);
    let frozen = scratch.run_expecting(2, &["freeze", "medrounds", "--version", "1"]);
    assert!(frozen.stderr.contains("there is no finished build"), "{}", frozen.stderr);

    scratch.edit("pipelines/medrounds.toml", &format!("{key} = {from}"), &format!("{key} = {to}"));
    let again = scratch.run_expecting(code, &["build", "medrounds"]);
    let n_shards = files.keys().filter(of_node).filter(|path| path.ends_with("/shard.json")).count();
    assert!(n_shards >= 2, "{files:?}");
    let logs = std::fs::read_dir(scratch.path("data/work/medrounds/runs")).expect("runs");
    let texts = logs.map(|log| std::fs::read_to_string(log.expect("a log").path()).expect("text"));
    let mut texts = texts.filter(|text| text.contains("build_finished"));
    let text = texts.next().unwrap_or_else(|| panic!("no run finished: {}", again.stderr));
    let events: Vec<Value> = text.lines().map(|line| serde_json::from_str(line).expect("JSON")).collect();
    let of = |name: &str| events.iter().filter(|event| event["event"] == name && event["node"] == node).count();
    assert_eq!((of("shards_planned"), of("shard_finished"), of("node_finished")), (1, 0, 1), "{text}");
    for (path, hash) in &files {
        assert_eq!(build_files(scratch).get(path), Some(hash), "{path}");
    }
}

#[test]
fn a_reader_over_its_limit_keeps_its_ledger_and_commits_when_the_limit_is_raised() {
    let scratch = Scratch::empty();
    scratch.set_shard_records(8);
    let text: String =
        (0..40).map(|n| if n % 7 == 3 { "not JSON\n".to_owned() } else { medqa_line(n) + "\n" }).collect();
    scratch.write("raw/medqa/a.jsonl", text);
    let expected = expect!["ingest_medqa quarantined invalid_json expected ident at column 2"];
    check_limit(&scratch, "ingest_medqa", ("max_quarantined", "0.1", "0.2"), 4, "medqa/a.jsonl:11", &expected);
}

#[test]
fn a_table_over_its_limit_keeps_its_ledger_and_commits_when_the_limit_is_raised() {
    let scratch = Scratch::empty();
    scratch.set_shard_records(8);
    let text: String = (0..40).map(|n| medqa_line(n % 25) + "\n").collect();
    scratch.write("raw/medqa/a.jsonl", text);
    let expected = expect!["dedup_exact dropped exact_duplicate equal to medqa:26604e4919def46a (medqa/a.jsonl:5)"];
    check_limit(&scratch, "dedup_exact", ("max_loss", "0.3", "0.5"), 0, "medqa/a.jsonl:30", &expected);
}
