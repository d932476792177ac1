// Real load balancers in front of a service: by their PROXY protocol headers the webhook gets the broadcaster's address.
// They connect from 127.0.0.2, and the broadcaster from 127.0.0.1.
import { mkdtempSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { afterAll, beforeAll, expect, test } from "vitest";
import { type Child, start, until } from "../support/child.ts";
import { type Customer, startCustomer, testCertificates } from "../support/customer.ts";
import { broadcast } from "../support/ffmpeg.ts";
import { freePort } from "../support/free-port.ts";
import { type Headgate, startHeadgate } from "../support/headgate.ts";

const PROXY = "127.0.0.2";
const folder = mkdtempSync(join(tmpdir(), "headgate-proxies-"));
const programs: Child[] = [];
let customer: Customer;
let headgate: Headgate;
let ports: {
  readonly v1: number;
  readonly v2: number;
  readonly tls: number;
  readonly nginx: number;
  readonly bare: number;
};

beforeAll(async () => {
  customer = await startCustomer();
  const { cert, key } = testCertificates();
  writeFileSync(join(folder, "cert.pem"), cert);
  writeFileSync(join(folder, "key.pem"), key);
  headgate = await startHeadgate({
    customer,
    env: {
      HEADGATE_RTMP_TRUSTED_PROXIES: PROXY,
      HEADGATE_RTMP_TLS_CERT: join(folder, "cert.pem"),
      HEADGATE_RTMP_TLS_KEY: join(folder, "key.pem"),
      HEADGATE_RTMP_TLS_PORT: "0",
    },
  });
  const [v1, v2, tls, nginx, bare] = [
    await freePort(),
    await freePort(),
    await freePort(),
    await freePort(),
    await freePort(),
  ];
  ports = { v1, v2, tls, nginx, bare };
  const to = (url: string | null) => new URL((url ?? "").replace(/^rtmps?/, "http")).host;
  const listen = (name: string, port: number, server: string, word: string) => `listen ${name}
    bind 127.0.0.1:${port}
    server one ${server} source ${PROXY} ${word}
`;
  writeFileSync(
    join(folder, "haproxy.cfg"),
    `defaults
    mode tcp
    timeout connect 5s
    timeout client 1m
    timeout server 1m
${listen("v1", v1, to(headgate.rtmp), "send-proxy")}${listen("v2", v2, to(headgate.rtmp), "send-proxy-v2 proxy-v2-options crc32c,unique-id")}${listen("tls", tls, to(headgate.rtmps), "send-proxy-v2")}${listen("bare", bare, to(headgate.rtmp), "")}`,
  );
  writeFileSync(
    join(folder, "nginx.conf"),
    `load_module /usr/lib/nginx/modules/ngx_stream_module.so;
     daemon off; master_process off; error_log ${folder}/error.log; pid ${folder}/pid; events {}
     stream { server { listen 127.0.0.1:${nginx}; proxy_pass ${to(headgate.rtmp)}; proxy_protocol on; proxy_bind ${PROXY}; } }`,
  );
  programs.push(start("/usr/sbin/haproxy", ["-db", "-f", join(folder, "haproxy.cfg")]));
  const words = ["-p", folder, "-c", join(folder, "nginx.conf"), "-e", join(folder, "start.log")];
  programs.push(start("/usr/sbin/nginx", words));
}, 120_000);
afterAll(async () => {
  for (const program of programs) program.kill("SIGKILL");
  await headgate?.stop();
  await customer?.close();
  rmSync(folder, { recursive: true, force: true });
});

async function addressBy(url: string): Promise<string | null> {
  const before = customer.calls("publish").length;
  const name = await headgate.newStream();
  const encoder = broadcast(`${url}/${name}`, { seconds: 1, size: "160x90" });
  const { body } = await customer.received("publish", before + 1);
  expect(await encoder.exit, encoder.stderr()).toBe(0);
  return new URLSearchParams(body).get("addr");
}

test.each(["v1", "v2", "nginx"] as const)(
  "the address of a broadcaster behind %s",
  async (proxy) => {
    expect(await addressBy(`rtmp://127.0.0.1:${ports[proxy]}/live`)).toBe("127.0.0.1");
  },
  30_000,
);

test("the header comes before TLS", async () => {
  expect(await addressBy(`rtmps://127.0.0.1:${ports.tls}/live`)).toBe("127.0.0.1");
}, 30_000);

test("a trusted proxy without a header is refused, and the log says why", async () => {
  const encoder = broadcast(`rtmp://127.0.0.1:${ports.bare}/live/cam`, { seconds: 2 });
  expect(await encoder.exit).not.toBe(0);
  const said = () => /"address":"127\.0\.0\.2","code":"proxy_header"/.test(headgate.process.stderr());
  await until("the line in the log", said);
}, 30_000);
