//! A real S3 server over a folder, for tests: `s3s-fs`, which implements the protocol, checks signatures and
//! supports conditional writes. This adds one guarantee of S3 that it lacks.
//!
//! S3 checks the condition of a write (`If-Match`, `If-None-Match`) and writes in one step. `s3s-fs` first
//! checks and then writes, and writes an object's ETag after the object, so two writers can both win. Here,
//! requests are answered one after the other, which closes that gap and changes nothing else.

#![allow(clippy::disallowed_methods, reason = "tests make and read files as a user would")]

use std::net::SocketAddr;
use std::sync::Arc;
use std::sync::mpsc::channel;
use std::thread;

use hyper::service::service_fn;
use hyper_util::rt::{TokioExecutor, TokioIo};
use hyper_util::server::conn::auto::Builder;
use s3s::auth::SimpleAuth;
use s3s::service::{S3Service, S3ServiceBuilder};
use s3s_fs::FileSystem;
use tempfile::TempDir;
use tokio::net::TcpListener;
use tokio::runtime;
use tokio::sync::{Mutex, oneshot};

const ACCESS_KEY: &str = "tests";
const SECRET_KEY: &str = "not-secret";

/// A running server with one bucket, `packages`; it stops when it is dropped.
#[derive(Debug)]
pub struct S3Server {
    endpoint: String,
    stop: Option<oneshot::Sender<()>>,
    thread: Option<thread::JoinHandle<()>>,
    /// The buckets; each is a folder in it.
    _folder: TempDir,
}

impl S3Server {
    /// Starts one with an empty bucket.
    ///
    /// # Panics
    ///
    /// When this machine has no room, or no free port.
    pub fn start() -> Self {
        let folder = tempfile::tempdir().expect("there is room");
        std::fs::create_dir(folder.path().join("packages")).expect("can be made");
        let mut builder =
            S3ServiceBuilder::new(FileSystem::new(folder.path()).expect("the folder is there"));
        builder.set_auth(SimpleAuth::from_single(ACCESS_KEY, SECRET_KEY));
        let service = builder.build();
        let (stop, stopped) = oneshot::channel();
        let (said, address) = channel();
        let thread = thread::spawn(move || {
            let runtime = runtime::Builder::new_current_thread().enable_all().build();
            runtime.expect("the system gives a runtime").block_on(async {
                let listener = TcpListener::bind(("127.0.0.1", 0)).await;
                let listener = listener.expect("there is a free port");
                let here = listener.local_addr().expect("a bound socket has an address");
                said.send(here).expect("somebody waits for it");
                tokio::select! {
                    () = serve(&listener, &service) => {}
                    _ = stopped => {}
                }
            });
        });
        let address: SocketAddr = address.recv().expect("the server starts");
        Self {
            endpoint: format!("http://{address}"),
            stop: Some(stop),
            thread: Some(thread),
            _folder: folder,
        }
    }

    /// The variables that lead to it.
    pub fn variables(&self) -> [(&str, &str); 4] {
        [
            ("AWS_ACCESS_KEY_ID", ACCESS_KEY),
            ("AWS_SECRET_ACCESS_KEY", SECRET_KEY),
            ("AWS_REGION", "us-east-1"),
            ("AWS_ENDPOINT_URL", &self.endpoint),
        ]
    }
}

impl Drop for S3Server {
    fn drop(&mut self) {
        // Nothing writes into the folder any more when it is removed.
        drop(self.stop.take());
        let _ = self.thread.take().map(thread::JoinHandle::join);
    }
}

async fn serve(listener: &TcpListener, service: &S3Service) {
    let turn = Arc::new(Mutex::new(()));
    while let Ok((socket, _)) = listener.accept().await {
        let (service, turn) = (service.clone(), Arc::clone(&turn));
        tokio::spawn(async move {
            let answer = service_fn(move |request| {
                let (service, turn) = (service.clone(), Arc::clone(&turn));
                async move {
                    let _turn = turn.lock().await;
                    hyper::service::Service::call(&service, request).await
                }
            });
            let server = Builder::new(TokioExecutor::new());
            // Whoever opened a connection has to deal with it if it breaks.
            let _ = server.serve_connection(TokioIo::new(socket), answer).await;
        });
    }
}
