// A reader of server-sent events, which parses the text by WHATWG HTML 9.2.6. A quick one reads all the time, as the
// port does for a client that keeps up; a slow one only when a test asks it to.

export interface ServerEvent {
  readonly event: string;
  // biome-ignore lint/suspicious/noExplicitAny: whatever the event says
  readonly data: any;
}

export interface EventReader {
  readonly response: Response;
  /** The next event; null when the stream has ended. */
  next(): Promise<ServerEvent | null>;
  /** The next piece of the stream as it was written; null at the end. */
  piece(): Promise<string | null>;
  close(): Promise<void>;
}

export function readEvents(response: Response, pace: "quick" | "slow" = "quick"): EventReader {
  const reader = response.body?.getReader();
  const events: ServerEvent[] = [];
  let rest = "";

  async function read(): Promise<string | null> {
    const { value } = (await reader?.read()) ?? { value: undefined };
    return value === undefined ? null : new TextDecoder().decode(value);
  }

  const pieces: (string | null)[] = [];
  const waiting: ((piece: string | null) => void)[] = [];
  async function pump(): Promise<void> {
    for (let piece: string | null = ""; piece !== null; ) {
      piece = await read();
      const next = waiting.shift();
      if (next === undefined) pieces.push(piece);
      else next(piece);
    }
  }
  if (pace === "quick") void pump();

  async function piece(): Promise<string | null> {
    if (pace === "slow") return await read();
    if (pieces.length > 0) return pieces.length === 1 && pieces[0] === null ? null : (pieces.shift() ?? null);
    return await new Promise((resolve) => waiting.push(resolve));
  }

  return {
    response,
    piece,
    async next() {
      while (events.length === 0) {
        const text = await piece();
        if (text === null) return null;
        const blocks = (rest + text).split("\n\n");
        rest = blocks.pop() ?? "";
        for (const block of blocks) {
          const [, event] = /^event: (.*)$/m.exec(block) ?? [];
          const [, data] = /^data: (.*)$/m.exec(block) ?? [];
          if (event !== undefined && data !== undefined) events.push({ event, data: JSON.parse(data) });
        }
      }
      return events.shift() ?? null;
    },
    close: async () => await reader?.cancel(),
  };
}
