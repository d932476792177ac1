// Opens the media core as configured, and names the setting at fault when that fails.
import { lookup } from "node:dns/promises";
import { readCertificate } from "../certificate.ts";
import type { Config } from "../config.ts";
import { ConfigInvalid, PortTaken, SystemRefused } from "../errors.ts";
import { lastPort } from "../listen/free-ports.ts";
import { type Media, MediaStartError, startMedia } from "../media.ts";
import { publicAddressesOf } from "../own-addresses.ts";
import type { AcceptingOptions } from "./accepting.ts";

export { duplicate } from "./descriptors.ts";

/** How to open it beside another process, with which it may share RTMP sockets. */
export interface OpenOptions extends AcceptingOptions {
  /** Another process uses the configured media ports, and the next free ones are taken. */
  readonly isSuccessor?: boolean;
}

/** Rejects with `ConfigInvalid`, `PortTaken` or `SystemRefused`. `handle` and `failed`: see `startMedia`. */
export async function openMedia(
  config: Config,
  handle: Parameters<typeof startMedia>[1],
  failed: (error: unknown) => void,
  { isSuccessor = false, ...accepting }: OpenOptions = {},
): Promise<Media> {
  const { port, workers } = config.media;
  const last = isSuccessor && port !== 0 ? lastPort(port) - (workers - 1) : port;
  for (let at = port; ; at += 1) {
    try {
      return await openAt(config, at, accepting, handle, failed);
    } catch (error) {
      if (!(error instanceof MediaStartError)) throw error;
      if (error.code !== "media_port_taken" || at >= last) throw faultOf(error, config, isSuccessor);
    }
  }
}

/** Where the threads and files of a service are limited. */
const LIMITS = "ulimit -u and -n, TasksMax= and LimitNOFILE= of systemd, pids.max of a container";

async function openAt(
  config: Config,
  mediaPort: number,
  accepting: AcceptingOptions,
  handle: Parameters<typeof startMedia>[1],
  failed: (error: unknown) => void,
): Promise<Media> {
  const { address: rtmpHost } = await lookup(config.rtmp.host);
  const { address: mediaHost } = await lookup(config.media.host);
  const { workers, audioWorkers, gopCache, pushSilence } = config.media;
  const { tls, limits } = config.rtmp;
  return startMedia(
    {
      rtmpHost,
      rtmpPort: config.rtmp.port,
      rtmpTrustedProxies: config.rtmp.trustedProxies,
      rtmpTls: tls && { port: tls.port, ...readCertificate(tls) },
      ...accepting,
      upstreamCa: config.webhook.ca,
      mediaHost,
      mediaPort,
      publicAddresses: publicAddressesOf(config, mediaHost),
      workers,
      audioWorkers,
      gopCache,
      pushSilence,
      captures: config.capture.directory !== null,
      rtmpConnections: limits.connections,
      rtmpConnectionsPerAddress: limits.connectionsPerAddress,
    },
    handle,
    failed,
  );
}

/** Translates the fault into an error for the operator. */
function faultOf(cause: MediaStartError, config: Config, isSuccessor: boolean): Error {
  const { rtmp, media, webhook } = config;
  const taken = (where: string) =>
    new PortTaken(`cannot listen on ${where}: it is in use by another program`, { cause });
  switch (cause.code) {
    case "tls": {
      const names = [rtmp.tls && `${rtmp.tls.section}.tls_cert`, webhook.ca && "webhook.ca"];
      const message = `${names.filter(Boolean).join(", ")}: cannot be used for RTMPS: ${cause.message}`;
      return new ConfigInvalid(message, { cause });
    }
    case "rtmp_port_taken":
      return taken(`${rtmp.host}:${rtmp.port} (rtmp.port)`);
    case "rtmp_tls_port_taken":
      return taken(`${rtmp.host}:${rtmp.tls?.port} (rtmp.tls_port)`);
    case "media_port_taken":
      if (isSuccessor) {
        const range = `media.port: the ports from ${media.port} to ${lastPort(media.port)}`;
        const by = "by former processes of this service, or by other programs";
        return new PortTaken(`${range} are in use, ${by}: ${media.workers} in a row are needed, UDP and TCP`, {
          cause,
        });
      }
      return taken(`${media.host}, UDP and TCP (media.port): ${cause.message}`);
    case "io":
      return new SystemRefused(`${cause.message}; look at the limits of threads and files (${LIMITS})`, { cause });
    case "identity":
      return cause;
  }
}
