//! What a scenario came to: as JSON, in the terminal, as a picture and as a page.

mod chosen;
mod html;
mod palette;
mod scene;
mod sentence;
mod summary;
mod svg;
mod terminal;

pub(crate) use self::{
    chosen::chosen,
    html::page,
    palette::{DIM, HEADING},
    scene::Scene,
    sentence::sentence,
    summary::Summary,
    svg::{inline_picture, picture},
    terminal::{timeline, verdict},
};
