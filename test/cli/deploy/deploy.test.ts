// `sallyport deploy` as a process, against a control plane on loopback.
import { mkdir, symlink, writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import { describe, expect, it } from 'vitest';
import { FakeControlPlane } from '../../support/fake-control-plane.ts';
import { everyNth } from '../../support/run-size.ts';
import { createScratch, type Scratch } from '../../support/scratch.ts';
import { type Finished, program, runToEnd, SpawnedProcess } from '../../support/spawned-process.ts';

const KEY = 'c4n4ry-key-of-the-platform';
const SECRET = 'c4n4ry-secret-of-the-agent';

async function createDirectory(): Promise<Scratch & { readonly app: string }> {
  const scratch = await createScratch();
  const app = join(scratch.path, 'My App');
  await mkdir(join(app, 'node_modules'), { recursive: true });
  const config = { graphs: { agent: './agent.ts:graph' }, env: '.env' };
  await writeFile(join(app, 'langgraph.json'), JSON.stringify(config));
  await writeFile(join(app, 'agent.ts'), 'export const graph = 1;\n');
  await writeFile(join(app, '.env'), `OPENAI_API_KEY=${SECRET}\nLANGSMITH_API_KEY=x\n`);
  return { ...scratch, app };
}

const deploy = (
  plane: Pick<FakeControlPlane, 'url'>,
  args: readonly string[],
  env: Readonly<Record<string, string>> = { SALLYPORT_API_KEY: KEY },
  input = '',
): Promise<Finished> =>
  runToEnd(process.execPath, [program, 'deploy', ...args], {
    env: { SALLYPORT_API_URL: plane.url, ...env },
    input,
  });

const CALLS = [
  'GET /v2/deployments',
  'POST /v2/deployments',
  'POST /v2/deployments/ID/upload-url',
  'PUT /objects/ID',
  'PATCH /v2/deployments/ID',
  'GET /v2/deployments/ID/revisions/ID',
  'GET /v2/deployments/ID/revisions/ID',
  'GET /v2/deployments/ID/revisions/ID',
  'GET /v2/deployments/ID',
];

describe('deploy DIR', () => {
  it('makes the public calls, and prints the URL alone', async () => {
    await using scratch = await createDirectory();
    await using plane = await FakeControlPlane.start();
    const { code, stdout, stderr } = await deploy(plane, [scratch.app]);
    expect({ code, stdout }, stderr).toEqual({ code: 0, stdout: 'http://127.0.0.1:8090/d/x\n' });
    expect(plane.lines).toEqual(CALLS);
    const secrets = [{ name: 'OPENAI_API_KEY', value: SECRET }];
    expect(plane.sent('POST /v2/deployments')).toEqual({
      name: 'my-app',
      source: 'internal_source',
      source_config: { deployment_type: 'dev' },
      source_revision_config: {},
      secrets,
    });
    expect(plane.sent('PATCH /v2/deployments/ID')).toEqual({
      revision_source: 'internal_source',
      source_revision_config: {
        source_tarball_path: expect.stringMatching(/^objects\//),
        langgraph_config_path: 'langgraph.json',
      },
      secrets,
    });
    expect(plane.requests[1]?.headers).toMatchObject({ 'x-api-key': KEY, accept: 'application/json' });
    const put = plane.requests[3];
    expect(put?.headers).toMatchObject({
      'content-type': 'application/gzip',
      'content-length': String(plane.uploads[0]?.length),
      'x-goog-content-length-range': '0,209715200',
    });
    // The address carries its own permission, and may be of another host.
    expect(put?.headers).not.toHaveProperty('x-api-key');
    expect(stdout + stderr).not.toMatch(/c4n4ry|signature/);
    expect(stderr).toMatch(/left out, because the platform sets it: LANGSMITH_API_KEY/);
  });

  it('packs the sources, and neither the files of secrets nor those of API keys', async () => {
    await using scratch = await createDirectory();
    await using plane = await FakeControlPlane.start();
    await writeFile(join(scratch.app, 'key'), `${KEY}\n`);
    await writeFile(join(scratch.app, 'admin-key'), `${KEY}\n`);
    await writeFile(join(scratch.app, 'secrets.env'), `TOKEN=${SECRET}\n`);
    const link = join(scratch.path, 'link');
    await symlink(scratch.app, link);
    const secrets = ['--secrets-file', join(link, 'secrets.env'), '--api-key-file', join(link, 'key')];
    const env = { SALLYPORT_API_KEY_FILE: join(scratch.app, 'admin-key') };
    expect(await deploy(plane, [link, '--no-wait', ...secrets], env)).toMatchObject({ code: 0 });
    await using work = await createScratch();
    await writeFile(join(work.path, 'source.tgz'), plane.uploads[0] ?? '');
    const { stdout } = await runToEnd('tar', ['-tzf', 'source.tgz'], { cwd: work.path });
    expect(stdout.trim().split('\n')).toEqual(['agent.ts', 'langgraph.json']);
  });

  it('changes the deployment that has the name, with commands, profile, workspace and secrets', {
    tags: ['long'],
  }, async () => {
    await using scratch = await createDirectory();
    await using plane = await FakeControlPlane.start();
    plane.profiles = [{ id: 'id-of-the-profile', name: 'models' }];
    await deploy(plane, [scratch.app, '--name', 'support-agent']);
    await deploy(plane, [scratch.app, '--name', 'support']);
    plane.requests.length = 0;
    const file = await scratch.write('secrets', `TOKEN=${SECRET}\nEMPTY=\n`);
    const key = await scratch.write('key', `${KEY}\n`);
    const workspace = 'b2f7b8a4-8f53-4a5c-9d5b-2f0a6d3c1e11';
    const options = ['--secrets-file', file, '--proxy-profile', 'models', '--workspace', workspace];
    const commands = ['--install-command', 'npm ci', '--build-command', 'npm run build'];
    const args = [scratch.app, '--name', 'support', ...options, ...commands, '--json'];
    const { code, stdout } = await deploy(plane, args, { SALLYPORT_API_KEY_FILE: key });
    expect({ code, result: JSON.parse(stdout) }).toMatchObject({
      code: 0,
      result: { name: 'support', status: 'DEPLOYED', url: 'http://127.0.0.1:8090/d/x' },
    });
    expect(plane.lines).toEqual(['GET /v1/proxy-profiles', CALLS[0], ...CALLS.slice(2)]);
    expect(plane.sent('PATCH /v2/deployments/ID')).toMatchObject({
      source_config: { install_command: 'npm ci', build_command: 'npm run build' },
      secrets: [{ name: 'TOKEN', value: SECRET }],
      proxy_profile_id: 'id-of-the-profile',
    });
    expect(plane.requests[0]?.headers).toMatchObject({ 'x-tenant-id': workspace, 'x-api-key': KEY });
  });

  const failures: readonly (readonly [status: string, reason: string, logs: string])[] = [
    ['BUILD_FAILED', 'its build failed', 'POST /v1/projects/ID/revisions/ID/build_logs'],
    ['DEPLOY_FAILED', 'it did not start', 'POST /v1/projects/ID/revisions/ID/deploy_logs'],
  ];
  everyNth(2, failures, (some, options) =>
    it.each(some)('ends with 1 and the log for %s', options, async (status, reason, logs) => {
      await using scratch = await createDirectory();
      await using plane = await FakeControlPlane.start();
      plane.states = ['QUEUED', status];
      plane.logs = [
        { id: '1', timestamp: 1_700_000_000_000, level: 'INFO', message: 'first' },
        { id: '2', timestamp: 1_700_000_000_001, level: 'ERROR', message: 'last \u001b[2J' },
      ];
      const { code, stdout, stderr } = await deploy(plane, [scratch.app]);
      expect({ code, stdout }).toEqual({ code: 1, stdout: '' });
      expect(plane.lines).toContain(logs);
      expect(stderr).toContain(reason);
      expect(stderr).toMatch(/\[2023-11-14T22:13:20\.000Z\] \[INFO\] first\n.*\[ERROR\] last \\u001b\[2J\n/);
    }),
  );

  it('makes a new deployment while one of the same name is being deleted', { tags: ['long'] }, async () => {
    await using scratch = await createDirectory();
    await using plane = await FakeControlPlane.start();
    await deploy(plane, [scratch.app, '--name', 'one']);
    Object.assign(plane.deployments[0] ?? {}, { status: 'AWAITING_DELETE' });
    const again = await deploy(plane, [scratch.app, '--name', 'one', '--json']);
    const [, made] = plane.deployments;
    expect({ ...again, result: JSON.parse(again.stdout) }).toMatchObject({
      ...{ code: 0, stderr: expect.stringContaining(`created the deployment one (${made?.id})`) },
      result: { deployment_id: made?.id, status: 'DEPLOYED' },
    });
  });

  it('says at Ctrl-C that the revision goes on', { tags: ['long'] }, async () => {
    await using scratch = await createDirectory();
    await using plane = await FakeControlPlane.start();
    plane.states = ['BUILDING'];
    await using child = new SpawnedProcess(process.execPath, [program, 'deploy', scratch.app], {
      env: { SALLYPORT_API_URL: plane.url, SALLYPORT_API_KEY: KEY },
    });
    await expect.poll(() => child.stderr, { timeout: 30_000 }).toContain('BUILDING');
    child.kill('SIGINT');
    expect(await child.exited).toEqual({ code: 130, signal: null });
    expect(child.stderr).toContain('sallyport deploy revisions my-app');
    expect(child.stdout).toBe('');
  });

  it('names the option when what responds is no platform', async () => {
    await using scratch = await createDirectory();
    await using plane = await FakeControlPlane.start();
    plane.interferences.push([/^GET/, { status: 404, html: '<!doctype html><p>Not found' }]);
    const { code, stderr } = await deploy(plane, [scratch.app]);
    expect(code).toBe(2);
    expect(stderr).toContain('404, and not from a platform: check --host-url or SALLYPORT_API_URL\n');
  });

  it('prints what the platform rejects, and ends with 2', async () => {
    await using scratch = await createDirectory();
    await using plane = await FakeControlPlane.start();
    const detail = [{ loc: ['body', 'secrets', 0, 'name'], msg: 'Input is reserved', type: 'value_error' }];
    plane.interferences.push([/^POST \/v2\/deployments$/, { status: 422, body: { detail } }]);
    const { code, stderr } = await deploy(plane, [scratch.app]);
    expect(code).toBe(2);
    expect(stderr).toContain('POST /v2/deployments: 422\n  body.secrets.0.name: Input is reserved\n');
  });
});

describe('the key', () => {
  it('may come from standard input', async () => {
    await using plane = await FakeControlPlane.start();
    const { code } = await deploy(plane, ['list', '--api-key-file', '-'], {}, `${KEY}\n`);
    expect({ code, key: plane.requests[0]?.headers['x-api-key'] }).toEqual({ code: 0, key: KEY });
  });

  it('is not sent after a redirect, nor shown in what failed', async () => {
    await using plane = await FakeControlPlane.start();
    plane.interferences.push([/./, { status: 307, body: '' }]);
    const { code, stderr } = await deploy(plane, ['list', '--api-key', KEY], {});
    expect({ code, requests: plane.requests.length }).toEqual({ code: 1, requests: 1 });
    expect(stderr).toContain('redirected (307): set --host-url to the platform itself');
    expect(stderr).not.toContain(KEY);
  });
});

describe('after a deployment', () => {
  it('list, revisions, rollback and delete find it by its name', { tags: ['long'] }, async () => {
    await using scratch = await createDirectory();
    await using plane = await FakeControlPlane.start();
    await deploy(plane, [scratch.app, '--name', 'one']);
    await deploy(plane, [scratch.app, '--name', 'one']);
    const [newest, older] = plane.revisions.map(({ id }) => id);
    Object.assign(plane.deployments[0] ?? {}, { active_revision_id: newest });
    const listed = await deploy(plane, ['list']);
    expect(listed.stdout).toMatch(
      /^NAME +STATUS +ACTIVE REVISION +LATEST REVISION +ID +URL +REASON\none +READY +[\da-f-]{36} +DEPLOYED /,
    );
    const revisions = await deploy(plane, ['revisions', 'one']);
    Object.assign(plane.revisions.at(-1) ?? {}, { status_reason: 'revision 2 came\nmore' });
    expect((await deploy(plane, ['revisions', 'one'])).stdout).toMatch(/ CREATING .* revision 2 came\n$/);
    expect(revisions.stdout).toMatch(/\n\S+ +DEPLOYED +2026\S+\n\S+ +REPLACED +2026\S+\n\S+ +CREATING /);
    const back = await deploy(plane, ['rollback', 'one', '--json']);
    expect(JSON.parse(back.stdout)).toMatchObject({ status: 'DEPLOYED', name: 'one' });
    expect(back.stderr).toContain(`deploying the revision ${older} of one again`);
    const refused = await deploy(plane, ['delete', 'one']);
    expect(refused).toMatchObject({ code: 2, stderr: expect.stringContaining('give --yes') });
    expect(await deploy(plane, ['delete', 'one', '--yes'])).toMatchObject({ code: 0 });
    expect(plane.deployments).toEqual([]);
    const gone = await deploy(plane, ['logs', 'one']);
    expect(gone).toMatchObject({ code: 2, stderr: expect.stringContaining('there is no deployment one') });
  });

  it('logs --follow prints each line once, as it comes', { tags: ['long'] }, async () => {
    await using scratch = await createDirectory();
    await using plane = await FakeControlPlane.start();
    await deploy(plane, [scratch.app, '--name', 'one']);
    const line = (id: number, message: string) => ({
      id: String(id),
      timestamp: `2026-01-01T00:00:0${id}Z`,
      level: 'INFO',
      message,
    });
    plane.logs = [line(1, 'a'), line(2, 'b')];
    await using child = new SpawnedProcess(
      process.execPath,
      [program, 'deploy', 'logs', 'one', '--follow', '--json'],
      { env: { SALLYPORT_API_URL: plane.url, SALLYPORT_API_KEY: KEY } },
    );
    await child.record(({ message }) => message === 'b');
    plane.logs = [...plane.logs, { ...line(3, 'c'), timestamp: '2026-01-01T00:00:02Z' }, line(4, 'd')];
    await child.record(({ message }) => message === 'd');
    // What was printed before is stored later, and the platform is away for a while.
    for (let n = 0; n < 5; n += 1) plane.interferences.push([/_logs$/, 'lost before']);
    plane.logs = [...plane.logs, { ...line(5, 'e'), timestamp: '2026-01-01T00:00:03Z' }];
    await child.record(({ message }) => message === 'e');
    expect(child.records.map(({ message }) => message)).toEqual(['a', 'b', 'c', 'd', 'e']);
  });
});

describe('what must be corrected ends with 2', () => {
  const rows: readonly (readonly [what: string, args: readonly string[], message: RegExp])[] = [
    ['no key', ['list'], /no API key is given/],
    ['no name', ['logs', '--api-key', KEY], /missing NAME/],
    [
      'an option that Node itself reads',
      ['.', '--env-file', '/dev/null', '--api-key', KEY],
      /--env-file is an option of Node: give --secrets-file FILE/,
    ],
    ['too many names', ['delete', 'a', 'b', '--api-key', KEY], /unexpected argument b/],
    [
      'an option of another command',
      ['list', '--build', '--api-key', KEY],
      /--build is no option of deploy list: it belongs to deploy logs/,
    ],
    [
      'no configuration file',
      [import.meta.dirname, '--api-key', KEY],
      /langgraph\.json does not exist: give the directory of a graph configuration file/,
    ],
    ['no directory', ['/nonexistent', '--api-key', KEY], /\/nonexistent cannot be read \(ENOENT\)/],
  ];
  everyNth(4, rows, (some, options) =>
    it.each(some)('%s', options, async (_, args, message) => {
      const { code, stderr } = await deploy({ url: 'http://127.0.0.1:1' }, args, {});
      expect({ code, stderr }).toEqual({ code: 2, stderr: expect.stringMatching(message) });
      expect(stderr).not.toContain(KEY);
    }),
  );
});

it('a platform that is not there ends the command with 1 and its address', { tags: ['long'] }, async () => {
  const { code, stderr } = await deploy({ url: 'http://127.0.0.1:1' }, ['list']);
  expect(code).toBe(1);
  expect(stderr).toBe(
    'sallyport: http://127.0.0.1:1 cannot be reached (ECONNREFUSED): start the platform, or correct --host-url or SALLYPORT_API_URL\n',
  );
});
