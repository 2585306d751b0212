// Compares what two apps printed, but for the numbers of their runs.
// node normal.cjs A B
const { readFileSync } = require('node:fs');

const [a, b] = process.argv.slice(2).map((file) => {
  const names = new Map();
  return readFileSync(file, 'utf8').replace(/run-\d+/g, (id) => {
    if (!names.has(id)) names.set(id, `R${names.size + 1}`);
    return names.get(id);
  });
});
if (a !== b) {
  console.log(`${a}\n-- differs from --\n${b}`);
  process.exit(1);
}
