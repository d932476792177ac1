// All pages of the dashboard: path, title, required permission, and the chunk of the script that contains it. To add
// one: a row here, and a component in a folder of its own.

import { lazyPage } from "./shell/lazy-page.tsx";
import type { PageEntry } from "./shell/page-entry.ts";

const overview = lazyPage(async () => (await import("./overview/page.tsx")).OverviewPage);
const streams = lazyPage(async () => (await import("./streams/page.tsx")).StreamsPage);
const stream = lazyPage(async () => (await import("./stream/page.tsx")).StreamPage);
const refusals = lazyPage(async () => (await import("./refusals/page.tsx")).RefusalsPage);
const links = lazyPage(async () => (await import("./links/page.tsx")).LinksPage);
const operator = lazyPage(async () => (await import("./operator/page.tsx")).OperatorPage);
const webhook = lazyPage(async () => (await import("./webhook/page.tsx")).WebhookPage);
const deliveries = lazyPage(async () => (await import("./webhook/deliveries.tsx")).DeliveriesPage);
const delivery = lazyPage(async () => (await import("./webhook/delivery.tsx")).DeliveryPage);
const usage = lazyPage(async () => (await import("./organisation/usage.tsx")).UsagePage);
const settings = lazyPage(async () => (await import("./organisation/settings.tsx")).SettingsPage);
const keys = lazyPage(async () => (await import("./organisation/keys.tsx")).KeysPage);
const people = lazyPage(async () => (await import("./organisation/people.tsx")).PeoplePage);
const audit = lazyPage(async () => (await import("./organisation/audit.tsx")).AuditPage);
const account = lazyPage(async () => (await import("./organisation/account.tsx")).AccountPage);

/** In the order of the navigation. A page without a `group` is not listed there, but linked from other pages. */
export const PAGES: readonly PageEntry[] = [
  {
    path: "/dashboard/overview",
    also: ["/dashboard/", "/dashboard/sign-in/:organisation"],
    title: "Overview",
    icon: "overview",
    group: "Broadcasts",
    words: "home start status live now attention",
    component: overview,
  },
  {
    path: "/dashboard/streams",
    title: "Streams",
    icon: "streams",
    group: "Broadcasts",
    component: streams,
  },
  { path: "/dashboard/streams/:id", title: "Stream", icon: "streams", under: "/dashboard/streams", component: stream },
  {
    path: "/dashboard/refusals",
    title: "Refusals",
    icon: "refusals",
    group: "Broadcasts",
    needs: "view_refusals",
    words: "refused denied rejected why not live",
    component: refusals,
  },
  {
    path: "/dashboard/links",
    title: "Links",
    icon: "link",
    group: "Broadcasts",
    needs: "view_tokens",
    words: "tokens created by revoke access",
    component: links,
  },
  { path: "/dashboard/webhook", title: "Webhook", icon: "webhook", group: "Webhook", component: webhook },
  {
    path: "/dashboard/deliveries",
    title: "Deliveries",
    icon: "deliveries",
    group: "Webhook",
    needs: "view_deliveries",
    component: deliveries,
  },
  {
    path: "/dashboard/deliveries/:id",
    title: "Delivery",
    icon: "deliveries",
    under: "/dashboard/deliveries",
    needs: "view_deliveries",
    component: delivery,
  },
  { path: "/dashboard/usage", title: "Usage", icon: "usage", group: "Organisation", component: usage },
  { path: "/dashboard/settings", title: "Settings", icon: "settings", group: "Organisation", component: settings },
  {
    path: "/dashboard/keys",
    title: "API keys",
    icon: "keys",
    group: "Organisation",
    needs: "manage_keys",
    component: keys,
  },
  {
    path: "/dashboard/people",
    title: "People",
    icon: "people",
    group: "Organisation",
    needs: "manage_users",
    component: people,
  },
  {
    path: "/dashboard/audit",
    title: "Audit log",
    icon: "audit",
    group: "Organisation",
    needs: "view_audit",
    component: audit,
  },
  {
    path: "/dashboard/operator",
    title: "Deployment",
    icon: "operator",
    group: "Operator",
    needs: "operate",
    component: operator,
  },
  { path: "/dashboard/account", title: "Your account", icon: "account", component: account },
];
