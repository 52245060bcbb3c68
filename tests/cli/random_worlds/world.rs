//! A workspace in a universe, and what holds in it after each command that succeeds.

use super::random::Random;
use super::story::{Story, difference};
use super::universe::{Known, Place, Universe};

/// The manifests of the workspace.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Format {
    Mu,
    Chart,
    Kcl,
    Crossplane,
}

impl Format {
    /// Where its packages are.
    pub(super) fn places(self) -> &'static [Place] {
        match self {
            Self::Mu => &super::universe::PLACES,
            Self::Chart => &[Place::Charts, Place::OciCharts],
            Self::Kcl => &[Place::Kcl],
            Self::Crossplane => &[Place::Crossplane],
        }
    }

    pub(super) fn file(self) -> &'static str {
        match self {
            Self::Mu => "Mu.yaml",
            Self::Chart => "Chart.yaml",
            Self::Kcl => "kcl.mod",
            Self::Crossplane => "crossplane.yaml",
        }
    }

    fn manifest(self) -> &'static str {
        match self {
            Self::Mu => "name: acme/web\nversion: 0.1.0\n",
            Self::Chart => "apiVersion: v2\nname: app\nversion: 0.1.0\n",
            Self::Kcl => "[package]\nname = \"app\"\nversion = \"0.1.0\"\n",
            Self::Crossplane => {
                "apiVersion: meta.pkg.crossplane.io/v1\nkind: Configuration\nmetadata:\n  name: conf\n"
            }
        }
    }
}

/// A workspace.
pub(super) struct World<'u> {
    pub(super) story: Story,
    pub(super) universe: &'u Universe,
    pub(super) format: Format,
    pub(super) random: Random,
    /// References of packages that are edited.
    pub(super) edited: Vec<String>,
    /// Folders that take the place of a package, and whether they do so for this machine alone.
    pub(super) placed: Vec<(String, bool)>,
    pub(super) is_vendored: bool,
}

impl<'u> World<'u> {
    pub(super) fn new(universe: &'u Universe, format: Format, seed: u64) -> Self {
        let mut random = Random::new(seed);
        let mut story = Story::new(&universe.hub(), &universe.folders());
        let resolution = *random.one(&["highest", "minimal"]);
        let mut settings =
            format!("resolution: {resolution}\nregistries: {}\n", universe.registries);
        if random.is_one_in(3) {
            settings.push_str("majors: many\n");
        }
        if random.is_one_in(4) {
            settings.push_str(&format!("link: {}\n", random.one(&["copy", "hardlink", "symlink"])));
        }
        story.write(".mu/workspace.yaml", &settings);
        story.write(format.file(), format.manifest());
        story.git_ok(&["init", "--quiet", "--initial-branch=main", "."]);
        let mut world = Self {
            story,
            universe,
            format,
            random,
            edited: Vec::new(),
            placed: Vec::new(),
            is_vendored: false,
        };
        world.story.commit();
        world
    }

    /// One of the packages, rather one that is in use.
    pub(super) fn package(&mut self) -> Known {
        let lock = self.story.read("Mu.lock");
        let used: Vec<&Known> =
            self.universe.packages.iter().filter(|known| is_in(&lock, known)).collect();
        match used.is_empty() || self.random.is_one_in(3) {
            true => self.random.one(&self.universe.packages).clone(),
            false => (*self.random.one(&used)).clone(),
        }
    }

    /// One of those in use that these places have.
    pub(super) fn used_at(&mut self, places: &[Place]) -> Option<Known> {
        let lock = self.story.read("Mu.lock");
        let fits = |known: &&Known| places.contains(&known.place) && is_in(&lock, known);
        let used: Vec<&Known> = self.universe.packages.iter().filter(fits).collect();
        (!used.is_empty()).then(|| (*self.random.one(&used)).clone())
    }

    /// How a person names a package here.
    pub(super) fn named(&self, known: &Known) -> String {
        match self.format {
            Format::Kcl => known.name.clone(),
            _ => known.reference.clone(),
        }
    }

    /// Whether something counts for this machine alone.
    pub(super) fn is_personal(&self) -> bool {
        !self.edited.is_empty() || self.placed.iter().any(|(_, is_personal)| *is_personal)
    }

    /// A command of mu: if it succeeds, everything holds; if not, it changes nothing.
    pub(super) fn command(&mut self, folder: &str, words: &[&str]) -> bool {
        let before = self.story.state("work");
        let run = self.story.mu_in(folder, words);
        if run.status == 0 {
            self.check();
            return true;
        }
        if let Some(difference) = difference(&before, &self.story.state("work")) {
            panic!("a command that failed has changed something:\n{}\n{difference}", run.shown());
        }
        false
    }

    /// What is true of a workspace after a command that has succeeded.
    pub(super) fn check(&mut self) {
        let story = &mut self.story;
        story.mu(&["verify"]).ok();
        story.fits("work");
        let before = story.state("work");
        story.mu(&["get"]).ok();
        let again = difference(&before, &story.state("work"));
        assert_eq!(again, None, "a second `get` changes something");
        let manifest = text_of(&before, self.format.file());
        assert!(!manifest.contains("\"*\"") && !manifest.contains("version: \"\""), "{manifest}");
        let story = &mut self.story;
        story.commit();
        if self.random.is_one_in(2) {
            return;
        }

        // A colleague, whose cache is new once in a while.
        story.remove("clone");
        story.git_ok(&["clone", "--quiet", ".", "../clone"]);
        let cached = self.random.is_one_in(4).then(|| {
            story.remove("cache");
            story.note("the cache is gone");
        });
        story.fits("clone");
        if cached.is_some() {
            story.fits("work");
        }
        let cloned = story.state("clone");
        assert_eq!(
            cloned.get("Mu.lock"),
            before.get("Mu.lock"),
            "the lock of a clone is another one"
        );
        if !self.is_personal() {
            let packs = |state: &super::story::State| {
                // An empty folder of packs may be there, or not.
                let is_pack = |path: &&String| {
                    path.starts_with(".mu/packs/") && *path != ".mu/packs/.gitignore"
                };
                let packs = state.iter().filter(|(path, _)| is_pack(path));
                packs.map(|(path, file)| (path.clone(), file.clone())).collect()
            };
            let other = difference(&packs(&before), &packs(&cloned));
            assert_eq!(other, None, "a clone has other packs");
        }
        let story = &mut self.story;
        story.mu_in("clone", &["verify"]).ok();

        // Without the lock, other versions may be chosen.
        let lock = story.read("Mu.lock");
        story.remove("clone/Mu.lock");
        let again = story.mu_in("clone", &["get"]);
        let is_minimal = story.read(".mu/workspace.yaml").contains("resolution: minimal");
        // What the manifests cannot say is in the lock alone, and with it what made versions fit together.
        if is_minimal && lock.contains("\nextra:") && again.status == 1 {
            assert!(again.stderr.contains("error: no versions fit together"), "{again:?}");
        } else {
            again.ok();
        }
        if is_minimal && !lock.contains("\nextra:") {
            let found = story.state("clone");
            for file in ["Mu.lock", self.format.file()] {
                assert_eq!(
                    text_of(&found, file),
                    text_of(&before, file),
                    "the manifests are the state"
                );
            }
        }
        self.story.remove("clone");
    }
}

fn text_of(state: &super::story::State, file: &str) -> String {
    state.get(file).map(|(_, text)| String::from_utf8_lossy(text).into_owned()).unwrap_or_default()
}

fn is_in(lock: &str, known: &Known) -> bool {
    lock.lines().any(|line| line.starts_with("- id: ") && line.ends_with(&known.id))
}
