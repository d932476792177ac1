// The one place where a refusal of a publish or a play is noted, whatever refused it: counted, logged and recorded.
// Returns immediately and never throws: nobody waits for it.
import type { Kysely } from "kysely";
import type { Logger } from "pino";
import type { Metrics } from "../../metrics.ts";
import { withoutMapping } from "../../network.ts";
import type { Schema } from "../../store/schema.ts";
import type { DenialContext } from "../denials.ts";
import { createLogLines } from "./log-lines.ts";
import type { PendingRefusal, RefusalKind } from "./pending.ts";
import { createRefusalRecords } from "./refusal-records.ts";
import { nameHash, nameText, nameWithoutArguments, plainText } from "./sent-name.ts";
import { createStreamLookUps } from "./stream-look-up.ts";

/** Log lines for one reason in a minute; the rest are summed up in one line. */
const LINES_LIMIT = 120;
/** The same for reasons that a crowd is refused for, and peers repeat by themselves. */
const CROWD_LINES_LIMIT = 10;
/** Longest text kept of what a peer was told, characters. */
const DETAIL_LIMIT = 200;
const OF_CROWDS: ReadonlySet<string> = new Set(["publish full", "play full", "play not_live", "play too_many_names"]);

export interface Refusal extends Pick<RefusalKind, "request" | "protocol" | "reason"> {
  /** The stream name as sent, with or without arguments; null when there was none. */
  readonly name: Uint8Array | null;
  /** IP address. */
  readonly address: string;
  /** What the peer is told; null when it is only the reason. */
  readonly description: string | null;
  /** What is known of the request: the organisation and the stream above all. */
  readonly about?: DenialContext;
  /** Further fields of the log line. */
  readonly inLog?: object;
  /** Whether the publish has a row of its own, as denied by the customer; never rejects. */
  readonly isRecorded?: boolean | Promise<boolean>;
  /** Whether it has been counted and logged elsewhere. */
  readonly isCounted?: boolean;
}

/** A publish request that is refused. */
export interface RefusedPublish extends Pick<Refusal, "name" | "address" | "protocol"> {
  /** Whether another node may take it: the caller then notes the refusal of a node without room, once none does. */
  readonly mayMove?: boolean;
}

export interface Refusals {
  note(refusal: Refusal): void;
  /** Writes what waits. Rejects when the store fails. */
  flush(): Promise<void>;
  stop(): Promise<void>;
}

export function createRefusals(deps: {
  readonly db: Kysely<Schema>;
  readonly reads: Kysely<Schema>;
  /** Epoch ms. */
  readonly clock: { now(): number };
  readonly log: Logger;
  readonly metrics: Pick<Metrics, "countRefusal">;
}): Refusals {
  const { clock, log, metrics } = deps;
  const lines = createLogLines(clock, LINES_LIMIT);
  const crowdLines = createLogLines(clock, CROWD_LINES_LIMIT);
  const records = createRefusalRecords(deps);
  /** Until it is known whether refused publishes have rows of their own. */
  const undecided = new Set<Promise<void>>();
  const lookUps = createStreamLookUps(deps.reads);

  /** One line with the stream, which may have to be looked up, and the hash of the name. */
  async function writeLine(refusal: Refusal, name: Uint8Array | null): Promise<void> {
    const { request, protocol, reason, address, about, inLog } = refusal;
    const isKnown = about?.stream !== undefined || name === null;
    const known = isKnown ? null : await lookUps.find(nameText(name));
    const hash = name === null ? {} : { nameHash: nameHash(name) };
    const what = request === "publish" ? "publish denied" : "player denied";
    log.info({ cause: reason, ...about, ...known, ...inLog, ...hash, protocol, address }, what);
  }

  function writeLines(refusal: Refusal, name: Uint8Array | null): void {
    const { request, reason } = refusal;
    const kind = `${request} ${reason}`;
    (OF_CROWDS.has(kind) ? crowdLines : lines).line(
      kind,
      () => void writeLine(refusal, name),
      (omitted) =>
        log.warn({ request, cause: reason, omitted }, "more requests were refused than are logged one by one"),
    );
  }

  async function settled(): Promise<void> {
    await Promise.all([lookUps.settled(), ...undecided]);
  }

  return {
    note(refusal) {
      const { request, protocol, reason, description, about = {} } = refusal;
      const sent = refusal.name === null ? null : nameWithoutArguments(refusal.name);
      const name = sent === null || sent.length === 0 ? null : sent;
      if (!refusal.isCounted) {
        metrics.countRefusal(request, reason);
        writeLines(refusal, name);
      }
      const { isRecorded = false } = refusal;
      if (isRecorded === true) return;
      const { organisation = null, stream = null } = about;
      const now = clock.now();
      const pending: PendingRefusal = {
        request,
        protocol,
        reason,
        organisation,
        stream,
        name: stream === null && name !== null ? nameText(name) : null,
        address: withoutMapping(refusal.address),
        detail: description === null ? null : plainText(description, DETAIL_LIMIT),
        count: 1,
        firstAt: now,
        lastAt: now,
      };
      if (isRecorded === false) return records.add(pending);
      const decided: Promise<void> = isRecorded.then((isIt) => {
        undecided.delete(decided);
        if (!isIt) records.add(pending);
      });
      undecided.add(decided);
    },
    async flush() {
      await settled();
      await records.flush();
    },
    async stop() {
      await settled();
      await records.stop();
    },
  };
}
