// What a machine has left for one more agent server.
import { expect, it } from 'vitest';
import { createCapacity } from '../../../../src/platform/runner/fleet/capacity.ts';

const MIB = 1024 ** 2;
const limits = { instances: 3, memoryBytes: 1000 * MIB, cpuMillicores: 4000 };
const size = { memoryBytes: 400 * MIB, cpuMillicores: 500 };

it('says which limit is reached, and what is left of it', () => {
  const capacity = createCapacity(limits);
  expect(capacity.take({ ...size, cpuMillicores: 5000 })).toBe(
    'it needs 5000 millicores, and 4000 are left of runner.limits.cpu_millicores',
  );
  expect(capacity.take(size)).toBeTypeOf('object');
  expect(capacity.take(size)).toBeTypeOf('object');
  expect(capacity.take(size)).toBe(
    'it needs 400 MiB of memory, and 200 MiB are left of runner.limits.memory_bytes',
  );
  expect(capacity.take({ memoryBytes: MIB, cpuMillicores: 1 })).toBeTypeOf('object');
  expect(capacity.take({ memoryBytes: MIB, cpuMillicores: 1 })).toBe(
    'all 3 agent servers that runner.limits.instances allows are in use',
  );
});

it('what is given back, once or twice, can be taken again', () => {
  const capacity = createCapacity({ ...limits, instances: 1 });
  const taken = capacity.take(size);
  if (typeof taken === 'string') throw new Error(taken);
  taken.release();
  taken.release();
  expect(capacity.used).toEqual({ instances: 0, memoryBytes: 0, cpuMillicores: 0 });
  expect(capacity.take(size)).toBeTypeOf('object');
});

it('what replaces another one may go beyond the limits, by half', () => {
  const capacity = createCapacity({ ...limits, instances: 2 });
  const small = { memoryBytes: MIB, cpuMillicores: 1 };
  capacity.take(small);
  capacity.take(small);
  expect(capacity.take(small)).toBeTypeOf('string');
  const third = capacity.takeForSwitch(small);
  expect(capacity.used.instances).toBe(3);
  expect(capacity.takeForSwitch(small)).toBeTypeOf('string');
  if (typeof third === 'string') throw new Error(third);
  third.release();
  expect(capacity.takeForSwitch(small)).toBeTypeOf('object');
});
