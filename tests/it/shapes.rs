//! Every port shape through the engine: counts, ledger, ids, side tables, media, model replies, absent inputs,
//! and what happens to a stage that does not keep its contract.

use crate::toy::*;
use casemill::engine::State;
use casemill::error::{Code, code_of};
use casemill::record::ledger::{Exit, SourceCounts, total_counts};
use casemill::record::{Hash, RecordId};
use casemill::stage::*;
use casemill::store::{parquet, shard};
use expect_test::{Expect, expect};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use std::collections::{BTreeMap, BTreeSet};
use std::path::Path;
use std::sync::Arc;

/// Readers → split → draw → look → filter → rank → filter → label (with the ranks) → ask → filter.
const EVERY_SHAPE: &str = r#"
name = "toy"
summary = "Every port shape"
cases = "last"

[sources.a]
[sources.b]

[models.judge]
provider = "openai"
base_url_env = "JUDGE_URL"
model = "toy"
egress = "local"

[nodes.read_a]
stage = "read_notes"
source = "a"
max_quarantined = 1.0

[nodes.read_b]
stage = "read_notes"
source = "b"
max_quarantined = 1.0

[nodes.split]
stage = "split_notes"
input = ["read_a", "read_b"]
max_quarantined = 1.0

[nodes.draw]
stage = "draw_notes"
input = "split"

[nodes.look]
stage = "look_notes"
input = "draw"

[nodes.filter]
stage = "filter_notes"
input = "look"
resources = { words = "words.txt" }
max_quarantined = 1.0

[nodes.rank]
stage = "rank_notes"
input = "filter"
max_quarantined = 1.0

[nodes.filter_again]
stage = "filter_notes"
input = "rank"
settings = { min_chars = 6 }
resources = { words = "words.txt" }

[nodes.label]
stage = "label_notes"
input = "filter_again"
inputs = { ranks = "rank.ranks" }

[nodes.ask]
stage = "ask_notes"
input = "label"
max_quarantined = 1.0

[nodes.last]
stage = "filter_notes"
input = "ask"
settings = { min_chars = 9 }
resources = { words = "words.txt" }
"#;

/// Source, file, text; in the order of the stream.
const RAW: [(&str, &str, &str); 3] = [
    (
        "a",
        "one.txt",
        "n1\talpha one; beta two words; gamma\nn2\tdrop this\nn3\tapple pie @scan.bin\nn4\t \n\nno tab here\nn5\tant\n",
    ),
    (
        "a",
        "two.txt",
        "n6\todd one\nn7\tbe\nn8\tbad apple; a good apple\nn9\tbell rings!\nn10\t; ;\nn11\tbanana split;\nn1\tagain alpha\n",
    ),
    (
        "b",
        "x.txt",
        "n1\tavocado twin\nn2\tgarden refuse\nn3\t?what\nn4\tgiant hush\nn5\tzebra stands @photo.bin\nn6\tzoo\nn7\tgrape\n",
    ),
];

const SCAN: &[u8] = b"\x00scan";
const PHOTO: &[u8] = b"\x00\xffphoto";

fn every_shape(shard_records: u64) -> Toy {
    let toy = Toy::new(&format!("{EVERY_SHAPE}\n[shards]\nrecords = {shard_records}\n"));
    for (source, file, text) in RAW {
        toy.write(&format!("raw/{source}/{file}"), text);
    }
    toy.write("raw/a/scan.bin", SCAN);
    toy.write("raw/b/photo.bin", PHOTO);
    toy
}

/// A note as the rules of the toy make it, without the engine.
#[derive(Clone, Debug, Default, PartialEq)]
struct Plain {
    id: String,
    text: String,
    rank: Option<u64>,
    answer: Option<String>,
    flags: Vec<String>,
}

impl Plain {
    fn of(note: Note) -> Self {
        Self {
            id: note.record_id.to_string(),
            text: note.text,
            rank: note.rank,
            answer: note.answer,
            flags: note.flags,
        }
    }
}

/// What the pipeline must make of [`RAW`]: the records after each node, and the ledger as lines.
#[derive(Default)]
struct Expected {
    after: BTreeMap<&'static str, Vec<Plain>>,
    ledger: BTreeSet<String>,
}

impl Expected {
    fn leaves(&mut self, node: &str, id: &str, exit: Exit, reason: &str, detail: &str) {
        assert!(self.ledger.insert(format!("{node} {id} {} {reason}: {detail}", exit.as_str())));
    }

    /// `judge` gives the exit, or `None` for a note that stays.
    fn select(
        &mut self,
        node: &'static str,
        notes: Vec<Plain>,
        judge: impl Fn(&Plain) -> Option<(Exit, &'static str, String)>,
    ) -> Vec<Plain> {
        let mut kept = Vec::new();
        for note in notes {
            match judge(&note) {
                Some((exit, reason, detail)) => self.leaves(node, &note.id, exit, reason, &detail),
                None => kept.push(note),
            }
        }
        self.after.insert(node, kept.clone());
        kept
    }

    fn filter(&mut self, node: &'static str, notes: Vec<Plain>, min_chars: usize) -> Vec<Plain> {
        self.select(node, notes, |note| {
            let n_chars = note.text.chars().count();
            if n_chars < min_chars {
                Some((Exit::Dropped, "too_short", n_chars.to_string()))
            } else if note.text.split(' ').any(|word| word == "bad") {
                Some((Exit::Dropped, "bad_word", "bad".to_owned()))
            } else if note.text.contains('!') {
                Some((Exit::Quarantined, "shouts", note.text.clone()))
            } else {
                None
            }
        })
    }

    fn compute() -> Self {
        let mut expected = Self::default();
        let mut notes = Vec::new();
        let mut seen: BTreeMap<String, u32> = BTreeMap::new();
        for (source, _, text) in RAW {
            let node = if source == "a" { "read_a" } else { "read_b" };
            for line in text.lines().filter(|line| !line.trim().is_empty()) {
                let Some((native, text)) = line.split_once('\t') else {
                    let id = format!("{source}:{}", Hash::of(line.as_bytes()).short());
                    expected.leaves(node, &id, Exit::Quarantined, "no_tab", "0 tabs");
                    continue;
                };
                let mut id = format!("{source}:{native}");
                let n = *seen.entry(id.clone()).and_modify(|n| *n += 1).or_insert(1);
                if n > 1 {
                    id += &format!("~{n}");
                }
                if text.trim().is_empty() {
                    expected.leaves(node, &id, Exit::Dropped, "empty_text", "0 characters");
                } else {
                    notes.push(Plain { id, text: text.to_owned(), ..Plain::default() });
                }
            }
        }
        let mut parts = Vec::new();
        for note in notes {
            if note.text.starts_with("drop") {
                expected.leaves("split", &note.id, Exit::Dropped, "asked", &note.text);
                continue;
            }
            if note.text.starts_with("odd") {
                expected.leaves("split", &note.id, Exit::Quarantined, "odd", &note.text);
                continue;
            }
            let texts: Vec<&str> = note.text.split(';').map(str::trim).filter(|text| !text.is_empty()).collect();
            if texts.is_empty() {
                expected.leaves("split", &note.id, Exit::Dropped, "no_parts", &note.text);
            }
            for (position, text) in texts.iter().enumerate() {
                let id = if texts.len() == 1 { note.id.clone() } else { format!("{}_{}", note.id, position + 1) };
                parts.push(Plain { id, text: (*text).to_owned(), ..Plain::default() });
            }
        }
        expected.after.insert("split", parts.clone());
        for part in &mut parts {
            let picture =
                [("@scan.bin", SCAN), ("@photo.bin", PHOTO)].into_iter().find(|(name, _)| part.text.contains(name));
            part.flags.extend(picture.map(|(_, bytes)| format!("picture of {} bytes", bytes.len())));
            part.flags.push(format!("saw drawn: {}", part.text));
            part.flags.extend(picture.map(|(_, bytes)| format!("and {}", Hash::of(bytes).short())));
        }
        expected.after.insert("look", parts.clone());
        let filtered = expected.filter("filter", parts, 3);

        let mut order: Vec<(usize, String, String)> =
            filtered.iter().map(|note| (note.text.chars().count(), note.id.clone(), letter(&note.text))).collect();
        order.sort();
        let ranked = expected.select("rank", filtered, |note| {
            let own = letter(&note.text);
            if own == "?" {
                return Some((Exit::Quarantined, "no_letter", "?".to_owned()));
            }
            let group: Vec<_> = order.iter().filter(|(_, _, letter)| *letter == own).collect();
            let shortest = group.len() > 1 && group[0].1 == note.id;
            shortest.then(|| (Exit::Dropped, "shortest", format!("{} of {own}", note.text.chars().count())))
        });
        let mut labelled = expected.filter("filter_again", ranked, 6);
        for note in &mut labelled {
            let place = order.iter().position(|(_, id, _)| *id == note.id).unwrap();
            note.rank = Some((order.len() - place) as u64);
            let beside = order.iter().filter(|(_, id, own)| *own == letter(&note.text) && *id != note.id);
            let mut beside: Vec<String> = beside.map(|(_, id, _)| format!("beside {id}")).collect();
            beside.sort();
            note.flags.extend(beside);
        }
        expected.after.insert("label", labelled.clone());
        let mut asked = Vec::new();
        for note in labelled {
            if note.text.contains("refuse") {
                expected.leaves("ask", &note.id, Exit::Dropped, "refused", "no");
            } else if note.text.contains("hush") {
                expected.leaves("ask", &note.id, Exit::Quarantined, "empty_reply", &note.text);
            } else if note.text.contains("twin") {
                for (child, answer) in [(1, "first"), (2, "second")] {
                    let id = format!("{}_{child}", note.id);
                    asked.push(Plain { id, answer: Some(answer.to_owned()), ..note.clone() });
                }
            } else {
                let answer = format!("{} words, sample 0", note.text.split(' ').count());
                asked.push(Plain { answer: Some(answer), ..note });
            }
        }
        expected.after.insert("ask", asked.clone());
        expected.filter("last", asked, 9);
        expected
    }
}

const NODES: [&str; 11] =
    ["read_a", "read_b", "split", "draw", "look", "filter", "rank", "filter_again", "label", "ask", "last"];

fn show_counts(counts: &SourceCounts) -> String {
    let line = |(source, counts): (&String, &casemill::record::ledger::Counts)| {
        format!(
            "{source} {} + {} = {} + {:?} + {:?}",
            counts.n_in, counts.n_split, counts.kept, counts.dropped, counts.quarantined
        )
    };
    counts.iter().map(line).collect::<Vec<_>>().join(" | ")
}

#[test]
fn every_shape_gives_what_the_rules_say() {
    let mut toy = every_shape(4);
    toy.service = Some(Arc::default());
    assert_eq!(toy.build().len(), NODES.len());
    let built = toy.built();
    let expected = Expected::compute();

    for (node, notes) in &expected.after {
        let found: Vec<Plain> = built.records(node).into_iter().map(Plain::of).collect();
        assert_eq!(&found, notes, "after {node}");
    }
    let ledger = NODES.iter().flat_map(|node| built.ledger(node));
    let mut rows = BTreeSet::new();
    for row in ledger {
        assert_eq!(row.source, row.record_id.source());
        let raw = RAW.iter().find(|(source, file, _)| row.file == format!("{source}/{file}")).unwrap();
        let line = raw.2.lines().nth(usize::try_from(row.line).unwrap() - 1).unwrap();
        assert_eq!(row.raw_sha256, Hash::of(line.as_bytes()), "{}", row.record_id);
        rows.insert(format!("{} {} {} {}: {}", row.node, row.record_id, row.exit.as_str(), row.reason, row.detail));
    }
    assert_eq!(rows, expected.ledger);

    let counts: String = NODES.iter().map(|node| format!("{node}: {}\n", show_counts(built.counts(node)))).collect();
    expect![[r#"
        read_a: a 13 + 0 = 11 + {"empty_text": 1} + {"no_tab": 1}
        read_b: b 7 + 0 = 7 + {} + {}
        split: a 11 + 3 = 11 + {"asked": 1, "no_parts": 1} + {"odd": 1} | b 7 + 0 = 7 + {} + {}
        draw: a 11 + 0 = 11 + {} + {} | b 7 + 0 = 7 + {} + {}
        look: a 11 + 0 = 11 + {} + {} | b 7 + 0 = 7 + {} + {}
        filter: a 11 + 0 = 8 + {"bad_word": 1, "too_short": 1} + {"shouts": 1} | b 7 + 0 = 7 + {} + {}
        rank: a 8 + 0 = 5 + {"shortest": 3} + {} | b 7 + 0 = 5 + {"shortest": 1} + {"no_letter": 1}
        filter_again: a 5 + 0 = 5 + {} + {} | b 5 + 0 = 4 + {"too_short": 1} + {}
        label: a 5 + 0 = 5 + {} + {} | b 4 + 0 = 4 + {} + {}
        ask: a 5 + 0 = 5 + {} + {} | b 4 + 1 = 3 + {"refused": 1} + {"empty_reply": 1}
        last: a 5 + 0 = 5 + {} + {} | b 3 + 0 = 3 + {} + {}
    "#]]
    .assert_eq(&counts);
    for node in NODES {
        let index = built.node(node).0;
        let total = total_counts(built.counts(node));
        assert!(total.is_conserved(), "{node}: {total:?}");
        let above: Vec<usize> = built.session.node(index).unwrap().stream_inputs().collect();
        if !above.is_empty() {
            let n_in: u64 = above.iter().map(|input| kept(&built, *input)).sum();
            assert_eq!(total.n_in, n_in, "{node} reads what the nodes above it passed on");
        }
        assert_eq!(total.kept, built.records(node).len() as u64, "{node}");
        let ledger = built.ledger(node).len() as u64;
        assert_eq!(ledger, total.n_dropped() + total.n_quarantined(), "{node}: a row for each record that left");
    }
}

fn kept(built: &Built, index: usize) -> u64 {
    total_counts(&built.plans[index].manifest.as_ref().unwrap().counts).kept
}

#[test]
fn side_tables_hold_what_was_emitted_and_tables_sort_theirs_by_id() {
    let mut toy = every_shape(2);
    toy.service = Some(Arc::default());
    toy.build();
    let built = toy.built();
    let lengths: Vec<String> = built
        .side::<Length>("read_b", "lengths")
        .into_iter()
        .map(|row| format!("{} {}", row.record_id, row.n_chars))
        .collect();
    assert_eq!(lengths, ["b:n1 12", "b:n2 13", "b:n3 5", "b:n4 10", "b:n5 23", "b:n6 3", "b:n7 5"]);
    assert_eq!(
        built.side::<Parts>("split", "parts"),
        [("a:n1", vec!["alpha one", "beta two words", "gamma"]), ("a:n8", vec!["bad apple", "a good apple"]),].map(
            |(id, parts)| Parts {
                record_id: RecordId::parse(id),
                parts: parts.into_iter().map(str::to_owned).collect()
            }
        )
    );
    let short: Vec<RecordId> = built.side::<Length>("filter", "short").into_iter().map(|row| row.record_id).collect();
    assert_eq!(short, [RecordId::parse("a:n7")]);

    let ranks = built.side::<Rank>("rank", "ranks");
    assert!(ranks.is_sorted_by(|one, other| one.record_id < other.record_id), "{ranks:?}");
    let shown: String = ranks
        .iter()
        .map(|row| {
            let related: Vec<&str> = row.related.iter().map(RecordId::as_str).collect();
            format!("{} {} {:.3} {}\n", row.record_id, row.rank, row.share, related.join(","))
        })
        .collect();
    expect![[r#"
        a:n11 7 0.522 a:n1_2
        a:n1_1 10 0.391 a:n1~2,a:n3,a:n5,a:n8_2,b:n1
        a:n1_2 3 0.609 a:n11
        a:n1_3 13 0.217 b:n2,b:n4,b:n7
        a:n1~2 8 0.478 a:n1_1,a:n3,a:n5,a:n8_2,b:n1
        a:n3 2 0.826 a:n1_1,a:n1~2,a:n5,a:n8_2,b:n1
        a:n5 15 0.130 a:n1_1,a:n1~2,a:n3,a:n8_2,b:n1
        a:n8_2 6 0.522 a:n1_1,a:n1~2,a:n3,a:n5,b:n1
        b:n1 5 0.522 a:n1_1,a:n1~2,a:n3,a:n5,a:n8_2
        b:n2 4 0.565 a:n1_3,b:n4,b:n7
        b:n4 9 0.435 a:n1_3,b:n2,b:n7
        b:n5 1 1.000 b:n6
        b:n6 14 0.130 b:n5
        b:n7 11 0.217 a:n1_3,b:n2,b:n4
    "#]]
    .assert_eq(&shown);
    let rows: BTreeMap<&str, u64> =
        built.manifest("rank").sides.iter().map(|(port, rows)| (port.as_str(), *rows)).collect();
    assert_eq!(rows, BTreeMap::from([("ranks", ranks.len() as u64)]));
    // Each row stands in the shard of the table's own part that covers its id.
    for folder in built.shards("rank") {
        let side = folder.join(shard::side_file("ranks"));
        assert!(side.is_file(), "{}", folder.display());
        assert!(parquet::n_rows(&side).unwrap() <= 2, "cut like the records");
    }
    // An empty side table is not written.
    assert!(
        built.shards("last").iter().all(|folder| !folder.join(shard::side_file("short")).exists()) || {
            !built.side::<Length>("last", "short").is_empty()
        }
    );
    assert_eq!(
        built.manifest("filter_again").sides["short"],
        built.side::<Length>("filter_again", "short").len() as u64
    );
}

#[test]
fn nodes_that_only_select_store_ids_and_not_copies() {
    let mut toy = every_shape(4);
    toy.service = Some(Arc::default());
    toy.build();
    let built = toy.built();
    let columns = |node: &str| {
        let folder = &built.shards(node)[0];
        let schema = parquet::schema(&folder.join(shard::PART)).unwrap();
        schema.fields().iter().map(|field| field.name().clone()).collect::<Vec<_>>().join(" ")
    };
    for node in ["filter", "filter_again", "last"] {
        assert_eq!(columns(node), "record_id row", "{node}");
    }
    assert_eq!(columns("rank"), "record_id shard row");
    for node in ["read_a", "split", "label", "ask"] {
        assert_eq!(columns(node), "record_id provenance text picture thumbnail rank answer flags", "{node}");
    }
}

/// All files below a folder, by name.
fn files_below(folder: &Path) -> BTreeMap<String, Vec<u8>> {
    let mut found = BTreeMap::new();
    let mut waiting = vec![folder.to_owned()];
    while let Some(folder) = waiting.pop() {
        for entry in std::fs::read_dir(&folder).unwrap() {
            let entry = entry.unwrap();
            if entry.file_type().unwrap().is_dir() {
                waiting.push(entry.path());
            } else {
                found.insert(entry.file_name().into_string().unwrap(), std::fs::read(entry.path()).unwrap());
            }
        }
    }
    found
}

#[test]
fn derived_media_are_stored_by_hash_and_raw_media_are_not_copied() {
    let toy = every_shape(3);
    toy.build();
    let built = toy.built();
    let notes = built.records("draw");
    let stored = files_below(&toy.path("data/media"));
    for note in &notes {
        let name = note.thumbnail.as_ref().unwrap().0.to_string();
        assert_eq!(stored[&name], thumbnail(&note.text), "{}", note.record_id);
        assert_eq!(name, Hash::of(&stored[&name]).to_string());
        assert!(toy.path("data/media").join(&name[..2]).join(&name).is_file());
    }
    let texts: BTreeSet<&str> = notes.iter().map(|note| note.text.as_str()).collect();
    assert_eq!(stored.len(), texts.len(), "each once, and nothing else");

    let raw = [("a:n3", "a/scan.bin", SCAN), ("b:n5", "b/photo.bin", PHOTO)];
    for (id, path, bytes) in raw {
        let note = notes.iter().find(|note| note.record_id.as_str() == id).unwrap();
        assert_eq!(note.picture, Some(MediaRef(Hash::of(bytes))));
        assert!(!stored.contains_key(Hash::of(bytes).as_str()), "{path} is not copied");
        let whole = files_below(&toy.path("data"));
        assert!(whole.values().all(|content| content != bytes), "{path} is nowhere below the data folder");
        let node = if path.starts_with('a') { "read_a" } else { "read_b" };
        let named: Vec<(String, String)> = built
            .shards(node)
            .iter()
            .flat_map(|folder| shard::read_manifest(folder).unwrap().unwrap().0.raw_media)
            .collect();
        assert_eq!(named, [(Hash::of(bytes).to_string(), path.to_owned())]);
    }
    assert_eq!(notes.iter().filter(|note| note.picture.is_some()).count(), raw.len());
}

#[test]
fn jobs_and_shard_sizes_change_no_record() {
    let mut first: Option<(Vec<Note>, Vec<Rank>, Vec<String>)> = None;
    let mut hashes: BTreeMap<u64, Vec<Hash>> = BTreeMap::new();
    for (shard_records, jobs) in [(1000, 1), (1000, 2), (2, 1), (2, 2), (1, 1), (1, 2)] {
        let mut toy = every_shape(shard_records);
        toy.service = Some(Arc::default());
        toy.jobs = jobs;
        toy.build();
        let built = toy.built();
        let counts = NODES.iter().map(|node| show_counts(built.counts(node))).collect();
        let found = (built.records("last"), built.side::<Rank>("rank", "ranks"), counts);
        assert!(found.0.len() > 3);
        assert_eq!(*first.get_or_insert_with(|| found.clone()), found, "{shard_records} a shard, {jobs} jobs");
        let n_shards = built.manifest("split").shards.len();
        assert_eq!(n_shards > 2, shard_records < 1000, "{n_shards} shards");
        let outputs: Vec<Hash> = NODES.iter().map(|node| built.manifest(node).output_hash.clone()).collect();
        assert_eq!(*hashes.entry(shard_records).or_insert_with(|| outputs.clone()), outputs, "{jobs} jobs");
    }
}

/// Fakes of every shape that break one rule, named by the setting `how`.
mod unruly {
    use super::*;
    use casemill::record::Record;
    use casemill::source::lines;
    use polars::prelude::{LazyFrame, col};

    pub const STAGES: &[StageDef] = &[BREAK_FILTER, BREAK_READER, BREAK_RECORD, BREAK_SHAPE, BREAK_TABLE, READ_NOTES];

    #[derive(Default, Serialize, Deserialize, JsonSchema)]
    #[serde(default, deny_unknown_fields)]
    pub struct How {
        how: String,
    }

    impl Settings for How {}

    const BREAK_RECORD: StageDef = StageDef {
        name: "break_record",
        shape: Shape::Record,
        reasons: &["declared"],
        settings: SettingsType::of::<How>(),
        build: |arguments| Ok(AnyStage::record(Unruly(arguments.settings()?))),
        ..SPLIT_NOTES
    };
    const BREAK_FILTER: StageDef = StageDef {
        name: "break_filter",
        shape: Shape::Filter,
        build: |arguments| Ok(AnyStage::filter(Unruly(arguments.settings()?))),
        ..BREAK_RECORD
    };
    const BREAK_TABLE: StageDef = StageDef {
        name: "break_table",
        shape: Shape::Table,
        build: |arguments| Ok(AnyStage::table(Unruly(arguments.settings()?))),
        ..BREAK_RECORD
    };
    const BREAK_READER: StageDef = StageDef {
        name: "break_reader",
        shape: Shape::Reader,
        inputs: &[],
        build: |arguments| Ok(AnyStage::reader(Unruly(arguments.settings()?))),
        ..BREAK_RECORD
    };
    const BREAK_SHAPE: StageDef = StageDef { name: "break_shape", shape: Shape::Table, ..BREAK_RECORD };

    struct Unruly(How);

    fn is_second(id: &RecordId) -> bool {
        id.as_str() == "a:n2"
    }

    fn undeclared() -> Verdict {
        Verdict::Drop(Cause::new("undeclared", "1"))
    }

    fn length(id: &RecordId) -> Length {
        Length { record_id: id.clone(), n_chars: 1 }
    }

    fn parts(id: &RecordId) -> Parts {
        Parts { record_id: id.clone(), parts: Vec::new() }
    }

    impl RecordStage for Unruly {
        type In = Note;
        type Out = Note;

        fn apply(
            &self,
            note: Note,
            out: &mut Emitter<'_, Note>,
            context: &StageContext<'_>,
        ) -> anyhow::Result<Verdict> {
            let id = note.record_id.clone();
            if !is_second(&id) {
                out.emit(note);
                return Ok(Verdict::Keep);
            }
            match self.0.how.as_str() {
                "undeclared_reason" => return Ok(undeclared()),
                "undeclared_side" => out.side("gossip", parts(&id)),
                "side_to_stream" => out.side("notes", parts(&id)),
                "wrong_row" => out.side("parts", length(&id)),
                "mixed_rows" => {
                    out.side("parts", parts(&id));
                    out.side("parts", length(&id));
                }
                "keep_nothing" => return Ok(Verdict::Keep),
                "emit_and_drop" => {
                    out.emit(note);
                    return Ok(Verdict::Drop(Cause::new("declared", "1")));
                }
                "unknown_media" => {
                    context.media.path(&MediaRef(Hash::of(b"never made")))?;
                }
                "panic" => panic!("the stage is broken at {id}"),
                "fail" => anyhow::bail!("no such luck"),
                _ => {}
            }
            out.emit(note);
            Ok(Verdict::Keep)
        }
    }

    impl FilterStage for Unruly {
        type In = Note;

        fn judge(&self, note: &Note, sides: &mut SideEmitter, _: &StageContext<'_>) -> anyhow::Result<Verdict> {
            if is_second(note.record_id()) {
                match self.0.how.as_str() {
                    "undeclared_reason" => return Ok(undeclared()),
                    "undeclared_side" => sides.side("gossip", parts(note.record_id())),
                    "panic" => panic!("the filter is broken"),
                    _ => {}
                }
            }
            Ok(Verdict::Keep)
        }
    }

    impl TableStage for Unruly {
        type In = Note;
        type Columns = RankColumns;

        fn columns(&self, note: &Note) -> anyhow::Result<RankColumns> {
            assert!(self.0.how != "panic_in_columns" || !is_second(&note.record_id), "the columns are broken");
            RankColumns::of(note)
        }

        fn decide(&self, table: LazyFrame, sides: &mut SideEmitter) -> anyhow::Result<Vec<Decision>> {
            let frame = table.select([col(EngineColumns::RECORD_ID)]).collect()?;
            let ids = frame.column(EngineColumns::RECORD_ID)?.str()?;
            let mut decisions: Vec<Decision> = ids
                .iter()
                .flatten()
                .map(|id| Decision { record_id: RecordId::parse(id), verdict: Verdict::Keep })
                .collect();
            match self.0.how.as_str() {
                "twice" => decisions.push(decisions[1].clone()),
                "twice_and_not_at_all" => decisions[2] = decisions[1].clone(),
                "not_at_all" => drop(decisions.remove(1)),
                "unknown_id" => decisions[1].record_id = RecordId::parse("a:other"),
                "undeclared_reason" => decisions[1].verdict = undeclared(),
                "undeclared_side" => sides.side("gossip", parts(&RecordId::parse("a:n2"))),
                "panic" => panic!("the table is broken"),
                _ => {}
            }
            Ok(decisions)
        }
    }

    impl Reader for Unruly {
        type Out = Note;

        fn cut(&self, source: &RawSource, limits: ShardLimits) -> anyhow::Result<Cut> {
            assert!(self.0.how != "panic_in_cut", "the cut is broken");
            lines::cut(source, limits, 1000, |_, _, line| Ok(RecordId::from_raw_hash("a", &line.sha256())))
        }

        fn read(&self, source: &RawSource, slice: &Slice, out: &mut ReaderOutput<Note>) -> anyhow::Result<()> {
            lines::read(source, slice, 1000, |file, position, line, _| {
                let record_id = RecordId::from_raw_hash("a", &line.sha256());
                let mut cause = Cause::new("declared", "1");
                if position.line == 2 {
                    match self.0.how.as_str() {
                        "loses_a_record" => return Ok(()),
                        "undeclared_reason" => cause.reason = "undeclared",
                        "undeclared_side" => out.side("gossip", parts(&record_id)),
                        "panic" => panic!("the reader is broken"),
                        _ => {}
                    }
                }
                let (file, line, raw_sha256) = (file.path.clone(), position.line, line.sha256());
                out.exit(RawExit { record_id, exit: Exit::Dropped, cause, file, line, raw_sha256 });
                Ok(())
            })
        }
    }
}

fn unruly_toy(stage: &str, how: &str) -> Toy {
    let place = if stage == "break_reader" { "source = 'a'" } else { "input = 'read'" };
    let mut toy = Toy::new(&format!(
        "name = 'toy'\nsummary = 'Breaks a rule'\ncases = 'unruly'\n[sources.a]\n\
         [nodes.read]\nstage = 'read_notes'\nsource = 'a'\n\
         [nodes.unruly]\nstage = '{stage}'\n{place}\nsettings = {{ how = '{how}' }}\n[shards]\nrecords = 1\n"
    ));
    toy.stages = unruly::STAGES;
    toy.write("raw/a/x.txt", "n1\tone\nn2\ttwo\nn3\tthree\n");
    toy
}

/// Builds with one broken rule after the other; each error is internal and leaves the node uncommitted.
fn check_unruly(stage: &str, hows: &[&str], expected: Expect) {
    let mut account = String::new();
    for how in hows {
        let toy = unruly_toy(stage, how);
        let error = toy.try_build().expect_err(how);
        account += &format!("{how}: {error:#}\n");
        assert_eq!(code_of(&error), Code::Internal, "{stage} {how}");
        let built = toy.built();
        assert_eq!(built.node("unruly").1.state, State::Missing, "{stage} {how} is not committed");
        assert_eq!(built.node("read").1.state, State::Fresh);
    }
    expected.assert_eq(&account);
}

#[test]
fn an_obedient_stage_with_the_same_fakes_builds() {
    for stage in ["break_record", "break_filter", "break_table"] {
        let toy = unruly_toy(stage, "");
        assert_eq!(toy.build(), ["read", "unruly"]);
        assert_eq!(toy.built().records("unruly").len(), 3, "{stage}");
    }
    let toy = unruly_toy("break_reader", "");
    toy.build();
    assert_eq!(toy.built().ledger("unruly").len(), 3);
}

/// Case prv-01: a panic can quote a record.
#[test]
fn prv_01_a_panic_over_credentialed_records_shows_its_place_alone() {
    let toy = unruly_toy("break_record", "panic");
    toy.write("raw/a/source.toml", "access = 'credentialed'\nllm_egress = 'local'\n");
    let error = format!("{:#}", toy.try_build().expect_err("a panic"));
    assert!(error.contains("stage break_record panicked at tests/it/shapes.rs:"), "{error}");
    assert!(!error.contains("broken") && !error.contains("a:n2"), "{error}");
}

#[test]
fn a_record_stage_that_breaks_its_contract_is_named() {
    check_unruly(
        "break_record",
        &[
            "undeclared_reason",
            "undeclared_side",
            "side_to_stream",
            "wrong_row",
            "mixed_rows",
            "keep_nothing",
            "emit_and_drop",
            "unknown_media",
            "fail",
            "panic",
        ],
        expect![[r#"
            undeclared_reason: node unruly: shard 1: stage break_record gave the reason `undeclared`, which it does not declare
            undeclared_side: node unruly: shard 1: stage break_record has no side port `gossip`
            side_to_stream: node unruly: shard 1: stage break_record has no side port `notes`
            wrong_row: node unruly: shard 1: side port `parts` of stage break_record takes `parts`, not `length`
            mixed_rows: node unruly: shard 1: side port `parts` got `length` rows after `parts` rows
            keep_nothing: node unruly: shard 1: a:n2 was kept although nothing was emitted for it
            emit_and_drop: node unruly: shard 1: a:n2 was dropped although 1 records were emitted for it
            unknown_media: node unruly: shard 1: record a:n2: no node made or named media cb00a8cff6ab287ac3f956ffae4fc3fc716331621cf5b4354884939176d1b0a9
            fail: node unruly: shard 1: record a:n2: no such luck
            panic: node unruly: shard 1: stage break_record panicked: the stage is broken at a:n2
        "#]],
    );
}

#[test]
fn a_filter_that_breaks_its_contract_is_named() {
    check_unruly(
        "break_filter",
        &["undeclared_reason", "undeclared_side", "panic"],
        expect![[r#"
        undeclared_reason: node unruly: shard 1: stage break_filter gave the reason `undeclared`, which it does not declare
        undeclared_side: node unruly: shard 1: stage break_filter has no side port `gossip`
        panic: node unruly: shard 1: stage break_filter panicked: the filter is broken
    "#]],
    );
}

#[test]
fn a_table_stage_that_breaks_its_contract_is_named() {
    check_unruly(
        "break_table",
        &[
            "twice",
            "twice_and_not_at_all",
            "not_at_all",
            "unknown_id",
            "undeclared_reason",
            "undeclared_side",
            "panic_in_columns",
            "panic",
        ],
        expect![[r#"
            twice: node unruly: stage break_table: it decided a:n2 twice
            twice_and_not_at_all: node unruly: stage break_table: it decided a:n2 twice
            not_at_all: node unruly: stage break_table: it did not decide a:n2
            unknown_id: node unruly: stage break_table: it did not decide a:n2
            undeclared_reason: node unruly: stage break_table gave the reason `undeclared`, which it does not declare
            undeclared_side: node unruly: stage break_table has no side port `gossip`
            panic_in_columns: node unruly: shard 1: stage break_table panicked: the columns are broken
            panic: node unruly: stage break_table panicked: the table is broken
        "#]],
    );
}

#[test]
fn a_reader_that_breaks_its_contract_is_named() {
    check_unruly(
        "break_reader",
        &["undeclared_reason", "undeclared_side", "loses_a_record", "panic_in_cut", "panic"],
        expect![[r#"
            undeclared_reason: node unruly: shard 1: stage break_reader gave the reason `undeclared`, which it does not declare
            undeclared_side: node unruly: shard 1: stage break_reader has no side port `gossip`
            loses_a_record: node unruly: shard 1: the slice holds 1 raw records but 0 came out of it: the raw file changed while it was read
            panic_in_cut: node unruly: stage break_reader panicked: the cut is broken
            panic: node unruly: shard 1: stage break_reader panicked: the reader is broken
        "#]],
    );
}

#[test]
fn a_stage_of_another_shape_than_declared_is_refused_before_anything_runs() {
    let toy = unruly_toy("break_shape", "");
    let error = toy.try_build().unwrap_err();
    expect!["stage break_shape is declared with another shape than it has"].assert_eq(&format!("{error:#}"));
    assert_eq!(code_of(&error), Code::Usage);
    assert!(!toy.path("data/work/toy/read").exists());
}

#[test]
fn only_declared_resources_can_be_opened() {
    const PEEK: StageDef = StageDef {
        name: "peek_notes",
        build: |arguments| {
            arguments.resources.text("secret")?;
            anyhow::bail!("it was opened")
        },
        ..FILTER_NOTES
    };
    let pipeline = |resources: &str| {
        let mut toy = Toy::new(&format!(
            "name = 'toy'\nsummary = 'Peeks'\ncases = 'peek'\n[sources.a]\n\
             [nodes.read]\nstage = 'read_notes'\nsource = 'a'\n\
             [nodes.peek]\nstage = 'peek_notes'\ninput = 'read'\nresources = {{ {resources} }}\n"
        ));
        toy.stages = const { &[PEEK, READ_NOTES] };
        toy.write("raw/a/x.txt", "n1\tone\n");
        toy.write("pipelines/secret.txt", "the secret");
        let error = toy.try_build().unwrap_err();
        assert_eq!(code_of(&error), Code::Usage, "{error:#}");
        format!("{error:#}")
    };
    expect!["pipelines/toy.toml: nodes.peek: resource `secret` is not declared by this stage"]
        .assert_eq(&pipeline("words = 'words.txt'"));
    expect![
        "pipelines/toy.toml:11: nodes.peek.resources.secret: stage peek_notes reads no such resource (known: words)"
    ]
    .assert_eq(&pipeline("words = 'words.txt', secret = 'secret.txt'"));
    expect![
        "pipelines/toy.toml:11: nodes.peek.resources.words: must be one path below `pipelines/`, with forward slashes"
    ]
    .assert_eq(&pipeline("words = '../sources/a.toml'"));
    expect!["pipelines/toy.toml:8: nodes.peek.resources.words: is missing: stage peek_notes needs words that drop a note, one a line"].assert_eq(&pipeline(""));
}

/// The notes that reach the model, each once.
fn asked_texts(built: &Built) -> BTreeSet<String> {
    built.records("label").into_iter().map(|note| note.text).collect()
}

#[test]
fn a_changed_reply_makes_its_node_stale_and_the_rebuild_uses_it() {
    let mut toy = every_shape(2);
    let service: Arc<Replies> = Arc::default();
    toy.service = Some(service.clone());
    toy.build();
    let built = toy.built();
    let n = asked_texts(&built).len();
    assert_eq!((service.n_calls(), service.n_stored()), (n as u64, n), "each text is asked once");
    assert_eq!(built.manifest("ask").replies.len(), n, "the accepted replies are listed");

    // Replay with the same replies: nothing runs, nothing is asked.
    assert_eq!(toy.build(), [""; 0]);
    assert_eq!(toy.not_fresh(), [""; 0]);
    assert_eq!(service.n_calls(), n as u64);

    let text = "zebra stands @photo.bin";
    service.replace(&call(text, 0), "changed by hand");
    assert_eq!(toy.not_fresh(), ["ask stale: 1 accepted replies changed", "last pending: waits for ask"]);
    let before: BTreeMap<_, _> =
        built.shards("ask").into_iter().map(|folder| (folder.clone(), files_below(&folder))).collect();
    assert_eq!(toy.build(), ["ask", "last"]);
    assert_eq!(toy.not_fresh(), [""; 0]);
    assert_eq!(service.n_calls(), n as u64, "the other replies are replayed");
    let after = toy.built();
    for (old, new) in built.records("ask").into_iter().zip(after.records("ask")) {
        if new.text == text {
            assert_eq!(new.answer.as_deref(), Some("changed by hand"));
        } else {
            assert_eq!(old, new);
        }
    }
    let changed = before.iter().filter(|(folder, files)| files_below(folder) != **files).count();
    assert_eq!(changed, 1, "only the shard of that note differs");

    // A reply that sends the note away, and the first reply again.
    service.replace(&call(text, 0), "no");
    assert_eq!(toy.build(), ["ask", "last"]);
    assert_eq!(total_counts(toy.built().counts("ask")).dropped["refused"], 2);
    service.replace(&call(text, 0), &Replies::script(&call(text, 0)));
    assert_eq!(toy.build(), ["ask"], "the first build of the node below is still there");
    assert_eq!(toy.built().records("last"), built.records("last"));
    assert_eq!(service.n_calls(), n as u64);
}

#[test]
fn a_shard_that_was_done_before_a_reply_changed_is_done_again() {
    let mut toy = every_shape(1);
    let service: Arc<Replies> = Arc::default();
    toy.service = Some(service.clone());
    toy.build();
    // As a kill between the last shard and stage.json leaves it.
    let folder = toy.built().node("ask").1.build_dir.clone().unwrap();
    std::fs::remove_file(folder.join("stage.json")).unwrap();
    service.replace(&call("zebra stands @photo.bin", 0), "changed while it was down");
    assert_eq!(toy.build(), ["ask", "last"]);
    assert_eq!(toy.not_fresh(), [""; 0]);
    let answers: Vec<String> = toy.built().records("ask").into_iter().filter_map(|note| note.answer).collect();
    assert!(answers.contains(&"changed while it was down".to_owned()), "{answers:?}");
}

#[test]
fn the_key_of_a_call_does_not_depend_on_the_node() {
    let mut toy = every_shape(1000);
    let service: Arc<Replies> = Arc::default();
    toy.service = Some(service.clone());
    toy.build();
    let n = service.n_calls();
    let keys: Vec<Hash> = toy.built().manifest("ask").replies.keys().cloned().collect();
    toy.edit("pipelines/toy.toml", "[nodes.ask]", "[nodes.inquire]");
    toy.edit("pipelines/toy.toml", "\"ask\"", "\"inquire\"");
    assert_eq!(toy.build(), ["inquire", "last"]);
    assert_eq!(service.n_calls(), n, "every reply is known");
    assert_eq!(toy.built().manifest("inquire").replies.clone().into_keys().collect::<Vec<_>>(), keys);

    // A second sample is another call, the first one is known.
    toy.edit("pipelines/toy.toml", "input = \"label\"", "input = \"label\"\nsettings = { samples = 2 }");
    assert_eq!(toy.not_fresh(), ["inquire stale: settings.samples 1 → 2", "last pending: waits for inquire"]);
    toy.build();
    assert_eq!(service.n_calls(), 2 * n);
}

#[test]
fn without_a_service_the_records_pass_on_marked() {
    let mut toy = every_shape(2);
    toy.build();
    let built = toy.built();
    let (labelled, asked) = (built.records("label"), built.records("ask"));
    assert_eq!(labelled.len(), asked.len());
    for (before, after) in labelled.into_iter().zip(asked) {
        let flags = [&before.flags[..], &["not_run".to_owned()]].concat();
        assert_eq!(after, Note { flags, ..before });
    }
    assert!(built.manifest("ask").replies.is_empty());
    // With a service it is another build, and both stay.
    toy.service = Some(Arc::default());
    assert_eq!(
        toy.not_fresh(),
        [
            "ask stale: engine.models \"off\" → unset; engine.models.judge unset → \"judge\"",
            "last pending: waits for ask"
        ]
    );
    toy.build();
    assert!(toy.built().records("last").iter().all(|note| note.answer.is_some()));
    toy.service = None;
    assert_eq!(toy.build(), [""; 0]);
}

/// A pipeline whose source `extra` may be absent.
const LATE: &str = r#"
name = "toy"
summary = "A late node"
cases = "label"

[sources.a]
[sources.b]
optional = true
[sources.extra]
optional = true

[nodes.read_a]
stage = "read_notes"
source = "a"

[nodes.read_b]
stage = "read_notes"
source = "b"

[nodes.read_extra]
stage = "read_notes"
source = "extra"

[nodes.split]
stage = "split_notes"
input = ["read_a", "read_b"]

[nodes.rank]
stage = "rank_notes"
input = "split"

[nodes.label]
stage = "label_notes"
input = "rank"
inputs = { ranks = "rank.ranks", hints = "read_extra.lengths" }

[nodes.late]
stage = "split_notes"
input = "read_extra"
optional = true

[nodes.later]
stage = "draw_notes"
input = "late"
optional = true
"#;

fn late_toy() -> Toy {
    let toy = Toy::new(LATE);
    toy.write("raw/a/x.txt", "n1\tone\nn2\ttwo\nn3\tonce more\n");
    toy
}

#[test]
fn nodes_of_an_absent_source_are_left_out_and_reported() {
    let toy = late_toy();
    let (summary, events) = toy.try_build().unwrap();
    assert_eq!((summary.n_run, summary.n_fresh), (4, 0));
    let reported: Vec<String> = events
        .iter()
        .filter_map(|event| match event {
            casemill::engine::Event::SourceAbsent { source } => Some(format!("source {source}")),
            casemill::engine::Event::NodeAbsent { node, why } => Some(format!("{node}: {why}")),
            _ => None,
        })
        .collect();
    expect![[r#"
        source b
        source extra
        read_b: source b is absent
        read_extra: source extra is absent
        late: its input read_extra is absent
        later: its input late is absent"#]]
    .assert_eq(&reported.join("\n"));
    assert!(!toy.path("data/work/toy/late").exists());
    let texts: Vec<String> = toy.built().records("label").into_iter().map(|note| note.text).collect();
    assert_eq!(texts, ["two", "once more"]);
    assert_eq!(toy.build(), [""; 0]);
}

#[test]
fn a_late_node_runs_when_its_source_is_there_and_nothing_above_runs_again() {
    let toy = late_toy();
    toy.build();
    toy.write("raw/extra/x.txt", "n3\ta hint; or two\n");
    let mut ran = toy.build();
    ran.sort();
    assert_eq!(ran, ["label", "late", "later", "read_extra"]);
    let built = toy.built();
    assert_eq!(built.records("later").len(), 2);
    let flags: Vec<String> = built.records("label").into_iter().flat_map(|note| note.flags).collect();
    assert_eq!(flags, ["beside a:n1", "hint 14"], "the optional port is read");
    // Gone again: the first build of `label` is still there.
    toy.remove("raw/extra/x.txt");
    assert_eq!(toy.build(), [""; 0]);
    assert_eq!(toy.built().records("label").into_iter().flat_map(|note| note.flags).count(), 1);
}

#[test]
fn an_optional_port_says_what_came_to_it() {
    let toy = late_toy();
    toy.build();
    toy.write("raw/extra/x.txt", "n3\ta hint\n");
    let session = toy.open().unwrap();
    let _lock = session.workspace.lock("testing").unwrap();
    let options = casemill::engine::BuildOptions {
        jobs: 1,
        to: Some("read_extra".to_owned()),
        only: None,
        force: None,
        interrupted: Arc::default(),
    };
    session.build(&options, &mut ()).unwrap();
    expect![[r#"
        label stale: inputs.hints [] → [read_extra]
        late missing: never built
        later pending: waits for late
        read_b absent: source b is absent"#]]
    .assert_eq(&toy.not_fresh().join("\n"));
}

#[test]
fn a_source_that_joins_later_is_added_to_a_many_input_port() {
    let toy = late_toy();
    toy.build();
    toy.write("raw/b/x.txt", "n1\tthree\n");
    assert_eq!(toy.build(), ["read_b", "split", "rank", "label"]);
    let ids: Vec<String> = toy.built().records("split").into_iter().map(|note| note.record_id.to_string()).collect();
    assert_eq!(ids, ["a:n1", "a:n2", "a:n3", "b:n1"], "in the order of the port");
    let counts = toy.built().counts("split").clone();
    assert_eq!(
        counts.iter().map(|(source, counts)| (source.as_str(), counts.kept)).collect::<Vec<_>>(),
        [("a", 3), ("b", 1)]
    );
}

#[test]
fn a_node_that_is_not_optional_needs_its_source() {
    let toy = late_toy();
    toy.edit("pipelines/toy.toml", "input = \"late\"\noptional = true", "input = \"late\"");
    let error = toy.open().err().unwrap();
    assert_eq!(code_of(&error), Code::Input);
    let text = format!("{error:#}").replace(&toy.path("").display().to_string(), "");
    expect!["pipelines/toy.toml: nodes.later: its input late is absent; put the files of its source below raw, or set `optional = true` on the node"].assert_eq(&text);
}
