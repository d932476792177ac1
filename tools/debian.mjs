// `node tools/debian.mjs FOLDER OUT.deb`: makes a Debian package of a built Headgate with dpkg-deb alone. FOLDER is
// this checkout (`.`) after `npm start`, or an installation. The package includes Node 24, the one that is pinned for tests or
// the binary that NODE names, and needs none from the system; with NODE=system it needs the system's, which Debian 12 does
// not have.
import { execFileSync } from "node:child_process";
import { createHash } from "node:crypto";
import {
  chmodSync,
  copyFileSync,
  lstatSync,
  mkdirSync,
  mkdtempSync,
  readdirSync,
  readFileSync,
  rmSync,
  statSync,
  writeFileSync,
} from "node:fs";
import { tmpdir } from "node:os";
import { dirname, join } from "node:path";
import { gzipSync } from "node:zlib";
import { BuildError, root, run } from "../scripts/build.mjs";
import { provideRuntime } from "../scripts/runtimes.mjs";
import { architectureOf, copyContents, glibcOf, machineOf } from "./debian/contents.mjs";

const SOURCES = join(root, "deploy");
const NODE = "usr/lib/headgate/bin/node";
const SETTINGS = "etc/headgate/headgate.toml";
/** Provide systemd-sysusers and systemd-tmpfiles for postinst; setpriv and deb-systemd-helper are essential. */
const FOR_POSTINST = ["systemd | systemd-standalone-sysusers", "systemd | systemd-standalone-tmpfiles"];

/** Makes the package.
 *  @param {string} folder
 *  @param {string} out path of the package
 *  @param {string | undefined} node path of a Node to include; the libraries it needs are part of every Debian
 *  @throws {BuildError} if the folder is not built, or a program fails */
export function makePackage(folder, out, node) {
  const tree = mkdtempSync(join(tmpdir(), "headgate-deb-"));
  try {
    const home = join(tree, "usr/lib/headgate");
    copyContents(folder, home);
    const architecture = architectureOf(home);
    if (node !== undefined) {
      const of = machineOf(node);
      if (of !== architecture)
        throw new BuildError(`${node} is for ${of ?? "no Linux"}, and the addons are for ${architecture}`);
      put(tree, NODE, readFileSync(node));
    }
    install(tree);
    const { version } = JSON.parse(readFileSync(join(home, "package.json"), "utf8"));
    // A pre-release precedes its release: Debian marks that by a tilde.
    const debianVersion = version.replace("-", "~");
    document(tree, debianVersion, node !== undefined);
    settle(tree);
    const files = filesOf(tree);
    const needs = { glibc: glibcOf(home), bringsNode: node !== undefined };
    control(tree, files, { version: debianVersion, architecture, ...needs });
    run("dpkg-deb", ["--root-owner-group", "--build", tree, out]);
  } finally {
    rmSync(tree, { recursive: true, force: true });
  }
}

function put(tree, path, content, mode = 0o644) {
  mkdirSync(dirname(join(tree, path)), { recursive: true });
  writeFileSync(join(tree, path), content, { mode });
}

/** The package's own files, besides the service. */
function install(tree) {
  const take = (from, to) => put(tree, to, readFileSync(join(SOURCES, from)));
  take("debian/headgate", "usr/bin/headgate");
  take("debian/headgate.toml", SETTINGS);
  take("debian/headgate.tmpfiles", "usr/lib/tmpfiles.d/headgate.conf");
  take("systemd/headgate.sysusers", "usr/lib/sysusers.d/headgate.conf");
  const unit = readFileSync(join(SOURCES, "systemd/headgate.service"), "utf8");
  const command = "/usr/bin/node /opt/headgate/deploy/headgate.mjs";
  if (!unit.includes(command)) throw new BuildError(`the unit does not run ${command}`);
  put(tree, "lib/systemd/system/headgate.service", unit.replaceAll(command, "/usr/bin/headgate"));
}

function document(tree, version, bringsNode) {
  const { doc, maintainer, date } = said();
  put(tree, `${doc}/copyright`, readFileSync(join(SOURCES, "debian/copyright")));
  const log = `headgate (${version}) stable; urgency=medium\n\n  * ${version}: see docs of this version.\n\n -- ${maintainer}  ${date}\n`;
  put(tree, `${doc}/changelog.gz`, gzipSync(log, { level: 9 }));
  const overrides = readFileSync(join(SOURCES, "debian/lintian-overrides"), "utf8");
  // Node is included as its authors build and test it; it is not linked again here.
  const ofNode = ["embedded-library *", "unstripped-binary-or-object", "hardening-no-pie"];
  const more = bringsNode ? ofNode.map((tag) => `headgate: ${tag} [${NODE}]\n`) : [];
  put(tree, "usr/share/lintian/overrides/headgate", overrides + more.join(""));
}

/** The packager's name and address, from the variables that Debian's tools use. */
function said() {
  const { DEBFULLNAME = "Headgate", DEBEMAIL = "packages@headgate.invalid" } = process.env;
  const seconds = process.env.SOURCE_DATE_EPOCH ?? execFileSync("date", ["+%s"], { encoding: "utf8" }).trim();
  const date = execFileSync("date", ["--utc", "--rfc-email", `--date=@${seconds}`], { encoding: "utf8" }).trim();
  return { doc: "usr/share/doc/headgate", maintainer: `${DEBFULLNAME} <${DEBEMAIL}>`, date };
}

/** Sets modes as Debian requires, whatever the umask: only files in bin folders and Node itself are executable. */
function settle(tree) {
  const visit = (path) => {
    const whole = join(tree, path);
    if (lstatSync(whole).isDirectory()) {
      chmodSync(whole, 0o755);
      for (const name of readdirSync(whole)) visit(join(path, name));
    } else {
      const isProgram = ["usr/bin/headgate", NODE].includes(path);
      chmodSync(whole, path === SETTINGS ? 0o640 : isProgram ? 0o755 : 0o644);
    }
  };
  visit("");
}

function filesOf(tree) {
  const names = readdirSync(tree, { recursive: true, encoding: "utf8" }).sort();
  return names.filter((name) => statSync(join(tree, name)).isFile());
}

/** The field Depends: what must be installed before the package.
 *  @param {string} glibc that the addons need
 *  @param {boolean} bringsNode */
export function dependsOf(glibc, bringsNode) {
  const node = bringsNode ? "libstdc++6 (>= 12)" : "nodejs (>= 20.19)";
  return [`libc6 (>= ${glibc})`, "libgcc-s1", node, ...FOR_POSTINST].join(", ");
}

function control(tree, files, { version, architecture, glibc, bringsNode }) {
  const bytes = files.reduce((sum, name) => sum + statSync(join(tree, name)).size, 0);
  const fields = [
    ["Package", "headgate"],
    ["Version", version],
    ["Architecture", architecture],
    ["Maintainer", said().maintainer],
    ["Section", "video"],
    ["Priority", "optional"],
    ["Installed-Size", Math.ceil(bytes / 1024)],
    ["Depends", dependsOf(glibc, bringsNode)],
    ["Suggests", "postgresql"],
    ["Description", "live ingest by RTMP and WHIP"],
  ];
  const description = [
    "Headgate takes live streams in by RTMP and from browsers by WebRTC (WHIP), asks",
    "your own server whether each one may go ahead, and passes them on as RTMP.",
  ];
  const lines = [...fields.map(([name, value]) => `${name}: ${value}`), ...description.map((line) => ` ${line}`)];
  put(tree, "DEBIAN/control", `${lines.join("\n")}\n`);
  put(tree, "DEBIAN/conffiles", `/${SETTINGS}\n`);
  const sums = files
    .filter((name) => name !== SETTINGS)
    .map(
      (name) =>
        `${createHash("md5")
          .update(readFileSync(join(tree, name)))
          .digest("hex")}  ${name}`,
    );
  put(tree, "DEBIAN/md5sums", `${sums.join("\n")}\n`);
  for (const name of ["postinst", "prerm", "postrm"]) {
    copyFileSync(join(SOURCES, "debian", name), join(tree, "DEBIAN", name));
    chmodSync(join(tree, "DEBIAN", name), 0o755);
  }
  chmodSync(join(tree, "DEBIAN"), 0o755);
}

if (process.argv[1] === import.meta.filename) {
  const [folder, out] = process.argv.slice(2);
  if (folder === undefined || out === undefined) {
    console.error("node tools/debian.mjs FOLDER OUT.deb   (NODE=/path/to/node: another Node; NODE=system: none)");
    process.exit(2);
  }
  try {
    const { NODE: given } = process.env;
    makePackage(folder, out, given === "system" ? undefined : given || provideRuntime("node-24")[0]);
  } catch (error) {
    if (!(error instanceof BuildError)) throw error;
    console.error(`headgate: ${error.message}`);
    process.exit(1);
  }
}
