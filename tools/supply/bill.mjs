// The bill of materials in the format that scanners read: CycloneDX 1.6 (ECMA-424). The same components give the same
// bill.

/** @import { Component } from "./components.mjs" */
/** @typedef {{
 *    readonly components: readonly {
 *      readonly name: string;
 *      readonly purl: string;
 *      readonly hashes?: readonly { readonly alg: string; readonly content: string }[];
 *    }[];
 *  }} Bill */

/** @param {readonly import("./components.mjs").Component[]} components */
export function billOf(components, version) {
  const own = `pkg:generic/headgate@${version}`;
  return {
    $schema: "http://cyclonedx.org/schema/bom-1.6.schema.json",
    bomFormat: "CycloneDX",
    specVersion: "1.6",
    version: 1,
    metadata: {
      component: {
        type: "application",
        "bom-ref": own,
        name: "headgate",
        version,
        licenses: [{ expression: "Apache-2.0" }],
        purl: own,
      },
    },
    components: components.map(({ kind, name, version: of, licence, checksum }) => {
      const purl = purlOf(kind, name, of);
      return {
        type: "library",
        "bom-ref": purl,
        name,
        version: of,
        ...(licence === "" ? {} : { licenses: [{ expression: licence }] }),
        purl,
        ...(checksum === null ? {} : { hashes: [hashOf(checksum)] }),
      };
    }),
  };
}

/** A package URL (purl-spec): the scope of an npm package is its namespace. */
function purlOf(kind, name, version) {
  return `pkg:${kind}/${name.replace(/^@/, "%40")}@${version}`;
}

function hashOf(checksum) {
  const [, algorithm, base64] = /^(sha\d+)-(.+)$/.exec(checksum) ?? [];
  if (algorithm === undefined) return { alg: "SHA-256", content: checksum };
  return { alg: algorithm.replace("sha", "SHA-"), content: Buffer.from(base64, "base64").toString("hex") };
}
