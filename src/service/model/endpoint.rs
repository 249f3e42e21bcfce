//! Where a model is: address and key from the environment, checked before the first call.

use super::governance::{check_address, is_loopback};
use super::protocol;
use crate::config::{Egress, ModelConfig, Provider};
use crate::error::usage;
use crate::service::http::{self, ClientOptions};
use anyhow::Context;
use reqwest::header::{AUTHORIZATION, CONTENT_TYPE, HeaderMap, HeaderValue};
use std::time::Duration;
use url::Url;

/// A key. It is never shown.
pub struct Secret(String);

impl Secret {
    pub fn reveal(&self) -> &str {
        &self.0
    }

    /// The text without the key.
    pub fn redact(&self, text: &str) -> String {
        text.replace(&self.0, "[key]")
    }
}

impl std::fmt::Debug for Secret {
    fn fmt(&self, formatter: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        formatter.write_str("[key]")
    }
}

pub struct Endpoint {
    pub url: Url,
    pub key: Option<Secret>,
    pub client: reqwest::Client,
    pub headers: HeaderMap,
}

impl Endpoint {
    /// Reads the environment through `variable`; a missing variable is a usage error that names it.
    pub fn open(model: &ModelConfig, variable: impl Fn(&str) -> Option<String>) -> anyhow::Result<Self> {
        let name = &model.name;
        let base = variable(&model.base_url_env).filter(|text| !text.trim().is_empty()).ok_or_else(|| {
            usage(format!(
                "model {name}: the environment variable {} is not set; it holds the base URL, for example {}",
                model.base_url_env,
                match model.provider {
                    Provider::Anthropic => "https://api.anthropic.com",
                    Provider::Openai | Provider::Rules => "http://127.0.0.1:8080/v1",
                }
            ))
        })?;
        let address = |why: String| usage(format!("model {name}: the address in {}: {why}", model.base_url_env));
        let mut base = base.trim().trim_end_matches('/');
        if model.provider == Provider::Anthropic {
            base = base.trim_end_matches("/v1");
        }
        let url = format!("{base}{}", protocol::path(model.provider));
        let url = Url::parse(&url).map_err(|error| address(error.to_string()))?;
        if !matches!(url.scheme(), "http" | "https") {
            return Err(address("it must begin with http:// or https://".to_owned()));
        }
        if !url.username().is_empty() || url.password().is_some() || url.query().is_some() {
            return Err(address(
                "it must hold no user, password or query; the key goes into a variable of its own".to_owned(),
            ));
        }
        check_address(model, &url).map_err(|error| address(format!("{error:#}")))?;
        let key = match &model.key_env {
            None => None,
            Some(name_of_key) => {
                let key = variable(name_of_key).map(|key| key.trim().to_owned()).filter(|key| !key.is_empty());
                Some(Secret(key.ok_or_else(|| {
                    usage(format!("model {name}: the environment variable {name_of_key} is not set; it holds the key"))
                })?))
            }
        };
        let mut headers = HeaderMap::from_iter([(CONTENT_TYPE, HeaderValue::from_static("application/json"))]);
        if let Some(key) = &key {
            let (header, text) = match model.provider {
                Provider::Anthropic => (reqwest::header::HeaderName::from_static("x-api-key"), key.reveal().to_owned()),
                Provider::Openai | Provider::Rules => (AUTHORIZATION, format!("Bearer {}", key.reveal())),
            };
            // The error of the library would quote the value.
            let mut value = HeaderValue::from_str(&text)
                .map_err(|_| usage(format!("model {name}: the key has characters that a header cannot hold")))?;
            value.set_sensitive(true);
            headers.insert(header, value);
        }
        if model.provider == Provider::Anthropic {
            headers.insert("anthropic-version", HeaderValue::from_static("2023-06-01"));
        }
        let own = url.host().is_some_and(|host| is_loopback(&host));
        let options = ClientOptions {
            // One clock decides: that over the whole exchange, which comes before this one.
            read_timeout: Duration::from_secs(model.timeout_seconds.saturating_add(5)),
            // A proxy is another host, and sees what is not encrypted.
            no_proxy: own || model.egress == Egress::Local || url.scheme() == "http",
            ..ClientOptions::default()
        };
        let client = http::client(&options).with_context(|| format!("model {name}"))?;
        Ok(Self { url, key, client, headers })
    }

    /// The text without the key of this endpoint.
    pub fn redact(&self, text: &str) -> String {
        self.key.as_ref().map_or_else(|| text.to_owned(), |key| key.redact(text))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::config::pipeline::parse;
    use expect_test::expect;

    #[test]
    fn addresses_and_keys_are_checked_and_never_shown() {
        let open = |extra: &str, url: Option<&str>, key: Option<&str>| {
            let text = format!(
                "name = 'p'\nsummary = 's'\ncases = 'n'\n[nodes.n]\n[models.m]\nprovider = 'openai'\nmodel = 'x'\nbase_url_env = 'URL'\nkey_env = 'KEY'\n{extra}\n"
            );
            let config = parse("p.toml", &text).unwrap();
            let values = [("URL", url.map(str::to_owned)), ("KEY", key.map(str::to_owned))];
            let result = Endpoint::open(&config.models["m"], |name| {
                values.iter().find(|(known, _)| *known == name).and_then(|(_, value)| value.clone())
            });
            match result {
                Ok(endpoint) => format!("{} {:?} {:?}", endpoint.url, endpoint.key, endpoint.headers),
                Err(error) => format!("{error:#}"),
            }
        };
        let local = "egress = 'local'";
        let public = "egress = 'public'";
        let key = Some("sk-secret");
        let results = [
            open(local, None, key),
            open(local, Some("http://127.0.0.1:1/v1/"), None),
            open(local, Some("http://127.0.0.1:1/v1/"), key),
            open(local, Some("https://api.example.com/v1"), key),
            open("egress = 'local'\nlocal_hosts = ['gpu.lan']", Some("http://gpu.lan/v1"), key),
            open(public, Some("http://api.example.com/v1"), key),
            open(public, Some("https://sk-secret@api.example.com/v1"), key),
            open(public, Some("ftp://api.example.com/v1"), key),
            open(public, Some("https://api.example.com/v1"), Some("sk-\nsecret")),
        ];
        expect![[r#"
            model m: the environment variable URL is not set; it holds the base URL, for example http://127.0.0.1:8080/v1
            model m: the environment variable KEY is not set; it holds the key
            http://127.0.0.1:1/v1/chat/completions Some([key]) {"content-type": "application/json", "authorization": Sensitive}
            model m: the address in URL: its egress is local, but api.example.com is not this machine; name the host under `local_hosts` if it is yours, or give the egress that it has
            http://gpu.lan/v1/chat/completions Some([key]) {"content-type": "application/json", "authorization": Sensitive}
            model m: the address in URL: it must be https: a request over plain http can be read on its way
            model m: the address in URL: it must hold no user, password or query; the key goes into a variable of its own
            model m: the address in URL: it must begin with http:// or https://
            model m: the key has characters that a header cannot hold"#]]
        .assert_eq(&results.join("\n"));
    }
}
