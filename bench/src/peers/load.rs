//! One library under one load.

use std::{process::Command, time::Duration};

use super::program::{CpuTime, Program};
use crate::error::BoxError;

#[derive(Clone, Copy, PartialEq, Eq)]
pub(crate) struct Load {
    pub(super) name: &'static str,
    pub(super) tasks: u32,
    /// All tasks want the same lock.
    contest: bool,
}

/// One task, one lock.
pub(super) const CYCLE: Load = Load {
    name: "cycle",
    tasks: 1,
    contest: false,
};

/// Many tasks, each with a lock of its own.
pub(crate) const THROUGHPUT: Load = Load {
    name: "throughput",
    tasks: 64,
    contest: false,
};

/// Some tasks that want the same lock, and hold it for no time.
pub(super) const CONTEST: Load = Load {
    name: "contest",
    tasks: 8,
    contest: true,
};

/// The result of one run. A pass is an acquire with its release. In a contest only passes count in
/// which a task took the lock over from another task. Their times are from a release until the next
/// grant.
#[derive(Clone, Copy)]
pub(crate) struct Sample {
    pub(crate) per_second: f64,
    pub(super) median_us: f64,
    pub(super) p99_us: f64,
    pub(super) client_cpu_us: f64,
    pub(crate) server_cpu_us: f64,
    /// The fairness of the passes: 1 if each task has the same number of passes, 1 / tasks if one
    /// task has all of them. See Jain, Chiu, Hawe, "A quantitative measure of fairness", DEC
    /// TR-301, 1984.
    pub(super) fairness: f64,
}

pub(crate) async fn run(
    mut command: Command,
    load: Load,
    span: Duration,
    url: &str,
) -> Result<Sample, BoxError> {
    let name = if load.contest { "contest" } else { "cycle" };
    command
        .args([name, &load.tasks.to_string(), &span.as_millis().to_string()])
        .args([url, ""]);
    let (passes, cpu) = passes(command).await?;
    Ok(sample(load, span, passes, cpu))
}

struct Pass {
    task: usize,
    begin: u64,
    end: u64,
}

async fn passes(command: Command) -> Result<(Vec<Pass>, CpuTime), BoxError> {
    let mut program = Program::start(command)?;
    program.expect("ready").await?;
    let before = CpuTime::now(program.id()?)?;
    program.tell_to_go_on().await?;
    program.expect("done").await?;
    let cpu = CpuTime::now(program.id()?)?.since(before);
    let mut passes = Vec::new();
    while let Some(line) = program.line().await? {
        let numbers: Result<Vec<u64>, _> = line.split(' ').map(str::parse).collect();
        let [task, begin, end] = numbers?[..] else {
            return Err(format!("this is no pass: {line:?}").into());
        };
        let task = usize::try_from(task)?;
        passes.push(Pass { task, begin, end });
    }
    Ok((passes, cpu))
}

#[allow(
    clippy::cast_precision_loss,
    reason = "the numbers are far below 2^52, and these are statistics"
)]
fn sample(load: Load, span: Duration, mut passes: Vec<Pass>, cpu: CpuTime) -> Sample {
    passes.sort_unstable_by_key(|pass| pass.begin);
    let all = passes.len().max(1) as f64;
    let times: Vec<u64> = if load.contest {
        let next = passes
            .windows(2)
            .filter(|pair| pair[0].task != pair[1].task);
        next.map(|pair| pair[1].begin.saturating_sub(pair[0].end))
            .collect()
    } else {
        passes.iter().map(|pass| pass.end - pass.begin).collect()
    };
    let mut of_task = vec![0.0; load.tasks as usize];
    for pass in &passes {
        of_task[pass.task] += 1.0;
    }
    let (sum, squares) = of_task.iter().fold((0.0, 0.0), |(sum, squares), count| {
        (sum + count, squares + count * count)
    });
    Sample {
        per_second: times.len() as f64 / span.as_secs_f64(),
        median_us: quantile(&times, 50) as f64 / 1e3,
        p99_us: quantile(&times, 99) as f64 / 1e3,
        client_cpu_us: cpu.client.as_secs_f64() * 1e6 / all,
        server_cpu_us: cpu.servers.as_secs_f64() * 1e6 / all,
        fairness: sum * sum / (squares * of_task.len() as f64),
    }
}

/// The quantile in per cent. 0 if there are no times.
fn quantile(times: &[u64], percent: usize) -> u64 {
    let mut times = times.to_vec();
    times.sort_unstable();
    let last = times.len().saturating_sub(1);
    times.get(last * percent / 100).copied().unwrap_or_default()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn hand_offs_are_counted_between_tasks_only() {
        let pass = |task, at| Pass {
            task,
            begin: at,
            end: at + 10,
        };
        let none = CpuTime {
            client: Duration::ZERO,
            servers: Duration::ZERO,
        };
        let passes = vec![pass(1, 3_020), pass(0, 0), pass(0, 1_000), pass(1, 2_000)];
        let sample = sample(CONTEST, Duration::from_secs(1), passes, none);
        assert_eq!((sample.per_second, sample.median_us), (1.0, 0.99));
        // Two of eight tasks have all passes, in equal shares.
        assert_eq!(sample.fairness, 0.25);
    }
}
