# Sourced: starts and ends one simulator at a time.

cargo build --quiet --locked -p providers --features simulator --example simulate
simulate=${CARGO_TARGET_DIR:-target}/debug/examples/simulate

# serve PROVIDER: sets base, key and simulator (a process id).
serve() {
    local said
    said=$(mktemp)
    "$simulate" "$1" 0 >"$said" &
    simulator=$!
    trap 'kill "$simulator" 2>/dev/null || true' EXIT
    for _ in $(seq 100); do
        [ -s "$said" ] && break
        sleep 0.1
    done
    base=$(sed -n 's/.* at \(http:[^,]*\),.*/\1/p' "$said")
    key=$(sed -n 's/.*, key //p' "$said")
    rm -f "$said"
    [ -n "$base" ] || { echo "the simulator of $1 did not start" >&2; return 1; }
}

end_simulator() {
    kill "$simulator" 2>/dev/null || true
    wait "$simulator" 2>/dev/null || true
}
