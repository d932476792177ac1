// The screenshots that `node tools/dashboard-screenshots.mjs` takes: a row for each page, and for each
// dialog that a button on it opens.

/** `name`: of the file. `path`: an address, or a function of the data that the service was given: `streams`, the
 *  `live` one, the `denied` delivery. `act`: what is pressed before the screenshot is taken. */
export const SHOTS = [
  { name: "login", path: "/dashboard/", signedOut: true },
  { name: "overview", path: "/dashboard/overview" },
  { name: "streams", path: "/dashboard/streams" },
  { name: "stream", path: ({ live }) => `/dashboard/streams/${live.id}` },
  { name: "stream-new", path: ({ streams }) => `/dashboard/streams/${streams[1].id}` },
  {
    name: "upstream-test",
    path: ({ streams }) => `/dashboard/streams/${streams[1].id}?tab=live`,
    async act(page) {
      await page.getByRole("button", { name: "Test Main channel" }).click();
      await page.getByText("No server on that port").waitFor();
    },
  },
  { name: "stream-denied", path: ({ streams }) => `/dashboard/streams/${streams[2].id}?tab=history` },
  {
    name: "stream-kick",
    path: ({ live }) => `/dashboard/streams/${live.id}`,
    act: async (page) => {
      await page.getByRole("button", { name: "End broadcast" }).click();
      await page.waitForSelector("dialog[open]");
    },
  },
  {
    name: "stream-ffmpeg",
    path: ({ streams }) => `/dashboard/streams/${streams[1].id}`,
    act: async (page) => {
      await page.getByRole("tab", { name: "ffmpeg" }).click();
    },
  },
  {
    name: "stream-links",
    path: ({ streams }) => `/dashboard/streams/${streams[1].id}?tab=links`,
    act: async (page) => {
      await page.getByRole("button", { name: "Create the link" }).click();
      await page.waitForSelector(".qr");
    },
  },
  {
    name: "streams-menu",
    path: "/dashboard/streams",
    act: async (page) => {
      await page
        .getByRole("button", { name: /^Actions/ })
        .first()
        .click();
      await page.waitForSelector("[role=menuitem]");
    },
  },
  { name: "refusals", path: "/dashboard/refusals" },
  { name: "links", path: "/dashboard/links" },
  { name: "refusals-none", path: "/dashboard/refusals?reason=full&from=2026-01-31T14:00Z&to=2026-01-31T14:05Z" },
  { name: "stream-locked", path: ({ streams }) => `/dashboard/streams/${streams[3].id}` },
  {
    name: "stream-timeline",
    path: ({ live }) => `/dashboard/streams/${live.id}?tab=history`,
    act: async (page) => {
      await page.getByRole("button", { name: "Timeline" }).first().click();
      await page.waitForSelector("ol.timeline");
    },
  },
  {
    name: "stream-key",
    path: ({ streams }) => `/dashboard/streams/${streams[1].id}?tab=connect`,
    act: async (page) => {
      const needed = page.getByLabel("Publishes of this stream");
      if (!(await needed.isVisible())) await page.locator("summary", { hasText: "Publish key" }).click();
      await needed.selectOption("yes");
      await page.getByRole("button", { name: "Renew the key" }).waitFor();
    },
  },
  { name: "webhook", path: "/dashboard/webhook" },
  { name: "deliveries", path: "/dashboard/deliveries" },
  { name: "delivery", path: ({ denied }) => `/dashboard/deliveries/${denied.id}` },
  { name: "usage", path: "/dashboard/usage" },
  { name: "settings", path: "/dashboard/settings" },
  { name: "keys", path: "/dashboard/keys" },
  { name: "people", path: "/dashboard/people" },
  { name: "audit", path: "/dashboard/audit" },
  { name: "account", path: "/dashboard/account" },
  { name: "operator", path: "/dashboard/operator" },
  {
    name: "key-dialog",
    path: "/dashboard/keys",
    act: async (page) => {
      await page.getByRole("button", { name: "Create a key" }).click();
      await page.getByLabel("Label").fill("Website");
    },
  },
  {
    name: "question",
    path: "/dashboard/webhook",
    act: async (page) => await page.getByRole("button", { name: "Remove the webhook" }).click(),
  },
  {
    name: "webhook-test",
    path: "/dashboard/webhook",
    act: async (page) => {
      await page.getByRole("button", { name: "Call the webhook" }).click();
      await page.waitForSelector("form .note");
    },
  },
  {
    name: "menu",
    path: "/dashboard/usage",
    act: async (page) => {
      const menu = page.getByRole("button", { name: "Open the menu" });
      if (await menu.isVisible()) await menu.click();
    },
  },
  {
    name: "palette",
    path: "/dashboard/streams",
    act: async (page) => {
      await page.keyboard.press("Control+k");
      await page.waitForSelector(".palette-command");
    },
  },
];
