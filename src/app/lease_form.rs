//! A lease as it is typed: what is to happen, when, and what a job that failed may cost.

use jiff::Timestamp;
use jiff::tz::TimeZone;
use providers::model::Identity;
use providers::money::Currency;
use providers::text::clean;
use tui_input::Input;

use crate::rules::lease::{Draft, Lease, LeaseId, Mistake, Shift, What, When, money, when};

/// The fields, in the order of the form.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Field {
    What,
    When,
    MaxCost,
    OnBox,
}

impl Field {
    pub const ALL: [Field; 4] = [Field::What, Field::When, Field::MaxCost, Field::OnBox];
}

/// What is wanted.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Choice {
    Do(What),
    /// The leases there are end.
    TakeAway,
}

/// The form of a lease.
#[derive(Clone, Debug)]
pub struct LeaseForm {
    /// What was pointed at when the form was opened.
    pub asked: Vec<Identity>,
    /// Their leases at that time.
    pub there: Vec<LeaseId>,
    pub choice: Choice,
    pub when: Input,
    pub max_cost: Input,
    pub on_box: bool,
    /// The config says how a timer on an instance is armed.
    pub can_arm: bool,
    /// The field that is written in.
    pub at: usize,
    pub mistakes: [Option<Mistake>; Field::ALL.len()],
}

impl LeaseForm {
    /// Of instances with these leases: what one of them says of its only instance stands there at first, as `text`.
    pub fn new(asked: Vec<Identity>, there: &[(&Lease, String)], starts: bool, can_arm: bool) -> Self {
        let first = match (asked.as_slice(), there) {
            ([_], [first, ..]) => Some(first),
            _ => None,
        };
        let usual = if starts { What::Start } else { What::Stop };
        let max_cost = first.and_then(|(lease, _)| lease.max_cost);
        let max_cost = max_cost.map(|money| format!("{} {}", money.amount.normalize(), money.currency));
        LeaseForm {
            asked,
            there: there.iter().map(|(lease, _)| lease.id).collect(),
            choice: Choice::Do(first.map_or(usual, |(lease, _)| lease.what)),
            when: Input::new(first.map(|(_, text)| text.clone()).unwrap_or_default()),
            max_cost: Input::new(max_cost.unwrap_or_default()),
            on_box: first.is_some_and(|(lease, _)| lease.on_box.is_some()),
            can_arm,
            at: 0,
            mistakes: Default::default(),
        }
    }

    /// The fields that it has now.
    pub fn fields(&self) -> &'static [Field] {
        match (self.choice, self.can_arm) {
            (Choice::TakeAway, _) => &Field::ALL[..1],
            (Choice::Do(_), false) => &Field::ALL[..3],
            (Choice::Do(_), true) => &Field::ALL,
        }
    }

    /// What can be chosen.
    pub fn choices(&self) -> Vec<Choice> {
        let away = (!self.there.is_empty()).then_some(Choice::TakeAway);
        What::ALL.map(Choice::Do).into_iter().chain(away).collect()
    }

    /// The next choice, or the one before.
    pub fn turn(&mut self, by: isize) {
        match self.fields().get(self.at) {
            Some(Field::What) => {
                let choices = self.choices();
                let at = choices.iter().position(|choice| *choice == self.choice).unwrap_or(0);
                let count = choices.len() as isize;
                self.choice = choices[(at as isize + by).rem_euclid(count) as usize];
            }
            Some(Field::OnBox) => self.on_box = !self.on_box,
            _ => {}
        }
        self.mistakes = Default::default();
    }

    /// The text that is being typed; `None` where something is chosen.
    pub fn typing(&mut self) -> Option<&mut Input> {
        self.mistakes[self.at] = None;
        match self.fields().get(self.at)? {
            Field::When => Some(&mut self.when),
            Field::MaxCost => Some(&mut self.max_cost),
            Field::What | Field::OnBox => None,
        }
    }
}

/// What a form comes to.
#[derive(Clone, Debug, PartialEq)]
pub enum Wish {
    Lease(Vec<Draft>, Option<Shift>),
    TakeAway(Vec<LeaseId>),
}

/// What the fields say, or what is wrong with each of them. `currencies` are those that the instances cost in.
pub fn read(
    form: &LeaseForm,
    zone: &TimeZone,
    currencies: &[Currency],
    now: Timestamp,
) -> Result<Wish, [Option<Mistake>; Field::ALL.len()]> {
    let what = match form.choice {
        Choice::TakeAway => return Ok(Wish::TakeAway(form.there.clone())),
        Choice::Do(what) => what,
    };
    let max_cost = clean(form.max_cost.value());
    let cost = match max_cost.trim() {
        "" => Ok(None),
        text => money(text).map(Some),
    };
    let when = when(&clean(form.when.value()), zone, now);
    let job = matches!(&when, Ok((when, _)) if when.is_job());
    let when = match when {
        Ok(_) if job && form.asked.len() > 1 => Err(Mistake::JobOfMany),
        when => when,
    };
    let (when, shift, cost) = match (when, cost) {
        (Ok((when, shift)), Ok(cost)) => (when, shift, cost),
        (when, cost) => return Err([None, when.err(), cost.err(), None]),
    };
    let drafts = form.asked.iter().map(|identity| {
        let draft = Draft { identity: identity.clone(), what, when: when.clone(), max_cost: cost, on_box: form.on_box };
        check(draft, currencies)
    });
    let drafts = drafts.collect::<Result<Vec<_>, _>>().map_err(|(field, mistake)| {
        let mut mistakes: [Option<Mistake>; Field::ALL.len()] = Default::default();
        mistakes[field as usize] = Some(mistake);
        mistakes
    })?;
    Ok(Wish::Lease(drafts, shift))
}

/// What does not go together.
pub fn check(draft: Draft, currencies: &[Currency]) -> Result<Draft, (Field, Mistake)> {
    let job = draft.when.is_job();
    match draft.max_cost {
        _ if job && draft.what == What::Start => Err((Field::When, Mistake::StartByJob)),
        Some(_) if !job => Err((Field::MaxCost, Mistake::CostWithoutJob)),
        Some(max) if !currencies.is_empty() && !currencies.contains(&max.currency) => {
            Err((Field::MaxCost, Mistake::OtherCurrency(currencies[0])))
        }
        _ if draft.on_box && (job || draft.what == What::Start) => Err((Field::OnBox, Mistake::OnBoxWithoutTime)),
        _ => Ok(draft),
    }
}

/// The moment or the job of a lease, as it is typed.
pub fn typed(when: &When, zone: &TimeZone) -> String {
    match when {
        When::At(at) => zone.to_datetime(*at).strftime("%Y-%m-%d %H:%M").to_string(),
        When::File(path) => format!("file {path}"),
        When::Process { pid, .. } => format!("pid {pid}"),
    }
}

#[cfg(test)]
mod tests {
    use rstest::rstest;

    use super::*;
    use crate::rules::samples::{at, identity};

    fn form(choice: Choice, when: &str, max_cost: &str) -> LeaseForm {
        let mut form = LeaseForm::new(vec![identity("team", "a")], &[], false, true);
        (form.choice, form.when, form.max_cost) =
            (choice, Input::new(when.to_owned()), Input::new(max_cost.to_owned()));
        form
    }

    fn said(form: &LeaseForm) -> Result<Wish, [Option<Mistake>; 4]> {
        read(form, &TimeZone::UTC, &[Currency::CNY], at("10:00:00"))
    }

    #[rstest]
    #[case::no_time(Choice::Do(What::Stop), "", "", Field::When, Mistake::NoTime)]
    #[case::start_by_job(Choice::Do(What::Start), "pid 7", "", Field::When, Mistake::StartByJob)]
    #[case::no_money(Choice::Do(What::Stop), "pid 7", "5", Field::MaxCost, Mistake::NoMoney)]
    #[case::other(Choice::Do(What::Stop), "pid 7", "5 USD", Field::MaxCost, Mistake::OtherCurrency(Currency::CNY))]
    #[case::no_job(Choice::Do(What::Stop), "4h", "5 CNY", Field::MaxCost, Mistake::CostWithoutJob)]
    fn what_does_not_go_together_is_told_of_its_field(
        #[case] choice: Choice,
        #[case] when: &str,
        #[case] max_cost: &str,
        #[case] field: Field,
        #[case] expected: Mistake,
    ) {
        let mistakes = said(&form(choice, when, max_cost)).unwrap_err();
        assert_eq!(mistakes[field as usize], Some(expected), "{mistakes:?}");
    }

    #[test]
    fn a_job_is_of_one_instance_and_a_time_of_many() {
        let mut form = form(Choice::Do(What::Stop), "4h", "");
        form.asked.push(identity("team", "b"));
        assert!(matches!(said(&form), Ok(Wish::Lease(drafts, None)) if drafts.len() == 2));
        form.when = Input::new("file /done".to_owned());
        assert_eq!(said(&form).unwrap_err()[Field::When as usize], Some(Mistake::JobOfMany));
    }

    #[test]
    fn what_is_there_can_be_taken_away_and_stands_there_at_first() {
        let draft = Draft {
            identity: identity("team", "a"),
            what: What::Release,
            when: When::At(at("22:00:00")),
            max_cost: None,
            on_box: false,
        };
        let lease = Lease::new(LeaseId(7), draft.clone(), "a".into(), "ana@desk".into(), at("10:00:00"));
        let text = typed(&lease.when, &TimeZone::UTC);
        let mut form = LeaseForm::new(vec![identity("team", "a")], &[(&lease, text)], false, false);
        assert_eq!(said(&form), Ok(Wish::Lease(vec![draft], None)), "it says what it said");
        for choice in [Choice::Do(What::Start), Choice::TakeAway, Choice::Do(What::Stop), Choice::Do(What::Release)] {
            form.turn(1);
            assert_eq!(form.choice, choice);
        }
        form.choice = Choice::TakeAway;
        assert_eq!(said(&form), Ok(Wish::TakeAway(vec![LeaseId(7)])));
        assert_eq!(form.fields(), [Field::What]);
    }
}
