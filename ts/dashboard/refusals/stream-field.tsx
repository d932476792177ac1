// The stream by which refusals are filtered: entered by its name, and kept by its id.
import { useState } from "preact/hooks";
import { TextFilter } from "../lists/text-filter.tsx";
import { answerOf, api } from "../shell/client.ts";
import { wordsOfError } from "../shell/errors.ts";
import { useLoaded } from "../shell/loaded.ts";
import { nameOf } from "../streams/records.ts";
import { findStreams } from "../streams/stream-source.ts";

/** The service's limit, characters. */
const SEARCH_LIMIT = 100;

interface StreamFieldProps {
  /** "" for all. */
  readonly stream: string;
  readonly onChange: (stream: string) => void;
}

export function StreamField({ stream, onChange }: StreamFieldProps) {
  const [error, setError] = useState<string | null>(null);
  const name = useLoaded(
    async (signal) =>
      stream === ""
        ? ""
        : nameOf(await answerOf(api.GET("/stream/{id}", { params: { path: { id: stream } }, signal }))),
    [stream],
  );
  const choose = async (given: string) => {
    setError(null);
    if (given === "") return onChange("");
    try {
      // Two are enough to know that it is not clear which one is meant; a full name is found first.
      const found = await findStreams(given.slice(0, SEARCH_LIMIT), 50, new AbortController().signal);
      const meant = found.find((each) => nameOf(each) === given) ?? (found.length === 1 ? found[0] : undefined);
      if (meant !== undefined) onChange(meant.id);
      else
        setError(found.length === 0 ? `No stream is called ${given}.` : `${given} is not clear: enter the full name.`);
    } catch (problem) {
      setError(wordsOfError(problem));
    }
  };
  return (
    <TextFilter
      label="Stream name"
      value={name.value ?? (name.error === null ? "" : stream)}
      error={error}
      onChange={(given) => void choose(given)}
    />
  );
}
