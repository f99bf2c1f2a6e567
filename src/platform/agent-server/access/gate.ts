// What routes know of who is let in to an agent server, and of what they may see and do there: their access, and what they ask
// in `prepare`. `deployment-gate.ts` makes it.
import type { AgentUser } from '../../../agent-worker/protocol/calls.ts';
import type { JsonObject } from '../../../agent-worker/protocol/messages.ts';
import type { Access, Grant } from '../../api/access.ts';
import type { Filter } from './filters.ts';

export type AgentGrant = Grant & {
  /** What the authentication returned, or the owner of the key; undefined where everybody is let in. */
  readonly user: AgentUser | undefined;
  readonly isStudio: boolean;
  /** Fields of the request that `configurable` of its runs gets, by their names in lower case. */
  readonly headers: Readonly<Record<string, string>>;
};

/** A resource and what is done with it, as handlers know them: `threads:create_run`. */
export type AuthEvent = `${'assistants' | 'threads'}:${string}`;

export type Authorization = {
  /** What is visible: for `whereVisible` in every statement. */
  readonly filter: Filter | undefined;
  /** As the handler left it. Of it, the metadata is stored in place of what was sent. */
  readonly value: JsonObject;
};

export type Gate = {
  readonly access: Access<AgentGrant>;
  /** Of the routes of the application of the deployment. */
  readonly appAccess: Access<AgentGrant>;
  /**
   * In `prepare`. Throws a DomainError `forbidden`, or what the handler threw. Without a handler it returns at once. The handler
   * sees members that are undefined as null: name `metadata` where it may set it.
   */
  authorize(
    call: Pick<AgentGrant, 'user'> & { readonly signal: AbortSignal },
    event: AuthEvent,
    value: JsonObject,
  ): Promise<Authorization>;
};
