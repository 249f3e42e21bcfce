//! `casemill sources fetch ajcr` against a server on loopback that plays the DOI resolver, the journal and their faults.

use crate::support::{Run, Scratch, hashes};
use expect_test::expect;
use serde_json::{Value, json};
use std::collections::BTreeMap;
use std::fmt::Write as _;
use std::io::{BufRead, BufReader, Cursor, Write};
use std::net::{SocketAddr, TcpListener, TcpStream};
use std::sync::{Arc, Mutex, MutexGuard};
use std::time::{Duration, Instant};

/// Status, headers and body.
type Answer = (u16, String, Vec<u8>);

#[derive(Default)]
struct World {
    /// Answers that come before the proper one, by path. Status 0 never answers.
    faults: BTreeMap<String, Vec<Answer>>,
    /// What every page says of its version.
    version: u32,
    /// Paths, in their order.
    asked: Vec<String>,
    agents: Vec<String>,
}

/// On one port `/doi/`, which redirects to `/abstract/index/idArt/`, which links to `/abstract/full/idArt/`.
struct Journal {
    address: SocketAddr,
    world: Arc<Mutex<World>>,
}

impl Journal {
    fn start() -> Self {
        let listener = TcpListener::bind("127.0.0.1:0").unwrap();
        let address = listener.local_addr().unwrap();
        let world = Arc::new(Mutex::new(World::default()));
        let shared = world.clone();
        std::thread::spawn(move || {
            for stream in listener.incoming() {
                let shared = shared.clone();
                // A client that has gone away is its own business.
                std::thread::spawn(move || drop(serve(stream.unwrap(), &shared)));
            }
        });
        Self { address, world }
    }

    fn world(&self) -> MutexGuard<'_, World> {
        self.world.lock().unwrap()
    }

    /// What was asked since the last time.
    fn asked(&self) -> Vec<String> {
        std::mem::take(&mut self.world().asked)
    }

    fn fault(&self, path: &str, status: u16, headers: &str, body: &str) {
        let fault = (status, headers.to_owned(), body.as_bytes().to_vec());
        self.world().faults.entry(path.to_owned()).or_default().push(fault);
    }

    /// A project whose journal is this one.
    fn project(&self, requests_per_minute: u32) -> Scratch {
        let mut scratch = Scratch::empty();
        let text = scratch.read("sources/ajcr.toml");
        let (head, page) = (text.split("\n[ajcr]\n").next().unwrap(), text.split("\n[ajcr.page]\n").nth(1).unwrap());
        scratch.write(
            "sources/ajcr.toml",
            format!(
                "{head}\n[ajcr]\nresolver = 'http://{}/doi'\nhosts = ['127.0.0.1']\nemail_variable = 'AJCR_EMAIL'\n\
                 full_text = '/abstract/full/idArt/{{number}}'\nrequests_per_minute = {requests_per_minute}\n\
                 max_bytes_per_page = 10_000\n\n[ajcr.page]\n{page}",
                self.address
            ),
        );
        scratch.set_env("SOURCE_DATE_EPOCH", "1796000000");
        scratch.set_env("AJCR_EMAIL", "curator@example.org");
        scratch
    }

    /// Text without the port.
    fn shown(&self, text: &str) -> String {
        text.replace(&self.address.port().to_string(), "PORT")
    }
}

fn serve(mut stream: TcpStream, world: &Mutex<World>) -> std::io::Result<()> {
    let mut reader = BufReader::new(stream.try_clone()?);
    let (mut line, mut path, mut agent) = (String::new(), String::new(), String::new());
    while reader.read_line(&mut line)? > 2 {
        if path.is_empty() {
            path = line.split(' ').nth(1).unwrap_or_default().to_owned();
        } else if let Some((_, value)) =
            line.split_once(": ").filter(|(name, _)| name.eq_ignore_ascii_case("user-agent"))
        {
            agent = value.trim().to_owned();
        }
        line.clear();
    }
    let (status, headers, body) = world.lock().unwrap().answer(&path, agent);
    if status == 0 {
        std::thread::sleep(Duration::from_secs(600));
    }
    write!(stream, "HTTP/1.1 {status} Status\r\n{headers}Content-Length: {}\r\nConnection: close\r\n\r\n", body.len())?;
    stream.write_all(&body)
}

impl World {
    fn answer(&mut self, path: &str, agent: String) -> Answer {
        self.asked.push(path.to_owned());
        self.agents.push(agent);
        if let Some(faults) = self.faults.get_mut(path).filter(|faults| !faults.is_empty()) {
            return faults.remove(0);
        }
        if let Some(number) = path.strip_prefix("/doi/10.12659/AJCR.") {
            return (302, format!("Location: /abstract/index/idArt/{number}\r\n"), Vec::new());
        }
        let page = |number: &str, body: &str| (200, String::new(), page(number, body).into_bytes());
        match (path.strip_prefix("/abstract/index/idArt/"), path.strip_prefix("/abstract/full/idArt/")) {
            (Some(number), _) => page(number, &format!("<a href=\"../../full/idArt/{number}#s1\">Full text</a>")),
            (_, Some(number)) => page(number, &full_text(self.version)),
            _ => (404, String::new(), Vec::new()),
        }
    }
}

/// A page of an article.
fn page(number: &str, body: &str) -> String {
    format!(
        "<!DOCTYPE html><html><head><title>A case</title><meta name=\"citation_doi\" content=\"10.12659/AJCR.{number}\">\
         </head><body>{body}</body></html>"
    )
}

fn full_text(version: u32) -> String {
    format!(
        "<div id=\"article\"><h1 class=\"article-title\">A case</h1><div id=\"fulltext\"><h2>Case Report</h2>\
         <p>A woman of version {version} (Figure 1).</p></div></div>"
    )
}

/// All files of the raw folder but the lock of the process.
fn files(scratch: &Scratch) -> BTreeMap<String, String> {
    let mut files = hashes(&scratch.path("raw/ajcr"));
    files.remove(".fetch.lock");
    files
}

const FETCH: [&str; 4] = ["sources", "fetch", "ajcr", "--quiet"];

fn fetch(scratch: &Scratch, code: i32, more: &[&str]) -> Run {
    scratch.run_expecting(code, &[&FETCH, more].concat())
}

/// The paths by which one article is got.
fn steps(number: u32) -> Vec<String> {
    ["/doi/10.12659/AJCR.", "/abstract/index/idArt/", "/abstract/full/idArt/"]
        .map(|path| format!("{path}{number}"))
        .into()
}

#[test]
fn pages_are_got_by_their_dois_and_once() {
    let journal = Journal::start();
    let scratch = journal.project(60_000);
    scratch.write(
        "raw/ajcr/cases.csv",
        "PMID;DOI;Final diagnosis1\n1;10.12659/AJCR.12;A\n2;https://doi.org/10.12659/ajcr.7;B\n1;AJCR12;C\n3;10.1/x;D\n",
    );
    let first = fetch(&scratch, 4, &[]);
    expect![[r#"
        cases.csv: 4 rows
        listed 3, named again 1, wanted 3
        pages: fetched 2, kept 0, updated 0, missing 1
        missing by reason: invalid_doi 1
          10.1/x (cases.csv:5): invalid_doi: `10.1/x`
        raw/ajcr/source.toml is not there: write snapshot, licence, access and llm_egress of these files into it
    "#]]
    .assert_eq(&first.stdout);
    assert_eq!(journal.asked(), [steps(12), steps(7)].concat());
    let agent = concat!("casemill/", env!("CARGO_PKG_VERSION"), " (mailto:curator@example.org)");
    assert!(journal.world().agents.iter().all(|one| one == agent));
    let before = files(&scratch);
    assert_eq!(before.keys().collect::<Vec<_>>(), ["AJCR12.html", "AJCR7.html", "cases.csv", "fetch.lock.json"]);
    assert_eq!(scratch.read("raw/ajcr/AJCR12.html"), page("12", &full_text(0)));
    let lock: Value = serde_json::from_str(&scratch.read("raw/ajcr/fetch.lock.json")).unwrap();
    let locked = &lock["files"]["AJCR12.html"];
    assert_eq!(locked["sha256"], before["AJCR12.html"]);
    assert_eq!(locked["url"], format!("http://{}/abstract/full/idArt/12", journal.address));
    assert_eq!(locked["fetched"], "2026-11-30");

    let document = scratch.json(&FETCH);
    assert_eq!((&document["fetched"], &document["kept"]), (&json!(0), &json!(2)));
    assert_eq!(
        document["missing"],
        json!([{"ajcr_id": "", "doi": "10.1/x", "list": "cases.csv", "line": 5, "reason": "invalid_doi", "detail": "`10.1/x`"}])
    );
    assert!(journal.asked().is_empty());
    assert_eq!(files(&scratch), before);
    // The first of the list alone.
    let one = fetch(&scratch, 0, &["--limit", "1"]).stdout;
    assert!(one.contains("wanted 1\npages: fetched 0, kept 1, updated 0, missing 0\n"), "{one}");
}

#[test]
fn a_run_that_was_killed_goes_on() {
    let journal = Journal::start();
    let scratch = journal.project(60_000);
    scratch.write("raw/ajcr/cases.csv", "DOI\nAJCR1\nAJCR2\nAJCR3\n");
    journal.fault("/abstract/full/idArt/2", 0, "", "");
    let mut running = scratch.command(&FETCH).spawn().unwrap();
    let start = Instant::now();
    while !journal.world().asked.contains(&"/abstract/full/idArt/2".to_owned()) {
        assert!(start.elapsed() < Duration::from_secs(60), "{:?}", journal.asked());
        std::thread::sleep(Duration::from_millis(10));
    }
    running.kill().unwrap();
    running.wait().unwrap();
    assert_eq!(journal.asked(), [steps(1), steps(2)].concat());
    assert!(scratch.path("raw/ajcr/AJCR1.html").is_file() && !scratch.path("raw/ajcr/AJCR2.html").exists());
    // What a crash leaves: a page before its entry.
    std::fs::remove_file(scratch.path("raw/ajcr/fetch.lock.json")).unwrap();
    let run = fetch(&scratch, 0, &[]).stdout;
    assert!(run.contains("pages: fetched 2, kept 1, updated 0, missing 0"), "{run}");
    assert_eq!(journal.asked(), [steps(2), steps(3)].concat());
}

#[test]
fn what_is_no_article_is_not_stored() {
    let journal = Journal::start();
    let scratch = journal.project(60_000);
    let dois: String = (1..=11).fold("DOI\n".to_owned(), |mut text, number| {
        writeln!(text, "10.12659/AJCR.{number}").unwrap();
        text
    });
    scratch.write("raw/ajcr/cases.csv", dois);
    let full = |number: u32| format!("/abstract/full/idArt/{number}");
    let elsewhere = format!("Location: http://localhost:{}/abstract/full/idArt/2\r\n", journal.address.port());
    let doi = "10.12659/AJCR";
    journal.fault(&full(1), 200, "", &format!("<html><title>Just a moment...</title>{doi}.1</html>"));
    journal.fault(&full(2), 302, &elsewhere, "");
    journal.fault(&full(3), 200, "Content-Type: text/html\r\n", &format!("%PDF-1.4 {doi}.3 %%EOF"));
    journal.fault(&full(4), 200, "", "\n");
    journal.fault(&full(5), 200, "", &page("50", "See 10.12659/AJCR.5"));
    journal.fault("/doi/10.12659/AJCR.6", 404, "", "<html>DOI not found</html>");
    journal.fault(&full(7), 403, "", "<html>Forbidden</html>");
    journal.fault(&full(8), 200, "", &format!("<html>{doi}.8 {}</html>", "x".repeat(10_000)));
    journal.fault(&full(9), 200, "", "<html><body>Unusual traffic: solve the captcha</body></html>");
    scratch.write("raw/ajcr/AJCR10.html", "<html>Access denied</html>");
    let run = fetch(&scratch, 4, &[]);
    expect![[r#"
        cases.csv: 11 rows
        listed 11, named again 0, wanted 11
        pages: fetched 1, kept 0, updated 0, missing 10
        missing by reason: not_found 1, refused 1, host_not_allowed 1, bot_page 2, is_pdf 1, empty 1, other_page 1, too_large 1, in_the_way 1
          AJCR1 (cases.csv:2): bot_page: a bot-check page titled "Just a moment..."
          AJCR2 (cases.csv:3): host_not_allowed: http://localhost:PORT/abstract/full/idArt/2 is at none of the hosts that ajcr.hosts names
          AJCR3 (cases.csv:4): is_pdf: a PDF
          AJCR4 (cases.csv:5): empty: the page is empty
          AJCR5 (cases.csv:6): other_page: the page of 10.12659/AJCR.50
          AJCR6 (cases.csv:7): not_found: 127.0.0.1 answered 404 Not Found
          AJCR7 (cases.csv:8): refused: 127.0.0.1 answered 403 Forbidden
          AJCR8 (cases.csv:9): too_large: the answer is larger than the 10000 bytes allowed for it
          AJCR9 (cases.csv:10): bot_page: a page with words like `(?i)captcha`
          AJCR10 (cases.csv:11): in_the_way: AJCR10.html is there, but it is not its page: a page with words like `(?i)access denied`
        raw/ajcr/source.toml is not there: write snapshot, licence, access and llm_egress of these files into it
    "#]]
    .assert_eq(&journal.shown(&run.stdout));
    assert_eq!(
        files(&scratch).keys().collect::<Vec<_>>(),
        ["AJCR10.html", "AJCR11.html", "cases.csv", "fetch.lock.json"]
    );
    // The server is better now.
    let again = fetch(&scratch, 4, &[]).stdout;
    assert!(again.contains("pages: fetched 9, kept 1, updated 0, missing 1\n"), "{again}");
    let replaced = fetch(&scratch, 0, &["--update"]).stdout;
    assert!(replaced.contains("pages: fetched 0, kept 10, updated 1, missing 0\n"), "{replaced}");
}

#[test]
fn a_server_that_keeps_refusing_is_left_alone() {
    let journal = Journal::start();
    let scratch = journal.project(60_000);
    scratch.write("raw/ajcr/cases.csv", "DOI\nAJCR1\nAJCR2\nAJCR3\nAJCR4\nAJCR5\nAJCR6\nAJCR7\n");
    for number in 1..=7 {
        journal.fault(&format!("/doi/10.12659/AJCR.{number}"), 403, "", "no");
    }
    let document = scratch.json(&FETCH);
    assert_eq!(document["missing_by_reason"], json!({"refused": 5, "not_asked": 2}));
    assert_eq!(document["missing"][6]["detail"], "the server refused 5 times in a row");
    assert_eq!(journal.asked().len(), 5);
}

#[test]
fn a_busy_server_is_waited_for_and_requests_are_spread() {
    let journal = Journal::start();
    // Half a second between two requests, of which there are four.
    let scratch = journal.project(120);
    scratch.write("raw/ajcr/cases.csv", "DOI\nAJCR1\n");
    journal.fault("/abstract/index/idArt/1", 429, "Retry-After: 1\r\n", "slowly");
    let start = Instant::now();
    let run = scratch.run_expecting(0, &["sources", "fetch", "ajcr"]);
    assert!(start.elapsed() >= Duration::from_secs(2), "{:?}", start.elapsed());
    let shown = journal.shown(&run.stderr);
    assert!(shown.contains("/doi/10.12659/AJCR.1: 127.0.0.1 answered 429 Too Many Requests; again in "), "{shown}");
    assert!(shown.ends_with("1 of 1, AJCR1: fetched\n"), "{shown}");
    let (before, all) = (steps(1)[..2].to_vec(), steps(1));
    assert_eq!(journal.asked(), [before, all].concat());
}

#[test]
fn a_changed_page_is_refused_until_it_is_asked_for() {
    let journal = Journal::start();
    let scratch = journal.project(60_000);
    scratch.write("raw/ajcr/cases.csv", "DOI\nAJCR1\nAJCR2\n");
    fetch(&scratch, 0, &[]);
    let before = files(&scratch);
    journal.world().version = 1;
    // Two pages are lost, one of them with its entry.
    std::fs::write(scratch.path("raw/ajcr/AJCR1.html"), "cut").unwrap();
    let changed = fetch(&scratch, 4, &[]).stdout;
    assert!(changed.contains("AJCR1 (cases.csv:2): changed: the lock file has sha256 "), "{changed}");
    assert_eq!(scratch.read("raw/ajcr/AJCR1.html"), "cut");
    journal.world().version = 0;
    let restored = fetch(&scratch, 0, &[]).stdout;
    assert!(restored.contains("pages: fetched 0, kept 1, updated 1, missing 0\n"), "{restored}");
    assert_eq!(files(&scratch), before);
    journal.world().version = 1;
    let updated = fetch(&scratch, 0, &["--update"]).stdout;
    assert!(updated.contains("pages: fetched 0, kept 0, updated 2, missing 0\n"), "{updated}");
    // Pages that came by hand are not asked for.
    std::fs::rename(scratch.path("raw/ajcr/AJCR1.html"), scratch.path("raw/ajcr/AJCR1.htm")).unwrap();
    std::fs::write(scratch.path("raw/ajcr/cases.csv"), "DOI\nAJCR1\nAJCR2\nAJCR3\n").unwrap();
    scratch.write("raw/ajcr/AJCR3.html", page("3", "By hand."));
    journal.asked();
    let kept = fetch(&scratch, 0, &[]).stdout;
    assert!(kept.contains("pages: fetched 0, kept 3, updated 0, missing 0\n"), "{kept}");
    assert!(journal.asked().is_empty());
}

/// A workbook of one sheet of texts, made by hand.
fn workbook(rows: &[&[&str]]) -> Vec<u8> {
    const SCHEMAS: &str = "http://schemas.openxmlformats.org";
    let mut cells = String::new();
    for (row, texts) in (1..).zip(rows) {
        write!(cells, "<row r=\"{row}\">").unwrap();
        for (column, text) in ('A'..).zip(*texts) {
            write!(cells, "<c r=\"{column}{row}\" t=\"inlineStr\"><is><t>{text}</t></is></c>").unwrap();
        }
        cells += "</row>";
    }
    let document = format!("{SCHEMAS}/officeDocument/2006/relationships");
    let relations = |kind: &str, target: &str| {
        format!(
            "<Relationships xmlns=\"{SCHEMAS}/package/2006/relationships\">\
             <Relationship Id=\"rId1\" Type=\"{document}/{kind}\" Target=\"{target}\"/></Relationships>"
        )
    };
    let main = format!("xmlns=\"{SCHEMAS}/spreadsheetml/2006/main\"");
    let parts = [
        ("_rels/.rels", relations("officeDocument", "xl/workbook.xml")),
        (
            "xl/workbook.xml",
            format!(
                "<workbook {main} xmlns:r=\"{document}\"><sheets><sheet name=\"Cases\" sheetId=\"1\" r:id=\"rId1\"/></sheets></workbook>"
            ),
        ),
        ("xl/_rels/workbook.xml.rels", relations("worksheet", "worksheets/sheet1.xml")),
        ("xl/worksheets/sheet1.xml", format!("<worksheet {main}><sheetData>{cells}</sheetData></worksheet>")),
    ];
    let mut writer = zip::ZipWriter::new(Cursor::new(Vec::new()));
    for (name, text) in parts {
        writer.start_file(name, zip::write::SimpleFileOptions::default()).unwrap();
        writer.write_all(text.as_bytes()).unwrap();
    }
    writer.finish().unwrap().into_inner()
}

#[test]
fn a_workbook_is_copied_beside_its_pages() {
    let journal = Journal::start();
    let scratch = journal.project(60_000);
    let bytes = workbook(&[&["DOI", "Final diagnosis1"], &["10.12659/AJCR.4", "A"]]);
    scratch.write("Case list.xlsx", &bytes);
    let run = fetch(&scratch, 0, &["--list", "Case list.xlsx"]).stdout;
    assert!(run.starts_with("Case list.xlsx: 1 rows\nlisted 1,") && run.contains("fetched 1, kept 0"), "{run}");
    assert_eq!(std::fs::read(scratch.path("raw/ajcr/Case list.xlsx")).unwrap(), bytes);
    // It is what the next run reads.
    assert!(fetch(&scratch, 0, &[]).stdout.contains("fetched 0, kept 1"));
    // Another list of this name is not lost.
    scratch.write("Case list.xlsx", workbook(&[&["DOI"], &["AJCR5"]]));
    let refused = fetch(&scratch, 3, &["--list", "Case list.xlsx"]).stderr;
    assert!(refused.contains("is another list than Case list.xlsx; --update replaces it"), "{refused}");
    scratch.write("list.txt", "DOI\tPMID\nAJCR5\t1\n");
    assert!(fetch(&scratch, 0, &["--list", "list.txt"]).stdout.starts_with("list.csv: 1 rows"));
}

#[test]
fn lists_and_arguments_that_cannot_be_meant_are_refused() {
    let journal = Journal::start();
    let scratch = journal.project(60_000);
    let refused = |code: i32, arguments: &[&str]| {
        scratch.run_expecting(code, &[&["sources", "fetch"], arguments].concat()).stderr
    };
    assert!(
        refused(2, &["ajcr"]).contains("raw/ajcr holds no list of articles (*.csv or *.xlsx); give one with --list")
    );
    assert!(!scratch.path("raw/ajcr").exists());
    assert!(refused(2, &["ajcr", "--list", "none.csv"]).contains("--list none.csv: "));
    assert!(refused(2, &["ajcr", "--dry-run"]).contains("pages take --list, --limit and --update alone"));
    assert!(refused(2, &["pmc", "--list", "x.csv"]).contains("--list is for pages of ajcr"));
    scratch.write("titles.csv", "Title,Digital object\nA,B\n");
    assert!(
        refused(3, &["ajcr", "--list", "titles.csv"])
            .contains("titles.csv: no column is named DOI; the columns found are Title, Digital object")
    );
    assert!(!scratch.path("raw/ajcr/titles.csv").exists());
    scratch.edit("sources/ajcr.toml", "hosts = ['127.0.0.1']", "hosts = ['example.org']");
    assert!(refused(2, &["ajcr"]).contains("ajcr.resolver: `127.0.0.1` is not among ajcr.hosts"));
    assert!(journal.asked().is_empty());
}

#[test]
fn the_summary_has_a_row_for_each_article_and_each_page() {
    let journal = Journal::start();
    let scratch = journal.project(60_000);
    scratch.write(
        "raw/ajcr/cases.csv",
        "DOI,Final diagnosis1,Final diagnosis2\nAJCR1,Giant cell arteritis,Anaemia\nAJCR2,A,NA\n10.1/x,B,\nAJCR1,C,\n",
    );
    journal.fault("/doi/10.12659/AJCR.2", 404, "", "");
    fetch(&scratch, 4, &[]);
    scratch.write("raw/ajcr/AJCR3.html", "<html><title>Just a moment...</title></html>");
    let check = ["sources", "check", "ajcr", "--summary", "summary.csv"];
    let run = scratch.run_expecting(0, &check);
    assert!(
        run.stdout.ends_with("\nbot_page 1\ninvalid_doi 1\nlisted_twice 1\npage_missing 1\nparsed 1\n"),
        "{}",
        run.stdout
    );
    expect![[r#"
        ajcr_id,doi,file,status,detail,n_cases,n_sections,n_paragraphs,n_figures,n_tables,n_image_tables,n_references,n_diagnoses
        AJCR1,10.12659/AJCR.1,ajcr/AJCR1.html,parsed,,1,1,1,0,0,0,0,2
        AJCR3,10.12659/AJCR.3,ajcr/AJCR3.html,bot_page,"the page says `Just a moment`, and is no article: title `Just a moment...`",0,0,0,0,0,0,0,0
        AJCR2,10.12659/AJCR.2,ajcr/cases.csv,page_missing,line 3,0,0,0,0,0,0,0,1
        ,10.1/x,ajcr/cases.csv,invalid_doi,line 4: `10.1/x` is no DOI of the journal,0,0,0,0,0,0,0,1
        AJCR1,10.12659/AJCR.1,ajcr/cases.csv,listed_twice,"line 5: AJCR1 is listed before, in ajcr/cases.csv, line 2",0,0,0,0,0,0,0,1
    "#]]
    .assert_eq(&scratch.read("summary.csv"));
    let document = scratch.json(&check);
    assert_eq!(
        document["summary"],
        json!({"bot_page": 1, "invalid_doi": 1, "listed_twice": 1, "page_missing": 1, "parsed": 1})
    );
    let refused = scratch.run_expecting(2, &["sources", "check", "medqa", "--summary", "summary.csv"]).stderr;
    assert!(refused.contains("sources/medqa.toml has no [ajcr]: only its pages have a summary"), "{refused}");
}
