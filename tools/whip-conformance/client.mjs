// The HTTP side of a WHIP client that inspects everything: raw headers, no redirects, no cookies. Every exchange is
// kept.
import { request as overHttp } from "node:http";
import { request as overHttps } from "node:https";
import { setTimeout as pause } from "node:timers/promises";
import { attribute, offer } from "./offer.mjs";
import { answersBinding, udpCandidates } from "./stun.mjs";

const ANSWER_LIMIT_MS = 15_000;
/** How often an offer is repeated while the server refuses temporarily (409 of the row before, 429, 503). */
const TRIES = 10;
const WAIT_MS = 500;
const WAIT_LIMIT_MS = 30_000;

/** A requirement that the server does not meet; the message says what was observed. */
export class Unmet extends Error {}
/** A row that does not apply to this server or was not requested. */
export class NotApplicable extends Error {}

/** @type {(holds: unknown, seen: string) => asserts holds} */
export function must(holds, seen) {
  if (!holds) throw new Unmet(seen);
}

/** @typedef {{ method: string, url: string, status: number, headers: Map<string, string[]>, body: string }} Exchange */

export class Client {
  /** Every exchange of the run, in order. @type {Exchange[]} */
  seen = [];
  /** Sessions that have not been ended yet. @type {Set<string>} */
  #open = new Set();

  /** @param {{ url: string, token?: string | undefined, slow?: boolean, flood?: boolean }} target */
  constructor({ url, token, slow = false, flood = false }) {
    this.url = url;
    this.token = token;
    this.options = { slow, flood };
    /** Result of `supports`, once known. */
    this.supported = undefined;
  }

  /**
   * One request, one answer.
   * @param {string} method
   * @param {{ url?: string, headers?: Record<string, string>, body?: string }} [options]
   * @returns {Promise<Exchange>}
   */
  async call(method, { url = this.url, headers = {}, body } = {}) {
    const authorization = this.token === undefined ? {} : { authorization: `Bearer ${this.token}` };
    const length = body === undefined ? {} : { "content-length": String(Buffer.byteLength(body)) };
    const options = { method, headers: { ...authorization, ...length, ...headers }, timeout: ANSWER_LIMIT_MS };
    const exchange = await new Promise((resolve, reject) => {
      const call = (url.startsWith("https:") ? overHttps : overHttp)(url, options, (response) => {
        const chunks = [];
        response.on("data", (chunk) => chunks.push(chunk));
        response.on("error", reject);
        response.on("end", () => {
          const fields = new Map();
          for (let at = 0; at < response.rawHeaders.length; at += 2) {
            const name = response.rawHeaders[at].toLowerCase();
            fields.set(name, [...(fields.get(name) ?? []), response.rawHeaders[at + 1]]);
          }
          const text = Buffer.concat(chunks).toString("utf8");
          resolve({ method, url, status: response.statusCode ?? 0, headers: fields, body: text });
        });
      });
      call.on("timeout", () => call.destroy(new Unmet(`no answer to ${method} within ${ANSWER_LIMIT_MS / 1000} s`)));
      call.on("error", reject);
      call.end(body);
    });
    this.seen.push(exchange);
    return exchange;
  }

  /** POSTs an offer; a resulting session is ended after the row. */
  async post(sdp, headers = {}) {
    let exchange;
    for (let tries = 0; tries < TRIES; tries += 1) {
      exchange = await this.call("POST", { headers: { "content-type": "application/sdp", ...headers }, body: sdp });
      if (![409, 429, 503].includes(exchange.status)) break;
      const after = Number(field(exchange, "retry-after") ?? 0) * 1_000;
      await pause(Math.min(Math.max(after, WAIT_MS), WAIT_LIMIT_MS));
    }
    const location = field(exchange, "location");
    if (exchange.status === 201 && location !== null) this.#open.add(new URL(location, this.url).href);
    return exchange;
  }

  /** A session for a valid offer, for rows about what comes after the 201. */
  async open(made = offer()) {
    const exchange = await this.post(made.sdp);
    must(exchange.status === 201, `a good offer was answered ${exchange.status}`);
    const location = field(exchange, "location");
    must(location !== null, "201 without Location");
    const answer = exchange.body;
    return {
      offer: made,
      exchange,
      answer,
      url: new URL(location, this.url).href,
      etag: field(exchange, "etag"),
      ufrag: attribute(answer, "ice-ufrag") ?? "",
      pwd: attribute(answer, "ice-pwd") ?? "",
    };
  }

  async patch(session, body, headers = {}) {
    const type = { "content-type": "application/trickle-ice-sdpfrag" };
    return await this.call("PATCH", { url: session.url, headers: { ...type, ...headers }, body });
  }

  async end(session, headers = {}) {
    this.#open.delete(session.url);
    return await this.call("DELETE", { url: session.url, headers });
  }

  /** Whether the media side of a session answers ICE checks with these credentials, by default its own. */
  async isReachable(session, { localUfrag = session.offer.ufrag, ufrag = session.ufrag, pwd = session.pwd } = {}) {
    const [candidate] = udpCandidates(session.answer);
    must(candidate, "the answer has no UDP candidate");
    return await answersBinding(candidate, { localUfrag, remoteUfrag: ufrag, remotePwd: pwd });
  }

  /** Ends the sessions that a row left open. */
  async tidy() {
    for (const url of this.#open) await this.call("DELETE", { url });
    this.#open.clear();
  }
}

/** A header field as one text, or null. */
export function field(exchange, name) {
  return exchange.headers.get(name)?.join(", ") ?? null;
}

/** The tokens of a comma-separated header field, in lower case. */
export function tokens(exchange, name) {
  return (field(exchange, name) ?? "")
    .split(",")
    .map((token) => token.trim().toLowerCase())
    .filter((token) => token !== "");
}
