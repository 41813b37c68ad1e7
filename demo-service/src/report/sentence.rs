use super::scene::{AccessKind, Scene, Verdict};
use crate::events::Story;

/// The result of an act in one or two sentences, which fit into a line of the picture.
pub(crate) fn sentence(scene: &Scene) -> String {
    if let Some(heading) = &scene.heading {
        return heading.verdict.clone();
    }
    let Some(Verdict {
        expected,
        found,
        lost_update,
        as_told,
    }) = scene.verdict
    else {
        return "Not played to its end.".into();
    };
    let told = match lost_update {
        true if scene.story == Story::Jobs => {
            format!("Done {found} times: the one that was late did the job again.")
        }
        false if scene.story == Story::Jobs => {
            let refused = refusal(scene).map(|status| {
                format!(": the late run was refused ({status}), looked again, and found it done")
            });
            format!("Done once{}.", refused.unwrap_or_default())
        }
        true => format!(
            "Lost update: one deposit has wiped out the other: the balance is {found}, it should \
             be {expected}."
        ),
        false => format!(
            "Nothing lost: {}the balance is {found}, as it should be.",
            rescue(scene)
        ),
    };
    format!("{told}{}", if as_told { "" } else { " Not as told!" })
}

/// The reason for the good result, as the beginning of a sentence.
fn rescue(scene: &Scene) -> String {
    match (refusal(scene), scene.kills.first()) {
        (Some(status), _) => {
            format!("the late write was refused ({status}). With a new lease and another look ")
        }
        (None, Some(_)) => "the lease of the dead client ended by itself, and ".to_owned(),
        (None, None) => String::new(),
    }
}

/// The status of the first write that was refused.
fn refusal(scene: &Scene) -> Option<u16> {
    scene.accesses.iter().find_map(|access| match access.kind {
        AccessKind::Refused { status, .. } => Some(status),
        _ => None,
    })
}
