// A gateway for tests, on npm's socket.io: one thread, three runs, chosen by
// the input's first word. It prints "listening PORT", and takes its options
// from the environment.
const http = require('node:http');
const { Server } = require(`${process.env.TAPEDECK_NODE_MODULES}/socket.io`);

const hello = { protocol: { major: 1, minor: 17 }, minClientMajor: 1 };
const web = http.createServer((req, res) => {
  const answers = { '/protocol': hello, '/health': { ok: true } };
  const found = answers[req.url.split('?')[0]];
  if (!found) return; // socket.io's own
  res.setHeader('content-type', 'application/json');
  res.end(JSON.stringify(found));
});
const io = new Server(web, { pingInterval: Number(process.env.PING_INTERVAL ?? 25000) });

const threads = new Map();
const thread = (id) => {
  if (!threads.has(id)) threads.set(id, { messages: [], buffer: null, pending: null });
  return threads.get(id);
};
let runs = 0;

class Run {
  constructor(threadId, id = `run-${++runs}`) {
    Object.assign(this, { threadId, id, sequence: 0, text: '' });
    thread(threadId).buffer = [];
  }
  emit(type, fields = {}) {
    const envelope = { v: 1, threadId: this.threadId, runId: this.id, sequence: ++this.sequence, event: { type, ...fields } };
    thread(this.threadId).buffer?.push(envelope);
    io.to(this.threadId).emit('run:event', envelope);
  }
  say(messageId, words) {
    this.emit('TEXT_MESSAGE_START', { messageId, role: 'assistant' });
    for (const delta of words) this.emit('TEXT_MESSAGE_CONTENT', { messageId, delta });
    this.emit('TEXT_MESSAGE_END', { messageId });
    this.keep(messageId, words.join(''));
  }
  keep(id, content) {
    thread(this.threadId).messages.push({ id, role: 'assistant', content, createdAt: '2026-01-01T00:00:00.000Z' });
  }
  think(messageId, words) {
    this.emit('REASONING_START', { messageId });
    for (const delta of words) this.emit('REASONING_CONTENT', { messageId, delta });
    this.emit('REASONING_END', { messageId });
  }
  call(toolCallId, toolCallName, pieces) {
    this.emit('TOOL_CALL_START', { toolCallId, toolCallName });
    for (const delta of pieces) this.emit('TOOL_CALL_ARGS', { toolCallId, delta });
    this.emit('TOOL_CALL_END', { toolCallId });
  }
  end(type, fields) {
    this.emit(type, fields);
    thread(this.threadId).buffer = null;
  }
}

const pause = (ms) => new Promise((done) => setTimeout(done, ms));

const stories = {
  async search(run) {
    run.think('m1', ['The user wants ', 'flights; ', 'I look them up.']);
    run.call('k1', 'search_flights', ['{"from":"BER",', '"to":"LIS"}']);
    await pause(20);
    run.emit('TOOL_CALL_RESULT', { toolCallId: 'k1', content: '{"flights":[{"no":"TP535","price":129}]}' });
    run.say('m2', ['Here ', 'is one: ', 'TP535 ', 'for 129 €.']);
    run.end('RUN_FINISHED');
  },
  async book(run) {
    run.call('k2', 'book_flight', ['{"no":"TP535"}']);
    const payload = { question: 'Book TP535 for 129 €?', options: ['approve', 'reject'] };
    run.emit('INTERRUPT', { interruptId: 'i1', payload });
    run.emit('RUN_PAUSED');
    thread(run.threadId).pending = { interruptId: 'i1', payload };
    run.end('RUN_FINISHED');
  },
  async break(run) {
    run.emit('TEXT_MESSAGE_START', { messageId: 'm4', role: 'assistant' });
    run.emit('TEXT_MESSAGE_CONTENT', { messageId: 'm4', delta: 'Your seat is ' });
    run.end('RUN_ERROR', { code: 'MODEL_UNAVAILABLE', message: 'the model did not answer' });
  },
};

io.on('connection', (socket) => {
  const { auth, query, headers } = socket.handshake;
  console.log(`auth ${auth.token} query ${query.token} header ${headers.authorization}`);
  socket.emit('protocol:hello', hello);
  const refuse = (code, message) => socket.emit('protocol:error', { code, message });
  socket.on('thread:messages', ({ threadId }, ack) => {
    socket.join(threadId);
    const { messages, buffer, pending } = thread(threadId);
    ack({ ok: true, messages, ...(buffer && { replay: { envelopes: buffer, truncated: false } }), ...(pending && { pendingInterrupt: pending }) });
  });
  socket.on('run:start', async ({ threadId, messageId, input }) => {
    const story = stories[input.split(' ')[0]];
    if (!story) return refuse('INVALID_COMMAND', 'no such story');
    socket.join(threadId);
    const message = { id: messageId, role: 'user', content: input, createdAt: '2026-01-01T00:00:00.000Z' };
    thread(threadId).messages.push(message);
    const run = new Run(threadId);
    run.emit('RUN_STARTED', { message });
    await pause(20);
    await story(run);
  });
  socket.on('run:resume', async ({ threadId, interruptId, answer }) => {
    const t = thread(threadId);
    if (t.pending?.interruptId !== interruptId) return refuse('UNKNOWN_RUN', 'the conversation is not waiting on that decision');
    t.pending = null;
    const run = new Run(threadId);
    run.emit('RUN_STARTED');
    run.emit('TOOL_CALL_RESULT', { toolCallId: 'k2', content: JSON.stringify(answer) });
    run.say('m3', ['Booked. ', 'Have a ', 'good flight!']);
    run.end('RUN_FINISHED');
  });
  socket.on('run:cancel', () => refuse('UNKNOWN_RUN', 'the run is not active'));
  socket.on('run:detach', () => refuse('UNKNOWN_RUN', 'the run is not active'));
});

web.listen(0, '127.0.0.1', () => console.log(`listening ${web.address().port}`));
