// What a claimed run exports and where: the credentials that it holds, and the rules of the operator as they are now.
import type { AddressRules } from '../../../base/address-guard.ts';
import type { Reader } from '../../store/database.ts';
import type { Vault } from '../../vault/vault.ts';
import { openCredentials } from '../destinations/credentials.ts';
import {
  type EndpointRules,
  findEndpointProblem,
  mayUseEnvironment,
  NO_LONGER_ALLOWED,
} from '../destinations/endpoint.ts';
import { ExportFailure } from '../files/export-failure.ts';
import type { RunExportTask } from '../files/export-task.ts';
import type { ClaimedRun } from '../scheduling/run-claims.ts';

export type TaskParts = {
  readonly vault: Vault;
  readonly db: Reader;
  readonly endpoints: EndpointRules;
  readonly addresses: AddressRules;
};

/** Throws ExportFailure: the destination, or what it needs, is not allowed or not there any more. */
export async function createTask(claimed: ClaimedRun, parts: TaskParts): Promise<RunExportTask> {
  const { workspaceId, exportId, runId, projectId, window, filter, fields, formatVersion } = claimed;
  return {
    ...{ workspaceId, exportId, runId, projectId, window, formatVersion },
    ...(filter === null ? {} : { filter }),
    ...(fields === null ? {} : { fields }),
    compression: claimed.compression === 'zstandard' ? 'zstd' : claimed.compression,
    destination: await openTarget(claimed, parts),
  };
}

type Target = Pick<ClaimedRun, 'workspaceId' | 'destinationId' | 'destinationConfig' | 'credentialsVersion'>;

/** Throws ExportFailure. */
export async function openTarget(target: Target, parts: TaskParts): Promise<RunExportTask['destination']> {
  const credentials = await findCredentials(target, parts);
  return { config: target.destinationConfig, credentials, addresses: parts.addresses };
}

async function findCredentials(claimed: Target, { vault, db, endpoints }: TaskParts) {
  const { workspaceId, destinationId, credentialsVersion: version } = claimed;
  const endpoint = claimed.destinationConfig.endpoint_url ?? undefined;
  // The operator may have changed them since the destination was created.
  if (findEndpointProblem(endpoint, endpoints) !== undefined)
    throw new ExportFailure('destination', NO_LONGER_ALLOWED);
  if (version === 0) {
    if (mayUseEnvironment(endpoint, endpoints)) return undefined;
    throw new ExportFailure(
      'credentials',
      'The operator does not allow this endpoint to get the credentials of this installation any more (exports.environment_credentials): replace those of the destination',
    );
  }
  const found = await openCredentials({ vault, db }, { workspaceId, destinationId, version });
  if (found === undefined)
    throw new ExportFailure('credentials', 'The credentials that this run began with are gone');
  return found;
}
