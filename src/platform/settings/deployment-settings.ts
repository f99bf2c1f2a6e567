// The settings of the control plane: where sources are, the registry of images, and what one workspace may have.
import { resolve } from 'node:path';
import { z } from '../../base/schema.ts';
import { asText, type Variable } from '../../base/variable-overlay.ts';

const GIB = 1024 ** 3;
const BUCKET = /^s3:\/\/[a-z0-9][a-z0-9.-]+(?:\/.*)?$/s;
const REGISTRY = /^[a-z0-9](?:[a-z0-9.-]*[a-z0-9])?(?::\d{1,5})?(?:\/[a-z0-9._-]+)*$/;
const quota = z.int().min(0).max(Number.MAX_SAFE_INTEGER);

export const deploymentSettings = z
  .strictObject({
    sources: z.string().regex(BUCKET, 'must be s3://bucket/prefix').optional(),
    registry: z
      .strictObject({
        url: z.string().regex(REGISTRY, 'must be registry.example.com/path, without https://'),
        token_file: z.string().min(1),
      })
      .optional(),
    max_deployments: quota.default(100),
    max_pending_revisions: quota.default(50),
    max_open_uploads: quota.default(20),
    max_source_bytes: quota.default(10 * GIB),
  })
  .prefault({});

const PREFIX = 'SALLYPORT_PLATFORM_DEPLOYMENTS_';

export const deploymentVariables: readonly (readonly [name: string, key: string, read: Variable['read']])[] =
  [
    [`${PREFIX}SOURCES`, 'deployments.sources', asText],
    [`${PREFIX}REGISTRY_URL`, 'deployments.registry.url', asText],
    [`${PREFIX}REGISTRY_TOKEN_FILE`, 'deployments.registry.token_file', asText],
    [`${PREFIX}MAX_DEPLOYMENTS`, 'deployments.max_deployments', Number],
    [`${PREFIX}MAX_PENDING_REVISIONS`, 'deployments.max_pending_revisions', Number],
    [`${PREFIX}MAX_OPEN_UPLOADS`, 'deployments.max_open_uploads', Number],
    [`${PREFIX}MAX_SOURCE_BYTES`, 'deployments.max_source_bytes', Number],
  ];

export function toDeploymentConfig({ sources, registry, ...most }: z.output<typeof deploymentSettings>) {
  return {
    /** `s3://bucket/prefix` that every machine can read; undefined: the data directory. */
    sources,
    /** That images are pushed to; undefined: there is none. */
    registry: registry && { url: registry.url, tokenFile: resolve(registry.token_file) },
    /** Of each workspace. */
    quotas: {
      deployments: most.max_deployments,
      pendingRevisions: most.max_pending_revisions,
      openUploads: most.max_open_uploads,
      sourceBytes: most.max_source_bytes,
    },
  };
}
