//! What several programs cost together.

use steno_testkit::bench_programs::Cost;

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
