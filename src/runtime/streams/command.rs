//! How `ssh` is called. What the person's own config says stays honoured (names, jump hosts, keys, certificates, the
//! agent); what is set here is what a stream needs to be one, and that a host is known by our file alone.
//!
//! Options and their meaning as in ssh_config(5) of OpenSSH 9.2, read 2026-11-30. None of them is younger than OpenSSH
//! 7.6: an option that `ssh` does not know would end it.

use std::ffi::{OsStr, OsString};
use std::path::{MAIN_SEPARATOR, Path, PathBuf};
use std::process::Stdio;

use tokio::process::Command;

use crate::rules::streams::Target;

/// Whose key a host must have. Nothing else vouches for it: no DNS record, no address, no connection that is open
/// already, and a host that says that it has more keys adds none.
const HOST_KEY: [&str; 8] = [
    "StrictHostKeyChecking=accept-new",
    "CheckHostIP=no",
    "HashKnownHosts=no",
    "UpdateHostKeys=no",
    "VerifyHostKeyDNS=no",
    "NoHostAuthenticationForLocalhost=no",
    "ControlMaster=no",
    "ControlPath=none",
];

/// A command that nobody sits before: it asks nothing, forwards nothing, runs nothing here, and notices a dead link.
/// Not `LogLevel=ERROR`, which hides that a link is dead.
const UNATTENDED: [&str; 12] = [
    "BatchMode=yes",
    "ConnectTimeout=10",
    "ServerAliveInterval=5",
    "ServerAliveCountMax=2",
    "LogLevel=INFO",
    "VisualHostKey=no",
    "ClearAllForwardings=yes",
    "ForwardAgent=no",
    "ForwardX11=no",
    "Tunnel=no",
    "PermitLocalCommand=no",
    "RemoteCommand=none",
];

/// The program that connects: what was named, else `ssh` wherever the path has it.
pub fn program(named: Option<OsString>) -> OsString {
    let Some(named) = named.filter(|named| !named.is_empty()) else { return OsString::from("ssh") };
    // A path counts from the folder in which we were started, whichever one it runs in.
    let is_path = named.to_string_lossy().contains(['/', MAIN_SEPARATOR]);
    let absolute = is_path.then(|| std::path::absolute(&named).ok()).flatten();
    absolute.map_or(named, PathBuf::into_os_string)
}

/// What every call has in common.
#[derive(Clone, Debug)]
pub struct Ssh {
    /// `None`: nothing is connected to.
    program: Option<OsString>,
    /// The folder of the file of host keys. `ssh` runs in it and is told the bare name, since a path of whatever
    /// signs cannot be written as an option: blanks part it, `%` and `${` stand for something else, and how they are
    /// quoted changed between versions.
    folder: PathBuf,
    file: OsString,
}

impl Ssh {
    pub fn new(program: Option<OsString>, known_hosts: &Path) -> Self {
        let folder = known_hosts.parent().filter(|folder| !folder.as_os_str().is_empty());
        let file = known_hosts.file_name().unwrap_or(OsStr::new(super::KNOWN_HOSTS)).to_owned();
        Ssh { program, folder: folder.unwrap_or(Path::new(".")).to_owned(), file }
    }

    /// The same by another program.
    pub fn by(self, program: Option<OsString>) -> Self {
        Ssh { program, ..self }
    }

    /// Runs a command there until it ends or is dropped, with nothing to read. `None` when nothing is connected to.
    pub fn unattended(&self, target: &Target, remote: &str) -> Option<Command> {
        let mut command = self.command(target, self.program.as_ref()?, &UNATTENDED, &["-T"]);
        command.arg(remote);
        command.stdin(Stdio::null()).stdout(Stdio::piped()).stderr(Stdio::piped()).kill_on_drop(true);
        // What it says is read, so that it is said in one language.
        command.env("LC_ALL", "C");
        // `BatchMode` is not handed on to the `ssh` of a jump host: whatever that one would ask on our screen is
        // answered with no. OpenSSH 8.4 and later.
        command.env("SSH_ASKPASS", "false").env("SSH_ASKPASS_REQUIRE", "force");
        // What is typed to interrupt somebody else is not meant for it.
        #[cfg(unix)]
        command.process_group(0);
        Some(command)
    }

    /// Opens a shell there, on this terminal.
    pub fn shell(&self, target: &Target) -> Command {
        let program = self.program.as_deref().unwrap_or(OsStr::new("ssh"));
        self.command(target, program, &[], &[])
    }

    fn command(&self, target: &Target, program: &OsStr, options: &[&str], flags: &[&str]) -> Command {
        let mut command = Command::new(program);
        command.current_dir(&self.folder).args(flags);
        for option in options.iter().chain(&HOST_KEY) {
            command.arg("-o").arg(option);
        }
        let mut file = OsString::from("UserKnownHostsFile=");
        file.push(&self.file);
        command.arg("-o").arg(file).arg("-o").arg(format!("HostKeyAlias={}", target.alias));
        command.args(target.endpoint.arguments());
        command
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;
    use providers::model::{Identity, ResourceKind, SshEndpoint};
    use rstest::rstest;

    use super::*;

    fn target(user: &str, host: &str, port: u16, id: &str) -> Option<Target> {
        let identity = Identity { account: "me".into(), kind: ResourceKind::Instance, id: id.into(), generation: 0 };
        Some(Target::new(&"vast".into(), &identity, &SshEndpoint::new(user, host, port, true)?))
    }

    fn arguments(command: &Command) -> Vec<String> {
        command.as_std().get_args().map(|argument| argument.to_str().unwrap().to_owned()).collect()
    }

    #[test]
    fn a_stream_is_called_with_exactly_these_options() {
        let ssh = Ssh::new(Some("ssh".into()), Path::new("/state/known_hosts"));
        let command = ssh.unattended(&target("root", "192.0.2.45", 20000, "m1").unwrap(), "echo hello").unwrap();
        let options: Vec<&str> = UNATTENDED.into_iter().chain(HOST_KEY).collect();
        let mut expected = vec!["-T"];
        expected.extend(options.iter().flat_map(|option| ["-o", option]));
        expected.extend(["-o", "UserKnownHostsFile=known_hosts", "-o", "HostKeyAlias=rentop.vast.me.m1.0"]);
        expected.extend(["-p", "20000", "--", "root@192.0.2.45", "echo hello"]);
        assert_eq!(arguments(&command), expected);
        assert_eq!(command.as_std().get_current_dir(), Some(Path::new("/state")));
    }

    #[test]
    fn a_shell_checks_the_same_key_and_may_ask() {
        let ssh = Ssh::new(None, Path::new("/state/known_hosts"));
        let target = target("root", "192.0.2.45", 20000, "m1").unwrap();
        let arguments = arguments(&ssh.shell(&target));
        for expected in ["UserKnownHostsFile=known_hosts", "HostKeyAlias=rentop.vast.me.m1.0"].iter().chain(&HOST_KEY) {
            assert!(arguments.iter().any(|argument| argument == expected), "{expected}: {arguments:?}");
        }
        assert!(!arguments.iter().any(|argument| argument.contains("BatchMode") || argument == "-T"), "{arguments:?}");
        assert_eq!(arguments.last().unwrap(), "root@192.0.2.45");
        assert!(ssh.unattended(&target, "echo").is_none());
    }

    #[rstest]
    #[case(None, "ssh")]
    #[case(Some(""), "ssh")]
    #[case(Some("dbclient"), "dbclient")]
    #[case(Some("/opt/ssh"), "/opt/ssh")]
    fn the_program_is_what_was_named(#[case] named: Option<&str>, #[case] expected: &str) {
        assert_eq!(program(named.map(OsString::from)), expected);
    }

    #[test]
    fn a_path_counts_from_where_we_were_started() {
        assert_eq!(program(Some("./ssh".into())), std::env::current_dir().unwrap().join("ssh"));
    }

    proptest! {
        /// Whatever a provider says, it is one word behind `--`, and of no other shape than a name at an address.
        #[test]
        fn nothing_that_a_provider_says_becomes_an_option_or_a_command(
            user in "\\PC{0,20}|[-a-z%@ ;$]{0,12}",
            host in "\\PC{0,20}|[-a-z0-9.:%@/ ;$]{0,20}",
            port in any::<u16>(),
            id in "\\PC{0,20}",
        ) {
            let Some(target) = target(&user, &host, port, &id) else { return Ok(()) };
            let ssh = Ssh::new(Some("ssh".into()), Path::new("/state/known_hosts"));
            let usual = ssh.unattended(&super::tests::target("root", "192.0.2.45", 22, "m1").unwrap(), "echo").unwrap();
            let (usual, said) = (arguments(&usual), arguments(&ssh.unattended(&target, "echo").unwrap()));
            prop_assert_eq!(said.len(), usual.len());
            let place = said.iter().position(|argument| argument == "--").unwrap();
            prop_assert_eq!(place, usual.len() - 3);
            let plain = |text: &str| text.chars().all(|c| c.is_ascii_alphanumeric() || "-_.:@".contains(c));
            prop_assert!(plain(&said[place + 1]) && !said[place + 1].starts_with('-'));
            for (at, (said, usual)) in said.iter().zip(&usual).enumerate() {
                let varies = said.starts_with("HostKeyAlias=rentop.vast.me.") || at == place + 1 || at == place - 1;
                prop_assert!(said == usual || varies, "{} in place of {}", said, usual);
            }
            prop_assert!(said[place - 1].parse::<u16>().is_ok_and(|port| port > 0));
            let alias = said[place - 3].strip_prefix("HostKeyAlias=").unwrap();
            let known = |c: char| c.is_ascii_lowercase() || c.is_ascii_digit() || "-._".contains(c);
            prop_assert!(alias.chars().all(known));
        }
    }
}
