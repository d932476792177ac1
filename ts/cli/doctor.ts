// `headgate doctor`: what would stop a service from working here, found before it does. No check changes anything but
// the tables of the store, as a start would.
import { createSocket } from "node:dgram";
import { readFileSync } from "node:fs";
import { createServer } from "node:net";
import { networkInterfaces } from "node:os";
import { inspectCertificates } from "../certificate.ts";
import { clock } from "../clock.ts";
import { type Config, loadConfig } from "../config.ts";
import { ServiceError } from "../errors.ts";
import { kernelDropsOf, RECEIVE_BUFFER_BYTES, smallBufferAdvice } from "../media/ports.ts";
import { reasonOf } from "../reason.ts";
import { openStore } from "../store/open.ts";
import { isStorePresent } from "../store/present.ts";
import { databaseServers } from "./database-servers.ts";
import { type GivenFlags, readFlags } from "./flags.ts";
import { print } from "./output.ts";

/** How long a datagram to ourselves may take, ms: it crosses one router. */
const ECHO_LIMIT_MS = 1_000;
/** A certificate that ends sooner is worth a word, ms. */
const CERTIFICATE_SOON_MS = 14 * 86_400_000;

export interface Finding {
  readonly what: string;
  readonly state: "good" | "warning" | "bad";
  readonly detail: string;
}

/** Something is bad; the findings have been printed. */
class NotWell extends ServiceError {
  readonly code = "not_well";
}

/** Prints all findings. Throws when one of them is bad. */
export async function runDoctor(_: readonly string[], flags: GivenFlags): Promise<void> {
  const { config } = loadConfig(readFlags(flags));
  const findings = [
    await storeOf(config),
    ...(await databaseServers(config.databaseUrl)),
    ...(await ports(config)),
    await receiveBuffer(config),
    ...kernelDrops(config),
    ...certificates(config),
    await addresses(config),
    await addon(config),
  ];
  const signs = { good: "ok  ", warning: "warn", bad: "BAD " };
  print(
    flags,
    findings,
    findings.map(({ what, state, detail }) => `${signs[state]} ${what}: ${detail}`),
  );
  const bad = findings.filter(({ state }) => state === "bad").length;
  if (bad > 0) throw new NotWell(`${bad} of ${findings.length} checks found something that must be mended`);
}

async function storeOf(config: Config): Promise<Finding> {
  const what = config.databaseUrl === null ? `store in ${config.dataDir}` : "store in PostgreSQL";
  if (!(await isStorePresent(config))) {
    return { what, state: "warning", detail: "there is none yet: headgate serve or headgate init makes it" };
  }
  try {
    const store = await openStore({ ...config, access: "command" });
    const { streams } = await store.db
      .selectFrom("stream")
      .select((eb) => eb.fn.countAll<number>().as("streams"))
      .executeTakeFirstOrThrow();
    await store.close();
    return { what, state: "good", detail: `opens, ${streams} streams` };
  } catch (error) {
    return { what, state: "bad", detail: reasonOf(error) };
  }
}

async function ports(config: Config): Promise<Finding[]> {
  const tcp: [string, string, number][] = [
    ["http.port", config.http.host, config.http.port],
    ["rtmp.port", config.rtmp.host, config.rtmp.port],
    ["metrics.port", config.metrics.host, config.metrics.port],
  ];
  if (config.rtmp.tls !== null) tcp.push(["rtmp.tls_port", config.rtmp.host, config.rtmp.tls.port]);
  const findings = [];
  for (const [name, host, port] of tcp) findings.push(await portOf(name, host, port, bindTcp));
  for (const port of mediaPorts(config)) {
    findings.push(await portOf("media.port", config.media.host, port, bindUdp));
  }
  return findings;
}

/** The UDP ports as configured; none when any free ones are taken. */
function mediaPorts({ media }: Config): readonly number[] {
  return media.port === 0 ? [] : Array.from({ length: media.workers }, (_, worker) => media.port + worker);
}

/** What the kernel grants to a socket that requests what the media core does. */
async function receiveBuffer(config: Config): Promise<Finding> {
  const what = "receive buffer of the media ports";
  const type = config.media.host.includes(":") ? "udp6" : "udp4";
  const socket = createSocket({ type, recvBufferSize: RECEIVE_BUFFER_BYTES });
  try {
    await new Promise<void>((resolve, reject) => socket.once("error", reject).bind(0, () => resolve()));
    // The kernel reports twice what it grants: its own overhead is in it (socket(7), SO_RCVBUF).
    const granted = socket.getRecvBufferSize() / 2;
    return granted < RECEIVE_BUFFER_BYTES
      ? { what, state: "warning", detail: smallBufferAdvice(granted) }
      : { what, state: "good", detail: `${granted} bytes` };
  } catch (error) {
    return { what, state: "bad", detail: reasonOf(error) };
  } finally {
    socket.close();
  }
}

/** Datagrams that a running service lost; nothing when none runs on the configured ports, or the system does not say. */
function kernelDrops(config: Config): Finding[] {
  const tables = ["/proc/net/udp", "/proc/net/udp6"].flatMap((path) => {
    try {
      return [readFileSync(path, "utf8")];
    } catch {
      return []; // no Linux, or no IPv6
    }
  });
  const drops = kernelDropsOf(tables, mediaPorts(config));
  if (drops === null) return [];
  const what = "kernel drops on the media ports";
  if (drops === 0) return [{ what, state: "good", detail: "none since the service started" }];
  const detail = `${drops} datagrams since the service started, because they were not read in time: use more media.workers or a faster machine`;
  return [{ what, state: "warning", detail }];
}

async function portOf(
  name: string,
  host: string,
  port: number,
  bind: (host: string, port: number) => Promise<void>,
): Promise<Finding> {
  const what = `${name} ${host}:${port}`;
  try {
    await bind(host, port);
    return { what, state: "good", detail: port === 0 ? "any free port" : "free" };
  } catch (error) {
    const code = (error as NodeJS.ErrnoException).code;
    // The most likely other program is the service itself.
    if (code === "EADDRINUSE")
      return { what, state: "warning", detail: "in use: by a running headgate, or another program" };
    return { what, state: "bad", detail: reasonOf(error) };
  }
}

function bindTcp(host: string, port: number): Promise<void> {
  return new Promise((resolve, reject) => {
    const server = createServer().once("error", reject);
    server.listen(port, host, () => server.close(() => resolve()));
  });
}

function bindUdp(host: string, port: number): Promise<void> {
  return new Promise((resolve, reject) => {
    const socket = createSocket(host.includes(":") ? "udp6" : "udp4").once("error", reject);
    socket.bind(port, host, () => socket.close(() => resolve()));
  });
}

function certificates(config: Config): Finding[] {
  const reports = inspectCertificates(config, clock.now());
  if (reports.length === 0) {
    return [{ what: "certificate", state: "warning", detail: "none: HTTPS and RTMPS must be given by a proxy" }];
  }
  return reports.map(({ files, faults, warnings, own }): Finding => {
    const what = `certificate ${files.certFile}`;
    if (own === null || faults.length > 0) return { what, state: "bad", detail: faults.join("; ") };
    if (warnings.length > 0) return { what, state: "warning", detail: warnings.join("; ") };
    const isEnding = Date.parse(own.validTo) - clock.now() < CERTIFICATE_SOON_MS;
    const detail = `for ${own.subjectAltName ?? own.subject}, until ${own.validTo}`;
    return { what, state: isEnding ? "warning" : "good", detail };
  });
}

/** What browsers are told to send media to. An address that is a router's is tried with a datagram to ourselves; whether
 *  the world gets through is only known from outside. */
async function addresses(config: Config): Promise<Finding> {
  const what = "addresses of media";
  const own = Object.values(networkInterfaces()).flatMap((each) => each ?? []);
  const said = config.media.publicAddresses;
  const told = said.length > 0 ? said : own.filter(({ internal }) => !internal).map(({ address }) => address);
  const isPrivate = (address: string) =>
    /^(10\.|192\.168\.|172\.(1[6-9]|2\d|3[01])\.|127\.|f[cd]|fe80|::1)/i.test(address);
  if (told.length === 0) return { what, state: "bad", detail: "this machine has none: set media.public_addresses" };
  if (told.every(isPrivate)) {
    return {
      what,
      state: "warning",
      detail: `${told.join(", ")}: only this network reaches them; set media.public_addresses`,
    };
  }
  const foreign = told.filter((address) => !own.some((each) => each.address === address));
  const silent = [];
  for (const address of foreign) if (!(await comesBack(config, address))) silent.push(address);
  if (silent.length > 0) {
    const port = config.media.port === 0 ? "the media ports" : `UDP port ${config.media.port}`;
    const detail = `${silent.join(", ")} is not of this machine, and a datagram to it did not come back: forward ${port} here (a router that does not turn round what its own network sends loses it as well)`;
    return { what, state: "warning", detail };
  }
  return { what, state: "good", detail: told.join(", ") };
}

/** Whether a datagram to our media port by way of `address` arrives here. False also while a service has the port. */
async function comesBack(config: Config, address: string): Promise<boolean> {
  const socket = createSocket(address.includes(":") ? "udp6" : "udp4");
  const arrived = new Promise<boolean>((resolve) => {
    setTimeout(() => resolve(false), ECHO_LIMIT_MS);
    socket.on("error", () => resolve(false)).on("message", () => resolve(true));
    socket.bind(config.media.port, () => {
      socket.send("headgate doctor", socket.address().port, address, (error) => error && resolve(false));
    });
  });
  return await arrived.finally(() => socket.close());
}

/** The media core and its codecs are one library: it loads or it does not. */
async function addon(_: Config): Promise<Finding> {
  const what = "media core (RTMP, WebRTC, Opus, AAC)";
  try {
    const { refusesEmptyOffer } = await import("../media.ts");
    return refusesEmptyOffer()
      ? { what, state: "good", detail: "loads and works" }
      : { what, state: "bad", detail: "loads, but accepts an empty offer" };
  } catch (error) {
    return { what, state: "bad", detail: reasonOf(error) };
  }
}
