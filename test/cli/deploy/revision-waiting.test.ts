import { describe, expect, it } from 'vitest';
import { ControlPlane } from '../../../src/cli/deploy/control-plane.ts';
import { Secret } from '../../../src/base/secret.ts';
import type { Output } from '../../../src/cli/deploy/output.ts';
import { waitForRevision } from '../../../src/cli/deploy/revision-waiting.ts';
import { FakeControlPlane } from '../../support/fake-control-plane.ts';

/** Time passes as the command waits. */
async function wait(plane: FakeControlPlane) {
  let time = 0;
  const clock = { now: () => time, wait: async (ms: number) => void (time += ms) };
  const connection = { url: new URL(plane.url), key: new Secret('key'), workspace: undefined };
  const control = new ControlPlane(connection, clock.wait);
  const { id } = await control.create('one', { secrets: new Map(), proxyProfileId: undefined });
  const revisionId = plane.revisions[0]?.id ?? '';
  Object.assign(plane.revisions[0] ?? {}, { status: plane.states[0] });
  const lines: string[] = [];
  const results: unknown[] = [];
  const output: Output = {
    progress: (line) => lines.push(line.replace(revisionId, 'ID')),
    result: (document) => results.push(document),
  };
  const code = await waitForRevision(control, { id, name: 'one' }, revisionId, { output, ...clock });
  return { code, lines, status: (results[0] as { readonly status: string }).status };
}

describe('waiting for a revision', () => {
  it('names each state once', async () => {
    await using plane = await FakeControlPlane.start();
    const { code, lines } = await wait(plane);
    expect(code).toBe(0);
    expect(lines).toEqual(['revision ID: QUEUED', 'revision ID: BUILDING', 'revision ID: DEPLOYED']);
  });

  it('says once why the deployment has to wait', async () => {
    await using plane = await FakeControlPlane.start();
    plane.states = ['AWAITING_DEPLOY'];
    plane.reason = 'all 64 agent servers that runner.limits.instances allows are in use';
    const { lines } = await wait(plane);
    expect(lines.slice(0, -1)).toEqual(['revision ID: AWAITING_DEPLOY', `it waits: ${plane.reason}`]);
  });

  it.each(['SKIPPED', 'INTERRUPTED', 'CREATE_FAILED'])('ends at %s', async (state) => {
    await using plane = await FakeControlPlane.start();
    plane.states = ['QUEUED', state];
    const { code, lines, status } = await wait(plane);
    expect({ code, status }).toEqual({ code: 1, status: state });
    expect(lines.at(-1)).toContain(`the revision is not deployed (${state}): `);
  });

  it('goes on after failures of the platform that last less than a minute', async () => {
    await using plane = await FakeControlPlane.start();
    for (let n = 0; n < 5; n += 1) plane.interferences.push([/revisions\/ID$/, { status: 503, body: '' }]);
    expect(await wait(plane)).toMatchObject({ code: 0 });
  });

  it('ends with its deployment', async () => {
    await using plane = await FakeControlPlane.start();
    plane.interferences.push([/revisions\/ID$/, { status: 404, body: { detail: 'not found' } }]);
    const { code, lines, status } = await wait(plane);
    expect({ code, status, lines }).toEqual({
      ...{ code: 1, status: 'INTERRUPTED' },
      lines: ['the deployment one was deleted meanwhile'],
    });
  });

  it('ends after half an hour, and the revision goes on', async () => {
    await using plane = await FakeControlPlane.start();
    plane.states = ['BUILDING'];
    const { code, lines, status } = await wait(plane);
    expect({ code, status }).toEqual({ code: 1, status: 'UNKNOWN' });
    expect(lines.at(-1)).toContain('sallyport deploy logs one --build --follow');
  });
});
