//! `npu-smi info`: a table, two lines a chip, and one of the processes below it.

use providers::usage::{GpuProcess, GpuSample};

use super::cards::{Cards, Way, celsius, memory, mib, name, number, percent, program, watts};

pub(super) const ASCEND: Way =
    Way { word: "ascend", tool: "npu-smi", maker: Some("19e5"), asked: "info", read: |_, answer| read(answer) };

fn read(answer: &str) -> Cards {
    let mut cards = Cards::default();
    // NPU and chip of each card, as the table of processes names them.
    let mut places: Vec<(u32, u32)> = Vec::new();
    let mut above: Vec<&str> = Vec::new();
    for line in answer.lines().map(str::trim).filter(|line| line.starts_with('|')) {
        let cells: Vec<&str> = line.trim_matches('|').split('|').map(str::trim).collect();
        match cells.as_slice() {
            [_, bus, _] if is_bus_id(bus) => {
                if let Some((place, card)) = chip(&above, &cells, cards.gpus.len()) {
                    places.push(place);
                    cards.gpus.push(card);
                }
            }
            [place, "Process id", ..] if place.starts_with("NPU") => cards.processes = Some(Vec::new()),
            [place, pid, called, used] => {
                if let Some(processes) = &mut cards.processes {
                    processes.extend(process((place, pid, called, used), &places));
                }
            }
            _ => {}
        }
        above = cells;
    }
    cards
}

/// A chip's two lines: `NPU Name | Health | Power Temp Hugepages` and `Chip … | Bus-Id | AICore Memory [HBM]`.
fn chip(above: &[&str], below: &[&str], place: usize) -> Option<((u32, u32), GpuSample)> {
    let ([first, health, state], [second, bus, use_of]) = (above, below) else { return None };
    let (npu, called) = first.split_once(char::is_whitespace)?;
    let chip = second.split_whitespace().next()?;
    let state: Vec<&str> = state.split_whitespace().collect();
    let figures: Vec<Option<f64>> = use_of.split(['/', ' ']).filter(|cell| !cell.is_empty()).map(number).collect();
    let figure = |at: usize| figures.get(at).copied().flatten();
    // Where there is memory of the fast kind, it is the one that counts. Sizes are in MB of 1024 KB.
    let at = if figure(4).is_some_and(|total| total > 0.0) { 3 } else { 1 };
    let (memory_used_bytes, memory_total_bytes) = memory(mib(figure(at)), mib(figure(at + 1)));
    let utilization = percent(figure(0));
    let sick = match *health {
        "OK" => false,
        "Warning" => utilization.is_none(),
        _ => true,
    };
    let card = GpuSample {
        index: place as u32,
        key: name(bus),
        model: name(called),
        utilization,
        memory_used_bytes,
        memory_total_bytes,
        temperature_c: celsius(state.get(1).and_then(|cell| number(cell))),
        power_watts: watts(state.first().and_then(|cell| number(cell))),
        power_limit_watts: None,
        partitioned: false,
        fault: name(health).filter(|_| sick),
    };
    Some(((npu.parse().ok()?, chip.parse().ok()?), card))
}

fn process((place, pid, called, used): (&str, &str, &str, &str), places: &[(u32, u32)]) -> Option<GpuProcess> {
    let mut of = place.split_whitespace().map(str::parse);
    let of = (of.next()?.ok()?, of.next()?.ok()?);
    Some(GpuProcess {
        gpu: places.iter().position(|place| *place == of).map(|at| at as u32),
        pid: pid.parse().ok()?,
        name: program(called),
        memory_bytes: mib(number(used)),
    })
}

/// `0000:C1:00.0`
fn is_bus_id(cell: &str) -> bool {
    let digits = cell.chars().filter(char::is_ascii_hexdigit).count();
    cell.matches(':').count() == 2 && cell.matches('.').count() == 1 && digits + 3 == cell.chars().count() && digits > 4
}
