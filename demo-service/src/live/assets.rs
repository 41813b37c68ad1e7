//! The files of the page. They are part of the program, so the page works without any other file
//! and without a network.

use axum::{
    Router,
    http::header,
    response::{IntoResponse, Response},
    routing::get,
};

/// Pictures contain a style element; everything else must come from this server.
const POLICY: &str = "default-src 'none'; script-src 'self'; style-src 'self' 'unsafe-inline'; \
                      connect-src 'self'; img-src 'self' data:; base-uri 'none'; \
                      form-action 'none'; frame-ancestors 'none'";

const SCRIPTS: [(&str, &str); 5] = [
    ("/live/page.js", include_str!("page/page.js")),
    ("/live/dom.js", include_str!("page/dom.js")),
    ("/live/lanes.js", include_str!("page/lanes.js")),
    ("/live/replay.js", include_str!("page/replay.js")),
    ("/live/wire.js", include_str!("page/wire.js")),
];

pub(super) fn routes<S: Clone + Send + Sync + 'static>() -> Router<S> {
    let style = || async { asset("text/css", include_str!("page/page.css")) };
    let routes = Router::new()
        .route("/", get(page))
        .route("/live/page.css", get(style));
    SCRIPTS.into_iter().fold(routes, |routes, (path, script)| {
        routes.route(
            path,
            get(move || async { asset("text/javascript", script) }),
        )
    })
}

async fn page() -> impl IntoResponse {
    let policy = [(header::CONTENT_SECURITY_POLICY, POLICY)];
    (policy, asset("text/html", include_str!("page/index.html")))
}

fn asset(kind: &'static str, text: &'static str) -> Response {
    let headers = [
        (header::CONTENT_TYPE, format!("{kind}; charset=utf-8")),
        // A newer program has newer files under the same addresses.
        (header::CACHE_CONTROL, "no-cache".to_owned()),
    ];
    (headers, text).into_response()
}
