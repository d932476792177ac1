// The third phase of a start: the ports for other nodes, for metrics and for HTTP.
import { keepCertificate, readCertificate } from "../certificate.ts";
import { watchCluster } from "../cluster/cluster-metrics.ts";
import { answersToRivals } from "../cluster/rivals.ts";
import { createNodePorts } from "../handover/node-ports.ts";
import { notesOfPorts } from "../handover/port-room.ts";
import { notReady, watchState } from "../handover/state.ts";
import { answersAboutMetrics, createMetricsOf } from "../http/cluster/metrics-of-others.ts";
import { nodeApp } from "../http/cluster/node-app.ts";
import { answersToOthers } from "../http/cluster/others.ts";
import { healthApp } from "../http/health.ts";
import { listen } from "../listen/http-port.ts";
import type { Beginning } from "./beginning.ts";
import type { StartedCore } from "./core.ts";
import type { OpenedStore } from "./store.ts";

export type OpenedPorts = Awaited<ReturnType<typeof openPorts>>;

export async function openPorts(beginning: Beginning, opened: OpenedStore, core: StartedCore) {
  const { config, log, started, reloads, inherited, former } = beginning;
  const { isFile, name, version, key, clock, state, cluster, there, storeHealth, starting, openMetrics, earlyPort } =
    opened;
  const { service, media, running, duplicate } = core;
  const { publishing, metrics, app } = service;
  const { registry } = metrics;
  const upgrades = watchState(registry, state);
  const clusterMetrics = watchCluster(registry, { name, version, epoch: service.epoch }, isFile ? null : cluster);
  const questions = {
    ...answersToOthers(service),
    ...answersAboutMetrics(registry),
    ...answersToRivals({
      silentMs: (clientId) => running().snapshot(clientId)?.silentMs ?? null,
      isEnding: publishing.isEnding,
      replace: (clientId) => running().end(clientId, "replaced", "Replaced by a new publish of the same name"),
    }),
  };
  const calls = nodeApp({ serve: app.fetch, key, clock, log, questions });
  const { accepting } = media;
  const isSuccessor = former !== null;
  const nodePorts = createNodePorts({ config, fetch: calls.fetch, accepting: () => accepting, isSuccessor });
  started.push(() => nodePorts.stop());
  if (!isFile || isSuccessor) await nodePorts.open();
  // With a file store, other processes of the service are on the same machine and reach this one there, whatever
  // address its RTMP port is bound to.
  // Other nodes send no PROXY header and use no TLS.
  const hasPlainPort = config.rtmp.port !== null && config.rtmp.trustedProxies.length === 0;
  if (isFile ? isSuccessor : !hasPlainPort) await nodePorts.openPulls();
  const { tls } = config.http;
  const certificate = tls && readCertificate(tls);
  const metricsOf = createMetricsOf({ nodes: cluster.nodes, channel: there.elsewhere.channel });
  const health = healthApp({
    registry,
    node: name,
    metricsOf,
    problem: () => notReady(state.word(), isSuccessor) ?? storeHealth.problem() ?? service.full(),
  });
  for (const note of notesOfPorts(config, media.mediaPorts, nodePorts.channel)) former?.note(note);
  await former?.prepared();
  starting.become(health);
  const metricsPort = earlyPort ?? (await openMetrics());
  if (earlyPort === null) started.push(() => metricsPort.stop());
  const httpOptions = { certificate, takesWebSockets: true, socket: inherited.sockets.get("http"), duplicate };
  const http = await listen(app.fetch, { ...config.http, name: "http.port" }, httpOptions);
  started.push(() => http.stop());
  // Before the port waits for its running requests: event streams end only when they are stopped here.
  started.push(async () => service.events.stop());
  started.push(async () => service.previews.stop());
  if (tls !== null) {
    const kept = keepCertificate(tls, http.setCertificate, log);
    started.push(async () => kept.stop());
    reloads.push((next) => next.http.tls && kept.reload(next.http.tls));
  }
  return { nodePorts, http, metricsPort, upgrades, clusterMetrics };
}
