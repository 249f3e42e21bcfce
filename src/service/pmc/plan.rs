//! From searches to files: which articles, in which version, from where, and what became of each.
//!
//! An article belongs to the first published query that found it; all that did are kept. Services are asked in the order
//! of the settings, the next one for what the one before does not have. The XML comes first: an article without a body
//! needs no images, but perhaps another service has its text. What is written beside the packages (`search.json`,
//! `selection.jsonl`, `outcomes.jsonl`) is the same for the same answers.

use super::europepmc::EuropePmc;
use super::eutils::Eutils;
use super::local::{self, Local};
use super::opendata::OpenData;
use super::queries::PUBLISHED;
use super::resolver::{Origin, Package, PackageFile, Pmcid, Resolved, Resolver, Search, Work};
use crate::config::source::PmcConfig;
use crate::error::{input, usage};
use crate::service::fetch::kinds::{self, FileKind, Sample};
use crate::service::fetch::lock::LockFile;
use crate::service::fetch::paging::{Hit, merge_hits};
use crate::service::fetch::{Answered, FetchFile, FetchOptions, FetchPlan, FetchReport, Fetcher, FileState, Progress};
use crate::store::{fs, manifest};
use anyhow::Context;
use jiff::civil::Date;
use quick_xml::events::Event;
use reqwest::Url;
use serde::{Deserialize, Serialize};
use std::collections::{BTreeMap, BTreeSet};
use std::path::{Path, PathBuf};

/// What is to be fetched.
#[derive(Clone, Debug)]
pub struct Request<'a> {
    pub config: &'a PmcConfig,
    /// `<raw>/<source>`.
    pub folder: PathBuf,
    /// These articles, without a search.
    pub ids: Option<Vec<Wanted>>,
    /// At most so many articles, of all specialties by turns.
    pub limit: Option<usize>,
    /// Searches and selects, and writes nothing.
    pub dry_run: bool,
    /// Services in place of those of the settings.
    pub from: Vec<String>,
    /// A folder for the service `local`, which is then the first to be asked.
    pub packages: Option<PathBuf>,
    /// The day of the search.
    pub date: Date,
    pub email: Option<String>,
    pub key: Option<String>,
}

/// An article that is wanted.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Wanted {
    pub pmcid: Pmcid,
    /// Specialties whose queries found it, in the published order.
    pub found_by: Vec<String>,
}

impl Wanted {
    fn specialty(&self) -> Option<&str> {
        self.found_by.first().map(String::as_str)
    }
}

/// Reads a list of ids: one a line, `PMC123`, if wanted followed by a specialty; `#` begins a remark.
///
/// # Errors
/// A line that is no id, and no id at all.
pub fn parse_ids(file: &str, text: &str) -> anyhow::Result<Vec<Wanted>> {
    let mut wanted: BTreeMap<Pmcid, BTreeSet<usize>> = BTreeMap::new();
    for (number, line) in (1..).zip(text.lines()) {
        let line = line.split('#').next().unwrap_or_default().trim();
        if line.is_empty() {
            continue;
        }
        let (id, specialty) = line.split_once(char::is_whitespace).unwrap_or((line, ""));
        let pmcid = Pmcid::parse(id).ok_or_else(|| usage(format!("{file}:{number}: `{id}` is not like PMC123")))?;
        let places = wanted.entry(pmcid).or_default();
        let specialty = specialty.trim();
        if !specialty.is_empty() {
            let place = PUBLISHED.iter().position(|one| one.specialty.eq_ignore_ascii_case(specialty));
            let known = || PUBLISHED.map(|one| one.specialty).join(", ");
            places.insert(place.ok_or_else(|| {
                usage(format!("{file}:{number}: `{specialty}` is no specialty of a search (known: {})", known()))
            })?);
        }
    }
    if wanted.is_empty() {
        return Err(usage(format!("{file} names no article")));
    }
    let names = |places: BTreeSet<usize>| -> Vec<String> {
        places.into_iter().filter_map(|place| PUBLISHED.get(place)).map(|one| one.specialty.to_owned()).collect()
    };
    Ok(wanted.into_iter().map(|(pmcid, places)| Wanted { pmcid, found_by: names(places) }).collect())
}

/// `search.json`.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct SearchRecord {
    pub format: u32,
    pub service: String,
    pub host: String,
    pub published_before: String,
    /// Whether the service was asked to expand words by synonyms.
    pub synonyms: bool,
    /// The day of the search, `YYYY-MM-DD`.
    pub date: String,
    pub searches: Vec<SpecialtySearch>,
    /// In what the queries are not the published ones.
    pub differences: Vec<String>,
    /// Hits of all searches, and the articles that they stand for.
    pub hits: usize,
    pub articles: usize,
    /// Hits that were another's, by the identifier that they share.
    pub same_pmcid: usize,
    pub same_pmid: usize,
    pub same_doi: usize,
    /// Pairs that share an identifier while a stronger one differs; both are kept.
    pub conflicts: usize,
    /// Articles that are not in PubMed Central.
    pub without_pmcid: usize,
}

/// One search of [`SearchRecord`].
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct SpecialtySearch {
    pub specialty: String,
    pub published: String,
    /// As it was sent.
    pub query: String,
    pub understood: Option<String>,
    pub announced: Option<u64>,
    pub collected: u64,
    pub pages: u64,
    pub page_size: u32,
    /// PMCIDs, ascending by number.
    pub found: Vec<String>,
}

const SEARCH_FORMAT: u32 = 1;
pub const SEARCH_FILE: &str = "search.json";
pub const SELECTION_FILE: &str = "selection.jsonl";
pub const OUTCOMES_FILE: &str = "outcomes.jsonl";

/// A line of `selection.jsonl`.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Selected {
    pub pmcid: String,
    pub version: u32,
    pub specialty: Option<String>,
    pub found_by: Vec<String>,
}

/// What became of an article.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Outcome {
    /// Its files are in the folder.
    Fetched,
    /// Its XML has no body in any service; it has no images here.
    MetadataOnly,
    /// Its record does not call it open; it has no files here.
    NotOpenAccess,
    /// No service has it.
    Absent,
    /// Something is wrong; another run may do better.
    Failed,
}

/// A line of `outcomes.jsonl`. What a service does not say is null.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct ArticleOutcome {
    pub pmcid: String,
    pub outcome: Outcome,
    pub service: Option<String>,
    pub version: Option<u32>,
    pub versions: Vec<u32>,
    pub licence: Option<String>,
    pub is_retracted: Option<bool>,
    pub is_manuscript: Option<bool>,
    pub is_historical_ocr: Option<bool>,
    pub files: usize,
    /// Files that were left out, and what is wrong.
    pub remarks: Vec<String>,
}

/// What a run did.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize)]
pub struct Summary {
    /// Whether nothing was written.
    pub dry_run: bool,
    pub search: Option<SearchSummary>,
    /// Articles that were wanted, after `--limit`.
    pub selected: usize,
    pub by_specialty: BTreeMap<String, usize>,
    /// Articles that a service has, open or not.
    pub resolved: usize,
    pub not_open_access: usize,
    pub absent: usize,
    pub metadata_only: usize,
    pub retracted: usize,
    pub manuscripts: usize,
    /// Articles whose files are all there, and those where something is wrong.
    pub complete: usize,
    pub failed: usize,
    pub files: FileCounts,
    /// One text for each thing that is wrong.
    pub problems: Vec<String>,
}

/// How articles were found.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct SearchSummary {
    pub service: String,
    pub date: String,
    pub published_before: String,
    /// Whether `search.json` of an earlier run was used.
    pub from_earlier_run: bool,
    /// Hits by specialty, in the published order.
    pub hits: Vec<(String, u64)>,
    /// Queries in the same order.
    pub queries: Vec<String>,
    pub found: usize,
    pub unique: usize,
    pub without_pmcid: usize,
    pub differences: Vec<String>,
}

/// Files of packages and records.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize)]
pub struct FileCounts {
    pub fetched: usize,
    pub kept: usize,
    pub updated: usize,
    pub failed: usize,
    pub left_out: usize,
}

/// What is told meanwhile.
pub enum Told<'a> {
    Step(String),
    File(Progress<'a>),
}

/// Services by name.
struct Services {
    search: Option<Box<dyn Search>>,
    resolvers: Vec<Box<dyn Resolver>>,
}

const SEARCHES: [&str; 2] = ["eutils", "europepmc"];
const RESOLVERS: [&str; 3] = ["opendata", "europepmc", "local"];

impl Services {
    fn new(request: &Request<'_>) -> anyhow::Result<Self> {
        let config = request.config;
        let address = |key: &str, text: &str| -> anyhow::Result<Url> {
            text.parse().map_err(|error| usage(format!("pmc.{key}: `{text}` is no address: {error}")))
        };
        let base = |key: &str, text: &str| address(key, &format!("{}/", text.trim_end_matches('/')));
        let europepmc = || -> anyhow::Result<EuropePmc> {
            let base = base("europepmc", &config.europepmc)?;
            Ok(EuropePmc { base, email: request.email.clone(), synonyms: config.synonyms })
        };
        let unknown =
            |name: &str, known: &[&str]| usage(format!("`{name}` is no service (known: {})", known.join(", ")));
        let all: BTreeSet<&str> = SEARCHES.into_iter().chain(RESOLVERS).collect();
        let all: Vec<&str> = all.into_iter().collect();
        if let Some(name) = request.from.iter().find(|name| !all.contains(&name.as_str())) {
            return Err(unknown(name, &all));
        }
        // Whoever names services names those of one of the two kinds, or of both.
        let named = |known: &[&str]| -> Vec<&str> {
            request.from.iter().map(String::as_str).filter(|name| known.contains(name)).collect()
        };
        let search = named(&SEARCHES).first().copied().unwrap_or(config.search.as_str());
        let search: Box<dyn Search> = match search {
            "eutils" => Box::new(Eutils {
                base: base("eutils", &config.eutils)?,
                id_converter: address("id_converter", &config.id_converter)?,
                email: request.email.clone(),
                key: request.key.clone(),
            }),
            "europepmc" => Box::new(europepmc()?),
            other => return Err(unknown(other, &SEARCHES)),
        };
        let mut names = named(&RESOLVERS);
        if names.is_empty() {
            names = config.resolvers.iter().map(String::as_str).collect();
        }
        if request.packages.is_some() && !names.contains(&"local") {
            names.insert(0, "local");
        }
        let resolver = |name: &str| -> anyhow::Result<Box<dyn Resolver>> {
            Ok(match name {
                "opendata" => Box::new(OpenData { base: base("opendata", &config.opendata)? }),
                "europepmc" => Box::new(europepmc()?),
                "local" => {
                    let folder = request.packages.clone();
                    let folder = folder.ok_or_else(|| usage("the service local needs --packages DIR"))?;
                    Box::new(Local { folder })
                }
                other => return Err(unknown(other, &RESOLVERS)),
            })
        };
        let resolvers = names.into_iter().map(resolver).collect::<anyhow::Result<_>>()?;
        Ok(Self { search: request.ids.is_none().then_some(search), resolvers })
    }
}

/// Rates by host, for [`FetchOptions::host_requests_per_minute`]; services of one host share the largest.
pub fn rates(config: &PmcConfig, has_key: bool) -> BTreeMap<String, u32> {
    let ncbi = if has_key { config.ncbi_requests_per_minute_with_key } else { config.ncbi_requests_per_minute };
    let mut rates = BTreeMap::new();
    for (address, rate) in [
        (&config.eutils, ncbi),
        (&config.id_converter, ncbi),
        (&config.europepmc, config.europepmc_requests_per_minute),
        (&config.opendata, config.opendata_requests_per_minute),
    ] {
        let host = Url::parse(address).ok().and_then(|url| url.host_str().map(str::to_owned));
        let known: &mut u32 = rates.entry(host.unwrap_or_default()).or_insert(rate);
        *known = rate.max(*known);
    }
    rates
}

/// Fetches what is missing. It blocks; not for use inside an asynchronous runtime.
///
/// # Errors
/// Settings that cannot be right, a search that fails or is incomplete, a service that does not have what it is known to
/// have, a disk that fails, and an interruption. What is wrong with single articles is in the summary.
pub fn run(request: &Request<'_>, options: &FetchOptions<'_>, tell: &dyn Fn(Told<'_>)) -> anyhow::Result<Summary> {
    let services = Services::new(request)?;
    let sentinel =
        |text: &String| Pmcid::parse(text).ok_or_else(|| usage(format!("pmc.sentinels: `{text}` is not like PMC123")));
    let sentinels = request.config.sentinels.iter().map(sentinel).collect::<anyhow::Result<Vec<_>>>()?;
    let fetcher = Fetcher::new(options)?;
    let work = Work {
        fetcher: &fetcher,
        folder: &request.folder,
        max_file_bytes: request.config.max_bytes_per_file,
        max_article_bytes: request.config.max_bytes_per_article,
        progress: &|progress| tell(Told::File(progress)),
    };
    let mut summary = Summary { dry_run: request.dry_run, ..Summary::default() };
    let wanted = match (&request.ids, &services.search) {
        (Some(ids), _) => ids.clone(),
        (None, Some(search)) => {
            let (record, is_earlier) = find(request, search.as_ref(), &work, options.update, tell)?;
            summary.search = Some(search_summary(&record, is_earlier));
            select(&record)
        }
        (None, None) => Vec::new(),
    };
    let wanted = limited(wanted, request.limit);
    summary.selected = wanted.len();
    for article in &wanted {
        *summary.by_specialty.entry(article.specialty().unwrap_or("none").to_owned()).or_default() += 1;
    }
    if request.dry_run {
        return Ok(summary);
    }
    let mut run = Run { services: &services, sentinels: &sentinels, work: &work, tell, summary };
    let resolved = run.resolve(&wanted)?;
    write_selection(&request.folder, &wanted, &resolved)?;
    let outcomes = run.fetch(&wanted, resolved, options.update)?;
    write_outcomes(&request.folder, &outcomes)?;
    Ok(run.summary)
}

/// The record of an earlier run if it is one of the same searches, else that of new ones, which is written.
fn find(
    request: &Request<'_>,
    search: &dyn Search,
    work: &Work<'_>,
    update: bool,
    tell: &dyn Fn(Told<'_>),
) -> anyhow::Result<(SearchRecord, bool)> {
    let before = request.config.published_before;
    let queries = PUBLISHED
        .iter()
        .map(|published| Ok((*published, search.query(*published, before)?)))
        .collect::<anyhow::Result<Vec<_>>>()?;
    let path = request.folder.join(SEARCH_FILE);
    if !update
        && path.exists()
        && let Ok(record) = serde_json::from_str::<SearchRecord>(&fs::read_text(&path)?)
    {
        let same = record.searches.iter().map(|one| &one.query).eq(queries.iter().map(|(_, query)| query));
        if same && record.format == SEARCH_FORMAT && record.service == search.service() {
            tell(Told::Step(format!("using the searches of {} ({})", record.date, SEARCH_FILE)));
            return Ok((record, true));
        }
    }
    let (mut hits, mut searches): (Vec<Hit>, Vec<SpecialtySearch>) = (Vec::new(), Vec::new());
    let mut specialty_of_hit = Vec::new();
    for (place, (published, query)) in queries.into_iter().enumerate() {
        let found = search
            .search(work, &query, request.date)
            .with_context(|| format!("searching {} for {}", search.service(), published.specialty))?;
        let provenance = found.provenance;
        tell(Told::Step(format!("{}: {} hits", published.specialty, provenance.collected)));
        specialty_of_hit.extend(found.hits.iter().map(|_| place));
        hits.extend(found.hits);
        searches.push(SpecialtySearch {
            specialty: published.specialty.to_owned(),
            published: published.query.to_owned(),
            query,
            understood: found.understood,
            announced: provenance.announced,
            collected: provenance.collected,
            pages: provenance.pages,
            page_size: provenance.page_size,
            found: Vec::new(),
        });
    }
    search.identify(work, &mut hits)?;
    let merged = merge_hits(&hits);
    let mut found: Vec<BTreeSet<Pmcid>> = searches.iter().map(|_| BTreeSet::new()).collect();
    let mut without_pmcid = 0;
    for article in &merged.articles {
        let Some(pmcid) = article.pmcid.as_deref().and_then(Pmcid::parse) else {
            without_pmcid += 1;
            continue;
        };
        for hit in &article.hits {
            if let Some(ids) = specialty_of_hit.get(*hit).and_then(|place| found.get_mut(*place)) {
                ids.insert(pmcid);
            }
        }
    }
    for (search, ids) in searches.iter_mut().zip(found) {
        search.found = ids.iter().map(ToString::to_string).collect();
    }
    let record = SearchRecord {
        format: SEARCH_FORMAT,
        service: search.service().to_owned(),
        host: search.host(),
        published_before: before.to_string(),
        synonyms: request.config.synonyms && search.service() == "europepmc",
        date: request.date.to_string(),
        searches,
        differences: search.differences().iter().map(|text| (*text).to_owned()).collect(),
        hits: merged.before,
        articles: merged.after,
        same_pmcid: merged.by_pmcid,
        same_pmid: merged.by_pmid,
        same_doi: merged.by_doi,
        conflicts: merged.conflicts,
        without_pmcid,
    };
    if !request.dry_run {
        fs::create_dir(&request.folder)?;
        fs::write_atomic(&path, &manifest::to_json(&record)?)?;
    }
    Ok((record, false))
}

fn search_summary(record: &SearchRecord, from_earlier_run: bool) -> SearchSummary {
    SearchSummary {
        service: record.service.clone(),
        date: record.date.clone(),
        published_before: record.published_before.clone(),
        from_earlier_run,
        hits: record.searches.iter().map(|one| (one.specialty.clone(), one.collected)).collect(),
        queries: record.searches.iter().map(|one| one.query.clone()).collect(),
        found: record.hits,
        unique: record.articles,
        without_pmcid: record.without_pmcid,
        differences: record.differences.clone(),
    }
}

/// One specialty for each article, that of the first search which found it; sorted by specialty and number.
fn select(record: &SearchRecord) -> Vec<Wanted> {
    let mut found: BTreeMap<Pmcid, Vec<usize>> = BTreeMap::new();
    for (place, search) in record.searches.iter().enumerate() {
        for id in search.found.iter().filter_map(|id| Pmcid::parse(id)) {
            found.entry(id).or_default().push(place);
        }
    }
    let mut wanted: Vec<(usize, Wanted)> = Vec::new();
    for (pmcid, places) in found {
        let names = places.iter().filter_map(|place| record.searches.get(*place));
        let found_by = names.map(|search| search.specialty.clone()).collect();
        wanted.push((places.first().copied().unwrap_or(0), Wanted { pmcid, found_by }));
    }
    wanted.sort_by_key(|(place, article)| (*place, article.pmcid));
    wanted.into_iter().map(|(_, article)| article).collect()
}

/// The first article of every specialty, then the second of each, and so on.
fn limited(wanted: Vec<Wanted>, limit: Option<usize>) -> Vec<Wanted> {
    let Some(limit) = limit else { return wanted };
    let mut turns: BTreeMap<Option<String>, usize> = BTreeMap::new();
    let mut ranked: Vec<(usize, usize)> = Vec::new();
    for (place, article) in wanted.iter().enumerate() {
        let turn = turns.entry(article.specialty().map(str::to_owned)).or_default();
        ranked.push((*turn, place));
        *turn += 1;
    }
    ranked.sort_unstable();
    let kept: BTreeSet<usize> = ranked.into_iter().take(limit).map(|(_, place)| place).collect();
    wanted.into_iter().enumerate().filter(|(place, _)| kept.contains(place)).map(|(_, article)| article).collect()
}

/// Fetching of one selection.
struct Run<'a> {
    services: &'a Services,
    sentinels: &'a [Pmcid],
    work: &'a Work<'a>,
    tell: &'a dyn Fn(Told<'_>),
    summary: Summary,
}

/// An article between its record and its files.
struct Article {
    package: Package,
    reports: Vec<(String, FileState)>,
    is_without_body: bool,
}

impl Run<'_> {
    fn step(&self, text: String) {
        (self.tell)(Told::Step(text));
    }

    /// Asks the services in their order; each is first asked for what it is known to have, and again when it did not have
    /// something.
    fn resolve(&mut self, wanted: &[Wanted]) -> anyhow::Result<BTreeMap<Pmcid, Resolved>> {
        let mut resolved = BTreeMap::new();
        let mut open: Vec<Pmcid> = wanted.iter().map(|article| article.pmcid).collect();
        for resolver in &self.services.resolvers {
            if open.is_empty() {
                break;
            }
            self.step(format!("asking {} ({}) for {} articles", resolver.service(), resolver.host(), open.len()));
            resolver.check(self.work, self.sentinels)?;
            let answers = resolver.resolve(self.work, &open)?;
            if answers.contains(&Resolved::Absent) {
                resolver.check(self.work, self.sentinels)?;
            }
            let mut absent = Vec::new();
            for (id, answer) in open.into_iter().zip(answers) {
                if answer == Resolved::Absent {
                    absent.push(id);
                }
                resolved.insert(id, answer);
            }
            open = absent;
        }
        Ok(resolved)
    }

    /// The files of all packages, XML first.
    fn fetch(
        &mut self,
        wanted: &[Wanted],
        mut resolved: BTreeMap<Pmcid, Resolved>,
        update: bool,
    ) -> anyhow::Result<Vec<ArticleOutcome>> {
        let (mut articles, mut outcomes): (Vec<Article>, Vec<ArticleOutcome>) = (Vec::new(), Vec::new());
        for article in wanted {
            match resolved.remove(&article.pmcid) {
                Some(Resolved::Package(package)) if package.is_open => {
                    articles.push(Article { package: *package, reports: Vec::new(), is_without_body: false });
                }
                Some(Resolved::Package(package)) => {
                    outcomes.push(outcome(&package, Outcome::NotOpenAccess, 0, Vec::new()));
                }
                Some(Resolved::Failed(why)) => {
                    outcomes.push(without_package(article.pmcid, Outcome::Failed, vec![why]))
                }
                Some(Resolved::Absent) | None => {
                    outcomes.push(without_package(article.pmcid, Outcome::Absent, Vec::new()));
                }
            }
        }
        let lock = LockFile::load(self.work.folder)?;
        self.step(format!("fetching the XML of {} articles", articles.len()));
        let alternatives: Vec<Option<Url>> =
            articles.iter().map(|article| self.alternative(&article.package)).collect::<anyhow::Result<_>>()?;
        let mut plan = Vec::new();
        for (article, alternative) in articles.iter_mut().zip(&alternatives) {
            let Some(file) = article.package.files.first() else { continue };
            let mut file = planned(&article.package, file, self.work.max_file_bytes);
            // Once the text of another service stands in, it is that one which is asked whether it changed.
            if let (Some(file), Some(alternative)) = (&mut file, alternative)
                && lock.get(&file.path).is_some_and(|locked| locked.url == alternative.as_str())
            {
                (file.url, file.md5) = (alternative.clone(), None);
                stand_in(&mut article.package, alternative);
            }
            plan.extend(file);
        }
        let report = self.bring(plan)?;
        note(&mut articles, report);
        for article in &mut articles {
            if is_local(&article.package) {
                let reports = local::bring(self.work, &article.package, update)?;
                article.reports.extend(reports.into_iter().map(|file| (file.path, file.state)));
            }
        }
        self.find_bodies(&mut articles, &alternatives)?;
        let mut media = Vec::new();
        for article in articles.iter().filter(|article| !article.is_without_body && article.is_good()) {
            let files = article.package.files.iter().skip(1);
            media.extend(files.filter_map(|file| planned(&article.package, file, self.work.max_file_bytes)));
        }
        self.step(format!("fetching {} further files", media.len()));
        let report = self.bring(media)?;
        note(&mut articles, report);
        for article in articles {
            self.count_files(&article);
            outcomes.push(conclude(&article));
        }
        let numbers = |outcome: &ArticleOutcome| Pmcid::parse(&outcome.pmcid);
        outcomes.sort_by_key(numbers);
        self.count(&outcomes);
        Ok(outcomes)
    }

    fn bring(&self, files: Vec<FetchFile>) -> anyhow::Result<FetchReport> {
        let plan = FetchPlan { folder: self.work.folder.to_owned(), files };
        self.work.fetcher.fetch(&plan, self.work.progress)
    }

    /// Where another service has the text of an article.
    fn alternative(&self, package: &Package) -> anyhow::Result<Option<Url>> {
        for resolver in self.services.resolvers.iter().skip_while(|one| one.service() != package.service).skip(1) {
            if let Some(url) = resolver.full_text(package.pmcid)? {
                return Ok(Some(url));
            }
        }
        Ok(None)
    }

    /// Looks for bodies, and for the text in the next service where there is none.
    fn find_bodies(&self, articles: &mut [Article], alternatives: &[Option<Url>]) -> anyhow::Result<()> {
        let mut open: Vec<(&mut Article, &Url)> = Vec::new();
        for (article, alternative) in articles.iter_mut().zip(alternatives) {
            article.is_without_body = article.is_good() && !self.has_body(&article.package)?;
            if let (true, Some(url)) = (article.is_without_body, alternative) {
                open.push((article, url));
            }
        }
        let urls: Vec<Url> = open.iter().map(|(_, url)| (*url).clone()).collect();
        let answers = self.work.fetcher.get_all(&urls, self.work.max_file_bytes, self.work.progress)?;
        for ((article, url), answer) in open.into_iter().zip(answers) {
            let Answered::Body(body) = answer else { continue };
            let kind = FileKind::Xml { roots: vec!["article".to_owned()] };
            if kinds::check(&kind, &Sample::of(&body)).is_err() || !has_body(&body) {
                continue;
            }
            let path = xml_path(&article.package);
            let mut file = FetchFile::new(url.clone(), &path, kind, self.work.max_file_bytes);
            file.licence.clone_from(&article.package.metadata.license_code);
            let plan = FetchPlan { folder: self.work.folder.to_owned(), files: vec![file] };
            // It replaces what has no body, and that alone.
            let report = self.work.fetcher.fetch_that(true, &plan, self.work.progress)?;
            article.reports.retain(|(known, _)| *known != path);
            // What it replaces came in the same run, or was there without a body before.
            let state = |state: FileState| match state {
                FileState::Updated { .. } => FileState::Fetched,
                state => state,
            };
            article.reports.extend(report.files.into_iter().map(|file| (file.path, state(file.state))));
            stand_in(&mut article.package, url);
            article.is_without_body = false;
        }
        Ok(())
    }

    fn has_body(&self, package: &Package) -> anyhow::Result<bool> {
        let path = self.work.folder.join(xml_path(package));
        Ok(has_body(&fs::read_limited(&path, self.work.max_file_bytes)?))
    }

    fn count_files(&mut self, article: &Article) {
        let files = &mut self.summary.files;
        files.left_out += article.package.left_out.len();
        for (_, state) in &article.reports {
            *match state {
                FileState::Fetched => &mut files.fetched,
                FileState::Kept => &mut files.kept,
                FileState::Updated { .. } => &mut files.updated,
                _ => &mut files.failed,
            } += 1;
        }
    }

    fn count(&mut self, outcomes: &[ArticleOutcome]) {
        let summary = &mut self.summary;
        for article in outcomes {
            let count = match article.outcome {
                Outcome::Fetched => &mut summary.complete,
                Outcome::MetadataOnly => &mut summary.metadata_only,
                Outcome::NotOpenAccess => &mut summary.not_open_access,
                Outcome::Absent => &mut summary.absent,
                Outcome::Failed => &mut summary.failed,
            };
            *count += 1;
            summary.resolved += usize::from(article.version.is_some());
            summary.retracted += usize::from(article.is_retracted == Some(true));
            summary.manuscripts += usize::from(article.is_manuscript == Some(true));
            if article.outcome == Outcome::Failed {
                summary.problems.push(format!("{}: {}", article.pmcid, article.remarks.join("; ")));
            }
        }
    }
}

impl Article {
    /// Whether its XML is there.
    fn is_good(&self) -> bool {
        let path = xml_path(&self.package);
        self.reports.iter().any(|(known, state)| *known == path && state.is_good())
    }
}

/// Says that the text of another service stands in for the archive's.
fn stand_in(package: &mut Package, url: &Url) {
    let host = url.host_str().unwrap_or_default();
    package.left_out.push(format!("the XML is that of {host}: the archive's has no body"));
}

fn conclude(article: &Article) -> ArticleOutcome {
    let folder = format!("{}/", article.package.name());
    let bad = article.reports.iter().filter(|(_, state)| !state.is_good());
    let mut remarks: Vec<String> =
        bad.map(|(path, state)| format!("{}: {state}", path.strip_prefix(&folder).unwrap_or(path))).collect();
    let kind = match (remarks.is_empty() && article.is_good(), article.is_without_body) {
        (false, _) => Outcome::Failed,
        (true, true) => Outcome::MetadataOnly,
        (true, false) => Outcome::Fetched,
    };
    remarks.extend(article.package.left_out.iter().cloned());
    let files = article.reports.iter().filter(|(_, state)| state.is_good()).count();
    outcome(&article.package, kind, files, remarks)
}

fn xml_path(package: &Package) -> String {
    let name = package.name();
    format!("{name}/{name}.xml")
}

fn is_local(package: &Package) -> bool {
    package.files.iter().any(|file| !matches!(file.origin, Origin::Web(_)))
}

fn planned(package: &Package, file: &PackageFile, max_bytes: u64) -> Option<FetchFile> {
    let Origin::Web(url) = &file.origin else { return None };
    Some(FetchFile {
        md5: file.md5.clone(),
        licence: package.metadata.license_code.clone(),
        ..FetchFile::new(url.clone(), &format!("{}/{}", package.name(), file.name), file.kind.clone(), max_bytes)
    })
}

fn note(articles: &mut [Article], report: FetchReport) {
    let places: BTreeMap<String, usize> =
        articles.iter().enumerate().map(|(place, article)| (article.package.name(), place)).collect();
    for file in report.files {
        let folder = file.path.split('/').next().unwrap_or_default();
        if let Some(article) = places.get(folder).and_then(|place| articles.get_mut(*place)) {
            article.reports.push((file.path, file.state));
        }
    }
}

fn outcome(package: &Package, outcome: Outcome, files: usize, remarks: Vec<String>) -> ArticleOutcome {
    ArticleOutcome {
        pmcid: package.pmcid.to_string(),
        outcome,
        service: Some(package.service.to_owned()),
        version: Some(package.version),
        versions: package.versions.clone(),
        licence: package.metadata.license_code.clone(),
        is_retracted: package.metadata.is_retracted,
        is_manuscript: package.metadata.is_manuscript,
        is_historical_ocr: package.metadata.is_historical_ocr,
        files,
        remarks,
    }
}

fn without_package(id: Pmcid, outcome: Outcome, remarks: Vec<String>) -> ArticleOutcome {
    ArticleOutcome {
        pmcid: id.to_string(),
        outcome,
        service: None,
        version: None,
        versions: Vec::new(),
        licence: None,
        is_retracted: None,
        is_manuscript: None,
        is_historical_ocr: None,
        files: 0,
        remarks,
    }
}

/// Whether an article has a body with words in a paragraph. XML that cannot be read has one until its reader says why not.
pub fn has_body(bytes: &[u8]) -> bool {
    let Ok(text) = std::str::from_utf8(bytes) else { return true };
    let mut reader = quick_xml::Reader::from_str(text);
    let (mut path, mut bodies, mut paragraphs): (Vec<Vec<u8>>, usize, usize) = (Vec::new(), 0, 0);
    loop {
        match reader.read_event() {
            Ok(Event::Start(tag)) => {
                let name = tag.local_name().into_inner().to_owned();
                bodies += usize::from(name == b"body");
                paragraphs += usize::from(bodies > 0 && name == b"p");
                path.push(name);
            }
            Ok(Event::End(_)) => {
                let Some(name) = path.pop() else { return true };
                paragraphs = paragraphs.saturating_sub(usize::from(bodies > 0 && name == b"p"));
                bodies = bodies.saturating_sub(usize::from(name == b"body"));
            }
            Ok(Event::Text(words)) if paragraphs > 0 && words.iter().any(|byte| !byte.is_ascii_whitespace()) => {
                return true;
            }
            Ok(Event::GeneralRef(_) | Event::CData(_)) if paragraphs > 0 => return true,
            Ok(Event::Eof) => return false,
            Ok(_) => {}
            Err(_) => return true,
        }
    }
}

/// Lines of a file that were there before, by id; lines of this run come on top of them.
fn merged<T: Serialize + for<'a> Deserialize<'a>>(
    path: &Path,
    id: impl Fn(&T) -> &str,
    new: impl IntoIterator<Item = T>,
    join: impl Fn(T, Option<T>) -> T,
) -> anyhow::Result<Vec<u8>> {
    let mut lines: BTreeMap<Pmcid, T> = BTreeMap::new();
    if path.exists() {
        for (number, line) in (1..).zip(fs::read_text(path)?.lines()) {
            let read = serde_json::from_str::<T>(line).ok().and_then(|line| Some((Pmcid::parse(id(&line))?, line)));
            let Some((pmcid, line)) = read else {
                return Err(input(format!("{}:{number} is damaged; remove the file to write it anew", path.display())));
            };
            lines.insert(pmcid, line);
        }
    }
    for line in new {
        if let Some(pmcid) = Pmcid::parse(id(&line)) {
            let before = lines.remove(&pmcid);
            lines.insert(pmcid, join(line, before));
        }
    }
    let mut text = String::new();
    for line in lines.values() {
        text += &serde_json::to_string(line)?;
        text.push('\n');
    }
    Ok(text.into_bytes())
}

/// Lines for the articles that have a package here; those of earlier runs stay.
fn write_selection(folder: &Path, wanted: &[Wanted], resolved: &BTreeMap<Pmcid, Resolved>) -> anyhow::Result<()> {
    fs::create_dir(folder)?;
    let path = folder.join(SELECTION_FILE);
    let line = |article: &Wanted| match resolved.get(&article.pmcid)? {
        Resolved::Package(package) if package.is_open => Some(Selected {
            pmcid: article.pmcid.to_string(),
            version: package.version,
            specialty: article.specialty().map(str::to_owned),
            found_by: article.found_by.clone(),
        }),
        _ => None,
    };
    let join = |mut new: Selected, before: Option<Selected>| {
        // A list of ids without specialties says nothing about who found them.
        if let Some(before) = before.filter(|_| new.found_by.is_empty()) {
            (new.specialty, new.found_by) = (before.specialty, before.found_by);
        }
        new
    };
    write_if_new(&path, &merged(&path, |line: &Selected| &line.pmcid, wanted.iter().filter_map(line), join)?)
}

fn write_outcomes(folder: &Path, outcomes: &[ArticleOutcome]) -> anyhow::Result<()> {
    let path = folder.join(OUTCOMES_FILE);
    write_if_new(&path, &merged(&path, |line: &ArticleOutcome| &line.pmcid, outcomes.iter().cloned(), |new, _| new)?)
}

/// A file that is as it should be is not touched.
fn write_if_new(path: &Path, bytes: &[u8]) -> anyhow::Result<()> {
    if std::fs::read(path).is_ok_and(|present| present == bytes) {
        return Ok(());
    }
    fs::write_atomic(path, bytes)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn pmc_03_front_matter_alone_is_no_body() {
        for (article, expected) in [
            (
                "<article><!-- publisher note --><front><article-meta><abstract><p>Short.</p></abstract></article-meta></front></article>",
                false,
            ),
            ("<article><front/><body/></article>", false),
            ("<article><body><sec><title>Case</title><p> \n</p></sec></body></article>", false),
            ("<article><body><sec><p><italic>A</italic> man.</p></sec></body></article>", true),
            ("<j:article xmlns:j='x'><j:body><j:p>&#233;</j:p></j:body></j:article>", true),
            ("<article><body><p>cut", true),
            ("<article><body></article>", true),
        ] {
            assert_eq!(has_body(article.as_bytes()), expected, "{article}");
        }
    }

    #[test]
    fn an_article_has_the_specialty_of_the_first_search_that_found_it() {
        let search = |specialty: &str, found: &[&str]| SpecialtySearch {
            specialty: specialty.to_owned(),
            published: String::new(),
            query: String::new(),
            understood: None,
            announced: None,
            collected: 0,
            pages: 1,
            page_size: 1,
            found: found.iter().map(|id| (*id).to_owned()).collect(),
        };
        let record = SearchRecord {
            format: 1,
            service: String::new(),
            host: String::new(),
            published_before: String::new(),
            synonyms: false,
            date: String::new(),
            searches: vec![
                search("Neurology", &["PMC30", "PMC4"]),
                search("Oncology", &["PMC4", "PMC5", "PMC6"]),
                search("Radiology", &["PMC5", "PMC100", "PMC7"]),
            ],
            differences: Vec::new(),
            hits: 8,
            articles: 6,
            same_pmcid: 2,
            same_pmid: 0,
            same_doi: 0,
            conflicts: 0,
            without_pmcid: 0,
        };
        let shown = |wanted: &[Wanted]| -> Vec<String> {
            wanted.iter().map(|article| format!("{} {}", article.pmcid, article.found_by.join("+"))).collect()
        };
        let wanted = select(&record);
        assert_eq!(
            shown(&wanted),
            [
                "PMC4 Neurology+Oncology",
                "PMC30 Neurology",
                "PMC5 Oncology+Radiology",
                "PMC6 Oncology",
                "PMC7 Radiology",
                "PMC100 Radiology"
            ]
        );
        let few = limited(wanted.clone(), Some(4));
        assert_eq!(few.iter().map(|article| article.pmcid.0).collect::<Vec<_>>(), [4, 30, 5, 7]);
        assert_eq!(limited(wanted.clone(), None), wanted);
    }

    #[test]
    fn lists_of_ids_are_read_line_by_line() {
        let wanted = parse_ids("ids", "# chosen\nPMC12 radiology\npmc7 # why\n\nPMC12\tDermatology\n").unwrap();
        let shown: Vec<_> = wanted.iter().map(|one| (one.pmcid.0, one.found_by.join("+"))).collect();
        assert_eq!(shown, [(7, String::new()), (12, "Dermatology+Radiology".to_owned())]);
        let error = |text: &str| parse_ids("ids", text).unwrap_err().to_string();
        assert_eq!(error("PMC1\n12\n"), "ids:2: `12` is not like PMC123");
        assert!(error("PMC1 Surgery").starts_with("ids:1: `Surgery` is no specialty of a search (known: Dermatology,"));
        assert_eq!(error("# none\n"), "ids names no article");
    }
}
