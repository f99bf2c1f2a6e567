import { expect, it } from 'vitest';
import { InputError } from '../../../src/base/input-error.ts';
import { Secret } from '../../../src/base/secret.ts';
import { call, CallRejected } from '../../../src/cli/deploy/platform-call.ts';
import { describeRejection } from '../../../src/cli/deploy/rejected-call.ts';
import { FakeControlPlane } from '../../support/fake-control-plane.ts';

const LOGS = { level: '--level', revision_id: '--revision' };
const DEPLOY = { name: '--name', install_command: '--install-command' };

async function reject(status: number, detail: unknown): Promise<unknown> {
  await using plane = await FakeControlPlane.start();
  plane.interferences.push([/./, { status, body: { detail } }]);
  const connection = { url: new URL(plane.url), key: new Secret('key'), workspace: undefined };
  return await call(connection, { method: 'POST', path: '/v1/x' }).catch((error: unknown) => error);
}

it.each([
  [LOGS, ['body', 'level'], '--level: wrong'],
  [LOGS, ['path', 'revision_id'], '--revision: wrong'],
  [LOGS, ['body', 'limit'], 'POST /v1/x: 422\n  body.limit: wrong'],
  [DEPLOY, ['body', 'source_config', 'install_command'], '--install-command: wrong'],
  [DEPLOY, ['body', 'name'], '--name: wrong'],
  [DEPLOY, ['body', 'secrets', 3, 'name'], 'POST /v1/x: 422\n  body.secrets.3.name: wrong'],
])('with %j, %j is named %j', async (names, loc, message) => {
  const error = describeRejection(await reject(422, [{ loc, msg: 'wrong' }]), names);
  expect(error).toBeInstanceOf(InputError);
  expect((error as Error).message).toBe(message);
});

it('every issue is a line, without control characters', async () => {
  const issues = [
    { loc: ['body', 'level'], msg: 'a' },
    { loc: ['body', 'x'], msg: 'b\x1b[2J' },
  ];
  const { message } = describeRejection(await reject(422, issues), LOGS) as Error;
  expect(message).toBe('POST /v1/x: 422\n  --level: a\n  body.x: b\\u001b[2J');
});

it('a revision that is not there is that of the option', async () => {
  const { message } = describeRejection(await reject(404, 'Revision ID x not found.'), LOGS) as Error;
  expect(message).toBe('--revision: POST /v1/x: 404: Revision ID x not found.');
});

it('what is no error of the caller stays as it is', async () => {
  for (const status of [408, 429, 500]) {
    const error = await reject(status, 'later');
    expect(describeRejection(error, LOGS)).toBe(error);
    expect(error).toBeInstanceOf(CallRejected);
  }
});
