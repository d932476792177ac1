// From `silenceNames` on every name that this process resolves is asked of a server that never answers, but for what the
// hosts file has (localhost). The gateway takes the system's servers, and nothing else can be said to it.
import { spawn } from "node:child_process";
import { promises } from "node:dns";
import { once } from "node:events";
import { syncBuiltinESMExports } from "node:module";
import { createInterface } from "node:readline";
import { fileURLToPath } from "node:url";
import { endingWithUs } from "./_ending.mjs";

/** Resolves with what gives the system's servers back. */
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
