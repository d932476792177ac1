// A gateway for _dashboard.mjs, in its own process: `STREAMS LIVE READERS` as arguments; prints one line of
// JSON when it listens; ends when its standard input is closed.
import { listen } from "../dist/listen/http-port.js";
import { hashPassword } from "../dist/organisation/passwords.js";
import { addPerson } from "../dist/organisation/people.js";
import { createMeasurements } from "../dist/publish/monitoring/measurements.js";
import { openPublishing, SNAPSHOT } from "./_publishing.mjs";
import { clock, cpuSince, silent } from "./_webhook.mjs";

const PASSWORD = "correct horse battery";
const ORGANISATION = "bbbbb";
const TRACKS = {
  video: { codec: "H264", width: 1_280, height: 720 },
  audio: { codec: "AAC", sampleRate: 48_000, channels: 2 },
};
/** About 2.5 Mbit/s and 30 frames a second, slightly different each time. */
const BYTES_PER_MS = 312;
const FRAMES_PER_MS = 0.03;
/** Number of publishes whose history is measured, and of rounds. */
const HISTORIES = 1_000;
const ROUNDS = 50;

const [streams, live, readers] = process.argv.slice(2).map(Number);
const startedAt = clock.now();

function snapshotOf(clientId) {
  const elapsed = clock.now() - startedAt;
  const wobble = 0.9 + Math.random() / 5;
  return {
    ...SNAPSHOT,
    timestampMs: elapsed,
    bytesIn: Math.round(elapsed * BYTES_PER_MS * wobble + clientId),
    videoFrames: Math.round(elapsed * FRAMES_PER_MS),
    gopMs: 2_000,
    rttMs: 20 + Math.random() * 5,
    lossPercent: 0,
    tracks: TRACKS,
    upstreams: [upstream(clientId, elapsed)],
    subscribers: 3,
  };
}

function upstream(clientId, elapsed) {
  const counters = { bytesOut: elapsed * BYTES_PER_MS, droppedFrames: 0, reconnects: 0 };
  const of = { id: `u${clientId}`, url: "rtmp://up.example:1935/live", source: "stream", state: "sending" };
  return { ...of, since: startedAt, lastError: null, ...counters };
}

const gateway = await openPublishing({ snapshotOf });
await gateway.addOrganisation(ORGANISATION, null, streams);
for (let at = 0; at < live; at += 1) await gateway.request(`${ORGANISATION}-${at}`);
const port = await listen(gateway.service.app.fetch, { host: "127.0.0.1", port: 0, name: "http.port" });
const cookies = [];
const password_hash = await hashPassword(PASSWORD);
for (let at = 0; at < readers; at += 1) {
  const person = { organisation_id: ORGANISATION, email: `${at}@customer.example`, role: "readonly", password_hash };
  await addPerson(gateway.db, person, clock.now());
  const login = await gateway.service.app.request("/login", {
    method: "POST",
    body: JSON.stringify({ email: person.email, password: PASSWORD }),
  });
  cookies.push(login.headers.get("set-cookie").split(";")[0]);
}
const pages = Array.from({ length: Math.min(readers, live) }, (_, at) => `${ORGANISATION}-${at}`);
console.log(JSON.stringify({ port: port.port, cookies, pages, pointsMs: pointsMs() }));
process.stdin.resume();
process.stdin.on("end", async () => {
  gateway.service.events.stop();
  await port.stop();
  await gateway.close();
  process.exit(0);
});

/** CPU time of one point in each of many histories, ms. */
function pointsMs() {
  const running = Array.from({ length: HISTORIES }, (_, clientId) => ({ clientId }));
  const media = () => ({ snapshot: (clientId) => ({ clientId, ...snapshotOf(clientId) }) });
  const measurements = createMeasurements({ publishing: { running: () => running }, media, clock, log: silent });
  measurements.addPoints();
  const before = process.cpuUsage();
  for (let round = 0; round < ROUNDS; round += 1) measurements.addPoints();
  measurements.stop();
  return (cpuSince(before) * 1_000) / ROUNDS;
}
