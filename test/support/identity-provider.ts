// A real OpenID Connect provider (oidc-provider) on loopback, and a browser without a screen: one cookie jar, following
// redirects. The person signs in at the provider as whatever name the test gives.
import { generateKeyPairSync, randomUUID } from "node:crypto";
import { createServer, type IncomingMessage, type Server, type ServerResponse } from "node:http";
import type { AddressInfo } from "node:net";
// @ts-expect-error The package has no types; what is used of it is written below.
import RealProvider from "oidc-provider";

export const CLIENT = { id: "headgate", secret: "a secret with ~ and + in it" };

/** Claims by the name that signs in. */
export type Accounts = Readonly<Record<string, Readonly<Record<string, unknown>>>>;

export interface IdentityProvider {
  readonly issuer: string;
  /** Changes the answer to requests whose path ends like this; null: as the provider gives it. */
  tamper(path: string, change: ((body: Record<string, unknown>) => object) | null): void;
  /** Replaces the keys that sign, and those that are published. */
  rotateKeys(): void;
  /** Paths requested so far. */
  readonly requests: readonly string[];
  close(): Promise<void>;
}

const newKeys = () => {
  const { privateKey } = generateKeyPairSync("rsa", { modulusLength: 2048 });
  return { keys: [{ ...privateKey.export({ format: "jwk" }), kid: randomUUID(), use: "sig", alg: "RS256" }] };
};

/** `redirectUris`: of the client. */
export async function openProvider(accounts: Accounts, redirectUris: readonly string[]): Promise<IdentityProvider> {
  const tampered = new Map<string, (body: Record<string, unknown>) => object>();
  const requests: string[] = [];
  let serve: (request: IncomingMessage, response: ServerResponse) => void = () => {};
  const server: Server = createServer((request, response) => {
    const path = new URL(request.url ?? "/", "http://provider").pathname;
    requests.push(path);
    const change = [...tampered].find(([end]) => path.endsWith(end))?.[1];
    if (change !== undefined) changing(response, change);
    serve(request, response);
  });
  await new Promise<void>((resolve) => server.listen(0, "127.0.0.1", resolve));
  const issuer = `http://127.0.0.1:${(server.address() as AddressInfo).port}`;
  const provider = () =>
    new RealProvider(issuer, {
      clients: [
        {
          client_id: CLIENT.id,
          client_secret: CLIENT.secret,
          redirect_uris: [...redirectUris],
          token_endpoint_auth_method: "client_secret_post",
        },
      ],
      jwks: newKeys(),
      claims: { openid: ["sub", "groups"], email: ["email", "email_verified"] },
      findAccount: (_: unknown, id: string) => ({ accountId: id, claims: () => ({ sub: id, ...accounts[id] }) }),
      cookies: { keys: ["a key of the test"] },
      features: { devInteractions: { enabled: true } },
      pkce: { required: () => true },
      ttl: { Session: 3_600, Grant: 3_600, Interaction: 600, AccessToken: 600, IdToken: 600 },
    }).callback() as typeof serve;
  serve = provider();
  return {
    issuer,
    requests,
    tamper(path, change) {
      if (change === null) tampered.delete(path);
      else tampered.set(path, change);
    },
    rotateKeys() {
      serve = provider();
    },
    close: () =>
      new Promise((resolve) => {
        server.closeAllConnections();
        server.close(() => resolve());
      }),
  };
}

/** Changes the JSON that is about to be sent. */
function changing(response: ServerResponse, change: (body: Record<string, unknown>) => object): void {
  const end = response.end.bind(response) as (text: string) => ServerResponse;
  response.end = ((body: Buffer | string) => {
    const text = JSON.stringify(change(JSON.parse(String(body))));
    response.setHeader("content-length", Buffer.byteLength(text));
    return end(text);
  }) as typeof response.end;
}

/** Sends a request of the browser to Headgate. */
export type ToHeadgate = (path: string, headers: Readonly<Record<string, string>>) => Promise<Response>;

export class Browser {
  /** By origin. */
  readonly cookies = new Map<string, Map<string, string>>();
  readonly #headgate: string;
  readonly #send: ToHeadgate;

  /** `headgate`: the origin of the service. */
  constructor(headgate: string, send: ToHeadgate) {
    this.#headgate = headgate;
    this.#send = send;
  }

  cookiesOf(origin: string): Map<string, string> {
    const known = this.cookies.get(origin) ?? new Map<string, string>();
    this.cookies.set(origin, known);
    return known;
  }

  /** One request, whose redirect is not followed. */
  async get(url: string, form: URLSearchParams | null = null): Promise<Response> {
    const { origin, pathname, search } = new URL(url);
    const jar = this.cookiesOf(origin);
    const headers = { cookie: [...jar].map(([name, value]) => `${name}=${value}`).join("; ") };
    const init = form === null ? { headers } : { headers, method: "POST", body: form };
    const response =
      origin === this.#headgate
        ? await this.#send(pathname + search, headers)
        : await fetch(url, { ...init, redirect: "manual" });
    for (const set of response.headers.getSetCookie()) {
      const [pair = "", ...attributes] = set.split("; ");
      const [name = "", value = ""] = pair.split(/=(.*)/s);
      const isGone = attributes.some((one) => /^(max-age=0|expires=thu, 01 jan 1970)/i.test(one));
      if (isGone) jar.delete(name);
      else jar.set(name, value);
    }
    return response;
  }

  /** Follows redirects from `url`, signing in at the provider as `name`, and returns the address where it would go next once
   *  that fulfils `isEnd`. */
  async follow(url: string, name: string, isEnd: (address: string) => boolean): Promise<string> {
    let at = url;
    for (let steps = 0; steps < 20; steps += 1) {
      if (isEnd(at)) return at;
      let response = await this.get(at);
      const page = response.status === 200 ? await response.text() : "";
      const prompt = /name="prompt" value="(\w+)"/.exec(page)?.[1];
      const action = /action="([^"]+)"/.exec(page)?.[1];
      if (prompt !== undefined && action !== undefined) {
        response = await this.get(
          new URL(action, at).href,
          new URLSearchParams({ prompt, login: name, password: "any" }),
        );
      }
      const location = response.headers.get("location");
      if (location === null) throw new Error(`${at} leads nowhere: ${response.status} ${page.slice(0, 500)}`);
      at = new URL(location, at).href;
    }
    throw new Error("too many redirects");
  }
}
