//! The live page in a real browser: a visitor plays the story, stops and kills a client, looks
//! again, and reads the requests and answers.
//!
//! The tests leave screenshots in `target/screenshots`.

mod by_hand;
mod docs;
mod looks;
mod page;
mod reconnected;
mod recording;
mod replay;
mod wire;
