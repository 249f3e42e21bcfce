//! Model stages at size: 10 000 questions with 24 answers each from the store of replies, the table of difficulty alone, and
//! a whole pipeline of 2 000 questions replayed. Run alone with `cargo bench --bench stages`; `-- table` or `-- replay` for a part.

#![allow(dead_code, unused_imports, reason = "what the tests share has more than a bench needs, and tests of its own")]

#[path = "../tests/it/fake_model.rs"]
mod fake_model;
#[path = "../tests/it/scripted.rs"]
mod scripted;
#[path = "../tests/it/support.rs"]
mod support;

use std::process::Stdio;
use std::time::{Duration, Instant};
use support::{Scratch, medqa_lines, repository};

const MODELS: [&str; 2] = ["--models", "models.toml"];

fn main() {
    let cores = std::thread::available_parallelism().map_or(0, std::num::NonZero::get);
    println!("{cores} cores");
    let wanted: Vec<String> = std::env::args().skip(1).filter(|argument| !argument.starts_with("--")).collect();
    if wanted.is_empty() || wanted.iter().any(|name| name == "table") {
        table(10_000);
    }
    if wanted.is_empty() || wanted.iter().any(|name| name == "replay") {
        replay(2_000);
    }
}

/// A project with so many generated questions and scripted models, of which those not named are rules.
fn project(n: u64, models: Option<&[&str]>, base_url: &str) -> Scratch {
    let mut scratch = Scratch::shipped_without_raw();
    scratch.set_env(scripted::URL_VARIABLE, base_url);
    scratch.write("raw/medqa/test.jsonl", medqa_lines(n));
    let rights = "snapshot = \"x\"\nlicence = \"CC0-1.0\"\naccess = \"open\"\nllm_egress = \"any\"\n";
    scratch.write("raw/medqa/source.toml", rights);
    let all = std::fs::read_to_string(repository().join("data/sample/models.toml")).expect("the scripted models");
    let mut text = String::new();
    let mut is_asked = true;
    for line in all.lines() {
        if let Some(name) = line.strip_prefix("[models.") {
            is_asked = models.is_none_or(|models| models.contains(&name.trim_end_matches(']')));
        }
        let line = match line {
            "provider = \"openai\"" if !is_asked => "provider = \"rules\"",
            "egress = \"local\"" => "egress = \"local\"\nconcurrency = 64",
            line if line.starts_with("concurrency") => "",
            line => line,
        };
        text += &format!("{line}\n");
    }
    scratch.write("models.toml", text);
    scratch
}

/// Runs casemill; gives its wall time and peak resident memory in MB.
fn measured(scratch: &Scratch, arguments: &[&str]) -> (Duration, u64) {
    let started = Instant::now();
    let mut command = scratch.command(&[arguments, &MODELS, &["--quiet"]].concat());
    let mut child = command.stdout(Stdio::null()).stderr(Stdio::null()).spawn().expect("the binary runs");
    let mut peak = 0;
    let status = loop {
        peak = peak.max(high_water(child.id()));
        if let Some(status) = child.try_wait().expect("a child") {
            break status;
        }
        std::thread::sleep(Duration::from_millis(5));
    };
    assert!(matches!(status.code(), Some(0 | 4)), "casemill {arguments:?} failed");
    (started.elapsed(), peak / 1024)
}

/// `VmHWM` of a process, in kB.
fn high_water(process: u32) -> u64 {
    let status = std::fs::read_to_string(format!("/proc/{process}/status")).unwrap_or_default();
    let line = status.lines().find_map(|line| line.strip_prefix("VmHWM:"));
    line.and_then(|line| line.trim().trim_end_matches(" kB").parse().ok()).unwrap_or(0)
}

fn table(n: u64) {
    let server = scripted::start().without_log();
    let solvers = ["deepseek_r1", "qwq_32b", "phi_4_reasoning", "olmo_3_1_32b_think", "disagreement_judge"];
    let scratch = project(n, Some(&solvers), &server.base_url());
    let (filling, _) = measured(&scratch, &["build", "medrounds", "--llm", "live"]);
    println!(
        "{n} questions, 4 models, 6 samples and a judge of each: asked and stored in {:.0} s",
        filling.as_secs_f64()
    );
    drop(server);
    for node in ["sample_answers", "judge_disagreement"] {
        let (time, peak) =
            measured(&scratch, &["build", "medrounds", "--llm", "replay", "--only", node, "--force", node]);
        println!("{node} from the store: {:.2} s, peak {peak} MB", time.as_secs_f64());
    }
    let node = "estimate_difficulty";
    for _ in 0..3 {
        let arguments = ["build", "medrounds", "--llm", "replay", "--only", node, "--force", node];
        let (time, peak) = measured(&scratch, &arguments);
        println!("{node}, {n} questions with 24 answers each: {:.2} s, peak {peak} MB", time.as_secs_f64());
    }
    let (time, peak) = measured(&scratch, &["plan", "medrounds", "--llm", "replay"]);
    println!("plan with nothing to do: {:.2} s, peak {peak} MB", time.as_secs_f64());
}

fn replay(n: u64) {
    let server = scripted::start().without_log();
    let scratch = project(n, None, &server.base_url());
    // Generated questions are poorer than written ones: what the scripted judges think of them must not stop the build.
    let pipeline = scratch.read("pipelines/medrounds.toml").replace("max_quarantined = 0.2", "max_quarantined = 1.0");
    scratch.write("pipelines/medrounds.toml", pipeline);
    let (filling, _) = measured(&scratch, &["build", "medrounds", "--llm", "record"]);
    let n_calls = server.total().received;
    drop(server);
    println!("{n} questions, all model stages: {n_calls} requests recorded in {:.0} s", filling.as_secs_f64());
    for jobs in ["1", "2"] {
        std::fs::remove_dir_all(scratch.path("data/work")).expect("the work folder");
        let (time, peak) = measured(&scratch, &["build", "medrounds", "--llm", "replay", "--jobs", jobs]);
        println!(
            "replayed whole with --jobs {jobs}: {:.1} s, {:.0} replies a second, peak {peak} MB",
            time.as_secs_f64(),
            n_calls as f64 / time.as_secs_f64()
        );
    }
    std::fs::remove_dir_all(scratch.path("data/work")).expect("the work folder");
    let (time, peak) = measured(&scratch, &["build", "medrounds"]);
    println!("the same by rules alone: {:.1} s, peak {peak} MB", time.as_secs_f64());
}
