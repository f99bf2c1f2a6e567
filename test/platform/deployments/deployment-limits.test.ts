import { describe, expect, it } from 'vitest';
import { limitsOf } from '../../../src/platform/deployments/deployment-limits.ts';
import type { ResourceSpec } from '../../../src/platform/deployments/deployment-rows.ts';

const MIB = 1024 ** 2;
const defaults = { minScale: 1, maxScale: 1, limits: { cpuMillicores: 2000, memBytes: 2048 * MIB } };

describe('the limits of a revision', () => {
  const rows: readonly (readonly [string, ResourceSpec | null | undefined, object])[] = [
    ['nothing', undefined, {}],
    ['null', null, {}],
    ['null members', { cpu: null, min_scale: null }, {}],
    [
      'twice the request',
      { cpu: 0.5, memory_mb: 512 },
      { limits: { cpuMillicores: 1000, memBytes: 1024 * MIB } },
    ],
    [
      'its limits',
      { cpu_limit: 0.3, memory_limit_mb: 64 },
      { limits: { cpuMillicores: 300, memBytes: 64 * MIB } },
    ],
    ['a scale', { min_scale: 2, max_scale: 3 }, { minScale: 2, maxScale: 3 }],
    ['a least scale alone', { min_scale: 2 }, { minScale: 2, maxScale: 2 }],
    ['more than runs on a machine', { min_scale: 9, max_scale: 20 }, { minScale: 4, maxScale: 4 }],
    ['none at all', { min_scale: 0, max_scale: 0 }, {}],
  ];
  it.each(rows)('of %s', (_, spec, expected) => {
    expect(limitsOf(spec)).toEqual({ ...defaults, ...expected });
  });
});
