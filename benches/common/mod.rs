//! What benches share: readers in Python that they are measured beside, and casemill as a process of its own.

use std::io::{BufRead, BufReader, Write};
use std::path::{Path, PathBuf};
use std::process::{Child, ChildStdin, ChildStdout, Command, Stdio};
use std::time::{Duration, Instant};

/// A script that does what a line on its standard input names, and answers with the seconds it took.
pub struct Peers {
    process: Child,
    asked: ChildStdin,
    told: BufReader<ChildStdout>,
}

impl Peers {
    /// None where `CASEMILL_PEERS_PYTHON` names no Python.
    pub fn start(script: &str, files: &[PathBuf]) -> Option<Self> {
        let python = std::env::var_os("CASEMILL_PEERS_PYTHON")?;
        let mut command = Command::new(python);
        command.args(["-c", script]).args(files).stdin(Stdio::piped()).stdout(Stdio::piped());
        let mut process = command.spawn().expect("a Python");
        let (asked, told) = (process.stdin.take().expect("its input"), process.stdout.take().expect("its output"));
        Some(Self { process, asked, told: BufReader::new(told) })
    }

    pub fn run(&mut self, reader: &str) -> Duration {
        writeln!(self.asked, "{reader}").expect("a Python that listens");
        let mut line = String::new();
        self.told.read_line(&mut line).expect("an answer");
        Duration::from_secs_f64(line.trim().parse().expect("seconds; has this Python what the script imports?"))
    }

    /// Says so where there were none.
    pub fn end(peers: Option<Self>) {
        let Some(Self { mut process, asked, told: _ }) = peers else {
            println!("peers: skipped, CASEMILL_PEERS_PYTHON names no Python");
            return;
        };
        drop(asked);
        process.wait().expect("its end");
    }
}

/// `VmHWM` of a process, in bytes.
pub fn high_water(process: &str) -> u64 {
    let status = std::fs::read_to_string(format!("/proc/{process}/status")).unwrap_or_default();
    let line = status.lines().find_map(|line| line.strip_prefix("VmHWM:"));
    line.and_then(|line| line.trim().trim_end_matches(" kB").parse::<u64>().ok()).unwrap_or(0) * 1024
}

/// Runs casemill; gives its wall time and peak resident memory in bytes.
pub fn measured(folder: &Path, arguments: &[&str]) -> (Duration, u64) {
    let start = Instant::now();
    let mut command = Command::new(env!("CARGO_BIN_EXE_casemill"));
    command.current_dir(folder).args(arguments).args(["--raw", "raw", "--data", "data"]);
    let mut child = command.stdout(Stdio::null()).stderr(Stdio::null()).spawn().expect("the binary runs");
    let mut peak = 0;
    let status = loop {
        peak = peak.max(high_water(&child.id().to_string()));
        if let Some(status) = child.try_wait().expect("a child") {
            break status;
        }
        std::thread::sleep(Duration::from_millis(5));
    };
    assert!(matches!(status.code(), Some(0 | 4)), "casemill {arguments:?} failed");
    (start.elapsed(), peak)
}
