// The listening sockets that a successor inherits, and those that a former process keeps for another one.
import { closeSync } from "node:fs";
import { UpgradeFailed } from "../errors.ts";
import { reasonOf } from "../reason.ts";
import type { SocketName } from "./inherited.ts";

export type NamedSockets = readonly (readonly [name: SocketName, descriptor: number])[];

/** Sockets inherited for the media core. */
export function rtmpOf(sockets: ReadonlyMap<SocketName, number>): { readonly plain?: number; readonly tls?: number } {
  const [plain, tls] = [sockets.get("rtmp"), sockets.get("rtmps")];
  return { ...(plain !== undefined && { plain }), ...(tls !== undefined && { tls }) };
}

/** The sockets that a successor inherits, by name. */
export function socketsOf(sockets: {
  readonly http: number | null;
  readonly metrics: number | null;
  readonly plain: number | null;
  readonly tls: number | null;
}): NamedSockets {
  const { http, metrics, plain: rtmp, tls: rtmps } = sockets;
  // Deno and Bun do not expose the descriptors of their servers: a new process could not listen on the same ports.
  if (http === null || metrics === null) {
    throw new UpgradeFailed("only under Node can a service hand over its HTTP ports: restart it instead");
  }
  const named = { http, metrics, rtmp, rtmps };
  const open = (["http", "metrics", "rtmp", "rtmps"] as const).map((name) => [name, named[name]] as const);
  return open.flatMap(([name, socket]) => (socket === null ? [] : [[name, socket] as const]));
}

export interface KeptSockets {
  readonly sockets: NamedSockets;
  close(): void;
}

/** Duplicates sockets: connections wait in them also while no process listens. Throws `UpgradeFailed` when no descriptor
 *  is left. */
export function keepSockets(sockets: NamedSockets, duplicate: (descriptor: number) => number): KeptSockets {
  let kept: NamedSockets = [];
  const close = () => {
    for (const [, descriptor] of kept) closeSync(descriptor);
    kept = [];
  };
  try {
    for (const [name, descriptor] of sockets) kept = [...kept, [name, duplicate(descriptor)]];
  } catch (cause) {
    close();
    throw new UpgradeFailed(`the listening sockets cannot be kept: ${reasonOf(cause)}`, { cause });
  }
  return {
    get sockets() {
      return kept;
    },
    close,
  };
}
