//! `nvidia-smi`, and `ixsmi`, which is modelled on it: rows of cells, one a card, with or without units.

use providers::text::excerpt;
use providers::usage::{GpuProcess, GpuSample};

use super::cards::{Cards, Way, celsius, memory, mib, name, number, percent, program, watts};

pub(super) const NVIDIA: Way = Way {
    word: "nvidia",
    tool: "nvidia-smi",
    maker: Some("10de"),
    asked: "--query-gpu=index,uuid,name,utilization.gpu,memory.total,memory.used,temperature.gpu,power.draw,power.limit,\
            mig.mode.current --format=csv,noheader,nounits",
    read,
};

/// One field that it does not know fails the whole question, with exit 2: drivers of before 2020 have no MIG.
pub(super) const NVIDIA_OLD: Way = Way {
    word: "nvidia-old",
    tool: "nvidia-smi",
    maker: None,
    asked: "--query-gpu=index,uuid,name,utilization.gpu,memory.total,memory.used,temperature.gpu,power.draw,power.limit \
            --format=csv,noheader,nounits",
    read,
};

/// UNSURE: newer ones may know `uuid` and `power.draw`.
pub(super) const ILUVATAR: Way = Way {
    word: "iluvatar",
    tool: "ixsmi",
    maker: Some("1e3e"),
    asked: "--query-gpu=index,name,memory.total,memory.used,utilization.gpu,temperature.gpu --format=csv,noheader",
    read,
};

/// What stands in the cells of a card that is no longer there, or not as it should be.
const LOST: [&str; 3] = ["[GPU is lost]", "[GPU requires reset]", "[Reset Required]"];
/// The same, but some cards have it in a single cell all their life.
const SICK: &str = "[Unknown Error]";
/// How a line begins that names a card and says that it cannot be reached.
const UNREACHED: &str = "Unable to determine the device handle for GPU";

fn read(asked: &str, answer: &str) -> Cards {
    let fields = asked.split(' ').find_map(|word| word.strip_prefix("--query-gpu=")).unwrap_or_default();
    let fields: Vec<&str> = fields.split(',').collect();
    let mut cards = Cards::default();
    let mut unreached = Vec::new();
    for line in answer.lines() {
        cards.none |= line.starts_with("No devices were found");
        if line.starts_with(UNREACHED) {
            unreached.push(excerpt(line, 120));
        }
        cards.gpus.extend(row(&fields, line));
    }
    cards.none &= cards.gpus.is_empty();
    if let Some(last) = cards.gpus.last() {
        let behind = (last.index.saturating_add(1)..).zip(unreached);
        let lost: Vec<_> =
            behind.map(|(index, said)| GpuSample { index, fault: Some(said), ..GpuSample::default() }).collect();
        cards.gpus.extend(lost);
    }
    cards
}

/// A line that has as many cells as were asked for and begins with a number is a card; whatever else is printed
/// between them is none.
fn row(fields: &[&str], line: &str) -> Option<GpuSample> {
    let cells: Vec<&str> = line.split(',').map(str::trim).collect();
    let index = cells.first()?.parse().ok()?;
    if cells.len() != fields.len() {
        return None;
    }
    let cell = |field: &str| fields.iter().position(|name| *name == field).map_or("", |at| cells[at]);
    let figure = |field: &str| number(cell(field));
    let partitioned = cell("mig.mode.current") == "Enabled";
    let (memory_used_bytes, memory_total_bytes) = memory(mib(figure("memory.used")), mib(figure("memory.total")));
    let utilization = percent(figure("utilization.gpu")).filter(|_| !partitioned);
    let lost = cells.iter().find(|cell| LOST.contains(*cell));
    let silent = utilization.is_none() && memory_used_bytes.is_none();
    let fault = lost.or_else(|| cells.iter().find(|cell| silent && **cell == SICK));
    Some(GpuSample {
        index,
        key: name(cell("uuid")),
        model: name(cell("name")),
        utilization,
        memory_used_bytes,
        memory_total_bytes,
        temperature_c: celsius(figure("temperature.gpu")),
        power_watts: watts(figure("power.draw")),
        power_limit_watts: watts(figure("power.limit")).filter(|limit| *limit > 0.0),
        partitioned,
        fault: fault.map(|cell| cell.trim_matches(['[', ']']).to_owned()),
    })
}

/// The processes on the cards, each with the card's own id. Their names hold commas and are not quoted.
pub(super) fn processes(answer: &str) -> Vec<(String, GpuProcess)> {
    let process = |line: &str| {
        let (card, rest) = line.split_once(',')?;
        let (pid, rest) = rest.split_once(',')?;
        let (called, used) = rest.rsplit_once(',')?;
        let memory_bytes = mib(number(used));
        let process = GpuProcess { gpu: None, pid: pid.trim().parse().ok()?, name: program(called), memory_bytes };
        Some((name(card)?, process))
    };
    answer.lines().filter_map(process).collect()
}
