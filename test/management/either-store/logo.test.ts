// The logo of an organisation: what is taken, what is kept of it, how it is served, and that it goes again.
import { PNG } from "pngjs";
import { afterEach, beforeEach, expect, test } from "vitest";
import { readLogo } from "../../../ts/organisation/logo/logo-image.ts";
import { type Gateway, openGateway } from "../../support/gateway.ts";

let gateway: Gateway;

beforeEach(async () => {
  gateway = await openGateway();
});
afterEach(() => gateway.close());

/** A picture of one colour. */
function picture(width: number, height: number, options: object = {}): Buffer {
  const png = new PNG({ width, height });
  png.data.fill(0x80);
  return PNG.sync.write(png, options);
}

/** With a text chunk before the end, which is the last 12 bytes. */
function withText(png: Buffer, text: string): Buffer {
  const chunk = Buffer.from(`tEXtComment\0${text}`, "latin1");
  const length = Buffer.alloc(4);
  length.writeUInt32BE(chunk.length - 4);
  const crc = Buffer.alloc(4);
  let sum = ~0;
  for (const byte of chunk) {
    sum ^= byte;
    for (let bit = 0; bit < 8; bit += 1) sum = (sum >>> 1) ^ (sum & 1 ? 0xedb88320 : 0);
  }
  crc.writeUInt32BE(~sum >>> 0);
  return Buffer.concat([png.subarray(0, -12), length, chunk, crc, png.subarray(-12)]);
}

const put = (png: Buffer | string, key = gateway.keys.administrator) =>
  gateway.call("PUT", "/organisation/logo", {
    key,
    body: { png: typeof png === "string" ? png : png.toString("base64") },
  });

async function fetched(url: string) {
  return await gateway.app.request(`http://gateway.example${url}`);
}

test("a logo is encoded anew, served for ever under its hash, replaced, and removed", async () => {
  expect((await gateway.call("GET", "/organisation/logo")).body).toEqual({ logo: null });
  const given = withText(picture(40, 20), "secret comment");
  const set = await put(given);
  const logo = { width: 40, height: 20, url: expect.stringMatching(/^\/logo\/[\da-f]{64}\.png$/) as string };
  expect(set).toMatchObject({ status: 200, body: { logo } });
  expect((await gateway.call("GET", "/organisation/logo", { key: gateway.keys.readonly })).body).toEqual(set.body);
  const { url } = (set.body as { logo: { url: string } }).logo;
  const served = await fetched(url);
  const file = Buffer.from(await served.arrayBuffer());
  expect(PNG.sync.read(file)).toMatchObject({ width: 40, height: 20 });
  expect(file.includes("secret comment")).toBe(false);
  expect(Object.fromEntries(served.headers)).toMatchObject({
    "content-type": "image/png",
    "cache-control": "public, max-age=31536000, immutable",
    "content-security-policy": "default-src 'none'",
    "x-content-type-options": "nosniff",
  });
  const next = (await put(picture(10, 10))).body as { logo: { url: string } };
  expect((await fetched(url)).status).toBe(404);
  expect((await fetched(next.logo.url)).status).toBe(200);
  expect((await gateway.call("DELETE", "/organisation/logo")).body).toEqual({ logo: null });
  expect((await fetched(next.logo.url)).status).toBe(404);
  const audit = JSON.stringify((await gateway.call("GET", "/organisation/audit")).body);
  expect(audit).toContain("settings.logo_remove");
});

test("the broadcaster with a token gets the organisation's name and logo, and no other's", async () => {
  await put(picture(8, 8));
  const { keys } = await gateway.newOrganisation("Second");
  const branding = async (key: string) => {
    const { ingest } = (await gateway.call("POST", "/stream", { key, body: { title: "Show" } })).body as {
      ingest: { rtmp: { streamname: string } };
    };
    const body = { streamname: ingest.rtmp.streamname, ingesturl: "rtmp://ingest.example/live" };
    const made = (await gateway.call("POST", "/webcaster", { key, body })).body as { data: { token: string } };
    const { token } = made.data;
    return (await gateway.call("POST", "/webcaster/stream", { key: null, body: { token } })).body;
  };
  expect(await branding(gateway.keys.administrator)).toMatchObject({
    data: { title: "Show", organisation: "First", logo: expect.stringMatching(/^\/logo\//) },
  });
  expect(await branding(keys.administrator)).toMatchObject({ data: { organisation: "Second", logo: null } });
});

test("only who may change settings sets it, and a file of up to 100 kB arrives whole", async () => {
  expect(await put(picture(8, 8), gateway.keys.user)).toMatchObject({ status: 403 });
  const big = withText(picture(8, 8), "x".repeat(99_000));
  expect(await put(big)).toMatchObject({ status: 200 });
  expect(await put("A".repeat(140_000))).toMatchObject({ status: 413 });
});

const noise = () => {
  const png = new PNG({ width: 512, height: 512 });
  for (let at = 0; at < png.data.length; at += 1) png.data[at] = (at * 2_654_435_761) >>> (at % 24);
  return PNG.sync.write(png);
};

test.each([
  ["text", () => Buffer.from("<svg onload=alert(1)>"), "must be a PNG file"],
  ["a JPEG", () => Buffer.concat([Buffer.from("ffd8ffe0", "hex"), Buffer.alloc(60)]), "must be a PNG file"],
  ["nothing", () => Buffer.alloc(0), "must be a PNG file"],
  ["a picture that is too wide", () => picture(513, 1), "512 pixels"],
  ["one that claims to be huge", () => claiming(60_000), "512 pixels"],
  ["one that claims to have no width", () => claiming(0), "512 pixels"],
  ["an interlaced one", () => changed(28, 1), "interlaced"],
  ["one that ends early", () => picture(40, 40).subarray(0, 60), "valid PNG"],
  ["one with a wrong checksum", () => changed(30, 0xff), "valid PNG"],
  ["one of more than 100 kB", () => noise(), "100000 bytes"],
])("%s is refused", (_, make, reason) => {
  expect(() => readLogo(make())).toThrow(
    expect.objectContaining({ code: "invalid_value", parameter: "png", reason: expect.stringContaining(reason) }),
  );
});

function changed(at: number, byte: number): Buffer {
  const png = picture(8, 8);
  png[at] = byte;
  return png;
}

function claiming(width: number): Buffer {
  const png = picture(8, 8);
  png.writeUInt32BE(width, 16);
  return png;
}
