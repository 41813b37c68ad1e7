//! Our library beside other libraries, each in a process of its own and in its own language.
//! Measured are speed, fairness, CPU time, and the outcome of the write of a holder that was paused
//! past its lease.
//!
//! Times of a busy machine mean little. The CPU time per pass, separately for client and server,
//! varies less. The last column does not depend on the machine at all.

mod document;
pub(crate) mod libraries;
pub(crate) mod load;
mod page;
mod pause;
mod picture;
mod program;
mod protections;
pub(crate) mod servers;

use std::{path::PathBuf, time::Duration};

use clap::Args;

use self::{
    document::{Document, Row},
    libraries::{Library, Toolchains},
    load::{CONTEST, CYCLE, THROUGHPUT},
    servers::Servers,
};
use crate::{error::BoxError, store::cost};

#[derive(Args)]
pub(crate) struct Options {
    /// How often the libraries take turns; the median of the turns counts.
    #[arg(long, default_value_t = 3, value_parser = clap::value_parser!(u32).range(1..))]
    rounds: u32,
    /// How long each load lasts.
    #[arg(long, default_value_t = 2000, value_name = "MILLISECONDS")]
    millis: u32,
    /// Only these libraries, separated by commas, or `protections`: the cost of a fenced write.
    #[arg(long, value_name = "NAME", value_delimiter = ',')]
    only: Vec<String>,
}

#[derive(Args)]
pub(crate) struct PageOptions {
    /// The output of `bench peers`. The page `bench.md` and its pictures are written beside it.
    document: PathBuf,
}

/// The word for the protections in place of the name of a library.
const PROTECTIONS: &str = "protections";

/// Measures all libraries that this machine can build, and the protections of a write. Prints one
/// JSON document.
pub(crate) fn measure(options: &Options) -> Result<bool, BoxError> {
    let (protections, libraries): (Vec<_>, Vec<_>) = options
        .only
        .iter()
        .cloned()
        .partition(|name| name == PROTECTIONS);
    let wanted = if protections.is_empty() || !libraries.is_empty() {
        libraries::choose(&libraries)?
    } else {
        Vec::new()
    };
    let runtime = tokio::runtime::Runtime::new()?;
    let mut document = runtime.block_on(measured(&wanted, options))?;
    if options.only.is_empty() || !protections.is_empty() {
        match cost::measure() {
            Ok(costs) => document.protections = costs,
            Err(error) => document.lacks(PROTECTIONS, &*error),
        }
    }
    println!("{}", serde_json::to_string_pretty(&document)?);
    Ok(document.missing.is_empty())
}

/// Writes the page and the pictures of such a document.
pub(crate) fn write_page(options: &PageOptions) -> Result<bool, BoxError> {
    let document = serde_json::from_str(&std::fs::read_to_string(&options.document)?)?;
    for (name, text) in page::files(&document)? {
        std::fs::write(options.document.with_file_name(name), text)?;
    }
    Ok(true)
}

async fn measured(wanted: &[&'static Library], options: &Options) -> Result<Document, BoxError> {
    let toolchains = Toolchains::prepare(wanted);
    let mut document = Document::new(&toolchains)?;
    let servers = Servers::start().await?;
    let mut rows = Vec::new();
    for library in wanted.iter().filter(|library| toolchains.has(library)) {
        rows.push((*library, Row::of(library)?));
    }
    let span = Duration::from_millis(options.millis.into());
    for round in 1..=options.rounds {
        for load in [CYCLE, THROUGHPUT, CONTEST] {
            for (library, row) in &mut rows {
                eprintln!(
                    "[{round}/{}] {}: {}",
                    options.rounds, load.name, library.name
                );
                let command = toolchains.command(library);
                let url = servers.url(library.service);
                match load::run(command, load, span, &url).await {
                    Ok(sample) => row.add(load, sample),
                    Err(error) => document.fails(library, load.name, &*error),
                }
            }
        }
    }
    for (library, row) in &mut rows {
        eprintln!("[pause] {}", library.name);
        let url = servers.url(library.service);
        match pause::late_write(&toolchains, library, &url).await {
            Ok(write) => row.late_write = Some(write),
            Err(error) => document.fails(library, "pause", &*error),
        }
    }
    document.rows = rows.into_iter().map(|(_, row)| row).collect();
    Ok(document)
}
