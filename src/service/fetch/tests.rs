use super::kinds::{FileKind, Misfit, Sample, check};
use super::paging::{Hit, Page, Pager, Search, merge_hits, next_offset, normal_doi};
use super::*;
use expect_test::expect;
use serde_json::{Value, json};
use std::collections::HashMap;
use std::sync::{Arc, Mutex};
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::{TcpListener, TcpStream};
use tokio::sync::oneshot;

/// What a server was asked.
#[derive(Clone, Debug)]
struct Request {
    /// With its query.
    path: String,
    /// Names in lower case.
    headers: BTreeMap<String, String>,
    /// How often this path was asked for before.
    nth: usize,
}

impl Request {
    fn header(&self, name: &str) -> Option<&str> {
        self.headers.get(name).map(String::as_str)
    }
}

/// A server on a free port of this machine. It writes what it is told to, byte for byte, and closes the connection.
struct Server {
    address: std::net::SocketAddr,
    requests: Arc<Mutex<Vec<Request>>>,
    stop: Option<oneshot::Sender<()>>,
}

impl Server {
    fn new(answer: impl Fn(&Request) -> Vec<u8> + Send + 'static) -> Self {
        let (send_address, address) = std::sync::mpsc::channel();
        let (stop, stopped) = oneshot::channel::<()>();
        let requests = Arc::new(Mutex::new(Vec::new()));
        let seen = Arc::clone(&requests);
        std::thread::spawn(move || {
            let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap();
            runtime.block_on(async {
                let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
                send_address.send(listener.local_addr().unwrap()).unwrap();
                let serving = async {
                    let mut asked: HashMap<String, usize> = HashMap::new();
                    loop {
                        let (mut stream, _) = listener.accept().await.unwrap();
                        let Some(mut request) = read_request(&mut stream).await else { continue };
                        let nth = asked.entry(request.path.clone()).or_default();
                        request.nth = *nth;
                        *nth += 1;
                        seen.lock().unwrap().push(request.clone());
                        // The client may have had enough.
                        let _ = stream.write_all(&answer(&request)).await;
                        let _ = stream.shutdown().await;
                    }
                };
                select(pin!(serving), stopped).await;
            });
        });
        Self { address: address.recv().unwrap(), requests, stop: Some(stop) }
    }

    fn url(&self, path: &str) -> Url {
        Url::parse(&format!("http://{}{path}", self.address)).unwrap()
    }

    fn requests(&self) -> Vec<Request> {
        self.requests.lock().unwrap().clone()
    }
}

impl Drop for Server {
    fn drop(&mut self) {
        let _ = self.stop.take().map(|stop| stop.send(()));
    }
}

async fn read_request(stream: &mut TcpStream) -> Option<Request> {
    let mut bytes = Vec::new();
    while !bytes.ends_with(b"\r\n\r\n") {
        let mut byte = [0; 1];
        if stream.read(&mut byte).await.ok()? == 0 {
            return None;
        }
        bytes.push(byte[0]);
    }
    let text = String::from_utf8(bytes).unwrap();
    let mut lines = text.lines();
    let path = lines.next()?.split(' ').nth(1)?.to_owned();
    let headers = lines.filter_map(|line| line.split_once(": "));
    let headers = headers.map(|(name, value)| (name.to_lowercase(), value.to_owned())).collect();
    Some(Request { path, headers, nth: 0 })
}

/// An answer; its `Content-Length` is that of the body unless `headers` has one.
fn answer(status: u16, headers: &[(&str, &str)], body: impl AsRef<[u8]>) -> Vec<u8> {
    let mut text = format!("HTTP/1.1 {status} Status\r\nConnection: close\r\n");
    for (name, value) in headers {
        text += &format!("{name}: {value}\r\n");
    }
    if !headers.iter().any(|(name, _)| *name == "Content-Length" || *name == "No-Length") {
        text += &format!("Content-Length: {}\r\n", body.as_ref().len());
    }
    text += "\r\n";
    [text.as_bytes(), body.as_ref()].concat()
}

/// Answers with the bytes that `Range` asks for, if `If-Range` is `etag`.
fn ranged(request: &Request, etag: &str, body: &[u8]) -> Vec<u8> {
    let start = request.header("range").and_then(|range| range.strip_prefix("bytes=")?.strip_suffix('-')?.parse().ok());
    match start {
        Some(start) if request.header("if-range") == Some(etag) => {
            let range = format!("bytes {start}-{}/{}", body.len() - 1, body.len());
            answer(206, &[("Content-Range", &range), ("ETag", etag)], &body[start..])
        }
        _ => answer(200, &[("ETag", etag)], body),
    }
}

fn quick() -> FetchOptions<'static> {
    let milliseconds = Duration::from_millis;
    FetchOptions {
        requests_per_minute: 600_000,
        attempts: 4,
        backoff: Backoff { first: milliseconds(4), longest: milliseconds(20), longest_asked: milliseconds(10_000) },
        client: ClientOptions { no_proxy: true, ..ClientOptions::default() },
        ..FetchOptions::default()
    }
}

fn file(url: Url, path: &str, kind: &str) -> FetchFile {
    let kind = FileKind::from_name(kind).unwrap();
    FetchFile::new(url, path, kind, 1 << 20)
}

struct Folder(tempfile::TempDir);

impl Folder {
    fn new() -> Self {
        Self(tempfile::tempdir().unwrap())
    }

    fn path(&self, name: &str) -> PathBuf {
        self.0.path().join(name)
    }

    fn text(&self, name: &str) -> String {
        std::fs::read_to_string(self.path(name)).unwrap()
    }

    /// All but the file that only carries the system's lock.
    fn names(&self) -> Vec<String> {
        fs::list(self.0.path()).unwrap().into_iter().filter(|name| name != lock::HELD_NAME).collect()
    }

    fn try_fetch(&self, files: &[FetchFile], options: &FetchOptions<'_>) -> anyhow::Result<FetchReport> {
        fetch(&FetchPlan { folder: self.0.path().to_owned(), files: files.to_vec() }, options, &|_| {})
    }

    fn fetch(&self, files: &[FetchFile], options: &FetchOptions<'_>) -> Vec<FileState> {
        self.try_fetch(files, options).unwrap().files.into_iter().map(|file| file.state).collect()
    }
}

fn block_on<T>(work: impl Future<Output = anyhow::Result<T>>) -> anyhow::Result<T> {
    tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap().block_on(work)
}

fn why(state: &FileState) -> &str {
    match state {
        FileState::Failed { why } => why,
        other => panic!("{other}"),
    }
}

#[test]
fn http_03_a_limit_is_waited_for_and_its_message_is_no_data() {
    let server = Server::new(|request| match request.nth {
        0 => answer(429, &[("Retry-After", "2")], r#"{"error":"API rate limit exceeded"}"#),
        _ => answer(200, &[], r#"{"ids":[1]}"#),
    });
    let folder = Folder::new();
    let start = Instant::now();
    let waits = RefCell::new(Vec::new());
    let plan = FetchPlan { folder: folder.0.path().to_owned(), files: vec![file(server.url("/a"), "a.json", "json")] };
    let report = fetch(&plan, &quick(), &|progress| {
        if let Progress::Waiting { why, wait, .. } = progress {
            waits.borrow_mut().push((why.to_owned(), wait));
        }
    });
    assert_eq!(report.unwrap().files[0].state, FileState::Fetched);
    assert!(start.elapsed() >= Duration::from_secs(2));
    assert_eq!(server.requests().len(), 2);
    assert_eq!(folder.text("a.json"), r#"{"ids":[1]}"#);
    let waits = waits.into_inner();
    assert_eq!(waits.len(), 1);
    assert_eq!(waits[0].0, "the server answered 429 Too Many Requests");
    assert!(waits[0].1 >= Duration::from_secs(2), "{:?}", waits[0].1);
}

#[test]
fn a_limit_with_a_date_holds_every_file_of_the_host() {
    let server = Server::new(|request| match (request.path.as_str(), request.nth) {
        ("/a", 0) => {
            let date = httpdate::fmt_http_date(SystemTime::now() + Duration::from_secs(1_000));
            answer(503, &[("Retry-After", &date)], "busy")
        }
        _ => answer(200, &[], "text"),
    });
    // Asked for far more, but believed only so far; without a date it would be a few milliseconds.
    let most = Duration::from_millis(400);
    let options = FetchOptions { backoff: Backoff { longest_asked: most, ..quick().backoff }, ..quick() };
    let session = Session::new(&options).unwrap();
    let work = async {
        let busy = session.send(&server.url("/a"), &HeaderMap::new()).await;
        assert!(matches!(busy, Err(Trouble::Again { asked: Some(asked), .. }) if asked > Duration::from_secs(900)));
        let start = Instant::now();
        let other = session.send(&server.url("/b"), &HeaderMap::new()).await;
        assert!(other.is_ok_and(|other| other.response.status() == 200));
        Ok(start.elapsed())
    };
    assert!(block_on(work).unwrap() >= most);
}

#[test]
fn bursts_of_failures_pass() {
    let server = Server::new(|request| match request.nth {
        0 | 1 => answer(500, &[], "<html>oops</html>"),
        // The connection ends before an answer.
        2 => Vec::new(),
        _ => answer(200, &[], "x,y\n1,2\n"),
    });
    let folder = Folder::new();
    let files = [file(server.url("/a"), "deep/er/a.csv", "csv")];
    assert_eq!(folder.fetch(&files, &quick()), [FileState::Fetched]);
    assert_eq!(folder.text("deep/er/a.csv"), "x,y\n1,2\n");
    assert_eq!(server.requests().len(), 4);
}

#[test]
fn a_host_that_keeps_failing_is_left_alone() {
    let server = Server::new(|_| answer(503, &[], "down"));
    let well = Server::new(|_| answer(404, &[], "gone"));
    let folder = Folder::new();
    let mut files: Vec<FetchFile> =
        (0..5).map(|n| file(server.url(&format!("/{n}")), &format!("{n}.txt"), "text")).collect();
    // The same machine under another name is another host.
    let mut url = well.url("/gone?key=secret");
    url.set_host(Some("localhost")).unwrap();
    files.push(file(url, "gone.txt", "text"));
    let report = folder.try_fetch(&files, &FetchOptions { attempts: 3, give_up_after: 4, ..quick() }).unwrap();
    assert_eq!(server.requests().len(), 4);
    let text = report.check().unwrap_err().to_string().replace(&server.address.to_string(), "HOST");
    expect![[r#"
        6 of 6 files were not fetched:
        0.txt from http://HOST/0: failed: the server answered 503 Service Unavailable (tried 3 times)
        1.txt from http://HOST/1: failed: 127.0.0.1 failed 4 times in a row and is not asked again
        2.txt from http://HOST/2: failed: 127.0.0.1 failed 4 times in a row and is not asked again
        3.txt from http://HOST/3: failed: 127.0.0.1 failed 4 times in a row and is not asked again
        4.txt from http://HOST/4: failed: 127.0.0.1 failed 4 times in a row and is not asked again
        gone.txt from http://OTHER/gone: failed: the server answered 404 Not Found"#]]
    .assert_eq(&text.replace(&format!("localhost:{}", well.address.port()), "OTHER"));
    assert_eq!(crate::error::code_of(&report.check().unwrap_err()), crate::error::Code::Input);
    assert_eq!(folder.names(), Vec::<String>::new());
}

/// 100 kB that are valid text and differ everywhere.
fn long_text() -> Vec<u8> {
    (0..20_000).flat_map(|n| format!("{n:04x}\n").into_bytes()).collect()
}

#[test]
fn a_cut_file_goes_on_where_it_stopped() {
    let body = long_text();
    let sent = body.clone();
    let server = Server::new(move |request| match request.nth {
        0 => {
            let length = sent.len().to_string();
            answer(200, &[("ETag", "\"v1\""), ("Content-Length", &length)], &sent[..40_000])
        }
        _ => ranged(request, "\"v1\"", &sent),
    });
    let folder = Folder::new();
    let files = [file(server.url("/long"), "long.txt", "text")];
    // Over two calls, as after a crash.
    let options = FetchOptions { attempts: 1, ..quick() };
    let first = folder.fetch(&files, &options);
    assert!(why(&first[0]).starts_with("cut short after 40000 bytes"), "{}", first[0]);
    assert_eq!(folder.names(), ["long.txt.part", "long.txt.part.json"]);
    let report = folder.try_fetch(&files, &options).unwrap();
    assert_eq!(report.files[0].state, FileState::Fetched);
    assert_eq!(report.files[0].received, body.len() as u64 - 40_000);
    assert_eq!(std::fs::read(folder.path("long.txt")).unwrap(), body);
    assert_eq!(folder.names(), ["fetch.lock.json", "long.txt"]);
    let requests = server.requests();
    assert_eq!(requests[0].header("range"), None);
    assert_eq!(requests[1].header("range"), Some("bytes=40000-"));
    assert_eq!(requests[1].header("if-range"), Some("\"v1\""));
    assert_eq!(requests[1].header("user-agent"), Some(http::USER_AGENT));
    let lock = LockFile::load(folder.0.path()).unwrap();
    let locked = lock.get("long.txt").unwrap();
    assert_eq!((&locked.sha256, locked.bytes), (&Hash::of(&body), body.len() as u64));
    assert_eq!(locked.etag.as_deref(), Some("\"v1\""));
}

#[test]
fn a_part_is_never_mixed_with_another_version() {
    let (old, new) = (long_text(), long_text().to_ascii_uppercase());
    let sent = new.clone();
    let cut = move |etag: &str| {
        let length = old.len().to_string();
        answer(200, &[("ETag", etag), ("Content-Length", &length)], &old[..50_000])
    };
    let server = Server::new(move |request| match (request.path.as_str(), request.nth) {
        ("/changed", 0) => cut("\"v1\""),
        // Not asked to go on: a weak tag does not promise the same bytes.
        ("/weak", 0) => cut("W/\"v1\""),
        ("/shifted" | "/longer" | "/other", 0) => cut("\"v2\""),
        ("/shifted", 1) => {
            let range = format!("bytes 49999-{}/{}", sent.len() - 1, sent.len());
            answer(206, &[("Content-Range", &range), ("ETag", "\"v2\"")], &sent[49_999..])
        }
        ("/longer", 1) => {
            let range = format!("bytes 50000-{}/{}", sent.len(), sent.len() + 1);
            answer(206, &[("Content-Range", &range)], [&sent[50_000..], b"x"].concat())
        }
        ("/other", 1) => {
            let range = format!("bytes 50000-{}/{}", sent.len() - 1, sent.len());
            answer(206, &[("Content-Range", &range), ("ETag", "\"v3\"")], &sent[50_000..])
        }
        _ => ranged(request, "\"v2\"", &sent),
    });
    let folder = Folder::new();
    let names = ["changed", "weak", "shifted", "longer", "other"];
    let files = names.map(|name| file(server.url(&format!("/{name}")), name, "text"));
    assert_eq!(folder.fetch(&files, &quick()), vec![FileState::Fetched; names.len()]);
    for name in names {
        assert_eq!(std::fs::read(folder.path(name)).unwrap(), new, "{name}");
    }
    let weak = server.requests().into_iter().find(|request| request.path == "/weak" && request.nth == 1).unwrap();
    assert_eq!(weak.header("range"), None);
}

#[test]
fn a_complete_part_is_finished() {
    let body = long_text();
    let sent = body.clone();
    let server = Server::new(move |request| ranged(request, "\"v1\"", &sent));
    let folder = Folder::new();
    let files = [file(server.url("/a"), "a.txt", "text")];
    // As a crash before the renaming leaves it.
    let state = json!({"url": files[0].url.as_str(), "etag": "\"v1\"", "last_modified": null, "length": body.len()});
    std::fs::write(folder.path("a.txt.part"), &body).unwrap();
    std::fs::write(folder.path("a.txt.part.json"), state.to_string()).unwrap();
    let report = folder.try_fetch(&files, &quick()).unwrap();
    assert_eq!((&report.files[0].state, report.files[0].received), (&FileState::Fetched, 1));
    assert_eq!(std::fs::read(folder.path("a.txt")).unwrap(), body);
    // What is not a state of this file is not trusted.
    let wrong_url = state.to_string().replace("/a", "/b");
    for state in ["", "{}", wrong_url.as_str()] {
        let folder = Folder::new();
        std::fs::write(folder.path("a.txt.part"), "other text").unwrap();
        std::fs::write(folder.path("a.txt.part.json"), state).unwrap();
        assert_eq!(folder.fetch(&files, &quick()), [FileState::Fetched]);
        assert_eq!(std::fs::read(folder.path("a.txt")).unwrap(), body);
    }
}

#[test]
fn lengths_that_do_not_fit_are_failures() {
    let server = Server::new(|request| match request.path.as_str() {
        "/short" => answer(200, &[("Content-Length", "100")], "[1, 2]"),
        "/long" => answer(200, &[("Content-Length", "5")], "[1, 2]"),
        _ => answer(200, &[("No-Length", "")], "[1, "),
    });
    let folder = Folder::new();
    let files = ["short", "long", "open"].map(|name| file(server.url(&format!("/{name}")), name, "json"));
    let states = folder.fetch(&files, &FetchOptions { attempts: 2, give_up_after: 99, ..quick() });
    assert!(why(&states[0]).starts_with("cut short after 6 bytes"), "{}", states[0]);
    assert_eq!(why(&states[1]), "the end of the json is missing (tried 2 times)");
    assert_eq!(why(&states[2]), "the end of the json is missing (tried 2 times)");
    assert_eq!(folder.names(), ["short.part", "short.part.json"]);
}

#[test]
fn giant_files_are_refused() {
    let server = Server::new(|request| match request.path.as_str() {
        "/announced" => answer(200, &[("Content-Length", "1000000000000")], "x"),
        _ => answer(200, &[("No-Length", "")], "x".repeat(300_000)),
    });
    let folder = Folder::new();
    let files = ["announced", "endless"]
        .map(|name| FetchFile { max_bytes: 100_000, ..file(server.url(&format!("/{name}")), name, "text") });
    for state in folder.fetch(&files, &quick()) {
        assert_eq!(why(&state), "the file is larger than the 100000 bytes allowed for it");
    }
    assert_eq!(server.requests().len(), 2);
    assert_eq!(folder.names(), Vec::<String>::new());
}

#[test]
fn redirects_are_followed_where_they_may_lead() {
    let server = Server::new(|request| match request.path.as_str() {
        "/near" => answer(302, &[("Location", "/there?key=secret")], ""),
        "/there?key=secret" => answer(200, &[], "text"),
        "/private" => answer(301, &[("Location", "http://10.0.0.1/x?key=secret")], ""),
        "/metadata" => answer(307, &[("Location", "http://[::ffff:169.254.169.254]/")], ""),
        "/file" => answer(302, &[("Location", "file:///etc/passwd")], ""),
        "/password" => answer(302, &[("Location", "//me:secret@127.0.0.1/")], ""),
        "/nowhere" => answer(302, &[("Location", "http://")], ""),
        _ => answer(308, &[("Location", "/endless")], ""),
    });
    let folder = Folder::new();
    let names = ["near", "private", "metadata", "file", "password", "nowhere", "endless"];
    let files = names.map(|name| file(server.url(&format!("/{name}")), name, "text"));
    let text: Vec<String> = folder.fetch(&files, &quick()).iter().map(FileState::to_string).collect();
    expect![[r#"
        fetched
        failed: redirected to http://10.0.0.1/x, which is not a public address
        failed: redirected to http://[::ffff:a9fe:a9fe]/, which is not a public address
        failed: redirected: file:///etc/passwd is not an http or https address
        failed: redirected: the address http://127.0.0.1/ has a user or password in it
        failed: redirected to what is not an address
        failed: redirected more than 5 times"#]]
    .assert_eq(&text.join("\n"));
    assert_eq!(server.requests().iter().filter(|request| request.path == "/endless").count(), 6);
    assert_eq!(folder.names(), ["fetch.lock.json", "near"]);
}

#[test]
fn a_redirect_never_leads_inwards_or_to_a_less_safe_scheme() {
    let allowed = |origin: &str, from: &str, to: &str| {
        let [origin, from, to] = [origin, from, to].map(|url| Url::parse(url).unwrap());
        block_on(async { Ok(check_redirect(&origin, &from, &to).await.is_ok()) }).unwrap()
    };
    let public = "https://192.88.0.1/";
    assert!(allowed(public, public, "https://8.8.8.8/"));
    assert!(allowed("http://8.8.8.8", "http://8.8.8.8", "https://8.8.8.8/"));
    assert!(!allowed(public, public, "http://8.8.8.8/"));
    for inner in ["https://127.0.0.1/", "https://localhost/", "https://a.localhost/", "https://[::1]/", "https://0/"] {
        assert!(!allowed(public, public, inner), "{inner}");
        assert!(allowed("https://127.0.0.1", "https://127.0.0.1", inner), "{inner}");
        // Nor by way of another public server.
        assert!(!allowed(public, "https://8.8.8.8/", inner), "{inner}");
    }
    for inner in ["https://192.168.1.1/", "https://10.1.2.3/", "https://[fe80::1]/", "https://100.64.0.1/"] {
        assert!(!allowed(public, public, inner), "{inner}");
        assert!(!allowed("https://127.0.0.1", "https://127.0.0.1", inner), "{inner}");
        assert!(allowed("https://172.16.0.1", "https://172.16.0.1", inner), "{inner}");
    }
}

#[test]
fn what_has_not_changed_is_kept() {
    let server = Server::new(|request| match request.path.as_str() {
        "/etag" if request.header("if-none-match") == Some("\"v1\"") => answer(304, &[], ""),
        "/etag" => answer(200, &[("ETag", "\"v1\"")], "one"),
        "/date" if request.header("if-modified-since").is_some() => answer(304, &[], ""),
        "/date" => answer(200, &[("Last-Modified", "Sun, 06 Nov 1994 08:49:37 GMT")], "two"),
        // Another tag for the same bytes.
        "/moving" => answer(200, &[("ETag", &format!("\"{}\"", request.nth))], "three"),
        _ => answer(200, &[], "four"),
    });
    let folder = Folder::new();
    let files = ["etag", "date", "moving", "plain"].map(|name| file(server.url(&format!("/{name}")), name, "text"));
    assert_eq!(folder.fetch(&files, &quick()), vec![FileState::Fetched; 4]);
    let lock = folder.text("fetch.lock.json");
    expect![[r#"
        {
          "format": 1,
          "files": {
            "date": {
              "url": "http://HOST/date",
              "sha256": "3fc4ccfe745870e2c0d99f71f30ff0656c8dedd41cc1d7d3d376b0dbe685e2f3",
              "bytes": 3,
              "last_modified": "Sun, 06 Nov 1994 08:49:37 GMT"
            },
            "etag": {
              "url": "http://HOST/etag",
              "sha256": "7692c3ad3540bb803c020b3aee66cd8887123234ea0c6e7143c0add73ff431ed",
              "bytes": 3,
              "etag": "\"v1\""
            },
            "moving": {
              "url": "http://HOST/moving",
              "sha256": "8b5b9db0c13db24256c829aa364aa90c6d2eba318b9232a4ab9313b954d3555f",
              "bytes": 5,
              "etag": "\"0\""
            },
            "plain": {
              "url": "http://HOST/plain",
              "sha256": "04efaf080f5a3e74e1c29d1ca6a48569382cbbcd324e8d59d2b83ef21c039f00",
              "bytes": 4
            }
          }
        }
    "#]]
    .assert_eq(&lock.replace(&server.address.to_string(), "HOST"));
    assert_eq!(folder.fetch(&files, &quick()), vec![FileState::Kept; 4]);
    let asked: Vec<(String, usize)> =
        server.requests().into_iter().map(|request| (request.path, request.nth)).collect();
    assert_eq!(asked.len(), 7, "{asked:?}");
    assert!(!asked.contains(&("/plain".to_owned(), 1)));
    assert_eq!(folder.text("fetch.lock.json"), lock.replace("\\\"0\\\"", "\\\"1\\\""));
    assert_eq!(folder.fetch(&files, &FetchOptions { update: true, ..quick() }), vec![FileState::Kept; 4]);
    // A file that was lost or spoiled is made good, in any order of the plan; the lock file stays.
    let lock = folder.text("fetch.lock.json").replace("\\\"2\\\"", "\\\"3\\\"");
    std::fs::remove_file(folder.path("date")).unwrap();
    std::fs::write(folder.path("etag"), "spoiled").unwrap();
    let mut reversed = files.to_vec();
    reversed.reverse();
    let states = folder.fetch(&reversed, &quick());
    assert_eq!(states, [FileState::Kept, FileState::Kept, FileState::Fetched, FileState::Fetched]);
    assert_eq!((folder.text("date"), folder.text("etag")), ("two".to_owned(), "one".to_owned()));
    assert_eq!(folder.text("fetch.lock.json"), lock);
}

#[test]
fn changed_content_needs_an_update() {
    let server = Server::new(|request| match request.nth {
        0 => answer(200, &[("ETag", "\"v1\"")], "old"),
        _ => answer(200, &[("ETag", "\"v2\"")], "new"),
    });
    let folder = Folder::new();
    let files = [file(server.url("/a"), "a.txt", "text")];
    assert_eq!(folder.fetch(&files, &quick()), [FileState::Fetched]);
    let lock = folder.text("fetch.lock.json");
    let (old, new) = (Hash::of(b"old"), Hash::of(b"new"));
    let changed = FileState::Changed { locked: old.clone(), found: new.clone() };
    assert_eq!(folder.fetch(&files, &quick())[0], changed);
    assert_eq!((folder.text("a.txt"), folder.text("fetch.lock.json")), ("old".to_owned(), lock));
    // Nor does it come in when the file is not there.
    std::fs::remove_file(folder.path("a.txt")).unwrap();
    assert_eq!(folder.fetch(&files, &quick()), [changed]);
    assert_eq!(folder.names(), ["fetch.lock.json"]);
    let update = FetchOptions { update: true, ..quick() };
    assert_eq!(folder.fetch(&files, &update), [FileState::Updated { before: old }]);
    assert_eq!(folder.text("a.txt"), "new");
    assert_eq!(LockFile::load(folder.0.path()).unwrap().get("a.txt").unwrap().sha256, new);
}

#[test]
fn a_planned_hash_decides() {
    let server = Server::new(|_| answer(200, &[], "text"));
    let folder = Folder::new();
    let (right, wrong) = (Hash::of(b"text"), Hash::of(b"other"));
    let with = |hash: &Hash| [FetchFile { sha256: Some(hash.clone()), ..file(server.url("/a"), "a.txt", "text") }];
    let report = folder.try_fetch(&with(&wrong), &FetchOptions { update: true, ..quick() }).unwrap();
    let message = report.check().unwrap_err().to_string();
    assert!(message.contains(right.as_str()) && message.contains(wrong.as_str()), "{message}");
    assert_eq!(folder.names(), Vec::<String>::new());
    assert_eq!(folder.fetch(&with(&right), &quick()), [FileState::Fetched]);
    assert_eq!(server.requests().len(), 2);
    // It is there: nobody has to be asked, and a lost lock file comes back.
    let lock = folder.text("fetch.lock.json");
    std::fs::remove_file(folder.path("fetch.lock.json")).unwrap();
    assert_eq!(folder.fetch(&with(&right), &quick()), [FileState::Kept]);
    assert_eq!(server.requests().len(), 2);
    assert_eq!(folder.text("fetch.lock.json"), lock);
    // A plan that names another file than the one locked is obeyed.
    std::fs::write(folder.path("fetch.lock.json"), lock.replace(right.as_str(), wrong.as_str())).unwrap();
    std::fs::remove_file(folder.path("a.txt")).unwrap();
    assert_eq!(folder.fetch(&with(&right), &quick()), [FileState::Updated { before: wrong }]);
}

#[test]
fn a_file_of_somebody_else_is_not_overwritten() {
    let server = Server::new(|_| answer(200, &[], "text"));
    let folder = Folder::new();
    let files = [file(server.url("/a"), "a.txt", "text")];
    std::fs::write(folder.path("a.txt"), "mine").unwrap();
    let in_the_way = FileState::InTheWay { present: Hash::of(b"mine"), found: Hash::of(b"text") };
    assert_eq!(folder.fetch(&files, &quick()), [in_the_way]);
    assert_eq!(folder.text("a.txt"), "mine");
    std::fs::write(folder.path("a.txt"), "text").unwrap();
    assert_eq!(folder.fetch(&files, &quick()), [FileState::Kept]);
    assert_eq!(folder.names(), ["a.txt", "fetch.lock.json"]);
}

#[test]
fn http_04_a_bot_check_is_blocked() {
    let page = "<!DOCTYPE html><title>Just a moment…</title>";
    let server = Server::new(move |_| answer(200, &[("Content-Type", "application/pdf"), ("ETag", "\"1\"")], page));
    let folder = Folder::new();
    let kinds = ["pdf", "xml", "html", "gzip", "csv", "text", "json"];
    let files = kinds.map(|kind| file(server.url("/article"), &format!("a.{kind}"), kind));
    let text: Vec<String> = folder.fetch(&files, &quick()).iter().map(FileState::to_string).collect();
    assert_eq!(text[0], "blocked: the server sent a bot-check page titled \"Just a moment…\" instead of pdf");
    for (state, kind) in text.iter().zip(kinds) {
        assert!(state.starts_with("blocked") && state.ends_with(kind), "{state}");
    }
    // Asking again would make it worse.
    assert_eq!(server.requests().len(), kinds.len());
    assert_eq!(folder.names(), Vec::<String>::new());
}

#[test]
fn plans_that_cannot_be_right_are_refused() {
    let url = Url::parse("http://127.0.0.1:9/a").unwrap();
    let mut text = String::new();
    let mut try_plan = |files: Vec<FetchFile>| {
        let error = Folder::new().try_fetch(&files, &quick()).unwrap_err();
        assert_eq!(crate::error::code_of(&error), crate::error::Code::Usage);
        text += &format!("{error:#}\n");
    };
    for path in ["", "/etc/passwd", "../a", "a/../b", "a//b", "a/", "./a", "a\\b", "a.part", "b/fetch.lock.json"] {
        try_plan(vec![file(url.clone(), path, "text")]);
    }
    try_plan(vec![file(url.clone(), "a", "text"), file(url.clone(), "a", "text")]);
    try_plan(vec![file(url.clone(), "a", "text"), file(url.clone(), "a/b/c", "text")]);
    for address in ["ftp://example.org/?key=secret", "http://me:secret@example.org/"] {
        try_plan(vec![file(Url::parse(address).unwrap(), "a", "text")]);
    }
    let upper = serde_json::from_value(Value::from("A".repeat(64))).unwrap();
    try_plan(vec![FetchFile { sha256: Some(upper), ..file(url, "a", "text") }]);
    expect![[r#"
        cannot fetch to ``: it is not a relative name of a file below the raw folder
        cannot fetch to `/etc/passwd`: it is not a relative name of a file below the raw folder
        cannot fetch to `../a`: it is not a relative name of a file below the raw folder
        cannot fetch to `a/../b`: it is not a relative name of a file below the raw folder
        cannot fetch to `a//b`: it is not a relative name of a file below the raw folder
        cannot fetch to `a/`: it is not a relative name of a file below the raw folder
        cannot fetch to `./a`: it is not a relative name of a file below the raw folder
        cannot fetch to `a\b`: it is not a relative name of a file below the raw folder
        cannot fetch to `a.part`: fetching uses this name itself
        cannot fetch to `b/fetch.lock.json`: fetching uses this name itself
        cannot fetch to `a`: two files have this name
        cannot fetch to `a/b/c`: `a` is a file of the same plan
        cannot fetch `a`: ftp://example.org/ is not an http or https address
        cannot fetch `a`: the address http://example.org/ has a user or password in it
        the sha256 of `a` is not 64 lower-case hexadecimal digits
    "#]]
    .assert_eq(&text);
}

#[test]
fn one_fetch_at_a_time_writes_a_folder() {
    let folder = Folder::new();
    let held = Held::take(folder.0.path()).unwrap();
    let error = folder.try_fetch(&[], &quick()).unwrap_err().to_string();
    assert!(error.starts_with("another fetch writes into"), "{error}");
    drop(held);
    assert_eq!(folder.try_fetch(&[], &quick()).unwrap().files, []);
}

#[test]
fn a_damaged_lock_file_stops_everything() {
    let folder = Folder::new();
    for text in [
        "",
        "{\"format\": 1, \"files\": {",
        "{\"format\": 2, \"files\": {}}",
        "{\"format\": 1, \"files\": {}, \"x\": 1}",
    ] {
        std::fs::write(folder.path("fetch.lock.json"), text).unwrap();
        assert!(folder.try_fetch(&[], &quick()).is_err(), "{text}");
        assert_eq!(folder.text("fetch.lock.json"), text);
    }
}

#[test]
fn an_interruption_ends_a_long_wait() {
    let server = Server::new(|request| match request.path.as_str() {
        "/done" => answer(200, &[], "text"),
        _ => answer(429, &[("Retry-After", "8")], "slow down"),
    });
    let folder = Folder::new();
    let files = ["done", "never"].map(|name| file(server.url(&format!("/{name}")), name, "text"));
    let stop = AtomicBool::new(false);
    let plan = FetchPlan { folder: folder.0.path().to_owned(), files: files.to_vec() };
    let start = Instant::now();
    let result = fetch(&plan, &FetchOptions { stop: Some(&stop), ..quick() }, &|progress| {
        if matches!(progress, Progress::Waiting { .. }) {
            stop.store(true, Ordering::Relaxed);
        }
    });
    assert_eq!(crate::error::code_of(&result.unwrap_err()), crate::error::Code::Interrupted);
    assert!(start.elapsed() < Duration::from_secs(4));
    // What was finished is noted.
    assert_eq!(folder.names(), ["done", "fetch.lock.json"]);
}

fn sample(bytes: &[u8]) -> Sample {
    let mut file = tempfile::tempfile().unwrap();
    file.write_all(bytes).unwrap();
    Sample::read(&mut file).unwrap()
}

fn gzipped(bytes: &[u8]) -> Vec<u8> {
    let mut encoder = flate2::write::GzEncoder::new(Vec::new(), flate2::Compression::fast());
    encoder.write_all(bytes).unwrap();
    encoder.finish().unwrap()
}

/// The header of an empty file `a` in a tar archive, and its end.
fn tar() -> Vec<u8> {
    let mut block = vec![0u8; 1536];
    block[0] = b'a';
    block[100..107].copy_from_slice(b"0000644");
    block[148..156].fill(b' ');
    let sum: u32 = block[..512].iter().map(|byte| u32::from(*byte)).sum();
    block[148..156].copy_from_slice(format!("{sum:06o}\0 ").as_bytes());
    block
}

#[test]
fn kinds_are_told_by_their_bytes() {
    let files: Vec<(&str, Vec<u8>)> = vec![
        ("gzip", gzipped(b"text")),
        ("zip", b"PK\x03\x04 content PK\x05\x06 end".to_vec()),
        ("tar.gz", gzipped(&tar())),
        ("pdf", b"%PDF-1.7\n...\n%%EOF\n".to_vec()),
        (
            "xml",
            b"\xef\xbb\xbf<?xml version='1.0'?>\n<!-- > -->\n<!DOCTYPE article [<!ENTITY a \"<b>\">]>\n<article/>"
                .to_vec(),
        ),
        ("json", b" {\"a\": [1]}\n".to_vec()),
        ("jsonl", b"{\"a\": 1}\n{\"a\": 2}\n".to_vec()),
        ("csv", b"id,text\n1,a\n".to_vec()),
        ("parquet", b"PAR1 columns PAR1".to_vec()),
        ("png", b"\x89PNG\r\n\x1a\n data IEND\xae\x42\x60\x82".to_vec()),
        ("jpeg", b"\xff\xd8\xff\xe0 data \xff\xd9".to_vec()),
        ("image", b"II*\0 data".to_vec()),
        ("media", b"ID3\x04\0 sound".to_vec()),
        ("mp4", b"\0\0\0\x20ftypisom data".to_vec()),
        ("html", b"\n<!-- saved -->\n<!doctype HTML><html><title>A case</title></html>".to_vec()),
        ("text", b"Plain words.\n".to_vec()),
    ];
    // Which file passes as which kind.
    let mut table = String::new();
    for (kind, _) in &files {
        let kind = FileKind::from_name(kind).unwrap();
        let fit = files.iter().filter(|(_, bytes)| check(&kind, &sample(bytes)) == Ok(()));
        table += &format!("{}: {}\n", kind.name(), fit.map(|(name, _)| *name).collect::<Vec<_>>().join(" "));
    }
    expect![[r#"
        gzip: gzip tar.gz
        zip: zip
        tar.gz: tar.gz
        pdf: pdf
        xml: xml
        json: json
        jsonl: json jsonl
        csv: csv text
        parquet: parquet
        png: png
        jpeg: jpeg
        image: png jpeg image
        media: gzip zip tar.gz pdf xml json jsonl csv parquet png jpeg image media mp4 text
        mp4: mp4
        html: html
        text: xml json jsonl csv text
    "#]]
    .assert_eq(&table);
}

#[test]
fn pictures_are_told_from_what_stands_in_for_them() {
    let fits = |name: &str, bytes: &[u8]| check(&FileKind::from_name(name).unwrap(), &sample(bytes)).is_ok();
    let bmp = b"BM\x46\0\0\0\0\0\0\0\x36\0\0\0";
    for picture in [&b"GIF89a.."[..], b"GIF87a..", b"MM\0* data", b"RIFF\x10\0\0\0WEBPVP8 ", bmp] {
        assert!(fits("image", picture) && fits("media", picture), "{picture:?}");
    }
    for page in [&b"<html>no</html>"[..], b"\n<!doctype html><p>no", b"{\"error\": \"slow down\"}", b" \n", b""] {
        assert!(!fits("image", page) && !fits("media", page), "{page:?}");
    }
    assert!(!fits("image", b"RIFF\x10\0\0\0AVI LIST") && fits("media", b"RIFF\x10\0\0\0AVI LIST"));
    assert!(!fits("image", b"\x89PNG\r\n\x1a\n cut") && !fits("image", b"BMP is a format"));
    // In memory as in a file.
    let long: Vec<u8> = (0..200_000u32).flat_map(u32::to_le_bytes).collect();
    for bytes in [&long[..], b"short", b""] {
        assert_eq!(Sample::of(bytes), sample(bytes));
    }
}

#[test]
fn md5_is_that_of_the_standard() {
    // RFC 1321, section A.5.
    for (text, expected) in [
        ("", "d41d8cd98f00b204e9800998ecf8427e"),
        ("abc", "900150983cd24fb0d6963f7d28e17f72"),
        ("message digest", "f96b697d7cb7938d525a2f31aaf161d0"),
    ] {
        assert_eq!(md5_of(&mut text.as_bytes()).unwrap(), expected);
    }
}

#[test]
fn a_planned_md5_keeps_without_asking_and_tells_damage() {
    let server = Server::new(|request| match (request.path.as_str(), request.nth) {
        ("/damaged", 0) => answer(200, &[], "tex_"),
        ("/wrong", _) => answer(200, &[], "other"),
        _ => answer(200, &[("ETag", "\"1\"")], "text"),
    });
    let folder = Folder::new();
    let options = FetchOptions { date: Some("2026-11-30".to_owned()), ..quick() };
    let of_text = md5_of(&mut &b"text"[..]).unwrap();
    let files = ["a", "damaged", "wrong"].map(|name| FetchFile {
        md5: Some(of_text.clone()),
        licence: Some("CC BY".to_owned()),
        ..file(server.url(&format!("/{name}")), &format!("{name}.txt"), "text")
    });
    let states = folder.fetch(&files, &options);
    assert_eq!(states[..2], [FileState::Fetched, FileState::Fetched]);
    assert!(
        why(&states[2]).contains("the service says 1cb251ec0d568de6a929b520c4aed8d1 (tried 4 times)"),
        "{}",
        states[2]
    );
    assert_eq!(folder.names(), ["a.txt", "damaged.txt", "fetch.lock.json"]);
    let n = server.requests().len();
    let later = FetchOptions { date: Some("2027-01-01".to_owned()), ..quick() };
    assert_eq!(folder.fetch(&files[..2], &later), vec![FileState::Kept; 2]);
    assert_eq!(server.requests().len(), n);
    let lock = LockFile::load(folder.0.path()).unwrap();
    let locked = lock.get("a.txt").unwrap();
    assert_eq!((locked.md5.as_ref(), locked.licence.as_deref()), (Some(&of_text), Some("CC BY")));
    // The day is that of the bytes.
    assert_eq!((locked.fetched.as_deref(), locked.etag.as_deref()), (Some("2026-11-30"), Some("\"1\"")));
    // What the lock file says decides: a file of somebody else is not replaced by one of the service.
    std::fs::write(folder.path("a.txt"), "mine").unwrap();
    let lock = folder.text("fetch.lock.json").replace(Hash::of(b"text").as_str(), Hash::of(b"mine").as_str());
    std::fs::write(folder.path("fetch.lock.json"), lock).unwrap();
    let changed = folder.fetch(&files[..1], &options);
    assert!(matches!(&changed[0], FileState::Changed { locked, .. } if *locked == Hash::of(b"mine")), "{}", changed[0]);
}

#[test]
fn lock_files_without_md5_licence_and_day_still_load() {
    let server = Server::new(|_| answer(304, &[], ""));
    let folder = Folder::new();
    std::fs::write(folder.path("a.txt"), "text").unwrap();
    let entry = json!({"url": server.url("/a").as_str(), "sha256": Hash::of(b"text"), "bytes": 4, "etag": "\"1\""});
    let before = json!({"format": 1, "files": {"a.txt": entry}}).to_string();
    std::fs::write(folder.path("fetch.lock.json"), &before).unwrap();
    let options = FetchOptions { date: Some("2026-11-30".to_owned()), ..quick() };
    assert_eq!(folder.fetch(&[file(server.url("/a"), "a.txt", "text")], &options), [FileState::Kept]);
    assert_eq!(folder.text("fetch.lock.json"), before);
}

#[test]
fn small_answers_come_in_order_and_tell_what_is_not_there() {
    let server = Server::new(|request| match (request.path.as_str(), request.nth) {
        ("/gone", _) => answer(410, &[], "gone"),
        ("/none", _) => answer(404, &[], "none"),
        ("/no", _) => answer(403, &[], "no"),
        ("/large", _) => answer(200, &[], [b'x'; 20]),
        ("/busy", 0) => answer(503, &[], "busy"),
        (path, _) => answer(200, &[], path),
    });
    let options = quick();
    let fetcher = Fetcher::new(&options).unwrap();
    let urls = ["/a", "/gone", "/busy", "/no", "/none", "/large"].map(|path| server.url(path));
    let waits = RefCell::new(0);
    let answers = fetcher.get_all(&urls, 10, &|_| *waits.borrow_mut() += 1).unwrap();
    let body = |text: &str| Answered::Body(text.as_bytes().to_vec());
    let failed = |text: &str| Answered::Failed(text.to_owned());
    let expected = [
        body("/a"),
        Answered::Missing,
        body("/busy"),
        failed("the server answered 403 Forbidden"),
        Answered::Missing,
        failed("the answer is larger than the 10 bytes allowed for it"),
    ];
    assert_eq!(answers, expected);
    assert_eq!(waits.into_inner(), 1);
    assert!(fetcher.get_all(&[Url::parse("file:///etc/passwd").unwrap()], 10, &|_| {}).is_err());
}

#[test]
fn misfits_are_named() {
    let article = FileKind::Xml { roots: vec!["article".to_owned(), "book".to_owned()] };
    let kind = |name| FileKind::from_name(name).unwrap();
    let mut text = String::new();
    for (kind, bytes) in [
        (&article, &b"<?xml version='1.0'?><jats:article xmlns:jats='x'></jats:article>"[..]),
        (&article, b"<OAI-PMH><error>none</error></OAI-PMH>"),
        (&article, b"<article><body>"),
        (&article, b"<article>\n</article>\n<!-- end -->\n"),
        (&article, b"<article><body>cut</bo"),
        (&article, b"<html xmlns='http://www.w3.org/1999/xhtml'><head><title>Log in</title></head></html>"),
        (&kind("xml"), b"<HTML><body>x</body></HTML>"),
        (&kind("json"), b"{\"error\":\"API rate limit exceeded\",\"count\":\"4\"}"),
        (&kind("json"), b"[1, 2"),
        (&kind("json"), b"[1, 2]]"),
        (&kind("json"), b"null"),
        (&kind("jsonl"), b"{\"a\": 1}\n{\"a\": "),
        (&kind("jsonl"), b"{\"a\": }\n{\"a\": 1}"),
        (&kind("pdf"), b"<html><title>PDF viewer</title><embed src='%PDF-1.4'></html>"),
        (&kind("pdf"), b"%PDF-1.4 cut"),
        (&kind("zip"), b"PK\x03\x04 cut"),
        (&kind("parquet"), b"PAR1"),
        (&kind("png"), b"\x89PNG\r\n\x1a\n cut"),
        (&kind("tar.gz"), b"\x1f\x8b\x08 not gzip"),
        (&kind("html"), b"<html><script src='/cdn-cgi/challenge-platform/x'></script></html>"),
        (&kind("csv"), b"  \n <script>location='/login'</script>"),
        (&kind("text"), b"\0\x01"),
        (&kind("text"), b"\n \n"),
        (&kind("mp4"), b""),
        (&kind("gzip"), b"Too many\r\nrequests\x1b[0m"),
    ] {
        text += &match check(kind, &sample(bytes)) {
            Ok(()) => format!("{}: fits\n", kind.name()),
            Err(Misfit::Cut) => format!("{}: cut\n", kind.name()),
            Err(Misfit::Other(other)) => format!("{}: {other}\n", kind.name()),
        };
    }
    expect![[r#"
        xml: fits
        xml: XML with the root <OAI-PMH>
        xml: cut
        xml: fits
        xml: cut
        xml: an HTML page titled "Log in"
        xml: an HTML page
        json: an error message in JSON: {"error":"API rate limit exceeded","count":"4"}
        json: cut
        json: cut
        json: text that begins with "null"
        jsonl: cut
        jsonl: JSON that begins with "{"a": } {"a": 1}"
        pdf: an HTML page titled "PDF viewer"
        pdf: cut
        zip: cut
        parquet: cut
        png: cut
        tar.gz: a gzip file
        html: a bot-check page
        csv: an HTML page
        text: a binary file
        text: white space
        mp4: an empty file
        gzip: text that begins with "Too many requests[0m"
    "#]]
    .assert_eq(&text);
    // Beyond what is looked at.
    let long = format!("[{}1]", "1,".repeat(100_000));
    assert_eq!(check(&kind("json"), &sample(long.as_bytes())), Ok(()));
    assert_eq!(check(&kind("json"), &sample(&long.as_bytes()[..150_001])), Err(Misfit::Cut));
    let line = format!("{{\"a\": \"{}\"}}\n", "x".repeat(100_000));
    assert_eq!(check(&kind("jsonl"), &sample(line.as_bytes())), Ok(()));
}

fn search() -> Search {
    Search {
        query: "\"case report\"".to_owned(),
        synonyms: false,
        date: "2026-03-01".parse().unwrap(),
        page_size: 2,
        first_cursor: "a".to_owned(),
        tolerance: 0.0,
        max_hits: 1_000,
    }
}

/// Runs a search over scripted pages: hits, next cursor, total.
fn page_through(
    search: Search,
    pages: &[(usize, Option<&str>, Option<u64>)],
) -> anyhow::Result<(u64, SearchProvenance)> {
    let mut pager = Pager::new(search)?;
    let mut asked = 0;
    while pager.request().is_some() {
        let (hits, next, total) = pages[asked];
        asked += 1;
        pager.accept(&Page { hits: vec![(); hits], next: next.map(str::to_owned), total })?;
    }
    Ok((asked as u64, pager.finish()?))
}

#[test]
fn http_01_paging_by_cursor_ends_and_is_counted() {
    let b = Some("b");
    // The same cursor comes back.
    let (asked, provenance) = page_through(search(), &[(2, b, Some(3)), (1, b, Some(3))]).unwrap();
    assert_eq!((asked, provenance.collected, provenance.announced), (2, 3, Some(3)));
    let few = page_through(search(), &[(2, b, Some(5)), (1, b, Some(5))]).unwrap_err();
    assert_eq!(few.to_string(), "the search gave 3 hits in 2 pages, but announced 5");
    // An empty page keeps a cursor; a cursor is absent; cursors go in a circle.
    assert_eq!(page_through(search(), &[(2, b, Some(2)), (0, Some("c"), Some(2))]).unwrap().0, 2);
    assert_eq!(page_through(search(), &[(2, b, Some(3)), (1, None, None)]).unwrap().0, 2);
    assert_eq!(page_through(search(), &[(2, Some(""), Some(2))]).unwrap().0, 1);
    assert_eq!(page_through(search(), &[(1, b, None), (1, Some("c"), None), (1, Some("a"), None)]).unwrap().0, 3);
    assert!(page_through(search(), &[(2, None, Some(4))]).is_err());
    // New cursors for the same hits, for ever.
    assert!(page_through(search(), &[(2, b, Some(3)), (2, Some("c"), Some(3))]).is_err());
    let most = Search { max_hits: 3, ..search() };
    assert!(page_through(most.clone(), &[(2, b, None), (2, Some("c"), None)]).is_err());
    assert!(page_through(most, &[(2, b, Some(4))]).is_err());
    let tolerant = Search { tolerance: 0.1, ..search() };
    assert!(page_through(tolerant.clone(), &[(9, None, Some(10))]).is_ok());
    assert!(page_through(tolerant.clone(), &[(11, None, Some(10))]).is_ok());
    assert!(page_through(tolerant, &[(8, None, Some(10))]).is_err());
    assert!(Pager::new(Search { page_size: 0, ..search() }).is_err());
}

#[test]
fn http_03_a_search_asks_for_a_page_size_and_pages() {
    // It gives 20 hits at most, whatever is asked for.
    let server = Server::new(|request| {
        let url = Url::parse(&format!("http://host{}", request.path)).unwrap();
        let number = |name: &str| url.query_pairs().find(|(key, _)| key == name).unwrap().1.parse::<u64>().unwrap();
        assert_eq!(number("retmax"), 30);
        let start = number("retstart");
        match (start, request.nth) {
            (0, 0) => answer(429, &[("Retry-After", "0")], r#"{"error":"API rate limit exceeded"}"#),
            (20, 0) => answer(200, &[("Content-Length", "999")], r#"{"count": 45"#),
            _ => {
                let ids: Vec<u64> = (start..(start + 20).min(45)).collect();
                answer(200, &[], json!({"count": 45, "ids": ids}).to_string())
            }
        }
    });
    let read = |body: &[u8]| -> anyhow::Result<(Vec<u64>, u64)> {
        let value: Value = serde_json::from_slice(body)?;
        let count = value["count"].as_u64().context("no count")?;
        Ok((value["ids"].as_array().context("no ids")?.iter().filter_map(Value::as_u64).collect(), count))
    };
    let address = |request: &PageRequest| -> anyhow::Result<Url> {
        let mut url = server.url("/search");
        let size = request.page_size.to_string();
        url.query_pairs_mut().extend_pairs([
            ("term", request.query.as_str()),
            ("retmax", &size),
            ("retstart", &request.cursor),
            ("api_key", "secret"),
        ]);
        Ok(url)
    };
    let asked = RefCell::new(0);
    let search = Search { page_size: 30, first_cursor: "0".to_owned(), ..search() };
    let (ids, provenance) = collect(
        search.clone(),
        &quick(),
        10_000,
        |request| {
            *asked.borrow_mut() = request.cursor.parse()?;
            address(request)
        },
        |body| {
            let (ids, count) = read(body)?;
            let next = next_offset(*asked.borrow(), ids.len() as u64, count);
            Ok(Page { hits: ids, next, total: Some(count) })
        },
    )
    .unwrap();
    assert_eq!(ids, (0..45).collect::<Vec<_>>());
    expect![[r#"
        {
          "query": "\"case report\"",
          "synonyms": false,
          "date": "2026-03-01",
          "page_size": 30,
          "pages": 3,
          "announced": 45,
          "collected": 45
        }"#]]
    .assert_eq(&serde_json::to_string_pretty(&provenance).unwrap());
    // One page taken for all is an error.
    let one_page = collect(search.clone(), &quick(), 10_000, address, |body| {
        let (ids, count) = read(body)?;
        Ok(Page { hits: ids, next: None, total: Some(count) })
    });
    assert!(one_page.unwrap_err().to_string().contains("announced 45"));
    let refused = collect(search, &quick(), 10, address, |_| Ok(Page { hits: vec![()], next: None, total: None }));
    let refused = format!("{:#}", refused.unwrap_err());
    assert!(refused.ends_with("/search: the answer is larger than the 10 bytes allowed for it"), "{refused}");
}

fn hit(source: &str, id: &str, pmid: &str, pmcid: &str, doi: &str) -> Hit {
    let some = |text: &str| (!text.is_empty()).then(|| text.to_owned());
    Hit { source: source.to_owned(), id: some(id), pmid: some(pmid), pmcid: some(pmcid), doi: some(doi) }
}

#[test]
fn http_02_hits_of_one_article_collapse() {
    let merged = merge_hits(&[
        hit("MED", "5", "", "PMC7", ""),
        hit("PMC", "PMC7", "", "", ""),
        hit("PPR", "", "", "", "10.1/AB"),
        hit("MED", "", "", "", "https://doi.org/10.1/ab"),
    ]);
    assert_eq!((merged.before, merged.after), (4, 2));
    assert_eq!((merged.by_pmcid, merged.by_pmid, merged.by_doi, merged.conflicts), (1, 0, 1, 0));
    let hits: Vec<&[usize]> = merged.articles.iter().map(|article| article.hits.as_slice()).collect();
    assert_eq!(hits, [&[0, 1], &[2, 3]]);
    assert_eq!(merged.articles[0].pmid.as_deref(), Some("5"));
    assert_eq!(merged.articles[0].pmcid.as_deref(), Some("PMC7"));
    assert_eq!(merged.articles[1].doi.as_deref(), Some("10.1/ab"));
}

#[test]
fn identifiers_add_up_and_the_stronger_one_decides() {
    let merged = merge_hits(&[
        hit("PPR", "PPR1", "", "", "10.1/x"),
        hit("PMC", "PMC0009.1", "", "", ""),
        hit("MED", "07", "7", "pmc9", ""),
        hit("MED", "7", "", "", "doi:10.1/X"),
        // The same DOI, but another article by its PMCID.
        hit("PMC", "PMC10", "", "", "10.1/x"),
        hit("AGR", "IND1", "", "", ""),
        hit("AGR", "IND1", "n/a", "none", "unknown"),
    ]);
    let text: Vec<String> = merged
        .articles
        .iter()
        .map(|article| format!("{:?} {:?} {:?} {:?}", article.hits, article.pmcid, article.pmid, article.doi))
        .collect();
    expect![[r#"
        [0, 1, 2, 3] Some("PMC9") Some("7") Some("10.1/x")
        [4] Some("PMC10") None Some("10.1/x")
        [5] None None None
        [6] None None None"#]]
    .assert_eq(&text.join("\n"));
    assert_eq!((merged.by_pmcid, merged.by_pmid, merged.by_doi, merged.conflicts), (1, 1, 1, 1));
    assert_eq!(merge_hits(&[]).after, 0);
}

#[test]
fn dois_have_one_form() {
    for text in
        ["10.1/Ab(C)", " doi: 10.1/aB(c)", "http://dx.doi.org/10.1/ab%28c%29", "HTTPS://DOI.ORG/10.1%2FAB(c)?x=1"]
    {
        assert_eq!(normal_doi(text).as_deref(), Some("10.1/ab(c)"), "{text}");
    }
    for text in ["", "10.1", "PMC7", "https://example.org/a/10.1/b", "doi:", "https://doi.org", "https://doi.org/%"] {
        assert_eq!(normal_doi(text), None, "{text}");
    }
}
