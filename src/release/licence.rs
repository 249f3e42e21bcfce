//! What a profile may hold, by access class and licence (SPEC section 10). A case is made of its sources, so whatever goes
//! beyond identifiers needs the right to adapt; an image is passed on as it is, unless a picture was made of it.
//!
//! | licence | `open` | `noncommercial` | `research` | `credentialed` |
//! |---|---|---|---|---|
//! | public domain, BY, BY-SA and the like | case, media | case, media | case, media | case, media |
//! | BY-NC, BY-NC-SA | – | case, media | case, media | case, media |
//! | BY-ND | – | – | case, media unchanged | case, media |
//! | BY-NC-ND | – | – | case, media unchanged | case, media |
//! | `unknown`: nobody said for the folder | – | – | case, recipe for media | case, media |
//! | a record that states no licence, or reserves all rights | – | – | – | case, media |
//!
//! And by access: `open` and `noncommercial` hold open records alone; `research` holds all but credentialed ones, media of open
//! ones alone; `credentialed` holds everything. What a release does not hold is counted in MANIFEST.json; media that it does
//! not hold stand in `recipes/media.jsonl` with hash and place. A release that is not for anyone to pass on says so.

use crate::record::licence::{is_closed, may_adapt, may_adapt_commercially, may_share, may_share_commercially};
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
            Self::Research if rights.access == Access::Credentialed => Some("profile_access"),
            Self::Research => is_closed(&rights.licence).then_some("profile_licence"),
            Self::Open | Self::Noncommercial if rights.access != Access::Open => Some("profile_access"),
            Self::Open => (!may_adapt_commercially(&rights.licence)).then_some("profile_licence"),
            Self::Noncommercial => (!may_adapt(&rights.licence)).then_some("profile_licence"),
        }
    }

    /// Why the file of an image may not be in such a release, though its case is; `is_derived` for a picture that was made of
    /// the published file.
    pub fn media_refusal(self, licence: &str, access: Access, is_derived: bool) -> Option<&'static str> {
        type Allows = fn(&str) -> bool;
        let (share, adapt): (Allows, Allows) = match self {
            Self::Credentialed => return None,
            Self::Open => (may_share_commercially, may_adapt_commercially),
            Self::Noncommercial | Self::Research => (may_share, may_adapt),
        };
        if access != Access::Open {
            return Some("profile_access");
        }
        let is_allowed = if is_derived { adapt(licence) } else { share(licence) };
        (!is_allowed).then_some("profile_licence")
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
    if !may_adapt_commercially(&rights.licence) {
        return Some(format!("source {name}: licence is {}", rights.licence));
    }
    None
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::record::LlmEgress;
    use crate::service::model::governance::widest;

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
            ("LicenseRef-CC-BY", Access::Open, true, true, true),
            ("LicenseRef-unstated", Access::Open, false, false, false),
            ("CC-BY-4.0 AND LicenseRef-reserved", Access::Open, false, false, false),
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

    /// Cases lic-02 and lic-03: no licence, no image; no derivatives, no changed image.
    #[test]
    fn lic_02_lic_03_media_follow_their_own_licence() {
        let may = |profile: Profile, licence: &str, is_derived| {
            profile.media_refusal(licence, Access::Open, is_derived).is_none()
        };
        for (licence, open, noncommercial, research) in [
            ("CC-BY-4.0", (true, true), (true, true), (true, true)),
            ("CC-BY-ND-4.0", (true, false), (true, false), (true, false)),
            ("CC-BY-NC-4.0", (false, false), (true, true), (true, true)),
            ("CC-BY-NC-ND-4.0", (false, false), (true, false), (true, false)),
            ("unknown", (false, false), (false, false), (false, false)),
            ("LicenseRef-unstated", (false, false), (false, false), (false, false)),
        ] {
            for (profile, expected) in
                [(Profile::Open, open), (Profile::Noncommercial, noncommercial), (Profile::Research, research)]
            {
                let found = (may(profile, licence, false), may(profile, licence, true));
                assert_eq!(found, expected, "{licence} in {profile:?}");
            }
        }
        assert!(Profile::Research.media_refusal("CC-BY-4.0", Access::Registered, false).is_some());
    }

    const LICENCES: [&str; 9] = [
        "CC0-1.0",
        "CC-BY-4.0",
        "LicenseRef-CC-BY",
        "CC-BY-NC-SA-4.0",
        "CC-BY-ND-4.0",
        "CC-BY-4.0 OR CC-BY-NC-4.0",
        "LicenseRef-unstated",
        "LicenseRef-per-record",
        "unknown",
    ];
    const ACCESS: [Access; 4] = [Access::Open, Access::Registered, Access::Credentialed, Access::Unknown];
    const EGRESS: [LlmEgress; 4] = [LlmEgress::Any, LlmEgress::Zdr, LlmEgress::Local, LlmEgress::None];

    /// Rights of every node of a graph whose node `i` is made of some earlier ones, or is a source.
    fn derive(sources: &[Rights], inputs: &[Vec<usize>]) -> Vec<Rights> {
        let mut rights: Vec<Rights> = sources.to_vec();
        for of_node in inputs {
            let mut of_node = of_node.iter().filter_map(|input| rights.get(*input)).cloned();
            let first = of_node.next().unwrap_or_else(Rights::unknown);
            rights.push(of_node.fold(first, |all, one| all.with(&one)));
        }
        rights
    }

    proptest::proptest! {
        /// Whatever is added to what a record is made of, no profile, no endpoint and no image gets more.
        #[test]
        fn a_further_source_never_widens_rights(
            sources in proptest::collection::vec((0usize..9, 0usize..4, 0usize..4), 2..6),
            edges in proptest::collection::vec(proptest::collection::vec(0usize..12, 1..4), 1..7),
            (at, added) in (0usize..7, 0usize..12),
        ) {
            let sources: Vec<Rights> = sources
                .iter()
                .map(|(licence, access, egress)| Rights {
                    snapshot: "s".into(),
                    licence: LICENCES[*licence].into(),
                    access: ACCESS[*access],
                    llm_egress: EGRESS[*egress],
                })
                .collect();
            // An edge leads to an earlier node.
            let inputs: Vec<Vec<usize>> = (sources.len()..)
                .zip(&edges)
                .map(|(node, wanted)| wanted.iter().map(|input| input % node).collect())
                .collect();
            let mut more = inputs.clone();
            let place = at % more.len();
            more[place].push(added % (sources.len() + place));
            for (before, after) in derive(&sources, &inputs).iter().zip(derive(&sources, &more)) {
                for profile in [Profile::Open, Profile::Noncommercial, Profile::Research, Profile::Credentialed] {
                    proptest::prop_assert!(
                        profile.refusal(before).is_none() || profile.refusal(&after).is_some(),
                        "{:?}: {:?} becomes {:?}", profile, before, after
                    );
                    for is_derived in [false, true] {
                        let refused = |rights: &Rights| {
                            profile.media_refusal(&rights.licence, rights.access, is_derived).is_some()
                        };
                        proptest::prop_assert!(!refused(before) || refused(&after), "{:?}: {:?} becomes {:?}", profile, before, after);
                    }
                }
                proptest::prop_assert!(widest(&after) <= widest(before), "{:?} becomes {:?}", before, after);
            }
        }
    }
}
