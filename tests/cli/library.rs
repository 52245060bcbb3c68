//! The library without the program: several operations on one session, as another program may call them.

use std::collections::BTreeMap;
use std::sync::Arc;

use mu::env::Environment;
use mu::ops::get::{GetRequest, get};
use mu::ops::requirements::supposition::WhatIf;
use mu::ops::what_if::compare::compare;
use mu::ops::what_if::what_if;
use mu::ops::{NoEvents, Options, Outcome, Scope, Session};

use crate::support::{Package, Sandbox};

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
        variables: BTreeMap::new(),
        ..Environment::from_process().expect("can be read")
    }
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
    let session = Session::open_to_change(
        environment(&sandbox),
        Options::default(),
        Scope::Workspace,
        Arc::new(NoEvents),
    )
    .expect("opens");
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
