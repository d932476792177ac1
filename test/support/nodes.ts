// Nodes of one service in this process: each with an embedded store of its own, the real media core, and RTMP, plain
// and over TLS, on free ports. The test defines where a node finds what it does not publish itself.
import { mkdtempSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { pino } from "pino";
import { loadConfig } from "../../ts/config.ts";
import { openMedia } from "../../ts/media/open.ts";
import type { Media } from "../../ts/media.ts";
import { changeSettings, type OrganisationSettings } from "../../ts/organisation/settings.ts";
import { type ElsewhereLive, NODE_ARGUMENT } from "../../ts/publish/players.ts";
import { createService, type Service } from "../../ts/service.ts";
import { testCertificates } from "./customer.ts";
import { addStream } from "./publishing.ts";
import { openTestStore } from "./stores.ts";

/** The secret by which the nodes authenticate to each other. */
const SECRET = "of-these-tests";

export interface Node {
  /** `rtmp://127.0.0.1:…/live` */
  readonly rtmp: string;
  readonly media: Media;
  readonly publishing: Service["publishing"];
  /** A new stream of its organisation, `org1`. */
  newStream(name: string): Promise<string>;
  /** Sets where names are found that are not published here; initially nowhere. */
  finds(elsewhere: (name: string) => ElsewhereLive | null): void;
  /** How other nodes find what is published here: at `origin` if that differs from its plain port. */
  live(name: string, origin?: string): ElsewhereLive | null;
  /** The origin of its port for RTMP over TLS: `rtmps://127.0.0.1:…`. */
  readonly rtmpsOrigin: string;
  change(settings: Partial<OrganisationSettings>): Promise<void>;
  /** Lines of the log with this message. */
  lines(message: string): readonly Readonly<Record<string, unknown>>[];
  stop(): Promise<void>;
}

export async function startNode(): Promise<Node> {
  const folder = mkdtempSync(join(tmpdir(), "headgate-node-"));
  const { ca, cert, key } = testCertificates();
  const file = (name: string, text: string): string => {
    writeFileSync(join(folder, name), text);
    return join(folder, name);
  };
  const { config } = loadConfig({
    env: {
      HEADGATE_DATA_DIR: folder,
      HEADGATE_RTMP_TLS_PORT: "0",
      HEADGATE_RTMP_TLS_CERT: file("cert.pem", cert),
      HEADGATE_RTMP_TLS_KEY: file("key.pem", key),
      HEADGATE_WEBHOOK_CA: file("ca.pem", ca),
      HEADGATE_RTMP_HOST: "127.0.0.1",
      HEADGATE_RTMP_PORT: "0",
      HEADGATE_MEDIA_HOST: "127.0.0.1",
      HEADGATE_MEDIA_PORT: "0",
      HEADGATE_MEDIA_WORKERS: "2",
      HEADGATE_DEV: "1",
    },
  });
  const store = await openTestStore(folder);
  const log: Record<string, unknown>[] = [];
  const clock = { now: () => Date.now() };
  let media: Media | null = null;
  let elsewhere: (name: string) => ElsewhereLive | null = () => null;
  const running = (): Media => {
    if (media === null) throw new Error("the media core is not started");
    return media;
  };
  const service = await createService(config, {
    db: store.db,
    reads: store.reads,
    clock,
    log: pino({ level: "info" }, { write: (line: string) => void log.push(JSON.parse(line)) }),
    media: running,
    otherNodes: {
      elsewhere: async (name) => elsewhere(name),
      isNode: (_, custom) => new URLSearchParams(Buffer.from(custom ?? []).toString()).get(NODE_ARGUMENT) === SECRET,
    },
  });
  const { publishing, customers } = service;
  media = await openMedia(config, publishing.handle, (error) => {
    throw error;
  });
  const now = clock.now();
  await store.db
    .insertInto("organisation")
    .values({
      ...{ id: "org1", hash: "Ab1Cd", name: "Org", plan: "paid", enabled: 1, webhook: null },
      ...{ created_at: now, updated_at: now },
    })
    .execute();
  const plain = `rtmp://127.0.0.1:${media.rtmpPort}`;
  return {
    rtmp: `${plain}/live`,
    rtmpsOrigin: `rtmps://127.0.0.1:${media.rtmpTlsPort}`,
    media,
    publishing,
    async newStream(name) {
      await addStream(store.db, name, "created");
      return name;
    },
    finds(found) {
      elsewhere = found;
    },
    live(name, origin = plain) {
      const publish = publishing.running().find(({ intent }) => intent.name === name);
      if (publish === undefined) return null;
      const { clientId, organisationId, streamId } = publish.intent;
      const url = `${origin}/live/${name}?${NODE_ARGUMENT}=${SECRET}`;
      return { clientId, organisationId, streamId, url, address: "127.0.0.1" };
    },
    async change(settings) {
      await changeSettings(store.db, "org1", settings, clock.now());
      customers.forget("org1");
    },
    lines: (message) => log.filter(({ msg }) => msg === message),
    async stop() {
      await running().stop();
      await service.stop();
      await store.close();
      rmSync(folder, { recursive: true, force: true });
    },
  };
}
