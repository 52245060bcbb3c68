//! Memory for decompressing archives, which later archives reuse: it is warm, and the system need not provide
//! more.

use std::sync::Mutex;

use mu_provider::threads;

use super::inflate::Inflate;

/// Larger pieces are returned to the system. Nearly all packages are smaller.
const LARGEST: usize = 256 << 10;

/// Memory for as many archives as are unpacked at once.
#[derive(Debug, Default)]
pub struct Scratch(Mutex<Vec<Inflate>>);

impl Scratch {
    /// Calls `work` with what inflates one archive.
    pub(super) fn lend<T>(&self, work: impl FnOnce(&mut Inflate) -> T) -> T {
        let mut inflate = self.lock().pop().unwrap_or_default();
        let result = work(&mut inflate);
        if inflate.capacity() <= LARGEST {
            self.lock().push(inflate);
        }
        result
    }

    fn lock(&self) -> std::sync::MutexGuard<'_, Vec<Inflate>> {
        threads::lock(&self.0)
    }
}
