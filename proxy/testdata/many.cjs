// Connects many clients with the default transports, each of which must be
// upgraded and see the gateway's five hellos, once and in order.
//
// Usage: node many.cjs URL COUNT
const { io } = require("socket.io-client");

const [url, count] = process.argv.slice(2);

const one = () => new Promise((resolve) => {
  const seen = [];
  const socket = io(url, { forceNew: true, reconnection: false });
  const leave = () => socket.emit("echo", 1, () => {
    socket.off("disconnect");
    socket.disconnect();
    resolve(seen.join());
  });
  socket.on("hello", (n) => seen.push(n));
  socket.on("disconnect", (reason) => resolve(reason));
  socket.on("connect_error", (error) => resolve(error.message));
  socket.on("connect", () => {
    const { engine } = socket.io;
    if (engine.transport.name === "websocket") leave();
    else engine.once("upgrade", leave);
  });
});

Promise.all(Array.from({ length: Number(count) }, one)).then((all) => {
  const counts = {};
  for (const a of all) counts[a] = (counts[a] ?? 0) + 1;
  console.log(JSON.stringify(counts));
});
