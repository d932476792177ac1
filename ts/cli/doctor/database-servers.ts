// Doctor: the servers of a database that has several.
import { standingsOf } from "../../store/postgres/connecting.ts";
import type { ServerAnswer } from "../../store/postgres/servers.ts";
import { type Finding, good } from "./finding.ts";

/** One finding for each server; none when there is only one. `databaseUrl`: null for the embedded store. */
export async function databaseServers(databaseUrl: string | null): Promise<readonly Finding[]> {
  const answers = databaseUrl === null ? [] : await standingsOf(databaseUrl);
  if (answers.length < 2) return [];
  const timelines = answers.filter(isPrimary).map(({ standing }) => standing?.timeline ?? 0);
  const newest = Math.max(0, ...timelines);
  return answers.map((answer): Finding => {
    const { server, standing, fault } = answer;
    const what = `database server ${server.address}`;
    if (standing === null) {
      return {
        what,
        state: "warning",
        detail: `does not answer (${fault})`,
        why: "there is one server less to fail over to",
        remedy: "start it, or remove it from database_url",
      };
    }
    if (!isPrimary(answer)) return good(what, standing.refusal ?? "");
    if (standing.timeline < newest || timelines.length > 1) {
      const detail = `accepts writes, and so does another one: stop the former primary (timeline ${standing.timeline}, the newest is ${newest})`;
      const why = "anything written to the wrong one is lost when it is stopped";
      return {
        what,
        state: "bad",
        detail,
        why,
        remedy: "stop the former primary, and turn it into a standby (pg_rewind)",
      };
    }
    if (standing.isSynchronous) return good(what, "accepts writes, commits wait for a standby");
    return {
      what,
      state: "warning",
      detail: "accepts writes, but a failover may lose the last ones: synchronous_standby_names is empty",
      why: "a publish or a key that was acknowledged just before may be missing afterwards",
      remedy: "set synchronous_standby_names on the primary",
    };
  });
}

const isPrimary = ({ standing }: ServerAnswer): boolean => standing !== null && standing.refusal === null;
