// Preloaded into a spawned proxy (`node --import`): on SIGUSR2 it collects garbage and reports its memory and the delays of its
// event loop since the last time. DNS queries for names below `silent.test` get no response. For tests only.
import dns from 'node:dns';
import { syncBuiltinESMExports } from 'node:module';
import { monitorEventLoopDelay } from 'node:perf_hooks';
import { setImmediate as turn } from 'node:timers/promises';
import { setFlagsFromString } from 'node:v8';
import { runInNewContext } from 'node:vm';

setFlagsFromString('--expose-gc');
const collect: () => void = runInNewContext('gc');
const delay = monitorEventLoopDelay({ resolution: 2 });
delay.enable();
let sample = 0;

process.on('SIGUSR2', async () => {
  const loop = { worstMs: delay.max / 1e6, p99Ms: delay.percentile(99) / 1e6 };
  for (let round = 0; round < 3; round += 1) {
    collect();
    await turn();
  }
  delay.reset();
  sample += 1;
  process.stderr.write(`${JSON.stringify({ msg: 'vitals', sample, ...loop })}\n`);
});

/** A resolver times out eventually, and frees its thread. */
const GIVES_UP_MS = 4_000;
const silence = (): Promise<never> =>
  new Promise((_, reject) => {
    setTimeout(() => reject(new Error('EAI_AGAIN')), GIVES_UP_MS);
  });

const lookup = dns.promises.lookup;
Object.assign(dns.promises, {
  lookup: (name: string, ...rest: [never]) =>
    name.endsWith('.silent.test') ? silence() : lookup(name, ...rest),
});
const lookupBack = dns.lookup;
Object.assign(dns, {
  lookup: (name: string, ...rest: [never, never]) =>
    name.endsWith('.silent.test') ? silence().catch(rest[1]) : lookupBack(name, ...rest),
});
syncBuiltinESMExports();
