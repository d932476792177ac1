// nginx-rtmp as upstream: accepts every stream and records it unchanged. As relay it pushes what it receives, as
// terminator it accepts RTMP over TLS.
import { existsSync, mkdirSync, mkdtempSync, readdirSync, readFileSync, rmSync, writeFileSync } from "node:fs";
import { createConnection } from "node:net";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { type Child, start, until } from "./child.ts";
import { freePort } from "./free-port.ts";

export interface NginxRtmp {
  /** `rtmp://127.0.0.1:…/live` */
  readonly url: string;
  /** `rtmps://127.0.0.1:…/live`; null without a certificate. */
  readonly urlTls: string | null;
  readonly process: Child;
  /** Its error log so far. */
  log(): string;
  /** The recording of a stream; null if the upstream never got one. */
  recording(name: string): string | null;
  /** Whether everyone who published this name has left, so that its recording is complete. */
  hasEnded(name: string): boolean;
  /** Names of all recordings. */
  recordings(): readonly string[];
  stop(): Promise<void>;
}

export async function startNginxRtmp(
  options: {
    /** URL that it relays every stream to. */
    readonly push?: string;
    /** An http URL that it notifies of publishes, in the form from which that of the webhook derives. */
    readonly notify?: string;
    /** Port to listen on; a free one by default. */
    readonly port?: number;
    /** Accepts no publish, and closes without a message. */
    readonly refuses?: boolean;
    /** Ends a publish without audio and video messages for this many seconds. */
    readonly dropsIdleS?: number;
    /** PEM files. With them it accepts RTMPS as well. */
    readonly certificate?: { readonly cert: string; readonly key: string };
  } = {},
): Promise<NginxRtmp> {
  const folder = mkdtempSync(join(tmpdir(), "headgate-nginx-"));
  const records = join(folder, "records");
  mkdirSync(records, { mode: 0o777 });
  const port = options.port ?? (await freePort());
  const { push, certificate } = options;
  const portTls = certificate ? await freePort() : null;
  const terminator = `stream { server { listen 127.0.0.1:${portTls} ssl; proxy_pass 127.0.0.1:${port};
      ssl_certificate ${certificate?.cert}; ssl_certificate_key ${certificate?.key}; } }`;
  writeFileSync(
    join(folder, "nginx.conf"),
    `load_module /usr/lib/nginx/modules/ngx_rtmp_module.so;
     ${certificate ? "load_module /usr/lib/nginx/modules/ngx_stream_module.so;" : ""}
     daemon off; master_process off; worker_processes 1;
     error_log ${folder}/error.log info; pid ${folder}/nginx.pid;
     events { worker_connections 256; }
     rtmp { server { listen 127.0.0.1:${port}; chunk_size 4096; max_message 8M;
       application live { live on; wait_key off; record all; record_path ${records}; record_suffix .flv;
         ${notifications(options.notify)}
         ${options.refuses ? "deny publish all;" : ""}
         ${options.dropsIdleS === undefined ? "" : `drop_idle_publisher ${options.dropsIdleS}s;`}
         ${push === undefined ? "" : `push "${push}"; push_reconnect 1s;`} } } }
     ${certificate ? terminator : ""}`,
  );
  const nginx = start("/usr/sbin/nginx", [
    "-p",
    folder,
    "-c",
    join(folder, "nginx.conf"),
    "-e",
    join(folder, "start.log"),
  ]);
  await until("nginx listens", () => answers(port));
  const log = () => readFileSync(join(folder, "error.log"), "utf8");
  return {
    url: `rtmp://127.0.0.1:${port}/live`,
    urlTls: portTls === null ? null : `rtmps://127.0.0.1:${portTls}/live`,
    process: nginx,
    log,
    hasEnded(name) {
      const said = log();
      const published = [...said.matchAll(/ \*(\d+) publish: name='([^']*)'/g)].filter((line) => line[2] === name);
      return published.length > 0 && published.every(([, id]) => said.includes(` *${id} disconnect`));
    },
    recording(name) {
      const path = join(records, `${name}.flv`);
      return existsSync(path) ? path : null;
    },
    recordings: () => readdirSync(records),
    async stop() {
      nginx.kill("SIGCONT");
      nginx.kill("SIGTERM");
      await nginx.exit;
      rmSync(folder, { recursive: true, force: true });
    },
  };
}

function notifications(url: string | undefined): string {
  if (url === undefined) return "";
  return `notify_method post; notify_update_timeout 1s; on_publish ${url}; on_update ${url}; on_publish_done ${url};`;
}

function answers(port: number): Promise<boolean> {
  return new Promise((resolve) => {
    const socket = createConnection({ host: "127.0.0.1", port });
    socket.once("connect", () => resolve(true)).once("error", () => resolve(false));
    socket.once("close", () => socket.destroy());
    socket.once("connect", () => socket.destroy());
  });
}
