//! The client against a server that misbehaves. TLS and HTTP/2 are tested by the hub, with nginx.

use std::io::{Read as _, Write as _};
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::sync::{Arc, Barrier, Mutex, mpsc};
use std::time::{Duration, Instant};

use super::*;
use crate::Silent;
use mu_testing::http::{Reply, TestServer};
use mu_testing::{Listener, ReservedPort};

/// A token for one host.
struct One {
    host: String,
}

impl Credentials for One {
    fn find(&self, asked: &AskedServer) -> Option<Credential> {
        let is_it = asked.host_and_unusual_port() == self.host;
        is_it.then(|| Credential::token(asked, Secret::new("hunter2")))
    }
}

/// How long the client would have slept, and what it reported.
#[derive(Clone, Default)]
struct Notes {
    pauses: Arc<Mutex<Vec<Duration>>>,
    said: Arc<Mutex<Vec<String>>>,
}

impl Notes {
    fn options(&self) -> HttpOptions {
        let pauses = Arc::clone(&self.pauses);
        let said = Arc::clone(&self.said);
        // Its clock stands still, except while the client pauses.
        let (begin, slept) = (Instant::now(), Arc::clone(&self.pauses));
        HttpOptions {
            watch: Some(Arc::new(move |event| {
                said.lock().expect("no test panicked").push(format!("{event:?}"));
            })),
            sleep: Arc::new(move |pause| pauses.lock().expect("no test panicked").push(pause)),
            now: Arc::new(move || {
                begin + slept.lock().expect("no test panicked").iter().sum::<Duration>()
            }),
            ..HttpOptions::default()
        }
    }

    fn pauses(&self) -> Vec<Duration> {
        self.pauses.lock().expect("no test panicked").clone()
    }
}

fn url(server: &TestServer, path: &str) -> SafeUrl {
    SafeUrl::parse(&server.url(path)).expect("is a URL")
}

fn get(http: &Http, server: &TestServer, path: &str) -> Result<String, ProviderError> {
    let body = http.get(&url(server, path)).fetch(1 << 20, &Silent)?;
    Ok(String::from_utf8(body).expect("the tests send text"))
}

#[test]
fn a_503_is_tried_again_and_said() {
    let server = TestServer::start(|_, before| match before {
        0 => Reply::status(503).header("retry-after", "7"),
        1 => Reply::status(503),
        _ => Reply::body("fine"),
    });
    let notes = Notes::default();
    let http = Http::new(notes.options());
    let body = http.get(&url(&server, "a")).fetch(100, &Silent).expect("the third answer is fine");
    assert_eq!(body, b"fine");
    let pauses = notes.pauses();
    assert_eq!(pauses[0], Duration::from_secs(7));
    assert!(pauses[1] < Duration::from_secs(7), "{pauses:?}");
    let said = notes.said.lock().expect("no test panicked").join("\n");
    let repeated = "503 Service Unavailable\", attempt: 1, attempts: 4, pause: 7s";
    assert!(said.contains(repeated), "{said}");
}

#[test]
fn retry_after_may_be_a_date_and_is_bounded() {
    for (date, expected) in
        [("Thu, 01 Jan 2026 00:00:05 GMT", 5), ("Thu, 01 Jan 2026 09:00:00 GMT", 60)]
    {
        let server = TestServer::start(move |_, before| match before {
            0 => Reply::status(429)
                .header("date", "Thu, 01 Jan 2026 00:00:00 GMT")
                .header("retry-after", date),
            _ => Reply::body("fine"),
        });
        let notes = Notes::default();
        get(&Http::new(notes.options()), &server, "a").expect("the second answer is fine");
        assert_eq!(notes.pauses(), [Duration::from_secs(expected)], "{date}");
    }
}

#[test]
fn gives_up_after_some_attempts() {
    let server = TestServer::start(|_, _| Reply::status(502));
    let notes = Notes::default();
    let error = get(&Http::new(notes.options()), &server, "a").expect_err("never answers");
    assert_eq!(error.kind(), ErrorKind::Network);
    assert_eq!(server.requests().len(), 4);
    assert!(error.to_string().contains(" (gave up after 4 attempts in "), "{error}");
    let pauses = notes.pauses();
    assert!(pauses[0] >= Duration::from_millis(250) && pauses[2] > pauses[0], "{pauses:?}");
}

#[test]
fn a_cut_answer_is_fetched_again() {
    let server = TestServer::start(|_, before| match before {
        0 => Reply::body("all of it").cut_after(3),
        _ => Reply::body("all of it"),
    });
    let http = Http::new(Notes::default().options());
    assert_eq!(get(&http, &server, "a").expect("the second answer is whole"), "all of it");
}

#[test]
fn silence_is_a_failure() {
    let server = TestServer::start(|_, before| match before {
        0 => Reply::body("all of it").silent_after(3),
        _ => Reply::body("all of it"),
    });
    // As little patience as a busy machine allows.
    let read_timeout = Duration::from_millis(300);
    let http = Http::new(HttpOptions { read_timeout, ..Notes::default().options() });
    assert_eq!(get(&http, &server, "a").expect("the second answer is whole"), "all of it");

    let mute = TestServer::start(|_, _| Reply::body("all of it").silent_after(3));
    let http = Http::new(HttpOptions { retries: 0, read_timeout, ..Notes::default().options() });
    let mut response = http.get(&url(&mute, "a")).send().expect("its head comes");
    let error = std::io::copy(&mut response, &mut std::io::sink()).expect_err("then nothing");
    let failure = Failure::broken_off(&error, &url(&mute, "a")).into_error();
    assert_eq!(failure.kind(), ErrorKind::Network);
}

#[test]
fn an_answer_that_drips_is_a_failure() {
    let apart = Duration::from_millis(5);
    let server = TestServer::start(move |request, _| match request.path.as_str() {
        "/small" => Reply::body(vec![7; 200]).dripping(apart),
        _ => Reply::body(vec![7; 1 << 20]).dripping(apart),
    });
    let options = HttpOptions {
        retries: 0,
        read_timeout: Duration::from_millis(300),
        ..Notes::default().options()
    };
    // Never silent for long, but too slow.
    let http = Http::new(HttpOptions { slowest: 100_000, ..options.clone() });
    for path in ["small", "large"] {
        let error = http.get(&url(&server, path)).fetch(2 << 20, &Silent).expect_err("is too slow");
        assert_eq!(error.kind(), ErrorKind::Network);
        let why = std::error::Error::source(&error).expect("is told").to_string();
        assert!(why.starts_with("only ") && why.contains("bytes came in"), "{why}");
    }
    // Unless the protocol has its own limits.
    let request = http.get(&url(&server, "small")).at_any_pace();
    assert_eq!(request.fetch(2 << 20, &Silent).expect("comes at last").len(), 200);
}

#[test]
fn servers_that_ask_for_pauses_are_waited_for_so_long_and_no_longer() {
    let server = TestServer::start(|_, _| Reply::status(503).header("retry-after", "31536000"));
    let notes = Notes::default();
    let http = Http::new(HttpOptions { longest_wait: Duration::from_secs(50), ..notes.options() });
    let error = get(&http, &server, "a").expect_err("never answers");
    assert_eq!((notes.pauses(), server.requests().len()), (Vec::new(), 1));
    assert!(error.hints()[0].contains("50 s"), "{error:?}");
}

#[test]
fn what_one_request_is_told_to_wait_the_others_to_the_server_wait_too() {
    let server = TestServer::start(|request, _| match request.path.as_str() {
        "/a" => Reply::status(429).header("retry-after", "7"),
        _ => Reply::body("fine"),
    });
    let other = TestServer::start(|_, _| Reply::body("fine"));
    let notes = Notes::default();
    let http = Http::new(HttpOptions { retries: 0, ..notes.options() });
    get(&http, &server, "a").expect_err("is refused");
    get(&http, &other, "b").expect("nobody refused anything");
    assert_eq!(notes.pauses(), []);
    // What nobody waits for is not sent ahead of those who wait.
    http.get(&url(&server, "b")).ahead();
    assert_eq!(server.requests(), ["GET /a"]);
    for _ in 0..3 {
        get(&http, &server, "b").expect("is answered after the pause");
    }
    let [first, second, third] = notes.pauses()[..] else { panic!("{:?}", notes.pauses()) };
    assert_eq!(first, Duration::from_secs(7));
    let near = Duration::from_millis(9)..=Duration::from_millis(10);
    assert!(near.contains(&second) && near.contains(&third), "{second:?} {third:?}");
    assert_eq!(server.requests().len(), 4);
}

#[test]
fn a_server_that_answers_others_is_asked_again_however_often_it_refused() {
    const REFUSALS: usize = 10;
    let (others, refused) = (Arc::new(AtomicUsize::new(0)), AtomicUsize::new(0));
    let (answered, is_done) = (Arc::clone(&others), Arc::new(AtomicBool::new(false)));
    let server = TestServer::start(move |request, _| {
        if request.path == "/b" {
            answered.fetch_add(1, Ordering::SeqCst);
            return Reply::body("fine");
        }
        // One answer for another was read since the last refusal.
        let before = answered.load(Ordering::SeqCst);
        while answered.load(Ordering::SeqCst) < before + 2 {
            std::thread::yield_now();
        }
        match refused.fetch_add(1, Ordering::SeqCst) {
            REFUSALS => Reply::body("at last"),
            _ => Reply::status(429),
        }
    });
    let http = Http::new(Notes::default().options());
    std::thread::scope(|scope| {
        scope.spawn(|| {
            while !is_done.load(Ordering::SeqCst) {
                get(&http, &server, "b").expect("is always answered");
            }
        });
        let last = get(&http, &server, "a");
        is_done.store(true, Ordering::SeqCst);
        assert_eq!(last.expect("the last answer is fine"), "at last");
    });
    let asked = server.requests().iter().filter(|request| *request == "GET /a").count();
    assert_eq!(asked, REFUSALS + 1);
    assert!(others.load(Ordering::SeqCst) >= 2 * REFUSALS);
}

#[test]
fn so_many_requests_are_sent_and_no_more() {
    let server = TestServer::start(|_, _| Reply::body("fine"));
    let http = Http::new(HttpOptions { most_requests: 3, ..Notes::default().options() });
    for _ in 0..3 {
        get(&http, &server, "a").expect("is one of three");
    }
    let error = get(&http, &server, "a").expect_err("is the fourth");
    assert_eq!((error.kind(), server.requests().len()), (ErrorKind::Refused, 3));
    assert!(error.to_string().contains("3 requests"), "{error}");
}

#[test]
fn a_large_answer_comes_piece_by_piece_and_never_ends_early() {
    let body: Vec<u8> = (0..1_000_000_u32).map(|number| number.to_le_bytes()[0]).collect();
    let (whole, part) = (body.clone(), body.clone());
    let server = TestServer::start(move |request, _| match request.path.as_str() {
        "/whole" => Reply::body(whole.clone()),
        "/huge" => Reply::body(vec![7; 16 << 20]),
        _ => Reply::body(part.clone()).cut_after(600_000),
    });
    let http = Http::new(HttpOptions { retries: 0, ..Notes::default().options() });
    let mut read = Vec::new();
    let mut response = http.get(&url(&server, "whole")).send().expect("answers");
    assert_eq!(response.content_length(), Some(1_000_000));
    std::io::copy(&mut response, &mut read).expect("is whole");
    assert!(read == body);
    assert!(http.get(&url(&server, "whole")).fetch(1_000_000, &Silent).expect("is whole") == body);
    http.get(&url(&server, "whole")).fetch(999_999, &Silent).expect_err("is too long");

    let mut response = http.get(&url(&server, "part")).send().expect("its head comes");
    read.clear();
    std::io::copy(&mut response, &mut read).expect_err("breaks off");
    assert!(read.len() <= 600_000 && body.starts_with(&read));
    std::io::copy(&mut response, &mut std::io::sink()).expect_err("has not ended since");

    let mut response = http.get(&url(&server, "huge")).send().expect("its head comes");
    drop(http);
    std::io::copy(&mut response, &mut std::io::sink()).expect_err("the client is gone");
}

#[test]
fn what_was_asked_for_ahead_is_not_asked_for_again() {
    let server =
        TestServer::start(|request, before| Reply::body(format!("{}{before}", request.path)));
    let http = Http::new(Notes::default().options());
    http.get(&url(&server, "a")).ahead();
    // Other requests, or the same with other headers, do not get this answer.
    assert_eq!(get(&http, &server, "b").expect("answers").len(), 3);
    assert_eq!(get(&http, &server, "a").expect("answers").len(), 3);
    assert_eq!(server.requests().len(), 2);
    assert_eq!(get(&http, &server, "a").expect("answers"), "/a2");

    http.get(&url(&server, "c")).ahead();
    let part = http.get(&url(&server, "c")).header("range", "bytes=1-");
    part.fetch(100, &Silent).expect("answers");
    get(&http, &server, "c").expect("answers");
    let asked = server.seen().into_iter().filter(|seen| seen.path == "/c");
    let ranges: Vec<bool> = asked.map(|seen| seen.header("range").is_some()).collect();
    assert_eq!(ranges.iter().filter(|is_range| **is_range).count(), 1, "{ranges:?}");
    assert_eq!(ranges.last(), Some(&false), "{ranges:?}");
}

#[test]
fn few_requests_that_nobody_waits_for_are_on_their_way_at_once() {
    const AT_ONCE: usize = 2;
    let (active, most) = (Arc::new(AtomicUsize::new(0)), Arc::new(AtomicUsize::new(0)));
    let together = Barrier::new(AT_ONCE);
    let server = {
        let (active, most) = (Arc::clone(&active), Arc::clone(&most));
        TestServer::start(move |_, _| {
            most.fetch_max(active.fetch_add(1, Ordering::SeqCst) + 1, Ordering::SeqCst);
            together.wait();
            active.fetch_sub(1, Ordering::SeqCst);
            Reply::body("fine")
        })
    };
    let http = Http::new(HttpOptions { ahead: AT_ONCE, ..Notes::default().options() });
    let paths: Vec<String> = (0..6).map(|number| number.to_string()).collect();
    paths.iter().for_each(|path| http.get(&url(&server, path)).ahead());
    for path in &paths {
        assert_eq!(get(&http, &server, path).expect("answers"), "fine");
    }
    assert_eq!((most.load(Ordering::SeqCst), server.requests().len()), (AT_ONCE, paths.len()));
}

#[test]
fn a_large_answer_that_nobody_reads_yet_keeps_no_other_waiting() {
    let large = vec![b'x'; 4 << 20];
    let server = TestServer::start(move |_, _| Reply::body(large.clone()));
    let http = Http::new(HttpOptions { ahead: 1, ..Notes::default().options() });
    let urls = ["a", "b", "c"].map(|path| url(&server, path));
    urls.iter().for_each(|url| http.get(url).ahead());
    for url in urls.iter().rev() {
        assert_eq!(http.get(url).fetch(5 << 20, &Silent).expect("answers").len(), 4 << 20);
    }
    assert_eq!(server.requests().len(), urls.len());
}

#[test]
fn what_failed_ahead_is_tried_again() {
    let server = TestServer::start(|_, before| match before {
        0 => Reply::status(503),
        _ => Reply::body("fine"),
    });
    let notes = Notes::default();
    let http = Http::new(notes.options());
    http.get(&url(&server, "a")).ahead();
    assert_eq!(get(&http, &server, "a").expect("the second answer is fine"), "fine");
    assert_eq!(notes.pauses().len(), 1);
}

#[test]
fn a_refused_connection_is_tried_again() {
    let nobody = ReservedPort::take();
    let url = SafeUrl::parse(&nobody.url("a?token=x")).expect("is a URL");
    let notes = Notes::default();
    let error =
        Http::new(notes.options()).get(&url).fetch(100, &Silent).expect_err("nobody listens");
    assert_eq!(error.kind(), ErrorKind::Network);
    assert_eq!(notes.pauses().len(), 3);
    let said = format!("cannot reach `{}` (gave up after 4 attempts in ", nobody.url("a?****"));
    assert!(error.to_string().starts_with(&said), "{error}");
    let cause = std::error::Error::source(&error).expect("the reason is kept").to_string();
    assert!(cause.contains("refused"), "{cause}");
}

#[test]
fn plain_http_to_a_server_that_expects_tls_gets_a_hint() {
    // It closes the connection, as many servers do.
    let server = Listener::start(drop);
    let address = server.address();
    let http = Http::new(Notes::default().options());
    let url = SafeUrl::parse(&format!("http://{address}/a")).expect("is a URL");
    let error = http.get(&url).send().expect_err("does not answer");
    assert_eq!(error.hints(), [format!("if it expects TLS, write `https://{address}/...`")]);
}

#[test]
fn a_port_that_speaks_tls_is_not_asked_again_in_plain_http() {
    // The alert with which OpenSSL answers a request in plain http.
    let server = Listener::start(|mut stream: std::net::TcpStream| {
        let _ = stream.read(&mut [0; 64]);
        let _ = stream.write_all(&[0x15, 3, 1, 0, 2, 2, 0x46]);
    });
    let address = server.address();
    let notes = Notes::default();
    let url = SafeUrl::parse(&format!("http://{address}/a")).expect("is a URL");
    let error = Http::new(notes.options()).get(&url).send().expect_err("is no answer");
    assert_eq!(error.to_string(), format!("`{address}` does not speak plain http"));
    assert_eq!(error.hints(), [format!("if it expects TLS, write `https://{address}/...`")]);
    assert!(notes.pauses().is_empty());
}

#[test]
fn an_answer_that_no_server_may_give_is_no_server_that_cannot_be_reached() {
    for (answer, cause) in [
        ("HTTP/1.1 200 OK\r\nContent-Length: 2\r\nContent-Length: 3\r\n\r\nok", "content-length"),
        ("HTTP/1.1 200 OK\r\nX Y: 1\r\nContent-Length: 2\r\n\r\nok", "header"),
        (&format!("HTTP/1.1 200 OK\r\n{}\r\n", "X: 1\r\n".repeat(300)), "too large"),
    ] {
        let answer = answer.to_owned();
        let server = Listener::start(move |mut stream: std::net::TcpStream| {
            let _ = stream.read(&mut [0; 4096]);
            let _ = stream.write_all(answer.as_bytes());
        });
        let url = SafeUrl::parse(&format!("http://{}/a", server.address())).expect("is a URL");
        let error = Http::new(Notes::default().options()).get(&url).send().expect_err("is broken");
        let text = error.to_string();
        assert!(text.starts_with(&format!("the answer from `{url}` is not valid HTTP")), "{text}");
        let reason = std::error::Error::source(&error).expect("the reason is kept").to_string();
        assert!(reason.contains(cause) && error.hints().is_empty(), "{reason}");
    }
}

#[test]
fn a_redirect_may_lead_to_letters_of_any_language_and_must_lead_somewhere() {
    let server = TestServer::start(|seen, _| match seen.path.as_str() {
        "/a" => Reply::status(302).header("location", "/grüße"),
        "/gr%C3%BC%C3%9Fe" => Reply::body("there"),
        _ => Reply::status(302),
    });
    let http = Http::new(Notes::default().options());
    let get = |path: &str| {
        let url = SafeUrl::parse(&server.url(path)).expect("is a URL");
        http.get(&url).send()
    };
    assert_eq!(get("a").expect("is followed").status(), 200);
    let error = get("b").expect_err("leads nowhere").to_string();
    assert!(error.ends_with("answered 302 Found without saying where to"), "{error}");
}

#[test]
fn a_request_ends_before_its_failure_or_the_end_of_its_answer_is_known() {
    let (closing, large) = (Listener::start(drop), "x".repeat(1 << 20));
    let server = TestServer::start(move |_, _| Reply::body(large.clone()));
    for (address, is_fine) in [(closing.address().to_string(), false), (server.host(), true)] {
        let url = SafeUrl::parse(&format!("http://{address}/a")).expect("is a URL");
        // Whoever reports the end looks whether somebody goes on meanwhile.
        let ((go_on, gone_on), (report, reported)) = (mpsc::channel(), mpsc::channel());
        let gone_on = Mutex::new(gone_on);
        let watch = move |event: &RequestEvent<'_>| {
            if let RequestEvent::Ended { .. } = event {
                let early = gone_on.lock().expect("no test panicked");
                let _ = report.send(early.recv_timeout(Duration::from_millis(100)).is_ok());
            }
        };
        let options = HttpOptions { watch: Some(Arc::new(watch)), ..Notes::default().options() };
        let http = Http::new(options);
        let answer = http.get(&url).attempt().map(|answer| answer.bytes(2 << 20, &Silent));
        let _ = go_on.send(());
        assert_eq!(answer.is_ok(), is_fine);
        assert_eq!(reported.recv(), Ok(false), "{address}");
    }
}

#[test]
fn statuses_have_their_kinds() {
    for (status, kind) in [
        (401, ErrorKind::Auth),
        (403, ErrorKind::Auth),
        (404, ErrorKind::NotFound),
        (410, ErrorKind::NotFound),
        (400, ErrorKind::Protocol),
        (300, ErrorKind::Protocol),
    ] {
        let server = TestServer::start(move |_, _| Reply::status(status));
        let http = Http::new(Notes::default().options());
        let error = get(&http, &server, "a").expect_err("does not succeed");
        assert_eq!(error.kind(), kind, "{status}");
        assert_eq!(server.requests().len(), 1, "{status}");
        if kind == ErrorKind::Auth {
            let hint = error.hints().join(" ");
            assert!(hint.contains(&or_variable(&server.host())), "{hint}");
        }
        let allowed = http.get(&url(&server, "a")).allow(status).send();
        assert_eq!(allowed.expect("was allowed").status(), status);
    }
}

#[test]
fn a_server_says_why_it_refuses_and_never_the_token() {
    let server = TestServer::start(|request, _| {
        let problem = |detail: &str| {
            let reply = Reply::status(403).saying(format!("{{\"detail\": \"{detail}\"}}"));
            reply.header("content-type", "application/problem+json")
        };
        match request.path.as_str() {
            "/expired" => problem("the token\\n has expired"),
            "/echo" => problem("`hunter2` is not known"),
            "/odd" => problem(&"x".repeat(20_000)),
            _ => Reply::status(403).saying("{\"detail\": \"no such kind\"}"),
        }
    });
    let credentials = Arc::new(One { host: server.host() });
    let http = Http::new(HttpOptions { credentials, ..Notes::default().options() });
    for (path, expected) in
        [("expired", Some("the token has expired")), ("echo", None), ("odd", None), ("other", None)]
    {
        let error = get(&http, &server, path).expect_err("is refused");
        assert_eq!(error.kind(), ErrorKind::Auth, "{path}");
        let cause = std::error::Error::source(&error).map(ToString::to_string);
        assert_eq!(cause.as_deref(), expected, "{path}");
    }
}

#[test]
fn the_token_goes_to_its_own_host_only() {
    let other = TestServer::start(|_, _| Reply::body("fine"));
    let elsewhere = other.url("b");
    let server = TestServer::start(move |request, _| match request.path.as_str() {
        _ if request.header("authorization").is_none() => Reply::status(401),
        "/a" => Reply::redirect("/a2"),
        "/a2" => Reply::redirect(elsewhere.as_str()),
        _ => Reply::body("fine"),
    });
    let credentials = Arc::new(One { host: server.host() });
    let http = Http::new(HttpOptions { credentials, ..Notes::default().options() });
    assert_eq!(get(&http, &server, "a").expect("redirects are followed"), "fine");
    // The token is sent once the server has asked for it, and then with each request.
    let shown: Vec<_> =
        server.seen().iter().map(|seen| seen.header("authorization").map(str::to_owned)).collect();
    let bearer = Some("Bearer hunter2".to_owned());
    assert_eq!(shown, [None, bearer.clone(), bearer]);
    assert_eq!(other.seen()[0].header("authorization"), None);

    let place = url(&server, "a");
    let own = Credential::password(&AskedServer::new(&place), "ada", Secret::new("x"));
    let own = own.release(Recipient::Server(&place), &TokenHosts::default());
    let own = own.expect("it is its own").basic("");
    let request = http.get(&url(&server, "a")).authorization(own);
    request.send().expect("redirects are followed");
    assert_eq!(other.seen()[1].header("authorization"), None);
    assert_eq!(server.seen()[3].header("authorization"), Some("Basic YWRhOng="));

    get(&http, &other, "c").expect("answers");
    assert_eq!(other.seen()[2].header("authorization"), None);
}

/// Has a user and a password for one host.
struct Ada(String);

impl Credentials for Ada {
    fn find(&self, asked: &AskedServer) -> Option<Credential> {
        let is_it = asked.host_and_unusual_port() == self.0;
        is_it.then(|| Credential::token(asked, Secret::new("ada:hunter2")))
    }
}

#[test]
fn a_server_that_asks_for_basic_alone_gets_a_user_and_a_password() {
    for (challenges, expected) in [
        (&["Basic realm=\"charts\""][..], "Basic YWRhOmh1bnRlcjI="),
        (&["basic"], "Basic YWRhOmh1bnRlcjI="),
        (&["Basic realm=x", "Bearer"], "Bearer ada:hunter2"),
        (&["Bearer realm=x"], "Bearer ada:hunter2"),
        (&[], "Basic YWRhOmh1bnRlcjI="),
    ] {
        let server = TestServer::start(move |request, _| match request.header("authorization") {
            Some(_) => Reply::body("fine"),
            None => {
                let refusal = Reply::status(401);
                challenges.iter().fold(refusal, |refusal, challenge| {
                    refusal.header("www-authenticate", *challenge)
                })
            }
        });
        let credentials = Arc::new(Ada(server.host()));
        let http = Http::new(HttpOptions { credentials, ..Notes::default().options() });
        for path in ["a", "b"] {
            assert_eq!(get(&http, &server, path).expect("lets in"), "fine");
            let seen = server.seen().pop().expect("was asked");
            assert_eq!(seen.header("authorization"), Some(expected), "{challenges:?}");
        }
        assert_eq!(server.seen().len(), 3, "it is refused once");
    }
}

#[test]
fn a_server_that_hides_from_strangers_what_it_has_gets_the_password() {
    let other = TestServer::start(|_, _| Reply::body("sign in"));
    let elsewhere = other.url("login");
    for hidden in [
        Reply::status(404),
        Reply::status(410),
        Reply::redirect("/login"),
        Reply::redirect(elsewhere.as_str()),
    ] {
        let server = TestServer::start(move |request, _| match request.header("authorization") {
            Some(_) if request.path == "/none" => Reply::status(404),
            Some(_) => Reply::body("fine"),
            None if request.path == "/login" => Reply::body("sign in"),
            None => hidden.clone(),
        });
        let credentials = Arc::new(Ada(server.host()));
        let http = Http::new(HttpOptions { credentials, ..Notes::default().options() });
        for path in ["a", "b"] {
            assert_eq!(get(&http, &server, path).expect("lets in"), "fine");
            let seen = server.seen().pop().expect("was asked");
            assert_eq!(seen.header("authorization"), Some("Basic YWRhOmh1bnRlcjI="));
        }
        assert_eq!(get(&http, &server, "none").expect_err("lacks").kind(), ErrorKind::NotFound);
        assert_eq!(server.seen().len(), 4, "the password is shown late once");
        assert_eq!(other.seen().len(), 0);
    }
}

#[test]
fn a_password_that_a_server_does_not_accept_makes_nothing_worse_that_it_shows_to_all() {
    for refusal in [401, 403] {
        let server = TestServer::start(move |request, _| match request.header("authorization") {
            Some(_) => Reply::status(refusal),
            None if request.path == "/moved" => Reply::redirect("/open"),
            None if request.path == "/open" => Reply::body("fine"),
            None => Reply::status(404),
        });
        let credentials = Arc::new(Ada(server.host()));
        let http = Http::new(HttpOptions { credentials, ..Notes::default().options() });
        for _ in 0..2 {
            let error = get(&http, &server, "none").expect_err("is not there");
            assert_eq!(error.kind(), ErrorKind::NotFound);
            let hint = error.hints().join(" ");
            assert!(hint.contains(&format!("the token for `{}`", server.host())), "{hint}");
            assert_eq!(get(&http, &server, "moved").expect("everybody may"), "fine");
        }
        // A wrong password is shown once; one that may not read this may read something else.
        let shown =
            server.seen().iter().filter(|one| one.header("authorization").is_some()).count();
        assert_eq!(shown, if refusal == 401 { 1 } else { 4 });
    }
}

#[test]
fn what_is_asked_under_conditions_is_asked_without_them_where_nobody_knows_these() {
    let server = TestServer::start(|request, _| match request.header("if-none-match") {
        Some(_) => Reply::status(412),
        None => Reply::body("fine"),
    });
    let http = Http::new(Notes::default().options());
    let unless = |request: Request<'_>| request.header("if-none-match", "\"one\"").attempt().ok();
    let status = |answer: Option<Response>| answer.map(|answer| answer.status());
    assert_eq!(status(unless(http.get(&url(&server, "a")))), Some(200));
    assert_eq!(server.seen().len(), 2);
    // What writes only where nothing has changed keeps its condition.
    assert_eq!(status(unless(http.post(&url(&server, "a")).allow(412))), Some(412));
}

#[test]
fn redirects_end() {
    let server = TestServer::start(|request, _| Reply::redirect(format!("{}x", request.path)));
    let error = get(&Http::new(Notes::default().options()), &server, "a").expect_err("never ends");
    assert_eq!(error.kind(), ErrorKind::Protocol);
    assert_eq!(server.requests().len(), 11);
}

#[test]
fn a_post_is_not_led_elsewhere() {
    let server = TestServer::start(|request, _| match request.path.as_str() {
        "/there" => Reply::redirect("/elsewhere"),
        _ => Reply::body(request.body.clone()),
    });
    let http = Http::new(Notes::default().options());
    let error = http.post(&url(&server, "there")).body(b"x".to_vec()).send();
    let error = error.expect_err("is redirected").to_string();
    assert!(error.contains("POST") && error.contains("/elsewhere"), "{error}");

    let echo = http.post(&url(&server, "echo")).body(b"some bytes".to_vec()).fetch(100, &Silent);
    assert_eq!(echo.expect("answers"), b"some bytes");
}

#[test]
fn an_endless_answer_is_refused() {
    let server = TestServer::start(|_, _| Reply::body("x".repeat(1_000)));
    let http = Http::new(Notes::default().options());
    let error = http.get(&url(&server, "a")).fetch(999, &Silent).expect_err("is too long");
    assert_eq!(error.kind(), ErrorKind::Protocol);
    assert_eq!(http.get(&url(&server, "a")).fetch(1_000, &Silent).expect("just fits").len(), 1_000);
}

#[test]
fn offline_connects_to_nothing() {
    let server = TestServer::start(|_, _| Reply::body("fine"));
    let http = Http::new(HttpOptions { offline: true, ..Notes::default().options() });
    http.get(&url(&server, "a")).ahead();
    let error = get(&http, &server, "a").expect_err("is offline");
    assert_eq!(error.kind(), ErrorKind::Offline);
    assert!(
        server.seen().is_empty() && http.loopback.get().is_none() && http.network.get().is_none()
    );
}

#[test]
fn freshness_is_read_from_cache_control() {
    for (control, expected) in [
        ("public, max-age=60", Some(60)),
        ("max-age=60, no-cache", Some(0)),
        ("Max-Age=\"5\"", Some(5)),
        ("private", None),
    ] {
        let server =
            TestServer::start(move |_, _| Reply::body("").header("cache-control", control));
        let http = Http::new(Notes::default().options());
        let response = http.get(&url(&server, "a")).send().expect("answers");
        assert_eq!(response.max_age(), expected, "{control}");
    }
}

#[test]
fn what_is_shown_of_a_request_holds_no_secret() {
    let server = TestServer::start(|request, _| match request.header("authorization") {
        None => Reply::status(401),
        Some(_) => {
            Reply::body("fine").header("set-cookie", "hunter2").header("x-api-token", "hunter2")
        }
    });
    let notes = Notes::default();
    let credentials = Arc::new(One { host: server.host() });
    let http = Http::new(HttpOptions { credentials, ..notes.options() });
    let request = http.get(&url(&server, "a?token=hunter2"));
    request.header("cookie", "hunter2").header("accept", "*/*").send().expect("answers");
    drop(http);
    let seen = server.seen().remove(1);
    assert_eq!(seen.header("authorization"), Some("Bearer hunter2"));
    let said = notes.said.lock().expect("no test panicked").join("\n");
    for part in ["a?****", "authorization: ****", "cookie: ****", "accept: */*", "200 OK"] {
        assert!(said.contains(part), "`{part}` is missing: {said}");
    }
    assert!(!said.contains("hunter2"), "{said}");
}
