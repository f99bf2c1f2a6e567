// Of vitest, for `validation.spec.mjs`: the suite takes its functions from the global scope.
import { join } from 'node:path';

const root = join(import.meta.dirname, '..', '..');

export default {
  root,
  test: {
    globals: true,
    globalSetup: ['test/support/postgres-setup.ts'],
    include: ['interop/agent-server/validation.spec.mjs'],
    testTimeout: 60_000,
    hookTimeout: 60_000,
    reporters: ['default'],
  },
};
