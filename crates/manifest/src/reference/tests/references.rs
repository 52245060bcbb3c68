//! What is accepted, and what it means.

use std::path::Path;

use crate::reference::{
    Alias, Aliases, Defaults, Name, PackageId, Protocol, Reference, VersionSpec,
};

/// Reads `text` and compares `id | path | fully qualified`.
fn check(text: &str, expected: &str) {
    check_in(&Defaults::default(), text, expected);
}

fn check_in(defaults: &Defaults, text: &str, expected: &str) {
    let reference = Reference::parse(text).unwrap_or_else(|error| panic!("{}", error.render()));
    let found = format!(
        "{} | {} | {}",
        reference.id(defaults),
        reference.path(),
        reference.qualified(defaults)
    );
    assert_eq!(found, expected, "{text}");
    assert_eq!(reference.to_string(), text);
}

#[test]
fn fills_in_what_was_left_out() {
    check("aws", "hub.mu.com/aws | aws | https://hub.mu.com/aws#latest");
    check("aws/ec2", "hub.mu.com/aws/ec2 | aws/ec2 | https://hub.mu.com/aws/ec2#latest");
    check("aws/ec2#^1.0.6", "hub.mu.com/aws/ec2 | aws/ec2 | https://hub.mu.com/aws/ec2#^1.0.6");
    check("acme.co/a/b", "acme.co/a/b | a/b | https://acme.co/a/b#latest");
    check("_x/9-y.z", "hub.mu.com/_x/9-y.z | _x/9-y.z | https://hub.mu.com/_x/9-y.z#latest");
}

#[test]
fn tells_bases_from_names() {
    check("utils.js", "hub.mu.com/utils.js | utils.js | https://hub.mu.com/utils.js#latest");
    check("localhost:8080/a", "localhost:8080/a | a | https://localhost:8080/a#latest");
    check(
        "localhost/a",
        "hub.mu.com/localhost/a | localhost/a | https://hub.mu.com/localhost/a#latest",
    );
    check("https://localhost/a", "localhost/a | a | https://localhost/a#latest");
    check("https://aws/ec2", "aws/ec2 | ec2 | https://aws/ec2#latest");
    check("http://localhost:8080/a", "localhost:8080/a | a | http://localhost:8080/a#latest");
}

#[test]
fn knows_one_host_by_all_its_spellings() {
    check("https://HUB.mu.COM/aws", "hub.mu.com/aws | aws | https://hub.mu.com/aws#latest");
    check("https://host:443/a", "host/a | a | https://host/a#latest");
    check("acme.co:443/a", "acme.co/a | a | https://acme.co/a#latest");
    check("http://host:80/a", "host/a | a | http://host/a#latest");
    check("http://host:443/a", "host:443/a | a | http://host:443/a#latest");
    check("ssh://git@host:22/a", "host/a | a | ssh://git@host/a#latest");
    check("git://host:9418/a", "host/a | a | git://host/a#latest");
    check("[::1]:8080/a", "[::1]:8080/a | a | https://[::1]:8080/a#latest");
    check("https://[0:0::1]/a", "[::1]/a | a | https://[::1]/a#latest");
}

#[test]
fn reads_every_protocol() {
    for (text, expected) in [
        ("https://h/a", Some(Protocol::Https)),
        ("HTTP://h/a", Some(Protocol::Http)),
        ("ssh://h/a", Some(Protocol::Ssh)),
        ("git://h/a", Some(Protocol::Git)),
        ("git+https://h/a", Some(Protocol::GitHttps)),
        ("git+http://h/a", Some(Protocol::GitHttp)),
        ("git+ssh://h/a", Some(Protocol::GitSsh)),
        ("git+file:///a", Some(Protocol::GitFile)),
        ("git@h:a", Some(Protocol::GitSsh)),
        ("oci://h/a", Some(Protocol::Oci)),
        ("x-1://h/a", Some(Protocol::Plugin("x-1".into()))),
        ("file:///a", None),
        ("h.co/a", None),
    ] {
        let reference = Reference::parse(text).expect(text);
        assert_eq!(reference.protocol(), expected.as_ref(), "{text}");
    }
}

#[test]
fn a_scheme_leads_to_a_provider_and_says_how_it_is_reached() {
    for scheme in Protocol::built_in_schemes() {
        let protocol = Protocol::from_scheme(scheme);
        let (tool, transport) = scheme.split_once('+').unwrap_or(("", scheme));
        if !tool.is_empty() {
            assert_eq!(Protocol::provider_of_tool(tool), Some(tool), "{scheme}");
        }
        // Charts and operators in a registry are known by their media types.
        if transport != "oci" && !tool.is_empty() {
            assert_eq!(protocol.provider(), Some(tool), "{scheme}");
        }
        assert_eq!(protocol.transport(), transport, "{scheme}");
    }
    for (scheme, provider, is_of_index) in [
        ("https", None, false),
        ("file", None, false),
        ("x-1", None, false),
        ("ssh", Some("git"), false),
        ("git", Some("git"), false),
        ("git+file", Some("git"), false),
        ("kudo+oci", Some("oci"), false),
        ("olm+https", Some("olm"), true),
    ] {
        let protocol = Protocol::from_scheme(scheme);
        assert_eq!(protocol.provider(), provider, "{scheme}");
        assert_eq!(protocol.is_of_index(), is_of_index, "{scheme}");
    }
}

#[test]
fn leaves_git_marks_out_of_identity() {
    check(
        "git+https://github.com/a/b.git",
        "github.com/a/b | a/b.git | git+https://github.com/a/b.git#latest",
    );
    check(
        "https://host/group/repo.git/sub/dir#v1.2.0",
        "host/group/repo/sub/dir | group/repo.git/sub/dir | https://host/group/repo.git/sub/dir#v1.2.0",
    );
    check(
        "git@host:org/repo.git",
        "host/org/repo | org/repo.git | git+ssh://git@host/org/repo.git#latest",
    );
    check("me@[::1]:a", "[::1]/a | a | git+ssh://me@[::1]/a#latest");
    check("a.git.git/b", "a.git.git/b | b | https://a.git.git/b#latest");
    assert_eq!(Name::parse("a.git.git/b").expect("is a name").as_str(), "a/b");
}

#[test]
fn reads_folders_of_this_machine() {
    check("./x", "localhost/x | ./x | ./x#latest");
    check("../x/y#1", "localhost/x/y | ../x/y | ../x/y#1");
    check(".", "localhost/_ | . | .#latest");
    check("/srv/my dir", "localhost/srv/my_20dir | /srv/my dir | file:///srv/my dir#latest");
    check("file:///abs/x", "localhost/abs/x | /abs/x | file:///abs/x#latest");
    check("file://localhost/abs/x", "localhost/abs/x | /abs/x | file:///abs/x#latest");
    check(
        "git+file:///srv/ec2.git",
        "localhost/srv/ec2 | srv/ec2.git | git+file:///srv/ec2.git#latest",
    );
    check(
        "git+file:///tmp/.tmpA1/r.git/sub#v1",
        "localhost/tmp/_2etmpA1/r/sub | tmp/.tmpA1/r.git/sub | git+file:///tmp/.tmpA1/r.git/sub#v1",
    );
    check("//.git.git", "localhost/_2egit | //.git.git | file:////.git.git#latest");
    let long = format!("/{}", "a".repeat(121) + ".git.b" + &"c".repeat(200));
    let id = Reference::parse(&long).expect("is a reference").id(&Defaults::default());
    assert_eq!(PackageId::parse(id.as_str()).as_ref(), Ok(&id));
    for (text, folder) in [("./x", Some("./x")), ("file:///a", Some("/a")), ("x", None)] {
        assert_eq!(Reference::parse(text).expect(text).local(), folder);
    }
    let id = PackageId::local(Path::new("/srv/my dir/../ec2"));
    assert_eq!(PackageId::parse(id.as_str()).as_ref(), Ok(&id));
}

#[test]
fn copies_missing_parts_from_the_dependent() {
    let defaults = Defaults {
        base: super::super::Base::parse("acme.co/").expect("is a base"),
        namespace: Some(Name::parse("internal").expect("is a name")),
        ..Defaults::default()
    };
    check_in(&defaults, "b", "acme.co/internal/b | b | https://acme.co/internal/b#latest");
    check_in(&defaults, "x/b", "acme.co/x/b | x/b | https://acme.co/x/b#latest");
    check_in(&defaults, "hub.mu.com/b", "hub.mu.com/b | b | https://hub.mu.com/b#latest");
}

#[test]
fn the_longest_alias_counts() {
    let alias = |from: &str, to: &str| Alias {
        from: from.to_owned(),
        to: to.to_owned(),
        protocol: to.starts_with("r.example").then(|| "oci".to_owned()),
    };
    let aliases = [alias("a.example/x/", "b.example/"), alias("a.example/x/y/", "r.example/z/")];
    let defaults = Defaults { aliases: Aliases::new(aliases.into()), ..Defaults::default() };
    for (text, id, reached) in [
        ("https://a.example/x/w", "b.example/w", Some("b.example/w")),
        ("a.example/x/y/w", "r.example/z/w", Some("oci://r.example/z/w")),
        ("a.example/xy/w", "a.example/xy/w", None),
        ("a.example/x", "a.example/x", None),
    ] {
        let reference = Reference::parse(text).expect("is a reference");
        assert_eq!(reference.id(&defaults).as_str(), id);
        let written = reference.id(&Defaults::default());
        let instead = defaults.aliases.reference(&written).map(|reference| reference.to_string());
        assert_eq!(instead.as_deref(), reached, "{text}");
    }
    let id = PackageId::parse("b.example/w").expect("is an id");
    assert_eq!(defaults.aliases.others(&id), ["a.example/x/w"]);
}

#[test]
fn swaps_the_version() {
    let reference = Reference::parse("aws/ec2#^1").expect("is a reference");
    assert_eq!(reference.with_version(None).to_string(), "aws/ec2");
    let pin = VersionSpec::parse("1.2.3").expect("is a version");
    let pinned = reference.with_version(Some(pin));
    assert_eq!(pinned.to_string(), "aws/ec2#1.2.3");
    assert_eq!(Reference::parse("aws/ec2#1.2.3").as_ref(), Ok(&pinned));
    assert_eq!(reference.with_version(None).spec(), VersionSpec::Latest);
}

#[test]
fn takes_names_apart() {
    let name = Name::parse("aws/ec2/VM").expect("is a name");
    let prefix = Name::parse("aws").expect("is a name");
    assert_eq!(name.leaf(), "VM");
    assert_eq!(name.namespace().expect("has one").as_str(), "aws/ec2");
    assert_eq!(name.strip_prefix(&prefix).expect("begins so").as_str(), "ec2/VM");
    assert_eq!(name.strip_prefix(&name), None);
    assert_eq!(Name::parse("awsome/x").expect("is a name").strip_prefix(&prefix), None);
    assert_eq!(prefix.namespace(), None);
}

#[test]
fn takes_ids_apart() {
    let id = PackageId::parse("Localhost:8080/aws/ec2.git").expect("is an id");
    assert_eq!(id.to_string(), "localhost:8080/aws/ec2");
    assert_eq!(id.base().folder_name(), "localhost+8080");
    assert_eq!(id.name().as_str(), "aws/ec2");
    assert_eq!(PackageId::new(&id.base(), &id.name()), id);
}

#[test]
fn tells_another_way_to_a_package_from_another_word_for_it() {
    for (known, given, expected) in [
        ("https://github.com/a/b", "ssh://git@github.com/a/b#^1", true),
        ("ssh://git@github.com/a/b", "https://github.com/a/b", true),
        ("https://github.com/a/b", "git@github.com:a/b", true),
        ("git@github.com:a/b", "ssh://git@github.com/a/b", false),
        ("git+https://github.com/a/b", "https://github.com/a/b", false),
        ("https://github.com/a/b", "git+https://github.com/a/b", true),
        ("github.com/a/b", "https://github.com/a/b", false),
        ("ssh://git@github.com/a/b", "github.com/a/b", false),
        ("ssh://git@h.co/a", "ssh://ada@h.co/a", true),
        ("h.co/a/b", "oci://h.co/a/b", true),
        ("aws/ec2", "https://hub.mu.com/aws/ec2", false),
        ("https://quay.io/a/b", "https://ghcr.io/a/b", true),
        ("https://quay.io/a/b", "ghcr.io/a/b", true),
        ("ghcr.io/a/b", "a/b", false),
        ("git+file:///srv/a", "/srv/a", true),
        ("/srv/a", "git+file:///srv/a", true),
        ("/srv/a", "../a", false),
        ("../a", "acme/a", false),
    ] {
        let [known, given] = [known, given].map(|text| Reference::parse(text).expect("is one"));
        assert_eq!(given.leads_elsewhere_than(&known), expected, "{known} {given}");
    }
}

#[test]
fn knows_hosts_of_git_by_what_a_browser_shows() {
    check("https://www.github.com/a/b#^1", "github.com/a/b | a/b | https://github.com/a/b#^1");
    check("WWW.GitLab.com/a/b.git", "gitlab.com/a/b | a/b.git | https://gitlab.com/a/b.git#latest");
    check("www.acme.co/a/b", "www.acme.co/a/b | a/b | https://www.acme.co/a/b#latest");
    let id = PackageId::parse("www.github.com/a/b").expect("is an id");
    assert_eq!(id.as_str(), "github.com/a/b");
}
