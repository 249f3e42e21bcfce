//! Case reports: reading JATS beside other readers, a huge article, images, and a build of generated articles.
//!
//! `cargo bench --bench articles -- [FILE|FOLDER …] [large] [images] [N …]`; without arguments `large`, `images` and 2 000
//! articles.
//!
//! * files or folders: JATS read to the whole record in memory. `CASEMILL_PEERS_PYTHON` names a Python with lxml and
//!   `pubmed_parser`, which then read the same files in turn, in one process, with one thread.
//! * `large`: an invented article of 50 MB, in a process of its own: time and peak memory.
//! * `images`: those of `data/sample/pmc`, by format: probed, and decoded and hashed.
//! * a number: that many generated packages through the pipeline clinmm by rules: each node, then a build with nothing to
//!   do, `freeze` and `verify`. `write N FOLDER` writes these packages to a folder, and nothing is run.

mod common;

use casemill::media::decode::decode;
use casemill::media::hash::DifferenceHash;
use casemill::media::probe::{self, probe};
use casemill::source::jats::{self, Limits};
use common::{Peers, high_water, measured};
use serde_json::Value;
use std::collections::BTreeMap;
use std::hint::black_box;
use std::io::Write;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::time::{Duration, Instant};

/// Repetitions; the best of each reader counts.
const REPETITIONS: usize = 25;
/// Where a child of this bench reads one file and tells its own peak.
const CHILD: &str = "read-and-tell";

fn main() {
    let arguments: Vec<String> = std::env::args().skip(1).filter(|argument| !argument.starts_with("--")).collect();
    if let [first, file] = arguments.as_slice()
        && first == CHILD
    {
        return tell(Path::new(file));
    }
    if let [first, n, folder] = arguments.as_slice()
        && first == "write"
    {
        return write_articles(n.parse().expect("a number of articles"), Path::new(folder));
    }
    let default = ["large", "images", "2000"].map(str::to_owned);
    let wanted = if arguments.is_empty() { default.to_vec() } else { arguments };
    println!("{} cores", std::thread::available_parallelism().map_or(1, std::num::NonZero::get));
    let mut files = Vec::new();
    for what in &wanted {
        if !matches!(what.as_str(), "large" | "images") && what.parse::<usize>().is_err() {
            find(Path::new(what), &mut files);
        }
    }
    if files.is_empty() {
        println!("read: skipped, no JATS files given");
    } else {
        read(&files);
    }
    for what in &wanted {
        match what.as_str() {
            "large" => large(50_000_000),
            "images" => images(),
            number => number.parse().into_iter().for_each(generated),
        }
    }
}

fn find(path: &Path, found: &mut Vec<PathBuf>) {
    if path.is_dir() {
        let entries = std::fs::read_dir(path).expect("a folder");
        let mut below: Vec<PathBuf> = entries.map(|entry| entry.expect("an entry").path()).collect();
        below.sort();
        below.iter().for_each(|path| find(path, found));
    } else if path.extension().is_some_and(|extension| extension == "xml" || extension == "nxml") {
        found.push(path.to_owned());
    } else if !path.exists() {
        panic!("{} is neither a file nor a part of this bench", path.display());
    }
}

// ------------------------------------------------------------------------------------------------------------- read

/// Reads the files once for each line on standard input, as it says, and answers with the seconds.
const PEERS: &str = "
import sys, time, warnings
warnings.filterwarnings('ignore')
from lxml import etree
import pubmed_parser as pp
files = sys.argv[1:]
def parser(file):
    for part in (pp.parse_pubmed_xml, lambda file: pp.parse_pubmed_paragraph(file, all_paragraph=True), pp.parse_pubmed_caption, pp.parse_pubmed_references):
        try: part(file)
        except Exception: pass
readers = {'lxml': etree.parse, 'pubmed_parser': parser}
for line in sys.stdin:
    reader = readers[line.strip()]
    start = time.perf_counter()
    for file in files: reader(file)
    print(time.perf_counter() - start, flush=True)
";

fn read(files: &[PathBuf]) {
    let bytes: u64 = files.iter().map(|file| std::fs::metadata(file).expect("a file").len()).sum();
    let mut peers = Peers::start(PEERS, files);
    let mut times: BTreeMap<&str, Vec<Duration>> = BTreeMap::new();
    for _ in 0..REPETITIONS {
        let start = Instant::now();
        for file in files {
            let bytes = std::fs::read(file).expect("a file");
            let _ = black_box(jats::read(&bytes, Limits::default()));
        }
        times.entry("casemill").or_default().push(start.elapsed());
        if let Some(peers) = &mut peers {
            for reader in ["lxml", "pubmed_parser"] {
                times.entry(reader).or_default().push(peers.run(reader));
            }
        }
    }
    Peers::end(peers);
    let n_read =
        files.iter().filter(|file| jats::read(&std::fs::read(file).expect("a file"), Limits::default()).is_ok());
    println!("read: {} files of {:.2} MB, {} of them articles", files.len(), bytes as f64 / 1e6, n_read.count());
    let best = |name: &str| times.get(name).and_then(|times| times.iter().min()).map(Duration::as_secs_f64);
    let own = best("casemill").expect("a time");
    for name in ["casemill", "lxml", "pubmed_parser"] {
        let Some(time) = best(name) else { continue };
        let middle = {
            let mut sorted = times[name].clone();
            sorted.sort();
            sorted[sorted.len() / 2].as_secs_f64()
        };
        println!(
            "  {name}: {:.0} articles/s, {:.1} MB/s, {:.3} ms an article (median {:.3}), {:.2} times casemill's",
            files.len() as f64 / time,
            bytes as f64 / time / 1e6,
            time * 1e3 / files.len() as f64,
            middle * 1e3 / files.len() as f64,
            time / own
        );
    }
}

// ------------------------------------------------------------------------------------------------------------ large

fn sample() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("data/sample/pmc")
}

/// An article of so many bytes: the body of one of the sample over and over, with ids of its own each time.
fn large(bytes: usize) {
    let file = sample().join("PMC99000003.1/PMC99000003.1.xml");
    let article = std::fs::read_to_string(&file).expect("an article of the sample");
    let (before, rest) = article.split_once("<body>").expect("a body");
    let (body, after) = rest.split_once("</body>").expect("the end of the body");
    let folder = tempfile::tempdir().expect("a temporary folder");
    let path = folder.path().join("large.xml");
    let mut file = std::io::BufWriter::new(std::fs::File::create(&path).expect("a file"));
    write!(file, "{before}<body>").expect("a write");
    let mut written = before.len() + after.len();
    let mut number = 0;
    while written + body.len() < bytes {
        number += 1;
        let part =
            body.replace(" id=\"", &format!(" id=\"n{number}.")).replace(" rid=\"F", &format!(" rid=\"n{number}.F"));
        file.write_all(part.as_bytes()).expect("a write");
        written += part.len();
    }
    write!(file, "</body>{after}").expect("a write");
    file.flush().expect("a flush");
    drop(file);
    for _ in 0..3 {
        let mut child = Command::new(std::env::current_exe().expect("this program"));
        let output = child.arg(CHILD).arg(&path).output().expect("a child");
        assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
        println!("large: {}", String::from_utf8_lossy(&output.stdout).trim());
    }
}

fn tell(file: &Path) {
    let bytes = std::fs::read(file).expect("a file");
    let before = high_water("self");
    let start = Instant::now();
    let article = jats::read(&bytes, Limits::default()).expect("an article");
    let time = start.elapsed();
    let peak = high_water("self");
    println!(
        "{:.1} MB with {} paragraphs, {} figures, {} tables, {} references: {:.2} s, {:.0} MB/s; peak {:.0} MB, {:.1} times the file ({:.0} MB before)",
        bytes.len() as f64 / 1e6,
        article.paragraphs.len(),
        article.figures.len(),
        article.tables.len(),
        article.references.len(),
        time.as_secs_f64(),
        bytes.len() as f64 / time.as_secs_f64() / 1e6,
        peak as f64 / 1e6,
        peak as f64 / bytes.len() as f64,
        before as f64 / 1e6,
    );
}

// ----------------------------------------------------------------------------------------------------------- images

fn images() {
    let limits = probe::Limits::default();
    let mut by_format: BTreeMap<&str, Vec<(Vec<u8>, u64)>> = BTreeMap::new();
    for folder in std::fs::read_dir(sample()).expect("the sample") {
        let folder = folder.expect("an entry").path();
        if !folder.is_dir() {
            continue;
        }
        for file in std::fs::read_dir(folder).expect("a package") {
            let bytes = std::fs::read(file.expect("an entry").path()).expect("a file");
            if let Ok(found) = probe(&bytes, &limits) {
                let pixels = u64::from(found.width) * u64::from(found.height);
                by_format.entry(found.format.name()).or_default().push((bytes, pixels));
            }
        }
    }
    for (format, files) in by_format {
        // Few files are gone through often, so that a repetition takes long enough for the clock.
        let rounds = (200 / files.len()).max(1);
        let best = |action: &dyn Fn(&[u8])| {
            let times = (0..REPETITIONS).map(|_| {
                let start = Instant::now();
                (0..rounds).for_each(|_| files.iter().for_each(|(bytes, _)| action(bytes)));
                start.elapsed()
            });
            times.min().expect("a time").as_secs_f64() / (rounds * files.len()) as f64
        };
        let probed = best(&|bytes| drop(black_box(probe(bytes, &limits))));
        let decoded = best(&|bytes| drop(black_box(decode(bytes, &limits))));
        let hashed = best(&|bytes| {
            if let Ok(decoded) = decode(bytes, &limits) {
                black_box(DifferenceHash::of(&decoded.pixels));
            }
        });
        let pixels = files.iter().map(|(_, pixels)| *pixels).sum::<u64>() as f64 / files.len() as f64;
        println!(
            "{format}: {} files of {:.2} megapixels: probed {:.0}/s, decoded {:.0}/s, decoded and hashed {:.0}/s ({:.0} megapixels/s)",
            files.len(),
            pixels / 1e6,
            1.0 / probed,
            1.0 / decoded,
            1.0 / hashed,
            pixels / 1e6 / hashed
        );
    }
}

// ------------------------------------------------------------------------------------------------------------ build

fn generated(n: usize) {
    let folder = tempfile::tempdir().expect("a temporary folder");
    for name in ["pipelines", "sources"] {
        copy_dir(&Path::new(env!("CARGO_MANIFEST_DIR")).join(name), &folder.path().join(name));
    }
    let start = Instant::now();
    let raw = folder.path().join("raw/pmc");
    write_articles(n, &raw);
    println!("{n} articles, {:.0} MB, written in {:.1} s", size(&raw) as f64 / 1e6, start.elapsed().as_secs_f64());
    for jobs in ["1", "2"] {
        let _ = std::fs::remove_dir_all(folder.path().join("data"));
        let (time, peak) = measured(folder.path(), &["build", "clinmm", "--jobs", jobs]);
        println!(
            "build with --jobs {jobs}: {:.1} s, {:.0} articles/s, peak {:.0} MB; work {:.0} MB, media {:.0} MB",
            time.as_secs_f64(),
            n as f64 / time.as_secs_f64(),
            peak as f64 / 1e6,
            size(&folder.path().join("data/work")) as f64 / 1e6,
            size(&folder.path().join("data/media")) as f64 / 1e6
        );
        nodes(folder.path());
    }
    let (time, peak) = measured(folder.path(), &["build", "clinmm"]);
    println!("build with nothing to do: {:.0} ms, peak {:.0} MB", time.as_secs_f64() * 1e3, peak as f64 / 1e6);
    let (time, peak) = measured(folder.path(), &["plan", "clinmm"]);
    println!("plan with nothing to do: {:.0} ms, peak {:.0} MB", time.as_secs_f64() * 1e3, peak as f64 / 1e6);
    let (time, peak) = measured(folder.path(), &["freeze", "clinmm", "--version", "bench", "--allow-quarantine"]);
    let release = folder.path().join("data/release/clinmm-bench");
    println!(
        "freeze: {:.1} s, peak {:.0} MB, release {:.0} MB",
        time.as_secs_f64(),
        peak as f64 / 1e6,
        size(&release) as f64 / 1e6
    );
    let start = Instant::now();
    let status = Command::new(env!("CARGO_BIN_EXE_casemill"))
        .arg("verify")
        .arg(&release)
        .stdout(Stdio::null())
        .status()
        .expect("the binary runs");
    assert!(status.success(), "verify failed");
    println!("verify: {:.1} s", start.elapsed().as_secs_f64());
}

/// Time and records of each node, by the log of the last run.
fn nodes(folder: &Path) {
    let runs = folder.join("data/work/clinmm/runs");
    let logs = std::fs::read_dir(runs).expect("logs of runs").map(|entry| entry.expect("an entry").path());
    let log = std::fs::read_to_string(logs.max().expect("a log")).expect("a log");
    let mut started = None;
    for line in log.lines() {
        let event: Value = serde_json::from_str(line).expect("JSON");
        let time = || event["time"].as_str()?.parse::<jiff::Timestamp>().ok();
        match event["event"].as_str() {
            Some("build_started" | "node_started") => {
                if event["event"] == "node_started"
                    && let (Some(build), Some(now)) = (started.filter(|_| event["node"] == "ingest_jats"), time())
                {
                    println!("  before the first node: {:.2} s", seconds(build, now));
                }
                started = time();
            }
            Some("node_finished") => {
                let (Some(from), Some(to)) = (started, time()) else { continue };
                let counts = &event["counts"]["pmc"];
                let (n_in, kept) = (counts["n_in"].as_f64().unwrap_or(0.0), &counts["kept"]);
                let taken = seconds(from, to);
                println!("  {}: {taken:.2} s, {n_in} in, {kept} kept, {:.0} records/s", event["node"], n_in / taken);
            }
            _ => {}
        }
    }
}

fn seconds(from: jiff::Timestamp, to: jiff::Timestamp) -> f64 {
    to.duration_since(from).as_secs_f64()
}

fn copy_dir(from: &Path, to: &Path) {
    std::fs::create_dir_all(to).expect("a folder");
    for entry in std::fs::read_dir(from).expect("a readable folder") {
        let entry = entry.expect("an entry");
        let target = to.join(entry.file_name());
        if entry.path().is_dir() {
            copy_dir(&entry.path(), &target);
        } else {
            std::fs::copy(entry.path(), target).expect("a copy");
        }
    }
}

fn size(path: &Path) -> u64 {
    let Ok(entries) = std::fs::read_dir(path) else {
        return std::fs::metadata(path).map_or(0, |metadata| metadata.len());
    };
    entries.filter_map(Result::ok).map(|entry| size(&entry.path())).sum()
}

// --------------------------------------------------------------------------------------------------------- articles

/// A package of the sample, from which others are made.
struct Template {
    pmcid: String,
    xml: String,
    files: Vec<(String, Vec<u8>)>,
    metadata: String,
    specialty: Option<String>,
}

fn templates() -> Vec<Template> {
    let selection = std::fs::read_to_string(sample().join("selection.jsonl")).expect("the selection");
    let mut specialties: BTreeMap<String, String> = BTreeMap::new();
    for line in selection.lines() {
        let row: Value = serde_json::from_str(line).expect("JSON");
        if let (Some(pmcid), Some(specialty)) = (row["pmcid"].as_str(), row["specialty"].as_str()) {
            specialties.insert(pmcid.to_owned(), specialty.to_owned());
        }
    }
    let mut found = Vec::new();
    // The two files behind the fortieth are no articles, and of the fifteenth the second version is read.
    for number in 1..=40 {
        let pmcid = format!("PMC990000{number:02}");
        let name = format!("{pmcid}.{}", if number == 15 { 2 } else { 1 });
        let folder = sample().join(&name);
        let mut files = Vec::new();
        for entry in std::fs::read_dir(&folder).expect("a package") {
            let entry = entry.expect("an entry");
            let file = entry.file_name().to_string_lossy().into_owned();
            if !file.ends_with(".xml") {
                files.push((file, std::fs::read(entry.path()).expect("a file")));
            }
        }
        files.sort();
        found.push(Template {
            xml: std::fs::read_to_string(folder.join(format!("{name}.xml"))).expect("an article"),
            metadata: std::fs::read_to_string(sample().join(format!("metadata/{name}.json"))).expect("a record"),
            specialty: specialties.get(&pmcid).cloned(),
            files,
            pmcid,
        });
    }
    found
}

/// Numbers that differ from one call to the next, the same in each run.
struct Draw(u64);

impl Draw {
    fn below(&mut self, limit: u64) -> u64 {
        self.0 ^= self.0 << 13;
        self.0 ^= self.0 >> 7;
        self.0 ^= self.0 << 17;
        self.0 % limit
    }
}

/// Packages in the archive's layout: those of the sample in turn, with ids, authors, measurements and pictures of their own.
fn write_articles(n: usize, raw: &Path) {
    let templates = templates();
    std::fs::create_dir_all(raw.join("metadata")).expect("a folder");
    std::fs::copy(sample().join("source.toml"), raw.join("source.toml")).expect("a copy");
    let mut selection = String::new();
    for number in 0..n {
        let template = &templates[number % templates.len()];
        let mut draw = Draw((number as u64 + 1).wrapping_mul(0x9e37_79b9_7f4a_7c15) | 1);
        let pmcid = format!("PMC97{number:06}");
        let name = format!("{pmcid}.1");
        let folder = raw.join(&name);
        std::fs::create_dir_all(&folder).expect("a folder");
        // Publishers write the digits alone, too.
        let digits = template.pmcid.trim_start_matches("PMC");
        let with_id = |text: &str| {
            let text = text.replace(&format!("{digits}.2"), &format!("97{number:06}.1"));
            text.replace(digits, &format!("97{number:06}"))
        };
        let xml = vary(&with_id(&template.xml), number, &mut draw);
        std::fs::write(folder.join(format!("{name}.xml")), xml).expect("a file");
        let metadata = with_id(&template.metadata).replace("\"version\": 2", "\"version\": 1");
        std::fs::write(raw.join(format!("metadata/{name}.json")), metadata).expect("a file");
        for (file, bytes) in &template.files {
            std::fs::write(folder.join(file), repaint(bytes, &mut draw)).expect("a file");
        }
        let row = serde_json::json!({"pmcid": pmcid, "version": 1, "specialty": template.specialty});
        selection += &format!("{row}\n");
    }
    std::fs::write(raw.join("selection.jsonl"), selection).expect("a file");
}

/// The same report with other authors, another DOI and other last digits in what was measured. Ages, labels of figures and
/// markers of citations stay, since others refer to them.
fn vary(xml: &str, number: usize, draw: &mut Draw) -> String {
    const SYLLABLES: [&str; 8] = ["bar", "dol", "fen", "gri", "lan", "mor", "tes", "vik"];
    let mut varied = String::with_capacity(xml.len() + 64);
    let mut rest = xml;
    while let Some((before, after)) = rest.split_once("<surname>") {
        let (_, behind) = after.split_once('<').expect("an end tag");
        let name: String = (0..3).map(|_| SYLLABLES[draw.below(8) as usize]).collect();
        varied += &format!("{before}<surname>{name}<");
        rest = behind;
    }
    varied += rest;
    let varied = varied.replace("10.5555/sample.2026.", &format!("10.5555/generated.{number}."));
    let Some((front, body)) = varied.split_once("<body>") else { return varied };
    let mut changed = format!("{front}<body>").into_bytes();
    let bytes = body.as_bytes();
    let mut is_tag = false;
    for (at, byte) in bytes.iter().enumerate() {
        is_tag = match byte {
            b'<' => true,
            b'>' => false,
            _ => is_tag,
        };
        // The digits behind a decimal point.
        let is_decimal = byte.is_ascii_digit()
            && at > 1
            && bytes[at - 1] == b'.'
            && bytes[at - 2].is_ascii_digit()
            && bytes.get(at + 1).is_none_or(|next| !next.is_ascii_digit());
        changed.push(if is_decimal && !is_tag { b'0' + draw.below(10) as u8 } else { *byte });
    }
    String::from_utf8(changed).expect("digits for digits")
}

/// A picture of its own: some steps of a JPEG's quantisation are others. Other formats stay as they are.
fn repaint(bytes: &[u8], draw: &mut Draw) -> Vec<u8> {
    let mut changed = bytes.to_vec();
    // FF DB, length 67 or more, a table of 8-bit steps, then 64 of them.
    let table = bytes.windows(5).position(|window| window[..2] == [0xff, 0xdb] && window[4] >> 4 == 0);
    if let Some(at) = table
        && bytes.starts_with(&[0xff, 0xd8])
    {
        for step in changed.iter_mut().skip(at + 5).take(8) {
            *step = step.saturating_add(draw.below(4) as u8);
        }
        for step in changed.iter_mut().skip(at + 5 + 40).take(24) {
            *step = step.saturating_add(draw.below(16) as u8);
        }
    }
    changed
}
