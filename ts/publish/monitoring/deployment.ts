// The state of the whole deployment for its operator, collected from its parts in one object. It contains no stream
// names and no secrets.
import type { Kysely } from "kysely";
import { inspectCertificates } from "../../certificate.ts";
import type { Config } from "../../config.ts";
import { RECEIVE_BUFFER_BYTES } from "../../media/ports.ts";
import type { Media } from "../../media.ts";
import { publicAddressesOf } from "../../own-addresses.ts";
import type { Schema } from "../../store/schema.ts";
import type { Publishing } from "../lifecycle.ts";
import { liveNumbers } from "../running/live-numbers.ts";
import { type OutboxDepth, outboxDepth } from "../webhook/outbox/waiting.ts";

export interface NodeStatus {
  /** Epoch ms. */
  readonly startedAt: number;
  readonly version: string;
  /** CPU load of each media worker over the last seconds, as a share of one core, 0 to 1. */
  readonly workerLoads: readonly number[];
  /** Threads that transcode Opus to AAC, the streams they transcode, and the transcodings that failed to start since
   *  the start of the service. */
  readonly audioWorkers: number;
  readonly transcoders: number;
  readonly failedTranscoders: number;
  readonly sessions: { readonly rtmp: number; readonly whip: number };
  readonly players: number;
  /** RTMP connections refused because of a limit, since the start. */
  readonly refusedConnections: number;
  readonly mediaAddresses: readonly string[];
  readonly mediaPorts: readonly number[];
  /** Receive buffer of a media port, bytes; null when the kernel grants what was requested. */
  readonly grantedBuffer: number | null;
  /** Datagrams that the kernel dropped; null where the system does not report them. */
  readonly kernelDrops: number | null;
}

export interface CertificateStatus {
  readonly section: "http" | "rtmp";
  /** Names in the certificate; null when it cannot be read, like the fields that follow. */
  readonly names: string | null;
  readonly issuer: string | null;
  /** Epoch ms. */
  readonly endsAt: number | null;
  /** Problems with the files, and reasons why clients may reject the certificate. */
  readonly problems: readonly string[];
}

export interface DeploymentStatus {
  readonly node: NodeStatus;
  /** null while the store does not answer. */
  readonly outbox: OutboxDepth | null;
  readonly store: { readonly kind: "embedded" | "postgresql"; readonly problem: string | null };
  readonly certificates: readonly CertificateStatus[];
  readonly requestedBuffer: number;
  /** By the names of the settings; 0 means no limit. */
  readonly limits: Readonly<Record<string, number>>;
}

export interface DeploymentDeps {
  readonly db: Kysely<Schema>;
  readonly config: Config;
  /** As last reloaded: for what a reload changes. */
  readonly current: () => Pick<Config, "drainS" | "http" | "rtmp">;
  readonly publishing: Pick<Publishing, "running">;
  readonly media: () => Media;
  readonly storeProblem?: () => string | null;
  readonly version: string;
  /** Epoch ms. */
  readonly clock: { now(): number };
}

/** Call when the service starts; each call of the result reads the state once. */
export function createDeployment(deps: DeploymentDeps): () => Promise<DeploymentStatus> {
  const { db, config, current, clock, storeProblem = () => null } = deps;
  const startedAt = clock.now();

  return async () => ({
    node: nodeStatus(deps, startedAt),
    outbox: await outboxDepth(db, clock.now()).catch(() => null),
    store: { kind: config.databaseUrl === null ? "embedded" : "postgresql", problem: storeProblem() },
    certificates: certificates(),
    requestedBuffer: RECEIVE_BUFFER_BYTES,
    limits: { ...limitsOf(config), drain_s: current().drainS },
  });

  function certificates(): readonly CertificateStatus[] {
    return inspectCertificates(current(), clock.now()).map(({ files, own, faults, warnings }) => ({
      section: files.section,
      names: own?.subjectAltName ?? own?.subject ?? null,
      issuer: own?.issuer ?? null,
      endsAt: own === null ? null : Date.parse(own.validTo),
      problems: [...faults, ...warnings],
    }));
  }
}

function nodeStatus({ config, publishing, media, version }: DeploymentDeps, startedAt: number): NodeStatus {
  const core = media();
  const { publishes, players } = liveNumbers(publishing.running(), media);
  return {
    startedAt,
    version,
    workerLoads: core.workerStatus().map(({ load }) => load),
    audioWorkers: config.media.audioWorkers,
    transcoders: core.transcoders(),
    failedTranscoders: core.failedTranscoders(),
    sessions: publishes,
    players,
    refusedConnections: core.refusedConnections(),
    mediaAddresses: publicAddressesOf(config, config.media.host),
    mediaPorts: core.mediaPorts,
    grantedBuffer: core.smallReceiveBuffer,
    kernelDrops: core.kernelDrops(),
  };
}

function limitsOf({ limits, capacity, rtmp, whip, webhook }: Config): Readonly<Record<string, number>> {
  return {
    "limits.api_requests_per_second": limits.apiRequestsPerSecond,
    "limits.api_burst": limits.apiBurst,
    "limits.load_percent": capacity.loadPercent,
    "limits.memory_percent": capacity.memoryPercent,
    "limits.memory_mb": capacity.memoryMb,
    "limits.descriptors_percent": capacity.descriptorsPercent,
    "limits.organisation_streams": capacity.organisation.streams,
    "limits.organisation_ingest_kbps": capacity.organisation.ingestKbps,
    "limits.organisation_setups_per_second": capacity.organisation.setupsPerSecond,
    "limits.rtmp_connections": rtmp.limits.connections,
    "limits.rtmp_connections_per_address": rtmp.limits.connectionsPerAddress,
    "limits.whip_requests_per_second": whip.limits.requestsPerSecond,
    "limits.whip_offers_per_second": whip.limits.offersPerSecond,
    "limits.whip_half_open_per_address": whip.limits.halfOpenPerAddress,
    "limits.whip_half_open": whip.limits.halfOpen,
    "limits.whip_max_bitrate_kbps": whip.maxBitrateKbps.all,
    "limits.whip_trial_max_bitrate_kbps": whip.maxBitrateKbps.trial,
    "webhook.deadline_ms": webhook.deadlineMs,
    "webhook.update_s": webhook.updateS,
  };
}
