// The gateway in its production wiring, without ports: a real store, and a media core that accepts
// everything. The webhook's measurements concern the decision, not media.
import { mkdtempSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { pino } from "pino";
import { createCapacity } from "../dist/capacity/capacity.js";
import { joinCluster } from "../dist/cluster/membership.js";
import { loadConfig } from "../dist/config.js";
import { createService } from "../dist/service.js";
import { openStore } from "../dist/store/open.js";
import { certificate, clock as systemClock } from "./_webhook.mjs";

/** Deadline of a decision, ms. */
export const DEADLINE_MS = 5_000;
const UPDATE_S = 3_600;

/** Rows per statement. */
const ROWS_AT_A_TIME = 100;
const COUNTERS = { timestampMs: 0, bytesIn: 0, bytesOut: 0, silentMs: 0, subscribers: 0, droppedFrames: 0 };
const MEASURED = { receivedBytes: 0, videoFrames: 0, gopMs: null, rttMs: null, lossPercent: null, skewMs: null };
/** Snapshot of a publish without media. */
export const SNAPSHOT = {
  ...COUNTERS,
  ...MEASURED,
  tracks: { video: null, audio: null },
  upstreams: [],
  transcoderError: null,
  irregularities: [],
};

/** `snapshotOf`: the media core's counters of a publish; `updateS`: interval between two updates; `nodeName`: for a
 *  node among several; `ca`: of the customer; `apiRequestsPerSecond`: of a key, 0 without a limit; `clock`: epoch ms; `folder`: of a publishing that crashed;
 *  `databaseUrl`: null for the embedded store. */
export async function openPublishing(
  {
    deadlineMs = DEADLINE_MS,
    updateS = UPDATE_S,
    snapshotOf = () => SNAPSHOT,
    pulls = () => [],
    nodeName = null,
    ca = certificate.cert,
    apiRequestsPerSecond = 0,
  } = {},
  folder = mkdtempSync(join(tmpdir(), "headgate-bench-")),
  clock = systemClock,
  databaseUrl = null,
) {
  const node = nodeName === null ? {} : { node: { name: nodeName } };
  const { db, lifeline, reads, close } = await openStore({ dataDir: folder, databaseUrl, ...node });
  const log = pino({ level: "silent" });
  const cluster = nodeName === null ? null : await joinCluster({ db: lifeline, name: nodeName, version: "bench", log });
  /** Callback with the answer of each waiting request. */
  const waiting = new Map();
  const told = (request, answer) => {
    waiting.get(request)?.(answer);
    waiting.delete(request);
  };
  const media = {
    allow: (request, { clientId }) => told(request, { allowed: true, clientId }),
    deny: (request, { description }) => told(request, { allowed: false, description }),
    end() {},
    snapshot: (clientId) => ({ clientId, ...snapshotOf(clientId) }),
    players: () => [],
    pulls,
    whipDiagnostics: () => null,
  };
  const { config } = loadConfig({
    env: {
      HEADGATE_DATA_DIR: folder,
      HEADGATE_DEV: "1",
      HEADGATE_LIMITS_API_REQUESTS_PER_SECOND: `${apiRequestsPerSecond}`,
    },
  });
  const service = await createService(
    { ...config, webhook: { deadlineMs, updateS, ca } },
    // It is not measured, so there is always room; a crowd is spread over turns of the event loop as in the service.
    { db, reads, clock, log, media: () => media, openCapacity: createCapacity, ...(cluster && { member: cluster }) },
  );
  const { publishing } = service;
  let requests = 0;
  return {
    db,
    service,
    publishing,
    cluster,
    log,
    folder,
    /** Adds an organisation with streams `<id>-0` … */
    async addOrganisation(id, webhook, streams) {
      const times = { created_at: 0, updated_at: 0 };
      const organisation = { id, hash: id, name: id, plan: "paid", enabled: 1, webhook, ...times };
      await db.insertInto("organisation").values(organisation).execute();
      const rows = Array.from({ length: streams }, (_, at) => {
        return { id: `${id}-${at}`, organisation_id: id, name: `${id}-${at}`, state: "created", tags: "[]", ...times };
      });
      for (let at = 0; at < streams; at += ROWS_AT_A_TIME) {
        await db
          .insertInto("stream")
          .values(rows.slice(at, at + ROWS_AT_A_TIME))
          .execute();
      }
    },
    /** Resolves with the broadcaster's answer, and the time it took, ms. */
    request(name, customArguments = null) {
      requests += 1;
      const request = requests;
      const startedAt = performance.now();
      return new Promise((resolve) => {
        waiting.set(request, (answer) => resolve({ ...answer, tookMs: performance.now() - startedAt }));
        publishing.handle({
          kind: "publish_requested",
          request,
          app: "live",
          name: Buffer.from(name),
          arguments: customArguments && Buffer.from(customArguments),
          address: "203.0.113.7",
        });
      });
    },
    end(clientId, bytes = { bytesIn: 0, bytesOut: 0 }) {
      const counters = { ...bytes, videoFrames: 0, droppedFrames: 0, tracks: SNAPSHOT.tracks };
      publishing.handle({ kind: "publish_ended", clientId, reason: "unpublished", ...counters, held: false });
    },
    /** Resolves when no publish is live in the store. */
    async recorded() {
      for (;;) {
        const { open } = await db
          .selectFrom("publish")
          .select((eb) => eb.fn.countAll().as("open"))
          .where("state", "=", "live")
          .executeTakeFirstOrThrow();
        if (Number(open) === 0) return;
        await new Promise((resolve) => setTimeout(resolve, 5));
      }
    },
    /** Number of events that are neither delivered nor given up. */
    async owed() {
      const { owed } = await db
        .selectFrom("outbox")
        .select((eb) => eb.fn.countAll().as("owed"))
        .where("delivered_at", "is", null)
        .where("given_up_at", "is", null)
        .executeTakeFirstOrThrow();
      return Number(owed);
    },
    /** Simulates a kill: only the data remains, and deliveries in flight are lost. */
    async crash() {
      await close();
      void service.stop().catch(() => {});
      const next = await openPublishing({ deadlineMs }, folder, clock, databaseUrl);
      await next.publishing.takeOver("gateway_restarted");
      return next;
    },
    closeStore: close,
    async close() {
      await service.stop();
      await close();
      rmSync(folder, { recursive: true, force: true });
    },
  };
}
