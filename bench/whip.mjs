// CPU and memory per stream for WHIP in → RTMP out: `npm run bench -- whip [cm] [SOUND…] [N… SECONDS BLOCKS]
// [--against DIR | --mediamtx PROGRAM] [--no-gop-cache]`, by default `10 50 100 20 1` with GCM; `cm` selects
// AES-CM with SHA-1. Each N is measured with Opus passed through (`opus`), with AAC stereo and with AAC mono, or
// with the named kinds of audio; BLOCKS times, in reverse order every other time. Against another built checkout
// every case is four blocks, A B B A, of the media core's threads alone, without memory. With MediaMTX, which
// passes Opus through, both alternate. Beside AAC, the codecs alone are measured, which is the floor. Without the GOP
// cache, a session's own memory is visible. A block with a lost unit, a dropped datagram or a late generator has
// failed.
import { once } from "node:events";
import { text } from "node:stream/consumers";
import { parseArgs } from "node:util";
import { readAgainst, resultOf } from "./_against.mjs";
import { machine } from "./_machine.mjs";
import { mediamtxVersion, startMediamtx } from "./_mediamtx.mjs";
import { coreSeconds, cpuSeconds, idleCpuMs, residentKb, steadyResidentKb, udpDrops } from "./_process.mjs";
import { freePort, generatorFault, median, onCore, program, runLoad, SERVER_CORE, startHeadgate } from "./_servers.mjs";

const SOUNDS = ["opus", "stereo", "mono"];
const DEFAULTS = [10, 50, 100, 20, 1];
/** Sessions that come and go before the measurement. */
const WARM_SESSIONS = 5;
/** AAC frames per second at 48 kHz; a block may miss one stream's first or last of them. */
const AAC_PER_SECOND = 48_000 / 1024;

export async function bench(all) {
  const { against, rest } = readAgainst(all);
  const options = { mediamtx: { type: "string" }, "no-gop-cache": { type: "boolean" } };
  const { values, positionals: words } = parseArgs({ args: rest, options, allowPositionals: true });
  const peer = values.mediamtx === undefined ? null : mediamtxVersion(values.mediamtx);
  const srtp = words.includes("cm") ? "cm" : "gcm";
  const named = SOUNDS.filter((sound) => words.includes(sound));
  const sounds = named.length > 0 ? named : peer === null ? SOUNDS : ["opus"];
  if (peer !== null && String(sounds) !== "opus") throw new Error("--mediamtx: it does not transcode Opus to AAC");
  const given = words.filter((word) => word !== srtp && !named.includes(word)).map(Number);
  if (given.some(Number.isNaN))
    throw new Error("whip [cm] [opus] [stereo] [mono] [N… SECONDS BLOCKS] [--against DIR | --mediamtx PROGRAM]");
  const numbers = given.length >= 3 ? given : DEFAULTS;
  const counts = numbers.slice(0, -2);
  const [seconds, rounds] = numbers.slice(-2);
  const blocks = [];
  for (let round = 0; round < rounds; round += 1) {
    const cases = counts.flatMap((streams) => sounds.map((sound) => ({ streams, sound, srtp })));
    const env = values["no-gop-cache"] ? { HEADGATE_MEDIA_GOP_CACHE: "off" } : {};
    const pair = [{ env }, values];
    const alone = peer === null ? [{ env }] : round % 2 === 0 ? pair : pair.toReversed();
    for (const which of round % 2 === 0 ? cases : cases.reverse()) {
      for (const options of against === null ? alone : [{}, { from: against }, { from: against }, {}]) {
        const block = await measure(which, seconds, options, against === null);
        blocks.push(block);
        console.log(JSON.stringify(block));
      }
      if (which.sound !== "opus" && against === null) console.log(await codecsAlone(which, seconds));
    }
  }
  if (against === null) report(blocks, srtp, seconds, peer);
  else compare(blocks, srtp, seconds);
  for (const { server, streams, sound, faults } of blocks) {
    if (faults.length === 0) continue;
    console.log(`FAILED: ${server}, N = ${streams}, ${sound}: ${faults.join(", ")}`);
    process.exitCode = 1;
  }
}

/** The floor of a block with AAC, a line of JSON: as many streams transcoded in a process that does nothing else. */
async function codecsAlone({ sound, streams }, seconds) {
  const child = onCore(SERVER_CORE, program(), ["codecs", sound, String(streams), String(seconds)]);
  const [line, [code]] = await Promise.all([text(child.stdout), once(child, "close")]);
  if (code !== 0) throw new Error("the codecs could not be measured");
  return line.trim();
}

/** One block on a new server, so that memory left behind by an earlier block is not counted. */
async function measure({ streams, sound, srtp }, seconds, options, withMemory) {
  const sinkPort = await freePort();
  const { mediamtx } = options;
  const server = await (mediamtx ? startMediamtx(mediamtx, sinkPort) : startHeadgate(sinkPort, streams, options));
  const cpuOf = withMemory ? cpuSeconds : coreSeconds;
  const probe = () => ({
    cpu: cpuOf(server.pid),
    node: cpuSeconds(server.pid) - coreSeconds(server.pid),
    kb: residentKb(server.pid),
    drops: udpDrops(),
  });
  const load = (names, time) => {
    const where = ["whip", `127.0.0.1:${sinkPort}`, server.http, server.streamUrl];
    return runLoad([...where, names.join(","), String(time), sound, srtp], probe);
  };
  // What Node compiles and loads for the first publish does not count as a session's memory.
  await load(server.names(streams).slice(0, WARM_SESSIONS), 0);
  const empty = withMemory ? await steadyResidentKb(server.pid) : residentKb(server.pid);
  const idle = withMemory ? await idleCpuMs(server.pid) : 0;
  const { balance, seen } = await load(server.names(streams), seconds);
  await server.stop();
  const { connected, measuring, measured } = seen;
  const took = measured.time - measuring.time;
  const block = {
    server: server.name,
    streams,
    sound,
    srtp,
    is_other: options.from !== undefined,
    cpu_ms_per_stream_second: round3(((measured.cpu - measuring.cpu) * 1000 - idle * took) / (streams * took)),
    // What JavaScript takes of it, with garbage collection; of MediaMTX it is everything.
    node_ms_per_stream_second: round3(((measured.node - measuring.node) * 1000) / (streams * took)),
    idle_cpu_ms_per_second: round3(idle),
    kb_per_session_connected: Math.round((connected.kb - empty) / streams),
    kb_per_session_live: Math.round((measured.kb - empty) / streams),
    udp_drops: measured.drops - measuring.drops,
    ...balance,
  };
  return { ...block, faults: faultsOf(block, took) };
}

function faultsOf(block, took) {
  const faults = [];
  const none = ["lost", "misplaced", "udp_drops", "unsent_datagrams", "closed_early", "aac_gaps"];
  for (const name of none) if (block[name] > 0) faults.push(`${name} ${block[name]}`);
  const expected = AAC_PER_SECOND * took * block.streams;
  const isShort = block.sound !== "opus" && Math.abs(block.aac_frames - expected) > expected * 0.01 + block.streams;
  if (isShort) faults.push(`aac_frames ${block.aac_frames} of ${Math.round(expected)}`);
  const late = generatorFault(block);
  if (late !== null) faults.push(late);
  return faults;
}

/** This checkout compared with the other one, case by case. */
function compare(blocks, srtp, seconds) {
  console.log(
    `\nWHIP in → RTMP out, ${srtp}, CPU ms per stream-second, blocks of ${seconds} s, one core for the server`,
  );
  for (const name of new Set(blocks.map(({ streams, sound }) => `N = ${streams}, ${sound}`))) {
    const same = blocks.filter(({ streams, sound }) => name === `N = ${streams}, ${sound}`);
    const costs = (other) => same.filter(({ is_other }) => is_other === other).map((b) => b.cpu_ms_per_stream_second);
    console.log(
      `${name}\n${resultOf({ name: "headgate", costs: costs(false) }, { name: "the other", costs: costs(true) })}`,
    );
  }
  console.log(`  ${machine()}`);
}

function report(blocks, srtp, seconds, peer) {
  const rows = new Map();
  for (const block of blocks) {
    const key = `${block.streams} ${block.sound} ${block.server}`;
    rows.set(key, [...(rows.get(key) ?? []), block]);
  }
  console.log(
    `\nWHIP in → RTMP out, ${srtp}, 2 Mbit/s + 64 kbit/s each, blocks of ${seconds} s, one core for the server`,
  );
  const table = [...rows.values()].map((same) => {
    const { server, streams, sound } = same[0];
    const middle = (name) => Number(median(same.map((block) => block[name])).toFixed(2));
    const costs = same.map((block) => block.cpu_ms_per_stream_second);
    return {
      ...(peer === null ? {} : { server }),
      N: streams,
      sound: sound === "opus" ? "Opus" : `AAC ${sound}`,
      "CPU ms": middle("cpu_ms_per_stream_second"),
      spread: `${Math.min(...costs)}–${Math.max(...costs)}`,
      "video p50": middle("video_delay_p50_ms"),
      "video p99": middle("video_delay_p99_ms"),
      "sound p50": middle(`${sound === "opus" ? "audio" : "aac"}_delay_p50_ms`),
      "sound p99": middle(`${sound === "opus" ? "audio" : "aac"}_delay_p99_ms`),
      "kB connected": middle("kb_per_session_connected"),
      "kB live": middle("kb_per_session_live"),
      lost: middle("lost"),
    };
  });
  console.table(table);
  if (peer !== null) console.log(`  MediaMTX ${peer}`);
  console.log(`  ${machine()}`);
}

const round3 = (value) => Number(value.toFixed(3));
