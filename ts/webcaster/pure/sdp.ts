// The client's parsing and writing of SDP: codecs of an offer, the fragment of an ICE restart (RFC 8840, RFC 9725
// 4.3.3), and the ICE servers of Link headers. Pure.

/** Whether a description contains a codec, case-insensitive. */
export function hasCodec(sdp: string, codec: "H264" | "opus"): boolean {
  return new RegExp(`^a=rtpmap:\\d+ ${codec}/`, "im").test(sdp);
}

/** The value of the first `a=<name>:` line; empty when there is none. */
function attribute(sdp: string, name: string): string {
  return new RegExp(`^a=${name}:(.*?)\\r?$`, "m").exec(sdp)?.[1] ?? "";
}

/** The PATCH body that requests an ICE restart: the new offer's credentials. It contains no candidates: the service is
 *  ICE-lite and finds the browser by its checks. */
export function restartFragment(offer: string): string {
  const lines = [
    `a=ice-ufrag:${attribute(offer, "ice-ufrag")}`,
    `a=ice-pwd:${attribute(offer, "ice-pwd")}`,
    `m=${/^m=(\w+)/m.exec(offer)?.[1] ?? "audio"} 9 RTP/AVP 0`,
    `a=mid:${attribute(offer, "mid")}`,
    "a=end-of-candidates",
  ];
  return `${lines.join("\r\n")}\r\n`;
}

/** The previous answer with the credentials of the service's fragment; its candidates are kept. */
export function renewedAnswer(answer: string, fragment: string): string {
  return ["ice-ufrag", "ice-pwd"].reduce((sdp, name) => {
    const value = attribute(fragment, name);
    return sdp.replaceAll(new RegExp(`^a=${name}:.*?(\\r?)$`, "gm"), (_, end: string) => `a=${name}:${value}${end}`);
  }, answer);
}

/** One ICE server (RFC 9725 4.6), in the form of `RTCConfiguration`. */
export interface IceServer {
  readonly urls: string;
  readonly username?: string;
  readonly credential?: string;
}

/** The ICE servers of a Link header; browsers join several lines with commas. */
export function iceServersOf(link: string | null): IceServer[] {
  const servers: IceServer[] = [];
  for (const [, urls = "", rest = ""] of (link ?? "").matchAll(
    /<([^>]*)>((?:\s*;\s*[\w-]+\s*=\s*(?:"[^"]*"|[^;,\s]*))*)/g,
  )) {
    const parameters = new Map(
      [...rest.matchAll(/([\w-]+)\s*=\s*(?:"([^"]*)"|([^;,\s]*))/g)].map(([, name = "", quoted, plain]) => [
        name.toLowerCase(),
        quoted ?? plain ?? "",
      ]),
    );
    if (parameters.get("rel") !== "ice-server" || !/^(stun|turn)s?:/.test(urls)) continue;
    const username = parameters.get("username");
    const credential = parameters.get("credential");
    servers.push({ urls, ...(username === undefined || credential === undefined ? {} : { username, credential }) });
  }
  return servers;
}
