//! Anything that takes JSON: the body is the record itself, `rentop.message/1`, and any 2xx says that it was taken.

use jiff::Timestamp;

use super::{Open, Reply, Request, Text, Verdict};

/// A record is cut nowhere: one piece of news is short.
pub(super) const MOST_BYTES: usize = usize::MAX;

pub(super) fn request(open: &Open<'_>, text: &Text, _: Timestamp) -> Result<Request, String> {
    Ok(Request { address: open.address.clone(), body: text.record.clone(), bearer: None })
}

pub(super) fn read(reply: &Reply) -> Verdict {
    if reply.status.is_success() { Ok(()) } else { reply.by_status() }
}
