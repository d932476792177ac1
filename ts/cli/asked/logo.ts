// `headgate logo …`: the picture that the organisation's broadcasters see on /broadcast. The running service checks it and
// encodes it anew.
import { readFile } from "node:fs/promises";
import { ConfigInvalid } from "../../errors.ts";
import { reasonOf } from "../../reason.ts";
import { ask } from "../asking.ts";
import { LOGO_VERBS } from "../command-flags.ts";
import type { GivenFlags } from "../flags.ts";
import { print } from "../output.ts";
import { unknownVerb, wanted } from "../words.ts";

const PATH = "/organisation/logo";

interface Answer {
  readonly logo: { readonly url: string; readonly width: number; readonly height: number } | null;
}

export async function runLogo(words: readonly string[], flags: GivenFlags): Promise<void> {
  const [verb, path] = words;
  switch (verb) {
    case "show":
      return show(flags, await ask(flags, "GET", PATH));
    case "set": {
      const file = wanted(path, "the path of a PNG file");
      const png = await readFile(file, "base64").catch((cause: unknown) => {
        throw new ConfigInvalid(`${file} cannot be read: ${reasonOf(cause)}`, { cause });
      });
      return show(flags, await ask(flags, "PUT", PATH, { png }));
    }
    case "rm":
      return show(flags, await ask(flags, "DELETE", PATH));
    default:
      throw unknownVerb("logo", verb, LOGO_VERBS);
  }
}

function show(flags: GivenFlags, answer: unknown): void {
  const { logo } = answer as Answer;
  const line = logo === null ? "No logo is set." : `The logo is ${logo.width} x ${logo.height} pixels, at ${logo.url}`;
  print(flags, answer, [line]);
}
