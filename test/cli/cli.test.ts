// The command line as an operator types it: every verb, exit codes, `--json`, and errors that say what helps.
import { randomBytes } from "node:crypto";
import { createSocket } from "node:dgram";
import { once } from "node:events";
import { existsSync, mkdtempSync, rmSync, statSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { parse as parseToml } from "smol-toml";
import { afterAll, beforeAll, describe, expect, test } from "vitest";
import { openStore } from "../../ts/store/open.ts";
import { until } from "../support/child.ts";
import { command } from "../support/command.ts";
import { type Headgate, startHeadgate } from "../support/headgate.ts";
import { startPostgres } from "../support/postgres.ts";
import { casesOfRun, storesOfRun } from "../support/whole-run.ts";

let folder: string;
let env: Record<string, string>;

beforeAll(async () => {
  folder = mkdtempSync(join(tmpdir(), "headgate-cli-"));
  env = { PATH: process.env.PATH ?? "", HEADGATE_DATA_DIR: join(folder, "data"), HEADGATE_MEDIA_PORT: "0" };
  await headgate(["init"]);
}, 120_000);
afterAll(() => rmSync(folder, { recursive: true, force: true }));

interface Listed {
  readonly id: string;
  readonly state: string;
  readonly created_at: string;
}

const headgate = (words: readonly string[], more: Readonly<Record<string, string>> = {}) =>
  command(words, { ...env, ...more });

async function json<T>(words: readonly string[], more: Readonly<Record<string, string>> = {}): Promise<T> {
  const { code, out, err } = await headgate([...words, "--json"], more);
  expect(err).not.toContain("    at ");
  expect([words.join(" "), code, err]).toEqual([words.join(" "), 0, err]);
  return JSON.parse(out) as T;
}

test("help lists every verb and the exit codes", async () => {
  const { code, out } = await headgate(["--help"]);
  expect(code).toBe(0);
  const verbs =
    "serve demo init doctor config organisation user keys stream token webhook settings logo usage audit api sessions upstreams nodes backup restore store openapi";
  for (const verb of verbs.split(" ")) expect(out).toMatch(new RegExp(`^ +${verb} `, "m"));
  expect(out).toContain("4 the store cannot be opened");
  expect(await headgate(["help"])).toEqual({ code: 0, out, err: "" });
  expect((await headgate(["help", "keys"])).out).toContain("headgate keys ls | create");
}, 60_000);

const MISTAKES: readonly (readonly [words: readonly string[], code: number, what: string])[] = [
  [["sever"], 2, "did you mean serve?"],
  [["quux"], 2, "quux is not a command. See headgate --help"],
  [["stream", "ls", "--data-dir", ""], 2, "--data-dir needs a value"],
  [["config", "check", "--data-dir"], 2, "--data-dir needs a value"],
  [["organisation", "disable"], 2, "the organisation's name is missing"],
  [["webhook", "replay"], 2, "the id of a delivery (headgate webhook deliveries) is missing"],
  [["webhook", "simulate", "--certificate", "/no/such/folder/a.pem"], 2, "--certificate: cannot write"],
  [["keys", "make"], 2, "keys make is not known: headgate keys ls, headgate keys create"],
  [["keys"], 2, "keys needs a further word: headgate keys ls"],
  [["webhook"], 2, "webhook needs a further word: headgate webhook show"],
  [["keys", "ls", "more"], 2, "keys ls takes no further word: more"],
  [["backup", "a", "b"], 2, "backup takes no further word: b"],
  [["stream", "show"], 2, "the stream's name or id is missing"],
  [["stream", "lock", "nobody"], 2, "there is no stream nobody: headgate stream ls"],
  [["stream", "create", "--tag", "a,,b"], 2, "each tag must have 1 to 100 characters"],
  [["keys", "create"], 2, "--role must be one of administrator, user, readonly"],
  [
    ["keys", "create", "--role", "user", "--organisation", "nobody"],
    2,
    "nobody does not name exactly one organisation",
  ],
  [["user", "password", "who@example.com"], 2, "a user who@example.com of Headgate is missing"],
  [["token", "rotate"], 2, "has not been published for long enough"],
  [["backup"], 2, "the file to write is missing"],
  [["store"], 2, "store needs a further word: headgate store copy FROM TO"],
  [["store", "copy"], 2, "where to copy from, a data directory or a postgresql:// URL, is missing"],
  [["sessions", "ls", "--url", "http://127.0.0.1:1"], 2, "HEADGATE_API_KEY"],
  [["sessions", "ls", "--url", "nonsense"], 2, "is not an address"],
  [["serve", "--frob"], 2, "--frob is not known"],
  [["--frob"], 2, "--frob is not known"],
  [["-x"], 2, "-x is not known"],
  [["serve", "extra"], 2, "no further word: extra"],
  [["stream", "create", "--tag"], 2, "--tag needs a value"],
  [["webhook", "deliveries", "--quantity", "x"], 2, "--quantity must be a number"],
  [["stream", "ls", "--tag", "sports"], 2, "--tag is for stream create, not for stream ls"],
  [["stream", "rm", "a", "--reason", "b"], 2, "--reason is for stream stop, refusals, not for stream rm"],
  [["webhook", "set", "https://a.example", "--events", "alerts"], 2, "--events is for webhook set --copies"],
  [["webhook", "replay", "a", "--copies"], 2, "--copies is for webhook show, set, rm, secret, test, deliveries, not"],
  [["stream", "refusals", "a", "--quantity", "-5"], 2, "-5 is taken for a flag: write a negative value with ="],
  [["organisation", "create", " "], 2, "the organisation's name is missing"],
  [["organisation", "create", "x".repeat(101)], 2, "the name may have 100 characters"],
  [["organisation", "create", "red\u001b[31m"], 2, "and no control characters"],
  [["store", "copy", "/tmp/one", "/tmp/one/"], 2, "/tmp/one cannot be copied to itself"],
  [["webhook", "simulate", "--port", "99999"], 2, "--port must be a whole number"],
];

// In the whole run each case starts a process, and nothing more.
test.concurrent.each(casesOfRun(MISTAKES, 4))(
  "%j exits with %d and says what helps",
  async (words, code, what) => {
    const said = await headgate(words);
    expect([said.code, said.err]).toEqual([code, expect.stringContaining(what)]);
    expect(said.out).toBe("");
    expect(said.err).not.toContain("    at ");
  },
  60_000,
);

describe.concurrent("without a running service", () => {
  test("the service is called where the configuration says it is", async () => {
    const { code, err } = await headgate(["sessions", "ls"], { HEADGATE_API_KEY: "x", HEADGATE_HTTP_PORT: "1" });
    expect([code, err]).toEqual([1, expect.stringContaining("no answer from http://127.0.0.1:1:")]);
  }, 60_000);

  test("init shows keys once, and changes nothing the second time", async () => {
    const own = { HEADGATE_DATA_DIR: join(folder, "init") };
    const first = await json<Record<string, unknown>>(["init"], own);
    expect(first).toEqual({
      created: true,
      api_key: expect.stringMatching(/^hg_/),
      admin_password: expect.stringMatching(/^\w{24}$/),
    });
    expect(await json(["init"], own)).toEqual({ created: false, api_key: null, admin_password: null });
  }, 60_000);

  test("doctor checks everything and reports what it found", async () => {
    const findings = await json<{ what: string; state: string }[]>(["doctor"]);
    const states = Object.fromEntries(findings.map(({ what, state }) => [what.split(" ")[0], state]));
    expect(states).toMatchObject({ store: "good", certificate: "warning", media: "good" });
    expect(Object.keys(states)).toContain("http.port");
    const behindRouter = { HEADGATE_PUBLIC_ADDRESSES: "203.0.113.1" };
    const told = (await headgate(["doctor", "--verbose"], behindRouter)).out;
    expect(told).toMatch(/^warn addresses of media: 203\.0\.113\.1 is not an address of this machine, and a datagram/m);
    expect(told).toMatch(/^(ok {3}|warn )receive buffer of the media ports: (4194304 bytes|the kernel buffers \d+)/m);
    expect(told).not.toContain("kernel drops");
    expect(told).toMatch(/^\d+ of \d+ checks found nothing wrong$/m);
    const short = (await headgate(["doctor"], behindRouter)).out;
    expect(short).not.toMatch(/^ok/m);
    expect(short).toMatch(/^\d+ of \d+ checks found nothing wrong \(--verbose lists them\)$/m);
    const broken = await headgate(["doctor"], { HEADGATE_HTTP_HOST: "203.0.113.1" });
    expect([broken.code, broken.out]).toEqual([1, expect.stringMatching(/^BAD {2}http\.port 203\.0\.113\.1:8080/m)]);
  }, 60_000);

  test("doctor reports the losses on a running service's media ports", async () => {
    const socket = createSocket("udp4").bind(0, "127.0.0.1");
    await once(socket, "listening");
    const ports = { HEADGATE_MEDIA_PORT: String(socket.address().port), HEADGATE_MEDIA_WORKERS: "1" };
    const { out } = await headgate(["doctor", "--verbose"], ports);
    socket.close();
    expect(out).toMatch(/^ok {3}kernel drops on the media ports: none since the service started$/m);
  }, 60_000);

  test("config is checked, printed and described", async () => {
    expect((await headgate(["config", "check"])).code).toBe(0);
    const printed = await json<{ key: string }[]>(["config", "print"]);
    const secrets = { HEADGATE_UPSTREAM_PUSH: "rtmp://up.example/live/stream-key", HEADGATE_ICE_TURN_SECRET: "s3cret" };
    const { out } = await headgate(["config", "print"], secrets);
    expect(parseToml(out)).toMatchObject({ http: { port: 8080 }, media: { port: 0 } });
    expect(out).not.toMatch(/stream-key|s3cret/);
    const schema = await json<{ key: string; environment: string }[]>(["config", "schema"]);
    expect(schema.map(({ key }) => key)).toEqual(printed.map(({ key }) => key));
  }, 60_000);

  test("for a store in PostgreSQL the copy command is shown, without the password", async () => {
    const said = await headgate(["backup", join(folder, "x")], {
      HEADGATE_DATABASE_URL: "postgres://me:s3cret@127.0.0.1:1/headgate",
    });
    expect([said.code, said.err]).toEqual([2, expect.stringContaining("pg_dump --format=custom --file=")]);
    expect(said.err).not.toContain("s3cret");
  }, 60_000);
});

// Both run concurrently, each in the order of its tests: commands that name no organisation require that
// there is only one.
describe.concurrent.each(storesOfRun)("beside a running service on %s", (kind) => {
  let service: Headgate;
  let closeServer: (() => Promise<void>) | null = null;
  let own: Record<string, string>;

  beforeAll(async () => {
    own = { HEADGATE_DATA_DIR: join(folder, kind.replaceAll(" ", "-")) };
    if (kind === "PostgreSQL") {
      const server = await startPostgres();
      closeServer = server.close;
      own.HEADGATE_DATABASE_URL = await server.newDatabase();
    }
    // Waiting polls again and again.
    service = await startHeadgate({ env: { ...own, HEADGATE_LIMITS_API_REQUESTS_PER_SECOND: "0" } });
  }, 90_000);
  afterAll(async () => {
    await service.stop();
    await closeServer?.();
  }, 60_000);

  const opens = async (key: string) =>
    (await fetch(`${service.http}/organisation`, { headers: { "x-service-apikey": key } })).status;
  const verify = async (token: string) => {
    const body = JSON.stringify({ token });
    return (await fetch(`${service.http}/webcaster/verify`, { method: "POST", body })).status;
  };

  test.sequential("keys are made, rotated and revoked, and the service applies it immediately", async () => {
    const made = await json<{ id: string; key: string }>(
      ["keys", "create", "--role", "readonly", "--label", "ci"],
      own,
    );
    expect(await opens(made.key)).toBe(200);
    const next = await json<{ key: string }>(["keys", "rotate", made.id], own);
    expect([await opens(made.key), await opens(next.key)]).toEqual([200, 200]);
    await json(["keys", "revoke", made.id], own);
    expect([await opens(made.key), await opens(next.key)]).toEqual([403, 200]);
    const list = await json<{ id: string; hash?: string }[]>(["keys", "ls"], own);
    expect(list.map(({ id }) => id)).not.toContain(made.id);
    expect(list.every((key) => key.hash === undefined)).toBe(true);
  }, 90_000);

  test.sequential("organisations, users and streams are made and listed", async () => {
    const name = `Other ${randomBytes(3).toString("hex")}`;
    const { id } = await json<{ id: string }>(["organisation", "create", name], own);
    expect((await headgate(["organisation", "create", name], own)).code).not.toBe(0);
    const there = ["--organisation", name];
    const user = await json<{ password: string }>(["user", "create", "A@Example.com", "--role", "user", ...there], own);
    expect(user.password).toHaveLength(24);
    expect(await json(["user", "ls", ...there], own)).toMatchObject([{ email: "a@example.com", organisation_id: id }]);
    const stream = await json<{ id: string }>(["stream", "create", "--tag", "a,b", ...there], own);
    expect(await json(["stream", "ls", ...there], own)).toMatchObject([{ id: stream.id, tags: ["a", "b"] }]);
    const { key } = await json<{ key: string }>(["keys", "create", "--role", "user", ...there], own);
    await json(["organisation", "disable", name], own);
    expect(await opens(key)).toBe(403);
  }, 90_000);

  test.sequential("another organisation becomes the operator by command, and the former one is it no longer", async () => {
    const name = `Operator ${randomBytes(3).toString("hex")}`;
    await json(["organisation", "create", name], own);
    const admin = ["keys", "create", "--role", "administrator", "--organisation"];
    const { key: other } = await json<{ key: string }>([...admin, name], own);
    const { key: first } = await json<{ key: string }>([...admin, "Headgate"], own);
    const seen = async (key: string) =>
      (await fetch(`${service.http}/deployment`, { headers: { "x-service-apikey": key } })).status;
    for (const [operates, statuses] of [
      [null, [200, 403]],
      [name, [403, 200]],
      ["Headgate", [200, 403]],
    ] as const) {
      if (operates !== null) await json(["organisation", "operator", operates], own);
      expect([await seen(first), await seen(other)]).toEqual(statuses);
    }
  }, 90_000);

  test.sequential("tokens are made, revoked and signed by a new key, and the service follows", async () => {
    const { token } = await json<{ token: string }>(
      ["token", "create", "a", "--ingest-url", "rtmp://in.example/live"],
      own,
    );
    expect(await verify(token)).toBe(200);
    const { jti } = await json<{ jti: string }>(["token", "verify", token], own);
    await json(["token", "revoke", jti], own);
    await until("the revocation is known", async () => (await verify(token)) === 403);
    const named = "a?passcode=s3cret";
    const second = await json<{ token: string }>(
      ["token", "create", named, "--ingest-url", "rtmp://in.example/live"],
      own,
    );
    expect(await verify(second.token)).toBe(200);
    expect(await json(["token", "revoke", "--stream", named], own)).toEqual({ streamname: "a" });
    await until("the revocation of the stream's tokens", async () => (await verify(second.token)) === 403);
    const ls = (...more: string[]) =>
      json<readonly Listed[]>(["token", "ls", "--organisation", "Headgate", ...more], own);
    const organisations = await json<readonly { hash: string; name: string }[]>(["organisation", "ls"], own);
    const hash = organisations.find((each) => each.name === "Headgate")?.hash ?? "";
    await json(["token", "create", `${hash}-listed`, "--ingest-url", "rtmp://in.example/live"], own);
    const [made] = await ls("--stream", `${hash}-listed`);
    expect(made).toMatchObject({ state: "valid", made_by: { kind: "operator" } });
    await json(["token", "revoke", made?.id ?? ""], own);
    expect((await ls("--from", made?.created_at ?? "")).map(({ state }) => state)).toEqual(["revoked"]);
    const { kid } = await json<{ kid: string }>(["token", "rotate", "--at-once"], own);
    const body = { streamname: "a", ingesturl: "b" };
    await until("the new key signs", async () => {
      const { data } = (await service.call("POST", "/webcaster", body)) as { data: { token: string } };
      return JSON.parse(Buffer.from(data.token.split(".")[0] ?? "", "base64url").toString()).kid === kid;
    });
  }, 90_000);

  test.sequential("sessions are listed and the API is described, with the service's address and a key", async () => {
    const asked = { HEADGATE_API_KEY: service.apiKey };
    expect(await json(["sessions", "ls", "--url", service.http], asked)).toEqual([]);
    const unknown = await headgate(["sessions", "kick", "12", "--url", service.http], asked);
    expect([unknown.code, unknown.err]).toEqual([1, expect.stringContaining("headgate: 404: ")]);
    expect(await json<object>(["openapi"])).toMatchObject({ openapi: "3.1.0" });
  }, 60_000);

  if (kind === "PostgreSQL") return; // it has its own backup

  test.sequential("a backup is complete, readable only by its owner, and opens as a store", async () => {
    const name = await service.newStream();
    const file = join(folder, "backup", "headgate.db");
    const missing = await headgate(["backup", file], own);
    expect([missing.code, missing.err]).toEqual([2, expect.stringContaining("cannot write")]);
    const dataDir = mkdtempSync(join(folder, "restored-"));
    const copy = join(dataDir, "headgate.db");
    expect(await json(["backup", copy], own)).toEqual({ file: copy, bytes: statSync(copy).size });
    expect(statSync(copy).mode & 0o777).toBe(0o600);
    expect(existsSync(`${copy}.partial`)).toBe(false);
    const again = await headgate(["backup", copy], own);
    expect([again.code, again.err]).toEqual([2, expect.stringContaining("already exists")]);
    const { db, close } = await openStore({ dataDir, databaseUrl: null });
    const streams = await db.selectFrom("stream").select("name").execute();
    await close();
    expect(streams).toContainEqual({ name });
  }, 60_000);
});
