//! Getting the files of a source from the servers that publish them.
//!
//! [`fetch`] brings a raw folder to what its plan and its lock file say. A file gets its name only when it is complete,
//! of its expected kind and of the right hash; until then it is `<name>.part`, and a later call goes on where this one
//! stopped. [`collect`] runs a search page by page.
//!
//! Servers are asked one after another, slowly, and are left alone when they say so or keep failing.

pub mod kinds;
pub mod lock;
pub mod paging;

#[cfg(test)]
mod tests;

use crate::error::{Fault, input, usage};
use crate::record::Hash;
use crate::service::http::limits::{CircuitBreaker, LimitSettings, Limiter, Permit};
use crate::service::http::retry::{self, Backoff, StatusClass};
use crate::service::http::{self, BodyError, ClientOptions, Reach, shown_error, shown_url};
use crate::store::fs;
use crate::store::raw::{FETCH_PART, FETCH_PART_STATE, is_name_of_fetch};
use anyhow::Context;
use futures_util::future::{Either, select, try_join_all};
use futures_util::stream::{self, StreamExt, TryStreamExt};
use kinds::{FileKind, Misfit, Sample};
use lock::{Held, LockFile, Locked};
use paging::{Page, PageRequest, Search, SearchProvenance};
use reqwest::header::{self, HeaderMap, HeaderName, HeaderValue};
use reqwest::{Client, Response, StatusCode, Url};
use serde::{Deserialize, Serialize};
use sha2::{Digest, Sha256};
use std::cell::RefCell;
use std::collections::{BTreeMap, BTreeSet};
use std::fmt;
use std::fs::{File, OpenOptions};
use std::future::Future;
use std::io::{self, BufRead, Seek, SeekFrom, Write};
use std::path::{Path, PathBuf};
use std::pin::pin;
use std::rc::Rc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration, Instant, SystemTime};

/// The files of one source.
#[derive(Clone, Debug)]
pub struct FetchPlan {
    /// The raw folder of the source; it is made when it is not there.
    pub folder: PathBuf,
    pub files: Vec<FetchFile>,
}

/// One file and where it comes from.
#[derive(Clone, Debug)]
pub struct FetchFile {
    /// `http` or `https`, without user and password. It is written to the lock file, so it must hold no key.
    pub url: Url,
    /// Name below the folder, with `/` between its parts.
    pub path: String,
    /// What the file must be; without it, what the lock file says, or else whatever comes.
    pub sha256: Option<Hash>,
    pub kind: FileKind,
    pub max_bytes: u64,
}

/// How servers are treated.
#[derive(Clone, Debug)]
pub struct FetchOptions<'a> {
    /// Takes what differs from the lock file, or from a file that is there without one, instead of refusing it.
    pub update: bool,
    /// For each host, unless `host_requests_per_minute` names it.
    pub requests_per_minute: u32,
    pub host_requests_per_minute: BTreeMap<String, u32>,
    /// Requests that are under way at one host at the same time.
    pub concurrency: usize,
    /// Tries of one file in a row that bring less than a megabyte.
    pub attempts: u32,
    /// A host that fails so often in a row, over all files, is not asked again.
    pub give_up_after: u32,
    pub backoff: Backoff,
    pub client: ClientOptions,
    /// Set from outside to end early; what was received stays. Looked at ten times a second, but not while a file that
    /// is there already is hashed.
    pub stop: Option<&'a AtomicBool>,
}

impl Default for FetchOptions<'_> {
    fn default() -> Self {
        Self {
            update: false,
            requests_per_minute: 60,
            host_requests_per_minute: BTreeMap::new(),
            concurrency: 1,
            attempts: 6,
            give_up_after: 10,
            backoff: Backoff::default(),
            client: ClientOptions::default(),
            stop: None,
        }
    }
}

/// What happens meanwhile.
#[derive(Debug)]
pub enum Progress<'a> {
    /// An answer begins, at this place in the file of so many bytes.
    Started {
        path: &'a str,
        at: u64,
        bytes: Option<u64>,
    },
    /// So many bytes of the file are there.
    Received {
        path: &'a str,
        bytes: u64,
    },
    /// A failed try; the next one follows after `wait`.
    Waiting {
        path: &'a str,
        why: &'a str,
        wait: Duration,
    },
    Finished {
        path: &'a str,
        state: &'a FileState,
    },
}

/// What became of a file.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum FileState {
    /// New in the folder, or restored to what the lock file says.
    Fetched,
    /// It was there already.
    Kept,
    /// Replaced, as asked by [`FetchOptions::update`] or the plan's hash.
    Updated {
        before: Hash,
    },
    /// The server sent something else than such a file; nothing was stored.
    Blocked {
        found: String,
    },
    /// The server has another file than the lock file says; nothing was stored.
    Changed {
        locked: Hash,
        found: Hash,
    },
    /// The server has another file than the plan says; nothing was stored.
    WrongHash {
        planned: Hash,
        found: Hash,
    },
    /// There is another file under this name, and nothing says where it is from; nothing was stored.
    InTheWay {
        present: Hash,
        found: Hash,
    },
    Failed {
        why: String,
    },
}

impl FileState {
    /// Whether the file is in the folder as it should be.
    pub fn is_good(&self) -> bool {
        matches!(self, Self::Fetched | Self::Kept | Self::Updated { .. })
    }
}

impl fmt::Display for FileState {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Fetched => write!(f, "fetched"),
            Self::Kept => write!(f, "kept"),
            Self::Updated { before } => write!(f, "updated, was {before}"),
            Self::Blocked { found } => write!(f, "blocked: the server sent {found}"),
            Self::Changed { locked, found } => {
                write!(f, "changed: the lock file has sha256 {locked}, the server sent {found}")
            }
            Self::WrongHash { planned, found } => {
                write!(f, "wrong hash: the plan has sha256 {planned}, the server sent {found}")
            }
            Self::InTheWay { present, found } => {
                write!(f, "in the way: a file with sha256 {present} is there, the server sent {found}")
            }
            Self::Failed { why } => write!(f, "failed: {why}"),
        }
    }
}

#[derive(Clone, Debug, PartialEq, Eq)]
pub struct FileReport {
    pub path: String,
    /// Without query.
    pub url: String,
    pub state: FileState,
    /// Bytes of bodies that were received for it.
    pub received: u64,
}

/// All files, in the order of the plan.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct FetchReport {
    pub files: Vec<FileReport>,
}

impl FetchReport {
    /// # Errors
    /// An input error that names every file that is not in the folder as it should be.
    pub fn check(&self) -> anyhow::Result<()> {
        let bad: Vec<String> = self
            .files
            .iter()
            .filter(|file| !file.state.is_good())
            .map(|file| format!("{} from {}: {}", file.path, file.url, file.state))
            .collect();
        if bad.is_empty() {
            return Ok(());
        }
        Err(input(format!("{} of {} files were not fetched:\n{}", bad.len(), self.files.len(), bad.join("\n"))))
    }
}

const REDIRECTS: usize = 5;
/// A try that ends early but brings so many new bytes is not in vain.
const GAIN: u64 = 1 << 20;

/// Fetches what is missing or has changed. It blocks, with a runtime of its own; not for use inside another one.
///
/// A file whose hash is the planned one is kept without asking, and so is one that matches the lock file but came without
/// `ETag` and `Last-Modified`, unless `update` is set. What goes wrong with one file or server is in the report and does
/// not stop the others.
///
/// # Errors
/// A plan that cannot be right, a folder that another fetch holds, a damaged lock file, a disk that fails, and an
/// interruption.
pub fn fetch(plan: &FetchPlan, options: &FetchOptions, progress: &dyn Fn(Progress<'_>)) -> anyhow::Result<FetchReport> {
    check_plan(plan)?;
    fs::create_dir(&plan.folder)?;
    let _held = Held::take(&plan.folder)?;
    let session = Session::new(options)?;
    let run = Run {
        folder: &plan.folder,
        update: options.update,
        session: &session,
        lock: RefCell::new(LockFile::load(&plan.folder)?),
        saved: RefCell::new(Instant::now()),
        progress,
    };
    let mut by_host: BTreeMap<&str, Vec<(usize, &FetchFile)>> = BTreeMap::new();
    for (place, file) in plan.files.iter().enumerate() {
        by_host.entry(file.url.host_str().unwrap_or_default()).or_default().push((place, file));
    }
    let run = &run;
    let work = async {
        let hosts = by_host.into_values().map(|files| {
            stream::iter(files)
                .map(|(place, file)| async move { Ok((place, run_file(run, file).await?)) })
                .buffer_unordered(options.concurrency.max(1))
                .try_collect::<Vec<(usize, FileReport)>>()
        });
        try_join_all(hosts).await
    };
    let fetched: anyhow::Result<Vec<Vec<(usize, FileReport)>>> = block_on(work, options.stop);
    // What is in the folder is noted, however it ended.
    let saved = run.lock.borrow_mut().save();
    let mut files: Vec<(usize, FileReport)> = fetched?.into_iter().flatten().collect();
    saved?;
    files.sort_by_key(|(place, _)| *place);
    Ok(FetchReport { files: files.into_iter().map(|(_, file)| file).collect() })
}

/// Collects all hits of a search. `address` makes the URL of a page; `read` reads its answer of at most `max_bytes`. It
/// blocks, as [`fetch`] does.
///
/// # Errors
/// A server that refuses or keeps failing, those of `address` and `read`, and a number of hits that is not the announced
/// one.
pub fn collect<T>(
    search: Search,
    options: &FetchOptions,
    max_bytes: u64,
    address: impl Fn(&PageRequest) -> anyhow::Result<Url>,
    read: impl Fn(&[u8]) -> anyhow::Result<Page<T>>,
) -> anyhow::Result<(Vec<T>, SearchProvenance)> {
    let session = Session::new(options)?;
    let work = paging::drive(search, async |request: PageRequest| {
        let url = address(&request)?;
        check_url(&url)?;
        let shown = shown_url(&url);
        let body = session.body(&url, max_bytes).await.map_err(|trouble| match trouble {
            Trouble::Local(error) => error,
            Trouble::Again { why, .. } | Trouble::Never(why) => input(format!("{shown}: {why}")),
            Trouble::Blocked(found) => input(format!("{shown}: the server sent {found}")),
        })?;
        read(&body).with_context(|| shown)
    });
    block_on(work, options.stop)
}

/// Runs to the end, or until `stop` is set.
fn block_on<T>(work: impl Future<Output = anyhow::Result<T>>, stop: Option<&AtomicBool>) -> anyhow::Result<T> {
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().context("starting to fetch")?;
    let result = runtime.block_on(async {
        let Some(stop) = stop else { return work.await };
        let stopped = async {
            while !stop.load(Ordering::Relaxed) {
                tokio::time::sleep(Duration::from_millis(100)).await;
            }
        };
        match select(pin!(work), pin!(stopped)).await {
            Either::Left((result, _)) => result,
            Either::Right(_) => Err(Fault::Interrupted.into()),
        }
    });
    // A name that is being looked up is not waited for.
    runtime.shutdown_background();
    result
}

fn check_plan(plan: &FetchPlan) -> anyhow::Result<()> {
    let mut names = BTreeSet::new();
    for file in &plan.files {
        check_path(&file.path).map_err(|why| usage(format!("cannot fetch to `{}`: {why}", file.path)))?;
        check_url(&file.url).with_context(|| format!("cannot fetch `{}`", file.path))?;
        if !names.insert(file.path.as_str()) {
            return Err(usage(format!("cannot fetch to `{}`: two files have this name", file.path)));
        }
        let is_hash = |hash: &Hash| hash.to_bytes().is_some() && !hash.as_str().bytes().any(|c| c.is_ascii_uppercase());
        if !file.sha256.as_ref().is_none_or(is_hash) {
            return Err(usage(format!("the sha256 of `{}` is not 64 lower-case hexadecimal digits", file.path)));
        }
    }
    // A file cannot be a folder, too.
    for name in &names {
        let mut folders = Path::new(name).ancestors().skip(1).filter_map(Path::to_str);
        if let Some(folder) = folders.find(|folder| names.contains(folder)) {
            return Err(usage(format!("cannot fetch to `{name}`: `{folder}` is a file of the same plan")));
        }
    }
    Ok(())
}

fn check_path(path: &str) -> Result<(), &'static str> {
    // A part is empty in an absolute name, too.
    if path.contains(['\\', '\0']) || path.split('/').any(|part| matches!(part, "" | "." | "..")) {
        return Err("it is not a relative name of a file below the raw folder");
    }
    if path.rsplit('/').next().is_some_and(is_name_of_fetch) {
        return Err("fetching uses this name itself");
    }
    Ok(())
}

fn check_url(url: &Url) -> anyhow::Result<()> {
    if !matches!(url.scheme(), "http" | "https") || url.host().is_none() {
        return Err(usage(format!("{} is not an http or https address", shown_url(url))));
    }
    if !url.username().is_empty() || url.password().is_some() {
        return Err(usage(format!("the address {} has a user or password in it", shown_url(url))));
    }
    Ok(())
}

/// How one try ended without a file.
enum Trouble {
    /// Another try may do better.
    Again { why: String, asked: Option<Duration> },
    /// No further try would.
    Never(String),
    /// The server sent something else.
    Blocked(String),
    /// This machine is at fault; nothing else can be fetched either.
    Local(anyhow::Error),
}

impl Trouble {
    fn again(why: impl Into<String>) -> Self {
        Self::Again { why: why.into(), asked: None }
    }
}

impl From<anyhow::Error> for Trouble {
    fn from(error: anyhow::Error) -> Self {
        Self::Local(error)
    }
}

/// The client and what is known of each host.
struct Session<'a> {
    client: Client,
    options: &'a FetchOptions<'a>,
    hosts: RefCell<BTreeMap<String, Rc<Host>>>,
}

struct Host {
    limiter: Limiter,
    breaker: CircuitBreaker,
}

/// An answer with its body still to come; the place at the host is held until then.
struct Answer {
    response: Response,
    host: Rc<Host>,
    _permit: Permit,
}

impl<'a> Session<'a> {
    fn new(options: &'a FetchOptions<'a>) -> anyhow::Result<Self> {
        // Redirects are followed here, where each one is checked.
        let client = http::client(&ClientOptions { redirects: 0, ..options.client.clone() })?;
        Ok(Self { client, options, hosts: RefCell::default() })
    }

    fn host(&self, url: &Url) -> Rc<Host> {
        let name = url.host_str().unwrap_or_default();
        let mut hosts = self.hosts.borrow_mut();
        let host = hosts.entry(name.to_owned()).or_insert_with(|| {
            let named = self.options.host_requests_per_minute.get(name).copied();
            Rc::new(Host {
                limiter: Limiter::new(LimitSettings {
                    concurrency: self.options.concurrency,
                    requests_per_minute: Some(named.unwrap_or(self.options.requests_per_minute)),
                    tokens_per_minute: None,
                }),
                breaker: CircuitBreaker::new(self.options.give_up_after),
            })
        });
        Rc::clone(host)
    }

    fn check_breaker(&self, host: &Host, url: &Url) -> Result<(), Trouble> {
        if !host.breaker.is_open() {
            return Ok(());
        }
        let (name, most) = (url.host_str().unwrap_or_default(), self.options.give_up_after);
        Err(Trouble::Never(format!("{name} failed {most} times in a row and is not asked again")))
    }

    /// Tries until it succeeds, is in vain, or failed `attempts` times in a row without getting [`GAIN`] further in
    /// `position`. `waiting` is told of each failure.
    async fn persist<T>(
        &self,
        waiting: impl Fn(&str, Duration),
        mut attempt: impl AsyncFnMut() -> Result<T, Trouble>,
        position: impl Fn() -> u64,
    ) -> Result<T, Trouble> {
        let (mut failures, mut furthest) = (0, position());
        loop {
            let (why, asked) = match attempt().await {
                Err(Trouble::Again { why, asked }) => (why, asked),
                result => return result,
            };
            let at = position();
            failures += 1;
            if at >= furthest + GAIN {
                (failures, furthest) = (1, at);
            }
            if failures >= self.options.attempts.max(1) {
                return Err(Trouble::Never(format!("{why} (tried {failures} times)")));
            }
            let wait = self.options.backoff.wait(failures - 1, asked, fastrand::f64());
            waiting(&why, wait);
            tokio::time::sleep(wait).await;
        }
    }

    /// Sends one request and follows its redirects. Gives answers with 2xx, 304 and 416.
    async fn send(&self, origin: &Url, headers: &HeaderMap) -> Result<Answer, Trouble> {
        let mut url = origin.clone();
        for _ in 0..=REDIRECTS {
            let host = self.host(&url);
            // Before the wait for a place, and for those that it opened on meanwhile.
            self.check_breaker(&host, &url)?;
            let permit = host.limiter.acquire(0).await;
            self.check_breaker(&host, &url)?;
            let response = match self.client.get(url.clone()).headers(headers.clone()).send().await {
                Ok(response) => response,
                Err(error) => {
                    host.breaker.record(false);
                    let again = retry::is_retryable(&error);
                    let why = shown_error(error);
                    return Err(if again { Trouble::again(why) } else { Trouble::Never(why) });
                }
            };
            let status = response.status();
            if let Some(next) = redirect(&response) {
                host.breaker.record(true);
                let next = next.map_err(Trouble::Never)?;
                check_redirect(origin, &url, &next).await.map_err(Trouble::Never)?;
                url = next;
                continue;
            }
            match retry::class_of_status(status.as_u16()) {
                StatusClass::Retry => {
                    host.breaker.record(false);
                    let asked = retry::retry_after(response.headers(), SystemTime::now());
                    if let Some(asked) = asked {
                        // For every file of the host.
                        host.limiter.pause(asked.min(self.options.backoff.longest_asked));
                    }
                    return Err(Trouble::Again { why: format!("the server answered {status}"), asked });
                }
                StatusClass::Fatal
                    if !matches!(status, StatusCode::NOT_MODIFIED | StatusCode::RANGE_NOT_SATISFIABLE) =>
                {
                    host.breaker.record(true);
                    return Err(Trouble::Never(format!("the server answered {status}")));
                }
                StatusClass::Success | StatusClass::Fatal => return Ok(Answer { response, host, _permit: permit }),
            }
        }
        Err(Trouble::Never(format!("redirected more than {REDIRECTS} times")))
    }

    /// One small answer, tried as often as files are.
    async fn body(&self, url: &Url, max_bytes: u64) -> Result<Vec<u8>, Trouble> {
        let attempt = async || {
            let Answer { response, host, _permit } = self.send(url, &HeaderMap::new()).await?;
            if response.status() != StatusCode::OK {
                return Err(Trouble::Never(format!("the server answered {}", response.status())));
            }
            let body = http::read_capped(response, max_bytes).await;
            host.breaker.record(!matches!(body, Err(BodyError::Cut { .. })));
            body.map_err(|error| match error {
                BodyError::TooLarge { .. } => Trouble::Never(error.to_string()),
                BodyError::Cut { .. } => Trouble::again(error.to_string()),
            })
        };
        self.persist(|_, _| {}, attempt, || 0).await
    }
}

/// Where an answer sends us; `None` when it is not a redirect.
fn redirect(response: &Response) -> Option<Result<Url, String>> {
    if !matches!(response.status().as_u16(), 301 | 302 | 303 | 307 | 308) {
        return None;
    }
    let location = response.headers().get(header::LOCATION)?;
    let next = location.to_str().ok().and_then(|location| response.url().join(location).ok());
    Some(next.ok_or_else(|| "redirected to what is not an address".to_owned()))
}

/// A redirect may not lead to a less safe scheme, nor from a public server to this machine or its network (and between
/// those two neither): a plan names what it wants there.
async fn check_redirect(origin: &Url, from: &Url, to: &Url) -> Result<(), String> {
    let shown = shown_url(to);
    check_url(to).map_err(|error| format!("redirected: {error}"))?;
    if from.scheme() != to.scheme() && to.scheme() != "https" {
        return Err(format!("redirected from https to {shown}"));
    }
    let reach = http::reach(to).await;
    if reach != Reach::Public && reach != http::reach(origin).await {
        return Err(format!("redirected to {shown}, which is not a public address"));
    }
    Ok(())
}

/// One call of [`fetch`].
struct Run<'a> {
    folder: &'a Path,
    update: bool,
    session: &'a Session<'a>,
    lock: RefCell<LockFile>,
    /// When the lock file was last saved.
    saved: RefCell<Instant>,
    progress: &'a dyn Fn(Progress<'_>),
}

async fn run_file(run: &Run<'_>, file: &FetchFile) -> anyhow::Result<FileReport> {
    let received = RefCell::new(0);
    let state = match run.file(file, &received).await {
        Ok(state) => state,
        Err(Trouble::Local(error)) => return Err(error),
        Err(Trouble::Blocked(found)) => FileState::Blocked { found },
        Err(Trouble::Again { why, .. } | Trouble::Never(why)) => FileState::Failed { why },
    };
    (run.progress)(Progress::Finished { path: &file.path, state: &state });
    Ok(FileReport { path: file.path.clone(), url: shown_url(&file.url), state, received: received.into_inner() })
}

/// What a try brought.
enum Got {
    /// The file in the folder is what the server has.
    NotModified,
    /// The part is complete.
    Complete(Locked),
}

impl Run<'_> {
    async fn file(&self, file: &FetchFile, received: &RefCell<u64>) -> Result<FileState, Trouble> {
        let target = self.folder.join(&file.path);
        let present = hash_if_there(&target)?;
        let locked = self.lock.borrow().get(&file.path).cloned();
        let part = Part::new(&target);
        if let (Some(planned), Some((hash, bytes))) = (&file.sha256, &present)
            && planned == hash
        {
            let known = locked.filter(|locked| locked.sha256 == *hash && locked.url == file.url.as_str());
            let entry = known.unwrap_or_else(|| Locked {
                url: file.url.to_string(),
                sha256: hash.clone(),
                bytes: *bytes,
                etag: None,
                last_modified: None,
            });
            self.note(file, entry, false)?;
            part.discard()?;
            return Ok(FileState::Kept);
        }
        // Only a file that is still what was fetched may be kept as "not modified".
        let known = locked.as_ref().filter(|locked| {
            locked.url == file.url.as_str()
                && file.sha256.is_none()
                && present.as_ref().is_some_and(|(hash, _)| *hash == locked.sha256)
        });
        if known.is_some_and(|known| known.etag.is_none() && known.last_modified.is_none()) && !self.update {
            part.discard()?;
            return Ok(FileState::Kept);
        }
        if let Some(folder) = target.parent() {
            fs::create_dir(folder)?;
        }
        let path = file.path.as_str();
        let waiting = |why: &str, wait: Duration| (self.progress)(Progress::Waiting { path, why, wait });
        let attempt = async || self.download(file, &part, known, received).await;
        let found = match self.session.persist(waiting, attempt, || part.bytes()).await? {
            Got::NotModified => {
                part.discard()?;
                return Ok(FileState::Kept);
            }
            Got::Complete(found) => found,
        };
        let hash = found.sha256.clone();
        let before = locked.as_ref().map(|locked| &locked.sha256);
        let refused = match (&file.sha256, before, &present) {
            (Some(planned), ..) if *planned != hash => {
                Some(FileState::WrongHash { planned: planned.clone(), found: hash.clone() })
            }
            (Some(_), ..) => None,
            (None, Some(locked), _) if *locked != hash && !self.update => {
                Some(FileState::Changed { locked: locked.clone(), found: hash.clone() })
            }
            (None, None, Some((present, _))) if *present != hash && !self.update => {
                Some(FileState::InTheWay { present: present.clone(), found: hash.clone() })
            }
            _ => None,
        };
        if let Some(refused) = refused {
            part.discard()?;
            return Ok(refused);
        }
        if present.is_some_and(|(present, _)| present == hash) {
            part.discard()?;
            self.note(file, found, false)?;
            return Ok(FileState::Kept);
        }
        part.place(&target)?;
        let replaced = before.filter(|before| **before != hash).cloned();
        self.note(file, found, replaced.is_some())?;
        Ok(replaced.map_or(FileState::Fetched, |before| FileState::Updated { before }))
    }

    /// Notes a file that is in place. The lock file is written at once if it would be wrong otherwise, else once a
    /// second: what a crash loses is only fetched again.
    fn note(&self, file: &FetchFile, entry: Locked, at_once: bool) -> anyhow::Result<()> {
        let mut lock = self.lock.borrow_mut();
        lock.insert(&file.path, entry);
        let mut saved = self.saved.borrow_mut();
        if at_once || saved.elapsed() >= Duration::from_secs(1) {
            lock.save()?;
            *saved = Instant::now();
        }
        Ok(())
    }

    /// One try: goes on with the part if there is one that the server can continue, and else begins it.
    async fn download(
        &self,
        file: &FetchFile,
        part: &Part,
        known: Option<&Locked>,
        received: &RefCell<u64>,
    ) -> Result<Got, Trouble> {
        let mut headers = HeaderMap::new();
        headers.insert(header::ACCEPT_ENCODING, HeaderValue::from_static("identity"));
        if let Some(known) = known {
            set(&mut headers, header::IF_NONE_MATCH, known.etag.as_deref());
            set(&mut headers, header::IF_MODIFIED_SINCE, known.last_modified.as_deref());
        }
        let resumed = part.resume(file.url.as_str())?;
        if let Some(resumed) = &resumed {
            set(&mut headers, header::RANGE, Some(&format!("bytes={}-", resumed.start)));
            set(&mut headers, header::IF_RANGE, Some(&resumed.validator));
        }
        let Answer { mut response, host, _permit } = self.session.send(&file.url, &headers).await?;
        let status = response.status();
        let mut state = PartState {
            url: file.url.to_string(),
            etag: text_of(&response, &header::ETAG),
            last_modified: text_of(&response, &header::LAST_MODIFIED),
            length: response.content_length(),
        };
        let mut writing = match (status, resumed) {
            (StatusCode::NOT_MODIFIED, _) if known.is_some() => {
                host.breaker.record(true);
                return Ok(Got::NotModified);
            }
            (StatusCode::PARTIAL_CONTENT, Some(resumed)) => {
                match continues(&response, &resumed, &state) {
                    Ok(length) => state.length = length,
                    Err(why) => {
                        host.breaker.record(false);
                        part.discard()?;
                        return Err(Trouble::again(why));
                    }
                }
                // What it was begun with still names it.
                state.etag = resumed.state.etag;
                state.last_modified = resumed.state.last_modified;
                part.go_on(resumed.start)?
            }
            (StatusCode::RANGE_NOT_SATISFIABLE, Some(_)) => {
                host.breaker.record(true);
                part.discard()?;
                return Err(Trouble::again("the server has less than was received; beginning anew"));
            }
            (StatusCode::OK, _) => {
                if state.length.is_some_and(|bytes| bytes > file.max_bytes) {
                    host.breaker.record(true);
                    part.discard()?;
                    return Err(too_large(file));
                }
                part.begin(&state)?
            }
            _ => {
                host.breaker.record(true);
                return Err(Trouble::Never(format!("the server answered {status}")));
            }
        };
        let path = file.path.as_str();
        let start = writing.bytes;
        (self.progress)(Progress::Started { path, at: start, bytes: state.length });
        loop {
            match response.chunk().await {
                Ok(Some(chunk)) => {
                    *received.borrow_mut() += chunk.len() as u64;
                    if writing.bytes.saturating_add(chunk.len() as u64) > file.max_bytes {
                        host.breaker.record(true);
                        part.discard()?;
                        return Err(too_large(file));
                    }
                    writing.write(&chunk)?;
                    (self.progress)(Progress::Received { path, bytes: writing.bytes });
                }
                Ok(None) => break,
                Err(error) => {
                    let at = writing.bytes;
                    host.breaker.record(at >= start + GAIN);
                    return Err(Trouble::again(format!("cut short after {at} bytes: {}", shown_error(error))));
                }
            }
        }
        if let Some(length) = state.length
            && length != writing.bytes
        {
            host.breaker.record(false);
            let why = format!("{} bytes instead of {length}", writing.bytes);
            part.discard()?;
            return Err(Trouble::again(why));
        }
        host.breaker.record(true);
        let (sha256, bytes) = writing.finish()?;
        match part.check(&file.kind)? {
            Ok(()) => {}
            Err(Misfit::Cut) => {
                part.discard()?;
                return Err(Trouble::again(format!("the end of the {} is missing", file.kind.name())));
            }
            Err(Misfit::Other(found)) => {
                part.discard()?;
                return Err(Trouble::Blocked(format!("{found} instead of {}", file.kind.name())));
            }
        }
        let PartState { url, etag, last_modified, .. } = state;
        Ok(Got::Complete(Locked { url, sha256, bytes, etag, last_modified }))
    }
}

fn too_large(file: &FetchFile) -> Trouble {
    Trouble::Never(format!("the file is larger than the {} bytes allowed for it", file.max_bytes))
}

fn hash_if_there(path: &Path) -> anyhow::Result<Option<(Hash, u64)>> {
    match std::fs::metadata(path) {
        Ok(metadata) if metadata.is_file() => {}
        Ok(_) => return Err(input(format!("{} is not a regular file", path.display()))),
        Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(None),
        Err(error) => return Err(fs::explain("reading", path, &error).into()),
    }
    let mut hasher = Sha256::new();
    let hashed = File::open(path).and_then(|mut file| feed(&mut hasher, &mut file));
    let bytes = hashed.map_err(|error| fs::explain("reading", path, &error))?;
    Ok(Some((Hash::from_digest(hasher.finalize().into()), bytes)))
}

/// Hashes the rest of a file and tells how many bytes it has.
fn feed(hasher: &mut Sha256, file: &mut File) -> io::Result<u64> {
    let mut reader = io::BufReader::with_capacity(1 << 18, file);
    let mut total = 0;
    loop {
        let piece = match reader.fill_buf() {
            Ok(piece) => piece,
            Err(error) if error.kind() == io::ErrorKind::Interrupted => continue,
            Err(error) => return Err(error),
        };
        let n = piece.len();
        if n == 0 {
            return Ok(total);
        }
        hasher.update(piece);
        reader.consume(n);
        total += n as u64;
    }
}

fn set(headers: &mut HeaderMap, name: HeaderName, value: Option<&str>) {
    // What a server sent as a header can be sent back as one.
    if let Some(value) = value.and_then(|value| HeaderValue::from_str(value).ok()) {
        headers.insert(name, value);
    }
}

fn text_of(response: &Response, name: &HeaderName) -> Option<String> {
    let text = response.headers().get(name)?.to_str().ok()?.trim();
    (!text.is_empty()).then(|| text.to_owned())
}

/// Beside a part: what it is a part of.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
struct PartState {
    url: String,
    etag: Option<String>,
    last_modified: Option<String>,
    length: Option<u64>,
}

/// A part that can be continued.
struct Resumed {
    state: PartState,
    start: u64,
    /// The `If-Range` that keeps two versions of a file from being mixed.
    validator: String,
}

/// Whether an answer with 206 is the rest of the part.
///
/// # Errors
/// Why not; otherwise the length of the whole file, if known.
fn continues(response: &Response, resumed: &Resumed, now: &PartState) -> Result<Option<u64>, String> {
    let range = text_of(response, &header::CONTENT_RANGE).ok_or("a part without Content-Range")?;
    let wrong = || format!("asked for the bytes from {}, got Content-Range `{range}`", resumed.start);
    let (span, total) = range.strip_prefix("bytes ").and_then(|range| range.split_once('/')).ok_or_else(wrong)?;
    let (start, end) = span.split_once('-').ok_or_else(wrong)?;
    let (start, end): (u64, u64) = start.parse().ok().zip(end.parse().ok()).ok_or_else(wrong)?;
    let total: Option<u64> = if total == "*" { None } else { Some(total.parse().map_err(|_| wrong())?) };
    let to_the_end = total.is_none_or(|total| end.checked_add(1) == Some(total));
    if start != resumed.start || !to_the_end {
        return Err(wrong());
    }
    let (known, total) = (resumed.state.length, total.or(end.checked_add(1)));
    if known.is_some() && known != total {
        return Err(wrong());
    }
    if now.etag.is_some() && resumed.state.etag.is_some() && now.etag != resumed.state.etag {
        return Err("the file changed between two parts".to_owned());
    }
    Ok(total)
}

/// `<name>.part` and `<name>.part.json`.
struct Part {
    path: PathBuf,
    state: PathBuf,
}

/// A part that is being written.
struct Writing {
    file: File,
    path: PathBuf,
    hasher: Sha256,
    /// Length of the part so far.
    bytes: u64,
}

impl Part {
    fn new(target: &Path) -> Self {
        let beside = |suffix: &str| {
            let mut name = target.as_os_str().to_owned();
            name.push(suffix);
            PathBuf::from(name)
        };
        Self { path: beside(FETCH_PART), state: beside(FETCH_PART_STATE) }
    }

    fn bytes(&self) -> u64 {
        std::fs::metadata(&self.path).map_or(0, |metadata| metadata.len())
    }

    /// The part, if it is one of this URL that the server can continue safely.
    fn resume(&self, url: &str) -> anyhow::Result<Option<Resumed>> {
        let bytes = self.bytes();
        if bytes == 0 || !self.state.exists() {
            return Ok(None);
        }
        // A damaged one is as good as none.
        let text = fs::read_text(&self.state).unwrap_or_default();
        let Ok(state) = serde_json::from_str::<PartState>(&text) else { return Ok(None) };
        // A weak tag does not promise the same bytes.
        let strong = state.etag.clone().filter(|etag| !etag.starts_with("W/"));
        let Some(validator) = strong.or_else(|| state.last_modified.clone()) else { return Ok(None) };
        if state.url != url {
            return Ok(None);
        }
        // There is no range behind the last byte, so a complete part asks for that one again.
        let start = state.length.map_or(bytes, |length| bytes.min(length.saturating_sub(1)));
        Ok((start > 0).then_some(Resumed { state, start, validator }))
    }

    fn begin(&self, state: &PartState) -> anyhow::Result<Writing> {
        // In this order no part stands beside the state of another.
        fs::remove_file(&self.path)?;
        fs::write_atomic(&self.state, &serde_json::to_vec(state)?)?;
        let file = File::create(&self.path).map_err(|error| fs::explain("creating", &self.path, &error))?;
        Ok(Writing { file, path: self.path.clone(), hasher: Sha256::new(), bytes: 0 })
    }

    /// Cuts the part to `start` bytes and goes on behind them.
    fn go_on(&self, start: u64) -> anyhow::Result<Writing> {
        let mut hasher = Sha256::new();
        let mut open = || {
            let mut file = OpenOptions::new().read(true).write(true).open(&self.path)?;
            file.set_len(start)?;
            let bytes = feed(&mut hasher, &mut file)?;
            file.seek(SeekFrom::Start(bytes))?;
            Ok((file, bytes))
        };
        let (file, bytes) = open().map_err(|error: io::Error| fs::explain("opening", &self.path, &error))?;
        Ok(Writing { file, path: self.path.clone(), hasher, bytes })
    }

    fn check(&self, kind: &FileKind) -> anyhow::Result<Result<(), Misfit>> {
        let sample = File::open(&self.path).and_then(|mut file| Sample::read(&mut file));
        Ok(kinds::check(kind, &sample.map_err(|error| fs::explain("reading", &self.path, &error))?))
    }

    /// Gives the complete and synced part its name.
    fn place(&self, target: &Path) -> anyhow::Result<()> {
        std::fs::rename(&self.path, target).map_err(|error| fs::explain("renaming to", target, &error))?;
        if let Some(folder) = target.parent() {
            fs::sync_dir(folder)?;
        }
        fs::remove_file(&self.state)
    }

    fn discard(&self) -> anyhow::Result<()> {
        fs::remove_file(&self.path)?;
        fs::remove_file(&self.state)
    }
}

impl Writing {
    fn write(&mut self, chunk: &[u8]) -> anyhow::Result<()> {
        self.file.write_all(chunk).map_err(|error| fs::explain("writing", &self.path, &error))?;
        self.hasher.update(chunk);
        self.bytes += chunk.len() as u64;
        Ok(())
    }

    /// After this the part survives a crash of the system.
    fn finish(self) -> anyhow::Result<(Hash, u64)> {
        self.file.sync_all().map_err(|error| fs::explain("syncing", &self.path, &error))?;
        Ok((Hash::from_digest(self.hasher.finalize().into()), self.bytes))
    }
}
