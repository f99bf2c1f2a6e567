// Every peer that is installed, and the bare relay, refuse an origin whose certificate they cannot verify: a comparison with a
// proxy that skips the verification would be unfair. The origin accepts no request.
// @module-tag long
import { chmod } from 'node:fs/promises';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { peersOf } from '../../bench/peers/all-peers.ts';
import { type Children, createChildren } from '../../bench/support/children.ts';
import { openConnection } from '../../bench/support/connection.ts';
import { openH2Connection } from '../../bench/support/h2-connection.ts';
import { type Scene, createScene } from '../../bench/support/scene.ts';
import type { Subject } from '../../bench/support/subject.ts';
import { startRelay } from '../../bench/support/subjects.ts';
import { type Scratch, createScratch } from '../support/scratch.ts';

const installed = peersOf('full', undefined).flatMap((peer) => {
  const program = peer.find();
  return program === undefined ? [] : [{ peer, program }];
});

describe('an origin with a certificate of another CA', () => {
  let scratch: Scratch;
  let children: Children;
  let scene: Scene;

  beforeAll(async () => {
    scratch = await createScratch();
    // Some peers run as the user nobody.
    await chmod(scratch.path, 0o711);
    children = createChildren();
    scene = await createScene(children, scratch.path);
  });
  afterAll(async () => {
    await scene[Symbol.asyncDispose]();
    await children[Symbol.asyncDispose]();
    await scratch[Symbol.asyncDispose]();
  });

  const misled = (): Scene => ({ ...scene, caFile: scene.peerCa.certFile });

  it('is refused by the relay', async () => {
    await expect(ask(await startRelay(children, misled()))).rejects.toThrow();
    expect(await scene.originCounts()).toMatchObject({ h1: 0, h2: 0 });
  });

  it.each(installed.map(({ peer, program }) => [peer.name, peer, program] as const))(
    'is refused by %s',
    async (_, peer, program) => {
      await expect(ask(await peer.start(program, children, misled()))).rejects.toThrow();
      expect(await scene.originCounts()).toMatchObject({ h1: 0, h2: 0 });
    },
  );

  /** One request; resolves with its 200, rejects with anything else. */
  async function ask({ target, protocols }: Subject): Promise<void> {
    const { promise: failed, reject } = Promise.withResolvers<never>();
    failed.catch(() => undefined);
    const to = target(scene.originPort);
    const connection = protocols.includes('h1')
      ? await openConnection(to, reject)
      : await openH2Connection(to, 1, reject);
    const [line] = 'lines' in connection ? connection.lines : [connection];
    await Promise.race([new Promise<void>((done) => line?.exchange(done)), failed]);
  }
});
