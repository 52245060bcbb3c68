//! A real S3 server over a folder for the tests: `s3s-fs`, which speaks the protocol, checks signatures and knows
//! conditional writes, with one promise of S3's added that it does not make.
//!
//! S3 decides a conditional write (`If-Match`, `If-None-Match`) and does it in one step. `s3s-fs` first looks and then
//! writes, and writes an object's ETag after the object, so two writers can both win. Here one request is answered
//! after the other, which closes that gap and changes nothing else.
//!
//! `s3-server FOLDER ACCESS_KEY SECRET_KEY` prints the address it listens at as its only line, and goes on until it is
//! killed. Every folder in FOLDER is a bucket.

#![allow(clippy::disallowed_methods, reason = "tests make and read files as a user would")]

use std::error::Error;
use std::sync::Arc;

use hyper::service::service_fn;
use hyper_util::rt::{TokioExecutor, TokioIo};
use hyper_util::server::conn::auto::Builder;
use s3s::auth::SimpleAuth;
use s3s::service::S3ServiceBuilder;
use s3s_fs::FileSystem;
use tokio::net::TcpListener;
use tokio::sync::Mutex;

#[tokio::main(flavor = "current_thread")]
async fn main() -> Result<(), Box<dyn Error>> {
    let arguments: Vec<String> = std::env::args().skip(1).collect();
    let [folder, access_key, secret_key] = &arguments[..] else {
        return Err("usage: s3-server FOLDER ACCESS_KEY SECRET_KEY".into());
    };
    let files = FileSystem::new(folder).map_err(|error| format!("`{folder}`: {error:?}"))?;
    let mut builder = S3ServiceBuilder::new(files);
    builder.set_auth(SimpleAuth::from_single(access_key.as_str(), secret_key.as_str()));
    let service = builder.build();
    let turn = Arc::new(Mutex::new(()));

    let listener = TcpListener::bind(("127.0.0.1", 0)).await?;
    println!("{}", listener.local_addr()?);
    loop {
        let (socket, _) = listener.accept().await?;
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
            // A connection that breaks is the business of whoever opened it.
            let _ = server.serve_connection(TokioIo::new(socket), answer).await;
        });
    }
}
