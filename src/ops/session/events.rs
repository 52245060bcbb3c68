//! How an operation reports what it is doing, without knowing about terminals.

use std::fmt;
use std::sync::Arc;

use mu_provider::http::RequestEvent;

use crate::ops::session::shown::PackageNaming;
use crate::ops::session::warning::Warning;
use crate::trust::TrustInForce;

/// A stage of an operation that takes long enough to be shown.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Stage {
    /// Asking registries, and choosing versions.
    Resolving,
    /// Fetching packages into the store.
    Fetching,
    /// Putting packs into place.
    Installing,
    /// Hashing what is installed.
    Verifying,
    /// Packing packages, and sending them to a hub.
    Publishing,
    /// Copying packages into another hub.
    Mirroring,
    /// Checking a hub.
    Checking,
    /// Running the builds of packages.
    Building,
    /// Removing what is not needed.
    Removing,
}

impl Stage {
    /// The stage in a word.
    pub fn verb(self) -> &'static str {
        match self {
            Self::Resolving => "resolving",
            Self::Fetching => "fetching",
            Self::Installing => "installing",
            Self::Verifying => "verifying",
            Self::Publishing => "publishing",
            Self::Mirroring => "mirroring",
            Self::Checking => "checking",
            Self::Building => "building",
            Self::Removing => "removing",
        }
    }
}

/// Receives what an operation reports while it runs. Calls come from many threads.
pub trait Events: Send + Sync {
    /// A warning for the user; `report::warnings` has its words.
    fn warning(&self, warning: &Warning);

    /// How packages are called here, as soon as the settings are read.
    fn names(&self, _shown: &PackageNaming) {}

    /// Something that the user should know, and need not do anything about.
    fn note(&self, _text: &str) {}

    /// The operation waits for what `text` says.
    fn waiting(&self, _text: &str) {}

    /// `done` of `total` steps of a stage are done; the total may grow.
    fn progress(&self, _stage: Stage, _done: usize, _total: usize) {}

    /// A piece of work starts that may take long, such as the download of a package. Its name identifies it
    /// in [`Events::doing`], [`Events::bytes`] and [`Events::ends`].
    fn begins(&self, _what: &str) {}

    /// The current step of a piece of work.
    fn doing(&self, _what: &str, _now: &str) {}

    /// A piece of work has ended.
    fn ends(&self, _what: &str) {}

    /// `done` of `total` bytes of one piece of work have arrived.
    fn bytes(&self, _what: &str, _done: u64, _total: Option<u64>) {}

    /// Something happened to a request.
    fn request(&self, _event: &RequestEvent<'_>) {}

    /// A detail for `-v`, which is put into words only then.
    fn detail(&self, _text: &dyn Fn() -> String) {}

    /// Asks the user a question; returns whether the answer was yes. If there is nobody to ask, it is no.
    fn confirm(&self, _question: &str) -> bool {
        false
    }
}

/// Discards all events.
#[derive(Debug, Clone, Copy, Default)]
pub struct NoEvents;

impl Events for NoEvents {
    fn warning(&self, _warning: &Warning) {}
}

/// What a provider, or a plugin behind one, warns of: it is another library or program, so these are its own words. Only what hands its
/// progress on makes them.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ProviderWords(String);

impl fmt::Display for ProviderWords {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.write_str(&self.0)
    }
}

/// One piece of work of an operation, as a provider sees it. It ends when this is dropped.
pub(crate) struct Work {
    /// The receiver.
    events: Arc<dyn Events>,
    /// Its name, such as a package's id.
    what: String,
}

impl Work {
    /// Starts a piece of work.
    pub(crate) fn begin(events: &Arc<dyn Events>, what: impl Into<String>) -> Self {
        let (events, what) = (Arc::clone(events), what.into());
        events.begins(&what);
        Self { events, what }
    }

    /// Warns of evidence in the workspace that turned out to be of no use; the rules look at it when they are first asked.
    pub(crate) fn warn_of_evidence(&self, trust: &TrustInForce) {
        for fault in trust.take_evidence_faults() {
            self.events.warning(&Warning::Evidence(fault));
        }
    }
}

impl Drop for Work {
    fn drop(&mut self) {
        self.events.ends(&self.what);
    }
}

impl mu_provider::Progress for Work {
    fn bytes(&self, done: u64, total: Option<u64>) {
        self.events.bytes(&self.what, done, total);
    }

    fn waiting(&self, what: &str) {
        self.events.waiting(what);
    }

    fn warning(&self, text: &str) {
        self.events.warning(&Warning::Provider(ProviderWords(text.to_owned())));
    }

    fn doing(&self, what: &str) {
        self.events.doing(&self.what, what);
    }

    fn detail(&self, text: &dyn Fn() -> String) {
        self.events.detail(text);
    }
}

/// Minor work without a name.
pub(crate) struct Aside(pub(crate) Arc<dyn Events>);

impl mu_provider::Progress for Aside {
    fn bytes(&self, _done: u64, _total: Option<u64>) {}

    fn waiting(&self, what: &str) {
        self.0.waiting(what);
    }

    fn warning(&self, text: &str) {
        self.0.warning(&Warning::Provider(ProviderWords(text.to_owned())));
    }

    fn detail(&self, text: &dyn Fn() -> String) {
        self.0.detail(text);
    }
}
