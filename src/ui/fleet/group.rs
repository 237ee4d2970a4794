//! A line of the fleet that stands for a group: what it has in common, its sums, and the money of its account.

use providers::model::{AccountName, ProviderName, Rates};
use providers::money::Money;
use ratatui::layout::Rect;

use super::{Columns, rate_cell};
use crate::app::rows::GroupKey;
use crate::rules::fleet::Freshness;
use crate::rules::runway;
use crate::ui::paint::{Paint, Run, Runs, dim, plain, run, runs_width};
use crate::ui::scene::Scene;
use crate::ui::text::{Phrase, Word};
use crate::ui::theme::Role;
use crate::ui::{format, header};

/// After so long an unanswered question is worth a word.
const ASKING_LONG: i64 = 5;

/// Title, sums and money.
pub(super) fn paint_group(
    paint: &mut Paint,
    scene: &Scene,
    columns: &Columns,
    area: Rect,
    y: u16,
    key: &GroupKey,
    here: bool,
) {
    let (view, glyphs, language) = (&scene.state.view.fleet, scene.look.glyphs, scene.look.language);
    let folded = view.folded.contains(key);
    let fold = if folded { glyphs.folded } else { glyphs.open };
    paint.text(area.x + 2, y, 1, fold, if here { Role::Accent } else { Role::Dim });
    let sum = view.sums.get(key).cloned().unwrap_or_default();
    let mut title: Runs = vec![
        run(group_title(scene, key), if here { Role::Here } else { Role::Strong }),
        dim(format!("  {}", sum.rows)),
    ];
    match key {
        GroupKey::Account(account) => title.extend(freshness(scene, account)),
        _ => title.extend(oldest(scene, &sum.accounts)),
    }
    if folded && sum.attention > 0 {
        title.push(run(format!("   {} {}", glyphs.needs_you, sum.attention), Role::Urgent));
    }
    let first = scene.currency();
    let waste = format::burn(&sum.totals.waste, first, scene.look)
        .map(|rate| run(language.phrase(&Phrase::Wasting { rate: &rate }), Role::Waste));
    let room = if sum.rows > 0 { columns.rate.x } else { columns.saved_and_next().x }.saturating_sub(area.x + 4);
    let end = paint.runs(area.x + 4, y, room.saturating_sub(1), &title);
    if let Some(waste) = waste {
        // Only where it does not touch the title.
        let left = columns.rate.x.saturating_sub(end + 2);
        if format::width(&waste.text) < left {
            paint.runs_right(end + 2, y, left.saturating_sub(1), &[waste]);
        }
    }
    if sum.rows > 0 {
        let total = Rates {
            lines: sum
                .totals
                .upper
                .rates()
                .iter()
                .map(|rate| providers::model::RateLine {
                    component: providers::model::Component::Other,
                    rate: *rate,
                    estimated: sum.totals.estimated,
                    certain: sum.totals.burn.of(rate.currency) == *rate,
                })
                .collect(),
            complete: !sum.totals.incomplete,
        };
        rate_cell(paint, scene, columns.rate, y, &total, if here { Role::Here } else { Role::Strong });
    }
    let money = match key {
        GroupKey::Account(account) => account_money(scene, account),
        GroupKey::Provider(provider) => provider_money(scene, provider),
        GroupKey::Project(_) | GroupKey::Market(_) => Vec::new(),
    };
    let prepaid = format::burn(&sum.totals.prepaid, first, scene.look)
        .map(|rate| dim(language.phrase(&Phrase::Prepaid { rate: &rate })));
    let x = columns.saved_and_next().x;
    let cells = area.right().saturating_sub(x + 1);
    paint.runs(x, y, cells, &longest(prepaid, money, cells));
}

/// The first way to say it that has room, after what is prepaid where that has room too. Money is never cut: none
/// of it is shown where not even the shortest has room.
fn longest(prepaid: Option<Run>, ways: Vec<Runs>, cells: u16) -> Runs {
    let with = |way: &Runs| match &prepaid {
        Some(prepaid) if way.is_empty() => vec![prepaid.clone()],
        Some(prepaid) => [vec![prepaid.clone(), dim("   ")], way.clone()].concat(),
        None => way.clone(),
    };
    let fits = |runs: &Runs| runs_width(runs) <= cells;
    let found = ways.iter().map(with).find(fits).or_else(|| ways.iter().find(|way| fits(way)).cloned());
    found.or_else(|| Some(prepaid.into_iter().collect()).filter(fits)).unwrap_or_default()
}

/// What is left on an account and how long it lasts, in ever fewer cells.
fn account_money(scene: &Scene, name: &AccountName) -> Vec<Runs> {
    let left = balance(scene, name);
    let Some(account) = scene.account(name).filter(|_| !left.is_empty()) else { return Vec::new() };
    let bare = account.balance.as_ref().map(|balance| format::money(balance.value.cash, scene.look.glyphs));
    let bare: Runs = bare.into_iter().map(|money| run(money, left[0].role)).collect();
    let Some(runway) = runway::runway(&scene.state.world.fleet, account) else { return vec![left, bare] };
    let comma = dim(scene.look.language.word(Word::Comma));
    let briefly = |money: &Run| vec![money.clone(), comma.clone(), header::lasts_briefly(scene, &runway)];
    let full = [left.clone(), vec![dim("   "), header::lasts(scene, &runway)]].concat();
    vec![full, briefly(&left[0]), briefly(&bare[0]), bare]
}

/// What is left on all accounts of a provider; nothing where one of them does not tell.
fn provider_money(scene: &Scene, provider: &ProviderName) -> Vec<Runs> {
    let accounts = scene.state.world.fleet.accounts.iter().filter(|account| account.provider == *provider);
    let balances: Option<Vec<Money>> =
        accounts.map(|account| account.balance.as_ref().map(|balance| balance.value.cash)).collect();
    let Some(balances) = balances else { return Vec::new() };
    let mut sums: Vec<Money> = Vec::new();
    for cash in balances {
        match sums.iter_mut().find(|sum| sum.currency == cash.currency) {
            Some(sum) => sum.amount += cash.amount,
            None => sums.push(cash),
        }
    }
    let told: Vec<String> = sums.into_iter().map(|sum| format::money(sum, scene.look.glyphs)).collect();
    let told = told.join(" + ");
    if told.is_empty() {
        return Vec::new();
    }
    vec![vec![plain(scene.look.language.phrase(&Phrase::Left { money: &told }))], vec![plain(told)]]
}

/// How old the oldest figures of a group are, when some of them are not of now.
fn oldest(scene: &Scene, accounts: &[AccountName]) -> Runs {
    let stale = accounts.iter().filter(|name| scene.is_old(name));
    let oldest = stale.min_by_key(|name| scene.account(name).and_then(|account| account.as_of));
    oldest.map(|name| freshness(scene, name)).unwrap_or_default()
}

/// What a group has in common, in words.
pub fn group_title(scene: &Scene, key: &GroupKey) -> String {
    let language = scene.look.language;
    match key {
        GroupKey::Account(account) => scene.account_title(account),
        GroupKey::Provider(provider) => provider.to_string(),
        GroupKey::Project(Some(project)) => project.clone(),
        GroupKey::Project(None) => language.word(Word::NoProject).to_owned(),
        GroupKey::Market(market) => language.market(*market).to_owned(),
    }
}

/// How old an account's figures are, and what keeps them from being newer.
pub fn freshness(scene: &Scene, name: &AccountName) -> Runs {
    let language = scene.look.language;
    let Some(account) = scene.account(name) else { return Runs::new() };
    let mut runs = Runs::new();
    let age = account.as_of.map(|as_of| scene.since(as_of));
    let word = |freshness| language.freshness(freshness);
    let freshness = scene.freshness(name);
    let text = match (freshness, age) {
        (Freshness::Fresh, Some(age)) => (language.phrase(&Phrase::Ago { age: &age }), Role::Dim),
        (Freshness::Never, _) | (_, None) => (word(Freshness::Never).to_owned(), Role::Dim),
        (Freshness::Partial, Some(age)) => (format!("{} {age}", word(freshness)), Role::Plain),
        (Freshness::Stale, Some(age)) => (format!("{} {age}", word(freshness)), Role::Plain),
        (Freshness::Failed, Some(age)) => (format!("{} {age}", word(freshness)), Role::Urgent),
    };
    runs.push(run(format!("   {}", text.0), text.1));
    if let Some(asked) = account.pacing.in_flight
        && scene.now.duration_since(asked).as_secs() >= ASKING_LONG
    {
        runs.push(dim(format!("   {}", language.phrase(&Phrase::AskingFor { age: &scene.since(asked) }))));
    }
    if account.read_only {
        runs.push(run(format!("   {}", language.word(Word::ReadOnlyAccount)), Role::Accent));
    }
    runs
}

/// What is left on an account.
pub fn balance(scene: &Scene, name: &AccountName) -> Runs {
    let language = scene.look.language;
    let Some(balance) = scene.account(name).and_then(|account| account.balance.as_ref()) else { return Runs::new() };
    let cash = balance.value.cash;
    let role = if cash.amount.is_sign_negative() && !cash.amount.is_zero() { Role::Urgent } else { Role::Plain };
    let mut runs = vec![run(language.phrase(&Phrase::Left { money: &format::money(cash, scene.look.glyphs) }), role)];
    if let Some(voucher) = balance.value.voucher.filter(|voucher| !voucher.amount.is_zero()) {
        let text = language.phrase(&Phrase::Voucher { money: &format::money(voucher, scene.look.glyphs) });
        runs.push(dim(format!(" + {text}")));
    }
    let old = scene.now.duration_since(balance.as_of).as_secs() > 300;
    if old {
        let as_of = language.phrase(&Phrase::Old { age: &scene.since(balance.as_of) });
        runs.push(dim(format!("  {as_of}")));
    }
    runs
}
