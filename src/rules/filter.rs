//! The filter of the fleet and storage lists: `idle spot >1/h project:art 4090`.
//!
//! A filter is terms with spaces between them, and a row must fit them all:
//!
//! | term | fits |
//! |---|---|
//! | `4090`, `"two words"` | what holds this text, in any case, in a name, id, account, provider, region, GPU model, phase, project, label |
//! | `idle`, `off`, `mine` … | a [`Flag`]; quoted it is a text like any other |
//! | `project:art`, `name:ft-*`, `region:-` | a [`Key`] whose text holds the value, fits the whole glob, has no text at all |
//! | `>1/h`, `>$20/mo`, `gpus>=8`, `util<10%` | a [`Quantity`] that compares so |
//! | `-term`, `!term` | what the term does not fit |
//! | `idle\|off`, `gpu:4090\|a100` | what fits one of them; a key stands for those behind it, too |
//!
//! Every name is understood in English and in Chinese, and the punctuation of Chinese keyboards counts as
//! the narrow one. Quotes take every other meaning from what is in them: `"docker:img"`, `"-x"`.
//!
//! What is not known fits neither a comparison nor its opposite: `util<10%` and `-util<10%` both leave out a
//! machine whose utilization nobody told. A rate that lacks a part is at least what is known of it.

mod names;
mod read;

use std::borrow::Cow;
use std::cmp::Ordering;
use std::collections::BTreeMap;
use std::mem::Discriminant;
use std::ops::Range;

use jiff::{SignedDuration, Timestamp};
use providers::model::{Market, Phase, Rates, StorageKind};
use providers::money::Currency;
use rust_decimal::Decimal;

pub use self::names::{Flag, Key, Quantity};
use super::matcher::Glob;
use super::usage::Verdict;

/// Filters that show what can be asked, for the help.
pub const EXAMPLES: &[&str] = &[
    "idle mine -protected",
    "spot >1/h project:art",
    "gpu:4090|a100 gpus>=8",
    "off waste age>7d",
    "util<10% up>2h -region:us",
    "label:team=vision-* >$20/mo",
    "unattached size>100g",
];

/// What the filter asks about one row, an instance or a storage item. It is asked no more than it takes to
/// decide, so that what must be looked up may be looked up here.
pub trait Subject {
    fn name(&self) -> Option<&str>;
    fn id(&self) -> &str;
    fn account(&self) -> &str;
    fn provider(&self) -> Option<&str>;
    fn region(&self) -> Option<&str>;
    /// `None` where there are no GPUs, or the provider does not say.
    fn gpu_model(&self) -> Option<&str>;
    /// Number of cards; `None` when it is not told.
    fn gpu_count(&self) -> Option<u32>;
    fn labels(&self) -> &BTreeMap<String, String>;
    /// By hand or by rule; `None` when it belongs to none.
    fn project(&self) -> Option<&str>;
    /// As the row shows it; `None` for a storage item that is simply there.
    fn phase(&self) -> Option<Phase>;
    /// `None` for a storage item.
    fn market(&self) -> Option<Market>;
    /// `None` for an instance.
    fn storage_kind(&self) -> Option<StorageKind>;
    fn rates(&self) -> Cow<'_, Rates>;
    /// Mean over the GPUs, 0.0 to 1.0; `None` when it is not known.
    fn utilization(&self) -> Option<f64>;
    /// GPU memory in use, all cards together.
    fn memory_used_bytes(&self) -> Option<u64>;
    /// When the present run began.
    fn started_at(&self) -> Option<Timestamp>;
    /// When the rental began.
    fn created_at(&self) -> Option<Timestamp>;
    /// When its last verified copy was made; `None` where there is none.
    fn saved_at(&self) -> Option<Timestamp>;
    /// Something may lie on it, and no copy of that was ever verified.
    fn unsaved(&self) -> bool;
    /// Of a storage item, in GiB; `None` for an instance and when it is not told.
    fn size_gib(&self) -> Option<Decimal>;
    /// Whether it works; `None` when too little is known to say.
    fn verdict(&self) -> Option<Verdict>;
    /// Whether it is a storage item that nobody uses; `None` when the provider does not say.
    fn unattached(&self) -> Option<bool>;
    /// Whether it is charged for although nobody can use it; `None` when that is not known.
    fn wastes(&self) -> Option<bool>;
    fn protected(&self) -> bool;
    /// Ours to act on in bulk.
    fn mine(&self) -> bool;
    /// Somebody should look at it now.
    fn needs_you(&self) -> bool;
    /// An action of ours is under way on it.
    fn under_way(&self) -> bool;
}

/// What a list shows: everything, until something is asked for.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Filter {
    terms: Vec<Term>,
}

impl Filter {
    /// Reads what somebody typed so far. The first word that cannot be read is the error.
    pub fn parse(text: &str) -> Result<Self, FilterError> {
        Ok(Filter { terms: read::terms(text)? })
    }

    /// Nothing is asked for.
    pub fn is_empty(&self) -> bool {
        self.terms.is_empty()
    }

    /// Whether a row fits every term.
    pub fn matches(&self, subject: &impl Subject, now: Timestamp) -> bool {
        self.terms.iter().all(|term| term.fits(subject, now) == Some(true))
    }
}

/// Why a text is no filter, and where.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct FilterError {
    pub kind: FilterErrorKind,
    /// The bytes of the text that it is about; they begin and end between characters.
    pub at: Range<usize>,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum FilterErrorKind {
    /// Right so far: somebody is still typing.
    Unfinished(Expected),
    /// A word before `:`, `<` or `>` that is no key. The one that was meant, when one is close; else the
    /// whole word wants quotes: `"docker:img"`.
    UnknownKey { nearest: Option<&'static str> },
    /// No phase, market or kind of storage is called so.
    UnknownValue { key: Key, nearest: Option<&'static str> },
    /// What the quantity is compared with is none: `up>2x`, `gpus>=1.5`.
    NotAnAmount(Quantity),
    /// The key holds a text, which is neither more nor less than another: `project>3`.
    NotCompared(Key),
}

impl FilterErrorKind {
    /// More may well make it right: what was shown before may stay for now.
    pub fn is_unfinished(self) -> bool {
        matches!(self, FilterErrorKind::Unfinished(_))
    }
}

/// What is to come next.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Expected {
    /// The second quote.
    Quote,
    /// A term, after `-`, `!` or `|`, or between quotes.
    Term,
    /// A value after `key:`.
    Value(Key),
    /// The rest of an amount: `>1/`, `up>2`.
    Amount(Quantity),
}

/// One condition. Several tests are alternatives.
#[derive(Clone, Debug, PartialEq)]
struct Term {
    negated: bool,
    any: Vec<Test>,
}

#[derive(Clone, Debug, PartialEq)]
enum Test {
    Word(Word),
    Flag(Flag),
    Text(Field, Pattern),
    Label(Pattern),
    Phase(Vec<Phase>),
    Market(Vec<Discriminant<Market>>),
    Kind(Vec<StorageKind>),
    Rate {
        op: Op,
        amount: Decimal,
        /// In how many hours that amount is charged.
        hours: Decimal,
        /// `None` for the row's own, whichever it is.
        currency: Option<Currency>,
    },
    Gpus(Op, Decimal),
    /// A share of 0.0 to 1.0.
    Utilization(Op, f64),
    MemoryBytes(Op, Decimal),
    Up(Op, SignedDuration),
    Age(Op, SignedDuration),
    Saved(Op, SignedDuration),
    SizeGib(Op, Decimal),
}

/// A text that is looked for everywhere.
#[derive(Clone, Debug, PartialEq)]
struct Word {
    part: Part,
    // What the part is found in, of all that these can be called.
    phases: Vec<Phase>,
    markets: Vec<Discriminant<Market>>,
    kinds: Vec<StorageKind>,
}

/// A single text of a row.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Field {
    Name,
    Id,
    Account,
    Provider,
    Region,
    Gpu,
    Project,
}

/// What a text must be like.
#[derive(Clone, Debug, PartialEq)]
enum Pattern {
    Part(Part),
    Whole(Glob),
    /// There must be no text.
    Nothing,
}

/// A text in lower case, to be found within others in any case.
#[derive(Clone, Debug, PartialEq)]
struct Part(String);

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Op {
    Less,
    AtMost,
    Equal,
    Unequal,
    AtLeast,
    More,
}

impl Term {
    /// `None` when what is known of the row does not decide it.
    fn fits(&self, subject: &impl Subject, now: Timestamp) -> Option<bool> {
        let mut all_known = true;
        for test in &self.any {
            match test.fits(subject, now) {
                Some(true) => return Some(!self.negated),
                Some(false) => {}
                None => all_known = false,
            }
        }
        all_known.then_some(self.negated)
    }
}

impl Test {
    fn fits(&self, subject: &impl Subject, now: Timestamp) -> Option<bool> {
        match self {
            Test::Word(word) => Some(word.fits(subject)),
            Test::Flag(flag) => flag.fits(subject),
            Test::Text(field, pattern) => Some(pattern.fits(field.of(subject))),
            Test::Label(pattern) => Some(pattern.fits_a_label(subject.labels())),
            Test::Phase(phases) => Some(subject.phase().is_some_and(|phase| phases.contains(&phase))),
            Test::Market(markets) => Some(is_one_of(subject.market(), markets)),
            Test::Kind(kinds) => Some(subject.storage_kind().is_some_and(|kind| kinds.contains(&kind))),
            Test::Rate { op, amount, hours, currency } => {
                let rates = subject.rates();
                let charged = hourly(&rates, *currency)?.checked_mul(*hours)?;
                op.decide(charged.cmp(amount), rates.complete)
            }
            Test::Gpus(op, count) => Some(op.holds(Decimal::from(subject.gpu_count()?).cmp(count))),
            Test::Utilization(op, share) => Some(op.holds(subject.utilization()?.partial_cmp(share)?)),
            Test::MemoryBytes(op, bytes) => Some(op.holds(Decimal::from(subject.memory_used_bytes()?).cmp(bytes))),
            Test::Up(op, duration) => {
                let started_at = subject.started_at().filter(|_| subject.phase() == Some(Phase::Running))?;
                Some(op.holds(now.duration_since(started_at).cmp(duration)))
            }
            Test::Saved(op, duration) => Some(op.holds(now.duration_since(subject.saved_at()?).cmp(duration))),
            Test::Age(op, duration) => Some(op.holds(now.duration_since(subject.created_at()?).cmp(duration))),
            Test::SizeGib(op, size) => Some(op.holds(subject.size_gib()?.cmp(size))),
        }
    }
}

impl Flag {
    fn fits(self, subject: &impl Subject) -> Option<bool> {
        let in_phase = |phases: &[Phase]| subject.phase().is_some_and(|phase| phases.contains(&phase));
        Some(match self {
            Flag::Idle => subject.verdict()? == Verdict::Idle,
            Flag::Busy => subject.verdict()? == Verdict::Busy,
            Flag::Underused => subject.verdict()? == Verdict::Underused,
            Flag::Waiting => subject.verdict()? == Verdict::Waiting,
            Flag::Spot => subject.market() == Some(Market::Spot),
            Flag::Reserved => matches!(subject.market(), Some(Market::Reserved { .. })),
            Flag::On => in_phase(&[Phase::Running]),
            Flag::Off => in_phase(&[Phase::Stopped, Phase::Reclaimed, Phase::Unreachable, Phase::Failed]),
            Flag::Gone => in_phase(&[Phase::Gone]),
            Flag::Waste => subject.wastes()?,
            Flag::Unattached => subject.unattached()?,
            Flag::Trouble => subject.needs_you(),
            Flag::Pending => subject.under_way(),
            Flag::Mine => subject.mine(),
            Flag::Protected => subject.protected(),
            Flag::Unsaved => subject.unsaved(),
        })
    }
}

impl Word {
    fn fits(&self, subject: &impl Subject) -> bool {
        let holds = |text: Option<&str>| text.is_some_and(|text| self.part.is_in(text));
        holds(subject.name())
            || self.part.is_in(subject.id())
            || self.part.is_in(subject.account())
            || holds(subject.provider())
            || holds(subject.region())
            || holds(subject.gpu_model())
            || subject.phase().is_some_and(|phase| self.phases.contains(&phase))
            || is_one_of(subject.market(), &self.markets)
            || subject.storage_kind().is_some_and(|kind| self.kinds.contains(&kind))
            || subject.labels().iter().any(|(label, value)| self.part.is_in_label(label, value))
            || holds(subject.project())
    }
}

impl Field {
    /// `None` for what has no text, an empty one included.
    fn of(self, subject: &impl Subject) -> Option<&str> {
        let text = match self {
            Field::Name => subject.name(),
            Field::Id => Some(subject.id()),
            Field::Account => Some(subject.account()),
            Field::Provider => subject.provider(),
            Field::Region => subject.region(),
            Field::Gpu => subject.gpu_model(),
            Field::Project => subject.project(),
        };
        text.filter(|text| !text.is_empty())
    }
}

impl Pattern {
    fn fits(&self, text: Option<&str>) -> bool {
        match self {
            Pattern::Part(part) => text.is_some_and(|text| part.is_in(text)),
            Pattern::Whole(glob) => text.is_some_and(|text| glob.matches(text)),
            Pattern::Nothing => text.is_none(),
        }
    }

    /// A glob with `=` in it is one of `label=value`, any other of the label or of the value.
    fn fits_a_label(&self, labels: &BTreeMap<String, String>) -> bool {
        let mut labels = labels.iter();
        match self {
            Pattern::Part(part) => labels.any(|(label, value)| part.is_in_label(label, value)),
            Pattern::Whole(glob) if glob.pattern_chars().contains(&'=') => {
                labels.any(|(label, value)| glob.matches(&format!("{label}={value}")))
            }
            Pattern::Whole(glob) => labels.any(|(label, value)| glob.matches(label) || glob.matches(value)),
            Pattern::Nothing => labels.next().is_none(),
        }
    }
}

impl Part {
    fn new(text: &str) -> Self {
        Part(text.to_lowercase())
    }

    fn is_in(&self, text: &str) -> bool {
        if !self.0.is_ascii() {
            return !text.is_ascii() && text.to_lowercase().contains(&self.0);
        }
        let Some((first, rest)) = self.0.as_bytes().split_first() else { return true };
        let Some(room) = text.len().checked_sub(rest.len()) else { return false };
        let text = text.as_bytes();
        // Letters differ from their capitals in this one bit. What it also lets through is looked at below.
        let perhaps = |byte: &u8| (byte | 0x20) == (first | 0x20);
        let mut from = 0;
        while let Some(at) = text[from..room].iter().position(perhaps) {
            let at = from + at;
            if text[at..=at + rest.len()].eq_ignore_ascii_case(self.0.as_bytes()) {
                return true;
            }
            from = at + 1;
        }
        false
    }

    /// Whether `label=value` holds it.
    fn is_in_label(&self, label: &str, value: &str) -> bool {
        let across = |at: usize| {
            let (end, start) = (&self.0[..at], &self.0[at + 1..]);
            label.to_lowercase().ends_with(end) && value.to_lowercase().starts_with(start)
        };
        self.is_in(label) || self.is_in(value) || self.0.match_indices('=').any(|(at, _)| across(at))
    }
}

impl Op {
    fn holds(self, ordering: Ordering) -> bool {
        match self {
            Op::Less => ordering.is_lt(),
            Op::AtMost => ordering.is_le(),
            Op::Equal => ordering.is_eq(),
            Op::Unequal => ordering.is_ne(),
            Op::AtLeast => ordering.is_ge(),
            Op::More => ordering.is_gt(),
        }
    }

    /// The same for a figure that may be a part of the real one; `None` when the rest could change the answer.
    fn decide(self, ordering: Ordering, complete: bool) -> Option<bool> {
        let holds = self.holds(ordering);
        let mut higher = [Ordering::Equal, Ordering::Greater].into_iter().filter(|higher| *higher > ordering);
        (complete || higher.all(|higher| self.holds(higher) == holds)).then_some(holds)
    }
}

fn is_one_of(market: Option<Market>, markets: &[Discriminant<Market>]) -> bool {
    market.is_some_and(|market| markets.contains(&std::mem::discriminant(&market)))
}

/// All that a row is or may be charged an hour, as its line shows it. `None` when nothing is known of the
/// currency that is asked for, or, with none asked for, there are several.
fn hourly(rates: &Rates, asked: Option<Currency>) -> Option<Decimal> {
    let lines = rates.lines.iter().map(|line| line.rate);
    let mut picos = None;
    let mut own = asked;
    for rate in lines.filter(|rate| asked.is_some() || !rate.is_zero()) {
        if *own.get_or_insert(rate.currency) == rate.currency {
            picos = Some(picos.unwrap_or(0) + i128::from(rate.picos()));
        } else if asked.is_none() {
            return None;
        }
    }
    // Without a line nothing is charged, whatever the currency.
    let picos = if asked.is_none() { picos.unwrap_or(0) } else { picos? };
    Decimal::try_from_i128_with_scale(picos, 12).ok()
}

#[cfg(test)]
#[path = "filter_tests.rs"]
mod tests;
