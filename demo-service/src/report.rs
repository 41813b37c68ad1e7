//! The results of a scenario: as JSON, in the terminal, as a picture and as a page.

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
    svg::{bare_picture, picture, saved_picture},
    terminal::{legend, timeline, verdict},
};
