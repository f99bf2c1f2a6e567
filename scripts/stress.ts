// `npm run stress [-- --seconds 30 --pause-ms 20]`: documents replaced fifty times a second under load, and two hundred sandboxes at
// once, longer than the tests do it. Prints the figures; exits with 1 if a promise was broken.
import { parseArgs } from 'node:util';
import { createFleet } from '../test/e2e/isolation-fleet.ts';
import { askAll, recordFaults } from '../test/e2e/isolation-load.ts';
import { runReplacements } from '../test/e2e/replacement-load.ts';

const PER_SECOND = 50;
/** The timer's grain and the last write's own time. */
const MIN_PER_SECOND = 48;
const MAX_LAG_MS = 100;
const SANDBOXES = 200;
const MAX_SANDBOX_BYTES = 3_000_000;

const { values } = parseArgs({
  options: {
    seconds: { type: 'string', default: '30' },
    // Clients that never rest would take the whole machine: each document has all of them dial their hosts anew.
    'pause-ms': { type: 'string', default: '20' },
  },
});
const seconds = Number(values.seconds);
const pauseMs = Number(values['pause-ms']);
if (!(seconds >= 1 && seconds <= 3_600)) throw new Error('--seconds should be from 1 to 3600');
if (!(pauseMs >= 0 && pauseMs <= 1_000)) throw new Error('--pause-ms should be from 0 to 1000');

const faults = [...(await replace()), ...(await isolate())];
for (const fault of faults) console.log(`BROKEN: ${fault}`);
process.exitCode = faults.length === 0 ? 0 : 1;

async function replace(): Promise<readonly string[]> {
  const figures = await runReplacements({ perSecond: PER_SECOND, seconds, pauseMs });
  const { lagSinceAnswer: lag, lagSinceSent: sent, replacements, replacementsPerSecond: rate } = figures;
  print('replacement', [
    `${replacements} documents, ${rate.toFixed(1)} a second, and ${figures.secretWrites} secrets`,
    `${figures.requests} requests, ${figures.givenUp} given up, ${figures.violationCount} violations`,
    `revoked to last use: p99 ${ms(lag.p99)}, max ${ms(lag.max)} after the answer; p99 ${ms(sent.p99)}, max ${ms(sent.max)} after it was sent`,
  ]);
  return [
    ...figures.violations,
    ...(figures.isLastKept ? [] : ['the last document is not what is kept']),
    ...(lag.max <= MAX_LAG_MS ? [] : [`what was revoked arrived ${ms(lag.max)} later`]),
    ...(figures.givenUp <= figures.requests / 100 ? [] : [`${figures.givenUp} requests were given up`]),
    ...(rate >= MIN_PER_SECOND ? [] : [`${rate.toFixed(1)} replacements a second, not ${PER_SECOND}`]),
  ];
}

async function isolate(): Promise<readonly string[]> {
  await using fleet = await createFleet(SANDBOXES);
  const { members } = fleet;
  const faults = [...(await askAll(fleet, { host: 'api.test', members, times: 1 }))];
  const each = (fleet.proxy.process.usage().residentBytes - fleet.emptyBytes) / SANDBOXES;
  const endMs = performance.now() + seconds * 1000;
  let requests = SANDBOXES;
  while (performance.now() < endMs) {
    const hosts = ['api.test', 'called.test'] as const;
    const found = await Promise.all(hosts.map((host) => askAll(fleet, { host, members, times: 10 })));
    faults.push(...found.flat());
    requests += SANDBOXES * hosts.length * 10;
  }
  faults.push(...(await recordFaults(fleet, requests)));
  print('isolation', [
    `${SANDBOXES} sandboxes, ${(each / 1e6).toFixed(2)} MB each when idle`,
    `${requests} requests, ${faults.length} violations`,
  ]);
  if (each > MAX_SANDBOX_BYTES) faults.push(`an idle sandbox costs ${(each / 1e6).toFixed(2)} MB`);
  return faults;
}

function print(title: string, lines: readonly string[]): void {
  console.log([title, ...lines.map((line) => `  ${line}`)].join('\n'));
}

function ms(value: number): string {
  return `${value.toFixed(1)} ms`;
}
