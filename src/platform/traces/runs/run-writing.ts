// Writes what a request has brought, in its transaction: runs into their projects, then feedback and attachments.
import type { Transaction } from '../../store/database.ts';
import type { DeploymentGrant } from '../access/run-access.ts';
import { saveAttachments } from '../artifacts/attachments.ts';
import { saveFeedback } from '../feedback/feedback.ts';
import { confirmProject, ofAnotherProject, placeParts, placePartsInto } from '../projects/project-placing.ts';
import type { PlacedPart, RunPart } from './run-part.ts';
import type { MergedRuns, TraceStore } from '../trace-store.ts';
import type { MultipartAdditions } from '../ingestion/multipart-additions.ts';

export type ReceivedRuns = {
  readonly parts: readonly RunPart[];
  readonly additions?: MultipartAdditions;
};

/** `seconds` of the copy and the merge. */
export type WrittenRuns = MergedRuns & { readonly seconds: number };

type Call = { readonly db: Transaction; readonly workspaceId: string };
type CallOfDeployment = Call & Pick<DeploymentGrant, 'ownProject'>;
export type WriteCall = Call | CallOfDeployment;

/** All of it or nothing. */
export async function writeRuns(
  store: TraceStore,
  call: WriteCall,
  received: ReceivedRuns,
): Promise<WrittenRuns> {
  if ('ownProject' in call) return writeOfDeployment(store, call, received);
  const { db, workspaceId } = call;
  const { parts } = received;
  const placed = parts.length === 0 ? [] : await placeParts(db, workspaceId, parts);
  const written = await merge(store, { db, workspaceId }, placed);
  await saveAdditions(store, { db, workspaceId }, received);
  return written;
}

async function merge(
  store: TraceStore,
  { db, workspaceId }: Call,
  placed: readonly PlacedPart[],
): Promise<WrittenRuns> {
  const startMs = performance.now();
  const merged = await store.mergeRuns(db, workspaceId, placed);
  return { ...merged, seconds: (performance.now() - startMs) / 1000 };
}

/** What it must not write is known for certain once the places of the runs are locked: the transaction is rolled back then. */
async function writeOfDeployment(
  store: TraceStore,
  { db, workspaceId, ownProject }: CallOfDeployment,
  received: ReceivedRuns,
): Promise<WrittenRuns> {
  const { parts, additions } = received;
  const { projectId, placed } = await placePartsInto(db, workspaceId, ownProject, parts);
  const feedback = additions?.feedback ?? [];
  if (feedback.some(({ session_id: id }) => id && id !== projectId)) throw ofAnotherProject();
  const written = await merge(store, { db, workspaceId }, placed);
  await saveAdditions(store, { db, workspaceId }, received);
  const named = [
    ...feedback.flatMap(({ run_id, trace_id }) => [run_id, trace_id]),
    ...(additions?.attachments ?? []).map(({ run_id }) => run_id),
  ].filter((id) => typeof id === 'string');
  await confirmProject(db, workspaceId, projectId, { merged: placed.map(({ id }) => id), named });
  return written;
}

async function saveAdditions(
  store: TraceStore,
  { db, workspaceId }: Call,
  { additions }: ReceivedRuns,
): Promise<void> {
  if (additions === undefined) return;
  await saveFeedback(db, workspaceId, additions.feedback, store);
  await saveAttachments(db, workspaceId, additions.attachments);
}
