//! `casemill sources fetch` through the command line; the faults of servers are played in `src/service/fetch/tests.rs`.

use crate::support::{Scratch, medqa_lines};
use expect_test::expect;
use std::io::{BufRead, BufReader, Write};
use std::net::{TcpListener, TcpStream};

/// Serves a few files until the test ends.
fn serve(files: Vec<(&'static str, Vec<u8>)>) -> String {
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let address = format!("http://{}", listener.local_addr().unwrap());
    std::thread::spawn(move || {
        for stream in listener.incoming() {
            // A client that has gone away is its own business.
            let _ = answer(stream.unwrap(), &files);
        }
    });
    address
}

fn answer(mut stream: TcpStream, files: &[(&str, Vec<u8>)]) -> std::io::Result<()> {
    let mut reader = BufReader::new(stream.try_clone()?);
    let (mut head, mut path) = (String::new(), String::new());
    while reader.read_line(&mut head)? > 2 {
        if path.is_empty() {
            path = head.split(' ').nth(1).unwrap_or_default().to_owned();
        }
        head.clear();
    }
    let found = files.iter().find(|(name, _)| path == format!("/{name}"));
    let (status, body) = found.map_or(("404 Not Found", &b"gone"[..]), |(_, body)| ("200 OK", body));
    write!(stream, "HTTP/1.1 {status}\r\nContent-Length: {}\r\nConnection: close\r\n\r\n", body.len())?;
    stream.write_all(body)
}

#[test]
fn a_source_is_fetched_and_its_files_are_built_from() {
    let page = b"<!DOCTYPE html><title>Just a moment</title>".to_vec();
    let url = serve(vec![("test.jsonl", medqa_lines(12).into_bytes()), ("blocked.jsonl", page)]);
    let scratch = Scratch::empty();
    let by_hand = scratch.run_expecting(2, &["sources", "fetch", "medqa"]).stderr;
    assert!(
        by_hand.contains("names no file that can be fetched") && by_hand.contains("by hand: download"),
        "{by_hand}"
    );
    let source = scratch.read("sources/medqa.toml");
    let one = format!("{source}\n[fetch.test]\nurl = '{url}/test.jsonl'\npath = 'test.jsonl'\nkind = 'jsonl'\n");
    scratch.write("sources/medqa.toml", &one);
    let fetched = scratch.run_expecting(0, &["sources", "fetch", "medqa", "--quiet"]);
    expect![[r#"
        test.jsonl: fetched
        raw/medqa/source.toml is not there: write snapshot, licence, access and llm_egress of these files into it
    "#]]
    .assert_eq(&fetched.stdout);
    let again = scratch.run_expecting(0, &["sources", "fetch", "medqa", "--quiet"]);
    assert!(again.stdout.starts_with("test.jsonl: kept\n"), "{}", again.stdout);
    // What a fetch writes for itself is no raw file.
    let log = scratch.run_expecting(0, &["build", "medrounds"]).stderr;
    assert!(log.contains("source medqa: 1 files") && !log.contains("fetch.lock"), "{log}");

    let two = format!("{one}[fetch.blocked]\nurl = '{url}/blocked.jsonl'\npath = 'blocked.jsonl'\nkind = 'jsonl'\n");
    scratch.write("sources/medqa.toml", &two);
    let blocked = scratch.run_expecting(3, &["sources", "fetch", "medqa", "--quiet"]);
    assert!(blocked.stderr.contains("1 of 2 files were not fetched"), "{}", blocked.stderr);
    assert!(blocked.stdout.contains("blocked.jsonl: blocked: the server sent"), "{}", blocked.stdout);
    assert!(!scratch.path("raw/medqa/blocked.jsonl").exists());
    scratch.write("sources/medqa.toml", two.replace("kind = 'jsonl'\n[", "kind = 'jsno'\n["));
    let refused = scratch.run_expecting(2, &["sources", "fetch", "medqa"]).stderr;
    assert!(refused.contains("`jsno` is no kind of file"), "{refused}");
}
