// Live sessions for tests of the routes: the test defines what is live, and calls are recorded.
import { InvalidValue, NoStandby, UnknownUpstream } from "../../ts/errors.ts";
import type { LiveSession, LiveSessions } from "../../ts/publish/live-sessions.ts";
import type { Previews } from "../../ts/publish/preview/previews.ts";

export interface RecordedSessions {
  readonly sessions: LiveSessions;
  /** Empty previews of what is live. */
  readonly previews: Previews;
  readonly live: LiveSession[];
  /** `kick 1 reason`, `kickStream id reason`, … */
  readonly calls: string[];
}

export function createRecordedSessions(): RecordedSessions {
  const live: LiveSession[] = [];
  const calls: string[] = [];
  const find = (organisationId: string, clientId: number) =>
    live.find((session) => session.organisationId === organisationId && session.clientId === clientId);
  return {
    live,
    calls,
    previews: {
      open: ({ organisationId, streamId }) =>
        live.some((session) => session.organisationId === organisationId && session.streamId === streamId)
          ? new Blob([]).stream()
          : null,
      running: () => 0,
      stop() {},
    },
    sessions: {
      list: (organisationId, { after, quantity, isMeant }) =>
        live
          .filter((session) => session.organisationId === organisationId && session.clientId > after)
          .filter(({ streamId }) => isMeant(streamId))
          .slice(0, quantity),
      show: find,
      players: () => [{ address: "192.0.2.7", since: 0, bytesOut: 20, droppedFrames: 1 }],
      kick(organisationId, meant, { reason }) {
        const [id] = Object.values(meant);
        calls.push(`kick ${id} ${reason}`);
        return live.some(
          (each) => each.organisationId === organisationId && [each.clientId, each.streamId].includes(id),
        );
      },
      async addUpstream(organisationId, clientId, { url, label }, record) {
        if (url.startsWith("http")) throw new InvalidValue("url", "must be rtmp or rtmps");
        await record();
        calls.push(`addUpstream ${clientId} ${url}${label === null ? "" : ` (${label})`}`);
        return find(organisationId, clientId) !== undefined;
      },
      removeUpstream(organisationId, clientId, id) {
        const upstream = find(organisationId, clientId)?.upstreams.find((of) => of.id === id);
        if (upstream === undefined) return "unknown";
        if (upstream.source === "deployment") return "operators";
        calls.push(`removeUpstream ${clientId} ${id}`);
        return "removed";
      },
      switchTarget(organisationId, streamId, to) {
        const found = live.find((of) => of.organisationId === organisationId && of.streamId === streamId);
        if (found === undefined) throw new NoStandby();
        return to ?? found.clientId;
      },
      async switchTo(organisationId, streamId, to) {
        const found = live.find((of) => of.organisationId === organisationId && of.streamId === streamId);
        if (found === undefined) throw new NoStandby();
        calls.push(`switchTo ${to}`);
        return { clientId: to ?? found.clientId, onAir: true };
      },
      followStream(_, streamId, change) {
        const [[kind, what] = ["", ""]] = Object.entries(change);
        if (kind === "paused" || kind === "resumed") calls.push(`${kind} ${streamId} ${what}`);
      },
      retryUpstream(organisationId, streamId, id) {
        const session = live.find((of) => of.organisationId === organisationId && of.streamId === streamId);
        const upstream = session?.upstreams.find((of) => of.id === id);
        if (upstream === undefined) throw new UnknownUpstream();
        calls.push(`retryUpstream ${id}`);
        return upstream;
      },
      upstreamsOf: (organisationId, streamId) =>
        live.find((of) => of.organisationId === organisationId && of.streamId === streamId)?.upstreams ?? [],
      limitBitrate(organisationId, clientId, kbps) {
        calls.push(`limitBitrate ${clientId} ${kbps}`);
        const session = find(organisationId, clientId);
        if (session === undefined) return "not_running";
        return session.protocol === "rtmp" ? "cannot_be_limited" : "limited";
      },
    },
  };
}
