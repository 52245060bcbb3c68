//! The library without the program: several operations on one session, as another program may call them.

use std::fs::File;
use std::sync::Arc;
use std::time::{Duration, UNIX_EPOCH};

use mu::env::Environment;
use mu::index::Universe as _;
use mu::ops::get::{GetRequest, get};
use mu::ops::outdated::{compare, what_if};
use mu::ops::requirements::supposition::WhatIf;
use mu::ops::{NoEvents, OperationScope, Options, Outcome, Session};
use mu::reference::PackageId;

use crate::support::{Nginx, Package, Sandbox};

/// `NAME VERSION` of what an operation chose.
fn chosen(outcome: &Outcome) -> Vec<String> {
    let packages = outcome.lock.packages.iter();
    packages.map(|package| format!("{} {}", package.id.name_str(), package.version)).collect()
}

fn environment(sandbox: &Sandbox) -> Environment {
    Environment {
        home: sandbox.path("home"),
        mu_home: sandbox.path("home/.mu"),
        mu_root: sandbox.path("runtime"),
        cache: sandbox.path("cache"),
        current: sandbox.path("work"),
        variables: Arc::default(),
        ..Environment::from_process().expect("can be read")
    }
}

fn session(sandbox: &Sandbox) -> Session {
    let (options, events) = (Options::default(), Arc::new(NoEvents));
    Session::open_to_change(environment(sandbox), options, OperationScope::Workspace, events)
        .expect("opens")
}

#[test]
fn a_question_what_would_be_leaves_the_session_as_it_was() {
    let sandbox = Sandbox::with_dependencies(&["aws/ec2#^1", "aws/s3"]);
    sandbox.publish(&[
        Package::new("aws/ec2", "1.0.0"),
        Package::new("aws/ec2", "1.1.0"),
        Package::new("aws/ec2", "2.0.0"),
        Package::new("aws/s3", "1.0.0"),
    ]);
    let session = session(&sandbox);
    let texts = |texts: &[&str]| texts.iter().map(|text| (*text).to_owned()).collect();
    let alone = WhatIf { references: texts(&["aws/ec2"]), ..WhatIf::default() };
    let outcome = what_if(&session, &alone).expect("is answered");
    assert_eq!(chosen(&outcome), ["aws/ec2 2.0.0"]);
    let less = WhatIf {
        without: texts(&["aws/s3"]),
        exclude: texts(&["aws/ec2#1.1.0"]),
        installed: texts(&["aws/ec2#1.0.0"]),
        runtime: texts(&["kubernetes=1.25"]),
        ..WhatIf::default()
    };
    let compared = compare(&session, &less).expect("is answered");
    for outcome in [compared.highest, compared.minimal] {
        assert_eq!(chosen(&outcome.expect("fits")), ["aws/ec2 1.0.0"]);
    }
    let outcome = get(&session, &GetRequest::default()).expect("installs");
    assert_eq!(chosen(&outcome), ["aws/ec2 1.1.0", "aws/s3 1.0.0"]);
    assert_eq!(sandbox.locked(), ["hub.mu.com/aws/ec2 1.1.0", "hub.mu.com/aws/s3 1.0.0"]);
}

#[test]
fn only_packages_that_have_changed_are_a_reason_to_choose_again() {
    let sandbox = Sandbox::with_dependencies(&["aws/ec2#^1"]);
    sandbox.mu(&["hub", "init", "../srv"]).ok();
    // What this machine publishes is asked about anyway.
    let author = Sandbox::new();
    let place = sandbox.path("srv");
    let mut count = 0;
    let mut release = |name: &str, version: &str| {
        Package::new(name, version).write_into(&author.path("work"));
        author.mu(&["publish", "--to", place.to_str().expect("is text")]).ok();
        // nginx tells files apart by the seconds of their times, and this is faster.
        count += 1;
        let root = File::options().append(true).open(place.join("hub.json"));
        let time = UNIX_EPOCH + Duration::from_secs(count);
        root.expect("is there").set_modified(time).expect("can be set");
    };
    release("aws/ec2", "1.0.0");
    let nginx = Nginx::serve(&place, "");
    sandbox.hub_is_at(&nginx.url(""));
    sandbox.mu(&["get"]).ok();
    let ec2 = PackageId::parse("hub.mu.com/aws/ec2").expect("is an id");
    let ask_again = || {
        let session = session(&sandbox);
        let count = || session.index().releases(&ec2).expect("is there").len();
        (count(), session.index().ask_again(), count())
    };
    assert_eq!(ask_again(), (1, false, 1));
    release("aws/vpc", "1.0.0");
    assert_eq!(ask_again(), (1, false, 1));
    release("aws/ec2", "1.1.0");
    assert_eq!(ask_again(), (1, true, 2));
}
