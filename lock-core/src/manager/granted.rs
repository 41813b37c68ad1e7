use super::cleanup::OnDrop;
use crate::{AttemptRef, Grant};

/// A grant, and the guard that cancels it unless it is disarmed.
pub(super) struct Granted {
    pub(super) pending: OnDrop,
    pub(super) attempt: AttemptRef,
    pub(super) grant: Grant,
}
