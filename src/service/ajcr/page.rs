//! Whether what a server sent is the page of an article, and where its full text is. What the page says is read by
//! [`crate::source::ajcr`].

use super::ask::Refusal;
use super::plan::Missing;
use crate::service::fetch::kinds::{self, FileKind, Misfit, Sample};
use crate::source::ajcr::list::doi_of;
use regex::Regex;
use reqwest::Url;
use scraper::{Html, Selector};

/// A page that is one of the article asked for.
pub(super) struct Page {
    document: Html,
}

impl Page {
    /// Checks that bytes are a page, of this article, and none that stands in its way. `bot_pages` are what
    /// only such pages say.
    ///
    /// # Errors
    /// What they are instead.
    pub(super) fn read(ajcr_id: &str, bytes: &[u8], bot_pages: &[Regex]) -> Result<Self, Refusal> {
        if bytes.trim_ascii().is_empty() {
            return Err(Refusal::new(Missing::Empty, "the page is empty"));
        }
        match kinds::check(&FileKind::Html, &Sample::of(bytes)) {
            Ok(()) => {}
            Err(Misfit::Other(found)) if bytes.starts_with(b"%PDF-") => {
                return Err(Refusal::new(Missing::IsPdf, found));
            }
            Err(Misfit::Other(found)) if found.starts_with("a bot-check page") => {
                return Err(Refusal::new(Missing::BotPage, found));
            }
            Err(Misfit::Other(found)) => return Err(Refusal::new(Missing::NotHtml, found)),
            Err(Misfit::Cut) => return Err(Refusal::new(Missing::NotHtml, "its end is missing")),
        }
        let text = String::from_utf8_lossy(bytes);
        let document = Html::parse_document(&text);
        let says = |words: &str| bot_pages.iter().find(|pattern| pattern.is_match(words));
        let title: String = select(&document, "title").next().map(|title| title.text().collect()).unwrap_or_default();
        if says(&title).is_some() {
            return Err(Refusal::new(Missing::BotPage, format!("a page titled \"{}\"", title.trim())));
        }
        let doi = doi_of(ajcr_id).unwrap_or_default();
        if !holds(&text, &doi) {
            // An article can speak of checks for robots, and its page can have one for those who comment.
            let words = document.root_element().text().collect::<String>();
            return Err(match says(&words) {
                Some(pattern) => Refusal::new(Missing::BotPage, format!("a page with words like `{pattern}`")),
                None => Refusal::new(Missing::OtherPage, format!("a page without the DOI {doi}")),
            });
        }
        // Other pages can name the article; its own says so first of all.
        let own = select(&document, "meta[name='citation_doi' i]").find_map(|meta| meta.attr("content"));
        match own {
            Some(own) if !holds(own, &doi) => {
                Err(Refusal::new(Missing::OtherPage, format!("the page of {}", own.trim())))
            }
            _ => Ok(Self { document }),
        }
    }

    /// The address of the full text, if the page links to one on the path that `pattern` describes (`{number}` stands for the
    /// article's number).
    pub(super) fn full_text(&self, ajcr_id: &str, pattern: &str, at: &Url) -> Option<Url> {
        let path = pattern.replace("{number}", ajcr_id.strip_prefix("AJCR")?);
        let is_full_text = |url: &Url| {
            url.path().strip_prefix(path.as_str()).is_some_and(|rest| {
                // A longer number is another article; a title may follow.
                rest.is_empty() || rest.starts_with('/')
            })
        };
        if path.is_empty() || is_full_text(at) {
            return None;
        }
        let mut links = select(&self.document, "a[href]").filter_map(|link| at.join(link.attr("href")?.trim()).ok());
        let mut url = links.find(is_full_text)?;
        url.set_fragment(None);
        Some(url)
    }
}

/// The elements of a selector that is known to be one.
fn select<'a>(document: &'a Html, selector: &'static str) -> impl Iterator<Item = scraper::ElementRef<'a>> {
    Selector::parse(selector).into_iter().flat_map(|selector| document.select(&selector).collect::<Vec<_>>())
}

/// Whether a text holds a DOI in any case, and not only one that begins with it.
fn holds(text: &str, doi: &str) -> bool {
    let (text, doi) = (text.to_ascii_lowercase(), doi.to_ascii_lowercase());
    let mut rest = text.as_str();
    while let Some((_, after)) = rest.split_once(&doi) {
        if !after.starts_with(|c: char| c.is_ascii_digit()) {
            return true;
        }
        rest = after;
    }
    false
}

#[cfg(test)]
mod tests {
    use super::*;
    use expect_test::expect;

    const HEAD: &str = "<!DOCTYPE html><html><head><meta name=\"citation_doi\" content=\"10.12659/AJCR.12\"></head>";

    #[test]
    fn what_is_no_article_is_named() {
        let long = format!("<html>{}10.12659/ajcr.12</html>", " ".repeat(100_000));
        let pages: [&[u8]; 12] = [
            HEAD.as_bytes(),
            long.as_bytes(),
            b" \n",
            b"%PDF-1.7 10.12659/AJCR.12 %%EOF",
            b"<html><title>Just a moment...</title>10.12659/AJCR.12</html>",
            b"<html><title>Are you human?</title>10.12659/AJCR.12</html>",
            b"<html><body>Please confirm you are <b>hu</b>man</html>",
            b"<html><body>Are you human? 10.12659/AJCR.12</html>",
            b"{\"error\": \"10.12659/AJCR.12\"}",
            b"<html>10.12659/AJCR.123</html>",
            b"<html><meta name=\"Citation_DOI\" content=\"10.12659/AJCR.7\">see 10.12659/AJCR.12</html>",
            b"\x1f\x8b\x08 10.12659/AJCR.12",
        ];
        let bot_pages = [Regex::new("(?i)are you human|you are human").unwrap()];
        let text = pages.map(|page| match Page::read("AJCR12", page, &bot_pages) {
            Ok(_) => "an article\n".to_owned(),
            Err(refusal) => format!("{}: {}\n", refusal.reason, refusal.detail),
        });
        expect![[r#"
            an article
            an article
            empty: the page is empty
            is_pdf: a PDF
            bot_page: a bot-check page titled "Just a moment..."
            bot_page: a page titled "Are you human?"
            bot_page: a page with words like `(?i)are you human|you are human`
            an article
            not_html: an error message in JSON: {"error": "10.12659/AJCR.12"}
            other_page: a page without the DOI 10.12659/AJCR.12
            other_page: the page of 10.12659/AJCR.7
            not_html: a gzip file
        "#]]
        .assert_eq(&text.concat());
    }

    #[test]
    fn the_full_text_is_that_of_the_article() {
        let pattern = "/abstract/full/idArt/{number}";
        let link = |links: &str, at: &str| {
            let page = Page::read("AJCR12", format!("{HEAD}<body>{links}").as_bytes(), &[]).unwrap();
            page.full_text("AJCR12", pattern, &Url::parse(at).unwrap()).map(String::from)
        };
        let at = "https://www.amjcaserep.com/abstract/index/idArt/12";
        let links = "<a href='/abstract/full/idArt/123'>x</a><a href=' ../../full/idArt/12/a-title?x=1#s1'>Full</a>";
        let full = "https://www.amjcaserep.com/abstract/full/idArt/12/a-title?x=1";
        assert_eq!(link(links, at).as_deref(), Some(full));
        assert_eq!(link(links, full), None);
        assert_eq!(link("<a href='/abstract/full/idArt/1'>x</a><a href='http://['>y</a>", at), None);
    }
}
