// What crosses between the driver and the thread of the embedded store.
import type { Parameter } from "./parameters.ts";

export interface StatementRequest {
  readonly kind: "statement";
  readonly id: number;
  readonly sql: string;
  readonly parameters: readonly Parameter[];
  /** It changes nothing; a commit is not worth sharing for it. */
  readonly reads: boolean;
  /** Sent between `begin` and its `commit` or `rollback`. */
  readonly inTransaction: boolean;
}

export type Request =
  | StatementRequest
  | { readonly kind: "begin" | "commit" | "rollback" | "close"; readonly id: number };

/** Result of a statement: `rows` when it returns any, `changes` how many rows it changed otherwise. */
export type Outcome =
  | { readonly rows: unknown[]; readonly changes: number; readonly error?: never }
  | { readonly error: { readonly code: string; readonly message: string } };

export type Reply =
  | { readonly kind: "opened"; readonly alone: boolean }
  | { readonly kind: "refused"; readonly message: string }
  | { readonly kind: "outcome"; readonly id: number; readonly outcome: Outcome };
