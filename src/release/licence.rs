//! What a profile may hold, by access class and licence (SPEC section 10).

use crate::record::{Access, Rights};
use serde::{Deserialize, Serialize};

/// Who a release is for.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, clap::ValueEnum)]
#[serde(rename_all = "snake_case")]
pub enum Profile {
    /// Redistributable by anyone, for any purpose.
    Open,
    /// Redistributable for non-commercial purposes.
    Noncommercial,
    /// Everything except credentialed records; not redistributable when anything in it is closed or unknown.
    Research,
    /// Everything; only for holders of the credentials.
    Credentialed,
}

impl Profile {
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Open => "open",
            Self::Noncommercial => "noncommercial",
            Self::Research => "research",
            Self::Credentialed => "credentialed",
        }
    }

    /// Why records under these rights may not be in such a release.
    pub fn refusal(self, rights: &Rights) -> Option<&'static str> {
        match self {
            Self::Credentialed => None,
            Self::Research => (rights.access == Access::Credentialed).then_some("profile_access"),
            Self::Open | Self::Noncommercial if rights.access != Access::Open => Some("profile_access"),
            Self::Open => (!allows(&rights.licence, OPEN)).then_some("profile_licence"),
            Self::Noncommercial => {
                (!allows(&rights.licence, OPEN) && !allows_either(&rights.licence)).then_some("profile_licence")
            }
        }
    }

    /// Whether single records of this class that are not in the release may be listed in it.
    pub fn lists(self, access: Access) -> bool {
        self == Self::Credentialed || access != Access::Credentialed
    }
}

/// Why files under these rights may not be passed on by anyone, for any purpose.
pub fn not_redistributable(name: &str, rights: &Rights) -> Option<String> {
    if rights.access != Access::Open {
        return Some(format!("source {name}: access is {}", rights.access.as_str()));
    }
    if !allows(&rights.licence, OPEN) {
        return Some(format!("source {name}: licence is {}", rights.licence));
    }
    None
}

/// Licences that let anyone redistribute and adapt, for any purpose.
const OPEN: &[&str] = &[
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
    "CC-BY-2.0",
    "CC-BY-2.5",
    "CC-BY-3.0",
    "CC-BY-4.0",
    "CC-BY-SA-3.0",
    "CC-BY-SA-4.0",
];

/// Those that let anyone do so for non-commercial purposes.
const NONCOMMERCIAL: &[&str] =
    &["CC-BY-NC-2.0", "CC-BY-NC-2.5", "CC-BY-NC-3.0", "CC-BY-NC-4.0", "CC-BY-NC-SA-3.0", "CC-BY-NC-SA-4.0"];

fn allows(expression: &str, licences: &[&str]) -> bool {
    evaluate(expression, |id| licences.contains(&id))
}

fn allows_either(expression: &str) -> bool {
    evaluate(expression, |id| OPEN.contains(&id) || NONCOMMERCIAL.contains(&id))
}

/// `A OR B` holds when one does, `A AND B` when both do; an exception or an unknown id never does.
fn evaluate(expression: &str, allowed: impl Fn(&str) -> bool) -> bool {
    let Ok(expression) = spdx::Expression::parse(expression) else { return false };
    expression.evaluate(|requirement| {
        requirement.addition.is_none() && requirement.license.id().is_some_and(|id| allowed(id.name))
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::record::LlmEgress;

    #[test]
    fn the_strictest_reading_holds() {
        let rights = |licence: &str, access| Rights {
            snapshot: "s".into(),
            licence: licence.into(),
            access,
            llm_egress: LlmEgress::None,
        };
        for (licence, access, open, noncommercial, research) in [
            ("MIT", Access::Open, true, true, true),
            ("CC-BY-4.0", Access::Open, true, true, true),
            ("CC-BY-NC-4.0", Access::Open, false, true, true),
            ("CC-BY-NC-ND-4.0", Access::Open, false, false, true),
            ("CC-BY-4.0 AND CC-BY-NC-4.0", Access::Open, false, true, true),
            ("CC-BY-4.0 OR CC-BY-NC-ND-4.0", Access::Open, true, true, true),
            ("unknown", Access::Open, false, false, true),
            ("MIT", Access::Unknown, false, false, true),
            ("MIT", Access::Registered, false, false, true),
            ("MIT", Access::Credentialed, false, false, false),
        ] {
            let rights = rights(licence, access);
            let may = |profile: Profile| profile.refusal(&rights).is_none();
            assert_eq!(
                (may(Profile::Open), may(Profile::Noncommercial), may(Profile::Research)),
                (open, noncommercial, research),
                "{licence} {access:?}"
            );
            assert!(may(Profile::Credentialed));
            assert_eq!(not_redistributable("s", &rights).is_none(), open);
        }
    }
}
