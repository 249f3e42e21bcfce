//! One file for a folder: a gzip-packed tar whose bytes depend on names and contents alone.

use super::fs::{self, NewFile};
use anyhow::Context;
use flate2::{Compression, GzBuilder};
use std::fs::File;
use std::io::{self, BufWriter};
use std::path::Path;

/// Packs regular files of `folder` (paths with forward slashes, below it) under the folder name
/// `root`: sorted, times 0, owner 0, mode 644, no name in the gzip header.
pub fn pack(folder: &Path, root: &str, paths: &[String], target: &Path) -> anyhow::Result<()> {
    let temporary = fs::temporary_beside(target);
    let write = || -> io::Result<()> {
        let gzip = GzBuilder::new()
            .mtime(0)
            .operating_system(255)
            .write(BufWriter::new(NewFile::create(&temporary)?), Compression::new(6));
        let mut archive = tar::Builder::new(gzip);
        let mut sorted: Vec<&String> = paths.iter().collect();
        sorted.sort_unstable();
        for path in sorted {
            let file = File::open(folder.join(path))?;
            let mut header = tar::Header::new_gnu();
            header.set_entry_type(tar::EntryType::Regular);
            header.set_size(file.metadata()?.len());
            header.set_mode(0o644);
            header.set_uid(0);
            header.set_gid(0);
            header.set_mtime(0);
            archive.append_data(&mut header, format!("{root}/{path}"), file)?;
        }
        let out = archive.into_inner()?.finish()?;
        out.into_inner().map_err(io::IntoInnerError::into_error)?.sync()?;
        fs::rename(&temporary, target)
    };
    let result = write();
    if result.is_err() {
        // Best effort: the name is temporary, `clean` removes it too.
        let _ = std::fs::remove_file(&temporary);
    }
    result.with_context(|| format!("packing {}", target.display()))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::record::Hash;

    /// Case rep-02: times, owners, folder order and the file name stay out of the archive.
    #[test]
    fn rep_02_equal_files_give_equal_archives() {
        let hash_of = |names: [&str; 2], archive: &str| {
            let folder = tempfile::tempdir().unwrap();
            for name in names {
                std::fs::write(folder.path().join(name), format!("content of {name}")).unwrap();
                let old =
                    std::time::SystemTime::UNIX_EPOCH + std::time::Duration::from_secs(names[0].len() as u64 * 1000);
                File::options().append(true).open(folder.path().join(name)).unwrap().set_modified(old).unwrap();
            }
            let target = folder.path().join(archive);
            pack(folder.path(), "root", &names.map(str::to_owned), &target).unwrap();
            let bytes = std::fs::read(&target).unwrap();
            assert_eq!(bytes[3] & 0x08, 0, "no file name in the gzip header");
            assert_eq!(bytes[4..8], [0; 4], "no time in the gzip header");
            Hash::of(&bytes)
        };
        assert_eq!(
            hash_of(["a.txt", "long-name.txt"], "one.tar.gz"),
            hash_of(["long-name.txt", "a.txt"], "other.tar.gz")
        );
    }
}
