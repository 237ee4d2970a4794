//! The language of the screen: `RENTOP_LANG`, else the locale.

use super::Environment;

/// A language that the program speaks.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Default)]
pub enum Language {
    #[default]
    English,
    /// Simplified Chinese.
    Chinese,
}

/// `RENTOP_LANG` names a language that the program does not speak.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("RENTOP_LANG is `{given}`; it can be `en` or `zh-CN`")]
pub struct UnknownLanguage {
    given: String,
}

impl Language {
    /// The language to speak, by the process's environment and the system's locale.
    pub fn of_the_user() -> Result<Self, UnknownLanguage> {
        Language::choose(&super::process_environment, sys_locale::get_locale)
    }

    /// An unset or empty `RENTOP_LANG` leaves it to the locale.
    pub fn choose(environment: &Environment, locale: impl FnOnce() -> Option<String>) -> Result<Self, UnknownLanguage> {
        match super::set(environment, "RENTOP_LANG") {
            None => Ok(locale().map_or(Language::English, |locale| Language::of_locale(&locale))),
            Some(given) => match given.to_str() {
                Some("en") => Ok(Language::English),
                Some("zh-CN") => Ok(Language::Chinese),
                _ => Err(UnknownLanguage { given: super::file::quote(&given.to_string_lossy()) }),
            },
        }
    }

    /// The tag, as `RENTOP_LANG` takes it.
    pub fn tag(self) -> &'static str {
        match self {
            Language::English => "en",
            Language::Chinese => "zh-CN",
        }
    }

    /// Every Chinese locale reads Simplified Chinese better than English.
    fn of_locale(locale: &str) -> Self {
        let language = locale.split(['-', '_', '.', '@']).next().unwrap_or_default();
        if language.eq_ignore_ascii_case("zh") { Language::Chinese } else { Language::English }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use rstest::rstest;
    use std::ffi::OsString;

    fn choose(variable: Option<&str>, locale: Option<&str>) -> Result<Language, UnknownLanguage> {
        let variable = variable.map(OsString::from);
        let environment = move |name: &str| (name == "RENTOP_LANG").then(|| variable.clone()).flatten();
        Language::choose(&environment, || locale.map(str::to_owned))
    }

    #[rstest]
    #[case::variable_wins(Some("en"), Some("zh-CN"), Language::English)]
    #[case::chinese_by_variable(Some("zh-CN"), Some("en-US"), Language::Chinese)]
    #[case::empty_variable(Some(""), Some("zh-CN"), Language::Chinese)]
    #[case::simplified(None, Some("zh-Hans-CN"), Language::Chinese)]
    #[case::posix(None, Some("zh_CN.UTF-8"), Language::Chinese)]
    #[case::bare(None, Some("zh"), Language::Chinese)]
    #[case::not_chinese(None, Some("zha-CN"), Language::English)]
    #[case::german(None, Some("de-DE"), Language::English)]
    #[case::c(None, Some("C"), Language::English)]
    #[case::nothing(None, None, Language::English)]
    fn the_variable_decides_and_then_the_locale(
        #[case] variable: Option<&str>,
        #[case] locale: Option<&str>,
        #[case] expected: Language,
    ) {
        assert_eq!(choose(variable, locale), Ok(expected));
        assert_eq!(choose(Some(expected.tag()), None), Ok(expected));
    }

    #[test]
    fn an_unknown_language_is_told_with_the_two_known_ones() {
        let error = choose(Some("fr\u{1b}[31m"), None).unwrap_err();
        assert_eq!(error.to_string(), "RENTOP_LANG is `fr`; it can be `en` or `zh-CN`");
    }
}
