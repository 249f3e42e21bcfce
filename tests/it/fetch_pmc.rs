//! `casemill sources fetch pmc` against a server on loopback that plays the services of PubMed Central and their faults.

use crate::support::{Run, Scratch, hashes};
use casemill::service::fetch::md5_of;
use expect_test::expect;
use serde_json::{Value, json};
use std::collections::BTreeMap;
use std::io::{BufRead, BufReader, Write};
use std::net::{SocketAddr, TcpListener, TcpStream};
use std::sync::{Arc, Mutex, MutexGuard};

/// What the services have.
#[derive(Default)]
struct World {
    /// Objects of the store, by key.
    store: BTreeMap<String, Vec<u8>>,
    /// Word of a query → PMIDs.
    found: Vec<(&'static str, Vec<u32>)>,
    /// PMID → PMCID.
    ids: BTreeMap<u32, &'static str>,
    /// PMCID → record and XML of Europe PMC.
    europe: BTreeMap<&'static str, (Value, String)>,
    /// Answers that come before the proper one: path → status, headers, body.
    faults: BTreeMap<String, Vec<(u16, String, String)>>,
    /// What was asked: path with query, and whether it was conditional.
    asked: Vec<(String, bool)>,
    /// A total that `esearch` announces besides the one it has.
    announced_more: u32,
}

/// The services on one port: `/s3/`, `/eutils/`, `/idconv/`, `/europepmc/`.
struct Services {
    address: SocketAddr,
    world: Arc<Mutex<World>>,
}

impl Services {
    fn start(world: World) -> Self {
        let listener = TcpListener::bind("127.0.0.1:0").unwrap();
        let address = listener.local_addr().unwrap();
        let world = Arc::new(Mutex::new(world));
        let shared = world.clone();
        std::thread::spawn(move || {
            for stream in listener.incoming() {
                // A client that has gone away is its own business.
                let _ = serve(stream.unwrap(), &shared);
            }
        });
        Self { address, world }
    }

    fn world(&self) -> MutexGuard<'_, World> {
        self.world.lock().unwrap()
    }

    /// What was asked since the last time.
    fn asked(&self) -> Vec<(String, bool)> {
        std::mem::take(&mut self.world().asked)
    }

    fn fault(&self, path: &str, status: u16, headers: &str, body: &str) {
        let fault = (status, headers.to_owned(), body.to_owned());
        self.world().faults.entry(path.to_owned()).or_default().push(fault);
    }

    /// A project whose services are these.
    fn project(&self) -> Scratch {
        let mut scratch = Scratch::empty();
        let text = scratch.read("sources/pmc.toml");
        let settings = text.split("[pmc]").next().unwrap();
        let host = format!("http://{}", self.address);
        scratch.write(
            "sources/pmc.toml",
            format!(
                "{settings}[pmc]\nsearch = 'eutils'\nresolvers = ['opendata', 'europepmc']\npublished_before = '2025-09-01'\n\
                 sentinels = ['PMC1']\nopendata = '{host}/s3'\neuropepmc = '{host}/europepmc/'\neutils = '{host}/eutils/'\n\
                 id_converter = '{host}/idconv/'\nemail_variable = 'NCBI_EMAIL'\nkey_variable = 'NCBI_API_KEY'\n\
                 max_bytes_per_file = 10_000\nmax_bytes_per_article = 15_000\nopendata_requests_per_minute = 60_000\n"
            ),
        );
        scratch.set_env("SOURCE_DATE_EPOCH", "1796000000");
        scratch.set_env("NCBI_API_KEY", "the-secret-key");
        scratch.set_env("NCBI_EMAIL", "curator@example.org");
        scratch
    }
}

fn serve(mut stream: TcpStream, world: &Mutex<World>) -> std::io::Result<()> {
    let mut reader = BufReader::new(stream.try_clone()?);
    let (mut line, mut target, mut etag) = (String::new(), String::new(), None);
    while reader.read_line(&mut line)? > 2 {
        if target.is_empty() {
            target = line.split(' ').nth(1).unwrap_or_default().to_owned();
        } else if let Some((_, value)) =
            line.split_once(": ").filter(|(name, _)| name.eq_ignore_ascii_case("if-none-match"))
        {
            etag = Some(value.trim().to_owned());
        }
        line.clear();
    }
    let (status, headers, body) = world.lock().unwrap().answer(&target, etag.as_deref());
    write!(stream, "HTTP/1.1 {status} Status\r\n{headers}Content-Length: {}\r\nConnection: close\r\n\r\n", body.len())?;
    stream.write_all(&body)
}

impl World {
    fn answer(&mut self, target: &str, etag: Option<&str>) -> (u16, String, Vec<u8>) {
        let url = url::Url::parse(&format!("http://services{target}")).unwrap();
        let query: BTreeMap<String, String> = url.query_pairs().into_owned().collect();
        let get = |key: &str| query.get(key).map(String::as_str).unwrap_or_default();
        self.asked.push((target.to_owned(), etag.is_some()));
        if let Some(faults) = self.faults.get_mut(url.path()).filter(|faults| !faults.is_empty()) {
            let (status, headers, body) = faults.remove(0);
            return (status, headers, body.into_bytes());
        }
        let text = |text: String| (200, String::new(), text.into_bytes());
        match url.path() {
            "/s3/" => text(self.listing(get("prefix"), get("delimiter"), get("continuation-token"))),
            "/eutils/esearch.fcgi" => text(self.esearch(get("term"), get("retstart"), get("retmax"))),
            "/idconv/" => text(self.convert(get("ids"))),
            "/europepmc/search" => text(self.europe_search(get("query"), get("cursorMark"))),
            path => {
                let object = path.strip_prefix("/s3/").map(|key| key.replace("%20", " "));
                if let Some(body) = object.and_then(|key| self.store.get(&key)) {
                    let tag = format!("\"{}\"", md5_of(&mut body.as_slice()).unwrap());
                    let headers = format!("ETag: {tag}\r\n");
                    return if etag == Some(tag.as_str()) {
                        (304, headers, Vec::new())
                    } else {
                        (200, headers, body.clone())
                    };
                }
                let id = path.strip_prefix("/europepmc/").and_then(|path| path.strip_suffix("/fullTextXML"));
                match id.and_then(|id| self.europe.get(id)) {
                    Some((_, xml)) if !xml.is_empty() => text(xml.clone()),
                    _ => (404, String::new(), b"<html>not here</html>".to_vec()),
                }
            }
        }
    }

    /// Pages of two entries.
    fn listing(&self, prefix: &str, delimiter: &str, token: &str) -> String {
        let mut entries: Vec<String> = Vec::new();
        for (key, body) in self.store.iter().filter(|(key, _)| key.starts_with(prefix)) {
            let folder = key[prefix.len()..].split_once('/').filter(|_| !delimiter.is_empty());
            let entry = match folder {
                Some((rest, _)) => format!("<CommonPrefixes><Prefix>{prefix}{rest}/</Prefix></CommonPrefixes>"),
                None => format!("<Contents><Key>{key}</Key><Size>{}</Size></Contents>", body.len()),
            };
            if !entries.contains(&entry) {
                entries.push(entry);
            }
        }
        let start: usize = token.parse().unwrap_or(0);
        let page = entries.iter().skip(start).take(2).cloned().collect::<String>();
        let next = (start + 2 < entries.len())
            .then(|| format!("<NextContinuationToken>{}</NextContinuationToken>", start + 2));
        format!(
            r#"<?xml version="1.0" encoding="UTF-8"?><ListBucketResult xmlns="http://s3.amazonaws.com/doc/2006-03-01/"><IsTruncated>{}</IsTruncated>{}{page}</ListBucketResult>"#,
            next.is_some(),
            next.unwrap_or_default()
        )
    }

    fn hits(&self, query: &str) -> Vec<u32> {
        let query = query.to_lowercase();
        self.found.iter().filter(|(word, _)| query.contains(word)).flat_map(|(_, pmids)| pmids.clone()).collect()
    }

    /// Pages of two ids, whatever was asked for.
    fn esearch(&self, term: &str, start: &str, most: &str) -> String {
        let (start, most): (usize, usize) = (start.parse().unwrap(), most.parse().unwrap());
        let pmids = self.hits(term);
        let page: Vec<String> = pmids.iter().skip(start).take(most.min(2)).map(ToString::to_string).collect();
        let count = pmids.len() + usize::try_from(self.announced_more).unwrap();
        json!({"header": {}, "esearchresult": {"count": count.to_string(), "retmax": page.len().to_string(), "retstart": start.to_string(), "idlist": page, "querytranslation": "as asked"}}).to_string()
    }

    fn convert(&self, ids: &str) -> String {
        let record = |pmid: &str| match self.ids.get(&pmid.parse().unwrap()) {
            Some(pmcid) => json!({"pmid": pmid.parse::<u32>().unwrap(), "pmcid": pmcid, "requested-id": pmid}),
            None => json!({"pmid": pmid, "status": "error", "errmsg": "Identifier not found in PMC"}),
        };
        json!({"status": "ok", "records": ids.split(',').map(record).collect::<Vec<_>>()}).to_string()
    }

    /// Pages of one record; the last cursor comes again.
    fn europe_search(&self, query: &str, cursor: &str) -> String {
        let records: Vec<Value> = match query.strip_prefix("PMCID:") {
            Some(id) => self.europe.get(id).map(|(record, _)| record.clone()).into_iter().collect(),
            None => {
                let record = |pmid: u32| json!({"id": pmid.to_string(), "source": "MED", "pmid": pmid.to_string(), "pmcid": self.ids.get(&pmid)});
                self.hits(query).into_iter().map(record).collect()
            }
        };
        let start: usize = cursor.parse().unwrap_or(0);
        let page: Vec<&Value> = records.iter().skip(start).take(1).collect();
        let next = (start + page.len()).to_string();
        json!({"version": "6.9", "hitCount": records.len(), "nextCursorMark": next, "request": {"synonym": false}, "resultList": {"result": page}}).to_string()
    }

    /// An article of the store; `media` is what its folder holds, all of it named by the record.
    fn put(&mut self, id: &str, version: u32, xml: &str, media: &[(&str, &[u8])], more: Value) {
        let name = format!("{id}.{version}");
        let mut address = |file: &str, body: &[u8]| {
            let key = format!("{name}/{file}");
            let md5 = md5_of(&mut &*body).unwrap();
            self.store.insert(key.clone(), body.to_vec());
            format!("s3://pmc-oa-opendata/{key}?md5={md5}")
        };
        let mut record = json!({
            "pmcid": id, "version": version, "pmid": 7, "is_pmc_openaccess": true, "is_manuscript": false, "is_retracted": false,
            "license_code": "CC BY", "xml_url": address(&format!("{name}.xml"), xml.as_bytes()),
            "text_url": address(&format!("{name}.txt"), b"text"),
            "media_urls": media.iter().map(|(file, body)| address(file, body)).collect::<Vec<_>>(),
        });
        for (key, value) in more.as_object().unwrap() {
            record[key] = value.clone();
        }
        self.store.insert(format!("metadata/{name}.json"), record.to_string().into_bytes());
    }
}

fn article(text: &str) -> String {
    format!("<?xml version=\"1.0\"?><article><front/><body><p>{text}</p></body></article>")
}

const NO_BODY: &str = "<article><!-- publisher note --><front><abstract><p>Short.</p></abstract></front></article>";
const JPEG: &[u8] = b"\xff\xd8\xff\xe0 a picture";
const GIF: &[u8] = b"GIF89a another picture";

/// One article of each kind.
fn world() -> World {
    let mut world = World {
        found: vec![
            ("dermatology", vec![1012, 1020]),
            ("neurology", vec![1030, 1012, 1040, 1041, 1999]),
            ("radiology", vec![1050, 1060, 1012, 1070, 1080]),
        ],
        ids: BTreeMap::from([
            (1012, "PMC12"),
            (1020, "PMC20"),
            (1030, "PMC30"),
            (1040, "PMC40"),
            (1041, "PMC41"),
            (1050, "PMC50"),
            (1060, "PMC60"),
            (1070, "PMC70"),
            (1080, "PMC80"),
        ]),
        ..World::default()
    };
    world.put("PMC1", 1, &article("Known."), &[], json!({}));
    let media: &[(&str, &[u8])] =
        &[("g 1.jpg", JPEG), ("g1.gif", GIF), ("film.avi", b"RIFF\0\0\0\0AVI "), ("big.png", &[0x89; 20_000])];
    world.put("PMC12", 9, &article("Old."), &[], json!({}));
    world.put("PMC12", 10, &article("A man."), media, json!({}));
    world.put("PMC123", 77, &article("Another."), &[], json!({}));
    world.put("PMC20", 1, &article("Closed."), &[("g1.jpg", JPEG)], json!({"is_pmc_openaccess": false}));
    world.put("PMC30", 1, &article("Withdrawn."), &[], json!({"is_retracted": true, "license_code": null}));
    world.put("PMC40", 1, NO_BODY, &[("g1.jpg", JPEG)], json!({"is_manuscript": true}));
    world.put("PMC41", 1, NO_BODY, &[("g1.jpg", JPEG)], json!({}));
    // A record that does not speak of media: what lies in the folder is taken.
    world.put("PMC70", 2, &article("A child."), &[("g1.tif", b"II*\0 picture")], json!({"media_urls": null}));
    // A record that is not the one asked for.
    world.put("PMC80", 1, &article("A woman."), &[], json!({"pmcid": "PMC81"}));
    let record = json!({"id": "1060", "source": "MED", "pmid": "1060", "pmcid": "PMC60", "isOpenAccess": "Y", "license": "cc by-nc", "pubTypeList": {"pubType": ["Case Reports"]}});
    world.europe.insert("PMC1", (json!({"pmcid": "PMC1"}), article("Known.")));
    world.europe.insert("PMC40", (json!({"pmcid": "PMC40"}), article("Found elsewhere.")));
    world.europe.insert("PMC60", (record, article("Here alone.")));
    world
}

/// All files of the raw folder but the lock of the process.
fn files(scratch: &Scratch) -> BTreeMap<String, String> {
    let mut files = hashes(&scratch.path("raw/pmc"));
    files.remove(".fetch.lock");
    files
}

const FETCH: [&str; 4] = ["sources", "fetch", "pmc", "--quiet"];

fn fetch(scratch: &Scratch, code: i32, more: &[&str]) -> Run {
    scratch.run_expecting(code, &[&FETCH, more].concat())
}

#[test]
fn the_whole_path_from_searches_to_files() {
    let services = Services::start(world());
    let scratch = services.project();
    let first = fetch(&scratch, 3, &[]);
    expect![[r#"
        eutils searched on 2026-11-30, published before 2025-09-01
          Dermatology: 2 hits
          Emergency Medicine: 0 hits
          Internal Medicine: 0 hits
          Nephrology: 0 hits
          Neurology: 5 hits
          Oncology: 0 hits
          Ophthalmology: 0 hits
          Radiology: 5 hits
        found 12, unique 10, 1 of them not in PubMed Central
        selected 9 articles (Dermatology 2, Neurology 3, Radiology 4)
        resolved 7, of these not open access 1; absent 1
        complete 5, without body 1, failed 1
        marked as retracted 1, manuscripts 1
        files: fetched 11, kept 0, updated 0, failed 0, left out 2
        raw/pmc/source.toml is not there: write snapshot, licence, access and llm_egress of these files into it
    "#]]
    .assert_eq(&first.stdout);
    expect![[r#"
        casemill: 1 of 9 articles are not as they should be:
        PMC80: the record of PMC80.1 is one of PMC81.1
    "#]]
    .assert_eq(&first.stderr);
    let before = files(&scratch);
    let names: Vec<&str> = before.keys().map(String::as_str).collect();
    assert_eq!(
        names,
        [
            "PMC12.10/PMC12.10.xml",
            "PMC12.10/film.avi",
            "PMC12.10/g 1.jpg",
            "PMC12.10/g1.gif",
            "PMC30.1/PMC30.1.xml",
            "PMC40.1/PMC40.1.xml",
            "PMC40.1/g1.jpg",
            "PMC41.1/PMC41.1.xml",
            "PMC60.0/PMC60.0.xml",
            "PMC70.2/PMC70.2.xml",
            "PMC70.2/g1.tif",
            "fetch.lock.json",
            "metadata/PMC12.10.json",
            "metadata/PMC20.1.json",
            "metadata/PMC30.1.json",
            "metadata/PMC40.1.json",
            "metadata/PMC41.1.json",
            "metadata/PMC60.0.json",
            "metadata/PMC70.2.json",
            "metadata/PMC80.1.json",
            "outcomes.jsonl",
            "search.json",
            "selection.jsonl",
        ]
    );
    expect![[r#"
        {"pmcid":"PMC12","version":10,"specialty":"Dermatology","found_by":["Dermatology","Neurology","Radiology"]}
        {"pmcid":"PMC30","version":1,"specialty":"Neurology","found_by":["Neurology"]}
        {"pmcid":"PMC40","version":1,"specialty":"Neurology","found_by":["Neurology"]}
        {"pmcid":"PMC41","version":1,"specialty":"Neurology","found_by":["Neurology"]}
        {"pmcid":"PMC60","version":0,"specialty":"Radiology","found_by":["Radiology"]}
        {"pmcid":"PMC70","version":2,"specialty":"Radiology","found_by":["Radiology"]}
    "#]]
    .assert_eq(&scratch.read("raw/pmc/selection.jsonl"));
    let outcomes = scratch.read("raw/pmc/outcomes.jsonl");
    let outcomes: Vec<Value> = outcomes.lines().map(|line| serde_json::from_str(line).unwrap()).collect();
    let shown: Vec<String> = outcomes
        .iter()
        .map(|one| {
            let text = |key: &str| one[key].as_str().unwrap_or("-").to_owned();
            format!("{} {} {} {}: {}", text("pmcid"), text("outcome"), text("service"), text("licence"), one["remarks"])
        })
        .collect();
    expect![[r#"
        PMC12 fetched opendata CC BY: ["big.png has 20000 bytes, 10000 are allowed"]
        PMC20 not_open_access opendata CC BY: []
        PMC30 fetched opendata -: []
        PMC40 fetched opendata CC BY: ["the XML is that of 127.0.0.1: the archive's has no body"]
        PMC41 metadata_only opendata CC BY: []
        PMC50 absent - -: []
        PMC60 fetched europepmc CC BY-NC: []
        PMC70 fetched opendata CC BY: []
        PMC80 failed - -: ["the record of PMC80.1 is one of PMC81.1"]"#]]
    .assert_eq(&shown.join("\n"));
    assert_eq!(outcomes[2]["is_retracted"], true);
    assert_eq!(outcomes[0]["versions"], json!([9, 10]));
    assert!(scratch.read("raw/pmc/PMC40.1/PMC40.1.xml").contains("Found elsewhere."));
    let search: Value = serde_json::from_str(&scratch.read("raw/pmc/search.json")).unwrap();
    assert_eq!(search["searches"][7]["announced"], 5);
    assert_eq!(search["searches"][7]["pages"], 3);
    assert_eq!(search["searches"][7]["found"], json!(["PMC12", "PMC50", "PMC60", "PMC70", "PMC80"]));
    assert!(search["searches"][7]["query"].as_str().unwrap().contains("\"2025/08/31\"[Date - Publication]"));
    let lock: Value = serde_json::from_str(&scratch.read("raw/pmc/fetch.lock.json")).unwrap();
    let picture = &lock["files"]["PMC12.10/g 1.jpg"];
    assert_eq!(picture["md5"], md5_of(&mut &*JPEG).unwrap());
    assert_eq!((&picture["licence"], &picture["fetched"]), (&json!("CC BY"), &json!("2026-11-30")));
    assert_eq!(lock["files"]["PMC30.1/PMC30.1.xml"].get("licence"), None);
    // The key goes to NCBI alone, and is written nowhere.
    let asked = services.asked();
    let with_key = |path: &str| path.contains("the-secret-key");
    assert!(asked.iter().all(|(path, _)| with_key(path) == path.starts_with("/eutils/")));
    for name in before.keys() {
        let text = std::fs::read(scratch.path(&format!("raw/pmc/{name}"))).unwrap();
        let text = String::from_utf8_lossy(&text);
        assert!(!text.contains("the-secret-key") && !text.contains("curator@example.org"), "{name}");
    }
    // The other articles that begin with the same digits were never touched.
    assert!(asked.iter().all(|(path, _)| !path.contains("PMC123") && !path.contains("PMC12.9/")));

    let second = fetch(&scratch, 3, &[]);
    assert!(second.stdout.starts_with("eutils searched earlier, on 2026-11-30"), "{}", second.stdout);
    assert!(second.stdout.contains("files: fetched 0, kept 11, updated 0, failed 0"), "{}", second.stdout);
    assert_eq!(files(&scratch), before);
    let asked = services.asked();
    assert!(!asked.iter().any(|(path, _)| path.starts_with("/eutils/")));
    // Records are asked for with their tag; files whose hash an unchanged record names are not asked for at all.
    let of = |part: &str| -> Vec<&(String, bool)> { asked.iter().filter(|(path, _)| path.contains(part)).collect() };
    assert_eq!(of("/metadata/PMC12.10.json"), [&("/s3/metadata/PMC12.10.json".to_owned(), true)]);
    assert_eq!(of("/s3/PMC70.2/g1.tif"), [&("/s3/PMC70.2/g1.tif".to_owned(), true)]);
    assert!(of("/s3/PMC12.10/").is_empty());

    let document = scratch.json(&FETCH);
    assert_eq!((&document["complete"], &document["search"]["unique"]), (&json!(5), &json!(10)));
    assert_eq!(document["by_specialty"], json!({"Dermatology": 2, "Neurology": 3, "Radiology": 4}));
}

/// One article with two pictures, and a list that names it.
fn one_article() -> (Services, Scratch) {
    let mut world = world();
    world.put("PMC7", 1, &article("A man."), &[("a.jpg", JPEG), ("b.jpg", JPEG)], json!({}));
    let services = Services::start(world);
    let scratch = services.project();
    scratch.write("ids.txt", "PMC7 Radiology\n");
    (services, scratch)
}

const IDS: [&str; 2] = ["--ids", "ids.txt"];

#[test]
fn a_changed_article_is_refused_until_it_is_asked_for() {
    let (services, scratch) = one_article();
    let fetched = fetch(&scratch, 0, &IDS);
    assert!(fetched.stdout.starts_with("selected 1 articles (Radiology 1)\nresolved 1,"), "{}", fetched.stdout);
    let before = files(&scratch);
    services.world().put("PMC7", 1, &article("A woman."), &[("a.jpg", JPEG), ("b.jpg", GIF)], json!({}));
    let refused = fetch(&scratch, 3, &IDS).stderr;
    assert!(refused.contains("PMC7: metadata/PMC7.1.json: changed: the lock file has sha256"), "{refused}");
    assert_eq!(files(&scratch)["PMC7.1/PMC7.1.xml"], before["PMC7.1/PMC7.1.xml"]);
    let updated = fetch(&scratch, 0, &[&IDS[..], &["--update"]].concat()).stdout;
    assert!(updated.contains("files: fetched 0, kept 1, updated 2, failed 0"), "{updated}");
    assert!(scratch.read("raw/pmc/PMC7.1/PMC7.1.xml").contains("A woman."));
    // A list without specialties does not forget what was known.
    scratch.write("ids.txt", "PMC7\n");
    fetch(&scratch, 0, &IDS);
    assert!(scratch.read("raw/pmc/selection.jsonl").contains(r#""specialty":"Radiology""#));
}

#[test]
fn http_03_services_that_are_busy_are_waited_for() {
    let (services, scratch) = one_article();
    let busy = r#"{"error":"API rate limit exceeded"}"#;
    services.fault("/s3/", 429, "Retry-After: 1\r\n", busy);
    services.fault("/s3/PMC7.1/a.jpg", 503, "", "<Error><Code>SlowDown</Code></Error>");
    let start = std::time::Instant::now();
    let run = scratch.run_expecting(0, &["sources", "fetch", "pmc", "--ids", "ids.txt"]);
    assert!(start.elapsed() >= std::time::Duration::from_secs(1));
    assert!(run.stderr.contains("/s3/: the server answered 429 Too Many Requests; again in"), "{}", run.stderr);
    assert!(run.stderr.contains("PMC7.1/a.jpg: the server answered 503"), "{}", run.stderr);
    assert_eq!(std::fs::read(scratch.path("raw/pmc/PMC7.1/a.jpg")).unwrap(), JPEG);
}

#[test]
fn http_04_a_page_instead_of_a_picture_is_blocked_and_the_next_run_goes_on() {
    let (services, scratch) = one_article();
    services.fault(
        "/s3/PMC7.1/b.jpg",
        200,
        "Content-Type: image/jpeg\r\n",
        "<!DOCTYPE html><title>Just a moment…</title>",
    );
    let blocked = fetch(&scratch, 3, &IDS);
    expect![[r#"
        casemill: 1 of 1 articles are not as they should be:
        PMC7: b.jpg: blocked: the server sent a bot-check page titled "Just a moment…" instead of image
    "#]]
    .assert_eq(&blocked.stderr);
    assert!(blocked.stdout.contains("files: fetched 2, kept 0, updated 0, failed 1"), "{}", blocked.stdout);
    assert!(!scratch.path("raw/pmc/PMC7.1/b.jpg").exists());
    assert!(!scratch.read("raw/pmc/fetch.lock.json").contains("b.jpg"));
    let again = fetch(&scratch, 0, &IDS).stdout;
    assert!(again.contains("files: fetched 1, kept 2, updated 0, failed 0"), "{again}");
}

#[test]
fn bytes_that_are_not_those_of_the_record_are_asked_for_again() {
    let (services, scratch) = one_article();
    // A picture, but another one.
    services.fault("/s3/PMC7.1/b.jpg", 200, "", "GIF89a not this one");
    let run = scratch.run_expecting(0, &["sources", "fetch", "pmc", "--ids", "ids.txt"]);
    assert!(
        run.stderr.contains("PMC7.1/b.jpg: its md5 is ") && run.stderr.contains("the service says"),
        "{}",
        run.stderr
    );
    assert_eq!(std::fs::read(scratch.path("raw/pmc/PMC7.1/b.jpg")).unwrap(), JPEG);
}

#[test]
fn pmc_01_a_service_without_known_articles_stops_the_run() {
    let (services, scratch) = one_article();
    let moved = |scratch: &Scratch| fetch(scratch, 3, &IDS).stderr;
    // The store is there, but has nothing.
    let store = std::mem::take(&mut services.world().store);
    let empty = moved(&scratch);
    assert!(
        empty.contains("127.0.0.1 has no version of PMC1, which is known to be open: the store has moved"),
        "{empty}"
    );
    // The store is not there.
    services.world().store = store;
    services.fault("/s3/", 404, "", "<html>gone</html>");
    let gone = moved(&scratch);
    assert!(gone.contains("127.0.0.1 answers 404 to a listing: the service is not there"), "{gone}");
    // Its records are not there.
    let record = services.world().store.remove("metadata/PMC1.1.json").unwrap();
    let without = moved(&scratch);
    assert!(without.contains("127.0.0.1 answers 404 to the record of PMC1"), "{without}");
    services.world().store.insert("metadata/PMC1.1.json".to_owned(), record);
    // Nor is the one that comes next taken at its word.
    scratch.write("ids.txt", "PMC999\n");
    services.world().europe.clear();
    let next = moved(&scratch);
    assert!(next.contains("127.0.0.1 answers 404 to the XML of PMC1"), "{next}");
    assert!(!scratch.path("raw/pmc/outcomes.jsonl").exists());
}

#[test]
fn http_01_http_02_europe_pmc_is_searched_by_cursor_and_hits_collapse() {
    let services = Services::start(world());
    let scratch = services.project();
    let document = scratch.json(&[&FETCH[..], &["--from", "europepmc,opendata", "--dry-run"]].concat());
    let search = &document["search"];
    assert_eq!(
        (&search["service"], &search["found"], &search["unique"]),
        (&json!("europepmc"), &json!(12), &json!(10))
    );
    assert_eq!(search["without_pmcid"], 1);
    assert_eq!(search["differences"].as_array().unwrap().len(), 8);
    assert_eq!(document["by_specialty"], json!({"Dermatology": 2, "Neurology": 3, "Radiology": 4}));
    assert!(!scratch.path("raw/pmc").exists());
    // Five hits of one each: the cursor that comes again ends the search.
    let radiology = services.asked().into_iter().filter(|(path, _)| path.contains("radiology")).count();
    assert_eq!(radiology, 6);
    // By turns: one article of each specialty that has any.
    let few = fetch(&scratch, 0, &["--from", "europepmc,opendata", "--limit", "3"]).stdout;
    assert!(few.contains("selected 3 articles (Dermatology 1, Neurology 1, Radiology 1)"), "{few}");
    assert!(few.contains("not as published: humans[Filter]"), "{few}");
}

#[test]
fn a_search_that_is_not_whole_is_none() {
    let services = Services::start(World { announced_more: 3, ..world() });
    let scratch = services.project();
    let error = fetch(&scratch, 3, &[]).stderr;
    assert!(
        error.contains("searching eutils for Dermatology") && error.contains("2 hits in 2 pages, but announced 5"),
        "{error}"
    );
    services.world().announced_more = 20_000;
    let error = fetch(&scratch, 3, &[]).stderr;
    assert!(error.contains("the search has 20002 hits or more, 9999 are allowed"), "{error}");
    services.world().announced_more = 0;
    services.fault("/idconv/", 404, "", "gone");
    let error = fetch(&scratch, 3, &[]).stderr;
    assert!(error.contains("the ID converter at 127.0.0.1: it answers 404: the service has moved"), "{error}");
    assert!(!scratch.path("raw/pmc/search.json").exists());
}

#[test]
fn packages_of_this_machine_are_not_asked_for_elsewhere() {
    let (services, scratch) = one_article();
    scratch.write("in/PMC7.3/PMC7.3.xml", article("From a folder."));
    scratch.write("in/PMC7.3/g1.jpg", JPEG);
    scratch.write("ids.txt", "PMC7 Oncology\nPMC12\n");
    let run = fetch(&scratch, 0, &["--ids", "ids.txt", "--packages", "in"]).stdout;
    assert!(run.contains("complete 2, without body 0, failed 0"), "{run}");
    assert!(scratch.read("raw/pmc/PMC7.3/PMC7.3.xml").contains("From a folder."));
    assert!(services.asked().iter().all(|(path, _)| !path.contains("PMC7")));
    let lock: Value = serde_json::from_str(&scratch.read("raw/pmc/fetch.lock.json")).unwrap();
    assert_eq!(lock["files"]["PMC7.3/g1.jpg"]["url"], "local:PMC7.3/g1.jpg");
    let again = fetch(&scratch, 0, &["--ids", "ids.txt", "--packages", "in"]).stdout;
    assert!(again.contains("fetched 0, kept 6"), "{again}");
    // What a fetch of packages brings is what a source is.
    let check = scratch.run_expecting(0, &["sources", "check", "pmc"]).stdout;
    assert!(check.contains("pmc/PMC7.3/PMC7.3.xml"), "{check}");
}

#[test]
fn arguments_that_cannot_be_meant_are_refused() {
    let services = Services::start(World::default());
    let scratch = services.project();
    let refused = |arguments: &[&str]| scratch.run_expecting(2, &[&["sources", "fetch"], arguments].concat()).stderr;
    assert!(refused(&["medqa", "--limit", "3"]).contains("sources/medqa.toml has no [pmc]"));
    assert!(
        refused(&["pmc", "--from", "ftp"]).contains("`ftp` is no service (known: europepmc, eutils, local, opendata)")
    );
    assert!(refused(&["pmc", "--from", "local"]).contains("the service local needs --packages DIR"));
    assert!(refused(&["pmc", "--ids", "none.txt"]).contains("--ids none.txt: "));
    scratch.write("ids.txt", "PMC1\nPMC2 Surgery\n");
    assert!(refused(&["pmc", "--ids", "ids.txt"]).contains("ids.txt:2: `Surgery` is no specialty of a search"));
    assert!(services.asked().is_empty());
}
