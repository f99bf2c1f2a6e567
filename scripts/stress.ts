// `npm run stress [-- --seconds 30 --pause-ms 20 --requests 1000000 --part streams]`: documents replaced fifty times a second
// under load, two hundred sandboxes at once, a million requests over HTTP/2, and two million pairs of a document and a
// request (`--pairs`), two hundred thousand mutated messages (`--messages`), and
// attacks on memory, descriptors and the processor, longer than the tests do it. Prints the figures; exits with 1 if a promise was broken.
import { parseArgs } from 'node:util';
import { runH2Load } from '../test/e2e/h2-load.ts';
import { createFleet } from '../test/e2e/isolation-fleet.ts';
import { askAll, recordErrors } from '../test/e2e/isolation-load.ts';
import { runReplacements } from '../test/e2e/replacement-load.ts';
import { runFramingRounds } from '../test/framing/framing-run.ts';
import { runPairRounds } from '../test/properties/pair-run.ts';
import { propertySeed } from '../test/properties/property-seed.ts';
import { runExhaustion } from './exhaustion.ts';

const PER_SECOND = 50;
/** The resolution of the timer and the duration of the last write. */
const MIN_PER_SECOND = 48;
const MAX_LAG_MS = 100;
const SANDBOXES = 200;
const MAX_SANDBOX_BYTES = 3_000_000;
/** The memory that may remain after a million requests: pages that the allocator keeps. */
const MAX_GROWTH_BYTES = 60_000_000;
const WARM_UP = 20_000;
/** One part in this many is disturbed. */
const DISTURBED_SHARE = 20;
/** Of each outcome among the generated pairs. */
const MIN_SHARE = 0.01;

const { values } = parseArgs({
  options: {
    seconds: { type: 'string', default: '30' },
    // Clients without a pause would use the whole machine: after each document all of them dial their hosts again.
    'pause-ms': { type: 'string', default: '20' },
    requests: { type: 'string', default: '1000000' },
    pairs: { type: 'string', default: '2000000' },
    messages: { type: 'string', default: '200000' },
    part: { type: 'string' },
  },
});
const parts: Readonly<Record<string, () => Promise<readonly string[]>>> = {
  replacement: replace,
  isolation: isolate,
  streams,
  pairs,
  framing,
  exhaustion,
};
const seconds = Number(values.seconds);
const pauseMs = Number(values['pause-ms']);
if (!(seconds >= 1 && seconds <= 3_600)) throw new Error('--seconds must be from 1 to 3600');
if (!(pauseMs >= 0 && pauseMs <= 1_000)) throw new Error('--pause-ms must be from 0 to 1000');

const requests = Number(values.requests);
if (!(requests >= 1_000 && requests <= 100_000_000))
  throw new Error('--requests must be from 1000 to 100000000');
const names = values.part === undefined ? Object.keys(parts) : [values.part];
const errors: string[] = [];
for (const name of names) {
  const part = parts[name];
  if (!part) throw new Error(`--part must be one of ${Object.keys(parts).join(', ')}`);
  errors.push(...(await part()));
}
for (const error of errors) console.log(`BROKEN: ${error}`);
process.exitCode = errors.length === 0 ? 0 : 1;

async function replace(): Promise<readonly string[]> {
  const figures = await runReplacements({ perSecond: PER_SECOND, seconds, pauseMs });
  const { lagSinceResponse: lag, lagSinceSent: sent, replacements, replacementsPerSecond: rate } = figures;
  print('replacement', [
    `${replacements} documents, ${rate.toFixed(1)} a second, and ${figures.secretWrites} secrets`,
    `${figures.requests} requests, ${figures.abandoned} abandoned, ${figures.violationCount} violations`,
    `revoked to last use: p99 ${ms(lag.p99)}, max ${ms(lag.max)} after the response; p99 ${ms(sent.p99)}, max ${ms(sent.max)} after it was sent`,
  ]);
  return [
    ...figures.violations,
    ...(figures.isLastKept ? [] : ['the last document is not the stored one']),
    ...(lag.max <= MAX_LAG_MS ? [] : [`what was revoked arrived ${ms(lag.max)} later`]),
    ...(figures.abandoned <= figures.requests / 100 ? [] : [`${figures.abandoned} requests were abandoned`]),
    ...(rate >= MIN_PER_SECOND ? [] : [`${rate.toFixed(1)} replacements a second, not ${PER_SECOND}`]),
  ];
}

async function isolate(): Promise<readonly string[]> {
  await using fleet = await createFleet(SANDBOXES);
  const { members } = fleet;
  const errors = [...(await askAll(fleet, { host: 'api.test', members, times: 1 }))];
  const each = (fleet.proxy.process.usage().residentBytes - fleet.emptyBytes) / SANDBOXES;
  const endMs = performance.now() + seconds * 1000;
  let requests = SANDBOXES;
  while (performance.now() < endMs) {
    const hosts = ['api.test', 'called.test'] as const;
    const found = await Promise.all(hosts.map((host) => askAll(fleet, { host, members, times: 10 })));
    errors.push(...found.flat());
    requests += SANDBOXES * hosts.length * 10;
  }
  errors.push(...(await recordErrors(fleet, requests)));
  print('isolation', [
    `${SANDBOXES} sandboxes, ${(each / 1e6).toFixed(2)} MB each when idle`,
    `${requests} requests, ${errors.length} violations`,
  ]);
  if (each > MAX_SANDBOX_BYTES) errors.push(`an idle sandbox costs ${(each / 1e6).toFixed(2)} MB`);
  return errors;
}

async function streams(): Promise<readonly string[]> {
  const disturbed = Math.ceil(requests / DISTURBED_SHARE);
  const figures = await runH2Load({ warmUp: WARM_UP, calm: requests - disturbed, disturbed });
  const { counts, latency, residentBytes, hanging, misrecorded } = figures;
  const { before, calm, end } = residentBytes;
  print('streams', [
    `${figures.requests} requests, ${counts.lost + hanging} lost, ${counts.crossed} crossed, ${misrecorded} misrecorded`,
    `${counts.reset} reset by the host, ${counts.cancelled} by the client, ${counts.unread} refused unread`,
    `calm: ${figures.perSecond.toFixed(0)} a second, p50 ${ms(latency.p50)}, p99 ${ms(latency.p99)}, max ${ms(latency.max)}`,
    `resident: ${mb(before)} before, ${mb(figures.uncollectedBytes)} after the load, ${mb(calm)} collected, ${mb(end)} at the end`,
  ]);
  return [
    ...figures.errors,
    ...(counts.lost + hanging === 0 ? [] : [`${counts.lost + hanging} requests were lost`]),
    ...(counts.crossed === 0 ? [] : [`${counts.crossed} requests were crossed`]),
    ...(misrecorded === 0 ? [] : [`${misrecorded} requests have the wrong record`]),
    ...(end - before <= MAX_GROWTH_BYTES ? [] : [`${mb(end - before)} were not released`]),
    ...(figures.isSameProcess ? [] : ['the process did not survive']),
  ];
}

/** I1 and I4: the rules against their second implementation. PROPERTY_SEED replays a run. */
async function pairs(): Promise<readonly string[]> {
  const figures = runPairRounds({ pairs: Number(values.pairs), seed: propertySeed() });
  const shares = [...figures.outcomes].toSorted((a, b) => b[1] - a[1]);
  const share = (count: number): string => `${((count / figures.pairs) * 100).toFixed(2)} %`;
  print('pairs', [
    `${figures.pairs} pairs of ${figures.documents} documents, ${figures.refusedDocuments} of them rejected as a whole`,
    `${figures.perSecond.toFixed(0)} a second, last PROPERTY_SEED=${figures.seed}`,
    ...shares.map(([reported, count]) => `${share(count).padStart(8)}  ${reported}`),
  ]);
  return [
    ...(figures.error === undefined ? [] : [`PROPERTY_SEED=${figures.seed}: ${figures.error}`]),
    ...shares
      .filter(([, count]) => count < figures.pairs * MIN_SHARE)
      .map(([reported, count]) => `${reported} is no more than ${share(count)} of what was tried`),
  ];
}

/** I2 and I3: mutated messages, decided by the proxy and parsed by node:http. */
async function framing(): Promise<readonly string[]> {
  const figures = await runFramingRounds({ messages: Number(values.messages), seed: propertySeed() });
  const { open, incomplete, refused, closed } = figures.endings;
  print('framing', [
    `${figures.messages} messages, ${figures.perSecond.toFixed(0)} a second, last PROPERTY_SEED=${figures.seed}`,
    `${figures.whole} requests read whole, ${figures.cut} cut, ${figures.errors.length} disagreements`,
    `${open} connections kept open, ${closed} closed, ${refused} rejected, ${incomplete} incomplete`,
  ]);
  return figures.errors.map((error) => `PROPERTY_SEED=${figures.seed}: ${error}`);
}

/** I7 and I9: the limits of the effects of an attack. */
function exhaustion(): Promise<readonly string[]> {
  console.log('exhaustion');
  return runExhaustion((lines) => console.log(lines.map((line) => `  ${line}`).join('\n')));
}

function mb(bytes: number): string {
  return `${(bytes / 1e6).toFixed(0)} MB`;
}

function print(title: string, lines: readonly string[]): void {
  console.log([title, ...lines.map((line) => `  ${line}`)].join('\n'));
}

function ms(value: number): string {
  return `${value.toFixed(1)} ms`;
}
