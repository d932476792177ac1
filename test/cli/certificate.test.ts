// Faults in the certificate files of HTTPS and RTMPS are explained before anything starts, by `serve`,
// `config check` and `doctor`; and so is a service whose certificate a command does not trust.
import { generateKeyPairSync } from "node:crypto";
import { existsSync, mkdtempSync, rmSync, writeFileSync } from "node:fs";
import { createServer, type Server } from "node:https";
import type { AddressInfo } from "node:net";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { afterAll, beforeAll, describe, expect, test } from "vitest";
import { type CertificateFiles, inspectCertificates, readCertificate } from "../../ts/certificate.ts";
import { selfSigned } from "../../ts/cli/webhook/self-signed.ts";
import { command, commandInProcess } from "../support/command.ts";
import { testCertificates } from "../support/customer.ts";

const DAY_MS = 86_400_000;
const folder = mkdtempSync(join(tmpdir(), "headgate-certificate-"));
const { cert, key, ca } = testCertificates();
const now = Date.now();

function file(name: string, text: string): string {
  writeFileSync(join(folder, name), text);
  return join(folder, name);
}

const good = { certFile: file("cert.pem", cert), keyFile: file("key.pem", key) };
const other = file("other.key", selfSigned(now, 1).key);
const sealed = generateKeyPairSync("ec", {
  namedCurve: "P-256",
  publicKeyEncoding: { type: "spki", format: "pem" },
  privateKeyEncoding: { type: "pkcs8", format: "pem", cipher: "aes-256-cbc", passphrase: "word" },
}).privateKey;
const lost = selfSigned(now - 40 * DAY_MS, 30);
const expired = { certFile: file("expired.pem", lost.cert), keyFile: file("expired.key", lost.key) };

afterAll(() => rmSync(folder, { recursive: true, force: true }));

function faultsOf(files: Partial<CertificateFiles>): readonly string[] {
  const tls = { section: "http", ...good, ...files } as const;
  const [report] = inspectCertificates({ http: { tls }, rtmp: { tls } }, now);
  const faults = report?.faults ?? [];
  if (faults.length > 0) expect(() => readCertificate(tls)).toThrow(faults.join("\n"));
  return faults.map((fault) => fault.replaceAll(folder, "…"));
}

test("files that belong together are accepted unchanged", () => {
  expect(faultsOf({})).toEqual([]);
  expect(readCertificate({ section: "http", ...good })).toEqual({ cert, key });
  expect(faultsOf({ certFile: file("chain.pem", cert + ca) })).toEqual([]);
});

test.each<[what: string, files: Partial<CertificateFiles>, faults: readonly string[]]>([
  [
    "of which neither is there",
    { certFile: join(folder, "no.pem"), keyFile: join(folder, "no.key") },
    [
      "http.tls_cert: cannot read …/no.pem: there is no such file",
      "http.tls_key: cannot read …/no.key: there is no such file",
    ],
  ],
  ["that are folders", { certFile: folder }, ["http.tls_cert: cannot read …: it is a folder"]],
  [
    "that are no PEM",
    { certFile: file("der", "0\u0082"), keyFile: file("text", "key") },
    ["http.tls_cert: …/der holds no PEM certificate", "http.tls_key: …/text holds no PEM private key"],
  ],
  [
    "that are swapped",
    { certFile: good.keyFile, keyFile: good.certFile },
    [
      "http.tls_cert: …/key.pem holds no PEM certificate, but a private key",
      "http.tls_key: …/cert.pem holds no PEM private key, but a certificate",
    ],
  ],
  [
    "that do not belong together",
    { keyFile: other },
    [
      "http.tls_cert and http.tls_key do not belong together: the key in …/other.key is not that of the certificate in …/cert.pem",
    ],
  ],
  [
    "of a chain in the wrong order",
    { certFile: file("turned.pem", ca + cert) },
    ["http.tls_cert: in …/turned.pem the certificate of the key must come first, before its authorities"],
  ],
  [
    "with a passphrase",
    { keyFile: file("sealed.key", sealed) },
    ["http.tls_key: the key in …/sealed.key has a passphrase; store the key without one"],
  ],
])("files %s are explained", (_, files, faults) => {
  expect(faultsOf(files)).toEqual(faults);
});

test("a broken certificate in the file is reported by its position", () => {
  const broken = cert.replace(/\n.{40}/, "\n");
  expect(faultsOf({ certFile: file("broken.pem", broken) })).toEqual([
    expect.stringMatching(/^http\.tls_cert: certificate 1 in …\/broken\.pem cannot be read: /),
  ]);
});

test("an expired certificate, or one that is not valid yet, is a warning", () => {
  const tls = { section: "rtmp", ...expired } as const;
  const at = (ms: number) => inspectCertificates({ http: { tls: null }, rtmp: { tls } }, ms);
  expect(at(now)).toMatchObject([{ faults: [], warnings: [expect.stringContaining("has expired (")] }]);
  expect(at(now - 50 * DAY_MS)).toMatchObject([
    { faults: [], warnings: [expect.stringContaining("is not valid before")] },
  ]);
  expect(at(now - 20 * DAY_MS)).toMatchObject([{ faults: [], warnings: [] }]);
});

const headgate = (words: readonly string[], env: Readonly<Record<string, string>>) => {
  const own = { PATH: process.env.PATH, HEADGATE_DATA_DIR: join(folder, "data"), HEADGATE_MEDIA_PORT: "0" };
  // What starts the service runs on when it does not refuse to.
  return (words[0] === "serve" ? commandInProcess : command)(words, { ...own, ...env });
};

const named = (files: Omit<CertificateFiles, "section">) => {
  return { HEADGATE_HTTP_TLS_CERT: files.certFile, HEADGATE_HTTP_TLS_KEY: files.keyFile };
};

test.each([["serve"], ["config", "check"]])(
  "headgate %s %s exits with 2 and creates nothing",
  async (...words) => {
    const { code, err } = await headgate(words, named({ ...good, keyFile: other }));
    expect([code, err]).toEqual([2, expect.stringContaining("headgate: http.tls_cert and http.tls_key do not belong")]);
    expect(err).not.toContain("    at ");
    expect(existsSync(join(folder, "data"))).toBe(false);
  },
  60_000,
);

test("config check and doctor warn of an expired certificate, and doctor finds one that cannot be used", async () => {
  const checked = await headgate(["config", "check"], named(expired));
  expect([checked.code, checked.out]).toEqual([0, expect.stringMatching(/^Warning: http\.tls_cert: .* has expired/)]);
  const looked = await headgate(["doctor"], named(expired));
  expect(looked.out).toMatch(/^warn certificate .*expired\.pem: .* has expired/m);
  const bad = await headgate(["doctor"], named({ ...good, keyFile: other }));
  expect([bad.code, bad.out]).toEqual([1, expect.stringMatching(/^BAD {2}certificate .* do not belong together/m)]);
}, 60_000);

describe("a command that calls a service over HTTPS", () => {
  let server: Server;
  let port: number;

  beforeAll(async () => {
    server = createServer({ cert, key }, (_, response) => response.end("[]"));
    await new Promise<void>((resolve) => server.listen(0, "127.0.0.1", resolve));
    port = (server.address() as AddressInfo).port;
  });
  afterAll(() => {
    server.close();
  });

  const asked = (words: readonly string[], env: Readonly<Record<string, string>> = {}) =>
    headgate(["sessions", "ls", "--json", ...words], { HEADGATE_API_KEY: "key", ...env });
  const there = () => ["--url", `https://localhost:${port}`];

  test("reports that the service's certificate is not trusted, with a remedy, and exits with 2", async () => {
    const { code, err } = await asked(there());
    expect([code, err]).toEqual([
      2,
      expect.stringMatching(/^headgate: the certificate of localhost:\d+ is not trusted/),
    ]);
    expect(err).toContain("--ca FILE or HEADGATE_CA");
  }, 60_000);

  test("trusts the authority that it is given", async () => {
    const authority = file("ca.pem", ca);
    expect(await asked([...there(), "--ca", authority])).toMatchObject({ code: 0, err: "", out: "[]\n" });
    expect(await asked(there(), { HEADGATE_CA: authority })).toMatchObject({ code: 0, err: "", out: "[]\n" });
    const wrong = await asked([...there(), "--ca", good.keyFile]);
    expect([wrong.code, wrong.err]).toEqual([2, expect.stringContaining("--ca: ")]);
  }, 60_000);

  test("reports which name the certificate is for when that is another one", async () => {
    const named = selfSigned(now, 1);
    const elsewhere = createServer(named, (_, response) => response.end("[]"));
    await new Promise<void>((resolve) => elsewhere.listen(0, "0.0.0.0", resolve));
    const url = `https://127.0.0.2:${(elsewhere.address() as AddressInfo).port}`;
    const { code, err } = await asked(["--url", url], { HEADGATE_CA: file("named.pem", named.cert) });
    elsewhere.close();
    expect([code, err]).toEqual([2, expect.stringMatching(/is for DNS:localhost.*, not for 127\.0\.0\.2: use --url/)]);
  }, 60_000);

  test("reports that HTTP and HTTPS were confused", async () => {
    const plain = await asked(["--url", `http://localhost:${port}`]);
    expect([plain.code, plain.err]).toEqual([1, expect.stringContaining("is it https:// there?")]);
  }, 60_000);
});
