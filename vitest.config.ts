import { defineConfig, type ViteUserConfig } from 'vitest/config';

const config: ViteUserConfig = defineConfig({
  test: {
    include: ['test/**/*.test.ts'],
    // Starts nothing until a test asks for a database.
    globalSetup: ['test/support/postgres-setup.ts'],
    // Tests wait for events, not for time; these end one that hangs, also on a machine that is starved of its processor.
    testTimeout: 60_000,
    hookTimeout: 60_000,
    pool: 'forks',
    // They wait for sockets more than they compute: one worker a core, not one core less.
    maxWorkers: '100%',
  },
});

export default config;
