#!/usr/bin/env bash
# Drives the official client of Vast.ai against the running simulator:
#
#     cargo run -p providers --features simulator --example simulate -- vast 9102 &
#     .ci/conformance/vast.sh http://127.0.0.1:9102 sim-vast-key
#
# The client exits with 0 on most errors, so vast.py compares what it prints. Nothing leaves loopback except
# the installation of the client.
set -euo pipefail

client="vastai==1.9.1"
base=${1:?usage: vast.sh BASE_URL KEY}
key=${2:?usage: vast.sh BASE_URL KEY}
here=$(cd "$(dirname "$0")" && pwd)
case $base in
http://127.0.0.1:* | http://localhost:*) ;;
*)
    echo "vast.sh: $base is not on loopback" >&2
    exit 2
    ;;
esac

room=${CONFORMANCE_DIR:-target/conformance}/vast
mkdir -p "$room"
room=$(cd "$room" && pwd)
if ! "$room/venv/bin/pip" freeze 2>/dev/null | grep -qx "$client"; then
    for try in 1 2 3; do
        if python3 -m venv "$room/venv" && "$room/venv/bin/pip" install --quiet --disable-pip-version-check "$client"; then break; fi
        if [ "$try" = 3 ]; then
            echo "vast.sh: $client cannot be installed" >&2
            exit 1
        fi
        sleep 5
    done
fi

scratch=$(mktemp -d)
trap 'rm -rf "$scratch"' EXIT
# A proxy that nobody serves: a request to any other host than loopback fails instead of leaving.
exec_env=(
    HOME="$scratch" TMPDIR="$scratch" PATH="$PATH" LANG=C.UTF-8 COLUMNS=240
    VAST_URL="$base" VASTAI_NO_UPDATE_CHECK=1
    http_proxy=http://127.0.0.1:9 https_proxy=http://127.0.0.1:9 no_proxy=127.0.0.1,localhost
)
env -i "${exec_env[@]}" python3 "$here/vast.py" "$room/venv/bin/vastai" "$base" "$key"
