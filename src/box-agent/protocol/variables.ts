// The variables of commands in a box, on their way through the environment of the agent. The agent is a program of ours: a
// variable of the box must neither keep its Node from starting nor load code into it (NODE_OPTIONS, LD_PRELOAD).

const PREFIX = 'BOX_VARIABLE_';

/** What the agent is started with. */
export function toAgentVariables(
  variables: Readonly<Record<string, string | undefined>>,
): Readonly<Record<string, string>> {
  return Object.fromEntries(
    Object.entries(variables).flatMap(([name, value]) =>
      value === undefined ? [] : [[`${PREFIX}${name}`, value]],
    ),
  );
}

/** What a command gets of the environment of the agent. */
export function toCommandVariables(
  environment: Readonly<Record<string, string | undefined>>,
): Readonly<Record<string, string>> {
  return Object.fromEntries(
    Object.entries(environment).flatMap(([name, value]) =>
      value !== undefined && name.startsWith(PREFIX) ? [[name.slice(PREFIX.length), value]] : [],
    ),
  );
}
