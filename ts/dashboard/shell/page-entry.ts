// Description of a page for the frame, the router and the command palette.
import type { FunctionComponent } from "preact";
import type { IconName } from "../parts/icons.tsx";
import type { Permission } from "./permissions.ts";

export interface PageEntry {
  /** The router's pattern: `/dashboard/streams/:id`. The `:id` is passed to the component as the property `id`. */
  readonly path: string;
  /** Other paths of the same page. */
  readonly also?: readonly string[];
  readonly title: string;
  readonly icon: IconName;
  /** The heading of the navigation under which it is listed; absent: not in the navigation. */
  readonly group?: "Broadcasts" | "Webhook" | "Organisation" | "Operator";
  /** Further words by which the command palette finds it. */
  readonly words?: string;
  /** Path of the page that the navigation highlights while this one is open. */
  readonly under?: string;
  /** People without the permission do not see it: neither in the navigation nor at its path. */
  readonly needs?: Permission;
  // biome-ignore lint/suspicious/noExplicitAny: what the router hands to a page is the page's own affair
  readonly component: FunctionComponent<any>;
}
