#!/usr/bin/env node
// `npx headgate …`
import { main } from "./command.mjs";

await main(process.argv.slice(2));
