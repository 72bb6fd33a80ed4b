//! Works on a list in several threads, and takes the results in the order of the list.

use std::collections::HashMap;
use std::num::NonZero;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::sync::mpsc;
use std::thread::{available_parallelism, scope};

/// The most threads. More would wait for memory.
const THREADS_MAX: usize = 8;

/// Passes each item to `work`, in any order and several at a time, and the results to `take`, in order, until that
/// returns false.
pub(crate) fn in_order<I: Sync, R: Send>(
    items: &[I],
    work: impl Fn(&I) -> R + Sync,
    mut take: impl FnMut(R) -> bool,
) {
    let threads = available_parallelism().map_or(1, NonZero::get).min(THREADS_MAX).min(items.len());
    let (next, is_over) = (AtomicUsize::new(0), AtomicBool::new(false));
    let (sender, receiver) = mpsc::channel();
    scope(|scope| {
        for _ in 0..threads {
            let sender = sender.clone();
            let (next, is_over, work) = (&next, &is_over, &work);
            scope.spawn(move || {
                while !is_over.load(Ordering::Relaxed) {
                    let index = next.fetch_add(1, Ordering::Relaxed);
                    let Some(item) = items.get(index) else { return };
                    // The receiver is gone if no more results are wanted.
                    sender.send((index, work(item))).ok();
                }
            });
        }
        drop(sender);
        let mut waiting = HashMap::new();
        let mut taken = 0;
        for (index, result) in receiver {
            waiting.insert(index, result);
            while let Some(result) = waiting.remove(&taken) {
                taken += 1;
                if !take(result) {
                    is_over.store(true, Ordering::Relaxed);
                    return;
                }
            }
        }
    });
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn results_come_in_order_and_can_be_stopped() {
        let items: Vec<usize> = (0..1000).collect();
        let mut taken = Vec::new();
        in_order(
            &items,
            |item| item * 2,
            |result| {
                taken.push(result);
                true
            },
        );
        assert_eq!(taken, items.iter().map(|item| item * 2).collect::<Vec<_>>());
        let mut count = 0;
        in_order(
            &items,
            |item| *item,
            |result| {
                count += 1;
                result < 9
            },
        );
        assert_eq!(count, 10);
        in_order(&Vec::<usize>::new(), |item| *item, |_| unreachable!("there are no items"));
    }
}
