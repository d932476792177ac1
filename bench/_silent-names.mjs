// After `silenceNames` every name that this process resolves is looked up at a server that never answers, except those
// in the hosts file (localhost). The gateway uses the system's name servers and cannot be configured otherwise.
import { spawn } from "node:child_process";
import { promises } from "node:dns";
import { once } from "node:events";
import { syncBuiltinESMExports } from "node:module";
import { createInterface } from "node:readline";
import { fileURLToPath } from "node:url";
import { endingWithUs } from "./_ending.mjs";

/** Resolves with a function that restores the system's servers. */
export async function silenceNames() {
  const file = fileURLToPath(new URL("./_silent-name-server.mjs", import.meta.url));
  const child = endingWithUs(spawn(process.execPath, [file], { stdio: ["ignore", "pipe", "inherit"] }));
  const [address] = await once(createInterface(child.stdout), "line");
  const { Resolver } = promises;
  promises.Resolver = class extends Resolver {
    constructor(options) {
      super(options);
      this.setServers([address]);
    }
  };
  syncBuiltinESMExports();
  return () => {
    promises.Resolver = Resolver;
    syncBuiltinESMExports();
    child.kill("SIGKILL");
  };
}
