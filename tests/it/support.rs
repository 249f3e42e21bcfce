//! A scratch project and the `casemill` binary run in it.

#![allow(dead_code, reason = "each module uses its part")]

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use std::process::Command;

/// The repository.
pub fn repository() -> &'static Path {
    Path::new(env!("CARGO_MANIFEST_DIR"))
}

/// A folder with copies of `pipelines/` and `sources/` (with the tests' own, fixed `medrounds.toml`), an empty `raw/` and a `data/` to be.
pub struct Scratch {
    folder: tempfile::TempDir,
    environment: BTreeMap<String, String>,
}

/// What a run of the binary gave.
#[derive(Debug)]
pub struct Run {
    /// `None` when a signal ended it.
    pub code: Option<i32>,
    pub stdout: String,
    pub stderr: String,
}

impl Scratch {
    /// No raw files.
    pub fn empty() -> Self {
        Self::empty_in(&std::env::temp_dir())
    }

    /// The same below a folder of choice.
    pub fn empty_in(parent: &Path) -> Self {
        let folder = tempfile::tempdir_in(parent).expect("a temporary folder");
        for name in ["pipelines", "sources"] {
            copy_dir(&repository().join(name), &folder.path().join(name));
        }
        std::fs::copy(repository().join("tests/it/medrounds.toml"), folder.path().join("pipelines/medrounds.toml"))
            .expect("the tests' pipeline");
        std::fs::create_dir(folder.path().join("raw")).expect("a raw folder");
        Self { folder, environment: BTreeMap::new() }
    }

    /// The pipelines as they are shipped; no raw files.
    pub fn shipped_without_raw() -> Self {
        let scratch = Self::empty();
        std::fs::copy(repository().join("pipelines/medrounds.toml"), scratch.path("pipelines/medrounds.toml"))
            .expect("the shipped pipeline");
        scratch
    }

    /// Makes every model of the pipeline that is not named a `rules` one, so that its node asks nothing.
    pub fn only_models(&self, names: &[&str]) {
        let mut text = String::new();
        let mut is_kept = true;
        for line in self.read("pipelines/medrounds.toml").lines() {
            if let Some(name) = line.strip_prefix("[models.") {
                is_kept = names.contains(&name.trim_end_matches(']'));
            } else if line.starts_with('[') {
                is_kept = true;
            }
            text += if line.starts_with("provider =") && !is_kept { "provider = \"rules\"" } else { line };
            text.push('\n');
        }
        self.write("pipelines/medrounds.toml", text);
    }

    /// The pipelines as they are shipped, and all of `data/sample`.
    pub fn shipped() -> Self {
        let scratch = Self::shipped_without_raw();
        copy_dir(&repository().join("data/sample"), &scratch.path("raw"));
        scratch
    }

    /// The raw files of `data/sample`.
    pub fn with_sample() -> Self {
        let scratch = Self::empty();
        copy_dir(&repository().join("data/sample/medqa"), &scratch.path("raw/medqa"));
        scratch
    }

    /// `n` lines of [`medqa_line`] in `raw/medqa/test.jsonl`, cut into shards of so many records.
    pub fn with_lines(n: u64, shard_records: u64) -> Self {
        let scratch = Self::empty();
        scratch.write("raw/medqa/test.jsonl", medqa_lines(n));
        scratch.set_shard_records(shard_records);
        scratch
    }

    pub fn set_shard_records(&self, records: u64) {
        let text = self.read("pipelines/medrounds.toml");
        let before = text.split("\n[shards]\n").next().expect("a part");
        self.write("pipelines/medrounds.toml", format!("{before}\n[shards]\nrecords = {records}\n"));
    }

    pub fn path(&self, below: &str) -> PathBuf {
        self.folder.path().join(below)
    }

    pub fn read(&self, below: &str) -> String {
        std::fs::read_to_string(self.path(below)).unwrap_or_else(|error| panic!("{below}: {error}"))
    }

    pub fn write(&self, below: &str, bytes: impl AsRef<[u8]>) {
        let path = self.path(below);
        std::fs::create_dir_all(path.parent().expect("a parent")).expect("its folder");
        std::fs::write(&path, bytes).unwrap_or_else(|error| panic!("{below}: {error}"));
    }

    /// Replaces text in a file; it must be there.
    pub fn edit(&self, below: &str, from: &str, to: &str) {
        let text = self.read(below);
        assert!(text.contains(from), "{below} does not hold {from:?}");
        self.write(below, text.replace(from, to));
    }

    /// Sets a variable for all later runs.
    pub fn set_env(&mut self, name: &str, value: &str) {
        self.environment.insert(name.to_owned(), value.to_owned());
    }

    /// The command with this project's folders; for tests that need more than [`Self::run`].
    pub fn command(&self, arguments: &[&str]) -> Command {
        let mut command = Command::new(env!("CARGO_BIN_EXE_casemill"));
        command.current_dir(self.folder.path()).args(arguments).args(["--raw", "raw", "--data", "data"]);
        command.envs(&self.environment);
        command
    }

    pub fn run(&self, arguments: &[&str]) -> Run {
        let output = self.command(arguments).output().expect("the binary runs");
        Run {
            code: output.status.code(),
            stdout: String::from_utf8(output.stdout).expect("UTF-8 on stdout"),
            stderr: String::from_utf8(output.stderr).expect("UTF-8 on stderr"),
        }
    }

    /// Runs and asserts the exit code.
    pub fn run_expecting(&self, code: i32, arguments: &[&str]) -> Run {
        let run = self.run(arguments);
        assert_eq!(run.code, Some(code), "casemill {}\n{}{}", arguments.join(" "), run.stdout, run.stderr);
        run
    }

    /// The JSON document a run printed.
    pub fn json(&self, arguments: &[&str]) -> serde_json::Value {
        let run = self.run(&[arguments, &["--json"]].concat());
        serde_json::from_str(&run.stdout)
            .unwrap_or_else(|error| panic!("{arguments:?}: {error}\n{}{}", run.stdout, run.stderr))
    }

    /// State of every node by `plan`, as `node state: why`.
    pub fn plan(&self, arguments: &[&str]) -> Vec<String> {
        let document = self.json(&[&["plan", "medrounds"], arguments].concat());
        let nodes = document["nodes"].as_array().expect("nodes");
        nodes
            .iter()
            .map(|node| {
                let why: Vec<&str> =
                    node["why"].as_array().expect("why").iter().filter_map(|why| why.as_str()).collect();
                let text = format!("{} {}", node["node"].as_str().unwrap_or(""), node["state"].as_str().unwrap_or(""));
                if why.is_empty() { text } else { format!("{text}: {}", why.join("; ")) }
            })
            .collect()
    }

    /// Builds and freezes; gives the text of SHA256SUMS.
    pub fn release_sums(&self, version: &str) -> String {
        let build = self.run(&["build", "medrounds"]);
        assert!(matches!(build.code, Some(0 | 4)), "{}{}", build.stdout, build.stderr);
        self.run_expecting(0, &["freeze", "medrounds", "--version", version, "--allow-quarantine"]);
        self.read(&format!("data/release/medrounds-{version}/SHA256SUMS"))
    }
}

pub fn copy_dir(from: &Path, to: &Path) {
    std::fs::create_dir_all(to).expect("a folder");
    for entry in std::fs::read_dir(from).unwrap_or_else(|error| panic!("{}: {error}", from.display())) {
        let entry = entry.expect("an entry");
        let target = to.join(entry.file_name());
        if entry.file_type().expect("a type").is_dir() {
            copy_dir(&entry.path(), &target);
        } else {
            std::fs::copy(entry.path(), &target).expect("a copy");
        }
    }
}

/// SHA-256 of every file below a folder, by path.
pub fn hashes(folder: &Path) -> BTreeMap<String, String> {
    let paths = casemill::release::freeze::walk(folder).expect("a folder that can be listed");
    let hash = |path: &String| casemill::store::raw::hash_file(&folder.join(path)).expect("a file that can be read").0;
    paths.iter().map(|path| (path.clone(), hash(path).to_string())).collect()
}

/// [`hashes`] of everything in the build folders of all nodes of medrounds, by `node/fingerprint/…`.
pub fn build_files(scratch: &Scratch) -> BTreeMap<String, String> {
    let folder = scratch.path("data/work/medrounds");
    let mut files = if folder.exists() { hashes(&folder) } else { BTreeMap::new() };
    files.retain(|path, _| path.split('/').count() > 2);
    files
}

/// One MedQA line with an invented diagnostic vignette; `n` makes it unlike the others.
pub fn medqa_line(n: u64) -> String {
    const COMPLAINTS: [&str; 7] = [
        "fever and cough",
        "chest pain",
        "severe headache",
        "blurred vision",
        "joint swelling",
        "a spreading rash",
        "abdominal pain",
    ];
    const DISEASES: [&str; 7] =
        ["Pneumonia", "Pericarditis", "Migraine", "Optic neuritis", "Gout", "Erysipelas", "Appendicitis"];
    let pick = |list: &[&'static str; 7], offset: u64| list[usize::try_from((n + offset) % 7).expect("small")];
    let (age, days) = (18 + n % 70, 2 + n % 9);
    let stem = format!(
        "A {age}-year-old {} comes to the physician because of a {days}-day history of {}. Record number {n} of the clinic. \
         Temperature is 38.{}°C, pulse is {}/min, and blood pressure is {}/70 mm Hg. Examination shows tenderness. \
         Laboratory studies show a leukocyte count of {}/mm3. Which of the following is the most likely diagnosis?",
        if n.is_multiple_of(2) { "man" } else { "woman" },
        pick(&COMPLAINTS, 0),
        n % 10,
        60 + n % 60,
        100 + n % 50,
        4000 + n % 9000
    );
    let options: BTreeMap<&str, &str> =
        ["A", "B", "C", "D"].into_iter().zip((0..).map(|offset| pick(&DISEASES, offset))).collect();
    serde_json::json!({"question": stem, "answer": options["A"], "options": options, "meta_info": "step1", "answer_idx": "A"}).to_string()
}

/// `n` lines of [`medqa_line`].
pub fn medqa_lines(n: u64) -> String {
    (0..n).map(|n| medqa_line(n) + "\n").collect()
}
