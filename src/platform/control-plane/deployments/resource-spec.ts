// `resource_spec` as callers write it: what each part of a deployment may use, and fields of Pods. Replaced as a whole.
import { withoutPrototype, z } from '../../../base/schema.ts';

/** `null` is what clients send for what is not set. */
const optional = <T extends z.ZodType>(schema: T) => schema.nullable().optional();

const TENTHS = 'Input must have at most one decimal';
const cores = (most: number) =>
  optional(
    z
      .number()
      .min(0.1)
      .max(most)
      .refine((value) => Math.round(value * 10) / 10 === value, TENTHS),
  );
const megabytes = optional(z.int().min(1).max(1_048_576));
const replicas = optional(z.int().min(0).max(1_000));

/** What is left out of `queue_` is that of the main part. Those of databases mean nothing here. */
const PARTS = ['', 'queue_', 'redis_', 'db_'] as const;
type Prefixed<K extends string> = `${(typeof PARTS)[number]}${K}`;

function forParts<K extends string, S extends z.ZodType>(name: K, schema: S): Record<Prefixed<K>, S> {
  return Object.fromEntries(PARTS.map((part) => [`${part}${name}`, schema])) as Record<Prefixed<K>, S>;
}

const KEY = /^(?=.{1,317}$)(?:[a-z0-9.-]{1,253}\/)?[A-Za-z0-9](?:[A-Za-z0-9._-]{0,61}[A-Za-z0-9])?$/;
/** Of what we write on Pods ourselves. */
const OWN_KEY = /^(?:[a-z0-9-]+\.)*sallyport(?:\.[a-z0-9-]+)*\//;

const texts = (most: number) =>
  optional(
    withoutPrototype(
      z
        .record(z.string(), z.string().max(most))
        .superRefine((all, context) => {
          const keys = Object.keys(all);
          if (keys.length > 64)
            context.addIssue({ code: 'custom', message: 'Input must have at most 64 entries' });
          for (const key of keys.slice(0, 64)) {
            const message = OWN_KEY.test(key) ? RESERVED : KEY.test(key) ? undefined : BAD_KEY;
            if (message !== undefined) context.addIssue({ code: 'custom', path: [key], message });
          }
        })
        .meta({ maxProperties: 64, propertyNames: { type: 'string', pattern: KEY.source } }),
    ),
  );
const RESERVED = 'This prefix is reserved';
const BAD_KEY = 'The key must be one of Kubernetes, such as example.com/name';

const objects = optional(
  z
    .array(withoutPrototype(z.record(z.string(), z.unknown())))
    .max(32, { abort: true })
    .superRefine((all, context) => {
      for (const path of findForbidden(all))
        context.addIssue({ code: 'custom', path: [...path], message: FORBIDDEN });
    }),
);
const FORBIDDEN =
  'A Pod must not use files, namespaces, ports or devices of its node, and no privileged container';

/** In both spellings; `privileged: false` says what holds anyway. */
const FORBIDDEN_KEYS =
  /^(?:host_?(?:path|network|pid|ipc|users|port|ip|process)|privileged|volume_?devices)$/i;

/** Anywhere in the objects: what may be forbidden is deep in a Pod. */
function findForbidden(value: unknown, path: readonly (string | number)[] = []): (string | number)[][] {
  if (typeof value !== 'object' || value === null) return [];
  if (Array.isArray(value)) return value.flatMap((one, at) => findForbidden(one, [...path, at]));
  return Object.entries(value).flatMap(([key, one]) => {
    const isUsed = FORBIDDEN_KEYS.test(key) && one !== false && one !== null;
    return isUsed ? [[...path, key]] : findForbidden(one, [...path, key]);
  });
}

const named = optional(z.array(z.object({ name: z.string().min(1).max(253) })).max(32));

/** What means something here; `queue_` is checked because agents of listeners use it. */
const PAIRS = ['', 'queue_'].flatMap((part) => [
  { least: `${part}min_scale`, most: `${part}max_scale` },
  { least: `${part}cpu`, most: `${part}cpu_limit` },
  { least: `${part}memory_mb`, most: `${part}memory_limit_mb` },
]);

/** Of each pair that contradicts itself, the name of the second one and what is wrong with it. */
function findContradictions(
  spec: Readonly<Record<string, unknown>>,
): readonly { readonly name: string; readonly message: string }[] {
  return PAIRS.flatMap(({ least, most }) => {
    const [low, high] = [spec[least], spec[most]];
    if (typeof low !== 'number' || typeof high !== 'number' || low <= high) return [];
    return [{ name: most, message: `Input must be at least ${least}, which is ${low}` }];
  });
}

/** As JSON: every revision keeps it. */
const MAX_SPEC_CHARS = 65_536;

/** Fields that are not known here are ignored: clients may be newer. */
export const resourceSpec = z
  .object({
    ...forParts('min_scale', replicas),
    ...forParts('max_scale', replicas),
    ...forParts('cpu', cores(8)),
    ...forParts('cpu_limit', cores(16)),
    ...forParts('memory_mb', megabytes),
    ...forParts('memory_limit_mb', megabytes),
    ...{ labels: texts(63), annotations: texts(4_096) },
    service_account_name: optional(z.string().min(1).max(253)),
    image_pull_secrets: named,
    ...{ volumes: objects, volume_mounts: objects, init_containers: objects, sidecars: objects },
  })
  .superRefine((spec, context) => {
    for (const { name, message } of findContradictions(spec))
      context.addIssue({ code: 'custom', path: [name], message });
  })
  .refine((spec) => JSON.stringify(spec).length <= MAX_SPEC_CHARS, {
    error: `Input must have at most ${MAX_SPEC_CHARS} characters as JSON`,
  });
