//! The service as a whole: its floor says whether it grants.

use super::{
    failure::Failure,
    floor::{Floor, broken},
    record::token,
    service::{Service, TRIES},
    wire::RangeRequest,
};
use crate::{Error, ErrorKind, FencingToken, Operation, Standing};

impl Service {
    pub(super) async fn standing(&self) -> Result<Standing, Error> {
        let (floor, revision) = self.read_floor(Operation::Standing).await?;
        Ok(standing(floor, revision))
    }

    /// Who takes a place compares the floor, so nobody takes one from then on. The revision that
    /// retired it is greater than that of every place there is.
    pub(super) async fn retire(&self) -> Result<Standing, Error> {
        self.change_floor(Operation::Retire, |floor, _| {
            Ok((!floor.retired).then_some(Floor {
                retired: true,
                ..floor
            }))
        })
        .await
    }

    pub(super) async fn reinstate(&self, least: FencingToken) -> Result<Standing, Error> {
        self.change_floor(Operation::Reinstate, |floor, revision| {
            let last = token(floor.value, revision).map_or(0, u64::from);
            self.check_plausible(least, last, Operation::Reinstate)?;
            let value = std::cmp::max(floor.value, Floor::for_token(least, revision));
            let changed = Floor {
                value,
                retired: false,
                ..floor
            };
            Ok((changed != floor).then_some(changed))
        })
        .await
    }

    async fn change_floor(
        &self,
        operation: Operation,
        change: impl Fn(Floor, i64) -> Result<Option<Floor>, Error>,
    ) -> Result<Standing, Error> {
        for _ in 0..TRIES {
            let (floor, revision) = self.read_floor(operation).await?;
            let Some(changed) = change(floor, revision)? else {
                return Ok(standing(floor, revision));
            };
            let put = self.put_floor(changed).await;
            if let Some(floor) = put.map_err(|failure| failure.error(operation))? {
                return Ok(standing(floor, floor.changed));
            }
        }
        Err(Error::new(ErrorKind::Unavailable, operation, super::KIND)
            .because("others have changed the floor each time we looked"))
    }

    /// The floor, and the revision of the cluster when it was read.
    async fn read_floor(&self, operation: Operation) -> Result<(Floor, i64), Error> {
        let failed = |failure: Failure| failure.error(operation);
        let read = self
            .read([RangeRequest::key(&self.keys.floor())])
            .await
            .map_err(failed)?;
        let revision = read.revision();
        let floor = match read.ranges().flat_map(|range| range.kvs).next() {
            Some(entry) => Floor::read(&entry).ok_or_else(broken)?,
            None => Floor::default(),
        };
        Ok((floor, revision))
    }
}

/// What has been issued at most, when the cluster was at that revision.
fn standing(floor: Floor, revision: i64) -> Standing {
    let last = if floor.retired {
        floor.changed
    } else {
        revision
    };
    Standing {
        retired: floor.retired,
        last: token(floor.value, last),
    }
}
