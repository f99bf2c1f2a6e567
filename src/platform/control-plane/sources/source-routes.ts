// `…/upload-url`, the address that it gives, and `…/push-token`: how a source, or an image, comes here.
import { DomainError } from '../../../base/domain-error.ts';
import { z } from '../../../base/schema.ts';
import { inWorkspace } from '../../api/access.ts';
import { byteUpload } from '../../api/body/upload.ts';
import { defineRoute, type Route } from '../../api/route.ts';
import { lockDeployment } from '../deployments/deployments.ts';
import {
  type DeploymentQuotas,
  lockQuotas,
  requireSourceQuota,
  requireUploadQuota,
} from '../deployments/deployment-quotas.ts';
import type { SourceStore } from '../../deployments/source-store.ts';
import { readPushToken, type Registry } from './registry.ts';
import { withOrigin } from './request-origin.ts';
import { withUploadSignature } from './upload-access.ts';
import { createUpload, MAX_SOURCE_BYTES, noteStored, prefixOf, wasUsed } from './uploads.ts';

export type SourceParts = {
  readonly quotas: DeploymentQuotas;
  readonly registry: Registry | undefined;
  /** Opened with the first upload. */
  sources(): Promise<SourceStore>;
};

const params = z.strictObject({ deployment_id: z.guid() });
/** Clients send none, or an empty object. */
const noBody = z.object({}).optional();

export function createSourceRoutes(parts: SourceParts): readonly Route[] {
  return [uploadUrl(parts), upload(parts), pushToken(parts)];
}

const uploadUrl = ({ quotas }: SourceParts): Route =>
  defineRoute({
    tag: 'Deployments',
    method: 'POST',
    path: '/v2/deployments/{deployment_id}/upload-url',
    summary: 'Get an address that takes the source of the next revision, once, within 15 minutes',
    params,
    body: noBody,
    access: withOrigin(inWorkspace('deployments:update')),
    tracking: { operation: 'update_deployment' },
    responses: { 200: z.strictObject({ upload_url: z.string(), object_path: z.string() }) },
    failures: [400, 404],
    async handle({ db, workspaceId, baseUrl, params: { deployment_id: deploymentId } }) {
      await lockQuotas(db, workspaceId);
      const { source, name } = await lockDeployment(db, workspaceId, deploymentId);
      if (source !== 'internal_source') throw new DomainError('unusable', NO_UPLOAD);
      const { id, signature, objectPath } = await createUpload(db, { workspaceId, deploymentId });
      await requireUploadQuota(db, workspaceId, quotas);
      const upload_url = `${baseUrl}/v1/deployment-uploads/${id}?signature=${signature}`;
      return {
        body: { upload_url, object_path: objectPath },
        resources: [deploymentId],
        resourceNames: [name],
      };
    },
  });

const NO_UPLOAD = "Uploads are only available for 'internal_source' source deployments";

const ARCHIVE = byteUpload(['application/gzip', 'application/x-gzip', 'application/octet-stream'], {
  ...{ codings: [], maxSentBytes: MAX_SOURCE_BYTES, maxBytes: MAX_SOURCE_BYTES },
});

const upload = ({ quotas, sources }: SourceParts): Route => {
  // In this process: what a second request sends meanwhile would be on disk in vain.
  const running = new Set<string>();
  return defineRoute({
    tag: 'Deployments',
    method: 'PUT',
    path: '/v1/deployment-uploads/{upload_id}',
    summary:
      'Send a source, as a tar compressed by gzip of at most 200 MiB; the address is that of an upload-url',
    params: z.strictObject({ upload_id: z.guid() }),
    query: z.strictObject({ signature: z.string().max(128) }),
    access: withUploadSignature,
    tracking: { operation: 'update_deployment' },
    upload: ARCHIVE,
    responses: { 200: z.strictObject({ size_bytes: z.int(), sha256: z.string() }) },
    failures: [403, 409, 413],
    limits: { running: { total: 64, perCaller: 16 } },
    async prepare({ db, upload: content, target }) {
      if (running.has(target.id)) throw wasUsed();
      running.add(target.id);
      try {
        await requireSourceQuota(db, target.workspaceId, quotas, 1);
        const store = await sources();
        const written = await store.write(prefixOf(target), content);
        try {
          await requireSourceQuota(db, target.workspaceId, quotas, written.size);
        } catch (error) {
          await store.remove(written.path);
          throw error;
        }
        return { written, store };
      } finally {
        running.delete(target.id);
      }
    },
    async handle({ db, target }, { written, store: { machineId } }) {
      const { workspaceId } = target;
      await lockQuotas(db, workspaceId);
      await noteStored(db, target, written, machineId);
      await requireSourceQuota(db, workspaceId, quotas, 0);
      return {
        body: { size_bytes: written.size, sha256: written.sha256 },
        resources: [target.deploymentId],
        resourceNames: [target.deploymentName],
      };
    },
    // Where nobody knows whether the row was stored, the next sweep does it.
    discard: ({ written, store }) => store.remove(written.path),
  });
};

const pushToken = ({ registry }: SourceParts): Route =>
  defineRoute({
    tag: 'Deployments',
    method: 'POST',
    path: '/v2/deployments/{deployment_id}/push-token',
    summary: 'Get a token for the registry that images of this deployment are pushed to',
    params,
    body: noBody,
    access: inWorkspace('deployments:update'),
    tracking: { operation: 'update_deployment' },
    responses: { 200: z.strictObject({ token: z.string(), registry_url: z.string() }) },
    failures: [400, 404],
    prepare: async () => registry && (await readPushToken(registry).catch((error: unknown) => ({ error }))),
    async handle({ db, workspaceId, params: { deployment_id: deploymentId } }, read) {
      const { source, name } = await lockDeployment(db, workspaceId, deploymentId);
      if (source !== 'internal_docker' || read === undefined) throw new DomainError('unusable', NO_TOKEN);
      if ('error' in read) throw read.error;
      return { body: read, resources: [deploymentId], resourceNames: [name] };
    },
  });

const NO_TOKEN = "Push tokens are only available for 'internal_docker' source deployments";
