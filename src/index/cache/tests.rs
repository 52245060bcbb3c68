//! The content of a cache: complete, cut off, and damaged.

use mu_provider::{Lead, Location, SafeUrl};

use super::*;

fn fetched(lines: &[&str], is_plain: bool) -> Vec<Fetched> {
    let mut start = 0;
    let fetched = lines.iter().enumerate().map(|(index, line)| {
        start += line.len();
        let plain = Label::Plain([1, index as u32, 0]);
        let is_odd = index == 3 && !is_plain;
        let references = ["aws/ec2#^1", "acme.co/x", "aws/ec2#"].map(str::to_owned);
        let head = LineHead {
            version: if is_odd { Label::Text("1.3.0-rc.1".into()) } else { plain },
            composite: is_odd,
            detailed: index == 1,
            published: (index == 0).then_some(7),
            commit: (index == 2 && !is_plain).then(|| "c0ffee".into()),
            line: LineSpan::fetched(start - line.len()..start),
        };
        let needs = match index {
            0 => None,
            1 => Some(Vec::new()),
            _ => Some(references.to_vec()),
        };
        Fetched { head, needs }
    });
    fetched.collect()
}

fn location() -> Location {
    let root = SafeUrl::parse("https://hub.example/mu/").expect("is a URL");
    let root = Lead::of_user(root);
    Location::new(root, "aws/ec2")
}

fn learned(lines: &[&str], fetched: &[Fetched]) -> Learned {
    let bytes = lines.concat().into_bytes();
    Learned::from_listing(5, Some(60), Some("\"etag\""), &location(), (fetched, &bytes))
}

fn record(lines: &[&str]) -> Learned {
    learned(lines, &fetched(lines, false))
}

fn texts(listing: &Listing) -> Vec<String> {
    let text = |head: LineHead| {
        let line = listing.lines.read(head.line).expect("is there");
        String::from_utf8_lossy(&line).into_owned()
    };
    listing.heads().map(text).collect()
}

fn lines(cache: &Cache, name: &str) -> Option<Vec<String>> {
    cache.find(name)?.listing.as_ref().map(texts)
}

#[test]
fn a_record_comes_out_as_it_went_in() {
    let lines = ["{1}", "{22}", "{333}", "{4444}"];
    for is_plain in [false, true] {
        comes_out(&lines, is_plain);
    }
}

fn comes_out(lines: &[&str], is_plain: bool) {
    let folder = tempfile::tempdir().expect("a temporary folder");
    let cache = open(&folder);
    let before = fetched(lines, is_plain);
    let check = |after: &Record| {
        assert_eq!((after.checked, after.max_age), (5, Some(60)));
        assert_eq!(after.validator.as_deref(), Some("\"etag\""));
        let after = after.listing.as_ref().expect("has releases");
        assert_eq!(after.table.has_plain_versions(), is_plain);
        assert_eq!(texts(after), lines);
        assert_eq!(after.location, location());
        let known = |head: &LineHead| {
            let LineHead { version, composite, detailed, published, commit, .. } = head.clone();
            (version, composite, detailed, published, commit)
        };
        let heads: Vec<_> = after.heads().map(|head| known(&head)).collect();
        let expected: Vec<_> = before.iter().map(|fetched| known(&fetched.head)).collect();
        assert_eq!(heads, expected);
        let needs = |position| after.table.needs(&after.lines, position);
        let found: Vec<_> = (0..lines.len()).map(needs).collect();
        let all = vec![("aws/ec2", Some("^1")), ("acme.co/x", None), ("aws/ec2", Some(""))];
        assert_eq!(found, [None, Some(Vec::new()), Some(all.clone()), Some(all)]);
    };
    check(&cache.put("a", learned(lines, &before)));
    cache.save().expect("saves");
    let cache = open(&folder);
    check(&cache.find("a").expect("is there"));
    assert_eq!(cache.validator("a").as_deref(), Some("\"etag\""));
}

#[test]
fn versions_and_times_that_are_too_large_for_a_row_come_out_as_they_went_in() {
    let folder = tempfile::tempdir().expect("a temporary folder");
    let lines = ["{1}", "{22}", "{333}"];
    let mut fetched = fetched(&lines, true);
    fetched[1].head.published = Some(-7);
    fetched[2].head.published = Some(1 << 40);
    fetched[2].head.version = Label::Plain([1, 70_000, 0]);
    let cache = open(&folder);
    cache.put("a", learned(&lines, &fetched));
    cache.save().expect("saves");
    let found = open(&folder).find("a").and_then(|record| record.listing).expect("is there");
    let heads: Vec<_> =
        found.heads().map(|head| (head.version.to_string(), head.published)).collect();
    let expected = [("1.0.0", Some(7)), ("1.1.0", Some(-7)), ("1.70000.0", Some(1 << 40))];
    assert_eq!(heads, expected.map(|(version, at)| (version.to_owned(), at)));
}

#[test]
fn whatever_the_bytes_are_nothing_breaks() {
    let folder = tempfile::tempdir().expect("a temporary folder");
    let lines = ["{1}", "{22}", "{333}", "{4444}"];
    for is_plain in [false, true] {
        survives(&folder, learned(&lines, &fetched(&lines, is_plain)));
    }
}

fn survives(folder: &tempfile::TempDir, before: Learned) {
    let cache = open(folder);
    cache.put("a", before);
    cache.save().expect("saves");
    let cache = open(folder);
    cache.touch("a", &record(&[]).record);
    cache.save().expect("saves");
    let whole = std::fs::read(&cache.path).expect("reads");
    for at in 0..whole.len() {
        for byte in [0, 1, 0x7f, 0x80, 0xff, whole[at] ^ 1] {
            let mut bytes = whole.clone();
            bytes[at] = byte;
            std::fs::write(&cache.path, &bytes).expect("writes");
            let cache = open(folder);
            cache.times("a");
            cache.validator("a");
            let Some(listing) = cache.find("a").and_then(|record| record.listing) else {
                continue;
            };
            for (position, head) in listing.heads().enumerate() {
                let _ = listing.lines.read(head.line);
                listing.table.needs(&listing.lines, position);
            }
        }
    }
}

#[test]
fn many_small_changes_become_one_segment() {
    let folder = tempfile::tempdir().expect("a temporary folder");
    for index in 0..MOST_SEGMENTS * 2 {
        let cache = open(&folder);
        cache.put(&format!("package-{index}"), record(&["{1}"]));
        cache.save().expect("saves");
    }
    let cache = open(&folder);
    assert_eq!(cache.names().count(), MOST_SEGMENTS * 2);
    let file = File::open(&cache.path).expect("is there");
    assert!(Near::read(&file).expect("reads").segments <= MOST_SEGMENTS);
    assert_eq!(lines(&cache, "package-0"), Some(vec!["{1}".to_owned()]));
}

fn open(folder: &tempfile::TempDir) -> Cache {
    Cache::open(folder.path(), "hub", &location().root).expect("opens")
}

#[test]
fn remembers_what_is_not_there() {
    let folder = tempfile::tempdir().expect("a temporary folder");
    let cache = open(&folder);
    let tried = ["x".to_owned()];
    cache.put("a", Learned::absent(5, Some(0), None, &tried, &location().root));
    cache.save().expect("saves");
    let found = open(&folder).find("a").expect("is there");
    assert!(found.listing.is_none());
    assert_eq!(found.tried, tried);
}

#[test]
fn finds_what_was_saved_and_the_newest_of_it() {
    let folder = tempfile::tempdir().expect("a temporary folder");
    let cache = open(&folder);
    cache.put("a", record(&["{1}", "{22}", "{333}"]));
    cache.put("b", record(&["{b}"]));
    cache.save().expect("saves");
    let cache = open(&folder);
    assert_eq!(lines(&cache, "a"), Some(["{1}", "{22}", "{333}"].map(String::from).to_vec()));
    cache.put("a", record(&["{new}"]));
    let renewed = Some("renewed".to_owned());
    let unchanged = record(&[]).record;
    cache.touch("b", &Record { checked: 99, max_age: Some(10), validator: renewed, ..unchanged });
    cache.save().expect("saves");
    let cache = open(&folder);
    assert_eq!(lines(&cache, "a"), Some(vec!["{new}".to_owned()]));
    let b = cache.find("b").expect("is there");
    assert_eq!((b.checked, b.max_age, b.validator.as_deref()), (99, Some(10), Some("renewed")));
    assert!(cache.find("c").is_none());
}

#[test]
fn a_file_that_was_cut_anywhere_is_still_a_cache() {
    let folder = tempfile::tempdir().expect("a temporary folder");
    let cache = open(&folder);
    cache.put("a", record(&["{1}"]));
    cache.put("b", record(&["{2}"]));
    cache.save().expect("saves");
    let whole = std::fs::read(&cache.path).expect("reads");
    for length in 0..whole.len() {
        std::fs::write(&cache.path, &whole[..length]).expect("writes");
        let cut = open(&folder);
        cut.put("c", record(&["{3}"]));
        cut.save().expect("saves");
        assert_eq!(lines(&open(&folder), "c"), Some(vec!["{3}".to_owned()]), "{length}");
    }
}

#[test]
fn does_not_grow_for_ever() {
    let folder = tempfile::tempdir().expect("a temporary folder");
    let long = "x".repeat(10_000);
    for _ in 0..50 {
        let cache = open(&folder);
        cache.put("a", record(&[&long]));
        cache.save().expect("saves");
    }
    let size = std::fs::metadata(&open(&folder).path).expect("is there").len();
    assert!(size < 100_000, "{size}");
}

#[test]
fn lines_that_are_close_to_each_other_are_read_at_once() {
    let folder = tempfile::tempdir().expect("a temporary folder");
    let cache = open(&folder);
    // As long as one line of a hub is, with a package between that is longer than a gap may be.
    let line = |index: usize| format!("{{{index:0400}}}");
    for index in 0..1_000 {
        let long = if index == 500 { "x".repeat(100_000) } else { line(index) };
        cache.put(&format!("package-{index}"), record(&[&long]));
    }
    cache.save().expect("saves");
    let cache = open(&folder);
    let listing = |index: usize| cache.find(&format!("package-{index}"))?.listing;
    let chosen: Vec<(usize, Listing)> = (0..1_000)
        .rev()
        .filter(|index| *index != 500)
        .filter_map(|index| Some((index, listing(index)?)))
        .collect();
    let places = || {
        let heads = chosen.iter().map(|(_, listing)| (listing, listing.heads().next()));
        heads.filter_map(|(listing, head)| Some((&listing.lines, head?.line)))
    };
    assert_eq!(places().count(), 999);
    // 200,000 bytes before the long one, and as many behind it.
    assert_eq!(read_ahead(places()), 2);
    // They need the file no more, each of them once.
    let file = File::options().write(true).open(&cache.path).expect("opens");
    file.set_len(0).expect("is cut");
    for (index, listing) in &chosen {
        assert_eq!(texts(listing), [line(*index)]);
    }
    let (_, first) = chosen.first().expect("there are some");
    assert!(first.lines.read(first.heads().next().expect("has one").line).is_err());
    let other = listing(500).expect("is known");
    assert!(other.lines.read(other.heads().next().expect("has one").line).is_err());
}

#[test]
fn lines_of_many_packages_wait_in_a_file_and_come_out_as_they_went_in() {
    let folder = tempfile::tempdir().expect("a temporary folder");
    // The second time, half of the file is superseded, so that it is written anew.
    for round in 0..2 {
        let cache = open(&folder);
        let line = |number: usize| format!("{{{round}{number:0100}{}}}", "x".repeat(99_900));
        let put = |number| cache.put(&format!("package-{number}"), record(&[&line(number)]));
        let records: Vec<Record> = (0..50).map(put).collect();
        let listings = || records.iter().filter_map(|record| record.listing.as_ref());
        let is_aside = |listing: &&Listing| matches!(listing.lines.far, Far::File(..));
        assert_eq!(listings().filter(is_aside).count(), 50 - MOST_IN_MEMORY / line(0).len());
        for (number, listing) in listings().enumerate() {
            assert_eq!(texts(listing), [line(number)]);
        }
        cache.save().expect("saves");
        let saved = open(&folder);
        for number in 0..50 {
            assert_eq!(lines(&saved, &format!("package-{number}")), Some(vec![line(number)]));
        }
        let size = std::fs::metadata(&saved.path).expect("is there").len();
        assert!((5_000_000..5_100_000).contains(&size), "{size}");
    }
    let files = std::fs::read_dir(folder.path().join("index")).expect("is there");
    let names = files.map(|file| file.expect("is there").file_name());
    let mut names: Vec<_> = names.filter_map(|name| name.into_string().ok()).collect();
    names.sort_unstable();
    let ends: Vec<_> =
        names.iter().map(|name| name.rsplit('.').next().unwrap_or_default()).collect();
    assert_eq!(ends, ["index", "lock"]);
}
