// H-09 in bodies: hosts that echo the credential, whole or in pieces, unencoded or encoded.
import { INJECTED, SECRET } from '../../invariants/credential-scene.ts';
import { type ScrubRow, overBothVersions } from './scrub-script.ts';

const stars = (text: string): string => '*'.repeat(text.length);
const escaped = (text: string): string =>
  [...text].map((char) => `%${char.charCodeAt(0).toString(16)}`).join('');
const base64 = (text: string): string => Buffer.from(text).toString('base64');

/** A body in which these texts are masked, each counted as one place. */
function echo(name: string, pieces: readonly string[], ...hidden: string[]): ScrubRow[] {
  let body = pieces.join('');
  for (const text of hidden) body = body.replace(text, stars(text));
  return overBothVersions(
    `H-09 body-${name}`,
    { pieces },
    { body, ...(hidden.length > 0 ? { places: hidden.length } : {}) },
  );
}

const percent = encodeURIComponent(SECRET);
const form = encodeURIComponent(INJECTED).replace('%20', '+');
const references = SECRET.replaceAll('>', '&#62;').replaceAll('?', '&#x003F;');
const allReferences = [...SECRET].map((char) => `&#${char.charCodeAt(0)};`).join('');
const json = JSON.stringify({ headers: { authorization: INJECTED } });
const page = `<p>${INJECTED.replaceAll('>', '&gt;')}</p>`;
const wrapped = base64(`user:${SECRET}`);
/** The part of the base64 after `user:` that only the secret determines, two bytes into a group of three. */
const wrappedPart = wrapped.slice(7, Math.floor(((5 + SECRET.length) * 8) / 6));

const forms: readonly ScrubRow[] = [
  echo('json', [json], INJECTED),
  echo('twice', [`${SECRET}, ${SECRET}`], SECRET, SECRET),
  echo('touching', [`${SECRET}${SECRET}`], `${SECRET}${SECRET}`),
  echo('secret-alone', [SECRET], SECRET),
  echo('percent', [`?token=${percent}&`], percent),
  echo('percent-lower-case', [`?token=${percent.toLowerCase()}&`], percent.toLowerCase()),
  echo('percent-every-byte', [`?token=${escaped(SECRET)}&`], escaped(SECRET)),
  echo('percent-after-a-percent', [`LIKE '%${percent}%'`], percent),
  echo('form', [`a=${form}`], form),
  echo('hex', [Buffer.from(SECRET).toString('hex')], Buffer.from(SECRET).toString('hex')),
  echo('json-numbered', [`"${SECRET.replaceAll('>', '\\u003e')}"`], SECRET.replaceAll('>', '\\u003e')),
  echo(
    'json-numbered-capitals',
    [`"${SECRET.replaceAll('>', '\\u003E')}"`],
    SECRET.replaceAll('>', '\\u003E'),
  ),
  echo('html', [page], INJECTED.replaceAll('>', '&gt;')),
  echo('references', [`<p>${references}</p>`], references),
  echo('references-of-every-character', [`<p>${allReferences}</p>`], allReferences),
  echo('references-a-byte-at-a-time', [...`<p>${references}</p>`], references),
  echo('basic-credentials', [`Basic ${wrapped}`], wrappedPart),
].flat();

/** All forms in one body, split after each byte in turn: one row for each split inside the secret. */
const cuts: readonly ScrubRow[] = [1, 2, 6, 7, 8, 11, SECRET.length - 1, SECRET.length].flatMap((at) =>
  echo(`cut-after-${at}`, [`a ${SECRET.slice(0, at)}`, `${SECRET.slice(at)} b`], SECRET),
);

const splits: readonly ScrubRow[] = [
  echo('a-byte-at-a-time', [...`x${SECRET}x`], SECRET),
  echo('escapes-a-byte-at-a-time', [...`x${percent}x`], percent),
  echo('escape-in-halves', ['sesame%3', 'E%', '3Eopen??now~~42~!'], 'sesame%3E%3Eopen??now~~42~'),
  echo('beginnings-without-an-end', ['sesame>', 'sesame>>open', '??no', 'w~~', '42!']),
  echo('beginning-at-the-end', ['a ', 'sesame>>open']),
  echo('half-an-escape-at-the-end', ['a sesame%3']),
  echo('false-start', ['sesame>sesame>', '>open??now~~42~'], SECRET),
].flat();

const whole = `a ${SECRET} b`;
const hidden = { body: `a ${stars(SECRET)} b`, places: 1 };
const framings: readonly ScrubRow[] = (['length', 'close'] as const).flatMap((framing): ScrubRow[] => [
  {
    id: `H-09 body-framed-by-${framing}`,
    script: { version: 'h1', framing, pieces: [whole] },
    expect: hidden,
  },
  {
    id: `H-09 body-cut-framed-by-${framing}`,
    script: { version: 'h1', framing, pieces: ['a sesame>>', 'open??now', '~~42~ b'] },
    expect: hidden,
  },
]);

const [begun, left] = ['a sesame>>open', 'a '];
const broken: readonly ScrubRow[] = [
  {
    id: 'H-09 body-broken-off-h1',
    script: { version: 'h1', framing: 'length', pieces: [begun], isCut: true },
    expect: { body: left },
  },
  {
    id: 'H-09 body-broken-off-h2',
    script: { version: 'h2', pieces: [begun], isCut: true },
    expect: { body: left },
  },
];

const others: readonly ScrubRow[] = [
  overBothVersions('H-09 body-of-an-error', { status: 500, pieces: [whole] }, hidden),
  overBothVersions('H-09 body-of-a-post', { method: 'POST', pieces: [whole] }, hidden),
  overBothVersions('H-09 body-and-head', { fields: [['X-Echo', SECRET]], pieces: [whole] }, hidden),
  overBothVersions(
    'H-09 digest-is-not-adjusted',
    { fields: [['Digest', 'sha-256=AAAA']], pieces: [whole] },
    hidden,
  ),
  overBothVersions(
    'H-09 body-reversed',
    { pieces: [[...SECRET].toReversed().join('')] },
    { body: [...SECRET].toReversed().join(''), isLeakDocumented: true },
  ),
].flat();

const trailers: ScrubRow = {
  id: 'H-09 body-and-trailers-h2',
  script: { version: 'h2', pieces: ['sesame>>open'], trailers: [['x-echo', SECRET]] },
  expect: { body: 'sesame>>open', trailers: [['x-echo', stars(SECRET)]] },
};
const droppedTrailers: ScrubRow = {
  id: 'H-09 body-and-trailers-h1',
  script: { version: 'h1', pieces: ['sesame>>open'], trailers: [['x-echo', SECRET]] },
  expect: { body: 'sesame>>open' },
};

export const echoRows: readonly ScrubRow[] = [
  ...forms,
  ...cuts,
  ...splits,
  ...framings,
  ...broken,
  ...others,
  trailers,
  droppedTrailers,
];
