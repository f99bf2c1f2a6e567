import { spawn } from 'node:child_process';
import { once } from 'node:events';
import { text } from 'node:stream/consumers';
import { beforeAll, describe, expect, it } from 'vitest';
import type { Capabilities } from '../../../src/box-host/bubblewrap/capabilities.ts';
import { projectRoot } from '../../support/spawned-process.ts';
import { missing, recordRun, titled } from '../isolation.ts';

type Report = Readonly<Record<'outside' | 'inside' | 'status' | 'full' | 'kept' | 'linked', string>> & {
  readonly capabilities: Capabilities;
  readonly names: readonly string[];
};
type Outcome = { readonly name: string; readonly escaped: boolean };

const NOBODY = '65534';
/** Where the other user finds the checkout, whose own path may be closed to them. */
const PLACE = '/mnt';

async function runAsNobody(): Promise<Report> {
  const script = 'mount --bind "$1" "$2"; shift 2; exec "$@"';
  const node = process.execPath.replace(projectRoot, PLACE);
  const asNobody = ['setpriv', '--reuid', NOBODY, '--regid', NOBODY, '--clear-groups', '--'];
  const program = [node, `${PLACE}/test/box-host/bubblewrap/user-boxes.ts`];
  const mounted = ['/bin/sh', '-e', '-c', script, 'sh', projectRoot, PLACE, ...asNobody, ...program];
  const child = spawn('unshare', ['--mount', '--propagation', 'private', ...mounted], {
    cwd: '/',
    env: { PATH: '/usr/sbin:/usr/bin:/sbin:/bin', HOME: '/tmp' },
    stdio: ['ignore', 'pipe', 'inherit'],
  });
  const [output] = await Promise.all([text(child.stdout), once(child, 'exit')]);
  return JSON.parse(output) as Report;
}

function escapedOf(output: string): readonly (readonly [string, boolean])[] {
  const lines = output.split('\n').filter((line) => line.startsWith('{'));
  return lines.map((line) => JSON.parse(line) as Outcome).map(({ name, escaped }) => [name, escaped]);
}

describe.skipIf(missing !== undefined)(titled('boxes of a box host without root'), () => {
  let report: Report;

  beforeAll(async () => {
    recordRun('bubblewrap-user');
    report = await runAsNobody();
  });

  it('are isolated, and what they lack is said', () => {
    expect(report.capabilities).toMatchObject({ privilege: 'user', obstacles: [], storage: 'tmpfs' });
    expect(report.capabilities.warnings.join('\n')).toMatch(/only root may mount[^]*one user of the host/);
  });

  it('have no capability and one descriptor to us', () => {
    expect(report.status).toMatch(/^1000\nCap\w+:\t0{16}\n0 1 2 3\n$/);
  });

  it('reach nothing of their own user outside', () => {
    expect(escapedOf(report.outside)).toEqual(report.names.map((name) => [name, true]));
    expect(escapedOf(report.inside)).toEqual(report.names.map((name) => [name, false]));
  });

  it('have files of their size, which stay over stop and start', () => {
    expect(report.full).toMatch(/No space left/);
    expect(Number(report.full.trim().split('\n').at(-1))).toBeLessThan(17 * 1024 * 1024);
    expect(report.kept).toBe('kept\n');
  });

  it('cannot lead a mount elsewhere by a link in their root', () => {
    expect(report.linked).toBe('attempts\n');
  });
});
