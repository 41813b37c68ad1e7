//! The cost of the edge: around a handler, and for a single token.

mod peer;
mod request;
mod token;

use crate::{
    figure::{
        Figure,
        Target::{AddsAtMost, AtLeast, AtMost},
    },
    pinning::Pinning::SameCore,
};

/// All figures, in the order in which they are measured.
pub(crate) const FIGURES: &[Figure] = &[
    Figure {
        name: "layer_plain",
        what: "a request through a router with the layer, unsigned token / without the layer",
        target: AddsAtMost(450.0),
        pinning: SameCore,
        both_pinnings: false,
        measure: |setting| Box::pin(request::layer_plain(setting)),
    },
    Figure {
        name: "layer_extractor_signed",
        what: "a request through layer and extractor, signed token / without both",
        target: AddsAtMost(1000.0),
        pinning: SameCore,
        both_pinnings: false,
        measure: |setting| Box::pin(request::layer_extractor_signed(setting)),
    },
    Figure {
        name: "verify_vs_mac",
        what: "parse and verify a signed token / the bare HMAC-SHA256 of the same bytes",
        target: AtMost(2.5),
        pinning: SameCore,
        both_pinnings: false,
        measure: |setting| Box::pin(token::verify_vs_mac(setting)),
    },
    Figure {
        name: "jwt_vs_ours",
        what: "jsonwebtoken decodes HS256 with the same claims / parse and verify a signed token",
        target: AtLeast(10.0),
        pinning: SameCore,
        both_pinnings: false,
        measure: |setting| Box::pin(token::jwt_vs_ours(setting)),
    },
];
