import { expect, it } from 'vitest';
import { isReservedVariable } from '../../../src/base/variables/reserved-variables.ts';

it.each(['PATH', 'LANGSMITH_API_KEY', 'DATABASE_URL', 'NODE_OPTIONS', 'LD_PRELOAD', 'SALLYPORT_AGENT_INPUT'])(
  '%s is reserved',
  (name) => expect(isReservedVariable(name)).toBe(true),
);

it.each(['OPENAI_API_KEY', 'PATHS', 'path', 'OLD_KEY', 'MY_SALLYPORT_KEY', '', 'constructor'])(
  '%j is not reserved',
  (name) => expect(isReservedVariable(name)).toBe(false),
);
