// The settings of the control plane, from variables and from the file.
import { describe, expect, it } from 'vitest';
import { parsePlatformConfig } from '../../../src/platform/config.ts';
import { resolve } from 'node:path';

const parse = (document: object, env: NodeJS.ProcessEnv = {}) => {
  const parsed = parsePlatformConfig(document, env);
  if (!parsed.ok) throw new Error(parsed.issues.map(({ loc, msg }) => `${loc.join('.')}: ${msg}`).join('; '));
  return parsed.value.deployments;
};

describe('the settings of the control plane', () => {
  it('keep sources in the data directory, have no registry, and limit each workspace', () => {
    expect(parse({})).toEqual({
      ...{ sources: undefined, registry: undefined },
      quotas: { deployments: 100, pendingRevisions: 50, openUploads: 20, sourceBytes: 10 * 1024 ** 3 },
    });
  });

  it('are read from variables', () => {
    const prefix = 'SALLYPORT_PLATFORM_DEPLOYMENTS_';
    const env = {
      [`${prefix}SOURCES`]: 's3://bucket/prefix?region=eu-central-1',
      [`${prefix}REGISTRY_URL`]: 'registry.example.com:5000/team/images',
      [`${prefix}REGISTRY_TOKEN_FILE`]: 'token',
      [`${prefix}MAX_DEPLOYMENTS`]: '1',
      [`${prefix}MAX_PENDING_REVISIONS`]: '2',
      [`${prefix}MAX_OPEN_UPLOADS`]: '3',
      [`${prefix}MAX_SOURCE_BYTES`]: '4',
    };
    expect(parse({}, env)).toEqual({
      sources: 's3://bucket/prefix?region=eu-central-1',
      registry: { url: 'registry.example.com:5000/team/images', tokenFile: resolve('token') },
      quotas: { deployments: 1, pendingRevisions: 2, openUploads: 3, sourceBytes: 4 },
    });
  });

  it.each([
    [{ sources: '/var/lib' }, /^deployments\.sources: .*s3:/],
    [{ registry: { url: 'https://a', token_file: 'x' } }, /^deployments\.registry\.url: /],
    [{ registry: { url: 'a' } }, /^deployments\.registry\.token_file: /],
    [{ max_deployments: -1 }, /^deployments\.max_deployments: /],
    [{ max: 1 }, /^deployments\.max: /],
  ])('reject %j by its key', (deployments, message) => {
    expect(() => parse({ deployments })).toThrow(message);
  });
});
