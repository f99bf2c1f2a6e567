// What goes over the socket of the box host, as JSON. One of the files that may reveal secrets: a box needs the values of its
// policy, and they leave this process on a socket of its own user alone.
import { type Issue, z } from '../../base/schema.ts';
import type { Secret } from '../../base/secret.ts';
import type { BoxPolicy, BoxReport, BoxSpec, Capabilities, StartedBox } from './contract.ts';

export function toPolicyDocument({ version, document, secrets }: BoxPolicy): object {
  return {
    version,
    document,
    secrets: Object.fromEntries([...secrets].map(([name, value]) => [name, reveal(value)])),
  };
}

export function toStartDocument(box: BoxSpec, policy: BoxPolicy): object {
  const { cpuMillicores, memBytes, fsCapacityBytes, pids } = box.limits;
  return {
    box: {
      id: box.id,
      workspace_id: box.workspaceId,
      name: box.name,
      snapshot_id: box.snapshotId,
      runtime: box.runtime,
      env_vars: box.envVars,
      limits: {
        cpu_millicores: cpuMillicores,
        mem_bytes: memBytes,
        fs_capacity_bytes: fsCapacityBytes,
        pids,
      },
      proxy_token: reveal(box.proxyToken),
    },
    policy: toPolicyDocument(policy),
  };
}

function reveal(secret: Secret): string {
  return secret.reveal();
}

export const appliedBox = z
  .object({ status_message: z.string().optional(), applied_version: z.int().min(0) })
  .transform(({ status_message: statusMessage, applied_version: appliedVersion }) => ({
    ...(statusMessage !== undefined && { statusMessage }),
    appliedVersion,
  }));

const kind = z.enum(['attached', 'bubblewrap']);

export const startedBox = z
  .object({
    runtime: kind,
    proxy_url: z.string().optional(),
    needs_proxy_token: z.boolean().optional(),
    ca_pem: z.string().optional(),
    status_message: z.string().optional(),
    applied_version: z.int().min(1),
  })
  .transform(
    (box): StartedBox => ({
      runtime: box.runtime,
      ...(box.proxy_url !== undefined && { proxyUrl: box.proxy_url }),
      ...(box.needs_proxy_token !== undefined && { needsProxyToken: box.needs_proxy_token }),
      ...(box.ca_pem !== undefined && { caPem: box.ca_pem }),
      ...(box.status_message !== undefined && { statusMessage: box.status_message }),
      appliedVersion: box.applied_version,
    }),
  );

export const boxList = z
  .object({
    boxes: z.array(
      z.object({
        id: z.uuid(),
        state: z.enum(['running', 'stopped', 'failed']),
        reason: z.string().optional(),
        applied_version: z.int().min(0),
      }),
    ),
  })
  .transform(({ boxes }): readonly BoxReport[] =>
    boxes.map(({ id, state, reason, applied_version: appliedVersion }) => ({
      id,
      state,
      ...(reason !== undefined && { reason }),
      appliedVersion,
    })),
  );

const capability = z
  .object({ is_held: z.boolean(), reason: z.string().default('') })
  .transform(({ is_held: isHeld, reason }) =>
    isHeld ? { isHeld, ...(reason === '' ? {} : { note: reason }) } : { isHeld, reason },
  );

export const hostStatus = z
  .object({
    kind,
    configured: z.string(),
    version: z.string().optional(),
    capabilities: z.object({
      isolation: capability,
      limits: capability,
      storage: capability,
      agent: capability,
    }),
  })
  .transform(({ kind: found, configured, version, capabilities }) => ({
    ...{ kind: found, configured },
    capabilities: { version, ...capabilities } as Capabilities,
  }));

export const recordBatch = z.object({
  box_id: z.uuid(),
  source: z.uuid(),
  records: z.array(z.looseObject({ number: z.int().min(0) })).min(1),
});

export const hostError = z.object({
  code: z.string(),
  detail: z.unknown(),
  issues: z
    .array(z.custom<Issue>((issue) => typeof issue === 'object' && issue !== null && 'loc' in issue))
    .default([]),
});
