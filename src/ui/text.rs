//! Everything that the screen says, in each language. One exhaustive match a language for every typed
//! value: a text that is missing does not compile.

mod alerts;
mod budgets;
mod channel;
mod checkpoint;
mod chinese;
mod english;
mod guard;
mod idle;
mod lease;
mod save_form;
mod saving;
mod tables;
mod usage;
mod words;

use std::collections::BTreeMap;

use jiff::SignedDuration;
use providers::error::ErrorKind;
use providers::model::{Action, Component, DataKind, Phase, Remark, Risk, StorageKind};
use providers::money::Currency;

use super::format;
use super::glyphs::UNICODE;
use super::look::Look;
use super::theme::{Background, Colours, Theme};
use crate::app::action::Action as Meaning;
use crate::app::keymap::{Binding, Bindings, Place};
use crate::app::message::{Msg, QuickName};
use crate::app::rows::MarketName;
use crate::app::state::Tab;
use crate::rules::fleet::{Account, Freshness, Trouble};
use crate::rules::memory::LedgerNotice;
use crate::rules::plan::Hindrance;
use crate::rules::saga::Outcome;

pub use super::language::Language;
pub use alerts::{Sentence, Telling, alert_line, percent_of};
pub use budgets::{OfAlerts, OfBudgets};
pub use channel::channel_text;
pub use idle::OfIdle;
pub use save_form::OfSaveForm;
pub use saving::OfSaving;
pub use tables::{Below, Head};
pub use usage::OfUse;
pub use words::{Phrase, Word};

/// Speaks in the language of `$language`.
macro_rules! speak {
    ($language:expr, $function:ident($($argument:expr),*)) => {
        match $language {
            Language::English => english::$function($($argument),*),
            Language::Chinese => chinese::$function($($argument),*),
        }
    };
}

/// What each action does where it can be asked for, in a sentence.
pub fn sentences(language: Language) -> BTreeMap<(Place, Meaning), String> {
    let theme = Theme::new(Colours::None, Background::Dark);
    let look = Look { theme, glyphs: &UNICODE, language };
    let bindings = Bindings::default();
    let told = |binding: &Binding| ((binding.place, binding.action), message(&binding.help, &look, Currency::USD));
    bindings.all().iter().map(told).collect()
}

/// What a view is called.
pub fn view(tab: Tab) -> Word {
    match tab {
        Tab::Fleet => Word::Fleet,
        Tab::Spend => Word::Spend,
        Tab::Storage => Word::Storage,
        Tab::Budgets => Word::Budgets,
        Tab::Alerts => Word::Alerts,
        Tab::Activity => Word::Activity,
    }
}

/// A message in words; `first` is the currency that rates begin with.
pub fn message(message: &Msg, look: &Look, first: Currency) -> String {
    speak!(look.language, message(message, look, first))
}

impl Language {
    pub fn word(self, word: Word) -> &'static str {
        speak!(self, word(word))
    }
    pub fn phrase(self, phrase: &Phrase) -> String {
        speak!(self, phrase(phrase))
    }
    pub fn phase(self, phase: Phase) -> &'static str {
        speak!(self, phase(phase))
    }
    /// In at most five cells.
    pub fn phase_short(self, phase: Phase) -> &'static str {
        speak!(self, phase_short(phase))
    }
    pub fn action(self, action: Action) -> &'static str {
        speak!(self, action(action))
    }
    pub fn freshness(self, freshness: Freshness) -> &'static str {
        speak!(self, freshness(freshness))
    }
    pub fn market(self, market: MarketName) -> &'static str {
        speak!(self, market(market))
    }
    pub fn quick(self, quick: QuickName) -> &'static str {
        speak!(self, quick(quick))
    }
    pub fn component(self, component: Component) -> &'static str {
        speak!(self, component(component))
    }
    pub fn data_kind(self, kind: DataKind) -> &'static str {
        speak!(self, data_kind(kind))
    }
    pub fn storage_kind(self, kind: StorageKind) -> &'static str {
        speak!(self, storage_kind(kind))
    }
    pub fn risk(self, risk: Risk) -> &'static str {
        speak!(self, risk(risk))
    }
    pub fn remark(self, remark: Remark) -> &'static str {
        speak!(self, remark(remark))
    }
    /// For a row: two or three words.
    pub fn remark_short(self, remark: Remark) -> &'static str {
        speak!(self, remark_short(remark))
    }
    pub fn hindrance(self, hindrance: &Hindrance, action: Action) -> String {
        speak!(self, hindrance(hindrance, action))
    }
    pub fn outcome(self, outcome: &Outcome) -> String {
        speak!(self, outcome(outcome))
    }
    pub fn error_kind(self, kind: &ErrorKind) -> String {
        speak!(self, error_kind(kind))
    }
    pub fn trouble(self, trouble: &Trouble) -> String {
        speak!(self, trouble(trouble))
    }
    /// What a person can do about it.
    pub fn advice(self, trouble: &Trouble) -> &'static str {
        speak!(self, advice(trouble))
    }
    /// By how much our clock is ahead of that of an account's provider.
    pub fn clock_off(self, account: &Account, ahead: SignedDuration) -> String {
        // To the nearest minute.
        let off = format::age(ahead.abs() + SignedDuration::from_secs(30), self);
        self.phrase(&Phrase::ClockOff { account: account.name.as_str(), off: &off, behind: ahead.is_negative() })
    }
    pub fn ledger_notice(self, notice: &LedgerNotice) -> String {
        speak!(self, ledger_notice(notice))
    }
    /// What stands before and after the text that is to be typed.
    pub fn type_name(self) -> [&'static str; 2] {
        speak!(self, type_name())
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::ui::format::width;

    #[test]
    fn short_phases_fit_a_narrow_column() {
        for language in [Language::English, Language::Chinese] {
            for phase in Phase::ALL {
                assert!(width(language.phase_short(phase)) <= 5, "{}", language.phase_short(phase));
                assert!(width(language.phase(phase)) <= 9, "{}", language.phase(phase));
            }
        }
    }

    #[test]
    fn every_chinese_word_is_chinese() {
        // Names are the same in both.
        let same = [Word::Gpu, Word::Ssh];
        for word in Word::ALL.iter().filter(|word| !same.contains(word)) {
            assert!(!Language::Chinese.word(*word).is_ascii(), "{word:?}");
        }
    }
}
