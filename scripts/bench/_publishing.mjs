// The gateway's publishing on a real store, with a media core that takes what it is given: the webhook's measurements
// look at the decision, not at media.
import { mkdtempSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { createMetrics } from "../../dist/metrics.js";
import { createCustomers } from "../../dist/organisation/customers.js";
import { createWebhookSecrets } from "../../dist/organisation/webhook-secret.js";
import { createPublishing } from "../../dist/publish/lifecycle.js";
import { openStore } from "../../dist/store/open.js";
import { openSecretBox } from "../../dist/store/secret-box.js";
import { certificate, silent, clock as systemClock } from "./_webhook.mjs";

const SNAPSHOT = { timestampMs: 0, bytesIn: 0, bytesOut: 0, silentMs: 0, subscribers: 0, droppedFrames: 0 };

/** `clock`: epoch ms; `folder`: of a publishing that crashed. */
export async function openPublishing(
  settings = {},
  folder = mkdtempSync(join(tmpdir(), "headgate-bench-")),
  clock = systemClock,
) {
  const { db, close } = await openStore({ dataDir: folder, databaseUrl: null });
  const secrets = createWebhookSecrets({ db, box: openSecretBox(folder), clock });
  /** What each waiting request is told with. */
  const waiting = new Map();
  const told = (request, answer) => {
    waiting.get(request)?.(answer);
    waiting.delete(request);
  };
  const media = {
    allow: (request, { clientId }) => told(request, { allowed: true, clientId }),
    deny: (request, { description }) => told(request, { allowed: false, description }),
    end() {},
    snapshot: (clientId) => ({ clientId, ...SNAPSHOT }),
    whipDiagnostics: () => null,
  };
  const publishing = createPublishing({
    db,
    media: () => media,
    streamUpstreams: async () => [],
    clock,
    log: silent,
    customers: createCustomers({ db, secrets, clock }),
    metrics: createMetrics(),
    settings: {
      deadlineMs: 5_000,
      updateSeconds: 3_600,
      webhookCa: certificate.cert,
      dev: true,
      upstreamPush: [],
      playAllow: [],
      duplicate: "reject_if_active",
      maxBitrateKbps: { all: 0, trial: 0 },
      ...settings,
    },
  });
  let requests = 0;
  return {
    db,
    publishing,
    folder,
    /** Adds an organisation with streams `<id>-0` … */
    async addOrganisation(id, webhook, streams) {
      const times = { created_at: 0, updated_at: 0 };
      const organisation = { id, hash: id, name: id, plan: "paid", enabled: 1, webhook, ...times };
      await db.insertInto("organisation").values(organisation).execute();
      for (let at = 0; at < streams; at += 1) {
        const stream = { id: `${id}-${at}`, organisation_id: id, name: `${id}-${at}`, state: "created", tags: "[]" };
        await db
          .insertInto("stream")
          .values({ ...stream, ...times })
          .execute();
      }
    },
    /** Resolves with what the broadcaster was told, and after how long, ms. */
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
      publishing.handle({ kind: "publish_ended", clientId, reason: "unpublished", ...bytes });
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
    /** Events that are neither delivered nor given up. */
    async owed() {
      const { owed } = await db
        .selectFrom("outbox")
        .select((eb) => eb.fn.countAll().as("owed"))
        .where("delivered_at", "is", null)
        .where("given_up_at", "is", null)
        .executeTakeFirstOrThrow();
      return Number(owed);
    },
    /** What a kill leaves: the data; deliveries under way come to nothing. */
    async crash() {
      await close();
      void publishing.stop().catch(() => {});
      const next = await openPublishing(settings, folder, clock);
      await next.publishing.recover();
      return next;
    },
    async close() {
      await publishing.stop();
      await close();
      rmSync(folder, { recursive: true, force: true });
    },
  };
}
