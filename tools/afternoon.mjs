// `node tools/afternoon.mjs [--live 12]`: a service with an afternoon behind it (afternoon/events.mjs), to be asked the
// questions of docs/afternoon.md in its dashboard, until ^C. With --clicks it prints the table of that document instead.
import { randomBytes } from "node:crypto";
import { createServer } from "node:http";
import { parseArgs } from "node:util";
import { freePort } from "../bench/_servers.mjs";
import { build } from "../scripts/build.mjs";
import { haveAnAfternoon } from "./afternoon/events.mjs";
import { QUESTIONS } from "./afternoon/questions.mjs";
import { startLocalService } from "./local-service.mjs";

const { values } = parseArgs({ options: { live: { type: "string", default: "12" }, clicks: { type: "boolean" } } });
if (values.clicks) {
  for (const { question, clicks } of QUESTIONS) {
    console.log(`| ${question} | ${clicks.length === 0 ? "none" : clicks.join(" → ")} |`);
  }
  process.exit();
}

build();
const password = randomBytes(9).toString("base64url");
const customer = await startCustomer();
const service = await startLocalService({ password, drainS: 86_400 });
await service.call("PUT", "/organisation/webhook", { webhook: customer.url });
const live = Number(values.live);
const afternoon = await haveAnAfternoon({ service, customer, password, upstreamPort: await freePort(), live });
console.log(`${service.http}/dashboard/  admin  ${password}\n`);
for (const { question } of QUESTIONS) console.log(question);
await new Promise((resolve) => process.once("SIGINT", resolve).once("SIGTERM", resolve));
afternoon.stop();
service.stop();
customer.close();

/** A customer that answers as it was last told, by plain HTTP: the service is started with --dev. */
async function startCustomer() {
  let next = { status: 200 };
  const server = createServer((request, response) => {
    const { status, headers = {}, body = "" } = next;
    request.resume().once("end", () => response.writeHead(status, headers).end(body));
  });
  await new Promise((resolve) => server.listen(0, "127.0.0.1", resolve));
  const answer = (given) => {
    next = given;
  };
  return { url: `http://127.0.0.1:${server.address().port}/headgate`, answer, close: () => server.close() };
}
