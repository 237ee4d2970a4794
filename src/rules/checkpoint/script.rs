//! What is asked of a shell on a machine. Nothing but a POSIX shell, find, xargs, tar, sha256sum and, where it is there,
//! stat is counted on, each as in GNU and in BusyBox (coreutils 9.1, BusyBox 1.35, tried 2026-12-01). All of it runs in
//! `/` on paths that begin with `./`, so that no name is taken for an option.

use super::listing::RemotePath;

/// Names with a line break go as hexadecimal digits.
const LIST: &str = r#"
LC_ALL=C; export LC_ALL
nl='
'; export nl
hex='hex() { printf %s "$1" | od -An -v -tx1 | tr -d " \n"; }'
# Of each its mode, size, time and inode, by a tool that tells them.
told=$hex'
for f do s=$(stat -c "%f %s %Y %i" "$f") || exit 1; printf "E %s %s\n" "$s" "$(hex "$f")"; done'
# The same without such a tool.
seen=$hex'
for f do
    if [ -d "$f" ]; then s="4000 0 - -"
    elif [ -f "$f" ]; then s=$(wc -c < "$f") || exit 1; s="8000 $((s)) - -"
    else s="1000 0 - -"; fi
    case $f in *"$nl"*) printf "E %s %s\n" "$s" "$(hex "$f")" ;; *) printf "e %s %s\n" "$s" "$f" ;; esac
done'
links=$hex'
for f do
    t=$(readlink "$f" && echo x) || { command -v readlink > /dev/null 2>&1 || echo "lacks readlink"; exit 1; }
    t=${t%??}
    case $f$t in *"$nl"*) printf "L %s %s\n" "$(hex "$f")" "$(hex "$t")" ;; *) printf "l %s\nt %s\n" "$f" "$t" ;; esac
done'
list() {
    if [ -L "$2" ]; then
        [ -d "$2" ] || { echo "missing $1 $(readlink "$2" | tr -d '\n')"; return; }
        set -- "$1" "$2/."
    elif [ ! -e "$2" ]; then echo "missing $1"; return; fi
    if command -v stat > /dev/null 2>&1; then
        find "$2" ! -type l ! -path "*$nl*" -exec stat -c 'e %f %s %Y %i %n' {} + || echo failed
        find "$2" ! -type l -path "*$nl*" -exec sh -c "$told" sh {} + || echo failed
    else
        find "$2" ! -type l -exec sh -c "$seen" sh {} + || echo failed
    fi
    find "$2" -type l -exec sh -c "$links" sh {} + || echo failed
}
"#;

/// Lists everything below the paths, after a word on each of the programs that are needed.
pub fn list(paths: &[RemotePath], needed: &[&str]) -> String {
    let mut script = LIST.to_owned();
    for tool in needed {
        script.push_str(&format!("command -v {tool} > /dev/null 2>&1 || echo 'lacks {tool}'\n"));
    }
    script.push_str("command -v rsync > /dev/null 2>&1 && echo 'has rsync'\necho \"now $(date +%s)\"\n");
    for (index, path) in paths.iter().enumerate() {
        script.push_str(&format!("list {index} {}\n", word(path)));
    }
    script.push_str("echo end");
    script
}

/// Archives of the files whose names come on the input, each with a NUL behind it.
pub const TAR: &str = "LC_ALL=C; export LC_ALL; xargs -0 tar -cf -";

/// SHA-256 of the files whose names come on the input, a line each, the name behind it.
pub const SUMS: &str = "LC_ALL=C; export LC_ALL; xargs -0 sha256sum";

/// The same without the names, in their order: for names that a line cannot hold.
pub const SUMS_IN_ORDER: &str =
    "xargs -0 sh -c 'for f do { [ -f \"$f\" ] && sha256sum < \"$f\"; } || echo \"?  -\"; done' sh";

/// The rest of the file whose name comes on the input.
pub fn rest(from: u64) -> String {
    format!("exec xargs -0 tail -c +{}", from.saturating_add(1))
}

/// A command of the person's own. What it says on its output is nobody's.
pub fn command(line: &str) -> String {
    format!("{} > /dev/null", output_of(line))
}

/// The same, heard.
pub fn output_of(line: &str) -> String {
    format!("sh -c {} < /dev/null", shell_words::quote(line))
}

/// Where the paths lie: of each its number, device and mount point; then everything is brought to the disk.
pub fn mounts(paths: &[RemotePath]) -> String {
    let mut script = "LC_ALL=C; export LC_ALL\n\
        at() { printf '%s ' \"$1\"; df -P \"$2\" | sed -n '$p'; }\n\
        at / .\n"
        .to_owned();
    for (index, path) in paths.iter().enumerate() {
        script.push_str(&format!("at {index} {}\n", word(path)));
    }
    script.push_str("sync && echo synced");
    script
}

/// A path of a recipe, quoted for the shell.
fn word(path: &RemotePath) -> String {
    shell_words::quote(&String::from_utf8_lossy(&path.argument())).into_owned()
}
