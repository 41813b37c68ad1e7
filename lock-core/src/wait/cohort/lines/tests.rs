mod rules;
mod stories;
mod world;
