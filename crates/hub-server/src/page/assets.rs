//! Style, script and icon of the pages. Each has the digest of its content in its name, so it may be cached
//! for ever.

use std::sync::{Arc, LazyLock};

use axum::extract::{Request, State};
use axum::http::StatusCode;
use axum::response::Response;

use super::answer;
use super::pages::Pages;
use crate::answers::answer_file;
use crate::problem::Problem;
use crate::reading::FOREVER;

const STYLE: &str = include_str!("../../assets/page.css");
const SCRIPT: &str = include_str!("../../assets/page.js");
const ICON: &str = include_str!("../../assets/icon.svg");

/// The names of the files.
#[derive(Debug)]
pub(super) struct Assets {
    pub(super) style: String,
    pub(super) script: String,
    pub(super) icon: String,
}

static ASSETS: LazyLock<Assets> = LazyLock::new(|| {
    let name =
        |text: &str, ending: &str| format!("page-{}.{ending}", answer::digest(text.as_bytes()));
    Assets { style: name(STYLE, "css"), script: name(SCRIPT, "js"), icon: name(ICON, "svg") }
});

impl Assets {
    pub(super) fn shared() -> &'static Self {
        &ASSETS
    }
}

/// Answers with one of the files.
pub(super) async fn answer(
    State(pages): State<Arc<Pages>>,
    request: Request,
) -> Result<Response, Problem> {
    let assets = Assets::shared();
    let name = request.uri().path().rsplit('/').next().unwrap_or_default();
    let (kind, text) = match () {
        () if name == assets.style => ("text/css; charset=utf-8", STYLE),
        () if name == assets.script => ("text/javascript; charset=utf-8", SCRIPT),
        () if name == assets.icon => ("image/svg+xml", ICON),
        // A file of another server's version, or of a hub with a folder of this name.
        () => return answer_file(State(Arc::clone(&pages.data)), request).await,
    };
    Ok(answer::send(request.headers(), StatusCode::OK, FOREVER, kind, text.as_bytes()))
}
