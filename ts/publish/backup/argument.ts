// The custom argument by which a broadcaster says that it is the backup of a stream: `backup=1`, its name by setting. Like
// any other it is forwarded (W2); of which stream a publish is, it does not say.

/** Between two pairs: `&` and `;`, as form parsers have it. */
const SEPARATOR = /([&;])/;

/** What custom arguments say of a backup. */
export interface BackupArgument {
  readonly isBackup: boolean;
  /** The arguments without it; null when nothing is left. The very same bytes where it is not there. */
  readonly others: Uint8Array | null;
}

/** `name`: of the argument; "" for none, and then nothing is a backup. */
export function readBackupArgument(customArguments: Uint8Array | null, name: string): BackupArgument {
  if (customArguments === null || name === "") return { isBackup: false, others: customArguments };
  const pairs = Buffer.from(customArguments).toString("latin1").split(SEPARATOR);
  const said = `${name}=1`;
  // Pairs stand at the even places, and before each but the first its separator.
  const left = pairs.flatMap((pair, at) => (at % 2 === 1 || pair === said ? [] : [(pairs[at - 1] ?? "") + pair]));
  if (left.length * 2 === pairs.length + 1) return { isBackup: false, others: customArguments };
  const others = left.join("").replace(/^[&;]/, "");
  return { isBackup: true, others: others === "" ? null : Buffer.from(others, "latin1") };
}
