import { describe, expect, it } from 'vitest';
import { parseConfig } from '../../../src/sidecar/config.ts';

const forward = (given: Readonly<Record<string, unknown>>): ReturnType<typeof parseConfig> =>
  parseConfig({ records: { forward: { token_file: '/t', ...given } } }, {});

describe('records.forward', () => {
  it('is off unless a URL is set', () => {
    const parsed = parseConfig({}, {});
    expect(parsed.ok && parsed.value.recordForward).toBe(undefined);
  });

  it('comes from the file or from variables', () => {
    const env = {
      SALLYPORT_RECORDS_FORWARD_URL: 'https://platform.example.com/base/',
      SALLYPORT_RECORDS_FORWARD_TOKEN_FILE: '/run/{sandbox}.token',
      SALLYPORT_RECORDS_FORWARD_CA: '/ca.pem',
    };
    const parsed = parseConfig({}, env);
    expect(parsed.ok && parsed.value.recordForward).toEqual({
      url: 'https://platform.example.com/base',
      tokenFile: '/run/{sandbox}.token',
      caFile: '/ca.pem',
    });
  });

  it.each(['http://127.0.0.1:8080', 'http://[::1]:8080', 'http://localhost', 'https://10.0.0.1'])(
    'takes %s',
    (url) => expect(forward({ url }).ok).toBe(true),
  );

  it.each([
    'http://platform.example.com',
    'http://10.0.0.1',
    'http://127.0.0.1.example.com',
    'ftp://127.0.0.1',
    'https://user:canary@platform.example.com',
    'https://platform.example.com/?a=b',
    'https://platform.example.com/#a',
    'platform',
  ])('rejects %s, without quoting it', (url) => {
    const parsed = forward({ url });
    expect(parsed).toMatchObject({ ok: false, issues: [{ loc: ['records', 'forward', 'url'] }] });
    expect(JSON.stringify(parsed)).not.toContain('canary');
  });

  it('sends a token in plaintext to another host only if the operator allows it', () => {
    const parsed = parseConfig(
      {},
      {
        SALLYPORT_RECORDS_FORWARD_URL: 'http://platform.internal',
        SALLYPORT_RECORDS_FORWARD_TOKEN_FILE: '/t',
        SALLYPORT_RECORDS_FORWARD_CLEARTEXT: 'true',
      },
    );
    expect(parsed.ok).toBe(true);
  });

  it('requires a token', () => {
    const parsed = parseConfig({ records: { forward: { url: 'https://platform.example.com' } } }, {});
    expect(parsed).toMatchObject({ ok: false, issues: [{ loc: ['records', 'forward', 'token_file'] }] });
  });
});
