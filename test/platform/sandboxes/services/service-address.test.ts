import { describe, expect, it } from 'vitest';
import {
  parseServicePlace,
  preferredPlace,
  urlOf,
} from '../../../../src/platform/sandboxes/services/service-address.ts';

const id = '11111111-1111-4111-8111-111111111111';
const plain = { gatewayUrl: 'http://127.0.0.1:8081', domain: undefined };
const site = { gatewayUrl: 'https://gateway.example.com', domain: 'boxes.example.com' };

describe('a service by path', () => {
  it('has the prefix of its box and port, and the origin of the gateway', () => {
    for (const rest of ['', '/', '/a/../b', '?x', '/?x'])
      expect(parseServicePlace(plain, { host: 'anything', target: `/services/${id}/8000${rest}` })).toEqual({
        ...{ boxId: id, port: 8000, by: 'path', prefix: `/services/${id}/8000` },
        ...{ origin: 'http://127.0.0.1:8081', authority: '127.0.0.1:8081' },
      });
  });

  it('has one path alone', () => {
    const paths = [
      `/services/${id}/08000/`,
      `/services/${id}/8000x/`,
      `/services/${id}/0/`,
      `/services/${id}`,
      `/services/${id.toUpperCase().replace('1', 'A')}/80/`,
      `//services/${id}/80/`,
      `/services/${id}%2f80/`,
      '/boxes/1',
    ];
    for (const target of paths) expect(parseServicePlace(plain, { host: 'h', target })).toBeUndefined();
    const target = `/services/${id}/65536/`;
    expect(parseServicePlace(plain, { host: 'h', target })).toBe('unknown');
  });
});

describe('a service by host', () => {
  const host = `3000--${id}.boxes.example.com`;

  it('has an origin of its own, whatever its path is', () => {
    for (const name of [host, `${host}.`, `${host}:443`, host.toUpperCase()])
      expect(parseServicePlace(site, { host: name, target: `/services/${id}/80/` })).toEqual({
        ...{ boxId: id, port: 3000, by: 'host', prefix: '' },
        ...{ origin: `https://${host}`, authority: host },
      });
  });

  it('is never the path of another host name below the domain', () => {
    for (const label of ['x', id, `3000-${id}`, `70000--${id}`, `a.3000--${id}`, `03000--${id}`, ''])
      expect(
        parseServicePlace(site, { host: `${label}.boxes.example.com`, target: `/services/${id}/80/` }),
      ).toBe('unknown');
    for (const other of ['boxes.example.com', 'gateway.example.com', 'xboxes.example.com'])
      expect(parseServicePlace(site, { host: other, target: `/services/${id}/80/` })).toMatchObject({
        by: 'path',
      });
  });

  it('has the port of the gateway', () => {
    const dev = { gatewayUrl: 'http://127.0.0.1:8081', domain: 'localhost' };
    const place = preferredPlace(dev, { boxId: id, port: 5173 });
    expect(urlOf(place)).toBe(`http://5173--${id}.localhost:8081/`);
    expect(parseServicePlace(dev, { host: place.authority, target: '/' })).toEqual(place);
  });
});

it('prefers a host name where there is a domain', () => {
  const service = { boxId: id, port: 80 };
  expect(urlOf(preferredPlace(plain, service))).toBe(`http://127.0.0.1:8081/services/${id}/80/`);
  expect(urlOf(preferredPlace(site, service))).toBe(`https://80--${id}.boxes.example.com/`);
});
