// Displays something that is loaded: a message while loading, the error with a way to retry, or the content.
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

/** The existing content stays when reloading fails. */
export function LoadedView<T>({ of, words, children }: LoadedViewProps<T>) {
  if (of.value !== null) return <>{children(of.value)}</>;
  if (of.error === null) return <Loading words={words} />;
  return (
    <Problem title="This could not be loaded" again={() => void of.reload()}>
      {wordsOfError(of.error)} {tellTheOperator(of.error)}
    </Problem>
  );
}
