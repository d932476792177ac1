// Runs each command once, beside a running service: enough to make it load all of its code.

/** Its words, its exit code, and a part of its output. */
type Command = readonly [words: readonly string[], code: number, says: string];

/** By verb, in an order that works. `dataDir`: of the service, whose API is at `url`; HEADGATE_API_KEY is set. */
export function commandsOf(dataDir: string, url: string): Readonly<Record<string, Command>> {
  const [backup, key, restored, copied] = ["backup", "key", "restored", "copied"].map((name) => `${dataDir}/${name}`);
  const asking = ["--url", url];
  return {
    serve: [[], 4, "is in use by another headgate process"],
    demo: [["--seconds", "0", "--json"], 0, "/dashboard/streams/"],
    init: [[], 0, "nothing was changed"],
    doctor: [[], 0, "checks found nothing wrong"],
    config: [["check"], 0, "The configuration is valid."],
    organisation: [["ls"], 0, "Headgate"],
    user: [["ls"], 0, "admin"],
    keys: [["ls"], 0, "administrator"],
    stream: [["ls"], 0, "state"],
    token: [["ls"], 0, "made by"],
    webhook: [["test", ...asking], 1, "No webhook is set"],
    settings: [["show", ...asking], 0, "hold_s"],
    logo: [["show", ...asking], 0, "No logo is set."],
    usage: [asking, 0, "total"],
    audit: [asking, 0, "none"],
    api: [["GET", "/me", ...asking], 0, "role"],
    sessions: [["ls", ...asking], 0, "streamname"],
    refusals: [[], 0, "it was told"],
    explain: [["1", ...asking], 1, "Unknown session"],
    capture: [["1", `${dataDir}/capture`, ...asking], 1, "Unknown session"],
    replay: [["package.json"], 2, "this is not a Headgate capture"],
    upstreams: [["ls", "1", ...asking], 1, "Unknown session"],
    nodes: [["ls"], 0, "sign of life"],
    backup: [[`${backup}`, "--key", `${key}`], 0, "holds the store"],
    restore: [[`${backup}`, "--key", `${key}`, "--data-dir", `${restored}`], 0, "holds the store"],
    store: [["copy", `${restored}`, `${copied}`], 0, "each compared"],
    upgrade: [["--data-dir", `${restored}`], 2, "no service runs"],
    openapi: [[], 0, '"openapi": "3.1.0"'],
  };
}
