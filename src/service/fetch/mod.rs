//! Getting the files of a source from the servers that publish them.
//!
//! [`fetch`] brings a raw folder to what its plan and its lock file say. A file gets its name only when it is complete,
//! of its expected kind and of the right hash; until then it is `<name>.part`, and a later call goes on where this one
//! stopped. [`collect`] runs a search page by page. A [`Fetcher`] does both, and asks for small answers, as often as is
//! needed, with one account of what each host allows.
//!
//! Servers are asked one after another, slowly, and are left alone when they say so or keep failing.

pub mod kinds;
pub mod lock;
pub mod paging;
mod part;
mod run;
mod session;

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
use md5::Md5;
use paging::{Page, PageRequest, Search, SearchProvenance};
use part::*;
use reqwest::header::{self, HeaderMap, HeaderName, HeaderValue};
use reqwest::{Client, Response, StatusCode, Url};
pub use run::md5_of;
use run::*;
use serde::{Deserialize, Serialize};
use session::*;
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
use tokio::runtime::Runtime;

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
    /// 32 lower-case hexadecimal digits, where the service names them. A file that has this hash is kept without asking,
    /// and an answer with another one is cut or damaged; what the lock file says still decides whether it may change.
    pub md5: Option<String>,
    /// What the service says of its licence, for the lock file.
    pub licence: Option<String>,
    pub kind: FileKind,
    pub max_bytes: u64,
}

impl FetchFile {
    /// A file of which nothing more is known.
    pub fn new(url: Url, path: &str, kind: FileKind, max_bytes: u64) -> Self {
        Self { url, path: path.to_owned(), sha256: None, md5: None, licence: None, kind, max_bytes }
    }
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
    /// The day that the lock file says files came on, `YYYY-MM-DD`; without it, it says none.
    pub date: Option<String>,
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
            date: None,
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
    Fetcher::new(options)?.fetch_held(options.update, plan, progress)
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
    Fetcher::new(options)?.collect(search, max_bytes, address, read, &|_| {})
}

/// What became of a request for something small.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Answered {
    Body(Vec<u8>),
    /// The server says that there is no such thing (404 or 410).
    Missing,
    /// Why there is no answer that can be used.
    Failed(String),
}

/// Several calls that share what is known of each host: its limits, its pauses, how often it failed. All calls block.
pub struct Fetcher<'a> {
    session: Session<'a>,
    /// `None` only while it is dropped.
    runtime: Option<Runtime>,
}

impl<'a> Fetcher<'a> {
    /// # Errors
    /// When the system refuses threads or certificates.
    pub fn new(options: &'a FetchOptions<'a>) -> anyhow::Result<Self> {
        let session = Session::new(options)?;
        let runtime =
            tokio::runtime::Builder::new_current_thread().enable_all().build().context("starting to fetch")?;
        Ok(Self { session, runtime: Some(runtime) })
    }

    pub fn options(&self) -> &'a FetchOptions<'a> {
        self.session.options
    }

    /// As [`fetch`].
    ///
    /// # Errors
    /// Those of [`fetch`].
    pub fn fetch(&self, plan: &FetchPlan, progress: &dyn Fn(Progress<'_>)) -> anyhow::Result<FetchReport> {
        self.fetch_that(self.session.options.update, plan, progress)
    }

    /// As [`fetch`], but whether files may be replaced is said here.
    ///
    /// # Errors
    /// Those of [`fetch`].
    pub fn fetch_that(
        &self,
        update: bool,
        plan: &FetchPlan,
        progress: &dyn Fn(Progress<'_>),
    ) -> anyhow::Result<FetchReport> {
        check_plan(plan)?;
        fs::create_dir(&plan.folder)?;
        let _held = Held::take(&plan.folder)?;
        self.fetch_held(update, plan, progress)
    }

    fn fetch_held(
        &self,
        update: bool,
        plan: &FetchPlan,
        progress: &dyn Fn(Progress<'_>),
    ) -> anyhow::Result<FetchReport> {
        let options = self.session.options;
        let run = Run {
            folder: &plan.folder,
            update,
            session: &self.session,
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
        let fetched: anyhow::Result<Vec<Vec<(usize, FileReport)>>> = self.block_on(work);
        // What is in the folder is noted, however it ended.
        let saved = run.lock.borrow_mut().save();
        let mut files: Vec<(usize, FileReport)> = fetched?.into_iter().flatten().collect();
        saved?;
        files.sort_by_key(|(place, _)| *place);
        Ok(FetchReport { files: files.into_iter().map(|(_, file)| file).collect() })
    }

    /// As [`collect`]; `progress` is told of waits.
    ///
    /// # Errors
    /// Those of [`collect`].
    pub fn collect<T>(
        &self,
        search: Search,
        max_bytes: u64,
        address: impl Fn(&PageRequest) -> anyhow::Result<Url>,
        read: impl Fn(&[u8]) -> anyhow::Result<Page<T>>,
        progress: &dyn Fn(Progress<'_>),
    ) -> anyhow::Result<(Vec<T>, SearchProvenance)> {
        let work = paging::drive(search, async |request: PageRequest| {
            let url = address(&request)?;
            check_url(&url)?;
            let shown = shown_url(&url);
            let waiting = |why: &str, wait: Duration| progress(Progress::Waiting { path: &shown, why, wait });
            let body = self.session.body(&url, max_bytes, waiting).await.map_err(|trouble| match trouble {
                Trouble::Local(error) => error,
                Trouble::Again { why, .. } | Trouble::Never(why) | Trouble::Missing(why) => {
                    input(format!("{shown}: {why}"))
                }
                Trouble::Blocked(found) => input(format!("{shown}: the server sent {found}")),
            })?;
            read(&body).with_context(|| shown)
        });
        self.block_on(work)
    }

    /// Asks for small things, several at a time, and gives the answers in the order of the addresses; `progress` is told of
    /// waits.
    ///
    /// # Errors
    /// An address that is not one of the web, this machine's own faults, and an interruption. What servers do wrong is
    /// among the answers.
    pub fn get_all(
        &self,
        urls: &[Url],
        max_bytes: u64,
        progress: &dyn Fn(Progress<'_>),
    ) -> anyhow::Result<Vec<Answered>> {
        for url in urls {
            check_url(url)?;
        }
        let work = stream::iter(urls)
            .map(|url| async move {
                let shown = shown_url(url);
                let waiting = |why: &str, wait: Duration| progress(Progress::Waiting { path: &shown, why, wait });
                Ok(match self.session.body(url, max_bytes, waiting).await {
                    Ok(body) => Answered::Body(body),
                    Err(Trouble::Local(error)) => return Err(error),
                    Err(Trouble::Missing(_)) => Answered::Missing,
                    Err(Trouble::Again { why, .. } | Trouble::Never(why)) => Answered::Failed(why),
                    Err(Trouble::Blocked(found)) => Answered::Failed(format!("the server sent {found}")),
                })
            })
            .buffered(self.session.options.concurrency.max(1))
            .try_collect();
        self.block_on(work)
    }

    /// Runs to the end, or until the flag of the options is set.
    fn block_on<T>(&self, work: impl Future<Output = anyhow::Result<T>>) -> anyhow::Result<T> {
        let Some(runtime) = &self.runtime else { anyhow::bail!("fetching has ended") };
        runtime.block_on(until(work, self.session.options.stop))
    }
}

impl Drop for Fetcher<'_> {
    fn drop(&mut self) {
        // A name that is being looked up is not waited for.
        if let Some(runtime) = self.runtime.take() {
            runtime.shutdown_background();
        }
    }
}

/// The outcome of `work`, unless `stop` is set before.
async fn until<T>(work: impl Future<Output = anyhow::Result<T>>, stop: Option<&AtomicBool>) -> anyhow::Result<T> {
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
