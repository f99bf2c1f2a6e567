// Mutated messages through a whole proxy to node:http: what our side decided of the bytes, what its records say, and what
// node read must be the same requests, byte for byte. Each lane has an origin of its own and plays one message at a time.
import type { LogRecord } from '../support/spawned-process.ts';
import { type Random, createRandom } from '../http1/mutation.ts';
import { recordedPath } from '../../src/proxy/record.ts';
import { type TestAuthority, createTestAuthority } from '../support/test-authority.ts';
import { type TestSidecar, createTestSidecar } from '../support/test-sidecar.ts';
import { type Decided, type Read, decideBytes, framingDocument } from './decided.ts';
import { type Entry, HOST, PORT_MARK, createMessage } from './mutated-message.ts';
import { type NodeOrigin, createNodeOrigin } from './node-origin.ts';
import { playBytes } from './raw-play.ts';

export type FramingFigures = {
  readonly seed: number;
  readonly messages: number;
  /** Not sent: an upgrade, a CONNECT, a method that node does not know. */
  readonly skipped: number;
  /** Requests that reached the origin whole, and those cut short. */
  readonly whole: number;
  readonly cut: number;
  /** Connections by what our side decided of their end. */
  readonly endings: Readonly<Record<Decided['ending'], number>>;
  readonly perSecond: number;
  /** The first few disagreements, with their bytes. */
  readonly errors: readonly string[];
};

const LANES: readonly Entry[] = ['plain', 'clear', 'tls', 'plain', 'clear', 'plain', 'clear', 'plain'];
const ROUND = 10_000;
const MAX_ERRORS = 5;

type Lane = {
  readonly entry: Entry;
  readonly origin: NodeOrigin;
  readonly authority: string;
  readonly whole: Read[];
};
type Tally = {
  messages: number;
  skipped: number;
  whole: number;
  cut: number;
  readonly endings: Record<Decided['ending'], number>;
  readonly errors: string[];
};

/** One proxy for at most some ten thousand messages, because the test stores every line of its log. */
export async function runFraming(options: {
  readonly messages: number;
  readonly seed: number;
}): Promise<FramingFigures> {
  const { messages, seed } = options;
  const startedMs = performance.now();
  const endings = { open: 0, incomplete: 0, refused: 0, closed: 0 };
  const tally: Tally = { messages: 0, skipped: 0, whole: 0, cut: 0, endings, errors: [] };
  await using stack = new AsyncDisposableStack();
  const lanes: Lane[] = [];
  const authority = createTestAuthority();
  for (const entry of LANES) {
    const origin = stack.use(await createNodeOrigin(entry === 'tls' ? authority : undefined));
    lanes.push({ entry, origin, authority: `${HOST}:${origin.port}`, whole: [] });
  }
  const proxy = await createProxy(authority, lanes);
  stack.use(proxy);
  // Each lane has numbers and a share of its own, so that a seed says the same whatever the pace.
  const plays = lanes.map((lane, i) => {
    const random = createRandom(seed * LANES.length + i);
    return playLane(lane, { proxy, tally, random, messages: shareOf(lane.entry, messages) });
  });
  await Promise.all(plays);
  for (const lane of lanes) compareRecords(lane, proxy.records(), tally.errors);
  return { ...tally, seed, perSecond: tally.messages / ((performance.now() - startedMs) / 1000) };
}

/** A proxy for each ten thousand; a failure prints the seed of its own round. */
export async function runFramingRounds(options: {
  readonly messages: number;
  readonly seed: number;
}): Promise<FramingFigures> {
  const startedMs = performance.now();
  const endings = { open: 0, incomplete: 0, refused: 0, closed: 0 };
  const sum = { messages: 0, skipped: 0, whole: 0, cut: 0 };
  for (let seed = options.seed; ; seed += 1) {
    const left = options.messages - sum.messages;
    const round = await runFraming({ messages: Math.min(ROUND, left), seed });
    for (const key of ['messages', 'skipped', 'whole', 'cut'] as const) sum[key] += round[key];
    for (const key of ['open', 'incomplete', 'refused', 'closed'] as const)
      endings[key] += round.endings[key];
    if (round.errors.length === 0 && sum.messages < options.messages) continue;
    const perSecond = sum.messages / ((performance.now() - startedMs) / 1000);
    return { ...round, ...sum, endings, perSecond };
  }
}

function createProxy(authority: TestAuthority, lanes: readonly Lane[]): Promise<TestSidecar> {
  return createTestSidecar({
    proxyConfig: framingDocument,
    origins: authority,
    config: { inject_cleartext: lanes.map((lane) => lane.authority), log: { level: 'info' } },
  });
}

type Play = {
  readonly proxy: TestSidecar;
  readonly tally: Tally;
  readonly random: Random;
  readonly messages: number;
};

/** Handshakes take most of the time of the lane that has them. */
function shareOf(entry: Entry, messages: number): number {
  const slow = Math.ceil(messages / (2 * LANES.length));
  return entry === 'tls' ? slow : Math.ceil((messages - slow) / (LANES.length - 1));
}

async function playLane(lane: Lane, { proxy, tally, random, messages }: Play): Promise<void> {
  let before: Read | undefined;
  for (let played = 0; played < messages && tally.errors.length < MAX_ERRORS; ) {
    const wire = createMessage(lane.entry, random).replaceAll(
      PORT_MARK,
      lane.authority.slice(HOST.length + 1),
    );
    const bytes = Buffer.from(wire, 'latin1');
    const decided = decideBytes(bytes, lane.entry, lane.authority);
    if (!decided) {
      tally.skipped += 1;
      continue;
    }
    played += 1;
    tally.messages += 1;
    tally.endings[decided.ending] += 1;
    const responses = decided.requests.filter(({ isComplete }) => isComplete).length;
    const waitsForEnd = decided.ending === 'refused' || decided.ending === 'closed';
    const isOver = await playBytes(proxy, { ...lane, bytes, responses, waitsForEnd });
    const read = await lane.origin.taken();
    const error = isOver ? disagreement(decided, withoutLate(read, before)) : 'nobody ends the connection';
    if (error !== undefined)
      tally.errors.push(
        JSON.stringify({ error, entry: lane.entry, wire, decided, read, node: lane.origin.errors }),
      );
    const whole = read.filter(({ isComplete }) => isComplete);
    lane.whole.push(...whole);
    tally.whole += whole.length;
    tally.cut += read.length - whole.length;
    before = decided.requests.find(({ isComplete }) => !isComplete);
  }
}

/** The first thing in which what node read differs from what was decided. */
function disagreement({ requests }: Decided, read: readonly Read[]): string | undefined {
  for (const [i, mine] of requests.entries()) {
    const theirs = read[i];
    // Half a request may leave or not; never as a whole one.
    if (!theirs) return mine.isComplete ? `request ${i} did not arrive` : undefined;
    if (mine.method !== theirs.method) return 'method';
    if (mine.target !== theirs.target) return 'target';
    if (mine.fields.join('\n') !== theirs.fields.join('\n')) return 'fields';
    if (mine.isComplete !== theirs.isComplete) return 'completeness';
    if (mine.isComplete && mine.body !== theirs.body) return 'body';
  }
  return read.length > requests.length ? `${read.length} requests arrived` : undefined;
}

/** A cut request of the message before may be read only now: its socket was closed a moment ago. */
function withoutLate(read: readonly Read[], before: Read | undefined): readonly Read[] {
  const [first, ...rest] = read;
  const isLate = first && before && !first.isComplete && first.fields.join('\n') === before.fields.join('\n');
  return isLate ? rest : read;
}

/** Records are of the very requests that node read, in their order. */
function compareRecords(lane: Lane, records: readonly LogRecord[], errors: string[]): void {
  const reported = records
    .filter(({ authority, outcome }) => authority === lane.authority && isDone(outcome))
    .map(({ method, path }) => `${String(method)} ${String(path)}`);
  const read = lane.whole.map(({ method, target }) => `${method} ${recordedPath(target)}`);
  if (reported.join('\n') !== read.join('\n'))
    errors.push(`records of ${lane.entry} differ from what node read`);
}

function isDone(outcome: unknown): boolean {
  return outcome === 'injected' || outcome === 'forwarded';
}
