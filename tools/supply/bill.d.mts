import type { Component } from "./components.mjs";

export interface Bill {
  readonly components: readonly {
    readonly name: string;
    readonly purl: string;
    readonly hashes?: readonly { readonly alg: string; readonly content: string }[];
  }[];
}
export function billOf(components: readonly Component[], version: string): Bill;
