use crate::{Error, ErrorKind, Outcome};

/// The meaning of the codes by which a server refuses a request.
#[derive(Clone, Copy, Debug)]
pub struct Refusal<C: 'static> {
    codes: &'static [C],
    kind: ErrorKind,
    outcome: Outcome,
    why: &'static str,
}

impl<C> Refusal<C> {
    /// A failure that does not pass. Nothing was done.
    #[must_use]
    pub const fn for_good(codes: &'static [C], why: &'static str) -> Self {
        Self {
            codes,
            kind: ErrorKind::Refused,
            outcome: Outcome::NotApplied,
            why,
        }
    }

    /// A failure that passes by itself after a failover, a restart or a burst. Its kind is
    /// [`ErrorKind::Unavailable`], so the request is repeated. Nothing was done.
    #[must_use]
    pub const fn passes(codes: &'static [C], why: &'static str) -> Self {
        Self {
            kind: ErrorKind::Unavailable,
            ..Self::for_good(codes, why)
        }
    }

    /// The same refusal, but the request may have been carried out, because the failure may occur
    /// while the commit is under way.
    #[must_use]
    pub const fn may_have_happened(self) -> Self {
        Self {
            outcome: Outcome::Unknown,
            ..self
        }
    }

    /// The error of the first refusal that has this code.
    pub fn error_of(refusals: &[Self], is_it: impl Fn(&C) -> bool) -> Option<Error> {
        let known = refusals
            .iter()
            .find(|known| known.codes.iter().any(&is_it))?;
        let error = match known.outcome {
            Outcome::NotApplied => Error::not_applied(known.kind),
            Outcome::Unknown => Error::unknown(known.kind),
        };
        Some(error.because(known.why))
    }
}
