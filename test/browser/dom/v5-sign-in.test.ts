// Signing in with the v5 client when sign-ins and sign-outs overlap, in Node with sockets in memory. Checked with the types
// of a browser, by tsconfig.browser.json.
import { afterEach, beforeEach, expect, test, vi } from "vitest";
import { RtcUser } from "../../../ts/webcaster/v5/rtc-user.ts";
import { stubMedia } from "../../support/fake-media.ts";
import { FakeSocket } from "../../support/fake-socket.ts";

const sockets = FakeSocket.made;
let user: RtcUser;
let events: string[];

beforeEach(() => {
  FakeSocket.forget();
  events = [];
  stubMedia();
  vi.stubGlobal("WebSocket", FakeSocket);
  user = new RtcUser();
  for (const name of ["SignInSuccess", "SignInError", "BroadcastError"] as const)
    user.on(name, () => events.push(name));
});
afterEach(() => {
  vi.unstubAllGlobals();
});

const signIn = () => user.signIn({ server: "https://h", jwt: "token" });
/** Lets everything happen that waits for no timer. */
const settled = () => new Promise<void>((resolve) => setTimeout(resolve, 0));
const socket = (at: number) => sockets[at] ?? expect.fail(`no socket ${at}`);

test("a page that signs out while it signs in is not signed in afterwards", async () => {
  const signedIn = signIn();
  await user.signOut();
  socket(0).open();
  expect(await signedIn).toBe(false);
  expect([socket(0).readyState, socket(0).calls, events]).toStrictEqual([2, [], ["SignInError"]]);
});

test("of two sign-ins only the last one's socket stays open, and the end of the other ends nothing", async () => {
  const both = [signIn(), signIn()];
  socket(1).open();
  await settled();
  socket(1).reply({ session_id: "1", user_id: "2" });
  socket(0).open();
  expect(await Promise.all(both)).toStrictEqual([false, true]);
  socket(0).lose();
  expect(sockets.map(({ readyState }) => readyState)).toStrictEqual([3, 1]);
  expect([...events].sort()).toStrictEqual(["SignInError", "SignInSuccess"]);
  // It is still signed in.
  void user.signOut();
  expect(socket(1).calls.map(({ type }) => type)).toStrictEqual(["sign_in", "sign_out"]);
});

test("a sign-out that waits for its reply does not end a later sign-in", async () => {
  const first = signIn();
  socket(0).open();
  await settled();
  socket(0).reply({ session_id: "1", user_id: "2" });
  expect(await first).toBe(true);
  const signedOut = user.signOut();
  const second = signIn();
  await signedOut;
  socket(1).open();
  await settled();
  socket(1).reply({ session_id: "3", user_id: "4" });
  expect(await second).toBe(true);
  expect(sockets.map(({ readyState }) => readyState)).toStrictEqual([2, 1]);
});
