use super::cleanup::OnDrop;
use crate::Grant;

/// A grant, and the attempt that gives it back unless it is disarmed.
pub(super) struct Granted {
    pub(super) pending: OnDrop,
    pub(super) grant: Grant,
}
