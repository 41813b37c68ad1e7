//! Orders of administrators.

use std::time::Duration;

use lock_core::{FencingToken, Issuer, ResourceName};
use sqlx::Database;

use super::{AdminError, LowerFloor, Reason, Reset};
use crate::dialect::Value::{self, Text};

/// The orders of an administrator. Each is one transaction.
#[derive(Clone, Debug)]
#[expect(unnameable_types, reason = "in the sealed part of `Dialect`")]
pub enum Order {
    /// Change the issuer after the claims that are in progress, or find that it was changed.
    ChangeIssuer(Seal),
    /// Seal the mark of a resource below a floor, after its open transactions, or find that it was
    /// sealed.
    SealMark(Seal, FencingToken, ResourceName),
    /// Raise the floor of a store that has forgotten marks to just below this token, or find that
    /// the floor is there already.
    SealFloor(Seal, FencingToken),
    /// Lower the floor of forgotten marks, if it is where the order expects it.
    LowerFloor(LowerFloor),
    /// Set a mark that is where the order expects it, after the open transactions of its resource.
    Reset(Reset),
}

/// The order to give a store and its marks another issuer, with the reason.
#[derive(Clone, Debug)]
#[expect(unnameable_types, reason = "in the sealed part of `Dialect`")]
pub struct Seal {
    /// The issuer whose tokens were accepted so far.
    pub from: Issuer,
    /// The issuer whose tokens are accepted from now on.
    pub to: Issuer,
    pub reason: Reason,
}

impl Seal {
    /// The arguments: from, to, reason.
    pub(crate) fn texts(&self) -> [Value<'_>; 3] {
        [self.from.as_str(), self.to.as_str(), self.reason.as_str()].map(Text)
    }
}

/// A database that carries out orders: three queries, and the work of a transaction.
#[expect(unnameable_types, reason = "in the sealed part of `Dialect`")]
pub trait Administer<DB: Database> {
    /// The query for the resources whose marks belong to an issuer, in the order of their names,
    /// after this name.
    fn resources_of(issuer: &Issuer, after: &str, count: usize) -> String;

    /// The query for the greatest mark of all, as resource and token, and for the number of marks
    /// of an issuer.
    fn status(of: &Issuer) -> String;

    /// The query for another lock service that still has marks, with their number; if there are
    /// several, the first by name.
    fn marks_of_others(of: &Issuer) -> String;

    /// Carries out an order. If it is refused because the store has another issuer, returns that
    /// issuer: a third one, or, for a mark, any but the new one.
    fn carry_out(
        connection: &mut DB::Connection,
        lock_timeout: Option<Duration>,
        order: &Order,
    ) -> impl Future<Output = Result<Option<Issuer>, AdminError>> + Send;
}
