// The entries in the menu of a stream, in the list and on its own page: addresses to copy, and the actions the role
// permits.
import { copied } from "../parts/copy-field.tsx";
import { say, sayProblem } from "../parts/toasts.tsx";
import { timeNow } from "../shell/clock.ts";
import { may } from "../shell/session.ts";
import { deleteStream, lockStream, type ShowStream, unlockStream } from "./actions.ts";
import { addressesOf } from "./addresses.ts";
import type { MenuItem } from "./menu.tsx";
import { nameOf, type Stream } from "./records.ts";

/** `open`: opens the stream, where it is not open already. */
export function actionsOf(stream: Stream, show: ShowStream, open?: () => void): readonly MenuItem[] {
  const { rtmp, rtmps, whip } = addressesOf(stream);
  const copy = (what: string, text: string): MenuItem => ({
    title: `Copy ${what}`,
    icon: "copy",
    run: () =>
      void copied(text).then((isDone) =>
        isDone
          ? say(`${what} copied`)
          : sayProblem("This browser does not let pages copy. Open the stream to see its addresses."),
      ),
  });
  const steers: readonly MenuItem[] = [
    stream.state === "locked"
      ? { title: "Unlock", icon: "lock", run: () => void unlockStream(stream, show) }
      : stream.state === "live"
        ? { title: "Stop and lock …", icon: "stop", isDanger: true, run: () => void lockStream(stream, show) }
        : { title: "Lock", icon: "lock", run: () => void lockStream(stream, show) },
    ...(stream.state !== "locked" && isRefused(stream)
      ? [{ title: "Allow broadcasts again", icon: "lock", run: () => void unlockStream(stream, show) } as const]
      : []),
    { title: "Delete …", icon: "trash", isDanger: true, run: () => void deleteStream(stream, show) },
  ];
  return [
    ...(open === undefined ? [] : [{ title: "Open", icon: "streams", run: open } as const]),
    copy("stream name", nameOf(stream)),
    copy("RTMP address", rtmp),
    ...(rtmps === null ? [] : [copy("RTMPS address", rtmps)]),
    copy("WHIP address", whip),
    ...(may("control_stream") ? steers : []),
  ];
}

/** Whether it is refused for a while after an end. */
const isRefused = ({ refused_until }: Stream) => refused_until !== null && Date.parse(refused_until) > timeNow();
