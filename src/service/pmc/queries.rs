//! The searches of the paper (Supplementary Information C) and what another service can make of them.
//!
//! The queries are facts of a publication and stay as they were printed: two lack `humans` or `english`. The paper gives
//! no date in them; "before September 1, 2025" (section 4.1) is a setting and is added as one more clause.

use crate::error::usage;
use jiff::civil::Date;

/// One published search.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Published {
    pub specialty: &'static str,
    /// In the syntax of PubMed.
    pub query: &'static str,
}

/// In the order of the paper, which decides the specialty of an article that several searches find.
pub const PUBLISHED: [Published; 8] = [
    Published {
        specialty: "Dermatology",
        query: "(dermatology[Title/Abstract] AND case reports[Publication Type] AND pubmed pmc open access[Filter] AND humans[Filter] AND english[Filter])",
    },
    Published {
        specialty: "Emergency Medicine",
        query: "(emergency medicine[Title/Abstract] AND case reports[Publication Type] AND pubmed pmc open access[Filter] AND humans[Filter])",
    },
    Published {
        specialty: "Internal Medicine",
        query: "(internal medicine[Title/Abstract] AND case reports[Publication Type] AND pubmed pmc open access[Filter] AND humans[Filter])",
    },
    Published {
        specialty: "Nephrology",
        query: "(nephrology[Title/Abstract] AND case reports[Publication Type] AND pubmed pmc open access[Filter] AND humans[Filter] AND english[Filter])",
    },
    Published {
        specialty: "Neurology",
        query: "(neurology[Title/Abstract] AND case reports[Publication Type] AND pubmed pmc open access[Filter] AND humans[Filter] AND english[Filter])",
    },
    Published {
        specialty: "Oncology",
        query: "(oncology[Title/Abstract] AND case reports[Publication Type] AND pubmed pmc open access[Filter] AND humans[Filter] AND english[Filter])",
    },
    Published {
        specialty: "Ophthalmology",
        query: "(ophthalmology[Title/Abstract] AND case reports[Publication Type] AND pubmed pmc open access[Filter] AND humans[Filter] AND english[Filter])",
    },
    Published {
        specialty: "Radiology",
        query: "(radiology[Title/Abstract] AND case reports[Publication Type] AND pubmed pmc open access[Filter] AND english[Filter])",
    },
];

/// The last day before a date.
///
/// # Errors
/// A date without a day before it.
fn last_day(before: Date) -> anyhow::Result<Date> {
    before.yesterday().map_err(|_| usage(format!("there is no day before {before}")))
}

/// The published query for PubMed, with the clause that ends it before a day.
///
/// # Errors
/// A date without a day before it.
pub fn for_pubmed(published: Published, before: Date) -> anyhow::Result<String> {
    let last = last_day(before)?.strftime("%Y/%m/%d");
    let until = format!(r#"("1800/01/01"[Date - Publication] : "{last}"[Date - Publication])"#);
    Ok(format!("{} AND {until}", published.query))
}

/// The published query in the syntax of Europe PMC; [`DIFFERENCES`] says in what the two differ.
///
/// # Errors
/// A clause that has no counterpart, or a date without a day before it.
pub fn for_europe_pmc(published: Published, before: Date) -> anyhow::Result<String> {
    let inner = published.query.trim_start_matches('(').trim_end_matches(')');
    let mut clauses = vec!["SRC:MED".to_owned()];
    for clause in inner.split(" AND ") {
        let unknown = || usage(format!("the clause `{clause}` has no counterpart in Europe PMC"));
        let (words, field) = clause.strip_suffix(']').and_then(|clause| clause.split_once('[')).ok_or_else(unknown)?;
        clauses.push(match (words, field) {
            (words, "Title/Abstract") => format!("TITLE_ABS:\"{words}\""),
            ("case reports", "Publication Type") => "PUB_TYPE:\"Case Reports\"".to_owned(),
            ("pubmed pmc open access", "Filter") => "(OPEN_ACCESS:Y AND IN_PMC:Y)".to_owned(),
            ("humans", "Filter") => "MESH:\"Humans\"".to_owned(),
            ("english", "Filter") => "LANG:\"eng\"".to_owned(),
            _ => return Err(unknown()),
        });
    }
    clauses.push(format!("FIRST_PDATE:[1800-01-01 TO {}]", last_day(before)?));
    Ok(clauses.join(" AND "))
}

/// In what a search of Europe PMC is not the published one.
pub const DIFFERENCES: &[&str] = &[
    "Title/Abstract: TITLE_ABS leaves out the authors' keywords and other abstracts that PubMed's field includes",
    "case reports[Publication Type]: PUB_TYPE also matches the type that publishers gave, where MEDLINE gave none",
    "pubmed pmc open access[Filter]: Europe PMC has its own mark for open access; it need not agree with the PMC subset",
    "humans[Filter]: PubMed's filter; here the MeSH heading Humans, so records that are not indexed yet are missing",
    "english[Filter]: the language of the record; records in several languages may be counted otherwise",
    "Date - Publication: FIRST_PDATE is the earlier of the dates online and in print",
    "SRC:MED: Europe PMC also holds records that PubMed does not, and these are left out",
    "synonyms are not expanded in either service; PubMed still matches phrases by its own index",
];

#[cfg(test)]
mod tests {
    use super::*;
    use expect_test::expect;

    #[test]
    fn the_published_queries_differ_in_two_filters_and_get_an_end() {
        let lacking = |filter: &str| -> Vec<&str> {
            PUBLISHED.iter().filter(|one| !one.query.contains(filter)).map(|one| one.specialty).collect()
        };
        assert_eq!(lacking("humans[Filter]"), ["Radiology"]);
        assert_eq!(lacking("english[Filter]"), ["Emergency Medicine", "Internal Medicine"]);
        let before = "2025-09-01".parse().unwrap();
        expect![[r#"(radiology[Title/Abstract] AND case reports[Publication Type] AND pubmed pmc open access[Filter] AND english[Filter]) AND ("1800/01/01"[Date - Publication] : "2025/08/31"[Date - Publication])"#]]
        .assert_eq(&for_pubmed(PUBLISHED[7], before).unwrap());
    }

    #[test]
    fn every_published_query_has_a_counterpart_with_the_same_filters() {
        let before = "2025-09-01".parse().unwrap();
        for published in PUBLISHED {
            let query = for_europe_pmc(published, before).unwrap();
            assert_eq!(query.contains("MESH:\"Humans\""), published.query.contains("humans"), "{query}");
            assert_eq!(query.contains("LANG:"), published.query.contains("english"), "{query}");
        }
        expect![[r#"SRC:MED AND TITLE_ABS:"emergency medicine" AND PUB_TYPE:"Case Reports" AND (OPEN_ACCESS:Y AND IN_PMC:Y) AND MESH:"Humans" AND FIRST_PDATE:[1800-01-01 TO 2025-08-31]"#]]
        .assert_eq(&for_europe_pmc(PUBLISHED[1], before).unwrap());
        let odd = Published { specialty: "Oddity", query: "(odd[Title/Abstract] AND free[Price])" };
        let error = for_europe_pmc(odd, before).unwrap_err().to_string();
        assert_eq!(error, "the clause `free[Price]` has no counterpart in Europe PMC");
    }
}
