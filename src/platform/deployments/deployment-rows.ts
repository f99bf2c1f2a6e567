// The row types of deployments and of what belongs to them. Several folders have statements on these tables.
import type { Entity, Fixed, Generated, Json } from '../store/sql.ts';
import type { LogKind, LogLevel } from './log-lines.ts';
import type { RevisionStatus } from './revision-states.ts';

export type DeploymentStatus = 'AWAITING_DATABASE' | 'READY' | 'AWAITING_DELETE';
export type DeploymentSource = 'internal_source' | 'external_docker' | 'internal_docker';

/** Members that nobody here reads are kept as they were written. */
export type ResourceSpec = Readonly<Record<string, unknown>> & {
  readonly min_scale?: number | null;
  readonly max_scale?: number | null;
  readonly cpu?: number | null;
  readonly cpu_limit?: number | null;
  readonly memory_mb?: number | null;
  readonly memory_limit_mb?: number | null;
};

export type SourceConfig = {
  readonly integration_id?: string | null;
  readonly repo_url?: string | null;
  readonly build_on_push?: boolean | null;
  readonly deployment_type?: string | null;
  readonly custom_url?: string | null;
  readonly resource_spec?: ResourceSpec | null;
  readonly listener_id?: string | null;
  readonly listener_config?: { readonly k8s_namespace?: string | null } | null;
  readonly install_command?: string | null;
  readonly build_command?: string | null;
};

export type SourceRevisionConfig = {
  readonly repo_ref?: string | null;
  readonly langgraph_config_path?: string | null;
  readonly image_uri?: string | null;
  readonly source_tarball_path?: string | null;
};

export type SecretReference = {
  readonly name: string;
  readonly secret_name: string;
  readonly secret_key: string;
};

declare module '../store/tables.ts' {
  interface Tables {
    readonly runners: {
      readonly id: string;
      readonly machine_id: string;
      readonly host: string;
      readonly pid: number;
      gateway_url: string | null;
      isolation: string | null;
      readonly started_at: Fixed<Date>;
      seen_at: Generated<Date>;
    };
    readonly deployments: Entity & {
      readonly workspace_id: string;
      readonly name: string;
      display_name: string | null;
      readonly source: DeploymentSource;
      source_config: Json<SourceConfig>;
      source_revision_config: Json<SourceRevisionConfig>;
      secret_references: Json<readonly SecretReference[]>;
      status: Generated<DeploymentStatus>;
      status_reason: string | null;
      image_version: string | null;
      readonly listener_id: string | null;
      proxy_profile_id: string | null;
      /** Of the set of secrets that the next revision gets. */
      secrets_version: Generated<number>;
      latest_revision_id: string | null;
      active_revision_id: string | null;
      runner_id: string | null;
      updated_at: Generated<Date>;
    };
    readonly builds: Entity & {
      readonly workspace_id: string;
      readonly deployment_id: string;
      runner_id: string | null;
      readonly machine_id: string;
      attempts: Generated<number>;
      readonly source_path: string;
      readonly source_sha256: string | null;
      readonly config_path: string | null;
      /** Null until it is ready. */
      directory: string | null;
      size_bytes: string | null;
      ready_at: Date | null;
      removed_at: Date | null;
    };
    readonly revisions: Entity & {
      readonly workspace_id: string;
      readonly deployment_id: string;
      readonly number: number;
      status: RevisionStatus;
      readonly source: DeploymentSource;
      readonly source_config: Json<SourceConfig>;
      readonly source_revision_config: Json<SourceRevisionConfig>;
      readonly secrets_version: number;
      build_id: string | null;
      updated_at: Generated<Date>;
    };
    readonly revision_moves: {
      readonly id: Fixed<string>;
      readonly workspace_id: string;
      readonly revision_id: string;
      readonly from_status: RevisionStatus | null;
      readonly to_status: RevisionStatus;
      readonly actor: string;
      readonly reason: string | null;
      readonly at: Fixed<Date>;
    };
    readonly deployment_secrets: {
      readonly workspace_id: string;
      readonly deployment_id: string;
      readonly version: number;
      readonly name: string;
      readonly sealed_version: number;
      readonly sealed: Buffer;
    };
    readonly deployment_databases: {
      readonly deployment_id: string;
      readonly workspace_id: string;
      readonly database_name: string;
      readonly role_name: string;
      readonly sealed_password: Buffer;
      readonly sealed_master_key: Buffer;
      readonly created_at: Fixed<Date>;
    };
    readonly deployment_uploads: Entity & {
      readonly workspace_id: string;
      readonly deployment_id: string;
      readonly object_path: string;
      stored_path: string | null;
      readonly token_hash: Buffer;
      state: Generated<'open' | 'stored' | 'used'>;
      machine_id: string | null;
      size_bytes: string | null;
      sha256: string | null;
      readonly expires_at: Date;
    };
    readonly deployment_logs: {
      readonly id: Fixed<string>;
      readonly workspace_id: string;
      readonly deployment_id: string;
      readonly revision_id: string | null;
      readonly kind: LogKind;
      readonly instance: string | null;
      readonly at: Date;
      readonly level: LogLevel;
      readonly message: string;
    };
    readonly deployment_log_sizes: {
      readonly deployment_id: string;
      readonly workspace_id: string;
      bytes: string;
    };
  }
}
