// `npm run bench -- oracle [PUBLISHES] [FAULTS]`: random publishes of 200 names over three nodes that are killed and
// paused, and the result.
import { runOracle } from "./_cluster-oracle.mjs";

export async function bench(words) {
  const [publishes = 10_000, faults = 12] = words.map(Number);
  const found = await runOracle({ nodes: 3, names: 200, publishes, faults });
  console.log(
    `${publishes} publish requests of 200 names on 3 nodes, ${faults} kills and pauses: ${found.allowed} allowed, ` +
      `${found.denied} denied, ${found.unanswered} without an answer`,
  );
  console.log(
    `  ${found.ended} accepted publishes ended, ${found.lost} of them by another node; ${found.done} publish_done arrived, ` +
      `${found.repeated} repetitions`,
  );
  console.log(`  live twice: ${found.twice.length}; wrong: ${found.wrong.length}; left open: ${found.left}`);
  for (const fault of [...found.twice, ...found.wrong].slice(0, 10)) console.log(`    ${fault}`);
  process.exitCode = found.twice.length + found.wrong.length + found.left === 0 ? 0 : 1;
}
