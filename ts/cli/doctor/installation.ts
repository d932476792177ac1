// Doctor: whether the installation is complete: the library of the media core, and the files of the pages.
import { existsSync } from "node:fs";
import { fileURLToPath } from "node:url";
import { reasonOf } from "../../reason.ts";
import { insecureNode, NODE_REMEDY } from "../node-version.ts";
import { type Finding, good } from "./finding.ts";

/** Output of scripts/build.mjs, both for the sources (`ts/cli`) and for the build (`dist/cli`). */
const BUILT = new URL("../../../dist/", import.meta.url);
const PAGES = ["dashboard/page.html", "broadcast/page.html", "sdk/webcaster.mjs", "swagger-ui/swagger-ui-bundle.js"];

/** The media core and its codecs are one library: it either loads or fails to. */
export async function addon(): Promise<Finding> {
  const what = "media core (RTMP, WebRTC, Opus, AAC)";
  const why = "without it no media can be received: headgate serve exits with 1";
  const remedy = "install the package for this system and processor again, or build it in a clone: npm start";
  try {
    const { refusesEmptyOffer } = await import("../../media.ts");
    if (refusesEmptyOffer()) return good(what, "loads and works");
    return { what, state: "bad", detail: "loads, but accepts an empty offer", why, remedy };
  } catch (error) {
    return { what, state: "bad", detail: reasonOf(error), why, remedy };
  }
}

/** The Node that runs this; no finding for Deno and Bun. */
export function nodeVersion(versions: NodeJS.ProcessVersions = process.versions): readonly Finding[] {
  if (versions["deno"] !== undefined || versions["bun"] !== undefined) return [];
  const insecure = insecureNode(versions);
  if (insecure === null) return [good("Node", versions.node)];
  const why = "known faults of its HTTP and TLS can be used by anyone who reaches the ports";
  return [{ what: "Node", state: "warning", detail: insecure, why, remedy: NODE_REMEDY }];
}

/** `folder`: the folder of the built files. */
export function pages(folder = BUILT): Finding {
  const what = "pages";
  const missing = PAGES.filter((name) => !existsSync(new URL(name, folder)));
  if (missing.length === 0) return good(what, "dashboard, broadcast page, browser client and API page are present");
  return {
    what,
    state: "bad",
    detail: `missing in ${fileURLToPath(folder)}: ${missing.join(", ")}`,
    why: "people who open these pages get an error",
    remedy: "build them (npm start does), or install the release again",
  };
}
