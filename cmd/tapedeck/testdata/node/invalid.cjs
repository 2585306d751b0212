// An app with a defect: it sends a misspelt key, then an extra one, then a
// command that is right. node invalid.cjs URL [polling|websocket]
const { io } = require(`${process.env.TAPEDECK_NODE_MODULES}/socket.io-client`);

const [url, transport] = process.argv.slice(2);
const socket = io(url, transport ? { transports: [transport] } : {});
setTimeout(() => { console.log('gave up'); process.exit(1); }, 20000).unref();

socket.on('protocol:hello', async () => {
  const refused = new Promise((done) => socket.once('protocol:error', done));
  socket.emit('run:start', { threadId: 't', messageId: 'm', inptu: 'hello' });
  console.log('protocol:error', (await refused).code);
  const answer = await socket.emitWithAck('thread:messages', { threadId: 't', limit: 10 });
  console.log('answer', answer.ok, answer.error.code);
  const history = await socket.emitWithAck('thread:messages', { threadId: 't' });
  console.log('history', history.ok);
  socket.close();
});
