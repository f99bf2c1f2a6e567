// What the platform sends about a box. The document and the values of secrets pass through to the sidecar: they are neither
// stored nor logged here.
import { isObject } from '../base/json/json-document.ts';
import { withoutPrototype, z } from '../base/schema.ts';

const limit = z.int().min(1).optional();

export const boxId = z.uuid();

export const boxDocument = z.strictObject({
  id: boxId,
  workspace_id: z.uuid(),
  /** For logs alone. */
  name: z.string().max(256),
  /** Absent: the snapshot `base`. */
  snapshot_id: z.uuid().optional(),
  /** Absent: whichever this machine has. */
  runtime: z.enum(['attached', 'bubblewrap']).optional(),
  env_vars: withoutPrototype(z.record(z.string(), z.string())),
  limits: z.strictObject({
    cpu_millicores: limit,
    mem_bytes: limit,
    fs_capacity_bytes: limit,
    pids: limit,
  }),
  /** What clients send where other machines reach the listener. */
  proxy_token: z.string().regex(/^[A-Za-z0-9._~-]{16,256}$/, 'Input must be a token'),
});
export type BoxDocument = z.output<typeof boxDocument>;

// Not a record, of which zod leaves out a member `__proto__`: a workspace secret may have that name.
const secrets = z.custom<Readonly<Record<string, string>>>(
  (given) => isObject(given) && Object.values(given).every((value) => typeof value === 'string'),
  'Input must be an object of strings',
);

export const policyDocument = z.strictObject({
  version: z.int().min(1),
  /** A whole proxy_config; the sidecar checks it. */
  document: withoutPrototype(z.record(z.string(), z.unknown())),
  secrets,
});
export type PolicyDocument = z.output<typeof policyDocument>;

export const startDocument = z.strictObject({ box: boxDocument, policy: policyDocument });
