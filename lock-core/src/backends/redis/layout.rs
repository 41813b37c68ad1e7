use redis::aio::MultiplexedConnection;

use super::{KIND, error::translate, keys::Keys};
use crate::{Error, ErrorKind, Operation};

/// The version of keys and scripts. What differs from it is not read.
const FORMAT: u32 = 1;

/// How keys are laid out: all clients of a prefix must agree, and the first one fixes it.
#[derive(Clone, Debug)]
pub(super) struct Layout {
    pub(super) shards: u16,
    key: String,
    /// `version:shards`
    value: String,
}

impl Layout {
    pub(super) fn new(keys: &Keys, shards: u16) -> Self {
        Self {
            shards,
            key: keys.config(),
            value: format!("{FORMAT}:{shards}"),
        }
    }

    /// Writes the layout, or compares it with the one that is there.
    pub(super) async fn agree(
        &self,
        commands: &mut MultiplexedConnection,
        operation: Operation,
    ) -> Result<(), Error> {
        let mut command = redis::cmd("SET");
        command.arg(&self.key).arg(&self.value).arg("NX").arg("GET");
        let stored: Option<String> = command
            .query_async(commands)
            .await
            .map_err(|error| translate(error, operation).not_applied())?;
        match stored {
            Some(stored) if stored != self.value => {
                let detail = format!(
                    "version:shards is {stored} there and {} here; use the same settings or \
                     another prefix",
                    self.value,
                );
                Err(Error::new(ErrorKind::ConfigMismatch, operation, KIND).because(detail))
            }
            _ => Ok(()),
        }
    }
}
