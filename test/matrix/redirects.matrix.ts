// Which programs follow a server's redirect, and in which form: `npm run matrix -- redirects [filter]`. The
// table in docs/cluster.md and the behaviour of a draining node depend on it: a cell that changes is red.
import { describe, expect, test } from "vitest";
import { until } from "../support/child.ts";
import { startHeadgate } from "../support/headgate.ts";
import { pause } from "../support/pause.ts";
import { type Form, forms, startRedirectingServer } from "../support/redirecting-server.ts";
import { conditions } from "./conditions.ts";
import { ffmpeg, type Publisher, publishers } from "./publishers.ts";
import { report } from "./report.ts";
import { source } from "./sources.ts";

/** How long a program may take to follow the redirect, ms: more than two GOPs. */
const FOLLOWED_WITHIN_MS = 8_000;
const SECONDS = 20;
const NOTHING = "goes nowhere";
const AGAIN = "comes again to the same server";
/** Programs that are known to follow; the others do not. */
const KNOWN: Readonly<Record<string, Partial<Record<Form, string>>>> = {
  "Headgate push": { "302 to connect": "follows", "302 to publish": "follows" },
  "nginx-rtmp push": { "302 to connect": AGAIN, "302 to publish": AGAIN },
};

/** Headgate with that server as its upstream: that it follows shows that the server's redirects are valid. */
const headgate: Pick<Publisher, "name" | "codecs" | "publish"> = {
  name: "Headgate push",
  codecs: "avc",
  async publish(url, media, offsetS, condition) {
    const service = await startHeadgate({ env: { HEADGATE_UPSTREAM_PUSH: url } });
    const feed = await ffmpeg.publish(`${service.rtmp}/${await service.newStream()}`, media, offsetS, condition);
    return {
      ...feed,
      async stop() {
        await feed.stop();
        await service.stop();
      },
    };
  },
};

for (const publisher of [...publishers, headgate]) {
  describe.concurrent(publisher.name, () => {
    for (const form of forms) {
      test(`${publisher.name}: ${form}`, { timeout: 180_000 }, async () => {
        const server = await startRedirectingServer(form);
        const [condition] = conditions;
        if (condition === undefined) throw new Error("there is no condition");
        const media = await source("plain", publisher.codecs, SECONDS);
        const program = await publisher.publish(`${server.rtmp}/cam`, media, 0, condition);
        try {
          await until("the redirect is sent", () => server.seen.said, 60_000);
          const before = server.seen.connections;
          await pause(FOLLOWED_WITHIN_MS); // that it follows nowhere cannot be awaited
          const again = server.seen.connections > before ? AGAIN : NOTHING;
          const said = server.followed() > 0 ? "follows" : again;
          const known = KNOWN[publisher.name]?.[form] ?? NOTHING;
          report({ row: publisher.name, column: form, verdict: said === known ? "passed" : "FAILED", said });
          expect(said).toBe(known);
        } finally {
          await program.stop();
          server.close();
        }
      });
    }
  });
}
