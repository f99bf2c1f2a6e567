// The same calls to Sallyport and to the public server, with ids and times evened out. Prints each case whose responses differ, and
// which of those are meant to: those of `chosen.mjs`. Ends with 1 when another case differs.
//
//   node differential.mjs            both servers
//   node differential.mjs --peer     the public server against itself: what is not evened out shows here
import { isDeepStrictEqual } from 'node:util';
import { cases } from './calls.mjs';
import { reasonOf } from './chosen.mjs';
import { startPeer, startSallyport } from './servers.mjs';

/** UUIDs, and the ids of interrupts. */
const UUID = /[0-9a-f]{8}-(?:[0-9a-f]{4}-){3}[0-9a-f]{12}|\b[0-9a-f]{32}\b/g;
const TIME = /\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d(?:\.\d+)?(?:Z|\+00:00)/g;
const HEADERS = ['content-type', 'content-location', 'x-pagination-total', 'x-pagination-next'];

/** Calls of one side; ids are numbered in the order in which they appear. */
function createSide(url) {
  const ids = new Map();
  const even = (text) =>
    text
      .replaceAll(UUID, (id) => {
        if (!ids.has(id)) ids.set(id, `id-${ids.size}`);
        return ids.get(id);
      })
      .replaceAll(TIME, 'TIME');
  const seen = [];
  return {
    seen,
    /** Returns the body, as it is; what is compared is kept. */
    async call(method, path, body, headers = {}) {
      const response = await fetch(url + path, {
        method,
        headers: { ...(body === undefined ? {} : { 'content-type': 'application/json' }), ...headers },
        ...(body === undefined ? {} : { body: typeof body === 'string' ? body : JSON.stringify(body) }),
      });
      const text = await response.text();
      const isStream = response.headers.get('content-type')?.includes('event-stream');
      const parsed = isStream ? eventsOf(text) : jsonOf(text);
      const own = Object.fromEntries(
        HEADERS.map((name) => [name, response.headers.get(name)?.split(';')[0] ?? null]),
      );
      seen.push(
        JSON.parse(
          even(
            JSON.stringify({
              call: `${method} ${path}`,
              status: response.status,
              headers: own,
              body: sorted(parsed),
            }),
          ),
        ),
      );
      return parsed;
    },
  };
}

function eventsOf(text) {
  return text
    .split('\n\n')
    .filter((frame) => /^event:/m.test(frame))
    .map((frame) => {
      const field = (name) => new RegExp(`^${name}: ?(.*)$`, 'm').exec(frame)?.[1] ?? null;
      return { event: field('event'), data: jsonOf(field('data') ?? ''), id: field('id') };
    });
}

function jsonOf(text) {
  try {
    return JSON.parse(text);
  } catch {
    return text === '' ? null : text;
  }
}

/**
 * Members in one order, so that ids are numbered alike. Of the interrupts of a thread, tasks that asked nothing are left out: the
 * public server lists them too, as empty.
 */
function sorted(value, parent) {
  if (Array.isArray(value)) return value.map((one) => sorted(one));
  if (value === null || typeof value !== 'object') return value;
  return Object.fromEntries(
    Object.entries(value)
      .filter(([, one]) => !(parent === 'interrupts' && Array.isArray(one) && one.length === 0))
      .toSorted(([a], [b]) => (a < b ? -1 : 1))
      .map(([name, one]) => [name, sorted(one, name)]),
  );
}

async function play(url, work) {
  const side = createSide(url);
  try {
    await work(side.call);
  } catch (error) {
    side.seen.push({ thrown: String(error) });
  }
  return side.seen;
}

/** The differing places of two values, as lines. */
function differences(one, two, at = '') {
  if (isDeepStrictEqual(one, two)) return [];
  const isObject = (value) => value !== null && typeof value === 'object';
  if (!isObject(one) || !isObject(two)) return [`${at}: ours ${short(one)}, peer ${short(two)}`];
  return [...new Set([...Object.keys(one), ...Object.keys(two)])].flatMap((name) =>
    differences(one[name], two[name], `${at}.${name}`),
  );
}

const short = (value) => (value === undefined ? 'absent' : JSON.stringify(value).slice(0, 160));

const isPeerAlone = process.argv.includes('--peer');
const peer = await startPeer('typescript');
const ours = isPeerAlone ? await startPeer('typescript') : await startSallyport('typescript');
let unexpected = 0;
let alike = 0;
for (const [name, work] of cases) {
  const [one, two] = [await play(ours.url, work), await play(peer.url, work)];
  const found = Array.from({ length: Math.max(one.length, two.length) }, (_, n) =>
    differences(one[n], two[n]).map((line) => `${one[n]?.call ?? two[n]?.call}${line}`),
  ).flat();
  const left = found.filter((line) => reasonOf(name, line) === undefined);
  if (found.length === 0) alike += 1;
  else console.log(`${left.length === 0 ? 'chosen ' : 'DIFFERS'} ${name}`);
  for (const line of found) {
    const reason = reasonOf(name, line);
    console.log(`          ${line}${reason === undefined ? '' : ` (${reason})`}`);
  }
  if (left.length > 0) unexpected += 1;
}
console.log(
  `${cases.length} cases: ${alike} alike, ${cases.length - alike - unexpected} differ as chosen, ${unexpected} differ otherwise`,
);
await Promise.all([peer.close(), ours.close()]);
process.exit(unexpected === 0 ? 0 : 1);
