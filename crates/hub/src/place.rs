//! Where a hub is (a folder of this machine, or a bucket of an object store), and how it is served: what the program `mu` reads
//! from its command line, and the server in `mu-hub-server` does.
//!
//! Nothing here reads or writes, or looks at the environment: the caller passes in the variables. `mu-bucket` knows the object
//! stores.

use std::net::{IpAddr, SocketAddr};
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::Duration;

use mu_provider::Location;
use mu_provider::http::HttpOptions;

use crate::HubError;

/// After how long a write counts as interrupted if its marker is still in a bucket.
const BROKEN_OFF_AFTER: Duration = Duration::from_secs(600);

/// How long a catalog may be, in bytes: some 50,000 packages.
const LONGEST_CATALOG: u64 = 16 << 20;

/// A place that can hold a hub.
#[derive(Clone)]
pub struct Place {
    pub(crate) kind: Kind,
    pub(crate) name: String,
    pub(crate) broken_off_after: Duration,
    pub(crate) longest_catalog: u64,
    pub(crate) staging: Option<PathBuf>,
}

/// What kind of place it is.
#[derive(Clone)]
pub(crate) enum Kind {
    /// A folder of this machine, where writers take turns.
    Folder(PathBuf),
    /// A bucket, which refuses a write if the file to replace has changed.
    #[cfg(feature = "buckets")]
    Bucket(Opening),
}

/// How a bucket is opened.
#[cfg(feature = "buckets")]
#[derive(Clone)]
pub(crate) enum Opening {
    /// It is opened when it is needed, because a client's connections belong to one asynchronous runtime.
    Named(Box<mu_bucket::Bucket>),
    /// The caller has opened it.
    Opened(Arc<dyn object_store::ObjectStore>),
}

/// Takes how many bytes of how many of a large file are on their way. It is called by many threads, so it must be quick.
pub type UploadReporter = Arc<dyn Fn(u64, u64) + Send + Sync>;

/// How the texts begin that name buckets.
const BUCKETS: [&str; 3] = ["s3", "gs", "az"];

mu_provider::debug_fields!(Place { name });

impl Place {
    /// The place that `text` names: a bucket (`s3://BUCKET/PREFIX`, `gs://BUCKET/PREFIX`,
    /// `az://CONTAINER/PREFIX`), `file:///FOLDER`, or a folder, relative to `current`.
    ///
    /// `variables` are those of the environment. Only those are used that begin with `AWS_`, `GOOGLE_` or
    /// `AZURE_`, depending on the store: credentials, account, region, endpoint, and so on.
    ///
    /// # Errors
    ///
    /// When the text names no such place.
    pub fn parse<'variable>(
        text: &str,
        current: &Path,
        variables: impl IntoIterator<Item = (&'variable str, &'variable str)>,
    ) -> Result<Self, HubError> {
        let wrong =
            |reason: &str| HubError::Place { place: text.to_owned(), reason: reason.into() };
        #[cfg(feature = "buckets")]
        if let Some(bucket) =
            mu_bucket::Bucket::parse(text, variables).map_err(|reason| wrong(&reason))?
        {
            let name = text.trim_end_matches('/').to_owned();
            return Ok(Self::new(Kind::Bucket(Opening::Named(Box::new(bucket))), name));
        }
        #[cfg(not(feature = "buckets"))]
        drop(variables.into_iter());
        match text.split_once("://") {
            Some(("file", _)) => {
                let url = url::Url::parse(text).map_err(|_| wrong("it is not a URL"))?;
                let path =
                    url.to_file_path().map_err(|()| wrong("it does not name a local folder"))?;
                Ok(Self::folder(path))
            }
            Some((scheme, _)) if BUCKETS.contains(&scheme) => Err(wrong(
                "this mu was built without buckets; the released one has them, and so has one that is installed with `--features buckets`",
            )),
            Some(_) => Err(wrong(
                "expected a folder, s3://BUCKET/PREFIX, gs://BUCKET/PREFIX or az://CONTAINER/PREFIX",
            )),
            None if text.is_empty() => Err(wrong("it is empty")),
            // Messages show it, so without `.` in the middle.
            None => Ok(Self::folder(current.join(text).components().collect::<PathBuf>())),
        }
    }

    /// A folder of this machine, which need not be there yet.
    pub fn folder(path: impl Into<PathBuf>) -> Self {
        let path = path.into();
        let name = path.display().to_string();
        Self::new(Kind::Folder(path), name)
    }

    /// An object store that the caller has opened. It must support conditional writes.
    #[cfg(feature = "buckets")]
    pub fn store(store: Arc<dyn object_store::ObjectStore>, name: impl Into<String>) -> Self {
        Self::new(Kind::Bucket(Opening::Opened(store)), name.into())
    }

    fn new(kind: Kind, name: String) -> Self {
        let is_folder = matches!(kind, Kind::Folder(_));
        let broken_off_after = if is_folder { Duration::ZERO } else { BROKEN_OFF_AFTER };
        Self { kind, name, broken_off_after, longest_catalog: LONGEST_CATALOG, staging: None }
    }

    /// Sets the folder of this machine in which archives are unpacked for checking. It is created when
    /// needed. If a process is killed, the next one removes its files. The default is the system's folder for
    /// temporary files.
    #[must_use]
    pub fn staged_in(mut self, folder: impl Into<PathBuf>) -> Self {
        self.staging = Some(folder.into());
        self
    }

    /// Sets how long the catalog may be, in bytes. A hub with more packages has none, and is searched by its server. The default is
    /// 16 MiB.
    #[must_use]
    pub fn longest_catalog(self, bytes: u64) -> Self {
        Self { longest_catalog: bytes, ..self }
    }

    /// Sets what reports how much of a large file is on its way to a bucket.
    #[must_use]
    #[cfg_attr(
        not(feature = "buckets"),
        expect(unused_variables, reason = "a folder is written at once")
    )]
    pub fn telling(self, sending: UploadReporter) -> Self {
        #[cfg(feature = "buckets")]
        if let Kind::Bucket(Opening::Named(bucket)) = self.kind {
            let bucket = bucket.telling(mu_bucket::Sending(sending));
            return Self { kind: Kind::Bucket(Opening::Named(Box::new(bucket))), ..self };
        }
        self
    }

    /// Sets after how long a write counts as interrupted if its marker is still in an object store, so that
    /// the next write completes it. In a folder, nobody else writes at the same time, so a marker always
    /// belongs to an interrupted write.
    #[must_use]
    pub fn broken_off_after(mut self, age: Duration) -> Self {
        if !matches!(self.kind, Kind::Folder(_)) {
            self.broken_off_after = age;
        }
        self
    }
}

/// Takes a line of the access log, which is a JSON object.
pub type WriteLog = Arc<dyn Fn(&str) + Send + Sync>;

/// How a hub is served.
#[derive(Clone)]
pub struct Serving {
    /// The address to listen at; port 0 takes any free port.
    pub listen: SocketAddr,
    /// The files with certificate chain and private key, in PEM; without them, the server uses plain HTTP.
    pub tls: Option<(PathBuf, PathBuf)>,
    /// What references to the hub's packages begin with, such as `hub.acme.co/`; without it, pages show the
    /// host that the browser asked for.
    pub base: Option<String>,
    /// The largest archive that is taken, in bytes.
    pub largest_archive: u64,
    /// How many files and links an archive that is taken may have.
    pub most_entries: usize,
    /// How many bytes of the hub's disk uploads leave free; without it, as many as suit the disk.
    pub keep_free: Option<u64>,
    /// How many changes one client address may make in a minute.
    pub changes_per_minute: u32,
    /// How many requests one client address may make in a second; 0 for any number.
    pub requests_per_second: u32,
    /// Whether reading needs a token, too.
    pub private: bool,
    /// Whether everyone may read the counters; otherwise only programs on this machine may.
    pub public_metrics: bool,
    /// The proxies whose word for a client's address counts.
    pub trusted_proxies: Vec<Network>,
    /// The hub that is asked for what this one has not.
    pub upstream: Option<UpstreamHub>,
    /// The folder of this machine for what the server keeps of a hub that is too large for a catalog. It is created when needed.
    pub state: PathBuf,
    /// Where the access log goes.
    pub log: WriteLog,
}

mu_provider::debug_fields!(Serving { listen });

/// The hub from which another one takes what it has not.
#[derive(Clone)]
pub struct UpstreamHub {
    /// Where it is.
    pub location: Location,
    /// How its server is asked, which is the only one.
    pub http: HttpOptions,
    /// The folder for incomplete downloads.
    pub downloads: PathBuf,
    /// Packages and namespaces that it is never asked about.
    pub own: Vec<String>,
    /// How long its answers are not asked for again.
    pub max_age: Duration,
}

mu_provider::debug_fields!(UpstreamHub { location });

/// The addresses of a network, or one address.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Network {
    /// Its first address.
    first: IpAddr,
    /// How many bits at the beginning all its addresses share.
    prefix: u8,
}

impl Network {
    /// Reads an address such as `10.0.0.1` or `2001:db8::1`, or a network such as `10.0.0.0/8`.
    ///
    /// # Errors
    ///
    /// The reason, if the text is neither, or if everybody is in the network.
    pub fn parse(text: &str) -> Result<Self, String> {
        let expected = "expected an address such as 10.0.0.1, or a network such as 10.0.0.0/8";
        let (address, prefix) =
            text.split_once('/').map_or((text, None), |(address, prefix)| (address, Some(prefix)));
        let first: IpAddr = address.parse().map_err(|_| expected)?;
        if let IpAddr::V4(short) = first.to_canonical()
            && first.is_ipv6()
        {
            return Err(format!("write {short}, which is the same address"));
        }
        let bits = if first.is_ipv4() { 32 } else { 128 };
        let Some(prefix) = prefix else { return Ok(Self { first, prefix: bits }) };
        let prefix = match prefix.parse() {
            Ok(0) => return Err("everybody is in this network".to_owned()),
            Ok(prefix) if prefix <= bits => prefix,
            _ => return Err(format!("expected a number from 1 to {bits} behind the slash")),
        };
        let network = Self { first, prefix };
        match bits_of(first) == network.begin(first) {
            true => Ok(network),
            false => {
                Err(format!("{first} is inside of a network of {prefix} bits, not its beginning"))
            }
        }
    }

    /// Whether an address is in the network. An IPv4 address in the form of IPv6 is the same address.
    pub fn contains(&self, address: IpAddr) -> bool {
        let address = address.to_canonical();
        address.is_ipv4() == self.first.is_ipv4() && self.begin(address) == bits_of(self.first)
    }

    /// The bits of an address, with zeros behind those that the network's addresses share.
    fn begin(&self, address: IpAddr) -> u128 {
        // Addresses of both kinds stand at the left of the number.
        bits_of(address) & (u128::MAX << (128 - u32::from(self.prefix)))
    }
}

/// The bits of an address, at the left of a number.
fn bits_of(address: IpAddr) -> u128 {
    match address {
        IpAddr::V4(address) => u128::from(u32::from(address)) << 96,
        IpAddr::V6(address) => address.into(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_network_has_the_addresses_that_begin_like_it() {
        for (network, inside, outside) in [
            ("10.0.0.1", "10.0.0.1", "10.0.0.2"),
            ("10.0.0.1/32", "::ffff:10.0.0.1", "10.0.0.0"),
            ("10.0.0.0/8", "10.255.0.1", "11.0.0.0"),
            ("192.0.2.128/25", "192.0.2.200", "192.0.2.1"),
            ("128.0.0.0/1", "255.0.0.1", "10.0.0.1"),
            ("2001:db8::/32", "2001:db8:1::1", "2001:db9::"),
            ("::1", "::1", "0.0.0.1"),
        ] {
            let parsed = Network::parse(network).expect("is one");
            let contains = |address: &str| parsed.contains(address.parse().expect("is an address"));
            assert!(contains(inside) && !contains(outside), "{network}");
        }
    }

    #[test]
    fn what_is_not_a_network_is_refused_with_the_reason() {
        for (text, expected) in [
            ("", "expected an address"),
            ("localhost", "expected an address"),
            ("10.0.0.0/8/8", "from 1 to 32"),
            ("10.0.0.0/33", "from 1 to 32"),
            ("::/129", "from 1 to 128"),
            ("0.0.0.0/0", "everybody"),
            ("::/0", "everybody"),
            ("10.0.0.1/8", "10.0.0.1 is inside of a network of 8 bits"),
            ("::ffff:10.0.0.1", "write 10.0.0.1"),
        ] {
            let reason = Network::parse(text).expect_err(text);
            assert!(reason.contains(expected), "{text}: {reason}");
        }
    }
}
