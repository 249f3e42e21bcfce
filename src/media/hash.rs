//! A hash of what a picture looks like, so that the same figure is found again after it was resized or recompressed.
//!
//! The difference hash of N. Krawetz ("Kind of Like That", hackerfactor.com, 21 January 2013): the gray picture is
//! brought to 9 × 8 cells, and each of the 64 bits says whether a cell is brighter than its left neighbour. It is
//! computed in whole numbers alone, so that all machines agree. It does not see turned or mirrored copies, and pictures
//! that differ in small things (two slices of one scan) may share it: near hashes are candidates, not proof.

use std::fmt;
use std::str::FromStr;

use image::RgbImage;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// 64 bits, row by row from the top left, the first in the highest place; written as 16 hexadecimal digits.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize, JsonSchema)]
#[serde(into = "String", try_from = "String")]
#[schemars(with = "String")]
pub struct DifferenceHash(pub u64);

const COLUMNS: u32 = 9;
const ROWS: u32 = 8;

impl DifferenceHash {
    /// The hash of a picture; of one without pixels, zero.
    pub fn of(picture: &RgbImage) -> Self {
        let mut bits = 0;
        for row in 0..ROWS {
            let cells: Vec<u64> = (0..COLUMNS).map(|column| mean_gray(picture, column, row)).collect();
            for pair in cells.windows(2) {
                bits = (bits << 1) | u64::from(matches!(pair, [left, right] if right > left));
            }
        }
        Self(bits)
    }

    /// How many bits differ, 0–64 (Hamming distance).
    pub fn distance(self, other: Self) -> u32 {
        (self.0 ^ other.0).count_ones()
    }
}

/// The mean luma (ITU-R BT.601) of one cell, 0–255, rounded. Pixels that the cell's border cuts count by their share.
/// Rounding makes even areas equal in spite of what compression leaves in them.
fn mean_gray(picture: &RgbImage, column: u32, row: u32) -> u64 {
    let (width, height) = (u64::from(picture.width()), u64::from(picture.height()));
    let columns = shares(width, u64::from(column), u64::from(COLUMNS));
    let (mut sum, mut weight) = (0u64, 0u64);
    for (y, share_y) in shares(height, u64::from(row), u64::from(ROWS)) {
        for (x, share_x) in columns.clone() {
            let Some(pixel) =
                u32::try_from(x).ok().zip(u32::try_from(y).ok()).and_then(|(x, y)| picture.get_pixel_checked(x, y))
            else {
                continue;
            };
            let [red, green, blue] = pixel.0.map(u64::from);
            sum += (299 * red + 587 * green + 114 * blue) * share_x * share_y;
            weight += share_x * share_y;
        }
    }
    (sum + weight * 500).checked_div(weight * 1000).unwrap_or(0)
}

/// The pixels of a line of `length` that cell `cell` of `cells` covers, with their shares in parts of `cells`.
fn shares(length: u64, cell: u64, cells: u64) -> impl Iterator<Item = (u64, u64)> + Clone {
    // On a line of `length · cells` units a pixel covers `cells` of them and a cell `length`.
    let (start, end) = (cell * length, (cell + 1) * length);
    (start / cells..end.div_ceil(cells)).map(move |at| {
        let share = ((at + 1) * cells).min(end).saturating_sub((at * cells).max(start));
        (at, share)
    })
}

impl fmt::Display for DifferenceHash {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(formatter, "{:016x}", self.0)
    }
}

/// The text is not 16 hexadecimal digits.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[error("a difference hash has 16 hexadecimal digits")]
pub struct NotAHash;

impl FromStr for DifferenceHash {
    type Err = NotAHash;

    fn from_str(text: &str) -> Result<Self, NotAHash> {
        if text.len() != 16 || !text.bytes().all(|byte| byte.is_ascii_hexdigit()) {
            return Err(NotAHash);
        }
        u64::from_str_radix(text, 16).map(Self).map_err(|_| NotAHash)
    }
}

impl From<DifferenceHash> for String {
    fn from(hash: DifferenceHash) -> Self {
        hash.to_string()
    }
}

impl TryFrom<String> for DifferenceHash {
    type Error = NotAHash;

    fn try_from(text: String) -> Result<Self, NotAHash> {
        text.parse()
    }
}
