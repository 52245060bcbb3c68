//! A slow wire: passes connections on, with every byte delayed.

use std::io::{Read, Write as _};
use std::net::{Shutdown, TcpListener, TcpStream};
use std::sync::mpsc;
use std::thread;
use std::time::{Duration, Instant};

/// Passes connections to the returned port on to `port`, so that a request and its answer take `round_trip`
/// longer; for as long as the program runs.
pub(crate) fn serve(port: u16, round_trip: Duration) -> u16 {
    let listener = TcpListener::bind(("127.0.0.1", 0)).expect("there is a free port");
    let own = listener.local_addr().expect("is bound").port();
    thread::spawn(move || {
        for near in listener.incoming().flatten() {
            thread::spawn(move || {
                // Connecting takes another round trip.
                thread::sleep(round_trip);
                let Ok(far) = TcpStream::connect(("127.0.0.1", port)) else { return };
                let (Ok(near_too), Ok(far_too)) = (near.try_clone(), far.try_clone()) else {
                    return;
                };
                pass(near, far, round_trip / 2);
                pass(far_too, near_too, round_trip / 2);
            });
        }
    });
    own
}

/// Passes on the bytes from `from`, in two threads, so that waiting bytes do not delay reading.
fn pass(mut from: TcpStream, mut to: TcpStream, delay: Duration) {
    // A failure only slows the wire down.
    let _ = to.set_nodelay(true);
    let (sender, receiver) = mpsc::channel::<(Instant, Vec<u8>)>();
    thread::spawn(move || {
        let mut buffer = vec![0; 64 << 10];
        while let Ok(count @ 1..) = from.read(&mut buffer) {
            let due = Instant::now() + delay;
            if sender.send((due, buffer[..count].to_vec())).is_err() {
                return;
            }
        }
    });
    thread::spawn(move || {
        for (due, bytes) in receiver {
            thread::sleep(due.saturating_duration_since(Instant::now()));
            if to.write_all(&bytes).is_err() {
                return;
            }
        }
        // The other side may have closed the connection.
        let _ = to.shutdown(Shutdown::Write);
    });
}
