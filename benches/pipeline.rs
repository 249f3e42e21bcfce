//! Numbers of the engine (SPEC section 9): `make bench`, or `cargo bench -- noop 10000 100000`.
//!
//! * `noop`: `casemill build` with nothing to do, 10 nodes, 1 000 raw files: best and median of 20 runs, whole process.
//! * a number: that many generated questions through the medrounds pipeline: time, peak memory, bytes on disk, each
//!   also per record.

use std::collections::BTreeMap;
use std::io::Write;
use std::path::Path;
use std::process::{Command, Stdio};
use std::time::{Duration, Instant};

fn main() {
    let arguments: Vec<String> = std::env::args().skip(1).filter(|argument| !argument.starts_with("--")).collect();
    let default = ["noop", "10000", "100000", "1000000"].map(str::to_owned);
    let wanted = if arguments.is_empty() { default.to_vec() } else { arguments };
    println!("{} cores", std::thread::available_parallelism().map_or(1, std::num::NonZero::get));
    for what in wanted {
        match what.parse::<u64>() {
            Ok(n) => generated(n),
            Err(_) => noop(),
        }
    }
}

/// A project folder with the repository's pipelines and sources.
fn project() -> tempfile::TempDir {
    let folder = tempfile::tempdir().expect("a temporary folder");
    for name in ["pipelines", "sources"] {
        copy_dir(&Path::new(env!("CARGO_MANIFEST_DIR")).join(name), &folder.path().join(name));
    }
    folder
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

fn command(folder: &Path, arguments: &[&str]) -> Command {
    let mut command = Command::new(env!("CARGO_BIN_EXE_casemill"));
    command.current_dir(folder).args(arguments).args(["--raw", "raw", "--data", "data"]);
    command.stdout(Stdio::null()).stderr(Stdio::null());
    command
}

/// Runs casemill; gives its wall time.
fn timed(folder: &Path, arguments: &[&str]) -> Duration {
    let start = Instant::now();
    let status = command(folder, arguments).status().expect("the binary runs");
    assert!(matches!(status.code(), Some(0 | 4)), "casemill {arguments:?} failed");
    start.elapsed()
}

/// Runs casemill; gives its wall time and peak resident memory in bytes.
fn measured(folder: &Path, arguments: &[&str]) -> (Duration, u64) {
    let start = Instant::now();
    let mut child = command(folder, arguments).spawn().expect("the binary runs");
    let mut peak = 0;
    let status = loop {
        peak = peak.max(high_water(child.id()));
        if let Some(status) = child.try_wait().expect("a child") {
            break status;
        }
        std::thread::sleep(Duration::from_millis(20));
    };
    let time = start.elapsed();
    assert!(matches!(status.code(), Some(0 | 4)), "casemill {arguments:?} failed");
    (time, peak)
}

/// `VmHWM` of a process, in bytes.
fn high_water(process: u32) -> u64 {
    let status = std::fs::read_to_string(format!("/proc/{process}/status")).unwrap_or_default();
    let line = status.lines().find_map(|line| line.strip_prefix("VmHWM:"));
    line.and_then(|line| line.trim().trim_end_matches(" kB").parse::<u64>().ok()).unwrap_or(0) * 1024
}

fn noop() {
    let folder = project();
    let raw = folder.path().join("raw/medqa");
    std::fs::create_dir_all(&raw).expect("a folder");
    for n in 0..1000 {
        std::fs::write(raw.join(format!("{n:04}.jsonl")), line(n) + "\n").expect("a file");
    }
    let mut pipeline = String::from(
        "name = \"ten\"\nsummary = \"ten nodes\"\ncases = \"n9\"\n[sources.medqa]\n[nodes.n0]\nstage = \"ingest_questions\"\nsource = \"medqa\"\n\
         [nodes.n1]\nstage = \"normalize_answer\"\ninput = \"n0\"\n",
    );
    for n in 2..9 {
        let stage = if n % 2 == 0 { "dedup_exact" } else { "filter_vignette" };
        pipeline += &format!("[nodes.n{n}]\nstage = \"{stage}\"\ninput = \"n{}\"\n", n - 1);
        if stage == "filter_vignette" {
            pipeline += "resources.rules = \"rules/vignette.toml\"\n";
        }
    }
    pipeline += "[nodes.n9]\nstage = \"extract_slots\"\ninput = \"n8\"\nresources.lexicon = \"lexicon/slots.toml\"\n";
    std::fs::write(folder.path().join("pipelines/ten.toml"), pipeline).expect("a file");
    timed(folder.path(), &["build", "ten"]);
    let mut times: Vec<Duration> = (0..20).map(|_| timed(folder.path(), &["build", "ten"])).collect();
    times.sort();
    println!(
        "noop: 10 nodes, 1 000 raw files, nothing to do: best {:.1} ms, median {:.1} ms (limit 30 ms)",
        times[0].as_secs_f64() * 1e3,
        times[10].as_secs_f64() * 1e3
    );
}

fn generated(n: u64) {
    let folder = project();
    let raw = folder.path().join("raw/medqa");
    std::fs::create_dir_all(&raw).expect("a folder");
    let mut file = std::io::BufWriter::new(std::fs::File::create(raw.join("generated.jsonl")).expect("a file"));
    let mut raw_bytes = 0;
    for number in 0..n {
        let text = line(number) + "\n";
        raw_bytes += text.len() as u64;
        file.write_all(text.as_bytes()).expect("a write");
    }
    file.flush().expect("a flush");
    drop(file);
    let (time, peak) = measured(folder.path(), &["build", "medrounds"]);
    let work = size(&folder.path().join("data/work"));
    let (freeze, freeze_peak) = measured(folder.path(), &["freeze", "medrounds", "--version", "bench"]);
    let release = size(&folder.path().join("data/release"));
    let per = |bytes: u64| bytes as f64 / n as f64;
    println!(
        "{n} questions ({:.0} raw bytes each): build {:.2} s ({:.1} µs a record, {:.0} records/s), peak {:.0} MB; \
         work {:.0} bytes a record; freeze {:.2} s, peak {:.0} MB, release {:.0} bytes a record",
        per(raw_bytes),
        time.as_secs_f64(),
        time.as_secs_f64() * 1e6 / n as f64,
        n as f64 / time.as_secs_f64(),
        peak as f64 / 1e6,
        per(work),
        freeze.as_secs_f64(),
        freeze_peak as f64 / 1e6,
        per(release)
    );
}

fn size(path: &Path) -> u64 {
    let Ok(entries) = std::fs::read_dir(path) else {
        return std::fs::metadata(path).map_or(0, |metadata| metadata.len());
    };
    entries.filter_map(Result::ok).map(|entry| size(&entry.path())).sum()
}

/// One of 20 000 made-up words.
fn word(n: u64) -> String {
    const SYLLABLES: [&str; 27] = [
        "ba", "ce", "di", "fo", "gu", "ha", "je", "ki", "lo", "mu", "na", "pe", "qui", "ro", "su", "ta", "ve", "wi",
        "xo", "yu", "za", "ble", "cri", "dro", "flu", "gra", "ste",
    ];
    [n / 729, n / 27 % 27, n % 27].map(|position| SYLLABLES[position as usize % 27]).concat()
}

/// A generated question of MedQA's form and length. A third of its words are drawn at random: texts of one template
/// alone would be near-duplicates by the thousand, which no exam has.
fn line(n: u64) -> String {
    const COMPLAINTS: [&str; 7] = [
        "fever and cough",
        "chest pain",
        "severe headache",
        "blurred vision",
        "joint swelling",
        "a rash",
        "abdominal pain",
    ];
    const DISEASES: [&str; 7] =
        ["Pneumonia", "Pericarditis", "Migraine", "Optic neuritis", "Gout", "Erysipelas", "Appendicitis"];
    // A small generator, so that texts differ in more than one number.
    let mut state = n.wrapping_mul(0x9e37_79b9_7f4a_7c15) | 1;
    let mut draw = |limit: u64| {
        state ^= state << 13;
        state ^= state >> 7;
        state ^= state << 17;
        state % limit
    };
    let history: Vec<String> = (0..40).map(|_| word(draw(20_000))).collect();
    let history = history.join(" ");
    let mut pick = |list: &[&'static str; 7]| list[draw(7) as usize];
    let (complaint, second) = (pick(&COMPLAINTS), pick(&COMPLAINTS));
    let first = DISEASES.iter().position(|disease| *disease == pick(&DISEASES)).unwrap_or(0);
    let stem = format!(
        "A {}-year-old {} comes to the physician because of a {}-day history of {complaint}. He has also noticed {second} since record {n} was opened. \
         He tells: {history}. He smoked one pack of cigarettes daily for {} years. \
         His temperature is 3{}.{}°C (9{}.{}°F), pulse is {}/min, respirations are {}/min, and blood pressure is {}/{} mm Hg. \
         Examination shows tenderness on palpation. There is no lymphadenopathy. Laboratory studies show a hemoglobin concentration of {}.{} g/dL, \
         a leukocyte count of {}/mm3, and a serum creatinine concentration of {}.{} mg/dL. Which of the following is the most likely diagnosis?",
        20 + draw(60),
        if draw(2) == 0 { "man" } else { "woman" },
        2 + draw(20),
        draw(40),
        6 + draw(4),
        draw(10),
        7 + draw(3),
        draw(10),
        60 + draw(60),
        12 + draw(20),
        100 + draw(80),
        60 + draw(40),
        7 + draw(10),
        draw(10),
        4000 + draw(20000),
        draw(3),
        draw(10),
    );
    let options: BTreeMap<&str, &str> =
        ["A", "B", "C", "D"].into_iter().zip((first..).map(|position| DISEASES[position % 7])).collect();
    serde_json::json!({"question": stem, "answer": options["A"], "options": options, "meta_info": "step1", "answer_idx": "A"}).to_string()
}
