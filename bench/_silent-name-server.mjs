// A name server that ignores every query, in its own process; prints its address.
import { createSocket } from "node:dgram";

const socket = createSocket("udp4");
socket.on("message", () => {});
socket.bind(0, "127.0.0.1", () => console.log(`127.0.0.1:${socket.address().port}`));
