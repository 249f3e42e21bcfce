//! What licences allow. An expression is read as SPDX; Creative Commons licences are known by the parts of their names, not
//! by a list of versions.

use super::provenance::{RESERVED, UNSTATED};

/// What one licence allows whoever holds the work.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct Terms {
    /// To pass it on as it is, for non-commercial purposes.
    share: bool,
    /// For any purpose.
    commercial: bool,
    /// To pass on something made of it.
    adapt: bool,
}

const NOTHING: Terms = Terms { share: false, commercial: false, adapt: false };
const EVERYTHING: Terms = Terms { share: true, commercial: true, adapt: true };

/// Licences outside Creative Commons that allow everything, some with conditions that a release keeps (naming the source,
/// the same licence for data made of it).
const PERMISSIVE: &[&str] = &[
    "MIT",
    "Apache-2.0",
    "BSD-2-Clause",
    "BSD-3-Clause",
    "ISC",
    "Unlicense",
    "0BSD",
    "CC0-1.0",
    "PDDL-1.0",
    "CC-PDDC",
    "ODC-By-1.0",
    "ODbL-1.0",
];

/// The terms of a licence id; of a name that is not known, none.
fn terms(name: &str) -> Terms {
    if PERMISSIVE.contains(&name) {
        return EVERYTHING;
    }
    let Some(rest) = name.strip_prefix("CC-BY") else { return NOTHING };
    let mut terms = EVERYTHING;
    for part in rest.split('-').filter(|part| !part.is_empty()) {
        match part {
            "NC" => terms.commercial = false,
            "ND" => terms.adapt = false,
            "SA" => {}
            // A version; whatever else there may be in a name is not a licence that we know.
            _ if part.bytes().all(|byte| byte.is_ascii_digit() || byte == b'.') => {}
            _ => return NOTHING,
        }
    }
    terms
}

/// `A OR B` holds when one does, `A AND B` when both do; an exception or an unknown id never does.
fn evaluate(expression: &str, allowed: impl Fn(Terms) -> bool) -> bool {
    let Ok(expression) = spdx::Expression::parse(expression) else { return false };
    expression.evaluate(|requirement| {
        if requirement.addition.is_some() {
            return false;
        }
        let name = requirement.license.to_string();
        // A version that a source does not state is `LicenseRef-CC-BY-…`.
        allowed(terms(name.strip_prefix("LicenseRef-").filter(|rest| rest.starts_with("CC-BY")).unwrap_or(&name)))
    })
}

/// Anyone may pass on what is made of it, for any purpose.
pub fn may_adapt_commercially(expression: &str) -> bool {
    evaluate(expression, |terms| terms.adapt && terms.commercial)
}

/// Anyone may pass on what is made of it, for non-commercial purposes.
pub fn may_adapt(expression: &str) -> bool {
    evaluate(expression, |terms| terms.adapt && terms.share)
}

/// Anyone may pass it on unchanged, for any purpose.
pub fn may_share_commercially(expression: &str) -> bool {
    evaluate(expression, |terms| terms.share && terms.commercial)
}

/// Anyone may pass it on unchanged, for non-commercial purposes.
pub fn may_share(expression: &str) -> bool {
    evaluate(expression, |terms| terms.share)
}

/// The work itself says that it is closed, or says nothing where it should: nothing but its name may stand anywhere.
pub fn is_closed(expression: &str) -> bool {
    [UNSTATED, RESERVED].iter().any(|closed| expression.split([' ', '(', ')']).any(|word| word == *closed))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::record::provenance::both_licences;
    use proptest::prelude::*;

    #[test]
    fn names_tell_what_is_allowed() {
        for (licence, commercial, adapt, share) in [
            ("CC-BY-4.0", true, true, true),
            ("LicenseRef-CC-BY", true, true, true),
            ("CC-BY-2.1-JP", false, false, false),
            ("CC-BY-SA-3.0", true, true, true),
            ("CC-BY-ND-4.0", false, false, true),
            ("CC-BY-NC-4.0", false, true, true),
            ("CC-BY-NC-ND-4.0", false, false, true),
            ("LicenseRef-CC-BY-NC-ND", false, false, true),
            ("LicenseRef-unstated", false, false, false),
            ("LicenseRef-per-record", false, false, false),
            ("unknown", false, false, false),
            ("CC-BY-4.0 AND LicenseRef-reserved", false, false, false),
            ("CC-BY-4.0 OR CC-BY-NC-ND-4.0", true, true, true),
            ("CC-BY-ND-4.0 OR CC-BY-NC-4.0", false, true, true),
        ] {
            let found = (may_adapt_commercially(licence), may_adapt(licence), may_share(licence));
            assert_eq!(found, (commercial, adapt, share), "{licence}");
        }
        assert!(may_share_commercially("CC-BY-ND-4.0") && !may_share_commercially("CC-BY-NC-4.0"));
        assert!(is_closed("CC0-1.0 AND LicenseRef-reserved") && !is_closed("unknown"));
    }

    proptest! {
        /// Whatever joins another, never allows more than either.
        #[test]
        fn both_never_allow_more(one in 0usize..8, other in 0usize..8) {
            const ALL: [&str; 8] = [
                "CC-BY-4.0", "CC-BY-NC-4.0", "CC-BY-ND-4.0", "CC0-1.0", "LicenseRef-reserved", "unknown", "MIT OR CC-BY-NC-4.0",
                "LicenseRef-CC-BY-NC-SA",
            ];
            let both = both_licences(ALL[one], ALL[other]);
            for allows in [may_adapt, may_adapt_commercially, may_share, may_share_commercially] {
                prop_assert!(!allows(&both) || (allows(ALL[one]) && allows(ALL[other])), "{}", both);
            }
            prop_assert_eq!(&both, &both_licences(ALL[other], ALL[one]));
        }
    }
}
