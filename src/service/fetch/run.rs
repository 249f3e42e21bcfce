//! Bringing one file to what the plan and the lock file say.

use super::*;

/// One call of [`fetch`].
pub(super) struct Run<'a> {
    pub(super) folder: &'a Path,
    pub(super) update: bool,
    pub(super) session: &'a Session<'a>,
    pub(super) lock: RefCell<LockFile>,
    /// When the lock file was last saved.
    pub(super) saved: RefCell<Instant>,
    pub(super) progress: &'a dyn Fn(Progress<'_>),
}

pub(super) async fn run_file(run: &Run<'_>, file: &FetchFile) -> anyhow::Result<FileReport> {
    let received = RefCell::new(0);
    let state = match run.file(file, &received).await {
        Ok(state) => state,
        Err(Trouble::Local(error)) => return Err(error),
        Err(Trouble::Blocked(found)) => FileState::Blocked { found },
        Err(Trouble::Again { why, .. } | Trouble::Never(why) | Trouble::Missing(why)) => FileState::Failed { why },
    };
    (run.progress)(Progress::Finished { path: &file.path, state: &state });
    Ok(FileReport { path: file.path.clone(), url: shown_url(&file.url), state, received: received.into_inner() })
}

/// What a try brought.
pub(super) enum Got {
    /// The file in the folder is what the server has.
    NotModified,
    /// The part is complete.
    Complete(Locked),
}

impl Run<'_> {
    pub(super) async fn file(&self, file: &FetchFile, received: &RefCell<u64>) -> Result<FileState, Trouble> {
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
                md5: file.md5.clone(),
                licence: file.licence.clone(),
                // Nobody knows when they came.
                fetched: None,
            });
            self.note(file, entry, false)?;
            part.discard()?;
            return Ok(FileState::Kept);
        }
        // The service has just named the hash that these bytes have: there is nothing to ask.
        if let (Some(planned), Some((hash, bytes)), None) = (&file.md5, &present, &file.sha256)
            && locked.as_ref().is_none_or(|locked| locked.sha256 == *hash)
            && md5_of_file(&target)? == *planned
        {
            let known = locked.filter(|locked| locked.url == file.url.as_str());
            let (etag, last_modified) = known.map_or((None, None), |known| (known.etag, known.last_modified));
            let entry = Locked {
                url: file.url.to_string(),
                sha256: hash.clone(),
                bytes: *bytes,
                etag,
                last_modified,
                md5: file.md5.clone(),
                licence: file.licence.clone(),
                // Nobody knows when they came.
                fetched: None,
            };
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
    pub(super) fn note(&self, file: &FetchFile, entry: Locked, at_once: bool) -> anyhow::Result<()> {
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
    pub(super) async fn download(
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
        let md5 = file.md5.as_ref().map(|_| md5_of_file(&part.path)).transpose()?;
        // What has the hash that the service names is the service's file, even if its name promises another kind.
        let is_the_one = md5.is_some() && md5 == file.md5;
        let is_media = matches!(file.kind, FileKind::Image | FileKind::Media);
        match part.check(&file.kind)? {
            Ok(()) => {}
            Err(_) if is_the_one && is_media => {}
            Err(Misfit::Cut) => {
                part.discard()?;
                return Err(Trouble::again(format!("the end of the {} is missing", file.kind.name())));
            }
            Err(Misfit::Other(found)) => {
                part.discard()?;
                return Err(Trouble::Blocked(format!("{found} instead of {}", file.kind.name())));
            }
        }
        if let (Some(planned), Some(found)) = (&file.md5, &md5)
            && !is_the_one
        {
            part.discard()?;
            return Err(Trouble::again(format!("its md5 is {found}, the service says {planned}")));
        }
        let PartState { url, etag, last_modified, .. } = state;
        let (licence, fetched) = (file.licence.clone(), self.session.options.date.clone());
        Ok(Got::Complete(Locked { url, sha256, bytes, etag, last_modified, md5, licence, fetched }))
    }
}

pub(super) fn too_large(file: &FetchFile) -> Trouble {
    Trouble::Never(format!("the file is larger than the {} bytes allowed for it", file.max_bytes))
}

pub(super) fn hash_if_there(path: &Path) -> anyhow::Result<Option<(Hash, u64)>> {
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

/// The MD5 of all that can be read, as 32 lower-case hexadecimal digits. Services name it to tell whole files from cut
/// ones; it proves nothing about who made them.
pub fn md5_of(reader: &mut impl io::Read) -> io::Result<String> {
    let mut hasher = Md5::new();
    let mut piece = vec![0u8; 1 << 18];
    loop {
        match reader.read(&mut piece) {
            Ok(0) => break,
            Ok(n) => hasher.update(piece.get(..n).unwrap_or_default()),
            Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
            Err(error) => return Err(error),
        }
    }
    Ok(hasher.finalize().iter().map(|byte| format!("{byte:02x}")).collect())
}

fn md5_of_file(path: &Path) -> anyhow::Result<String> {
    let hashed = File::open(path).and_then(|mut file| md5_of(&mut file));
    Ok(hashed.map_err(|error| fs::explain("reading", path, &error))?)
}

/// Hashes the rest of a file and tells how many bytes it has.
pub(super) fn feed(hasher: &mut Sha256, file: &mut File) -> io::Result<u64> {
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

pub(super) fn set(headers: &mut HeaderMap, name: HeaderName, value: Option<&str>) {
    // What a server sent as a header can be sent back as one.
    if let Some(value) = value.and_then(|value| HeaderValue::from_str(value).ok()) {
        headers.insert(name, value);
    }
}

pub(super) fn text_of(response: &Response, name: &HeaderName) -> Option<String> {
    let text = response.headers().get(name)?.to_str().ok()?.trim();
    (!text.is_empty()).then(|| text.to_owned())
}
