//! The thread that writes: requests before they leave, replies before they are used, in groups.

use super::*;

pub(super) enum Job {
    Sent(Sent, oneshot::Sender<Result<i64, String>>),
    Finished(Shelf, i64, Finished, oneshot::Sender<Result<i64, String>>),
    Accept(Shelf, Hash, i64, oneshot::Sender<Result<i64, String>>),
    Stop,
}

pub(super) struct Writer {
    pub(super) jobs: mpsc::Sender<Job>,
    thread: Option<std::thread::JoinHandle<()>>,
    run_file: PathBuf,
    /// Locked: others see by it that this process lives.
    _run: File,
}

impl Writer {
    pub(super) fn start(folder: &Path) -> anyhow::Result<Self> {
        fs::create_dir(folder)?;
        mark_lost(folder)?;
        let now = SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default();
        let run = format!("{:x}-{:x}", now.as_nanos(), std::process::id());
        let run_file = folder.join(format!("{run}.run"));
        let file = File::create_new(&run_file).with_context(|| format!("creating {}", run_file.display()))?;
        file.lock().with_context(|| format!("locking {}", run_file.display()))?;
        let (jobs, receiver) = mpsc::channel();
        let folder = folder.to_owned();
        let thread = std::thread::Builder::new()
            .name("replies".to_owned())
            .spawn(move || write_jobs(&folder, &run, &receiver))
            .context("starting the thread that writes replies")?;
        Ok(Self { jobs, thread: Some(thread), run_file, _run: file })
    }
}

impl Drop for ReplyStore {
    fn drop(&mut self) {
        let Some(Ok(mut writer)) = self.writer.take() else { return };
        // Either the thread takes it, or it has ended already.
        let _ = writer.jobs.send(Job::Stop);
        if let Some(thread) = writer.thread.take() {
            let _ = thread.join();
        }
        // Left behind it does no harm: the next process sees that nobody holds it.
        let _ = std::fs::remove_file(&writer.run_file);
    }
}

/// Requests that a process sent that ended since may have been paid for: they are marked, and stay counted.
pub(super) fn mark_lost(folder: &Path) -> anyhow::Result<()> {
    for name in fs::list(folder)? {
        let Some(run) = name.strip_suffix(".run") else { continue };
        let path = folder.join(&name);
        // Another process may have removed it meanwhile.
        let Ok(file) = File::open(&path) else { continue };
        match file.try_lock() {
            Ok(()) => {}
            Err(TryLockError::WouldBlock) => continue,
            Err(TryLockError::Error(error)) => {
                return Err(error).with_context(|| format!("locking {}", path.display()));
            }
        }
        for shelf in Shelf::ALL {
            let path = folder.join(shelf.file());
            if path.is_file() {
                open(&path, true)?
                    .execute("UPDATE requests SET state = 'lost' WHERE run = ?1 AND state = 'sent'", [run])
                    .with_context(|| format!("writing {}", path.display()))?;
            }
        }
        // Best effort: another process may do the same.
        let _ = std::fs::remove_file(&path);
    }
    Ok(())
}

pub(super) fn write_jobs(folder: &Path, run: &str, jobs: &mpsc::Receiver<Job>) {
    let mut connections: BTreeMap<Shelf, Connection> = BTreeMap::new();
    let mut stopping = false;
    while !stopping {
        let Ok(first) = jobs.recv() else { return };
        let mut by_shelf: BTreeMap<Shelf, Vec<Job>> = BTreeMap::new();
        for job in std::iter::once(first).chain(jobs.try_iter().take(GROUP)) {
            match &job {
                Job::Sent(sent, _) => by_shelf.entry(sent.shelf).or_default().push(job),
                Job::Finished(shelf, ..) | Job::Accept(shelf, ..) => by_shelf.entry(*shelf).or_default().push(job),
                Job::Stop => stopping = true,
            }
        }
        for (shelf, jobs) in by_shelf {
            write_group(folder, run, shelf, jobs, &mut connections);
        }
    }
}

/// Commits jobs together, then tells those who wait. If the commit fails all of them failed.
pub(super) fn write_group(
    folder: &Path,
    run: &str,
    shelf: Shelf,
    jobs: Vec<Job>,
    connections: &mut BTreeMap<Shelf, Connection>,
) {
    let mut work = || -> anyhow::Result<Vec<i64>> {
        let connection = match connections.entry(shelf) {
            std::collections::btree_map::Entry::Occupied(entry) => entry.into_mut(),
            std::collections::btree_map::Entry::Vacant(entry) => entry.insert(open(&folder.join(shelf.file()), true)?),
        };
        let transaction = connection.transaction_with_behavior(rusqlite::TransactionBehavior::Immediate)?;
        let ids = jobs.iter().map(|job| write_job(&transaction, run, job)).collect::<rusqlite::Result<Vec<i64>>>()?;
        transaction.commit()?;
        Ok(ids)
    };
    let result = work().map_err(|error| format!("{error:#}"));
    for (position, job) in jobs.into_iter().enumerate() {
        let (Job::Sent(_, done) | Job::Finished(_, _, _, done) | Job::Accept(_, _, _, done)) = job else { continue };
        let answer = match &result {
            Ok(ids) => Ok(ids.get(position).copied().unwrap_or_default()),
            Err(error) => Err(error.clone()),
        };
        // One who no longer waits need not know.
        let _ = done.send(answer);
    }
}

pub(super) fn write_job(transaction: &Transaction<'_>, run: &str, job: &Job) -> rusqlite::Result<i64> {
    match job {
        Job::Sent(sent, _) => {
            let now = SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default();
            let key = sent.key.to_bytes().unwrap_or_default();
            transaction
                .prepare_cached(
                    "INSERT INTO requests (key, run, pipeline, node, record_id, model, structured, max_tokens, state,
                     detail, started_ms, latency_ms, input_tokens, output_tokens, cost)
                     VALUES (?1, ?2, ?3, ?4, ?5, ?6, ?7, ?8, 'sent', '', ?9, 0, 0, 0, ?10)",
                )?
                .execute(params![
                    key,
                    run,
                    sent.pipeline,
                    sent.node,
                    sent.record_id,
                    sent.model,
                    sent.structured,
                    sent.max_tokens,
                    i64::try_from(now.as_millis()).unwrap_or(i64::MAX),
                    sent.cost_at_most,
                ])?;
            Ok(transaction.last_insert_rowid())
        }
        Job::Finished(_, id, finished, _) => {
            let sha256 = finished.body.as_ref().and_then(|body| Hash::of(body).to_bytes());
            transaction
                .prepare_cached(
                    "UPDATE requests SET state = ?2, detail = ?3, status = ?4, latency_ms = ?5, input_tokens = ?6,
                     output_tokens = ?7, cost = ?8, sha256 = ?9, body = ?10 WHERE id = ?1",
                )?
                .execute(params![
                    id,
                    finished.state.as_str(),
                    finished.detail,
                    finished.status,
                    finished.latency_ms,
                    finished.input_tokens,
                    finished.output_tokens,
                    finished.cost,
                    sha256,
                    finished.body,
                ])?;
            Ok(*id)
        }
        Job::Accept(_, key, id, _) => {
            accept(transaction, &key.to_bytes().unwrap_or_default(), *id)?;
            Ok(*id)
        }
        Job::Stop => Ok(0),
    }
}
