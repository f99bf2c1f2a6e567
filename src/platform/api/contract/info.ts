// `GET /info`, by which existing clients choose how they send: which version of the public contract is served, and what the
// modules of this process accept.
import { z } from '../../../base/schema.ts';

/** What a module adds: flags that clients look for, and how they may batch what they send. */
export type Info = {
  readonly instance_flags?: Readonly<Record<string, boolean>>;
  readonly batch_ingest_config?: Readonly<Record<string, boolean | number>>;
};

/** The release of the public API whose shapes the platform has: clients compare it, our own version means nothing to them. */
const PUBLIC_VERSION = '0.16.0';

export const infoSchema = z
  .strictObject({
    version: z.string().describe('Of the public API that is served'),
    sallyport: z.string().describe('Of this program'),
    git_sha: z.string().nullable(),
    license_expiration_time: z.string().nullable(),
    batch_ingest_config: z.record(z.string(), z.union([z.boolean(), z.number()])),
    instance_flags: z.record(z.string(), z.boolean()),
    customer_info: z.null(),
  })
  .meta({ id: 'Info' });

/** Throws an Error where two modules say something different: that is a bug in the modules. */
export function createInfo(version: string, modules: readonly Info[]): z.output<typeof infoSchema> {
  return {
    version: PUBLIC_VERSION,
    sallyport: version,
    git_sha: null,
    license_expiration_time: null,
    batch_ingest_config: merge(modules.map((one) => one.batch_ingest_config)),
    instance_flags: merge(modules.map((one) => one.instance_flags)),
    customer_info: null,
  };
}

function merge<T>(parts: readonly (Readonly<Record<string, T>> | undefined)[]): Record<string, T> {
  const merged: Record<string, T> = {};
  for (const [name, value] of parts.flatMap((part) => Object.entries(part ?? {}))) {
    if (Object.hasOwn(merged, name) && merged[name] !== value)
      throw new Error(`two modules have a different ${name} in /info`);
    merged[name] = value;
  }
  return merged;
}
