//! A self-contained page: no script, no font, no network.

use super::{Scene, Summary, svg::inline_picture};
use crate::events::{Act, Event, Recording, Tally, seconds};

/// The report of a scenario: the pictures of one run, the sums of all, and the record itself.
pub(crate) fn page(recording: &Recording, summary: &Summary, scenes: &[Scene]) -> String {
    let acts: String = scenes.iter().map(act).collect();
    let events: String = scenes.iter().map(|scene| table(recording, scene)).collect();
    // In this order: text that is filled in later is not searched for placeholders any more.
    include_str!("html/page.html")
        .replace("<!--style-->", include_str!("html/style.css"))
        .replace("<!--facts-->", &facts(recording, scenes))
        .replace("<!--acts-->", &acts)
        .replace("<!--runs-->", &runs(summary))
        .replace("<!--events-->", &events)
        .replace("<!--recording-->", &json(recording))
}

fn facts(recording: &Recording, scenes: &[Scene]) -> String {
    let Recording {
        lock,
        store,
        ttl_ms,
        pause_ms,
        runs,
        ..
    } = recording;
    let which = match scenes.first() {
        Some(scene) if *runs > 1 => format!(" This is run {} of {runs}.", scene.run),
        _ => String::new(),
    };
    escape(&format!(
        "Lock service: {lock}. Store: {store}. Length of a lease: {}. Client 1 was stopped for {} \
         at least.{which}",
        seconds(*ttl_ms),
        seconds(*pause_ms),
    ))
}

fn act(scene: &Scene) -> String {
    format!(
        "<section>\n<h2>{}</h2>\n<div class=\"scroll\" tabindex=\"0\" role=\"region\" \
         aria-label=\"Time line\">\n{}\n</div>\n\
         <p class=\"swipe\">Swipe over the picture to see all of it.</p>\n</section>\n",
        scene.act.title(),
        inline_picture(scene),
    )
}

fn runs(summary: &Summary) -> String {
    let row = |act: Act, tally: &Tally| {
        let Tally {
            runs,
            lost_updates,
            stale_writes_accepted,
            stale_writes_rejected,
            ..
        } = tally;
        let cells = [
            *runs,
            *lost_updates,
            *stale_writes_accepted,
            *stale_writes_rejected,
        ]
        .map(|number| format!("<td class=\"number\">{number}</td>"));
        format!(
            "<tr><th scope=\"row\">{}</th>{}</tr>\n",
            act.title(),
            cells.concat()
        )
    };
    let heads = [
        "Runs",
        "Lost updates",
        "Stale writes accepted",
        "Stale writes refused",
    ]
    .map(|head| format!("<th scope=\"col\" class=\"number\">{head}</th>"));
    format!(
        "<section>\n<h2>Sums</h2>\n<div class=\"wide\" tabindex=\"0\" role=\"region\" \
         aria-label=\"Sums\">\n\
         <table>\n<thead><tr><td></td>{}</tr></thead>\n<tbody>\n{}{}</tbody>\n</table>\n</div>\n\
         </section>\n",
        heads.concat(),
        row(Act::Unfenced, &summary.unfenced),
        row(Act::Fenced, &summary.fenced),
    )
}

/// The events of an act in words: the same content as the picture, for those who prefer to read.
fn table(recording: &Recording, scene: &Scene) -> String {
    let events = recording.scene(scene.run, scene.act);
    let rows = events
        .iter()
        .filter(|event| !event.is_behind_the_scenes())
        .map(|event| {
            let Event { at_ms, lane, .. } = event;
            let (at, what) = (seconds(*at_ms), escape(&event.to_string()));
            format!("<tr><td class=\"number\">{at}</td><td>{lane}</td><td>{what}</td></tr>\n")
        });
    format!(
        "<details>\n<summary>{}, event by event</summary>\n<table>\n<thead><tr>\
         <th scope=\"col\" class=\"number\">Time</th><th scope=\"col\">Where</th>\
         <th scope=\"col\">What</th></tr></thead>\n<tbody>\n{}</tbody>\n</table>\n</details>\n",
        scene.act.title(),
        rows.collect::<String>(),
    )
}

/// In a script element only `</script` could end it; JSON may write `<` differently.
fn json(recording: &Recording) -> String {
    serde_json::json!(recording)
        .to_string()
        .replace('<', "\\u003c")
}

fn escape(text: &str) -> String {
    text.replace('&', "&amp;")
        .replace('<', "&lt;")
        .replace('>', "&gt;")
}
