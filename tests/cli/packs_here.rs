//! Packs of this machine that no registry has: those of the user and of the runtime, and those that somebody
//! has put into the workspace.

use std::fs;

use crate::support::git::Origin;
use crate::support::{Package, Sandbox, digest_of};

fn remove(sandbox: &Sandbox, folders: &[&str]) {
    for folder in folders {
        let folder = sandbox.path(folder);
        if folder.exists() {
            fs::remove_dir_all(folder).expect("is ours");
        }
    }
}

fn source(sandbox: &Sandbox, package: usize) -> String {
    sandbox.lock()["packages"][package]["source"].as_str().expect("is text").to_owned()
}

const ELK: &str = "runtime/lib/packs/hub.mu.com/aws/elk";

#[test]
fn what_no_registry_has_is_taken_from_the_runtime_and_the_user() {
    for resolution in ["highest", "minimal"] {
        let mut sandbox = Sandbox::with_dependencies(&["aws/elk#^1.2"]);
        sandbox.set("MU_RESOLUTION", resolution);
        sandbox.publish(&[Package::new("aws/log", "2.0.0")]);
        // What it needs is found in the same way, or in a registry.
        let elk = Package::new("aws/elk", "1.2.0").needs("aws/utils#~1.5.3").needs("aws/log#^2");
        sandbox.place(ELK, &elk);
        sandbox.place("home/.mu/packs/aws/utils", &Package::new("aws/utils", "1.5.3"));
        sandbox.place("runtime/lib/packs/aws/utils", &Package::new("aws/utils", "1.9.0"));
        sandbox.mu(&["get"]).ok();
        let expected =
            ["hub.mu.com/aws/elk 1.2.0", "hub.mu.com/aws/log 2.0.0", "hub.mu.com/aws/utils 1.5.3"];
        assert_eq!(sandbox.locked(), expected);
        assert_eq!(source(&sandbox, 0), "pack+muroot/hub.mu.com/aws/elk");
        assert_eq!(source(&sandbox, 2), "pack+global/aws/utils");
        let digest = digest_of(&sandbox.path(ELK));
        assert_eq!(sandbox.lock()["packages"][0]["digest"], digest);
        for arguments in [&["verify"][..], &["status"], &["tree"], &["list"], &["outdated"]] {
            sandbox.mu(arguments).ok();
        }
        sandbox.mu(&["why", "aws/utils"]).ok().says(&["pack+global/aws/utils", "aws/elk"]);
        sandbox.mu(&["get"]).ok().says(&["up to date"]);
        sandbox.mu(&["update"]).ok().says(&["up to date"]);
        let lock = sandbox.read("Mu.lock");
        for flag in ["--locked", "--frozen"] {
            remove(&sandbox, &["cache", "work/.mu/packs"]);
            sandbox.mu(&["get", flag]).ok();
            assert_eq!(digest_of(&sandbox.path("work/.mu/packs/hub.mu.com/aws/elk")), digest);
        }
        assert_eq!(sandbox.read("Mu.lock"), lock);
        // On a machine with other content, and on one without it.
        sandbox.place(ELK, &Package::new("aws/elk", "1.2.0").file("more.txt", "other"));
        remove(&sandbox, &["cache", "work/.mu/packs"]);
        let run = sandbox.mu(&["get", "--locked"]).fails();
        run.says(&[
            "aws/elk` 1.2.0",
            "runtime/lib/packs/hub.mu.com/aws/elk",
            "other content",
            &digest,
        ]);
        remove(&sandbox, &["runtime/lib", "cache"]);
        let run = sandbox.mu(&["get", "--locked"]).fails();
        run.says(&[
            "aws/elk` 1.2.0",
            "runtime/lib/packs/hub.mu.com/aws/elk",
            "not there",
            "mu update",
        ]);
        assert!(!sandbox.has("work/.mu/packs/hub.mu.com"));
        // A registry that has it now works as well.
        sandbox.publish(&[Package::new("aws/elk", "1.3.0")]);
        sandbox.mu(&["update"]).ok();
        assert_eq!(sandbox.locked(), ["hub.mu.com/aws/elk 1.3.0"]);
        assert!(source(&sandbox, 0).starts_with("hub+"));
    }
}

#[test]
fn packs_of_this_machine_do_not_count_where_a_registry_answers_or_cannot() {
    let sandbox = Sandbox::with_dependencies(&["aws/elk"]);
    sandbox.place(ELK, &Package::new("aws/elk", "9.0.0"));
    sandbox.publish(&[Package::new("aws/elk", "1.0.0")]);
    sandbox.mu(&["get"]).ok();
    assert_eq!(sandbox.locked(), ["hub.mu.com/aws/elk 1.0.0"]);
    // If a pack does not fit, the error names it and its place.
    let sandbox = Sandbox::with_dependencies(&["aws/elk#^2"]);
    sandbox.place(ELK, &Package::new("aws/elk", "1.0.0"));
    let run = sandbox.mu(&["get"]).fails();
    run.says(&["aws/elk ^2", "no registry has `aws/elk`", "1.0.0 in `muroot/hub.mu.com/aws/elk`"]);
    let sandbox = Sandbox::with_dependencies(&["aws/elk"]);
    sandbox.place(ELK, &Package::new("aws/elk", "1.0.0"));
    sandbox.hub_is_at("http://127.0.0.1:1/");
    let run = sandbox.mu(&["get"]).fails();
    run.says(&["cannot reach", "runtime/lib/packs/hub.mu.com/aws/elk", "`--offline`"]);
    sandbox.mu(&["get", "--offline"]).ok();
}

const PLACED: [&str; 2] = [".mu/packs/hub.mu.com/aws/ec2", ".mu/packs/aws/ec2"];

#[test]
fn what_somebody_put_into_the_workspace_is_used_and_left_alone() {
    for (place, resolution) in PLACED.into_iter().zip(["highest", "minimal"]) {
        let mut sandbox = Sandbox::with_dependencies(&["aws/app"]);
        sandbox.set("MU_RESOLUTION", resolution);
        sandbox.publish(&[
            Package::new("aws/app", "1.0.0").needs("aws/ec2#^1"),
            Package::new("aws/ec2", "1.0.0"),
            Package::new("aws/ec2", "1.9.0"),
            Package::new("aws/vpc", "1.0.0"),
        ]);
        // It is one that no registry has, and what it needs comes along.
        let folder = format!("work/{place}");
        sandbox.place(&folder, &Package::new("aws/ec2", "1.5.0").needs("aws/vpc"));
        let run = sandbox.mu(&["get"]).ok();
        run.says(&["aws/ec2` 1.5.0 is used from", place, "leaves it alone"]);
        let expected =
            ["hub.mu.com/aws/app 1.0.0", "hub.mu.com/aws/ec2 1.5.0", "hub.mu.com/aws/vpc 1.0.0"];
        assert_eq!(sandbox.locked(), expected);
        assert_eq!(source(&sandbox, 1), format!("pack+{place}"));
        let digest = digest_of(&sandbox.path(&folder));
        assert_eq!(sandbox.lock()["packages"][1]["digest"], digest);
        let lock = sandbox.read("Mu.lock");
        for arguments in [&["get"][..], &["get", "--locked"], &["get", "--frozen"], &["update"]] {
            remove(&sandbox, &["cache", "work/.mu/packs/hub.mu.com/aws/app"]);
            sandbox.mu(arguments).ok();
            assert_eq!(sandbox.read("Mu.lock"), lock, "{arguments:?}");
            assert_eq!(digest_of(&sandbox.path(&folder)), digest);
        }
        sandbox.mu(&["verify"]).ok().says(&["3 packs verified"]);
        sandbox.mu(&["status"]).ok().says(&["up to date"]);
        sandbox.mu(&["list"]).ok().says(&[place]).does_not_say(&["not installed"]);
        let run = sandbox.mu(&["which", "aws/ec2"]).ok();
        assert_eq!(run.stdout, format!("[DIR]/{folder}\n"));
        // Somebody changes it.
        sandbox.write(&format!("{place}/more.txt"), "changed");
        sandbox.mu(&["verify"]).fails().says(&["its content changed"]);
        for arguments in [["get"].as_slice(), &["get", "--locked"]] {
            let error = sandbox.mu(&[arguments, &["--json"]].concat()).fails_with("integrity");
            let message = error["message"].as_str().expect("is text");
            assert!(message.contains(place) && message.contains(&digest), "{message}");
        }
        sandbox.mu(&["update", "aws/ec2"]).ok();
        assert_ne!(sandbox.lock()["packages"][1]["digest"], digest);
        // Without it, the error says what is missing where.
        remove(&sandbox, &[&folder]);
        sandbox.mu(&["get", "--frozen"]).fails().says(&["aws/ec2` 1.5.0", place, "is not there"]);
        // Nothing requires it any more, but it still belongs to somebody.
        sandbox.place(&folder, &Package::new("aws/ec2", "1.5.0").needs("aws/vpc"));
        sandbox.mu(&["update"]).ok();
        sandbox.asks_for(&[]);
        sandbox.mu(&["get"]).ok();
        assert!(sandbox.has(&format!("{folder}/Mu.yaml")));
        assert!(!sandbox.has("work/.mu/packs/hub.mu.com/aws/vpc"));
    }
}

#[test]
fn what_somebody_put_there_and_does_not_do_is_an_error_that_names_both() {
    for place in PLACED {
        let sandbox = Sandbox::with_dependencies(&["aws/ec2#^2"]);
        sandbox.publish(&[Package::new("aws/ec2", "1.0.0"), Package::new("aws/ec2", "2.0.0")]);
        let folder = format!("work/{place}");
        sandbox.place(&folder, &Package::new("aws/ec2", "1.5.0"));
        let run = sandbox.mu(&["get"]).fails();
        run.says(&["acme/web requires aws/ec2 ^2", place, "1.5.0", "remove it"]);
        assert!(!sandbox.has("work/Mu.lock"));
        // The registry has the version with other content.
        sandbox.place(&folder, &Package::new("aws/ec2", "2.0.0").file("more.txt", "other"));
        let error = sandbox.mu(&["get", "--json"]).fails_with("integrity");
        let message = error["message"].as_str().expect("is text");
        assert!(message.contains(place) && message.contains("2.0.0"), "{message}");
        // With the same content, it is the registry's version, which everyone can get.
        fs::remove_dir_all(sandbox.path(&folder)).expect("is ours");
        sandbox.place(&folder, &Package::new("aws/ec2", "2.0.0"));
        sandbox.mu(&["get"]).ok();
        assert!(source(&sandbox, 0).starts_with("hub+"));
        assert!(sandbox.has(&format!("{folder}/Mu.yaml")));
    }
}

#[test]
fn an_override_leads_to_a_package_of_the_runtime_too() {
    let sandbox = Sandbox::with_dependencies(&["aws/elk#^1"]);
    sandbox.publish(&[Package::new("aws/elk", "1.0.0")]);
    sandbox.place("runtime/lib/packs/mine/elk", &Package::new("mine/elk", "2.0.0"));
    sandbox.write(".mu/workspace.yaml", "overrides: {aws/elk: mine/elk}\n");
    sandbox.mu(&["get"]).ok();
    assert_eq!(sandbox.locked(), ["hub.mu.com/aws/elk 2.0.0"]);
    assert_eq!(source(&sandbox, 0), "pack+muroot/mine/elk");
    let lock = sandbox.read("Mu.lock");
    remove(&sandbox, &["cache", "work/.mu/packs"]);
    sandbox.mu(&["get", "--locked"]).ok();
    sandbox.mu(&["verify"]).ok();
    sandbox.mu(&["get"]).ok().says(&["up to date"]);
    assert_eq!(sandbox.read("Mu.lock"), lock);
    remove(&sandbox, &["runtime/lib", "cache", "work/.mu/packs"]);
    let run = sandbox.mu(&["get", "--locked"]).fails();
    run.says(&["runtime/lib/packs/mine/elk", "not there"]);
}

const PACK: &str = "work/.mu/packs/hub.mu.com/aws/ec2";

/// A workspace where mu has installed `aws/ec2` 1.0.0, and now has to do something else.
fn to_change(dependency: &str) -> Sandbox {
    let sandbox = Sandbox::with_dependencies(&["aws/ec2#=1.0.0"]);
    sandbox.publish(&[
        Package::new("aws/ec2", "1.0.0").file("file.txt", "old").file("other.txt", "old"),
        Package::new("aws/ec2", "1.1.0").file("file.txt", "new"),
        Package::new("aws/vpc", "1.0.0"),
    ]);
    sandbox.mu(&["get"]).ok();
    sandbox.asks_for(&[dependency]);
    sandbox
}

#[test]
fn a_folder_that_somebody_put_in_the_place_of_a_pack_is_not_replaced_or_removed() {
    for dependency in ["aws/ec2#^1.1", "aws/vpc"] {
        let sandbox = to_change(dependency);
        let lock = sandbox.read("Mu.lock");
        remove(&sandbox, &[PACK]);
        sandbox.place(PACK, &Package::new("aws/ec2", "1.0.5").file("mine.txt", "mine"));
        let mine = digest_of(&sandbox.path(PACK));
        let error = sandbox.mu(&["get", "--json"]).fails_with("conflict");
        let message = error["message"].as_str().expect("is text");
        assert!(message.contains("aws/ec2` is in the way"), "{message}");
        sandbox
            .mu(&["get"])
            .fails()
            .says(&["mu installed `aws/ec2` 1.0.0 there", "move the folder away"]);
        assert_eq!(digest_of(&sandbox.path(PACK)), mine);
        assert_eq!(sandbox.read("Mu.lock"), lock);
        // The way out.
        fs::rename(sandbox.path(PACK), sandbox.path("work/mine")).expect("is ours");
        sandbox.write("mine/Mu.yaml", "name: acme/mine\nversion: 1.0.0\n");
        sandbox.mu(&["get"]).ok();
        sandbox.mu(&["verify"]).ok();
        // A file is not a pack either.
        remove(&sandbox, &[PACK]);
        sandbox.write(".mu/packs/hub.mu.com/aws/ec2", "mine");
        sandbox.asks_for(&[]);
        match dependency {
            "aws/vpc" => sandbox.mu(&["get"]).ok(),
            _ => sandbox.mu(&["get"]).fails().says(&["aws/ec2` is in the way: it is a file"]),
        };
        assert_eq!(sandbox.read(".mu/packs/hub.mu.com/aws/ec2"), "mine");
    }
}

#[test]
fn a_pack_that_somebody_changed_is_not_replaced_or_removed() {
    for dependency in ["aws/ec2#^1.1", "aws/vpc"] {
        let sandbox = to_change(dependency);
        let file = sandbox.path(PACK).join("file.txt");
        fs::remove_file(&file).expect("is ours");
        fs::write(&file, "mine").expect("is ours");
        sandbox.mu(&["get"]).fails().says(&["aws/ec2` is in the way", "`mu patch aws/ec2`"]);
        assert_eq!(fs::read_to_string(&file).expect("is there"), "mine");
        // What mu has itself is no loss.
        fs::remove_file(&file).expect("is ours");
        sandbox.mu(&["get"]).ok();
        sandbox.mu(&["verify"]).ok();
        assert!(!sandbox.has(&format!("{PACK}/other.txt")));
    }
}

#[test]
fn files_that_tools_add_to_a_pack_go_with_it_but_packages_do_not() {
    for dependency in ["aws/ec2#^1.1", "aws/vpc"] {
        let sandbox = to_change(dependency);
        sandbox.place(&format!("{PACK}/sub"), &Package::new("aws/ec2/sub", "1.0.0"));
        let run = sandbox.mu(&["get"]).fails();
        run.says(&[
            "aws/ec2/sub` is in the way: mu has no record of installing it",
            "move the folder away",
        ]);
        assert!(sandbox.has(&format!("{PACK}/sub/Mu.yaml")));
        remove(&sandbox, &[&format!("{PACK}/sub")]);
        sandbox.write(".mu/packs/hub.mu.com/aws/ec2/__pycache__/cache", "cache");
        sandbox.mu(&["get"]).ok();
        sandbox.mu(&["verify"]).ok();
        assert!(!sandbox.has(&format!("{PACK}/__pycache__")));
    }
}

#[test]
fn a_pack_that_another_cache_has_installed_is_replaced() {
    // As in a container that shares the workspace, but not the cache.
    let mut sandbox = to_change("aws/ec2#^1.1");
    let cache = sandbox.path("other").display().to_string();
    sandbox.set("MU_CACHE_DIR", &cache);
    sandbox.mu(&["get"]).ok();
    let cache = sandbox.path("cache").display().to_string();
    sandbox.set("MU_CACHE_DIR", &cache);
    sandbox.publish(&[Package::new("aws/ec2", "1.2.0")]);
    sandbox.mu(&["update"]).ok();
    assert_eq!(sandbox.locked(), ["hub.mu.com/aws/ec2 1.2.0"]);
    sandbox.mu(&["verify"]).ok();
}

#[test]
fn a_pack_that_its_registry_has_published_takes_no_line_from_a_manifest() {
    for resolution in ["highest", "minimal"] {
        let mut sandbox = Sandbox::with_dependencies(&["aws/app#^1.0.0"]);
        sandbox.set("MU_RESOLUTION", resolution);
        sandbox.publish(&[
            Package::new("aws/app", "1.0.0").needs("aws/ec2#^1.0.0"),
            Package::new("aws/ec2", "1.0.0"),
            Package::new("aws/ec2", "1.1.0"),
        ]);
        // The minimal strategy now has a line that only keeps 1.1.0 in use.
        sandbox.mu(&["update"]).ok();
        let (manifest, locked) = (sandbox.read("Mu.yaml"), sandbox.locked());
        assert_eq!(locked[1], "hub.mu.com/aws/ec2 1.1.0");
        sandbox.publish(&[Package::new("aws/ec2", "1.2.0")]);
        // As after a merge of locks that nobody could read, on a machine that has kept its packs and not its cache.
        remove(&sandbox, &["cache"]);
        fs::remove_file(sandbox.path("work/Mu.lock")).expect("is there");
        sandbox.mu(&["get"]).ok();
        assert_eq!(sandbox.locked()[1], "hub.mu.com/aws/ec2 1.1.0");
        assert_eq!(sandbox.read("Mu.yaml"), manifest);
        sandbox.mu(&["get", "--locked"]).ok();
        sandbox.mu(&["verify"]).ok();
        // Where no other can be fetched, it is what there is.
        remove(&sandbox, &["cache", "hub/packs"]);
        fs::remove_file(sandbox.path("work/Mu.lock")).expect("is there");
        sandbox.mu(&["get", "--offline"]).ok();
        assert_eq!(sandbox.locked()[1], "hub.mu.com/aws/ec2 1.1.0");
    }
}

#[test]
fn packs_of_an_older_lock_are_replaced_although_mu_has_no_record_of_them() {
    let sandbox = Sandbox::with_dependencies(&[]);
    let origin = Origin::new("tool");
    for version in ["1.0.0", "1.1.0"] {
        sandbox.publish(&[Package::new("aws/ec2", version).file("file.txt", version)]);
        sandbox.publish(&[Package::new("aws/vpc", version).file("file.txt", version)]);
        let manifest = format!("name: aws/tool\nversion: {version}\n");
        origin.commit(&[("Mu.yaml", &manifest), ("file.txt", version)]);
        origin.git(&["tag", version]);
    }
    let tool = format!("git+file://{}", origin.folder().display());
    let wants = |version: &str| {
        let all = ["aws/ec2", "aws/vpc", &*tool].map(|name| format!("{name}#{version}"));
        sandbox.asks_for(&all.each_ref().map(String::as_str));
        sandbox.mu(&["get"]).ok();
        sandbox.read("Mu.lock")
    };
    let new = wants("1.1.0");
    wants("1.0.0");
    let packs = ["aws/ec2", "aws/vpc", &*tool].map(|name| {
        let place = sandbox.mu(&["which", name]).ok().stdout;
        sandbox.path(place.trim_end().trim_start_matches("[DIR]/"))
    });
    // As after a pull, on a machine that restored its packs, but not its cache.
    sandbox.write("Mu.yaml", &sandbox.read("Mu.yaml").replace("1.0.0", "1.1.0"));
    sandbox.write("Mu.lock", &new);
    sandbox.mu(&["cache", "clean"]).ok();
    sandbox.mu(&["get", "--locked"]).ok();
    sandbox.mu(&["verify"]).ok().says(&["3 packs verified"]);
    for pack in &packs {
        assert_eq!(fs::read(pack.join("file.txt")).expect("is there"), b"1.1.0");
    }
    // What nobody has published is not replaced, and all of it is named at once.
    for pack in &packs {
        let file = pack.join("file.txt");
        fs::remove_file(&file).expect("is ours");
        fs::write(&file, "mine").expect("is ours");
    }
    sandbox.mu(&["cache", "clean"]).ok();
    let run = sandbox.mu(&["get", "--locked"]).fails();
    run.says(&[
        "is in the way",
        "and so are 2 other folders",
        "(`rm -r [DIR]/work/.mu/packs/hub.mu.com/aws/ec2 ",
    ]);
    for pack in &packs {
        assert_eq!(fs::read(pack.join("file.txt")).expect("is there"), b"mine");
    }
}
