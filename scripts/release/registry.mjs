// An npm registry on loopback with the packages of a release and the installed packages that they need, so that `npm
// install headgate` works as it will with the real one. What it does not have is fetched from the registry that this
// machine's npm uses, or not at all.
import { execFileSync } from "node:child_process";
import { createHash } from "node:crypto";
import { once } from "node:events";
import { existsSync, readdirSync, readFileSync } from "node:fs";
import { createServer } from "node:http";
import { join } from "node:path";
import { root } from "../build.mjs";

const TAR_LIMIT_BYTES = 1 << 28;

/** Our packages are only served from the release: in other registries these names may belong to others. */
const OWN = /^headgate(-|$)/;

/** @typedef {{ url: string, asked: string[], close(): Promise<void> }} Registry `asked`: names that it did not have */

/** `folder`: of a release; `elsewhere`: a registry for the rest, without a trailing slash; null for none.
 *  @param {string} folder
 *  @param {string | null} elsewhere
 *  @returns {Promise<Registry>} */
export async function openRegistry(folder, elsewhere = null) {
  const packages = new Map([...installed(), ...released(folder)]);
  const asked = [];
  const server = createServer((request, response) => {
    const path = decodeURIComponent((request.url ?? "/").slice(1));
    const [name = "", file] = path.split("/-/");
    const versions = packages.get(name);
    if (versions === undefined) {
      asked.push(name);
      if (elsewhere === null || OWN.test(name)) response.writeHead(404).end("{}");
      else response.writeHead(302, { location: `${elsewhere}${request.url}` }).end();
    } else if (file === undefined) {
      response.writeHead(200, { "content-type": "application/json" });
      response.end(JSON.stringify(documentOf(name, versions, `http://${request.headers.host}`)));
    } else {
      const archive = versions.find(({ manifest }) => file === `${manifest.version}.tgz`)?.archive();
      response.writeHead(archive === undefined ? 404 : 200).end(archive);
    }
  });
  server.listen(0, "127.0.0.1");
  await once(server, "listening");
  const { port } = /** @type {import("node:net").AddressInfo} */ (server.address());
  const url = `http://127.0.0.1:${port}`;
  return { url, asked, close: () => new Promise((resolve) => server.close(() => resolve(undefined))) };
}

/** The package document that npm reads. */
function documentOf(name, versions, here) {
  const all = versions.map(({ manifest, archive }) => {
    const integrity = `sha512-${createHash("sha512").update(archive()).digest("base64")}`;
    return [
      manifest.version,
      { ...manifest, dist: { tarball: `${here}/${name}/-/${manifest.version}.tgz`, integrity } },
    ];
  });
  return { name, "dist-tags": { latest: all[0]?.[0] }, versions: Object.fromEntries(all) };
}

/** The archives of a release, by name. */
function released(folder) {
  const names = readdirSync(folder).filter((name) => name.endsWith(".tgz"));
  return names.map((name) => {
    const path = join(folder, name);
    const manifest = JSON.parse(execFileSync("tar", ["-xzOf", path, "package/package.json"], { encoding: "utf8" }));
    return /** @type {const} */ ([manifest.name, [{ manifest, archive: () => readFileSync(path) }]]);
  });
}

/** The production packages that are installed here, by name; some in two versions. */
function installed() {
  const { packages } = JSON.parse(readFileSync(join(root, "package-lock.json"), "utf8"));
  const found = new Map();
  for (const [path, { dev }] of Object.entries(packages)) {
    const folder = join(root, path);
    if (path === "" || dev || !existsSync(folder)) continue;
    const manifest = JSON.parse(readFileSync(join(folder, "package.json"), "utf8"));
    let made;
    const archive = () => {
      made ??= packed(folder);
      return made;
    };
    found.set(manifest.name, [...(found.get(manifest.name) ?? []), { manifest, archive }]);
  }
  return found;
}

function packed(folder) {
  const words = ["-czf", "-", "--exclude=./node_modules", `--transform=s,^\\.,package,`, "-C", folder, "."];
  return execFileSync("tar", words, { maxBuffer: TAR_LIMIT_BYTES });
}

/** The registry that this machine's npm uses.
 *  @returns {string} */
export const configuredRegistry = () =>
  execFileSync("npm", ["config", "get", "registry"], {
    encoding: "utf8",
    stdio: ["ignore", "pipe", "ignore"],
    cwd: "/",
  })
    .trim()
    .replace(/\/$/, "");
