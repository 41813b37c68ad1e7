use std::iter::zip;

use super::{Shared, queues::Renewal};
use lock_core::{Error, RenewRequest, Renewed};

impl Shared {
    /// Renews, in one batch, shared leases on behalf of their holders and all leases that are not
    /// ours.
    pub(super) async fn renew_all(&self, leases: &[RenewRequest]) -> Vec<Result<Renewed, Error>> {
        let renewals: Vec<_> = {
            let (mut queues, now) = self.queues_now();
            let renewal = |lease| queues.renewal(lease, now);
            leases.iter().map(renewal).collect()
        };
        let requests: Vec<_> = zip(leases, &renewals)
            .filter_map(|(lease, renewal)| match renewal {
                Renewal::Direct => Some(lease.clone()),
                Renewal::NotHolder => None,
                Renewal::Shared(shared) => Some(shared.request.clone()),
            })
            .collect();
        let mut answers = match requests.as_slice() {
            [] => Vec::new(),
            requests => self.service.renew(requests).await,
        }
        .into_iter();
        let (mut queues, now) = self.queues_now();
        let settle = |renewal: Renewal| {
            let shared = match renewal {
                Renewal::NotHolder => return Ok(Renewed::NotHolder),
                Renewal::Direct => None,
                Renewal::Shared(shared) => Some(shared),
            };
            // There is one for each that was sent.
            let answer = answers.next().unwrap_or(Ok(Renewed::NotHolder))?;
            Ok(shared.map_or(answer, |shared| queues.renewed(&shared, answer, now)))
        };
        renewals.into_iter().map(settle).collect()
    }
}
