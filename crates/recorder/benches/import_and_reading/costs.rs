//! Rows made of what programs cost.

use steno_testkit::bench_programs::Cost;
use steno_testkit::bench_report::{Row, median, rounded};

/// Makes a row of CPU seconds, with the wall-clock time beside it.
pub(crate) fn cpu_row(name: impl Into<String>, costs: &[Cost]) -> Row {
    let trials: Vec<f64> = costs.iter().map(|cost| rounded(cost.cpu_s)).collect();
    Row::new(name, median_of(costs, |cost| cost.cpu_s), "s")
        .with("wall_s", rounded(median_of(costs, |cost| cost.wall_s)))
        .with("trials", trials)
}

/// Makes a row of the ratios of pairs that were measured one after the other.
pub(crate) fn ratio_row(
    name: impl Into<String>,
    ours: &[Cost],
    theirs: &[Cost],
    what: impl Fn(&Cost) -> f64,
) -> Row {
    let ratios: Vec<f64> = ours.iter().zip(theirs).map(|(ours, theirs)| what(ours) / what(theirs)).collect();
    let trials: Vec<f64> = ratios.iter().copied().map(rounded).collect();
    Row::new(name, median(&ratios), "ratio").with("trials", trials)
}

/// Returns the median of one figure.
pub(crate) fn median_of(costs: &[Cost], what: impl Fn(&Cost) -> f64) -> f64 {
    median(&costs.iter().map(what).collect::<Vec<f64>>())
}

/// Returns the most memory of all rounds.
pub(crate) fn peak_mb(costs: &[Cost]) -> f64 {
    costs.iter().map(|cost| cost.peak_mb).fold(0.0, f64::max)
}

/// Adds up what two programs cost that ran one after the other.
pub(crate) fn both(first: &Cost, second: &Cost) -> Cost {
    Cost {
        cpu_s: first.cpu_s + second.cpu_s,
        wall_s: first.wall_s + second.wall_s,
        first_s: first.first_s,
        peak_mb: first.peak_mb.max(second.peak_mb),
        output: String::new(),
    }
}
