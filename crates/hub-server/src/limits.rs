//! Limits how much one client may request: a token bucket for each address.
//!
//! The code that answers a request decides what it costs. `tower_governor` is not used: it remembers any
//! number of addresses until it is told to forget them, and counts each address of an IPv6 network separately.

use mu_provider::threads::lock;
use std::collections::HashMap;
use std::net::{IpAddr, Ipv6Addr};
use std::sync::Mutex;
use std::time::{Duration, Instant};

/// How many addresses are remembered. Beyond that, addresses with a full bucket are forgotten.
const ADDRESSES: usize = 16_384;

/// A bucket for each client address.
#[derive(Debug)]
pub(super) struct ClientBuckets {
    /// The size of a bucket.
    most: f64,
    /// How much flows in each second.
    rate: f64,
    buckets: Mutex<HashMap<IpAddr, Bucket>>,
}

#[derive(Debug, Clone, Copy)]
struct Bucket {
    left: f64,
    seen: Instant,
}

impl ClientBuckets {
    /// At most `most` in a minute, all of which may come at once.
    pub(super) fn per_minute(most: u32) -> Self {
        Self::new(f64::from(most), f64::from(most) / 60.0)
    }

    /// At most `rate` in a second; those of five seconds may come at once.
    pub(super) fn per_second(rate: u32) -> Self {
        Self::new(f64::from(rate) * 5.0, f64::from(rate))
    }

    fn new(most: f64, rate: f64) -> Self {
        Self { most, rate, buckets: Mutex::default() }
    }

    /// Takes one for `address`, or returns how long to wait for it.
    pub(super) fn take(&self, address: IpAddr, now: Instant) -> Result<(), Duration> {
        let mut buckets = lock(&self.buckets);
        let full = |bucket: &Bucket| {
            let gained = now.saturating_duration_since(bucket.seen).as_secs_f64() * self.rate;
            (bucket.left + gained).min(self.most)
        };
        if buckets.len() >= ADDRESSES {
            buckets.retain(|_, bucket| full(bucket) < self.most);
        }
        if buckets.len() >= ADDRESSES && !buckets.contains_key(&network(address)) {
            return Err(Duration::from_secs(60));
        }
        let bucket =
            buckets.entry(network(address)).or_insert(Bucket { left: self.most, seen: now });
        let left = full(bucket);
        let enough = left >= 1.0;
        *bucket = Bucket { left: if enough { left - 1.0 } else { left }, seen: now };
        if enough { Ok(()) } else { Err(Duration::from_secs_f64((1.0 - left) / self.rate)) }
    }
}

/// The customer that an address belongs to: in IPv6, one customer has a whole /64.
pub(super) fn network(address: IpAddr) -> IpAddr {
    match address {
        IpAddr::V6(address) if address.to_ipv4_mapped().is_none() => {
            let [a, b, c, d, ..] = address.segments();
            IpAddr::V6(Ipv6Addr::new(a, b, c, d, 0, 0, 0, 0))
        }
        address => address.to_canonical(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn address(text: &str) -> IpAddr {
        text.parse().expect("is an address")
    }

    #[test]
    fn a_share_is_used_up_and_comes_back() {
        let buckets = ClientBuckets::per_minute(2);
        let start = Instant::now();
        let (one, other) = (address("10.0.0.1"), address("10.0.0.2"));
        assert_eq!(buckets.take(one, start), Ok(()));
        assert_eq!(buckets.take(one, start), Ok(()));
        assert_eq!(buckets.take(one, start), Err(Duration::from_secs(30)));
        assert_eq!(buckets.take(other, start), Ok(()));
        assert_eq!(buckets.take(one, start + Duration::from_secs(31)), Ok(()));
    }

    #[test]
    fn neighbours_in_a_network_share() {
        let buckets = ClientBuckets::per_minute(1);
        let now = Instant::now();
        assert!(buckets.take(address("2001:db8::1"), now).is_ok());
        assert!(buckets.take(address("2001:db8::2"), now).is_err());
        assert!(buckets.take(address("2001:db8:0:1::1"), now).is_ok());
        assert!(buckets.take(address("::ffff:10.0.0.1"), now).is_ok());
        assert!(buckets.take(address("10.0.0.1"), now).is_err());
    }

    #[test]
    fn what_is_remembered_has_an_end() {
        let buckets = ClientBuckets::per_minute(1);
        let now = Instant::now();
        for number in 0..ADDRESSES as u32 {
            assert!(buckets.take(IpAddr::V4(number.into()), now).is_ok());
        }
        assert!(buckets.take(address("200.0.0.1"), now).is_err());
        assert!(buckets.take(address("200.0.0.1"), now + Duration::from_secs(60)).is_ok());
        assert_eq!(buckets.buckets.lock().expect("is whole").len(), 1);
    }
}
