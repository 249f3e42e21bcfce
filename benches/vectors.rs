//! Patients: DDXPlus rows beside pandas, peak memory of a large release, pages of AJCR beside BeautifulSoup.
//!
//! `cargo bench --bench vectors -- [rows N] [memory N] [pages N] [write N FILE]`; without arguments `rows 100000 pages 200`.
//!
//! * `rows N`: N generated rows of the tables in `CASEMILL_DDXPLUS_TABLES` (a folder with `release_evidences.json` and
//!   `release_conditions.json`; the sample's without it): rows a second to Parquet with two workers, and parsed and looked up
//!   without records. `CASEMILL_PEERS_PYTHON` names a Python with pandas, which then reads the same file with
//!   `ast.literal_eval`, in turn with ours.
//! * `memory N`: the node `ingest_ddxplus` over N rows in a process of its own, with its peak.
//! * `pages N`: the pages of `data/sample/ajcr`, N times, to articles in memory; the Python reads the same with BeautifulSoup and
//!   lxml.
//! * `write N FILE`: generated rows, and nothing is run.

mod common;

use casemill::record::Hash;
use casemill::record::raw::RawFile;
use casemill::source::ajcr::{PageLimits, PageRules, page};
use casemill::source::ddxplus::codes::Codes;
use casemill::source::ddxplus::french::FrenchNames;
use casemill::source::ddxplus::rows::PatientFile;
use casemill::source::ddxplus::wording::WordingRules;
use casemill::source::ddxplus::{ReleaseFiles, Resources, RowLimits};
use common::{Peers, measured};
use serde_json::Value;
use std::collections::BTreeMap;
use std::hint::black_box;
use std::io::{BufWriter, Write};
use std::path::{Path, PathBuf};
use std::sync::OnceLock;
use std::time::{Duration, Instant};

fn main() {
    let mut arguments: Vec<String> = std::env::args().skip(1).filter(|argument| !argument.starts_with("--")).collect();
    if arguments.is_empty() {
        arguments = ["rows", "100000", "pages", "200"].map(str::to_owned).to_vec();
    }
    println!("{} cores", std::thread::available_parallelism().map_or(1, std::num::NonZero::get));
    let number = |position: usize| -> usize {
        let text = arguments.get(position).expect("a number behind it");
        text.parse().unwrap_or_else(|_| panic!("`{text}` is not a number"))
    };
    let mut at = 0;
    while let Some(what) = arguments.get(at) {
        match what.as_str() {
            "rows" => rows(number(at + 1)),
            "memory" => memory(number(at + 1)),
            "pages" => pages(number(at + 1)),
            "write" => {
                let file = Path::new(arguments.get(at + 2).expect("a file"));
                Tables::read().write(number(at + 1), file);
                at += 1;
            }
            other => panic!("`{other}` is no part of this bench"),
        }
        at += 2;
    }
}

// ------------------------------------------------------------------------------------------------- generated patients

/// What rows are generated from.
struct Tables {
    folder: PathBuf,
    conditions: Vec<Condition>,
}

struct Condition {
    name: String,
    evidences: Vec<Evidence>,
}

#[derive(Clone)]
struct Evidence {
    code: String,
    parent: String,
    kind: String,
    values: Vec<String>,
}

impl Tables {
    fn read() -> Self {
        let sample = Path::new(env!("CARGO_MANIFEST_DIR")).join("data/sample/ddxplus/en");
        let folder = std::env::var_os("CASEMILL_DDXPLUS_TABLES").map_or(sample, PathBuf::from);
        let table = |name: &str| -> Value {
            let text = std::fs::read(folder.join(name)).unwrap_or_else(|error| panic!("{}: {error}", folder.display()));
            serde_json::from_slice(&text).expect("JSON")
        };
        let (evidences, conditions) = (table("release_evidences.json"), table("release_conditions.json"));
        let evidence = |code: &str| {
            let entry = &evidences[code];
            let text = |value: &Value| value.as_str().map_or_else(|| value.to_string(), str::to_owned);
            Evidence {
                code: code.to_owned(),
                parent: text(&entry["code_question"]),
                kind: text(&entry["data_type"]),
                values: entry["possible-values"].as_array().into_iter().flatten().map(text).collect(),
            }
        };
        let codes = |entry: &Value, field: &str| -> Vec<String> {
            entry[field].as_object().expect("an object").keys().cloned().collect()
        };
        let condition = |(name, entry): (&String, &Value)| Condition {
            name: name.clone(),
            evidences: [codes(entry, "symptoms"), codes(entry, "antecedents")]
                .concat()
                .iter()
                .map(|code| evidence(code))
                .collect(),
        };
        let conditions = conditions.as_object().expect("an object").iter().map(condition).collect();
        Self { folder, conditions }
    }

    /// Rows as the published files have them: Python literals in CSV.
    fn write(&self, n: usize, file: &Path) {
        let mut random = fastrand::Rng::with_seed(7);
        let mut out = BufWriter::with_capacity(1 << 20, std::fs::File::create(file).expect("a new file"));
        let header = "AGE,DIFFERENTIAL_DIAGNOSIS,SEX,PATHOLOGY,EVIDENCES,INITIAL_EVIDENCE";
        writeln!(out, "{header}").expect("written");
        for _ in 0..n {
            let condition = &self.conditions[random.usize(..self.conditions.len())];
            let (evidences, initial) = draw(condition, &mut random);
            let mut names = vec![condition.name.as_str()];
            for _ in 0..random.usize(2..9) {
                let other = self.conditions[random.usize(..self.conditions.len())].name.as_str();
                if !names.contains(&other) {
                    names.push(other);
                }
            }
            let mut weights: Vec<f64> = names.iter().map(|_| random.f64() + 0.01).collect();
            weights.sort_by(|one, other| other.total_cmp(one));
            let sum: f64 = weights.iter().sum();
            let differential: Vec<String> = names
                .iter()
                .zip(&weights)
                .map(|(name, weight)| format!("[{}, {}]", literal(name), weight / sum))
                .collect();
            let quoted = |cells: &[String]| format!("\"[{}]\"", cells.join(", ").replace('"', "\"\""));
            let listed: Vec<String> = evidences.iter().map(|token| literal(token)).collect();
            let sex = if random.bool() { "F" } else { "M" };
            let name =
                if condition.name.contains(',') { format!("\"{}\"", condition.name) } else { condition.name.clone() };
            let (age, differential, listed) = (random.u32(0..96), quoted(&differential), quoted(&listed));
            writeln!(out, "{age},{differential},{sex},{name},{listed},{initial}").expect("written");
        }
        out.flush().expect("written");
    }
}

/// A text as Python writes it.
fn literal(text: &str) -> String {
    if text.contains('\'') { format!("\"{text}\"") } else { format!("'{text}'") }
}

/// Tokens of a patient with a condition, and one of them to begin with.
fn draw(condition: &Condition, random: &mut fastrand::Rng) -> (Vec<String>, String) {
    let mut tokens = Vec::new();
    let mut present: Vec<&str> = Vec::new();
    for evidence in condition.evidences.iter().filter(|evidence| evidence.kind == "B") {
        if random.f64() < 0.6 {
            present.push(&evidence.code);
            tokens.push(evidence.code.clone());
        }
    }
    if present.is_empty() {
        let first = condition.evidences.iter().find(|evidence| evidence.kind == "B").expect("a binary evidence");
        present.push(&first.code);
        tokens.push(first.code.clone());
    }
    for evidence in condition.evidences.iter().filter(|evidence| evidence.kind != "B") {
        if evidence.parent != evidence.code && !present.contains(&evidence.parent.as_str()) {
            continue;
        }
        let n = if evidence.kind == "M" { random.usize(1..4) } else { 1 };
        for _ in 0..n {
            let token = format!("{}_@_{}", evidence.code, evidence.values[random.usize(..evidence.values.len())]);
            if !tokens.contains(&token) {
                tokens.push(token);
            }
        }
    }
    let initial = present[random.usize(..present.len())].to_owned();
    (tokens, initial)
}

// -------------------------------------------------------------------------------------------------------------- rows

/// As people read these files: pandas, `ast.literal_eval`, look-ups in the two tables. Writing Parquet is not in it.
const PANDAS: &str = "
import sys, time, ast, json
import pandas as pd
rows, evidences, conditions = sys.argv[1:4]
evidences, conditions = json.load(open(evidences)), json.load(open(conditions))
for line in sys.stdin:
    start = time.perf_counter()
    out = []
    for row in pd.read_csv(rows).itertuples(index=False):
        found = []
        for token in ast.literal_eval(row.EVIDENCES):
            code, _, value = token.partition('_@_')
            entry = evidences.get(code, {})
            meaning = (entry.get('value_meaning') or {}).get(value, {}).get('en') if value else None
            found.append((code, entry.get('question_en'), meaning, entry.get('is_antecedent')))
        ranked = [(name, float(p), conditions.get(name, {}).get('icd10-id')) for name, p in ast.literal_eval(row.DIFFERENTIAL_DIAGNOSIS)]
        out.append({'age': row.AGE, 'sex': row.SEX, 'pathology': row.PATHOLOGY, 'evidences': found, 'differential': ranked, 'initial': row.INITIAL_EVIDENCE})
    print(time.perf_counter() - start, flush=True)
";

/// A project in a folder of its own, with generated rows as its only raw file.
fn project(n: usize) -> tempfile::TempDir {
    let folder = tempfile::tempdir().expect("a temporary folder");
    let root = Path::new(env!("CARGO_MANIFEST_DIR"));
    for name in ["pipelines", "sources"] {
        std::os::unix::fs::symlink(root.join(name), folder.path().join(name)).expect("a link");
    }
    let raw = folder.path().join("raw/ddxplus");
    std::fs::create_dir_all(&raw).expect("a folder");
    let tables = Tables::read();
    for name in TABLES {
        std::fs::copy(tables.folder.join(name), raw.join(name)).expect("a copy");
    }
    tables.write(n, &raw.join("release_train_patients.csv"));
    folder
}

const TABLES: [&str; 2] = ["release_evidences.json", "release_conditions.json"];

fn rows(n: usize) {
    let folder = project(n);
    let raw = folder.path().join("raw/ddxplus");
    let file = raw.join("release_train_patients.csv");
    let bytes = std::fs::metadata(&file).expect("a file").len();
    println!("rows: {n} rows of {:.1} MB", bytes as f64 / 1e6);
    let mut peers = Peers::start(PANDAS, &[file.clone(), raw.join(TABLES[0]), raw.join(TABLES[1])]);
    let mut best: BTreeMap<&str, f64> = BTreeMap::new();
    let mut take = |name: &'static str, seconds: f64| {
        let least = best.get(name).copied().unwrap_or(f64::INFINITY).min(seconds);
        best.insert(name, least);
    };
    for _ in 0..REPETITIONS {
        // Everything is made anew but the hash of the raw file.
        let _ = std::fs::remove_dir_all(folder.path().join("data/work"));
        let build = ["build", "mtdiag", "--to", "ingest_ddxplus", "--jobs", "2"];
        take("to Parquet, two workers", measured(folder.path(), &build).0.as_secs_f64());
        take("parsed and looked up, one worker", look_up(&file, &raw).as_secs_f64());
        if let Some(peers) = &mut peers {
            take(PEER, peers.run("pandas").as_secs_f64());
        }
    }
    Peers::end(peers);
    for (name, seconds) in &best {
        let ratio = best.get(PEER).map_or_else(String::new, |peer| format!(", {:.1} times pandas", peer / seconds));
        println!("  {name}: {:.0} rows/s{ratio}", n as f64 / seconds);
    }
}

const PEER: &str = "pandas and literal_eval, no Parquet";
/// The best of each counts.
const REPETITIONS: usize = 3;

fn memory(n: usize) {
    let folder = project(n);
    let (time, peak) = measured(
        folder.path(),
        &["build", "mtdiag", "--to", "dedup_splits", "--jobs", "2", "--set", "dedup_splits.within_split=keep"],
    );
    println!(
        "memory: {n} rows through ingest_ddxplus and dedup_splits: {:.1} s, {:.0} rows/s, peak {:.0} MB",
        time.as_secs_f64(),
        n as f64 / time.as_secs_f64(),
        peak as f64 / 1e6
    );
}

// ------------------------------------------------------------------------------------------------------------- pages

/// The same extraction with BeautifulSoup on lxml's parser: metadata, abstract, sections with their paragraphs, figures, tables with
/// spans as rows and Markdown, references.
const SOUP: &str = "
import sys, time
from bs4 import BeautifulSoup
pages = [open(name, 'rb').read() for name in sys.argv[1:]]
def text(node): return ' '.join(node.get_text(' ').split())
def table(node):
    grid, held = [], {}
    for r, row in enumerate(node.find_all('tr')):
        cells, c = [], 0
        for cell in row.find_all(['td', 'th']):
            while (r, c) in held:
                cells.append(held[(r, c)]); c += 1
            words = text(cell)
            for dc in range(int(cell.get('colspan') or 1)):
                for dr in range(1, int(cell.get('rowspan') or 1)): held[(r + dr, c)] = words
                cells.append(words); c += 1
        grid.append(cells)
    return grid, '\\n'.join('| ' + ' | '.join(row) + ' |' for row in grid)
def read(page):
    soup = BeautifulSoup(page, 'lxml')
    meta = {}
    for tag in soup.find_all('meta'):
        if tag.get('name'): meta.setdefault(tag['name'], []).append(tag.get('content'))
    article = {'meta': meta, 'abstract': [text(p) for p in soup.select('#abstract p')], 'sections': [], 'figures': [], 'tables': []}
    body = soup.select_one('#fulltext')
    path = []
    for node in body.find_all(['h2', 'h3', 'h4', 'p', 'li'], recursive=True) if body else []:
        if node.name[0] == 'h':
            path = path[:int(node.name[1]) - 2] + [text(node)]
        elif node.find_parent(class_=['figure', 'table']) is None:
            links = [a.get('href') for a in node.find_all('a')]
            article['sections'].append((list(path), text(node), links))
    for node in soup.select('.figure'):
        image = node.find('img')
        article['figures'].append((text(node), image.get('src') if image else None))
    for node in soup.select('div.table'):
        grid = node.find('table')
        article['tables'].append((text(node.find(class_='caption')) if node.find(class_='caption') else '', table(grid) if grid else None))
    article['references'] = [text(item) for item in soup.select('#references li')]
    return article
for line in sys.stdin:
    start = time.perf_counter()
    for page in pages: read(page)
    print(time.perf_counter() - start, flush=True)
";

fn pages(n: usize) {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("data/sample/ajcr");
    let entries = std::fs::read_dir(&folder).expect("the sample").map(|entry| entry.expect("an entry").path());
    let mut files: Vec<PathBuf> =
        entries.filter(|path| path.extension().is_some_and(|extension| extension == "html")).collect();
    files.sort();
    let pages: Vec<Vec<u8>> = files.iter().map(|file| std::fs::read(file).expect("a page")).collect();
    let bytes: usize = pages.iter().map(Vec::len).sum();
    let mut peers = Peers::start(SOUP, &files);
    let (mut own, mut soup) = (f64::INFINITY, f64::INFINITY);
    for _ in 0..n.div_ceil(pages.len()) {
        let start = Instant::now();
        for page in &pages {
            let _ = black_box(read_page(page));
        }
        own = own.min(start.elapsed().as_secs_f64());
        if let Some(peers) = &mut peers {
            soup = soup.min(peers.run("soup").as_secs_f64());
        }
    }
    Peers::end(peers);
    let rate = |seconds: f64| pages.len() as f64 / seconds;
    println!("pages: {} of {:.0} kB in the middle", pages.len(), bytes as f64 / pages.len() as f64 / 1e3);
    println!("  casemill: {:.0} pages/s, one core", rate(own));
    if soup.is_finite() {
        println!("  BeautifulSoup and lxml: {:.0} pages/s; casemill is {:.1} times as fast", rate(soup), soup / own);
    }
}

fn read_page(page: &[u8]) -> bool {
    static RULES: OnceLock<PageRules> = OnceLock::new();
    let rules = RULES.get_or_init(|| {
        let text = std::fs::read_to_string(Path::new(env!("CARGO_MANIFEST_DIR")).join("sources/ajcr.toml"));
        let source: toml::Table = text.expect("the source").parse().expect("TOML");
        PageRules::from_options(source["ajcr"].as_table().expect("options")).expect("rules")
    });
    black_box(page::read(page, rules, PageLimits::default())).is_ok()
}

/// Parses all rows and looks every token up, in this thread; the tables are read before.
fn look_up(file: &Path, folder: &Path) -> Duration {
    let lexicon = |name: &str| {
        let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("pipelines/lexicon").join(name);
        std::fs::read_to_string(path).expect("a lexicon")
    };
    let resources = Resources {
        wording: WordingRules::parse("wording", &lexicon("ddxplus.toml")).expect("wording"),
        codes: Codes::parse("codes", &lexicon("ddxplus_icd10.toml")).expect("codes"),
        french: FrenchNames::parse("french", &lexicon("ddxplus_french.toml")).expect("names"),
    };
    let raw = |path: PathBuf| RawFile {
        path: path.to_string_lossy().into_owned(),
        sha256: Hash::of(b""),
        bytes: 0,
        readable: path,
    };
    let (evidences, conditions, patients) =
        (raw(folder.join(TABLES[0])), raw(folder.join(TABLES[1])), raw(file.to_owned()));
    let files = ReleaseFiles {
        folder: String::new(),
        evidences: &evidences,
        conditions: &conditions,
        patients: vec![&patients],
    };
    let limits = RowLimits::default();
    let release = files.load(&resources, limits).expect("a release");
    let start = Instant::now();
    let mut rows = PatientFile::open(&patients, None, limits.max_row_bytes).expect("rows");
    let form = rows.form();
    let mut n_found = 0u64;
    while let Some((_, line)) = rows.next_row(&patients).expect("a row") {
        let row = form.row(&line, limits.max_row_bytes).expect("fields");
        n_found += u64::from(black_box(release.look_up(&row)).is_ok());
    }
    assert!(n_found > 0);
    start.elapsed()
}
