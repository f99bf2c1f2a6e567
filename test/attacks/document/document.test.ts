// The stage `document`: invalid proxy_configs, secrets and sandboxes are rejected, and the rules in force do not
// change.
import { afterAll, beforeAll, expect, it } from 'vitest';
import { type DocumentScene, createDocumentScene, violations } from './document-driver.ts';
import { headerRows } from './rows-header.ts';
import { hostRows } from './rows-host.ts';
import { jsonRows } from './rows-json.ts';
import { secretRows } from './rows-secret.ts';
import { typeRows } from './rows-type.ts';
import { countWork } from './matching-work.ts';
import { workRows } from './rows-work.ts';
import { everyNth } from '../../support/run-size.ts';

let scene: DocumentScene;
beforeAll(async () => {
  scene = await createDocumentScene();
});
afterAll(() => scene[Symbol.asyncDispose]());

everyNth(2, [...hostRows, ...headerRows, ...jsonRows, ...typeRows, ...secretRows], (some, options) =>
  it.each(some)('$id', options, async ({ script, expect: expected }) => {
    expect(violations(expected, await scene.play(script), script)).toEqual([]);
  }),
);

it.each(workRows)('$id', ({ script, expect: { decision, perCharacter } }) => {
  const path = script.path
    .map((part) => (typeof part === 'string' ? part : part[0].repeat(part[1])))
    .join('');
  const { match_paths } = script;
  const headers = [{ name: 'X-Key', type: 'plaintext', value: 'one' }];
  const work = countWork({ rules: [{ match_hosts: ['api.test'], match_paths, headers }] }, 'api.test', path);
  expect(work).toMatchObject({ decision, expressions: 0 });
  expect(work.characters).toBeGreaterThan(0);
  expect(work.characters / path.length).toBeLessThan(perCharacter);
});

it('one sandbox is left, with the one client that is connected', async () => {
  const { body } = await scene.proxy.admin('GET', '/v1/sandboxes');
  expect(body['sandboxes']).toMatchObject([{ id: 'default', connections: 1 }]);
});
