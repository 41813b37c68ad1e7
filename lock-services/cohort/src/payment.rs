use super::{Cohort, debt::Debt};
use lock_core::{Error, Released};

/// A debt that a call has taken up. If dropped, it is left to the next call.
pub(super) struct Payment<'a> {
    cohort: &'a Cohort,
    debt: Debt,
}

impl<'a> Payment<'a> {
    pub(super) const fn new(cohort: &'a Cohort, debt: Debt) -> Self {
        Self { cohort, debt }
    }

    pub(super) async fn make(self) -> Result<Released, Error> {
        let answer = self.debt.pay(&self.cohort.service).await?;
        let now = self.cohort.clock.now();
        self.cohort.state().lines.paid(&self.debt, answer, now);
        Ok(answer)
    }
}

impl Drop for Payment<'_> {
    fn drop(&mut self) {
        self.cohort.state().lines.stop_paying(&self.debt);
    }
}
