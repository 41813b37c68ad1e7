//! The live page: the scenario, played where everybody can watch it, and be its director.
//!
//! The page is drawn by the same code as the report: it asks for a picture of the record up to some
//! moment and shows it. What happens is told by server-sent events that say no more than "look
//! again", so none that gets lost does any harm. Beside it, the page shows each request as it was
//! on the wire, and the lock service as it is.

mod assets;
mod locks;
mod routes;
mod studio;
mod view;
mod wire;

pub(crate) use self::{
    routes::{Page, router},
    studio::Studio,
};
