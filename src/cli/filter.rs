//! The filters that `mu versions` and `mu search` share.

use clap::Args;

use crate::ops::filter::VersionFilter;

// The conditions on versions. (With a doc comment, clap would use it for the whole command.)
#[derive(Debug, Clone, Default, Args)]
pub(crate) struct Filter {
    /// Only versions whose app version is this, or starts with it: 2.3 is not 2.30
    #[arg(long, value_name = "VERSION")]
    app_version: Option<String>,
    /// Only versions with this revision: the second part of APP-REVISION, or else the whole version
    #[arg(long, value_name = "VERSION")]
    revision: Option<String>,
    /// Only versions that start with this
    #[arg(long = "version", value_name = "PREFIX")]
    prefix: Option<String>,
    /// Only versions in this channel
    #[arg(long, value_name = "CHANNEL")]
    channel: Option<String>,
    /// Only versions that this version of mu can use
    #[arg(long, value_name = "VERSION")]
    mu_version: Option<String>,
    /// Only versions with this manifest format, such as mu/v1
    #[arg(long, value_name = "FORMAT")]
    api_version: Option<String>,
    /// Mark versions that cannot run with this fact, such as kubernetes=1.29
    #[arg(long, value_name = "K=V")]
    runtime: Vec<String>,
}

impl Filter {
    /// The filter, as operations take it.
    pub(crate) fn into_versions(self) -> VersionFilter {
        let Self { app_version, revision, prefix, channel, mu_version, api_version, runtime } =
            self;
        let version = prefix;
        VersionFilter { app_version, revision, version, channel, mu_version, api_version, runtime }
    }
}
