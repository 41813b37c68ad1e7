use lock_core::{Issuer, Plausibility};

use crate::{FencingHeader, Rejection, TokenVerifier};

/// Accepts tokens of one issuer without a signature.
///
/// So everybody who can send a request can invent a token. Use it in a network where clients may be
/// slow, but are not malicious. An *absurd* token must still be kept out: after one claim of 999
/// 999 999 999 999 no lock service can ever issue a greater one. So a token above a bound is
/// refused as [implausible](Self::plausibility).
///
/// A signed token is refused, too, because its sender expects a check of the signature.
#[derive(Clone, Debug)]
pub struct Unsigned {
    issuer: Issuer,
    plausibility: Plausibility,
}

impl Unsigned {
    /// Accepts the tokens of this issuer, up to [`Plausibility::by_the_clock`].
    #[must_use]
    pub fn new(issuer: Issuer) -> Self {
        Self {
            issuer,
            plausibility: Plausibility::default(),
        }
    }

    /// The bound above which a token is refused, because it must be a mistake. Defaults to
    /// [`Plausibility::by_the_clock`]. Use the same bound as in the store.
    #[must_use]
    pub fn plausibility(mut self, plausibility: Plausibility) -> Self {
        self.plausibility = plausibility;
        self
    }
}

impl TokenVerifier for Unsigned {
    fn verify(&self, header: &FencingHeader<'_>) -> Result<(), Rejection> {
        if header.signature().is_some() {
            Err(Rejection::SignatureNotChecked)
        } else if header.issuer() != self.issuer.as_str() {
            let issuer = self.issuer.clone();
            Err(Rejection::WrongIssuer { issuer })
        } else if !self.plausibility.admits(header.token()) {
            Err(Rejection::Implausible)
        } else {
            Ok(())
        }
    }
}

#[cfg(test)]
mod tests {
    use std::{sync::Arc, time::Duration};

    use lock_core::{
        FencingToken, Holder, InitialToken, ResourceName, Sequencer, backend::Runtime,
    };
    use lock_testing::ManualClock;

    use super::*;

    fn sequencer(issuer: &str, token: u64) -> Sequencer {
        let resource = ResourceName::new("account:42").unwrap();
        let token = FencingToken::new(token).unwrap();
        Sequencer::new(
            Issuer::new(issuer).unwrap(),
            resource,
            token,
            Holder::random(),
        )
    }

    fn redis() -> Issuer {
        Issuer::new("redis").unwrap()
    }

    #[test]
    fn a_token_may_be_a_day_ahead_of_the_clock_and_no_more() {
        let clock = ManualClock::new();
        let by_the_clock = Plausibility::by(Arc::new(clock.clone()));
        let unsigned = Unsigned::new(redis()).plausibility(by_the_clock);
        let verify = |token| unsigned.verify(&FencingHeader::new(&sequencer("redis", token)));
        let day = Duration::from_secs(86_400);
        let tomorrow = InitialToken::clock_token(clock.unix_time() + day);
        assert_eq!(verify(1), Ok(()));
        assert_eq!(verify(tomorrow), Ok(()));
        assert_eq!(verify(tomorrow + 1), Err(Rejection::Implausible));
        assert_eq!(verify(FencingToken::MAX.get()), Err(Rejection::Implausible));
        clock.advance(Duration::from_micros(10));
        assert_eq!(verify(tomorrow + 1), Ok(()));
    }

    /// Catches: a developer who cannot see which name the two programs should share.
    #[test]
    fn the_refusal_of_another_issuer_names_the_accepted_one() {
        let foreign = sequencer("memory", 1);
        let refused = Unsigned::new(redis()).verify(&FencingHeader::new(&foreign));
        let refused = refused.unwrap_err();
        assert_eq!(refused, Rejection::WrongIssuer { issuer: redis() });
        assert!(refused.to_string().ends_with(r#"only tokens of "redis""#));
    }

    /// Catches: a bound of the service that is ignored.
    #[test]
    fn a_service_that_counts_from_one_has_its_own_bound() {
        let thousand = Plausibility::up_to(FencingToken::new(1000).unwrap());
        let unsigned = Unsigned::new(redis()).plausibility(thousand);
        let verify = |token| unsigned.verify(&FencingHeader::new(&sequencer("redis", token)));
        assert_eq!(verify(1000), Ok(()));
        assert_eq!(verify(1001), Err(Rejection::Implausible));
    }
}
