// Which instance serves a request, what of it is in flight, and when it is drained.
import { describe, expect, it } from 'vitest';
import {
  type ServedDeployment,
  type ServedInstance,
  Targets,
} from '../../../src/platform/deployment-gateway/target-table.ts';

const deployment: ServedDeployment = { id: 'd', name: 'app', workspaceId: 'w', organizationId: 'o' };
const instance = (id: string): ServedInstance => ({ id, socketPath: `/run/${id}`, gatewayToken: id });
const revision = (id: string, ...instances: string[]) => ({
  ...{ id, access: 'gateway' as const },
  instances: instances.map(instance),
});

describe('an instance is chosen', () => {
  it('by what is in flight, and in turn where that is equal', () => {
    const targets = new Targets();
    targets.turn(deployment, revision('r', 'a', 'b', 'c'));
    const taken = ['a', 'b', 'c'].map(() => targets.take('d'));
    expect(taken.map((one) => one?.instance.id)).toEqual(['a', 'b', 'c']);
    taken[1]?.release();
    expect(targets.take('d')?.instance.id).toBe('b');
    expect(targets.take('d')?.instance.id).toBe('a');
    expect(targets.inFlight('a')).toEqual({ requests: 2, upgraded: 0 });
  });

  it('among those that connected of late, if there are any', () => {
    const targets = new Targets();
    targets.turn(deployment, revision('r', 'a', 'b'));
    targets.take('d')?.refused();
    const ids = [1, 2, 3].map(() => targets.take('d')?.instance.id);
    expect(ids).toEqual(['b', 'b', 'b']);
    targets.take('d')?.refused();
    expect(targets.take('d')?.instance.id).toBe('a');
  });

  it('of the revision that serves, and of no other', () => {
    const targets = new Targets();
    expect(targets.take('d')).toBeUndefined();
    targets.turn(deployment, revision('old', 'a'));
    targets.turn(deployment, revision('new', 'b'));
    expect(targets.take('d')).toMatchObject({ revision: { id: 'new' }, instance: { id: 'b' } });
    targets.turn(deployment, undefined);
    expect(targets.find('d')).toEqual({ deployment, revision: undefined });
    expect(targets.take('d')).toBeUndefined();
    targets.remove('d');
    expect(targets.find('d')).toBeUndefined();
  });
});

describe('a turn', () => {
  it('is over when what was on its way to an old instance has reached it', async () => {
    const targets = new Targets();
    targets.turn(deployment, revision('old', 'a', 'b'));
    const [one, two, three] = [targets.take('d'), targets.take('d'), targets.take('d')];
    one?.sent();
    const order: string[] = [];
    targets.turn(deployment, revision('new', 'b', 'c'));
    const turned = targets.handedOver('a').then(() => order.push('turned'));
    await Promise.resolve();
    order.push('sent');
    expect([two?.instance.id, three?.instance.id]).toEqual(['b', 'a']);
    three?.release();
    await turned;
    expect(order).toEqual(['sent', 'turned']);
    expect(targets.inFlight('a')).toEqual({ requests: 1, upgraded: 0 });
  });

  it('makes host names known, but for one that two deployments have', () => {
    const targets = new Targets();
    const [one, other] = [
      { ...deployment, id: '11111111-a' },
      { ...deployment, id: '11111111-b' },
    ] as const;
    targets.turn(one, undefined);
    expect(targets.findByLabel('app-11111111')?.deployment.id).toBe('11111111-a');
    targets.turn(other, undefined);
    expect(targets.findByLabel('app-11111111')).toBeUndefined();
    targets.remove('11111111-a');
    expect(targets.findByLabel('app-11111111')?.deployment.id).toBe('11111111-b');
    targets.turn({ ...other, name: 'renamed' }, undefined);
    expect(targets.findByLabel('app-11111111')).toBeUndefined();
    expect(targets.findByLabel('renamed-11111111')).toBeDefined();
  });
});

describe('an instance is drained', () => {
  it('when its last request has ended', async () => {
    const targets = new Targets();
    targets.turn(deployment, revision('old', 'a'));
    const [one, two] = [targets.take('d'), targets.take('d')];
    targets.turn(deployment, revision('new', 'b'));
    const order: string[] = [];
    const drained = targets.drained('a').then(() => order.push('drained'));
    one?.release();
    one?.release();
    expect(targets.inFlight('a')).toEqual({ requests: 1, upgraded: 0 });
    await Promise.resolve();
    order.push('released');
    two?.release();
    await drained;
    expect(order).toEqual(['released', 'drained']);
    expect(targets.inFlight('a')).toBeUndefined();
  });

  it('at once where nothing is in flight, and where it is unknown', async () => {
    const targets = new Targets();
    targets.turn(deployment, revision('old', 'a'));
    targets.turn(deployment, undefined);
    await targets.drained('a');
    await targets.drained('never');
    expect(targets.inFlight('a')).toBeUndefined();
  });

  it('by asking WebSockets to leave', async () => {
    const targets = new Targets();
    targets.turn(deployment, revision('old', 'a'));
    const taken = targets.take('d', () => taken?.release());
    expect(targets.inFlight('a')).toEqual({ requests: 1, upgraded: 1 });
    targets.turn(deployment, undefined);
    await targets.drained('a');
    expect(targets.inFlight('a')).toBeUndefined();
  });

  it('until its owner stops waiting', async () => {
    const targets = new Targets();
    targets.turn(deployment, revision('old', 'a'));
    targets.take('d');
    targets.remove('d');
    await targets.drained('a', AbortSignal.abort());
    expect(targets.inFlight('a')).toEqual({ requests: 1, upgraded: 0 });
  });

  it('never while it serves', async () => {
    const targets = new Targets();
    targets.turn(deployment, revision('r', 'a'));
    await expect(targets.drained('a')).rejects.toThrow('was to be drained');
  });
});
