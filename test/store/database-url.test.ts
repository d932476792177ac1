// The URL of a database with one or several servers: read as libpq does, and refused with a reason that does
// not contain the password.
import { Client } from "pg";
import { describe, expect, test } from "vitest";
import { loadConfig } from "../../ts/config.ts";
import { parseDatabaseUrl } from "../../ts/store/postgres/database-url.ts";

/** What the driver connects to, server by server. */
const connectionsOf = (url: string) =>
  parseDatabaseUrl(url).servers.map((server) => {
    const { host, port, user, password, database } = new Client({ connectionString: server.url });
    return { host, port, user, password, database };
  });
const addressesOf = (url: string) => parseDatabaseUrl(url).servers.map(({ address }) => address);

describe("the servers of a URL", () => {
  test.each<[url: string, addresses: readonly string[]]>([
    ["postgres://me:pw@a:5433/db", ["a:5433"]],
    ["postgresql://me:pw@a/db", ["a:5432"]],
    ["postgres://me:pw@a:5432,b:5433/db", ["a:5432", "b:5433"]],
    ["postgres://a,b,c/db", ["a:5432", "b:5432", "c:5432"]],
    ["postgres://[::1]:5433,[2001:db8::2]/db", ["::1:5433", "2001:db8::2:5432"]],
    ["postgres:///db?host=a,b&port=5432,5433", ["a:5432", "b:5433"]],
    ["postgres:///db?host=a,b&port=5444", ["a:5444", "b:5444"]],
    ["postgres:///db?host=/var/run/a,/var/run/b&user=me", ["/var/run/a:5432", "/var/run/b:5432"]],
    ["postgres://%2Fvar%2Frun%2Fa,b:5433/db", ["/var/run/a:5432", "b:5433"]],
    ["postgres://ignored:1/db?host=a,b", ["a:5432", "b:5432"]],
  ])("%s", (url, addresses) => expect(addressesOf(url)).toEqual(addresses));

  test("share user, password and database, each with its own host and port", () => {
    const both = { user: "me", password: "p@:w,", database: "live db" };
    expect(connectionsOf("postgres://me:p%40%3Aw%2C@a:5432,[::1]:5433/live%20db?sslmode=disable")).toEqual([
      { ...both, host: "a", port: 5432 },
      { ...both, host: "::1", port: 5433 },
    ]);
  });

  test("keep the TLS parameters of the URL", () => {
    const [first, second] = parseDatabaseUrl("postgres://a,b/db?sslmode=verify-full&target_session_attrs=any").servers;
    for (const server of [first, second]) expect(server?.url).toMatch(/\?sslmode=verify-full&host=[ab]$/);
  });
});

test.each<[attributes: string, several: boolean, single: boolean]>([
  ["", true, false],
  ["?target_session_attrs=any", false, false],
  ["?target_session_attrs=read-write", true, true],
  ["?target_session_attrs=primary", true, true],
])("a server must accept writes by '%s'", (attributes, several, single) => {
  expect(parseDatabaseUrl(`postgres://a,b/db${attributes}`).mustBeWritable).toBe(several);
  expect(parseDatabaseUrl(`postgres://a/db${attributes}`).mustBeWritable).toBe(single);
});

test.each<[url: string, fault: RegExp]>([
  ["mysql://me:s3cret@a/db", /^database_url must begin with postgres:\/\/$/],
  ["postgres://me:s3cret@a,,b/db", /names an empty host/],
  ["postgres://me:s3cret@a:5432,b:70000/db", /names an invalid port: ports are numbers from 1 to 65535/],
  ["postgres://me:s3/cret@a/db", /names an invalid port/],
  ["postgres://me:s3#cret@a/db", /contains a # that is not escaped as %23/],
  ["postgres://me:s3cret@::1/db", /names an invalid port/],
  ["postgres://me:s3cret@/db?host=a,b,c&port=1,2", /names 2 ports for 3 hosts/],
  [
    "postgres://me:s3cret@a,b/db?target_session_attrs=standby",
    /has an unusable target_session_attrs: Headgate needs to write, so it can be any/,
  ],
  ["postgres://me:s3cret@a,b/db?sslrootcert=/no/such.pem", /cannot be read: ENOENT/],
  [`postgres://me:s3cret@${Array.from({ length: 17 }, (_, n) => `h${n}`)}/db`, /names more than 16 servers/],
])("an unusable URL is refused without its password (case %#)", (url, fault) => {
  const load = () => loadConfig({ env: { HEADGATE_DATABASE_URL: url } });
  expect(load).toThrow(fault);
  expect(load).not.toThrow(/s3|cret/);
});
