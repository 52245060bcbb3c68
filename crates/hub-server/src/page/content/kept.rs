//! Content of archives that is cached in memory, up to a limit. The oldest is removed first.

use std::collections::{HashMap, VecDeque};
use std::sync::{Arc, Mutex};

use mu_provider::threads::lock;

/// How much memory a cached value takes.
pub(super) trait Weight {
    /// In bytes, without its key.
    fn weight(&self) -> usize;
}

/// Values by key.
#[derive(Debug)]
pub(super) struct ValueCache<T> {
    most: usize,
    inner: Mutex<Inner<T>>,
}

#[derive(Debug)]
struct Inner<T> {
    by_key: HashMap<String, Arc<T>>,
    /// The oldest first.
    order: VecDeque<String>,
    bytes: usize,
}

impl<T: Weight> ValueCache<T> {
    /// Keeps at most so many bytes.
    pub(super) fn new(most: usize) -> Self {
        let inner = Inner { by_key: HashMap::new(), order: VecDeque::new(), bytes: 0 };
        Self { most, inner: Mutex::new(inner) }
    }

    pub(super) fn find(&self, key: &str) -> Option<Arc<T>> {
        lock(&self.inner).by_key.get(key).cloned()
    }

    pub(super) fn keep(&self, key: String, value: &Arc<T>) {
        let mut inner = lock(&self.inner);
        if inner.by_key.contains_key(&key) {
            return;
        }
        inner.bytes += weight(&key, &**value);
        inner.by_key.insert(key.clone(), Arc::clone(value));
        inner.order.push_back(key);
        while inner.bytes > self.most {
            let Some(oldest) = inner.order.pop_front() else { break };
            if let Some(value) = inner.by_key.remove(&oldest) {
                inner.bytes -= weight(&oldest, &*value);
            }
        }
    }
}

fn weight(key: &str, value: &impl Weight) -> usize {
    value.weight() + 2 * key.len() + 128
}

#[cfg(test)]
mod tests {
    use super::*;

    impl Weight for String {
        fn weight(&self) -> usize {
            self.len()
        }
    }

    #[test]
    fn what_is_kept_has_an_end() {
        const MOST: usize = 4_000;
        let kept = ValueCache::new(MOST);
        let large = Arc::new("x".repeat(MOST / 4));
        for number in 0..10 {
            kept.keep(format!("{number}"), &large);
            kept.keep(format!("{number}"), &Arc::clone(&large));
        }
        assert!(kept.find("9").is_some() && kept.find("0").is_none());
        let inner = kept.inner.lock().expect("is whole");
        assert!(inner.bytes <= MOST, "{}", inner.bytes);
        assert_eq!(inner.by_key.len(), inner.order.len());
    }
}
