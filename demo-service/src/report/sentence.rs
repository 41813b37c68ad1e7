use super::scene::{AccessKind, Scene, Verdict};

/// The result of an act in one or two sentences, which fit into a line of the picture.
pub(crate) fn sentence(scene: &Scene) -> String {
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

/// Why it went well, as the beginning of a sentence.
fn rescue(scene: &Scene) -> String {
    let mut refused = scene
        .accesses
        .iter()
        .filter_map(|access| match access.kind {
            AccessKind::Refused { status, .. } => Some(status),
            _ => None,
        });
    match (refused.next(), scene.kills.first()) {
        (Some(status), _) => {
            format!("the late write was refused ({status}). With a new lease and another look ")
        }
        (None, Some(_)) => "the lease of the dead client ended by itself, and ".to_owned(),
        (None, None) => String::new(),
    }
}
