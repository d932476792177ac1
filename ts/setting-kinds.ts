// Parses the value of a setting, from text and from TOML. The settings are defined in settings.ts.
import { isIP } from "node:net";
import { isNetwork } from "./network.ts";

/** A kind of value. Both readers return undefined for a value that is not as `wanted`. */
export interface Kind<T> {
  /** Completes "must be …". */
  readonly wanted: string;
  readonly fromText: (text: string) => T | undefined;
  readonly fromToml: (value: unknown) => T | undefined;
}

export const text: Kind<string> = textWhere("text", (value) => value !== "");
export const optionalText: Kind<string | null> = text;
export const port = integer(0, 65_535, "a port from 0 to 65535 (0: any free one)");
/** null: the port is not served. */
export const portOrOff: Kind<number | null> = {
  wanted: "a port from 0 to 65535 (0: any free one), or off",
  fromText: (value) => (value === "off" ? null : port.fromText(value)),
  fromToml: (value) => (value === "off" ? null : port.fromToml(value)),
};
export const onOff: Kind<boolean> = {
  wanted: "true or false",
  fromText: (value) =>
    /^(true|on|yes|1)$/i.test(value) ? true : /^(false|off|no|0)$/i.test(value) ? false : undefined,
  fromToml: (value) => (typeof value === "boolean" ? value : undefined),
};
/** The name of a custom argument; "off", or an empty string in TOML, for none. */
export const argumentName = textWhere("letters, digits, - and _, at most 32, or off", (value) =>
  /^[\w-]{0,32}$/.test(value),
);
export const hosts = list("host names or addresses", (value) => /^[^\s/@?#]+$/.test(value));
export const addresses = list("IP addresses", (value) => isIP(value) !== 0);
export const networks = list("IP addresses or networks such as 10.0.0.0/8", isNetwork);
export const iceServers = list("stun:, turn: or turns: URIs", (value) => /^(stuns?|turns?):[^\s<>,;"]+$/.test(value));
export const perSecond = integer(0, 1_000_000, "a number from 0 to 1000000 (0: no limit)");
export const rtmpUrls = list("RTMP URLs (rtmp:// or rtmps://)", (value) => /^rtmps?:\/\/[^\s/]+\/\S+$/.test(value));
export const webUrl: Kind<string | null> = textWhere("an http or https URL without path", (value) =>
  /^https?:\/\/[^\s/?#@]+\/?$/.test(value),
);
export const apiKey: Kind<string | null> = textWhere("24 to 128 characters that an HTTP header can carry", (value) =>
  /^[\x21-\x7e][\x20-\x7e]{22,126}[\x21-\x7e]$/.test(value),
);
export const password: Kind<string | null> = textWhere("12 to 256 bytes of text", (value) => {
  return [...value].length >= 12 && Buffer.byteLength(value) <= 256;
});
/** Tokens as HTTP defines them (RFC 9110 5.6.2), in lower case for comparison. */
export const headerNames: Kind<readonly string[]> = lowerCase(
  list("HTTP header names", (value) => /^[!#$%&'*+.^_`|~0-9A-Za-z-]{1,64}$/.test(value)),
);

function textWhere(wanted: string, accepts: (value: string) => boolean): Kind<string> {
  const read = (value: unknown) => (typeof value === "string" && accepts(value) ? value : undefined);
  return { wanted, fromText: read, fromToml: read };
}

export function integer(least: number, most: number, wanted: string): Kind<number> {
  const read = (value: number) => (Number.isInteger(value) && value >= least && value <= most ? value : undefined);
  return {
    wanted,
    fromText: (value) => (/^\d+$/.test(value) ? read(Number(value)) : undefined),
    fromToml: (value) => (typeof value === "number" ? read(value) : undefined),
  };
}

export function oneOf<const T extends string>(...values: readonly T[]): Kind<T> {
  const read = (value: unknown) => values.find((known) => known === value);
  return { wanted: values.join(", "), fromText: read, fromToml: read };
}

/** In text form the members are separated by commas. */
function list(wanted: string, accepts: (value: string) => boolean): Kind<readonly string[]> {
  const read = (values: readonly unknown[]) =>
    values.every((value): value is string => typeof value === "string" && accepts(value)) ? values : undefined;
  return {
    wanted: `a list of ${wanted}`,
    fromText: (value) =>
      read(
        value
          .split(",")
          .map((part) => part.trim())
          .filter((part) => part !== ""),
      ),
    fromToml: (value) => (Array.isArray(value) ? read(value) : undefined),
  };
}

function lowerCase({ wanted, fromText, fromToml }: Kind<readonly string[]>): Kind<readonly string[]> {
  const lower = (values: readonly string[] | undefined) => values?.map((value) => value.toLowerCase());
  return { wanted, fromText: (value) => lower(fromText(value)), fromToml: (value) => lower(fromToml(value)) };
}

/** Every value with its full name; an empty table is yielded as a value, so that it is noticed. */
export function* flatten(table: Record<string, unknown>, prefix = ""): Generator<readonly [string, unknown]> {
  for (const [name, value] of Object.entries(table)) {
    if (isTable(value) && Object.keys(value).length > 0) yield* flatten(value, `${prefix}${name}.`);
    else yield [prefix + name, value];
  }
}

/** Whether a TOML value is a table. */
export function isTable(value: unknown): value is Record<string, unknown> {
  return typeof value === "object" && value !== null && !Array.isArray(value) && !(value instanceof Date);
}
