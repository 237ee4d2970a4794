//! What is said of alerts, in each language: a sentence for everything that can be worth one.

use jiff::Timestamp;
use jiff::tz::TimeZone;
use providers::model::AccountName;
use providers::money::{Currency, Money, Rate};
use rust_decimal::Decimal;
use rust_decimal::prelude::ToPrimitive;

use super::{Language, Phrase};
use crate::rules::alerts::Matter;
use crate::rules::budgets::{Quantity, Unit};
use crate::rules::upkeep::month;
use crate::ui::format;
use crate::ui::glyphs::UNICODE;
use crate::ui::look::Look;
use crate::ui::theme::{Background, Colours, Theme};

/// So many names are told; of more, how many.
const NAMES: usize = 2;

/// What an alert says: of whom, what, and what goes first where there is little room.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Sentence {
    pub subject: String,
    pub says: String,
    /// Each with what joins it to what stands before.
    pub more: Vec<String>,
}

impl Sentence {
    pub(super) fn new(subject: impl Into<String>, says: impl Into<String>) -> Self {
        Sentence { subject: subject.into(), says: says.into(), more: Vec::new() }
    }

    pub(super) fn and(mut self, joint: &str, more: Option<String>) -> Self {
        self.more.extend(more.map(|more| format!("{joint}{more}")));
        self
    }

    /// All of it in one line.
    pub fn line(&self) -> String {
        [self.subject.as_str(), self.says.as_str()].into_iter().chain(self.more.iter().map(String::as_str)).collect()
    }
}

/// An alert in one line, times in a zone: for the command line and for channels, which tell no moment of their own.
pub fn alert_line(matter: &Matter, language: Language, zone: &TimeZone) -> String {
    let look = Look { theme: Theme::new(Colours::None, Background::Dark), glyphs: &UNICODE, language };
    let title = |account: &AccountName| account.to_string();
    Telling { look: &look, first: Currency::USD, zone, now: None, title: &title }.sentence(matter).line()
}

/// To whom and when it is told.
pub struct Telling<'a> {
    pub look: &'a Look,
    /// Told first among rates.
    pub first: Currency,
    pub zone: &'a TimeZone,
    /// Times are told from here; `None` tells moments alone.
    pub now: Option<Timestamp>,
    /// What an account is called.
    pub title: &'a dyn Fn(&AccountName) -> String,
}

impl Telling<'_> {
    pub fn sentence(&self, matter: &Matter) -> Sentence {
        match self.look.language {
            Language::English => self.english(matter),
            Language::Chinese => self.chinese(matter),
        }
    }

    pub(super) fn moment(&self, at: Timestamp) -> String {
        let language = self.look.language;
        match self.now {
            Some(now) => format::moment(at, now, self.zone, language),
            None => {
                let there = self.zone.to_datetime(at);
                let day = language.date(None, there.month(), there.day());
                format!("{day} {:02}:{:02}", there.hour(), there.minute())
            }
        }
    }

    /// How long something has been so.
    fn span(&self, since: Timestamp) -> Option<String> {
        Some(format::span(self.now?.duration_since(since), self.look.language))
    }

    pub(super) fn rates(&self, rates: &[Rate]) -> Option<String> {
        format::rates(rates, self.first, self.look)
    }

    pub(super) fn sums(&self, sums: &[Money]) -> Option<String> {
        let told: Vec<String> = sums.iter().map(|money| format::money(*money, self.look.glyphs)).collect();
        (!told.is_empty()).then(|| told.join(" + "))
    }

    /// A limit with its unit.
    fn whole(&self, limit: &Quantity) -> String {
        let digits = format::limit(limit.amount);
        match limit.unit {
            Unit::Money(currency) => format::with_sign(&digits, currency, self.look.glyphs),
            Unit::GpuHours => self.look.language.phrase(&Phrase::GpuHours { hours: &digits }),
        }
    }

    /// A part of a limit; the limit tells its unit where that is no sign.
    fn part(&self, part: &Quantity) -> String {
        let digits = format::brief(part.amount);
        match part.unit {
            Unit::Money(currency) => format::with_sign(&digits, currency, self.look.glyphs),
            Unit::GpuHours => digits,
        }
    }

    fn english(&self, matter: &Matter) -> Sentence {
        let lasting = |since: Timestamp| match self.span(since) {
            Some(span) => format!("for {span}"),
            None => format!("since {}", self.moment(since)),
        };
        match matter {
            Matter::Budget { name, spent, limit, crossed_at, forecast, closed, .. } => {
                let (of, whole) = (self.part(spent), self.whole(limit));
                let ended = closed.map(|to| self.moment(to));
                let says = match (percent(spent, limit), ended) {
                    (100.., None) => format!(" is used up: {of} of {whole}"),
                    (percent, None) => format!(" is at {percent} %: {of} of {whole}"),
                    (100.., Some(end)) => format!(" was used up in its term that ended {end}: {of} of {whole}"),
                    (percent, Some(end)) => format!(" was at {percent} % when its term ended {end}: {of} of {whole}"),
                };
                let pace = forecast.map(|forecast| self.pace("at this pace", &forecast, limit));
                let crossed = crossed_at.map(|at| format!("crossed {}", self.moment(at)));
                Sentence::new(format!("budget {name}"), says).and(", ", pace).and(", ", crossed)
            }
            Matter::Forecast { name, forecast, limit, reaches, .. } => {
                let (of, whole) = (self.part(forecast), self.whole(limit));
                let says = format!(" comes to {of} of {whole} at this pace ({} %)", percent(forecast, limit));
                let reached = reaches.map(|at| format!("limit reached {}", self.moment(at)));
                Sentence::new(format!("budget {name}"), says).and(", ", reached)
            }
            Matter::Burn { burn, limit } => {
                let rate = format::rate(*burn, self.look);
                Sentence::new(
                    "the fleet",
                    format!(" costs {rate}, over the limit of {}", format::rate(*limit, self.look)),
                )
            }
            Matter::Runway { account, ends_at, at_most, asleep, lost, stopped } => {
                let over = self.now.is_some_and(|now| *ends_at <= now);
                let when = match (over, at_most) {
                    (true, _) => format!("has been empty since {}", self.moment(*ends_at)),
                    (_, true) => format!("is empty by {} at the latest", self.moment(*ends_at)),
                    (_, false) => format!("is empty at {}", self.moment(*ends_at)),
                };
                let then = if over { "" } else { " then" };
                let what = match (lost.as_slice(), stopped) {
                    ([], 0) => String::new(),
                    ([], 1) => format!("; 1 instance stops{then}"),
                    ([], count) => format!("; {count} instances stop{then}"),
                    (names, _) => format!("; the data of {} is deleted{then}", english_names(names)),
                };
                let asleep = asleep.then(|| "nobody is awake".to_owned());
                Sentence::new((self.title)(account), format!(" {when}{what}")).and(", ", asleep)
            }
            Matter::Idle { name, since, rates, wasted, .. } => {
                let wasting = self.rates(rates).map(|rate| format!("wasting {rate}"));
                let so_far = self.sums(wasted).map(|money| format!("{money} so far"));
                Sentence::new(name, format!(" idle {}", lasting(*since))).and(", ", wasting).and(", ", so_far)
            }
            Matter::StoppedBilled { name, since, rates, .. } => {
                let says = format!(" stopped {} and billed all the same", lasting(*since));
                Sentence::new(name, says).and(", ", self.rates(rates))
            }
            Matter::Unattached { name, since, rates, .. } => {
                let says = format!(" used by nothing {}", lasting(*since));
                Sentence::new(name, says).and(", ", self.monthly(rates).map(|money| format!("{money} a month")))
            }
            Matter::NotDone { name, action, rates, .. } => {
                let verb = Language::English.action(*action);
                let says = match self.rates(rates) {
                    Some(rate) => format!(": {verb} took no effect, {rate} still billed"),
                    None => format!(": nobody knows whether {verb} took effect"),
                };
                Sentence::new(name, says)
            }
            Matter::Reclaimed { name, copied_at, .. } => {
                let copy = match copied_at {
                    Some(at) => format!("last verified copy of {}", self.moment(*at)),
                    None => "no verified copy of its data".to_owned(),
                };
                Sentence::new(name, " was taken back by its provider").and("; ", Some(copy))
            }
            Matter::Ending { name, at, deleted: true, .. } => {
                Sentence::new(name, format!(" is deleted by its provider at {}", self.moment(*at)))
            }
            Matter::Ending { name, at, .. } => Sentence::new(name, format!(": its term ends at {}", self.moment(*at))),
            Matter::Repriced { name, before, after, .. } => {
                let says = match self.rates(after) {
                    Some(rate) => format!(" costs {rate} now"),
                    None => " costs nothing now".to_owned(),
                };
                Sentence::new(name, says).and(", ", self.rates(before).map(|rate| format!("{rate} before")))
            }
            Matter::Appeared { name, rates, .. } => {
                Sentence::new(name, " has appeared: nobody here started it").and(", ", self.rates(rates))
            }
            Matter::Vanished { name, .. } => Sentence::new(name, " is gone, and nobody here ended it"),
            Matter::Account { account, why, since } => {
                Sentence::new((self.title)(account), format!(" in trouble {}: {why}", lasting(*since)))
            }
            Matter::Cards { name, rented, seen, why, .. } => {
                let says = match seen {
                    Some(seen) if seen < rented => format!(" shows {seen} of {rented} GPUs"),
                    Some(_) if why.is_none() => " has smaller GPUs than are rented".to_owned(),
                    _ => ": a GPU is faulty".to_owned(),
                };
                Sentence::new(name, says).and(": ", why.clone())
            }
            Matter::HostKey { name, .. } => {
                Sentence::new(name, " has another host key than before").and("; ", Some("nothing is sent to it".into()))
            }
            Matter::CopyOverdue { name, copied_at, every, why, .. } => {
                let says = match copied_at.map(|at| (self.moment(at), self.span(at))) {
                    Some((_, Some(span))) => format!(": last verified copy {span} ago"),
                    Some((moment, None)) => format!(": last verified copy of {moment}"),
                    None => " has no verified copy".to_owned(),
                };
                let due = format!("due every {}", format::span(*every, Language::English));
                let why = why.as_ref().map(|trouble| Language::English.save_trouble(trouble));
                Sentence::new(name, says).and(", ", Some(due)).and("; ", why)
            }
            Matter::Unexplained { account, amount, since } => {
                let money = format::money(*amount, self.look.glyphs);
                let says = format!(" lost {money} more than was charged since {}", self.moment(*since));
                Sentence::new((self.title)(account), says)
            }
            Matter::Lease { name, what, why, since, cost, .. } => self.of_lease(name, *what, why, *since, cost),
            Matter::Channel { name, why, .. } => {
                Sentence::new(format!("channel {name}"), format!(" does not work: {why}"))
            }
            Matter::Guard { name, guard, cause, warning, .. } => self.guard(name, guard, cause, warning),
            Matter::Unable { name, why, .. } => self.unable(name, why),
        }
    }

    fn chinese(&self, matter: &Matter) -> Sentence {
        let lasting = |since: Timestamp, state: &str| match self.span(since) {
            Some(span) => format!("已{state} {span}"),
            None => format!("自 {} 起{state}", self.moment(since)),
        };
        match matter {
            Matter::Budget { name, spent, limit, crossed_at, forecast, closed, .. } => {
                let (of, whole) = (self.part(spent), self.whole(limit));
                let ended = closed.map(|to| self.moment(to));
                let says = match (percent(spent, limit), ended) {
                    (100.., None) => format!(" 已用完：已用 {of}，限额 {whole}"),
                    (percent, None) => format!(" 已用 {percent} %：{of} / {whole}"),
                    (100.., Some(end)) => format!(" 在 {end} 结束的周期内已用完：已用 {of}，限额 {whole}"),
                    (percent, Some(end)) => format!(" 在 {end} 周期结束时已用 {percent} %：{of} / {whole}"),
                };
                let pace = forecast.map(|forecast| self.pace("照此速度将达", &forecast, limit));
                let crossed = crossed_at.map(|at| format!("{} 越线", self.moment(at)));
                Sentence::new(format!("预算 {name}"), says).and("，", pace).and("，", crossed)
            }
            Matter::Forecast { name, forecast, limit, reaches, .. } => {
                let (of, whole) = (self.part(forecast), self.whole(limit));
                let says = format!(" 照此速度将达 {of}，为限额 {whole} 的 {} %", percent(forecast, limit));
                let reached = reaches.map(|at| format!("{} 到限额", self.moment(at)));
                Sentence::new(format!("预算 {name}"), says).and("，", reached)
            }
            Matter::Burn { burn, limit } => {
                let (rate, limit) = (format::rate(*burn, self.look), format::rate(*limit, self.look));
                Sentence::new("全部实例", format!("共 {rate}，超过上限 {limit}"))
            }
            Matter::Runway { account, ends_at, at_most, asleep, lost, stopped } => {
                let over = self.now.is_some_and(|now| *ends_at <= now);
                let at = self.moment(*ends_at);
                let when = match (over, at_most) {
                    (true, _) => format!("余额已于 {at} 用完"),
                    (_, true) => format!("余额最迟 {at} 用完"),
                    (_, false) => format!("余额 {at} 用完"),
                };
                let then = if over { "" } else { "届时" };
                let what = match (lost.as_slice(), stopped) {
                    ([], 0) => String::new(),
                    ([], count) => format!("；{then} {count} 个实例停机"),
                    (names, _) => format!("；{then}将删除 {}的数据", chinese_names(names)),
                };
                let asleep = asleep.then(|| "且无人值守".to_owned());
                Sentence::new((self.title)(account), format!(" {when}{what}")).and("，", asleep)
            }
            Matter::Idle { name, since, rates, wasted, .. } => {
                let wasting = self.rates(rates).map(|rate| format!("浪费 {rate}"));
                let so_far = self.sums(wasted).map(|money| format!("至今 {money}"));
                Sentence::new(name, format!(" {}", lasting(*since, "空闲"))).and("，", wasting).and("，", so_far)
            }
            Matter::StoppedBilled { name, since, rates, .. } => {
                Sentence::new(name, format!(" {}，仍在计费", lasting(*since, "停机"))).and(" ", self.rates(rates))
            }
            Matter::Unattached { name, since, rates, .. } => {
                let money = self.monthly(rates).map(|money| format!("每月 {money}"));
                Sentence::new(name, format!(" {}", lasting(*since, "无人使用"))).and("，", money)
            }
            Matter::NotDone { name, action, rates, .. } => {
                let verb = Language::Chinese.action(*action);
                let says = match self.rates(rates) {
                    Some(rate) => format!("：{verb}未生效，仍在计费 {rate}"),
                    None => format!("：{verb}是否生效不明"),
                };
                Sentence::new(name, says)
            }
            Matter::Reclaimed { name, copied_at, .. } => {
                let copy = match copied_at {
                    Some(at) => format!("最近一次验证过的副本：{}", self.moment(*at)),
                    None => "数据没有验证过的副本".to_owned(),
                };
                Sentence::new(name, " 已被平台收回").and("；", Some(copy))
            }
            Matter::Ending { name, at, deleted: true, .. } => {
                Sentence::new(name, format!(" 将于 {} 被平台删除", self.moment(*at)))
            }
            Matter::Ending { name, at, .. } => Sentence::new(name, format!(" 将于 {} 到期", self.moment(*at))),
            Matter::Repriced { name, before, after, .. } => {
                let says = match self.rates(after) {
                    Some(rate) => format!(" 现价 {rate}"),
                    None => " 现已免费".to_owned(),
                };
                Sentence::new(name, says).and("，", self.rates(before).map(|rate| format!("原价 {rate}")))
            }
            Matter::Appeared { name, rates, .. } => {
                Sentence::new(name, " 新出现：不是从这里启动的").and("，", self.rates(rates))
            }
            Matter::Vanished { name, .. } => Sentence::new(name, " 已消失，且不是从这里结束的"),
            Matter::Account { account, why, since } => {
                Sentence::new((self.title)(account), format!(" {}：{why}", lasting(*since, "异常")))
            }
            Matter::Cards { name, rented, seen, why, .. } => {
                let says = match seen {
                    Some(seen) if seen < rented => format!(" 只见 {seen} 张 GPU，应有 {rented} 张"),
                    Some(_) if why.is_none() => " 的 GPU 显存小于所租规格".to_owned(),
                    _ => " 有 GPU 故障".to_owned(),
                };
                Sentence::new(name, says).and("：", why.clone())
            }
            Matter::HostKey { name, .. } => {
                Sentence::new(name, " 的主机密钥变了").and("；", Some("不再向它发送任何内容".into()))
            }
            Matter::CopyOverdue { name, copied_at, every, why, .. } => {
                let says = match copied_at.map(|at| (self.moment(at), self.span(at))) {
                    Some((_, Some(span))) => format!("：最近一次验证过的副本在 {span}前"),
                    Some((moment, None)) => format!("：最近一次验证过的副本是 {moment} 的"),
                    None => " 还没有验证过的副本".to_owned(),
                };
                let due = format!("应每 {}一份", format::span(*every, Language::Chinese));
                let why = why.as_ref().map(|trouble| Language::Chinese.save_trouble(trouble));
                Sentence::new(name, says).and("，", Some(due)).and("；", why)
            }
            Matter::Unexplained { account, amount, since } => {
                let money = format::money(*amount, self.look.glyphs);
                let says = format!(" 自 {} 起比已知费用多扣 {money}", self.moment(*since));
                Sentence::new((self.title)(account), says)
            }
            Matter::Lease { name, what, why, since, cost, .. } => self.of_lease(name, *what, why, *since, cost),
            Matter::Channel { name, why, .. } => Sentence::new(format!("通知渠道 {name}"), format!(" 发送失败：{why}")),
            Matter::Guard { name, guard, cause, warning, .. } => self.guard(name, guard, cause, warning),
            Matter::Unable { name, why, .. } => self.unable(name, why),
        }
    }

    fn monthly(&self, rates: &[Rate]) -> Option<String> {
        let sums: Vec<Money> = rates.iter().filter(|rate| !rate.is_zero()).map(|rate| month(*rate)).collect();
        self.sums(&sums)
    }

    fn pace(&self, words: &str, forecast: &Quantity, limit: &Quantity) -> String {
        let (part, percent) = (self.part(forecast), percent(forecast, limit));
        match self.look.language {
            Language::English => format!("{words} {part} ({percent} %)"),
            Language::Chinese => format!("{words} {part}（{percent} %）"),
        }
    }
}

/// What part of a limit it is, in percent, rounded down: a line is crossed when it is reached.
fn percent(part: &Quantity, limit: &Quantity) -> u64 {
    percent_of(part.amount, limit.amount).unwrap_or_default()
}

/// The same of plain amounts; `None` without a limit.
pub fn percent_of(part: Decimal, limit: Decimal) -> Option<u64> {
    part.max(Decimal::ZERO).checked_mul(Decimal::ONE_HUNDRED)?.checked_div(limit)?.to_u64()
}

fn english_names(names: &[String]) -> String {
    let told = names.iter().take(NAMES).cloned().collect::<Vec<_>>().join(", ");
    match names.len().saturating_sub(NAMES) {
        0 => told,
        more => format!("{told} and {more} more"),
    }
}

fn chinese_names(names: &[String]) -> String {
    let told = names.iter().take(NAMES).cloned().collect::<Vec<_>>().join("、");
    match names.len().saturating_sub(NAMES) {
        0 => format!("{told} "),
        _ => format!("{told} 等 {} 项", names.len()),
    }
}
