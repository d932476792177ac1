// Streams in the command palette: found by name, title or tag while typing, and shown with both; live ones first.
import { useEffect } from "preact/hooks";
import { useLocation } from "preact-iso/router";
import { addressOf } from "../shell/addresses.ts";
import { addCommands } from "../shell/commands.ts";
import { nameOf } from "./records.ts";
import { findStreams } from "./stream-source.ts";

const QUANTITY = 8;
/** Pause after a keystroke before the service is queried, ms. */
const TYPING_MS = 120;
/** The service's limit, characters. */
const SEARCH_LIMIT = 100;

/** Rendered once in the frame, on every page. */
export function StreamCommands() {
  const { route } = useLocation();
  useEffect(() => offerStreams(route), [route]);
  return null;
}

function offerStreams(open: (path: string) => void): () => void {
  return addCommands(async (typed, signal) => {
    await new Promise((resolve) => setTimeout(resolve, typed === "" ? 0 : TYPING_MS));
    if (signal.aborted) return [];
    const found = await findStreams(typed.trim().slice(0, SEARCH_LIMIT), QUANTITY, signal).catch(() => []);
    return found.map((stream) => ({
      id: stream.id,
      title: nameOf(stream),
      group: "Streams",
      icon: stream.state === "live" ? ("live" as const) : ("streams" as const),
      words: [stream.title ?? "", ...stream.tags].join(" "),
      hint: [stream.title, stream.state === "live" ? "live" : "", ...stream.tags].filter(Boolean).join(" · "),
      run: () => open(addressOf("streams", stream.id)),
    }));
  });
}
