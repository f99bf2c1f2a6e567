import { expect, it } from 'vitest';
import { ControlPlane, type LogEntry } from '../../../src/cli/deploy/control-plane.ts';
import { Secret } from '../../../src/base/secret.ts';
import { type LogFlags, printLogs } from '../../../src/cli/deploy/log-reading.ts';
import { FakeControlPlane } from '../../support/fake-control-plane.ts';

const NEWEST: LogFlags = { build: false, follow: false, revision: undefined, level: undefined };

async function read(plane: FakeControlPlane, flags: Partial<LogFlags>) {
  const connection = { url: new URL(plane.url), key: new Secret('key'), workspace: undefined };
  const control = new ControlPlane(connection);
  const one = await control.create('one', { secrets: new Map(), proxyProfileId: undefined });
  const lines: string[] = [];
  const output = {
    progress: () => undefined,
    result: (_: unknown, printed: readonly string[]) => void lines.push(...printed),
  };
  await printLogs(control, one, { ...NEWEST, ...flags }, output);
  return lines;
}

function entry(id: number, level = 'INFO'): LogEntry {
  return { id, timestamp: 1_767_225_600_000 + id, level, message: `line ${id}` };
}

it('the newest lines come in the order of time', async () => {
  await using plane = await FakeControlPlane.start();
  plane.logs = Array.from({ length: 120 }, (_, at) => entry(at));
  const lines = await read(plane, {});
  expect(lines).toHaveLength(100);
  expect([lines[0], lines.at(-1)]).toEqual([
    '[2026-01-01T00:00:00.020Z] [INFO] line 20',
    '[2026-01-01T00:00:00.119Z] [INFO] line 119',
  ]);
  expect(plane.lines.at(-1)).toBe('POST /v1/projects/ID/deploy_logs');
});

it('a level is asked for in capitals', async () => {
  await using plane = await FakeControlPlane.start();
  plane.logs = [entry(1), entry(2, 'ERROR')];
  expect(await read(plane, { level: 'error' })).toEqual(['[2026-01-01T00:00:00.002Z] [ERROR] line 2']);
});

it('those of a build are of the newest revision', async () => {
  await using plane = await FakeControlPlane.start();
  plane.logs = [{ message: 'only a message' }];
  expect(await read(plane, { build: true })).toEqual(['only a message']);
  expect(plane.lines.at(-1)).toBe('POST /v1/projects/ID/revisions/ID/build_logs');
});
