// The requirements of RFC 9725 for a session: rows S1 to S14.
import { setTimeout as pause } from "node:timers/promises";
import { field, must, NotApplicable } from "./client.mjs";
import { connectedPeer } from "./media.mjs";
import { attribute, credentials } from "./offer.mjs";

/** Consent is lost after 30 s (RFC 7675 section 5.1), and a server may take some time to notice. */
const CONSENT_LIMIT_MS = 45_000;
const TEARDOWN_LIMIT_MS = 5_000;
/** Limit of a teardown where only one request can test it. */
const TEARDOWN_MS = 2_000;
const POLL_MS = 200;

const isClientError = (status) => status >= 400 && status < 500;

/** A trickle fragment (RFC 8840) like the RFC's own example. */
function fragment({ ufrag, pwd }, mid, candidates) {
  return [
    `a=ice-ufrag:${ufrag}`,
    `a=ice-pwd:${pwd}`,
    "m=audio 9 UDP/TLS/RTP/SAVPF 0",
    `a=mid:${mid}`,
    ...candidates.map((candidate) => `a=candidate:${candidate}`),
    "a=end-of-candidates",
    "",
  ].join("\r\n");
}

const HOST = "1387637174 1 udp 2122260223 192.0.2.1 61764 typ host generation 0";
const trickle = (session, candidates = [HOST]) => fragment(session.offer, session.offer.mids[0], candidates);
const restart = (session, made = credentials()) => fragment(made, session.offer.mids[0], [HOST]);
const matching = (session) => (session.etag === null ? {} : { "if-match": session.etag });

/** Whether the server supports trickle and restart; tested once. */
export async function supports(client) {
  if (client.supported === undefined) {
    const session = await client.open();
    const { status: trickled } = await client.patch(session, trickle(session), matching(session));
    const { status: restarted } = await client.patch(session, restart(session), { "if-match": "*" });
    await client.tidy();
    const isDone = (status) => status >= 200 && status < 300;
    client.supported = { trickle: isDone(trickled), restart: isDone(restarted), trickled, restarted };
  }
  return client.supported;
}

async function sessionWith(client, feature) {
  if (!(await supports(client))[feature]) throw new NotApplicable(`no ${feature}`);
  return await client.open();
}

/** Waits until the session no longer exists. GET does not show that (it is 204 for unknown ones too), but PATCH or
 *  DELETE does. */
async function isForgotten(client, session) {
  const { trickle: canAsk } = await supports(client);
  for (let waitedMs = 0; canAsk && waitedMs < TEARDOWN_LIMIT_MS; waitedMs += POLL_MS) {
    const { status } = await client.patch(session, trickle(session), matching(session));
    if (status === 404 || status === 410) return true;
    await pause(POLL_MS);
  }
  if (!canAsk) await pause(TEARDOWN_MS);
  return isClientError((await client.end(session)).status);
}

/** @type {import("./rows.d.mts").Row[]} */
export const sessionRows = [
  {
    id: "S1",
    level: "must",
    section: "4.2",
    says: "DELETE ends the session (200) and frees ICE; a second DELETE finds no session",
    async check(client) {
      const session = await client.open();
      must(await client.isReachable(session), "no answer to ICE checks before");
      const { status } = await client.end(session);
      must(status === 200, `answered ${status}`);
      must(isClientError((await client.end(session)).status), "a second DELETE is not a 4xx");
      must(!(await client.isReachable(session)), "still answers ICE checks");
    },
  },
  {
    id: "S2",
    level: "must",
    section: "4.2",
    says: "DELETE revokes consent at once: DTLS close_notify comes",
    async check(client) {
      const peer = await connectedPeer(client);
      try {
        await client.end(peer.session);
        must(await peer.closed(TEARDOWN_LIMIT_MS), `no close_notify within ${TEARDOWN_LIMIT_MS / 1000} s`);
      } finally {
        await peer.leave();
      }
    },
  },
  {
    id: "S3",
    level: "must",
    section: "4.2",
    says: "a client's DTLS teardown ends the session",
    async check(client) {
      await supports(client);
      const peer = await connectedPeer(client);
      await peer.leave();
      must(await isForgotten(client, peer.session), "the session is still known");
    },
  },
  {
    id: "S3b",
    level: "must",
    section: "4.2",
    says: "a client that vanishes is found by consent freshness; with --slow",
    async check(client) {
      if (!client.options.slow) throw new NotApplicable("not asked for: --slow");
      const peer = await connectedPeer(client);
      peer.vanish();
      await pause(CONSENT_LIMIT_MS);
      must(isClientError((await client.end(peer.session)).status), `known ${CONSENT_LIMIT_MS / 1000} s later`);
    },
  },
  {
    id: "S4",
    level: "must",
    section: "4.3.1",
    says: "PATCH of another type, or malformed, is a 4xx",
    async check(client) {
      const session = await client.open();
      const typed = await client.patch(session, trickle(session), {
        ...matching(session),
        "content-type": "application/sdp",
      });
      must(isClientError(typed.status), `application/sdp was answered ${typed.status}`);
      const malformed = await client.patch(session, "hello\r\n", matching(session));
      must(isClientError(malformed.status), `a malformed fragment was answered ${malformed.status}`);
    },
  },
  {
    id: "S5",
    level: "must",
    section: "4.3.1",
    says: "where only one of trickle and restart is supported, the other is 422",
    async check(client) {
      const found = await supports(client);
      if (found.trickle && found.restart) throw new NotApplicable("both are supported");
      if (!found.trickle && !found.restart) {
        must(isClientError(found.trickled), `neither is supported, and PATCH is answered ${found.trickled}`);
        must(false, "neither is supported: RFC 9725 4.3.1 requires one of them");
      }
      const other = found.trickle ? found.restarted : found.trickled;
      must(other === 422, `answered ${other}`);
    },
  },
  {
    id: "S6",
    level: "must",
    section: "4.3.1",
    says: "If-Match of a DELETE is ignored",
    async check(client) {
      const session = await client.open();
      const { status } = await client.end(session, { "if-match": '"another"' });
      must(status === 200, `answered ${status}`);
    },
  },
  {
    id: "S7",
    level: "should",
    section: "4.3.1",
    says: "PATCH without If-Match is 428, with another tag 412",
    async check(client) {
      const session = await sessionWith(client, "trickle");
      const without = await client.patch(session, trickle(session));
      must(without.status === 428, `without If-Match: ${without.status}`);
      const another = await client.patch(session, trickle(session), { "if-match": '"another"' });
      must(another.status === 412, `with another tag: ${another.status}`);
    },
  },
  {
    id: "S8",
    level: "must",
    section: "4.3.2",
    says: "trickle is 204 without body and ETag, however clients write it",
    async check(client) {
      const session = await sessionWith(client, "trickle");
      const shapes = {
        "the RFC's": trickle(session),
        // As from deployed browser clients: every section is audio with RTP/AVP, component 0, or without a port.
        "RTP/AVP": trickle(session).replace("UDP/TLS/RTP/SAVPF", "RTP/AVP").replace(" 1 udp", " 0 udp"),
        "without a port": trickle(session).replace("m=audio 9 UDP/TLS/RTP/SAVPF", "m=audio RTP/AVP"),
      };
      for (const [shape, body] of Object.entries(shapes)) {
        const exchange = await client.patch(session, body, matching(session));
        const etag = field(exchange, "etag");
        must(exchange.status === 204 && exchange.body === "", `${shape} way: ${exchange.status}`);
        must(etag === null, `${shape} way: ETag ${etag}`);
      }
    },
  },
  {
    id: "S9",
    level: "must",
    section: "4.3.2",
    says: "unusable candidates (.local, unknown transport) are dropped silently",
    async check(client) {
      const session = await sessionWith(client, "trickle");
      const candidates = [
        "1 1 udp 2113937151 0b3a1f0e-5c7c-4b7e-9a9d-0d6f4f6f2f10.local 51472 typ host",
        "2 1 sctp 2113937151 192.0.2.1 51472 typ host",
        "3 1 tcp 1518280447 192.0.2.1 9 typ host tcptype active",
        HOST,
      ];
      const { status } = await client.patch(session, trickle(session, candidates), matching(session));
      must(status === 204, `answered ${status}`);
    },
  },
  {
    id: "S10",
    level: "must",
    section: "4.3.3",
    says: "new credentials restart ICE: 200, a fragment with new ones, a new ETag",
    async check(client) {
      const session = await sessionWith(client, "restart");
      const exchange = await client.patch(session, restart(session), matching(session));
      must(exchange.status === 200, `answered ${exchange.status}`);
      const type = field(exchange, "content-type") ?? "none";
      must(/^application\/trickle-ice-sdpfrag/i.test(type), `Content-Type: ${type}`);
      const [ufrag, pwd] = [attribute(exchange.body, "ice-ufrag"), attribute(exchange.body, "ice-pwd")];
      must(ufrag !== null && ufrag !== session.ufrag, `ice-ufrag: ${ufrag}`);
      must(pwd !== null && pwd !== session.pwd, "the password is the old one");
      must(/^a=candidate:/m.test(exchange.body), "no candidates");
      const etag = field(exchange, "etag");
      must(etag !== null && etag !== session.etag, `ETag: ${etag}`);
      const stale = await client.patch(session, trickle(session), matching(session));
      must(stale.status === 412, `the old tag is answered ${stale.status}`);
    },
  },
  {
    id: "S11",
    level: "must",
    section: "4.3.3",
    says: "after a restart the new credentials work; ice-lite and ice-options stay",
    async check(client) {
      const session = await sessionWith(client, "restart");
      const made = credentials();
      const { body } = await client.patch(session, restart(session, made), matching(session));
      const ice = { localUfrag: made.ufrag, ufrag: attribute(body, "ice-ufrag"), pwd: attribute(body, "ice-pwd") };
      must(await client.isReachable(session, ice), "no answer to checks with the new ones");
      const traits = (sdp) => [...new Set(sdp.match(/^a=ice-(lite|options|pacing).*$/gm) ?? [])].sort().join(" ");
      must(traits(body) === traits(session.answer), `"${traits(body)}" after "${traits(session.answer)}"`);
    },
  },
  {
    id: "S12",
    level: "must",
    section: "4.3.3",
    says: "a failed restart is an error and keeps the old ICE session",
    async check(client) {
      const session = await sessionWith(client, "restart");
      const half = { ufrag: credentials().ufrag, pwd: session.offer.pwd };
      const { status } = await client.patch(session, restart(session, half), matching(session));
      must(isClientError(status), `new ufrag with the old pwd was answered ${status}`);
      must(await client.isReachable(session), "the old credentials no longer work");
    },
  },
  {
    id: "S13",
    level: "must",
    section: "4.3.3",
    says: 'a restart may come with If-Match: * and with "*"',
    async check(client) {
      for (const tag of ["*", '"*"']) {
        const session = await sessionWith(client, "restart");
        const { status } = await client.patch(session, restart(session), { "if-match": tag });
        must(status === 200, `${tag} was answered ${status}`);
        await client.tidy();
      }
    },
  },
  {
    id: "S14",
    level: "should",
    section: "5",
    says: "session URLs cannot be guessed",
    async check(client) {
      const ids = new Set();
      for (let count = 0; count < 3; count += 1) {
        const { url } = await client.open();
        await client.tidy();
        ids.add(new URL(url).pathname.split("/").at(-1));
      }
      must(ids.size === 3, "two sessions have one URL");
      const [first = "", second = ""] = ids;
      // 120 random bits are 20 characters of base64 and 30 of hex; between two values nearly all of them differ.
      const differing = [...first].filter((character, at) => character !== second[at]).length;
      must(first.length >= 20 && differing >= 12, `${differing} of ${first.length} characters differ`);
    },
  },
];
