// Doctor: the service that runs here, as its metrics port shows it: whether it is the installed version, and whether an
// upgrade of it has failed. After an update of the package whose reload failed, the former version continues to run.
import { type Config, readVersion } from "../../config.ts";
import { withBrackets } from "../../network.ts";
import { type Finding, good } from "./finding.ts";

/** How long a response may take, ms. */
const ANSWER_LIMIT_MS = 2_000;

/** No finding while no service runs here. `installed`: the version on the disk. */
export async function running(
  { metrics }: Pick<Config, "metrics">,
  installed = readVersion(),
): Promise<readonly Finding[]> {
  const text = await metricsAt(metrics).catch(() => "");
  const version = /^headgate_node_info\{[^}]*\bversion="([^"]+)"/m.exec(text)?.[1];
  if (version === undefined) return [];
  const failed = Number(/^headgate_upgrade_failed_total (\d+)/m.exec(text)?.[1] ?? 0);
  const what = "running service";
  const remedy =
    "read why in its log (journalctl -u headgate), then headgate upgrade, or systemctl reload headgate under systemd";
  if (version !== installed) {
    return [
      {
        what,
        state: "warning",
        remedy,
        detail: `runs version ${version}, but ${installed} is installed${failed > 0 ? `: ${timesOf(failed)} failed` : ""}`,
        why: "what the installed version corrects is not in use, and a crash or a restart starts the other version",
      },
    ];
  }
  if (failed === 0) return [good(what, `version ${version}, as installed`)];
  return [
    {
      what,
      state: "warning",
      remedy,
      detail: `version ${version}; since its start ${timesOf(failed)} failed`,
      why: "changed files and settings are not in use: this process continues with the former ones",
    },
  ];
}

const timesOf = (count: number) => (count === 1 ? "an upgrade of it" : `${count} upgrades of it`);

async function metricsAt({ host, port }: Config["metrics"]): Promise<string> {
  const local = host === "0.0.0.0" ? "127.0.0.1" : host === "::" ? "::1" : host;
  const response = await fetch(`http://${withBrackets(local)}:${port}/metrics`, {
    signal: AbortSignal.timeout(ANSWER_LIMIT_MS),
  });
  return response.ok ? await response.text() : "";
}
