//! The lanes of the two clients and of the lock service.

use palisade_cli::duration::seconds;
use svg::node::element::{Group, Line, Pattern, Rectangle, Title};

use super::{
    layout::{CLIENT_1, CLIENT_2, LOCK},
    shapes::{Anchor, Glyph, arrow, bar, colours, dot, line, text, text_width},
    time_axis::TimeAxis,
};
use crate::{
    events::ClientName,
    report::scene::{LeaseBar, Scene, Span, short},
};

/// Half the height of the bars on a lane.
const SECTION: f64 = 9.0;
const PAUSE: f64 = 13.0;
const LEASE: f64 = 12.0;

/// The height of a client's lane.
pub(super) const fn client_y(client: ClientName) -> f64 {
    match client {
        ClientName::One => CLIENT_1,
        ClientName::Two => CLIENT_2,
    }
}

/// Draws the bars of clients that wait, work or are stopped.
pub(super) fn clients(scene: &Scene, axis: TimeAxis, hatch: &str) -> Group {
    let is_simulated = scene.heading.is_some();
    let mut lanes = Group::new();
    for wait in &scene.waits {
        lanes = lanes.add(waiting(wait, axis));
    }
    for section in &scene.sections {
        let (from, to) = (axis.x(section.from_ms), axis.x(section.to_ms));
        let believed = bar(from, to, client_y(section.client), SECTION, "bar")
            .add(Title::new("believes that it holds the lease"));
        lanes = lanes.add(
            Group::new()
                .set("class", colours(section.client))
                .add(believed),
        );
    }
    for pause in &scene.pauses {
        let by = if is_simulated { "" } else { " by SIGSTOP" };
        lanes = lanes.add(standing_still(pause, axis, hatch, by));
    }
    for &(client, at_ms) in &scene.kills {
        let by = if is_simulated { "" } else { " by SIGKILL" };
        lanes = lanes.add(killed(axis.x(at_ms), client_y(client), by));
    }
    lanes
}

fn killed(x: f64, y: f64, by: &str) -> Group {
    Group::new()
        .add(dot(x, y, "bad-dot", Glyph::Cross))
        .add(text(
            x + 14.0,
            y + 4.0,
            Anchor::Start,
            "small halo bad-text",
            &format!("killed{by}"),
        ))
}

fn waiting(wait: &Span, axis: TimeAxis) -> Group {
    const WORDS: &str = "waits in the lock service";
    let (from, to, y) = (
        axis.x(wait.from_ms),
        axis.x(wait.to_ms),
        client_y(wait.client),
    );
    let group = Group::new().set("class", colours(wait.client));
    if to - from < 12.0 {
        // The wait is too short to show: the arrow of the grant is enough.
        return group;
    }
    let lock_edge = if y < LOCK { LOCK - LEASE } else { LOCK + LEASE };
    let group = group
        .add(line((from, y), (to, y), "wait"))
        .add(arrow(from, y, lock_edge, ""));
    if to - from < text_width(WORDS) + 16.0 {
        return group;
    }
    let middle = f64::midpoint(from, to);
    group.add(text(
        middle,
        y - 8.0,
        Anchor::Middle,
        "small client-text",
        WORDS,
    ))
}

fn standing_still(pause: &Span, axis: TimeAxis, hatch: &str, by: &str) -> Group {
    let (from, to, y) = (
        axis.x(pause.from_ms),
        axis.x(pause.to_ms),
        client_y(pause.client),
    );
    let words = format!("stopped{by}, {}", seconds(pause.to_ms - pause.from_ms));
    let middle = f64::midpoint(from, to);
    let group = Group::new()
        .add(bar(from, to, y, PAUSE, "hatch-ground"))
        .add(bar(from, to, y, PAUSE, "pause").set("fill", format!("url(#{hatch})")));
    let half = text_width(&words) / 2.0 + 8.0;
    if to - from < half * 2.0 + 16.0 {
        return group.add(text(
            middle,
            y - 19.0,
            Anchor::Middle,
            "small pause-text",
            &words,
        ));
    }
    group
        .add(bar(middle - half, middle + half, y, SECTION, "pill"))
        .add(text(
            middle,
            y + 4.0,
            Anchor::Middle,
            "small pause-text",
            &words,
        ))
}

/// The pattern of a pause.
pub(super) fn hatch(id: &str) -> Pattern {
    let stroke = Line::new().set("y2", 8).set("class", "hatch");
    Pattern::new()
        .set("id", id)
        .set("width", 8)
        .set("height", 8)
        .set("patternUnits", "userSpaceOnUse")
        .set("patternTransform", "rotate(45)")
        .add(
            Rectangle::new()
                .set("width", 8)
                .set("height", 8)
                .set("fill", "none"),
        )
        .add(stroke)
}

/// Leases as the lock service sees them, and the grants on their way to the clients.
pub(super) fn leases(scene: &Scene, axis: TimeAxis) -> Group {
    scene.leases.iter().fold(Group::new(), |lanes, lease| {
        lanes.add(granted(scene, lease, axis))
    })
}

fn granted(scene: &Scene, lease: &LeaseBar, axis: TimeAxis) -> Group {
    let (from, to) = (axis.x(lease.span.from_ms), axis.x(lease.span.to_ms));
    let client_y = client_y(lease.span.client);
    let lane_edge = if client_y < LOCK {
        client_y + SECTION
    } else {
        client_y - SECTION
    };
    let lock_edge = if client_y < LOCK {
        LOCK - LEASE
    } else {
        LOCK + LEASE
    };
    let token = short(lease.token);
    let client = scene.name(lease.span.client);
    let long = format!("lease of {client}, token {token}");
    let short = format!("token {token}");
    let words = if text_width(&long) + 24.0 < to - from {
        long
    } else {
        short
    };
    let mut group = Group::new()
        .set("class", colours(lease.span.client))
        .add(bar(from, to, LOCK, LEASE, "bar"))
        .add(arrow(from, lock_edge, lane_edge, ""));
    for renewed_ms in &lease.renewed_ms {
        let x = axis.x(*renewed_ms);
        let tick = line((x, LOCK + LEASE - 6.0), (x, LOCK + LEASE), "tick");
        group = group.add(tick.add(Title::new("renewed")));
    }
    if lease.expired {
        group = group
            .add(line(
                (to, LOCK - LEASE - 4.0),
                (to, LOCK + LEASE + 4.0),
                "ends",
            ))
            .add(text(
                to - 6.0,
                LOCK - LEASE - 6.0,
                Anchor::End,
                "small client-text",
                "expires",
            ));
    }
    let middle = f64::midpoint(from, to);
    group.add(text(
        middle,
        LOCK + 4.0,
        Anchor::Middle,
        "small strong client-text",
        &words,
    ))
}
