use super::scene::{AccessKind, Scene, Verdict};

/// What an act came to, in a sentence or two. They fit into a line of the picture.
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
    let refused = scene.accesses.iter().find_map(|access| match access.kind {
        AccessKind::Refused { status, .. } => Some(status),
        _ => None,
    });
    let told = if as_told { "" } else { " Not as told!" };
    match (lost_update, refused) {
        (true, _) => format!(
            "Lost update: the balance is {found}, it should be {expected}: \
             a deposit is gone.{told}",
        ),
        (false, None) => format!("Nothing lost: the balance is {found}, as it should be.{told}"),
        (false, Some(status)) => format!(
            "Nothing lost: the late write got {status}. With a fresh lease and a fresh read the \
             balance is {found}, as it should be.{told}",
        ),
    }
}
