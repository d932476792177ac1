// The form parsers with which customers read webhook bodies; the real ones where they can run here.
import { execFileSync } from "node:child_process";
import { join, resolve } from "node:path";
import { parse as parseQuery } from "node:querystring";
import { Hono } from "hono";
import qs from "qs";
import { providePython } from "../../scripts/python.mjs";

/** A field's value as a parser returns it, one character per byte of its UTF-8. */
export type Fields = Readonly<Record<string, string>>;
/** Null: it rejects the body, and its server answers with 400. */
type Parser = (bodies: readonly Buffer[]) => Promise<readonly (Fields | null)[]> | readonly (Fields | null)[];

const FOLDER = join("test", "fixtures", "form-parsers");
/** Kept between runs, because Go builds its standard library the first time. */
const GO_CACHE = resolve(".build", "go-cache");
const OUTPUT_LIMIT_BYTES = 1 << 30;

/** A program that answers lines of base64 with lines of JSON whose names and values are base64. */
function program(command: () => string, ...args: string[]): Parser {
  return (bodies) => {
    const input = bodies.map((body) => `${body.toString("base64")}\n`).join("");
    const env = { ...process.env, GOCACHE: GO_CACHE, GO111MODULE: "off" };
    const options = { input, env, encoding: "utf8", maxBuffer: OUTPUT_LIMIT_BYTES } as const;
    const lines = execFileSync(command(), args, options).trim().split("\n");
    const text = (encoded: string) => Buffer.from(encoded, "base64").toString("latin1");
    return lines.map((line) => {
      const fields = JSON.parse(line) as Fields | null;
      return fields && Object.fromEntries(Object.entries(fields).map(([name, value]) => [text(name), text(value)]));
    });
  };
}

export const latin1 = (value: string) => Buffer.from(value, "utf8").toString("latin1");
const utf8 = (body: Buffer) => new TextDecoder().decode(body);
/** The first of repeated values: what a broadcaster puts first must not matter. Non-strings are left out. */
const firstOf = (fields: object) =>
  Object.fromEntries(
    Object.entries(fields).map(([name, value]): [string, string] => {
      const first: unknown = Array.isArray(value) ? value[0] : value;
      return [name, typeof first === "string" ? latin1(first) : ""];
    }),
  );
/** As body-parser calls it for Express. */
const express = (options: qs.IParseOptions) => (bodies: readonly Buffer[]) =>
  bodies.map((body) => firstOf(qs.parse(utf8(body), { allowPrototypes: true, depth: 32, ...options })));

const hono = new Hono().post("/", async (context) => context.json(await context.req.parseBody()));
const post = (body: Buffer) => ({
  method: "POST",
  headers: { "content-type": "application/x-www-form-urlencoded" },
  body: new Uint8Array(body),
});

/** `HttpUtility.UrlDecode`, and joining of values whose names differ only in case, as ASP.NET documents it. */
function aspNet(body: Buffer): Fields {
  const fields = new Map<string, string[]>();
  for (const pair of body.toString("latin1").split("&")) {
    const [name = "", value = ""] = pair.split(/=(.*)/s).map((part) => {
      const units = part
        .replaceAll("+", " ")
        .replace(/%u([0-9a-f]{4})/gi, (_, hex: string) => latin1(String.fromCharCode(Number.parseInt(hex, 16))));
      return units.replace(/%([0-9a-f]{2})/gi, (_, hex: string) => String.fromCharCode(Number.parseInt(hex, 16)));
    });
    const key = name.toLowerCase();
    fields.set(key, [...(fields.get(key) ?? []), value]);
  }
  return Object.fromEntries([...fields].map(([name, values]) => [name, values.join(",")]));
}

export const PARSERS: Readonly<Record<string, Parser>> = {
  PHP: program(() => "php", "-d", "display_errors=stderr", join(FOLDER, "parse.php")),
  Python: program(() => "python3", join(FOLDER, "parse.py")),
  Django: program(providePython, join(FOLDER, "parse-django.py")),
  Rack: program(() => "ruby", join(FOLDER, "parse.rb")),
  Go: program(() => "go", "run", join(FOLDER, "parse.go")),
  "Node, URLSearchParams": (bodies) =>
    bodies.map((body) => {
      const fields = new URLSearchParams(utf8(body));
      return Object.fromEntries([...fields.keys()].map((name) => [name, latin1(fields.get(name) ?? "")]));
    }),
  "Node, querystring": (bodies) => bodies.map((body) => firstOf(parseQuery(utf8(body)))),
  "Express, qs": express({ arrayLimit: 100 }),
  "qs with dots": express({ allowDots: true, comma: true, ignoreQueryPrefix: true }),
  "Request.formData": async (bodies) =>
    await Promise.all(
      bodies.map(async (body) => {
        const fields = await new Request("https://customer.example/", post(body)).formData();
        return Object.fromEntries([...fields.keys()].map((name) => [name, latin1(String(fields.get(name) ?? ""))]));
      }),
    ),
  Hono: async (bodies) =>
    await Promise.all(
      bodies.map(async (body) => firstOf((await (await hono.request("/", post(body))).json()) as object)),
    ),
  "ASP.NET, its rules": (bodies) => bodies.map(aspNet),
};
