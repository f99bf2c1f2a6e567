// What an instance of a deployment reads at its start: every mistake is named by its member, and nothing is quoted.
import { expect, it } from 'vitest';
import {
  hostVariables,
  networkVariables,
  parseDeploymentInput,
  settingsIn,
} from '../../../../src/platform/agent-server/configuration/deployment-input.ts';
import type { AgentInput } from '../../../../src/platform/agent-server/contract.ts';

const input: AgentInput = {
  variables: { OPENAI_API_KEY: 'k' },
  databaseUrl: 'postgresql://d:secret@/d?host=/run/sockets',
  masterKey: Buffer.alloc(32, 1).toString('base64'),
  deployment: {
    id: '6b1c0b86-7a2f-4a57-8f0e-5d7a0c1c9f11',
    name: 'app',
    revisionId: '6b1c0b86-7a2f-4a57-8f0e-5d7a0c1c9f12',
    gatewayToken: Buffer.alloc(32, 2).toString('base64url'),
    access: 'gateway',
  },
};

it('holds its keys as secrets', () => {
  const parsed = parseDeploymentInput(JSON.stringify(input));
  if (!parsed.ok) throw new Error(JSON.stringify(parsed.issues));
  const { masterKey, deployment, variables } = parsed.value;
  expect(variables).toEqual(input.variables);
  expect(masterKey.equals(input.masterKey)).toBe(true);
  expect(deployment.gatewayToken.equals(input.deployment.gatewayToken)).toBe(true);
  expect(JSON.stringify([masterKey, deployment])).not.toContain(input.deployment.gatewayToken);
  expect(deployment.mountPrefix).toBe('');
});

it.each<[string, unknown, string]>([
  ['no JSON', 'secret{', 'SALLYPORT_AGENT_INPUT: must be JSON'],
  ['no object', [], 'SALLYPORT_AGENT_INPUT: Input must be an object'],
  ['an unknown member', { ...input, more: 1 }, 'SALLYPORT_AGENT_INPUT.more: Unknown key'],
  [
    'a name that is none',
    { ...input, variables: { 'A B': 'secret' } },
    'SALLYPORT_AGENT_INPUT.variables.A B: Invalid key in record',
  ],
  [
    'a value that no variable can have',
    { ...input, variables: { A: 'secret\0' } },
    'SALLYPORT_AGENT_INPUT.variables.A: must not contain U+0000',
  ],
  [
    'too many variables',
    { ...input, variables: Object.fromEntries(Array.from({ length: 2001 }, (_, i) => [`A${i}`, ''])) },
    'SALLYPORT_AGENT_INPUT.variables: has more than 2000 variables',
  ],
  [
    'a URL of something else',
    { ...input, databaseUrl: 'mysql://secret' },
    'databaseUrl: must be the URL of a',
  ],
  ['a short key', { ...input, masterKey: 'secret' }, 'masterKey: must be 32 bytes in base64'],
  [
    'a short token',
    { ...input, deployment: { ...input.deployment, gatewayToken: 'secret' } },
    'deployment.gatewayToken: must be 32 bytes in base64url',
  ],
  [
    'a prefix that is no path',
    { ...input, deployment: { ...input.deployment, mountPrefix: '/secret/../' } },
    'deployment.mountPrefix: must be a path such as',
  ],
])('is refused with %s', (_, document, message) => {
  const parsed = parseDeploymentInput(typeof document === 'string' ? document : JSON.stringify(document));
  const messages = parsed.ok ? [] : parsed.issues.map(({ loc, msg }) => `${loc.join('.')}: ${msg}`);
  expect(messages.join('\n')).toContain(message);
  expect(messages.join('\n')).not.toContain('secret');
});

it('has settings of the server among its variables, and none besides the documented ones', () => {
  const variables = { N_JOBS_PER_WORKER: '2', LOG_LEVEL: 'DEBUG', SALLYPORT_AGENT_TRUNCATE: 'true', A: '1' };
  expect(settingsIn(variables)).toEqual({ N_JOBS_PER_WORKER: '2', LOG_LEVEL: 'DEBUG' });
});

it('tells the workers which deployment they are of', () => {
  const parsed = parseDeploymentInput(
    JSON.stringify({ ...input, deployment: { ...input.deployment, mountPrefix: '/d/app/' } }),
  );
  expect(parsed.ok && hostVariables(parsed.value.deployment)).toMatchObject({
    LANGSMITH_DEPLOYMENT_NAME: 'app',
    LANGSMITH_HOST_PROJECT_ID: input.deployment.id,
    LANGSMITH_HOST_REVISION_ID: input.deployment.revisionId,
    LANGSMITH_PROJECT: 'app',
    MOUNT_PREFIX: '/d/app',
  });
});

it('the workers of a deployment have the variables of its workload, and none of the server', () => {
  const network = {
    HTTPS_PROXY: 'http://127.0.0.1:3128',
    NODE_EXTRA_CA_CERTS: '/ca.pem',
    OPENAI_API_KEY: 'x',
  };
  const own = { PATH: '/bin', HOME: '/', NODE_OPTIONS: '--x', SALLYPORT_AGENT_INPUT: '3', DATABASE_URL: 'x' };
  expect(networkVariables({ ...network, ...own })).toEqual(network);
});
