//! Files as other programs see them: permissions, links, pipes, locks.

use std::fs::{self, File};

use super::file::LARGEST;
use super::*;

#[test]
fn writes_whole_files_through_links_and_keeps_permissions() {
    let folder = tempfile::tempdir().expect("a temporary folder");
    let file = folder.path().join("a/b");
    write_atomic(&file, b"one").expect("writes");
    assert_eq!(read_text(&file).expect("reads"), "one");
    #[cfg(unix)]
    {
        use std::os::unix::fs::PermissionsExt as _;
        fs::set_permissions(&file, fs::Permissions::from_mode(0o600)).expect("sets");
        let link = folder.path().join("link");
        std::os::unix::fs::symlink(&file, &link).expect("links");
        for content in [b"one", b"two"] {
            let error = write_atomic(&link, content).expect_err("a link is not written through");
            assert_eq!(error.path(), link);
        }
        assert_eq!(read_text(&file).expect("reads"), "one");
        write_through_links(&link, b"two").expect("writes");
        assert!(link.is_symlink());
        assert_eq!(fs::metadata(&file).expect("is there").permissions().mode() & 0o777, 0o600);
    }
    #[cfg(unix)]
    assert_eq!(read_text(&file).expect("reads"), "two");
    assert_eq!(fs::read_dir(folder.path().join("a")).expect("reads").count(), 1);
}

#[cfg(unix)]
#[test]
fn what_is_new_in_a_folder_of_a_group_belongs_to_the_group() {
    use std::os::unix::fs::PermissionsExt as _;
    let mode = |path: &Path| fs::metadata(path).expect("is there").permissions().mode() & 0o7777;
    // A group that the folder does not hand on is still the one of whoever writes.
    for (around, handed_on) in [(0o2775, 0o2000), (0o775, 0)] {
        let hub = tempfile::tempdir().expect("a temporary folder");
        fs::set_permissions(hub.path(), fs::Permissions::from_mode(around)).expect("is ours");
        let (one, two) = (hub.path().join("a/b/one"), hub.path().join("a/b/two"));
        replace_durably(&one, b"1").expect("writes");
        replace_durably(&one, b"2").expect("writes");
        create_durably(&two, b"1").expect("writes");
        for folder in [hub.path().join("a"), hub.path().join("a/b")] {
            assert_eq!(mode(&folder) & 0o2070, 0o070 | handed_on, "{around:o}");
        }
        for file in [&one, &two] {
            assert_eq!(mode(file) & 0o060, 0o060, "{around:o}");
        }
    }
}

/// How often this thread has written so far, as Linux counts.
#[cfg(target_os = "linux")]
fn writes() -> u64 {
    let counts = fs::read_to_string("/proc/thread-self/io").expect("Linux counts");
    let line = counts.lines().find_map(|line| line.strip_prefix("syscw: "));
    line.and_then(|count| count.parse().ok()).expect("writes are counted")
}

#[test]
#[cfg(target_os = "linux")]
fn what_comes_in_small_pieces_is_written_in_large_ones() {
    use std::io::Read as _;

    let folder = tempfile::tempdir().expect("a temporary folder");
    let path = folder.path().join("a");
    let piece = [b'x'; 500];
    let mut pieces: Box<dyn io::Read> = Box::new(io::empty());
    for _ in 0..1_000 {
        pieces = Box::new(pieces.chain(&piece[..]));
    }
    let before = writes();
    copy_atomic(&path, &mut pieces).expect("writes");
    let count = writes() - before;
    assert_eq!(fs::read(&path).expect("reads"), [b'x'; 500_000]);
    assert!((1..=10).contains(&count), "{count} writes of 500,000 bytes");
}

#[test]
fn one_holder_at_a_time() {
    let folder = tempfile::tempdir().expect("a temporary folder");
    let path = folder.path().join("locks/x.lock");
    let first = Lock::try_acquire(&path, Sharing::Exclusive).expect("opens");
    assert!(first.is_some());
    assert!(Lock::try_acquire(&path, Sharing::Shared).expect("opens").is_none());
    drop(first);
    // A program that another test starts has the file until it is a program of its own, so it may have to be waited for.
    let _shared = Lock::acquire(&path, Sharing::Shared, &mut || {}).expect("opens");
    assert!(Lock::try_acquire(&path, Sharing::Shared).expect("opens").is_some());
    assert!(Lock::try_acquire(&path, Sharing::Exclusive).expect("opens").is_none());
}

#[test]
#[cfg(unix)]
fn what_is_not_a_regular_file_is_neither_read_nor_waited_for() {
    let folder = tempfile::tempdir().expect("a temporary folder");
    let pipe = folder.path().join("pipe");
    let made = std::process::Command::new("mkfifo").arg(&pipe).status().expect("runs");
    assert!(made.success());
    for path in [&pipe, Path::new("/dev/zero"), folder.path()] {
        assert!(read_text(path).is_err(), "{}", path.display());
        assert!(read_if_there(path).is_err(), "{}", path.display());
        assert!(open_if_there(path).is_err(), "{}", path.display());
        assert!(Lock::try_acquire(path, Sharing::Exclusive).is_err(), "{}", path.display());
    }
    write_atomic(&pipe, b"x").expect("is replaced");
    assert_eq!(read_text(&pipe).expect("reads"), "x");
}

#[test]
#[cfg(unix)]
fn no_file_takes_the_place_of_a_device() {
    use std::os::unix::fs::FileTypeExt as _;

    let folder = tempfile::tempdir().expect("a temporary folder");
    let device = folder.path().join("null");
    let made = std::process::Command::new("mknod").arg(&device).args(["c", "1", "3"]).status();
    // Only the superuser can make one, and only the superuser could lose one.
    if !made.is_ok_and(|made| made.success()) {
        return;
    }
    let error = write_atomic(&device, b"x").expect_err("is refused");
    assert!(error.source.to_string().contains("it is a device"), "{}", error.source);
    assert!(fs::symlink_metadata(&device).expect("is there").file_type().is_char_device());
}

#[test]
fn a_huge_file_is_refused_before_it_is_read() {
    let folder = tempfile::tempdir().expect("a temporary folder");
    let path = folder.path().join("sparse");
    let file = File::create(&path).expect("makes");
    file.set_len(LARGEST + 1).expect("has no content");
    let error = read_text(&path).expect_err("is too large");
    assert_eq!(error.source.to_string(), "it is larger than 128 MiB");
}

#[test]
#[cfg(unix)]
fn locks_and_private_folders_are_closed_to_others() {
    use std::os::unix::fs::PermissionsExt as _;
    let folder = tempfile::tempdir().expect("a temporary folder");
    let mode = |path: &Path| fs::metadata(path).expect("is there").permissions().mode() & 0o777;
    let lock = folder.path().join("lock");
    for _ in 0..2 {
        drop(Lock::try_acquire(&lock, Sharing::Shared).expect("opens"));
        assert_eq!(mode(&lock), 0o600);
        // As an older mu has left it.
        fs::set_permissions(&lock, fs::Permissions::from_mode(0o644)).expect("sets");
    }
    let private = folder.path().join("a/private");
    for _ in 0..2 {
        create_private_folder(&private, &["own"]).expect("makes");
        assert_eq!(mode(&private), 0o700);
        write_atomic(&private.join("own"), b"").expect("writes");
        fs::set_permissions(&private, fs::Permissions::from_mode(0o755)).expect("sets");
    }
    // A folder that others use too stays open to them.
    write_atomic(&private.join("other"), b"").expect("writes");
    create_private_folder(&private, &["own"]).expect("is there");
    assert_eq!(mode(&private), 0o755);
    let shared = folder.path().join("shared");
    fs::create_dir(&shared).expect("makes");
    fs::set_permissions(&shared, fs::Permissions::from_mode(0o1777)).expect("sets");
    create_private_folder(&shared, &["own"]).expect("is there");
    assert_eq!(fs::metadata(&shared).expect("is there").permissions().mode() & 0o7777, 0o1777);
    let link = folder.path().join("link");
    std::os::unix::fs::symlink(folder.path().join("elsewhere"), &link).expect("links");
    assert!(Lock::try_acquire(&link, Sharing::Exclusive).is_err());
    assert!(!folder.path().join("elsewhere").exists());
}

#[test]
fn what_a_dead_process_left_is_removed_by_the_next_and_the_living_are_spared() {
    let parent = tempfile::tempdir().expect("a temporary folder");
    let dead = parent.path().join("mu-dead");
    fs::create_dir_all(dead.join("0/half")).expect("makes");
    let living = RunFolder::new(parent.path()).expect("makes");
    assert!(!dead.exists());
    let second = RunFolder::new(parent.path()).expect("makes");
    assert!(living.path().exists() && second.path().exists());
    #[cfg(unix)]
    {
        use std::os::unix::fs::PermissionsExt as _;
        let mode = fs::metadata(living.path()).expect("is there").permissions().mode();
        assert_eq!(mode & 0o777, 0o700);
    }
    drop((living, second));
    let left: Vec<_> = fs::read_dir(parent.path()).expect("reads").flatten().collect();
    assert_eq!(left.len(), 1, "{left:?}");
}
