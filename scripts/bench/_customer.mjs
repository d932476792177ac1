// A customer in a process of its own: answers as its first argument says, `ok` at once or `hang` never. Prints its URL.
import { createServer } from "node:https";

const [behaviour, cert, key] = process.argv.slice(2);
const server = createServer({ cert, key, keepAliveTimeout: 60_000 }, (request, response) => {
  request.resume();
  if (behaviour === "ok") request.once("end", () => response.writeHead(200, { "content-length": "0" }).end());
});
server.listen(0, "127.0.0.1", () => console.log(`https://localhost:${server.address().port}/hook`));
