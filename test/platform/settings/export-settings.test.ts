// Limits of bulk exports by the names of the public product, whose documents name two values of each.
import { describe, expect, it } from 'vitest';
import { parsePlatformConfig } from '../../../src/platform/config.ts';

function exportsOf(env: NodeJS.ProcessEnv) {
  const parsed = parsePlatformConfig({}, env);
  if (!parsed.ok) throw new Error(JSON.stringify(parsed.issues));
  return parsed.value.exports;
}

const HOUR_MS = 3_600_000;

describe('the limits of bulk exports', () => {
  it('are 45 runs of an export, 15 exports of a workspace, 72 hours, 20 retries 30 seconds apart, 250 creations an hour', () => {
    const { limits, rules, defaultCompression, statusCase, quotas } = exportsOf({});
    expect(limits).toEqual({ maxExports: 15, maxRuns: 45 });
    expect(rules).toEqual({
      ...{ maxRetries: 20, retryDelayMs: 30_000 },
      ...{ runTimeoutMs: 4 * HOUR_MS, exportTimeoutMs: 72 * HOUR_MS },
    });
    expect([defaultCompression, statusCase]).toEqual(['gzip', 'upper']);
    expect(quotas).toEqual({ creationsPerHour: 250, schedules: 200 });
  });

  it('are 5, 3 and 48 hours where the operator says so', () => {
    const { limits, rules, defaultCompression } = exportsOf({
      BULK_EXPORT_MAX_CONCURRENT_RUNS: '5',
      DATA_EXPORT_RUN_LIMIT: '3',
      SALLYPORT_PLATFORM_EXPORTS_TIMEOUT_HOURS: '48',
      FF_BULK_EXPORT_DEFAULT_COMPRESSION: 'zstandard',
    });
    expect(limits).toEqual({ maxExports: 3, maxRuns: 5 });
    expect([rules.exportTimeoutMs, defaultCompression]).toEqual([48 * HOUR_MS, 'zstandard']);
  });

  it('name the variable of what is wrong', () => {
    const parsed = parsePlatformConfig({}, { BULK_EXPORT_MAX_CONCURRENT_RUNS: 'many' });
    expect(parsed.ok ? [] : parsed.issues.map(({ loc }) => loc)).toEqual([
      ['BULK_EXPORT_MAX_CONCURRENT_RUNS'],
    ]);
  });

  it('say what an endpoint must be', () => {
    const env = { SALLYPORT_PLATFORM_EXPORTS_ALLOWED_ENDPOINTS: 'aws,s3.example.com' };
    const parsed = parsePlatformConfig({}, env);
    expect(parsed.ok ? [] : parsed.issues.map(({ loc, msg }) => [loc.join('.'), msg])).toEqual([
      [
        'SALLYPORT_PLATFORM_EXPORTS_ALLOWED_ENDPOINTS.1',
        'must be aws, https://host or http://host, without a path',
      ],
    ]);
  });
});
