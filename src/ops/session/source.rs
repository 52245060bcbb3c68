//! Where a package comes from, as the lock writes it.

use std::path::Path;

use mu_provider::SafeUrl;

use crate::index::Route;
use crate::lock::Source;
use crate::ops::Session;

/// Where what comes from `route` comes from, as the lock says it.
pub(crate) fn source_of(session: &Session, route: &Route) -> Source {
    let provider = route.provider.name();
    Source::new(provider, place_of(&session.lock_folder(), provider, &route.location.root))
}

/// Where a registry or repository is, for the lock: what is in the workspace itself is written relative to
/// it, so that the lock holds in every checkout; folders that are packages always are.
fn place_of(from: &Path, provider: &str, root: &SafeUrl) -> String {
    let Ok(folder) = root.as_url().to_file_path() else {
        return root.to_string();
    };
    if provider == Source::FOLDER {
        return relative(from, &folder);
    }
    if !folder.starts_with(from) {
        return root.to_string();
    }
    let slash = if root.as_url().path().ends_with('/') { "/" } else { "" };
    format!("./{}{slash}", relative(from, &folder))
}

/// `folder` as seen from `from`, with `/` between names.
pub(crate) fn relative(from: &Path, folder: &Path) -> String {
    let from: Vec<_> = from.components().collect();
    let to: Vec<_> = folder.components().collect();
    let common = from.iter().zip(&to).take_while(|(left, right)| left == right).count();
    let up = std::iter::repeat_n("..".to_owned(), from.len() - common);
    let down = to[common..].iter().map(|part| part.as_os_str().to_string_lossy().into_owned());
    let parts: Vec<String> = up.chain(down).collect();
    if parts.is_empty() { ".".to_owned() } else { parts.join("/") }
}
