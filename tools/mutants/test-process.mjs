// One vitest that stays running and executes requests in the folder in which it was started. Its parent may end it at
// any time. In: `{ changed, specs: [{ file, ids }] }`, without ids a whole file. Out: `{ red, took }`: the failed tests
// by file, and how long each file took, ms.
import { resolve } from "node:path";
import { createVitest } from "vitest/node";

const vitest = await createVitest("test", {
  config: "tools/mutants/vitest.config.mjs",
  reporters: [{}],
  watch: false,
});
await vitest.standalone();
const project = vitest.projects[0];
process.on("message", async ({ changed, specs }) => {
  for (const file of changed) vitest.invalidateFile(resolve(file));
  const specifications = specs.map(({ file, ids }) =>
    project.createSpecification(resolve(file), ids && { testIds: ids }),
  );
  const { testModules: all, unhandledErrors } = await vitest.runTestSpecifications(specifications);
  // Vitest also reports files of earlier runs.
  const testModules = all.filter(({ relativeModuleId }) => specs.some(({ file }) => file === relativeModuleId));
  const red = testModules
    .map((module) => ({
      file: module.relativeModuleId,
      tests: [...module.children.allTests("failed")].map(
        (test) => `${test.fullName} (${test.result().errors?.[0]?.message.split("\n")[0]})`,
      ),
      isRed: !module.ok() || module.errors().length > 0,
    }))
    .filter(({ isRed }) => isRed);
  if (red.length === 0 && unhandledErrors.length > 0) red.push({ file: specs[0].file, tests: ["an error outside"] });
  const took = Object.fromEntries(testModules.map((module) => [module.relativeModuleId, module.diagnostic().duration]));
  process.send({ red, took });
});
process.on("disconnect", () => process.exit(0));
process.send("ready");
