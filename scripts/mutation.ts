// `npm run mutation [-- FILE …]`: Stryker makes many small changes to the sources that make decisions, file by file, and runs
// only the tests of that file. Prints the share that they detected and the survivors; exits with 1 below 85 %.
import { spawn } from 'node:child_process';
import { createRequire } from 'node:module';
import { join } from 'node:path';

const MIN_SCORE = 85;

/** A source file and its tests. */
const JUDGED: Readonly<Record<string, string>> = {
  'src/policy/authority/authority.ts': 'test/policy/authority/authority.test.ts',
  'src/policy/match/path-pattern.ts': 'test/policy/match/path-pattern.test.ts',
  'src/policy/match/path-spelling.ts': 'test/policy/match/path-spelling.test.ts',
  'src/policy/match/path-index.ts': 'test/policy/match/path-index.test.ts',
  'src/policy/match/host-pattern.ts': 'test/policy/match/host-pattern.test.ts',
  'src/policy/match/host-index.ts': 'test/policy/match/host-index.test.ts',
  'src/base/address.ts': 'test/base/address.test.ts',
  'src/base/address-guard.ts': 'test/proxy/upstream/address-guard.test.ts',
  'src/policy/document/proxy-config.ts':
    'test/policy/document/{proxy-config,proxy-config-schema,stored-values}.test.ts',
  'src/policy/document/proxy-config-schema.ts':
    'test/policy/{config-examples,document/{proxy-config*,stored-values}}.test.ts',
  'src/policy/document/proxy-config-structure.ts':
    'test/policy/document/{proxy-config,proxy-config-structure}.test.ts',
  'src/policy/document/proxy-config-conflicts.ts': 'test/policy/document/proxy-config-conflicts.test.ts',
  'src/policy/document/proxy-config-document.ts': 'test/policy/document/proxy-config-document.test.ts',
  'src/http1/head-parser.ts': 'test/http1/{head-parser,messages}.test.ts',
  'src/http1/fields.ts': 'test/http1/{head-parser,messages}.test.ts',
  'src/http1/connection-fields.ts': 'test/http1/connection-fields.test.ts',
  'src/proxy/h1/outgoing-head.ts': 'test/proxy/h1/outgoing-head-bytes.test.ts',
  'src/proxy/gate/inject.ts': 'test/proxy/gate/inject.test.ts',
  'src/proxy/upstream/address-guard.ts': 'test/proxy/upstream/address-guard.test.ts',
  'src/callback/resolver.ts': 'test/callback/resolver.test.ts',
};

process.exitCode = await main(process.argv.slice(2));

async function main(wanted: readonly string[]): Promise<number> {
  const unknown = wanted.filter((file) => !(file in JUDGED));
  if (unknown.length > 0) {
    console.error(`no tests are listed for ${unknown.join(', ')}`);
    return 2;
  }
  const chosen = wanted.length > 0 ? wanted : Object.keys(JUDGED);
  const scores: { readonly file: string; readonly score: number }[] = [];
  for (const file of chosen) scores.push({ file, score: await judge(file, JUDGED[file] ?? '') });
  for (const { file, score } of scores) console.log(`${score.toFixed(2).padStart(6)} % ${file}`);
  return scores.every(({ score }) => score >= MIN_SCORE) ? 0 : 1;
}

/** The score in percent; 0 when Stryker reports none. */
async function judge(file: string, tests: string): Promise<number> {
  const manifest = createRequire(import.meta.url).resolve('@stryker-mutator/core/package.json');
  const stryker = join(manifest, '..', 'bin', 'stryker.js');
  const child = spawn(process.execPath, [stryker, 'run', '--mutate', file], {
    env: { ...process.env, SALLYPORT_TEST: 'all', SALLYPORT_MUTATION_TESTS: tests },
    stdio: ['ignore', 'pipe', 'inherit'],
  });
  let said = '';
  for await (const piece of child.stdout.setEncoding('utf8')) {
    process.stdout.write(piece);
    said += piece;
  }
  return Number(/Final mutation score (?:of )?([\d.]+)/.exec(said)?.[1] ?? 0);
}
