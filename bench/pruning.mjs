// What the retention costs concurrent publishes: `npm run bench -- pruning [ROWS] [--seconds 8] [--rounds 1]
// [--database URL]`. Ten million publishes take about 4 GB of the temporary folder, which are freed again.
// `--database`: an empty PostgreSQL database instead of the embedded store.
import { parseArgs } from "node:util";
import { pruning } from "./_pruning.mjs";

export async function bench(words) {
  const { values, positionals } = parseArgs({
    args: words,
    allowPositionals: true,
    options: {
      seconds: { type: "string", default: "8" },
      rounds: { type: "string", default: "1" },
      database: { type: "string" },
    },
  });
  const [rows = "10000000"] = positionals;
  await pruning({
    rows: Number(rows),
    seconds: Number(values.seconds),
    rounds: Number(values.rounds),
    databaseUrl: values.database ?? null,
  });
}
