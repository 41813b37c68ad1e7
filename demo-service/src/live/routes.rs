use std::{convert::Infallible, time::Duration};

use axum::{
    Json, Router,
    extract::{Path, Query, Request, State},
    http::{StatusCode, header},
    middleware::{Next, from_fn_with_state},
    response::{
        IntoResponse, Response,
        sse::{Event, KeepAlive, Sse},
    },
    routing::{get, post},
};
use fenced_http::Problem;
use futures_util::{Stream, stream};
use serde::Deserialize;
use tokio::{sync::watch, time::timeout};
use tower_http::csrf::CsrfLayer;

use super::{
    assets,
    studio::{Settings, Studio},
    view::View,
    wire::WireView,
};
use crate::api::RUN_UNDER_WAY;
use crate::{
    events::{Act, ExchangeId, Recording},
    report::{self, Scene},
    scenario::Cue,
};
use palisade_gateway::problems;

/// Shortest and longest lease, and longest pause, that a visitor may choose.
const TTL_MS: std::ops::RangeInclusive<u64> = 300..=10_000;
const PAUSE_MS_MAX: u64 = 30_000;

/// The facts about the program that the page needs.
#[derive(Clone, Debug)]
pub(crate) struct Page {
    pub(crate) studio: Studio,
    /// The kinds of the lock service and of the store.
    pub(crate) kinds: [&'static str; 2],
    /// How long a request may take to arrive. Its answer is made at once.
    pub(crate) request_time: Duration,
}

#[derive(Clone)]
struct Live {
    studio: Studio,
    kinds: [&'static str; 2],
    is_closing: watch::Receiver<bool>,
}

/// The page and its data, for a gateway that answers only under names of its machine. A foreign
/// page cannot start processes here: the gateway refuses other names that point to this machine,
/// and the check of the origin refuses forms on other pages.
pub(crate) fn router(page: Page, is_closing: watch::Receiver<bool>) -> Router {
    let live = Live {
        studio: page.studio,
        kinds: page.kinds,
        is_closing,
    };
    Router::new()
        .merge(assets::routes())
        .route("/live/run", get(view).post(play))
        .route("/live/cue", post(cue))
        .route("/live/changes", get(changes))
        .route("/live/recording.json", get(recording))
        .route("/live/picture/{act}", get(picture))
        .route("/live/wire/{exchange}", get(wire))
        .with_state(live)
        .route_layer(from_fn_with_state(page.request_time, in_time))
        .route_layer(CsrfLayer::new())
}

/// A middleware around all routes. It limits the time of the answer, and not of the events that
/// follow in a stream.
async fn in_time(State(limit): State<Duration>, request: Request, next: Next) -> Response {
    let answered = timeout(limit, next.run(request)).await;
    answered.unwrap_or_else(|_| Problem::new(problems::REQUEST_TIMEOUT).into_response())
}

async fn view(State(live): State<Live>) -> Json<View> {
    Json(View::of(&live.studio))
}

/// `POST`: 202, or 409 while a run is in progress.
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
        Ok(false) => Problem::new(RUN_UNDER_WAY)
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

/// One event now, and one whenever there is something new, until the gateway closes.
async fn changes(State(live): State<Live>) -> Sse<impl Stream<Item = Result<Event, Infallible>>> {
    let mut seen = live.studio.changes();
    seen.mark_changed();
    let events = stream::unfold(
        (seen, live.is_closing),
        |(mut seen, mut closing)| async move {
            tokio::select! {
                biased;
                _closing = closing.wait_for(|closing| *closing) => return None,
                changed = seen.changed() => changed.ok()?,
            }
            let version = *seen.borrow_and_update();
            let event = Event::default().data(version.to_string());
            Some((Ok(event), (seen, closing)))
        },
    );
    Sse::new(events).keep_alive(KeepAlive::new().interval(Duration::from_secs(10)))
}

/// The part of the record to draw, and the use of the picture.
#[derive(Deserialize)]
struct Wanted {
    /// Milliseconds from the start of the run. By default the whole record, or the record up to
    /// now.
    until_ms: Option<u64>,
    /// Whether the picture stands alone, with all texts that the page otherwise shows around it.
    #[serde(default)]
    alone: bool,
}

async fn picture(
    State(live): State<Live>,
    Path(act): Path<Act>,
    Query(Wanted { until_ms, alone }): Query<Wanted>,
) -> Response {
    let (events, now_ms) = live.studio.record();
    // The time is never in the future, because that would be too much to draw.
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
            let picture = match alone {
                true => report::saved_picture(&scene),
                false => report::bare_picture(&scene),
            };
            (headers, picture).into_response()
        }
        None => StatusCode::NO_CONTENT.into_response(),
    }
}

/// Everything that is needed to draw the run again, as `palisade draw` does.
async fn recording(State(live): State<Live>) -> Response {
    let status = live.studio.status();
    let Some(settings) = status.settings else {
        return StatusCode::NO_CONTENT.into_response();
    };
    let disposition = "attachment; filename=\"recording.json\"";
    let [lock, store] = live.kinds.map(str::to_owned);
    let mut events = live.studio.record().0;
    // A recording has only one run, whatever was played before.
    events.iter_mut().for_each(|event| event.run = 1);
    let recording = Recording {
        lock,
        store,
        ttl_ms: settings.ttl_ms,
        pause_ms: settings.pause_ms,
        runs: 1,
        schedule: None,
        events,
    };
    let headers = [(header::CONTENT_DISPOSITION, disposition)];
    (headers, Json(recording)).into_response()
}

/// A request as it was on the wire, and as a command.
async fn wire(State(live): State<Live>, Path(exchange): Path<ExchangeId>) -> Response {
    match live.studio.exchange(exchange) {
        Some(exchange) => {
            // The answer contains tokens.
            let headers = [(header::CACHE_CONTROL, "no-store")];
            (headers, Json(WireView::of(&exchange, live.studio.url()))).into_response()
        }
        None => Problem::new(problems::ROUTE_UNKNOWN)
            .detail("this request does not belong to the run that is shown")
            .into_response(),
    }
}
