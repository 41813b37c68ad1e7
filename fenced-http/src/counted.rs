//! Refusals of the layer, as a metric.

use crate::ProblemType;

/// Makes the metric begin at zero for each problem with which a layer refuses. If a metric appeared
/// only with its first event, no alert would see the increase.
pub(crate) fn begin() {
    for problem in OF_THE_LAYER {
        count(problem, 0);
    }
}

pub(crate) fn refusal(problem: ProblemType) {
    count(problem, 1);
}

const OF_THE_LAYER: [ProblemType; 6] = [
    ProblemType::TOKEN_REQUIRED,
    ProblemType::TOKEN_MALFORMED,
    ProblemType::TOKEN_NOT_ACCEPTED,
    ProblemType::WRONG_RESOURCE,
    ProblemType::WRONG_ISSUER,
    ProblemType::TOKEN_IMPLAUSIBLE,
];

#[cfg(feature = "metrics")]
fn count(problem: ProblemType, times: u64) {
    use lock_core::backend::metric::EDGE_REFUSALS;

    EDGE_REFUSALS.describe();
    let status = problem.status().as_str().to_owned();
    let labels = [("status", status), ("problem", problem.slug().to_owned())];
    metrics::counter!(EDGE_REFUSALS.name, &labels).increment(times);
}

#[cfg(not(feature = "metrics"))]
const fn count(_: ProblemType, _: u64) {}
