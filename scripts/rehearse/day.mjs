// The day of an operator, with streams that are checked frame by frame and ports that are tried all the time: a first
// start, upgrades whose new process is killed at random moments, an upgrade to a broken version, and to a good one.
import { mkdtempSync, rmSync } from "node:fs";
import { createConnection } from "node:net";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { wait } from "../bench/_webhook.mjs";
import { gapsIn, play, publish } from "../upgrade/broadcasters.mjs";
import { untilWithin } from "../upgrade/until.mjs";
import { install } from "./installation.mjs";

/** A new process is killed at most this long after the beginning of its upgrade, ms: before it listens, or after. */
const KILLED_WITHIN_MS = 5_000;
/** Duration of the publish that is tried after each upgrade, s. */
const TRIED_S = 1;
const TRIED_EVERY_MS = 100;
/** Limit of every wait, ms. */
const LIMIT_MS = 120_000;
const until = untilWithin(LIMIT_MS);

/** `reloads`: upgrades with a kill; `streams`: all of them published in the first process, to the end. */
export async function rehearseDay({ reloads, streams, tell = () => {} }) {
  const folder = mkdtempSync(join(tmpdir(), "headgate-rehearse-"));
  const wrong = [];
  let isOver = false;
  let pids = () => [];
  try {
    const installed = install(folder);
    const service = await installed.start();
    pids = service.pids;
    tell("it runs");

    async function call(method, path) {
      const headers = { "x-service-apikey": installed.apiKey, connection: "close" };
      const answer = await fetch(service.http + path, { method, headers });
      if (answer.status !== 200) throw new Error(`${method} ${path}: ${answer.status} ${await answer.text()}`);
      return await answer.json();
    }

    const newStream = async () => (await call("POST", "/stream")).ingest.rtmp.streamname;

    async function watch() {
      const name = await newStream();
      const broadcaster = publish(`${service.rtmp}/${name}`);
      await until("it is live", async () => (await call("GET", "/session")).some((each) => each.streamname === name));
      return { name, broadcaster, player: play(`${service.rtmp}/${name}`) };
    }

    /** A publish that begins now succeeds. */
    async function tryPublish(when) {
      const broadcaster = publish(`${service.rtmp}/${await newStream()}`, TRIED_S);
      if ((await broadcaster.exit) !== 0) wrong.push(`a publish after ${when} failed: ${broadcaster.complaint()}`);
    }

    const isReady = async () => (await (await fetch(`${service.metrics}/readyz`)).text()) === "ready\n";
    const serves = () => until("it is ready", () => isReady().catch(() => false));

    /** Connects to every port until the end: how often one refused, and the longest time without a ready service. */
    async function knock() {
      const found = { refused: 0, longestMs: 0 };
      let readyAt = performance.now();
      while (!isOver) {
        for (const url of [service.rtmp, service.http, service.metrics]) {
          if (!(await isOpen(Number(new URL(url).port)))) found.refused += 1;
        }
        if (await isReady().catch(() => false)) {
          found.longestMs = Math.max(found.longestMs, Math.round(performance.now() - readyAt));
          readyAt = performance.now();
        }
        await wait(TRIED_EVERY_MS);
      }
      return found;
    }

    const watched = [];
    while (watched.length < streams) watched.push(await watch());
    // Players that have connected to the first process stay with it.
    await until("the players play", () => watched.every(({ player }) => player.times().length > 0));
    const knocking = knock();
    let killed = 0;
    for (let turn = 1; turn <= reloads; turn += 1) {
      const known = pids().length;
      const upgraded = installed.upgrade();
      await wait(Math.random() * KILLED_WITHIN_MS);
      const newest = pids()[known];
      if (newest !== undefined && kill(newest)) killed += 1;
      const { succeeded } = await upgraded;
      await serves();
      await tryPublish(`upgrade ${turn}`);
      const end = newest === undefined ? "before its process had started" : `process ${newest} was killed`;
      tell(`upgrade ${turn} ${succeeded ? "succeeded" : "failed"}: ${end}`);
    }

    const mend = installed.broken("dist/app.js", (text) => `${text}\nthrow new TypeError("a broken version");\n`);
    const broken = await installed.upgrade();
    mend();
    if (broken.succeeded || !broken.said.includes("a broken version")) wrong.push(`a broken version: ${broken.said}`);
    await tryPublish("an upgrade to a broken version");
    const good = await installed.upgrade();
    if (!good.succeeded) wrong.push(`an upgrade failed: ${good.said}`);
    await tryPublish("an upgrade");
    tell("a broken version was refused, and a good one runs");

    isOver = true;
    const { refused, longestMs } = await knocking;
    if (refused > 0) wrong.push(`${refused} connections were refused`);
    let frames = 0;
    for (const { name, broadcaster, player } of watched) {
      if (broadcaster.code() !== null) wrong.push(`${name} ended: ${broadcaster.complaint()}`);
      broadcaster.end();
      await Promise.all([broadcaster.exit, player.exit]);
      const times = player.times();
      frames += times.length;
      for (const [from, to] of gapsIn(times)) wrong.push(`${name}: nothing from ${from} to ${to} ms`);
    }
    return { reloads, killed, frames, refused, notReadyMs: longestMs, wrong, log: service.log };
  } finally {
    isOver = true;
    // The oldest first: none of them is to replace another.
    for (const pid of pids()) kill(pid);
    rmSync(folder, { recursive: true, force: true });
  }
}

function kill(pid) {
  try {
    return process.kill(pid, "SIGKILL");
  } catch {
    return false;
  }
}

function isOpen(port) {
  return new Promise((resolve) => {
    const socket = createConnection({ host: "127.0.0.1", port }, () => {
      socket.destroy();
      resolve(true);
    });
    socket.once("error", () => resolve(false));
  });
}
