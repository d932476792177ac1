// Where a WHIP publish may be sent (P2, W2, W21): to ourselves, or to what the operator allows, and nowhere
// else.
import { afterEach, describe, expect, test } from "vitest";
import { otherHostUrl, readStreamUrl, type StreamUrlRules } from "../../ts/publish/whip/stream-url.ts";
import { STREAM } from "../support/publishing.ts";
import { expectProblem, openWhipGateway, type WhipGateway, type WhipGatewayOptions } from "../support/whip-gateway.ts";

const RULES: StreamUrlRules = {
  ownHosts: ["ingest.example", "127.0.0.1", "2001:db8::1"],
  rtmpPort: 1935,
  allow: [
    "push.example",
    "ports.example:1940",
    "ports.example:1941",
    "[2001:db8::2]:1940",
    "2001:db8::3",
    "Upper.Example",
  ],
};
const judge = (url: string, rules: Partial<StreamUrlRules> = {}) => readStreamUrl(url, STREAM, { ...RULES, ...rules });

/** URLs that are not plain RTMP URLs of the host, whatever the host. */
const tricks = (host: string): readonly string[] => [
  "",
  host,
  `//${host}/live`,
  `http://${host}:1935/live`,
  `https://${host}:1935/live`,
  `rtmpt://${host}/live`,
  `rtmp:/${host}/live`,
  `rtmp:${host}/live`,
  `rtmp:///${host}/live`,
  `xrtmp://${host}/live`,
  `rtmp://${host}`,
  `rtmp://${host}/`,
  `rtmp://${host}/Live`,
  `rtmp://${host}/lives`,
  `rtmp://${host}//live`,
  `rtmp://${host}/live//`,
  `rtmp://${host}/live/${STREAM}`,
  `rtmp://${host}/other/live`,
  `rtmp://${host}/other/../live`,
  `rtmp://${host}/./live`,
  `rtmp://${host}/live/.`,
  `rtmp://${host}/live/x/..`,
  `rtmp://${host}/live?`,
  `rtmp://${host}/live?a=b`,
  `rtmp://${host}/live#`,
  `rtmp://${host}/live#a`,
  `rtmp://user@${host}/live`,
  `rtmp://user:word@${host}/live`,
  `rtmp://@${host}/live`,
  `rtmp://${host}@other.example/live`,
  `rtmp://other.example#@${host}/live`,
  `rtmp://other.example\\@${host}/live`,
  `rtmp:\\\\${host}/live`,
  `rtmp://${host}\\live`,
  `rtmp://${host}%2Flive`,
  `rtmp://${host}/%6Cive`,
  `rtmp://${host}%00/live`,
  `rtmp://%${host}/live`,
  ` rtmp://${host}/live`,
  `rtmp://${host}/live `,
  `rtmp://${host}/live\n`,
  `rtmp://${host}/li\tve`,
  `rtmp://${host}/live\x00`,
  `\x01rtmp://${host}/live`,
  `rtmp://${host}/live\x01`,
  `rtmp://${host}\x00.other.example/live`,
  `rtmp://${host}\u3002other.example/live`,
  `rtmp://${host},other.example/live`,
  `rtmp://other.example,${host}/live`,
  `rtmp://${host};x/live`,
  `rtmp://${host}./live`,
  `rtmp://${host}.other.example/live`,
  `rtmp://other${host}/live`,
  `rtmp://${host}:0/live`,
  `rtmp://${host}:1936/live`,
  `rtmp://${host}:+1935/live`,
  `rtmp://${host}:67471/live`,
  `rtmp://${host}:1935:1935/live`,
];

describe("our own host", () => {
  test.each([
    "rtmp://ingest.example/live",
    "rtmp://ingest.example:1935/live",
    "rtmp://ingest.example/live/",
    "RTMP://Ingest.Example/live",
    `rtmp://${STREAM}.ingest.example/live`,
    `rtmp://${STREAM.toLowerCase()}.ingest.example:1935/live`,
    "rtmp://127.0.0.1/live",
    "rtmp://[2001:db8::1]/live",
    "rtmp://[2001:DB8:0::1]:1935/live",
  ])("is named by %s", (url) => {
    expect(judge(url)).toStrictEqual({ kind: "ourselves" });
  });

  test.each([
    "rtmp://Ab1Cd-00000.ingest.example/live",
    `rtmp://${STREAM}.${STREAM}.ingest.example/live`,
    `rtmp://.ingest.example/live`,
    "rtmp://localhost/live",
    "rtmp://2130706433/live",
    "rtmp://0177.0.0.1/live",
    "rtmp://0x7f.0.0.1/live",
    "rtmp://0x7f000001/live",
    "rtmp://127.1/live",
    "rtmp://127.000.000.001/live",
    "rtmp://\u0661\u0662\u0667.0.0.1/live",
    "rtmp://[::1]/live",
    "rtmp://[::ffff:127.0.0.1]/live",
    "rtmp://2001:db8::1/live",
    "rtmp://[2001:db8::1/live",
    "rtmp://[2001:db8::1%25eth0]/live",
  ])("is not named by %s", (url) => {
    expect(judge(url)).toStrictEqual({ kind: "refused" });
  });

  test.each(tricks("ingest.example"))("is not named by %j", (url) => {
    expect(judge(url)).toStrictEqual({ kind: "refused" });
  });

  test("is valid only with our RTMP port", () => {
    const rules = { rtmpPort: 1940 };
    expect(judge("rtmp://ingest.example:1940/live", rules)).toStrictEqual({ kind: "ourselves" });
    expect(judge("rtmp://ingest.example/live", rules)).toStrictEqual({ kind: "refused" });
    expect(judge("rtmp://ingest.example:1935/live", rules)).toStrictEqual({ kind: "refused" });
  });
});

describe("an allowed host", () => {
  test.each<[url: string, host: string, port: number]>([
    ["rtmp://push.example/live", "push.example", 1935],
    ["rtmp://push.example:1935/live/", "push.example", 1935],
    ["rtmp://ports.example:1940/live", "ports.example", 1940],
    ["rtmp://ports.example:1941/live", "ports.example", 1941],
    ["rtmp://[2001:db8::2]:1940/live", "[2001:db8::2]", 1940],
    ["rtmp://[2001:db8:0:0::3]/live", "[2001:db8::3]", 1935],
  ])("is dialled for %s", (url, host, port) => {
    expect(judge(url)).toStrictEqual({ kind: "other_host", scheme: "rtmp", host, port });
  });

  test("is matched in any case", () => {
    expect(judge("rtmp://UPPER.example/live")).toMatchObject({ kind: "other_host", port: 1935 });
  });

  test.each([
    "rtmp://push.example:1940/live",
    "rtmp://ports.example/live",
    "rtmp://ports.example:1942/live",
    "rtmp://[2001:db8::2]/live",
    "rtmp://other.example/live",
    `rtmp://${STREAM}.push.example/live`,
  ])("is not %s", (url) => {
    expect(judge(url)).toStrictEqual({ kind: "refused" });
  });

  test.each(tricks("push.example"))("is not named by %j", (url) => {
    expect(judge(url)).toStrictEqual({ kind: "refused" });
  });
});

describe("at the endpoint, stream_url", () => {
  let gateway: WhipGateway;
  afterEach(() => gateway.close());

  /** A gateway whose customer must not be asked when a URL is refused. */
  async function open(options: WhipGatewayOptions = {}): Promise<void> {
    gateway = await openWhipGateway(options);
  }
  const queryOf = (url: string, name = STREAM) => `stream_name=${name}&stream_url=${encodeURIComponent(url)}`;

  async function expectRefused(url: string): Promise<void> {
    const answer = await gateway.offer(queryOf(url));
    expectProblem(answer, 400, "bad_stream_url", "Invalid stream_url", "It must be rtmp://<an allowed host>/live");
    expect(gateway.customer.requests).toHaveLength(0);
    expect(gateway.openings()).toHaveLength(0);
  }

  test.each<[origin: string, url: string]>([
    ["https://live.example:8443", "rtmp://live.example/live"],
    ["https://live.example", `rtmp://${STREAM}.live.example:1935/live`],
    ["http://192.0.2.7:8080", "rtmp://192.0.2.7/live"],
    ["http://[2001:db8::9]:8080", "rtmp://[2001:db8::9]/live"],
    ["https://live.example", "rtmp://ingest.example/live"],
  ])("at %s means ourselves: %s", async (origin, url) => {
    await open();
    await gateway.opened(queryOf(url), { origin });
    expect(gateway.openings()).toMatchObject([{ name: STREAM, ownUpstream: null, upstreams: [] }]);
  });

  test.each(["rtmp://other.example/live", "rtmp://gateway.example:1936/live", "ingest.example", "rtmp://%00/live"])(
    "is refused before the customer is asked: %s",
    async (url) => {
      await open();
      await expectRefused(url);
    },
  );

  test("that is encoded twice is refused", async () => {
    await open();
    await expectRefused(encodeURIComponent("rtmp://ingest.example/live"));
  });

  test.each<[what: string, name: string, verbatim: string]>([
    ["name", STREAM, STREAM],
    ["name and arguments", `${STREAM}%3Fk%3Da+b%2526%26k2%3D%C3%A9?x=y`, `${STREAM}?k=a+b%26&k2=é`],
  ])("of an allowed host is pushed to with %s verbatim", async (_, name, verbatim) => {
    await open({ allow: ["93.184.216.34:1940"] });
    await gateway.opened(queryOf("rtmp://93.184.216.34:1940/live", name));
    const ownUpstream = `rtmp://93.184.216.34:1940/live/${verbatim}`;
    expect(gateway.openings()).toMatchObject([{ name: STREAM, ownUpstream, upstreams: [] }]);
  });

  test("of an allowed host is refused with arguments that are not UTF-8, which are not dropped", async () => {
    await open({ allow: ["93.184.216.34"] });
    const answer = await gateway.offer(queryOf("rtmp://93.184.216.34/live", `${STREAM}%3Fk%3D%FF`));
    const detail = "Custom arguments are not UTF-8";
    expectProblem(answer, 400, "malformed_name", "Invalid stream name", detail);
    expect(gateway.customer.requests).toHaveLength(0);
  });

  test("of an allowed host is pushed to in addition to the operator's upstreams", async () => {
    const settings = { upstreamPush: ["rtmp://operator.example/live/{name}"] };
    await open({ allow: ["[2606:4700::1111]"], settings });
    await gateway.opened(queryOf("rtmp://[2606:4700::1111]/live"));
    const upstreams = [{ url: `rtmp://operator.example/live/${STREAM}`, source: "deployment" }];
    const ownUpstream = `rtmp://[2606:4700::1111]:1935/live/${STREAM}`;
    expect(gateway.openings()).toMatchObject([{ ownUpstream, upstreams }]);
  });

  const INSIDE = ["10.0.0.1", "127.0.0.1", "169.254.169.254", "[::1]", "[::ffff:10.0.0.1]", "[fd00::1]", "localhost"];
  const READ_BY_RESOLVERS = ["2130706433", "0x7f000001", "0177.0.0.1", "127.1"];

  test.each([...INSIDE, ...READ_BY_RESOLVERS])(
    "of an allowed private host (%s) is refused like one that is not allowed",
    async (host) => {
      await open({ allow: [host], settings: { dev: false } });
      await expectRefused(`rtmp://${host}/live`);
    },
  );

  test("of an allowed host that does not resolve is refused like one that is not allowed", async () => {
    // Longer than a label may be: no resolver is queried.
    const host = `${"a".repeat(64)}.example`;
    await open({ allow: [host] });
    await expectRefused(`rtmp://${host}/live`);
  });

  test("of an allowed host is resolved for the organisation of the stream, and for nobody if there is no such stream", async () => {
    const asked: (string | undefined)[] = [];
    const resolve = async (host: string, owner?: string) => {
      if (host === "localhost") return ["127.0.0.1"]; // the customer
      asked.push(`${host} for ${owner}`);
      return ["93.184.216.34"];
    };
    await open({ allow: ["push.example", "one.example", "two.example"], resolve });
    await gateway.opened(queryOf("rtmp://push.example/live"));
    const denied = await gateway.offer(queryOf("rtmp://one.example/live", "none"));
    await gateway.offer(queryOf("rtmp://two.example/live", "no-%00"));
    expect(denied.status).toBe(404);
    expect(asked).toEqual(["push.example for org1", "one.example for nobody", "two.example for nobody"]);
  });

  test.each(["10.0.0.1", "localhost"])("of an allowed private host (%s) is accepted with --dev", async (host) => {
    await open({ allow: [host] });
    await gateway.opened(queryOf(`rtmp://${host}/live`));
    expect(gateway.openings()).toMatchObject([{ ownUpstream: `rtmp://${host}:1935/live/${STREAM}` }]);
  });
});

describe("rtmps", () => {
  test.each<[url: string, kind: string]>([
    ["rtmps://ingest.example:1936/live", "ourselves"],
    [`rtmps://${STREAM}.ingest.example:1936/live/`, "ourselves"],
    ["RTMPS://127.0.0.1:1936/live", "ourselves"],
    ["rtmps://ingest.example:1935/live", "refused"],
    ["rtmps://ingest.example/live", "refused"],
    ["rtmp://ingest.example:1936/live", "refused"],
    ["rtmps://push.example/live", "other_host"],
    ["rtmps://push.example:443/live", "other_host"],
    ["rtmps://push.example:1935/live", "refused"],
    ["rtmps://ports.example:1940/live", "other_host"],
    ["rtmps://user@push.example/live", "refused"],
  ])("%s is %s", (url, kind) => {
    expect(judge(url, { rtmpsPort: 1936 }).kind).toBe(kind);
  });

  test("is never ours without a certificate, and keeps its scheme in pushes to others", () => {
    expect(judge("rtmps://ingest.example:1936/live")).toStrictEqual({ kind: "refused" });
    const target = judge("rtmps://push.example/live");
    if (target.kind !== "other_host") throw new Error(target.kind);
    expect(otherHostUrl(target, STREAM, "a=b")).toBe(`rtmps://push.example:443/live/${STREAM}?a=b`);
  });
});
