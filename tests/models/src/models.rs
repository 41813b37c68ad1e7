//! Models of the protocols of the lock services and of the store, small enough to check every
//! reachable state. `README.md` has the promises of each model, and the parts that it leaves out.
//!
//! A model is the intended protocol plus a list of flaws: the same protocol with one rule left out.
//! The protocol must hold, and the model must find every flaw. Otherwise the model shows nothing.
#![forbid(unsafe_code)]

/// Lets a model leave out one of its rules, which stands in its field `flaw`.
macro_rules! flawed {
    ($model:ty $(, const $n:ident: usize)?) => {
        impl $(<const $n: usize>)? models::Flawed for $model {
            type Flaw = Flaw;

            fn with(mut self, flaw: Flaw) -> Self {
                self.flaw = Some(flaw);
                self
            }
        }

        impl $(<const $n: usize>)? $model {
            pub(crate) fn is(&self, flaw: Flaw) -> bool {
                self.flaw == Some(flaw)
            }
        }
    };
}

mod acquisition;
mod forgetting;
mod handover;
mod jobs;

mod leases;
mod line;
mod notices;

mod redlock;
mod renewal;
mod run;
mod set;
mod store;
mod unseen;
