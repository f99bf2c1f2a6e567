// docs/worker-protocol.md names what the code has: versions, limits, messages and methods.
import { readFileSync } from 'node:fs';
import { join } from 'node:path';
import { expect, it } from 'vitest';
import { WINDOW_BYTES } from '../../../src/agent-worker/protocol/credit.ts';
import { MESSAGE_MEMBERS } from '../../../src/agent-worker/protocol/envelope.ts';
import {
  MAX_FRAME_BYTES,
  MAX_SMALL_FRAME_BYTES,
  PROTOCOL_VERSION,
} from '../../../src/agent-worker/protocol/messages.ts';
import { RESULTS, SERVER_METHODS } from '../../../src/platform/agent-server/workers/call-shapes.ts';
import { defaultWorkerLimits } from '../../../src/platform/agent-server/workers/worker-limits.ts';

const root = join(import.meta.dirname, '../../..');
const document = readFileSync(join(root, 'docs/worker-protocol.md'), 'utf8');
const calls = readFileSync(join(root, 'src/agent-worker/protocol/calls.ts'), 'utf8');

/** The rows of the table below a heading, as lists of the names in backticks of each column. */
function rowsOf(heading: string): ReadonlyMap<string, readonly (readonly string[])[]> {
  const [, section = ''] = document.split(`\n${heading}\n`);
  const lines = section.split(/\n## /)[0]?.split('\n') ?? [];
  const rows = lines.filter((line) => line.startsWith('| `')).map((line) => line.split('|').slice(1, -1));
  const names = (text: string): readonly string[] =>
    [...text.matchAll(/`([^`]+)`/g)].map(([, name = '']) => name);
  return new Map(rows.map(([first = '', ...rest]) => [names(first)[0] ?? '', rest.map(names)]));
}

it('the version and the limits', () => {
  expect(document).toContain(`The version is **${PROTOCOL_VERSION}**`);
  expect(document).toContain(`1 to ${MAX_FRAME_BYTES.toLocaleString('en')} bytes`);
  expect(document).toContain(`more than ${MAX_SMALL_FRAME_BYTES.toLocaleString('en')} bytes (1 MiB)`);
  expect(document).toContain(`a credit of **${WINDOW_BYTES.toLocaleString('en')} bytes**`);
  const { pingMs, blockedMs, killMs, startMs, cancelMs, abandonedCalls, askedBytes } = defaultWorkerLimits;
  expect(document).toContain(`a \`ping\` every ${pingMs} ms`);
  expect(document).toContain(`not responded for ${blockedMs / 1000} seconds`);
  expect(document).toContain(`after ${killMs / 1000} seconds it is ended`);
  expect(document).toContain(`ready within ${startMs / 1000} seconds`);
  expect(document).toContain(`more than ${askedBytes.toLocaleString('en')} bytes`);
  expect(document).toContain(`more than ${abandonedCalls} calls`);
  expect(document).toContain(`not ended after ${cancelMs / 1000} seconds`);
});

it('every message with its members', () => {
  const rows = rowsOf('## Messages');
  for (const [type, members] of Object.entries(MESSAGE_MEMBERS)) {
    const named = rows.get(type)?.[1]?.map((name) => name.replace('?', ''));
    expect(named, type).toEqual(expect.arrayContaining(Object.keys(members)));
  }
  const others = [...rows.keys()].filter((name) => !['thrown', 'refused', 'cancelled'].includes(name));
  expect(others.toSorted()).toEqual(Object.keys(MESSAGE_MEMBERS).toSorted());
});

it.each([
  ['## Methods of the worker', RESULTS],
  ['## Methods of the server', SERVER_METHODS],
])('%s', (heading, methods) => {
  const rows = rowsOf(heading);
  expect([...rows.keys()].toSorted()).toEqual(Object.keys(methods).toSorted());
  for (const name of [...rows.values()].flatMap(([params = []]) => params))
    expect(calls, name).toMatch(new RegExp(`readonly ${name.replace('?', '\\?')}:`));
});
