//! A budget as it is typed: its fields, what each may be, and what is wrong with one that cannot be read.

use std::collections::BTreeSet;

use jiff::civil::Date;
use jiff::tz::TimeZone;
use providers::model::{AccountName, ProviderName};
use providers::money::Currency;
use providers::text::clean;
use tui_input::Input;

use crate::rules::budgets::{Budget, BudgetDraft, Cycle, FORECAST, NoLimit, Scope, THRESHOLDS, limit};
use crate::rules::matcher::{Glob, LabelPattern};
use crate::rules::spend::Period;

/// The highest share of a limit that a line may lie at, in percent.
const HIGHEST_LINE: u32 = 1000;

/// The fields, in the order of the form.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Field {
    Name,
    Limit,
    Period,
    Scope,
    Thresholds,
    Forecast,
    Zone,
}

impl Field {
    pub const ALL: [Field; 7] =
        [Field::Name, Field::Limit, Field::Period, Field::Scope, Field::Thresholds, Field::Forecast, Field::Zone];
}

/// What is wrong with a field.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Mistake {
    NoName,
    NameTaken,
    NoLimit(NoLimit),
    NoPeriod,
    DatesReversed,
    NoScope,
    NoAccount(String),
    NoProvider(String),
    NoPercents,
    NoZone,
}

/// The form of a budget.
#[derive(Clone, Debug)]
pub struct BudgetForm {
    /// The budget that is changed; `None` for a new one.
    pub of: Option<String>,
    /// In the order of [`Field::ALL`].
    pub fields: [Input; Field::ALL.len()],
    /// The one that is written in.
    pub at: usize,
    pub mistakes: [Option<Mistake>; Field::ALL.len()],
    /// It is being written down.
    pub saving: bool,
    /// Why it could not be written down.
    pub refused: Option<String>,
}

impl BudgetForm {
    /// A new budget, as most are; or one that is changed.
    pub fn new(draft: Option<BudgetDraft>) -> Self {
        let of = draft.as_ref().map(|draft| draft.name.clone());
        let draft = draft.unwrap_or_else(|| BudgetDraft {
            period: "month".to_owned(),
            thresholds: THRESHOLDS.map(|percent| percent.to_string()).join(", "),
            forecast: FORECAST.to_string(),
            ..BudgetDraft::default()
        });
        let scope = [draft.scope_kind, draft.scope].join(" ").trim().to_owned();
        let fields = [draft.name, draft.limit, draft.period, scope, draft.thresholds, draft.forecast, draft.zone];
        let fields = fields.map(Input::new);
        BudgetForm { of, fields, at: 0, mistakes: Default::default(), saving: false, refused: None }
    }

    /// The text that is being typed; `None` while it is being written down.
    pub fn typing(&mut self) -> Option<&mut Input> {
        self.refused = None;
        self.mistakes[self.at] = None;
        (!self.saving).then(|| &mut self.fields[self.at])
    }
}

/// What the fields are checked against.
#[derive(Clone, Debug)]
pub struct Known<'a> {
    /// Names of the other budgets.
    pub names: BTreeSet<&'a str>,
    pub accounts: Vec<&'a AccountName>,
    /// The zone where none is given.
    pub zone: TimeZone,
    /// The currency of an amount that stands alone.
    pub currency: Currency,
}

/// The budget that the fields say, or what is wrong with each of them.
pub fn read(form: &BudgetForm, known: &Known<'_>) -> Result<Budget, [Option<Mistake>; Field::ALL.len()]> {
    let text = |field: Field| clean(form.fields[field as usize].value()).trim().to_owned();
    let name = name(&text(Field::Name), known);
    let limit = limit(&text(Field::Limit), Some(known.currency)).map_err(Mistake::NoLimit);
    let cycle = cycle(&text(Field::Period));
    let scope = scope(&text(Field::Scope), known);
    let thresholds = percents(&text(Field::Thresholds));
    let forecast = forecast(&text(Field::Forecast));
    let zone = zone(&text(Field::Zone), known);
    match (name, limit, cycle, scope, thresholds, forecast, zone) {
        (Ok(name), Ok(limit), Ok(cycle), Ok(scope), Ok(thresholds), Ok(forecast), Ok(zone)) => {
            Ok(Budget { name, scope, cycle, limit, zone, thresholds, forecast })
        }
        (name, limit, cycle, scope, thresholds, forecast, zone) => {
            Err([name.err(), limit.err(), cycle.err(), scope.err(), thresholds.err(), forecast.err(), zone.err()])
        }
    }
}

fn name(text: &str, known: &Known<'_>) -> Result<String, Mistake> {
    match text {
        "" => Err(Mistake::NoName),
        taken if known.names.contains(taken) => Err(Mistake::NameTaken),
        name => Ok(name.to_owned()),
    }
}

/// A word, or two dates that are both included.
fn cycle(text: &str) -> Result<Cycle, Mistake> {
    Ok(match text.to_lowercase().as_str() {
        "day" | "日" | "天" => Cycle::Day,
        "week" | "周" => Cycle::Week,
        "month" | "月" => Cycle::Month,
        "total" | "总" | "总计" => Cycle::Total,
        dates => {
            let words: Vec<&str> =
                dates.split(|c: char| c.is_whitespace() || c == '.').filter(|w| !w.is_empty()).collect();
            let [first, last] = words[..] else { return Err(Mistake::NoPeriod) };
            let date = |text: &str| text.parse::<Date>().map_err(|_| Mistake::NoPeriod);
            let (first, last) = (date(first)?, date(last)?);
            if last < first {
                return Err(Mistake::DatesReversed);
            }
            Cycle::Dates(Period { from: first, to: last.tomorrow().map_err(|_| Mistake::NoPeriod)? })
        }
    })
}

/// A kind and a value, or nothing for everything.
fn scope(text: &str, known: &Known<'_>) -> Result<Scope, Mistake> {
    let mut scope = Scope::default();
    if text.is_empty() || matches!(text, "all" | "everything" | "全部") {
        return Ok(scope);
    }
    let at = text.find([' ', ':', '：', '=']).ok_or(Mistake::NoScope)?;
    let value = text[at..].trim_start_matches([' ', ':', '：', '=']).trim();
    if value.is_empty() {
        return Err(Mistake::NoScope);
    }
    match text[..at].to_lowercase().as_str() {
        "project" | "项目" => scope.project = Some(value.to_owned()),
        "account" | "账号" => {
            let account = known.accounts.iter().find(|account| account.as_str() == value);
            let account = account.ok_or_else(|| Mistake::NoAccount(value.to_owned()))?;
            scope.account = Some((*account).clone());
        }
        "provider" | "平台" => {
            let entry = providers::PROVIDERS.iter().find(|entry| entry.name == value);
            let entry = entry.ok_or_else(|| Mistake::NoProvider(value.to_owned()))?;
            scope.provider = Some(ProviderName::from(entry.name));
        }
        "instance" | "实例" => scope.instance = Some(Glob::new(value)),
        "label" | "标签" => scope.label = Some(LabelPattern::parse(value).ok_or(Mistake::NoScope)?),
        _ => return Err(Mistake::NoScope),
    }
    Ok(scope)
}

fn percent(text: &str) -> Result<u32, Mistake> {
    let percent = text.trim().trim_end_matches('%').trim().parse::<u32>().map_err(|_| Mistake::NoPercents)?;
    if (1..=HIGHEST_LINE).contains(&percent) { Ok(percent) } else { Err(Mistake::NoPercents) }
}

fn percents(text: &str) -> Result<Vec<u32>, Mistake> {
    let parts = text.split([',', '，', ' ']).filter(|part| !part.trim().is_empty());
    let percents: BTreeSet<u32> = parts.map(percent).collect::<Result<_, _>>()?;
    Ok(percents.into_iter().collect())
}

fn forecast(text: &str) -> Result<Option<u32>, Mistake> {
    if text.is_empty() { Ok(None) } else { percent(text).map(Some) }
}

fn zone(text: &str, known: &Known<'_>) -> Result<TimeZone, Mistake> {
    if text.is_empty() { Ok(known.zone.clone()) } else { TimeZone::get(text).map_err(|_| Mistake::NoZone) }
}

#[cfg(test)]
mod tests {
    use rstest::rstest;

    use super::*;
    use crate::rules::budgets::{Quantity, Unit};

    fn known<'a>(account: &'a AccountName) -> Known<'a> {
        Known {
            names: BTreeSet::from(["taken"]),
            accounts: vec![account],
            zone: TimeZone::UTC,
            currency: Currency::USD,
        }
    }

    /// A form of these texts; the others are those of a new budget.
    fn with(texts: &[(Field, &str)]) -> BudgetForm {
        let mut form = BudgetForm::new(None);
        form.fields[Field::Name as usize] = Input::new("art".to_owned());
        form.fields[Field::Limit as usize] = Input::new("1500 USD".to_owned());
        for (field, text) in texts {
            form.fields[*field as usize] = Input::new((*text).to_owned());
        }
        form
    }

    #[test]
    fn an_amount_alone_is_of_the_currency_that_is_shown_first() {
        let (account, form) = (AccountName::from("team"), with(&[(Field::Limit, "1,500.5")]));
        let budget = read(&form, &known(&account)).unwrap();
        assert_eq!(budget.limit, Quantity::new("1500.5".parse().unwrap(), Unit::Money(Currency::USD)));
    }

    #[rstest]
    #[case::name(Field::Name, " ", Mistake::NoName)]
    #[case::taken(Field::Name, "taken", Mistake::NameTaken)]
    #[case::words(Field::Limit, "200 gpu-h USD", Mistake::NoLimit(NoLimit::Unreadable))]
    #[case::negative(Field::Limit, "-5 USD", Mistake::NoLimit(NoLimit::Unreadable))]
    #[case::nothing(Field::Limit, "0 USD", Mistake::NoLimit(NoLimit::Unreadable))]
    #[case::unit(Field::Limit, "5 dollars", Mistake::NoLimit(NoLimit::Unreadable))]
    #[case::comma_before_decimals(Field::Limit, "2,5 USD", Mistake::NoLimit(NoLimit::DecimalComma))]
    #[case::comma_among_decimals(Field::Limit, "1.000,50 USD", Mistake::NoLimit(NoLimit::DecimalComma))]
    #[case::period(Field::Period, "year", Mistake::NoPeriod)]
    #[case::dates(Field::Period, "2026-12-31 2026-12-01", Mistake::DatesReversed)]
    #[case::scope(Field::Scope, "art", Mistake::NoScope)]
    #[case::half(Field::Scope, "project ", Mistake::NoScope)]
    #[case::account(Field::Scope, "account taem", Mistake::NoAccount("taem".to_owned()))]
    #[case::provider(Field::Scope, "provider nowhere", Mistake::NoProvider("nowhere".to_owned()))]
    #[case::percents(Field::Thresholds, "50, lots", Mistake::NoPercents)]
    #[case::no_percent(Field::Thresholds, "0", Mistake::NoPercents)]
    #[case::forecast(Field::Forecast, "5000", Mistake::NoPercents)]
    #[case::zone(Field::Zone, "Mars/Olympus", Mistake::NoZone)]
    fn what_cannot_be_read_is_told_of_its_own_field(
        #[case] field: Field,
        #[case] text: &str,
        #[case] expected: Mistake,
    ) {
        let account = AccountName::from("team");
        let mistakes = read(&with(&[(field, text)]), &known(&account)).unwrap_err();
        for (one, mistake) in Field::ALL.into_iter().zip(mistakes) {
            assert_eq!(mistake, (one == field).then(|| expected.clone()), "{one:?}");
        }
    }

    /// What a form says is what its budget says when it is opened again.
    #[rstest]
    #[case(&[])]
    #[case(&[(Field::Limit, "1,500.50 usd"), (Field::Period, "周"), (Field::Thresholds, "")])]
    #[case(&[(Field::Limit, "200 gpu-h"), (Field::Period, "2026-09-01..2026-12-31"), (Field::Forecast, "")])]
    #[case(&[(Field::Scope, "project a long name")])]
    #[case(&[(Field::Scope, "account:team"), (Field::Zone, "Asia/Shanghai")])]
    #[case(&[(Field::Scope, "instance ft-*")])]
    #[case(&[(Field::Scope, "label team=vision-*")])]
    fn a_budget_reads_back_from_its_own_texts(#[case] texts: &[(Field, &str)]) {
        let account = AccountName::from("team");
        let known = known(&account);
        let budget = read(&with(texts), &known).unwrap();
        let again = BudgetDraft::of(&budget, &known.zone).unwrap();
        let form = BudgetForm::new(Some(again));
        assert_eq!(read(&form, &known), Ok(budget));
        assert_eq!(form.of.as_deref(), Some("art"));
    }

    #[test]
    fn a_scope_of_several_conditions_has_no_texts() {
        let account = AccountName::from("team");
        let mut budget = read(&with(&[(Field::Scope, "account team")]), &known(&account)).unwrap();
        budget.scope.project = Some("art".to_owned());
        assert_eq!(BudgetDraft::of(&budget, &TimeZone::UTC), None);
    }
}
