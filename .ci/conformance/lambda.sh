#!/usr/bin/env bash
# Drives a real client of Lambda against a running simulator and compares what it prints.
#
#   cargo run -p providers --features simulator --example simulate -- lambda PORT
#   .ci/conformance/lambda.sh BASE_URL KEY
#
# What the client prints is compared, not how it exits. Lambda has no stop and no start: the client's `stop` is
# a release. Every run needs a fresh simulator, since it ends machines.
set -euo pipefail

if [ $# -ne 2 ]; then
    echo "usage: $0 BASE_URL KEY" >&2
    exit 2
fi
base=$1
key=$2
case $base in
    http://127.0.0.1:* | http://localhost:*) ;;
    *) echo "lambda: $base is not a loopback address" >&2; exit 2 ;;
esac

client=lambda-ai-cloud-api-client==2.4.1
dir=${CONFORMANCE_DIR:-target/conformance}/lambda
mkdir -p "$dir/home"
dir=$(cd "$dir" && pwd)

if ! "$dir/venv/bin/pip" show --quiet "${client%%==*}" 2>/dev/null; then
    python3 -m venv "$dir/venv"
    for attempt in 1 2 3; do
        if "$dir/venv/bin/pip" install --quiet --disable-pip-version-check "$client"; then break; fi
        if [ "$attempt" = 3 ]; then
            echo "lambda: the client $client cannot be installed" >&2
            exit 1
        fi
        sleep $((attempt * 5))
    done
fi

# Both variables are needed: without the first the client would go to the real host.
export LAMBDA_CLOUD_BASE_URL=$base LAMBDA_CLOUD_TOKEN=$key
export HOME=$dir/home NO_COLOR=1 TERM=dumb COLUMNS=240
unset LAMBDA_CLOUD_API_TOKEN LAMBDA_API_TOKEN HTTP_PROXY http_proxy HTTPS_PROXY https_proxy ALL_PROXY all_proxy

lai() {
    "$dir/venv/bin/lai" "$@" 2>&1 || true
}

fail() {
    echo "lambda: $1" >&2
    echo "$2" >&2
    exit 1
}

# says TEXT COMMAND...: the client's output holds TEXT.
says() {
    local text=$1 output
    shift
    output=$(lai "$@")
    case $output in
        *"$text"*) echo "ok   lai $*: $text" ;;
        *) fail "\`lai $*\` does not say '$text' but:" "$output" ;;
    esac
}

# lists EXPECTED: the client's list as lines of `name status cents ip`, sorted. The instance that boots is
# left out, since how far it is depends on how long ago the simulator was started.
lists() {
    local expected=$1 output shown
    output=$(lai ls --json)
    shown=$(python3 -c '
import json, sys
for row in sorted(json.loads(sys.argv[1]), key=lambda row: row["name"]):
    if row["name"] != "fresh":
        print(row["name"], row["status"], row["instance_type"]["price_cents_per_hour"], row["ip"])
' "$output") || fail "\`lai ls --json\` is not a list but:" "$output"
    if [ "$shown" != "$expected" ]; then
        fail "\`lai ls --json\` does not list" "$(diff <(echo "$expected") <(echo "$shown") || true)"
    fi
    echo "ok   lai ls --json: $(echo "$shown" | wc -l) instances as expected"
}

notebook=1a3bda00000000000000000000000002

lists "eval unhealthy 129 192.0.2.64
notebook active 129 192.0.2.62
pretrain-8x active 3192 192.0.2.61"
says "31.92" ls
says "H100 (80 GB SXM5)" ls
says "fresh" ls
says "ckpt" get 1a3bda00000000000000000000000001
says "gpu_1x_gh200" types
says "cpu_4x_general" types
says "ubuntu" images
says "laptop" keys
says "renamed" rename 1a3bda00000000000000000000000004 renamed
says "Specified instance does not exist." rename 1a3bda000000000000000000000000ff nobody
says "active" restart notebook
says "terminating" stop notebook
says "not available for this instance right now" restart notebook
lists "notebook terminating 129 192.0.2.62
pretrain-8x active 3192 192.0.2.61
renamed unhealthy 129 192.0.2.64"
says "No instance found with name or id 'nobody'" stop nobody

export LAMBDA_CLOUD_TOKEN=wrong-key
says "API key was invalid, expired, or deleted." ls
export LAMBDA_CLOUD_TOKEN=$key

# The end of an instance takes the simulator some seconds.
for _ in $(seq 60); do
    case $(lai get $notebook) in *"No instance found"*) break ;; esac
    sleep 1
done
says "No instance found" get $notebook
lists "pretrain-8x active 3192 192.0.2.61
renamed unhealthy 129 192.0.2.64"
echo "lambda: $client agrees with the simulator"
