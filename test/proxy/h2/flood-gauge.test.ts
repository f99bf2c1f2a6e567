// The gauge by itself: what may come without a purpose, and how fast that is allowed again. What a flood does to a
// connection is a matter of real ones.
import { describe, expect, it } from 'vitest';
import { FloodGauge } from '../../../src/proxy/h2/flood-gauge.ts';

type Scene = { readonly gauge: FloodGauge; read: number; readonly floods: string[] };

function createScene(): Scene {
  const floods: string[] = [];
  const gauge = new FloodGauge(
    () => scene.read,
    (flood) => floods.push(flood),
  );
  const scene = { gauge, read: 0, floods };
  return scene;
}

function times(count: number, act: () => void): void {
  for (let i = 0; i < count; i += 1) act();
}

describe('pings, settings and resets', () => {
  it.each([
    ['pings', 200, 50, (gauge: FloodGauge) => gauge.onPing()],
    ['settings', 20, 2, (gauge: FloodGauge) => gauge.onSettings()],
    ['resets', 200, 100, (gauge: FloodGauge) => gauge.onReset()],
  ] as const)('%s: a burst of %i is honest, then %i a second', (flood, burst, perSecond, send) => {
    const { gauge, floods } = createScene();
    times(burst, () => send(gauge));
    times(4, () => gauge.tick());
    times(perSecond, () => send(gauge));
    expect(floods).toEqual([]);
    send(gauge);
    expect(floods).toEqual([flood]);
  });

  it('are reported once', () => {
    const { gauge, floods } = createScene();
    times(1_000, () => gauge.onPing());
    times(1_000, () => gauge.onSettings());
    expect(floods).toEqual(['pings']);
  });
});

describe('bytes', () => {
  it('without a purpose: a burst of 256 KiB, then 64 KiB a second', () => {
    const scene = createScene();
    scene.read += 262_144 + 16_384;
    scene.gauge.tick();
    times(4, () => {
      scene.read += 16_384;
      scene.gauge.tick();
    });
    expect(scene.floods).toEqual([]);
    scene.read += 16_385;
    scene.gauge.tick();
    expect(scene.floods).toEqual(['frames']);
  });

  it('of bodies, of their frames, and of the window updates for responses are no flood', () => {
    const scene = createScene();
    for (let tick = 0; tick < 40; tick += 1) {
      // 20,000 messages of five bytes a second, and a response to each for which the client grants two windows.
      times(5_000, () => {
        scene.gauge.onBody(5);
        scene.gauge.onResponse(5);
      });
      scene.read += 5_000 * (5 + 9 + 2 * 13);
      scene.gauge.tick();
    }
    expect(scene.floods).toEqual([]);
  });

  it('of heads are no flood', () => {
    const scene = createScene();
    times(10_000, () => scene.gauge.onRequest(false));
    scene.read = 10_000 * 16_384;
    scene.gauge.tick();
    expect(scene.floods).toEqual([]);
  });

  it('that were earned by a long response are not saved up', () => {
    const scene = createScene();
    scene.gauge.onBody(1 << 30);
    scene.gauge.tick();
    scene.read = 262_144 + 16_385;
    scene.gauge.tick();
    expect(scene.floods).toEqual(['frames']);
  });

  it('of bodies that nobody has taken yet are no flood, and are one when they are more than windows allow', () => {
    const scene = createScene();
    times(10, () => scene.gauge.onRequest(true));
    scene.read = 10 * 65_535 + 262_144 + 10 * 16_384 + 16_384;
    scene.gauge.tick();
    expect(scene.floods).toEqual([]);
    scene.read += 16_385;
    scene.gauge.tick();
    expect(scene.floods).toEqual(['frames']);
  });

  it('of bodies that nobody took are forgiven with their streams', () => {
    const scene = createScene();
    for (let round = 0; round < 100; round += 1) {
      times(10, () => scene.gauge.onRequest(true));
      scene.read += 10 * 65_535;
      scene.gauge.tick();
      times(10, () => scene.gauge.onRequestEnd(true));
    }
    expect(scene.floods).toEqual([]);
  });
});

describe('pieces of a body', () => {
  it('of a byte each: a burst of 20,000, then 20,000 a second', () => {
    const { gauge, floods } = createScene();
    times(20_000, () => gauge.onBody(1));
    times(4, () => gauge.tick());
    times(20_000, () => gauge.onBody(1));
    expect(floods).toEqual([]);
    times(1_000, () => gauge.onBody(1));
    expect(floods).toEqual(['pieces']);
  });

  it('of a size that pays may be as many as come', () => {
    const { gauge, floods } = createScene();
    times(1_000_000, () => gauge.onBody(64));
    expect(floods).toEqual([]);
  });
});
