// What removing old records costs concurrent publishes: admissions are offered evenly, in blocks without and with a
// retention pass beside them, one kind of record after the other.
import { mkdtempSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { prune } from "../dist/store/retention.js";
import { watchDisk } from "./_disk.mjs";
import { emptyDatabase, fillStore, requireEmpty } from "./_filled-store.mjs";
import { offer } from "./_offer.mjs";
import { openPublishing } from "./_publishing.mjs";
import { clock, percentile, startCustomer } from "./_webhook.mjs";

const PER_SECOND = 50;
const STREAMS = 1_000;
const WARM_UP_SECONDS = 2;
/** Longer than any publish should take, so that late ones are measured and not denied. */
const DEADLINE_MS = 30_000;
const KEPT = { publishes: 90, audit: 90, deliveries: 30, denied: 7 };
const NOTHING = { publishes: 0, audit: 0, deliveries: 0, denied: 0 };

/** `databaseUrl`: null for the embedded store, else an empty database, which is emptied again.
 *  @type {(options: {
 *    rows: number;
 *    seconds?: number;
 *    rounds?: number;
 *    warmUpSeconds?: number;
 *    databaseUrl?: string | null;
 *  }) => Promise<{
 *    kinds: { kind: string; rows: number; slowest: number; statements: number; alone: number[]; beside: number[] }[];
 *    denied: number;
 *  }>} */
export async function pruning({ rows, seconds = 8, rounds = 1, warmUpSeconds = WARM_UP_SECONDS, databaseUrl = null }) {
  if (databaseUrl !== null) await requireEmpty(databaseUrl);
  const folder = mkdtempSync(join(tmpdir(), "headgate-bench-"));
  const forget = () => rmSync(folder, { recursive: true, force: true });
  const leave = () => process.exit(130);
  process.once("exit", forget);
  process.once("SIGINT", leave);
  const started = performance.now();
  const customer = await startCustomer("ok");
  try {
    await fillStore({ folder, databaseUrl, rows, now: clock.now() });
    console.log(`${rows} publishes, filled in ${((performance.now() - started) / 1_000).toFixed(0)} s`);
    const gateway = await openPublishing({ deadlineMs: DEADLINE_MS }, folder, clock, databaseUrl);
    try {
      return await measure(gateway, customer, { seconds, rounds, warmUpSeconds });
    } finally {
      await gateway.close();
    }
  } finally {
    customer.stop();
    forget();
    process.off("exit", forget);
    process.off("SIGINT", leave);
    if (databaseUrl !== null) await emptyDatabase(databaseUrl);
  }
}

async function measure(gateway, customer, { seconds, rounds, warmUpSeconds }) {
  await gateway.addOrganisation("bbbbb", customer.url, STREAMS);
  let asked = 0;
  let denied = 0;
  const ask = async () => {
    asked += 1;
    const { allowed, clientId, tookMs } = await gateway.request(`bbbbb-${asked % STREAMS}`);
    if (allowed) gateway.end(clientId);
    else denied += 1;
    return tookMs;
  };
  await offer(PER_SECOND, warmUpSeconds, ask);
  const found = [];
  for (const kind of Object.keys(KEPT)) {
    const times = { alone: [], beside: [] };
    const removal = { rows: 0, statements: [] };
    const disk = await watchDisk(gateway.folder);
    for (let round = 0; round < rounds; round += 1) {
      for (const block of ["alone", "beside", "beside", "alone"]) {
        const remove = block === "beside" ? removing(gateway.db, kind, removal) : null;
        times[block].push(...(await offer(PER_SECOND, seconds, ask)));
        await remove?.stop();
      }
    }
    found.push(report(kind, times, removal, await disk.stop()));
  }
  const [alone, beside] = ["alone", "beside"].map((block) =>
    percentile(
      found.flatMap((kind) => kind[block]),
      0.99,
    ),
  );
  console.log(
    `  all kinds: admission p99 alone ${alone.toFixed(1)} ms, beside ${beside.toFixed(1)} ms, ratio ${(beside / alone).toFixed(2)}`,
  );
  console.log(`  ${asked} publishes requested, ${denied} denied`);
  return { kinds: found, denied };
}

/** A pass that removes only `kind`, until it is stopped. */
function removing(db, kind, removal) {
  let stopped = false;
  const pass = prune(timed(db, removal.statements), { ...NOTHING, [kind]: KEPT[kind] }, clock.now(), () => stopped);
  return {
    async stop() {
      stopped = true;
      removal.rows += await pass;
    },
  };
}

/** `db` with the time until each statement was answered, ms, including its wait for a turn and its commit. */
function timed(db, statements) {
  const executeQuery = async (query) => {
    const startedAt = performance.now();
    const result = await db.executeQuery(query);
    statements.push(performance.now() - startedAt);
    return result;
  };
  return new Proxy(db, {
    get(target, name) {
      if (name === "executeQuery") return executeQuery;
      const value = target[name];
      return typeof value === "function" ? value.bind(target) : value;
    },
  });
}

function report(kind, times, { rows, statements }, disk) {
  const [alone, beside] = [times.alone, times.beside].map((all) => percentile(all, 0.99));
  const slowest = percentile(statements, 1);
  const ratio = beside / alone;
  const show = (values, p) => percentile(values, p).toFixed(1);
  console.log(
    `  ${kind.padEnd(11)} admission p50/p99 alone ${show(times.alone, 0.5)}/${show(times.alone, 0.99)} ms, ` +
      `beside ${show(times.beside, 0.5)}/${show(times.beside, 0.99)} ms, ratio ${ratio.toFixed(2)}; ` +
      `${rows} rows in ${statements.length} statements, p50 ${show(statements, 0.5)} ms, p99 ${show(statements, 0.99)} ms, ` +
      `slowest ${slowest.toFixed(1)} ms; the disk alone p99 ${show(disk, 0.99)} ms, slowest ${show(disk, 1)} ms`,
  );
  return { kind, ratio, rows, slowest, statements: statements.length, ...times };
}
