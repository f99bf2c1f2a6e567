// What a client of the framing runs sends on one connection: rows of the parser's fixtures, alone or behind each other,
// mutated by tokens and bits, or gently, so that most of it is still a message. The same random numbers give the same bytes.
import { requestRows } from '../http1/fixtures/requests.ts';
import { type Random, mutate } from '../http1/mutation.ts';

export type Entry = 'tls' | 'clear' | 'plain';

export const HOST = 'api.test';
/** In place of the origin's port while bytes are mutated, so that a seed gives the same ones whatever the port. */
export const PORT_MARK = '44300';
const LONGEST_SEED = 2_000;

const rows = requestRows
  .filter(({ wire }) => wire.length > 0 && wire.length < LONGEST_SEED && !wire.startsWith('CONNECT'))
  .map(({ wire, verdict }) => ({ wire: withHost(wire), isValid: verdict === 'accepted' }));
const valid: readonly string[] = rows.filter(({ isValid }) => isValid).map(({ wire }) => wire);
const invalid: readonly string[] = rows.filter(({ isValid }) => !isValid).map(({ wire }) => wire);

/** Lines that change how a message is read, or that one reader may take for such. */
const lines: readonly string[] = [
  ...['Content-Length: 0', 'Content-Length: 5', 'Content-Length: 3', 'Transfer-Encoding: chunked'],
  ...[
    'Connection: close',
    'Connection: keep-alive',
    'Connection: X, te',
    'Expect: 100-continue',
    'X: y',
    'x_y: 1',
  ],
  ...[
    'TE: trailers',
    'Trailer: X',
    'Authorization: of the agent',
    'authorization:',
    'Cookie: a=b',
    'X:\t z \t',
  ],
  ...[
    'Upgrade: h2c',
    'Keep-Alive: 5',
    'Proxy-Authorization: x',
    'Content-Type: text/plain',
    'X-Original-URL: /y',
  ],
];

export function createMessage(entry: Entry, random: Random): string {
  const one = (from: readonly string[]): string => from[random(from.length)] ?? '';
  const changed = change(one(random(6) === 0 ? invalid : valid), random);
  // What follows the changed message is what an attacker wants another hop to read as a second one.
  const whole = random(2) === 0 ? changed : one(valid) + changed + one(valid);
  if (entry !== 'plain') return whole;
  return whole.replace(/^([A-Z]+) \/(?=\S* HTTP)/gm, `$1 http://${HOST}:${PORT_MARK}/`);
}

function change(text: string, random: Random): string {
  switch (random(5)) {
    case 0:
      return text;
    case 1:
    case 2:
      return mutate(text, random);
    default:
      return changeGently(text, random);
  }
}

/** A line more, a name in other case, another digit, a body a little longer or shorter. */
function changeGently(text: string, random: Random): string {
  const ends = [...text.matchAll(/\r\n/g)].map(({ index }) => index + 2);
  const at = ends[random(ends.length)] ?? 0;
  const line = lines[random(lines.length)] ?? '';
  switch (random(5)) {
    case 0:
      return text.replace(/\d(?=\r\n)/, () => String(random(10)));
    case 1:
      return `${text}${'abc\r\n0'.slice(0, random(7))}`;
    case 2:
      return text.replace(/^[\w-]+(?=:)/gm, (name) =>
        random(2) === 0 ? name.toUpperCase() : name.toLowerCase(),
      );
    default:
      return `${text.slice(0, at)}${line}\r\n${text.slice(at)}`;
  }
}

function withHost(wire: string): string {
  const named = wire.replaceAll('a.test', `${HOST}:${PORT_MARK}`);
  return named.includes('Host:') ? named : named.replace('\r\n', `\r\nHost: ${HOST}:${PORT_MARK}\r\n`);
}
