"""What the official client of Vast.ai must print over the simulator's sample world. Called by vast.sh."""

import json
import subprocess
import sys
import time

CLIENT, BASE, KEY = sys.argv[1:4]
TRAIN, PRETRAIN, PAUSED, SPOT = 31000001, 31000002, 31000003, 31000004
USED, SPARE = 5100001, 5100002


def vast(*args, key=KEY):
    """Runs one command; gives everything that it printed."""
    command = [CLIENT, "--url", BASE, "--api-key", key, *map(str, args)]
    done = subprocess.run(command, capture_output=True, text=True, timeout=120, stdin=subprocess.DEVNULL)
    return done.stdout + done.stderr


def rows(*args):
    printed = vast(*args, "--raw")
    try:
        told = json.loads(printed)
    except ValueError:
        fail(args, f"no JSON: {printed[-2000:]}")
    if isinstance(told, dict) and told.get("error"):
        fail(args, told)
    return told


def fail(what, why):
    sys.exit(f"vastai: {what}: {why}")


def expect(what, told, wanted):
    if told != wanted:
        fail(what, f"{told!r}, expected {wanted!r}")
    print(f"ok  {what}")


def expect_words(what, printed, *words):
    missing = [word for word in words if word not in printed]
    if missing or "Traceback" in printed:
        fail(what, f"{missing} not in: {printed[-2000:]}")
    print(f"ok  {what}")


def statuses():
    return {row["id"]: row["actual_status"] for row in rows("show", "instances")}


def wait(what, wanted):
    """Asks until the list says so: a request is a promise, the list is the fact."""
    until = time.monotonic() + 60
    while not wanted(statuses()):
        if time.monotonic() > until:
            fail(what, f"not within a minute: {statuses()}")
        time.sleep(0.5)
    print(f"ok  {what}")


listed = rows("show", "instances")
expect("list", [row["id"] for row in listed], [TRAIN, PRETRAIN, PAUSED, SPOT])
expect("list: labels", [row["label"] for row in listed], ["train-llama", "pretrain", "paused-exp", None])
expect("list: states", statuses(), {TRAIN: "running", PRETRAIN: "running", PAUSED: "exited", SPOT: "running"})
expect("list: prices", [row["dph_base"] for row in listed], [0.4, 17.6, 0.22, 0.36])
expect_words("list for people", vast("show", "instances"), "train-llama", "pretrain", "H100 SXM")
first = rows("show", "instances", "--limit", 3)
expect("first page", (len(first["instances"]), first["total_instances"]), (3, 4))
second = rows("show", "instances", "--limit", 3, "--next-token", first["next_token"])
expect("second page", ([row["id"] for row in second["instances"]], second["next_token"]), ([SPOT], None))
expect("one", rows("show", "instance", PRETRAIN)["num_gpus"], 8)
expect_words("one that is not there", vast("show", "instance", 7), "not found")
expect_words("wrong key", vast("show", "instances", "--raw", key="wrong"), "404", "Invalid user key")
expect_words("ssh address", vast("ssh-url", PRETRAIN), "ssh://root@192.0.2.45:41022")
expect("user", rows("show", "user")["id"], 900001)
expect_words("user for people", vast("show", "user"), "42.")
expect("volumes", [(row["id"], row["status"]) for row in rows("show", "volumes")], [(USED, "in-use"), (SPARE, "created")])

expect_words("label", vast("label", "instance", SPOT, "sweep"), "sweep")
expect("label is kept", rows("show", "instance", SPOT)["label"], "sweep")
expect_words("stop", vast("stop", "instance", TRAIN), "stopping instance 31000001")
wait("stopped", lambda told: told[TRAIN] == "exited")
stopped = rows("show", "instance", TRAIN)
expect("stopped: the disk only", stopped["instance"]["gpuCostPerHour"], 0)
expect_words("start", vast("start", "instance", TRAIN), "starting instance 31000001")
wait("started", lambda told: told[TRAIN] == "running")
expect_words("reboot", vast("reboot", "instance", TRAIN), "Rebooting instance 31000001")
wait("rebooted", lambda told: told[TRAIN] == "running")
expect_words("start without a GPU", vast("start", "instance", PAUSED), "currently unavailable, state change queued")
expect("the start waits", rows("show", "instance", PAUSED)["intended_status"], "running")
expect_words("taken back", vast("stop", "instance", PAUSED), "stopping instance 31000003")
expect("it waits no longer", rows("show", "instance", PAUSED)["intended_status"], "stopped")

today = time.strftime("%Y-%m-%d", time.gmtime())
month = time.strftime("%Y-%m-%d", time.gmtime(time.time() - 20 * 86400))
charges = rows("show", "invoices-v1", "-c", "-s", month, "-e", today)
charged = charges["results"] if isinstance(charges, dict) else charges
expect("charges", {row["source"] for row in charged} >= {f"instance-{PRETRAIN}", f"volume-{USED}"}, True)

expect_words("delete a volume in use", vast("delete", "volume", USED), "in use")
expect_words("release", vast("destroy", "instance", PRETRAIN, "-y"), "destroying instance 31000002")
wait("released", lambda told: PRETRAIN not in told)
expect_words("release again", vast("destroy", "instance", PRETRAIN, "-y"), "404")
expect("its volume stays", [row["status"] for row in rows("show", "volumes")], ["created", "created"])
vast("delete", "volume", USED)
expect("volume deleted", [row["id"] for row in rows("show", "volumes")], [SPARE])
print("vastai 1.9.1: everything as planted")
