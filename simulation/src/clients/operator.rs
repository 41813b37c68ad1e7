//! The work of operators.

use lock_core::{Extension, ForceReleased};

use super::{Me, Worked};
use crate::{judge::act::How, plan::Work, store::Ledger};

/// Ends a lease by force, and shuts its holder out of the store.
pub(super) async fn force<S: Ledger>(me: &Me<S>, plan: Work) -> Worked {
    let resource = me.resource(plan.on);
    let forced = me.fenced().force_release(&resource).await?;
    if matches!(forced, ForceReleased::Ended { .. }) {
        me.saw("holder shut out by force");
    }
    Ok(How::Done)
}

/// Looks at a resource, and at all resources.
pub(super) async fn inspect<S: Ledger>(me: &Me<S>, plan: Work) -> Worked {
    me.locks().inspect(me.resource(plan.on)).await?;
    if me.locks().capabilities().has(Extension::List) {
        me.locks().list().await?;
    }
    Ok(How::Done)
}
