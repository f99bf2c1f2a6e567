// What the gateway of the sandboxes leads to, by the first part of the path or by the host: each kind is a place with rules of its own.
import type { Refusal } from '../../../gateway/refusal.ts';
import type { GatewayRequest, Grant, Target } from '../../../gateway/target.ts';

export type Found = {
  readonly target: Target;
  /** Called next, once. What it throws becomes a refusal. */
  authorize(): Promise<Grant | Refusal>;
};

export type Place = {
  /** For metrics and records. */
  readonly name: string;
  /** By the request alone: who calls is not known yet. Undefined: it is for another place, or for none. */
  find(request: GatewayRequest): Found | Refusal | undefined;
};
