// OBS without a screen: its configuration in a folder of its own, on a virtual display; it starts streaming
// by itself.
import { mkdirSync, readFileSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { start, until } from "../support/child.ts";
import type { Running } from "./publishers.ts";

/** OBS exits without confirmation when told to end; if it shows an error instead, it is killed. */
const END_LIMIT_MS = 8_000;
/** Time until it connects, on a busy machine, ms. */
const START_LIMIT_MS = 60_000;

/** Starts OBS, which streams to `url` immediately, and plays `file` in its scene; `folder` is its home. */
export async function startObs(options: {
  readonly folder: string;
  /** `rtmp://…/live/NAME?ARGUMENTS` */
  readonly url: string;
  readonly file: string;
  readonly bFrames: number;
}): Promise<Running & { readonly exit: Promise<unknown> }> {
  const { folder } = options;
  configure(options);
  const display = join(folder, "display");
  // Prints the number of the free display that it found.
  const screen = start("sh", ["-c", `exec Xvfb -displayfd 3 -screen 0 640x480x24 -nolisten tcp 3>'${display}'`]);
  const number = await until("a display", () => /^(\d+)\n/.exec(readText(display))?.[1]);
  const obs = start("obs", [..."--startstreaming --profile t --collection t --multi --minimize-to-tray".split(" ")], {
    env: {
      ...{ PATH: process.env.PATH, HOME: folder, XDG_CONFIG_HOME: folder, DISPLAY: `:${number}` },
      ...{ LIBGL_ALWAYS_SOFTWARE: "1", QT_QPA_PLATFORM: "xcb", XDG_RUNTIME_DIR: folder },
    },
  });
  obs.exit.finally(() => screen.kill("SIGTERM"));
  const log = () => obs.stdout() + obs.stderr();
  const connects = () => log().includes("Connecting to RTMP URL");
  await until("OBS connects", connects, START_LIMIT_MS).catch((error: Error) => {
    obs.kill("SIGKILL");
    throw new Error(`${error.message}; it said: ${log().slice(-1_500)}`);
  });
  return {
    exit: obs.exit,
    ended: new Promise(() => {}),
    log,
    async stop() {
      obs.kill("SIGINT");
      const last = setTimeout(() => obs.kill("SIGKILL"), END_LIMIT_MS);
      await obs.exit;
      clearTimeout(last);
      await screen.exit;
    },
  };
}

function configure({ folder, url, file, bFrames }: Parameters<typeof startObs>[0]): void {
  const home = join(folder, "obs-studio");
  const write = (path: string, text: string) => {
    mkdirSync(join(home, path, ".."), { recursive: true });
    writeFileSync(join(home, path), text);
  };
  write(
    "global.ini",
    "[General]\nFirstRun=true\nConfirmOnExit=false\nEnableAutoUpdates=false\n" +
      "[Basic]\nProfile=t\nProfileDir=t\nSceneCollection=t\nSceneCollectionFile=t\n",
  );
  write(
    "basic/profiles/t/basic.ini",
    "[General]\nName=t\n[Video]\nBaseCX=320\nBaseCY=180\nOutputCX=320\nOutputCY=180\nFPSType=1\nFPSInt=25\n" +
      "[SimpleOutput]\nVBitrate=300\nStreamEncoder=x264\nUseAdvanced=true\nPreset=ultrafast\n" +
      `x264Settings=keyint=50 bframes=${bFrames}\n[Output]\nReconnect=false\n`,
  );
  const cut = url.lastIndexOf("/live/") + "/live".length;
  const settings = { server: url.slice(0, cut), key: url.slice(cut + 1) };
  write("basic/profiles/t/service.json", JSON.stringify({ type: "rtmp_custom", settings }));
  const media = { id: "ffmpeg_source", name: "File", settings: { local_file: file, looping: true } };
  const scene = {
    id: "scene",
    name: "Scene",
    settings: { items: [{ id: 1, name: "File", visible: true }], id_counter: 1 },
  };
  write(
    "basic/scenes/t.json",
    JSON.stringify({
      ...{ name: "t", current_scene: "Scene", current_program_scene: "Scene" },
      ...{ scene_order: [{ name: "Scene" }], sources: [media, scene] },
    }),
  );
}

function readText(path: string): string {
  try {
    return readFileSync(path, "utf8");
  } catch {
    return "";
  }
}
