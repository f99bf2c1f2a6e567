// The verifier is what the server itself would store.
import { expect, it } from 'vitest';
import { Secret } from '../../../../src/base/secret.ts';
import { createVerifier } from '../../../../src/platform/runner/databases/scram-verifier.ts';

it('has the form that PostgreSQL stores', async () => {
  // That a server lets a role with it in is tested in server-databases.test.ts.
  const salt = Buffer.from('AAECAwQFBgcICQoLDA0ODw==', 'base64');
  const one = await createVerifier(new Secret('secret'), salt);
  expect(one).toMatch(
    /^SCRAM-SHA-256\$4096:AAECAwQFBgcICQoLDA0ODw==\$[A-Za-z0-9+/]{43}=:[A-Za-z0-9+/]{43}=$/,
  );
  expect(await createVerifier(new Secret('secret'), salt)).toBe(one);
  expect(await createVerifier(new Secret('other'), salt)).not.toBe(one);
  expect(await createVerifier(new Secret('secret'))).not.toBe(await createVerifier(new Secret('secret')));
});
