// `headgate doctor`: finds what would stop a service from working here, before it does. No check changes anything
// except that the store's tables are migrated, as at a start. Each kind of finding has its own file.
import { clock } from "../../clock.ts";
import { type Config, loadConfig } from "../../config.ts";
import { ConfigInvalid, ServiceError } from "../../errors.ts";
import { type GivenFlags, readFlags } from "../flags.ts";
import { print } from "../output.ts";
import { certificates } from "./certificates.ts";
import { databaseServers } from "./database-servers.ts";
import { type Finding, linesOf } from "./finding.ts";
import { addon, nodeVersion, pages } from "./installation.ts";
import { clockFinding, dataDirectory, descriptors, firstStart } from "./machine.ts";
import { mediaAddresses } from "./media-addresses.ts";
import { names } from "./names.ts";
import { kernelDrops, ports, receiveBuffer } from "./ports.ts";
import { publicUrl } from "./public-url.ts";
import { running } from "./running.ts";
import { stored } from "./stored.ts";
import { webhooks } from "./webhooks.ts";

interface DoctorFlags extends GivenFlags {
  readonly verbose?: boolean | undefined;
}

/** Some finding is bad; all findings have been printed. */
class NotWell extends ServiceError {
  readonly code = "not_well";
}

/** Prints what is wrong, with `--verbose` or as JSON also what is right. Throws when a finding is bad: `ConfigInvalid`
 *  when it is the configuration. */
export async function runDoctor(_: readonly string[], flags: DoctorFlags): Promise<void> {
  const loaded = loadedOf(flags);
  const findings = "faults" in loaded ? await withoutConfig(loaded.faults) : await withConfig(loaded.config);
  const wrong = findings.filter(({ state }) => state !== "good");
  const shown = flags.verbose === true ? findings : wrong;
  const rest = findings.length - wrong.length;
  const summary = `${rest} of ${findings.length} checks found nothing wrong${flags.verbose ? "" : " (--verbose lists them)"}`;
  print(flags, findings, [...shown.flatMap(linesOf), summary]);
  const bad = findings.filter(({ state }) => state === "bad").length;
  const message = `${bad} of ${findings.length} checks found a problem that must be fixed`;
  if ("faults" in loaded) throw new ConfigInvalid(message);
  if (bad > 0) throw new NotWell(message);
}

function loadedOf(flags: GivenFlags): { readonly config: Config } | { readonly faults: readonly string[] } {
  try {
    return { config: loadConfig(readFlags(flags)).config };
  } catch (error) {
    if (!(error instanceof ConfigInvalid)) throw error;
    return { faults: error.message.split("\n") };
  }
}

/** The findings that are possible without a configuration. */
async function withoutConfig(faults: readonly string[]): Promise<readonly Finding[]> {
  const of = faults.map((detail): Finding => {
    return {
      what: "configuration",
      state: "bad",
      detail,
      why: "headgate serve exits with 2, and doctor cannot run most of its checks",
      remedy:
        "correct that setting in headgate.toml, the environment or the flags (headgate config schema lists all settings)",
    };
  });
  return [...of, ...nodeVersion(), await addon(), pages(), ...descriptors(null), clockFinding([], null, clock.now())];
}

async function withConfig(config: Config): Promise<readonly Finding[]> {
  const store = await stored(config);
  const tried = store.isOpen ? await webhooks(config, store.webhooks) : { findings: [], dates: [] };
  const service = await running(config);
  return [
    ...nodeVersion(),
    ...dataDirectory(config),
    ...firstStart(config),
    ...store.findings,
    ...(await databaseServers(config.databaseUrl)),
    ...service,
    ...(await ports(config, service.length > 0)),
    await receiveBuffer(config),
    ...kernelDrops(config),
    ...descriptors(config),
    clockFinding([...store.references, ...tried.dates], store.newestAt, clock.now()),
    ...certificates(config, clock.now()),
    ...(await names(config)),
    ...(await publicUrl(config)),
    await mediaAddresses(config),
    ...tried.findings,
    await addon(),
    pages(),
  ];
}
