// `headgate stream …` as an operator types it, with and without a running service, on both stores; and the
// output of commands without a store.
import { existsSync, mkdtempSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { afterAll, beforeAll, describe, expect, test } from "vitest";
import { until } from "../support/child.ts";
import { command } from "../support/command.ts";
import { broadcast } from "../support/ffmpeg.ts";
import { type Headgate, startHeadgate } from "../support/headgate.ts";
import { startPostgres } from "../support/postgres.ts";
import { casesOfRun, storesOfRun } from "../support/whole-run.ts";

const folder = mkdtempSync(join(tmpdir(), "headgate-streams-"));
let server: Awaited<ReturnType<typeof startPostgres>>;

beforeAll(async () => {
  server = await startPostgres();
}, 60_000);
afterAll(async () => {
  await server?.close();
  rmSync(folder, { recursive: true, force: true });
});

type Env = Readonly<Record<string, string>>;

const headgate = (words: readonly string[], env: Env) =>
  command(words, { PATH: process.env.PATH, HEADGATE_MEDIA_PORT: "0", ...env });

async function json(words: readonly string[], env: Env): Promise<unknown> {
  const { code, out, err } = await headgate([...words, "--json"], env);
  expect([words.join(" "), code, err]).toEqual([words.join(" "), 0, ""]);
  return JSON.parse(out);
}

describe.concurrent("without a store", () => {
  const commands = [
    "organisation ls",
    "user ls",
    "keys ls",
    "keys create --role user",
    "stream ls",
    "stream lock a",
    "token keys",
    "backup copy",
  ];

  test.each(casesOfRun(commands, 3))(
    "headgate %s says so, names the remedy, exits with 2 and creates none",
    async (command) => {
      const dataDir = join(folder, "nothing");
      const { code, err } = await headgate(command.split(" "), { HEADGATE_DATA_DIR: dataDir });
      expect([code, err]).toEqual([2, expect.stringContaining(`headgate: there is no store in ${dataDir}: `)]);
      expect(err).toContain("headgate init");
      expect(existsSync(dataDir)).toBe(false);
    },
    60_000,
  );

  test("doctor says so and creates none", async () => {
    const dataDir = join(folder, "nothing");
    const { out } = await headgate(["doctor"], { HEADGATE_DATA_DIR: dataDir });
    expect(out).toMatch(/^warn store in .*: it does not exist yet: /m);
    expect(existsSync(dataDir)).toBe(false);
  }, 60_000);

  test("an empty database is no store either, until init", async () => {
    const env = { HEADGATE_DATA_DIR: join(folder, "empty"), HEADGATE_DATABASE_URL: await server.newDatabase() };
    const { code, err } = await headgate(["keys", "ls"], env);
    expect([code, err]).toEqual([2, expect.stringContaining("headgate: the database holds no headgate store: ")]);
    await json(["init"], env);
    expect(await json(["keys", "ls"], env)).toHaveLength(1);
  }, 60_000);

  test("a store that cannot be opened is a different error", async () => {
    const HEADGATE_DATABASE_URL = "postgres://me:word@127.0.0.1:1/headgate";
    const { code, err } = await headgate(["keys", "ls"], { HEADGATE_DATABASE_URL, HEADGATE_DATA_DIR: folder });
    expect([code, err]).toEqual([4, expect.stringContaining("cannot use database headgate at 127.0.0.1:1")]);
    expect(err).not.toContain("word");
  }, 60_000);
});

// Both run concurrently, each in the order of its tests: they list what the others created.
describe.concurrent.each(storesOfRun)("streams on %s", (kind) => {
  let service: Headgate;
  let env: Record<string, string>;
  let asked: Env;

  beforeAll(async () => {
    env = { HEADGATE_DATA_DIR: join(folder, kind.replaceAll(" ", "-")) };
    if (kind === "PostgreSQL") env.HEADGATE_DATABASE_URL = await server.newDatabase();
    service = await startHeadgate({ env: { ...env, HEADGATE_LIMITS_API_REQUESTS_PER_SECOND: "0" } });
    asked = { ...env, HEADGATE_API_KEY: service.apiKey };
  }, 90_000);
  afterAll(async () => {
    await service?.stop();
  }, 60_000);

  const state = async (id: unknown) => (await service.call("GET", `/stream/${id}`)).state;
  const newStream = async () => {
    const { id, ingest } = (await service.call("POST", "/stream", { tags: ["a", "b"] })) as {
      readonly id: string;
      readonly ingest: { readonly rtmp: { readonly streamname: string } };
    };
    return { id, name: ingest.rtmp.streamname };
  };

  test.sequential("ls, show and create print the records of the API", async () => {
    const ports = {
      ...env,
      HEADGATE_PUBLIC_URL: service.http,
      HEADGATE_RTMP_PORT: new URL(service.rtmp).port,
    };
    const { id, name } = await newStream();
    const record = await service.call("GET", `/stream/${id}`);
    expect(await json(["stream", "show", name], ports)).toEqual(record);
    expect(await json(["stream", "show", id], ports)).toEqual(record);
    expect(await json(["stream", "ls"], ports)).toEqual(await service.call("GET", "/stream"));
    const made = (await json(["stream", "create", "--tag", "c"], ports)) as { readonly id: string };
    expect(made).toEqual(await service.call("GET", `/stream/${made.id}`));
    const shown = await headgate(["stream", "show", name], ports);
    expect(shown.out).toContain(`RTMP        ${service.rtmp}/${name}\n`);
  }, 90_000);

  test.sequential("create and set take a title and an external id, which ls and show print", async () => {
    const texts = ["--title", " Evening show ", "--external-id", "event-1"];
    const made = (await json(["stream", "create", ...texts], env)) as { readonly id: string };
    expect(made).toMatchObject({ title: "Evening show", external_id: "event-1" });
    expect((await headgate(["stream", "ls"], env)).out).toMatch(/Evening show +event-1/);
    expect((await headgate(["stream", "show", made.id], env)).out).toContain("title       Evening show\n");
    const taken = await headgate(["stream", "create", "--external-id", "event-1"], env);
    expect([taken.code === 0, taken.err]).toEqual([
      false,
      expect.stringContaining("external_id is that of the stream"),
    ]);
    const cleared = ["--title", "Night", "--external-id", " "];
    const set = { title: "Night", external_id: null };
    expect(await json(["stream", "set", made.id, ...cleared], env)).toMatchObject(set);
    expect(await service.call("GET", `/stream/${made.id}`)).toMatchObject(set);
  }, 90_000);

  test.sequential("a stream that is not live is locked, unlocked and removed without a running service", async () => {
    const { id, name } = await newStream();
    expect(await json(["stream", "lock", name], env)).toMatchObject({ id, state: "locked" });
    expect(await state(id)).toBe("locked");
    expect(await json(["stream", "unlock", id], env)).toMatchObject({ state: "created" });
    expect(await json(["stream", "stop", name], env)).toMatchObject({ state: "locked" });
    expect(await json(["stream", "rm", name], env)).toMatchObject({ state: "deleted" });
    await expect(state(id)).rejects.toThrow("404");
    const gone = await headgate(["stream", "show", name], env);
    expect([gone.code, gone.err]).toEqual([2, expect.stringContaining(`there is no stream ${name}`)]);
    const audit = (await service.call("GET", "/organisation/audit")) as unknown as readonly {
      readonly action: string;
      readonly subject: string;
    }[];
    const actions = audit.filter(({ subject }) => subject === id).map(({ action }) => action);
    expect(actions).toEqual(["stream.delete", "stream.stop", "stream.unlock", "stream.lock", "stream.create"]);
  }, 90_000);

  test.sequential("stop ends a running publish through the service, and changes nothing when that is unreachable", async () => {
    const { id, name } = await newStream();
    const encoder = broadcast(`${service.rtmp}/${name}`, { seconds: 60 });
    await until("the stream is live", async () => (await state(id)) === "live");
    for (const alone of [env, { ...asked, HEADGATE_HTTP_PORT: "1" }]) {
      const { code, err } = await headgate(["stream", "stop", name], alone);
      expect(code).not.toBe(0);
      expect(err).toContain(`headgate: ${name} is live, and only the running service can end its publish`);
      expect(await state(id)).toBe("live");
    }
    expect(await json(["stream", "stop", name, "--url", service.http], asked)).toMatchObject({ id, state: "locked" });
    await encoder.exit;
    await until("the publish is over", async () => {
      const sessions = (await service.call("GET", "/session")) as unknown as readonly unknown[];
      return sessions.length === 0;
    });
  }, 90_000);

  test.sequential("switch puts the other publish of a stream on air, or the one that is named", async () => {
    const { id, name } = await newStream();
    const sessions = async () =>
      (await service.call("GET", "/session")) as unknown as readonly {
        readonly client_id: number;
        readonly stream: string;
        readonly timestamp_ms: number;
      }[];
    const sent = (count: number) =>
      until(`${count} publishes have sent`, async () => {
        const all = (await sessions()).filter(({ stream, timestamp_ms }) => stream === id && timestamp_ms > 1_500);
        return all.length === count ? all.map(({ client_id }) => client_id) : null;
      });
    const encoders = [broadcast(`${service.rtmp}/${name}`, { seconds: 120, gop: 25 })];
    const [main] = await sent(1);
    const nobody = await headgate(["stream", "switch", name, "--url", service.http], asked);
    expect([nobody.code, nobody.err]).toEqual([1, expect.stringContaining("The stream has no standby publish")]);
    encoders.push(broadcast(`${service.rtmp}/${name}?backup=1`, { seconds: 120, gop: 25 }));
    const backup = (await sent(2)).find((of) => of !== main);
    const switching = ["stream", "switch", name];
    expect(await json([...switching, "--url", service.http], asked)).toMatchObject({ client_id: backup });
    const back = await headgate([...switching, String(main), "--url", service.http], asked);
    expect(back.out).toMatch(new RegExp(`^Publish ${main} of ${name} (is on air|takes over at its next keyframe)`));
    const wrong = await headgate([...switching, "main", "--url", service.http], asked);
    expect([wrong.code, wrong.err]).toEqual([2, expect.stringContaining("main is not a client id")]);
    for (const encoder of encoders) encoder.kill("SIGKILL");
  }, 120_000);
});
