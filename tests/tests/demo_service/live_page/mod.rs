//! The live page in a real browser: somebody plays the story, stops and kills a client, looks
//! again, and reads what was on the wire.
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
