use redis::Cmd;

use super::link::Link;
use crate::{error::translate, keys::Keys};
use lock_core::{Error, ErrorKind};

/// The version of keys and scripts. Data of another version is not read.
const FORMAT: u32 = 9;

/// The layout of keys. All clients of a prefix must agree on it, and the first client fixes it.
#[derive(Clone, Debug)]
pub(crate) struct Layout {
    pub(crate) shards: u16,
    key: String,
    /// `version:shards`
    value: String,
}

impl Layout {
    pub(crate) fn new(keys: &Keys, shards: u16) -> Self {
        Self {
            shards,
            key: keys.config(),
            value: format!("{FORMAT}:{shards}"),
        }
    }

    /// The key of the layout.
    pub(crate) fn key(&self) -> &str {
        &self.key
    }

    /// Writes the layout unless there is one. The answer is the layout that was there.
    pub(crate) fn offer(&self) -> Cmd {
        let mut command = redis::cmd("SET");
        command.arg(&self.key).arg(&self.value).arg("NX").arg("GET");
        command
    }

    /// Compares the layout with the one that was there.
    pub(crate) fn compare(&self, stored: Option<&str>) -> Result<(), Error> {
        match stored {
            Some(stored) if stored != self.value => {
                let detail = format!(
                    "version:shards is {stored} there and {} here; use the same settings or \
                     another prefix",
                    self.value,
                );
                Err(Error::not_applied(ErrorKind::ConfigMismatch).because(detail))
            }
            _ => Ok(()),
        }
    }

    /// Writes or compares the layout on one server, unless another node of its cluster has it.
    ///
    /// Looks first, because a server that is out of memory refuses to write, but renewals and
    /// releases still have to reach it.
    pub(crate) async fn agree_here(&self, link: &mut Link) -> Result<(), Error> {
        let mut look = redis::cmd("GET");
        let mut stored = look.arg(&self.key).query_async(link).await;
        if let Ok(None) = stored {
            stored = self.offer().query_async::<Option<String>>(link).await;
        }
        match stored {
            Ok(stored) => self.compare(stored.as_deref()),
            Err(error) if error.is_cluster_error() => Ok(()),
            Err(error) => Err(translate(error).outcome_not_applied()),
        }
    }
}
