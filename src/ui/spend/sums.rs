//! The first lines of the Spend view: which days, what they come to, how that is known, and what one should
//! know besides.

use jiff::tz::TimeZone;
use providers::money::Currency;
use ratatui::layout::Rect;

use super::{account_name, amount, evidence, money, sign, today};
use crate::app::notes::Note;
use crate::app::spend::Spent;
use crate::rules::spend::{Evidence, Exact, Fx, Period, Sums};
use crate::ui::format;
use crate::ui::paint::{Paint, Run, Runs, dim, plain, run, runs_width};
use crate::ui::scene::Scene;
use crate::ui::text::{Phrase, Word};
use crate::ui::theme::Role;

/// Blanks between two parts.
const GAP: u16 = 3;

pub fn paint(paint: &mut Paint, scene: &Scene, area: Rect) {
    let width = area.width.saturating_sub(2);
    let mut rows: Vec<Runs> = Vec::new();
    for block in blocks(scene) {
        rows.extend(flow(block, width));
    }
    let more = rows.len() > usize::from(area.height);
    rows.truncate(usize::from(area.height));
    for (row, runs) in rows.iter().enumerate() {
        let y = area.y + row as u16;
        let last = more && row + 1 == usize::from(area.height);
        let room = if last { width.saturating_sub(GAP) } else { width };
        let end = paint.runs(area.x + 1, y, room, runs);
        if last {
            paint.text(end + 1, y, 2, scene.look.glyphs.ellipsis, Role::Dim);
        }
    }
}

/// Parts one after the other, on as many lines as they need.
fn flow(parts: Vec<Runs>, width: u16) -> Vec<Runs> {
    let mut rows: Vec<Runs> = Vec::new();
    for part in parts {
        match rows.last_mut() {
            Some(row) if runs_width(row) + GAP + runs_width(&part) <= width => {
                row.push(plain(" ".repeat(usize::from(GAP))));
                row.extend(part);
            }
            _ => rows.push(part),
        }
    }
    rows
}

/// Each begins on a line of its own: a currency, and what one should know.
fn blocks(scene: &Scene) -> Vec<Vec<Runs>> {
    let view = &scene.state.view.spend;
    let Some(shown) = &view.shown else {
        return vec![vec![period(scene, view.period(today(scene)))]];
    };
    let mut first = vec![period(scene, shown.period)];
    if view.is_waiting(&scene.state.world, scene.now) {
        first.push(vec![dim(scene.look.language.word(Word::ReadingBooks))]);
    }
    let mut currencies = shown.currencies(scene.currency()).into_iter();
    if let Some(currency) = currencies.next() {
        first.extend(currency_parts(scene, currency, &shown.total));
    }
    // What says how far to trust the total stands beside it.
    let (of_total, notes): (Vec<&Note>, Vec<&Note>) =
        shown.notes.iter().partition(|note| matches!(note, Note::Unfinished | Note::Estimate));
    first.extend(of_total.into_iter().map(|note| vec![self::note(scene, note)]));
    let mut blocks = vec![first];
    blocks.extend(currencies.map(|currency| currency_parts(scene, currency, &shown.total)));
    let joined = joined(scene, shown).into_iter();
    blocks.push(joined.chain(notes.into_iter().map(|note| vec![self::note(scene, note)])).collect());
    blocks
}

/// The days and their zone.
fn period(scene: &Scene, period: Period) -> Runs {
    let days = format::period(period, today(scene), scene.look.language);
    vec![run(days, Role::Strong), dim(format!(" ({})", zone_name(&scene.state.world.spending.zone)))]
}

fn zone_name(zone: &TimeZone) -> String {
    zone.iana_name().map_or_else(|| "UTC".to_owned(), str::to_owned)
}

fn currency_parts(scene: &Scene, currency: Currency, total: &Sums) -> Vec<Runs> {
    let language = scene.look.language;
    let amounts = total.of(currency);
    let about = if amounts.assumed.is_zero() { "" } else { "~" };
    let mut parts = vec![vec![run(format!("{about}{}", money(scene, amounts.total(), currency)), Role::Strong)]];
    let of = [
        (Evidence::Billed, amounts.billed),
        (Evidence::Observed, amounts.observed),
        (Evidence::Inferred, amounts.inferred),
        (Evidence::Assumed, amounts.assumed),
    ];
    for (how, part) in of.into_iter().filter(|(_, part)| !part.is_zero()) {
        parts.push(vec![
            dim(format!("{} {} ", sign(scene, how), language.word(evidence(how)))),
            plain(amount(scene, part, currency)),
        ]);
    }
    if !amounts.wasted.is_zero() {
        let text = format!("{} {}", language.word(Word::Waste), money(scene, amounts.wasted, currency));
        parts.push(vec![run(text, Role::Waste)]);
    }
    parts
}

/// All currencies in one, by the user's rates, where there is something to join.
fn joined(scene: &Scene, shown: &Spent) -> Option<Runs> {
    let exchange = &scene.state.view.fixed.exchange;
    let amounts = shown.total.0.iter().map(|(currency, amounts)| (*currency, amounts.total().amount()));
    let joined = exchange.join(amounts)?;
    let language = scene.look.language;
    let mut text = format::spent_money(joined.amount, exchange.into, scene.look.glyphs);
    for (currency, apart) in &joined.apart {
        text.push_str(&format!(" + {}", format::spent_money(*apart, *currency, scene.look.glyphs)));
    }
    let rates: Vec<String> = joined.by.iter().map(|(currency, fx)| rate(scene, *currency, *fx)).collect();
    let rates = rates.join(language.word(Word::ListComma));
    Some(vec![plain(language.phrase(&Phrase::InAll { money: &text })), dim(format!(" ({rates})"))])
}

/// `¥1 = $0.1389, 29 Nov`.
fn rate(scene: &Scene, currency: Currency, fx: Fx) -> String {
    let glyphs = scene.look.glyphs;
    let date = format::day(fx.as_of, today(scene), scene.look.language);
    let (one, dollar) = (format::symbol(currency, glyphs), format::symbol(Currency::USD, glyphs));
    format!("{one}1 = {dollar}{}, {date}", fx.usd.round_dp(4).normalize())
}

/// What one should know about a total, in words.
pub fn note(scene: &Scene, note: &Note) -> Run {
    let language = scene.look.language;
    let size = |amount: &Exact, currency: &Currency| {
        let positive = if *amount < Exact::ZERO { -*amount } else { *amount };
        money(scene, positive, *currency)
    };
    match note {
        Note::Unfinished => run(language.word(Word::StillAdding), Role::Accent),
        Note::Estimate => plain(language.word(Word::AnEstimate)),
        Note::Since { account, date } => {
            let date = format::day(*date, today(scene), language);
            let account = account.as_ref().map(|account| account_name(scene, account));
            dim(language.phrase(&Phrase::CountedSince { account: account.as_deref(), date: &date }))
        }
        Note::Possible { currency, amount } => {
            plain(language.phrase(&Phrase::MoreMayBeCharged { money: &size(amount, currency) }))
        }
        Note::Prepaid { currency, amount, unused } => {
            let unused = (!unused.is_zero()).then(|| size(unused, currency));
            let phrase = Phrase::PrepaidAmount { money: &size(amount, currency), unused: unused.as_deref() };
            plain(language.phrase(&phrase))
        }
        Note::Drift { currency, billed, ours } => {
            let phrase = Phrase::Drift { billed: &size(billed, currency), ours: &size(ours, currency) };
            dim(language.phrase(&phrase))
        }
        Note::Unexplained { account, currency, amount } => {
            let account = account_name(scene, account);
            let less = *amount < Exact::ZERO;
            let text =
                language.phrase(&Phrase::Unexplained { account: &account, money: &size(amount, currency), less });
            run(text, if less { Role::Plain } else { Role::Waste })
        }
        Note::PaidIn { account, currency, amount } => {
            let account = account_name(scene, account);
            dim(language.phrase(&Phrase::PaidIn { account: &account, money: &size(amount, currency) }))
        }
        Note::Voucher { account, currency, amount } => {
            let account = account_name(scene, account);
            dim(language.phrase(&Phrase::VoucherBeside { account: &account, money: &size(amount, currency) }))
        }
    }
}
