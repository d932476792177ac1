// Load balancer rules for the nodes, in the syntax of HAProxy 2.4 and newer. The same as in docs/cluster.md.

/** Whether a node takes publishes: its metrics port reports that within a second. */
const CHECKS = [
  "    option httpchk",
  "    http-check send meth GET uri /readyz",
  "    http-check expect status 200",
  "    default-server check inter 1s fall 2 rise 1",
];
/** Whether a node runs, for when no node takes publishes: the nodes then report the reason themselves. */
const CHECKS_RUNNING = CHECKS.map((line) => line.replace("/readyz", "/healthz"));

/** `http` and `rtmp`: ports to listen on; `nodes`: each with its name and the URLs of its ports; `source`: the address from
 *  which RTMP is passed on, if it is one that the nodes trust for nothing else. */
export function balancerRules({ http, rtmp, nodes, host = "127.0.0.1", source = null }) {
  const introducing = [...(source === null ? [] : [`source ${source}`]), "send-proxy-v2"].join(" ");
  const backend = (name, port, lines, checks, words = "") => [
    `backend ${name}`,
    ...lines,
    ...checks,
    ...nodes.map(
      (node) => `    server ${node.name} ${new URL(node[port]).host} port ${new URL(node.metrics).port}${words}`,
    ),
    "",
  ];
  // Event streams, previews and WebSockets are one long request each, and may be silent for a while.
  const forHttp = ["    mode http", "    balance leastconn", "    option redispatch", "    timeout server 1h"];
  const forRtmp = ["    mode tcp", "    balance leastconn", "    option redispatch", "    timeout server 10m"];
  return [
    "defaults",
    "    timeout connect 5s",
    "    timeout check 2s",
    "",
    "# The API, WHIP, the dashboard: http.trusted_proxies of the nodes names this machine.",
    "frontend http",
    "    mode http",
    `    bind ${host}:${http}`,
    "    timeout http-request 10s",
    "    timeout client 1h",
    "    option forwardfor",
    "    use_backend http_not_ready if { nbsrv(http_ready) eq 0 }",
    "    default_backend http_ready",
    "",
    ...backend("http_ready", "http", forHttp, CHECKS),
    ...backend("http_not_ready", "http", forHttp, CHECKS_RUNNING),
    "# RTMP in and out, with a PROXY header: rtmp.trusted_proxies of the nodes names this machine.",
    "frontend rtmp",
    "    mode tcp",
    `    bind ${host}:${rtmp}`,
    "    timeout client 10m",
    "    use_backend rtmp_not_ready if { nbsrv(rtmp_ready) eq 0 }",
    "    default_backend rtmp_ready",
    "",
    ...backend("rtmp_ready", "rtmp", forRtmp, CHECKS, ` ${introducing}`),
    ...backend("rtmp_not_ready", "rtmp", forRtmp, CHECKS_RUNNING, ` ${introducing}`),
  ].join("\n");
}
