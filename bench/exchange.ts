// The cost of one injected exchange in our own code, without kernel and TLS: CPU time and heap bytes.
// `node bench/exchange.ts [--profile]`: with where the memory is allocated.
import { Session } from 'node:inspector/promises';
import type { HeapProfiler } from 'node:inspector';
import { parseArgs } from 'node:util';
import { getHeapStatistics } from 'node:v8';
import { createFakeExchanges } from './support/fake-exchanges.ts';

const ROUNDS = 3_000;
const SAMPLES = 9;
const SHOWN = 45;

const { values: flags } = parseArgs({
  options: { profile: { type: 'boolean', default: false }, unrecorded: { type: 'boolean', default: false } },
});
const exchanges = await createFakeExchanges({ isRecorded: !flags.unrecorded });
const requests: number = ROUNDS * exchanges.clients;
runRounds(2 * ROUNDS);
const samples = Array.from({ length: SAMPLES }, sample);
console.log(
  `${median(samples.map(({ us }) => us)).toFixed(2)} us, ${median(samples.map(({ bytes }) => bytes)).toFixed(0)} heap bytes a request`,
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
  const bytes = getHeapStatistics().total_allocated_bytes - bytesBefore;
  const { user, system } = process.cpuUsage(before);
  return { us: (user + system) / requests, bytes: bytes / requests };
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
  const bytes = new Map<string, number>();
  addTo(bytes, profile.head);
  for (const [name, sum] of [...bytes].toSorted(([, a], [, b]) => b - a).slice(0, SHOWN))
    console.log(String(Math.round(sum / requests)).padStart(6), name);
}

function addTo(bytes: Map<string, number>, node: HeapProfiler.SamplingHeapProfileNode): void {
  const { functionName, url, lineNumber } = node.callFrame;
  const name = `${functionName || '(anonymous)'} ${url.split('/').at(-1)}:${lineNumber + 1}`;
  bytes.set(name, (bytes.get(name) ?? 0) + node.selfSize);
  for (const child of node.children) addTo(bytes, child);
}
