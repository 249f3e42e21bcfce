use super::clock::jumping::{self, now, since, sleep, timeout_at};
use super::limits::{CircuitBreaker, LimitSettings, Limiter};
use super::retry::{Backoff, StatusClass, class_of_status, is_retryable, retry_after};
use super::{BodyError, ClientOptions, client, reach, read_capped, shown_error, shown_url};
use expect_test::expect;
use reqwest::Url;
use reqwest::header::{HeaderMap, HeaderName, HeaderValue};
use std::future::Future;
use std::sync::{Arc, Mutex};
use std::time::{Duration, SystemTime};
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::TcpListener;
use tokio::time::Instant;

fn seconds(n: u64) -> Duration {
    Duration::from_secs(n)
}

fn with_real_time<T>(work: impl Future<Output = T>) -> T {
    tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap().block_on(work)
}

#[test]
fn waits_double_up_to_the_longest() {
    let backoff = Backoff { first: seconds(1), longest: seconds(10), longest_asked: seconds(600) };
    let span = |attempt, asked: Option<u64>| {
        [0.0, 1.0].map(|random| backoff.wait(attempt, asked.map(seconds), random).as_secs_f64())
    };
    assert_eq!(span(0, None), [0.5, 1.0]);
    assert_eq!(span(3, None), [4.0, 8.0]);
    assert_eq!(span(u32::MAX, None), [5.0, 10.0]);
    // Never less than what was asked, and spread above it.
    assert_eq!(span(0, Some(2)), [2.0, 3.0]);
    assert_eq!(span(0, Some(100)), [100.0, 110.0]);
    // A server that says "at once" again and again is not believed.
    assert_eq!(span(5, Some(0)), [5.0, 10.0]);
    assert_eq!(span(0, Some(100_000)), [600.0, 660.0]);
    for random in [f64::NAN, f64::INFINITY, -3.0, 7.0] {
        assert!((0.5..=1.0).contains(&backoff.wait(0, None, random).as_secs_f64()));
    }
    let endless = Backoff { first: Duration::MAX, longest: Duration::MAX, longest_asked: Duration::from_secs(1) };
    assert!(endless.wait(9, None, 0.5) > seconds(1));
}

#[test]
fn retry_after_is_read_in_all_its_forms() {
    let now = httpdate::parse_http_date("Sun, 06 Nov 1994 08:49:37 GMT").unwrap();
    let mut text = String::new();
    for (name, value) in [
        ("retry-after", "120"),
        ("retry-after", " 1.5 "),
        ("retry-after", "0"),
        ("retry-after", "Sun, 06 Nov 1994 08:50:37 GMT"),
        ("retry-after", "Sunday, 06-Nov-94 08:50:07 GMT"),
        ("retry-after", "Sun Nov  6 08:49:47 1994"),
        ("retry-after-ms", "250"),
        ("retry-after", "Sun, 06 Nov 1994 08:49:36 GMT"),
        ("retry-after", "Fri, 06 Nov 2094 08:49:37 GMT"),
        ("retry-after", "-5"),
        ("retry-after", "1e3"),
        ("retry-after", "NaN"),
        ("retry-after", "inf"),
        ("retry-after", "1.2.3"),
        ("retry-after", "1700000000"),
        ("retry-after", "99999999999999999999999999"),
        ("retry-after", "soon"),
        ("retry-after", ""),
        ("retry-after", "10\u{e9}"),
    ] {
        let mut headers = HeaderMap::new();
        headers.insert(HeaderName::from_static(name), HeaderValue::from_bytes(value.as_bytes()).unwrap());
        text += &format!("{value}: {:?}\n", retry_after(&headers, now));
    }
    expect![[r#"
        120: Some(120s)
         1.5 : Some(1.5s)
        0: Some(0ns)
        Sun, 06 Nov 1994 08:50:37 GMT: Some(60s)
        Sunday, 06-Nov-94 08:50:07 GMT: Some(30s)
        Sun Nov  6 08:49:47 1994: Some(10s)
        250: Some(250ms)
        Sun, 06 Nov 1994 08:49:36 GMT: None
        Fri, 06 Nov 2094 08:49:37 GMT: None
        -5: None
        1e3: None
        NaN: None
        inf: None
        1.2.3: None
        1700000000: None
        99999999999999999999999999: None
        soon: None
        : None
        10é: None
    "#]]
    .assert_eq(&text);
    assert_eq!(retry_after(&HeaderMap::new(), SystemTime::now()), None);
    // The finer header goes first, unless it is garbled.
    let mut both = HeaderMap::new();
    both.insert("retry-after", HeaderValue::from_static("3"));
    both.insert("retry-after-ms", HeaderValue::from_static("x"));
    assert_eq!(retry_after(&both, now), Some(seconds(3)));
    both.insert("retry-after-ms", HeaderValue::from_static("2500"));
    assert_eq!(retry_after(&both, now), Some(Duration::from_millis(2500)));
}

#[test]
fn statuses_are_classed() {
    let of = |class| (100..=599).filter(|status| class_of_status(*status) == class).collect::<Vec<u16>>();
    assert_eq!(of(StatusClass::Success), (200..=299).collect::<Vec<_>>());
    let retry = [408, 409, 425, 429].into_iter().chain(500..=599).collect::<Vec<_>>();
    assert_eq!(of(StatusClass::Retry), retry);
}

/// The most that was let through in any 60 seconds (the end not included).
fn most_in_a_minute(admitted: &[(Instant, u64)]) -> u64 {
    let in_window = |start: Instant| {
        admitted.iter().filter(|(at, _)| *at >= start && *at < start + seconds(60)).map(|(_, n)| n).sum()
    };
    admitted.iter().map(|(at, _)| in_window(*at)).max().unwrap_or(0)
}

/// Lets `sizes` through one after another and tells when.
async fn admissions(limiter: &Limiter, sizes: impl IntoIterator<Item = u64>) -> Vec<(Instant, u64)> {
    let mut admitted = Vec::new();
    for tokens in sizes {
        drop(limiter.acquire(tokens).await);
        admitted.push((now(), tokens));
    }
    admitted
}

#[test]
fn requests_keep_the_rate_in_every_minute() {
    for rate in [1, 60, 100, 6_000, 10_000] {
        jumping::run(async {
            let limits = LimitSettings { concurrency: 8, requests_per_minute: Some(rate), tokens_per_minute: None };
            let limiter = Limiter::new(limits);
            sleep(seconds(300)).await;
            let start = now();
            let count = rate as usize * 5 / 2 + 1;
            let admitted = admissions(&limiter, std::iter::repeat_n(1, count)).await;
            let most = most_in_a_minute(&admitted[..count.min(2_000)]);
            assert!(most <= u64::from(rate), "{most} of {rate}");
            for pair in admitted.windows(rate as usize + 1) {
                assert!(pair[rate as usize].0 - pair[0].0 >= seconds(60), "{rate}");
            }
            // Evenly, and not much slower than allowed.
            let second = admitted.iter().filter(|(at, _)| *at < start + seconds(1)).count();
            assert!(second <= rate as usize / 50 + 1, "{second} of {rate} in the first second");
            let allowed = (count - 1) as f64 * 60.0 / f64::from(rate);
            let took = since(start).as_secs_f64();
            assert!((took - allowed).abs() < 3.0, "{took} s instead of {allowed} s");
        });
    }
}

#[test]
fn tokens_keep_the_rate_in_every_minute() {
    jumping::run(async {
        let limits = LimitSettings { concurrency: 8, requests_per_minute: None, tokens_per_minute: Some(1_000) };
        let limiter = Limiter::new(limits);
        let mut random = fastrand::Rng::with_seed(7);
        let sizes: Vec<u64> = (0..500).map(|_| random.u64(0..700)).collect();
        let admitted = admissions(&limiter, sizes).await;
        let most = most_in_a_minute(&admitted);
        assert!(most <= 1_000, "{most}");
        let took = (admitted[499].0 - admitted[0].0).as_secs_f64() / 60.0;
        let needed = admitted.iter().map(|(_, tokens)| tokens).sum::<u64>() as f64 / 1_000.0;
        assert!(took < needed * 1.6, "{took} minutes for {needed}");
    });
}

#[test]
fn a_request_larger_than_a_minute_waits_until_none_are_in_use() {
    jumping::run(async {
        let limits = LimitSettings { concurrency: 8, requests_per_minute: None, tokens_per_minute: Some(100) };
        let limiter = Limiter::new(limits);
        let start = now();
        let admitted = admissions(&limiter, [10, 250, 1, u64::MAX]).await;
        let at: Vec<u64> = admitted.iter().map(|(at, _)| (*at - start).as_secs()).collect();
        // 250 tokens are worth three minutes.
        assert_eq!(at, [0, 60, 240, 300]);
    });
}

#[test]
fn settling_gives_back_and_takes() {
    jumping::run(async {
        let limits = LimitSettings { concurrency: 8, requests_per_minute: None, tokens_per_minute: Some(100) };
        let limiter = Limiter::new(limits);
        let start = now();
        let mut first = limiter.acquire(90).await;
        let waiting = tokio::spawn({
            let limiter = limiter.clone();
            async move {
                drop(limiter.acquire(50).await);
                now()
            }
        });
        sleep(seconds(5)).await;
        first.settle(20);
        // The waiting request goes on at once, not when the minute is over.
        assert_eq!(waiting.await.unwrap() - start, seconds(5));
        first.settle(40);
        drop(limiter.acquire(11).await);
        assert_eq!(since(start), seconds(60));

        // Longer than a minute: less is nothing to give back, more counts from now.
        let mut long = limiter.acquire(0).await;
        sleep(seconds(100)).await;
        long.settle(80);
        let begun = now();
        drop(limiter.acquire(30).await);
        assert_eq!(since(begun), seconds(60));
        sleep(seconds(100)).await;
        long.settle(0);
        let begun = now();
        drop(limiter.acquire(100).await);
        assert_eq!(since(begun), seconds(0));
    });
}

#[test]
fn nobody_passes_during_a_pause() {
    jumping::run(async {
        let limits =
            LimitSettings { concurrency: 4, requests_per_minute: Some(60_000), tokens_per_minute: Some(1_000) };
        for limits in [limits, LimitSettings { requests_per_minute: None, tokens_per_minute: None, ..limits }] {
            let limiter = Limiter::new(limits);
            let start = now();
            limiter.pause(seconds(10));
            limiter.pause(seconds(3));
            let waiting: Vec<_> = (0..20)
                .map(|_| {
                    let limiter = limiter.clone();
                    tokio::spawn(async move {
                        drop(limiter.acquire(1).await);
                        now()
                    })
                })
                .collect();
            sleep(seconds(5)).await;
            // While they wait already.
            limiter.pause(seconds(20));
            for task in waiting {
                assert!(task.await.unwrap() - start >= seconds(25));
            }
            assert!(since(start) < seconds(26));
        }
    });
}

#[test]
fn places_in_flight_go_out_in_order() {
    jumping::run(async {
        let limits = LimitSettings { concurrency: 3, requests_per_minute: Some(6_000), tokens_per_minute: None };
        let limiter = Limiter::new(limits);
        let (order, in_flight) = (Arc::new(Mutex::new(Vec::new())), Arc::new(Mutex::new((0, 0))));
        let tasks: Vec<_> = (0..50)
            .map(|n| {
                let (limiter, order, in_flight) = (limiter.clone(), Arc::clone(&order), Arc::clone(&in_flight));
                tokio::spawn(async move {
                    let _permit = limiter.acquire(1).await;
                    order.lock().unwrap().push(n);
                    {
                        let mut flight = in_flight.lock().unwrap();
                        flight.0 += 1;
                        flight.1 = flight.1.max(flight.0);
                    }
                    sleep(seconds(1)).await;
                    in_flight.lock().unwrap().0 -= 1;
                })
            })
            .collect();
        for task in tasks {
            task.await.unwrap();
        }
        assert_eq!(*order.lock().unwrap(), (0..50).collect::<Vec<_>>());
        assert_eq!(in_flight.lock().unwrap().1, 3);
    });
}

#[test]
fn a_caller_that_gives_up_does_not_hold_up_the_others() {
    jumping::run(async {
        let limits = LimitSettings { concurrency: 2, requests_per_minute: Some(1), tokens_per_minute: None };
        let limiter = Limiter::new(limits);
        let start = now();
        drop(limiter.acquire(1).await);
        for _ in 0..5 {
            assert!(timeout_at(now() + seconds(1), limiter.acquire(1)).await.is_none());
        }
        drop(limiter.acquire(1).await);
        assert_eq!(since(start), seconds(60));
    });
}

#[test]
fn no_limit_costs_next_to_nothing() {
    with_real_time(async {
        let limits = LimitSettings { concurrency: 0, requests_per_minute: None, tokens_per_minute: None };
        let limiter = Limiter::new(limits);
        let start = std::time::Instant::now();
        for _ in 0..25_000 {
            limiter.acquire(1_000).await.settle(900);
        }
        assert!(start.elapsed() < seconds(5), "{:?}", start.elapsed());
    });
}

#[test]
fn the_breaker_opens_after_failures_in_a_row() {
    let breaker = CircuitBreaker::new(3);
    for success in [false, false, true, false, false] {
        breaker.record(success);
        assert!(!breaker.is_open());
    }
    breaker.record(false);
    assert!(breaker.is_open());
    breaker.record(true);
    assert!(!breaker.is_open());
}

/// Answers each connection with the next of `answers`, byte for byte, and closes it.
async fn serve(answers: Vec<Vec<u8>>) -> Url {
    let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let url = format!("http://user:secret@{}/a/b?key=secret#part", listener.local_addr().unwrap());
    tokio::spawn(async move {
        for answer in answers {
            let (mut stream, _) = listener.accept().await.unwrap();
            let mut request = Vec::new();
            while !request.ends_with(b"\r\n\r\n") {
                let mut byte = [0; 1];
                if stream.read(&mut byte).await.unwrap_or(0) == 0 {
                    break;
                }
                request.extend_from_slice(&byte);
            }
            // The client may have had enough.
            let _ = stream.write_all(&answer).await;
        }
    });
    Url::parse(&url).unwrap()
}

fn local_client() -> reqwest::Client {
    client(&ClientOptions { no_proxy: true, ..ClientOptions::default() }).unwrap()
}

#[test]
fn bodies_are_capped_and_cuts_are_seen() {
    with_real_time(async {
        let mut giant = b"HTTP/1.1 200 OK\r\nConnection: close\r\n\r\n".to_vec();
        giant.extend(std::iter::repeat_n(b'x', 100_000));
        let url = serve(vec![
            b"HTTP/1.1 200 OK\r\nContent-Length: 5\r\n\r\nhello".to_vec(),
            b"HTTP/1.1 200 OK\r\nContent-Length: 6\r\n\r\nhello!".to_vec(),
            b"HTTP/1.1 200 OK\r\nContent-Length: 5\r\n\r\nhel".to_vec(),
            b"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n3\r\nhel\r\n".to_vec(),
            b"HTTP/1.1 200 OK\r\nContent-Length: 1000000000000\r\n\r\nhello".to_vec(),
            giant,
        ])
        .await;
        let client = local_client();
        let mut text = String::new();
        for _ in 0..6 {
            match read_capped(client.get(url.clone()).send().await.unwrap(), 5).await {
                Ok(body) => text += &format!("{}\n", String::from_utf8(body).unwrap()),
                Err(error) => {
                    assert!(!error.to_string().contains("secret"));
                    text += &match error {
                        BodyError::TooLarge { cap } => format!("larger than {cap}\n"),
                        BodyError::Cut { got, .. } => format!("cut after {got}\n"),
                    };
                }
            }
        }
        expect![[r#"
            hello
            larger than 5
            cut after 3
            cut after 3
            larger than 5
            larger than 5
        "#]]
        .assert_eq(&text);
    });
}

#[test]
fn lost_connections_are_worth_another_try() {
    with_real_time(async {
        let client = local_client();
        let ended = client.get(serve(vec![b"HTTP/1.1 200".to_vec()]).await).send().await.unwrap_err();
        assert!(is_retryable(&ended), "{ended:?}");
        let cut = client.get(serve(vec![b"HTTP/1.1 200 OK\r\nContent-Length: 9\r\n\r\nx".to_vec()]).await);
        let cut = cut.send().await.unwrap().bytes().await.unwrap_err();
        assert!(is_retryable(&cut), "{cut:?}");
        // Nobody listens on the port of tcpmux.
        let refused = client.get("http://127.0.0.1:1/?key=secret").send().await.unwrap_err();
        assert!(is_retryable(&refused), "{refused:?}");
        let shown = shown_error(refused);
        assert!(shown.contains("refused") && !shown.contains("secret"), "{shown}");
        // A server that never answers.
        let silent = TcpListener::bind("127.0.0.1:0").await.unwrap();
        let late = client.get(format!("http://{}/", silent.local_addr().unwrap()));
        let late = late.timeout(Duration::from_millis(20)).send().await.unwrap_err();
        assert!(late.is_timeout());
        assert!(is_retryable(&late), "{late:?}");

        assert!(!is_retryable(&client.get("no URL").send().await.unwrap_err()));
        let unavailable = serve(vec![b"HTTP/1.1 503 No\r\nContent-Length: 0\r\n\r\n".to_vec()]).await;
        let unavailable = client.get(unavailable).send().await.unwrap().error_for_status().unwrap_err();
        assert!(is_retryable(&unavailable));
    });
}

#[test]
fn redirects_are_followed_only_when_asked() {
    with_real_time(async {
        let moved = || b"HTTP/1.1 302 Found\r\nLocation: /c\r\nContent-Length: 0\r\nConnection: close\r\n\r\n".to_vec();
        let there = b"HTTP/1.1 200 OK\r\nContent-Length: 0\r\n\r\n".to_vec();
        let url = serve(vec![moved(), moved(), there, moved(), moved()]).await;
        assert_eq!(local_client().get(url.clone()).send().await.unwrap().status(), 302);
        let following = client(&ClientOptions { redirects: 1, no_proxy: true, ..ClientOptions::default() }).unwrap();
        assert_eq!(following.get(url.clone()).send().await.unwrap().status(), 200);
        let endless = following.get(url).send().await.unwrap_err();
        assert!(endless.is_redirect() && !is_retryable(&endless));
    });
}

#[test]
fn shown_urls_hide_what_may_be_secret() {
    let url = Url::parse("https://me:pass@example.org:8443/a%20b/c.xml?api_key=K#f").unwrap();
    assert_eq!(shown_url(&url), "https://example.org:8443/a%20b/c.xml");
}

#[test]
fn addresses_stand_inside_or_outside() {
    let mut text = String::new();
    for host in [
        "127.0.0.1",
        "127.9.9.9",
        "0.0.0.0",
        "2130706433",
        "localhost",
        "db.localhost",
        "[::1]",
        "[::]",
        "[::ffff:127.0.0.1]",
        "10.0.0.1",
        "172.31.255.255",
        "192.168.0.1",
        "169.254.169.254",
        "100.64.0.1",
        "198.18.0.1",
        "255.255.255.255",
        "[fd00::1]",
        "[fe80::1]",
        "[ff02::1]",
        "[64:ff9b::a00:1]",
        "[::ffff:10.0.0.1]",
        "8.8.8.8",
        "172.32.0.1",
        "100.128.0.1",
        "[2606:4700::1]",
        "[64:ff9b::808:808]",
    ] {
        let url = Url::parse(&format!("http://{host}/")).unwrap();
        text += &format!("{host}: {:?}\n", with_real_time(reach(&url)));
    }
    expect![[r#"
        127.0.0.1: Loopback
        127.9.9.9: Loopback
        0.0.0.0: Loopback
        2130706433: Loopback
        localhost: Loopback
        db.localhost: Loopback
        [::1]: Loopback
        [::]: Loopback
        [::ffff:127.0.0.1]: Loopback
        10.0.0.1: Private
        172.31.255.255: Private
        192.168.0.1: Private
        169.254.169.254: Private
        100.64.0.1: Private
        198.18.0.1: Private
        255.255.255.255: Private
        [fd00::1]: Private
        [fe80::1]: Private
        [ff02::1]: Private
        [64:ff9b::a00:1]: Private
        [::ffff:10.0.0.1]: Private
        8.8.8.8: Public
        172.32.0.1: Public
        100.128.0.1: Public
        [2606:4700::1]: Public
        [64:ff9b::808:808]: Public
    "#]]
    .assert_eq(&text);
}
