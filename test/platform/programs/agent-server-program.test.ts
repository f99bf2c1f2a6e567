// The configuration of an agent server: what its file and its variables say together.
import { expect, it } from 'vitest';
import { type AgentConfig, parseAgentConfig } from '../../../src/platform/programs/agent-server-program.ts';

function configOf(env: NodeJS.ProcessEnv = {}, more: object = {}): AgentConfig {
  const document = { graphs: { agent: './agent.js:graph' }, dependencies: ['.'], ...more };
  const parsed = parseAgentConfig({ document, path: 'langgraph.json' }, env);
  if (!parsed.ok) throw new Error(JSON.stringify(parsed.issues));
  return parsed.value;
}

it('leaves most connections to others than one address without a key', () => {
  expect(configOf().ground.limits).toMatchObject({ connections: 8192, connectionsPerAddress: 1024 });
  const env = { SALLYPORT_PLATFORM_LIMITS_CONNECTIONS_PER_ADDRESS: '64' };
  expect(configOf(env).ground.limits).toMatchObject({ connections: 8192, connectionsPerAddress: 64 });
});
