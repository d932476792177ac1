// Opens the media core as configured, and says which setting is at fault when that fails.
import { lookup } from "node:dns/promises";
import { readCertificate } from "../certificate.ts";
import type { Config } from "../config.ts";
import { ConfigInvalid, PortTaken } from "../errors.ts";
import { type Media, MediaStartError, startMedia } from "../media.ts";
import { publicAddressesOf } from "../own-addresses.ts";

/** Rejects with `ConfigInvalid`, `PortTaken` or what the system refused. `handle` and `failed`: see `startMedia`. */
export async function openMedia(
  config: Config,
  handle: Parameters<typeof startMedia>[1],
  failed: (error: unknown) => void,
): Promise<Media> {
  try {
    const { address: rtmpHost } = await lookup(config.rtmp.host);
    const { address: mediaHost } = await lookup(config.media.host);
    const { port: mediaPort, workers, audioWorkers, gopCache, pushSilence } = config.media;
    const { tls, limits } = config.rtmp;
    return startMedia(
      {
        rtmpHost,
        rtmpPort: config.rtmp.port,
        rtmpTls: tls && { port: tls.port, ...readCertificate(tls) },
        upstreamCa: config.webhook.ca,
        mediaHost,
        mediaPort,
        publicAddresses: publicAddressesOf(config, mediaHost),
        workers,
        audioWorkers,
        gopCache,
        pushSilence,
        rtmpConnections: limits.connections,
        rtmpConnectionsPerAddress: limits.connectionsPerAddress,
      },
      handle,
      failed,
    );
  } catch (error) {
    throw error instanceof MediaStartError ? faultOf(error, config) : error;
  }
}

/** The error that an operator understands. */
function faultOf(cause: MediaStartError, config: Config): Error {
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
      return taken(`${media.host}, UDP and TCP (media.port): ${cause.message}`);
    case "identity":
    case "io":
      return cause;
  }
}
