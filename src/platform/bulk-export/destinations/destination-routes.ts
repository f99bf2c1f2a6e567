// `/api/v1/bulk-exports/destinations`: where exports are written. A destination, or new credentials of one, is stored only once a file
// could be written with it.
import { DomainError } from '../../../base/domain-error.ts';
import { z } from '../../../base/schema.ts';
import { inWorkspace } from '../../api/access.ts';
import { defineRoute, type Route } from '../../api/route.ts';
import type { Wiring } from '../../module.ts';
import { toS3Credentials } from './credentials.ts';
import {
  createDestinationSchema,
  type DestinationConfig,
  destination,
  destinationChange,
} from './destination-schema.ts';
import { createDestination, findDestination, listDestinations, replaceCredentials } from './destinations.ts';
import { type EndpointRules, findEndpointProblem, NO_LONGER_ALLOWED } from './endpoint.ts';
import { findKeyProblem } from '../files/file-key.ts';
import { testWrite } from './test-write.ts';

const all = { path: '/api/v1/bulk-exports/destinations', tag: 'Bulk exports' } as const;
const one = {
  path: '/api/v1/bulk-exports/destinations/{destination_id}',
  tag: 'Bulk exports',
  params: z.strictObject({ destination_id: z.guid() }),
} as const;

const access = inWorkspace('WORKSPACES_MANAGE');
/** Of test writes, which may wait for an endpoint. In all more than one organization may have wait: it must not keep others from it. */
const limits = { running: { total: 256, perCaller: 4 } };

type Parts = Pick<Wiring, 'vault' | 'config'>;

export function createDestinationRoutes(parts: Parts): readonly Route[] {
  return [createRoute(parts), listRoute, readRoute, changeRoute(parts)];
}

const createRoute = ({ vault, config }: Parts): Route =>
  defineRoute({
    ...all,
    ...{ access, limits },
    method: 'POST',
    summary: 'Create a destination of bulk exports, after a test write',
    tracking: { operation: 'create_bulk_export_destination' },
    body: createDestinationSchema(config.exports.endpoints),
    responses: { 200: destination },
    failures: [400, 409],
    async prepare({ body, signal }) {
      const credentials = body.credentials ? toS3Credentials(body.credentials) : undefined;
      await testWrite(body.config, credentials, config.exports, signal);
      await vault.prepare();
    },
    async handle({ db, workspaceId, body }) {
      const created = await createDestination({ vault, trx: db, workspaceId }, body);
      return { body: created, resources: [created.id] };
    },
  });

const listRoute = defineRoute({
  ...all,
  access,
  method: 'GET',
  summary: 'List the destinations of the workspace, newest first',
  tracking: { operation: 'list_bulk_export_destinations' },
  responses: { 200: z.array(destination) },
  async handle({ db, workspaceId }) {
    return { body: await listDestinations(db, workspaceId) };
  },
});

const readRoute = defineRoute({
  ...one,
  access,
  method: 'GET',
  summary: 'Read a destination',
  tracking: { operation: 'read_bulk_export_destination' },
  responses: { 200: destination },
  failures: [404],
  async handle({ db, workspaceId, params: { destination_id: id } }) {
    return { body: await findDestination(db, workspaceId, id), resources: [id] };
  },
});

const changeRoute = ({ vault, config }: Parts): Route =>
  defineRoute({
    ...one,
    ...{ access, limits },
    method: 'PATCH',
    summary: 'Replace the credentials of a destination, after a test write with them',
    tracking: { operation: 'update_bulk_export_destination' },
    body: destinationChange,
    responses: { 200: destination },
    failures: [400, 404],
    async prepare({ db, workspaceId, params, body, signal }) {
      const { config: stored } = await findDestination(db, workspaceId, params.destination_id);
      requireUsable(stored, config.exports.endpoints);
      await testWrite(stored, toS3Credentials(body.credentials), config.exports, signal);
      await vault.prepare();
    },
    async handle({ db, workspaceId, params: { destination_id: id }, body }) {
      const changed = await replaceCredentials({ vault, trx: db, workspaceId }, id, body.credentials);
      return { body: changed, resources: [id] };
    },
  });

/** What is allowed may have changed since the destination was created, and no other request changes its configuration. */
function requireUsable({ endpoint_url: endpoint, prefix }: DestinationConfig, rules: EndpointRules): void {
  if (findEndpointProblem(endpoint ?? undefined, rules) !== undefined)
    throw new DomainError('unusable', NO_LONGER_ALLOWED);
  if (findKeyProblem(prefix) !== undefined) throw new DomainError('unusable', TOO_LONG);
}

const TOO_LONG =
  'Bucket is not valid: with the prefix of this destination, names of files are longer than S3 allows; create a destination with a shorter one';
