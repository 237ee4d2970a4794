#!/usr/bin/env bash
# Drives RunPod's own clients against a running simulator and compares what they print.
#
#   cargo run -p providers --features simulator --example simulate -- runpod PORT
#   .ci/conformance/runpod.sh BASE_URL KEY
#
# Two clients, since RunPod has two interfaces: the MCP server speaks REST v2 (runpod.mjs), the Python package
# speaks GraphQL (runpod_graphql.py). Every run needs a fresh simulator, since it ends machines. Nothing leaves
# loopback except the installation of the clients.
set -euo pipefail

if [ $# -ne 2 ]; then
    echo "usage: $0 BASE_URL KEY" >&2
    exit 2
fi
base=${1%/}
key=$2
here=$(cd "$(dirname "$0")" && pwd)
case $base in
    http://127.0.0.1:* | http://localhost:*) ;;
    *) echo "runpod: $base is not a loopback address" >&2; exit 2 ;;
esac

python_client=runpod==1.12.0
node_client=@runpod/mcp-server@4.0.0
room=${CONFORMANCE_DIR:-target/conformance}/runpod
mkdir -p "$room/npm"
room=$(cd "$room" && pwd)

# install NAME COMMAND...: three tries.
install() {
    local name=$1 attempt
    shift
    for attempt in 1 2 3; do
        if "$@"; then return; fi
        sleep $((attempt * 5))
    done
    echo "runpod: the client $name cannot be installed" >&2
    exit 1
}

if ! "$room/venv/bin/pip" freeze 2>/dev/null | grep -qx "$python_client"; then
    python3 -m venv "$room/venv"
    install "$python_client" "$room/venv/bin/pip" install --quiet --disable-pip-version-check "$python_client"
fi
if ! grep -qs '"version": "4.0.0"' "$room/npm/node_modules/@runpod/mcp-server/package.json"; then
    install "$node_client" npm install --silent --no-audit --no-fund --prefix "$room/npm" "$node_client"
fi

scratch=$(mktemp -d)
trap 'rm -rf "$scratch"' EXIT
mkdir "$scratch/.runpod"
printf '[default]\napi_key = "%s"\n' "$key" >"$scratch/.runpod/config.toml"
# All addresses that the clients know are set, and a proxy that nobody serves stops a request to any other host.
clean_env=(
    env -i HOME="$scratch" TMPDIR="$scratch" PATH="$room/venv/bin:$PATH" LANG=C.UTF-8 COLUMNS=240 PYTHONDONTWRITEBYTECODE=1
    RUNPOD_API_KEY="$key" RUNPOD_API_BASE_URL="$base"
    RUNPOD_AUTHED_GRAPHQL_URL="$base/graphql" RUNPOD_PUBLIC_GRAPHQL_URL="$base/graphql"
    RUNPOD_SERVERLESS_API_URL="$base/serverless"
    http_proxy=http://127.0.0.1:9 https_proxy=http://127.0.0.1:9 no_proxy=127.0.0.1,localhost
)
"${clean_env[@]}" node "$here/runpod.mjs" "$room/npm/node_modules/@runpod/mcp-server/dist/stdio.mjs"
"${clean_env[@]}" "$room/venv/bin/python" "$here/runpod_graphql.py"
echo "runpod: $node_client and $python_client agree with the simulator"
