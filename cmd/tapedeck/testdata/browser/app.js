// A chat front end for tests, on the unmodified socket.io-client: it keeps a
// state, reduces what comes into it, and draws all of it anew, as apps do that
// are written with React. app.html?gateway=URL&thread=ID[&transports=polling]
const query = new URLSearchParams(location.search);
const threadId = query.get('thread');
const clientTools = [{
  name: 'pick_date', description: 'Lets the user pick a date.', kind: 'blocking',
  arguments: { type: 'object', properties: { title: { type: 'string' } } }, result: { type: 'string' },
}];
const socket = io(query.get('gateway'), {
  transports: query.get('transports')?.split(','),
  withCredentials: true,
  reconnectionDelay: 100,
});

const fresh = () => ({ items: [], todos: [], last: {}, run: null, holes: 0, twice: 0 });
let state = fresh();
let joined = false;
let joins = 0;
let early = []; // envelopes that come before the answer to thread:messages

const item = (id) => state.items.find((i) => i.id === id);
const add = (i) => { if (!item(i.id)) state.items.push(i); };
const grow = (id, field, more) => { const i = item(id); if (i) i[field] += more; };

const reducers = {
  RUN_STARTED: (e, run) => {
    state.run = run;
    if (e.message) add({ kind: 'user', id: e.message.id, text: e.message.content });
  },
  RUN_FINISHED: () => { state.run = null; },
  RUN_CANCELLED: (e, run) => { state.run = null; add({ kind: 'notice', id: 'end of ' + run, text: 'stopped' }); },
  RUN_ERROR: (e, run) => { state.run = null; add({ kind: 'notice', id: 'end of ' + run, text: `${e.code}: ${e.message}` }); },
  TEXT_MESSAGE_START: (e) => add({ kind: 'text', id: e.messageId, text: '' }),
  TEXT_MESSAGE_CONTENT: (e) => grow(e.messageId, 'text', e.delta),
  REASONING_START: (e) => add({ kind: 'reasoning', id: e.messageId, text: '' }),
  REASONING_CONTENT: (e) => grow(e.messageId, 'text', e.delta),
  TOOL_CALL_START: (e) => add({ kind: 'tool', id: e.toolCallId, name: e.toolCallName, args: '', text: '' }),
  TOOL_CALL_ARGS: (e) => grow(e.toolCallId, 'args', e.delta),
  TOOL_CALL_RESULT: (e) => grow(e.toolCallId, 'text', e.content),
  INTERRUPT: (e) => add({ kind: 'decision', id: e.interruptId, payload: e.payload }),
  TODOS_SNAPSHOT: (e) => { state.todos = e.todos; },
  SUBAGENT_STARTED: (e) => add({ kind: 'subagent', id: e.taskId ?? e.toolCallId, name: e.name, text: 'at work' }),
  SUBAGENT_FINISHED: (e) => { const i = item(e.taskId ?? e.toolCallId); if (i) i.text = e.status; },
};

function take({ threadId: thread, runId, sequence, event }) {
  if (thread !== threadId) return;
  const last = state.last[runId] ?? 0;
  if (sequence <= last) { state.twice++; return; }
  if (sequence > last + 1) state.holes++;
  state.last[runId] = sequence;
  reducers[event.type]?.(event, runId);
}

// join forgets what is shown and asks for all of it: the history, and the replay
// of what is under way.
async function join() {
  joined = false;
  early = [];
  const answer = await socket.emitWithAck('thread:messages', { threadId });
  state = fresh();
  for (const m of answer.messages) {
    if (m.reasoning) add({ kind: 'reasoning', id: 'thought of ' + m.id, text: m.reasoning });
    if (m.content) add({ kind: m.role === 'user' ? 'user' : 'text', id: m.id, text: m.content });
    for (const t of m.toolCalls ?? []) add({ kind: 'tool', id: t.id, name: t.name, args: JSON.stringify(t.arguments), text: t.result ?? '' });
  }
  const { envelopes = [], truncated } = answer.replay ?? {};
  if (truncated && envelopes.length) state.last[envelopes[0].runId] = envelopes[0].sequence - 1;
  envelopes.forEach(take);
  if (answer.pendingInterrupt) add({ kind: 'decision', id: answer.pendingInterrupt.interruptId, payload: answer.pendingInterrupt.payload });
  if (answer.todos) state.todos = answer.todos;
  early.forEach(take);
  joined = true;
  joins++;
  draw();
}

function resume(i, answer) {
  i.answer = answer;
  socket.emit('run:resume', { threadId, interruptId: i.id, answer, clientTools });
  draw();
}

function element(tag, properties, ...children) {
  const e = Object.assign(document.createElement(tag), properties);
  e.append(...children);
  return e;
}

function view(i) {
  switch (i.kind) {
    case 'tool':
      return [`${i.name}(${i.args}) → ${i.text}`];
    case 'subagent':
      return [`${i.name}: ${i.text}`];
    case 'decision': {
      if (i.answer !== undefined) return [`answered: ${i.answer}`];
      if (i.payload.clientTool) {
        const date = element('input', { type: 'date', value: '2026-01-07' });
        return [i.payload.arguments.title + ' ', date, element('button', { textContent: 'choose', onclick: () => resume(i, date.value) })];
      }
      return [i.payload.question + ' ', ...i.payload.options.map((o) => element('button', { textContent: o, onclick: () => resume(i, o) }))];
    }
    default:
      return [i.text];
  }
}

function draw() {
  const doing = !socket.connected ? 'offline' : !joined ? 'joining' : state.run ? 'running' : 'idle';
  document.querySelector('#status').textContent = doing;
  document.querySelector('#todos').replaceChildren(...state.todos.map((t) => element('li', { className: t.status, textContent: t.content })));
  document.querySelector('#chat').replaceChildren(...state.items.map((i) => element('div', { className: i.kind, id: i.id }, ...view(i))));
}

socket.on('protocol:hello', join); // and not on connect: a command before it is one too early
socket.on('disconnect', () => { joined = false; draw(); });
socket.on('run:event', (envelope) => {
  if (joined) take(envelope);
  else early.push(envelope);
  draw();
});
socket.on('protocol:error', ({ code, message }) => { add({ kind: 'notice', id: 'refused ' + state.items.length, text: `${code}: ${message}` }); draw(); });

document.querySelector('#say').onsubmit = (submit) => {
  submit.preventDefault();
  const input = document.querySelector('#input');
  const messageId = crypto.randomUUID();
  add({ kind: 'user', id: messageId, text: input.value });
  socket.emit('run:start', { threadId, messageId, input: input.value, clientTools });
  input.value = '';
  draw();
};
document.querySelector('#cancel').onclick = () => socket.emit('run:cancel', { runId: state.run });
draw();
