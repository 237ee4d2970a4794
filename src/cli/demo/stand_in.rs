//! The demo's `ssh`: this program under another name. What it is asked to run on a simulated machine runs here, in a
//! folder with made-up results, so that a checkpoint in the demo is one, by the same code and with real bytes.

use std::ffi::OsString;
use std::fs::{self, File};
use std::io::{self, Read, Write};
use std::path::{Path, PathBuf};
use std::process::{Command, ExitCode, Stdio};
use std::time::{Duration, Instant, SystemTime};

/// What this program is called when it is the stand-in; beside it are the folders of the machines.
const NAME: &str = "rentop-demo-ssh";
/// As `ssh` ends when it failed itself.
const FAILED: u8 = 255;
/// How fast results come from a machine, in bytes a second: slow enough to be seen.
const PACE: f64 = 2e6;
const CHUNK: usize = 32 << 10;

/// The process that works on each machine.
const JOB: &str = "proc/4711";
/// What a machine holds: a path, and how many bytes of which nobody knows the meaning.
const WEIGHTS: [(&str, usize); 2] = [("workspace/out/step-1000.pt", 3 << 20), ("workspace/out/step-2000.pt", 11 << 20)];
/// Small files, some with names that a shell takes for something else.
const TEXTS: [(&str, &str); 6] = [
    ("workspace/train/train.py", "print('made up')\n"),
    ("workspace/train/notes.md", "# Made up, as all of this machine\n"),
    ("workspace/out/config.json", "{ \"layers\": 12, \"width\": 768 }\n"),
    ("workspace/out/loss curve.csv", "step,loss\n1000,2.31\n2000,1.87\n"),
    ("workspace/out/it's final.json", "{ \"loss\": 1.87 }\n"),
    ("workspace/out/样本 1.txt", "一个虚构的样本\n"),
];
/// Programs that stand before those of this computer.
const PROGRAMS: &[(&str, &str)] = &[
    ("nvidia-smi", "#!/bin/sh\necho '4711, 18034'\n"),
    // UNSURE: what macOS lacks, by its manual pages of stat(1) and shasum(1), read 2026-12-01, and not tried.
    #[cfg(target_os = "macos")]
    (
        "stat",
        "#!/bin/sh\nf=$(printf %s \"$2\" | sed 's/%f/%Xp/; s/%s/%z/; s/%Y/%m/; s/%n/%N/')\nshift 2\n\
         exec /usr/bin/stat -f \"$f\" \"$@\"\n",
    ),
    #[cfg(target_os = "macos")]
    ("sha256sum", "#!/bin/sh\nexec shasum -a 256 \"$@\"\n"),
];

/// Makes the stand-in in a folder and returns what to call; `None` where there can be none.
pub fn set_up(folder: &Path) -> io::Result<Option<OsString>> {
    fs::create_dir_all(folder)?;
    #[cfg(unix)]
    {
        let program = folder.join(NAME);
        std::os::unix::fs::symlink(std::env::current_exe()?, &program)?;
        Ok(Some(program.into_os_string()))
    }
    #[cfg(not(unix))]
    Ok(None)
}

/// The folder of the machines, where this program was called as their `ssh`.
pub fn called() -> Option<PathBuf> {
    let program = PathBuf::from(std::env::args_os().next()?);
    (program.file_name()? == NAME).then(|| program.parent().map(Path::to_owned))?
}

/// Does what `ssh` was called for, as far as it is one of our own scripts.
pub fn run(machines: &Path) -> ExitCode {
    let arguments: Vec<String> = std::env::args_os().skip(1).map(|word| word.to_string_lossy().into_owned()).collect();
    let ran = match asked(&arguments) {
        Some((alias, script)) => machine(machines, alias).and_then(|machine| run_there(&machine, &script)),
        None => Err(io::Error::other("the demo's ssh runs scripts of rentop alone")),
    };
    ran.map_or_else(
        |error| {
            // Who called it reads it there, or has ended.
            drop(writeln!(io::stderr(), "{error}"));
            ExitCode::from(FAILED)
        },
        |code| ExitCode::from(u8::try_from(code).unwrap_or(FAILED)),
    )
}

/// The machine that is meant, and what is to run there; `None` for what is no script of ours.
fn asked(arguments: &[String]) -> Option<(&str, String)> {
    let alias = arguments.iter().find_map(|word| word.strip_prefix("HostKeyAlias="))?;
    let plain = |c: char| c.is_ascii_lowercase() || c.is_ascii_digit() || matches!(c, '-' | '.' | '_');
    let is_ours = alias.starts_with("rentop.") && alias.chars().all(plain);
    let words = shell_words::split(arguments.last()?).ok()?;
    let [exec, shell, option, script] = &words[..] else { return None };
    let script = script.strip_prefix("cd /\n").filter(|_| [exec, shell, option] == ["exec", "sh", "-c"])?;
    is_ours.then(|| (alias, script.to_owned()))
}

/// Runs a script in the folder that stands for the machine's root, with nothing of the person's own but the path.
fn run_there(machine: &Path, script: &str) -> io::Result<i32> {
    let own = std::env::var_os("PATH").unwrap_or_default();
    let path = std::env::join_paths([machine.join("usr/bin")].into_iter().chain(std::env::split_paths(&own)));
    let mut command = Command::new("/bin/sh");
    command.arg("-c").arg(script).current_dir(machine).env_clear();
    command.env("PATH", path.map_err(io::Error::other)?);
    // Else the archiver of macOS adds files of its own.
    command.env("COPYFILE_DISABLE", "1");
    let mut child = command.stdout(Stdio::piped()).spawn()?;
    let passed_on = match child.stdout.take() {
        Some(output) => slowly(output, io::stdout().lock()),
        None => Ok(()),
    };
    if passed_on.is_err() {
        // Nobody listens any more.
        child.kill()?;
    }
    Ok(child.wait()?.code().unwrap_or(i32::from(FAILED)))
}

/// Passes on what a machine says, no faster than results come from one.
fn slowly(mut from: impl Read, mut to: impl Write) -> io::Result<()> {
    let (began, mut done, mut chunk) = (Instant::now(), 0, vec![0; CHUNK]);
    loop {
        let read = match from.read(&mut chunk) {
            Ok(0) => return Ok(()),
            Ok(read) => read,
            Err(error) if error.kind() == io::ErrorKind::Interrupted => continue,
            Err(error) => return Err(error),
        };
        to.write_all(&chunk[..read])?;
        to.flush()?;
        done += read;
        if let Some(early) = Duration::from_secs_f64(done as f64 / PACE).checked_sub(began.elapsed()) {
            std::thread::sleep(early);
        }
    }
}

/// The folder that stands for a machine's root, made when it is first asked for.
fn machine(machines: &Path, alias: &str) -> io::Result<PathBuf> {
    let machine = machines.join(alias);
    if !machine.exists() {
        // In one step: another one may be asked for the same machine at the same time.
        let new = tempfile::Builder::new().prefix(".new-").tempdir_in(machines)?;
        furnish(new.path(), alias)?;
        match fs::rename(new.path(), &machine) {
            Err(error) if !machine.exists() => return Err(error),
            _ => {}
        }
    }
    Ok(machine)
}

fn furnish(machine: &Path, alias: &str) -> io::Result<()> {
    let place = |path: &str| {
        let place = machine.join(path);
        place.parent().map_or(Ok(()), fs::create_dir_all).map(|()| place)
    };
    for (number, (path, bytes)) in (0..).zip(WEIGHTS) {
        let mut file = File::create(place(path)?)?;
        file.write_all(&noise(&format!("{alias} {path}"), bytes))?;
        // They have been there for a while: whatever is copied was not written just now.
        file.set_modified(SystemTime::now() - Duration::from_secs(60 * (25 - 10 * number)))?;
    }
    for (path, text) in TEXTS {
        let mut file = File::create(place(path)?)?;
        file.write_all(text.as_bytes())?;
        file.set_modified(SystemTime::now() - Duration::from_secs(60 * 40))?;
    }
    #[cfg(unix)]
    {
        use std::os::unix::fs::{PermissionsExt, symlink};
        symlink("step-2000.pt", place("workspace/out/latest.pt")?)?;
        symlink("/workspace/train", place(&format!("{JOB}/cwd"))?)?;
        symlink("/dev/nvidia0", place(&format!("{JOB}/fd/5"))?)?;
        for (name, text) in PROGRAMS {
            let program = place(&format!("usr/bin/{name}"))?;
            fs::write(&program, text)?;
            fs::set_permissions(&program, fs::Permissions::from_mode(0o700))?;
        }
    }
    Ok(())
}

/// Bytes that nothing makes smaller, the same each time: xorshift, from a seed by FNV-1a.
fn noise(seed: &str, bytes: usize) -> Vec<u8> {
    let mut state = seed
        .bytes()
        .fold(0xcbf2_9ce4_8422_2325_u64, |hash, byte| (hash ^ u64::from(byte)).wrapping_mul(0x0100_0000_01b3));
    let mut noise = Vec::with_capacity(bytes + 8);
    while noise.len() < bytes {
        state ^= state << 13;
        state ^= state >> 7;
        state ^= state << 17;
        noise.extend_from_slice(&state.to_le_bytes());
    }
    noise.truncate(bytes);
    noise
}

#[cfg(test)]
mod tests {
    use rstest::rstest;

    use super::*;

    fn arguments(alias: &str, command: &str) -> Vec<String> {
        ["-T", "-o", &format!("HostKeyAlias={alias}"), "--", "root@192.0.2.10", command].map(str::to_owned).to_vec()
    }

    #[test]
    fn a_script_of_ours_runs_where_the_machine_is() {
        let arguments = arguments("rentop.runpod.team.m1.0", "exec sh -c 'cd /\necho '\\''here'\\'''");
        assert_eq!(asked(&arguments), Some(("rentop.runpod.team.m1.0", "echo 'here'".to_owned())));
    }

    #[rstest]
    #[case::command("rentop.runpod.team.m1.0", "rm -r workspace")]
    #[case::shell("rentop.runpod.team.m1.0", "")]
    #[case::elsewhere("rentop.runpod.team.m1.0", "exec sh -c 'cd /home\nls'")]
    #[case::more("rentop.runpod.team.m1.0", "exec sh -c 'cd /\nls' ; ls")]
    #[case::other_shell("rentop.runpod.team.m1.0", "exec bash -c 'cd /\nls'")]
    #[case::out_of_the_folder("../rentop.x", "exec sh -c 'cd /\nls'")]
    #[case::into_another("rentop./x", "exec sh -c 'cd /\nls'")]
    #[case::another_host("github.com", "exec sh -c 'cd /\nls'")]
    fn whatever_is_no_script_of_ours_is_refused(#[case] alias: &str, #[case] command: &str) {
        assert_eq!(asked(&arguments(alias, command)), None);
    }

    #[cfg(unix)]
    #[test]
    fn a_machine_has_the_same_results_each_time() {
        let folder = tempfile::tempdir().unwrap();
        let first = machine(folder.path(), "rentop.runpod.team.m1.0").unwrap();
        let weights = fs::read(first.join(WEIGHTS[0].0)).unwrap();
        assert_eq!(weights.len(), WEIGHTS[0].1);
        fs::write(first.join("workspace/out/new"), "kept").unwrap();
        let again = machine(folder.path(), "rentop.runpod.team.m1.0").unwrap();
        assert!(again.join("workspace/out/new").exists());
        let other = machine(folder.path(), "rentop.runpod.team.m2.0").unwrap();
        assert_ne!(fs::read(other.join(WEIGHTS[0].0)).unwrap(), weights);
        assert_eq!(fs::read_dir(folder.path()).unwrap().count(), 2);
    }

    #[test]
    fn everything_is_passed_on_as_it_is() {
        let (from, mut to) = (noise("x", 100_000), Vec::new());
        slowly(&from[..], &mut to).unwrap();
        assert!(to == from);
    }
}
