// What a page shows of something that is loaded: words while it comes, the error with a way on, or the thing itself.
import type { ComponentChildren } from "preact";
import { Loading, Problem } from "../parts/states.tsx";
import { tellTheOperator, wordsOfError } from "./errors.ts";
import type { Loaded } from "./loaded.ts";

interface LoadedViewProps<T> {
  readonly of: Pick<Loaded<T>, "value" | "error" | "reload">;
  /** "Loading the keys …" */
  readonly words: string;
  readonly children: (value: T) => ComponentChildren;
}

/** What was there stays when it cannot be loaded anew. */
export function LoadedView<T>({ of, words, children }: LoadedViewProps<T>) {
  if (of.value !== null) return <>{children(of.value)}</>;
  if (of.error === null) return <Loading words={words} />;
  return (
    <Problem title="This could not be loaded" again={() => void of.reload()}>
      {wordsOfError(of.error)} {tellTheOperator(of.error)}
    </Problem>
  );
}
