//! Runs one server for one test, and outlives the test for long enough to clean up after it.
//!
//! Usage: `e2e-warden KIND [ARGUMENT..]`, where `e2e::warden::ServerKind` names the kinds. The
//! harness starts it; the protocol is `e2e::warden`. There is also `e2e-warden exec PARENT PROGRAM
//! [ARGUMENT..]`: see [`exec`].
#![forbid(unsafe_code)]

mod account;
mod chrome_driver;
mod cluster;
mod etcd;
mod exec;
mod log;
mod mariadb;
mod mysql;
mod pgbouncer;
mod redis;
mod server;
mod zookeeper;

use std::{
    env,
    ffi::OsString,
    io,
    io::{BufRead, Write},
    process::ExitCode,
};

use e2e::warden::{Order, Reply, Running, ServerKind};

use crate::server::Server;

fn main() -> ExitCode {
    match run() {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => {
            eprintln!("e2e-warden: {error}");
            ExitCode::FAILURE
        }
    }
}

fn run() -> io::Result<()> {
    let mut arguments = env::args_os().skip(1);
    let first = arguments.next().unwrap_or_default();
    if first == "exec" {
        return exec::exec(arguments);
    }
    match first.to_str().and_then(ServerKind::from_name) {
        Some(kind) => guard(kind, arguments.collect()),
        None => Err(io::Error::other("say which server, such as redis")),
    }
}

fn guard(kind: ServerKind, arguments: Vec<OsString>) -> io::Result<()> {
    let mut server = match Server::start(kind, arguments) {
        Ok(server) => server,
        Err(error) => return reply(&Reply::Failed(error.to_string())),
    };
    // If the orders end or the answers cannot be delivered, the test is gone, and the warden ends,
    // too.
    let served = serve(&mut server);
    server.close()?;
    match served {
        Err(error) if error.kind() != io::ErrorKind::BrokenPipe => Err(error),
        _ => Ok(()),
    }
}

fn serve(server: &mut Server) -> io::Result<()> {
    reply(&Reply::Done(server.running()))?;
    for line in io::stdin().lock().lines() {
        let done = carry_out(serde_json::from_str(&line?)?, server);
        reply(&done.map_or_else(|error| Reply::Failed(error.to_string()), Reply::Done))?;
    }
    Ok(())
}

fn carry_out(order: Order, server: &mut Server) -> io::Result<Running> {
    match order {
        Order::Pause => server.pause()?,
        Order::Resume => server.resume()?,
        Order::Kill => server.kill()?,
        Order::Stop => server.stop()?,
        Order::ShutDown => server.shut_down()?,
        Order::Start => server.start_again()?,
    }
    Ok(server.running())
}

fn reply(reply: &Reply) -> io::Result<()> {
    let mut line = serde_json::to_vec(reply)?;
    line.push(b'\n');
    io::stdout().lock().write_all(&line)
}
