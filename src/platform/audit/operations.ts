// Every tracked operation, by category: the possible values of `api.operation`.
import { administrationOperations } from './administration-operations.ts';
import { resourceOperations } from './resource-operations.ts';

/** Operations of this product that have no public name. */
const ownOperations = {
  listeners: ['create_listener', 'update_listener', 'delete_listener'],
  sandboxTokens: ['create_sandbox_token', 'delete_sandbox_token'],
} as const;

export const operationsByCategory = {
  ...administrationOperations,
  ...resourceOperations,
  ...ownOperations,
};

export type Operation = (typeof operationsByCategory)[keyof typeof operationsByCategory][number];

export const operations: readonly Operation[] = Object.values(operationsByCategory).flat();
