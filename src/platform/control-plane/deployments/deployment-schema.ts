// Deployments and revisions as callers write and read them. Fields that are not known here are ignored: clients may be newer.
import { hasInvisible, VISIBLE } from '../../../base/json/printable-text.ts';
import { withoutPrototype, z } from '../../../base/schema.ts';
import { findCommandProblem } from '../../deployments/command-text.ts';
import { revisionStatuses } from '../../deployments/revision-states.ts';
import { resourceSpec } from './resource-spec.ts';
import { newSecrets, secretReferences } from './secret-names.ts';

/** `null` is what clients send for what is not set. */
const optional = <T extends z.ZodType>(schema: T) => schema.nullable().optional();

export const sources = [
  'github',
  'external_docker',
  'internal_docker',
  'internal_source',
  'internal_template',
] as const;
const source = z.enum(sources);

const UNPRINTABLE = 'Input must have no control characters and no bidirectional marks';
const name = z
  .string()
  .min(1, { abort: true })
  .max(128, { abort: true })
  .regex(VISIBLE, { error: UNPRINTABLE, abort: true })
  .refine((given) => !hasInvisible(given), UNPRINTABLE)
  .refine((given) => given.trim() === given, 'Input must not begin or end with a space');
const text = z.string().max(1_024);

/** Without quotes, redirections, substitutions and second commands: `&&` alone joins two. */
const COMMAND = /^(?:[^"`\\\n\r\x00\t|;$<>&]|&&)*$/;
const BAD_COMMAND =
  'A command must have none of " ` \\ | ; $ > < & (but &&), and neither tabs nor line breaks';
const command = optional(
  z
    .string()
    .max(2_000, { abort: true })
    .regex(COMMAND, { error: BAD_COMMAND, abort: true })
    .superRefine((given, context) => {
      const message = findCommandProblem(given);
      if (message !== undefined) context.addIssue({ code: 'custom', message });
    }),
);

/** Below the root of the archive: no segment begins with two dots. */
const SEGMENT = String.raw`(?:\.|\.?[^./\\\u0000-\u001f][^/\\\u0000-\u001f]*)`;
const CONFIG_PATH = new RegExp(`^(?:${SEGMENT}/)*${SEGMENT}$`);
const BAD_PATH = 'Input must be the path of a file within the archive, such as langgraph.json';
const configPath = optional(z.string().max(512, { abort: true }).regex(CONFIG_PATH, BAD_PATH));

const IMAGE = /^[A-Za-z0-9][A-Za-z0-9._:/@-]*$/;
const imageUri = optional(
  z.string().max(512, { abort: true }).regex(IMAGE, 'Input must be the name of an image'),
);

const customUrl = optional(
  z
    .string()
    .max(2_048, { abort: true })
    .refine((url) => /^https?:$/.test(URL.parse(url)?.protocol ?? ''), 'Input must be an http or https URL'),
);

export const sourceConfig = z.object({
  integration_id: optional(text),
  repo_url: optional(text),
  deployment_type: optional(z.enum(['dev_free', 'dev', 'dev_zero', 'prod'])),
  build_on_push: optional(z.boolean()),
  custom_url: customUrl,
  resource_spec: optional(resourceSpec),
  listener_id: optional(z.string().max(64)),
  listener_config: optional(z.object({ k8s_namespace: optional(z.string().max(63)) })),
  install_command: command,
  build_command: command,
});

export const sourceRevisionConfig = z.object({
  repo_ref: optional(text),
  langgraph_config_path: configPath,
  image_uri: imageUri,
  source_tarball_path: optional(text),
});

const profileId = optional(z.guid()).describe(
  'The proxy profile whose rules its requests get. Null or absent: the default profile of the workspace',
);

export const newDeployment = z.object({
  name,
  source,
  source_config: sourceConfig,
  source_revision_config: sourceRevisionConfig,
  secrets: optional(newSecrets),
  secret_references: optional(secretReferences),
  display_name: optional(name),
  proxy_profile_id: profileId,
  tag_value_ids: z.unknown().optional(),
});
export type NewDeployment = z.output<typeof newDeployment>;

const unchanged = optional(text).describe('Cannot be changed');

/** Fields that are left out are not changed. `name` and `source` may be repeated, and not changed. */
export const deploymentChange = z.object({
  name: unchanged,
  source: unchanged,
  revision_source: unchanged,
  source_config: optional(sourceConfig),
  source_revision_config: optional(sourceRevisionConfig),
  secrets: optional(newSecrets),
  secret_references: optional(secretReferences),
  display_name: optional(name),
  proxy_profile_id: profileId,
  tag_value_ids: z.unknown().optional(),
});
export type DeploymentChange = z.output<typeof deploymentChange>;

export const newRevision = deploymentChange
  .pick({ source_config: true, secrets: true, secret_references: true })
  .extend({ source_revision_config: sourceRevisionConfig });

const shownText = z.string().nullable();
const shownSecrets = z
  .array(z.strictObject({ name: z.string(), value: z.literal('') }))
  .describe('Names; values are never returned');

export const shownRevisionConfig = z.strictObject({
  repo_ref: shownText,
  repo_commit_sha: shownText,
  langgraph_config_path: shownText,
  image_uri: shownText,
  source_tarball_path: shownText,
});

const shownSourceConfig = z.strictObject({
  integration_id: shownText,
  repo_url: shownText,
  deployment_type: shownText,
  build_on_push: z.boolean().nullable(),
  custom_url: shownText.describe('Where clients reach it; null until a runner has it'),
  resource_spec: withoutPrototype(z.record(z.string(), z.unknown())).nullable(),
  listener_id: shownText,
  listener_config: z.strictObject({ k8s_namespace: shownText }).nullable(),
  install_command: shownText,
  build_command: shownText,
});

export const shownStatuses = ['AWAITING_DATABASE', 'READY', 'UNUSED', 'AWAITING_DELETE', 'UNKNOWN'] as const;

export const shownDeployment = z
  .strictObject({
    id: z.uuid(),
    tenant_id: z.uuid(),
    name: z.string(),
    display_name: shownText,
    source: z.enum(sources),
    source_config: shownSourceConfig,
    source_revision_config: shownRevisionConfig,
    secrets: shownSecrets,
    secret_references: z.array(
      z.strictObject({ name: z.string(), secret_name: z.string(), secret_key: z.string() }),
    ),
    status: z.enum(shownStatuses),
    status_reason: shownText,
    image_version: shownText,
    proxy_profile_id: z.uuid().nullable(),
    latest_revision_id: z.uuid().nullable(),
    active_revision_id: z.uuid().nullable(),
    created_at: z.iso.datetime(),
    updated_at: z.iso.datetime(),
  })
  .meta({ id: 'Deployment' });

export const shownRevision = z
  .strictObject({
    id: z.uuid(),
    deployment_id: z.uuid(),
    status: z.enum(revisionStatuses),
    status_reason: shownText,
    source: z.enum(sources),
    source_revision_config: shownRevisionConfig,
    created_at: z.iso.datetime(),
    updated_at: z.iso.datetime(),
  })
  .meta({ id: 'DeploymentRevision' });
