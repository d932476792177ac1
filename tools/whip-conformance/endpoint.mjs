// The requirements of RFC 9725 for the endpoint: rows E1 to E25.
import { field, must, NotApplicable } from "./client.mjs";
import { mediaOf, offer, sections } from "./offer.mjs";
import { supports } from "./session.mjs";

const refused = (status) => status === 422 || status === 400;
const isClientError = (status) => status >= 400 && status < 500;

/** @type {import("./rows.d.mts").Row[]} */
export const endpointRows = [
  {
    id: "E1",
    level: "must",
    section: "4.2",
    says: "POST of an application/sdp offer is accepted",
    async check(client) {
      const { status } = await client.post(offer().sdp);
      must(status === 201, `answered ${status}`);
    },
  },
  {
    id: "E2",
    level: "must",
    section: "4.2",
    says: "success is 201 with an application/sdp answer and a Location",
    async check(client) {
      const { exchange, answer } = await client.open();
      const type = field(exchange, "content-type") ?? "";
      must(/^application\/sdp\s*(;|$)/i.test(type), `Content-Type: ${type}`);
      must(answer.startsWith("v=0\r\n") && answer.endsWith("\r\n"), "the answer is not SDP with CRLF line ends");
    },
  },
  {
    id: "E3",
    level: "must",
    section: "4.2",
    says: "another content type or malformed SDP is a 4xx",
    async check(client) {
      const typed = await client.post(offer().sdp, { "content-type": "application/json" });
      must(isClientError(typed.status), `application/json was answered ${typed.status}`);
      const malformed = await client.post("hello\r\n");
      must(isClientError(malformed.status), `malformed SDP was answered ${malformed.status}`);
    },
  },
  {
    id: "E4",
    level: "must",
    section: "4.2",
    says: "every section of the answer is recvonly",
    async check(client) {
      const { answer } = await client.open();
      must(mediaOf(answer).length === 2, `${mediaOf(answer).length} sections for 2`);
      must(
        mediaOf(answer).every((lines) => lines.includes("a=recvonly")),
        "a section without a=recvonly",
      );
    },
  },
  {
    id: "E5",
    level: "must",
    section: "4.2",
    says: "sendrecv is accepted; inactive and recvonly offers are refused",
    async check(client) {
      const both = await client.post(offer({ direction: "sendrecv" }).sdp);
      must(both.status === 201, `sendrecv was answered ${both.status}`);
      await client.tidy();
      for (const direction of ["inactive", "recvonly"]) {
        const { status } = await client.post(offer({ direction }).sdp);
        must(isClientError(status), `${direction} was answered ${status}`);
      }
    },
  },
  {
    id: "E6",
    level: "must",
    section: "4.3.2",
    says: "the answer carries the server's candidates, all of them",
    async check(client) {
      const { answer } = await client.open();
      must(/^a=candidate:/m.test(answer), "no a=candidate");
      must(
        !/^a=ice-options:.*\btrickle\b/m.test(answer) || /^a=end-of-candidates/m.test(answer),
        "promises more by trickle",
      );
    },
  },
  {
    id: "E7",
    level: "must",
    section: "4.3.1",
    says: "with ICE restarts: the 201 carries a strong entity tag",
    async check(client) {
      if (!(await supports(client)).restart) throw new NotApplicable("no ICE restart");
      const { etag } = await client.open();
      must(etag !== null && /^"[^"]+"$/.test(etag), `ETag: ${etag}`);
    },
  },
  {
    id: "E8",
    level: "must",
    section: "4.3.2",
    says: "with trickle: the 201 carries an entity tag, new for each session",
    async check(client) {
      if (!(await supports(client)).trickle) throw new NotApplicable("no trickle");
      const first = await client.open();
      await client.tidy();
      const second = await client.open();
      must(first.etag !== null && first.etag !== second.etag, `ETag: ${first.etag}, then ${second.etag}`);
    },
  },
  {
    id: "E9",
    level: "must",
    section: "4.4.1",
    says: "BUNDLE, max-bundle and rtcp-mux",
    async check(client) {
      const made = offer({ bundleOnly: true });
      const { answer } = await client.open(made);
      const group = /^a=group:BUNDLE (.*?)\s*$/m.exec(answer)?.[1] ?? "none";
      must(group === made.mids.join(" "), `group: ${group}`);
      must(!/^m=\S+ 0 /m.test(answer), "a bundle-only section was taken for a rejected one");
      must(
        mediaOf(answer).every((lines) => lines.includes("a=rtcp-mux")),
        "a section without a=rtcp-mux",
      );
    },
  },
  {
    id: "E10",
    level: "must",
    section: "4.4.1",
    says: "a=rtcp-mux-only in every bundled section of the answer",
    async check(client) {
      const { answer } = await client.open();
      must(
        mediaOf(answer).every((lines) => lines.includes("a=rtcp-mux-only")),
        "a section without it",
      );
    },
  },
  {
    id: "E11",
    level: "must",
    section: "4.4.2",
    says: "too many tracks are refused by 422 or 400; audio or video alone is accepted",
    async check(client) {
      const { audio, video } = sections;
      const two = await client.post(offer({ sections: [audio, video, video] }).sdp);
      must(two.status === 201 || refused(two.status), `two pictures were answered ${two.status}`);
      await client.tidy();
      for (const only of [audio, video]) {
        const { status } = await client.post(offer({ sections: [only] }).sdp);
        must(status === 201, `${only.kind} alone was answered ${status}`);
        await client.tidy();
      }
    },
  },
  {
    id: "E12",
    level: "should",
    section: "4.4.3",
    says: "no partial answer: an unsupported section refuses the whole offer",
    async check(client) {
      const { status, body } = await client.post(offer({ sections: [sections.audio, sections.vp8] }).sdp);
      must(refused(status) || (status === 201 && !/^m=\S+ 0 /m.test(body)), `VP8 was answered ${status}`);
    },
  },
  {
    id: "E13",
    level: "may",
    section: "4.1",
    says: "refusals carry problem details (RFC 9457)",
    async check(client) {
      const exchange = await client.post("hello\r\n");
      const type = field(exchange, "content-type") ?? "none";
      must(/^application\/problem\+json/.test(type), `Content-Type: ${type}`);
      must(JSON.parse(exchange.body).status === exchange.status, "its status is another");
    },
  },
  {
    id: "E14",
    level: "should",
    section: "4.4.4",
    says: "setup is the inverse of actpass, active and passive, or 422/400",
    async check(client) {
      for (const [asked, answers] of Object.entries({
        actpass: ["active", "passive"],
        active: ["passive"],
        passive: ["active"],
      })) {
        const { status, body } = await client.post(offer({ setup: asked }).sdp);
        const setups = [...body.matchAll(/^a=setup:(\S+)/gm)].map(([, setup]) => setup);
        const isInverse = setups.length > 0 && setups.every((setup) => answers.includes(setup));
        must(status === 201 ? isInverse : refused(status), `${asked}: ${status} ${setups.join(" ")}`);
        await client.tidy();
      }
    },
  },
  {
    id: "E15",
    level: "should",
    section: "4.4.5",
    says: "the first UDP candidate answers ICE checks, full or lite, before any trickle",
    async check(client) {
      const session = await client.open();
      must(await client.isReachable(session), "silence");
      must(!(await client.isReachable(session, { pwd: "not-the-password-of-it" })), "answers a wrong password too");
    },
  },
  {
    id: "E16",
    level: "may",
    section: "4.6",
    says: "ICE servers come in Link fields of the 201",
    async check(client) {
      const { exchange } = await client.open();
      if (!/rel="?ice-server/.test(field(exchange, "link") ?? "")) throw new NotApplicable("no ICE servers");
    },
  },
  {
    id: "E17",
    level: "must",
    section: "4.9",
    says: "extensions are Links whose rel is urn:ietf:params:whip:ext:…",
    async check(client) {
      const { exchange } = await client.open();
      const rels = [...(field(exchange, "link") ?? "").matchAll(/rel="?([^";,\s]+)/g)].map(([, rel]) => rel);
      const extensions = rels.filter((rel) => rel !== "ice-server");
      if (extensions.length === 0) throw new NotApplicable("no extensions");
      must(
        extensions.every((rel) => rel.startsWith("urn:ietf:params:whip:ext:")),
        extensions.join(" "),
      );
    },
  },
  {
    id: "E20",
    level: "must",
    section: "4.8",
    says: "an accepted simulcast offer is answered as RFC 8853 5.3.2 says",
    async check(client) {
      const { status, body } = await client.post(offer({ simulcast: ["h", "m", "l"] }).sdp);
      if (refused(status)) throw new NotApplicable(`refused by ${status}`);
      must(status === 201, `answered ${status}`);
      const taken = /^a=simulcast:(.*?)\s*$/m.exec(body)?.[1];
      if (taken === undefined) throw new NotApplicable("answered without simulcast: one layer is taken");
      must(/^recv [hml](;[hml])*$/.test(taken), `a=simulcast:${taken}`);
      const rids = taken.slice("recv ".length).split(";");
      must(
        rids.every((rid) => new RegExp(`^a=rid:${rid} recv`, "m").test(body)),
        "a layer without a=rid … recv",
      );
    },
  },
  {
    id: "E21",
    level: "must",
    section: "4.1",
    says: "GET of endpoint and session is 2xx without content",
    async check(client) {
      const { url } = await client.open();
      for (const target of [client.url, url]) {
        const { status, body } = await client.call("GET", { url: target });
        must(status >= 200 && status < 300 && body === "", `${status}, ${body.length} characters`);
      }
    },
  },
  {
    id: "E22",
    level: "must",
    section: "4.2",
    says: "OPTIONS is supported and names Accept-Post: application/sdp",
    async check(client) {
      const exchange = await client.call("OPTIONS");
      must(exchange.status === 200 || exchange.status === 204, `answered ${exchange.status}`);
      must(
        /application\/sdp/.test(field(exchange, "accept-post") ?? ""),
        `Accept-Post: ${field(exchange, "accept-post")}`,
      );
    },
  },
  {
    id: "E23",
    level: "should",
    section: "4.6",
    says: "a CORS preflight names no ICE servers",
    async check(client) {
      const headers = { origin: "https://page.example", "access-control-request-method": "POST" };
      const exchange = await client.call("OPTIONS", { headers });
      must(!/rel="?ice-server/.test(field(exchange, "link") ?? ""), `Link: ${field(exchange, "link")}`);
    },
  },
  {
    id: "E24",
    level: "must",
    section: "4.7",
    says: "Bearer is supported: accepted, or answered 401 with WWW-Authenticate",
    async check(client) {
      const headers = client.token === undefined ? { authorization: "Bearer undefined" } : {};
      const exchange = await client.post(offer().sdp, headers);
      const asks = exchange.status === 401 && /bearer/i.test(field(exchange, "www-authenticate") ?? "");
      must(exchange.status === 201 || asks, `answered ${exchange.status}`);
    },
  },
  {
    id: "E25",
    level: "must",
    section: "5",
    says: "the endpoint is HTTPS (loopback excepted)",
    async check(client) {
      const { protocol, hostname } = new URL(client.url);
      const isLoopback = hostname === "localhost" || hostname === "[::1]" || hostname.startsWith("127.");
      must(protocol === "https:" || isLoopback, protocol);
    },
  },
];

/** Checks over all answers of the run; they come last. @type {import("./rows.d.mts").Row[]} */
export const wholeRunRows = [
  {
    id: "E18",
    level: "may",
    section: "4.5",
    says: "no failure is a plain 500; overload is 503",
    async check(client) {
      const errors = client.seen.filter(({ status }) => status >= 500 && ![502, 503, 504].includes(status));
      must(errors.length === 0, errors.map(({ method, status }) => `${method} ${status}`).join(", "));
    },
  },
  {
    id: "E19",
    level: "must",
    section: "4.5",
    says: "no answer redirects by 301 or 302",
    async check(client) {
      const moved = client.seen.filter(({ status }) => status === 301 || status === 302);
      must(moved.length === 0, moved.map(({ method, status }) => `${method} ${status}`).join(", "));
    },
  },
  {
    id: "E25b",
    level: "should",
    section: "5",
    says: "a flood of offers is limited (429 or 503); with --flood",
    async check(client) {
      if (!client.options.flood) throw new NotApplicable("not asked for: --flood");
      const flood = await Promise.all(
        Array.from({ length: 300 }, () =>
          client.call("POST", { headers: { "content-type": "application/sdp" }, body: offer().sdp }),
        ),
      );
      for (const { status, headers } of flood) {
        const location = headers.get("location")?.[0];
        if (status === 201 && location) await client.call("DELETE", { url: new URL(location, client.url).href });
      }
      const statuses = [...new Set(flood.map(({ status }) => status))];
      must(statuses.includes(429) || statuses.includes(503), `300 offers at once: ${statuses.join(", ")}`);
    },
  },
];
