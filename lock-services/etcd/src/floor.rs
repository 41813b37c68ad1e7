use super::{
    failure::Failure,
    record::{self, Floor},
    service::{Service, TRIES, crowded},
    wire::{Compare, KeyValue, Op, RangeRequest, TxnRequest},
};
use lock_core::{Error, ErrorKind, FencingToken, InitialToken};

/// The floor of tokens: read, lifted, and remembered.
impl Service {
    /// Makes sure that there is a floor, and that tokens are not below the clock. So a cluster that
    /// came back without its data, or with the data of a backup, goes on above all tokens that it
    /// has issued.
    ///
    /// In a cluster without space the floor cannot be lifted, and this returns the cluster's
    /// refusal. The floor is then not known, and the next acquisition tries again.
    pub(super) async fn lift_floor(&self) -> Result<Option<Failure>, Error> {
        for _ in 0..TRIES {
            let (floor, revision) = self.read_floor().await?;
            let start = match self.initial {
                InitialToken::Clock => {
                    let clock = InitialToken::clock_token(self.runtime().unix_time());
                    clock.saturating_sub(record::token(0, revision).map_or(0, u64::from))
                }
                InitialToken::At(token) if floor.changed == 0 => token.get() - 1,
                InitialToken::At(_) => 0,
            };
            if floor.changed > 0 && floor.value >= start {
                self.know_floor(floor);
                return Ok(None);
            }
            // If the floor is deleted in between, it is made again. If it is raised, it is read
            // again.
            let value = std::cmp::max(floor.value, start);
            match self.put_floor(Floor { value, ..floor }).await {
                Ok(true) => return Ok(None),
                Ok(false) => {}
                Err(failure) if failure.no_space() => return Ok(Some(failure)),
                Err(failure) => return Err(failure.into()),
            }
        }
        Err(crowded())
    }

    /// The floor, and the revision of the cluster when it was read.
    pub(super) async fn read_floor(&self) -> Result<(Floor, i64), Error> {
        let read = self.read([RangeRequest::key(&self.keys.floor())]).await?;
        let revision = read.revision();
        let floor = match read.ranges().flat_map(|range| range.kvs).next() {
            Some(kv) => Floor::read(&kv).ok_or_else(broken)?,
            None => Floor::default(),
        };
        Ok((floor, revision))
    }

    /// Changes the floor. Returns false if it has changed since it was read.
    async fn put_floor(&self, floor: Floor) -> Result<bool, Failure> {
        let key = self.keys.floor();
        let txn = TxnRequest {
            compare: vec![Compare::changed(&key, floor.changed)],
            success: vec![Op::put(&key, floor.text(), 0)],
            failure: Vec::new(),
        };
        let answer = self.txn(&txn).await?;
        if answer.succeeded {
            let changed = answer.revision();
            self.know_floor(Floor { changed, ..floor });
        }
        Ok(answer.succeeded)
    }

    /// Refuses a floor that is so far ahead that it must be a mistake.
    pub(super) async fn check_plausible(&self, floor: FencingToken) -> Result<(), Error> {
        let greatest = self
            .initial
            .greatest_floor(self.last_token().await?, self.runtime().unix_time());
        if floor.get() <= greatest {
            return Ok(());
        }
        let implausible = Error::not_applied(ErrorKind::FloorImplausible);
        Err(implausible.because(format!("the greatest that can be right is {greatest}")))
    }

    /// The last token that can have been issued, if the plausibility of a floor depends on it.
    async fn last_token(&self) -> Result<u64, Error> {
        match self.initial {
            InitialToken::Clock => Ok(0),
            InitialToken::At(_) => {
                let (floor, revision) = self.read_floor().await?;
                Ok(record::token(floor.value, revision).map_or(0, u64::from))
            }
        }
    }

    /// The floor as it was last seen.
    pub(super) async fn known_floor(&self) -> Result<Floor, Error> {
        loop {
            if let Some(floor) = self.floor() {
                return Ok(floor);
            }
            if let Some(refusal) = self.lift_floor().await? {
                return Err(refusal.into());
            }
        }
    }

    /// Takes note of the floor that came with a refusal.
    pub(super) fn note_floor(&self, kv: Option<&KeyValue>) -> Result<(), Error> {
        match kv.map(Floor::read) {
            Some(Some(floor)) => self.know_floor(floor),
            Some(None) => return Err(broken()),
            None => self.forget_floor(),
        }
        Ok(())
    }
}

pub(super) fn broken() -> Error {
    Error::not_applied(ErrorKind::CounterBroken).because("the floor of tokens is no number")
}
