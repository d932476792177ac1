import type { Component } from "./components.mjs";

export function faultsOf(components: readonly Component[]): readonly string[];
export function isAllowed(licence: string): boolean;
