//! Choosing versions with an empty cache, over HTTP/2 and TLS, from far away; and asking again later.

use std::time::Duration;

use crate::data::Data;
use crate::delay;
use crate::measure::{Contestant, in_turns, remove, run};
use crate::report::{self, UNBOUNDED, bounds};
use crate::rows::resolve::{prepare, uv_compile};
use crate::web::AUTHORITY;

/// How much longer a question and its answer take than on this machine alone.
const ROUND_TRIP: Duration = Duration::from_millis(20);

pub(crate) fn measure(data: &Data) {
    cold(data);
    expired(data);
}

fn cold(data: &Data) {
    let port = delay::serve(data.web.tls_port, ROUND_TRIP);
    let place = data.place("latency");
    let authority = &place.join("authority.pem");
    place.write("authority.pem", AUTHORITY);
    prepare(data, &place, 300, &format!("https://localhost:{port}/graph/"));
    let mu = || {
        let mut command = place.mu(&["resolve"]);
        command.env("SSL_CERT_FILE", authority);
        command
    };
    let asked = data.traffic(|| run(&mut mu()));
    println!("\n#### Resolving 300 requirements from afar\n");
    println!("- cold: {} requests, {} bytes", asked.requests, asked.bytes);
    let mut contestants = vec![Contestant {
        name: "mu resolve",
        prepare: Box::new(|| remove(&place.join("cache"))),
        command: Box::new(mu),
    }];
    if let Some(uv) = &data.uv {
        let compile = uv_compile(uv, &place, format!("https://localhost:{port}/simple/"));
        contestants.push(Contestant {
            name: compile.name,
            prepare: Box::new(|| remove(&place.join("uv-cache"))),
            command: Box::new(move || {
                let mut command = (compile.command)();
                command.env("SSL_CERT_FILE", authority);
                command
            }),
        });
    }
    let results = in_turns(data.rounds.min(5), &contestants);
    let work = "resolve 300, cold, HTTP/2, 20 ms round trip";
    report::times(work, &results);
    data.standing.ratio(work, &results, "uv pip compile", UNBOUNDED);
}

/// A warm index that says itself that it must be asked about.
fn expired(data: &Data) {
    let place = data.place("expired");
    prepare(data, &place, 300, &data.web.url("graph-now/"));
    let resolve = || place.mu(&["resolve"]);
    run(&mut resolve());
    let again = data.traffic(|| run(&mut resolve()));
    println!("\n#### Resolving 300 requirements again, with `max-age=0`\n");
    println!("- {} requests, {} bytes", again.requests, again.bytes);
    let requests = Some(again.requests as f64);
    data.standing.figure(
        "freshness of a warm index, `max-age=0`",
        requests,
        "requests",
        bounds(1.0, 1.0),
    );
}
