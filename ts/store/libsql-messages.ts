// The messages between the driver and the thread of the embedded store.
import type { MessagePort } from "node:worker_threads";
import type { Parameter } from "./tables/parameters.ts";

/** A `command` may run beside a service, and so may its `successor`, but not a second service. */
export type Access = "service" | "successor" | "command";

/** The first message to a thread; all others of its store go through `port`. */
export interface Opening {
  readonly dataDir: string;
  /** `reader`: of a store that this process has opened. */
  readonly access: Access | "reader";
  readonly port: MessagePort;
}

export interface StatementRequest {
  readonly kind: "statement";
  readonly id: number;
  readonly sql: string;
  readonly parameters: readonly Parameter[];
  /** It changes nothing, so it does not wait for a commit. */
  readonly reads: boolean;
  /** Sent between `begin` and its `commit` or `rollback`. */
  readonly inTransaction: boolean;
}

/** Statements that form one transaction, sent together: all or none of them take effect, and no one waits for the
 *  sender in between. */
export interface BatchRequest {
  readonly kind: "batch";
  readonly id: number;
  readonly statements: readonly Pick<StatementRequest, "sql" | "parameters">[];
}

export type Request =
  | StatementRequest
  | BatchRequest
  | { readonly kind: "begin" | "commit" | "rollback"; readonly id: number }
  /** `stays`: the thread waits for another store instead of exiting. */
  | { readonly kind: "close"; readonly stays: boolean; readonly id: number };

/** Result of a statement: `rows` when it returns any, else `changes`, the number of rows it changed. Of a batch: `rows`
 *  are the outcomes of its statements. */
export type Outcome =
  | { readonly rows: unknown[]; readonly changes: number; readonly error?: never }
  | { readonly error: { readonly code: string; readonly message: string } };

export type Reply =
  | { readonly kind: "opened"; readonly alone: boolean }
  | { readonly kind: "refused"; readonly message: string }
  | { readonly kind: "outcome"; readonly id: number; readonly outcome: Outcome };
