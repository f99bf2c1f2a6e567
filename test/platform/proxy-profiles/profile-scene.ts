// The platform with one workspace, and its proxy profiles.
import { type Ask, type Asked, createPlatformApi, type PlatformApi } from '../../support/platform-api.ts';

export const PROFILES = '/v1/proxy-profiles';
export const HUSH = 'an opaque value that nothing may show';

export type ProfileScene = AsyncDisposable & {
  readonly api: PlatformApi;
  readonly organizationId: string;
  /** A new workspace, in which no profile exists yet. */
  addWorkspace(): Promise<ProfileWorkspace>;
};

export type ProfileWorkspace = {
  readonly workspaceId: string;
  /** Of a user of the workspace. */
  readonly key: string;
  ask(method: string, path?: string, body?: unknown, as?: Ask): Promise<Asked>;
  /** Returns its id. */
  create(name: string, proxyConfig?: object, more?: object): Promise<string>;
};

export async function createProfileScene(
  options: Parameters<typeof createPlatformApi>[0] = {},
): Promise<ProfileScene> {
  const api = await createPlatformApi(options);
  const organizationId = await api.addOrganization();
  return {
    ...{ api, organizationId },
    async addWorkspace() {
      const workspaceId = await api.addWorkspace(organizationId);
      const key = await api.addServiceKey(organizationId, 'WORKSPACE_USER', workspaceId);
      const ask: ProfileWorkspace['ask'] = (method, path = '', body = undefined, as = { key }) =>
        api.ask(method, `${PROFILES}${path}`, { ...as, ...(body === undefined ? {} : { body }) });
      return {
        ...{ workspaceId, key, ask },
        async create(name, proxyConfig = {}, more = {}) {
          const { status, text, body } = await ask('POST', '', { name, proxy_config: proxyConfig, ...more });
          if (status !== 201) throw new Error(`creating a profile failed: ${status} ${text}`);
          return body.id;
        },
      };
    },
    [Symbol.asyncDispose]: () => api[Symbol.asyncDispose](),
  };
}

export function opaqueRules(host: string, header: object = { value: HUSH }): object {
  return {
    rules: [{ name: 'key', match_hosts: [host], headers: [{ name: 'X-Key', type: 'opaque', ...header }] }],
  };
}
