//! Redlock with a token that fences: `N` independent nodes, a majority of which grants.
//!
//! Four models, because four things are promised on different grounds. The order of the tokens
//! rests on no clock, so in [`tokens`] a lease may end at any moment. That there is one holder
//! rests on clocks and on nonces, so in [`holding`] there is time and there are no tokens. Who may
//! say that a node is new is in [`provision`], and how one is taken in that was not in
//! [`clearing`].

pub mod clearing;
pub mod holding;
pub mod provision;
pub mod tokens;
