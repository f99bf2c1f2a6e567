// Custom authentication: a bearer token names its user; threads and assistants belong to their owner.
import { Auth, HTTPException } from '@langchain/langgraph-sdk/auth';

const users: Readonly<Record<string, { identity: string; permissions: string[]; email: string }>> = {
  'token-of-ann': { identity: 'ann', permissions: ['write'], email: 'ann@example.test' },
  'token-of-bob': { identity: 'bob', permissions: [], email: 'bob@example.test' },
};

export const auth = new Auth()
  .authenticate(async (request: Request) => {
    const token = request.headers.get('authorization')?.replace(/^Bearer /, '') ?? '';
    const user = users[token];
    if (user === undefined)
      throw new HTTPException(401, { message: 'Unknown token', headers: { 'x-reason': 'token' } });
    return user;
  })
  .on('*', ({ value, user }) => {
    const owned = value as { metadata?: Record<string, unknown> };
    if ('metadata' in owned) owned.metadata = { ...owned.metadata, owner: user.identity };
    return { owner: user.identity };
  })
  .on('assistants:delete', ({ permissions }) => permissions.includes('write'))
  .on('assistants:search', () => true)
  .on('assistants:read', () => true);
