// The platform with one workspace, and its secrets.
import { type Ask, type Asked, createPlatformApi, type PlatformApi } from '../../support/platform-api.ts';

export const SECRETS = '/api/v1/workspaces/current/secrets';

export type SecretScene = AsyncDisposable & {
  readonly api: PlatformApi;
  readonly organizationId: string;
  readonly workspaceId: string;
  /** Of an administrator of the workspace. */
  readonly key: string;
  set(changes: unknown, as?: Ask): Promise<Asked>;
  list(as?: Ask): Promise<readonly string[]>;
  /** Another workspace of the organization, and the key of its administrator. */
  addWorkspace(): Promise<{ readonly workspaceId: string; readonly key: string }>;
};

export async function createSecretScene(
  options: Parameters<typeof createPlatformApi>[0] = {},
): Promise<SecretScene> {
  const api = await createPlatformApi(options);
  const organizationId = await api.addOrganization();
  const addWorkspace = async () => {
    const workspaceId = await api.addWorkspace(organizationId);
    return { workspaceId, key: await api.addServiceKey(organizationId, 'WORKSPACE_ADMIN', workspaceId) };
  };
  const { workspaceId, key } = await addWorkspace();
  return {
    ...{ api, organizationId, workspaceId, key, addWorkspace },
    set: (body, as = { key }) => api.ask('POST', SECRETS, { ...as, body }),
    async list(as = { key }) {
      const { body } = await api.ask('GET', SECRETS, as);
      return body.map((one: { readonly key: string }) => one.key);
    },
    [Symbol.asyncDispose]: () => api[Symbol.asyncDispose](),
  };
}
