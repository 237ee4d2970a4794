//! `rentop verify`: whether a copy still is what was verified.

use std::path::PathBuf;

use jiff::Timestamp;
use serde::Serialize;

use super::table::print_json;
use super::{Exit, Stop, tell};
use crate::rules::checkpoint::listing::RemotePath;
use crate::rules::checkpoint::manifest::NAME;
use crate::runtime::checkpoint::{Checked, check};
use crate::ui::format;

#[derive(Debug, clap::Args)]
pub struct VerifyArgs {
    /// The folder of a copy, in which its manifest lies.
    #[arg(value_name = "PATH")]
    pub path: PathBuf,
    /// JSON, for scripts.
    #[arg(long)]
    pub json: bool,
}

#[derive(Serialize)]
struct Answer<'c> {
    schema: &'static str,
    path: String,
    ok: bool,
    verified_at: Timestamp,
    manifest_sha256: &'c str,
    files: u64,
    bytes: u64,
    missing: &'c [RemotePath],
    differs: &'c [RemotePath],
}

pub fn run(args: &VerifyArgs) -> Result<Exit, Stop> {
    let shown = args.path.display();
    let checked = check(&args.path).map_err(|error| Stop::usage(format!("{shown}: no {NAME}: {error}")))?;
    if args.json {
        print_json(&answer(&shown.to_string(), &checked))?;
    } else if checked.is_whole() {
        tell(format_args!("ok, {} files, {}", checked.files, format::gib(checked.bytes)));
    } else {
        checked.missing.iter().for_each(|path| tell(format_args!("missing: {}", below(path))));
        checked.differs.iter().for_each(|path| tell(format_args!("differs: {}", below(path))));
    }
    Ok(if checked.is_whole() { Exit::Done } else { Exit::Failed })
}

fn answer<'c>(path: &str, checked: &'c Checked) -> Answer<'c> {
    Answer {
        schema: "rentop.verify/1",
        path: path.to_owned(),
        ok: checked.is_whole(),
        verified_at: checked.verified_at,
        manifest_sha256: &checked.manifest,
        files: checked.files,
        bytes: checked.bytes,
        missing: &checked.missing,
        differs: &checked.differs,
    }
}

/// As it lies below the folder.
fn below(path: &RemotePath) -> String {
    path.to_string().trim_start_matches('/').to_owned()
}
