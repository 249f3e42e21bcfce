//! Sorting more rows than fit in memory by case id: rows go to files by range of their id, which is a
//! hash and so spreads evenly; each file is then sorted in memory.

use crate::store::fs::{self, NewFile};
use anyhow::Context;
use serde::{Serialize, de::DeserializeOwned};
use std::fs::File;
use std::io::{BufRead, BufReader, BufWriter, Write};
use std::marker::PhantomData;
use std::path::{Path, PathBuf};

/// Rows of one partition on average.
const PARTITION_ROWS: u64 = 4096;
/// Open files at most.
const MAX_PARTITIONS: u64 = 512;

/// Rows waiting to be sorted. The number of partitions depends on the number of rows alone.
pub struct Spill<T> {
    folder: PathBuf,
    files: Vec<BufWriter<NewFile>>,
    rows: PhantomData<T>,
}

impl<T: Serialize + DeserializeOwned> Spill<T> {
    /// `folder` must be empty; it is removed by [`Self::drain`].
    pub fn create(folder: &Path, n_rows: u64) -> anyhow::Result<Self> {
        fs::create_dir(folder)?;
        let n_partitions = n_rows.div_ceil(PARTITION_ROWS).clamp(1, MAX_PARTITIONS);
        let files = (0..n_partitions)
            .map(|index| NewFile::create(&partition(folder, index)).map(BufWriter::new))
            .collect::<std::io::Result<_>>()?;
        Ok(Self { folder: folder.to_owned(), files, rows: PhantomData })
    }

    /// `case_id` ends in 16 hexadecimal digits; `order` decides among rows of one id.
    pub fn push(&mut self, case_id: &str, order: &str, row: &T) -> anyhow::Result<()> {
        let digits = case_id.len().checked_sub(16).and_then(|start| case_id.get(start..)).unwrap_or_default();
        let value = u64::from_str_radix(digits, 16).with_context(|| format!("{case_id} is not a case id"))?;
        let index = (u128::from(value) * self.files.len() as u128) >> 64;
        let file = self.files.get_mut(usize::try_from(index)?).context("a partition that is not there")?;
        serde_json::to_writer(&mut *file, &(case_id, order, row))?;
        Ok(file.write_all(b"\n")?)
    }

    /// Gives the rows partition by partition, each sorted by (case id, order); removes the files.
    pub fn drain(self, mut take: impl FnMut(Vec<T>) -> anyhow::Result<()>) -> anyhow::Result<()> {
        let n = self.files.len() as u64;
        for file in self.files {
            file.into_inner().map_err(std::io::IntoInnerError::into_error)?;
        }
        for index in 0..n {
            let path = partition(&self.folder, index);
            let mut rows: Vec<(String, String, T)> = Vec::new();
            for line in BufReader::new(File::open(&path)?).lines() {
                rows.push(serde_json::from_str(&line?)?);
            }
            std::fs::remove_file(&path)?;
            rows.sort_by(|one, other| (&one.0, &one.1).cmp(&(&other.0, &other.1)));
            take(rows.into_iter().map(|(_, _, row)| row).collect())?;
        }
        std::fs::remove_dir(&self.folder).with_context(|| format!("removing {}", self.folder.display()))
    }
}

fn partition(folder: &Path, index: u64) -> PathBuf {
    folder.join(format!("{index:03}.jsonl"))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::record::Hash;

    proptest::proptest! {
        #[test]
        fn rows_come_back_sorted(numbers in proptest::collection::vec(0u32..500, 0..300), n in 1u64..20_000) {
            let folder = tempfile::tempdir().unwrap();
            let mut spill = Spill::<String>::create(&folder.path().join("spill"), n).unwrap();
            let mut expected = Vec::new();
            for number in numbers {
                let id = format!("p-{}", Hash::of(&number.to_le_bytes()).short());
                spill.push(&id, "", &id).unwrap();
                expected.push(id);
            }
            expected.sort();
            let mut found = Vec::new();
            spill.drain(|rows| { found.extend(rows); Ok(()) }).unwrap();
            proptest::prop_assert_eq!(found, expected);
        }
    }
}
