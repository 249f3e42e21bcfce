//! A language model's HTTP server without a model: OpenAI chat completions and Anthropic messages on loopback, with answers and faults of choice.

#![allow(dead_code, reason = "tests and benches each use their part")]

use serde_json::{Value, json};
use std::collections::BTreeMap;
use std::hash::{DefaultHasher, Hash, Hasher};
use std::net::SocketAddr;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, OnceLock};
use std::thread::JoinHandle;
use std::time::Duration;
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::{TcpListener, TcpStream};
use tokio::sync::oneshot;

/// Bytes a request's head may have.
const HEAD_LIMIT: usize = 64 << 10;
/// Bytes a request's body may have.
const BODY_LIMIT: usize = 256 << 20;
/// Bytes that [`Play::Drip`] writes between two pauses.
const DRIP_BYTES: usize = 16;

/// The server. It has a thread and a runtime of its own, and stops when dropped.
pub struct FakeModel {
    address: SocketAddr,
    shared: Arc<Shared>,
    stop: Option<oneshot::Sender<()>>,
    thread: Option<JoinHandle<()>>,
}

/// What the server does with one request. Those that hold another play change how it is carried out, and can be nested.
#[derive(Debug, Clone)]
pub enum Play {
    /// A complete answer with that content, in the shape of the API that was asked, with usage.
    Reply(String),
    /// That status and document.
    Json(u16, Value),
    /// That response; `Content-Length` is added unless it is among the headers.
    Raw { status: u16, headers: Vec<(String, String)>, body: Vec<u8> },
    /// That status, with an error in the shape of the API.
    Status(u16),
    /// The same with this value of `Retry-After`.
    RetryAfter(u16, String),
    /// Latency before the answer.
    Slow(Duration, Box<Play>),
    /// The body a few bytes at a time, with that pause between them.
    Drip(Duration, Box<Play>),
    /// Closes the connection after so many bytes of the body.
    Cut(usize, Box<Play>),
    /// A `Content-Length` that is off by so much; then closes.
    WrongLength(i64, Box<Play>),
    /// Closes the connection without an answer.
    Close,
    /// Keeps the connection open and never answers.
    Hang,
    /// That content, ended by the limit of tokens.
    Length(String),
    /// The model declines, with these words.
    Refusal(String),
    /// A filter of the provider removed the content.
    ContentFilter,
    /// A complete answer without content.
    NullContent,
    /// A call of a tool in place of content.
    ToolCall,
    /// A complete answer whose content has so many bytes.
    Giant(usize),
    /// A complete answer whose content is not UTF-8.
    InvalidUtf8,
    /// A recorded response with its head, sent as it is.
    HttpFile(Vec<u8>),
}

/// Which API a request speaks.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Api {
    /// `POST …/chat/completions`
    OpenAi,
    /// `POST …/v1/messages`
    Anthropic,
}

/// One request as received.
#[derive(Debug, Clone)]
pub struct Request {
    /// `None` for any other path or method, which is answered with 404.
    pub api: Option<Api>,
    pub method: String,
    /// The target of the request line, with its query.
    pub path: String,
    /// In the order sent; names in lower case.
    pub headers: Vec<(String, String)>,
    pub body: Vec<u8>,
    /// How often this body was seen: 1 for the first time.
    pub nth: u64,
    json: OnceLock<Value>,
}

/// What happened to one distinct body.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Count {
    /// Requests received with it.
    pub received: u64,
    /// Responses to it with status 200 that were handed to the network whole.
    pub answered: u64,
}

struct Shared {
    behaviour: Box<dyn Fn(&Request) -> Play + Send + Sync>,
    log: Mutex<Log>,
    keep: AtomicBool,
    connections: AtomicUsize,
    in_flight: AtomicUsize,
    peak_in_flight: AtomicUsize,
}

#[derive(Default)]
struct Log {
    requests: Vec<Arc<Request>>,
    bytes: Vec<u8>,
    counts: BTreeMap<u64, Count>,
}

impl FakeModel {
    /// Listens on a free port of 127.0.0.1 and answers every request as `behaviour` says.
    pub fn start(behaviour: impl Fn(&Request) -> Play + Send + Sync + 'static) -> Self {
        let shared = Arc::new(Shared {
            behaviour: Box::new(behaviour),
            log: Mutex::default(),
            keep: AtomicBool::new(true),
            connections: AtomicUsize::new(0),
            in_flight: AtomicUsize::new(0),
            peak_in_flight: AtomicUsize::new(0),
        });
        let listener = std::net::TcpListener::bind("127.0.0.1:0").expect("a free port");
        let address = listener.local_addr().expect("its address");
        listener.set_nonblocking(true).expect("a socket that does not block");
        let (stop, stopped) = oneshot::channel();
        let serving = shared.clone();
        let thread = std::thread::spawn(move || {
            let runtime =
                tokio::runtime::Builder::new_multi_thread().worker_threads(1).enable_all().build().expect("a runtime");
            runtime.block_on(async {
                let accepting = tokio::spawn(accept(listener, serving));
                // An error says that the other half is gone, which is a stop as well.
                let _ = stopped.await;
                accepting.abort();
            });
            runtime.shutdown_timeout(Duration::from_secs(5));
        });
        Self { address, shared, stop: Some(stop), thread: Some(thread) }
    }

    /// Requests and their bytes are no longer kept, only counted.
    pub fn without_log(self) -> Self {
        self.shared.keep.store(false, Ordering::SeqCst);
        self
    }

    /// `http://127.0.0.1:PORT/v1`
    pub fn base_url(&self) -> String {
        format!("http://{}/v1", self.address)
    }

    pub fn address(&self) -> SocketAddr {
        self.address
    }

    /// Everything received so far, in the order in which the requests were complete.
    pub fn requests(&self) -> Vec<Request> {
        self.shared.log().requests.iter().map(|request| Request::clone(request)).collect()
    }

    /// The same as raw bytes, with what was received of requests that broke off.
    pub fn bytes_received(&self) -> Vec<u8> {
        self.shared.log().bytes.clone()
    }

    /// By [`Request::body_hash`].
    pub fn counts(&self) -> BTreeMap<u64, Count> {
        self.shared.log().counts.clone()
    }

    /// All of [`Self::counts`] together.
    pub fn total(&self) -> Count {
        self.shared.log().counts.values().fold(Count::default(), |sum, one| Count {
            received: sum.received + one.received,
            answered: sum.answered + one.answered,
        })
    }

    /// Connections accepted so far.
    pub fn connections(&self) -> usize {
        self.shared.connections.load(Ordering::SeqCst)
    }

    /// The most requests that waited for the start of their answer at one time.
    pub fn peak_in_flight(&self) -> usize {
        self.shared.peak_in_flight.load(Ordering::SeqCst)
    }
}

impl Drop for FakeModel {
    fn drop(&mut self) {
        drop(self.stop.take());
        if let Some(thread) = self.thread.take() {
            // A panic in the thread was printed; a second one while dropping would hide the test's own.
            let _ = thread.join();
        }
    }
}

impl Request {
    /// By name in lower case.
    pub fn header(&self, name: &str) -> Option<&str> {
        self.headers.iter().find(|(key, _)| key == name).map(|(_, value)| value.as_str())
    }

    /// The body; `null` when it is no JSON.
    pub fn json(&self) -> &Value {
        self.json.get_or_init(|| serde_json::from_slice(&self.body).unwrap_or(Value::Null))
    }

    /// The same for equal bodies, in every process.
    pub fn body_hash(&self) -> u64 {
        let mut hasher = DefaultHasher::new();
        self.body.hash(&mut hasher);
        hasher.finish()
    }

    pub fn model(&self) -> &str {
        self.json()["model"].as_str().unwrap_or("")
    }

    /// `max_completion_tokens` or `max_tokens`.
    pub fn max_tokens(&self) -> Option<u64> {
        ["max_completion_tokens", "max_tokens"].iter().find_map(|name| self.json()[name].as_u64())
    }

    /// OpenAI's `response_format`, Anthropic's `output_config.format` or `output_format`.
    pub fn response_format(&self) -> Option<&Value> {
        let body = self.json();
        ["/response_format", "/output_config/format", "/output_format"].iter().find_map(|place| body.pointer(place))
    }

    /// The texts of the system prompt and of all messages, in order.
    pub fn texts(&self) -> Vec<&str> {
        self.parts().into_iter().filter_map(|part| part.as_str().or_else(|| part["text"].as_str())).collect()
    }

    /// [`Self::texts`], a line break between them.
    pub fn prompt(&self) -> String {
        self.texts().join("\n")
    }

    /// The images of all messages, as URLs: `data:MEDIA-TYPE;base64,…` when they were sent inline.
    pub fn images(&self) -> Vec<String> {
        let url = |part: &Value| match part["type"].as_str()? {
            "image_url" => part["image_url"]["url"].as_str().map(str::to_owned),
            "image" => {
                let source = &part["source"];
                match (source["media_type"].as_str(), source["data"].as_str()) {
                    (Some(media_type), Some(data)) => Some(format!("data:{media_type};base64,{data}")),
                    _ => source["url"].as_str().map(str::to_owned),
                }
            }
            _ => None,
        };
        self.parts().into_iter().filter_map(url).collect()
    }

    /// Every part of `system` and `messages`; content that is plain text is one part.
    fn parts(&self) -> Vec<&Value> {
        let body = self.json();
        let messages = body["messages"].as_array().map_or(&[][..], Vec::as_slice);
        std::iter::once(&body["system"])
            .chain(messages.iter().map(|message| &message["content"]))
            .flat_map(|content| content.as_array().map_or(std::slice::from_ref(content), Vec::as_slice))
            .collect()
    }
}

impl Shared {
    fn log(&self) -> MutexGuard<'_, Log> {
        self.log.lock().expect("nobody panics with the log in hand")
    }

    /// Counts the request, which sets its `nth`, and keeps it.
    fn receive(&self, mut request: Request, raw: &[u8]) -> Arc<Request> {
        let hash = request.body_hash();
        let mut log = self.log();
        let count = log.counts.entry(hash).or_default();
        count.received += 1;
        request.nth = count.received;
        let request = Arc::new(request);
        if self.keep.load(Ordering::SeqCst) {
            log.requests.push(request.clone());
            log.bytes.extend_from_slice(raw);
        }
        request
    }

    /// One more answer, or one less when it could not be written after all.
    fn answered(&self, hash: u64, written: bool) {
        let mut log = self.log();
        let count = log.counts.entry(hash).or_default();
        count.answered = if written { count.answered + 1 } else { count.answered.saturating_sub(1) };
    }
}

/// A request between its last byte and the first of its answer.
struct InFlight<'a>(&'a Shared);

impl<'a> InFlight<'a> {
    fn enter(shared: &'a Shared) -> Self {
        let now = shared.in_flight.fetch_add(1, Ordering::SeqCst) + 1;
        shared.peak_in_flight.fetch_max(now, Ordering::SeqCst);
        Self(shared)
    }
}

impl Drop for InFlight<'_> {
    fn drop(&mut self) {
        self.0.in_flight.fetch_sub(1, Ordering::SeqCst);
    }
}

async fn accept(listener: std::net::TcpListener, shared: Arc<Shared>) {
    let listener = TcpListener::from_std(listener).expect("a listener");
    loop {
        // What fails here is a connection that is gone already, or too many open files for a moment.
        let Ok((stream, _)) = listener.accept().await else {
            tokio::time::sleep(Duration::from_millis(1)).await;
            continue;
        };
        shared.connections.fetch_add(1, Ordering::SeqCst);
        let shared = shared.clone();
        tokio::spawn(async move {
            // An error is a client that went away, which is its right.
            let _ = serve(stream, &shared).await;
        });
    }
}

/// Answers the requests of one connection, one after the other.
async fn serve(mut stream: TcpStream, shared: &Shared) -> std::io::Result<()> {
    stream.set_nodelay(true)?;
    let mut buffer = Vec::with_capacity(16 << 10);
    loop {
        let (request, n_bytes) = match read_request(&mut stream, &mut buffer).await {
            Ok(Some(read)) => read,
            end => {
                if shared.keep.load(Ordering::SeqCst) {
                    shared.log().bytes.extend_from_slice(&buffer);
                }
                return end.map(|_| ());
            }
        };
        let request = shared.receive(request, &buffer[..n_bytes]);
        buffer.drain(..n_bytes);
        if !answer(&mut stream, shared, &request).await? {
            return stream.shutdown().await;
        }
    }
}

/// The next request and its length in the buffer; `None` when the client closed.
async fn read_request(stream: &mut TcpStream, buffer: &mut Vec<u8>) -> std::io::Result<Option<(Request, usize)>> {
    let invalid = |what: &str| std::io::Error::new(std::io::ErrorKind::InvalidData, what.to_owned());
    let n_head = loop {
        if let Some(at) = head_length(buffer) {
            break at;
        }
        if buffer.len() > HEAD_LIMIT {
            return Err(invalid("the head is too long"));
        }
        if stream.read_buf(buffer).await? == 0 {
            return Ok(None);
        }
    };
    let head = std::str::from_utf8(&buffer[..n_head]).map_err(|_| invalid("the head is no text"))?;
    let mut lines = head.split("\r\n");
    let mut first = lines.next().unwrap_or("").split(' ');
    let (method, path) = (first.next().unwrap_or("").to_owned(), first.next().unwrap_or("").to_owned());
    let headers: Vec<(String, String)> = lines
        .filter_map(|line| line.split_once(':'))
        .map(|(name, value)| (name.to_ascii_lowercase(), value.trim().to_owned()))
        .collect();
    let api = match path.split('?').next().unwrap_or("") {
        path if method == "POST" && path.ends_with("/chat/completions") => Some(Api::OpenAi),
        path if method == "POST" && path.ends_with("/v1/messages") => Some(Api::Anthropic),
        _ => None,
    };
    let mut request = Request { api, method, path, headers, body: Vec::new(), nth: 0, json: OnceLock::new() };
    let n_body = match request.header("content-length") {
        Some(length) => length.parse().ok().filter(|n| *n <= BODY_LIMIT).ok_or_else(|| invalid("Content-Length"))?,
        None if request.header("transfer-encoding").is_some() => return Err(invalid("a body in chunks")),
        None => 0,
    };
    let n_bytes = n_head + n_body;
    while buffer.len() < n_bytes {
        if stream.read_buf(buffer).await? == 0 {
            return Ok(None);
        }
    }
    request.body = buffer[n_head..n_bytes].to_vec();
    Ok(Some((request, n_bytes)))
}

/// Length of an HTTP head, with the empty line that ends it.
fn head_length(bytes: &[u8]) -> Option<usize> {
    bytes.windows(4).position(|four| four == b"\r\n\r\n").map(|at| at + 4)
}

/// Carries out what the behaviour says. Whether the connection stays open.
async fn answer(stream: &mut TcpStream, shared: &Shared, request: &Request) -> std::io::Result<bool> {
    let in_flight = InFlight::enter(shared);
    let play = if request.api.is_some() { (shared.behaviour)(request) } else { Play::Status(404) };
    let act = Act::new(play, request);
    if !act.latency.is_zero() {
        tokio::time::sleep(act.latency).await;
    }
    let Response { head, mut body } = match act.response {
        Some(response) => response,
        None if act.hang => {
            // Until the client gives up; bytes it still sends are of no interest.
            while stream.read(&mut [0; 1024]).await? > 0 {}
            return Ok(false);
        }
        None => return Ok(false),
    };
    let mut stay = !says_close(&head) && request.header("connection") != Some("close");
    let mut whole = head.starts_with(b"HTTP/1.1 200");
    let head = match act.length_offset {
        0 => head,
        offset => {
            (stay, whole) = (false, false);
            with_length(&head, body.len().saturating_add_signed(isize::try_from(offset).expect("64 bits")))
        }
    };
    if let Some(n) = act.cut {
        (stay, whole) = (false, false);
        body.truncate(n);
    }
    drop(in_flight);

    // The last write ends the answer. It is counted before, since the client may look as soon as it has it.
    let (last, pause) = match act.drip {
        None => ([head, body].concat(), Duration::ZERO),
        Some(pause) => {
            stream.write_all(&head).await?;
            let n_before = body.len().saturating_sub(1) / DRIP_BYTES * DRIP_BYTES;
            for bytes in body[..n_before].chunks(DRIP_BYTES) {
                tokio::time::sleep(pause).await;
                stream.write_all(bytes).await?;
            }
            (body.split_off(n_before), pause)
        }
    };
    if !pause.is_zero() {
        tokio::time::sleep(pause).await;
    }
    let hash = request.body_hash();
    if whole {
        shared.answered(hash, true);
    }
    let written = stream.write_all(&last).await;
    if whole && written.is_err() {
        shared.answered(hash, false);
    }
    written.map(|()| stay)
}

/// A play with what surrounds it taken apart.
#[derive(Default)]
struct Act {
    latency: Duration,
    drip: Option<Duration>,
    cut: Option<usize>,
    length_offset: i64,
    hang: bool,
    response: Option<Response>,
}

struct Response {
    /// With the empty line that ends it.
    head: Vec<u8>,
    body: Vec<u8>,
}

impl Act {
    fn new(play: Play, request: &Request) -> Self {
        let mut act = Self::default();
        let mut play = play;
        let response = loop {
            play = match play {
                Play::Slow(latency, inner) => {
                    act.latency += latency;
                    *inner
                }
                Play::Drip(pause, inner) => {
                    act.drip = Some(pause);
                    *inner
                }
                Play::Cut(n, inner) => {
                    act.cut = Some(n);
                    *inner
                }
                Play::WrongLength(offset, inner) => {
                    act.length_offset = offset;
                    *inner
                }
                Play::Hang => {
                    act.hang = true;
                    break None;
                }
                Play::Close => break None,
                play => break Some(response(play, request)),
            };
        };
        act.response = response;
        act
    }
}

/// The bytes of a play that is one response.
fn response(play: Play, request: &Request) -> Response {
    let document = |status, body: &Value| Response::new(status, &[], body.to_string().into_bytes());
    let complete = |content: &str| document(200, &message(request, Some(content), "stop"));
    match play {
        Play::Reply(content) => complete(&content),
        Play::Json(status, body) => document(status, &body),
        Play::Raw { status, headers, body } => Response::new(status, &headers, body),
        Play::Status(status) => document(status, &error(request, status)),
        Play::RetryAfter(status, value) => {
            let headers = [("Retry-After".to_owned(), value)];
            Response::new(status, &headers, error(request, status).to_string().into_bytes())
        }
        Play::Length(content) => document(200, &message(request, Some(&content), "length")),
        Play::Refusal(words) => document(200, &message(request, Some(&words), "refusal")),
        Play::ContentFilter => document(200, &message(request, Some(""), "content_filter")),
        Play::NullContent => document(200, &message(request, None, "stop")),
        Play::ToolCall => document(200, &message(request, None, "tool_calls")),
        Play::Giant(n_bytes) => complete(&"a".repeat(n_bytes)),
        Play::InvalidUtf8 => {
            let mut response = complete("??");
            if let Some(at) = response.body.windows(2).position(|two| two == b"??") {
                response.body[at..at + 2].copy_from_slice(&[0xff, 0xfe]);
            }
            response
        }
        Play::HttpFile(bytes) => {
            let n_head = head_length(&bytes).expect("a recorded response with an empty line after its head");
            Response { head: bytes[..n_head].to_vec(), body: bytes[n_head..].to_vec() }
        }
        Play::Slow(..) | Play::Drip(..) | Play::Cut(..) | Play::WrongLength(..) | Play::Close | Play::Hang => {
            unreachable!("taken apart before")
        }
    }
}

impl Response {
    fn new(status: u16, headers: &[(String, String)], body: Vec<u8>) -> Self {
        let has = |name: &str| headers.iter().any(|(key, _)| key.eq_ignore_ascii_case(name));
        let mut head = format!("HTTP/1.1 {status} {}\r\n", reason(status));
        for (name, value) in headers {
            head += &format!("{name}: {value}\r\n");
        }
        if !has("content-type") {
            head += "Content-Type: application/json\r\n";
        }
        if !has("content-length") && !has("transfer-encoding") {
            head += &format!("Content-Length: {}\r\n", body.len());
        }
        Self { head: (head + "\r\n").into_bytes(), body }
    }
}

fn reason(status: u16) -> &'static str {
    match status {
        200 => "OK",
        400 => "Bad Request",
        401 => "Unauthorized",
        403 => "Forbidden",
        404 => "Not Found",
        413 => "Content Too Large",
        429 => "Too Many Requests",
        500 => "Internal Server Error",
        503 => "Service Unavailable",
        529 => "Overloaded",
        _ => "Other",
    }
}

/// Whether the connection must end with this response: it says so, or has no other end.
fn says_close(head: &[u8]) -> bool {
    let head = String::from_utf8_lossy(head).to_ascii_lowercase();
    head.contains("\r\nconnection: close\r\n")
        || !(head.contains("\r\ncontent-length:") || head.contains("\r\ntransfer-encoding:"))
}

/// The head with another `Content-Length`.
fn with_length(head: &[u8], length: usize) -> Vec<u8> {
    let head = String::from_utf8_lossy(head);
    let lines = head.trim_end_matches("\r\n").split("\r\n");
    let others = lines.filter(|line| !line.to_ascii_lowercase().starts_with("content-length:"));
    let lines: String = others.map(|line| format!("{line}\r\n")).collect();
    format!("{lines}Content-Length: {length}\r\n\r\n").into_bytes()
}

/// A `chat.completion`, or an Anthropic message. `finish` is one of OpenAI's reasons or `refusal`.
fn message(request: &Request, content: Option<&str>, finish: &str) -> Value {
    // Four characters a token is as good as any number here.
    let n_tokens = |text: &str| text.chars().count().div_ceil(4);
    let (n_in, n_out) = (n_tokens(&request.prompt()), content.map_or(0, n_tokens));
    let id = format!("{:016x}-{}", request.body_hash(), request.nth);
    if request.api == Some(Api::Anthropic) {
        let stop = match finish {
            "length" => "max_tokens",
            "refusal" | "content_filter" => "refusal",
            "tool_calls" => "tool_use",
            _ => "end_turn",
        };
        let parts = match content {
            _ if finish == "tool_calls" => {
                json!([{"type": "tool_use", "id": format!("toolu_{id}"), "name": "lookup", "input": {}}])
            }
            Some(text) if finish != "content_filter" => json!([{"type": "text", "text": text}]),
            _ => json!([]),
        };
        return json!({
            "id": format!("msg_{id}"), "type": "message", "role": "assistant", "model": request.model(),
            "content": parts, "stop_reason": stop, "stop_sequence": null,
            "usage": {"input_tokens": n_in, "output_tokens": n_out, "cache_creation_input_tokens": 0, "cache_read_input_tokens": 0},
        });
    }
    let mut message = json!({"role": "assistant", "content": content, "refusal": null});
    match finish {
        "refusal" => (message["content"], message["refusal"]) = (Value::Null, json!(content)),
        "tool_calls" => {
            message["tool_calls"] = json!([{
                "id": format!("call_{id}"), "type": "function", "function": {"name": "lookup", "arguments": "{}"},
            }]);
        }
        _ => {}
    }
    let finish = if finish == "refusal" { "stop" } else { finish };
    json!({
        "id": format!("chatcmpl-{id}"), "object": "chat.completion", "created": 1_700_000_000, "model": request.model(),
        "choices": [{"index": 0, "message": message, "logprobs": null, "finish_reason": finish}],
        "usage": {"prompt_tokens": n_in, "completion_tokens": n_out, "total_tokens": n_in + n_out},
    })
}

/// The document that goes with a status that is no success.
fn error(request: &Request, status: u16) -> Value {
    let kind = match status {
        400 => "invalid_request_error",
        401 => "authentication_error",
        403 => "permission_error",
        404 => "not_found_error",
        413 => "request_too_large",
        429 => "rate_limit_error",
        529 => "overloaded_error",
        _ => "api_error",
    };
    let text = reason(status);
    if request.api == Some(Api::Anthropic) {
        json!({"type": "error", "error": {"type": kind, "message": text}})
    } else {
        json!({"error": {"message": text, "type": kind, "param": null, "code": null}})
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn block_on<T>(future: impl Future<Output = T>) -> T {
        tokio::runtime::Builder::new_current_thread().enable_all().build().expect("a runtime").block_on(future)
    }

    fn post(path: &str, body: &Value) -> Vec<u8> {
        let body = body.to_string();
        format!("POST {path} HTTP/1.1\r\nHost: fake\r\nX-Key: Secret\r\nContent-Length: {}\r\n\r\n{body}", body.len())
            .into_bytes()
    }

    fn chat(text: &str) -> Value {
        json!({"model": "m", "max_tokens": 9, "messages": [{"role": "system", "content": "Be brief."},
            {"role": "user", "content": [{"type": "text", "text": text},
                {"type": "image_url", "image_url": {"url": "data:image/png;base64,AAAA"}}]}]})
    }

    fn anthropic(text: &str) -> Value {
        json!({"model": "c", "max_tokens": 8, "system": "Be brief.", "messages": [{"role": "user", "content": [
            {"type": "image", "source": {"type": "base64", "media_type": "image/png", "data": "AAAA"}},
            {"type": "text", "text": text}]}]})
    }

    async fn connect(server: &FakeModel) -> TcpStream {
        TcpStream::connect(server.address()).await.expect("a connection")
    }

    /// Head and body of one response; what comes after it stays in the socket.
    async fn read_one(stream: &mut TcpStream) -> (String, Vec<u8>) {
        let mut head = Vec::new();
        while head_length(&head).is_none() {
            head.push(stream.read_u8().await.expect("a head"));
        }
        let head = String::from_utf8(head).expect("text");
        let length = head.lines().find_map(|line| line.strip_prefix("Content-Length: ")).expect("a length");
        let mut body = vec![0; length.parse().expect("a number")];
        stream.read_exact(&mut body).await.expect("a body");
        (head, body)
    }

    /// Sends one request on a new connection; everything that comes until the server closes.
    async fn until_closed(server: &FakeModel, request: &[u8]) -> Vec<u8> {
        let mut stream = connect(server).await;
        stream.write_all(request).await.expect("sent");
        let mut bytes = Vec::new();
        stream.read_to_end(&mut bytes).await.expect("bytes");
        bytes
    }

    async fn ask(server: &FakeModel, path: &str, body: &Value) -> (String, Value) {
        let mut stream = connect(server).await;
        stream.write_all(&post(path, body)).await.expect("sent");
        let (head, body) = read_one(&mut stream).await;
        (head, serde_json::from_slice(&body).expect("JSON"))
    }

    #[test]
    fn a_reply_has_the_shape_of_the_api_that_was_asked() {
        let server = FakeModel::start(|request| Play::Reply(format!("{}:{}", request.nth, request.prompt())));
        block_on(async {
            let (head, body) = ask(&server, "/v1/chat/completions", &chat("hello")).await;
            assert!(head.starts_with("HTTP/1.1 200 OK\r\n"), "{head}");
            assert_eq!(body["choices"][0]["message"]["content"], "1:Be brief.\nhello");
            assert_eq!(body["choices"][0]["finish_reason"], "stop");
            assert_eq!(body["usage"], json!({"prompt_tokens": 4, "completion_tokens": 5, "total_tokens": 9}));
            let (_, body) = ask(&server, "/v1/messages?beta=true", &anthropic("hello")).await;
            assert_eq!(body["content"], json!([{"type": "text", "text": "1:Be brief.\nhello"}]));
            assert_eq!((&body["stop_reason"], &body["model"]), (&json!("end_turn"), &json!("c")));
            let (head, _) = ask(&server, "/v1/models", &json!({})).await;
            assert!(head.starts_with("HTTP/1.1 404 "), "{head}");
        });
        let requests = server.requests();
        let seen: Vec<_> = requests.iter().map(|one| (one.api, one.max_tokens(), one.images().len())).collect();
        assert_eq!(seen, [(Some(Api::OpenAi), Some(9), 1), (Some(Api::Anthropic), Some(8), 1), (None, None, 0)]);
        assert_eq!(requests[0].images(), requests[1].images());
        assert_eq!((requests[0].header("x-key"), requests[0].method.as_str()), (Some("Secret"), "POST"));
    }

    #[test]
    fn a_connection_serves_many_requests_and_everything_is_counted() {
        let server = FakeModel::start(|request| if request.nth == 1 { Play::Status(503) } else { Play::ToolCall });
        block_on(async {
            let mut stream = connect(&server).await;
            // Two at once, and one in pieces.
            let both = [post("/v1/chat/completions", &chat("a")), post("/v1/chat/completions", &chat("b"))].concat();
            stream.write_all(&both).await.expect("sent");
            for _ in 0..2 {
                let (head, _) = read_one(&mut stream).await;
                assert!(head.starts_with("HTTP/1.1 503 "), "{head}");
            }
            for piece in post("/v1/chat/completions", &chat("a")).chunks(40) {
                stream.write_all(piece).await.expect("sent");
                tokio::task::yield_now().await;
            }
            let (_, body) = read_one(&mut stream).await;
            let body: Value = serde_json::from_slice(&body).expect("JSON");
            assert_eq!(body["choices"][0]["message"]["tool_calls"][0]["type"], "function");
            // What breaks off is no request, but was received.
            stream.write_all(b"POST /v1/chat/completions HTTP/1.1\r\nX: broken-off").await.expect("sent");
        });
        let counts: Vec<Count> = server.requests().iter().map(|one| server.counts()[&one.body_hash()]).collect();
        let (a, b) = (Count { received: 2, answered: 1 }, Count { received: 1, answered: 0 });
        assert_eq!(counts, [a, b, a]);
        assert_eq!(server.total(), Count { received: 3, answered: 1 });
        assert_eq!((server.connections(), server.peak_in_flight()), (1, 1));
        let end = std::time::Instant::now() + Duration::from_secs(5);
        while !server.bytes_received().ends_with(b"broken-off") {
            assert!(std::time::Instant::now() < end, "{}", String::from_utf8_lossy(&server.bytes_received()));
            std::thread::sleep(Duration::from_millis(1));
        }
        assert!(server.bytes_received().windows(6).any(|six| six == b"Secret"));
    }

    #[test]
    fn endings_other_than_an_answer_are_told_in_the_terms_of_each_api() {
        let plays = [
            (Play::Length("{".into()), "length", "max_tokens"),
            (Play::Refusal("no".into()), "stop", "refusal"),
            (Play::ContentFilter, "content_filter", "refusal"),
            (Play::NullContent, "stop", "end_turn"),
            (Play::ToolCall, "tool_calls", "tool_use"),
        ];
        for (play, finish, stop) in plays {
            let name = format!("{play:?}");
            let server = FakeModel::start(move |_| play.clone());
            let (open, other) = block_on(async {
                let (_, open) = ask(&server, "/v1/chat/completions", &chat("")).await;
                (open, ask(&server, "/v1/messages", &anthropic("")).await.1)
            });
            assert_eq!((&open["choices"][0]["finish_reason"], &other["stop_reason"]), (&json!(finish), &json!(stop)));
            let message = &open["choices"][0]["message"];
            match name.as_str() {
                r#"Refusal("no")"# => {
                    assert_eq!((&message["content"], &message["refusal"]), (&json!(null), &json!("no")))
                }
                "NullContent" => assert_eq!((&message["content"], &other["content"]), (&json!(null), &json!([]))),
                _ => {}
            }
        }
    }

    #[test]
    fn errors_have_the_shape_of_the_api_and_carry_retry_after() {
        let server = FakeModel::start(|_| Play::RetryAfter(429, "0.5".to_owned()));
        block_on(async {
            let (head, body) = ask(&server, "/v1/chat/completions", &chat("")).await;
            assert!(head.starts_with("HTTP/1.1 429 ") && head.contains("\r\nRetry-After: 0.5\r\n"), "{head}");
            assert_eq!(body["error"]["type"], "rate_limit_error");
            let (_, body) = ask(&server, "/v1/messages", &anthropic("")).await;
            assert_eq!((&body["type"], &body["error"]["type"]), (&json!("error"), &json!("rate_limit_error")));
        });
    }

    #[test]
    fn faults_of_the_connection() {
        let request = post("/v1/chat/completions", &chat(""));
        let whole = || Box::new(Play::Json(200, json!("0123456789")));
        let run = |play: Play| {
            let server = FakeModel::start(move |_| play.clone());
            let bytes = block_on(until_closed(&server, &request));
            assert_eq!(server.total(), Count { received: 1, answered: 0 });
            String::from_utf8(bytes).expect("text")
        };
        assert_eq!(run(Play::Close), "");
        let cut = run(Play::Cut(4, whole()));
        assert!(cut.contains("Content-Length: 12\r\n") && cut.ends_with("\r\n\r\n\"012"), "{cut}");
        let long = run(Play::WrongLength(5, whole()));
        assert!(long.contains("Content-Length: 17\r\n") && long.ends_with("\r\n\r\n\"0123456789\""), "{long}");
        let short = run(Play::Drip(Duration::ZERO, Box::new(Play::WrongLength(-2, whole()))));
        assert!(short.contains("Content-Length: 10\r\n") && short.ends_with("\r\n\r\n\"0123456789\""), "{short}");
    }

    #[test]
    fn latency_and_drips_take_their_time_and_hanging_ends_with_the_server() {
        let latency = Duration::from_millis(40);
        let server = FakeModel::start(move |request| match request.texts().last() {
            Some(&"hang") => Play::Hang,
            Some(&"drip") => Play::Drip(latency, Box::new(Play::Json(200, json!("a".repeat(30))))),
            _ => Play::Slow(latency, Box::new(Play::Reply(String::new()))),
        });
        block_on(async {
            let began = std::time::Instant::now();
            let three = ["a", "b", "c"].map(|text| {
                let (address, request) = (server.address(), post("/v1/chat/completions", &chat(text)));
                tokio::spawn(async move {
                    let mut stream = TcpStream::connect(address).await.expect("a connection");
                    stream.write_all(&request).await.expect("sent");
                    read_one(&mut stream).await
                })
            });
            for one in three {
                one.await.expect("an answer");
            }
            assert!(began.elapsed() >= latency);
            assert!((1..=3).contains(&server.peak_in_flight()));
            let began = std::time::Instant::now();
            let (_, body) = ask(&server, "/v1/chat/completions", &chat("drip")).await;
            assert_eq!((body, began.elapsed() >= latency * 2), (json!("a".repeat(30)), true));
            let mut stream = connect(&server).await;
            stream.write_all(&post("/v1/chat/completions", &chat("hang"))).await.expect("sent");
            let waited = tokio::time::timeout(latency, stream.read_u8()).await;
            assert!(waited.is_err(), "{waited:?}");
            let address = server.address();
            drop(server);
            // An end, or a reset: the hanging request is over.
            assert!(stream.read_u8().await.is_err());
            assert!(TcpStream::connect(address).await.is_err());
        });
    }

    #[test]
    fn odd_bodies() {
        let recorded =
            b"HTTP/1.1 400 Bad Request\r\nserver: x\r\ncontent-length: 2\r\nConnection: close\r\n\r\n{}".to_vec();
        let request = post("/v1/chat/completions", &chat(""));
        let sent = recorded.clone();
        let server = FakeModel::start(move |request| match request.nth {
            1 => Play::HttpFile(sent.clone()),
            2 => Play::Raw {
                status: 200,
                headers: vec![("Connection".into(), "close".into())],
                body: b"<html>".to_vec(),
            },
            3 => Play::InvalidUtf8,
            _ => Play::Giant(3 << 20),
        })
        .without_log();
        block_on(async {
            assert_eq!(until_closed(&server, &request).await, recorded);
            let raw = until_closed(&server, &request).await;
            assert!(raw.ends_with(b"Content-Length: 6\r\n\r\n<html>"), "{}", String::from_utf8_lossy(&raw));
            let mut stream = connect(&server).await;
            stream.write_all(&request).await.expect("sent");
            let (_, body) = read_one(&mut stream).await;
            assert!(String::from_utf8(body.clone()).is_err());
            assert!(body.windows(2).any(|two| two == [0xff, 0xfe]));
            stream.write_all(&request).await.expect("sent");
            let (_, body) = read_one(&mut stream).await;
            let body: Value = serde_json::from_slice(&body).expect("JSON");
            assert_eq!(body["choices"][0]["message"]["content"].as_str().map(str::len), Some(3 << 20));
        });
        assert_eq!(server.total(), Count { received: 4, answered: 3 });
        assert_eq!((server.requests().len(), server.bytes_received().len()), (0, 0));
    }
}
