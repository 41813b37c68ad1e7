//! Many tasks, each with a lock of its own. Programs and load are those of the page about the
//! peers.

use std::{cmp::max, process::Command, time::Duration};

use crate::{
    figure::{BoxError, Measured, Unit},
    paired::{Medians, Samples, take_turns},
    peers::{
        libraries::rust_program,
        load::{Sample, THROUGHPUT, run},
        servers::postgres,
    },
};

/// The length of a turn of one program.
const SPAN: Duration = Duration::from_secs(2);

/// Cycles per second.
pub(super) async fn vs_lease_table(rounds: u32) -> Result<Measured, BoxError> {
    let medians = take_turns_of(rounds, |sample| sample.per_second).await?;
    Ok(medians.ours_by_other(Unit::PerSecond))
}

/// The CPU time of the server per cycle.
pub(super) async fn cpu_vs_lease_table(rounds: u32) -> Result<Measured, BoxError> {
    let medians = take_turns_of(rounds, |sample| sample.server_cpu_us).await?;
    Ok(medians.ours_by_other(Unit::Micros))
}

async fn take_turns_of(rounds: u32, quantity: fn(Sample) -> f64) -> Result<Medians, BoxError> {
    let server = postgres().await?;
    let turn = async |library, samples: &mut Samples| {
        let mut command = Command::new(rust_program()?);
        command.arg(library);
        let sample = run(command, THROUGHPUT, SPAN, server.url()).await?;
        samples.push(quantity(sample));
        Ok(())
    };
    take_turns(
        max(rounds / 8, 1),
        async |samples| turn("palisade", samples).await,
        async |samples| turn("lease-table", samples).await,
    )
    .await
}
