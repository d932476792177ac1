// The names of people and API keys, for filters and lists: for administrators only, who may see both.
import { answerOf, api } from "../shell/client.ts";

/** By their ids. */
export async function loadNames(signal: AbortSignal): Promise<ReadonlyMap<string, string>> {
  const [people, keys] = await Promise.all([
    answerOf(api.GET("/organisation/user", { signal })),
    answerOf(api.GET("/organisation/key", { signal })),
  ]);
  return new Map([
    ...people.map(({ id, email }): [string, string] => [id, email]),
    ...keys.map(({ id, label }): [string, string] => [id, label === null ? `Key hg_${id}_…` : `Key “${label}”`]),
  ]);
}
