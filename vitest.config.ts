import { globSync, readFileSync } from 'node:fs';
import { availableParallelism } from 'node:os';
import { join } from 'node:path';
import { defineConfig, type TestProjectInlineConfiguration, type ViteUserConfig } from 'vitest/config';
import { JsonReporter } from 'vitest/node';
import { SlowFirst } from './test/support/slow-first.ts';
import { SummaryReporter } from './test/support/summary-reporter.ts';

// The split of the tests: `npm test` runs every test without the tag `long`, with a tenth of the property counts
// (test/support/run-size.ts). `npm run test:all` runs every test with the full counts.
const tags = [
  {
    name: 'long',
    description: 'storms, loads, a second PostgreSQL, repeated kills: run by npm run test:all alone',
  },
];

// At most 2 GB in all: a worker runs many files, and without limits it holds mostly garbage of those before. The variables
// are read by glibc at the start of each worker.
// The full counts of `npm run test:all` need more memory than that.
// The old generation is collected when it has grown to 4 times what survived. V8's own factor falls to 1.1, and buffers and TLS
// contexts count as growth: a worker would collect three times a second, a sixth of its CPU.
const heapGrowth = '--heap-growing-percent=300';
const execArgv =
  process.env['SALLYPORT_TEST'] === 'all' ? [heapGrowth] : [heapGrowth, '--max-old-space-size=400'];
process.env['MALLOC_ARENA_MAX'] ??= '2';
process.env['MALLOC_TRIM_THRESHOLD_'] ??= '131072';
process.env['MALLOC_MMAP_THRESHOLD_'] ??= '131072';

/** The files that load the platform or start programs. The others load the data path only. */
const programs: readonly string[] = ['test/{bench,bin,box-host,chaos,cli,e2e,interop,platform}/**/*.test.ts'];

/** Files about the roots of the machine. */
const roots: readonly string[] = ['test/tls/**/*.test.ts', 'test/cli/client/trust*.test.ts'];

/**
 * What the other files take for the roots of the machine: to read those, some 150, would be a third of the work of a test
 * that dials with TLS. The sidecars that tests start as processes read the roots of the machine.
 */
const fewRoots: Record<string, string> = {
  SSL_CERT_FILE: join(import.meta.dirname, 'test/support/system-roots.pem'),
  SSL_CERT_DIR: '/nonexistent',
};

/** A file for the JSON report: continuous integration counts from it. */
const report = process.env['SALLYPORT_TEST_REPORT'];

/**
 * Files that replace modules: each needs a process that has not loaded those modules yet. And one that counts allocations,
 * which depend on what else the compiler has seen.
 */
const isolated: readonly string[] = globSync('test/**/*.test.ts', { cwd: import.meta.dirname }).filter(
  (file) => /vi\.mock\(|total_allocated_bytes/.test(readFileSync(join(import.meta.dirname, file), 'utf8')),
);

/** Files that compare the times of whole programs: nothing else runs meanwhile. */
const measured: readonly string[] = ['test/bench/slowed.test.ts', 'test/bin/start-time.test.ts'];

function project(name: string, test: TestProjectInlineConfiguration['test']): TestProjectInlineConfiguration {
  return {
    test: {
      name,
      tags,
      pool: 'forks',
      setupFiles: ['test/support/property-setup.ts'],
      // Tests wait for events, not for time; these end one that hangs, also on a machine that is starved of its processor.
      testTimeout: 60_000,
      hookTimeout: 60_000,
      expect: { poll: { timeout: 30_000 } },
      ...test,
    },
  };
}

const config: ViteUserConfig = defineConfig({
  test: {
    // Starts nothing until a test asks for a database.
    globalSetup: ['test/support/postgres-setup.ts'],
    // They wait for sockets and timers as much as they compute: one worker more than cores.
    maxWorkers: availableParallelism() + 1,
    reporters: [
      new SummaryReporter(),
      ...(report === undefined ? [] : [new JsonReporter({ outputFile: report })]),
    ],
    sequence: { sequencer: SlowFirst },
    experimental: { diagnostics: false },
    projects: [
      // One process loads the product once for all the files that it runs. The projects run one after the other.
      project('programs', {
        isolate: false,
        execArgv,
        env: fewRoots,
        globalSetup: ['test/support/program-setup.ts'],
        include: [...programs],
        exclude: [...isolated, ...measured, ...roots],
      }),
      project('data path', {
        isolate: false,
        execArgv,
        env: fewRoots,
        include: ['test/**/*.test.ts'],
        exclude: [...isolated, ...programs, ...roots],
      }),
      project('roots', { isolate: false, execArgv, include: [...roots], exclude: [...isolated] }),
      project('isolated', { isolate: true, env: fewRoots, include: [...isolated] }),
      project('measured', {
        isolate: true,
        fileParallelism: false,
        sequence: { groupOrder: 1 },
        include: [...measured],
      }),
    ],
  },
});

export default config;
