//! The sample with models, offline: `data/sample/replies.jsonl.zst` holds a reply to every call of the shipped pipeline with
//! `data/sample/models.toml`, and rebuilds records, judgements and difficulty bit for bit.
//!
//! `UPDATE_EXPECT=1` records the replies anew with the scripted models that wrote them, and writes the file.

use crate::scripted;
use crate::support::{Scratch, repository};
use casemill::release::manifest::Manifest;
use expect_test::expect;
use std::path::PathBuf;
use std::sync::OnceLock;

const REPLIES: &str = "data/sample/replies.jsonl.zst";
const RECORD: &str = "UPDATE_EXPECT=1 cargo test --release --test it -- sample_replies";

/// A copy of `data/sample` is the raw folder of a scratch project.
const MODELS: [&str; 2] = ["--models", "raw/models.toml"];

fn with_models<'a>(arguments: &[&'a str]) -> Vec<&'a str> {
    [arguments, &MODELS].concat()
}

/// Builds the sample with scripted models and gives the exported replies.
fn record(models_change: impl FnOnce(&Scratch), jobs: &str) -> Vec<u8> {
    let server = scripted::start();
    let mut scratch = Scratch::shipped();
    scratch.set_env(scripted::URL_VARIABLE, &server.base_url());
    models_change(&scratch);
    // The faults of the sample are in quarantine.
    scratch.run_expecting(4, &with_models(&["build", "medrounds", "--llm", "live", "--jobs", jobs, "--quiet"]));
    scratch.run_expecting(0, &with_models(&["replies", "export", "medrounds", "replies.jsonl.zst"]));
    std::fs::read(scratch.path("replies.jsonl.zst")).unwrap()
}

/// The shipped file, recorded anew first if that is asked for.
fn shipped() -> PathBuf {
    static RECORDED: OnceLock<()> = OnceLock::new();
    let path = repository().join(REPLIES);
    RECORDED.get_or_init(|| {
        if std::env::var_os("UPDATE_EXPECT").is_some_and(|value| value == "1") {
            let recorded = record(|_| {}, "2");
            if std::fs::read(&path).ok().as_ref() != Some(&recorded) {
                std::fs::write(&path, recorded).unwrap();
            }
        }
    });
    assert!(path.is_file(), "{REPLIES} is not there; {RECORD}");
    path
}

fn manifest(scratch: &Scratch, version: &str) -> Manifest {
    serde_json::from_str(&scratch.read(&format!("data/release/medrounds-{version}/MANIFEST.json"))).unwrap()
}

#[test]
fn the_sample_is_rebuilt_from_its_stored_replies_alone() {
    let replies = shipped();
    let scratch = Scratch::shipped();
    scratch.run_expecting(0, &["replies", "import", replies.to_str().unwrap()]);
    let build = |jobs| scratch.run(&with_models(&["build", "medrounds", "--llm", "replay", "--jobs", jobs]));
    let freeze = |version| {
        let arguments = ["freeze", "medrounds", "--version", version, "--llm", "replay", "--allow-quarantine"];
        scratch.run_expecting(0, &with_models(&arguments));
        manifest(&scratch, version)
    };
    let run = build("1");
    let is_behind = run.stderr.contains("no reply is stored for call");
    let why = run.stderr.lines().last().unwrap_or_default();
    assert!(!is_behind, "{REPLIES} is behind a prompt, a stage or data/sample/models.toml: {RECORD}\n{why}");
    assert_eq!(run.code, Some(4), "{}", run.stderr);
    let first = freeze("1");
    std::fs::remove_dir_all(scratch.path("data/work")).unwrap();
    assert_eq!(build("2").code, Some(4));
    assert_eq!(freeze("2").content_hash, first.content_hash);
    let verify = ["verify", "data/release/medrounds-1", "--replies", replies.to_str().unwrap()];
    let verified = scratch.run_expecting(0, &verify).stdout;

    let mut text = format!("content hash {}\n\nwhat models said\n", first.content_hash);
    let said = run.stderr.lines().filter(|line| line.contains(", by ") || line.contains("control questions right"));
    text.extend(said.map(|line| format!("{line}\n")));
    text += "\nwhat became of the records in nodes that ask models\n";
    for node in &first.nodes {
        let asks = first.models.iter().any(|model| model.node == node.node) || node.stage == "estimate_difficulty";
        let total = |counts: fn(&casemill::record::ledger::Counts) -> u64| -> u64 {
            node.by_source.iter().map(|source| counts(&source.counts())).sum()
        };
        if asks {
            let (n_dropped, n_quarantined) =
                (total(|counts| counts.n_dropped()), total(|counts| counts.n_quarantined()));
            text += &format!(
                "{}: {} kept, {n_dropped} dropped, {n_quarantined} quarantined\n",
                node.node,
                total(|counts| counts.kept)
            );
        }
    }
    text += "\nwho made which field, of how many cases\n";
    for maker in &first.made_by {
        text += &format!("{} {} {}\n", maker.field, maker.by, maker.n_cases);
    }
    let difficulty = first.difficulty.as_ref().unwrap();
    text += &format!("\ndifficulty: {} scored, {} not\n", difficulty.n_scored, difficulty.n_unscored);
    for cluster in &difficulty.clusters {
        text += &format!("{:?} {}: {:.4} to {:.4}\n", cluster.band, cluster.n, cluster.least, cluster.greatest);
    }
    text += &format!("\n{}", verified.lines().last().unwrap_or_default());
    expect![[r#"
        content hash be5302d59bfcd70e570ec1bab9f2928dcdca0d5c822f2197b1a65f7dba986405

        what models said
        filter_vignette: model filter answered 8 of 8 control questions right
        filter_vignette: suitable, by openai/casemill-scripted/filter: NO 2, YES 50
        validate_consensus: model filter answered 8 of 8 control questions right
        validate_consensus: model second_filter answered 8 of 8 control questions right
        validate_consensus: suitable, by openai/casemill-scripted/filter: YES 49
        validate_consensus: suitable, by openai/casemill-scripted/second-filter: NO 3, YES 46
        score_fidelity: model fidelity_judge answered 6 of 6 control questions right
        score_fidelity: fidelity, by openai/casemill-scripted/fidelity-judge: 2 3, 3 5, 4 20, 5 15
        assign_specialty: model specialist answered 5 of 5 control questions right
        assign_specialty: specialty, by openai/casemill-scripted/specialist: Cardiology 2, Dermatology 1, Emergency Medicine 2, General Surgery 2, Hematology 3, Internal Medicine 7, Neurology 5, Obstetrics & Gynecology 4, Ophthalmology 1, Orthopedic Surgery 2, Otolaryngology (ENT) 4, Pediatrics 3, Psychiatry 1, Rheumatology 1; no answer: reply_refused 1
        judge_disagreement: model disagreement_judge answered 5 of 5 control questions right
        judge_disagreement: disagreement of deepseek_r1, by openai/casemill-scripted/disagreement-judge: 0.0 5, 0.33 7, 0.53 4, 0.6 9, 0.73 9, 0.8 2, 0.87 3
        judge_disagreement: disagreement of olmo_3_1_32b_think, by openai/casemill-scripted/disagreement-judge: 0.0 6, 0.33 12, 0.53 2, 0.6 7, 0.73 3, 0.8 5, 0.87 1
        judge_disagreement: disagreement of phi_4_reasoning, by openai/casemill-scripted/disagreement-judge: 0.0 8, 0.33 12, 0.53 1, 0.6 10, 0.73 4, 0.8 1, 0.87 3
        judge_disagreement: disagreement of qwq_32b, by openai/casemill-scripted/disagreement-judge: 0.0 8, 0.33 10, 0.53 4, 0.6 11, 0.73 4, 0.8 1, 0.87 1

        what became of the records in nodes that ask models
        filter_vignette: 50 kept, 21 dropped, 0 quarantined
        validate_consensus: 46 kept, 3 dropped, 0 quarantined
        extract_slots: 43 kept, 0 dropped, 3 quarantined
        score_fidelity: 40 kept, 3 dropped, 0 quarantined
        assign_specialty: 39 kept, 0 dropped, 0 quarantined
        sample_answers: 39 kept, 0 dropped, 0 quarantined
        judge_disagreement: 39 kept, 0 dropped, 0 quarantined
        estimate_difficulty: 39 kept, 0 dropped, 0 quarantined

        who made which field, of how many cases
        consensus openai/casemill-scripted/filter 39
        consensus openai/casemill-scripted/second-filter 39
        difficulty openai/casemill-scripted/disagreement-judge 39
        difficulty openai/casemill-scripted/solver-1 39
        difficulty openai/casemill-scripted/solver-2 39
        difficulty openai/casemill-scripted/solver-3 39
        difficulty openai/casemill-scripted/solver-4 36
        judgement openai/casemill-scripted/fidelity-judge 39
        slots openai/casemill-scripted/extractor 39
        specialty openai/casemill-scripted/specialist 38
        specialty rules 1
        vignette openai/casemill-scripted/filter 39
        vignette rules 39

        difficulty: 36 scored, 3 not
        Easy 9: 0.0704 to 0.2909
        Medium 13: 0.3131 to 0.5544
        Hard 14: 0.6337 to 0.9339

        1 264 replies are named by cases, 1 365 are in the file"#]].assert_eq(&text);
}

/// Which reply belongs to which call does not depend on the order in which requests arrive: the same file comes out whatever
/// is on its way at once, and it is the shipped one.
#[test]
fn the_stored_replies_are_those_that_the_script_gives() {
    let unpacked = |packed: &[u8]| String::from_utf8(zstd::decode_all(packed).unwrap()).unwrap();
    let shipped = unpacked(&std::fs::read(shipped()).unwrap());
    let one_by_one = record(
        |scratch| scratch.edit("raw/models.toml", "egress = \"local\"\n", "egress = \"local\"\nconcurrency = 1\n"),
        "1",
    );
    let many_at_once = record(
        |scratch| scratch.edit("raw/models.toml", "egress = \"local\"\n", "egress = \"local\"\nconcurrency = 16\n"),
        "2",
    );
    assert!(one_by_one == many_at_once, "two recordings differ");
    let is_shipped = unpacked(&one_by_one) == shipped;
    assert!(is_shipped, "{REPLIES} is not what tests/it/scripted.rs says now; {RECORD}");
    for name in ["\"model\":\"openai/casemill-scripted/", "\\\"model\\\":\\\"casemill-scripted/"] {
        assert!(shipped.lines().all(|line| line.contains(name)), "every reply says that a script wrote it");
    }
}
