// An upgrade that fails: the person is told the file, the line and the cause, a process that hangs is ended with its
// children, readiness never suffers, and the node is listed as what it is.
import { execFileSync } from "node:child_process";
import { cpSync, existsSync, mkdtempSync, readFileSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { afterEach, beforeEach, expect, test, vi } from "vitest";
import { running } from "../../ts/cli/doctor/running.ts";
import { listNodes } from "../../ts/cluster/node-list.ts";
import { formerName, lastNode, leave, register, renameNode } from "../../ts/cluster/nodes.ts";
import { locationOfFault } from "../../ts/handover/fault-location.ts";
import { killTree } from "../../ts/handover/process-tree.ts";
import { notReady } from "../../ts/handover/state.ts";
import { converse, type Message } from "../../ts/handover/words.ts";
import { openStore, type Store } from "../../ts/store/open.ts";
import { type Child, start, until } from "../support/child.ts";
import { startPostgres } from "../support/postgres.ts";
import { casesOfRun, isWholeRun } from "../support/whole-run.ts";

const LONG_MS = 240_000;
/** The limit of the service under test, s. */
const UPGRADE_S = 25;

let folder: string;
beforeEach(() => {
  folder = mkdtempSync(join(tmpdir(), "headgate-upgrades-"));
});
afterEach(() => {
  vi.useRealTimers();
  rmSync(folder, { recursive: true, force: true });
});

test(
  "a failed upgrade names file, line and cause, one that hangs is ended, and readiness never suffers",
  async () => {
    // An installation of its own, whose files may be broken.
    for (const name of ["dist", "deploy", "package.json", "ts/native"])
      cpSync(name, join(folder, name), { recursive: true });
    const dataDir = mkdtempSync(join(folder, "data-"));
    const ports = ["HTTP", "RTMP", "METRICS", "MEDIA", "NODE"].map((name) => [`HEADGATE_${name}_PORT`, "0"]);
    const env = {
      ...{ PATH: process.env.PATH, HEADGATE_DATA_DIR: dataDir, HEADGATE_MEDIA_WORKERS: "1", HEADGATE_DRAIN_S: "0" },
      ...{ HEADGATE_UPGRADE_S: String(UPGRADE_S), HEADGATE_LIMITS_LOAD_PERCENT: "0", ...Object.fromEntries(ports) },
    };
    const upgrade = async (...words: string[]) => {
      // Of this checkout: whether the person's own command works is another matter.
      const child = asking(...words);
      return { code: await child.exit, said: child.stdout() + child.stderr() };
    };
    const asking = (...words: string[]): Child =>
      start(process.execPath, ["scripts/headgate.mjs", "upgrade", ...words], { env });
    const service = start(process.execPath, [join(folder, "deploy/headgate.mjs"), "serve"], { env });
    let successor = 0;
    let isPolled = true;
    const answers = new Set<string>();
    try {
      const ready = await until("it is ready", () => /"metrics":"([^"]+)"/.exec(service.stdout())?.[1], 60_000);
      const polled = (async () => {
        const asked = async () => await (await fetch(`${ready}/readyz`)).text();
        const ask = async () => {
          answers.add(await asked().catch((error: Error) => error.message));
          return !isPolled;
        };
        await until("it is over", ask, LONG_MS, 50);
      })();

      /** Nothing ever writes to its settings: whoever reads them waits. */
      const hangs = async () => {
        execFileSync("mkfifo", [join(dataDir, "headgate.toml")]);
        const began = performance.now();
        const child = asking("--config", "/dev/null");
        expect(await child.exit, child.stderr()).toBe(1);
        expect(performance.now() - began).toBeLessThan(UPGRADE_S * 1_000 + 30_000);
        expect(child.stderr()).toContain(`the new process took longer than ${UPGRADE_S} s to be prepared`);
        const hung = Number(/The new process is (\d+)/.exec(child.stdout())?.[1]);
        expect(existsSync(`/proc/${hung}`)).toBe(false);
        rmSync(join(dataDir, "headgate.toml"));
      };

      /** Breaks a file, tries to upgrade, and mends it. */
      const broken = async (name: string, change: (text: string) => string) => {
        const path = join(folder, name);
        const text = readFileSync(path, "utf8");
        writeFileSync(path, change(text));
        const { code, said } = await upgrade();
        writeFileSync(path, text);
        expect(code, said).toBe(1);
        return said;
      };
      const path = (name: string) => join(folder, name);
      const damages: readonly (readonly [name: string, change: (text: string) => string, said: string | RegExp])[] = [
        [
          "dist/service.js",
          (text) => `// first\nconst a = = 1;\n${text}`,
          `Unexpected token '=' (${path("dist/service.js")}:2)`,
        ],
        ["dist/cli/main.js", (text) => `\n\nlet let = 1;\n${text}`, `(${path("dist/cli/main.js")}:3)`],
        [
          "dist/app.js",
          (text) => `${text}\nthrow new TypeError("no such thing");\n`,
          new RegExp(`no such thing \\(${path("dist/app.js")}:\\d+\\)`),
        ],
        [
          "dist/cli/serve/serve.js",
          (text) => `import "./gone.js";\n${text}`,
          `Cannot find module '${path("dist/cli/serve/gone.js")}' imported from ${path("dist/cli/serve/serve.js")}`,
        ],
      ];
      const tried = casesOfRun(damages, 2);
      for (const [name, change, said] of tried) expect(await broken(name, change)).toMatch(said);
      writeFileSync(join(dataDir, "headgate.toml"), "[log]\nlevel = loud\n");
      expect((await upgrade("--config", "/dev/null")).said).toContain(`${join(dataDir, "headgate.toml")}: line 2: `);
      rmSync(join(dataDir, "headgate.toml"));

      if (isWholeRun) await hangs();

      const { port, hostname: host } = new URL(ready);
      const findings = await running({ metrics: { host, port: Number(port) } });
      expect(findings).toMatchObject([
        {
          state: "warning",
          detail: expect.stringContaining(`${tried.length + (isWholeRun ? 2 : 1)} upgrades of it failed`),
        },
      ]);
      const other = await running({ metrics: { host, port: Number(port) } }, "99.0.0");
      expect(other).toMatchObject([{ state: "warning", detail: expect.stringContaining("but 99.0.0 is installed") }]);

      const { code, said } = await upgrade();
      expect(code, said).toBe(0);
      successor = Number(/Process (\d+) now accepts/.exec(said)?.[1]);
      isPolled = false;
      await polled;
      expect([...answers]).toEqual(["ready\n"]);
      // A connection that this process has kept open leads to the former one, once.
      const isGood = async () => (await running({ metrics: { host, port: Number(port) } }))[0]?.state === "good";
      await until("the service that runs is the new one", isGood, 10_000);
    } finally {
      isPolled = false;
      if (successor > 0) process.kill(successor, "SIGKILL");
      service.kill("SIGKILL");
      await service.exit;
    }
  },
  LONG_MS,
);

test.each([
  ["starting", true, null],
  ["starting", false, "starting"],
  ["handing_over", true, null],
  ["draining", true, "draining"],
] as const)("a process that is %s, as a successor: %s, is not ready because of: %s", (word, isSuccessor, reason) => {
  expect(notReady(word, isSuccessor)).toBe(reason);
});

test("the time of a migration does not count, and a silent process is late", async () => {
  vi.useFakeTimers();
  const hearing: ((message: Message) => void)[] = [];
  const dialogue = converse({ send: () => {}, listen: (heard) => hearing.push(heard) }, "the new process");
  const late = dialogue.heard("prepared", 60_000).catch((error: Error) => error.message);
  for (let count = 0; count < 60; count += 1) {
    await vi.advanceTimersByTimeAsync(5_000);
    hearing[0]?.({ migrating: true });
  }
  await vi.advanceTimersByTimeAsync(59_000);
  expect(await Promise.race([late, "waits"])).toBe("waits");
  await vi.advanceTimersByTimeAsync(2_000);
  expect(await late).toBe("the new process took longer than 60 s to be prepared");
});

test("a process is killed with everything that it has started", async () => {
  const program = "sleep 600 & sh -c 'sleep 601 & wait' & wait";
  const child = start("sh", ["-c", program]);
  const sleeping = () => {
    const all = execFileSync("ps", ["-eo", "pid,args"], { encoding: "utf8" });
    return [...all.matchAll(/^ *(\d+) sleep 60[01]$/gm)].map(([, pid]) => Number(pid));
  };
  const before = await until("both sleep", () => (sleeping().length === 2 ? sleeping() : null));
  killTree(child.pid);
  expect(await child.exit).toBe("SIGKILL");
  await until("both are gone", () => before.every((pid) => !sleeping().includes(pid)));
});

test.each([
  ["TypeError: x\n    at go (file:///opt/a%20b/c.js:3:9)\n    at node:internal/x:1:2", " (/opt/a b/c.js:3)"],
  ["Error: x\n    at node:internal/x:1:2\n    at file:///opt/d.js:7:1", " (/opt/d.js:7)"],
  ["file:///opt/e.js:12\nimport { a }\nSyntaxError: no export", " (/opt/e.js:12)"],
  ["Error: x\n    at node:internal/x:1:2", ""],
])("the place of a fault is read from %j", async (stack, place) => {
  expect(await locationOfFault(new Error("x", { cause: stack }))).toBe(place);
  expect(await locationOfFault(new Error("x"))).toBe("");
});

async function withStores(act: (db: Store["db"]) => Promise<void>): Promise<void> {
  const server = await startPostgres();
  try {
    for (const databaseUrl of [null, await server.newDatabase()]) {
      const store = await openStore({ dataDir: mkdtempSync(join(folder, "data-")), databaseUrl });
      await act(store.db).finally(() => store.close());
    }
  } finally {
    await server.close();
  }
}

test(
  "a service whose successor failed is listed as running, with its publishes, whatever the successor left",
  async () => {
    await withStores(async (db) => {
      const status = { channel: null, http: null, rtmp: null, publishes: 3, load: 0.5 };
      const epoch = await register(db, { name: "a", version: "1", status });
      for (const isKilled of [false, true]) {
        await renameNode(db, epoch, formerName("a", epoch));
        const later = await register(db, { name: "a", version: "2", status: { ...status, publishes: 0 } });
        if (!isKilled) await leave(db, later);
        await renameNode(db, epoch, "a");
        expect(await listNodes(db)).toMatchObject([{ name: "a", epoch, state: "up", publishes: 3, version: "1" }]);
        expect(await lastNode(db)).toMatchObject({ epoch, version: "1" });
      }
      await leave(db, epoch);
      expect(await listNodes(db)).toMatchObject([{ name: "a", state: "lost", publishes: 0 }]);
    });
  },
  LONG_MS,
);
