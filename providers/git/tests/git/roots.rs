//! Where the repository ends and the folder begins, if the text does not say.

use mu_provider::{ErrorKind, Listing, Provider as _};
use mu_testing::ReservedPort;
use mu_testing::http::Reply;

use crate::support::{Daemon, HttpServer, Origin, World, fake_ssh, local, locked, set, written};

fn origin() -> (Origin, String) {
    let origin = Origin::new("group/mono");
    let commit = origin.commit(&[("sub/dir/Mu.yaml", "name: a/b\n")]);
    origin.git(&["tag", "v1.0.0"]);
    (origin, commit)
}

#[test]
fn it_is_found_by_asking_the_longest_first() {
    let (origin, _) = origin();
    let server = HttpServer::start(origin.root());
    let daemon = Daemon::start(origin.root());
    let (program, _) = fake_ssh(origin.root(), origin.root());
    let world = World::with(|options| {
        set(options, "GIT_SSH_COMMAND", program);
    });
    let file = format!("file://{}/", origin.root().display());
    for root in [server.root(), daemon.root(), "ssh://git@example.com/".to_owned(), file] {
        let location = written(&root, "group/mono/sub/dir");
        let listing = world.provider.list(&location, None, &world.notes).expect("can be listed");
        let Listing::Found(found) = listing else { panic!("{root}: {listing:?}") };
        let root = root.trim_end_matches('/');
        assert_eq!(found.location.root.to_string(), format!("{root}/group/mono"));
        assert_eq!(found.location.folder.as_deref(), Some("sub/dir"));
        assert_eq!(found.location.path, "");
        assert_eq!(world.paths(&location, &world.release(&location, "1.0.0")), ["Mu.yaml"]);
    }
    let asked: Vec<String> =
        server.requests().into_iter().filter(|line| line.starts_with("GET")).collect();
    let service = "info/refs?service=git-upload-pack";
    assert_eq!(
        asked,
        ["group/mono/sub/dir", "group/mono/sub", "group/mono"]
            .map(|path| format!("GET /{path}/{service}"))
    );
}

#[test]
fn a_settled_location_is_never_probed() {
    let (origin, commit) = origin();
    let server = HttpServer::start(origin.root());
    let world = World::new();
    let mut location = written(&format!("{}group/mono", server.root()), "");
    location.folder = Some("sub/dir".to_owned());
    world.fetch(&location, &locked(&commit)).expect("can be fetched");
    assert_eq!(server.requests().len(), 2, "{:?}", server.requests());

    let before = server.requests().len();
    let unsettled = written(&server.root(), "group/mono/sub/dir");
    for offline in [false, true] {
        let provider = world.again(|options| options.offline = offline);
        crate::support::fetch(&provider, &unsettled, &locked(&commit), &world.notes)
            .expect("the database tells where the commit is");
    }
    assert_eq!(server.requests().len(), before);
}

#[test]
fn what_is_absent_says_what_was_tried() {
    let (origin, _) = origin();
    let server = HttpServer::start(origin.root());
    let world = World::new();
    let listing = world.provider.list(&written(&server.root(), "a/b"), None, &world.notes);
    let Ok(Listing::Absent { tried, .. }) = listing else { panic!("is absent: {listing:?}") };
    let root = server.root();
    assert_eq!(tried, ["a/b", "a", "a/b.git", "a.git"].map(|path| format!("{root}{path}")));
    assert!(!world.provider.probe(&written(&root, "a/b.git")).expect("the place answers"));
    assert!(world.provider.probe(&written(&root, "group/mono")).expect("the place answers"));

    let listing = world.provider.list(&local(&origin.root().join("x/y.git")), None, &world.notes);
    assert!(matches!(listing, Ok(Listing::Absent { .. })), "{listing:?}");
}

#[test]
fn a_host_that_wants_credentials_for_everything_is_asked_on() {
    let (origin, _) = origin();
    let server = HttpServer::with(origin.root(), |request| {
        (!request.path.starts_with("/group/mono/info") && request.method == "GET")
            .then(|| Reply::status(401).header("www-authenticate", "Basic realm=\"x\""))
    });
    let world = World::new();
    let location = written(&server.root(), "group/mono/sub/dir");
    assert_eq!(world.list(&location).len(), 2);
    let error = world.provider.list(&written(&server.root(), "a/b"), None, &world.notes);
    assert_eq!(error.expect_err("requires credentials").kind(), ErrorKind::Auth);
}

#[test]
fn an_unreachable_host_is_not_an_absent_package() {
    let nobody = ReservedPort::take();
    let world = World::new();
    for scheme in ["http", "git"] {
        let location = written(&format!("{scheme}://{}/", nobody.host()), "a/b");
        let error = world.provider.list(&location, None, &world.notes).expect_err("nobody listens");
        assert_eq!(error.kind(), ErrorKind::Network, "{scheme}: {error}");
    }
}
