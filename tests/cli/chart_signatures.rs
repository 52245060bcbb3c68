//! Charts that their authors have signed with OpenPGP: the statement beside an archive in a chart repository, and as a layer in an OCI
//! registry. The real Helm verifies the same archives with the same keys, and says the same.

use std::fs;

use mu_testing::{Artifact, DockerRegistry, Signer};

use crate::support::{Chart, Charts, Helm, Nginx, Sandbox, hex, write};

/// The media type of the layer with a statement, as Helm has it.
const PROVENANCE: &str = "application/vnd.cncf.helm.chart.provenance.v1.prov";

/// A chart repository, and a user with a rule for what is in it.
pub(super) struct Repository {
    pub(super) sandbox: Sandbox,
    pub(super) charts: Charts,
    pub(super) nginx: Nginx,
}

/// The lines that let packages below `pattern` be signed by these keys alone.
fn rule(pattern: &str, signers: &[&Signer]) -> String {
    let mut text = "trust:\n  signers:\n".to_owned();
    let mut names = Vec::new();
    for (at, signer) in signers.iter().enumerate() {
        let lines = signer.public().replace('\n', "\n      ");
        text.push_str(&format!("    s{at}: |-\n      {}\n", lines.trim_end()));
        names.push(format!("s{at}"));
    }
    text + &format!("  packages: {{\"{pattern}\": {{signedBy: [{}]}}}}\n", names.join(", "))
}

impl Repository {
    pub(super) fn new(signers: &[&Signer]) -> Self {
        let mut sandbox = Sandbox::new();
        let charts = Charts::new(&sandbox.path("www/stable"));
        let nginx = Nginx::serve(&sandbox.path("www"), "");
        sandbox.replace(&nginx.host(), "[HOST]");
        let rule = rule(&format!("{}/stable/*", nginx.host()), signers);
        write(&sandbox.path("home/.mu"), "config.yaml", rule);
        Self { sandbox, charts, nginx }
    }

    pub(super) fn chart(&self, rest: &str) -> String {
        format!("helm+{}", self.nginx.url(&format!("stable/{rest}")))
    }

    /// Adds a version, with this statement beside it.
    pub(super) fn add(&mut self, chart: &Chart, file: &str, statement: &[u8]) {
        self.charts.add(chart);
        self.put(file, statement);
    }

    /// Puts a statement beside an archive.
    fn put(&self, file: &str, statement: &[u8]) {
        fs::write(self.sandbox.path(&format!("www/stable/{file}.prov")), statement)
            .expect("can be written");
    }
}

/// What Helm writes beside an archive.
fn statement(chart: &Chart, file: &str, archive: &[u8]) -> String {
    format!("{}\n...\nfiles:\n  {file}: sha256:{}\n", chart.manifest(), hex(archive))
}

/// As on another machine.
fn forget(sandbox: &Sandbox) {
    for path in ["cache", "work/.mu/packs"] {
        let _ = fs::remove_dir_all(sandbox.path(path));
    }
    let _ = fs::remove_file(sandbox.path("work/Mu.lock"));
}

#[test]
fn the_newest_chart_that_is_signed_is_chosen() {
    let signer = Signer::new();
    let mut repository = Repository::new(&[&signer]);
    let (signed, stranger) = (Chart::new("web", "1.0.0"), Signer::new());
    let made = signer.provenance(&signed.manifest(), "web-1.0.0.tgz", &signed.archive());
    repository.add(&signed, "web-1.0.0.tgz", &made);
    let other = Chart::new("web", "1.1.0");
    let made = stranger.provenance(&other.manifest(), "web-1.1.0.tgz", &other.archive());
    repository.add(&other, "web-1.1.0.tgz", &made);
    repository.charts.add(&Chart::new("web", "1.2.0"));
    let sandbox = &repository.sandbox;
    sandbox.asks_for(&[&repository.chart("web#^1")]);
    let run = sandbox.mu(&["get"]).ok();
    run.says(&[
        "web 1.0.0",
        "1.2.0 and 1 more passed over: no signature (looked at",
        "web-1.2.0.tgz.prov",
    ]);
    let entry = &sandbox.lock()["packages"][0];
    let by = entry["signedBy"][0].as_str().expect("is a text");
    assert!(by.starts_with("pgp:") && by.len() == 44, "{entry}");
    // A lock that stays asks nobody, and another machine finds the same.
    let before = repository.nginx.log().len();
    sandbox.mu(&["get"]).ok().says(&["up to date"]);
    assert_eq!(repository.nginx.log().len(), before);
    let lock = sandbox.read("Mu.lock");
    forget(sandbox);
    sandbox.write("Mu.lock", &lock);
    sandbox.mu(&["get", "--locked"]).ok();
    let shown = sandbox.mu(&["trust", "show", &repository.chart("web#1.1.0")]).ok();
    shown.says(&["prov", "web-1.1.0.tgz.prov", "not accepted"]);
    // Its author signs it later.
    let made = signer.provenance(&other.manifest(), "web-1.1.0.tgz", &other.archive());
    repository.put("web-1.1.0.tgz", &made);
    sandbox.mu(&["update"]).ok().says(&["web 1.0.0 → 1.1.0", "1.2.0 passed over"]);
}

#[test]
fn keys_of_each_kind_sign_charts_and_helm_agrees_where_it_can() {
    let kinds = [
        ("rsa", "Key-Type: RSA\nKey-Length: 2048\n", true),
        (
            "subkey",
            "Key-Type: RSA\nKey-Length: 2048\nKey-Usage: cert\nSubkey-Type: RSA\nSubkey-Length: 2048\nSubkey-Usage: sign\n",
            true,
        ),
        ("ed", "Key-Type: EDDSA\nKey-Curve: ed25519\nKey-Usage: sign\n", false),
        (
            "edsub",
            "Key-Type: EDDSA\nKey-Curve: ed25519\nKey-Usage: cert\nSubkey-Type: EDDSA\nSubkey-Curve: ed25519\nSubkey-Usage: sign\n",
            false,
        ),
    ];
    for (name, kind, helm_reads_it) in kinds {
        let signer = Signer::with(kind);
        let mut repository = Repository::new(&[&signer]);
        let chart = Chart::new(name, "1.0.0");
        let (file, archive) = (format!("{name}-1.0.0.tgz"), chart.archive());
        let other = Chart::new(name, "1.0.0").lines("description: another\n").archive();
        // Each statement, and whether it vouches for the archive that is there.
        let statements = [
            (signer.clearsign(&statement(&chart, &file, &archive), "SHA256"), true),
            (signer.provenance(&chart.manifest(), &file, &archive), true),
            (signer.provenance(&chart.manifest(), &file, &other), false),
            (signer.provenance(&chart.manifest(), "other-1.0.0.tgz", &archive), false),
            (Signer::with(kind).provenance(&chart.manifest(), &file, &archive), false),
        ];
        repository.charts.add(&chart);
        for (at, (statement, is_good)) in statements.iter().enumerate() {
            repository.put(&file, statement);
            let sandbox = &repository.sandbox;
            forget(sandbox);
            sandbox.asks_for(&[&repository.chart(name)]);
            let run = sandbox.mu(&["get"]);
            if *is_good {
                run.ok();
            } else {
                run.fails().says(&["that fits is signed as your rules ask"]);
            }
            for helm in Helm::all().into_iter().filter(|_| helm_reads_it) {
                let archive = sandbox.path(&format!("www/stable/{file}")).display().to_string();
                let keyring = signer.keyring().display().to_string();
                let verify = ["verify", &archive, "--keyring", &keyring];
                let verified = helm.run(&sandbox.path("helm"), &verify).is_ok();
                assert_eq!(verified, *is_good, "{helm:?} {name} {at}");
            }
        }
    }
}

#[test]
fn what_is_not_inside_of_the_signed_text_counts_for_nothing() {
    let signer = Signer::new();
    let mut repository = Repository::new(&[&signer]);
    let chart = Chart::new("web", "1.0.0");
    let (file, archive) = ("web-1.0.0.tgz", chart.archive());
    let good = statement(&chart, file, &archive);
    let wrong = statement(&chart, file, b"another archive");
    repository.charts.add(&chart);
    let text = |bytes: Vec<u8>| String::from_utf8(bytes).expect("is ASCII");
    let signed = text(signer.clearsign(&good, "SHA512"));
    let over_other = text(signer.clearsign(&wrong, "SHA512"));
    for (statement, is_good) in [
        // Lines that end as on Windows, blanks at their ends, and a line that begins with a dash.
        (signed.replace('\n', "\r\n"), true),
        (signed.replace("apiVersion: v2\n", "apiVersion: v2  \t\n"), true),
        (text(signer.clearsign(&format!("- a dash\n{good}"), "SHA512")), true),
        // Something in front of it, or behind it.
        (format!("{good}\n{over_other}"), false),
        (format!("{over_other}\n{good}"), false),
        // A byte more in the text, and an algorithm that is broken.
        (signed.replace("name: web", "name: wob"), false),
        (text(signer.clearsign(&good, "SHA1")), false),
        (good.clone(), false),
    ] {
        repository.put(file, statement.as_bytes());
        let sandbox = &repository.sandbox;
        forget(sandbox);
        sandbox.asks_for(&[&repository.chart("web")]);
        let run = sandbox.mu(&["get", "--json"]);
        match is_good {
            true => drop(run.ok()),
            false => drop(run.fails_with("untrusted")),
        }
    }
}

#[test]
fn an_index_without_a_digest_ties_nothing_to_a_statement() {
    let signer = Signer::new();
    let mut repository = Repository::new(&[&signer]);
    let chart = Chart::new("web", "1.0.0").listed("digest: ''\n");
    let made = signer.provenance(&chart.manifest(), "web-1.0.0.tgz", &chart.archive());
    repository.add(&chart, "web-1.0.0.tgz", &made);
    let sandbox = &repository.sandbox;
    sandbox.asks_for(&[&repository.chart("web")]);
    let says = "nothing but the statement itself says which archive it is";
    sandbox.mu(&["get"]).fails().says(&[says]);
}

#[test]
fn a_place_that_refuses_a_statement_is_not_one_without() {
    let signer = Signer::new();
    let mut sandbox = Sandbox::new();
    let mut charts = Charts::new(&sandbox.path("www/stable"));
    charts.add(&Chart::new("web", "1.0.0"));
    let nginx = Nginx::serve(&sandbox.path("www"), "location ~ prov$ { return 403; }");
    sandbox.replace(&nginx.host(), "[HOST]");
    let rule = rule(&format!("{}/stable/*", nginx.host()), &[&signer]);
    write(&sandbox.path("home/.mu"), "config.yaml", rule);
    sandbox.asks_for(&[&format!("helm+{}", nginx.url("stable/web"))]);
    sandbox.mu(&["get", "--json"]).fails_with("auth");
}

#[test]
fn a_layer_of_a_chart_vouches_for_it_wherever_it_is_copied_to() {
    let signer = Signer::new();
    let (mut sandbox, registry, other) =
        (Sandbox::new(), DockerRegistry::start(), DockerRegistry::start());
    let (host, there) = (registry.host(), other.host());
    sandbox.replace(&host, "[HOST]");
    write(&sandbox.path("home/.mu"), "config.yaml", rule(&format!("{host}/charts/*"), &[&signer]));
    let push = |version: &str, statement: Option<&[u8]>| {
        let chart = Chart::new("web", version);
        let artifact = Artifact::chart(&chart);
        let artifact = match statement {
            Some(bytes) => artifact.layer(PROVENANCE, bytes, &[]),
            None => artifact,
        };
        for host in [&host, &there] {
            artifact.push(host, "charts/web", version);
        }
    };
    let good = Chart::new("web", "1.0.0");
    let made = signer.provenance(&good.manifest(), "web-1.0.0.tgz", &good.archive());
    push("1.0.0", Some(&made));
    // A good statement, but about another version.
    push("1.1.0", Some(&made));
    push("1.2.0", None);
    sandbox.asks_for(&[&format!("oci://{host}/charts/web#^1")]);
    sandbox.mu(&["get"]).ok().says(&["web 1.0.0", "passed over"]);
    let signed_by = sandbox.lock()["packages"][0]["signedBy"].clone();
    assert!(signed_by[0].as_str().is_some_and(|by| by.starts_with("pgp:")), "{signed_by}");
    // A mirror changes nothing about that.
    let lead = format!("registries: {{{host}/: \"oci://{there}\"}}\n");
    sandbox.write(".mu/workspace.yaml", &lead);
    drop(registry);
    for folder in ["cache", "work/.mu/packs"] {
        let _ = fs::remove_dir_all(sandbox.path(folder));
    }
    sandbox.mu(&["get", "--locked"]).ok();
}
