//! Every environment variable that casemill reads. What defines a dataset is in files; these only
//! say how this run goes.

/// `<operation>:<n>:<action>`: the `n`-th file-system operation of that kind fails. For tests of
/// crash safety; see [`crate::store::failpoint`].
pub const FAILPOINT: &str = "CASEMILL_FAILPOINT";

/// Seconds since 1970: the date that a release carries when `--date` is not given
/// (<https://reproducible-builds.org/specs/source-date-epoch/>).
pub const SOURCE_DATE_EPOCH: &str = "SOURCE_DATE_EPOCH";

/// A variable's text; `None` when it is unset, empty or not UTF-8.
pub fn read(name: &str) -> Option<String> {
    std::env::var(name).ok().filter(|text| !text.is_empty())
}
