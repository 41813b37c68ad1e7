use crate::{
    Dialect, FenceError, FencedStore, Protection, dialect::Installation,
    transaction::uninterrupted::uninterrupted,
};

impl<DB: Dialect> FencedStore<DB> {
    /// Makes the database refuse every write to a table that comes from outside a fenced
    /// transaction of the resource, whether this program, an ORM, an old script or a session of
    /// `psql` sends it.
    ///
    /// Call it as often as you like, after [`migrate`](FencedStore::migrate). A call with the same
    /// description keeps the existing triggers, and a call with another description replaces them.
    /// It needs a role that may create triggers on the table. Transactions that are in progress
    /// when the first table is protected may be refused.
    ///
    /// A refused statement changes nothing; `?` turns its error into [`FenceError::Unfenced`],
    /// [`FenceError::WrongResource`] or [`FenceError::Stale`].
    ///
    /// It protects against bugs, NOT against malice: a user who may drop the triggers, or write to
    /// the tables of this crate, can get around them. The same is true of a superuser in a session
    /// with `session_replication_role = replica` (Postgres). NOT seen by triggers: in MySQL and
    /// MariaDB `TRUNCATE`, changes of partitions and the cascades of foreign keys; in SQLite a row
    /// that `REPLACE` removes because of a key that is not its id; in Postgres `TRUNCATE` of a
    /// partition that is younger than the call. docs/protected-tables.md has the list.
    ///
    /// # Errors
    /// [`FenceError::CannotProtect`] if there is no such table or column, or if the column is of a
    /// type whose text is not the same in every session. Otherwise errors of the database. After an
    /// error nothing has changed in Postgres and SQLite; in MySQL and MariaDB call again. MySQL and
    /// MariaDB return [`FenceError::Busy`] if a transaction has used the table for 50 s, or if
    /// another migration or protection takes longer than 60 s. Postgres waits for its
    /// `lock_timeout`.
    ///
    /// # Cancel safety
    /// Cancel safe: work that has been started is finished in the background, or not done at all.
    pub async fn protect(&self, protection: &Protection) -> Result<(), FenceError> {
        let (pool, protection) = (self.pool().clone(), protection.clone());
        let protect = async move { <DB as Installation>::protect(&pool, &protection).await };
        uninterrupted(self.tasks(), protect).await
    }

    /// Removes everything that [`protect`](FencedStore::protect) has created for this table, under
    /// any description. Does nothing if the table is not protected.
    ///
    /// # Errors
    /// As [`protect`](FencedStore::protect).
    ///
    /// # Cancel safety
    /// Cancel safe: work that has been started is finished in the background, or not done at all.
    pub async fn unprotect(&self, protection: &Protection) -> Result<(), FenceError> {
        let (pool, protection) = (self.pool().clone(), protection.clone());
        let unprotect = async move { <DB as Installation>::unprotect(&pool, &protection).await };
        uninterrupted(self.tasks(), unprotect).await
    }
}
