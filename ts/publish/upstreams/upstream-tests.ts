// Tests of upstreams before a broadcast: the media core connects as a push does and publishes a test picture and silence
// for two seconds. Which upstream may be tested is decided by the caller.
import type { Logger } from "pino";
import { TooManyRequests, WrongUpstreamState } from "../../errors.ts";
import type { UpstreamTested } from "../../media/events.ts";
import type { Media } from "../../media.ts";
import type { ClientIds } from "../client-ids.ts";
import { coreUpstream, type StoredUpstream } from "./deployment-upstreams.ts";
import { shownUpstream } from "./upstream-url.ts";

/** Tests of one organisation at a time. */
const RUNNING_LIMIT = 4;
/** How many at a time of all organisations: each is a connection. */
const NODE_LIMIT = 64;
/** After this long without a result a test has failed, ms; the core takes 14 s at most. */
export const TEST_LIMIT_MS = 15_000;

export type UpstreamTest = Pick<UpstreamTested, "steps" | "cause" | "detail">;

export interface UpstreamTests {
  /** Resolves within `TEST_LIMIT_MS`. Rejects with `TooManyRequests`, or with `WrongUpstreamState` while the upstream is
   *  being tested. */
  run(organisationId: string, upstream: StoredUpstream): Promise<UpstreamTest>;
  /** The organisation whose upstream is tested under an id; null for no test. */
  testedBy(clientId: number): string | null;
  note(event: UpstreamTested): void;
}

interface Running {
  readonly organisationId: string;
  readonly upstreamId: string;
  /** Null until it has begun. */
  settle: ((result: UpstreamTest) => void) | null;
}

export function createUpstreamTests(deps: {
  readonly ids: ClientIds;
  readonly media: () => Pick<Media, "testUpstream">;
  readonly log: Logger;
}): UpstreamTests {
  const { ids, media, log } = deps;
  const running = new Map<number, Running>();

  return {
    async run(organisationId, upstream) {
      const clientId = await ids.next();
      const all = [...running.values()];
      if (all.some(({ upstreamId }) => upstreamId === upstream.id))
        throw new WrongUpstreamState("The upstream is being tested");
      const own = all.filter((test) => test.organisationId === organisationId);
      if (own.length >= RUNNING_LIMIT || all.length >= NODE_LIMIT) throw new TooManyRequests(TEST_LIMIT_MS / 1_000);
      const test: Running = { organisationId, upstreamId: upstream.id, settle: null };
      running.set(clientId, test);
      try {
        const result = await resultOf(clientId, test, upstream);
        const { cause, detail } = result;
        const about = { organisationId, upstreamId: upstream.id, upstream: shownUpstream(upstream.url) };
        log.info({ ...about, cause, detail }, "upstream tested");
        return result;
      } finally {
        running.delete(clientId);
      }
    },
    testedBy: (clientId) => running.get(clientId)?.organisationId ?? null,
    note({ clientId, ...result }) {
      running.get(clientId)?.settle?.(result);
    },
  };

  function resultOf(clientId: number, test: Running, upstream: StoredUpstream): Promise<UpstreamTest> {
    return new Promise((resolve) => {
      const late = () => resolve({ steps: [], cause: "timed_out", detail: "the test did not end in time" });
      const timer = setTimeout(late, TEST_LIMIT_MS);
      test.settle = (result) => {
        clearTimeout(timer);
        resolve(result);
      };
      media().testUpstream(clientId, coreUpstream({ ...upstream, paused: false }));
    });
  }
}
