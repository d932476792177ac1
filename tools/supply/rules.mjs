// What may be part of Headgate: permissive licences, archives of the registries only, and only one version of packages
// that hold state.
import satisfies from "spdx-satisfies";

/** @import { Component } from "./components.mjs" */

/** Permissive licences. Read a licence before adding it. */
const ALLOWED = [
  "0BSD",
  "Apache-2.0",
  "Apache-2.0 WITH LLVM-exception",
  "BSD-2-Clause",
  "BSD-3-Clause",
  "ISC",
  "MIT",
  "MIT-0",
  "Unicode-3.0",
  "Unlicense",
  "Zlib",
];

/** What is wrong with them, one line each. @param {readonly import("./components.mjs").Component[]} components */
export function faultsOf(components) {
  return components.flatMap((component) => {
    const of = `${component.kind} ${component.name} ${component.version}`;
    return [
      ...(isAllowed(component.licence) ? [] : [`${of}: licence "${component.licence}" is not among the allowed ones`]),
      ...(component.isFromRegistry ? [] : [`${of}: does not come from its registry`]),
      ...(component.checksum === null ? [`${of}: the lock file has no checksum`] : []),
    ];
  });
}

/** @type {(licence: string) => boolean} */
export function isAllowed(licence) {
  try {
    return satisfies(licence, ALLOWED);
  } catch {
    return false; // none, or no SPDX expression
  }
}
