use super::scene::{AccessKind, Refusal, Scene, Verdict, Wrong};

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
    let told = match (lost_update, as_told) {
        (true, _) => format!(
            "{}: the balance is {found}, it should be {expected}.",
            loss(scene)
        ),
        (false, _) => format!(
            "Nothing lost: {}the balance is {found}, as it should be.",
            rescue(scene)
        ),
    };
    format!("{told}{}", if as_told { "" } else { " Not as told!" })
}

/// The fault, as far as the record shows it.
fn loss(scene: &Scene) -> &'static str {
    let is_forged = scene.accesses.iter().any(|access| {
        let wrong = Some(Wrong::Forged);
        matches!(access.kind, AccessKind::Accepted { wrong: found, .. } if found == wrong)
    });
    if is_forged {
        "A write with a made-up token was taken"
    } else {
        "Lost update: one deposit has wiped out the other"
    }
}

/// Why it went well, as the beginning of a sentence.
fn rescue(scene: &Scene) -> String {
    let refused = scene
        .accesses
        .iter()
        .filter_map(|access| match access.kind {
            AccessKind::Refused { status, why, .. } => Some((status, why)),
            _ => None,
        });
    let refused: Vec<_> = refused.collect();
    match (refused.first(), scene.kills.first()) {
        (Some((status, Refusal::MadeUp)), _) => {
            let times = refused.len();
            format!("each of {times} made-up tokens was refused ({status}), and ")
        }
        (Some((status, _)), _) => {
            format!("the late write was refused ({status}). With a new lease and another look ")
        }
        (None, Some(_)) => "the lease of the dead client ended by itself, and ".to_owned(),
        (None, None) => String::new(),
    }
}
