// What kind of activity an operation is, in the words of OCSF: told by its verb, and by a short table where the verb does
// not tell. Pure.

export type ActivityId = 1 | 2 | 3 | 4 | 99;
export type Activity = { readonly id: ActivityId; readonly name: string };

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
    'update upsert set rename attach cancel claim confirm populate resolve share unshare sync',
  ),
  ...verbs(remove, 'delete remove'),
  ...verbs(other, 'evaluate execute invalidate login mcp send test trigger validate'),
]);

/** A word about the number, not about what is done. */
const AMOUNT = /^(?:batch|bulk)_/;

const exceptions: ReadonlyMap<string, Activity> = new Map([
  // What they make is a text for the caller; nothing is there afterwards that was not there before.
  ['generate_runs_query', read],
  ['generate_shared_dataset_query', read],
]);

/** An operation of a later release, whose verb is not known here, is something else. */
export function activityOf(operation: string): Activity {
  const [verb = ''] = operation.replace(AMOUNT, '').split('_');
  return exceptions.get(operation) ?? byVerb.get(verb) ?? other;
}

function verbs(activity: Activity, words: string): readonly (readonly [string, Activity])[] {
  return words.split(' ').map((verb) => [verb, activity]);
}
