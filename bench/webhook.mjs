// What the customer's webhook costs and what it withstands:
// `npm run bench -- webhook [speed | isolation | tenants | faults | durability | kills] …`.
const MEASUREMENTS = {
  speed: async (...args) => (await import("./_webhook-speed.mjs")).speed(...args),
  isolation: async (...args) => (await import("./_webhook-isolation.mjs")).isolation(...args),
  tenants: async (seconds, rounds, organisations, hanging) =>
    (await import("./_webhook-tenants.mjs")).tenants(seconds, rounds, organisations, hanging, true),
  durability: async (...args) => (await import("./_webhook-durability.mjs")).durability(...args),
  kills: async (...args) => (await import("./_webhook-kills.mjs")).kills(...args),
  faults: async (...args) => (await import("./_webhook-faults.mjs")).faults(...args),
};

export async function bench([name = "speed", ...args]) {
  const measure = MEASUREMENTS[name];
  if (measure === undefined) {
    console.error(`npm run bench -- webhook NAME, one of: ${Object.keys(MEASUREMENTS).join(", ")}`);
    process.exitCode = 2;
    return;
  }
  await measure(...args.map(Number));
}
