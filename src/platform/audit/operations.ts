// What can stand in `api.operation`: every tracked operation, by its category. What a name means for the event is said
// beside the event.
import { administrationOperations } from './administration-operations.ts';
import { resourceOperations } from './resource-operations.ts';

/** What the public names have none for. */
const ownOperations = {
  listeners: ['create_listener', 'update_listener', 'delete_listener'],
  sandboxTokens: ['create_sandbox_token', 'delete_sandbox_token'],
} as const;

type ByCategory = typeof administrationOperations & typeof resourceOperations & typeof ownOperations;

export const operationsByCategory: ByCategory = {
  ...administrationOperations,
  ...resourceOperations,
  ...ownOperations,
};

export type Operation = ByCategory[keyof ByCategory][number];

export const operations: readonly Operation[] = Object.values(operationsByCategory).flat();
