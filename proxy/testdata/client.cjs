// An unmodified client. It prints what happens to it, without what differs from
// run to run: the transcript must be the same with the proxy and without.
//
// Usage: node client.cjs URL TRANSPORTS
const { io } = require("socket.io-client");

const [url, transports] = process.argv.slice(2);
const say = (...what) => console.log(what.map((w) => JSON.stringify(w)).join(" "));
const options = {
  transports: transports.split(","),
  reconnectionDelay: 20,
  reconnectionDelayMax: 20,
  auth: { token: "é€😀" },
  query: { tenant: "a b&c" },
};
const socket = io(url, options);
const once = (event) => new Promise((resolve) => socket.once(event, (...args) => resolve(args)));
const ask = (...what) => new Promise((resolve) => socket.emit(...what, (...answer) => resolve(answer)));
const upgraded = () => new Promise((resolve) => {
  const { engine } = socket.io;
  if (options.transports.length === 1 || engine.transport.name === "websocket") resolve();
  else engine.once("upgrade", resolve);
});
const hellos = () => new Promise((resolve) => {
  const seen = [];
  const collect = (...args) => {
    seen.push(args);
    if (seen.length === 5) socket.off("hello", collect), resolve(seen);
  };
  socket.on("hello", collect);
});

let tooMuch = false;
socket.on("disconnect", (reason) => {
  // By polling, the refused POST and the closed session race each other.
  say("disconnect", tooMuch && transports === "polling" ? "one way or the other" : reason);
});
socket.on("question", (n, ack) => { say("question", n); ack(n + 1); });

(async () => {
  say("hellos", await hellos());
  await upgraded();
  say("transport", socket.io.engine.transport.name);
  say("echo", await ask("echo", { z: 1, a: "\u2028€", n: 1.5 }));
  say("binary", (await ask("binary", Buffer.from([0, 1, 2, 255])))[0].got.toString("hex"));
  say("nested", (await ask("echo", [{ b: Buffer.alloc(300, 7) }]))[1][0].b.length);
  say("ask", await ask("ask"));

  // Longer than the gateway bears an idle client, so heartbeats must pass.
  await new Promise((resolve) => setTimeout(resolve, 1500));
  say("alive", socket.connected);

  const admin = io(url + "/admin", { ...options, forceNew: true });
  admin.on("connect_error", (error) => { say("refused", error.message, error.data); admin.close(); });
  await new Promise((resolve) => admin.once("connect_error", resolve));

  // The gateway drops the engine: the client connects again by itself.
  let again = hellos();
  socket.emit("drop");
  say("again", (await again).length);
  await upgraded();
  say("echo", await ask("echo", 2));

  // Too large for the gateway, which drops the client.
  again = hellos();
  tooMuch = true;
  socket.emit("echo", "x".repeat(2000), () => {});
  say("after too much", (await again).length);
  tooMuch = false;
  await upgraded();

  const end = once("disconnect");
  socket.emit("leave");
  await end;
  say("reconnects", socket.active);

  again = hellos();
  socket.connect();
  await again;
  await upgraded();
  socket.disconnect();
  say("done");
})();
