// Doctor: whether the ports can be opened, and the kernel's receive buffers for media.
import { createSocket } from "node:dgram";
import { readFileSync } from "node:fs";
import { createServer } from "node:net";
import type { Config } from "../../config.ts";
import { kernelDropsOf, RECEIVE_BUFFER_BYTES, smallBufferAdvice } from "../../media/ports.ts";
import { reasonOf } from "../../reason.ts";
import { type Finding, good } from "./finding.ts";

/** `isRunning`: the service that has this configuration runs, and so has the ports. */
export async function ports(config: Config, isRunning: boolean): Promise<readonly Finding[]> {
  const tcp: [string, string, number][] = [
    ["http.port", config.http.host, config.http.port],
    ["metrics.port", config.metrics.host, config.metrics.port],
  ];
  if (config.rtmp.port !== null) tcp.push(["rtmp.port", config.rtmp.host, config.rtmp.port]);
  if (config.rtmp.tls !== null) tcp.push(["rtmp.tls_port", config.rtmp.host, config.rtmp.tls.port]);
  if (config.databaseUrl !== null) tcp.push(["node.port", config.node.host, config.node.port]);
  const media = mediaPorts(config).map((port) => ["media.port", config.media.host, port] as const);
  const findings: Finding[] = [...equalPorts([...tcp, ...media])];
  for (const [name, host, port] of tcp) findings.push(await portOf(name, host, port, bindTcp, isRunning));
  for (const [name, host, port] of media) findings.push(await portOf(name, host, port, bindMedia, isRunning));
  return findings;
}

/** Settings that name the same port; only one of them would get it. */
function equalPorts(ports: readonly (readonly [name: string, host: string, port: number])[]): readonly Finding[] {
  return ports.flatMap(([name, host, port], at) => {
    const other = ports.slice(0, at).find((each) => port !== 0 && each[2] === port && overlap(each[1], host));
    if (other === undefined) return [];
    return [
      {
        what: `${name} ${host}:${port}`,
        state: "bad",
        detail: `is the same as ${other[0]}`,
        why: "only one of them can open it: headgate serve exits with 3",
        remedy: `set one of them to another port`,
      },
    ];
  });
}

const ANY_HOST = ["0.0.0.0", "::"];
const overlap = (one: string, other: string) => one === other || ANY_HOST.includes(one) || ANY_HOST.includes(other);

/** The configured ports of the media workers, each for UDP and TCP; empty when free ones are chosen. */
function mediaPorts({ media }: Config): readonly number[] {
  return media.port === 0 ? [] : Array.from({ length: media.workers }, (_, worker) => media.port + worker);
}

/** The receive buffer that the kernel grants to a socket that requests as much as the media core does. */
export async function receiveBuffer(config: Config): Promise<Finding> {
  const what = "receive buffer of the media ports";
  const why =
    "a burst of many WebRTC streams is lost before it is read, and each loss costs a retransmission or a keyframe";
  const type = config.media.host.includes(":") ? "udp6" : "udp4";
  const socket = createSocket({ type, recvBufferSize: RECEIVE_BUFFER_BYTES });
  try {
    await new Promise<void>((resolve, reject) => socket.once("error", reject).bind(0, () => resolve()));
    // The kernel reports twice what it grants, which includes its own overhead (socket(7), SO_RCVBUF).
    const granted = socket.getRecvBufferSize() / 2;
    if (granted >= RECEIVE_BUFFER_BYTES) return good(what, `${granted} bytes`);
    const remedy = "run that command, put the setting into /etc/sysctl.d, and restart the service after a drain";
    return { what, state: "warning", detail: smallBufferAdvice(granted), why, remedy };
  } catch (error) {
    return { what, state: "bad", detail: reasonOf(error), why, remedy: "allow this process to open UDP sockets" };
  } finally {
    socket.close();
  }
}

/** Datagrams that a running service lost; no finding when none runs on the configured ports, or the system does not
 *  report them. */
export function kernelDrops(config: Config): readonly Finding[] {
  const tables = ["/proc/net/udp", "/proc/net/udp6"].flatMap((path) => {
    try {
      return [readFileSync(path, "utf8")];
    } catch {
      return []; // not Linux, or no IPv6
    }
  });
  const drops = kernelDropsOf(tables, mediaPorts(config));
  if (drops === null) return [];
  const what = "kernel drops on the media ports";
  if (drops === 0) return [good(what, "none since the service started")];
  return [
    {
      what,
      state: "warning",
      detail: `${drops} datagrams since the service started, because they were not read in time`,
      why: "viewers see a frozen picture until the next keyframe",
      remedy: "increase the receive buffer, use more media.workers or a faster machine",
    },
  ];
}

async function portOf(
  name: string,
  host: string,
  port: number,
  bind: (host: string, port: number) => Promise<void>,
  isRunning: boolean,
): Promise<Finding> {
  const what = `${name} ${host}:${port}`;
  try {
    await bind(host, port);
    return good(what, port === 0 ? "any free port" : "free");
  } catch (error) {
    const code = (error as NodeJS.ErrnoException).code;
    if (code === "EADDRINUSE") {
      if (isRunning) return good(what, "in use by the running service");
      return {
        what,
        state: "warning",
        detail: "in use, and no headgate answers on metrics.port",
        why: "a service cannot use it: headgate serve exits with 3",
        remedy: `stop the other program, or set ${name} to a free port`,
      };
    }
    const remedy =
      code === "EACCES"
        ? `set ${name} to 1024 or more, or give the process CAP_NET_BIND_SERVICE`
        : `set ${name.replace(/\.\w+$/, ".host")} to an address of this machine`;
    return { what, state: "bad", detail: reasonOf(error), why: "headgate serve exits with 3", remedy };
  }
}

function bindTcp(host: string, port: number): Promise<void> {
  return new Promise((resolve, reject) => {
    const server = createServer().once("error", reject);
    server.listen(port, host, () => server.close(() => resolve()));
  });
}

/** ICE uses both. */
async function bindMedia(host: string, port: number): Promise<void> {
  await bindUdp(host, port);
  await bindTcp(host, port);
}

function bindUdp(host: string, port: number): Promise<void> {
  return new Promise((resolve, reject) => {
    const socket = createSocket(host.includes(":") ? "udp6" : "udp4").once("error", reject);
    socket.bind(port, host, () => socket.close(() => resolve()));
  });
}
