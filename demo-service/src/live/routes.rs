use std::{convert::Infallible, net::SocketAddr, time::Duration};

use axum::{
    Json, Router,
    extract::{Path, Query, Request, State},
    http::{HeaderName, StatusCode, header},
    middleware::{self, Next},
    response::{
        IntoResponse, Response,
        sse::{Event, KeepAlive, Sse},
    },
    routing::{get, post},
};
use fenced_store::http::Problem;
use futures_util::{Stream, stream};
use serde::Deserialize;
use tokio::sync::watch;
use tower_http::csrf::CsrfLayer;

use super::{
    studio::{Settings, Studio},
    view::View,
};
use crate::{
    events::Act,
    gateway::problems,
    report::{self, Scene},
    scenario::Cue,
};

/// Shortest and longest lease, and longest pause, that a visitor may choose.
const TTL_MS: std::ops::RangeInclusive<u64> = 300..=10_000;
const PAUSE_MS_MAX: u64 = 30_000;

#[derive(Clone)]
struct Live {
    studio: Studio,
    is_closing: watch::Receiver<bool>,
}

/// The page and what it asks for. Only for those who came to `addr` by its own name, so that no
/// page of somebody else's can have processes started here: `Host` keeps out names that were made
/// to point here, the origin those who send a form.
pub(crate) fn router(
    studio: Studio,
    addr: SocketAddr,
    is_closing: watch::Receiver<bool>,
) -> Router {
    Router::new()
        .route("/", get(page))
        .route("/live/page.css", get(style))
        .route("/live/page.js", get(script))
        .route("/live/run", get(view).post(play))
        .route("/live/cue", post(cue))
        .route("/live/changes", get(changes))
        .route("/live/recording.json", get(recording))
        .route("/live/picture/{act}", get(picture))
        .with_state(Live { studio, is_closing })
        .route_layer(CsrfLayer::new())
        .route_layer(middleware::from_fn_with_state(addr, own_name))
}

async fn own_name(State(addr): State<SocketAddr>, request: Request, next: Next) -> Response {
    let host = request.headers().get(header::HOST);
    let host = host.and_then(|host| host.to_str().ok()).unwrap_or_default();
    // Browsers leave out the port that everybody knows.
    let host = host.strip_suffix(":80").unwrap_or(host);
    let own = [addr.to_string(), format!("localhost:{}", addr.port())];
    if own
        .iter()
        .any(|own| own.strip_suffix(":80").unwrap_or(own) == host)
    {
        return next.run(request).await;
    }
    let detail = format!("this page is at http://{addr}/ and under no other name");
    Problem::new(problems::MISDIRECTED)
        .detail(detail)
        .into_response()
}

async fn page() -> impl IntoResponse {
    // Pictures bring a style element of their own; nothing else comes from anywhere else.
    const POLICY: &str = "default-src 'none'; script-src 'self'; style-src 'self' 'unsafe-inline'; \
                          connect-src 'self'; img-src 'self' data: blob:; base-uri 'none'; \
                          form-action 'none'; frame-ancestors 'none'";
    let headers = [
        (header::CONTENT_TYPE, "text/html; charset=utf-8"),
        (header::CONTENT_SECURITY_POLICY, POLICY),
        (header::CACHE_CONTROL, "no-cache"),
    ];
    (headers, include_str!("page/index.html"))
}

async fn style() -> impl IntoResponse {
    asset("text/css; charset=utf-8", include_str!("page/page.css"))
}

async fn script() -> impl IntoResponse {
    asset(
        "text/javascript; charset=utf-8",
        include_str!("page/page.js"),
    )
}

fn asset(
    kind: &'static str,
    text: &'static str,
) -> ([(HeaderName, &'static str); 2], &'static str) {
    let headers = [
        (header::CONTENT_TYPE, kind),
        (header::CACHE_CONTROL, "no-cache"),
    ];
    (headers, text)
}

async fn view(State(live): State<Live>) -> Json<View> {
    Json(View::of(&live.studio))
}

/// `POST`: 202, or 409 while a run is under way.
async fn play(State(live): State<Live>, Json(settings): Json<Settings>) -> Response {
    if !TTL_MS.contains(&settings.ttl_ms) || settings.pause_ms > PAUSE_MS_MAX {
        let detail = format!(
            "ttl_ms is {} to {}, pause_ms at most {PAUSE_MS_MAX}",
            TTL_MS.start(),
            TTL_MS.end()
        );
        return Problem::new(problems::UNPROCESSABLE)
            .detail(detail)
            .into_response();
    }
    match live.studio.play(settings) {
        Ok(true) => StatusCode::ACCEPTED.into_response(),
        Ok(false) => Problem::new(problems::RUN_UNDER_WAY)
            .detail("a run is being played: wait for its end")
            .into_response(),
        Err(failure) => {
            tracing::error!(%failure, "a run of the live page cannot begin");
            StatusCode::INTERNAL_SERVER_ERROR.into_response()
        }
    }
}

async fn cue(State(live): State<Live>, Json(cue): Json<Cue>) -> StatusCode {
    live.studio.cue(cue);
    StatusCode::ACCEPTED
}

/// One event now and one whenever there is something new to see, until the gateway closes.
async fn changes(State(live): State<Live>) -> Sse<impl Stream<Item = Result<Event, Infallible>>> {
    let mut seen = live.studio.changes();
    seen.mark_changed();
    let events = stream::unfold(
        (seen, live.is_closing),
        |(mut seen, mut closing)| async move {
            tokio::select! {
                changed = seen.changed() => changed.ok()?,
                _closing = closing.wait_for(|closing| *closing) => return None,
            }
            let version = *seen.borrow_and_update();
            let event = Event::default().data(version.to_string());
            Some((Ok(event), (seen, closing)))
        },
    );
    Sse::new(events).keep_alive(KeepAlive::new().interval(Duration::from_secs(10)))
}

/// How much of the record is drawn.
#[derive(Deserialize)]
struct Until {
    /// Milliseconds from the start of the run. Default: all that there is, or up to now.
    until_ms: Option<u64>,
}

async fn picture(
    State(live): State<Live>,
    Path(act): Path<Act>,
    Query(Until { until_ms }): Query<Until>,
) -> Response {
    let (events, now_ms) = live.studio.record();
    // Never the future, of which there is too much to draw.
    let until_ms = match until_ms {
        Some(until_ms) => Some(std::cmp::min(until_ms, now_ms)),
        None => live.studio.status().playing.then_some(now_ms),
    };
    let of_act = events.iter().filter(|event| event.act == act);
    match Scene::of_act(act, of_act, until_ms) {
        Some(scene) => {
            let headers = [
                (header::CONTENT_TYPE, "image/svg+xml"),
                (header::CACHE_CONTROL, "no-store"),
            ];
            (headers, report::inline_picture(&scene)).into_response()
        }
        None => StatusCode::NO_CONTENT.into_response(),
    }
}

async fn recording(State(live): State<Live>) -> impl IntoResponse {
    let disposition = "attachment; filename=\"recording.json\"";
    let headers = [(header::CONTENT_DISPOSITION, disposition)];
    (headers, Json(live.studio.record().0))
}
