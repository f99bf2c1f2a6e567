// A program that behaves as an agent server, from its start to its end: what it is given, and what is left of it.
import { randomUUID } from 'node:crypto';
import { mkdir, readdir, writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import { afterAll, beforeAll, expect, it } from 'vitest';
import { Secret } from '../../../../src/base/secret.ts';
import {
  type AgentLogLine,
  type AgentProcess,
  startAgentProcess,
} from '../../../../src/platform/runner/instances/agent-process.ts';
import type { WorkloadUser } from '../../../../src/workload/workload.ts';
import { createPlainControl } from '../../../support/instance-control.ts';
import { openPlainWorkloads, type PlainWorkloads } from '../../../support/plain-workloads.ts';
import { createScratch, type Scratch } from '../../../support/scratch.ts';
import { projectRoot } from '../../../support/spawned-process.ts';

const never: AbortSignal = new AbortController().signal;
const PASSWORD = 'p4ssword-of-the-role';

let scratch: Scratch;
let workloads: PlainWorkloads;

beforeAll(async () => {
  scratch = await createScratch();
  workloads = openPlainWorkloads();
  await mkdir(join(scratch.path, 'run'));
  await mkdir(join(scratch.path, 'build'));
  await writeFile(join(scratch.path, 'build', 'langgraph.json'), '{}');
});

afterAll(async () => {
  await workloads?.close();
  await scratch?.[Symbol.asyncDispose]();
});

type Given = { mode?: string; readyMs?: number; signal?: AbortSignal; user?: WorkloadUser };

async function start(given: Given = {}) {
  const lines: AgentLogLine[] = [];
  const ground = {
    ...{ workloads, directory: join(scratch.path, 'run'), createControl: createPlainControl },
    program: { command: [process.execPath, join(projectRoot, 'test/support/small-agent.ts')], files: [] },
    ...(given.readyMs !== undefined && { readyMs: given.readyMs }),
  };
  const spec = {
    build: { directory: join(scratch.path, 'build'), configPath: 'langgraph.json' },
    identity: { id: randomUUID(), name: 'one', revisionId: randomUUID(), access: 'gateway' as const },
    secrets: {
      variables: new Map(given.mode === undefined ? [] : [['MODE', new Secret(given.mode)]]),
      masterKey: new Secret('master'),
      database: { directory: scratch.path, name: 'd', user: 'r', password: new Secret(PASSWORD) },
    },
    ...{
      user: given.user,
      limits: { memBytes: 1024 ** 3 },
      network: 'none' as const,
      maxConnections: 5,
      traces: undefined,
    },
    gatewayToken: 'token',
    onLine: (line: AgentLogLine) => void lines.push(line),
  };
  const starting: Promise<AgentProcess> = startAgentProcess(ground, spec, given.signal ?? never);
  return { lines, process: await starting };
}

const directories = (): Promise<readonly string[]> => readdir(join(scratch.path, 'run'));

it('is ready, reports its lines, and leaves nothing when it is stopped', async () => {
  const { process, lines } = await start();
  expect(await process.control.status()).toMatchObject({ runs: 0 });
  const instance = process.served.id;
  await expect.poll(() => lines).toContainEqual({ instance, level: 'INFO', message: 'ready', isCut: false });
  expect(lines).toContainEqual({ instance, level: 'INFO', message: 'nothing isolates it', isCut: false });
  const spec = workloads.started.at(-1)?.spec;
  expect(JSON.stringify([spec?.command, spec?.env, spec?.mounts])).not.toContain(PASSWORD);
  expect(spec?.mounts).toContainEqual(expect.objectContaining({ writable: true }));
  await process.stop(5_000);
  expect(await process.ended).toBe('it was stopped');
  expect(await directories()).toEqual([]);
});

it.each([
  ['ends', 'the agent server did not start: it ended with code 3'],
  ['never ready', 'the agent server was not ready after 0 seconds'],
  ['link', 'the agent server put something else in the place of its socket'],
])('one that is never ready (%s) is a failure that says why', async (mode, message) => {
  const readyMs = mode === 'never ready' ? 400 : 60_000;
  await expect(start({ mode, readyMs })).rejects.toThrow(message);
  expect(await directories()).toEqual([]);
});

it('a start whose directory cannot be made leaves nothing of it', async () => {
  // A user that no machine has.
  await expect(start({ user: { uid: 2 ** 40, gid: 2 ** 40 } })).rejects.toThrow('out of range');
  expect(await directories()).toEqual([]);
});

it('a start that is given up ends what was started', async () => {
  const giving = new AbortController();
  const starting = start({ mode: 'never ready', signal: giving.signal });
  await expect.poll(directories).toHaveLength(1);
  giving.abort(new Error('given up'));
  await expect(starting).rejects.toThrow('given up');
  expect(await directories()).toEqual([]);
});
