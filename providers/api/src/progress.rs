//! How a provider reports what it is doing, without knowing the terminal.

/// Receives the progress of one piece of work, such as one download.
///
/// The thread that does the work makes the calls. Implementations must be fast: there may be a call for every
/// few kilobytes.
pub trait Progress: Send + Sync {
    /// `done` of `total` bytes have arrived; the total is not always known.
    fn bytes(&self, done: u64, total: Option<u64>);

    /// The work waits, for the reason in `what`: another process holds a lock, or a retry comes later.
    fn waiting(&self, what: &str);

    /// Something that the user should know although nothing failed.
    fn warning(&self, text: &str);

    /// The current activity, such as `cloning https://…`.
    fn doing(&self, _what: &str) {}

    /// A detail. The text is built only if it is shown.
    fn detail(&self, _text: &dyn Fn() -> String) {}
}

/// Ignores all progress.
#[derive(Debug, Clone, Copy, Default)]
pub struct Silent;

impl Progress for Silent {
    fn bytes(&self, _done: u64, _total: Option<u64>) {}

    fn waiting(&self, _what: &str) {}

    fn warning(&self, _text: &str) {}
}
