//! Ends a lease, whatever its holder.

use super::{
    answers::Decision,
    attempt::{End, Tried, Try},
    node_error::NodeError,
    service::Service,
};
use lock_core::{
    Error, ErrorKind, FencingToken, Holder, Metadata, ResourceName,
    backend::{AcquireRequest, AttemptRef, Forced},
};

/// The metadata of the try that takes the place of the ended lease.
const NOTE: &str = "ended by force";

impl Service {
    /// Ends the lease with this token, if a majority has it, by a try that takes its place.
    ///
    /// At each node that has the lease, the try ends the lease and counts up in one step. As
    /// always, a majority that has granted the try is raised. Then the resource is given back. No
    /// holder gets the token of the try. It lies between the token of the lease and all tokens that
    /// are granted later, because a node that was raised for both grants no other holder between
    /// the two.
    ///
    /// A lease that may have a majority only together with the nodes that do not answer is not
    /// ended. Such a lease cannot be renewed, either.
    ///
    /// # Cancel safety
    /// The lease of the try may stay for the ttl of a try.
    pub(super) async fn force_release(
        &self,
        resource: &ResourceName,
        token: FencingToken,
    ) -> Result<Forced, Error> {
        let views = self.see(resource).await?;
        match views.has(token) {
            Some(true) => {}
            Some(false) => return Ok(Forced::NotHeld),
            None => return Err(self.out_of_reach(&views.errors)),
        }
        let runtime = &*self.nodes.runtime;
        let attempt = AttemptRef::new(runtime, resource.clone(), Holder::draw(runtime));
        let mut request = AcquireRequest::new(attempt, self.nodes.ttl_of_a_try());
        request.metadata = Metadata::new(NOTE).ok();
        let tried = Try::by_force(&self.nodes, &self.keys, &request, token);
        let tried = tried.run(self.initial).await;
        let End::Granted(grant) = tried.end else {
            return self.not_forced(&tried);
        };
        if let Err(error) = self.cancel(&request.attempt).await {
            tracing::debug!(%resource, %error, "its place stays for a while");
        }
        Ok(Forced::Ended {
            revocation: grant.token,
        })
    }

    /// The answer if the try did not end the lease at a majority. If a node may have ended the
    /// lease, the outcome is unknown. An undone try does not change that, because an undo does not
    /// bring back the lease whose place the try took.
    fn not_forced(&self, tried: &Tried) -> Result<Forced, Error> {
        let answers = &tried.answers;
        let errors = &answers.errors;
        let decision = match &tried.end {
            // A majority has answered that it did nothing.
            End::NotGranted(Decision::NotHeld) => return Ok(Forced::NotHeld),
            End::NotGranted(decision) if answers.has_run_nowhere() => decision,
            _ => {
                let error = Error::unknown(ErrorKind::Unavailable);
                return Err(error.because(format!(
                    "some nodes have ended the lease or may have ended it, and too few have \
                     confirmed it ({}): look who holds it",
                    self.nodes.in_words(errors),
                )));
            }
        };
        let refused = |kind| Error::not_applied(kind);
        match decision {
            Decision::Exhausted => Err(refused(ErrorKind::TokensExhausted)),
            Decision::BrokenCounter => {
                Err(refused(ErrorKind::CounterBroken).because("a counter holds something else"))
            }
            _ => Err(self.out_of_reach(errors)),
        }
    }

    fn out_of_reach(&self, errors: &[(usize, NodeError)]) -> Error {
        let error = Error::not_applied(ErrorKind::Unavailable);
        error.because(format!(
            "too few of the nodes that have the lease have a part in it, and {} are needed ({}); \
             without them it cannot be renewed either",
            self.nodes.majority(),
            self.nodes.in_words(errors),
        ))
    }
}
