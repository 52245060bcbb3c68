//! A hub behind a proxy: the address of the client counts, if the proxy is trusted, and nobody can invent one.

use std::net::SocketAddr;
use std::path::Path;

use mu_testing::DockerRegistry;
use serde_json::Value;

use crate::hub_serve::incompressible;
use crate::login::send;
use crate::support::{Nginx, Sandbox, Served};

/// Another address of this machine, from which the proxies ask.
const PROXY: &str = "127.0.0.9";

/// A real proxy in front of a server, which asks from its own address and says for whom.
fn proxy(to: &str, from: &str, header: &str) -> (Nginx, SocketAddr) {
    let to = to.trim_end_matches('/');
    let pass = format!("location / {{ proxy_pass {to}; proxy_bind {from}; {header} }}");
    let nginx = Nginx::serve(Path::new("/nowhere"), &pass);
    let (_, port) = nginx
        .host()
        .rsplit_once(':')
        .map(|(host, port)| (host.to_owned(), port.to_owned()))
        .expect("has a port");
    let address = format!("127.0.0.1:{port}").parse().expect("is an address");
    (nginx, address)
}

/// What the line of the log says of who asked.
fn client(line: &str) -> (String, Option<String>) {
    let line: Value = serde_json::from_str(line).expect("is JSON");
    let text = |key: &str| line[key].as_str().map(str::to_owned);
    (text("client").expect("is there"), text("proxy"))
}

#[cfg(target_os = "linux")]
#[test]
fn a_trusted_proxy_says_who_asks_and_nobody_else_can() {
    let sandbox = Sandbox::new();
    sandbox.mu(&["hub", "init", "../srv"]).ok();
    let more = ["--trusted-proxy", PROXY, "--changes-per-minute", "2"];
    let served = Served::start(&sandbox, "../srv", &more);
    let usual = "proxy_set_header X-Forwarded-For $proxy_add_x_forwarded_for;";
    let (_near, near) = proxy(&served.url(), PROXY, usual);
    // A client of the proxy that has another address.
    let (_other, other) = proxy(&format!("http://{near}/"), "127.0.0.2", "");
    let standard = "proxy_set_header Forwarded \"for=$remote_addr;proto=$scheme\";";
    let (_standard, standard) = proxy(&served.url(), PROXY, standard);

    let forged = ["x-forwarded-for: 192.0.2.1", "forwarded: for=192.0.2.1"];
    let ask = |to: SocketAddr, headers: &[&str]| {
        let answer = Served::try_ask_at(to, "GET", "/hub.json", headers, &[]);
        answer.expect("is answered").is(200);
    };
    ask(near, &[]);
    ask(other, &[]);
    ask(near, &forged[..1]);
    // The header that a proxy does not write comes from its client.
    ask(near, &forged[1..]);
    ask(standard, &[]);
    ask(standard, &forged[..1]);
    ask(served.address, &forged);

    // Each client has its own limit, whatever it claims.
    let change = |to: SocketAddr, headers: &[&str]| {
        let path = "/api/v1/packages/acme/web/1.0.0";
        Served::try_ask_at(to, "PUT", path, headers, &[]).expect("is answered").status
    };
    assert_eq!([change(near, &[]), change(near, &forged[..1]), change(near, &[])], [401, 401, 429]);
    assert_eq!([change(near, &forged[..1]), change(served.address, &forged)], [429, 429]);
    assert_eq!([change(other, &[]), change(other, &[]), change(other, &[])], [401, 401, 429]);
    // The counters are for programs of this machine.
    let answer = Served::try_ask_at(near, "GET", "/metrics", &[], &[]).expect("is answered");
    answer.is(403);

    let (_, log) = served.end();
    let clients: Vec<_> = log.iter().map(|line| client(line)).collect();
    let behind = |client: &str| (client.to_owned(), Some(PROXY.to_owned()));
    let expected = [
        behind("127.0.0.1"),
        behind("127.0.0.2"),
        behind("127.0.0.1"),
        (PROXY.to_owned(), None),
        behind("127.0.0.1"),
        (PROXY.to_owned(), None),
        ("127.0.0.1".to_owned(), None),
    ];
    assert_eq!(clients[..expected.len()], expected);
}

#[test]
fn what_is_no_address_of_a_proxy_is_refused() {
    let sandbox = Sandbox::new();
    sandbox.mu(&["hub", "init", "../srv"]).ok();
    for (wrong, expected) in [
        ("localhost", "expected an address such as 10.0.0.1, or a network such as 10.0.0.0/8"),
        ("0.0.0.0/0", "everybody is in this network"),
        ("10.0.0.1/8", "10.0.0.1 is inside of a network of 8 bits, not its beginning"),
    ] {
        let run = sandbox.mu(&["hub", "serve", "../srv", "--trusted-proxy", wrong]);
        assert_eq!(run.status, 2);
        run.says(&[expected]);
    }
}

#[test]
fn a_hub_below_a_path_says_whose_a_token_is() {
    let sandbox = Sandbox::new();
    sandbox.mu(&["hub", "init", "../srv"]).ok();
    let add = ["hub", "token", "add", "../srv", "ada", "--namespace", "acme"];
    let token = sandbox.mu(&add).ok().stdout.trim().to_owned();
    let served = Served::start(&sandbox, "../srv", &["--private"]);
    let pass = format!("location /mu/ {{ proxy_pass {}; }}", served.url());
    let nginx = Nginx::serve(Path::new("/nowhere"), &pass);
    let host = nginx.host();
    let run = send(&sandbox, &["login", &host], &token);
    run.says(&[&format!("`mu login {host}/PATH`")]);
    send(&sandbox, &["login", &format!("{host}/mu")], &token).ok().says(&["knows it as `ada`"]);
    sandbox.mu(&["logout", &host]).ok();
    // The settings know the path, and hints name the host.
    sandbox.hub_is_at(&nginx.url("mu/"));
    send(&sandbox, &["login", &host], &token).ok().says(&["knows it as `ada`"]);
    sandbox.mu(&["whoami", &host]).ok().says(&["ada"]);
}

#[test]
fn a_proxy_that_takes_no_large_bodies_is_told() {
    let mut sandbox = Sandbox::new();
    sandbox.mu(&["hub", "init", "../srv"]).ok();
    let add = ["hub", "token", "add", "../srv", "ada", "--namespace", "acme"];
    let token = sandbox.mu(&add).ok().stdout.trim().to_owned();
    let served = Served::start(&sandbox, "../srv", &[]);
    let registry = DockerRegistry::start();
    sandbox.write("Mu.yaml", "name: acme/web\nversion: 1.0.0\n");
    std::fs::write(sandbox.path("work/blob"), incompressible(20_000)).expect("is ours");
    for (to, scheme) in [(served.url(), "http"), (format!("http://{}/", registry.host()), "oci")] {
        let pass = format!(
            "client_max_body_size 10k; location / {{ proxy_pass {to}; proxy_set_header Host $http_host; }}"
        );
        let nginx = Nginx::serve(Path::new("/nowhere"), &pass);
        sandbox.set_token(&nginx.host(), &token);
        let place = format!("{scheme}://{}/mu", nginx.host());
        let place = place.strip_suffix("/mu").filter(|_| scheme == "http").unwrap_or(&place);
        let run = sandbox.mu(&["publish", "--to", place]).fails();
        run.says(&["413", "`client_max_body_size` sets how large they may be"]);
    }
}
