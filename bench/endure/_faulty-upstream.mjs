// An upstream that fails as configured, in front of a real one; once mended, it passes everything on.
import { randomBytes } from "node:crypto";
import { once } from "node:events";
import { connect, createServer } from "node:net";

/** A working connection fails after this time, ms. */
const WORKS_MS = 1_000;
const SLOW_BITS_PER_SECOND = 100_000;
/** A connection counts as pushed to if it passed this much within the time below. */
const FLOWING_BYTES = 20_000;
const LATELY_MS = 2_000;

export const FAULTS = ["refuses", "reset", "closes", "hangs", "stopsReading", "wantsPassword", "garbage", "slow"];

export async function startFaultyUpstream(kind, behindPort) {
  let isMended = false;
  const openedAt = [];
  const passed = new Map();
  const sockets = new Set();
  const server = createServer({ noDelay: true }, (socket) => {
    openedAt.push(performance.now());
    sockets.add(socket);
    socket.on("error", () => {});
    socket.on("close", () => sockets.delete(socket));
    if (isMended) pass(socket);
    else FAULTY[kind](socket);
  });

  function pass(socket) {
    const behind = connect({ port: behindPort, host: "127.0.0.1", noDelay: true });
    behind.on("error", () => socket.destroy());
    socket.on("close", () => behind.destroy());
    socket.on("data", (bytes) => {
      const now = performance.now();
      const recent = (passed.get(socket) ?? []).filter(({ at }) => now - at < LATELY_MS);
      passed.set(socket, [...recent, { at: now, bytes: bytes.length }]);
    });
    socket.pipe(behind).pipe(socket);
    return behind;
  }
  const failing = (fail) => (socket) => {
    const behind = pass(socket);
    setTimeout(() => fail(socket, behind), WORKS_MS);
  };
  const FAULTY = {
    refuses: (socket) => socket.resetAndDestroy(),
    reset: failing((socket) => socket.resetAndDestroy()),
    closes: failing((socket) => socket.destroy()),
    hangs: (socket) => socket.pause(),
    stopsReading: failing((socket, behind) => {
      socket.unpipe(behind);
      socket.removeAllListeners("data");
      socket.pause();
    }),
    wantsPassword: (socket) => refuseConnect(socket),
    garbage: (socket) => {
      socket.resume();
      socket.write(randomBytes(8_192));
    },
    slow: (socket) => {
      const behind = pass(socket);
      socket.unpipe(behind);
      socket.on("data", (bytes) => {
        behind.write(bytes);
        socket.pause();
        setTimeout(() => socket.resume(), (bytes.length * 8_000) / SLOW_BITS_PER_SECOND);
      });
    },
  };

  const listen = async (port) => {
    server.listen(port, "127.0.0.1");
    await once(server, "listening");
    return server.address().port;
  };
  const port = await listen(0);
  return {
    port,
    connections: () => openedAt.length,
    /** Whether the pauses between attempts vary: the number of distinct tenths of a second. */
    gaps: () => new Set(openedAt.slice(1).map((at, index) => Math.round((at - openedAt[index]) / 100))).size,
    /** Makes connections work from now on; those that fail are ended. */
    mend() {
      isMended = true;
      for (const socket of sockets) socket.destroy();
    },
    /** Number of connections over which media is passing. */
    flowing() {
      const now = performance.now();
      const recent = (parts) => parts.filter(({ at }) => now - at < LATELY_MS);
      const enough = (parts) => recent(parts).reduce((sum, { bytes }) => sum + bytes, 0) > FLOWING_BYTES;
      return [...passed].filter(([socket, parts]) => !socket.destroyed && enough(parts)).length;
    },
    async stop() {
      for (const socket of sockets) socket.destroy();
      server.close();
      await once(server, "close");
    },
  };
}

/** Completes the handshake (RTMP 5.2.1) and answers connect like an Adobe server that requires a name and a
 *  password. */
function refuseConnect(socket) {
  let seen = Buffer.alloc(0);
  let isGreeted = false;
  socket.on("data", (bytes) => {
    seen = Buffer.concat([seen, bytes]);
    if (!isGreeted && seen.length >= 1_537) {
      isGreeted = true;
      const s1 = Buffer.concat([Buffer.alloc(8), randomBytes(1_528)]);
      socket.write(Buffer.concat([Buffer.from([3]), s1, seen.subarray(1, 1_537)]));
    }
    if (isGreeted && seen.length > 1_537 + 1_536 + 12) socket.end(rejection());
  });
}

/** `_error` with NetConnection.Connect.Rejected, one chunk on stream 3 (RTMP 5.3.1, 7.2.1.1). */
function rejection() {
  const text = (value) => Buffer.concat([Buffer.from([value.length >> 8, value.length & 255]), Buffer.from(value)]);
  const member = (name, value) => Buffer.concat([text(name), Buffer.from([2]), text(value)]);
  const one = Buffer.from([0, 0x3f, 0xf0, 0, 0, 0, 0, 0, 0]);
  const body = Buffer.concat([
    ...[Buffer.from([2]), text("_error"), one, Buffer.from([5, 3])],
    member("level", "error"),
    member("code", "NetConnection.Connect.Rejected"),
    member("description", "[ AccessManager.Reject ] : [ code=403 need auth; authmod=adobe ]"),
    Buffer.from([0, 0, 9]),
  ]);
  const header = Buffer.from([3, 0, 0, 0, 0, body.length >> 8, body.length & 255, 20, 0, 0, 0, 0]);
  const chunks = [];
  for (let at = 0; at < body.length; at += 128) {
    if (at > 0) chunks.push(Buffer.from([0xc3]));
    chunks.push(body.subarray(at, at + 128));
  }
  return Buffer.concat([header, ...chunks]);
}
