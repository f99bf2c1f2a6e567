// The hand-written JavaScript client, langsmith/sandbox: the life of a sandbox.
import { createHash } from 'node:crypto';
import { SandboxClient } from 'langsmith/sandbox';
import { askFor, endpoint, errorOf, key, origin, report, viewerKey } from './steps.mjs';

const apiEndpoint = `${endpoint}/v2/sandboxes`;
const client = new SandboxClient({ apiEndpoint, apiKey: key });
const name = 'javascript';
const rule = (headers) => ({ rules: [{ name: 'origin', match_hosts: ['api.localhost'], headers }] });
const proxyConfig = rule([{ name: 'X-Key', type: 'workspace_secret', value: 'Bearer {INTEROP}' }]);
const sha256 = (bytes) => createHash('sha256').update(bytes).digest('hex');
const text = (bytes) => Buffer.from(bytes).toString();

async function lifecycle() {
  const created = await client.createSandbox({ name, proxyConfig, idleTtlSeconds: 3600 });
  report('create', [created.name, created.status, typeof created.id, typeof created.dataplane_url]);
  const later = await client.createSandbox({ name: 'later', waitForReady: false });
  report('create without waiting', later.status);
  report('wait', (await client.waitForSandbox('later', { timeout: 60 })).status);
  report('list', (await client.listSandboxes()).map((one) => one.name).toSorted());
  report('get', (await client.getSandbox(name)).id === created.id);
  report('status', (await client.getSandboxStatus(name)).status);
  const updated = await client.updateSandbox(name, { newName: 'renamed', idleTtlSeconds: 600 });
  report('update', [updated.name, updated.idle_ttl_seconds]);
  await client.updateSandbox('renamed', { newName: name });
  await client.deleteSandbox('later');
  return client.getSandbox(name);
}

async function run(sandbox) {
  const command = `curl -sS -o /dev/null -w '%{http_code}' --noproxy '' https://${origin}/v1/models`;
  report('curl', await sandbox.run(command, { timeout: 30 }));
  report('run', await sandbox.run('echo $A; pwd; echo e >&2; exit 3', { env: { A: 'b' }, cwd: '/tmp' }));
  const [out, err] = [[], []];
  await sandbox.run('echo one; echo two >&2', {
    onStdout: (data) => out.push(data),
    onStderr: (data) => err.push(data),
  });
  report('callbacks', [out.join(''), err.join('')]);
  const handle = await sandbox.run('read x; echo "got $x"; sleep 1000', { wait: false, closeInput: false });
  handle.sendInput('input\n');
  let seen = '';
  for await (const { data } of handle) {
    seen += data;
    if (seen === 'got input\n') handle.kill();
  }
  report('stdin and kill', [seen, (await handle.result).exit_code]);
  report('timeout', await errorOf(() => sandbox.run('sleep 1000', { timeout: 1 })));
}

/** Lines come all the time, also while the platform is away. */
const COUNTING = 'i=0; until test -e /tmp/go; do i=$((i+1)); echo line $i; sleep 0.02; done; echo last $i';

async function restart(sandbox) {
  const handle = await sandbox.run(COUNTING, { wait: false, timeout: 300 });
  const pieces = [];
  for await (const { data } of handle) {
    pieces.push(data);
    if (pieces.length === 10) {
      await askFor('restart');
      await sandbox.write('/tmp/go', '');
    }
  }
  const lines = pieces.join('').trim().split('\n');
  const isWhole = lines.slice(0, -1).every((line, at) => line === `line ${at + 1}`);
  report('restart', [isWhole, lines.at(-1) === `last ${lines.length - 1}`, (await handle.result).exit_code]);
  const again = await sandbox.reconnect(handle.commandId, { stdoutOffset: 7 });
  let rest = '';
  for await (const { data } of again) rest += data;
  report('reconnect', rest === pieces.join('').slice(7));
  report('reconnect to nothing', await errorOf(async () => (await sandbox.reconnect('none')).result));
}

async function files(sandbox) {
  await sandbox.write('/tmp/dir/text', 'héllo');
  report('read', text(await sandbox.read('/tmp/dir/text')));
  const bytes = Buffer.from(Array.from({ length: 3_000_000 }, (_, at) => at % 251));
  await sandbox.write('/tmp/bytes', bytes);
  report('bytes', sha256(await sandbox.read('/tmp/bytes')) === sha256(bytes));
  await sandbox.write('/tmp/part', '0123456789');
  const stat = await sandbox.stat('/tmp/part');
  report('stat', stat.size_bytes);
  const range = { start: 2, end: 4, ifRange: stat.etag };
  const chunk = await sandbox.readRange('/tmp/part', range);
  report('range', [text(chunk.content), chunk.partial, chunk.start, chunk.total_bytes]);
  report('suffix', text((await sandbox.readRange('/tmp/part', { suffixBytes: 2 })).content));
  report('unchanged', (await sandbox.readRange('/tmp/part', { start: 0, ifNoneMatch: stat.etag })).unchanged);
  await sandbox.write('/tmp/part', 'abcdefghij');
  report('changed', (await sandbox.readRange('/tmp/part', range)).partial);
  report('past the end', await errorOf(() => sandbox.readRange('/tmp/part', { start: 99 })));
  await sandbox.write('/tmp/found/x.py', 'import os\nTODO\n');
  await sandbox.write('/tmp/found/sub/y.py', 'TODO too\n');
  report(
    'glob',
    (await sandbox.glob('**/*.py', '/tmp/found')).matches.map(({ path }) => path),
  );
  report(
    'ls',
    (await sandbox.ls('/tmp/found')).matches.map(({ path, is_dir }) => [path, is_dir]),
  );
  report('grep', (await sandbox.grep('TODO', '/tmp/found', { glob: '*.py' })).matches);
  report('no file', await errorOf(() => sandbox.read('/tmp/none')));
  report('no permission', await errorOf(() => sandbox.write('/usr/x', 'x')));
}

async function service(sandbox, program) {
  await sandbox.write('/tmp/server.pl', program);
  await sandbox.run('perl /tmp/server.pl >/dev/null 2>&1 & sleep 1');
  const url = await client.serviceUrl(name, { port: 8000 });
  const response = await url.fetch('/a/path?b=c');
  report('service', [response.status, await response.text()]);
  const without = await fetch(await url.serviceUrl(), { redirect: 'manual' });
  report('service without its token', without.status);
  report('service of the proxy', await errorOf(() => client.serviceUrl(name, { port: 3128 })));
}

async function errors() {
  const other = (apiKey) => new SandboxClient({ apiEndpoint, apiKey, maxRetries: 0 });
  report('401', await errorOf(() => other('wrong').getSandbox(name)));
  report('403', await errorOf(() => other(viewerKey).createSandbox({ name: 'denied' })));
  report('404', await errorOf(() => client.getSandbox('none')));
  report('408', await errorOf(() => client.createSandbox({ name: 'slow', timeout: 0 })));
  await client.waitForSandbox('slow', { timeout: 60 });
  report('409', await errorOf(() => client.updateSandbox('slow', { newName: name })));
  const invalid = { rules: [{ name: 'x', match_hosts: ['*'] }] };
  report('422', await errorOf(() => client.createSandbox({ name: 'bad', proxyConfig: invalid })));
  const missing = rule([{ name: 'X-Key', type: 'workspace_secret', value: '{NONE}' }]);
  report(
    '422 for a secret',
    await errorOf(() => client.createSandbox({ name: 'bad', proxyConfig: missing })),
  );
  report('422 of an update', await errorOf(() => client.updateSandbox(name, { proxyConfig: invalid })));
  report('429 memory', await errorOf(() => client.createSandbox({ memBytes: 2 ** 41 })));
  report('429 cpu', await errorOf(() => client.createSandbox({ vCpus: 1000 })));
  report('429 storage', await errorOf(() => client.createSandbox({ fsCapacityBytes: 2 ** 43 })));
  report(
    '429 count',
    await errorOf(async () => {
      for (let i = 0; i < 10; i += 1) await client.createSandbox({ name: `many-${i}` });
    }),
  );
  for (const { name: one } of await client.listSandboxes()) if (one !== name) await client.deleteSandbox(one);
}

async function end(sandbox) {
  await client.stopSandbox(name);
  report('stop', (await client.getSandboxStatus(name)).status);
  report('run in a stopped one', (await sandbox.run('cat /tmp/dir/text')).stdout);
  await sandbox.stop();
  await client.startSandbox(name, { timeout: 60 });
  report('start', (await client.getSandboxStatus(name)).status);
  await askFor('stop the database');
  report(
    '503',
    await errorOf(() =>
      new SandboxClient({ apiEndpoint, apiKey: key, maxRetries: 0 }).createSandbox({ name: 'x' }),
    ),
  );
  await askFor('continue the database');
  await sandbox.delete();
  report('delete', await errorOf(() => client.getSandbox(name)));
}

const sandbox = await lifecycle();
await run(sandbox);
await restart(sandbox);
await files(sandbox);
await service(sandbox, await askFor('server'));
await errors();
await end(sandbox);
process.exit();
