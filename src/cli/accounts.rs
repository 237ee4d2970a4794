//! `rentop accounts`: each account's reach, balance and number of instances.

use serde::Serialize;

use super::look::{look, told_trouble};
use super::ls::{AccountLine, account_line};
use super::setup::Setup;
use super::table::{Table, print_json};
use super::{Common, Exit, Output, Stop};

#[derive(Serialize)]
struct Listing {
    schema: &'static str,
    accounts: Vec<Line>,
}

#[derive(Serialize)]
struct Line {
    #[serde(flatten)]
    account: AccountLine,
    read_only: bool,
    instances: usize,
    storage: usize,
}

pub fn run(common: &Common, output: Output) -> Result<Exit, Stop> {
    let setup = Setup::read(common)?;
    setup.need_accounts()?;
    let (state, now) = look(&setup)?;
    let fleet = &state.world.fleet;
    let accounts = fleet
        .accounts
        .iter()
        .map(|account| Line {
            account: account_line(&state.world, account, now),
            read_only: account.read_only,
            instances: fleet.instances_of(&account.name).filter(|known| !known.is_gone()).count(),
            storage: fleet.storage_of(&account.name).filter(|known| !known.is_gone()).count(),
        })
        .collect();
    let listing = Listing { schema: "rentop.accounts/1", accounts };
    if output.json {
        print_json(&listing)?;
    } else {
        let mut table =
            Table::new(&["ACCOUNT", "PROVIDER", "STATE", " INSTANCES", " STORAGE", " BALANCE", " RUNWAY", "ACCESS"]);
        let or_dash = |text: Option<String>| text.unwrap_or_else(|| "—".to_owned());
        for line in &listing.accounts {
            let balance =
                line.account.balance.as_ref().map(|balance| format!("{} {}", balance.amount, balance.currency));
            table.row(vec![
                line.account.account.clone(),
                line.account.provider.clone(),
                line.account.freshness.to_owned(),
                line.instances.to_string(),
                line.storage.to_string(),
                or_dash(balance),
                or_dash(line.account.runway_hours.as_ref().map(|hours| format!("{hours} h"))),
                if line.read_only { "read-only" } else { "full" }.to_owned(),
            ]);
        }
        table.print(output)?;
    }
    Ok(told_trouble(&setup, &state))
}
