// What the frame, the router and the command palette know of a page.
import type { FunctionComponent } from "preact";
import type { IconName } from "../parts/icons.tsx";
import type { Permission } from "./permissions.ts";

export interface PageEntry {
  /** As the router matches it: `/dashboard/streams/:id`. The `:id` comes to the component as the property `id`. */
  readonly path: string;
  /** Other addresses of the same page. */
  readonly also?: readonly string[];
  readonly title: string;
  readonly icon: IconName;
  /** Heading of the navigation that it stands under; without one it is not in the navigation. */
  readonly group?: "Broadcasts" | "Webhook" | "Organisation" | "Operator";
  /** Path of the page that the navigation marks while this one is open. */
  readonly under?: string;
  /** Who may not, does not see it: neither here nor at its address. */
  readonly needs?: Permission;
  // biome-ignore lint/suspicious/noExplicitAny: what the router hands to a page is the page's own affair
  readonly component: FunctionComponent<any>;
}
