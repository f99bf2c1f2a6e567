import { expect, it } from 'vitest';
import { Secret } from '../../../src/base/secret.ts';
import { ControlPlane } from '../../../src/cli/deploy/control-plane.ts';
import { printDeployments } from '../../../src/cli/deploy/deployment-list.ts';
import { FakeControlPlane } from '../../support/fake-control-plane.ts';

async function list(plane: FakeControlPlane) {
  const control = new ControlPlane({ url: new URL(plane.url), key: new Secret('key'), workspace: undefined });
  const printed: { document?: unknown; lines: readonly string[] } = { lines: [] };
  const output = {
    progress: () => undefined,
    result: (document: unknown, lines: readonly string[]) => void Object.assign(printed, { document, lines }),
  };
  await printDeployments(control, output);
  return printed;
}

async function addFailed(plane: FakeControlPlane) {
  const control = new ControlPlane({ url: new URL(plane.url), key: new Secret('key'), workspace: undefined });
  const one = await control.create('one', { secrets: new Map(), proxyProfileId: undefined });
  const reason = '`npm ci` failed: it ended with code 1\nits last lines';
  Object.assign(plane.revisions[0] ?? {}, { status: 'BUILD_FAILED', status_reason: reason });
  return { one, reason };
}

it('a deployment whose first build has failed says so, with the reason', async () => {
  await using plane = await FakeControlPlane.start();
  const { one, reason } = await addFailed(plane);
  const { document, lines } = await list(plane);
  expect(lines).toEqual([
    expect.stringMatching(/^NAME +STATUS +ACTIVE REVISION +LATEST REVISION +ID +URL +REASON$/),
    expect.stringMatching(/^one +READY +- +BUILD_FAILED +\S+ +\S+ +`npm ci` failed: it ended with code 1$/),
  ]);
  const latest = { id: one.latest_revision_id, status: 'BUILD_FAILED', status_reason: reason };
  expect(document).toMatchObject([{ name: 'one', latest_revision: latest }]);
});

it('the revision that serves is not read again, and one that has gone is none', async () => {
  await using plane = await FakeControlPlane.start();
  const { one } = await addFailed(plane);
  plane.interferences.push([/revisions/, { status: 404, body: { detail: 'Revision ID x not found.' } }]);
  expect((await list(plane)).document).toMatchObject([{ latest_revision: null }]);
  Object.assign(plane.deployments[0] ?? {}, { active_revision_id: one.latest_revision_id });
  const before = plane.lines.length;
  expect((await list(plane)).document).toMatchObject([{ latest_revision: { status: 'DEPLOYED' } }]);
  expect(plane.lines.slice(before)).toEqual(['GET /v2/deployments']);
});
