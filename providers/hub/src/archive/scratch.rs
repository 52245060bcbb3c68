//! Memory for decompressing archives, which later archives reuse: it is warm, and the system need not provide
//! more.

use std::sync::Mutex;

use mu_provider::threads::lock;

use super::inflate::Inflate;

/// Larger pieces are returned to the system. Nearly all packages are smaller.
const LARGEST: usize = 256 << 10;

/// Memory for as many archives as are unpacked at once.
#[derive(Debug, Default)]
pub struct Scratch(Mutex<Vec<Inflate>>);

impl Scratch {
    /// Calls `work` with what inflates one archive.
    pub(super) fn lend<T>(&self, work: impl FnOnce(&mut Inflate) -> T) -> T {
        let mut inflate = lock(&self.0).pop().unwrap_or_default();
        let result = work(&mut inflate);
        if inflate.capacity() <= LARGEST {
            lock(&self.0).push(inflate);
        }
        result
    }
}
