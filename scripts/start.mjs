// `npm start`: builds what changed, then serves in this process, so that a signal to npm reaches the service itself.
import { main } from "./command.mjs";

await main(["serve", ...process.argv.slice(2)]);
