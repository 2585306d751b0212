// A Socket.IO gateway that says hello, echoes, asks back, and ends connections
// in the ways that a gateway can. It prints its port when it listens.
//
// Usage: node gateway.cjs PINGINTERVAL PINGTIMEOUT
const http = require("node:http");
const { Server } = require("socket.io");

const [pingInterval, pingTimeout] = process.argv.slice(2).map(Number);
const server = http.createServer((req, res) => res.writeHead(404).end("no such page"));
const io = new Server(server, {
  pingInterval,
  pingTimeout,
  maxHttpBufferSize: 1000,
  perMessageDeflate: { threshold: 0 },
  cors: { origin: "*" },
});

io.on("connection", (socket) => {
  for (let i = 0; i < 5; i++) socket.emit("hello", i, socket.handshake.auth.token ?? null);
  socket.on("echo", (value, ack) => ack("ok", value));
  socket.on("binary", (value, ack) => ack({ got: value, size: value.length }));
  socket.on("ask", (ack) => socket.emit("question", 41, (answer) => ack(answer)));
  socket.on("leave", () => socket.disconnect(true));
  socket.on("drop", () => socket.conn.close());
});
io.of("/admin").use((socket, next) => next(Object.assign(new Error("not authorized"), { data: { code: 401 } })));

server.listen(0, "127.0.0.1", () => console.log(server.address().port));
process.stdin.on("end", () => process.exit(0)).resume(); // when the test is over
