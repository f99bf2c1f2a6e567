// The settings of the platform: every key, its variable, its limits, and the messages for invalid values.
import { describe, expect, it } from 'vitest';
import {
  type PlatformConfig,
  isExposedListen,
  parsePlatformConfig,
  platformVariables,
} from '../../src/platform/config.ts';
import { defaultLimits } from '../../src/platform/api/limits.ts';

function parsed(document: unknown, env: Record<string, string> = {}): PlatformConfig {
  const result = parsePlatformConfig(document, { XDG_STATE_HOME: '/state', ...env });
  if (!result.ok) throw new Error(JSON.stringify(result.issues));
  return result.value;
}

function issues(document: unknown, env: Record<string, string> = {}): readonly string[] {
  const result = parsePlatformConfig(document, env);
  return result.ok ? [] : result.issues.map(({ loc, msg }) => `${loc.join('.')}: ${msg}`);
}

describe('settings', () => {
  it('have a default for everything', () => {
    expect(parsed({})).toMatchObject({
      listen: { host: '127.0.0.1', port: 8080 },
      metricsListen: undefined,
      dataDirectory: '/state/sallyport/platform',
      database: { url: undefined, ownerUrl: undefined, maxConnections: 20, hasNamedStatements: true },
      defaultFeatures: { can_use_audit_logs: false },
      audit: {
        checkpoints: '/state/sallyport/platform/audit-checkpoints.jsonl',
        checkpointIntervalMs: 60_000,
      },
      limits: defaultLimits,
      logLevel: 'info',
    });
    expect(Object.isFrozen(parsed({}))).toBe(true);
  });

  it('come from the file, and variables override it', () => {
    const document = {
      listen: '0.0.0.0:1',
      limits: { body_bytes: 10 },
      audit: { checkpoints: 's3://bucket/p' },
    };
    expect(parsed(document).listen).toEqual({ host: '0.0.0.0', port: 1 });
    const config = parsed(document, {
      SALLYPORT_PLATFORM_LISTEN: '127.0.0.1:0',
      SALLYPORT_PLATFORM_LIMITS_DRAIN_MS: '5',
      DATABASE_URL: 'postgresql://u:p@h/d',
      DEFAULT_ORG_FEATURE_CAN_USE_AUDIT_LOGS: 'True',
    });
    expect(config.listen).toEqual({ host: '127.0.0.1', port: 0 });
    expect(config.limits).toEqual({ ...defaultLimits, bodyBytes: 10, drainMs: 5 });
    expect(config.database.url).toBe('postgresql://u:p@h/d');
    expect(config.defaultFeatures).toEqual({ can_use_audit_logs: true });
    expect(config.audit.checkpoints).toBe('s3://bucket/p');
  });

  it('have a variable for each key', () => {
    const names = platformVariables().map(({ name }) => name);
    expect(new Set(names).size).toBe(names.length);
    expect(names).toHaveLength(116);
  });

  it('that are invalid are all named, by variable or key, and never quoted', () => {
    const found = issues(
      {
        listne: 1,
        listen: 'hush',
        database: { max_connections: 4 },
        trusted_proxies: ['10.0.0.0/8', 'hush'],
      },
      {
        DATABASE_URL: 'mysql://hush:hush@h/d',
        SALLYPORT_PLATFORM_LIMITS_BODY_BYTES: 'hush',
        SALLYPORT_PLATFORM_AUDIT_CHECKPOINTS: 's3://HUSH',
        SALLYPORT_PLATFORM_LOG_LEVEL: 'hush',
      },
    );
    expect(found.map((one) => one.split(':')[0]).toSorted()).toEqual([
      'DATABASE_URL',
      'SALLYPORT_PLATFORM_AUDIT_CHECKPOINTS',
      'SALLYPORT_PLATFORM_LIMITS_BODY_BYTES',
      'SALLYPORT_PLATFORM_LOG_LEVEL',
      'database.max_connections',
      'listen',
      'listne',
      'trusted_proxies.1',
    ]);
    expect(found.join('\n').toLowerCase()).not.toContain('hush');
  });
});

describe('the place of the checkpoints', () => {
  it.each([
    ['s3://bucket/prefix', true],
    ['/var/lib/checkpoints.jsonl', true],
    ['checkpoints.jsonl', true],
    // A file in a directory `https:` is what nobody means.
    ['https://bucket.example.com/prefix', false],
    ['gs://bucket', false],
  ])('%s: %s', (text, isValid) =>
    expect(parsePlatformConfig({}, { SALLYPORT_PLATFORM_AUDIT_CHECKPOINTS: text }).ok).toBe(isValid),
  );
});

describe('a listener that other machines can reach', () => {
  it.each([
    ['127.0.0.1', false],
    ['127.8.8.8', false],
    ['::1', false],
    ['localhost', false],
    ['0.0.0.0', true],
    ['::', true],
    ['10.0.0.1', true],
    ['platform.internal', true],
  ])('%s: %s', (host, isExposed) => expect(isExposedListen({ host })).toBe(isExposed));
});
