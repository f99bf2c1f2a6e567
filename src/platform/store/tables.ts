// The row types of every table that the migrations create.
import type { Fixed, Generated, Json } from './sql.ts';

export type Tables = {
  readonly organizations: OrganizationRow;
  readonly workspaces: WorkspaceRow;
  readonly users: UserRow;
  readonly organization_members: OrganizationMemberRow;
  readonly workspace_members: WorkspaceMemberRow;
  readonly api_keys: ApiKeyRow;
  readonly audit_events: AuditEventRow;
  readonly audit_heads: AuditHeadRow;
  readonly audit_checkpoints: AuditCheckpointRow;
  readonly listeners: ListenerRow;
  readonly sandbox_tokens: SandboxTokenRow;
  readonly sandbox_records: SandboxRecordRow;
};

export type OrganizationRow = {
  readonly id: Fixed<string>;
  display_name: string;
  readonly is_personal: Fixed<boolean>;
  plan: string;
  /** Feature flags by name, such as `can_use_audit_logs`. */
  config: Json<Readonly<Record<string, unknown>>>;
  readonly created_at: Fixed<Date>;
  updated_at: Generated<Date>;
};

export type WorkspaceRow = {
  readonly id: Fixed<string>;
  readonly organization_id: string;
  display_name: string;
  tenant_handle: string | null;
  readonly created_at: Fixed<Date>;
  updated_at: Generated<Date>;
};

export type UserRow = {
  readonly id: Fixed<string>;
  /** Lower case; unique. */
  readonly email: string;
  readonly created_at: Fixed<Date>;
};

export type OrganizationMemberRow = {
  readonly id: Fixed<string>;
  readonly organization_id: string;
  readonly user_id: string;
  /** Per organization, so that no organization learns the name that another one uses. */
  full_name: string | null;
  role: string;
  readonly created_at: Fixed<Date>;
};

export type WorkspaceMemberRow = {
  readonly id: Fixed<string>;
  readonly organization_id: string;
  readonly workspace_id: string;
  readonly user_id: string;
  role: string;
  readonly created_at: Fixed<Date>;
};

/** A `service` key acts for a workspace, or with `workspace_id` null for the organization; a `personal` one for a user. */
export type ApiKeyRow = {
  readonly id: Fixed<string>;
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
  readonly created_at: Fixed<Date>;
  readonly expires_at: Date | null;
  last_used_at: Date | null;
};

/** One link of an organization's chain. Only `audit_append` adds rows; they are never changed. */
export type AuditEventRow = {
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
export type AuditHeadRow = {
  readonly organization_id: string;
  readonly seq: string;
  readonly hash: Buffer;
  readonly time: Date;
  readonly floor_seq: string;
  readonly floor_hash: Buffer;
};

/** The last event that a checkpoint outside the database covers, by the key that signed it. */
export type AuditCheckpointRow = {
  readonly organization_id: string;
  /** The fingerprint of the key. */
  readonly signer: string;
  readonly seq: string;
};

export type ListenerRow = {
  readonly id: Fixed<string>;
  readonly workspace_id: string;
  readonly compute_type: 'k8s';
  readonly compute_id: string;
  compute_config: Json<{ readonly k8s_namespaces?: readonly string[] | null | undefined }>;
  version: string | null;
  readonly created_at: Fixed<Date>;
  updated_at: Generated<Date>;
};

/** Authorizes a sidecar to send the records of one sandbox. */
export type SandboxTokenRow = {
  readonly id: Fixed<string>;
  readonly workspace_id: string;
  readonly sandbox: string;
  readonly short_token: string;
  readonly hash: Buffer;
  readonly created_at: Fixed<Date>;
  readonly expires_at: Date | null;
};

/** `source` and `number` identify a record, so that a batch that is sent again adds nothing. */
export type SandboxRecordRow = {
  readonly workspace_id: string;
  readonly sandbox: string;
  /** The sidecar process that wrote the record. */
  readonly source: string;
  readonly number: string;
  /** From the clock of the sidecar. */
  readonly time: Date;
  /** From the clock of the database. Retention counts from here. */
  readonly received_at: Fixed<Date>;
  readonly record: Json<Readonly<Record<string, unknown>>>;
};
