// What the command palette offers: pages, what can be done with the whole dashboard, and whatever a page adds.
import type { IconName } from "../parts/icon-paths.ts";

export interface Command {
  readonly id: string;
  readonly title: string;
  /** Heading that it stands under. */
  readonly group: string;
  readonly icon: IconName;
  /** More words that it is found by. */
  readonly words?: string;
  /** Shown small at the right. */
  readonly hint?: string;
  run(): void;
}

/** Gives commands for what was typed so far; an answer that comes late is dropped. */
export type CommandSource = (typed: string, signal: AbortSignal) => readonly Command[] | Promise<readonly Command[]>;

const sources = new Set<CommandSource>();

/** Adds a source; the returned function takes it away again. A page calls it in an effect, a list for good at its top. */
export function addCommands(source: CommandSource): () => void {
  sources.add(source);
  return () => sources.delete(source);
}

/** What every source has to say, in their order. */
export async function commandsFor(typed: string, signal: AbortSignal): Promise<readonly Command[]> {
  const answers = await Promise.all([...sources].map(async (source) => await source(typed, signal)));
  return answers.flat();
}

/** Those that every typed word is found in, the ones whose title begins with it first. */
export function matching(commands: readonly Command[], typed: string): readonly Command[] {
  const words = typed.toLowerCase().split(/\s+/).filter(Boolean);
  if (words.length === 0) return commands;
  const found = commands.filter(({ title, words: more = "", group }) => {
    const text = `${title} ${more} ${group}`.toLowerCase();
    return words.every((word) => text.includes(word));
  });
  const isDirect = ({ title }: Command) => title.toLowerCase().startsWith(words[0] ?? "");
  return [...found.filter(isDirect), ...found.filter((command) => !isDirect(command))];
}
