use std::iter::zip;

use super::{Cohort, lines::Renewal};
use lock_core::{Error, RenewRequest, Renewed};

impl Cohort {
    /// Renews, in one batch, tenures on behalf of their local holders and all leases that are not
    /// ours.
    pub(super) async fn renew_all(&self, leases: &[RenewRequest]) -> Vec<Result<Renewed, Error>> {
        let renewals: Vec<_> = {
            let (mut state, now) = self.state_now();
            let renewal = |lease| state.lines.renewal(lease, now);
            leases.iter().map(renewal).collect()
        };
        let requests: Vec<_> = zip(leases, &renewals)
            .filter_map(|(lease, renewal)| match renewal {
                Renewal::Straight => Some(lease.clone()),
                Renewal::NotHolder => None,
                Renewal::Tenure(tenure) => Some(tenure.request.clone()),
            })
            .collect();
        let mut answers = if requests.is_empty() {
            Vec::new().into_iter()
        } else {
            self.service.renew(&requests).await.into_iter()
        };
        let (mut state, now) = self.state_now();
        let settle = |(lease, renewal): (&RenewRequest, &Renewal)| {
            if matches!(renewal, Renewal::NotHolder) {
                return Ok(Renewed::NotHolder);
            }
            let unanswered = || Error::unanswered(self.service.kind(), lease.sequencer.resource());
            let answer = answers.next().unwrap_or_else(|| Err(unanswered()))?;
            Ok(match renewal {
                Renewal::Tenure(tenure) => state.lines.renewed(tenure, answer, now),
                Renewal::Straight | Renewal::NotHolder => answer,
            })
        };
        zip(leases, &renewals).map(settle).collect()
    }
}
