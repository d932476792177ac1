// Exit codes of the process (docs/operating.md).
import { ServiceError } from "../errors.ts";

const EXIT_CODES: Readonly<Record<string, number>> = { config_invalid: 2, port_taken: 3, store_unavailable: 4 };

/** Exit code for a process that an error ended: 1 when nothing more specific is known. */
export function exitCodeOf(error: unknown): number {
  return error instanceof ServiceError ? (EXIT_CODES[error.code] ?? 1) : 1;
}
