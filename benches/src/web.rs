//! nginx over the generated files: HTTP/1.1, connections kept, answers fresh for ten minutes.

use std::fs;
use std::io::{BufRead as _, BufReader};
use std::net::TcpListener;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};

/// A running nginx; it stops when this is dropped.
pub(crate) struct Web {
    process: Child,
    log: PathBuf,
    pub(crate) port: u16,
    /// For HTTP/2 over TLS, as `localhost`.
    pub(crate) tls_port: u16,
}

/// The authority for `localhost` here; the tests use it too.
pub(crate) const AUTHORITY: &str = include_str!("../../crates/testing/tls/authority.pem");
const CERTIFICATE: &str = include_str!("../../crates/testing/tls/certificate.pem");
const KEY: &str = include_str!("../../crates/testing/tls/key.pem");

impl Web {
    /// Serves `root`; keeps its own files in `folder`. `None` if nginx cannot listen on `port`.
    pub(crate) fn serve(root: &Path, folder: &Path, port: u16) -> Option<Self> {
        fs::create_dir_all(folder).expect("the folder can be made");
        fs::write(folder.join("certificate.pem"), CERTIFICATE).expect("can be written");
        fs::write(folder.join("key.pem"), KEY).expect("can be written");
        let tls_port = free_port();
        let configuration = format!(
            "daemon off; master_process off; pid nginx.pid; error_log stderr notice;
            events {{ worker_connections 1024; }}
            http {{
                log_format short '$request_method $uri $status $bytes_sent';
                access_log access.log short;
                sendfile on; tcp_nopush on; keepalive_requests 100000;
                client_body_temp_path body; proxy_temp_path proxy; fastcgi_temp_path fastcgi;
                uwsgi_temp_path uwsgi; scgi_temp_path scgi;
                server {{
                    listen 127.0.0.1:{port};
                    listen 127.0.0.1:{tls_port} ssl http2;
                    ssl_certificate certificate.pem; ssl_certificate_key key.pem;
                    root \"{root}\";
                    add_header Cache-Control \"max-age=600\";
                    location /graph-now/ {{
                        alias \"{root}/graph/\"; add_header Cache-Control \"max-age=0\";
                    }}
                    location ~ /simple/ {{
                        default_type application/vnd.pypi.simple.v1+json; index index.json;
                    }}
                    location /npm/ {{ default_type application/json; }}
                }}
            }}",
            root = root.display()
        );
        fs::write(folder.join("nginx.conf"), configuration).expect("can be written");
        let log = folder.join("access.log");
        let _ = fs::remove_file(&log);
        let program = ["nginx", "/usr/sbin/nginx"]
            .into_iter()
            .find(|program| Command::new(program).arg("-v").stderr(Stdio::null()).status().is_ok())
            .expect("nginx is installed");
        let mut process = Command::new(program)
            .arg("-p")
            .arg(folder)
            .args(["-c", "nginx.conf", "-e", "stderr"])
            .stdin(Stdio::null())
            .stderr(Stdio::piped())
            .spawn()
            .expect("nginx starts");
        let stderr = process.stderr.take().expect("is piped");
        let mut lines = BufReader::new(stderr).lines();
        let listens = lines.by_ref().map_while(Result::ok).any(|line| line.contains("getrlimit"));
        if !listens {
            let _ = process.wait();
            return None;
        }
        std::thread::spawn(move || lines.count());
        Some(Self { process, log, port, tls_port })
    }

    /// The URL of a path.
    pub(crate) fn url(&self, path: &str) -> String {
        format!("http://127.0.0.1:{}/{path}", self.port)
    }

    /// How many requests were answered so far, and with how many bytes.
    pub(crate) fn traffic(&self) -> Traffic {
        let log = fs::read_to_string(&self.log).unwrap_or_default();
        let bytes = log.lines().filter_map(|line| line.rsplit(' ').next()?.parse::<u64>().ok());
        Traffic { requests: log.lines().count() as u64, bytes: bytes.sum() }
    }
}

/// Requests and the bytes of their answers.
#[derive(Clone, Copy)]
pub(crate) struct Traffic {
    pub(crate) requests: u64,
    pub(crate) bytes: u64,
}

impl Traffic {
    /// What came after `earlier`.
    pub(crate) fn since(self, earlier: Self) -> Self {
        Self { requests: self.requests - earlier.requests, bytes: self.bytes - earlier.bytes }
    }
}

impl Drop for Web {
    fn drop(&mut self) {
        // If it has ended already, that is fine.
        let _ = self.process.kill();
        let _ = self.process.wait();
    }
}

/// A port that nobody listens on.
pub(crate) fn free_port() -> u16 {
    let listener = TcpListener::bind(("127.0.0.1", 0)).expect("there is a free port");
    listener.local_addr().expect("a bound socket has an address").port()
}
