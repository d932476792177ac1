// When a node is full and when it has room again, decided from figures and a clock that the test provides.
import { describe, expect, test } from "vitest";
import { type Figures, Room, type ShortageCause } from "../../ts/capacity/room.ts";

const LIMITS = { loadPercent: 85, memoryPercent: 90, descriptorsPercent: 85 };
/** Between two measurements, ms. */
const LOOK_MS = 500;

const IDLE: Figures = {
  workers: [
    { load: 0.1, busy: 0.1, lateMs: 0 },
    { load: 0.1, busy: 0.1, lateMs: 0 },
  ],
  kernelDrops: 0,
  loopLateMs: 1,
  memory: { used: 20e6, limit: 1e9 },
  heap: { used: 10e6, limit: 1e9 },
  descriptors: { used: 50, limit: 1_000 },
  connections: { held: 0, limit: 1_000 },
  publishes: 0,
};

const workersAt = (busy: number, lateMs = 0): Pick<Figures, "workers"> => ({
  workers: [{ load: busy, busy, lateMs }, ...IDLE.workers.slice(1)],
});

/** A room that is measured twice a second, starting at 0. */
class Looked {
  readonly room: Room;
  now = 0;
  constructor(limits = LIMITS) {
    this.room = new Room(limits);
  }
  /** Repeats these figures for a period that starts now; returns the shortage at its end. */
  see(figures: Partial<Figures>, forMs = 0): ShortageCause | null {
    const until = this.now + forMs;
    for (;;) {
      this.room.update({ ...IDLE, ...figures }, this.now);
      if (this.now >= until) return this.room.shortage?.cause ?? null;
      this.now += LOOK_MS;
    }
  }
  /** How many of `count` requests get a place now. */
  crowd(count: number): number {
    return Array.from({ length: count }, () => this.room.take(this.now)).filter((place) => !("cause" in place)).length;
  }
}

describe("a node is full", () => {
  const FULL: readonly (readonly [ShortageCause, Partial<Figures>, words: RegExp])[] = [
    ["cpu", workersAt(0.9), /^a media worker is busy for 90 % of the time$/],
    ["late", workersAt(0.5, 40), /^a media worker is 40 ms late$/],
    ["gateway", { loopLateMs: 200 }, /^the gateway is 200 ms late$/],
    ["memory", { memory: { used: 280e6, limit: 300e6 } }, /^280 of 300 MB of memory are used$/],
    ["heap", { heap: { used: 950e6, limit: 1e9 } }, /^950 of 1000 MB of JavaScript's heap are used$/],
    ["descriptors", { descriptors: { used: 220, limit: 256 } }, /^220 of 256 file descriptors are open$/],
    ["connections", { connections: { held: 139, limit: 140 } }, /^139 of 140 RTMP connections are open$/],
  ];
  test.each(FULL)("for the shortage %s, and explains it", (cause, figures, words) => {
    const looked = new Looked();
    expect(looked.see(figures, 2_000)).toBe(cause);
    expect(looked.room.shortage?.words).toMatch(words);
    expect(looked.crowd(5)).toBe(0);
    expect(looked.room.take(looked.now)).toMatchObject({ cause });
  });

  test("while the kernel drops datagrams, until it drops none", () => {
    const looked = new Looked();
    looked.see({});
    looked.now += LOOK_MS;
    expect(looked.see({ kernelDrops: 30 })).toBeNull(); // a brief stall
    looked.now += LOOK_MS;
    expect(looked.see({ kernelDrops: 90 })).toBe("drops");
    expect(looked.room.shortage?.words).toBe("the kernel drops 120 datagrams a second");
    looked.now += LOOK_MS;
    expect(looked.see({ kernelDrops: 95 }, 10_000)).toBeNull();
  });

  test("not because of a single busy measurement", () => {
    const looked = new Looked();
    expect(looked.see(workersAt(1, 100), 1_000)).toBeNull();
    looked.now += LOOK_MS;
    expect(looked.see({})).toBeNull();
    looked.now += LOOK_MS;
    expect(looked.see(workersAt(1, 100), 1_000)).toBeNull();
    looked.now += LOOK_MS;
    expect(looked.see(workersAt(1, 100))).toBe("cpu");
  });

  test("not for figures that the system does not provide, nor for checks that are disabled", () => {
    const unknown = { memory: null, descriptors: null, kernelDrops: null, connections: { held: 900 } };
    expect(new Looked().see(unknown, 5_000)).toBeNull();
    const off = new Looked({ loadPercent: 0, memoryPercent: 0, descriptorsPercent: 0 });
    for (const [, figures] of FULL) {
      expect(off.see(figures, 5_000)).toBeNull();
      expect(off.crowd(3)).toBe(3);
    }
  });
});

describe("there is room again", () => {
  test("not before usage is clearly below the limit", () => {
    const looked = new Looked();
    const memory = (used: number) => ({ memory: { used: used * 1e6, limit: 1e9 } });
    expect(looked.see(memory(900))).toBe("memory");
    expect(looked.see(memory(870), 20_000)).toBe("memory");
    expect(looked.see(memory(849))).toBeNull();
    looked.now += LOOK_MS;
    expect(looked.see(memory(870), 20_000)).toBeNull();
  });

  test("not within two seconds, but within five seconds after the load ends", () => {
    const looked = new Looked();
    expect(looked.see({ descriptors: { used: 999, limit: 1_000 } })).toBe("descriptors");
    looked.now += LOOK_MS;
    expect(looked.see({}, 1_000)).toBe("descriptors");
    looked.now += LOOK_MS;
    expect(looked.see({})).toBeNull();
    looked.see(workersAt(0.95), 10_000);
    // The worker's last measured second may still have been busy.
    expect(looked.see(workersAt(0.95), 1_000)).toBe("cpu");
    expect(looked.see(workersAt(0.7), 2_000)).toBeNull();
  });

  test("not while a worker oscillates around the limit", () => {
    const looked = new Looked();
    looked.see(workersAt(0.9), 2_000);
    let changes = 0;
    for (let swing = 0; swing < 100; swing += 1) {
      looked.now += LOOK_MS;
      if (looked.see(workersAt(swing % 2 === 0 ? 0.8 : 0.9)) === null) changes += 1;
    }
    expect(changes).toBe(0);
  });
});

describe("a crowd that arrives at the same time", () => {
  const STREAM_SHARE = 0.01;

  test("gets no more places than the workers have room for, before any of it is measured", () => {
    const looked = new Looked();
    // 40 publishes take a hundredth of a worker each: the busier of two has room for 45 more hundredths.
    looked.see({ ...workersAt(0.4), publishes: 50 });
    const admitted = looked.crowd(1_000);
    expect(admitted).toBeGreaterThan(40);
    expect(admitted * STREAM_SHARE).toBeLessThanOrEqual(2 * 0.45 + STREAM_SHARE);
    expect(looked.room.take(looked.now)).toEqual({
      cause: "setups",
      words: `${admitted} publishes are being set up`,
    });
    expect(looked.room.shortage).toBeNull();
  });

  test("gets places according to the descriptors and memory it is expected to need", () => {
    const looked = new Looked();
    looked.see({ descriptors: { used: 750, limit: 1_000 } });
    expect(looked.crowd(1_000)).toBeLessThanOrEqual(25);
    const other = new Looked();
    other.see({ memory: { used: 200e6, limit: 300e6 } });
    expect(other.crowd(1_000)).toBeLessThanOrEqual(70);
    expect(other.crowd(1)).toBe(0);
  });

  test("gets more places once it is measured, and once a place is released", () => {
    const looked = new Looked();
    looked.see({ descriptors: { used: 843, limit: 1_000 } });
    const place = looked.room.take(looked.now);
    if ("cause" in place) throw new Error("the first one has a place");
    expect(looked.crowd(1)).toBe(0);
    place.release();
    const next = looked.room.take(looked.now);
    if ("cause" in next) throw new Error("what was released is free");
    next.started(looked.now);
    expect(looked.crowd(1)).toBe(0);
    looked.now += 3_000;
    expect(looked.crowd(1)).toBe(1);
  });

  test("that waits for a slow webhook does not block others", () => {
    const looked = new Looked();
    looked.see({});
    const admitted = looked.crowd(1_000);
    expect(looked.crowd(1)).toBe(0);
    looked.now += 1_000;
    expect(looked.crowd(1_000)).toBe(admitted);
  });
});
