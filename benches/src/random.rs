//! Numbers that look random and are the same in every run.

/// A stream of numbers (SplitMix64).
pub(crate) struct Random(u64);

impl Random {
    pub(crate) fn new(seed: u64) -> Self {
        Self(seed)
    }

    pub(crate) fn next(&mut self) -> u64 {
        self.0 = self.0.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mut mixed = self.0;
        mixed = (mixed ^ (mixed >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        mixed = (mixed ^ (mixed >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        mixed ^ (mixed >> 31)
    }

    /// A number below `bound`.
    pub(crate) fn below(&mut self, bound: usize) -> usize {
        (self.next() % bound.max(1) as u64) as usize
    }

    /// A number from 0 to 1.
    pub(crate) fn unit(&mut self) -> f64 {
        (self.next() >> 11) as f64 / (1_u64 << 53) as f64
    }

    /// Bytes that do not compress.
    pub(crate) fn bytes(&mut self, count: usize) -> Vec<u8> {
        let mut bytes = Vec::with_capacity(count + 8);
        while bytes.len() < count {
            bytes.extend_from_slice(&self.next().to_le_bytes());
        }
        bytes.truncate(count);
        bytes
    }

    /// Text of `count` bytes that compresses about as well as source code does.
    pub(crate) fn text(&mut self, count: usize) -> Vec<u8> {
        let mut text = Vec::with_capacity(count + 32);
        while text.len() < count {
            let word = WORDS[(self.unit().powi(2) * WORDS.len() as f64) as usize];
            text.extend_from_slice(word.as_bytes());
            match self.below(10) {
                0 => text.extend_from_slice(format!("_{:x}\n", self.next() & 0xffff).as_bytes()),
                1 => text.extend_from_slice(b":\n  "),
                _ => text.push(b' '),
            }
        }
        text.truncate(count);
        text
    }
}

const WORDS: [&str; 40] = [
    "name",
    "value",
    "type",
    "description",
    "default",
    "enabled",
    "true",
    "false",
    "resource",
    "variable",
    "output",
    "module",
    "source",
    "version",
    "region",
    "subnet",
    "cluster",
    "node",
    "service",
    "port",
    "protocol",
    "security",
    "group",
    "policy",
    "role",
    "bucket",
    "object",
    "metadata",
    "labels",
    "spec",
    "template",
    "container",
    "image",
    "command",
    "environment",
    "volume",
    "mount",
    "secret",
    "replicas",
    "strategy",
];
