//! Orders of administrators.

use std::time::Duration;

use lock_core::{FencingToken, Issuer, ResourceName};
use sqlx::Database;

use super::{AdminError, Reason, Reset};
use crate::dialect::Value::{self, Text};

/// What an administrator wants to have done, each in a transaction.
#[derive(Clone, Debug)]
#[expect(unnameable_types, reason = "in the sealed part of `Dialect`")]
pub enum Order {
    /// Change the issuer after the claims that are in progress, or find it changed.
    ChangeIssuer(Seal),
    /// Seal the mark of a resource below a floor, after its open transactions, or
    /// find it sealed.
    SealMark(Seal, FencingToken, ResourceName),
    /// Set a mark that is where the order expects it, after the open transactions of its resource.
    Reset(Reset),
}

/// To give a store and its marks another issuer, and why.
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
    /// As arguments: from, to, reason.
    pub(crate) fn texts(&self) -> [Value<'_>; 3] {
        [self.from.as_str(), self.to.as_str(), self.reason.as_str()].map(Text)
    }
}

/// How a database carries out orders: three looks, and the work of a transaction.
#[expect(unnameable_types, reason = "in the sealed part of `Dialect`")]
pub trait Administer<DB: Database> {
    /// The resources whose marks belong to an issuer, in the order of their names, after one name.
    fn resources_of(issuer: &Issuer, after: &str, count: usize) -> String;

    /// The greatest mark of all, as resource and token, and how many marks belong to an issuer.
    fn status(of: &Issuer) -> String;

    /// Another lock service that still has marks, and how many; the first one by name.
    fn marks_of_others(of: &Issuer) -> String;

    /// Carries out an order. Returns the issuer if it is refused because of that: a third one, or,
    /// for a mark, no longer the new one.
    fn carry_out(
        connection: &mut DB::Connection,
        lock_timeout: Option<Duration>,
        order: &Order,
    ) -> impl Future<Output = Result<Option<Issuer>, AdminError>> + Send;
}
