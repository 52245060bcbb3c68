//! A chart in an OCI registry: its `Chart.yaml` is the config, as JSON, and its archive is a layer. There may
//! be another layer with a signature.

use super::chart::{CHART, REQUIREMENTS};
use super::pushed::pushed;
use crate::artifact::{Artifact, Image};

/// The media type of the config of a chart.
pub(super) const CONFIG: &str = "application/vnd.cncf.helm.config.v1+json";

/// The media type of the archive of a chart, and the one that it had first.
pub(super) const CONTENT: [&str; 2] =
    ["application/vnd.cncf.helm.chart.content.v1.tar+gzip", "application/tar+gzip"];

/// The media type of the signed statement about a chart, in a layer beside it.
pub const PROVENANCE: &str = "application/vnd.cncf.helm.chart.provenance.v1.prov";

pub(super) const ARTIFACT: Artifact = Artifact {
    find,
    label: None,
    in_config: true,
    in_folder: true,
    provenance: Some(PROVENANCE),
    looks_into: |path| [CHART, REQUIREMENTS].contains(&path),
    pushed,
};

fn find(image: &Image<'_>) -> Option<Result<usize, String>> {
    if image.config != CONFIG {
        return None;
    }
    let mut layers = image.layers.iter().enumerate();
    let found = layers.find(|(_, layer)| CONTENT.contains(&layer.media_type));
    Some(found.map(|(at, _)| at).ok_or_else(|| "it is a chart without an archive".to_owned()))
}
