//! The live page: the scenario, which visitors of the page watch and direct.
//!
//! The page is drawn by the same code as the report: it asks for a picture of the record up to some
//! moment and shows it. Server-sent events announce changes. They say nothing but "look again", so
//! a lost one does no harm. The page also shows each request as it was on the wire.

mod assets;
mod routes;
mod studio;
mod view;
mod wire;

pub(crate) use self::{
    routes::{Page, router},
    studio::Studio,
};
