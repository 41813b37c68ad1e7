//! The live page: visitors of the page watch the scenario, and direct it.
//!
//! The page is drawn by the same code as the report: it asks for a picture of the record up to some
//! moment and shows it. Server-sent events announce changes. An event only says "look again", so a
//! lost event does no harm. The page also shows each request as it was on the wire.

mod assets;
mod routes;
mod studio;
mod view;
mod wire;

pub(crate) use self::{
    routes::{Page, router},
    studio::Studio,
};
