// Sends what the document calls valid, at the limit or wrong to a route, and has every answer judged.
import type { Ask } from '../../support/platform-api.ts';
import { createChangeLog } from './change-log.ts';
import type { Operation } from './document.ts';
import { fillPath, type PathValues } from './fixtures.ts';
import { judge } from './judgement.ts';
import { probesOf, type Sent } from './probes.ts';
import { createExample, type EveryRoute, type Example, mightiest } from './scene.ts';

export const MAX_BODY_BYTES: number = 1024 * 1024;

export type Prober = {
  /** Asks as whoever may: what is refused is then refused for what it says. */
  asRightOne(operation: Operation): Ask;
  /** A valid request, after which only what follows counts. */
  createExample(operation: Operation, seed: number): Promise<Example>;
  /** Complaints about one answer; `isServed` where the things of the path may be used up. */
  probe(
    sent: Sent,
    values: PathValues,
  ): Promise<{ readonly found: readonly string[]; readonly isServed: boolean }>;
  /** Complaints about all that can be asked of an operation one after another. */
  sweep(
    operation: Operation,
    seed: number,
  ): Promise<{ readonly found: readonly string[]; readonly sent: number }>;
};

export async function createProber(scene: EveryRoute): Promise<Prober> {
  const { api, a1 } = scene;
  const ask = { key: a1.workspaceKey, body: {} };
  const { body } = await api.ask('POST', '/v1/sandboxes/here/tokens', ask);
  const log = await createChangeLog(api.database.owner.db);
  const prober: Prober = {
    asRightOne: (operation) =>
      operation.route.access.to === 'sandbox' ? { key: body.token } : mightiest(operation, a1),
    async createExample(operation, seed) {
      const example = await createExample(api, operation, a1, seed);
      await log.take();
      return example;
    },
    async probe({ path, ask: asked, ...sent }, values) {
      const { operation } = sent;
      const response = await api.ask(operation.method, path(values), {
        ...prober.asRightOne(operation),
        ...asked,
      });
      return { found: judge(sent, response, await log.take()), isServed: response.status < 300 };
    },
    async sweep(operation, seed) {
      const example = await prober.createExample(operation, seed);
      let { values } = example;
      const found: string[] = [];
      let sent = 0;
      for (const one of probesOf(example, MAX_BODY_BYTES)) {
        const reported = await prober.probe(one, values);
        found.push(...reported.found);
        sent += 1;
        if (!reported.isServed) continue;
        values = await fillPath(operation, { api, place: a1 });
        await log.take();
      }
      return { found, sent };
    },
  };
  return prober;
}
