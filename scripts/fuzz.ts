// `npm run fuzz -- TARGET SECONDS`: jazzer.js (libFuzzer) searches for an input that breaks an assertion of
// test/fuzz/targets/TARGET.ts; `all` runs each target, no target lists them. Such an input is stored among the seeds of the
// target, where `npm test` runs it. Exits with 1 then, and when the fuzzer gets no coverage feedback.
import { spawn } from 'node:child_process';
import { globSync } from 'node:fs';
import { mkdir, mkdtemp, open, readFile, rm } from 'node:fs/promises';
import { createRequire } from 'node:module';
import { tmpdir } from 'node:os';
import { basename, join } from 'node:path';
import { build } from 'esbuild';

const root = join(import.meta.dirname, '..');
const targetFolder = join(root, 'test', 'fuzz', 'targets');
const DEFAULT_SECONDS = 60;
const MAX_INPUT_BYTES = 4096;
const FLAGS = [
  '--disable-warning=DEP0205',
  '--no-warnings',
  '--import',
  join(root, 'scripts', 'fuzz-engine.ts'),
];

const DONE = /^Done (\d+) runs in (\d+) second/;

/** The output of libFuzzer: covered edges, and features, which also count how often an edge was taken. */
type Reach = { readonly coverage: number; readonly features: number };
type Run = {
  readonly target: string;
  readonly isFine: boolean;
  readonly executions: number;
  readonly perSecond: number;
  readonly seeds: Reach;
  readonly end: Reach;
};

process.exitCode = await main(process.argv.slice(2));

async function main([wanted, written = String(DEFAULT_SECONDS)]: readonly string[]): Promise<number> {
  const targets = globSync('*.ts', { cwd: targetFolder })
    .map((file) => basename(file, '.ts'))
    .toSorted();
  const seconds = Number(written);
  const chosen = wanted === 'all' ? targets : targets.filter((target) => target === wanted);
  if (chosen.length === 0 || !Number.isInteger(seconds) || seconds < 1) {
    console.log(`npm run fuzz -- TARGET SECONDS\ntargets: ${targets.join(', ')}, all`);
    return wanted === undefined ? 0 : 2;
  }
  const runs: Run[] = [];
  for (const target of chosen) {
    const run = await fuzz(target, seconds);
    console.log(lineOf(run));
    runs.push(run);
  }
  return runs.every(({ isFine }) => isFine) ? 0 : 1;
}

async function fuzz(target: string, seconds: number): Promise<Run> {
  const folder = await mkdtemp(join(tmpdir(), 'sallyport-fuzz-'));
  const seeds = join(root, 'test', 'fuzz', 'seeds', target);
  const corpus = join(folder, 'corpus');
  try {
    await mkdir(corpus);
    await mkdir(seeds, { recursive: true });
    const program = await bundle(target, folder);
    const cli = createRequire(import.meta.url).resolve('@jazzer.js/core/dist/cli.js');
    // One thread is faster when nothing waits.
    const mode = target === 'admin-body' ? [] : ['--sync'];
    const engine = [
      `-max_total_time=${seconds}`,
      `-max_len=${MAX_INPUT_BYTES}`,
      `-artifact_prefix=${seeds}/`,
    ];
    const args = [...FLAGS, cli, program, corpus, seeds, ...mode, '-i', folder, '--', ...engine];
    return await watch(target, args, folder);
  } finally {
    await rm(folder, { recursive: true, force: true });
  }
}

/** One CommonJS file, which jazzer.js can instrument completely, including packages. */
async function bundle(target: string, folder: string): Promise<string> {
  const outfile = join(folder, `${target}.cjs`);
  await build({
    entryPoints: [join(targetFolder, `${target}.ts`)],
    outfile,
    bundle: true,
    format: 'cjs',
    platform: 'node',
    target: 'node24',
    sourcemap: 'inline',
    logLevel: 'warning',
    external: ['undici', 'libsodium-wrappers'],
  });
  return outfile;
}

async function watch(target: string, args: readonly string[], cwd: string): Promise<Run> {
  // A file, because the engine loses output when a pipe is full.
  const log = await open(join(cwd, 'log'), 'w');
  const child = spawn(process.execPath, args, { cwd, stdio: ['ignore', 'ignore', log.fd] });
  const code = await new Promise<number | null>((resolve) => child.on('exit', resolve));
  await log.close();
  const said = (await readFile(join(cwd, 'log'), 'utf8')).split('\n');
  const [first, last] = [reachOf(said.find(isReach)), reachOf(said.findLast(isReach))];
  const [executions = 0, took = 1] = said.flatMap((line) => DONE.exec(line)?.slice(1).map(Number) ?? []);
  // Without coverage feedback all inputs look alike: the run would find nothing and pass.
  const isFine = code === 0 && first.coverage > 0 && executions > 0;
  if (!isFine) console.error(said.filter((line) => !isReach(line)).join('\n'));
  const perSecond = Math.round(executions / Math.max(1, took));
  return { target, isFine, executions, perSecond, seeds: first, end: last };
}

function isReach(line: string): boolean {
  return /\bcov: \d+ ft: \d+/.test(line);
}

function reachOf(line = ''): Reach {
  const [, coverage = 0, features = 0] = /\bcov: (\d+) ft: (\d+)/.exec(line) ?? [];
  return { coverage: Number(coverage), features: Number(features) };
}

function lineOf({ target, isFine, executions, perSecond, seeds, end }: Run): string {
  const grown = `cov ${seeds.coverage} -> ${end.coverage}, ft ${seeds.features} -> ${end.features}`;
  return `${isFine ? 'held  ' : 'BROKEN'} ${target.padEnd(14)} ${executions} executions, ${perSecond}/s, ${grown}`;
}
