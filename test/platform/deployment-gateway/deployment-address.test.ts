// Which deployment a request names, and where a deployment is.
import { expect, it } from 'vitest';
import {
  addressOf,
  parseDeploymentName,
  siteOf,
} from '../../../src/platform/deployment-gateway/deployment-address.ts';

const ID = '6b1c0b86-7a2f-4a57-8f0e-5d7a0c1c9f11';
const domain = 'apps.example.com';

it.each<[string, string, object | undefined]>([
  ['127.0.0.1:8090', `/d/${ID}`, { by: 'path', id: ID }],
  ['127.0.0.1:8090', `/d/${ID}/threads?a`, { by: 'path', id: ID }],
  ['127.0.0.1:8090', `/d/${ID}?a`, { by: 'path', id: ID }],
  ['127.0.0.1:8090', `/d/${ID}x`, undefined],
  ['127.0.0.1:8090', `/d/${ID.toUpperCase()}/`, undefined],
  ['127.0.0.1:8090', `/d/%36${ID.slice(1)}/`, undefined],
  ['127.0.0.1:8090', `//d/${ID}/`, undefined],
  ['127.0.0.1:8090', '/d/', undefined],
  [domain, `/d/${ID}/`, { by: 'path', id: ID }],
  [`app-6b1c0b86.${domain}`, '/threads', { by: 'host', label: 'app-6b1c0b86' }],
  [`APP-6b1c0b86.Apps.Example.com.:8090`, `/d/${ID}/`, { by: 'host', label: 'app-6b1c0b86' }],
  [`a.b.${domain}`, '/', { by: 'host', label: 'a.b' }],
  [`x${domain}`, '/', undefined],
])('a request to %s%s', (host, target, named) =>
  expect(parseDeploymentName({ domain }, { host, target })).toEqual(named),
);

it('is by path, or by host name where there is a domain', () => {
  const app = { id: ID, name: 'app' };
  expect(addressOf({ url: 'http://127.0.0.1:8090', domain: undefined }, app)).toBe(
    `http://127.0.0.1:8090/d/${ID}`,
  );
  expect(addressOf({ url: 'https://gw.example.com:444', domain }, app)).toBe(
    `https://app-6b1c0b86.${domain}:444`,
  );
  // A name of which a host name can have nothing.
  const nameless = { id: ID, name: 'é' };
  const site = { url: 'https://gw.example.com:444', domain };
  expect(addressOf(site, nameless)).toBe(`https://d-6b1c0b86.${domain}:444`);
  expect(siteOf(site, nameless, 'host').origin).toBe(addressOf(site, nameless));
});

it('by path has cookies of its own, and knows itself by the host that was sent', () => {
  const site = { url: 'http://127.0.0.1:8090', domain };
  const app = { id: ID, name: 'app' };
  expect(siteOf(site, app, 'path', 'LOCALHOST:8090')).toEqual({
    ...{ by: 'path', authority: '127.0.0.1:8090', origin: 'http://127.0.0.1:8090', prefix: `/d/${ID}` },
    ...{ aliases: ['localhost:8090'], cookiePrefix: `deployment-${ID}-` },
  });
  expect(siteOf(site, app, 'host')).toMatchObject({ by: 'host', prefix: '', cookiePrefix: '' });
});
