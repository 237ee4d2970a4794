"""RunPod's Python package 1.12.0 over the simulator: GraphQL, as a library and as the command `runpod`."""

import os
import subprocess
import sys
import time

import runpod
from runpod.error import AuthenticationError, QueryError

runpod.api_key = os.environ["RUNPOD_API_KEY"]


def check(what, holds, output):
    if not holds:
        sys.exit(f"runpod: {what}, but the client gave:\n{output}")
    print(f"ok   python {what}")


def refused(kind, call):
    try:
        return f"an answer: {call()}"
    except kind as error:
        return f"refused: {error}"


def becomes(pod_id, wanted):
    pod = None
    for _ in range(60):
        pod = runpod.get_pod(pod_id)
        if (pod or {}).get("desiredStatus") == wanted:
            break
        time.sleep(0.5)
    check(f"get_pod {pod_id}: {wanted}", (pod or {}).get("desiredStatus") == wanted, pod)


pods = {pod["id"]: pod for pod in runpod.get_pods()}
spot, paused = pods.get("sim0spot000003"), pods.get("sim0paus000004")
check("get_pods: a spot pod runs", spot and spot["podType"] == "INTERRUPTABLE" and spot["costPerHr"] == 0.16, pods)
check("get_pods: its ssh port", spot["runtime"]["ports"][0]["publicPort"] == 22012, spot)
check("get_pods: one is stopped", paused and paused["desiredStatus"] == "EXITED" and paused["runtime"] is None, pods)

user = runpod.get_user()
check("get_user: id and volumes", user["id"] == "user_sim0001" and user["networkVolumes"][0]["size"] == 500, user)
cards = {card["id"]: card["memoryInGb"] for card in runpod.get_gpus()}
check("get_gpus: names and memory", cards.get("NVIDIA RTX A5000") == 24, cards)

runpod.stop_pod("sim0spot000003")
becomes("sim0spot000003", "EXITED")
text = refused(QueryError, lambda: runpod.stop_pod("sim0spot000003"))
check("stop_pod: a second stop is refused", text.startswith("refused: action not valid"), text)
runpod.resume_pod("sim0paus000004", 1)
becomes("sim0paus000004", "RUNNING")
runpod.terminate_pod("sim0paus000004")
becomes_gone = None
for _ in range(60):
    becomes_gone = runpod.get_pod("sim0paus000004")
    if becomes_gone is None:
        break
    time.sleep(0.5)
check("terminate_pod: gone", becomes_gone is None, becomes_gone)

listed = subprocess.run(["runpod", "pod", "list"], capture_output=True, text=True, check=False, timeout=60)
check("`runpod pod list` names a pod", "notebook" in listed.stdout, listed.stdout + listed.stderr)

text = refused(QueryError, lambda: runpod.api.graphql.run_graphql_query("query { myself { nope } }"))
check("a wrong field is refused", "Cannot query field" in text, text)
runpod.api_key = "wrong-key"
text = refused(AuthenticationError, runpod.get_pods)
check("a wrong key is refused", text.startswith("refused"), text)
