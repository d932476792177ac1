// Link fields of ICE servers (RFC 9725 section 4.6; rows L) and CORS, which browsers need (rows C).
import { field, must, NotApplicable, tokens } from "./client.mjs";
import { offer } from "./offer.mjs";
import { supports } from "./session.mjs";

const ORIGIN = "https://page.example";

/** The ICE servers of a new 201: each raw Link field, and its parts. */
async function iceServers(client) {
  const { exchange } = await client.open();
  const lines = (exchange.headers.get("link") ?? []).filter((line) => /rel="?ice-server/.test(line));
  if (lines.length === 0) throw new NotApplicable("no ICE servers");
  const parameter = (line, name) => new RegExp(`;\\s*${name}="([^"]*)"`).exec(line)?.[1] ?? null;
  return lines.map((line) => ({
    line,
    uri: /^<([^>]*)>/.exec(line)?.[1] ?? "",
    username: parameter(line, "username"),
    credential: parameter(line, "credential"),
  }));
}

const preflight = (client, url, method) =>
  client.call("OPTIONS", {
    url,
    headers: {
      origin: ORIGIN,
      "access-control-request-method": method,
      "access-control-request-headers": "authorization,content-type,if-match,etag",
    },
  });

function mustAllow(exchange, method) {
  must(exchange.status === 200 || exchange.status === 204, `preflight of ${method} was answered ${exchange.status}`);
  const methods = tokens(exchange, "access-control-allow-methods");
  must(methods.includes(method.toLowerCase()) || methods.includes("*"), `${method} is not in ${methods.join(", ")}`);
}

/** @type {import("./rows.d.mts").Row[]} */
export const headerRows = [
  {
    id: "L1",
    level: "must",
    section: "4.6",
    says: "one Link field for each ICE server, none joined by commas",
    async check(client) {
      for (const { line } of await iceServers(client)) must(!/,\s*</.test(line), line.replace(/"[^"]*"/g, '"…"'));
    },
  },
  {
    id: "L2",
    level: "must",
    section: "4.6",
    says: "each is a stun:, turn: or turns: URI (RFC 7064, 7065)",
    async check(client) {
      for (const { uri } of await iceServers(client)) {
        const form = /^(stuns?:[^/?@]+|turns?:[^/?@]+(\?transport=(udp|tcp))?)$/;
        must(form.test(uri), uri);
      }
    },
  },
  {
    id: "L3",
    level: "must",
    section: "4.6",
    says: "TURN servers come with username and credential",
    async check(client) {
      const turn = (await iceServers(client)).filter(({ uri }) => uri.startsWith("turn"));
      if (turn.length === 0) throw new NotApplicable("no TURN server");
      for (const { uri, username, credential } of turn) must(username && credential, uri);
    },
  },
  {
    id: "L4",
    level: "should",
    section: "4.6",
    says: "nothing from drafts (credential-type); no comma or semicolon in secrets",
    async check(client) {
      for (const { line, username, credential } of await iceServers(client)) {
        must(!/credential-type/.test(line), "credential-type");
        must(!/[,;]/.test(`${username}${credential}`), "a client that splits at these characters breaks it");
      }
    },
  },
  {
    id: "C1",
    level: "should",
    section: "CORS",
    says: "a page may read Location, ETag, Link, Accept-Post and Retry-After",
    async check(client) {
      const exchange = await client.post(offer().sdp, { origin: ORIGIN });
      must(
        ["*", ORIGIN].includes(field(exchange, "access-control-allow-origin") ?? ""),
        "no Access-Control-Allow-Origin",
      );
      const exposed = tokens(exchange, "access-control-expose-headers");
      const missing = ["location", "etag", "link", "accept-post", "retry-after"].filter(
        (name) => !exposed.includes(name),
      );
      must(missing.length === 0 || exposed.includes("*"), `not exposed: ${missing.join(", ")}`);
    },
  },
  {
    id: "C2",
    level: "should",
    section: "CORS",
    says: "a plain OPTIONS shows its methods to a page, PATCH among them where it works",
    async check(client) {
      const exchange = await client.call("OPTIONS", { headers: { origin: ORIGIN } });
      const exposed = tokens(exchange, "access-control-expose-headers");
      must(exposed.includes("access-control-allow-methods"), "Access-Control-Allow-Methods is not exposed");
      const { trickle, restart } = await supports(client);
      const promised = tokens(exchange, "access-control-allow-methods").includes("patch");
      must(
        promised === (trickle || restart),
        promised ? "PATCH is named but does not work" : "PATCH works but is not named",
      );
    },
  },
  {
    id: "C3",
    level: "must",
    section: "CORS",
    says: "preflights allow POST and OPTIONS of the endpoint, DELETE and PATCH of a session",
    async check(client) {
      for (const method of ["POST", "OPTIONS"]) mustAllow(await preflight(client, client.url, method), method);
      const { url } = await client.open();
      const { trickle, restart } = await supports(client);
      mustAllow(await preflight(client, url, "DELETE"), "DELETE");
      if (trickle || restart) mustAllow(await preflight(client, url, "PATCH"), "PATCH");
    },
  },
  {
    id: "C4",
    level: "should",
    section: "CORS",
    says: "request headers Authorization, Content-Type, If-Match and ETag are allowed",
    async check(client) {
      const allowed = tokens(await preflight(client, client.url, "POST"), "access-control-allow-headers");
      const missing = ["authorization", "content-type", "if-match", "etag"].filter((name) => !allowed.includes(name));
      must(missing.length === 0, `not allowed: ${missing.join(", ")}`);
    },
  },
  {
    id: "C5",
    level: "should",
    section: "CORS",
    says: "a page may read refusals too",
    async check(client) {
      const exchange = await client.post("hello\r\n", { origin: ORIGIN });
      must(field(exchange, "access-control-allow-origin") !== null, "no Access-Control-Allow-Origin");
    },
  },
];
