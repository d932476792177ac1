// /deployment: the state of the whole service, and the organisations on it. Only for its operator: administrators of
// the organisation that operates it.
import type { Kysely } from "kysely";
import type { DeploymentNode as ClusterNode } from "../../cluster/node-list.ts";
import { listOrganisations, type OrganisationSummary } from "../../organisation/deployment-list.ts";
import type { CertificateStatus, DeploymentStatus, NodeStatus } from "../../publish/monitoring/deployment.ts";
import type { Schema } from "../../store/schema.ts";
import { type Declarations, newRoutes, type RouteDeps, type Routes, Time, z } from "../openapi.ts";
import { cursorOf, pageOf, pageQuery } from "../request/page.ts";
import { text } from "../request/schema.ts";

/** Entries per page: by default, and at most. */
const QUANTITY = { standard: 50, most: 500 } as const;
const Page = cursorOf("organisation", z.tuple([z.int(), text()]));

const Node = z
  .object({
    version: z.string(),
    started_at: Time,
    uptime_s: z.int(),
    workers: z.array(z.object({ load: z.number().openapi({ description: "Share of a core, 0 to 1" }) })),
    audio: z.object({
      workers: z.int(),
      transcoders: z.int().openapi({ description: "Streams whose Opus audio is being transcoded to AAC" }),
      failed: z.int().openapi({ description: "Transcoders that have failed since the start" }),
    }),
    sessions: z.object({ rtmp: z.int(), whip: z.int() }),
    players: z.int(),
    refused_connections: z
      .int()
      .openapi({ description: "RTMP connections refused because of a limit, since the start" }),
    event_readers: z.int().openapi({ description: "Open streams of /organisation/events" }),
    media: z.object({ addresses: z.array(z.string()), ports: z.array(z.int()) }),
    udp_buffer: z.object({
      requested_bytes: z.int(),
      granted_bytes: z.int(),
      kernel_drops: z.int().nullable().openapi({ description: "Datagrams; null where the system does not report it" }),
    }),
  })
  .openapi("DeploymentNode");
const NodeOfCluster = z
  .object({
    name: z.string(),
    state: z.enum(["up", "draining", "stopped", "lost"]).openapi({
      description:
        "draining: takes no new publishes; lost: gave no sign of life, and the other nodes ended its publishes. " +
        "Stopped and lost nodes are listed for a day",
    }),
    answered: z.boolean().openapi({ description: "Whether this node answered the request" }),
    epoch: z.int().openapi({ description: "Number of this start of the node; every start gets a new one" }),
    version: z.string(),
    http: z.string().nullable().openapi({ description: "Where it serves HTTP" }),
    rtmp: z.string().nullable().openapi({ description: "Where it serves RTMP" }),
    publishes: z.int().openapi({ description: "Publishes running on the node" }),
    load: z.number().openapi({ description: "Load of its busiest media worker, as a share of a core, 0 to 1" }),
    full: z.string().nullable().openapi({
      description: "Why the node currently takes no new publishes although it is up; null while it has room",
      example: "full: a media worker is busy for 91 % of the time",
    }),
    started_at: Time,
    last_sign_of_life_at: Time,
    last_sign_of_life_age_ms: z.int().openapi({ description: "In milliseconds, by the store's clock" }),
  })
  .openapi("DeploymentClusterNode");
const Deployment = z
  .object({
    nodes: z.array(Node).openapi({ description: "The node that answered the request, in detail" }),
    cluster: z
      .array(NodeOfCluster)
      .nullable()
      .openapi({ description: "Every node that shares the store, by name; null while the store does not answer" }),
    outbox: z
      .object({ events: z.int(), oldest_ms: z.int() })
      .nullable()
      .openapi({ description: "Undelivered events, counted up to 10,000; null while the store does not answer" }),
    store: z.object({
      kind: z.enum(["embedded", "postgresql"]),
      healthy: z.boolean(),
      problem: z.string().nullable().openapi({ description: "Why the store cannot be written" }),
    }),
    certificates: z.array(
      z.object({
        section: z.enum(["http", "rtmp"]).openapi({ description: "Section of the settings that name the files" }),
        names: z.string().nullable(),
        issuer: z.string().nullable(),
        ends_at: Time.nullable(),
        days_left: z.int().nullable(),
        problems: z.array(z.string()),
      }),
    ),
    limits: z
      .record(z.string(), z.number())
      .openapi({ description: "By setting name; 0 means no limit", example: { drain_s: 300 } }),
  })
  .openapi("Deployment");
const DeploymentOrganisation = z
  .object({
    id: z.uuid(),
    hash: z.string(),
    name: z.string(),
    plan: z.enum(["trial", "paid"]),
    trial_ends_at: Time.nullable(),
    enabled: z.boolean().openapi({ description: "False when the organisation is disabled or its trial is over" }),
    streams: z.int().openapi({ description: "Not counting deleted streams" }),
    live: z.int(),
    bytes_in: z.int().openapi({ description: "In this month (UTC)" }),
    bytes_out: z.int(),
    created_at: Time,
  })
  .openapi("DeploymentOrganisation");

export const DEPLOYMENT_ROUTES = {
  "GET /deployment": {
    tag: "Deployment",
    summary: "Status of the service",
    description: "For the operator: administrators of the deployment's own organisation.",
    answer: Deployment,
  },
  "GET /deployment/organisation": {
    tag: "Deployment",
    summary: "Organisations of the deployment, oldest first",
    description: "For the operator: administrators of the deployment's own organisation.",
    query: z.object(pageQuery(QUANTITY, Page)),
    answer: z.array(DeploymentOrganisation),
  },
} satisfies Declarations;

export function deploymentRoutes(
  deps: RouteDeps & {
    readonly db: Kysely<Schema>;
    readonly clock: { now(): number };
    readonly deployment: () => Promise<DeploymentStatus>;
    readonly nodes: () => Promise<readonly ClusterNode[] | null>;
    readonly events: { readers(): number };
  },
): Routes["hono"] {
  const { db, clock, deployment, nodes, events } = deps;
  const routes = newRoutes(deps, DEPLOYMENT_ROUTES);

  routes.guarded("GET /deployment", async (c) => {
    const now = clock.now();
    const [status, cluster] = await Promise.all([deployment(), nodes()]);
    const { node, outbox, store, certificates, requestedBuffer, limits } = status;
    return c.json({
      nodes: [{ ...nodeRecord(node, now, requestedBuffer), event_readers: events.readers() }],
      cluster: cluster?.map(clusterRecord) ?? null,
      outbox: outbox && { events: outbox.events, oldest_ms: outbox.oldestMs },
      store: { kind: store.kind, healthy: store.problem === null, problem: store.problem },
      certificates: certificates.map((certificate) => certificateRecord(certificate, now)),
      limits,
    });
  });

  routes.guarded("GET /deployment/organisation", async (c, _, { query: { quantity, cursor } }) => {
    const [createdAt, id] = cursor ?? [];
    const behind = createdAt === undefined || id === undefined ? null : { createdAt, id };
    const found = await listOrganisations(db, { behind, quantity: quantity + 1 }, clock.now());
    const positionOf = ({ createdAt, id }: OrganisationSummary): [number, string] => [createdAt, id];
    return c.json(pageOf(c, found, { quantity, cursor: Page, positionOf }).map(organisationRecord));
  });

  return routes.hono;
}

function nodeRecord(node: NodeStatus, now: number, requestedBuffer: number) {
  return {
    version: node.version,
    started_at: new Date(node.startedAt).toISOString(),
    uptime_s: Math.max(0, Math.floor((now - node.startedAt) / 1_000)),
    workers: node.workerLoads.map((load) => ({ load: rounded(load) })),
    audio: { workers: node.audioWorkers, transcoders: node.transcoders, failed: node.failedTranscoders },
    sessions: node.sessions,
    players: node.players,
    refused_connections: node.refusedConnections,
    media: { addresses: node.mediaAddresses, ports: node.mediaPorts },
    udp_buffer: {
      requested_bytes: requestedBuffer,
      granted_bytes: node.grantedBuffer ?? requestedBuffer,
      kernel_drops: node.kernelDrops,
    },
  };
}

function clusterRecord(node: ClusterNode): z.infer<typeof NodeOfCluster> {
  const { name, state, epoch, version, http, rtmp, publishes, full = null } = node;
  return {
    name,
    state,
    answered: node.isThis,
    epoch,
    version,
    http,
    rtmp,
    publishes,
    load: rounded(node.load),
    full,
    started_at: new Date(node.startedAt).toISOString(),
    last_sign_of_life_at: new Date(node.beatAt).toISOString(),
    last_sign_of_life_age_ms: Math.round(node.ageMs),
  };
}

const rounded = (load: number) => Math.round(load * 1_000) / 1_000;

const DAY_MS = 86_400_000;

function certificateRecord({ section, names, issuer, endsAt, problems }: CertificateStatus, now: number) {
  return {
    section,
    names,
    issuer,
    ends_at: endsAt === null ? null : new Date(endsAt).toISOString(),
    days_left: endsAt === null ? null : Math.floor((endsAt - now) / DAY_MS),
    problems,
  };
}

function organisationRecord(organisation: OrganisationSummary): z.infer<typeof DeploymentOrganisation> {
  const { id, hash, name, plan, enabled, streams, live, trialEndsAt, createdAt } = organisation;
  return {
    id,
    hash,
    name,
    plan,
    trial_ends_at: trialEndsAt === null ? null : new Date(trialEndsAt).toISOString(),
    enabled,
    streams,
    live,
    bytes_in: organisation.bytesIn,
    bytes_out: organisation.bytesOut,
    created_at: new Date(createdAt).toISOString(),
  };
}
