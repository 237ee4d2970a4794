//! Alerts and the messages that channels are still to be told: an alert and its messages are written at one stroke.

use rusqlite::{Connection, params};

use super::{Durability, Ledger, LedgerError, row};
use crate::rules::alerts::{Alert, Stage};
use crate::rules::dispatch::{Message, MessageState};

/// So many ended alerts are told.
const RECENT: u32 = 200;

const KEEP: &str = "
    INSERT INTO alert (topic, since, ended, state) VALUES ($1, $2, $3, $4)
    ON CONFLICT (topic, since) DO UPDATE SET ended = excluded.ended, state = excluded.state WHERE alert.ended IS NULL";
const FORGET: &str = "DELETE FROM alert WHERE topic = $1 AND since = $2";
pub(super) const OPEN: &str = "SELECT state FROM alert WHERE ended IS NULL ORDER BY since";
pub(super) const ENDED: &str = "SELECT state FROM alert WHERE ended IS NOT NULL ORDER BY ended DESC LIMIT $1";
const KEEP_MESSAGE: &str = "
    INSERT INTO message (id, channel, waits, state) VALUES ($1, $2, $3, $4)
    ON CONFLICT (id) DO UPDATE SET waits = excluded.waits, state = excluded.state";
pub(super) const WAITING: &str = "SELECT state FROM message WHERE waits ORDER BY id";

impl Ledger {
    /// Writes down how alerts stand and what is to be told of it: all of it or nothing. What has ended stays as it
    /// is, whoever still thought that it was open; what ended before it was told leaves nothing behind.
    pub fn keep_alerts(&mut self, alerts: &[Alert], messages: &[Message]) -> Result<(), LedgerError> {
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
            keep_messages(transaction, messages)
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
        ledger.keep_alerts(&begun, &[]).unwrap();
        book.take(Vec::new(), &|_| false, now);
        let ended = book.take_unkept();
        ledger.keep_alerts(&ended, &[]).unwrap();
        ledger.keep_alerts(&begun, &[]).unwrap();
        assert_eq!(ledger.alerts().unwrap(), ended);
        let nothing = Alert { fired_at: None, ..ended[0].clone() };
        ledger.keep_alerts(&[nothing], &[]).unwrap();
        assert_eq!(ledger.alerts().unwrap(), []);
    }
}
