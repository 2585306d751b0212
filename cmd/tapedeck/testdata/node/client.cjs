// An app for tests, on npm's socket.io-client, unmodified: it opens a thread,
// has three runs, answers the decision, and prints what it saw, a line each.
// node client.cjs URL [polling|websocket]
const { io } = require(`${process.env.TAPEDECK_NODE_MODULES}/socket.io-client`);

const [url, transport] = process.argv.slice(2);
const socket = io(url, {
  auth: { token: process.env.CLIENT_TOKEN ?? 'none' },
  query: process.env.CLIENT_QUERY ? { token: process.env.CLIENT_QUERY } : undefined,
  extraHeaders: process.env.CLIENT_AUTHORIZATION ? { Authorization: process.env.CLIENT_AUTHORIZATION } : undefined,
  ...(transport && { transports: [transport] }),
});
const threadId = process.env.CLIENT_THREAD ?? 'thread-1';
const say = (...words) => console.log(...words);
const once = (event, test = () => true) =>
  new Promise((done) => {
    const on = (payload) => {
      if (!test(payload)) return;
      socket.off(event, on);
      done(payload);
    };
    socket.on(event, on);
  });
const ended = () => once('run:event', ({ event }) => ['RUN_FINISHED', 'RUN_ERROR', 'RUN_CANCELLED'].includes(event.type));

socket.on('connect_error', (error) => say('connect_error', error.message));
socket.on('disconnect', (reason) => say('disconnect', reason));
socket.on('protocol:error', ({ code, message }) => say('protocol:error', code, message));
socket.on('run:event', ({ runId, sequence, event }) => say(runId, sequence, event.type, event.delta ?? ''));

setTimeout(() => { say('gave up'); process.exit(1); }, 20000).unref();

(async () => {
  const greeting = await once('protocol:hello');
  say('hello', greeting.protocol.major, greeting.protocol.minor);
  const history = await socket.emitWithAck('thread:messages', { threadId });
  say('history', history.ok, history.messages.length);
  let over = ended();
  socket.emit('run:start', { threadId, messageId: 'u1', input: 'search flights to Lisbon' });
  await over;
  over = ended();
  const asked = once('run:event', ({ event }) => event.type === 'INTERRUPT');
  socket.emit('run:start', { threadId, messageId: 'u2', input: 'book the first one' });
  const { event } = await asked;
  await over;
  over = ended();
  socket.emit('run:resume', { threadId, interruptId: event.interruptId, answer: 'approve' });
  await over;
  over = ended();
  socket.emit('run:start', { threadId, messageId: 'u3', input: 'break please' });
  await over;
  socket.emit('run:cancel', { runId: 'run-1' });
  await once('protocol:error');
  const after = await socket.emitWithAck('thread:messages', { threadId });
  say('history', after.ok, after.messages.map((m) => m.id).join(' '));
  socket.close();
})();
