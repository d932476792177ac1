// A Node without the known security fixes: the log's first line and doctor warn, and everything goes on working.
import { readFileSync } from "node:fs";
import { expect, test } from "vitest";
import { nodeVersion } from "../../ts/cli/doctor/installation.ts";
import { insecureNode } from "../../ts/cli/node-version.ts";
import { startHeadgate } from "../support/headgate.ts";

const versions = (node: string, more: object = {}) => ({ ...process.versions, node, ...more });

test.each([
  ["20.19.0", "is past its end of life"],
  ["20.99.0", "is past its end of life"],
  ["21.7.3", "is past its end of life"],
  ["22.23.3", "lacks the security fixes of 22.23.4"],
  ["22.9.9", "lacks the security fixes of 22.23.4"],
  ["23.11.1", "is past its end of life"],
  ["24.22.0", "lacks the security fixes of 24.22.1"],
  ["25.9.0", "is past its end of life"],
  ["26.12.0", "lacks the security fixes of 26.12.1"],
])("Node %s %s", (node, words) => {
  expect(insecureNode(versions(node))).toContain(`Node ${node} ${words}`);
  expect(nodeVersion(versions(node))).toMatchObject([
    {
      what: "Node",
      state: "warning",
      detail: expect.stringContaining(words),
      remedy: expect.stringContaining("24.22.1"),
    },
  ]);
});

test.each(["22.23.4", "22.24.0", "24.22.1", "24.23.0", "26.12.1", "27.0.0", "28.1.0"])("Node %s is good", (node) => {
  expect(insecureNode(versions(node))).toBeNull();
  expect(nodeVersion(versions(node))).toEqual([{ what: "Node", state: "good", detail: node }]);
});

test("the Node that Deno and Bun imitate says nothing", () => {
  expect(insecureNode(versions("20.11.1", { deno: "2.9.6" }))).toBeNull();
  expect(nodeVersion(versions("22.6.0", { bun: "1.4.5" }))).toEqual([]);
});

test("the first line of the service's log says so, if it is so", async () => {
  const headgate = await startHeadgate();
  const [first = ""] = headgate.process.stderr().split("\n");
  await headgate.stop();
  const insecure = insecureNode(process.versions);
  if (insecure === null) expect(first).not.toContain("security fixes");
  else
    expect(JSON.parse(first)).toMatchObject({
      level: 40,
      msg: expect.stringContaining(`${insecure}: use Node 24.22.1`),
    });
}, 60_000);

test("the container image is based on Node 24", () => {
  expect(readFileSync("deploy/container/Containerfile", "utf8")).toContain("ARG NODE_IMAGE=node:24-");
});
