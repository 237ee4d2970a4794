# What runs on a machine, for as long as somebody reads. It only reads.
#
# It is handed to the login shell of the machine as one line in single quotes: comments are taken out and lines are
# joined, so each line ends where a space may follow. No single quote, exclamation mark, or backslash may stand in
# it, for sh, bash, zsh, fish and csh take them differently. Words in braces are put in by the program.
#
# Each look is `@look`, sections that begin with `@name`, and `@end`. A vendor's tool closes its section with
# `@exit` and its exit code.
exec 2>/dev/null;
export LC_ALL=C PYTHONDONTWRITEBYTECODE=1 PATH="$PATH:/usr/local/bin:/usr/local/sbin:/usr/bin:/bin:/usr/sbin:/sbin:/usr/local/Ascend/driver/tools:/opt/rocm/bin:/opt/hyhal/bin:/usr/local/corex/bin:/usr/lib/wsl/lib";
# A file system of the user's shall not be busy because of us.
cd /;

# Old kinds of timeout have no -k; some machines have none at all.
limit=; held=;
if timeout -k 2 9 true; then limit="timeout -k 2 {PATIENCE}"; elif timeout 9 true; then limit="timeout {PATIENCE}"; else held=no; fi;

run() { $limit "$@" </dev/null 2>&1; e=$?; echo; echo "@exit $e"; };

# Hundredths of a second of a clock that nobody sets: `123.45` becomes 12345.
clock() { if read -r now rest </proc/uptime; then now=${now%%.*}${now#*.}; else now=$((${now:-0}+{PACE}00)); fi; };

# Whoever listens holds our input open, and never writes: when it ends, so do we, without having to write to nobody.
# An input that has ended before the first rest was never held.
rest() {
  if [ "$held" = no ]; then sleep $1; return; fi;
  clock; rests=$now;
  timeout $1 cat >/dev/null; e=$?;
  clock;
  case $held:$e in
    *:124|*:143) held=yes; return;;
    yes:0) exit;;
    :0) if [ $((now-rests)) -ge 20 ]; then exit; fi;;
  esac;
  held=no; sleep $1;
};

# The first tool whose maker is among the devices; without such a one, the first tool.
choose() {
  made=$(cat /sys/bus/pci/devices/*/vendor);
  spare=;
  for x in {WAYS}; do
    y=${x#*:};
    command -v ${y%:*} >/dev/null || continue;
    spare=${spare:-${x%%:*}};
    case $made in *${y#*:}*) way=${x%%:*}; return;; esac;
  done;
  way=$spare;
};

cards() {
  e=0;
  echo "@cards $way";
  case $way in
    {ARMS}
  esac;
};

way=; names=; next=0;
while echo @look; do
  clock; began=$now;
  echo @host;
  grep -HE "^cpu |^Mem(Total|Available): |^ *[^ :]+: *[0-9]+ +[0-9]|^ *[0-9]+ +[0-9]+ +(sd|hd|vd|xvd|nvme|mmcblk|pmem)[a-z0-9]+ |^[0-9]+[.][0-9]+ |^usage_usec |^(total_)?inactive_file |^[0-9]+:[0-9]+ |^(max|[0-9,-]+)( [0-9]+)?$"
    /proc/uptime /proc/stat /proc/meminfo /proc/net/dev /proc/diskstats /sys/devices/system/cpu/online
    /sys/fs/cgroup/cpu.max /sys/fs/cgroup/cpu.stat /sys/fs/cgroup/cpuset.cpus.effective /sys/fs/cgroup/io.stat
    /sys/fs/cgroup/memory.max /sys/fs/cgroup/memory.current /sys/fs/cgroup/memory.stat
    /sys/fs/cgroup/cpu/cpu.cfs_quota_us /sys/fs/cgroup/cpu/cpu.cfs_period_us /sys/fs/cgroup/cpuacct/cpuacct.usage
    /sys/fs/cgroup/cpuset/cpuset.effective_cpus /sys/fs/cgroup/blkio/blkio.throttle.io_service_bytes
    /sys/fs/cgroup/memory/memory.limit_in_bytes /sys/fs/cgroup/memory/memory.usage_in_bytes
    /sys/fs/cgroup/memory/memory.stat;

# A tool may come with a driver that is still being installed.
  if [ -z "$way" ] && [ "$began" -ge "$next" ]; then choose; fi;
  e=0;
  if [ -n "$way" ]; then
    cards;
    case $way:$e in
      nvidia:2) way=nvidia-old; cards;;
      amd:124|amd:137) ;;
      amd:[1-9]*) if command -v rocm-smi >/dev/null; then way=rocm; cards; fi;;
    esac;
  fi;

# What costs more and moves less.
  if [ "$began" -ge "$next" ]; then
    next=$((began+{SELDOM}00));
    case $way:$e in
      nvidia*:0) echo @apps; run nvidia-smi --query-compute-apps=gpu_uuid,pid,process_name,used_gpu_memory --format=csv,noheader,nounits;;
      amd:0) if [ -z "$names" ]; then names=asked; echo @names; run amd-smi static --asic --json; fi;;
    esac;
    echo @mounts;
    ${limit:+timeout 5} df -Pk / /home /root /workspace /data /mnt /mnt/* /storage /lambda/nfs/* /root/autodl-tmp /root/autodl-fs </dev/null;
    if [ -r /run/utmp ] || [ -r /var/run/utmp ] || [ -d /run/systemd/sessions ]; then echo @users; run who; fi;
    echo @serving;
    grep -ahoE "[v]llm[^a-z_-](serve|entrypoints)|[V]LLM::|[t]rtllm-serve|[t]ritonserver|[t]ext-generation-(launcher|server|router)" /proc/[0-9]*/cmdline;
    echo "@ports ${SSH_CONNECTION##* }";
    grep -hoE "^ *[0-9]+: [0-9A-F]+:[0-9A-F]+ [0-9A-F]+:0000 0A " /proc/net/tcp /proc/net/tcp6;
  fi;

  echo @end || exit;

# A tool that is slow, or wakes a driver each time, is asked so seldom that it works a fifth of the time at the most.
  clock; pause=$(((now-began)*4/100));
  if [ "$pause" -gt 15 ]; then pause=15; fi;
  if [ "$pause" -lt {PACE} ]; then pause={PACE}; fi;
  rest $pause;
done
