// The custom argument that makes a publish the backup of its stream, and the arguments that remain without
// it.
import { expect, test } from "vitest";
import { readBackupArgument } from "../../ts/publish/backup/argument.ts";

const read = (given: string | null, name = "backup") => {
  const { isBackup, others } = readBackupArgument(given === null ? null : Buffer.from(given, "latin1"), name);
  return [isBackup, others === null ? null : Buffer.from(others).toString("latin1")];
};

test.each([
  ["backup=1", null],
  ["backup=1&pass=a%26b", "pass=a%26b"],
  ["pass=1&backup=1", "pass=1"],
  ["pass=1;backup=1&camera=2", "pass=1&camera=2"],
  ["backup=1&backup=1", null],
  ["\xff=\xfe&backup=1", "\xff=\xfe"],
])("%s is a backup with the remaining arguments %s", (given, others) => {
  expect(read(given)).toEqual([true, others]);
});

test.each([null, "", "pass=1", "backup=0", "backup", "backup=10", "Backup=1", "xbackup=1", "pass=backup=1"])(
  "%s is not a backup, and remains unchanged",
  (given) => {
    expect(read(given)).toEqual([false, given]);
  },
);

test("the setting names the argument, and an empty name disables it", () => {
  expect(read("spare=1", "spare")).toEqual([true, null]);
  expect(read("backup=1", "spare")).toEqual([false, "backup=1"]);
  expect(read("backup=1&=1", "")).toEqual([false, "backup=1&=1"]);
});
