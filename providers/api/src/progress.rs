//! How a provider tells what it is doing, without knowing of any terminal.

/// Receives the progress of one piece of work, such as one download.
///
/// Calls come from the thread that does the work. Implementations must be cheap: a call may come for
/// every few kilobytes.
pub trait Progress: Send + Sync {
    /// `done` of `total` bytes have arrived; the total is not always known.
    fn bytes(&self, done: u64, total: Option<u64>);

    /// The work waits, for the reason in `what`: a lock that another process holds, a retry.
    fn waiting(&self, what: &str);

    /// Something that the user should know though nothing failed.
    fn warning(&self, text: &str);

    /// What the work consists of from now on, such as `cloning https://…`.
    fn doing(&self, _what: &str) {}

    /// A detail, which is put into words only if it is shown.
    fn detail(&self, _text: &dyn Fn() -> String) {}
}

/// Progress that nobody looks at.
#[derive(Debug, Clone, Copy, Default)]
pub struct Silent;

impl Progress for Silent {
    fn bytes(&self, _done: u64, _total: Option<u64>) {}

    fn waiting(&self, _what: &str) {}

    fn warning(&self, _text: &str) {}
}
