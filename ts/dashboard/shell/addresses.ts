// Builds and checks the paths of pages.

import { percentDecoded } from "../../text/percent.ts";

/** Whether every part of a path can be decoded. */
export const isReadable = (path: string): boolean => percentDecoded(path) !== null;

/** The path of a page with an id, or any other text, in it. */
export function addressOf(page: "streams" | "deliveries", id: string): string {
  return `/dashboard/${page}/${encodeURIComponent(id)}`;
}

/** The path of a page with its filter; "" and null are left out. */
export function filteredAddress(path: string, filter: Readonly<Record<string, string | null>>): string {
  const given = Object.entries(filter).filter((entry): entry is [string, string] => Boolean(entry[1]));
  return given.length === 0 ? path : `${path}?${new URLSearchParams(given)}`;
}
