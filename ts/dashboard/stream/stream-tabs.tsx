// The tabs of a stream's page. The open one is part of the page's address; without it, a stream that nobody has broadcast to
// yet shows how to connect, and any other one what happens now.
import type { ComponentChildren } from "preact";
import { useLocation } from "preact-iso/router";
import { Tabs } from "../parts/tabs.tsx";
import { addressOf, filteredAddress } from "../shell/addresses.ts";
import type { StreamState } from "../streams/records.ts";

const TITLES = { live: "Live", history: "History", connect: "Connect", links: "Links" } as const;

export type StreamTab = keyof typeof TITLES;

/** The address of a stream's page with this tab open. */
export const tabAddress = (streamId: string, tab: StreamTab): string =>
  filteredAddress(addressOf("streams", streamId), { tab });

interface StreamTabsProps {
  readonly streamId: string;
  readonly state: StreamState;
  /** What each tab shows; those that the person may not see are absent. */
  readonly contents: Readonly<Partial<Record<StreamTab, () => ComponentChildren>>>;
}

export function StreamTabs({ streamId, state, contents }: StreamTabsProps) {
  const { query, route } = useLocation();
  const shown = (Object.keys(TITLES) as StreamTab[]).filter((tab) => contents[tab] !== undefined);
  const open = openTab(query, state, shown);
  const tabs = shown.map((tab) => ({ title: TITLES[tab], content: tab === open ? contents[tab]?.() : null }));
  return (
    <Tabs
      label="Stream"
      tabs={tabs}
      open={shown.indexOf(open)}
      onOpen={(index) => route(tabAddress(streamId, shown[index] ?? open), true)}
    />
  );
}

function openTab(query: Readonly<Record<string, string>>, state: StreamState, shown: readonly StreamTab[]): StreamTab {
  const { tab, from = "", to = "" } = query;
  const asked = shown.find((each) => each === tab);
  if (asked !== undefined) return asked;
  if (from !== "" || to !== "") return "history";
  return state === "created" ? "connect" : "live";
}
