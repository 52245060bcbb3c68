//! A real web server for the tests: nginx, on a free port, with its files in a separate folder.

use std::fs;
use std::io::{BufRead as _, BufReader, Read as _, Write as _};
use std::net::TcpStream;
use std::path::Path;
use std::process::{Child, Command, Stdio};

use tempfile::TempDir;

use super::listener::ReservedPort;

/// A path that only [`Nginx::log`] requests.
const LAST: &str = "/last-request";

/// The authority for [`LOCALHOST`], and for nothing else: its key was thrown away. Valid until 2126. As PEM.
pub const AUTHORITY: &str = include_str!("../tls/authority.pem");

/// The identity of `localhost` in these tests. The key is useless anywhere else.
pub const LOCALHOST: Identity = Identity {
    certificate: include_str!("../tls/certificate.pem"),
    key: include_str!("../tls/key.pem"),
};

/// As [`LOCALHOST`], with a certificate that is signed by itself and says that it is an authority, as `openssl req -x509` makes them.
pub const SELF_SIGNED: Identity = Identity {
    certificate: include_str!("../tls/self-signed.pem"),
    key: include_str!("../tls/self-signed-key.pem"),
};

/// A certificate of the first version, which says nothing but a name, for the key of [`SELF_SIGNED`].
pub const FIRST_VERSION: &str = include_str!("../tls/first-version.pem");

/// A certificate and its key, as PEM.
#[derive(Debug)]
pub struct Identity {
    /// The chain, its own certificate first.
    pub certificate: &'static str,
    /// The private key.
    pub key: &'static str,
}

/// A running nginx; it stops when this is dropped.
#[derive(Debug)]
pub struct Nginx {
    process: Child,
    folder: TempDir,
    port: ReservedPort,
    is_tls: bool,
}

impl Nginx {
    /// Serves `root`, with more lines for the `server` block of its configuration.
    pub fn serve(root: &Path, more: &str) -> Self {
        Self::start(root, more, None)
    }

    /// Serves `root` over TLS and HTTP/2.
    pub fn serve_tls(root: &Path, identity: &Identity) -> Self {
        Self::start(root, "", Some(identity))
    }

    /// Passes requests on to the server at `to`, over TLS.
    pub fn in_front_of(to: &str, identity: &Identity) -> Self {
        let more = format!("location / {{ proxy_pass {to}; proxy_http_version 1.1; }}");
        Self::start(Path::new("/nowhere"), &more, Some(identity))
    }

    /// The URL of a path.
    pub fn url(&self, path: &str) -> String {
        let scheme = if self.is_tls { "https" } else { "http" };
        format!("{scheme}://{}/{path}", self.host())
    }

    /// Host and port.
    pub fn host(&self) -> String {
        format!("localhost:{}", self.port.port())
    }

    /// `METHOD PATH VERSION STATUS` of each request so far.
    pub fn log(&self) -> Vec<String> {
        // Requests are logged in order, so when this one is answered, the others are in the log. Over TLS it
        // is malformed, but it is answered all the same.
        let mut stream = TcpStream::connect(self.port.host()).expect("nginx runs");
        write!(stream, "GET {LAST} HTTP/1.0\r\n\r\n").expect("nginx listens");
        stream.read_to_end(&mut Vec::new()).expect("nginx answers");
        let log =
            fs::read_to_string(self.folder.path().join("access.log")).expect("there is a log");
        let is_ours = |line: &&str| line.contains(" /") && !line.contains(LAST);
        log.lines().filter(is_ours).map(str::to_owned).collect()
    }

    /// Ends nginx. Its port stays taken, so no other test's server answers at it.
    pub fn refuse(&mut self) {
        self.process.kill().expect("it runs");
        self.process.wait().expect("it ends");
    }

    fn start(root: &Path, more: &str, identity: Option<&Identity>) -> Self {
        let folder = tempfile::tempdir().expect("a temporary folder can be made");
        let port = ReservedPort::take();
        configure(folder.path(), &port, root, more, identity);
        let mut process = Command::new(crate::program("nginx"))
            .arg("-p")
            .arg(folder.path())
            .args(["-c", "nginx.conf", "-e", "stderr"])
            .stdin(Stdio::null())
            .stderr(Stdio::piped())
            .spawn()
            .expect("nginx can be started");
        let stderr = process.stderr.take().expect("is piped");
        // It says what its limits are once it listens.
        let mut said = String::new();
        let mut lines = BufReader::new(stderr).lines();
        let listens = lines.by_ref().map_while(Result::ok).any(|line| {
            said.push_str(&line);
            said.push('\n');
            line.contains("getrlimit")
        });
        assert!(listens, "nginx does not start:\n{said}");
        // The rest of its output is read too, so that it never blocks.
        std::thread::spawn(move || lines.count());
        Self { process, folder, port, is_tls: identity.is_some() }
    }
}

impl Drop for Nginx {
    fn drop(&mut self) {
        // If it has ended already, that is fine.
        let _ = self.process.kill();
        let _ = self.process.wait();
    }
}

fn configure(
    folder: &Path,
    port: &ReservedPort,
    root: &Path,
    more: &str,
    identity: Option<&Identity>,
) {
    let mut tls = String::new();
    if let Some(identity) = identity {
        fs::write(folder.join("certificate.pem"), identity.certificate).expect("can be written");
        fs::write(folder.join("key.pem"), identity.key).expect("can be written");
        tls = format!(
            "ssl_certificate {0}/certificate.pem; ssl_certificate_key {0}/key.pem;",
            folder.display()
        );
    }
    let listen = if identity.is_some() { "ssl http2" } else { "" };
    let text = format!(
        "daemon off; master_process off; pid nginx.pid; error_log stderr notice;
        events {{ worker_connections 512; }}
        http {{
            log_format short '$request_method $uri $server_protocol $status';
            access_log access.log short;
            client_body_temp_path body; proxy_temp_path proxy; fastcgi_temp_path fastcgi;
            uwsgi_temp_path uwsgi; scgi_temp_path scgi;
            server {{
                listen {} {listen}; {tls}
                root \"{}\";
                {more}
            }}
        }}",
        port.host(),
        root.display()
    );
    fs::write(folder.join("nginx.conf"), text).expect("can be written");
}
