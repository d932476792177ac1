// What a rehearsal sees of a service while it is being tried: streams that are checked frame by frame, and ports that
// are connected to all the time.
import { createConnection } from "node:net";
import { wait } from "../../bench/_webhook.mjs";
import { gapsIn, play, publish } from "../upgrade/broadcasters.mjs";
import { untilWithin } from "../upgrade/until.mjs";

/** Duration of a publish that is tried, s. */
const TRIED_S = 1;
const KNOCKED_EVERY_MS = 100;
/** Limit of every wait, ms. */
const LIMIT_MS = 120_000;

export const until = untilWithin(LIMIT_MS);

/** Publishes and plays `streams` streams of `service` until `end`. `wrong` is where faults are written. */
export async function watch(service, { apiKey, streams, wrong }) {
  let isOver = false;

  /** Calls the API; resolves with status and body. */
  async function call(method, path) {
    const headers = { "x-service-apikey": apiKey, connection: "close" };
    const answer = await fetch(service.http + path, { method, headers });
    return { status: answer.status, body: await answer.json() };
  }

  async function ask(method, path) {
    const { status, body } = await call(method, path);
    if (status !== 200) throw new Error(`${method} ${path}: ${status} ${JSON.stringify(body)}`);
    return body;
  }

  const newStream = async () => (await ask("POST", "/stream")).ingest.rtmp.streamname;

  async function begin() {
    const name = await newStream();
    const broadcaster = publish(`${service.rtmp}/${name}`);
    await until("it is live", async () => (await ask("GET", "/session")).some((each) => each.streamname === name));
    return { name, broadcaster, player: play(`${service.rtmp}/${name}`) };
  }

  /** A publish that begins now succeeds. */
  async function tryPublish(when) {
    const broadcaster = publish(`${service.rtmp}/${await newStream()}`, TRIED_S);
    if ((await broadcaster.exit) !== 0) wrong.push(`a publish after ${when} failed: ${broadcaster.complaint()}`);
  }

  const readiness = async () => (await fetch(`${service.metrics}/readyz`)).text();
  const isReady = async () => (await readiness()) === "ready\n";

  /** Connects to every port until the end: how often one refused, and the longest time without a ready service. */
  async function knock() {
    const found = { refused: 0, notReadyMs: 0 };
    let readyAt = performance.now();
    while (!isOver) {
      for (const url of [service.rtmp, service.http, service.metrics]) {
        if (!(await isOpen(Number(new URL(url).port)))) found.refused += 1;
      }
      if (await isReady().catch(() => false)) {
        found.notReadyMs = Math.max(found.notReadyMs, Math.round(performance.now() - readyAt));
        readyAt = performance.now();
      }
      await wait(KNOCKED_EVERY_MS);
    }
    return found;
  }

  const watched = [];
  while (watched.length < streams) watched.push(await begin());
  // Players that have connected to a process stay with it.
  await until("the players play", () => watched.every(({ player }) => player.times().length > 0));
  const knocking = knock();

  return {
    call,
    readiness,
    tryPublish,
    serves: () => until("it is ready", () => isReady().catch(() => false)),
    /** Ends the streams; resolves with the frames that were played, and what the ports did. */
    async end() {
      isOver = true;
      const ports = await knocking;
      if (ports.refused > 0) wrong.push(`${ports.refused} connections were refused`);
      let frames = 0;
      for (const { name, broadcaster, player } of watched) {
        if (broadcaster.code() !== null) wrong.push(`${name} ended: ${broadcaster.complaint()}`);
        broadcaster.end();
        await Promise.all([broadcaster.exit, player.exit]);
        const times = player.times();
        frames += times.length;
        for (const [from, to] of gapsIn(times)) wrong.push(`${name}: nothing from ${from} to ${to} ms`);
      }
      return { frames, ...ports };
    },
  };
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
