// Documents for the tests of this folder: rules with values of all types.
import { InvalidInput } from '../../../src/base/domain-error.ts';
import type { Issue } from '../../../src/base/schema.ts';
import { type ProxyDocument, parseDocument } from '../../../src/platform/proxy-documents/parsed-document.ts';

export const HUSH = 'an opaque value that nothing may show';

export const open = { allowsPrivateCallbacks: true };

export function ruleFor(host: string, more: object = {}): object {
  return { match_hosts: [host], headers: [{ name: 'X-Plain', type: 'plaintext', value: 'p' }], ...more };
}

export function opaqueRule(host: string, header: object = { value: HUSH }): object {
  return { name: 'secret', match_hosts: [host], headers: [{ name: 'X-Key', type: 'opaque', ...header }] };
}

export function secretRule(host: string, template: string): object {
  return {
    match_hosts: [host],
    headers: [{ name: 'Authorization', type: 'workspace_secret', value: template }],
  };
}

export function callbackTo(url: string, host = 'called.example.com'): object {
  return {
    match_hosts: [host],
    url,
    ttl_seconds: 60,
    request_headers: [{ name: 'X-Key', type: 'opaque', value: HUSH }],
  };
}

export function parse(input: unknown): ProxyDocument {
  return parseDocument(input, open);
}

/** The issues with which `work` ends. */
export async function issuesOf(work: () => unknown): Promise<readonly Issue[]> {
  try {
    await work();
  } catch (error) {
    if (error instanceof InvalidInput) return error.issues;
    throw error;
  }
  return [];
}
