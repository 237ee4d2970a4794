//! `rentop providers`: what each provider can and cannot do.

use serde::Serialize;

use super::table::{Table, print_json};
use super::{Exit, Output, Stop};

#[derive(Serialize)]
struct Listing {
    schema: &'static str,
    providers: Vec<Line>,
}

#[derive(Serialize)]
struct Line {
    provider: &'static str,
    title: &'static str,
    stop: bool,
    start: bool,
    restart: bool,
    release: bool,
    storage: bool,
    balance: bool,
    telemetry: bool,
    billed_history: bool,
    spot: bool,
    key_env: &'static [&'static str],
    key_page: &'static str,
}

pub fn run(output: Output) -> Result<Exit, Stop> {
    let providers = providers::PROVIDERS
        .iter()
        .map(|entry| {
            let can = entry.capabilities;
            Line {
                provider: entry.name,
                title: entry.title,
                stop: can.stop,
                start: can.start,
                restart: can.restart,
                release: can.release,
                storage: can.storage,
                balance: can.balance,
                telemetry: can.telemetry,
                billed_history: can.billed_history.is_some(),
                spot: can.spot,
                key_env: entry.key_env,
                key_page: entry.key_page,
            }
        })
        .collect();
    let listing = Listing { schema: "rentop.providers/1", providers };
    if output.json {
        print_json(&listing)?;
        return Ok(Exit::Done);
    }
    let mut table = Table::new(&[
        "PROVIDER", "TITLE", "STOP", "START", "RELEASE", "STORAGE", "BALANCE", "USAGE", "BILLED", "SPOT", "KEY",
    ]);
    let word = |can: bool| if can { "yes" } else { "no" }.to_owned();
    for line in &listing.providers {
        table.row(vec![
            line.provider.to_owned(),
            line.title.to_owned(),
            word(line.stop),
            word(line.start),
            word(line.release),
            word(line.storage),
            word(line.balance),
            word(line.telemetry),
            word(line.billed_history),
            word(line.spot),
            line.key_env.join(" "),
        ]);
    }
    table.print(output)?;
    Ok(Exit::Done)
}
