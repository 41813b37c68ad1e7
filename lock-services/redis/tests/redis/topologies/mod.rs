//! Redis with sentinels, as a cluster, behind TLS and logins: the promises when servers take each
//! other's place.

mod access;
mod bank;
mod history;
mod hung_node;
mod lost_tail;
mod paused_primary;
mod planned;
mod pushed;
mod replicas;
mod rights;
mod world;
mod wrong_server;
