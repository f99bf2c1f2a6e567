// A whole document in the database: sealed with its opaque values, opened where it was sealed for.
import { afterAll, beforeAll, expect, it } from 'vitest';
import { DomainError } from '../../../src/base/domain-error.ts';
import {
  openDocument,
  requireDocument,
  sealDocument,
  toWholeDocument,
} from '../../../src/platform/proxy-documents/sealed-document.ts';
import { Secret } from '../../../src/base/secret.ts';
import type { SealedPlace } from '../../../src/platform/vault/vault.ts';
import { createPlatformApi, type PlatformApi } from '../../support/platform-api.ts';
import { callbackTo, HUSH, opaqueRule, parse } from './documents.ts';

let api: PlatformApi;
let place: SealedPlace;
beforeAll(async () => {
  api = await createPlatformApi();
  const workspaceId = await api.addWorkspace(await api.addOrganization());
  place = { workspaceId, purpose: 'test_document', name: 'one', version: 1 };
});
afterAll(() => api[Symbol.asyncDispose]());

const input = { rules: [opaqueRule('a.example.com')], callbacks: [callbackTo('https://keys.example.com/')] };

const open = (at: SealedPlace, sealed: Buffer) =>
  openDocument({ vault: api.vault, db: api.database.store.db }, at, sealed);

it('opens with all its values, which are not in the sealed bytes', async () => {
  const document = parse(input);
  const { vault, database } = api;
  const sealed = await database.store.write((trx) => sealDocument({ vault, trx }, place, document));
  expect(sealed.includes(HUSH)).toBe(false);
  const opened = await open(place, sealed);
  expect(toWholeDocument(requireDocument(opened))).toEqual(toWholeDocument(document));
  expect(JSON.stringify(toWholeDocument(requireDocument(opened)))).toContain(HUSH);
  await expect(open({ ...place, version: 2 }, sealed)).rejects.toThrow(
    'the test_document one was changed or moved in the database: it does not open',
  );
});

it('that this version rejects is reported by its first issue, without a value', async () => {
  const { vault, database } = api;
  const text = JSON.stringify({ rules: [{ ...opaqueRule('a.example.com'), from_the_future: HUSH }] });
  const sealed = await database.store.write((trx) => vault.seal(trx, place, new Secret(text)));
  const opened = await open(place, sealed);
  expect(opened.ok ? '' : opened.problem).toContain(
    'it must be replaced: rules.0.from_the_future: Unknown key',
  );
  expect(JSON.stringify(opened)).not.toContain(HUSH);
  expect(() => requireDocument(opened)).toThrow(DomainError);
});
