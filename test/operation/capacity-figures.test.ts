// Figures of this process from the system: descriptors, its memory and that of its control groups, the event
// loop's delay.
import { mkdirSync, mkdtempSync, openSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { expect, onTestFinished, test } from "vitest";
import { descriptorLimitOf, memoryGroups, openFigures, usageOf } from "../../ts/capacity/figures.ts";
import { until } from "../support/child.ts";

function tree(files: Readonly<Record<string, string>>): string {
  const root = mkdtempSync(join(tmpdir(), "headgate-cgroup-"));
  onTestFinished(() => rmSync(root, { recursive: true, force: true }));
  for (const [path, text] of Object.entries(files)) {
    mkdirSync(join(root, path, ".."), { recursive: true });
    writeFileSync(join(root, path), text);
  }
  return root;
}

test("memory, heap and descriptors of this process are within their limits, and opening a descriptor counts one more", () => {
  const figures = openFigures({ memoryMb: 4_000 });
  onTestFinished(() => figures.stop());
  const { memory, heap, descriptors, loopLateMs } = figures.read();
  for (const usage of [memory, heap]) {
    expect(usage?.used).toBeGreaterThan(1e6);
    expect(usage?.used).toBeLessThan(usage?.limit ?? 0);
  }
  expect(loopLateMs).toBeGreaterThanOrEqual(0);
  const before = descriptors?.used ?? 0;
  for (let more = 0; more < 5; more += 1) openSync("/dev/null", "r");
  const after = figures.read().descriptors;
  // 0 before Linux 6.2.
  if (before > 0) expect(after?.used).toBeGreaterThanOrEqual(before + 5);
  expect(after?.limit).toBeGreaterThan(after?.used ?? 0);
});

test("a blocked event loop is reported as late", async () => {
  const figures = openFigures({ memoryMb: 0 });
  onTestFinished(() => figures.stop());
  await until("it is late", async () => {
    for (const blocked = performance.now(); performance.now() < blocked + 100; );
    for (let turn = 0; turn < 5; turn += 1) await new Promise((resolve) => setTimeout(resolve, 0));
    return figures.read().loopLateMs > 20;
  });
});

test("the limit of descriptors is the soft one, and unknown when nothing states it", () => {
  expect(
    descriptorLimitOf("Limit  Soft\nMax open files            256                  1024                 files\n"),
  ).toBe(256);
  expect(descriptorLimitOf("Max open files            unlimited            unlimited            files\n")).toBeNull();
  expect(descriptorLimitOf("")).toBeNull();
});

test("the control groups that may limit the process's memory are found in both versions, its own and their ancestors", () => {
  const two = tree({
    "a/memory.max": "max\n",
    "a/memory.current": "1\n",
    "a/memory.stat": "anon 1\n",
    "a/b/memory.max": "300000000\n",
    "a/b/memory.current": "200000000\n",
    "a/b/memory.stat": "anon 150000000\ninactive_file 50000000\n",
  });
  const limited = (groups: ReturnType<typeof memoryGroups>) => groups.map((group) => usageOf(group));
  expect(limited(memoryGroups("0::/a/b\n", two))).toEqual([{ used: 150e6, limit: 300e6 }, null]);
  const one = tree({
    "memory/memory.limit_in_bytes": "9223372036854771712\n",
    "memory/memory.usage_in_bytes": "5\n",
    "memory/memory.stat": "total_inactive_file 1\n",
    "memory/c/memory.limit_in_bytes": "300000000\n",
    "memory/c/memory.usage_in_bytes": "5\n",
    "memory/c/memory.stat": "total_inactive_file 1\n",
  });
  expect(limited(memoryGroups("5:memory:/c\n4:cpu:/c\n0::/\n", one))).toEqual([{ used: 4, limit: 300e6 }, null]);
  expect(memoryGroups("", one)).toEqual([]);
});
