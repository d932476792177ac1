// Name resolution from the system's files: /etc/hosts and /etc/resolv.conf, read again when they change.
import { mkdtempSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { afterEach, beforeEach, expect, test } from "vitest";
import { createHostFiles } from "../../ts/publish/addresses/host-files.ts";

let folder: string;
let now = 0;
beforeEach(() => {
  folder = mkdtempSync(join(tmpdir(), "headgate-hosts-"));
});
afterEach(() => rmSync(folder, { recursive: true }));

function filesWith({ hosts = "", resolvConf = "" }) {
  const paths = { hosts: join(folder, "hosts"), resolvConf: join(folder, "resolv.conf") };
  writeFileSync(paths.hosts, hosts);
  writeFileSync(paths.resolvConf, resolvConf);
  return createHostFiles(() => now, paths);
}

test("the first six domains of the last search line are tried in order, before a name without dots and after one with a dot", async () => {
  const domains = Array.from({ length: 7 }, (_, at) => `d${at}.example`);
  const files = filesWith({ resolvConf: `search other.example\nsearch ${domains.join(" ")}. # ours\n` });
  const searched = domains.slice(0, 6).map((domain) => `customer.${domain}`);
  expect(await files.candidates("customer")).toEqual([...searched, "customer"]);
  expect(await files.candidates("www.customer.example")).toEqual([
    "www.customer.example",
    ...domains.slice(0, 6).map((domain) => `www.customer.example.${domain}`),
  ]);
  expect(await files.candidates("customer.")).toEqual(["customer"]);
});

test("with ndots a name with at least that many dots is tried unchanged first", async () => {
  const files = filesWith({ resolvConf: "search a.example\noptions ndots:2\n" });
  expect(await files.candidates("x.y")).toEqual(["x.y.a.example", "x.y"]);
  expect(await files.candidates("x.y.z")).toEqual(["x.y.z", "x.y.z.a.example"]);
});

test("names of the hosts file and localhost are resolved without a server", async () => {
  const files = filesWith({ hosts: "192.0.2.1 customer.example www # ours\n2001:db8::1 customer.example\n" });
  expect(await files.addresses("customer.example")).toEqual(["192.0.2.1", "2001:db8::1"]);
  expect(await files.addresses("www.")).toEqual(["192.0.2.1"]);
  expect(await files.addresses("a.localhost")).toEqual(["127.0.0.1", "::1"]);
  expect(await files.addresses("other.example")).toEqual([]);
});

test("a changed file is read again a second later, and not before, however many look-ups there are", async () => {
  const files = filesWith({ hosts: "192.0.2.1 customer.example\n" });
  const asked = () => Promise.all([1, 2].map(() => files.addresses("customer.example")));
  expect(await asked()).toEqual([["192.0.2.1"], ["192.0.2.1"]]);
  writeFileSync(join(folder, "hosts"), "192.0.2.22 customer.example\n");
  now += 999;
  expect(await asked()).toEqual([["192.0.2.1"], ["192.0.2.1"]]);
  now += 1;
  expect(await asked()).toEqual([["192.0.2.22"], ["192.0.2.22"]]);
});
