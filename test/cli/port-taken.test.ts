// Which setting is named when another program uses a port of the media core. The core reports a code, since
// several settings may have the same number on different addresses.

import { mkdtempSync, rmSync, writeFileSync } from "node:fs";
import { createServer, type Server } from "node:net";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { afterAll, beforeAll, describe, expect, test } from "vitest";
import { loadConfig } from "../../ts/config.ts";
import { PortTaken } from "../../ts/errors.ts";
import { openMedia } from "../../ts/media/open.ts";
import { testCertificates } from "../support/customer.ts";

let other: Server;
let taken: string;
let folder: string;

beforeAll(async () => {
  folder = mkdtempSync(join(tmpdir(), "headgate-ports-"));
  const { cert, key } = testCertificates();
  writeFileSync(join(folder, "cert.pem"), cert);
  writeFileSync(join(folder, "key.pem"), key);
  other = createServer();
  await new Promise<void>((resolve) => other.listen(0, "127.0.0.1", resolve));
  const address = other.address();
  taken = String(typeof address === "object" ? address?.port : address);
});
afterAll(() => {
  other.close();
  rmSync(folder, { recursive: true, force: true });
});

async function startOn(settings: Readonly<Record<string, string>>): Promise<unknown> {
  const env = {
    HEADGATE_DATA_DIR: folder,
    HEADGATE_RTMP_HOST: "127.0.0.1",
    HEADGATE_RTMP_PORT: "0",
    HEADGATE_MEDIA_HOST: "127.0.0.1",
    HEADGATE_MEDIA_PORT: "0",
    HEADGATE_MEDIA_WORKERS: "1",
    ...settings,
  };
  const media = await openMedia(
    loadConfig({ env }).config,
    () => {},
    () => {},
  ).catch((error: unknown) => error);
  if (!(media instanceof Error)) await (media as { stop(): Promise<void> }).stop();
  return media;
}

describe("a start on a port in use names", () => {
  test("rtmp.port", async () => {
    const error = await startOn({ HEADGATE_RTMP_PORT: taken });
    expect(error).toBeInstanceOf(PortTaken);
    expect(error).toHaveProperty("message", expect.stringContaining(`127.0.0.1:${taken} (rtmp.port): it is in use`));
  });

  test("rtmp.tls_port", async () => {
    const error = await startOn({
      HEADGATE_RTMP_TLS_PORT: taken,
      HEADGATE_RTMP_TLS_CERT: join(folder, "cert.pem"),
      HEADGATE_RTMP_TLS_KEY: join(folder, "key.pem"),
    });
    expect(error).toBeInstanceOf(PortTaken);
    expect(error).toHaveProperty("message", expect.stringContaining(`127.0.0.1:${taken} (rtmp.tls_port)`));
  });

  test("media.port, also when RTMP has the same number on another address", async () => {
    const error = await startOn({
      HEADGATE_RTMP_HOST: "127.0.0.2",
      HEADGATE_RTMP_PORT: taken,
      HEADGATE_MEDIA_PORT: taken,
    });
    expect(error).toBeInstanceOf(PortTaken);
    expect(error).toHaveProperty("message", expect.stringContaining("127.0.0.1, UDP and TCP (media.port)"));
  });
});
