// Doctor: whether the host names in the configuration resolve.
import { isIP } from "node:net";
import type { Config } from "../../config.ts";
import { withoutBrackets } from "../../network.ts";
import { resolveBySystem } from "../../publish/addresses/address-guard.ts";
import { reasonOf } from "../../reason.ts";
import { type Finding, good } from "./finding.ts";

/** One finding for each name that does not resolve, or a single one when all do. */
export async function names(config: Config): Promise<readonly Finding[]> {
  const what = "names in the configuration";
  const named = namesOf(config);
  if (named.size === 0) return [];
  const findings = await Promise.all(
    [...named].map(async ([name, setting]): Promise<readonly Finding[]> => {
      try {
        await resolveBySystem(name);
        return [];
      } catch (error) {
        return [
          {
            what: `name ${name} (${setting})`,
            state: "bad",
            detail: `does not resolve: ${reasonOf(error)}`,
            why:
              setting === "upstream.push"
                ? "no stream can be pushed to it"
                : "clients that are given this name cannot reach the service",
            remedy: `correct ${setting}, the DNS zone, or the servers in /etc/resolv.conf`,
          },
        ];
      }
    }),
  );
  const missing = findings.flat();
  return missing.length > 0 ? missing : [good(what, `${[...named.keys()].join(", ")}: all resolve`)];
}

/** Host names, excluding addresses, and the setting that contains each. */
function namesOf({ http, ingest, upstream, node }: Config): ReadonlyMap<string, string> {
  const hosts: [string, string][] = [
    ...[http.publicUrl].filter((url) => url !== null).map((url): [string, string] => [hostOf(url), "http.public_url"]),
    ...ingest.hosts.map((host): [string, string] => [host, "ingest.hosts"]),
    ...upstream.push.map((url): [string, string] => [hostOf(url), "upstream.push"]),
    ...[node.address].filter((url) => url !== null).map((url): [string, string] => [hostOf(url), "node.address"]),
  ];
  return new Map(
    hosts.map(([host, setting]) => [withoutBrackets(host), setting] as const).filter(([host]) => !isIP(host)),
  );
}

function hostOf(url: string): string {
  return /^\w+:\/\/(?:[^/@]*@)?(\[[^\]]*\]|[^/:?]+)/.exec(url)?.[1] ?? "";
}
