//! HTTP for the two that need it: model services (thousands of calls a second) and downloads.
//!
//! [`client`] makes a client with the settings of this project, [`read_capped`] reads a body that may be anything,
//! [`retry`] says what to try again and when, [`limits`] holds calls back. No error text made here shows a query
//! string or a password: those carry keys.

mod clock;
pub mod limits;
pub mod retry;

#[cfg(test)]
mod tests;

use anyhow::Context;
use reqwest::{Client, Response, Url};
use std::error::Error;
use std::net::{IpAddr, Ipv4Addr, Ipv6Addr};
use std::time::Duration;

/// How a [`client`] connects.
#[derive(Clone, Debug)]
pub struct ClientOptions {
    /// The longest wait for a connection, with its TLS handshake.
    pub connect_timeout: Duration,
    /// The longest wait for the next bytes of an answer; a long body may take longer as a whole.
    pub read_timeout: Duration,
    /// How many redirects are followed; with 0 a redirect is an answer as any other.
    pub redirects: usize,
    /// Ignores `HTTPS_PROXY` and its kin.
    pub no_proxy: bool,
}

impl Default for ClientOptions {
    fn default() -> Self {
        Self {
            connect_timeout: Duration::from_secs(20),
            read_timeout: Duration::from_secs(60),
            redirects: 0,
            no_proxy: false,
        }
    }
}

/// What requests say they come from.
pub const USER_AGENT: &str = concat!("casemill/", env!("CARGO_PKG_VERSION"));

/// A client; it holds a pool of connections, so make one and share it (a clone is the same one).
///
/// # Errors
/// When the certificates of the system cannot be loaded or a proxy variable is not a URL.
pub fn client(options: &ClientOptions) -> anyhow::Result<Client> {
    let redirects = match options.redirects {
        0 => reqwest::redirect::Policy::none(),
        most => reqwest::redirect::Policy::limited(most),
    };
    let mut builder = Client::builder()
        .user_agent(USER_AGENT)
        .connect_timeout(options.connect_timeout)
        .read_timeout(options.read_timeout)
        .redirect(redirects)
        // A URL with a key in its query would travel on to the next host.
        .referer(false);
    if options.no_proxy {
        builder = builder.no_proxy();
    }
    builder.build().map_err(reqwest::Error::without_url).context("cannot set up HTTP")
}

/// Why a body could not be read.
#[derive(Debug, thiserror::Error)]
pub enum BodyError {
    /// The body is, or was announced to be, larger than allowed.
    #[error("the answer is larger than the {cap} bytes allowed for it")]
    TooLarge { cap: u64 },
    /// The connection ended, or stalled too long, before the body did; worth another try.
    #[error("the answer was cut short after {got} bytes: {reason}")]
    Cut { got: u64, reason: String },
}

/// Reads a body of at most `cap` bytes. Memory grows with what arrives, not with what was announced, and an announced
/// length above `cap` is refused before anything is read.
///
/// # Errors
/// A body that is too large or was cut short.
pub async fn read_capped(mut response: Response, cap: u64) -> Result<Vec<u8>, BodyError> {
    let announced = response.content_length();
    if announced.is_some_and(|bytes| bytes > cap) {
        return Err(BodyError::TooLarge { cap });
    }
    // Both ends are far below what a `usize` holds.
    let mut body = Vec::with_capacity(announced.unwrap_or(0).min(64 << 10) as usize);
    loop {
        match response.chunk().await {
            Ok(Some(chunk)) if body.len() as u64 + chunk.len() as u64 > cap => {
                return Err(BodyError::TooLarge { cap });
            }
            Ok(Some(chunk)) => body.extend_from_slice(&chunk),
            Ok(None) => return Ok(body),
            Err(error) => return Err(BodyError::Cut { got: body.len() as u64, reason: shown_error(error) }),
        }
    }
}

/// A URL without user, password, query and fragment, for messages.
pub fn shown_url(url: &Url) -> String {
    let mut shown = url.clone();
    // Fails only for URLs that have no host, and so neither user nor password.
    let _ = shown.set_username("");
    let _ = shown.set_password(None);
    shown.set_query(None);
    shown.set_fragment(None);
    shown.into()
}

/// An error of the HTTP library with its causes and without the URL, for messages.
pub fn shown_error(error: reqwest::Error) -> String {
    let error = error.without_url();
    let mut text = error.to_string();
    let mut cause = error.source();
    while let Some(error) = cause {
        let own = error.to_string();
        // Most layers repeat the one below.
        if !text.ends_with(&own) {
            text.push_str(": ");
            text.push_str(&own);
        }
        cause = error.source();
    }
    text
}

/// Where a server stands.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Reach {
    /// This machine.
    Loopback,
    /// The local network, and all that is not for the public.
    Private,
    Public,
}

/// A name counts as the innermost of its addresses; one that cannot be looked up (behind a proxy) as public.
pub async fn reach(url: &Url) -> Reach {
    let addresses: Vec<IpAddr> = match url.host() {
        Some(url::Host::Ipv4(address)) => vec![address.into()],
        Some(url::Host::Ipv6(address)) => vec![address.into()],
        Some(url::Host::Domain(name)) if name == "localhost" || name.ends_with(".localhost") => {
            vec![Ipv4Addr::LOCALHOST.into()]
        }
        Some(url::Host::Domain(name)) => match tokio::net::lookup_host((name, 0)).await {
            Ok(addresses) => addresses.map(|address| address.ip()).collect(),
            Err(_) => Vec::new(),
        },
        None => Vec::new(),
    };
    let reaches: Vec<Reach> = addresses.into_iter().map(reach_of).collect();
    let inner = [Reach::Loopback, Reach::Private].into_iter().find(|inner| reaches.contains(inner));
    inner.unwrap_or(Reach::Public)
}

fn reach_of(address: IpAddr) -> Reach {
    match address {
        IpAddr::V4(address) => reach_of_v4(address),
        IpAddr::V6(address) => {
            if let Some(inner) = address.to_ipv4_mapped().or_else(|| translated(address)) {
                return reach_of_v4(inner);
            }
            let [first, ..] = address.segments();
            match first {
                _ if address.is_loopback() => Reach::Loopback,
                _ if address.is_unspecified() => Reach::Loopback,
                // Unique local, link-local and the former site-local addresses, multicast.
                0xfc00..=0xfdff | 0xfe80..=0xfeff | 0xff00..=0xffff => Reach::Private,
                _ => Reach::Public,
            }
        }
    }
}

/// The address inside one of NAT64 (`64:ff9b::/96`).
fn translated(address: Ipv6Addr) -> Option<Ipv4Addr> {
    let [0x64, 0xff9b, 0, 0, 0, 0, high, low] = address.segments() else { return None };
    Some(Ipv4Addr::from(u32::from(high) << 16 | u32::from(low)))
}

fn reach_of_v4(address: Ipv4Addr) -> Reach {
    match address.octets() {
        [127, ..] | [0, ..] => Reach::Loopback,
        [10, ..] | [172, 16..=31, ..] | [192, 168, ..] | [169, 254, ..] | [100, 64..=127, ..] => Reach::Private,
        // Of the registries, for tests of networks, multicast, reserved.
        [192, 0, 0, _] | [198, 18..=19, ..] | [224..=255, ..] => Reach::Private,
        _ => Reach::Public,
    }
}
