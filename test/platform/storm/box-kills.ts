// kill -9 of the platform, the box host, sidecars and agents at random, while rules change. Each time state and reality must agree
// again in time, and no request may get a header that is older than the rules that were acknowledged.
import { setTimeout as delay } from 'node:timers/promises';
import { createBoxHostRuntime } from '../../../src/platform/runtime/box-host-runtime.ts';
import { execute, HOST, hostPid, sidecarPids } from '../../box-host/box-host-scene.ts';
import { createRandom, type Random } from '../../http1/mutation.ts';
import { createOrigin, type RecordingOrigin } from '../../support/recording-origin.ts';
import { createScratch } from '../../support/scratch.ts';
import { createTestAuthority } from '../../support/test-authority.ts';
import { type BoxPlatform, createBoxPlatform } from './box-storm-platform.ts';
import { describeLeftovers, descendantsOf, readHost } from './box-storm-machine.ts';

const BOXES = '/v2/sandboxes/boxes';
const COUNT = 4;
const AGREE_MS = 15_000;
const PAUSE_MS = 100;
/** What six losses in a minute end with, which the kills of others count as. */
const GIVEN_UP = 'It ended again and again';
const VICTIMS = ['platform', 'box host', 'sidecar', 'agent'] as const;

type Kills = { readonly kills: number; readonly seed: number; readonly runtime: string };

/** What is wrong; prints the figures. */
export async function runBoxKills({ kills, seed, runtime }: Kills): Promise<readonly string[]> {
  await using scratch = await createScratch();
  const authority = createTestAuthority();
  const origin = await createOrigin({ tls: { authority, names: [HOST] } });
  const sidecars = await scratch.write('sidecars.json', {
    upstream: { ca_file: await scratch.write('origins.pem', authority.certificatePem) },
    egress: { allow_private: ['loopback'] },
  });
  const platform = await createBoxPlatform(runtime, {
    SALLYPORT_PLATFORM_SANDBOXES_SIDECAR_CONFIG: sidecars,
  });
  try {
    await platform.start();
    const storm = new Storm(platform, origin, seed);
    await storm.run(kills);
    return storm.errors;
  } finally {
    await platform[Symbol.asyncDispose]();
    await origin.close();
  }
}

type Box = { readonly id: string; version: number; acknowledged: number };

class Storm {
  readonly errors: string[] = [];
  readonly #platform: BoxPlatform;
  readonly #origin: RecordingOrigin;
  readonly #random: Random;
  readonly #boxes: Box[] = [];
  readonly #agreedMs: number[] = [];
  #startedAgain = 0;

  constructor(platform: BoxPlatform, origin: RecordingOrigin, seed: number) {
    this.#platform = platform;
    this.#origin = origin;
    this.#random = createRandom(seed);
  }

  async run(kills: number): Promise<void> {
    for (let index = 0; index < COUNT; index += 1) {
      const body = { name: `kills-${index}`, wait_for_ready: true, timeout: 120, proxy_config: rules(1) };
      const { status, body: box } = await this.#platform.ask('POST', BOXES, body);
      if (status !== 201) throw new Error(`a box was ${status}: ${JSON.stringify(box)}`);
      if (box['proxy_url'] !== null) throw new Error('kills need isolated boxes: --runtime bubblewrap');
      this.#boxes.push({ id: String(box['id']), version: 1, acknowledged: 1 });
    }
    for (let nth = 1; nth <= kills; nth += 1) {
      const victim = VICTIMS[this.#random(VICTIMS.length)] ?? 'sidecar';
      // Some kills hit a change that is under way.
      const changes = this.#boxes.map((box) => this.#change(box));
      await delay(this.#random(150));
      await this.#kill(victim);
      await Promise.all(changes);
      await this.#agree(nth, victim);
      if (nth % 10 === 0)
        console.log(`  ${nth} killed, agreed within ${Math.max(...this.#agreedMs).toFixed(0)} ms`);
    }
    for (const { id } of this.#boxes) await this.#platform.ask('DELETE', `${BOXES}/${id}`);
    const state = await readHost(this.#platform.directory);
    this.errors.push(
      ...describeLeftovers(this.#platform.directory, state).map((one) => `left behind: ${one}`),
    );
    const sorted = this.#agreedMs.toSorted((a, b) => a - b);
    console.log(
      `  ${kills} kills: agreed after p50 ${sorted[Math.floor(sorted.length / 2)]?.toFixed(0)} ms, max ${sorted.at(-1)?.toFixed(0)} ms`,
    );
    console.log(
      `  ${this.#startedAgain} times a box was given up after six losses in a minute, and started again`,
    );
  }

  /** A change that is responded to is acknowledged. */
  async #change(box: Box): Promise<void> {
    box.version += 1;
    const { version } = box;
    const { status, body } = await this.#platform.ask('PATCH', `${BOXES}/${box.id}`, {
      proxy_config: rules(version),
    });
    const applied = Number(body['proxy_config_applied_version']);
    const isInEffect = status === 200 && body['status'] === 'ready';
    if (isInEffect && applied === body['proxy_config_version'])
      box.acknowledged = Math.max(box.acknowledged, version);
  }

  async #kill(victim: (typeof VICTIMS)[number]): Promise<void> {
    const platform = this.#platform;
    if (victim === 'platform') {
      const { pid } = platform;
      process.kill(pid, 'SIGKILL');
      await gone(pid);
      await platform.start();
      return;
    }
    const host = await hostPid(platform.directory);
    if (host === undefined) return;
    const sidecars = await sidecarPids(platform.directory);
    const agents = descendantsOf(host).filter((pid) => !sidecars.includes(pid));
    const found = { 'box host': [host], sidecar: sidecars, agent: agents }[victim];
    const pid = found[this.#random(found.length)];
    if (pid !== undefined) killNow(pid);
  }

  /** Every box is ready, and a request from within gets the newest header; an older one than acknowledged is an error at any time. */
  async #agree(nth: number, victim: string): Promise<void> {
    const startedMs = performance.now();
    const check = async (box: Box): Promise<void> => {
      for (;;) {
        const seen = await this.#headerOf(box);
        if (seen !== undefined && seen < box.acknowledged)
          this.errors.push(
            `kill ${nth} (${victim}): rules ${seen} after ${box.acknowledged} was acknowledged`,
          );
        const { body } = await this.#platform.ask('GET', `${BOXES}/${box.id}`);
        if (body['status'] === 'ready' && seen !== undefined && seen >= box.acknowledged) break;
        if (body['status_message'] === GIVEN_UP) await this.#startAgain(box);
        if (performance.now() - startedMs > AGREE_MS) {
          this.errors.push(
            `kill ${nth} (${victim}): ${box.id} is ${JSON.stringify(body['status'])}, rules ${seen}, after 15 s`,
          );
          break;
        }
        await delay(PAUSE_MS);
      }
    };
    await Promise.all(this.#boxes.map(check));
    this.#agreedMs.push(performance.now() - startedMs);
  }

  async #startAgain(box: Box): Promise<void> {
    const { status } = await this.#platform.ask('POST', `${BOXES}/${box.id}/start`, {});
    if (status === 202) this.#startedAgain += 1;
  }

  /** The version that the origin saw; undefined: the box is not reached, or reaches nothing. */
  async #headerOf(box: Box): Promise<number | undefined> {
    const { directory } = this.#platform;
    try {
      const runtime = await createBoxHostRuntime({ command: ['/nonexistent'], directory });
      const connection = await runtime.connect(box.id, 'data-plane');
      const url = `https://${HOST}:${this.#origin.port}/${box.id}`;
      const { body } = await execute(
        connection,
        `curl -sS -m 5 --noproxy '' -o /dev/null -w '%{http_code}' ${url}`,
      );
      connection.destroy();
      await runtime.close();
      if (body['stdout'] !== '200') return undefined;
      const request = this.#origin.requests.findLast(({ target }) => target === `/${box.id}`);
      const value = request?.headers.find(([name]) => name === 'X-Key')?.[1];
      return value === undefined ? undefined : Number(value);
    } catch {
      return undefined;
    }
  }
}

function rules(version: number) {
  const headers = [{ name: 'X-Key', type: 'plaintext', value: String(version) }];
  return { rules: [{ match_hosts: [HOST], headers }] };
}

function killNow(pid: number): void {
  try {
    process.kill(pid, 'SIGKILL');
  } catch {
    // It ended by itself.
  }
}

async function gone(pid: number): Promise<void> {
  for (;;) {
    try {
      process.kill(pid, 0);
    } catch {
      return;
    }
    await new Promise((resolve) => setImmediate(resolve));
  }
}
