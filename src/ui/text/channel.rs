//! What channels beyond the screen are told, in the language of each: a title with the host, and a line for each piece
//! of news; the same as one object for programs.

use jiff::Timestamp;
use jiff::tz::TimeZone;
use providers::channels::{Text, Weight};
use providers::money::{Currency, Rate};
use providers::text::clean;
use rust_decimal::Decimal;
use serde_json::{Value, json};

use super::Language;
use super::alerts::alert_line;
use crate::rules::alerts::Severity;
use crate::rules::dispatch::{Message, News};
use crate::ui::format;
use crate::ui::glyphs::UNICODE;
use crate::ui::look::Look;
use crate::ui::theme::{Background, Colours, Theme};

/// The version of the object for programs.
const SCHEMA: &str = "rentop.message/1";

/// The text of messages that go out together: at least one.
pub fn channel_text(messages: &[Message], language: Language, first: Currency, zone: &TimeZone) -> Text {
    let told = Told { language, first, zone };
    let mut hosts: Vec<&str> = messages.iter().map(|message| message.host.as_str()).collect();
    hosts.sort_unstable();
    hosts.dedup();
    let several_hosts = hosts.len() > 1;
    let host = hosts.join(", ");
    let title = title(language, &host, messages.len());
    let lines = messages.iter().map(|message| clean(&told.line(message, several_hosts))).collect();
    let weight = messages.iter().map(weight).max().unwrap_or(Weight::Note);
    // Who takes the object is told one message at a time.
    let record = messages.first().map_or(Value::Null, |message| told.record(message));
    Text { title: clean(&title), lines, weight, record }
}

fn weight(message: &Message) -> Weight {
    match &message.news {
        News::Fired(matter) => match matter.severity() {
            Severity::Urgent => Weight::Urgent,
            Severity::Money => Weight::Money,
            Severity::Note => Weight::Note,
        },
        News::Lost { .. } => Weight::Money,
        News::Resolved(_) | News::Acted { .. } | News::Test => Weight::Note,
    }
}

fn title(language: Language, host: &str, count: usize) -> String {
    match (language, count) {
        (Language::English, 1) => format!("rentop on {host}"),
        (Language::English, _) => format!("rentop on {host}: {count} messages"),
        (Language::Chinese, 1) => format!("rentop（{host}）"),
        (Language::Chinese, _) => format!("rentop（{host}）：{count} 条消息"),
    }
}

/// How it is told.
struct Told<'a> {
    language: Language,
    first: Currency,
    zone: &'a TimeZone,
}

impl Told<'_> {
    /// `11-30 09:31 sentence`, with what is to be known of the message itself.
    fn line(&self, message: &Message, with_host: bool) -> String {
        let mut line = format!("{} ", self.time(message.made_at));
        if with_host {
            line += &format!("[{}] ", message.host);
        }
        line += &self.sentence(&message.news);
        if message.again {
            line += match self.language {
                Language::English => " (this may have been told before)",
                Language::Chinese => "（此条可能已发送过）",
            };
        }
        line
    }

    fn time(&self, at: Timestamp) -> String {
        at.to_zoned_datetime(self.zone.clone()).strftime("%m-%d %H:%M").to_string()
    }

    fn sentence(&self, news: &News) -> String {
        match news {
            News::Fired(matter) => alert_line(matter, self.language, self.zone),
            News::Resolved(matter) => {
                let line = alert_line(matter, self.language, self.zone);
                match self.language {
                    Language::English => format!("over: {line}"),
                    Language::Chinese => format!("已解除：{line}"),
                }
            }
            News::Acted { by, action, name, saves } => {
                let action = self.language.action(*action);
                match (self.language, self.rates(saves)) {
                    (Language::English, Some(saves)) => format!("{by}: {action} {name}, done, saves {saves}"),
                    (Language::English, None) => format!("{by}: {action} {name}, done"),
                    (Language::Chinese, Some(saves)) => format!("{by} 已{action} {name}，节省 {saves}"),
                    (Language::Chinese, None) => format!("{by} 已{action} {name}"),
                }
            }
            News::Lost { count, since } => {
                let since = self.time(*since);
                match (self.language, count) {
                    (Language::English, 1) => {
                        format!("1 message of {since} was never told here: see `rentop alerts --all`")
                    }
                    (Language::English, count) => {
                        format!("{count} messages since {since} were never told here: see `rentop alerts --all`")
                    }
                    (Language::Chinese, count) => {
                        format!("自 {since} 起有 {count} 条消息未能送达此处：请运行 `rentop alerts --all` 查看")
                    }
                }
            }
            News::Test => match self.language {
                Language::English => "this is a test: alerts of your GPUs will come here".to_owned(),
                Language::Chinese => "这是一条测试消息：GPU 告警将发送到这里".to_owned(),
            },
        }
    }

    fn rates(&self, rates: &[Rate]) -> Option<String> {
        let theme = Theme::new(Colours::None, Background::Dark);
        format::rates(rates, self.first, &Look { theme, glyphs: &UNICODE, language: self.language })
    }

    fn record(&self, message: &Message) -> Value {
        let details = |value: Result<Value, serde_json::Error>| {
            // An object of one key, its kind, which stands beside it already.
            let Ok(Value::Object(object)) = value else { return json!({}) };
            object.into_iter().next().map_or(json!({}), |(_, inner)| in_decimals(inner))
        };
        let (kind, state, details) = match &message.news {
            News::Fired(matter) => (matter.kind().word(), "fired", details(serde_json::to_value(matter))),
            News::Resolved(matter) => (matter.kind().word(), "resolved", details(serde_json::to_value(matter))),
            news @ News::Acted { .. } => ("action", "done", details(serde_json::to_value(news))),
            news @ News::Lost { .. } => ("messages", "lost", details(serde_json::to_value(news))),
            News::Test => ("test", "test", json!({})),
        };
        json!({
            "schema": SCHEMA,
            "id": message.id.to_string(),
            "at": message.made_at,
            "again": message.again,
            "host": clean(&message.host),
            "kind": kind,
            "state": state,
            "text": clean(&self.sentence(&message.news)),
            "details": details,
        })
    }
}

/// The same with every amount as scripts know it: a decimal with up to six places.
fn in_decimals(value: Value) -> Value {
    let decimal = |amount: Decimal| Value::from(amount.round_dp(6).normalize().to_string());
    match value {
        Value::Array(values) => values.into_iter().map(in_decimals).collect(),
        Value::Object(mut object) => {
            if let Some(picos) = object.remove("picos").and_then(|picos| picos.as_i64()) {
                object.insert("amount".to_owned(), decimal(Decimal::new(picos, 12)));
            } else if let Some(amount) = object.get("amount").and_then(|amount| amount.as_str()?.parse().ok()) {
                object.insert("amount".to_owned(), decimal(amount));
            }
            object.into_iter().map(|(key, value)| (key, in_decimals(value))).collect()
        }
        other => other,
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::rules::dispatch::{MessageState, Wait};
    use providers::model::Action;

    fn message(news: News, host: &str) -> Message {
        Message {
            id: 7,
            channel: "ops".to_owned(),
            news,
            made_at: "2026-11-30T01:31:00Z".parse().unwrap(),
            host: host.to_owned(),
            state: MessageState::Sending,
            again: false,
            wait: Wait::default(),
        }
    }

    fn deed() -> News {
        let saves = vec![Rate::per_hour("21.5".parse().unwrap(), Currency::USD).unwrap()];
        News::Acted { by: "ann@lab".to_owned(), action: Action::Stop, name: "llama\u{1b}[31m-ft".to_owned(), saves }
    }

    fn text(messages: &[Message], language: Language) -> Text {
        channel_text(messages, language, Currency::USD, &TimeZone::get("Asia/Shanghai").unwrap())
    }

    #[test]
    fn a_deed_says_who_did_what_and_what_it_saves() {
        let told = text(&[message(deed(), "lab")], Language::English);
        assert_eq!(told.title, "rentop on lab");
        assert_eq!(told.lines, ["11-30 09:31 ann@lab: stop llama-ft, done, saves $21.50/h"]);
        let told = text(&[message(deed(), "lab")], Language::Chinese);
        assert_eq!(told.title, "rentop（lab）");
        assert_eq!(told.lines, ["11-30 09:31 ann@lab 已停止 llama-ft，节省 $21.50/时"]);
    }

    #[test]
    fn several_hosts_and_what_may_be_there_already_are_told() {
        let again = Message { again: true, ..message(News::Test, "lab") };
        let told = text(&[again, message(News::Test, "box")], Language::English);
        assert_eq!(told.title, "rentop on box, lab: 2 messages");
        assert!(told.lines[0].starts_with("11-30 09:31 [lab] ") && told.lines[1].starts_with("11-30 09:31 [box] "));
        assert!(told.lines[0].ends_with(" (this may have been told before)"), "{:?}", told.lines);
        assert!(!told.lines[1].ends_with(')'), "{:?}", told.lines);
    }

    #[test]
    fn the_object_for_programs_has_its_version_and_all_that_is_known() {
        let told = text(&[message(deed(), "lab")], Language::English).record;
        let expected = json!({
            "schema": "rentop.message/1", "id": "7", "at": "2026-11-30T01:31:00Z", "again": false, "host": "lab",
            "kind": "action", "state": "done", "text": "ann@lab: stop llama-ft, done, saves $21.50/h",
        });
        for (key, value) in expected.as_object().unwrap() {
            assert_eq!(&told[key], value, "{key}");
        }
        assert_eq!(told["details"]["action"], "stop");
        assert_eq!(told["details"]["by"], "ann@lab");
        assert_eq!(told["details"]["saves"], json!([{ "amount": "21.5", "currency": "USD" }]));
    }

    #[test]
    fn what_was_lost_is_told_as_a_number() {
        let lost = |count| message(News::Lost { count, since: "2026-11-29T01:31:00Z".parse().unwrap() }, "lab");
        for (count, language, expected) in [
            (1, Language::English, "1 message of 11-29 09:31 was never told here: see `rentop alerts --all`"),
            (12, Language::English, "12 messages since 11-29 09:31 were never told here: see `rentop alerts --all`"),
            (12, Language::Chinese, "自 11-29 09:31 起有 12 条消息未能送达此处：请运行 `rentop alerts --all` 查看"),
        ] {
            let told = text(&[lost(count)], language);
            assert_eq!(told.lines, [format!("11-30 09:31 {expected}")]);
            assert_eq!((&told.record["state"], &told.record["details"]["count"]), (&"lost".into(), &count.into()));
        }
    }
}
