// SIGHUP: reads the settings and the certificates again, applies those that can be changed while the service runs, and
// logs which others have changed. The environment and the flags of a process never change: what can is headgate.toml,
// and the files that settings name.
import { clock } from "../../clock.ts";
import type { LoadedConfig } from "../../config.ts";
import type { RunningService } from "../../main/running-service.ts";
import { reasonOf } from "../../reason.ts";
import { SETTING_KEYS, type SettingKey, settingOf } from "../../settings.ts";
import { usableCertificates } from "../config.ts";

/** The function that reloads. `started`: what the service was started with; `load` reads it again. */
export function createReload(
  started: LoadedConfig,
  load: () => LoadedConfig,
  service: Pick<RunningService, "log" | "reload">,
): () => void {
  const { log } = service;
  let running = started;
  return () => {
    try {
      const next = load();
      usableCertificates(next.config, clock.now());
      const { reloaded, needRestart } = changesBetween(running, next);
      const changed = Object.fromEntries(reloaded.map((key) => [key, shown(key, next.origin.get(key)?.value)]));
      service.reload(next.config);
      const origin = new Map(running.origin);
      for (const key of reloaded) origin.set(key, next.origin.get(key) ?? { value: null, source: "default" });
      running = { ...running, origin };
      log.info({ changed, needRestart }, messageOf(reloaded.length, needRestart.length));
    } catch (error) {
      log.error({ reason: reasonOf(error) }, "reload: the settings cannot be used, and nothing has changed");
    }
  };
}

function messageOf(reloaded: number, needRestart: number): string {
  const done = reloaded === 0 ? "reload: certificates are read again" : "reload: settings have changed";
  return needRestart === 0 ? done : `${done}; others that have changed need a restart`;
}

export interface Changes {
  readonly reloaded: readonly SettingKey[];
  readonly needRestart: readonly SettingKey[];
}

/** What differs from what the service runs with. */
export function changesBetween(running: LoadedConfig, next: LoadedConfig): Changes {
  const different = SETTING_KEYS.filter((key) => {
    const [former, now] = [running, next].map(({ origin }) => JSON.stringify(origin.get(key)?.value ?? null));
    return former !== now || (key === "webhook.ca" && running.config.webhook.ca !== next.config.webhook.ca);
  });
  const isReloaded = (key: SettingKey) => settingOf(key).reloads === true && keepsPorts(key, running, next);
  return {
    reloaded: different.filter(isReloaded),
    needRestart: different.filter((key) => !isReloaded(key)),
  };
}

/** The first certificate of a section, or none any more, makes a port speak another protocol. */
function keepsPorts(key: SettingKey, running: LoadedConfig, next: LoadedConfig): boolean {
  const section = /^(http|rtmp)[.]tls_/.exec(key)?.[1] as "http" | "rtmp" | undefined;
  if (section === undefined) return true;
  return (running.config[section].tls === null) === (next.config[section].tls === null);
}

/** For the log, which everybody may read. */
function shown(key: SettingKey, value: unknown): unknown {
  const { secret = false, hidden = false } = settingOf(key);
  return secret || hidden ? "(secret)" : value;
}
