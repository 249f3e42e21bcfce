//! Spans of time: durations, onsets, points.

use super::Case;
use std::ops::Range;

impl Case<'_> {
    /// Every span of time of the vignette, in order.
    pub(super) fn spans_of_time(&self) -> Vec<Range<usize>> {
        let start = self.vignette.start;
        self.lexicon
            .times
            .find_iter(self.slice(self.vignette.clone()))
            .map(|found| start + found.start()..start + found.end())
            .collect()
    }

    /// A span of time without an article before and "of" behind: "2-day history", "for the past 3 weeks".
    pub(super) fn plain_time(&self, range: &Range<usize>) -> Range<usize> {
        let text = self.slice(range.clone());
        let start = ["of a ", "of an ", "for a ", "over a ", "of the ", "of ", "a ", "an "]
            .iter()
            .find_map(|prefix| text.strip_prefix(prefix))
            .filter(|rest| rest.starts_with(|first: char| first.is_ascii_digit()))
            .map_or(0, |rest| text.len() - rest.len());
        let end = text.strip_suffix(" of").map_or(text.len(), str::len);
        range.start + start..range.start + end
    }
}
