// A customer in its own process, whose first argument is its behaviour: `ok` answers immediately, `hang`
// never answers, `mute` accepts the connection and sends nothing. Prints its URL.
import { createServer } from "node:https";
import { createServer as createTcpServer } from "node:net";

const [behaviour, cert, key] = process.argv.slice(2);
const server =
  behaviour === "mute"
    ? createTcpServer((socket) => socket.on("error", () => {}).resume())
    : createServer({ cert, key, keepAliveTimeout: 60_000 }, (request, response) => {
        request.resume();
        if (behaviour === "ok") request.once("end", () => response.writeHead(200, { "content-length": "0" }).end());
      });
server.listen(0, "127.0.0.1", () => console.log(`https://localhost:${server.address().port}/hook`));
