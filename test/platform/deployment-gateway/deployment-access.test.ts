// Which permission of the workspace a request to a deployment needs.
import { expect, it } from 'vitest';
import { permissionFor } from '../../../src/platform/deployment-gateway/deployment-access.ts';

const PREFIX = '/d/6b1c0b86-7a2f-4a57-8f0e-5d7a0c1c9f11';

it.each([
  ['GET', '/threads/1/state'],
  ['HEAD', '/'],
  ['POST', '/threads/search'],
  ['POST', '/threads/count?a=1'],
  ['POST', '/assistants/search'],
  ['POST', '/threads/1/history'],
])('%s %s reads', (method, path) => {
  for (const prefix of ['', PREFIX])
    expect(permissionFor({ method, isUpgrade: false, target: `${prefix}${path}` }, prefix)).toBe(
      'deployments:read',
    );
});

it.each([
  ['POST', '/threads', false],
  ['POST', '/runs/wait', false],
  ['POST', '/threads/1/runs/search', false],
  ['POST', '/app/threads/search', false],
  ['PUT', '/threads/search', false],
  ['DELETE', '/threads/1', false],
  ['GET', '/ws', true],
])('%s %s (upgrade: %s) changes', (method, path, isUpgrade) =>
  expect(permissionFor({ method, isUpgrade, target: `${PREFIX}${path}` }, PREFIX)).toBe('deployments:update'),
);
