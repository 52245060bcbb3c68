//! How an operation tells what it is doing, without knowing of any terminal.

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
}

/// Receives what an operation has to say while it runs. Calls come from many threads.
pub trait Events: Send + Sync {
    /// Something that the user should know, though nothing failed.
    fn warning(&self, text: &str);

    /// The operation waits for what `text` says.
    fn waiting(&self, text: &str);

    /// `done` of `total` steps of a stage are done; the total may grow.
    fn progress(&self, stage: Stage, done: usize, total: usize);

    /// `done` of `total` bytes of one download have arrived.
    fn bytes(&self, what: &str, done: u64, total: Option<u64>);

    /// Something for `-v` only, which is put into words only then.
    fn detail(&self, text: &dyn Fn() -> String);

    /// Asks a person a question, and says whether the answer was yes; where there is nobody to ask, it is no.
    fn confirm(&self, _question: &str) -> bool {
        false
    }
}

/// Events that nobody looks at.
#[derive(Debug, Clone, Copy, Default)]
pub struct NoEvents;

impl Events for NoEvents {
    fn warning(&self, _text: &str) {}
    fn waiting(&self, _text: &str) {}
    fn progress(&self, _stage: Stage, _done: usize, _total: usize) {}
    fn bytes(&self, _what: &str, _done: u64, _total: Option<u64>) {}
    fn detail(&self, _text: &dyn Fn() -> String) {}
}

/// The events of an operation, as one provider call sees them.
pub(crate) struct CallProgress<'events> {
    /// Where everything goes.
    pub(crate) events: &'events dyn Events,
    /// What the call is about, such as a package's id.
    pub(crate) what: &'events str,
}

impl mu_provider::Progress for CallProgress<'_> {
    fn bytes(&self, done: u64, total: Option<u64>) {
        self.events.bytes(self.what, done, total);
    }

    fn waiting(&self, what: &str) {
        self.events.waiting(what);
    }

    fn warning(&self, text: &str) {
        self.events.warning(text);
    }
}
