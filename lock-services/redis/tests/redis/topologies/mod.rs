//! Redis with sentinels, as a cluster, and with TLS and logins: the promises hold when one server
//! takes the place of another.

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
