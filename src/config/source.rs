//! `sources/<source>.toml`: where a source comes from and how it is read; and
//! `<raw>/<source>/source.toml`: the rights of the files beside it.

use super::toml_file::{Located, Problems, TableReader, read_file};
use crate::record::{Access, Hash, LlmEgress, Rights};
use std::collections::BTreeMap;

/// A source as declared.
#[derive(Clone, Debug, PartialEq)]
pub struct SourceConfig {
    /// Path as shown in messages.
    pub file: String,
    pub name: String,
    pub title: String,
    /// Where it is published.
    pub origin: String,
    /// What its publisher says of the licence; what counts is the snapshot's `source.toml`.
    pub published_licence: String,
    /// What to put where.
    pub how_to_get: String,
    pub format: String,
    /// Names below `<raw>/<source>/`; `*` stands for any characters.
    pub files: Vec<String>,
    /// Cap on what one packed file may unpack to.
    pub max_unpacked_bytes: u64,
    /// What the format needs to know, such as where labels start; part of the fingerprint.
    pub options: toml::Table,
    /// Known snapshots: label → SHA-256 of a file.
    pub checksums: BTreeMap<String, String>,
    /// Files that `casemill sources fetch` can get, by label.
    pub fetch: BTreeMap<String, FetchConfig>,
    /// For each host.
    pub fetch_requests_per_minute: u32,
    /// For articles of PubMed Central: services in place of files.
    pub pmc: Option<PmcConfig>,
    /// For the American Journal of Case Reports: where its pages are.
    pub ajcr: Option<AjcrConfig>,
}

/// `[ajcr]`: how pages of the American Journal of Case Reports are asked for. Its table `page`, what is where on a page, is
/// [`SourceConfig::options`] under the same name, since what is read depends on it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct AjcrConfig {
    /// What a DOI is put behind to make an address; ends with `/`.
    pub resolver: String,
    /// Hosts that a redirect may lead to.
    pub hosts: Vec<String>,
    /// Address of the full text, with `{number}` for the number of the page; none if the resolver leads to it.
    pub full_text: Option<String>,
    /// Environment variable with the address that the publisher can write to.
    pub email_variable: String,
    /// For each host.
    pub requests_per_minute: u32,
    pub max_bytes_per_page: u64,
}

/// `[pmc]`: the services that find and have articles, and how they are treated.
#[derive(Clone, Debug, PartialEq)]
pub struct PmcConfig {
    /// The service that is searched.
    pub search: String,
    /// Services that have articles, in the order in which they are asked.
    pub resolvers: Vec<String>,
    /// Articles of this day and later are not searched for.
    pub published_before: jiff::civil::Date,
    /// Whether a service may expand the words of a query.
    pub synonyms: bool,
    /// PMCIDs that every service is known to have; when it does not, it is the service that fails.
    pub sentinels: Vec<String>,
    /// Addresses of services; all but that of the ID converter end with `/`.
    pub opendata: String,
    pub europepmc: String,
    pub eutils: String,
    pub id_converter: String,
    /// Environment variables with the address that services can write to, and with the key of NCBI.
    pub email_variable: String,
    pub key_variable: String,
    pub max_bytes_per_file: u64,
    pub max_bytes_per_article: u64,
    /// Requests that are under way at one host at the same time.
    pub concurrency: u32,
    pub opendata_requests_per_minute: u32,
    pub europepmc_requests_per_minute: u32,
    pub ncbi_requests_per_minute: u32,
    pub ncbi_requests_per_minute_with_key: u32,
}

/// A file on a server.
#[derive(Clone, Debug, PartialEq)]
pub struct FetchConfig {
    pub url: String,
    /// Name below `<raw>/<source>/`.
    pub path: String,
    /// `gzip`, `zip`, `tar.gz`, `pdf`, `xml`, `json`, `jsonl`, `csv`, `parquet`, `png`, `jpeg`, `image`, `mp4`, `media`, `html`
    /// or `text`: what its bytes must be.
    pub kind: String,
    pub sha256: Option<Hash>,
    pub max_bytes: u64,
}

/// Parses a source file. Whether its format has a reader is checked with the pipeline.
pub fn parse(file: &str, text: &str) -> Result<SourceConfig, Problems> {
    let expected = file.rsplit('/').next().and_then(|name| name.strip_suffix(".toml")).unwrap_or_default().to_owned();
    read_file(file, text, |mut root| {
        let name = root.required_string("name");
        if name.value != expected && !name.value.is_empty() {
            root.problem(name.line, "name", format!("is `{}` but the file is named `{expected}`", name.value));
        }
        let title = root.required_string("title").value;
        let origin = root.required_string("origin").value;
        let published_licence = root.required_string("published_licence").value;
        let how_to_get = root.required_string("how_to_get").value;
        let format = root.required_string("format").value;
        let files = root.strings("files");
        let line = root.line();
        if files.as_ref().is_none_or(|files| files.value.is_empty()) {
            root.problem(line, "files", "must name at least one file or pattern");
        }
        let max_unpacked_bytes = root.count("max_unpacked_bytes").map_or(64 << 30, |count| count.value);
        let mut options = toml::Table::new();
        root.table_at("options", |mut table| {
            options.extend(table.all_values().into_iter().map(|(name, value)| (name, value.value)));
        });
        let mut checksums = BTreeMap::new();
        root.table_at("checksums", |mut table| {
            for (label, values) in table.all_strings() {
                match values.value.as_slice() {
                    [hash] if is_sha256(hash) => drop(checksums.insert(label, hash.to_ascii_lowercase())),
                    _ => table.problem(values.line, &label, NOT_A_HASH),
                }
            }
        });
        let mut fetch = BTreeMap::new();
        root.tables("fetch", |label, mut table| {
            let (url, path) = (table.required_string("url").value, table.required_string("path").value);
            let kind = table.required_string("kind").value;
            let sha256 = table.string("sha256");
            if let Some(hash) = sha256.as_ref().filter(|hash| !is_sha256(&hash.value)) {
                table.problem(hash.line, "sha256", NOT_A_HASH);
            }
            let sha256 = sha256.map(|hash| Hash::parse(&hash.value.to_ascii_lowercase()));
            let max_bytes = table.count("max_bytes").map_or(16 << 30, |count| count.value);
            table.finish();
            fetch.insert(label.to_owned(), FetchConfig { url, path, kind, sha256, max_bytes });
        });
        let fetch_requests_per_minute = root.positive("fetch_requests_per_minute", 60);
        let mut pmc = None;
        root.table_at("pmc", |table| pmc = Some(read_pmc(table)));
        let mut ajcr = None;
        root.table_at("ajcr", |table| ajcr = Some(read_ajcr(table, &mut options)));
        root.finish();
        let files = files.map(|files| files.value).unwrap_or_default();
        SourceConfig {
            file: file.to_owned(),
            name: name.value,
            title,
            origin,
            published_licence,
            how_to_get,
            format,
            files,
            max_unpacked_bytes,
            options,
            checksums,
            fetch,
            fetch_requests_per_minute,
            pmc,
            ajcr,
        }
    })
}

fn read_ajcr(mut table: TableReader<'_>, options: &mut toml::Table) -> AjcrConfig {
    let text = |value: Option<Located<String>>, default: &str| value.map_or(default.to_owned(), |value| value.value);
    let config = AjcrConfig {
        resolver: text(table.string("resolver"), "https://doi.org/"),
        hosts: table.strings("hosts").map(|hosts| hosts.value).unwrap_or_default(),
        full_text: table.string("full_text").map(|pattern| pattern.value),
        email_variable: text(table.string("email_variable"), "CASEMILL_EMAIL"),
        requests_per_minute: table.positive("requests_per_minute", 20),
        max_bytes_per_page: table.count("max_bytes_per_page").map_or(16 << 20, |count| count.value),
    };
    table.table_at("page", |mut page| {
        let values = page.all_values().into_iter().map(|(name, value)| (name, value.value));
        options.insert("page".to_owned(), toml::Value::Table(values.collect()));
    });
    table.finish();
    config
}

fn read_pmc(mut table: TableReader<'_>) -> PmcConfig {
    let before = table.required_string("published_before");
    let published_before = before.value.parse().unwrap_or_else(|_| {
        table.problem(before.line, "published_before", "must be a day as YYYY-MM-DD");
        jiff::civil::Date::MIN
    });
    let mut list = |key: &'static str| {
        let line = table.line();
        let list = table.strings(key).map(|list| list.value).unwrap_or_default();
        if list.is_empty() {
            table.problem(line, key, "must name at least one");
        }
        list
    };
    let (resolvers, sentinels) = (list("resolvers"), list("sentinels"));
    let config = PmcConfig {
        search: table.required_string("search").value,
        resolvers,
        published_before,
        synonyms: table.boolean("synonyms").is_some_and(|synonyms| synonyms.value),
        sentinels,
        opendata: table.required_string("opendata").value,
        europepmc: table.required_string("europepmc").value,
        eutils: table.required_string("eutils").value,
        id_converter: table.required_string("id_converter").value,
        email_variable: table.required_string("email_variable").value,
        key_variable: table.required_string("key_variable").value,
        max_bytes_per_file: table.count("max_bytes_per_file").map_or(64 << 20, |count| count.value),
        max_bytes_per_article: table.count("max_bytes_per_article").map_or(512 << 20, |count| count.value),
        concurrency: table.positive("concurrency", 4),
        opendata_requests_per_minute: table.positive("opendata_requests_per_minute", 600),
        europepmc_requests_per_minute: table.positive("europepmc_requests_per_minute", 240),
        ncbi_requests_per_minute: table.positive("ncbi_requests_per_minute", 170),
        ncbi_requests_per_minute_with_key: table.positive("ncbi_requests_per_minute_with_key", 570),
    };
    table.finish();
    config
}

const NOT_A_HASH: &str = "must be one SHA-256 of 64 hexadecimal digits";

fn is_sha256(text: &str) -> bool {
    text.len() == 64 && text.bytes().all(|byte| byte.is_ascii_hexdigit())
}

/// Name of the file that speaks for the raw files beside it.
pub const RIGHTS_FILE: &str = "source.toml";

/// Parses `<raw>/<source>/source.toml` (SPEC section 10). A key that is missing stays unknown, and unknown is closed.
pub fn parse_rights(file: &str, text: &str) -> Result<Rights, Problems> {
    read_file(file, text, |mut root| {
        let mut rights = Rights::unknown();
        if let Some(snapshot) = root.string("snapshot") {
            rights.snapshot = snapshot.value;
        }
        if let Some(licence) = root.string("licence") {
            if licence.value != "unknown"
                && let Err(error) = spdx::Expression::parse(&licence.value)
            {
                root.problem(
                    licence.line,
                    "licence",
                    format!(
                        "`{}` is not an SPDX expression ({}); see spdx.org/licenses, or write \"unknown\"",
                        licence.value, error.reason
                    ),
                );
            }
            rights.licence = licence.value;
        }
        if let Some(access) = root.string("access") {
            match access.value.as_str() {
                "open" => rights.access = Access::Open,
                "registered" => rights.access = Access::Registered,
                "credentialed" => rights.access = Access::Credentialed,
                "unknown" => {}
                other => root.problem(
                    access.line,
                    "access",
                    format!("`{other}` is not one of open, registered, credentialed, unknown"),
                ),
            }
        }
        if let Some(egress) = root.string("llm_egress") {
            match egress.value.as_str() {
                "any" => rights.llm_egress = LlmEgress::Any,
                "zdr" => rights.llm_egress = LlmEgress::Zdr,
                "local" => rights.llm_egress = LlmEgress::Local,
                "none" => {}
                other => {
                    root.problem(egress.line, "llm_egress", format!("`{other}` is not one of any, zdr, local, none"))
                }
            }
        }
        root.finish();
        rights
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use expect_test::expect;

    #[test]
    fn services_of_articles_are_settings() {
        let text = "name = 'pmc'\ntitle = ''\norigin = ''\npublished_licence = ''\nhow_to_get = ''\nformat = 'jats'\nfiles = ['*']\n";
        assert_eq!(parse("pmc.toml", text).unwrap().pmc, None);
        let wrong = format!(
            "{text}[pmc]\nsearch = 'eutils'\npublished_before = 'soon'\nsentinels = []\nopendata = 'o'\neuropepmc = 'e'\neutils = 'u'\nid_converter = 'i'\nemail_variable = 'E'\nkey_variable = 'K'\nconcurrency = 0\nkey = 'secret'"
        );
        expect![[r#"
            pmc.toml:8: pmc.resolvers: must name at least one
            pmc.toml:8: pmc.sentinels: must name at least one
            pmc.toml:10: pmc.published_before: must be a day as YYYY-MM-DD
            pmc.toml:18: pmc.concurrency: must be a whole number of at least 1, not integer
            pmc.toml:19: pmc.key: unknown key (known: published_before, resolvers, sentinels, search, synonyms, opendata, europepmc, eutils, id_converter, email_variable, key_variable, max_bytes_per_file, max_bytes_per_article, concurrency, opendata_requests_per_minute, europepmc_requests_per_minute, ncbi_requests_per_minute, ncbi_requests_per_minute_with_key)"#]]
        .assert_eq(&parse("pmc.toml", &wrong).unwrap_err().to_string());
    }

    #[test]
    fn rights_are_unknown_until_somebody_says() {
        assert_eq!(parse_rights("source.toml", "").unwrap(), Rights::unknown());
        let rights = parse_rights(
            "source.toml",
            "licence = 'CC-BY-4.0'\naccess = 'open'\nllm_egress = 'zdr'\nsnapshot = '2026'",
        )
        .unwrap();
        assert_eq!((rights.access, rights.llm_egress), (Access::Open, LlmEgress::Zdr));
        expect![[r#"
            medqa/source.toml:1: licence: `free` is not an SPDX expression (unknown term); see spdx.org/licenses, or write "unknown"
            medqa/source.toml:2: access: `everyone` is not one of open, registered, credentialed, unknown
            medqa/source.toml:3: licens: unknown key; did you mean `licence`? (known: snapshot, licence, access, llm_egress)"#]]
        .assert_eq(&parse_rights("medqa/source.toml", "licence = 'free'\naccess = 'everyone'\nlicens = 'x'").unwrap_err().to_string());
    }
}
