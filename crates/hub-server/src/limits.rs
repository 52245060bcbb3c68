//! Limits of what one client gets: how much it may request, as a token bucket for each address; how many connections an address
//! may have open; and how long a client may hold one without reading its answer.
//!
//! The code that answers a request decides what it costs. `tower_governor` is not used: it remembers any number of addresses
//! until it is told to forget them, and counts each address of an IPv6 network separately.
//!
//! `connection.rs` limits how long a request may take to arrive. For answers that nobody reads, there is no library: hyper has no
//! timeout for writing, and those of `tower-http` are for requests and bodies, and do not see that nobody reads what was sent.

use std::collections::HashMap;
use std::io;
use std::net::{IpAddr, Ipv6Addr};
use std::pin::Pin;
use std::sync::{Arc, Mutex};
use std::task::{Context, Poll};
use std::time::{Duration, Instant};

use mu_provider::threads::lock;
use tokio::io::{AsyncRead, AsyncWrite, ReadBuf};
use tokio::time::Sleep;

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
fn network(address: IpAddr) -> IpAddr {
    match address {
        IpAddr::V6(address) if address.to_ipv4_mapped().is_none() => {
            let [a, b, c, d, ..] = address.segments();
            IpAddr::V6(Ipv6Addr::new(a, b, c, d, 0, 0, 0, 0))
        }
        address => address.to_canonical(),
    }
}

/// A stream that fails if the other side reads nothing for a time.
#[derive(Debug)]
pub(super) struct Patient<S> {
    stream: S,
    patience: Duration,
    /// Runs since the other side stopped taking.
    waiting: Option<Pin<Box<Sleep>>>,
}

impl<S> Patient<S> {
    pub(super) fn new(stream: S, patience: Duration) -> Self {
        Self { stream, patience, waiting: None }
    }

    fn judge<T>(
        &mut self,
        context: &mut Context<'_>,
        written: Poll<io::Result<T>>,
    ) -> Poll<io::Result<T>> {
        if written.is_ready() {
            self.waiting = None;
            return written;
        }
        let patience = self.patience;
        let waiting = self.waiting.get_or_insert_with(|| Box::pin(tokio::time::sleep(patience)));
        waiting.as_mut().poll(context).map(|()| Err(io::ErrorKind::TimedOut.into()))
    }
}

impl<S: AsyncRead + Unpin> AsyncRead for Patient<S> {
    fn poll_read(
        mut self: Pin<&mut Self>,
        context: &mut Context<'_>,
        buffer: &mut ReadBuf<'_>,
    ) -> Poll<io::Result<()>> {
        Pin::new(&mut self.stream).poll_read(context, buffer)
    }
}

impl<S: AsyncWrite + Unpin> AsyncWrite for Patient<S> {
    fn poll_write(
        mut self: Pin<&mut Self>,
        context: &mut Context<'_>,
        bytes: &[u8],
    ) -> Poll<io::Result<usize>> {
        let written = Pin::new(&mut self.stream).poll_write(context, bytes);
        self.judge(context, written)
    }

    fn poll_write_vectored(
        mut self: Pin<&mut Self>,
        context: &mut Context<'_>,
        slices: &[io::IoSlice<'_>],
    ) -> Poll<io::Result<usize>> {
        let written = Pin::new(&mut self.stream).poll_write_vectored(context, slices);
        self.judge(context, written)
    }

    fn is_write_vectored(&self) -> bool {
        self.stream.is_write_vectored()
    }

    fn poll_flush(mut self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<io::Result<()>> {
        let flushed = Pin::new(&mut self.stream).poll_flush(context);
        self.judge(context, flushed)
    }

    fn poll_shutdown(mut self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<io::Result<()>> {
        let shut = Pin::new(&mut self.stream).poll_shutdown(context);
        self.judge(context, shut)
    }
}

/// The connections that are open, by address.
#[derive(Debug)]
pub(super) struct Crowd {
    most: usize,
    open: Mutex<HashMap<IpAddr, usize>>,
}

/// One connection of an address; it counts until this is dropped.
#[derive(Debug)]
pub(super) struct Place {
    crowd: Arc<Crowd>,
    address: IpAddr,
}

impl Crowd {
    /// Creates a crowd in which an address may have at most so many connections.
    pub(super) fn new(most: usize) -> Arc<Self> {
        Arc::new(Self { most, open: Mutex::default() })
    }

    /// Takes a place for one more connection, unless the address has as many as it may.
    pub(super) fn enter(self: &Arc<Self>, address: IpAddr) -> Option<Place> {
        let address = network(address);
        let mut open = lock(&self.open);
        let count = open.entry(address).or_default();
        if *count >= self.most {
            return None;
        }
        *count += 1;
        Some(Place { crowd: Arc::clone(self), address })
    }
}

impl Drop for Place {
    fn drop(&mut self) {
        let mut open = lock(&self.crowd.open);
        if let Some(count) = open.get_mut(&self.address) {
            *count -= 1;
            if *count == 0 {
                open.remove(&self.address);
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};

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

    #[tokio::test]
    async fn who_takes_nothing_is_given_up() {
        let (near, mut far) = tokio::io::duplex(8);
        let mut near = Patient::new(near, Duration::from_millis(1));
        let error = near.write_all(&[0; 100]).await.expect_err("nobody reads");
        assert_eq!(error.kind(), io::ErrorKind::TimedOut);

        // A client that keeps reading, however little at a time, gets everything.
        let mut near = Patient::new(near.stream, Duration::from_secs(600));
        let reading = async {
            let mut taken = [0; 1];
            for _ in 0..108 {
                far.read_exact(&mut taken).await.expect("is sent");
            }
        };
        let (written, ()) = tokio::join!(near.write_all(&[0; 100]), reading);
        written.expect("was taken");
    }

    #[test]
    fn an_address_has_a_share_of_the_connections() {
        let address = |text: &str| text.parse::<IpAddr>().expect("is an address");
        let crowd = Crowd::new(2);
        let first = crowd.enter(address("10.0.0.1")).expect("is the first");
        let second = crowd.enter(address("10.0.0.1")).expect("is the second");
        assert!(crowd.enter(address("10.0.0.1")).is_none());
        let other = crowd.enter(address("10.0.0.2")).expect("is another's");
        drop(first);
        assert!(crowd.enter(address("10.0.0.1")).is_some());
        drop((second, other));
        assert!(crowd.open.lock().expect("is whole").is_empty());
    }
}
