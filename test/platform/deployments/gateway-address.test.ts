import { describe, expect, it } from 'vitest';
import {
  deploymentUrl,
  gatewayTemplate,
  hostLabel,
} from '../../../src/platform/deployments/gateway-address.ts';

const id = '0123abcd-4567-4890-8bcd-ef0123456789';

describe('the address of a deployment', () => {
  it.each([
    ['http://127.0.0.1:8090', `http://127.0.0.1:8090/d/${id}`],
    ['http://127.0.0.1:8090/', `http://127.0.0.1:8090/d/${id}`],
    ['https://{label}.apps.example.com', 'https://my-app-0123abcd.apps.example.com'],
    ['https://example.com/run/{id}', `https://example.com/run/${id}`],
  ])('at %s is %s', (gateway, url) => {
    expect(deploymentUrl(gateway, { id, name: 'My App' })).toBe(url);
  });

  it.each([
    ['http://127.0.0.1:8090', undefined, `http://127.0.0.1:8090/d/${id}`],
    ['http://127.0.0.1:8090', 'apps.localhost', 'http://my-app-0123abcd.apps.localhost:8090'],
    ['https://gateway.example.com', 'apps.example.com', 'https://my-app-0123abcd.apps.example.com'],
  ])('is by host name where the gateway %s has the domain %s', (url, domain, address) => {
    expect(deploymentUrl(gatewayTemplate(url, domain), { id, name: 'My App' })).toBe(address);
  });

  it.each([
    ['app', 'app-0123abcd'],
    ['--My_App--', 'my-app-0123abcd'],
    ['ÄÖ', 'd-0123abcd'],
    ['$&{id}', 'id-0123abcd'],
    [`${'a'.repeat(53)}-b`, `${'a'.repeat(53)}-0123abcd`],
  ])('has for the name %s the label %s', (name, label) => {
    expect(hostLabel({ id, name })).toBe(label);
    expect(label.length).toBeLessThanOrEqual(63);
  });
});
