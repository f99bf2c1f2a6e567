// Starts the gateway in a process that serves, and publishes where the boxes of this machine are reached.
import { FairQueue } from '../../api/shares/fair-queue.ts';
import { systemClock } from '../../api/shares/clock.ts';
import type { RunningPart, StartContext } from '../../module.ts';
import type { Runtime } from '../../runtime/contract.ts';
import type { Database } from '../../store/database.ts';
import type { BoxChanges } from '../box-changes.ts';
import type { BoxWriting } from '../box-writing.ts';
import { readMachineId } from '../../store/data-directory/machine-id.ts';
import type { ServiceSite } from '../services/service-address.ts';
import { createServices } from '../services/service-place.ts';
import { createApplicantReader } from './applicant.ts';
import { createBoxUse } from './box-use.ts';
import { createDataPlane } from './data-plane.ts';
import { openGatewayListener } from './listener.ts';
import type { Place } from './place.ts';

export type GatewayParts = {
  readonly changes: BoxChanges;
  readonly writing: Pick<BoxWriting, 'quotas'>;
  openRuntime(context: StartContext): Promise<Runtime>;
};

export type RunningGateway = RunningPart & { readonly url: string };

/** Undefined in a process that does not serve. */
export async function startGateway(
  context: StartContext,
  { changes, writing, openRuntime }: GatewayParts,
): Promise<RunningGateway | undefined> {
  const { admission, config, store, log, meters, signal } = context;
  if (admission === undefined || config.sandboxes.runtime === 'none') return undefined;
  const machineId = await readMachineId(config.dataDirectory);
  const use = createBoxUse({ db: store.db, log });
  const runtime = createOnce(() => openRuntime(context));
  const { startWaitMs, connections, organizationRequests } = config.gateway;
  const parts = {
    ...{ admission, writing, changes, use, machineId, startWaitMs, runtime: runtime.get },
    requests: createRequestShares(connections, organizationRequests),
    toApplicant: createApplicantReader(config.trustedProxies),
  };
  const site = (): ServiceSite => ({ gatewayUrl: listener.url, domain: config.gateway.domain });
  // Services first: of a host name that is a service, every path is its own.
  const places: readonly Place[] = [createServices({ ...parts, site }), createDataPlane(parts)];
  const listener = await openGatewayListener({ config, places, log, meters });
  await publish(store.db, machineId, listener.url);
  // With the API, and not after it: its clients are asked at once to connect again.
  signal.addEventListener('abort', () => void listener.close(), { once: true });
  return {
    url: listener.url,
    async close() {
      await listener.close();
      await use.close();
      await runtime.close();
    },
  };
}

const TOO_MANY = 'Too many requests to the sandboxes of this organization or key at the same time';

/** An organization has its part of what may run at once, and a key half of that. */
function createRequestShares(places: number, perOrganization: number): FairQueue {
  const perKey = Math.max(1, Math.floor(perOrganization / 2));
  return new FairQueue({ places, perOrganization, perKey, waitMs: 0, maxWaiting: 0 }, systemClock, TOO_MANY);
}

/** By each process of the machine that serves, the last of which counts. */
async function publish(db: Database, id: string, gateway_url: string): Promise<void> {
  await db
    .insertInto('box_machines')
    .values({ id, gateway_url })
    .onConflict((conflict) => conflict.column('id').doUpdateSet({ gateway_url }))
    .execute();
}

/** A client of what runs boxes, made with the first request, and made anew where that failed. */
function createOnce(open: () => Promise<Runtime>) {
  let opening: Promise<Runtime> | undefined;
  return {
    get: (): Promise<Runtime> =>
      (opening ??= open().catch((error: unknown) => {
        opening = undefined;
        throw error;
      })),
    close: async (): Promise<void> => (await opening?.catch(() => undefined))?.close(),
  };
}
