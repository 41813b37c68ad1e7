//! How the waiters of this process look whether it is their turn.

use std::{sync::Arc, time::Duration};

use lock_core::{
    Error,
    backend::support::{
        OwnedTask, fingerprint,
        waiters::{Look, Place, WaiterKey},
    },
};
use tracing::debug;

use super::{calls, client::Client};

/// How often the first in the queue looks, at the slowest.
const LONGEST_PAUSE: Duration = Duration::from_millis(250);

#[derive(Debug)]
pub(super) struct LookAsClient {
    pub(super) client: Arc<Client>,
    /// Distinguishes the waiters of this process.
    pub(super) name: String,
}

impl LookAsClient {
    pub(super) fn new(client: Arc<Client>) -> Self {
        let name = format!("{:032x}", client.runtime.random());
        Self { client, name }
    }
}

impl Look for LookAsClient {
    async fn look(
        &self,
        attempts: &[String],
        touch: bool,
    ) -> Result<Vec<(WaiterKey, Place)>, Error> {
        let alive = attempts.iter().filter(|_| touch);
        let alive: Vec<_> = alive.map(|attempt| fingerprint(attempt)).collect();
        let rows = self.client.rows(calls::look(&self.name, &alive)).await?;
        let seen = rows.iter().map(|row| {
            let lease = row.text("resource")?;
            let resource = self.client.names.resource_of(&lease);
            let key = WaiterKey {
                resource: resource.unwrap_or(&lease).to_owned(),
                holder: row.text("holder")?,
                attempt: row.text("attempt")?,
            };
            let place = Place {
                turn: row.flag("turn")?,
                first: row.flag("first")?,
                left: Duration::from_millis(row.number("left_ms")?),
            };
            Ok((key, place))
        });
        seen.collect()
    }

    fn longest_pause(&self) -> Option<Duration> {
        Some(LONGEST_PAUSE)
    }
}

/// Has the database forget the tombstones that have served, until the result is dropped.
pub(super) fn forget_every_minute(client: &Arc<Client>) -> OwnedTask {
    const PAUSE: Duration = Duration::from_secs(60);
    let weak = Arc::downgrade(client);
    let forgetting = async move {
        while let Some(client) = weak.upgrade() {
            client.runtime.sleep(PAUSE).await;
            if let Err(error) = client.rows(calls::forget_tombstones()).await {
                debug!(%error, "tombstones are forgotten a minute later");
            }
        }
    };
    client.tasks.own(forgetting)
}
