// What callers send about boxes and what they see. Fields that are not known here are ignored: clients may be newer. Those that
// are known and cannot be had yet are rejected, because a caller would rely on them.
import { LINE } from '../../base/json/printable-text.ts';
import { withoutPrototype, z } from '../../base/schema.ts';
import { boxName } from './box-names.ts';
import { boxStatuses } from './box-states.ts';

const MAX_SECONDS = 366 * 86_400;
/** 16 TiB: the longest file of ext4, in which the files of a box are. */
const MAX_BYTES = 2 ** 44;
const MAX_MILLICORES = 1_024_000;

/** `null` is what clients send for what is not set. */
const optional = <T extends z.ZodType>(schema: T) => schema.nullable().optional();

const minutes = optional(
  z
    .int()
    .min(0)
    .max(MAX_SECONDS)
    .refine((seconds) => seconds % 60 === 0, 'Input must be a multiple of 60; 0 turns it off')
    .meta({ multipleOf: 60 }),
);
// Its own limits before those of `int`: of one that is too large only the lower one helps.
const bytes = optional(z.number().min(1, { abort: true }).max(MAX_BYTES, { abort: true }).int());

const proxyConfig = optional(withoutPrototype(z.record(z.string(), z.unknown())));
const profileId = optional(z.guid()).describe(
  'Null: none. A new sandbox without it has the default of the workspace',
);

const LABELS =
  'At most 64; names have at most 128 characters, values 256, none of them a control character; no name may be __proto__';
const CONTROLS = 'Input must have no control characters';
const LABEL = 'The name of a label must have at most 128 characters, none of them a control character';
const labels = optional(
  withoutPrototype(
    z
      .record(z.string(), z.string().max(256, { abort: true }).regex(LINE, CONTROLS))
      .refine((all) => Object.keys(all).length <= 64, 'Input must have at most 64 entries')
      .refine((all) => Object.keys(all).every((key) => key.length <= 128 && LINE.test(key)), LABEL)
      .meta({ maxProperties: 64, propertyNames: { type: 'string', maxLength: 128, pattern: LINE.source } }),
  ).describe(LABELS),
);

const VARIABLES =
  'At most 200; names are those of variables, of at most 128 characters, and not __proto__; values have at most 32768 characters, none of them NUL';
const VARIABLE = /^[A-Za-z_][A-Za-z0-9_]{0,127}$/;
const envVars = optional(
  withoutPrototype(
    z
      .record(z.string(), z.string().max(32_768))
      .superRefine((vars, context) => {
        const names = Object.keys(vars);
        if (names.length > 200)
          context.addIssue({ code: 'custom', message: 'Input must have at most 200 entries' });
        for (const name of names)
          if (!VARIABLE.test(name) || vars[name]?.includes('\0'))
            context.addIssue({ code: 'custom', path: [name], message: ENV_VAR });
      })
      .meta({ maxProperties: 200, propertyNames: { type: 'string', pattern: VARIABLE.source } }),
  ).describe(VARIABLES),
);
const ENV_VAR = 'A variable must have a name of letters, digits and underscores, and a value without NUL';

const DEFAULT_SIZE = 'Null: the default of the installation';
const sizes = {
  vcpus: optional(
    z
      .number()
      .min(0.001)
      .max(MAX_MILLICORES / 1000),
  ),
  cpu_millicores: optional(z.int().min(1).max(MAX_MILLICORES)),
  mem_bytes: bytes,
  fs_capacity_bytes: bytes,
};

const describedSizes = {
  vcpus: sizes.vcpus.describe(DEFAULT_SIZE),
  cpu_millicores: sizes.cpu_millicores.describe(DEFAULT_SIZE),
  mem_bytes: sizes.mem_bytes.describe(DEFAULT_SIZE),
  fs_capacity_bytes: sizes.fs_capacity_bytes.describe(DEFAULT_SIZE),
};

const lifetimes = { idle_ttl_seconds: minutes, delete_after_stop_seconds: minutes };

const MOUNTS = 'Mounts are not supported yet: leave this out';
const RESTORE = 'Memory is not restored: leave this out';

export const newBox = z
  .object({
    name: optional(boxName),
    proxy_config: proxyConfig,
    proxy_profile_id: profileId,
    ...lifetimes,
    ...describedSizes,
    env_vars: envVars,
    labels,
    snapshot_id: optional(z.string().max(200)).describe(
      'Null: the base. Of the three, the first that is given counts',
    ),
    snapshot_name: optional(z.string().max(200)),
    snapshot: optional(z.string().max(200)).describe('A name or an id'),
    mount_config: z.null({ error: MOUNTS }).optional(),
    restore_memory: z.literal(false, { error: RESTORE }).nullable().optional(),
    wait_for_ready: optional(z.boolean()),
    timeout: optional(z.number().min(0).max(3600)).describe('Seconds, with wait_for_ready'),
  })
  .prefault({});
export type NewBox = z.output<typeof newBox>;

export const boxChange = z
  .object({
    name: optional(boxName),
    proxy_config: proxyConfig,
    proxy_profile_id: profileId,
    ...lifetimes,
    ...sizes,
    labels,
  })
  .prefault({});
export type BoxChange = z.output<typeof boxChange>;

export const shownBox = z
  .strictObject({
    id: z.uuid(),
    name: z.string(),
    status: z.enum(boxStatuses),
    status_message: z.string().nullable().describe('Why it failed, or what its machine does not hold'),
    runtime: z
      .enum(['attached', 'bubblewrap'])
      .nullable()
      .describe('attached: somebody else runs it, and nothing isolates it. Null until its first start'),
    dataplane_url: z.string().nullable(),
    snapshot_id: z.string().nullable().describe('Null: the base'),
    size_class: z.null(),
    vcpus: z.number().nullable(),
    cpu_millicores: z.int().nullable(),
    mem_bytes: z.int().nullable(),
    fs_capacity_bytes: z.int().nullable(),
    idle_ttl_seconds: z.int(),
    delete_after_stop_seconds: z.int(),
    labels: z.record(z.string(), z.string()),
    proxy_config: z.record(z.string(), z.unknown()).nullable(),
    proxy_profile_id: z.string().nullable(),
    proxy_config_version: z.int().describe('Rises with each change of the document or of its secrets'),
    proxy_config_applied_version: z
      .int()
      .describe('The version that the proxy has acknowledged; 0: none yet'),
    proxy_url: z.string().nullable().describe('Of a box that somebody else runs: the proxy that it uses'),
    ca_pem: z.string().nullable().describe('The authority that the box must trust'),
    mount_config: z.null(),
    created_at: z.iso.datetime(),
    created_by: z.string().nullable(),
    updated_at: z.iso.datetime(),
    updated_by: z.string().nullable(),
    stopped_at: z.iso.datetime().nullable(),
  })
  .meta({ id: 'Sandbox' });
export type ShownBox = z.output<typeof shownBox>;

export const boxQuery = z.object({
  limit: z.int().min(1).max(1_000).optional(),
  page_size: z.int().min(1).max(1_000).optional().describe('As limit, for newer clients'),
  offset: z.int().min(0).max(100_000).default(0),
  cursor: z.string().max(512).optional().describe('The next_cursor of the previous page'),
  name_contains: z.string().max(63).optional(),
  status: z.enum(boxStatuses).optional(),
  sort_by: z.enum(['created_at', 'updated_at', 'name', 'status']).default('created_at'),
  sort_direction: z.enum(['asc', 'desc']).default('desc'),
});
export type BoxQuery = z.output<typeof boxQuery>;

/** Both shapes of the list: clients read the first two members or the last two. */
export const boxList = z.strictObject({
  sandboxes: z.array(shownBox),
  offset: z.int(),
  items: z.array(shownBox),
  next_cursor: z.string().nullable(),
});
