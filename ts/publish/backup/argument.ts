// The custom argument by which a broadcaster marks a publish as the backup of a stream: `backup=1`; its name is a
// setting. Like every argument it is forwarded (W2). It does not say which stream the publish belongs to.

/** Separates two pairs: `&` or `;`, as form parsers accept. */
const SEPARATOR = /([&;])/;

/** Whether the custom arguments mark a backup. */
export interface BackupArgument {
  readonly isBackup: boolean;
  /** The arguments without it; null when nothing is left. Byte-identical where it is absent. */
  readonly others: Uint8Array | null;
}

/** `name`: the name of the argument; with "" no publish is a backup. */
export function readBackupArgument(customArguments: Uint8Array | null, name: string): BackupArgument {
  if (customArguments === null || name === "") return { isBackup: false, others: customArguments };
  const pairs = Buffer.from(customArguments).toString("latin1").split(SEPARATOR);
  const said = `${name}=1`;
  // Pairs stand at even indexes, and before each but the first its separator.
  const left = pairs.flatMap((pair, at) => (at % 2 === 1 || pair === said ? [] : [(pairs[at - 1] ?? "") + pair]));
  if (left.length * 2 === pairs.length + 1) return { isBackup: false, others: customArguments };
  const others = left.join("").replace(/^[&;]/, "");
  return { isBackup: true, others: others === "" ? null : Buffer.from(others, "latin1") };
}
