//! Many publishers at once: no line is lost, none is there twice, and every archive matches its line.

use std::path::Path;
use std::sync::{Arc, Barrier};
use std::thread;

use mu_hub::{Hub, HubError, Place, Published};
use object_store::memory::InMemory;

use crate::support::{catalog, hub_file, lines, log, publication};
use mu_testing::{Azurite, GoogleServer};

const PUBLISHERS: usize = 20;

/// Those of a real store: each of them waits for the others.
const PUBLISHERS_TO_A_STORE: usize = 8;

/// Runs `publish` in as many threads, each with its own hub, all starting at once.
fn at_once<T: Send>(
    place: &Place,
    publishers: usize,
    publish: impl Fn(&Hub, usize) -> T + Sync,
) -> Vec<T> {
    Hub::init(place).expect("can be made");
    let barrier = Barrier::new(publishers);
    thread::scope(|scope| {
        let threads: Vec<_> = (0..publishers)
            .map(|number| {
                let (barrier, publish) = (&barrier, &publish);
                scope.spawn(move || {
                    let hub = Hub::open(place).expect("is there");
                    barrier.wait();
                    publish(&hub, number)
                })
            })
            .collect();
        threads.into_iter().map(|thread| thread.join().expect("does not panic")).collect()
    })
}

/// Publishes versions of one package, of many packages, one version that all have, and one with other
/// content.
fn publish_everything(place: &Place, publishers: usize) {
    let published = at_once(place, publishers, |hub, number| {
        let one = publication("one", &format!("1.{number}.0"), "x");
        assert_eq!(hub.publish(&one).expect("is fine"), Published::New);
        let own = publication(&format!("many/n{number}"), "1.0.0", "x");
        assert_eq!(hub.publish(&own).expect("is fine"), Published::New);
        let content = if number == 7 { "other" } else { "same" };
        hub.publish(&publication("contested", "1.0.0", content))
    });
    let count = |wanted: Published| {
        published.iter().filter(|result| matches!(result, Ok(one) if *one == wanted)).count()
    };
    let refused =
        published.iter().filter(|result| matches!(result, Err(HubError::Exists { .. }))).count();
    assert_eq!(count(Published::New), 1, "{published:?}");
    assert_eq!(count(Published::Same) + refused, publishers - 1, "{published:?}");
    assert!(refused == 1 || refused == publishers - 1, "{published:?}");
    let hub = Hub::open(place).expect("is there");
    for number in 0..publishers {
        assert!(hub.line("one", &format!("1.{number}.0")).expect("can be read").is_some());
        assert!(hub.line(&format!("many/n{number}"), "1.0.0").expect("can be read").is_some());
    }
    let report = hub.check(false, &mut |_| {}).expect("can be read");
    assert_eq!(
        (report.packages, report.versions),
        (publishers as u64 + 2, 2 * publishers as u64 + 1)
    );
    let other: Vec<_> = report
        .findings
        .iter()
        .filter(|finding| !finding.path.starts_with("packs/contested/"))
        .collect();
    assert!(report.is_sound() && other.is_empty(), "{report:?}");
}

#[test]
fn in_a_folder() {
    let folder = tempfile::tempdir().expect("there is room");
    publish_everything(&Place::folder(folder.path()), PUBLISHERS);
    let index = lines(folder.path(), "one");
    assert_eq!(index.len(), PUBLISHERS);
    let names = log(folder.path());
    assert_eq!(names.len(), 2 * PUBLISHERS + 1);
    assert_eq!(hub_file(folder.path())["generation"], names.len());
    assert_eq!(catalog(folder.path()).len(), PUBLISHERS + 2);
    assert_eq!(catalog(folder.path())["one"], "1.19.0");
}

#[test]
fn in_an_object_store() {
    publish_everything(&Place::store(Arc::new(InMemory::new()), "memory"), PUBLISHERS);
}

#[test]
fn in_azure_blob_storage() {
    let azurite = Azurite::start();
    let here = Path::new("/");
    let place = Place::parse("az://packages/hub", here, azurite.variables()).expect("is one");
    publish_everything(&place, PUBLISHERS_TO_A_STORE);
}

#[test]
fn in_google_cloud_storage() {
    let google = GoogleServer::start();
    let here = Path::new("/");
    let place = Place::parse("gs://packages/hub", here, google.variables()).expect("is one");
    publish_everything(&place, PUBLISHERS_TO_A_STORE);
    // That many writers of one file cannot all have been first, and none of them has noticed.
    assert!(google.lost() > 0);
}
