//! What a person does next, at random.

use super::universe::{Known, Place};
use super::world::{Format, World};

impl World<'_> {
    /// The first thing that is done.
    pub(super) fn begin(&mut self) {
        self.add();
    }

    /// One more thing.
    pub(super) fn step(&mut self) {
        let is_ours = self.format == Format::Mu;
        match self.random.below(if is_ours { 33 } else { 23 }) {
            0..=4 => self.add(),
            5 | 6 => self.names(&["remove"], None),
            7 => drop(self.command("work", &["update"])),
            8 => self.names(&["update"], None),
            9 | 10 => self.names(&["update"], Some("#")),
            11 => drop(self.command("work", &["upgrade"])),
            12 => self.names(&["upgrade"], Some("#")),
            13 | 20 => self.names(&["upgrade", "--pre"], None),
            14 => self.names(&["downgrade"], Some("#")),
            15 => drop(self.command("work", &["pin"])),
            16 => self.names(&["pin"], Some("#")),
            17 => drop(self.command("work", &["unpin"])),
            18 => self.lose(),
            19 => self.merge(),
            21 | 22 => self.names(&["get"], Some("#^")),
            23 | 24 => self.by_hand(),
            25 => self.member(),
            26..=28 => self.placement(),
            29 => self.edit(),
            30 => self.patch(),
            31 => self.vendor(),
            _ => self.strategy(),
        }
    }

    /// A command about one package, with one of its versions behind `sign`, if there is one.
    fn names(&mut self, words: &[&str], sign: Option<&str>) {
        let known = self.package();
        let mut name = self.named(&known);
        if let Some(sign) = sign {
            let Some(version) = known.version(&mut self.random) else { return };
            name.push_str(&format!("{sign}{version}"));
        }
        let mut words = words.to_vec();
        words.push(&name);
        self.command("work", &words);
    }

    fn add(&mut self) {
        let known = self.package();
        let range = known.range(&mut self.random);
        let name = format!("{}{range}", self.named(&known));
        let has_member = self.story.has("api/Mu.yaml");
        let folder = if has_member && self.random.is_one_in(2) { "work/api" } else { "work" };
        self.command(folder, &["add", &name]);
    }

    /// Something is lost that mu can make again.
    fn lose(&mut self) {
        let lost = *self.random.one(&[
            "cache",
            "work/.mu/packs",
            "work/Mu.lock",
            "cache/store",
            "cache/packs",
        ]);
        if self.is_vendored && lost == "work/.mu/packs" {
            return;
        }
        self.story.remove(lost);
        assert!(self.command("work", &["get"]), "{lost} was lost");
    }

    /// Changes files, and installs what they need now; or takes the change back.
    fn change(&mut self, change: impl FnOnce(&mut Self)) -> bool {
        change(self);
        if self.command("work", &["get"]) {
            return true;
        }
        self.story.git_ok(&["reset", "--quiet", "--hard"]);
        self.story.git_ok(&["clean", "--quiet", "-d", "--force"]);
        assert!(self.command("work", &["get"]), "it worked before");
        false
    }

    fn requirements(&mut self) -> String {
        let mut text = String::new();
        let mut named: Vec<String> = Vec::new();
        for _ in 0..self.random.below(4) {
            let known = self.package();
            let reference = self.named(&known);
            if !named.contains(&reference) {
                let range = known.range(&mut self.random);
                text.push_str(&format!("  - \"{reference}{range}\"\n"));
                named.push(reference);
            }
        }
        if text.is_empty() { text } else { format!("dependencies:\n{text}") }
    }

    /// A person writes the manifest.
    fn by_hand(&mut self) {
        let requirements = self.requirements();
        self.change(|world| {
            world
                .story
                .write("Mu.yaml", &format!("name: acme/web\nversion: 0.1.0\n{requirements}"));
        });
    }

    /// There is another package in the workspace, or no longer.
    fn member(&mut self) {
        let requirements = self.requirements();
        self.change(|world| match world.story.has("api") {
            true => world.story.remove("work/api"),
            false => {
                let text = format!("name: acme/api\nversion: 0.2.0\n{requirements}");
                world.story.write("api/Mu.yaml", &text);
            }
        });
    }

    /// A folder takes the place of a package of the hub, or no longer.
    fn placement(&mut self) {
        if let Some((folder, is_personal)) = self.placed.pop() {
            let manifest = self.story.read(&format!("{folder}/Mu.yaml"));
            if !self.change(|world| world.story.remove(&format!("work/{folder}"))) {
                if is_personal {
                    self.story.write(&format!("{folder}/Mu.yaml"), &manifest);
                }
                self.placed.push((folder, is_personal));
                assert!(self.command("work", &["get"]), "it worked before");
            }
            return;
        }
        let hub: Vec<Known> = self
            .universe
            .packages
            .iter()
            .filter(|known| known.place == Place::Hub)
            .cloned()
            .collect();
        let known = self.random.one(&hub).clone();
        let version = known.version(&mut self.random).unwrap_or_default();
        let mut text = format!("name: {}\nversion: {version}\n", known.reference);
        let other = self.random.one(&hub).clone();
        if other.name != known.name && self.random.is_one_in(3) {
            let range = other.range(&mut self.random);
            text.push_str(&format!("dependencies: [\"{}{range}\"]\n", other.reference));
        }
        let is_personal = self.random.is_one_in(2);
        let folder = known.reference;
        // An earlier one may have been for this machine alone.
        let line = format!("/{folder}/\n");
        let ignored = self.story.read(".git/info/exclude").replace(&line, "");
        if is_personal {
            self.story.write(".git/info/exclude", &format!("{ignored}{line}"));
        } else if self.story.has(".git/info/exclude") {
            self.story.write(".git/info/exclude", &ignored);
        }
        self.placed.push((folder.clone(), is_personal));
        let file = format!("{folder}/Mu.yaml");
        self.story.write(&file, &text);
        if !self.command("work", &["get"]) {
            self.placed.pop();
            self.story.remove(&format!("work/{folder}"));
            assert!(self.command("work", &["get"]), "it worked before");
        }
    }

    /// A package is edited, or no longer.
    fn edit(&mut self) {
        if let Some(reference) = self.edited.pop() {
            self.edited.push(reference.clone());
            let before = self.story.read("Mu.lock");
            let run = self.story.mu(&["edit", "--done", &reference]);
            assert_eq!(run.status, 0, "nothing is in the clone: {}", run.shown());
            self.edited.pop();
            assert_eq!(self.story.read("Mu.lock"), before);
            self.check();
            return;
        }
        let Some(known) = self.used_at(&[Place::Git]) else { return };
        self.edited.push(known.reference.clone());
        if !self.command("work", &["edit", &known.reference]) {
            self.edited.pop();
        }
    }

    /// A package is patched, or no longer.
    fn patch(&mut self) {
        let places = [Place::Hub, Place::Git, Place::Charts, Place::Modules, Place::Kcl];
        let Some(known) = self.used_at(&places) else { return };
        if self.story.read(".mu/workspace.yaml").contains("patches:") && self.random.is_one_in(2) {
            self.command("work", &["patch", "--drop", &known.reference]);
            return;
        }
        let run = self.story.mu(&["patch", &known.reference]);
        let Some(copy) = run.stdout.lines().next().filter(|_| run.status == 0) else { return };
        let root = format!("{}/", self.story.sandbox.path("work").display());
        let copy = copy.trim_start_matches(&root).to_owned();
        let file = format!("{copy}/text.txt");
        if self.story.has(&file) {
            self.story.write(&file, "one\nand a half\ntwo\n");
            self.command("work", &["patch", "--save", &copy]);
        }
    }

    /// Packs are committed, or no longer.
    fn vendor(&mut self) {
        if self.is_vendored {
            if self.story.mu(&["vendor", "--undo"]).status == 0 {
                self.is_vendored = false;
                // As it says: what Git has stays there otherwise.
                self.story.git_ok(&["rm", "-r", "--cached", "--quiet", ".mu/packs"]);
                self.check();
            }
            return;
        }
        self.is_vendored = true;
        self.is_vendored = self.command("work", &["vendor"]);
    }

    /// The strategy is the other one.
    fn strategy(&mut self) {
        let is_minimal = self.story.read(".mu/workspace.yaml").contains("resolution: minimal");
        let other = if is_minimal { "highest" } else { "minimal" };
        self.change(|world| {
            world.story.mu(&["config", "set", "resolution", other]).ok();
        });
    }

    /// Two people change something on branches, and merge.
    fn merge(&mut self) {
        if self.is_vendored {
            return;
        }
        self.story.git_ok(&["checkout", "--quiet", "-b", "theirs"]);
        self.simple();
        self.story.git_ok(&["checkout", "--quiet", "main"]);
        assert!(self.command("work", &["get"]), "a branch is as it was");
        self.simple();
        let (is_clean, _) = self.story.git(&["merge", "--quiet", "--no-edit", "theirs"]);
        if !is_clean {
            self.resolve();
        }
        let before = self.story.state("work");
        let run = self.story.mu(&["get", "--json"]);
        match run.status {
            0 => self.check(),
            _ => {
                // What both branches want may not fit together.
                let code = run.error()["code"].clone();
                assert!(code == "no-solution" || code == "conflict", "{}", run.shown());
                let after = super::story::difference(&before, &self.story.state("work"));
                assert_eq!(after, None, "a command that failed has changed something");
                self.story.commit();
                self.story.git_ok(&["reset", "--quiet", "--hard", "ORIG_HEAD"]);
                assert!(self.command("work", &["get"]), "a branch is as it was");
            }
        }
        self.story.git_ok(&["branch", "--quiet", "-D", "theirs"]);
    }

    /// Resolves a merge's conflicts as docs/lock.md says: first the manifests, then the lock, by either side of it or by mu.
    fn resolve(&mut self) {
        let side = *self.random.one(&["--ours", "--theirs"]);
        let files = self.story.git_ok(&["diff", "--name-only", "--diff-filter=U"]);
        for file in files.lines().filter(|file| *file != "Mu.lock") {
            if !self.story.git(&["checkout", side, "--", file]).0 {
                // It is only on one side.
                self.story.remove(&format!("work/{file}"));
            }
        }
        if self.story.read("Mu.lock").contains("<<<<<<< ") {
            let unresolved = "unresolved merge conflict";
            if !self.is_personal() {
                self.story.mu(&["list"]).fails().says(&[unresolved, "mu get"]);
            }
            let side = *self.random.one(&[Some("--ours"), Some("--theirs"), None]);
            // Git may have taken the version of an entry from one side, and left its digest open: that is for a person.
            let left = || {
                let run = self.story.mu(&["get", "--dry-run"]);
                run.shown().contains(unresolved).then_some("--ours")
            };
            if let Some(side) = side.or_else(left) {
                self.story.git_ok(&["checkout", side, "--", "Mu.lock"]);
            }
        }
    }

    /// What somebody does on a branch.
    fn simple(&mut self) {
        for _ in 0..=self.random.below(2) {
            match self.random.below(8) {
                0..=3 => self.add(),
                4 => self.names(&["remove"], None),
                5 => drop(self.command("work", &["update"])),
                6 => self.names(&["update"], Some("#")),
                _ => self.names(&["upgrade"], Some("#")),
            }
        }
    }
}
