//! `dedup_near`'s join against the public peers: `cargo bench --bench near -- DOCUMENTS.jsonl`, with the documents that
//! `dedup.py N DOCUMENTS.jsonl` of the peers writes, so that both work on the same shingles.

use casemill::text::near_join::near_pairs;
use casemill::text::shingles::{DEFAULT_SHINGLE_WORDS, ShingleSet, Threshold};
use std::time::Instant;

fn main() {
    let files: Vec<String> = std::env::args().skip(1).filter(|argument| !argument.starts_with("--")).collect();
    for file in files {
        let text = std::fs::read_to_string(&file).expect("a readable file");
        let documents: Vec<serde_json::Value> =
            text.lines().map(|line| serde_json::from_str(line).expect("JSON")).collect();
        let start = Instant::now();
        let shingles = |document: &serde_json::Value| {
            ShingleSet::from_text(document["text"].as_str().expect("text"), DEFAULT_SHINGLE_WORDS)
        };
        let sets: Vec<ShingleSet> = documents.iter().map(shingles).collect();
        let shingling = start.elapsed();
        let threshold = Threshold::from_permille(850).expect("a threshold");
        for threads in [1, 2] {
            let start = Instant::now();
            let pairs = near_pairs(&sets, threshold, threads).expect("no limit");
            println!(
                "{file}: {} documents, {threads} threads: {:.3} s, {} pairs (shingling {:.3} s)",
                sets.len(),
                start.elapsed().as_secs_f64(),
                pairs.len(),
                shingling.as_secs_f64()
            );
        }
    }
}
