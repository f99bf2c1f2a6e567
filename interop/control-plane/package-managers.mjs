// Deploys one real graph by each package manager whose lock file decides what is installed, and one beside a virtual environment of
// Python. The lock files are made first, by the package managers themselves. Each source is deployed twice: the second time its packages
// are there already. Ends with 1 when something was not as expected.
import { cp, readFile, rm, writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import { runToEnd, startScene } from '../../scripts/deployment-scene.ts';

const npx = (name, ...words) => ['npx', '--yes', `--package=${name}`, '--', ...words];
const cases = [
  {
    name: 'pnpm-10',
    lock: npx('pnpm@10', 'pnpm', 'install', '--lockfile-only'),
    log: /installed by pnpm-lock\.yaml/,
  },
  {
    name: 'pnpm-8',
    lock: npx('pnpm@8', 'pnpm', 'install', '--lockfile-only'),
    log: /pnpm@8/,
  },
  {
    name: 'yarn-1',
    lock: npx('yarn@1.22.22', 'yarn', 'install', '--ignore-scripts', '--silent'),
    log: /yarn@1\.22\.22/,
  },
  {
    name: 'yarn-4',
    lock: npx('@yarnpkg/cli-dist@4', 'yarn', 'install', '--mode=update-lockfile'),
    files: { 'yarn.lock': '' },
    log: /@yarnpkg\/cli-dist@4/,
  },
  {
    name: 'npm-and-python',
    lock: ['npm', 'install', '--package-lock-only', '--no-audit', '--no-fund'],
    config: { dependencies: ['.', 'idna==3.10'] },
    files: { 'requirements.txt': 'certifi==2025.8.3\n' },
    // What was installed is there when the graph runs.
    code: [
      [
        'export const graph',
        `import { execFileSync } from 'node:child_process';\n` +
          `const python = new URL('./.venv/bin/python', import.meta.url).pathname;\nexport const graph`,
      ],
      [
        "${process.env['GREETING']} ${text}",
        "Hello ${text} ${execFileSync(python, ['-c', 'import idna, certifi; print(idna.__version__)'])}",
      ],
    ],
    expected: 'Hello there 3.10',
    log: /-m pip install/,
  },
];
/** Not in the archive. */
const LEFTOVERS = ['node_modules', '.yarn', '.pnp.cjs', '.pnp.loader.mjs'];

let failed = 0;

function check(isTrue, what, details = '') {
  console.log(`${isTrue ? 'ok  ' : 'FAIL'}  ${what}`);
  if (isTrue) return;
  failed += 1;
  console.log(details.replaceAll(/^/gm, '      '));
}

async function prepare({ name, lock, config = {}, files = {}, code = [] }, scratch) {
  const source = join(scratch, name);
  await cp(join(import.meta.dirname, 'source'), source, { recursive: true });
  await rm(join(source, 'package-lock.json'));
  for (const [file, text] of Object.entries(files)) await writeFile(join(source, file), text);
  const configFile = join(source, 'langgraph.json');
  await writeFile(
    configFile,
    JSON.stringify({ ...JSON.parse(await readFile(configFile, 'utf8')), ...config }),
  );
  const graph = join(source, 'agent.ts');
  let text = await readFile(graph, 'utf8');
  for (const [from, to] of code) text = text.replace(from, () => to);
  await writeFile(graph, text);
  await writeFile(join(source, '.env'), 'GREETING=Hello\n');
  const [program, ...args] = lock;
  const locked = await runToEnd(program, args, { CI: '', YARN_ENABLE_TELEMETRY: '0' }, source);
  check(locked.code === 0, `${name}: the lock file is made`, `${locked.stdout}${locked.stderr}`);
  for (const left of LEFTOVERS) await rm(join(source, left), { recursive: true, force: true });
  return source;
}

async function deploy({ name, expected = 'Hello there' }, source, scene) {
  const began = performance.now();
  const { code, stdout, stderr } = await scene.deploy([source, '--name', name]);
  const log = await scene.deploy(['logs', name, '--build']);
  const seconds = ((performance.now() - began) / 1000).toFixed(1);
  check(code === 0, `${name}: deployed after ${seconds} s`, `${stderr}${log.stdout}`);
  if (code !== 0) return log.stdout;
  const response = await fetch(`${stdout.trim()}/runs/wait`, {
    method: 'POST',
    headers: { 'X-Api-Key': scene.key, 'Content-Type': 'application/json' },
    body: JSON.stringify({ assistant_id: 'agent', input: { text: 'there' } }),
  });
  const body = await response.text();
  check(response.status === 200 && body.includes(expected), `${name}: the graph says "${expected}"`, body);
  return log.stdout;
}

await using cleanup = new AsyncDisposableStack();
const scene = await startScene(cleanup);
for (const one of cases) {
  const source = await prepare(one, scene.scratch);
  const first = await deploy(one, source, scene);
  check(one.log.test(first), `${one.name}: the log says what installed it`, first);
  const second = await deploy(one, source, scene);
  check(/were installed before/.test(second), `${one.name}: the packages are used again`, second);
  await scene.deploy(['delete', one.name, '--yes']);
}
console.log(failed === 0 ? 'everything was as expected' : `${failed} checks failed`);
await cleanup.disposeAsync();
process.exit(failed === 0 ? 0 : 1);
