import { describe, expect, it } from 'vitest';
import { noCgroups } from '../../../src/box-host/cgroup/cgroups.ts';
import {
  describeIsolation,
  describeLimits,
  processLimits,
  unheldLimits,
} from '../../../src/workload/limits/held-limits.ts';

const MIB = 1024 * 1024;
const limits = { memBytes: 100 * MIB, cpuMillicores: 500, pids: 40, diskBytes: 200 * MIB, openFiles: 512 };
const { missing } = noCgroups('the reason');

describe('limits that the kernel holds for a group', () => {
  it('are left to it', () => {
    expect(unheldLimits(limits, [])).toEqual({});
    expect(processLimits(limits, [])).toEqual({
      openFiles: 512,
      fileBytes: 200 * MIB,
      processes: undefined,
      dataBytes: undefined,
    });
    expect(describeLimits(limits, []).map(({ note }) => note)).toEqual([
      expect.stringContaining('disk space is watched'),
    ]);
  });
});

describe('limits without groups', () => {
  it('are watched, and each process has a weaker one', () => {
    expect(unheldLimits(limits, missing)).toEqual({ memBytes: 100 * MIB, pids: 40 });
    expect(processLimits(limits, missing)).toMatchObject({ processes: 51, dataBytes: 125 * MIB });
  });
  it('are named with the reason', () => {
    const notes = describeLimits(limits, missing);
    expect(notes).toHaveLength(4);
    expect(notes.slice(0, 3).map(({ reason }) => reason)).toEqual(['the reason', 'the reason', 'the reason']);
  });
  it('are nothing where none was asked for', () => {
    expect(unheldLimits({}, missing)).toEqual({});
    expect(describeLimits({}, missing)).toEqual([]);
  });
});

describe('the isolation', () => {
  it.each([
    ['bubblewrap', 'none', 'There is no network'],
    ['user', 'none', 'without a proxy'],
    ['none', 'none', 'not isolated'],
  ] as const)('%s with the network %s says: %s', (isolation, network, text) =>
    expect(describeIsolation(isolation, network).join('\n')).toContain(text),
  );
  it('without namespaces says that the proxy can be passed by', () => {
    const network = { group: 'one', policy: { version: 1, document: {}, secrets: {} } };
    expect(describeIsolation('user', network).join('\n')).toContain('pass it by');
    expect(describeIsolation('bubblewrap', network)).toEqual(['The only way out is its proxy']);
  });
});
