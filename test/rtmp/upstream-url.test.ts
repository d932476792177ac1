import { expect, test } from "vitest";
import { checkUpstreamUrl, maskedKey, shownUpstream } from "../../ts/publish/upstreams/upstream-url.ts";

const dev = { dev: true };

test.each([
  ["rtmp://h/live2?backup=1/abcd-efgh-ijkl", "rtmp://h:1935/live2", "ab…"],
  ["rtmp://h/live2?backup=1/abcd-efgh?k=a/b?c", "rtmp://h:1935/live2", "ab…"],
  ["rtmp://h/live2?u=a/b/abcd-efgh", "rtmp://h:1935/live2", "ab…"],
  ["rtmps://me:p%40w@h/live2%3Fbackup=1/abcd-efgh", "rtmps://h:443/live2", "ab…"],
  ["rtmp://[::1]:19/app/one%3fx=1%2F2/abcd-efgh?k=v", "rtmp://[::1]:19/app/one", "ab…"],
  ["rtmp://h/app/one/abcd-efgh?k=v/w", "rtmp://h:1935/app/one", "ab…"],
])("%s is an upstream, shown without key and arguments", async (url, shown, key) => {
  expect(await checkUpstreamUrl(url, dev)).toBeNull();
  expect(shownUpstream(url)).toBe(shown);
  expect(maskedKey(url)).toBe(key);
});

test.each([
  "rtmp://h/live2",
  "rtmp://h/live2?backup=1",
  "rtmp://h/live2?backup=1/",
  "rtmp://h/live2?backup=1/?k=v",
  "rtmp://h/?a=1/key",
  "rtmp://h/%3Fa/key",
])("%s has no stream name, or no app", async (url) => {
  expect(await checkUpstreamUrl(url, dev)).toEqual({
    reason: expect.stringContaining("after a slash, the stream name"),
  });
});
