// `npm run mutation [-- --mutate FILE,…]`: changes the sources that judge, one small change after another, and counts those
// that their own tests (vitest.mutation.config.ts) do not see. Each file should score 85 or more.

/** @type {import('@stryker-mutator/api/core').PartialStrykerOptions} */
export default {
  mutate: [
    'src/policy/{authority,path-pattern,path-spelling,path-index,host-pattern,host-index,address}.ts',
    'src/policy/document/proxy-config*.ts',
    'src/http1/{head-parser,fields,connection-fields}.ts',
    'src/proxy/{inject,outgoing-head,address-guard}.ts',
    'src/callback/resolver.ts',
  ],
  testRunner: 'vitest',
  plugins: ['@stryker-mutator/vitest-runner'],
  vitest: { configFile: 'vitest.mutation.config.ts', related: false },
  coverageAnalysis: 'perTest',
  // It would be rewritten by means that this version of TypeScript lacks, and has no paths to rewrite.
  tsconfigFile: 'none',
  ignorePatterns: ['dist', 'bench', 'coverage'],
  tempDirName: 'node_modules/.cache/stryker',
  concurrency: 1,
  reporters: ['clear-text', 'progress-append-only'],
  clearTextReporter: { allowColor: false, allowEmojis: false, reportTests: false },
  thresholds: { high: 95, low: 90, break: 85 },
};
