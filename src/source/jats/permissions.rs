//! The licence of an article. It is read from `permissions` alone, in three ways that are kept apart: the address, the
//! words, and the declared type. Where they differ, all that any of them demands holds.

use super::tags::Tag;
use super::text::{plain, plain_all};
use super::tree::Element;
use crate::record::article::{License, LicenseFamily, Permissions};

/// Reads a `permissions` block.
pub fn read(element: Element<'_, '_>, permissions: &mut Permissions) {
    let mut words = Vec::new();
    for child in element.elements() {
        match child.tag() {
            Tag::CopyrightStatement => permissions.copyright_statements.push(plain_all(child)),
            Tag::CopyrightYear => permissions.copyright_year = Some(plain(child)),
            Tag::CopyrightHolder => permissions.copyright_holder = Some(plain(child)),
            Tag::License => {
                permissions.license_type = permissions.license_type.take().or_else(|| child.attribute("license-type"));
                permissions.links.extend(child.attribute("href"));
                for below in child.descendants() {
                    match below.tag() {
                        Tag::LicenseRef => permissions.links.push(plain(below)),
                        Tag::ExtLink | Tag::Uri => permissions.links.extend(below.attribute("href")),
                        _ => {}
                    }
                }
                words.push(plain_all(child));
            }
            // Outside of `license` as NISO ALI allows.
            Tag::LicenseRef => permissions.links.push(plain(child)),
            _ => {}
        }
    }
    if !words.is_empty() {
        permissions.text = Some(words.join(" "));
    }
    conclude(permissions);
}

/// Names the licence by what is known of links, words and type.
pub fn conclude(permissions: &mut Permissions) {
    let links: Vec<License> = permissions.links.iter().map(|link| by_link(link)).collect();
    // A waiver beside a licence speaks of the data of the article.
    let has_license = links.iter().any(|license| license.family == LicenseFamily::CcBy);
    permissions.by_link = links
        .into_iter()
        .filter(|license| !(has_license && license.family == LicenseFamily::Cc0))
        .fold(License::default(), |all, license| all.and(&license));
    let text = permissions.text.clone().unwrap_or_else(|| permissions.copyright_statements.join(" "));
    permissions.by_text = by_text(&text);
    permissions.by_metadata = permissions.license_type.as_deref().map(by_type).unwrap_or_default();
    let readings = [&permissions.by_link, &permissions.by_text, &permissions.by_metadata];
    permissions.license = readings.iter().fold(License::default(), |all, license| all.and(license));
    let known: Vec<&&License> = readings.iter().filter(|license| license.family != LicenseFamily::Unknown).collect();
    permissions.is_disagreement = known.windows(2).any(|pair| matches!(pair, [left, right] if !left.agrees(right)));
}

impl License {
    /// All that both demand. What is unknown demands nothing here; when both are unknown, so is the result.
    fn and(&self, other: &Self) -> Self {
        Self {
            family: self.family.max(other.family),
            non_commercial: self.non_commercial || other.non_commercial,
            no_derivatives: self.no_derivatives || other.no_derivatives,
            share_alike: self.share_alike || other.share_alike,
            version: self.version.clone().or_else(|| other.version.clone()),
        }
    }

    /// Do two known licences demand the same? A version that only one of them tells is no difference.
    fn agrees(&self, other: &Self) -> bool {
        self.family == other.family
            && self.non_commercial == other.non_commercial
            && self.no_derivatives == other.no_derivatives
            && self.share_alike == other.share_alike
            && (self.version == other.version || self.version.is_none() || other.version.is_none())
    }
}

/// The licence that an address of Creative Commons names.
fn by_link(link: &str) -> License {
    let link = link.trim().to_ascii_lowercase();
    if !link.contains("creativecommons.org") {
        return License::default();
    }
    if link.contains("/publicdomain/mark") {
        return License { family: LicenseFamily::PublicDomain, version: version(&link), ..License::default() };
    }
    if link.contains("/publicdomain/zero") {
        return License { family: LicenseFamily::Cc0, version: version(&link), ..License::default() };
    }
    let Some((_, rest)) = link.split_once("/licenses/").or_else(|| link.split_once("/licences/")) else {
        return License::default();
    };
    let code = rest.split('/').next().unwrap_or_default().replace("%20", " ");
    License { version: version(rest), ..by_code(&code) }
}

/// The licence by its short name, as in `CC BY-NC`, `by-nc-nd` or `ccbysa`.
fn by_code(code: &str) -> License {
    let letters: String = code.chars().filter(char::is_ascii_alphanumeric).collect::<String>().to_ascii_lowercase();
    if letters == "publicdomain" {
        return License { family: LicenseFamily::PublicDomain, ..License::default() };
    }
    let letters = letters.strip_prefix("cc").unwrap_or(&letters);
    if matches!(letters, "0" | "zero") {
        return License { family: LicenseFamily::Cc0, ..License::default() };
    }
    let Some(mut rest) = letters.strip_prefix("by") else { return License::default() };
    let mut license = License { family: LicenseFamily::CcBy, ..License::default() };
    loop {
        if let Some(after) = rest.strip_prefix("nc") {
            license.non_commercial = true;
            rest = after;
        } else if let Some(after) = rest.strip_prefix("nd") {
            license.no_derivatives = true;
            rest = after;
        } else if let Some(after) = rest.strip_prefix("sa") {
            license.share_alike = true;
            rest = after;
        } else if rest.is_empty() || rest.bytes().all(|byte| byte.is_ascii_digit()) {
            return license;
        } else {
            // Not the name of a licence.
            return License::default();
        }
    }
}

fn by_type(license_type: &str) -> License {
    License { version: version(license_type), ..by_code(license_type) }
}

/// The licence that words name.
fn by_text(text: &str) -> License {
    let folded = text.to_lowercase().replace(['-', '–', '\u{2010}', '\u{2011}', '\n', '\u{a0}'], " ");
    let words = folded.replace("commercial and non commercial", "").replace("commercial or non commercial", "");
    let has = |phrase: &str| words.contains(phrase);
    let flags = License {
        family: LicenseFamily::CcBy,
        non_commercial: has("non commercial") || has("noncommercial") || has("cc by nc"),
        no_derivatives: has("no deriv") || has("noderiv") || has("non deriv") || has("cc by nd") || has("cc by nc nd"),
        share_alike: has("share alike") || has("sharealike") || has("cc by sa") || has("cc by nc sa"),
        version: version(&words),
    };
    if (has("creative commons") && has("attribution")) || has("cc by") || has("ccby") {
        return flags;
    }
    let of = |family: LicenseFamily| License { family, ..License::default() };
    if has("cc0") || has("creative commons zero") || has("public domain dedication") {
        return License { version: version(&words), ..of(LicenseFamily::Cc0) };
    }
    if has("public domain") {
        return of(LicenseFamily::PublicDomain);
    }
    if has("all rights reserved") {
        return of(LicenseFamily::Reserved);
    }
    License::default()
}

/// The first version number of Creative Commons.
fn version(text: &str) -> Option<String> {
    let mut parts = text.split(|character: char| !(character.is_ascii_digit() || character == '.'));
    let is_version = |part: &&str| matches!(*part, "1.0" | "2.0" | "2.1" | "2.5" | "3.0" | "4.0");
    parts.by_ref().map(|part| part.trim_matches('.')).find(is_version).map(str::to_owned)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn show(license: &License) -> String {
        let mut text = format!("{:?}", license.family);
        for (flag, name) in
            [(license.non_commercial, " nc"), (license.no_derivatives, " nd"), (license.share_alike, " sa")]
        {
            if flag {
                text += name;
            }
        }
        text + &license.version.as_deref().map(|version| format!(" {version}")).unwrap_or_default()
    }

    #[test]
    fn names_of_licences() {
        for (link, expected) in [
            ("http://creativecommons.org/licenses/by/4.0/", "CcBy 4.0"),
            ("http://creativecommons.org/licenses/CC BY-NC/4.0", "CcBy nc 4.0"),
            ("https://creativecommons.org/licenses/by-nc-nd/4.0/legalcode", "CcBy nc nd 4.0"),
            ("https://creativecommons.org/publicdomain/zero/1.0/", "Cc0 1.0"),
            ("https://www.publisher.example/open-access/license/1.0/", "Unknown"),
            ("https://creativecommons.org/licenses/byways", "Unknown"),
        ] {
            assert_eq!(show(&by_link(link)), expected, "{link}");
        }
        for (text, expected) in [
            ("the Creative Commons Attribution License, which permits unrestricted use", "CcBy"),
            ("Creative Commons Attribution-NonCommercial-NoDerivs 4.0 International", "CcBy nc nd 4.0"),
            ("Creative Commons Attribution 4.0, which permits commercial and non-commercial use", "CcBy 4.0"),
            ("under CC BY-NC-SA 3.0.", "CcBy nc sa 3.0"),
            ("This work is in the public domain.", "PublicDomain"),
            ("© 2019 The Society. All rights reserved.", "Reserved"),
            ("verbatim copying is permitted in all media", "Unknown"),
        ] {
            assert_eq!(show(&by_text(text)), expected, "{text}");
        }
        assert_eq!(show(&by_type("CC BY-ND 3.0")), "CcBy nd 3.0");
        assert_eq!(show(&by_type("open-access")), "Unknown");
    }
}
