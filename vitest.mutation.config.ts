import { defineConfig, type ViteUserConfig } from 'vitest/config';

// For `npm run mutation`: the tests that one source is judged by, named by scripts/mutation.ts.
const config: ViteUserConfig = defineConfig({
  test: {
    include: (process.env['SALLYPORT_MUTATION_TESTS'] ?? '').split(' '),
    testTimeout: 60_000,
    hookTimeout: 60_000,
  },
});

export default config;
