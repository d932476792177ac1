// The OpenAPI document as third-party tools read it: no complaint from redocly's recommended rules, from
// spectral's, or from openapi-spec-validator, which validates it against the JSON schema of OpenAPI 3.1. The first two
// take long to load.
import { spawnSync } from "node:child_process";
import type { RulesetDefinition } from "@stoplight/spectral-core";
import { expect, test } from "vitest";
import { providePython } from "../../scripts/python.mjs";
import { apiDocument } from "../../ts/app.ts";
import { inWholeRun } from "../support/whole-run.ts";

const SERVED = { ...apiDocument("1.0.0"), servers: [{ url: "https://api.example" }] };
const TEXT = JSON.stringify(SERVED);
const LIMIT_MS = 120_000;

inWholeRun("redocly has no complaint", async () => {
  const { createConfig, lintFromString } = await import("@redocly/openapi-core");
  const config = await createConfig({ extends: ["recommended"] });
  const problems = await lintFromString({ source: TEXT, absoluteRef: "openapi.json", config });
  const told = problems.map(({ ruleId, message, location }) => `${ruleId}: ${message} ${location[0]?.pointer ?? ""}`);
  expect(told).toEqual([]);
});

inWholeRun(
  "spectral has no complaint",
  async () => {
    const { default: spectral } = await import("@stoplight/spectral-core");
    const { default: parsers } = await import("@stoplight/spectral-parsers");
    const { default: rulesets } = await import("@stoplight/spectral-rulesets");
    const linter = new spectral.Spectral();
    linter.setRuleset({ extends: [rulesets.oas as unknown as RulesetDefinition] });
    const problems = await linter.run(new spectral.Document(TEXT, parsers.Json, "openapi.json"));
    expect(problems.map(({ code, message, path }) => `${code}: ${message} ${path.join("/")}`)).toEqual([]);
  },
  LIMIT_MS,
);

test(
  "openapi-spec-validator has no complaint",
  () => {
    const { status, stdout } = spawnSync(providePython(), ["-m", "openapi_spec_validator", "-"], {
      input: TEXT,
      encoding: "utf8",
    });
    expect({ status, stdout }).toEqual({ status: 0, stdout: expect.stringContaining("OK") });
  },
  LIMIT_MS,
);
