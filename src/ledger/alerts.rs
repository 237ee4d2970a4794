//! Alerts and the messages that channels are still to be told: an alert and its messages are written at one stroke.

use jiff::{SignedDuration, Timestamp};
use rusqlite::{Connection, params};

use super::{Durability, Ledger, LedgerError, row};
use crate::rules::alerts::{Alert, Stage};
use crate::rules::dispatch::{Message, MessageState};

/// So many ended alerts are told.
const RECENT: u32 = 200;

/// So long an alert is known after its end.
const ENDED_KEPT: SignedDuration = SignedDuration::from_hours(90 * 24);
/// So long a message is known after it was made, once it is sent or given up: no process thinks for longer that it waits.
const DONE_KEPT: SignedDuration = SignedDuration::from_hours(7 * 24);

const KEEP: &str = "
    INSERT INTO alert (topic, since, ended, state) VALUES ($1, $2, $3, $4)
    ON CONFLICT (topic, since) DO UPDATE SET ended = excluded.ended, state = excluded.state WHERE alert.ended IS NULL";
const FORGET: &str = "DELETE FROM alert WHERE topic = $1 AND since = $2";
pub(super) const OPEN: &str = "SELECT state FROM alert WHERE ended IS NULL ORDER BY since";
pub(super) const ENDED: &str = "SELECT state FROM alert WHERE ended IS NOT NULL ORDER BY ended DESC LIMIT $1";
const KEEP_MESSAGE: &str = "
    INSERT INTO message (id, channel, waits, state) VALUES ($1, $2, $3, $4)
    ON CONFLICT (id) DO UPDATE SET waits = excluded.waits, state = excluded.state";
const OLD_ENDS: &str = "DELETE FROM alert WHERE ended < $1";
const OLD_MESSAGES: &str = "DELETE FROM message WHERE waits = 0 AND id < $1";
pub(super) const WAITING: &str = "SELECT state FROM message WHERE waits ORDER BY id";

impl Ledger {
    /// Writes down how alerts stand and what is to be told of it: all of it or nothing. What has ended stays as it
    /// is, whoever still thought that it was open; what ended before it was told leaves nothing behind. What is long
    /// done with is forgotten.
    pub fn keep_alerts(&mut self, alerts: &[Alert], messages: &[Message], now: Timestamp) -> Result<(), LedgerError> {
        self.write(Durability::Now, |transaction| {
            for alert in alerts {
                let ended = match alert.stage {
                    Stage::Resolved { at } => Some(row::millis(at)),
                    _ => None,
                };
                let topic = serde_json::to_string(&alert.topic)?;
                if alert.came_to_nothing() {
                    transaction.prepare_cached(FORGET)?.execute(params![topic, alert.since.as_microsecond()])?;
                    continue;
                }
                let values = params![topic, alert.since.as_microsecond(), ended, row::write(alert)?];
                transaction.prepare_cached(KEEP)?.execute(values)?;
            }
            keep_messages(transaction, messages)?;
            transaction.prepare_cached(OLD_ENDS)?.execute([row::millis(now - ENDED_KEPT)])?;
            transaction.prepare_cached(OLD_MESSAGES)?.execute([Message::first_id(now - DONE_KEPT)])?;
            Ok(())
        })
    }

    /// Writes down how messages fare, before or after they are sent.
    pub fn keep_messages(&mut self, messages: &[Message]) -> Result<(), LedgerError> {
        self.write(Durability::Now, |transaction| keep_messages(transaction, messages))
    }

    /// Alerts that are open, and the latest that ended.
    pub fn alerts(&self) -> Result<Vec<Alert>, LedgerError> {
        let mut alerts = Vec::new();
        let mut open = self.main.prepare_cached(OPEN)?;
        let mut rows = open.query([])?;
        while let Some(found) = rows.next()? {
            alerts.extend(row::read::<Alert>(&found.get::<_, String>(0)?));
        }
        let mut ended = self.main.prepare_cached(ENDED)?;
        let mut rows = ended.query([RECENT])?;
        while let Some(found) = rows.next()? {
            alerts.extend(row::read::<Alert>(&found.get::<_, String>(0)?));
        }
        Ok(alerts)
    }

    /// What channels are still to be told, the oldest first.
    pub fn messages(&self) -> Result<Vec<Message>, LedgerError> {
        let mut statement = self.main.prepare_cached(WAITING)?;
        let mut rows = statement.query([])?;
        let mut messages = Vec::new();
        while let Some(found) = rows.next()? {
            messages.extend(row::read::<Message>(&found.get::<_, String>(0)?));
        }
        Ok(messages)
    }
}

fn keep_messages(connection: &Connection, messages: &[Message]) -> Result<(), LedgerError> {
    for message in messages {
        let waits = matches!(message.state, MessageState::Queued | MessageState::Sending);
        let values = params![message.id, message.channel, waits, row::write(message)?];
        connection.prepare_cached(KEEP_MESSAGE)?.execute(values)?;
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use providers::money::{Currency, Rate};

    use super::*;
    use crate::ledger::samples::{folder, open};
    use crate::rules::alerts::{Alerts, Finding, Matter};

    #[test]
    fn what_has_ended_stays_ended_and_what_came_to_nothing_is_forgotten() {
        let folder = folder();
        let mut ledger = open(&folder);
        let rate = Rate::from_picos(1, Currency::USD);
        let now = "2026-11-30T10:00:00Z".parse().unwrap();
        let mut book = Alerts::default();
        book.take(vec![Finding::now(Matter::Burn { burn: rate, limit: rate })], &|_| false, now);
        let begun = book.take_unkept();
        ledger.keep_alerts(&begun, &[], now).unwrap();
        book.take(Vec::new(), &|_| false, now);
        let ended = book.take_unkept();
        ledger.keep_alerts(&ended, &[], now).unwrap();
        ledger.keep_alerts(&begun, &[], now).unwrap();
        assert_eq!(ledger.alerts().unwrap(), ended);
        let nothing = Alert { fired_at: None, ..ended[0].clone() };
        ledger.keep_alerts(&[nothing], &[], now).unwrap();
        assert_eq!(ledger.alerts().unwrap(), []);
    }

    #[test]
    fn what_is_long_done_with_is_forgotten_and_what_is_open_or_waits_never() {
        use crate::rules::dispatch::{News, Wait};
        let folder = folder();
        let mut ledger = open(&folder);
        let now: Timestamp = "2026-11-30T10:00:00Z".parse().unwrap();
        let days = |days: i64| now - SignedDuration::from_hours(24 * days);
        let rate = Rate::from_picos(1, Currency::USD);
        let matter = Matter::Burn { burn: rate, limit: rate };
        let alert = |since, stage| Alert {
            topic: matter.topic(),
            matter: matter.clone(),
            stage,
            since,
            fired_at: Some(since),
            told_at: Some(since),
            told_to: Default::default(),
            moot: None,
        };
        let ended = |at| alert(at, Stage::Resolved { at });
        let message = |at, state| Message {
            id: Message::first_id(at),
            channel: "phone".to_owned(),
            news: News::Test,
            made_at: at,
            host: "desk".to_owned(),
            state,
            again: false,
            wait: Wait::default(),
        };
        let dropped = MessageState::Dropped { why: "no".to_owned() };
        let alerts = [alert(days(300), Stage::Firing), ended(days(91)), ended(days(89))];
        let messages = [
            message(days(30), MessageState::Queued),
            message(days(9), MessageState::Sent),
            message(days(8), dropped.clone()),
            message(days(6), MessageState::Sent),
            message(days(5), dropped),
        ];
        ledger.keep_alerts(&alerts, &messages, days(0)).unwrap();
        assert_eq!(ledger.alerts().unwrap(), [alerts[0].clone(), alerts[2].clone()]);
        let ids: Vec<i64> = ledger
            .main
            .prepare("SELECT id FROM message ORDER BY id")
            .unwrap()
            .query_map([], |row| row.get(0))
            .unwrap()
            .collect::<Result<_, _>>()
            .unwrap();
        assert_eq!(ids, [messages[0].id, messages[3].id, messages[4].id]);
        for (sql, index) in [(OLD_ENDS, "alert_ended"), (OLD_MESSAGES, "message_waits")] {
            let plan = format!("EXPLAIN QUERY PLAN {}", sql.replace("$1", "0"));
            let plan: String = ledger.main.query_row(&plan, [], |row| row.get(3)).unwrap();
            assert!(plan.contains(index), "{plan}");
        }
    }
}
