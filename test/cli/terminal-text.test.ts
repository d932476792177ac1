// What tenants and upstreams write cannot control the operator's terminal, neither in commands nor in the log.
import { prettyFactory } from "pino-pretty";
import { expect, test } from "vitest";
import { table } from "../../ts/cli/output.ts";
import { jsonText, printable, printableJson } from "../../ts/text/terminal.ts";

/** A title change, a clipboard write, a C1 control sequence, a forged line, an erased one, and reversed text. */
const HOSTILE = ["\x1b]0;owned\x07", "\x1b]52;c;cm0gLXJm\x1b\\", "\x9b2J", "a\r\nok", "\x08\x08\x7f", "\u202etxt.exe"];
const OBEYED = /[\p{Cc}\u202e]/u;

test.each(HOSTILE)("%j is shown and not obeyed", (text) => {
  const [[row = ""] = []] = [table([[`tag ${text}`]])];
  const said = JSON.stringify({ level: 30, msg: `upstream said ${text}`, detail: text, nested: { text } });
  const logged = prettyFactory({ colorize: false })(printableJson(said)).replaceAll("\n", "");
  const json = jsonText({ text });
  for (const shown of [printable(text), row, logged, json.replaceAll("\n", "")]) expect(shown).not.toMatch(OBEYED);
  expect(JSON.parse(json)).toEqual({ text });
});

test("ordinary text is unchanged, in every language, and so are backslashes", () => {
  for (const text of ["Zürich – 東京 🎥", "C:\\user\\new", "a\\u001b", '"quoted"']) {
    expect(printable(text)).toBe(text);
    expect(JSON.parse(printableJson(JSON.stringify({ text })))).toEqual({ text });
  }
});
