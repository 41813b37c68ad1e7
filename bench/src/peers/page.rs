//! The page of the site that shows a document.

use std::fmt::{self, Write};

use super::{
    document::{Document, Row},
    libraries::Service,
    pause::LateWrite,
    picture::{Bar, bars, number},
    protections,
};

const HEAD: &str = "\
# Bench

<!-- Written by `bench page`. Change bench/src/peers/page.rs instead. -->

You want to know what Palisade costs beside other ways. All rows are of one run on one machine,
where all programs and servers share the cores. So **the times are for comparing rows of one
table**, not for planning. CPU time per acquire and release is steadier than any latency. The last
column does not depend on the machine: a holder is stopped (SIGSTOP) past its lease, the next one
writes, and then the first one goes on and writes.

To repeat the run, with nothing else running:

```sh
cargo build --release -p bench -p e2e
cargo run --release -p bench -- peers > docs/bench.json
cargo run --release -p bench -- page docs/bench.json
```

It needs the servers that `scripts/test setup` installs. The libraries in other languages need Go,
Maven, Python and Node.js.

- *alone*: one task acquires and releases one lock. The number is the median time of both.
- *64 tasks*: each task has a lock of its own. The numbers are cycles per second, and the CPU time
  of client and server for each cycle.
- *contest*: 8 tasks want one lock and hold it for no time. The numbers are the median and the 99th
  percentile of the time from a release until another task has the lock, and the fairness (Jain's
  index: 1 if each task got it equally often, 0.13 if one task got it always).
- *late write*: the fate of the write of the stopped holder. Our write goes to a store with a
  guard. The others have no guard, so their writes go to a plain file.
";

const TAIL: &str = "\
## How to read it

- Libraries that poll do so every 2 ms here. Their default is 50 to 500 ms, and the contest would
  then measure their sleep. The many looks cost them CPU time that they do not use elsewhere.
- Leases last 10 s. All connections are on loopback, so the delay of a network is missing. A
  library that needs fewer round trips gains more over a network than it does here.
- `redisson-fenced` gives a token, and leaves the check to you. `etcd-go` could compare the
  revision of its key in a transaction, if the protected data is in etcd.
- `advisory-lock` and `for-update` have no lease. While the holder was stopped, no other client
  got the lock. Nothing was lost, and nothing went on.
- `bench redis`, `store`, `sql`, `consensus`, `http` and `gateway` print ratios with targets. They
  compare with a floor, the time of the same client for two empty scripts.
";

/// The files of the page: names and texts.
pub(super) fn files(document: &Document) -> Result<Vec<(&'static str, String)>, fmt::Error> {
    let on_redis = || of(document, Service::Redis);
    let picture = |title: &str, note: &str, parts: fn(&Row) -> Vec<f64>| {
        let bar = |row: &Row| Bar {
            label: row.library.clone(),
            parts: parts(row),
            is_ours: row.is_ours(),
        };
        bars(title, note, &on_redis().map(bar).collect::<Vec<_>>())
    };
    Ok(vec![
        ("bench.md", page(document)?),
        (
            "bench-throughput.svg",
            picture(
                "Cycles per second on Redis, 64 tasks with a lock each",
                "longer is better",
                |row| vec![row.throughput.per_second.get()],
            ),
        ),
        (
            "bench-cpu.svg",
            picture(
                "CPU time per acquire and release on Redis, 64 tasks, in microseconds",
                "shorter is better; client dark, server light",
                |row| {
                    let cost = &row.throughput;
                    vec![cost.client_cpu_us.get(), cost.server_cpu_us.get()]
                },
            ),
        ),
        (
            "bench-handoff.svg",
            picture(
                "From a release until the next task of 8 holds the lock, 99th percentile in us",
                "shorter is better",
                |row| vec![row.contest.p99_us.get()],
            ),
        ),
        (
            "bench-fence.svg",
            protections::picture(&document.protections),
        ),
    ])
}

fn of(document: &Document, service: Service) -> impl Iterator<Item = &Row> {
    document
        .rows
        .iter()
        .filter(move |row| row.service == service)
}

fn page(document: &Document) -> Result<String, fmt::Error> {
    let mut page = HEAD.to_owned();
    write!(
        page,
        "\nMeasured on {}: {}; {}.\n",
        document.measured_on,
        document.machine,
        document.servers.join("; ")
    )?;
    for missing in &document.missing {
        writeln!(page, "\nNot measured: {missing}.")?;
    }
    for service in [
        Service::Redis,
        Service::Postgres,
        Service::Etcd,
        Service::ZooKeeper,
    ] {
        table(
            &mut page,
            service,
            &of(document, service).collect::<Vec<_>>(),
        )?;
    }
    protections::section(&mut page, &document.protections)?;
    Ok(page + "\n" + TAIL)
}

fn table(page: &mut String, service: Service, rows: &[&Row]) -> fmt::Result {
    let name = match service {
        Service::Etcd => "etcd".to_owned(),
        other => format!("{other:?}"),
    };
    write!(page, "\n## {name}\n\n")?;
    if service == Service::Redis {
        page.push_str(
            "![Cycles per second](bench-throughput.svg)\n\n![CPU time](bench-cpu.svg)\n\n\
             ![Hand-off](bench-handoff.svg)\n\n",
        );
    }
    page.push_str(
        "| | alone, us | 64 tasks, /s | client CPU, us | server CPU, us | contest, us | p99, us | \
         fair | late write |\n|---|---:|---:|---:|---:|---:|---:|---:|---|\n",
    );
    for row in rows {
        let (load, contest) = (&row.throughput, &row.contest);
        let name = format!("{} {}", row.library, row.version);
        let name = if row.is_ours() {
            format!("**{name}**")
        } else {
            name
        };
        writeln!(
            page,
            "| {name} ({}) | {} | {} | {} | {} | {} | {} | {:.2} | {} |",
            language(row),
            number(row.cycle.median_us.get()),
            number(load.per_second.get()),
            number(load.client_cpu_us.get()),
            number(load.server_cpu_us.get()),
            number(contest.median_us.get()),
            number(contest.p99_us.get()),
            contest.fairness.get(),
            match row.late_write {
                Some(LateWrite::Refused) => "**refused**",
                Some(LateWrite::Stored) => "stored",
                Some(LateWrite::NobodyElse) => "stored; no other client got the lock",
                None => "",
            }
        )?;
    }
    Ok(())
}

fn language(row: &Row) -> String {
    serde_json::to_value(row.language)
        .ok()
        .and_then(|name| name.as_str().map(str::to_owned))
        .unwrap_or_default()
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Catches: a page or a picture that does not show the measurements.
    #[test]
    fn the_page_in_the_site_is_what_its_document_says() {
        let folder = concat!(env!("CARGO_MANIFEST_DIR"), "/../docs/");
        let read = |name: &str| std::fs::read_to_string(format!("{folder}{name}")).unwrap();
        let document = serde_json::from_str(&read("bench.json")).unwrap();
        for (name, text) in files(&document).unwrap() {
            assert_eq!(
                read(name),
                text,
                "{name} is old: run `bench page docs/bench.json`"
            );
        }
    }
}
