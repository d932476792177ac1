// /capture: records a publish to a file, for bug reports (docs/capture.md). Only for the operators of the deployment,
// for publishes of any organisation. Requests about publishes of another node are passed on
// (http/cluster/forwarding.ts).
import { createReadStream } from "node:fs";
import { Readable } from "node:stream";
import type { Kysely } from "kysely";
import { InvalidValue, UnknownRecord } from "../../errors.ts";
import { type Actor, recordChange } from "../../organisation/audit.ts";
import type { Capture, Captures, PlannedCapture } from "../../publish/capture/captures.ts";
import type { Publishing } from "../../publish/lifecycle.ts";
import type { Schema } from "../../store/schema.ts";
import { type Declarations, newRoutes, type RouteDeps, type Routes, z } from "../openapi.ts";
import { text } from "../request/schema.ts";

const CaptureRecord = z
  .object({
    id: z.string().openapi({ example: "b8a5f1f0-8d2c-4b6e-9d53-0a4d5f3f7a11" }),
    client_id: z
      .int()
      .nullable()
      .openapi({ description: "null while the capture waits for its publish", example: 100_482 }),
    stream: z.string().openapi({ description: "Id of the stream" }),
    media: z.boolean().openapi({ description: "false: audio and video are overwritten by zeros" }),
    state: z.enum(["waiting", "running", "ended"]),
    reason: z.string().nullable().openapi({ description: "Why it ended", example: "time_limit" }),
    bytes: z.int(),
    frames: z.int().openapi({ description: "Frames that the publish delivered during the capture" }),
    denied: z
      .object({ times: z.int(), cause: z.string(), client_id: z.int().nullable() })
      .nullable()
      .openapi({ description: "Publishes denied while the capture was waiting: how many, and the last one" }),
    path: z.string().openapi({ description: "Path of the file on the node that has the publish" }),
  })
  .openapi("Capture");

interface CaptureDeps extends RouteDeps {
  readonly db: Kysely<Schema>;
  readonly clock: { now(): number };
  readonly captures: Captures;
  readonly runningPublish: Publishing["find"];
}

export const CAPTURE_ROUTES = {
  "POST /capture": {
    about: "client",
    tag: "Deployment",
    summary: "Capture a publish to a file",
    description:
      "A running publish (`client_id`) from now on, or the next publish of a stream on this node (`stream`) from its first byte. " +
      "Keys, tokens and stream names are removed. The capture ends after `seconds`, at the limits `capture.max_s` and " +
      "`capture.max_mb`, with the publish, or by DELETE. Refused unless `capture.directory` is set.",
    body: z.object({
      client_id: z.int().min(1, "must be a client id").optional().openapi({ example: 100_482 }),
      stream: text().optional().openapi({ description: "Id of the stream" }),
      seconds: z.int().min(1, "must be 1 to 86400").max(86_400, "must be 1 to 86400").optional(),
      media: z.boolean().optional().openapi({ description: "false: audio and video are overwritten by zeros" }),
    }),
    bodyRequired: true,
    answer: CaptureRecord,
    errors: [404, 409],
  },
  "GET /capture/{id}": {
    about: "session",
    tag: "Deployment",
    summary: "State of a capture",
    answer: CaptureRecord,
    errors: [404],
  },
  "GET /capture/{id}/file": {
    about: "session",
    long: true,
    tag: "Deployment",
    summary: "The file of a capture that has ended",
    description: "In the format described in docs/capture.md. 404 while the capture is running.",
    answer: null,
    answerType: "application/octet-stream",
    errors: [404],
  },
  "DELETE /capture/{id}": {
    about: "session",
    tag: "Deployment",
    summary: "End a capture",
    description: "Its file is complete a moment later and is kept.",
    answer: CaptureRecord,
    errors: [404],
  },
} satisfies Declarations;

export function captureRoutes(deps: CaptureDeps): Routes["hono"] {
  const { db, clock, captures, runningPublish } = deps;
  const routes = newRoutes(deps, CAPTURE_ROUTES);

  routes.guarded(
    "POST /capture",
    async (c, caller, { body: { client_id: clientId = null, stream = null, seconds = null, media = true } }) => {
      if ((clientId === null) === (stream === null)) {
        throw new InvalidValue("client_id", "or stream must be given, but not both");
      }
      const streamId = clientId === null ? await streamOf(stream ?? "") : runningPublish(clientId)?.intent.streamId;
      if (streamId === undefined) throw new UnknownRecord("session");
      const wanted = { clientId, streamId, seconds, media };
      const begun = await captures.begin(wanted, (one) => record(caller, "capture.start", one));
      if (begun === null) throw new UnknownRecord("session");
      return c.json(recordOf(begun));
    },
  );

  routes.guarded("GET /capture/{id}", async (c) => c.json(recordOf(find(c.req.param("id")))));

  routes.guarded("GET /capture/{id}/file", async (c) => {
    const { state, path, bytes } = find(c.req.param("id"));
    if (state !== "ended" || bytes === 0) throw new UnknownRecord("session");
    const headers = { "content-type": "application/octet-stream", "cache-control": "no-store" };
    if (c.req.method === "HEAD") return c.body(null, 200, headers);
    return c.body(Readable.toWeb(createReadStream(path)) as ReadableStream<Uint8Array>, 200, headers);
  });

  routes.guarded("DELETE /capture/{id}", async (c, caller) => {
    const one = find(c.req.param("id"));
    await record(caller, "capture.stop", one);
    return c.json(recordOf(captures.stop(one.id) ?? one));
  });

  return routes.hono;

  function find(id: string): Capture {
    const one = captures.find(id);
    if (one === null) throw new UnknownRecord("session");
    return one;
  }

  async function streamOf(id: string): Promise<string | undefined> {
    const found = db.selectFrom("stream").select("id").where("id", "=", id).where("state", "!=", "deleted");
    return (await found.executeTakeFirst())?.id;
  }

  async function record(
    caller: Actor,
    action: string,
    { id, clientId, streamId, media }: PlannedCapture,
  ): Promise<void> {
    const detail = { capture: id, client_id: clientId, media };
    await recordChange(db, caller, clock.now(), { action, subject: streamId, detail });
  }
}

function recordOf(one: Capture): z.infer<typeof CaptureRecord> {
  const { id, clientId, streamId, media, state, reason, bytes, frames, path } = one;
  const denied = one.denied && { ...one.denied, client_id: one.denied.clientId };
  return { id, client_id: clientId, stream: streamId, media, state, reason, bytes, frames, denied, path };
}
