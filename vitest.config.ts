import { defineConfig, type ViteUserConfig } from 'vitest/config';

const config: ViteUserConfig = defineConfig({
  test: {
    include: ['test/**/*.test.ts'],
    // Tests wait for events, not for time; these end one that hangs, also on a machine that is starved of its processor.
    testTimeout: 60_000,
    hookTimeout: 60_000,
    pool: 'forks',
  },
});

export default config;
