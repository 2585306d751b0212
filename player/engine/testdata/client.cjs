// What npm's socket.io-client makes of the engine. TestNpmClient runs it with the
// addresses of its servers and reads one line a check from it:
//   ok TRANSPORT: NAME
//   not ok TRANSPORT: NAME: WHY
"use strict";
const assert = require("node:assert");
const path = require("node:path");
const { io } = require(path.join(process.env.TAPEDECK_NODE_MODULES, "socket.io-client"));

const hosts = JSON.parse(process.env.ENGINES);
const limit = 15000;
const checks = [];
const check = (name, run, only) => checks.push({ name, run, only });

// A bench opens clients of one transport for one check and closes them after it.
class Bench {
  constructor(transport) {
    this.transport = transport;
    this.clients = [];
  }
  open(options = {}, namespace = "/", host = hosts.main) {
    const transports = this.transport === "upgrade" ? ["polling", "websocket"] : [this.transport];
    const socket = io(host + namespace, { forceNew: true, transports, reconnectionDelay: 20, reconnectionDelayMax: 50, ...options });
    this.clients.push(socket);
    return socket;
  }
  async join(options, namespace, host) {
    const socket = this.open(options, namespace, host);
    await once(socket, "connect");
    return socket;
  }
  // settled waits for the upgrade, where there is one.
  async settled(socket) {
    const engine = socket.io.engine;
    if (this.transport === "upgrade" && engine.transport.name !== "websocket") {
      await new Promise((resolve) => engine.once("upgrade", resolve));
    }
    return socket;
  }
  close() {
    this.clients.forEach((c) => c.disconnect());
  }
}

const once = (emitter, event) =>
  new Promise((resolve, reject) => {
    emitter.once(event, (...args) => resolve(args));
    if (event === "connect") emitter.once("connect_error", reject);
  });
const collect = (socket, event, n) =>
  new Promise((resolve) => {
    const got = [];
    socket.on(event, (...args) => {
      got.push(args.length === 1 ? args[0] : args);
      if (got.length === n) resolve(got);
    });
  });
const ask = (socket, ...args) => socket.timeout(limit).emitWithAck(...args);
const sleep = (ms) => new Promise((resolve) => setTimeout(resolve, ms));
const eventually = async (look) => {
  for (;;) {
    const found = await look();
    if (found) return found;
    await sleep(20);
  }
};

// --- connect
check("connects", async (b) => {
  const s = await b.join();
  assert.ok(s.connected && s.id && s.id !== s.io.engine.id);
  assert.ok(!s.recovered);
});
check("speaks the transport", async (b) => {
  const s = await b.settled(await b.join());
  assert.strictEqual(s.io.engine.transport.name, b.transport === "upgrade" ? "websocket" : b.transport);
  assert.strictEqual(await eventually(async () => (await ask(s, "whoami")).transport), s.io.engine.transport.name);
});
check("brings auth, query and headers", async (b) => {
  const s = await b.join({ auth: { token: "é", n: 1 }, query: { tenant: "a b&c" }, extraHeaders: { "x-run": "7" } });
  const me = await ask(s, "whoami");
  assert.deepStrictEqual(me.auth, { token: "é", n: 1 });
  assert.strictEqual(me.tenant, "a b&c");
  assert.strictEqual(me.header, "7");
  assert.strictEqual(me.id, s.id);
});
check("brings auth from a function", async (b) => {
  const s = await b.join({ auth: (done) => done({ token: "late" }) });
  assert.deepStrictEqual((await ask(s, "whoami")).auth, { token: "late" });
});
check("no auth is an empty object", async (b) => {
  assert.deepStrictEqual((await ask(await b.join(), "whoami")).auth, {});
});
check("what the gateway emits on connection follows the reply", async (b) => {
  const s = b.open({ query: { greet: "yes" } });
  const order = [];
  s.on("connect", () => order.push("connect"));
  s.onAny((name) => order.push(name));
  await once(s, "greeting");
  assert.deepStrictEqual(order, ["connect", "greeting"]);
});
check("a trailing slash more or less", async (b) => {
  await b.join({ path: "/socket.io" });
});

// --- namespaces
check("joins a namespace", async (b) => {
  const s = await b.join({ auth: { a: 1 } }, "/custom");
  const me = await ask(s, "whoami");
  assert.strictEqual(me.namespace, "/custom");
  assert.deepStrictEqual(me.auth, { a: 1 });
});
check("unknown namespace", async (b) => {
  const [err] = await once(b.open({}, "/nope"), "connect_error");
  assert.strictEqual(err.message, "Invalid namespace");
});
check("refused, with data, then accepted", async (b) => {
  const s = b.open({ auth: { token: "bad" } }, "/admin");
  const [err] = await once(s, "connect_error");
  assert.strictEqual(err.message, "not authorized");
  assert.deepStrictEqual(err.data, { code: 401 });
  s.auth = { token: "good" };
  s.connect();
  await once(s, "connect");
});
check("two namespaces on one connection", async (b) => {
  const s = await b.join();
  const custom = s.io.socket("/custom");
  b.clients.push(custom);
  if (!custom.connected) await once(custom, "connect");
  const [one, two] = [await ask(s, "whoami"), await ask(custom, "whoami")];
  assert.strictEqual(one.connection, two.connection);
  assert.notStrictEqual(one.id, two.id);
  custom.disconnect();
  assert.deepStrictEqual(await ask(s, "echo", 1), [1]);
});

// --- acknowledgements
check("acknowledgement", async (b) => {
  const s = await b.join();
  assert.deepStrictEqual(await ask(s, "echo", 1, "2", { 3: [false, null] }), [1, "2", { 3: [false, null] }]);
});
check("acknowledgement without arguments", async (b) => {
  const s = await b.join();
  assert.deepStrictEqual(await new Promise((r) => s.emit("nothing", (...args) => r(args))), []);
});
check("two hundred acknowledgements at once", async (b) => {
  const s = await b.join();
  const got = await Promise.all(Array.from({ length: 200 }, (_, n) => ask(s, "echo", n)));
  got.forEach((args, n) => assert.deepStrictEqual(args, [n]));
});
check("an answer that never comes", async (b) => {
  const s = await b.join();
  await assert.rejects(s.timeout(50).emitWithAck("silence"), /timed out/);
});
check("the gateway asks", async (b) => {
  const s = await b.join();
  s.on("question", (n, answer) => answer(n + 1, { deep: ["é"] }));
  s.emit("ask me", 41);
  assert.deepStrictEqual(await once(s, "answered"), [42, { deep: ["é"] }]);
});
check("the gateway asks several", async (b) => {
  const clients = [await b.join(), await b.join(), await b.join()];
  await Promise.all(clients.map(async (s, n) => {
    s.on("question", (q, answer) => setTimeout(answer, 30 - 10 * n, q * 10));
    s.emit("ask me", n);
    assert.deepStrictEqual(await once(s, "answered"), [n * 10]);
  }));
});
check("the gateway asks and the client leaves", async (b) => {
  const [s, witness] = [await b.join(), await b.join()];
  s.on("question", () => s.disconnect());
  s.emit("ask me", 1);
  const id = s.id;
  await eventually(async () => (await ask(witness, "unanswered", id)) === "socket has been disconnected");
});

// --- binary
const bytes = Buffer.from([0, 1, 2, 254, 255]);
check("binary to the gateway and back", async (b) => {
  const s = await b.join();
  s.emit("back", bytes, { deep: [bytes, "x"] });
  const [one, two] = await once(s, "came back");
  assert.deepStrictEqual(Buffer.from(one), bytes);
  assert.deepStrictEqual(Buffer.from(two.deep[0]), bytes);
  assert.strictEqual(two.deep[1], "x");
});
check("binary acknowledgement", async (b) => {
  const s = await b.join();
  const [got] = await ask(s, "echo", { file: bytes });
  assert.deepStrictEqual(Buffer.from(got.file), bytes);
});
check("binary answer to the gateway", async (b) => {
  const s = await b.join();
  s.on("question", (_, answer) => answer(bytes));
  s.emit("ask me", 1);
  assert.deepStrictEqual(Buffer.from((await once(s, "answered"))[0]), bytes);
});
check("ten attachments, an empty one among them", async (b) => {
  const s = await b.join();
  const sent = Array.from({ length: 10 }, (_, n) => Buffer.alloc(n, n));
  const got = await ask(s, "echo", ...sent);
  assert.deepStrictEqual(got.map((g) => Buffer.from(g)), sent);
});
check("eleven attachments are too many", async (b) => {
  const s = await b.join();
  s.emit("back", ...Array.from({ length: 11 }, () => bytes));
  await once(s, "disconnect");
  await once(s, "connect");
});
check("text between binary events keeps its place", async (b) => {
  const s = await b.join();
  const got = collect(s, "came back", 60);
  for (let n = 0; n < 60; n++) s.emit("back", n % 2 ? n : Buffer.from([n]));
  (await got).forEach((g, n) => assert.strictEqual(typeof g === "number" ? g : Buffer.from(g)[0], n));
});

// --- order
check("five hundred events from the gateway", async (b) => {
  const s = await b.join();
  const got = collect(s, "number", 500);
  s.emit("count", 500);
  assert.deepStrictEqual(await got, Array.from({ length: 500 }, (_, n) => n));
});
check("five hundred events to the gateway", async (b) => {
  const s = await b.join();
  const got = collect(s, "came back", 500);
  for (let n = 0; n < 500; n++) s.emit("back", n);
  assert.deepStrictEqual(await got, Array.from({ length: 500 }, (_, n) => n));
});
check("E02 events while the transport changes", async (b) => {
  for (let round = 0; round < 5; round++) {
    const s = b.open({ query: { trickle: "yes" } });
    const down = collect(s, "number", 40);
    const up = collect(s, "came back", 40);
    for (let n = 0; n < 40; n++) {
      s.emit("back", n);
      await sleep(5);
    }
    const want = Array.from({ length: 40 }, (_, n) => n);
    assert.deepStrictEqual([await up, await down], [want, want]);
    await b.settled(s);
    s.disconnect();
  }
});

// --- content
check("unicode", async (b) => {
  const s = await b.join();
  const text = "€ é e\u0301 你好 👩‍👩‍👧 العربية \u2028\u2029\u0000\u001e\u007f \"\\/ <b>&";
  assert.deepStrictEqual(await ask(s, "echo", text, { [text]: text }), [text, { [text]: text }]);
});
check("a lone surrogate", async (b) => {
  assert.deepStrictEqual(await ask(await b.join(), "echo", "\ud83d"), ["\ud83d"]);
});
check("a raw event", async (b) => {
  const s = await b.join();
  s.emit("raw", '[ "odd" , {"z":1, "a":1e2} ,"\\u00e9"]');
  assert.deepStrictEqual(await once(s, "odd"), [{ z: 1, a: 100 }, "é"]);
});
check("a number for a name", async (b) => {
  const s = await b.join();
  s.emit("raw", '[7,"x"]');
  assert.deepStrictEqual(await once(s, 7), ["x"]);
});
check("E07 undefined is null", async (b) => {
  assert.deepStrictEqual(await ask(await b.join(), "echo", 1, undefined), [1, null]);
});
check("nine hundred kilobytes both ways", async (b) => {
  const text = "0123456789é".repeat(75000);
  assert.strictEqual((await ask(await b.join(), "echo", text))[0], text);
});
check("five megabytes from the gateway", async (b) => {
  const s = await b.join();
  s.emit("big", 5 << 20);
  assert.strictEqual((await once(s, "bulk"))[0].length, 5 << 20);
});
check("E04 more than the gateway takes", async (b) => {
  const s = await b.join({}, "/", hosts.small);
  s.emit("back", "x".repeat(2000));
  const [reason] = await once(s, "disconnect");
  assert.ok(["transport close", "transport error"].includes(reason), reason);
  await once(s, "connect");
});

// --- rooms
check("rooms", async (b) => {
  const [one, two, three] = [await b.join(), await b.join(), await b.join()];
  const room = "room " + one.id;
  await ask(one, "enter", room);
  await ask(two, "enter", room);
  const seen = [];
  [one, two, three].forEach((s, n) => s.on("said", (text) => seen.push(n + text)));
  await ask(three, "say", room, "a");
  await ask(two, "leave", room);
  await ask(three, "say", room, "b");
  await Promise.all([one, two, three].map((s) => ask(s, "echo")));
  assert.deepStrictEqual(seen.sort(), ["0a", "0b", "1a"]);
});
check("a socket's id is its room", async (b) => {
  const [one, two] = [await b.join(), await b.join()];
  const said = once(one, "said");
  await ask(two, "say", one.id, "psst");
  assert.deepStrictEqual(await said, ["psst"]);
});

// --- ends
check("the gateway disconnects the namespace", async (b) => {
  const s = await b.join();
  const custom = s.io.socket("/custom");
  b.clients.push(custom);
  if (!custom.connected) await once(custom, "connect");
  custom.emit("bye", false);
  assert.strictEqual((await once(custom, "disconnect"))[0], "io server disconnect");
  assert.deepStrictEqual(await ask(s, "echo", 1), [1]);
  custom.connect();
  await once(custom, "connect");
});
check("the gateway disconnects for good", async (b) => {
  const s = await b.settled(await b.join());
  let again = 0;
  s.io.on("reconnect_attempt", () => again++);
  s.emit("bye", true);
  const reasons = [];
  s.on("disconnect", (reason) => reasons.push(reason));
  await once(s, "disconnect");
  await sleep(200);
  assert.deepStrictEqual([reasons, again, s.active], [["io server disconnect"], 0, false]);
});
check("the last words before a disconnect arrive", async (b) => {
  const s = await b.join();
  const got = [];
  s.onAny((name, n) => got.push(n));
  s.emit("count and bye", 50);
  await once(s, "disconnect");
  assert.deepStrictEqual(got, Array.from({ length: 50 }, (_, n) => n));
});
check("the client disconnects", async (b) => {
  const [s, witness] = [await b.join(), await b.join()];
  const id = s.id;
  s.disconnect();
  assert.strictEqual(await eventually(() => ask(witness, "why left", id)), "client namespace disconnect");
});
check("the client disconnects at once", async (b) => {
  const witness = await b.join();
  for (let n = 0; n < 5; n++) {
    const s = await b.join();
    const id = s.id;
    s.emit("back", 1);
    s.disconnect();
    await eventually(() => ask(witness, "why left", id));
  }
});
check("the client drops its connection", async (b) => {
  const [s, witness] = [await b.settled(await b.join()), await b.join()];
  const id = s.id;
  s.io.engine.close();
  assert.strictEqual(await eventually(() => ask(witness, "why left", id)), "transport close");
});
check("a cut, and back again", async (b) => {
  const s = await b.settled(await b.join());
  const id = s.id;
  s.emit("cut");
  const [reason] = await once(s, "disconnect");
  assert.ok(["transport close", "transport error"].includes(reason), reason);
  await once(s, "connect");
  assert.notStrictEqual(s.id, id);
  assert.deepStrictEqual(await ask(s, "echo", 1), [1]); // the client's acknowledgement ids go on
});
check("a close code, and back again", async (b) => {
  const s = await b.settled(await b.join());
  s.emit("close", 4001);
  const [reason, detail] = await once(s, "disconnect");
  assert.strictEqual(reason, "transport close");
  if (b.transport !== "polling") assert.strictEqual(detail.context.code, 4001);
  await once(s, "connect");
});
check("a packet that is none, and back again", async (b) => {
  const s = await b.settled(await b.join());
  s.emit("packet", '2{"no":"array"}');
  assert.strictEqual((await once(s, "disconnect"))[0], "parse error");
  await once(s, "connect");
});
check("a frame that is none, and back again", async (b) => {
  const s = await b.settled(await b.join());
  s.emit("frame", "?");
  await once(s, "disconnect");
  await once(s, "connect");
});
check("what is emitted meanwhile is sent after", async (b) => {
  const s = await b.join();
  s.emit("cut");
  await once(s, "disconnect");
  const got = collect(s, "came back", 3);
  for (let n = 0; n < 3; n++) s.emit("back", n);
  assert.deepStrictEqual(await got, [0, 1, 2]);
});
check("an answer that the cut took", async (b) => {
  const s = await b.settled(await b.join());
  const answer = s.timeout(300).emitWithAck("cut");
  await assert.rejects(answer, /timed out|disconnected/);
});

// --- time
check("heartbeats", async (b) => {
  const s = await b.settled(await b.join({}, "/", hosts.quick));
  let pings = 0;
  s.io.on("ping", () => pings++);
  s.on("disconnect", (reason) => assert.fail(reason));
  await eventually(() => pings >= 5);
  assert.deepStrictEqual(await ask(s, "echo", 1), [1]);
  s.off("disconnect");
});
check("a client that answers no ping", async (b) => {
  const [s, witness] = [await b.settled(await b.join({ reconnection: false }, "/", hosts.quick)), await b.join({}, "/", hosts.quick)];
  const id = s.id;
  const engine = s.io.engine;
  const send = engine._sendPacket;
  engine._sendPacket = function (type, ...rest) {
    if (type !== "pong") send.call(engine, type, ...rest);
  };
  assert.strictEqual(await eventually(() => ask(witness, "why left", id)), "ping timeout");
  if (s.connected) await once(s, "disconnect");
});
check("recovers its state", async (b) => {
  const s = await b.settled(await b.join({}, "/", hosts.recovering));
  const id = s.id;
  const room = "room " + id;
  await ask(s, "enter", room);
  s.emit("count", 1);
  await once(s, "number");
  const got = collect(s, "said", 2);
  const order = [];
  s.on("said", (text) => order.push(text));
  s.on("connect", () => order.push("connect"));
  s.emit("cut and say", room, "missed");
  await once(s, "connect");
  await ask(s, "say", room, "live");
  assert.deepStrictEqual([s.recovered, s.id === id], [true, true]);
  assert.deepStrictEqual((await got).map((g) => g[0]), ["missed", "live"]);
  assert.deepStrictEqual(order, ["missed", "connect", "live"]);
});

async function main() {
  const transports = ["polling", "websocket", "upgrade"];
  await Promise.all(transports.map(async (transport) => {
    for (const { name, run } of checks) {
      const bench = new Bench(transport);
      let timer;
      const late = new Promise((_, reject) => {
        timer = setTimeout(() => reject(new Error(`not done after ${limit} ms`)), limit);
      });
      try {
        await Promise.race([run(bench), late]);
        console.log(`ok ${transport}: ${name}`);
      } catch (err) {
        console.log(`not ok ${transport}: ${name}: ${String((err && err.stack) || err).replace(/\n/g, " | ")}`);
      } finally {
        clearTimeout(timer);
        bench.close();
      }
    }
  }));
  console.log(`done ${checks.length * transports.length}`);
}

process.on("uncaughtException", (err) => console.log(`not ok process: uncaught: ${err.stack.replace(/\n/g, " | ")}`));
main().then(() => process.exit(0));
