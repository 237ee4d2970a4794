//! The same words without a screen: a plan, an action's end and a farewell as lines of text.

use jiff::Timestamp;
use jiff::tz::TimeZone;
use providers::model::{Action, Phase};
use providers::money::{Burn, Currency, Money, Rate};

use super::deeds::places;
use super::format;
use super::look::Look;
use super::plan::is_doubtful;
use super::text::{OfSaving, Phrase, Word};
use crate::app::state::State;
use crate::app::update::morning;
use crate::rules::memory::Collector;
use crate::rules::plan::Plan;
use crate::rules::saga::Operation;
use crate::rules::upkeep::{Note, Standing, Sum, Upkeep};

/// What a plan comes to, for a person at a shell.
pub fn plan_lines(plan: &Plan, look: &Look, first: Currency, now: Timestamp) -> Vec<String> {
    let language = look.language;
    let mut lines = Vec::new();
    for target in &plan.targets {
        let title = language.phrase(&Phrase::PlanFor { action: plan.action, name: &target.name });
        let gpus = if target.gpus.is_empty() { String::new() } else { format!("  {}", target.gpus) };
        lines.push(format!("{title}  {}/{}{gpus}", target.identity.account, target.identity.id));
        let mut add = |word: Word, value: String| lines.push(format!("  {}: {value}", language.word(word)));
        let unknown = || language.word(Word::Unknown).to_owned();
        let nothing = || language.word(Word::Nothing).to_owned();
        let more = if target.rates_complete { "" } else { "+" };
        let after = target.left_behind.iter().flat_map(|(_, rates)| rates).chain(&target.after).copied();
        let after: Vec<Rate> = after.collect::<Burn>().rates().to_vec();
        let goes_on = format::rates(&after, first, look);
        if plan.action == Action::Start {
            add(Word::PlanCosts, goes_on.map_or_else(unknown, |rate| format!("{rate}{more}")));
        } else {
            let saves = match format::rates(&target.saves(), first, look) {
                Some(rate) => format!("{rate}{more}"),
                None if !target.rates_complete || is_doubtful(target) => unknown(),
                None => nothing(),
            };
            let ahead = if target.prepaid { format!("  {}", language.word(Word::PaidAhead)) } else { String::new() };
            add(Word::PlanSaves, saves + &ahead);
            let goes_on = match goes_on {
                Some(rate) if !target.effect.rates_after.complete => format!("{rate}+"),
                Some(rate) => rate,
                None if !target.effect.rates_after.complete => unknown(),
                None => nothing(),
            };
            add(Word::PlanGoesOn, goes_on);
        }
        if let Some(recipe) = &target.recipe {
            lines.push(format!("  {}", language.saved_first(recipe)));
        }
        let mut add = |word: Word, value: String| lines.push(format!("  {}: {value}", language.word(word)));
        for (name, rates) in &target.left_behind {
            let rate = format::rates(rates, first, look);
            add(Word::PlanGoesOn, language.phrase(&Phrase::LeftBehind { name, rate: rate.as_deref() }));
        }
        if !target.effect.kept.is_empty() {
            add(Word::PlanKeeps, places(language, &target.effect.kept));
        }
        if !target.effect.lost.is_empty() {
            add(Word::PlanDeletes, places(language, &target.effect.lost));
        }
        if let Some(recipe) = &target.recipe {
            add(Word::SavesPaths, language.of_saving(&OfSaving::Paths { recipe }));
        }
        for risk in &target.effect.risks {
            add(Word::PlanMind, language.risk(*risk).to_owned());
        }
        if matches!(target.phase, Phase::Unknown | Phase::Unreachable | Phase::Provisioning) {
            add(Word::PlanPhase, language.phase(target.phase).to_owned());
        }
        let as_of = target.as_of.map(|as_of| format::since(as_of, now, language));
        let as_of = as_of.map(|age| language.phrase(&Phrase::Ago { age: &age }));
        add(Word::PlanAsOf, as_of.unwrap_or_else(|| language.word(Word::OnlyRemembered).to_owned()));
    }
    lines
}

/// Where an action is, or how it ended, in one line.
pub fn operation_line(operation: &Operation, look: &Look, now: Timestamp) -> String {
    let language = look.language;
    let title = language.phrase(&Phrase::PlanFor { action: operation.action, name: &operation.target.name });
    format!("{title}: {}", language.phrase(&Phrase::Step { operation, now, undo: "" }))
}

/// What is to be typed to confirm, as a question.
pub fn type_to_confirm(expected: &str, look: &Look) -> String {
    let [before, after] = look.language.type_name();
    format!("{before}{expected}{after}:")
}

/// A note on something that costs without working, in a few words.
pub fn upkeep_note(note: &Note, look: &Look, zone: &TimeZone, now: Timestamp) -> String {
    let language = look.language;
    let word = |word| language.word(word).to_owned();
    let names = |names: &[String]| names.join(language.word(Word::ListComma));
    let moment = |at| format::moment(at, now, zone, language);
    match note {
        Note::MissingSince(at) => language.phrase(&Phrase::MissingSince { age: &format::since(*at, now, language) }),
        Note::AttachedToNothing => word(Word::AttachedToNothing),
        Note::AttachedToStopped(users) => language.phrase(&Phrase::AttachedToStopped { names: &names(users) }),
        Note::AttachedToUnlisted(users) => language.phrase(&Phrase::AttachedToUnlisted { names: &names(users) }),
        Note::UsedSomewhere => word(Word::UsedSomewhere),
        Note::UseUnknown => word(Word::UseUnknown),
        Note::MayBeUsedByOthers => word(Word::MayBeUsedByOthers),
        Note::ComputeBilled => word(Word::ComputeBilled),
        Note::CostsMoreWhileStopped => word(Word::CostsMoreWhileStopped),
        Note::AddressBilled => word(Word::AddressBilled),
        Note::PaidAhead(Some(until)) => language.phrase(&Phrase::ReservedTo { at: &moment(*until) }),
        Note::PaidAhead(None) => word(Word::PaidAhead),
        Note::EndsAt(at) => language.phrase(&Phrase::Ends { at: &moment(*at) }),
        Note::OwnerLabels(labels) => {
            let labels: Vec<String> = labels.iter().map(|(key, value)| format!("{key}={value}")).collect();
            names(&labels)
        }
        Note::Protected => word(Word::Protected),
        Note::NotMine => word(Word::NotMine),
    }
}

/// Amounts as one text, the main currency first and `+` at the end of a lower bound; `None` without any.
pub fn amounts(mut amounts: Vec<Money>, first: Currency, at_least: bool, look: &Look) -> Option<String> {
    amounts.sort_by_key(|money| money.currency != first);
    let parts: Vec<String> = amounts.into_iter().map(|money| format::money(money, look.glyphs)).collect();
    let more = if at_least { "+" } else { "" };
    (!parts.is_empty()).then(|| format!("{}{more}", parts.join(" + ")))
}

/// What all that costs without working comes to, and what of the storage works: a line for each sum.
pub fn upkeep_sums(upkeep: &Upkeep, look: &Look, first: Currency) -> Vec<String> {
    let language = look.language;
    let month = |sum: &Sum| {
        let at_least = sum.incomplete || sum.certain != sum.upper;
        let money = amounts(sum.monthly(), first, at_least, look);
        let mark = if sum.estimated { "~" } else { "" };
        money.map(|money| language.phrase(&Phrase::AMonth { money: &format!("{mark}{money}") }))
    };
    let sums = [
        (Word::Waste, Standing::Waste),
        (Word::OfStopped, Standing::WithStopped),
        (Word::PerhapsUsed, Standing::PerhapsUsed),
        (Word::PaidAhead, Standing::PaidAhead),
    ];
    let mut lines = Vec::new();
    for (word, sum) in sums.map(|(word, standing)| (word, upkeep.sum(standing))) {
        if sum.count > 0 {
            let month = month(sum).unwrap_or_else(|| language.word(Word::Unknown).to_owned());
            lines.push(format!("{}{}{month}", language.word(word), language.word(Word::Colon)));
        }
    }
    if upkeep.working.count > 0 {
        let (count, rate) = (upkeep.working.count, month(&upkeep.working));
        let items = language.phrase(&Phrase::StorageItems { count, rate: rate.as_deref() });
        lines.push(format!("{}{}{items}", language.word(Word::WorkingUnlisted), language.word(Word::Colon)));
    }
    lines
}

/// What goes on when the screen is left, what it will have cost by the morning, and whether anybody watches.
/// `None` when nothing goes on.
pub fn farewell(state: &State, look: &Look, now: Timestamp) -> Option<String> {
    let (world, fixed) = (&state.world, &state.view.fixed);
    let count = world.fleet.instances.values().filter(|known| !known.is_gone() && costs(known)).count();
    let rate = format::burn(&world.totals.burn, fixed.currency, look)?;
    let morning = morning(state, now);
    let hours = rust_decimal::Decimal::from(morning.duration_since(now).as_secs()) / rust_decimal::Decimal::from(3600);
    let by_then: Vec<String> = format::in_order(world.totals.burn.rates(), fixed.currency)
        .into_iter()
        .filter_map(|rate| rate.over_hours(hours))
        .map(|money| format::money(money, look.glyphs))
        .collect();
    let at = format::moment(morning, now, &fixed.zone, look.language);
    let alone = !matches!(world.collector, Some(Collector::Other { .. }));
    let phrase = Phrase::Farewell { count, rate: &rate, by_then: &by_then.join(" + "), at: &at, alone };
    Some(look.language.phrase(&phrase))
}

fn costs(known: &crate::rules::fleet::Known<providers::model::Instance>) -> bool {
    !known.rates().certain().is_zero()
}

#[cfg(test)]
mod tests {
    use providers::model::{Component, Effect, Offer, Rates};
    use rstest::rstest;

    use super::*;
    use crate::rules::plan::plan;
    use crate::ui::testing::{Story, instance, look, usd};
    use crate::ui::text::Language;

    fn release_of(row: providers::model::Instance) -> Vec<String> {
        let mut story = Story::over(&["runpod/team"]);
        story.poll("team", vec![row]);
        let world = &story.state.world;
        let targets: Vec<_> = world.fleet.instances.keys().cloned().collect();
        let under_way = world.busy(Action::Release);
        let basis = world.basis(&under_way, story.now);
        let plan = plan(basis, Action::Release, &targets);
        plan_lines(&plan, &look(Language::English), Currency::USD, story.now)
    }

    #[rstest]
    #[case(Note::MissingSince("2026-11-30T11:55:00Z".parse().unwrap()), "missing for 5 m", "已消失 5 分钟，待查")]
    #[case(Note::EndsAt("2026-11-30T23:00:00Z".parse().unwrap()), "ends 23:00", "23:00 到期")]
    #[case(Note::PaidAhead(None), "paid ahead", "已预付")]
    #[case(Note::PaidAhead(Some("2026-11-30T23:00:00Z".parse().unwrap())), "paid to 23:00", "包期至 23:00")]
    #[case(Note::AttachedToStopped(vec!["a".into(), "b".into()]), "attached to a, b, stopped", "挂载于已停的 a、b")]
    #[case(Note::OwnerLabels(vec![("owner".into(), "ann".into())]), "owner=ann", "owner=ann")]
    fn a_note_tells_its_figures(#[case] note: Note, #[case] english: &str, #[case] chinese: &str) {
        let now = "2026-11-30T12:00:00Z".parse().unwrap();
        for (language, expected) in [(Language::English, english), (Language::Chinese, chinese)] {
            assert_eq!(upkeep_note(&note, &look(language), &TimeZone::UTC, now), expected);
        }
    }

    /// A sum is a lower bound where a rate is not known, or is only perhaps charged; unknown is not nothing.
    #[test]
    fn sums_say_what_they_leave_open() {
        let rates = |hourly| Rates::known().with(Component::Storage, usd(hourly));
        let sum = |rates: &[Rates]| Sum {
            count: rates.len(),
            certain: rates.iter().flat_map(|rates| rates.certain().rates().to_vec()).collect(),
            upper: rates.iter().flat_map(|rates| rates.upper().rates().to_vec()).collect(),
            estimated: rates.iter().any(Rates::estimated),
            incomplete: rates.iter().any(|rates| !rates.complete),
        };
        let upkeep = Upkeep {
            waste: sum(&[rates("0.1"), rates("0.2").with_missing()]),
            with_stopped: sum(&[rates("0.1"), rates("0.1").doubtful()]),
            perhaps_used: sum(&[Rates::unknown()]),
            working: sum(&[Rates::known().with_estimate(Component::Storage, usd("1"))]),
            ..Upkeep::default()
        };
        let lines = upkeep_sums(&upkeep, &look(Language::English), Currency::USD);
        assert_eq!(
            lines,
            [
                "waste: $219.00+ a month",
                "storage of stopped instances: $73.00+ a month",
                "perhaps in use: not known",
                "in use and not listed: 1 storage item, ~$730.00 a month",
            ]
        );
        assert!(upkeep_sums(&Upkeep::default(), &look(Language::English), Currency::USD).is_empty());
    }

    /// "Saves nothing" is a statement; of a machine whose price is not known nobody can make it.
    #[test]
    fn what_is_not_known_is_not_called_nothing() {
        let mut row = instance("a1", "trainer", "A10", 1, usd("1"), usd("0.1"));
        row.rates = Rates::unknown();
        let lines = release_of(row);
        assert!(lines.contains(&"  saves: not known".to_owned()), "{lines:?}");
        assert!(lines.contains(&"  goes on: nothing".to_owned()), "{lines:?}");
    }

    #[test]
    fn a_part_that_is_not_known_leaves_the_sum_open() {
        let mut row = instance("a1", "trainer", "A10", 1, usd("1"), usd("0.1"));
        row.rates = Rates::known().with(Component::Compute, usd("1")).with_missing();
        row.offers.release = Offer::Yes(Effect { rates_after: Rates::known().with_missing(), ..Effect::default() });
        let lines = release_of(row);
        assert!(lines.contains(&"  saves: $1.00/h+".to_owned()), "{lines:?}");
        assert!(lines.contains(&"  goes on: not known".to_owned()), "{lines:?}");
    }
}
