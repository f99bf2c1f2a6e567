// What an agent server reads from its descriptor: all that is secret of a deployment. One of the files that read the values of secrets.
import type { Secret } from '../../../base/secret.ts';
import type { AgentInput } from '../../agent-server/contract.ts';

export type AgentSecrets = {
  /** Of its workers, by the names of their variables. */
  readonly variables: ReadonlyMap<string, Secret>;
  readonly masterKey: Secret;
  readonly database: {
    /** With the socket of its bridge. */
    readonly directory: string;
    readonly name: string;
    readonly user: string;
    readonly password: Secret;
  };
  readonly gatewayToken: Secret;
};

export type AgentIdentity = Omit<AgentInput['deployment'], 'gatewayToken'>;

/** The text is for the descriptor alone. */
export function formatAgentInput(secrets: AgentSecrets, deployment: AgentIdentity): string {
  const { variables, masterKey, database, gatewayToken } = secrets;
  const given = [...variables].map(([name, value]) => [name, value.reveal()] as const);
  const input: AgentInput = {
    variables: Object.fromEntries(given),
    databaseUrl: formatUrl(database),
    masterKey: masterKey.reveal(),
    deployment: { ...deployment, gatewayToken: gatewayToken.reveal() },
  };
  return JSON.stringify(input);
}

function formatUrl({ directory, name, user, password }: AgentSecrets['database']): string {
  const query = new URLSearchParams({ host: directory, user, password: password.reveal() });
  return `postgresql:///${encodeURIComponent(name)}?${query}`;
}

/** The value of CORS_ALLOW_ORIGINS, which is a setting of the agent server and no secret; undefined: it is not set. */
export function originsIn(variables: AgentSecrets['variables']): readonly string[] | undefined {
  const text = variables.get('CORS_ALLOW_ORIGINS')?.reveal();
  return text ? text.split(',').map((part) => part.trim()) : undefined;
}
