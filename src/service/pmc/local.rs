//! Packages that are on this machine already: folders as the object store has them, and the archive's former `.tar.gz`.
//!
//! ```text
//! PMC<id>.<version>/…                    with metadata/PMC<id>.<version>.json, if there is one
//! PMC<id>.tar.gz, or <xx>/<yy>/PMC<id>.tar.gz
//! ```
//!
//! Of an archive only regular files with plain names directly in its one folder are taken: links, devices, absolute names
//! and ones that lead out of the folder are refused and told. A former package tells no version; it becomes version 0.

use super::opendata::record_path;
use super::resolver::{
    Metadata, Origin, Package, PackageFile, Pmcid, Resolved, Resolver, Work, cap, is_safe_name, kind_of,
};
use crate::error::input;
use crate::record::Hash;
use crate::service::fetch::kinds::{self, FileKind, Misfit, Sample};
use crate::service::fetch::lock::{Held, LockFile, Locked};
use crate::service::fetch::{FileReport, FileState, Progress, md5_of};
use crate::store::fs;
use anyhow::Context;
use std::collections::{BTreeMap, BTreeSet};
use std::io::Read;
use std::path::{Path, PathBuf};

/// The adapter.
pub struct Local {
    pub folder: PathBuf,
}

/// Folders of former packages lie two levels deep.
const ARCHIVE_DEPTH: usize = 2;
/// Entries that an archive may have, of all kinds.
const MAX_ENTRIES: usize = 10_000;
const MAX_METADATA_BYTES: u64 = 4 << 20;
/// What headers may add to the files of an archive.
const HEADER_BYTES: u64 = 16 << 20;

/// A regular file of an archive.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Member {
    /// The full name in the archive.
    pub path: String,
    /// Without its folder.
    pub name: String,
    pub bytes: u64,
}

/// Goes through an archive: `take` gets every regular file with a safe name, and its bytes where it wants them. Gives what
/// was refused, and why. No more than `max_bytes` are unpacked.
///
/// # Errors
/// An archive that is damaged, cut, or larger than allowed.
pub fn members(
    archive: impl Read,
    max_bytes: u64,
    mut take: impl FnMut(Member, &mut dyn Read) -> anyhow::Result<()>,
) -> anyhow::Result<Vec<String>> {
    let limit = max_bytes.saturating_add(HEADER_BYTES);
    let unpacked = flate2::read::MultiGzDecoder::new(archive).take(limit);
    let mut archive = tar::Archive::new(unpacked);
    let (mut refused, mut total) = (Vec::new(), 0u64);
    for (n, entry) in archive.entries().map_err(|error| input(format!("not a .tar.gz: {error}")))?.enumerate() {
        let mut entry = entry.map_err(|error| input(format!("the archive is damaged: {error}")))?;
        if n >= MAX_ENTRIES {
            return Err(input(format!("the archive has more than {MAX_ENTRIES} entries")));
        }
        let path = String::from_utf8_lossy(&entry.path_bytes()).into_owned();
        let kind = entry.header().entry_type();
        if kind.is_dir() || kind.is_pax_global_extensions() {
            continue;
        }
        let shown: String = path.chars().filter(|character| !character.is_control()).take(200).collect();
        if !kind.is_file() {
            refused.push(format!("{shown} is a link or device, not a file"));
            continue;
        }
        let parts: Vec<&str> = path.strip_prefix("./").unwrap_or(&path).split('/').collect();
        let (folder, name) = match parts.as_slice() {
            [folder, name] if !folder.is_empty() && *folder != "." && *folder != ".." => (*folder, *name),
            _ => {
                refused.push(format!("{shown} does not lie directly in the article's folder"));
                continue;
            }
        };
        if !is_safe_name(name) || folder.contains(['\\', '\0']) {
            refused.push(format!("{shown} has a name that is not taken"));
            continue;
        }
        let bytes = entry.size();
        total = total.saturating_add(bytes);
        if total > max_bytes {
            return Err(input(format!("the archive has more than the {max_bytes} bytes that are allowed")));
        }
        let member = Member { name: name.to_owned(), bytes, path };
        take(member, &mut entry)?;
    }
    Ok(refused)
}

/// The files of a package as they are named in the raw folder: the article's XML after the package, the rest as they are.
///
/// # Errors
/// A package without XML, or with several.
fn arrange(
    name: &str,
    found: Vec<(String, Origin, u64)>,
    left_out: &mut Vec<String>,
) -> Result<Vec<PackageFile>, String> {
    let own = format!("{name}.xml");
    let is_xml = |name: &str| matches!(kind_of(name), FileKind::Xml { .. });
    let xmls: Vec<&str> = found.iter().map(|(name, ..)| name.as_str()).filter(|name| is_xml(name)).collect();
    let main = match xmls.as_slice() {
        [] => return Err("it has no XML".to_owned()),
        [one] => (*one).to_owned(),
        several if several.contains(&own.as_str()) => own.clone(),
        several => return Err(format!("it has several XML files: {}", several.join(", "))),
    };
    let (mut xml, mut media) = (Vec::new(), Vec::new());
    for (file, origin, bytes) in found {
        let form = file.rsplit_once('.').map_or("", |(_, extension)| extension).to_ascii_lowercase();
        if file == main {
            let kind = kind_of(&own);
            xml.push(PackageFile { name: own.clone(), origin, kind, bytes: Some(bytes), md5: None });
        } else if is_xml(&file) {
            left_out.push(format!("{file} is XML beside the article's"));
        } else if !["pdf", "txt", "json"].contains(&form.as_str()) {
            media.push(PackageFile { kind: kind_of(&file), name: file, origin, bytes: Some(bytes), md5: None });
        }
    }
    media.sort_by(|a, b| a.name.cmp(&b.name));
    xml.extend(media);
    Ok(xml)
}

impl Local {
    /// Archives by id. The first in order of names counts.
    fn archives(&self) -> anyhow::Result<BTreeMap<Pmcid, PathBuf>> {
        let mut found = BTreeMap::new();
        let mut open = vec![(self.folder.clone(), 0)];
        while let Some((folder, depth)) = open.pop() {
            for name in fs::list(&folder)? {
                let path = folder.join(&name);
                let Ok(metadata) = std::fs::symlink_metadata(&path) else { continue };
                if metadata.is_dir() && depth < ARCHIVE_DEPTH {
                    open.push((path, depth + 1));
                } else if metadata.is_file()
                    && let Some(id) = name.strip_suffix(".tar.gz").and_then(Pmcid::parse)
                {
                    found.entry(id).or_insert(path);
                }
            }
        }
        Ok(found)
    }

    /// Versions by id.
    fn folders(&self) -> anyhow::Result<BTreeMap<Pmcid, BTreeSet<u32>>> {
        let mut found: BTreeMap<Pmcid, BTreeSet<u32>> = BTreeMap::new();
        for name in fs::list(&self.folder)? {
            let parsed = name.split_once('.').and_then(|(id, version)| {
                let is_number = !version.is_empty() && version.bytes().all(|digit| digit.is_ascii_digit());
                Some((Pmcid::parse(id)?, version.parse().ok().filter(|_| is_number)?))
            });
            if let Some((id, version)) = parsed
                && self.folder.join(&name).is_dir()
            {
                found.entry(id).or_default().insert(version);
            }
        }
        Ok(found)
    }

    fn of_folder(&self, work: &Work<'_>, id: Pmcid, versions: Vec<u32>) -> anyhow::Result<Resolved> {
        let Some(version) = versions.last().copied() else { return Ok(Resolved::Absent) };
        let name = format!("{id}.{version}");
        let record = self.folder.join(record_path(id, version));
        let metadata = if record.exists() {
            match Metadata::parse(&fs::read_limited(&record, MAX_METADATA_BYTES)?, id, version) {
                Ok(metadata) => metadata,
                Err(why) => return Ok(Resolved::Failed(why)),
            }
        } else {
            Metadata { pmcid: id.to_string(), version, ..Metadata::default() }
        };
        let folder = self.folder.join(&name);
        let (mut found, mut left_out) = (Vec::new(), Vec::new());
        for file in fs::list(&folder)? {
            let path = folder.join(&file);
            let about = std::fs::symlink_metadata(&path).with_context(|| format!("reading {}", path.display()))?;
            if !about.is_file() || !is_safe_name(&file) {
                left_out.push(format!("{file} is no regular file, or has a name that is not taken"));
                continue;
            }
            found.push((file, Origin::Local(path), about.len()));
        }
        self.package(work, id, versions, metadata, arrange(&name, found, &mut left_out), left_out)
    }

    fn of_archive(&self, work: &Work<'_>, id: Pmcid, archive: &Path) -> anyhow::Result<Resolved> {
        let file = std::fs::File::open(archive).with_context(|| format!("reading {}", archive.display()))?;
        let mut found = Vec::new();
        let refused = members(file, work.max_article_bytes, |member, _| {
            let origin = Origin::Member { archive: archive.to_owned(), name: member.path };
            found.push((member.name, origin, member.bytes));
            Ok(())
        });
        let mut left_out = match refused {
            Ok(refused) => refused,
            Err(error) => return Ok(Resolved::Failed(format!("{error:#}"))),
        };
        let metadata = Metadata { pmcid: id.to_string(), ..Metadata::default() };
        let files = arrange(&format!("{id}.0"), found, &mut left_out);
        self.package(work, id, vec![0], metadata, files, left_out)
    }

    fn package(
        &self,
        work: &Work<'_>,
        pmcid: Pmcid,
        versions: Vec<u32>,
        metadata: Metadata,
        files: Result<Vec<PackageFile>, String>,
        left_out: Vec<String>,
    ) -> anyhow::Result<Resolved> {
        let files = match files {
            Ok(files) => files,
            Err(why) => return Ok(Resolved::Failed(why)),
        };
        // Whoever has the package may read it; what may be done with it is a question of its licence.
        let is_open = metadata.is_pmc_openaccess != Some(false);
        let files = if is_open { files } else { Vec::new() };
        let (service, version) = (self.service(), metadata.version);
        let mut package = Package { pmcid, version, versions, service, metadata, is_open, files, left_out };
        Ok(match cap(&mut package, work) {
            Ok(()) => Resolved::Package(Box::new(package)),
            Err(why) => Resolved::Failed(why),
        })
    }
}

impl Resolver for Local {
    fn service(&self) -> &'static str {
        "local"
    }

    fn host(&self) -> String {
        self.folder.display().to_string()
    }

    /// A folder has what it has.
    fn check(&self, _work: &Work<'_>, _sentinels: &[Pmcid]) -> anyhow::Result<()> {
        if self.folder.is_dir() {
            return Ok(());
        }
        Err(input(format!("{} is not a folder of packages", self.folder.display())))
    }

    fn resolve(&self, work: &Work<'_>, ids: &[Pmcid]) -> anyhow::Result<Vec<Resolved>> {
        let (folders, archives) = (self.folders()?, self.archives()?);
        let resolve = |id: &Pmcid| match (folders.get(id), archives.get(id)) {
            (Some(versions), _) => self.of_folder(work, *id, versions.iter().copied().collect()),
            (None, Some(archive)) => self.of_archive(work, *id, archive),
            (None, None) => Ok(Resolved::Absent),
        };
        ids.iter().map(resolve).collect()
    }
}

/// Brings the local files of a package into the raw folder, with its record. The lock file names them by their package, not
/// by a place of this machine.
///
/// # Errors
/// A disk that fails, or a folder that another fetch holds. What is wrong with a file is in its report.
pub fn bring(work: &Work<'_>, package: &Package, update: bool) -> anyhow::Result<Vec<FileReport>> {
    fs::create_dir(work.folder)?;
    let _held = Held::take(work.folder)?;
    let mut lock = LockFile::load(work.folder)?;
    let (mut reports, mut from_archives) = (Vec::new(), BTreeMap::<&Path, BTreeMap<&str, &PackageFile>>::new());
    let name = package.name();
    let licence = package.metadata.license_code.as_deref();
    let mut place = |path: String, origin: &str, kind: &FileKind, bytes: &[u8]| -> anyhow::Result<()> {
        let state = place(work, &mut lock, &path, origin, kind, licence, update, bytes)?;
        (work.progress)(Progress::Finished { path: &path, state: &state });
        reports.push(FileReport { path, url: format!("local:{origin}"), state, received: bytes.len() as u64 });
        Ok(())
    };
    if package.metadata
        != (Metadata { pmcid: package.pmcid.to_string(), version: package.version, ..Metadata::default() })
    {
        let path = record_path(package.pmcid, package.version);
        place(path.clone(), &path, &FileKind::Json, &crate::store::manifest::to_json(&package.metadata)?)?;
    }
    for file in &package.files {
        match &file.origin {
            Origin::Web(_) => {}
            Origin::Local(path) => {
                let bytes = fs::read_limited(path, work.max_file_bytes)?;
                place(format!("{name}/{}", file.name), &format!("{name}/{}", file.name), &file.kind, &bytes)?;
            }
            Origin::Member { archive, name } => {
                from_archives.entry(archive).or_default().insert(name, file);
            }
        }
    }
    for (archive, wanted) in from_archives {
        let file = std::fs::File::open(archive).with_context(|| format!("reading {}", archive.display()))?;
        let base = archive.file_name().map_or_else(String::new, |name| name.to_string_lossy().into_owned());
        members(file, work.max_article_bytes, |member, content| {
            let Some(file) = wanted.get(member.path.as_str()) else { return Ok(()) };
            let mut bytes = Vec::new();
            content
                .take(work.max_file_bytes)
                .read_to_end(&mut bytes)
                .map_err(|error| input(format!("{base}: {error}")))?;
            if bytes.len() as u64 != member.bytes {
                return Err(input(format!("{base}: {} is cut", member.name)));
            }
            place(format!("{name}/{}", file.name), &format!("{base}/{}", member.name), &file.kind, &bytes)
        })?;
    }
    lock.save()?;
    Ok(reports)
}

#[expect(clippy::too_many_arguments, reason = "all of them describe one file")]
fn place(
    work: &Work<'_>,
    lock: &mut LockFile,
    path: &str,
    origin: &str,
    kind: &FileKind,
    licence: Option<&str>,
    update: bool,
    bytes: &[u8],
) -> anyhow::Result<FileState> {
    match kinds::check(kind, &Sample::of(bytes)) {
        Ok(()) => {}
        Err(Misfit::Cut) => return Ok(FileState::Failed { why: format!("the end of the {} is missing", kind.name()) }),
        Err(Misfit::Other(found)) => {
            return Ok(FileState::Blocked { found: format!("{found} instead of {}", kind.name()) });
        }
    }
    let target = work.folder.join(path);
    let found = Hash::of(bytes);
    let present = if target.exists() { Some(crate::store::raw::hash_file(&target)?.0) } else { None };
    let entry = Locked {
        url: format!("local:{origin}"),
        sha256: found.clone(),
        bytes: bytes.len() as u64,
        etag: None,
        last_modified: None,
        md5: Some(md5_of(&mut &*bytes)?),
        licence: licence.map(str::to_owned),
        fetched: work.fetcher.options().date.clone(),
    };
    let state = match present {
        Some(present) if present == found => FileState::Kept,
        Some(present) if !update => return Ok(FileState::InTheWay { present, found }),
        before => {
            target.parent().map_or(Ok(()), fs::create_dir)?;
            fs::write_atomic(&target, bytes)?;
            before.map_or(FileState::Fetched, |before| FileState::Updated { before })
        }
    };
    lock.insert(path, entry);
    Ok(state)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::service::fetch::{FetchOptions, Fetcher};
    use expect_test::expect;
    use tar::EntryType;

    /// A `.tar.gz` whose headers say exactly what they are told, also what no honest writer writes.
    fn packed(entries: &[(&str, EntryType, &[u8])]) -> Vec<u8> {
        let mut archive = Vec::new();
        for (name, kind, content) in entries {
            let mut header = tar::Header::new_ustar();
            header.as_old_mut().name[..name.len()].copy_from_slice(name.as_bytes());
            header.set_entry_type(*kind);
            if kind.is_symlink() {
                header.set_link_name_literal("/tmp").unwrap();
            }
            header.set_size(content.len() as u64);
            header.set_cksum();
            archive.extend_from_slice(header.as_bytes());
            archive.extend_from_slice(content);
            archive.resize(archive.len().next_multiple_of(512), 0);
        }
        archive.resize(archive.len() + 1024, 0);
        let mut encoder = flate2::write::GzEncoder::new(Vec::new(), flate2::Compression::fast());
        std::io::Write::write_all(&mut encoder, &archive).unwrap();
        encoder.finish().unwrap()
    }

    const ARTICLE: &[u8] = b"<article><body><p>Text.</p></body></article>";

    fn with_work<T>(folder: &Path, max_article_bytes: u64, test: impl FnOnce(&Work<'_>) -> T) -> T {
        let options = FetchOptions { date: Some("2026-11-30".to_owned()), ..FetchOptions::default() };
        let fetcher = Fetcher::new(&options).unwrap();
        let max_file_bytes = max_article_bytes;
        test(&Work { fetcher: &fetcher, folder, max_file_bytes, max_article_bytes, progress: &|_| {} })
    }

    fn package(resolved: Vec<Resolved>) -> Package {
        match <[Resolved; 1]>::try_from(resolved).unwrap() {
            [Resolved::Package(package)] => *package,
            [other] => panic!("{other:?}"),
        }
    }

    #[test]
    fn pmc_06_only_plain_files_leave_an_archive() {
        let file = EntryType::Regular;
        let jpeg: &[u8] = b"\xff\xd8\xff\xe0 a picture";
        let bytes = packed(&[
            ("PMC1/", EntryType::Directory, b""),
            ("PMC1/a.nxml", file, ARTICLE),
            ("PMC1/g1.jpg", file, jpeg),
            ("../evil.txt", file, b"evil"),
            ("/etc/evil.txt", file, b"evil"),
            ("PMC1/../../evil.txt", file, b"evil"),
            ("PMC1/l", EntryType::Symlink, b""),
            ("PMC1/l/x", file, b"evil"),
            ("PMC1/hard", EntryType::Link, b""),
            ("PMC1/pipe", EntryType::Fifo, b""),
            ("PMC1/..", file, b"evil"),
            ("evil.txt", file, b"evil"),
            ("PMC1/a.pdf", file, b"%PDF-1.7"),
        ]);
        let scratch = tempfile::tempdir().unwrap();
        let (packages, raw) = (scratch.path().join("in/aa/bb"), scratch.path().join("raw/pmc"));
        std::fs::create_dir_all(&packages).unwrap();
        std::fs::write(packages.join("PMC1.tar.gz"), bytes).unwrap();
        let local = Local { folder: scratch.path().join("in") };
        with_work(&raw, 1 << 20, |work| {
            let package = package(local.resolve(work, &[Pmcid(1)]).unwrap());
            expect![[r#"
                ../evil.txt does not lie directly in the article's folder
                /etc/evil.txt does not lie directly in the article's folder
                PMC1/../../evil.txt does not lie directly in the article's folder
                PMC1/l is a link or device, not a file
                PMC1/l/x does not lie directly in the article's folder
                PMC1/hard is a link or device, not a file
                PMC1/pipe is a link or device, not a file
                PMC1/.. has a name that is not taken
                evil.txt does not lie directly in the article's folder"#]]
            .assert_eq(&package.left_out.join("\n"));
            let state = |reports: Vec<FileReport>| -> Vec<String> {
                reports.iter().map(|file| format!("{}: {}", file.path, file.state)).collect()
            };
            assert_eq!(
                state(bring(work, &package, false).unwrap()),
                ["PMC1.0/PMC1.0.xml: fetched", "PMC1.0/g1.jpg: fetched"]
            );
            assert_eq!(
                state(bring(work, &package, false).unwrap()),
                ["PMC1.0/PMC1.0.xml: kept", "PMC1.0/g1.jpg: kept"]
            );
            let lock = LockFile::load(&raw).unwrap();
            let locked = lock.get("PMC1.0/g1.jpg").unwrap();
            assert_eq!((locked.url.as_str(), locked.bytes), ("local:PMC1.tar.gz/g1.jpg", jpeg.len() as u64));
            assert_eq!(locked.licence, None);
            let mine = std::fs::write(raw.join("PMC1.0/g1.jpg"), "mine");
            mine.unwrap();
            assert!(state(bring(work, &package, false).unwrap())[1].starts_with("PMC1.0/g1.jpg: in the way"));
        });
        let mut files = crate::release::freeze::walk(scratch.path()).unwrap();
        files.retain(|name| !name.contains("/.fetch"));
        assert_eq!(
            files,
            ["in/aa/bb/PMC1.tar.gz", "raw/pmc/PMC1.0/PMC1.0.xml", "raw/pmc/PMC1.0/g1.jpg", "raw/pmc/fetch.lock.json"]
        );
    }

    #[test]
    fn archives_that_are_bombs_cut_or_none_are_refused() {
        let file = EntryType::Regular;
        let whole = packed(&[("PMC1/a.nxml", file, ARTICLE), ("PMC1/b.jpg", file, &[7; 5000])]);
        let error = |bytes: &[u8], most: u64| members(bytes, most, |_, _| Ok(())).unwrap_err().to_string();
        assert_eq!(error(&whole, 5000), "the archive has more than the 5000 bytes that are allowed");
        assert!(members(whole.as_slice(), 6000, |_, _| Ok(())).unwrap().is_empty());
        assert!(error(&whole[..whole.len() / 2], 1 << 20).starts_with("the archive is damaged"));
        assert!(error(b"<html></html>", 1 << 20).starts_with("the archive is damaged"));
        let many: Vec<(&str, EntryType, &[u8])> = vec![("PMC1/d/", EntryType::Directory, b""); MAX_ENTRIES + 1];
        assert_eq!(error(&packed(&many), 1 << 20), "the archive has more than 10000 entries");
    }

    #[test]
    fn folders_are_packages_with_or_without_a_record() {
        let scratch = tempfile::tempdir().unwrap();
        let put = |name: &str, bytes: &[u8]| {
            let path = scratch.path().join("in").join(name);
            std::fs::create_dir_all(path.parent().unwrap()).unwrap();
            std::fs::write(path, bytes).unwrap();
        };
        for version in ["PMC2.9", "PMC2.10", "PMC22.11"] {
            put(&format!("{version}/{version}.xml"), ARTICLE);
        }
        put("PMC3.1/odd.xml", ARTICLE);
        put("PMC3.1/odd2.xml", ARTICLE);
        put("PMC4.1/PMC4.1.xml", ARTICLE);
        put(
            "metadata/PMC4.1.json",
            br#"{"pmcid": "PMC4", "version": 1, "is_pmc_openaccess": false, "license_code": null}"#,
        );
        put("PMC5.1/PMC5.1.xml", b"<html>Just a moment</html>");
        let local = Local { folder: scratch.path().join("in") };
        with_work(&scratch.path().join("raw"), 1 << 20, |work| {
            let ids = [2, 3, 4, 5, 6].map(Pmcid);
            let resolved = local.resolve(work, &ids).unwrap();
            let two = package(resolved[..1].to_vec());
            assert_eq!((two.version, two.versions.as_slice(), two.files.len()), (10, &[9, 10][..], 1));
            assert!(
                matches!(&resolved[1], Resolved::Failed(why) if why == "it has several XML files: odd.xml, odd2.xml")
            );
            let four = package(resolved[2..3].to_vec());
            assert!(!four.is_open && four.files.is_empty());
            let blocked = bring(work, &package(resolved[3..4].to_vec()), false).unwrap();
            assert_eq!(blocked[0].state.to_string(), "blocked: the server sent an HTML page instead of xml");
            assert_eq!(resolved[4], Resolved::Absent);
        });
    }
}
