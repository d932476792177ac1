// The dashboard in headless Chromium, for any signed-in user: each page in a browser profile of its own, with policy
// violations and script exceptions recorded.
import { type Browser, type BrowserContextOptions, chromium, type Page } from "playwright-core";
import { afterAll, afterEach, beforeAll } from "vitest";
import { HEADLESS_SHELL } from "./browser-programs.ts";
import { type Customer, startCustomer } from "./customer.ts";
import { type Headgate, startHeadgate } from "./headgate.ts";

export const PASSWORD = "correct horse battery staple";
/** Long enough for slow machines, ms. */
const WAIT_LIMIT_MS = 20_000;

export type Role = "administrator" | "user" | "readonly";
/** The user of each role. */
export const PEOPLE: Readonly<Record<Role, string>> = {
  administrator: "admin",
  user: "ben@customer.example",
  readonly: "carla@customer.example",
};

export interface DashboardPage {
  readonly page: Page;
  /** Waits until the only heading is `title`. */
  shows(title: string): Promise<void>;
  /** The text of an element, with white space as displayed. */
  says(selector: string): Promise<string>;
  /** Presses the button, link or tab with this name. */
  press(name: string): Promise<void>;
  /** Opens the command palette and types once it accepts input. */
  command(text: string): Promise<void>;
  /** Types into the field with this label. */
  fill(label: string, text: string): Promise<void>;
  /** The text of the notification in the corner, once there is one that contains `part`. */
  news(part: string): Promise<string>;
  /** Calls the API from within the page, as its own script does. */
  call(method: string, path: string, body?: unknown): Promise<number>;
  /** Violations of the page's policy, and exceptions of its script. */
  faults(): Promise<readonly string[]>;
}

export interface Dashboard {
  readonly headgate: Headgate;
  readonly customer: Customer;
  readonly browser: Browser;
  /** `as`: null if nobody is signed in. */
  open(path: string, as: Role | null, options?: BrowserContextOptions): Promise<DashboardPage>;
  close(): Promise<void>;
}

/** A service with a user of each role and a customer. `env`: further settings by their HEADGATE_ names. */
export async function startDashboard(env: Readonly<Record<string, string>> = {}): Promise<Dashboard> {
  const customer = await startCustomer();
  const [headgate, browser] = await Promise.all([
    startHeadgate({
      customer,
      env: { HEADGATE_BOOTSTRAP_ADMIN_PASSWORD: PASSWORD, HEADGATE_LIMITS_API_REQUESTS_PER_SECOND: "0", ...env },
    }),
    chromium.launch({
      executablePath: HEADLESS_SHELL,
      args: ["--no-sandbox", "--disable-gpu", "--no-first-run", "--host-resolver-rules=MAP *.example 127.0.0.1"],
    }),
  ]);
  for (const role of ["user", "readonly"] as const) {
    await headgate.call("POST", "/organisation/user", { email: PEOPLE[role], password: PASSWORD, role });
  }
  return {
    headgate,
    customer,
    browser,
    async open(path, as, options = {}) {
      const context = await browser.newContext({ reducedMotion: "reduce", ...options });
      context.setDefaultTimeout(WAIT_LIMIT_MS);
      await context.addInitScript(record);
      if (as !== null) {
        const data = { email: PEOPLE[as], password: PASSWORD };
        const answer = await context.request.post(`${headgate.http}/login`, { data });
        if (!answer.ok()) throw new Error(`${as} cannot sign in: ${answer.status()}`);
      }
      const page = await context.newPage();
      const thrown: string[] = [];
      page.on("pageerror", (error) => thrown.push(error.message));
      page.on("dialog", (dialog) => {
        thrown.push(`a dialog said ${dialog.message()}`);
        void dialog.dismiss();
      });
      await page.goto(headgate.http + path);
      return dashboardPage(page, thrown);
    },
    async close() {
      await browser.close();
      await headgate.stop();
      await customer.close();
    },
  };
}

/** The dashboard of a test file: started before its tests, and closed after them; each test's pages are closed after it. */
export function useDashboard(env: Readonly<Record<string, string>> = {}): Omit<Dashboard, "close"> {
  let dashboard: Dashboard;
  const opened: DashboardPage[] = [];
  beforeAll(async () => {
    dashboard = await startDashboard(env);
  }, 90_000);
  afterEach(async () => {
    for (const { page } of opened.splice(0)) await page.context().close();
  });
  afterAll(() => dashboard?.close());
  return {
    get headgate() {
      return dashboard.headgate;
    },
    get customer() {
      return dashboard.customer;
    },
    get browser() {
      return dashboard.browser;
    },
    async open(...given) {
      const page = await dashboard.open(...given);
      opened.push(page);
      return page;
    },
  };
}

function dashboardPage(page: Page, thrown: readonly string[]): DashboardPage {
  return {
    page,
    async shows(title) {
      await page.getByRole("heading", { level: 1, name: title, exact: true }).waitFor();
    },
    says: async (selector) => (await page.innerText(selector)).replaceAll(/\s+/g, " ").trim(),
    async press(name) {
      const named = { name, exact: true } as const;
      const found = page
        .getByRole("button", named)
        .or(page.getByRole("link", named))
        .or(page.getByRole("tab", named))
        .filter({ visible: true });
      await found.first().click();
    },
    async command(text) {
      await page.keyboard.press("Control+k");
      await page.getByRole("dialog", { name: "Commands" }).getByRole("combobox").waitFor();
      await page.keyboard.type(text);
    },
    fill: (label, text) => page.getByLabel(label, { exact: true }).and(page.locator("input, textarea")).fill(text),
    async news(part) {
      const toast = page.locator(".toast", { hasText: part }).first();
      return (await toast.locator("p").innerText()).replaceAll(/\s+/g, " ").trim();
    },
    async call(method, path, body) {
      const call = `(async () => {
        const { csrf_token } = await (await fetch("/me")).json();
        const headers = { "x-csrf-token": csrf_token, "content-type": "application/json" };
        const body = ${JSON.stringify(body === undefined ? null : JSON.stringify(body))};
        return (await fetch(${JSON.stringify(path)}, { method: "${method}", headers, ...(body ? { body } : {}) })).status;
      })()`;
      return (await page.evaluate(call)) as number;
    },
    async faults() {
      return [...thrown, ...((await page.evaluate("recorded")) as string[])];
    },
  };
}

/** Runs in the page before its own script. */
const record = `
  globalThis.recorded = [];
  addEventListener("securitypolicyviolation", ({ violatedDirective, blockedURI }) => {
    recorded.push(violatedDirective + " " + blockedURI);
  });
`;
