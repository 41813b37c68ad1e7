//! The results of a scenario: as JSON, in the terminal and as a picture.

mod chosen;
mod palette;
mod player;
mod scene;
mod sentence;
mod summary;
mod svg;
mod terminal;

pub(crate) use self::{
    chosen::chosen,
    palette::{DIM, HEADING},
    player::player,
    scene::Scene,
    sentence::sentence,
    summary::Summary,
    svg::{bare_picture, picture, saved_picture},
    terminal::{legend, timeline, verdict},
};
