//! Which sentences report an examination, a test or vital signs.

use super::Case;

impl Case<'_> {
    /// For every sentence, whether it reports an examination, a test or vital signs.
    pub(super) fn findings(&self) -> Vec<bool> {
        let lexicon = self.lexicon;
        let mut begun = false;
        self.sentences
            .iter()
            .map(|range| {
                let text = self.slice(range.clone());
                begun = lexicon.is_finding(text) || (begun && lexicon.goes_on(text));
                begun
            })
            .collect()
    }
}
