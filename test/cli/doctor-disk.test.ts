// `headgate doctor` about the disk of the data directory: one that is full is a fault, not a warning.
import { describe, expect, test } from "vitest";
import { diskSpace } from "../../ts/cli/doctor/machine.ts";

describe("a disk", () => {
  const MIB = 1_048_576;
  const free = (bytes: number, ffree = 1_000) => ({ bavail: bytes / 4_096, bsize: 4_096, files: 2_000, ffree });
  const at = (databaseUrl: string | null) => ({ dataDir: "/data", databaseUrl });

  test.each([
    ["without space is bad", null, free(0), "bad", /^the disk is full: 0 MB free$/],
    ["with less space than the store needs is bad", null, free(3 * MIB), "bad", /^the disk is full: 3 MB free$/],
    ["without room for another file is bad", null, free(9_000 * MIB, 0), "bad", /no further file/],
    ["that is full is a warning where the store is elsewhere", "postgres://db/x", free(0), "warning", /full/],
    ["that is nearly full is a warning", null, free(100 * MIB), "warning", /^105 MB free$/],
    ["with space is good", null, free(900 * MIB), "good", /^944 MB free$/],
    ["that does not count files is good", null, { ...free(900 * MIB, 0), files: 0 }, "good", /^944 MB free$/],
  ] as const)("%s", (_, databaseUrl, disk, state, detail) => {
    expect(diskSpace(at(databaseUrl), disk)).toMatchObject({ state, detail: expect.stringMatching(detail) });
  });
});
