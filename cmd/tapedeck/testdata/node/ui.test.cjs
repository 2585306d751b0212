// A UI test that drives the player, on node:test: node --test ui.test.cjs, with
// PLAYER the player's address. The app under test is the small one at the end.
const { test } = require('node:test');
const assert = require('node:assert');

const control = async (call, body) => {
  const answer = await fetch(`${process.env.PLAYER}/__tapedeck/${call}`, body && { method: 'POST', body: JSON.stringify(body) });
  assert.equal(answer.status, 200, await answer.clone().text());
  return answer.json();
};

test('the decision is answered once, and the answer is shown', async () => {
  await control('reset', {});
  await control('scenario', { scenario: 'approval', thread: 't1' });
  assert.match(await useApp('t1', 'approve'), /The refund is on its way/);
  const { ok, problems } = await control('verify?thread=t1&scenario=approval');
  assert.ok(ok, problems.join('\n'));
});

test('what the app forgets is told', async () => {
  await control('reset', {});
  await useApp('t2', undefined);
  const { ok, problems } = await control('verify?thread=t2&scenario=approval');
  assert.ok(!ok);
  assert.match(problems.join('\n'), /run:resume was expected and never came/);
});

test('a frozen run goes on by hand', async () => {
  await control('reset', {});
  await control('pause', {});
  const seen = useApp('t3', 'reject');
  for (let shown = 0; shown < 1; shown = (await control('state')).threads[0]?.sequence ?? 0) {
    await control('step', { steps: 1 });
  }
  const { threads } = await control('state');
  assert.ok(threads[0].run, 'the run stands still after a step');
  await control('resume', {});
  assert.match(await seen, /nothing was refunded/);
});

// useApp is the app under test, and its user, who answers the decision so.
function useApp(threadId, answer) {
  const { io } = require(`${process.env.TAPEDECK_NODE_MODULES}/socket.io-client`);
  const socket = io(process.env.PLAYER, { forceNew: true });
  let text = '';
  return new Promise((done) => {
    let asked;
    socket.on('protocol:hello', async () => {
      await socket.emitWithAck('thread:messages', { threadId });
      socket.emit('run:start', { threadId, messageId: `m-${threadId}`, input: 'Refund order 4711' });
    });
    socket.on('run:event', ({ event }) => {
      if (event.delta) text += event.delta;
      if (event.type === 'INTERRUPT') asked = event.interruptId;
      if (event.type !== 'RUN_FINISHED') return;
      if (asked && answer) socket.emit('run:resume', { threadId, interruptId: asked, answer });
      else done(text);
      asked = undefined;
    });
  }).finally(() => socket.close());
}
