//! Redlock with a token that fences: `N` independent nodes, a majority of which grants.
//!
//! There are four models, because four promises rest on different grounds. The order of the tokens
//! rests on no clock, so in [`tokens`] a lease may end at any moment. The promise of one holder
//! rests on clocks and on nonces, so in [`holding`] there is time and there are no tokens.
//! [`provision`] checks which client may declare a node new, and [`clearing`] how an outdated node
//! is taken in.

pub(crate) mod clearing;
pub(crate) mod holding;
pub(crate) mod provision;
pub(crate) mod tokens;
