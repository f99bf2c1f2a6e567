// Endpoints of destinations: which may be named, which get the credentials of the installation, and where the bucket stands.
import { describe, expect, it } from 'vitest';
import {
  decideAddressing,
  type EndpointRules,
  findEndpointProblem,
  mayUseEnvironment,
} from '../../../../src/platform/bulk-export/destinations/endpoint.ts';

const open: EndpointRules = { allowed: undefined, cleartext: new Set(), environmentCredentials: new Set() };

describe('an endpoint', () => {
  it.each([
    undefined,
    'https://s3.example.com',
    'https://s3.example.com:9000/',
    'https://10.0.0.1/base/path',
  ])('%s can be used', (endpoint) => {
    expect(findEndpointProblem(endpoint, open)).toBeUndefined();
  });

  it.each([
    ['http://s3.example.com', 'must begin with https://'],
    ['ftp://s3.example.com', 'must be a URL'],
    ['s3.example.com', 'must be a URL'],
    ['https://', 'must be a URL'],
    ['https://user:pass@s3.example.com', 'must not contain credentials'],
    ['https://s3.example.com/?x=1', 'no query'],
    ['https://s3.example.com/#x', 'no query'],
    ['https://s3.example.com/a%2f..', 'not allowed'],
  ])('%s is refused: %s', (endpoint, reason) => {
    expect(findEndpointProblem(endpoint, open)).toContain(reason);
  });

  it('without TLS is one that the operator lists', () => {
    const rules = { ...open, cleartext: new Set(['http://127.0.0.1:9000']) };
    expect(findEndpointProblem('http://127.0.0.1:9000/', rules)).toBeUndefined();
    expect(findEndpointProblem('http://127.0.0.1:9001/', rules)).toContain('cleartext_endpoints');
  });

  it('is one of the list, where the operator has made one', () => {
    const rules = { ...open, allowed: new Set(['https://s3.example.com']) };
    expect(findEndpointProblem('https://s3.example.com', rules)).toBeUndefined();
    for (const other of [undefined, 'https://s3.example.com:444', 'https://s3.example.net', 'nonsense'])
      expect(findEndpointProblem(other, rules)).toContain('exports.allowed_endpoints');
    expect(findEndpointProblem(undefined, { ...open, allowed: new Set(['aws']) })).toBeUndefined();
  });

  it('gets the credentials of the installation only when it is listed for that', () => {
    expect(mayUseEnvironment(undefined, open)).toBe(false);
    expect(mayUseEnvironment('https://s3.example.com', open)).toBe(false);
    const rules = { ...open, environmentCredentials: new Set(['aws', 'https://s3.example.com']) };
    expect(mayUseEnvironment(undefined, rules)).toBe(true);
    expect(mayUseEnvironment('https://s3.example.com/path', rules)).toBe(true);
    expect(mayUseEnvironment('https://s3.example.org', rules)).toBe(false);
  });
});

describe('the bucket', () => {
  it.each([
    [undefined, true, undefined, 'virtual'],
    [undefined, true, 'auto', 'virtual'],
    [undefined, true, 'path', 'path'],
    ['https://s3.example.com', true, undefined, 'path'],
    ['https://s3.example.com', true, 'auto', 'path'],
    ['https://s3.example.com', true, 'virtual', 'virtual'],
    ['https://bucket.s3.example.com', false, undefined, 'in_endpoint'],
    ['https://bucket.s3.example.com', false, 'path', 'in_endpoint'],
  ] as const)(
    'of %s, include_bucket_in_prefix %s, addressing_style %s, is addressed as %s',
    (endpoint, isSeparate, style, expected) => {
      const config = { endpoint_url: endpoint, include_bucket_in_prefix: isSeparate };
      const options = style === undefined ? {} : { config_kwargs_s3: { addressing_style: style } };
      expect(decideAddressing({ ...config, ...options })).toBe(expected);
    },
  );
});
