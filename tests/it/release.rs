//! Freezing a build into a release, and finding whatever was done to one afterwards.

use crate::support::{Run, Scratch, medqa_line, medqa_lines};
use casemill::record::release::{ProvenanceRow, ReleaseLedgerRow, ReleaseReviewRow, SlotRow, TextRow};
use casemill::record::slots::MedroundsCase;
use casemill::record::{Hash, Row, from_batch, to_batch, to_batch_as};
use casemill::release::case::{CaseRows, case_hash};
use casemill::release::freeze::walk;
use casemill::release::manifest::{MANIFEST, Manifest, SUMS, sums};
use casemill::release::{medrounds, merkle, verify, views};
use casemill::store::manifest::to_json;
use casemill::store::parquet;
use serde_json::{Value, json};
use std::collections::{BTreeMap, BTreeSet};
use std::path::Path;
use std::process::Command;
use std::sync::OnceLock;

const CASES: &str = "cases/part-00000.parquet";

type Files = BTreeMap<String, Vec<u8>>;

/// Every file below a folder, by its path.
fn read_tree(folder: &Path) -> Files {
    let names = walk(folder).expect("a folder");
    names.into_iter().map(|name| (name.clone(), std::fs::read(folder.join(name)).expect("a file"))).collect()
}

/// The frozen sample.
fn sample() -> &'static Files {
    static FILES: OnceLock<Files> = OnceLock::new();
    FILES.get_or_init(|| {
        let scratch = Scratch::with_sample();
        scratch.release_sums("1.0.0");
        read_tree(&scratch.path("data/release/medrounds-1.0.0"))
    })
}

/// A copy of the frozen sample, to do damage to.
struct Release {
    scratch: Scratch,
}

impl Release {
    fn unpack() -> Self {
        let release = Self { scratch: Scratch::empty() };
        sample().iter().for_each(|(name, bytes)| release.write(name, bytes));
        release
    }

    fn path(&self, name: &str) -> std::path::PathBuf {
        self.scratch.path("release").join(name)
    }

    fn write(&self, name: &str, bytes: impl AsRef<[u8]>) {
        self.scratch.write(&format!("release/{name}"), bytes);
    }

    fn remove(&self, name: &str) {
        std::fs::remove_file(self.path(name)).expect("a file to remove");
    }

    fn verify(&self, code: i32) -> Run {
        self.scratch.run_expecting(code, &["verify", "release"])
    }

    fn faults(&self) -> Vec<String> {
        verify(&self.path("")).expect("a release that can be looked at").faults
    }

    /// `verify` fails, names each of these files at the start of a line, and changes nothing.
    fn assert_named(&self, names: &[&str]) -> Run {
        let before = walk(&self.path("")).expect("a release");
        let run = self.verify(5);
        for name in names {
            assert!(run.stdout.lines().any(|line| line.starts_with(&format!("{name}: "))), "{name}\n{}", run.stdout);
        }
        assert_eq!(walk(&self.path("")).expect("a release"), before);
        run
    }

    fn rows<T: Row>(&self, name: &str) -> Vec<T> {
        from_batch(&parquet::read(&self.path(name)).expect(name)).expect(name)
    }

    fn set_rows<T: Row>(&self, name: &str, rows: &[T]) {
        parquet::write_new(&self.path(name), &to_batch(rows).expect(name)).expect(name);
    }

    fn change<T: Row>(&self, name: &str, change: impl FnOnce(&mut Vec<T>)) {
        let mut rows = self.rows(name);
        change(&mut rows);
        self.set_rows(name, &rows);
    }

    fn manifest(&self) -> Manifest {
        serde_json::from_str(&self.scratch.read(&format!("release/{MANIFEST}"))).expect(MANIFEST)
    }

    /// Makes the views agree with the tables, if those can be read.
    fn rewrite_views(&self) {
        let read = || -> anyhow::Result<(Vec<Value>, Vec<SlotRow>, Vec<TextRow>)> {
            let cases = from_batch(&parquet::read(&self.path(CASES))?)?;
            let slots = from_batch(&parquet::read(&self.path("slots.parquet"))?)?;
            Ok((cases, slots, from_batch(&parquet::read(&self.path("texts.parquet"))?)?))
        };
        let Ok((cases, slots, texts)) = read() else { return };
        let mut files = vec![String::new(); views::FILES.len()];
        for case in &cases {
            let slots: Vec<SlotRow> = slots.iter().filter(|row| row.case_id == case["case_id"]).cloned().collect();
            let texts: Vec<TextRow> = texts.iter().filter(|row| row.case_id == case["case_id"]).cloned().collect();
            let Ok(lines) = views::lines(case, &slots, &texts) else { continue };
            files.iter_mut().zip(lines).for_each(|(file, line)| *file += &format!("{line}\n"));
        }
        views::FILES.iter().zip(files).for_each(|(name, text)| self.write(name, text));
    }

    /// Makes the views, the files of MANIFEST.json and SHA256SUMS agree with what is there.
    fn reseal(&self, edit: impl FnOnce(&mut Manifest)) {
        self.rewrite_views();
        self.reseal_as_it_is(edit);
    }

    fn reseal_as_it_is(&self, edit: impl FnOnce(&mut Manifest)) {
        let mut manifest = self.manifest();
        for file in &mut manifest.files {
            let bytes = std::fs::read(self.path(&file.path)).expect("a file");
            (file.sha256, file.bytes) = (Hash::of(&bytes), bytes.len() as u64);
            file.rows =
                file.path.ends_with(".parquet").then(|| parquet::n_rows(&self.path(&file.path)).expect("a table"));
        }
        edit(&mut manifest);
        self.write(MANIFEST, to_json(&manifest).expect(MANIFEST));
        let hashes: BTreeMap<String, Hash> =
            read_tree(&self.path("")).iter().map(|(name, bytes)| (name.clone(), Hash::of(bytes))).collect();
        let listed = hashes.iter().filter(|(name, _)| *name != SUMS).map(|(name, hash)| (name.as_str(), hash));
        self.write(SUMS, sums(listed));
    }

    /// Makes the case hashes and the content hash agree with what is there, and seals the release again.
    fn rehash_and_reseal(&self) {
        let tables: Vec<(&str, Vec<Value>)> = medrounds::CASE_TYPE
            .tables
            .iter()
            .map(|table| {
                (table.name, from_batch(&parquet::read(&self.path(&table.file())).expect("rows")).expect("rows"))
            })
            .collect();
        self.change::<MedroundsCase>(CASES, |cases| {
            for case in cases {
                let mut rows =
                    CaseRows { case: serde_json::to_value(&*case).expect("a case"), tables: BTreeMap::new() };
                for (name, all) in &tables {
                    let own = all.iter().filter(|row| row["case_id"] == case.case_id).cloned().collect();
                    rows.tables.insert((*name).to_owned(), own);
                }
                case.case_hash = case_hash(&medrounds::CASE_TYPE, &rows).expect("a hash").to_string();
            }
        });
        let mut leaves: Vec<[u8; 32]> = self
            .rows::<MedroundsCase>(CASES)
            .iter()
            .map(|case| {
                let hash: Hash = serde_json::from_value(case.case_hash.clone().into()).expect("a hash");
                hash.to_bytes().expect("32 bytes")
            })
            .collect();
        leaves.sort_unstable();
        self.reseal(|manifest| manifest.content_hash = merkle::root(&leaves));
    }
}

/// Does something to the frozen sample; the faults found must be these, each by how it begins and what it holds.
fn check_tampered(tamper: impl FnOnce(&Release), expected: &[(&str, &str)]) {
    let release = Release::unpack();
    tamper(&release);
    let faults = release.faults();
    let mut left = faults.clone();
    for (start, part) in expected {
        let found = left.iter().position(|fault| fault.starts_with(start) && fault.contains(part));
        let found = found.unwrap_or_else(|| panic!("no fault `{start}…{part}` in {faults:#?}"));
        left.remove(found);
    }
    assert!(left.is_empty(), "more faults than expected: {left:#?}");
    let run = release.verify(if expected.is_empty() { 0 } else { 5 });
    for fault in &faults {
        assert!(run.stdout.contains(fault.as_str()), "{fault} is not in\n{}", run.stdout);
    }
}

/// Adds the optional source `extra` to the pipeline, in the format of MedQA.
fn add_extra_source(scratch: &Scratch) {
    scratch.write(
        "sources/extra.toml",
        "name = \"extra\"\ntitle = \"More questions\"\norigin = \"https://example.org\"\npublished_licence = \"CC-BY-4.0\"\n\
         how_to_get = \"ask for them\"\nformat = \"medqa_jsonl\"\nfiles = [\"*.jsonl\"]\n",
    );
    let reader = "[nodes.ingest_medqa]\n";
    let added = "[sources.extra]\noptional = true\n\n[nodes.ingest_extra]\nstage = \"ingest_questions\"\nsource = \"extra\"\n\n";
    scratch.edit("pipelines/medrounds.toml", reader, &format!("{added}{reader}"));
    scratch.edit("pipelines/medrounds.toml", "\"ingest_medqa\"", "\"ingest_medqa\", \"ingest_extra\"");
}

/// Writes `<raw>/<source>/source.toml`.
fn set_rights(scratch: &Scratch, source: &str, licence: &str, access: &str) {
    let text = format!("snapshot = \"s1\"\nlicence = \"{licence}\"\naccess = \"{access}\"\n");
    scratch.write(&format!("raw/{source}/source.toml"), text);
}

/// Questions of one's own, built, under these rights.
fn built_with_rights(licence: &str, access: &str) -> Scratch {
    let scratch = Scratch::empty();
    scratch.write("raw/medqa/own.jsonl", medqa_lines(5));
    set_rights(&scratch, "medqa", licence, access);
    scratch.run_expecting(0, &["build", "medrounds"]);
    scratch
}

fn manifest_of(scratch: &Scratch, version: &str) -> Value {
    let text = scratch.read(&format!("data/release/medrounds-{version}/{MANIFEST}"));
    serde_json::from_str(&text).expect(MANIFEST)
}

/// Nothing was frozen, and nothing half-made is left.
fn assert_no_release(scratch: &Scratch) {
    let left: Vec<String> = walk(&scratch.path("data/release")).unwrap_or_default();
    assert!(left.is_empty(), "{left:?}");
}

/// Replaces text by text of the same length; size, time and inode stay, so that no cache can see it.
fn change_unseen(path: &Path, from: &str, to: &str) {
    let modified = std::fs::metadata(path).and_then(|metadata| metadata.modified()).expect("a time");
    let mut bytes = std::fs::read(path).expect("a file");
    let place = bytes.windows(from.len()).position(|window| window == from.as_bytes()).expect("the text");
    bytes[place..place + from.len()].copy_from_slice(to.as_bytes());
    std::fs::write(path, bytes).expect("a file");
    std::fs::File::options().append(true).open(path).and_then(|file| file.set_modified(modified)).expect("a time");
}

#[test]
fn a_release_is_made_once_and_verifies() {
    let scratch = Scratch::with_sample();
    let sums = scratch.release_sums("1.0.0");
    let folder = "data/release/medrounds-1.0.0";
    let run = scratch.run_expecting(0, &["verify", folder]);
    assert!(run.stdout.ends_with(": verified\n"), "{}", run.stdout);
    let before = read_tree(&scratch.path(folder));
    let again =
        scratch.run_expecting(0, &["freeze", "medrounds", "--version", "1.0.0", "--allow-quarantine", "--json"]);
    assert!(again.stdout.contains("\"existed\": true"), "{}", again.stdout);
    let again = scratch.run_expecting(0, &["freeze", "medrounds", "--version", "1.0.0", "--allow-quarantine"]);
    assert!(again.stdout.contains("same bytes"), "{}", again.stdout);
    assert_eq!(read_tree(&scratch.path(folder)), before);
    assert_eq!(scratch.read(&format!("{folder}/{SUMS}")), sums);

    // Another build under the same version.
    scratch.write("raw/medqa/more.jsonl", medqa_line(1));
    scratch.run_expecting(4, &["build", "medrounds"]);
    let refused = scratch.run_expecting(5, &["freeze", "medrounds", "--version", "1.0.0", "--allow-quarantine"]);
    for name in [CASES, "slots.parquet", "texts.parquet", "provenance.parquet", MANIFEST, SUMS, "never overwritten"] {
        assert!(refused.stderr.contains(name), "{name}: {}", refused.stderr);
    }
    assert!(!refused.stderr.contains("schemas/"), "{}", refused.stderr);
    assert_eq!(read_tree(&scratch.path(folder)), before);
    let names: Vec<_> = std::fs::read_dir(scratch.path("data/release")).expect("releases").collect();
    assert_eq!(names.len(), 1, "nothing temporary is left: {names:?}");
}

#[test]
fn the_standard_tool_checks_the_hashes() {
    let release = Release::unpack();
    let check = || {
        let mut command = Command::new("sha256sum");
        command.args(["--check", "--strict", "--quiet", SUMS]).current_dir(release.path(""));
        command.output().expect("sha256sum of the coreutils").status.success()
    };
    assert!(check());
    let listed = release.scratch.read(&format!("release/{SUMS}")).lines().count();
    assert_eq!(listed, sample().len() - 1, "every file but the list itself");
    let mut bytes = sample()["texts.parquet"].clone();
    bytes[100] ^= 4;
    release.write("texts.parquet", bytes);
    assert!(!check());
}

#[test]
fn a_flipped_bit_is_found_in_every_file() {
    let release = Release::unpack();
    assert!(sample().len() >= 14, "{:?}", sample().keys());
    for (name, bytes) in sample() {
        let flipped = |position: usize, bit: usize| {
            let mut changed = bytes.clone();
            changed[position] ^= 1 << bit;
            release.write(name, changed);
        };
        for (position, bit) in [(0, 0), (bytes.len() / 2, 3), (bytes.len() - 1, 6)] {
            flipped(position, bit);
            release.assert_named(&[name]);
        }
        for step in 0..16 {
            flipped(step * bytes.len() / 16, step % 8);
            let faults = release.faults();
            assert!(faults.iter().any(|fault| fault.starts_with(&format!("{name}: "))), "{name}, {step}: {faults:?}");
        }
        release.write(name, bytes);
    }
    release.verify(0);
}

/// A flipped bit can turn the format into a later one; only a release that is whole can be of a later format.
#[test]
fn a_later_format_is_believed_only_where_the_hash_agrees() {
    let release = Release::unpack();
    let manifest = release.scratch.read(&format!("release/{MANIFEST}"));
    release.write(MANIFEST, manifest.replacen("\"format\": 1", "\"format\": 9", 1));
    release.assert_named(&[MANIFEST]);
    release.reseal(|manifest| manifest.format = 9);
    let run = release.verify(2);
    assert!(run.stderr.contains("format 9") && run.stderr.contains("newer"), "{}", run.stderr);
}

#[test]
fn a_missing_file_is_named() {
    let release = Release::unpack();
    for (name, bytes) in sample() {
        release.remove(name);
        release.assert_named(&[name]);
        release.write(name, bytes);
    }
    release.verify(0);
}

#[test]
fn an_added_file_is_named() {
    for name in ["notes.txt", "cases/part-00001.parquet", "media/ab/x.png", ".hidden"] {
        let release = Release::unpack();
        release.write(name, &sample()[CASES]);
        release.assert_named(&[name]);
    }
}

#[test]
fn a_link_in_place_of_a_file_is_named() {
    let release = Release::unpack();
    for (name, bytes) in sample() {
        // To the very same bytes.
        release.scratch.write("elsewhere", bytes);
        release.remove(name);
        std::os::unix::fs::symlink(release.scratch.path("elsewhere"), release.path(name)).expect("a link");
        release.assert_named(&[name]);
        release.remove(name);
        release.write(name, bytes);
    }
    std::fs::rename(release.path("cases"), release.scratch.path("cases")).expect("a moved folder");
    std::os::unix::fs::symlink(release.scratch.path("cases"), release.path("cases")).expect("a link");
    release.assert_named(&["cases", CASES]);
}

#[test]
fn swapped_files_are_both_named() {
    let pairs = [
        ("slots.parquet", "texts.parquet"),
        (CASES, "ledger.parquet"),
        ("schemas/slot.v1.json", "schemas/text.v1.json"),
        (MANIFEST, SUMS),
    ];
    for (one, other) in pairs {
        let release = Release::unpack();
        release.write(one, &sample()[other]);
        release.write(other, &sample()[one]);
        release.assert_named(&[one, other]);
    }
}

#[test]
fn a_cut_off_file_is_named() {
    let release = Release::unpack();
    for (name, bytes) in sample() {
        for length in [0, bytes.len() / 2, bytes.len() - 1] {
            release.write(name, &bytes[..length]);
            release.assert_named(&[name]);
        }
        release.write(name, bytes);
    }
    release.verify(0);
}

/// Line ends that a transfer changed are named as such, and nothing is repaired.
#[test]
fn rep_06_changed_line_ends_are_named_and_left_alone() {
    let windows = |name: &str| String::from_utf8(sample()[name].clone()).expect("text").replace('\n', "\r\n");
    let texts: Vec<&String> = sample().keys().filter(|name| name.starts_with("schemas/")).collect();
    assert!(texts.len() >= 6);
    for name in [SUMS].into_iter().chain(texts.into_iter().map(String::as_str)) {
        let release = Release::unpack();
        release.write(name, windows(name));
        let before = read_tree(&release.path(""));
        let run = release.assert_named(&[name]);
        let line = run.stdout.lines().find(|line| line.starts_with(name) && line.contains("line ends"));
        assert!(line.is_some(), "{name}:\n{}", run.stdout);
        assert_eq!(read_tree(&release.path("")), before);
    }
    // Not every change of a text is one of its line ends.
    let release = Release::unpack();
    release.write("schemas/slot.v1.json", windows("schemas/slot.v1.json").replacen("slot", "slut", 1));
    assert!(!release.assert_named(&["schemas/slot.v1.json"]).stdout.contains("line ends"));
    for (name, bytes) in sample().iter().filter(|(name, _)| !name.ends_with(".parquet")) {
        assert!(!bytes.contains(&b'\r') && bytes.ends_with(b"\n"), "{name}");
    }
}

#[test]
fn sealing_again_changes_nothing() {
    check_tampered(
        |release| {
            release.rehash_and_reseal();
            assert!(read_tree(&release.path("")) == *sample(), "another seal than that of freeze");
        },
        &[],
    );
}

#[test]
fn a_changed_case_does_not_have_its_hash() {
    check_tampered(
        |release| {
            release.change::<MedroundsCase>(CASES, |cases| cases[3].answer_text.push('!'));
            release.reseal(|_| ());
        },
        &[(CASES, "its content gives")],
    );
    // With a hash of its own it is another set of cases.
    check_tampered(
        |release| {
            let content_hash = release.manifest().content_hash;
            release.change::<MedroundsCase>(CASES, |cases| cases[3].answer_text.push('!'));
            release.rehash_and_reseal();
            release.reseal(|manifest| manifest.content_hash = content_hash);
        },
        &[("cases: ", "their content hash is")],
    );
    check_tampered(
        |release| {
            release.change::<TextRow>("texts.parquet", |texts| texts[2].text.push(' '));
            release.reseal(|_| ());
        },
        &[(CASES, "its content gives")],
    );
}

#[test]
fn spans_that_do_not_hold_their_value_are_named() {
    check_tampered(
        |release| {
            release.change::<SlotRow>("slots.parquet", |slots| {
                slots[10].start = slots[10].start.map(|start| start + 1);
                slots[10].end = slots[10].end.map(|end| end + 1);
            });
            release.rehash_and_reseal();
        },
        &[("slots.parquet: ", "is not the value")],
    );
    check_tampered(
        |release| {
            release.change::<SlotRow>("slots.parquet", |slots| slots[10].end = Some(u32::MAX));
            release.rehash_and_reseal();
        },
        &[("slots.parquet: ", "is not the value")],
    );
}

#[test]
fn rows_without_their_case_or_text_are_named() {
    check_tampered(
        |release| {
            release.change::<SlotRow>("slots.parquet", |slots| {
                let mut row = slots[0].clone();
                row.case_id = "medrounds-ffffffffffffffff".to_owned();
                slots.push(row);
            });
            release.reseal(|_| ());
        },
        &[("slots.parquet: medrounds-ffffffffffffffff is not a case", "")],
    );
    check_tampered(
        |release| {
            release.change::<SlotRow>("slots.parquet", |slots| slots[0].text_id = Some("title".to_owned()));
            release.rehash_and_reseal();
        },
        &[("slots.parquet: ", "`title`, which is not in texts.parquet")],
    );
    // A text has several slots; each of them is named.
    let release = Release::unpack();
    let case = release.rows::<TextRow>("texts.parquet")[5].case_id.clone();
    let slots = release.rows::<SlotRow>("slots.parquet");
    let names: BTreeSet<&str> = slots.iter().filter(|row| row.case_id == case).map(|row| row.slot.as_str()).collect();
    assert!(names.len() > 1);
    let fault = [("slots.parquet: ", "which is not in texts.parquet")];
    check_tampered(
        |release| {
            release.change::<TextRow>("texts.parquet", |texts| drop(texts.remove(5)));
            release.rehash_and_reseal();
        },
        &[&fault.repeat(names.len())[..], &[("views: ", "without text")]].concat(),
    );
}

#[test]
fn views_that_say_something_else_are_named() {
    check_tampered(
        |release| {
            let name = "views/interactive.jsonl";
            let text = release.scratch.read(&format!("release/{name}"));
            release.write(name, text.replacen("\"chart_blurb\":\"", "\"chart_blurb\":\"No ", 1));
            release.reseal_as_it_is(|_| ());
        },
        &[("views/interactive.jsonl: medrounds-", "is not what the tables say")],
    );
    check_tampered(
        |release| {
            let name = "views/open.jsonl";
            let text = release.scratch.read(&format!("release/{name}"));
            release.write(name, format!("{text}{{}}\n"));
            release.reseal_as_it_is(|_| ());
        },
        &[("views/open.jsonl: there are lines for no case", "")],
    );
    check_tampered(
        |release| {
            release.change::<MedroundsCase>(CASES, |cases| cases[1].subsets.push("hard".to_owned()));
            release.reseal(|_| ());
        },
        &[("cases: subset hard is not in MANIFEST.json", "")],
    );
}

#[test]
fn every_case_has_one_row_of_provenance() {
    check_tampered(
        |release| {
            release.change::<ProvenanceRow>("provenance.parquet", |rows| rows.insert(4, rows[4].clone()));
            release.reseal(|_| ());
        },
        &[("provenance.parquet: 2 rows for ", "")],
    );
    check_tampered(
        |release| {
            release.change::<ProvenanceRow>("provenance.parquet", |rows| drop(rows.remove(4)));
            release.reseal(|_| ());
        },
        &[("provenance.parquet: 0 rows for ", "")],
    );
    check_tampered(
        |release| {
            release.change::<ProvenanceRow>("provenance.parquet", |rows| rows[4].source = "other".to_owned());
            release.reseal(|_| ());
        },
        &[("provenance.parquet: ", "comes from other")],
    );
}

#[test]
fn ledger_and_counts_agree() {
    check_tampered(
        |release| {
            release.change::<ReleaseLedgerRow>("ledger.parquet", |rows| drop(rows.remove(0)));
            release.reseal(|_| ());
        },
        &[("ledger.parquet: node ", "other exits than MANIFEST.json counts")],
    );
    check_tampered(
        |release| {
            release.change::<ReleaseLedgerRow>("ledger.parquet", |rows| rows[0].node = "nowhere".to_owned());
            release.reseal(|_| ());
        },
        &[("ledger.parquet: node ", "other exits"), ("ledger.parquet: node nowhere is not in", "")],
    );
    check_tampered(
        |release| release.reseal(|manifest| manifest.nodes[0].by_source[0].kept += 1),
        &[("MANIFEST.json: node ingest_medqa, source medqa: n_in 40 + n_split 0 is not kept 34", "")],
    );
    check_tampered(
        |release| release.reseal(|manifest| manifest.n_cases += 1),
        &[("cases: there are ", ""), ("MANIFEST.json: n_cases is ", "")],
    );
    check_tampered(
        |release| {
            release.reseal(|manifest| {
                let file = manifest.files.iter_mut().find(|file| file.path == "slots.parquet").expect("slots");
                file.rows = file.rows.map(|rows| rows + 1);
            });
        },
        &[("slots.parquet: has ", "rows, MANIFEST.json says ")],
    );
}

#[test]
fn tables_are_sorted_by_a_unique_key() {
    let release = Release::unpack();
    release.change::<MedroundsCase>(CASES, |cases| cases.swap(6, 7));
    release.reseal(|_| ());
    let run = release.assert_named(&[CASES]);
    let cases = release.rows::<MedroundsCase>(CASES);
    let expected = format!("{CASES}: {} comes after {}: not sorted", cases[7].case_id, cases[6].case_id);
    assert!(run.stdout.contains(&expected), "{}", run.stdout);

    let release = Release::unpack();
    release.change::<MedroundsCase>(CASES, |cases| cases.insert(6, cases[6].clone()));
    release.reseal(|_| ());
    assert!(release.assert_named(&[CASES]).stdout.contains("not sorted, or twice"));

    check_tampered(
        |release| {
            release.change::<ReleaseReviewRow>("review.parquet", |rows| rows.insert(0, rows[0].clone()));
            release.reseal(|_| ());
        },
        &[("review.parquet: ", "is listed twice")],
    );
}

#[test]
fn columns_and_schemas_are_those_declared() {
    check_tampered(
        |release| {
            let name = "review.parquet";
            let batch = parquet::read(&release.path(name)).expect(name);
            let fewer = batch.project(&[0, 1, 2, 3]).expect("four columns");
            parquet::write_new(&release.path(name), &fewer).expect(name);
            release.reseal(|_| ());
        },
        &[("review.parquet: its columns", "related is missing"), ("review.parquet: ", "")],
    );
    check_tampered(
        |release| {
            release.write("schemas/slot.v1.json", "{}\n");
            release.reseal(|_| ());
        },
        &[("schemas/slot.v1.json: is not the schema", "")],
    );
    check_tampered(
        |release| {
            // A type that readers of other languages would take for another one.
            let name = "texts.parquet";
            let fields = parquet::schema(&release.path(name))
                .expect(name)
                .fields()
                .iter()
                .map(|field| {
                    let kind = if field.name() == "text" {
                        arrow::datatypes::DataType::Binary
                    } else {
                        field.data_type().clone()
                    };
                    arrow::datatypes::Field::new(field.name(), kind, field.is_nullable())
                })
                .collect::<Vec<_>>();
            let rows: Vec<Value> = release
                .rows::<TextRow>(name)
                .into_iter()
                .map(|row| json!({"case_id": row.case_id, "text_id": row.text_id, "text": row.text.into_bytes()}))
                .collect();
            let schema = std::sync::Arc::new(arrow::datatypes::Schema::new(fields));
            parquet::write_new(&release.path(name), &to_batch_as(&rows, &schema).expect(name)).expect(name);
            release.reseal(|_| ());
        },
        &[
            ("texts.parquet: its columns", "text is Binary where Utf8 is declared"),
            // It cannot be read, once; no case is accused of it.
            ("texts.parquet: ", "Binary"),
        ],
    );
}

#[test]
fn every_fault_is_listed() {
    check_tampered(
        |release| {
            release.change::<ProvenanceRow>("provenance.parquet", |rows| rows.insert(4, rows[4].clone()));
            release.change::<ReleaseLedgerRow>("ledger.parquet", |rows| drop(rows.remove(0)));
            release.change::<MedroundsCase>(CASES, |cases| {
                cases[0].answer_text.push('!');
                cases[9].question.push('!');
            });
            release.reseal(|manifest| manifest.nodes[0].by_source[0].kept += 1);
        },
        &[
            (CASES, "its content gives"),
            (CASES, "its content gives"),
            ("provenance.parquet: 2 rows for ", ""),
            ("MANIFEST.json: node ingest_medqa", ""),
            ("ledger.parquet: node ", "other exits"),
        ],
    );
    let release = Release::unpack();
    release.remove("slots.parquet");
    release.write("ledger.parquet", "x");
    release.write("new.txt", "x");
    release.assert_named(&["slots.parquet", "ledger.parquet", "new.txt", SUMS]);
}

#[test]
fn the_manifest_has_exactly_these_keys() {
    fn keys(value: &Value) -> BTreeSet<&str> {
        value.as_object().expect("an object").keys().map(String::as_str).collect()
    }
    let manifest: Value = serde_json::from_slice(&sample()[MANIFEST]).expect(MANIFEST);
    let expected = "format pipeline version date tool_version settings_hash profile sources nodes models prompts made_by difficulty attrition n_cases files \
        content_hash subsets redistributable not_redistributable_because";
    assert_eq!(keys(&manifest), expected.split_whitespace().collect());
    for (place, expected) in [
        ("/sources/0", "name absent snapshot licence access files"),
        ("/sources/0/files/0", "path sha256 bytes"),
        ("/nodes/0", "node stage revision fingerprint by_source"),
        ("/nodes/0/by_source/0", "source n_in n_split kept dropped quarantined"),
        ("/files/0", "path sha256 bytes rows"),
    ] {
        assert_eq!(keys(manifest.pointer(place).expect(place)), expected.split_whitespace().collect(), "{place}");
    }
    assert_eq!(
        (&manifest["format"], &manifest["pipeline"], &manifest["version"]),
        (&json!(1), &json!("medrounds"), &json!("1.0.0"))
    );
    let listed: Vec<&str> =
        manifest["files"].as_array().expect("files").iter().filter_map(|file| file["path"].as_str()).collect();
    let there: Vec<&str> =
        sample().keys().map(String::as_str).filter(|name| ![MANIFEST, SUMS].contains(name)).collect();
    assert_eq!(listed, there);
}

#[test]
fn counts_of_every_source_add_up_to_its_raw_lines() {
    let scratch = Scratch::with_sample();
    add_extra_source(&scratch);
    scratch.release_sums("absent");
    let sources = manifest_of(&scratch, "absent")["sources"].as_array().expect("sources").clone();
    let find = |name: &str| sources.iter().find(|source| source["name"] == name).expect("a source").clone();
    assert_eq!(find("medqa")["absent"], false);
    assert_eq!(
        find("extra"),
        json!({"name": "extra", "absent": true, "snapshot": "unknown", "licence": "unknown", "access": "unknown", "files": []})
    );

    // Two more lines than questions: a repeat and a line that cannot be read.
    scratch.write("raw/extra/lines.jsonl", medqa_lines(30) + &medqa_line(3) + "\n{\n");
    set_rights(&scratch, "extra", "CC-BY-4.0", "open");
    scratch.release_sums("both");
    let release = scratch.path("data/release/medrounds-both");
    let manifest = manifest_of(&scratch, "both");
    let cases: Vec<MedroundsCase> = from_batch(&parquet::read(&release.join(CASES)).expect(CASES)).expect(CASES);
    let ledger = parquet::read(&release.join("ledger.parquet")).expect("a ledger");
    let ledger: Vec<ReleaseLedgerRow> = from_batch(&ledger).expect("a ledger");
    for (source, n_lines) in [("medqa", 40), ("extra", 32)] {
        let n_cases = cases.iter().filter(|case| case.source == source).count() as u64;
        let n_left = ledger.iter().filter(|row| row.source == source).count() as u64;
        assert!(n_cases > 0 && n_left > 0);
        assert_eq!(n_cases + n_left, n_lines, "{source}: cases and ledger");
        let mut waiting = n_lines;
        let nodes = manifest["nodes"].as_array().expect("nodes");
        for counts in nodes.iter().flat_map(|node| node["by_source"].as_array().expect("counts")) {
            if counts["source"] == source {
                assert_eq!(counts["n_in"], waiting, "{source}: {counts}");
                waiting = counts["kept"].as_u64().expect("a count");
            }
        }
        assert_eq!(waiting, n_cases, "{source}");
    }
    assert_eq!(manifest["n_cases"], cases.len());
    scratch.run_expecting(0, &["verify", "data/release/medrounds-both"]);
}

#[test]
fn the_date_is_given_and_in_no_content_hash() {
    let mut scratch = Scratch::with_sample();
    scratch.set_env("SOURCE_DATE_EPOCH", "");
    scratch.run_expecting(4, &["build", "medrounds"]);
    let freeze = |scratch: &Scratch, version: &str, more: &[&str]| {
        scratch
            .run_expecting(0, &[&["freeze", "medrounds", "--allow-quarantine", "--version", version], more].concat());
        let manifest = manifest_of(scratch, version);
        (manifest["date"].clone(), manifest["content_hash"].clone())
    };
    let (date, content) = freeze(&scratch, "none", &[]);
    assert_eq!(date, Value::Null);
    assert_eq!(freeze(&scratch, "given", &["--date", "2026-11-30"]), (json!("2026-11-30"), content.clone()));
    // The same version on another day has another manifest.
    let arguments = ["freeze", "medrounds", "--allow-quarantine", "--version", "given", "--date", "2026-12-01"];
    let refused = scratch.run_expecting(5, &arguments);
    assert!(refused.stderr.contains("differs in MANIFEST.json, SHA256SUMS;"), "{}", refused.stderr);
    scratch.set_env("SOURCE_DATE_EPOCH", "86399");
    assert_eq!(freeze(&scratch, "epoch", &[]), (json!("1970-01-01"), content.clone()));
    assert_eq!(freeze(&scratch, "both", &["--date", "2026-11-30"]), (json!("2026-11-30"), content));

    for date in ["2026-02-30", "30.11.2026", "today", ""] {
        let run = scratch.run_expecting(2, &["freeze", "medrounds", "--version", "bad", "--date", date]);
        assert!(run.stderr.contains("--date") && run.stderr.contains("YYYY-MM-DD"), "{}", run.stderr);
    }
    scratch.set_env("SOURCE_DATE_EPOCH", "yesterday");
    let run = scratch.run_expecting(2, &["freeze", "medrounds", "--version", "bad"]);
    assert!(run.stderr.contains("SOURCE_DATE_EPOCH=yesterday"), "{}", run.stderr);
}

#[test]
fn no_file_tells_where_or_by_whom_it_was_made() {
    let mut scratch = Scratch::with_sample();
    let marks = ["mark-of-the-user", "mark-of-the-host", "mark-of-the-home"];
    for (name, mark) in ["USER", "HOSTNAME", "HOME"].into_iter().zip(marks) {
        scratch.set_env(name, mark);
    }
    scratch.set_env("LOGNAME", marks[0]);
    scratch.release_sums("1.0.0");
    let folder = scratch.path("data/release/medrounds-1.0.0");
    let mut needles: Vec<String> = marks.map(str::to_owned).to_vec();
    needles.push(scratch.path("").file_name().expect("a name").to_string_lossy().into_owned());
    needles.push(env!("CARGO_MANIFEST_DIR").to_owned());
    let host = std::fs::read_to_string("/proc/sys/kernel/hostname").unwrap_or_default();
    let user =
        Command::new("id").arg("-un").output().map(|output| String::from_utf8_lossy(&output.stdout).into_owned());
    // A name that is a word of the raw files or of our own texts proves nothing.
    let mut words = scratch.run_expecting(0, &["schema"]).stdout + &String::from_utf8_lossy(&sample()[MANIFEST]);
    for bytes in read_tree(&scratch.path("raw")).into_values() {
        words += &String::from_utf8_lossy(&bytes);
    }
    let names = [host, user.unwrap_or_default()].map(|name| name.trim().to_owned());
    needles.extend(names.into_iter().filter(|name| name.len() > 3 && !words.contains(name.as_str())));

    for (name, bytes) in read_tree(&folder) {
        let mut text = String::from_utf8_lossy(&bytes).into_owned();
        if name.ends_with(".parquet") {
            // Columns are compressed: their values, not their bytes, must be looked at.
            let rows: Vec<Value> = from_batch(&parquet::read(&folder.join(&name)).expect("a table")).expect("rows");
            // A build without models and reviewers has nothing in these.
            let may_be_empty = ["judgements.parquet", "runs.parquet", "corrections.parquet"].contains(&name.as_str());
            assert!(!rows.is_empty() || may_be_empty, "{name}");
            text += &serde_json::to_string(&rows).expect("JSON");
        }
        for needle in &needles {
            assert!(!text.contains(needle.as_str()), "{name} holds {needle}");
        }
    }
    // And so another folder, user and host give the same release.
    assert!(read_tree(&folder) == *sample());
}

#[test]
fn profiles_hold_what_the_licence_allows() {
    let freeze = |scratch: &Scratch, profile: &str| {
        scratch.run(&["freeze", "medrounds", "--version", profile, "--profile", profile])
    };
    // Licence, access; the refusal of open, noncommercial, research, credentialed; why it may not be passed on.
    for (licence, access, refusals, because) in [
        ("CC-BY-4.0", "open", [""; 4], None),
        ("unknown", "open", ["profile_licence", "profile_licence", "", ""], Some("licence is unknown")),
        ("CC-BY-NC-4.0", "open", ["profile_licence", "", "", ""], Some("licence is CC-BY-NC-4.0")),
        ("CC-BY-4.0", "unknown", ["profile_access", "profile_access", "", ""], Some("access is unknown")),
        ("MIT", "registered", ["profile_access", "profile_access", "", ""], Some("access is registered")),
        (
            "MIT",
            "credentialed",
            ["profile_access", "profile_access", "profile_access", ""],
            Some("access is credentialed"),
        ),
    ] {
        let scratch = built_with_rights(licence, access);
        for (profile, refusal) in ["open", "noncommercial", "research", "credentialed"].into_iter().zip(refusals) {
            let run = freeze(&scratch, profile);
            let shown = format!("{licence}, {access}, {profile}: {run:?}");
            if !refusal.is_empty() {
                assert_eq!(run.code, Some(5), "{shown}");
                let why = format!("no case may be in a release of profile {profile}: source medqa: {refusal} 5");
                assert!(run.stderr.contains(&why), "{shown}");
                assert!(!scratch.path(&format!("data/release/medrounds-{profile}")).exists());
                continue;
            }
            assert_eq!(run.code, Some(0), "{shown}");
            let manifest = manifest_of(&scratch, profile);
            assert_eq!(
                (&manifest["profile"], &manifest["redistributable"]),
                (&json!(profile), &json!(because.is_none()))
            );
            let expected: Vec<String> = because.iter().map(|because| format!("source medqa: {because}")).collect();
            assert_eq!(manifest["not_redistributable_because"], json!(expected));
            assert_eq!(run.stdout.contains("not redistributable"), because.is_some(), "{shown}");
            scratch.run_expecting(0, &["verify", &format!("data/release/medrounds-{profile}")]);
        }
    }
    // Without source.toml nobody has said anything.
    let scratch = Scratch::empty();
    scratch.write("raw/medqa/own.jsonl", medqa_lines(5));
    let build = scratch.run_expecting(0, &["build", "medrounds"]);
    assert!(build.stderr.contains("medqa/source.toml is not there"), "{}", build.stderr);
    assert_eq!(freeze(&scratch, "open").code, Some(5));
    assert_eq!(freeze(&scratch, "research").code, Some(0));
    assert_eq!(manifest_of(&scratch, "research")["redistributable"], false);
}

/// Case prv-02: a release that is not for holders of the credentials has no row, id or place of a credentialed record, in
/// no file of it; only how many there were.
#[test]
fn prv_02_credentialed_records_are_left_out_and_counted() {
    let scratch = Scratch::empty();
    add_extra_source(&scratch);
    scratch.write("raw/medqa/own.jsonl", medqa_lines(6));
    set_rights(&scratch, "medqa", "CC-BY-4.0", "open");
    // Seven questions, one of them twice, and one that is in `medqa` too, with another answer.
    let conflict = medqa_line(2).replace("\"answer_idx\":\"A\"", "\"answer_idx\":\"B\"");
    let conflict: Value = serde_json::from_str(&conflict).expect("a line");
    let mut conflict = conflict.as_object().expect("an object").clone();
    conflict.insert("answer".to_owned(), conflict["options"]["B"].clone());
    let lines: String = (50..57).chain([50]).map(|n| medqa_line(n) + "\n").collect();
    scratch.write("raw/extra/closed.jsonl", lines + &serde_json::to_string(&conflict).expect("JSON"));
    set_rights(&scratch, "extra", "LicenseRef-DUA", "credentialed");
    scratch.run_expecting(0, &["build", "medrounds"]);
    scratch.run_expecting(0, &["freeze", "medrounds", "--version", "1"]);

    let manifest = manifest_of(&scratch, "1");
    assert_eq!((&manifest["n_cases"], &manifest["redistributable"]), (&json!(6), &json!(true)));
    let last = manifest["nodes"].as_array().expect("nodes").last().expect("a node").clone();
    assert_eq!((&last["node"], &last["stage"]), (&json!("freeze"), &json!("freeze")));
    assert_eq!(
        last["by_source"],
        json!([
            {"source": "extra", "n_in": 8, "n_split": 0, "kept": 0, "dropped": {"profile_access": 8}, "quarantined": {}},
            {"source": "medqa", "n_in": 6, "n_split": 0, "kept": 6, "dropped": {}, "quarantined": {}},
        ])
    );
    scratch.run_expecting(0, &["verify", "data/release/medrounds-1"]);

    let table = |version: &str, name: &str| -> Vec<Value> {
        let path = scratch.path(&format!("data/release/medrounds-{version}/{name}"));
        from_batch(&parquet::read(&path).expect(name)).expect(name)
    };
    for name in [CASES, "provenance.parquet"] {
        let rows = table("1", name);
        assert!(rows.len() == 6 && rows.iter().all(|row| row["source"] == "medqa"), "{name}: {rows:?}");
    }
    let kept: BTreeSet<String> = table("1", CASES).iter().map(|case| case["case_id"].to_string()).collect();
    for name in ["slots.parquet", "texts.parquet", "review.parquet"] {
        let rows = table("1", name);
        assert!(
            !rows.is_empty() && rows.iter().all(|row| kept.contains(&row["case_id"].to_string())),
            "{name}: {rows:?}"
        );
    }
    assert!(table("1", "ledger.parquet").is_empty());
    let exact = &manifest["nodes"].as_array().expect("nodes").iter().find(|node| node["node"] == "dedup_exact");
    assert_eq!(exact.expect("a node")["by_source"][0]["dropped"], json!({"exact_duplicate": 1}));

    scratch.run_expecting(0, &["freeze", "medrounds", "--version", "all", "--profile", "credentialed"]);
    let manifest = manifest_of(&scratch, "all");
    assert_eq!((&manifest["n_cases"], &manifest["redistributable"]), (&json!(14), &json!(false)));
    assert!(manifest["nodes"].as_array().expect("nodes").iter().all(|node| node["node"] != "freeze"));
    let ledger = table("all", "ledger.parquet");
    assert!(ledger.len() == 1 && ledger[0]["reason"] == "exact_duplicate" && ledger[0]["detail"].is_string());
    // Every id, hash and text of the closed records, looked for in every file of the release that may not have them.
    let closed = |name: &str, column: &str| -> Vec<String> {
        let rows = table("all", name).into_iter().filter(|row| !kept.contains(&row["case_id"].to_string()));
        rows.map(|row| row[column].as_str().expect(column).to_owned()).collect()
    };
    let mut searched = closed("provenance.parquet", "case_id");
    searched.extend(closed("provenance.parquet", "raw_sha256"));
    searched.extend(
        ledger
            .iter()
            .flat_map(|row| [&row["case_id"], &row["raw_sha256"]])
            .map(|id| id.as_str().expect("text").to_owned()),
    );
    searched.extend((50..57).map(|n| format!("Record number {n} of the clinic")));
    searched.push("closed.jsonl:".to_owned());
    assert!(searched.len() > 20, "{searched:?}");
    let mut contents = String::new();
    for (name, _) in crate::support::hashes(&scratch.path("data/release/medrounds-1")) {
        let path = scratch.path("data/release/medrounds-1").join(&name);
        match path.extension().and_then(|extension| extension.to_str()) {
            Some("parquet") => contents += &format!("{:?}", table("1", &name)),
            _ => contents += &scratch.read(&format!("data/release/medrounds-1/{name}")),
        }
    }
    for text in searched {
        assert!(!contents.contains(&text), "{text}");
    }
    assert_eq!(table("all", "review.parquet").len(), 2);
}

#[test]
fn a_licence_that_is_none_is_a_configuration_error() {
    let scratch = Scratch::with_sample();
    set_rights(&scratch, "medqa", "Creative Commons", "open");
    for arguments in [&["build", "medrounds"][..], &["plan", "medrounds"], &["sources", "check", "medqa"]] {
        let run = scratch.run_expecting(2, arguments);
        let place = "medqa/source.toml:2: licence: `Creative Commons` is not an SPDX expression";
        assert!(run.stderr.contains(place), "{}", run.stderr);
    }
    set_rights(&scratch, "medqa", "MIT", "everyone");
    let run = scratch.run_expecting(2, &["build", "medrounds"]);
    assert!(run.stderr.contains("medqa/source.toml:3: access: `everyone`"), "{}", run.stderr);
}

#[test]
fn trials_and_unfinished_builds_are_not_frozen() {
    let scratch = Scratch::with_sample();
    let freeze = |more: &[&str]| {
        let arguments = ["freeze", "medrounds", "--version", "1", "--allow-quarantine"];
        let run = scratch.run_expecting(2, &[&arguments, more].concat());
        assert_no_release(&scratch);
        run.stderr
    };
    let never = freeze(&[]);
    assert!(
        never.contains("ingest_medqa is missing (never built)") && never.contains("casemill build medrounds"),
        "{never}"
    );

    scratch.run_expecting(0, &["build", "medrounds", "--limit", "3"]);
    let limited = freeze(&["--limit", "3"]);
    assert!(limited.contains("--limit is a trial"), "{limited}");
    // Without the flag that build is not the one meant.
    let limited = freeze(&[]);
    assert!(limited.contains("ingest_medqa is stale (limit 3 → none)"), "{limited}");

    scratch.run_expecting(4, &["build", "medrounds", "--to", "dedup_exact"]);
    let unfinished = freeze(&[]);
    assert!(unfinished.contains("filter_vignette is stale") && unfinished.contains("pending"), "{unfinished}");

    scratch.run_expecting(4, &["build", "medrounds"]);
    let lexicon = scratch.read("pipelines/lexicon/slots.toml");
    scratch.write("pipelines/lexicon/slots.toml", format!("{lexicon}\n# changed\n"));
    let stale = freeze(&[]);
    assert!(stale.contains("extract_slots is stale (resource lexicon changed)"), "{stale}");
    scratch.write("pipelines/lexicon/slots.toml", lexicon);
    scratch.run_expecting(0, &["freeze", "medrounds", "--version", "1", "--allow-quarantine"]);
}

#[test]
fn quarantine_is_frozen_only_when_asked() {
    let scratch = Scratch::with_sample();
    scratch.run_expecting(4, &["build", "medrounds"]);
    let run = scratch.run_expecting(5, &["freeze", "medrounds", "--version", "1"]);
    for part in ["node ingest_medqa", "invalid_json 1", "option_keys 1", "--allow-quarantine"] {
        assert!(run.stderr.contains(part), "{}", run.stderr);
    }
    assert_no_release(&scratch);
    scratch.run_expecting(0, &["freeze", "medrounds", "--version", "1", "--allow-quarantine"]);
}

/// The cache of raw hashes goes by size, time and inode; a release does not.
#[test]
fn raw_files_are_hashed_again() {
    let scratch = Scratch::with_sample();
    set_rights(&scratch, "medqa", "MIT", "open");
    scratch.run_expecting(4, &["build", "medrounds"]);
    let arguments = ["freeze", "medrounds", "--version", "1", "--allow-quarantine"];
    for (file, from, to) in [("medqa/test.jsonl", "41-year-old", "42-year-old"), ("medqa/source.toml", "MIT", "ISC")] {
        let path = scratch.path("raw").join(file);
        change_unseen(&path, from, to);
        assert!(scratch.plan(&[]).iter().all(|node| node.ends_with(" fresh")), "the cache does not see it");
        let run = scratch.run_expecting(5, &arguments);
        assert!(run.stderr.contains(&format!("{file} changed since the build")), "{}", run.stderr);
        assert_no_release(&scratch);
        change_unseen(&path, to, from);
    }
    scratch.run_expecting(0, &arguments);
}

#[test]
fn a_version_is_the_name_of_one_folder() {
    let scratch = built_with_rights("MIT", "open");
    for version in ["../x", "", ".", "..", ".1", "a/b", "/x", "1 0", "1\n0", "é", "a\\b", "1*"] {
        let run = scratch.run_expecting(2, &["freeze", "medrounds", &format!("--version={version}")]);
        assert!(run.stderr.contains("--version"), "{}", run.stderr);
    }
    assert_no_release(&scratch);
    assert!(!scratch.path("data/x").exists() && !scratch.path("data/release/x").exists());
    for version in ["1.0.0", "2026-11", "1.0.0-rc.1+a_b"] {
        scratch.run_expecting(0, &["freeze", "medrounds", "--version", version]);
        scratch.run_expecting(0, &["verify", &format!("data/release/medrounds-{version}")]);
    }
}

#[test]
fn archives_of_equal_releases_are_equal() {
    let scratch = built_with_rights("MIT", "open");
    let arguments = ["freeze", "medrounds", "--version", "1", "--archive", "--out", "out"];
    let pack = |scratch: &Scratch| {
        scratch.run_expecting(0, &arguments);
        std::fs::read(scratch.path("out/medrounds-1.tar.gz")).expect("an archive")
    };
    let first = pack(&scratch);
    std::fs::remove_file(scratch.path("out/medrounds-1.tar.gz")).expect("an archive");
    // Later, and with other times and rights of the files.
    let old = std::time::SystemTime::UNIX_EPOCH + std::time::Duration::from_secs(1_000_000_000);
    for name in walk(&scratch.path("out/medrounds-1")).expect("a release") {
        let file =
            std::fs::File::options().append(true).open(scratch.path("out/medrounds-1").join(name)).expect("a file");
        file.set_modified(old).expect("a time");
        file.set_permissions(std::os::unix::fs::PermissionsExt::from_mode(0o600)).expect("a mode");
    }
    assert!(pack(&scratch) == first, "packed again");
    assert!(pack(&built_with_rights("MIT", "open")) == first, "packed elsewhere");
    assert_no_release(&scratch);

    let unpacked = scratch.path("unpacked");
    tar::Archive::new(flate2::read::GzDecoder::new(first.as_slice())).unpack(&unpacked).expect("a tar");
    scratch.run_expecting(0, &["verify", "unpacked/medrounds-1"]);
    assert_eq!(read_tree(&unpacked).len(), read_tree(&scratch.path("out/medrounds-1")).len());
}
