//! Named subsets of the cases of a release: drawn by a seed, alike in every stratum, stable when cases are added.
//!
//! Every case has a rank in every subset: the SHA-256 of the subset's name, its seed and the case id. A stratum gives its cases
//! of the lowest ranks. A new case has its own rank and changes no other one: it comes in or stays out, and where it comes
//! in it displaces one case at most in its stratum. (With strata in proportion to their size, a quota can move by one as
//! well.) Parts of a subset are cut by a second rank in the same way.

use crate::config::pipeline::SubsetConfig;
use crate::config::suggestion;
use crate::error::usage;
use crate::record::Hash;
use serde::{Deserialize, Serialize};
use serde_json::Value;
use std::collections::BTreeMap;

/// What a subset has in a release.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct SubsetSize {
    pub name: String,
    pub n_wanted: u64,
    /// Fewer if there are not enough cases.
    pub n: u64,
}

/// What the subsets need to know of a case.
pub struct Candidate {
    case_id: String,
    /// The values of the columns that subsets name.
    columns: BTreeMap<String, String>,
}

impl Candidate {
    /// Takes the columns that subsets name from the row of a case.
    ///
    /// # Errors
    /// The row has no such column, or it holds no text; the error names the subset's line.
    pub fn of(
        file: &str,
        subsets: &BTreeMap<String, SubsetConfig>,
        case_id: &str,
        case: &Value,
    ) -> anyhow::Result<Self> {
        let mut columns = BTreeMap::new();
        for (name, subset) in subsets {
            for column in subset.by.iter().chain(subset.only.keys()) {
                let text = match case.get(column) {
                    Some(Value::String(text)) => text.clone(),
                    Some(Value::Null) => "unknown".to_owned(),
                    Some(Value::Bool(flag)) => flag.to_string(),
                    Some(Value::Number(number)) => number.to_string(),
                    Some(_) => {
                        return Err(usage(format!(
                            "{file}:{}: subsets.{name}: column `{column}` is no single value",
                            subset.line
                        )));
                    }
                    None => {
                        let known = case.as_object().into_iter().flat_map(|case| case.keys().map(String::as_str));
                        let hint = suggestion(column, known);
                        return Err(usage(format!(
                            "{file}:{}: subsets.{name}: a case has no column `{column}`{hint}",
                            subset.line
                        )));
                    }
                };
                columns.insert(column.clone(), text);
            }
        }
        Ok(Self { case_id: case_id.to_owned(), columns })
    }
}

/// Draws every subset. Gives the subsets of every case that is in one, `name` or `name/part`, and their sizes.
pub fn draw(
    subsets: &BTreeMap<String, SubsetConfig>,
    candidates: &[Candidate],
) -> (BTreeMap<String, Vec<String>>, Vec<SubsetSize>) {
    let mut members: BTreeMap<String, Vec<String>> = BTreeMap::new();
    let mut sizes = Vec::new();
    for (name, subset) in subsets {
        let mut strata: BTreeMap<&str, Vec<(Hash, &str)>> = BTreeMap::new();
        for candidate in candidates {
            let fits = subset.only.iter().all(|(column, value)| candidate.columns.get(column) == Some(value));
            let stratum = subset.by.as_ref().and_then(|by| candidate.columns.get(by)).map_or("", String::as_str);
            if fits && (subset.per.is_empty() || subset.per.contains_key(stratum)) {
                let rank = rank(name, subset.seed, "", &candidate.case_id);
                strata.entry(stratum).or_default().push((rank, &candidate.case_id));
            }
        }
        let quotas = quotas(subset, &strata);
        let mut drawn: Vec<&str> = Vec::new();
        for (stratum, cases) in &mut strata {
            cases.sort_unstable();
            let quota = quotas.get(stratum).copied().unwrap_or_default();
            drawn.extend(cases.iter().take(quota).map(|(_, case_id)| *case_id));
        }
        sizes.push(SubsetSize { name: name.clone(), n_wanted: subset.n, n: drawn.len() as u64 });
        let mut ranked: Vec<(Hash, &str)> =
            drawn.iter().map(|case_id| (rank(name, subset.seed, "parts", case_id), *case_id)).collect();
        ranked.sort_unstable();
        let mut parts = subset.parts.iter().flat_map(|(part, size)| {
            let label = format!("{name}/{part}");
            (0..*size).map(move |_| label.clone())
        });
        for (_, case_id) in ranked {
            let label = parts.next().unwrap_or_else(|| name.clone());
            members.entry(case_id.to_owned()).or_default().push(label);
        }
    }
    (members, sizes)
}

fn rank(name: &str, seed: u64, what: &str, case_id: &str) -> Hash {
    Hash::of(format!("casemill subset\n{name}\n{seed}\n{what}\n{case_id}").as_bytes())
}

/// How many cases each stratum gives: as declared, or by the method of the largest remainder, ties by name.
fn quotas<'a>(subset: &SubsetConfig, strata: &BTreeMap<&'a str, Vec<(Hash, &str)>>) -> BTreeMap<&'a str, usize> {
    let whole = |size: u64| usize::try_from(size).unwrap_or(usize::MAX);
    if !subset.per.is_empty() {
        return strata
            .keys()
            .map(|stratum| (*stratum, whole(subset.per.get(*stratum).copied().unwrap_or_default())))
            .collect();
    }
    let n_all: u128 = strata.values().map(|cases| cases.len() as u128).sum();
    let n = u128::from(subset.n).min(n_all);
    let mut quotas: BTreeMap<&str, usize> = BTreeMap::new();
    let mut remainders: Vec<(std::cmp::Reverse<u128>, &str)> = Vec::new();
    let mut given = 0_u128;
    for (stratum, cases) in strata {
        let share = n * cases.len() as u128;
        let floor = share.checked_div(n_all).unwrap_or_default();
        given += floor;
        quotas.insert(stratum, usize::try_from(floor).unwrap_or(usize::MAX));
        remainders.push((std::cmp::Reverse(share - floor * n_all), stratum));
    }
    remainders.sort_unstable();
    for (_, stratum) in remainders.into_iter().take(whole(u64::try_from(n - given).unwrap_or_default())) {
        *quotas.entry(stratum).or_default() += 1;
    }
    quotas
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    fn subset(n: u64) -> SubsetConfig {
        SubsetConfig {
            n,
            seed: 1,
            by: Some("band".to_owned()),
            per: BTreeMap::new(),
            only: BTreeMap::new(),
            parts: BTreeMap::new(),
            line: 3,
        }
    }

    fn candidates(subsets: &BTreeMap<String, SubsetConfig>, range: std::ops::Range<usize>) -> Vec<Candidate> {
        range
            .map(|index| {
                let band = ["easy", "medium", "medium", "hard"][index % 4];
                Candidate::of("p.toml", subsets, &format!("case-{index}"), &json!({ "band": band })).unwrap()
            })
            .collect()
    }

    #[test]
    fn strata_are_drawn_in_proportion_or_as_declared() {
        let mut declared = subset(9);
        declared.per = [("easy", 3), ("medium", 3), ("hard", 3)].map(|(band, n)| (band.to_owned(), n)).into();
        let mut hard = subset(5);
        hard.only = [("band".to_owned(), "hard".to_owned())].into();
        let subsets: BTreeMap<String, SubsetConfig> =
            [("alike".to_owned(), subset(100)), ("declared".to_owned(), declared), ("hard".to_owned(), hard)].into();
        let cases = candidates(&subsets, 0..400);
        let (members, sizes) = draw(&subsets, &cases);
        assert_eq!(sizes.iter().map(|size| (size.n, size.n_wanted)).collect::<Vec<_>>(), [(100, 100), (9, 9), (5, 5)]);
        let count = |name: &str, band: &str| {
            cases
                .iter()
                .filter(|case| case.columns["band"] == band)
                .filter(|case| members.get(&case.case_id).is_some_and(|list| list.iter().any(|one| one == name)))
                .count()
        };
        assert_eq!(["easy", "medium", "hard"].map(|band| count("alike", band)), [25, 50, 25]);
        assert_eq!(["easy", "medium", "hard"].map(|band| count("declared", band)), [3, 3, 3]);
        assert_eq!(["easy", "medium", "hard"].map(|band| count("hard", band)), [0, 0, 5]);
    }

    #[test]
    fn parts_are_disjoint_and_cover_the_subset() {
        let mut split = subset(300);
        split.parts = [("development".to_owned(), 100), ("locked".to_owned(), 200)].into();
        let subsets: BTreeMap<String, SubsetConfig> = [("judges".to_owned(), split)].into();
        let (members, _) = draw(&subsets, &candidates(&subsets, 0..1000));
        let count = |label: &str| members.values().filter(|list| list.iter().any(|one| one == label)).count();
        assert_eq!((count("judges/development"), count("judges/locked"), members.len()), (100, 200, 300));
    }

    #[test]
    fn a_subset_is_stable_when_cases_are_added() {
        let subsets: BTreeMap<String, SubsetConfig> = [("alike".to_owned(), subset(100))].into();
        let (before, _) = draw(&subsets, &candidates(&subsets, 0..400));
        let (after, _) = draw(&subsets, &candidates(&subsets, 0..440));
        let n_lost = before.keys().filter(|case_id| !after.contains_key(*case_id)).count();
        // 40 of 440 cases are new: about 9 of the 100 places go to them.
        assert!(n_lost > 0 && n_lost < 25, "{n_lost}");
        let (same, _) = draw(&subsets, &candidates(&subsets, 0..400).into_iter().rev().collect::<Vec<_>>());
        assert_eq!(before, same);
    }

    #[test]
    fn too_few_cases_are_all_taken_and_an_unknown_column_is_named() {
        let subsets: BTreeMap<String, SubsetConfig> = [("alike".to_owned(), subset(100))].into();
        let (members, sizes) = draw(&subsets, &candidates(&subsets, 0..10));
        assert_eq!((members.len(), sizes[0].n, sizes[0].n_wanted), (10, 10, 100));
        let error = Candidate::of("p.toml", &subsets, "c", &json!({ "bands": "easy" })).err().unwrap().to_string();
        assert_eq!(error, "p.toml:3: subsets.alike: a case has no column `band`; did you mean `bands`? (known: bands)");
    }
}
