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

/** Asks every source; `found` is told all that is known so far, at once and again with each source that answers later. */
export function findCommands(typed: string, signal: AbortSignal, found: (all: readonly Command[]) => void): void {
  const answers: (readonly Command[])[] = [...sources].map(() => []);
  for (const [index, source] of [...sources].entries()) {
    const take = (commands: readonly Command[]) => {
      answers[index] = commands;
      if (!signal.aborted) found(answers.flat());
    };
    const answer = source(typed, signal);
    if (answer instanceof Promise) answer.then(take, () => {});
    else take(answer);
  }
}

/** Those of one group together, the groups in the order of their first ones: as the list shows them. */
export function inGroups(commands: readonly Command[]): readonly Command[] {
  const groups = [...new Set(commands.map(({ group }) => group))];
  return groups.flatMap((group) => commands.filter((command) => command.group === group));
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
