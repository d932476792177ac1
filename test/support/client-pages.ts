// The site of test/fixtures/whip-clients.html: the page, and the npm clients it uses, each as one module.
import { readFileSync } from "node:fs";
import { createServer } from "node:http";
import type { AddressInfo } from "node:net";
import { build } from "vite";

export interface ClientPages {
  /** `http://127.0.0.1:…` */
  readonly origin: string;
  close(): Promise<void>;
}

export async function serveClientPages(): Promise<ClientPages> {
  const files: Record<string, { readonly type: string; readonly body: string }> = {
    "/": { type: "text/html", body: readFileSync("test/fixtures/whip-clients.html", "utf8") },
    "/whip-whep.js": { type: "text/javascript", body: await moduleOf("node_modules/whip-whep/whip.js") },
    "/whip-web-client.js": {
      type: "text/javascript",
      body: await moduleOf("node_modules/@eyevinn/whip-web-client/dist/whip-client.modern.js"),
    },
  };
  const server = createServer((request, response) => {
    const file = files[new URL(request.url ?? "/", "http://site").pathname];
    if (file === undefined) return void response.writeHead(404).end();
    response.writeHead(200, { "content-type": `${file.type}; charset=utf-8` }).end(file.body);
  });
  await new Promise<void>((resolve) => server.listen(0, "127.0.0.1", resolve));
  return {
    origin: `http://127.0.0.1:${(server.address() as AddressInfo).port}`,
    close: () => new Promise((resolve) => server.close(() => resolve())),
  };
}

/** A package's file with all its imports, as one ES module. */
async function moduleOf(entry: string): Promise<string> {
  const built = await build({
    configFile: false,
    logLevel: "silent",
    build: { write: false, minify: false, lib: { entry, formats: ["es"], fileName: "client" } },
  });
  const [bundle] = Array.isArray(built) ? built : [built];
  if (bundle === undefined || !("output" in bundle)) throw new Error(`${entry} does not build`);
  return bundle.output[0].code;
}
