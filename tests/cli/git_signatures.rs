//! Tags and commits that are signed with SSH or OpenPGP. Git itself verifies the same objects with the same keys, and says the same where
//! it looks at the same: it does not compare the name of a tag with the one that was asked for.

use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;

use mu_testing::{SecurityKey, Signer};
use serde_json::json;

use crate::support::git::{HttpServer, Origin, variables};
use crate::support::{Run, Sandbox, write};

/// Somebody who signs, as Git calls it.
pub(super) struct Author {
    /// The options of Git with which it signs.
    options: Vec<String>,
    /// The options with which Git verifies, if only this one may sign.
    verifying: Vec<String>,
    /// The text of the public key.
    pub(super) public: String,
    _pgp: Option<Signer>,
}

impl Author {
    /// With a key of OpenSSH.
    pub(super) fn ssh(sandbox: &Sandbox, name: &str, kind: &[&str]) -> Self {
        let folder = sandbox.path("keys");
        fs::create_dir_all(&folder).expect("can be made");
        let key = folder.join(name);
        let file = key.to_str().expect("is UTF-8");
        let made = Command::new("ssh-keygen")
            .args(["-q", "-N", "", "-C", "ada@example.com", "-f", file])
            .args(kind)
            .status();
        assert!(made.expect("these tests need ssh-keygen").success());
        let public = fs::read_to_string(key.with_extension("pub")).expect("was written");
        let options = vec!["gpg.format=ssh".to_owned(), format!("user.signingkey={file}")];
        Self::of_line(sandbox, name, public, options)
    }

    /// With the line of a public key.
    fn of_line(sandbox: &Sandbox, name: &str, public: String, options: Vec<String>) -> Self {
        let line = format!("ada@example.com namespaces=\"git\" {public}");
        write(&sandbox.path("keys"), &format!("{name}.allowed"), line);
        let allowed = sandbox.path(&format!("keys/{name}.allowed"));
        let verifying = vec![format!("gpg.ssh.allowedSignersFile={}", allowed.display())];
        Self { options, verifying, public, _pgp: None }
    }

    /// With a key of OpenPGP.
    fn pgp(sandbox: &Sandbox, name: &str, kind: &str) -> Self {
        let signer = Signer::with(kind);
        let home = signer.keyring().parent().expect("is in a folder").to_owned();
        let program = program(&sandbox.path("keys"), name, &home);
        let program = format!("gpg.program={}", program.display());
        Self {
            options: vec![program.clone(), "user.signingkey=ada@acme.example".to_owned()],
            verifying: vec![program],
            public: signer.public(),
            _pgp: Some(signer),
        }
    }

    pub(super) fn git(&self, origin: &Origin, arguments: &[&str]) {
        let options = self.options.iter().flat_map(|option| ["-c", option]);
        origin.git(&options.chain(arguments.iter().copied()).collect::<Vec<_>>());
    }

    /// Whether Git says that a tag or a commit is signed by this one.
    fn verifies(&self, origin: &Origin, what: &str, name: &str) -> bool {
        let options = self.verifying.iter().flat_map(|option| ["-c", option]);
        let run = Command::new(mu_testing::program("git"))
            .args(options)
            .args([what, name])
            .current_dir(origin.folder())
            .env_clear()
            .envs(variables(origin.folder()))
            .output();
        run.expect("git runs").status.success()
    }
}

/// A program that is `gpg` with this home.
fn program(folder: &Path, name: &str, home: &Path) -> PathBuf {
    use std::os::unix::fs::PermissionsExt as _;
    write(folder, name, format!("#!/bin/sh\nexec gpg --homedir {} \"$@\"\n", home.display()));
    let path = folder.join(name);
    fs::set_permissions(&path, fs::Permissions::from_mode(0o755)).expect("is ours");
    path
}

/// What a user's file says who lets only this one sign.
pub(super) fn rule(author: &Author) -> String {
    let lines = author.public.trim_end().replace('\n', "\n      ");
    format!(
        "trust:\n  signers:\n    ada: |-\n      {lines}\n  packages: {{\"*\": {{signedBy: [ada]}}}}\n"
    )
}

/// As on another machine.
fn forget(sandbox: &Sandbox) {
    for folder in ["cache", "work/.mu/packs"] {
        let _ = fs::remove_dir_all(sandbox.path(folder));
    }
}

#[test]
fn tags_and_commits_are_accepted_where_git_verifies_them() {
    type Make = fn(&Sandbox, &str) -> Author;
    let kinds: [Make; 5] = [
        |sandbox, name| Author::ssh(sandbox, name, &["-t", "ed25519"]),
        |sandbox, name| Author::ssh(sandbox, name, &["-t", "ecdsa", "-b", "256"]),
        |sandbox, name| Author::ssh(sandbox, name, &["-t", "rsa", "-b", "2048"]),
        |sandbox, name| Author::pgp(sandbox, name, "Key-Type: RSA\nKey-Length: 2048\n"),
        |sandbox, name| {
            Author::pgp(sandbox, name, "Key-Type: EDDSA\nKey-Curve: ed25519\nKey-Usage: sign\n")
        },
    ];
    for make in kinds {
        let sandbox = Sandbox::new();
        let (ada, stranger) = (make(&sandbox, "ada"), make(&sandbox, "stranger"));
        let origin = Origin::new("web.git");
        let commit = |mark: &str| origin.commit(&[("Mu.yaml", "name: web\n"), ("mark", mark)]);
        let sign = |author: &Author, tag: &str, target: &str| {
            author.git(&origin, &["tag", "-s", "-m", "a release", tag, target]);
        };
        sign(&ada, "v1.0.0", &commit("a"));
        sign(&stranger, "v1.1.0", &commit("b"));
        // An unsigned tag of a signed commit counts alone.
        commit("c");
        ada.git(&origin, &["commit", "-S", "--allow-empty", "-m", "signed"]);
        origin.git(&["tag", "-a", "-m", "no signature", "v1.2.0"]);
        // The object of another tag, and a tag of a tag.
        let signed = origin.git(&["rev-parse", "v1.0.0"]);
        origin.git(&["update-ref", "refs/tags/v1.3.0", &signed]);
        sign(&ada, "v1.4.0", "v1.0.0");
        // A tag whose name was changed, under its old signature.
        let text = origin.git(&["cat-file", "tag", "v1.0.0"]) + "\n";
        let text = text.replace("tag v1.0.0\n", "tag v1.5.0\n");
        let changed = origin.object("tag", text.as_bytes());
        origin.git(&["update-ref", "refs/tags/v1.5.0", &changed]);
        // Tags that are names alone, of commits with a signature and without.
        commit("d");
        ada.git(&origin, &["commit", "-S", "--allow-empty", "-m", "signed, too"]);
        origin.git(&["tag", "v1.6.0"]);
        commit("e");
        origin.git(&["tag", "v1.7.0"]);
        let server = HttpServer::start(origin.root());
        write(&sandbox.path("home/.mu"), "config.yaml", rule(&ada));
        let place = format!("{}web.git", server.root());
        for (tag, is_accepted, git_looks_at_it) in [
            ("v1.0.0", true, true),
            ("v1.1.0", false, true),
            ("v1.2.0", false, true),
            ("v1.3.0", false, false),
            ("v1.4.0", false, false),
            ("v1.5.0", false, true),
        ] {
            let reference = format!("{place}#{}", tag.trim_start_matches('v'));
            let shown = sandbox.mu(&["trust", "show", &reference, "--json"]).ok().json();
            assert_eq!(shown["accepted"], json!(is_accepted), "{tag} {shown}");
            // A key of OpenPGP that is in the ring and that no rule names is no matter for Git.
            if git_looks_at_it {
                assert_eq!(ada.verifies(&origin, "verify-tag", tag), is_accepted, "{tag}");
            }
        }
        assert!(ada.verifies(&origin, "verify-commit", "v1.6.0^{commit}"));
        assert!(!ada.verifies(&origin, "verify-commit", "v1.7.0^{commit}"));
        sandbox.asks_for(&[&format!("{place}#^1")]);
        sandbox.mu(&["get"]).ok().says(&["1.6.0 is used, and 1.7.0 passed over"]);
        let entry = &sandbox.lock()["packages"][0];
        let by = entry["signedBy"][0].as_str().expect("is a text");
        assert!(by.starts_with("ssh:SHA256:") || by.starts_with("pgp:"), "{entry}");
        let before = server.requests().len();
        sandbox.mu(&["get"]).ok().says(&["up to date"]);
        assert_eq!(server.requests().len(), before);
        forget(&sandbox);
        sandbox.mu(&["get", "--locked"]).ok();
        // The objects are here, so they can be verified again without the network.
        let _ = fs::remove_dir_all(sandbox.path("cache/trust"));
        sandbox.mu(&["get", "--offline"]).ok();
    }
}

#[test]
fn security_keys_sign_tags_if_somebody_touches_them() {
    for is_ecdsa in [true, false] {
        let sandbox = Sandbox::new();
        let (key, origin) = (SecurityKey::new(is_ecdsa), Origin::new("web.git"));
        let ada = Author::of_line(&sandbox, "ada", key.public(), Vec::new());
        for (tag, is_touched) in [("v1.0.0", true), ("v1.1.0", false)] {
            let commit = origin.commit(&[("Mu.yaml", "name: web\n"), ("mark", tag)]);
            let who = "Ada <ada@example.com> 1700000000 +0000";
            let text =
                format!("object {commit}\ntype commit\ntag {tag}\ntagger {who}\n\na release\n");
            let signature = key.sign("git", text.as_bytes(), is_touched);
            let object = origin.object("tag", format!("{text}{signature}").as_bytes());
            origin.git(&["update-ref", &format!("refs/tags/{tag}"), &object]);
        }
        assert!(ada.verifies(&origin, "verify-tag", "v1.0.0"), "{}", ada.public);
        let server = HttpServer::start(origin.root());
        write(&sandbox.path("home/.mu"), "config.yaml", rule(&ada));
        sandbox.asks_for(&[&format!("{}web.git#^1", server.root())]);
        let run = sandbox.mu(&["get"]).ok();
        run.says(&["1.1.0 passed over", "nobody was present at the security key"]);
        let by = sandbox.lock()["packages"][0]["signedBy"][0].clone();
        assert!(by.as_str().is_some_and(|by| by.starts_with("ssh:SHA256:")), "{by}");
    }
}

#[test]
fn a_tag_that_was_moved_vouches_for_nothing_that_is_locked() {
    let sandbox = Sandbox::new();
    let ada = Author::ssh(&sandbox, "ada", &["-t", "ed25519"]);
    let origin = Origin::new("web.git");
    origin.commit(&[("Mu.yaml", "name: web\n")]);
    ada.git(&origin, &["tag", "-s", "-m", "a release", "v1.0.0"]);
    let server = HttpServer::start(origin.root());
    write(&sandbox.path("home/.mu"), "config.yaml", rule(&ada));
    sandbox.asks_for(&[&format!("{}web.git#^1", server.root())]);
    sandbox.mu(&["get"]).ok();
    let lock = sandbox.read("Mu.lock");
    origin.commit(&[("more", "of it\n")]);
    ada.git(&origin, &["tag", "-s", "-f", "-m", "again", "v1.0.0"]);
    forget(&sandbox);
    sandbox.mu(&["get", "--locked", "--json"]).fails_with("untrusted");
    assert_eq!(sandbox.read("Mu.lock"), lock);
}

#[test]
fn a_tag_that_is_signed_later_is_seen_when_versions_are_chosen_again() {
    let sandbox = Sandbox::new();
    let ada = Author::ssh(&sandbox, "ada", &["-t", "ed25519"]);
    let origin = Origin::new("web.git");
    origin.commit(&[("Mu.yaml", "name: web\n")]);
    ada.git(&origin, &["tag", "-s", "-m", "a release", "v1.0.0"]);
    origin.commit(&[("Mu.yaml", "name: web\ndescription: newer\n")]);
    origin.git(&["tag", "v1.1.0"]);
    let server = HttpServer::start(origin.root());
    write(&sandbox.path("home/.mu"), "config.yaml", rule(&ada));
    sandbox.asks_for(&[&format!("{}web.git#^1", server.root())]);
    sandbox.mu(&["get"]).ok().says(&["1.1.0 passed over"]);
    assert_eq!(sandbox.lock()["packages"][0]["version"], "1.0.0");
    // The same commit, now with an object of its own for the tag.
    ada.git(&origin, &["tag", "-s", "-f", "-m", "a release", "v1.1.0"]);
    sandbox.mu(&["update"]).ok().does_not_say(&["passed over"]);
    assert_eq!(sandbox.lock()["packages"][0]["version"], "1.1.0");
    let before = server.requests().len();
    sandbox.mu(&["get"]).ok();
    assert_eq!(server.requests().len(), before);
}

#[test]
fn a_repository_of_another_name_is_another_package() {
    let sandbox = Sandbox::new();
    let ada = Author::ssh(&sandbox, "ada", &["-t", "ed25519"]);
    let origin = Origin::new("web.git");
    origin.commit(&[("Mu.yaml", "name: acme/other\n")]);
    ada.git(&origin, &["tag", "-s", "-m", "a release", "v1.0.0"]);
    let server = HttpServer::start(origin.root());
    write(&sandbox.path("home/.mu"), "config.yaml", rule(&ada));
    sandbox.asks_for(&[&format!("{}web.git#^1", server.root())]);
    sandbox.mu(&["get"]).fails().says(&["is a package named `acme/other`"]);
}

#[test]
fn allowed_signers_files_mean_what_they_mean_to_git() {
    let sandbox = Sandbox::new();
    let ada = Author::ssh(&sandbox, "ada", &["-t", "ed25519"]);
    let stranger = Author::ssh(&sandbox, "stranger", &["-t", "ed25519"]);
    let origin = Origin::new("web.git");
    origin.commit(&[("Mu.yaml", "name: web\n")]);
    // What Git's commits and tags are dated here.
    let date = origin.git(&["log", "-1", "--format=%cd", "--date=format:%Y%m%d"]);
    let (before, after) = ("19990101", "20990101");
    assert!(before < &*date && &*date < after, "{date}");
    ada.git(&origin, &["tag", "-s", "-m", "a release", "v1.0.0"]);
    let server = HttpServer::start(origin.root());
    let reference = format!("{}web.git#1.0.0", server.root());
    write(
        &sandbox.path("home/.mu"),
        "config.yaml",
        "trust: {signers: {ada: signers}, packages: {\"*\": {signedBy: [ada]}}}\n",
    );
    let (key, other) = (ada.public.trim_end(), stranger.public.trim_end());
    let options = |options: &str| format!("ada@example.com {options} {key}\n");
    for (text, is_accepted) in [
        (format!("ada@example.com {key}\n"), true),
        (format!("# Ada\r\n\r\nada@example.com {key}\r\n"), true),
        (format!("stranger@example.com {other}\n\"ada@example.com,*@b.example\" {key}\n"), true),
        (format!("stranger@example.com {other}\n"), false),
        (format!("# ada@example.com {key}\nstranger@example.com {other}\n"), false),
        (options("namespaces=\"git\""), true),
        (options("namespaces=\"file,git\""), true),
        (options("NAMESPACES=\"g*\""), true),
        (options("namespaces=\"file\""), false),
        (options("namespaces=\"file\"") + &options("namespaces=\"git\""), true),
        (options(&format!("valid-after=\"{before}\"")), true),
        (options(&format!("valid-after=\"{after}\"")), false),
        (options(&format!("valid-before=\"{after}Z\"")), true),
        (options(&format!("valid-before=\"{before}0000Z\"")), false),
        (
            options(&format!(
                "namespaces=\"git\",valid-after=\"{before}\",valid-before=\"{after}000000\""
            )),
            true,
        ),
        (options("cert-authority"), false),
        (options("no-such-option"), false),
        (options("valid-after=\"soon\""), false),
    ] {
        write(&sandbox.path("home/.mu"), "signers", &text);
        write(&sandbox.path("keys"), "ada.allowed", &text);
        assert_eq!(ada.verifies(&origin, "verify-tag", "v1.0.0"), is_accepted, "Git: {text}");
        let run = sandbox.mu(&["trust", "show", &reference, "--json"]);
        let is_shown = run.stdout.contains("\"accepted\": true");
        assert_eq!(is_shown, is_accepted, "{text}\n{}{}", run.stdout, run.stderr);
    }
    // What limits a key is said, and a line that cannot be used is an error, also beside others.
    write(&sandbox.path("home/.mu"), "signers", options("namespaces=\"file\""));
    sandbox
        .mu(&["trust", "show", &reference])
        .ok()
        .says(&["`ada` only with `namespaces=\"file\"`"]);
    write(&sandbox.path("home/.mu"), "signers", format!("{key}\n{}", options("cert-authority")));
    sandbox
        .mu(&["trust"])
        .fails()
        .says(&["signers`: the SSH key is not taken", "name the keys themselves"]);
}

/// A repository on this machine with a version that nobody has signed, which the workspace requires. Ids call it `web`, although no folder
/// has that name.
fn unsigned(sandbox: &Sandbox) -> Origin {
    let origin = Origin::new("web.git");
    origin.commit(&[("Mu.yaml", "name: web\n")]);
    origin.git(&["tag", "v1.0.0"]);
    sandbox.asks_for(&[&format!("git+file://{}#^1", origin.folder().display())]);
    origin
}

#[test]
fn content_of_a_repository_on_this_machine_is_allowed_as_the_error_says() {
    let sandbox = Sandbox::new();
    let ada = Author::ssh(&sandbox, "ada", &["-t", "ed25519"]);
    let origin = unsigned(&sandbox);
    let allow = |run: &Run| {
        let (_, command) = run.stderr.split_once("mu trust allow ").expect("names it");
        let name = command.lines().next().expect("has a name").trim_matches('\'').to_owned();
        sandbox.mu(&["trust", "allow", &name, "--yes"])
    };
    write(&sandbox.path("home/.mu"), "config.yaml", rule(&ada));
    // No list of the repository says what is in a version, so it is fetched, and nothing was locked before.
    let run = sandbox.mu(&["get"]).fails();
    allow(&run).ok().says(&["accepted as it is: h1:"]);
    sandbox.mu(&["get"]).ok();
    sandbox.mu(&["trust", "show", "web"]).ok().says(&["accepted"]);
    assert_eq!(sandbox.lock()["packages"][0]["version"], "1.0.0");
    // Another content under the same tag is not what was allowed.
    origin.commit(&[("other", "")]);
    origin.git(&["tag", "-f", "v1.0.0"]);
    fs::remove_file(sandbox.path("work/Mu.lock")).expect("is there");
    fs::remove_dir_all(sandbox.path("cache")).expect("is there");
    sandbox.mu(&["get", "--json"]).fails_with("untrusted");
    // What is allowed is a version: a commit is not.
    let commit = origin.git(&["rev-parse", "HEAD~1"]);
    let name = format!("git+file://{}#{}", origin.folder().display(), commit.trim());
    sandbox.mu(&["trust", "allow", &name, "--yes"]).fails().says(&["names a commit"]);
}

#[test]
fn a_rule_speaks_of_a_repository_on_this_machine_by_its_id() {
    let sandbox = Sandbox::new();
    let ada = Author::ssh(&sandbox, "ada", &["-t", "ed25519"]);
    let _origin = unsigned(&sandbox);
    sandbox.mu(&["get"]).ok();
    let id = sandbox.lock()["packages"][0]["id"].as_str().expect("is a text").to_owned();
    let (above, _) = id.rsplit_once('/').expect("has one");
    let digest = sandbox.lock()["packages"][0]["digest"].as_str().expect("is one").to_owned();
    for pattern in [id.clone(), format!("{above}/*")] {
        let rules = rule(&ada).replace("\"*\"", &format!("\"{pattern}\""));
        write(&sandbox.path("home/.mu"), "config.yaml", &rules);
        sandbox.mu(&["get", "--json"]).fails_with("untrusted");
        // So does what is accepted all the same.
        let allowed = format!("{rules}  allow: {{\"{id}#1.0.0\": \"{digest}\"}}\n");
        write(&sandbox.path("home/.mu"), "config.yaml", allowed);
        sandbox.mu(&["get"]).ok();
    }
}
