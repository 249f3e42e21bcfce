//! Asking servers: tries, waits, redirects, and what went wrong.

use super::*;

/// How one try ended without a file.
pub(super) enum Trouble {
    /// Another try may do better.
    Again { why: String, asked: Option<Duration> },
    /// No further try would.
    Never(String),
    /// The server says that there is no such thing.
    Missing(String),
    /// The server sent something else.
    Blocked(String),
    /// This machine is at fault; nothing else can be fetched either.
    Local(anyhow::Error),
}

impl Trouble {
    pub(super) fn again(why: impl Into<String>) -> Self {
        Self::Again { why: why.into(), asked: None }
    }
}

impl From<anyhow::Error> for Trouble {
    fn from(error: anyhow::Error) -> Self {
        Self::Local(error)
    }
}

/// The client and what is known of each host.
pub(super) struct Session<'a> {
    pub(super) client: Client,
    pub(super) options: &'a FetchOptions<'a>,
    pub(super) hosts: RefCell<BTreeMap<String, Rc<Host>>>,
}

pub(super) struct Host {
    pub(super) limiter: Limiter,
    pub(super) breaker: CircuitBreaker,
}

/// An answer with its body still to come; the place at the host is held until then.
pub(super) struct Answer {
    pub(super) response: Response,
    pub(super) host: Rc<Host>,
    pub(super) _permit: Permit,
}

impl<'a> Session<'a> {
    pub(super) fn new(options: &'a FetchOptions<'a>) -> anyhow::Result<Self> {
        // Redirects are followed here, where each one is checked.
        let client = http::client(&ClientOptions { redirects: 0, ..options.client.clone() })?;
        Ok(Self { client, options, hosts: RefCell::default() })
    }

    pub(super) fn host(&self, url: &Url) -> Rc<Host> {
        let name = url.host_str().unwrap_or_default();
        let mut hosts = self.hosts.borrow_mut();
        let host = hosts.entry(name.to_owned()).or_insert_with(|| {
            let named = self.options.host_requests_per_minute.get(name).copied();
            Rc::new(Host {
                limiter: Limiter::new(LimitSettings {
                    concurrency: self.options.concurrency,
                    requests_per_minute: Some(named.unwrap_or(self.options.requests_per_minute)),
                    tokens_per_minute: None,
                }),
                breaker: CircuitBreaker::new(self.options.give_up_after),
            })
        });
        Rc::clone(host)
    }

    pub(super) fn check_breaker(&self, host: &Host, url: &Url) -> Result<(), Trouble> {
        if !host.breaker.is_open() {
            return Ok(());
        }
        let (name, most) = (url.host_str().unwrap_or_default(), self.options.give_up_after);
        Err(Trouble::Never(format!("{name} failed {most} times in a row and is not asked again")))
    }

    /// Tries until it succeeds, is in vain, or failed `attempts` times in a row without getting [`GAIN`] further in
    /// `position`. `waiting` is told of each failure.
    pub(super) async fn persist<T>(
        &self,
        waiting: impl Fn(&str, Duration),
        mut attempt: impl AsyncFnMut() -> Result<T, Trouble>,
        position: impl Fn() -> u64,
    ) -> Result<T, Trouble> {
        let (mut failures, mut furthest) = (0, position());
        loop {
            let (why, asked) = match attempt().await {
                Err(Trouble::Again { why, asked }) => (why, asked),
                result => return result,
            };
            let at = position();
            failures += 1;
            if at >= furthest + GAIN {
                (failures, furthest) = (1, at);
            }
            if failures >= self.options.attempts.max(1) {
                return Err(Trouble::Never(format!("{why} (tried {failures} times)")));
            }
            let wait = self.options.backoff.wait(failures - 1, asked, fastrand::f64());
            waiting(&why, wait);
            tokio::time::sleep(wait).await;
        }
    }

    /// Sends one request and follows its redirects. Gives answers with 2xx, 304 and 416.
    pub(super) async fn send(&self, origin: &Url, headers: &HeaderMap) -> Result<Answer, Trouble> {
        let mut url = origin.clone();
        for _ in 0..=REDIRECTS {
            let host = self.host(&url);
            // Before the wait for a place, and for those that it opened on meanwhile.
            self.check_breaker(&host, &url)?;
            let permit = host.limiter.acquire(0).await;
            self.check_breaker(&host, &url)?;
            let response = match self.client.get(url.clone()).headers(headers.clone()).send().await {
                Ok(response) => response,
                Err(error) => {
                    host.breaker.record(false);
                    let again = retry::is_retryable(&error);
                    let why = shown_error(error);
                    return Err(if again { Trouble::again(why) } else { Trouble::Never(why) });
                }
            };
            let status = response.status();
            if let Some(next) = redirect(&response) {
                host.breaker.record(true);
                let next = next.map_err(Trouble::Never)?;
                check_redirect(origin, &url, &next).await.map_err(Trouble::Never)?;
                url = next;
                continue;
            }
            match retry::class_of_status(status.as_u16()) {
                StatusClass::Retry => {
                    host.breaker.record(false);
                    let asked = retry::retry_after(response.headers(), SystemTime::now());
                    if let Some(asked) = asked {
                        // For every file of the host.
                        host.limiter.pause(asked.min(self.options.backoff.longest_asked));
                    }
                    return Err(Trouble::Again { why: format!("the server answered {status}"), asked });
                }
                StatusClass::Fatal
                    if !matches!(status, StatusCode::NOT_MODIFIED | StatusCode::RANGE_NOT_SATISFIABLE) =>
                {
                    host.breaker.record(true);
                    let why = format!("the server answered {status}");
                    let missing = matches!(status, StatusCode::NOT_FOUND | StatusCode::GONE);
                    return Err(if missing { Trouble::Missing(why) } else { Trouble::Never(why) });
                }
                StatusClass::Success | StatusClass::Fatal => return Ok(Answer { response, host, _permit: permit }),
            }
        }
        Err(Trouble::Never(format!("redirected more than {REDIRECTS} times")))
    }

    /// One small answer, tried as often as files are.
    pub(super) async fn body(
        &self,
        url: &Url,
        max_bytes: u64,
        waiting: impl Fn(&str, Duration),
    ) -> Result<Vec<u8>, Trouble> {
        let attempt = async || {
            let Answer { response, host, _permit } = self.send(url, &HeaderMap::new()).await?;
            if response.status() != StatusCode::OK {
                return Err(Trouble::Never(format!("the server answered {}", response.status())));
            }
            let body = http::read_capped(response, max_bytes).await;
            host.breaker.record(!matches!(body, Err(BodyError::Cut { .. })));
            body.map_err(|error| match error {
                BodyError::TooLarge { .. } => Trouble::Never(error.to_string()),
                BodyError::Cut { .. } => Trouble::again(error.to_string()),
            })
        };
        self.persist(waiting, attempt, || 0).await
    }
}

/// Where an answer sends us; `None` when it is not a redirect.
pub(super) fn redirect(response: &Response) -> Option<Result<Url, String>> {
    if !matches!(response.status().as_u16(), 301 | 302 | 303 | 307 | 308) {
        return None;
    }
    let location = response.headers().get(header::LOCATION)?;
    let next = location.to_str().ok().and_then(|location| response.url().join(location).ok());
    Some(next.ok_or_else(|| "redirected to what is not an address".to_owned()))
}

/// A redirect may not lead to a less safe scheme, nor from a public server to this machine or its network (and between
/// those two neither): a plan names what it wants there.
pub(super) async fn check_redirect(origin: &Url, from: &Url, to: &Url) -> Result<(), String> {
    let shown = shown_url(to);
    check_url(to).map_err(|error| format!("redirected: {error}"))?;
    if from.scheme() != to.scheme() && to.scheme() != "https" {
        return Err(format!("redirected from https to {shown}"));
    }
    let reach = http::reach(to).await;
    if reach != Reach::Public && reach != http::reach(origin).await {
        return Err(format!("redirected to {shown}, which is not a public address"));
    }
    Ok(())
}
