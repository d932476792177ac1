// What the measurements of the webhook have in common: customers as processes, and percentiles of times.
import { spawn } from "node:child_process";
import { once } from "node:events";
import { createInterface } from "node:readline";
import { fileURLToPath } from "node:url";
import { selfSigned } from "../dist/cli/webhook/self-signed.js";
import { endingWithUs } from "./_ending.mjs";

export const certificate = selfSigned(Date.now(), 2);
export const KEYS = [new Uint8Array(32)];
export const silent = { isLevelEnabled: () => false, debug() {}, info() {}, warn() {}, error() {} };
export const clock = { now: () => Date.now() };

/** @param {"ok" | "hang" | "mute"} behaviour */
export async function startCustomer(behaviour, core = null) {
  const file = fileURLToPath(new URL("./_customer.mjs", import.meta.url));
  const args = [file, behaviour, certificate.cert, certificate.key];
  const [command, all] =
    core === null ? [process.execPath, args] : ["taskset", ["-c", core, process.execPath, ...args]];
  const child = endingWithUs(spawn(command, all, { stdio: ["ignore", "pipe", "inherit"] }));
  const [url] = await once(createInterface(child.stdout), "line");
  return { url, pid: child.pid, stop: () => child.kill("SIGKILL") };
}

/** The value below which the share `p` of `values` lies. */
export function percentile(values, p) {
  const sorted = [...values].sort((a, b) => a - b);
  return sorted[Math.min(sorted.length - 1, Math.ceil(sorted.length * p) - 1)] ?? 0;
}

export const wait = (ms) => new Promise((resolve) => setTimeout(resolve, ms));

/** CPU seconds that this process has used since `before`. */
export function cpuSince(before) {
  const { user, system } = process.cpuUsage(before);
  return (user + system) / 1e6;
}
