//! Answers as servers write them, byte for byte.

use std::io::{BufRead as _, BufReader};
use std::net::{TcpListener, TcpStream};
use std::sync::atomic::{AtomicUsize, Ordering};

use super::*;

/// A server that gives `answers` one after the other, whoever asks, and ends a connection where one says `END`.
struct Server {
    url: Url,
    connections: Arc<AtomicUsize>,
}

const END: &str = "END";

impl Server {
    fn start(answers: &[&str]) -> Self {
        let listener = TcpListener::bind("127.0.0.1:0").expect("there is a free port");
        let address = listener.local_addr().expect("a bound socket has an address");
        let url = Url::parse(&format!("http://{address}/a?b")).expect("is a URL");
        let connections = Arc::new(AtomicUsize::new(0));
        let count = Arc::clone(&connections);
        let mut answers: Vec<String> = answers.iter().rev().map(|text| (*text).into()).collect();
        std::thread::spawn(move || {
            while !answers.is_empty() {
                let (stream, _) = listener.accept().expect("somebody connects");
                count.fetch_add(1, Ordering::SeqCst);
                serve(&stream, &mut answers);
            }
        });
        Self { url, connections }
    }
}

fn serve(mut stream: &TcpStream, answers: &mut Vec<String>) {
    let mut lines = BufReader::new(stream).lines().map_while(Result::ok);
    while lines.by_ref().take_while(|line| !line.is_empty()).count() > 0 {
        let Some(answer) = answers.pop() else { return };
        let (sent, ends) = answer.strip_suffix(END).map_or((&*answer, false), |sent| (sent, true));
        // A client that hangs up is part of the game.
        let _ = stream.write_all(sent.as_bytes());
        if ends {
            return;
        }
    }
}

fn client() -> Loopback {
    Loopback::new(&HttpOptions::default())
}

fn get(client: &Loopback, url: &Url) -> Result<Answer, Unanswered> {
    let headers = HeaderMap::new();
    client.ask(&mut Question { method: &Method::GET, url, headers: &headers, body: None })
}

fn read(client: &Loopback, url: &Url) -> io::Result<String> {
    let mut text = String::new();
    match get(client, url) {
        Ok(mut answer) => answer.body.read_to_string(&mut text).map(|_| text),
        Err(Unanswered::Unreachable(error)) => Err(error),
        Err(Unanswered::Silent) => Err(io::ErrorKind::TimedOut.into()),
    }
}

#[test]
fn bodies_end_where_their_heads_say() {
    let cases = [
        ("HTTP/1.1 200 OK\r\ncontent-length: 3\r\n\r\nabc", "abc"),
        ("HTTP/1.1 200 OK\nContent-Length: 3\nContent-Length: 3\n\nabc", "abc"),
        (
            "HTTP/1.1 103 Early Hints\r\nlink: x\r\n\r\nHTTP/1.1 200 OK\r\ncontent-length: 1\r\n\r\na",
            "a",
        ),
        ("HTTP/1.1 304 Not Modified\r\ncontent-length: 3\r\n\r\n", ""),
        ("HTTP/1.1 204 No Content\r\n\r\n", ""),
        (
            "HTTP/1.1 200 OK\r\ntransfer-encoding: chunked\r\n\r\n3\r\nabc\r\nA ;x=y\r\n0123456789\r\n0\r\na: b\r\n\r\n",
            "abc0123456789",
        ),
        ("HTTP/1.1 200 OK\r\nTransfer-Encoding: Chunked\r\n\r\n0\r\n\r\n", ""),
        ("HTTP/1.1 200 OK\r\n\r\nto the endEND", "to the end"),
    ];
    // All but the last leave the connection as it was.
    let server = Server::start(&cases.map(|(answer, _)| answer));
    let client = client();
    for (answer, body) in cases {
        assert_eq!(read(&client, &server.url).expect(answer), body, "{answer}");
    }
    assert_eq!(server.connections.load(Ordering::SeqCst), 1);
}

#[test]
fn what_makes_no_sense_is_an_error() {
    for answer in [
        "SMTP ready\r\n\r\n",
        "HTTP/1.1 101 Switching Protocols\r\n\r\n",
        "HTTP/1.1 200 OK\r\ncontent-length: +3\r\n\r\nabc",
        "HTTP/1.1 200 OK\r\ncontent-length: 3\r\ncontent-length: 4\r\n\r\nabcd",
        "HTTP/1.1 200 OK\r\ncontent-length: 3\r\ntransfer-encoding: chunked\r\n\r\n0\r\n\r\n",
        "HTTP/1.1 200 OK\r\ntransfer-encoding: gzip, chunked\r\n\r\n0\r\n\r\n",
        "HTTP/1.1 200 OK\r\ntransfer-encoding: chunked\r\n\r\n-1\r\n\r\n",
        "HTTP/1.1 200 OK\r\ntransfer-encoding: chunked\r\n\r\n\r\n\r\n",
        "HTTP/1.1 200 OK\r\ntransfer-encoding: chunked\r\n\r\n1\r\nab\r\n0\r\n\r\n",
        "HTTP/1.1 200 OK\r\ntransfer-encoding: chunked\r\n\r\nfffffffffffffffff\r\n",
    ] {
        let server = Server::start(&[answer]);
        let error = read(&client(), &server.url).expect_err(answer);
        assert!(error.to_string().contains("makes no sense"), "{answer}: {error}");
    }
    let endless = format!("HTTP/1.1 200 OK\r\na: {}", "x".repeat(70_000));
    let server = Server::start(&[&endless]);
    let error = read(&client(), &server.url).expect_err("never ends").to_string();
    assert!(error.contains("too long"), "{error}");
}

#[test]
fn what_breaks_off_is_an_error() {
    for answer in [
        "END",
        "HTTP/1.1 200 OK\r\ncontentEND",
        "HTTP/1.1 200 OK\r\ncontent-length: 3\r\n\r\nabEND",
        "HTTP/1.1 200 OK\r\ntransfer-encoding: chunked\r\n\r\n3\r\nabEND",
        "HTTP/1.1 200 OK\r\ntransfer-encoding: chunked\r\n\r\n3\r\nabc\r\nEND",
        "HTTP/1.1 200 OK\r\ntransfer-encoding: chunked\r\n\r\n0\r\nEND",
    ] {
        let server = Server::start(&[answer]);
        let error = read(&client(), &server.url).expect_err(answer);
        assert_eq!(error.kind(), io::ErrorKind::UnexpectedEof, "{answer}");
    }
}

#[test]
fn a_connection_that_was_closed_meanwhile_is_replaced() {
    const FINE: &str = "HTTP/1.1 200 OK\r\ncontent-length: 1\r\n\r\na";
    let server = Server::start(&[&format!("{FINE}{END}"), FINE, FINE]);
    let client = client();
    for _ in 0..3 {
        assert_eq!(read(&client, &server.url).expect("is answered"), "a");
    }
    assert_eq!(server.connections.load(Ordering::SeqCst), 2);
}

#[test]
fn a_connection_that_cannot_be_trusted_is_not_used_again() {
    let cases = [
        "HTTP/1.1 200 OK\r\nconnection: Close, x\r\ncontent-length: 1\r\n\r\naEND",
        "HTTP/1.0 200 OK\r\ncontent-length: 1\r\n\r\naEND",
        "HTTP/1.1 200 OK\r\ncontent-length: 1\r\n\r\na and moreEND",
        "HTTP/1.1 200 OK\r\ncontent-length: 1\r\n\r\na",
    ];
    let server = Server::start(&cases);
    let client = client();
    for answer in cases {
        assert_eq!(read(&client, &server.url).expect(answer), "a", "{answer}");
    }
    assert_eq!(server.connections.load(Ordering::SeqCst), 4);
}

#[test]
fn a_request_says_what_was_asked() {
    let headers =
        HeaderMap::from_iter([(reqwest::header::RANGE, "bytes=1-".parse().expect("is one"))]);
    let url = Url::parse("http://ada:x@localhost:81/a%20b?c#d").expect("is a URL");
    let question = Question { method: &Method::GET, url: &url, headers: &headers, body: None };
    let head = client().head(&question, "localhost:81");
    let expected = format!(
        "GET /a%20b?c HTTP/1.1\r\nhost: localhost:81\r\nuser-agent: mu/{}\r\naccept: */*\r\nrange: bytes=1-\r\n\r\n",
        env!("CARGO_PKG_VERSION")
    );
    assert_eq!(String::from_utf8(head).expect("is text"), expected);
}
