import { describe, expect, it } from 'vitest';
import { allowedMethods, createRouteTable } from '../../../src/base/http/route-table.ts';

const routes = [
  { method: 'GET', path: '/' },
  { method: 'GET', path: '/things/{id}' },
  { method: 'DELETE', path: '/things/{id}' },
  { method: 'GET', path: '/things/all' },
  { method: 'PUT', path: '/things/{id}/parts/{part}' },
];
const find = createRouteTable(routes);

describe('a route table', () => {
  it.each([
    ['GET', '/', 'GET /', {}],
    ['HEAD', '/', 'GET /', {}],
    ['DELETE', '/things/7', 'DELETE /things/{id}', { id: '7' }],
    ['GET', '/things/all', 'GET /things/all', {}],
    ['GET', '/%74hings/a%20b', 'GET /things/{id}', { id: 'a b' }],
    ['GET', '/things/a%2Fb', 'GET /things/{id}', { id: 'a/b' }],
    ['GET', '/things/%2561', 'GET /things/{id}', { id: '%61' }],
    ['GET', '/things/%zz', 'GET /things/{id}', { id: '%zz' }],
    ['GET', '/things/%ff', 'GET /things/{id}', { id: '%ff' }],
    ['PUT', '/things/__proto__/parts/b', 'PUT /things/{id}/parts/{part}', { id: '__proto__', part: 'b' }],
  ])('finds for %s %s the route %s', (method, path, route, params) => {
    const match = find(method, path);
    expect(`${match.route?.method} ${match.route?.path}`).toBe(route);
    expect(match.params).toEqual(params);
  });

  it.each([
    ['POST', '/things/7', 'GET, HEAD, DELETE'],
    ['OPTIONS', '/', 'GET, HEAD'],
    // The fixed path wins whatever its methods are.
    ['DELETE', '/things/all', 'GET, HEAD'],
  ])('finds for %s %s no route, but the methods of the path: %s', (method, path, allowed) => {
    const match = find(method, path);
    expect([match.route, allowedMethods(match.routes)]).toEqual([undefined, allowed]);
  });

  it.each([
    '',
    '/things',
    '/things/',
    '/things/7/',
    '//things/7',
    '/Things/7',
    '/things%2F7',
    '/things/7/parts',
  ])('does not find the path %j', (path) => {
    expect(find('GET', path)).toEqual({ route: undefined, params: {}, routes: [] });
  });
});
