// The file of keys: what it may hold, and which of its keys have been revoked.
import { chmod, writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { createLog } from '../../../../src/base/log.ts';
import { openKeyFile } from '../../../../src/platform/agent-server/access/key-file.ts';
import { createScratch, type Scratch } from '../../../support/scratch.ts';

const log = createLog('silent' as never, { write: () => undefined });
const [ONE, OTHER] = ['a-key-of-the-file-0001', 'a-key-of-the-file-0002'];

let scratch: Scratch;
let file: string;

beforeAll(async () => {
  scratch = await createScratch();
  file = join(scratch.path, 'keys');
});
afterAll(() => scratch?.[Symbol.asyncDispose]());

describe('a start is refused with a file', () => {
  it.each<readonly [string, string, string]>([
    ['without a key', '# none\n\n', 'it has no key'],
    ['with a short key', `${ONE}\nshort\n`, 'line 2 is no key'],
    ['with a space in a key', `${ONE} owner\n`, 'line 1 is no key'],
    ['that is too large', 'a'.repeat(300_000), 'more than'],
  ])('%s', async (_, text, message) => {
    await writeFile(file, text, { mode: 0o600 });
    const opening = openKeyFile(file, log);
    await expect(opening).rejects.toThrow(message);
    await expect(opening).rejects.not.toThrow(ONE);
  });

  it('that everybody can read, or that is not there', async () => {
    await writeFile(file, ONE);
    await chmod(file, 0o644);
    await expect(openKeyFile(file, log)).rejects.toThrow('chmod o=');
    await expect(openKeyFile(`${file}.absent`, log)).rejects.toThrow('ENOENT');
    await chmod(file, 0o600);
  });
});

it('has the keys that it has now, and revokes the others', async () => {
  await writeFile(file, `  ${ONE}  \r\n${OTHER}\n`);
  const keys = await openKeyFile(file, log);
  const [one, other] = [await keys.find(ONE), await keys.find(OTHER)];
  expect(one?.identity).toBe('owner');
  expect(one?.keyId).not.toBe(other?.keyId);
  expect(JSON.stringify(one)).not.toContain(ONE);
  const ids = new Set([String(one?.keyId), String(other?.keyId)]);
  expect(await keys.findRevoked(ids)).toEqual(new Set());
  await writeFile(file, `${OTHER}\n`);
  expect(await keys.findRevoked(ids)).toEqual(new Set([one?.keyId]));
  expect(await keys.find(ONE)).toBeUndefined();
});
