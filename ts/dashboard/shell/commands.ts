// The entries of the command palette: pages, actions for the whole dashboard, and whatever a page adds.
import type { IconName } from "../parts/icon-paths.ts";

export interface Command {
  readonly id: string;
  readonly title: string;
  /** The heading under which it is listed. */
  readonly group: string;
  readonly icon: IconName;
  /** Further words by which it can be found. */
  readonly words?: string;
  /** Shown in small type on the right. */
  readonly hint?: string;
  run(): void;
}

/** Returns commands for the text typed so far; late results are dropped. */
export type CommandSource = (typed: string, signal: AbortSignal) => readonly Command[] | Promise<readonly Command[]>;

const sources = new Set<CommandSource>();

/** Adds a source; the returned function removes it. A page calls it in an effect; a module may call it once for
 *  good. */
export function addCommands(source: CommandSource): () => void {
  sources.add(source);
  return () => sources.delete(source);
}

/** Queries every source; `found` is called with all results so far, immediately and again with each source
 *  that answers later. */
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

/** Grouped, with groups in the order of their first commands: as the list shows them. */
export function inGroups(commands: readonly Command[]): readonly Command[] {
  const groups = [...new Set(commands.map(({ group }) => group))];
  return groups.flatMap((group) => commands.filter((command) => command.group === group));
}

/** Commands that contain every typed word; those whose title begins with the text come first. */
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
