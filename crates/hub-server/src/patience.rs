//! Clients that hold a connection and do nothing with it: those that read nothing of an answer, and addresses
//! that open more connections than one client needs.
//!
//! `connection.rs` limits how long a request may take to arrive. No library does this: hyper has no timeout for
//! writing, and those of `tower-http` are for requests and bodies, and do not see that nobody reads what was
//! sent.

use std::collections::HashMap;
use std::io;
use std::net::IpAddr;
use std::pin::Pin;
use std::sync::{Arc, Mutex};
use std::task::{Context, Poll};
use std::time::Duration;

use tokio::io::{AsyncRead, AsyncWrite, ReadBuf};
use tokio::time::Sleep;

use super::limits::network;
use mu_provider::threads::lock;

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
