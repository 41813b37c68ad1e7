use std::{sync::Arc, time::Duration};

use lock_core::backend::support::OwnedTask;
use tracing::debug;

use super::{client::Client, sql};

/// Has the database forget the tombstones that have served, until the result is dropped.
pub(super) fn forget_every_minute(client: &Arc<Client>) -> OwnedTask {
    const PAUSE: Duration = Duration::from_secs(60);
    let weak = Arc::downgrade(client);
    let forgetting = async move {
        while let Some(client) = weak.upgrade() {
            client.runtime.sleep(PAUSE).await;
            if let Err(error) = client.rows(sql::forget_tombstones()).await {
                debug!(%error, "tombstones are forgotten a minute later");
            }
        }
    };
    client.tasks.own(forgetting)
}
