// publish_done arrives (R9): many publishes while a third of all answers fail and both sides are restarted. The test
// sets the clock, so that the schedule of 72 hours passes in seconds.
import { openPublishing } from "./_publishing.mjs";
import { faultsOf, startRecordingCustomer } from "./_recording-customer.mjs";
import { clock, wait } from "./_webhook.mjs";

const TOGETHER = 25;
const FAILING_SHARE = 0.3;
/** Share of the failures that hang: each costs a deadline. */
const HANGING_SHARE = 0.03;
/** After this many publishes one side is restarted, alternately. */
const RESTART_EVERY = 250;
const SKIP_MS = 601_000;
const SKIPS_LIMIT = 200;
const PAUSE_MS = 300;

/** Only publish_done fails: a failed publish is a denial, which R8 tests. */
function fails(call) {
  if (call !== "publish_done" || Math.random() >= FAILING_SHARE) return null;
  if (Math.random() < HANGING_SHARE) return "hang";
  return ["reset", 500, 503, 429, 302][Math.floor(Math.random() * 5)];
}

/** @type {(count?: number, restartEvery?: number) => Promise<{ accepted: number; done: number; repeated: number; wrong: string[]; failures: number }>} */
export async function durability(count = 1_000, restartEvery = RESTART_EVERY) {
  let skipped = 0;
  const passing = { now: () => clock.now() + skipped };
  const settings = { deadlineMs: 2_500 };
  const customer = await startRecordingCustomer(fails);
  let gateway = await openPublishing(settings, undefined, passing);
  await gateway.addOrganisation("org", customer.url, TOGETHER);
  const sent = new Map();
  let restarts = 0;
  let refused = 0;
  for (let at = 0; at < count; at += TOGETHER) {
    await Promise.all(
      Array.from({ length: TOGETHER }, async (_, index) => {
        const { allowed, clientId } = await gateway.request(`org-${index}`, `n=${at + index}`);
        if (!allowed) {
          refused += 1;
          return;
        }
        const bytesIn = Math.floor(Math.random() * 1e12);
        sent.set(clientId, bytesIn);
        gateway.end(clientId, { bytesIn, bytesOut: 2 * bytesIn });
      }),
    );
    await gateway.recorded();
    if ((at + TOGETHER) % restartEvery !== 0) continue;
    restarts += 1;
    if (restarts % 2 === 0) await customer.restart();
    else gateway = await gateway.crash();
  }
  // The clock is stopped while deliveries progress; when all remaining ones wait for their time, it is
  // advanced.
  let before = Number.POSITIVE_INFINITY;
  for (let skips = 0; skips < SKIPS_LIMIT; ) {
    const owed = await gateway.owed();
    if (owed === 0) break;
    if (owed === before) {
      skips += 1;
      skipped += SKIP_MS;
      await gateway.publishing.takeOver("gateway_restarted");
    }
    before = owed;
    await wait(PAUSE_MS);
  }
  const { done, repeated, wrong } = faultsOf(customer.events, sent);
  const failures = customer.failures();
  console.log(`  ${sent.size} publishes, ${refused} refused, ${restarts} restarts, ${failures} answers failed`);
  console.log(`  ${done} publish_done delivered, ${repeated} repetitions, ${wrong.length} wrong`);
  for (const fault of wrong.slice(0, 10)) console.log(`    ${fault}`);
  await gateway.close();
  await customer.stop();
  return { accepted: sent.size, done, repeated, wrong, failures };
}
