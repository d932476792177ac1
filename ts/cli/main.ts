// The command line: `headgate serve` and `headgate config`. Help and exit codes are a contract with operators.
import { cli, command } from "cleye";
import { readVersion } from "../config.ts";
import { exitCodeOf, ServiceError } from "../errors.ts";
import { checkConfig, printConfig } from "./config.ts";
import { settingFlags } from "./flags.ts";
import { runService } from "./serve.ts";
import { runWebhook, webhookFlags } from "./webhook.ts";

/** Runs one command line, without the program's own name. Exits the process with the documented codes. */
export async function run(argv: readonly string[]): Promise<void> {
  const flags = settingFlags();
  const serve = command({
    name: "serve",
    flags,
    strictFlags: true,
    help: { description: "Run the service (the default)" },
  });
  const config = command({
    name: "config",
    parameters: ["<check or print>"],
    flags,
    strictFlags: true,
    help: { description: "Check the configuration, or print it with the source of each value" },
  });
  const webhook = command({
    name: "webhook",
    parameters: ["<test, deliveries, replay or simulate>", "[id]"],
    flags: webhookFlags,
    strictFlags: true,
    help: { description: "Try the webhook, see what it was sent, send it again, or stand in for it" },
  });
  const words = argv.length === 0 || (argv[0]?.startsWith("-") && !isTopLevel(argv[0])) ? ["serve", ...argv] : argv;
  const parsed = cli(
    {
      name: "headgate",
      version: readVersion(),
      commands: [serve, config, webhook],
      strictFlags: true,
      help: { description: "Live ingest: RTMP in, the customer's webhook decides, RTMP out" },
    },
    undefined,
    [...words],
  );
  try {
    switch (parsed.command) {
      case "serve":
        await runService(parsed.flags);
        break;
      case "config":
        if (parsed._[0] === "check") checkConfig(parsed.flags);
        else if (parsed._[0] === "print") printConfig(parsed.flags);
        else fail(`config ${parsed._[0]} is not known: headgate config check, headgate config print`, 2);
        break;
      case "webhook":
        await runWebhook(parsed._, parsed.flags);
        break;
      case undefined:
        fail(`${words[0]} is not a command: see headgate --help`, 2);
    }
  } catch (error) {
    if (!(error instanceof ServiceError)) throw error;
    fail(error.message, exitCodeOf(error));
  }
}

const isTopLevel = (word: string) => ["--help", "-h", "--version"].includes(word);

function fail(message: string, code: number): void {
  for (const line of message.split("\n")) console.error(`headgate: ${line}`);
  process.exit(code);
}
