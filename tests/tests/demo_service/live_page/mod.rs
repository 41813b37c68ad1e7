//! The live page in a real browser: somebody plays the stories, stops and kills a client, looks
//! again, reads what was on the wire, and watches the lock service.
//!
//! The tests leave screenshots in `target/screenshots`.

mod by_hand;
mod docs;
mod looks;
mod page;
mod reconnected;
mod replay;
mod service;
mod stories;
mod wire;
