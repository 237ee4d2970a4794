// RunPod's MCP server 4.0.0 over the simulator: lists, stops, starts, restarts, releases, and reads the bill.
import { spawn } from "node:child_process";
import { createInterface } from "node:readline";

const [server] = process.argv.slice(2);

function open(extra = {}) {
  const child = spawn(process.execPath, [server], {
    env: { ...process.env, ...extra },
    stdio: ["pipe", "pipe", "ignore"],
  });
  const waiting = new Map();
  createInterface({ input: child.stdout }).on("line", (line) => {
    const message = JSON.parse(line);
    waiting.get(message.id)?.(message);
    waiting.delete(message.id);
  });
  let last = 0;
  const ask = (method, params) =>
    new Promise((answer, fail) => {
      const id = ++last;
      const timer = setTimeout(() => fail(new Error(`${method}: no answer`)), 60_000);
      waiting.set(id, (message) => {
        clearTimeout(timer);
        answer(message);
      });
      child.stdin.write(JSON.stringify({ jsonrpc: "2.0", id, method, params }) + "\n");
    });
  const tell = (method) => child.stdin.write(JSON.stringify({ jsonrpc: "2.0", method }) + "\n");
  return { child, ask, tell };
}

async function begin(extra) {
  const client = open(extra);
  const clientInfo = { name: "conformance", version: "1" };
  await client.ask("initialize", { protocolVersion: "2024-11-05", capabilities: {}, clientInfo });
  client.tell("notifications/initialized");
  // What a tool prints, as one text.
  client.call = async (name, args = {}) => {
    const { result, error } = await client.ask("tools/call", { name, arguments: args });
    return result ? result.content.map((part) => part.text).join("\n") : `error ${error.message}`;
  };
  return client;
}

function check(what, holds, output) {
  if (!holds) {
    console.error(`runpod: ${what}, but the client printed:\n${output}`);
    process.exit(1);
  }
  console.log(`ok   mcp ${what}`);
}

const client = await begin();
const { call } = client;

async function says(what, text, name, args) {
  const output = await call(name, args);
  check(`${name}: ${what}`, output.includes(text), output);
}

// The simulator takes some seconds from one state to the next.
async function becomes(id, status) {
  let output = "";
  for (let round = 0; round < 60; round++) {
    output = await call("get-pod", { id });
    if (output.includes(status)) break;
    await new Promise((done) => setTimeout(done, 500));
  }
  check(`get-pod ${id}: ${status}`, output.includes(status), output);
}

const parsed = (output) => JSON.parse(output.slice(output.indexOf("{"), output.lastIndexOf("}") + 1));

let output = await call("list-pods");
const pods = parsed(output).pods;
const shown = pods.map((pod) => `${pod.name} ${pod.status} ${pod.cost}`).sort().join("; ");
const expected = "notebook RUNNING 0.69; paused-exp EXITED 0; sweep-3 RUNNING 0.16; train-llama RUNNING 5.98";
check(`list-pods: ${expected}`, shown === expected, output);
check("list-pods: the key is in no answer", !output.includes(process.env.RUNPOD_API_KEY), "(hidden)");

await says("an address for ssh", "ssh root@192.0.2.10 -p 22000", "get-pod", { id: "sim0train00001" });
await says("both volumes", "old-ckpts", "list-network-volumes");
await says("its size", "250", "get-network-volume", { id: "simnv0left" });
await says("the cards", "NVIDIA RTX A5000", "list-gpu-types");
await says("no keys", "keys", "get-ssh-keys");

output = await call("list-pod-billing", { bucketSize: "day", lastN: 2 });
const records = parsed(output).records.filter((record) => record.podId === "sim0train00001");
const added = records.every((record) => Math.abs(record.totalAmount - record.gpuAmount - record.diskAmount) < 1e-6);
check("list-pod-billing: two days, split", records.length === 2 && added, output);
await says("volumes are charged", "simnv0data", "list-network-volume-billing", { bucketSize: "day", lastN: 1 });
await says("a sum", "storageStandardAmount", "list-billing", { bucketSize: "day", lastN: 1 });

await says("restarts", "RUNNING", "pod-action", { id: "sim0train00001", body: { action: "restart" } });
await says("takes a stop", "sim0train00001", "pod-action", { id: "sim0train00001", body: { action: "stop" } });
await becomes("sim0train00001", "EXITED");
await says("costs no compute", '"cost": 0', "get-pod", { id: "sim0train00001" });
await says("refuses a second stop", "action not valid for current pod status", "pod-action", { id: "sim0train00001", body: { action: "stop" } });
await says("takes a start", "STARTING", "pod-action", { id: "sim0train00001", body: { action: "start" } });
await becomes("sim0train00001", "RUNNING");
output = await call("delete-pod", { id: "sim0train00001" });
check("delete-pod: no complaint", !/error|40\d|50\d/i.test(output), output);
await becomes("sim0train00001", "pod not found");
await says("does not know it any more", "pod not found", "delete-pod", { id: "sim0train00001" });
output = await call("delete-network-volume", { id: "simnv0left" });
check("delete-network-volume: no complaint", !/error|40\d|50\d/i.test(output), output);
output = await call("list-network-volumes");
check("list-network-volumes: one is left", !output.includes("simnv0left") && output.includes("simnv0data"), output);
client.child.kill();

const stranger = await begin({ RUNPOD_API_KEY: "wrong-key" });
output = await stranger.call("list-pods");
check("list-pods with a wrong key: 401", output.includes("invalid bearer token"), output);
stranger.child.kill();
