//! Memory that archives were inflated into, for those that come after them: it is warm, and the system need not
//! be asked for more.

use std::sync::{Mutex, PoisonError};

/// Larger pieces are given back to the system. Nearly all packages are smaller.
const LARGEST: usize = 256 << 10;

/// Memory for as many archives as are unpacked at once.
#[derive(Debug, Default)]
pub struct Scratch(Mutex<Vec<Vec<u8>>>);

impl Scratch {
    /// Calls `work` with memory of any length, that holds anything.
    pub(super) fn lend<T>(&self, work: impl FnOnce(&mut Vec<u8>) -> T) -> T {
        let mut memory = self.lock().pop().unwrap_or_default();
        let result = work(&mut memory);
        if memory.capacity() <= LARGEST {
            self.lock().push(memory);
        }
        result
    }

    fn lock(&self) -> std::sync::MutexGuard<'_, Vec<Vec<u8>>> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}
