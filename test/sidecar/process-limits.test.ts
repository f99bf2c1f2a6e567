// How many clients the descriptors of the process allow.
import { expect, it } from 'vitest';
import { maxOpenClients } from '../../src/sidecar/process-limits.ts';

it.each([
  [1_048_576, 349_354],
  [4_096, 1_194],
  [1_024, 170],
  [256, 64],
])('of %i open files %i are for clients', (files, clients) => {
  expect(maxOpenClients(files)).toBe(clients);
});

it('the limit of this process is read', () => {
  expect(maxOpenClients()).toBeGreaterThanOrEqual(64);
});
