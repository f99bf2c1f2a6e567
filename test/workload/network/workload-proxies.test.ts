// The way out of a workload: the sandbox of a real sidecar, and nothing else.
import { once } from 'node:events';
import { readdirSync, readFileSync } from 'node:fs';
import { createServer, type AddressInfo } from 'node:net';
import { join } from 'node:path';
import { afterAll, beforeAll, describe, expect, it, onTestFinished } from 'vitest';
import type { WorkloadRefusal } from '../../../src/workload/workload.ts';
import { createOrigin, type RecordingOrigin } from '../../support/recording-origin.ts';
import { createScratch, type Scratch } from '../../support/scratch.ts';
import { createTestAuthority } from '../../support/test-authority.ts';
import {
  isMissing,
  openTestWorkloads,
  script,
  type Started,
  type TestWorkloads,
  titled,
} from '../test-workloads.ts';

const HOST = 'api.localhost';
const authority = createTestAuthority();

/** Requests to the host get this key. */
function policyOf(version: number, value: string) {
  const headers = [{ name: 'X-Key', type: 'plaintext', value }];
  return {
    version,
    document: { rules: [{ match_hosts: [HOST], env_vars: { API_KEY: 'placeholder' }, headers }] },
    secrets: {},
  };
}

// The name ends like one that clients do not use a proxy for.
const CALL = 'curl -sS --noproxy "" --max-time 20 -o /dev/null -w "%{http_code}\\n" "$1"';

describe.skipIf(isMissing('bubblewrap'))(titled('a workload with a sidecar', 'bubblewrap'), () => {
  let scratch: Scratch;
  let opened: TestWorkloads;
  let origin: RecordingOrigin;

  beforeAll(async () => {
    scratch = await createScratch();
    origin = await createOrigin({ tls: { authority, names: [HOST] } });
    opened = await openTestWorkloads('bubblewrap', {
      upstream: { ca_file: await scratch.write('origins.pem', authority.certificatePem) },
      egress: { allow_private: ['loopback'] },
    });
    // The sidecar of a group ends with the last of its workloads.
    await start('sleep 600', 'other');
  });
  afterAll(async () => {
    await opened?.[Symbol.asyncDispose]();
    await origin?.[Symbol.asyncDispose]();
    await scratch?.[Symbol.asyncDispose]();
  });

  const start = (
    text: string,
    key: string,
    onRefusal?: (refusal: WorkloadRefusal) => void,
  ): Promise<Started> =>
    opened.start({
      ...script(text, `https://${HOST}:${origin.port}/`),
      network: { group: 'tests', policy: policyOf(1, key) },
      ...(onRefusal && { onRefusal }),
    });
  const lastKey = (): string | undefined =>
    origin.requests.at(-1)?.headers.find(([name]) => name === 'X-Key')?.[1];

  it('trusts its proxy, has the placeholders of its rules, and its requests get the key', async () => {
    const { lines, complaints, ended } = await start(`echo $API_KEY; ${CALL}`, 'first');
    expect(await ended, complaints.join('\n')).toMatchObject({ code: 0 });
    expect([...lines, lastKey()]).toEqual(['placeholder', '200', 'first']);
  });

  it('is refused what no policy allows, which its starter learns', async () => {
    const refusals: WorkloadRefusal[] = [];
    const text = 'curl -sS -o /dev/null -w "%{http_code}\\n" http://169.254.169.254/latest/meta-data';
    const { lines, ended } = await start(text, 'first', (refusal) => refusals.push(refusal));
    await ended;
    expect(lines).toEqual(['403']);
    expect(refusals).toEqual([
      {
        reason: 'address_denied',
        cause: 'metadata',
        method: 'GET',
        status: 403,
        authority: '169.254.169.254:80',
      },
    ]);
  });

  it('reaches no listener and no socket of the machine past its proxy', async () => {
    const server = createServer((socket) => socket.end('reached')).listen(0, '127.0.0.1');
    onTestFinished(() => void server.close());
    await once(server, 'listening');
    const { port } = server.address() as AddressInfo;
    const own = join(opened.directory, 'private');
    const admin = readdirSync(own).find((name) => name.startsWith('s-')) ?? '';
    const direct = 'curl -s --noproxy "*" --max-time 5';
    const text = `
      ${direct} http://127.0.0.1:${port}/ || echo denied
      ${direct} http://169.254.169.254/ || echo denied
      ${direct} --unix-socket ${join(own, admin)} http://localhost/v1/sandboxes || echo denied
      ls ${opened.directory} 2>/dev/null || echo denied`;
    const { lines, ended } = await start(text, 'first');
    await ended;
    expect(admin).not.toBe('');
    expect(lines).toEqual(['denied', 'denied', 'denied', 'denied']);
  });

  it('leaves no file of a sidecar behind when it was the last of its group', async () => {
    const files = (): readonly string[] => readdirSync(join(opened.directory, 'private', 'sidecars'));
    const before = files();
    const { workload } = await opened.start({
      ...script('sleep 600'),
      network: { group: 'alone', policy: policyOf(1, 'first') },
    });
    expect(files()).toHaveLength(before.length + 1);
    await workload.stop(0);
    expect(files()).toEqual(before);
  });

  it('goes on with a newer policy, and without its sidecar as soon as there is another one', {
    tags: ['long'],
  }, async () => {
    const { workload } = await start(`while :; do ${CALL}; sleep 0.1; done`, 'first');
    await expect.poll(lastKey).toBe('first');
    await workload.applyPolicy(policyOf(3, 'third'));
    await expect.poll(lastKey).toBe('third');
    // Older: it changes nothing.
    await workload.applyPolicy(policyOf(2, 'second'));
    await expect(
      workload.applyPolicy({ ...policyOf(4, 'fourth'), document: { rules: 'none' } }),
    ).rejects.toThrow('policy');
    for (const pid of sidecarsOf(opened.directory)) process.kill(pid, 'SIGKILL');
    const before = origin.requests.length;
    await expect.poll(() => origin.requests.length).toBeGreaterThan(before + 2);
    expect(lastKey()).toBe('third');
    await workload.stop(0);
  });
});

function sidecarsOf(directory: string): readonly number[] {
  const isSidecar = (name: string): boolean => {
    try {
      return readFileSync(`/proc/${name}/cmdline`, 'utf8').includes(`${directory}/private/sidecars/`);
    } catch {
      return false;
    }
  };
  return readdirSync('/proc')
    .filter((name) => /^\d+$/.test(name) && isSidecar(name))
    .map(Number);
}

describe.each(['user', 'none'] as const)('%s', (isolation) => {
  it.skipIf(isMissing(isolation))(
    titled('a workload without a namespace uses its proxy by variables, with a token', isolation),
    { tags: ['long'] },
    async () => {
      const opened = await openTestWorkloads(isolation, { egress: { allow_private: ['loopback'] } });
      onTestFinished(() => opened[Symbol.asyncDispose]());
      const origin = await createOrigin();
      onTestFinished(() => origin[Symbol.asyncDispose]());
      const url = `http://${HOST}:${origin.port}/`;
      const text = `${CALL}; curl -sS --noproxy "" -x "\${http_proxy##*@}" -o /dev/null -w "%{http_code}\\n" "$1"`;
      const { lines, complaints, ended } = await opened.start({
        ...script(text, url),
        network: { group: 'tests', policy: policyOf(1, 'first') },
      });
      expect(await ended, complaints.join('\n')).toMatchObject({ code: 0 });
      expect(lines).toEqual(['200', '407']);
    },
  );
});
