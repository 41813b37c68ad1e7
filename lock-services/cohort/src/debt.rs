use lock_core::{AttemptRef, Error, LockService, Moment, Released, Sequencer};

/// A tenure, or a request for one, that still has to be ended at the service.
///
/// It is paid by the call that incurred it. If that call goes away or fails, the next one pays it:
/// the same call repeated, the cancel that follows it, or the next request for a tenure. Paying
/// twice is harmless.
#[derive(Clone, Debug)]
pub(super) struct Debt {
    pub(super) tenure: AttemptRef,
    /// The release that ended the tenure, if it was ended by one.
    pub(super) release: Option<LastRelease>,
    /// The moment by which the service has ended the tenure by itself.
    pub(super) until: Moment,
}

/// The release of the last local holder of a tenure.
#[derive(Clone, Debug)]
pub(super) struct LastRelease {
    /// The lease that is released at the service.
    pub(super) tenure: Sequencer,
    /// The lease that the local holder has released.
    pub(super) local: Sequencer,
}

/// The debts to the service for one resource.
#[derive(Debug, Default)]
pub(super) struct Debts(Vec<Owed>);

#[derive(Debug)]
struct Owed {
    debt: Debt,
    /// How many calls are paying it right now.
    payers: u32,
}

impl Debt {
    /// Ends the tenure at the service. Returns the answer to its release, if it is released.
    ///
    /// A tenure that turns out not to be held is cancelled nevertheless: if it ran out before its
    /// grant was confirmed, it still has a place in line.
    ///
    /// # Cancel safety
    /// It may or may not have been ended. Paying again is harmless.
    pub(super) async fn pay(&self, service: &LockService) -> Result<Released, Error> {
        if let Some(release) = &self.release
            && service.release(&release.tenure).await? == Released::Released
        {
            return Ok(Released::Released);
        }
        service.cancel(&self.tenure).await?;
        Ok(Released::NotHolder)
    }
}

impl Debts {
    pub(super) const fn is_empty(&self) -> bool {
        self.0.is_empty()
    }

    pub(super) fn owe(&mut self, debt: Debt) {
        self.0.push(Owed { debt, payers: 0 });
    }

    /// Debts that nobody is paying, for a request that may never be sent.
    pub(super) fn unpaid(&self) -> Vec<Debt> {
        let unpaid = self.0.iter().filter(|owed| owed.payers == 0);
        unpaid.map(|owed| owed.debt.clone()).collect()
    }

    /// Debts that nobody is paying. The caller pays them from now on, until it
    /// [stops](Self::stop_paying).
    pub(super) fn take_up(&mut self) -> Vec<Debt> {
        let unpaid = self.0.iter_mut().filter(|owed| owed.payers == 0);
        unpaid.map(Owed::pay).collect()
    }

    /// The same for the debt from the release of this local lease.
    pub(super) fn take_up_release(&mut self, lease: &Sequencer) -> Option<Debt> {
        let is_it = |owed: &&mut Owed| {
            let release = owed.debt.release.as_ref();
            release.is_some_and(|release| release.local == *lease)
        };
        self.0.iter_mut().find(is_it).map(Owed::pay)
    }

    /// A call has paid, or has given up.
    pub(super) fn stop_paying(&mut self, debt: &Debt) {
        let mut all = self.0.iter_mut();
        if let Some(owed) = all.find(|owed| owed.debt.tenure == debt.tenure) {
            owed.payers = owed.payers.saturating_sub(1);
        }
    }

    /// Removes a debt that is paid.
    pub(super) fn settle(&mut self, debt: &Debt) {
        self.0.retain(|owed| owed.debt.tenure != debt.tenure);
    }

    /// Forgets tenures that the service has ended by itself.
    pub(super) fn forget_old(&mut self, now: Moment) {
        self.0.retain(|owed| owed.debt.until > now);
    }
}

impl Owed {
    fn pay(&mut self) -> Debt {
        self.payers += 1;
        self.debt.clone()
    }
}
