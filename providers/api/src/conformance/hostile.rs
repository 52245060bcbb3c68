//! Trees that every provider must refuse, as files and links that every format can express.
//!
//! Tricks that only one format can express (hard links, devices) are tested with that format.

/// What lies at a path of a hostile tree.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Item {
    /// A file with this content.
    File(&'static str),
    /// A symbolic link to this target.
    Link(&'static str),
}

/// A tree that must be refused.
#[derive(Debug, Clone)]
pub struct HostileTree {
    /// What it tries.
    pub name: &'static str,
    /// Paths, slash-separated, and what lies there.
    pub items: Vec<(Vec<u8>, Item)>,
}

/// All hostile trees. Each also has a valid `Mu.yaml`, so that nothing else is wrong with it.
pub fn trees() -> Vec<HostileTree> {
    const FILE: Item = Item::File("hostile");
    let tree = |name, items: &[(&[u8], Item)]| {
        let honest = (b"Mu.yaml".to_vec(), Item::File("name: hostile/package\n"));
        let hostile = items.iter().map(|(path, item)| (path.to_vec(), item.clone()));
        HostileTree { name, items: std::iter::once(honest).chain(hostile).collect() }
    };
    vec![
        tree("an absolute path", &[(b"/tmp/mu-hostile", FILE)]),
        tree("a path that climbs out", &[(b"../mu-hostile", FILE)]),
        tree("a path that climbs out further in", &[(b"a/../../mu-hostile", FILE)]),
        tree("a path with a dot segment", &[(b"a/./b", FILE)]),
        tree("a path with an empty segment", &[(b"a//b", FILE)]),
        tree("a path with a backslash", &[(b"..\\mu-hostile", FILE)]),
        tree("a path with a drive", &[(b"C:mu-hostile", FILE)]),
        tree("a path with a control character", &[(b"a\x1b[2Jb", FILE)]),
        tree("a path that is not UTF-8", &[(b"a\xffb", FILE)]),
        tree("a .git folder", &[(b".git/config", FILE)]),
        tree("a .git folder in another case", &[(b"a/.Git/config", FILE)]),
        tree("a .git folder under its short name", &[(b"GIT~1/config", FILE)]),
        tree("a .git folder with a trailing dot", &[(b".git./config", FILE)]),
        tree("a .git folder that HFS+ sees", &[(".g\u{200c}it/config".as_bytes(), FILE)]),
        tree("a .mu folder under its short name", &[(b"MU~1/packs/a/Mu.yaml", FILE)]),
        tree("a name that Windows cuts", &[(b"a./b", FILE)]),
        tree("a name that Windows cannot hold", &[(b"a?b", FILE)]),
        tree("a name that is turned around", &[("a\u{202e}cod.exe".as_bytes(), FILE)]),
        tree("names that HFS+ takes for one", &[(b"a", FILE), ("a\u{200c}".as_bytes(), FILE)]),
        tree("a link to a drive", &[(b"link", Item::Link("C:/Windows"))]),
        tree("a .mu folder", &[(b".mu/packs/a/Mu.yaml", FILE)]),
        tree("names that differ in case", &[(b"a/File", FILE), (b"a/file", FILE)]),
        tree("folders that differ in case", &[(b"A/x", FILE), (b"a/y", FILE)]),
        tree(
            "names that differ in Unicode form",
            &[("\u{e9}".as_bytes(), FILE), ("e\u{301}".as_bytes(), FILE)],
        ),
        tree("a link to an absolute path", &[(b"link", Item::Link("/etc/passwd"))]),
        tree("a link that climbs out", &[(b"a/link", Item::Link("../../mu-hostile"))]),
        tree("a link that climbs after descending", &[(b"link", Item::Link("a/../../x"))]),
        tree("a link into .git", &[(b"link", Item::Link(".git/hooks/pre-commit"))]),
        tree("a link that is also a folder", &[(b"Link", Item::Link("a")), (b"link/x", FILE)]),
    ]
}
