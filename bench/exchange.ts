// The cost of one injected exchange in our own code, without kernel and TLS: CPU time and heap bytes.
// `node bench/exchange.ts [--profile]`: with where the memory is allocated.
import { Session } from 'node:inspector/promises';
import type { HeapProfiler } from 'node:inspector';
import { parseArgs } from 'node:util';
import { getHeapStatistics } from 'node:v8';
import { createFakeExchanges } from './support/fake-exchanges.ts';

const ROUNDS = 1_500;
const SAMPLES = 25;
const SHOWN = 45;

const { values: flags } = parseArgs({
  options: { profile: { type: 'boolean', default: false }, unrecorded: { type: 'boolean', default: false } },
});
const exchanges = await createFakeExchanges({ isRecorded: !flags.unrecorded });
const requests: number = ROUNDS * exchanges.clients;
runRounds(4 * ROUNDS);
const samples = Array.from({ length: SAMPLES }, sample);
const us: readonly number[] = samples.map((one) => one.us);
const bytes: number = median(samples.map((one) => one.bytes));
// The least is what other programs have disturbed least.
console.log(
  `${Math.min(...us).toFixed(2)} us at least, ${median(us).toFixed(2)} us in the median, ${bytes.toFixed(0)} heap bytes a request`,
);
if (flags.profile) await printProfile();
process.exit(0);

function runRounds(count: number): void {
  for (let i = 0; i < count; i += 1) exchanges.round();
}

function sample(): { readonly us: number; readonly bytes: number } {
  const before = process.cpuUsage();
  const bytesBefore = getHeapStatistics().total_allocated_bytes;
  runRounds(ROUNDS);
  const allocated = getHeapStatistics().total_allocated_bytes - bytesBefore;
  const { user, system } = process.cpuUsage(before);
  return { us: (user + system) / requests, bytes: allocated / requests };
}

function median(values: readonly number[]): number {
  return values.toSorted((a, b) => a - b)[values.length >> 1] ?? 0;
}

/** Heap bytes a request by the function that allocates them. */
async function printProfile(): Promise<void> {
  const session = new Session();
  session.connect();
  await session.post('HeapProfiler.startSampling', {
    samplingInterval: 256,
    includeObjectsCollectedByMajorGC: true,
    includeObjectsCollectedByMinorGC: true,
  });
  runRounds(ROUNDS);
  const { profile } = await session.post('HeapProfiler.stopSampling');
  const allocated = new Map<string, number>();
  addTo(allocated, profile.head);
  for (const [name, sum] of [...allocated].toSorted(([, a], [, b]) => b - a).slice(0, SHOWN))
    console.log(String(Math.round(sum / requests)).padStart(6), name);
}

function addTo(allocated: Map<string, number>, node: HeapProfiler.SamplingHeapProfileNode): void {
  const { functionName, url, lineNumber } = node.callFrame;
  const name = `${functionName || '(anonymous)'} ${url.split('/').at(-1)}:${lineNumber + 1}`;
  allocated.set(name, (allocated.get(name) ?? 0) + node.selfSize);
  for (const child of node.children) addTo(allocated, child);
}
