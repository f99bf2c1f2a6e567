// The OCSF activity of an operation: derived from the verb in its name, with a short table of exceptions. Pure.

export type Activity = { readonly id: 1 | 2 | 3 | 4 | 99; readonly name: string };

const create: Activity = { id: 1, name: 'Create' };
const read: Activity = { id: 2, name: 'Read' };
const update: Activity = { id: 3, name: 'Update' };
const remove: Activity = { id: 4, name: 'Delete' };
const other: Activity = { id: 99, name: 'Other' };

export const activities: readonly Activity[] = [create, read, update, remove, other];

const byVerb: ReadonlyMap<string, Activity> = new Map([
  ...verbs(create, 'create add clone generate invite mint register submit'),
  ...verbs(read, 'read get list query stream download export'),
  ...verbs(
    update,
    'update upsert set rename attach cancel claim confirm populate resolve share unshare start stop sync',
  ),
  ...verbs(remove, 'delete remove'),
  ...verbs(other, 'evaluate execute invalidate login mcp send test trigger validate'),
]);

/** A prefix for the number of resources, in front of the verb. */
const AMOUNT = /^(?:batch|bulk)_/;

const exceptions: ReadonlyMap<string, Activity> = new Map([
  // They generate a text for the caller and store nothing.
  ['generate_runs_query', read],
  ['generate_shared_dataset_query', read],
]);

/** `Other` for an operation of a later release whose verb is not known here. */
export function activityOf(operation: string): Activity {
  const [verb = ''] = operation.replace(AMOUNT, '').split('_');
  return exceptions.get(operation) ?? byVerb.get(verb) ?? other;
}

function verbs(activity: Activity, words: string): readonly (readonly [string, Activity])[] {
  return words.split(' ').map((verb) => [verb, activity]);
}
