//! The object store `pmc-oa-opendata`: a folder for each version of an article, and a record beside it.
//!
//! Which versions there are is a listing of folders that begin with `PMC<id>.`: with the point, `PMC12` never finds
//! `PMC123`. The highest version is the highest number, not the last name. What the record does not call open is not
//! taken, although it lies there.

use super::resolver::{
    Metadata, Origin, Package, PackageFile, Pmcid, Resolved, Resolver, Work, cap, is_safe_name, kind_of,
};
use crate::error::input;
use crate::service::fetch::kinds::FileKind;
use crate::service::fetch::{Answered, FetchFile, FetchPlan};
use crate::store::fs;
use quick_xml::events::Event;
use reqwest::Url;
use std::collections::{BTreeMap, BTreeSet};

/// The adapter.
pub struct OpenData {
    /// Ends with `/`.
    pub base: Url,
}

/// The largest page of a listing (1 000 entries), and the largest record.
const MAX_ANSWER_BYTES: u64 = 4 << 20;
/// Pages of one listing; an article has some hundred files at most.
const MAX_PAGES: usize = 50;

/// What a listing says: `ListBucketResult` of version 2.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Listing {
    /// Folders, with their slash.
    pub folders: Vec<String>,
    /// Objects and their sizes.
    pub objects: Vec<(String, u64)>,
    /// Where the next page begins, if this is not the last one.
    pub next: Option<String>,
}

impl Listing {
    /// # Errors
    /// What is not such a listing, or is one that says there is more but not where.
    pub fn parse(bytes: &[u8]) -> Result<Self, String> {
        let text = std::str::from_utf8(bytes).map_err(|_| "not UTF-8")?;
        let mut reader = quick_xml::Reader::from_str(text);
        let mut listing = Self::default();
        let (mut path, mut words): (Vec<String>, String) = (Vec::new(), String::new());
        let (mut key, mut size, mut truncated, mut token) = (None, None, false, None);
        loop {
            match reader.read_event().map_err(|error| format!("not XML: {error}"))? {
                Event::Start(tag) => {
                    // The namespace has been the same since 2006, but some stores leave it out.
                    path.push(String::from_utf8_lossy(tag.local_name().into_inner()).into_owned());
                    if path.len() == 1 && path.first().is_some_and(|root| root != "ListBucketResult") {
                        return Err(format!("<{}> instead of a listing", path.concat()));
                    }
                    words.clear();
                }
                Event::Text(piece) => words.push_str(&piece.decode().map_err(|error| error.to_string())?),
                Event::CData(piece) => words.push_str(&piece.decode().map_err(|error| error.to_string())?),
                Event::GeneralRef(name) => {
                    let name = name.decode().map_err(|error| error.to_string())?;
                    let text = quick_xml::escape::unescape(&format!("&{name};")).map(|text| text.into_owned());
                    words.push_str(&text.map_err(|error| error.to_string())?);
                }
                Event::End(_) => {
                    let parts: Vec<&str> = path.iter().skip(1).map(String::as_str).collect();
                    let value = std::mem::take(&mut words);
                    match parts.as_slice() {
                        ["CommonPrefixes", "Prefix"] => listing.folders.push(value),
                        ["Contents", "Key"] => key = Some(value),
                        ["Contents", "Size"] => size = value.trim().parse().ok(),
                        ["Contents"] => {
                            let object = key.take().zip(size.take()).ok_or("an object without name or size")?;
                            listing.objects.push(object);
                        }
                        ["IsTruncated"] => truncated = value.trim() == "true",
                        ["NextContinuationToken"] => token = Some(value),
                        _ => {}
                    }
                    path.pop();
                }
                Event::Eof => break,
                _ => {}
            }
        }
        if !path.is_empty() || reader.buffer_position() == 0 {
            return Err("a listing without its end".to_owned());
        }
        if truncated && token.is_none() {
            return Err("a listing that is cut and does not say how it goes on".to_owned());
        }
        listing.next = token.filter(|_| truncated);
        Ok(listing)
    }

    /// The versions of exactly this article, ascending.
    pub fn versions(&self, id: Pmcid) -> Vec<u32> {
        let prefix = format!("{id}.");
        let version = |folder: &String| {
            let digits = folder.strip_prefix(&prefix)?.strip_suffix('/')?;
            let is_number = !digits.is_empty() && digits.bytes().all(|digit| digit.is_ascii_digit());
            digits.parse().ok().filter(|_| is_number)
        };
        let versions: BTreeSet<u32> = self.folders.iter().filter_map(version).collect();
        versions.into_iter().collect()
    }
}

/// `s3://<bucket>/<key>?md5=<hash>` as key and hash.
///
/// # Errors
/// What is wrong with it.
pub fn parse_address(address: &str) -> Result<(&str, Option<String>), String> {
    let wrong = |why: &str| format!("`{address}` {why}");
    let rest = address.strip_prefix("s3://").ok_or_else(|| wrong("is not an s3 address"))?;
    let (_, rest) = rest.split_once('/').ok_or_else(|| wrong("names no object"))?;
    let Some((key, md5)) = rest.rsplit_once("?md5=") else { return Ok((rest, None)) };
    let md5 = md5.to_ascii_lowercase();
    let is_md5 = md5.len() == 32 && md5.bytes().all(|byte| byte.is_ascii_hexdigit());
    if is_md5 { Ok((key, Some(md5))) } else { Err(wrong("has an md5 that is not 32 hexadecimal digits")) }
}

impl OpenData {
    fn host_name(&self) -> &str {
        self.base.host_str().unwrap_or_default()
    }

    fn object(&self, key: &str) -> anyhow::Result<Url> {
        let mut url = self.base.clone();
        // Names hold blanks and other characters that an address does not.
        let mut parts = url.path_segments_mut().map_err(|()| input("the store's address takes no path"))?;
        parts.pop_if_empty().extend(key.split('/'));
        drop(parts);
        // The store reads a plus sign as a blank.
        let path = url.path().replace('+', "%2B");
        url.set_path(&path);
        Ok(url)
    }

    fn listing(&self, prefix: &str, folders: bool, token: Option<&str>) -> Url {
        let mut url = self.base.clone();
        let mut query = url.query_pairs_mut();
        query.append_pair("list-type", "2");
        if folders {
            query.append_pair("delimiter", "/");
        }
        query.append_pair("prefix", prefix);
        if let Some(token) = token {
            query.append_pair("continuation-token", token);
        }
        drop(query);
        url
    }

    /// All pages of a listing for each prefix.
    fn list(
        &self,
        work: &Work<'_>,
        prefixes: &[String],
        folders: bool,
    ) -> anyhow::Result<Vec<Result<Listing, String>>> {
        let mut found: Vec<Result<Listing, String>> = prefixes.iter().map(|_| Ok(Listing::default())).collect();
        let mut open: Vec<(usize, Option<String>)> = (0..prefixes.len()).map(|place| (place, None)).collect();
        for page in 0..=MAX_PAGES {
            if open.is_empty() {
                break;
            }
            if page == MAX_PAGES {
                for (place, _) in &open {
                    if let Some(result) = found.get_mut(*place) {
                        *result = Err(format!("its listing has more than {MAX_PAGES} pages"));
                    }
                }
                break;
            }
            let address = |(place, token): &(usize, Option<String>)| {
                self.listing(prefixes.get(*place).map_or("", String::as_str), folders, token.as_deref())
            };
            let urls: Vec<Url> = open.iter().map(address).collect();
            let answers = work.fetcher.get_all(&urls, MAX_ANSWER_BYTES, work.progress)?;
            let mut next = Vec::new();
            for ((place, _), answer) in open.into_iter().zip(answers) {
                let Some(result) = found.get_mut(place) else { continue };
                let read = match answer {
                    Answered::Body(body) => Listing::parse(&body),
                    // A store answers with an empty listing where it has nothing; without a store there is no listing.
                    Answered::Missing => {
                        return Err(input(format!(
                            "{} answers 404 to a listing: the service is not there, which says nothing about articles",
                            self.host_name()
                        )));
                    }
                    Answered::Failed(why) => Err(why),
                };
                match (read, result) {
                    (Ok(read), Ok(all)) => {
                        all.folders.extend(read.folders);
                        all.objects.extend(read.objects);
                        if let Some(token) = read.next {
                            next.push((place, Some(token)));
                        }
                    }
                    (Err(why), result) => *result = Err(why),
                    (Ok(_), Err(_)) => {}
                }
            }
            open = next;
        }
        Ok(found)
    }

    /// The versions of articles, and of those that have any the record of the highest one.
    fn records(&self, work: &Work<'_>, ids: &[Pmcid]) -> anyhow::Result<Vec<Result<Record, Resolved>>> {
        let prefixes: Vec<String> = ids.iter().map(|id| format!("{id}.")).collect();
        let listings = self.list(work, &prefixes, true)?;
        let versions: Vec<Result<Vec<u32>, String>> =
            ids.iter().zip(listings).map(|(id, listing)| Ok(listing?.versions(*id))).collect();
        let mut files = BTreeMap::new();
        for (id, versions) in ids.iter().zip(&versions) {
            if let Some(version) = versions.as_ref().ok().and_then(|versions| versions.last()) {
                let path = record_path(*id, *version);
                let file = FetchFile::new(self.object(&path)?, &path, FileKind::Json, MAX_ANSWER_BYTES);
                files.insert(path, file);
            }
        }
        let plan = FetchPlan { folder: work.folder.to_owned(), files: files.into_values().collect() };
        let report = work.fetcher.fetch(&plan, work.progress)?;
        let states: BTreeMap<&str, _> = report.files.iter().map(|file| (file.path.as_str(), &file.state)).collect();
        let record = |(id, versions): (&Pmcid, Result<Vec<u32>, String>)| {
            let versions = versions.map_err(Resolved::Failed)?;
            let Some(version) = versions.last().copied() else { return Err(Resolved::Absent) };
            let path = record_path(*id, version);
            if let Some(state) = states.get(path.as_str()).filter(|state| !state.is_good()) {
                return Err(Resolved::Failed(format!("{path}: {state}")));
            }
            let bytes = fs::read_limited(&work.folder.join(&path), MAX_ANSWER_BYTES);
            let metadata = bytes
                .map_err(|error| error.to_string())
                .and_then(|bytes| Metadata::parse(&bytes, *id, version))
                .map_err(Resolved::Failed)?;
            Ok(Record { pmcid: *id, version, versions, metadata })
        };
        Ok(ids.iter().zip(versions).map(record).collect())
    }

    /// The files of an article: those that its record names, or, where it speaks of no media, those in its folder.
    fn package(&self, work: &Work<'_>, record: Record, listing: Listing) -> anyhow::Result<Resolved> {
        let Record { pmcid, version, versions, metadata } = record;
        let name = format!("{pmcid}.{version}");
        let folder = format!("{name}/");
        let sizes: BTreeMap<&str, u64> = listing.objects.iter().map(|(key, size)| (key.as_str(), *size)).collect();
        let xml = match metadata.xml_url.as_deref().map(parse_address) {
            Some(Ok((key, md5))) => (key.to_owned(), md5),
            Some(Err(why)) => return Ok(Resolved::Failed(why)),
            None => (format!("{folder}{name}.xml"), None),
        };
        let mut left_out = Vec::new();
        let mut wanted = vec![xml];
        match metadata.media() {
            Err(why) => return Ok(Resolved::Failed(why)),
            Ok(Some(media)) => {
                for address in media {
                    match parse_address(address) {
                        Ok((key, md5)) => wanted.push((key.to_owned(), md5)),
                        Err(why) => left_out.push(why),
                    }
                }
            }
            Ok(None) => {
                // The article in its other forms is no medium.
                let forms = ["xml", "txt", "pdf", "json"].map(|form| format!("{folder}{name}.{form}"));
                let media = sizes.keys().filter(|key| !forms.iter().any(|form| form == *key));
                wanted.extend(media.map(|key| ((*key).to_owned(), None)));
            }
        }
        let mut files: Vec<PackageFile> = Vec::new();
        for (key, md5) in wanted {
            let is_xml = files.is_empty();
            let found = sizes.get(key.as_str());
            let why = match (key.strip_prefix(&folder), found) {
                (None, _) => Some("lies outside of the article's folder"),
                (Some(name), _) if !is_safe_name(name) => Some("has a name that is not taken"),
                (Some(_), None) => Some("is named by the record, but is not there"),
                (Some(name), _) if files.iter().any(|file| file.name == name) => Some("is named twice"),
                (Some(name), _) if !is_xml && matches!(kind_of(name), FileKind::Xml { .. }) => {
                    Some("is XML beside the article's")
                }
                (Some(_), Some(_)) => None,
            };
            match why {
                Some(why) if is_xml => return Ok(Resolved::Failed(format!("{key} {why}"))),
                Some(why) => left_out.push(format!("{key} {why}")),
                None => {
                    let name = if is_xml { format!("{name}.xml") } else { key.replacen(&folder, "", 1) };
                    let (kind, origin) = (kind_of(&name), Origin::Web(self.object(&key)?));
                    files.push(PackageFile { name, origin, kind, bytes: found.copied(), md5 });
                }
            }
        }
        let service = self.service();
        let mut package = Package { pmcid, version, versions, service, metadata, is_open: true, files, left_out };
        Ok(match cap(&mut package, work) {
            Ok(()) => Resolved::Package(Box::new(package)),
            Err(why) => Resolved::Failed(why),
        })
    }
}

/// The highest version of an article and what is said of it.
struct Record {
    pmcid: Pmcid,
    version: u32,
    versions: Vec<u32>,
    metadata: Metadata,
}

/// In the store as in the raw folder.
pub fn record_path(id: Pmcid, version: u32) -> String {
    format!("metadata/{id}.{version}.json")
}

impl Resolver for OpenData {
    fn service(&self) -> &'static str {
        "opendata"
    }

    fn host(&self) -> String {
        self.host_name().to_owned()
    }

    fn check(&self, work: &Work<'_>, sentinels: &[Pmcid]) -> anyhow::Result<()> {
        let host = self.host_name();
        let prefixes: Vec<String> = sentinels.iter().map(|id| format!("{id}.")).collect();
        let listings = self.list(work, &prefixes, true)?;
        let mut records = Vec::new();
        for (id, listing) in sentinels.iter().zip(listings) {
            let listing = listing.map_err(|why| input(format!("{host}: the listing of {id}: {why}")))?;
            let Some(version) = listing.versions(*id).last().copied() else {
                return Err(input(format!(
                    "{host} has no version of {id}, which is known to be open: the store has moved or changed, so what it does not have says nothing"
                )));
            };
            records.push(self.object(&record_path(*id, version))?);
        }
        for (id, answer) in sentinels.iter().zip(work.fetcher.get_all(&records, MAX_ANSWER_BYTES, work.progress)?) {
            match answer {
                Answered::Body(_) => {}
                Answered::Missing => {
                    return Err(input(format!(
                        "{host} answers 404 to the record of {id}, which is known to be open: the store has moved or changed, so what it does not have says nothing"
                    )));
                }
                Answered::Failed(why) => return Err(input(format!("{host}: the record of {id}: {why}"))),
            }
        }
        Ok(())
    }

    fn resolve(&self, work: &Work<'_>, ids: &[Pmcid]) -> anyhow::Result<Vec<Resolved>> {
        let records = self.records(work, ids)?;
        let is_open = |record: &Record| record.metadata.is_pmc_openaccess == Some(true);
        let folders: Vec<String> = records
            .iter()
            .filter_map(|record| record.as_ref().ok())
            .filter(|record| is_open(record))
            .map(|record| format!("{}.{}/", record.pmcid, record.version))
            .collect();
        let mut listings = self.list(work, &folders, false)?.into_iter();
        let mut resolved = Vec::with_capacity(records.len());
        for record in records {
            resolved.push(match record {
                Err(answer) => answer,
                Ok(Record { pmcid, version, versions, metadata }) if metadata.is_pmc_openaccess != Some(true) => {
                    let (service, files, left_out) = (self.service(), Vec::new(), Vec::new());
                    let is_open = false;
                    Resolved::Package(Box::new(Package {
                        pmcid,
                        version,
                        versions,
                        service,
                        metadata,
                        is_open,
                        files,
                        left_out,
                    }))
                }
                Ok(record) => match listings.next() {
                    Some(Ok(listing)) => self.package(work, record, listing)?,
                    Some(Err(why)) => Resolved::Failed(why),
                    None => Resolved::Failed("its folder was not listed".to_owned()),
                },
            });
        }
        Ok(resolved)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn listing(content: &str) -> Result<Listing, String> {
        let text = format!(
            r#"<?xml version="1.0" encoding="UTF-8"?><ListBucketResult xmlns="http://s3.amazonaws.com/doc/2006-03-01/"><Prefix>PMC12.</Prefix>{content}</ListBucketResult>"#
        );
        Listing::parse(text.as_bytes())
    }

    #[test]
    fn versions_are_numbers_of_exactly_one_article() {
        let folders = ["PMC12.9/", "PMC12.10/", "PMC123.77/", "PMC12.x/", "PMC12.2.3/", "PMC12./", "PMC12.+11/"];
        let prefixes: String =
            folders.map(|folder| format!("<CommonPrefixes><Prefix>{folder}</Prefix></CommonPrefixes>")).concat();
        let listing = listing(&prefixes).unwrap();
        assert_eq!(listing.versions(Pmcid(12)), [9, 10]);
        assert_eq!(listing.versions(Pmcid(123)), [77]);
        assert!(listing.versions(Pmcid(1)).is_empty());
    }

    #[test]
    fn listings_tell_names_sizes_and_how_they_go_on() {
        let object = "<Contents><Key>PMC12.1/a &amp; b&#x2b;.jpg</Key><LastModified>2026-02-12T00:00:00.000Z</LastModified><Size>7</Size></Contents>";
        let more = "<IsTruncated>true</IsTruncated><NextContinuationToken>x==</NextContinuationToken>";
        let found = listing(&format!("{more}{object}")).unwrap();
        assert_eq!(found.objects, [("PMC12.1/a & b+.jpg".to_owned(), 7)]);
        assert_eq!(found.next.as_deref(), Some("x=="));
        assert_eq!(listing("<IsTruncated>false</IsTruncated>").unwrap(), Listing::default());
        assert!(listing("<IsTruncated>true</IsTruncated>").is_err());
        assert!(listing("<Contents><Key>a</Key></Contents>").is_err());
        for other in
            ["", "<html><body>Hello</body></html>", "<Error><Code>SlowDown</Code></Error>", "<ListBucketResult>"]
        {
            assert!(Listing::parse(other.as_bytes()).is_err(), "{other}");
        }
    }

    #[test]
    fn addresses_name_an_object_and_its_hash() {
        let md5 = "2BA36E61FA9EB4950C9DAEF9C9F58812";
        let address = format!("s3://bucket/PMC1.1/a b?c.jpg?md5={md5}");
        assert_eq!(parse_address(&address), Ok(("PMC1.1/a b?c.jpg", Some(md5.to_ascii_lowercase()))));
        assert_eq!(parse_address("s3://bucket/PMC1.1/a.jpg"), Ok(("PMC1.1/a.jpg", None)));
        for wrong in ["https://bucket/a", "s3://bucket", "s3://b/a?md5=12", "s3://b/a?md5="] {
            assert!(parse_address(wrong).is_err(), "{wrong}");
        }
        let store = OpenData { base: Url::parse("https://store.example/sub/").unwrap() };
        assert_eq!(
            store.object("PMC1.1/a b+?#%.jpg").unwrap().as_str(),
            "https://store.example/sub/PMC1.1/a%20b%2B%3F%23%25.jpg"
        );
    }
}
