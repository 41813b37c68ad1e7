mod memory;
mod rules;
mod stories;
mod world;
