// Sends valid, boundary and invalid requests to a route, and checks every response.
import type { Ask } from '../../support/platform-api.ts';
import { createChangeLog } from './change-log.ts';
import type { Operation } from './document.ts';
import { fillPath, type PathValues } from './fixtures.ts';
import { checkResponse } from './response-checks.ts';
import { probesOf, type Sent } from './probes.ts';
import { createExample, type EveryRoute, type Example, adminOf } from './scene.ts';

export const MAX_BODY_BYTES: number = 1024 * 1024;

export type Prober = {
  /** The credentials of a caller with access: a rejection is then a rejection of the content. */
  authorize(operation: Operation): Ask;
  /** A valid request; clears the change log after creating it. */
  createExample(operation: Operation, seed: number): Promise<Example>;
  /** The defects of one response; `isServed`: the resources of the path may be used up. */
  probe(
    sent: Sent,
    values: PathValues,
  ): Promise<{ readonly found: readonly string[]; readonly isServed: boolean }>;
  /** The defects of the responses to all probes of an operation. */
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
    authorize: (operation) =>
      operation.route.access.to === 'sandbox' ? { key: body.token } : adminOf(operation, a1),
    async createExample(operation, seed) {
      const example = await createExample(api, operation, a1, seed);
      await log.take();
      return example;
    },
    async probe({ path, ask: asked, ...sent }, values) {
      const { operation } = sent;
      const response = await api.ask(operation.method, path(values), {
        ...prober.authorize(operation),
        ...asked,
      });
      return { found: checkResponse(sent, response, await log.take()), isServed: response.status < 300 };
    },
    async sweep(operation, seed) {
      const example = await prober.createExample(operation, seed);
      let { values } = example;
      const found: string[] = [];
      let sent = 0;
      for (const one of probesOf(example, MAX_BODY_BYTES)) {
        const probed = await prober.probe(one, values);
        found.push(...probed.found);
        sent += 1;
        if (!probed.isServed) continue;
        values = await fillPath(operation, { api, tenant: a1 });
        await log.take();
      }
      return { found, sent };
    },
  };
  return prober;
}
