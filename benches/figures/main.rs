//! The figures that the program promises, measured and put beside their limits in one table.
//!
//!     cargo bench --bench figures                   all of them, in about nine minutes
//!     cargo bench --bench figures -- start frame    those whose name holds one of the words
//!
//! The limits count on a machine with two cores that has little else to do. Each line shows the median, the
//! 99th percentile and the worst of its samples; the one that is held against the limit stands beside it. A
//! limit that stands in brackets is no promise of its own: it is what keeps the others.
//!
//! `frame`, `spend-frame`, `keys` and `polls` run in this process, over a terminal that swallows everything. The others
//! start the real binary (built with the same settings) in a pseudo-terminal, or the real runtime, over
//! simulated providers that this process serves on loopback. `quiet` and `streams` read `/proc` and are for Linux.

#[path = "../../tests/support/mod.rs"]
mod support;

mod books;
mod measure;
mod program;
mod refresh;
mod rented;
mod screen;
mod streams;

use measure::Measured;

/// Measures some figures.
type Measure = fn() -> Vec<Measured>;

/// What can be asked for by name.
const FIGURES: [(&str, Measure); 10] = [
    ("start", program::start),
    ("frame", screen::frame),
    ("spend-frame", screen::spend_frame),
    ("keys", screen::keys),
    ("polls", screen::polls),
    ("hanging", program::hanging),
    ("quiet", program::quiet),
    ("refresh", refresh::refresh),
    ("year", books::year),
    ("streams", streams::streams),
];

fn main() {
    let args: Vec<String> = std::env::args().skip(1).collect();
    // Only `cargo bench` gives this; whoever runs all targets as tests is not to wait for figures.
    if !args.iter().any(|arg| arg == "--bench") {
        return println!("figures are measured by `cargo bench --bench figures`");
    }
    let wanted: Vec<&String> = args.iter().filter(|arg| !arg.starts_with('-')).collect();
    println!("{}", Measured::head());
    for (name, measure) in FIGURES {
        if wanted.is_empty() || wanted.iter().any(|word| name.contains(*word)) {
            measure().iter().for_each(|measured| println!("{measured}"));
        }
    }
}
