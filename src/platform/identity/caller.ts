// Who is asking, once the key is known, and what that key stands for.
import type { Permission } from './permission.ts';

export type Organization = {
  readonly id: string;
  readonly isPersonal: boolean;
  /** `enterprise` among others. */
  readonly plan: string;
  /** Feature flags by name. */
  readonly config: Readonly<Record<string, unknown>>;
};

export type Caller = {
  readonly keyId: string;
  readonly kind: 'service' | 'personal';
  /** The user of a personal token. */
  readonly userId: string | undefined;
  readonly organization: Organization;
  /** What it may in the organization itself. */
  readonly permissions: ReadonlySet<Permission>;
  /** The one workspace of a service key that is bound to it. */
  readonly boundTo: string | undefined;
};

/** What a caller may in one workspace of his organization. */
export type Standing = { readonly workspaceId: string; readonly permissions: ReadonlySet<Permission> };
