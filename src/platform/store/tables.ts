// The row types of the tables below the modules. A module declares those of its own tables beside their
// statements, by merging with `Tables`: `declare module '../store/tables.ts' { interface Tables { … } }`.
import type { Entity, Fixed, Generated, Json } from './sql.ts';

export interface Tables {
  readonly organizations: Entity & {
    display_name: string;
    is_personal: Generated<boolean>;
    plan: string;
    /** Feature flags by name, such as `can_use_audit_logs`. */
    config: Json<Readonly<Record<string, unknown>>>;
    updated_at: Generated<Date>;
  };
  readonly workspaces: Entity & {
    readonly organization_id: string;
    display_name: string;
    tenant_handle: string | null;
    updated_at: Generated<Date>;
  };
  readonly users: Entity & {
    /** Lower case; unique. */
    readonly email: string;
  };
  readonly organization_members: Entity & {
    readonly organization_id: string;
    readonly user_id: string;
    /** Per organization, so that no organization learns the name that another one uses. */
    full_name: string | null;
    role: string;
  };
  readonly workspace_members: Entity & {
    readonly organization_id: string;
    readonly workspace_id: string;
    readonly user_id: string;
    role: string;
  };
  /** A `service` key acts for a workspace, or with `workspace_id` null for the organization; a `personal` one for a user. */
  readonly api_keys: Entity & {
    readonly kind: 'service' | 'personal';
    readonly organization_id: string;
    readonly workspace_id: string | null;
    readonly user_id: string | null;
    /** Of a service key. A personal key has the roles of its user. */
    readonly role: string | null;
    /** The first and last characters, which may be shown. */
    readonly short_key: string;
    readonly hash: Buffer;
    readonly description: string;
    readonly expires_at: Date | null;
    /** The key and the user that created it; null for the operator, and for keys of earlier versions. */
    readonly created_by_key_id: Fixed<string | null>;
    readonly created_by_user_id: Fixed<string | null>;
    /** The workspace of requests that name none. */
    readonly home_workspace_id: Fixed<string | null>;
    last_used_at: Date | null;
  };
  /** A session of pages. It ends with its key. */
  readonly sessions: Entity & {
    readonly api_key_id: string;
    readonly hash: Buffer;
    readonly expires_at: Date;
  };
  /** One link of an organization's chain. Only `audit_append` adds rows; they are never changed. */
  readonly audit_events: {
    readonly organization_id: string;
    readonly seq: string;
    readonly id: string;
    readonly time: Date;
    readonly operation: string;
    readonly workspace_id: string | null;
    /** The native record: JSON text, hashed byte for byte. */
    readonly record: string;
    readonly previous_hash: Buffer;
    readonly hash: Buffer;
  };
  /** The head of an organization's chain, and its floor: the last event that expiry has removed. */
  readonly audit_heads: {
    readonly organization_id: string;
    readonly seq: string;
    readonly hash: Buffer;
    readonly time: Date;
    readonly floor_seq: string;
    readonly floor_hash: Buffer;
  };
  /** The end of the latest window of an organization's log that was read: later events get later times. */
  readonly audit_settled: { readonly organization_id: string; readonly time: Date };
  /** The last event that a checkpoint outside the database covers, by the key that signed it. */
  readonly audit_checkpoints: {
    readonly organization_id: string;
    /** The fingerprint of the key. */
    readonly signer: string;
    readonly seq: string;
  };
  /** A master key of the vault, which is in a file outside the database. */
  readonly vault_master_keys: {
    readonly id: string;
    readonly created_at: Fixed<Date>;
    /** Set once no data key is wrapped with it any more, and none will be. */
    retired_at: Date | null;
  };
  /** The data key of a workspace, wrapped by the master key of that id. */
  readonly vault_keys: {
    readonly workspace_id: string;
    readonly organization_id: string;
    master_key_id: string;
    wrapped: Buffer;
    readonly created_at: Fixed<Date>;
  };
}

export type AuditEventRow = Tables['audit_events'];
